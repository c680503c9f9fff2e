"""Posteriors of partitions: label-free summaries, one partition for all draws, relabelling."""

import numpy as np
import pytest

from markovia.errors import InvalidArgument
from markovia.inference.collapsed.partition_posterior import PartitionPosterior


def partitions(n):
    """Yield all partitions of n rows as labels in order of appearance."""
    if n == 0:
        yield ()
        return
    for rest in partitions(n - 1):
        for k in range(max(rest, default=-1) + 2):
            yield (*rest, k)


def entropy(*labels):
    n = np.bincount(np.ravel_multi_index([np.asarray(z) for z in labels], (6,) * len(labels)))
    p = n[n > 0] / n.sum()
    return -(p * np.log(p)).sum()


def variation(a, b):
    return 2 * entropy(a, b) - entropy(a) - entropy(b)


def binder(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return ((a[:, None] == a) != (b[:, None] == b)).sum()


@pytest.mark.parametrize(("loss", "distance"), [("vi", variation), ("binder", binder)])
def test_the_point_partition_has_the_least_expected_loss_of_all_partitions(loss, distance):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        draws = rng.integers(0, 3, (9, 6)) * (rng.random((9, 6)) < 0.6)
        found = PartitionPosterior(draws).point(loss)
        expected = {p: sum(distance(p, d) for d in draws) for p in partitions(6)}
        assert sum(distance(found, d) for d in draws) == pytest.approx(min(expected.values()), abs=1e-9)


def test_summaries_do_not_depend_on_labels():
    rng = np.random.default_rng(0)
    draws = rng.integers(0, 4, (30, 12))
    one = PartitionPosterior(draws)
    other = PartitionPosterior(np.array([rng.permutation(4)[d] for d in draws]))
    assert one.n_clusters().to_dict() == other.n_clusters().to_dict()
    np.testing.assert_array_equal(one.co_clustering(), other.co_clustering())
    np.testing.assert_array_equal(one.co_clustering([3, 1]), one.co_clustering()[np.ix_([3, 1], [3, 1])])
    np.testing.assert_array_equal(one.point(), other.point())
    direct = (draws[:, :, None] == draws[:, None, :]).mean(axis=0)
    np.testing.assert_allclose(one.co_clustering(), direct, atol=1e-6)


def test_relabelling_undoes_permuted_labels_and_summaries_follow():
    rng = np.random.default_rng(1)
    truth = np.repeat([0, 1, 2], [20, 14, 8])
    means = np.array([[0.0, 1.0], [10.0, 2.0], [20.0, 3.0]])
    labels, params = [], []
    for _ in range(40):
        names = rng.permutation(3)
        labels.append(names[truth])
        moved = np.empty_like(means)
        moved[names] = means + rng.normal(0, 0.1, means.shape)
        params.append(moved)
    found = PartitionPosterior(np.array(labels), parameters={"means": params})
    np.testing.assert_array_equal(found.relabelled(), np.tile(truth, (40, 1)))
    about = found.summary()["means"]
    np.testing.assert_allclose(about["mean"], means, atol=0.06)
    assert (about["low"] < about["mean"]).all()
    assert (about["mean"] < about["high"]).all()
    np.testing.assert_array_equal(about["share"], 1.0)
    np.testing.assert_array_equal(found.membership(), np.eye(3)[truth])


def test_a_group_that_few_draws_have_gets_a_label_of_its_own():
    found = PartitionPosterior([[0, 0, 0, 1, 1], [0, 0, 0, 1, 1], [0, 0, 2, 1, 1]])
    assert found.point().tolist() == [0, 0, 0, 1, 1]
    assert found.relabelled()[2].tolist() == [0, 0, 2, 1, 1]
    assert found.membership()[2].tolist() == [pytest.approx(2 / 3), 0.0]


@pytest.mark.parametrize("bad", [[0, 1], [[0.5, 1.0]], np.zeros((0, 3), dtype=int)])
def test_labels_that_are_no_draws_are_refused(bad):
    with pytest.raises(InvalidArgument, match="draws by rows"):
        PartitionPosterior(bad)


def test_pictures_show_the_matrix_and_the_number():
    pytest.importorskip("matplotlib")
    from matplotlib import pyplot as plt

    found = PartitionPosterior([[0, 0, 1, 1], [0, 0, 1, 2], [0, 1, 2, 2]])
    left, right = found.plot()
    assert len(left.images) == 1
    assert [bar.get_height() for bar in right.patches] == pytest.approx([1 / 3, 2 / 3])
    _, ax = plt.subplots()
    assert found.plot(what="number", ax=ax) is ax
    with pytest.raises(InvalidArgument, match="one picture"):
        found.plot(ax=ax)
    plt.close("all")

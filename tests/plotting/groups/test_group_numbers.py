"""Pictures of hidden groups put each group's numbers, names and colours together, whatever the order they come in."""

from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("agg")

from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.patches import Ellipse

import markovia as mk
from markovia.errors import InvalidArgument
from markovia.inference.collapsed.partition_posterior import PartitionPosterior
from markovia.plotting import style
from markovia.plotting.groups.clusters import plot_clusters
from markovia.plotting.groups.processes import plot_latent_features
from markovia.plotting.groups.topic_tree import plot_topic_tree
from markovia.plotting.groups.topics import plot_documents, plot_topic_map, plot_topics
from markovia.plotting.groups.topics_over_time import plot_topics_over_time, plot_words_over_time


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


class Cloud:
    """A mixture of three components over three columns, of different sizes and spreads."""

    feature_names_in_ = np.array(["u", "v", "w"], dtype=object)
    n_features_in_ = 3
    weights_ = np.array([0.2, 0.5, 0.3])
    component_params_ = {  # noqa: RUF012
        "means": np.array([[0.0, 1.0, 2.0], [5.0, 6.0, 7.0], [-4.0, 8.0, 3.0]]),
        "covariances": np.array(
            [np.diag([1.0, 4.0, 9.0]), np.diag([2.0, 3.0, 0.5]), np.diag([0.3, 0.7, 6.0])]
        ),
    }

    def __init__(self, sure):
        self.sure = sure

    def predict_proba(self, X):
        return self.sure


def test_clusters_are_drawn_in_the_columns_that_were_asked_for():
    rows = np.array([[0.1, 1.2, 2.3], [5.4, 6.5, 7.6], [-4.1, 8.2, 3.3], [5.0, 6.1, 7.2]])
    sure = np.array([[0.8, 0.1, 0.1], [0.0, 1.0, 0.0], [0.2, 0.1, 0.7], [0.3, 0.4, 0.3]])
    ax = plot_clusters(Cloud(sure), rows, columns=("w", 1))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("w", "v")
    groups = [rows[[0]], rows[[1, 3]], rows[[2]]]
    for k, (dots, own) in enumerate(zip(ax.collections, groups, strict=True)):
        assert dots.get_offsets().tolist() == own[:, [2, 1]].tolist()
        assert to_rgb(dots.get_facecolor()[0]) == to_rgb(style.series(k))
    pale = ax.collections[1].get_facecolor()[:, 3]
    assert pale == pytest.approx([0.9, 0.15 + 0.75 * (0.4 - 1 / 3) / (2 / 3)])
    ellipses = [p for p in ax.patches if isinstance(p, Ellipse)]
    means, spread = Cloud.component_params_["means"], Cloud.component_params_["covariances"]
    for k in range(3):
        half, most = ellipses[2 * k : 2 * k + 2]
        for ellipse, inside in ((half, 0.5), (most, 0.95)):
            assert ellipse.center == pytest.approx(means[k, [2, 1]])
            assert to_rgb(ellipse.get_edgecolor()) == to_rgb(style.series(k))
            radius = np.sqrt(-2 * np.log(1 - inside))
            axes = sorted([ellipse.width / 2, ellipse.height / 2])
            assert axes == pytest.approx(sorted(radius * np.sqrt([spread[k, 2, 2], spread[k, 1, 1]])))
    # the long axis of the third points along w, which runs across
    assert abs(np.cos(np.radians(ellipses[4].angle))) == pytest.approx(1.0)
    legend = ax.get_legend()
    assert [t.get_text() for t in legend.get_texts()] == ["0 (20%)", "1 (50%)", "2 (30%)"]
    for wrong in (("w", "q"), (0, 3), (-1, 1)):
        with pytest.raises(InvalidArgument, match="two of u, v, w"):
            plot_clusters(Cloud(sure), rows, columns=wrong)


def test_a_partition_is_sorted_by_group_and_counts_groups():
    labels = np.array([[1, 0, 1, 2, 0], [1, 0, 1, 0, 0], [1, 0, 2, 3, 0], [1, 0, 1, 2, 0]])
    posterior = PartitionPosterior(labels)
    matrix, number = posterior.plot()
    order = np.argsort(posterior.point(), kind="stable")
    together = (labels[:, :, None] == labels[:, None, :]).mean(axis=0)
    shown = np.asarray(matrix.images[0].get_array())
    assert order.tolist() != sorted(order.tolist())
    assert shown == pytest.approx(together[np.ix_(order, order)])
    assert matrix.images[0].get_clim() == (0.0, 1.0)
    cuts = np.flatnonzero(np.diff(np.asarray(posterior.point())[order])) + 0.5
    assert (
        sorted({line.get_ydata()[0] for line in matrix.lines if len(set(line.get_ydata())) == 1})
        == cuts.tolist()
    )
    bars = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in number.patches}
    assert bars == pytest.approx({2: 0.25, 3: 0.5, 4: 0.25})


class Topics:
    """Three topics over five words, none of them in order of anything."""

    vocabulary_ = ["sun", "cat", "tax", "rain", "law"]  # noqa: RUF012
    topic_word_ = np.array(
        [[0.1, 0.5, 0.1, 0.1, 0.2], [0.4, 0.05, 0.05, 0.45, 0.05], [0.1, 0.1, 0.55, 0.05, 0.2]]
    )
    topic_shares_ = np.array([0.25, 0.15, 0.6])
    word_frequency_ = np.array([0.15, 0.6, 0.3, 0.12, 0.18])
    parts = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.05, 0.15, 0.8]])

    def top_words(self, n, probabilities=False):
        order = np.argsort(-self.topic_word_, axis=1)[:, :n]
        pairs = [[(self.vocabulary_[w], self.topic_word_[k, w]) for w in own] for k, own in enumerate(order)]
        return pairs if probabilities else [[word for word, _ in own] for own in pairs]

    def transform(self, documents):
        return self.parts[: len(documents)]


def test_panels_of_topics_come_by_share_and_have_their_own_words():
    panels = plot_topics(Topics(), 2).ravel()
    assert [p.get_title() for p in panels[:3]] == ["topic 2  (60.0%)", "topic 0  (25.0%)", "topic 1  (15.0%)"]
    for panel, k in zip(panels, (2, 0, 1), strict=False):
        words = {t.get_text(): y for t, y in zip(panel.get_yticklabels(), panel.get_yticks(), strict=True)}
        assert list(words) == Topics().top_words(2)[k]
        dark, light = panel.patches[:2], panel.patches[2:]
        for word, y in words.items():
            place = Topics.vocabulary_.index(word)
            own = next(b for b in dark if b.get_y() + b.get_height() / 2 == pytest.approx(y))
            anywhere = next(b for b in light if b.get_y() + b.get_height() / 2 == pytest.approx(y))
            assert own.get_width() == pytest.approx(Topics.topic_word_[k, place])
            assert anywhere.get_width() == pytest.approx(
                min(Topics.word_frequency_[place], Topics.topic_word_[k, place])
            )
        assert max(words.values()) == words[Topics().top_words(1)[k][0]]
    only = plt.figure().add_subplot()
    plot_topics(Topics(), 2, topics=[1], ax=only)
    assert only.get_title() == "topic 1  (15.0%)"


def test_a_map_has_each_topic_number_and_words_at_its_own_disc():
    ax = plot_topic_map(Topics())
    places = ax.collections[0].get_offsets()
    sizes = ax.collections[0].get_sizes() - 20
    assert sizes / sizes[2] == pytest.approx(Topics.topic_shares_ / 0.6)
    texts = {t.get_text(): t.xy for t in ax.texts}
    for k in range(3):
        assert texts[str(k)] == pytest.approx(places[k])
        assert texts[" ".join(Topics().top_words(2)[k])] == pytest.approx(places[k])


def test_documents_are_stacked_by_topic_with_the_legend_of_the_same_colours():
    class Corpus(list):
        names = ("third", "first", "second")

        def __getitem__(self, chosen):
            return self

    ax = plot_documents(Topics(), Corpus(["a", "b", "c"]))
    rows = {t.get_text(): y for t, y in zip(ax.get_yticklabels(), ax.get_yticks(), strict=True)}
    assert rows["third"] > rows["first"] > rows["second"]
    order = [2, 0, 1]  # by their sums over the documents: 1.5, 0.85, 0.65
    legend = ax.get_legend()
    assert [int(t.get_text().partition(":")[0]) for t in legend.get_texts()] == order
    assert [t.get_text().partition(": ")[2] for t in legend.get_texts()] == [
        " ".join(Topics().top_words(2)[k]) for k in order
    ]
    for place, (container, k) in enumerate(zip(ax.containers, order, strict=True)):
        assert to_rgb(container.patches[0].get_facecolor()) == to_rgb(style.series(place))
        before = sum(Topics.parts[:, j] for j in order[:place])
        for d, name in enumerate(Corpus.names):
            bar = next(
                b for b in container.patches if b.get_y() + b.get_height() / 2 == pytest.approx(rows[name])
            )
            assert bar.get_width() == pytest.approx(Topics.parts[d, k])
            assert bar.get_x() == pytest.approx((before + np.zeros(3))[d])


def ends_of(ax):
    """Return the names at the right of lines, each with its colour and height."""
    return {t.get_text(): (to_rgb(t.get_color()), t.xy[1]) for t in ax.texts}


def test_topics_over_time_are_means_of_the_documents_of_each_time():
    times = ["2021", "2019", "2021"]
    ax = plot_topics_over_time(Topics(), ["a", "b", "c"], times)
    late = Topics.parts[[0, 2]].mean(axis=0)
    early = Topics.parts[1]
    named = ends_of(ax)
    for line in ax.lines:
        name = next(n for n, (colour, _) in named.items() if colour == to_rgb(line.get_color()))
        k = int(name.partition(":")[0])
        assert name == f"{k}: {' '.join(Topics().top_words(2)[k])}"
        assert line.get_ydata() == pytest.approx([early[k], late[k]])
        assert list(line.get_xdata()) == ["2019", "2021"]
    assert [int(n.partition(":")[0]) for n in named] == sorted(range(3), key=lambda k: late[k])


def test_words_over_time_have_their_own_curve_band_and_name():
    import pandas as pd

    laws = np.array(
        [
            [[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]],
            [[0.4, 0.3, 0.3], [0.5, 0.1, 0.4]],
            [[0.4, 0.2, 0.4], [0.7, 0.25, 0.05]],
        ]
    )

    class Moving:
        topics_over_time_, vocabulary_, times_ = laws, ["ape", "bee", "cow"], np.array([1990, 2000, 2010])

        def word_path(self, word):
            return pd.DataFrame(laws[:, :, self.vocabulary_.index(word)])

        def interval(self, word):
            w = self.vocabulary_.index(word)
            return laws[:, :, w] * 0.8, laws[:, :, w] * 1.3

    ax = plot_words_over_time(Moving(), 1, 2)
    named = ends_of(ax)
    assert list(named) == ["cow", "ape"]  # by where they end; those that change most
    for line, band in zip(ax.lines, ax.collections, strict=True):
        word = next(n for n, (colour, _) in named.items() if colour == to_rgb(line.get_color()))
        own = laws[:, 1, Moving.vocabulary_.index(word)]
        assert line.get_ydata() == pytest.approx(own)
        assert line.get_xdata().tolist() == [1990, 2000, 2010]
        corners = band.get_paths()[0].vertices
        for t, x in enumerate((1990, 2000, 2010)):
            ends = corners[corners[:, 0] == x, 1]
            assert (ends.min(), ends.max()) == pytest.approx((0.8 * own[t], 1.3 * own[t]))
        assert to_rgb(band.get_facecolor()[0]) == to_rgb(line.get_color())
    chosen = plot_words_over_time(Moving(), 0, ["cow", "bee"])
    assert chosen.lines[0].get_ydata() == pytest.approx(laws[:, 0, 2])


def test_a_tree_of_topics_has_words_documents_and_branches_at_their_nodes():
    words = [["root"], ["left"], ["right"], ["low"], ["high"], ["far"]]
    tree = SimpleNamespace(
        parents_=np.array([-1, 0, 0, 2, 1, 2]), levels_=np.array([0, 1, 1, 2, 2, 2]), depth=3,
        documents_=np.array([10, 3, 7, 2, 3, 5]), top_words=lambda n: words,
    )  # fmt: skip
    ax = plot_topic_tree(tree, 1)
    at = {
        t.get_text().partition("\n")[2]: (t.get_text().partition(" ")[0], t.get_position()) for t in ax.texts
    }
    assert {w: int(n) for w, (n, _) in at.items()} == {
        "root": 10,
        "left": 3,
        "right": 7,
        "low": 2,
        "high": 3,
        "far": 5,
    }
    branches = {
        (line.get_ydata()[0], line.get_ydata()[1], *line.get_xdata()): line.get_linewidth()
        for line in ax.lines
    }
    for node, parent in ((3, 2), (5, 2), (4, 1), (2, 0)):
        (x, y), (_, above) = at[words[node][0]][1], at[words[parent][0]][1]
        assert branches[above, y, x - 1.0, x] == pytest.approx(0.8 + 0.7 * tree.documents_[node])
    assert at["right"][1][1] == pytest.approx((at["low"][1][1] + at["far"][1][1]) / 2)


def test_features_are_laid_beside_each_other_in_their_shape():
    values = np.arange(12.0).reshape(2, 6) - 4.0
    model = SimpleNamespace(components_=values, n_components_=2)
    ax = plot_latent_features(model, shape=(2, 3))
    shown = np.asarray(ax.images[0].get_array().filled(np.nan))
    assert shown[:, :3].tolist() == values[0].reshape(2, 3).tolist()
    assert shown[:, 4:].tolist() == values[1].reshape(2, 3).tolist()
    assert ax.images[0].get_clim() == (-7.0, 7.0)
    lines = plot_latent_features(model).lines
    assert [line.get_ydata().tolist() for line in lines] == values.tolist()


def test_draws_of_sticks_are_stacked_row_by_row():
    law = mk.processes.Dirichlet([2.0, 0.7, 4.0])
    ax = law.plot(3, seed=5)
    rows = law.sample(3, np.random.default_rng(5))
    for k, container in enumerate(ax.containers[:3]):
        assert [b.get_width() for b in container.patches] == pytest.approx(rows[:, k])
        assert [b.get_x() for b in container.patches] == pytest.approx(rows[:, :k].sum(axis=1))
    franchise = mk.processes.ChineseRestaurantFranchise()
    ax = franchise.plot(30, seed=5)
    labels = franchise.sample([30] * 6, np.random.default_rng(5)).labels()
    for k, container in enumerate(ax.containers[:-1]):
        assert [b.get_width() for b in container.patches] == pytest.approx([np.mean(g == k) for g in labels])

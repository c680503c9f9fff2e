"""The preset of energy-based models: its density integrates to one, its draws have that density, and units do not matter."""

import pickle

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.exceptions import NotFittedError

import markovia as mk
from markovia.errors import InvalidArgument, MarkoviaError

GRID = np.stack(np.meshgrid(np.linspace(-9, 9, 181), np.linspace(-9, 9, 181)), axis=-1).reshape(-1, 2)
CELL = 0.1**2


def energy_distance(a, b):
    return 2 * cdist(a, b).mean() - cdist(a, a).mean() - cdist(b, b).mean()


def ring(n, seed):
    rng = np.random.default_rng(seed)
    angle, radius = rng.uniform(0, 2 * np.pi, n), rng.normal(2.0, 0.15, n)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


@pytest.fixture(scope="module")
def trained():
    return mk.deep.EnergyModel(
        24, 2, objective="nce", epochs=150, batch=100, learning_rate=0.01, random_state=0
    ).fit(ring(600, 0))


@pytest.mark.slow
def test_density_integrates_to_one_within_its_error(trained):
    exact = np.log(np.exp(-trained.energy(GRID)).sum() * CELL)
    assert 0 < trained.log_partition_error_ < 0.1
    assert abs(trained.log_partition_ - exact) < 4 * trained.log_partition_error_
    assert trained.network_.log_evidence({"x": GRID[:3]}, by="row") == pytest.approx(
        trained.score_samples(GRID[:3])
    )
    found = trained.network_.fit_.details["extra"]["log normaliser"].value
    assert float(found) == pytest.approx(exact, abs=0.2)  # what telling from noise learned beside it


@pytest.mark.slow
def test_samples_and_conditionals_of_a_ring(trained):
    new = ring(1000, 1)
    drawn = trained.sample(1000, seed=0)
    floor = energy_distance(ring(1000, 2), new)
    assert drawn.shape == (1000, 2)
    assert np.array_equal(drawn, trained.sample(1000, seed=0))
    assert energy_distance(drawn, new) < 0.02
    assert floor < 0.005
    # one coordinate given the other, far from where both branches are: by the density itself, and by the network's NUTS
    net = trained.network()
    post = net.query("x", given={"x": np.array([[1.9, np.nan]])}, missing="impute", engine="nuts")
    line = np.linspace(-4, 4, 801)
    weight = np.exp(-trained.energy(np.stack([np.full(801, 1.9), line], axis=1)))
    weight /= weight.sum()
    mean = weight @ line
    assert post.info.engine == "nuts"
    assert post.mean("x")[0] == pytest.approx([1.9, mean], abs=0.1)
    assert post.sd("x")[0, 1] == pytest.approx(np.sqrt(weight @ (line - mean) ** 2), rel=0.1)


@pytest.mark.slow
def test_units_and_order_of_rows_do_not_matter():
    rows = ring(100, 0)
    settings = {"epochs": 5, "batch": None, "random_state": 0}
    plain = mk.deep.EnergyModel(8, 1, objective="score-matching", **settings).fit(rows)
    for unit in (2.0**-30, 2.0**30):
        other = mk.deep.EnergyModel(8, 1, objective="score-matching", **settings).fit(unit * rows)
        # to the last bit in training: 2 log(unit) is the Jacobian
        assert other.energy(unit * rows) - 2 * np.log(unit) == pytest.approx(plain.energy(rows), abs=1e-9)
    for unit in (1e-9, 1e9):
        other = mk.deep.EnergyModel(8, 1, objective="score-matching", **settings).fit(unit * rows)
        assert other.energy(unit * rows) - 2 * np.log(unit) == pytest.approx(plain.energy(rows), abs=1e-3)
    turned = mk.deep.EnergyModel(8, 1, objective="score-matching", **settings).fit(rows[::-1])
    assert turned.energy(rows) == pytest.approx(plain.energy(rows), abs=1e-3)


def test_edges():
    model = mk.deep.EnergyModel(4, 1, objective="score-matching", epochs=2, random_state=0)
    for ask in (lambda: model.sample(2), lambda: model.energy([[0.0, 1.0]]), lambda: model.log_partition_):
        with pytest.raises((NotFittedError, MarkoviaError)):
            ask()
    flat = np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]])  # a constant column
    assert np.isfinite(clone(model).fit(flat).energy(flat)).all()
    assert np.isfinite(clone(model).fit(flat[:1]).energy(flat)).all()  # one row
    with pytest.raises(InvalidArgument, match="whole rows"):
        clone(model).fit(np.array([[np.nan, 1.0], [0.0, 1.0]]))
    with pytest.raises(InvalidArgument, match="method"):
        clone(model).set_params(objective="no such").fit(flat)
    with pytest.raises(InvalidArgument, match="log Z unknown"):
        clone(model).set_params(objective="elbo").fit(flat)


@pytest.mark.slow
def test_going_on_and_keeping(tmp_path):
    rows = ring(60, 0)
    model = mk.deep.EnergyModel(4, 1, batch=None, random_state=0)  # by chains
    for _ in range(3):
        model.partial_fit(rows)
    before = model.energy(rows)
    model.partial_fit(rows)
    assert np.abs(model.energy(rows) - before).max() > 0
    other = pickle.loads(pickle.dumps(model))
    model.network().save(tmp_path / "net.json")
    net = mk.load(tmp_path / "net.json")
    assert other.energy(rows) == pytest.approx(model.energy(rows), abs=1e-12)
    assert net.potentials == ["minus the energy"]
    a, b = (n.map({"row": 1})["x"] for n in (net, model.network()))
    assert a == pytest.approx(b, abs=1e-9)


@pytest.mark.slow
def test_maximum_likelihood_of_two_moons():
    rows, new = (make_moons(1000, noise=0.1, random_state=seed)[0] for seed in (0, 1))
    how = mk.Training(epochs=150, batch=100, learning_rate=5e-3, decay=0.1, ema=0.99, seed=0)
    model = mk.deep.EnergyModel(64, 2, training=how).fit(rows)
    assert energy_distance(model.sample(1000, seed=1), new) < 0.01
    assert model.score_samples(new).mean() > -1.3

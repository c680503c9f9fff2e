"""The phases of the gradient of undirected models whose rows miss cells, against sums over all configurations."""

from itertools import product

import numpy as np
import pytest

from markovia.data.tables.row_sources import CodedTable
from markovia.errors import TooLarge
from markovia.factors.potentials.log_linear import Feature
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.kernels import plain_code
from markovia.learning.fields import positive_phase as phases
from markovia.learning.fields.exact_expectations import exact_expectations
from markovia.learning.fields.field_layout import layout_of_features


class World:
    """Five variables with random features on one, two and three of them, one never seen, and rows with holes."""

    def __init__(self, seed, n_rows=9, holes=0.3):
        rng = np.random.default_rng(seed)
        self.variables = [Variable(n, k) for n, k in zip("abcde", (2, 3, 2, 2, 3), strict=True)]
        scopes = [(0,), (1,), (0, 3), (1, 3), (2, 3), (1, 2, 4), (3, 4)]
        self.features = [
            Feature([self.variables[i] for i in s], rng.normal(size=[len(self.variables[i]) for i in s]))
            for s in scopes
        ]
        self.layout = layout_of_features(self.features, self.variables)
        self.codes = np.array([rng.integers(len(v), size=n_rows) for v in self.variables])
        self.codes[rng.random(self.codes.shape) < holes] = -1
        self.codes[3] = -1
        self.row_weights = rng.uniform(0.1, 2.0, n_rows)
        self.weights = rng.normal(size=len(scopes))
        self.configurations = list(product(*(range(len(v)) for v in self.variables)))

    @property
    def table(self):
        return CodedTable(self.variables, self.codes.astype(np.int8), self.row_weights)

    def log_weights(self, weights):
        place = {v.name: i for i, v in enumerate(self.variables)}
        return np.array(
            [
                sum(
                    w * t[tuple(x[place[v.name]] for v in s)]
                    for w, f in zip(weights, self.features, strict=True)
                    for s, t in f.instances
                )
                for x in self.configurations
            ]
        )

    def loss(self, weights):
        """The mean negative log likelihood of what the rows show, by enumeration."""
        logs = self.log_weights(weights)
        total = 0.0
        for row, w in zip(self.codes.T, self.row_weights, strict=True):
            agrees = [all(c in (-1, s) for c, s in zip(row, x, strict=True)) for x in self.configurations]
            total += w * (np.logaddexp.reduce(logs[agrees]) - np.logaddexp.reduce(logs))
        return -total / self.row_weights.sum()


def slope(function, at, step=1e-5):
    return np.array(
        [(function(at + step * e) - function(at - step * e)) / (2 * step) for e in np.eye(len(at))]
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_is_the_difference_quotient_of_the_likelihood_of_what_is_seen(seed):
    world = World(seed)
    phase = phases.ExactPositivePhase(world.layout, world.table)
    loss = phases.incomplete_likelihood(world.layout, phase, exact_expectations(world.layout))
    value, gradient = loss(world.weights)
    assert value == pytest.approx(world.loss(world.weights), abs=1e-12)
    assert gradient == pytest.approx(slope(world.loss, world.weights), abs=1e-8)


def test_mean_field_bounds_the_likelihood_from_below_and_its_gradient_is_that_of_the_bound():
    world = World(4)
    phase = phases.MeanFieldPositivePhase(world.layout, world.table)
    loss = phases.incomplete_likelihood(world.layout, phase, exact_expectations(world.layout))
    value, gradient = loss(world.weights)
    truth = world.loss(world.weights)
    assert truth + 1e-6 < value < truth + 0.5
    assert gradient == pytest.approx(slope(lambda w: loss(w)[0], world.weights), abs=1e-7)


def test_mean_field_never_falls_when_it_goes_on_from_its_own_beliefs(monkeypatch):
    world = World(5)
    monkeypatch.setattr(phases, "SWEEPS", 1)
    phase = phases.MeanFieldPositivePhase(world.layout, world.table)
    log_tables, beliefs, seen = world.layout.log_tables(3 * world.weights), None, []
    for _ in range(8):
        found = phase(log_tables, beliefs)
        beliefs = found.beliefs
        seen.append(found.log_mass)
    assert np.all(np.diff(seen) >= -1e-12)
    assert seen[-1] > seen[0] + 1e-4


def test_mean_field_is_exact_where_the_missing_cells_of_a_row_do_not_touch():
    world = World(6, holes=0.0)
    exact = phases.ExactPositivePhase(world.layout, world.table)
    product_form = phases.MeanFieldPositivePhase(world.layout, world.table)
    log_tables = world.layout.log_tables(world.weights)
    assert product_form(log_tables).log_mass == pytest.approx(exact(log_tables).log_mass, abs=1e-12)
    assert product_form(log_tables).cells == pytest.approx(exact(log_tables).cells, abs=1e-12)


@pytest.mark.parametrize("kind", [phases.ExactPositivePhase, phases.MeanFieldPositivePhase])
def test_weights_in_place_of_the_rows_own_are_those_of_other_rows(kind):
    world = World(7)
    log_tables = world.layout.log_tables(world.weights)
    others = np.where(np.arange(9) % 3 == 0, world.row_weights, 0.0)
    part = CodedTable(world.variables, world.codes[:, ::3].astype(np.int8), world.row_weights[::3])
    some, few = (
        kind(world.layout, world.table)(log_tables, None, others),
        kind(world.layout, part)(log_tables),
    )
    assert some.log_mass == pytest.approx(few.log_mass, abs=1e-12)
    assert some.cells == pytest.approx(few.cells, abs=1e-12)


@pytest.mark.parametrize("kind", [phases.ExactPositivePhase, phases.MeanFieldPositivePhase])
def test_a_row_that_the_model_rules_out_has_no_mass(kind):
    a, b = Variable("a", 2), Variable("b", 2)
    never = Factor.of((a, b), np.array([[1.0, 1.0], [0.0, 0.0]]))
    layout = layout_of_features([Feature(a, [0.0, 1.0])], [a, b], [never])
    phase = kind(layout, CodedTable([a], np.array([[1]], dtype=np.int8)))
    assert phase(layout.log_tables(np.zeros(1))).log_mass == -np.inf


def test_cells_that_hang_together_too_widely_are_refused_by_exact_sums_and_bounded_by_mean_field():
    spins = [Variable(f"s{i}", 2) for i in range(24)]
    pairs = [Feature([a, b], np.eye(2)) for i, a in enumerate(spins) for b in spins[:i]]
    layout = layout_of_features([Feature.tied(pairs, "same")], spins)
    table = CodedTable(spins[:1], np.array([[0, 1]], dtype=np.int8))
    with pytest.raises(TooLarge, match="use method='mean-field'"):
        phases.ExactPositivePhase(layout, table)
    assert isinstance(phases.positive_phase(layout, table), phases.MeanFieldPositivePhase)
    assert phases.positive_phase(layout, table)(np.zeros(layout.n_cells)).log_mass == pytest.approx(
        23 * np.log(2)
    )


def test_plain_and_compiled_mean_field_are_the_same(monkeypatch):
    world, found = World(8), []
    for compiled in (False, True):
        monkeypatch.setattr(plain_code, "worth_loading", lambda *_, compiled=compiled: compiled)
        found.append(
            phases.MeanFieldPositivePhase(world.layout, world.table)(world.layout.log_tables(world.weights))
        )
    plain, fast = found
    assert fast.log_mass == pytest.approx(plain.log_mass, rel=1e-12)
    assert fast.cells == pytest.approx(plain.cells, abs=1e-12)
    assert fast.beliefs == pytest.approx(plain.beliefs, abs=1e-12)

"""Fitting undirected models with hidden variables and missing cells: optima, bounds, limits, files."""

import itertools
import warnings

import numpy as np
import pytest

import markovia as mk
from markovia.errors import ConvergenceWarning, InvalidArgument, UnknownVariable
from markovia.optimise import ascent

SEEN = [f"v{i}" for i in range(4)]
N = 80


def latent_class(tables=None):
    """A hidden variable with two states that four others hang on."""
    values = [np.ones((2, 2))] * 4 if tables is None else tables
    return mk.MarkovNetwork(
        {"h": 2, **dict.fromkeys(SEEN, 2)},
        [mk.Factor(["h", n], t) for n, t in zip(SEEN, values, strict=True)],
    )


def boltzmann_features(n_seen=4, n_hidden=2):
    """The features of a restricted Boltzmann machine of 0/1 units: one for each unit and each pair across layers."""
    units = [mk.Variable(f"v{i}", 2) for i in range(n_seen)] + [
        mk.Variable(f"h{j}", 2) for j in range(n_hidden)
    ]
    pairs = itertools.product(units[:n_seen], units[n_seen:])
    return [mk.Feature(u, [0, 1]) for u in units] + [mk.Feature(list(p), [[0, 0], [0, 1]]) for p in pairs]


@pytest.fixture(scope="module")
def rows():
    truth = latent_class([[[9, 1], [1, 6]], [[8, 1], [1, 5]], [[6, 1], [1, 7]], [[5, 1], [1, 6]]])
    drawn = truth.sample(N, seed=1)
    return {n: drawn[n].tolist() for n in SEEN}


@pytest.fixture(scope="module")
def gappy(rows):
    rng = np.random.default_rng(2)
    return {n: [None if rng.random() < 0.2 else x for x in column] for n, column in rows.items()}


def seen_likelihood(model, rows):
    """The log likelihood of what rows show, by enumeration of the joint distribution."""
    joint = model.query(model.variables).values
    names = list(model.variables)
    total = 0.0
    for row in zip(*(rows[n] for n in SEEN), strict=True):
        shown = dict(zip(SEEN, row, strict=True))
        at = tuple(slice(None) if shown.get(n) is None else shown[n] for n in names)
        total += np.log(joint[at].sum())
    return total


def test_exact_and_em_end_at_the_same_likelihood_which_is_that_of_the_model(gappy):
    found = {
        method: latent_class().fit(gappy, latent="h", missing="em", method=method, l2=1.0, tolerance=1e-5)
        for method in ("exact", "em")
    }
    for model in found.values():
        assert model.fit_.converged
        assert model.fit_.log_likelihood == pytest.approx(seen_likelihood(model, gappy), abs=1e-8)
    assert found["em"].fit_.log_likelihood == pytest.approx(found["exact"].fit_.log_likelihood, abs=1e-4)
    steps = np.array(found["em"].fit_.history)  # mean losses
    assert np.all(np.diff(steps) <= 1e-12)
    gaps = sum(x is None for column in gappy.values() for x in column)
    assert found["em"].fit_.details["missing_cells"] == gaps > 0


def test_a_hidden_class_is_the_mixture_that_a_directed_network_learns(rows):
    directed = mk.BayesianNetwork(
        "; ".join(f"h->{n}" for n in SEEN), states={"h": 2, **dict.fromkeys(SEEN, 2)}
    )
    best = directed.fit(rows, latent=["h"], missing=mk.EM(restarts=2, seed=0, tolerance=1e-8))
    mn = latent_class().fit(rows, latent="h", restarts=2, tolerance=1e-7)
    assert mn.fit_.log_likelihood == pytest.approx(best.fit_.log_likelihood, abs=2e-3)
    assert mn.fit_.details["hidden"] == ["h"]


def test_mean_field_reports_a_bound_below_the_likelihood_that_never_falls(gappy):
    mn = latent_class().fit(gappy, latent="h", missing="em", method="mean-field", l2=0.3, tolerance=1e-4)
    bound = mn.fit_.details["lower_bound"]
    assert bound < mn.fit_.log_likelihood - 0.1
    assert mn.fit_.log_likelihood == pytest.approx(seen_likelihood(mn, gappy), abs=1e-8)
    assert np.all(np.diff(mn.fit_.history) <= 1e-12)


def test_a_restricted_boltzmann_machine_has_the_gradient_of_its_own_likelihood(rows):
    features = boltzmann_features()
    rng = np.random.default_rng(3)
    start = rng.normal(size=len(features))
    with pytest.warns(ConvergenceWarning):
        found = mk.fit_log_linear(features, rows, latent=["h0", "h1"], start=start, max_iterations=2, l2=0.1)
    v = np.array(list(itertools.product([0, 1], repeat=4)))
    data = np.array([rows[n] for n in SEEN]).T

    def free_energy(w, v):  # the sum over hidden units, one by one
        visible, hidden, across = w[:4], w[4:6], w[6:].reshape(4, 2)
        return v @ visible + np.logaddexp(0.0, hidden + v @ across).sum(axis=1)

    def loss(w):
        return np.logaddexp.reduce(free_energy(w, v)) - free_energy(w, data).mean()

    w = found.weights
    assert -found.log_likelihood / N == pytest.approx(loss(w), abs=1e-12)
    slope = [(loss(w + 1e-5 * e) - loss(w - 1e-5 * e)) / 2e-5 for e in np.eye(len(w))]
    assert found.gradient == pytest.approx(slope, abs=1e-8)


@pytest.mark.slow
def test_persistent_chains_come_near_the_exact_fit(rows):
    exact = latent_class().fit(rows, latent="h", l2=1.0)
    chains = latent_class().fit(rows, latent="h", l2=1.0, method="pcd", max_iterations=500, seed=0)
    assert chains.fit_.log_likelihood == pytest.approx(exact.fit_.log_likelihood, abs=1.0)
    nothing_hidden = mk.MarkovNetwork(dict.fromkeys(SEEN, 2), [mk.Factor([n], [1, 1]) for n in SEEN]).fit(
        rows
    )
    assert chains.fit_.log_likelihood > nothing_hidden.fit_.log_likelihood + 5


def test_rows_in_another_order_and_features_in_another_unit_change_no_probability(gappy):
    def fitted(rows, unit):
        features = [mk.Feature([mk.Variable("h", 2), mk.Variable(n, 2)], unit * np.array(t))
                    for n in SEEN for t in ([[1, 0], [0, 0]], [[0, 0], [0, 1]])]  # fmt: skip
        return mk.fit_log_linear(features, rows, latent="h", missing="em", seed=1).network

    order = np.random.default_rng(0).permutation(N)
    turned = {n: [c[i] for i in order] for n, c in gappy.items()}
    want = fitted(gappy, 1.0).query(SEEN).values
    assert fitted(turned, 1.0).query(SEEN).values == pytest.approx(want, abs=1e-5)
    assert fitted(gappy, 1e9).query(SEEN).values == pytest.approx(want, abs=1e-5)


@pytest.mark.slow
def test_weights_of_rows_are_rows_written_several_times(gappy):
    times = [1 + i % 3 for i in range(N)]
    again = {n: [x for x, k in zip(c, times, strict=True) for _ in range(k)] for n, c in gappy.items()}
    for method in ("exact", "mean-field"):
        one = latent_class().fit(
            gappy, weights=times, latent="h", missing="em", method=method, l2=1.0, tolerance=1e-4
        )
        all_of_them = latent_class().fit(
            again, latent="h", missing="em", method=method, l2=1.0, tolerance=1e-4
        )
        assert one.fit_.log_likelihood == pytest.approx(all_of_them.fit_.log_likelihood, abs=1e-3)


def test_entries_that_no_row_can_show_become_zero():
    rows = {n: [0, 1, 0, 1] for n in SEEN} | {"v0": [0, 0, 0, 0]}
    mn = latent_class().fit(rows, latent="h")
    assert mn.query("v0")[1] == 0.0
    assert mn.fit_.log_likelihood == pytest.approx(-4 * np.log(2), abs=1e-4)


def test_chains_keep_to_what_the_factors_rule_out(rows):
    never = mk.Factor(["h", "g"], [[1, 0], [0, 1]])  # two hidden variables that always agree
    pairs = [mk.Factor([("h", "g")[i % 2], n], np.ones((2, 2))) for i, n in enumerate(SEEN)]
    mn = mk.MarkovNetwork({"h": 2, "g": 2, **dict.fromkeys(SEEN, 2)}, [never, *pairs])
    mn.fit(rows, latent=["h", "g"], method="pcd", l2=1.0, max_iterations=30, tolerance=1.0)
    assert np.isfinite(mn.fit_.log_likelihood)
    assert mn.query(["h", "g"]).values[0, 1] == 0.0
    with pytest.raises(InvalidArgument, match="no product of distributions avoids the zeros"):
        mn.fit(rows, latent=["h", "g"], method="mean-field")


@pytest.mark.parametrize("method", ["exact", "em", "pcd"])
def test_a_fit_that_was_cut_goes_on_from_its_file_to_the_same_weights(method, gappy, tmp_path, monkeypatch):
    monkeypatch.setattr(ascent, "SLICE", 4)
    settings = {"latent": "h", "missing": "em", "method": method, "l2": 0.5, "seed": 3}

    def weights(file=None, steps=20, **limit):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = latent_class().fit(gappy, max_iterations=steps, checkpoint=file, **settings, **limit)
        return model.fit_.details["fit"].weights, model.fit_.iterations

    file = tmp_path / "fit.npz"
    # the steps of chains get shorter with the share of all that are made, so those are cut by the clock
    before, cut = weights(file, time_limit=1e-9) if method == "pcd" else weights(file, steps=8)
    after, steps = weights(file)
    whole, all_steps = weights()
    assert cut < steps == all_steps
    assert not np.allclose(before, after, atol=1e-6)
    assert after == pytest.approx(whole, abs=1e-12)
    with pytest.raises(InvalidArgument, match="belongs to another run"):
        latent_class().fit(gappy, **{**settings, "l2": 0.25}, checkpoint=file)


def test_a_time_limit_keeps_what_was_learned(gappy):
    mn = latent_class().fit(gappy, latent="h", missing="em", method="em", time_limit=1e-9)
    assert mn.fit_.details["reason"] == "time limit"
    assert mn.fit_.iterations == 1
    assert not mn.fit_.converged
    assert np.isfinite(mn.fit_.log_likelihood)


def test_complete_rows_with_a_time_limit_are_fitted_as_without(rows):
    chain = [mk.Factor([a, b], np.ones((2, 2))) for a, b in itertools.pairwise(SEEN)]
    want = mk.MarkovNetwork(dict.fromkeys(SEEN, 2), chain).fit(rows)
    found = mk.MarkovNetwork(dict.fromkeys(SEEN, 2), chain).fit(rows, method="exact", time_limit=60.0)
    assert found.fit_.log_likelihood == pytest.approx(want.fit_.log_likelihood, abs=1e-6)


def test_errors_name_the_cure(rows, gappy):
    with pytest.raises(UnknownVariable):
        latent_class().fit(rows)
    with pytest.raises(InvalidArgument, match="missing='em' sums them out"):
        latent_class().fit(gappy, latent="h")
    with pytest.raises(InvalidArgument, match="said to be latent, but the data have a column"):
        latent_class().fit(rows, latent=["h", "v0"])
    with pytest.raises(UnknownVariable, match="hh"):
        latent_class().fit(rows, latent="hh")
    with pytest.raises(InvalidArgument, match="go with method= 'auto', 'exact', 'em', 'pcd', 'mean-field'"):
        latent_class().fit(rows, latent="h", method="ipf")
    with pytest.raises(InvalidArgument, match="weight together is fixed at zero"):
        latent_class([[[1, 0], [1, 0]]] + [np.ones((2, 2))] * 3).fit(rows, latent="h")
    with pytest.raises(InvalidArgument, match="leave restarts= at 1"):
        latent_class().fit(rows, latent="h", restarts=2, checkpoint="fit.npz")

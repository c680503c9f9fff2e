"""The criteria that choose penalties, against formulas written out: extended BIC and rows left out."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import Lasso, LogisticRegression

import markovia as mk
from markovia.structure.undirected.sparse_precision import sparse_precision


def table(rows):
    return {f"x{i}": rows[:, i] for i in range(rows.shape[1])}


def chain_rows(p, n, seed):
    rng = np.random.default_rng(seed)
    q = np.eye(p) + 0.35 * (np.eye(p, k=1) + np.eye(p, k=-1))
    return rng.multivariate_normal(np.zeros(p), np.linalg.inv(q), n)


def covariance_of_graph(cov, edges):
    """The maximum-likelihood covariance of a Gaussian graph, by regressions over each column's neighbours."""
    w = cov.copy()
    for _ in range(300):
        for j in range(len(cov)):
            near = np.flatnonzero(edges[j])
            rest = np.flatnonzero(np.arange(len(cov)) != j)
            beta = np.zeros(len(cov))
            if len(near):
                beta[near] = np.linalg.solve(w[np.ix_(near, near)], cov[near, j])
            w[rest, j] = w[j, rest] = w[np.ix_(rest, rest)] @ beta[rest]
    return w


# extended BIC


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.3])
def test_extended_bic_of_the_graphical_lasso_is_its_formula(gamma):
    rows = chain_rows(5, 60, 0)
    n, p = rows.shape
    cov = np.corrcoef(rows.T)
    found = mk.learn_structure(table(rows), method="graphical-lasso", choose="ebic", gamma=gamma, n_rhos=10)
    choice = found.details.choice
    wanted = []
    for rho in choice.penalties:
        edges = (sparse_precision(cov, rho).precision != 0) & ~np.eye(p, dtype=bool)
        k = edges.sum() // 2
        minus_two_log_likelihood = n * (np.linalg.slogdet(covariance_of_graph(cov, edges))[1] + p)
        wanted.append(minus_two_log_likelihood + k * np.log(n) + 4 * gamma * k * np.log(p))
    assert len(wanted) >= 7
    np.testing.assert_allclose(choice.criterion, wanted, atol=1e-3)
    assert found.details.rho == choice.penalties[np.argmin(wanted)]


def residual(rows, target, support):
    """The mean squared residual of least squares with an intercept."""
    design = np.column_stack([np.ones(len(rows)), rows[:, support]])
    beta = np.linalg.lstsq(design, rows[:, target], rcond=None)[0]
    return np.mean((rows[:, target] - design @ beta) ** 2)


def gaussian_with_a_weak_neighbour(p, n, seed):
    """The first column has a strong neighbour, a weak one, and others that are noise."""
    rng = np.random.default_rng(seed)
    rest = rng.normal(size=(n, p - 1))
    rest -= rest.mean(axis=0)
    rest = np.linalg.qr(rest)[0] * np.sqrt(n)  # exactly uncorrelated, so that neighbours come in by strength
    noise = rng.normal(size=n)
    noise -= noise.mean() + rest @ (rest.T @ noise) / n
    first = rest[:, 0] + 0.45 * rest[:, 1] + 1e-3 * rest[:, 2:].sum(axis=1) + noise / noise.std()
    return np.column_stack([first, rest])


@pytest.mark.parametrize(("p", "n"), [(4, 60), (7, 90)])
def test_extended_bic_of_neighbourhoods_turns_where_two_supports_cost_the_same(p, n):
    """n log(residual) + neighbours (log n + 2 gamma log(p - 1)): the weak one goes at one gamma, and BIC is gamma 0."""
    rows = gaussian_with_a_weak_neighbour(p, n, 1)
    gain = n * np.log(residual(rows, 0, [1]) / residual(rows, 0, [1, 2]))
    equal = (gain - np.log(n)) / (2 * np.log(p - 1))
    assert equal > 0.1
    for gamma, expected in ((equal - 1e-4, [1, 2]), (equal + 1e-4, [1])):
        found = mk.learn_structure(table(rows), method="neighbourhood", choose="ebic", gamma=gamma)
        assert np.flatnonzero(found.details.coefficients[0]).tolist() == expected
    plain = mk.learn_structure(table(rows), method="neighbourhood", choose="bic", gamma=equal + 1)
    assert np.flatnonzero(plain.details.coefficients[0]).tolist() == [1, 2]


def test_bic_of_neighbourhoods_turns_where_a_neighbour_is_worth_the_logarithm_of_rows():
    """Without the term of the columns: weights of rows scale the evidence until it pays for log n."""
    rows = gaussian_with_a_weak_neighbour(4, 60, 1)
    one, two = residual(rows, 0, [1]), residual(rows, 0, [1, 2])
    totals = np.linspace(5, 60, 200_000)
    pays = totals * np.log(one / two) - np.log(totals)
    turn = totals[np.flatnonzero(np.diff(np.sign(pays)) > 0)[-1]]
    for total, expected in ((turn - 0.01, [1]), (turn + 0.01, [1, 2])):
        weights = np.full(60, total / 60)
        found = mk.learn_structure(table(rows), method="neighbourhood", choose="bic", weights=weights)
        assert np.flatnonzero(found.details.coefficients[0]).tolist() == expected


def log_loss(columns, target, support):
    """Minus the log likelihood of a logistic regression with an intercept."""
    design = columns[:, support].astype(float)
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(design, columns[:, target])
    return -model.predict_log_proba(design)[np.arange(len(columns)), columns[:, target]].sum()


@pytest.mark.parametrize("p", [3, 5])
def test_extended_bic_of_spins_turns_where_two_supports_cost_the_same(p):
    """-2 log likelihood + neighbours (log n + 2 gamma log(p - 1)), for each spin."""
    rng = np.random.default_rng(3)
    n = 400
    spins = rng.integers(0, 2, (n, p))
    odds = 2.2 * spins[:, 1] + 0.9 * spins[:, 2] - 1.5
    spins[:, 0] = rng.random(n) < 1 / (1 + np.exp(-odds))
    gain = 2 * (log_loss(spins, 0, [1]) - log_loss(spins, 0, [1, 2]))
    equal = (gain - np.log(n)) / (2 * np.log(p - 1))
    assert equal > 0.1
    for gamma, expected in ((equal - 2e-4, [1, 2]), (equal + 2e-4, [1])):
        found = mk.learn_structure(table(spins), method="ising", choose="ebic", gamma=gamma)
        assert np.flatnonzero(found.details.coefficients[0]).tolist() == expected


def pseudo_log_likelihood(columns, cards, edges):
    """The largest pseudo-log-likelihood of a pairwise model over these edges, by a general minimiser."""
    n, p = columns.shape
    shapes = [(c,) for c in cards] + [(cards[i], cards[j]) for i, j in edges]
    ends = np.cumsum([0, *(int(np.prod(s)) for s in shapes)])

    def loss(theta):
        parts = [theta[a:b].reshape(s) for a, b, s in zip(ends, ends[1:], shapes, strict=False)]
        slopes = [np.zeros(s) for s in shapes]
        value = 0.0
        for v in range(p):
            energy = np.tile(parts[v], (n, 1))
            for (i, j), own in zip(edges, parts[p:], strict=True):
                if v == i:
                    energy = energy + own[:, columns[:, j]].T
                elif v == j:
                    energy = energy + own[columns[:, i]]
            top = energy.max(axis=1, keepdims=True)
            norm = top[:, 0] + np.log(np.exp(energy - top).sum(axis=1))
            value -= (energy[np.arange(n), columns[:, v]] - norm).sum()
            gap = np.exp(energy - norm[:, None])
            gap[np.arange(n), columns[:, v]] -= 1
            slopes[v] += gap.sum(axis=0)
            for (i, j), slope in zip(edges, slopes[p:], strict=True):
                if v == i:
                    np.add.at(slope.T, columns[:, j], gap)
                elif v == j:
                    np.add.at(slope, columns[:, i], gap)
        return value, np.concatenate([s.ravel() for s in slopes])

    found = minimize(
        loss, np.zeros(ends[-1]), jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-14}
    )
    return -found.fun


@pytest.mark.parametrize("penalty", ["group", "l1"])
@pytest.mark.parametrize("gamma", [0.0, 0.7])
def test_extended_bic_of_pseudo_likelihood_is_its_formula(penalty, gamma):
    rng = np.random.default_rng(4)
    n, cards = 150, (2, 3, 2)
    a = rng.integers(0, 2, n)
    b = np.where(rng.random(n) < 0.5, a, rng.integers(0, 3, n))
    c = np.where(rng.random(n) < 0.2, b > 0, rng.integers(0, 2, n)).astype(int)
    columns = np.column_stack([a, b, c])
    settings = {"method": "l1-pseudo-likelihood", "penalty": penalty}
    found = mk.learn_structure(table(columns), choose="ebic", gamma=gamma, n_alphas=6, **settings)
    wanted = []
    for alpha in found.details.choice.penalties:
        joined = mk.learn_structure(table(columns), alpha=alpha, **settings).edges
        edges = [(i, j) for i, j in combinations(range(3), 2) if (f"x{i}", f"x{j}") in joined]
        free = sum((cards[i] - 1) * (cards[j] - 1) for i, j in edges)
        fit = pseudo_log_likelihood(columns, cards, edges)
        wanted.append(-2 * fit + 2 * free * np.log(n) + 4 * gamma * len(edges) * np.log(3))
    assert max(wanted) > min(wanted) + 1
    np.testing.assert_allclose(found.details.choice.criterion, wanted, atol=0.02)
    assert found.details.alpha == found.details.choice.penalties[np.argmin(wanted)]


# rows left out: with a fold a row nothing depends on how rows are shared out


def weighted(rows, weights):
    mean = weights @ rows / weights.sum()
    gap = rows - mean
    return mean, (gap * weights[:, None]).T @ gap / weights.sum()


def test_the_score_of_rows_left_out_of_the_graphical_lasso_is_their_likelihood():
    rows = chain_rows(3, 14, 5)
    weights = np.random.default_rng(0).integers(1, 4, len(rows)).astype(float)
    unit = rows / np.sqrt(np.diag(weighted(rows, weights)[1]))
    found = mk.learn_structure(
        table(rows), method="graphical-lasso", choose="cv", folds=14, n_rhos=5, smallest=0.1, weights=weights
    )
    choice = found.details.choice
    wanted = np.zeros(5)
    for k in range(14):
        others = np.arange(14) != k
        mean, cov = weighted(unit[others], weights[others])
        for at, rho in enumerate(choice.penalties):
            q = sparse_precision(cov, rho).precision
            gap = unit[k] - mean
            wanted[at] += weights[k] * (gap @ q @ gap - np.linalg.slogdet(q)[1])
    np.testing.assert_allclose(choice.criterion, wanted, rtol=1e-4)
    assert found.details.rho == choice.penalties[np.argmin(wanted)]


def test_neighbourhoods_by_rows_left_out_have_the_least_squared_error_of_prediction():
    rows = chain_rows(4, 24, 6) + np.array([3.0, -1.0, 0.0, 5.0])
    weights = np.random.default_rng(1).integers(1, 5, len(rows)).astype(float)
    unit = rows / np.sqrt(np.diag(weighted(rows, weights)[1]))
    corr = weighted(unit, weights)[1]
    found = mk.learn_structure(
        table(rows), method="neighbourhood", choose="cv", folds=24, n_alphas=6, smallest=0.05, weights=weights
    )
    places = []
    for node in range(4):
        rest = [i for i in range(4) if i != node]
        levels = np.geomspace(1, 0.05, 6) * np.abs(corr[node, rest]).max()
        cost = np.zeros(6)
        for k in range(24):
            others = np.arange(24) != k
            for at, alpha in enumerate(levels):
                model = Lasso(alpha=alpha, tol=1e-10, max_iter=100_000)
                model.fit(unit[others][:, rest], unit[others, node], sample_weight=weights[others])
                cost[at] += weights[k] * (unit[k, node] - model.predict(unit[[k]][:, rest])[0]) ** 2
        places.append(int(np.argmin(cost)))
        assert found.details.alpha[node] == pytest.approx(levels[places[-1]])
    assert len(set(places)) > 1

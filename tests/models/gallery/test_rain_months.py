"""Six months of rain, and how likely they are under models of growing size."""

from itertools import pairwise, product

import numpy as np
import pytest

import markovia as mk


@pytest.fixture(scope="module")
def rain():
    return mk.examples.rain_months()


def entropy(share):
    return -sum(p * np.log(p) for p in (share, 1 - share) if p > 0)


def test_the_excerpt_is_the_one_that_was_printed(rain):
    days = (rain == "rain").to_numpy().astype(int)
    assert ["".join(map(str, month)) for month in days] == [
        "000110011", "100000100", "111111111", "111100111", "000011000", "011000011",
    ]  # fmt: skip
    assert list(rain.columns) == [f"day{j}" for j in range(1, 10)]


def test_the_table_of_likelihoods_of_the_excerpt_has_its_closed_forms(rain):
    days = [mk.Variable(n, ["dry", "rain"]) for n in rain.columns]
    x = (rain == "rain").to_numpy().astype(int)
    dry = mk.Feature.tied([mk.Feature(d, [1, 0]) for d in days], "dry")
    same = mk.Feature.tied([mk.Feature([a, b], np.eye(2)) for a, b in pairwise(days)], "same")
    one = mk.fit_log_linear([dry], rain)
    assert -one.log_likelihood / 6 == pytest.approx(9 * entropy(28 / 54), abs=1e-9)
    each = mk.MarkovNetwork(days, [mk.Factor([d], [1, 1]) for d in days]).fit(rain)
    assert -each.fit_.log_likelihood / 6 == pytest.approx(sum(map(entropy, x.mean(axis=0))), abs=1e-9)
    chain = mk.MarkovChain().fit(rain.to_numpy().tolist())
    before, after = x[:, :-1].ravel(), x[:, 1:].ravel()
    moves = sum((before == s).sum() * entropy(after[before == s].mean()) for s in (0, 1))
    want = entropy(x[:, 0].mean()) + moves / 6
    assert -float(chain.log_prob(rain.to_numpy().tolist()).sum()) / 6 == pytest.approx(want, abs=1e-9)
    # the two tied weights: at the maximum the negative log likelihood is log Z - w . F, over all 512 months
    ising = mk.fit_log_linear([dry, same], rain)
    months = np.array(list(product([0, 1], repeat=9)))
    features = np.column_stack([(months == 0).sum(axis=1), (months[:, 1:] == months[:, :-1]).sum(axis=1)])
    shown = np.array([(x == 0).sum(), (x[:, 1:] == x[:, :-1]).sum()]) / 6
    log_z = np.logaddexp.reduce(features @ ising.weights)
    assert -ising.log_likelihood / 6 == pytest.approx(log_z - ising.weights @ shown, abs=1e-9)
    assert np.exp(features @ ising.weights - log_z) @ features == pytest.approx(shown, abs=1e-5)


def test_the_printed_weights_of_the_whole_record_give_its_printed_likelihoods():
    chain = mk.examples.rain_chain()
    shares = [chain.query(n)["rain"] for n in chain.variables]
    pairs = [chain.query([a, b]).values for a, b in pairwise(chain.variables)]
    dry, same = 28 - sum(shares), sum(p[0, 0] + p[1, 1] for p in pairs)
    assert (dry, same) == pytest.approx((16.4927, 19.1029), abs=1e-4)
    assert chain.log_partition() - 0.16 * dry - 0.85 * same == pytest.approx(
        16.8162, abs=1e-4
    )  # printed: 16.8
    assert 28 * entropy(np.mean(shares)) == pytest.approx(18.9619, abs=1e-4)  # printed: 18.97
    # a Markov chain with the printed shares: 16.81
    first, rainy, dry_to_rain = 0.37, 0.65, 0.25
    total, p = entropy(first), first
    for _ in range(27):
        total += p * entropy(rainy) + (1 - p) * entropy(dry_to_rain)
        p = p * rainy + (1 - p) * dry_to_rain
    assert total == pytest.approx(16.79, abs=0.005)

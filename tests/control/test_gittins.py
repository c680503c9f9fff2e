import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia.control.gittins import gittins_index
from markovia.errors import InvalidArgument, InvalidTable, TooLarge


@pytest.mark.parametrize(("discount", "known"), [(0.5, 0.55901883), (0.9, 0.70288919)])
def test_index_of_a_fresh_coin_is_the_published_one_and_its_bounds_hold_it(discount, known):
    found = gittins_index((1, 1), discount=discount, tolerance=1e-9)
    assert found.value == pytest.approx(known, abs=6e-9)
    assert found.lower <= found.value <= found.upper
    assert found.upper - found.lower <= 1e-9


def ratio_by_stopping_times(moves, rewards, discount):
    """Return indices by the best of all stopping sets: the index is the largest ratio over sets in which one goes on."""
    n = len(rewards)
    best = np.full(n, -np.inf)
    for mask in range(2**n):
        on = np.array([(mask >> i) & 1 == 1 for i in range(n)])
        inside = (
            np.where(on[None, :], moves, 0.0) * discount
        )  # one goes on where the next state is in the set
        solved = np.linalg.inv(np.eye(n) - np.where(on[:, None], inside, 0.0))
        reward, time = solved @ np.where(on, rewards, 0.0), solved @ on.astype(float)
        best = np.maximum(best, (rewards + inside @ reward) / (1.0 + inside @ time))
    return best


@given(st.integers(0, 10**6), st.sampled_from([0.3, 0.9, 0.99]), st.sampled_from([1e-9, 1.0, 1e9]))
@settings(max_examples=40, deadline=None)
def test_indices_of_a_chain_are_the_best_ratios_over_all_stopping_sets(seed, discount, unit):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    moves = rng.dirichlet(np.full(n, 0.4), size=n)
    rewards = np.round(rng.normal(size=n), 1) * unit
    found = gittins_index(moves, rewards, discount=discount).value
    assert found == pytest.approx(
        ratio_by_stopping_times(moves, rewards, discount), rel=1e-9, abs=1e-9 * unit
    )


@given(st.floats(0.2, 8.0), st.floats(0.2, 8.0), st.sampled_from([0.2, 0.6, 0.85]))
@settings(max_examples=15, deadline=None)
def test_bounds_of_a_coin_hold_the_index_of_its_tree_cut_far_away(a, b, discount):
    depth = int(np.ceil(np.log(1e-7) / np.log(discount)))
    depth = min(depth, 40)
    # the tree as a chain; the leaves pay their mean for ever, which is a little less than the coin is worth there
    places = {(w, d): i for i, (w, d) in enumerate((w, d) for d in range(depth + 1) for w in range(d + 1))}
    moves, rewards = np.zeros((len(places),) * 2), np.zeros(len(places))
    for (w, d), i in places.items():
        rewards[i] = (a + w) / (a + b + d)
        if d == depth:
            moves[i, i] = 1.0
        else:
            moves[i, places[w + 1, d + 1]] = rewards[i]
            moves[i, places[w, d + 1]] = 1.0 - rewards[i]
    cut = gittins_index(moves, rewards, discount=discount).value[0]
    found = gittins_index((a, b), discount=discount)
    assert found.upper >= cut - 1e-12
    assert found.value == pytest.approx(cut, abs=2 * discount**depth)


def test_bounds_close_in_as_the_tolerance_falls_and_never_cross_the_tighter_ones():
    loose, tight = (gittins_index((2, 3), discount=0.9, tolerance=t) for t in (1e-2, 1e-10))
    assert loose.lower <= tight.lower <= tight.upper <= loose.upper
    assert tight.upper - tight.lower <= 1e-10 < loose.upper - loose.lower


def test_all_forms_of_a_beta_prior_have_one_index():
    forms = [
        (2, 1),
        mk.exponential.Beta(2, 1),
        mk.distributions.Beta(2.0, 1.0),
        mk.exponential.Bernoulli.conjugate_prior(2, 1),
    ]
    assert len({gittins_index(f, discount=0.7, tolerance=1e-6).value for f in forms}) == 1


def test_a_coin_that_is_nearly_known_is_worth_its_mean():
    assert gittins_index((3e8, 1e8), discount=0.9).value == pytest.approx(0.75, abs=1e-4)


@pytest.mark.parametrize("arm", [(0, 1), (1, -1), (1, 2, 3), "coin", (np.nan, 1.0)])
def test_what_is_no_beta_prior_is_refused(arm):
    with pytest.raises(InvalidArgument, match="an arm is a Beta prior"):
        gittins_index(arm, discount=0.9)


def test_wrong_tables_discounts_and_endless_searches_are_refused():
    with pytest.raises(InvalidTable, match="row 1"):
        gittins_index([[1.0, 0.0], [0.3, 0.3]], [1.0, 2.0], discount=0.9)
    with pytest.raises(InvalidArgument, match="rewards="):
        gittins_index([[1.0]], [np.nan], discount=0.9)
    with pytest.raises(InvalidArgument, match="discount="):
        gittins_index((1, 1), discount=1.0)
    with pytest.raises(TooLarge, match="pulls ahead"):
        gittins_index((1, 1), discount=0.99999)

"""Pictures of bandits: what is on the axes."""

import numpy as np
import pytest

from markovia import plotting
from markovia.control.bandits import Bandit, BanditHistory
from markovia.errors import InvalidArgument, Unanswered
from markovia.exponential import Bernoulli, Beta


def test_the_line_is_the_regret_where_means_are_known_and_the_mean_reward_where_not():
    known = Bandit(Beta(1, 1), 3, seed=0).play([Bernoulli(p) for p in (0.2, 0.5, 0.7)], 40, progress=False)
    assert known.plot().lines[0].get_ydata() == pytest.approx(known.regret)
    unknown = Bandit(Beta(1, 1), 2, seed=0).play(lambda arm: arm, 10, progress=False)
    assert unknown.plot().lines[0].get_ydata()[-1] == pytest.approx(unknown.rewards.mean())
    assert unknown.plot(title="mine").get_title() == "mine"


def test_shares_of_arms_sum_to_one_and_are_named():
    history = Bandit(Beta(1, 1), ["a", "b"], seed=0).play(
        [Bernoulli(0.2), Bernoulli(0.7)], 30, progress=False
    )
    ax = plotting.plot_bandit(history, "arms")
    assert np.sum([line.get_ydata() for line in ax.lines], axis=0) == pytest.approx(np.ones(30))
    assert {line.get_label() for line in ax.lines} == {"a", "b"}


def test_nothing_pulled_and_unknown_kinds_are_refused():
    empty = BanditHistory("ucb", ["a"], np.zeros(0, dtype=int), np.zeros(0), None, [None])
    with pytest.raises(Unanswered, match="no arm was pulled"):
        empty.plot()
    with pytest.raises(InvalidArgument, match="kind="):
        plotting.plot_bandit(Bandit(Beta(1, 1), 1).play(lambda arm: 1, 2, progress=False), "pie")

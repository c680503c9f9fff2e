"""Processes as environments: what Gymnasium asks of them, ends and cuts, seeds."""

import numpy as np
import pytest

import markovia as mk
from markovia.control import environments
from markovia.control.environments import environment
from markovia.errors import InvalidArgument
from markovia.inference.decisions.beliefs.partially_observed import PartiallyObserved
from markovia.inference.decisions.processes.decision_process import DecisionProcess


def walk(**more):
    step = [[0, 0.9, 0.1], [0.1, 0, 0.9], [0, 0, 1]]
    back = [[1, 0, 0], [1, 0, 0], [0, 0, 1]]
    return DecisionProcess.from_tables([step, back], [-1.0, -2.0, 0.0], initial=0, terminal=[2], **more)


def hidden():
    process = DecisionProcess.from_tables(
        [np.eye(2), np.eye(2)[::-1]], [[0.0, 1.0], [2.0, 3.0]], initial=[0.5, 0.5]
    )
    return PartiallyObserved(process, [np.array([[0.8, 0.2, 0.0], [0.0, 0.3, 0.7]])] * 2)


@pytest.mark.parametrize("build", [walk, hidden])
def test_gymnasium_finds_nothing_wrong(build):
    pytest.importorskip("gymnasium")
    from gymnasium.utils.env_checker import check_env

    check_env(environment(build(), horizon=20), skip_render_check=True)


def test_without_gymnasium_one_sentence_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(environments, "gymnasium", None)
    with pytest.raises(ImportError, match=r"pip install 'markovia\[control\]'"):
        environment(walk())


def test_an_end_is_no_cut_and_a_cut_no_end():
    pytest.importorskip("gymnasium")
    world = environment(walk(), horizon=2)
    ends = []
    for episode in range(60):
        world.reset(seed=episode)
        for step in range(1, 3):
            seen, _, terminated, truncated, _ = world.step(0)
            assert terminated == (seen == 2)
            assert truncated == (step == 2 and not terminated)
            if terminated or truncated:
                break
        ends.append((terminated, truncated, step))
        with pytest.raises(InvalidArgument, match="reset"):
            world.step(0)
    assert {(True, False, 1), (True, False, 2), (False, True, 2)} == set(ends)


def test_frequencies_and_rewards_are_those_of_the_process():
    pytest.importorskip("gymnasium")
    world, counts = environment(walk()), np.zeros(3)
    world.reset(seed=0)
    for _ in range(2000):
        world.reset(options={"state": 1})
        seen, reward, *_ = world.step(0)
        counts[seen] += 1
        assert reward == -2.0
    assert counts / 2000 == pytest.approx([0.1, 0.0, 0.9], abs=0.025)


def test_the_same_seed_gives_the_same_episode():
    pytest.importorskip("gymnasium")

    def episode(seed):
        world = environment(hidden())
        found = [int(world.reset(seed=seed)[0])]
        return found + [int(world.step(t % 2)[0]) for t in range(30)]

    assert episode(1) == episode(1)
    assert episode(1) != episode(2)


def test_what_is_heard_has_its_law_and_names():
    pytest.importorskip("gymnasium")
    world, counts = environment(hidden()), np.zeros(3)
    seen, info = world.reset(seed=0, options={"state": 1})
    assert (seen, info) == (3, {})  # nothing is heard yet
    for _ in range(2000):
        seen, _, _, _, info = world.step(0)
        counts[seen] += 1
        assert info["heard"] == {"heard": seen}
    assert counts / 2000 == pytest.approx([0.0, 0.3, 0.7], abs=0.04)


def test_actions_that_are_none_or_not_allowed_are_refused():
    pytest.importorskip("gymnasium")
    world = environment(walk(allowed=np.array([[True, False], [True, True], [True, True]])))
    _, info = world.reset(seed=0)
    assert info["action_mask"].tolist() == [1, 0]
    with pytest.raises(InvalidArgument, match="action 1 is not allowed here"):
        world.step(1)
    with pytest.raises(InvalidArgument, match="from 0 to 1, not 7"):
        world.step(7)
    with pytest.raises(InvalidArgument, match="horizon= is a whole number"):
        environment(walk(), horizon=0)


def test_models_open_the_door_themselves(monkeypatch):
    pytest.importorskip("gymnasium")
    from markovia.runtime import ports

    monkeypatch.setitem(ports._targets, "environment", "markovia.control.environments:environment")
    m = mk.MDP([[[0, 1.0], [1.0, 0]]], [1.0, 2.0], initial=0)
    seen, _ = m.process().env(horizon=5).reset(seed=0)
    assert seen == m.env().reset(seed=0)[0] == 0

"""Studies: asking and telling, seeds, files, units, noise, constraints, batches, what is exhausted, bad input."""

import json
from itertools import combinations

import numpy as np
import pytest

from markovia.errors import InvalidArgument, Unanswered
from markovia.models.bayesopt.study import Study

PLANE = {"x": (-5.0, 10.0), "y": (0.0, 15.0)}


def branin(point):
    x, y = point["x"], point["y"]
    return (
        (y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6) ** 2
        + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x)
        + 10
    )


def bowl(point):
    return (point["x"] - 1.0) ** 2 + 0.5 * (point["y"] - 4.0) ** 2


def searched(function, space, calls, **options):
    study = Study(space, **{"seed": 0, **options})
    for _ in range(calls):
        point = study.ask()
        study.tell(point, function(point))
    return study


def test_the_minima_of_branin_are_found_in_few_trials():
    assert searched(branin, PLANE, 30).best_value < 0.397887 + 0.05


def test_the_same_seed_gives_the_same_points_and_another_seed_others():
    a, b, c = (searched(branin, PLANE, 10, seed=s).trials for s in (3, 3, 4))
    assert [t.point for t in a] == [t.point for t in b]
    assert [t.point for t in a] != [t.point for t in c]


@pytest.mark.parametrize(("unit", "shift"), [(1e-9, 0.0), (1e9, 0.0), (1.0, -250.0)])
def test_the_unit_of_values_changes_no_point(unit, shift):
    plain = searched(bowl, PLANE, 14)
    other = searched(lambda p: shift + unit * bowl(p), PLANE, 14)
    a, b = (np.array([[t.point["x"], t.point["y"]] for t in s.trials]) for s in (plain, other))
    np.testing.assert_allclose(a[:9], b[:9], atol=1e-2)  # the same up to where the ascents of the two end
    assert other.best_value - shift < 0.1 * unit


def test_the_unit_of_parameters_changes_no_point():
    plain = searched(bowl, PLANE, 14)
    tiny = {name: (low * 1e-9, high * 1e-9) for name, (low, high) in PLANE.items()}
    other = searched(lambda p: bowl({name: v * 1e9 for name, v in p.items()}), tiny, 14)
    a, b = (np.array([[t.point["x"], t.point["y"]] for t in s.trials]) for s in (plain, other))
    np.testing.assert_allclose(a, b * 1e9, atol=1e-4)


def test_a_search_taken_up_from_its_file_goes_on_as_if_it_had_not_been_interrupted(tmp_path):
    space = {**PLANE, "kind": {"a": {}, "b": {"z": (1, 5)}}}

    def function(point):
        return np.nan if point["x"] > 9.0 else bowl(point) + point.get("z", 2)

    whole = searched(function, space, 14, initial=8)
    stopped = searched(function, space, 12, initial=8, path=tmp_path / "study.json")
    parts = Study(space, initial=8, path=tmp_path / "study.json")  # the seed is that of the file
    assert parts._numbers == stopped._numbers != {}
    assert len(parts.trials) == 12
    for _ in range(2):
        point = parts.ask()
        parts.tell(point, function(point))
    np.testing.assert_array_equal(parts._units, whole._units)
    np.testing.assert_array_equal([t.value for t in parts.trials], [t.value for t in whole.trials])
    assert [t.error for t in parts.trials] == [t.error for t in whole.trials]


def test_a_file_is_written_whole_after_each_trial(tmp_path):
    path = tmp_path / "study.json"
    study = Study(PLANE, path=path, seed=0)
    for n in range(1, 4):
        study.tell(study.ask(), float(n))
        assert len(json.loads(path.read_text())["trials"]) == n
    assert [f.name for f in tmp_path.iterdir()] == ["study.json"]


def test_a_file_of_something_else_is_refused(tmp_path):
    path = tmp_path / "study.json"
    Study(PLANE, seed=0).save(path)
    with pytest.raises(InvalidArgument, match="has another space"):
        Study({"x": (-5.0, 10.0), "y": (0.0, 15.5)}, path=path)
    with pytest.raises(InvalidArgument, match="has another seed"):
        Study(PLANE, path=path, seed=1)
    for text in ("[]", "{", '{"space": 1}'):
        path.write_text(text)
        with pytest.raises(InvalidArgument, match="is no file of a study"):
            Study(PLANE, path=path)


def test_points_of_a_batch_are_spread_and_may_be_told_in_any_order():
    study = searched(bowl, PLANE, 9)
    batch = study.ask(4)
    units = [study.space.unit(p) for p in batch]
    assert min(np.abs(a - b).max() for a, b in combinations(units, 2)) > 0.005
    assert len(study.pending) == 4
    for point in reversed(batch):
        study.tell(json.loads(json.dumps(point)), bowl(point))
    assert study.pending == []
    assert len(study.trials) == 13


def test_the_first_points_are_those_that_were_given_then_those_of_the_design():
    start = [{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 1.0}]
    study = searched(bowl, PLANE, 7, start=start, initial=4)
    assert [t.point for t in study.trials[:2]] == start
    for design in ("sobol", "latin", "random"):
        points = [t.point for t in searched(bowl, PLANE, 8, design=design, initial=8).trials]
        assert len({p["x"] for p in points}) == 8
        if design != "random":  # one point in each half, or each eighth, of every parameter
            cells = sorted(int((p["x"] + 5.0) / 15.0 * 8) for p in points)
            assert cells == list(range(8))


def test_points_that_were_not_asked_for_may_be_told():
    study = Study(PLANE, seed=0)
    study.tell({"x": 1.0, "y": 4.0}, 0.0)
    assert study.best_point == {"x": 1.0, "y": 4.0}
    assert study.ask() != study.best_point


@pytest.mark.slow
@pytest.mark.parametrize(("acquisition", "near"), [("lcb", 0.5), ("pi", 3.0), ("thompson", 0.5), ("kg", 0.5)])
def test_every_acquisition_finds_the_bottom_of_a_bowl(acquisition, near):
    # "pi" prefers what is all but certain to be a little lower, and is slow
    assert searched(bowl, PLANE, 14, acquisition=acquisition, noise=0.0).best_value < near


@pytest.mark.parametrize("covariance", ["matern32", "rbf"])
def test_every_covariance_finds_the_bottom_of_a_bowl(covariance):
    assert searched(bowl, PLANE, 14, covariance=covariance, noise=0.0).best_value < 0.2


def test_a_constraint_that_is_known_holds_at_every_point():
    study = searched(bowl, PLANE, 14, allowed=lambda p: p["x"] + p["y"] > 9.0)
    assert all(t.point["x"] + t.point["y"] > 9.0 for t in study.trials)
    assert study.best_value < 8.5  # the lowest with x + y > 9 is 16/3


def test_a_constraint_that_is_told_keeps_the_search_where_it_holds():
    study = Study({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=0, noise=0.0)
    for _ in range(20):
        p = study.ask()
        study.tell(p, p["x"] + p["y"], [0.5 - p["x"] * p["y"]])  # the lowest is 2 sqrt(1/2) = 1.4142
    assert all(c <= 0 for c in study.best.constraints)
    assert study.best_value < 1.46
    late = [t for t in study.trials[12:] if t.holds or t.constraints[0] < 0.05]
    assert len(late) > 5
    assert {"constraint0"} <= set(study.to_pandas().columns)


def test_where_trials_fail_the_search_comes_close_to_the_edge():
    study = Study(PLANE, seed=0)
    for _ in range(22):
        p = study.ask()
        study.tell(p, np.nan if p["x"] > 5.0 else -p["x"])
    assert next(t.error for t in study.trials if not np.isfinite(t.value)) == "the value is nan"
    assert 4.5 < study.best_point["x"] <= 5.0


def test_nothing_but_failures_leaves_a_search_that_goes_on():
    study = searched(lambda p: np.nan, PLANE, 12)
    assert len({t.point["x"] for t in study.trials}) == 12
    for ask in (lambda: study.best, lambda: study.predict([{"x": 0.0, "y": 1.0}])):
        with pytest.raises(Unanswered):
            ask()


@pytest.mark.parametrize("value", [0.0, -7.5, 1e12])
def test_an_objective_that_is_constant_is_searched_all_over(value):
    study = searched(lambda p: value, PLANE, 14)
    units = study._units
    assert min(np.abs(a - b).max() for a, b in combinations(units, 2)) > 1e-3
    assert study.best_value == value


def test_with_noise_the_expected_point_is_nearer_to_the_truth_than_the_luckiest():
    errors = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        study = searched(lambda p, rng=rng: bowl(p) / 10 + rng.standard_normal(), PLANE, 15, seed=seed)
        errors.append((bowl(study.expected_point), bowl(study.best_point)))
    expected, lucky = np.mean(errors, axis=0)
    assert expected <= lucky
    assert expected < 8.0


def test_every_point_of_a_small_space_is_tried_once_and_then_it_is_said():
    space = {"a": ["u", "v"], "b": {"on": {"k": (1, 3)}, "off": {}}}
    study = searched(lambda p: p.get("k", 0) + (p["a"] == "v"), space, 8)
    assert len({str(sorted(t.point.items())) for t in study.trials}) == 8
    with pytest.raises(InvalidArgument, match="all 8 points of the space were tried"):
        study.ask()
    with_repeats = Study(space, repeats=True, seed=0)
    for trial in study.trials:
        with_repeats.tell(trial.point, trial.value)
    assert with_repeats.ask() in [t.point for t in study.trials]


def test_a_batch_larger_than_what_is_left_is_what_is_left():
    assert len(Study({"x": [1, 2, 3]}, seed=0).ask(5)) == 3


def test_one_choice_is_a_space():
    study = Study({"x": ["only"]}, seed=0)
    assert study.ask() == {"x": "only"}
    study.tell({"x": "only"}, 1.0)
    with pytest.raises(InvalidArgument, match="all 1 points"):
        study.ask()


def test_where_nothing_is_allowed_it_is_said():
    with pytest.raises(InvalidArgument, match="no allowed point is left"):
        Study(PLANE, allowed=lambda p: False, seed=0).ask()


def test_choices_and_whole_numbers_are_searched_exactly():
    space = {"n": (1, 40), "m": (1, 1000, "log"), "k": ["a", "b", "c", "d"], "x": (0.0, 1.0)}

    def function(p):
        assert type(p["n"]) is int
        assert type(p["m"]) is int
        return abs(p["n"] - 17) / 5 + np.log(p["m"] / 30) ** 2 + (p["k"] != "c") + (p["x"] - 0.3) ** 2

    study = searched(function, space, 30, noise=0.0, initial=8)
    assert (study.best_point["n"], study.best_point["k"]) == (17, "c")
    assert study.best_value < 0.1


def test_what_is_told_wrongly_is_refused():
    study = Study(PLANE, seed=0)
    with pytest.raises(InvalidArgument, match="values and constraints are numbers"):
        study.tell({"x": 1.0, "y": 1.0}, "low")
    study.tell({"x": 1.0, "y": 1.0}, 1.0, [0.1, -0.2])
    with pytest.raises(InvalidArgument, match="there were 2 constraints before, and now 1"):
        study.tell({"x": 2.0, "y": 1.0}, 1.0, [0.1])
    with pytest.raises(InvalidArgument, match="n= is"):
        study.ask(0)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"acquisition": "ei"}, "acquisition= is"),
        ({"covariance": "matern12"}, "covariance= is"),
        ({"design": "grid"}, "design= is"),
        ({"noise": -1.0}, "noise= is"),
        ({"kappa": np.nan}, "kappa= is"),
        ({"initial": 0}, "initial= is"),
        ({"start": [{"x": 0.0}]}, "the point lacks 'y'"),
        ({"seed": "zero"}, "seed must be"),
    ],
)
def test_settings_that_are_none_are_refused(options, word):
    with pytest.raises(InvalidArgument, match=word):
        Study(PLANE, **options)


def test_the_table_has_a_row_for_each_trial():
    study = Study({"x": (0.0, 1.0), "k": {"a": {"m": (1, 9)}, "b": {}}}, seed=0)
    study.tell({"x": 0.5, "k": "b"}, 2.0, seconds=0.1)
    study.tell({"x": 0.6, "k": "a", "m": 3}, None, error="it broke")
    study.tell({"x": 0.7, "k": "a", "m": 4}, 1.0)
    table = study.to_pandas()
    assert list(table.columns) == ["x", "k", "m", "value", "best", "error", "seconds"]
    assert table["best"].tolist() == [2.0, 2.0, 1.0]
    assert table["m"].isna().tolist() == [True, False, False]
    assert table["error"].tolist()[1] == "it broke"
    assert repr(study) == "<Study of 3 parameters: 3 trials; best 1>"


def test_predictions_are_in_the_unit_of_values():
    study = searched(lambda p: 1e6 + 1e3 * bowl(p), PLANE, 14, noise=0.0)
    mean, sd = study.predict([{"x": 1.0, "y": 4.0}, {"x": -5.0, "y": 15.0}])
    assert mean[0] == pytest.approx(1e6, abs=2e3)
    assert sd[0] < sd[1]

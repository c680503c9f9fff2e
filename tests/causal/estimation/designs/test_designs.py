"""Designs say what is compared with what, and never take the treated group, period or level by the alphabet."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import markovia as mk
from markovia.errors import InvalidArgument


def two_groups(seed=7, n=300, effect=1.5):
    """A third of the units are treated in the second of two periods; all change by 1."""
    rng = np.random.default_rng(seed)
    g, x = rng.random(n) < 0.35, rng.normal(size=n)
    unit = rng.normal(size=n) + 2 * g
    late = unit + 1 + 0.5 * x + effect * g + 0.5 * rng.normal(size=n)
    return pd.DataFrame({
        "id": np.tile(np.arange(n), 2), "group": np.tile(g.astype(int), 2), "time": np.repeat([0, 1], n),
        "x": np.tile(x, 2), "y": np.concatenate([unit, late]),
    })  # fmt: skip


def differences(frame, **options):
    return mk.causal.difference_in_differences(frame, "y", group="group", period="time", **options)


@pytest.mark.parametrize("options", [{}, {"unit": "id"}, {"unit": "id", "covariates": "x"}])
@pytest.mark.parametrize(("others", "ours"), [("AA", "NJ"), ("PA", "NJ"), (7, 3)])
def test_the_treated_group_is_the_one_that_is_named_whatever_the_alphabet_says(others, ours, options):
    plain = two_groups()
    named = plain.assign(group=plain["group"].map({0: others, 1: ours}))
    expected, found = differences(plain, **options), differences(named, treated=ours, **options)
    assert found.value == pytest.approx(expected.value, abs=1e-9)
    assert found.standard_error == pytest.approx(expected.standard_error, rel=1e-9)
    assert (found.treated, found.control, found.target) == (ours, others, "att")
    assert f"in the treated group, group = {ours}, beyond that in {others}" in str(found)
    assert differences(named, treated=others, **options).value == pytest.approx(-expected.value, abs=0.2)
    with pytest.raises(InvalidArgument, match=r"nothing tells whether .* is treated; say treated="):
        differences(named, **options)


@pytest.mark.parametrize(
    ("others", "ours"), [("untreated", "treated"), ("placebo", "drug"), (False, True), ("no", "yes")]
)
def test_groups_whose_names_say_it_need_no_more(others, ours):
    plain = two_groups()
    named = plain.assign(group=plain["group"].map({0: others, 1: ours}))
    found = differences(named)
    assert found.value == pytest.approx(differences(plain).value, abs=1e-9)
    assert found.treated == ours


@pytest.mark.parametrize(("first", "second"), [("before", "after"), ("pre", "post"), (1992, 1995)])
def test_the_later_period_is_told_by_its_order_or_meaning(first, second):
    plain = two_groups()
    named = plain.assign(time=plain["time"].map({0: first, 1: second}))
    found = differences(named)
    assert found.value == pytest.approx(differences(plain).value, abs=1e-9)
    assert f"from time = {first} to {second}" in str(found)


def test_periods_in_other_words_are_asked_for():
    plain = two_groups()
    named = plain.assign(time=plain["time"].map({0: "summer", 1: "spring"}))
    with pytest.raises(
        InvalidArgument, match=r"nothing tells whether 'spring' or 'summer' .* comes after; say later="
    ):
        differences(named)
    found = differences(named, later="spring", unit="id", covariates="x")
    assert found.value == pytest.approx(differences(plain, unit="id", covariates="x").value, abs=1e-9)
    for wrong in ({"later": "autumn"}, {"later": "spring", "treated": 5}):
        with pytest.raises(InvalidArgument, match="is no value of"):
            differences(named, **wrong)
    with pytest.raises(InvalidArgument, match="needs two values, not 3"):
        differences(plain.assign(group=np.arange(len(plain)) % 3))


def test_differences_and_their_errors_are_those_of_least_squares():
    sm = pytest.importorskip("statsmodels.api")
    frame = two_groups(seed=3, n=120)
    g, t, y = (frame[c].to_numpy(float) for c in ("group", "time", "y"))
    design = sm.add_constant(np.column_stack([g * t, g, t]))
    robust = sm.OLS(y, design).fit(cov_type="HC0")
    found = differences(frame)
    assert (found.value, found.standard_error) == pytest.approx((robust.params[1], robust.bse[1]))
    clustered = sm.OLS(y, design).fit(
        cov_type="cluster", cov_kwds={"groups": frame["id"], "use_correction": False}
    )
    grouped = differences(frame, unit="id")
    # the clusters' own correction, without that for the columns
    assert grouped.standard_error == pytest.approx(clustered.bse[1] * np.sqrt(120 / 119))
    assert grouped.p_value == pytest.approx(2 * norm.sf(abs(grouped.value) / grouped.standard_error))


def crossing(seed=6, n=1500):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 10, n)
    degree = rng.random(n) < np.where(x >= 4, 0.9, 0.2)
    return pd.DataFrame({"score": x, "degree": degree, "wage": 5 + x + 2 * degree + rng.normal(size=n)})


def test_a_discontinuity_says_that_its_effect_is_at_the_cutoff():
    sharp = mk.causal.regression_discontinuity(crossing(), "score", "wage", cutoff=4)
    assert sharp.target == "cutoff"
    assert "between score at or above 4 and below, where score = 4, at the cutoff" in str(sharp)
    assert "over everyone" not in str(sharp)
    fuzzy = mk.causal.regression_discontinuity(crossing(), "score", "wage", cutoff=4, treatment="degree")
    assert (
        "degree = True and False, where score = 4, at the cutoff, among those whom crossing it moves"
        in str(fuzzy)
    )
    assert "over everyone" not in str(fuzzy)


def test_a_fuzzy_treatment_in_words_is_told_and_not_sorted():
    plain = crossing()
    expected = mk.causal.regression_discontinuity(plain, "score", "wage", cutoff=4, treatment="degree")
    for others, ours, options in (("none", "BA", {}), ("z", "a", {"treated": "a"})):
        named = plain.assign(degree=np.where(plain["degree"], ours, others))
        found = mk.causal.regression_discontinuity(
            named, "score", "wage", cutoff=4, treatment="degree", **options
        )
        assert found.value == pytest.approx(expected.value)
        assert (found.treated, found.control) == (ours, others)
    with pytest.raises(InvalidArgument, match="nothing tells whether 'a' or 'z'"):
        mk.causal.regression_discontinuity(named, "score", "wage", cutoff=4, treatment="degree")


def test_a_fuzzy_dose_is_measured_in_its_own_unit():
    plain = crossing()
    years = np.where(plain["degree"], 16, np.where(plain["wage"] > 9, 12, 8))
    found = [
        mk.causal.regression_discontinuity(
            plain.assign(years=scale * years), "score", "wage", cutoff=4, treatment="years"
        )
        for scale in (1, 0.1)
    ]
    assert found[1].value == pytest.approx(10 * found[0].value)


def courses(n=900, seed=9):
    rng = np.random.default_rng(seed)
    l0 = rng.normal(size=n)
    a0 = rng.random(n) < 1 / (1 + np.exp(-0.5 * l0))
    l1 = 0.7 * l0 - 0.5 * a0 + rng.normal(size=n)
    a1 = rng.random(n) < 1 / (1 + np.exp(-0.5 * l1 - 0.5 * a0))
    return pd.DataFrame(
        {"l0": l0, "a0": a0, "l1": l1, "a1": a1, "y": 1.5 * a0 + a1 + l1 + rng.normal(size=n)}
    )


def over_time(frame, **options):
    return mk.causal.effect_over_time(frame, ["a0", "a1"], "y", covariates=["l0", "l1"], **options)


def test_treatments_over_time_in_words_are_told_by_the_regimes():
    plain = courses()
    words = plain.assign(**{a: np.where(plain[a], "drug", "placebo") for a in ("a0", "a1")})
    letters = plain.assign(**{a: np.where(plain[a], "A", "B") for a in ("a0", "a1")})
    for method in ("doubly robust", "msm"):
        expected = over_time(plain, method=method)
        assert over_time(words, method=method).value == pytest.approx(expected.value)
        regimes = {"treated": ["A", "A"], "control": ["B", "B"]}
        assert over_time(letters, method=method, **regimes).value == pytest.approx(expected.value)
        with pytest.raises(InvalidArgument, match="nothing tells whether 'A' or 'B'"):
            over_time(letters, method=method)
    first = over_time(plain, treated=[1, 0], control=[0, 0])
    assert over_time(letters, treated=["A", "B"], control=["B", "B"]).value == pytest.approx(first.value)
    assert "regime ['A', 'B'] against ['B', 'B']" in str(
        over_time(letters, treated=["A", "B"], control=["B", "B"])
    )
    with pytest.raises(InvalidArgument, match="is no value of 'a1'"):
        over_time(letters, treated=["A", "C"], control=["B", "B"])
    with pytest.raises(InvalidArgument, match="a value for each of the 2 treatments"):
        over_time(plain, treated=[1])


def test_policies_over_time_are_regimes_that_answer_to_what_was_seen():
    plain = courses()
    always = over_time(plain, treated=[1, 1], control=[0, 0])
    said = over_time(plain, treated={"a0": 1, "a1": lambda l1: 1}, control={"a0": lambda: 0, "a1": 0})
    assert said.value == pytest.approx(always.value, abs=1e-12)
    assert said.interval == pytest.approx(always.interval, abs=1e-12)
    letters = plain.assign(**{a: np.where(plain[a], "A", "B") for a in ("a0", "a1")})
    rule = {
        "a0": lambda l0: {"A": 0.25, "B": 0.75},
        "a1": lambda l1, a0: "A" if l1 > 0 and a0 == "B" else "B",
    }
    numbers = {"a0": lambda l0: {1: 0.25, 0: 0.75}, "a1": lambda l1, a0: int(l1 > 0 and a0 == 0)}
    for method in ("doubly robust", "g-computation"):
        options = {"method": method, "repetitions": 20}
        found = over_time(letters, treated=rule, control=["B", "B"], **options)
        assert found.value == pytest.approx(
            over_time(plain, treated=numbers, control=[0, 0], **options).value
        )
        assert "a policy against ['B', 'B']" in str(found)
    both = over_time(letters, treated=rule, control={"a0": "A", "a1": "A"})
    first, second = (
        over_time(plain, treated=numbers, control=[0, 0]), over_time(plain, treated=[1, 1], control=[0, 0])
    )  # fmt: skip
    assert both.value == pytest.approx(first.value - second.value, abs=1e-10)
    with pytest.raises(InvalidArgument, match="looks at 'l1', but what is known before it is 'l0'"):
        over_time(plain, treated={"a0": lambda l1: 1, "a1": 1})
    with pytest.raises(InvalidArgument, match="a policy says what to do for each of"):
        over_time(plain, treated={"a0": 1})
    with pytest.raises(InvalidArgument, match="a policy needs 'doubly robust'"):
        over_time(plain, treated=numbers, method="msm")


def test_mediation_says_which_level_is_treated():
    rng = np.random.default_rng(10)
    a = rng.random(600) < 0.4
    m = a + rng.normal(size=600)
    plain = pd.DataFrame({"a": a, "m": m, "y": 1.0 * a + 2 * m + rng.normal(size=600)})
    expected = mk.causal.mediation(plain, "a", "m", "y")
    named = plain.assign(a=np.where(a, "A", "B"))
    found = mk.causal.mediation(named, "a", "m", "y", treated="A")
    assert (found.direct.value, found.indirect.value) == pytest.approx(
        (expected.direct.value, expected.indirect.value)
    )
    assert str(found).startswith("a = A against B\n")
    with pytest.raises(InvalidArgument, match="nothing tells whether 'A' or 'B'"):
        mk.causal.mediation(named, "a", "m", "y")


def test_times_in_words_have_no_order():
    rows = pd.DataFrame(
        {"u": np.repeat(["a", "b", "c"], 3), "when": ["t1", "t10", "t2"] * 3, "y": np.arange(9.0)}
    )
    with pytest.raises(InvalidArgument, match="'when' are words, which have no order"):
        mk.causal.synthetic_control(rows, "y", unit="u", time="when", treated="b", start="t2")
    with pytest.raises(InvalidArgument, match="'when' are words, which have no order"):
        mk.causal.staggered_differences(rows.assign(since="t2"), "y", unit="u", period="when", start="since")


@pytest.mark.parametrize(
    ("others", "ours"), [("untreated", "treated"), ("placebo", "drug"), ("no", "yes"), (0, 1)]
)
def test_an_effect_takes_the_control_by_its_name(others, ours):
    rng = np.random.default_rng(11)
    t, x = rng.random(300) < 0.4, rng.normal(size=300)
    frame = pd.DataFrame({"x": x, "t": np.where(t, ours, others), "y": 2.0 * t + x + rng.normal(size=300)})
    found = mk.causal.effect(frame, "t <- x -> y; t -> y", "t", "y", method="regression")
    assert (found.treated, found.control, found.notes) == (ours, others, ())
    assert abs(found.value - 2) < 4 * found.standard_error


def test_an_effect_says_so_where_no_name_tells_the_control():
    rng = np.random.default_rng(11)
    t = rng.random(300) < 0.4
    frame = pd.DataFrame({"t": np.where(t, "A", "B"), "y": 2.0 * t + rng.normal(size=300)})
    found = mk.causal.effect(frame, "t -> y", "t", "y", method="regression")
    assert "no name tells the control from the treatment, so B is compared with A" in str(found)
    assert found.value < 0
    named = mk.causal.effect(frame, "t -> y", "t", "y", method="regression", treated="A")
    assert (named.value, named.notes) == (pytest.approx(-found.value), ())


@pytest.mark.parametrize(
    "method", ["wald", "2sls", "late", "front-door", "double-ml", "t-learner", "x-learner", "aipw"]
)
def test_swapping_the_levels_turns_the_sign_of_every_method(method):
    rng = np.random.default_rng(12)
    n = 500
    z, w, u = rng.random(n) < 0.5, rng.normal(size=n), rng.normal(size=n)
    a = rng.random(n) < 1 / (1 + np.exp(1 - 2.5 * z - 0.5 * w - 0.5 * u))
    m = rng.random(n) < 0.2 + 0.6 * a
    frame = pd.DataFrame({"z": z, "w": w, "a": np.where(a, "on", "off"), "m": m, "y": 2.0 * m + w + u})
    graph = {
        "wald": "z -> a -> y; a <-> y", "2sls": "w -> z -> a -> y; a <-> y; w -> y",
        "late": "w -> z -> a -> y; a <-> y; w -> y", "front-door": "a -> m -> y; a <-> y",
    }.get(method, "a <- w -> y; a -> y")  # fmt: skip
    asked = {"method": method, "repetitions": 5}
    there = mk.causal.effect(frame, graph, "a", "y", treated="on", **asked)
    back = mk.causal.effect(frame, graph, "a", "y", treated="off", **asked)
    assert there.value > 0
    assert back.value == pytest.approx(-there.value)
    assert (back.treated, back.control) == ("off", "on")

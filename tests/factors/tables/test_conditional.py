from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia import Factor, Variable
from markovia.errors import InvalidArgument, InvalidTable, TooLarge, UnknownState
from markovia.factors.tables.table_forms import argument_names, as_conditional
from markovia.local import ConditionalTable

RAIN = Variable("rain", ["no", "yes"])
SEASON = Variable("season", ["dry", "mild", "wet"])
WET = Variable("wet", ["no", "yes"])
PARENTS = (RAIN, SEASON)
TABLE = [
    [[0.99, 0.01], [0.9, 0.1], [0.8, 0.2]],
    [[0.3, 0.7], [0.2, 0.8], [0.05, 0.95]],
]


def rows() -> dict[tuple[str, str], list[float]]:
    return {
        (str(r), str(s)): TABLE[i][j] for i, r in enumerate(RAIN.states) for j, s in enumerate(SEASON.states)
    }


def wide() -> pd.DataFrame:
    index = pd.MultiIndex.from_tuples(list(rows()), names=["rain", "season"])
    return pd.DataFrame(list(rows().values()), index=index, columns=["no", "yes"])


def long() -> pd.DataFrame:
    entries = [
        {"wet": w, "season": s, "rain": r, "p": row[k]}
        for (r, s), row in rows().items()
        for k, w in enumerate(["no", "yes"])
    ]
    return pd.DataFrame(entries).sample(frac=1.0, random_state=0)


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(TABLE, id="nested lists"),
        pytest.param(np.array(TABLE), id="array"),
        pytest.param(np.array(TABLE).ravel().tolist(), id="flat"),
        pytest.param(rows(), id="dict of rows"),
        pytest.param({k: {"yes": v[1], "no": v[0]} for k, v in rows().items()}, id="dict of dicts"),
        pytest.param({k: v[1] for k, v in rows().items()}, id="dict of single probabilities"),
        pytest.param(wide(), id="wide frame"),
        pytest.param(wide()[["yes", "no"]], id="wide frame, columns swapped"),
        pytest.param(wide().swaplevel().sort_index(), id="wide frame, index levels swapped"),
        pytest.param(long(), id="long frame"),
        pytest.param(lambda rain, season: rows()[rain, season], id="function returning rows"),
        pytest.param(
            lambda rain, season: float(rows()[rain, season][1]), id="function returning a probability"
        ),
        pytest.param(
            lambda rain, season: dict(zip(("no", "yes"), rows()[rain, season], strict=True)),
            id="function, dicts",
        ),
        pytest.param(ConditionalTable(WET, PARENTS, TABLE), id="ready table"),
    ],
)
def test_every_form_gives_the_same_table(form: Any) -> None:
    table = as_conditional(WET, PARENTS, form)
    np.testing.assert_allclose(table.values, TABLE, atol=1e-12)
    assert table.n_parameters == 6
    assert table.names == ("rain", "season", "wet")


def test_a_root_takes_a_list_a_dict_or_a_frame() -> None:
    for form in (
        [0.8, 0.2],
        {"no": 0.8, "yes": 0.2},
        {(): [0.8, 0.2]},
        pd.DataFrame([[0.8, 0.2]], columns=["no", "yes"]),
    ):
        np.testing.assert_allclose(as_conditional(RAIN, (), form).values, [0.8, 0.2])


def test_a_function_may_return_states() -> None:
    table = as_conditional(WET, (RAIN,), lambda rain: rain)
    assert table.values.tolist() == [[1, 0], [0, 1]]
    a, b, c = Variable("a", 2), Variable("b", 2), Variable("c", 2)
    parity = as_conditional(c, (a, b), lambda a, b: np.int64(a ^ b))
    assert parity.row(a=1, b=1).tolist() == [1, 0]


def test_a_function_names_its_parents_by_its_arguments() -> None:
    assert argument_names(lambda rain, season, scale=2.0: rain) == ("rain", "season")
    with pytest.raises(InvalidArgument, match=r"pass parents="):
        argument_names(lambda *states: states)


def test_words_make_uniform_and_random_tables() -> None:
    np.testing.assert_allclose(as_conditional(WET, PARENTS, "uniform").values, 0.5)
    one, again = (
        as_conditional(WET, PARENTS, "random", seed=1),
        as_conditional(WET, PARENTS, "random", seed=1),
    )
    assert one.allclose(again)
    assert not one.allclose(as_conditional(WET, PARENTS, "random", seed=2))
    np.testing.assert_allclose(one.values.sum(axis=-1), 1.0)
    with pytest.raises(InvalidArgument, match="'uniform' and 'random'"):
        as_conditional(WET, PARENTS, "uniforn")


@pytest.mark.parametrize(
    ("form", "error", "message"),
    [
        ([[[0.99, 0.01], [0.9, 0.1], [0.8, 0.2]], [[0.3, 0.7], [0.2, 0.9], [0.05, 0.95]]],
         InvalidTable, r"row of 'wet' for rain='yes', season='mild' sums to 1.1"),
        ({**rows(), ("no", "wet"): [0.5, 0.4]}, InvalidTable, r"rain='no', season='wet' sums to 0.9"),
        ({k: v for k, v in rows().items() if k != ("yes", "dry")},
         InvalidTable, r"no row for rain='yes', season='dry'"),
        ({**rows(), ("yes", "Dry"): [0.5, 0.5]}, UnknownState, "did you mean 'dry'"),
        ({("yes",): [0.5, 0.5]}, InvalidTable, "one a parent is needed"),
        ({k: {"Yes": 1.0} for k in rows()}, UnknownState, "did you mean 'yes'"),
        ({k: [0.2, 0.3, 0.5] for k in rows()}, InvalidTable, "3 entries for 2 states"),
        ([[0.5, 0.5]], InvalidTable, r"rain\(2\) x season\(3\) x wet\(2\) needs \(2, 3, 2\)"),
        ([[0.5, 0.5], [0.5]], InvalidTable, "regular nested list"),
        (np.full((2, 3, 2), -0.5), InvalidTable, "rain='no', season='dry', wet='no'"),
        (lambda rain, season: "damp", UnknownState, "'damp'"),
        (lambda rain, season: object(), InvalidTable, r"answer for \('no', 'dry'\)"),
        (long().iloc[1:], InvalidTable, "every combination"),
        (long().assign(q=1.0), InvalidTable, "one of probabilities"),
        (wide().rename_axis(["rain", "moon"]), InvalidTable, "index levels"),
    ],
)  # fmt: skip
def test_a_bad_table_is_named_by_its_row(form: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        as_conditional(WET, PARENTS, form)


def test_a_table_with_the_child_first_gets_a_hint() -> None:
    """Some libraries write one column a parent configuration; here the child's states come last."""
    turned = np.array(TABLE).reshape(6, 2).T
    with pytest.raises(InvalidTable, match="looks transposed: parents come first"):
        as_conditional(WET, PARENTS, turned)


def test_one_probability_is_enough_only_for_two_states() -> None:
    with pytest.raises(InvalidTable, match="two states"):
        as_conditional(SEASON, (RAIN,), lambda rain: 0.5)


def test_a_ready_distribution_must_be_over_the_same_variables() -> None:
    with pytest.raises(InvalidTable, match="not over 'wet'"):
        as_conditional(WET, (RAIN,), ConditionalTable(WET, PARENTS, TABLE))


def test_a_variable_is_not_its_own_parent() -> None:
    with pytest.raises(InvalidTable, match="different variables"):
        ConditionalTable(WET, [WET], [[1, 0], [0, 1]])


def test_a_table_for_too_many_parents_is_refused_before_it_is_made() -> None:
    parents = tuple(Variable(f"p{i}", 2) for i in range(40))
    with pytest.raises(TooLarge, match="40 parents"):
        as_conditional(WET, parents, "uniform")
    with pytest.raises(TooLarge, match="NoisyOr"):
        as_conditional(WET, parents, lambda *states: 0.5)


def test_nearly_normalised_rows_are_kept_as_given() -> None:
    row = [0.3333333, 0.6666666]
    assert ConditionalTable(WET, (), row).values.tolist() == row


# -- using a table ------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000))
def test_log_prob_reads_the_entry_of_each_row(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = as_conditional(WET, PARENTS, "random", seed=rng)
    r, s, w = rng.integers(2, size=20), rng.integers(3, size=20), rng.integers(2, size=20)
    expected = [np.log(table.values[i, j, k]) for i, j, k in zip(r, s, w, strict=True)]
    np.testing.assert_allclose(table.log_prob(w, [r, s]), expected)


def test_log_prob_of_the_impossible_is_minus_infinity() -> None:
    table = ConditionalTable(WET, [RAIN], [[1, 0], [0, 1]])
    assert table.log_prob(np.array([1, 1]), [np.array([0, 1])]).tolist() == [-np.inf, 0]


def test_draws_follow_the_rows() -> None:
    table = ConditionalTable(SEASON, [RAIN], [[0.5, 0.3, 0.2], [0.0, 0.25, 0.75]])
    rng = np.random.default_rng(0)
    rain = rng.integers(2, size=60_000)
    drawn = table.sample([rain], 60_000, rng)
    for code in (0, 1):
        frequencies = np.bincount(drawn[rain == code], minlength=3) / (rain == code).sum()
        np.testing.assert_allclose(frequencies, table.values[code], atol=0.01)
    assert not np.any(drawn[rain == 1] == 0)


def test_a_root_draws_from_its_only_row() -> None:
    drawn = ConditionalTable(SEASON, (), [0.0, 0.6, 0.4]).sample([], 50_000, np.random.default_rng(1))
    np.testing.assert_allclose(np.bincount(drawn, minlength=3) / 50_000, [0, 0.6, 0.4], atol=0.01)


def test_a_table_is_a_factor_whose_rows_sum_to_one() -> None:
    table = ConditionalTable(WET, PARENTS, TABLE)
    assert table.factor().sum_out("wet").allclose(Factor(PARENTS, np.ones((2, 3))))
    np.testing.assert_allclose(table.row(rain="yes", season="wet"), [0.05, 0.95])


def test_tables_compare_up_to_the_order_of_parents() -> None:
    one = ConditionalTable(WET, PARENTS, TABLE)
    other = ConditionalTable(WET, PARENTS[::-1], np.swapaxes(np.array(TABLE), 0, 1))
    assert one.allclose(other)
    assert not one.allclose(as_conditional(WET, PARENTS, "uniform"))


def test_frames_round_trip() -> None:
    table = ConditionalTable(WET, PARENTS, TABLE)
    assert as_conditional(WET, PARENTS, table.to_pandas()).allclose(table)
    root = ConditionalTable(WET, (), [0.3, 0.7])
    assert as_conditional(WET, (), root.to_pandas()).allclose(root)


def test_rebinding_keeps_the_numbers() -> None:
    table = ConditionalTable(WET, [RAIN], [[0.9, 0.1], [0.2, 0.8]])
    moved = table.rebound(Variable("damp", [False, True]), (Variable("shower", 2),))
    assert moved.names == ("shower", "damp")
    assert moved.row(shower=1).tolist() == [0.2, 0.8]


def test_a_table_cannot_be_written_to() -> None:
    source = np.array([0.5, 0.5])
    table = ConditionalTable(WET, (), source)
    source[0] = 9
    assert table.values.tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        table.values[0] = 1.0


def test_large_tables_print_their_size() -> None:
    parents = tuple(Variable(f"p{i}", 2) for i in range(12))
    assert "4,096 rows x 2 states" in repr(as_conditional(WET, parents, "uniform"))


def test_one_row_a_configuration_of_the_parents_has_the_last_parent_fastest():
    bn = mk.BayesianNetwork()
    bn.add("a", states=2, p=[0.5, 0.5])
    bn.add("b", states=3, p=[0.2, 0.3, 0.5])
    rows = [[0.1, 0.9], [0.2, 0.8], [0.3, 0.7], [0.4, 0.6], [0.5, 0.5], [0.6, 0.4]]
    bn.add("c", parents=["a", "b"], p=rows)
    assert bn["c"].row(a=0, b=2).tolist() == [0.3, 0.7]
    assert bn["c"].row(a=1, b=0).tolist() == [0.4, 0.6]
    with pytest.raises(InvalidTable, match="looks transposed"):
        bn.replace("c", p=np.transpose(rows))
    with pytest.raises(InvalidTable, match=r"has shape \(5, 2\)"):
        bn.replace("c", p=rows[:5])


def test_rows_are_rescaled_only_where_asked():
    bn = mk.BayesianNetwork("a->b")
    for p in ([[3, 1], [2, 2]], {0: [3, 1], 1: {0: 2, 1: 2}}, lambda a: [3, 1] if a == 0 else [2, 2]):
        with pytest.raises(InvalidTable, match=r"sums to 4.*or say normalise=True"):
            bn.replace("b", p=p)
        bn.replace("b", p=p, normalise=True)
        assert bn["b"].values.tolist() == [[0.75, 0.25], [0.5, 0.5]]
    with pytest.raises(InvalidTable, match="for a=1 sums to 0"):
        bn.replace("b", p=[[3, 1], [0, 0]], normalise=True)
    with pytest.raises(InvalidTable):
        bn.replace("b", p=[[3, -1], [1, 1]], normalise=True)

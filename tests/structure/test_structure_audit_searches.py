"""Structure search: columns with many states, limits that are kept, rules that leave no room, options that are wrong."""

from itertools import combinations

import numpy as np
import pytest

import markovia as mk
from markovia.data.tables.reading_mixed import read_mixed
from markovia.structure.scores import pair_information, parent_set_scores, subset_likelihoods
from markovia.structure.scores.family_tables import FamilyTables
from markovia.structure.scores.score_bounds import bound_for
from markovia.structure.scores.scores import bind_score
from markovia.structure.task.knowledge import Knowledge


def rows_of(n, size, seed, states=3):
    rng = np.random.default_rng(seed)
    found = {}
    for v in range(n):
        pull = sum((2.0 * found[f"x{u}"] for u in range(v) if rng.random() < 0.5), np.zeros(size))
        noise = rng.logistic(size=size)
        found[f"x{v}"] = np.digitize(
            pull - np.mean(pull) + noise, np.linspace(-1, 1, states - 1) if states > 2 else [0.0]
        )
    return found


def by_hand(codes, cards, weights, child, parents, name):
    """Return BIC or BDeu (sample size 10) of one family from a dictionary of counts."""
    from scipy.special import gammaln

    cells, configurations = {}, {}
    for row, w in zip(codes.tolist(), weights.tolist(), strict=True):
        key = tuple(row[p] for p in parents)
        cells[key, row[child]] = cells.get((key, row[child]), 0.0) + w
        configurations[key] = configurations.get(key, 0.0) + w
    own, spread = float(cards[child]), float(np.prod([float(cards[p]) for p in parents]))
    if name == "bic":
        likelihood = sum(v * np.log(v / configurations[k]) for (k, _), v in cells.items() if v > 0)
        return likelihood - np.log(weights.sum()) / 2 * (own - 1) * spread
    a, b = 10 / (own * spread), 10 / spread
    inner = sum(gammaln(v + a) - gammaln(a) for v in cells.values())
    return inner - sum(gammaln(v + b) - gammaln(b) for v in configurations.values())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["bic", "bdeu"])
def test_compiled_scores_of_columns_with_more_states_than_rows(name, weighted, monkeypatch):
    from markovia.kernels.structure import family_scores

    monkeypatch.setattr(FamilyTables, "_kernel", lambda self, seconds: family_scores)
    rng = np.random.default_rng(4)
    cards = [3000, 2, 300, 5, 2000]
    for size in (5, 40, 700):
        codes = np.column_stack([rng.integers(0, min(c, 80), size) for c in cards])
        weights = rng.random(size) + 0.1 if weighted else np.ones(size)
        mixed = read_mixed(
            {f"x{v}": codes[:, v] for v in range(5)},
            states={f"x{v}": c for v, c in enumerate(cards)},
            weights=weights if weighted else None,
        )
        score = bind_score(name, mixed)
        for child in range(5):
            others = [v for v in range(5) if v != child]
            for k in range(4):
                for parents in list(combinations(others, k))[:3]:
                    expected = by_hand(codes, cards, weights, child, parents, name)
                    assert score.local(child, parents) == pytest.approx(expected, rel=1e-8, abs=1e-6)


def test_a_column_of_many_states_has_no_bit_planes(monkeypatch):
    from markovia.kernels.structure import family_scores

    monkeypatch.setattr(FamilyTables, "_kernel", lambda self, seconds: family_scores)
    mixed = read_mixed({"id": np.arange(20_000), "b": np.arange(20_000) % 2, "c": np.arange(20_000) % 3})
    score = bind_score("bic", mixed)
    assert score.local(1, (2,)) < score.local(1)
    assert score.local(1, (0,)) < score.local(1)
    assert len(score.tables._packed.rows.planes) == 1 + 2


def test_exact_search_does_without_counts_that_are_too_wide(monkeypatch):
    rows = rows_of(6, 300, 1)
    expected = mk.learn_structure(rows, "exact")
    monkeypatch.setattr(subset_likelihoods, "MOST_CELLS", 10)
    score = bind_score("bic", read_mixed(rows))
    assert bound_for(score).sums is None
    found = mk.learn_structure(rows, "exact")
    assert found.optimal
    assert found.score == pytest.approx(expected.score)
    bdeu = bind_score("bdeu", read_mixed(rows))
    assert bound_for(bdeu) is None
    assert mk.learn_structure(rows, "exact", score="bdeu").optimal


@pytest.mark.parametrize("score", ["bic", "aic", "bdeu"])
def test_parent_sets_in_small_pieces_are_the_same(score, monkeypatch):
    rows = rows_of(7, 400, 2, states=2)
    known = Knowledge(required=[("x0", "x3")], max_parents=4)
    expected = mk.learn_structure(rows, "exact", score=score, knowledge=known)
    monkeypatch.setattr(parent_set_scores, "PIECE", 2)
    found = mk.learn_structure(rows, "exact", score=score, knowledge=known)
    assert found.score == pytest.approx(expected.score)
    assert found.details.levels == expected.details.levels
    assert found.details.parent_sets == expected.details.parent_sets


def test_too_many_parent_sets_are_refused_in_the_middle_of_a_level(monkeypatch):
    monkeypatch.setattr(parent_set_scores, "PIECE", 8)
    seen = []
    whole = parent_set_scores._surviving
    monkeypatch.setattr(
        parent_set_scores,
        "_surviving",
        lambda f, level, b, fresh: seen.append(f.x) or whole(f, level, b, fresh),
    )
    with pytest.raises(mk.errors.TooLarge, match="families would have to be scored up to 2 free parents"):
        mk.learn_structure(rows_of(14, 500, 3, states=2), "exact", score="aic", max_families=220)
    assert max(seen) == 13  # the pairs were all looked at
    assert seen[-1] < 13  # but not the sets of two


def test_exact_search_that_is_stopped_at_once_has_climbed():
    rows = rows_of(14, 500, 5)
    stopped = mk.learn_structure(rows, "exact", time_limit=1e-9)
    assert stopped.stopped == "time limit"
    assert stopped.optimal is False
    assert stopped.bound is None
    assert stopped.details.gap is None
    assert stopped.score == pytest.approx(mk.score_graph(stopped, rows))


def test_exact_search_stopped_among_parent_sets_returns_no_worse_than_a_climb(monkeypatch):
    rows = rows_of(14, 500, 5)
    climbed = mk.learn_structure(rows, "hill-climb", climbs=1, walks=0)
    assert climbed.n_edges

    def cut(score, rules, clock, most):
        sets = [[tuple(np.flatnonzero(rules.required[:, x]).tolist())] for x in range(score.n)]
        scores = [np.array([score.local(x)]) for x in range(score.n)]
        return parent_set_scores.ParentSets(sets, scores, score.n, False, [score.n])

    monkeypatch.setattr("markovia.structure.exact.exact_search.scored_parent_sets", cut)
    found = mk.learn_structure(rows, "exact")
    assert found.score == pytest.approx(climbed.score)
    assert found.graph == climbed.graph
    assert found.path[-1].score == found.score
    assert not found.optimal
    assert found.bound is None


def test_mmhc_leaves_time_for_the_climb(monkeypatch):
    from markovia.structure.dag_search import mmhc

    monkeypatch.setattr(mmhc, "TESTING", 1e-12)
    rows = rows_of(5, 800, 6)
    found = mk.learn_structure(rows, "mmhc", time_limit=100.0)
    assert found.stopped == "time limit"
    assert "stopped before all candidates were tested" in found.notes[0]
    assert found.score == pytest.approx(mk.learn_structure(rows, "hill-climb").score)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("given", [None, "x2"])
def test_mutual_information_from_sums_is_that_from_tables(given, weighted, monkeypatch):
    rows = rows_of(6, 200, 7)
    weights = np.random.default_rng(1).random(200) if weighted else None
    table = read_mixed(rows, weights=weights).table
    names = [n for n in rows if n != given]
    expected = pair_information.table_information(table, names, given)
    monkeypatch.setattr(pair_information, "COMPILED_WORK", 0)
    found = pair_information.table_information(table, names, given)
    assert found == pytest.approx(expected, abs=1e-12)
    assert not pair_information.table_information(table, names, given, lambda: True).any()


def test_trees_that_are_stopped_say_so():
    rows = rows_of(5, 200, 8)
    for method, more in (("chow-liu", {}), ("tan", {"target": "x0"})):
        found = mk.learn_structure(rows, method, time_limit=1e-9, **more)
        assert found.stopped == "time limit"
        assert found.notes == ["stopped before all pairs were looked at"]


def test_tan_refuses_a_required_edge_that_leaves_no_room_for_the_class():
    rows = rows_of(4, 200, 9)
    with pytest.raises(mk.errors.InvalidArgument, match="max_parents is 1"):
        mk.learn_structure(rows, "tan", target="x0", required=[("x1", "x2")], max_parents=1)
    kept = mk.learn_structure(rows, "tan", target="x0", required=[("x1", "x2")], max_parents=2)
    assert ("x1", "x2") in kept.edges


def test_tan_of_the_class_alone_is_one_node():
    found = mk.learn_structure({"y": [0, 1, 1]}, "tan", target="y")
    assert found.nodes == ["y"]
    assert found.edges == []


def test_a_tier_that_is_no_number_is_refused():
    with pytest.raises(mk.errors.InvalidArgument, match="tier of 'a' is not a number"):
        Knowledge(tiers={"a": float("nan"), "b": 1})


def test_a_score_that_is_none_is_refused():
    rows = rows_of(3, 100, 10)
    with pytest.raises(mk.errors.InvalidArgument, match=r"write mk.scores.BDeu\(\)"):
        mk.learn_structure(rows, score=mk.scores.BDeu)
    with pytest.raises(mk.errors.InvalidArgument, match="score= is a name"):
        mk.learn_structure(rows, score=np.array([1.0, 2.0]))


def test_a_time_limit_may_be_a_number_of_numpy():
    rows = rows_of(3, 100, 11)
    assert mk.learn_structure(rows, time_limit=np.int64(50)).stopped is None
    assert mk.learn_structure(rows, time_limit=np.float32(50)).stopped is None


def test_too_few_rows_for_a_regression_are_named():
    rng = np.random.default_rng(0)
    rows = {f"v{i}": rng.normal(size=8) for i in range(12)}
    with pytest.raises(mk.errors.InvalidArgument, match="8 rows do not settle a regression"):
        mk.learn_structure(rows, "hill-climb")
    assert mk.learn_structure(rows, "hill-climb", max_parents=2).n_edges


def test_data_that_were_read_are_scored_with_a_model():
    found = mk.learn_structure(rows_of(4, 300, 12))
    assert mk.score_graph(found.fit(), found.data) == pytest.approx(found.score)


def test_a_graph_with_a_hidden_variable_is_fitted_with_it():
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 2, 300)
    rows = {name: hidden ^ (rng.random(300) < 0.2) for name in "abc"}
    found = mk.learn_structure(rows, "structural-em", latent={"L": 2}, seed=0)
    assert "L" in found.nodes
    assert set(found.fit().variables) == {"a", "b", "c", "L"}


def test_a_test_over_a_huge_table_is_refused_beforehand(monkeypatch):
    from markovia.kernels.structure import table_tests as kernel
    from markovia.structure.ci_tests import table_tests

    monkeypatch.setattr(table_tests, "_kernel_for", lambda *work: kernel)
    size = 40_000
    rows = {"id": np.arange(size), "other": np.arange(size)[::-1].copy(), "c": np.arange(size) % 3}
    with pytest.raises(mk.errors.TooLarge, match="needs a table of 1,600,000,000 cells"):
        mk.learn_structure(rows, "mmhc")


@pytest.mark.parametrize(
    "method", ["hill-climb", "tabu", "k2", "exact", "ges", "boss", "grasp", "order-search"]
)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_found_obeys_the_rules_and_has_the_score_it_says(method, seed):
    rng = np.random.default_rng([seed, 77])
    n = 5
    rows = rows_of(n, 150, seed)
    names = list(rows)
    order = rng.permutation(n)
    pairs = [(names[a], names[b]) for i, a in enumerate(order) for b in order[i + 1 :]]
    known = Knowledge(
        required=[p for p in pairs if rng.random() < 0.1][:2],
        forbidden=[p[::-1] for p in pairs if rng.random() < 0.3],
        max_parents=3,
    )
    rules = known.rules(names)
    weights = rng.integers(1, 4, 150).astype(float)
    more = {"order": [names[v] for v in order]} if method == "k2" else {}
    for score in ("bic", "bdeu", "qnml"):
        found = mk.learn_structure(
            rows, method, score=score, knowledge=known, weights=weights, seed=1, **more
        )
        there = np.zeros((n, n), dtype=bool)
        for a, b in found.dag.edges:
            there[names.index(a), names.index(b)] = True
        assert not (there & ~rules.allowed).any()
        assert not (rules.required & ~there).any()
        assert there.sum(axis=0).max() <= 3
        assert found.score == pytest.approx(mk.score_graph(found, rows, score, weights=weights))
        repeated = {name: np.repeat(column, weights.astype(int)) for name, column in rows.items()}
        states = {name: sorted(set(column.tolist())) for name, column in rows.items()}
        again = mk.learn_structure(
            repeated, method, score=score, knowledge=known, states=states, seed=1, **more
        )
        assert again.score == pytest.approx(found.score)

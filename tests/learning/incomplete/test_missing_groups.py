"""Groups of missing cells, and lists that are numbered by hashing."""

import numpy as np

import markovia as mk
from markovia.kernels import plain_code
from markovia.learning.incomplete.missing_groups import number_lists, split_rows


def test_missing_cells_hang_together_where_a_family_mentions_both():
    # families 0; 0 -> 1; 1 -> 2; 3
    codes = np.array([[-1, 0, -1, -1], [-1, -1, 0, -1], [-1, 1, -1, -1], [0, -1, -1, -1]], dtype=np.int8)
    used = np.array([True, True, True, False])
    groups = split_rows(codes, used, [[0], [0, 1], [1, 2], [3]])
    patterns = np.split(groups.member, groups.member_start[1:-1])
    found = [(int(r), patterns[p].tolist()) for r, p in zip(groups.row, groups.pattern, strict=True)]
    assert found == [(0, [0, 1, 2]), (1, [1]), (1, [3]), (2, [0]), (2, [2]), (2, [3])]


def test_rows_without_missing_cells_have_no_groups():
    groups = split_rows(np.zeros((2, 3), dtype=np.int8), np.ones(3, dtype=bool), [[0], [0, 1]])
    assert [len(part) for part in groups] == [0, 0, 1, 0]


def test_lists_are_equal_only_if_words_order_length_and_kind_are():
    lists = [[1, 2], [2, 1], [1, 2], [1], [], [1, 2, 0], [], [1, 2]]
    start = np.concatenate([[0], np.cumsum([len(x) for x in lists])])
    words = np.array([w for x in lists for w in x])
    number, first = number_lists(start, words, np.array([0, 0, 0, 0, 0, 0, 0, 1]))
    assert number.tolist() == [0, 1, 0, 2, 3, 4, 3, 5]
    assert first.tolist() == [0, 1, 3, 4, 5, 7]


def test_plain_and_compiled_expectations_are_the_same(monkeypatch):
    model = mk.examples.asia()
    rows = model.sample(60, seed=0).astype(object)
    rows = rows.mask(np.random.default_rng(0).random(rows.shape) < 0.3)
    found = []
    for compiled in (False, True):
        monkeypatch.setattr(plain_code, "worth_loading", lambda *_, compiled=compiled: compiled)
        found.append(mk.learning.expected_counts(model, rows))
    plain, fast = found
    assert np.isclose(plain.log_likelihood, fast.log_likelihood, rtol=1e-13)
    for a, b in zip(plain.counts, fast.counts, strict=True):
        assert np.allclose(a, b, rtol=1e-12, atol=1e-14)


def test_a_word_and_a_kind_that_change_places_make_another_list():
    number, first = number_lists(np.arange(10), np.array([1] * 6 + [0] * 3), np.array([0] * 6 + [1] * 3))
    assert number.tolist() == [0] * 6 + [1] * 3
    assert first.tolist() == [0, 6]

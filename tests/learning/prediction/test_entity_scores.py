import numpy as np
import pytest

import markovia as mk
from markovia.learning.prediction.entity_scores import entity_spans


@pytest.mark.parametrize(
    ("labels", "spans"),
    [
        ("O B-X I-X O", [("X", 1, 3)]),
        ("B-X B-X I-X", [("X", 0, 1), ("X", 1, 3)]),
        ("B-X I-Y", [("X", 0, 1), ("Y", 1, 2)]),  # an I of another kind begins a span
        ("I-X I-X O I-X", [("X", 0, 2), ("X", 3, 4)]),
        ("S-X B-Y I-Y E-Y E-Y", [("X", 0, 1), ("Y", 1, 4), ("Y", 4, 5)]),
        ("B-X E-X I-X", [("X", 0, 2), ("X", 2, 3)]),
        ("B I O B", [("", 0, 2), ("", 3, 4)]),
        ("O O", []),
        ("", []),
    ],
)  # fmt: skip
def test_spans_are_read_as_the_conll_scorer_reads_them(labels, spans):
    assert [tuple(s) for s in entity_spans(labels.split())] == spans


def test_scores_by_hand():
    true = [["B-PER", "I-PER", "O", "B-LOC"], ["B-PER", "O"], ["O", "B-LOC"]]
    found = [["B-PER", "I-PER", "O", "O"], ["B-PER", "I-PER"], ["B-ORG", "B-LOC"]]
    scores = mk.crf.entity_scores(true, found)
    assert scores.by_kind["PER"] == (0.5, 0.5, 0.5, 2)
    assert scores.by_kind["LOC"][:2] == (1.0, 0.5)
    assert scores.by_kind["ORG"] == (0.0, 0.0, 0.0, 0)
    assert scores.micro == (0.5, 0.5, 0.5, 4)
    assert scores.macro.f1 == pytest.approx((0.5 + 2 / 3 + 0) / 3)
    assert scores.f1 == 0.5
    assert "precision" in str(scores)


def test_numpy_labels_and_nothing_at_all():
    assert mk.crf.entity_scores([np.array(["B-X", "O"])], [np.array(["B-X", "O"])]).f1 == 1.0
    assert mk.crf.entity_scores([["O"]], [["O"]]).f1 == 0.0
    with pytest.raises(mk.errors.InvalidArgument, match="sequence 1 has 1 true labels and 2"):
        mk.crf.entity_scores([["O"], ["O"]], [["O"], ["O", "O"]])
    with pytest.raises(mk.errors.InvalidArgument, match="1 sequences of true labels and 2"):
        mk.crf.entity_scores([["O"]], [["O"], ["O"]])

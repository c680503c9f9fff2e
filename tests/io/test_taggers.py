"""Taggers are saved and loaded without loss."""

import numpy as np
import pytest

import markovia as mk

X = [[{"word": "the"}, {"word": "dog", "size": 2.5}, {"word": "barks"}], [{"word": "a"}, {"word": "dog"}]]
Y = [["B-N", "I-N", "O"], ["B-N", "I-N"]]


@pytest.mark.parametrize(
    ("model", "inputs", "labels"),
    [
        (mk.ChainCRF(l1=0.1, constraints="bio", C=np.inf), X, Y),
        (mk.ChainCRF(constraints=[("O", "O"), (None, "I-N")], start_end=True), X, Y),
        (mk.ChainCRF(), [np.eye(3), np.ones((2, 3))], [[0, 1, 1], [1, 0]]),
        (mk.MEMM(), X, Y),
        (mk.MEMM(l1=0.1), X, Y),
        (mk.crf.SegmentCRF(max_length=3), X, Y),
        (mk.crf.SegmentCRF(l1=0.1, C=np.inf), [np.eye(3), np.ones((2, 3))], [[("a", 2), ("a", 1)], [("b", 2)]]),
        (mk.MEMM(per_label=True, C=3.0), [np.eye(3), np.ones((2, 3))], [[False, True, True], [True, False]]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_a_tagger_survives_its_file(tmp_path, model, inputs, labels, suffix):
    model.fit(inputs, labels)
    model.save(tmp_path / f"tagger{suffix}")
    again = mk.load(tmp_path / f"tagger{suffix}", kind=type(model))
    np.testing.assert_array_equal(again.log_prob(inputs, labels), model.log_prob(inputs, labels))
    np.testing.assert_array_equal(again.coef_, model.coef_)
    np.testing.assert_array_equal(again.transitions_, model.transitions_)
    assert np.array_equal(getattr(again, "lengths_", 0), getattr(model, "lengths_", 0))
    assert again.classes_.dtype.kind == model.classes_.dtype.kind
    assert again.feature_names_ == model.feature_names_
    assert again.get_params() == model.get_params()
    assert [y.tolist() for y in again.predict(inputs)] == [y.tolist() for y in model.predict(inputs)]


def test_very_many_weights_stay_sparse_in_files(tmp_path, monkeypatch):
    for module in ("learning.conditional_fields.chain_objective", "io.native.native_taggers"):
        monkeypatch.setattr(f"markovia.{module}.MOST_DENSE", 0)
    model = mk.ChainCRF().fit(X, Y)
    model.save(tmp_path / "tagger.json")
    again = mk.load(tmp_path / "tagger.json")
    assert (again.coef_ != model.coef_).nnz == 0
    np.testing.assert_array_equal(again.log_prob(X, Y), model.log_prob(X, Y))


def test_an_unfitted_tagger_and_broken_files_are_refused(tmp_path):
    with pytest.raises(mk.errors.UnsupportedModel, match="fit"):
        mk.ChainCRF().save(tmp_path / "tagger.json")
    assert not (tmp_path / "tagger.json").exists()
    mk.ChainCRF().fit(X, Y).save(tmp_path / "tagger.json")
    text = (tmp_path / "tagger.json").read_text()
    for old, new, message in (
        ('"classes": ["B-N", "I-N", "O"]', '"classes": ["B-N", "I-N"]', "expected"),
        ('"solver"', '"solvent"', "settings of a ChainCRF"),
        ('"end": [', '"end": [1.0, ', "expected 3 numbers"),
        ('"weights": [\n[0,', '"weights": [\n[99,', "places below"),
    ):
        assert old in text
        (tmp_path / "broken.json").write_text(text.replace(old, new, 1))
        with pytest.raises(mk.errors.ParseError, match=message):
            mk.load(tmp_path / "broken.json")

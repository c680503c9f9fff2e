from math import log

import pytest

import markovia as mk
from markovia.learning import tf_idf, tf_idf_weights


def test_the_printed_weights():
    assert tf_idf(0.07, 1.0) == 0.0
    assert tf_idf(0.02, 0.0001) == pytest.approx(0.1842, abs=5e-5)


def test_a_word_in_every_document_weighs_nothing_and_a_rare_one_most():
    weights = tf_idf_weights([["a", "b", "b"], ["a", "c"], ["a"]])
    assert [w["a"] for w in weights] == [0.0, 0.0, 0.0]
    assert weights[0]["b"] == pytest.approx(2 / 3 * log(3))
    assert weights[1]["c"] == pytest.approx(1 / 2 * log(3))


@pytest.mark.parametrize(("tf", "df"), [(-0.1, 0.5), (1.1, 0.5), (0.5, 0.0), (0.5, 1.5)])
def test_what_is_no_share_is_refused(tf, df):
    with pytest.raises(mk.errors.InvalidArgument, match="shares"):
        tf_idf(tf, df)

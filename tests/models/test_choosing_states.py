"""Choosing the number of hidden states, and matching the states of two models."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument

TRUE = {
    "start": [0.4, 0.3, 0.3],
    "transition": [[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.1, 0.2, 0.7]],
    "emission_params": {"means": [[-6.0], [0.0], [6.0]], "covariances": [1.0, 1.0, 1.0]},
}
DATA = mk.HMM(3, emission="gaussian", **TRUE).sample(50, 10, seed=0)[0]


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["bic", "aic", "held-out", "cross-validation"])
@pytest.mark.filterwarnings("ignore::markovia.errors.ConvergenceWarning")
def test_every_criterion_finds_the_number_and_its_numbers_are_those_of_fits(criterion):
    hmm = mk.HMM(emission="gaussian", n_init=2, random_state=0)
    found = mk.series.choose_states(hmm, DATA, [1, 2, 3], criterion=criterion, seed=1, folds=3)
    assert found.n_states == 3
    assert found.best.n_states == 3
    assert list(found.to_pandas().columns) == ["n_states", criterion]
    one = mk.HMM(1, emission="gaussian", random_state=0).fit(DATA)
    if criterion == "bic":
        assert found.scores[0] == pytest.approx(one.bic(DATA))
    elif criterion == "aic":
        assert found.scores[0] == pytest.approx(one.aic(DATA))
    else:
        assert found.scores[0] == pytest.approx(one.score(DATA) / 500, abs=0.1)
    assert hmm.n_states == 1
    assert not hasattr(hmm, "means_")
    assert criterion in str(found)
    ax = found.plot()
    assert ax.get_xlabel() == "number of states"
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["best: 3"]
    plt.close(ax.figure)


def test_states_are_matched_whatever_they_are_called():
    one = mk.HMM(3, emission="gaussian", **TRUE)
    order = np.array([2, 0, 1])
    two = mk.HMM(
        3,
        emission="gaussian",
        start=np.array(TRUE["start"])[order],
        transition=np.array(TRUE["transition"])[np.ix_(order, order)],
        emission_params={name: np.array(v)[order] for name, v in TRUE["emission_params"].items()},
    )
    found = mk.series.compare_states(one, two, DATA)
    assert order[found.order].tolist() == [0, 1, 2]
    assert found.agreement == 1.0
    assert found.transition == pytest.approx(0.0, abs=1e-12)
    assert found.start == pytest.approx(0.0, abs=1e-12)


def test_bad_requests_are_refused():
    hmm = mk.HMM(emission="gaussian")
    with pytest.raises(InvalidArgument, match="at least one number"):
        mk.series.choose_states(hmm, DATA, [])
    with pytest.raises(InvalidArgument, match="criterion="):
        mk.series.choose_states(hmm, DATA, [1], criterion="bis")
    with pytest.raises(InvalidArgument, match="5 sequences or more, and there are 1"):
        mk.series.choose_states(hmm, DATA[0], [1], criterion="cross-validation")
    with pytest.raises(InvalidArgument, match="numbers= is a whole number"):
        mk.series.choose_states(hmm, DATA, [0])
    with pytest.raises(InvalidArgument, match="1 and 3"):
        mk.series.compare_states(mk.HMM(1), mk.HMM(3), DATA)


def test_predictions_have_the_shapes_of_hmmlearn():
    hmm = mk.HMM(3, emission="gaussian", **TRUE)
    X, lengths = np.concatenate(DATA), [50] * 10
    assert (hmm.predict(X, lengths) == np.concatenate(hmm.decode(DATA))).all()
    assert hmm.predict_proba(X, lengths).shape == (500, 3)
    assert hmm.score(X, lengths) == pytest.approx(hmm.log_prob(DATA).sum())

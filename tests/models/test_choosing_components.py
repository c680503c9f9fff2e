"""Choosing the number of components of any model that has one."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.base import BaseEstimator

import markovia as mk
from markovia.errors import InvalidArgument
from markovia.inference.collapsed.partition_posterior import PartitionPosterior

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(300, 2)) @ RNG.normal(size=(2, 6)) + 0.4 * RNG.normal(size=(300, 6))


@pytest.mark.parametrize("criterion", ["bic", "aic", "held-out", "cross-validation"])
def test_every_criterion_finds_two_factors_and_says_what_fits_say(criterion):
    settings = mk.mixtures.FactorAnalysis(tol=1e-5)
    found = mk.mixtures.choose_components(settings, ROWS, [1, 2, 3], criterion=criterion, seed=0)
    assert found.n_components == found.best.n_components
    assert (
        found.n_components == 2 if criterion == "bic" else found.n_components > 1
    )  # the others allow one too many
    assert list(found.to_pandas().columns) == ["n_components", criterion]
    one = mk.mixtures.FactorAnalysis(1, tol=1e-5).fit(ROWS)
    if criterion in ("bic", "aic"):
        assert found.scores[0] == pytest.approx(getattr(one, criterion)(ROWS))
    else:
        assert found.scores[0] == pytest.approx(one.score(ROWS), abs=0.3)
    assert settings.n_components is None
    ax = found.plot(title="factors")
    assert ax.get_xlabel() == "number of components"
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [f"best: {found.n_components}"]
    plt.close(ax.figure)


def test_held_out_scores_are_those_of_a_fit_by_hand():
    found = mk.mixtures.choose_components(
        mk.mixtures.FactorAnalysis(), ROWS, [2], criterion="held-out", held_out=0.25, seed=5
    )
    out = np.random.default_rng(5).permutation(300)[:75]
    learned = np.delete(ROWS, out, axis=0)
    assert found.scores[0] == pytest.approx(mk.mixtures.FactorAnalysis(2).fit(learned).score(ROWS[out]))


def test_frames_are_split_as_arrays_are():
    import pandas as pd

    frame = pd.DataFrame(ROWS, columns=list("abcdef"))
    one = mk.mixtures.choose_components(
        mk.mixtures.ProbabilisticPCA(), frame, [1, 2], criterion="cross-validation", seed=1
    )
    other = mk.mixtures.choose_components(
        mk.mixtures.ProbabilisticPCA(), ROWS, [1, 2], criterion="cross-validation", seed=1
    )
    assert one.scores == pytest.approx(other.scores, rel=1e-12)


def test_bad_requests_are_refused():
    with pytest.raises(InvalidArgument, match="needs a model with n_components, not KMeans"):
        mk.mixtures.choose_components(mk.KMeans(), ROWS, [1])
    with pytest.raises(InvalidArgument, match="FactorAnalysis has no icl; try criterion='held-out'"):
        mk.mixtures.choose_components(mk.mixtures.FactorAnalysis(), ROWS, [1], criterion="icl")
    with pytest.raises(InvalidArgument, match="at least one number of components"):
        mk.mixtures.choose_components(mk.mixtures.FactorAnalysis(), ROWS, [])
    with pytest.raises(InvalidArgument, match="held-out needs 2 rows or more, and there are 1"):
        mk.mixtures.choose_components(mk.mixtures.FactorAnalysis(), ROWS[:1], [1], criterion="held-out")


class DrawsPartitions(BaseEstimator):
    """Draws as a sampler without a number of components would have them: two clusters three times, three once."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y=None):
        self.posterior_ = PartitionPosterior(np.array([[0, 0, 1], [0, 1, 1], [0, 1, 0], [0, 1, 2]]))
        return self


def test_a_dirichlet_process_says_how_many_clusters_there_are():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(c, 0.3, (25, 1)) for c in (-4.0, 0.0, 4.0)])
    process = mk.DirichletProcessMixture(max_iter=60)
    found = mk.mixtures.choose_components(process, rows, range(1, 7), criterion="dirichlet-process", seed=0)
    assert found.n_components == 3
    assert found.scores[2] > 0.4
    assert sum(found.scores) <= 1.0 + 1e-12
    assert found.best.posterior_.n_clusters()[3] == pytest.approx(found.scores[2])


def test_a_posterior_over_partitions_says_how_probable_each_number_is():
    found = mk.mixtures.choose_components(
        DrawsPartitions(), ROWS[:3], [1, 2, 3], criterion="dirichlet-process", seed=0
    )
    assert found.scores == (0.0, 0.75, 0.25)
    assert found.n_components == 2
    assert isinstance(found.best, DrawsPartitions)
    ax = found.plot()
    assert ax.get_xlabel() == "number of clusters"
    plt.close(ax.figure)
    with pytest.raises(InvalidArgument, match="no clusters among numbers=; most probable are 2"):
        mk.mixtures.choose_components(DrawsPartitions(), ROWS[:3], [5], criterion="dirichlet-process")
    with pytest.raises(InvalidArgument, match=r"as mk.DirichletProcessMixture, not FactorAnalysis"):
        mk.mixtures.choose_components(mk.mixtures.FactorAnalysis(), ROWS, [1], criterion="dirichlet-process")


def test_the_number_of_topics_is_chosen_by_documents_that_were_not_learned_from():
    rng = np.random.default_rng(0)
    phi = rng.dirichlet(np.full(30, 0.05), 3)
    counts = np.array([rng.multinomial(60, t @ phi) for t in rng.dirichlet(np.full(3, 0.3), 120)])
    found = mk.mixtures.choose_components(
        mk.LDA(max_iter=60, random_state=0, progress=False), counts, [1, 3], criterion="held-out", seed=0
    )
    assert found.n_components == 3
    assert found.best.components_.shape == (3, 30)
    # the score is the log probability a word, of which the perplexity is the exponential
    assert np.exp(-found.scores[1]) < 30
    assert found.scores[1] > found.scores[0] + 0.1

"""Structured support vector machines for sequences (Taskar, Guestrin and Koller 2003; Tsochantaridis and others 2005).

A labelling with n wrong labels has to score n less than the right one: the least |w|^2 / C + sum of what is missing, found
by stochastic subgradients with the best labelling of each sequence (Viterbi). It is `ChainCRF` with `solver="max-margin"`.
Cost: as for likelihood, with a maximum in place of a sum. Use it where only the best labelling counts.
"""

from dataclasses import dataclass

from markovia.models.crf.chain_crf import ChainCRF, Solver
from markovia.runtime.checks import Positive


@dataclass(eq=False, repr=False, kw_only=True)
class StructuredSVM(ChainCRF):
    """A tagger with a margin between the right labelling and all others; settings and verbs are those of `ChainCRF`.

    The penalty is `||w||^2 / C`, so that `C` is twice that of `||w||^2 / 2 + C sum(slack)`. Scores are no log probabilities:
    `predict` and `k_best` go by them, `smooth` and `log_prob` read them as if they were.

    Examples
    --------
    >>> X = [[{"word": "the"}, {"word": "dog"}, {"word": "barks"}], [{"word": "a"}, {"word": "dog"}]]
    >>> Y = [["DET", "NOUN", "VERB"], ["DET", "NOUN"]]
    >>> StructuredSVM(random_state=0).fit(X, Y).predict([[{"word": "the"}, {"word": "dog"}]])[0].tolist()
    ['DET', 'NOUN']
    """

    solver: Solver = "max-margin"
    tol: Positive = 1e-4

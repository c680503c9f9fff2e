"""Linear-chain conditional random fields for sequences: tagging words, segmenting signals.

    P(y | x) = exp( s[y_1] + e[y_n] + sum_i W[y_i] . x_i + sum_i T[y_i, y_(i+1)] ) / Z(x)

Method: the chain case of `CRF` with weights for both ends; forward-backward and Viterbi are sum-product and
max-product rooted at one end. References: Lafferty, McCallum and Pereira (2001); Sutton and McCallum (2012).
Cost of one gradient: positions times (labels squared plus labels times features).
"""

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument
from markovia.learning.conditional_fields.marginals import Method
from markovia.learning.conditional_fields.reading import Inputs
from markovia.models.crf.crf import CRF, log_weights
from markovia.runtime.array_types import Array


class ChainCRF(CRF):
    """A linear-chain conditional random field for sequences, with weights for the first and the last label.

    Decoding is Viterbi's algorithm, marginals are forward-backward, both in compiled code over all sequences at once.

    Parameters
    ----------
    start_end
        Whether the first and last position have weights of their own.
    C, edge_C, l1, fit_intercept, inference, solver, max_iter, tol, batch_size, learning_rate, random_state, progress
        As in `CRF`.

    Attributes
    ----------
    transitions_
        The log weight of label b after label a, shape (labels, labels).
    start_, end_
        The log weight of each label at the first and last position.

    Examples
    --------
    >>> X = [[{"word": "the"}, {"word": "dog"}, {"word": "barks"}], [{"word": "a"}, {"word": "dog"}]]
    >>> Y = [["DET", "NOUN", "VERB"], ["DET", "NOUN"]]
    >>> tagger = ChainCRF().fit(X, Y)
    >>> tagger.predict([[{"word": "the"}, {"word": "cat"}]])[0].tolist()
    ['DET', 'NOUN']
    """

    def __init__(
        self,
        *,
        start_end: bool = True,
        C: float = 2.0,  # noqa: N803
        edge_C: float | None = None,  # noqa: N803
        l1: float = 0.0,
        fit_intercept: bool = True,
        inference: Method = "auto",
        solver: Literal["lbfgs", "sgd"] = "lbfgs",
        max_iter: int = 500,
        tol: float = 1e-5,
        batch_size: int = 16,
        learning_rate: float = 0.2,
        random_state: Any = None,
        progress: bool | None = None,
    ) -> None:
        super().__init__(
            "chain",
            C=C,
            edge_C=edge_C,
            l1=l1,
            fit_intercept=fit_intercept,
            inference=inference,
            solver=solver,
            max_iter=max_iter,
            tol=tol,
            batch_size=batch_size,
            learning_rate=learning_rate,
            random_state=random_state,
            progress=progress,
        )
        self.start_end = start_end

    def _extra(self, inputs: Inputs) -> Array | None:
        if not self.start_end:
            return None
        ends = np.zeros((int(inputs.node_ptr[-1]), 2))
        full = np.diff(inputs.node_ptr) > 0
        ends[inputs.node_ptr[:-1][full], 0] = 1.0
        ends[inputs.node_ptr[1:][full] - 1, 1] = 1.0
        return ends

    def _take_weights(self, node: Array, edge: Array, vocabulary: dict[str, int] | None) -> None:
        super()._take_weights(node, edge, vocabulary)
        if self.start_end:
            self.start_, self.end_ = self.coef_[:, -2], self.coef_[:, -1]
            self.coef_ = self.coef_[:, :-2]
        else:
            self.start_ = self.end_ = np.zeros(len(node))
        self.transitions_ = edge[0]

    def _node_weights(self) -> Array:
        return np.column_stack([self.coef_, self.start_, self.end_]) if self.start_end else self.coef_

    @classmethod
    def from_weights(
        cls,
        classes: ArrayLike,
        coef: ArrayLike,
        edge_coef: ArrayLike,
        intercept: ArrayLike | None = None,
        **settings: Any,
    ) -> Self:
        """Build a chain from known weights; settings may have `start` and `end`, one weight a label."""
        start, end = settings.pop("start", None), settings.pop("end", None)
        made = super().from_weights(classes, coef, edge_coef, intercept, **settings)
        order = np.argsort(np.asarray(classes))
        zero = np.zeros(len(order))
        for what, given in (("start", start), ("end", end)):
            if given is not None and log_weights(given, f"{what}=").shape != zero.shape:
                raise InvalidArgument(
                    f"{what}= has one weight a label, {len(order)}, not shape {np.shape(given)}"
                )
        made.start_ = zero if start is None else np.asarray(start, dtype=np.float64)[order]
        made.end_ = zero if end is None else np.asarray(end, dtype=np.float64)[order]
        made.transitions_ = made.edge_coef_[0]
        return made

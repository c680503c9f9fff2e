"""Linear Gaussian state-space models: hidden states that move linearly, seen through linear observations.

    x[t+1] = A x[t] + b + N(0, Q),  y[t] = C x[t] + d + N(0, R),  x[0] ~ N(m, P)

Answers are the Kalman filter's and smoother's (`markovia.inference.sequences.kalman_filter`); learning is
expectation-maximisation (`markovia.learning.sequences.state_space_em`). References: Kalman (1960); Durbin and Koopman,
Time Series Analysis by State Space Methods (2012).
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from markovia.data.sequences.sequences import Lengths
from markovia.errors import InvalidArgument
from markovia.inference.sequences.kalman_filter import Form
from markovia.inference.sequences.state_space import StateSpace, state_space
from markovia.learning.sequences.state_space_em import LEARNED, fit_em, free_entries
from markovia.learning.sequences.state_space_gradient import fit_gradient
from markovia.models.temporal.kalman_model import KalmanModel
from markovia.models.temporal.state_space_model import CountedStateSpace, entries_of
from markovia.runtime.checks import Count, TimeLimit, Tolerance, check_options
from markovia.runtime.keyword_advice import guided, guided_settings


@guided_settings
@dataclass(eq=False, repr=False)
class LinearStateSpace(CountedStateSpace, KalmanModel):
    """A linear Gaussian state-space model.

    Parameters
    ----------
    transition
        The matrix that moves a state to the next; like all matrices but the first state's, one for all steps or one a
        step of a sequence.
    transition_cov
        The covariance of what is added to a state on its way.
    observation
        The matrix that turns a state into its observation.
    observation_cov
        The covariance of the observation's noise.
    initial_mean, initial_cov
        Of a sequence's first state; zero, and infinite variances: a diffuse start, treated exactly. Single variances may
        be infinite too.
    transition_offset, observation_offset
        Added to the next state and to the observation.
    transition_input, observation_input
        Matrices that turn a step's `inputs=` into more of the same.
    form
        "covariance"; "square-root", which carries roots of covariances through the filter; or "information", which carries
        precisions, so that `filter` and `log_prob` may start from no knowledge at all and `filter` has `precision` and
        `information` too. Other answers are those of "covariance" then.
    learn
        What `fit` learns: names of the parameters above, or a mapping from names to masks of entries. Everything but
        offsets and inputs by default.
    method
        How `fit` learns: "em" for expectation-maximisation, or "gradient" for a quasi-Newton search of the greatest
        likelihood, for a few free entries, with standard errors.
    max_iter, tol
        `fit` stops after so many iterations, or when the log likelihood rises by less than this a number observed.
    progress
        Whether `fit` shows a progress bar; by default on a terminal if it takes long.
    time_limit
        Seconds after which "em" ends with what it has; Ctrl-C does so too.

    Attributes
    ----------
    transition_, transition_cov_, observation_, observation_cov_, initial_mean_, initial_cov_, transition_offset_, \
observation_offset_
        What was learned.
    log_likelihoods_, n_iter_, converged_
        The log likelihood before each iteration (with "gradient", at the start and at the end), how many there were, and
        whether they settled.
    standard_errors_
        With "gradient", for each learned matrix those of its entries, from the observed information; NaN where an entry is
        fixed, where a variance is zero, or where the data do not tell an entry apart from others.

    Examples
    --------
    >>> level = LinearStateSpace(transition=1, transition_cov=0.5, observation=1, observation_cov=1, initial_cov=10)
    >>> y = [1.0, 1.5, np.nan, 3.0]
    >>> level.smooth(y).mean[0][:, 0].round(3).tolist()
    [1.387, 1.65, 1.987, 2.325]
    >>> level.forecast(y, 2).mean[0][:, 0].round(3).tolist()
    [2.325, 2.325]
    """

    transition: ArrayLike = 1.0
    transition_cov: ArrayLike = 1.0
    observation: ArrayLike = 1.0
    observation_cov: ArrayLike = 1.0
    initial_mean: ArrayLike | None = None
    initial_cov: ArrayLike | None = None
    _: KW_ONLY
    transition_offset: ArrayLike | None = None
    observation_offset: ArrayLike | None = None
    transition_input: ArrayLike | None = None
    observation_input: ArrayLike | None = None
    form: Form = "covariance"
    learn: Sequence[str] | Mapping[str, Any] | None = None
    method: Literal["em", "gradient"] = "em"
    max_iter: Count = 100
    tol: Tolerance = 1e-6
    time_limit: TimeLimit = None
    progress: bool | None = None

    def _given(self) -> StateSpace:
        return state_space(
            self.transition,
            self.transition_cov,
            self.observation,
            self.observation_cov,
            self.initial_mean,
            self.initial_cov,
            self.transition_offset,
            self.observation_offset,
        )

    # -- learning ----------------------------------------------------------------------------------------------

    @guided
    def fit(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None
    ) -> Self:
        """Learn the matrices that `learn` names by greatest likelihood, from those given on.

        Examples
        --------
        >>> y = LinearStateSpace(0.8, 0.5, 1, 1, 0, 1).sample(500, seed=0)[0]
        >>> model = LinearStateSpace(0.5, 1, 1, 1, 0, 1, method="gradient", tol=1e-8,
        ...     learn=["transition", "transition_cov", "observation_cov"]).fit(y)
        >>> bool(abs(model.transition_[0, 0] - 0.8) < 2 * model.standard_errors_["transition"][0, 0])
        True
        """
        check_options(self)
        start = self._given()
        rows, known = self._read(sequences, lengths, by, inputs)
        push = self._pushes(rows, known)
        data = (start, rows.numbers(), rows.offsets, self._learned(start))
        how: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol, "form": self.form, "at": rows.at}
        how |= {"transition_push": push[0], "observation_push": push[1]}
        if self.method == "gradient":
            best = fit_gradient(*data, **how)
            self._keep(best.space)
            self.log_likelihoods_, self.converged_ = best.log_likelihoods, best.converged
            self.standard_errors_, self.n_iter_ = best.standard_errors, best.iterations
        else:
            found = fit_em(*data, time_limit=self.time_limit, progress=self.progress, **how)
            self._keep(found.state)
            self.log_likelihoods_, self.converged_ = found.history, found.converged
            self.n_iter_ = len(found.history)
            self.__dict__.pop("standard_errors_", None)
            found.warn(self.tol)
        self.n_seen_ = self._counted(rows)
        return self

    def _keep(self, space: StateSpace) -> None:
        """Hold matrices as what was learned."""
        self._space_ = space
        for one in fields(StateSpace):
            value = getattr(space, one.name)
            if one.name == "initial_cov":
                value = value + np.diag(np.where(space.diffuse, np.inf, 0.0))
            if one.name != "diffuse":
                single = not one.name.startswith("initial") and len(value) == 1
                setattr(self, f"{one.name}_", value[0] if single else value)

    def _values(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        space = self.space
        named = {name: getattr(space, name) for name in LEARNED}
        named["initial_cov"] = space.initial_cov + np.diag(np.where(space.diffuse, np.inf, 0.0))
        plain = {
            name: x[0] if len(x) == 1 and not name.startswith("initial") else x for name, x in named.items()
        }
        known = vars(self)
        errors = {
            n: e
            for n, e in known.get("standard_errors_", {}).items()
            if n in plain and np.shape(e) == plain[n].shape
        }
        return plain, errors

    @property
    def n_free(self) -> int:
        """The number of free parameters: the entries of matrices that `learn` names."""
        space = self._given()
        return sum(entries_of(n, mask) for n, mask in free_entries(space, self._learned(space)).items())

    def _learned(self, space: StateSpace) -> Mapping[str, Any]:
        if isinstance(self.learn, Mapping):
            return self.learn
        if self.learn is not None:
            if isinstance(self.learn, str):
                raise InvalidArgument(
                    f"learn= is a list of names or a mapping from names to masks, not {self.learn!r}"
                )
            return dict.fromkeys(self.learn, True)
        moves = len(space.transition) == len(space.transition_cov) == len(space.transition_offset) == 1
        shows = len(space.observation) == len(space.observation_cov) == len(space.observation_offset) == 1
        return {
            name: True
            for name in LEARNED
            if name.startswith("initial") or (moves if name.startswith("transition") else shows)
        }

    def _input_matrices(self) -> dict[str, Any]:
        return {"transition_input": self.transition_input, "observation_input": self.observation_input}

"""Hidden semi-Markov models: states that last for a while drawn from a distribution of their own.

    p(visits, x) = p(z_0) prod_i p(z_i | z_i-1) p(d_i | z_i) prod_t p(x_t | state of the visit)

A hidden Markov model leaves a state with the same probability at each step, so its visits have geometric lengths; here
they have any. Reference: Yu (2010). Cost of an answer: steps times states times (states plus the longest duration).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from markovia.data.sequences.sequences import Sequences
from markovia.errors import IncompleteModel, InvalidArgument, UnsupportedModel
from markovia.learning.components.families import Components
from markovia.learning.components.tied import expanded
from markovia.learning.sequences.baum_welch import Algorithm, started_chain
from markovia.learning.sequences.durations import DURATIONS, Durations
from markovia.learning.sequences.semi_markov import SemiMarkov
from markovia.learning.sequences.transition_masks import allowed_moves, fixed_moves
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork
from markovia.models.temporal.hmm import HMM
from markovia.models.temporal.state_questions import ChainData
from markovia.models.temporal.unrolled_hmm import two_slices_durations, unrolled_durations
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, Decay
from markovia.runtime.keyword_advice import guided_settings


@guided_settings
@dataclass(eq=False, repr=False, kw_only=True)
class HiddenSemiMarkov(HMM):
    """A hidden Markov model with explicit durations; settings and verbs are those of `HMM` but for these.

    Parameters
    ----------
    durations
        The distributions of the lengths of visits: "poisson" and "negative-binomial" (of the steps after the first),
        "geometric", or "categorical" (any); all up to `max_duration`, over which they add up to 1.
    max_duration
        The longest visit. A state that cannot be left may be visited again and again.
    duration_params
        Known values, or those that learning begins with: {"rates"} for "poisson" and "geometric" (the mean number of steps
        after the first), with {"sizes"} for "negative-binomial"; {"probs"} (states, max_duration) for "categorical".
    censored
        Whether the last visit may go on after the end of a sequence; else it ends there.
    transition
        The distribution of the state after each visit; the diagonal is zero.

    Attributes
    ----------
    durations_
        The learned durations: `durations_.params`, and `durations_.logs` by state and length.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> series = np.concatenate([rng.normal(3 * (i % 2), 1, n) for i, n in enumerate(rng.poisson(9, 60) + 1)])
    >>> regimes = HiddenSemiMarkov(2, emission="gaussian", max_duration=30, random_state=0).fit(series)
    >>> regimes.expected_durations().round().tolist()
    [10.0, 11.0]
    """

    durations: Literal["poisson", "negative-binomial", "geometric", "categorical"] = "poisson"
    max_duration: Count = 50
    duration_params: Mapping[str, Any] | None = None
    censored: bool = True
    # a chain of visits has none of these settings of other chains
    algorithm: Algorithm = field(default="baum-welch", init=False)
    batch_size: Count = field(default=32, init=False)
    learning_decay: Decay = field(default=0.7, init=False)
    order: int = field(default=1, init=False)
    lags: int = field(default=0, init=False)
    inputs_to: Literal["both", "transitions", "emissions"] = field(default="both", init=False)
    input_penalty: float = field(default=0.0, init=False)
    _counts = False
    _takes_inputs = False

    def expected_durations(self) -> Array:
        """Return how many steps a visit of each state lasts on average."""
        durations: Durations = self._model().durations
        return durations.means

    def unroll(self, T: int, *, inputs: Any = None) -> BayesianNetwork:  # noqa: N803
        """Return the network of T steps: states `z0`, ..., the steps `c0`, ... that a visit still lasts, and `x0`, ...

        The last visit may go on; where it ends with the sequence, the last `c` is 1.

        Examples
        --------
        >>> coin = HiddenSemiMarkov(2, start=[1, 0], transition=[[0, 1], [1, 0]], max_duration=2,
        ...     durations="categorical", duration_params={"probs": [[0, 1], [1, 0]]}, emission_params={"probs": np.eye(2)})
        >>> coin.unroll(2).variables
        ['z0', 'c0', 'z1', 'c1', 'x0', 'x1']
        """
        model = self._model()
        lengths = np.exp(model.durations.logs)
        return unrolled_durations(model.start, model.transition, lengths, expanded(model.emission), T)

    def network(self) -> DynamicBayesianNetwork:
        """Return the dynamic network with `z`, the steps `c` that a visit still lasts, and observations `x`."""
        model = self._model()
        lengths = np.exp(model.durations.logs)
        return two_slices_durations(model.start, model.transition, lengths, expanded(model.emission))

    # -- inside ------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        super()._check()
        self._given_durations()

    def _fixed_moves(self) -> Array | None:
        k = self.n_states
        stay = np.eye(k, dtype=bool)
        allowed = allowed_moves(self.structure, k, self.band) & ~stay
        if self.transition_mask is None:
            # a visit is not followed by one of the same state, but for a state that no move leaves
            allowed |= stay & ~allowed.any(axis=1, keepdims=True)
            return np.where(allowed, np.nan, 0.0)
        given = np.array(self.transition_mask, dtype=np.float64)
        if given.shape == (k, k):
            given[stay & (np.isnan(given) | ((given == 1.0) & (given.sum(axis=1, keepdims=True) > 1.0)))] = (
                0.0
            )
        return fixed_moves(self.structure, k, self.band, given)

    def _given_durations(self) -> Durations | None:
        if self.duration_params is None:
            return None
        family, given = DURATIONS[self.durations], dict(self.duration_params)
        if set(given) != set(family.names):
            raise InvalidArgument(
                f"duration_params= of {self.durations!r} has {', '.join(family.names)}, not "
                f"{', '.join(given) or 'nothing'}"
            )
        return family.of(self.n_states, self.max_duration, given)

    def _law(
        self,
        rng: np.random.Generator,
        start: Array | None,
        transition: Array | None,
        emission: Components,
        inputs: int = 0,
    ) -> SemiMarkov:
        durations = self._given_durations()
        if durations is None:
            durations = DURATIONS[self.durations].started(self.n_states, self.max_duration, rng)
        begun = started_chain(self.n_states, rng, start, transition, self._fixed_moves())
        return SemiMarkov(*begun, durations, emission, self.censored)

    def _keep(self, model: Any) -> None:
        self.__dict__.update(startprob_=model.start, transmat_=model.transition, emission_=model.emission)
        self.durations_ = model.durations

    def _prepared(self, data: Sequences, runs: int, rng: np.random.Generator) -> Any:
        raise UnsupportedModel("a mixture has chains or plain HMMs for parts, without explicit durations")

    def _model(self) -> Any:
        if "emission_" in vars(self):
            return SemiMarkov(self.startprob_, self.transmat_, self.durations_, self.emission_, self.censored)
        self._check()
        (start, transition), emission = self._given_chain(), self._given_emission()
        durations = self._given_durations()
        if start is None or transition is None or emission is None or durations is None:
            raise IncompleteModel(
                "this model has no values yet; call fit(sequences), or give start=, transition=, duration_params= and "
                "emission_params="
            )
        return SemiMarkov(start, transition, durations, emission, self.censored)

    @property
    def n_free(self) -> int:
        """The number of free parameters."""
        return int(self._model().n_free(self._fixed_moves()))

    def _ahead(self, asked: ChainData, now: Array, steps: int, future: Any) -> Array:
        found: Array = self._model().ahead(asked.seen, steps)
        return found

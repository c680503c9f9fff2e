"""Factorial hidden Markov models: chains that move on their own and are seen together.

    p(z, x) = prod_i p(z_i) prod_t p(x_t | z_1,t ... z_m,t)

References: Ghahramani and Jordan (1997). Cost of an exact answer: steps times the square of the number of joint states; by
structured mean field: turns times steps times the squares of the chains' own states.
"""

from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal

import numpy as np

from markovia.data.sequences.sequences import Lengths, Sequences
from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.inference.result import Info
from markovia.inference.sequences.hidden_chain import HiddenChain
from markovia.inference.sequences.state_results import DecodedPaths
from markovia.learning.components.discrete import Categorical
from markovia.learning.components.families import Components, Observations, parameter, probabilities
from markovia.learning.components.gaussian import Gaussian
from markovia.learning.sequences.baum_welch import LearnedChain
from markovia.learning.sequences.factorial_em import learn_by_mean_field, mean_field
from markovia.learning.sequences.joint_chains import AdditiveGaussian, JointChains
from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork
from markovia.models.temporal.joint_hmm import MOST, JointHMM
from markovia.models.temporal.sequence_model import GivenSequences
from markovia.optimise.ascent import Climb
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_options


@dataclass(eq=False, repr=False, kw_only=True)
class FactorialHMM(JointHMM):
    """Hidden chains that move on their own and are seen together.

    Parameters
    ----------
    n_states
        The number of states of each chain.
    emission
        "gaussian", with a mean that is the sum of a row of each chain, or "categorical", a table of the joint state.
    start, transition
        The start and the transition of each chain, in lists; known, or to begin with.
    emission_params
        {"means"} (a list with an array (states, columns) for each chain) and {"covariance"}, or {"probs"}, an array with
        an axis for each chain and one for symbols 0, 1, ...
    method
        "exact", by the chain of joint states, of which there may be 2,000; "mean-field", where each chain keeps a
        posterior of its own and `log_prob` and `history_` are lower bounds (Gaussian emissions); "auto" is exact where that
        may be. `explain` says which it was, how far it came and what the bound is.
    max_iter, tol, n_init, random_state, progress, time_limit
        As in `HMM`.

    Attributes
    ----------
    startprob_, transmat_, emission_
        The learned chains, in tuples, and emissions.
    n_iter_, history_, converged_
        As in `HMM`.

    Examples
    --------
    >>> loads = FactorialHMM([2, 2], start=[[1, 0], [1, 0]], transition=[[[0.9, 0.1], [0.1, 0.9]]] * 2,
    ...     emission_params={"means": [[[0.0], [1.0]], [[0.0], [5.0]]], "covariance": [[0.1]]})
    >>> loads.decode([0.1, 1.0, 1.1, 6.2, 5.1])[0].tolist()
    [[0, 0], [1, 0], [1, 0], [1, 1], [0, 1]]
    """

    method: Literal["auto", "exact", "mean-field"] = "auto"

    def _log_prob(self, given: GivenSequences) -> Array:
        if not self._approximate:
            return super()._log_prob(given)
        model, _, seen = self._seen(given)
        return mean_field(model, seen).bounds

    def filter(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None
    ) -> list[tuple[Array, ...]]:
        """Return p(z_t | x_0 ... x_t) of each chain, one tuple of arrays (steps, states) a sequence."""
        if self._approximate:
            raise UnsupportedModel(
                "mean field answers about whole sequences; smooth(x[:t]) has the states at step t given those before"
            )
        return super().filter(sequences, lengths, by=by)

    def smooth(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None
    ) -> list[tuple[Array, ...]]:
        """Return p(z_t | x) of each chain, one tuple of arrays (steps, states) a sequence."""
        if not self._approximate:
            return super().smooth(sequences, lengths, by=by)
        model, data, seen = self._seen(self._read(sequences, lengths, by))
        probs = mean_field(model, seen).probs
        return list(zip(*(data.split(one) for one in probs), strict=True))

    def decode(self, sequences: Any, lengths: Lengths = None, *, by: str | None = None) -> DecodedPaths:
        """Return the most probable states, one array (steps, chains) a sequence.

        They are those of all chains together; by mean field those of each chain in its own posterior.
        """
        if not self._approximate:
            return super().decode(sequences, lengths, by=by)
        model, data, seen = self._seen(self._read(sequences, lengths, by))
        given = mean_field(model, seen).seen
        chains = zip(model.starts, model.transitions, given, strict=True)
        paths = [HiddenChain(start, table).best(own)[0] for start, table, own in chains]
        return DecodedPaths(data.split(np.stack(paths, axis=1)))

    def explain(self, sequences: Any, lengths: Lengths = None, *, by: str | None = None) -> Info:
        """Return how sequences are answered: by which method, exactly or not, and log p or the bound on it.

        Examples
        --------
        >>> loads = FactorialHMM([2, 2], start=[[1, 0], [1, 0]], transition=[[[0.9, 0.1], [0.1, 0.9]]] * 2,
        ...     emission_params={"means": [[[0.0], [1.0]], [[0.0], [5.0]]], "covariance": [[0.1]]}, method="mean-field")
        >>> said = loads.explain([0.1, 1.0, 1.1, 6.2, 5.1])
        >>> said.engine, said.exact, said.mass_bound, said.converged
        ('structured mean field', False, 'lower', True)
        """
        begun = perf_counter()
        given = self._read(sequences, lengths, by)
        model, _, seen = self._seen(given)
        joint = int(np.prod(model.sizes, dtype=float))
        if not self._approximate:
            found = super()._log_prob(given)
            return Info(
                "joint states", exact=True, log_evidence=float(found.sum()), seconds=perf_counter() - begun
            )
        field = mean_field(model, seen)
        return Info(
            "structured mean field",
            exact=False,
            converged=field.converged,
            iterations=field.turns,
            log_evidence=float(field.bounds.sum()),
            mass_bound="lower",
            advice="" if field.converged else "more turns may raise the bound",
            note=f"{joint:,} joint states; exact answers are for up to {MOST:,}"
            if self.method == "auto"
            else "",
            seconds=perf_counter() - begun,
        )

    # -- inside ------------------------------------------------------------------------------------------------

    @property
    def _approximate(self) -> bool:
        check_options(self)
        many = float(np.prod(self.n_states, dtype=float)) > MOST
        return self.method == "mean-field" or (self.method == "auto" and many)

    def _check_size(self, joint: float) -> None:
        if not self._approximate:
            super()._check_size(joint)
        elif self.emission == "categorical":
            raise InvalidArgument(
                f"n_states= makes {int(joint):,} joint states; mean field is for 'gaussian' emissions, and symbols are "
                f"answered exactly up to {MOST:,}, with method='exact' or 'auto'"
            )

    def _learn(
        self, model: JointChains, seen: Observations, data: Sequences, progress: bool | None
    ) -> Climb[LearnedChain]:
        if not self._approximate:
            return super()._learn(model, seen, data, progress)
        return learn_by_mean_field(model, seen, max_iter=self.max_iter, tol=self.tol, progress=progress)

    def network(self) -> DynamicBayesianNetwork:
        """Return the dynamic network with states `z_0`, `z_1`, ... and what is seen: `x`, or `x_0`, `x_1`, ... by column.

        Examples
        --------
        >>> loads = FactorialHMM([2, 2], start=[[1, 0], [1, 0]], transition=[[[0.9, 0.1], [0.1, 0.9]]] * 2,
        ...     emission_params={"means": [[[0.0], [1.0]], [[0.0], [5.0]]], "covariance": [[0.1]]})
        >>> round(loads.network().query("z_1@1", given={"x@0": 0.1, "x@1": 6.2})[1], 6)
        1.0
        """
        super()._check_size(
            float(np.prod(self._sizes(), dtype=float))
        )  # the law of x has one entry a joint state
        return super().network()

    def _observations(self, data: Sequences, emission: Any = None) -> Observations:
        if self.emission == "gaussian":
            return Gaussian.read(data)
        symbols = Categorical.symbols_in(data) if emission is None else emission.symbols
        return Categorical(np.empty((0, len(symbols))), symbols).read(data)

    def _given_emission(self) -> Components | None:
        sizes = self._sizes()
        if self.emission == "categorical":
            found = self._named("probs")
            if found is None:
                return None
            probs = np.asarray(found[0], dtype=np.float64)
            checked = probabilities(probs, "emission_params['probs']", (*sizes, None))
            return Categorical.of(int(np.prod(sizes)), {"probs": checked.reshape(-1, checked.shape[-1])})
        found = self._named("means", "covariance")
        if found is None:
            return None
        covariance = parameter(found[1], "emission_params['covariance']", (None, None))
        d = len(covariance)
        if len(found[0]) != len(sizes):
            raise InvalidArgument(
                f"emission_params['means'] has an array for each of the {len(sizes)} chains"
            )
        means = [
            parameter(one, f"emission_params['means'][{i}]", (sizes[i], d)) for i, one in enumerate(found[0])
        ]
        if not np.allclose(covariance, covariance.T) or np.linalg.eigvalsh(covariance)[0] <= 0.0:
            raise InvalidArgument("emission_params['covariance'] is not symmetric and positive definite")
        return AdditiveGaussian(tuple(means), covariance)

    def _started(self, seen: Observations, rng: np.random.Generator) -> Components:
        sizes = self._sizes()
        if self.emission == "categorical":
            return Categorical(
                rng.dirichlet(np.ones(len(seen.rows)), int(np.prod(sizes))), tuple(range(len(seen.rows)))
            )
        spread, centre = seen.rows.std(axis=0), seen.rows.mean(axis=0) / len(sizes)
        means = [
            centre + spread * rng.normal(size=(n, seen.rows.shape[1])) / np.sqrt(len(sizes)) for n in sizes
        ]
        return AdditiveGaussian(tuple(means), np.diag(np.where(spread > 0.0, spread, 1.0) ** 2))

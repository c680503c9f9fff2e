"""Coupled hidden Markov models, and what they share with factorial ones: several hidden chains behind one series.

In a coupled model each chain emits a column of its own, and its next state depends on the states of all chains.
Reference: Brand, Oliver and Pentland (1997). Cost of an answer: steps times the square of the
number of joint states.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Annotated, Any, Literal, Self

import numpy as np

from markovia.data.sequences.sequences import Lengths, Sequences
from markovia.errors import IncompleteModel, InvalidArgument
from markovia.inference.sequences.state_results import DecodedPaths
from markovia.learning.components.discrete import Categorical, chosen
from markovia.learning.components.families import Components, Observations, distinct, probabilities
from markovia.learning.components.gaussian import Gaussian
from markovia.learning.sequences.baum_welch import LearnedChain, Priors, learn, refuse
from markovia.learning.sequences.joint_chains import ByChain, JointChains, members
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork
from markovia.models.temporal.hidden_states.component_nodes import add_components, column_names
from markovia.models.temporal.sequence_model import CountedSequenceModel, GivenSequences
from markovia.optimise.ascent import Climb, best_climb
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, Several, TimeLimit, Tolerance, Whole, check_options
from markovia.runtime.clock import Clock
from markovia.runtime.estimator import Estimator
from markovia.runtime.seeds import generator

MOST = 2_000
"""Joint states up to which answers are exact; there are none beyond."""


@dataclass(eq=False, repr=False)
class JointHMM(CountedSequenceModel, Estimator):
    """What factorial and coupled models have in common: several hidden chains, answered as one."""

    _coupled = False
    _takes_inputs = False

    n_states: Annotated[Sequence[int], Several(Whole(1), "the number of states of each chain")] = (2, 2)
    _: KW_ONLY
    emission: Literal["gaussian", "categorical"] = "gaussian"
    start: Any = None
    transition: Any = None
    emission_params: Mapping[str, Any] | None = None
    max_iter: Count = 100
    tol: Tolerance = 1e-5
    n_init: Count = 1
    random_state: Any = None
    progress: bool | None = None
    time_limit: TimeLimit = None

    def fit(self, sequences: Any, lengths: Lengths = None, *, by: str | None = None) -> Self:
        """Learn by expectation-maximisation from the values that are given, or from others made up from the data."""
        sizes = self._sizes()
        data = self._read(sequences, lengths, by).rows
        seen = self._observations(data)
        rng = generator(self.random_state)
        begins = []
        for i in range(self.n_init):
            emission = self._given_emission() if i == 0 else None
            emission = self._started(seen, rng) if emission is None else emission
            starts, transitions = self._chains(rng)
            begins.append(JointChains(sizes, starts, transitions, emission))
        with Clock(self.time_limit, False):
            best = best_climb(partial(self._learn, seen=seen, data=data), begins, progress=self.progress)
        self.model_: JointChains = best.state.model
        self.startprob_, self.transmat_, self.emission_ = self.model_[1:]
        self.history_, self.converged_, self.n_iter_ = best.history, best.converged, len(best.history)
        self.n_features_in_ = data.values.shape[1]
        best.warn(self.tol)
        return self

    def _learn(
        self, model: JointChains, seen: Observations, data: Sequences, progress: bool | None
    ) -> Climb[LearnedChain]:
        none = Priors(1.0, 1.0, {})
        return learn(
            model, seen, none, max_iter=self.max_iter, tol=self.tol, progress=progress, where=data.at
        )

    def _log_prob(self, given: GivenSequences) -> Array:
        model, _, seen = self._seen(given)
        return model.chain.log_probs(seen.seen_by(model.emission))

    def filter(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None
    ) -> list[tuple[Array, ...]]:
        """Return p(z_t | x_0 ... x_t) of each chain, one tuple of arrays (steps, states) a sequence."""
        model, data, seen = self._seen(self._read(sequences, lengths, by))
        found = model.chain.filter(seen.seen_by(model.emission))
        refuse(found.stuck, data.at)
        return self._by_chain(model, data, found.now)

    def smooth(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None
    ) -> list[tuple[Array, ...]]:
        """Return p(z_t | x) of each chain, one tuple of arrays (steps, states) a sequence."""
        model, data, seen = self._seen(self._read(sequences, lengths, by))
        found = model.chain.smooth(seen.seen_by(model.emission))
        refuse(found.stuck, data.at)
        return self._by_chain(model, data, found.sums)

    def decode(self, sequences: Any, lengths: Lengths = None, *, by: str | None = None) -> DecodedPaths:
        """Return the most probable states of all chains together, one array (steps, chains) a sequence, with `log_prob`."""
        model, data, seen = self._seen(self._read(sequences, lengths, by))
        observed = seen.seen_by(model.emission)
        paths, log_probs = model.chain.best(observed)
        if (log_probs == -np.inf).any():
            refuse(model.chain.filter(observed).stuck, data.at)
        return DecodedPaths.of(data.split(members(model.sizes)[paths]), log_probs, np.zeros_like(log_probs))

    @property
    def n_free(self) -> int:
        """The number of free parameters."""
        return self._model().n_free

    def _draw(self, steps: int, n: int, inputs: Any, seed: Any) -> tuple[list[Any], ...]:
        # states are (steps, chains)
        model, rng = self._model(), generator(seed)
        shown = np.empty((n, steps, len(model.sizes)), dtype=np.int64)
        for t in range(steps):
            before = (
                np.ravel_multi_index(tuple(shown[:, t - 1].T), model.sizes) if t and self._coupled else None
            )
            for i, (start, table) in enumerate(zip(model.starts, model.transitions, strict=True)):
                own = shown[:, t - 1, i] if before is None else before
                shown[:, t, i] = chosen(np.repeat(start[None], n, axis=0) if t == 0 else table[own], rng)
        drawn: Any = model.emission
        rows = shown.reshape(n * steps, -1)
        if isinstance(drawn, Categorical):
            drawn = drawn.draw(np.asarray(np.ravel_multi_index(tuple(rows.T), model.sizes)), rng)
        else:
            drawn = drawn.draw_parts(rows, rng)
        return list(drawn.reshape(n, steps, -1)), list(shown)

    def network(self) -> DynamicBayesianNetwork:
        """Return the dynamic network with states `z_0`, `z_1`, ... and what is seen: `x`, or `x_0`, `x_1`, ... by column."""
        model = self._model()
        first, later = BayesianNetwork(), BayesianNetwork()
        names = [f"z_{i}" for i in range(len(model.sizes))]
        for name, size in zip(names, model.sizes, strict=True):
            later.add(f"{name}@-1", states=list(range(size)))
        for i, (name, size) in enumerate(zip(names, model.sizes, strict=True)):
            states, table = list(range(size)), model.transitions[i]
            first.add(name, states=states, p=model.starts[i])
            own = [f"{name}@-1"] if not self._coupled else [f"{other}@-1" for other in names]
            shape = (size,) if not self._coupled else model.sizes
            later.add(name, states=states, parents=own, p=table.reshape((*shape, size)))
        for network in (first, later):
            self._emit(network, model, names)
        return DynamicBayesianNetwork(first, later)

    def unroll(self, T: int) -> BayesianNetwork:  # noqa: N803
        """Return the Bayesian network of T steps, with the names of `network` and the step behind an at: `z_0@0`, `x@3`.

        Examples
        --------
        >>> from markovia.series import FactorialHMM
        >>> loads = FactorialHMM([2, 2], start=[[1, 0], [1, 0]], transition=[[[0.9, 0.1], [0.1, 0.9]]] * 2,
        ...     emission_params={"means": [[[0.0], [1.0]], [[0.0], [5.0]]], "covariance": [[0.1]]})
        >>> loads.unroll(2).variables
        ['z_0@0', 'z_1@0', 'x@0', 'z_0@1', 'z_1@1', 'x@1']
        """
        return self.network().unroll(T)

    def _emit(self, network: BayesianNetwork, model: JointChains, names: list[str]) -> None:
        emission: Any = model.emission
        if isinstance(emission, ByChain):
            for i, part in enumerate(emission.parts):
                add_components(network, part, [f"x_{i}"], [names[i]])
            return
        joint = emission if isinstance(emission, Categorical) else emission.joint
        states = [tuple(one) if len(one) > 1 else one[0] for one in members(model.sizes).tolist()]
        add_components(network, joint, column_names("x", joint), names, states)

    # -- inside ------------------------------------------------------------------------------------------------

    def _by_chain(self, model: JointChains, data: Sequences, joint: Array) -> list[tuple[Array, ...]]:
        of = members(model.sizes)
        each = [joint @ np.eye(n)[of[:, i]] for i, n in enumerate(model.sizes)]
        return list(zip(*(data.split(one) for one in each), strict=True))

    def _sizes(self) -> tuple[int, ...]:
        check_options(self)
        self._check_size(float(np.prod(self.n_states, dtype=float)))
        return tuple(int(n) for n in self.n_states)

    def _check_size(self, joint: float) -> None:
        if joint > MOST:
            raise InvalidArgument(
                f"n_states= makes {int(joint):,} joint states; answers are exact up to {MOST:,}"
            )

    def _chains(self, rng: np.random.Generator | None) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        sizes = self._sizes()
        joint = int(np.prod(sizes))
        starts, transitions = [], []
        for given, what in ((self.start, "start="), (self.transition, "transition=")):
            if given is not None and len(given) != len(sizes):
                raise InvalidArgument(f"{what} has one entry for each of the {len(sizes)} chains")
            if given is None and rng is None:
                raise IncompleteModel(
                    "this model has no values yet; call fit(sequences), or give start=, transition= and emission_params="
                )
        for i, size in enumerate(sizes):
            rows = joint if self._coupled else size
            if self.start is None:
                starts.append(np.full(size, 1.0 / size))
            else:
                starts.append(probabilities(self.start[i], f"start=[{i}]", (size,)))
            if self.transition is not None:
                table = np.asarray(self.transition[i], dtype=np.float64).reshape(-1, size)
                transitions.append(probabilities(table, f"transition=[{i}]", (rows, size)))
            elif rng is not None:
                stay = np.eye(size)[members(sizes)[:, i]] if self._coupled else np.eye(size)
                transitions.append(0.6 * stay + 0.4 * rng.dirichlet(np.full(size, 5.0), rows))
        return tuple(starts), tuple(transitions)

    def _model(self) -> JointChains:
        if hasattr(self, "model_"):
            return self.model_
        starts, transitions = self._chains(None)
        emission = self._given_emission()
        if emission is None:
            raise IncompleteModel(
                "this model has no emissions yet; call fit(sequences), or give emission_params="
            )
        return JointChains(self._sizes(), starts, transitions, emission)

    def _seen(self, given: GivenSequences) -> tuple[JointChains, Sequences, Observations]:
        model = self._model()
        return model, given.rows, self._observations(given.rows, model.emission)

    def _named(self, *names: str) -> list[Any] | None:
        if self.emission_params is None:
            return None
        if set(self.emission_params) != set(names):
            raise InvalidArgument(
                f"emission_params= of {self.emission!r} has {', '.join(names)}, not {', '.join(self.emission_params)}"
            )
        return [self.emission_params[name] for name in names]

    def _observations(self, data: Sequences, emission: Any = None) -> Observations:
        raise NotImplementedError

    def _given_emission(self) -> Components | None:
        raise NotImplementedError

    def _started(self, seen: Observations, rng: np.random.Generator) -> Components:
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class CoupledHMM(JointHMM):
    """Hidden chains that each emit a column of their own, and each depend on the states of all before.

    Parameters
    ----------
    n_states
        The number of states of each chain, one a column. Answers are exact up to 2,000 joint states.
    emission
        "gaussian" or "categorical" (symbols 0, 1, ...).
    start, transition
        The start of each chain, and its transition with an axis for each chain's state before and one for its next.
    emission_params
        {"means"} and {"variances"}, or {"probs"}, each a list with an array for each chain.
    max_iter, tol, n_init, random_state, progress, time_limit
        As in `HMM`.

    Attributes
    ----------
    startprob_, transmat_, emission_
        The learned chains, in tuples (rows of a transition are joint states), and emissions.
    n_iter_, history_, converged_
        As in `HMM`.

    Examples
    --------
    >>> follow = np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.9, 0.1], [0.1, 0.9]]])  # chain 0 goes where chain 1 was
    >>> pair = CoupledHMM([2, 2], emission="categorical", start=[[1, 0], [0.5, 0.5]],
    ...     transition=[follow, follow], emission_params={"probs": [np.eye(2), [[0.5, 0.5], [0.5, 0.5]]]})
    >>> pair.smooth(np.array([[0, 0], [1, 0], [1, 1]]))[0][1].round(2).tolist()
    [[0.02, 0.98], [0.02, 0.98], [0.12, 0.88]]
    """

    _coupled = True

    def _observations(self, data: Sequences, emission: Any = None) -> Observations:
        sizes = self._sizes()
        if data.values.shape[1] != len(sizes):
            raise InvalidArgument(
                f"the sequences have {data.values.shape[1]} columns for {len(sizes)} chains"
            )
        if self.emission == "gaussian":
            return Gaussian.read(data)
        values = data.numbers()
        wrong = (values < 0) | (values != np.floor(values))
        if emission is not None:
            wrong |= values >= np.array([len(part.symbols) for part in emission.parts])
        wrong &= ~np.isnan(values)
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            raise InvalidArgument(
                f"{data.at(int(i))} has {values[i, j]:g}, which is none of the symbols 0, 1, ..."
            )
        gaps = np.isnan(values)
        if (gaps.any(axis=1) != gaps.all(axis=1)).any():
            row = int(np.argmax(gaps.any(axis=1) != gaps.all(axis=1)))
            raise InvalidArgument(
                f"{data.at(row)} misses some of its entries; steps are there or missing in whole"
            )
        return distinct(values, ~gaps.all(axis=1), data.offsets)

    def _given_emission(self) -> Components | None:
        sizes = self._sizes()
        names = ("probs",) if self.emission == "categorical" else ("means", "variances")
        found = self._named(*names)
        if found is None:
            return None
        if any(len(one) != len(sizes) for one in found):
            raise InvalidArgument(f"emission_params= have an entry for each of the {len(sizes)} chains")
        if self.emission == "categorical":
            return ByChain(tuple(Categorical.of(n, {"probs": found[0][i]}) for i, n in enumerate(sizes)))
        return ByChain(
            tuple(
                Gaussian.of(
                    n,
                    {
                        "means": np.reshape(found[0][i], (n, 1)),
                        "covariances": np.reshape(found[1][i], (n, 1, 1)),
                    },
                )
                for i, n in enumerate(sizes)
            )
        )

    def _started(self, seen: Observations, rng: np.random.Generator) -> Components:
        parts: list[Any] = []
        for i, n in enumerate(self._sizes()):
            column = seen.rows[:, i : i + 1]
            own = Observations(column, np.arange(len(column)), np.array([0, len(column)]))
            if self.emission == "categorical":
                symbols = tuple(range(int(column.max()) + 1))
                parts.append(Categorical(rng.dirichlet(np.ones(len(symbols)), n), symbols))
            else:
                parts.append(Gaussian.started(own, n, rng))
        return ByChain(tuple(parts))

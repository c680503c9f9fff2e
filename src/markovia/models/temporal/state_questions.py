"""The questions that all models of hidden states answer: about whole sequences, states at steps, and paths.

A model says how its data is seen (`_seen`); the answers are exact recursions along the sequences (`inference/sequences`).
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, cast

import numpy as np

from markovia.data.sequences.sequences import Lengths, Sequences
from markovia.errors import InvalidArgument, Unanswered, UnsupportedModel
from markovia.inference.sequences.hidden_chain import FilteredChain, HiddenChain, Observed
from markovia.inference.sequences.parallel_chain import parallel_best, parallel_sums
from markovia.inference.sequences.parallel_kalman import Parallel
from markovia.inference.sequences.state_results import DecodedPaths
from markovia.learning.sequences.baum_welch import refuse
from markovia.models.temporal.sequence_model import CountedSequenceModel, GivenSequences
from markovia.runtime import ports
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Choice, Kind, Whole, check
from markovia.runtime.keyword_advice import guided

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Steps = TypeVar("Steps", Ints, Array)
"""Numbers of steps."""


class ChainData(NamedTuple):
    """Data as a hidden chain sees it; `last` has the model's state for each of the chain's, where those differ."""

    data: Sequences
    chain: HiddenChain
    seen: Observed
    last: Ints | None = None

    def states(self, probs: Array) -> Array:
        """Return probabilities of the chain's states, along the last axis, as those of the model's states."""
        if self.last is None:
            return probs
        found = np.zeros((int(self.last.max()) + 1, *probs.shape[:-1]))
        np.add.at(found, self.last, np.moveaxis(probs, -1, 0))
        return np.moveaxis(found, 0, -1)

    def path(self, states: Ints) -> Ints:
        """Return states of the chain as the model's states."""
        return states if self.last is None else self.last[states]


class StateQuestions(CountedSequenceModel):
    """The verbs of models with hidden states; they take sequences as `fit` does, and `inputs` where there were some."""

    @abstractmethod
    def _seen(self, given: GivenSequences) -> ChainData:
        """Return data as the model's hidden chain sees it."""

    def _ask(self, sequences: Any, lengths: Lengths, by: str | None, inputs: Any) -> ChainData:
        return self._seen(self._read(sequences, lengths, by, inputs))

    def _log_prob(self, given: GivenSequences) -> Array:
        asked = self._seen(given)
        return asked.chain.log_probs(asked.seen)

    @guided
    def log_prob(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None,
        parallel: Parallel = None,
    ) -> Array:  # fmt: skip
        """Return log p(x) of each sequence; minus infinity for an impossible one.

        With `parallel` = "time" each sequence is run by associative scans in JAX, for a long one on a GPU: the same values.
        """
        asked = self._ask(sequences, lengths, by, inputs)
        return asked.chain.log_probs(asked.seen) if parallel is None else _filtered(asked, parallel).log_probs

    @guided
    def filter(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None,
        parallel: Parallel = None,
    ) -> list[Array]:  # fmt: skip
        """Return p(z_t | x_0 ... x_t) of each step, one array (steps, states) a sequence."""
        asked = self._ask(sequences, lengths, by, inputs)
        found = _filtered(asked, parallel)
        refuse(found.stuck, asked.data.at)
        return asked.data.split(asked.states(found.now))

    @guided
    def forward(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None, log: bool = False
    ) -> list[Array]:  # fmt: skip
        """Return the table of the forward recursion, p(x_0 ... x_t, z_t), one array (steps, states) a sequence.

        A row sums to the probability of what was seen so far, the last one to p(x); divided by that sum it is `filter`. With
        `log` it is the logarithm, which long sequences need. A sequence that is impossible from some step on has zeros.

        Raises
        ------
        InvalidArgument
            If a sequence is too long for probabilities; `log=True` has no such end.

        Examples
        --------
        >>> from markovia import HMM
        >>> diary = HMM(2, start=[0.8, 0.2], transition=[[0.6, 0.4], [0.5, 0.5]], symbols=[1, 2, 3],
        ...     emission_params={"probs": [[0.2, 0.4, 0.4], [0.5, 0.4, 0.1]]})
        >>> diary.forward([3, 1, 3])[0].round(6).tolist()
        [[0.32, 0.02], [0.0404, 0.069], [0.023496, 0.005066]]
        >>> diary.backward([3, 1, 3])[0].round(6).tolist()
        [[0.0836, 0.0905], [0.28, 0.25], [1.0, 1.0]]
        """
        asked = self._ask(sequences, lengths, by, inputs)
        logs = asked.chain.log_messages(asked.seen)[0]
        if asked.last is not None:  # the model's state is all that several of the chain's have in common
            merged = np.full((int(asked.last.max()) + 1, len(logs)), -np.inf)
            np.logaddexp.at(merged, asked.last, logs.T)
            logs = merged.T
        return _split_messages(asked.data, logs, log)

    @guided
    def backward(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None, log: bool = False
    ) -> list[Array]:  # fmt: skip
        """Return the table of the backward recursion, p(x_t+1 ... | z_t), one array (steps, states) a sequence.

        Its last row is ones. Times that of `forward`, each row sums to p(x); that product over p(x) is `smooth`. `log` is as
        in `forward`.

        Raises
        ------
        UnsupportedModel
            For chains of higher order and explicit durations, where what comes does not depend on the present state alone.
        """
        asked = self._ask(sequences, lengths, by, inputs)
        if asked.last is not None:
            raise UnsupportedModel(
                "what comes depends on more than the present state here, so there is no table by state; smooth() answers"
            )
        return _split_messages(asked.data, asked.chain.log_messages(asked.seen)[1], log)

    @guided
    def smooth(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None,
        pairs: bool = False, parallel: Parallel = None,
    ) -> list[Array]:  # fmt: skip
        """Return p(z_t | x) of each step, one array (steps, states) a sequence.

        With `pairs` it is p(z_t, z_t+1 | x), one array (steps - 1, states, states) a sequence.
        """
        asked = self._ask(sequences, lengths, by, inputs)
        if pairs and parallel is not None:
            raise InvalidArgument("pairs= are not found in parallel; leave out parallel=")
        if pairs:
            refuse(asked.chain.filter(asked.seen).stuck, asked.data.at)
            both = asked.states(np.swapaxes(asked.states(asked.chain.pairs(asked.seen)), 1, 2))
            return [one[1:] for one in asked.data.split(np.swapaxes(both, 1, 2))]
        if parallel is not None:
            filtered, smoothed = _in_parallel(asked, parallel, smoothing=True)
            refuse(filtered.stuck, asked.data.at)
            return asked.data.split(asked.states(smoothed))
        found = asked.chain.smooth(asked.seen)
        refuse(found.stuck, asked.data.at)
        return asked.data.split(asked.states(found.sums))

    @guided
    def decode(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None,
        method: Literal["viterbi", "max-marginal"] = "viterbi", parallel: Parallel = None, beam: int | None = None,
    ) -> DecodedPaths:  # fmt: skip
        """Return the states of each sequence: the most probable path, or at each step the most probable state.

        It is a list of arrays; `log_prob` of it has log p(path, x) of each most probable path. With `beam` only so many
        states go on at each step, which is quicker where there are many; `gap` then has how much larger log p of another
        path can be, zero where the path is proved to be a best one.

        Examples
        --------
        >>> from markovia import HMM
        >>> diary = HMM(2, start=[0.8, 0.2], transition=[[0.6, 0.4], [0.5, 0.5]], symbols=[1, 2, 3],
        ...     emission_params={"probs": [[0.2, 0.4, 0.4], [0.5, 0.4, 0.1]]})
        >>> best = diary.decode([3, 1, 3])
        >>> best[0].tolist(), float(np.exp(best.log_prob[0]).round(6))
        ([0, 1, 0], 0.0128)
        """
        check("method", method, Choice(("viterbi", "max-marginal")))
        check("beam", beam, Whole(1, none=True))
        if beam is not None and (method != "viterbi" or parallel is not None):
            raise InvalidArgument(
                "beam= decodes paths one step after the other; leave out method= and parallel="
            )
        if method == "max-marginal":
            found = self.smooth(sequences, lengths, by=by, inputs=inputs, parallel=parallel)
            return DecodedPaths([one.argmax(axis=1) for one in found])
        asked = self._ask(sequences, lengths, by, inputs)
        gaps = np.zeros(len(asked.seen.offsets) - 1)
        if beam is not None:
            paths, log_probs, gaps = asked.chain.beam(asked.seen, beam)
        elif parallel is None:
            paths, log_probs = asked.chain.best(asked.seen)
        else:
            check("parallel", parallel, Choice(("time",)))
            paths, log_probs = parallel_best(asked.chain, asked.seen)
        if (log_probs == -np.inf).any():
            refuse(asked.chain.filter(asked.seen).stuck, asked.data.at)
            lost = asked.data.names[int(np.argmax(log_probs == -np.inf))]
            raise Unanswered(
                f"all paths of sequence {lost!r} left the beam; say a larger beam= than {beam}, or none"
            )
        return DecodedPaths.of(asked.data.split(asked.path(paths)), log_probs, gaps)

    @guided
    def predict(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None
    ) -> Ints:
        """Return the most probable path of all sequences in one array, as hmmlearn does; `decode` has one a sequence."""
        return _joined(self.decode(sequences, lengths, by=by, inputs=inputs))

    @guided
    def predict_proba(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None
    ) -> Array:
        """Return p(state | all) of all steps in one array, as hmmlearn does; `smooth` has one a sequence."""
        return _joined(self.smooth(sequences, lengths, by=by, inputs=inputs))

    @guided
    def plot(
        self, sequences: Any, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None, sequence: int = 0,
        names: Sequence[str] | None = None, ax: "Axes | None" = None, title: str | None = None,
    ) -> Any:  # fmt: skip
        """Draw a series over its most probable states, with their probabilities; see `plotting.plot_hidden_states`."""
        return ports.call(
            "plot-hidden-states", self, sequences, lengths, by=by, inputs=inputs, sequence=sequence, names=names, ax=ax,
            title=title,
        )  # fmt: skip

    def k_best(
        self, sequences: Any, k: int, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None
    ) -> list[tuple[Ints, Array]]:
        """Return the k most probable paths (paths, steps) of each sequence and their log p(z, x), best first.

        There are fewer where fewer are possible.
        """
        check("k", k, Whole(1))
        asked = self._ask(sequences, lengths, by, inputs)
        paths, log_probs = asked.chain.ranked(asked.seen, k)
        if (log_probs[:, 0] == -np.inf).any():
            refuse(asked.chain.filter(asked.seen).stuck, asked.data.at)
        there = log_probs > -np.inf
        return [
            (one.T[here], scores[here])
            for one, scores, here in zip(asked.data.split(asked.path(paths).T), log_probs, there, strict=True)
        ]

    def sample_paths(
        self, sequences: Any, n: int = 1, lengths: Lengths = None, *, by: str | None = None, inputs: Any = None,
        seed: Any = None,
    ) -> list[Ints]:  # fmt: skip
        """Return n paths (n, steps) of each sequence, drawn given what was observed."""
        check("n", n, Whole(1))
        asked = self._ask(sequences, lengths, by, inputs)
        refuse(asked.chain.filter(asked.seen).stuck, asked.data.at)
        drawn = asked.path(asked.chain.draw(asked.seen, n, seed))
        return [one.T for one in asked.data.split(drawn.T)]

    def segment_prob(
        self, sequences: Any, first: int, states: Any, lengths: Lengths = None, *, by: str | None = None,
        inputs: Any = None,
    ) -> Array:  # fmt: skip
        """Return the probability, given each whole sequence, that steps from `first` on are in some states.

        Parameters
        ----------
        first
            The first step of the segment, counted from 0.
        states
            The states of the segment's steps, one each; an entry that is a set or list allows several, None allows all.

        Examples
        --------
        >>> from markovia import HMM
        >>> diary = HMM(2, start=[0.8, 0.2], transition=[[0.6, 0.4], [0.5, 0.5]], symbols=[1, 2, 3],
        ...     emission_params={"probs": [[0.2, 0.4, 0.4], [0.5, 0.4, 0.1]]})
        >>> diary.segment_prob([3, 1, 3], 0, [0, 1]).round(6).tolist()
        [0.560185]
        >>> diary.smooth([3, 1, 3], pairs=True)[0][0, 0, 1].round(6).tolist()
        0.560185
        """
        asked = self._ask(sequences, lengths, by, inputs)
        allowed = _allowed(states, asked)
        check("first", first, Whole(0))
        short = asked.data.lengths < first + len(allowed)
        if short.any():
            which = asked.data.names[int(np.argmax(short))]
            raise InvalidArgument(
                f"sequence {which!r} has {int(asked.data.lengths[np.argmax(short)])} steps, and the segment ends at step "
                f"{first + len(allowed) - 1}"
            )
        every = asked.chain.filter(asked.seen)
        refuse(every.stuck, asked.data.at)
        logs, codes = asked.seen.logs[asked.seen.codes], np.arange(len(asked.seen.codes))
        for i, here in enumerate(allowed):
            logs[asked.data.offsets[:-1, None] + first + i, ~here] = -np.inf
        some = asked.chain.filter(Observed(logs, codes, asked.seen.offsets, True))
        return np.asarray(np.exp(some.log_probs - every.log_probs))


def _split_messages(data: Sequences, logs: Array, log: bool) -> list[Array]:
    """Return tables of a recursion, one a sequence, as probabilities unless their logarithms are asked for."""
    check("log", log, Kind((bool,), "True or False"))
    if log:
        return data.split(logs)
    largest = logs.max(axis=1)
    lost = (largest > -np.inf) & (largest < np.log(np.finfo(np.float64).tiny))
    if lost.any():
        raise InvalidArgument(
            f"the probabilities at {data.at(int(np.argmax(lost)))} are below the smallest number; say log=True"
        )
    return data.split(np.exp(logs))


def _in_parallel(asked: ChainData, parallel: Parallel, *, smoothing: bool) -> tuple[FilteredChain, Any]:
    check("parallel", parallel, Choice(("time",)))
    return parallel_sums(asked.chain, asked.seen, smoothing=smoothing)


def _joined(parts: list[Steps]) -> Steps:
    """Return arrays after each other; one alone as it is."""
    return parts[0] if len(parts) == 1 else cast(Steps, np.concatenate(cast(Any, parts)))


def _filtered(asked: ChainData, parallel: Parallel) -> FilteredChain:
    if parallel is None:
        return asked.chain.filter(asked.seen)
    return _in_parallel(asked, parallel, smoothing=False)[0]


def _allowed(states: Any, asked: ChainData) -> list[Any]:
    """Return for each step of a segment which states of the chain may be."""
    labels = np.arange(len(asked.chain.start)) if asked.last is None else asked.last
    if not isinstance(states, list | tuple | np.ndarray):
        raise InvalidArgument("states= has an entry for each step of the segment")
    found = []
    for wanted in states:
        some = (
            labels if wanted is None else np.atleast_1d(list(wanted) if isinstance(wanted, set) else wanted)
        )
        if not np.isin(some, labels).all():
            raise InvalidArgument(f"states= has {wanted!r}; states are 0 to {labels.max()}")
        found.append(np.isin(labels, some))
    if not found:
        raise InvalidArgument("states= has an entry for each step of the segment, and there is none")
    return found

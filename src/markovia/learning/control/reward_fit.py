"""Fits of models of sequences by rewards: from maximum likelihood to the policy gradient.

With weights alpha of the KL divergence and beta of the entropy,

    L(q, theta) = E_q R(y, wanted) - alpha KL(q | p_theta) + beta H(q)

is climbed in q, which is the tilt of the model (`reward_tilt.py`), and in theta by the model's weighted fit. Its
members:

    reward "exact", alpha = 0          q is the data: maximum likelihood
    reward "one-change", alpha = 0     q is uniform on what differs in one symbol: noise on data
    any reward, alpha = 0, beta = 1    reward-augmented maximum likelihood (Norouzi et al. 2016)
    any reward, alpha = 1, beta = 0    softmax policy gradient (Ding and Soricut 2017)
    alpha without end                  q is the model: nothing is learned

References: Tan, Hu, Yang, Salakhutdinov and Xing (2019), "Connecting the dots between MLE and RL for sequence
prediction". Cost of a step: that of the tilt, and of the fit.
"""

from collections.abc import Callable, Hashable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from markovia.errors import IncompleteModel, InvalidArgument
from markovia.learning.control.hidden_tilt import HiddenTilt
from markovia.learning.control.reward_tilt import (
    LISTED,
    ChainTilt,
    SequenceTilt,
    TiltPowers,
    drawn_tilt,
    listed_tilt,
)
from markovia.learning.control.sequence_rewards import SequenceReward, sequence_reward
from markovia.optimise.ascent import climb
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import check_choice, check_count, check_number
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks


@dataclass(frozen=True)
class RewardFit(InNotebooks):
    """A model of sequences that was fitted by a reward.

    Attributes
    ----------
    model
        The fitted model.
    history
        The mean objective of a wanted sequence before each step's fit; estimated where sequences are drawn.
    converged, reason
        Whether it settled, and why it ended.
    method, exact
        "chain", "listed" or "drawn"; whether the tilts are exact.
    effective_draws
        How many draws the weights leave for each wanted sequence; None where nothing is drawn.
    """

    model: Any
    history: list[float]
    converged: bool
    reason: str
    method: str
    effective_draws: Array | None
    problem: "RewardProblem" = field(repr=False)

    @property
    def exact(self) -> bool:
        """Whether tilts are exact."""
        return self.method != "drawn"

    def tilt(self, start: bool = False) -> SequenceTilt:
        """Return the tilts q of the fitted model; with `start` of the model that was given."""
        return self.problem.tilt(self.problem.model if start else self.model)

    def log_tilt(self, said: Iterable[Hashable], which: int = 0, start: bool = False) -> float:
        """Return log q of a sequence, beside the wanted sequence `which`; an estimate where sequences are drawn.

        Parameters
        ----------
        said
            The sequence.
        which
            The number of the wanted sequence in the data.
        start
            Whether to tilt the model that was given, not the fitted one.
        """
        problem, model = self.problem, self.problem.model if start else self.model
        row = problem.codes(said)[None]
        if row.shape[1] != len(problem.wanted[which]):
            raise InvalidArgument("a sequence is compared with one of its own length")
        gain = problem.reward.values(row, problem.wanted[which], problem.symbols) / problem.powers.temperature
        log_p = problem.log_prob(model, row) if problem.powers.power else np.zeros(1)
        mass = self.tilt(start).log_masses()[which]
        return float((problem.powers.tempered(log_p) + gain)[0] - mass)

    def __str__(self) -> str:
        powers = self.problem.powers
        drawn = (
            ""
            if self.effective_draws is None
            else f", {self.effective_draws.min():.0f} effective draws at least"
        )
        return (
            f"reward fit of {len(self.problem.wanted)} sequences (kl={powers.kl:g}, entropy={powers.entropy:g}, tilts "
            f"{self.method}): objective {self.history[-1]:.6g}, {self.reason} after {len(self.history)} steps{drawn}"
        )


def reward_fit(
    model: Any,
    reward: Any,
    data: Iterable[Iterable[Hashable]],
    *,
    kl: float = 0.0,
    entropy: float = 1.0,
    method: str = "auto",
    draws: int = 1000,
    max_iter: int = 100,
    tolerance: float = 1e-8,
    seed: Seed = 0,
    time_limit: float | None = None,
) -> RewardFit:
    """Fit a model of sequences by what its sequences are worth beside those that were wanted.

    Parameters
    ----------
    model
        A `MarkovChain`, or any model of sequences of symbols with `fit(sequences, sample_weight=)`, `log_prob` and
        `sample`, such as an `HMM`. It is left as it is; one without values is fitted to the data first.
    reward
        "hamming" (minus the number of symbols that differ), "exact", "one-change", a `StepReward`, or a function of the
        list that was said and the list that was wanted, of equal length.
    data
        The wanted sequences.
    kl, entropy
        The weights of the KL divergence from the model and of the entropy; not both 0.
    method
        "chain" (rewards of steps; a `MarkovChain`, or a plain categorical `HMM` with entropy=0), "listed" (all sequences),
        "drawn", or "auto" for the first that can.
    draws, seed
        How many for each wanted sequence, and what they are drawn from.
    max_iter, tolerance, time_limit
        Steps at most, the gain a symbol below which it has settled, and seconds.

    Returns
    -------
    RewardFit
        The fitted model, and how it was found.

    Examples
    --------
    >>> from markovia.models.temporal.markov_chain import MarkovChain
    >>> chain = MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    >>> found = reward_fit(chain, "hamming", [[0, 1, 0]])
    >>> round(float(np.exp(found.log_tilt([0, 1, 0]))), 6)  # (1 + 1 / e)^-3
    0.390712
    >>> found.model.start.round(4).tolist(), found.method, found.converged
    ([0.7311, 0.2689], 'chain', True)
    """
    check_number("kl", kl)
    check_number("entropy", entropy)
    check_choice("method", method, ("auto", "chain", "listed", "drawn"))
    check_count("draws", draws, 2)
    check_count("max_iter", max_iter, 1)
    check_number("tolerance", tolerance)
    if not kl + entropy > 0:
        raise InvalidArgument(
            "kl= or entropy= is above 0: without both, q is whatever has the largest reward"
        )
    problem = RewardProblem.of(
        model, sequence_reward(reward), data, TiltPowers(kl, entropy), method, draws, seed
    )
    tau, size = problem.powers.temperature, float(sum(len(w) for w in problem.wanted))
    last: list[SequenceTilt] = []

    def step(now: Any) -> tuple[Any, float]:
        tilt = problem.tilt(now)
        last[:] = [tilt]
        return tilt.fitted(deepcopy(now)), tau * float(tilt.log_masses().sum())

    found = climb(
        step, problem.model, max_iter=max_iter, tol=tolerance * tau, size=size, may_fall=problem.method == "drawn",
        settled=(lambda _, after: True) if problem.powers.power == 0.0 else None, time_limit=time_limit, name="reward fit",
    )  # fmt: skip
    found.warn(tolerance, ("max_iter", "tolerance"))
    history = [value / len(problem.wanted) for value in found.history]
    return RewardFit(
        found.state, history, found.converged, found.reason, problem.method, last[0].effective_draws, problem
    )


@dataclass(frozen=True)
class RewardProblem:
    """What was wanted, in codes, and how a model is tilted by it."""

    model: Any
    reward: SequenceReward
    wanted: list[Ints]
    symbols: list[Hashable]
    powers: TiltPowers
    method: str
    draws: int
    seed: int

    @classmethod
    def of(
        cls,
        model: Any,
        reward: SequenceReward,
        data: Any,
        powers: TiltPowers,
        method: str,
        draws: int,
        seed: Seed,
    ) -> "RewardProblem":
        """Read data, fit a model that has no values yet, and choose a method."""
        rows = [list(np.asarray(row, dtype=object).tolist()) for row in data]
        if not rows or not all(rows):
            raise InvalidArgument("data= is a list of sequences, none of them empty")
        start = deepcopy(model)
        try:
            start.log_prob(rows[:1])
        except (IncompleteModel, AttributeError):
            start = start.fit(rows)
        symbols = _symbols(start, rows)
        known = {s: i for i, s in enumerate(symbols)}
        if unknown := [s for row in rows for s in row if s not in known]:
            raise InvalidArgument(
                f"the model does not know the symbol {unknown[0]!r}; name all symbols when it is made"
            )
        wanted = [np.array([known[s] for s in row], dtype=np.int64) for row in rows]
        chosen = _method(method, start, reward, wanted, symbols, powers)
        return cls(
            start, reward, wanted, symbols, powers, chosen, draws, int(generator(seed).integers(2**31))
        )

    def codes(self, said: Iterable[Hashable]) -> Ints:
        """Return the codes of symbols."""
        known = {s: i for i, s in enumerate(self.symbols)}
        row = list(said)
        if unknown := [s for s in row if s not in known]:
            raise InvalidArgument(f"the model does not know the symbol {unknown[0]!r}")
        return np.array([known[s] for s in row], dtype=np.int64)

    def log_prob(self, model: Any, rows: Ints) -> Array:
        """Return the log probability of rows of codes under a model."""
        return np.asarray(
            model.log_prob([[self.symbols[c] for c in row] for row in rows.tolist()]), dtype=np.float64
        )

    def tilt(self, model: Any) -> SequenceTilt:
        """Return the tilts of a model."""
        log_prob: Callable[[Ints], Array] = partial(self.log_prob, model)
        if self.method == "chain":
            table = self.reward.steps(self.symbols)
            assert table is not None
            kind = HiddenTilt if HiddenTilt.fits(model, self.powers) else ChainTilt
            return kind(model, table, self.wanted, self.powers)
        if self.method == "listed":
            return listed_tilt(log_prob, self.reward, self.wanted, self.symbols, self.powers)
        rng = np.random.default_rng(self.seed)  # the same noise in each step, so that the ascent can settle

        def sample(steps: int, n: int) -> Ints:
            drawn = model.sample(steps, n, seed=rng)
            drawn = drawn[0] if isinstance(drawn, tuple) else drawn
            return np.array([self.codes(np.asarray(row, dtype=object).reshape(-1).tolist()) for row in drawn])

        return drawn_tilt(
            log_prob, sample, self.reward, self.wanted, self.symbols, self.powers, self.draws, rng
        )


def _symbols(model: Any, rows: list[list[Any]]) -> list[Hashable]:
    known = getattr(model, "symbols", None)
    if known is None and (table := getattr(model, "emissionprob_", None)) is not None:
        known = range(table.shape[-1])
    if known is None:
        seen = {s for row in rows for s in row}
        known = sorted(seen, key=lambda s: (str(type(s)), s))
    return list(known)


def _method(
    method: str,
    model: Any,
    reward: SequenceReward,
    wanted: list[Ints],
    symbols: list[Hashable],
    powers: TiltPowers,
) -> str:
    """Return the first method that can, or say why the one that was asked for cannot."""
    order = getattr(model, "order", None) if hasattr(model, "table") else None
    chained = order is not None and all(len(w) >= order for w in wanted)
    chain = reward.steps(symbols) is not None and (chained or HiddenTilt.fits(model, powers))
    few = reward.possible(wanted[0], symbols) is not None
    listed = few or all(len(symbols) ** len(w) <= LISTED for w in wanted)
    if method == "auto":
        return "chain" if chain else "listed" if listed else "drawn"
    if method == "chain" and not chain:
        raise InvalidArgument(
            "method='chain' needs a reward of steps and a MarkovChain no longer than the sequences, or a categorical HMM "
            "without priors and entropy=0; leave method= out"
        )
    if method == "listed" and not listed:
        raise InvalidArgument(f"there are more than {LISTED:,} sequences; method='drawn' weighs draws")
    return method

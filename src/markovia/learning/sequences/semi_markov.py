"""Hidden semi-Markov models as learning sees them: a chain of visits, how long those last, and what states emit."""

from typing import Any, NamedTuple

import numpy as np

from markovia.inference.sequences.hidden_chain import Observed
from markovia.inference.sequences.hidden_segments import ExpectedSegments, HiddenSegments
from markovia.learning.components.discrete import chosen
from markovia.learning.components.families import Components, Observations
from markovia.learning.sequences.baum_welch import Priors, counted_rows, row_prior
from markovia.learning.sequences.durations import Durations
from markovia.learning.sequences.transition_masks import free_entries, masked
from markovia.runtime.array_types import Array, Ints


class SemiMarkov(NamedTuple):
    """The parameters of a hidden semi-Markov model; the transition goes from visit to visit."""

    start: Array
    transition: Array
    durations: Durations
    emission: Components
    censored: bool = True

    @property
    def chain(self) -> HiddenSegments:
        """The hidden chain of visits."""
        return HiddenSegments(
            self.start, self.transition, np.exp(self.durations.logs), censored=self.censored
        )

    @property
    def last(self) -> Ints | None:
        """None: the chain's states are the model's."""
        return None

    def chain_over(self, seen: Observations) -> Any:
        """Return the hidden chain over some sequences."""
        return self.chain

    def learned(
        self, seen: Observations, expected: ExpectedSegments, weights: Array, priors: Priors
    ) -> "SemiMarkov":
        """Return the model that makes expected counts most probable."""
        start = counted_rows(expected.starts, self.start, priors.start)
        transition = counted_rows(expected.pairs[0], self.transition, priors.transition)
        if priors.fixed is not None:
            transition = masked(transition, np.where(self.transition > 0.0, priors.fixed, 0.0))
        ends = (expected.lengths, expected.last) if self.censored else (expected.lengths + expected.last, 0.0)
        return self._replace(
            start=start,
            transition=transition,
            durations=self.durations.learned(ends[0], np.broadcast_to(ends[1], expected.last.shape)),
            emission=self.emission.learned(seen.rows, weights, priors.emission),
        )

    def log_prior(self, priors: Priors) -> float:
        """Return the log prior, up to a constant."""
        found = row_prior(self.start, priors.start) + row_prior(self.transition, priors.transition)
        return found + self.emission.log_prior(priors.emission)

    def n_free(self, fixed: Array | None) -> int:
        """Return the number of free parameters."""
        start = max(int((self.start > 0.0).sum()) - 1, 0)
        return self.emission.n_free + self.durations.n_free + start + free_entries(self.transition, fixed)

    def ahead(self, seen: Observed, steps: int) -> Array:
        """Return the distributions of the next steps' states, (sequences, steps, states): steps at which nothing is seen."""
        longer = seen.continued(steps)
        now = self.chain.filter(longer).now
        return np.asarray(now[longer.offsets[1:, None] - steps + np.arange(steps)])

    def draw_states(
        self, count: int, steps: int, rng: np.random.Generator, inputs: Array | None = None
    ) -> Ints:
        """Return drawn paths (count, steps); all visits of a round are drawn together."""
        lengths = np.exp(self.durations.logs)
        states = np.zeros((count, steps), dtype=np.int64)
        at = np.zeros(count, dtype=np.int64)
        now = chosen(np.repeat(self.start[None], count, axis=0), rng)
        while (left := np.flatnonzero(at < steps)).size:
            stays = chosen(lengths[now[left]], rng) + 1
            for i, stay in zip(left.tolist(), stays.tolist(), strict=True):
                states[i, at[i] : at[i] + stay] = now[i]
            at[left] += stays
            now = chosen(self.transition[now], rng)
        return states

"""Learning of hidden Markov models beside `fit`: from data in pieces, and a posterior over the parameters."""

from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from markovia.data.sequences.sequences import Lengths, Sequences, read_sequences
from markovia.errors import InvalidArgument
from markovia.inference.result import Info
from markovia.learning.components.families import Observations
from markovia.learning.sequences.baum_welch import HiddenMarkov, LearnedChain, Priors, learn
from markovia.learning.sequences.blocked_gibbs import GibbsRun, gibbs_chain
from markovia.learning.sequences.online_em import OnlineSums, online_step, require_sums
from markovia.optimise.ascent import Climb
from markovia.runtime.array_types import Ints
from markovia.runtime.checks import Whole, check
from markovia.runtime.parallel_tasks import task_results
from markovia.runtime.seeds import generator

if TYPE_CHECKING:
    from markovia.inference.densities.draws.drawn_posterior import DrawnPosterior

FIRST_PIECE = 10
"""Iterations on the first piece, so that what follows begins near something."""


class StateLearning:
    """Verbs of `HMM` that learn otherwise than `fit`."""

    random_state: Any
    n_jobs: Any
    progress: Any
    learning_decay: float
    n_features_in_: int
    _prepared: Any
    _labels: Any
    _take: Any
    _model: Any

    def partial_fit(self, sequences: Any, lengths: Lengths = None, *, by: str | None = None) -> Self:
        """Learn from some more sequences, by online EM, and return the model itself.

        What was learned before counts less and less: piece t has the share t^-`learning_decay`. For emissions
        whose data a few sums stand for: categorical (say `symbols`, as a first piece may not have all), Gaussian,
        Poisson, Bernoulli and multinomial.

        Examples
        --------
        >>> import markovia as mk
        >>> coin = mk.MarkovChain([[0.9, 0.1], [0.2, 0.8]])
        >>> hmm = mk.HMM(2, symbols=[0, 1], random_state=0)
        >>> for piece in range(3):
        ...     hmm = hmm.partial_fit(coin.sample(50, 4, seed=piece))
        >>> hmm.n_pieces_
        3
        """
        data = read_sequences(sequences, lengths, by=by)
        if not hasattr(self, "sums_"):
            seen, priors, (model,) = self._prepared(data, 1, generator(self.random_state))
            if hasattr(self, "emission_"):
                model = self._model()
            require_sums(model.emission)
            found = learn(model, seen, priors, max_iter=FIRST_PIECE, tol=1e-6, where=data.at)
            model, before = found.state.model, None
        else:
            model, before = self._model(), self.sums_
            if data.values.shape[1] != self.n_features_in_:
                raise InvalidArgument(
                    f"the sequences have {data.values.shape[1]} columns, those before {self.n_features_in_}"
                )
            seen, priors = model.emission.read(data), self._priors()  # type: ignore[attr-defined]
        model, sums, log_prob = online_step(model, before, seen, priors, self.learning_decay, data.at)
        history = [*(getattr(self, "history_", []) if before is not None else []), log_prob]
        self._take(Climb(LearnedChain(model, np.zeros(0, dtype=bool)), history, "converged"), data)
        self.sums_: OnlineSums = sums
        self.n_pieces_ = sums.pieces
        return self

    def posterior(
        self,
        sequences: Any,
        lengths: Lengths = None,
        *,
        by: str | None = None,
        labels: Any = None,
        draws: int = 1000,
        warmup: int = 500,
        chains: int = 4,
        seed: Any = None,
    ) -> "DrawnPosterior":
        """Return draws from the posterior of the parameters, by blocked Gibbs sampling.

        The priors are `start_prior`, `transition_prior` and `emission_prior`; what the last does not say is weak. States
        are relabelled from draw to draw to agree with one path, the best one of the model (learned on the way where it is
        not fitted). The model stays as it is. For categorical, multinomial, Bernoulli, Poisson and Gaussian emissions.

        Parameters
        ----------
        sequences, lengths, by
            The sequences.
        labels
            The states of the steps, where some are known; as in `fit`.
        draws, warmup, chains
            Draws that are kept and draws before them, of each chain; chains begin at different values.
        seed
            The same seed gives the same draws.

        Returns
        -------
        DrawnPosterior
            Of `start`, `transition` and the emission's parameters (`means`, `covariances`, `probs`, `rates`), with `mean`,
            `sd`, `interval`, `draws`, `summary`, `to_arviz`, `plot`.

        Examples
        --------
        >>> import markovia as mk
        >>> told = mk.HMM(2).posterior([[0, 1, 1, 0]], labels=[[0, 1, 1, 0]], draws=2000, chains=1, seed=0)
        >>> told.mean("transition").round(1).tolist()  # (1 + counts) / totals
        [[0.3, 0.7], [0.5, 0.5]]
        """
        from markovia.inference.densities.draws.drawn_posterior import DrawnPosterior

        for name, value, least in (("draws", draws, 1), ("warmup", warmup, 0), ("chains", chains, 1)):
            check(name, value, Whole(least))
        began, rng = perf_counter(), generator(seed)
        data = read_sequences(sequences, lengths, by=by)
        states = None if labels is None else self._labels(labels, data)
        seen, priors, begins = self._prepared(data, chains, rng)
        whole = seen if states is None else seen.told(states)
        reference = None
        if states is None and priors.fixed is None and getattr(self, "tied", None) is None:
            reference = self._reference(data, seen, priors, begins[0])
        runs = [GibbsRun(model, rng.integers(2**63)) for model in begins]
        work = partial(
            gibbs_chain,
            seen=whole,
            priors=priors,
            draws=draws,
            warmup=warmup,
            reference=reference,
            where=data.at,
        )
        found = list(task_results(work, runs, n_jobs=self.n_jobs, progress=self.progress, unit="chain"))
        values = {name: np.stack([one[name] for one in found]) for name in found[0]}
        info = Info("gibbs", exact=False, iterations=draws + warmup, seconds=perf_counter() - began)
        return DrawnPosterior(list(values), values, info)

    def _reference(self, data: Sequences, seen: Observations, priors: Priors, begin: HiddenMarkov) -> Ints:
        """Return the best path of the model, or of one learned here."""
        model = (
            self._model()
            if hasattr(self, "emission_")
            else learn(begin, seen, priors, where=data.at).state.model
        )
        path: Ints = model.chain.best(seen.seen_by(model.emission))[0]
        return path

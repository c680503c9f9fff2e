"""Learning the distributions of a directed network from data: the verbs; `fitting` does the work."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from markovia.errors import InvalidArgument, UnknownArgument
from markovia.factors.tables.variable import State
from markovia.models.graphical.directed_model import DirectedModel
from markovia.runtime.checks import Choice, check
from markovia.runtime.keyword_advice import guided, unknown_argument

if TYPE_CHECKING:
    from markovia.models.graphical.fitting import FittedModel, Learned, NumbersLearned
    from markovia.models.graphical.posterior_network import NetworkPosterior, NumberPosterior
    from markovia.optimise.training import Training

EVIDENCE_STEPS = 500
"""Steps of L-BFGS for the parameters of a network with functions."""
OF_FUNCTIONS = ("epochs", "time_limit", "progress", "seed")
"""Settings of the fit of such a network."""


class FitVerbs(DirectedModel):
    """Fitting a directed network's tables to data; see `BayesianNetwork`."""

    _learned: "Learned | NumbersLearned | None" = None

    @guided
    def fit(
        self,
        data: Any,
        *,
        prior: Any = None,
        weights: Any = None,
        states: Mapping[str, int | Sequence[State]] | None = None,
        fixed: str | Iterable[str] = (),
        tied: Sequence[Sequence[str]] = (),
        missing: Any = "em",
        latent: str | Iterable[str] | Mapping[str, int | Sequence[State]] = (),
        method: Any = None,
        training: "Training | None" = None,
        **settings: Any,
    ) -> Self:
        """Learn every node's distribution from data, and return the network itself.

        A network with parameters (`mk.Parameter`) learns those, by stochastic gradients; see `method`.

        Columns of numbers with fractions make their nodes linear Gaussians, one regression for every state of discrete
        parents, where the network does not say otherwise; nodes that are numbers already stay so.
        A node that is a local model keeps its form: logistic and softmax nodes are fitted by Newton's method, noisy-or and
        its relatives by expectation-maximisation over their hidden effects, and gates stay as they are. To fit a full
        table instead, give the node one first (`bn.replace(name, p="uniform")`).

        Parameters
        ----------
        data
            Rows of any form that `markovia.counts` takes: frames, mappings, matrices, relations, paths to files. Columns are
            found by name, others are not looked at.
        prior
            None for maximum likelihood; "bdeu", "k2", "laplace", "dirichlet", a number of pseudo-counts a cell, or an
            object such as `mk.priors.BDeu(10)` for posterior means; linear Gaussians then have a normal-inverse-gamma prior
            (`mk.priors.NormalInverseGamma(...)`). The full posterior is then in `posterior_`.
        weights
            The name of a column, or one number a row.
        states
            States of variables whose states were never stated (`BayesianNetwork("a->b")`); by default they are read
            off the data.
        fixed
            Nodes that keep the distribution they have.
        tied
            Lists of nodes that share one table, such as the transitions of a Markov chain. Their tables have the same
            shape, with parents matched by position. Their counts are pooled; a prior counts once for each list.
        missing
            What to do with rows that miss a cell: "em" (expectation-maximisation: every cell is used), settings such as
            `mk.EM(restarts=5)`, "drop" (they are not used at all) or "error".
        latent
            Variables that have no column and are never observed: names, or a mapping from name to states where the
            network does not know them.
        method
            Of a network with parameters, what is made large: "elbo" (the evidence lower bound, with the guides; without
            latent quantities the likelihood), "iwae", or settings such as `mk.objectives.ELBO(draws=5)`; with potentials
            "pcd" (the default), "score-matching" or "nce".
        training, settings
            Of a network with parameters, how: `mk.Training(...)`, or its settings directly (`epochs=60, batch=64, seed=0`).

        Returns
        -------
        the network
            With `fit_`, a record of what was done, until an edit. A failed fit leaves the network as it was.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.BayesianNetwork("rain->wet")
        >>> rows = {"rain": ["no", "no", "no", "yes"], "wet": ["no", "no", "yes", "yes"]}
        >>> bn.fit(rows)["wet"].values.round(3).tolist()
        [[0.667, 0.333], [0.0, 1.0]]
        >>> bn.fit(rows, prior="laplace")["wet"].values.round(3).tolist()
        [[0.6, 0.4], [0.333, 0.667]]
        >>> round(bn.fit_.log_likelihood, 4)
        -4.6584
        >>> chain = mk.BayesianNetwork("x1->x2->x3", states={n: 2 for n in ("x1", "x2", "x3")})
        >>> chain.fit({"x1": [0, 0], "x2": [1, 0], "x3": [1, 0]}, tied=[["x2", "x3"]])["x3"].values.round(3).tolist()
        [[0.667, 0.333], [0.0, 1.0]]
        """
        from markovia.models.graphical import fitting

        if self._potentials and not self._parameters:
            raise InvalidArgument(
                "with potentials nothing is estimated node by node; say mk.Parameter(...) for what fit is to learn"
            )
        if self._parameters:
            tables = {
                "prior": prior,
                "weights": weights,
                "states": states,
                "fixed": fixed,
                "tied": tied,
                "latent": latent,
            }
            return self._learn_parameters(data, method, training, settings, tables)
        if method is not None or training is not None or settings:
            word = next(iter(settings), "method" if method is not None else "training")
            raise UnknownArgument(
                f"fit() takes {word}= for networks with parameters (mk.Parameter), and this one has none"
            )
        return self._take(fitting.fit(self, data, prior, weights, states, fixed, tied, missing, latent))

    def _learn_parameters(
        self,
        data: Any,
        method: Any,
        training: "Training | None",
        settings: dict[str, Any],
        tables: Mapping[str, Any],
        go_on: bool = False,
    ) -> Self:
        """Learn the parameters by gradients, and take them over at once; or go on from where they are."""
        from markovia.inference.densities.program.automatic_guides import new_encoders
        from markovia.learning.neural.named_objectives import OBJECTIVES, objective_named
        from markovia.learning.neural.parameter_fit import built, learn_parameters
        from markovia.learning.processes.network_fit import (
            at_the_scale_of_data,
            fit_functions,
            has_functions,
            unsaid,
        )
        from markovia.optimise.training import Training

        for word, value in tables.items():
            if value is not None and value != ():
                raise InvalidArgument(
                    f"{word}= is for networks of tables; this one learns parameters by gradients"
                )
        if training is not None and settings:
            raise InvalidArgument(f"{next(iter(settings))}= is a setting of training=; give it there")
        if (advice := unknown_argument(Training, settings, "fit")) is not None:
            raise advice
        how = Training(**settings) if training is None else training
        name = ("pcd" if self._potentials else "elbo") if method is None else method
        if isinstance(name, str):
            check("method", name, Choice(tuple(OBJECTIVES)))
            name = objective_named(name)
        begun = self.copy()
        begun._parameters = built(self._parameters, how.seed, go_on)
        missing = unsaid(begun._parameters)
        begun._parameters = {
            n: p.with_value(np.ones(())) if n in missing else p for n, p in begun._parameters.items()
        }
        problem = begun._problem(data, "auto", None, "impute")
        if has_functions(problem):
            if go_on or method is not None or self._guides or settings.keys() - OF_FUNCTIONS:
                raise InvalidArgument(
                    "rows that call a function (mk.GP) depend on each other, so that of all rows is climbed at once: "
                    f"fit(data), with {', '.join(OF_FUNCTIONS)} as settings, without method=, guides and partial_fit"
                )
            if missing:
                begun._parameters |= at_the_scale_of_data(problem, {**begun._parameters, **missing})
                problem = begun._problem(data, "auto", None, "impute")
            steps = how.epochs if "epochs" in settings or training is not None else EVIDENCE_STEPS
            learned = fit_functions(problem, begun._parameters, how, steps)
            self._parameters, self._fit, self._learned = (
                learned.parameters,
                (learned.record, dict(self._tables)),
                None,
            )
            return self
        if made := new_encoders(problem, self._guides, how.seed):
            begun._parameters = {**begun._parameters, **made, **(self._parameters if go_on else {})}
            problem = begun._problem(data, "auto", None, "impute")
        found = learn_parameters(problem, self._guides, begun._parameters, name, how)
        self._parameters = {**begun._parameters, **found.parameters}
        self._fit, self._learned = (found.record, dict(self._tables)), None
        return self

    @guided
    def partial_fit(
        self,
        data: Any,
        *,
        prior: Any = "same",
        weights: Any = None,
        states: Mapping[str, int | Sequence[State]] | None = None,
        fixed: str | Iterable[str] | None = None,
        tied: Sequence[Sequence[str]] | None = None,
        forget: float = 1.0,
        method: Any = None,
        training: "Training | None" = None,
        **settings: Any,
    ) -> Self:
        """Learn from more rows; in pieces is the same as all at once.

        A network with parameters goes on from the parameters it has, one epoch unless told otherwise.

        The counts of earlier calls (of `fit` or `partial_fit`) are kept, the new rows are added, and every table is
        estimated again. `fit_` is about all rows so far.

        Parameters
        ----------
        data, weights, states
            As in `fit`. Later pieces must have the states of the first; others are an error.
        prior, fixed, tied
            As in `fit`; by default those of the call before.
        forget
            What the earlier counts are multiplied by first: 1 to keep them, less to follow a process that changes (the
            counts then weigh at most `1 / (1 - forget)` pieces). Pseudo-counts are not forgotten.
        method, training, settings
            Of a network with parameters, as in `fit`.

        Raises
        ------
        InvalidArgument
            If cells are missing, or if the tables were changed since the last fit, so that its counts no longer
            describe them.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.BayesianNetwork("coin", states={"coin": ["h", "t"]})
        >>> bn.partial_fit({"coin": ["h", "h"]}).partial_fit({"coin": ["t", "h"]})["coin"].values.tolist()
        [0.75, 0.25]
        >>> bn.fit_.n_rows
        4
        """
        from markovia.models.graphical import fitting

        if self._potentials and not self._parameters:
            raise InvalidArgument(
                "with potentials nothing is estimated node by node; say mk.Parameter(...) for what fit is to learn"
            )
        if self._parameters:
            if training is None:
                settings = {"epochs": 1, **settings}
            return self._learn_parameters(data, method, training, settings, {}, go_on=True)
        past = self._current()
        if self.has_quantities or isinstance(past, fitting.NumbersLearned):
            raise InvalidArgument(
                "partial_fit is for networks of tables; fit a network with numbers on all rows"
            )
        if past is None and self._fit is not None:
            raise InvalidArgument(
                "the network has no counts to add to: its tables were changed since the last fit, or fitted otherwise; "
                "use fit(), with prior=mk.priors.Dirichlet.from_network(bn, n) to build on the present tables"
            )
        return self._take(fitting.partial_fit(self, past, data, prior, weights, states, fixed, tied, forget))

    @property
    def posterior_(self) -> "NetworkPosterior | NumberPosterior | None":
        """The distribution of the tables after a fit with a prior on complete data; None otherwise.

        It has the Dirichlet parameters, credible intervals, the probability of the data with the tables integrated out,
        drawn networks, and queries that average over them. Editing the network drops it; a copy keeps it.
        """
        from markovia.models.graphical.fitting import NumbersLearned
        from markovia.models.graphical.posterior_network import NetworkPosterior, NumberPosterior

        learned = self._current()
        if isinstance(learned, NumbersLearned):
            twin = self.copy()
            twin._learned = None
            return NumberPosterior(learned.regressions, learned.alphas, twin)
        if learned is None or learned.learner.prior is None:
            return None
        if learned.posterior is None:
            twin = self.copy()
            twin._learned = None
            learned.posterior = NetworkPosterior(learned.learner, learned.counts, learned.tables, twin)
        return learned.posterior

    # -- inside --------------------------------------------------------------------------------------------------

    def _take(self, found: "FittedModel") -> Self:
        """Take over what a fit found, all at once."""
        self.install(found.variables, found.tables)
        self._fit, self._learned = (found.record, dict(self._tables)), found.learned
        return self

    def _current(self) -> "Learned | NumbersLearned | None":
        """Return what the last fit left behind, unless some table is no longer the one it made."""
        learned = self._learned
        if learned is None or len(learned.tables) != len(self._tables):
            return None
        same = all(self._tables.get(t.variable.name) is t for t in learned.tables)
        return learned if same else None

"""The verbs that every model shares, whatever the kinds of its pieces: ask, sample, score, predict, convert.

A model is thin: named variables, the pieces of its factorised distribution, and methods that hand both to an
engine. Nothing here computes; see `markovia.inference`.
"""

from collections.abc import Mapping, Sequence
from itertools import repeat
from math import prod
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import numpy as np

from markovia.errors import InvalidArgument, TooLarge, UnsupportedModel
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.factor import Factor, product
from markovia.factors.tables.variable import Variable
from markovia.inference.engine import (
    BEYOND_TABLES,
    CLOSED,
    TABLES,
    Engine,
    asking,
    best_question,
    engine_for,
    get_engine,
    refuse_gpu,
)
from markovia.inference.gaussian.strong_elimination import log_integral
from markovia.inference.posterior import Explanation, Marginals, Posterior, RowMarginals
from markovia.inference.result import Tables
from markovia.models.graphical.arguments import Given, Impossible, Rows
from markovia.models.graphical.model_core import ModelCore
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Choice, check
from markovia.runtime.clock import Stopwatch
from markovia.runtime.devices import Device
from markovia.runtime.keyword_advice import guided
from markovia.runtime.seeds import generator

if TYPE_CHECKING:
    import pandas as pd

    from markovia.inference.densities.draws.drawn_posterior import DrawnPosterior
    from markovia.inference.densities.draws.function_draws import NodeFunction
    from markovia.inference.variational.log_z_bounds import LogBounds
    from markovia.models.graphical.bayesian_network import BayesianNetwork
    from markovia.models.graphical.factor_graph import FactorGraph
    from markovia.models.graphical.markov_network import MarkovNetwork
    from markovia.models.graphical.model import Model

MAX_CELLS = 2**31


class GraphicalModel(ModelCore):
    """What `BayesianNetwork`, `MarkovNetwork` and `FactorGraph` have in common: questions, samples, other kinds of model."""

    @guided
    def query(
        self,
        targets: str | Sequence[str],
        given: "Given | DrawnPosterior | NodeFunction" = None,
        engine: str | Engine = "auto",
        time_limit: float | None = None,
        missing: Literal["refuse", "impute"] = "refuse",
        device: Device | None = None,
    ) -> Posterior:
        """Return the posterior of one variable, or the joint posterior of several.

        Parameters
        ----------
        targets
            A name, or several for their joint distribution.
        given
            Evidence: a mapping from name to a state (hard), a list or dict of likelihoods (soft),
            `Not(state, ...)`, or `Jeffrey(probabilities)` for a posterior that is to hold. Also a posterior made of draws:
            the targets are then predicted at each of its draws (`m.do(x=2.0).query("y", given=post)`).
        engine
            An engine's name or an engine with settings; "auto" picks one by the kinds of the pieces that matter to the
            question, and `info` says which.
        time_limit
            Seconds that "auto" (or an approximate engine) may take. An exact engine has no such setting.
        missing
            What NaN in an array of numbers means: an error, or entries to infer along with everything else ("impute").
        device
            Where tables are computed. By default the engine chooses, and "auto" takes a GPU where there is one and it pays;
            "cpu" never takes it. "gpu" asks for it; where there is none, a warning says so and the processor answers.
            `markovia info` shows what there is.

        Returns
        -------
        Posterior
            A table that prints; its `info` tells how it was computed.

        Raises
        ------
        ImpossibleEvidence
            If the evidence has probability zero; the error names a minimal conflicting subset.
        TooLarge
            If exact inference does not fit the memory budget.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.examples.sprinkler()
        >>> print(bn.query("rain", given={"wet": "yes"}))
        rain         p
        no    0.292072
        yes   0.707928
        """
        names = self._names(targets)
        if device is not None:
            engine = get_engine(engine, None, device)
        if hasattr(given, "program"):
            from markovia.models.graphical import drawn_rows

            refuse_gpu(engine, BEYOND_TABLES)
            return cast("Posterior", drawn_rows.predicted_posterior(self, given, names))
        problem = self._unfolded(given, engine, names, missing)
        fixed = self._observed(problem, names)
        asked = [n for n in names if n not in fixed] if fixed else names
        question = "joint" if len(asked) > 1 else "marginals"
        watch = Stopwatch()
        chosen = engine_for(engine, problem, time_limit, question, names)
        with asking(chosen, problem, question):
            answer: Any = chosen.joint(problem, asked)
            self._check_possible(answer.log_mass, problem, chosen, answer.record)
            info = self._info(chosen, problem, answer.log_mass, watch, answer.record)
        if not isinstance(answer, Tables):
            return cast("Posterior", answer.posterior(names, info))
        table = answer.tables[0]
        if fixed:
            table = product([table, *(f.factor() for f in fixed.values())])
        return Posterior(table if len(names) == 1 else table.transpose(names), info)

    @overload
    def marginals(
        self,
        given: Given = None,
        targets: Sequence[str] | None = None,
        engine: str | Engine = "auto",
        progress: bool | None = None,
        time_limit: float | None = None,
        *,
        missing: Literal["refuse", "impute"] = "refuse",
        device: Device | None = None,
    ) -> Marginals: ...

    @overload
    def marginals(
        self,
        given: Rows,
        targets: Sequence[str] | None = None,
        engine: str | Engine = "auto",
        progress: bool | None = None,
        time_limit: float | None = None,
        impossible: Impossible = "raise",
        *,
        device: Device | None = None,
    ) -> RowMarginals: ...

    @guided
    def marginals(
        self,
        given: Given | Rows = None,
        targets: Sequence[str] | None = None,
        engine: str | Engine = "auto",
        progress: bool | None = None,
        time_limit: float | None = None,
        impossible: Impossible = "raise",
        missing: Literal["refuse", "impute"] = "refuse",
        device: Device | None = None,
    ) -> Marginals | RowMarginals:
        """Return the posterior of every unobserved variable (or of the named ones), by name.

        Parameters
        ----------
        given
            Evidence as in `query`, or many rows of it: a frame of any library, a list of mappings from name to state, or
            data files; a missing cell is None, NaN, NaT or pandas.NA.
        targets
            The variables to ask for; by default all that are not observed (in some row).
        engine
            As in `query`; for rows "auto" and "junction-tree" run in compiled code.
        progress
            For rows, whether to show a progress bar; by default on a terminal if it takes long.
        time_limit
            As in `query`; not for rows.
        impossible
            For rows, what becomes of one of probability zero: "raise", "nan" (no answer) or "prior" (without evidence).
        missing, device
            As in `query`.

        Returns
        -------
        Marginals, or for rows RowMarginals
            Posteriors by name, or frames by name: one column a state and the rows' index; where a row observes the
            variable, its state has probability 1. `to_pandas()` puts all into one.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.examples.sprinkler()
        >>> list(bn.marginals(given={"wet": "yes"}))
        ['cloudy', 'sprinkler', 'rain']
        >>> rows = [{"wet": "yes", "rain": None}, {"wet": "yes", "rain": "no"}]
        >>> print(bn.marginals(given=rows, targets=["rain"])["rain"].round(4))
               no     yes
        0  0.2921  0.7079
        1  1.0000  0.0000
        """
        names = None if targets is None else self._names(targets)
        if device is not None:
            engine = get_engine(engine, None, device)
        rows = _rows(given)
        if rows is not None:
            tables: RowMarginals = rows.marginals(
                self, given, names, get_engine(engine, time_limit), progress, impossible
            )
            return tables
        problem = self._unfolded(cast("Given", given), engine, names, missing)
        wanted = problem.asked if names is None else names
        fixed = {} if names is None else self._observed(problem, wanted)
        asked = [n for n in wanted if n not in fixed] if fixed else wanted
        watch = Stopwatch()
        chosen = engine_for(engine, problem, time_limit, "marginals")
        with asking(chosen, problem, "marginals"):
            answer: Any = chosen.marginals(problem, asked)
            self._check_possible(answer.log_mass, problem, chosen, answer.record)
            info = self._info(chosen, problem, answer.log_mass, watch, answer.record)
        if not isinstance(answer, Tables):
            return Marginals((n, answer.posterior([n], info)) for n in wanted)
        found = Marginals(zip(asked, map(Posterior, answer.tables, repeat(info)), strict=True))
        if not fixed:
            return found
        found.update({n: Posterior(f.factor(), info) for n, f in fixed.items()})
        return Marginals((n, found[n]) for n in wanted)

    @overload
    def map(
        self,
        given: Given = None,
        targets: Sequence[str] | None = None,
        m: None = None,
        engine: str | Engine = "auto",
        time_limit: float | None = None,
        device: Device | None = None,
    ) -> Explanation: ...

    @overload
    def map(
        self,
        given: Given = None,
        targets: Sequence[str] | None = None,
        *,
        m: int,
        engine: str | Engine = "auto",
        time_limit: float | None = None,
        device: Device | None = None,
    ) -> list[Explanation]: ...

    @guided
    def map(
        self,
        given: Given = None,
        targets: Sequence[str] | None = None,
        m: int | None = None,
        engine: str | Engine = "auto",
        time_limit: float | None = None,
        device: Device | None = None,
    ) -> Explanation | list[Explanation]:
        """Return the most probable explanation of the evidence.

        Parameters
        ----------
        given
            Evidence as in `query`.
        targets
            The variables to explain, all other unobserved ones being summed out (marginal MAP); every
            unobserved variable by default.
        m
            Return a list of the m best explanations, best first.
        engine, time_limit, device
            As in `query`.

        Returns
        -------
        Explanation or list of Explanation
            A mapping from name to state with attributes ``log_prob``, ``bound``, ``gap`` and ``info``. Where optimality is
            proved the gap is zero.

        Examples
        --------
        >>> import markovia as mk
        >>> mk.examples.sprinkler().map(given={"wet": "yes"}).to_dict()
        {'cloudy': 'yes', 'sprinkler': 'no', 'rain': 'yes'}
        """
        asked = None if targets is None else self._names(targets)
        if device is not None:
            engine = get_engine(engine, None, device)
        problem = self._unfolded(given, engine, asked)
        names = problem.asked if asked is None else asked
        if m is not None and (not isinstance(m, int | np.integer) or m < 1):
            raise InvalidArgument(f"m= is the number of explanations, at least 1, not {m!r}")
        many = 1 if m is None else int(m)
        fixed = {n: f.code for n, f in self._observed(problem, names).items()}
        wanted = [n for n in names if n not in fixed]
        if targets is None and problem.hidden_certain:
            wanted += problem.hidden  # certain given the others: nothing to sum out
        watch = Stopwatch()
        question = best_question(wanted, problem.free, many)
        chosen = engine_for(engine, problem, time_limit, question)
        with asking(chosen, problem, question):
            ranked = chosen.best(problem, wanted, many)
            self._check_found(ranked, problem, chosen)
            log_mass, log_z = self._masses(chosen, problem, ranked.record)
        info = self._info(chosen, problem, log_mass, watch, ranked.record, log_z=log_z)
        shift = 0.0 if np.isnan(log_z) else log_z
        top = -np.inf if ranked.record.bound is None else ranked.record.bound
        most = (
            0.0 if problem.kinds <= TABLES else np.inf
        )  # a probability is at most one, a density any number
        field = log_integral(problem)
        answers = [
            Explanation(
                {n: _named(self._variables[n], (fixed if n in fixed else a.codes)[n]) for n in names},
                log_prob=a.log_weight - shift,
                log_posterior=min(most, a.log_weight - log_mass) if not np.isnan(log_mass) else np.nan,
                bound=max(top, a.log_weight) - shift,
                info=info,
                log_weight=a.log_weight + field,
                normalised=not np.isnan(log_z),
                is_density=any(isinstance(self._variables[n], Quantity) for n in names),
            )
            for a in ranked
        ]
        return answers[0] if m is None else answers

    @overload
    def log_evidence(
        self,
        given: Given = None,
        engine: str | Engine = "auto",
        progress: bool | None = None,
        time_limit: float | None = None,
        *,
        device: Device | None = None,
    ) -> float: ...

    @overload
    def log_evidence(
        self,
        given: Rows,
        engine: str | Engine = "auto",
        progress: bool | None = None,
        time_limit: float | None = None,
        *,
        device: Device | None = None,
    ) -> Array: ...

    @overload
    def log_evidence(
        self,
        given: Any,
        engine: str | Engine = "auto",
        progress: bool | None = None,
        time_limit: float | None = None,
        *,
        by: str,
        device: Device | None = None,
    ) -> Array: ...

    @guided
    def log_evidence(
        self,
        given: Given | Rows = None,
        engine: str | Engine = "auto",
        progress: bool | None = None,
        time_limit: float | None = None,
        by: str | None = None,
        device: Device | None = None,
    ) -> float | Array:
        """Return log P(evidence); minus infinity if it is impossible.

        The arguments are those of `query` and, for rows, of `marginals`.

        With `by="row"`, of a model whose observed nodes are on a plate of rows that are independent given the parameters,
        return one number a row: exact where all else is summed out, else by the weights of the guide's proposals.

        For many rows of evidence (a frame, a list of mappings or files, as in `marginals`) return an array with one number
        a row.

        Raises
        ------
        ImpossibleEvidence
            If the model gives every configuration weight zero, so that no evidence has a probability.

        Examples
        --------
        >>> import markovia as mk
        >>> round(mk.examples.sprinkler().log_evidence(given={"wet": "yes"}), 4)
        -0.4353
        >>> mk.examples.sprinkler().log_evidence(given=[{"wet": "yes"}, {"rain": "yes", "wet": None}]).round(4).tolist()
        [-0.4353, -0.6931]
        """
        if by is not None:
            return self._row_log_evidence(given, engine, time_limit, by, device)
        if device is not None:
            engine = get_engine(engine, None, device)
        rows = _rows(given)
        if rows is not None:
            logs: Array = rows.log_prob(self, given, get_engine(engine, time_limit), progress)
            return logs
        problem = self._unfolded(cast("Given", given), engine, ())
        chosen = engine_for(engine, problem, time_limit, "log_mass")
        mass = float(self._mass(chosen, problem))
        return mass if self.normalised else mass - float(self._normaliser(problem, chosen))

    def _row_log_evidence(
        self, given: Any, engine: Any, time_limit: float | None, by: str, device: Device | None
    ) -> Array:
        from markovia.inference.densities.engines.amortised import Amortised, row_log_evidence

        check("by", by, Choice(("row",)))
        # the same question has the same answer
        asked: Any = Amortised(seed=0) if engine == "auto" else engine
        chosen: Any = get_engine(asked, time_limit, device)
        if not isinstance(chosen, Amortised):
            raise InvalidArgument(f"by='row' is answered by engine='amortised', not {chosen.name!r}")
        problem = self._problem(given, "auto", None, "impute")
        return row_log_evidence(problem, chosen) - self._row_normaliser(problem)

    @overload
    def log_partition(
        self,
        given: Given = None,
        engine: str | Engine = "auto",
        bounds: Literal[False] = False,
        time_limit: float | None = None,
        device: Device | None = None,
    ) -> float: ...

    @overload
    def log_partition(
        self,
        given: Given = None,
        engine: str | Engine = "auto",
        *,
        bounds: Literal[True],
        time_limit: float | None = None,
        device: Device | None = None,
    ) -> "LogBounds": ...

    @guided
    def log_partition(
        self,
        given: Given = None,
        engine: str | Engine = "auto",
        bounds: bool = False,
        time_limit: float | None = None,
        device: Device | None = None,
    ) -> "float | LogBounds":
        """Return the log of the unnormalised mass that agrees with the evidence: log Z without any.

        Of a number that was found it is the mass of the density cut at that value, so that the difference to log Z is the
        log density of the evidence. Of a directed model with potentials it is an estimate, by a population that goes from
        the nodes' own distributions to the weighed ones (engine "smc").

        Parameters
        ----------
        given, engine, time_limit, device
            As in `query`.
        bounds
            Return a lower and an upper bound instead: the best evidence lower bound of mean field and the bound of
            tree-reweighted belief propagation. No engine is needed, and the model may be too wide for an exact one. In a
            model of linear Gaussians both are the exact value.

        Returns
        -------
        float, or with `bounds` a `LogBounds`
            `.lower <= log Z <= .upper`, with the loopy estimate in `.estimate`.

        Examples
        --------
        >>> import markovia as mk
        >>> mn = mk.MarkovNetwork({"a": 2}, [mk.Factor(["a"], [3, 5])])
        >>> round(float(np.exp(mn.log_partition())), 6)
        8.0
        """
        from markovia.inference.variational.log_z_bounds import exact_bounds, log_partition_bounds

        if device is not None:
            engine = get_engine(engine, None, device)
        problem = self._unfolded(given, engine, ())
        if bounds and problem.kinds <= TABLES:
            refuse_gpu(engine, "bounds")
            return log_partition_bounds(problem, time_limit=time_limit)
        watch = Stopwatch()
        chosen = engine_for(engine, problem, time_limit, "log_mass")
        mass = self._mass(chosen, problem)
        total = float(mass) + log_integral(problem)
        return exact_bounds(total, chosen, mass.record, watch.seconds) if bounds else total

    def joint(self, *, max_entries: int = 2**24) -> Factor:
        """Return the whole joint distribution as one normalised factor, for small models.

        Raises
        ------
        TooLarge
            If the table would have more than `max_entries` entries.
        UnsupportedModel
            If a variable is a number, of which there is no table.
        """
        number = next((n for n, v in self._variables.items() if isinstance(v, Quantity)), None)
        if number is not None:
            raise UnsupportedModel(
                f"the joint table is one of states, and {number!r} is a number; query([...]) of several variables is their "
                "joint distribution, numbers or not"
            )
        entries = prod(len(v) for v in self._variables.values())
        if entries > max_entries:
            raise TooLarge(
                f"the joint table has {entries:,} entries, over max_entries={max_entries:,}; use query()"
            )
        problem = self._problem(None)
        table = Factor.scalar()
        for factor in problem.reduced(None):
            table = product((table, factor))
            if not self.normalised:
                table = table / (float(table.values.max(initial=0.0)) or 1.0)
        return (table if self.normalised else table.normalize()).transpose(self.variables)

    # -- rows of data --------------------------------------------------------------------------------------------

    @guided
    def sample(
        self,
        n: int = 1,
        given: Any = None,
        seed: Any = None,
        engine: str | Engine = "auto",
        inputs: Mapping[str, Any] | None = None,
        device: Device | None = None,
    ) -> "pd.DataFrame":
        """Draw n rows, from the model or from its posterior given evidence (exact unless the engine says otherwise).

        Parameters
        ----------
        n
            The number of rows; rows times variables may be 2**31.
        given
            Evidence as in `query`; hard evidence fills its column. In a model with quantities also a posterior made of
            draws: the rows are then predictions, one for each of its draws.
        seed
            An integer or a NumPy generator; the same seed gives the same rows.
        engine
            Who draws when there is evidence (or the model is undirected).
        inputs
            Constants and covariates of a model with quantities; for predictions, those that are new.
        device
            As in `query`.

        Examples
        --------
        >>> import markovia as mk
        >>> mk.examples.sprinkler().sample(3, seed=0).shape
        (3, 4)
        """
        if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 0:
            raise InvalidArgument(f"n= is a number of rows, not {n!r}")
        if int(n) * max(1, len(self)) > MAX_CELLS:
            raise TooLarge(
                f"{n:,} rows of {len(self):,} variables are over the limit of {MAX_CELLS:,} cells; "
                "draw fewer rows at a time"
            )
        from markovia.models.graphical import drawn_rows

        rng = generator(seed)
        if device is not None:
            engine = get_engine(engine, None, device)
        if hasattr(given, "program"):
            refuse_gpu(engine, BEYOND_TABLES)
            return cast("pd.DataFrame", drawn_rows.predictions(self, given, inputs, int(n), rng))
        if inputs is not None and not any(piece.kind == "distribution" for piece in self.pieces()):
            raise InvalidArgument(
                "inputs= is for models with functions of parents; this one takes no constants"
            )
        problem = self._unfolded({**(given or {}), **inputs} if inputs else given, engine)
        if problem.kinds <= CLOSED or problem.findings or "potential" in problem.kinds:
            drawn = self._draw(problem, n, rng, engine_for(engine, problem, question="sample"))
        else:  # nothing that the draws have to agree with: parents first
            refuse_gpu(engine, BEYOND_TABLES)
            drawn = drawn_rows.simulated(problem, {}, n, rng)
        return cast("pd.DataFrame", drawn_rows.as_rows(problem, drawn, self._variables, int(n)))

    # -- other kinds of model ------------------------------------------------------------------------------------

    def to_markov_network(self) -> "MarkovNetwork":
        """Return the model as a Markov network over the same variables (moralisation for a directed one)."""
        return cast("MarkovNetwork", ports.call("to-markov-network", self))

    def to_factor_graph(self) -> "FactorGraph":
        """Return the model as a factor graph with one factor a piece."""
        return cast("FactorGraph", ports.call("to-factor-graph", self))

    def to_bayesian_network(self, *, allow_fill: bool = True) -> "BayesianNetwork":
        """Return a Bayesian network with the same joint distribution, through a chordal graph.

        A graph that is not chordal is triangulated first, unless `allow_fill` is false.
        """
        return cast("BayesianNetwork", ports.call("to-bayesian-network", self, allow_fill=allow_fill))

    def condition(self, given: Given) -> "Model":
        """Return the undirected model of the unobserved variables given the evidence.

        Its partition function is the mass that agrees with the evidence.
        """
        return self.to_markov_network().condition(given)


def _rows(given: Any) -> Any:
    """Return the module for many rows of evidence if that is what was given, else None."""
    if given is None or isinstance(given, Mapping):
        return None
    from markovia.models.graphical.data_rows import rows

    return rows if rows.are_rows(given) else None


def _named(variable: Variable, value: Any) -> Any:
    """Return a state for a code, a number as it is."""
    if not isinstance(variable, Quantity):
        return variable.states[int(value)]
    return variable.labels[int(value)] if variable.labels and np.ndim(value) == 0 else value

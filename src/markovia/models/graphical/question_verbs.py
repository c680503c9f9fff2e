"""Questions beyond posteriors: which test to run, which numbers matter, whether findings fit, and second opinions.

The mathematics is in `markovia.inference`, a file a question; here names are checked and problems made.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product as combinations
from typing import Any

import numpy as np

from markovia.errors import (
    InvalidArgument,
    InvalidEvidence,
    MarkoviaError,
    UnknownVariable,
    UnsupportedModel,
)
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.evidence import Jeffrey
from markovia.factors.tables.table_forms import argument_names
from markovia.factors.tables.variable import State, Variable
from markovia.inference.densities.draws.drawn_posterior import DrawnPosterior
from markovia.inference.densities.draws.named_draws import drawn_expectation
from markovia.inference.densities.program.state_draws import PlatedPosterior
from markovia.inference.engine import CLOSED, TABLES, Engine, asking, engine_for, get_engine
from markovia.inference.exact.plan_details import PlanDetails
from markovia.inference.gaussian import mixture_questions
from markovia.inference.gaussian.gaussian_posterior import GaussianPosterior
from markovia.inference.gaussian.mean_sensitivity import MeanSensitivity, mean_sensitivity
from markovia.inference.impossible_evidence import impossible
from markovia.inference.problem import Problem
from markovia.inference.questions.agreement import Agreement, second_opinion
from markovia.inference.questions.evidence_conflict import Conflict, data_conflict
from markovia.inference.questions.information_gain import Information, information_gains
from markovia.inference.questions.sensitivity import Sensitivity, sensitivity
from markovia.inference.result import Info
from markovia.models.graphical.arguments import Given, list_of_names
from markovia.models.graphical.base import GraphicalModel
from markovia.runtime.clock import Stopwatch, now
from markovia.runtime.keyword_advice import guided


class QuestionVerbs(GraphicalModel):
    """The further questions that every model answers."""

    @guided
    def information(
        self,
        target: str | Sequence[str],
        given: Given = None,
        candidates: str | Iterable[str] | None = None,
        base: float | None = None,
        costs: Mapping[str, float] | None = None,
        engine: str | Engine = "auto",
    ) -> Information:
        """Return how much each possible finding would tell about the target: which test to run next.

        It is the mutual information between the target and the candidate, given the evidence: the expected drop
        in the target's entropy when the candidate is observed.

        Parameters
        ----------
        target
            A name, or several that are to be known together.
        given
            Evidence as in `query`.
        candidates
            What could be observed; by default every other variable that is not yet fixed to a state (or, with
            costs, every variable that has one). A candidate that is already observed tells nothing, so zero.
        base
            2 for bits, 10 for hartleys; nats by default.
        costs
            A positive cost for every candidate; they are then ranked by information per cost.
        engine
            As in `query`. It is asked once for every state of the target.

        Returns
        -------
        Information
            A mapping from name to information, best first, that prints as a table; ``best`` is the first name.

        Raises
        ------
        InvalidArgument
            If the target is observed already, or is a candidate too.

        Examples
        --------
        >>> import markovia as mk
        >>> print(mk.examples.asia().information("lung", given={"dysp": "yes"}, candidates=["xray", "smoke"], base=2))
        test        bits  share
        xray    0.301746  63.2%
        smoke  0.0342769   7.2%
        """
        names = self._names(target)
        unit = _unit(base)
        if costs is not None and not isinstance(costs, Mapping):
            raise InvalidArgument(f"costs= is a mapping such as {{'xray': 20.0}}, not {costs!r}")
        chosen_ones = costs if candidates is None else list_of_names(candidates, "candidates")
        listed = self._names(chosen_ones) if chosen_ones else []
        problem = self._problem(given, engine, None if chosen_ones is None else [*names, *listed])
        for name in names:
            if name in problem.findings and problem.findings[name].hard:
                raise InvalidArgument(
                    f"{name!r} is observed already, so nothing more can be learned about it"
                )
        if chosen_ones is None:
            listed = [n for n in problem.free if n not in names]
        for name in listed:
            if name in names:
                raise InvalidArgument(f"{name!r} is the target; it cannot be a candidate too")
        prices = None if costs is None else _costs(costs, listed)
        watch = Stopwatch()
        chosen = engine_for(engine, problem)
        if problem.kinds <= TABLES:
            with asking(chosen, problem, "marginals"):
                gains = information_gains(problem, names, listed, chosen)
        else:
            with asking(chosen, problem, "joint"):
                gains = mixture_questions.mixture_gains(problem, names, listed, chosen)
        self._check_possible(gains.log_mass, problem, chosen, gains.record)
        info = self._info(chosen, problem, gains.log_mass, watch, gains.record)
        values = {n: v / unit for n, v in gains.values.items()}
        word = "nats" if base is None else "bits" if base == 2 else f"units of log({base:g})"
        return Information(values, names, gains.entropy / unit, word, info, prices)

    @guided
    def sensitivity(
        self,
        query: str | tuple[str, State] | Mapping[str, State],
        given: Given = None,
        max_bytes: int | None = None,
    ) -> "Sensitivity | MeanSensitivity":
        """Return how a posterior probability answers to every entry of every table.

        Two sweeps give all derivatives, however many entries there are. In a network of linear Gaussians the query is the
        name of a number, and the answer is about its posterior mean and every bias, weight and variance.

        Parameters
        ----------
        query
            What the probability is of: `"x=a"`, `"x=a, y=b"`, `("x", "a")` or `{"x": "a", "y": "b"}`.
        given
            Evidence as in `query`: hard, soft or negative.
        max_bytes
            The memory budget of the sweeps; 80% of the free memory by default.

        Returns
        -------
        Sensitivity
            `.largest(n)` lists the entries that matter most, `["node"]` holds the derivatives of a node's table,
            `.function("node", ...)` is the posterior as a function of one entry.

        Raises
        ------
        InvalidEvidence
            If a posterior is fixed by `Jeffrey(...)`: it then does not follow from the tables alone.
        ImpossibleEvidence, TooLarge
            As in `query`.

        Examples
        --------
        >>> import markovia as mk
        >>> found = mk.examples.asia().sensitivity("lung=yes", given={"xray": "yes"})
        >>> round(found.probability, 6)
        0.488711
        >>> print(found.largest(2))
        parameter                value  derivative
        P(xray=yes | either=no)   0.05    -4.14388
        P(xray=no | either=no)    0.95     4.14388
        """
        if isinstance(query, str) and query in self:
            about = self._problem(given, targets=[query])
            if not about.kinds <= TABLES:
                return _mean_sensitivity(about, query)
        asked = self._conjunction(query)
        _refuse_jeffrey(given, "sensitivity is about numbers of the model, which Jeffrey(...) overrides")
        problem = self._problem(given, targets=asked)
        if not problem.kinds <= TABLES:
            raise UnsupportedModel(
                "among pieces with numbers sensitivity is of a number's posterior mean; name one, or leave out evidence on "
                "numbers"
            )
        start = now()

        def info(log_mass: float, width: int) -> Info:
            log_evidence = log_mass if self.normalised or not problem.findings else log_mass - self._log_z()
            return Info(
                engine="bucket-elimination derivatives",
                exact=True,
                log_evidence=float(log_evidence) if self.normalised or problem.findings else 0.0,
                seconds=now() - start,
                details=PlanDetails(width),
                given=problem.given,
            )

        found = sensitivity(problem, asked, info=info, max_bytes=max_bytes)
        if found is None:
            raise impossible(problem, get_engine("auto").log_mass)
        return found

    @guided
    def conflict(self, given: Mapping[str, Any], engine: str | Engine = "auto") -> Conflict:
        """Return how much the findings disagree: `sum of log P(finding) - log P(all of them)`, in nats.

        Parameters
        ----------
        given
            Evidence as in `query`: hard, soft or negative.
        engine
            As in `query`.

        Returns
        -------
        Conflict
            A number (`float(...)`): positive where the findings are together less probable than if they were
            independent, infinite where they are impossible together. `.contributions` says what each adds.

        Raises
        ------
        ImpossibleEvidence
            If one finding alone has probability zero.
        Unanswered
            If an approximate engine gives a finding no probability although it is not known to be impossible.
        InvalidEvidence
            If a posterior is fixed by `Jeffrey(...)`, which has no probability.

        Examples
        --------
        >>> import markovia as mk
        >>> asia = mk.examples.asia()
        >>> round(float(asia.conflict({"xray": "yes", "dysp": "yes"})), 4)
        -0.3851
        >>> print(asia.conflict({"lung": "yes", "smoke": "no", "xray": "no"}))
        conflict 5.49991: the findings disagree
        finding         p     adds
        lung=yes    0.055  5.54541
        xray=no   0.88971  3.79516
        smoke=no      0.5  1.70475
        """
        _refuse_jeffrey(given, "Jeffrey(...) has no probability, so it cannot be in conflict")
        problem = self._problem(given, engine, ())
        chosen = engine_for(engine, problem, question="log_mass")
        with asking(chosen, problem, "log_mass"):
            return data_conflict(problem, chosen, normalised=self.normalised)

    @guided
    def expectation(
        self,
        function: Callable[..., float],
        targets: str | Sequence[str] | None = None,
        given: Given = None,
        engine: str | Engine = "auto",
    ) -> float:
        """Return the mean of a function of some variables, given evidence.

        Parameters
        ----------
        function
            Any Python function of the targets' states that returns a number. It is called for possible states only. Of
            Gaussian numbers the mean is found by quadrature; of other numbers it is the average over the posterior's
            draws, for each of which the function is called (with arrays, for nodes on plates).
        targets
            The variables it takes, in order; by default those that its arguments are named after.
        given, engine
            As in `query`.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.examples.asia()
        >>> cost = {"yes": 100.0, "no": 0.0}
        >>> round(bn.expectation(lambda lung, tub: max(cost[lung], cost[tub]), given={"xray": "yes"}), 4)
        57.604
        """
        if not callable(function):
            raise InvalidArgument(
                f"expectation() takes a function of the targets' states first, not {function!r}"
            )
        names = self._names(_arguments(function) if targets is None else targets)
        posterior = self.query(names, given=given, engine=engine)
        if isinstance(posterior, GaussianPosterior):
            return mixture_questions.expectation(function, posterior)
        if isinstance(posterior, DrawnPosterior):
            return drawn_expectation(function, posterior)
        if hasattr(posterior, "at"):
            raise InvalidArgument(
                f"{names[0]!r} is a function, which is asked for at inputs: query(...).at(x).mean()"
            )
        if isinstance(posterior, PlatedPosterior):
            raise UnsupportedModel(
                f"an expectation over the elements of {names[0]!r} together needs draws of them: average the function over "
                "sample(1000, given=...)"
            )
        weights = posterior.values.ravel()
        states = combinations(*(v.states for v in posterior.variables))
        terms = [(w, function(*s)) for w, s in zip(weights, states, strict=True) if w > 0]
        try:
            return float(np.dot([w for w, _ in terms], np.array([f for _, f in terms], dtype=np.float64)))
        except (TypeError, ValueError):
            raise InvalidArgument(
                "the function of an expectation returns one number for every combination of states"
            ) from None

    @guided
    def verify(
        self,
        targets: str | Sequence[str],
        given: Given = None,
        engines: Sequence[str | Engine] | None = None,
        tolerance: float = 1e-9,
    ) -> Agreement:
        """Answer a query with two independent engines and compare.

        Probabilities are compared as they are, and of numbers the means and standard deviations, in units of the standard
        deviation. Engines that draw agree within their Monte Carlo error, so give them a tolerance.

        Parameters
        ----------
        targets, given
            As in `query`.
        engines
            Two or more engines; by default what "auto" picks and another exact one that fits the budget.
        tolerance
            How far two probabilities (or moments, in standard deviations, and the log evidence, relative to its size) may be
            apart.

        Returns
        -------
        Agreement
            Whether they agree, the greatest difference, and all answers, which it prints; it is true where they agree.

        Raises
        ------
        TooLarge, Unanswered
            If no second exact engine fits the budget, or none treats the model.

        Examples
        --------
        >>> import markovia as mk
        >>> found = mk.examples.asia().verify("lung", given={"xray": "yes"})
        >>> found.agree, len(found.answers), found.difference < 1e-12
        (True, 2, True)
        """
        if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not tolerance >= 0:
            raise InvalidArgument(f"tolerance= is a number, zero or more, not {tolerance!r}")
        if engines is None:
            first = self.query(targets, given=given)
            second = second_opinion(
                lambda name: self.query(targets, given=given, engine=name), first.info.engine
            )
            return Agreement([first, second], tolerance)
        if isinstance(engines, str) or not isinstance(engines, Iterable):
            raise InvalidArgument(f"engines= is a list of at least two engines, not {engines!r}")
        chosen = [get_engine(e) for e in engines]
        if len(chosen) < 2:
            raise InvalidArgument(f"a comparison needs at least two engines, not {len(chosen)}")
        return Agreement([self.query(targets, given=given, engine=e) for e in chosen], tolerance)

    def _conjunction(self, query: object) -> dict[str, State]:
        """Read `"x=a, y=b"`, `("x", "a")` or a mapping as states by name."""
        if isinstance(query, str):
            pairs = [self._equation(part) for part in self._split(query)]
        elif isinstance(query, Mapping):
            pairs = list(query.items())
        elif isinstance(query, tuple) and len(query) == 2:
            pairs = [(query[0], query[1])]
        else:
            raise InvalidArgument(
                f"ask for 'x=a', ('x', 'a') or {{'x': 'a'}}, the probability of a state, not {query!r}"
            )
        asked: dict[str, State] = {}
        for name, state in pairs:
            variable = self._with_states(name)
            if name in asked:
                raise InvalidArgument(f"{name!r} is asked for twice")
            asked[name] = variable.states[variable.index(state)]
        if not asked:
            raise InvalidArgument("name at least one variable and its state, such as 'x=a'")
        return asked

    def _with_states(self, name: str) -> Variable:
        variable = self.variable(name)
        if isinstance(variable, Quantity):
            raise InvalidArgument(
                f"sensitivity is of a probability of states, or of a number's posterior mean; name one, such as {name!r}"
            )
        return variable

    def _split(self, text: str) -> list[str]:
        """Split at commas; a text that is one equation as it stands (a comma in a name or state) stays whole."""
        try:
            self._equation(text)
        except MarkoviaError:
            return text.split(",")
        return [text]

    def _equation(self, text: str) -> tuple[str, State]:
        left, sign, _ = text.partition("=")
        if not sign:
            raise InvalidArgument(
                f"{text.strip()!r} is no question; write a variable and a state, such as 'x=a'"
            )
        cuts = [i for i, c in enumerate(text) if c == "="]
        for i in cuts:
            if text[:i].strip() in self._variables:
                name = text[:i].strip()
                return name, self._with_states(name).parse(text[i + 1 :].strip())
        raise UnknownVariable(left.strip(), self._variables)


def _mean_sensitivity(problem: Problem, query: str) -> MeanSensitivity:
    start = now()
    if not problem.kinds <= CLOSED:
        raise UnsupportedModel(
            "sensitivity is known in closed form for tables and linear Gaussians; in a model with functions of parents, "
            "make the number a constant and query(...) again with another value of it in given="
        )
    if not isinstance(problem.variables[query], Quantity):
        raise UnsupportedModel(
            f"{query!r} has states, and among pieces with numbers sensitivity is of a number's posterior mean; name one"
        )
    info = Info(engine="gaussian", exact=True, given=problem.given)
    found = mean_sensitivity(problem, query, info)
    found.info = replace(info, seconds=now() - start)
    return found


def _arguments(function: Callable[..., float]) -> tuple[str, ...]:
    try:
        return argument_names(function)
    except InvalidArgument:
        raise InvalidArgument(
            "the function does not name its variables by its arguments; give targets=[...]"
        ) from None


def _refuse_jeffrey(given: object, why: str) -> None:
    if isinstance(given, Mapping):
        for name, said in given.items():
            if isinstance(said, Jeffrey):
                raise InvalidEvidence(f"{why}; leave {name!r} out of given=, or give it a likelihood")


def _unit(base: float | None) -> float:
    if base is None:
        return 1.0
    if isinstance(base, bool) or not isinstance(base, int | float | np.number) or not 1 < base < np.inf:
        raise InvalidArgument(f"base= is a number above 1, such as 2 for bits, not {base!r}")
    return float(np.log(base))


def _costs(costs: Mapping[str, float], names: Sequence[str]) -> dict[str, float]:
    found = {}
    for name in names:
        if name not in costs:
            raise InvalidArgument(f"candidate {name!r} has no cost; costs= needs one for every candidate")
        cost = costs[name]
        if isinstance(cost, bool) or not isinstance(cost, int | float | np.number) or not 0 < cost < np.inf:
            raise InvalidArgument(f"the cost of {name!r} is a positive number, not {cost!r}")
        found[name] = float(cost)
    return found

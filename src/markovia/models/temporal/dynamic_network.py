"""Dynamic Bayesian networks: networks for the first time steps and one for every step after them.

Unrolling lays the steps side by side as one ordinary Bayesian network, so every verb works on it. Questions about whole
sequences are answered without unrolling, by the interface algorithm (`markovia.inference.sequences.interface`).
References: Friedman, Murphy and Russell (1998), "Learning the structure of dynamic probabilistic networks"; Murphy (2002),
"Dynamic Bayesian Networks: Representation, Inference and Learning".
"""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

from markovia.data.sequences.sequences import Lengths
from markovia.errors import (
    DuplicateName,
    IncompleteModel,
    InvalidArgument,
    InvalidGraph,
    InvalidTable,
    UnknownVariable,
    check_known,
)
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.variable import State, Variable
from markovia.graphs.kinds.plot_options import Highlight, Positions
from markovia.inference.engine import Engine
from markovia.inference.posterior import Posterior
from markovia.inference.sequences.slices import split_name
from markovia.learning.tables.fit_record import Fit
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.dynamic.dynamic_answers import Beliefs, BestPaths
from markovia.models.temporal.dynamic.dynamic_inference import beliefs, decode, log_prob
from markovia.models.temporal.dynamic.dynamic_language import (
    Declaration,
    declared,
    missing_parents,
    own_variables,
    with_declarations,
)
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_count
from markovia.runtime.keyword_advice import guided
from markovia.runtime.shown import html_picture

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from markovia.models.temporal.dynamic.dynamic_stream import DynamicStream
    from markovia.models.temporal.dynamic.optimality import OptimalityModel
    from markovia.models.temporal.linear_state_space import LinearStateSpace
    from markovia.models.temporal.switching_state_space import SwitchingStateSpace


def at(name: str, step: int) -> str:
    """Return the name of a variable at a time step.

    Examples
    --------
    >>> at("rain", 3)
    'rain@3'
    """
    return f"{name}@{step}"


class DynamicBayesianNetwork:
    """A process whose next step depends on the steps before.

    Parameters
    ----------
    initial
        The network of step 0; a list of networks for the steps 0 to k-1 of a process that looks k steps back. In those of
        later steps, variables of steps before are roots, as in the transition. None to begin with nothing and `add`.
    transition
        The network of any later step; a variable of the step before is a root named `"x@-1"` (it needs no table), one of two
        steps before `"x@-2"`.

    Examples
    --------
    >>> process = DynamicBayesianNetwork()
    >>> process.add("rain", states=["no", "yes"], parents=["rain@-1"], p=[[0.7, 0.3], [0.3, 0.7]], initial=[0.5, 0.5])
    >>> process.add("umbrella", states=["no", "yes"], parents=["rain"], p=[[0.8, 0.2], [0.1, 0.9]])
    >>> process.filter({"umbrella": ["yes", "yes"]})["rain"][0].round(3).tolist()
    [[0.182, 0.818], [0.117, 0.883]]
    >>> process.smooth({"umbrella": ["yes", "yes"]})["rain"][0].round(3).tolist()
    [[0.117, 0.883], [0.117, 0.883]]
    >>> round(process.query("rain@2", given={"rain@0": "yes"})["yes"], 6)
    0.58
    >>> process.unroll(3).edges[:2]
    [('rain@0', 'umbrella@0'), ('rain@0', 'rain@1')]
    """

    _fit: tuple[Fit, list[Conditional]] | None = None

    def __init__(
        self,
        initial: BayesianNetwork | Sequence[BayesianNetwork] | None = None,
        transition: BayesianNetwork | None = None,
    ) -> None:
        if (initial is None) != (transition is None):
            raise InvalidArgument("a dynamic network takes both initial= and transition=, or neither")
        listed: Any = initial if initial is None or isinstance(initial, list | tuple) else [initial]
        for network in [*(listed or ()), *([] if transition is None else [transition])]:
            if not isinstance(network, BayesianNetwork):
                raise InvalidArgument(
                    f"a dynamic network is made of BayesianNetworks, not of {type(network).__name__}"
                )
        self._waiting: list[Declaration] = []
        self._slices: Any = None
        self.starts = [BayesianNetwork()] if listed is None else [n.copy() for n in listed]
        self.transition = BayesianNetwork() if transition is None else transition.copy()
        self._check()

    @property
    def initial(self) -> BayesianNetwork:
        """The network of step 0."""
        return self.starts[0]

    @property
    def variables(self) -> list[str]:
        """The variables of a step."""
        return own_variables(self.transition)

    @property
    def order(self) -> int:
        """How many steps back a step may look."""
        return len(self.starts)

    def states(self, name: str) -> list[State]:
        """Return the states of a variable."""
        return self.initial.states(name)

    # -- building --------------------------------------------------------------------------------------------------

    @guided
    def add(
        self,
        name: str,
        distribution: Any = None,
        *,
        states: int | Sequence[State] | None = None,
        parents: Sequence[str] | str | None = None,
        p: Any = None,
        initial: Any = None,
        normalise: bool = False,
        static: bool = False,
    ) -> None:
        """Add a variable to every step.

        Parameters
        ----------
        name, distribution, p, states, normalise
            As in `BayesianNetwork.add`.
        parents
            Variables of the same step (`"season"`), of the step before (`"rain@-1"`), or of earlier ones (`"rain@-2"`).
            Those of earlier steps may be added later.
        initial
            With parents in earlier steps: the distribution at step 0, given the parents of the same step. A variable that
            looks k > 1 steps back takes a list of k distributions, for the steps 0 to k-1, each given the parents that exist
            there.
        static
            Whether the variable has one state for all steps of a sequence; `p` is then its distribution.

        Examples
        --------
        >>> import markovia as mk
        >>> process = mk.DynamicBayesianNetwork()
        >>> process.add("level", mk.LinearGaussian(0, {"level@-1": 1}, 0.5), initial=mk.LinearGaussian(0, {}, 10))
        >>> process.add("seen", mk.LinearGaussian(0, {"level": 1}, 1))
        >>> process.smooth({"seen": [1.0, 1.5, None, 3.0]}).mean["level"][0].round(3).tolist()
        [1.387, 1.65, 1.987, 2.325]
        """
        if distribution is not None and p is not None:
            raise InvalidArgument("give the distribution either by position or as p=, not both")
        form = distribution if distribution is not None else p
        said = declared(name, form, states, parents, initial, normalise, static)
        waiting = [*self._waiting, said]
        if name in self.initial or name in [w.name for w in self._waiting]:
            raise DuplicateName(f"the process already has a variable {name!r}")
        for parent in said.parents:
            if "@" not in parent and missing_parents(self.initial, said, waiting).count(parent):
                raise UnknownVariable(parent, [*self.variables, *(w.name for w in self._waiting)], "the step")
        self.starts, self.transition, self._waiting = with_declarations(self.starts, self.transition, waiting)

    def _check(self) -> None:
        """Check that all networks describe the same variables."""
        for t, network in enumerate([*self.starts, self.transition]):
            where = "the transition" if network is self.transition else f"step {t}"
            if sorted(own_variables(network)) != sorted(own_variables(self.initial)):
                raise InvalidGraph(
                    f"both networks describe the same variables; the first has {self.initial.variables}, "
                    f"{where} {own_variables(network)}"
                )
            for name in network.variables:
                base, lag = split_name(name)
                check_known([base], self.initial.variables, "the first step")
                if not _alike(network.variable(name), self.initial.variable(base)):
                    raise InvalidTable(
                        f"{name!r} has states {_shown(network.variable(name))}, but {_shown(self.initial.variable(base))} "
                        "in step 0"
                    )
                if lag and network.parents(name):
                    raise InvalidGraph(f"{name!r} stands for the step before and has no parents here")
                if lag > (self.order if network is self.transition else t):
                    raise InvalidGraph(
                        f"{where} looks {lag} steps back, to {name!r}; give initial= a list of networks for the steps 0 to "
                        f"{lag - 1}, since those have less before them"
                        if network is self.transition
                        else f"{where} has nothing {lag} steps before it, so {name!r} cannot be there"
                    )

    def ready(self) -> list[BayesianNetwork]:
        """Return the networks of the first steps and of later ones, or say what is missing."""
        if self._waiting:
            lacking = [(w.name, missing_parents(self.initial, w, self._waiting)) for w in self._waiting]
            name, parents = next(pair for pair in lacking if pair[1])
            raise IncompleteModel(
                f"{name!r} has the parent {parents[0]!r} in an earlier step, which is not there yet; "
                f"add({parents[0]!r}, ...)"
            )
        if not self.variables:
            raise IncompleteModel("the dynamic network has no variables yet; add() some")
        found = [*self.starts, self.transition]
        for t, network in enumerate(found):
            for name in own_variables(network):
                if not network.has_table(name):
                    later = network is self.transition
                    raise IncompleteModel(
                        f"{name!r} has no distribution "
                        + (
                            "yet; give p= in add(), or fit()"
                            if later
                            else f"at step {t}; say with initial= in add() how it begins, or fit()"
                        )
                    )
        return found

    def unroll(self, steps: int) -> BayesianNetwork:
        """Return the ordinary network of `steps` time steps, variables named `"x@t"`."""
        check_count("steps", steps, 1)
        networks = self.ready()
        tables: list[Conditional] = []
        for step in range(steps):
            source = networks[min(step, self.order)]
            tables += [self._placed(source[n], step) for n in own_variables(source)]
        return BayesianNetwork.from_conditionals(tables)

    # -- questions about single steps ------------------------------------------------------------------------------

    def do(self, interventions: Mapping[str, Any] | None = None, /, **more: Any) -> "DynamicBayesianNetwork":
        """Return the process in which variables are set from outside at every step, which cuts them off from their parents.

        Values are those of `BayesianNetwork.do`. To set a variable at one step alone, set `"x@t"` in `unroll(steps)`.

        Examples
        --------
        >>> import markovia as mk
        >>> garden = mk.DynamicBayesianNetwork()
        >>> garden.add("rain", states=["no", "yes"], parents=["rain@-1"], p=[[0.7, 0.3], [0.3, 0.7]], initial=[0.5, 0.5])
        >>> garden.add("wet", states=["no", "yes"], parents=["rain"], p=[[0.9, 0.1], [0.2, 0.8]])
        >>> garden.do(wet="yes").query("rain@1")["yes"], round(garden.query("rain@1", given={"wet@1": "yes"})["yes"], 3)
        (0.5, 0.889)
        """
        settings = {**(interventions or {}), **more}
        check_known(settings, self.variables, "the process")
        *starts, transition = (network.do(settings) for network in self.ready())
        return DynamicBayesianNetwork(starts, transition)

    @guided
    def query(
        self,
        targets: str | Sequence[str],
        given: Mapping[str, Any] | None = None,
        engine: str | Engine = "auto",
        time_limit: float | None = None,
    ) -> Posterior:
        """Return the posterior of variables at their steps, such as `"rain@3"`, given others at theirs.

        The arguments are those of `BayesianNetwork.query`; the process is unrolled to the last step that they name. What
        is asked about the past is smoothing, about the step of the last evidence filtering, about the future forecasting.

        Raises
        ------
        UnknownVariable
            For a name that is no variable with a step.
        """
        named = [targets] if isinstance(targets, str) else list(targets)
        network = self.unroll(self._last_step([*named, *(given or {})]) + 1)
        return network.query(targets, given, engine=engine, time_limit=time_limit)

    @guided
    def sample(
        self,
        n: int = 1,
        *,
        steps: int,
        given: Mapping[str, Any] | None = None,
        seed: Any = None,
        engine: str | Engine = "auto",
    ) -> "pd.DataFrame":
        """Draw n sequences of `steps` steps, one a row with a column for each variable and step.

        The other arguments are those of `BayesianNetwork.sample`.

        Examples
        --------
        >>> process = DynamicBayesianNetwork()
        >>> process.add("rain", states=["no", "yes"], parents=["rain@-1"], p=[[0.8, 0.2], [0.3, 0.7]], initial=[0.5, 0.5])
        >>> list(process.sample(2, steps=3, seed=0))
        ['rain@0', 'rain@1', 'rain@2']
        """
        if (last := self._last_step(given or {})) >= steps:
            raise InvalidArgument(
                f"there is evidence at step {last}, but only {steps} steps; say steps={last + 1}"
            )
        return self.unroll(steps).sample(n, given=given, seed=seed, engine=engine)

    # -- questions about sequences ---------------------------------------------------------------------------------

    @guided
    def filter(
        self,
        evidence: Any,
        lengths: Lengths = None,
        *,
        by: str | None = None,
        targets: str | Sequence[str] | None = None,
        engine: str = "auto",
        clusters: Sequence[Sequence[str]] | None = None,
        particles: int | None = None,
        seed: Any = None,
        window: int | None = None,
        memory: float | None = None,
    ) -> Beliefs:
        """Return the distribution of hidden variables at every step, given what was seen up to it.

        Parameters
        ----------
        evidence
            A frame or a mapping of columns, one row a step; a list of them, one a sequence; one frame with `lengths` or
            with the column `by` that tells its sequences apart. Variables without a column, and missing cells, are hidden. A
            cell may be a state, a list or dict of likelihoods, or `mk.Not(...)`.
        targets
            The variables that are asked about; by default those that are hidden somewhere.
        engine
            "auto" and "interface" are exact. "boyen-koller" and "factored-frontier" keep beliefs about groups of variables
            apart, "particles" draws. Where numbers that others depend on are hidden among hidden states, "auto" sums over
            all paths of states if they are few, and else merges their Gaussians ("gpb2", or "imm" for many states);
            "rao-blackwell" draws paths.
        clusters
            For "boyen-koller": groups of variables whose beliefs are kept together; each variable on its own by default.
        particles, seed
            For "particles": how many, 1,000 by default, and the seed; for "rao-blackwell", 500.
        window
            For approximations: the steps of the first sequence on which they are compared with the exact answer, 20 by
            default; the largest difference is `info.error`, NaN where an exact answer would be too large.
        memory
            For exact answers: how many bytes messages may take.
        """
        return beliefs(
            self._without_utilities(), "filter", evidence, lengths, by, targets, engine,
            clusters=clusters, particles=particles, seed=seed,
            window=window, memory=memory,
        )  # fmt: skip

    @guided
    def smooth(
        self,
        evidence: Any,
        lengths: Lengths = None,
        *,
        by: str | None = None,
        targets: str | Sequence[str] | None = None,
        engine: str = "auto",
        clusters: Sequence[Sequence[str]] | None = None,
        particles: int | None = None,
        seed: Any = None,
        window: int | None = None,
        memory: float | None = None,
    ) -> Beliefs:
        """Return the distribution of hidden variables at every step, given all that was seen of its sequence.

        The arguments are those of `filter`. Where all messages of an exact answer take more than `memory`, one in every
        square root of the steps is kept, and the others are made anew.
        """
        return beliefs(
            self._without_utilities(), "smooth", evidence, lengths, by, targets, engine,
            clusters=clusters, particles=particles, seed=seed,
            window=window, memory=memory,
        )  # fmt: skip

    @guided
    def forecast(
        self,
        evidence: Any = None,
        steps: int = 1,
        lengths: Lengths = None,
        *,
        by: str | None = None,
        targets: str | Sequence[str] | None = None,
        engine: str = "auto",
        clusters: Sequence[Sequence[str]] | None = None,
        particles: int | None = None,
        seed: Any = None,
        window: int | None = None,
        memory: float | None = None,
    ) -> Beliefs:
        """Return the distributions at `steps` steps after each sequence; from step 0 on where nothing was seen.

        The other arguments are those of `filter`.

        Examples
        --------
        >>> process = DynamicBayesianNetwork()
        >>> process.add("rain", states=["no", "yes"], parents=["rain@-1"], p=[[0.8, 0.2], [0.3, 0.7]], initial=[0.5, 0.5])
        >>> process.forecast({"rain": ["no", "yes"]}, 2)["rain"][0].round(3).tolist()
        [[0.3, 0.7], [0.45, 0.55]]
        """
        check_count("steps", steps, 1)
        return beliefs(
            self._without_utilities(), "forecast", evidence, lengths, by, targets, engine,
            steps=steps, clusters=clusters, particles=particles,
            seed=seed, window=window, memory=memory,
        )  # fmt: skip

    @guided
    def decode(
        self, evidence: Any, lengths: Lengths = None, *, by: str | None = None, beam: int | None = None
    ) -> BestPaths:
        """Return the most probable states of all hidden variables together, a frame for each sequence (Viterbi).

        With `beam` it is beam search in the network of all steps, with so many beginnings kept at each variable: for
        processes whose steps have too many joint states. `gap` of the answer has how much more another explanation can have.

        Examples
        --------
        >>> process = DynamicBayesianNetwork()
        >>> process.add("rain", states=["no", "yes"], parents=["rain@-1"], p=[[0.7, 0.3], [0.3, 0.7]], initial=[0.5, 0.5])
        >>> process.add("umbrella", states=["no", "yes"], parents=["rain"], p=[[0.8, 0.2], [0.1, 0.9]])
        >>> best = process.decode({"umbrella": ["yes", "yes", "no", "yes", "yes"]})
        >>> best[0]["rain"].tolist(), round(float(best.log_prob[0]), 4)
        (['yes', 'yes', 'no', 'yes', 'yes'], -4.459)
        """
        return decode(self._without_utilities(), evidence, lengths, by, beam)

    @guided
    def log_prob(self, evidence: Any, lengths: Lengths = None, *, by: str | None = None) -> Array:
        """Return the log probability of what was seen of each sequence; minus infinity where it is impossible."""
        return log_prob(self._without_utilities(), evidence, lengths, by)

    @guided
    def score(self, evidence: Any, lengths: Lengths = None, *, by: str | None = None) -> float:
        """Return the total log probability of what was seen of all sequences, as models of sequences do.

        Examples
        --------
        >>> process = DynamicBayesianNetwork()
        >>> process.add("rain", states=["no", "yes"], parents=["rain@-1"], p=[[0.8, 0.2], [0.3, 0.7]], initial=[0.5, 0.5])
        >>> round(process.score([{"rain": ["no", "yes"]}, {"rain": ["yes"]}]), 4)  # log(0.5 * 0.2 * 0.5)
        -2.9957
        """
        return float(self.log_prob(evidence, lengths, by=by).sum())

    def stream(self) -> "DynamicStream":
        """Return a filter that takes the evidence of one step at a time.

        Examples
        --------
        >>> process = DynamicBayesianNetwork()
        >>> process.add("rain", states=["no", "yes"], parents=["rain@-1"], p=[[0.7, 0.3], [0.3, 0.7]], initial=[0.5, 0.5])
        >>> process.add("umbrella", states=["no", "yes"], parents=["rain"], p=[[0.8, 0.2], [0.1, 0.9]])
        >>> stream = process.stream()
        >>> round(stream.update({"umbrella": "yes"})["rain"]["yes"], 3), round(stream.update({})["rain"]["yes"], 3)
        (0.818, 0.627)
        """
        from markovia.models.temporal.dynamic.dynamic_stream import DynamicStream

        return DynamicStream(self._without_utilities())

    def state_space(self) -> "LinearStateSpace | SwitchingStateSpace":
        """Return a process of linear Gaussians as the state-space model that answers identically.

        Its state stacks the variables of a step (and of the steps before that are looked back at), and all variables of a
        step are its observations: hidden ones are missing. With variables that have states it is a `SwitchingStateSpace`:
        its regimes are the joint states of those that numbers and later steps look at.
        """
        from markovia.models.temporal.dynamic.dynamic_gaussian import state_space_of
        from markovia.models.temporal.dynamic.dynamic_switching import switching_model

        networks = self.ready()
        mixed = any(not isinstance(networks[0].variable(n), Quantity) for n in self.variables)
        return switching_model(networks) if mixed else state_space_of(networks)

    # -- decisions -------------------------------------------------------------------------------------------------

    @guided
    def decide(
        self,
        *,
        horizon: int | None = None,
        discount: float | None = None,
        average: bool = False,
        temperature: float | None = None,
        entropy: bool = False,
        memory: str = "drawn",
        method: str = "auto",
        tolerance: float = 1e-8,
        time_limit: float | None = None,
        progress: bool | None = None,
    ) -> Any:
        """Return the best way to decide, with a bound on how much better any other could be.

        What the decisions see tells the problem. Where they see the state it is a Markov decision process, answered by
        a `Plan` on the joint states of what is seen. Where they see something of it, `memory="perfect"` lets them
        remember all they saw and did, and a `BeliefPlan` answers; without memory, and for so many steps, it is the
        unrolled network's `decide`. Where decisions are numbers of a linear system with `mk.Quadratic` utilities, it is
        linear-quadratic control, a `Feedback`.

        Parameters
        ----------
        horizon, discount, average
            Exactly one: how many steps; what a utility a step later is worth (1 for the total until the process is
            over); or utilities per step in the long run.
        temperature, entropy
            For a soft plan, which keeps the dynamics: `tau log sum p(a) exp(Q / tau)` in place of the best, p uniform
            over what is allowed; with `entropy=True` without p.
        memory
            "drawn": decisions see their parents only. "perfect": they remember.
        method
            Where the state is seen, "value iteration", "policy iteration", "modified policy iteration" or "linear
            program"; for beliefs "exact" or "point-based". "auto" chooses.
        tolerance, time_limit, progress
            The gap that is small enough; seconds; whether to show a bar.

        Examples
        --------
        >>> import markovia as mk
        >>> machine = mk.DynamicBayesianNetwork()
        >>> machine.add("state", [[[0.8, 0.2], [1, 0]], [[0, 1], [1, 0]]], states=["good", "worn"],
        ...             parents=["state@-1", "action@-1"], initial=[1, 0])
        >>> machine.add("action", mk.Decision(["run", "repair"]), parents=["state"])
        >>> machine.add("profit", mk.Utility([[10, -5], [2, -5]]), parents=["state", "action"])
        >>> print(machine.decide(discount=0.9))
        Plan: value 77.1186, gap 0
        state        v  action
        good   77.1186  run
        worn   64.4068  repair
        >>> machine.decide(average=True).info.details.gains.round(4).tolist()
        [7.5, 7.5]
        """
        from markovia.models.temporal.dynamic.dynamic_decisions import decide_process

        return decide_process(
            self, horizon=horizon, discount=discount, average=average, temperature=temperature, entropy=entropy,
            memory=memory, method=method, tolerance=tolerance, time_limit=time_limit, progress=progress,
        )  # fmt: skip

    @guided
    def optimality(self, temperature: float, horizon: int, *, shift: bool = False) -> "OptimalityModel":
        """Return the process given that its steps were optimal: control as inference, exactly.

        Each utility becomes a variable with p(yes | parents) = exp(worth / temperature), observed to be "yes";
        decisions are uniform over what is allowed. The posterior is optimistic: it also believes that chance was kind.
        `soft_values()` of the answer puts it beside the variational answer, which keeps the dynamics, as
        `decide(horizon=, temperature=)` does.

        Parameters
        ----------
        temperature
            In units of utility.
        horizon
            How many steps.
        shift
            Whether to subtract the largest worth of a utility above zero, for which exp(worth / temperature) is no
            probability.

        Examples
        --------
        >>> import markovia as mk
        >>> way = mk.DynamicBayesianNetwork()
        >>> way.add("at", [[[1, 0], [0, 1]]] * 2, states=["here", "there"], parents=["at@-1", "go@-1"], initial=[1, 0])
        >>> way.add("go", mk.Decision(["here", "there"]), parents=["at"])
        >>> way.add("cost", mk.Utility([-1.0, 0.0]), parents=["at"])
        >>> round(way.optimality(temperature=0.5, horizon=2).query("go@0")["there"], 4)  # 1 / (1 + exp(-2))
        0.8808
        """
        from markovia.models.temporal.dynamic.optimality import OptimalityModel

        return OptimalityModel(self, temperature, horizon, shift)

    def follow(self, policy: Any) -> Self:
        """Return the process in which decisions are made by a policy at every step: an ordinary dynamic network.

        Parameters
        ----------
        policy
            A `Plan` that is the same at all steps, or for each decision a rule as in `BayesianNetwork.follow`.

        Examples
        --------
        >>> import markovia as mk
        >>> walk = mk.DynamicBayesianNetwork()
        >>> moves = [[[0.9, 0.1], [0.2, 0.8]]] * 2
        >>> walk.add("at", moves, states=["home", "away"], parents=["at@-1", "go@-1"], initial=[1, 0])
        >>> walk.add("go", mk.Decision(["home", "away"]), parents=["at"])
        >>> walk.add("joy", mk.Utility([0.0, 1.0]), parents=["at"])
        >>> made = walk.follow(walk.decide(discount=0.9))
        >>> round(made.query("at@3")["away"], 6)
        0.8
        """
        from markovia.inference.decisions.processes.plan import Plan
        from markovia.models.temporal.dynamic.dynamic_decisions import stationary_rules

        rules = stationary_rules(self, policy) if isinstance(policy, Plan) else policy
        *starts, transition = (network.follow(rules) for network in self.ready())
        return type(self)(starts, transition)

    def env(self, horizon: int | None = None) -> Any:
        """Return a Gymnasium environment that plays the process: what the decisions see, and what they choose.

        Parameters
        ----------
        horizon
            After how many steps an episode is cut off (truncated, not terminated); None for never.

        Raises
        ------
        ImportError
            If Gymnasium is not installed: `pip install markovia[control]`.
        """
        from markovia.models.temporal.dynamic.dynamic_decisions import playable_process

        return ports.call("environment", playable_process(self), horizon=horizon)

    # -- the rest --------------------------------------------------------------------------------------------------

    def plot(
        self,
        steps: int = 2,
        *,
        ax: "Axes | None" = None,
        given: Mapping[str, Any] | str | Iterable[str] | None = None,
        posteriors: bool = False,
        layout: Positions = "auto",
        highlight: Highlight = None,
        title: str | None = None,
        engine: str | Engine = "auto",
        max_states: int = 8,
        seed: int = 0,
        progress: bool | None = None,
    ) -> "Axes":
        """Draw the process over some steps, a frame around each; see `markovia.plotting.plot_dynamic`."""
        return ports.draw(
            "plot-dynamic",
            self,
            steps,
            ax=ax,
            given=given,
            posteriors=posteriors,
            layout=layout,
            highlight=highlight,
            title=title,
            engine=engine,
            max_states=max_states,
            seed=seed,
            progress=progress,
        )

    def save(self, path: str | PathLike[str], format: str | None = None) -> None:  # noqa: A002
        """Write the process to a `.json` file, which `mk.load` reads; to other formats only `unroll(steps)` goes."""
        if self._waiting:
            self.ready()
        ports.call("save", self, path, format=format)

    def copy(self) -> "DynamicBayesianNetwork":
        """Return an independent copy."""
        twin = DynamicBayesianNetwork(self.starts, self.transition)
        twin._waiting = list(self._waiting)
        return twin

    @property
    def fit_(self) -> Fit | None:
        """What the last fit did; None before the first, and after an edit of either network."""
        if self._fit is None or any(a is not b for a, b in zip(self._fit[1], self._tables(), strict=False)):
            return None
        return self._fit[0]

    @guided
    def fit(
        self,
        sequences: Any,
        lengths: Lengths = None,
        *,
        by: str | None = None,
        prior: Any = None,
        tied: str | Iterable[str] = (),
        fixed: str | Iterable[str] = (),
        missing: Any = "em",
    ) -> Self:
        """Learn all networks from sequences of any length, and return the process itself.

        The first steps of every sequence count for the networks of the first steps, every other step, with those before it,
        for the transition: its tables are shared by all steps. Hidden variables (without a column) and missing cells are
        learned by expectation-maximisation; `fit_` says which distributions the data had nothing to say about.

        Parameters
        ----------
        sequences, lengths, by
            As the evidence of `filter`: frames or mappings of columns, one row a step. Files, too, a sequence each.
        prior
            As in `BayesianNetwork.fit`.
        tied
            Variables whose table is the same in the first step and later, such as the readings of a sensor.
        fixed
            Variables whose tables stay as they are.
        missing
            "em", settings such as `mk.EM(restarts=5, seed=0)`, or "error".

        Examples
        --------
        >>> process = DynamicBayesianNetwork()
        >>> process.add("rain", states=["no", "yes"], parents=["rain@-1"])
        >>> weeks = [{"rain": ["no", "no", "yes", "yes"]}, {"rain": ["yes", "no", "no"]}]
        >>> process.fit(weeks).transition["rain"].values.round(3).tolist()
        [[0.667, 0.333], [0.5, 0.5]]
        """
        from markovia.models.temporal.dynamic.sequence_fitting import fit_sequences

        if self._waiting:
            self.ready()
        networks = [*self.starts, self.transition]
        acting = any(n.decisions or n.utilities for n in networks)
        learned = [n.learnable() for n in networks] if acting else networks
        record = fit_sequences(learned, sequences, lengths, by, prior, tied, fixed, missing)
        if acting:  # decisions and utilities stay as they are
            for network, twin in zip(networks, learned, strict=True):
                network.take_learned(twin)
        self._fit = record, self._tables()
        return self

    def _repr_html_(self) -> str:
        return html_picture(self, 0 if self._waiting else 2 * len(self.variables), repr(self))

    def __repr__(self) -> str:
        more = f", order {self.order}" if self.order > 1 else ""
        return f"DynamicBayesianNetwork({len(self.variables)} variables a step{more})"

    def _without_utilities(self) -> "DynamicBayesianNetwork":
        """Return the process that probabilities are asked of: amounts have none."""
        networks = self.ready()
        if not any(n.utilities for n in networks):
            return self
        *starts, transition = (n.chance_network() for n in networks)
        return DynamicBayesianNetwork(starts, transition)

    def _tables(self) -> list[Conditional]:
        networks = [*self.starts, self.transition]
        return [net[n] for net in networks for n in net.variables if net.has_table(n)]

    def _last_step(self, names: Iterable[str]) -> int:
        """Return the last step that names such as `"rain@3"` speak of, -1 for no names."""
        last = -1
        known = self.variables
        for name in names:
            base, _, step = str(name).rpartition("@")
            if name in known:
                raise InvalidArgument(f"say at which step: {at(name, 0)!r} is {name!r} in the first one")
            if base not in known or not step.isdecimal():
                raise UnknownVariable(name, [at(n, 0) for n in known], "the process")
            last = max(last, int(step))
        return last

    def _placed(self, table: Conditional, step: int) -> Conditional:
        def place(variable: Variable) -> Variable:
            base, lag = split_name(variable.name)
            own = self.initial.variable(base) if isinstance(variable, Quantity) else variable
            return own.renamed(at(base, step - lag))

        return table.rebound(place(table.variable), tuple(place(q) for q in table.parents))


def _alike(one: Variable, other: Variable) -> bool:
    if isinstance(one, Quantity) or isinstance(other, Quantity):
        return isinstance(one, Quantity) and isinstance(other, Quantity)
    return one.states == other.states


def _shown(variable: Variable) -> str:
    return "that are numbers" if isinstance(variable, Quantity) else str(list(variable.states))

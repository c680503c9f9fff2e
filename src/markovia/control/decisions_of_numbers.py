"""Diagrams with numbers: which of them are solved how; behind `decide` and `expected_utility`.

- Decisions that are numbers, linear Gaussian chance nodes, quadratic utilities: exactly, by linear rules.
- Decisions among states that see states, utilities of numbers: the numbers are averaged out of each utility first.
- Decisions among states that see numbers: refused, with the cure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from markovia.errors import InvalidArgument, UnsupportedModel, check_known
from markovia.factors.decisions.decision import DecisionNode, undecided
from markovia.factors.decisions.utility import UtilityNode, Worth
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.evidence import Findings
from markovia.inference.decisions.diagrams.deciding import evaluate
from markovia.inference.decisions.diagrams.diagram import Amount, Diagram, read_diagram
from markovia.inference.decisions.diagrams.policy import Policy
from markovia.inference.decisions.numbers.linear_quadratic_diagram import mean_total, solve_linear_quadratic
from markovia.inference.decisions.numbers.number_policy import LinearPolicy, NumberRule
from markovia.inference.decisions.numbers.numbers_folded import FoldedNumbers, fold_numbers
from markovia.inference.decisions.numbers.quadratic_reading import is_linear_quadratic, read_linear_quadratic
from markovia.inference.result import Info
from markovia.models.graphical.given_values import read_given
from markovia.runtime.clock import Stopwatch

if TYPE_CHECKING:
    from markovia.models.graphical.bayesian_network import BayesianNetwork


def decide_numbers(
    network: "BayesianNetwork", given: Any, memory: str, order: Sequence[str] | None, risk: float
) -> Policy | LinearPolicy:
    """Return the best rules of a network in which there are numbers.

    Raises
    ------
    UnsupportedModel
        For what is neither linear-quadratic nor decided by states alone; the error names the node.

    Examples
    --------
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork()
    >>> bn.add("demand", mk.LinearGaussian(8, {}, 4))
    >>> bn.add("order", mk.Decision([5, 10]))
    >>> bn.add("profit", mk.Utility(lambda order, demand: 3 * min(order, demand) - order))
    >>> policy = decide_numbers(bn, None, "drawn", None, 0.0)
    >>> policy.act("order"), round(policy.value, 3), policy.info.exact
    (10, 13.5, False)
    """
    pieces, findings = _read(network, given)
    if is_linear_quadratic(pieces):
        return _linear_policy(pieces, findings, memory, order, risk)
    _refuse_numbers_decided(pieces, findings)
    watch = Stopwatch()
    folded = _folded(network, pieces, findings, risk)
    twin = type(network).from_conditionals(folded.pieces)
    states = {n: f.said for n, f in _of_states(findings).items()}
    policy = twin.decide(states, memory="perfect" if memory == "perfect" else "drawn", order=order)
    if not folded.exact:
        rules = dict(policy)
        policy.info = replace(
            policy.info, exact=False, error=_mean_error(folded, findings, rules), seconds=watch.seconds,
            note="; ".join(filter(None, [folded.note, policy.info.note])),
        )  # fmt: skip
    return policy


def expected_utility_of_numbers(network: "BayesianNetwork", given: Any, risk: float) -> float:
    """Return what a network with numbers, in which everything is decided, is worth on average.

    Examples
    --------
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork()
    >>> bn.add("x", mk.LinearGaussian(1, {}, 4))
    >>> bn.add("cost", mk.Utility(mk.Quadratic({"x": -1})))
    >>> expected_utility_of_numbers(bn, None, 0.0)
    -5.0
    """
    pieces, findings = _read(network, given)
    still_open = [
        p.variable.name for p in pieces if isinstance(p, DecisionNode) and p.variable.name not in findings
    ]
    if still_open:
        raise undecided(still_open[0])
    if is_linear_quadratic(pieces):
        return mean_total(read_linear_quadratic(pieces, findings), risk)
    folded = _folded(network, pieces, findings, risk)
    return evaluate(read_diagram(folded.pieces, _of_states(findings))).value


def _read(network: "BayesianNetwork", given: Any) -> tuple[list[Any], Findings]:
    pieces = list(network.pieces())
    variables = {n: network.variable(n) for n in network.variables}
    findings, inputs = read_given(variables, pieces, given)
    check_known(findings, [n for n, v in variables.items() if not isinstance(v, Worth)], "the network")
    for name, variable in variables.items():
        if inputs or (isinstance(variable, Quantity) and variable.plates):
            raise UnsupportedModel(
                f"{next(iter(inputs), name)!r} comes in plates or with data; decisions are solved for "
                "single numbers and states"
            )
    return pieces, findings


def _linear_policy(
    pieces: list[Any], findings: Findings, memory: str, order: Sequence[str] | None, risk: float
) -> LinearPolicy:
    if risk:
        raise UnsupportedModel(
            "risk= with decisions that are numbers is not solved; leave it out, or let them choose "
            "among some numbers as states"
        )
    watch = Stopwatch()
    solution = solve_linear_quadratic(read_linear_quadratic(pieces, findings), memory, order)
    variables = {p.variable.name: p.variable for p in pieces}
    rules = {
        d: NumberRule(variables[d], [variables[n] for n in rule.seen], rule.coefficients, rule.constant)
        for d, rule in solution.rules.items()
    }
    info = Info(
        solution.method, exact=True, seconds=watch.seconds, given={n: f.said for n, f in findings.items()},
        note="a partially nested team: linear rules are best" if solution.method.endswith("team") else "",
    )  # fmt: skip
    return LinearPolicy(rules, solution.value, solution.bound, info)


def _refuse_numbers_decided(pieces: Sequence[Any], findings: Findings) -> None:
    """Refuse what folding cannot do, with the cure."""
    for node in pieces:
        if not isinstance(node, DecisionNode):
            continue
        name = node.variable.name
        if isinstance(node.variable, Quantity) and name not in findings:
            other = next(p.variable.name for p in pieces if not is_linear_quadratic([p]))
            raise UnsupportedModel(
                f"{name!r} is a number, which is decided where all chance nodes are linear Gaussian and all utilities "
                f"mk.Quadratic, but {other!r} is not; let {name!r} choose among some numbers as states"
            )
        if number := next((p.name for p in node.parents if isinstance(p, Quantity)), None):
            raise UnsupportedModel(
                f"{name!r} chooses a state seeing {number!r}, a number; make {number!r} states with mk.Discretizer, "
                "or let it see states"
            )


def _folded(network: "BayesianNetwork", pieces: list[Any], findings: Findings, risk: float) -> FoldedNumbers:
    if risk:
        raise UnsupportedModel(
            "risk= with utilities of numbers is not solved, for totals then depend on how these vary together; leave it out"
        )
    numbers = [n for n, f in findings.items() if isinstance(f.variable, Quantity)]
    decided = {p.variable.name for p in pieces if isinstance(p, DecisionNode)}
    if known := [n for n in numbers if n not in decided]:
        raise UnsupportedModel(
            f"{known[0]!r} is a number that is known beside states; give states alone, or put the number into the "
            "network by do()"
        )
    if not any(isinstance(p, UtilityNode) for p in pieces):
        raise InvalidArgument("there is no utility to decide by; add(name, mk.Utility(...))")
    chosen = {n: float(findings[n].value) for n in numbers}
    return fold_numbers(pieces, chosen, findings, type(network).from_conditionals)


def _mean_error(folded: FoldedNumbers, findings: Findings, rules: Mapping[str, Any]) -> float:
    """Return the estimated errors of the amounts, averaged as the policy comes upon them."""
    diagram = read_diagram(folded.pieces, _of_states(findings))
    errors = [Amount(name, scope, table) for name, scope, table in folded.errors]
    return evaluate(Diagram({**diagram.chance, **rules}, {}, errors, diagram.findings)).value


def _of_states(findings: Findings) -> Findings:
    """Return what is known of states; decisions that are numbers are in the tables already."""
    return {n: f for n, f in findings.items() if not isinstance(f.variable, Quantity)}

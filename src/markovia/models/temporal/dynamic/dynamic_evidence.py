"""What was seen of a dynamic network, read from frames and laid out for the engines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.data.sequences.sequences import Lengths, Sequences, read_sequences
from markovia.data.tables.data_files import names_data
from markovia.data.tables.frames import as_frame
from markovia.data.tables.state_codes import column_codes
from markovia.errors import (
    ImpossibleEvidence,
    InvalidArgument,
    InvalidEvidence,
    UnknownState,
    UnknownVariable,
    UnsupportedModel,
)
from markovia.factors.functions.function_node import FunctionNode
from markovia.factors.gaussian.linear_gaussian import GaussianConditional
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional, uniform_table
from markovia.factors.tables.evidence import Not, is_missing, read_finding
from markovia.factors.tables.variable import Variable
from markovia.inference.sequences.slices import Place, SliceEvidence, SliceNode, Slices, split_name
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.dynamic.dynamic_language import own_variables
from markovia.runtime.array_types import Array, Ints

if TYPE_CHECKING:
    from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork


@dataclass(frozen=True)
class Evidence:
    """Sequences of observations, a column a variable; columns that are absent, and missing cells, are hidden.

    Attributes
    ----------
    rows
        The sequences as they were read.
    codes, weights
        For variables with states: which likelihood each step has, and the different likelihoods.
    numbers
        For quantities: one number a step, NaN for hidden ones.
    """

    rows: Sequences
    codes: dict[str, Ints]
    weights: dict[str, Array]
    numbers: dict[str, Array]

    @property
    def offsets(self) -> Ints:
        """Where each sequence begins, and the end."""
        return self.rows.offsets

    def states(self, name: str) -> Ints:
        """Return a variable's state codes, -1 where it is hidden; refuse soft evidence."""
        n = int(self.offsets[-1])
        if name not in self.codes:
            return np.full(n, -1, dtype=np.int64)
        card = self.weights[name].shape[1]
        if len(self.weights[name]) > card + 1:
            raise InvalidArgument(f"{name!r} has soft evidence, which this does not take")
        return np.where(self.codes[name] < card, self.codes[name], -1)


def findings_of_steps(
    variables: Mapping[str, Variable], evidence: Evidence, first: int, last: int
) -> dict[str, Any]:
    """Return what was seen in some rows as evidence on the unrolled network: `{"rain@0": "yes", ...}`."""
    given: dict[str, Any] = {}
    for name, codes in evidence.codes.items():
        states, weights = variables[name].states, evidence.weights[name]
        for t, code in enumerate(codes[first:last].tolist()):
            if code < len(states):
                given[f"{name}@{t}"] = states[code]
            elif (weights[code] != weights[code, 0]).any():
                given[f"{name}@{t}"] = weights[code].tolist()
    for name, numbers in evidence.numbers.items():
        given |= {f"{name}@{t}": x for t, x in enumerate(numbers[first:last].tolist()) if x == x}
    return given


def read_evidence(
    variables: Mapping[str, Variable],
    data: Any,
    lengths: Lengths = None,
    by: str | None = None,
    *,
    only: bool = False,
) -> Evidence:
    """Read sequences of evidence.

    Parameters
    ----------
    variables
        Of a step.
    data, lengths, by
        As in `read_sequences`; the columns are named.
    only
        Whether columns that are no variables are left out, instead of refused.
    """
    rows = data if isinstance(data, Sequences) else read_columns(data, lengths, by)
    codes: dict[str, Ints] = {}
    weights: dict[str, Array] = {}
    numbers: dict[str, Array] = {}
    for j, name in enumerate(rows.columns):
        if name not in variables:
            if only:
                continue
            raise UnknownVariable(name, variables, "the process")
        column, variable = rows.values[:, j], variables[name]
        if isinstance(variable, Quantity):
            one = replace(rows, values=column[:, None], columns=())
            numbers[name] = one.numbers()[:, 0]
        else:
            found = _coded(rows, column, variable)
            if found is not None:
                codes[name], weights[name] = found
    return Evidence(rows, codes, weights, numbers)


def read_columns(data: Any, lengths: Lengths, by: str | None) -> Sequences:
    """Read sequences with named columns; those of a list may lack some, which are then hidden."""
    if isinstance(data, list | tuple) and not data:
        raise InvalidArgument("there are no sequences")
    if isinstance(data, list | tuple) and by is None and all(_has_columns(one) for one in data):
        frames = [as_frame(one) for one in data]
        columns = list(dict.fromkeys(c for frame in frames for c in frame.columns))
        dates = {c for frame in frames for c, kind in frame.dtypes.items() if kind.kind == "M"}
        data = [
            frame.reindex(columns=columns).astype({c: object for c in columns if c not in dates})
            for frame in frames
        ]
    rows = read_sequences(data, lengths, by=by)
    if not rows.columns:
        raise InvalidArgument(
            "sequences have named columns, one a variable: a frame or a mapping of columns, or a list of them"
        )
    return rows


def _has_columns(one: Any) -> bool:
    return isinstance(one, Mapping) or hasattr(one, "columns") or (isinstance(one, str) and names_data(one))


def _coded(rows: Sequences, column: Any, variable: Variable) -> tuple[Ints, Array] | None:
    """Return which likelihood each step has, and the likelihoods: one a state, none at all, then soft ones."""
    k = len(variable)
    plain = np.vstack([np.eye(k), np.ones((1, k))])
    kinds = set(map(type, column)) if column.dtype == object else set()
    soft = any(issubclass(kind, list | tuple | dict | np.ndarray | Not) for kind in kinds)
    if not soft:
        try:
            codes = np.asarray(column_codes(variable.name, column, variable)[1], dtype=np.int64)
        except UnknownState:
            for i, cell in enumerate(column.tolist()):
                if not is_missing(cell):
                    _finding(rows, i, variable, cell)
            raise
        return (np.where(codes < 0, k, codes), plain) if (codes >= 0).any() else None
    codes = np.full(len(column), k, dtype=np.int64)
    more: list[Array] = []
    for i, cell in enumerate(column):
        if not is_missing(cell):
            finding = _finding(rows, i, variable, cell)
            if finding.code is not None:
                codes[i] = finding.code
            else:
                codes[i] = k + 1 + len(more)
                more.append(finding.weights())
    return codes, np.vstack([plain, *(w[None] for w in more)])


def _finding(rows: Sequences, i: int, variable: Variable, cell: Any) -> Any:
    try:
        return read_finding(variable, cell)
    except (UnknownState, InvalidEvidence) as error:
        error.args = (f"{rows.at(i)}: {error.args[0]}",)
        raise


def impossible_at(evidence: Evidence, step: int) -> ImpossibleEvidence:
    """Return the error that says at which step evidence is impossible."""
    return ImpossibleEvidence.because(f"what was seen has probability zero at {evidence.rows.at(step)}")


def unseen(lengths: Sequence[int]) -> Evidence:
    """Return sequences of which nothing was seen."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Evidence(Sequences(np.empty((offsets[-1], 0)), offsets, tuple(range(len(lengths)))), {}, {}, {})


def first_steps(evidence: Evidence, steps: int | None = None, sequence: int = 0) -> Evidence:
    """Return the first steps of one sequence; all of them by default."""
    a, b = evidence.offsets[sequence : sequence + 2].tolist()
    part = slice(a, b if steps is None else min(b, a + steps))
    n = part.stop - a
    rows = Sequences(np.empty((n, 0)), np.array([0, n]), evidence.rows.names[sequence : sequence + 1])
    codes = {m: c[part] for m, c in evidence.codes.items()}
    return Evidence(rows, codes, evidence.weights, {m: x[part] for m, x in evidence.numbers.items()})


def longer(evidence: Evidence, steps: int) -> tuple[Evidence, Ints]:
    """Return the evidence with hidden steps after each sequence, and the places of those."""
    old = evidence.offsets
    offsets = old + steps * np.arange(len(old))
    place = np.full(int(offsets[-1]), -1, dtype=np.int64)
    for i in range(len(old) - 1):
        place[offsets[i] : offsets[i] + old[i + 1] - old[i]] = np.arange(old[i], old[i + 1])
    codes = {
        n: np.where(place >= 0, c[np.maximum(place, 0)], evidence.weights[n].shape[1])
        for n, c in evidence.codes.items()
    }
    numbers = {n: np.where(place >= 0, x[np.maximum(place, 0)], np.nan) for n, x in evidence.numbers.items()}
    rows = Sequences(np.empty((len(place), 0)), offsets, evidence.rows.names)
    return Evidence(rows, codes, evidence.weights, numbers), np.flatnonzero(place < 0)


# -- for the engines ------------------------------------------------------------------------------------------------


def slices_of(networks: Sequence[BayesianNetwork]) -> Slices:
    """Return the networks of the first steps and of later ones as products; what has numbers is a density."""
    first = networks[0]
    names = own_variables(networks[-1])
    sizes = {n: len(first.variable(n)) for n in names if not isinstance(first.variable(n), Quantity)}
    steps = []
    for network in networks:
        nodes = []
        for n in own_variables(network):
            table = network[n]
            scope = tuple(split_name(v) for v in table.names)
            discrete = tuple(place for place in scope if place[0] in sizes)
            nodes.append(SliceNode(n, discrete, table.values if len(discrete) == len(scope) else None))
        steps.append(nodes)
    return Slices(sizes, steps)


def is_gaussian(networks: Sequence[BayesianNetwork]) -> bool:
    """Say whether all nodes are linear Gaussians of numbers."""
    return all(
        isinstance(net[n], GaussianConditional) and not net[n].discrete  # type: ignore[attr-defined]
        for net in networks
        for n in own_variables(net)
    )


def compiled(process: "DynamicBayesianNetwork", networks: Sequence[BayesianNetwork]) -> Slices:
    """Return the process as products of tables; made once for the tables that it has."""
    tables = [net[n] for net in networks for n in own_variables(net)]
    held = process._slices
    if (
        held is None
        or len(held[0]) != len(tables)
        or any(a is not b for a, b in zip(held[0], tables, strict=True))
    ):
        process._slices = held = tables, slices_of(networks)
    found: Slices = held[1]
    return found


def step_tables(networks: Sequence[BayesianNetwork]) -> list[dict[str, Conditional]]:
    """Return the distributions of the variables of first steps and of later ones, parents first."""
    return [
        {n: network[n] for n in network.graph.topological_order() if not split_name(n)[1]}
        for network in networks
    ]


def plain_evidence(evidence: Evidence) -> SliceEvidence:
    """Return what was seen as it is: states, likelihoods and numbers."""
    return SliceEvidence(evidence.offsets, evidence.weights, evidence.codes, numbers=evidence.numbers)


def seen_of(
    networks: Sequence[BayesianNetwork], slices: Slices, evidence: Evidence, without: Sequence[str] = ()
) -> SliceEvidence:
    """Return what engines need of the evidence; densities (without some) are worked out at the numbers that were seen."""
    quantities = [n for n in own_variables(networks[-1]) if n not in slices.sizes]
    if not quantities:
        return plain_evidence(evidence)
    kinds, _ = slices.kinds(evidence.offsets)
    hidden = np.full(int(evidence.offsets[-1]), np.nan)
    values = {n: evidence.numbers.get(n, hidden) for n in quantities}
    used = {q for net in networks for n in own_variables(net) for q in _bases(net[n])}
    densities: dict[tuple[str, int], Array] = {}
    logs = np.zeros(int(evidence.offsets[-1]))
    for kind, network in enumerate(networks):
        steps = np.flatnonzero(kinds == kind)
        for node in slices.steps[kind]:
            if node.values is None and node.name not in without:
                found = density(network[node.name], node, steps, values, slices, node.name in used, evidence)
                axes = tuple(range(1, found.ndim))
                top = found.max(axis=axes) if axes else found.copy()
                top[~np.isfinite(top)] = 0.0
                logs[steps] += top
                densities[node.name, kind] = np.exp(found - top.reshape(-1, *(1,) * len(axes)))
    return replace(plain_evidence(evidence), densities=densities, logs=logs)


def _bases(table: Conditional) -> set[str]:
    return {split_name(q.name)[0] for q in table.parents}


def density(
    table: Conditional,
    node: SliceNode,
    steps: Ints,
    values: Mapping[str, Array],
    slices: Slices,
    used: bool,
    evidence: Evidence,
) -> Array:
    """Return the log density of a node at each of some steps, for all states of its discrete places."""
    shape = slices.shape(node.scope)
    found = np.zeros((len(steps), *shape))
    places: list[Place] = [split_name(v) for v in table.names]
    numbers = {p: values[p[0]][steps - p[1]] for p in places if p not in node.scope}
    own = places[-1]
    barren = own in numbers and not used
    rows = np.ones(len(steps), dtype=bool)
    for place, x in numbers.items():
        gone = np.isnan(x)
        if barren and place == own:
            rows &= ~gone
    for place, x in numbers.items():
        gone = np.isnan(x) & rows
        if gone.any():
            where = evidence.rows.at(int(steps[np.argmax(gone)] - place[1]))
            raise UnsupportedModel(
                f"{place[0]!r} is a number that was not seen at {where}; exact sums need every number that others depend "
                f"on: give it, or say engine='particles', or ask the unrolled network: query('{place[0]}@0', given=...)"
            )
    codes: tuple[int, ...]
    for codes in product(*(range(k) for k in shape)):
        fixed = dict(zip(node.scope, codes, strict=True))
        columns: list[Any] = [
            numbers[p][rows] if p in numbers else np.full(rows.sum(), fixed[p]) for p in places
        ]
        at: Any = (rows, *codes)
        found[at] = _log_density(table, columns)
    return found


def _log_density(table: Conditional, columns: Sequence[Any]) -> Array:
    """Return log p(child | parents) for columns of codes and numbers, the child's last."""
    if not isinstance(table, FunctionNode) or not len(columns[-1]):
        return table.log_prob(columns[-1], columns[:-1])
    # a function is called by a whole model, so it gets one with roots for its parents, whose share is taken off again
    roots: list[Conditional] = []
    rows: dict[str, Any] = {table.variable.name: columns[-1]}
    for parent, column in zip(table.parents, columns, strict=False):
        if isinstance(parent, Quantity):
            roots.append(GaussianConditional(parent, (), (), 0.0, np.zeros(0), 1.0))
            rows[parent.name] = column
        else:
            roots.append(uniform_table(parent, ()))
            rows[parent.name] = [parent.states[i] for i in column.astype(int)]
    total = BayesianNetwork.from_conditionals([*roots, table]).log_prob(rows)
    shares = [root.log_prob(column, ()) for root, column in zip(roots, columns, strict=False)]
    found: Array = np.asarray(total) - sum(shares)
    return found

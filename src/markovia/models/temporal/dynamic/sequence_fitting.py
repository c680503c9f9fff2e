"""Fitting the networks of a process to sequences: by counting, or by expectation-maximisation where cells are hidden.

The first steps of every sequence count for their own tables, every later step with those before it for the transition.
Counting these families is all that maximum likelihood (or a posterior mean) needs, whatever the lengths of the sequences;
where cells are hidden, expected counts come from the interface algorithm.
References: Koller & Friedman (2009), section 17.5 (shared parameters); Ghahramani (1998) for EM.
Cost: one pass over the steps, for EM one smoothing in each iteration.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from markovia.data.sequences.sequences import Lengths
from markovia.data.tables.data_files import names_data
from markovia.data.tables.state_codes import column_codes
from markovia.errors import (
    ImpossibleEvidence,
    IncompleteModel,
    InvalidArgument,
    UnsupportedModel,
    check_known,
)
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.variable import Variable
from markovia.inference.sequences.interface import Interface
from markovia.inference.sequences.slices import SliceEvidence, SliceNode, Slices, split_name
from markovia.learning.incomplete.e_step import Expectation
from markovia.learning.incomplete.em import EM, NAMES, as_em, em_runs
from markovia.learning.tables.fit_record import Fit
from markovia.learning.tables.priors import as_prior
from markovia.learning.tables.row_counts import Counts, RowCounts, family_log_likelihood
from markovia.learning.tables.table_learner import NodeFamily, TableLearner, weighted_log
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.graphical.fitting import unseen_rows
from markovia.models.temporal.dynamic.dynamic_evidence import Evidence, read_columns, read_evidence
from markovia.models.temporal.dynamic.dynamic_language import own_variables
from markovia.optimise.ascent import best_of
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.clock import now


def fit_sequences(
    networks: Sequence[BayesianNetwork],
    sequences: Any,
    lengths: Lengths,
    by: str | None,
    prior: Any,
    tied: str | Iterable[str],
    fixed: str | Iterable[str],
    missing: Any,
) -> Fit:
    """Fit all networks in place; see `DynamicBayesianNetwork.fit`. On an error none is changed."""
    start = now()
    settings = as_em(missing)
    names = own_variables(networks[-1])
    shared, held = _names(tied, names), _names(fixed, names)
    if not isinstance(sequences, Iterable) or (isinstance(sequences, str) and not names_data(sequences)):
        raise InvalidArgument(
            f"sequences are a list of frames, mappings of columns or data files, one row a step, not {sequences!r}"
        )
    rows = read_columns(sequences, lengths, by)
    known = _with_states(networks, rows.columns, rows.values)
    evidence = read_evidence(known, rows, only=True)
    if any(isinstance(v, Quantity) for v in known.values()):
        return _fit_numbers(networks, evidence, prior, shared, held, start)
    codes = {n: evidence.states(n) for n in names}
    gaps = {n: int((c < 0).sum()) for n, c in codes.items() if (c < 0).any()}
    if gaps and settings is None:
        raise InvalidArgument(
            f"{sum(gaps.values()):,} cells of the sequences are missing; missing='em' learns from the others"
        )
    families = [
        _family(network, n, known, n in shared, n in held)
        for network in networks
        for n in own_variables(network)
    ]
    kinds = [i for i, network in enumerate(networks) for _ in own_variables(network)]
    labels = [
        f.variable.name if kind == len(networks) - 1 else f"{f.variable.name}@{kind}"
        for f, kind in zip(families, kinds, strict=True)
    ]
    learner = TableLearner(families, as_prior(prior))
    counter = _Counter(families, kinds, labels, evidence, codes, len(networks))
    details: dict[str, Any] = {"sequences": len(evidence.rows), "prior": learner.prior}
    if gaps:
        assert settings is not None
        tables, counts, more = _by_em(learner, counter, settings)
        told = counter.told(tables, counts)
        hidden = [n for n in names if gaps.get(n) == evidence.offsets[-1]]
        details |= {"hidden": hidden, "missing_steps": gaps, **more.pop("details")}
    else:
        counts, more = counter.complete(), {}
        tables, told = learner.estimate(counts), counts
    for kind, network in enumerate(networks):
        own = {t.variable.name: t for t, k in zip(tables, kinds, strict=True) if k == kind}
        variables = {n: known[split_name(n)[0]].renamed(n) for n in network.variables}
        network.install(variables, own)
    scores = [family_log_likelihood(n, t) for n, t in zip(counts, tables, strict=True)]
    steps = int(evidence.offsets[-1])
    return Fit(
        "em" if gaps else "counting",
        steps,
        float(steps),
        more.pop("log_likelihood", sum(scores)),
        dict(zip(labels, scores, strict=True)),
        learner.n_parameters(tables),
        sum(gaps.values()),
        unseen_rows=unseen_rows(learner, [_cleared(n) for n in told], labels),
        seconds=now() - start,
        details=details,
        **more,
    )


def _names(listed: str | Iterable[str], known: Sequence[str]) -> set[str]:
    found = {listed} if isinstance(listed, str) else set(listed)
    check_known(found, known, "the first step")
    return found


def _cleared(counts: Counts) -> Counts:
    """Set expected counts that are only rounding to zero, so that rows nobody saw are told."""
    if isinstance(counts, RowCounts):
        return counts
    found: Array = np.where(counts > 1e-9, counts, 0.0)
    return found


def _family(
    network: BayesianNetwork, name: str, known: dict[str, Variable], shared: bool, held: bool
) -> NodeFamily:
    if held and not network.has_table(name):
        raise IncompleteModel(f"{name!r} cannot stay fixed: it has no distribution yet")
    before = network[name] if network.has_table(name) else None
    parents = tuple(known[split_name(q)[0]].renamed(q) for q in network.parents(name))
    return NodeFamily(known[name], parents, before, fixed=held, tied=name if shared and not held else None)


def _with_states(
    networks: Sequence[BayesianNetwork], columns: Sequence[str], values: Any
) -> dict[str, Variable]:
    """Return the variables of a step; states that no network states are read off all steps."""
    first = networks[0]
    known = {n: first.variable(n) for n in own_variables(networks[-1])}
    unstated = [network.unstated() for network in networks]
    for name in first.unstated():
        alike = [n for network in networks for n in network.variables if split_name(n)[0] == name]
        if all(n in u for network, u in zip(networks, unstated, strict=True) for n in alike if n in network):
            check_known([name], columns, "a sequence")
            known[name] = column_codes(name, values[:, list(columns).index(name)], None)[0]
    return known


@dataclass(frozen=True)
class _SlotLayout:
    """How the counts of all families lie in one array."""

    shapes: list[tuple[int, ...]]

    def split(self, flat: Array) -> list[Array]:
        ends = np.cumsum([prod(s) for s in self.shapes])
        parts = np.split(np.asarray(flat), ends[:-1])
        return [p.reshape(s) for p, s in zip(parts, self.shapes, strict=True)]


@dataclass(frozen=True)
class _SequenceRows:
    layout: _SlotLayout
    complete: Array
    weights: Array


class _Counter:
    """Counts of all families, and expected ones under given tables."""

    exact = True

    def __init__(
        self,
        families: Sequence[NodeFamily],
        kinds: Sequence[int],
        labels: Sequence[str],
        evidence: Evidence,
        codes: dict[str, Ints],
        n_kinds: int,
    ) -> None:
        self.families, self.kinds, self.labels, self.evidence = families, kinds, labels, evidence
        self.codes, self.n_kinds = codes, n_kinds
        starts = np.repeat(evidence.offsets[:-1], np.diff(evidence.offsets))
        self.kind = np.minimum(np.arange(len(starts)) - starts, n_kinds - 1)

    @property
    def observed(self) -> float:
        """How many cells of steps are there."""
        return float(sum((codes >= 0).sum() for codes in self.codes.values()))

    def complete(self) -> list[Counts]:
        """Return the counts of the steps that show a family whole."""
        found: list[Counts] = []
        for family, kind in zip(self.families, self.kinds, strict=True):
            steps = np.flatnonzero(self.kind == kind)
            columns = [self.codes[n][steps - lag] for n, lag in map(split_name, family.scope)]
            cells = np.stack(columns) if columns else np.zeros((0, len(steps)), dtype=np.int64)
            cells = cells[:, (cells >= 0).all(axis=0)]
            if family.sparse:
                found.append(RowCounts.of_rows(cells, None))
            else:
                flat = np.ravel_multi_index(list(cells), family.shape)
                counts = np.bincount(flat, minlength=prod(family.shape)).astype(np.float64)
                found.append(counts.reshape(family.shape))
        return found

    @property
    def rows(self) -> _SequenceRows:
        """What starts of EM ask for."""
        complete = self.complete()
        layout = _SlotLayout([f.shape for f in self.families])
        flat = np.concatenate([np.ravel(c) for c in complete])  # type: ignore[arg-type]
        return _SequenceRows(layout, flat, np.ones(len(self.kind)))

    def _engine(self, tables: Sequence[Conditional]) -> Interface:
        steps: list[list[SliceNode]] = [[] for _ in range(self.n_kinds)]
        for table, kind in zip(tables, self.kinds, strict=True):
            scope = tuple(map(split_name, table.names))
            steps[kind].append(SliceNode(table.variable.name, scope, table.values))
        sizes = {f.variable.name: len(f.variable) for f in self.families}
        seen = SliceEvidence(self.evidence.offsets, self.evidence.weights, self.evidence.codes)
        return Interface(Slices(sizes, steps), seen)

    def told(self, tables: Sequence[Conditional], counts: Sequence[Counts]) -> list[Counts]:
        """Return the expected counts of the steps at which a family's own variable was seen.

        What is counted at other steps is the tables' own guess, and tells nothing about them. Variables that are never seen
        keep their counts.
        """
        engine = self._engine(tables)
        found = list(counts)
        for i, (family, kind) in enumerate(zip(self.families, self.kinds, strict=True)):
            codes = self.codes[family.variable.name]
            if (codes >= 0).all() or (codes < 0).all():
                continue
            total = np.zeros(family.shape)
            for steps, rows in engine.joint(tuple(map(split_name, family.scope))):
                here = (self.kind[steps] == kind) & (codes[steps] >= 0)
                total += rows[here].sum(axis=0)
            found[i] = total
        return found

    def expect(self, tables: Sequence[Conditional]) -> Expectation:
        """Return expected counts under some tables."""
        engine = self._engine(tables)
        counts = [n for nodes in engine.expected() for n in nodes]
        if (engine.stuck >= 0).any():
            step = int(engine.stuck[np.argmax(engine.stuck >= 0)])
            raise ImpossibleEvidence.because(
                f"the tables give what was seen at {self.evidence.rows.at(step)} probability zero"
            )
        scores = [weighted_log(n, t.values) for n, t in zip(counts, tables, strict=True)]
        by_family = dict(zip(self.labels, scores, strict=True))
        return Expectation(counts, float(engine.log_probs.sum()), by_family)


def _by_em(
    learner: TableLearner, counter: Any, settings: EM
) -> tuple[list[Conditional], list[Counts], dict[str, Any]]:
    """Run EM from every start and keep the best."""
    if settings.hard:
        raise InvalidArgument("EM(hard=True) is for rows; sequences are learned from expected counts")
    runs = em_runs(learner, counter, settings)
    best = best_of(runs)
    best.warn(settings.tolerance, NAMES)
    found = best.state
    record = {
        "log_likelihood": found.expectation.log_likelihood,
        "converged": best.converged,
        "iterations": len(best.history),
        "history": tuple(best.history),
        "details": {"objective": best.objective, "restarts": [run.objective for run in runs]},
    }
    return list(found.tables), list(found.expectation.counts), record


def _fit_numbers(
    networks: Sequence[BayesianNetwork],
    evidence: Evidence,
    prior: Any,
    shared: set[str],
    held: set[str],
    start: float,
) -> Fit:
    """Fit networks with linear Gaussians from complete sequences, each from the steps of its kind."""
    import pandas as pd

    if shared:
        raise InvalidArgument("tied= is for processes of tables; numbers are fitted step by step")
    names = own_variables(networks[-1])
    columns: dict[str, Any] = {}
    for name in names:
        variable = networks[0].variable(name)
        if isinstance(variable, Quantity):
            column = evidence.numbers.get(name, np.array([np.nan]))
            gone = np.isnan(column)
        else:
            codes = evidence.states(name)
            gone = codes < 0
            column = np.array([*variable.states, None], dtype=object)[codes]
        if gone.any():
            raise UnsupportedModel(
                f"{name!r} is hidden at {int(gone.sum()):,} steps, and a process with numbers is learned from complete "
                "sequences; state_space().fit(...) learns linear Gaussian ones with hidden states"
            )
        columns[name] = column
    offsets = evidence.offsets
    starts = np.repeat(offsets[:-1], np.diff(offsets))
    kind_of = np.minimum(np.arange(len(starts)) - starts, len(networks) - 1)
    fitted, kept = [], []
    for kind, network in enumerate(networks):
        steps = np.flatnonzero(kind_of == kind)
        twin = network.copy()
        if len(steps) < 3:
            kept.append("the transition" if kind == len(networks) - 1 else f"step {kind}")
        else:
            cells = {
                n: columns[b][steps - lag] for n, (b, lag) in ((n, split_name(n)) for n in network.variables)
            }
            twin.fit(pd.DataFrame(cells), prior=prior, fixed=sorted(held))
        fitted.append(twin)
    total, by_family = 0.0, {}
    for kind, (network, twin) in enumerate(zip(networks, fitted, strict=True)):
        own = {n: twin[n] for n in own_variables(twin)}
        network.install({n: twin.variable(n) for n in twin.variables}, own)
        record = twin.fit_
        if record is not None:
            for n in own:
                by_family[n if kind == len(networks) - 1 else f"{n}@{kind}"] = record.by_family[n]
                total += record.by_family[n]
    rows = int(offsets[-1])
    parameters = sum(net[m].n_parameters for net in networks for m in names if m not in held)
    details = {"sequences": len(evidence.rows), "kept": kept}
    return Fit(
        "counting", rows, float(rows), total, by_family, parameters, seconds=now() - start, details=details
    )

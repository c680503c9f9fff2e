"""Fitting the two networks of a process to sequences by counting.

Steps are laid out as two tables: the first step of every sequence, and every later step beside the one before it. Counting
their families is all that maximum likelihood (or a posterior mean) needs, whatever the lengths of the sequences.
Reference: Koller & Friedman (2009), section 17.5 (shared parameters). Cost: one pass over the steps.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from markovia.data.data_files import names_data
from markovia.data.distant_rows import is_far
from markovia.data.frames import as_frame
from markovia.data.reading import read_data
from markovia.data.state_codes import column_codes
from markovia.errors import InvalidArgument, UnknownVariable
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.variable import Variable
from markovia.learning.tables.fit_record import Fit
from markovia.learning.tables.priors import as_prior
from markovia.learning.tables.row_counts import Counts, family_counts, family_log_likelihood
from markovia.learning.tables.table_learner import Family, TableLearner
from markovia.models.graphical.directed_model import DirectedModel
from markovia.models.graphical.fitting import unseen_rows
from markovia.runtime.clock import now

if TYPE_CHECKING:
    import pandas as pd

PREVIOUS = "@-1"


def fit_sequences(
    initial: DirectedModel,
    transition: DirectedModel,
    sequences: Any,
    prior: Any,
    tied: str | Iterable[str],
) -> Fit:
    """Fit both networks in place; see `DynamicBayesianNetwork.fit`. On an error neither is changed."""
    start = now()
    names = initial.variables
    shared = {tied} if isinstance(tied, str) else set(tied)
    for name in shared:
        if name not in names:
            raise UnknownVariable(name, names, "the first step")
    frames = _frames(sequences, names)
    gaps = sum(int(frame.isna().to_numpy().sum()) for frame in frames)
    if gaps:
        raise InvalidArgument(f"{gaps:,} cells of the sequences are missing; fit needs complete ones")
    first, later = _laid_out(frames, names, transition.variables)
    known = _with_states(initial, transition, frames)
    families: list[Family] = []
    counts: list[Counts] = []
    for network, frame in ((initial, first), (transition, later)):
        own = [n for n in network.variables if not n.endswith(PREVIOUS)]
        variables = {n: known[n.removesuffix(PREVIOUS)].renamed(n) for n in network.variables}
        found = [
            Family(
                variables[n],
                tuple(variables[q] for q in network.parents(n)),
                network[n] if network.has_table(n) else None,
                tied=n if n in shared else None,
            )
            for n in own
        ]
        source = read_data(frame, variables, variables=variables)
        counts += family_counts(source, found)
        families += found
    learner = TableLearner(families, as_prior(prior))
    tables = learner.estimate(counts)
    split = len(names)
    _take(initial, tables[:split], known)
    _take(transition, tables[split:], known)
    scores = [family_log_likelihood(n, t) for n, t in zip(counts, tables, strict=True)]
    steps = len(first) + len(later)
    labels = [f.variable.name if i >= split else f"{f.variable.name}@0" for i, f in enumerate(families)]
    by_family = dict(zip(labels, scores, strict=True))
    return Fit(
        "counting",
        steps,
        float(steps),
        sum(scores),
        by_family,
        learner.n_parameters(tables),
        unseen_rows=unseen_rows(learner, counts, labels),
        seconds=now() - start,
        details={"sequences": len(first), "prior": learner.prior},
    )


def _frames(sequences: Any, names: list[str]) -> "list[pd.DataFrame]":
    listed = isinstance(sequences, list | tuple)  # of files: a sequence each
    if not listed and (isinstance(sequences, Mapping) or is_far(sequences) or hasattr(sequences, "columns")):
        sequences = [sequences]
    if not isinstance(sequences, Iterable) or any(
        isinstance(s, str) and not names_data(s) for s in sequences
    ):
        raise InvalidArgument(
            f"sequences are a list of frames, mappings of columns or data files, one row a step, not {sequences!r}"
        )
    frames = [as_frame(s) for s in sequences]
    for frame in frames:
        for name in names:
            if name not in frame.columns:
                raise UnknownVariable(name, frame.columns, "a sequence")
        if not len(frame):
            raise InvalidArgument("a sequence has no steps")
    if not frames:
        raise InvalidArgument("there are no sequences to learn from")
    return [frame[names].astype(object) for frame in frames]


def _laid_out(
    frames: "list[pd.DataFrame]", names: list[str], columns: list[str]
) -> "tuple[pd.DataFrame, pd.DataFrame]":
    """Return the first steps, and all later ones with the columns of the step before."""
    import pandas as pd

    first = pd.concat([f.iloc[:1] for f in frames], ignore_index=True)
    now = pd.concat([f.iloc[1:] for f in frames], ignore_index=True)
    past = pd.concat([f.iloc[:-1] for f in frames], ignore_index=True)
    both = pd.concat([now, past.add_suffix(PREVIOUS)], axis=1)
    return first, both[columns]


def _with_states(
    initial: DirectedModel, transition: DirectedModel, frames: "list[pd.DataFrame]"
) -> dict[str, Variable]:
    """Return the variables of a step; states that neither network states are read off all steps."""
    import pandas as pd

    known = {n: initial.variable(n) for n in initial.variables}
    later = transition.unstated()
    for name in initial.unstated():
        if all(n in later for n in (name, name + PREVIOUS) if n in transition):
            known[name] = column_codes(name, pd.concat([f[name] for f in frames]), None)[0]
    return known


def _take(network: DirectedModel, tables: list[Conditional], known: Mapping[str, Variable]) -> None:
    variables = {n: known[n.removesuffix(PREVIOUS)].renamed(n) for n in network.variables}
    network.install(variables, {t.variable.name: t for t in tables})

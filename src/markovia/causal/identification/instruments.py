"""Instruments: variables that move the treatment and reach the outcome only through it.

z is an instrument for the effect of x on y given W if W separates z from y once the causal paths from x to y are cut,
does not separate z from x, and neither z nor W lies on or below these paths. In a linear model the effect is then
cov(z, y | W) / cov(z, x | W), though x and y may share hidden causes.

To find any W is hard, but if there is one for some z then there is an *ancestral* instrument, whose W lies above z
and y; for these it is enough to look at the separator of z and y that is nearest to y, since it leaves as much as
possible connected to z.

Reference: van der Zander, Textor and Liskiewicz, *Efficiently finding conditional instruments for causal inference*,
IJCAI (2015). Cost: two searches for each candidate.
"""

from typing import NamedTuple

from markovia.causal.identification.adjustment import BackDoor
from markovia.causal.problem import Problem
from markovia.errors import InvalidArgument
from markovia.graphs.causal.separators import Cuts
from markovia.graphs.kinds.masks import members
from markovia.graphs.kinds.named import Names
from markovia.runtime.shown import html_text


class Instrument(NamedTuple):
    """An instrument and what it needs to be conditioned on."""

    name: str
    given: tuple[str, ...]

    def _repr_html_(self) -> str:
        return html_text(str(self))


def instruments(
    graph: object, treatment: Names, outcome: Names, *, conditional: bool = True, latent: Names = ()
) -> list[Instrument]:
    """List the instruments for the effect of a treatment on an outcome, those that need no conditioning first.

    Parameters
    ----------
    graph
        A DAG, a graph with bidirected edges, a text or a model.
    treatment, outcome
        One name each.
    conditional
        Whether to look for instruments that need conditioning, too.
    latent
        Variables that are not observed.

    Returns
    -------
    list of Instrument
        At most one for each variable, with a set that is among the ancestors of the instrument and the outcome.

    Examples
    --------
    >>> instruments("z -> x -> y; x <-> y", "x", "y")
    [Instrument(name='z', given=())]
    >>> instruments("z -> x -> y; x <-> y; z <- w -> y", "x", "y")
    [Instrument(name='z', given=('w',))]
    """
    task = _task(graph, treatment, outcome, (), latent)
    found: list[tuple[int, int]] = []
    for node in members(task.allowed):
        z = 1 << node
        if task.separated_from_outcome(z, 0) and not task.separated_from_treatment(z, 0):
            found.append((node, 0))
        elif conditional:
            given = Cuts.of(task.graph, z, task.y, task.allowed).nearest_to_y()
            if given is not None and not task.separated_from_treatment(z, given):
                found.append((node, given))
    found.sort(key=lambda pair: bool(pair[1]))
    return [Instrument(task.graph.names[node], task.graph.named(given)) for node, given in found]


def is_instrument(
    graph: object,
    instrument: Names,
    treatment: Names,
    outcome: Names,
    given: Names = (),
    *,
    latent: Names = (),
) -> bool:
    """Say whether a variable is an instrument for an effect, given some others.

    Parameters
    ----------
    graph, treatment, outcome, latent
        As for `instruments`.
    instrument
        The variable in question.
    given
        What is conditioned on.

    Examples
    --------
    >>> graph = "z -> x -> y; x <-> y; z <- w -> y"
    >>> is_instrument(graph, "z", "x", "y"), is_instrument(graph, "z", "x", "y", given="w")
    (False, True)
    """
    task = _task(graph, treatment, outcome, given, latent)
    z, conditions = task.mask(instrument, "an instrument"), task.mask(given, "given")
    if z & conditions:
        raise InvalidArgument(f"{instrument!r} is both the instrument and given; leave it out of given=")
    return (
        not (z | conditions) & ~task.allowed
        and task.separated_from_outcome(z, conditions)
        and not task.separated_from_treatment(z, conditions)
    )


class _InstrumentTask(BackDoor):
    def separated_from_outcome(self, z: int, given: int) -> bool:
        return self.graph.m_separated(z, self.y, given)

    def separated_from_treatment(self, z: int, given: int) -> bool:
        return self.graph.m_separated(z, self.x, given)


def _task(graph: object, treatment: Names, outcome: Names, given: Names, latent: Names) -> _InstrumentTask:
    problem = Problem.of(graph, treatment, outcome, given, latent)
    if len(problem.treatment) > 1 or len(problem.outcome) > 1:
        raise InvalidArgument("an instrument is for the effect of one treatment on one outcome")
    _ = problem.admg  # refuses a class of graphs
    return _InstrumentTask.of(graph, treatment, outcome, given, latent=latent, family="admg")

"""Posteriors in closed form: conjugate pairs, jointly normal quantities, and normal ones with an unknown scale.

All real quantities have to be normal together, given the others ("roots": gamma, inverse gamma, beta, Dirichlet).
Integrating them out leaves the density of the roots; where each of these is of its family there, by itself, the whole
posterior is known: the roots' families, and the normal quantities given at most one root that scales them, which makes them
Student's t. That covers beta-binomial, Dirichlet-categorical, gamma-Poisson, gamma-exponential, normal-normal, normal-gamma,
linear regression and trees of these; nothing of it is looked up, see `conditional_conjugacy`. The log evidence is the log
joint density less the log posterior density, which is the same everywhere: that is checked at draws from the answer.

Cost: a few gradients of the log density for independent quantities; n + 1 for n correlated normal ones, and 3 n times a few
more where their scale is unknown. Reference: Gelman et al., Bayesian Data Analysis, chapters 2, 3 and 14.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.inference.densities.closed_forms.closed_engine import ClosedEngine
from markovia.inference.densities.closed_forms.closed_form import ClosedForm, Elements, Normals, as_elements
from markovia.inference.densities.closed_forms.closed_posterior import ClosedAnswer
from markovia.inference.densities.closed_forms.conditional_conjugacy import (
    BATCH,
    Slopes,
    Terms,
    candidates,
    misfit,
    read_off,
    refuse_holes,
)
from markovia.inference.densities.closed_forms.conjugate_blocks import ConjugateBlock, NormalBlock
from markovia.inference.densities.program.program import Program, program_of
from markovia.inference.engine import without_cure
from markovia.inference.problem import Problem
from markovia.inference.result import Record
from markovia.runtime.array_types import Array, Ints

MOST_NORMAL = 2000
"""Correlated normal numbers with a known scale; their precision is a matrix."""
MOST_SCALED = 200
"""Correlated normal numbers whose scale is unknown."""
TOLERANCE = 1e-8
PLAIN = frozenset(
    {
        *("Normal", "MultivariateNormal", "LowRankMultivariateNormal", "LogNormal", "Gamma", "InverseGamma"),
        *(
            "Exponential",
            "Chi2",
            "Beta",
            "Uniform",
            "Dirichlet",
            "ImproperUniform",
            "BernoulliProbs",
            "Poisson",
        ),
        *("BinomialProbs", "CategoricalProbs", "MultinomialProbs", "GeometricProbs", "NegativeBinomialProbs"),
        "Pareto",
    }
)
"""Distributions that closed forms are made of; `auto` looks no further at a model with others."""


class NotConjugate(UnsupportedModel):
    """A posterior that has no closed form; the sentence names a node."""


class NotWithTheseData(NotConjugate):
    """A posterior that may have a closed form with other data."""


@dataclass(frozen=True, kw_only=True)
class Conjugate(ClosedEngine):
    """Answer in closed form, where there is one.

    Parameters
    ----------
    seed
        Of draws, which are made on request only.
    time_limit, progress
        Those of every engine; there is nothing to wait for.

    Examples
    --------
    >>> import markovia as mk
    >>> import markovia.distributions as dist
    >>> m = mk.BayesianNetwork()
    >>> m.add("rate", dist.Gamma(2, 1))
    >>> m.add("calls", lambda rate: dist.Poisson(rate), plate="day")
    >>> post = m.query("rate", given={"calls": [3, 1, 4]}, engine="conjugate")
    >>> post.mean(), round(post.sd(), 6)
    (2.5, 0.790569)
    >>> post.info.note
    "in closed form: 'rate' is gamma"
    """

    name: ClassVar[str] = "conjugate"
    exact: ClassVar[bool] = True
    answers: ClassVar[frozenset[str]] = frozenset({"joint", "marginals", "log_mass", "best", "sample"})

    _found: ClassVar[Any] = None

    def answer(self, problem: Problem) -> ClosedAnswer:
        """Return the posterior of all latent quantities."""
        if self._found is not None and self._found[0] is problem:
            held: ClosedAnswer = self._found[1]
            return held
        return closed_answer(self._program(problem), self.seed or 0)


def closed_engine(problem: Problem, seed: int | None) -> Conjugate | None:
    """Return the engine where a problem has a closed form, its answer ready; None otherwise.

    A glance at the distributions rules most models out. The others cost a compilation of their log density and gradient,
    which is kept; so is that there was no closed form.
    """
    program = program_of(problem, "none")
    holes = any(program.layout.sites[n].role == "observed" for n in program.slots)
    if (
        program.hidden
        or program.functions is not None
        or holes
        or any(s.soft is not None for s in program.layout.sites.values())
        or not all(
            s.family in PLAIN and (s.role != "latent" or candidates(s))
            for s in program.layout.sites.values()
            if s.family
        )
    ):
        return None
    mark = (program.density.key, tuple(np.shape(v) for v in program.layout.data.values()))
    if mark in _without:
        return None
    try:
        found = closed_answer(program, seed or 0)
    except NotWithTheseData:
        return None
    except NotConjugate:
        _without.add(mark)
        return None
    engine = Conjugate(seed=seed)
    object.__setattr__(engine, "_found", (problem, found))
    return engine


_without: set[Any] = set()
"""Models (their keys, and shapes of data) that have no closed form."""


def closed_answer(program: Program, seed: int) -> ClosedAnswer:
    """Return the posterior of a program in closed form.

    Raises
    ------
    NotConjugate
        Naming a node, where there is none.
    """
    if program.hidden:
        raise _refused(f"{next(iter(program.hidden))!r} is discrete and not observed")
    refuse_holes(program, "conjugate")
    terms = Terms(program)
    if terms.bounded:
        raise _refused(f"the support of {min(terms.bounded)!r} depends on unknown numbers")
    for node, kinked in terms.kinks.items():
        if kinked:
            raise _refused(f"{node!r} has a kink or a jump in {min(kinked)!r}")
    slopes = Slopes(terms)
    families = {n: candidates(s, MOST_NORMAL) for n, s in terms.latents.items()}
    for name, found in families.items():
        if not found:
            raise _refused(f"the support of {name!r} is that of no conjugate prior")
    starts = slopes.starts()
    shapes = {n: terms.latents[n].shape for n, f in families.items() if isinstance(f[0], NormalBlock)}
    with np.errstate(all="ignore"):
        normal = _normal_block(slopes, shapes, starts) if shapes else None
        others = {n: f for n, f in families.items() if n not in shapes}
        form = _form(slopes, normal, others, starts)
        evidence = _evidence(slopes, form)
    return ClosedAnswer(program, form, evidence, Record(note=_why(form)), seed)


def _refused(why: str, kind: type[NotConjugate] = NotConjugate) -> NotConjugate:
    return without_cure(kind, f"the posterior has no closed form: {why}")


def _normal_block(slopes: Slopes, shapes: Mapping[str, tuple[int, ...]], starts: Any) -> NormalBlock:
    """Return all real quantities as one normal block, given the others."""
    block = NormalBlock(shapes, diagonal=True)
    if misfit(slopes, block, starts) < TOLERANCE:
        return block
    count = sum(map(prod, shapes.values()))
    if 1 < count <= MOST_NORMAL:
        block = NormalBlock(shapes, diagonal=False)
        if misfit(slopes, block, starts) < TOLERANCE:
            return block
    for name, shape in shapes.items():
        alone = NormalBlock({name: shape}, diagonal=False)
        if prod(shape) > MOST_NORMAL:
            raise _refused(f"{name!r} has {prod(shape):,} correlated numbers, over {MOST_NORMAL:,}")
        if not misfit(slopes, alone, starts) < TOLERANCE:
            raise _refused(f"{name!r} is not normal given the rest")
    raise _refused(f"{', '.join(map(repr, shapes))} are not normal together")


# -- the roots --------------------------------------------------------------------------------------------------------


def _form(
    slopes: Slopes, normal: NormalBlock | None, others: Mapping[str, list[ConjugateBlock]], starts: Any
) -> ClosedForm:
    """Return the whole posterior: the roots with the normal quantities integrated out, then these."""
    first, second = ({n: x[k] for n, x in starts.items()} for k in (0, 1))
    moves = normal is not None and not all(
        _same(a, b)
        for a, b in zip(
            read_off(slopes, normal, first)[0],
            read_off(slopes, normal, {**second, **{n: first[n] for n in normal.shapes}})[0],
            strict=True,
        )
    )
    if moves and normal is not None and not normal.diagonal and len(normal.flat(first)) > MOST_SCALED:
        raise _refused(f"{normal.name!r} and what it is correlated with are too many for an unknown scale")
    collapsed = Collapsed(slopes, normal if moves else None)
    elements: dict[str, Elements] = {}
    centre = dict(first)
    for name, blocks in others.items():
        fits = [(b, eta) for b in blocks if (eta := _root(collapsed, b, starts)) is not None]
        if not fits:
            raise _refused(
                f"{name!r} is not of a conjugate family, or not independent of the other quantities"
            )
        block, eta = fits[0]
        for _ in range(2):  # gradients near the posterior, where their parts are of the same size
            centre[name] = np.asarray(block.mean(eta)[name], dtype=np.float64)
            eta = collapsed.read_off(block, centre)
        elements[name] = as_elements(block, eta)
        if not all(np.all(np.isfinite(x) & (x > 0)) for x in (elements[name].a, elements[name].b)):
            raise _refused(f"the posterior of {name!r} is improper", NotWithTheseData)
    if normal is None:
        return ClosedForm(elements)
    return ClosedForm(elements, _scaled(slopes, normal, elements, centre))


class Collapsed:
    """The log density of the roots: normal quantities integrated out, exactly, by averages over two places a dimension."""

    def __init__(self, slopes: Slopes, normal: NormalBlock | None) -> None:
        self.slopes, self.normal = slopes, normal

    def at(self, rest: Mapping[str, Any]) -> tuple[float, dict[str, Array]]:
        """Return the log density of the roots, without its constant, and its gradient (Fisher's identity)."""
        if self.normal is None:
            values, gradients = self.slopes.at({n: np.asarray(x)[None] for n, x in rest.items()})
            return float(values[0]), {n: g[0] for n, g in gradients.items()}
        eta, _ = read_off(self.slopes, self.normal, rest)
        mean, root, half = _moments(self.normal, eta)
        steps = root[None] if self.normal.diagonal else root.T * np.sqrt(len(mean))
        places = self.normal.named(np.concatenate([mean[None], mean + steps, mean - steps]))
        count = 2 * len(steps) + 1
        every = {n: np.broadcast_to(x, (count, *np.shape(x))) for n, x in rest.items()}
        values, gradients = self.slopes.at({**every, **places})
        return float(values[0]) - half, {n: g[1:].mean(axis=0) for n, g in gradients.items()}

    def read_off(self, block: ConjugateBlock, rest: Mapping[str, Any]) -> Any:
        """Return the natural parameters of a root."""
        name = block.name
        places = block.places({name: np.asarray(rest[name])})
        found = [self.at({**rest, name: x})[1][name] for x in places[name]]
        return block.solve(places, {name: np.stack(found)})


def _root(collapsed: Collapsed, block: ConjugateBlock, starts: Any) -> Any:
    """Return the natural parameters of a root where it is of its family, whatever the other roots are; None otherwise."""
    name = block.name
    etas = [collapsed.read_off(block, {n: x[k] for n, x in starts.items()}) for k in (0, 1)]
    if not _same(*etas):
        return None
    rest = {n: x[0] for n, x in starts.items()}
    gaps, size = [], 1.0
    for x in starts[name]:
        value, gradient = collapsed.at({**rest, name: x})
        kernel = float(block.kernel({name: x}, etas[0]))
        gaps.append(value - kernel)
        size = max(size, abs(value), abs(kernel))
        found = block.tangent(gradient, {name: x})
        fitted = block.tangent(block.slope({name: x}, etas[0]), {name: x})
        apart = np.abs(found - fitted).max() / max(np.abs(found).max(), np.abs(fitted).max(), 1e-300)
        if not apart < TOLERANCE:
            return None
    return etas[0] if np.ptp(gaps) < TOLERANCE * size else None


def _same(one: Any, two: Any) -> bool:
    """Say whether natural parameters agree; one that is zero up to rounding is measured by the other."""
    pairs = list(zip(one, two, strict=True)) if isinstance(one, tuple) else [(one, two)]
    size = max(float(np.abs(a).max(initial=0.0)) for a, _ in pairs)
    return all(bool(np.all(np.abs(a - b) <= TOLERANCE * size)) for a, b in pairs)


def _moments(block: NormalBlock, eta: Any) -> tuple[Array, Array, float]:
    """Return mean, a root of the covariance, and half the log determinant of the precision."""
    from scipy.linalg import cho_solve, solve_triangular

    h, precision = eta
    if block.diagonal:
        return h / precision, 1.0 / np.sqrt(precision), float(0.5 * np.log(precision).sum())
    try:
        lower = np.linalg.cholesky(precision)
    except np.linalg.LinAlgError:
        raise _refused(f"the posterior of {block.name!r} is improper", NotWithTheseData) from None
    root = solve_triangular(lower, np.eye(len(h)), lower=True).T
    return cho_solve((lower, True), h), root, float(np.log(np.diagonal(lower)).sum())


# -- the normal quantities ----------------------------------------------------------------------------------------------


def _scaled(
    slopes: Slopes, normal: NormalBlock, elements: Mapping[str, Elements], centre: Mapping[str, Any]
) -> Normals:
    """Return the normal quantities, each with the root that scales it.

    Each root is multiplied by a factor of its own; parts that are independent of each other then show by the ratio of their
    precisions which root scales them.
    """
    centre = dict(centre)
    eta, _ = read_off(slopes, normal, centre)
    mean, root, _ = _moments(normal, eta)
    centre.update(
        normal.named(mean)
    )  # once more from there: rounding is relative to where gradients are taken
    eta, _ = read_off(slopes, normal, centre)
    mean, root, _ = _moments(normal, eta)
    if not (np.isfinite(mean).all() and np.isfinite(root).all()):
        raise _refused(f"the posterior of {normal.name!r} is improper", NotWithTheseData)
    covariance = root**2 if normal.diagonal else root @ root.T
    scaling = {n: e for n, e in elements.items() if e.family != "dirichlet"}
    count = sum(e.a.size for e in scaling.values())
    factors = 1.5 + np.arange(1, count + 1) / (count + 1.0)
    moved, at = dict(centre), 0
    for name, e in scaling.items():
        mine = factors[at : at + e.a.size].reshape(e.shape)
        moved[name] = centre[name] * mine if e.family != "beta" else centre[name] / mine
        at += e.a.size
    for name, e in elements.items():
        if e.family == "dirichlet":
            moved[name] = e.a[..., ::-1] / e.a.sum(-1, keepdims=True)
    other, _ = read_off(slopes, normal, moved)
    mean2, _, _ = _moments(normal, other)
    spread = np.sqrt(covariance if normal.diagonal else np.diagonal(covariance))
    if not np.all(np.abs(mean2 - mean) <= 1e-7 * (spread + np.abs(mean))):
        raise _refused(f"the mean of {normal.name!r} depends on its unknown scale")
    roots, inverse = _links(eta[1], other[1], factors, normal)
    flat = np.concatenate([np.zeros(0), *(np.ravel(centre[n]) for n in scaling)])
    families = [e.family for e in scaling.values() for _ in range(e.a.size)]
    unit = np.ones(len(mean))
    for i in np.flatnonzero(roots >= 0):
        if families[roots[i]] != ("gamma" if inverse[i] else "inverse-gamma"):
            raise _refused(f"{normal.name!r} has a scale whose prior is not conjugate")
        unit[i] = flat[roots[i]] if inverse[i] else 1.0 / flat[roots[i]]
    covariance = covariance * unit if normal.diagonal else covariance * np.sqrt(np.outer(unit, unit))
    return Normals(normal.shapes, mean, covariance, roots, inverse)


def _links(before: Array, after: Array, factors: Array, normal: NormalBlock) -> tuple[Ints, Any]:
    """Return, for each number, the root whose factor its precision was multiplied (or divided) by; -1 for none."""
    from scipy.sparse.csgraph import connected_components

    if normal.diagonal:
        ratio = after / before
    else:
        size = np.sqrt(np.outer(np.diagonal(before), np.diagonal(before)))
        _, parts = connected_components(np.abs(before) > 1e-12 * size)
        ratio = np.diagonal(after) / np.diagonal(before)
        for part in range(parts.max() + 1):
            here = np.flatnonzero(parts == part)
            expected = before[np.ix_(here, here)] * ratio[here[0]]
            if not np.abs(after[np.ix_(here, here)] - expected).max() <= 1e-7 * np.abs(expected).max():
                raise _refused(f"{normal.name!r} is not scaled as a whole by its unknown scale")
            ratio[here] = ratio[here[0]]
    roots = np.full(len(ratio), -1)
    inverse = np.zeros(len(ratio), bool)
    for i, r in enumerate(ratio):
        if abs(r - 1.0) < 1e-7:
            continue
        gaps = np.abs(np.concatenate([factors, 1.0 / factors]) - r)
        best = int(gaps.argmin())
        if not gaps[best] < 1e-7:
            raise _refused(f"{normal.name!r} has a scale that is not conjugate to it")
        roots[i], inverse[i] = best % len(factors), best < len(factors)
    return roots, inverse


def _evidence(slopes: Slopes, form: ClosedForm) -> float:
    """Return log joint density less log posterior density, which must be the same at all draws."""
    draws = form.sample(BATCH, np.random.default_rng(0))
    values, _ = slopes.at(draws)
    found = values - form.log_prob(draws)
    if not np.ptp(found) <= 1e-7 * (1.0 + np.abs(values).max()):
        raise _refused(
            "what its nodes look like at random values does not hold where it is", NotWithTheseData
        )
    return float(found.mean())


def _why(form: ClosedForm) -> str:
    said = [
        f"{n!r} is {'Dirichlet' if e.family == 'dirichlet' else e.family.replace('-', ' ')}"
        for n, e in form.elements.items()
    ]
    if form.normals is not None:
        names = ", ".join(map(repr, form.normals.shapes))
        scaled = (form.normals.root >= 0).any()
        many = "are" if len(form.normals.shapes) > 1 else "is"
        said.append(f"{names} {many} {'Student t' if scaled else 'normal'}")
    return f"in closed form: {'; '.join(said)}" if said else "in closed form: nothing is unknown"

"""Formulas over conditional distributions: products, sums and quotients of terms such as P(y | do(x), z).

A formula is a tree of four kinds of nodes. `P` is a distribution that is known; `SumExpression` binds the variables that it
sums over, so that the same name means different things inside and outside, as in Σ_z P(z | x) Σ_x' P(y | x', z)
P(x'); primes appear when it is printed. Use `product`, `summed` and `quotient` to build formulas: they drop what is
one, cancel, and take factors out of sums. Parts may be shared, so a formula costs no more than its distinct parts.
"""

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property


class Expression:
    """A formula; `str` writes it as text, `latex()` for typesetting."""

    @property
    def free(self) -> frozenset[str]:
        """The names that the value depends on."""
        raise NotImplementedError

    def __str__(self) -> str:
        return _Writer(_TEXT).write(self, self.free)

    def latex(self, known: Iterable[str] = ()) -> str:
        """Return the formula in LaTeX; names that are `known` beside it get a prime where the formula sums over them."""
        return _Writer(_LATEX).write(self, self.free.union(known))

    def written(self, labels: Mapping[str, str], known: Iterable[str] = ()) -> str:
        """Return the formula as text with other words for some free names, such as `x=1` for `x`; `known` as for `latex`.

        Examples
        --------
        >>> print(P(("y",), ("x",)).written({"x": "x=1"}))
        P(y | x=1)
        """
        return _Writer(_TEXT, labels).write(self, self.free.union(known))

    def terms(self) -> Iterator["P"]:
        """Yield the distributions in the formula, each once."""
        seen: set[int] = set()
        stack: list[Expression] = [self]
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, P):
                yield node
            stack += reversed(_parts(node))


@dataclass(frozen=True, eq=True)
class P(Expression):
    """The distribution of some variables given others, where some were set by an experiment.

    Attributes
    ----------
    of, given
        Names. An empty `of` is the number one.
    do
        The names that were set in the experiment or, with an empty tuple, none: the distribution that is observed.
    population
        The population it is of, where there are several; "" for the only one.

    Examples
    --------
    >>> print(P(("y",), ("z",), do=("x",)))
    P(y | do(x), z)
    """

    of: tuple[str, ...]
    given: tuple[str, ...] = ()
    do: tuple[str, ...] = ()
    population: str = ""

    @cached_property
    def free(self) -> frozenset[str]:
        """All names in it."""
        return frozenset((*self.of, *self.given, *self.do))

    __str__ = Expression.__str__


@dataclass(frozen=True, eq=True)
class ProductExpression(Expression):
    """Factors that are multiplied; none of them is one."""

    factors: tuple[Expression, ...]

    @cached_property
    def free(self) -> frozenset[str]:
        """The names in any factor."""
        return frozenset().union(*(factor.free for factor in self.factors))

    __str__ = Expression.__str__


@dataclass(frozen=True, eq=True)
class SumExpression(Expression):
    """A sum over all values of some variables, or an integral where they are numbers."""

    over: tuple[str, ...]
    body: Expression

    @cached_property
    def free(self) -> frozenset[str]:
        """The names in the body that are not summed over."""
        return self.body.free.difference(self.over)

    __str__ = Expression.__str__


@dataclass(frozen=True, eq=True)
class Quotient(Expression):
    """One formula divided by another."""

    top: Expression
    bottom: Expression

    @cached_property
    def free(self) -> frozenset[str]:
        """The names above or below the line."""
        return self.top.free | self.bottom.free

    __str__ = Expression.__str__


ONE = P(())


def product(factors: Iterable[Expression]) -> Expression:
    """Multiply formulas: ones vanish, products open up, and equal parts above and below the line cancel.

    Examples
    --------
    >>> top, bottom = P(("x", "y")), P(("x",))
    >>> print(product([Quotient(top, bottom), bottom]))
    P(x, y)
    """
    parts: list[tuple[list[Expression], list[Expression]]] = []
    for factor in factors:
        parts += [
            (_factors(part.top), _factors(part.bottom)) if isinstance(part, Quotient) else ([part], [])
            for part in _factors(factor)
        ]
    for _, bottoms in parts:
        for bottom in list(bottoms):
            for tops, others in parts:
                if bottom in tops:
                    tops.remove(bottom)
                    bottoms.remove(bottom)
                    if not tops and others is not bottoms:  # what it was divided by moves along
                        bottoms += others
                        others.clear()
                    break
    for own, bottoms in parts:
        # a divisor that has nothing left above it goes below the part that it has most names in common with
        fuller = [(tops, others) for tops, others in parts if tops]
        if bottoms and not own and fuller:
            names = _joined(bottoms).free
            fuller.reverse()
            max(fuller, key=lambda part: len(names & _joined(part[0]).free))[1].extend(bottoms)
            bottoms.clear()
    made = [
        Quotient(_joined(tops), _joined(bottoms)) if bottoms else _joined(tops) for tops, bottoms in parts
    ]
    return _joined([inner for part in made for inner in _factors(part)])


def quotient(top: Expression, bottom: Expression) -> Expression:
    """Divide one formula by another; equal factors cancel.

    Examples
    --------
    >>> print(quotient(product([P(("z",)), P(("y",), ("z",))]), P(("z",))))
    P(y | z)
    """
    if bottom == ONE:
        return top
    plain = [part for part in _factors(top) if not isinstance(part, Quotient)]
    divided = [part for part in _factors(top) if isinstance(part, Quotient)]
    return product([*divided, Quotient(_joined(plain), bottom)])


def summed(over: Iterable[str], body: Expression) -> Expression:
    """Sum over some variables: distributions that sum to one vanish, and what does not vary stays outside.

    Examples
    --------
    >>> joint = product([P(("a",)), P(("b",), ("a",)), P(("c",), ("b",))])
    >>> print(summed(["c"], joint))
    P(a) P(b | a)
    >>> print(summed(["b"], joint))
    P(a) Σ_b P(b | a) P(c | b)
    """
    names = dict.fromkeys(over)
    factors = _factors(body)
    used = Counter(name for factor in factors for name in factor.free)
    left = 0
    while left != len(factors):  # from the last on: in a chain of conditionals that is one pass
        left, kept = len(factors), []
        for factor in reversed(factors):
            if isinstance(factor, P) and all(n in names and used[n] == 1 for n in factor.of):
                used.subtract(factor.free)
            else:
                kept.append(factor)
        factors = kept[::-1]
    shortened = [_without(f, names, used) if isinstance(f, P) else f for f in factors]
    bound = tuple(name for name in names if any(name in f.free for f in shortened))
    outside = [f for f in shortened if f.free.isdisjoint(bound)]
    if not bound:
        return product(outside)
    core = product(f for f in shortened if not f.free.isdisjoint(bound))
    if isinstance(core, SumExpression) and not set(bound) & set(core.over):
        # one sum over both: what sums to one under it vanishes, as it could not while the inner sum hid it
        return product([*outside, summed((*bound, *core.over), core.body)])
    return product([*outside, SumExpression(bound, core)])


def _without(term: P, names: Container[str], used: Mapping[str, int]) -> P:
    """Return a joint distribution without those of its variables that are summed over and occur nowhere else."""
    gone = {n for n in term.of if n in names and used[n] == 1}
    return (
        P(tuple(n for n in term.of if n not in gone), term.given, term.do, term.population) if gone else term
    )


def _factors(part: Expression) -> list[Expression]:
    return list(part.factors) if isinstance(part, ProductExpression) else [] if part == ONE else [part]


def _joined(factors: list[Expression]) -> Expression:
    return ONE if not factors else factors[0] if len(factors) == 1 else ProductExpression(tuple(factors))


def _parts(node: Expression) -> list[Expression]:
    if isinstance(node, ProductExpression):
        return list(node.factors)
    if isinstance(node, SumExpression):
        return [node.body]
    return [node.top, node.bottom] if isinstance(node, Quotient) else []


# -- writing -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Style:
    bar: str
    comma: str
    gap: str
    total: str
    fraction: str
    do: str
    latex: bool

    def name(self, name: str, primes: int) -> str:
        if not self.latex:
            return name + "'" * primes
        plain = re.sub(r"([_%&#$])", r"\\\1", name)
        if subscripted := re.fullmatch(r"([A-Za-z])_?(\d+)", name):
            plain = f"{subscripted[1]}_{{{subscripted[2]}}}"
        elif len(name) > 1:
            plain = rf"\mathrm{{{plain}}}"
        return plain + "'" * primes


_TEXT = _Style(" | ", ", ", " ", "Σ_{} {}", "[{}] / [{}]", "do({})", latex=False)
_LATEX = _Style(
    r" \mid ", ", ", r" \, ", r"\sum_{{{}}} {}", r"\frac{{{}}}{{{}}}", r"\mathrm{{do}}({})", latex=True
)


class _Writer:
    """Writes a formula; a name bound by a sum gets a prime where it already means something outside."""

    def __init__(self, style: _Style, labels: Mapping[str, str] | None = None) -> None:
        self.style = style
        self.labels = labels or {}

    def write(self, node: Expression, known: Iterable[str]) -> str:
        return self._write(node, dict.fromkeys(known, 0))

    def _write(self, node: Expression, primes: dict[str, int]) -> str:
        s = self.style
        if isinstance(node, P):
            return self._term(node, primes)
        if isinstance(node, ProductExpression):
            # a sum reaches as far to the right as it can, so sums come last, and all but the last in brackets
            parts = sorted(node.factors, key=lambda part: isinstance(part, SumExpression))
            words = [self._write(part, primes) for part in parts]
            words[:-1] = [
                f"({w})" if isinstance(p, SumExpression) else w
                for w, p in zip(words, parts[:-1], strict=False)
            ]
            return s.gap.join(words)
        if isinstance(node, SumExpression):
            inner = dict(primes)
            for name in node.over:
                inner[name] = primes[name] + 1 if name in primes else 0
            names = [s.name(name, inner[name]) for name in node.over]
            listed = ",".join(names)
            under = listed if s.latex or len(names) == 1 else f"{{{listed}}}"
            return s.total.format(under, self._write(node.body, inner))
        assert isinstance(node, Quotient)
        return s.fraction.format(self._write(node.top, primes), self._write(node.bottom, primes))

    def _name(self, name: str, primes: int) -> str:
        return self.labels[name] if name in self.labels and not primes else self.style.name(name, primes)

    def _term(self, term: P, primes: dict[str, int]) -> str:
        s = self.style
        if not term.of:
            return "1"

        def listed(names: Iterable[str]) -> str:
            return s.comma.join(self._name(name, primes.get(name, 0)) for name in names)

        conditions = [s.do.format(listed(term.do))] if term.do else []
        conditions += [listed(term.given)] if term.given else []
        letter = (
            f"P_{{{term.population}}}"
            if s.latex and term.population
            else f"P{'_' * bool(term.population)}{term.population}"
        )
        return f"{letter}({listed(term.of)}" + (s.bar + s.comma.join(conditions) if conditions else "") + ")"

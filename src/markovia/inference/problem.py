"""What an engine is given: variables, the pieces of a factorised distribution, and findings."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from operator import is_
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.evidence import Finding, Findings
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.sparse import SparseFactor
from markovia.factors.tables.variable import Variable

Piece: TypeAlias = Factor | Conditional


class Pieces(tuple[Piece, ...]):
    """The pieces of a model, one object for as long as none of them changes; what their types tell is read off once."""

    @cached_property
    def types(self) -> frozenset[type]:
        """The classes of the pieces."""
        return frozenset(map(type, self))

    @cached_property
    def kinds(self) -> frozenset[str]:
        """What kinds the pieces are of, such as "table"."""
        return frozenset([piece.kind for piece in self.types])  # type: ignore[attr-defined]

    def same(self, pieces: Sequence[Piece]) -> bool:
        """Say whether these are the same pieces, in the same order."""
        return self is pieces or (len(self) == len(pieces) and all(map(is_, self, pieces)))


@dataclass(frozen=True)
class Problem:
    """An inference problem: the weight of a configuration is the product of pieces and likelihoods.

    A piece that is a `Conditional` sums to one over its child, which lets engines drop it when the child is
    barren; a `Factor` is any non-negative table. `memory` belongs to the model: engines keep there what they may use
    again, such as a compiled tree, together with the pieces it was made from. `hidden` are auxiliary variables that no
    user knows of; `hidden_certain` says whether the others determine them, and `whole` is the problem without them.
    `guides` say what latent quantities may be proposed from.
    `inputs` are constants by name, which no piece is a distribution of, and the lengths of plates; `impute` says whether NaN
    in arrays of findings are values to infer.
    """

    variables: Mapping[str, Variable]
    pieces: Sequence[Piece]
    findings: Findings
    memory: dict[Any, Any] | None = field(default=None, compare=False, repr=False)
    hidden: tuple[str, ...] = ()
    hidden_certain: bool = True
    whole: "Problem | None" = field(default=None, compare=False, repr=False)
    inputs: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    guides: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    impute: bool = False

    def __post_init__(self) -> None:
        if type(self.pieces) is not Pieces:
            object.__setattr__(self, "pieces", Pieces(self.pieces))

    @property
    def held(self) -> Pieces:
        """The pieces with what their types tell."""
        return self.pieces  # type: ignore[return-value]

    @property
    def kinds(self) -> frozenset[str]:
        """What kinds its pieces are of, such as "table"."""
        return self.held.kinds

    @property
    def partly_seen(self) -> frozenset[str]:
        """Nodes of which arrays were found that miss entries within their elements: these just do not count."""
        if not self.impute:
            return frozenset()
        return frozenset(
            name
            for name, f in self.findings.items()
            if f.hard and f.code is None and np.ndim(f.value) > len(getattr(f.variable, "plates", ()))
            if np.isnan(np.asarray(f.value, dtype=float)).any()
        )

    @property
    def free(self) -> list[str]:
        """The variables that have a distribution and are not fixed to one state or value, in model order."""
        fixed = {n for n, f in self.findings.items() if f.hard}
        if "distribution" in self.kinds:  # inputs have none
            fixed |= {n for n, v in self.variables.items() if isinstance(v, Quantity) and v.domain == "input"}
        return [n for n in self.variables if n not in fixed] if fixed else list(self.variables)

    def asks_for_all(self, targets: Sequence[str] | None) -> bool:
        """Say whether the targets are all free variables; None is all of them."""
        if targets is None:
            return True
        most = len(self.variables) - len(self.findings)  # at least so many are free, but for inputs
        return (len(targets) >= most or "distribution" in self.kinds) and len(targets) == len(self.free)

    @property
    def asked(self) -> list[str]:
        """The free variables that the user knows of."""
        return [n for n in self.free if n not in self.hidden] if self.hidden else self.free

    def folded(self) -> "Problem":
        """Return the problem without auxiliary variables."""
        return self if self.whole is None else replace(self.whole, findings=self.findings)

    @property
    def given(self) -> dict[str, Any]:
        """What was found: the state of each fixed variable, and of others what the user said."""
        return {n: f.said if f.code is None else f.variable.states[f.code] for n, f in self.findings.items()}

    def with_findings(self, findings: Findings) -> "Problem":
        """Return the same problem under other findings."""
        return replace(self, findings=findings)

    def relevant(self, targets: Iterable[str] | None) -> list[Piece]:
        """Return the pieces that matter for the targets and the evidence; with None, all of them.

        A conditional whose child is neither asked for nor observed, and which no other piece mentions,
        sums to one and is dropped, until none is left.
        """
        if targets is None:
            return list(self.pieces)
        needed = {*targets, *self.findings}
        if "potential" in self.kinds:  # which are always there
            needed |= {p.names[-1] for p in self.pieces if p.kind == "potential"}
        by_child: dict[str, int] = {}
        mentions: dict[str, int] = Counter([name for p in self.pieces for name in _others(p)])
        for i, piece in enumerate(self.pieces):
            if not isinstance(piece, Factor) and by_child.setdefault(piece.variable.name, i) != i:
                mentions[piece.variable.name] += 1  # two conditionals of one child do not sum to one
        barren = [n for n in by_child if n not in needed and n not in mentions]
        dropped = bytearray(len(self.pieces))
        while barren:
            i = by_child[barren.pop()]
            dropped[i] = 1
            for name in _others(self.pieces[i]):
                mentions[name] -= 1
                if not mentions[name] and name not in needed and name in by_child:
                    barren.append(name)
        return [piece for piece, gone in zip(self.pieces, dropped, strict=True) if not gone]

    def about(self, targets: Iterable[str]) -> "Problem":
        """Return the problem of the relevant pieces where these are of fewer kinds; else itself.

        So a barren piece of another kind neither refuses a question nor asks for another engine. What is barren among pieces
        of kinds that matter is left to the engines, which know it.
        """
        if len(self.kinds) < 2:
            return self
        bare = self.bare(targets)
        return self if bare.kinds == self.kinds else bare

    def bare(self, targets: Iterable[str]) -> "Problem":
        """Return the problem of the relevant pieces; itself where all are."""
        pieces = self.relevant(targets)
        if len(pieces) == len(self.pieces):
            return self
        kept = set(map(id, pieces))
        barren = {piece.names[-1] for piece in self.pieces if id(piece) not in kept}
        variables = {n: v for n, v in self.variables.items() if n not in barren}
        memory = None if self.memory is None else self.memory.setdefault("relevant pieces", {})
        return replace(self, variables=variables, pieces=pieces, memory=memory)

    def parts(self, targets: Iterable[str] | None) -> list["Part"]:
        """Return what is left of the relevant pieces under the findings: scopes now, tables when they are built.

        Hard findings are cut out, soft ones are appended, and a variable that no piece mentions weighs all its
        states alike. What hard findings separate shares no variable any more.
        """
        fixed = {n: f.code for n, f in self.findings.items() if f.code is not None}
        found = [Part(_left(p, fixed), partial(cut_piece, p, fixed), p) for p in self.relevant(targets)]
        found.extend([Part((f.variable,), f.factor, f) for f in self.findings.values() if not f.hard])
        found.extend([Part((v,), partial(_ones, v)) for v in self.unmentioned() if v.name not in fixed])
        return found

    def reduced(self, targets: Iterable[str] | None) -> list[Factor]:
        """Return the parts as factors."""
        return [part.build() for part in self.parts(targets)]

    def cut(self, piece: Piece) -> Factor:
        """Fix the hard findings in one piece and drop their axes."""
        return cut_piece(piece, {n: f.code for n, f in self.findings.items() if f.code is not None})

    def unmentioned(self) -> list[Variable]:
        """Return the variables that no piece mentions; their states all weigh alike."""
        rest = dict(self.variables)
        for piece in self.pieces:
            if not isinstance(piece, Factor):
                rest.pop(piece.variable.name, None)
        for piece in self.pieces if rest else ():
            for name in piece.names:
                rest.pop(name, None)
        return list(rest.values())


class Part(NamedTuple):
    """A factor still to be built: its variables, how to build it, and the piece or the finding that it comes from."""

    variables: tuple[Variable, ...]
    build: Callable[[], Factor]
    source: Piece | Finding | None = None


def _others(piece: Piece) -> list[str]:
    """Return the names in a piece that it does not sum to one over; earlier elements of other nodes are among them."""
    if isinstance(piece, Factor):
        return [v.name for v in piece.variables]
    names = [v.name for v in piece.parents]
    if piece.kind == "distribution":
        own = piece.variable.name
        names += [lag.node for lag in piece.previous.values() if lag.node != own]  # type: ignore[attr-defined]
    return names


def _left(piece: Piece, fixed: Mapping[str, int]) -> tuple[Variable, ...]:
    variables = piece.variables if isinstance(piece, Factor) else (*piece.parents, piece.variable)
    return tuple([v for v in variables if v.name not in fixed]) if fixed else variables


def cut_piece(piece: Piece, fixed: Mapping[str, int]) -> Factor:
    """Return what is left of a piece when some variables are fixed to a state, given by code."""
    if isinstance(piece, Conditional | SparseFactor):
        return piece.cut(fixed)
    if not any(n in fixed for n in piece.names):
        return piece
    index = tuple(fixed.get(n, slice(None)) for n in piece.names)
    kept = tuple(v for v in piece.variables if v.name not in fixed)
    return Factor.of(kept, np.asarray(piece.values[index]))


def _ones(variable: Variable) -> Factor:
    return Factor.of((variable,), np.ones(len(variable)))

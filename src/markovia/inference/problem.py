"""What an engine is given: variables, the pieces of a factorised distribution, and findings."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from markovia.factors.conditional import Conditional
from markovia.factors.evidence import Findings
from markovia.factors.factor import Factor
from markovia.factors.variable import Variable

Piece: TypeAlias = Factor | Conditional


@dataclass(frozen=True)
class Problem:
    """An inference problem: the weight of a configuration is the product of pieces and likelihoods.

    A piece that is a `Conditional` sums to one over its child, which lets engines drop it when the child is
    barren; a `Factor` is any non-negative table.
    """

    variables: Mapping[str, Variable]
    pieces: Sequence[Piece]
    findings: Findings

    @property
    def free(self) -> list[str]:
        """The variables that are not fixed to one state, in model order."""
        return [n for n in self.variables if not (n in self.findings and self.findings[n].hard)]

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
        needed = set(targets) | set(self.findings)
        uses: dict[str, int] = {}
        by_child: dict[str, list[int]] = {}
        for i, piece in enumerate(self.pieces):
            for name in piece.names:
                uses[name] = uses.get(name, 0) + 1
            if isinstance(piece, Conditional):
                by_child.setdefault(piece.variable.name, []).append(i)
        alive = [True] * len(self.pieces)
        barren = [n for n in by_child if n not in needed and uses[n] == 1]
        while barren:
            i = by_child[barren.pop()][0]
            alive[i] = False
            for name in self.pieces[i].names:
                uses[name] -= 1
                if uses[name] == 1 and name not in needed and any(alive[k] for k in by_child.get(name, ())):
                    barren.append(name)
        return [piece for piece, keep in zip(self.pieces, alive, strict=True) if keep]

    def parts(self, targets: Iterable[str] | None) -> list["Part"]:
        """Return what is left of the relevant pieces under the findings: scopes now, tables when they are built.

        Hard findings are cut out, soft ones are appended, and a variable that no piece mentions weighs all its
        states alike.
        """
        fixed = {n: f.code for n, f in self.findings.items() if f.code is not None}
        mentioned = {name for piece in self.pieces for name in piece.names}
        unmentioned = [v for n, v in self.variables.items() if n not in mentioned and n not in fixed]
        return [
            *(Part(self._left(p, fixed), partial(_cut, p, fixed)) for p in self.relevant(targets)),
            *(Part((f.variable,), f.factor) for f in self.findings.values() if not f.hard),
            *(Part((v,), partial(_ones, v)) for v in unmentioned),
        ]

    def reduced(self, targets: Iterable[str] | None) -> list[Factor]:
        """Return the parts as factors."""
        return [part.build() for part in self.parts(targets)]

    def cut(self, piece: Piece) -> Factor:
        """Fix the hard findings in one piece and drop their axes."""
        return _cut(piece, {n: f.code for n, f in self.findings.items() if f.code is not None})

    def _left(self, piece: Piece, fixed: Mapping[str, int]) -> tuple[Variable, ...]:
        return tuple(self.variables[n] for n in piece.names if n not in fixed)


class Part(NamedTuple):
    """A factor still to be built: its variables, and how to build it."""

    variables: tuple[Variable, ...]
    build: Callable[[], Factor]


def _cut(piece: Piece, fixed: Mapping[str, int]) -> Factor:
    if isinstance(piece, Conditional):
        return piece.cut(fixed)
    if not any(n in fixed for n in piece.names):
        return piece
    index = tuple(fixed.get(n, slice(None)) for n in piece.names)
    kept = tuple(v for v in piece.variables if v.name not in fixed)
    return Factor.of(kept, np.asarray(piece.values[index]))


def _ones(variable: Variable) -> Factor:
    return Factor.of((variable,), np.ones(len(variable)))

"""What an engine is given: variables, the pieces of a factorised distribution, and findings."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from markovia.factors.conditional import Conditional
from markovia.factors.evidence import Finding, Findings
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

    def fixed(self, codes: Mapping[str, int]) -> "Problem":
        """Return the problem with more variables fixed to a state (given by code).

        The likelihood that soft evidence gave to that state still counts.
        """
        more = {}
        for name, code in codes.items():
            known = self.findings.get(name)
            if known is None or known.hard:
                more[name] = Finding(self.variables[name], None, code=code)
            else:
                weights = np.zeros(len(self.variables[name]))
                weights[code] = known.weights()[code]
                more[name] = Finding(self.variables[name], None, likelihood=weights)
        return self.with_findings({**self.findings, **more})

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

    def reduced(self, targets: Iterable[str] | None) -> list[Factor]:
        """Return the relevant pieces as factors with hard findings cut out and soft ones appended.

        A variable that no piece mentions weighs all its states alike.
        """
        mentioned = {name for piece in self.pieces for name in piece.names}
        unmentioned = [v for n, v in self.variables.items() if n not in mentioned]
        return [
            *(self.cut(p.factor() if isinstance(p, Conditional) else p) for p in self.relevant(targets)),
            *(f.factor() for f in self.findings.values() if not f.hard),
            *(self.cut(Factor.of((v,), np.ones(len(v)))) for v in unmentioned),
        ]

    def cut(self, factor: Factor) -> Factor:
        """Fix the hard findings in one factor and drop their axes."""
        index: list[int | slice] = []
        kept = []
        for v in factor.variables:
            finding = self.findings.get(v.name)
            if finding is not None and finding.code is not None:
                index.append(finding.code)
            else:
                index.append(slice(None))
                kept.append(v)
        if len(kept) == len(factor.variables):
            return factor
        return Factor.of(tuple(kept), np.asarray(factor.values[tuple(index)]))

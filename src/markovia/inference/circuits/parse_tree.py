"""Trees that a grammar gives to sentences: drawn as brackets or as lines, read from brackets."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Union

from markovia.errors import InvalidArgument
from markovia.runtime.shown import InNotebooks


@dataclass(frozen=True)
class ParseTree(InNotebooks):
    """A symbol with the trees and words below it; `log_prob` is that of the derivation, where a grammar gave it.

    Examples
    --------
    >>> tree = ParseTree.from_text("(S (NP she) (VP (V eats) (NP fish)))")
    >>> tree.words, tree.label, len(tree.children)
    (('she', 'eats', 'fish'), 'S', 2)
    >>> print(tree.draw())
    S
    ├─ NP ─ she
    └─ VP
       ├─ V ─ eats
       └─ NP ─ fish
    """

    label: str
    children: tuple[Union["ParseTree", str], ...] = ()
    log_prob: float | None = None

    @classmethod
    def from_text(cls, text: str) -> "ParseTree":
        """Read a tree in brackets, `(S (NP she) (VP eats))`; a symbol without children stands for nothing, `(NP)`."""
        open_parts: list[list[ParseTree | str]] = [[]]  # what stands in each pair of brackets that is open
        for token in re.findall(r"[()]|[^\s()]+", text) if isinstance(text, str) else ():
            if token == "(":
                open_parts.append([])
            elif token != ")":
                open_parts[-1].append(token)
            elif len(open_parts) > 1 and open_parts[-1]:
                label, *children = open_parts.pop()
                if isinstance(label, ParseTree):
                    label, children = "", [label, *children]
                open_parts[-1].append(cls(label, tuple(children)))
            else:
                open_parts.append([])  # a bracket that closes nothing: no tree
                break
        if len(open_parts) == 1 and len(open_parts[0]) == 1 and isinstance(open_parts[0][0], ParseTree):
            return open_parts[0][0]
        raise InvalidArgument(
            f"a tree is one pair of brackets such as '(S (NP she) (VP eats))', not {text!r}"
        )

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the sentence in order."""
        return tuple(w for c in self.children for w in (c.words if isinstance(c, ParseTree) else (c,)))

    def nodes(self) -> "Iterator[ParseTree]":
        """Go through the tree and all trees below it, parents and left ones first."""
        waiting: list[ParseTree] = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += [c for c in reversed(node.children) if isinstance(c, ParseTree)]

    def draw(self) -> str:
        """Return the tree with one line a symbol."""
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        if len(self.children) == 1 and isinstance(self.children[0], str):
            return [f"{self.label} ─ {self.children[0]}"]
        found = [self.label if self.children else f"{self.label} ─ ε"]
        for i, child in enumerate(self.children):
            last = i == len(self.children) - 1
            own = child._lines() if isinstance(child, ParseTree) else [child]
            found += [("└─ " if last else "├─ ") + own[0], *(("   " if last else "│  ") + s for s in own[1:])]
        return found

    def __str__(self) -> str:
        return f"({' '.join([self.label, *map(str, self.children)])})"

"""The answer to a decision problem: what to choose given what is seen, what that is worth, and how sure that is."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument, UnknownVariable, check_known
from markovia.factors.tables.conditional import ConditionalTable
from markovia.factors.tables.variable import State
from markovia.inference.result import Info
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.shown import aligned, html_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROWS_SHOWN = 12


class Policy(Mapping[str, ConditionalTable]):
    """A rule for every decision: a mapping from name to a conditional table over what is seen.

    Attributes
    ----------
    value
        The expected utility, or under `risk=` the certainty equivalent.
    bound
        What perfect recall would be worth: what is forgotten costs at most the difference. Infinite where that is too large
        to compute.
    gap
        How much more the best policy of the same memory may be worth: zero where the policy is proved to be best.
    info
        How it was found.

    Examples
    --------
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork()
    >>> bn.add("rain", [0.7, 0.3], states=["no", "yes"])
    >>> bn.add("forecast", [[0.9, 0.1], [0.2, 0.8]], states=["dry", "wet"], parents=["rain"])
    >>> bn.add("umbrella", mk.Decision(["take", "leave"]), parents=["forecast"])
    >>> bn.add("joy", mk.Utility([[20, 100], [70, 0]]), parents=["rain", "umbrella"])
    >>> policy = bn.decide()
    >>> policy.act("umbrella", forecast="wet")
    'take'
    >>> print(policy)
    expected utility 81.2, exact
    umbrella, seeing forecast
      forecast  umbrella
      dry       leave
      wet       take
    """

    def __init__(
        self,
        rules: Mapping[str, ConditionalTable],
        value: float,
        bound: float,
        gap: float,
        info: Info,
        tied: Mapping[str, NDArray[np.bool_]],
        reach: Callable[["Policy"], dict[str, Array]],
        risk: float = 0.0,
    ) -> None:
        self._rules = dict(rules)
        self.value, self.bound, self.gap = value, bound, gap
        self.info, self.risk = info, risk
        self._tied, self._reach = dict(tied), reach
        self._reached: dict[str, Array] | None = None

    def __getitem__(self, name: str) -> ConditionalTable:
        """Return the rule of a decision."""
        if name not in self._rules:
            raise UnknownVariable(name, self._rules, "the policy")
        return self._rules[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    def act(self, name: str, /, **sights: State) -> State:
        """Return what to choose for a decision given what it sees; sights that do not matter may be left out."""
        rule = self[name]
        check_known(sights, [*rule.parent_names, *self._unread(name)], f"what {name!r} sees")
        missing = [n for n in rule.parent_names if n not in sights]
        own = {n: s for n, s in sights.items() if n in rule.parent_names}
        if missing:
            rows = self._rows(rule, own)
            if not (rows == rows[0]).all():
                raise InvalidArgument(
                    f"what to do for {name!r} depends on {missing[0]!r}, too; say {missing[0]}=..."
                )
            return rule.variable.states[int(rows[0])]
        return rule.variable.states[int(rule.row(**own).argmax())]

    @property
    def reached(self) -> dict[str, Array]:
        """How probable each row of each rule is under the policy, axes as the rule's parents."""
        if self._reached is None:
            self._reached = self._reach(self)
        return self._reached

    @property
    def unreachable(self) -> dict[str, list[dict[str, State]]]:
        """The rows that do not occur under the policy, by decision: what stands there is no advice."""
        return {
            n: [self._states(n, at) for at in map(tuple, np.argwhere(p <= 0)) if p.ndim]
            for n, p in self.reached.items()
        }

    @property
    def ties(self) -> dict[str, list[dict[str, State]]]:
        """The rows that occur and in which another choice is worth as much, by decision; the first is taken."""
        return {
            n: [self._states(n, tuple(at)) for at in np.argwhere(tied & (self.reached[n] > 0))]
            for n, tied in self._tied.items()
        }

    def to_pandas(self) -> Any:
        """Return a row for each row of each rule: what is seen and chosen, how probable that is, and whether it is a tie."""
        import pandas as pd

        rows = [
            {
                "decision": name,
                **self._states(name, at),
                "choice": rule.variable.states[int(rule.values[at].argmax())],
                "probability": float(self.reached[name][at]),
                "tie": bool(self._tied[name][at]),
            }
            for name, rule in self._rules.items()
            for at in np.ndindex(*(len(p) for p in rule.parents))
        ]
        return pd.DataFrame(rows)

    def plot(self, name: str | None = None, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
        """Draw the rule of a decision (the only one, or the named one) as a table; rows that do not occur are pale."""
        return ports.draw("plot-policy", self, name, ax=ax, title=title)

    def __str__(self) -> str:
        what = "certainty equivalent" if self.risk else "expected utility"
        sure = "exact" if self.info.exact else f"a local optimum, at most {self.gap:.6g} below the best"
        if not self.info.exact and not self.gap:
            sure = f"best for estimated amounts, error {self.info.error:.2g}"
        lines = [f"{what} {self.value:.6g}, {sure}"]
        if np.isfinite(self.bound) and self.bound > self.value + 1e-9 * max(1.0, abs(self.value)):
            lines[0] += f" (perfect recall {self.bound:.6g})"
        for name, rule in self._rules.items():
            lines.append(f"{name}, seeing {', '.join(rule.parent_names) or 'nothing'}")
            header, rows, left_out = self._table(name)
            lines += ["  " + line for line in aligned(header, rows, left=len(header)).splitlines()]
            if left_out:
                lines.append(f"  and {left_out:,} rows more")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = []
        for k, name in enumerate(self._rules):
            header, rows, left_out = self._table(name)
            note = f"and {left_out:,} rows more" if left_out else ""
            title = f"{str(self).splitlines()[0]}: {name}" if k == 0 else name
            parts.append(html_table(header, rows, title=title, note=note))
        return "".join(parts)

    def _table(self, name: str) -> tuple[list[str], list[list[str]], int]:
        """Return header and lines of a rule, without rows that do not occur, and how many are not shown."""
        rule, reached = self._rules[name], self.reached[name]
        header = [*rule.parent_names, name]
        rows: list[list[str]] = []
        left_out = 0
        for at in np.ndindex(*(len(p) for p in rule.parents)):
            if reached[at] <= 0:
                continue
            if len(rows) == ROWS_SHOWN:
                left_out += 1
                continue
            choice = str(rule.variable.states[int(rule.values[at].argmax())])
            rows.append(
                [*map(str, self._states(name, at).values()), choice + " (tie)" * bool(self._tied[name][at])]
            )
        return header, rows, left_out

    def _states(self, name: str, at: Sequence[int]) -> dict[str, State]:
        return {p.name: p.states[int(i)] for p, i in zip(self._rules[name].parents, at, strict=True)}

    def _rows(self, rule: ConditionalTable, own: Mapping[str, State]) -> NDArray[np.int64]:
        at = tuple([p.index(own[p.name]) if p.name in own else slice(None) for p in rule.parents])
        return np.asarray(rule.values[at].argmax(axis=-1)).ravel()

    def _unread(self, name: str) -> list[str]:
        """Return what other rules speak of: under perfect recall all of it may be said, though a rule does not need it."""
        return [n for rule in self._rules.values() for n in rule.names if n != name]

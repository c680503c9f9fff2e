"""One report on an effect: the number, its diagnostics, the refutations, the sensitivity, the graph, and a verdict."""

from dataclasses import dataclass
from typing import Any

from markovia.causal.estimation.adjustment.diagnostics import SMALL
from markovia.causal.estimation.checks.falsification import Falsification, falsify_graph
from markovia.causal.estimation.checks.refutation import SIMULATED, Refutation, refute
from markovia.causal.estimation.checks.sensitivity import Sensitivity, sensitivity
from markovia.causal.estimation.effect_result import Effect, listed
from markovia.errors import MarkoviaError
from markovia.runtime import ports
from markovia.runtime.seeds import Seed
from markovia.runtime.shown import InNotebooks

FRAGILE = 0.01
"""An effect that a confounder of so small a share of both residual variances would explain is in doubt."""


@dataclass(frozen=True)
class Report(InNotebooks):
    """All that was found out about an effect; `print` it, `plot()` draws it.

    `graph` is the test of the graph, or says why there is none.
    """

    effect: Effect
    refutations: tuple[Refutation, ...]
    sensitivity: Sensitivity | None
    graph: Falsification | str

    @property
    def doubts(self) -> list[str]:
        """What speaks against the effect, in a few words each.

        A simulated confounder as strong as the strongest covariate is a scale and no finding: that something strong was
        observed and adjusted for speaks against nothing. It counts where next to nothing would do, see `FRAGILE`.
        """
        found = [
            f"the {r.kind} test failed" for r in self.refutations if not r.passed and r.kind != SIMULATED
        ]
        if self.seen and self.sensitivity is not None and self.sensitivity.robustness < FRAGILE:
            found.append(
                f"a hidden confounder that explains {self.sensitivity.robustness:.1%} of what is left of treatment and "
                "outcome would bring it to zero"
            )
        if self.effect.overlap is not None and not self.effect.overlap.good:
            found.append("overlap is poor")
        if self.effect.balanced is not None and self.effect.balanced.worst[1] >= SMALL:
            found.append("covariates are not balanced")
        if self.effect.first_stage is not None and self.effect.first_stage.weak:
            found.append("the instrument is weak")
        if isinstance(self.graph, Falsification) and self.graph.falsified:
            found.append("the data speak against the graph")
        return found

    @property
    def seen(self) -> bool:
        """Whether the interval leaves out no effect."""
        low, high = self.effect.interval
        return not low <= self.effect.estimate.null <= high

    @property
    def verdict(self) -> str:
        """One sentence, or two where a hidden confounder as strong as an observed one would turn the effect round."""
        seen = "there is an effect" if self.seen else "no effect can be told from chance"
        if self.effect.method == "none":
            return "Verdict: there is no effect, as far as the graph is right."
        if self.doubts:
            return f"Verdict: by these rows {seen}, but in doubt: {listed(self.doubts)}."
        if not self.refutations:
            return f"Verdict: by these rows {seen}, as far as the design's assumption holds; nothing was tried against it."
        turned = self.seen and any(r.kind == SIMULATED and not r.passed for r in self.refutations)
        strong = (
            " A hidden confounder as strong as the strongest observed one would turn it round."
            if turned
            else ""
        )
        return (
            f"Verdict: by these rows {seen}, and nothing that was tried speaks against it, as far as the graph is right."
            f"{strong}"
        )

    def __str__(self) -> str:
        parts = [str(self.effect)]
        if self.refutations:
            parts.append("Attempts to refute it\n" + "\n".join(f"  {r}" for r in self.refutations))
        if self.sensitivity is not None:
            parts.append(
                "Hidden confounding\n" + "\n".join(f"  {line}" for line in str(self.sensitivity).split("\n"))
            )
        parts.append(f"The graph\n  {self.graph}")
        if self.effect.formula is not None:
            parts.append("It rests on\n" + "\n".join(f"  {a}" for a in self.effect.formula.assumptions))
        return "\n\n".join([*parts, self.verdict])

    def plot(self) -> Any:
        """Draw the forest, the balance, the refutations and the contour of hidden confounding; returns an array of axes."""
        return ports.call("plot-effect-report", self)


def report(
    effect: Effect, *, repetitions: int = 20, negative_controls: Any = (), random_state: Seed = 0
) -> Report:
    """Put an effect to all tests that apply."""
    if effect.again is None:
        return Report(effect, (), None, _tested(effect, random_state))
    refutations = refute(
        effect, repetitions=repetitions, negative_controls=negative_controls, random_state=random_state
    )
    by_adjustment = not (effect.instruments or effect.mediators or effect.method == "plug-in")
    doubted = sensitivity(effect) if by_adjustment else None
    return Report(effect, tuple(refutations), doubted, _tested(effect, random_state))


def _tested(effect: Effect, seed: Seed) -> Falsification | str:
    """Test the graph by its independencies, or say why that cannot be done."""
    if effect.graph is None:
        return "not tested: the design stands without one"
    names = effect.graph.nodes
    if unseen := [n for n in names if n not in effect.frame.columns]:
        return f"not tested: the data have no column for {listed(unseen)}"
    try:
        return falsify_graph(effect.frame[names].dropna(), effect.graph, random_state=seed)
    except MarkoviaError as error:  # a class of graphs, or columns that no test takes
        return f"not tested: {error}"

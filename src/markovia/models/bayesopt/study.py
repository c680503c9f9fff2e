"""A search that is asked for points and told values: what is known of a costly function, and where to try next.

First come points of a design; then a process is fitted to all trials, and the point with the highest acquisition is next
(`learning/processes/surrogate.py`, `acquisition.py`). Points that are under way count as if they had given their means, so
batches are spread out. Everything follows from the seed and the trials in their order: a search that was saved and taken up
again goes on as if it had not been interrupted. Cost of a point: a fit, n^3 in the trials, and a few hundred scores.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from markovia.errors import InvalidArgument, Unanswered
from markovia.learning.processes.acquisition import ACQUISITIONS, Acquisition
from markovia.learning.processes.surrogate import KINDS, Surrogate, fitted_surrogate
from markovia.models.bayesopt.proposing import design, is_new, propose
from markovia.models.bayesopt.running import run
from markovia.models.bayesopt.space import Space
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice, check_count, check_number
from markovia.runtime.clock import Clock
from markovia.runtime.keyword_advice import guided
from markovia.runtime.libraries import pd
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.whole_files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DESIGNS = ("sobol", "latin", "random")
"""What `design=` may be."""
STEP_NOISE = 0.3
"""Standard deviation of failures as numbers, plus or minus one: without it a step looks like a rough function."""


@dataclass(frozen=True)
class Trial:
    """A point that was tried.

    Attributes
    ----------
    point, value
        Parameters by name, and the value there; NaN where it failed.
    constraints
        Quantities that must not be above zero.
    error
        Why it failed.
    seconds
        How long it took, where that is known.
    """

    point: dict[str, Any]
    value: float
    constraints: tuple[float, ...] = ()
    error: str | None = None
    seconds: float | None = None

    @property
    def holds(self) -> bool:
        """Whether it gave a value, and all constraints hold."""
        return bool(np.isfinite(self.value)) and all(c <= 0.0 for c in self.constraints)


class Study:
    """A search of a minimum with few trials, by asking and telling.

    Parameters
    ----------
    space
        From names to what they may be: a distribution, `(low, high)`, `(low, high, "log")`, a `range`, a list of choices, or
        a mapping from choices to the parameters that each of them has.
    acquisition
        What makes a point worth trying: "log-ei" (expected improvement), "lcb" (mean less kappa standard deviations), "pi"
        (probability of improvement), "thompson" (the lowest point of a drawn function), "kg" (knowledge gradient).
    kappa
        For "lcb": 0 trusts the mean alone, more explores.
    covariance
        "matern52", "matern32" or "rbf".
    noise
        The standard deviation of the noise of values; 0 for none, None fits it.
    initial, design
        How many points come before the first fit, by default three for each parameter and two more (from 5 to 20), and how
        they are laid out: "sobol", "latin" or "random".
    start
        Points to try first.
    allowed
        A function of a point that says whether it may be tried, where that is known beforehand.
    repeats
        Whether a point may be tried again, which makes sense with noise.
    path
        A file that is written after each trial (JSON); where it exists, the search goes on from there.
    seed
        The same seed and values give the same points.

    Examples
    --------
    >>> study = Study({"x": (-2.0, 2.0)}, noise=0.0, seed=0)
    >>> for _ in range(12):
    ...     point = study.ask()
    ...     study.tell(point, (point["x"] - 1.0) ** 2)
    >>> round(study.best_point["x"], 1), len(study.trials)
    (1.0, 12)
    """

    def __init__(
        self,
        space: Mapping[str, Any],
        *,
        acquisition: Literal["log-ei", "lcb", "pi", "thompson", "kg"] = "log-ei",
        kappa: float = 2.0,
        covariance: Literal["matern52", "matern32", "rbf"] = "matern52",
        noise: float | None = None,
        initial: int | None = None,
        design: Literal["sobol", "latin", "random"] = "sobol",
        start: Sequence[Mapping[str, Any]] = (),
        allowed: Callable[[dict[str, Any]], bool] | None = None,
        repeats: bool = False,
        path: str | PathLike[str] | None = None,
        seed: Seed = None,
    ) -> None:
        self.space = Space(space)
        check_choice("acquisition", acquisition, ACQUISITIONS)
        check_choice("covariance", covariance, KINDS)
        check_choice("design", design, DESIGNS)
        check_number("kappa", kappa)
        check_count("initial", initial, 1, none=True)
        if noise is not None:
            check_number("noise", noise)
        self.acquisition, self.kappa, self.covariance, self.noise = acquisition, kappa, covariance, noise
        self.design, self.allowed, self.repeats = design, allowed, repeats
        self.initial = min(max(5, 3 * len(self.space.dimensions) + 2), 20) if initial is None else initial
        self.path = None if path is None else Path(path)
        self.trials: list[Trial] = []
        self.pending: list[dict[str, Any]] = []
        self.reason = ""
        self.expected_improvement = np.nan
        self._units = np.zeros((0, len(self.space.dimensions)))
        self._first = [self.space.unit(point) for point in start]
        self._numbers: dict[str, Any] = {}
        self._models: tuple[int, list[Surrogate]] | None = None
        self._seed = int(generator(seed).integers(2**63))
        if self.path is not None and self.path.exists():
            self._load(seed)

    # -- asking and telling -------------------------------------------------------------------------------------------

    def ask(self, n: int | None = None) -> Any:
        """Return the next point to try, or a list of n that differ; tell their values in any order.

        Raises
        ------
        InvalidArgument
            Where all points of the space were tried, or none is allowed.
        """
        if n is not None:
            check_count("n", n, 1)
        found: list[dict[str, Any]] = []
        for _ in range(n or 1):
            unit = self._next()
            if unit is None:
                break
            found.append(self.space.point(unit))
            self.pending.append(found[-1])
        if not found:
            whole = np.isfinite(self.space.size) and self.allowed is None
            why = (
                f"all {self.space.size:.0f} points of the space were tried"
                if whole
                else "no allowed point is left"
            )
            raise InvalidArgument(f"{why}; there is nothing to ask for")
        return found if n is not None else found[0]

    def _next(self) -> Array | None:
        """Return the units of the next point; None where there is none."""
        waiting = self._told(self.pending)
        number = len(self.trials) + len(waiting)
        rng = np.random.default_rng([self._seed, number])
        taken = np.concatenate([self._units, waiting])
        for unit in self._first:
            if is_new(unit[None], taken)[0]:
                return unit
        blocked = waiting if self.repeats else taken
        planned = design(self.space, self.design, self.initial, np.random.default_rng([self._seed, 2**32]))
        known = [t for t in self.trials if np.isfinite(t.value)]
        if number < self.initial + len(self._first) or not known:
            for unit in planned[is_new(planned, taken)]:
                if self.allowed is None or self.allowed(self.space.point(unit)):
                    return np.asarray(unit)
            drawn = propose(self.space, None, rng, taken=blocked, best=taken[:0], allowed=self.allowed)
            return None if drawn is None else drawn[0]
        score, best = self._score(waiting, rng)
        found = propose(self.space, score, rng, taken=blocked, best=best, allowed=self.allowed)
        if found is None:
            return None
        if self.acquisition == "log-ei" and score.best is not None:
            self.expected_improvement = float(np.exp(found[1])) * score.process.scale
        return found[0]

    def _told(self, points: Sequence[Mapping[str, Any]]) -> Array:
        """Return the units of points."""
        return np.array([self.space.unit(p) for p in points]).reshape(-1, len(self.space.dimensions))

    def _score(self, waiting: Array, rng: np.random.Generator) -> tuple[Acquisition, Array]:
        """Return the acquisition after all trials, and the units of the best of them."""
        process, *constraints = (model.believing(self.space.seen(waiting)) for model in self._fitted())
        units = self._units[[np.isfinite(t.value) for t in self.trials]]
        mean, _ = self._fitted()[0].moments(self.space.seen(units))
        holds = np.array([t.holds for t in self.trials if np.isfinite(t.value)])
        # with noise the best is the lowest mean, not the luckiest value
        best = float(mean[holds].min()) if holds.any() else None
        order = np.argsort(np.where(holds, mean, mean + 1e6))
        made = Acquisition(
            self.acquisition, process, best, kappa=self.kappa, constraints=constraints, rng=rng,
            choices=self.space.seen(units[order[:50]]),
        )  # fmt: skip
        return made, units[order]

    def tell(
        self,
        point: Mapping[str, Any],
        value: float | None,
        constraints: Sequence[float] = (),
        *,
        error: str | None = None,
        seconds: float | None = None,
    ) -> None:
        """Say what a point gave: a value, NaN or None where it failed, and quantities that must not be above zero.

        The point need not have been asked for.
        """
        unit = self.space.unit(point)
        try:
            number = np.nan if value is None else float(value)
            limits = tuple(float(c) for c in constraints)
        except (TypeError, ValueError):
            raise InvalidArgument(
                f"values and constraints are numbers, not {value!r} and {constraints!r}"
            ) from None
        widths = {len(t.constraints) for t in self.trials if np.isfinite(t.value)}
        if not np.isfinite(number) or not np.isfinite(limits).all():
            error, number = (
                error or f"the value is {value!r}" + (f", constraints {limits}" if limits else ""),
                np.nan,
            )
            limits = ()
        elif widths and len(limits) not in widths:
            raise InvalidArgument(f"there were {max(widths)} constraints before, and now {len(limits)}")
        self.trials.append(Trial(dict(point), number, limits, error, seconds))
        self._units = np.concatenate([self._units, unit[None]])
        for i, other in enumerate(self.pending):
            if not is_new(self.space.unit(other)[None], unit[None])[0]:
                del self.pending[i]
                break
        if self.path is not None:
            self.save(self.path)

    # -- the process --------------------------------------------------------------------------------------------------

    def _fitted(self) -> list[Surrogate]:
        """Return the process of values, and those of constraints and of failures."""
        if self._models is None or self._models[0] != len(self.trials):
            fine = np.array([np.isfinite(t.value) for t in self.trials])
            seen = self.space.seen(self._units)
            good = [t for t in self.trials if np.isfinite(t.value)]
            limits = np.array([t.constraints for t in good]).T
            tasks = [(seen[fine], np.array([t.value for t in good]), self.noise)]
            tasks += [(seen[fine], limit, None) for limit in limits]
            if not fine.all():  # a process of failures: above zero where they are likely
                tasks.append((seen, np.where(fine, -1.0, 1.0), STEP_NOISE))
            models = []
            for i, (inputs, targets, noise) in enumerate(tasks):
                name = str(i) if i <= len(limits) else "failures"
                start = self._numbers.get(name)
                models.append(
                    fitted_surrogate(inputs, targets, kind=self.covariance, noise=noise, start=start)
                )
                self._numbers[name] = {
                    n: np.asarray(h.value).tolist() for n, h in models[-1].covariance.free().items()
                }
            self._models = len(self.trials), models
        return self._models[1]

    def predict(self, points: Sequence[Mapping[str, Any]], *, fill: bool = False) -> tuple[Array, Array]:
        """Return the means and standard deviations of the function at points, by the process fitted to the trials.

        With `fill` parameters that a point lacks are in the middle of their scales.
        """
        if not any(np.isfinite(t.value) for t in self.trials):
            raise Unanswered("nothing is known yet: tell a value first")
        model = self._fitted()[0]
        mean, sd = model.moments(self.space.seen(np.array([self.space.unit(p, fill=fill) for p in points])))
        return model.unscaled(mean), model.scale * sd

    # -- what was found ---------------------------------------------------------------------------------------------

    @property
    def best(self) -> Trial:
        """The trial with the lowest value, of those where constraints hold; the first of several.

        Raises
        ------
        Unanswered
            Where there is none.
        """
        good = [t for t in self.trials if t.holds]
        if not good:
            raise Unanswered("no trial gave a value where all constraints hold")
        return min(good, key=lambda t: t.value)

    @property
    def best_point(self) -> dict[str, Any]:
        """The point with the lowest value."""
        return self.best.point

    @property
    def best_value(self) -> float:
        """The lowest value."""
        return self.best.value

    @property
    def expected_point(self) -> dict[str, Any]:
        """The point that was tried with the lowest mean: what to trust where values are noisy."""
        good = [t.point for t in self.trials if t.holds] or [self.best_point]
        return good[int(np.argmin(self.predict(good)[0]))]

    def to_pandas(self) -> "pd.DataFrame":
        """Return the trials, one a row: parameters (missing where not active), value, best so far, error, seconds."""
        values = np.array([t.value if t.holds else np.inf for t in self.trials])
        best = np.minimum.accumulate(values) if len(values) else values
        names = dict.fromkeys(d.name for d in self.space.dimensions)
        columns: dict[str, Any] = {name: [t.point.get(name) for t in self.trials] for name in names}
        columns |= {
            "value": [t.value for t in self.trials],
            "best": np.where(np.isfinite(best), best, np.nan),
        }
        for i in range(max((len(t.constraints) for t in self.trials), default=0)):
            columns[f"constraint{i}"] = [t.constraints[i] if t.constraints else np.nan for t in self.trials]
        columns |= {"error": [t.error for t in self.trials], "seconds": [t.seconds for t in self.trials]}
        return pd.DataFrame(columns)

    def plot(
        self, kind: Literal["convergence", "slices", "surrogate"] = "convergence", **options: Any
    ) -> "Axes":
        """Draw the lowest value by trial, slices through the process, or the process over two parameters: `plot_study`."""
        return ports.draw("plot-study", self, kind, **options)

    def __repr__(self) -> str:
        best = f"; best {self.best_value:.6g}" if any(t.holds for t in self.trials) else ""
        return f"<Study of {len(self.space.dimensions)} parameters: {len(self.trials)} trials{best}>"

    # -- files ------------------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write the trials and all that the next points depend on to a file (JSON)."""
        trials = [[u.tolist(), t.value if np.isfinite(t.value) else None, list(t.constraints), t.error, t.seconds]
                  for u, t in zip(self._units, self.trials, strict=True)]  # fmt: skip
        state = {
            "study": 1,
            "space": self.space.described(),
            "seed": self._seed,
            "numbers": self._numbers,
            "trials": trials,
        }
        write_whole(Path(path), json.dumps(state).encode())

    def _load(self, seed: Seed) -> None:
        """Take up the search of a file."""
        assert self.path is not None
        try:
            state = json.loads(self.path.read_bytes())
            space, own, numbers, trials = (state[key] for key in ("space", "seed", "numbers", "trials"))
        except (ValueError, KeyError, TypeError):
            raise InvalidArgument(
                f"{self.path} is no file of a study; move it away, or give another path"
            ) from None
        if space != self.space.described():
            raise InvalidArgument(
                f"the study in {self.path} has another space; give another path, or that space"
            )
        if seed is not None and own != self._seed:
            raise InvalidArgument(
                f"the study in {self.path} has another seed; leave seed= out to go on with it"
            )
        self._seed, self._numbers = own, numbers
        self._units = np.array([t[0] for t in trials]).reshape(-1, len(self.space.dimensions))
        for unit, (_, value, limits, error, seconds) in zip(self._units, trials, strict=True):
            number = np.nan if value is None else value
            self.trials.append(Trial(self.space.point(unit), number, tuple(limits), error, seconds))

    # -- running ----------------------------------------------------------------------------------------------------

    def run(
        self,
        function: Callable[[dict[str, Any]], Any],
        calls: int,
        *,
        n_jobs: int = 1,
        time_limit: float | None = None,
        target: float | None = None,
        patience: int | None = None,
        tol: float | None = None,
        progress: bool | None = None,
    ) -> "Study":
        """Try points until there are so many trials, those of a file included; see `minimize`."""
        check_count("calls", calls, 1)
        check_count("patience", patience, 1, none=True)
        with Clock(time_limit, progress, total=calls, unit="trial", name="study") as clock:
            self.reason = run(self, function, calls, n_jobs, clock, target, patience, tol)
        return self


def minimize(
    function: Callable[[dict[str, Any]], Any],
    space: Any,
    calls: int,
    *,
    n_jobs: int = 1,
    time_limit: float | None = None,
    target: float | None = None,
    patience: int | None = None,
    tol: float | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Study:
    """Search the minimum of a costly function with few trials.

    Parameters
    ----------
    function
        From a point, a mapping from names to values, to a number, or to a number and a list of quantities that must not be
        above zero. Where it raises or returns NaN, the trial is recorded, and the search goes on.
    space
        From names to what they may be, as for `Study`.
    calls
        Trials at most, those of `path` included.
    n_jobs
        Processes that try points at once (joblib's); -1 for one a core. With more than one, the order of answers, and so the
        search, may differ from run to run.
    time_limit
        Seconds.
    target
        A value to stop at.
    patience
        Trials in a row without a lower value after which to stop.
    tol
        An expected improvement, in the unit of values, below which to stop; for "log-ei".
    progress
        Whether to show a bar; None shows one on a terminal once it takes long.
    options
        Settings of `Study`: `noise`, `acquisition`, `start`, `path`, `seed` and others.

    Returns
    -------
    Study
        With `best_point`, `best_value`, `to_pandas()`, `plot()`, and `reason`, why it ended: "calls", "time limit",
        "target", "patience", "tolerance", "interrupted" (Ctrl-C keeps all trials) or "all points tried".

    Examples
    --------
    >>> space = {"x": (-3.0, 3.0), "kind": ["a", "b"]}
    >>> found = minimize(lambda p: (p["x"] - 1) ** 2 + (p["kind"] == "b"), space, 15, noise=0.0, seed=0)
    >>> found.best_point["kind"], round(found.best_point["x"], 1), found.reason
    ('a', 1.0, 'calls')
    """
    return guided(Study)(space, **options).run(
        function,
        calls,
        n_jobs=n_jobs,
        time_limit=time_limit,
        target=target,
        patience=patience,
        tol=tol,
        progress=progress,
    )

"""The loop of a search: points are tried here or by workers, as each comes back the next one goes out."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.runtime.clock import Clock, now
from markovia.runtime.source_text import brief

if TYPE_CHECKING:
    from markovia.models.bayesopt.study import Study


def run(
    study: "Study",
    function: Callable[[dict[str, Any]], Any],
    calls: int,
    n_jobs: int,
    clock: Clock,
    target: float | None,
    patience: int | None,
    tol: float | None,
) -> str:
    """Try points until one of the ends; return which."""
    study.pending.clear()  # points of a run that was broken off are not under way
    with _workers(n_jobs) as (several, submit, first_done):
        under_way: dict[Any, dict[str, Any]] = {}
        reason = ""
        try:
            while True:
                while not reason and len(under_way) < several:
                    reason = _ended(study, calls - len(under_way), clock, target, patience)
                    if reason:
                        break
                    try:
                        point = study.ask()
                    except InvalidArgument:
                        if not np.isfinite(study.space.size) and study.allowed is None:
                            raise
                        reason = "all points tried"
                        break
                    if tol is not None and study.expected_improvement < tol:
                        reason = "tolerance"
                        break
                    under_way[submit(attempted, function, point)] = point
                if not under_way:
                    return reason
                done = first_done(list(under_way))
                point = under_way.pop(done)
                value, limits, error, seconds = done.result()
                study.tell(point, value, limits, error=error, seconds=seconds)
                clock.advance(note=f"{study.best_value:.6g}" if any(t.holds for t in study.trials) else "")
        except KeyboardInterrupt:
            return "interrupted"
        finally:
            study.pending.clear()


def _ended(study: "Study", calls: int, clock: Clock, target: float | None, patience: int | None) -> str:
    if len(study.trials) >= calls:
        return "calls"
    if clock.over():
        return str(clock.reason)
    good = [i for i, trial in enumerate(study.trials) if trial.holds]
    if not good:
        return ""
    if target is not None and study.best_value <= target:
        return "target"
    last = min(good, key=lambda i: study.trials[i].value)
    return "patience" if patience is not None and len(study.trials) - 1 - last >= patience else ""


def attempted(
    function: Callable[[dict[str, Any]], Any], point: dict[str, Any]
) -> tuple[Any, tuple[float, ...], str | None, float]:
    """Return the value at a point, its constraints, why it failed, and the seconds; anything but Ctrl-C is caught."""
    began = now()
    try:
        found = function(dict(point))
        value, limits = found if isinstance(found, tuple) else (found, ())
        limits = tuple(float(c) for c in np.ravel(np.asarray(limits, dtype=np.float64)))
        return float(value), limits, None, now() - began
    except Exception as problem:
        return np.nan, (), brief(f"{type(problem).__name__}: {problem}", 300), now() - began


class _Done:
    """A call that was made at once, with the face of a future."""

    def __init__(self, found: Any) -> None:
        self.found = found

    def result(self) -> Any:
        return self.found


@contextmanager
def _workers(n_jobs: int) -> Iterator[tuple[int, Callable[..., Any], Callable[[list[Any]], Any]]]:
    """Give how many points are tried at once, what starts a call, and what waits for the first that ends."""
    several = n_jobs
    if n_jobs != 1:
        from joblib import effective_n_jobs

        several = effective_n_jobs(n_jobs)
    if several == 1:
        yield 1, lambda f, *args: _Done(f(*args)), lambda calls: calls[0]
        return
    from concurrent.futures import FIRST_COMPLETED, wait

    from joblib.externals.loky import get_reusable_executor

    pool = get_reusable_executor(several)
    yield several, pool.submit, lambda calls: next(iter(wait(calls, return_when=FIRST_COMPLETED).done))

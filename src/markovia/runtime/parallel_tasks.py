"""Independent pieces of work in several processes, in order, with a progress bar; Ctrl-C keeps what is done.

Restarts and resamplings use it. Joblib does the work; with one job nothing leaves this process.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from markovia.runtime.progress import progress_bar


def task_results(
    task: Callable[..., Any],
    arguments: Sequence[Any],
    *,
    n_jobs: int | None = None,
    progress: bool | None = None,
    unit: str = "run",
    least: int = 1,
    when_interrupted: Callable[[], None] | None = None,
) -> Iterator[Any]:
    """Yield `task(argument)` for each argument, in order.

    Parameters
    ----------
    task, arguments
        The work; both can be pickled where there is more than one job.
    n_jobs
        Processes, as joblib understands it.
    progress, unit
        For the bar.
    least
        Ctrl-C ends the results early where so many are there already; before that it is raised.
    when_interrupted
        Called when they end early.

    Examples
    --------
    >>> list(task_results(abs, [-1, 2], progress=False))
    [1, 2]
    """
    from joblib import Parallel, delayed

    done = 0
    with progress_bar(progress, len(arguments), unit=unit) as advance:
        try:
            for found in Parallel(n_jobs=n_jobs, return_as="generator")(delayed(task)(a) for a in arguments):
                done += 1
                advance()
                yield found
        except KeyboardInterrupt:
            if done < least:
                raise
            if when_interrupted is not None:
                when_interrupted()

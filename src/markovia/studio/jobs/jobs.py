"""Long work of the studio: every job in a process of its own, with its progress, and a result or a sentence at the end.

A process is a new Python that shares nothing with the server but a pipe each way; see `worker.py`. It says how far it is,
what it has found so far, and how it ended, a line of JSON each. Cancelling kills it; one that dies (killed, out of memory)
becomes a failed job, and the server lives on. A process whose server is gone ends itself.
"""

import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from markovia.errors import InvalidArgument, MarkoviaError
from markovia.studio.documents.endpoints import Busy, NotFound

AT_ONCE = 2
"""How many jobs run at the same time."""
KEPT = 50
"""How many jobs that are over are remembered."""
PATIENCE = 2.0
"""Seconds that a cancelled process has to end before it is killed."""


class Job(msgspec.Struct, kw_only=True):
    """What the page sees of a job; while it runs, `result` is what was found so far."""

    id: str
    kind: str
    state: str = "running"
    progress: float | None = None
    note: str = "starting"
    result: Any = None
    warnings: list[str] = []
    file: str | None = None
    seconds: float = 0.0


class _Running(msgspec.Struct):
    job: Job
    process: Any
    folder: Path
    began: float
    version: int = 0


class Jobs:
    """The jobs of a server.

    Parameters
    ----------
    at_once
        How many may run at the same time; one more is refused with `Busy`.
    """

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self.at_once = at_once
        self._all: dict[str, _Running] = {}
        self._changed = threading.Condition()
        self._folder = TemporaryDirectory(prefix="markovia-jobs-")

    def start(
        self, kind: str, home: str, arguments: dict[str, Any], finish: Callable[[Any], Any] | None = None
    ) -> Job:
        """Begin a job and return it.

        Parameters
        ----------
        kind
            What the page calls it.
        home
            `module:function` of the work; see `worker.Work`.
        arguments
            What it gets besides the report and a folder for files; values that JSON can hold.
        finish
            Applied to the result here in the server, for results that become documents.
        """
        with self._changed:
            if sum(r.job.state == "running" for r in self._all.values()) >= self.at_once:
                raise Busy(f"{self.at_once} jobs are running, and no more may; wait for one, or cancel it")
            name = token_hex(8)
            folder = Path(self._folder.name) / name
            folder.mkdir()
            order = {"path": sys.path, "home": home, "folder": str(folder), "arguments": arguments}
            process = subprocess.Popen(
                [sys.executable, "-m", "markovia.studio.jobs.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            running = _Running(Job(id=name, kind=kind), process, folder, time.monotonic())
            self._all[name] = running
            self._forget()
        threading.Thread(target=self._follow, args=(running, order, finish), daemon=True).start()
        return self.get(name)

    def get(self, name: str) -> Job:
        """Return a job as it is now."""
        return self.look(name)[1]

    def look(self, name: str) -> tuple[int, Job]:
        """Return how often a job has changed, and the job as it is now."""
        with self._changed:
            if name not in self._all:
                raise NotFound(f"there is no job {name!r}; it may have been forgotten")
            running = self._all[name]
            job = msgspec.structs.replace(running.job)
            if job.state == "running":
                job.seconds = time.monotonic() - running.began
            return running.version, job

    def all(self) -> list[Job]:
        """Return the jobs, the oldest first."""
        return [self.get(name) for name in list(self._all)]

    def wait(self, name: str, timeout: float | None = None) -> Job:
        """Return a job once it is over, or as it is after so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self.look(name)[1].state != "running", timeout)
        return self.get(name)

    def cancel(self, name: str) -> Job:
        """End a job; one that is over stays as it is."""
        _, job = self.look(name)
        running = self._all[name]
        if job.state == "running" and self._over(running, "cancelled", "cancelled"):
            running.process.terminate()
            try:
                running.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                running.process.kill()
        return self.get(name)

    def file(self, name: str) -> Path:
        """Return the file that a job has made."""
        _, job = self.look(name)
        if job.file is None:
            raise InvalidArgument(f"the job has no file; it is {job.state}")
        return self._all[name].folder / job.file

    def close(self) -> None:
        """Cancel all jobs and remove their files."""
        for name in list(self._all):
            self.cancel(name)
        self._folder.cleanup()

    def _follow(self, running: _Running, order: dict[str, Any], finish: Callable[[Any], Any] | None) -> None:
        """Give a process its order, and take what it says until it has ended."""
        process, ended = running.process, False
        with suppress(OSError):
            process.stdin.write(msgspec.json.encode(order) + b"\n")
            process.stdin.flush()
        for line in process.stdout:
            kind, *what = msgspec.json.decode(line)
            if kind == "progress":
                self._change(running, progress=what[0], note=what[1])
            elif kind == "so far":
                self._change(running, result=what[0])
            else:
                ended = True
                self._end(running, finish, kind, *what)
        process.wait()
        with suppress(OSError):
            process.stdin.close()
        process.stdout.close()
        if not ended:
            self._over(running, "failed", _death(process.returncode))

    def _end(self, running: _Running, finish: Callable[[Any], Any] | None, kind: str, *what: Any) -> None:
        if kind == "failed":
            self._over(running, "failed", what[0], warnings=what[1])
            return
        result, told, file = what
        try:
            result = finish(result) if finish is not None else result
        except MarkoviaError as error:
            self._over(running, "failed", str(error), warnings=told)
        else:
            self._over(running, "done", "done", result=result, warnings=told, file=file, progress=1.0)

    def _over(self, running: _Running, state: str, note: str, **more: Any) -> bool:
        """End a job in some state, unless it is over already."""
        with self._changed:
            if running.job.state != "running":
                return False
            self._change(running, state=state, note=note, seconds=time.monotonic() - running.began, **more)
            return True

    def _change(self, running: _Running, **what: Any) -> None:
        with self._changed:
            if running.job.state == "running":
                running.job = msgspec.structs.replace(running.job, **what)
                running.version += 1
                self._changed.notify_all()

    def _forget(self) -> None:
        over = [name for name, r in self._all.items() if r.job.state != "running"]
        for name in over[: max(0, len(over) - KEPT)]:
            shutil.rmtree(self._all.pop(name).folder, ignore_errors=True)


def _death(code: int | None) -> str:
    """Say how a process ended that said nothing."""
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        why = ", perhaps because memory ran out" if name == "SIGKILL" else ""
        return f"the process of this job was ended by {name}{why}; nothing else is lost"
    return f"the process of this job ended by itself (exit code {code}); nothing else is lost"

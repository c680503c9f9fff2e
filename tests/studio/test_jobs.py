"""Jobs run in processes of their own: progress, results, cancel, death, limits."""

import os
import signal
import subprocess
import sys
import time

import pytest

from markovia.errors import InvalidArgument
from markovia.studio.documents.endpoints import Busy, NotFound
from markovia.studio.jobs.jobs import Jobs


@pytest.fixture
def jobs():
    made = Jobs(at_once=2)
    yield made
    made.close()


def seen_until(jobs, name, condition, seconds=120.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition(job := jobs.get(name)):
            return job
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s: {jobs.get(name)}")


def test_a_job_says_how_far_it_is_and_then_its_result(jobs):
    job = jobs.start("count", "job_examples:count", {"to": 20, "pause": 0.05})
    assert job.state == "running"
    half = seen_until(jobs, job.id, lambda j: j.progress is not None and j.progress >= 0.4)
    assert half.note.endswith(f"at {round(half.progress * 20) - 1}")
    assert f"{round(half.progress * 20)} of 20 steps" in half.note
    done = jobs.wait(job.id, 120)
    assert (done.state, done.progress, done.result["counted"]) == ("done", 1.0, 20)
    assert done.result["process"] != os.getpid()
    assert jobs.get(job.id).seconds == done.seconds > 1.0


def test_what_was_found_so_far_is_shown_and_cancel_ends_the_process(jobs):
    job = jobs.start("show", "job_examples:show", {})
    assert seen_until(jobs, job.id, lambda j: j.result is not None).result == {"draws": [1, 2]}
    process = jobs._all[job.id].process
    cancelled = jobs.cancel(job.id)
    assert cancelled.state == "cancelled"
    assert process.wait(60) == -signal.SIGTERM
    time.sleep(0.1)
    assert jobs.get(job.id).state == "cancelled"


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("sentence", "the level is between 0 and 1, not 3"),
        ("killed", "SIGKILL, perhaps because memory ran out; nothing else is lost"),
        ("exit", "exit code 7"),
        ("bug", "ZeroDivisionError: a bug"),
    ],
)
def test_a_job_that_goes_wrong_is_failed_with_a_sentence(jobs, how, sentence):
    job = jobs.wait(jobs.start("fail", "job_examples:fail", {"how": how}).id, 120)
    assert job.state == "failed"
    assert sentence in job.note


def test_a_worker_killed_from_outside_fails_its_job_and_no_other(jobs):
    one = jobs.start("count", "job_examples:count", {"to": 1000, "pause": 0.05})
    two = jobs.start("count", "job_examples:count", {"to": 10, "pause": 0.02})
    seen_until(jobs, one.id, lambda j: j.progress)
    os.kill(jobs._all[one.id].process.pid, signal.SIGKILL)
    assert jobs.wait(one.id, 120).state == "failed"
    assert jobs.wait(two.id, 120).state == "done"


def test_more_jobs_than_may_run_are_refused_until_one_ends(jobs):
    running = [jobs.start("show", "job_examples:show", {}) for _ in range(2)]
    with pytest.raises(Busy, match="2 jobs are running"):
        jobs.start("show", "job_examples:show", {})
    jobs.cancel(running[0].id)
    assert jobs.start("show", "job_examples:show", {}).state == "running"


def test_files_warnings_and_results_that_become_something_else(jobs):
    job = jobs.wait(jobs.start("file", "job_examples:write_file", {"text": "a,b\n"}).id, 120)
    assert jobs.file(job.id).read_text() == "a,b\n"
    job = jobs.wait(jobs.start("warn", "job_examples:warn", {}).id, 120)
    assert job.warnings == ["it did not settle"]
    with pytest.raises(InvalidArgument, match="no file"):
        jobs.file(job.id)
    with pytest.raises(NotFound, match="no job 'x'"):
        jobs.get("x")


def test_a_result_is_finished_in_the_server(jobs):
    def refuse(result):
        raise InvalidArgument(f"not {result['counted']}")

    made = jobs.start("count", "job_examples:count", {"to": 2}, lambda r: {"model": r["counted"] + 1})
    assert jobs.wait(made.id, 120).result == {"model": 3}
    refused = jobs.wait(jobs.start("count", "job_examples:count", {"to": 2}, refuse).id, 120)
    assert (refused.state, refused.note) == ("failed", "not 2")


def test_a_job_ends_with_its_server():
    program = (
        f"import sys; sys.path[:0] = {[p for p in sys.path if p]!r}\n"
        "import time\nfrom markovia.studio.jobs.jobs import Jobs\n"
        "if __name__ == '__main__':\n"
        "    jobs = Jobs()\n    job = jobs.start('show', 'job_examples:show', {})\n"
        "    while jobs.get(job.id).result is None: time.sleep(0.02)\n"
        "    print(jobs._all[job.id].process.pid, flush=True)\n    time.sleep(60)\n"
    )
    server = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    worker = int(server.stdout.readline())
    server.kill()
    server.wait()
    server.stdout.close()
    end = time.monotonic() + 50  # the job itself ends after sixty
    while alive(worker) and time.monotonic() < end:
        time.sleep(0.05)
    assert not alive(worker)


def alive(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False

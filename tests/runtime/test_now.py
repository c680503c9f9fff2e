"""Time stands still while code is compiled or loaded."""

import os
import threading
import time

import pytest

from markovia.runtime import clock
from markovia.runtime.clock import Stopwatch, go_on, now, stand_still, standing_still


@pytest.fixture
def pass_time(monkeypatch):
    """Put hands of a watch in place of the time of the machine, and return what moves them on."""
    hands = [100.0]
    monkeypatch.setattr(clock, "perf_counter", lambda: hands[0])

    def move(seconds):
        hands[0] += seconds

    return move


def test_waiting_takes_no_time_and_the_rest_does(pass_time):
    start = now()
    with standing_still():
        pass_time(1.0)
        with standing_still():  # as one kernel compiles another
            pass_time(1.0)
        pass_time(1.0)
        assert now() == start
    pass_time(0.5)
    assert now() - start == pytest.approx(0.5)


def test_a_stopwatch_tells_work_from_compiling_even_while_the_clock_stands(pass_time):
    with standing_still():
        pass_time(7.0)  # before it: not its business
    watch = Stopwatch()
    pass_time(0.5)
    with standing_still():
        pass_time(2.0)
        assert watch.compile_seconds == pytest.approx(2.0)
    pass_time(0.25)
    assert (watch.seconds, watch.compile_seconds) == (pytest.approx(0.75), pytest.approx(2.0))


def test_the_clock_never_runs_backwards_while_threads_wait():
    stop = threading.Event()

    def waits():
        while not stop.is_set():
            stand_still()
            time.sleep(0.001)
            go_on()

    threads = [threading.Thread(target=waits) for _ in range(3)]
    for thread in threads:
        thread.start()
    seen = [now() for _ in range(2000)]
    stop.set()
    for thread in threads:
        thread.join()
    assert seen == sorted(seen)


def test_the_end_of_a_stop_that_began_unheard_stops_nothing(pass_time):
    go_on()
    start = now()
    pass_time(0.5)
    assert now() - start == pytest.approx(0.5)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_does_not_wait_for_threads_it_has_not(pass_time):
    with standing_still():
        child = os.fork()
        if child == 0:
            start = now()
            pass_time(0.5)
            os._exit(0 if now() - start >= 0.4 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_compiling_stops_the_clock():
    import numpy as np

    from markovia.kernels.kernel import inner

    def plus(x):
        return x + 1.0

    def caller(x):
        return made(x) * 2.0

    from numba import njit

    made = inner(plus)
    began, start = time.process_time(), now()  # tests read processor time off the clock (conftest.py)
    assert njit(caller)(np.float64(1.0)) == 4.0
    assert now() - start < 0.5 * (time.process_time() - began)

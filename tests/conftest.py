"""Shared test settings: no deadline for property tests, the same examples each time, Ctrl-C as in a terminal."""

import gc
import json
import os
import signal
import time
from collections import defaultdict
from collections.abc import Generator, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

# samplers in tests run for a second and compile for ten: machine code of the plainest kind is there sooner, in two thirds of
# the time with the older emitter of loops, which a version that did not know it would refuse
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    + version("jaxlib").startswith("0.10.") * " --xla_cpu_use_fusion_emitters=false",
)
# machine code of samplers is kept in the checkout, not in the user's cache folder
os.environ.setdefault("MARKOVIA_CACHE", str(Path(__file__).parents[1] / ".cache"))
if os.environ.get("PYTEST_XDIST_WORKER"):
    # workers share the processors, where threads of linear algebra would wait for each other; NumPy reads this once
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import matplotlib as mpl
import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

from markovia.runtime import clock
from processor_times import SAMPLERS, Meter, merged

mpl.use("Agg")
# collecting and tracing make millions of objects that stay, and need not be looked through every few hundred
gc.set_threshold(50_000, 20, 20)
EXAMPLES = 5
"""How many examples a property is tried on by `make test`; `make test-all` tries as many as it says, others each time."""
SEEDS = 8
"""On how many of its random models (the values of its parameter `seed`) `make test` tries a test; the others are slow."""
settings.register_profile("markovia", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile("markovia")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Say where processor times go; `make test` reads them."""
    parser.addoption(
        "--processor-times", metavar="FILE", help="write what each test took to this file (JSON)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """A background job (`nohup make test`) starts with Ctrl-C ignored; the tests that press it need Python's handler."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # time limits are kept in processor time, which does not pass while other programs have the machine
    clock.perf_counter = time.process_time  # type: ignore[attr-defined]
    if config.getoption("--processor-times"):
        config.pluginmanager.register(ProcessorTimes(config))


class ProcessorTimes:
    """Measures tests in the workers, collects their reports in the process that started them, and writes them there."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.meter = Meter()
        self.reports: list[dict[str, Any]] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.meter.start(item.location[0])
        result = yield
        self.meter.stop(item.nodeid)
        return result

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        if hasattr(node, "workeroutput"):  # not of one that has crashed
            self.reports.append(node.workeroutput["processor_times"])

    def pytest_sessionfinish(self) -> None:
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["processor_times"] = self.meter.report()

    def pytest_unconfigure(self) -> None:
        if not hasattr(self.config, "workeroutput"):
            place = Path(self.config.getoption("--processor-times"))
            place.parent.mkdir(exist_ok=True)
            own = self.meter.report()
            if self.reports:  # workers are children, and have counted themselves
                own["spent"] = time.process_time()
            place.write_text(json.dumps(merged([*self.reports, own])), "utf-8")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[Any], list[Any]]:
    """Look for examples in the library alone: of what is below `tests/`, no docstring has any."""
    found = yield
    return [one for one in found if not isinstance(one, DoctestModule)]


@pytest.hookimpl(tryfirst=True)  # before the slow ones are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark examples and random models that are slow, and try properties on few examples, unless all tests are run."""
    tried: defaultdict[str, list[str]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.DoctestItem) and not SAMPLERS.isdisjoint(item.name.split(".")):
            item.add_marker(pytest.mark.slow)
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        if "seed" in parameters:
            seeds, seed = tried[item.nodeid.partition("[")[0]], repr(parameters["seed"])
            if seed not in seeds:
                seeds.append(seed)
            if seeds.index(seed) >= SEEDS:
                item.add_marker(pytest.mark.slow)
    if settings.get_current_profile_name() != "markovia":
        return
    for item in items:
        test: Any = getattr(item, "obj", None)
        test = getattr(test, "__func__", test)
        said = getattr(test, "_hypothesis_internal_use_settings", None)
        if said is not None and said.max_examples > EXAMPLES:
            test._hypothesis_internal_use_settings = settings(said, max_examples=EXAMPLES)


def pytest_collection_finish() -> None:
    """Fourteen thousand tests stay to the end: no search for garbage need walk through them again."""
    gc.collect()
    gc.freeze()

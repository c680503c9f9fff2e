"""The budget of the tests: families by folder, seconds of one machine, and a sentence for what is overdrawn."""

import json

import pytest

import markovia as mk
import processor_times
from processor_times import (
    ALL,
    FAMILY,
    MARGIN,
    PROBE,
    SAMPLERS,
    Meter,
    complaint,
    family,
    main,
    merged,
    slowness,
)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("tests/models/temporal/test_hmm.py", "models/temporal"),
        ("src/markovia/models/temporal/hidden_states/hmm.py", "models/temporal"),
        ("tests/io/test_io_bif.py", "io"),
        ("src/markovia/io/native/native_json.py", "io/native"),
        ("tests/test_docs.py", "the whole"),
        ("src/markovia/errors.py", "the whole"),
    ],
)
def test_a_family_is_a_folder_of_the_library_with_its_tests(file, name):
    assert family(file) == name


def report(probes=(PROBE,), **seconds):
    tests = {f"tests/{name}/test_it.py::test_{name}": value for name, value in seconds.items()}
    return {"spent": sum(seconds.values()), "tests": tests, "probes": list(probes)}


def test_a_sum_over_the_budget_names_the_families_over_a_minute_and_their_longest_tests():
    assert complaint(report(io=FAMILY + 5.0, cli=1.0)) is None
    over = {**report(io=FAMILY + 5.0, cli=1.0), "spent": MARGIN * ALL + 1.0}  # collection counts too
    assert complaint(over) == (
        f"all tests take {MARGIN * ALL + 1.0:.0f} s of {ALL:.0f}; "
        "over a minute are io 65 s (tests/io/test_it.py::test_io 65.0 s)"
    )
    assert complaint(over | report(cli=1.0) | {"spent": 2.0 * ALL}).endswith(
        ": tests/cli/test_it.py::test_cli 1.0 s"
    )


def test_a_slower_machine_has_its_seconds_counted_as_fewer():
    probes = [2.0 * PROBE] * 3 + [50.0 * PROBE]  # one of them was disturbed
    assert slowness(probes) == pytest.approx(2.0)
    assert complaint(report(probes, io=2.0 * MARGIN * ALL - 1.0)) is None
    assert complaint(report(probes, io=2.0 * MARGIN * ALL + 3.0))


def test_a_meter_counts_what_is_spent_on_a_test_and_not_what_is_waited(monkeypatch):
    hands = iter([1.0, 3.5, 3.5, 4.0, 9.0])
    monkeypatch.setattr(processor_times, "spent", lambda: next(hands))
    meter = Meter()
    for test in ("one", "two"):
        meter.start("tests/io/test_it.py")
        meter.stop(test)
    own = meter.report()
    assert own["tests"] == {"one": 2.5, "two": 0.5}
    assert len(own["probes"]) == 1
    assert merged([own, report(cli=2.0)])["spent"] == 11.0


def test_the_script_prints_families_and_fails_where_the_sum_is_overdrawn(tmp_path, capsys):
    file = tmp_path / "times.json"
    file.write_text(json.dumps(report(io=2.0 * ALL, cli=2.0)))
    assert main(str(file)) == 1
    printed = capsys.readouterr()
    assert "1920.0      1 tests  io  (over a minute)" in printed.out
    assert printed.err.startswith("over the budget: all tests take 1922 s")
    file.write_text(json.dumps(report(io=1.0)))
    assert main(str(file)) == 0
    assert "over a minute" not in capsys.readouterr().out


def test_a_faster_machine_gives_no_smaller_budget():
    assert slowness([0.5 * PROBE] * 3) == 1.0


def test_the_classes_whose_examples_are_left_to_all_tests_are_there():
    places = (mk.engines, mk, mk.deep, mk.networks)
    assert all(any(hasattr(place, name) for place in places) for name in SAMPLERS)

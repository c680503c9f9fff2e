"""The program that compares five models of rainy days, on a few months."""

import importlib.util

import pytest

from places import PROJECT

EXAMPLE = PROJECT / "examples" / "rain.py"


@pytest.fixture(scope="module")
def rain():
    pytest.importorskip("matplotlib")
    specification = importlib.util.spec_from_file_location("example_rain", EXAMPLE)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_months_come_from_the_chain_with_the_printed_numbers(rain):
    weather = rain.weather()
    assert weather.log_partition() == pytest.approx(35.6924, abs=1e-4)
    assert weather.query("day1")["rain"] == pytest.approx(0.4338, abs=5e-5)
    assert weather.query("day14")["rain"] == pytest.approx(0.4079, abs=5e-5)


@pytest.mark.slow
def test_the_models_have_the_parameters_that_they_should_and_the_chain_wins_on_new_months(rain, capsys):
    rain.compare(120)
    lines = capsys.readouterr().out.splitlines()[2:]
    found = {line[:28].strip(): line[28:].split() for line in lines}
    assert [int(row[0]) for row in found.values()] == [1, 28, 289, 3, 39, 2]
    fitted = {name: float(row[1]) for name, row in found.items()}
    new = {name: float(row[2]) for name, row in found.items()}
    assert fitted["mixture of Bernoullis"] < fitted["a Bernoulli for each day"]
    assert fitted["a Bernoulli for each day"] < fitted["one Bernoulli for all days"]
    assert fitted["mixture of Markov chains"] <= fitted["Markov chain"]
    del new["the truth"]
    assert min(new, key=new.get) == "Markov chain"

"""One studio for all tests of the page, and a window of it for each."""

import pytest

import markovia as mk
from studio_page import choose, chromium, opened, studio


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Return the folder of the studio, with models in it."""
    place = tmp_path_factory.mktemp("models")
    river = mk.BayesianNetwork()
    river.add("season", states=["dry", "wet"], p=[0.6, 0.4])
    river.add(
        "rain", {"dry": mk.LinearGaussian(2, {}, 1), "wet": mk.LinearGaussian(8, {}, 4)}, parents=["season"]
    )
    river.add("river", mk.LinearGaussian(1, {"rain": 0.5}, 0.5))
    river.save(place / "river.json")
    hostile = mk.BayesianNetwork()
    hostile.add("<script>window.bad=1</script>", states=["<b>yes</b>", "no \"&' so"], p=[0.3, 0.7])
    hostile.add(
        "a\"b'c", states=["x", "y"], parents=["<script>window.bad=1</script>"], p=[[0.1, 0.9], [0.8, 0.2]]
    )
    hostile.save(place / "hostile.json")
    drug = mk.BayesianNetwork()
    drug.add("age", states=["young", "old"], p=[0.5, 0.5])
    drug.add("drug", states=["no", "yes"], parents=["age"], p=[[0.8, 0.2], [0.3, 0.7]])
    drug.add(
        "cured",
        states=["no", "yes"],
        parents=["drug", "age"],
        p=[[[0.3, 0.7], [0.7, 0.3]], [[0.1, 0.9], [0.5, 0.5]]],
    )
    drug.save(place / "drug.json")
    return place


@pytest.fixture(scope="session")
def address(folder):
    """Return where the studio is."""
    with studio(folder) as where:
        yield where


@pytest.fixture(scope="module")
def browser():
    """Return a browser; one a module, for its event loop lives as long as it does."""
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser, address):
    """Return a window of the studio."""
    with opened(browser, address) as shown:
        yield shown


@pytest.fixture
def asia(page):
    """Return a window that shows asia."""
    choose(page, "Asia")
    return page

"""Libraries that are loaded when they are first asked for something."""

import pickle
import subprocess
import sys

import pytest

from markovia.runtime.libraries import LateLibrary, __all__, jax, jnp


def test_a_library_is_loaded_by_its_first_attribute_and_not_by_importing_its_name():
    code = (
        "import sys, doctest, inspect\n"
        "from markovia.runtime import libraries\n"
        "doctest.DocTestFinder().find(libraries); [inspect.unwrap(v) for v in vars(libraries).values()]\n"
        "print([m for m in ('jax', 'pandas', 'networkx', 'optax', 'equinox') if m in sys.modules])\n"
        "libraries.nx.DiGraph()\n"
        "print([m for m in ('jax', 'pandas', 'networkx', 'optax', 'equinox') if m in sys.modules])\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines() == ["[]", "['networkx']"]


def test_a_late_name_reads_the_module_itself_and_what_is_put_into_it_later(monkeypatch):
    import jax as loaded

    assert jnp.asarray is loaded.numpy.asarray
    assert jax.__version__ == loaded.__version__
    assert jax.jit is loaded.jit
    monkeypatch.setattr(loaded, "jit", "another")
    assert jax.jit == "another"


def test_a_late_name_that_does_not_exist_is_answered_as_by_the_module():
    with pytest.raises(AttributeError, match="'fractions' has no attribute 'nonsense'"):
        LateLibrary("fractions").nonsense  # noqa: B018
    with pytest.raises(ModuleNotFoundError, match="no_such_library"):
        LateLibrary("no_such_library").anything  # noqa: B018


def test_late_names_go_to_other_processes():
    again = pickle.loads(pickle.dumps(jnp))
    assert isinstance(again, LateLibrary)
    assert again.sum is jnp.sum


def test_every_listed_name_is_a_late_library():
    from markovia.runtime import libraries

    assert [n for n in __all__ if not isinstance(getattr(libraries, n), LateLibrary)] == []
    assert {n for n, v in vars(libraries).items() if isinstance(v, LateLibrary)} == set(__all__)

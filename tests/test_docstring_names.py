"""What docstrings name can be had: no class in the text or the examples of anything public is out of a user's reach."""

import inspect
import re
from pathlib import Path
from types import ModuleType

import markovia as mk

DEFINED = re.compile(r"^class (\w+)", re.MULTILINE)
QUOTED = re.compile(r"`(?:mk\.|markovia\.)?([A-Z]\w*[a-z]\w*)\b")
RETURNED = re.compile(r"^Returns\n-+\n(?:\w+ : )?([A-Z]\w*[a-z]\w*)$", re.MULTILINE)
USED = re.compile(r"^(?:>>>|\.\.\.) (.*)$", re.MULTILINE)
CLASS = re.compile(r"\b([A-Z]\w*[a-z]\w*)\b")
OF_OTHER_LIBRARIES = {"Graph"}
"""Names that some class of the library shares with one of another (networkx)."""
CHARACTERS = re.compile(r"\"[^\"]*\"|'[^']*'")


def _library_classes():
    """Return the names of all classes that the library defines."""
    source = Path(mk.__file__).parent.rglob("*.py")
    return {name for path in source for name in DEFINED.findall(path.read_text(encoding="utf-8"))}


def _public_objects():
    doors = [mk, *(getattr(mk, name) for name in dir(mk) if isinstance(getattr(mk, name, None), ModuleType))]
    return {
        f"{door.__name__}.{name}": getattr(door, name)
        for door in doors
        for name in dir(door)
        if not name.startswith("_")
        and not isinstance(getattr(door, name, None), ModuleType)
        # a module of its own, such as `mk.priors`, has imports besides its names; front doors have names alone
        and (door.__name__.count(".") < 2 or getattr(getattr(door, name), "__module__", "") == door.__name__)
    }


def _docstrings(name, thing):
    yield name, inspect.getdoc(thing) or ""
    if inspect.isclass(thing):
        for verb, member in inspect.getmembers(thing):
            home = getattr(getattr(member, "fget", None) or member, "__module__", None) or ""
            if not verb.startswith("_") and home.startswith("markovia"):
                yield f"{name}.{verb}", inspect.getdoc(member) or ""


def names_in(text):
    """Return the classes that a docstring names: in backticks, as what is returned, and in its examples."""
    found = {*QUOTED.findall(text), *RETURNED.findall(text)}
    imported = set(re.findall(r"import (\w+)", text))  # an example may show where a helper lives
    for line in USED.findall(text):
        found |= {*CLASS.findall(CHARACTERS.sub("", line))}
    return found - imported


def test_every_class_that_a_public_docstring_names_can_be_reached():
    public = _public_objects()
    own = {
        name: thing
        for name, thing in public.items()
        if str(getattr(thing, "__module__", "")).startswith("markovia")
    }
    hidden = _library_classes() - {name.rpartition(".")[2] for name in public} - OF_OTHER_LIBRARIES
    wrong = {
        (where, name)
        for place, thing in own.items()
        for where, text in _docstrings(place, thing)
        for name in names_in(text) & hidden
    }
    assert not wrong, sorted(wrong)


def test_names_in_backticks_returns_and_examples_are_seen():
    text = "Use `FiniteChain`, or `mk.Other(3)`.\n\nReturns\n-------\nReturned\n    So.\n\n>>> Example('NotThis').go()\n1\n"
    assert names_in(text) == {"FiniteChain", "Other", "Returned", "Example"}

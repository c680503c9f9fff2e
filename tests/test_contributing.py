"""CONTRIBUTING names files, folders and names of the code that are there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
QUOTED = re.findall(r"`([^`\n]+)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
NOT_THERE = (".venv/", "docs/_build/", "_build/figures/", "utils.py")
"""What is there only once something was built, and what is there never."""


def paths():
    words = {word for quoted in QUOTED for word in quoted.split()}
    like_paths = {
        w for w in words if re.fullmatch(r"[\w./-]+", w) and ("/" in w or w.endswith((".py", ".md")))
    }
    return sorted(w for w in like_paths if not w.startswith(NOT_THERE))


def names():
    """Return what is quoted as one Python name."""
    return sorted({quoted.removeprefix("@") for quoted in QUOTED if re.fullmatch(r"@?_*[A-Za-z]\w+", quoted)})


def test_every_path_that_is_named_exists():
    assert len(paths()) > 80
    assert not [
        p for p in paths() if not any((folder / p).exists() for folder in (ROOT, ROOT / "src" / "markovia"))
    ]


def test_every_name_of_the_code_is_in_the_code():
    files = [p for folder in ("src", "tests", "docs") for p in (ROOT / folder).rglob("*.py*")]
    text = "\n".join(p.read_text(encoding="utf-8") for p in files if p.suffix in (".py", ".pyi"))
    known = set(re.findall(r"\w+", text))
    assert len(names()) > 50
    assert not [name for name in names() if name not in known]


def test_every_registry_is_in_the_recipe_that_names_it():
    recipes = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").replace("\n", " ")
    registered = re.findall(r"(?:line to|it to) `(\w+)` in\s+`([^`]+)`", recipes)
    assert {name for name, _ in registered} == {
        "_REGISTRY",
        "_METHODS",
        "SCORES",
        "TESTS",
        "ON_PURPOSE",
        "_TABLE",
    }
    for name, path in registered:
        assert re.search(rf"^{name}\b.* = ", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), path

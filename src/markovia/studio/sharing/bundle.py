"""The page's modules as one: for files that load nothing, and for notebooks that take a single module.

Every module becomes a function that returns what it exports; an import takes names out of what was returned before.
That is enough for our own modules, which import each other by relative paths, at their beginning and not in circles,
and export functions, classes and constants. Anything else is refused, so nothing is bundled that would not work.
"""

import re
from functools import cache
from pathlib import Path

STATIC = Path(__file__).parents[1] / "static"
_IMPORT = re.compile(r'^import (?P<what>\{[^}]*\}|\* as \w+) from "\./(?P<file>[\w.]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?P<kind>(?:async )?function\*?|class|const) (?P<name>\w+)", re.MULTILINE)
_LIST = re.compile(r"^export const (?P<names>\w+ = [^;\n]+(?:, \w+ = [^;\n]+)+);$", re.MULTILINE)
_LEFT = re.compile(r"^(import|export)\b[^\n]*", re.MULTILINE)


@cache
def bundled(entry: str, last: str = "") -> str:
    """Return a module of `static` with all it imports as one module, ending in a line that may use its exports as `entry`.

    Examples
    --------
    >>> text = bundled("exact.js", "export const compile = entry.compile;")
    >>> text.count("import "), text.splitlines()[-1]
    (0, 'export const compile = entry.compile;')
    """
    done: dict[str, str] = {}
    _take(entry, done, [])
    return "\n".join([*done.values(), f"const entry = {_name(entry)};", last]).rstrip("\n") + "\n"


def imported(entry: str) -> list[str]:
    """Return a module of `static` and all it imports, each after those that it imports itself.

    Examples
    --------
    >>> imported("chart.js")
    ['dom.js', 'chart.js']
    """
    done: dict[str, str] = {}
    _take(entry, done, [])
    return list(done)


def static_text(file: str) -> str:
    """Return the text of a file of `static`."""
    return (STATIC / file).read_text(encoding="utf-8")


def _take(file: str, done: dict[str, str], path: list[str]) -> None:
    """Add a module after those it imports."""
    if file in path:
        raise ValueError(f"modules import each other in a circle: {' -> '.join([*path, file])}")
    if file in done:
        return
    text = static_text(file)
    for found in _IMPORT.finditer(text):
        _take(found["file"], done, [*path, file])
    names = [found["name"] for found in _EXPORT.finditer(text)]
    for found in _LIST.finditer(text):
        names += re.findall(r"(?<=, )\w+(?= =)", found["names"])
    body = _EXPORT.sub(r"\g<kind> \g<name>", _IMPORT.sub(_assignment, text))
    if left := _LEFT.search(body):
        raise ValueError(f"{file} has a line that cannot be bundled: {left[0]}")
    done[file] = f"const {_name(file)} = (() => {{\n{body}return {{ {', '.join(names)} }};\n}})();"


def _assignment(found: re.Match[str]) -> str:
    what = found["what"]
    if what.startswith("*"):
        return f"const {what.removeprefix('* as ')} = {_name(found['file'])};\n"
    taken = re.sub(r"\s+as\s+", ": ", what)
    return f"const {taken} = {_name(found['file'])};\n"


def _name(file: str) -> str:
    return "module_" + file.removesuffix(".js").replace(".", "_")

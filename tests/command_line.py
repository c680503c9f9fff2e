"""Running the command line inside a test: its answer as JSON, or its one-line complaint."""

import json
from typing import Any

from typer.testing import CliRunner, Result

from markovia.cli.app import app


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words), prog_name="markovia")


def answer(*words: str) -> dict[str, Any]:
    """Run a command with --json and return what it printed."""
    result = run(*words, "--json")
    assert result.exit_code == 0, result.stderr
    told: dict[str, Any] = json.loads(result.stdout)
    return told


def complaint(*words: str) -> str:
    """Run a command that must fail with exit code 2 and one line on stderr, and return that line."""
    result = run(*words)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("markovia: ")
    return lines[0]

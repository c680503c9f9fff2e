"""The `markovia` command: the verbs of the library for a terminal and for scripts.

Each command lives in the file of its name; `app` puts them together and decides how a command ends: 0 for an
answer, 2 and one sentence for bad input, 1 and a traceback for a bug, 130 after Ctrl-C.
"""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; `markovia --help` says what there is."""
    from markovia.cli.app import COMMANDS, register

    word = ["studio" if w == "serve" else w for w in sys.argv[1:2]]  # one command needs no other's imports
    register(word if word and word[0] in COMMANDS else COMMANDS)(prog_name="markovia")

"""Benchmarks of several parts, each a script of its own: which to run, and how."""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def run_parts(family: str, parts: Sequence[str], description: str | None) -> int:
    """Read the command line and run `family_part.py` for each part that is asked for; 1 if any fails."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="smaller data, no slow peers")
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    options = parser.parse_args()
    failed = 0
    for part in options.parts:
        print(f"== {part} ==", flush=True)
        script = Path(__file__).with_name(f"{family}_{part}.py")
        command = [sys.executable, str(script), *(["--quick"] if options.quick else [])]
        failed += subprocess.run(command, check=False).returncode != 0
    return 1 if failed else 0

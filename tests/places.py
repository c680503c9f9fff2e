"""Where things lie: the project, its examples, and the benchmark data that tests use where they are there."""

import os
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
EXAMPLES = PROJECT / "examples"
BENCHMARKS = Path(os.environ.get("MARKOVIA_BENCHMARKS") or PROJECT.parent / "shared" / "benchmarks")

"""How good and how fast structure learning is, beside peers, in one run.

Run: python benchmarks/structure.py [--quick] [--parts NAME ...]

1. `hill_climbing`: hill climbing beside pyAgrum's and pgmpy's;
2. `classes`: greedy equivalence search and searches over orders beside pyAgrum, pgmpy and causal-learn;
3. `exact`: the proven optimum;
4. `tests`: PC beside causal-learn's;
5. `functional`: LiNGAM beside causal-learn's, NOTEARS;
6. `undirected`: the graphical lasso beside scikit-learn's, neighbourhood selection, roll calls;
7. `fci`: FCI and RFCI beside causal-learn's, with an oracle and on data;
8. `files`: structure from rows on disk;
9. `scaling`: time against the number of rows and of variables.

Data are sampled with fixed seeds from the networks in MARKOVIA_BENCHMARKS, else ../shared/benchmarks, columns shuffled.
Peers that are not installed are named and left out.
"""

import argparse
import subprocess
import sys
from pathlib import Path

PARTS = ("hill_climbing", "classes", "exact", "tests", "functional", "undirected", "fci", "files", "scaling")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="smaller data, no slow peers")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    options = parser.parse_args()
    failed = 0
    for part in options.parts:
        print(f"== {part} ==", flush=True)
        script = Path(__file__).with_name(f"structure_{part}.py")
        command = [sys.executable, str(script), *(["--quick"] if options.quick else [])]
        failed += subprocess.run(command, check=False).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""All measurements of deep models, one after the other, each in a process of its own: see the files named `deep_*.py`.

Run: python benchmarks/deep.py [rbm vae flows diffusion gan images]
"""

import subprocess
import sys
from pathlib import Path

PARTS = ("rbm", "vae", "flows", "diffusion", "gan", "images")


def main(names):
    here = Path(__file__).parent
    for name in names or PARTS:
        print(f"-- {name}", flush=True)
        subprocess.run([sys.executable, "-W", "ignore", str(here / f"deep_{name}.py")], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])

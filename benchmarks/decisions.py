"""How fast decisions are, and how good, beside peers, in one run.

Run: python benchmarks/decisions.py [--quick] [--parts diagrams mdp pomdp learning evaluation]

1. `diagrams`: the oil wildcatter, pigs, random diagrams and long chains of limited memory, beside pyAgrum;
2. `mdp`: grids of 10,000 and a million states, beside pymdptoolbox;
3. `pomdp`: the tiger, mazes, linear-quadratic control;
4. `learning`: CartPole and Pendulum by defaults, five seeds;
5. `evaluation`: coverage of what another policy would have done.

Peers that are not installed are named and left out.
"""

import sys

from parts import run_parts

PARTS = ("diagrams", "mdp", "pomdp", "learning", "evaluation")

if __name__ == "__main__":
    sys.exit(run_parts("decisions", PARTS, __doc__))

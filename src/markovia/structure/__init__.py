"""Learning structure: from data to a graph.

`learn.learn_structure` is the door. Each algorithm is one file and one line of `methods.py`; scores (`scores.py`) and tests
of conditional independence (`ci_tests.py`) are chosen by name in the same way. All of them see a `Task`: the data, what is
known beforehand (`knowledge.py`), and a `Clock` that knows when to stop.
"""

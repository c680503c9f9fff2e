"""Local models: what a node or a factor can be besides a full table.

Gates and arithmetic (`AndGate`, `OrGate`, `Count`, `Sum`, `Max`, ...) and noisy or logistic dependence (`NoisyOr`,
`NoisyMax`, `Logistic`, `Softmax`, ...) stand in the place of a node's table; `SparseFactor` and `LogLinear` in the place of
a factor's.

Examples
--------
>>> import markovia as mk
>>> bn = mk.BayesianNetwork()
>>> bn.add("flu", states=["no", "yes"], p=[0.9, 0.1])
>>> bn.add("cold", states=["no", "yes"], p=[0.7, 0.3])
>>> bn.add("fever", mk.local.NoisyOr({"flu": 0.8, "cold": 0.3}, leak=0.01), states=["no", "yes"])
>>> round(bn.query("fever")["yes"], 4)
0.1712
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)

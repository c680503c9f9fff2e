"""What sits on a graph: variables, tables, conditional distributions, evidence, potentials and features."""

from markovia.factors.conditional import Conditional, ConditionalTable
from markovia.factors.evidence import Finding, Not, read_evidence
from markovia.factors.factor import Factor, product
from markovia.factors.table_forms import LocalModel, as_conditional
from markovia.factors.variable import State, Variable

__all__ = [
    "Conditional",
    "ConditionalTable",
    "Factor",
    "Finding",
    "LocalModel",
    "Not",
    "State",
    "Variable",
    "as_conditional",
    "product",
    "read_evidence",
]

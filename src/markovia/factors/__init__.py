"""What sits on a graph: variables, tables, conditional distributions, evidence, potentials and features."""

from markovia.factors.canonical import canonical_potentials, fold_into_maximal_cliques, gibbs_factors
from markovia.factors.conditional import Conditional, ConditionalTable, random_table, uniform_table
from markovia.factors.evidence import Finding, Findings, Jeffrey, Not, read_evidence, read_finding
from markovia.factors.factor import Factor, product
from markovia.factors.grids import grid_names, ising_grid, potts_grid
from markovia.factors.local_models import CausalIndependence
from markovia.factors.log_linear import Feature, LogLinear, general_pairwise_features, ising_features
from markovia.factors.logical import (
    AndGate,
    AtLeast,
    Count,
    DeterministicConditional,
    Exists,
    ForAll,
    Max,
    Min,
    NotGate,
    OrGate,
    Sum,
    XorGate,
)
from markovia.factors.logistic import Logistic, LogisticConditional, Softmax, SoftmaxConditional
from markovia.factors.noisy import (
    NoisyAnd,
    NoisyAndConditional,
    NoisyMax,
    NoisyMaxConditional,
    NoisyMin,
    NoisyMinConditional,
    NoisyOr,
    NoisyOrConditional,
    NoisyParameters,
)
from markovia.factors.oracle import joint_oracle
from markovia.factors.potentials import boltzmann, chain, from_energy, ising, pairwise, potts
from markovia.factors.table_forms import LocalModel, argument_names, as_conditional
from markovia.factors.variable import State, Variable

__all__ = [
    "AndGate",
    "AtLeast",
    "CausalIndependence",
    "Conditional",
    "ConditionalTable",
    "Count",
    "DeterministicConditional",
    "Exists",
    "Factor",
    "Feature",
    "Finding",
    "Findings",
    "ForAll",
    "Jeffrey",
    "LocalModel",
    "LogLinear",
    "Logistic",
    "LogisticConditional",
    "Max",
    "Min",
    "NoisyAnd",
    "NoisyAndConditional",
    "NoisyMax",
    "NoisyMaxConditional",
    "NoisyMin",
    "NoisyMinConditional",
    "NoisyOr",
    "NoisyOrConditional",
    "NoisyParameters",
    "Not",
    "NotGate",
    "OrGate",
    "Softmax",
    "SoftmaxConditional",
    "State",
    "Sum",
    "Variable",
    "XorGate",
    "argument_names",
    "as_conditional",
    "boltzmann",
    "canonical_potentials",
    "chain",
    "fold_into_maximal_cliques",
    "from_energy",
    "general_pairwise_features",
    "gibbs_factors",
    "grid_names",
    "ising",
    "ising_features",
    "ising_grid",
    "joint_oracle",
    "pairwise",
    "potts",
    "potts_grid",
    "product",
    "random_table",
    "read_evidence",
    "read_finding",
    "uniform_table",
]

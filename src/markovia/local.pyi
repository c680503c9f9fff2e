"""The names that `markovia.local` hands out, each with its home."""

from markovia.factors.local_models.local_model import CausalIndependence as CausalIndependence
from markovia.factors.local_models.logical import (
    AndGate as AndGate,
    AtLeast as AtLeast,
    Count as Count,
    DeterministicConditional as DeterministicConditional,
    Exists as Exists,
    ForAll as ForAll,
    Max as Max,
    Min as Min,
    NotGate as NotGate,
    OrGate as OrGate,
    Sum as Sum,
    XorGate as XorGate,
)
from markovia.factors.local_models.logistic import (
    Logistic as Logistic,
    LogisticConditional as LogisticConditional,
    Softmax as Softmax,
    SoftmaxConditional as SoftmaxConditional,
)
from markovia.factors.local_models.noisy import (
    NoisyAnd as NoisyAnd,
    NoisyAndConditional as NoisyAndConditional,
    NoisyMax as NoisyMax,
    NoisyMaxConditional as NoisyMaxConditional,
    NoisyMin as NoisyMin,
    NoisyMinConditional as NoisyMinConditional,
    NoisyOr as NoisyOr,
    NoisyOrConditional as NoisyOrConditional,
    NoisyParameters as NoisyParameters,
)
from markovia.factors.potentials.log_linear import LogLinear as LogLinear
from markovia.factors.tables.conditional import (
    Conditional as Conditional,
    ConditionalTable as ConditionalTable,
)
from markovia.factors.tables.sparse import SparseFactor as SparseFactor
from markovia.factors.tables.table_forms import LocalModel as LocalModel

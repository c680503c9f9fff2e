"""The names that `markovia.factors` hands out, each with its home."""

from markovia.factors.local_models.local_model import (
    CausalIndependence as CausalIndependence,
)
from markovia.factors.local_models.logical import (
    AndGate as AndGate,
)
from markovia.factors.local_models.logical import (
    AtLeast as AtLeast,
)
from markovia.factors.local_models.logical import (
    Count as Count,
)
from markovia.factors.local_models.logical import (
    DeterministicConditional as DeterministicConditional,
)
from markovia.factors.local_models.logical import (
    Exists as Exists,
)
from markovia.factors.local_models.logical import (
    ForAll as ForAll,
)
from markovia.factors.local_models.logical import (
    Max as Max,
)
from markovia.factors.local_models.logical import (
    Min as Min,
)
from markovia.factors.local_models.logical import (
    NotGate as NotGate,
)
from markovia.factors.local_models.logical import (
    OrGate as OrGate,
)
from markovia.factors.local_models.logical import (
    Sum as Sum,
)
from markovia.factors.local_models.logical import (
    XorGate as XorGate,
)
from markovia.factors.local_models.logistic import (
    Logistic as Logistic,
)
from markovia.factors.local_models.logistic import (
    LogisticConditional as LogisticConditional,
)
from markovia.factors.local_models.logistic import (
    Softmax as Softmax,
)
from markovia.factors.local_models.logistic import (
    SoftmaxConditional as SoftmaxConditional,
)
from markovia.factors.local_models.noisy import (
    NoisyAnd as NoisyAnd,
)
from markovia.factors.local_models.noisy import (
    NoisyAndConditional as NoisyAndConditional,
)
from markovia.factors.local_models.noisy import (
    NoisyMax as NoisyMax,
)
from markovia.factors.local_models.noisy import (
    NoisyMaxConditional as NoisyMaxConditional,
)
from markovia.factors.local_models.noisy import (
    NoisyMin as NoisyMin,
)
from markovia.factors.local_models.noisy import (
    NoisyMinConditional as NoisyMinConditional,
)
from markovia.factors.local_models.noisy import (
    NoisyOr as NoisyOr,
)
from markovia.factors.local_models.noisy import (
    NoisyOrConditional as NoisyOrConditional,
)
from markovia.factors.local_models.noisy import (
    NoisyParameters as NoisyParameters,
)
from markovia.factors.potentials.canonical import (
    canonical_potentials as canonical_potentials,
)
from markovia.factors.potentials.canonical import (
    fold_into_maximal_cliques as fold_into_maximal_cliques,
)
from markovia.factors.potentials.canonical import (
    gibbs_factors as gibbs_factors,
)
from markovia.factors.potentials.grids import (
    grid_names as grid_names,
)
from markovia.factors.potentials.grids import (
    ising_grid as ising_grid,
)
from markovia.factors.potentials.grids import (
    potts_grid as potts_grid,
)
from markovia.factors.potentials.log_linear import (
    Feature as Feature,
)
from markovia.factors.potentials.log_linear import (
    LogLinear as LogLinear,
)
from markovia.factors.potentials.log_linear import (
    general_pairwise_features as general_pairwise_features,
)
from markovia.factors.potentials.log_linear import (
    ising_features as ising_features,
)
from markovia.factors.potentials.potentials import (
    boltzmann as boltzmann,
)
from markovia.factors.potentials.potentials import (
    chain as chain,
)
from markovia.factors.potentials.potentials import (
    from_energy as from_energy,
)
from markovia.factors.potentials.potentials import (
    ising as ising,
)
from markovia.factors.potentials.potentials import (
    pairwise as pairwise,
)
from markovia.factors.potentials.potentials import (
    potts as potts,
)
from markovia.factors.tables.conditional import (
    Conditional as Conditional,
)
from markovia.factors.tables.conditional import (
    ConditionalTable as ConditionalTable,
)
from markovia.factors.tables.conditional import (
    random_table as random_table,
)
from markovia.factors.tables.conditional import (
    uniform_table as uniform_table,
)
from markovia.factors.tables.evidence import (
    Finding as Finding,
)
from markovia.factors.tables.evidence import (
    Findings as Findings,
)
from markovia.factors.tables.evidence import (
    Jeffrey as Jeffrey,
)
from markovia.factors.tables.evidence import (
    Not as Not,
)
from markovia.factors.tables.evidence import (
    read_evidence as read_evidence,
)
from markovia.factors.tables.evidence import (
    read_finding as read_finding,
)
from markovia.factors.tables.factor import (
    Factor as Factor,
)
from markovia.factors.tables.factor import (
    product as product,
)
from markovia.factors.tables.oracle import (
    joint_oracle as joint_oracle,
)
from markovia.factors.tables.table_forms import (
    LocalModel as LocalModel,
)
from markovia.factors.tables.table_forms import (
    argument_names as argument_names,
)
from markovia.factors.tables.table_forms import (
    as_conditional as as_conditional,
)
from markovia.factors.tables.variable import (
    State as State,
)
from markovia.factors.tables.variable import (
    Variable as Variable,
)

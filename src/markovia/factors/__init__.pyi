"""The names that `markovia.factors` hands out, each with its home."""

from markovia.factors.potentials.canonical import (
    canonical_potentials as canonical_potentials,
    fold_into_maximal_cliques as fold_into_maximal_cliques,
    gibbs_factors as gibbs_factors,
)
from markovia.factors.potentials.grids import (
    grid_names as grid_names,
    ising_grid as ising_grid,
    potts_grid as potts_grid,
)
from markovia.factors.potentials.log_linear import (
    general_pairwise_features as general_pairwise_features,
    ising_features as ising_features,
)
from markovia.factors.potentials.potentials import (
    boltzmann as boltzmann,
    chain as chain,
    from_energy as from_energy,
    ising as ising,
    pairwise as pairwise,
    potts as potts,
)
from markovia.factors.tables.conditional import random_table as random_table, uniform_table as uniform_table
from markovia.factors.tables.factor import product as product
from markovia.factors.tables.oracle import joint_oracle as joint_oracle

"""Random partitions, measures and matrices: the laws behind models that choose their own number of groups or features.

Each has `sample(n, seed)`, `log_prob`, `posterior(data)` and `plot()`.

Examples
--------
>>> import markovia as mk
>>> crp = mk.processes.ChineseRestaurant(concentration=1.0)
>>> round(crp.expected_tables(1000), 2)
7.49
>>> crp.posterior([0, 0, 1]).predictive().tolist()
[0.5, 0.25, 0.25]
"""

from markovia.factors.processes.beta_process import BetaProcess
from markovia.factors.processes.chinese_restaurant import ChineseRestaurant, HoppeUrn
from markovia.factors.processes.dirichlet import Dirichlet, PolyaUrn
from markovia.factors.processes.dirichlet_process import DirichletProcess, Measure, PitmanYor
from markovia.factors.processes.distance_dependent import DistanceDependentRestaurant
from markovia.factors.processes.feature_matrices import left_ordered
from markovia.factors.processes.franchise import (
    ChineseRestaurantFranchise,
    HierarchicalDirichletProcess,
    Seating,
)
from markovia.factors.processes.gamma_process import GammaProcess, InfiniteGammaPoisson
from markovia.factors.processes.indian_buffet import IndianBuffet
from markovia.factors.processes.law import set_partitions
from markovia.factors.processes.nested_restaurant import NestedChineseRestaurant
from markovia.factors.processes.stick_breaking import GEM

__all__ = [
    "GEM",
    "BetaProcess",
    "ChineseRestaurant",
    "ChineseRestaurantFranchise",
    "Dirichlet",
    "DirichletProcess",
    "DistanceDependentRestaurant",
    "GammaProcess",
    "HierarchicalDirichletProcess",
    "HoppeUrn",
    "IndianBuffet",
    "InfiniteGammaPoisson",
    "Measure",
    "NestedChineseRestaurant",
    "PitmanYor",
    "PolyaUrn",
    "Seating",
    "left_ordered",
    "set_partitions",
]

"""The names that `markovia.processes` hands out, each with its home."""

from markovia.factors.processes.beta_process import BetaProcess as BetaProcess
from markovia.factors.processes.chinese_restaurant import (
    ChineseRestaurant as ChineseRestaurant,
    HoppeUrn as HoppeUrn,
)
from markovia.factors.processes.dirichlet import Dirichlet as Dirichlet, PolyaUrn as PolyaUrn
from markovia.factors.processes.dirichlet_process import (
    DirichletProcess as DirichletProcess,
    Measure as Measure,
    PitmanYor as PitmanYor,
)
from markovia.factors.processes.distance_dependent import (
    DistanceDependentRestaurant as DistanceDependentRestaurant,
)
from markovia.factors.processes.feature_matrices import left_ordered as left_ordered
from markovia.factors.processes.franchise import (
    ChineseRestaurantFranchise as ChineseRestaurantFranchise,
    HierarchicalDirichletProcess as HierarchicalDirichletProcess,
    Seating as Seating,
)
from markovia.factors.processes.gamma_process import (
    GammaProcess as GammaProcess,
    InfiniteGammaPoisson as InfiniteGammaPoisson,
)
from markovia.factors.processes.indian_buffet import IndianBuffet as IndianBuffet
from markovia.factors.processes.law import set_partitions as set_partitions
from markovia.factors.processes.nested_restaurant import NestedChineseRestaurant as NestedChineseRestaurant
from markovia.factors.processes.stick_breaking import GEM as GEM

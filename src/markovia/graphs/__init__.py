"""Graphs without probabilities: structure, separation, maps between graph families, chordality.

`DAG`, `UndirectedGraph`, `BipartiteGraph` (of factor graphs) and `MixedGraph` hold named nodes; everything
else is a function of a graph.
"""

from markovia.graphs.comparison.comparison import GraphComparison, compare_graphs, shd, sid
from markovia.graphs.kinds.bipartite import BipartiteGraph
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.equivalence import (
    compelled_edges,
    cpdag,
    equivalence_class,
    extend,
    i_equivalent,
    meek,
    reversible_edges,
)
from markovia.graphs.kinds.generators import (
    chain,
    complete,
    cycle,
    grid,
    random_dag,
    random_k_tree,
    random_tree,
    star,
)
from markovia.graphs.kinds.mixed import Mark, MixedGraph
from markovia.graphs.kinds.projection import is_causally_sufficient, latent_projection
from markovia.graphs.kinds.trails import Junction, Trail, is_active, open_trails, trails
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.graphs.separation.imaps import (
    GraphOracle,
    MinimalIMap,
    Oracle,
    StatementOracle,
    independencies_of,
    is_imap,
    is_minimal_imap,
    is_perfect_map,
    minimal_imap,
    minimal_undirected_imap,
)
from markovia.graphs.separation.independencies import (
    Independence,
    all_independencies,
    local_independencies,
    pairwise_independencies,
)
from markovia.graphs.separation.semigraphoid import closure, implies
from markovia.graphs.separation.separation import (
    all_minimal_separators,
    d_separated,
    minimal_separator,
    reachable,
    separated,
)
from markovia.graphs.triangulation.chordal import (
    chordless_cycle,
    is_chordal,
    is_decomposable,
    maximal_cliques_chordal,
    perfect_elimination_order,
    simplicial_vertices,
    to_directed,
)
from markovia.graphs.triangulation.colouring import greedy_colouring
from markovia.graphs.triangulation.cutset import feedback_vertex_set, is_loop_cutset, loop_cutset
from markovia.graphs.triangulation.elimination import Heuristic, greedy_order
from markovia.graphs.triangulation.junction_tree import JunctionTree, junction_tree
from markovia.graphs.triangulation.treewidth import exact_treewidth
from markovia.graphs.triangulation.triangulation import (
    Triangulation,
    elimination_cliques,
    treewidth_of_order,
    triangulate,
)

__all__ = [
    "DAG",
    "BipartiteGraph",
    "GraphComparison",
    "GraphOracle",
    "Heuristic",
    "Independence",
    "Junction",
    "JunctionTree",
    "Mark",
    "MinimalIMap",
    "MixedGraph",
    "Oracle",
    "StatementOracle",
    "Trail",
    "Triangulation",
    "UndirectedGraph",
    "all_independencies",
    "all_minimal_separators",
    "chain",
    "chordless_cycle",
    "closure",
    "compare_graphs",
    "compelled_edges",
    "complete",
    "cpdag",
    "cycle",
    "d_separated",
    "elimination_cliques",
    "equivalence_class",
    "exact_treewidth",
    "extend",
    "feedback_vertex_set",
    "greedy_colouring",
    "greedy_order",
    "grid",
    "i_equivalent",
    "implies",
    "independencies_of",
    "is_active",
    "is_causally_sufficient",
    "is_chordal",
    "is_decomposable",
    "is_imap",
    "is_loop_cutset",
    "is_minimal_imap",
    "is_perfect_map",
    "junction_tree",
    "latent_projection",
    "local_independencies",
    "loop_cutset",
    "maximal_cliques_chordal",
    "meek",
    "minimal_imap",
    "minimal_separator",
    "minimal_undirected_imap",
    "open_trails",
    "pairwise_independencies",
    "perfect_elimination_order",
    "random_dag",
    "random_k_tree",
    "random_tree",
    "reachable",
    "reversible_edges",
    "separated",
    "shd",
    "sid",
    "simplicial_vertices",
    "star",
    "to_directed",
    "trails",
    "treewidth_of_order",
    "triangulate",
]

"""The names that `markovia.graphs` hands out, each with its home."""

from markovia.graphs.causal.ancestral import (
    inducing_path as inducing_path,
    maximal_ancestral_graph as maximal_ancestral_graph,
)
from markovia.graphs.comparison.comparison import (
    GraphComparison as GraphComparison,
    compare_graphs as compare_graphs,
    shd as shd,
    sid as sid,
)
from markovia.graphs.kinds.bipartite import BipartiteGraph as BipartiteGraph
from markovia.graphs.kinds.chain_graph import ChainGraph as ChainGraph
from markovia.graphs.kinds.directed import DAG as DAG
from markovia.graphs.kinds.equivalence import (
    compelled_edges as compelled_edges,
    cpdag as cpdag,
    equivalence_class as equivalence_class,
    extend as extend,
    i_equivalent as i_equivalent,
    meek as meek,
    reversible_edges as reversible_edges,
)
from markovia.graphs.kinds.generators import (
    chain as chain,
    complete as complete,
    cycle as cycle,
    grid as grid,
    random_dag as random_dag,
    random_k_tree as random_k_tree,
    random_tree as random_tree,
    star as star,
)
from markovia.graphs.kinds.mixed import Mark as Mark, MixedGraph as MixedGraph
from markovia.graphs.kinds.projection import (
    is_causally_sufficient as is_causally_sufficient,
    latent_projection as latent_projection,
)
from markovia.graphs.kinds.trails import (
    Junction as Junction,
    Trail as Trail,
    is_active as is_active,
    open_trails as open_trails,
    trails as trails,
)
from markovia.graphs.kinds.undirected import UndirectedGraph as UndirectedGraph
from markovia.graphs.separation.imaps import (
    GraphOracle as GraphOracle,
    MinimalIMap as MinimalIMap,
    Oracle as Oracle,
    StatementOracle as StatementOracle,
    independencies_of as independencies_of,
    is_imap as is_imap,
    is_minimal_imap as is_minimal_imap,
    is_perfect_map as is_perfect_map,
    minimal_imap as minimal_imap,
    minimal_undirected_imap as minimal_undirected_imap,
)
from markovia.graphs.separation.independencies import (
    Independence as Independence,
    all_independencies as all_independencies,
    local_independencies as local_independencies,
    pairwise_independencies as pairwise_independencies,
)
from markovia.graphs.separation.semigraphoid import closure as closure, implies as implies
from markovia.graphs.separation.separation import (
    all_minimal_separators as all_minimal_separators,
    d_separated as d_separated,
    minimal_separator as minimal_separator,
    reachable as reachable,
    separated as separated,
)
from markovia.graphs.separation.sigma_separation import sigma_separated as sigma_separated
from markovia.graphs.triangulation.chordal import (
    chordless_cycle as chordless_cycle,
    is_chordal as is_chordal,
    is_decomposable as is_decomposable,
    maximal_cliques_chordal as maximal_cliques_chordal,
    perfect_elimination_order as perfect_elimination_order,
    simplicial_vertices as simplicial_vertices,
    to_directed as to_directed,
)
from markovia.graphs.triangulation.colouring import greedy_colouring as greedy_colouring
from markovia.graphs.triangulation.cutset import (
    feedback_vertex_set as feedback_vertex_set,
    is_loop_cutset as is_loop_cutset,
    loop_cutset as loop_cutset,
)
from markovia.graphs.triangulation.elimination import Heuristic as Heuristic, greedy_order as greedy_order
from markovia.graphs.triangulation.junction_tree import (
    JunctionTree as JunctionTree,
    junction_tree as junction_tree,
)
from markovia.graphs.triangulation.treewidth import exact_treewidth as exact_treewidth
from markovia.graphs.triangulation.triangulation import (
    Triangulation as Triangulation,
    elimination_cliques as elimination_cliques,
    treewidth_of_order as treewidth_of_order,
    triangulate as triangulate,
)

"""Tree-augmented naive Bayes (TAN): naive Bayes whose features may each have one more parent among the features.

The best such tree maximises the likelihood: weigh every pair of features by its mutual information given the class, take
a maximum spanning tree, direct it away from a root, and make the class a parent of all.
Reference: Friedman, Geiger & Goldszmidt (1997). Cost: one pass of counting over all pairs of features, rows x pairs; the
tree (Prim) is quadratic in the features. Use it when naive Bayes is overconfident because features repeat each other.
"""

from dataclasses import dataclass

from markovia.data.tables.row_sources import CodedTable
from markovia.models.classifiers.network_classifier import NetworkClassifier
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.structure.trees.tree_augmented_search import tree_augmented_parents


@dataclass(eq=False, repr=False, kw_only=True)
class TreeAugmentedNaiveBayes(NetworkClassifier):
    """Naive Bayes with a tree over the features, learned from data.

    Parameters
    ----------
    root
        The feature that has only the class as a parent: a name, a position, or None for the first. The root does not
        change the distribution that maximum likelihood learns.
    target, prior, engine, states, missing, unseen, impossible
        As in `BayesianNetworkClassifier`.

    Attributes
    ----------
    tree_
        The edges between features, parent first.
    conditional_mutual_information_
        For every pair of features, in nats, given the class.
    network_, classes_, target_, log_likelihood_
        As in `BayesianNetworkClassifier`.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = mk.BayesianNetwork("y->a; y->b; y->c; a->b; b->c", tables="random", seed=3).sample(3000, seed=4)
    >>> model = TreeAugmentedNaiveBayes().fit(rows[["a", "b", "c"]], rows["y"])
    >>> model.tree_
    [('a', 'b'), ('b', 'c')]
    >>> model.network_.parents("c")
    ['y', 'b']
    """

    root: str | int | None = None

    def _learned(self, table: CodedTable, names: list[str], target: str) -> BayesianNetwork:
        parents, self.tree_, self.conditional_mutual_information_ = tree_augmented_parents(
            table, names, target, self.root
        )
        return BayesianNetwork(parents)

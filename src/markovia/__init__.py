"""markovia: probabilistic graphical models where the graph is the program.

State variables and how they depend on each other, once, and ask; the library picks the mathematics and answers
with its provenance.

>>> import markovia as mk
>>> bn = mk.BayesianNetwork()
>>> bn.add("rain", states=["no", "yes"], p=[0.8, 0.2])
>>> bn.add("wet", states=["no", "yes"], parents=["rain"], p=[[0.9, 0.1], [0.2, 0.8]])
>>> print(bn.query("rain", given={"wet": "yes"}))
rain         p
no    0.333333
yes   0.666667

Names are imported on first use, so `import markovia` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from markovia import ports as _ports

__version__ = "0.1.0"

_EXPORTS = {
    "markovia.errors": (
        "MarkoviaError",
        "CycleError",
        "DuplicateName",
        "ImpossibleEvidence",
        "IncompleteModel",
        "InvalidArgument",
        "InvalidEvidence",
        "InvalidGraph",
        "InvalidTable",
        "ParseError",
        "ApproximateWarning",
        "ConvergenceWarning",
        "TooLarge",
        "Unanswered",
        "UnknownArgument",
        "UnknownEngine",
        "UnknownFormat",
        "UnknownState",
        "UnknownVariable",
        "UnsupportedModel",
    ),
    "markovia.factors.variable": ("Variable",),
    "markovia.factors.factor": ("Factor",),
    "markovia.factors.sparse": ("SparseFactor",),
    "markovia.inference.bounds": ("LogBounds",),
    "markovia.inference.diagnostics": ("Diagnostics",),
    "markovia.inference.markov_chain": ("MarkovChain",),
    "markovia.factors.conditional": ("Conditional", "ConditionalTable"),
    "markovia.factors.evidence": ("Jeffrey", "Not"),
    "markovia.factors.logical": (
        "AndGate",
        "AtLeast",
        "Count",
        "Exists",
        "ForAll",
        "Max",
        "Min",
        "NotGate",
        "OrGate",
        "Sum",
        "XorGate",
    ),
    "markovia.factors.logistic": ("Logistic", "Softmax"),
    "markovia.factors.log_linear": ("Feature", "LogLinear"),
    "markovia.factors.noisy": ("NoisyAnd", "NoisyMax", "NoisyMin", "NoisyOr"),
    "markovia.graphs.comparison": ("GraphComparison", "compare_graphs", "shd", "sid"),
    "markovia.graphs.directed": ("DAG",),
    "markovia.graphs.undirected": ("UndirectedGraph",),
    "markovia.graphs.mixed": ("MixedGraph",),
    "markovia.inference.posterior": ("Explanation", "Posterior"),
    "markovia.inference.agreement": ("Agreement",),
    "markovia.inference.data_conflict": ("Conflict",),
    "markovia.inference.information_gain": ("Information",),
    "markovia.inference.sensitivity": ("Sensitivity", "SensitivityFunction"),
    "markovia.learning.glm": ("GLM",),
    "markovia.learning.regressions": (
        "LinearRegression",
        "LogisticRegression",
        "PoissonRegression",
        "SoftmaxRegression",
    ),
    "markovia.models.bayesian_network": ("BayesianNetwork",),
    "markovia.learning.counting": ("counts",),
    "markovia.learning.discretization": ("Discretizer",),
    "markovia.learning.em": ("EM",),
    "markovia.learning.identifiability": ("identifiability",),
    "markovia.models.learnable_field": ("fit_log_linear", "posterior_regularisation"),
    "markovia.models.chain_crf": ("ChainCRF",),
    "markovia.models.crf": ("CRF",),
    "markovia.models.feature_crf": ("ConditionalFeature", "FeatureCRF"),
    "markovia.models.grid_crf": ("GridCRF",),
    "markovia.models.neural_crf": ("NeuralCRF",),
    "markovia.models.naive_bayes": ("BernoulliNaiveBayes", "CategoricalNaiveBayes", "GaussianNaiveBayes"),
    "markovia.models.mixed_naive_bayes": ("NaiveBayes",),
    "markovia.models.network_classifier": ("BayesianNetworkClassifier",),
    "markovia.models.tree_augmented": ("TreeAugmentedNaiveBayes",),
    "markovia.models.label_propagation": ("LabelPropagation",),
    "markovia.models.posterior_network": ("NetworkPosterior", "SampledPosterior"),
    "markovia.models.markov_network": ("MarkovNetwork",),
    "markovia.models.dynamic": ("DynamicBayesianNetwork",),
    "markovia.models.factor_graph": ("FactorGraph",),
    "markovia.io": (
        "load",
        "save",
        "from_networkx",
        "from_pgmpy",
        "from_pyagrum",
        "to_networkx",
        "to_pgmpy",
        "to_pyagrum",
    ),
    "markovia.learning.structure.independence_test": ("IndependenceTest", "independence_test"),
    "markovia.learning.structure.bootstrap": ("bootstrap_structure",),
    "markovia.learning.structure.changing_network": ("edges_over_time",),
    "markovia.learning.structure.edge_strength": ("EdgeStrength", "edge_strength"),
    "markovia.learning.structure.knowledge": ("Knowledge",),
    "markovia.learning.structure.learn": ("learn_structure",),
    "markovia.learning.structure.methods": ("structure_methods",),
    "markovia.learning.structure.model_averaging": ("EdgeConfidence",),
    "markovia.learning.structure.posterior_edges": ("EdgePosterior", "edge_posterior"),
    "markovia.learning.structure.pairwise_direction": ("PairwiseDirection", "pairwise_direction"),
    "markovia.learning.structure.result": ("LearnedStructure",),
    "markovia.learning.structure.scoring": ("score_graph",),
}
_MODULES = {
    "ci_tests": "markovia.ci_tests",
    "distributions": "markovia.distributions",
    "engines": "markovia.engines",
    "errors": "markovia.errors",
    "examples": "markovia.models.examples",
    "exponential": "markovia.exponential",
    "factors": "markovia.factors",
    "generators": "markovia.models.generators",
    "graphs": "markovia.graphs",
    "images": "markovia.models.images",
    "inference": "markovia.inference",
    "io": "markovia.io",
    "learning": "markovia.learning",
    "monte_carlo": "markovia.monte_carlo",
    "plotting": "markovia.plotting",
    "priors": "markovia.learning.priors",
    "scores": "markovia.scores",
    "variational": "markovia.variational",
}
_HOME = {name: module for module, names in _EXPORTS.items() for name in names}

_ports.bind("save", "markovia.io:save")
_ports.bind("fit-structure", "markovia.models.learned_structure:fit_structure")
_ports.bind("query-averaged", "markovia.models.averaged_query:averaged_query")
_ports.bind("plot-edge-confidence", "markovia.plotting.edge_confidence_plot:plot_edge_confidence")
_ports.bind("plot-model", "markovia.plotting:plot_model")
_ports.bind("plot-graph", "markovia.plotting:plot_graph")
_ports.bind("plot-trace", "markovia.plotting:plot_trace")
_ports.bind("plot-autocorrelation", "markovia.plotting:plot_autocorrelation")
_ports.bind("plot-calibration", "markovia.plotting:plot_calibration")
_ports.bind("plot-bias-variance", "markovia.plotting:plot_bias_variance")
_ports.bind("plot-comparison", "markovia.plotting.comparison_plot:plot_comparison")
_ports.bind("plot-posterior", "markovia.plotting:plot_posterior")

__all__ = ["__version__", *_HOME, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in _MODULES:
        value = import_module(_MODULES[name])
    else:
        raise AttributeError(f"module 'markovia' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from markovia import (
        ci_tests,
        distributions,
        engines,
        errors,
        exponential,
        factors,
        graphs,
        inference,
        io,
        learning,
        monte_carlo,
        plotting,
        scores,
        variational,
    )
    from markovia.errors import (
        ApproximateWarning,
        ConvergenceWarning,
        CycleError,
        DuplicateName,
        ImpossibleEvidence,
        IncompleteModel,
        InvalidArgument,
        InvalidEvidence,
        InvalidGraph,
        InvalidTable,
        MarkoviaError,
        ParseError,
        TooLarge,
        Unanswered,
        UnknownArgument,
        UnknownEngine,
        UnknownFormat,
        UnknownState,
        UnknownVariable,
        UnsupportedModel,
    )
    from markovia.factors.conditional import Conditional, ConditionalTable
    from markovia.factors.evidence import Jeffrey, Not
    from markovia.factors.factor import Factor
    from markovia.factors.log_linear import Feature, LogLinear
    from markovia.factors.logical import (
        AndGate,
        AtLeast,
        Count,
        Exists,
        ForAll,
        Max,
        Min,
        NotGate,
        OrGate,
        Sum,
        XorGate,
    )
    from markovia.factors.logistic import Logistic, Softmax
    from markovia.factors.noisy import NoisyAnd, NoisyMax, NoisyMin, NoisyOr
    from markovia.factors.sparse import SparseFactor
    from markovia.factors.variable import Variable
    from markovia.graphs.comparison import GraphComparison, compare_graphs, shd, sid
    from markovia.graphs.directed import DAG
    from markovia.graphs.mixed import MixedGraph
    from markovia.graphs.undirected import UndirectedGraph
    from markovia.inference.agreement import Agreement
    from markovia.inference.bounds import LogBounds
    from markovia.inference.data_conflict import Conflict
    from markovia.inference.diagnostics import Diagnostics
    from markovia.inference.information_gain import Information
    from markovia.inference.markov_chain import MarkovChain
    from markovia.inference.posterior import Explanation, Posterior
    from markovia.inference.sensitivity import Sensitivity, SensitivityFunction
    from markovia.io import (
        from_networkx,
        from_pgmpy,
        from_pyagrum,
        load,
        save,
        to_networkx,
        to_pgmpy,
        to_pyagrum,
    )
    from markovia.learning import priors
    from markovia.learning.counting import counts
    from markovia.learning.discretization import Discretizer
    from markovia.learning.em import EM
    from markovia.learning.glm import GLM
    from markovia.learning.identifiability import identifiability
    from markovia.learning.regressions import (
        LinearRegression,
        LogisticRegression,
        PoissonRegression,
        SoftmaxRegression,
    )
    from markovia.learning.structure.bootstrap import bootstrap_structure
    from markovia.learning.structure.changing_network import edges_over_time
    from markovia.learning.structure.edge_strength import EdgeStrength, edge_strength
    from markovia.learning.structure.independence_test import IndependenceTest, independence_test
    from markovia.learning.structure.knowledge import Knowledge
    from markovia.learning.structure.learn import learn_structure
    from markovia.learning.structure.methods import structure_methods
    from markovia.learning.structure.model_averaging import EdgeConfidence
    from markovia.learning.structure.pairwise_direction import PairwiseDirection, pairwise_direction
    from markovia.learning.structure.posterior_edges import EdgePosterior, edge_posterior
    from markovia.learning.structure.result import LearnedStructure
    from markovia.learning.structure.scoring import score_graph
    from markovia.models import examples, generators, images
    from markovia.models.bayesian_network import BayesianNetwork
    from markovia.models.chain_crf import ChainCRF
    from markovia.models.crf import CRF
    from markovia.models.dynamic import DynamicBayesianNetwork
    from markovia.models.factor_graph import FactorGraph
    from markovia.models.feature_crf import ConditionalFeature, FeatureCRF
    from markovia.models.grid_crf import GridCRF
    from markovia.models.label_propagation import LabelPropagation
    from markovia.models.learnable_field import fit_log_linear, posterior_regularisation
    from markovia.models.markov_network import MarkovNetwork
    from markovia.models.mixed_naive_bayes import NaiveBayes
    from markovia.models.naive_bayes import BernoulliNaiveBayes, CategoricalNaiveBayes, GaussianNaiveBayes
    from markovia.models.network_classifier import BayesianNetworkClassifier
    from markovia.models.neural_crf import NeuralCRF
    from markovia.models.posterior_network import NetworkPosterior, SampledPosterior
    from markovia.models.tree_augmented import TreeAugmentedNaiveBayes

"""The public names of markovia, each with its home."""

from markovia import (
    ci_tests as ci_tests,
)
from markovia import (
    engines as engines,
)
from markovia import (
    errors as errors,
)
from markovia import (
    exponential as exponential,
)
from markovia import (
    factors as factors,
)
from markovia import (
    graphs as graphs,
)
from markovia import (
    inference as inference,
)
from markovia import (
    io as io,
)
from markovia import (
    learning as learning,
)
from markovia import (
    monte_carlo as monte_carlo,
)
from markovia import (
    plotting as plotting,
)
from markovia import (
    scores as scores,
)
from markovia import (
    variational as variational,
)
from markovia.data.counting import (
    counts as counts,
)
from markovia.data.discretization import (
    Discretizer as Discretizer,
)
from markovia.errors import (
    ApproximateWarning as ApproximateWarning,
)
from markovia.errors import (
    ConvergenceWarning as ConvergenceWarning,
)
from markovia.errors import (
    CycleError as CycleError,
)
from markovia.errors import (
    DuplicateName as DuplicateName,
)
from markovia.errors import (
    ImpossibleEvidence as ImpossibleEvidence,
)
from markovia.errors import (
    IncompleteModel as IncompleteModel,
)
from markovia.errors import (
    InvalidArgument as InvalidArgument,
)
from markovia.errors import (
    InvalidEvidence as InvalidEvidence,
)
from markovia.errors import (
    InvalidGraph as InvalidGraph,
)
from markovia.errors import (
    InvalidTable as InvalidTable,
)
from markovia.errors import (
    MarkoviaError as MarkoviaError,
)
from markovia.errors import (
    ParseError as ParseError,
)
from markovia.errors import (
    TooLarge as TooLarge,
)
from markovia.errors import (
    Unanswered as Unanswered,
)
from markovia.errors import (
    UnknownArgument as UnknownArgument,
)
from markovia.errors import (
    UnknownEngine as UnknownEngine,
)
from markovia.errors import (
    UnknownFormat as UnknownFormat,
)
from markovia.errors import (
    UnknownState as UnknownState,
)
from markovia.errors import (
    UnknownVariable as UnknownVariable,
)
from markovia.errors import (
    UnsupportedModel as UnsupportedModel,
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
    Softmax as Softmax,
)
from markovia.factors.local_models.noisy import (
    NoisyAnd as NoisyAnd,
)
from markovia.factors.local_models.noisy import (
    NoisyMax as NoisyMax,
)
from markovia.factors.local_models.noisy import (
    NoisyMin as NoisyMin,
)
from markovia.factors.local_models.noisy import (
    NoisyOr as NoisyOr,
)
from markovia.factors.potentials.log_linear import (
    Feature as Feature,
)
from markovia.factors.potentials.log_linear import (
    LogLinear as LogLinear,
)
from markovia.factors.tables.conditional import (
    Conditional as Conditional,
)
from markovia.factors.tables.conditional import (
    ConditionalTable as ConditionalTable,
)
from markovia.factors.tables.evidence import (
    Jeffrey as Jeffrey,
)
from markovia.factors.tables.evidence import (
    Not as Not,
)
from markovia.factors.tables.factor import (
    Factor as Factor,
)
from markovia.factors.tables.sparse import (
    SparseFactor as SparseFactor,
)
from markovia.factors.tables.variable import (
    Variable as Variable,
)
from markovia.graphs.comparison import (
    GraphComparison as GraphComparison,
)
from markovia.graphs.comparison import (
    compare_graphs as compare_graphs,
)
from markovia.graphs.comparison import (
    shd as shd,
)
from markovia.graphs.comparison import (
    sid as sid,
)
from markovia.graphs.directed import (
    DAG as DAG,
)
from markovia.graphs.mixed import (
    MixedGraph as MixedGraph,
)
from markovia.graphs.undirected import (
    UndirectedGraph as UndirectedGraph,
)
from markovia.inference.markov_chains.diagnostics import (
    Diagnostics as Diagnostics,
)
from markovia.inference.posterior import (
    Explanation as Explanation,
)
from markovia.inference.posterior import (
    Posterior as Posterior,
)
from markovia.inference.questions.agreement import (
    Agreement as Agreement,
)
from markovia.inference.questions.evidence_conflict import (
    Conflict as Conflict,
)
from markovia.inference.questions.information_gain import (
    Information as Information,
)
from markovia.inference.questions.sensitivity import (
    Sensitivity as Sensitivity,
)
from markovia.inference.questions.sensitivity import (
    SensitivityFunction as SensitivityFunction,
)
from markovia.inference.theory.markov_chain import (
    MarkovChain as MarkovChain,
)
from markovia.inference.variational.log_z_bounds import (
    LogBounds as LogBounds,
)
from markovia.io import (
    from_networkx as from_networkx,
)
from markovia.io import (
    from_pgmpy as from_pgmpy,
)
from markovia.io import (
    from_pyagrum as from_pyagrum,
)
from markovia.io import (
    load as load,
)
from markovia.io import (
    save as save,
)
from markovia.io import (
    to_networkx as to_networkx,
)
from markovia.io import (
    to_pgmpy as to_pgmpy,
)
from markovia.io import (
    to_pyagrum as to_pyagrum,
)
from markovia.learning.fields.identifiability import (
    identifiability as identifiability,
)
from markovia.learning.incomplete.em import (
    EM as EM,
)
from markovia.learning.regression.glm import (
    GLM as GLM,
)
from markovia.learning.regression.regressions import (
    LinearRegression as LinearRegression,
)
from markovia.learning.regression.regressions import (
    LogisticRegression as LogisticRegression,
)
from markovia.learning.regression.regressions import (
    PoissonRegression as PoissonRegression,
)
from markovia.learning.regression.regressions import (
    SoftmaxRegression as SoftmaxRegression,
)
from markovia.learning.tables import (
    priors as priors,
)
from markovia.models.classifiers.label_propagation import (
    LabelPropagation as LabelPropagation,
)
from markovia.models.classifiers.mixed_naive_bayes import (
    NaiveBayes as NaiveBayes,
)
from markovia.models.classifiers.naive_bayes import (
    BernoulliNaiveBayes as BernoulliNaiveBayes,
)
from markovia.models.classifiers.naive_bayes import (
    CategoricalNaiveBayes as CategoricalNaiveBayes,
)
from markovia.models.classifiers.naive_bayes import (
    GaussianNaiveBayes as GaussianNaiveBayes,
)
from markovia.models.classifiers.network_classifier import (
    BayesianNetworkClassifier as BayesianNetworkClassifier,
)
from markovia.models.classifiers.tree_augmented import (
    TreeAugmentedNaiveBayes as TreeAugmentedNaiveBayes,
)
from markovia.models.crf.chain_crf import (
    ChainCRF as ChainCRF,
)
from markovia.models.crf.crf import (
    CRF as CRF,
)
from markovia.models.crf.feature_crf import (
    ConditionalFeature as ConditionalFeature,
)
from markovia.models.crf.feature_crf import (
    FeatureCRF as FeatureCRF,
)
from markovia.models.crf.grid_crf import (
    GridCRF as GridCRF,
)
from markovia.models.crf.neural_crf import (
    NeuralCRF as NeuralCRF,
)
from markovia.models.gallery import (
    examples as examples,
)
from markovia.models.gallery import (
    generators as generators,
)
from markovia.models.gallery import (
    images as images,
)
from markovia.models.graphical.bayesian_network import (
    BayesianNetwork as BayesianNetwork,
)
from markovia.models.graphical.factor_graph import (
    FactorGraph as FactorGraph,
)
from markovia.models.graphical.field_fit_verbs import (
    fit_log_linear as fit_log_linear,
)
from markovia.models.graphical.field_fit_verbs import (
    posterior_regularisation as posterior_regularisation,
)
from markovia.models.graphical.markov_network import (
    MarkovNetwork as MarkovNetwork,
)
from markovia.models.graphical.posterior_network import (
    NetworkPosterior as NetworkPosterior,
)
from markovia.models.graphical.posterior_network import (
    SampledPosterior as SampledPosterior,
)
from markovia.models.temporal.dynamic_network import (
    DynamicBayesianNetwork as DynamicBayesianNetwork,
)
from markovia.structure.changing.changing_network import (
    edges_over_time as edges_over_time,
)
from markovia.structure.confidence.bootstrap import (
    bootstrap_structure as bootstrap_structure,
)
from markovia.structure.confidence.edge_strength import (
    EdgeStrength as EdgeStrength,
)
from markovia.structure.confidence.edge_strength import (
    edge_strength as edge_strength,
)
from markovia.structure.confidence.model_averaging import (
    EdgeConfidence as EdgeConfidence,
)
from markovia.structure.confidence.posterior_edges import (
    EdgePosterior as EdgePosterior,
)
from markovia.structure.confidence.posterior_edges import (
    edge_posterior as edge_posterior,
)
from markovia.structure.functional.pairwise_direction import (
    PairwiseDirection as PairwiseDirection,
)
from markovia.structure.functional.pairwise_direction import (
    pairwise_direction as pairwise_direction,
)
from markovia.structure.independence_test import (
    IndependenceTest as IndependenceTest,
)
from markovia.structure.independence_test import (
    independence_test as independence_test,
)
from markovia.structure.learn import (
    learn_structure as learn_structure,
)
from markovia.structure.methods import (
    structure_methods as structure_methods,
)
from markovia.structure.score_graph import (
    score_graph as score_graph,
)
from markovia.structure.task.knowledge import (
    Knowledge as Knowledge,
)
from markovia.structure.task.result import (
    LearnedStructure as LearnedStructure,
)

__version__: str

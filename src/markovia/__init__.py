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

The names here are those that are typed first; `help(mk.BayesianNetwork)` says more about one of them.

Models
    BayesianNetwork, MarkovNetwork, FactorGraph, GaussianMarkovNetwork, DynamicBayesianNetwork, MarkovChain
    HMM, InfiniteHMM, HiddenSemiMarkov, FactorialHMM, CoupledHMM, SequenceMixture, MarkovChainMixture
    LinearStateSpace, NonlinearStateSpace, SwitchingStateSpace, ParticleFilter, StructuralSeries, ARIMA, DynamicFactor
    KMeans, FactorAnalysis, ProbabilisticPCA, ICA, RegressionMixture, MixtureOfExperts, LatentFeatures, PoissonFactorisation
    ChainCRF, MEMM, SegmentCRF, CRF, GridCRF, FeatureCRF, NeuralCRF
    NaiveBayes, GaussianNaiveBayes, BernoulliNaiveBayes, CategoricalNaiveBayes, TreeAugmentedNaiveBayes,
    BayesianNetworkClassifier, LabelPropagation
    HDP, HierarchicalLDA            topics whose number is learned; a tree of topics
    Corpus                          documents as positions of words, from texts, counts or files
    LDA, PLSI, LSI, UnigramMixture, CorrelatedTopics, DynamicTopics, LabelledLDA, SupervisedLDA, AuthorTopics, TiedTopics,
    BigramTopics, HMMLDA; DirichletProcessMixture
    Mixture, GaussianMixture, BernoulliMixture, CategoricalMixture, PoissonMixture, StudentTMixture, LatentClass
    GLM, LinearRegression, LogisticRegression, SoftmaxRegression, PoissonRegression
    StructuralModel                 equations with noise: seeing, doing, imagining
Building blocks
    Variable, Factor, Feature, ConditionalFeature
    Not, Jeffrey                    evidence that is not one state: excluded states, Jeffrey's rule
    Interval, Soft                  evidence on numbers that is not one value
    distributions                   what nodes that are numbers are distributed as
    LinearGaussian, GaussianFactor  nodes linear in their parents; the algebra of Gaussians
    Input, Flat                     a node that comes with the data; the start of a chain without preference
    local                           gates, noisy-or, logistic nodes, sparse and log-linear factors
    exponential                     distributions: exponential families and conjugate priors
    processes                       random partitions, measures and matrices: restaurants, sticks, buffets
    factors                         the algebra of tables, potentials and features
    graphs                          DAG, UndirectedGraph, MixedGraph, separation, comparisons
Files
    load, save                      any format by its suffix
    io                              formats, text, NetworkX, pgmpy and pyAgrum objects
Asking
    engines                         every inference engine with its settings
    calibrate                       does an engine hold what it promises, on this model?
    results                         the classes of answers: Posterior, Explanation, LearnedStructure, ...
    variational, monte_carlo        bounds and free energies; sampling by hand
    inference                       the problem that a model hands to an engine
Learning
    counts, EM, Discretizer, priors
    fit_log_linear, posterior_regularisation, choose_components, choose_states,
    compare_states
    learn_structure, learn_dynamic_structure, structure_methods, Knowledge, score_graph, independence_test, granger,
    pairwise_direction
    bootstrap_structure, edge_posterior, edge_strength, edges_over_time
    scores, ci_tests                what structure learning takes as score= and test=
    entity_scores                   precision, recall and F1 of labelled spans
    learning                        association, information, calibration, expected counts
Causes and effects
    causal                          identification, effects from data, counterfactuals, causal graphs
First runs
    compile                         compile everything beforehand, for containers
Examples and pictures
    examples, generators, images    networks of the textbooks, random models, pictures to segment
    plotting                        what `.plot()` calls, and Graphviz text
Errors
    MarkoviaError                   the base of every error
    errors                          all of them, each also the built-in error one expects

Names are imported on first use, so `import markovia` stays light; they are listed in `__init__.pyi`.
"""

from markovia.runtime import ports as _ports
from markovia.runtime.lazy_names import lazy_names as _lazy_names

__version__ = "0.1.0"

_ports.bind("save", "markovia.io:save")
_ports.bind("load", "markovia.io:load")
_ports.bind("loads", "markovia.io:loads")
_ports.bind("dumps", "markovia.io:dumps")
_ports.bind("formats", "markovia.io:formats")
_ports.bind("layout", "markovia.plotting.layout:screen_positions")
_ports.bind("to-bayesian-network", "markovia.models.conversions:to_bayesian_network")
_ports.bind("to-markov-network", "markovia.models.conversions:to_markov_network")
_ports.bind("to-factor-graph", "markovia.models.conversions:to_factor_graph")
_ports.bind("fit-structure", "markovia.models.learned_structure:fit_structure")
_ports.bind("query-averaged", "markovia.models.averaged_query:averaged_query")
_ports.bind("counterfactual", "markovia.causal.counterfactuals.structural_model:network_counterfactual")
_ports.bind("refute-effect", "markovia.causal.estimation.checks.refutation:refute")
_ports.bind("effect-sensitivity", "markovia.causal.estimation.checks.sensitivity:sensitivity")
_ports.bind("effect-report", "markovia.causal.estimation.checks.report:report")
_ports.bind("picture", "markovia.plotting.picture:svg")
_ports.bind("plot-edge-confidence", "markovia.plotting:plot_edge_confidence")
_ports.bind("plot-convergence", "markovia.plotting:plot_convergence")
_ports.bind("show", "markovia.studio.sharing.notebook:show")
_ports.bind("report", "markovia.studio.sharing.report:write_report")
_ports.bind("plot-dynamic", "markovia.plotting:plot_dynamic")
_ports.bind("plot-table", "markovia.plotting:plot_table")
_ports.bind("plot-bounds", "markovia.plotting:plot_bounds")
_ports.bind("plot-marginals", "markovia.plotting:plot_marginals")
_ports.bind("plot-state-path", "markovia.plotting:plot_state_path")
_ports.bind("plot-forecast", "markovia.plotting:plot_forecast")
_ports.bind("plot-hidden-states", "markovia.plotting:plot_hidden_states")
_ports.bind("plot-beliefs", "markovia.plotting:plot_beliefs")
_ports.bind("plot-effect", "markovia.plotting:plot_effect")
_ports.bind("plot-density", "markovia.plotting:plot_density")
_ports.bind("plot-model", "markovia.plotting:plot_model")
_ports.bind("plot-graph", "markovia.plotting:plot_graph")
_ports.bind("plot-trace", "markovia.plotting:plot_trace")
_ports.bind("plot-autocorrelation", "markovia.plotting:plot_autocorrelation")
_ports.bind("plot-calibration", "markovia.plotting:plot_calibration")
_ports.bind("plot-bias-variance", "markovia.plotting:plot_bias_variance")
_ports.bind("plot-comparison", "markovia.plotting:plot_comparison")
_ports.bind("plot-ranks", "markovia.plotting:plot_ranks")
_ports.bind("plot-component-choice", "markovia.plotting:plot_component_choice")
_ports.bind("plot-process", "markovia.plotting:plot_process")
_ports.bind("plot-latent-features", "markovia.plotting:plot_latent_features")
_ports.bind("plot-clusters", "markovia.plotting:plot_clusters")
_ports.bind("plot-partition", "markovia.plotting:plot_partition")
_ports.bind("plot-topics", "markovia.plotting:plot_topics")
_ports.bind("plot-topic-map", "markovia.plotting:plot_topic_map")
_ports.bind("plot-documents", "markovia.plotting:plot_documents")
_ports.bind("plot-topic-tree", "markovia.plotting:plot_topic_tree")
_ports.bind("plot-words-over-time", "markovia.plotting:plot_words_over_time")
_ports.bind("plot-topics-over-time", "markovia.plotting:plot_topics_over_time")
_ports.bind("plot-posterior", "markovia.plotting:plot_posterior")
_ports.bind("plot-draws", "markovia.plotting:plot_draws")
_ports.bind("plot-effects", "markovia.plotting:plot_effects")
_ports.bind("plot-balance", "markovia.plotting:plot_balance")
_ports.bind("plot-sensitivity", "markovia.plotting:plot_sensitivity")
_ports.bind("plot-synthetic-control", "markovia.plotting:plot_synthetic_control")
_ports.bind("plot-effect-report", "markovia.plotting:plot_effect_report")

__getattr__, __dir__ = _lazy_names(__name__)

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
    BayesianNetwork, MarkovNetwork, FactorGraph, GaussianMarkovNetwork, DynamicBayesianNetwork
    StructuralModel                 equations with noise: seeing, doing, imagining
Families of models, each behind its door; those typed first are here too
    series                          HMM, MarkovChain, LinearStateSpace, SwitchingStateSpace, ParticleFilter, ARIMA, ...
    crf                             ChainCRF, MEMM, fields on grids, segments and any graph
    mixtures                        Mixture, GaussianMixture, KMeans, DirichletProcessMixture, LatentFeatures, factors
    topics                          LDA, HDP, PLSI, LSI, CorrelatedTopics and their relatives; corpora
    deep                            RBM, VAE, GAN, Flow, Diffusion, EnergyModel: presets of networks with parameters
    classifiers                     naive Bayes, trees, networks, labels that spread along a graph
    regression                      generalised linear models
    gp                              GaussianProcess, and kernel machines as estimators
Building blocks
    Variable, Factor, Feature
    Not, Jeffrey                    evidence that is not one state: excluded states, Jeffrey's rule
    Interval, Soft                  evidence on numbers that is not one value
    distributions                   what nodes that are numbers are distributed as
    LinearGaussian, GaussianFactor  nodes linear in their parents; the algebra of Gaussians
    Input, Parameter, Flat          what comes with the data, what fit learns; no preference, as a prior or a start
    GP, Points                      a node that is a function, a Gaussian process; values of it that are known
    covariances                     how alike values of a function are at two inputs: RBF, Matern, periodic, ...
    networks, flows, guides         recipes for modules; for those that are distributions; guides that are made for a model
    local                           gates, noisy-or, logistic nodes, sparse and log-linear factors
    exponential                     distributions: exponential families and conjugate priors
    processes                       random partitions, measures and matrices: restaurants, sticks, buffets
    factors                         the algebra of tables, potentials and features
    graphs                          DAG, UndirectedGraph, MixedGraph, ChainGraph, separation, comparisons
Files
    load, save                      any format by its suffix
    io                              formats, text, NetworkX, pgmpy and pyAgrum objects
Asking
    engines                         every inference engine with its settings
    calibrate                       does an engine hold what it promises, on this model?
    results                         the classes of answers: Posterior, Explanation, LearnedStructure, ...
    variational, monte_carlo, diagnostics    bounds and free energies; sampling by hand; R-hat and ESS of any draws
    inference                       the problem that a model hands to an engine
Learning
    counts, EM, Discretizer, priors
    Training, objectives            how many weights are trained (epochs, batches, checkpoints), and what is made large
    fit_log_linear, posterior_regularisation, fit_regularised
    learn_structure, learn_dynamic_structure, structure_methods, Knowledge, score_graph, independence_test, granger,
    pairwise_direction
    bootstrap_structure, edge_posterior, edge_strength, edges_over_time
    scores, ci_tests                what structure learning takes as score= and test=
    learning                        association, information, calibration, expected counts
Causes and effects
    causal                          identification, effects from data, counterfactuals, causal graphs
Deciding
    Decision, Utility, Quadratic    nodes that are chosen, and what outcomes are worth; then `decide()`
    MDP                             a Markov decision process by its arrays
    control                         policies on data and by trial, bandits, beliefs, feedback, inverse rewards
Searching with few trials
    bayesopt                        minimize a costly function, tune an estimator (`Search`), ask and tell (`Study`)
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

_ports.bind(
    {
        "plot-*": "markovia.plotting:plot_*",
        "to-*": "markovia.models.conversions:to_*",
        "save": "markovia.io:save",
        "load": "markovia.io:load",
        "loads": "markovia.io:loads",
        "dumps": "markovia.io:dumps",
        "formats": "markovia.io:formats",
        "native-root": "markovia.io.native.native_json:native_root",
        "read-native-root": "markovia.io.native.native_json:read_root",
        "latent-projection": "markovia.graphs.kinds.projection:latent_projection",
        "is-cpdag": "markovia.graphs.kinds.equivalence:is_cpdag",
        "layout": "markovia.plotting.layout:screen_positions",
        "picture": "markovia.plotting.picture:svg",
        "show": "markovia.studio.sharing.notebook:show",
        "report": "markovia.studio.sharing.report:write_report",
        "feature-marginals": "markovia.models.graphical.log_linear_models:feature_marginals",
        "fit-structure": "markovia.models.learned_structure:fit_structure",
        "query-averaged": "markovia.models.averaged_query:averaged_query",
        "counterfactual": "markovia.causal.counterfactuals.structural_model:network_counterfactual",
        "refute-effect": "markovia.causal.estimation.checks.refutation:refute",
        "effect-sensitivity": "markovia.causal.estimation.checks.sensitivity:sensitivity",
        "effect-report": "markovia.causal.estimation.checks.report:report",
        "environment": "markovia.control.environments:environment",
        "identify-plan": "markovia.causal.identification.plans:identify_plan",
        "decision-sensitivity": "markovia.control.sensitivity:decision_sensitivity",
        "decide-numbers": "markovia.control.decisions_of_numbers:decide_numbers",
        "expected-utility-of-numbers": "markovia.control.decisions_of_numbers:expected_utility_of_numbers",
        "troubleshoot": "markovia.control.troubleshooting:troubleshoot",
    }
)

__getattr__, __dir__ = _lazy_names(
    __name__, families=("series", "crf", "mixtures", "topics", "deep", "classifiers", "regression")
)

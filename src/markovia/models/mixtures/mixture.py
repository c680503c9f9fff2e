"""Mixtures of any components."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

from markovia.models.mixtures.group_mixture import CovarianceKind, GroupMixture
from markovia.runtime.checks import LEVEL, Count, Tolerance


@dataclass(eq=False, repr=False)
class Mixture(GroupMixture):
    """A mixture: each row comes from one of several components, and which is not seen.

    Parameters
    ----------
    component
        What a component is. A name: "gaussian", "student-t", "bernoulli", "poisson", "multinomial", "categorical"; a mapping
        from columns (or tuples of columns) to such names, independent given the component; a class of
        `markovia.distributions`, or a function that returns a distribution, whose arguments begin with `params_init`; a
        member of an exponential family (`mk.exponential`); a `BayesianNetwork`; an `HMM` or a `MarkovChain`, where rows are
        sequences; another mixture; or any model with `fit(X, sample_weight=)` and `log_prob(X)`.
    n_components
        How many there are.
    covariance_type
        What may vary between Gaussian and Student-t components: "full", "diag", "tied" or "spherical"; or "low-rank",
        Gaussians with `n_factors` factors and independent noise.
    method
        "em"; "hard" gives each row wholly to its best component; "online" learns from batches of rows. "vb" (variational
        Bayes), "gibbs" and "collapsed-gibbs" have a posterior over everything, `posterior_`: for "gaussian" ("full" and
        "diag"), "bernoulli", "multinomial" and "poisson"; parameters are then posterior means.
    prior
        What is believed of components before, by name, for the most probable parameters instead of the most likely: "mean",
        "strength", "scale", "df" (normal-inverse-Wishart) of Gaussians, "a", "b" (beta) of Bernoullis, "shape", "rate"
        (gamma) of Poissons, "concentration" (Dirichlet) of categories.
    weight_concentration
        The concentration of the Dirichlet prior of the weights; 1 for none.
    init_params
        Where learning begins: "auto" tries several clusterings on some rows, each for some steps, and goes on with the
        best; "kmeans", "k-means++", "random" and "random_from_data" as in scikit-learn, on all rows.
    weights_init, params_init
        Weights and parameters (by name, as in `component_params_`) to begin with instead.
    n_init, n_jobs
        Runs from different starts, of which the best is kept, and in how many processes.
    max_iter, tol
        Steps at most (passes over the rows for "online"); the gain of the objective a row below which learning stops.
    reg_covar
        The share of each column's variance that is added to the variances of Gaussians, so that none vanishes.
    batch_size, learning_decay, learning_offset
        Rows of a batch of "online"; batch t moves averages by (t + offset) ** -decay.
    warm_start
        Whether `fit` goes on from what is learned.
    time_limit
        Seconds after which the best so far is kept. Ctrl-C does the same.
    random_state, progress
        The seed of starts; whether to show a bar, None for long runs on a terminal.

    Attributes
    ----------
    weights_
        The probability of each component.
    n_iter_, converged_, lower_bound_, history_
        Steps of the best run; whether the last gained less than `tol`; the objective a row, at last and at each step.
    posterior_ : PartitionPosterior
        Draws of the rows' components, for "vb" and the samplers.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> rare = np.where(np.arange(400)[:, None] < 100, 0.9, 0.1)
    >>> answers = (rng.random((400, 5)) < rare).astype(int)
    >>> mixture = Mixture("bernoulli", 2, random_state=0).fit(answers)
    >>> order = mixture.weights_.argsort()
    >>> mixture.weights_[order].round(1).tolist(), mixture.component_params_["probs"][order, 0].round(1).tolist()
    ([0.2, 0.8], [0.9, 0.1])
    """

    component: Any = "gaussian"
    n_components: Count = 2
    _: KW_ONLY
    covariance_type: CovarianceKind = "full"
    n_factors: Count = 1
    prior: Mapping[str, Any] | None = None
    params_init: Mapping[str, Any] | None = None
    reg_covar: Tolerance = 1e-6
    batch_size: Count = 1024
    learning_decay: Annotated[float, LEVEL] = 0.7
    learning_offset: Tolerance = 10.0
    warm_start: bool = False

"""What travels about jobs and causal questions: the orders that start work, and the answers to what is asked at once."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from markovia.studio.documents.messages import Given, Name, Names

Edge = tuple[Name, Name]
Seed = Annotated[int, Meta(ge=0, le=2**32 - 1)]


class Order(Struct, forbid_unknown_fields=True, tag_field="kind"):
    """A body that starts a job, of the kind it says."""


class Ask(Struct, forbid_unknown_fields=True):
    """A body that is answered at once."""


class LearnStructure(Order, tag="structure", kw_only=True):
    """A graph from a table; `into` is an open model of the same variables that takes it as an undoable step."""

    data: Name
    method: Name = "hill-climb"
    score: Name | None = None
    test: Name | None = None
    alpha: Annotated[float, Meta(gt=0, lt=1)] | None = None
    required: list[Edge] = []
    forbidden: list[Edge] = []
    tiers: list[Names] = []
    max_parents: Annotated[int, Meta(ge=0, le=1000)] | None = None
    columns: Names | None = None
    continuous: Names | None = None
    missing: Literal["error", "drop"] = "error"
    seed: Seed = 0
    time_limit: Annotated[float, Meta(gt=0, le=86_400)] | None = None
    options: dict[Name, Any] = {}
    bootstrap: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    prior: Literal["none", "bdeu", "k2", "laplace"] = "none"
    into: Name | None = None


class LearnParameters(Order, tag="parameters", kw_only=True):
    """The parameters of an open network from a table, as an undoable step; by EM where cells are missing."""

    model: Name
    data: Name
    prior: Literal["none", "bdeu", "k2", "laplace"] = "none"
    missing: Literal["em", "drop", "error"] = "em"
    restarts: Annotated[int, Meta(ge=1, le=100)] = 1
    latent: Names = []
    seed: Seed = 0


class SmoothSeries(Order, tag="series", kw_only=True):
    """Hidden states of a column, smoothed, and a forecast: an HMM or a structural series."""

    data: Name
    column: Name
    model: Literal["hmm", "trend"] = "trend"
    states: Annotated[int, Meta(ge=1, le=20)] = 2
    trend: Literal["local level", "local linear trend", "smooth trend", "random walk"] = "local linear trend"
    seasonal: Annotated[int, Meta(ge=2, le=366)] | None = None
    cycle: bool = False
    steps: Annotated[int, Meta(ge=1, le=500)] = 12
    level: Annotated[float, Meta(gt=0, lt=1)] = 0.95
    seed: Seed = 0


class Regression(Ask):
    """A regression of a column of a table on others."""

    data: Name
    outcome: Name
    predictors: Names
    family: Literal["normal", "logistic", "poisson"] = "normal"


class DrawPosterior(Order, tag="posterior", kw_only=True):
    """Draws of a Bayesian model by NUTS: exactly one of an example, a regression, or an open model with findings."""

    example: Name | None = None
    regression: Regression | None = None
    model: Name | None = None
    given: Given = {}
    draws: Annotated[int, Meta(ge=10, le=100_000)] = 1000
    warmup: Annotated[int, Meta(ge=10, le=100_000)] = 1000
    chains: Annotated[int, Meta(ge=1, le=16)] = 4
    seed: Seed = 0
    target_accept: Annotated[float, Meta(gt=0, lt=1)] = 0.8


class FindTopics(Order, tag="topics", kw_only=True):
    """Topics of texts: a text file with a document a line, or a column of a table."""

    data: Name
    column: Name | None = None
    components: Annotated[int, Meta(ge=1, le=200)] = 10
    words: Annotated[int, Meta(ge=1, le=100)] = 12
    stop_words: Literal["english"] | None = "english"
    min_documents: Annotated[int, Meta(ge=1, le=100_000)] = 1
    iterations: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    seed: Seed = 0


class EncodeRows(Order, tag="codes", kw_only=True):
    """A variational autoencoder of a table's columns of numbers, or of scikit-learn's digits, and what it is asked."""

    data: Name | None = None
    columns: Names = []
    latent: Annotated[int, Meta(ge=1, le=64)] = 8
    epochs: Annotated[int, Meta(ge=1, le=10_000)] = 60
    missing: Annotated[float, Meta(gt=0, lt=1)] = 0.5
    seed: Seed = 0


class EstimateEffect(Order, tag="effect", kw_only=True):
    """An effect from a table and the graph of an open model, with attempts to refute it."""

    model: Name
    data: Name
    treatment: Name
    outcome: Name
    latent: Names = []
    method: Name = "auto"
    estimand: Literal["ate", "att", "atc"] = "ate"
    measure: Literal["difference", "ratio", "odds ratio"] = "difference"
    control: str | None = None
    treated: str | None = None
    missing: Literal["error", "drop", "indicator"] = "error"
    judge: bool = True
    seed: Seed = 0


Start = (
    LearnStructure | LearnParameters | SmoothSeries | DrawPosterior | FindTopics | EncodeRows | EstimateEffect
)  # by their kind


class AskBatch(Ask):
    """Posteriors of some variables for every row of a table."""

    data: Name
    targets: Annotated[list[Name], Meta(min_length=1, max_length=100)]


class AskColumns(Ask):
    """A network of columns without edges, to draw knowledge on; `continuous` are numbers."""

    columns: Annotated[list[Name], Meta(min_length=1, max_length=2000)]
    continuous: Names = []


class AskIdentify(Ask):
    """Whether an effect can be had from what is observed."""

    treatment: Annotated[list[Name], Meta(min_length=1, max_length=20)]
    outcome: Annotated[list[Name], Meta(min_length=1, max_length=20)]
    given: Names = []
    latent: Names = []


class AskCounterfactual(Ask):
    """What would have been: what is given of one unit, what is set otherwise, and what is asked about.

    `facts` is a former name of `given`.
    """

    targets: Annotated[list[Name], Meta(min_length=1, max_length=50)]
    given: Given = {}
    facts: Given = {}
    do: dict[Name, str | float] = {}
    mechanism: Literal["monotone", "gumbel", "independent"] | None = None


class Method(Struct):
    """A method of structure learning: what it takes, whether all columns are numbers, whether cells may be missing."""

    name: str
    group: str
    takes: str
    numbers: bool
    gaps: bool


class LearningMethods(Struct):
    """What there is to choose from."""

    methods: list[Method]
    scores: list[str]
    tests: list[str]
    priors: list[str]


class BayesianExample(Struct):
    """A Bayesian model that comes with the studio."""

    name: str
    title: str


class Step(Struct):
    """A step of a derivation."""

    equation: str
    reason: str
    separations: list[str]


class Instrument(Struct):
    """An instrument, and what it needs given."""

    name: str
    given: list[str]


class Identified(Struct, kw_only=True):
    """The formula of an effect and the way to it, or why there is none; and the sets that do."""

    identified: bool
    why: str
    rule: str | None = None
    formula: str | None = None
    latex: str | None = None
    hedge: list[list[str]] | None = None
    assumptions: list[str] = []
    derivation: list[Step] = []
    adjustment: list[str] | None = None
    mediators: list[str] = []
    adjustment_sets: list[list[str]] = []
    front_door_sets: list[list[str]] = []
    instruments: list[Instrument] = []


class World(Struct, omit_defaults=True):
    """One target in the other world: probabilities of its states, bounds on them, or mean and spread of a number."""

    name: str
    states: list[str] | None = None
    p: list[float] | None = None
    low: list[float] | None = None
    high: list[float] | None = None
    sharp: bool | None = None
    mean: float | None = None
    sd: float | None = None


class Worlds(Struct):
    """Answers about the other world."""

    answers: list[World]
    note: str

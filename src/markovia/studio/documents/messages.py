"""What travels between the page and the server, as types: bodies are checked against them, and the description made of them.

States travel as text, names as text; numbers that are not finite are null.
"""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

Name = Annotated[str, Meta(min_length=1, max_length=1000)]
Names = Annotated[list[Name], Meta(max_length=100_000)]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Number = float | int


class Strict(Struct, forbid_unknown_fields=True):
    """A body: a field that is not known is an error, not ignored."""


class Finding(Strict, omit_defaults=True):
    """What is known of a variable: exactly one of a state, states ruled out, likelihoods, a value or an interval."""

    state: str | UnsetType = UNSET
    excluded: Annotated[list[str], Meta(min_length=1)] | UnsetType = field(default=UNSET, name="not")
    weights: dict[str, Number] | UnsetType = UNSET
    value: Number | UnsetType = UNSET
    interval: tuple[Number | None, Number | None] | UnsetType = UNSET


Cell = str | float | int | bool | None
Given = dict[Name, Finding | Cell]
"""What is known, by variable: a finding, or plainly its state or number; null is not known."""


class Question(Strict, kw_only=True):
    """What every question says: findings, interventions, and optionally the engine to ask."""

    given: Given = {}
    do: dict[Name, str | Number] = {}
    engine: Name = "auto"


class AskMarginals(Question):
    """Posteriors of all variables, or of those named."""

    targets: Names | None = None


class AskQuery(Question):
    """The joint posterior of some variables."""

    targets: Annotated[list[Name], Meta(min_length=1, max_length=20)]


class AskMap(Question):
    """The m most probable explanations."""

    targets: Names | None = None
    m: Annotated[int, Meta(ge=1, le=1000)] = 1


class AskSeparation(Strict):
    """Whether two sets are independent given a third."""

    a: Annotated[list[Name], Meta(min_length=1, max_length=100)]
    b: Annotated[list[Name], Meta(min_length=1, max_length=100)]
    given: Names = []


class AskBlanket(Strict):
    """The Markov blanket of a variable."""

    name: Name


class AskNextTest(Question):
    """How much each possible finding tells about the target."""

    target: Name
    candidates: Names | None = None
    costs: dict[Name, Annotated[float, Meta(gt=0)]] | None = None


class AskSensitivity(Question):
    """Which entries of the tables a posterior probability depends on; of a number, what its mean depends on."""

    target: Name
    state: str | None = None
    top: Annotated[int, Meta(ge=1, le=10_000)] = 20


class AskShading(Question):
    """One number a variable, to colour the graph by."""

    measure: Literal["entropy", "information"]
    target: Name | None = None


class AskConflict(Question):
    """Whether the findings fit together."""


class AskSample(Question):
    """Rows drawn from the model."""

    n: Annotated[int, Meta(ge=1, le=100_000)]
    seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 0


class AskCompare(Strict):
    """Another open model."""

    other: Name


class Info(Struct):
    """How an answer was obtained."""

    engine: str
    exact: bool
    converged: bool = True
    error: float | None = None
    seconds: float | None = None
    log_evidence: float | None = None
    note: str = ""


class Marginal(Struct, omit_defaults=True):
    """A posterior: probabilities in the order of the states, or the summary and density of a number."""

    p: list[float] | None = None
    mean: float | None = None
    sd: float | None = None
    quantiles: dict[str, float | None] | None = None
    curve: list[tuple[float | None, float | None]] | None = None


class Marginals(Struct):
    """Posteriors by name."""

    marginals: dict[str, Marginal]
    log_evidence: float | None
    info: Info


class Joint(Struct):
    """A joint posterior: `p` is flat, the last target's states fastest."""

    targets: list[str]
    states: list[list[str]]
    p: list[float]
    info: Info


class Best(Struct):
    """One explanation; `p` is its probability given the findings."""

    states: dict[str, str | float]
    log_prob: float | None
    p: float | None


class Explanations(Struct):
    """Explanations, best first."""

    best: list[Best]
    info: Info


class Separation(Struct):
    """Whether the sets are independent, the trails that are open, and the reasons in words."""

    independent: bool
    trails: list[list[str]]
    why: list[str]


class Blanket(Struct):
    """A Markov blanket by role; neighbours are those along edges without a direction."""

    parents: list[str]
    children: list[str]
    spouses: list[str]
    neighbours: list[str] = []


class Test(Struct):
    """A possible finding: what it tells in bits, its cost, and bits per cost."""

    name: str
    information: float
    cost: float
    per_cost: float


class NextTest(Struct):
    """Possible findings, the best first."""

    tests: list[Test]
    info: Info


class SensitivityRow(Struct):
    """An entry of a table: the answer where the entry is a tenth lower or higher, and the derivative."""

    name: str
    row_label: str
    state: str
    value: float
    low: float | None
    high: float | None
    derivative: float


class Tornado(Struct):
    """Entries by how much they move the answer, which is `probability` (or a number's mean) as the model stands."""

    probability: float
    rows: list[SensitivityRow]
    info: Info


class Shading(Struct):
    """One number a variable."""

    values: dict[str, float]
    unit: str = "bits"


class ConflictPart(Struct):
    """What one finding adds to the conflict."""

    name: str
    part: float | None


class Conflict(Struct):
    """How much findings disagree, in nats; null is infinite: they are impossible together."""

    conflict: float | None
    findings: list[ConflictPart]
    note: str


class Sample(Struct):
    """Drawn rows."""

    columns: list[str]
    rows: list[list[str | float | None]]


class Comparison(Struct):
    """Edges of the other graph that are missing here, edges only here, and those the other way round."""

    added: list[tuple[str, str]]
    missing: list[tuple[str, str]]
    reversed: list[tuple[str, str]]
    shared: list[tuple[str, str]]
    distance: int


class ViewNode(Struct):
    """A node as it is drawn; `states` is null for a number and for a utility."""

    name: str
    states: list[str] | None
    kind: str
    x: float
    y: float
    width: float
    height: float
    note: str = ""


class ViewEdge(Struct, rename={"source": "from", "target": "to"}):
    """An edge as it is drawn: "circle" has marks that nothing settles at its ends, "circle-arrow" only at its beginning.

    "information" leads to a decision from what it sees.
    """

    source: str
    target: str
    kind: Literal["arrow", "line", "both", "circle", "circle-arrow", "information"] = "arrow"


class Cost(Struct):
    """What an exact answer needs: entries of the junction tree's tables, and whether that is within the limit."""

    estimate: float
    exact: bool


class View(Struct):
    """A document as it is drawn."""

    id: str
    name: str
    kind: str
    nodes: list[ViewNode]
    edges: list[ViewEdge]
    notes: str = ""
    changed: bool = False
    undo: bool = False
    redo: bool = False
    file: str | None = None
    cost: Cost | None = None
    revision: int = 0


class NodeParent(Struct):
    """A parent of a node; `states` is null for a number."""

    name: str
    states: list[str] | None


class Node(Struct):
    """A node with its distribution.

    `rows` has one row a combination of the states of the parents, the last parent fastest; null where the table is too
    large to show or there is none; of a utility each row is one amount. `form` holds the parameters of a noisy-or or of
    linear Gaussians.
    """

    name: str
    kind: str
    states: list[str] | None
    parents: list[NodeParent]
    rows: list[list[float]] | None
    row_labels: list[list[str]] | None
    form: dict[str, Any] | None
    text: str
    editable: bool
    note: str = ""
    counts: list[list[float]] | None = None


class Open(Strict, omit_defaults=True):
    """What to open: exactly one of an example, a file of the folder, a new empty model, or an autosaved document."""

    example: Name | None = None
    file: Name | None = None
    new: Name | None = None
    recover: Name | None = None
    steps: Annotated[int, Meta(ge=1, le=200)] = 4


class SaveAs(Strict):
    """Where to save, inside the folder; the suffix says the format unless it is named."""

    file: Name
    format: Name | None = None


class Saved(Struct):
    """The file that was written."""

    file: str


class Done(Struct):
    """Nothing more to say."""


class Summary(Struct):
    """An open document."""

    id: str
    name: str
    kind: str
    nodes: int
    edges: int
    changed: bool
    file: str | None = None
    revision: int = 0


class Example(Struct):
    """A bundled model."""

    name: str
    title: str
    nodes: int
    kind: str


class FormatName(Struct):
    """A file format."""

    suffix: str
    name: str
    title: str


class Formats(Struct):
    """The formats that are read and written."""

    read: list[FormatName]
    write: list[FormatName]


class Recovered(Struct):
    """An autosaved document that was never saved; `when` is seconds since 1970."""

    id: str
    name: str
    when: float


class Start(Struct):
    """What the page shows before a model is open."""

    version: str
    examples: list[Example]
    formats: Formats
    folder: list[str]
    recent: list[str]
    recovered: list[Recovered]
    open: list[str]


class Health(Struct):
    """Whether the server lives."""

    status: str
    version: str


class Problem(Struct, omit_defaults=True):
    """What went wrong, in one sentence; `estimate` is the cost of a question that was refused for it."""

    error: str
    kind: str
    estimate: dict[str, float | None] | None = None
    cycle: list[str] | None = None

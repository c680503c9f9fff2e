"""What `BayesianNetwork`, `MarkovNetwork` and `FactorGraph` can all do: the verbs, side by side over one base."""

from markovia.models.graphical.data_rows.row_verbs import RowVerbs
from markovia.models.graphical.dependence import DependenceVerbs
from markovia.models.graphical.exact_cost import ExactCostVerbs
from markovia.models.graphical.question_verbs import QuestionVerbs
from markovia.models.graphical.screen_verbs import ScreenVerbs


class Model(RowVerbs, QuestionVerbs, DependenceVerbs, ExactCostVerbs, ScreenVerbs):
    """A model to ask questions of, whatever its graph."""

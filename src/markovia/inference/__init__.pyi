"""The names that `markovia.inference` hands out, each with its home."""

from markovia.inference.engine import (
    Engine as Engine,
)
from markovia.inference.engine import (
    engine_names as engine_names,
)
from markovia.inference.engine import (
    get_engine as get_engine,
)
from markovia.inference.exact.enumeration import (
    Enumeration as Enumeration,
)
from markovia.inference.exact.variable_elimination import (
    VariableElimination as VariableElimination,
)
from markovia.inference.local_search.icm import (
    ConditionalModes as ConditionalModes,
)
from markovia.inference.local_search.icm import (
    iterated_conditional_modes as iterated_conditional_modes,
)
from markovia.inference.posterior import (
    Explanation as Explanation,
)
from markovia.inference.posterior import (
    Posterior as Posterior,
)
from markovia.inference.problem import (
    Problem as Problem,
)
from markovia.inference.result import (
    Info as Info,
)

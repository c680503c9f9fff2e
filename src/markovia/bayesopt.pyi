"""The names that `markovia.bayesopt` hands out, each with its home."""

from markovia.models.bayesopt.search import Search as Search
from markovia.models.bayesopt.space import Space as Space
from markovia.models.bayesopt.study import Study as Study, Trial as Trial, minimize as minimize

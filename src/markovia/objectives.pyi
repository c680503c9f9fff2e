from markovia.learning.neural.elbo import (
    ELBO as ELBO,
    ImportanceWeighted as ImportanceWeighted,
)
from markovia.learning.neural.wake_sleep import (
    ReweightedWakeSleep as ReweightedWakeSleep,
    WakeSleep as WakeSleep,
)

"""The names that `markovia.crf` hands out, each with its home."""

from markovia.data.text.lexicon import Lexicon as Lexicon
from markovia.learning.conditional_fields.unrolled_inference import unrolled_marginals as unrolled_marginals
from markovia.learning.prediction.entity_scores import entity_scores as entity_scores
from markovia.models.crf.chain_crf import ChainCRF as ChainCRF
from markovia.models.crf.crf import CRF as CRF
from markovia.models.crf.feature_crf import ConditionalFeature as ConditionalFeature, FeatureCRF as FeatureCRF
from markovia.models.crf.grid_crf import GridCRF as GridCRF
from markovia.models.crf.hidden_state_crf import (
    HiddenStateCRF as HiddenStateCRF,
    HiddenStateGridCRF as HiddenStateGridCRF,
)
from markovia.models.crf.memm import MEMM as MEMM
from markovia.models.crf.neural_crf import NeuralCRF as NeuralCRF
from markovia.models.crf.segment_crf import SegmentCRF as SegmentCRF
from markovia.models.crf.structured_svm import StructuredSVM as StructuredSVM

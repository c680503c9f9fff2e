"""The names that `markovia.topics` hands out, each with its home."""

from markovia.data.text.corpus import Corpus as Corpus
from markovia.models.topics.ailments import AilmentTopics as AilmentTopics
from markovia.models.topics.authors import AuthorTopics as AuthorTopics
from markovia.models.topics.base import SampledDocuments as SampledDocuments
from markovia.models.topics.bigram import BigramTopics as BigramTopics
from markovia.models.topics.correlated import CorrelatedTopics as CorrelatedTopics
from markovia.models.topics.dynamic import DynamicTopics as DynamicTopics
from markovia.models.topics.hdp import HDP as HDP
from markovia.models.topics.hierarchical_lda import HierarchicalLDA as HierarchicalLDA
from markovia.models.topics.hmm_lda import HMMLDA as HMMLDA
from markovia.models.topics.labelled import LabelledLDA as LabelledLDA
from markovia.models.topics.lda import LDA as LDA
from markovia.models.topics.lsi import LSI as LSI
from markovia.models.topics.plsi import PLSI as PLSI
from markovia.models.topics.poisson_factorisation import PoissonFactorisation as PoissonFactorisation
from markovia.models.topics.supervised import SupervisedLDA as SupervisedLDA
from markovia.models.topics.tied import TiedTopics as TiedTopics
from markovia.models.topics.unigrams import UnigramMixture as UnigramMixture
from markovia.structure.undirected.cooccurrence import cooccurrence_network as cooccurrence_network

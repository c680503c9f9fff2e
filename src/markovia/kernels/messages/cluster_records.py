"""Clusters, separators and messages as kernels take them.

A cluster is a list of *entries*: the configurations of its variables that have any weight, each a whole number in mixed
radix (its *key*), with a weight. A separator is a list of configurations too. A *slot* is one cluster's end of one
separator.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.runtime.array_types import Array, Ints


class ClusterEntries(NamedTuple):
    """The entries of clusters and what they say about separators."""

    entry_ptr: Ints  # (clusters + 1,): where a cluster's entries begin
    base: Array  # (entries,): their weights
    slot_ptr: Ints  # (clusters + 1,): where its slots begin
    slot_at: Ints  # (slots,): where the tables of a slot begin, in `inbox` and `said`
    places_at: Ints  # (clusters + 1,): where its part of `places` begins
    places: NDArray[np.int32]  # (entries of a cluster times its slots, ...): places in separators


class SeparatorSlots(NamedTuple):
    """Which slots meet at a separator, and how what they say is combined."""

    slot_sep: Ints  # (slots,): the separator of a slot
    slot_cluster: Ints  # (slots,): its cluster
    sep_ptr: Ints  # (separators + 1,): where the slots of each separator begin
    sep_slots: Ints  # (slots,)
    sep_at: Ints  # (separators + 1,): where its tables begin, in `belief` and `weight`
    power: Array  # (separators,): its clusters plus its counting number
    slack: Array  # (separators,): what is added to that, with the present belief, where it would be too small


class ClusterTalk(NamedTuple):
    """What clusters are told and what they say, by slot; beliefs of separators and factors on them, by separator."""

    inbox: Array
    said: Array
    belief: Array
    weight: Array


class VariableHomes(NamedTuple):
    """Where marginals are read off: the keys of all entries, and by cluster the variables it is home to."""

    keys: Ints  # (entries,): the configuration of each entry
    ptr: Ints  # (clusters + 1,): where a cluster's variables begin
    divisor: Ints  # (variables,): which digit of a key a variable is
    card: Ints  # (variables,): its states
    at: Ints  # (variables,): where its marginal begins


class RegionLinks(NamedTuple):
    """Messages from regions to regions inside them."""

    parent: Ints  # (links,): the region that sends
    child: Ints  # (links,): the one inside it
    message_at: Ints  # (links,): where its message begins, as long as the child has entries
    down_at: Ints  # (links,): where its part of `down` begins
    down: NDArray[np.int32]  # (parents' entries,): the entry of the child that each one belongs to

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
    """The entries of clusters and what they say about separators.

    | field | shape | holds |
    |---|---|---|
    | entry_ptr | (clusters + 1,) | where a cluster's entries begin |
    | base | (entries,) | their weights |
    | slot_ptr | (clusters + 1,) | where its slots begin |
    | slot_at | (slots,) | where the tables of a slot begin, in `inbox` and `said` |
    | places_at | (clusters + 1,) | where its part of `places` begins |
    | places | (entries of a cluster times its slots, ...) | to which configuration of the separator an entry belongs |
    """

    entry_ptr: Ints
    base: Array
    slot_ptr: Ints
    slot_at: Ints
    places_at: Ints
    places: NDArray[np.int32]


class SeparatorSlots(NamedTuple):
    """Which slots meet at a separator, and how what they say is combined.

    | field | shape | holds |
    |---|---|---|
    | slot_sep, slot_cluster | (slots,) | the separator and the cluster of a slot |
    | sep_ptr, sep_slots | (separators + 1,), (slots,) | the slots of each separator |
    | sep_at | (separators + 1,) | where its tables begin, in `belief` and `weight` |
    | power | (separators,) | its clusters plus its counting number |
    | slack | (separators,) | what is added to that, with the present belief, where it would be too small |
    """

    slot_sep: Ints
    slot_cluster: Ints
    sep_ptr: Ints
    sep_slots: Ints
    sep_at: Ints
    power: Array
    slack: Array


class ClusterTalk(NamedTuple):
    """What clusters are told and what they say, by slot; beliefs of separators and factors on them, by separator."""

    inbox: Array
    said: Array
    belief: Array
    weight: Array


class VariableHomes(NamedTuple):
    """Where marginals are read off: the keys of all entries, and by cluster the variables it is home to.

    | field | shape | holds |
    |---|---|---|
    | keys | (entries,) | the configuration of each entry |
    | ptr | (clusters + 1,) | where a cluster's variables begin |
    | divisor, card | (variables,) | which digit of a key a variable is, and its states |
    | at | (variables,) | where its marginal begins |
    """

    keys: Ints
    ptr: Ints
    divisor: Ints
    card: Ints
    at: Ints


class RegionLinks(NamedTuple):
    """Messages from regions to regions inside them.

    | field | shape | holds |
    |---|---|---|
    | parent, child | (links,) | the two regions |
    | message_at | (links,) | where its message begins, as long as the child has entries |
    | down_at, down | (links,), (parents' entries,) | which entry of the child each entry of the parent belongs to |
    """

    parent: Ints
    child: Ints
    message_at: Ints
    down_at: Ints
    down: NDArray[np.int32]

"""Log-linear models of n variables as kernels take them."""

from typing import NamedTuple

from markovia.runtime.array_types import Array, Ints


class FieldArrays(NamedTuple):
    """The cells of a log-linear model: those of single variables first, then tables of two or more, one after the other.

    | field | shape | holds |
    |---|---|---|
    | cards, starts | (n,), (n + 1,) | states of each variable, and where its single cells begin |
    | scope_ptr, scope, strides | (tables + 1,), (edges,), (edges,) | the variables of each table and their strides |
    | table_ptr | (tables + 1,) | where a table begins after the single cells |
    | edge_ptr, edge_factor, edge_stride | (n + 1,), (edges,), (edges,) | the tables of each variable, its strides there |
    """

    cards: Ints
    starts: Ints
    scope_ptr: Ints
    scope: Ints
    strides: Ints
    table_ptr: Ints
    edge_ptr: Ints
    edge_factor: Ints
    edge_stride: Ints


class FieldBlankets(NamedTuple):
    """Variables that are counted by the joint states of their neighbours: who they are, their neighbours and strides."""

    listed: Ints
    ptr: Ints
    members: Ints
    stride: Ints


class FieldCases(NamedTuple):
    """The joint states of neighbours that some row shows, variable by variable of `FieldBlankets.listed`.

    | field | shape | holds |
    |---|---|---|
    | listed | (variables,) | the variables |
    | ptr | (variables + 1,) | where their cases begin |
    | place_ptr, places | (variables + 1,), ... | for each case and table where its entries begin, the own state at 0 |
    | count_ptr, counts | (variables,), ... | for each case and own state the weight of its rows |
    """

    listed: Ints
    ptr: Ints
    place_ptr: Ints
    places: Ints
    count_ptr: Ints
    counts: Array

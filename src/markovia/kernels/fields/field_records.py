"""Log-linear models of n variables as kernels take them."""

from typing import NamedTuple

from markovia.runtime.array_types import Array, Ints


class FieldArrays(NamedTuple):
    """The cells of a log-linear model: those of single variables first, then tables of two or more, one after the other."""

    cards: Ints  # (n,): states of each variable
    starts: Ints  # (n + 1,): where its single cells begin
    scope_ptr: Ints  # (tables + 1,): where the variables of each table begin
    scope: Ints  # (edges,)
    strides: Ints  # (edges,)
    table_ptr: Ints  # (tables + 1,): where a table begins after the single cells
    edge_ptr: Ints  # (n + 1,): where the tables of each variable begin
    edge_factor: Ints  # (edges,)
    edge_stride: Ints  # (edges,): its stride there


class FieldBlankets(NamedTuple):
    """Variables that are counted by the joint states of their neighbours: who they are, their neighbours and strides."""

    listed: Ints
    ptr: Ints
    members: Ints
    stride: Ints


class FieldCases(NamedTuple):
    """The joint states of neighbours that some row shows, variable by variable of `FieldBlankets.listed`."""

    listed: Ints  # (variables,)
    ptr: Ints  # (variables + 1,): where their cases begin
    place_ptr: Ints  # (variables + 1,): where their part of `places` begins
    places: Ints  # for each case and table where its entries begin, the own state at 0
    count_ptr: Ints  # (variables,): where their part of `counts` begins
    counts: Array  # for each case and own state the weight of its rows

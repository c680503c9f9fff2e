"""What kernels of structure learning work on; the shape of each array stands beside it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.runtime.array_types import Array, Ints


class PackedRows(NamedTuple):
    """Rows of discrete columns to count by codes or, 64 at a time, by bits (`bit_planes.packed_rows`)."""

    codes: NDArray[np.uint16]  # (columns, rows)
    planes: NDArray[np.uint64]  # (planes, words): the rows that have a state; no words with weights
    plane_start: Ints  # (columns + 1,): the first plane of each column, of its state 1
    weights: Array  # (rows,), or none
    cards: Ints  # (columns,): how many states there are
    xlogx: Array  # (counts,): k log k of whole k; none where rows are weighted


class TableQuestions(NamedTuple):
    """Questions q "x and y given a set": columns `xs[q]`, `ys[q]` and `given[starts[q]:starts[q + 1]]`."""

    xs: Ints
    ys: Ints
    starts: Ints
    given: Ints


class TableRoom(NamedTuple):
    """Room to count one table."""

    cells: Array  # (cells of the largest table,): the counts, strata first
    rows: Array  # (most states,): margins of a stratum
    columns: Array
    places: NDArray[np.uint32]  # (BLOCK,): the cells of a stretch of rows
    masks: NDArray[np.uint64]  # (PLANE_CELLS + 2, words): the rows of each stratum as bits
    keys: Ints  # (rows,): configurations of a set that has too many for a dense table, or none
    held_keys: Ints  # (a power of two,): their numbers, by hashing
    held_numbers: Ints


class FamilyGroups(NamedTuple):
    """Families that share all parents but one.

    Group g is the child `child[g]` with the parents `base[base_start[g]:base_start[g + 1]]`; its families have one more
    parent each, `further[first[g]:first[g + 1]]`, or none where that is -1. Without a child (-1) a group is sets of columns.
    """

    child: Ints
    base_start: Ints
    base: Ints
    first: Ints
    further: Ints


class FamilyRoom(NamedTuple):
    """Room to score the families of n rows; a cell here is a configuration of base and child that occurs."""

    configs: NDArray[np.int32]  # (n + 1,) as the next seven: the configuration of the base in each row
    rows: NDArray[np.int32]  # rows sorted by cell
    spare: NDArray[np.int32]  # to sort with
    copied: NDArray[np.int32]
    every: NDArray[np.int32]  # 0, 1, ...
    cell_start: NDArray[np.int32]  # the first of a cell's rows
    cell_config: NDArray[np.int32]  # its configuration of the base
    cell_mask: NDArray[np.int32]  # its place in `masks`, or -1
    cell_weight: Array  # (n,): the weight of its rows
    starts: NDArray[np.int32]  # (keys,): where each key begins in counting sorts
    keys: Ints  # (a power of two,): numbers of configurations, by hashing
    numbers: NDArray[np.int32]
    counts: Array  # (most states,) of zeros: counts by state in a cell
    totals: Array  # the same in a configuration of all parents
    ticks: Ints  # whole counts
    masks: NDArray[np.uint64]  # (large cells, words): their rows as bits


class ParentSetLosses(NamedTuple):
    """Variable x has the parent sets `masks[start[x]:start[x + 1]]`, one bit a variable, by increasing loss.

    The loss is what a set's score lacks to the variable's best.
    """

    start: Ints
    masks: Ints
    losses: Array


class PatternDatabase(NamedTuple):
    """Group k is variables `shift[k]..shift[k] + size[k]`; the losses of placing its subsets last begin at `start[k]`."""

    shift: Ints
    size: Ints
    start: Ints
    losses: Array


class SubsetNodes(NamedTuple):
    """Sets of variables that A* reached, and a heap of those that are open."""

    mask: Ints  # (room,) as the next four: the set of each node
    done: NDArray[np.uint8]  # whether it was expanded
    cost: Array  # its least loss so far
    bound: Array  # a bound on what is left
    origin: NDArray[np.int32]  # the node it was reached from
    slots: NDArray[np.int32]  # (a power of two,): nodes by hashing, or -1
    heap_f: Array  # (2 room,): cost and bound together
    heap_i: NDArray[np.int32]  # the node
    state: Ints  # (4,): numbers of nodes and of heap entries, the goal's node, how many sets were expanded


class GrowShrinkBranches(NamedTuple):
    """The branches of node t are `branch[first[t]:first[t] + number[t]]`, variables, best first."""

    first: Ints
    number: Ints
    branch: Ints
    follow: Ints  # the node a branch leads to; -1 where no climb has been, -2 where it is to be grown
    score: Array  # one a node


class MoveRoom(NamedTuple):
    """Room to move one of n variables, x."""

    others: Ints  # (n - 1,): the other variables in order
    place: Ints  # (n,): the place of each among them
    totals: Array  # (n,): the score of the order that has x before each of the others, or last
    wanted: Ints  # (4 n or more,): branches that have to be grown before all scores are known


class DagParents(NamedTuple):
    """A directed acyclic graph of n nodes by parents, and as much of its ancestors as was asked for."""

    up: NDArray[np.int32]  # (n, most parents): in increasing order
    n_up: NDArray[np.int32]  # (n,): how many
    above: NDArray[np.uint64]  # (n, words): ancestors as bits, the node itself included
    traced: Ints  # (n,): how many of a node's parents `above` has in it; -1 for a row that is out of date
    stack: Ints  # (n,): room


class EdgeGains(NamedTuple):
    """What single edges gain, by families: a node with its parents."""

    tops: Array  # (2, n): the most that an addition to each node gains, and a removal
    family: Ints  # (n,): its family f
    ends: Ints  # (2, families): f's further parents that gain are `tails[ends[0, f]:ends[1, f]]`, best first
    removes: Array  # (families, most parents): what removing each parent gains
    tails: NDArray[np.int32]
    gains: Array


class SpinFits(NamedTuple):
    """Fits of one spin along a path of penalties."""

    thetas: Array  # (penalties, columns): the last parameter is the field
    losses: Array  # (penalties,): mean losses
    errors: Array  # (penalties,): the largest violation of the optimality conditions


class ChangingSpins(NamedTuple):
    """Spins at several times."""

    design: Array  # (columns, rows): -1 and +1; the last column, of ones, is the field's
    weights: Array  # (rows,)
    time: Ints  # (rows,): the number of a row's time
    edges: Ints  # (edges, 2): times whose parameters should be alike
    chain: bool  # whether these are each time and the next

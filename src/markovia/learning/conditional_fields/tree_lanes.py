"""Gradients of tree-shaped conditional random fields for many instances side by side.

Instances without cycles are sorted by size and shape and laid side by side in blocks (`kernels/crf_lanes.py`): the
processor works on several instances with one instruction. Worth it where there are a few dozen instances of similar
size whose edges share tables; equal shapes are fastest, different ones profit too. The node features are copied once
into the order of the blocks if that copy is not too large, else block by block in each pass. Sums are kept by block and
added in order, so that the answer does not depend on the number of threads.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from markovia.kernels.fields.crf_records import LaneBlocks, LaneSums, LaneWeights
from markovia.learning.conditional_fields.fields import Fields
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.threads import in_parallel, thread_count

WIDE = 64
"""Instances in a block."""
FEWEST = 16
MOST_KEPT = 1 << 29
"""Bytes of features that are copied once and kept."""
MOST_SUMS = 1 << 22
MOST_MIXED = 0.5
"""Share of steps at which lanes may have different tables, which are then done lane by lane."""


@dataclass(frozen=True)
class Lanes:
    """Instances side by side, and the node features."""

    k: int
    blocks: LaneBlocks
    features: Array
    kept: Array | None

    @classmethod
    def of(cls, fields: Fields, features: Array) -> "Lanes | None":
        """Lay the instances of fields side by side; None where that would not pay, or a graph has a cycle.

        Examples
        --------
        >>> chains = np.arange(101) * 2
        >>> ends = chains[:-1].copy(), chains[:-1] + 1
        >>> pairs = Fields.of(2, chains, np.arange(101), *ends, np.ones((100, 1)))
        >>> side_by_side = Lanes.of(pairs, np.ones((200, 1)))
        >>> side_by_side.blocks.graphs.shape
        (2, 64)
        """
        many, rows, k = fields.n_graphs, len(fields.rows), fields.k
        sizes = np.diff(fields.node_ptr)
        if many < FEWEST or fields.own_tables or not fields.forest.all() or features.dtype != np.float64:
            return None
        wide = min(WIDE, -(-many // 8) * 8)
        blocks = -(-many // wide)
        if 2 * blocks * rows * k * k > MOST_SUMS:
            return None
        step = np.arange(len(fields.order)) - np.repeat(fields.node_ptr[:-1], sizes)
        place = np.empty_like(step)
        place[fields.order] = step
        up = fields.parent[fields.order]
        edge = fields.parent_edge[fields.order]
        inner = up >= 0
        above = np.where(inner, place[up], -1)
        code = np.full(len(up), -1)
        code[inner] = 2 * fields.row[edge[inner]] + (fields.heads[edge[inner]] != fields.order[inner])
        rank = np.lexsort((_shapes(fields.node_ptr, step, above, code), sizes))
        graphs = np.full((blocks, wide), -1)
        graphs.reshape(-1)[:many] = rank
        steps = np.maximum(np.where(graphs >= 0, sizes[graphs], 0).max(axis=1), 1)
        start = np.concatenate([[0], np.cumsum(steps)])
        if 2 * len(up) < start[-1] * wide:
            return None
        slots = (np.repeat(start[:-1], wide).reshape(blocks, wide) * wide + np.arange(wide)).ravel()[:many]
        slot = np.empty(many, dtype=np.int64)
        slot[rank] = slots
        slot = np.repeat(slot, sizes) + step * wide
        full: list[Ints] = []
        for given in (fields.order, above, code):
            laid = np.full(int(start[-1]) * wide, -1)
            laid[slot] = given
            full.append(laid)
        nodes = full[0].copy()
        spare = blocks * wide - many
        if spare:  # lanes without a graph follow the first one of their block, so that all lanes are alike
            for laid in full[1:]:
                last = laid[int(start[-2]) * wide :].reshape(-1, wide)
                last[:, wide - spare :] = last[:, :1]
        alike = np.empty((int(start[-1]), 3), dtype=np.int64)
        parents, codes = (laid.reshape(-1, wide) for laid in full[1:])
        alike[:, 0] = np.where((parents == parents[:, :1]).all(axis=1), parents[:, 0], -2)
        most = codes.max(axis=1)
        alike[:, 1] = np.where(((codes == most[:, None]) | (codes < 0)).all(axis=1), most, -2)
        alike[:, 2] = (nodes.reshape(-1, wide) >= 0).all(axis=1)
        if np.count_nonzero(alike[:, 1] == -2) > MOST_MIXED * len(alike):
            return None
        features = np.ascontiguousarray(features)
        kept = None
        if len(nodes) * features.shape[1] * 8 <= MOST_KEPT:
            from markovia.kernels.fields.crf_lanes import lane_features

            kept = np.empty((int(start[-1]), features.shape[1], wide))
            lane_features(features, nodes, wide, kept)
        return cls(k, LaneBlocks(start, graphs, nodes, full[1], full[2], alike), features, kept)

    def gradient(self, weights: Array, tables: Array) -> tuple[Array, Array, Array]:
        """Return log masses, sums of beliefs times features, and sums of edge marginals for each table.

        Graphs whose messages underflow have a log mass of NaN and are left out of both sums, with others of their block.
        """
        from markovia.kernels.fields.crf_lanes import lane_gradients

        k, d, (blocks, wide) = self.k, self.features.shape[1], self.blocks.graphs.shape
        tops = np.repeat(tables.max(axis=(1, 2)) if len(tables) else np.zeros(0), 2)
        both = np.empty((2 * len(tables), k, k))
        np.exp(tables - tops[::2, None, None], out=both[::2])
        both[1::2] = both[::2].transpose(0, 2, 1)
        mass = np.full(int(self.blocks.graphs.max()) + 1, np.nan)
        found = LaneSums(np.zeros((blocks, k, d)), np.zeros((blocks, len(both), k, k)), mass)
        given = LaneWeights(np.ascontiguousarray(weights), both, tops)

        def work(part: tuple[int, int], _: None) -> None:
            x = self.kept
            if x is None:
                longest = int(np.diff(self.blocks.start[part[0] : part[1] + 1]).max())
                x = np.empty((longest, d, wide))
            lane_gradients(*part, self.blocks, self.features, self.kept is not None, x, given, found)

        parts = min(blocks, thread_count())
        ends = [blocks * i // parts for i in range(parts + 1)]
        in_parallel(work, list(pairwise(ends)), lambda: None)
        pairs = found.pairs.sum(axis=0) * both
        return mass, found.sums.sum(axis=0), pairs[::2] + pairs[1::2].transpose(0, 2, 1)


def _shapes(node_ptr: Ints, step: Ints, above: Ints, code: Ints) -> NDArray[np.uint64]:
    """Return a number for each graph that equal shapes share."""
    with np.errstate(over="ignore"):
        mixed = (above * 1_000_003 + code + 7).astype(np.uint64)
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        mixed *= (step.astype(np.uint64) * np.uint64(0xBF58476D1CE4E5B9)) | np.uint64(1)
        mixed ^= mixed >> np.uint64(32)
        sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(mixed)])
        return np.asarray(sums[node_ptr[1:]] - sums[node_ptr[:-1]])

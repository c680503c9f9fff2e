"""One step of a hidden chain for eight states side by side, in one register where the processor has such wide ones.

The compiler does not find by itself that sums and maxima of eight states can be kept together while the states they come
from are gone through, so the vectors are written out; states that are left over go four, two and one at a time. Arguments
are pointers to numbers of k states, tables (k, k) have the state that a move comes from in rows, and what is written lies
apart from what is read. `plain_code` has the same in NumPy.
"""

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

WIDTHS = (8, 4, 2, 1)
LEAST = 1e-290
"""A predicted probability below this is not divided by."""
LOOSE = ("reassoc", "contract")
NUMBER, COUNT, SMALL = ir.DoubleType(), ir.IntType(64), ir.IntType(32)


@intrinsic
def sum_step(typing_context, k, table, before, dense, ahead, now):
    """Write `ahead = before @ table` and `now = ahead * dense`; return the sum and the smallest entry of `now`."""

    def generate(context, builder, signature, arguments):
        k, table, before, dense, ahead, now = arguments
        size = cgutils.alloca_once_value(builder, ir.Constant(NUMBER, 0.0))
        least = cgutils.alloca_once_value(builder, ir.Constant(NUMBER, float("inf")))
        for place, width in _chunks(builder, k):
            coming = _sums(builder, k, table, before, place, width)
            value = builder.fmul(coming, _read(builder, dense, place, width))
            _write(builder, coming, ahead, place)
            _write(builder, value, now, place)
            builder.store(builder.fadd(builder.load(size), _folded(builder, value, _plus), flags=LOOSE), size)
            builder.store(_smaller(builder, builder.load(least), _folded(builder, value, _smaller)), least)
        return context.make_tuple(builder, signature.return_type, [builder.load(size), builder.load(least)])

    found = types.UniTuple(types.float64, 2)
    return found(k, table, before, dense, ahead, now), generate


@intrinsic
def smooth_step(typing_context, k, turned, now, ahead, before, later, out):
    """Write `later = now / ahead` (0 where `ahead` is next to nothing) and `out = before * (later @ turned)`."""

    def generate(context, builder, signature, arguments):
        k, turned, now, ahead, before, later, out = arguments
        for place, width in _chunks(builder, k):
            coming = _read(builder, ahead, place, width)
            ratio = builder.fdiv(_read(builder, now, place, width), coming)
            there = builder.fcmp_ordered(">", coming, _all(LEAST, width))
            _write(builder, builder.select(there, ratio, _all(0.0, width)), later, place)
        for place, width in _chunks(builder, k):
            value = _sums(builder, k, turned, later, place, width)
            _write(builder, builder.fmul(value, _read(builder, before, place, width)), out, place)
        return context.get_dummy_value()

    return types.none(k, turned, now, ahead, before, later, out), generate


@intrinsic
def best_step(typing_context, k, table, scores, seen, out, origins):
    """Write the best of `scores + seen + table` over states that moves come from, and the first of the best ones.

    Returns the largest of what is written. `origins` may be small whole numbers of any kind that holds k.
    """

    def generate(context, builder, signature, arguments):
        k, table, scores, seen, out, origins = arguments
        top = cgutils.alloca_once_value(builder, ir.Constant(NUMBER, float("-inf")))
        kind = origins.type.pointee
        for place, width in _chunks(builder, k):
            best = cgutils.alloca_once(builder, _lanes(NUMBER, width))
            which = cgutils.alloca_once(builder, _lanes(COUNT, width))
            builder.store(_all(float("-inf"), width), best)
            builder.store(ir.Constant(_lanes(COUNT, width), [0] * width), which)
            with cgutils.for_range(builder, k) as loop:
                score = builder.fadd(
                    builder.load(builder.gep(scores, [loop.index])),
                    builder.load(builder.gep(seen, [loop.index])),
                )
                row = builder.add(builder.mul(loop.index, k), place)
                way = builder.fadd(_spread(builder, score, width), _read(builder, table, row, width))
                held = builder.load(best)
                more = builder.fcmp_ordered(">", way, held)
                builder.store(builder.select(more, way, held), best)
                index = _spread(builder, loop.index, width)
                builder.store(builder.select(more, index, builder.load(which)), which)
            value = builder.load(best)
            _write(builder, value, out, place)
            _write(builder, builder.trunc(builder.load(which), _lanes(kind, width)), origins, place)
            builder.store(_larger(builder, builder.load(top), _folded(builder, value, _larger)), top)
        return builder.load(top)

    return types.float64(k, table, scores, seen, out, origins), generate


# -- vectors -----------------------------------------------------------------------------------------------------


def _lanes(kind, width):
    return ir.VectorType(kind, width)


def _all(value, width):
    return ir.Constant(_lanes(NUMBER, width), [value] * width)


def _chunks(builder, k):
    """Write the loops over lanes: what the caller writes stands once for each width, for the place of its first state."""
    done = cgutils.alloca_once_value(builder, ir.Constant(COUNT, 0))
    for width in WIDTHS:
        first, lanes = builder.load(done), ir.Constant(COUNT, width)
        count = builder.udiv(builder.sub(k, first), lanes)
        with cgutils.for_range(builder, count) as loop:
            yield builder.add(first, builder.mul(loop.index, lanes)), width
        builder.store(builder.add(first, builder.mul(count, lanes)), done)


def _sums(builder, k, table, x, place, width):
    """Return entries of the product of a vector with a table; even and odd rows apart, so that sums wait half as long."""
    sums = [cgutils.alloca_once(builder, _lanes(NUMBER, width)) for _ in range(2)]
    for held in sums:
        builder.store(_all(0.0, width), held)

    def add(i, held):
        row = _read(builder, table, builder.add(builder.mul(i, k), place), width)
        value = _spread(builder, builder.load(builder.gep(x, [i])), width)
        product = builder.fmul(value, row, flags=LOOSE)
        builder.store(builder.fadd(builder.load(held), product, flags=LOOSE), held)

    one = ir.Constant(COUNT, 1)
    with cgutils.for_range(builder, builder.lshr(k, one)) as loop:
        even = builder.shl(loop.index, one)
        add(even, sums[0])
        add(builder.add(even, one), sums[1])
    with builder.if_then(builder.trunc(k, ir.IntType(1))):
        add(builder.sub(k, one), sums[0])
    return builder.fadd(*map(builder.load, sums))


def _folded(builder, value, combine):
    """Return one number of all lanes."""
    width = value.type.count
    while width > 1:
        width //= 2
        halves = [
            builder.shuffle_vector(value, value, ir.Constant(_lanes(SMALL, width), [*range(at, at + width)]))
            for at in (0, width)
        ]
        value = combine(builder, *halves)
    return builder.extract_element(value, ir.Constant(SMALL, 0))


def _plus(builder, a, b):
    return builder.fadd(a, b)


def _smaller(builder, a, b):
    return builder.select(builder.fcmp_ordered("<", a, b), a, b)


def _larger(builder, a, b):
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def _read(builder, base, place, width):
    start = builder.gep(base, [place])
    kind = base.type.pointee
    return builder.load(builder.bitcast(start, _lanes(kind, width).as_pointer()), align=_bytes(kind))


def _write(builder, value, base, place):
    start = builder.bitcast(builder.gep(base, [place]), value.type.as_pointer())
    builder.store(value, start, align=_bytes(base.type.pointee))


def _bytes(kind):
    return 8 if kind == NUMBER else kind.width // 8


def _spread(builder, value, width):
    vector = ir.Constant(_lanes(value.type, width), ir.Undefined)
    vector = builder.insert_element(vector, value, ir.Constant(SMALL, 0))
    return builder.shuffle_vector(vector, vector, ir.Constant(_lanes(SMALL, width), [0] * width))

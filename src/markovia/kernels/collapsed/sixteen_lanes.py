"""A draw in proportion to products of two rows of numbers, sixteen side by side in one register.

The compiler does not find by itself that sixteen running sums can be kept together, so the vectors are written out.
"""

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

LANES = 16
NUMBERS = ir.VectorType(ir.FloatType(), LANES)
PLACES = ir.VectorType(ir.IntType(32), LANES)


@intrinsic
def draw_lane(typing_context, first, second, products, chunks, number):
    """Write the products of two rows, and return a lane and what is left of the sum inside it.

    first, second, products: pointers to float32, 16 * chunks of each; number: in [0, 1). Entry `16 * chunk + lane` is in
    lane `lane`. The lane is drawn in proportion to its sum of products; the remainder is below that sum, but for rounding.
    """
    if not all(isinstance(p, types.CPointer) and p.dtype == types.float32 for p in (first, second, products)):
        raise TypingError("lanes are of float32")

    def generate(context, builder, signature, arguments):
        one, two, out, count, share = arguments
        zero = ir.Constant(NUMBERS, [0.0] * LANES)
        held = cgutils.alloca_once_value(builder, zero)

        def at(base, place):
            return builder.bitcast(builder.gep(base, [place]), NUMBERS.as_pointer())

        with cgutils.for_range(builder, count) as loop:
            place = builder.mul(loop.index, ir.Constant(loop.index.type, LANES))
            product = builder.fmul(
                builder.load(at(one, place), align=4), builder.load(at(two, place), align=4)
            )
            builder.store(product, at(out, place), align=4)
            builder.store(builder.fadd(builder.load(held), product), held)
        sums = builder.load(held)
        running = sums
        for step in (1, 2, 4, 8):
            mask = ir.Constant(PLACES, [LANES + i if i < step else i - step for i in range(LANES)])
            running = builder.fadd(running, builder.shuffle_vector(running, zero, mask))
        total = builder.extract_element(running, ir.Constant(ir.IntType(32), LANES - 1))
        sought = builder.fmul(total, share)
        spread = builder.insert_element(zero, sought, ir.Constant(ir.IntType(32), 0))
        spread = builder.shuffle_vector(spread, zero, ir.Constant(PLACES, [0] * LANES))
        below = builder.bitcast(builder.fcmp_ordered("<=", running, spread), ir.IntType(LANES))
        lane = builder.zext(builder.ctpop(below), ir.IntType(32))
        most = ir.Constant(ir.IntType(32), LANES - 1)
        lane = builder.select(builder.icmp_unsigned(">", lane, most), most, lane)
        before = builder.fsub(builder.extract_element(running, lane), builder.extract_element(sums, lane))
        left = builder.fsub(sought, before)
        return context.make_tuple(builder, signature.return_type, [builder.zext(lane, ir.IntType(64)), left])

    found = types.Tuple((types.int64, types.float32))
    return found(first, second, products, types.int64, types.float32), generate

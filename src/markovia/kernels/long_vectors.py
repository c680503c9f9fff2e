"""Operations on long vectors in one pass over memory, without a linear-algebra package's own threads."""

from markovia.kernels.kernel import kernel


@kernel(fastmath={"reassoc", "contract"})
def add_and_multiply(share, change, vector, other):
    """Add `share * change` to a vector and return its product with another one."""
    total = 0.0
    for i in range(len(vector)):
        vector[i] += share * change[i]
        total += vector[i] * other[i]
    return total

/* Sum-product messages of models whose tables are over two variables, on every link at once or on some.

The model comes by links (`markovia.inference.flat_graphs.padded_links`), with weights: link p is a variable's place in a
table, and from[p * STATES + k] the message that the variable gets there. A thread makes one such message: the product of
what the other variable gets from all its tables but this one, times the table, summed. So the messages in the other
direction are never stored, and where no two tables of a launch share a variable, `from` and `to` may be the same array.

Cost of a message: the messages that the other variable gets, and one table. All in double.

Compile with -DSTATES=<states>.
*/

#define TINY 1e-100 /* products below it are scaled up */

/* The links listed (or the first `count`) get new messages: (1 - damping) of them and damping of the old ones. moved gets
   the largest change so far, as the bits of a double that is not negative; infinity if a message vanished. */
extern "C" __global__ void send_messages(int count, const int *listed, const int *ptr, const int *other, const int *back,
                                         const int *base, const double *tables, const double *unary, const double *from,
                                         double *to, double damping, unsigned long long *moved) {
    double most = 0;
    for (int q = blockIdx.x * blockDim.x + threadIdx.x; q < count; q += gridDim.x * blockDim.x) {
        int p = listed ? listed[q] : q, j = other[p], same = back[p];
        double sent[STATES], made[STATES];
        for (int s = 0; s < STATES; ++s) {
            sent[s] = unary[(long long)j * STATES + s];
            made[s] = 0;
        }
        for (int r = ptr[j], last = ptr[j + 1]; r < last; ++r) {
            if (r == same) continue;
            double top = 0;
            for (int s = 0; s < STATES; ++s) {
                sent[s] *= from[(long long)r * STATES + s];
                top = fmax(top, sent[s]);
            }
            if (top > 0 && top < TINY)
                for (int s = 0; s < STATES; ++s) sent[s] /= top;
        }
        const double *table = tables + base[p];
        double total = 0;
        for (int s = 0; s < STATES; ++s)
            for (int k = 0; k < STATES; ++k) made[k] += sent[s] * table[s * STATES + k];
        for (int k = 0; k < STATES; ++k) total += made[k];
        if (!(total > 0)) {
            most = __longlong_as_double(0x7FF0000000000000ll);
            continue;
        }
        for (int k = 0; k < STATES; ++k) {
            double fresh = made[k] / total, old = from[(long long)p * STATES + k];
            most = fmax(most, fabs(fresh - old));
            to[(long long)p * STATES + k] = fresh > 0 ? fresh + damping * (old - fresh) : 0;
        }
    }
    /* few threads have more to say than what is there already */
    if (most > __longlong_as_double(*(volatile long long *)moved))
        atomicMax(moved, (unsigned long long)__double_as_longlong(most));
}

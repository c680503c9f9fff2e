/* Expected counts of cases with missing cells, a thread a case: the E-step of EM.

The method, and the clique trees of patterns that it runs on, are those of `markovia.kernels.incomplete.expected_counts`.
Cases of one pattern stand side by side, so the lanes of a warp mostly run alike; the room of a thread is interleaved with
those of the others.

Sums do not depend on who comes first: a contribution is added as a whole number in two words, `scale` times it and what
that leaves in units of 2^-32, and adding whole numbers is exact. A cell's sum is off by less than 2^-32 / scale times the
number of its contributions.
Cost of a case: the entries of its cliques times the families and messages in each, and two additions in global memory for
each entry and family.
*/

typedef long long big;
typedef unsigned long long word;

constexpr double SMALL = 1e-60, LARGE = 1e60;
constexpr double UNITS = 4294967296.0; /* of the second word in one of the first */

/* numbers of one thread, with those of the others in between */
struct Room {
    double *at;
    int step;
    __device__ double &operator[](int i) const { return at[(big)i * step]; }
    __device__ Room operator+(int i) const { return {at + (big)i * step, step}; }
};

/* a clique of a pattern's tree: the eight numbers of `PatternTrees.clique` */
struct Clique {
    int size, separator, parent, map, slot, axis, at, axes;
};

struct Trees {
    const int *clique_at;
    const Clique *clique;
    const int2 *slot; /* a family, and where the map of its entries begins */
    const int *maps;
};

__device__ void divide(Room table, int size, double by) {
    for (int e = 0; e < size; e++) table[e] /= by;
}

/* Fill the tables and messages of one case; return the log of its mass. `base` are the offsets of its slots, as if
   those of the pattern began at 0; the message of the root is the sum of its table. */
__device__ double collect(int c0, int c1, const int *base, const Trees &trees, const double *theta, Room room) {
    double logs = 0.0;
    for (int c = c0; c < c1; c++) {
        Clique own = trees.clique[c];
        Room table = room + own.at;
        int end = trees.clique[c + 1].slot;
        for (int s = own.slot; s < end; s++) {
            const double *from = theta + base[s];
            const int *map = trees.maps + trees.slot[s].y;
            double top = 0.0;
            for (int e = 0; e < own.size; e++) {
                double x = __ldg(from + map[e]);
                if (s > own.slot) x *= table[e];
                table[e] = x;
                top = x > top ? x : top;
            }
            if (top == 0.0) return log(0.0);
            if (top < SMALL) {
                logs += log(top);
                divide(table, own.size, top);
            }
        }
        if (own.slot == end) {
            for (int e = 0; e < own.size; e++) table[e] = 1.0;
        }
    }
    /* messages up, each multiplied into its parent's table */
    for (int c = c0; c < c1; c++) {
        Clique own = trees.clique[c];
        Room table = room + own.at, message = table + own.size;
        int rest = own.size / own.separator;
        double total = 0.0;
        for (int i = 0; i < own.separator; i++) {
            double x = 0.0;
            for (int e = i * rest; e < (i + 1) * rest; e++) x += table[e];
            message[i] = x;
            total += x;
        }
        if (!(total > 0.0)) return log(0.0);
        if (own.parent < 0) return logs + log(total);
        Clique parent = trees.clique[c0 + own.parent];
        Room above = room + parent.at;
        const int *map = trees.maps + own.map;
        double top = 0.0;
        for (int e = 0; e < parent.size; e++) {
            double x = above[e] * message[map[e]];
            above[e] = x;
            top = x > top ? x : top;
        }
        if (top == 0.0) return log(0.0);
        if (top < SMALL || top > LARGE) {
            logs += log(top);
            divide(above, parent.size, top);
        }
    }
    return logs;
}

__device__ void add(word *sum, double x, double scale) {
    double scaled = x * scale;
    big whole = (big)scaled;
    if (whole) atomicAdd(sum, (word)whole);
    atomicAdd(sum + 1, (word)((scaled - (double)whole) * UNITS));
}

/* Add the expected counts of the `n` cases that are `listed` to `sums`, two words a count, and write their log masses to
   `found`, minus infinity for impossible ones. Cases without weight are left alone. */
extern "C" __global__ void __launch_bounds__(128) expect_cases(
    const big *listed, int n, const int *pattern, const double *weight, const big *at, const int *base,
    const int *clique_at, const Clique *clique, const int2 *slot, const int *maps, const double *theta, double scale,
    int words, double *rooms, word *sums, double *found) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    Trees trees = {clique_at, clique, slot, maps};
    Room room = {rooms + thread, threads};
    for (int i = thread; i < n; i += threads) {
        big which = listed[i];
        double times = weight[which];
        found[which] = 0.0;
        if (times == 0.0) continue;
        int c0 = clique_at[pattern[which]], c1 = clique_at[pattern[which] + 1];
        const int *own_base = base + at[which] - clique[c0].slot;
        double logs = collect(c0, c1, own_base, trees, theta, room);
        found[which] = logs;
        if (logs == log(0.0)) continue;
        /* down: a message becomes the ratio of its separator's posterior to it */
        for (int c = c1 - 1; c >= c0; c--) {
            Clique own = clique[c];
            Room table = room + own.at, message = table + own.size, posterior = room + (words - own.separator);
            int rest = own.size / own.separator;
            if (own.parent < 0) {
                message[0] = times / message[0];
            } else {
                Clique parent = clique[c0 + own.parent];
                Room above = room + parent.at;
                const int *map = maps + own.map;
                for (int j = 0; j < own.separator; j++) posterior[j] = 0.0;
                for (int e = 0; e < parent.size; e++) posterior[map[e]] += above[e];
                for (int j = 0; j < own.separator; j++) {
                    message[j] = message[j] > 0.0 ? posterior[j] / message[j] : 0.0;
                }
            }
            for (int j = 0; j < own.separator; j++) {
                double x = message[j];
                for (int e = j * rest; e < (j + 1) * rest; e++) table[e] *= x;
            }
            for (int s = own.slot; s < clique[c + 1].slot; s++) {
                word *to = sums + 2 * (big)own_base[s];
                const int *map = maps + slot[s].y;
                for (int e = 0; e < own.size; e++) {
                    double x = table[e];
                    if (x > 0.0) add(to + 2 * (big)map[e], x, scale);
                }
            }
        }
    }
}

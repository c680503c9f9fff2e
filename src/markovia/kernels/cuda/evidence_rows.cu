/* Many rows of data through a clique tree, a warp or a block a row: log masses and posteriors.

The method is that of `markovia.kernels.clique_trees.evidence_rows`, whose program of a tree (`NUMBERS`, `SECTIONS`) is
taken in 32 bits: observed variables are cut out of every clique, conditionals that a row does not need are dropped,
messages go up, and down to the cliques that are asked about. A team of lanes takes a row: a warp, or a block of warps where
tables are large. It shares the books of the row, in shared memory where they fit, which its first warp keeps: that looks at
all factors side by side, then clique by clique sets up the operands, a lane each. The entries of a table are computed, and
summed out, by the whole team. Tables and messages of a row lie one after the other in its room.

Where an operand lies for entry e of a table is a sum of few terms c * floor(e / b). An axis whose places below it number b
contributes stride * (floor(e / b) - dim * floor(e / (b * dim))), so neighbouring axes that the operand steps through alike
cancel, and axes that it lacks cost nothing. floor(e / b) is a product of floats, exact for e < 2^21 (`MOST`). Cliques,
separators and factors list their axes in the same order, the innermost last.

Statuses as on the processor: 0 done, 1 impossible, 2 to be looked at by the processor (a product that may leave the range
of doubles), 3 the room is too small. Posteriors are written for status 0 alone, into an array of zeros.
Cost of a row: that of the processor's kernel; some thousand rows run at a time.

Compile with -DTEAM=32|256, the lanes that take a row, and -DCODE_BYTES=1|2|4, the size of a state code.
*/

typedef long long big;
#if CODE_BYTES == 1
typedef signed char Code;
#elif CODE_BYTES == 2
typedef short Code;
#else
typedef int Code;
#endif

enum { DONE = 0, IMPOSSIBLE = 1, OUT_OF_RANGE = 2, TOO_LARGE = 3 };

constexpr unsigned ALL = 0xffffffffu;
constexpr double SMALL = 1e-100, LARGE = 1e100; /* between these a running product is kept as it is */
constexpr int UNWATCHED = -896;                 /* products with a binary exponent below are left to the processor */
constexpr int MOST = 1 << 21;                   /* entries of a table: floor(e / b) is exact */
constexpr int TOGETHER = 4;                     /* entries of a large table that a lane has in flight */

/* ---- the program of a tree ------------------------------------------------------------------------------------ */

enum {
    COLUMN, CARD, CLIQUE_START, CLIQUE, PLACE, N_SEPARATOR, PARENT, CHILD_START, CHILDREN, FACTOR_START, FIXED_START,
    FIXED_COLUMN, FIXED_STRIDE, AXIS_START, AXIS_SLOT, AXIS_PLACE, AXIS_STRIDE, FACTOR_AT, TARGET_START, TARGET_SLOT,
    TARGET_COLUMN, TARGET_CARD, TARGET_AT, BARREN_SLOT, BARREN_FACTOR, MENTIONS, TARGET_PLACE, LEAST, SECTIONS
};

/* the numbers of the program, and where its sections begin; the last two sections say where a target's axis is in its
   clique, and the binary exponent of each factor's least entry */
struct Layout {
    int n_cliques, n_slots, n_factors, n_targets, n_barren, axes, operands;
    int section[SECTIONS];
    int lists, terms; /* that a clique needs at most */
    int book_bytes;   /* of a row */
};

struct Tree {
    const Layout &layout;
    const int *program;
    const double *values;
    __device__ int operator()(int section, int i) const { return __ldg(program + layout.section[section] + i); }
};

/* a step of c * floor(e / b): share is 1 / b */
struct Term {
    int factor;
    float share;
};

/* what is known of a row, and what is said to the whole team */
struct Books {
    double *partial; /* the warps of a team: what they add */
    Term *terms;     /* of all lists */
    int *base;       /* factors: the offset of their entries, -1 where they are no table here */
    int *message;    /* cliques: where their message is; the table is before it, posterior and scale behind */
    int *size;       /* cliques: entries of the message */
    int *mentions;   /* slots, in the place of what cliques have, until that is known */
    int *below;      /* axes of this clique: their strides in its table, 0 where observed */
    int *dims;
    float *share; /* 1 / below, and 1 / (below * dim) */
    float *beyond;
    int *at;     /* lists: an offset, */
    int *begin;  /* their first term, */
    int *counts; /* and the number of terms; of operands twice that, odd for messages */
    int *said;
    short *code;  /* slots: the state, -1 where missing */
    short *least; /* cliques: the binary exponent of the least entry of the message */
    signed char *asked; /* cliques */
};

enum { ROW, SIZE, SEPARATOR, COUNT, ENDED, SAID = 8 };

__device__ Books books_of(const Layout &l, char *room) {
    int cliques = 2 * l.n_cliques > l.n_slots ? 2 * l.n_cliques : l.n_slots;
    double *partial = (double *)room;
    Term *terms = (Term *)(partial + TEAM / 32);
    int *base = (int *)(terms + l.terms), *message = base + l.n_factors, *below = message + cliques;
    int *at = below + 4 * l.axes, *said = at + 3 * l.lists;
    short *code = (short *)(said + SAID), *least = code + l.n_slots;
    return {partial, terms, base, message, message + l.n_cliques, message, below, below + l.axes,
            (float *)(below + 2 * l.axes), (float *)(below + 3 * l.axes), at, at + l.lists, at + 2 * l.lists, said, code,
            least, (signed char *)(least + l.n_cliques)};
}

/* ---- a team of lanes ------------------------------------------------------------------------------------------ */

__device__ int lane_of() { return threadIdx.x % TEAM; }
__device__ bool first_warp() { return TEAM == 32 || threadIdx.x < 32; }

__device__ void meet() {
    if (TEAM == 32) {
        __syncwarp();
    } else {
        __syncthreads();
    }
}

template <typename T>
__device__ T sum_over(T x, int together) {
    for (int d = together / 2; d > 0; d /= 2) x += __shfl_xor_sync(ALL, x, d);
    return x;
}

template <typename T>
__device__ T most_over(T x) {
    for (int d = 16; d > 0; d /= 2) {
        T y = __shfl_xor_sync(ALL, x, d);
        x = y > x ? y : x;
    }
    return x;
}

/* what all warps have to say, together: their sum, or the largest */
__device__ double of_team(double x, bool largest, const Books &books) {
    x = largest ? most_over(x) : sum_over(x, 32);
    if (TEAM == 32) return x;
    if (threadIdx.x % 32 == 0) books.partial[threadIdx.x / 32] = x;
    meet();
    x = books.partial[0];
    for (int w = 1; w < TEAM / 32; w++) {
        double y = books.partial[w];
        x = !largest ? x + y : y > x ? y : x;
    }
    meet();
    return x;
}

__device__ int exponent(double x) { return (__double2hiint(x) >> 20) - 1023; }

/* ---- places --------------------------------------------------------------------------------------------------- */

/* a list of terms, from the innermost axis outwards: how something over some axes runs through something else */
struct Steps {
    Term *terms;
    int count, pending, boundary;
    float share;

    __device__ void flush() {
        if (pending) terms[count++] = {pending, share};
    }
    /* an axis with `below` places below it, and its stride where the steps lead */
    __device__ void axis(int below, int dim, int stride, float one_below, float one_beyond) {
        if (below != boundary) {
            flush();
            pending = 0;
        }
        pending += stride;
        share = one_below;
        flush();
        pending = -stride * dim;
        boundary = below * dim;
        share = one_beyond;
    }
    /* the next axis of a table that is `boundary` large so far */
    __device__ void next(int dim, int stride) {
        axis(boundary, dim, stride, share, 1.0f / (float)(boundary * dim));
    }
};

__device__ Steps steps_of(const Books &books, int list, int begin) {
    books.begin[list] = begin;
    return {books.terms + begin, 0, 0, 1, 1.0f};
}

/* add the places of N entries, `first` and each `step` behind the one before */
template <int N>
__device__ void add_places(const Term *terms, int count, int first, int step, int (&at)[N]) {
    for (int t = 0; t < count; t++) {
        Term term = terms[t];
#pragma unroll
        for (int j = 0; j < N; j++) at[j] += term.factor * (int)(((float)(first + j * step) + 0.5f) * term.share);
    }
}

/* the product of the operands, N entries a lane at a time, each in a register */
template <int N>
__device__ void multiply(double *table, const double *room, int size, int k, const Tree &tree, const Books &books) {
    for (int first = lane_of(); first < size; first += N * TEAM) {
        double product[N];
        int at[N];
#pragma unroll
        for (int j = 0; j < N; j++) product[j] = 1.0;
        for (int o = 0; o < k; o++) {
            int base = books.at[o], count = books.counts[o];
#pragma unroll
            for (int j = 0; j < N; j++) at[j] = base;
            add_places<N>(books.terms + books.begin[o], count >> 1, first, TEAM, at);
#pragma unroll
            for (int j = 0; j < N; j++) {
                if (first + j * TEAM < size) product[j] *= count & 1 ? room[at[j]] : __ldg(tree.values + at[j]);
            }
        }
#pragma unroll
        for (int j = 0; j < N; j++) {
            if (first + j * TEAM < size) table[first + j * TEAM] = product[j];
        }
    }
    meet();
}

/* what a lane saw of sums: the largest, and the sum of those that it wrote */
struct Seen {
    double top, total;
};

/* found[s] = sum over r of table[kept(s) + summed(r)] for `n` sums of `m` entries. The places are those of two lists of
   terms, or without any those of a table whose kept axes come first. */
template <int N>
__device__ Seen sum_out(
    const double *table, double *found, int n, int m, const Term *kept, int n_kept, const Term *summed, int n_summed,
    const Books &books) {
    int lane = lane_of(), parts = 1; /* the lanes that share a sum */
    while (parts * 2 * n <= TEAM && parts < m) parts *= 2;
    Seen seen = {0.0, 0.0};
    for (int first = 0; first < n; first += TEAM / parts) {
        int s = first + lane / parts, from[1] = {0};
        double t[N];
#pragma unroll
        for (int j = 0; j < N; j++) t[j] = 0.0;
        if (s < n) {
            add_places<1>(kept, n_kept, s, 0, from);
            for (int r = lane % parts; r < m; r += N * parts) {
                int at[N];
#pragma unroll
                for (int j = 0; j < N; j++) at[j] = from[0];
                add_places<N>(summed, n_summed, r, parts, at);
#pragma unroll
                for (int j = 0; j < N; j++) {
                    if (r + j * parts < m) t[j] += table[at[j]];
                }
            }
        }
#pragma unroll
        for (int j = 1; j < N; j++) t[0] += t[j];
        double sum = sum_over(t[0], parts < 32 ? parts : 32);
        if (TEAM > 32 && parts > 32) { /* several warps have a part of it */
            if (lane % 32 == 0) books.partial[lane / 32] = sum;
            meet();
            sum = 0.0;
            for (int w = 0; w < parts / 32; w++) sum += books.partial[lane / parts * (parts / 32) + w];
            meet();
        }
        if (s < n && lane % parts == 0) {
            found[s] = sum;
            seen.total += sum;
        }
        seen.top = sum > seen.top ? sum : seen.top;
    }
    meet();
    return seen;
}

/* ---- one row -------------------------------------------------------------------------------------------------- */

struct Row {
    const Code *codes;
    big step;
    __device__ int operator[](int column) const { return (int)codes[column * step]; }
};

/* a product kept as mass * exp(logs) */
struct Product {
    double mass, logs;
    __device__ void times(double t) {
        if (t < SMALL || t > LARGE) {
            logs += log(t);
        } else {
            mass *= t;
            if (mass < SMALL || mass > LARGE) {
                logs += log(mass);
                mass = 1.0;
            }
        }
    }
    __device__ double total() const { return logs + log(mass); }
};

/* read the codes; drop conditionals that sum to one here: the child is missing, not asked for, and nothing else
   mentions it, which may leave its parents unmentioned */
__device__ void look_at(const Tree &tree, const Row &row, const Books &books) {
    int lane = threadIdx.x % 32;
    const Layout &l = tree.layout;
    for (int v = lane; v < l.n_slots; v += 32) {
        int column = tree(COLUMN, v);
        books.code[v] = (short)(tree(CARD, v) == 1 ? 0 : column < 0 ? -1 : row[column]);
        books.mentions[v] = tree(MENTIONS, v);
    }
    for (int f = lane; f < l.n_factors; f += 32) books.base[f] = 0;
    __syncwarp();
    for (int more = l.n_barren; more;) {
        int dropped = 0;
        for (int i = lane; i < l.n_barren; i += 32) {
            int v = tree(BARREN_SLOT, i), f = tree(BARREN_FACTOR, i);
            if (books.base[f] < 0 || books.code[v] >= 0 || books.mentions[v] > 0) continue;
            dropped = 1;
            books.base[f] = -1;
            books.code[v] = 0;
            for (int j = tree(AXIS_START, f); j < tree(AXIS_START, f + 1); j++) {
                atomicSub(books.mentions + tree(AXIS_SLOT, j), 1);
            }
        }
        __syncwarp();
        more = __any_sync(ALL, dropped);
    }
}

/* put the row's states into all factors: tables get their offset, numbers join the product; false if one is zero */
__device__ bool put_in(const Tree &tree, const Row &row, const Books &books, Product *mass) {
    bool possible = true;
    for (int f = threadIdx.x % 32; f < tree.layout.n_factors; f += 32) {
        if (books.base[f] < 0) continue;
        int x = tree(FACTOR_AT, f);
        bool table = false;
        for (int j = tree(FIXED_START, f); j < tree(FIXED_START, f + 1); j++) {
            x += tree(FIXED_STRIDE, j) * row[tree(FIXED_COLUMN, j)];
        }
        for (int j = tree(AXIS_START, f); j < tree(AXIS_START, f + 1); j++) {
            int code = books.code[tree(AXIS_SLOT, j)];
            if (code >= 0) x += tree(AXIS_STRIDE, j) * code;
            table = table || code < 0;
        }
        books.base[f] = table ? x : -1;
        if (table) continue;
        double value = __ldg(tree.values + x);
        possible = possible && value != 0.0;
        if (value != 0.0) mass->times(value);
    }
    __syncwarp();
    return !__any_sync(ALL, !possible);
}

/* find the cliques with a missing variable, and those that are asked about; the message of others has one entry */
__device__ void open_cliques(const Tree &tree, const Books &books) {
    for (int c = threadIdx.x % 32; c < tree.layout.n_cliques; c += 32) {
        int open = 0, asked = 0;
        for (int i = tree(CLIQUE_START, c); i < tree(CLIQUE_START, c + 1); i++) {
            if (books.code[tree(CLIQUE, i)] < 0) open = 1;
        }
        for (int k = tree(TARGET_START, c); open && k < tree(TARGET_START, c + 1); k++) {
            if (books.code[tree(TARGET_SLOT, k)] < 0) asked = 1;
        }
        books.size[c] = open ? 0 : 1;
        books.asked[c] = (signed char)asked;
    }
    __syncwarp();
}

/* the axes of a clique that are missing here, and the entries of the clique and of its separator */
__device__ void free_axes(const Tree &tree, const Books &books, int c) {
    int lane = threadIdx.x % 32, begin = tree(CLIQUE_START, c), axes = tree(CLIQUE_START, c + 1) - begin;
    int edge = tree(N_SEPARATOR, c);
    float run = 1.0f, rest = 1.0f; /* large ones need not be exact */
    for (int last = axes; last > 0; last -= 32) {
        int i = last - 1 - lane, v = i >= 0 ? tree(CLIQUE, begin + i) : 0;
        float dim = i >= 0 && books.code[v] < 0 ? (float)tree(CARD, v) : 1.0f, product = dim;
        for (int d = 1; d < 32; d *= 2) { /* the product of this axis and those inside it */
            float inner = __shfl_up_sync(ALL, product, d);
            if (lane >= d) product *= inner;
        }
        if (i >= 0) {
            float beyond = run * product;
            int below = beyond <= (float)MOST ? (int)(beyond / dim + 0.5f) : 0;
            books.dims[i] = (int)dim;
            books.below[i] = dim > 1.0f ? below : 0;
            books.share[i] = 1.0f / (float)below;
            books.beyond[i] = 1.0f / beyond;
        }
        if (last > edge) {
            int own = last - edge < 32 ? last - edge : 32;
            rest = run * __shfl_sync(ALL, product, own - 1);
        }
        run *= __shfl_sync(ALL, product, 31);
    }
    if (lane == 0) {
        books.said[SIZE] = run > (float)MOST ? MOST + 1 : (int)run;
        books.said[SEPARATOR] = run > (float)MOST ? 1 : (int)(run / rest + 0.5f);
    }
    __syncwarp();
}

/* set up the operands of a clique, a lane each; say how many there are, and whether their product may be too small */
__device__ void set_up(const Tree &tree, const Books &books, int c) {
    int lane = threadIdx.x % 32, first = tree(FACTOR_START, c), factors = tree(FACTOR_START, c + 1) - first;
    int begin = tree(CHILD_START, c), all = factors + tree(CHILD_START, c + 1) - begin, k = 0, terms = 0, least = 0;
    for (int from = 0; from < all; from += 32) {
        int q = from + lane, f = first + q, child = q >= factors && q < all ? tree(CHILDREN, begin + q - factors) : 0;
        bool used = q < all && (q < factors ? books.base[f] >= 0 : books.size[child] > 1);
        unsigned votes = __ballot_sync(ALL, used);
        int o = k + __popc(votes & ((1u << lane) - 1u)), low = 0, high = 0, stride = 1;
        k += __popc(votes);
        if (used) {
            low = q < factors ? tree(AXIS_START, f) : tree(CLIQUE_START, child);
            high = q < factors ? tree(AXIS_START, f + 1) : low + tree(N_SEPARATOR, child);
        }
        int up_to = 2 * (high - low); /* terms of this operand and of those before it, at most: an axis begins and ends one */
        for (int d = 1; d < 32; d *= 2) {
            int before = __shfl_up_sync(ALL, up_to, d);
            if (lane >= d) up_to += before;
        }
        up_to += terms;
        terms = __shfl_sync(ALL, up_to, 31);
        if (!used) continue;
        Steps steps = steps_of(books, o, up_to - 2 * (high - low));
        for (int j = high - 1; j >= low; j--) {
            int a = tree(q < factors ? AXIS_PLACE : PLACE, j);
            if (!books.below[a]) continue;
            if (q < factors) stride = tree(AXIS_STRIDE, j);
            steps.axis(books.below[a], books.dims[a], stride, books.share[a], books.beyond[a]);
            stride *= books.dims[a];
        }
        if (steps.boundary < books.said[SIZE]) steps.flush();
        books.at[o] = q < factors ? books.base[f] : books.message[child];
        books.counts[o] = 2 * steps.count + (q >= factors);
        least += q < factors ? tree(LEAST, f) : books.least[child];
    }
    least = sum_over(least, 32);
    if (lane == 0) {
        books.said[COUNT] = k;
        books.said[ENDED] = least < UNWATCHED ? OUT_OF_RANGE : DONE;
    }
}

/* one clique on the way up: its table and message are put at `top`; return the status */
__device__ int send_up(const Tree &tree, const Books &books, int c, double *room, int words, int *top, Product *mass) {
    int lane = lane_of();
    if (first_warp()) {
        free_axes(tree, books, c);
        if (books.said[SIZE] <= words) set_up(tree, books, c);
    }
    meet();
    int size = books.said[SIZE], separator = books.said[SEPARATOR], k = books.said[COUNT];
    if (size > words || *top + size + 2 * separator + 1 > words) return TOO_LARGE;
    if (books.said[ENDED] != DONE) return books.said[ENDED];
    double *table = room + *top, *sums = table + size;
    if (size <= TEAM) {
        multiply<1>(table, room, size, k, tree, books);
    } else {
        multiply<TOGETHER>(table, room, size, k, tree, books);
    }
    /* sum onto the separator, whose axes come first; the message has maximum one */
    int rest = size / separator;
    Term kept = {rest, 1.0f}, summed = {1, 1.0f};
    Seen seen = size <= TEAM ? sum_out<1>(table, sums, separator, rest, &kept, 1, &summed, 1, books)
                             : sum_out<TOGETHER>(table, sums, separator, rest, &kept, 1, &summed, 1, books);
    double peak = of_team(seen.top, true, books);
    if (peak == 0.0) return IMPOSSIBLE;
    mass->times(peak);
    double inverse = 1.0 / peak;
    bool asked = books.asked[c]; /* then the table is kept for the way down, which comes by the parent */
    double *message = asked ? sums : table;
    int least = 0;
    for (int s = lane; s < separator; s += TEAM) {
        double t = sums[s] * inverse;
        message[s] = t;
        if (t > 0.0 && exponent(t) < least) least = exponent(t);
    }
    least = -(int)of_team((double)-least, true, books);
    if (lane == 0) {
        books.size[c] = separator;
        books.message[c] = (int)(message - room);
        books.least[c] = (short)least;
        if (asked && separator > 1) books.asked[tree(PARENT, c)] = 1;
        if (asked) sums[2 * separator] = inverse;
    }
    meet();
    *top += asked ? size + 2 * separator + 1 : separator > 1 ? separator : 0;
    return DONE;
}

/* pass messages up; return the status */
__device__ int collect(const Tree &tree, const Books &books, double *room, int words, Product *mass) {
    int lane = threadIdx.x % 32, n = tree.layout.n_cliques, top = 0;
    for (int from = 0; from < n; from += 32) {
        unsigned open = __ballot_sync(ALL, from + lane < n && books.size[from + lane] != 1);
        for (; open; open &= open - 1) {
            int ended = send_up(tree, books, from + __ffs(open) - 1, room, words, &top, mass);
            if (ended != DONE) return ended;
        }
    }
    return DONE;
}

/* set up what a clique passes down, a lane each: beliefs of its children's separators, posteriors of its targets. List
   2j says where a sum begins and list 2j + 1 what is summed; `at` where the sums go, from the targets on in `out`. */
__device__ void set_down(const Tree &tree, const Books &books, int c) {
    int lane = threadIdx.x % 32, begin = tree(CHILD_START, c), children = tree(CHILD_START, c + 1) - begin;
    int first = tree(TARGET_START, c), all = children + tree(TARGET_START, c + 1) - first, k = 0;
    int axes = tree(CLIQUE_START, c + 1) - tree(CLIQUE_START, c);
    for (int from = 0; from < all; from += 32) {
        int q = from + lane, t = first + q - children;
        int child = q < children ? tree(CHILDREN, begin + q) : 0;
        bool used = q < children ? books.asked[child] && books.size[child] > 1
                                 : q < all && books.code[tree(TARGET_SLOT, t)] < 0;
        unsigned votes = __ballot_sync(ALL, used);
        int o = 2 * (k + __popc(votes & ((1u << lane) - 1u)));
        k += __popc(votes);
        if (!used) continue;
        int section = q < children ? PLACE : TARGET_PLACE, low = q < children ? tree(CLIQUE_START, child) : t;
        int j = q < children ? low + tree(N_SEPARATOR, child) - 1 : t;
        Steps kept = steps_of(books, o, o / 2 * axes), summed = steps_of(books, o + 1, o / 2 * axes + j - low + 1);
        for (int a = axes - 1; a >= 0; a--) {
            bool keep = j >= low && tree(section, j) == a;
            if (keep) j--;
            if (!books.below[a]) continue;
            if (keep) {
                kept.next(books.dims[a], books.below[a]);
            } else {
                summed.next(books.dims[a], books.below[a]);
            }
        }
        books.counts[o] = kept.count;
        books.counts[o + 1] = summed.count;
        books.at[o] = q < children ? books.message[child] + kept.boundary : tree(TARGET_AT, t);
        books.at[o + 1] = q < children ? kept.boundary : -kept.boundary;
    }
    if (lane == 0) books.said[COUNT] = k;
}

/* one clique on the way down */
__device__ void send_down(const Tree &tree, const Books &books, int c, double *room, double *out) {
    int lane = lane_of();
    if (first_warp()) {
        free_axes(tree, books, c);
        set_down(tree, books, c);
    }
    meet();
    int size = books.said[SIZE], separator = books.said[SEPARATOR], k = books.said[COUNT];
    double *message = room + books.message[c], *table = message - size, inverse = message[2 * separator];
    /* the table becomes its belief: times what the parent says beyond this clique's own message */
    if (separator > 1) {
        for (int s = lane; s < separator; s += TEAM) {
            message[s] = message[s] > 0.0 ? message[separator + s] / message[s] * inverse : 0.0;
        }
        meet();
    }
    float share = (float)separator / (float)size;
    for (int first = lane; first < size; first += TOGETHER * TEAM) {
        double old[TOGETHER];
#pragma unroll
        for (int j = 0; j < TOGETHER; j++) {
            int e = first + j * TEAM, s = separator > 1 ? (int)(((float)e + 0.5f) * share) : 2; /* 2: its scale alone */
            if (e < size) old[j] = table[e] * message[s];
        }
#pragma unroll
        for (int j = 0; j < TOGETHER; j++) {
            if (first + j * TEAM < size) table[first + j * TEAM] = old[j];
        }
    }
    meet();
    for (int o = 0; o < 2 * k; o += 2) {
        int n = books.at[o + 1], a = books.counts[o], b = books.counts[o + 1];
        const Term *kept = books.terms + books.begin[o], *summed = books.terms + books.begin[o + 1];
        double *found = (n > 0 ? room : out) + books.at[o];
        bool target = n < 0;
        if (target) n = -n;
        Seen seen = size <= TEAM ? sum_out<1>(table, found, n, size / n, kept, a, summed, b, books)
                                 : sum_out<TOGETHER>(table, found, n, size / n, kept, a, summed, b, books);
        if (!target) continue;
        double total = of_team(seen.total, false, books);
        for (int i = lane; i < n; i += TEAM) found[i] /= total;
    }
    meet();
}

/* pass beliefs down to the cliques that are asked about; write the posteriors of missing targets to `out` */
__device__ void distribute(const Tree &tree, const Books &books, double *room, double *out) {
    int lane = threadIdx.x % 32, n = tree.layout.n_cliques;
    for (int from = (n - 1) / 32 * 32; from >= 0; from -= 32) {
        unsigned asked = __ballot_sync(ALL, from + lane < n && books.asked[from + lane]);
        for (; asked; asked &= ~(1u << (31 - __clz((int)asked)))) {
            send_down(tree, books, from + 31 - __clz((int)asked), room, out);
        }
    }
}

/* Answer `n` rows, those that are `listed` or the first ones. Cell (r, c) is `codes[r * row_step + c * column_step]`, -1
   where it is missing. Teams take the row at `next` when they are done with one; `rooms` has `words` doubles for each
   team, and `books` what its books need, if shared memory has no place for them. */
extern "C" __global__ void __launch_bounds__(256, 4) answer_rows(
    const __grid_constant__ Layout layout, const int *program, const double *values, const Code *codes, big row_step,
    big column_step, const big *listed, int n, int *next, int words, double *rooms, char *books, int width, double *out,
    double *log_mass, signed char *status) {
    extern __shared__ double near[];
    int lane = lane_of(), team = threadIdx.x / TEAM;
    big which = (big)blockIdx.x * (blockDim.x / TEAM) + team;
    Tree tree = {layout, program, values};
    Books own = books_of(layout, books ? books + which * layout.book_bytes : (char *)near + team * layout.book_bytes);
    double *room = rooms + which * words;
    while (true) {
        if (lane == 0) own.said[ROW] = atomicAdd(next, 1);
        meet();
        int i = own.said[ROW];
        if (i >= n) break;
        big r = listed ? listed[i] : i;
        Row row = {codes + r * row_step, column_step};
        Product mass = {1.0, 0.0}, constant = {1.0, 0.0};
        if (first_warp()) {
            look_at(tree, row, own);
            bool possible = put_in(tree, row, own, &constant);
            open_cliques(tree, own);
            if (lane == 0) own.said[ENDED] = possible ? DONE : IMPOSSIBLE;
        }
        meet();
        int ended = own.said[ENDED];
        meet();
        if (ended == DONE) ended = collect(tree, own, room, words, &mass);
        if (first_warp()) {
            double found = sum_over(constant.total(), 32) + mass.total();
            if (lane == 0) {
                status[r] = (signed char)ended;
                log_mass[r] = ended == DONE ? found : log(0.0);
            }
        }
        if (ended == DONE) {
            double *answer = out + r * width;
            for (int k = lane; k < layout.n_targets; k += TEAM) {
                int v = tree(TARGET_SLOT, k), code = v < 0 ? row[tree(TARGET_COLUMN, k)] : own.code[v];
                if (code >= 0) answer[tree(TARGET_AT, k) + code] = 1.0;
            }
            distribute(tree, own, room, answer);
        }
        meet();
    }
}

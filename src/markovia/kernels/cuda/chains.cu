/* Markov chains of large models: sweeps of Gibbs sampling colour by colour, cluster moves of Swendsen and Wang, records.

The model comes by links (`markovia.inference.flat_graphs.padded_links`), its tables and single states as logs. Of the
state of variable i in chain c, one byte, the place is x[i * chains + c]; a thread works on LANES chains of one variable
at once, so that the links are read once for all of them, and neighbouring threads on neighbouring variables.

Random numbers are Philox 4x32-10 (Salmon, Moraes, Dror and Shaw 2011) of (seed; place, sweep, pair of chains, purpose):
what a chain draws depends neither on the launch nor on how many chains there are. Log weights are added up in whole
numbers of 2^-24, which makes sums independent of their order. Scores are floats (doubles where a variable has many
links), uniform numbers have 52 bits and are compared with sums in double, averages are double.

Cost of an update: the variable's links and one row of a table for each; a quarter of that where there are four chains.

Compile with -DSTATES=<states> -DLANES=1|2|4 -DSCORE=float|double, and -DWIDE where a table has more than two variables.
*/

typedef unsigned long long Sum;
typedef unsigned char State;

#if LANES == 4
typedef unsigned int States;
#elif LANES == 2
typedef unsigned short States;
#else
typedef unsigned char States;
#endif

#if STATES <= 16
#define UNROLL _Pragma("unroll")
#else
#define UNROLL
#endif
#if STATES * LANES <= 8
#define RESIDENT __launch_bounds__(256, 6) /* few registers: waiting for memory is hidden by other threads */
#else
#define RESIDENT
#endif
#define EACH_STATE(k) UNROLL for (int k = 0; k < STATES; ++k)
#define EACH_LANE(l) _Pragma("unroll") for (int l = 0; l < LANES; ++l)

#define UNIT 16777216.0f /* of sums of log weights */
#define SLOTS 64         /* places over which additions to one sum are spread */

/* numbers that belong to the states of a variable, read at once where they are two or four */
struct alignas(STATES == 2 ? 8 : STATES == 4 ? 16 : 4) Row {
    float of[STATES];
};

/* n variables by links, and chains on them */
struct Model {
    const int *ptr, *other_ptr, *other, *base;
    const float *tables, *unary;
    State *x;
    Sum *gains;            /* (SLOTS, chains): what is added to log weights */
    const unsigned *clock; /* sweeps and draws made so far */
    int n, chains;
    unsigned k0, k1;
};

enum { UPDATE = 0, BOND = 1, CLUSTER = 2 }; /* what a random number is for */

/* ---- random numbers ------------------------------------------------------------------------------------------ */

struct Four {
    unsigned w[4];
};

__device__ Four philox(Four c, unsigned k0, unsigned k1) {
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        unsigned long long a = (unsigned long long)0xD2511F53u * c.w[0], b = (unsigned long long)0xCD9E8D57u * c.w[2];
        c = {{(unsigned)(b >> 32) ^ c.w[1] ^ k0, (unsigned)b, (unsigned)(a >> 32) ^ c.w[3] ^ k1, (unsigned)a}};
    }
    return c;
}

/* a number from 0 up to but not 1, of 52 bits: the mantissa of one from 1 up to 2 */
__device__ double uniform(unsigned high, unsigned low) {
    return __longlong_as_double(0x3FF0000000000000ll | (long long)high << 20 | low >> 12) - 1.0;
}

/* the numbers of chains 2 * pair and 2 * pair + 1 */
__device__ void two_uniforms(const Model &m, int place, unsigned sweep, int pair, unsigned purpose, double u[2]) {
    Four r = philox({{(unsigned)place, sweep, (unsigned)pair, purpose}}, m.k0, m.k1);
    u[0] = uniform(r.w[0], r.w[1]);
    u[1] = uniform(r.w[2], r.w[3]);
}

extern "C" __global__ void random_words(int n, const unsigned *counters, const unsigned *keys, unsigned *words) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const unsigned *c = counters + 4 * i;
        Four r = philox({{c[0], c[1], c[2], c[3]}}, keys[2 * i], keys[2 * i + 1]);
        for (int k = 0; k < 4; ++k) words[4 * i + k] = r.w[k];
    }
}

/* ---- sums and states ------------------------------------------------------------------------------------------ */

/* all threads of a warp come here together, with the same `to` */
__device__ void add_up(long long amount, Sum *to) {
    for (int k = 16; k; k >>= 1) amount += __shfl_down_sync(0xffffffffu, amount, k);
    if ((threadIdx.x & 31) == 0 && amount) atomicAdd(to, (Sum)amount);
}

__device__ long long whole(float number) { return llrintf(number * UNIT); }
__device__ long long whole(double number) { return llrint(number * UNIT); }

__device__ int state_of(States word, int lane) { return word >> 8 * lane & 255; }

/* the states of a variable in LANES chains from `first` on */
__device__ States &states_at(const Model &m, int i, int first) { return *(States *)(m.x + (long long)i * m.chains + first); }

__device__ Row row_of(const float *table, long long row) { return *(const Row *)(table + row * STATES); }

/* the log weights of a variable's states given all others, in LANES chains from `first` on */
__device__ void score(const Model &m, int i, int first, SCORE (&s)[LANES][STATES]) {
    Row own = row_of(m.unary, i);
    EACH_LANE(l) EACH_STATE(k) s[l][k] = own.of[k];
    for (int p = m.ptr[i], last = m.ptr[i + 1]; p < last; ++p) {
        int at[LANES] = {};
#ifdef WIDE
        for (int e = m.other_ptr[p]; e < m.other_ptr[p + 1]; ++e) {
#else
        {
            int e = p;
#endif
            States there = states_at(m, m.other[e], first);
            EACH_LANE(l) at[l] = at[l] * STATES + state_of(there, l);
        }
        const float *table = m.tables + m.base[p];
        EACH_LANE(l) {
            Row row = row_of(table, at[l]);
            EACH_STATE(k) s[l][k] += row.of[k];
        }
    }
}

/* weights in proportion to exp(s), the largest 1; returns their sum */
__device__ double weigh_states(const SCORE (&s)[STATES], float (&w)[STATES]) {
    SCORE top = s[0];
    EACH_STATE(k) top = s[k] > top ? s[k] : top;
    double total = 0;
    EACH_STATE(k) total += w[k] = expf((float)(s[k] - top));
    return total;
}

/* the state that a number below the weights' sum falls on; never one of weight zero */
template <typename Weight>
__device__ int pick(const Weight (&w)[STATES], double at) {
    int found = 0;
    double sum = 0;
    bool open = true;
    EACH_STATE(k) if (open && w[k] > 0) {
        found = k;
        sum += w[k];
        open = !(at < sum);
    }
    return found;
}

/* ---- single variables ----------------------------------------------------------------------------------------- */

/* Draw the variables low ... high - 1, which share no table, from their distributions given all others (if `draws`), in
   the sweep that comes `later`. sums (STATES - 1, chains, n), if any, gets their probabilities, or with `states` whether
   they are in them. */
extern "C" __global__ void RESIDENT update(Model m, int low, int high, int draws, unsigned later, double *sums, int states) {
    int first = blockIdx.y * LANES;
    unsigned sweep = m.clock[0] + later;
    long long gained[LANES] = {};
    for (int i = low + blockIdx.x * blockDim.x + threadIdx.x; i < high; i += gridDim.x * blockDim.x) {
        SCORE s[LANES][STATES];
        score(m, i, first, s);
        States old = states_at(m, i, first), drawn = 0;
        double u[2];
        EACH_LANE(l) {
            int was = state_of(old, l), now = was, chain = first + l;
            float w[STATES];
            double total = weigh_states(s[l], w);
            if (draws) {
                if (l % 2 == 0) two_uniforms(m, i, sweep, chain / 2, UPDATE, u);
                now = pick(w, (chain & 1 ? u[1] : u[0]) * total);
                drawn |= (States)now << 8 * l;
                SCORE before = 0, after = 0;
                EACH_STATE(k) {
                    before = k == was ? s[l][k] : before;
                    after = k == now ? s[l][k] : after;
                }
                gained[l] += whole(after - before);
            }
            if (sums) {
                float share = 1.0f / (float)total;
                UNROLL for (int k = 1; k < STATES; ++k)
                    sums[((long long)(k - 1) * m.chains + chain) * m.n + i] += states ? (float)(k == now) : w[k] * share;
            }
        }
        if (draws) states_at(m, i, first) = drawn;
    }
    if (draws) EACH_LANE(l) add_up(gained[l], m.gains + blockIdx.x % SLOTS * m.chains + first + l);
}

/* Add the log weights of the states to the gains: a table counts at the last of its variables. */
extern "C" __global__ void weigh(Model m) {
    int first = blockIdx.y * LANES;
    long long total[LANES] = {};
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < m.n; i += gridDim.x * blockDim.x) {
        States own = states_at(m, i, first);
        EACH_LANE(l) total[l] += whole(m.unary[(long long)i * STATES + state_of(own, l)]);
        for (int p = m.ptr[i]; p < m.ptr[i + 1]; ++p) {
            bool last = true;
            int at[LANES] = {};
#ifdef WIDE
            for (int e = m.other_ptr[p]; e < m.other_ptr[p + 1]; ++e) {
#else
            {
                int e = p;
#endif
                last = last && m.other[e] < i;
                States there = states_at(m, m.other[e], first);
                EACH_LANE(l) at[l] = at[l] * STATES + state_of(there, l);
            }
            if (last) EACH_LANE(l) total[l] += whole(m.tables[m.base[p] + at[l] * STATES + state_of(own, l)]);
        }
    }
    EACH_LANE(l) add_up(total[l], m.gains + blockIdx.x % SLOTS * m.chains + first + l);
}

/* ---- records --------------------------------------------------------------------------------------------------

What is noted of a draw; arrays of draws by chains, the rows numbered by the clock. */
struct Notes {
    long long *totals, *heaviest; /* (chains,): log weights, and the largest so far */
    int *heavier;                 /* (chains,): whether a draw is the heaviest yet */
    double *logs;                 /* (draws, chains) */
    const int *watch;             /* variables whose states and probabilities given all others are noted */
    State *seen;                  /* (draws, chains, watched) */
    float *chances;               /* (draws, chains, watched, STATES) */
    int watched, fresh;           /* fresh: the gains are whole log weights */
};

/* Close a draw: the totals take in the gains, which become zero. */
extern "C" __global__ void note(Model m, Notes t) {
    int me = blockIdx.x * blockDim.x + threadIdx.x;
    long long draw = m.clock[1];
    if (me < m.chains && blockIdx.y == 0) {
        long long total = t.fresh ? 0 : t.totals[me];
        for (int k = 0; k < SLOTS; ++k) {
            total += (long long)m.gains[k * m.chains + me];
            m.gains[k * m.chains + me] = 0;
        }
        t.totals[me] = total;
        t.logs[draw * m.chains + me] = total / (double)UNIT;
        t.heavier[me] = total > t.heaviest[me];
        if (t.heavier[me]) t.heaviest[me] = total;
    }
    if (me >= t.watched) return;
    int first = blockIdx.y * LANES, i = t.watch[me];
    SCORE s[LANES][STATES];
    score(m, i, first, s);
    States own = states_at(m, i, first);
    EACH_LANE(l) {
        float w[STATES];
        double total = weigh_states(s[l], w);
        long long at = (draw * m.chains + first + l) * t.watched + me;
        t.seen[at] = state_of(own, l);
        EACH_STATE(k) t.chances[at * STATES + k] = w[k] / total;
    }
}

/* Copy the states of the chains whose draw is the heaviest yet. */
extern "C" __global__ void keep(Model m, const int *heavier, State *best) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < m.n; i += gridDim.x * blockDim.x)
        for (int c = 0; c < m.chains; ++c)
            if (heavier[c]) best[(long long)i * m.chains + c] = m.x[(long long)i * m.chains + c];
}

/* Put the clock on by a draw. */
extern "C" __global__ void tick(unsigned *clock, unsigned sweeps) {
    if (threadIdx.x == 0) {
        clock[0] += sweeps;
        clock[1] += 1;
    }
}

/* ---- clusters -------------------------------------------------------------------------------------------------

Clusters are trees of pointers to smaller numbers. Two trees are joined by hooking the larger root below the smaller one,
by compare-and-swap; whoever loses the race goes on from what it found there, and readers shorten the paths they walk
(Jaiganesh and Burtscher 2018). A pointer that is out of date still points to an ancestor, so plain reads will do. One
launch joins everything, and the root of a cluster ends as its smallest number, whatever the order. Fields are added up
in whole numbers of 1 / unit: the sum is the same in any order. */

struct Clusters {
    const int *ends, *others; /* (edges,) */
    const double *chance;     /* (edges,): of a bond between equal ones */
    int *parent;              /* (chains, n) */
    const double *field;      /* (n, STATES): log weights of single states; none where all are alike */
    Sum *sums;                /* (chains, n, STATES): those of a cluster, at its root */
    State *never;             /* (the same): whether some variable of the cluster has weight zero there */
    Sum *count;               /* (SLOTS, chains): clusters so far */
    double unit;
    int edges;
};

__device__ int root(int *parent, int i) {
    int up = parent[i];
    while (up != i) {
        int next = parent[up];
        if (next != up) parent[i] = next;
        i = up;
        up = next;
    }
    return up;
}

/* Let every variable be a cluster of its own. */
extern "C" __global__ void separate(Model m, Clusters c) {
    long long chain = (long long)blockIdx.y * m.n;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < m.n; i += gridDim.x * blockDim.x) {
        c.parent[chain + i] = i;
        if (c.field) EACH_STATE(k) {
            c.sums[(chain + i) * STATES + k] = 0;
            c.never[(chain + i) * STATES + k] = 0;
        }
    }
}

/* Join equal neighbours at random. */
extern "C" __global__ void bond(Model m, Clusters c, unsigned later) {
    int chain = blockIdx.y;
    int *parent = c.parent + (long long)chain * m.n;
    for (int e = blockIdx.x * blockDim.x + threadIdx.x; e < c.edges; e += gridDim.x * blockDim.x) {
        int i = c.ends[e], j = c.others[e];
        if (m.x[(long long)i * m.chains + chain] != m.x[(long long)j * m.chains + chain]) continue;
        double u[2];
        two_uniforms(m, e, m.clock[0] + later, chain / 2, BOND, u);
        if (!((chain & 1 ? u[1] : u[0]) < c.chance[e])) continue;
        int a = root(parent, i), b = root(parent, j);
        while (a != b) {
            int high = a > b ? a : b, low = a > b ? b : a;
            int seen = atomicCAS(parent + high, high, low);
            if (seen == high) break;
            a = root(parent, seen);
            b = root(parent, low);
        }
    }
}

/* Let every variable point to its root, and add its log fields to the root's. */
extern "C" __global__ void gather(Model m, Clusters c) {
    long long chain = (long long)blockIdx.y * m.n;
    int *parent = c.parent + chain;
    for (int from = blockIdx.x * blockDim.x; from < m.n; from += gridDim.x * blockDim.x) {
        int i = from + threadIdx.x, r = i < m.n ? root(parent, i) : m.n;
        if (i < m.n) parent[i] = r;
        int least = r; /* the root of a large cluster is a small number: its members in a warp add up before they go there */
        for (int k = 16; k; k >>= 1) {
            int there = __shfl_xor_sync(0xffffffffu, least, k);
            least = there < least ? there : least;
        }
        EACH_STATE(k) {
            double own = i < m.n ? c.field[(long long)i * STATES + k] : 0;
            bool zero = own < -1e300;
            if (zero) c.never[(chain + r) * STATES + k] = 1;
            long long amount = zero ? 0 : llrint(own * c.unit);
            add_up(r == least ? amount : 0, c.sums + (chain + least) * STATES + k);
            if (r != least && amount) atomicAdd(c.sums + (chain + r) * STATES + k, (Sum)amount);
        }
    }
}

/* a state in proportion to what the fields of a cluster add up to */
__device__ int settled(const Clusters &c, long long at, double u) {
    long long top = 0;
    bool any = false;
    EACH_STATE(k) {
        long long sum = (long long)c.sums[at + k];
        if (!c.never[at + k] && (!any || sum > top)) {
            top = sum;
            any = true;
        }
    }
    double w[STATES], total = 0;
    EACH_STATE(k) total += w[k] = c.never[at + k] ? 0.0 : exp((double)((long long)c.sums[at + k] - top) / c.unit);
    return pick(w, u * total);
}

/* Give every cluster a state: each member draws it from its root's random number. */
extern "C" __global__ void RESIDENT settle(Model m, Clusters c, unsigned later) {
    int first = blockIdx.y * LANES;
    long long roots[LANES] = {};
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < m.n; i += gridDim.x * blockDim.x) {
        States drawn = 0;
        EACH_LANE(l) {
            int chain = first + l, r = root(c.parent + (long long)chain * m.n, i);
            double u[2];
            two_uniforms(m, r, m.clock[0] + later, chain / 2, CLUSTER, u);
            double mine = chain & 1 ? u[1] : u[0];
            int now = c.field ? settled(c, ((long long)chain * m.n + r) * STATES, mine) : (int)(mine * STATES);
            drawn |= (States)now << 8 * l;
            roots[l] += r == i;
        }
        states_at(m, i, first) = drawn;
    }
    EACH_LANE(l) add_up(roots[l], c.count + blockIdx.x % SLOTS * m.chains + first + l);
}

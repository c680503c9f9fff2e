// Products of tables with some axes summed or maximised out:
// out[o] = sum over r of the product of T_i[offset_i(o, r)].
//
// A block computes tiles. A tile is some axes, or parts of them, with a lane for each position along them: those in
// which the large tables are contiguous, so that lanes read neighbours. Offsets come from small arrays, one for the
// lanes and two for where a tile is, and blocks go from tile to tile by adding with carries, so nothing is divided.
// Each thread has V lanes and goes through the removed positions, U at a time: all loads of one input are under way
// together, and where the product of the inputs so far is zero (deterministic tables) the others are not loaded.
// Inputs come small ones first. Where removed axes are in the tile, the lanes of an entry are added up by exchanges
// in a warp or in shared memory; where there are few entries, the removed positions are divided into chunks, whose
// sums a second launch adds up.
//
// A table is numbers * 2^exponent, and the host never looks at it: a slot holds the exponent and the upper halves of
// the largest number and of the smallest that is not zero. A reader multiplies by the power of two that makes the
// largest about one; the writer's blocks find largest and smallest by atomic maxima. Where the smallest numbers show
// that no product can leave the range of doubles, the scales are joined to one; else every product that is not zero
// is rounded up to 2^-1030, so that zeros stay those of the model, and an entry between zero and the floor sets a
// flag, since it may have lost digits. Products and sums are doubles whatever is stored; floats are stored times
// 2^90, and keep 2^-216 of the largest possible.
//
// Compiled for a number of inputs (INPUTS; 0: any, read from memory), what numbers are stored as (IN, OUT), and
// offsets of lanes (LOW), and for sums or maxima (MAXIMISE).

#ifndef INPUTS
#define INPUTS 1
#endif
#ifndef IN
#define IN double
#endif
#ifndef OUT
#define OUT double
#endif
#ifndef LOW
#define LOW unsigned
#endif
#ifndef MAXIMISE
#define MAXIMISE 0
#endif

typedef long long i64;
typedef unsigned long long u64;

constexpr double SMALLEST = 8.691694759794e-311;  // 2^-1030
constexpr int LEAST = -1000;  // scales are not larger than two to minus this, so that they are numbers
constexpr bool SINGLE = sizeof(OUT) == 4;
constexpr int BIAS = SINGLE ? 90 : 0;
// products are easy whose smallest number is above two to the first, and scales can be joined that are below the
// second
constexpr int EASY = sizeof(IN) == 4 ? -200 : -600, NEAR = sizeof(IN) == 4 ? 800 : 300;
constexpr int INFINITE = 0x7ff00000;
constexpr bool GATED = sizeof(IN) == 8;  // whether zeros keep others from being loaded: floats come faster all at once

struct Slot {
    i64 exponent;
    int most;   // the upper half of the largest number
    int least;  // that of infinity, minus that of the smallest number that is not zero: both only ever grow
};

struct Input {
    const IN* numbers;
    const Slot* slot;
    const LOW* low;  // where a lane reads, in bytes from the position of the tile on
    const i64* mid;  // where a tile lies: two parts
    const i64* top;
    const i64* outer;  // where a chunk of the removed positions lies
    const i64* far;    // where they lie in it: an array, and a step for the innermost
    i64 step;
};

struct Job {
    OUT* out;
    Slot* slot;
    const Slot* old;  // the slot of what is in `out` and added to, or nothing
    int* lost;
    const Input* inputs;  // where they are not arguments
    i64 n;
    const LOW* out_low;  // where a lane, or an entry in shared memory, is written
    const i64* out_mid;
    const i64* out_top;
    const LOW* place;  // where lanes of one entry meet in shared memory
    i64 exchange;      // whether they are neighbours in a warp
    i64 lanes, along;  // lanes of a tile, and of one entry in it
    i64 mids, tops, segments, chunks;  // a tile of more lanes than a block has is divided; `along` is one then
    i64 fars, run;                     // removed positions in a chunk
    i64 size;                          // entries of the result; where there are chunks each has its own
};

// -- numbers -------------------------------------------------------------------------------------------------------

__device__ inline double power(int k) {  // -1022 <= k <= 1023
    return __longlong_as_double((i64)(k + 1023) << 52);
}

__device__ inline double joined(double a, double b) { return MAXIMISE ? (a > b ? a : b) : a + b; }

// a product, which is not zero unless a factor is
__device__ inline double careful(double p, double x) {
    double q = p * x;
    return p > 0 && x > 0 && q < SMALLEST ? SMALLEST : q;
}

__device__ inline double times_power(double x, i64 k) {
    int m = k < -2040 ? -2040 : k > 2000 ? 2000 : (int)k;
    return careful(x * power(m / 2), power(m - m / 2));
}

// a number is in [1/2, 1) times two to this
__device__ inline int exponent_of(int upper) { return (upper >> 20) - 1022; }

__device__ inline int top_of(const Slot& slot) {
    int m = exponent_of(slot.most);
    return slot.most == 0 ? 0 : m < LEAST ? LEAST : m;
}

__device__ inline double load(const IN* from, LOW bytes) {
    return (double)__ldg((const IN*)((const char*)from + bytes));
}

// -- scales --------------------------------------------------------------------------------------------------------

struct Scales {
    i64 exponent = 0;
    int spread = 0, moved = 0;
    bool empty = false;  // whether an input is all zero

    __device__ void add(const Slot& slot) {
        int top = top_of(slot);
        exponent += slot.exponent + top;
        spread += exponent_of(INFINITE - slot.least) - top;
        moved += top < 0 ? -top : top;
        empty |= slot.most == 0;
    }
    __device__ bool easy() const { return !empty && spread > EASY && moved < NEAR; }
};

struct Writer {
    bool onto, partial, lost;
    i64 fresh, kept;  // powers that bring the products and what was there before on one scale
    int most;
    unsigned least;

    __device__ Writer(const Job& job, const Scales& scales) {
        onto = job.old != 0;
        partial = job.chunks > 1;
        lost = false;
        fresh = kept = 0;
        most = 0;
        least = INFINITE;
        i64 exponent = scales.empty ? 0 : scales.exponent;
        if (onto && job.old->most != 0) {
            // the larger of the two scales
            i64 before = job.old->exponent + top_of(*job.old);
            i64 total = scales.empty || before > exponent ? before : exponent;
            fresh = exponent - total;
            kept = job.old->exponent - total;
            exponent = total;
        }
        if (blockIdx.x == 0 && threadIdx.x == 0) {
            job.slot->exponent = exponent - (partial ? 0 : BIAS);
            // chunks are added up as they are
            if (partial && !scales.empty) job.slot->most = 1022 << 20;
        }
    }

    __device__ void write(OUT* at, double value) {
        if (onto) value = joined(times_power(value, fresh), times_power((double)*at, kept));
        if (SINGLE) value *= power(BIAS);
        OUT stored = (OUT)value;
        if (SINGLE && stored == 0 && value > 0) stored = (OUT)1.4012984643e-45;
        *at = stored;
        // upper halves are ordered as numbers are; zero, less one, is the largest
        int upper = __double2hiint(value);
        most = upper > most ? upper : most;
        unsigned positive = (unsigned)(upper - 1);
        least = positive < least ? positive : least;
    }

    __device__ void finish(const Job& job) {
        __shared__ int largest[32], smallest[32];
        int floor = (SINGLE ? 1023 - 126 : 1023 + LEAST) << 20;
        int low = least < INFINITE ? INFINITE - 1 - (int)least : 0;
        for (int k = 16; k; k /= 2) {
            most = max(most, __shfl_xor_sync(~0u, most, k));
            low = max(low, __shfl_xor_sync(~0u, low, k));
        }
        if (threadIdx.x % 32 == 0) {
            largest[threadIdx.x / 32] = most;
            smallest[threadIdx.x / 32] = low;
        }
        __syncthreads();
        if (threadIdx.x) return;
        for (int k = 1; k < (int)(blockDim.x / 32); ++k) {
            most = max(most, largest[k]);
            low = max(low, smallest[k]);
        }
        if (low == 0) return;
        atomicMax(&job.slot->least, low);
        if (partial) return;
        atomicMax(&job.slot->most, most);
        if (INFINITE - low < floor) *job.lost = 1;
    }
};

// add up the lanes of each entry, which lie together in shared memory
__device__ inline void add_lanes(double* room, int entries, int along) {
    int left = along;
    while (left > 32) {
        int half = (left + 1) / 2, rest = left - half;
        __syncthreads();
        for (int j = threadIdx.x; j < entries * rest; j += blockDim.x) {
            double* at = room + j / rest * along + j % rest;
            *at = joined(at[0], at[half]);
        }
        left = half;
    }
    __syncthreads();
    for (int e = threadIdx.x; e < entries; e += blockDim.x) {
        double sum = room[e * along];
        for (int k = 1; k < left; ++k) sum = joined(sum, room[e * along + k]);
        room[e * along] = sum;
    }
    __syncthreads();
}

// A unit of work, as digits: where its tile is, which part of that, and which chunk of the removed positions. Blocks
// go on by the number of blocks, which is added with carries.
struct Unit {
    unsigned mid, top, segment, chunk;

    __device__ Unit(const Job& job, unsigned number) {
        mid = number % (unsigned)job.mids;
        number /= (unsigned)job.mids;
        top = number % (unsigned)job.tops;
        number /= (unsigned)job.tops;
        segment = number % (unsigned)job.segments;
        chunk = number / (unsigned)job.segments;
    }
    __device__ void advance(const Job& job, const Unit& by) {
        mid += by.mid;
        bool carry = mid >= (unsigned)job.mids;
        mid -= carry ? (unsigned)job.mids : 0;
        top += by.top + carry;
        carry = top >= (unsigned)job.tops;
        top -= carry ? (unsigned)job.tops : 0;
        segment += by.segment + carry;
        carry = segment >= (unsigned)job.segments;
        segment -= carry ? (unsigned)job.segments : 0;
        chunk += by.chunk + carry;
    }
    __device__ bool exists(const Job& job) const { return chunk < (unsigned)job.chunks; }
    // where an input is read from, and where the result is written
    __device__ const IN* from(const Input& in) const {
        return in.numbers + (in.mid[mid] + in.top[top] + in.outer[chunk]);
    }
    __device__ OUT* to(const Job& job) const {
        return job.out + (job.out_mid[mid] + job.out_top[top] + chunk * job.size);
    }
};

// -- any inputs ------------------------------------------------------------------------------------------------------

// The scales of the inputs are in shared memory; products that are not zero are rounded up.
template <int V>
__device__ inline void multiply_any(const Job& job, const Input* inputs, const Scales& scales, Writer& writer) {
    extern __shared__ double room[];
    int n = (int)job.n, along = (int)job.along;
    double* scale = room + (along > 1 ? job.lanes : 0);
    const IN** tile = (const IN**)(scale + n);
    for (int i = threadIdx.x; i < n; i += blockDim.x) scale[i] = power(-top_of(*inputs[i].slot));
    Unit unit(job, blockIdx.x), by(job, gridDim.x);
    for (; unit.exists(job); unit.advance(job, by)) {
        __syncthreads();
        for (int i = threadIdx.x; i < n; i += blockDim.x) tile[i] = unit.from(inputs[i]);
        __syncthreads();
        OUT* out = unit.to(job);
        for (int v = 0; v < V; ++v) {
            int lane = (int)((unit.segment * V + v) * blockDim.x + threadIdx.x);
            if (lane >= job.lanes) continue;
            double sum = 0;
            for (int far = scales.empty ? (int)job.fars : 0; far < job.fars; ++far)
                for (i64 r = 0; r < job.run; ++r) {
                    double p = 1;
                    for (int i = 0; i < n && p != 0; ++i) {
                        double x = load(tile[i] + (inputs[i].far[far] + r * inputs[i].step), inputs[i].low[lane]);
                        p = careful(p, x * scale[i]);
                    }
                    sum = joined(sum, p);
                }
            if (along == 1)
                writer.write(out + job.out_low[lane], sum);
            else
                room[job.place[lane]] = sum;
        }
        if (along > 1) {
            add_lanes(room, (int)job.lanes / along, along);
            for (int e = threadIdx.x; e < job.lanes / along; e += blockDim.x)
                writer.write(out + job.out_low[job.exchange ? e * along : e], room[e * along]);
        }
    }
    writer.finish(job);
}

// -- a known number of inputs of which no product is too small: what is needed again is in registers ------------------

template <int N>
struct Arguments {
    Job job;
    Input inputs[N ? N : 1];
};

// Go through the removed positions of a unit. Lanes beyond the tile read what the first one does, positions beyond
// the last read that one again and count nothing.
template <int N, int V, int U>
__device__ inline void accumulate(
    const Arguments<N>& given, const Unit& unit, const LOW (&low)[N][V], double scale, double (&sum)[V]) {
    int run = (int)given.job.run, fars = (int)given.job.fars;
    const IN* tile[N];
#pragma unroll
    for (int i = 0; i < N; ++i) tile[i] = unit.from(given.inputs[i]);
    for (int far = 0; far < fars; ++far) {
        const IN* at[N];
#pragma unroll
        for (int i = 0; i < N; ++i) at[i] = fars > 1 ? tile[i] + given.inputs[i].far[far] : tile[i];
        for (int r = 0; r < run; r += U) {
            double p[V][U];
#pragma unroll
            for (int i = 0; i < N; ++i) {
                double x[V][U];
#pragma unroll
                for (int u = 0; u < U; ++u) {
                    const IN* from = at[i] + (r + u < run ? u * given.inputs[i].step : 0);
#pragma unroll
                    for (int v = 0; v < V; ++v) {
                        x[v][u] = 0;
                        if (i == 0 || !GATED || p[v][u] != 0) x[v][u] = load(from, low[i][v]);
                    }
                }
                at[i] += U * given.inputs[i].step;
#pragma unroll
                for (int u = 0; u < U; ++u)
#pragma unroll
                    for (int v = 0; v < V; ++v)
                        p[v][u] = (i ? p[v][u] : U == 1 || r + u < run ? scale : 0) * x[v][u];
            }
#pragma unroll
            for (int v = 0; v < V; ++v)
#pragma unroll
                for (int u = 0; u < U; ++u) sum[v] = joined(sum[v], p[v][u]);
        }
    }
}

template <int N, int V, int U>
__device__ inline void multiply(const Arguments<N>& given) {
    extern __shared__ double room[];
    const Job& job = given.job;
    double scale = 1;
    Scales scales;
#pragma unroll
    for (int i = 0; i < N; ++i) {
        Slot slot = *given.inputs[i].slot;
        scales.add(slot);
        scale *= power(-top_of(slot));
    }
    Writer writer(job, scales);
    if (!scales.easy()) {
        multiply_any<V>(job, given.inputs, scales, writer);
        return;
    }
    Unit unit(job, blockIdx.x), by(job, gridDim.x);
    unsigned segment = ~0u;
    LOW low[N][V], out_low[V];
    bool alone = job.along == 1, exchange = job.exchange;
    for (; unit.exists(job); unit.advance(job, by)) {
        int begin = (int)(unit.segment * blockDim.x * V + threadIdx.x);
        if (segment != unit.segment) {
            segment = unit.segment;
#pragma unroll
            for (int v = 0; v < V; ++v) {
                int lane = begin + v * (int)blockDim.x;
                bool there = lane < job.lanes;
#pragma unroll
                for (int i = 0; i < N; ++i) low[i][v] = there ? given.inputs[i].low[lane] : 0;
                out_low[v] = there && (alone || exchange) ? job.out_low[lane] : 0;
            }
        }
        double sum[V];
#pragma unroll
        for (int v = 0; v < V; ++v) sum[v] = 0;
        accumulate<N, V, U>(given, unit, low, scale, sum);
        OUT* out = unit.to(job);
        if (alone || exchange) {
            unsigned along = (unsigned)job.along;
            for (unsigned k = 1; k < along; k *= 2)
#pragma unroll
                for (int v = 0; v < V; ++v) sum[v] = joined(sum[v], __shfl_xor_sync(~0u, sum[v], k));
#pragma unroll
            for (int v = 0; v < V; ++v)
                if (begin + v * (int)blockDim.x < job.lanes && (threadIdx.x & (along - 1)) == 0)
                    writer.write(out + out_low[v], sum[v]);
        } else {
            int along = (int)job.along, entries = (int)job.lanes / along;
#pragma unroll
            for (int v = 0; v < V; ++v)
                if (begin + v * (int)blockDim.x < job.lanes) room[job.place[begin + v * (int)blockDim.x]] = sum[v];
            add_lanes(room, entries, along);
            for (int e = threadIdx.x; e < entries; e += blockDim.x) writer.write(out + job.out_low[e], room[e * along]);
            __syncthreads();
        }
    }
    writer.finish(job);
}

template <int V>
__device__ inline void multiply(const Job& job) {
    Scales scales;
    for (int i = 0; i < job.n; ++i) scales.add(*job.inputs[i].slot);
    Writer writer(job, scales);
    multiply_any<V>(job, job.inputs, scales, writer);
}

#if INPUTS > 0
// as many lanes for a thread, and threads for a multiprocessor, as its registers hold
constexpr int LANES = INPUTS <= 4 ? 8 : 4, RESIDENT = INPUTS == 1 ? 3 : 2;
extern "C" __global__ void __launch_bounds__(256, RESIDENT)
multiply_wide(const __grid_constant__ Arguments<INPUTS> given) {
    multiply<INPUTS, LANES, 1>(given);
}
extern "C" __global__ void __launch_bounds__(256) multiply_narrow(const __grid_constant__ Arguments<INPUTS> given) {
    multiply<INPUTS, 1, 4>(given);
}
#else
extern "C" __global__ void __launch_bounds__(256) multiply_wide(const __grid_constant__ Arguments<0> given) {
    multiply<8>(given.job);
}
extern "C" __global__ void __launch_bounds__(256) multiply_narrow(const __grid_constant__ Arguments<0> given) {
    multiply<1>(given.job);
}

// -- rows: each input is read from a place of its own in each row ---------------------------------------------------

struct Stretch {
    const IN* numbers;
    const Slot* slot;
    const i64* low;
    const i64* starts;
};

// x = fraction * 2^exponent, the fraction in [1/2, 1) or zero
__device__ inline double apart(double x, int& exponent) {
    int e;
    x = frexp(x, &e);
    exponent += e;
    return x;
}

__device__ inline double row_entry(const Stretch* inputs, int n, i64 row, int entry, int& exponent) {
    double p = 1;
    exponent = 0;
    for (int i = 0; i < n && p != 0; ++i) {
        double x = (double)inputs[i].numbers[inputs[i].starts[row] + inputs[i].low[entry]];
        p = apart(p * apart(x, exponent), exponent);
    }
    return p;
}

// Several threads a row. A row may lie where all inputs are small, so exponents are added up apart from the
// fractions, and the largest of a row is taken out.
struct Rows {
    const Stretch* inputs;
    i64 n, rows, size, threads;
    double* out;
    double* scale;  // the logarithm (base two) of what a row is to be multiplied by
};

extern "C" __global__ void multiply_rows(const __grid_constant__ Rows given) {
    extern __shared__ int tops[];
    const Stretch* inputs = given.inputs;
    int n = (int)given.n, size = (int)given.size, threads = (int)given.threads;
    i64 rows = given.rows, row = (i64)blockIdx.x * (blockDim.x / threads) + threadIdx.x / threads;
    int me = threadIdx.x % threads, exponent, top = -2147483647;
    if (row < rows)
        for (int e = me; e < size; e += threads)
            if (row_entry(inputs, n, row, e, exponent) > 0 && exponent > top) top = exponent;
    tops[threadIdx.x] = top;
    __syncthreads();
    for (int k = 0; k < threads; ++k) top = max(top, tops[threadIdx.x - me + k]);
    if (row >= rows) return;
    for (int e = me; e < size; e += threads) {
        double p = row_entry(inputs, n, row, e, exponent);
        given.out[row * size + e] = times_power(p, (i64)exponent - top);
    }
    if (me == 0) {
        double total = top;
        for (int i = 0; i < n; ++i) total += (double)inputs[i].slot->exponent;
        given.scale[row] = total;
    }
}
#endif

// CUDA's words for a C++ compiler: the threads of a block are coroutines that take turns, so barriers and exchanges between
// the lanes of a warp work, and blocks run one after another. Nothing runs at the same time: atomic operations are plain
// ones, a static variable is shared memory, and a run is the same each time.

#pragma once
#include <cmath>
#include <csetjmp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>
#include <ucontext.h>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __shared__ static
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __grid_constant__

struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(16) double2 { double x, y; };
static inline double2 make_double2(double x, double y) { return {x, y}; }
static inline float2 make_float2(float x, float y) { return {x, y}; }

static dim3 threadIdx, blockIdx, blockDim, gridDim;
static const int warpSize = 32;

namespace processor {

constexpr size_t STACK = 64 * 1024;

struct Meeting {  // a barrier: how many are there, and how many have to come
    unsigned here = 0, members = 0, round = 0;
};
struct Thread {
    ucontext_t context;  // how it begins
    jmp_buf left_off;    // where it goes on; to change context by a jump takes no call of the system
    dim3 place;
    bool begun = false, done = false;
};

static jmp_buf home;
static std::vector<Thread> threads;
static std::vector<char*> stacks;
static std::vector<Meeting> warps;
static Meeting block;
static unsigned current;
static std::vector<uint64_t> exchanged;
static std::vector<char> room;  // shared memory whose size is said at the launch
static void (*body)(void*);
static void* body_data;

static void yield() {
    if (_setjmp(threads[current].left_off) == 0) _longjmp(home, 1);
}

static void meet(Meeting& meeting) {
    unsigned round = meeting.round;
    ++meeting.here;
    while (meeting.round == round) {
        if (meeting.here >= meeting.members) {
            meeting.here = 0;
            ++meeting.round;
        } else {
            yield();
        }
    }
}

static unsigned linear() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }

static void begin() {
    unsigned me = current;
    body(body_data);
    threads[me].done = true;
    --block.members;
    --warps[me / warpSize].members;
    _longjmp(home, 1);
}

static void run_block(unsigned n, bool apart) {
    if (!apart) {  // no thread waits for another one
        for (unsigned t = 0; t < n; ++t) {
            threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
            body(body_data);
        }
        return;
    }
    threads.resize(n);
    while (stacks.size() < n) stacks.push_back(static_cast<char*>(malloc(STACK)));
    exchanged.assign(n + warpSize, 0);
    block = {0, n, 0};
    warps.assign(n / warpSize + 1, Meeting());
    for (unsigned t = 0; t < n; ++t) {
        Thread& thread = threads[t];
        thread.begun = thread.done = false;
        thread.place = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
        ++warps[t / warpSize].members;
        getcontext(&thread.context);
        thread.context.uc_stack.ss_sp = stacks[t];
        thread.context.uc_stack.ss_size = STACK;
        thread.context.uc_link = nullptr;
        makecontext(&thread.context, begin, 0);
    }
    while (block.members > 0) {
        for (volatile unsigned t = 0; t < n; t = t + 1) {  // volatile: it has to outlive the jumps
            Thread& thread = threads[t];
            if (thread.done) continue;
            current = t;
            threadIdx = thread.place;
            if (_setjmp(home) == 0) {
                if (thread.begun) _longjmp(thread.left_off, 1);
                thread.begun = true;
                setcontext(&thread.context);
            }
        }
    }
}

template <class F>
static void launch(dim3 grid, dim3 threads_of_block, size_t shared, bool apart, F&& kernel) {
    gridDim = grid;
    blockDim = threads_of_block;
    room.assign(shared + 16, 0x55);
    body = [](void* data) { (*static_cast<std::remove_reference_t<F>*>(data))(); };
    body_data = &kernel;
    for (unsigned z = 0; z < grid.z; ++z)
        for (unsigned y = 0; y < grid.y; ++y)
            for (unsigned x = 0; x < grid.x; ++x) {
                blockIdx = {x, y, z};
                run_block(blockDim.x * blockDim.y * blockDim.z, apart);
            }
}

template <class... A, size_t... I>
static void call(void (*kernel)(A...), void** arguments, std::index_sequence<I...>) {
    kernel(*static_cast<std::remove_const_t<std::remove_reference_t<A>>*>(arguments[I])...);
}

template <class... A>
static void start(void (*kernel)(A...), const unsigned* dims, size_t shared, bool apart, void** arguments) {
    launch({dims[0], dims[1], dims[2]}, {dims[3], dims[4], dims[5]}, shared, apart,
           [&] { call(kernel, arguments, std::index_sequence_for<A...>()); });
}

template <class... A>
static constexpr int arity(void (*)(A...)) { return sizeof...(A); }

static void* dynamic_shared() { return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(room.data()) + 15) / 16 * 16); }

// every lane shows a value and takes that of another one
template <class T>
static T swap_lanes(T value, unsigned other, bool valid) {
    static_assert(sizeof(T) <= 8, "lanes exchange numbers");
    unsigned me = linear(), warp = me / warpSize;
    exchanged[me] = 0;
    memcpy(&exchanged[me], &value, sizeof(T));
    meet(warps[warp]);
    T found = value;
    if (valid) memcpy(&found, &exchanged[warp * warpSize + other], sizeof(T));
    meet(warps[warp]);
    return found;
}

}  // namespace processor

static inline void __syncthreads() { processor::meet(processor::block); }
static inline void __syncwarp(unsigned = 0) { processor::meet(processor::warps[processor::linear() / warpSize]); }
static inline int __syncthreads_or(int p) {
    static int any[2];
    static unsigned round;
    __syncthreads();
    unsigned mine = round & 1;
    any[mine] |= p != 0;
    __syncthreads();
    int found = any[mine];
    __syncthreads();
    any[mine] = 0;
    return found;
}
static inline void __threadfence() {}
static inline void __threadfence_block() {}

template <class T>
static T __shfl_sync(unsigned, T value, int lane, int width = 32) {
    unsigned me = processor::linear() % warpSize;
    return processor::swap_lanes(value, me / width * width + lane % width, true);
}
template <class T>
static T __shfl_down_sync(unsigned, T value, unsigned by, int width = 32) {
    unsigned me = processor::linear() % warpSize;
    return processor::swap_lanes(value, me + by, me % width + by < static_cast<unsigned>(width));
}
template <class T>
static T __shfl_up_sync(unsigned, T value, unsigned by, int width = 32) {
    unsigned me = processor::linear() % warpSize;
    return processor::swap_lanes(value, me - by, me % width >= by);
}
template <class T>
static T __shfl_xor_sync(unsigned, T value, int by, int width = 32) {
    unsigned me = processor::linear() % warpSize, other = me ^ by;
    return processor::swap_lanes(value, other, other / width == me / width);
}
static inline unsigned __ballot_sync(unsigned mask, int p) {
    unsigned found = 0;
    for (int lane = 0; lane < warpSize; ++lane)
        found |= (__shfl_sync(mask, p, lane) != 0 && (mask >> lane & 1) ? 1u : 0u) << lane;
    return found;
}
static inline int __any_sync(unsigned mask, int p) { return __ballot_sync(mask, p) != 0; }
static inline int __all_sync(unsigned mask, int p) { return __ballot_sync(mask, !p) == 0; }

template <class T, class V>
static T atomicAdd(T* at, V value) { T old = *at; *at = old + static_cast<T>(value); return old; }
template <class T, class V>
static T atomicSub(T* at, V value) { T old = *at; *at = old - static_cast<T>(value); return old; }
template <class T, class V>
static T atomicMax(T* at, V value) { T old = *at; if (static_cast<T>(value) > old) *at = value; return old; }
template <class T, class V>
static T atomicMin(T* at, V value) { T old = *at; if (static_cast<T>(value) < old) *at = value; return old; }
template <class T, class V>
static T atomicExch(T* at, V value) { T old = *at; *at = value; return old; }
template <class T, class V>
static T atomicOr(T* at, V value) { T old = *at; *at = old | static_cast<T>(value); return old; }
template <class T, class V>
static T atomicAnd(T* at, V value) { T old = *at; *at = old & static_cast<T>(value); return old; }
template <class T, class V, class W>
static T atomicCAS(T* at, V expected, W value) {
    T old = *at;
    if (old == static_cast<T>(expected)) *at = value;
    return old;
}

template <class To, class From>
static inline To processor_bits(From value) {
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To found;
    memcpy(&found, &value, sizeof(To));
    return found;
}
static inline double __longlong_as_double(long long v) { return processor_bits<double>(v); }
static inline long long __double_as_longlong(double v) { return processor_bits<long long>(v); }
static inline float __int_as_float(int v) { return processor_bits<float>(v); }
static inline int __float_as_int(float v) { return processor_bits<int>(v); }
static inline float __uint_as_float(unsigned v) { return processor_bits<float>(v); }
static inline unsigned __float_as_uint(float v) { return processor_bits<unsigned>(v); }
static inline int __double2hiint(double v) { return static_cast<int>(__double_as_longlong(v) >> 32); }
static inline int __double2loint(double v) { return static_cast<int>(__double_as_longlong(v)); }
static inline double __hiloint2double(int hi, int lo) {
    return __longlong_as_double(static_cast<long long>((static_cast<uint64_t>(static_cast<uint32_t>(hi)) << 32) | static_cast<uint32_t>(lo)));
}
template <class T>
static inline T __ldg(const T* at) { return *at; }
template <class T>
static inline T __ldcs(const T* at) { return *at; }
template <class T, class V>
static inline void __stcs(T* at, V value) { *at = value; }
static inline int __popc(unsigned v) { return __builtin_popcount(v); }
static inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
static inline int __clz(int v) { return v ? __builtin_clz(v) : 32; }
static inline int __ffs(int v) { return __builtin_ffs(v); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<uint64_t>(a) * b >> 32; }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return static_cast<unsigned __int128>(a) * b >> 64;
}
// the C library has functions of these names
#define __expf(v) std::exp(static_cast<float>(v))
#define __logf(v) std::log(static_cast<float>(v))
static inline float __fdividef(float a, float b) { return a / b; }
template <class A, class B>
static inline std::common_type_t<A, B> min(A a, B b) { return b < a ? b : a; }
template <class A, class B>
static inline std::common_type_t<A, B> max(A a, B b) { return a < b ? b : a; }

/* Counting configurations: many tables over rows of state codes in one launch.

A block takes a stretch of rows and a share of the tables (`gridDim.x` shares). Tables of a share that fit are counted in
shared memory and added to global memory once a block; a share of one large table is counted where it lies. Rows that miss
a cell of a table are left out there. Counts are whole numbers, so their order does not matter.
Cost: rows times the columns of all tables for the indices, rows times tables for the counters.

Compile with -DCODE_BYTES=1|4, the size of a state code.
*/

typedef long long big;
#if CODE_BYTES == 1
typedef signed char Code;
#else
typedef int Code;
#endif

/* `codes` has one row of `rows` cells a column. The columns of table t are `scope[scope_start[t] .. scope_start[t + 1]]`
   with their strides; it begins at `table_at[t]` in `out`. Share s has the tables `share_at[s] .. share_at[s + 1]`, and is
   counted in shared memory if its cells are at most `near`. */
extern "C" __global__ void __launch_bounds__(512) count_tables(
    const Code *codes, big rows, const int *scope_start, const int *scope, const int *stride, const big *table_at,
    const int *share_at, int near, unsigned *out) {
    extern __shared__ unsigned cells[];
    int first = share_at[blockIdx.x], last = share_at[blockIdx.x + 1];
    big begin = table_at[first], size = table_at[last] - begin;
    unsigned *counted = size <= near ? cells : out + begin;
    if (size <= near) {
        for (int i = threadIdx.x; i < size; i += blockDim.x) cells[i] = 0;
        __syncthreads();
    }
    big step = (big)gridDim.y * blockDim.x;
    for (big r = (big)blockIdx.y * blockDim.x + threadIdx.x; r < rows; r += step) {
        for (int t = first; t < last; t++) {
            big at = table_at[t] - begin;
            int missed = 0;
            for (int k = scope_start[t]; k < scope_start[t + 1]; k++) {
                int code = codes[scope[k] * rows + r];
                missed |= code;
                at += (big)stride[k] * code;
            }
            if (missed >= 0) atomicAdd(counted + at, 1u);
        }
    }
    if (size <= near) {
        __syncthreads();
        for (int i = threadIdx.x; i < size; i += blockDim.x) {
            if (cells[i]) atomicAdd(out + begin + i, cells[i]);
        }
    }
}

// Workloads that were run on PTO-WSP v9's simulator, rebuilt through the public API with tile
// kernels made of the very operations of v9's. A kernel must become v9's list of instructions, in
// order and each with its cycles, but for those that cost nothing there; waits, barriers, and what
// moves numbers about for free are ptowsp's own affair. Then the cases run as in oracle_run.h:
// times, and sums over everything that the kernels wrote.
//
// oracle_kernel_cases.h has the tables, written by oracle_cases.py. The few kernels that v9 has as
// C functions are C functions here, too.

#include "oracle_tables.h"

// scores, indices: those of the 8 largest scores, the lower index first among equals; 4 cycles more
// for each of the scores that it claims to be padded to.
static ptowsp_cycles oracle_topk8(const ptowsp_task *task, void *user) {
    (void)user;
    bool is_taken[32] = {false};
    for (int64_t k = 0; k < ptowsp_task_cols(task, 1); k++) {
        int32_t best = -1;
        for (int32_t i = 0; i < 32; i++) {
            if (!is_taken[i] && (best < 0 || *f32_at(task, 0, 0, i) > *f32_at(task, 0, 0, best))) {
                best = i;
            }
        }
        is_taken[best] = true;
        *(int32_t *)element_at(task, 1, 0, k) = best;
    }
    uint64_t pad_to = ptowsp_task_scalar(task, 0);
    return 32 + 5 * 32 + (pad_to > 32 ? pad_to / 32 * 128 : 0);
}

#include "oracle_kernel_cases.h"

#include "oracle_run.h"
#include "oracle_tiles.h"

static ptowsp_kernel make_kernel(oracle *o, uint32_t k) {
    const oracle_kernel *kernel = &oracle_kernels[k];
    return kernel->fn ? make_c_kernel(o, k, NULL) : make_tile_kernel(o, kernel);
}

int main(void) {
    return run_cases(false);
}

// Workloads that were run on PTO-WSP v9's simulator, rebuilt through the public API with tile
// kernels made of the very operations of v9's. A kernel must become v9's list of instructions, in
// order and each with its cycles, but for those that cost nothing there; waits, barriers, and what
// moves numbers about for free are ptowsp's own affair. Then the cases run as in oracle_run.h:
// times, and sums over everything that the kernels wrote.
//
// oracle_kernel_cases.h has the tables, written by oracle_cases.py. The few kernels that v9 has as
// C functions are C functions here, too.

#include "oracle_tables.h"

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

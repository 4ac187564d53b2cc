// Workloads that were run on PTO-WSP v9's simulator, with tile kernels, as emitted trees. See
// npu_oracle.h; the tables are those of oracle_kernel_test.c.

#define _POSIX_C_SOURCE 200809L

#include "oracle_tables.h"

#include "oracle_kernel_cases.h"

#include "npu_oracle.h"
#include "oracle_tiles.h"

static ptowsp_kernel make_kernel(oracle *o, uint32_t k) {
    const oracle_kernel *kernel = &oracle_kernels[k];
    return kernel->fn ? make_c_kernel(o, k, NULL) : make_tile_kernel(o, kernel);
}

int main(void) {
    return compare_cases("npu_oracle");
}

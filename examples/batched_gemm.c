// A batch of matrix products in f16, each with sizes of its own (common/gemm.h): entries that
// differ in their rows alone, as the experts of a layer do, and entries that differ in all sizes.
// One of them is empty. Both run the same workload: only what is bound differs.

#include "ptowsp.h"

#include "common/gemm.h"

#include <stdio.h>

enum { LANES = 8 };

int main(int argc, char **argv) {
    static const char *const names[] = {"rows differ", "all differ"};
    const gemm_size *const batches[] = {gemm_fixed, gemm_ragged};
    const ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_WORK_STEALING,
                                      .lane_count = LANES};
    setup s;
    setup_create(&s, argc, argv);
    gemm g;
    gemm_make(&g, &s);
    printf("a batch of %d products in f16, tiles of %d\n", GEMM_ENTRIES, GEMM_TILE);
    setup_print_kernel(&s, "gemm", g.kernel);
    bool is_good = true;
    for (int i = 0; i < 2; i++) {
        gemm_fill(&g, &s, batches[i]);
        is_good &= setup_run(&s, names[i], &schedule);
        is_good &= setup_report(g.c, g.error, GEMM_ALLOWED);
    }
    gemm_destroy(&g);
    setup_destroy(&s);
    return is_good ? 0 : 1;
}

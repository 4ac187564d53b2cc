// Takes a batch of matrix products of unequal sizes (common/gemm.h) to an NPU: writes its source
// tree, builds that for this machine, and compares outputs and cycles with those of the library, in
// both cost models, for two batches. `emit_gemm --help` lists the options.

#include "ptowsp.h"

#include "common/emit.h"
#include "common/gemm.h"

#include <stdio.h>

enum { LANES = 8 };

int main(int argc, char **argv) {
    static const char *const names[] = {"rows differ", "all differ"};
    const gemm_size *const batches[] = {gemm_fixed, gemm_ragged};
    emit e;
    setup s;
    gemm g;
    emit_parse(&e, "gemm", argc, argv);
    setup_create_serial(&s);
    gemm_make(&g, &s);
    ptowsp_run *run = emit_setup(&e, "a ragged batch of products", &s, LANES);
    for (int i = 0; i < 2; i++) {
        gemm_fill(&g, &s, batches[i]);
        emit_compare_setup(&e, names[i], &s, run);
    }
    gemm_destroy(&g);
    return emit_end_setup(&e, &s, run) ? 0 : 1;
}

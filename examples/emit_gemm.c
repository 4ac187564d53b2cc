// Takes a batch of matrix products of unequal sizes (common/gemm.h) to an NPU: writes its source
// tree, builds that for this machine, and compares outputs and cycles with those of the library, in
// both cost models, for two batches. `emit_gemm --help` lists the options.

#include "ptowsp.h"

#include "common/command.h"
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

    const ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_WORK_STEALING,
                                      .lane_count = LANES};
    const ptowsp_program_desc desc = {.schedule = &schedule};
    ptowsp_program *program;
    ptowsp_run *run;
    command_check(s.context, ptowsp_program_create(s.context, s.module, &desc, &program));
    command_check(s.context, ptowsp_run_create(s.context, program, &run));

    printf("a batch of %d products, on %d lanes\n", GEMM_ENTRIES, LANES);
    emit_build(&e, s.context, program);
    for (int i = 0; i < 2; i++) {
        gemm_fill(&g, &s, batches[i]);
        setup_bind(&s, run);
        emit_compare_setup(&e, names[i], &s, run);
    }
    bool is_good = emit_end(&e, program);
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    gemm_destroy(&g);
    setup_destroy(&s);
    return is_good ? 0 : 1;
}

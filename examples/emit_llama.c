// Takes a Llama-like block of tile kernels (common/llama.h) to an NPU: writes its source tree,
// builds that for this machine, and compares outputs and cycles with those of the library, in both
// cost models, for two numbers of tokens. `emit_llama --help` lists the options.

#include "ptowsp.h"

#include "common/command.h"
#include "common/emit.h"
#include "common/llama.h"

#include <stdio.h>

enum { LANES = 8 };

int main(int argc, char **argv) {
    const int64_t sizes[] = {80, 50};
    emit e;
    setup s;
    llama b;
    emit_parse(&e, "llama", argc, argv);
    setup_create_serial(&s);
    llama_make(&b, &s);

    const ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_WORK_STEALING,
                                      .lane_count = LANES,
                                      .dependencies = PTOWSP_DEPENDENCIES_HYBRID};
    const ptowsp_program_desc desc = {.schedule = &schedule};
    ptowsp_program *program;
    ptowsp_run *run;
    command_check(s.context, ptowsp_program_create(s.context, s.module, &desc, &program));
    command_check(s.context, ptowsp_run_create(s.context, program, &run));

    printf("a transformer block, on %d lanes\n", LANES);
    emit_build(&e, s.context, program);
    for (int i = 0; i < 2; i++) {
        llama_fill(&b, &s, sizes[i]);
        setup_bind(&s, run);
        char title[64];
        snprintf(title, sizeof title, "%lld tokens", (long long)sizes[i]);
        emit_compare_setup(&e, title, &s, run);
    }
    bool is_good = emit_end(&e, program);
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    llama_destroy(&b);
    setup_destroy(&s);
    return is_good ? 0 : 1;
}

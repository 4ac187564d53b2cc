// Takes tensors of five dimensions with strides (common/tensor_data.h) to an NPU: writes the source tree,
// builds it for this machine, and compares outputs and cycles with those of the library, in both cost
// models, for two batches. `emit_tensor_data --help` lists the options.

#include "ptowsp.h"

#include "common/command.h"
#include "common/emit.h"
#include "common/tensor_data.h"

#include <stdio.h>

enum { LANES = 8 };

int main(int argc, char **argv) {
    static const int64_t sizes[][2] = {{4, 50}, {3, 16}};
    emit e;
    setup s;
    tensor_data t;
    emit_parse(&e, "tensor_data", argc, argv);
    setup_create_serial(&s);
    tensor_data_make(&t, &s);

    const ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_WORK_STEALING,
                                      .lane_count = LANES};
    const ptowsp_program_desc desc = {.schedule = &schedule};
    ptowsp_program *program;
    ptowsp_run *run;
    command_check(s.context, ptowsp_program_create(s.context, s.module, &desc, &program));
    command_check(s.context, ptowsp_run_create(s.context, program, &run));

    printf("pooled keys, on %d lanes\n", LANES);
    emit_build(&e, s.context, program);
    for (int i = 0; i < 2; i++) {
        char title[64];
        tensor_data_fill(&t, &s, sizes[i][0], sizes[i][1]);
        setup_bind(&s, run);
        snprintf(title, sizeof title, "%lld x %lld", (long long)t.requests, (long long)t.pairs);
        emit_compare_setup(&e, title, &s, run);
    }
    bool is_good = emit_end(&e, program);
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    tensor_data_destroy(&t);
    setup_destroy(&s);
    return is_good ? 0 : 1;
}

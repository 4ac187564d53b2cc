// Takes decode attention over a plan (common/tiered.h) to an NPU: writes its source tree, builds that
// for this machine, where threads stand in for the device, and compares outputs and cycles with
// those of the library, to the bit. Decode steps, then another batch, run on the same tree: plans,
// lengths and sizes are bound, so nothing is built again. `emit_decode --help` lists the options.

#include "ptowsp.h"

#include "common/command.h"
#include "common/emit.h"
#include "common/tiered.h"

#include <stdio.h>

enum { LANES = 8, WINDOW = 32 };

static ptowsp_program *compile(const tiered *d) {
    const ptowsp_schedule schedule = {.issue = PTOWSP_ISSUE_DATAFLOW,
                                      .dispatch = PTOWSP_DISPATCH_PLAN,
                                      .dispatch_key = ptowsp_task_variable(d->module, "request"),
                                      .lane_count = LANES,
                                      .window = WINDOW,
                                      .dependencies = PTOWSP_DEPENDENCIES_HYBRID};
    const ptowsp_program_desc desc = {.schedule = &schedule};
    ptowsp_program *program;
    command_check(d->context, ptowsp_program_create(d->context, d->module, &desc, &program));
    return program;
}

int main(int argc, char **argv) {
    const uint64_t batches[] = {12, 5};
    emit e;
    tiered d = {0};
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_run *run;
    emit_parse(&e, "decode", argc, argv);
    command_check(NULL, ptowsp_context_create(NULL, &context));
    command_check(context, ptowsp_module_create(context, NULL, &m));
    tiered_make(&d, context, m);
    ptowsp_program *program = compile(&d);
    command_check(context, ptowsp_run_create(context, program, &run));

    printf("tiered decode with merge, on %d lanes\n", LANES);
    emit_build(&e, context, program);
    for (uint64_t i = 0; i < 2; i++) {
        tiered_make_data(&d, batches[i], 1 + i);
        for (uint64_t step = 1; step <= 2; step++) {
            char title[64];
            snprintf(title, sizeof title, "%llu requests, step %llu", (unsigned long long)d.batch,
                     (unsigned long long)step);
            tiered_step(&d, step);
            tiered_plan(&d, LANES);
            tiered_bind(&d, run);
            emit_compare(&e, title, run, PTOWSP_MODEL_UNIT);
            double error = tiered_error(&d);
            if (!(error <= 1e-4)) {
                printf("  WRONG: error %.1e\n", error);
                e.is_good = false;
            }
        }
    }
    bool is_good = emit_end(&e, program);
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
    tiered_free_data(&d);
    command_flush();
    return is_good ? 0 : 1;
}

// Takes a pipeline of three stages (common/stages.h) to an NPU, where its processes run on the
// scheduler's threads: writes its source tree, builds that for this machine, and compares outputs
// and cycles with those of the library, for several depths and latencies of the channels, which are
// symbols, and for two numbers of tiles. `emit_pipeline --help` lists the options.

#include "ptowsp.h"

#include "common/command.h"
#include "common/emit.h"
#include "common/stages.h"

#include <stdio.h>

int main(int argc, char **argv) {
    static const uint64_t depths[] = {0, 1, STAGES_DEPTH_MAX}, latencies[] = {0, 500, 5000};
    static const int64_t tiles[] = {STAGES_TILES_MAX, 20, 20};
    emit e;
    setup s;
    stages p;
    emit_parse(&e, "pipeline", argc, argv);
    setup_create_serial(&s);
    stages_make(&p, &s);

    const ptowsp_program_desc desc = {.workload = "pipeline"};
    ptowsp_program *program;
    ptowsp_run *run;
    command_check(s.context, ptowsp_program_create(s.context, s.module, &desc, &program));
    command_check(s.context, ptowsp_run_create(s.context, program, &run));

    printf("softmax through load, compute and store\n");
    emit_build(&e, s.context, program);
    for (int i = 0; i < 3; i++) {
        char title[64];
        snprintf(title, sizeof title, "%lld tiles, depth %llu", (long long)tiles[i],
                 (unsigned long long)depths[i]);
        stages_fill(&p, tiles[i]);
        setup_bind(&s, run);
        command_check(s.context, ptowsp_run_bind_symbol(run, "depth", depths[i]));
        command_check(s.context, ptowsp_run_bind_symbol(run, "latency", latencies[i]));
        s.prepare(s.user);
        emit_compare(&e, title, run, PTOWSP_MODEL_UNIT);
        double error = setup_error(p.y, p.wanted);
        if (!(error <= STAGES_ALLOWED)) {
            printf("  WRONG: error %.1e\n", error);
            e.is_good = false;
        }
    }
    bool is_good = emit_end(&e, program);
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    stages_destroy(&p);
    setup_destroy(&s);
    return is_good ? 0 : 1;
}

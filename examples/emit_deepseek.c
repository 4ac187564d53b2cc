// Takes a DeepSeek block of tile kernels (common/deepseek.h) to an NPU: writes its source tree,
// builds that for this machine, and compares outputs and cycles with those of the library, in both
// cost models: attention by an attention plan, then experts by a MoE plan of what the router has
// said. `emit_deepseek --help` lists the options.

#include "ptowsp.h"

#include "common/deepseek.h"
#include "common/emit.h"

#include <stdio.h>

enum { LANES = 8 };

int main(int argc, char **argv) {
    static const ptowsp_model models[] = {PTOWSP_MODEL_UNIT, PTOWSP_MODEL_A2A3};
    static deepseek b;
    emit e;
    setup s;
    emit_parse(&e, "deepseek", argc, argv);
    setup_create_serial(&s);
    deepseek_make(&b, &s, LANES);
    ptowsp_run *run = emit_setup(&e, "a DeepSeek block", &s, LANES);
    for (int i = 0; i < 2; i++) {
        deepseek_fill(&b, &s);
        setup_bind(&s, run);
        emit_compare(&e, i == 0 ? "attention, unit model" : "attention, a2a3", run, models[i]);
        deepseek_route(&b, &s);
        setup_bind(&s, run);
        emit_compare(&e, i == 0 ? "experts, unit model" : "experts, a2a3", run, models[i]);
        if (!deepseek_check(&b)) {
            printf("  WRONG: error %.1e%s\n", b.error,
                   b.has_same_experts ? "" : ", and other experts");
            e.is_good = false;
        }
    }
    deepseek_destroy(&b);
    return emit_end_setup(&e, &s, run) ? 0 : 1;
}

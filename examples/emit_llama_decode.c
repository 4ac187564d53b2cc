// Takes a decode step with transient tensors and chosen kernels (common/llama_step.h) to an NPU: writes
// the source tree, builds it for this machine, and compares outputs and cycles with those of the
// library, in both cost models, for three batches. `emit_llama_decode --help` lists the options.

#include "ptowsp.h"

#include "common/emit.h"
#include "common/llama_step.h"

#include <stdio.h>

enum { LANES = 8 };

int main(int argc, char **argv) {
    static const int64_t batches[] = {LLAMA_STEP_BATCH_MAX, LLAMA_STEP_SMALL, 1};
    emit e;
    setup s;
    static llama_step d;
    emit_parse(&e, "llama_decode", argc, argv);
    setup_create_serial(&s);
    llama_step_make(&d, &s, true);
    ptowsp_run *run = emit_setup(&e, "a decode step", &s, LANES);
    for (int i = 0; i < 3; i++) {
        char title[64];
        llama_step_fill(&d, batches[i]);
        snprintf(title, sizeof title, "batch of %lld", (long long)batches[i]);
        emit_compare_setup(&e, title, &s, run);
    }
    return emit_end_setup(&e, &s, run) ? 0 : 1;
}

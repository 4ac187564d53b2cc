// Takes a Llama-like block of tile kernels (common/llama.h) to an NPU: writes its source tree,
// builds that for this machine, and compares outputs and cycles with those of the library, in both
// cost models, for two numbers of tokens. `emit_llama --help` lists the options.

#include "ptowsp.h"

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
    ptowsp_run *run = emit_setup(&e, "a transformer block", &s, LANES);
    for (int i = 0; i < 2; i++) {
        llama_fill(&b, &s, sizes[i]);
        char title[64];
        snprintf(title, sizeof title, "%lld tokens", (long long)sizes[i]);
        emit_compare_setup(&e, title, &s, run);
    }
    llama_destroy(&b);
    return emit_end_setup(&e, &s, run) ? 0 : 1;
}

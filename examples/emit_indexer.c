// Takes sparse attention with a lightning indexer (common/indexer.h) to an NPU: writes the source tree,
// builds it for this machine, and compares outputs and cycles with those of the library, in both cost
// models, for two batches. `emit_indexer --help` lists the options.

#include "ptowsp.h"

#include "common/emit.h"
#include "common/indexer.h"

#include <stdio.h>

enum { LANES = 8 };

int main(int argc, char **argv) {
    static const int32_t lengths[2][INDEXER_REQUESTS_MAX] = {{256, 100, 17, 200, 64, 255, 33, 180},
                                                             {5, 256, 16, 1}};
    static const int64_t counts[] = {8, 4};
    emit e;
    setup s;
    indexer x;
    emit_parse(&e, "indexer", argc, argv);
    setup_create_serial(&s);
    indexer_make(&x, &s);
    ptowsp_run *run = emit_setup(&e, "sparse attention", &s, LANES);
    for (int i = 0; i < 2; i++) {
        char title[64];
        indexer_fill(&x, &s, lengths[i], counts[i]);
        snprintf(title, sizeof title, "%lld requests", (long long)x.requests);
        emit_compare_setup(&e, title, &s, run);
    }
    return emit_end_setup(&e, &s, run) ? 0 : 1;
}

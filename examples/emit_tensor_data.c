// Takes tensors of five dimensions with strides (common/tensor_data.h) to an NPU: writes the source tree,
// builds it for this machine, and compares outputs and cycles with those of the library, in both cost
// models, for two batches. `emit_tensor_data --help` lists the options.

#include "ptowsp.h"

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
    ptowsp_run *run = emit_setup(&e, "pooled keys", &s, LANES);
    for (int i = 0; i < 2; i++) {
        char title[64];
        tensor_data_fill(&t, &s, sizes[i][0], sizes[i][1]);
        snprintf(title, sizeof title, "%lld x %lld", (long long)t.requests, (long long)t.pairs);
        emit_compare_setup(&e, title, &s, run);
    }
    tensor_data_destroy(&t);
    return emit_end_setup(&e, &s, run) ? 0 : 1;
}

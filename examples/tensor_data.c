// Tensors of five dimensions, whose strides say where their elements are: means of the keys of every two
// tokens, from memory as it was made to memory as products read it, without a copy
// (common/tensor_data.h). Two batches are bound to the same workload.

#include "ptowsp.h"

#include "common/tensor_data.h"

#include <stdio.h>

enum { LANES = 8 };

int main(int argc, char **argv) {
    static const int64_t sizes[][2] = {{4, 50}, {3, 16}};
    const ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_WORK_STEALING,
                                      .lane_count = LANES};
    setup s;
    tensor_data t;
    setup_create(&s, argc, argv);
    tensor_data_make(&t, &s);
    printf("pooled keys of %d layers, %d heads of %d, tiles of %d pairs\n", TENSOR_DATA_LAYERS,
           TENSOR_DATA_HEADS, TENSOR_DATA_DIM, TENSOR_DATA_TILE);
    setup_print_kernel(&s, "pool", t.pool);
    bool is_good = true;
    for (int i = 0; i < 2; i++) {
        char title[64];
        tensor_data_fill(&t, &s, sizes[i][0], sizes[i][1]);
        snprintf(title, sizeof title, "%lld x %lld pairs", (long long)t.requests,
                 (long long)t.pairs);
        is_good &= setup_run(&s, title, &schedule);
        printf("  check     %lld values, largest error %.1e, %.0e allowed: %s\n",
               (long long)tensor_data_count(&t), t.error, TENSOR_DATA_ALLOWED,
               is_good ? "good" : "WRONG");
    }
    tensor_data_destroy(&t);
    setup_destroy(&s);
    return is_good ? 0 : 1;
}

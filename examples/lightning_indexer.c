// Sparse attention with a lightning indexer, in the manner of DeepSeek-V3.2 (common/indexer.h): small heads
// score all tokens of a context, the best are chosen, and attention reads these alone. Which rows are read
// depends on data: tasks are addressed by what tasks before them have computed. Two batches of requests
// are bound to the same workload; one of them has contexts that are shorter than what may be chosen.

#include "ptowsp.h"

#include "common/indexer.h"

#include <stdio.h>

enum { LANES = 8 };

int main(int argc, char **argv) {
    static const int32_t lengths[2][INDEXER_REQUESTS_MAX] = {{256, 100, 17, 200, 64, 255, 33, 180},
                                                             {5, 256, 16, 1}};
    static const int64_t counts[] = {8, 4};
    const ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_WORK_STEALING,
                                      .lane_count = LANES};
    setup s;
    indexer x;
    setup_create(&s, argc, argv);
    indexer_make(&x, &s);
    printf("%d index heads of %d choose %d of up to %d tokens for %d heads of %d\n",
           INDEXER_INDEX_HEADS, INDEXER_INDEX_DIM, INDEXER_BEST, INDEXER_CONTEXT, INDEXER_HEADS,
           INDEXER_DIM);
    setup_print_kernel(&s, "score", x.score);
    setup_print_kernel(&s, "choose", x.choose);
    setup_print_kernel(&s, "fetch", x.fetch);
    setup_print_kernel(&s, "attend", x.attend);
    bool is_good = true;
    for (int i = 0; i < 2; i++) {
        char title[64];
        indexer_fill(&x, &s, lengths[i], counts[i]);
        snprintf(title, sizeof title, "%lld requests", (long long)x.requests);
        is_good &= setup_run(&s, title, &schedule);
        int chosen = 0, tokens = 0;
        for (int64_t r = 0; r < x.requests; r++) {
            chosen += x.counts[r];
            tokens += x.lengths[r];
        }
        printf("  check     %d of %d tokens chosen, wrong are %lld, largest error %.1e, %.0e "
               "allowed: %s\n",
               chosen, tokens, (long long)x.wrong, x.error, INDEXER_ALLOWED,
               is_good ? "good" : "WRONG");
    }
    setup_destroy(&s);
    return is_good ? 0 : 1;
}

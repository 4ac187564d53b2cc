// Top-k by tile kernels: the candidates of each request are sorted by 32, the runs merged by four,
// and the best 8 kept, with their scores. Requests have up to 256 candidates. How many there are is
// data: the workload loads it into a slot and picks the kernel for 128 or the one for 256.
//
//      parallel request
//          slot = counts[request]
//          when slot <= 128          small: 4 runs of 32, merged once
//          otherwise                 large: 8 runs of 32, merged to 2 of 128, merged to one
//
// Places without a candidate hold -infinity.

#include "ptowsp.h"

#include "common/command.h"
#include "common/emit.h"
#include "common/setup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { REQUESTS = 40, CANDIDATES = 256, SMALL = 128, BEST = 8, SLOT = 0, LANES = 4 };

static ptowsp_kernel topk_make(ptowsp_module *m, const char *name, int64_t candidates) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = name});
    ptowsp_value scores = ptowsp_tile_in(k, "scores", PTOWSP_F32, 1, candidates);
    ptowsp_value best = ptowsp_tile_out(k, "best", PTOWSP_F32, 1, BEST);
    ptowsp_value indices = ptowsp_tile_out(k, "indices", PTOWSP_U32, 1, BEST);
    ptowsp_value index = ptowsp_tile_iota(k, PTOWSP_U32, candidates, 0);
    ptowsp_value pairs = ptowsp_tile_sort32(scores, index);
    for (int64_t run = 32; run < candidates; run *= 4) {
        pairs = ptowsp_tile_merge_sort(pairs, run);
    }
    ptowsp_tile_store(best, ptowsp_tile_topk_values(pairs, BEST));
    ptowsp_tile_store(indices, ptowsp_tile_topk_indices(pairs, BEST));
    return ptowsp_kernel_end(k);
}

typedef struct example {
    setup_matrix *scores, *counts, *best, *indices;
    ptowsp_kernel small, large;
    uint64_t wrong;
} example;

static void task_make(ptowsp_module *m, const example *e, ptowsp_kernel kernel, ptowsp_expr r) {
    ptowsp_expr zero = ptowsp_i64(m, 0);
    ptowsp_task_make(m, &(ptowsp_task_desc){.kernel = kernel,
                                            .views = {setup_view(e->scores, r, zero),
                                                      setup_view(e->best, r, zero),
                                                      setup_view(e->indices, r, zero)}});
}

static void workload_make(ptowsp_module *m, const example *e) {
    ptowsp_axis requests = ptowsp_axis_dense(m, "requests", REQUESTS);
    ptowsp_expr zero = ptowsp_i64(m, 0);
    PTOWSP_WORKLOAD(m, "topk") {
        PTOWSP_PARALLEL(m, r, requests) {
            ptowsp_view count = setup_view(e->counts, r, zero);
            ptowsp_slot_load(m, SLOT, &count, zero, zero);
            PTOWSP_WHEN(m, ptowsp_le(ptowsp_slot(m, SLOT, PTOWSP_TYPE_I64), ptowsp_i64(m, SMALL))) {
                task_make(m, e, e->small, r);
            }
            PTOWSP_OTHERWISE(m) {
                task_make(m, e, e->large, r);
            }
        }
    }
}

static void prepare(void *user) {
    const example *e = (const example *)user;
    setup_fill(e->best, NAN);
    setup_fill(e->indices, 1e9);
}

// Each of the best is the largest that is left.
static bool check(void *user) {
    example *e = (example *)user;
    uint64_t wrong = 0;
    for (int64_t r = 0; r < REQUESTS; r++) {
        bool is_taken[CANDIDATES] = {false};
        for (int64_t i = 0; i < BEST; i++) {
            int64_t best = -1;
            for (int64_t c = 0; c < CANDIDATES; c++) {
                if (!is_taken[c] &&
                    (best < 0 || setup_get(e->scores, r, c) > setup_get(e->scores, r, best))) {
                    best = c;
                }
            }
            is_taken[best] = true;
            wrong += setup_get(e->indices, r, i) != (double)best;
            wrong += !(setup_get(e->best, r, i) == setup_get(e->scores, r, best));
        }
    }
    e->wrong += wrong;
    return wrong == 0;
}

int main(int argc, char **argv) {
    setup s;
    emit_create(&s, argc, argv);
    ptowsp_module *m = s.module;
    example e = {.scores = setup_matrix_make(&s, "scores", PTOWSP_F32, REQUESTS, CANDIDATES),
                 .counts = setup_matrix_make(&s, "counts", PTOWSP_I32, REQUESTS, 1),
                 .best = setup_matrix_make(&s, "best", PTOWSP_F32, REQUESTS, BEST),
                 .indices = setup_matrix_make(&s, "indices", PTOWSP_U32, REQUESTS, BEST),
                 .small = topk_make(m, "small", SMALL),
                 .large = topk_make(m, "large", CANDIDATES)};
    int large = 0;
    workload_make(m, &e);
    setup_fill_random(&s, e.scores, -10.0, 10.0);
    setup_fill_random(&s, e.counts, BEST, CANDIDATES + 1);
    for (int64_t r = 0; r < REQUESTS; r++) {
        large += setup_get(e.counts, r, 0) > SMALL;
        for (int64_t c = (int64_t)setup_get(e.counts, r, 0); c < CANDIDATES; c++) {
            setup_set(e.scores, r, c, -INFINITY);
        }
    }
    s.prepare = prepare;
    s.check = check;
    s.user = &e;

    printf("the best %d of up to %d candidates, %d requests, %d of them with more than %d\n", BEST,
           CANDIDATES, REQUESTS, large, SMALL);
    setup_print_kernel(&s, "small", e.small);
    setup_print_kernel(&s, "large", e.large);
    ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_WORK_STEALING, .lane_count = LANES};
    bool is_good = setup_run(&s, "work stealing", &schedule);
    printf("  check     %d scores and indices, wrong are %llu, 0 allowed: %s\n",
           2 * REQUESTS * BEST, (unsigned long long)e.wrong, is_good ? "good" : "WRONG");
    setup_destroy(&s);
    return is_good ? 0 : 1;
}

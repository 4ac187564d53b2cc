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
//
//      topk --rows N
//
// keeps the best 1,000 of 1,024 in each of N rows, on 48 vector cores: the rows of a core are a loop
// in one kernel, which loads the next row while this one is sorted. It prints the predicted time on
// a 910B, and beside it the published one of numbers of rows that have been measured. With --bits 16
// the scores are f16, which have no published times.

#include "ptowsp.h"

#include "common/command.h"
#include "common/emit.h"
#include "common/published.h"
#include "common/setup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { REQUESTS = 40, CANDIDATES = 256, SMALL = 128, BEST = 8, SLOT = 0, LANES = 4 };

static ptowsp_kernel topk_make(ptowsp_module *m, const char *name, ptowsp_dtype dtype,
                               int64_t candidates) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = name});
    ptowsp_value scores = ptowsp_tile_in(k, "scores", dtype, 1, candidates);
    ptowsp_value best = ptowsp_tile_out(k, "best", dtype, 1, BEST);
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

// The same for all rows of a core.
static ptowsp_kernel rows_make(ptowsp_module *m, ptowsp_dtype dtype, int64_t rows,
                               int64_t candidates, int64_t kept) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "rows"});
    ptowsp_value scores = ptowsp_tile_in(k, "scores", dtype, rows, candidates);
    ptowsp_value best = ptowsp_tile_out(k, "best", dtype, rows, kept);
    ptowsp_value indices = ptowsp_tile_out(k, "indices", PTOWSP_U32, rows, kept);
    ptowsp_value index = ptowsp_tile_iota(k, PTOWSP_U32, candidates, 0), none = {0};
    PTOWSP_TILE_LOOP(k, row, ptowsp_tile_const(k, 0), ptowsp_tile_rows(scores), 1) {
        ptowsp_value pairs = ptowsp_tile_slice_at(scores, row, none, 1, candidates);
        pairs = ptowsp_tile_sort32(pairs, index);
        for (int64_t run = 32; run < candidates; run *= 4) {
            pairs = ptowsp_tile_merge_sort(pairs, run);
        }
        ptowsp_tile_store_at(best, row, none, ptowsp_tile_topk_values(pairs, kept));
        ptowsp_tile_store_at(indices, row, none, ptowsp_tile_topk_indices(pairs, kept));
    }
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
            ptowsp_slot_load_make(m, SLOT, &count, zero, zero);
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

// -- rows on all cores ----------------------------------------------------------------------------

enum { WIDTH = 1024, KEPT = 1000, VECTOR_CORES = 48, ROWS_MOST = 1 << 20, ROWS_MAX_CHECKED = 512 };

// Its values fall, and are those of its indices, each of which is there once.
static bool rows_check(void *user) {
    example *e = (example *)user;
    uint64_t wrong = 0;
    for (int64_t r = 0; r < e->best->rows; r++) {
        bool is_kept[WIDTH] = {false};
        double least = INFINITY;
        for (int64_t i = 0; i < KEPT; i++) {
            double value = setup_get(e->best, r, i), at = setup_get(e->indices, r, i);
            bool is_there = at >= 0 && at < WIDTH && !is_kept[(int64_t)at];
            wrong += !(is_there && value <= least && value == setup_get(e->scores, r, (int64_t)at));
            if (is_there) {
                is_kept[(int64_t)at] = true;
            }
            least = value;
        }
        for (int64_t c = 0; c < WIDTH; c++) {  // none that is left is above
            wrong += !is_kept[c] && setup_get(e->scores, r, c) > least;
        }
    }
    e->wrong += wrong;
    return wrong == 0;
}

static bool all_rows(setup *s, ptowsp_dtype dtype, int64_t count) {
    ptowsp_module *m = s->module;
    int64_t rows = (count + VECTOR_CORES - 1) / VECTOR_CORES;
    ptowsp_kernel kernel = rows_make(m, dtype, rows, WIDTH, KEPT);
    example e = {.scores = setup_matrix_make(s, "scores", dtype, count, WIDTH),
                 .best = setup_matrix_make(s, "best", dtype, count, KEPT),
                 .indices = setup_matrix_make(s, "indices", PTOWSP_U32, count, KEPT)};
    PTOWSP_WORKLOAD(m, "all rows") {
        PTOWSP_PARALLEL(m, i, ptowsp_axis_dense(m, "cores", (count + rows - 1) / rows)) {
            task_make(m, &e, kernel, ptowsp_mul(i, ptowsp_i64(m, rows)));
        }
    }
    ptowsp_schedule schedule = {.lane_count = VECTOR_CORES};
    bool is_good = true;
    printf("the best %d of %d in %d rows, %d of a core\n", KEPT, WIDTH, (int)count, (int)rows);
    setup_print_kernel(s, "rows", kernel);
    if (count <= ROWS_MAX_CHECKED) {
        setup_fill_random(s, e.scores, -10.0, 10.0);
        s->prepare = prepare;
        s->check = rows_check;
        s->user = &e;
        is_good = setup_run(s, "all rows", &schedule);
        printf("  check     %d scores and indices, wrong are %llu, 0 allowed: %s\n",
               (int)(2 * count * KEPT), (unsigned long long)e.wrong, is_good ? "good" : "WRONG");
    } else {
        printf("  (values are computed and checked up to %d rows)\n", ROWS_MAX_CHECKED);
    }
    char shape[64];
    snprintf(shape, sizeof shape, "type=%s rows=%d validCol=%d ",
             dtype == PTOWSP_F32 ? "float" : "half", (int)count, WIDTH);
    published_print(s, &schedule, VECTOR_LAUNCH_US, "topk", shape);
    return is_good;
}

static const char help_text[] =
    "Keeps the best of candidates by tile kernels.\n"
    "  --rows N      the best 1,000 of 1,024 in N rows on 48 cores; its time on a 910B\n"
    "  --bits N      the scores are f32 (32) or f16 (16)\n"
    "  --threads N   lanes that run kernels, 1 to 64 (1); what is printed is the same for all\n"
    "  --emit DIR    also writes, builds and runs the trees\n"
    "  --cache DIR, --compiler NAME, --options TEXT   of the trees\n";

int main(int argc, char **argv) {
    setup s;
    uint64_t rows = 0, bits = 32;
    const command_option more[] = {{"--rows", &rows, NULL, 1, ROWS_MOST},
                                   {"--bits", &bits, NULL, 16, 32}};
    emit_create_with(&s, argc, argv, help_text, more, 2);
    if (bits != 16 && bits != 32) {
        command_fail("--bits %d: scores have 16 or 32", (int)bits);
    }
    const ptowsp_dtype dtype = bits == 16 ? PTOWSP_F16 : PTOWSP_F32;
    if (rows) {
        bool is_right = all_rows(&s, dtype, (int64_t)rows);
        setup_destroy(&s);
        return is_right ? 0 : 1;
    }
    ptowsp_module *m = s.module;
    example e = {.scores = setup_matrix_make(&s, "scores", dtype, REQUESTS, CANDIDATES),
                 .counts = setup_matrix_make(&s, "counts", PTOWSP_I32, REQUESTS, 1),
                 .best = setup_matrix_make(&s, "best", dtype, REQUESTS, BEST),
                 .indices = setup_matrix_make(&s, "indices", PTOWSP_U32, REQUESTS, BEST),
                 .small = topk_make(m, "small", dtype, SMALL),
                 .large = topk_make(m, "large", dtype, CANDIDATES)};
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

// Running attention plans with empty kernels, beside ptowsp_dispatch_spmd on the same descriptors and
// the same lanes: what a unit, a part and a run cost.

#include "bench.h"

#include <stdlib.h>
#include <string.h>

enum { RUN_UNITS = 16384, RUN_LANES_MAX = 264 };

static void run_unit(const ptowsp_work *work, uint32_t lane, void *user) {
    (void)work, (void)lane, (void)user;
}

static const ptowsp_work_fn run_table[] = {run_unit, run_unit, run_unit, run_unit};

typedef struct run_bench {
    ptowsp_context *context;
    ptowsp_attention_plan plan;
    ptowsp_attention_job job;
    ptowsp_work units[RUN_UNITS], merges[RUN_UNITS / 4];
    uint32_t unit_begin[RUN_LANES_MAX + 1];
} run_bench;

// A plan of units on lanes; tiles have 1 or 4 pieces.
static void run_plan(run_bench *b, uint32_t unit_count, uint32_t lane_count, uint32_t pieces) {
    memset(&b->plan, 0, sizeof b->plan);
    b->plan.units = b->units;
    b->plan.merges = b->merges;
    b->plan.unit_begin = b->unit_begin;
    b->plan.unit_capacity = b->plan.unit_count = unit_count;
    b->plan.lane_count = lane_count;
    for (uint32_t i = 0; i < unit_count; i++) {
        uint32_t slot = pieces > 1 ? i : PTOWSP_NO_SLOT;
        b->units[i] = ptowsp_work_of(slot, (uint8_t)(i / 64 % 4), 0, i / pieces, 0, 0, 1);
    }
    if (pieces > 1) {
        b->plan.merge_capacity = b->plan.merge_count = unit_count / pieces;
        for (uint32_t i = 0; i < b->plan.merge_count; i++) {
            b->merges[i] = ptowsp_work_of(i, 0, 0, i, 0, i * pieces, pieces);
        }
    }
    for (uint32_t i = 0; i <= lane_count; i++) {
        b->unit_begin[i] = (uint32_t)((uint64_t)i * unit_count / lane_count);
    }
    ptowsp_attention_job job = {&b->plan,        run_table, 4,    run_unit, NULL,
                                b->job.progress, false,     NULL, NULL,     NULL};
    b->job = job;
}

static void run_attention(void *user) {
    run_bench *b = (run_bench *)user;
    ptowsp_attention_run(b->context, &b->job);
}

static void run_spmd(void *user) {
    run_bench *b = (run_bench *)user;
    ptowsp_dispatch_spmd(b->context, b->units, b->plan.unit_count, run_table, 4, NULL);
}

static void run_row(run_bench *b, bool is_stealing, const char *name) {
    b->job.is_stealing = is_stealing;
    require(ptowsp_attention_run(b->context, &b->job) == PTOWSP_OK, "run fails");
    bench_times t = measure(run_attention, run_spmd, b, 10, ROUNDS);
    double units = (double)b->plan.unit_count;
    bench_row row = {
        name,  "ns each", t.own_ns / units, "dispatch_spmd", t.other_ns / units, t.ratio, "",
        false, false};
    report(row);
}

void bench_attention_run(void) {
    run_bench *b = (run_bench *)calloc(1, sizeof *b);
    require(b != NULL, "memory");
    b->plan.lane_count = RUN_LANES_MAX;
    b->plan.merge_capacity = RUN_UNITS / 4;
    uint64_t size = ptowsp_attention_progress_size(&b->plan);
    uint32_t *progress = (uint32_t *)calloc((size_t)size, sizeof *progress);
    require(progress != NULL, "memory");
    b->job.progress = progress;
    for (uint32_t lanes = 1; lanes <= 2; lanes++) {
        ptowsp_context_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.threads = PTOWSP_THREADS_OWN;
        desc.lane_count = lanes;
        require(ptowsp_context_create(&desc, &b->context) == PTOWSP_OK, "context");
        run_plan(b, RUN_UNITS, lanes, 1);
        run_row(b, false,
                lanes == 1 ? "plan, 1 lane, 16,384 units" : "plan, 2 lanes, 16,384 units");
        if (lanes == 2) {
            run_row(b, true, "plan, 2 lanes, 16,384 units, stealing");
        }
        run_plan(b, RUN_UNITS, lanes, 4);
        run_row(b, false,
                lanes == 1 ? "plan, 1 lane, 16,384 parts" : "plan, 2 lanes, 16,384 parts");
        if (lanes == 2) {
            run_row(b, true, "plan, 2 lanes, 16,384 parts, stealing");
            run_plan(b, 2112, RUN_LANES_MAX, 1);
            run_row(b, false, "plan of 264 lanes on 2, 2,112 units");
            run_row(b, true, "plan of 264 lanes on 2, 2,112 units, stealing");
            run_plan(b, 64, lanes, 1);
            run_row(b, false, "plan, 2 lanes, 64 units");
            run_row(b, true, "plan, 2 lanes, 64 units, stealing");
        }
        ptowsp_context_destroy(b->context);
    }
    free(progress);
    free(b);
}

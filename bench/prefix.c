// Prefix trees and plans beside flat plans: the time to make them, and a decode step of requests that
// share a prompt, with the bytes that both read.

#include "bench.h"

#include "common/lengths.h"
#include "common/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16, KV_HEADS = 8, GROUP = 4, DIM = 128 };

typedef struct prefix_bench {
    int32_t *lengths;
    uint64_t *ids, *begin;
    ptowsp_prefix_batch batch;
    ptowsp_attention_config config;
    ptowsp_prefix_tree tree;
    ptowsp_prefix_plan plan;
    ptowsp_attention_plan flat;
    void *tree_block, *plan_block, *flat_block;
    ptowsp_work *spare;  // as large as a plan

    ptowsp_context *context;
    ptowsp_attend_cache kv;
    ptowsp_attend_step step;
    char *pool;
    uint32_t *pages;
    float *queries, *outputs;
    ptowsp_attend_step tree_step;
    ptowsp_attend_job flat_job, tree_job;
    void *flat_memory, *tree_memory;
} prefix_bench;

// Requests of `blocks` blocks: all share `first` of them, and the third of its request mates goes on
// together for a half of the rest. Ids are hashes.
static void batch_create(prefix_bench *b, uint32_t requests, uint32_t blocks, uint32_t first,
                         uint32_t mates) {
    memset(b, 0, sizeof *b);
    b->lengths = (int32_t *)bench_allocate(requests * sizeof *b->lengths);
    b->ids = (uint64_t *)bench_allocate((size_t)requests * blocks * sizeof *b->ids);
    b->begin = (uint64_t *)bench_allocate((requests + (size_t)1) * sizeof *b->begin);
    uint64_t random = 1;
    for (uint32_t r = 0; r < requests; r++) {
        const uint32_t mate = (uint32_t)(lengths_random(&random) % mates);
        const uint32_t second = first + (blocks - first) / 2;
        b->begin[r + 1] = b->begin[r] + blocks;
        b->lengths[r] = (int32_t)(blocks * BLOCK);
        for (uint32_t i = 0; i < blocks; i++) {
            uint64_t key = i < first    ? i
                           : i < second ? (mate + 1) * 1000 + i
                                        : r * 1000 + 500000 + i;
            b->ids[b->begin[r] + i] = lengths_random(&key);
        }
    }
    b->batch.attention.kv_lengths = b->lengths;
    b->batch.attention.sequence_count = requests;
    b->batch.block_ids = b->ids;
    b->batch.block_begin = b->begin;
    b->batch.block_tokens = BLOCK;
    b->config.kv_head_count = KV_HEADS;
    b->config.group = GROUP;
    b->config.page_size = BLOCK;
    const ptowsp_prefix_limits limits = {requests, blocks};
    const uint64_t bytes = ptowsp_prefix_tree_bytes(&limits);
    b->tree_block = bench_allocate(bytes);
    require(ptowsp_prefix_tree_place(&limits, b->tree_block, bytes, &b->tree) == PTOWSP_OK, "tree");
}

static void plans_create(prefix_bench *b) {
    ptowsp_prefix_sizes sizes;
    ptowsp_attention_sizes flat;
    require(ptowsp_prefix_build(&b->batch, &b->tree, NULL) == PTOWSP_OK &&
                ptowsp_prefix_size(&b->batch.attention, &b->config, &b->tree, &sizes, NULL) ==
                    PTOWSP_OK &&
                ptowsp_attention_size(&b->batch.attention, &b->config, &flat, NULL) == PTOWSP_OK,
            "sizes");
    b->plan_block = bench_allocate(sizes.block_bytes);
    b->flat_block = bench_allocate(flat.block_bytes);
    require(ptowsp_prefix_place(&sizes, b->plan_block, sizes.block_bytes, &b->plan) == PTOWSP_OK &&
                ptowsp_attention_place(&flat, b->flat_block, flat.block_bytes, &b->flat) ==
                    PTOWSP_OK,
            "place");
}

static void batch_destroy(prefix_bench *b) {
    free(b->lengths);
    free(b->ids);
    free(b->begin);
    free(b->tree_block);
    free(b->plan_block);
    free(b->flat_block);
}

// -- planning -------------------------------------------------------------------------------------

static void tree_once(void *user) {
    prefix_bench *b = (prefix_bench *)user;
    require(ptowsp_prefix_build(&b->batch, &b->tree, NULL) == PTOWSP_OK, "build");
    bench_keep(b->tree.nodes);
}

static void plan_once(void *user) {
    prefix_bench *b = (prefix_bench *)user;
    require(ptowsp_prefix_generate(&b->batch.attention, &b->config, &b->tree, &b->plan, NULL) ==
                PTOWSP_OK,
            "plan");
    bench_keep(b->plan.attention.units);
}

static void tree_and_plan_once(void *user) {
    tree_once(user);
    plan_once(user);
}

static void flat_once(void *user) {
    prefix_bench *b = (prefix_bench *)user;
    require(ptowsp_attention_generate(&b->batch.attention, &b->config, &b->flat, NULL) == PTOWSP_OK,
            "flat");
    bench_keep(b->flat.units);
}

// The limit of both: ids of neighbours are compared, and a plan of this size is written.
static void plan_bare(void *user) {
    prefix_bench *b = (prefix_bench *)user;
    const ptowsp_attention_plan *plan = &b->plan.attention;
    uint64_t equal = 0;
    for (uint32_t r = 1; r < b->batch.attention.sequence_count; r++) {
        const uint64_t *ids = b->ids + b->begin[r], *other = b->ids + b->begin[r - 1];
        const uint64_t count = b->begin[r + 1] - b->begin[r];
        for (uint64_t i = 0; i < count && ids[i] == other[i]; i++) {
            equal++;
        }
    }
    bench_keep(&equal);
    memcpy(b->spare, plan->units, plan->unit_count * sizeof(ptowsp_work));
    memcpy(b->spare + plan->unit_count, plan->merges, plan->merge_count * sizeof(ptowsp_work));
    memcpy(b->spare + plan->unit_count + plan->merge_count, b->plan.joins,
           b->plan.join_count * sizeof(ptowsp_work));
    bench_keep(b->spare);
}

static void bench_prefix_plan(void) {
    static const struct {
        const char *name;
        bench_fn own;
        double budget_us;
    } parts[3] = {{"prefix tree of 1,000 requests x 50 blocks", tree_once, 0},
                  {"its plan, 8 heads, 264 lanes", plan_once, 0},
                  {"both", tree_and_plan_once, 200}};
    prefix_bench b;
    batch_create(&b, 1000, 50, 16, 100);
    b.config.lane_count = 264;
    plans_create(&b);
    for (int i = 0; i < 3; i++) {
        bench_times t = measure(parts[i].own, flat_once, &b, 1, ROUNDS);
        bench_row row = {parts[i].name,
                         "us",
                         t.own_ns / 1000,
                         "the flat plan",
                         t.other_ns / 1000,
                         t.ratio,
                         "200 us",
                         parts[i].budget_us > 0,
                         t.own_ns / 1000 <= parts[i].budget_us};
        report(row);
    }
    const ptowsp_attention_plan *plan = &b.plan.attention;
    b.spare = (ptowsp_work *)bench_allocate(
        ((size_t)plan->unit_count + plan->merge_count + b.plan.join_count) * sizeof(ptowsp_work));
    bench_times t = measure(tree_and_plan_once, plan_bare, &b, 1, ROUNDS);
    bench_row row = {"the same",
                     "us",
                     t.own_ns / 1000,
                     "comparing ids, copying the plan",
                     t.other_ns / 1000,
                     t.ratio,
                     "",
                     false,
                     false};
    report(row);
    free(b.spare);
    batch_destroy(&b);
}

// -- decode ---------------------------------------------------------------------------------------

static void run_tree(void *user) {
    prefix_bench *b = (prefix_bench *)user;
    require(ptowsp_attend_run(b->context, &b->tree_job) == PTOWSP_OK, "tree run");
}

static void run_flat(void *user) {
    prefix_bench *b = (prefix_bench *)user;
    require(ptowsp_attend_run(b->context, &b->flat_job) == PTOWSP_OK, "flat run");
}

// Makes a job of a step, with memory that is returned.
static void *job_create(const prefix_bench *b, const ptowsp_attend_step *step, uint64_t join_count,
                        ptowsp_attend_job *out) {
    const ptowsp_attention_plan *plan = step->plan;
    const ptowsp_attend_limits limits = {{plan->unit_count, plan->merge_capacity, plan->slot_count,
                                          plan->slot_rows, plan->lane_count, 0},
                                         join_count,
                                         DIM,
                                         1};
    uint64_t bytes;
    require(ptowsp_attend_size(&limits, &bytes, NULL) == PTOWSP_OK, "memory of a job");
    void *memory = bench_allocate(bytes);
    require(ptowsp_attend_place(&limits, memory, bytes, &out->memory, NULL) == PTOWSP_OK, "a job");
    out->cache = &b->kv;
    out->step = step;
    return memory;
}

// The pages of what a request shares with the one before it in the tree are that one's.
static void cache_create(prefix_bench *b, uint32_t blocks) {
    const uint32_t requests = b->tree.request_count;
    const size_t page = (size_t)KV_HEADS * 2 * BLOCK * DIM;
    b->pages = (uint32_t *)bench_allocate((size_t)requests * blocks * sizeof *b->pages);
    uint32_t count = 0;
    for (uint32_t p = 0; p < requests; p++) {
        uint32_t *own = b->pages + (size_t)b->tree.order[p] * blocks;
        const uint32_t shared = b->tree.common[p] / BLOCK;
        for (uint32_t i = 0; i < blocks; i++) {
            own[i] = i < shared ? b->pages[(size_t)b->tree.order[p - 1] * blocks + i] : count++;
        }
    }
    uint16_t *halves = (uint16_t *)pool_allocate(count * page * sizeof *halves);
    require(halves != NULL, "no memory");
    uint64_t random = 1;
    for (size_t i = 0; i < count * page; i++) {
        halves[i] = i < 1 << 20 ? ptowsp_f16_from_f32((float)lengths_random_unit(&random) - 0.5f)
                                : halves[i - (1 << 20)];
    }
    b->pool = (char *)halves;
    const ptowsp_attend_strides strides = {page, DIM, (size_t)2 * BLOCK * DIM};
    b->kv.keys = halves;
    b->kv.values = halves + BLOCK * DIM;
    b->kv.key_strides = b->kv.value_strides = strides;
    b->kv.type = PTOWSP_ATTEND_F16;
    b->kv.key_dim = b->kv.value_dim = DIM;
    b->kv.page_size = BLOCK;
    const size_t floats = (size_t)requests * KV_HEADS * GROUP * DIM;
    b->queries = (float *)bench_allocate(floats * sizeof(float));
    b->outputs = (float *)bench_allocate(floats * sizeof(float));
    for (size_t i = 0; i < floats; i++) {
        b->queries[i] = (float)lengths_random_unit(&random) - 0.5f;
    }
    b->step.queries = b->queries;
    b->step.outputs = b->outputs;
    b->step.query_token_stride = b->step.output_token_stride = (size_t)KV_HEADS * GROUP * DIM;
    b->step.query_head_stride = b->step.output_head_stride = DIM;
    b->step.batch = &b->batch.attention;
    b->step.config = &b->config;
    b->step.plan = &b->flat;
    b->step.pages = b->pages;
    b->step.page_stride = blocks;
}

static void bench_prefix_decode(ptowsp_context *context, const char *name, uint32_t requests,
                                uint32_t blocks, uint32_t first, uint32_t mates) {
    prefix_bench b;
    batch_create(&b, requests, blocks, first, mates);
    b.context = context;
    b.config.lane_count = ptowsp_context_lane_count(context);
    plans_create(&b);
    plan_once(&b);
    flat_once(&b);
    cache_create(&b, blocks);
    b.tree_step = b.step;
    b.tree_step.plan = &b.plan.attention;
    b.tree_step.prefix = &b.plan;
    b.tree_memory = job_create(&b, &b.tree_step, b.plan.join_capacity, &b.tree_job);
    b.flat_memory = job_create(&b, &b.step, 0, &b.flat_job);
    const bench_times t = measure(run_tree, run_flat, &b, 1, 21);
    char text[80];
    snprintf(text, sizeof text, "flat; bytes %.3f, predicted %.3f",
             (double)b.plan.kv_token_reads / (double)b.plan.flat_kv_token_reads,
             b.plan.time / b.plan.flat_time);
    bench_row row = {name, "ms", t.own_ns / 1e6, text, t.other_ns / 1e6, t.ratio, "", false, false};
    report(row);
    free(b.pages);
    free(b.pool);
    free(b.queries);
    free(b.outputs);
    free(b.tree_memory);
    free(b.flat_memory);
    batch_destroy(&b);
}

void bench_prefix(ptowsp_context *context) {
    bench_prefix_plan();
    bench_prefix_decode(context, "decode, 32 requests, 2,048 of 2,560 shared", 32, 160, 128, 1000);
    bench_prefix_decode(context, "decode, 32 requests, a prompt and 4 talks", 32, 160, 32, 4);
}

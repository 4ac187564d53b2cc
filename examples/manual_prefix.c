// Section 12 of the manual: requests come and go, the tree of their prefixes follows, and each step is
// planned over it. A launch of its own computes units, merges and joins by the library's kernels; a
// plan without sharing gives the same rows.

#include "common/manual.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    REQUESTS = 4,
    BLOCK = 16,
    BLOCKS = 4,
    KV = BLOCK * BLOCKS,
    KV_HEADS = 2,
    GROUP = 2,
    DIM = 8
};
enum { HEADS = KV_HEADS * GROUP, ROW = KV_HEADS * DIM };

// Requests 0 to 2 begin with the same system prompt, 0 and 1 have a third block in common.
static const uint64_t ids[REQUESTS * BLOCKS] = {1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 6, 7, 8, 9, 10, 11};
static const uint64_t begin[REQUESTS + 1] = {0, 4, 8, 12, 16};
static const int32_t kv_lengths[REQUESTS] = {KV, KV, KV, KV};
static const ptowsp_prefix_batch batch = {
    .attention = {.kv_lengths = kv_lengths, .sequence_count = REQUESTS},
    .block_ids = ids,
    .block_begin = begin,
    .block_tokens = BLOCK};
static const ptowsp_attention_config config = {
    .kv_head_count = KV_HEADS,
    .group = GROUP,
    .lane_count = 4,
    .cost = {.per_unit = 1, .per_token = 1, .per_row_token = 1.0 / 64, .per_merged_row = 1}};

static float queries[REQUESTS][HEADS][DIM], keys[REQUESTS][KV][ROW], values[REQUESTS][KV][ROW];
static const uint32_t pages[REQUESTS] = {0, KV, 2 * KV, 3 * KV};  // the first row of each request
static const ptowsp_attend_cache cache = {.keys = keys,
                                          .values = values,
                                          .key_strides = {.token = ROW, .head = DIM, .page = ROW},
                                          .value_strides = {.token = ROW, .head = DIM, .page = ROW},
                                          .key_dim = DIM,
                                          .value_dim = DIM};

static void stop(const ptowsp_plan_info *info) {
    ptowsp_plan_explain(info, manual_output());
    puts("");
    exit(1);
}

// KV of a token follows from the id of its block, so equal ids are equal KV.
static void fill(void) {
    for (uint32_t r = 0; r < REQUESTS; r++) {
        for (uint32_t i = 0; i < HEADS * DIM; i++) {
            queries[r][i / DIM][i % DIM] = sinf((float)(r * 31 + i));
        }
        for (uint32_t i = 0; i < KV * ROW; i++) {
            const uint32_t token = i / ROW, at = token % BLOCK * ROW + i % ROW;
            const float of = (float)(ids[r * BLOCKS + token / BLOCK] * 1000 + at);
            keys[r][token][i % ROW] = sinf(of);
            values[r][token][i % ROW] = cosf(of);
        }
    }
}

static ptowsp_attend_step step_of(float outputs[REQUESTS][HEADS][DIM]) {
    return (ptowsp_attend_step){.batch = &batch.attention,
                                .config = &config,
                                .queries = &queries[0][0][0],
                                .query_token_stride = HEADS * DIM,
                                .query_head_stride = DIM,
                                .outputs = &outputs[0][0][0],
                                .output_token_stride = HEADS * DIM,
                                .output_head_stride = DIM,
                                .pages = pages,
                                .page_stride = 1};
}

// Memory of the job, to be freed.
static void *memory_place(ptowsp_attend_job *job, const ptowsp_attention_sizes *sizes,
                          uint64_t join_count) {
    const ptowsp_attend_limits limits = {
        .plan = *sizes, .join_count = join_count, .value_dim = DIM, .worker_count = 1};
    ptowsp_plan_info info;
    uint64_t bytes;
    void *block = NULL;
    if (ptowsp_attend_size(&limits, &bytes, &info) ||
        ptowsp_attend_place(&limits, block = malloc(bytes), bytes, &job->memory, &info)) {
        stop(&info);
    }
    return block;
}

// Plans the requests of the tree, and computes the plan without a job's run.
static void shared_run(ptowsp_prefix_tree *tree, float outputs[REQUESTS][HEADS][DIM]) {
    const ptowsp_attention_limits limits = {.sequence_count_max = REQUESTS, .kv_length_max = KV};
    ptowsp_prefix_sizes most, sizes;
    ptowsp_prefix_plan plan;
    ptowsp_plan_info info;
    if (ptowsp_prefix_bound(&config, &limits, &most, &info) ||
        ptowsp_prefix_size(&batch.attention, &config, tree, &sizes, &info) ||
        ptowsp_prefix_place(&most, malloc(most.block_bytes), most.block_bytes, &plan) ||
        ptowsp_prefix_generate(&batch.attention, &config, tree, &plan, &info) ||
        ptowsp_prefix_check(&batch.attention, &config, tree, &plan, &info)) {
        stop(&info);
    }
    manual_check(sizes.attention.unit_count <= most.attention.unit_count, "the bound");
    ptowsp_attend_step step = step_of(outputs);
    step.plan = &plan.attention;
    step.prefix = &plan;
    ptowsp_attend_job job = {.cache = &cache, .step = &step};
    void *memory = memory_place(&job, &most.attention, most.join_count);
    uint32_t tokens = 0, most_tokens = 0;
    for (uint32_t i = 0; i < plan.attention.unit_count; i++) {
        ptowsp_prefix_unit_tokens(&plan, &plan.attention.units[i], &tokens);
        most_tokens = tokens > most_tokens ? tokens : most_tokens;
        manual_check(!ptowsp_attend_work(&job, &plan.attention.units[i]), "a unit");
    }
    for (uint32_t i = 0; i < plan.attention.merge_count; i++) {
        const ptowsp_work *merge = &plan.attention.merges[i];
        if (plan.segments[ptowsp_work_request(merge)].is_whole) {  // the others are lists for joins
            manual_check(!ptowsp_attend_merge(&job, merge), "a merge");
        }
    }
    for (uint32_t i = 0; i < plan.join_count; i++) {
        manual_check(!ptowsp_attend_join(&job, &plan.joins[i]), "a join");
    }
    manual_check(plan.shared_count > 0 && most_tokens > 1, "shared segments");
    ptowsp_prefix_print(&plan, manual_output());
    free(memory);
    free(plan.attention.units);  // the block
}

static void flat_run(ptowsp_context *context, float outputs[REQUESTS][HEADS][DIM]) {
    ptowsp_attention_sizes sizes;
    ptowsp_attention_plan plan;
    ptowsp_plan_info info;
    if (ptowsp_attention_size(&batch.attention, &config, &sizes, &info) ||
        ptowsp_attention_place(&sizes, malloc(sizes.block_bytes), sizes.block_bytes, &plan) ||
        ptowsp_attention_generate(&batch.attention, &config, &plan, &info)) {
        stop(&info);
    }
    ptowsp_attend_step step = step_of(outputs);
    step.plan = &plan;
    ptowsp_attend_job job = {.cache = &cache, .step = &step};
    void *memory = memory_place(&job, &sizes, 0);
    manual_check(!ptowsp_attend_run(context, &job), "the flat plan");
    free(memory);
    free(plan.units);
}

int main(void) {
    ptowsp_context *context;
    ptowsp_plan_info info;
    if (ptowsp_context_create(NULL, &context)) {
        return 1;
    }
    fill();
    const ptowsp_prefix_limits limits = {.request_count_max = REQUESTS, .block_count_max = BLOCKS};
    const uint64_t bytes = ptowsp_prefix_tree_bytes(&limits);
    void *const blocks[2] = {malloc(bytes), malloc(bytes)};
    ptowsp_prefix_tree tree, given;
    if (ptowsp_prefix_tree_place(&limits, blocks[0], bytes, &tree) ||
        ptowsp_prefix_tree_place(&limits, blocks[1], bytes, &given)) {
        return 1;
    }
    if (ptowsp_prefix_build(&batch, &tree, &info) ||
        ptowsp_prefix_remove(1, &tree, &info) ||       // request 1 ends
        ptowsp_prefix_add(&batch, 1, &tree, &info)) {  // and its number is a new request's
        stop(&info);
    }
    // An engine that has a tree of its own gives it: the prompt, and the third block below it.
    static const uint32_t parents[2] = {PTOWSP_NO_NODE, 0}, tokens[2] = {2 * BLOCK, BLOCK};
    static const uint32_t nodes[REQUESTS] = {1, 1, 0, PTOWSP_NO_NODE};
    const ptowsp_prefix_given known = {.attention = batch.attention,
                                       .parents = parents,
                                       .node_tokens = tokens,
                                       .node_count = 2,
                                       .request_nodes = nodes};
    if (ptowsp_prefix_build_given(&known, &given, &info)) {
        stop(&info);
    }
    manual_check(tree.node_count == 2 && given.node_count == 2, "both trees have two nodes");

    static float shared[REQUESTS][HEADS][DIM], flat[REQUESTS][HEADS][DIM];
    shared_run(&tree, shared);
    flat_run(context, flat);
    for (uint32_t i = 0; i < REQUESTS * HEADS * DIM; i++) {
        manual_check(fabsf((&shared[0][0][0])[i] - (&flat[0][0][0])[i]) < 1e-5f, "a row");
    }
    free(blocks[0]);
    free(blocks[1]);
    ptowsp_context_destroy(context);
    return manual_end();
}

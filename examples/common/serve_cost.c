#include "serve_cost.h"

#include "command.h"
#include "deal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct serve_cost {
    serve_setup s;
    serve_plan plan_kind;
    ptowsp_attention_config config;
    ptowsp_attention_plan plan;
    void *block;
    uint32_t fold;  // groups of heads and lanes that have this plan

    // chunk plan
    ptowsp_work *work;
    uint64_t work_capacity;
    int32_t *lengths;  // of the sequences that decode
    double *heap;      // [lanes]

    double last_ns, last_tokens;  // of the last plan
    uint32_t steps_since;
    uint64_t plan_count;
};

// -- shares of a device ---------------------------------------------------------------------------

uint32_t serve_setup_heads(const serve_setup *s) {
    if (s->model.heads % s->devices != 0) {
        command_fail("--heads %llu is not a multiple of --devices %u",
                     (unsigned long long)s->model.heads, (unsigned)s->devices);
    }
    return (uint32_t)(s->model.heads / s->devices);
}

uint32_t serve_setup_kv_heads(const serve_setup *s) {
    uint64_t kv_heads = s->model.kv_heads;
    if (kv_heads % s->devices != 0 && s->devices % kv_heads != 0) {
        command_fail("--kv-heads %llu and --devices %u: neither is a multiple of the other",
                     (unsigned long long)kv_heads, (unsigned)s->devices);
    }
    return kv_heads > s->devices ? (uint32_t)(kv_heads / s->devices) : 1;
}

double serve_setup_kv_bytes(const serve_setup *s) {
    const serve_model *m = &s->model;
    double head = 2.0 * (double)(m->is_mla ? m->dim : m->dim + m->value_dim);
    return (double)m->layers * serve_setup_kv_heads(s) * head;
}

uint64_t serve_setup_kv_tokens(const serve_setup *s, double share) {
    double weights = serve_model_total(&s->model) * s->model.weight_bytes / s->devices;
    double room = s->machine.memory_bytes * share - weights;
    double tokens = room > 0.0 ? floor(room / serve_setup_kv_bytes(s)) : 0.0;
    return tokens < (double)INT32_MAX ? (uint64_t)tokens : INT32_MAX;
}

// -- attention ------------------------------------------------------------------------------------

static void cost_check(ptowsp_status status, const ptowsp_plan_info *info) {
    if (status != PTOWSP_OK) {
        char line[256];
        ptowsp_output_buffer buffer = {.data = line, .size = sizeof line};
        ptowsp_plan_explain(info, ptowsp_output_to_buffer(&buffer));
        command_fail("%s", line);
    }
}

static double cost_balanced(serve_cost *c, const serve_step *step) {
    bool is_decode = step->query_count == step->count;
    ptowsp_attention_batch batch = {.kv_lengths = step->kv_lengths,
                                    .query_lengths = is_decode ? NULL : step->query_lengths,
                                    .sequence_count = step->count};
    ptowsp_plan_info info;
    cost_check(ptowsp_attention_generate(&batch, &c->config, &c->plan, &info), &info);
    return c->plan.cost_max;
}

static double cost_unit(const serve_cost *c, uint32_t kv_len, uint32_t rows) {
    const ptowsp_attention_cost *cost = &c->config.cost;
    return cost->per_unit + kv_len * (cost->per_token + rows * cost->per_row_token);
}

// Deals the tiles of a prompt, each against the tokens that its last query sees, for one KV head.
static void cost_deal_prompt(serve_cost *c, uint32_t kv_length, uint32_t query_length) {
    uint32_t group = c->config.group;
    uint32_t tile = c->config.tile_rows / group ? c->config.tile_rows / group : 1;
    for (uint32_t at = 0; at < query_length; at += tile) {
        uint32_t tokens = query_length - at < tile ? query_length - at : tile;
        uint32_t end = kv_length - query_length + at + tokens;
        deal_add(c->heap, c->config.lane_count, cost_unit(c, end, tokens * group));
    }
}

// Deals the units of the sequences that decode; returns the slots to merge.
static uint64_t cost_deal_chunks(serve_cost *c, uint32_t count) {
    static const ptowsp_tier tier = {
        .id = 0, .length_min = 1, .length_max = INT32_MAX};  // any length
    ptowsp_batch batch = {
        .lengths = c->lengths, .sequence_count = count, .kv_head_count = c->config.kv_head_count};
    ptowsp_plan_config config;
    ptowsp_plan_info info;
    uint32_t chunk;
    uint64_t slots = 0;
    memset(&config, 0, sizeof config);
    config.max_work_units = (c->s.units_max - 1) / c->fold + 1;
    config.align = c->s.page;
    config.tiers = &tier;
    config.tier_count = 1;
    cost_check(ptowsp_plan_chunk_size(&batch, &config, &chunk, &info), &info);
    cost_check(ptowsp_plan_total_work(&batch, &config, chunk, &info), &info);
    if (info.work_count > c->work_capacity) {
        free(c->work);
        c->work_capacity = info.work_count * 2;
        c->work = (ptowsp_work *)command_allocate(c->work_capacity, sizeof *c->work);
    }
    cost_check(ptowsp_plan_generate(&batch, &config, chunk, c->work, c->work_capacity, &info),
               &info);
    for (uint64_t i = 0; i < info.work_count; i++) {
        uint32_t kv_len = (uint32_t)ptowsp_work_kv_len(&c->work[i]);
        deal_add(c->heap, c->config.lane_count, cost_unit(c, kv_len, c->config.group));
        slots += !ptowsp_work_is_whole(&c->work[i]);
    }
    return slots;
}

static double cost_chunks(serve_cost *c, const serve_step *step) {
    uint32_t lane_count = c->config.lane_count, decodes = 0;
    double largest = 0.0;
    memset(c->heap, 0, lane_count * sizeof *c->heap);
    for (uint32_t i = 0; i < step->count; i++) {
        if (step->query_lengths[i] == 1) {
            c->lengths[decodes++] = step->kv_lengths[i];
            continue;
        }
        for (uint32_t head = 0; head < c->config.kv_head_count; head++) {
            cost_deal_prompt(c, (uint32_t)step->kv_lengths[i], (uint32_t)step->query_lengths[i]);
        }
    }
    uint64_t slots = cost_deal_chunks(c, decodes);
    for (uint32_t i = 0; i < lane_count; i++) {
        largest = fmax(largest, c->heap[i]);
    }
    return largest +
           (double)slots * c->config.group * c->config.cost.per_merged_row / (double)lane_count;
}

// -- the rest -------------------------------------------------------------------------------------

// Weights are read once, and each token does a multiply-add with some of them, in ns.
static double cost_roofline(const serve_setup *s, double read, double multiplied) {
    double bytes = read * s->model.weight_bytes / s->devices;
    double flops = 2.0 * multiplied / s->devices;
    return fmax(bytes / s->machine.bytes_per_s, flops / s->machine.flops_per_s) / s->efficiency *
           1e9;
}

static double cost_rest(const serve_setup *s, const serve_step *step) {
    const serve_model *m = &s->model;
    double tokens = (double)step->query_count, dense = serve_model_dense(m);
    double time = cost_roofline(s, dense, dense * tokens);
    if (m->experts) {
        double part = (double)m->top_k / (double)m->experts, all = serve_model_experts(m);
        time += cost_roofline(s, all * (1.0 - pow(1.0 - part, tokens)), all * part * tokens);
    }
    if (step->sampled > 0) {
        double head = serve_model_head(m);
        time += cost_roofline(s, head, head * step->sampled);
    }
    return time + s->machine.step_ns + (double)m->layers * s->layer_ns;
}

static uint32_t cost_divisor(uint32_t a, uint32_t b) {
    while (b != 0) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// -- public ---------------------------------------------------------------------------------------

serve_cost *serve_cost_create(const serve_setup *s, serve_plan plan, uint32_t sequence_count_max,
                              int32_t kv_length_max, uint32_t query_count_max) {
    serve_cost *c = (serve_cost *)command_allocate(1, sizeof *c);
    ptowsp_attention_limits limits;
    ptowsp_attention_sizes sizes;
    ptowsp_plan_info info;
    c->s = *s;
    c->plan_kind = plan;
    uint32_t kv_head_count = serve_setup_kv_heads(s);
    c->fold = s->is_every_head ? 1 : cost_divisor(kv_head_count, s->machine.lanes);
    c->config.kv_head_count = kv_head_count / c->fold;
    c->config.group = serve_setup_heads(s) / kv_head_count;
    c->config.lane_count = s->machine.lanes / c->fold;
    c->config.is_causal = true;
    c->config.page_size = s->page;
    c->config.tile_rows = s->tile_rows;
    c->config.cost = s->machine.attention;
    memset(&limits, 0, sizeof limits);
    limits.sequence_count_max = sequence_count_max;
    limits.kv_length_max = kv_length_max;
    limits.query_length_max = (int32_t)query_count_max;
    limits.query_token_count_max = query_count_max;
    cost_check(ptowsp_attention_bound(&c->config, &limits, &sizes, &info), &info);
    c->block = command_allocate(sizes.block_bytes, 1);
    command_check(NULL, ptowsp_attention_place(&sizes, c->block, sizes.block_bytes, &c->plan));
    c->lengths = (int32_t *)command_allocate(sequence_count_max, sizeof *c->lengths);
    c->heap = (double *)command_allocate(c->config.lane_count, sizeof *c->heap);
    return c;
}

serve_time serve_cost_step(serve_cost *c, const serve_step *step) {
    double tokens = 0.0;
    for (uint32_t i = 0; i < step->count; i++) {
        tokens += step->kv_lengths[i];
    }
    if (step->is_next && c->plan_count > 0 && c->steps_since + 1 < c->s.plan_every) {
        c->steps_since++;
    } else {
        double cycles =
            c->plan_kind == SERVE_CHUNKS ? cost_chunks(c, step) : cost_balanced(c, step);
        c->last_ns = cycles / c->s.machine.clock_hz * 1e9;
        c->last_tokens = tokens;
        c->steps_since = 0;
        c->plan_count++;
    }
    double layer_ns = c->last_tokens > 0.0 ? c->last_ns * (tokens / c->last_tokens) : 0.0;
    serve_time time = {(double)c->s.model.layers * layer_ns, cost_rest(&c->s, step)};
    return time;
}

uint64_t serve_cost_plan_count(const serve_cost *c) {
    return c->plan_count;
}

void serve_cost_destroy(serve_cost *c) {
    if (c) {
        free(c->block);
        free(c->work);
        free(c->lengths);
        free(c->heap);
        free(c);
    }
}

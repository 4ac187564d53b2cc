// Both plans of a step, and their runs:
//
//      attention plan    generate -> attend and merge on lanes, each tile as soon as it can
//      chunk plan        chunk, generate -> attend on lanes -> barrier -> merge on lanes
//
// Both attend with one kernel, and write outputs of their own.

#include "command.h"
#include "deal.h"
#include "decode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void decode_plan_check(ptowsp_status status, const ptowsp_plan_info *info) {
    if (status != PTOWSP_OK) {
        char line[256];
        ptowsp_output_buffer buffer = {.data = line, .size = sizeof line};
        ptowsp_plan_explain(info, ptowsp_output_to_buffer(&buffer));
        command_fail("%s", line);
    }
}

// Nothing of an earlier step stays in the outputs: what is not written is NaN, and found. Requests
// without KV have no units; theirs are 0.
static void decode_outputs_clear(decode_run *run) {
    const decode_step *s = run->step;
    uint64_t token_floats = s->o.heads * s->value_dim;
    for (uint32_t i = 0; i < s->sequence_count; i++) {
        float *out = run->outputs + decode_query_start(s, i) * token_floats;
        uint64_t count = decode_query_length(s, i) * token_floats;
        for (uint64_t k = 0; k < count; k++) {
            out[k] = s->kv_lengths[i] ? NAN : 0.0f;
        }
    }
}

static void decode_times_set(decode_run *run, uint32_t index, uint64_t plan_ns, uint64_t run_ns,
                             uint64_t merge_ns) {
    run->plan_ns[index] = plan_ns;
    run->run_ns[index] = run_ns;
    run->merge_ns[index] = merge_ns;
    run->total_ns[index] = plan_ns + run_ns + merge_ns;
}

static void decode_count_unit(decode_run *run, uint32_t lane, uint64_t start) {
    run->lanes[lane].busy_ns += ptowsp_clock_ns() - start;
    run->lanes[lane].units++;
}

// -- attention plan -------------------------------------------------------------------------------

static void decode_balanced_config(decode_step *s) {
    ptowsp_attention_config *config = &s->config;
    ptowsp_attention_batch lengths = {.kv_lengths = s->kv_lengths,
                                      .query_lengths = s->query_lengths,
                                      .sequence_count = s->sequence_count};
    s->lengths = lengths;
    config->kv_head_count = (uint32_t)s->o.kv_heads;
    config->group = s->group;
    config->lane_count = s->o.lanes ? (uint32_t)s->o.lanes : ptowsp_context_lane_count(s->context);
    config->mode = s->o.is_invariant ? PTOWSP_ATTENTION_INVARIANT : PTOWSP_ATTENTION_BALANCED;
    config->is_causal = s->o.is_prefill;
    config->page_size = (uint32_t)s->o.page;
}

// Makes room for the plans of this step and of those after it. An engine does this once, from the
// size of its cache.
static void decode_balanced_make(decode_step *s) {
    ptowsp_attention_limits limits;
    ptowsp_attention_sizes sizes;
    ptowsp_plan_info info;
    int32_t growth = (int32_t)s->o.steps;
    decode_balanced_config(s);
    memset(&limits, 0, sizeof limits);
    limits.sequence_count_max = s->sequence_count;
    limits.kv_length_max = s->length_max < INT32_MAX - growth ? s->length_max + growth : INT32_MAX;
    limits.query_length_max = s->o.is_prefill ? DECODE_PROMPT_TOKENS : 1;
    limits.kv_token_count_max = s->token_count + (uint64_t)s->sequence_count * s->o.steps;
    limits.query_token_count_max = s->query_count;
    decode_plan_check(ptowsp_attention_bound(&s->config, &limits, &sizes, &info), &info);
    s->plan_block = command_allocate(sizes.block_bytes, 1);
    command_check(NULL, ptowsp_attention_place(&sizes, s->plan_block, sizes.block_bytes, &s->plan));
    const ptowsp_attend_limits room = {.plan = sizes, .value_dim = s->value_dim, .worker_count = 1};
    decode_run *run = &s->balanced;
    uint64_t bytes;
    decode_plan_check(ptowsp_attend_size(&room, &bytes, &info), &info);
    run->memory = command_allocate(bytes, 1);
    decode_plan_check(ptowsp_attend_place(&room, run->memory, bytes, &run->job.memory, &info),
                      &info);
    run->scratch = run->job.memory.scratch;
    run->job.cache = &s->kv;
    run->job.step = &run->attention;
}

static void decode_balanced_plan(decode_step *s) {
    ptowsp_plan_info info;
    decode_plan_check(ptowsp_attention_generate(&s->lengths, &s->config, &s->plan, &info), &info);
}

static void decode_balanced_attend(const ptowsp_work *work, uint32_t lane, void *user) {
    decode_run *run = (decode_run *)user;
    uint64_t start = ptowsp_clock_ns();
    ptowsp_attend_work(&run->job, work);
    decode_count_unit(run, lane, start);
}

// Merges the rows of a tile.
static void decode_balanced_merge(const ptowsp_work *merge, uint32_t lane, void *user) {
    decode_run *run = (decode_run *)user;
    uint64_t start = ptowsp_clock_ns();
    ptowsp_attend_merge(&run->job, merge);
    run->lanes[lane].busy_ns += ptowsp_clock_ns() - start;
}

void decode_balanced_step(decode_step *s, uint32_t index) {
    static const ptowsp_work_fn table[] = {decode_balanced_attend};
    decode_run *run = &s->balanced;
    ptowsp_attention_job job = {.plan = &s->plan,
                                .table = table,
                                .table_count = 1,
                                .merge = decode_balanced_merge,
                                .user = run,
                                .progress = run->job.memory.progress,
                                .is_stealing = s->o.is_stealing};
    ptowsp_plan_info info;
    decode_outputs_clear(run);
    uint64_t start = ptowsp_clock_ns();
    decode_balanced_plan(s);
    uint64_t planned = ptowsp_clock_ns();
    decode_plan_check(ptowsp_attend_check(&run->job, &info), &info);
    bool is_drawn = s->o.timeline_path && index + 1 == s->o.steps;
    if (is_drawn) {
        job.spans = (ptowsp_span *)command_allocate(
            (uint64_t)s->plan.unit_count + s->plan.merge_count, sizeof *job.spans);
    }
    uint64_t ready = ptowsp_clock_ns();
    command_check(s->context, ptowsp_attention_run(s->context, &job));
    decode_times_set(run, index, planned - start, ptowsp_clock_ns() - ready, 0);
    if (is_drawn) {
        decode_timeline_write(s, job.spans);
        free(job.spans);
    }
    run->unit_count = s->plan.unit_count;
    run->part_count = run->slot_count = s->plan.slot_count;
    run->merge_count = s->plan.merge_count;
    run->cost_max = s->plan.cost_max;
    run->cost_mean = s->plan.cost_mean;
}

// -- chunk plan -----------------------------------------------------------------------------------

// The kernel of every tier. A kernel library would use `tier` to choose tile sizes.
PTOWSP_INLINE void decode_chunk(const ptowsp_work *work, uint32_t lane, void *user, int tier) {
    decode_run *run = (decode_run *)user;
    uint64_t start = ptowsp_clock_ns();
    bool is_part = !ptowsp_work_is_whole(work);
    ptowsp_attend_unit unit = {.request = ptowsp_work_request(work),
                               .kv_head = ptowsp_work_head(work),
                               .query_count = 1,
                               .kv_start = ptowsp_work_kv_start(work),
                               .kv_len = ptowsp_work_kv_len(work)};
    (void)tier;
    ptowsp_attend_compute(&run->step->kv, &run->attention, &unit,
                          is_part ? ptowsp_attention_states(&run->scratch, work->work_id) : NULL,
                          is_part ? ptowsp_attention_accs(&run->scratch, work->work_id) : NULL);
    decode_count_unit(run, lane, start);
}

PTOWSP_DEFINE_TIERS(decode_chunk, DECODE_TIERS, decode_chunk)

// Chooses the chunk and writes the units. *out_count is their number, also where they do not fit.
static ptowsp_status decode_chunks_plan(decode_step *s, ptowsp_plan_info *out_info) {
    ptowsp_batch batch = {.lengths = s->kv_lengths,
                          .sequence_count = s->sequence_count,
                          .kv_head_count = (uint32_t)s->o.kv_heads};
    ptowsp_plan_config config;
    memset(&config, 0, sizeof config);
    config.max_work_units = (uint32_t)s->o.units;
    config.align = (uint32_t)s->o.page;
    config.chunks = s->o.is_fixed ? PTOWSP_CHUNKS_FIXED : PTOWSP_CHUNKS_BALANCED;
    config.chunk_max = s->o.page > PTOWSP_CHUNK_MAX_DEFAULT ? config.align : 0;
    config.tiers = decode_chunk_tiers;
    config.tier_count = decode_chunk_tier_count;
    ptowsp_status status = ptowsp_plan_chunk_size(&batch, &config, &s->chunk, out_info);
    if (status == PTOWSP_OK) {
        status =
            ptowsp_plan_generate(&batch, &config, s->chunk, s->work, s->work_capacity, out_info);
    }
    return status;
}

// Predicts the lanes of a chunk plan by the cost of attention plans: a unit goes to the lane that is
// free first, and merges are shared evenly.
static void decode_chunks_predict(decode_step *s) {
    decode_run *run = &s->chunks;
    uint32_t lane_count = s->config.lane_count;
    double *heap = (double *)command_allocate(lane_count, sizeof *heap);
    double total = 0.0, merged = 0.0, rows = (double)s->group;
    run->part_count = run->merge_count = 0;
    for (uint64_t i = 0; i < run->unit_count; i++) {
        const ptowsp_work *work = &s->work[i];
        double cost = 64.0 + (double)ptowsp_work_kv_len(work) * (1.0 + rows / 64.0);
        deal_add(heap, lane_count, cost);
        total += cost;
        run->part_count += !ptowsp_work_is_whole(work);
        run->merge_count += ptowsp_work_is_first(work) && !ptowsp_work_is_last(work);
    }
    merged = (double)run->part_count * rows / lane_count;
    run->cost_mean = total / lane_count + merged;
    for (uint32_t i = 0; i < lane_count; i++) {
        run->cost_max = fmax(run->cost_max, heap[i] + merged);
    }
    free(heap);
}

static void decode_chunks_make(decode_step *s) {
    ptowsp_plan_info info;
    ptowsp_status status = decode_chunks_plan(s, &info);
    s->has_chunks = true;
    if (status == PTOWSP_BUFFER_OVERFLOW) {  // now the size is known
        command_check(s->context, ptowsp_work_create(s->context, info.work_count, &s->work));
        s->work_capacity = info.work_count;
        status = decode_chunks_plan(s, &info);
    }
    decode_plan_check(status, &info);
    s->chunks.unit_count = info.work_count;
    s->is_over = info.is_over;
    decode_run *run = &s->chunks;
    const uint64_t rows = info.work_count * s->group;
    run->slot_count = info.work_count;
    run->scratch.rows = s->group;
    run->scratch.dim = s->value_dim;
    run->scratch.states = (ptowsp_partial *)command_allocate(rows, sizeof *run->scratch.states);
    run->scratch.accs = (float *)command_allocate(rows * s->value_dim, sizeof(float));
    decode_chunks_predict(s);
}

// Merges the pieces of each (request, KV head) that was cut: a run of units from FIRST to LAST.
static void decode_chunks_merge(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    decode_run *run = (decode_run *)user;
    const decode_step *s = run->step;
    (void)lane;
    for (uint64_t unit = begin; unit < end; unit++) {
        const ptowsp_work *work = &s->work[unit];
        if (!ptowsp_work_is_first(work) || ptowsp_work_is_last(work)) {
            continue;
        }
        uint32_t piece_count = 1;
        while (!ptowsp_work_is_last(&work[piece_count - 1])) {
            piece_count++;
        }
        for (uint32_t g = 0; g < s->group; g++) {
            uint64_t row = unit * s->group + g;
            uint64_t head = (uint64_t)ptowsp_work_head(work) * s->group + g;
            uint64_t out = ptowsp_work_request(work) * s->o.heads + head;
            ptowsp_merge_partials(run->scratch.states + row, run->scratch.accs + row * s->value_dim,
                                  piece_count, s->group, s->value_dim,
                                  run->outputs + out * s->value_dim);
        }
    }
}

void decode_chunks_step(decode_step *s, uint32_t index) {
    decode_run *run = &s->chunks;
    ptowsp_plan_info info;
    decode_outputs_clear(run);
    uint64_t start = ptowsp_clock_ns();
    decode_plan_check(decode_chunks_plan(s, &info), &info);
    uint64_t planned = ptowsp_clock_ns();
    command_check(s->context,
                  ptowsp_dispatch_spmd(s->context, s->work, run->unit_count, decode_chunk_table,
                                       decode_chunk_tier_count, run));
    uint64_t attended = ptowsp_clock_ns();
    command_check(s->context,
                  ptowsp_parallel_for(s->context, run->unit_count, 0, decode_chunks_merge, run));
    decode_times_set(run, index, planned - start, attended - planned, ptowsp_clock_ns() - attended);
}

// Chunk plans have no query tiles.
void decode_plans_make(decode_step *s) {
    decode_balanced_make(s);
    decode_balanced_plan(s);
    if (!s->o.is_prefill) {
        decode_chunks_make(s);
    }
}

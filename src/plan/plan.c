// Planning: which chunk, how many units, and the descriptors. Everything is checked first, in one
// pass over the lengths (count.c); then writing cannot fail (emit.c).
//
// The search for the chunk. units(chunk) = sum of ceil(len / chunk) falls as the chunk grows, so
// the smallest chunk with units <= limit is found by narrowing [low, high], where high qualifies
// and everything below low does not. A pass over 10,000 lengths costs about half a microsecond, so
// the search saves passes. The bounds
//
//      total / chunk  <=  units(chunk)  <=  (total - count) / chunk + count      count: lengths > 0
//
// narrow both ends before the first pass. Between them units is nearly a line over 1 / chunk, so
// the line through the last two probes predicts the answer (the secant method; the first two probes
// take the line through what rounding up adds on average). For batches of many different lengths 3
// to 5 probes are enough. Where units has large steps, as for equal lengths, prediction fails; so
// after PWSP_PREDICTIONS probes the rest is bisection: never more than that plus log2(high - low).

#include "generate.h"
#include "plan.h"

#include "../base/context.h"
#include "../base/text.h"

// -- checks ---------------------------------------------------------------------------------------

// Fills the defaults of a configuration in and checks it.
static ptowsp_status pwsp_config_check(const ptowsp_plan_config *given, ptowsp_plan_config *config,
                                       ptowsp_plan_info *info) {
    memset(config, 0, sizeof *config);
    if (given) {
        *config = *given;
    }
    uint32_t low = config->chunk_min, high = config->chunk_max;
    config->chunk_min = low ? low : PTOWSP_CHUNK_MIN_DEFAULT;
    config->chunk_max = high ? high : PTOWSP_CHUNK_MAX_DEFAULT;
    if (!low && high && high < config->chunk_min) {
        config->chunk_min = high;
    }
    if (!high && low > config->chunk_max) {
        config->chunk_max = low;
    }
    config->align = config->align ? config->align : 1;
    if (config->max_work_units == 0) {
        config->max_work_units = PTOWSP_MAX_WORK_UNITS_DEFAULT;
    }
    if (!config->tiers && config->tier_count == 0) {
        config->tiers = ptowsp_decode_tiers();
        config->tier_count = PTOWSP_DECODE_TIER_COUNT;
    }
    if (config->chunks != PTOWSP_CHUNKS_BALANCED && config->chunks != PTOWSP_CHUNKS_FIXED) {
        return PWSP_PLAN_FAIL(info, CHUNKS_UNKNOWN, (int64_t)config->chunks, 0);
    }
    if (config->chunk_min > config->chunk_max) {
        return PWSP_PLAN_FAIL(info, CHUNK_ORDER, config->chunk_min, config->chunk_max);
    }
    return pwsp_tiers_check(config->tiers, config->tier_count, info);
}

// Moves the chunk bounds of a checked configuration to multiples of align.
static ptowsp_status pwsp_config_align(ptowsp_plan_config *config, ptowsp_plan_info *info) {
    uint64_t first = pwsp_ceil_div_u64(config->chunk_min, config->align) * config->align;
    uint64_t last = (uint64_t)config->chunk_max / config->align * config->align;
    if (first > last) {
        return PWSP_PLAN_FAIL(info, CHUNK_ALIGN, config->align, config->chunk_max);
    }
    PTOWSP_ASSERT(config->chunk_min <= first && last <= config->chunk_max);
    config->chunk_min = (uint32_t)first;
    config->chunk_max = (uint32_t)last;
    return PTOWSP_OK;
}

// Checks the lengths of sequences [first, end) against the tiers; a failure names the lowest index.
static ptowsp_status pwsp_lengths_check(const ptowsp_batch *batch, const ptowsp_plan_config *config,
                                        uint32_t first, uint32_t end,
                                        const pwsp_lengths_facts *facts, ptowsp_plan_info *info) {
    PTOWSP_ASSERT(first <= end && end <= batch->sequence_count);
    if (facts->min >= 0 &&
        (facts->positive_count == 0 ||
         pwsp_tiers_cover(config->tiers, config->tier_count, facts->positive_min, facts->max))) {
        return PTOWSP_OK;
    }
    for (uint32_t i = first; i < end; i++) {
        int32_t length = batch->lengths[i];
        if (length < 0) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_LENGTH_NEGATIVE, i, length, 0);
        }
        if (length > 0 && ptowsp_tier_find(config->tiers, config->tier_count, length) < 0) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_LENGTH_UNCOVERED, i, length, 0);
        }
    }
    return PTOWSP_OK;
}

static ptowsp_status pwsp_batch_check(const ptowsp_batch *batch, ptowsp_plan_info *info) {
    if (!batch) {
        return PWSP_PLAN_FAIL(info, BATCH_NULL, 0, 0);
    }
    if (!batch->lengths && batch->sequence_count > 0) {
        return PWSP_PLAN_FAIL(info, LENGTHS_NULL, batch->sequence_count, 0);
    }
    return batch->kv_head_count == 0 ? PWSP_PLAN_FAIL(info, HEADS_ZERO, 0, 0) : PTOWSP_OK;
}

static ptowsp_status pwsp_chunk_check(const ptowsp_plan_config *config, uint32_t chunk,
                                      ptowsp_plan_info *info) {
    if (chunk == 0 || chunk % config->align != 0) {
        return PWSP_PLAN_FAIL(info, CHUNK_INVALID, chunk, config->align);
    }
    return PTOWSP_OK;
}

// A range of sequences, checked, with its facts.
typedef struct pwsp_plan_range {
    const ptowsp_batch *batch;
    ptowsp_plan_config config;
    uint32_t first;
    uint32_t end;
    pwsp_lengths_facts facts;
} pwsp_plan_range;

// Checks sequences [first, first + count) under a configuration that has been checked.
static ptowsp_status pwsp_range_check(const ptowsp_batch *batch, uint32_t first, uint32_t count,
                                      pwsp_plan_range *range, ptowsp_plan_info *info) {
    ptowsp_status status = pwsp_batch_check(batch, info);
    if (status != PTOWSP_OK) {
        return status;
    }
    if (first > batch->sequence_count || count > batch->sequence_count - first) {
        return pwsp_plan_fail(info, PTOWSP_FAULT_RANGE, first, count, batch->sequence_count);
    }
    range->batch = batch;
    range->first = first;
    range->end = first + count;
    range->facts = pwsp_lengths_scan(count ? batch->lengths + first : NULL, count);
    PTOWSP_ASSERT(range->facts.positive_count <= count);
    PTOWSP_ASSERT(range->facts.total >= range->facts.positive_count);
    return pwsp_lengths_check(batch, &range->config, first, range->end, &range->facts, info);
}

static uint32_t pwsp_sequence_count(const ptowsp_batch *batch) {
    return batch ? batch->sequence_count : 0;
}

// -- chunk size and counting ----------------------------------------------------------------------

#define PWSP_PREDICTIONS 5

// One look at units(chunk), for the line that predicts the next: inverse is 1 / chunk.
typedef struct pwsp_probe {
    double inverse;
    double units;
} pwsp_probe;

// Predicts the smallest k for which chunk = k * align has units <= limit. With fewer than two
// probes the slope is taken from total / chunk. Only a prediction: its rounding decides how fast the
// answer is found, never the answer itself.
static uint64_t pwsp_probe_next(pwsp_probe older, pwsp_probe newer, double total, double limit,
                                double align) {
    double slope = total;
    if (older.inverse > 0.0 && older.inverse != newer.inverse && older.units != newer.units) {
        slope = (newer.units - older.units) / (newer.inverse - older.inverse);
    }
    double inverse = newer.inverse + (limit - newer.units) / slope;
    double k = inverse > 0.0 ? 1.0 / (inverse * align) : 4294967296.0;
    return k < 4294967296.0 ? (uint64_t)k + 1 : UINT64_C(1) << 32;
}

// The smallest chunk = k * align, low <= k <= high, with units(chunk) <= limit; high if there is
// none.
static uint32_t pwsp_chunk_search(const pwsp_plan_range *range, uint64_t limit) {
    const PTOWSP_GM int32_t *lengths = range->batch->lengths + range->first;
    uint64_t length_count = range->end - range->first;
    uint64_t total = range->facts.total, count = range->facts.positive_count;
    uint64_t align = range->config.align;
    uint64_t low = range->config.chunk_min / align, high = range->config.chunk_max / align;
    PTOWSP_ASSERT(count > 0);
    PTOWSP_ASSERT(low * align == range->config.chunk_min &&
                  high * align == range->config.chunk_max);
    if (limit < count) {
        return (uint32_t)(high * align);  // every sequence has at least one unit
    }
    low = pwsp_max_u64(low, pwsp_ceil_div_u64(pwsp_ceil_div_u64(total, limit), align));
    // With as many units for each, the shortest bounds it from below, the longest from above.
    const uint64_t each = limit / count;
    const uint64_t shortest = pwsp_ceil_div_u64((uint32_t)range->facts.positive_min, each);
    const uint64_t longest = pwsp_ceil_div_u64((uint32_t)range->facts.max, each);
    low = pwsp_max_u64(low, pwsp_ceil_div_u64(shortest, align));
    if (low >= high) {
        return (uint32_t)(high * align);
    }
    uint64_t enough = pwsp_ceil_div_u64(longest, align);  // qualifies by an upper bound
    if (limit > count) {
        const uint64_t most = pwsp_ceil_div_u64(total - count, limit - count);
        enough = pwsp_min_u64(enough, pwsp_ceil_div_u64(most, align));
    }
    if (enough < high) {
        high = pwsp_max_u64(enough, low);
    } else if (pwsp_lengths_units(lengths, length_count, count, (uint32_t)(high * align)) > limit) {
        return (uint32_t)(high * align);
    }
    pwsp_probe older = {0.0, 0.0}, newer = {0.0, (double)count / 2.0};
    for (uint32_t probe = 0; low < high; probe++) {
        uint64_t k = low + (high - low) / 2;
        if (probe < PWSP_PREDICTIONS) {
            k = pwsp_probe_next(older, newer, (double)total, (double)limit, (double)align);
            k = pwsp_min_u64(pwsp_max_u64(k, low), high - 1);
        }
        PTOWSP_ASSERT(low <= k && k < high);  // so that each probe halves or moves a bound
        uint64_t units = pwsp_lengths_units(lengths, length_count, count, (uint32_t)(k * align));
        PTOWSP_ASSERT(count <= units && units <= total);
        if (units <= limit) {
            high = k;
        } else {
            low = k + 1;
        }
        older = newer;
        newer.inverse = 1.0 / (double)(k * align);
        newer.units = (double)units;
    }
    PTOWSP_ASSERT(low == high);
    return (uint32_t)(high * align);
}

ptowsp_status ptowsp_plan_chunk_size(const ptowsp_batch *batch, const ptowsp_plan_config *config,
                                     uint32_t *out_chunk, ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    if (!out_chunk) {
        return PWSP_PLAN_FAIL(info, OUT_NULL, PWSP_OUT_ONLY, 0);
    }
    *out_chunk = 0;
    pwsp_plan_range range;
    ptowsp_status status = pwsp_config_check(config, &range.config, info);
    if (status == PTOWSP_OK) {
        status = pwsp_config_align(&range.config, info);
    }
    if (status == PTOWSP_OK) {
        status = pwsp_range_check(batch, 0, pwsp_sequence_count(batch), &range, info);
    }
    if (status == PTOWSP_OK) {
        uint64_t limit = range.config.max_work_units / batch->kv_head_count;
        bool is_empty = range.facts.positive_count == 0;
        *out_chunk = is_empty ? range.config.chunk_min : pwsp_chunk_search(&range, limit);
        if (*out_chunk == range.config.chunk_max) {
            info->is_over = pwsp_lengths_units(batch->lengths, batch->sequence_count,
                                               range.facts.positive_count, *out_chunk) > limit;
        }
    }
    return status;
}

// Counts the units of a checked range.
static ptowsp_status pwsp_range_count(const pwsp_plan_range *range, uint32_t chunk,
                                      uint64_t *out_count, ptowsp_plan_info *info) {
    *out_count = 0;
    if (range->facts.positive_count == 0) {
        return PTOWSP_OK;
    }
    uint64_t count;
    uint64_t units =
        pwsp_lengths_units(range->batch->lengths + range->first, range->end - range->first,
                           range->facts.positive_count, chunk);
    if (!pwsp_mul_fits(units, range->batch->kv_head_count, &count) || count > INT64_MAX) {
        return PWSP_PLAN_FAIL(info, TOTAL_OVERFLOW, 0, 0);
    }
    *out_count = count;
    return PTOWSP_OK;
}

// Checks a range and the chunk, and counts: all that total_work and the generators have in common.
static ptowsp_status pwsp_range_prepare(const ptowsp_batch *batch, const ptowsp_plan_config *config,
                                        uint32_t chunk, uint32_t first, uint32_t count,
                                        pwsp_plan_range *range, uint64_t *out_count,
                                        ptowsp_plan_info *info) {
    ptowsp_status status = pwsp_config_check(config, &range->config, info);
    if (status == PTOWSP_OK) {
        status = pwsp_chunk_check(&range->config, chunk, info);
    }
    if (status == PTOWSP_OK) {
        status = pwsp_range_check(batch, first, count, range, info);
    }
    return status == PTOWSP_OK ? pwsp_range_count(range, chunk, out_count, info) : status;
}

ptowsp_status ptowsp_plan_total_work(const ptowsp_batch *batch, const ptowsp_plan_config *config,
                                     uint32_t chunk, ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    pwsp_plan_range range;
    uint64_t count;
    ptowsp_status status = pwsp_range_prepare(batch, config, chunk, 0, pwsp_sequence_count(batch),
                                              &range, &count, info);
    info->work_count = status == PTOWSP_OK ? count : 0;
    info->is_over = status == PTOWSP_OK && count > range.config.max_work_units;
    return status;
}

// -- generation -----------------------------------------------------------------------------------

// Checks that `count` units from first_work_id on have ids and fit the buffer.
static ptowsp_status pwsp_work_check(const PTOWSP_GM ptowsp_work *work, uint64_t capacity,
                                     uint64_t first_work_id, uint64_t count,
                                     ptowsp_plan_info *info) {
    const uint64_t id_count = UINT64_C(1) << 32;
    if (first_work_id > id_count || count > id_count - first_work_id) {
        uint64_t wanted =
            pwsp_min_u64(first_work_id, INT64_MAX) + count;  // no overflow: 2 x 63 bits
        return PWSP_PLAN_FAIL(info, IDS_EXHAUSTED, pwsp_info_value(wanted), (int64_t)id_count);
    }
    if (!work && capacity > 0) {
        return PWSP_PLAN_FAIL(info, WORK_NULL, pwsp_info_value(capacity), 0);
    }
    ptowsp_status status = PTOWSP_OK;
    if (count > capacity) {
        status = PWSP_PLAN_FAIL(info, BUFFER_SMALL, (int64_t)count, (int64_t)capacity);
    }
    info->work_count = count;
    return status;
}

static pwsp_emit_desc pwsp_range_emit_desc(const pwsp_plan_range *range, uint32_t chunk) {
    pwsp_emit_desc desc = {
        range->batch->lengths,   range->batch->kv_head_count, chunk,
        range->config.align,     range->config.chunks,        range->config.tiers,
        range->config.tier_count};
    return desc;
}

ptowsp_status ptowsp_plan_generate_range(const ptowsp_batch *batch,
                                         const ptowsp_plan_config *config, uint32_t chunk,
                                         uint32_t first, uint32_t count, uint64_t first_work_id,
                                         PTOWSP_GM ptowsp_work *work, uint64_t capacity,
                                         ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    pwsp_plan_range range;
    uint64_t work_count;
    ptowsp_status status =
        pwsp_range_prepare(batch, config, chunk, first, count, &range, &work_count, info);
    if (status == PTOWSP_OK) {
        status = pwsp_work_check(work, capacity, first_work_id, work_count, info);
        info->is_over = status == PTOWSP_OK && work_count > range.config.max_work_units;
    }
    if (status == PTOWSP_OK && work_count > 0) {
        PTOWSP_ASSERT(work && work_count <= capacity);
        pwsp_emit_desc desc = pwsp_range_emit_desc(&range, chunk);
        pwsp_emit(&desc, range.first, range.end, (uint32_t)first_work_id, work, work_count);
    }
    return status;
}

ptowsp_status ptowsp_plan_generate(const ptowsp_batch *batch, const ptowsp_plan_config *config,
                                   uint32_t chunk, PTOWSP_GM ptowsp_work *work, uint64_t capacity,
                                   ptowsp_plan_info *out_info) {
    return ptowsp_plan_generate_range(batch, config, chunk, 0, pwsp_sequence_count(batch), 0, work,
                                      capacity, out_info);
}

// Below this many descriptors (some 50 us) waking lanes costs more than they save.
#define PWSP_GENERATE_PARALLEL_MIN 50000

// Blocks of sequences that lanes take; more than lanes, as sequences differ in length.
#define PWSP_GENERATE_BLOCK_MAX 256

typedef struct pwsp_generate_job {
    pwsp_emit_desc desc;
    uint32_t sequence_count;
    uint32_t block_size;                                // sequences in a block
    uint64_t block_start[PWSP_GENERATE_BLOCK_MAX + 1];  // work before each block, and all of it
    PTOWSP_GM ptowsp_work *work;
} pwsp_generate_job;

static void pwsp_generate_blocks(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    const pwsp_generate_job *job = (const pwsp_generate_job *)user;
    (void)lane;
    for (uint64_t block = begin; block < end; block++) {
        uint64_t first = block * job->block_size;
        uint64_t last = pwsp_min_u64(first + job->block_size, job->sequence_count);
        uint64_t start = job->block_start[block];
        PTOWSP_ASSERT(first < last && start <= job->block_start[block + 1]);
        pwsp_emit(&job->desc, (uint32_t)first, (uint32_t)last, (uint32_t)start, job->work + start,
                  job->block_start[block + 1] - start);
    }
}

// Writes the work of a checked batch on all lanes.
static ptowsp_status pwsp_generate_on_lanes(ptowsp_context *context, const pwsp_plan_range *range,
                                            uint32_t chunk, PTOWSP_GM ptowsp_work *work,
                                            uint64_t work_count) {
    (void)work_count;  // is asserted only
    PTOWSP_ASSERT(range->first == 0);
    pwsp_generate_job job;
    job.desc = pwsp_range_emit_desc(range, chunk);
    job.work = work;
    job.sequence_count = range->end;
    job.block_size = (uint32_t)pwsp_ceil_div_u64(job.sequence_count, PWSP_GENERATE_BLOCK_MAX);
    uint64_t block_count = pwsp_ceil_div_u64(job.sequence_count, job.block_size);
    PTOWSP_ASSERT(0 < block_count && block_count <= PWSP_GENERATE_BLOCK_MAX);
    job.block_start[0] = 0;
    for (uint64_t block = 0; block < block_count; block++) {
        const PTOWSP_GM int32_t *lengths = job.desc.lengths + block * job.block_size;
        uint64_t count = pwsp_min_u64(job.block_size, job.sequence_count - block * job.block_size);
        uint64_t positive_count = pwsp_lengths_scan(lengths, count).positive_count;
        uint64_t units = pwsp_lengths_units(lengths, count, positive_count, chunk);
        job.block_start[block + 1] = job.block_start[block] + units * job.desc.kv_head_count;
    }
    PTOWSP_ASSERT(job.block_start[block_count] == work_count);  // as counted at once
    return pwsp_context_run(context, block_count, 1, pwsp_generate_blocks, &job);
}

PWSP_INTERNAL ptowsp_status pwsp_plan_report(ptowsp_context *context, ptowsp_status status,
                                             const ptowsp_plan_info *info) {
    char line[PWSP_ERROR_TEXT_MAX];
    ptowsp_output_buffer buffer = {line, sizeof line, 0};
    ptowsp_plan_explain(info, ptowsp_output_to_buffer(&buffer));
    return pwsp_fail(context, status, info->index, "%s", line);
}

// ptowsp_plan_generate_parallel for a context that has been entered.
static ptowsp_status pwsp_generate_entered(ptowsp_context *context, const ptowsp_batch *batch,
                                           const ptowsp_plan_config *config, uint32_t chunk,
                                           PTOWSP_GM ptowsp_work *work, uint64_t capacity,
                                           ptowsp_plan_info *info) {
    pwsp_plan_range range;
    uint64_t work_count;
    ptowsp_status status = pwsp_range_prepare(batch, config, chunk, 0, pwsp_sequence_count(batch),
                                              &range, &work_count, info);
    if (status == PTOWSP_OK) {
        status = pwsp_work_check(work, capacity, 0, work_count, info);
        info->is_over = status == PTOWSP_OK && work_count > range.config.max_work_units;
    }
    if (status != PTOWSP_OK) {
        pwsp_plan_report(context, status, info);
        return status;
    }
    if (pwsp_pool_lane_count(context->pool) > 1 && work_count >= PWSP_GENERATE_PARALLEL_MIN) {
        return pwsp_generate_on_lanes(context, &range, chunk, work, work_count);
    }
    if (work_count > 0) {
        pwsp_emit_desc desc = pwsp_range_emit_desc(&range, chunk);
        pwsp_emit(&desc, 0, range.end, 0, work, work_count);
    }
    return PTOWSP_OK;
}

ptowsp_status ptowsp_plan_generate_parallel(ptowsp_context *context, const ptowsp_batch *batch,
                                            const ptowsp_plan_config *config, uint32_t chunk,
                                            PTOWSP_GM ptowsp_work *work, uint64_t capacity,
                                            ptowsp_plan_info *out_info) {
    PTOWSP_ASSERT(context);
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    if (!pwsp_context_enter(context)) {
        return pwsp_fail_busy(context);
    }
    ptowsp_status status =
        pwsp_generate_entered(context, batch, config, chunk, work, capacity, info);
    pwsp_context_leave(context);
    return status;
}

// -- bounds ---------------------------------------------------------------------------------------

// The most units, of one head, that any batch within the limits has under a chunk. With count
// sequences of together total tokens, that is at most (total + count * (chunk - 1)) / chunk.
static uint64_t pwsp_units_bound(const ptowsp_plan_limits *limits, int32_t length_max,
                                 uint64_t chunk) {
    PTOWSP_ASSERT(length_max >= 0 && chunk > 0);
    uint64_t count = limits->sequence_count_max;
    uint64_t units = count * pwsp_ceil_div_u64((uint64_t)length_max, chunk);  // below 2^63
    if (limits->token_count_max > 0) {
        uint64_t total = pwsp_min_u64(limits->token_count_max, count * (uint64_t)length_max);
        count = pwsp_min_u64(count, total);
        units = pwsp_min_u64(units, total / chunk + (total % chunk + count * (chunk - 1)) / chunk);
    }
    return units;
}

ptowsp_status ptowsp_plan_work_bound(const ptowsp_plan_config *config,
                                     const ptowsp_plan_limits *limits, uint64_t *out_count,
                                     ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    if (!out_count) {
        return PWSP_PLAN_FAIL(info, OUT_NULL, PWSP_OUT_ONLY, 0);
    }
    *out_count = 0;
    ptowsp_plan_config checked;
    ptowsp_status status = pwsp_config_check(config, &checked, info);
    if (status == PTOWSP_OK) {
        status = pwsp_config_align(&checked, info);
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    if (!limits) {
        return PWSP_PLAN_FAIL(info, LIMITS_NULL, 0, 0);
    }
    if (limits->kv_head_count == 0) {
        return PWSP_PLAN_FAIL(info, HEADS_ZERO, 0, 0);
    }
    if (limits->length_max < 0) {
        return PWSP_PLAN_FAIL(info, LIMITS_LENGTH, limits->length_max, 0);
    }
    int32_t covered_max = 0;  // no length beyond the tiers gets planned
    for (uint32_t i = 0; i < checked.tier_count; i++) {
        int32_t tier_max = checked.tiers[i].length_max;
        covered_max = tier_max > covered_max ? tier_max : covered_max;
    }
    int32_t length_max = limits->length_max < covered_max ? limits->length_max : covered_max;
    // The chunk is chunk_max, or its units number at most max_work_units; it is at least chunk_min.
    uint64_t units = pwsp_max_u64(checked.max_work_units / limits->kv_head_count,
                                  pwsp_units_bound(limits, length_max, checked.chunk_max));
    units = pwsp_min_u64(units, pwsp_units_bound(limits, length_max, checked.chunk_min));
    uint64_t count;
    if (!pwsp_mul_fits(units, limits->kv_head_count, &count) || count > INT64_MAX) {
        return PWSP_PLAN_FAIL(info, TOTAL_OVERFLOW, 0, 0);
    }
    *out_count = count;
    return PTOWSP_OK;
}

bool ptowsp_plan_is_invariant(const ptowsp_plan_config *config) {
    ptowsp_plan_config checked;
    ptowsp_plan_info spare;
    return pwsp_config_check(config, &checked, &spare) == PTOWSP_OK &&
           pwsp_config_align(&checked, &spare) == PTOWSP_OK &&
           checked.chunks == PTOWSP_CHUNKS_FIXED && checked.chunk_min == checked.chunk_max;
}

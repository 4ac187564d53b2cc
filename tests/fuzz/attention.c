// A libFuzzer target: any bytes are a configuration and a batch, which is planned and proved, or
// refused with nothing written. Every array is a block of exactly its size, between its sanitizer's
// guards. The plan is then taken on by a step, and damaged, which the check has to find.

#include "attention_judge.h"
#include "bytes.h"
#include "test.h"

#define SEQUENCE_MAX 40
#define UNIT_MAX     2000

static double take_cost(bytes *in) {
    const double some[] = {0, 1, 1.0 / 64, 0x1p30, 0x1p15, 3.7, 1e-300, 1e300, -1, INFINITY, NAN};
    uint32_t kind = (uint32_t)take(in, 1);
    return kind < 240 ? some[kind % (kind < 200 ? 6 : 11)] : (double)take(in, 4) * 0x1p-20;
}

typedef struct step {
    ptowsp_attention_config config;
    ptowsp_attention_batch batch;
    uint32_t *speeds;
    ptowsp_tier *tiers;
    int32_t *kv, *queries;
} step;

static void step_make(step *s, bytes *in) {
    memset(s, 0, sizeof *s);
    uint32_t flags = (uint32_t)take(in, 1);
    ptowsp_attention_config *c = &s->config;
    c->kv_head_count = take_number(in);
    c->group = take_number(in);
    c->lane_count = take_number(in);
    c->lane_count = flags & 128 ? c->lane_count : c->lane_count % 300;
    c->mode = flags & 1 ? PTOWSP_ATTENTION_INVARIANT : PTOWSP_ATTENTION_BALANCED;
    c->is_causal = (flags & 2) != 0;
    c->window = take_number(in);
    c->page_size = take_number(in);
    c->tile_rows = take_number(in);
    c->piece_min = take_number(in);
    c->chunk = flags & 4                                   ? take_number(in)
               : c->page_size * (uint64_t)64 <= UINT32_MAX ? c->page_size * 64
                                                           : 0;
    if (flags & 8) {
        ptowsp_attention_cost cost = {take_cost(in), take_cost(in), take_cost(in), take_cost(in)};
        c->cost = cost;
    }
    if (flags & 16) {
        uint32_t lanes = c->lane_count < 65537 ? c->lane_count : 65537;
        s->speeds = (uint32_t *)test_alloc(lanes, sizeof *s->speeds);
        uint32_t begun = take_number(in), added = take_number(in);
        for (uint32_t i = 0; i < lanes; i++) {
            s->speeds[i] = begun + i * added;
        }
        c->lane_speeds = s->speeds;
    }
    if (flags & 32) {
        c->tier_count = take_below(in, 4);
        s->tiers = (ptowsp_tier *)test_alloc(c->tier_count, sizeof *s->tiers);
        for (uint32_t i = 0; i < c->tier_count; i++) {
            s->tiers[i].id = (uint8_t)take(in, 1);
            s->tiers[i].length_min = (int32_t)take_number(in);
            s->tiers[i].length_max = (int32_t)take_number(in);
        }
        c->tiers = s->tiers;
    }
    uint32_t count = take_below(in, SEQUENCE_MAX);
    s->kv = (int32_t *)test_alloc(count, sizeof *s->kv);
    s->queries = flags & 64 ? (int32_t *)test_alloc(count, sizeof *s->queries) : NULL;
    for (uint32_t i = 0; i < count; i++) {
        s->kv[i] = (int32_t)take_number(in);
        if (s->queries) {
            s->queries[i] = (int32_t)take_number(in);
            s->queries[i] %= 300;  // many tiles take long
        }
    }
    s->batch.kv_lengths = flags & 128 && take(in, 1) == 0 ? NULL : s->kv;
    s->batch.query_lengths = s->queries;
    s->batch.sequence_count = count;
}

// Arrays of exactly these sizes, filled with rubbish.
static void *rubbish(size_t size) {
    return memset(test_alloc(size, 1), 0xa5, size);
}

static ptowsp_attention_plan plan_make(const ptowsp_attention_sizes *sizes) {
    ptowsp_attention_plan plan;
    memset(&plan, 0xa5, sizeof plan);
    plan.units = (ptowsp_work *)rubbish(sizes->unit_count * sizeof(ptowsp_work));
    plan.merges = (ptowsp_work *)rubbish(sizes->merge_count * sizeof(ptowsp_work));
    plan.unit_begin = (uint32_t *)rubbish(((size_t)sizes->lane_count + 1) * sizeof(uint32_t));
    plan.merge_begin = (uint32_t *)rubbish(((size_t)sizes->lane_count + 1) * sizeof(uint32_t));
    plan.lane_costs = (double *)rubbish(sizes->lane_count * sizeof(double));
    plan.unit_capacity = (uint32_t)sizes->unit_count;
    plan.merge_capacity = (uint32_t)sizes->merge_count;
    plan.slot_capacity = (uint32_t)sizes->slot_count;
    return plan;
}

static void require_good(const step *s, const ptowsp_attention_plan *plan) {
    reference_verdict verdict = reference_judge(&s->batch, &s->config, plan, NULL);
    if (verdict.grade != REFERENCE_GOOD) {
        fprintf(stderr, "%s\n", verdict.text);
        abort();
    }
    REQUIRE(ptowsp_attention_check(&s->batch, &s->config, plan, NULL) == PTOWSP_OK);
}

// Grows sequences, ends some, and plans into the same arrays: nothing of the earlier plan remains.
static void require_next(step *s, bytes *in, ptowsp_attention_plan *plan) {
    for (uint32_t i = 0; i < s->batch.sequence_count; i++) {
        uint32_t more = (uint32_t)take(in, 1);
        if (s->kv[i] > 0 && s->kv[i] < 0x40000000) {
            s->kv[i] = more == 255 ? 0 : s->kv[i] + (int32_t)more % 4;
        }
        if (s->queries && s->kv[i] == 0) {
            s->queries[i] = 0;
        }
    }
    take(in, 1);
    ptowsp_attention_plan before = *plan;
    ptowsp_status status = ptowsp_attention_generate(&s->batch, &s->config, plan, NULL);
    if (status == PTOWSP_OK) {
        require_good(s, plan);
        return;
    }
    REQUIRE(status == PTOWSP_BUFFER_OVERFLOW || status == PTOWSP_LIMIT_EXCEEDED ||
            (status == PTOWSP_UNSUPPORTED_SIZE && s->tiers));
    REQUIRE(memcmp(plan, &before, sizeof before) == 0);
}

// Another word somewhere: found, if the reference calls it wrong; never a fault of memory.
static void require_found(const step *s, bytes *in, ptowsp_attention_plan *plan) {
    uint32_t where = (uint32_t)take(in, 1), at = (uint32_t)take(in, 2), value = take_number(in);
    uint32_t words = (uint32_t)(sizeof(ptowsp_work) / sizeof(uint32_t));
    switch (where % 8) {
    case 0: plan->unit_begin[at % (plan->lane_count + 1)] = value; break;
    case 1: plan->merge_begin[at % (plan->lane_count + 1)] = value; break;
    case 2: plan->unit_count = value; break;
    case 3: plan->merge_count = value; break;
    case 4: plan->slot_count = value; break;
    case 5:
        if (plan->merge_capacity > 0) {
            ptowsp_work *merge = &plan->merges[at % plan->merge_capacity];
            memcpy((unsigned char *)merge + value / 256 % words * 4, &at, sizeof at);
        }
        break;
    default:
        if (plan->unit_capacity > 0) {
            ptowsp_work *unit = &plan->units[at % plan->unit_capacity];
            memcpy((unsigned char *)unit + where / 8 % words * 4, &value, sizeof value);
        }
        break;
    }
    ptowsp_status status = ptowsp_attention_check(&s->batch, &s->config, plan, NULL);
    reference_verdict verdict = reference_judge(&s->batch, &s->config, plan, NULL);
    if (verdict.grade == REFERENCE_WRONG && status == PTOWSP_OK) {
        fprintf(stderr, "not found: %s\n", verdict.text);
        abort();
    }
}

static void require_bound(const step *s, const ptowsp_attention_sizes *sizes, bool is_planned) {
    const ptowsp_attention_batch given = {s->kv, s->queries, s->batch.sequence_count};
    const ptowsp_attention_limits limits = reference_limits(&given);
    ptowsp_attention_sizes bound;
    ptowsp_status status = ptowsp_attention_bound(&s->config, &limits, &bound, NULL);
    REQUIRE(status == PTOWSP_OK || (bound.unit_count == 0 && bound.block_bytes == 0));
    REQUIRE(!is_planned || status != PTOWSP_OK || reference_is_within(sizes, &bound));
    REQUIRE(!is_planned || status == PTOWSP_OK || status == PTOWSP_LIMIT_EXCEEDED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bytes in = {data, size};
    step s;
    step_make(&s, &in);
    ptowsp_attention_sizes sizes;
    ptowsp_plan_info info;
    ptowsp_status status = ptowsp_attention_size(&s.batch, &s.config, &sizes, &info);
    char text[300];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    ptowsp_plan_explain(&info, ptowsp_output_to_buffer(&buffer));
    REQUIRE((status == PTOWSP_OK) == (info.fault == PTOWSP_FAULT_NONE));
    require_bound(&s, &sizes, status == PTOWSP_OK);
    if (status != PTOWSP_OK) {
        const ptowsp_attention_sizes none = {0, 0, 0, 0, 0, 0};
        ptowsp_attention_plan plan = plan_make(&none), before = plan;
        REQUIRE(ptowsp_attention_generate(&s.batch, &s.config, &plan, NULL) == status);
        REQUIRE(memcmp(&plan, &before, sizeof plan) == 0);
    } else if (sizes.unit_count <= UNIT_MAX && sizes.lane_count <= 2000) {
        ptowsp_attention_plan plan = plan_make(&sizes);
        REQUIRE(ptowsp_attention_generate(&s.batch, &s.config, &plan, NULL) == PTOWSP_OK);
        REQUIRE(plan.unit_count == sizes.unit_count && plan.merge_count == sizes.merge_count);
        REQUIRE(plan.slot_count == sizes.slot_count && plan.slot_rows == sizes.slot_rows);
        require_good(&s, &plan);
        require_next(&s, &in, &plan);
        require_found(&s, &in, &plan);
    }
    test_release();
    return 0;
}

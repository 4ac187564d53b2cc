// Jobs in which a number is wrong: ptowsp_attend_check refuses them with a text, or they are right as they
// are, by the reference, which reads the same numbers, for any features together. Strides, page tables and the rows of queries are
// taken as they are, and not changed here.

#include "attend_levels.h"

#include <stdio.h>

typedef struct number {
    void *at;
    size_t size;
} number;

enum { NUMBERS_MAX = 200 };

#define NUMBER(field)                                                                              \
    { &(field), sizeof(field) }

// The numbers of a job that are checked. Sizes of arrays cannot be.
static uint32_t numbers_of(scene *c, ptowsp_attend_job *job, ptowsp_attention_plan *plan,
                           number *out) {
    ptowsp_attention_config *config = &c->s.config;
    const number fixed[] = {NUMBER(c->kv.value_dim),
                            NUMBER(config->kv_head_count),
                            NUMBER(config->group),
                            NUMBER(config->lane_count),
                            NUMBER(config->mode),
                            NUMBER(config->window),
                            NUMBER(config->page_size),
                            NUMBER(config->tile_rows),
                            NUMBER(config->chunk),
                            NUMBER(config->grain),
                            NUMBER(config->query_head_count),
                            NUMBER(c->s.positions.sequence_count),
                            NUMBER(plan->unit_count),
                            NUMBER(plan->merge_count),
                            NUMBER(plan->slot_count),
                            NUMBER(plan->tile_count),
                            NUMBER(plan->lane_count),
                            NUMBER(plan->tile_tokens),
                            NUMBER(plan->group),
                            NUMBER(plan->slot_rows),
                            NUMBER(job->memory.scratch.dim)};
    uint32_t count = sizeof fixed / sizeof *fixed;
    memcpy(out, fixed, sizeof fixed);
    for (uint32_t i = 0; i < c->s.batch.sequence_count; i++) {
        positions_sample *s = &c->s;
        const number of[] = {
            NUMBER(s->kv[i]),       NUMBER(s->query_first[i]), NUMBER(s->query_stride[i]),
            NUMBER(s->kv_first[i]), NUMBER(s->kv_stride[i]),   NUMBER(s->before[i]),
            NUMBER(s->after[i]),    NUMBER(s->sinks[i]),       NUMBER(c->mask_starts[i])};
        memcpy(out + count, of, sizeof of);
        count += c->has_mask_starts ? 9 : 8;  // then without starts of masks
    }
    for (uint32_t i = 0; i < plan->lane_count; i++) {
        const number of[] = {NUMBER(plan->unit_begin[i + 1]), NUMBER(plan->merge_begin[i + 1])};
        memcpy(out + count, of, sizeof of);
        count += 2;
    }
    assert_true(count < NUMBERS_MAX);
    return count;
}

// Changes a number to another.
static void change(const number *n, uint64_t *state) {
    static const uint32_t values[] = {0, 1, 7, 1000, INT32_MAX, UINT32_C(1) << 31, UINT32_MAX};
    uint8_t u8 = 0;
    uint16_t u16 = 0;
    uint32_t u32 = 0;
    memcpy(&u8, n->at, 1);
    memcpy(&u16, n->at, n->size < 2 ? 1 : 2);
    memcpy(&u32, n->at, n->size < 4 ? 1 : 4);
    const uint32_t old = n->size == 1 ? u8 : n->size == 2 ? u16 : u32;
    const int64_t how = test_random_in(state, 0, 8);
    u32 = how < 7 ? values[how] : how == 7 ? old + 1 : old - 1;
    u16 = (uint16_t)u32;
    u8 = (uint8_t)u32;
    memcpy(n->at, n->size == 1 ? (void *)&u8 : n->size == 2 ? (void *)&u16 : (void *)&u32, n->size);
}

// Changes a word of a unit or a merge.
static void change_work(ptowsp_attention_plan *plan, uint64_t *state) {
    const uint32_t all = plan->unit_count + plan->merge_count;
    if (all > 0) {
        const uint32_t i = (uint32_t)test_random_in(state, 0, all - 1);
        ptowsp_work *work =
            i < plan->unit_count ? &plan->units[i] : &plan->merges[i - plan->unit_count];
        number fields[] = {NUMBER(work->work_id),   NUMBER(work->flags),
                           NUMBER(work->reserved),  NUMBER(work->params[0]),
                           NUMBER(work->params[1]), NUMBER(work->params[2]),
                           NUMBER(work->params[3]), NUMBER(work->tier)};
        change(&fields[test_random_in(state, 0, 7)], state);
    }
}

static void check_text(const ptowsp_plan_info *info) {
    char text[200];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    ptowsp_plan_explain(info, ptowsp_output_to_buffer(&buffer));
    assert_true(strncmp(text, "plan: ", 6) == 0 || strncmp(text, "attend: ", 8) == 0);
    assert_true(info->fault != PTOWSP_FAULT_NONE && buffer.length < sizeof text);
    assert_null(strchr(text, '%'));
    assert_null(strchr(text, '{'));
}

TEST(attend_faults__a_number_that_is_wrong_is_refused_with_a_text_or_harmless) {
    uint64_t state = test_seed();
    uint32_t refused = 0, harmless = 0;
    for (uint32_t round = 0; TEST_ROUNDS(round, 1500); round++) {
        const levels_of at = small_levels(&state);
        scene *c = levels_make(&at, false, &state);
        made_job made;
        make_job(c, &c->step, false, &made);
        number numbers[NUMBERS_MAX];
        const uint32_t count = numbers_of(c, &made.job, &made.plan, numbers);
        if (test_random_in(&state, 0, 3) == 0) {
            change_work(&made.plan, &state);
        } else {
            change(&numbers[test_random_in(&state, 0, count - 1)], &state);
        }
        ptowsp_plan_info info;
        const ptowsp_status status = ptowsp_attend_check(&made.job, &info);
        if (status == PTOWSP_OK) {
            assert_ok(ptowsp_attend_run_worker(&made.job, 0, 1, &info));
            check_values(c);
            harmless++;
        } else {
            check_text(&info);
            refused++;
        }
        test_release();
    }
    printf("%u refused, %u harmless\n", refused, harmless);
    assert_met(refused > 100 && harmless > 100);
}

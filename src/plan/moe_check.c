// The proof of a MoE plan, in one walk over the tokens of experts and the units beside them; and MoE
// plans as text.

#include "attention.h"
#include "moe.h"

#include "../base/text.h"

static ptowsp_status pwsp_moe_unit_fail(ptowsp_plan_info *info, uint64_t unit, uint64_t value,
                                        uint64_t limit) {
    return pwsp_plan_fail(info, PTOWSP_FAULT_UNIT_WRONG, unit, pwsp_info_value(value),
                          pwsp_info_value(limit));
}

// Checks the counts and ranges of a plan.
static ptowsp_status pwsp_moe_numbers_check(const pwsp_moe_units *u, const ptowsp_moe_plan *plan,
                                            ptowsp_plan_info *info) {
    if (plan->lane_count != u->lane_count) {
        return PWSP_PLAN_FAIL(info, COUNT_WRONG, plan->lane_count, u->lane_count);
    }
    if (plan->column_parts != u->parts) {
        return PWSP_PLAN_FAIL(info, COUNT_WRONG, plan->column_parts, u->parts);
    }
    const uint32_t at_most[2][2] = {{plan->lane_count, pwsp_lane_capacity(plan->lane_capacity)},
                                    {plan->unit_count, plan->unit_capacity}};
    for (uint32_t i = 0; i < 2; i++) {
        if (at_most[i][0] > at_most[i][1]) {
            return PWSP_PLAN_FAIL(info, COUNT_WRONG, at_most[i][0], at_most[i][1]);
        }
    }
    if (plan->unit_begin[0] != 0) {
        return PWSP_PLAN_FAIL(info, COUNT_WRONG, plan->unit_begin[0], 0);
    }
    for (uint32_t lane = 0; lane < plan->lane_count; lane++) {
        const uint32_t end = plan->unit_begin[lane + 1];
        const bool is_wrong =
            lane + 1 == plan->lane_count ? end != plan->unit_count : end > plan->unit_count;
        if (is_wrong || end < plan->unit_begin[lane]) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_LANE_RANGE, lane, end, plan->unit_count);
        }
    }
    return PTOWSP_OK;
}

// Checks the units of a part of an expert from *next on.
static ptowsp_status pwsp_moe_part_check(const pwsp_moe_units *u, const ptowsp_moe_plan *plan,
                                         uint32_t batch, uint32_t expert, uint32_t part,
                                         uint32_t *next, ptowsp_plan_info *info) {
    const uint64_t count = pwsp_moe_count_at(u, batch, expert);
    const uint64_t base = pwsp_moe_base_at(u, batch, expert);
    for (uint64_t at = 0; at < count; ++*next) {
        const uint32_t i = *next;
        if (i == plan->unit_count) {
            return pwsp_moe_unit_fail(info, i, 0, count - at);
        }
        const PTOWSP_GM ptowsp_work *unit = &plan->units[i];
        const uint64_t tokens = unit->params[3], left = count - at;
        const uint64_t most = pwsp_min_u64(left, u->unit_tokens);
        if (tokens == 0 || tokens > most) {
            return pwsp_moe_unit_fail(info, i, tokens, most);
        }
        if (tokens < left && (at + tokens) % u->block_rows != 0) {
            return pwsp_moe_unit_fail(info, i, tokens, tokens - (at + tokens) % u->block_rows);
        }
        const uint32_t flags =
            (at == 0 ? PTOWSP_WORK_FIRST : 0) | (tokens == left ? PTOWSP_WORK_LAST : 0);
        const uint64_t pairs[7][2] = {
            {unit->params[0], batch}, {unit->params[1], expert}, {unit->params[2], base + at},
            {unit->flags, flags},     {unit->reserved, part},    {unit->tier, 0},
            {unit->work_id, i}};
        for (uint32_t k = 0; k < 7; k++) {
            if (pairs[k][0] != pairs[k][1]) {
                return pwsp_moe_unit_fail(info, i, pairs[k][0], pairs[k][1]);
            }
        }
        at += tokens;
    }
    return PTOWSP_OK;
}

// Whether a unit is of another expert or part than the unit before it.
static bool pwsp_moe_is_new(const ptowsp_moe_plan *plan, uint32_t i) {
    const PTOWSP_GM ptowsp_work *unit = &plan->units[i], *before = i > 0 ? unit - 1 : NULL;
    return !before || unit->params[1] != before->params[1] || unit->reserved != before->reserved;
}

static bool pwsp_moe_is_equal(double a, double b) {
    return a >= b && a <= b;
}

// Checks the costs of lanes, summed up again from units that are right.
static ptowsp_status pwsp_moe_costs_check(const pwsp_moe_units *u, const ptowsp_moe_plan *plan,
                                          ptowsp_plan_info *info) {
    uint64_t most = 0, sum = 0;
    for (uint32_t lane = 0; lane < plan->lane_count; lane++) {
        uint64_t cost = 0;
        for (uint32_t i = plan->unit_begin[lane]; i < plan->unit_begin[lane + 1]; i++) {
            const PTOWSP_GM ptowsp_work *unit = &plan->units[i];
            const bool has_expert = i > plan->unit_begin[lane] && !pwsp_moe_is_new(plan, i);
            cost += u->unit + unit->params[3] * u->token + (has_expert ? 0 : u->expert);
        }
        if (plan->lane_costs &&
            !pwsp_moe_is_equal(plan->lane_costs[lane], (double)cost * u->grid)) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_COST_WRONG, lane, 0, 0);
        }
        most = pwsp_max_u64(most, cost);
        sum += cost;
    }
    const double mean = (double)sum * u->grid / u->lane_count;
    return pwsp_moe_is_equal(plan->cost_max, (double)most * u->grid) &&
                   pwsp_moe_is_equal(plan->cost_mean, mean)
               ? PTOWSP_OK
               : pwsp_plan_fail(info, PTOWSP_FAULT_COST_WRONG, plan->lane_count, 0, 0);
}

ptowsp_status ptowsp_moe_check(const ptowsp_moe_batch *batch, const ptowsp_moe_config *config,
                               const ptowsp_moe_plan *plan, ptowsp_plan_info *out_info) {
    ptowsp_plan_info spare, *info = pwsp_info_start(out_info, &spare);
    const uint32_t most = pwsp_moe_parts_max(config);
    const bool is_inside = plan && plan->column_parts > 0 && plan->column_parts <= most;
    pwsp_moe_units u;
    ptowsp_status status =
        pwsp_moe_units_start(batch, config, is_inside ? plan->column_parts : most, &u, info);
    if (status == PTOWSP_OK) {
        status = pwsp_moe_arrays_check(plan, info);
    }
    if (status == PTOWSP_OK) {
        status = pwsp_moe_numbers_check(&u, plan, info);
    }
    uint32_t next = 0;
    for (uint32_t e = 0; e < u.expert_count && status == PTOWSP_OK; e++) {
        for (uint32_t part = 0; part < u.parts && status == PTOWSP_OK; part++) {
            for (uint32_t b = 0; b < u.batch_count && status == PTOWSP_OK; b++) {
                status = pwsp_moe_part_check(&u, plan, b, e, part, &next, info);
            }
        }
    }
    if (status != PTOWSP_OK) {
        return status;
    }
    if (next < plan->unit_count) {
        return pwsp_plan_fail(info, PTOWSP_FAULT_UNIT_EXTRA, next, 0, 0);
    }
    for (uint32_t i = next; i < plan->unit_capacity; i++) {
        if (ptowsp_work_is_valid(&plan->units[i]) || plan->units[i].params[3] != 0) {
            return pwsp_plan_fail(info, PTOWSP_FAULT_UNIT_EXTRA, i, 0, 0);
        }
    }
    return pwsp_moe_costs_check(&u, plan, info);
}

// Writes "1 expert", "2 experts".
static void pwsp_print_count(uint64_t count, const char *noun, ptowsp_output output) {
    pwsp_text_format(output, "%llu %s%s", (unsigned long long)count, noun, count == 1 ? "" : "s");
}

void ptowsp_moe_print(const ptowsp_moe_plan *plan, ptowsp_output output) {
    if (!plan || !plan->unit_begin || (plan->unit_count > 0 && !plan->units)) {
        return;
    }
    const uint32_t parts = plan->column_parts;
    uint32_t experts = 0, pieces = 0, reads = 0;
    uint64_t pairs = 0;
    for (uint32_t lane = 0, i = 0; lane < plan->lane_count; lane++) {
        for (bool is_first = true; i < plan->unit_begin[lane + 1]; i++, is_first = false) {
            const PTOWSP_GM ptowsp_work *unit = &plan->units[i];
            const bool is_new = pwsp_moe_is_new(plan, i);
            experts += i == 0 || unit->params[1] != plan->units[i - 1].params[1];
            pieces += is_new;
            reads += is_new || is_first;
            pairs += unit->reserved == 0 ? unit->params[3] : 0;
        }
    }
    const uint64_t counts[4] = {pairs, experts, plan->unit_count, plan->lane_count};
    static const char before[4][12] = {"MoE plan: ", " of ", " in ", ", on "};
    static const char nouns[4][8] = {"pair", "expert", "unit", "lane"};
    for (uint32_t i = 0; i < 4; i++) {
        pwsp_text_put(output, before[i]);
        pwsp_print_count(counts[i], nouns[i], output);
    }
    pwsp_text_put(output, "\n");
    if (parts > 1) {
        pwsp_text_format(output, "columns: those of an expert in %u parts\n", (unsigned)parts);
    }
    pwsp_text_put(output, "splits: lanes read ");
    pwsp_print_count(reads - pieces, parts > 1 ? "part" : "expert", output);
    pwsp_text_put(output, " more than there are\n");
    const ptowsp_attention_plan units = ptowsp_moe_plan_units(plan);
    pwsp_print_costs(&units, output);
}

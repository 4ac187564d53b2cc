// The traffic of a tile kernel's task with global memory: how its time depends on bandwidth.
//
// The time of a list of instructions is a maximum of sums (flags and pipes), so as a function of the time
// that a byte takes it is convex and made of straight lines. The task is counted four times: with each
// path as fast as it is, and at a half, a quarter and an eighth of the fastest path that it uses. Between
// these points lie lines:
//
//      cycles |            ./  slope m: transfers alone decide
//             |         _/
//             |    __--     slopes s1 <= s2 <= s3 <= m
//             |----
//             +--|--|-----|------------|---
//                1  2     4            8       fastest path / share
//
// Such a curve is a chain of parts (data/demand.h). A part whose bytes take the fastest path t cycles,
// beside c cycles of work, takes max(c, t * k), and bends at k = c / t:
//
//      t = s1 at k = 1 (transfers that nothing hides), s2 - s1 at 2, s3 - s2 at 4, m - s3 at 8, and
//      work without transfers for the rest
//
// So the chain takes the counted cycles at each of the four shares, and no less between them.

#include "compiled.h"

#define PWSP_SHARES 4  // all, 1/2, 1/4, 1/8 of the fastest path

// Cycles at each share, and the traffic. False with core->text.
static bool pwsp_demand_count(pwsp_tile_core *core, const pwsp_tile_code *code,
                              const ptowsp_task *task, uint64_t cycles[PWSP_SHARES],
                              ptoisa_traffic *out_traffic) {
    bool is_good = true;
    for (uint32_t i = 0; i < PWSP_SHARES && is_good; i++) {
        ptoisa_traffic traffic = {0, 0, i ? pwsp_max_u64(out_traffic->peak >> i, 1) : 0};
        core->traffic = &traffic;
        is_good = pwsp_tile_core_run(core, code, task, true, &cycles[i]);
        *out_traffic = i == 0 ? traffic : *out_traffic;
    }
    core->traffic = NULL;
    return is_good;
}

// Cycles that the fastest path takes for the bytes that bend at 1, 2, 4 and 8; of all it takes `moving`.
static void pwsp_demand_bends(uint64_t cycles[PWSP_SHARES], uint64_t moving,
                              uint64_t out_bends[PWSP_SHARES]) {
    uint64_t slopes[PWSP_SHARES] = {0, 0, 0, moving};
    for (uint32_t i = 1; i < PWSP_SHARES; i++) {
        // transfers of two pipes divide the share of the core
        cycles[i] = pwsp_max_u64(pwsp_max_u64(cycles[i], cycles[i - 1]), moving << i);
        slopes[i - 1] = (cycles[i] - cycles[i - 1]) >> (i - 1);
    }
    for (uint32_t i = PWSP_SHARES - 1; i > 0; i--) {
        slopes[i - 1] = pwsp_min_u64(slopes[i - 1], slopes[i]);
    }
    for (uint32_t i = 0; i < PWSP_SHARES; i++) {
        out_bends[i] = slopes[i] - (i ? slopes[i - 1] : 0);
    }
}

// Cuts a task, whose bytes take the fastest path `moving` cycles, into parts.
static void pwsp_demand_cut(uint64_t cycles[PWSP_SHARES], uint64_t moving, pwsp_demand *demand) {
    const uint64_t least = pwsp_min_u64(moving, cycles[0]);  // less if two pipes move at once
    uint64_t bends[PWSP_SHARES], left = cycles[0], bytes = demand->bytes, rest = moving;
    pwsp_demand_bends(cycles, moving, bends);
    for (uint32_t i = 0; i < PWSP_SHARES; i++) {
        rest -= bends[i];
        // rounding may leave less work than the last bends ask for, but never less than transfers
        const uint64_t most = left - pwsp_mul_div_u64(rest, least, moving);
        const uint64_t work = pwsp_min_u64(bends[i] << i, most);
        const uint64_t share = rest ? pwsp_mul_div_u64(demand->bytes, bends[i], moving) : bytes;
        if (bends[i]) {
            const pwsp_demand_part part = {work, share};
            demand->parts[demand->part_count++] = part;
            left -= work;
            bytes -= share;
        }
    }
    if (left) {
        const pwsp_demand_part part = {left, 0};
        demand->parts[demand->part_count++] = part;
    }
}

PWSP_INTERNAL bool pwsp_tile_core_demand(pwsp_tile_core *core, const pwsp_tile_code *code,
                                         const ptowsp_task *task, pwsp_demand *out_demand) {
    const ptowsp_cost *const cost = core->cost;
    const bool is_sum = !cost || cost->model == PTOWSP_MODEL_UNIT;
    ptowsp_cost pipes;  // elements have no bytes: of the unit model, bytes alone are counted
    memset(&pipes, 0, sizeof pipes);
    pipes.model = PTOWSP_MODEL_A2A3;
    uint64_t cycles[PWSP_SHARES] = {0, 0, 0, 0}, whole = 0;
    ptoisa_traffic traffic = {0, 0, 0};
    memset(out_demand, 0, sizeof *out_demand);
    if (is_sum && !pwsp_tile_core_run(core, code, task, true, &whole)) {
        return false;
    }
    core->cost = is_sum ? &pipes : cost;
    const bool is_good = pwsp_demand_count(core, code, task, cycles, &traffic);
    core->cost = cost;
    out_demand->bytes = pwsp_min_u64(traffic.bytes, PTOWSP_TASK_BYTES_MAX);
    const uint64_t moving = traffic.peak ? traffic.bytes * PTOISA_TRAFFIC_STEPS / traffic.peak : 0;
    if (is_sum || moving == 0) {
        out_demand->part_count = 1;
        out_demand->parts[0].cycles = is_sum ? whole : cycles[0];
        out_demand->parts[0].bytes = out_demand->bytes;
    } else if (is_good) {
        pwsp_demand_cut(cycles, moving, out_demand);
    }
    return is_good;
}

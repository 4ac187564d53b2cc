// The traffic of a tile kernel's task with global memory: how its time depends on bandwidth.
//
// The time of a list of instructions is a maximum of sums (flags and pipes), so as a function of the
// cycles of its transfers it is convex and made of straight lines. The task is counted four times, its
// transfers as fast as the core can, and 2, 4 and 8 times slower. Between these points lie lines:
//
//      cycles |            ./  slope m: transfers alone decide
//             |         _/
//             |    __--     slopes s1 <= s2 <= s3 <= m
//             |----
//             +--|--|-----|------------|---
//                1  2     4            8       slowdown k
//
// Such a curve is a chain of parts (runtime/arrival.h). A part of t cycles of transfers, behind c
// cycles of work, takes max(c, t * k), and bends at k = c / t:
//
//      t = s1 at k = 1 (transfers that nothing hides), s2 - s1 at 2, s3 - s2 at 4, m - s3 at 8, and
//      work without transfers for the rest
//
// So the chain takes at each of the four slowdowns what was counted there, and between them no less.
// Transfers of two pipes at once share the core's rate, so that m is at most all of its cycles, and
// no part takes less than its bytes at a share.

#include "compiled.h"

#define PWSP_SLOWDOWNS 4  // 1, 2, 4, 8

// Cycles at each slowdown, and of the transfers at the first. False with core->text.
static bool pwsp_demand_count(pwsp_tile_core *core, const pwsp_tile_code *code,
                              const ptowsp_task *task, uint64_t cycles[PWSP_SLOWDOWNS],
                              ptoisa_traffic *out_first) {
    bool is_good = true;
    for (uint32_t i = 0; i < PWSP_SLOWDOWNS && is_good; i++) {
        ptoisa_traffic traffic = {0, 0, UINT64_C(1) << i};
        core->traffic = &traffic;
        is_good = pwsp_tile_core_run(core, code, task, true, &cycles[i]);
        *out_first = i == 0 ? traffic : *out_first;
    }
    core->traffic = NULL;
    return is_good;
}

// Cycles of transfers that bend at 1, 2, 4 and 8.
static void pwsp_demand_bends(uint64_t cycles[PWSP_SLOWDOWNS], uint64_t moving,
                              uint64_t out_bends[PWSP_SLOWDOWNS]) {
    uint64_t slopes[PWSP_SLOWDOWNS] = {0, 0, 0, moving};
    for (uint32_t i = 1; i < PWSP_SLOWDOWNS; i++) {
        cycles[i] = pwsp_max_u64(pwsp_max_u64(cycles[i], cycles[i - 1]), moving << i);
        slopes[i - 1] = (cycles[i] - cycles[i - 1]) >> (i - 1);
    }
    for (uint32_t i = PWSP_SLOWDOWNS - 1; i > 0; i--) {
        slopes[i - 1] = pwsp_min_u64(slopes[i - 1], slopes[i]);
    }
    for (uint32_t i = 0; i < PWSP_SLOWDOWNS; i++) {
        out_bends[i] = slopes[i] - (i ? slopes[i - 1] : 0);
    }
}

// The parts of a task of so many cycles, `moving` of them in transfers.
static void pwsp_demand_cut(uint64_t cycles[PWSP_SLOWDOWNS], uint64_t moving, pwsp_demand *demand) {
    uint64_t bends[PWSP_SLOWDOWNS], left = cycles[0], bytes = demand->bytes, rest = moving;
    pwsp_demand_bends(cycles, moving, bends);
    for (uint32_t i = 0; i < PWSP_SLOWDOWNS; i++) {
        rest -= bends[i];
        // rounding may leave less work than the last bends ask for, but never less than transfers
        const uint64_t work = pwsp_min_u64(bends[i] << i, left - rest);
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
    uint64_t cycles[PWSP_SLOWDOWNS] = {0, 0, 0, 0}, whole = 0;
    ptoisa_traffic first = {0, 0, 1};
    memset(out_demand, 0, sizeof *out_demand);
    if (is_sum && !pwsp_tile_core_run(core, code, task, true, &whole)) {
        return false;
    }
    core->cost = is_sum ? &pipes : cost;
    const bool is_good = pwsp_demand_count(core, code, task, cycles, &first);
    core->cost = cost;
    out_demand->bytes = pwsp_min_u64(first.bytes, PTOWSP_TASK_BYTES_MAX);
    const uint64_t moving = pwsp_min_u64(first.cycles, cycles[0]);
    if (is_sum || moving == 0) {
        out_demand->part_count = 1;
        out_demand->parts[0].cycles = is_sum ? whole : cycles[0];
        out_demand->parts[0].bytes = out_demand->bytes;
    } else if (is_good) {
        pwsp_demand_cut(cycles, moving, out_demand);
    }
    return is_good;
}

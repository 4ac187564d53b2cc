// The traffic of a tile kernel's task with global memory: how its time depends on bandwidth.
//
// The time of a list of instructions is a maximum of sums (flags and pipes), so as a function of the time
// that a byte takes it is convex and made of straight lines. The task is counted with each path as fast
// as it is, and at a half, a quarter and an eighth of the fastest path that it uses; and once more where
// the lines through these points say that it bends most, which is where transfers begin to decide. Between
// these points lie lines:
//
//      cycles |            ./  slope m: transfers alone decide
//             |         _/
//             |    __--     slopes s1 <= s2 <= s3 <= s4 <= m
//             |----
//             +--|-|--|-----|------------|---
//                1 v  2     4            8       fastest path / share
//
// Such a curve is a chain of parts (data/demand.h). A part whose bytes take the fastest path t cycles,
// beside c cycles of work, takes max(c, t * k), and bends at k = c / t:
//
//      t = s1 at k = 1 (transfers that nothing hides), s2 - s1 at v, s3 - s2 at 2, s4 - s3 at 4, m - s4 at
//      8, and work without transfers for the rest
//
// So the chain takes the counted cycles at each of the five shares, and no less between them.
//
// Of the tile that is read more than once, the one with most bytes, all passes but the first are told
// apart: whether they hit L2 depends on the machine (time/hits.h).

#include "compiled.h"

#define PWSP_SHARES 5  // all, 1/v, 1/2, 1/4, 1/8 of the fastest path
#define PWSP_FULL   256u

typedef struct pwsp_demand_curve {
    uint32_t at[PWSP_SHARES];  // fastest path / share, in 1/256
    uint64_t cycles[PWSP_SHARES];
    uint64_t moving;  // cycles of the fastest path for all bytes
} pwsp_demand_curve;

// Counts a task at a share of the path `peak`. False with core->text.
static bool pwsp_demand_count(pwsp_tile_core *core, const pwsp_tile_code *code,
                              const ptowsp_task *task, uint64_t peak, pwsp_demand_curve *curve,
                              uint32_t i) {
    const uint64_t share = pwsp_mul_div_u64(peak, PWSP_FULL, curve->at[i]);
    ptoisa_traffic traffic = {0, 0, pwsp_max_u64(share, 1)};
    core->traffic = &traffic;
    const bool is_good = pwsp_tile_core_run(core, code, task, true, &curve->cycles[i]);
    core->traffic = NULL;
    return is_good;
}

// Where the line of the first point, which is level, and that through the third and fourth meet.
static uint32_t pwsp_demand_vertex(const pwsp_demand_curve *curve) {
    const uint64_t *cycles = curve->cycles;
    const uint64_t rise = cycles[2] > cycles[0] ? cycles[2] - cycles[0] : 0;
    const uint64_t slope = cycles[3] > cycles[2] ? (cycles[3] - cycles[2]) / 2 : 0;
    const uint64_t back = rise < slope ? pwsp_mul_div_u64(PWSP_FULL, rise, slope) : PWSP_FULL;
    // Between the second point and the third, and not at one of them.
    return (uint32_t)(2 * PWSP_FULL - pwsp_min_u64(pwsp_max_u64(back, 1), PWSP_FULL - 1));
}

// Cycles at each share, and the bytes in *out_traffic. False with core->text.
static bool pwsp_demand_measure(pwsp_tile_core *core, const pwsp_tile_code *code,
                                const ptowsp_task *task, pwsp_demand_curve *curve,
                                ptoisa_traffic *out_traffic) {
    static const uint32_t at[PWSP_SHARES] = {PWSP_FULL, 0, 2 * PWSP_FULL, 4 * PWSP_FULL,
                                             8 * PWSP_FULL};
    memcpy(curve->at, at, sizeof curve->at);
    memset(out_traffic, 0, sizeof *out_traffic);
    memset(core->read_bytes, 0, sizeof core->read_bytes);
    core->traffic = out_traffic;
    bool is_good = pwsp_tile_core_run(core, code, task, true, &curve->cycles[0]);
    core->traffic = NULL;
    uint64_t read_bytes[PTOWSP_TASK_TILE_MAX];
    memcpy(read_bytes, core->read_bytes, sizeof read_bytes);
    const uint64_t peak = out_traffic->peak;
    for (uint32_t i = 2; i < PWSP_SHARES && is_good && peak; i++) {
        is_good = pwsp_demand_count(core, code, task, peak, curve, i);
    }
    if (is_good && peak) {
        curve->at[1] = pwsp_demand_vertex(curve);
        is_good = pwsp_demand_count(core, code, task, peak, curve, 1);
    }
    memcpy(core->read_bytes, read_bytes, sizeof read_bytes);
    curve->moving = peak ? out_traffic->bytes * PTOISA_TRAFFIC_STEPS / peak : 0;
    return is_good;
}

// Cycles that the fastest path takes for the bytes that bend at each of the points.
static void pwsp_demand_bends(pwsp_demand_curve *curve, uint64_t out_bends[PWSP_SHARES]) {
    uint64_t slopes[PWSP_SHARES] = {0, 0, 0, 0, curve->moving}, *cycles = curve->cycles;
    for (uint32_t i = 1; i < PWSP_SHARES; i++) {
        // transfers of two pipes divide the share of the core
        const uint64_t least = pwsp_mul_div_up_u64(curve->moving * 8, curve->at[i], 8 * PWSP_FULL);
        cycles[i] = pwsp_max_u64(pwsp_max_u64(cycles[i], cycles[i - 1]), least);
        slopes[i - 1] = (cycles[i] - cycles[i - 1]) * PWSP_FULL / (curve->at[i] - curve->at[i - 1]);
    }
    for (uint32_t i = PWSP_SHARES - 1; i > 0; i--) {
        slopes[i - 1] = pwsp_min_u64(slopes[i - 1], slopes[i]);
    }
    for (uint32_t i = 0; i < PWSP_SHARES; i++) {
        out_bends[i] = slopes[i] - (i ? slopes[i - 1] : 0);
    }
}

// Cuts a task into parts.
static void pwsp_demand_cut(pwsp_demand_curve *curve, pwsp_demand *demand) {
    const uint64_t moving = curve->moving;
    const uint64_t least =
        pwsp_min_u64(moving, curve->cycles[0]);  // less if two pipes move at once
    uint64_t bends[PWSP_SHARES], left = curve->cycles[0], bytes = demand->bytes, rest = moving;
    pwsp_demand_bends(curve, bends);
    for (uint32_t i = 0; i < PWSP_SHARES; i++) {
        rest -= bends[i];
        // rounding may leave less work than the last bends ask for, but never less than transfers
        const uint64_t most = left - pwsp_mul_div_u64(rest, least, moving);
        const uint64_t work =
            pwsp_min_u64(pwsp_mul_div_u64(bends[i] * 8, curve->at[i], 8 * PWSP_FULL), most);
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

// Finds the tile that is read again with most bytes.
static void pwsp_demand_find_again(const pwsp_tile_core *core, const pwsp_tile_code *code,
                                   const ptowsp_task *task, pwsp_demand *demand) {
    for (uint32_t i = 0; i < code->param_count; i++) {
        const uint64_t rows = task ? (uint64_t)ptowsp_task_rows(task, i) : code->param_rows[i];
        const uint64_t cols = task ? (uint64_t)ptowsp_task_cols(task, i) : code->param_cols[i];
        const uint64_t size = rows * cols * ptowsp_dtype_size((ptowsp_dtype)code->param_dtypes[i]);
        const uint64_t bytes = core->read_bytes[i];
        if (size && bytes > size && bytes - size > demand->again) {
            demand->again = bytes - size;
            demand->again_tile = i;
            demand->passes = (uint32_t)pwsp_min_u64(pwsp_ceil_div_u64(bytes, size), UINT32_MAX);
        }
    }
}

PWSP_INTERNAL bool pwsp_tile_core_demand(pwsp_tile_core *core, const pwsp_tile_code *code,
                                         const ptowsp_task *task, pwsp_demand *out_demand) {
    const ptowsp_cost *const cost = core->cost;
    const bool is_sum = !cost || cost->model == PTOWSP_MODEL_UNIT;
    ptowsp_cost pipes;  // elements have no bytes: of the unit model, bytes alone are counted
    memset(&pipes, 0, sizeof pipes);
    pipes.model = PTOWSP_MODEL_A2A3;
    pwsp_demand_curve curve;
    uint64_t whole = 0;
    ptoisa_traffic traffic;
    memset(&curve, 0, sizeof curve);
    memset(out_demand, 0, sizeof *out_demand);
    if (is_sum && !pwsp_tile_core_run(core, code, task, true, &whole)) {
        return false;
    }
    core->cost = is_sum ? &pipes : cost;
    const bool is_good = pwsp_demand_measure(core, code, task, &curve, &traffic);
    core->cost = cost;
    out_demand->bytes = pwsp_min_u64(traffic.bytes, PTOWSP_TASK_BYTES_MAX);
    if (is_sum || curve.moving == 0) {
        out_demand->part_count = 1;
        out_demand->parts[0].cycles = is_sum ? whole : curve.cycles[0];
        out_demand->parts[0].bytes = out_demand->bytes;
    } else if (is_good) {
        pwsp_demand_cut(&curve, out_demand);
    }
    pwsp_demand_find_again(core, code, task, out_demand);
    return is_good;
}

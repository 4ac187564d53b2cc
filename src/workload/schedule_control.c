// Control of a schedule: the measured costs, checks, text. Its time is in time/control_threads.c.
//
// The costs are medians, means or middles of published measurements of Ascend 910B (A2/A3), taken
// by the authors of PTO Runtime (simpler, docs of June to August 2026); none is fitted. tools/fit takes
// them from the rows (control_fitted.h). Their meaning here:
//
//     LAUNCH        of a host, an empty callable; else one more of many: a program that is loaded
//     START_...     72 cores, cold; a quarter is on the line from the first to half. Each launch of a host
//                   starts its cores again: half of them have by DELIVER
//     DISPATCH, COMPLETE    the middles of 3 to 6 and 2 to 4 us: 7.5 us a task with both. An example of
//                   352 tasks took 9.9

#include "schedule_control.h"

#include "control_fitted.h"

#include "../base/text.h"
#include "../runtime/control_costs.h"

#include <inttypes.h>

// -- measured costs -------------------------------------------------------------------------------

#define PWSP_BY_HOST    (1u << PTOWSP_CONTROL_HOST)
#define PWSP_BY_AICPU   (1u << PTOWSP_CONTROL_AICPU)
#define PWSP_BY_KERNELS (1u << PTOWSP_CONTROL_KERNELS)

typedef struct pwsp_measured_cost {
    uint8_t cost;  // ptowsp_control_cost
    uint8_t by;    // the runners that have it, a bit each
    uint32_t ns;
} pwsp_measured_cost;

static const pwsp_measured_cost pwsp_measured_costs[] = {
#define PWSP_MEASURED_COST(cost, by, ns) {PTOWSP_CONTROL_##cost, by, ns},
    PWSP_FITTED_CONTROL(PWSP_MEASURED_COST)
#undef PWSP_MEASURED_COST
};

ptowsp_control ptowsp_control_make(ptowsp_control_by by, ptowsp_model model) {
    // Clock of the model (PTOWSP_MODELS), and threads: AICPU threads that a runtime may use, "6
    // AICPU visible (4 usable)" of 910B, without the one that submits.
    static const struct {
        uint8_t model, threads;
        uint16_t clock_mhz;
    } machines[] = {{PTOWSP_MODEL_910B, 3, 1800}, {PTOWSP_MODEL_950PR, 6, 1650}};
    ptowsp_control control;
    memset(&control, 0, sizeof control);
    control.by = by;
    control.threads = by == PTOWSP_CONTROL_AICPU ? 3 : 0;
    for (size_t i = 0; i < sizeof machines / sizeof machines[0] && by; i++) {
        if (machines[i].model == (uint32_t)model) {
            control.clock_mhz = machines[i].clock_mhz;
            control.threads = control.threads ? machines[i].threads : 0;
        }
    }
    for (size_t i = 0; i < sizeof pwsp_measured_costs / sizeof pwsp_measured_costs[0]; i++) {
        const pwsp_measured_cost *row = &pwsp_measured_costs[i];
        if ((uint32_t)by <= PTOWSP_CONTROL_KERNELS && row->by >> (uint32_t)by & 1) {
            control.cost_ns[row->cost] = row->ns;
        }
    }
    return control;
}

// -- checks ---------------------------------------------------------------------------------------

// Costs that a runner may have, a bit each.
static uint32_t pwsp_control_allowed(ptowsp_control_by by) {
    const uint32_t all = (1u << PTOWSP_CONTROL_COST_COUNT) - 1;
    const uint32_t work =
        1u << PTOWSP_CONTROL_DISPATCH | 1u << PTOWSP_CONTROL_POLL | 1u << PTOWSP_CONTROL_COMPLETE;
    const uint32_t once = (1u << PTOWSP_CONTROL_SUBMIT) - 1;  // all that are before it
    const uint32_t allowed[] = {0, all & ~work, all, once};
    return (uint32_t)by < sizeof allowed / sizeof allowed[0] ? allowed[by] : 0;
}

static ptowsp_status pwsp_control_check_costs(ptowsp_context *context,
                                              const ptowsp_control *control, const char *word) {
    for (uint32_t i = 0; i < PTOWSP_CONTROL_COST_COUNT; i++) {
        const char *name = ptowsp_control_cost_name((ptowsp_control_cost)i);
        if (control->cost_ns[i] && !(pwsp_control_allowed(control->by) >> i & 1)) {
            return pwsp_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                             "schedule: control %s has no cost %s: %" PRIu64 " ns", word, name,
                             control->cost_ns[i]);
        }
        if (i > PTOWSP_CONTROL_START_FIRST && i <= PTOWSP_CONTROL_START_LAST &&
            control->cost_ns[i] < control->cost_ns[i - 1]) {
            return pwsp_fail(
                context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                "schedule: control %s: %s of %" PRIu64 " ns is before %s of %" PRIu64 " ns", word,
                name, control->cost_ns[i], ptowsp_control_cost_name((ptowsp_control_cost)(i - 1)),
                control->cost_ns[i - 1]);
        }
    }
    pwsp_control_costs costs;
    uint32_t cost;
    return pwsp_control_costs_make(control, &costs, &cost)
               ? PTOWSP_OK
               : pwsp_fail(context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                           "schedule: control %s: costs up to %s are more than 2^62 cycles", word,
                           ptowsp_control_cost_name((ptowsp_control_cost)cost));
}

PWSP_INTERNAL ptowsp_status pwsp_control_check(ptowsp_context *context,
                                               const ptowsp_control *control, const char *word) {
    const bool has_threads = control->by == PTOWSP_CONTROL_AICPU;
    const bool has_clock = control->by != PTOWSP_CONTROL_NONE;
    if (has_threads && control->threads == 0) {
        return PWSP_REFUSE(
            context, "schedule: control %s: control.threads is 0; see ptowsp_control_make", word);
    }
    if (!has_threads && control->threads > 0) {
        return pwsp_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "schedule: control %s by %u threads", word, control->threads);
    }
    if (control->threads > PTOWSP_CONTROL_THREAD_MAX) {
        return pwsp_fail(context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                         "schedule: control %s by %u threads: at most %d", word, control->threads,
                         PTOWSP_CONTROL_THREAD_MAX);
    }
    if (has_clock != (control->clock_mhz > 0) || control->clock_mhz > PTOWSP_CONTROL_CLOCK_MAX) {
        return pwsp_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "schedule: control %s at a clock of %u MHz", word, control->clock_mhz);
    }
    return pwsp_control_check_costs(context, control, word);
}

// -- text -----------------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_control_print(const ptowsp_control *control, const char *word,
                                      ptowsp_output text) {
    pwsp_text_format(text, "  control %s", word);
    if (control->threads) {
        pwsp_text_format(text, " by %u threads", control->threads);
    }
    pwsp_text_format(text, " at %u MHz", control->clock_mhz);
    bool has_any = false;
    for (uint32_t i = 0; i < PTOWSP_CONTROL_COST_COUNT; i++) {
        if (control->cost_ns[i]) {
            pwsp_text_format(text, " %s %" PRIu64, ptowsp_control_cost_name((ptowsp_control_cost)i),
                             control->cost_ns[i]);
            has_any = true;
        }
    }
    pwsp_text_format(text, "%s\n", has_any ? " ns" : "");
}

PWSP_TEXTS(ptowsp_control_cost_name, ptowsp_control_cost, PTOWSP_CONTROL_COSTS, "unknown")

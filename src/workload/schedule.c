// Schedules: checking a description, the capability table, printing.
//
// Every choice of a schedule is a row of one table: directive, value, and the support of each
// target. Checks, queries and printing all read that table, so they agree, and no target silently
// ignores a directive.

#include "schedule.h"

#include "schedule_control.h"

#include "../base/text.h"
#include "../engine/policy.h"

#include <inttypes.h>

// clang-format off
#define PWSP_E PTOWSP_SUPPORT_ENFORCED
#define PWSP_O PTOWSP_SUPPORT_RECORDED
#define PWSP_R PTOWSP_SUPPORT_REFUSED
#define PWSP_L PTOWSP_SUPPORT_LEGALISED

#define PWSP_DISPATCH_CAPABILITY(ROW, name, text, rule, cpu_sim, threads, ascend_npu)              \
    ROW("dispatch", text, PTOWSP_DISPATCH_##name, PTOWSP_SUPPORT_##cpu_sim,                        \
        PTOWSP_SUPPORT_##threads, PTOWSP_SUPPORT_##ascend_npu)

// Directive, value, its number in the description; cpu_sim, threads, ascend_npu.
#define PWSP_CAPABILITIES(ROW)                                                                     \
    ROW("issue", "dataflow", PTOWSP_ISSUE_DATAFLOW, PWSP_E, PWSP_E, PWSP_E)                        \
    ROW("issue", "in order", PTOWSP_ISSUE_IN_ORDER, PWSP_E, PWSP_O, PWSP_E)                        \
    PWSP_DISPATCHES(PWSP_DISPATCH_CAPABILITY, ROW)                                                 \
    ROW("pools", "one", PTOWSP_POOLS_ONE, PWSP_E, PWSP_E, PWSP_E)                                  \
    ROW("pools", "by unit", PTOWSP_POOLS_BY_UNIT, PWSP_E, PWSP_O, PWSP_E)                          \
    ROW("pools", "named", PTOWSP_POOLS_NAMED, PWSP_E, PWSP_O, PWSP_R)                              \
    ROW("window", "none", PTOWSP_WINDOW_DEFAULT, PWSP_E, PWSP_O, PWSP_E)                           \
    ROW("window", "stall", PTOWSP_WINDOW_STALL, PWSP_E, PWSP_E, PWSP_E)                            \
    ROW("window", "abort", PTOWSP_WINDOW_ABORT, PWSP_E, PWSP_O, PWSP_R)                            \
    ROW("window", "benchmark", PTOWSP_WINDOW_BENCHMARK, PWSP_E, PWSP_O, PWSP_R)                    \
    ROW("release", "completion", PTOWSP_RELEASE_COMPLETION, PWSP_E, PWSP_O, PWSP_E)                \
    ROW("release", "in order", PTOWSP_RELEASE_IN_ORDER, PWSP_E, PWSP_E, PWSP_R)                    \
    ROW("depth", "stream", PTOWSP_DEPTH_STREAM, PWSP_E, PWSP_O, PWSP_R)                            \
    ROW("depth", "pool", PTOWSP_DEPTH_POOL, PWSP_E, PWSP_O, PWSP_R)                                \
    PWSP_RING_CAPABILITIES(ROW)                                                                    \
    ROW("dependencies", "structure", PTOWSP_DEPENDENCIES_STRUCTURE, PWSP_E, PWSP_E, PWSP_E)        \
    ROW("dependencies", "exact", PTOWSP_DEPENDENCIES_EXACT, PWSP_E, PWSP_E, PWSP_E)                \
    ROW("dependencies", "overlap", PTOWSP_DEPENDENCIES_OVERLAP, PWSP_E, PWSP_E, PWSP_E)            \
    ROW("dependencies", "explicit", PTOWSP_DEPENDENCIES_EXPLICIT, PWSP_E, PWSP_E, PWSP_E)          \
    ROW("hazards", "raw", PTOWSP_HAZARD_RAW, PWSP_E, PWSP_E, PWSP_E)                               \
    ROW("hazards", "war", PTOWSP_HAZARD_WAR, PWSP_E, PWSP_E, PWSP_E)                               \
    ROW("hazards", "waw", PTOWSP_HAZARD_WAW, PWSP_E, PWSP_E, PWSP_E)                               \
    ROW("ready", "fifo", PTOWSP_READY_FIFO, PWSP_E, PWSP_E, PWSP_E)                                \
    ROW("ready", "priority", PTOWSP_READY_PRIORITY, PWSP_E, PWSP_O, PWSP_E)                        \
    ROW("ready", "work stealing", PTOWSP_READY_WORK_STEALING, PWSP_E, PWSP_E, PWSP_E)              \
    ROW("start", "at once", PTOWSP_START_AT_ONCE, PWSP_E, PWSP_E, PWSP_E)                          \
    ROW("start", "threshold", PTOWSP_START_THRESHOLD, PWSP_E, PWSP_O, PWSP_R)                      \
    ROW("start", "all issued", PTOWSP_START_ALL_ISSUED, PWSP_E, PWSP_O, PWSP_R)                    \
    ROW("streams", "none", 0, PWSP_E, PWSP_E, PWSP_E)                                              \
    ROW("streams", "by key", 1, PWSP_E, PWSP_E, PWSP_E)                                            \
    ROW("timing", "immediate", PTOWSP_TIMING_IMMEDIATE, PWSP_E, PWSP_E, PWSP_E)                    \
    ROW("timing", "batched", PTOWSP_TIMING_BATCHED, PWSP_E, PWSP_O, PWSP_R)                        \
    ROW("timing", "rate limited", PTOWSP_TIMING_RATE_LIMITED, PWSP_E, PWSP_O, PWSP_R)              \
    ROW("timing", "interleaved", PTOWSP_TIMING_INTERLEAVED, PWSP_E, PWSP_O, PWSP_R)                \
    ROW("location", "global", PTOWSP_LOCATION_GLOBAL, PWSP_E, PWSP_E, PWSP_E)                      \
    ROW("location", "l2", PTOWSP_LOCATION_L2, PWSP_O, PWSP_O, PWSP_O)                              \
    ROW("location", "ub", PTOWSP_LOCATION_UB, PWSP_O, PWSP_O, PWSP_R)                              \
    ROW("location", "l1", PTOWSP_LOCATION_L1, PWSP_O, PWSP_O, PWSP_R)                              \
    ROW("tensor", "transient", 0, PWSP_E, PWSP_E, PWSP_E)                                          \
    ROW("tasks", "collective", 0, PWSP_E, PWSP_E, PWSP_R)                                          \
    ROW("memory", "shared", 1, PWSP_E, PWSP_O, PWSP_R)                                             \
    ROW("driver", "aicpu", 0, PWSP_O, PWSP_O, PWSP_E)                                              \
    ROW("driver", "host", 1, PWSP_O, PWSP_O, PWSP_E)                                               \
    ROW("control", "none", PTOWSP_CONTROL_NONE, PWSP_E, PWSP_E, PWSP_E)                            \
    ROW("control", "host", PTOWSP_CONTROL_HOST, PWSP_E, PWSP_O, PWSP_R)                            \
    ROW("control", "aicpu", PTOWSP_CONTROL_AICPU, PWSP_E, PWSP_O, PWSP_R)                          \
    ROW("control", "kernels", PTOWSP_CONTROL_KERNELS, PWSP_E, PWSP_O, PWSP_R)                      \
    PWSP_KERNEL_RULES(ROW)

// Real lanes have a ring of tasks; the others are simulated there.
#define PWSP_RING_CAPABILITIES(ROW)                                                                \
    ROW("ring", "tasks", PTOWSP_RING_TASKS, PWSP_E, PWSP_E, PWSP_R)                                \
    ROW("ring", "bytes", PTOWSP_RING_BYTES, PWSP_E, PWSP_O, PWSP_R)                                \
    ROW("ring", "dependencies", PTOWSP_RING_DEPENDENCIES, PWSP_E, PWSP_O, PWSP_R)                  \
    ROW("ring", "map", PTOWSP_RING_MAP, PWSP_E, PWSP_O, PWSP_R)

// What machines and PTO-ISA's headers restrict in tile kernels, which are legalised or refused when
// they end (kernel/legal.h, lower_matmul.c), and by the sources of a tree where it depends on the
// strides and sizes of a task (npu/tree/aicore/wsp_kernel.h).
#define PWSP_KERNEL_RULES(ROW)                                                                     \
    ROW("kernel", "element types", 0, PWSP_R, PWSP_R, PWSP_R)                                      \
    ROW("kernel", "bf16 operands", 1, PWSP_L, PWSP_L, PWSP_L)                                    \
    ROW("kernel", "i16 quotients", 2, PWSP_L, PWSP_L, PWSP_L)                                      \
    ROW("kernel", "places", 3, PWSP_R, PWSP_R, PWSP_R)                                             \
    ROW("kernel", "rows in UB", 4, PWSP_R, PWSP_R, PWSP_R)                                         \
    ROW("kernel", "row sums", 5, PWSP_L, PWSP_L, PWSP_L)                                           \
    ROW("kernel", "column sums", 6, PWSP_L, PWSP_L, PWSP_L)                                        \
    ROW("kernel", "masks", 7, PWSP_L, PWSP_L, PWSP_L)                                              \
    ROW("kernel", "mask gathers", 8, PWSP_L, PWSP_L, PWSP_L)                                       \
    ROW("kernel", "quantising", 9, PWSP_L, PWSP_L, PWSP_L)                                         \
    ROW("kernel", "results apart", 10, PWSP_L, PWSP_L, PWSP_L)                                     \
    ROW("kernel", "factors", 11, PWSP_L, PWSP_L, PWSP_L)                                           \
    ROW("kernel", "empty products", 12, PWSP_E, PWSP_E, PWSP_L)                                    \
    ROW("kernel", "factors by col", 13, PWSP_E, PWSP_E, PWSP_L)                                    \
    ROW("kernel", "wide columns", 14, PWSP_E, PWSP_E, PWSP_L)                                      \
    ROW("kernel", "other strides", 15, PWSP_E, PWSP_E, PWSP_O)                                     \
    ROW("kernel", "both cores", 16, PWSP_L, PWSP_L, PWSP_L)                                        \
    ROW("kernel", "runs", 17, PWSP_L, PWSP_L, PWSP_L)                                              \
    ROW("kernel", "operands", 18, PWSP_R, PWSP_R, PWSP_R)                                          \
    ROW("kernel", "tiles", 19, PWSP_R, PWSP_R, PWSP_R)                                             \
    ROW("kernel", "memories", 20, PWSP_R, PWSP_R, PWSP_R)                                          \
    ROW("kernel", "direct FIFOs", 21, PWSP_E, PWSP_E, PWSP_R)
// clang-format on

typedef struct pwsp_capability {
    char directive[16], value[16];
    uint32_t number;
    uint8_t support[PTOWSP_TARGET_COUNT];
} pwsp_capability;

static const pwsp_capability pwsp_capabilities[] = {
#define PWSP_CAPABILITY_ROW(directive, value, number, cpu_sim, threads, ascend_npu)                \
    {directive, value, (uint32_t)(number), {cpu_sim, threads, ascend_npu}},
    PWSP_CAPABILITIES(PWSP_CAPABILITY_ROW)
#undef PWSP_CAPABILITY_ROW
};

enum { PWSP_CAPABILITY_COUNT = sizeof pwsp_capabilities / sizeof pwsp_capabilities[0] };

// -- the table ------------------------------------------------------------------------------------

uint32_t ptowsp_capability_count(void) {
    return PWSP_CAPABILITY_COUNT;
}

ptowsp_capability ptowsp_capability_at(uint32_t i) {
    PTOWSP_ASSERT(i < PWSP_CAPABILITY_COUNT);
    const pwsp_capability *row = &pwsp_capabilities[i];
    ptowsp_capability capability = {row->directive,
                                    row->value,
                                    {(ptowsp_support)row->support[0],
                                     (ptowsp_support)row->support[1],
                                     (ptowsp_support)row->support[2]}};
    return capability;
}

PWSP_TEXTS(ptowsp_target_name, ptowsp_target, PTOWSP_TARGETS, "none")

PWSP_TEXTS(ptowsp_support_name, ptowsp_support, PTOWSP_SUPPORTS, "none")

void ptowsp_capability_print(ptowsp_output output) {
    pwsp_text_format(output, "%-13s %-14s", "directive", "value");
    for (uint32_t i = 0; i < PTOWSP_TARGET_COUNT; i++) {
        pwsp_text_format(output, " %-11s", ptowsp_target_name((ptowsp_target)i));
    }
    pwsp_text_format(output, "\n");
    for (uint32_t i = 0; i < PWSP_CAPABILITY_COUNT; i++) {
        ptowsp_capability row = ptowsp_capability_at(i);
        pwsp_text_format(output, "%-13s %-14s", row.directive, row.value);
        for (uint32_t j = 0; j < PTOWSP_TARGET_COUNT; j++) {
            pwsp_text_format(output, " %-11s", ptowsp_support_name(row.support[j]));
        }
        pwsp_text_format(output, "\n");
    }
}

// The row of a directive's value, or NULL.
static const pwsp_capability *pwsp_capability_find(const char *directive, uint32_t number) {
    for (uint32_t i = 0; i < PWSP_CAPABILITY_COUNT; i++) {
        const pwsp_capability *row = &pwsp_capabilities[i];
        if (row->number == number && strcmp(row->directive, directive) == 0) {
            return row;
        }
    }
    return NULL;
}

PWSP_INTERNAL const char *pwsp_schedule_word(const char *directive, uint32_t number) {
    const pwsp_capability *row = pwsp_capability_find(directive, number);
    return row ? row->value : "?";
}

// -- defaults -------------------------------------------------------------------------------------

PWSP_INTERNAL ptowsp_schedule pwsp_schedule_resolve(const ptowsp_schedule *schedule) {
    PWSP_ZERO(ptowsp_schedule, resolved);
    if (schedule) {
        resolved = *schedule;
    }
    if (resolved.dispatch == PTOWSP_DISPATCH_DEFAULT) {
        resolved.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN;
        if (resolved.pools == PTOWSP_POOLS_ONE && resolved.lane_count == 0) {
            resolved.lane_count = resolved.stream_count ? resolved.stream_count : 1;
        }
    }
    if (resolved.window_policy == PTOWSP_WINDOW_DEFAULT && resolved.window > 0) {
        resolved.window_policy = PTOWSP_WINDOW_STALL;
    }
    if (resolved.dependencies == 0) {
        resolved.dependencies = resolved.issue == PTOWSP_ISSUE_IN_ORDER
                                    ? PTOWSP_DEPENDENCIES_STRUCTURE
                                    : PTOWSP_DEPENDENCIES_HYBRID;
    }
    if (resolved.hazards == 0) {
        resolved.hazards = PTOWSP_HAZARD_RAW | PTOWSP_HAZARD_WAR | PTOWSP_HAZARD_WAW;
    }
    if (resolved.start == PTOWSP_START_ALL_ISSUED) {
        resolved.start_threshold = UINT64_MAX;
    } else if (resolved.start == PTOWSP_START_AT_ONCE) {
        resolved.start_threshold = 0;
    }
    return resolved;
}

// -- choices --------------------------------------------------------------------------------------

// A value that a schedule gives to a directive; or a set of them, as bits.
typedef struct pwsp_directive_choice {
    const char *directive;
    uint32_t number;
    bool is_set;
} pwsp_directive_choice;

#define PWSP_CHOICE_MAX (13 + PTOWSP_DEPTH_COUNT + PTOWSP_RING_COUNT)

// The choices of a schedule with its defaults filled in, in the order in which they are checked.
static uint32_t pwsp_schedule_choices(const ptowsp_schedule *s, bool has_stream_key,
                                      pwsp_directive_choice *out_choices) {
    const pwsp_directive_choice first[] = {{"issue", (uint32_t)s->issue, false},
                                           {"dispatch", (uint32_t)s->dispatch, false},
                                           {"pools", (uint32_t)s->pools, false},
                                           {"window", (uint32_t)s->window_policy, false},
                                           {"release", (uint32_t)s->release, false}};
    const pwsp_directive_choice last[] = {
        {"dependencies", s->dependencies, true}, {"hazards", s->hazards, true},
        {"ready", (uint32_t)s->ready, false},    {"start", (uint32_t)s->start, false},
        {"streams", has_stream_key, false},      {"timing", (uint32_t)s->timing, false}};
    const pwsp_directive_choice control = {"control", (uint32_t)s->control.by, false};
    const pwsp_directive_choice memory = {"memory", 1, false};
    // COMPLETION and NONE say nothing, nor does memory that is not shared.
    uint32_t count = s->release == PTOWSP_RELEASE_COMPLETION ? 4 : 5;
    memcpy(out_choices, first, sizeof first);
    for (uint32_t i = 0; i < PTOWSP_DEPTH_COUNT; i++) {
        const pwsp_directive_choice depth = {"depth", i, false};
        out_choices[count] = depth;
        count += s->depths[i] > 0;
    }
    for (uint32_t i = 0; i < PTOWSP_RING_COUNT; i++) {
        const pwsp_directive_choice ring = {"ring", i, false};
        out_choices[count] = ring;
        count += s->ring_sizes[i] > 0;
    }
    memcpy(out_choices + count, last, sizeof last);
    count += (uint32_t)(sizeof last / sizeof last[0]);
    out_choices[count] = control;
    count += s->control.by != PTOWSP_CONTROL_NONE;
    out_choices[count] = memory;
    return count + pwsp_schedule_shares(s);
}

// -- checking -------------------------------------------------------------------------------------

typedef struct pwsp_schedule_checker {
    ptowsp_context *context;
    const ptowsp_module *module;  // NULL: its keys have been compiled
    ptowsp_target target;
    ptowsp_status status;
} pwsp_schedule_checker;

#define PWSP_SCHEDULE_FAIL(checker, failure, ...)                                                  \
    ((checker)->status =                                                                           \
         (checker)->status != PTOWSP_OK                                                            \
             ? (checker)->status                                                                   \
             : pwsp_fail((checker)->context, failure, PTOWSP_NO_INDEX, "schedule: " __VA_ARGS__))
#define PWSP_SCHEDULE_REFUSE(checker, ...)                                                         \
    PWSP_SCHEDULE_FAIL(checker, PTOWSP_INVALID_PARAMS, __VA_ARGS__)

// One choice: it must exist, and the target must not refuse it.
static void pwsp_schedule_check_value(pwsp_schedule_checker *checker, const char *directive,
                                      uint32_t number) {
    const pwsp_capability *row = pwsp_capability_find(directive, number);
    if (!row) {
        PWSP_SCHEDULE_REFUSE(checker, "%s %u does not exist", directive, number);
    } else if (row->support[checker->target] == PTOWSP_SUPPORT_REFUSED) {
        PWSP_SCHEDULE_FAIL(checker, PTOWSP_UNSUPPORTED, "target %s does not do %s %s",
                           ptowsp_target_name(checker->target), directive, row->value);
    }
}

static void pwsp_schedule_check_key(pwsp_schedule_checker *checker, const char *what,
                                    ptowsp_expr key, bool is_needed) {
    bool is_given = key.module || key.id;
    if (is_given != is_needed) {
        PWSP_SCHEDULE_REFUSE(checker, "%s", what);
    } else if (is_given &&
               (key.module != checker->module || ptowsp_expr_type(key) == PTOWSP_TYPE_NONE)) {
        PWSP_SCHEDULE_REFUSE(checker, "a key is no expression of module %s", checker->module->name);
    }
}

static void pwsp_schedule_check_lanes(pwsp_schedule_checker *checker,
                                      const ptowsp_schedule *schedule) {
    bool is_by_unit = schedule->pools == PTOWSP_POOLS_BY_UNIT;
    bool is_named = schedule->pools == PTOWSP_POOLS_NAMED;
    uint64_t lanes = is_by_unit ? (uint64_t)schedule->vector_lane_count + schedule->cube_lane_count
                                : schedule->lane_count;
    const pwsp_capability *dispatch =
        pwsp_capability_find("dispatch", (uint32_t)schedule->dispatch);
    const char *pools = pwsp_schedule_word("pools", (uint32_t)schedule->pools);
    if (checker->status == PTOWSP_OK && is_named) {
        checker->status = pwsp_schedule_check_pools(checker->module, schedule);
    }
    if (!is_named && (schedule->named_pools || schedule->pool_count)) {
        PWSP_SCHEDULE_REFUSE(checker, "named pools are given, but pools are %s", pools);
    } else if (lanes == 0 && !is_named) {
        PWSP_SCHEDULE_REFUSE(checker, "dispatch %s: %s", dispatch ? dispatch->value : "",
                             is_by_unit ? "vector_lane_count and cube_lane_count are 0"
                                        : "lane_count is 0");
    } else if (lanes > PTOWSP_SCHEDULE_LANE_MAX) {
        PWSP_SCHEDULE_FAIL(checker, PTOWSP_LIMIT_EXCEEDED, "%" PRIu64 " lanes are more than %d",
                           lanes, PTOWSP_SCHEDULE_LANE_MAX);
    } else if (!is_by_unit && (schedule->vector_lane_count || schedule->cube_lane_count)) {
        PWSP_SCHEDULE_REFUSE(checker, "lanes of units are given, but %s",
                             is_named ? "pools are named" : "there is one pool");
    } else if (schedule->pools != PTOWSP_POOLS_ONE && schedule->lane_count) {
        PWSP_SCHEDULE_REFUSE(checker, "lane_count %u is given, but pools are %s",
                             schedule->lane_count, pools);
    }
    bool has_key = schedule->dispatch == PTOWSP_DISPATCH_PLAN
                       ? schedule->dispatch_key.module || schedule->dispatch_key.id
                       : pwsp_dispatch_has_key(schedule->dispatch);
    pwsp_schedule_check_key(checker,
                            has_key ? "dispatch by a key, but dispatch_key is missing"
                                    : "dispatch_key is given, but dispatch takes none",
                            schedule->dispatch_key, has_key);
}

static void pwsp_schedule_check_window(pwsp_schedule_checker *checker,
                                       const ptowsp_schedule *schedule) {
    if (schedule->window_policy != PTOWSP_WINDOW_DEFAULT && schedule->window == 0) {
        PWSP_SCHEDULE_REFUSE(checker, "window_policy %s needs window: it is 0",
                             pwsp_schedule_word("window", (uint32_t)schedule->window_policy));
    } else if (schedule->window > PTOWSP_SCHEDULE_WINDOW_MAX) {
        PWSP_SCHEDULE_FAIL(checker, PTOWSP_LIMIT_EXCEEDED, "a window of %u tasks is more than %d",
                           schedule->window, PTOWSP_SCHEDULE_WINDOW_MAX);
    } else if (schedule->window == 0 && schedule->release != PTOWSP_RELEASE_COMPLETION) {
        PWSP_SCHEDULE_REFUSE(checker, "release in order without a window");
    }
}

static void pwsp_schedule_check_rings(pwsp_schedule_checker *checker,
                                      const ptowsp_schedule *schedule) {
    for (uint32_t i = 0; i < PTOWSP_DEPTH_COUNT; i++) {
        if (schedule->depths[i] > PTOWSP_SCHEDULE_WINDOW_MAX) {
            PWSP_SCHEDULE_FAIL(checker, PTOWSP_LIMIT_EXCEEDED, "depth %s of %u is more than %d",
                               ptowsp_depth_name((ptowsp_depth)i), schedule->depths[i],
                               PTOWSP_SCHEDULE_WINDOW_MAX);
        }
    }
    if (schedule->depths[PTOWSP_DEPTH_STREAM] && !schedule->stream_key.id) {
        PWSP_SCHEDULE_REFUSE(checker, "depth stream without a stream_key");
    }
    for (uint32_t i = 0; i < PTOWSP_RING_COUNT; i++) {
        uint64_t size = schedule->ring_sizes[i];
        if (size > PTOWSP_SCHEDULE_RING_MAX && size != PTOWSP_RING_UNBOUNDED) {
            PWSP_SCHEDULE_FAIL(checker, PTOWSP_LIMIT_EXCEEDED,
                               "ring %s of %" PRIu64 " is more than 2^62",
                               ptowsp_ring_name((ptowsp_ring)i), size);
        }
    }
}

static void pwsp_schedule_check_shared(pwsp_schedule_checker *checker,
                                       const ptowsp_schedule *schedule) {
    const ptowsp_shared_memory *shared = &schedule->shared;
    const uint32_t least = (uint32_t)pwsp_min_u64(shared->hbm_rate, shared->l2_rate);
    if (checker->status != PTOWSP_OK) {
        return;  // pools may be wrong
    }
    const uint64_t lanes = pwsp_schedule_lanes(schedule);
    if ((shared->lane_rate || shared->l2_bytes || shared->hbm_rate || shared->l2_rate) &&
        least == 0) {
        PWSP_SCHEDULE_REFUSE(checker, "shared memory with a rate of 0 of %s",
                             shared->hbm_rate ? "l2" : "hbm");
    } else if (least > 0 && lanes > (uint64_t)least * 256) {
        PWSP_SCHEDULE_REFUSE(
            checker,
            "shared memory with a rate of %u in 100 cycles is too slow for %" PRIu64 " lanes",
            least, lanes);
    } else if (shared->l2_bytes > PTOWSP_SCHEDULE_RING_MAX) {
        PWSP_SCHEDULE_FAIL(checker, PTOWSP_LIMIT_EXCEEDED,
                           "l2 of %" PRIu64 " bytes is more than 2^62", shared->l2_bytes);
    }
}

static void pwsp_schedule_check_timing(pwsp_schedule_checker *checker,
                                       const ptowsp_schedule *schedule) {
    bool is_batched = schedule->timing == PTOWSP_TIMING_BATCHED;
    bool is_immediate = schedule->timing == PTOWSP_TIMING_IMMEDIATE;
    bool is_interleaved = schedule->timing == PTOWSP_TIMING_INTERLEAVED;
    if (is_batched != (schedule->timing_count > 0)) {
        PWSP_SCHEDULE_REFUSE(checker, "%s",
                             is_batched ? "timing batched with timing_count 0"
                                        : "timing_count is given, but timing is not batched");
    } else if (!is_batched && is_immediate != (schedule->timing_cycles == 0)) {
        PWSP_SCHEDULE_REFUSE(checker, "%s",
                             is_immediate ? "timing_cycles is given, but timing is immediate"
                                          : "timing_cycles is 0");
    } else if (schedule->timing_cycles > UINT64_C(1) << 32) {
        PWSP_SCHEDULE_FAIL(checker, PTOWSP_LIMIT_EXCEEDED,
                           "timing_cycles %" PRIu64 " is more than 2^32", schedule->timing_cycles);
    } else if (is_interleaved && schedule->stream_count == 0) {
        PWSP_SCHEDULE_REFUSE(checker, "timing interleaved: set stream_key and stream_count");
    } else if (is_batched && schedule->window_policy == PTOWSP_WINDOW_STALL &&
               schedule->timing_count > schedule->window) {
        PWSP_SCHEDULE_FAIL(checker, PTOWSP_STUCK,
                           "a batch of %u tasks never fits a window of %u: a larger window or a "
                           "smaller timing_count would help",
                           schedule->timing_count, schedule->window);
    }
    if (schedule->stream_count > PTOWSP_SCHEDULE_STREAM_MAX) {
        PWSP_SCHEDULE_FAIL(checker, PTOWSP_LIMIT_EXCEEDED, "%u streams are more than %d",
                           schedule->stream_count, PTOWSP_SCHEDULE_STREAM_MAX);
    }
    bool has_stream_key = schedule->stream_key.module || schedule->stream_key.id;
    if (has_stream_key && schedule->stream_count == 0) {
        PWSP_SCHEDULE_REFUSE(checker, "a stream_key over 0 streams");
    }
    pwsp_schedule_check_key(checker, "timing interleaved, but stream_key is missing",
                            schedule->stream_key, has_stream_key || is_interleaved);
}

static void pwsp_schedule_check_order(pwsp_schedule_checker *checker,
                                      const ptowsp_schedule *schedule) {
    bool is_in_order = schedule->issue == PTOWSP_ISSUE_IN_ORDER;
    if (is_in_order && schedule->ready != PTOWSP_READY_FIFO) {
        PWSP_SCHEDULE_REFUSE(checker,
                             "issue in order leaves lanes nothing to choose: ready must be fifo");
    } else if (is_in_order && schedule->start != PTOWSP_START_AT_ONCE) {
        PWSP_SCHEDULE_REFUSE(checker, "issue in order needs ends to go on: start must be at once");
    } else if (is_in_order && schedule->timing == PTOWSP_TIMING_INTERLEAVED) {
        PWSP_SCHEDULE_REFUSE(checker, "issue in order has one clock: timing cannot be interleaved");
    }
    if (schedule->start == PTOWSP_START_THRESHOLD && schedule->start_threshold == 0) {
        PWSP_SCHEDULE_REFUSE(checker, "a start_threshold of 0 tasks");
    }
    bool has_priority = schedule->ready == PTOWSP_READY_PRIORITY;
    pwsp_schedule_check_key(checker,
                            has_priority ? "ready by priority, but priority_key is missing"
                                         : "priority_key is given, but ready is not by priority",
                            schedule->priority_key, has_priority);
}

// Every choice of a schedule with its defaults filled in: it must exist, and the target must not
// refuse it.
static void pwsp_schedule_check_values(pwsp_schedule_checker *checker,
                                       const ptowsp_schedule *schedule, bool has_stream_key) {
    pwsp_directive_choice choices[PWSP_CHOICE_MAX];
    const uint32_t count = pwsp_schedule_choices(schedule, has_stream_key, choices);
    for (uint32_t i = 0; i < count; i++) {
        if (!choices[i].is_set) {
            pwsp_schedule_check_value(checker, choices[i].directive, choices[i].number);
        }
        for (uint32_t bit = 1; choices[i].is_set && bit != 0; bit <<= 1) {
            if (choices[i].number & bit) {
                pwsp_schedule_check_value(checker, choices[i].directive, bit);
            }
        }
    }
}

static ptowsp_status pwsp_schedule_check(const ptowsp_module *module, const ptowsp_schedule *given,
                                         ptowsp_target target) {
    ptowsp_schedule schedule = pwsp_schedule_resolve(given);
    pwsp_schedule_checker checker = {module->context, module, target, PTOWSP_OK};
    pwsp_schedule_check_values(&checker, &schedule,
                               schedule.stream_key.module || schedule.stream_key.id);
    pwsp_schedule_check_lanes(&checker, &schedule);
    pwsp_schedule_check_window(&checker, &schedule);
    pwsp_schedule_check_rings(&checker, &schedule);
    pwsp_schedule_check_shared(&checker, &schedule);
    pwsp_schedule_check_timing(&checker, &schedule);
    if (given && given->start != PTOWSP_START_THRESHOLD && given->start_threshold) {
        PWSP_SCHEDULE_REFUSE(&checker, "start_threshold is given, but start is not threshold");
    }
    pwsp_schedule_check_order(&checker, &schedule);
    if (checker.status == PTOWSP_OK) {
        const uint32_t by = (uint32_t)schedule.control.by;
        checker.status = pwsp_control_check(module->context, &schedule.control,
                                            pwsp_schedule_word("control", by));
    }
    return checker.status;
}

static ptowsp_status pwsp_target_check(ptowsp_context *context, ptowsp_target target) {
    return (uint32_t)target < PTOWSP_TARGET_COUNT
               ? PTOWSP_OK
               : PWSP_REFUSE(context, "schedule: there is no target %d", (int)target);
}

ptowsp_status ptowsp_schedule_check(const ptowsp_module *module, const ptowsp_schedule *schedule,
                                    ptowsp_target target) {
    PTOWSP_ASSERT(module);
    ptowsp_status status = pwsp_target_check(module->context, target);
    return status == PTOWSP_OK ? pwsp_schedule_check(module, schedule, target) : status;
}

PWSP_INTERNAL ptowsp_status pwsp_schedule_check_target(ptowsp_context *context,
                                                       const ptowsp_schedule *resolved,
                                                       bool has_stream_key, ptowsp_target target) {
    pwsp_schedule_checker checker = {context, NULL, target, pwsp_target_check(context, target)};
    if (checker.status == PTOWSP_OK) {
        pwsp_schedule_check_values(&checker, resolved, has_stream_key);
    }
    return checker.status;
}

PWSP_INTERNAL ptowsp_status pwsp_schedule_check_tensor(ptowsp_context *context,
                                                       const ptowsp_tensor_desc *tensor,
                                                       ptowsp_target target) {
    const pwsp_capability *row = pwsp_capability_find("location", (uint32_t)tensor->location);
    PTOWSP_ASSERT(row);
    return row->support[target] != PTOWSP_SUPPORT_REFUSED
               ? PTOWSP_OK
               : pwsp_fail(context, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                           "tensor %s: target %s does not do location %s", tensor->name,
                           ptowsp_target_name(target), row->value);
}

PWSP_INTERNAL ptowsp_status pwsp_schedule_check_collective(ptowsp_context *context,
                                                           const char *kernel,
                                                           ptowsp_target target) {
    const pwsp_capability *row = pwsp_capability_find("tasks", 0);
    PTOWSP_ASSERT(row);
    return row->support[target] != PTOWSP_SUPPORT_REFUSED
               ? PTOWSP_OK
               : pwsp_fail(context, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                           "kernel %s: target %s does not do tasks of a %s", kernel,
                           ptowsp_target_name(target), row->value);
}

// -- options given --------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_schedule_uses(const ptowsp_schedule *resolved, bool has_stream_key,
                                      uint32_t row) {
    const pwsp_capability *capability = &pwsp_capabilities[row];
    pwsp_directive_choice choices[PWSP_CHOICE_MAX];
    const uint32_t count = pwsp_schedule_choices(resolved, has_stream_key, choices);
    bool is_used = false;
    for (uint32_t i = 0; i < count && !is_used; i++) {
        is_used = strcmp(choices[i].directive, capability->directive) == 0 &&
                  (choices[i].is_set ? (choices[i].number & capability->number) != 0
                                     : choices[i].number == capability->number);
    }
    return is_used;
}

PWSP_INTERNAL bool pwsp_tensor_uses(const ptowsp_tensor_desc *tensor, bool is_transient,
                                    uint32_t row) {
    const pwsp_capability *capability = &pwsp_capabilities[row];
    return strcmp(capability->directive, "location") == 0
               ? capability->number == (uint32_t)tensor->location
               : is_transient && strcmp(capability->directive, "tensor") == 0;
}

// -- printing -------------------------------------------------------------------------------------

static void pwsp_schedule_print_value(const char *directive, uint32_t number, ptowsp_output text) {
    const pwsp_capability *row = pwsp_capability_find(directive, number);
    pwsp_text_format(text, "  %s %s", directive, row ? row->value : "unknown");
}

static void pwsp_schedule_print_key(const char *what, ptowsp_expr key, ptowsp_output text) {
    if (key.id) {
        pwsp_text_format(text, "%s", what);
        ptowsp_expr_print(key, text);
    }
}

static void pwsp_schedule_print_set(const char *directive, uint32_t set, ptowsp_output text) {
    pwsp_text_format(text, "  %s", directive);
    for (uint32_t bit = 1; bit != 0 && bit <= set; bit <<= 1) {
        const pwsp_capability *row = set & bit ? pwsp_capability_find(directive, bit) : NULL;
        if (row) {
            pwsp_text_format(text, " %s", row->value);
        }
    }
    pwsp_text_format(text, "\n");
}

static void pwsp_schedule_print_rings(const ptowsp_schedule *s, ptowsp_output text) {
    for (uint32_t i = 0; i < PTOWSP_DEPTH_COUNT; i++) {
        if (s->depths[i]) {
            pwsp_text_format(text, "  depth %s of %u\n", ptowsp_depth_name((ptowsp_depth)i),
                             s->depths[i]);
        }
    }
    for (uint32_t i = 0; i < PTOWSP_RING_COUNT; i++) {
        if (s->ring_sizes[i] == PTOWSP_RING_UNBOUNDED) {
            pwsp_text_format(text, "  ring %s unbounded\n", ptowsp_ring_name((ptowsp_ring)i));
        } else if (s->ring_sizes[i]) {
            pwsp_text_format(text, "  ring %s of %" PRIu64 "\n", ptowsp_ring_name((ptowsp_ring)i),
                             s->ring_sizes[i]);
        }
    }
}

static void pwsp_schedule_print_shared(const ptowsp_shared_memory *shared, ptowsp_output text) {
    if (shared->hbm_rate) {
        pwsp_schedule_print_value("memory", 1, text);
        pwsp_text_format(text, " hbm %u l2 %u of %" PRIu64 " bytes", shared->hbm_rate,
                         shared->l2_rate, shared->l2_bytes);
        if (shared->lane_rate) {
            pwsp_text_format(text, " lane %u", shared->lane_rate);
        }
        pwsp_text_format(text, "\n");
    }
}

void ptowsp_schedule_print(const ptowsp_schedule *schedule, ptowsp_output output) {
    ptowsp_schedule s = pwsp_schedule_resolve(schedule);
    pwsp_text_format(output, "schedule\n");
    pwsp_schedule_print_value("issue", (uint32_t)s.issue, output);
    pwsp_text_format(output, "\n");
    pwsp_schedule_print_value("dispatch", (uint32_t)s.dispatch, output);
    pwsp_schedule_print_key(" of ", s.dispatch_key, output);
    if (s.pools == PTOWSP_POOLS_ONE) {
        pwsp_text_format(output, " over %u lanes\n", s.lane_count);
    } else if (s.pools == PTOWSP_POOLS_NAMED) {
        pwsp_text_format(output, " over pools\n");
        pwsp_schedule_print_pools(&s, output);
    } else {
        pwsp_text_format(output, " over %u vector and %u cube lanes\n", s.vector_lane_count,
                         s.cube_lane_count);
    }
    if (s.window) {
        pwsp_schedule_print_value("window", (uint32_t)s.window_policy, output);
        pwsp_text_format(output, " at %u tasks\n", s.window);
    }
    if (s.release != PTOWSP_RELEASE_COMPLETION) {
        pwsp_schedule_print_value("release", (uint32_t)s.release, output);
        pwsp_text_format(output, "\n");
    }
    pwsp_schedule_print_rings(&s, output);
    pwsp_schedule_print_set("dependencies", s.dependencies, output);
    if (s.hazards != 7) {
        pwsp_schedule_print_set("hazards", s.hazards, output);
    }
    if (s.ready != PTOWSP_READY_FIFO) {
        pwsp_schedule_print_value("ready", (uint32_t)s.ready, output);
        pwsp_schedule_print_key(" ", s.priority_key, output);
        pwsp_text_format(output, "\n");
    }
    if (s.start != PTOWSP_START_AT_ONCE) {
        pwsp_schedule_print_value("start", (uint32_t)s.start, output);
        if (s.start == PTOWSP_START_THRESHOLD) {
            pwsp_text_format(output, " %" PRIu64 " tasks", s.start_threshold);
        }
        pwsp_text_format(output, "\n");
    }
    if (s.stream_count) {
        pwsp_text_format(output, "  streams %u", s.stream_count);
        pwsp_schedule_print_key(" by ", s.stream_key, output);
        pwsp_text_format(output, "\n");
    }
    if (s.timing != PTOWSP_TIMING_IMMEDIATE) {
        pwsp_schedule_print_value("timing", (uint32_t)s.timing, output);
        if (s.timing_count) {
            pwsp_text_format(output, " by %u tasks", s.timing_count);
        }
        pwsp_text_format(output, " of %" PRIu64 " cycles\n", s.timing_cycles);
    }
    if (s.control.by != PTOWSP_CONTROL_NONE) {
        pwsp_control_print(&s.control, pwsp_schedule_word("control", (uint32_t)s.control.by),
                           output);
    }
    pwsp_schedule_print_shared(&s.shared, output);
}

// Directives of a schedule, as ptowsp_schedule_print writes them, each on a line of its own:
//
//      directive   = "issue" value
//                  | "dispatch" value [ "of" expr ] "over"
//                    ( int "lanes" | int "vector" "and" int "cube" "lanes" | "pools" )
//                  | "pool" name "of" int "lanes" [ "depth" int ] [ "for" name { "," name } ]
//                  | "window" value "at" int "tasks"
//                  | "release" value | "depth" value "of" int
//                  | "ring" value ( "of" int | "unbounded" )
//                  | "dependencies" { value } | "hazards" { value }
//                  | "ready" value [ expr ]
//                  | "start" value [ int "tasks" ]
//                  | "streams" int [ "by" expr ]
//                  | "timing" value [ "by" int "tasks" ] "of" int "cycles"
//                  | "control" value [ "by" int "threads" ] "at" int "MHz"
//                    [ cost int { cost int } "ns" ]
//      cost        = as ptowsp_control_cost_name has it
//                  | "memory" value "hbm" int "l2" int "of" int "bytes" [ "lane" int ]
//      value       = as the capability table has it, "in order"

#include "parse.h"
#include "../workload/schedule.h"

// Choices of a directive are numbers below this, bits of a set as well.
#define PWSP_DIRECTIVE_NUMBERS 16u

// The value of a directive at the token; false if it is not one.
static bool pwsp_parse_try_value(pwsp_parser *p, const char *directive, uint32_t *out_number) {
    const size_t start = p->line_start + (size_t)p->column - 1;
    for (uint32_t number = 0; number < PWSP_DIRECTIVE_NUMBERS; number++) {
        const char *word = pwsp_schedule_word(directive, number);  // "?" if unknown
        const size_t length = strlen(word), end = start + length;
        if (word[0] != '?' && end <= p->length && memcmp(p->text + start, word, length) == 0 &&
            (end == p->length || !pwsp_name_is_word_part(p->text[end]))) {
            p->at = end;
            pwsp_parse_next(p);
            *out_number = number;
            return true;
        }
    }
    return false;
}

static bool pwsp_parse_value(pwsp_parser *p, const char *directive, uint32_t *out_number) {
    return pwsp_parse_try_value(p, directive, out_number) ||
           pwsp_parse_fail(p, "there is no such %s", directive);
}

static bool pwsp_parse_set(pwsp_parser *p, const char *directive, uint32_t *out_set) {
    uint32_t bit;
    *out_set = 0;
    while (p->token != PWSP_TOKEN_LINE_END) {
        if (!pwsp_parse_value(p, directive, &bit)) {
            return false;
        }
        *out_set |= bit;
    }
    return true;
}

PWSP_INTERNAL bool pwsp_parse_count(pwsp_parser *p, uint32_t *out_count) {
    uint64_t count = 0;
    bool is_good = pwsp_parse_number(p, UINT32_MAX, &count);
    *out_count = (uint32_t)count;
    return is_good;
}

static bool pwsp_parse_dispatch(pwsp_parser *p, ptowsp_schedule *schedule) {
    uint32_t number = 0;
    if (!pwsp_parse_value(p, "dispatch", &number) ||
        (pwsp_parse_try(p, "of") && !pwsp_parse_expr(p, &schedule->dispatch_key)) ||
        !pwsp_parse_expect(p, "over")) {
        return false;
    }
    schedule->dispatch = (ptowsp_dispatch)number;
    if (pwsp_parse_try(p, "pools")) {
        schedule->pools = PTOWSP_POOLS_NAMED;
        return true;
    }
    if (!pwsp_parse_count(p, &schedule->lane_count) || pwsp_parse_try(p, "lanes")) {
        return !p->is_failed;
    }
    schedule->pools = PTOWSP_POOLS_BY_UNIT;
    schedule->vector_lane_count = schedule->lane_count;
    schedule->lane_count = 0;
    return pwsp_parse_expect(p, "vector") && pwsp_parse_expect(p, "and") &&
           pwsp_parse_count(p, &schedule->cube_lane_count) && pwsp_parse_expect(p, "cube") &&
           pwsp_parse_expect(p, "lanes");
}

static bool pwsp_parse_pool(pwsp_parser *p, ptowsp_schedule *schedule) {
    if (schedule->pool_count == PTOWSP_SCHEDULE_POOL_MAX) {
        return pwsp_parse_fail(p, "more than %d pools", PTOWSP_SCHEDULE_POOL_MAX);
    }
    pwsp_arena *arena = &p->module->arena;
    ptowsp_pool *pool = &p->saved->pools[schedule->pool_count++];
    schedule->named_pools = p->saved->pools;
    if (!pwsp_parse_kept_name(p, arena, "a pool", &pool->name) || !pwsp_parse_expect(p, "of") ||
        !pwsp_parse_count(p, &pool->lane_count) || !pwsp_parse_expect(p, "lanes") ||
        (pwsp_parse_try(p, "depth") && !pwsp_parse_count(p, &pool->depth))) {
        return false;
    }
    uint32_t count = 0;
    for (bool has_more = pwsp_parse_try(p, "for"); has_more; has_more = pwsp_parse_try(p, ",")) {
        if (count == PTOWSP_POOL_KERNEL_MAX) {
            return pwsp_parse_fail(p, "more than %d kernels", PTOWSP_POOL_KERNEL_MAX);
        }
        if (!pwsp_parse_kept_name(p, arena, "a kernel", &pool->kernels[count++])) {
            return false;
        }
    }
    return true;
}

static bool pwsp_parse_timing(pwsp_parser *p, ptowsp_schedule *schedule) {
    uint32_t number = 0;
    if (!pwsp_parse_value(p, "timing", &number) ||
        (pwsp_parse_try(p, "by") &&
         (!pwsp_parse_count(p, &schedule->timing_count) || !pwsp_parse_expect(p, "tasks")))) {
        return false;
    }
    schedule->timing = (ptowsp_timing)number;
    return pwsp_parse_expect(p, "of") &&
           pwsp_parse_number(p, UINT64_MAX, &schedule->timing_cycles) &&
           pwsp_parse_expect(p, "cycles");
}

static bool pwsp_parse_ring(pwsp_parser *p, ptowsp_schedule *schedule) {
    uint32_t ring = 0;
    if (!pwsp_parse_value(p, "ring", &ring)) {
        return false;
    }
    schedule->ring_sizes[ring] = PTOWSP_RING_UNBOUNDED;
    return pwsp_parse_try(p, "unbounded") ||
           (pwsp_parse_expect(p, "of") &&
            pwsp_parse_number(p, UINT64_MAX, &schedule->ring_sizes[ring]));
}

// A cost of control at the token; false if it is another word.
static bool pwsp_parse_try_cost(pwsp_parser *p, ptowsp_control *control) {
    for (uint32_t i = 0; i < PTOWSP_CONTROL_COST_COUNT; i++) {
        if (pwsp_parse_try(p, ptowsp_control_cost_name((ptowsp_control_cost)i))) {
            return pwsp_parse_number(p, UINT64_MAX, &control->cost_ns[i]);
        }
    }
    return false;
}

static bool pwsp_parse_control(pwsp_parser *p, ptowsp_control *control) {
    uint32_t number = 0;
    if (!pwsp_parse_value(p, "control", &number) ||
        (pwsp_parse_try(p, "by") &&
         (!pwsp_parse_count(p, &control->threads) || !pwsp_parse_expect(p, "threads"))) ||
        !pwsp_parse_expect(p, "at") || !pwsp_parse_count(p, &control->clock_mhz) ||
        !pwsp_parse_expect(p, "MHz")) {
        return false;
    }
    control->by = (ptowsp_control_by)number;
    bool has_any = false;
    while (!p->is_failed && pwsp_parse_try_cost(p, control)) {
        has_any = true;
    }
    return !p->is_failed && (!has_any || pwsp_parse_expect(p, "ns"));
}

static bool pwsp_parse_shared(pwsp_parser *p, ptowsp_shared_memory *shared) {
    uint32_t number = 0;
    return pwsp_parse_value(p, "memory", &number) && pwsp_parse_expect(p, "hbm") &&
           pwsp_parse_count(p, &shared->hbm_rate) && pwsp_parse_expect(p, "l2") &&
           pwsp_parse_count(p, &shared->l2_rate) && pwsp_parse_expect(p, "of") &&
           pwsp_parse_number(p, UINT64_MAX, &shared->l2_bytes) && pwsp_parse_expect(p, "bytes") &&
           (!pwsp_parse_try(p, "lane") || pwsp_parse_count(p, &shared->lane_rate));
}

PWSP_INTERNAL bool pwsp_parse_directive(pwsp_parser *p, ptowsp_schedule *schedule) {
    uint32_t number = 0;
    bool is_good;
    if (pwsp_parse_try(p, "issue")) {
        is_good = pwsp_parse_value(p, "issue", &number);
        schedule->issue = (ptowsp_issue)number;
    } else if (pwsp_parse_try(p, "dispatch")) {
        is_good = pwsp_parse_dispatch(p, schedule);
    } else if (pwsp_parse_try(p, "pool")) {
        is_good = pwsp_parse_pool(p, schedule);
    } else if (pwsp_parse_try(p, "window")) {
        is_good = pwsp_parse_value(p, "window", &number) && pwsp_parse_expect(p, "at") &&
                  pwsp_parse_count(p, &schedule->window) && pwsp_parse_expect(p, "tasks");
        schedule->window_policy = (ptowsp_window)number;
    } else if (pwsp_parse_try(p, "release")) {
        is_good = pwsp_parse_value(p, "release", &number);
        schedule->release = (ptowsp_release)number;
    } else if (pwsp_parse_try(p, "depth")) {
        is_good = pwsp_parse_value(p, "depth", &number) && pwsp_parse_expect(p, "of") &&
                  pwsp_parse_count(p, &schedule->depths[number]);
    } else if (pwsp_parse_try(p, "ring")) {
        is_good = pwsp_parse_ring(p, schedule);
    } else if (pwsp_parse_try(p, "dependencies")) {
        is_good = pwsp_parse_set(p, "dependencies", &schedule->dependencies);
    } else if (pwsp_parse_try(p, "hazards")) {
        is_good = pwsp_parse_set(p, "hazards", &schedule->hazards);
    } else if (pwsp_parse_try(p, "ready")) {
        is_good = pwsp_parse_value(p, "ready", &number) &&
                  (p->token == PWSP_TOKEN_LINE_END || pwsp_parse_expr(p, &schedule->priority_key));
        schedule->ready = (ptowsp_ready)number;
    } else if (pwsp_parse_try(p, "start")) {
        is_good = pwsp_parse_value(p, "start", &number) &&
                  (p->token == PWSP_TOKEN_LINE_END ||
                   (pwsp_parse_number(p, UINT64_MAX, &schedule->start_threshold) &&
                    pwsp_parse_expect(p, "tasks")));
        schedule->start = (ptowsp_start)number;
    } else if (pwsp_parse_try(p, "streams")) {
        is_good = pwsp_parse_count(p, &schedule->stream_count) &&
                  (!pwsp_parse_try(p, "by") || pwsp_parse_expr(p, &schedule->stream_key));
    } else if (pwsp_parse_try(p, "timing")) {
        is_good = pwsp_parse_timing(p, schedule);
    } else if (pwsp_parse_try(p, "control")) {
        is_good = pwsp_parse_control(p, &schedule->control);
    } else if (pwsp_parse_try(p, "memory")) {
        is_good = pwsp_parse_shared(p, &schedule->shared);
    } else {
        is_good = pwsp_parse_fail(p, "no directive of a schedule begins like this");
    }
    return is_good;
}

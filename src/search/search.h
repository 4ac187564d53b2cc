// A schedule search: its state, and looking at places of its space.

#ifndef PWSP_SEARCH_H
#define PWSP_SEARCH_H

#include "../base/os.h"
#include "../exec/run.h"

typedef enum pwsp_search_list {
    PWSP_SEARCH_ISSUES,
    PWSP_SEARCH_DISPATCHES,
    PWSP_SEARCH_ORDERS,
    PWSP_SEARCH_WINDOWS,
    PWSP_SEARCH_LANES,
    PWSP_SEARCH_THREADS,  // of AICPUs
    PWSP_SEARCH_LISTS
} pwsp_search_list;

// Instead of a makespan in the table.
#define PWSP_SEARCH_UNSEEN  UINT64_MAX
#define PWSP_SEARCH_USELESS (UINT64_MAX - 1)  // refused, or its execution failed

enum { PWSP_SEARCH_DEFAULT_MAX = 8 };

// A place that is looked at, from compiling to what came of it.
typedef struct pwsp_search_look {
    ptowsp_search_result result;
    ptowsp_program *program;  // NULL: refused, or memory is out
    ptowsp_status status;     // ends the search unless OK or refused
    bool is_refused, is_executed;
    ptowsp_status error_status;  // of the context that the failure was left in; OK: none
    uint64_t error_index;
    char error_text[PWSP_ERROR_TEXT_MAX];
} pwsp_search_look;

// Where looks are executed: one after another in the search's own context, or on lanes at once, each
// with a context of its own for memory and errors.
typedef struct pwsp_search_lanes {
    uint32_t count;             // 1: the search's context
    ptowsp_context **contexts;  // unless count is 1
    pwsp_memory memory;         // of the search's context
    pwsp_mutex mutex;           // of the memory: its hook is called by one lane at a time
    pwsp_search_look *looks;
    uint32_t look_count, look_max;
    uint32_t cursor;  // atomic: the next look to be executed
} pwsp_search_lanes;

typedef struct pwsp_search {
    ptowsp_context *context;
    ptowsp_module *module;
    const ptowsp_search_desc *desc;
    ptowsp_schedule base;
    uint64_t budget;
    const void *lists[PWSP_SEARCH_LISTS];  // 32-bit elements
    uint32_t counts[PWSP_SEARCH_LISTS];
    uint32_t defaults[PWSP_SEARCH_LISTS][PWSP_SEARCH_DEFAULT_MAX];
    uint64_t *makespans;  // by place
    uint64_t seen_count;
    pwsp_search_lanes lanes;
    bool has_path;  // path_cycles is known
    ptowsp_cycles path_cycles;
    ptowsp_search_result *results;
    uint32_t capacity;
    ptowsp_search_summary summary;
    ptowsp_status first_status;  // of executions that failed; or of schedules that were refused
    uint64_t first_index;
    char first_text[PWSP_ERROR_TEXT_MAX];
    bool is_first_refusal;
} pwsp_search;

// Is the search to end early? All of its executions then end, too.
PWSP_INLINE bool pwsp_search_is_cut(const pwsp_search *search) {
    return pwsp_halt_is(&search->context->search);
}

// The schedule at a place.
PWSP_INTERNAL ptowsp_schedule pwsp_search_schedule(const pwsp_search *search, uint64_t place);

// Make and free what looking takes, with `count` lanes at once. False: memory is out.
PWSP_INTERNAL bool pwsp_search_lanes_make(pwsp_search *search, uint32_t count);
PWSP_INTERNAL void pwsp_search_lanes_free(pwsp_search *search);

// Looks at `count` places, `first`, first + step, ...: compiles and executes the schedules there,
// unless they were executed before or the budget is spent.
PWSP_INTERNAL ptowsp_status pwsp_search_look_at(pwsp_search *search, uint64_t first, uint64_t step,
                                                uint64_t count);

#endif

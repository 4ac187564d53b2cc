// Executing the places of a schedule search: compiling a schedule, running it, and ranking the
// result.
//
//      compile    in the order of places, by the calling thread: a module is for one thread
//      execute    on lanes, in any order: a run of its own for each program
//      take       in the order of places again: counts, the ranking, the first error
//
// A batch has at most as many places as executions are left in the budget, so all that it executes
// would be executed one by one, too. Until the longest chain is known, which the first good execution
// finds, batches have one place. So results depend neither on the lanes nor on their order.

#include "search.h"

#include "../base/atomic.h"
#include "../workload/schedule.h"

enum { PWSP_SEARCH_LOOKS_PER_LANE = 4 };

// -- lanes ----------------------------------------------------------------------------------------

// The search's memory, for one lane at a time.
static void *pwsp_search_resize(void *user, void *ptr, size_t old_size, size_t new_size) {
    pwsp_search_lanes *lanes = (pwsp_search_lanes *)user;
    pwsp_mutex_lock(&lanes->mutex);
    void *resized = lanes->memory.resize(lanes->memory.user, ptr, old_size, new_size);
    pwsp_mutex_unlock(&lanes->mutex);
    return resized;
}

PWSP_INTERNAL bool pwsp_search_lanes_make(pwsp_search *search, uint32_t count) {
    pwsp_search_lanes *lanes = &search->lanes;
    const uint32_t lane_max = ptowsp_context_lane_count(search->context);
    const pwsp_memory *memory = &search->context->memory;
    PWSP_ZERO(ptowsp_context_desc, desc);
    desc.resize = pwsp_search_resize;
    desc.resize_user = lanes;
    pwsp_mutex_init(&lanes->mutex);
    lanes->memory = *memory;
    lanes->count = count < 1 ? 1 : count < lane_max ? count : lane_max;
    lanes->look_max = lanes->count > 1 ? lanes->count * PWSP_SEARCH_LOOKS_PER_LANE : 1;
    PWSP_ALLOC(memory, lanes->looks, lanes->look_max);
    PWSP_ALLOC(memory, lanes->contexts, lanes->count);
    bool is_good = lanes->looks && lanes->contexts;
    if (lanes->contexts) {
        memset(lanes->contexts, 0, lanes->count * sizeof *lanes->contexts);
    }
    for (uint32_t i = 0; i < lanes->count && lanes->count > 1 && is_good; i++) {
        is_good = ptowsp_context_create(&desc, &lanes->contexts[i]) == PTOWSP_OK;
    }
    return is_good;
}

PWSP_INTERNAL void pwsp_search_lanes_free(pwsp_search *search) {
    pwsp_search_lanes *lanes = &search->lanes;
    const pwsp_memory *memory = &search->context->memory;
    if (lanes->count == 0) {
        return;
    }
    for (uint32_t i = 0; lanes->contexts && i < lanes->count && lanes->count > 1; i++) {
        ptowsp_context_destroy(lanes->contexts[i]);
    }
    PWSP_FREE(memory, lanes->contexts, lanes->count);
    PWSP_FREE(memory, lanes->looks, lanes->look_max);
    pwsp_mutex_destroy(&lanes->mutex);
}

// -- compiling ------------------------------------------------------------------------------------

// Keeps the error of a context.
static void pwsp_search_keep(pwsp_search_look *look, const ptowsp_context *context) {
    ptowsp_error error = ptowsp_context_error(context);
    look->error_status = error.status;
    look->error_index = error.index;
    snprintf(look->error_text, sizeof look->error_text, "%s", error.text);
}

static void pwsp_search_compile(pwsp_search *search, uint64_t place, pwsp_search_look *look) {
    ptowsp_program_desc desc;
    memset(look, 0, sizeof *look);
    look->result.schedule = pwsp_search_schedule(search, place);
    look->result.place = place;
    desc.workload = search->desc->workload;
    desc.schedule = &look->result.schedule;
    const ptowsp_context *refuser = search->module->context;
    ptowsp_status status =
        ptowsp_schedule_check(search->module, &look->result.schedule, search->desc->target);
    if (status == PTOWSP_OK) {
        refuser = search->context;
        status = ptowsp_program_create(search->context, search->module, &desc, &look->program);
    }
    if (status != PTOWSP_OK) {
        look->is_refused = status != PTOWSP_OUT_OF_MEMORY;
        look->status = look->is_refused ? PTOWSP_OK : status;
        pwsp_search_keep(look, refuser);
    }
}

// -- executing ------------------------------------------------------------------------------------

// An execution that fails so does it by its schedule; any other would fail under all of them.
static bool pwsp_search_is_by_schedule(ptowsp_status status) {
    return status == PTOWSP_STUCK || status == PTOWSP_LIMIT_EXCEEDED ||
           status == PTOWSP_UNSUPPORTED;
}

static ptowsp_status pwsp_search_execute(const pwsp_search *search, ptowsp_run *run,
                                         pwsp_search_look *look) {
    const bool finds_path = search->desc->has_path && !search->has_path;
    ptowsp_search_result *result = &look->result;
    PWSP_ZERO(ptowsp_record_options, record);
    ptowsp_run_options options;
    memset(&options, 0, sizeof options);
    record.level = finds_path ? PTOWSP_RECORD_EDGES : PTOWSP_RECORD_TOTALS;
    options.mode = PTOWSP_RUN_TIME_ONLY;
    options.cost = search->desc->cost;
    options.token_limit = search->desc->token_limit;
    ptowsp_status status =
        search->desc->bind ? search->desc->bind(search->desc->user, run) : PTOWSP_OK;
    if (status != PTOWSP_OK) {
        return status;
    }
    status = ptowsp_run_record(run, &record);
    PTOWSP_ASSERT(status == PTOWSP_OK);
    run->walk.halt.outer = &search->context->search;
    status = ptowsp_run_execute(run, &options);
    if (status != PTOWSP_OK && pwsp_search_is_cut(search)) {
        return pwsp_halt_status(&search->context->search);  // of an execution that does not count
    }
    look->is_executed = true;
    if (status != PTOWSP_OK) {
        result->status = status;
        return pwsp_search_is_by_schedule(status) ? PTOWSP_OK : status;
    }
    result->makespan_cycles = ptowsp_run_result(run)->makespan_cycles;
    result->in_flight_max = ptowsp_run_result(run)->in_flight_max;
    result->lane_count = ptowsp_run_result(run)->lane_count;
    memcpy(result->idle_cycles, ptowsp_run_idle(run), sizeof result->idle_cycles);
    return ptowsp_run_find_bounds(run, &result->bounds);
}

// Executes looks in a context until none is left.
static void pwsp_search_execute_looks(pwsp_search *search, ptowsp_context *context) {
    pwsp_search_lanes *lanes = &search->lanes;
    for (;;) {
        const uint32_t i = pwsp_fetch_add_acq_rel(&lanes->cursor, 1u);
        ptowsp_run *run = NULL;
        if (i >= lanes->look_count) {
            return;
        }
        pwsp_search_look *look = &lanes->looks[i];
        if (!look->program) {
            continue;
        }
        if (pwsp_search_is_cut(search)) {
            look->status = pwsp_halt_status(&search->context->search);
            continue;
        }
        if (lanes->count > 1) {
            context->status = PTOWSP_OK;  // an error that is left there is this look's
        }
        look->status = ptowsp_run_create(context, look->program, &run);
        if (look->status == PTOWSP_OK) {
            look->status = pwsp_search_execute(search, run, look);
        }
        if (look->status != PTOWSP_OK || look->result.status != PTOWSP_OK) {
            pwsp_search_keep(look, context);
        }
        ptowsp_run_destroy(run);
    }
}

// Items are contexts, as many as executions at once; lanes of the pool may be more.
static void pwsp_search_execute_range(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    pwsp_search *search = (pwsp_search *)user;
    (void)lane;
    for (uint64_t i = begin; i < end; i++) {
        pwsp_search_execute_looks(search, search->lanes.contexts[i]);
    }
}

// -- taking results -------------------------------------------------------------------------------

// Keeps the error that a search without results returns: a failure rather than a refusal.
static void pwsp_search_note(pwsp_search *search, const pwsp_search_look *look) {
    if (search->first_status == PTOWSP_OK || (search->is_first_refusal && !look->is_refused)) {
        search->first_status = look->error_status;
        search->first_index = look->error_index;
        search->is_first_refusal = look->is_refused;
        memcpy(search->first_text, look->error_text, sizeof search->first_text);
    }
}

// Is a result before another in the ranking?
static bool pwsp_search_is_before(const ptowsp_search_result *a, const ptowsp_search_result *b) {
    uint32_t lanes_a = pwsp_schedule_lanes(&a->schedule);
    uint32_t lanes_b = pwsp_schedule_lanes(&b->schedule);
    if ((a->status == PTOWSP_OK) != (b->status == PTOWSP_OK)) {
        return a->status == PTOWSP_OK;
    }
    return a->makespan_cycles != b->makespan_cycles ? a->makespan_cycles < b->makespan_cycles
           : lanes_a != lanes_b                     ? lanes_a < lanes_b
                                                    : a->place < b->place;
}

static void pwsp_search_rank(pwsp_search *search, const ptowsp_search_result *result) {
    ptowsp_search_result *results = search->results;
    uint32_t count = search->summary.result_count, at = count;
    while (at > 0 && pwsp_search_is_before(result, &results[at - 1])) {
        at--;
    }
    if (at == search->capacity) {
        return;
    }
    count = count < search->capacity ? count + 1 : count;
    memmove(results + at + 1, results + at, (count - at - 1) * sizeof *results);
    results[at] = *result;
    search->summary.result_count = count;
}

// Counts and ranks the result of a look.
static ptowsp_status pwsp_search_take(pwsp_search *search, pwsp_search_look *look) {
    ptowsp_run_bounds *bounds = &look->result.bounds;
    if (look->is_refused) {
        search->summary.refused_count++;
        pwsp_search_note(search, look);
        return PTOWSP_OK;
    }
    search->summary.evaluation_count += look->is_executed ? 1 : 0;
    if (look->result.status != PTOWSP_OK) {
        search->summary.failed_count++;
        pwsp_search_note(search, look);
    }
    if (look->status != PTOWSP_OK) {
        // A bind that fails may have left its error in a context of its own.
        return search->lanes.count > 1 && look->error_status == look->status
                   ? pwsp_fail(search->context, look->status, look->error_index, "%s",
                               look->error_text)
                   : look->status;
    }
    if (look->result.status == PTOWSP_OK) {
        search->makespans[look->result.place] = look->result.makespan_cycles;
    }
    memset(bounds->pool_names, 0, sizeof bounds->pool_names);  // of the program
    if (bounds->has_path && !search->has_path) {
        search->has_path = true;
        search->path_cycles = bounds->path_cycles;
    }
    pwsp_search_rank(search, &look->result);
    return PTOWSP_OK;
}

// -- batches --------------------------------------------------------------------------------------

// Compiles the places that come next and were not looked at, as many as a batch has. Returns how many
// places are done with.
static uint64_t pwsp_search_gather(pwsp_search *search, uint64_t first, uint64_t step,
                                   uint64_t count) {
    pwsp_search_lanes *lanes = &search->lanes;
    const uint64_t left = search->budget - search->summary.evaluation_count;
    const bool is_first = search->desc->has_path && !search->has_path;
    const uint64_t most = pwsp_min_u64(left, is_first ? 1 : lanes->look_max);
    uint64_t i = 0;
    lanes->look_count = 0;
    for (; i < count && lanes->look_count < most; i++) {
        const uint64_t place = first + i * step;
        if (search->makespans[place] != PWSP_SEARCH_UNSEEN) {
            continue;
        }
        search->makespans[place] = PWSP_SEARCH_USELESS;
        search->seen_count++;
        pwsp_search_compile(search, place, &lanes->looks[lanes->look_count++]);
    }
    return most ? i : count;
}

// Does a status end the search early? Executions that had ended by then count, even after one that
// had not.
static bool pwsp_search_is_end(const pwsp_search *search, ptowsp_status status) {
    return pwsp_search_is_cut(search) && status == pwsp_halt_status(&search->context->search);
}

PWSP_INTERNAL ptowsp_status pwsp_search_look_at(pwsp_search *search, uint64_t first, uint64_t step,
                                                uint64_t count) {
    pwsp_search_lanes *lanes = &search->lanes;
    ptowsp_status status = PTOWSP_OK;
    for (uint64_t done = 0; done < count && status == PTOWSP_OK;) {
        if (pwsp_search_is_cut(search)) {
            return pwsp_halt_status(&search->context->search);
        }
        done += pwsp_search_gather(search, first + done * step, step, count - done);
        lanes->cursor = 0;
        if (lanes->count > 1) {
            status = ptowsp_parallel_for(search->context, lanes->count, 1,
                                         pwsp_search_execute_range, search);
        } else {
            pwsp_search_execute_looks(search, search->context);
        }
        for (uint32_t i = 0; i < lanes->look_count; i++) {
            if (status == PTOWSP_OK || pwsp_search_is_end(search, status)) {
                const ptowsp_status own = pwsp_search_take(search, &lanes->looks[i]);
                status = status == PTOWSP_OK ? own : status;
            }
            ptowsp_program_destroy(lanes->looks[i].program);
        }
    }
    return status;
}

// Setting up what issues a program: the variables of its tasks, how much an entry holds, and memory
// for all of it.

#include "issue.h"

// Is there anything to evaluate but a zero?
static bool pwsp_code_is_any(pwsp_code code) {
    return code.begin != code.end || code.cell != 0;
}

// Lists the variables around each task, and finds the most words of one. False when memory is out.
static bool pwsp_issue_list_variables(pwsp_issue *issue, uint32_t *out_word_count) {
    const ptowsp_program *program = issue->run->program;
    uint64_t count = 0;
    *out_word_count = 2;
    for (uint32_t i = 0; i < program->ops.count; i++) {
        const pwsp_op *op = PWSP_OP_AT(program, i);
        if (op->kind != PWSP_OP_TASK) {
            continue;
        }
        const pwsp_task_op *task = PWSP_PROGRAM_AT(program, tasks, pwsp_task_op, op->at);
        pwsp_issue_variables *variables = &issue->variables[op->at];
        variables->first = (uint32_t)count;
        for (uint32_t at = op->node; at; at = PWSP_PLACE_AT(program, at)->parent) {
            const pwsp_place *place = PWSP_PLACE_AT(program, at);
            void *cells = issue->cells;
            if (!pwsp_memory_grow(&issue->memory, &cells, &issue->cell_count,
                                  count + place->param_count + 1, sizeof(uint32_t))) {
                return false;
            }
            issue->cells = (uint32_t *)cells;
            for (uint32_t j = 0; j < place->param_count; j++) {
                issue->cells[count++] =
                    PWSP_PROGRAM_AT(program, params, pwsp_param, place->first_param + j)->cell;
            }
            if (place->variable) {
                issue->cells[count++] = place->variable;
            }
        }
        variables->count = (uint32_t)count - variables->first;
        issue->has_keys = issue->has_keys || pwsp_code_is_any(task->dispatch) ||
                          pwsp_code_is_any(task->priority) || pwsp_code_is_any(task->stream);
        uint32_t words = task->axis_count + task->scalar_count + variables->count + 3;
        *out_word_count = words > *out_word_count ? words : *out_word_count;
    }
    *out_word_count -= issue->has_keys || *out_word_count < 5 ? 0 : 3;
    return true;
}

static uint32_t pwsp_issue_capacity(const ptowsp_schedule *schedule) {
    bool has_window = schedule->window > 0 && schedule->window < PWSP_ISSUE_WINDOW_MAX;
    return has_window ? schedule->window : PWSP_ISSUE_WINDOW_MAX;
}

static uint32_t pwsp_issue_tile_max(const ptowsp_program *program) {
    uint32_t count = 1;  // of a slot load
    for (uint32_t i = 0; i < program->tasks.count; i++) {
        uint32_t views = PWSP_PROGRAM_AT(program, tasks, pwsp_task_op, i)->view_count;
        count = views > count ? views : count;
    }
    return count;
}

// Makes the map of what tasks in flight touch. How many accesses and waits there are at once
// depends on when tasks are done: what most programs ever need is there from the start, so that
// executing again allocates nothing.
static bool pwsp_issue_init_deps(pwsp_issue *issue, const pwsp_token_ops *ops) {
    const ptowsp_program *program = issue->run->program;
    uint32_t count = (uint32_t)program->tensors.count;
    bool is_any_written = false;
    for (uint32_t i = 1; i < count; i++) {
        is_any_written = is_any_written || program->tensor_is_written[i];
    }
    if (!pwsp_deps_init(&issue->deps, &issue->memory, count)) {
        return false;
    }
    issue->deps.ops = *ops;
    return !is_any_written || pwsp_deps_reserve(&issue->deps);
}

static bool pwsp_issue_init(pwsp_issue *issue) {
    const ptowsp_program *program = issue->run->program;
    const ptowsp_schedule *schedule = &program->schedule;
    const pwsp_memory *memory = &issue->memory;
    pwsp_token_ops ops = {pwsp_reorder_is_dead,
                          pwsp_reorder_visit,
                          pwsp_reorder_keep,
                          pwsp_reorder_drop,
                          pwsp_reorder_merge,
                          &issue->reorder,
                          false};
    uint32_t word_count;
    issue->has_structure = (schedule->dependencies & PTOWSP_DEPENDENCIES_STRUCTURE) != 0;
    issue->is_homed = schedule->dispatch == PTOWSP_DISPATCH_AFFINITY ||
                      schedule->dispatch == PTOWSP_DISPATCH_CUSTOM ||
                      schedule->dispatch == PTOWSP_DISPATCH_HASH;
    issue->scopes = (pwsp_issue_scope *)pwsp_memory_alloc(memory, program->scope_depth *
                                                                      sizeof(pwsp_issue_scope));
    issue->variables = (pwsp_issue_variables *)pwsp_memory_alloc(
        memory, ((size_t)program->tasks.count + 1) * sizeof(pwsp_issue_variables));
    bool is_good = issue->scopes && issue->variables;
    if (is_good && program->has_streams) {
        issue->streams =
            (pwsp_token *)pwsp_memory_alloc(memory, schedule->stream_count * sizeof(pwsp_token));
        is_good = issue->streams != NULL;
    }
    if (is_good && program->edge_count) {
        issue->edges =
            (pwsp_token *)pwsp_memory_alloc(memory, program->edge_count * sizeof(pwsp_token));
        is_good = issue->edges != NULL;
    }
    is_good = is_good && pwsp_issue_list_variables(issue, &word_count) &&
              pwsp_reorder_init(&issue->reorder, memory, pwsp_issue_capacity(schedule), word_count,
                                pwsp_issue_tile_max(program)) &&
              pwsp_issue_init_deps(issue, &ops);
    issue->reorder.call = pwsp_issue_call;
    issue->reorder.call_user = issue;
    return is_good;
}

PWSP_INTERNAL bool pwsp_issue_reserve(pwsp_issue *issue, uint32_t lane_count) {
    const ptowsp_program *program = issue->run->program;
    void *cores = issue->cores;
    if (!pwsp_memory_grow(&issue->memory, &cores, &issue->core_capacity, lane_count,
                          sizeof(pwsp_tile_core))) {
        return false;
    }
    issue->cores = (pwsp_tile_core *)cores;
    while (issue->core_count < lane_count) {
        pwsp_tile_core *core = &issue->cores[issue->core_count];
        memset(core, 0, sizeof *core);
        core->memory = issue->memory;
        for (uint32_t i = 1; i < program->kernels.count; i++) {
            const pwsp_kernel_info *kernel = PWSP_PROGRAM_AT(program, kernels, pwsp_kernel_info, i);
            if (kernel->code && !pwsp_tile_core_reserve(core, kernel->code)) {
                pwsp_tile_core_free(core);
                return false;
            }
        }
        issue->core_count++;
    }
    return true;
}

PWSP_INTERNAL pwsp_issue *pwsp_issue_create(ptowsp_run *run) {
    pwsp_issue *issue = (pwsp_issue *)pwsp_memory_alloc(&run->memory, sizeof(pwsp_issue));
    if (issue) {
        issue->run = run;
        issue->memory = run->memory;
        if (!pwsp_issue_init(issue)) {
            pwsp_issue_destroy(issue);
            return NULL;
        }
    }
    return issue;
}

PWSP_INTERNAL void pwsp_issue_destroy(pwsp_issue *issue) {
    if (!issue) {
        return;
    }
    const ptowsp_program *program = issue->run->program;
    pwsp_memory memory = issue->memory;
    for (uint32_t i = 0; i < issue->core_count; i++) {
        pwsp_tile_core_free(&issue->cores[i]);
    }
    pwsp_memory_free(&memory, issue->cores, (size_t)issue->core_capacity * sizeof(pwsp_tile_core));
    pwsp_memory_free(&memory, issue->process_last,
                     (size_t)issue->process_capacity * sizeof(uint64_t));
    pwsp_memory_free(&memory, issue->cells, (size_t)issue->cell_count * sizeof(uint32_t));
    pwsp_memory_free(&memory, issue->edges, program->edge_count * sizeof(pwsp_token));
    pwsp_memory_free(&memory, issue->streams, program->schedule.stream_count * sizeof(pwsp_token));
    pwsp_memory_free(&memory, issue->variables,
                     ((size_t)program->tasks.count + 1) * sizeof(pwsp_issue_variables));
    pwsp_memory_free(&memory, issue->scopes, program->scope_depth * sizeof(pwsp_issue_scope));
    pwsp_deps_free(&issue->deps);
    pwsp_reorder_free(&issue->reorder);
    pwsp_memory_free(&memory, issue, sizeof(pwsp_issue));
}

PWSP_INTERNAL size_t pwsp_issue_bytes(const pwsp_issue *issue) {
    if (!issue) {
        return 0;
    }
    const ptowsp_program *program = issue->run->program;
    size_t bytes = sizeof(pwsp_issue) + pwsp_reorder_bytes(&issue->reorder) +
                   pwsp_deps_bytes(&issue->deps) + program->scope_depth * sizeof(pwsp_issue_scope) +
                   ((size_t)program->tasks.count + 1) * sizeof(pwsp_issue_variables) +
                   (issue->streams ? program->schedule.stream_count * sizeof(pwsp_token) : 0) +
                   program->edge_count * sizeof(pwsp_token) +
                   (size_t)issue->cell_count * sizeof(uint32_t) +
                   (size_t)issue->process_capacity * sizeof(uint64_t) +
                   (size_t)issue->core_capacity * sizeof(pwsp_tile_core);
    for (uint32_t i = 0; i < issue->core_count; i++) {
        bytes += pwsp_tile_core_bytes(&issue->cores[i]);
    }
    return bytes;
}

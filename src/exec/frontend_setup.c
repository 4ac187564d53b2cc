// Sets up the front end of a program: the variables of its tasks, the size of an entry, and the
// memory for all of it.

#include "frontend.h"

// Lists the variables around each task, and finds the largest word count. False when memory is out.
static bool pwsp_frontend_list_variables(pwsp_frontend *front, uint32_t *out_word_count) {
    const ptowsp_program *program = front->walk->program;
    uint64_t count = 0;
    *out_word_count = 2;
    for (uint32_t i = 0; i < program->ops.count; i++) {
        const pwsp_op *op = PWSP_OP_AT(program, i);
        if (op->kind != PWSP_OP_TASK) {
            continue;
        }
        const pwsp_task_op *task = &program->tasks.items[op->at];
        pwsp_task_variables *variables = &front->variables[op->at];
        variables->first = (uint32_t)count;
        for (uint32_t at = op->node; at; at = PWSP_PLACE_AT(program, at)->parent) {
            const pwsp_place *place = PWSP_PLACE_AT(program, at);
            if (!PWSP_GROW(&front->memory, front->cells, front->cell_count,
                           count + place->param_count + 1)) {
                return false;
            }
            for (uint32_t j = 0; j < place->param_count; j++) {
                front->cells[count++] = program->params.items[place->first_param + j].cell;
            }
            if (place->variable) {
                front->cells[count++] = place->variable;
            }
        }
        variables->count = (uint32_t)count - variables->first;
        front->has_keys = front->has_keys || task->has_keys;
        uint32_t words = task->axis_count + task->scalar_count + variables->count + 3;
        *out_word_count = words > *out_word_count ? words : *out_word_count;
    }
    *out_word_count -= front->has_keys || *out_word_count < 5 ? 0 : 3;
    *out_word_count += 1;  // the op
    return true;
}

static uint32_t pwsp_frontend_capacity(const ptowsp_schedule *schedule) {
    uint64_t window = schedule->window ? schedule->window : PWSP_FRONTEND_WINDOW_MAX;
    uint64_t ring = schedule->ring_sizes[PTOWSP_RING_TASKS];
    window = ring ? pwsp_min_u64(window, ring) : window;
    return (uint32_t)pwsp_min_u64(window, PWSP_FRONTEND_WINDOW_MAX);
}

static uint32_t pwsp_frontend_tile_max(const ptowsp_program *program) {
    uint32_t count = 1;  // of a slot load
    for (uint32_t i = 0; i < program->tasks.count; i++) {
        uint32_t views = program->tasks.items[i].view_count;
        count = views > count ? views : count;
    }
    return count;
}

static bool pwsp_frontend_init(pwsp_frontend *front) {
    const ptowsp_program *program = front->walk->program;
    const ptowsp_schedule *schedule = &program->schedule;
    PWSP_ZERO(pwsp_issue_desc, desc);
    front->lane_rule = pwsp_dispatch_rule(schedule->dispatch);
    front->is_homed = pwsp_dispatch_has_key(schedule->dispatch);
    if (!PWSP_ALLOC(&front->memory, front->variables, program->tasks.count + 1) ||
        !pwsp_frontend_list_variables(front, &front->tile_word)) {
        return false;
    }
    desc.place_count = pwsp_frontend_capacity(schedule);
    desc.tile_max = pwsp_frontend_tile_max(program);
    desc.word_count = front->tile_word + desc.tile_max * PWSP_FRONTEND_TILE_WORDS;
    return pwsp_issue_init(&front->issue, &front->memory, front->time->sim.timed, &desc) &&
           pwsp_pace_init(&front->pace, &front->memory, (uint32_t)program->kernels.count);
}

PWSP_INTERNAL bool pwsp_frontend_reserve(pwsp_frontend *front, uint32_t lane_count) {
    const ptowsp_program *program = front->walk->program;
    if (!PWSP_GROW(&front->memory, front->cores, front->core_capacity, lane_count)) {
        return false;
    }
    if (!pwsp_pace_reserve(&front->pace, lane_count) || !pwsp_frontend_reserve_blocks(front)) {
        return false;
    }
    while (front->core_count < lane_count) {
        pwsp_tile_core *core = &front->cores[front->core_count];
        core->memory = front->memory;
        for (uint32_t i = 1; i < program->kernels.count; i++) {
            const pwsp_kernel_info *kernel = &program->kernels.items[i];
            if (kernel->code && !pwsp_tile_core_reserve(core, kernel->code)) {
                return false;
            }
        }
        front->core_count++;
    }
    return true;
}

PWSP_INTERNAL bool pwsp_frontend_set_clock(pwsp_frontend *front, pwsp_recorder *recorder,
                                           bool is_lane) {
    front->clocked = recorder;
    front->is_lane = is_lane;
    return !recorder || front->marks ||
           PWSP_ALLOC(&front->memory, front->marks, (size_t)front->issue.reorder.place_mask + 1);
}

// NULL is ignored.
static void pwsp_frontend_destroy(pwsp_frontend *front) {
    if (!front) {
        return;
    }
    const pwsp_memory memory = front->blocks.under;
    pwsp_blocks_free(&front->blocks);
    PWSP_FREE(&memory, front, 1);
}

PWSP_INTERNAL pwsp_frontend *pwsp_frontend_create(pwsp_walk *walk, pwsp_timeline *time,
                                                  pwsp_pipes *pipes, pwsp_batch *batch) {
    pwsp_frontend *front = (pwsp_frontend *)pwsp_memory_alloc(&walk->memory, sizeof(pwsp_frontend));
    if (front) {
        front->memory = pwsp_blocks_begin(&front->blocks, &walk->memory);
        front->walk = walk;
        front->time = time;
        front->pipes = pipes;
        front->batch = batch;
        if (!pwsp_frontend_init(front)) {
            pwsp_frontend_destroy(front);
            return NULL;
        }
    }
    return front;
}

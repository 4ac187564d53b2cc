// A program as a stream: the walk hands each event to a sink, which is five callbacks. Kernels are
// called here, too: to execute them, or to learn how long they take.
//
//      walk --> stream --> dry       checks, before any kernel runs     run_walk.c
//                      |-> clock     kernel, then time                  run_walk.c
//                      |-> engine    issues to lanes or cores           frontend.c
//                      '-> search    orders of processes                run_explore.c
//
// The stream is the only switch over the events of a program; the ops of processes have one of their
// own (csp/order.c). A sink is a constant, and the stream is inlined where it is used, so the calls
// are direct.

#ifndef PWSP_WALK_H
#define PWSP_WALK_H

#include "../base/halt.h"
#include "../runtime/deps.h"
#include "bind.h"
#include "communicate.h"

// The cycles of a tile kernel for the valid sizes and scalars of its last call.
typedef struct pwsp_tile_memo {
    bool is_set;
    uint32_t sizes[2 * PTOWSP_TASK_TILE_MAX];
    uint64_t scalars[PTOWSP_TASK_SCALAR_MAX];  // which may be bounds of loops
    ptowsp_cycles cycles;
} pwsp_tile_memo;

// The same of their traffic, where lanes share memory.
typedef struct pwsp_demand_memo {
    pwsp_tile_memo of;
    pwsp_demand demand;
} pwsp_demand_memo;

typedef struct pwsp_walk {
    pwsp_memory memory;
    const ptowsp_program *program;
    const pwsp_bindings *bindings;
    bool is_time_only;  // this execution
    pwsp_expander expander;
    uint64_t *cells;
    uint64_t *columns;
    pwsp_frame *frames;
    bool *is_written;  // by tensor: by a task, through this or another tensor
    uint8_t *unknown;  // by op, for is_written
    bool is_unknown_set;
    pwsp_tile_core tile_core;
    ptowsp_cost cost;
    pwsp_tile_memo *memos;           // by kernel
    bool has_demand;                 // lanes share memory
    pwsp_demand_memo *demand_memos;  // by kernel, if so
    pwsp_demand demand;              // of the last task
    // What if: the kernel whose tasks take other cycles, in percent. 0: none.
    uint32_t scaled_kernel, scaled_percent;
    pwsp_halt halt;  // ends the execution early
    pwsp_comm comm;  // with other ranks
} pwsp_walk;

// False when memory is out. The object must not be moved.
PWSP_INTERNAL bool pwsp_walk_init(pwsp_walk *walk, const pwsp_memory *memory,
                                  const pwsp_bindings *bindings);

// Sets how tile kernels count from now on.
PWSP_INTERNAL void pwsp_walk_set_cost(pwsp_walk *walk, const ptowsp_cost *cost);

// Finds the values that are unknown before kernels have run. deps must have begun with the
// bindings.
PWSP_INTERNAL ptowsp_status pwsp_walk_find_unknown(pwsp_walk *walk, const pwsp_deps *deps);

// Begins at the program's start, dry: unknown values are skipped.
PWSP_INTERNAL void pwsp_walk_begin(pwsp_walk *walk, bool is_dry);

// Is the execution to end early? Then with the expander's error.
PWSP_FORCE_INLINE bool pwsp_walk_is_cut(pwsp_walk *walk) {
    return pwsp_halt_is(&walk->halt) && pwsp_expander_fail_halt(&walk->expander, &walk->halt);
}

// The event, or ERROR if the execution is to end early. At its end it does not.
PWSP_FORCE_INLINE pwsp_event pwsp_walk_event(pwsp_walk *walk, pwsp_event event) {
    return event != PWSP_EVENT_END && pwsp_walk_is_cut(walk) ? PWSP_EVENT_ERROR : event;
}

// Copies the expander's error to the context.
PWSP_INTERNAL ptowsp_status pwsp_walk_fail(const pwsp_walk *walk);

// Records in the expander that a kernel failed, or its cost function where only that was called;
// returns false.
PWSP_INTERNAL bool pwsp_walk_fail_kernel(pwsp_expander *x, ptowsp_cycles result);
PWSP_INTERNAL bool pwsp_walk_fail_cost(pwsp_expander *x, ptowsp_cycles result);

// Records in the expander that a key of the schedule reads beyond an array; returns false.
PWSP_INTERNAL bool pwsp_walk_fail_keys(pwsp_expander *x);

// Records in the expander why a tile kernel's task is refused, by walk->tile_core; returns false.
PWSP_INTERNAL bool pwsp_walk_fail_tiles(pwsp_walk *walk);

// Do the sizes of a tile kernel's task match? False with the expander's error.
PWSP_INTERNAL bool pwsp_walk_check_tiles(pwsp_walk *walk, const pwsp_tile_code *code);

// Runs a tile kernel, or counts its cycles: once for consecutive tasks of the same sizes. False
// with the expander's error.
PWSP_INTERNAL bool pwsp_walk_tiles(pwsp_walk *walk, bool is_time_only, ptowsp_cycles *out_cycles);

// Sets the traffic of a task whose arrival is complete otherwise. False with the expander's error.
PWSP_INTERNAL bool pwsp_walk_find_demand(pwsp_walk *walk, const ptowsp_task *task,
                                         pwsp_arrival *arrival);

PWSP_INLINE bool pwsp_walk_set_demand(pwsp_walk *walk, const ptowsp_task *task,
                                      pwsp_arrival *arrival) {
    arrival->demand = NULL;
    return PWSP_LIKELY(!walk->has_demand) || pwsp_walk_find_demand(walk, task, arrival);
}

// Runs a task that communicates, or finds its cycles. False with the expander's error.
PWSP_INTERNAL bool pwsp_walk_communicate(pwsp_walk *walk, bool is_time_only,
                                         ptowsp_cycles *out_cycles);

// Records in the expander why such a task failed or is refused; returns false.
PWSP_INTERNAL bool pwsp_walk_fail_comm(pwsp_expander *x, const pwsp_error *error);

// The view of tiles that a cost function gets.
static const ptowsp_tile pwsp_no_tiles[PTOWSP_TASK_TILE_MAX] = {{NULL, 0, 0}};

// Calls a C kernel, or only its cost function; returns its cycles, or a failure.
PWSP_FORCE_INLINE ptowsp_cycles pwsp_kernel_call(const pwsp_kernel_info *kernel, ptowsp_task *task,
                                                 bool is_time_only) {
    ptowsp_cycles cycles = kernel->cycles;
    if (kernel->cost) {
        const ptowsp_tile *tiles = task->tiles;
        task->tiles = pwsp_no_tiles;
        cycles = kernel->cost(task, kernel->user);
        task->tiles = tiles;
        if (cycles > PTOWSP_CYCLES_MAX) {
            return cycles;
        }
    }
    if (!is_time_only) {
        ptowsp_cycles result = kernel->fn(task, kernel->user);
        if (result > PTOWSP_CYCLES_MAX) {
            return result;
        }
        cycles = kernel->cost || kernel->cycles ? cycles : result;
    }
    return cycles;
}

// Runs the kernel of the expander's current task and returns its duration. False with the
// expander's error.
PWSP_FORCE_INLINE bool pwsp_walk_kernel(pwsp_walk *walk, bool is_time_only,
                                        ptowsp_cycles *out_cycles) {
    pwsp_expander *x = &walk->expander;
    if (PWSP_UNLIKELY(is_time_only && x->task_op->has_cycles)) {
        *out_cycles = *x->list.cycles;
        return true;
    }
    if (x->kernel->code) {
        return pwsp_walk_tiles(walk, is_time_only, out_cycles);
    }
    if (PWSP_UNLIKELY(x->kernel->unit == PTOWSP_UNIT_LINK)) {
        return pwsp_walk_communicate(walk, is_time_only, out_cycles);
    }
    *out_cycles = pwsp_kernel_call(x->kernel, &x->task, is_time_only);
    return *out_cycles <= PTOWSP_CYCLES_MAX ||
           (is_time_only ? pwsp_walk_fail_cost(x, *out_cycles)
                         : pwsp_walk_fail_kernel(x, *out_cycles));
}

// Does the cost function alone give a kernel's cycles when only time is measured?
PWSP_INLINE bool pwsp_kernel_has_cost_alone(const pwsp_kernel_info *kernel) {
    return kernel->cost && !kernel->code && kernel->unit != PTOWSP_UNIT_LINK;
}

// Calls that function for the expander's current task, which has pwsp_no_tiles. False with the
// expander's error.
PWSP_FORCE_INLINE bool pwsp_walk_cost(pwsp_expander *x, ptowsp_cycles *out_cycles) {
    *out_cycles = x->kernel->cost(&x->task, x->kernel->user);
    return *out_cycles <= PTOWSP_CYCLES_MAX || pwsp_walk_fail_cost(x, *out_cycles);
}

// The cycles of the current task as they are asked for.
PWSP_INLINE ptowsp_cycles pwsp_walk_scaled(const pwsp_walk *walk, ptowsp_cycles cycles) {
    uint64_t percent = walk->scaled_percent;
    bool is_scaled = walk->scaled_kernel && walk->expander.task_op->kernel == walk->scaled_kernel;
    return is_scaled ? pwsp_min_u64(cycles / 100 * percent + cycles % 100 * percent / 100,
                                    PTOWSP_CYCLES_MAX)
                     : cycles;
}

// The keys of a task; false with the expander's error.
PWSP_FORCE_INLINE bool pwsp_walk_keys(pwsp_expander *x, pwsp_arrival *arrival) {
    if (!x->task_op->has_keys) {
        arrival->dispatch_key = arrival->priority_key = arrival->stream_key = 0;
        return true;
    }
    arrival->dispatch_key = pwsp_expander_value(x, x->task_op->dispatch);
    arrival->priority_key = pwsp_expander_value(x, x->task_op->priority);
    arrival->stream_key = pwsp_expander_value(x, x->task_op->stream);
    return PWSP_LIKELY(!x->fault.is_set) || pwsp_walk_fail_keys(x);
}

// The explicit edges of a task or pipeline.
PWSP_FORCE_INLINE void pwsp_arrival_set_edges(pwsp_arrival *arrival, const ptowsp_program *program,
                                              const pwsp_task_op *op) {
    const uint32_t *edges = (const uint32_t *)program->edges.items;  // NULL without edges
    arrival->after = op->in_count ? edges + op->first_in : NULL;
    arrival->after_count = op->in_count;
    arrival->before = op->out_count ? edges + op->first_out : NULL;
    arrival->before_count = op->out_count;
}

// Everything about the expander's current task except keys and cycles.
PWSP_FORCE_INLINE void pwsp_walk_arrival(const pwsp_expander *x, pwsp_arrival *arrival) {
    arrival->tiles = x->tiles_at;
    arrival->tile_count = x->task_op->view_count;
    arrival->args = x->task.args;
    arrival->scalars = x->task.args + x->task.axis_arg_count;
    arrival->kernel = x->task_op->kernel;
    arrival->node = x->node;
    arrival->unit = x->kernel->unit;
    arrival->pool = x->kernel->pool;
    pwsp_arrival_set_edges(arrival, x->program, x->task_op);
}

// -- the stream -------------------------------------------------------------------------------------

// Each callback gets `user` and finds its event in the expander. False stops the stream: after a
// failure, which the sink knows, or because the sink or another one continues later. NULL: the
// event has no effect; a load is done, and nothing else.
typedef struct pwsp_sink {
    bool (*task)(void *user);
    bool (*mark)(void *user, const pwsp_mark *mark);
    bool (*load)(void *user);
    bool (*pipeline)(void *user);
    bool (*end)(void *user);
} pwsp_sink;

// Hands one event over. False if the sink stops, or for an ERROR, which is the expander's.
PWSP_FORCE_INLINE bool pwsp_stream_give(pwsp_walk *walk, const pwsp_sink *sink, void *user,
                                        pwsp_event event) {
    switch (event) {
    case PWSP_EVENT_TASK: return !sink->task || sink->task(user);
    case PWSP_EVENT_MARK: return !sink->mark || sink->mark(user, &walk->expander.mark);
    case PWSP_EVENT_SLOT_LOAD:
        if (sink->load) {
            return sink->load(user);
        }
        pwsp_expander_load(&walk->expander);
        return true;
    case PWSP_EVENT_PIPELINE: return !sink->pipeline || sink->pipeline(user);
    case PWSP_EVENT_END: return !sink->end || sink->end(user);
    case PWSP_EVENT_ERROR: return false;
    default: return true;  // none, and tokens of processes
    }
}

// Walks on to the end of the program, or of a process. *event is handed over first, if there is one.
// False when the stream stops: at *event.
PWSP_FORCE_INLINE bool pwsp_stream_run(pwsp_walk *walk, const pwsp_sink *sink, void *user,
                                       pwsp_event *event) {
    bool goes_on = pwsp_stream_give(walk, sink, user, *event);
    while (goes_on && *event != PWSP_EVENT_END && *event != PWSP_EVENT_PROCESS_END) {
        *event = pwsp_walk_event(walk, pwsp_expander_next(&walk->expander));
        goes_on = pwsp_stream_give(walk, sink, user, *event);
    }
    return goes_on;
}

#endif

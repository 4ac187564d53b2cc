// Descriptions of pipelines, written by hand or at random, as modules: functions that write one
// like the loops that it describes, and the same made with the public builder, bound and logged.
//
// All tasks use one kernel of four axis arguments, which are all that its cycles depend on: what it
// costs and what it returns when called are the same number, and its calls are logged. If asked to,
// each also updates a cell of a tensor that its first argument chooses, and before it a slot is
// loaded from another one, which is logged, too. If asked to, tasks that always take the same few
// cycles use kernels that say so, and some tasks are in a workload that is called.

#ifndef PTOWSP_PIPELINE_BUILD_H
#define PTOWSP_PIPELINE_BUILD_H

#include "pipeline_reference.h"

// -- writing descriptions -------------------------------------------------------------------------

// Where statements are added: the bodies that are open, the innermost last.
typedef struct sim_writer {
    sim_pipeline *p;
    int process;
    int depth;
    int *heads[SIM_FRAME_MAX];  // the first statement of each body
    int tails[SIM_FRAME_MAX];   // the last one; -1: none yet
} sim_writer;

static inline int sim_expr_add(sim_pipeline *p, sim_op op, int a, int b, int64_t value) {
    if (p->expr_count + 1 >= SIM_EXPR_MAX) {
        p->is_full = true;
        return 1;
    }
    sim_expr e = {op, a, b, value};
    p->exprs[++p->expr_count] = e;  // from 1
    return p->expr_count;
}

static inline int sim_literal(sim_pipeline *p, int64_t value) {
    return sim_expr_add(p, SIM_LITERAL, 0, 0, value);
}

static inline int sim_binary(sim_pipeline *p, sim_op op, int a, int b) {
    return sim_expr_add(p, op, a, b, 0);
}

// The variable of a loop, consume or receive.
static inline int sim_variable(sim_pipeline *p, int stmt) {
    return sim_expr_add(p, SIM_VARIABLE, 0, 0, stmt);
}

// Begins an empty description.
static inline void sim_begin(sim_writer *w, sim_pipeline *p) {
    memset(p, 0, sizeof *p);
    memset(w, 0, sizeof *w);
    w->p = p;
}

static inline int sim_channel_add(sim_writer *w, uint32_t depth, uint64_t latency) {
    assert_true(w->p->channel_count < SIM_CHANNEL_MAX);
    w->p->channels[w->p->channel_count].depth = depth;
    w->p->channels[w->p->channel_count].latency = latency;
    return w->p->channel_count++;
}

static inline int sim_event_add(sim_writer *w) {
    int channel = sim_channel_add(w, 0, 0);
    w->p->channels[channel].is_event = true;
    return channel;
}

static inline void sim_open_body(sim_writer *w, int *head) {
    assert_true(w->depth < SIM_FRAME_MAX);
    *head = -1;
    w->heads[w->depth] = head;
    w->tails[w->depth++] = -1;
}

static inline void sim_end(sim_writer *w) {
    w->depth--;
}

// Begins a process, which ends with sim_end.
static inline sim_process *sim_process_add(sim_writer *w) {
    assert_true(w->p->process_count < SIM_PROCESS_MAX && w->depth == 0);
    sim_process *process = &w->p->processes[w->p->process_count++];
    sim_open_body(w, &process->body);
    return process;
}

static inline void sim_port_add(int *ports, int *count, int channel) {
    for (int i = 0; i < *count; i++) {
        if (ports[i] == channel) {
            return;
        }
    }
    assert_true(*count < SIM_PORT_MAX);
    ports[(*count)++] = channel;
}

static inline void sim_consumes(sim_process *process, int channel) {
    sim_port_add(process->consumes, &process->consume_count, channel);
}

static inline void sim_produces(sim_process *process, int channel) {
    sim_port_add(process->produces, &process->produce_count, channel);
}

// A process that consumes one channel and produces another; -1: none.
static inline sim_process *sim_process_between(sim_writer *w, int from, int to) {
    sim_process *process = sim_process_add(w);
    if (from >= 0) {
        sim_consumes(process, from);
    }
    if (to >= 0) {
        sim_produces(process, to);
    }
    return process;
}

// Ends all bodies, and the process.
static inline void sim_process_end(sim_writer *w) {
    w->depth = 0;
}

static inline int sim_stmt_add(sim_writer *w, sim_kind kind) {
    sim_pipeline *p = w->p;
    if (p->stmt_count == SIM_STMT_MAX) {
        p->is_full = true;
        return SIM_STMT_MAX - 1;
    }
    int number = p->stmt_count++, tail = w->tails[w->depth - 1];
    p->stmts[number].kind = kind;
    p->stmts[number].next = p->stmts[number].body = p->stmts[number].otherwise = -1;
    if (tail < 0) {
        *w->heads[w->depth - 1] = number;
    } else {
        p->stmts[tail].next = number;
    }
    w->tails[w->depth - 1] = number;
    return number;
}

// The following begin a body, which ends with sim_end, and return the statement.
static inline int sim_for(sim_writer *w, int64_t count) {
    int number = sim_stmt_add(w, SIM_FOR);
    w->p->stmts[number].count = count;
    sim_open_body(w, &w->p->stmts[number].body);
    return number;
}

static inline int sim_take(sim_writer *w, sim_kind kind, int channel) {
    int number = sim_stmt_add(w, kind);
    w->p->stmts[number].channel = channel;
    sim_open_body(w, &w->p->stmts[number].body);
    return number;
}

static inline int sim_when(sim_writer *w, int condition) {
    int number = sim_stmt_add(w, SIM_WHEN);
    w->p->stmts[number].expr = condition;
    sim_open_body(w, &w->p->stmts[number].body);
    return number;
}

static inline int sim_scope(sim_writer *w, bool is_parallel) {
    int number = sim_stmt_add(w, SIM_SCOPE);
    w->p->stmts[number].is_parallel = is_parallel;
    sim_open_body(w, &w->p->stmts[number].body);
    return number;
}

static inline void sim_otherwise(sim_writer *w, int when) {
    sim_open_body(w, &w->p->stmts[when].otherwise);
}

static inline int sim_task_add(sim_writer *w, int value, int64_t base, int64_t spread) {
    int number = sim_stmt_add(w, SIM_TASK);
    w->p->stmts[number].expr = value;
    w->p->stmts[number].base = base;
    w->p->stmts[number].spread = spread;
    return number;
}

static inline void sim_send_task_add(sim_writer *w, int channel, int value, int64_t base,
                                     int64_t spread) {
    int number = sim_task_add(w, value, base, spread);
    w->p->stmts[number].kind = SIM_SEND_TASK;
    w->p->stmts[number].channel = channel;
}

// A send, close, record or wait.
static inline void sim_port(sim_writer *w, sim_kind kind, int channel, int token) {
    int number = sim_stmt_add(w, kind);
    w->p->stmts[number].channel = channel;
    w->p->stmts[number].expr = token;
}

static inline void sim_slot_set(sim_writer *w, uint32_t slot, int value) {
    int number = sim_stmt_add(w, SIM_SLOT_SET);
    w->p->stmts[number].slot = slot;
    w->p->stmts[number].expr = value;
}

// -- as modules -----------------------------------------------------------------------------------

enum {
    SIM_CALL_MAX = 3 * SIM_STEP_MAX + 2,
    SIM_CELL_COUNT = 8,
    SIM_FIXED_MAX = 8,
    SIM_SITE_BEFORE = SIM_STMT_MAX,  // of the tasks around the pipeline
    SIM_SITE_AFTER
};

typedef enum sim_issue {
    SIM_DATAFLOW = 0,
    SIM_IN_ORDER,
    SIM_STEALING,  // lanes choose
    SIM_ISSUE_COUNT
} sim_issue;

// What is around a pipeline in its workload. It runs `rounds` times, as bound.
typedef struct sim_around {
    int64_t before, after;  // cycles of a task there; 0: there is none
    sim_issue issue;
    bool has_no_cost;  // the kernel says its cycles when called
    bool has_data;     // tasks update cells, slots are loaded from them
    bool has_fixed;    // kernels of fixed cycles do the tasks without spread
    bool has_calls;    // every third task is called; not with data
} sim_around;

typedef struct sim_built {
    const sim_pipeline *p;
    sim_around around;
    ptowsp_context *context;
    ptowsp_module *module;
    ptowsp_program *program;  // NULL: it could not be compiled, for `status`
    ptowsp_status status;
    ptowsp_kernel kernel;
    ptowsp_kernel fixed[SIM_FIXED_MAX];  // by cycles; the first is none
    ptowsp_axis axes[SIM_STMT_MAX], replica_axes[SIM_PROCESS_MAX], rounds, lengths;
    ptowsp_channel channels[SIM_CHANNEL_MAX];
    ptowsp_expr variables[SIM_STMT_MAX], replica, round;
    uint32_t nodes[SIM_STMT_MAX];  // of tasks
    int32_t bound_lengths[SIM_LENGTH_COUNT];
    ptowsp_tensor cells;
    int32_t data[SIM_CELL_COUNT];
    lane_watch *lanes;    // which sees each call; NULL: tasks are called in program order
    uint64_t call_count;  // atomic
    int64_t calls[SIM_CALL_MAX][2];
    uint64_t loaded[SIM_CALL_MAX];  // by task
} sim_built;

// "chan_c". There are few things of a kind, and none's name is a part of another's.
typedef struct sim_name {
    char text[24];
} sim_name;

static inline sim_name sim_named(const char *kind, int number) {
    sim_name name;
    snprintf(name.text, sizeof name.text, "%s_%c", kind, 'a' + number % 26);
    return name;
}

static inline sim_name sim_numbered(const char *kind, int number) {
    sim_name name;
    snprintf(name.text, sizeof name.text, "%s%d", kind, number);
    return name;
}

static inline ptowsp_cycles sim_kernel_fn(const ptowsp_task *task, void *user) {
    sim_built *built = (sim_built *)user;
    int64_t value = ptowsp_task_axis(task, 0), site = ptowsp_task_axis(task, 1);
    uint64_t call = __atomic_fetch_add(&built->call_count, 1u, __ATOMIC_RELAXED);
    if (built->lanes) {
        lane_watch_enter(built->lanes, task);
    } else {
        assert_true(task->index == call);
    }
    assert_true(task->index < SIM_CALL_MAX);
    built->calls[task->index][0] = value;
    built->calls[task->index][1] = site;
    if (task->tile_count > 0) {
        built->loaded[task->index] = ptowsp_task_scalar(task, 0);
    }
    const ptowsp_cycles cycles = sim_work(task, NULL);
    if (built->lanes) {
        lane_watch_leave(built->lanes, task);
    }
    return cycles;
}

static inline ptowsp_expr sim_build_expr(const sim_built *built, int number) {
    const sim_expr *e = &built->p->exprs[number];
    ptowsp_module *m = built->module;
    if (e->a) {
        ptowsp_expr a = sim_build_expr(built, e->a), b = sim_build_expr(built, e->b);
        return e->op == SIM_ADD     ? ptowsp_add(a, b)
               : e->op == SIM_SUB   ? ptowsp_sub(a, b)
               : e->op == SIM_MUL   ? ptowsp_mul(a, b)
               : e->op == SIM_REM   ? ptowsp_rem(a, b)
               : e->op == SIM_EQUAL ? ptowsp_eq(a, b)
                                    : ptowsp_lt(a, b);
    }
    switch (e->op) {
    case SIM_LITERAL: return ptowsp_i64(m, e->value);
    case SIM_VARIABLE: return built->variables[e->value];
    case SIM_REPLICA: return built->replica;
    case SIM_ROUND: return built->round;
    case SIM_SYMBOL:
        return ptowsp_cast(ptowsp_symbol(m, sim_named("symbol", (int)e->value).text),
                           PTOWSP_TYPE_I64);
    default:
        assert_int_equal(e->op, SIM_SLOT);
        return ptowsp_slot(m, (uint32_t)e->value, PTOWSP_TYPE_I64);
    }
}

// The cell that a value chooses.
static inline ptowsp_view sim_cell(const sim_built *built, ptowsp_expr value) {
    ptowsp_view view;
    memset(&view, 0, sizeof view);
    view.tensor = built->cells;
    view.col = ptowsp_bitand(value, ptowsp_i64(built->module, SIM_CELL_COUNT - 1));
    view.rows = view.cols = 1;
    return view;
}

// A task, before which a slot is loaded if there are cells.
static inline ptowsp_task_desc sim_task_desc(const sim_built *built, ptowsp_expr value,
                                             int64_t site, int64_t base, int64_t spread) {
    ptowsp_module *m = built->module;
    ptowsp_task_desc desc;
    memset(&desc, 0, sizeof desc);
    bool is_fixed = built->around.has_fixed && spread == 0 && 0 < base && base < SIM_FIXED_MAX;
    desc.kernel = is_fixed ? built->fixed[base] : built->kernel;
    desc.axes[0] = value;
    desc.axes[1] = ptowsp_i64(m, site);
    desc.axes[2] = ptowsp_i64(m, base);
    desc.axes[3] = ptowsp_i64(m, spread);
    if (built->around.has_data) {
        ptowsp_view other = sim_cell(built, ptowsp_add(value, ptowsp_i64(m, site % 3)));
        ptowsp_slot_load_make(m, SIM_SLOT_COUNT, &other, ptowsp_i64(m, 0), ptowsp_i64(m, 0));
        desc.views[0] = sim_cell(built, value);
        desc.scalars[0] = ptowsp_slot(m, SIM_SLOT_COUNT, PTOWSP_TYPE_U64);
    }
    return desc;
}

static inline void sim_build_call(const sim_built *built, const sim_stmt *stmt, int number) {
    ptowsp_module *m = built->module;
    const ptowsp_expr args[4] = {sim_build_expr(built, stmt->expr), ptowsp_i64(m, number),
                                 ptowsp_i64(m, stmt->base), ptowsp_i64(m, stmt->spread)};
    ptowsp_call_make(m, "called", args, 4);
}

// The workload that is called: a loop whose first iteration has the task.
static inline void sim_build_called(const sim_built *built) {
    static const char *const names[] = {"a", "b", "c", "d"};
    ptowsp_module *m = built->module;
    ptowsp_task_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.kernel = built->kernel;
    ptowsp_workload_begin(m, "called");
    for (int i = 0; i < 4; i++) {
        desc.axes[i] = ptowsp_workload_param(m, names[i], PTOWSP_TYPE_I64);
    }
    const ptowsp_expr i = ptowsp_for_each_begin(m, "i", ptowsp_axis_dense(m, "two", 2));
    ptowsp_when_begin(m, ptowsp_eq(i, ptowsp_i64(m, 0)));
    ptowsp_task_make(m, &desc);
    ptowsp_scope_end(m);
    ptowsp_scope_end(m);
    ptowsp_scope_end(m);
}

static inline void sim_build_body(sim_built *built, int first);

// A statement with a variable.
static inline void sim_build_loop(sim_built *built, int number) {
    const sim_stmt *stmt = &built->p->stmts[number];
    ptowsp_module *m = built->module;
    sim_name name = sim_numbered("v", number);
    ptowsp_axis axis = built->axes[number];
    ptowsp_expr variable;
    if (stmt->kind == SIM_CONSUME) {
        variable = ptowsp_consume_begin(m, name.text, built->channels[stmt->channel]);
    } else if (stmt->kind == SIM_RECEIVE) {
        variable = ptowsp_receive_begin(m, name.text, built->channels[stmt->channel]);
    } else {
        if (stmt->loop == SIM_ROW) {
            ptowsp_expr row = sim_build_expr(built, stmt->expr);
            axis = ptowsp_axis_row(m, built->lengths, ptowsp_bitand(row, ptowsp_i64(m, 3)));
        }
        variable = stmt->is_parallel ? ptowsp_parallel_begin(m, name.text, axis)
                                     : ptowsp_for_each_begin(m, name.text, axis);
    }
    built->variables[number] = variable;
    sim_build_body(built, stmt->body);
    ptowsp_scope_end(m);
}

static inline void sim_build_stmt(sim_built *built, int number) {
    const sim_stmt *stmt = &built->p->stmts[number];
    ptowsp_module *m = built->module;
    ptowsp_channel channel = built->channels[stmt->channel];
    switch (stmt->kind) {
    case SIM_FOR:
    case SIM_CONSUME:
    case SIM_RECEIVE: sim_build_loop(built, number); break;
    case SIM_WHEN:
        ptowsp_when_begin(m, sim_build_expr(built, stmt->expr));
        sim_build_body(built, stmt->body);
        ptowsp_scope_end(m);
        if (stmt->otherwise >= 0) {
            ptowsp_otherwise_begin(m);
            sim_build_body(built, stmt->otherwise);
            ptowsp_scope_end(m);
        }
        break;
    case SIM_SCOPE:
        (stmt->is_parallel ? ptowsp_combine_begin : ptowsp_sequence_begin)(m);
        sim_build_body(built, stmt->body);
        ptowsp_scope_end(m);
        break;
    case SIM_TASK:
        if (built->around.has_calls && number % 3 == 0) {
            sim_build_call(built, stmt, number);
            break;
        }  // fall through
    case SIM_SEND_TASK: {
        ptowsp_task_desc desc = sim_task_desc(built, sim_build_expr(built, stmt->expr), number,
                                              stmt->base, stmt->spread);
        built->nodes[number] = stmt->kind == SIM_TASK ? ptowsp_task_make(m, &desc).id
                                                      : ptowsp_send_task_make(m, channel, &desc).id;
        break;
    }
    case SIM_SEND: ptowsp_send_make(m, channel, sim_build_expr(built, stmt->expr)); break;
    case SIM_CLOSE: ptowsp_close_make(m, channel); break;
    case SIM_RECORD: ptowsp_record_make(m, channel); break;
    case SIM_WAIT: ptowsp_wait_make(m, channel); break;
    case SIM_SLOT_SET:
        ptowsp_slot_set_make(m, stmt->slot, sim_build_expr(built, stmt->expr));
        break;
    }
}

static inline void sim_build_body(sim_built *built, int first) {
    for (int number = first; number >= 0; number = built->p->stmts[number].next) {
        sim_build_stmt(built, number);
    }
}

static inline void sim_build_channels(sim_built *built) {
    ptowsp_module *m = built->module;
    for (int c = 0; c < built->p->channel_count; c++) {
        const sim_channel *channel = &built->p->channels[c];
        if (channel->is_event) {
            built->channels[c] = ptowsp_event_make(m, sim_named("chan", c).text);
            continue;
        }
        ptowsp_channel_desc desc;
        sim_name name = sim_named("chan", c);
        memset(&desc, 0, sizeof desc);
        desc.name = name.text;
        desc.depth = channel->depth;
        desc.latency = channel->latency;
        if (channel->depth_is_bound) {
            desc.depth_at_start = ptowsp_symbol(m, sim_named("depth", c).text);
        }
        if (channel->latency_is_bound) {
            desc.latency_at_start = ptowsp_symbol(m, sim_named("latency", c).text);
        }
        built->channels[c] = ptowsp_channel_make(m, &desc);
    }
}

static inline void sim_build_processes(sim_built *built) {
    ptowsp_module *m = built->module;
    for (int i = 0; i < built->p->process_count; i++) {
        const sim_process *process = &built->p->processes[i];
        built->replica = ptowsp_i64(m, 0);  // of a process that is alone
        if (process->replicas == SIM_PLAIN) {
            ptowsp_process_begin(m, sim_named("proc", i).text);
        } else {
            built->replica = ptowsp_replicate_begin(m, "replica", built->replica_axes[i],
                                                    sim_named("proc", i).text);
        }
        for (int c = 0; c < process->consume_count; c++) {
            ptowsp_consumes(m, built->channels[process->consumes[c]]);
        }
        for (int c = 0; c < process->produce_count; c++) {
            ptowsp_produces(m, built->channels[process->produces[c]]);
        }
        sim_build_body(built, process->body);
        ptowsp_scope_end(m);
    }
}

// Around the pipeline: the task before, the loop over rounds, which sets the slots, the task after.
static inline void sim_build_workload(sim_built *built) {
    ptowsp_module *m = built->module;
    ptowsp_expr zero = ptowsp_i64(m, 0);
    ptowsp_workload_begin(m, "main");
    if (built->around.before) {
        ptowsp_task_desc desc =
            sim_task_desc(built, zero, SIM_SITE_BEFORE, built->around.before, 0);
        ptowsp_task_make(m, &desc);
    }
    built->round = ptowsp_for_each_begin(m, "round", built->rounds);
    for (uint32_t slot = 0; slot < SIM_SLOT_COUNT; slot++) {
        ptowsp_expr start =
            ptowsp_cast(ptowsp_symbol(m, sim_named("start", (int)slot).text), PTOWSP_TYPE_I64);
        ptowsp_slot_set_make(m, slot, slot == 0 ? ptowsp_add(start, built->round) : start);
    }
    ptowsp_pipeline_begin(m, "line", NULL, 0);
    sim_build_channels(built);
    sim_build_processes(built);
    ptowsp_scope_end(m);
    ptowsp_scope_end(m);
    if (built->around.after) {
        ptowsp_task_desc desc = sim_task_desc(built, zero, SIM_SITE_AFTER, built->around.after, 0);
        ptowsp_task_make(m, &desc);
    }
    ptowsp_scope_end(m);
}

static inline void sim_build_axes(sim_built *built) {
    ptowsp_module *m = built->module;
    const sim_pipeline *p = built->p;
    built->rounds = ptowsp_axis_dynamic(m, "rounds");
    built->lengths = ptowsp_axis_ragged(m, "lengths");
    for (int i = 0; i < p->stmt_count; i++) {
        const sim_stmt *stmt = &p->stmts[i];
        if (stmt->kind == SIM_FOR && stmt->loop == SIM_DENSE) {
            built->axes[i] = ptowsp_axis_dense(m, sim_numbered("dense", i).text, stmt->count);
        } else if (stmt->kind == SIM_FOR && stmt->loop == SIM_DYNAMIC) {
            built->axes[i] = ptowsp_axis_dynamic(m, sim_numbered("size", i).text);
        }
    }
    for (int i = 0; i < p->process_count; i++) {
        sim_name name = sim_numbered("replicas", i);
        int64_t count = p->processes[i].replica_count;
        built->replica_axes[i] = p->processes[i].replicas == SIM_REPLICAS_DENSE
                                     ? ptowsp_axis_dense(m, name.text, count)
                                     : ptowsp_axis_dynamic(m, name.text);
    }
}

// Makes the module and compiles it.
static inline void sim_build(sim_built *built, ptowsp_context *context, const sim_pipeline *p,
                             const sim_around *around) {
    memset(built, 0, sizeof *built);
    built->p = p;
    built->around = *around;
    built->context = context;
    assert_ok(ptowsp_module_create(context, NULL, &built->module));
    ptowsp_kernel_desc kernel;
    memset(&kernel, 0, sizeof kernel);
    kernel.name = "work";
    kernel.axis_count = 4;
    kernel.fn = sim_kernel_fn;
    kernel.cost = around->has_no_cost ? NULL : sim_kernel_cost;
    kernel.user = built;
    if (around->has_data) {
        const ptowsp_tensor_desc cells = {
            "cells", PTOWSP_I32, 1, {SIM_CELL_COUNT, 0, 0, 0, 0, 0, 0, 0}, PTOWSP_LOCATION_GLOBAL};
        const ptowsp_tile_param tile = {"cell", PTOWSP_INOUT, PTOWSP_I32, 1, 1};
        const ptowsp_scalar_param loaded = {"loaded", PTOWSP_TYPE_U64};
        built->cells = ptowsp_tensor_make(built->module, &cells);
        kernel.tiles[0] = tile;
        kernel.scalars[0] = loaded;
    }
#ifdef SIM_KERNEL_SOURCE  // for emitting, of tests that do
    SIM_KERNEL_SOURCE(&kernel);
#endif
    built->kernel = ptowsp_kernel_make(built->module, &kernel);
    kernel.cost = NULL;
    for (int i = 1; around->has_fixed && i < SIM_FIXED_MAX; i++) {
        sim_name name = sim_numbered("fixed", i);
        kernel.name = name.text;
        kernel.cycles = (ptowsp_cycles)i;
        built->fixed[i] = ptowsp_kernel_make(built->module, &kernel);
    }
    sim_build_axes(built);
    if (around->has_calls) {
        sim_build_called(built);
    }
    sim_build_workload(built);
    ptowsp_schedule schedule;
    memset(&schedule, 0, sizeof schedule);
    if (around->issue == SIM_IN_ORDER) {
        schedule.issue = PTOWSP_ISSUE_IN_ORDER;
    } else if (around->issue == SIM_STEALING) {
        schedule.dispatch = PTOWSP_DISPATCH_WORK_STEALING;
        schedule.ready = PTOWSP_READY_WORK_STEALING;
        schedule.lane_count = 2;
    }
    const ptowsp_program_desc desc = {NULL, around->issue == SIM_DATAFLOW ? NULL : &schedule};
    built->status = ptowsp_program_create(context, built->module, &desc, &built->program);
}

static inline void sim_built_free(sim_built *built) {
    ptowsp_program_destroy(built->program);
    ptowsp_module_destroy(built->module);
}

// Binds all that the program has; the names that it has not are refused, which is as well.
static inline void sim_bind(sim_built *built, const sim_bindings *b, ptowsp_run *run) {
    const sim_pipeline *p = built->p;
    for (int c = 0; c < p->channel_count; c++) {
        if (p->channels[c].depth_is_bound) {
            assert_ok(ptowsp_run_bind_symbol(run, sim_named("depth", c).text, b->depths[c]));
        }
        if (p->channels[c].latency_is_bound) {
            assert_ok(ptowsp_run_bind_symbol(run, sim_named("latency", c).text, b->latencies[c]));
        }
    }
    for (int i = 0; i < p->process_count; i++) {
        if (p->processes[i].replicas == SIM_REPLICAS_DYNAMIC) {
            assert_ok(ptowsp_run_bind_size(run, sim_numbered("replicas", i).text, b->replicas[i]));
        }
    }
    for (int i = 0; i < p->stmt_count; i++) {
        if (p->stmts[i].kind == SIM_FOR && p->stmts[i].loop == SIM_DYNAMIC) {
            assert_ok(ptowsp_run_bind_size(run, sim_numbered("size", i).text, b->counts[i]));
        }
    }
    for (int i = 0; i < SIM_LENGTH_COUNT; i++) {
        built->bound_lengths[i] = (int32_t)b->lengths[i];
    }
    (void)ptowsp_run_bind_lengths(run, "lengths", PTOWSP_I32, built->bound_lengths,
                                  SIM_LENGTH_COUNT);
    for (int i = 0; i < SIM_SYMBOL_COUNT; i++) {
        (void)ptowsp_run_bind_symbol(run, sim_named("symbol", i).text, b->symbols[i]);
    }
    for (int i = 0; i < SIM_SLOT_COUNT; i++) {
        assert_ok(ptowsp_run_bind_symbol(run, sim_named("start", i).text, (uint64_t)b->slots[i]));
    }
    assert_ok(ptowsp_run_bind_size(run, "rounds", b->rounds));
    ptowsp_buffer buffer;
    memset(&buffer, 0, sizeof buffer);
    buffer.data = built->data;
    buffer.size = sizeof built->data;
    (void)ptowsp_run_bind_tensor(run, "cells", &buffer);
    if (b->has_latency) {
        assert_ok(ptowsp_run_bind_symbol(run, PTOWSP_CHANNEL_LATENCY_SYMBOL, b->latency));
    }
}

#endif

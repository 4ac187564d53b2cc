// The slow reference of pipelines: a description of one as plain data, and an interpreter that does
// what section 25 of the header says, with no cleverness. It shares nothing with the library but
// the types.
//
// Every process (each replica is one) is a stack of frames, one for each body that it is in, and
// the operation that comes next: a task, a send, a receive, a close, or the end. At each moment all
// processes are looked at; of those whose operation can be done, the one with the smallest (time,
// index) does it. A process that cannot keeps the time at which it arrived. One that waits for an
// event that nobody will record any more never can.
//
// All arrivals, sends and receives of a channel are kept for ever: token k of a channel of depth d
// is sent at max(arrival, r[k - d]), literally, and all statistics are counted afterwards from the
// lists. At depth 0 whoever's turn comes first begins to wait, and whoever's comes second meets it:
// of several that wait, the one with the smallest (arrival, index).

#ifndef PTOWSP_PIPELINE_REFERENCE_H
#define PTOWSP_PIPELINE_REFERENCE_H

#include "lane_fixture.h"

enum {
    SIM_PROCESS_MAX = 12,
    SIM_REPLICA_MAX = 3,
    SIM_WIDE_MAX = 48,  // replicas of those with many
    SIM_ACTOR_MAX = SIM_PROCESS_MAX * SIM_WIDE_MAX,
    SIM_CHANNEL_MAX = 16,
    SIM_PORT_MAX = 16,  // channels that a process consumes, or produces
    SIM_STMT_MAX = 400,
    SIM_EXPR_MAX = 1200,
    SIM_SLOT_COUNT = 4,
    SIM_SYMBOL_COUNT = 2,
    SIM_LENGTH_COUNT = 4,   // rows of the one ragged axis
    SIM_FRAME_MAX = 24,     // bodies in one another
    SIM_STEP_MAX = 3000,    // of one time that a pipeline runs
    SIM_CONTROL_MAX = 2000  // statements between two operations
};

// -- descriptions ---------------------------------------------------------------------------------

// Expressions are i64, those of EQUAL and LESS bool. Number 0 is none.
typedef enum sim_op {
    SIM_NONE = 0,
    SIM_LITERAL,
    SIM_VARIABLE,  // of the loop, consume or receive that is statement `value`
    SIM_REPLICA,
    SIM_ROUND,   // how many times the pipeline has run before
    SIM_SYMBOL,  // number `value`
    SIM_SLOT,    // number `value`
    SIM_ADD,
    SIM_SUB,
    SIM_MUL,
    SIM_REM,
    SIM_EQUAL,
    SIM_LESS
} sim_op;

typedef struct sim_expr {
    sim_op op;
    int a, b;
    int64_t value;
} sim_expr;

typedef enum sim_kind {
    SIM_FOR = 0,
    SIM_TASK,
    SIM_SEND,
    SIM_SEND_TASK,
    SIM_CONSUME,
    SIM_RECEIVE,
    SIM_CLOSE,
    SIM_WHEN,
    SIM_SCOPE,  // combine or sequence
    SIM_RECORD,
    SIM_WAIT,
    SIM_SLOT_SET
} sim_kind;

typedef enum sim_loop {
    SIM_DENSE = 0,  // `count` times
    SIM_DYNAMIC,    // as bound to the statement's axis
    SIM_ROW         // lengths[expr & 3] times
} sim_loop;

typedef struct sim_stmt {
    sim_kind kind;
    int next;       // in the same body; -1: none
    int body;       // its first statement; -1: empty
    int otherwise;  // of SIM_WHEN; -1: none
    int channel;
    int expr;  // the task's first axis argument, token, condition, value, row
    sim_loop loop;
    bool is_parallel;  // of a loop or scope: makes no difference in a process
    int64_t count;
    uint32_t slot;
    int64_t base, spread;  // of a task's cycles
} sim_stmt;

typedef enum sim_replicas {
    SIM_PLAIN = 0,        // one process
    SIM_REPLICAS_DENSE,   // `replica_count` of it
    SIM_REPLICAS_DYNAMIC  // as bound
} sim_replicas;

typedef struct sim_process {
    sim_replicas replicas;
    int replica_count;
    int body;
    int consumes[SIM_PORT_MAX], produces[SIM_PORT_MAX];
    int consume_count, produce_count;
} sim_process;

typedef struct sim_channel {
    bool is_event;
    bool depth_is_bound, latency_is_bound;  // by a symbol, at start
    uint32_t depth;
    uint64_t latency;
} sim_channel;

typedef struct sim_pipeline {
    int process_count, channel_count, stmt_count, expr_count;
    sim_process processes[SIM_PROCESS_MAX];
    sim_channel channels[SIM_CHANNEL_MAX];
    sim_stmt stmts[SIM_STMT_MAX];
    sim_expr exprs[SIM_EXPR_MAX];
    bool is_full;  // there was no room for some statement or expression
} sim_pipeline;

// What is bound to a run. Depths and latencies of channels, replicas and sizes are looked at where
// the description says so.
typedef struct sim_bindings {
    uint64_t depths[SIM_CHANNEL_MAX], latencies[SIM_CHANNEL_MAX];
    int64_t replicas[SIM_PROCESS_MAX];
    int64_t counts[SIM_STMT_MAX];
    int64_t lengths[SIM_LENGTH_COUNT];
    uint64_t symbols[SIM_SYMBOL_COUNT];
    bool has_latency;  // of all channels, by PTOWSP_CHANNEL_LATENCY_SYMBOL
    uint64_t latency;
    int64_t rounds;                 // times that the pipeline runs
    int64_t slots[SIM_SLOT_COUNT];  // when the pipeline starts; slot 0: + round
} sim_bindings;

// -- results --------------------------------------------------------------------------------------

typedef struct sim_step {
    ptowsp_step_kind kind;
    int actor;
    uint32_t channel;  // UINT32_MAX: none
    uint64_t arrive, end;
    int64_t token;  // of sends and receives; of a task its index
} sim_step;

// One time that a pipeline ran.
typedef struct sim_result {
    ptowsp_status status;
    bool is_too_long;  // more than SIM_STEP_MAX operations, and perhaps without end
    uint64_t makespan;
    int actor_count, step_count, task_count;
    int process[SIM_ACTOR_MAX], replica[SIM_ACTOR_MAX];
    ptowsp_process_state states[SIM_ACTOR_MAX];
    uint32_t waits_at[SIM_ACTOR_MAX];  // channel
    uint64_t ends[SIM_ACTOR_MAX];      // or when it began to wait
    uint32_t depths[SIM_CHANNEL_MAX];
    uint64_t latencies[SIM_CHANNEL_MAX];
    uint64_t pending[SIM_CHANNEL_MAX], tokens[SIM_CHANNEL_MAX], pending_max[SIM_CHANNEL_MAX];
    sim_step steps[SIM_STEP_MAX];
    int64_t calls[SIM_STEP_MAX][2];  // of kernels: first axis argument, statement
} sim_result;

// -- the state ------------------------------------------------------------------------------------

typedef struct sim_frame {
    int owner;  // the statement whose body it is; -1: the process
    int stmt;   // the next one in it; -1: none
    int64_t i, count;
} sim_frame;

typedef enum sim_next {
    SIM_DOES_TASK = 0,
    SIM_DOES_SEND,
    SIM_DOES_RECEIVE,
    SIM_DOES_CLOSE,
    SIM_DOES_END,
    SIM_DOES_NOTHING  // it has ended
} sim_next;

typedef struct sim_actor {
    uint64_t now;
    sim_next next;
    int stmt;         // that the operation belongs to
    int64_t token;    // to send; of a task its first axis argument
    bool is_waiting;  // at a channel of depth 0, for somebody to meet
    int frame_count;
    sim_frame frames[SIM_FRAME_MAX];
    int64_t variables[SIM_STMT_MAX];
    int64_t slots[SIM_SLOT_COUNT];
    bool has_closed[SIM_CHANNEL_MAX];
} sim_actor;

// Everything that ever happened on a channel, by token.
typedef struct sim_history {
    int sent_count, received_count;
    int send_steps[SIM_STEP_MAX + 1], receive_steps[SIM_STEP_MAX + 1];  // indices of steps
    int open_count;  // producers that have not closed it
    uint64_t close_time;
} sim_history;

typedef struct sim_state {
    const sim_pipeline *p;
    const sim_bindings *b;
    int64_t round;
    sim_result *result;
    sim_actor actors[SIM_ACTOR_MAX];
    sim_history channels[SIM_CHANNEL_MAX];
} sim_state;

static inline uint64_t sim_max(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

// What the tasks' kernel computes from its axis arguments, and makes of its cell. Also as text, for trees.
PTOWSP_SOURCE(
    sim_source,

    static inline uint64_t sim_cycles(int64_t value, int64_t site, int64_t base, int64_t spread) {
        uint64_t mixed = ((uint64_t)value * 31 + (uint64_t)site * 17) % 1009;
        return (uint64_t)base + mixed * mixed % ((uint64_t)spread + 1);
    }

    static inline ptowsp_cycles sim_kernel_cost(const ptowsp_task *task, void *user) {
        (void)user;
        return sim_cycles(ptowsp_task_axis(task, 0), ptowsp_task_axis(task, 1),
                          ptowsp_task_axis(task, 2), ptowsp_task_axis(task, 3));
    }

    static inline int32_t sim_update(int32_t cell, int64_t value, int64_t site) {
        uint64_t z =
            (uint64_t)cell * 31 + (uint64_t)value * 7 + (uint64_t)site + 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return (int32_t)((z ^ (z >> 31)) >> 33);
    }

    static inline ptowsp_cycles sim_work(const ptowsp_task *task, void *user) {
        if (task->tile_count > 0) {
            int32_t *cell = (int32_t *)task->tiles[0].data;
            *cell = sim_update(*cell, ptowsp_task_axis(task, 0), ptowsp_task_axis(task, 1));
        }
        return user ? ptowsp_task_fail(PTOWSP_KERNEL_FAILED) : sim_kernel_cost(task, user);
    })

static inline int64_t sim_eval(const sim_state *s, int actor, int number) {
    const sim_expr *e = &s->p->exprs[number];
    const sim_actor *me = &s->actors[actor];
    int64_t a = e->a ? sim_eval(s, actor, e->a) : 0;
    int64_t b = e->b ? sim_eval(s, actor, e->b) : 0;
    switch (e->op) {
    case SIM_NONE: break;
    case SIM_LITERAL: return e->value;
    case SIM_VARIABLE: return me->variables[e->value];
    case SIM_REPLICA: return s->result->replica[actor];
    case SIM_ROUND: return s->round;
    case SIM_SYMBOL: return (int64_t)s->b->symbols[e->value];
    case SIM_SLOT: return me->slots[e->value];
    case SIM_ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
    case SIM_SUB: return (int64_t)((uint64_t)a - (uint64_t)b);
    case SIM_MUL: return (int64_t)((uint64_t)a * (uint64_t)b);
    case SIM_REM: return b == 0 || b == -1 ? 0 : a % b;
    case SIM_EQUAL: return a == b;
    case SIM_LESS: return a < b;
    }
    fail_msg("%s", "no such expression");
    return 0;
}

// -- control: from one operation to the next ------------------------------------------------------

static inline void sim_push(sim_actor *me, int owner, int stmt, int64_t count) {
    assert_true(me->frame_count < SIM_FRAME_MAX);
    sim_frame frame = {owner, stmt, 0, count};
    me->frames[me->frame_count++] = frame;
}

static inline void sim_set_next(sim_actor *me, sim_next next, int stmt) {
    me->next = next;
    me->stmt = stmt;
}

// At the end of a body. Returns whether an operation comes next: of a consume, to receive again.
static inline bool sim_leave_body(const sim_state *s, sim_actor *me) {
    sim_frame *frame = &me->frames[me->frame_count - 1];
    if (frame->owner < 0) {
        sim_set_next(me, SIM_DOES_END, -1);
        return true;
    }
    const sim_stmt *owner = &s->p->stmts[frame->owner];
    if (owner->kind == SIM_FOR && frame->i + 1 < frame->count) {
        me->variables[frame->owner] = ++frame->i;
        frame->stmt = owner->body;
        return false;
    }
    me->frame_count--;
    if (owner->kind == SIM_CONSUME) {
        sim_set_next(me, SIM_DOES_RECEIVE, frame->owner);
        return true;
    }
    return false;
}

static inline int64_t sim_loop_count(const sim_state *s, int actor, int number) {
    const sim_stmt *stmt = &s->p->stmts[number];
    switch (stmt->loop) {
    case SIM_DENSE: return stmt->count;
    case SIM_DYNAMIC: return s->b->counts[number];
    case SIM_ROW: break;
    }
    return s->b->lengths[sim_eval(s, actor, stmt->expr) & 3];
}

// Does a statement's part that takes no time. Returns whether an operation comes next.
static inline bool sim_enter(const sim_state *s, int actor, sim_actor *me, int number) {
    const sim_stmt *stmt = &s->p->stmts[number];
    int64_t value = stmt->expr ? sim_eval(s, actor, stmt->expr) : 0;
    switch (stmt->kind) {
    case SIM_FOR: {
        int64_t count = sim_loop_count(s, actor, number);
        if (count > 0) {
            me->variables[number] = 0;
            sim_push(me, number, stmt->body, count);
        }
        return false;
    }
    case SIM_WHEN: sim_push(me, number, value ? stmt->body : stmt->otherwise, 1); return false;
    case SIM_SCOPE: sim_push(me, number, stmt->body, 1); return false;
    case SIM_SLOT_SET: me->slots[stmt->slot] = value; return false;
    case SIM_TASK:
    case SIM_SEND_TASK:
        me->token = value;
        sim_set_next(me, SIM_DOES_TASK, number);
        return true;
    case SIM_SEND:
    case SIM_RECORD:
        assert_false(me->has_closed[stmt->channel]);
        me->token = value;
        sim_set_next(me, SIM_DOES_SEND, number);
        return true;
    case SIM_CONSUME:
    case SIM_RECEIVE:
    case SIM_WAIT: sim_set_next(me, SIM_DOES_RECEIVE, number); return true;
    case SIM_CLOSE:
        if (me->has_closed[stmt->channel]) {
            return false;
        }
        sim_set_next(me, SIM_DOES_CLOSE, number);
        return true;
    }
    return false;
}

// Goes on until an operation comes next.
static inline void sim_advance(sim_state *s, int actor) {
    sim_actor *me = &s->actors[actor];
    for (int i = 0; i < SIM_CONTROL_MAX; i++) {
        sim_frame *frame = &me->frames[me->frame_count - 1];
        int number = frame->stmt;
        if (number < 0) {
            if (sim_leave_body(s, me)) {
                return;
            }
        } else {
            frame->stmt = s->p->stmts[number].next;
            if (sim_enter(s, actor, me, number)) {
                return;
            }
        }
    }
    s->result->is_too_long = true;
}

// -- operations -----------------------------------------------------------------------------------

// The one that waits at a channel of depth 0 to send, or to receive, and comes first; or -1.
static inline int sim_waiting(const sim_state *s, int channel, sim_next next) {
    int first = -1;
    for (int actor = 0; actor < s->result->actor_count; actor++) {
        const sim_actor *other = &s->actors[actor];
        if (other->is_waiting && other->next == next &&
            s->p->stmts[other->stmt].channel == channel &&
            (first < 0 || other->now < s->actors[first].now)) {
            first = actor;
        }
    }
    return first;
}

// Whether a process that receives finds the channel closed and empty. Who waits for an event never
// sees its end.
static inline bool sim_sees_end(const sim_state *s, int actor) {
    const sim_stmt *stmt = &s->p->stmts[s->actors[actor].stmt];
    const sim_history *history = &s->channels[stmt->channel];
    return stmt->kind != SIM_WAIT && history->open_count == 0 &&
           history->received_count == history->sent_count;
}

static inline bool sim_can_proceed(const sim_state *s, int actor) {
    const sim_actor *me = &s->actors[actor];
    if (me->next == SIM_DOES_NOTHING) {
        return false;
    } else if (me->next != SIM_DOES_SEND && me->next != SIM_DOES_RECEIVE) {
        return true;
    }
    int channel = s->p->stmts[me->stmt].channel;
    const sim_history *history = &s->channels[channel];
    int depth = (int)s->result->depths[channel];
    if (me->next == SIM_DOES_RECEIVE && sim_sees_end(s, actor)) {
        return true;
    } else if (depth == 0) {
        return !me->is_waiting;
    } else if (me->next == SIM_DOES_RECEIVE) {
        return history->received_count < history->sent_count;
    }
    int k = history->sent_count;
    return k < depth || k - depth < history->received_count;
}

static inline int sim_step_add(sim_state *s, ptowsp_step_kind kind, int actor, int channel,
                               uint64_t end, int64_t token) {
    sim_result *result = s->result;
    if (result->step_count == SIM_STEP_MAX) {
        result->is_too_long = true;
        return SIM_STEP_MAX - 1;
    }
    sim_step *step = &result->steps[result->step_count];
    step->kind = kind;
    step->actor = actor;
    step->channel = channel < 0 ? UINT32_MAX : (uint32_t)channel;
    step->arrive = s->actors[actor].now;
    step->end = end;
    step->token = token;
    return result->step_count++;
}

static inline void sim_task(sim_state *s, int actor) {
    sim_actor *me = &s->actors[actor];
    const sim_stmt *stmt = &s->p->stmts[me->stmt];
    uint64_t end = me->now + sim_cycles(me->token, me->stmt, stmt->base, stmt->spread);
    int index = s->result->task_count;
    sim_step_add(s, PTOWSP_STEP_TASK, actor, -1, end, index);
    if (!s->result->is_too_long) {
        s->result->calls[index][0] = me->token;
        s->result->calls[index][1] = me->stmt;
        s->result->task_count++;
    }
    me->now = end;
    if (stmt->kind == SIM_SEND_TASK) {
        assert_false(me->has_closed[stmt->channel]);
        sim_set_next(me, SIM_DOES_SEND, me->stmt);
    } else {
        sim_advance(s, actor);
    }
}

// A receive has been done, at a time: the body or what is behind comes next.
static inline void sim_go_on_with(sim_state *s, int actor, uint64_t now, int64_t token) {
    sim_actor *me = &s->actors[actor];
    const sim_stmt *stmt = &s->p->stmts[me->stmt];
    me->now = now;
    if (stmt->kind != SIM_WAIT) {
        me->variables[me->stmt] = token;
        sim_push(me, me->stmt, stmt->body, 1);
    }
    sim_advance(s, actor);
}

// At a channel of depth 0: sender and receiver meet.
static inline void sim_meet(sim_state *s, int sender, int receiver) {
    int channel = s->p->stmts[s->actors[sender].stmt].channel;
    sim_history *history = &s->channels[channel];
    int k = history->sent_count++;
    history->received_count++;
    int64_t token = s->actors[sender].token;
    uint64_t end =
        sim_max(s->actors[receiver].now, s->actors[sender].now + s->result->latencies[channel]);
    history->send_steps[k] = sim_step_add(s, PTOWSP_STEP_SEND, sender, channel, end, token);
    history->receive_steps[k] = sim_step_add(s, PTOWSP_STEP_RECEIVE, receiver, channel, end, token);
    s->actors[sender].is_waiting = false;
    s->actors[receiver].is_waiting = false;
    s->actors[sender].now = end;
    sim_advance(s, sender);
    sim_go_on_with(s, receiver, end, token);
}

static inline void sim_send(sim_state *s, int actor) {
    sim_actor *me = &s->actors[actor];
    int channel = s->p->stmts[me->stmt].channel;
    sim_history *history = &s->channels[channel];
    int k = history->sent_count, depth = (int)s->result->depths[channel];
    uint64_t end = me->now;
    if (depth == 0) {
        int receiver = sim_waiting(s, channel, SIM_DOES_RECEIVE);
        me->is_waiting = receiver < 0;
        if (receiver >= 0) {
            sim_meet(s, actor, receiver);
        }
        return;
    }
    if (k >= depth) {
        end = sim_max(me->now, s->result->steps[history->receive_steps[k - depth]].end);
    }
    history->sent_count++;
    history->send_steps[k] = sim_step_add(s, PTOWSP_STEP_SEND, actor, channel, end, me->token);
    me->now = end;
    sim_advance(s, actor);
}

static inline void sim_receive(sim_state *s, int actor) {
    sim_actor *me = &s->actors[actor];
    int channel = s->p->stmts[me->stmt].channel;
    sim_history *history = &s->channels[channel];
    if (s->result->depths[channel] == 0) {
        int sender = sim_waiting(s, channel, SIM_DOES_SEND);
        if (sender >= 0) {
            sim_meet(s, sender, actor);
            return;
        }
    }
    if (sim_sees_end(s, actor)) {
        uint64_t end = sim_max(me->now, history->close_time);
        sim_step_add(s, PTOWSP_STEP_END, actor, channel, end, 0);
        me->now = end;
        me->is_waiting = false;
        sim_advance(s, actor);
    } else if (s->result->depths[channel] == 0) {
        me->is_waiting = true;
    } else {
        int k = history->received_count++;
        const sim_step *send = &s->result->steps[history->send_steps[k]];
        uint64_t end = sim_max(me->now, send->end + s->result->latencies[channel]);
        history->receive_steps[k] =
            sim_step_add(s, PTOWSP_STEP_RECEIVE, actor, channel, end, send->token);
        sim_go_on_with(s, actor, end, send->token);
    }
}

static inline void sim_close(sim_state *s, int actor, int channel) {
    sim_actor *me = &s->actors[actor];
    if (!me->has_closed[channel]) {
        me->has_closed[channel] = true;
        if (--s->channels[channel].open_count == 0) {
            s->channels[channel].close_time = me->now;
        }
    }
}

static inline void sim_perform(sim_state *s, int actor) {
    sim_actor *me = &s->actors[actor];
    switch (me->next) {
    case SIM_DOES_TASK: sim_task(s, actor); break;
    case SIM_DOES_SEND: sim_send(s, actor); break;
    case SIM_DOES_RECEIVE: sim_receive(s, actor); break;
    case SIM_DOES_CLOSE:
        sim_close(s, actor, s->p->stmts[me->stmt].channel);
        sim_step_add(s, PTOWSP_STEP_CLOSE, actor, s->p->stmts[me->stmt].channel, me->now, 0);
        sim_advance(s, actor);
        break;
    case SIM_DOES_END: {
        const sim_process *process = &s->p->processes[s->result->process[actor]];
        for (int i = 0; i < process->produce_count; i++) {
            sim_close(s, actor, process->produces[i]);
        }
        sim_step_add(s, PTOWSP_STEP_CLOSE, actor, -1, me->now, 0);
        sim_set_next(me, SIM_DOES_NOTHING, -1);
        break;
    }
    case SIM_DOES_NOTHING: break;
    }
}

// -- a run ----------------------------------------------------------------------------------------

static inline void sim_start_channels(sim_state *s) {
    for (int c = 0; c < s->p->channel_count; c++) {
        const sim_channel *channel = &s->p->channels[c];
        uint64_t depth = channel->depth_is_bound ? s->b->depths[c] : channel->depth;
        uint64_t latency = channel->latency_is_bound ? s->b->latencies[c] : channel->latency;
        if (channel->is_event) {
            depth = 0;
            latency = 0;
        }
        if (s->b->has_latency) {
            latency = s->b->latency;
        }
        s->result->depths[c] = (uint32_t)depth;
        s->result->latencies[c] = latency;
    }
}

static inline int64_t sim_replica_count(const sim_pipeline *p, const sim_bindings *b, int number) {
    switch (p->processes[number].replicas) {
    case SIM_PLAIN: return 1;
    case SIM_REPLICAS_DENSE: return p->processes[number].replica_count;
    case SIM_REPLICAS_DYNAMIC: break;
    }
    return b->replicas[number];
}

static inline void sim_start_actors(sim_state *s) {
    sim_result *result = s->result;
    for (int p = 0; p < s->p->process_count; p++) {
        const sim_process *process = &s->p->processes[p];
        int64_t count = sim_replica_count(s->p, s->b, p);
        for (int replica = 0; replica < count; replica++) {
            int actor = result->actor_count++;
            sim_actor *me = &s->actors[actor];
            result->process[actor] = p;
            result->replica[actor] = replica;
            memcpy(me->slots, s->b->slots, sizeof me->slots);
            me->slots[0] += s->round;
            for (int i = 0; i < process->produce_count; i++) {
                s->channels[process->produces[i]].open_count++;
            }
            sim_push(me, -1, process->body, 1);
        }
    }
    for (int actor = 0; actor < result->actor_count; actor++) {
        sim_advance(s, actor);
    }
}

// The process that moves, or -1.
static inline int sim_choose(const sim_state *s) {
    int chosen = -1;
    for (int actor = 0; actor < s->result->actor_count; actor++) {
        if (sim_can_proceed(s, actor) &&
            (chosen < 0 || s->actors[actor].now < s->actors[chosen].now)) {
            chosen = actor;
        }
    }
    return chosen;
}

// The most tokens that a channel held right after a send: those that had been sent and not been
// received, the one just sent included.
static inline uint64_t sim_pending_max(const sim_state *s, int channel) {
    const sim_history *history = &s->channels[channel];
    const sim_step *steps = s->result->steps;
    uint64_t most = 0;
    for (int k = 0; k < history->sent_count; k++) {
        uint64_t sent = steps[history->send_steps[k]].end, count = 1;
        for (int i = 0; i < k; i++) {
            count += i >= history->received_count || steps[history->receive_steps[i]].end > sent;
        }
        most = sim_max(most, count);
    }
    return most;
}

static inline void sim_finish(sim_state *s) {
    sim_result *result = s->result;
    for (int actor = 0; actor < result->actor_count; actor++) {
        const sim_actor *me = &s->actors[actor];
        result->ends[actor] = me->now;
        result->makespan = sim_max(result->makespan, me->now);
        if (me->next == SIM_DOES_NOTHING) {
            continue;
        }
        result->status = PTOWSP_STUCK;
        result->waits_at[actor] = (uint32_t)s->p->stmts[me->stmt].channel;
        result->states[actor] =
            me->next == SIM_DOES_SEND ? PTOWSP_PROCESS_FULL : PTOWSP_PROCESS_EMPTY;
    }
    for (int c = 0; c < s->p->channel_count; c++) {
        const sim_history *history = &s->channels[c];
        result->tokens[c] = (uint64_t)history->sent_count;
        result->pending[c] = (uint64_t)(history->sent_count - history->received_count);
        result->pending_max[c] = result->depths[c] ? sim_pending_max(s, c) : 0;
    }
}

// Runs a pipeline once, for the round-th time.
static inline void sim_run(const sim_pipeline *p, const sim_bindings *b, int64_t round,
                           sim_result *result) {
    sim_state *s = (sim_state *)calloc(1, sizeof *s);
    assert_non_null(s);
    memset(result, 0, sizeof *result);
    s->p = p;
    s->b = b;
    s->round = round;
    s->result = result;
    sim_start_channels(s);
    sim_start_actors(s);
    for (int actor = sim_choose(s); actor >= 0 && !result->is_too_long; actor = sim_choose(s)) {
        sim_perform(s, actor);
    }
    if (!result->is_too_long) {
        sim_finish(s);
    }
    free(s);
}

#endif

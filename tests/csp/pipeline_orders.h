// Small pipelines at random, and all their interleavings, one step at a time: what ptowsp_run_explore
// is compared with. Written without the library: statements become a list of ops for each process, a
// state is a struct of bytes, and every op that is possible is tried in every state.

#ifndef PIPELINE_ORDERS_H
#define PIPELINE_ORDERS_H

#include "pipeline_sample.h"

enum {
    ORDERS_CHANNEL_MAX = 3,
    ORDERS_PROCESS_MAX = 4,
    ORDERS_DEPTH_MAX = 3,
    ORDERS_STMT_MAX = 12,  // of a process
    ORDERS_OP_MAX = 40,
    ORDERS_REGISTER_MAX = 8,
    ORDERS_STATE_MAX = 1 << 12
};

// -- descriptions ---------------------------------------------------------------------------------

typedef struct orders_random {
    sim_writer w;
    uint64_t state;
    bool is_directed;                    // channel c leads from processes up to c to those behind
    int left;                            // statements that the process may still have
    int variables[ORDERS_REGISTER_MAX];  // statements that have one, around this place
} orders_random;

static inline int orders_below(orders_random *g, int count) {
    return (int)(test_random(&g->state) % (uint64_t)count);
}

// A number, or one of the variables plus a number.
static inline int orders_value(orders_random *g, int variables) {
    const int number = sim_literal(g->w.p, orders_below(g, 3));
    return variables == 0 || orders_below(g, 2)
               ? number
               : sim_binary(g->w.p, SIM_ADD,
                            sim_variable(g->w.p, g->variables[orders_below(g, variables)]), number);
}

// Statements of one body, with so many variables around.
static inline void orders_body(orders_random *g, int depth, int variables, int count) {
    sim_writer *w = &g->w;
    const int index = w->p->process_count - 1;
    sim_process *process = &w->p->processes[index];
    const bool has_room = depth < 3 && variables + 1 < ORDERS_REGISTER_MAX - 1;
    bool has_closed = false;
    for (int i = 0; i < count && g->left > 0 && !has_closed; i++) {
        const int c = orders_below(g, w->p->channel_count), roll = orders_below(g, 20);
        const int value = orders_value(g, variables);
        const bool is_event = w->p->channels[c].is_event;
        const bool can_send = !g->is_directed || index <= c;
        const bool can_receive = has_room && (!g->is_directed || index > c);
        int body = -1, more = 1;
        if (roll < 8 && can_send) {
            sim_produces(process, c);
            sim_port(w, is_event ? SIM_RECORD : SIM_SEND, c, is_event ? 0 : value);
            sim_task_add(w, sim_literal(w->p, 0), 7, 0);
        } else if (roll < 14 && can_receive && is_event) {
            sim_consumes(process, c);
            sim_port(w, SIM_WAIT, c, 0);
        } else if (roll < 15 && can_receive && !is_event) {
            sim_consumes(process, c);
            body = sim_take(w, roll < 14 ? SIM_RECEIVE : SIM_CONSUME, c);
        } else if (roll >= 15 && roll < 17 && has_room) {
            body = sim_for(w, 1 + orders_below(g, 2));
        } else if (roll == 17 && variables > 0) {
            const int of = sim_variable(w->p, g->variables[orders_below(g, variables)]);
            body =
                sim_when(w, sim_binary(w->p, SIM_EQUAL, of, sim_literal(w->p, orders_below(g, 3))));
            more = 0;
        } else if (roll == 18) {
            sim_slot_set(w, (uint32_t)c, value);
        } else if (roll == 19 && depth == 0 && i == count - 1 && can_send) {
            sim_produces(process, c);
            sim_port(w, SIM_CLOSE, c, 0);
            has_closed = true;
        } else {
            continue;
        }
        g->left--;
        if (body >= 0) {
            g->variables[variables] = body;
            orders_body(g, depth + 1, variables + more, orders_below(g, 3));
            sim_end(w);
        }
    }
}

static inline void orders_make(sim_pipeline *p, uint64_t seed) {
    orders_random g = {.state = seed};
    sim_begin(&g.w, p);
    const int channels = 1 + orders_below(&g, ORDERS_CHANNEL_MAX);
    const int processes = 2 + orders_below(&g, ORDERS_PROCESS_MAX - 1);
    g.is_directed = orders_below(&g, 3) > 0;
    for (int c = 0; c < channels; c++) {
        if (orders_below(&g, 10) == 0) {
            sim_event_add(&g.w);
        } else {
            sim_channel_add(&g.w, (uint32_t)orders_below(&g, ORDERS_DEPTH_MAX + 1), 0);
        }
    }
    for (int i = 0; i < processes; i++) {
        sim_process *process = sim_process_add(&g.w);
        g.left = ORDERS_STMT_MAX - 1;
        orders_body(&g, 0, 0, 1 + orders_below(&g, 4));
        const int c = orders_below(&g, channels);
        if (g.is_directed && i > c && !p->channels[c].is_event && orders_below(&g, 3) > 0) {
            sim_consumes(process, c);  // takes the rest, so that more of them end
            sim_take(&g.w, SIM_CONSUME, c);
            sim_end(&g.w);
        }
        sim_end(&g.w);
        process->replicas = orders_below(&g, 6) == 0 ? SIM_REPLICAS_DENSE : SIM_PLAIN;
        process->replica_count = 2;
    }
}

// -- as lists of ops ------------------------------------------------------------------------------

typedef enum orders_op_kind {
    ORDERS_OP_SEND,
    ORDERS_OP_RECEIVE,  // to `target` at the end
    ORDERS_OP_CLOSE,
    ORDERS_OP_END,
    ORDERS_OP_JUMP,
    ORDERS_OP_UNLESS,  // register is not `number`: to `target`
    ORDERS_OP_ZERO,    // the register of a loop
    ORDERS_OP_COUNT    // one more; below `number`: to `target`
} orders_op_kind;

typedef struct orders_op {
    orders_op_kind kind;
    int channel, variable, number, target;
} orders_op;

typedef struct orders_machine {
    const sim_pipeline *p;
    orders_op ops[ORDERS_PROCESS_MAX][ORDERS_OP_MAX];
    int registers[SIM_STMT_MAX];        // of statements with a variable
    int count;                          // of processes, replicas counted
    int kinds[2 * ORDERS_PROCESS_MAX];  // whose ops
} orders_machine;

// The ops of a body, with so many registers in use.
static inline void orders_flatten(orders_machine *machine, int stmt_first, int used, orders_op *ops,
                                  int *count) {
    const sim_pipeline *p = machine->p;
    for (int at = stmt_first; at >= 0; at = p->stmts[at].next) {
        const sim_stmt *stmt = &p->stmts[at];
        const sim_expr *e = &p->exprs[stmt->expr];
        const bool is_sum = e->op == SIM_ADD || e->op == SIM_EQUAL;
        orders_op op = {ORDERS_OP_SEND, stmt->channel, -1, (int)e->value, 0};
        const int first = *count;
        if (is_sum) {
            op.variable = machine->registers[p->exprs[e->a].value];
            op.number = (int)p->exprs[e->b].value;
        }
        switch (stmt->kind) {
        case SIM_SEND:
        case SIM_RECORD: break;
        case SIM_CLOSE: op.kind = ORDERS_OP_CLOSE; break;
        case SIM_RECEIVE:
        case SIM_CONSUME:
        case SIM_WAIT:
            op.kind = ORDERS_OP_RECEIVE;
            op.variable = used;
            break;
        case SIM_WHEN: op.kind = ORDERS_OP_UNLESS; break;
        case SIM_FOR:
            op.kind = ORDERS_OP_ZERO;
            op.variable = used;
            op.number = (int)stmt->count;
            break;
        default: continue;  // tasks; and nothing reads slots here
        }
        machine->registers[at] = used;
        ops[(*count)++] = op;
        orders_flatten(machine, stmt->body, used + (stmt->kind != SIM_WHEN), ops, count);
        if (stmt->kind == SIM_CONSUME || stmt->kind == SIM_FOR) {
            op.kind = stmt->kind == SIM_CONSUME ? ORDERS_OP_JUMP : ORDERS_OP_COUNT;
            op.target = first + (stmt->kind == SIM_FOR);
            ops[(*count)++] = op;
        }
        ops[first].target = *count;
    }
}

static inline void orders_compile(orders_machine *machine, const sim_pipeline *p) {
    memset(machine, 0, sizeof *machine);
    machine->p = p;
    for (int i = 0; i < p->process_count; i++) {
        int count = 0;
        orders_flatten(machine, p->processes[i].body, 0, machine->ops[i], &count);
        machine->ops[i][count].kind = ORDERS_OP_END;
        for (int j = 0; j <= (p->processes[i].replicas == SIM_REPLICAS_DENSE); j++) {
            machine->kinds[machine->count++] = i;
        }
    }
}

static inline bool orders_produces(const sim_process *process, int channel) {
    for (int i = 0; i < process->produce_count; i++) {
        if (process->produces[i] == channel) {
            return true;
        }
    }
    return false;
}

// -- states ---------------------------------------------------------------------------------------

typedef struct orders_state {
    int8_t at[2 * ORDERS_PROCESS_MAX];  // an op that is a send, receive, close or end; -1: ended
    int8_t registers[2 * ORDERS_PROCESS_MAX][ORDERS_REGISTER_MAX];
    int8_t closed[2 * ORDERS_PROCESS_MAX];  // bits by channel
    int8_t tokens[ORDERS_CHANNEL_MAX][ORDERS_DEPTH_MAX];
    int8_t pending[ORDERS_CHANNEL_MAX];
} orders_state;

static inline const orders_op *orders_at(const orders_machine *machine, const orders_state *s,
                                         int process) {
    return s->at[process] < 0 ? NULL : &machine->ops[machine->kinds[process]][s->at[process]];
}

// Goes on at an op, behind what only this process can see.
static inline void orders_go(const orders_machine *machine, orders_state *s, int process, int at) {
    int8_t *registers = s->registers[process];
    for (;;) {
        const orders_op *op = &machine->ops[machine->kinds[process]][at];
        switch (op->kind) {
        case ORDERS_OP_JUMP: at = op->target; continue;
        case ORDERS_OP_UNLESS:
            at = registers[op->variable] == op->number ? at + 1 : op->target;
            continue;
        case ORDERS_OP_ZERO:
            registers[op->variable] = 0;
            at++;
            continue;
        case ORDERS_OP_COUNT:
            at = ++registers[op->variable] < op->number ? op->target : at + 1;
            continue;
        default: s->at[process] = (int8_t)at; return;
        }
    }
}

static inline int8_t orders_token(const orders_machine *machine, const orders_state *s,
                                  int process) {
    const orders_op *op = orders_at(machine, s, process);
    return (int8_t)(op->number + (op->variable < 0 ? 0 : s->registers[process][op->variable]));
}

static inline bool orders_is_open(const orders_machine *machine, const orders_state *s,
                                  int channel) {
    for (int i = 0; i < machine->count; i++) {
        if (s->at[i] >= 0 && !(s->closed[i] & 1 << channel) &&
            orders_produces(&machine->p->processes[machine->kinds[i]], channel)) {
            return true;
        }
    }
    return false;
}

// A process does its op, at depth 0 with `partner`, a receiver. False if it cannot.
static inline bool orders_step(const orders_machine *machine, orders_state *s, int process,
                               int partner) {
    const orders_op *op = orders_at(machine, s, process);
    if (!op) {
        return false;
    }
    int c = op->channel, depth = (int)machine->p->channels[c].depth, here = s->at[process];
    bool is_event = machine->p->channels[c].is_event;
    if (op->kind == ORDERS_OP_SEND && depth == 0) {
        const orders_op *other =
            partner < 0 || partner == process ? NULL : orders_at(machine, s, partner);
        if (!other || other->kind != ORDERS_OP_RECEIVE || other->channel != c) {
            return false;
        }
        s->registers[partner][other->variable] = is_event ? 0 : orders_token(machine, s, process);
        orders_go(machine, s, partner, s->at[partner] + 1);
        orders_go(machine, s, process, here + 1);
    } else if (op->kind == ORDERS_OP_SEND) {
        if (s->pending[c] == depth || partner >= 0) {
            return false;
        }
        s->tokens[c][s->pending[c]++] = orders_token(machine, s, process);
        orders_go(machine, s, process, here + 1);
    } else if (op->kind == ORDERS_OP_RECEIVE && s->pending[c] > 0 && partner < 0) {
        s->registers[process][op->variable] = s->tokens[c][0];
        memmove(s->tokens[c], s->tokens[c] + 1, ORDERS_DEPTH_MAX - 1);
        s->tokens[c][ORDERS_DEPTH_MAX - 1] = 0;
        s->pending[c]--;
        orders_go(machine, s, process, here + 1);
    } else if (op->kind == ORDERS_OP_RECEIVE) {
        if (partner >= 0 || is_event || orders_is_open(machine, s, c)) {
            return false;
        }
        orders_go(machine, s, process, op->target);
    } else if (partner >= 0) {
        return false;
    } else if (op->kind == ORDERS_OP_CLOSE) {
        s->closed[process] = (int8_t)(s->closed[process] | 1 << c);
        orders_go(machine, s, process, here + 1);
    } else {
        s->at[process] = -1;
    }
    return true;
}

static inline void orders_start(const orders_machine *machine, orders_state *s) {
    memset(s, 0, sizeof *s);
    for (int i = 0; i < 2 * ORDERS_PROCESS_MAX; i++) {
        s->at[i] = -1;
    }
    for (int i = 0; i < machine->count; i++) {
        orders_go(machine, s, i, 0);
    }
}

static inline bool orders_have_ended(const orders_machine *machine, const orders_state *s) {
    for (int i = 0; i < machine->count; i++) {
        if (s->at[i] >= 0) {
            return false;
        }
    }
    return true;
}

typedef enum orders_result { ORDERS_END, ORDERS_GET_STUCK, ORDERS_TOO_MANY } orders_result;

static inline bool orders_is_new(orders_state *states, int *count, int *table,
                                 const orders_state *s) {
    uint64_t hash = 0;
    const unsigned char *bytes = (const unsigned char *)s;
    for (size_t i = 0; i < sizeof *s; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    for (uint64_t i = hash ^ hash >> 29;; i++) {
        int *at = &table[i % (2 * ORDERS_STATE_MAX)];
        if (*at && memcmp(&states[*at - 1], s, sizeof *s) == 0) {
            return false;
        }
        if (!*at) {
            states[(*count)++] = *s;
            *at = *count;
            return true;
        }
    }
}

// Tries every order.
static inline orders_result orders_enumerate(const orders_machine *machine, int *out_states) {
    static orders_state states[ORDERS_STATE_MAX];
    static int table[2 * ORDERS_STATE_MAX];
    int count = 0;
    orders_state s;
    memset(table, 0, sizeof table);
    orders_start(machine, &s);
    orders_is_new(states, &count, table, &s);
    orders_result result = ORDERS_END;
    for (int i = 0; i < count && result == ORDERS_END; i++) {
        bool can = false;
        for (int process = 0; process < machine->count; process++) {
            for (int partner = -1; partner < machine->count; partner++) {
                s = states[i];
                if (!orders_step(machine, &s, process, partner)) {
                    continue;
                }
                can = true;
                if (count == ORDERS_STATE_MAX) {
                    return ORDERS_TOO_MANY;
                }
                orders_is_new(states, &count, table, &s);
            }
        }
        result = can || orders_have_ended(machine, &states[i]) ? ORDERS_END : ORDERS_GET_STUCK;
    }
    *out_states = count;
    return result;
}

#endif

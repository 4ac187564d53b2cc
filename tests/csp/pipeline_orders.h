// Small pipelines at random, and all their interleavings, one step at a time: what ptowsp_run_explore
// is compared with. Written without the library: statements become a list of ops for each process, a
// state is a struct of bytes, and every op that is possible is tried in every state.

#ifndef PIPELINE_ORDERS_H
#define PIPELINE_ORDERS_H

#include "test.h"

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

typedef enum orders_kind {
    ORDERS_SEND,     // a number, or a variable plus a number
    ORDERS_RECEIVE,  // a body
    ORDERS_CONSUME,  // a body
    ORDERS_LOOP,     // `number` times a body
    ORDERS_WHEN,     // a variable is `number`: a body
    ORDERS_CLOSE,
    ORDERS_SET  // slot `channel`, to a variable plus a number
} orders_kind;

typedef struct orders_stmt {
    orders_kind kind;
    int channel, variable, number;  // variable: a register, or -1
    int depth;                      // how many bodies it is in
    int target;                     // register of its own variable
} orders_stmt;

typedef struct orders_process {
    orders_stmt stmts[ORDERS_STMT_MAX];
    int count;
    bool consumes[ORDERS_CHANNEL_MAX], produces[ORDERS_CHANNEL_MAX];
} orders_process;

typedef struct orders_pipeline {
    int channel_count, process_count;
    bool is_directed;  // channel c leads from processes up to c to those behind
    int depths[ORDERS_CHANNEL_MAX];
    bool is_event[ORDERS_CHANNEL_MAX];
    orders_process processes[ORDERS_PROCESS_MAX];
    int replicas[ORDERS_PROCESS_MAX];  // 1 or 2
} orders_pipeline;

static inline int orders_below(uint64_t *random, int count) {
    return (int)(test_random(random) % (uint64_t)count);
}

// Statements of one body, with variables [0, variables) around.
static inline void orders_body(const orders_pipeline *p, orders_process *process, uint64_t *random,
                               int depth, int variables, int count) {
    int index = (int)(process - p->processes);
    bool has_closed = false;
    for (int i = 0; i < count && process->count < ORDERS_STMT_MAX && !has_closed; i++) {
        orders_stmt *stmt = &process->stmts[process->count];
        int channel = orders_below(random, p->channel_count), roll = orders_below(random, 20);
        stmt->channel = channel;
        stmt->depth = depth;
        stmt->target = variables;
        stmt->variable =
            variables && orders_below(random, 2) ? orders_below(random, variables) : -1;
        stmt->number = orders_below(random, 3);
        bool can_send = !p->is_directed || index <= channel;
        bool can_receive = !p->is_directed || index > channel;
        bool has_room = depth < 3 && variables + 1 < ORDERS_REGISTER_MAX - 1;
        if (roll < 8 && can_send) {
            stmt->kind = ORDERS_SEND;
            process->produces[channel] = true;
        } else if (roll < 14 && has_room && can_receive) {
            stmt->kind = ORDERS_RECEIVE;
            process->consumes[channel] = true;
        } else if (roll < 15 && has_room && can_receive && !p->is_event[channel]) {
            stmt->kind = ORDERS_CONSUME;
            process->consumes[channel] = true;
        } else if (roll >= 15 && roll < 17 && has_room) {
            stmt->kind = ORDERS_LOOP;
            stmt->number = 1 + orders_below(random, 2);
        } else if (roll == 17 && stmt->variable >= 0) {
            stmt->kind = ORDERS_WHEN;
        } else if (roll == 18) {
            stmt->kind = ORDERS_SET;
        } else if (roll == 19 && depth == 0 && i == count - 1 && process->produces[channel]) {
            stmt->kind = ORDERS_CLOSE;
            has_closed = true;
        } else {
            continue;
        }
        process->count++;
        bool has_variable = stmt->kind == ORDERS_RECEIVE || stmt->kind == ORDERS_CONSUME ||
                            stmt->kind == ORDERS_LOOP;
        if (has_variable || stmt->kind == ORDERS_WHEN) {
            orders_body(p, process, random, depth + 1, variables + has_variable,
                        orders_below(random, 3));
        }
    }
}

static inline void orders_random(orders_pipeline *p, uint64_t seed) {
    uint64_t random = seed;
    memset(p, 0, sizeof *p);
    p->channel_count = 1 + orders_below(&random, ORDERS_CHANNEL_MAX);
    p->process_count = 2 + orders_below(&random, ORDERS_PROCESS_MAX - 1);
    p->is_directed = orders_below(&random, 3) > 0;
    for (int i = 0; i < p->channel_count; i++) {
        p->is_event[i] = orders_below(&random, 10) == 0;
        p->depths[i] = p->is_event[i] ? 0 : orders_below(&random, ORDERS_DEPTH_MAX + 1);
    }
    for (int i = 0; i < p->process_count; i++) {
        orders_body(p, &p->processes[i], &random, 0, 0, 1 + orders_below(&random, 4));
        int channel = orders_below(&random, p->channel_count);
        if (p->is_directed && i > channel && !p->is_event[channel] &&
            p->processes[i].count < ORDERS_STMT_MAX &&
            orders_below(&random, 3) > 0) {  // takes the rest, so that more of them end
            orders_stmt rest = {ORDERS_CONSUME, channel, -1, 0, 0, 0};
            p->processes[i].stmts[p->processes[i].count++] = rest;
            p->processes[i].consumes[channel] = true;
        }
        p->replicas[i] = 1 + (orders_below(&random, 6) == 0);
    }
}

// -- as text --------------------------------------------------------------------------------------

// A statement on its line; is_event: the variables that are 0, as they are of waits.
static inline char *orders_write_stmt(char *at, const orders_pipeline *p, const orders_stmt *stmt,
                                      bool *is_event) {
    const char channel = (char)('a' + stmt->channel);
    const bool has_value = stmt->variable >= 0 && !is_event[stmt->variable];
    char value[32] = "", space[32];
    snprintf(space, sizeof space, "%*s", 6 + 2 * stmt->depth, "");
    if (has_value) {
        snprintf(value, sizeof value, "v%d + ", stmt->variable);
    }
    switch (stmt->kind) {
    case ORDERS_SEND:
        at += p->is_event[stmt->channel]
                  ? sprintf(at, "%srecord %c\n", space, channel)
                  : sprintf(at, "%ssend %c(%s%d)\n", space, channel, value, stmt->number);
        return at + sprintf(at, "%stask work()\n", space);
    case ORDERS_RECEIVE:
        is_event[stmt->target] = p->is_event[stmt->channel];
        return at + (is_event[stmt->target]
                         ? sprintf(at, "%swait %c\n%ssequence\n", space, channel, space)
                         : sprintf(at, "%sreceive v%d from %c\n", space, stmt->target, channel));
    case ORDERS_CONSUME:
        is_event[stmt->target] = false;
        return at + sprintf(at, "%sconsume v%d from %c\n", space, stmt->target, channel);
    case ORDERS_LOOP:
        is_event[stmt->target] = false;
        return at + sprintf(at, "%sfor_each v%d in %s\n", space, stmt->target,
                            stmt->number == 1 ? "one" : "two");
    case ORDERS_WHEN: return at + sprintf(at, "%swhen %s0 == %d\n", space, value, stmt->number);
    case ORDERS_CLOSE: return at + sprintf(at, "%sclose %c\n", space, channel);
    case ORDERS_SET: break;
    }
    return at + sprintf(at, "%sslot_set %d = %s%d\n", space, stmt->channel, value, stmt->number);
}

static inline char *orders_write_ports(char *at, const char *verb, const bool *ports) {
    const char *before = verb;
    for (int c = 0; c < ORDERS_CHANNEL_MAX; c++) {
        if (ports[c]) {
            at += sprintf(at, "%s %c", before, 'a' + c);
            before = ",";
        }
    }
    return at;
}

static inline void orders_write(char *at, const orders_pipeline *p) {
    at += sprintf(at, "module m slots 4\naxis one 1\naxis two 2\n"
                      "kernel work(axes 0) vector, 7 cycles, time only\n"
                      "workload main\n  pipeline p\n");
    for (int c = 0; c < p->channel_count; c++) {
        at += p->is_event[c]
                  ? sprintf(at, "    event %c\n", 'a' + c)
                  : sprintf(at, "    channel %c depth %d latency 0\n", 'a' + c, p->depths[c]);
    }
    for (int i = 0; i < p->process_count; i++) {
        const orders_process *process = &p->processes[i];
        bool is_event[ORDERS_REGISTER_MAX] = {false};
        at += sprintf(at, "    process p%d%s", i, p->replicas[i] > 1 ? " replicas r in two" : "");
        at = orders_write_ports(at, " consumes", process->consumes);
        at = orders_write_ports(at, " produces", process->produces);
        at += sprintf(at, "\n");
        for (int k = 0; k < process->count; k++) {
            at = orders_write_stmt(at, p, &process->stmts[k], is_event);
        }
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
    const orders_pipeline *p;
    orders_op ops[ORDERS_PROCESS_MAX][ORDERS_OP_MAX];
    int count;                          // of processes, replicas counted
    int kinds[2 * ORDERS_PROCESS_MAX];  // whose ops
} orders_machine;

static inline int orders_flatten(const orders_process *process, int at, int depth, orders_op *ops,
                                 int *count) {
    while (at < process->count && process->stmts[at].depth == depth) {
        const orders_stmt *stmt = &process->stmts[at++];
        orders_op op = {ORDERS_OP_SEND, stmt->channel, stmt->variable, stmt->number, 0};
        int first = *count;
        switch (stmt->kind) {
        case ORDERS_SEND: ops[(*count)++] = op; continue;
        case ORDERS_SET: continue;  // nothing reads slots here
        case ORDERS_CLOSE:
            op.kind = ORDERS_OP_CLOSE;
            ops[(*count)++] = op;
            continue;
        case ORDERS_RECEIVE:
        case ORDERS_CONSUME:
            op.kind = ORDERS_OP_RECEIVE;
            op.variable = stmt->target;
            break;
        case ORDERS_WHEN: op.kind = ORDERS_OP_UNLESS; break;
        case ORDERS_LOOP:
            op.kind = ORDERS_OP_ZERO;
            op.variable = stmt->target;
            break;
        }
        ops[(*count)++] = op;
        at = orders_flatten(process, at, depth + 1, ops, count);
        if (stmt->kind == ORDERS_CONSUME) {
            op.kind = ORDERS_OP_JUMP;
            op.target = first;
            ops[(*count)++] = op;
        } else if (stmt->kind == ORDERS_LOOP) {
            op.kind = ORDERS_OP_COUNT;
            op.target = first + 1;
            ops[(*count)++] = op;
        }
        ops[first].target = *count;
    }
    return at;
}

static inline void orders_compile(orders_machine *machine, const orders_pipeline *p) {
    memset(machine, 0, sizeof *machine);
    machine->p = p;
    for (int i = 0; i < p->process_count; i++) {
        int count = 0;
        orders_flatten(&p->processes[i], 0, 0, machine->ops[i], &count);
        machine->ops[i][count].kind = ORDERS_OP_END;
        for (int j = 0; j < p->replicas[i]; j++) {
            machine->kinds[machine->count++] = i;
        }
    }
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
        if (s->at[i] >= 0 && machine->p->processes[machine->kinds[i]].produces[channel] &&
            !(s->closed[i] & 1 << channel)) {
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
    int c = op->channel, depth = machine->p->depths[c], here = s->at[process];
    bool is_event = machine->p->is_event[c];
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

// Random pipelines: chains, forks, joins, channels with several producers and consumers, rings and
// anything at all, of processes that drop, double, zip, drain and stop early as data says. Most
// come to their end; some are stuck, which is for the reference to find.

#ifndef PTOWSP_PIPELINE_RANDOM_H
#define PTOWSP_PIPELINE_RANDOM_H

#include "pipeline_sample.h"

typedef enum sim_shape {
    SIM_CHAIN = 0,  // process i sends to process i + 1
    SIM_FORWARD,    // channels lead from processes to later ones, a few of each
    SIM_SHARED,     // one or two channels between many
    SIM_RING,       // a number of tokens goes around
    SIM_ANY,        // channels lead anywhere, also from a process to itself
    SIM_SHAPE_COUNT
} sim_shape;

typedef struct sim_random {
    sim_writer w;
    uint64_t state;
    int producers[SIM_CHANNEL_MAX], consumers[SIM_CHANNEL_MAX];  // sets of processes, as bits
    int64_t event_count[SIM_CHANNEL_MAX];  // records, and mostly waits, of each event
    bool is_slow;                          // tasks are long, so that processes seldom tie
    bool is_tied;                          // hardly anything takes time, so that they always do
    int64_t scale;                         // of loops; above 1, some processes begin late
    int64_t replica_max;
} sim_random;

static inline int64_t sim_in(sim_random *g, int64_t low, int64_t high) {
    return test_random_in(&g->state, low, high);
}

// True once in `n`.
static inline bool sim_one_in(sim_random *g, int64_t n) {
    return sim_in(g, 1, n) == 1;
}

static inline bool sim_percent(sim_random *g, int64_t percent) {
    return sim_in(g, 1, 100) <= percent;
}

static inline uint32_t sim_random_depth(sim_random *g) {
    static const uint32_t depths[] = {0, 0, 1, 1, 1, 2, 2, 3, 4, 7, 64};
    return depths[sim_in(g, 0, 10)];
}

static inline uint64_t sim_random_latency(sim_random *g) {
    static const uint64_t latencies[] = {0, 0, 0, 0, 1, 1, 7, 50};
    return g->is_tied ? 0 : latencies[sim_in(g, 0, 7)];
}

// -- expressions ----------------------------------------------------------------------------------

// A number that depends on `value`, an expression.
static inline int sim_random_value(sim_random *g, int value) {
    sim_pipeline *p = g->w.p;
    switch (sim_in(g, 0, 9)) {
    case 0: return sim_binary(p, SIM_ADD, value, sim_literal(p, sim_in(g, 1, 40)));
    case 1: {
        int slot = sim_expr_add(p, SIM_SLOT, 0, 0, sim_in(g, 0, SIM_SLOT_COUNT - 1));
        return sim_binary(p, SIM_REM, sim_binary(p, SIM_ADD, value, slot), sim_literal(p, 97));
    }
    case 2: {
        int replica = sim_expr_add(p, SIM_REPLICA, 0, 0, 0);
        return sim_binary(p, SIM_ADD, value, sim_binary(p, SIM_MUL, replica, sim_literal(p, 100)));
    }
    case 3: {
        int symbol = sim_expr_add(p, SIM_SYMBOL, 0, 0, sim_in(g, 0, SIM_SYMBOL_COUNT - 1));
        return sim_binary(p, SIM_SUB, symbol, value);
    }
    case 4: return sim_binary(p, SIM_MUL, value, sim_literal(p, INT64_C(0x123456789abcdef)));
    default: return value;
    }
}

// About once in `n` of the values.
static inline int sim_random_condition(sim_random *g, int value, int64_t n) {
    sim_pipeline *p = g->w.p;
    int rest = sim_binary(p, SIM_REM, value, sim_literal(p, n));
    int64_t which = sim_in(g, 0, n - 1);
    return sim_one_in(g, 3) ? sim_binary(p, SIM_LESS, rest, sim_literal(p, which))
                            : sim_binary(p, SIM_EQUAL, rest, sim_literal(p, which));
}

// -- statements -----------------------------------------------------------------------------------

static inline void sim_random_task(sim_random *g, int value) {
    if (g->is_tied) {
        sim_task_add(&g->w, value, 0, sim_one_in(g, 3) ? 1 : 0);
        return;
    }
    int64_t scale = g->is_slow ? 100 : 1;
    int64_t base = sim_in(g, 0, 4) * scale;  // one draw a statement: their order is the same
    base *= sim_in(g, 0, 3);                 // for every compiler
    sim_task_add(&g->w, value, base, sim_one_in(g, 2) ? 0 : sim_in(g, 1, 12) * scale);
}

static inline int sim_random_for(sim_random *g, int value, int64_t count_max) {
    int number = sim_for(&g->w, sim_in(g, 0, 9) == 0 ? 0 : sim_in(g, 1, count_max) * g->scale);
    sim_stmt *stmt = &g->w.p->stmts[number];
    stmt->is_parallel = sim_one_in(g, 5);
    if (sim_one_in(g, 4)) {
        stmt->loop = SIM_DYNAMIC;
    } else if (value && sim_one_in(g, 5)) {
        stmt->loop = SIM_ROW;
        stmt->expr = value;
    }
    return number;
}

// Sends something to a channel: most often one token, with or without a task.
static inline void sim_random_send(sim_random *g, int channel, int value) {
    sim_writer *w = &g->w;
    int token = sim_random_value(g, value);
    switch (sim_in(g, 0, 11)) {
    case 0:
    case 1:
    case 2: {
        int64_t most = g->is_tied ? 1 : 9;
        int64_t cycles = sim_in(g, 0, most);
        sim_send_task_add(w, channel, token, cycles, sim_in(g, 0, most));
        break;
    }
    case 3: {  // some are dropped
        int when = sim_when(w, sim_random_condition(g, value, sim_in(g, 2, 4)));
        if (sim_one_in(g, 2)) {
            sim_random_task(g, value);
            sim_end(w);
            sim_otherwise(w, when);
        }
        sim_port(w, SIM_SEND, channel, token);
        sim_end(w);
        break;
    }
    case 4:  // some are sent twice
        sim_port(w, SIM_SEND, channel, token);
        sim_when(w, sim_random_condition(g, value, sim_in(g, 2, 3)));
        sim_port(w, SIM_SEND, channel, sim_random_value(g, value));
        sim_end(w);
        break;
    case 5: {
        int number = sim_random_for(g, value, 2);
        sim_port(w, SIM_SEND, channel,
                 sim_binary(w->p, SIM_ADD, token, sim_variable(w->p, number)));
        sim_end(w);
        break;
    }
    default: sim_port(w, SIM_SEND, channel, token); break;
    }
}

// What is done with a token: work, and sending to the outputs.
static inline void sim_random_emit(sim_random *g, const int *outputs, int output_count, int value) {
    sim_writer *w = &g->w;
    sim_pipeline *p = w->p;
    bool has_scope = sim_one_in(g, 8);
    if (has_scope) {
        sim_scope(w, sim_one_in(g, 2));
    }
    if (sim_percent(g, 75)) {
        sim_random_task(g, value);
    }
    if (sim_one_in(g, 5)) {
        uint32_t slot = (uint32_t)sim_in(g, 0, SIM_SLOT_COUNT - 1);
        int sum = sim_binary(p, SIM_ADD, value, sim_expr_add(p, SIM_SLOT, 0, 0, slot));
        sim_slot_set(w, slot, sum);
    }
    for (int i = 0; i < output_count; i++) {
        sim_random_send(g, outputs[i], value);
    }
    if (sim_one_in(g, 6)) {
        int when = sim_when(w, sim_random_condition(g, value, 3));
        sim_random_task(g, value);
        sim_end(w);
        if (sim_one_in(g, 2)) {
            sim_otherwise(w, when);
            sim_random_task(g, sim_random_value(g, value));
            sim_end(w);
        }
    }
    if (has_scope) {
        sim_end(w);
    }
}

// -- processes ------------------------------------------------------------------------------------

static inline void sim_random_source(sim_random *g, const int *outputs, int output_count) {
    sim_writer *w = &g->w;
    int round = sim_expr_add(w->p, SIM_ROUND, 0, 0, 0);
    int outer = sim_random_for(g, round, sim_one_in(g, 6) ? 30 : 10);
    int value = sim_variable(w->p, outer);
    if (sim_one_in(g, 6)) {
        int inner = sim_random_for(g, value, 3);
        int row = sim_binary(w->p, SIM_MUL, value, sim_literal(w->p, 3));
        sim_random_emit(g, outputs, output_count,
                        sim_binary(w->p, SIM_ADD, row, sim_variable(w->p, inner)));
        sim_end(w);
    } else {
        sim_random_emit(g, outputs, output_count, value);
    }
    sim_end(w);
}

static inline void sim_random_consume(sim_random *g, int input, const int *outputs,
                                      int output_count) {
    sim_writer *w = &g->w;
    int64_t style = sim_in(g, 0, 9);
    if (style == 0) {  // so many, and then no more
        sim_random_for(g, 0, 8);
    }
    sim_kind kind = style <= 1 ? SIM_RECEIVE : SIM_CONSUME;
    int number = sim_take(w, kind, input);
    sim_random_emit(g, outputs, output_count, sim_variable(w->p, number));
    if (style == 2) {  // the inner one drains it
        int inner = sim_take(w, SIM_CONSUME, input);
        int both = sim_binary(w->p, SIM_SUB, sim_variable(w->p, inner), sim_variable(w->p, number));
        sim_random_emit(g, outputs, output_count, both);
        sim_end(w);
    }
    sim_end(w);
    if (style == 0) {
        sim_end(w);
    } else if (style == 1) {  // the first one is special
        number = sim_take(w, SIM_CONSUME, input);
        sim_random_emit(g, outputs, output_count, sim_variable(w->p, number));
        sim_end(w);
    }
}

// Two channels at once.
static inline void sim_random_zip(sim_random *g, int a, int b, const int *outputs,
                                  int output_count) {
    sim_writer *w = &g->w;
    int64_t style = sim_in(g, 0, 9);
    int extra = 0;
    if (style == 0) {
        sim_random_for(g, 0, 12);
        extra = 1;
    }
    int first = sim_take(w, style == 0 ? SIM_RECEIVE : SIM_CONSUME, a);
    int value = sim_variable(w->p, first);
    if (style == 1) {  // b is not always needed
        sim_when(w, sim_random_condition(g, value, 2));
        extra = 1;
    }
    int second = sim_take(w, style <= 6 ? SIM_RECEIVE : SIM_CONSUME, b);
    int both = sim_binary(w->p, SIM_ADD, sim_variable(w->p, first), sim_variable(w->p, second));
    sim_random_emit(g, outputs, output_count, both);
    sim_end(w);
    if (style == 2) {
        sim_random_task(g, value);
    }
    sim_end(w);
    if (extra) {
        sim_end(w);
    }
}

// Records and waits that come first in a process.
static inline void sim_random_events(sim_random *g, int process) {
    sim_writer *w = &g->w;
    for (int c = 0; c < w->p->channel_count; c++) {
        bool records = g->producers[c] >> process & 1, waits = g->consumers[c] >> process & 1;
        if (!w->p->channels[c].is_event || (!records && !waits)) {
            continue;
        }
        int64_t off = sim_one_in(g, 20) ? 1 : 0;
        int value = sim_variable(w->p, sim_for(w, g->event_count[c] + off));
        if (waits) {
            sim_port(w, SIM_WAIT, c, 0);
        }
        sim_random_task(g, value);
        if (records) {
            sim_port(w, SIM_RECORD, c, 0);
        }
        sim_end(w);
    }
}

static inline void sim_random_epilogue(sim_random *g, const sim_process *process,
                                       const int *outputs, int output_count) {
    sim_writer *w = &g->w;
    if (output_count > 0 && sim_one_in(g, 5)) {
        sim_port(w, SIM_CLOSE, outputs[0], 0);
        sim_random_source(g, outputs + 1, output_count - 1);
        if (sim_one_in(g, 4)) {
            sim_port(w, SIM_CLOSE, outputs[sim_in(g, 0, output_count - 1)], 0);
        }
    }
    if (process->consume_count > 0 && sim_one_in(g, 6)) {
        int channel = process->consumes[sim_in(g, 0, process->consume_count - 1)];
        if (!w->p->channels[channel].is_event) {
            sim_take(w, sim_one_in(g, 2) ? SIM_RECEIVE : SIM_CONSUME, channel);
            sim_random_task(g, sim_literal(w->p, 1));
            sim_end(w);
        }
    }
    if (sim_one_in(g, 4)) {
        sim_random_task(g, sim_literal(w->p, 5));
    }
}

// In a ring: receives and sends in turn, some more often than others.
static inline void sim_random_ring_process(sim_random *g, int input, int output, bool is_first) {
    sim_writer *w = &g->w;
    int64_t start = is_first ? sim_in(g, 0, 4) : 0;
    if (is_first) {
        int value = sim_variable(w->p, sim_for(w, start));
        sim_port(w, SIM_SEND, output, value);
        sim_end(w);
    }
    int number;
    int64_t style = sim_in(g, 0, 3);
    if (style > 0) {
        sim_for(w, sim_in(g, 4, 8) * g->scale);
        number = sim_take(w, SIM_RECEIVE, input);
    } else {
        number = sim_take(w, SIM_CONSUME, input);
    }
    int value = sim_variable(w->p, number);
    sim_random_task(g, value);
    if (is_first && style == 0) {  // or it would go around for ever
        sim_when(w, sim_binary(w->p, SIM_LESS, value, sim_literal(w->p, 30)));
    }
    int next = sim_binary(w->p, SIM_ADD, value, sim_literal(w->p, is_first ? 7 : 0));
    sim_port(w, SIM_SEND, output, next);
    if (is_first && style == 0) {
        sim_end(w);
    }
    sim_end(w);
    if (style > 0) {
        sim_end(w);
    }
}

static inline void sim_random_process(sim_random *g, sim_process *process, int number,
                                      sim_shape shape) {
    sim_pipeline *p = g->w.p;
    int inputs[SIM_CHANNEL_MAX], outputs[SIM_CHANNEL_MAX], input_count = 0, output_count = 0;
    for (int c = 0; c < p->channel_count; c++) {
        bool is_event = p->channels[c].is_event;
        if (g->consumers[c] >> number & 1) {
            sim_consumes(process, c);
            inputs[input_count] = c;
            input_count += !is_event && !sim_one_in(g, 40);  // some declare it only
        }
        if (g->producers[c] >> number & 1) {
            sim_produces(process, c);
            outputs[output_count] = c;
            output_count += !is_event && !sim_one_in(g, 40);
        }
    }
    if (g->scale > 1 && sim_one_in(g, 5)) {
        sim_task_add(&g->w, sim_literal(p, 0), sim_in(g, 100, 2000), 0);
    }
    sim_random_events(g, number);
    if (shape == SIM_RING && input_count > 0 && output_count > 0) {
        sim_random_ring_process(g, inputs[0], outputs[0], number == 0);
        return;
    }
    int next = 0;
    if (input_count == 0) {
        sim_random_source(g, outputs, output_count);
    } else if (input_count > 1 && sim_percent(g, 70)) {
        bool is_turned = sim_one_in(g, 2);
        sim_random_zip(g, inputs[is_turned], inputs[!is_turned], outputs, output_count);
        next = 2;
    }
    for (; next < input_count; next++) {
        sim_random_consume(g, inputs[next], outputs, output_count);
    }
    sim_random_epilogue(g, process, outputs, output_count);
}

// -- pipelines ------------------------------------------------------------------------------------

// Who produces and consumes a channel.
static inline void sim_random_ports(sim_random *g, int c, sim_shape shape, int process_count) {
    int from = 0, to = 0, last = process_count - 1;
    switch (shape) {
    case SIM_CHAIN:
        from = 1 << c;
        to = 2 << c;
        break;
    case SIM_RING:
        from = 1 << c;
        to = 1 << (c + 1) % process_count;
        break;
    case SIM_FORWARD: {
        int first = (int)sim_in(g, 0, last - 1), split = (int)sim_in(g, first, last - 1);
        from = 1 << first;
        from |= sim_one_in(g, 4) ? 1 << sim_in(g, 0, split) : 0;
        to = 1 << sim_in(g, split + 1, last);
        to |= sim_one_in(g, 4) ? 1 << sim_in(g, split + 1, last) : 0;
        break;
    }
    case SIM_SHARED: {
        int split = (int)sim_in(g, 0, last - 1);
        from = (2 << split) - 1;
        to = ((1 << process_count) - 1) & ~from;
        break;
    }
    case SIM_ANY:
    case SIM_SHAPE_COUNT:
        from = 1 << sim_in(g, 0, last);
        to = 1 << sim_in(g, 0, last);
        break;
    }
    g->producers[c] = from;
    g->consumers[c] = to;
}

static inline void sim_random_channels(sim_random *g, sim_shape shape, int process_count) {
    int64_t count = shape == SIM_CHAIN    ? process_count - 1
                    : shape == SIM_RING   ? process_count
                    : shape == SIM_SHARED ? sim_in(g, 1, 2)
                                          : sim_in(g, 1, process_count + 1);
    for (int c = 0; c < count; c++) {
        uint32_t depth = sim_random_depth(g);
        sim_channel_add(&g->w, depth, sim_random_latency(g));
        g->w.p->channels[c].depth_is_bound = sim_one_in(g, 5);
        g->w.p->channels[c].latency_is_bound = sim_one_in(g, 5);
        sim_random_ports(g, c, shape, process_count);
    }
    for (int i = 0; i < 2 && sim_one_in(g, 6); i++) {
        int c = sim_event_add(&g->w);
        sim_random_ports(g, c, SIM_FORWARD, process_count);
        g->event_count[c] = sim_in(g, 1, 6);
    }
}

// Processes with events are seldom replicated: there would not be as many waits as records.
static inline void sim_random_replicas(sim_random *g, sim_process *process, bool has_events) {
    if (sim_percent(g, has_events ? 3 : g->replica_max > SIM_REPLICA_MAX ? 60 : 20)) {
        process->replicas = sim_one_in(g, 2) ? SIM_REPLICAS_DENSE : SIM_REPLICAS_DYNAMIC;
        process->replica_count = (int)sim_in(g, 1, g->replica_max);
    }
}

static inline void sim_pipeline_random_of(sim_pipeline *p, uint64_t seed, int64_t scale,
                                          int64_t replica_max) {
    static const sim_shape shapes[] = {SIM_CHAIN,   SIM_CHAIN,  SIM_FORWARD, SIM_FORWARD,
                                       SIM_FORWARD, SIM_SHARED, SIM_RING,    SIM_ANY};
    sim_random g;
    memset(&g, 0, sizeof g);
    g.state = seed;
    g.scale = scale;
    g.replica_max = replica_max;
    sim_begin(&g.w, p);
    sim_shape shape = shapes[sim_in(&g, 0, 7)];
    int process_count = (int)sim_in(&g, 2, sim_one_in(&g, 2) ? 4 : 8);
    g.is_slow = sim_one_in(&g, 4);
    g.is_tied = !g.is_slow && sim_one_in(&g, 6);
    sim_random_channels(&g, shape, process_count);
    for (int i = 0; i < process_count; i++) {
        bool has_events = false;
        for (int c = 0; c < p->channel_count; c++) {
            has_events = has_events ||
                         (p->channels[c].is_event && ((g.producers[c] | g.consumers[c]) >> i & 1));
        }
        sim_process *process = sim_process_add(&g.w);
        sim_random_replicas(&g, process, has_events);
        sim_random_process(&g, process, i, shape);
        sim_end(&g.w);
        assert_int_equal(g.w.depth, 0);
    }
}

static inline void sim_pipeline_random(sim_pipeline *p, uint64_t seed) {
    sim_pipeline_random_of(p, seed, 1, SIM_REPLICA_MAX);
}

static inline void sim_bindings_random(const sim_pipeline *p, uint64_t *state, sim_bindings *b) {
    sim_random g;
    memset(&g, 0, sizeof g);
    memset(b, 0, sizeof *b);
    g.state = test_random(state);
    for (int c = 0; c < p->channel_count; c++) {
        b->depths[c] = sim_random_depth(&g);
        b->latencies[c] = sim_random_latency(&g);
    }
    for (int i = 0; i < p->process_count; i++) {
        b->replicas[i] = sim_in(&g, 1, SIM_REPLICA_MAX);
    }
    for (int i = 0; i < p->stmt_count; i++) {
        b->counts[i] = sim_in(&g, 0, 9);
    }
    for (int i = 0; i < SIM_LENGTH_COUNT; i++) {
        b->lengths[i] = sim_in(&g, 0, 4);
    }
    for (int i = 0; i < SIM_SYMBOL_COUNT; i++) {
        b->symbols[i] = (uint64_t)sim_in(&g, 0, 50);
    }
    for (int i = 0; i < SIM_SLOT_COUNT; i++) {
        b->slots[i] = sim_in(&g, 0, 20);
    }
    b->has_latency = sim_one_in(&g, 6);
    b->latency = sim_random_latency(&g);
    b->rounds = sim_one_in(&g, 4) ? sim_in(&g, 1, 3) : 1;
}

static inline void sim_around_random(uint64_t *state, sim_around *around) {
    sim_random g;
    memset(&g, 0, sizeof g);
    g.state = test_random(state);
    around->before = sim_one_in(&g, 4) ? sim_in(&g, 1, 99) : 0;
    around->after = sim_one_in(&g, 4) ? sim_in(&g, 1, 99) : 0;
    around->issue = (sim_issue)(sim_one_in(&g, 2) ? 0 : sim_in(&g, 1, SIM_ISSUE_COUNT - 1));
    around->has_no_cost = sim_one_in(&g, 8);
}

// Whether no statement sends to some channel, or none receives from it: known when compiling.
static inline bool sim_has_loose_channel(const sim_pipeline *p) {
    bool sends[SIM_CHANNEL_MAX] = {false}, receives[SIM_CHANNEL_MAX] = {false};
    for (int i = 0; i < p->stmt_count; i++) {
        const sim_stmt *stmt = &p->stmts[i];
        switch (stmt->kind) {
        case SIM_SEND:
        case SIM_SEND_TASK:
        case SIM_RECORD: sends[stmt->channel] = true; break;
        case SIM_CONSUME:
        case SIM_RECEIVE:
        case SIM_WAIT: receives[stmt->channel] = true; break;
        default: break;
        }
    }
    for (int c = 0; c < p->channel_count; c++) {
        if (!sends[c] || !receives[c]) {
            return true;
        }
    }
    return false;
}

// A random pipeline that comes to an end, or with a lesser chance one that is stuck.
static inline sim_sample *sim_sample_random(uint64_t seed, unsigned number) {
    sim_sample *s = sim_sample_make("pipeline", number);
    uint64_t random = seed + number * UINT64_C(1000003);
    for (;;) {
        sim_pipeline_random(&s->p, test_random(&random));
        sim_bindings_random(&s->p, &random, &s->b);
        sim_around_random(&random, &s->around);
        bool takes_stuck = test_random(&random) % 4 == 0;
        bool takes_small = test_random(&random) % 4 == 0;
        if (!s->p.is_full && sim_sample_expect(s) && (takes_stuck || s->status == PTOWSP_OK) &&
            (takes_small || s->rounds[0].step_count >= 20)) {
            return s;
        }
    }
}

#endif

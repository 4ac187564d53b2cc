// Deadlocks by construction, in families: rings, zips, consumers that stop, self loops, pipelines
// that take what they need in another order than it comes. Each family says in numbers when it is
// stuck, and its nearest live neighbour (one place more, or one that sends first) must not be. All
// are also compared with the slow reference: who waits, where, since when.

#include "pipeline_check.h"

// -- rings ----------------------------------------------------------------------------------------

static void ring_process(sim_writer *w, int n, int i) {
    sim_process_between(w, (i + n - 1) % n, i);
}

static void ring_channels(sim_writer *w, int n, uint32_t d) {
    for (int i = 0; i < n; i++) {
        sim_channel_add(w, d, (uint64_t)(i % 3));
    }
}

// Three times, each of n processes receives and sends on. All receive first, or the first one does
// not.
static void ring_of_receivers(sim_writer *w, int n, uint32_t d, int more) {
    ring_channels(w, n, d);
    for (int i = 0; i < n; i++) {
        ring_process(w, n, i);
        sim_task_add(w, sim_literal(w->p, i), i + 1, 0);
        sim_for(w, 3);
        if (i == 0 && more == 0) {
            sim_port(w, SIM_SEND, i, sim_literal(w->p, 7));
        }
        int token = sim_take(w, SIM_RECEIVE, (i + n - 1) % n);
        sim_task_add(w, sim_variable(w->p, token), 2, 0);
        if (i != 0 || more > 0) {
            sim_port(w, SIM_SEND, i, sim_variable(w->p, token));
        }
        sim_process_end(w);
    }
}

// The first process sends as many tokens around the ring as its channels hold, and the processes
// that pass them on one at a time; and `more`. Then it takes them back.
static void ring_with_tokens(sim_writer *w, int n, uint32_t d, int more) {
    int tokens = n * (int)d + n - 1 + more;
    ring_channels(w, n, d);
    for (int i = 0; i < n; i++) {
        ring_process(w, n, i);
        if (i == 0) {
            sim_send_task_add(w, 0, sim_variable(w->p, sim_for(w, tokens)), 3, 0);
            sim_end(w);
            sim_for(w, tokens);
            sim_task_add(w, sim_variable(w->p, sim_take(w, SIM_RECEIVE, n - 1)), 1, 0);
        } else {
            sim_port(w, SIM_SEND, i, sim_variable(w->p, sim_take(w, SIM_CONSUME, i - 1)));
        }
        sim_process_end(w);
    }
}

// n tokens, one from each process, that all send before they receive: at depth 0 everybody waits
// for the others. One that receives first, or one place, makes it live.
static void ring_of_senders(sim_writer *w, int n, uint32_t d, int more) {
    ring_channels(w, n, d);
    if (more == 0 && d == 0) {
        w->p->channels[n / 2].depth = 1;
    }
    for (int i = 0; i < n; i++) {
        ring_process(w, n, i);
        sim_for(w, 4);
        sim_port(w, SIM_SEND, i, sim_literal(w->p, i));
        int token = sim_take(w, SIM_RECEIVE, (i + n - 1) % n);
        sim_task_add(w, sim_variable(w->p, token), 2 * i, 3);
        sim_process_end(w);
    }
}

// -- a process and itself -------------------------------------------------------------------------

// It sends d tokens to itself, and `more`, and then receives them.
static void self_loop(sim_writer *w, int n, uint32_t d, int more) {
    int tokens = (int)d + more;
    sim_channel_add(w, d, (uint64_t)n);
    sim_process_between(w, 0, 0);
    sim_send_task_add(w, 0, sim_variable(w->p, sim_for(w, tokens)), n, 0);
    sim_end(w);
    sim_for(w, tokens);
    sim_task_add(w, sim_variable(w->p, sim_take(w, SIM_RECEIVE, 0)), n, 0);
    sim_process_end(w);
}

// It drains what it has sent itself, up to n tokens, for which there is room, and waits for its own end; unless
// it has closed the channel.
static void self_drain(sim_writer *w, int n, uint32_t d, int more) {
    sim_channel_add(w, d, 2);
    sim_process_between(w, 0, 0);
    sim_send_task_add(w, 0, sim_variable(w->p, sim_for(w, n < (int)d ? n : (int)d)), 4, 0);
    sim_end(w);
    if (more == 0) {
        sim_port(w, SIM_CLOSE, 0, 0);
    }
    sim_task_add(w, sim_variable(w->p, sim_take(w, SIM_CONSUME, 0)), 1, 0);
    sim_process_end(w);
}

// -- those who stop, and those who want another order ---------------------------------------------

// A process that sends so many tokens to a channel, with a task for each.
static void source(sim_writer *w, int channel, int count, int64_t cycles, int64_t spread) {
    sim_process_between(w, -1, channel);
    sim_send_task_add(w, channel, sim_variable(w->p, sim_for(w, count)), cycles, spread);
    sim_process_end(w);
}

// A zip of n pairs, while one side has d tokens left over, which have room, and `more`.
static void zip(sim_writer *w, int n, uint32_t d, int more) {
    sim_channel_add(w, d, 1);
    sim_channel_add(w, d, 0);
    int longer = n + (int)d + more;
    source(w, 0, n % 2 ? longer : n, 3, 2);
    source(w, 1, n % 2 ? n : longer, 4, 2);
    sim_consumes(sim_process_between(w, 0, -1), 1);
    sim_for(w, n);
    int a = sim_take(w, SIM_RECEIVE, 0), b = sim_take(w, SIM_RECEIVE, 1);
    sim_task_add(w, sim_binary(w->p, SIM_ADD, sim_variable(w->p, a), sim_variable(w->p, b)), 5, 0);
    sim_process_end(w);
}

// n replicas take one token each of those that two producers send, and are gone.
static void early_stop(sim_writer *w, int n, uint32_t d, int more) {
    sim_channel_add(w, d, 1);
    source(w, 0, n, 2, 0);
    source(w, 0, (int)d + more, 2, 0);
    sim_process *process = sim_process_between(w, 0, -1);
    process->replicas = SIM_REPLICAS_DENSE;
    process->replica_count = n;
    sim_task_add(w, sim_variable(w->p, sim_take(w, SIM_RECEIVE, 0)), 9, 0);
    sim_process_end(w);
}

// A process sends n pairs, one half to each channel; another drains the first channel before it
// looks at the second, which has room for d halves.
static void drain_in_turn(sim_writer *w, int n, uint32_t d, int more) {
    sim_channel_add(w, (uint32_t)n, 0);
    sim_channel_add(w, d, 2);
    sim_produces(sim_process_between(w, -1, 0), 1);
    int value = sim_variable(w->p, sim_for(w, (int)d + more));
    sim_send_task_add(w, 0, value, 3, 0);
    sim_port(w, SIM_SEND, 1, value);
    sim_process_end(w);
    sim_consumes(sim_process_between(w, 0, -1), 1);
    for (int c = 0; c < 2; c++) {
        sim_task_add(w, sim_variable(w->p, sim_take(w, SIM_CONSUME, c)), 1, 0);
        sim_end(w);
    }
    sim_process_end(w);
}

// A process sends n tokens to one channel and then n to another; the other takes them in pairs,
// for which d + 1 must fit the first channel.
static void pairs_of_a_batch(sim_writer *w, int n, uint32_t d, int more) {
    sim_channel_add(w, d, 1);
    sim_channel_add(w, (uint32_t)n, 1);
    sim_produces(sim_process_between(w, -1, 0), 1);
    for (int c = 0; c < 2; c++) {
        sim_send_task_add(w, c, sim_variable(w->p, sim_for(w, (int)d + 1 + more)), 4, 0);
        sim_end(w);
    }
    sim_process_end(w);
    sim_consumes(sim_process_between(w, 0, -1), 1);
    sim_take(w, SIM_CONSUME, 0);
    sim_task_add(w, sim_variable(w->p, sim_take(w, SIM_RECEIVE, 1)), 6, 0);
    sim_process_end(w);
}

// -- events ---------------------------------------------------------------------------------------

// n processes in a ring, each of which waits for the one before it and records for the next.
static void ring_of_events(sim_writer *w, int n, uint32_t d, int more) {
    for (int i = 0; i < n; i++) {
        sim_event_add(w);
    }
    for (int i = 0; i < n; i++) {
        ring_process(w, n, i);
        sim_for(w, (int)d);
        if (i == 0 && more == 0) {
            sim_port(w, SIM_RECORD, i, 0);
        }
        sim_port(w, SIM_WAIT, (i + n - 1) % n, 0);
        sim_task_add(w, sim_literal(w->p, i), 3, 0);
        if (i != 0 || more > 0) {
            sim_port(w, SIM_RECORD, i, 0);
        }
        sim_process_end(w);
    }
}

// One process waits for each of n others, which record `more` times less often than it waits.
static void missing_records(sim_writer *w, int n, uint32_t d, int more) {
    for (int i = 0; i < n; i++) {
        sim_event_add(w);
        sim_process_between(w, -1, i);
        sim_for(w, (int)d);
        sim_task_add(w, sim_literal(w->p, i), 2 * i, 0);
        sim_port(w, SIM_RECORD, i, 0);
        sim_process_end(w);
    }
    sim_process *process = sim_process_add(w);
    sim_for(w, (int)d + more);
    for (int i = 0; i < n; i++) {
        sim_consumes(process, i);
        sim_port(w, SIM_WAIT, i, 0);
    }
    sim_process_end(w);
}

// -- all of them ----------------------------------------------------------------------------------

enum { ALL_WAIT = -1 };

// A family writes a pipeline for a size n, a depth d, and `more` above what there is room for: it
// is live for `more` 0, and stuck for every larger one.
static const struct {
    const char *claim;
    void (*make)(sim_writer *w, int n, uint32_t d, int more);
    int n[2], d[2];  // the first and the last
    int more[2];     // that are tried; 0: none
    int waits;       // how many processes wait at least when it is stuck
} families[] = {
    // clang-format off
    {"all receive first", ring_of_receivers, {2, 8}, {0, 3}, {1, 0}, ALL_WAIT},
    {"one token too many", ring_with_tokens, {2, 8}, {0, 4}, {1, 5}, ALL_WAIT},
    {"all send first, without a place", ring_of_senders, {2, 8}, {0, 0}, {1, 0}, ALL_WAIT},
    {"all send first, with places", ring_of_senders, {2, 8}, {1, 1}, {0, 0}, 0},
    {"meets itself only through places", self_loop, {0, 3}, {0, 5}, {1, 0}, 1},
    {"waits for its own end", self_drain, {0, 3}, {0, 5}, {1, 0}, 1},
    {"a zip whose rest has no room", zip, {1, 5}, {0, 4}, {1, 3}, 1},
    {"all consumers have gone", early_stop, {1, SIM_REPLICA_MAX}, {0, 4}, {1, 2}, 1},
    {"one after the other", drain_in_turn, {0, 3}, {0, 6}, {1, 0}, 2},
    {"pairs of a batch", pairs_of_a_batch, {0, 3}, {0, 6}, {1, 0}, 2},
    {"all wait before they record", ring_of_events, {2, 6}, {1, 3}, {1, 0}, ALL_WAIT},
    {"an event that is never recorded", missing_records, {2, 6}, {1, 3}, {1, 0}, 1},
    // clang-format on
};

// Compiles, runs and compares.
static void family_is(size_t family, int n, uint32_t d, int more) {
    sim_sample *s =
        sim_sample_make(families[family].claim, (uint64_t)(n * 10000 + (int)d * 100 + more));
    sim_writer w;
    sim_begin(&w, &s->p);
    families[family].make(&w, n, d, more);
    assert_false(s->p.is_full);
    assert_true(sim_sample_expect(s));
    sim_sample_build(s);
    if (s->status != (more > 0 ? PTOWSP_STUCK : PTOWSP_OK)) {
        sim_complain(s, NULL, "the reference is wrong");
    }
    assert_ok(s->built.status);
    ptowsp_run *run = test_run_of(s->context, s->built.program);
    sim_bind(&s->built, &s->b, run);
    sim_check_runs(s, run);
    uint32_t process_count = 0;
    const ptowsp_process_stats *processes = ptowsp_run_processes(run, &process_count);
    int count = 0;
    for (uint32_t i = 0; i < process_count; i++) {
        count += processes[i].state != PTOWSP_PROCESS_ENDED;
    }
    const int waits = families[family].waits == ALL_WAIT ? n : families[family].waits;
    assert_true(more > 0 ? count >= waits : count == 0);
    ptowsp_run_destroy(run);
    sim_sample_free(s);
}

TEST(pipeline__families_are_stuck_where_there_is_more_than_has_room) {
    for (size_t i = 0; i < COUNT_OF(families); i++) {
        print_message("%s\n", families[i].claim);
        for (int n = families[i].n[0]; n <= families[i].n[1]; n++) {
            for (int d = families[i].d[0]; d <= families[i].d[1]; d++) {
                family_is(i, n, (uint32_t)d, 0);
                for (int k = 0; k < 2 && families[i].more[k] > 0; k++) {
                    family_is(i, n, (uint32_t)d, families[i].more[k]);
                }
            }
        }
    }
}

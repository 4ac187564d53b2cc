// Deadlocks by construction, in families: rings, zips, consumers that stop, self loops, pipelines
// that take what they need in another order than it comes. Each family says in numbers when it is
// stuck, and its nearest live neighbour (one place more, or one that sends first) must not be. All
// are also compared with the slow reference: who waits, where, since when.

#include "pipeline_check.h"

// A family writes a pipeline for a size n, a depth d, and `more` above what there is room for: it
// is live for `more` 0, and stuck for every larger one.
typedef void (*family)(sim_writer *w, int n, uint32_t d, int more);

// Compiles, runs and compares; `waits` is how many processes wait at least when it is stuck.
static void family_is(const char *name, family make, int n, uint32_t d, int more, int waits) {
    sim_sample *s = sim_sample_make(name, (uint64_t)(n * 10000 + (int)d * 100 + more));
    sim_writer w;
    sim_begin(&w, &s->p);
    make(&w, n, d, more);
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
    assert_true(more > 0 ? count >= waits : count == 0);
    ptowsp_run_destroy(run);
    sim_sample_free(s);
}

// -- rings ----------------------------------------------------------------------------------------

static sim_process *ring_process(sim_writer *w, int n, int i) {
    sim_process *process = sim_process_add(w);
    sim_consumes(process, (i + n - 1) % n);
    sim_produces(process, i);
    return process;
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
        sim_end(w);
        sim_end(w);
        sim_end(w);
    }
}

TEST(pipeline__a_ring_of_processes_that_all_receive_first_is_stuck) {
    for (int n = 2; n <= 8; n++) {
        for (uint32_t d = 0; d <= 3; d++) {
            family_is("ring of receivers", ring_of_receivers, n, d, 0, 0);
            family_is("ring of receivers", ring_of_receivers, n, d, 1, n);
        }
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
            int value = sim_variable(w->p, sim_for(w, tokens));
            sim_send_task_add(w, 0, value, 3, 0);
            sim_end(w);
            sim_for(w, tokens);
            int token = sim_take(w, SIM_RECEIVE, n - 1);
            sim_task_add(w, sim_variable(w->p, token), 1, 0);
            sim_end(w);
            sim_end(w);
        } else {
            int token = sim_take(w, SIM_CONSUME, i - 1);
            sim_port(w, SIM_SEND, i, sim_variable(w->p, token));
            sim_end(w);
        }
        sim_end(w);
    }
}

TEST(pipeline__a_ring_with_one_token_too_many_is_stuck) {
    for (int n = 2; n <= 8; n++) {
        for (uint32_t d = 0; d <= 4; d++) {
            family_is("ring with tokens", ring_with_tokens, n, d, 0, 0);
            family_is("ring with tokens", ring_with_tokens, n, d, 1, n);
            family_is("ring with tokens", ring_with_tokens, n, d, 5, n);
        }
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
        sim_end(w);
        sim_end(w);
        sim_end(w);
    }
}

TEST(pipeline__a_ring_of_processes_that_all_send_first_needs_one_place) {
    for (int n = 2; n <= 8; n++) {
        family_is("ring of senders", ring_of_senders, n, 0, 0, 0);
        family_is("ring of senders", ring_of_senders, n, 0, 1, n);
        family_is("ring of senders", ring_of_senders, n, 1, 0, 0);
    }
}

// -- a process and itself -------------------------------------------------------------------------

// It sends d tokens to itself, and `more`, and then receives them.
static void self_loop(sim_writer *w, int n, uint32_t d, int more) {
    int tokens = (int)d + more;
    sim_channel_add(w, d, (uint64_t)n);
    sim_process *process = sim_process_add(w);
    sim_consumes(process, 0);
    sim_produces(process, 0);
    sim_send_task_add(w, 0, sim_variable(w->p, sim_for(w, tokens)), n, 0);
    sim_end(w);
    sim_for(w, tokens);
    sim_task_add(w, sim_variable(w->p, sim_take(w, SIM_RECEIVE, 0)), n, 0);
    sim_end(w);
    sim_end(w);
    sim_end(w);
}

// It drains what it has sent itself, and waits for its own end; unless it has closed the channel.
static void self_drain(sim_writer *w, int n, uint32_t d, int more) {
    sim_channel_add(w, d, 2);
    sim_process *process = sim_process_add(w);
    sim_consumes(process, 0);
    sim_produces(process, 0);
    sim_send_task_add(w, 0, sim_variable(w->p, sim_for(w, n)), 4, 0);
    sim_end(w);
    if (more == 0) {
        sim_port(w, SIM_CLOSE, 0, 0);
    }
    sim_task_add(w, sim_variable(w->p, sim_take(w, SIM_CONSUME, 0)), 1, 0);
    sim_end(w);
    sim_end(w);
}

TEST(pipeline__a_process_meets_itself_only_through_places) {
    for (int n = 0; n <= 3; n++) {
        for (uint32_t d = 0; d <= 5; d++) {
            family_is("self loop", self_loop, n, d, 0, 0);
            family_is("self loop", self_loop, n, d, 1, 1);
            if ((uint32_t)n <= d) {
                family_is("self drain", self_drain, n, d, 0, 0);
                family_is("self drain", self_drain, n, d, 1, 1);
            }
        }
    }
}

// -- those who stop, and those who want another order ---------------------------------------------

// A source of n tokens for each of two channels.
static void sources(sim_writer *w, int a_count, int b_count) {
    for (int c = 0; c < 2; c++) {
        sim_produces(sim_process_add(w), c);
        int value = sim_variable(w->p, sim_for(w, c == 0 ? a_count : b_count));
        sim_send_task_add(w, c, value, 3 + c, 2);
        sim_end(w);
        sim_end(w);
    }
}

// A zip of n pairs, while one side has d tokens left over, which have room, and `more`.
static void zip(sim_writer *w, int n, uint32_t d, int more) {
    sim_channel_add(w, d, 1);
    sim_channel_add(w, d, 0);
    bool is_turned = n % 2 == 1;
    int longer = n + (int)d + more;
    sources(w, is_turned ? longer : n, is_turned ? n : longer);
    sim_process *process = sim_process_add(w);
    sim_consumes(process, 0);
    sim_consumes(process, 1);
    sim_for(w, n);
    int a = sim_take(w, SIM_RECEIVE, 0), b = sim_take(w, SIM_RECEIVE, 1);
    sim_task_add(w, sim_binary(w->p, SIM_ADD, sim_variable(w->p, a), sim_variable(w->p, b)), 5, 0);
    sim_end(w);
    sim_end(w);
    sim_end(w);
    sim_end(w);
}

TEST(pipeline__a_zip_of_unequal_lengths_is_stuck_when_the_rest_has_no_room) {
    for (int n = 1; n <= 5; n++) {
        for (uint32_t d = 0; d <= 4; d++) {
            family_is("zip", zip, n, d, 0, 0);
            family_is("zip", zip, n, d, 1, 1);
            family_is("zip", zip, n, d, 3, 1);
        }
    }
}

// n replicas take one token each of those that two producers send, and are gone.
static void early_stop(sim_writer *w, int n, uint32_t d, int more) {
    sim_channel_add(w, d, 1);
    sim_produces(sim_process_add(w), 0);
    sim_send_task_add(w, 0, sim_variable(w->p, sim_for(w, n)), 2, 0);
    sim_end(w);
    sim_end(w);
    sim_produces(sim_process_add(w), 0);
    sim_send_task_add(w, 0, sim_variable(w->p, sim_for(w, (int)d + more)), 2, 0);
    sim_end(w);
    sim_end(w);
    sim_process *process = sim_process_add(w);
    process->replicas = SIM_REPLICAS_DENSE;
    process->replica_count = n;
    sim_consumes(process, 0);
    sim_task_add(w, sim_variable(w->p, sim_take(w, SIM_RECEIVE, 0)), 9, 0);
    sim_end(w);
    sim_end(w);
}

TEST(pipeline__a_producer_is_stuck_when_all_consumers_have_gone_and_all_is_full) {
    for (int n = 1; n <= SIM_REPLICA_MAX; n++) {
        for (uint32_t d = 0; d <= 4; d++) {
            family_is("early stop", early_stop, n, d, 0, 0);
            family_is("early stop", early_stop, n, d, 1, 1);
            family_is("early stop", early_stop, n, d, 2, 1);
        }
    }
}

// A process sends n pairs, one half to each channel; another drains the first channel before it
// looks at the second, which has room for d halves.
static void drain_in_turn(sim_writer *w, int n, uint32_t d, int more) {
    sim_channel_add(w, (uint32_t)n, 0);
    sim_channel_add(w, d, 2);
    sim_process *process = sim_process_add(w);
    sim_produces(process, 0);
    sim_produces(process, 1);
    int value = sim_variable(w->p, sim_for(w, (int)d + more));
    sim_send_task_add(w, 0, value, 3, 0);
    sim_port(w, SIM_SEND, 1, value);
    sim_end(w);
    sim_end(w);
    process = sim_process_add(w);
    sim_consumes(process, 0);
    sim_consumes(process, 1);
    for (int c = 0; c < 2; c++) {
        sim_task_add(w, sim_variable(w->p, sim_take(w, SIM_CONSUME, c)), 1, 0);
        sim_end(w);
    }
    sim_end(w);
}

// A process sends n tokens to one channel and then n to another; the other takes them in pairs,
// for which d + 1 must fit the first channel.
static void pairs_of_a_batch(sim_writer *w, int n, uint32_t d, int more) {
    sim_channel_add(w, d, 1);
    sim_channel_add(w, (uint32_t)n, 1);
    sim_process *process = sim_process_add(w);
    for (int c = 0; c < 2; c++) {
        sim_produces(process, c);
        sim_send_task_add(w, c, sim_variable(w->p, sim_for(w, (int)d + 1 + more)), 4, 0);
        sim_end(w);
    }
    sim_end(w);
    process = sim_process_add(w);
    sim_consumes(process, 0);
    sim_consumes(process, 1);
    sim_take(w, SIM_CONSUME, 0);
    sim_task_add(w, sim_variable(w->p, sim_take(w, SIM_RECEIVE, 1)), 6, 0);
    sim_end(w);
    sim_end(w);
    sim_end(w);
}

TEST(pipeline__taking_in_another_order_needs_room_for_the_difference) {
    for (int n = 0; n <= 3; n++) {
        for (uint32_t d = 0; d <= 6; d++) {
            family_is("drain in turn", drain_in_turn, n, d, 0, 0);
            family_is("drain in turn", drain_in_turn, n, d, 1, 2);
            family_is("pairs of a batch", pairs_of_a_batch, n, d, 0, 0);
            family_is("pairs of a batch", pairs_of_a_batch, n, d, 1, 2);
        }
    }
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
        sim_end(w);
        sim_end(w);
    }
}

// One process waits for each of n others, which record `more` times less often than it waits.
static void missing_records(sim_writer *w, int n, uint32_t d, int more) {
    for (int i = 0; i < n; i++) {
        sim_event_add(w);
        sim_produces(sim_process_add(w), i);
        sim_for(w, (int)d);
        sim_task_add(w, sim_literal(w->p, i), 2 * i, 0);
        sim_port(w, SIM_RECORD, i, 0);
        sim_end(w);
        sim_end(w);
    }
    sim_process *process = sim_process_add(w);
    for (int i = 0; i < n; i++) {
        sim_consumes(process, i);
    }
    sim_for(w, (int)d + more);
    for (int i = 0; i < n; i++) {
        sim_port(w, SIM_WAIT, i, 0);
    }
    sim_end(w);
    sim_end(w);
}

TEST(pipeline__an_event_that_is_never_recorded_is_waited_for_in_vain) {
    for (int n = 2; n <= 6; n++) {
        for (uint32_t d = 1; d <= 3; d++) {
            family_is("ring of events", ring_of_events, n, d, 0, 0);
            family_is("ring of events", ring_of_events, n, d, 1, n);
            family_is("missing records", missing_records, n, d, 0, 0);
            family_is("missing records", missing_records, n, d, 1, 1);
        }
    }
}

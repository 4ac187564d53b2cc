// Pipelines, at random: thousands of small ones are compiled, run and compared with the slow
// reference of pipeline_reference.h: status, times, statistics, calls, steps and their causes. Then
// what must hold without a reference: running again, only measuring, recording, and binding anew
// change nothing that they should not. The reference itself is held against numbers on paper.

#include "pipeline_check.h"
#include "pipeline_random.h"

// Fewer where every access is checked.
enum { PIPELINES = LANE_IS_CHECKED ? 1000 : 4000 };

// -- the reference, on paper ----------------------------------------------------------------------

// A source of `count` tokens that takes `work` cycles for each, and a consumer that takes `rest`.
static void pair_make(sim_pipeline *p, uint32_t depth, uint64_t latency, int64_t count,
                      int64_t work, int64_t rest) {
    sim_writer w;
    sim_begin(&w, p);
    int c = sim_channel_add(&w, depth, latency);
    sim_produces(sim_process_add(&w), c);
    int value = sim_variable(p, sim_for(&w, count));
    sim_send_task_add(&w, c, value, work, 0);
    sim_end(&w);
    sim_end(&w);
    sim_consumes(sim_process_add(&w), c);
    value = sim_variable(p, sim_take(&w, SIM_CONSUME, c));
    sim_task_add(&w, value, rest, 0);
    sim_end(&w);
    sim_end(&w);
}

typedef struct paper {
    uint64_t makespan, ends[2], full, empty, pending_max;
} paper;

static void pair_is(uint32_t depth, uint64_t latency, int64_t work, int64_t rest, paper expected) {
    static sim_sample s;
    memset(&s, 0, sizeof s);
    s.b.rounds = 1;
    pair_make(&s.p, depth, latency, 3, work, rest);
    assert_true(sim_sample_expect(&s));
    assert_ok(s.status);
    assert_int_equal(s.rounds[0].makespan, expected.makespan);
    assert_int_equal(s.rounds[0].ends[0], expected.ends[0]);
    assert_int_equal(s.rounds[0].ends[1], expected.ends[1]);
    sim_sums sums = sim_sums_of(&s, -1, 0);
    assert_int_equal(sums.full, expected.full);
    assert_int_equal(sums.empty, expected.empty);
    assert_int_equal(sums.token_count, 3);
    assert_int_equal(sums.pending_max, expected.pending_max);
}

TEST(pipeline_reference__gives_the_numbers_on_paper) {
    // Depth 1, latency 5, work 10 and 100:
    //   token 0: s = 10,                  r = max(0, 15) = 15     then busy to 115
    //   token 1: s = max(20, r_0) = 20,   r = max(115, 25) = 115  then busy to 215
    //   token 2: s = max(30, r_1) = 115,  r = max(215, 120) = 215 then busy to 315
    // The sender waits 85, ends at 115; the receiver waits 15, and 0 for the end. After s_1 = 20
    // token 0 has been received (15), after s_2 = 115 token 1 has (at 115): at most 1 in it.
    pair_is(1, 5, 10, 100, (paper){315, {115, 315}, 85, 15, 1});
    // Depth 0, latency 5: r_0 = max(0, 10 + 5) = 15, busy to 115; the sender goes on at 15, offers
    // at 25, r_1 = max(115, 30) = 115, goes on to 125, r_2 = 215, where it ends. Full 5 + 90 + 90.
    pair_is(0, 5, 10, 100, (paper){315, {215, 315}, 185, 15, 0});
    // Depth 2, no latency, a slow source, 100 and 10: r = 100, 200, 300, the end of the stream at
    // 300 is seen at 310. Waits: 100, 90, 90, 0.
    pair_is(2, 0, 100, 10, (paper){310, {300, 310}, 0, 280, 1});
    // Depth 2, latency 50: r = 150, 250, 350: the receiver ends at 360. Waits: 150, 90, 90, 0.
    // Token 0 has gone (150) when token 1 is sent (200): 1 in it.
    pair_is(2, 50, 100, 10, (paper){360, {300, 360}, 0, 330, 1});
    // Depth 2, latency 50, work 10: s = 10, 20; r_0 = 60, busy to 70; s_2 = max(30, r_0) = 60;
    // r_1 = max(70, 70) = 70, busy to 80; r_2 = max(80, 110) = 110, busy to 120. When token 1 is
    // sent both are in it. Waits: full 30; empty 60, 0, 30, 0.
    pair_is(2, 50, 10, 10, (paper){120, {60, 120}, 30, 90, 2});
}

// Two replicas consume what one process sends: the one that arrived first gets the token, of two
// at the same time the first.
TEST(pipeline_reference__serves_those_who_wait_in_the_order_of_arrival) {
    static sim_sample s;
    memset(&s, 0, sizeof s);
    s.b.rounds = 1;
    sim_writer w;
    sim_begin(&w, &s.p);
    int c = sim_channel_add(&w, 1, 0);
    sim_process *process = sim_process_add(&w);
    sim_produces(process, c);
    int value = sim_variable(&s.p, sim_for(&w, 4));
    sim_send_task_add(&w, c, value, 10, 0);
    sim_end(&w);
    sim_end(&w);
    process = sim_process_add(&w);
    process->replicas = SIM_REPLICAS_DENSE;
    process->replica_count = 2;
    sim_consumes(process, c);
    int replica = sim_expr_add(&s.p, SIM_REPLICA, 0, 0, 0);
    int token = sim_take(&w, SIM_CONSUME, c);
    value = sim_binary(&s.p, SIM_ADD, sim_variable(&s.p, token),
                       sim_binary(&s.p, SIM_MUL, replica, sim_literal(&s.p, 100)));
    int when = sim_when(&w, sim_binary(&s.p, SIM_EQUAL, replica, sim_literal(&s.p, 0)));
    sim_task_add(&w, value, 25, 0);
    sim_end(&w);
    sim_otherwise(&w, when);
    sim_task_add(&w, value, 5, 0);
    sim_end(&w);
    sim_end(&w);
    sim_end(&w);
    assert_true(sim_sample_expect(&s));
    assert_ok(s.status);
    // Tokens come at 10, 20, 30, 40. Replica 0 takes the first, until 35; replica 1 those at 20 and
    // 30, until 25 and 35. Both wait since 35: replica 0 gets the last, from 40 to 65; replica 1
    // sees the end at 40.
    const int64_t calls[] = {0, 1, 0, 2, 101, 3, 102, 3};
    assert_int_equal(s.rounds[0].task_count, 8);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(s.rounds[0].calls[i][0], calls[i]);
    }
    assert_int_equal(s.rounds[0].ends[0], 40);
    assert_int_equal(s.rounds[0].ends[1], 65);
    assert_int_equal(s.rounds[0].ends[2], 40);
    assert_int_equal(s.rounds[0].makespan, 65);
}

// -- samples --------------------------------------------------------------------------------------

typedef struct tally {
    unsigned ok, stuck, compiling;
} tally;

// The same run with other sizes, depths and symbols, and with those that it had: what has been
// executed before takes no more memory. What has been bound once stays bound.
static void check_rebound(sim_sample *s, ptowsp_run *run, uint64_t random) {
    sim_bindings before = s->b;
    sim_bindings_random(&s->p, &random, &s->b);
    s->b.has_latency = s->b.has_latency || before.has_latency;
    if (sim_sample_expect(s)) {
        sim_bind(&s->built, &s->b, run);
        sim_check_status(s, run, sim_sample_execute(s, run, PTOWSP_RUN_EXECUTE, true));
        sim_check_calls(s, run);
        sim_check_steps(s, run);
    }
    if (s->b.has_latency == before.has_latency) {
        size_t allocations = s->memory.allocations;
        s->b = before;
        assert_true(sim_sample_expect(s));
        sim_bind(&s->built, &s->b, run);
        sim_check_status(s, run, sim_sample_execute(s, run, PTOWSP_RUN_EXECUTE, true));
        assert_int_equal(s->memory.allocations, allocations);
    }
}

static void check_sample(sim_sample *s, uint64_t random, tally *counts) {
    sim_sample_build(s);
    ptowsp_status compiled = sim_has_loose_channel(&s->p) ? PTOWSP_STUCK : PTOWSP_OK;
    if (s->built.status != compiled) {
        sim_complain(s, NULL, compiled == PTOWSP_OK ? "it does not compile" : "it compiles");
    }
    if (compiled != PTOWSP_OK) {
        counts->compiling++;
        return;
    }
    counts->ok += s->status == PTOWSP_OK;
    counts->stuck += s->status == PTOWSP_STUCK;
    ptowsp_run *run = test_run_of(s->context, s->built.program);
    sim_bind(&s->built, &s->b, run);
    sim_check_runs(s, run);
    check_rebound(s, run, random);
    ptowsp_run_destroy(run);
}

TEST(pipeline__agrees_with_the_slow_reference) {
    uint64_t seed = test_seed();
    tally counts = {0, 0, 0};
    for (unsigned number = 0; TEST_ROUNDS(number, PIPELINES); number++) {
        sim_sample *s = sim_sample_random(seed, number);
        check_sample(s, seed + number, &counts);
        sim_sample_free(s);
    }
    print_message("%u pipelines ended, %u were stuck, %u when compiling\n", counts.ok, counts.stuck,
                  counts.compiling);
    assert_met(counts.ok > counts.stuck && counts.stuck > PIPELINES / 50);
}

// -- one number -----------------------------------------------------------------------------------

static void hash_number(uint64_t *hash, uint64_t number) {
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(number >> 8 * i);  // the lowest first, on every machine
    }
    *hash = ptowsp_hash(*hash, bytes, sizeof bytes);
}

static void hash_results(uint64_t *hash, const ptowsp_run *run, ptowsp_status status) {
    uint32_t count = 0;
    hash_number(hash, (uint64_t)status);
    hash_number(hash, ptowsp_run_result(run)->makespan_cycles);
    const ptowsp_process_stats *processes = ptowsp_run_processes(run, &count);
    for (uint32_t i = 0; i < count; i++) {
        hash_number(hash, processes[i].busy_cycles);
        hash_number(hash, processes[i].full_cycles);
        hash_number(hash, processes[i].empty_cycles);
        hash_number(hash, processes[i].end_cycles);
    }
    const ptowsp_channel_stats *channels = ptowsp_run_channels(run, &count);
    for (uint32_t i = 0; i < count; i++) {
        hash_number(hash, channels[i].token_count);
        hash_number(hash, channels[i].pending_max);
    }
}

// The results of 400 pipelines, each with and without kernels, as one number: the same wherever
// this is run, whatever has compiled it. (It was taken when all of them agreed with the reference.)
TEST(pipeline__results_are_one_number_everywhere) {
    uint64_t hash = PTOWSP_HASH_START;
    for (unsigned number = 0; number < 400; number++) {
        sim_sample *s = sim_sample_random(1, number);
        sim_sample_build(s);
        ptowsp_run *run = NULL;
        if (s->built.status == PTOWSP_OK) {
            assert_ok(ptowsp_run_create(s->context, s->built.program, &run));
            sim_bind(&s->built, &s->b, run);
            hash_results(&hash, run, sim_sample_execute(s, run, PTOWSP_RUN_TIME_ONLY, false));
            hash_results(&hash, run, sim_sample_execute(s, run, PTOWSP_RUN_EXECUTE, false));
            ptowsp_run_destroy(run);
        }
        sim_sample_free(s);
    }
    if (hash != UINT64_C(0x14df6bd784668a13)) {
        fail_msg("the hash is %016llx", (unsigned long long)hash);
    }
}

// -- ties -----------------------------------------------------------------------------------------

static int plus(sim_writer *w, int stmt, int64_t number) {
    return sim_binary(w->p, SIM_ADD, sim_variable(w->p, stmt), sim_literal(w->p, number));
}

static void end_all(sim_writer *w) {
    while (w->depth > 0) {
        sim_end(w);
    }
}

// A process that sends so many tokens to a channel, from a number on.
static void sender_add(sim_writer *w, int channel, int64_t count, int64_t first) {
    sim_produces(sim_process_add(w), channel);
    sim_port(w, SIM_SEND, channel, plus(w, sim_for(w, count), first));
    end_all(w);
}

// Everything happens at time 0, and kernels are called with these values.
static void tied_is(sim_sample *s, const int64_t *values, int count) {
    assert_true(sim_sample_expect(s));
    assert_ok(s->status);
    assert_int_equal(s->rounds[0].makespan, 0);
    assert_int_equal(s->rounds[0].task_count, count);
    for (int i = 0; i < count; i++) {
        assert_int_equal(s->rounds[0].calls[i][0], values[i]);
    }
    tally counts = {0, 0, 0};
    check_sample(s, 1, &counts);
    assert_int_equal(counts.ok, 1);
    sim_sample_free(s);
}

// Process 0 is released by process 3, and sends to a and b. Process 2 waits at a, process 1 at b:
// 0 does both before the others move, and then 1, which finds the token of a, too.
TEST(pipeline__who_waits_since_now_does_not_move_before_its_turn) {
    sim_sample *s = sim_sample_make("turn", 0);
    sim_writer w;
    sim_begin(&w, &s->p);
    int a = sim_channel_add(&w, 1, 0), b = sim_channel_add(&w, 1, 0);
    int release = sim_channel_add(&w, 1, 0);
    sim_process *process = sim_process_add(&w);
    sim_consumes(process, release);
    sim_produces(process, a);
    sim_produces(process, b);
    int token = sim_take(&w, SIM_RECEIVE, release);
    sim_port(&w, SIM_SEND, a, plus(&w, token, 1));
    sim_port(&w, SIM_SEND, b, plus(&w, token, 2));
    end_all(&w);
    process = sim_process_add(&w);
    sim_consumes(process, a);
    sim_consumes(process, b);
    sim_take(&w, SIM_RECEIVE, b);
    sim_task_add(&w, plus(&w, sim_take(&w, SIM_RECEIVE, a), 100), 0, 0);
    end_all(&w);
    sim_consumes(sim_process_add(&w), a);
    sim_task_add(&w, plus(&w, sim_take(&w, SIM_RECEIVE, a), 200), 0, 0);
    end_all(&w);
    sender_add(&w, release, 1, 0);
    const int64_t values[] = {101};
    tied_is(s, values, 1);
}

// Processes 2 and 3 send 10, 11 and 20 to a, which holds one token; 4 releases process 0, which
// takes 10, and releases process 1, which takes the others: 11 from process 2, whose turn is first,
// and then 20.
TEST(pipeline__room_made_at_one_time_wakes_all_who_wait_for_it) {
    sim_sample *s = sim_sample_make("room", 0);
    sim_writer w;
    sim_begin(&w, &s->p);
    int a = sim_channel_add(&w, 1, 0), first = sim_channel_add(&w, 1, 0);
    int second = sim_channel_add(&w, 1, 0);
    sim_process *process = sim_process_add(&w);
    sim_consumes(process, a);
    sim_consumes(process, first);
    sim_produces(process, second);
    sim_take(&w, SIM_RECEIVE, first);
    int token = sim_take(&w, SIM_RECEIVE, a);
    sim_task_add(&w, sim_variable(&s->p, token), 0, 0);
    sim_port(&w, SIM_SEND, second, sim_variable(&s->p, token));
    end_all(&w);
    process = sim_process_add(&w);
    sim_consumes(process, a);
    sim_consumes(process, second);
    sim_take(&w, SIM_RECEIVE, second);
    sim_task_add(&w, plus(&w, sim_take(&w, SIM_CONSUME, a), 100), 0, 0);
    end_all(&w);
    sender_add(&w, a, 2, 10);
    sender_add(&w, a, 1, 20);
    sender_add(&w, first, 1, 0);
    const int64_t values[] = {10, 111, 120};
    tied_is(s, values, 3);
}

// -- chains ---------------------------------------------------------------------------------------

enum { STAGE_MAX = 6, TOKEN_MAX = 24 };

typedef struct chain {
    int stage_count;  // processes
    int token_count;
    uint32_t depths[STAGE_MAX];  // of the channel behind each stage
    uint64_t latencies[STAGE_MAX];
    int64_t bases[STAGE_MAX], spreads[STAGE_MAX];
    int sites[STAGE_MAX];  // statements of their tasks
} chain;

static void chain_describe(chain *line, sim_pipeline *p) {
    sim_writer w;
    sim_begin(&w, p);
    for (int j = 0; j + 1 < line->stage_count; j++) {
        sim_channel_add(&w, line->depths[j], line->latencies[j]);
    }
    for (int j = 0; j < line->stage_count; j++) {
        sim_process *process = sim_process_add(&w);
        int number = 0;
        if (j == 0) {
            number = sim_for(&w, line->token_count);
        } else {
            sim_consumes(process, j - 1);
            number = sim_take(&w, SIM_CONSUME, j - 1);
        }
        int value = sim_variable(p, number);
        line->sites[j] = sim_task_add(&w, value, line->bases[j], line->spreads[j]);
        if (j + 1 < line->stage_count) {
            sim_produces(process, j);
            sim_port(&w, SIM_SEND, j, value);
        }
        sim_end(&w);
        sim_end(&w);
    }
}

// The formulas of the header, token by token: in[j] is when stage j is ready for a token, s[j][k]
// and r[j][k] when token k is sent to the channel behind stage j and received from it.
static uint64_t chain_makespan(const chain *line) {
    uint64_t s[STAGE_MAX][TOKEN_MAX], r[STAGE_MAX][TOKEN_MAX], in[STAGE_MAX] = {0};
    int last = line->stage_count - 1;
    for (int k = 0; k < line->token_count; k++) {
        uint64_t now = in[0];
        for (int j = 0; j <= last; j++) {
            now += sim_cycles(k, line->sites[j], line->bases[j], line->spreads[j]);
            int depth = (int)line->depths[j];
            if (j == last) {
                in[j] = now;
            } else if (depth == 0) {
                r[j][k] = sim_max(in[j + 1], now + line->latencies[j]);
                in[j] = r[j][k];
            } else {
                s[j][k] = k < depth ? now : sim_max(now, r[j][k - depth]);
                r[j][k] = sim_max(in[j + 1], s[j][k] + line->latencies[j]);
                in[j] = s[j][k];
            }
            now = j == last ? now : r[j][k];
        }
    }
    uint64_t makespan = 0;  // a stage sees the end when it and the one before it have ended
    for (int j = 0; j <= last; j++) {
        makespan = sim_max(makespan, in[j]);
    }
    return makespan;
}

TEST(pipeline__a_chain_takes_what_the_recurrence_says) {
    static const uint32_t depths[] = {0, 1, 2, 3, 4, 7, 64};
    static const uint64_t latencies[] = {0, 1, 7, 50};
    uint64_t random = test_seed();
    for (unsigned number = 0; TEST_ROUNDS(number, PIPELINES / 6); number++) {
        sim_sample *s = sim_sample_make("chain", number);
        chain line = {.stage_count = (int)test_random_in(&random, 2, STAGE_MAX)};
        line.token_count = (int)test_random_in(&random, 0, TOKEN_MAX);
        for (int j = 0; j < line.stage_count; j++) {
            line.depths[j] = depths[test_random(&random) % 7];
            line.latencies[j] = latencies[test_random(&random) % 4];
            line.bases[j] = test_random_in(&random, 0, 30);
            line.spreads[j] = test_random_in(&random, 0, 60);
        }
        chain_describe(&line, &s->p);
        assert_true(sim_sample_expect(s));
        assert_int_equal(s->rounds[0].makespan, chain_makespan(&line));
        tally counts = {0, 0, 0};
        check_sample(s, random, &counts);
        assert_int_equal(counts.ok, 1);
        sim_sample_free(s);
    }
}

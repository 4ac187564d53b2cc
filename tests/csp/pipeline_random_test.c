// Pipelines, at random: thousands of small ones are compiled, run and compared with the slow
// reference of pipeline_reference.h: status, times, statistics, calls, steps and their causes. Then
// what must hold without a reference: running again, only measuring, recording, and binding anew
// change nothing that they should not. Numbers on paper are cases (tests/cases/pipelines.case): a reference
// that did not give them would not agree with a library that does.

#include "pipeline_check.h"
#include "pipeline_random.h"

// Fewer where every access is checked.
enum { PIPELINES = LANE_IS_CHECKED ? 1000 : 4000 };

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

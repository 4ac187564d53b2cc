// The parts of the serving simulation: costs, models and the engine by facts, where every step
// takes the same time, and random loads, whose sums must be right. The program is tested by
// serve_trace_test.sh.

#include "facts.h"

#include "examples/common/command.c"
#include "examples/common/deal.c"
#include "examples/common/lengths.c"
#include "examples/common/serve_cache.c"
#include "examples/common/serve_cost.c"
#include "examples/common/serve_load.c"
#include "examples/common/serve_machine.c"
#include "examples/common/serve_run.c"
#include "examples/common/serve_stats.c"

static void assert_near(double value, double expected) {
    if (!(fabs(value - expected) <= 1e-9 * fabs(expected))) {
        fail_msg("%.17g is not %.17g", value, expected);
    }
}

// A machine on which nothing takes time but what a test adds.
static serve_setup free_setup(void) {
    serve_setup s = {.model = serve_model_llama()};
    snprintf(s.machine.name, sizeof s.machine.name, "test");
    s.machine.lanes = 1;
    s.machine.clock_hz = s.machine.bytes_per_s = s.machine.flops_per_s = 1e200;
    s.devices = 1, s.page = 4, s.tile_rows = 64, s.efficiency = 1.0, s.plan_every = 1;
    s.units_max = 1024;
    return s;
}

// -- loads ----------------------------------------------------------------------------------------

TEST(serve_load__sorts_repeats_and_renumbers) {
    trace_request requests[] = {{5.0, 600, 3, 0, 1}, {1.0, 1200, 2, 1, 2}, {3.0, 10, 1, 3, 0}};
    int64_t ids[] = {900, 900, 17};
    trace t = {requests, 3, "test", ids, 3};
    serve_load_options once = {0.0, 1.0, UINT64_MAX}, twice = {9.0 / 3600.0, 1.0, UINT64_MAX};
    serve_load_options faster = {0.0, 4.0, 2};
    serve_load load;
    serve_load_from_trace(&t, "a", &once, &load);
    assert_int_equal(load.count, 3);
    assert_int_equal(load.block_count, 2);
    assert_int_equal(load.requests[0].input, 1200);
    assert_int_equal(load.requests[1].arrival_ns, 2000000000);
    assert_int_equal(load.requests[2].arrival_ns, 4000000000);
    assert_int_equal(serve_load_block(&load, &load.requests[0], 0), 1);  // 900 is above 17
    assert_int_equal(serve_load_block(&load, &load.requests[0], 1), 0);
    assert_int_equal(serve_load_block(&load, &load.requests[2], 0), 1);
    serve_load_free(&load);
    serve_load_from_trace(&t, "a", &twice, &load);  // again after 4 s and the mean gap of 2 s
    assert_int_equal(load.count, 5);
    assert_int_equal(load.block_count, 4);
    assert_int_equal(load.requests[4].arrival_ns, 8000000000);
    assert_int_equal(load.requests[3].arrival_ns, 6000000000);
    assert_int_equal(serve_load_block(&load, &load.requests[3], 0), 3);
    serve_load_free(&load);
    serve_load_from_trace(&t, "a", &faster, &load);
    assert_int_equal(load.count, 2);
    assert_int_equal(load.requests[1].arrival_ns, 500000000);
    serve_load_free(&load);
}

// A Poisson process of rate 10: the mean gap of 20,000 is 0.1 s within five standard errors.
TEST(serve_load__is_generated_from_a_seed) {
    serve_load_options options = {0.0, 1.0, UINT64_MAX};
    serve_load a, b, other;
    serve_load_generate(3, 20000, 10.0, &options, &a);
    serve_load_generate(3, 20000, 10.0, &options, &b);
    serve_load_generate(4, 20000, 10.0, &options, &other);
    assert_int_equal(a.count, 20000);
    double mean = (double)a.requests[19999].arrival_ns * 1e-9 / 19999.0;
    assert_true(fabs(mean - 0.1) < 0.1 * 5.0 / sqrt(19999.0));
    assert_memory_equal(a.requests, b.requests, a.count * sizeof *a.requests);
    assert_memory_not_equal(a.requests, other.requests, a.count * sizeof *a.requests);
    serve_load_free(&a);
    serve_load_free(&b);
    serve_load_free(&other);
}

// -- the engine -----------------------------------------------------------------------------------

// A request, in the microseconds of the steps below.
typedef struct arrival {
    double at_us;
    uint32_t input, output;
    uint32_t ids[2], id_count;
} arrival;

// Runs requests on a machine whose steps take a microsecond each.
static serve_result run_arrivals(const arrival *arrivals, uint32_t count, uint32_t page,
                                 const serve_policy *policy, uint64_t kv_tokens,
                                 uint32_t running_max, serve_load *out_load) {
    serve_setup s = free_setup();
    serve_result r;
    s.page = page;
    s.machine.step_ns = 1000.0;
    memset(out_load, 0, sizeof *out_load);
    out_load->requests = (serve_request *)command_allocate(count, sizeof(serve_request));
    out_load->ids = (uint32_t *)command_allocate(count * 2, sizeof(uint32_t));
    out_load->count = count;
    out_load->block_count = 100;
    for (uint32_t i = 0; i < count; i++) {
        const arrival *a = &arrivals[i];
        const uint64_t at_ns = (uint64_t)(a->at_us * 1000.0 + 0.5);
        out_load->requests[i] = (serve_request){at_ns, a->input, a->output, i * 2, a->id_count, 0};
        memcpy(&out_load->ids[i * 2], a->ids, sizeof a->ids);
    }
    serve_run(&s, policy, out_load, kv_tokens, running_max, NULL, NULL, &r);
    assert_true(r.is_good);
    return r;
}

static void run_free(serve_result *r, serve_load *load) {
    serve_result_free(r);
    serve_load_free(load);
}

TEST(serve_stats__are_nearest_ranks_by_class) {
    enum { COUNT = 200 };
    static serve_request requests[COUNT];
    static serve_record records[COUNT];
    serve_load load = {0};
    serve_result r = {0};
    load.requests = requests, load.count = COUNT, r.records = records;
    for (uint32_t i = 0; i < COUNT; i++) {  // 1 to 100 s are short, 101 to 200 long, backwards
        requests[i].input = i < 100 ? 1024 : 8193;
        records[i].first_ns = (i < 100 ? 100 - i : i + 1) * UINT64_C(1000000000);
        records[i].done_ns = records[i].first_ns + 6000000000;
        records[i].generated = 4;
    }
    serve_summary s = serve_summarize(&load, &r, SERVE_FIRST, SERVE_CLASS_SHORT, 0, COUNT);
    assert_int_equal(s.count, 100);
    assert_near(s.p50, 50.0);
    assert_near(s.p90, 90.0);
    assert_near(s.p99, 99.0);
    assert_near(s.max, 100.0);
    assert_near(s.mean, 50.5);
    s = serve_summarize(&load, &r, SERVE_TOTAL, SERVE_CLASS_LONG, 0, COUNT);
    assert_near(s.p50, 156.0);
    s = serve_summarize(&load, &r, SERVE_TOKEN, SERVE_CLASS_ALL, 0, COUNT);
    assert_near(s.p99, 2.0);
    s = serve_summarize(&load, &r, SERVE_TOKEN, SERVE_CLASS_MEDIUM, 0, COUNT);
    assert_int_equal(s.count, 0);
    assert_int_equal(serve_class_of(8192), SERVE_CLASS_MEDIUM);
    assert_int_equal(serve_class_of(UINT32_MAX), SERVE_CLASS_LONG);
}

// -- at random ------------------------------------------------------------------------------------

static arrival random_arrival(uint64_t *random, uint64_t *now_ns, int64_t kv_tokens) {
    arrival a;
    *now_ns += (uint64_t)test_random_in(random, 0, 6000);
    a.at_us = (double)*now_ns / 1000.0;
    a.input = (uint32_t)test_random_in(random, 0, kv_tokens);
    a.output = (uint32_t)test_random_in(random, 0, kv_tokens / 3);
    a.ids[0] = (uint32_t)test_random_in(random, 0, 3);
    a.ids[1] = (uint32_t)test_random_in(random, 4, 9);
    a.id_count = (uint32_t)test_random_in(random, 0, 2);
    return a;
}

// Whatever comes: a request is either waiting or running until it is done (Little's law, to the
// nanosecond), no token is before its time, and the sums of the engine itself are right.
TEST(serve_run__keeps_its_sums_at_random) {
    enum { COUNT = 60 };
    uint64_t random = test_seed(), preemptions = 0, evictions = 0;
    for (int round = 0; TEST_ROUNDS(round, 300); round++) {
        static const uint32_t pages[] = {1, 4, 16, 64, 512, 7};
        arrival arrivals[COUNT];
        uint64_t now_ns = 0, expected_ns = 0;
        int64_t kv_tokens = test_random_in(&random, 512, 4000);
        serve_load load;
        for (int i = 0; i < COUNT; i++) {
            arrivals[i] = random_arrival(&random, &now_ns, kv_tokens);
        }
        const serve_order order = test_random_in(&random, 0, 1) ? SERVE_SHORTEST : SERVE_FCFS;
        const uint32_t chunk = test_random_u32(&random, 1, 600);
        const serve_policy policy = {"test", order, chunk, SERVE_BALANCED};
        const uint32_t page = pages[test_random_in(&random, 0, 5)];
        serve_result r = run_arrivals(arrivals, COUNT, page, &policy, (uint64_t)kv_tokens,
                                      test_random_u32(&random, 1, 20), &load);
        double sum = 0.0;
        for (uint32_t i = 0; i < COUNT; i++) {
            const serve_record *q = &r.records[i];
            if (!q->is_refused) {
                expected_ns += q->done_ns - load.requests[i].arrival_ns;
                assert_true(q->first_ns > load.requests[i].arrival_ns);
                assert_int_equal(q->generated, load.requests[i].output);
                assert_true(q->done_ns >=
                            q->first_ns + (q->generated ? q->generated - 1 : 0) * 1000);
            }
        }
        for (uint32_t i = 0; i < SERVE_INTERVALS; i++) {
            sum += r.intervals[i].waiting_ns + r.intervals[i].running_ns;
        }
        assert_true(sum == (double)expected_ns);
        preemptions += r.preemptions;
        evictions += r.evictions;
        run_free(&r, &load);
    }
    assert_met(preemptions > 0 && evictions > 0);
}

// -- facts ----------------------------------------------------------------------------------------

enum { ARRIVALS = 5 };

static serve_setup s;
static serve_policy policy;
static serve_result r;
static serve_load load;
static serve_totals t;
static serve_time time_of_step;
static serve_plan plan;
static facts_text name;
static arrival arrivals[ARRIVALS];
static int32_t kv[2], queries[2];
static uint32_t sequences, sampled, count, running_max;
static uint64_t kv_tokens, kv_fit;
static double dense, head, experts, total, active, share, kv_bytes;
static bool is_found;

static ptowsp_status deepseek(void) {
    s.model = serve_model_deepseek();
    return PTOWSP_OK;
}

static ptowsp_status count_parameters(void) {
    dense = serve_model_dense(&s.model);
    head = serve_model_head(&s.model);
    experts = serve_model_experts(&s.model);
    total = serve_model_total(&s.model);
    active = dense + experts * 8.0 / 256.0 + head;
    return PTOWSP_OK;
}

static ptowsp_status find_machine(void) {
    is_found = serve_machine_find(name.data, &s.model, &s.machine);
    return PTOWSP_OK;
}

static ptowsp_status cost(void) {
    serve_step step = {kv, queries, sequences, 0, sampled, false};
    for (uint32_t i = 0; i < sequences; i++) {
        step.query_count += (uint64_t)queries[i];
    }
    serve_cost *c = serve_cost_create(&s, plan, sequences, 100000, (uint32_t)step.query_count);
    time_of_step = serve_cost_step(c, &step);
    serve_cost_destroy(c);
    return PTOWSP_OK;
}

static ptowsp_status fit(void) {
    kv_bytes = serve_setup_kv_bytes(&s);
    kv_fit = serve_setup_kv_tokens(&s, share);
    return PTOWSP_OK;
}

static ptowsp_status run_it(void) {
    run_free(&r, &load);
    r = run_arrivals(arrivals, count, s.page, &policy, kv_tokens, running_max, &load);
    t = serve_totals_make(&load, &r);
    return PTOWSP_OK;
}

static void begin(void) {
    s = free_setup();
    policy = (serve_policy){"test", SERVE_FCFS, 0, SERVE_BALANCED};
    plan = SERVE_BALANCED;
    sampled = 0;
    memset(arrivals, 0, sizeof arrivals);
}

#define ARRIVAL(text, member) FACTS_OF(text, arrivals->member, sizeof *arrivals, ARRIVALS)
#define RECORD(text, member)  FACTS_OF(text, records->member, sizeof *records, load.count)
#define SUMMARY(metric, of)   t.summaries[SERVE_##metric][SERVE_CLASS_##of]

static const facts_field *fields(void) {
    static serve_record none;
    serve_record *records = r.records ? r.records : &none;
    FACTS_RETURN(
        FIELD(name), FIELD(is_found), FIELD(dense), FIELD(head), FIELD(experts), FIELD(total),
        FIELD(active), FIELD(share), FIELD(kv_bytes), FIELD(kv_fit), FIELD(s.model.layers),
        FIELD(s.model.heads), FIELD(s.model.kv_heads), FIELD(s.model.experts), FIELD(s.model.top_k),
        FIELD(s.model.expert_ffn), FIELD(s.model.dense_layers), FIELD(s.machine.lanes),
        FIELD(s.machine.clock_hz), FIELD(s.machine.bytes_per_s), FIELD(s.machine.flops_per_s),
        FIELD(s.machine.memory_bytes), FIELD(s.machine.step_ns),
        NAMED("per_unit", s.machine.attention.per_unit),
        NAMED("per_token", s.machine.attention.per_token),
        NAMED("per_row_token", s.machine.attention.per_row_token),
        NAMED("per_merged_row", s.machine.attention.per_merged_row), FIELD(s.devices),
        FIELD(s.page), FIELD(s.tile_rows), FIELD(s.efficiency), FIELD(s.layer_ns),
        FIELD(s.is_every_head), FIELD(plan), FIELDS(kv, 2), FIELDS(queries, 2), FIELD(sequences),
        FIELD(sampled), NAMED("time.attention_ns", time_of_step.attention_ns),
        NAMED("time.rest_ns", time_of_step.rest_ns), FIELD(count), ARRIVAL("at_us", at_us),
        ARRIVAL("input", input), ARRIVAL("output", output), ARRIVAL("id_count", id_count),
        ARRIVAL("id_0", ids[0]), ARRIVAL("id_1", ids[1]), FIELD(policy.order), FIELD(policy.chunk),
        FIELD(kv_tokens), FIELD(running_max), RECORD("first_ns", first_ns),
        RECORD("done_ns", done_ns), RECORD("is_refused", is_refused), FIELD(r.done),
        FIELD(r.refused), FIELD(r.preemptions), FIELD(r.evictions), FIELD(r.steps),
        FIELD(r.output_tokens), FIELD(r.computed_tokens), FIELD(r.reused_tokens),
        FIELD(r.decoded_tokens), FIELD(r.lost_tokens), FIELD(r.waiting_max), FIELD(r.pages_max),
        FIELD(r.busy_ns), FIELD(r.end_ns), FIELD(r.interval_ns),
        MEMBER(r.intervals, running_ns, SERVE_INTERVALS), FIELD(t.waiting_mean),
        FIELD(t.running_mean), FIELD(t.kv_mean), FIELD(t.output_per_s),
        NAMED("first.p50", SUMMARY(FIRST, ALL).p50), NAMED("first.p99", SUMMARY(FIRST, ALL).p99),
        NAMED("token_of_short.p90", SUMMARY(TOKEN, SHORT).p90),
        NAMED("token.count", SUMMARY(TOKEN, ALL).count));
}

TEST(serve__facts_hold) {
    static const facts_call calls[] = {{"deepseek", deepseek},
                                       {"count_parameters", count_parameters},
                                       {"find_machine", find_machine},
                                       {"cost", cost},
                                       {"fit", fit},
                                       {"run", run_it},
                                       {NULL, NULL}};
    facts all = {"tests/examples/serve.facts", begin, fields, calls, NULL, NULL, 0};
    facts_run(&all);
    run_free(&r, &load);
}

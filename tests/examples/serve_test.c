// The parts of the serving simulation: costs and models against paper, the engine against small cases
// that were worked out by hand, where every step takes the same time, and random loads, whose
// sums must be right. The program is tested by serve_trace_test.sh.

#include "test.h"

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

// -- models, machines and costs -------------------------------------------------------------------

// Llama-3-8B: a layer has 2 * 4096^2 + 2 * 4096 * 1024 and 3 * 4096 * 14336 parameters, an embedding
// 4096 * 128256. DeepSeek-V3 is published as 671 G, 37 G of them active with one embedding.
TEST(serve_model__has_the_published_parameters) {
    serve_model llama = serve_model_llama(), deepseek = serve_model_deepseek();
    assert_near(serve_model_dense(&llama), 32.0 * (41943040.0 + 176160768.0));
    assert_near(serve_model_head(&llama), 525336576.0);
    assert_near(serve_model_total(&llama), 8029995008.0);
    assert_true(serve_model_experts(&llama) == 0.0);
    assert_near(serve_model_experts(&deepseek), 58.0 * 256.0 * 3.0 * 7168.0 * 2048.0);
    double total = serve_model_total(&deepseek);
    double active = serve_model_dense(&deepseek) + serve_model_experts(&deepseek) * 8.0 / 256.0 +
                    serve_model_head(&deepseek);
    assert_true(670.5e9 < total && total < 671.5e9);
    assert_true(36.0e9 < active && active < 37.5e9);
}

// 24 * 16^3 * 2 * 1.85 GHz and 24 * 32 * 1.85 GHz; 28 * 16^3 * 2 * 1.65 GHz and 28 * 27 * 1.65 GHz.
TEST(serve_machine__has_the_rates_of_its_cores) {
    serve_model m = serve_model_llama();
    serve_machine d;
    assert_true(serve_machine_find("910b", &m, &d));
    assert_near(d.flops_per_s, 363724800000000.0);
    assert_near(d.bytes_per_s, 1420.8e9);
    assert_near(d.attention.per_token, 16.0);  // 512 bytes of a key and a value
    assert_true(serve_machine_find("950pr", &m, &d));
    assert_near(d.flops_per_s, 378470400000000.0);
    assert_near(d.bytes_per_s, 1247.4e9);
    assert_int_equal(d.lanes, 28);
    m = serve_model_deepseek();
    assert_true(serve_machine_find("910b", &m, &d));
    assert_near(d.attention.per_token, 36.0);  // 1152 bytes of a latent
    assert_false(serve_machine_find("910c", &m, &d));
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

static serve_time cost_of(const serve_setup *s, serve_plan plan, const int32_t *kv,
                          const int32_t *queries, uint32_t count, uint32_t sampled) {
    serve_step step = {kv, queries, count, 0, sampled, false};
    for (uint32_t i = 0; i < count; i++) {
        step.query_count += (uint64_t)queries[i];
    }
    serve_cost *c = serve_cost_create(s, plan, count, 100000, (uint32_t)step.query_count);
    serve_time time = serve_cost_step(c, &step);
    serve_cost_destroy(c);
    return time;
}

// Units of 10, 1 for a token and 0.5 for each of its rows, 1 for a merged row.
static const ptowsp_attention_cost paper_costs = {10.0, 1.0, 0.5, 1.0};

// One lane does all: units of 10 and 1.5 for a token of one row. Two KV heads of one query head each,
// 240 and 100 tokens: 2 * (10 + 360 + 10 + 150) = 1060 cycles of 2 ns, in 3 layers.
TEST(serve_cost__of_attention_is_that_of_its_units) {
    static const int32_t kv[] = {240, 100}, queries[] = {1, 1};
    serve_setup s = free_setup();
    s.model.layers = 3, s.model.heads = s.model.kv_heads = 2;
    s.machine.clock_hz = 5e8;
    s.machine.attention = paper_costs;
    for (int k = 0; k < 2; k++) {
        serve_plan plan = k ? SERVE_CHUNKS : SERVE_BALANCED;
        assert_near(cost_of(&s, plan, kv, queries, 2, 0).attention_ns, 3.0 * 1060.0 * 2.0);
    }
    // Two lanes: each has a KV head, folded or not, or else the four units dealt.
    s.machine.lanes = 2;
    assert_near(cost_of(&s, SERVE_BALANCED, kv, queries, 2, 0).attention_ns, 3.0 * 530.0 * 2.0);
    assert_near(cost_of(&s, SERVE_CHUNKS, kv, queries, 2, 0).attention_ns, 3.0 * 530.0 * 2.0);
    s.is_every_head = true;
    assert_near(cost_of(&s, SERVE_CHUNKS, kv, queries, 2, 0).attention_ns, 3.0 * 530.0 * 2.0);
}

// A prompt of 40 tokens whose first 8 are stored: tiles of 16 query tokens see 24 and 40 tokens.
// 10 + 24 * (1 + 16 / 2) and 10 + 40 * (1 + 16 / 2) cycles.
TEST(serve_cost__of_a_prompt_is_that_of_its_tiles) {
    static const int32_t kv[] = {40}, queries[] = {32};
    serve_setup s = free_setup();
    s.model.layers = 1, s.model.heads = s.model.kv_heads = 1;
    s.tile_rows = 16;
    s.machine.clock_hz = 1e9;
    s.machine.attention = paper_costs;
    assert_near(cost_of(&s, SERVE_CHUNKS, kv, queries, 1, 0).attention_ns, 226.0 + 370.0);
    assert_near(cost_of(&s, SERVE_BALANCED, kv, queries, 1, 0).attention_ns, 226.0 + 370.0);
    // On two lanes the chunk plan has the larger tile on one; a balanced plan splits.
    s.machine.lanes = 2;
    assert_near(cost_of(&s, SERVE_CHUNKS, kv, queries, 1, 0).attention_ns, 370.0);
    assert_true(cost_of(&s, SERVE_BALANCED, kv, queries, 1, 0).attention_ns < 340.0);
}

// Reading takes D * b / rate however many tokens there are; arithmetic 2 * D * T / rate; the head is
// for sampled tokens alone; experts by how many of 4 the tokens reach.
TEST(serve_cost__of_the_rest_is_a_roofline) {
    static const int32_t kv[] = {10, 10}, queries[] = {2, 1};
    serve_setup s = free_setup();
    double dense = serve_model_dense(&s.model), head = serve_model_head(&s.model);
    s.machine.bytes_per_s = 1e9;  // a byte in a nanosecond
    assert_near(cost_of(&s, SERVE_BALANCED, kv, queries, 2, 0).rest_ns, 2.0 * dense);
    assert_near(cost_of(&s, SERVE_BALANCED, kv, queries, 2, 1).rest_ns, 2.0 * (dense + head));
    s.machine.flops_per_s = 1e9;
    assert_near(cost_of(&s, SERVE_BALANCED, kv, queries, 2, 0).rest_ns, 6.0 * dense);
    assert_near(cost_of(&s, SERVE_BALANCED, kv, queries, 2, 2).rest_ns, 6.0 * dense + 4.0 * head);
    s.devices = 2, s.efficiency = 0.5, s.machine.step_ns = 7.0, s.layer_ns = 1.0;
    assert_near(cost_of(&s, SERVE_BALANCED, kv, queries, 2, 0).rest_ns, 6.0 * dense + 7.0 + 32.0);
    s = free_setup();
    s.machine.bytes_per_s = 1e9;
    s.model.experts = 4, s.model.top_k = 1, s.model.expert_ffn = 8, s.model.dense_layers = 31;
    double experts = 3.0 * 4096.0 * 4.0 * 8.0;  // three tokens reach 1 - (3/4)^3 of them
    dense = 32.0 * 41943040.0 + 31.0 * 176160768.0 + 4.0 * 4096.0;
    assert_near(cost_of(&s, SERVE_BALANCED, kv, queries, 2, 0).rest_ns,
                2.0 * (dense + experts * (1.0 - 27.0 / 64.0)));
}

// 64 GiB * 0.9 without 2 * 8029995008 bytes, by 2 * 2 * 8 * 128 * 32 bytes; over 16 devices the
// latent of DeepSeek is on each.
TEST(serve_setup__knows_how_many_tokens_fit) {
    serve_setup s = free_setup();
    s.machine.memory_bytes = 68719476736.0;
    assert_near(serve_setup_kv_bytes(&s), 131072.0);
    assert_int_equal(serve_setup_kv_tokens(&s, 0.9), 349331);
    assert_int_equal(serve_setup_kv_tokens(&s, 0.2), 0);
    s.devices = 4;
    assert_near(serve_setup_kv_bytes(&s), 32768.0);
    s.devices = 16;
    assert_near(serve_setup_kv_bytes(&s), 16384.0);  // a head each, two devices the same one
    s.model = serve_model_deepseek();
    assert_near(serve_setup_kv_bytes(&s), 61.0 * 1152.0);
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

// -- the engine, by hand --------------------------------------------------------------------------

// A request, in the microseconds of the steps below.
typedef struct arrival {
    double at_us;
    uint32_t input, output;
    uint32_t ids[2], id_count;
} arrival;

// Runs requests on a machine whose steps take a microsecond each.
static serve_result run_arrivals(const arrival *arrivals, uint32_t count, serve_order order,
                                 uint32_t chunk, uint32_t page, uint64_t kv_tokens,
                                 uint32_t running_max, serve_load *out_load) {
    serve_setup s = free_setup();
    serve_policy policy = {"test", order, chunk, SERVE_BALANCED};
    serve_result r;
    s.page = page;
    s.machine.step_ns = 1000.0;
    memset(out_load, 0, sizeof *out_load);
    out_load->requests = (serve_request *)command_allocate(count, sizeof(serve_request));
    out_load->ids = (uint32_t *)command_allocate(count * 2, sizeof(uint32_t));
    out_load->count = count;
    out_load->block_count = 100;
    for (uint32_t i = 0; i < count; i++) {
        serve_request q = {(uint64_t)(arrivals[i].at_us * 1000.0 + 0.5),
                           arrivals[i].input,
                           arrivals[i].output,
                           i * 2,
                           arrivals[i].id_count,
                           0};
        out_load->requests[i] = q;
        memcpy(&out_load->ids[i * 2], arrivals[i].ids, sizeof arrivals[i].ids);
    }
    serve_run(&s, &policy, out_load, kv_tokens, running_max, NULL, NULL, &r);
    assert_true(r.is_good);
    return r;
}

static void run_free(serve_result *r, serve_load *load) {
    serve_result_free(r);
    serve_load_free(load);
}

static void assert_times(const serve_result *r, uint32_t request, uint64_t first_us,
                         uint64_t done_us) {
    assert_int_equal(r->records[request].first_ns, first_us * 1000);
    assert_int_equal(r->records[request].done_ns, done_us * 1000);
}

// One at a time: they come at 0, 0.25 and 10 us and take 3, 2 and 1 steps. The second waits 2.75 us.
TEST(serve_run__is_a_single_server_queue_for_one_sequence) {
    static const arrival arrivals[] = {
        {0, 10, 3, {0, 0}, 0}, {0.25, 10, 2, {0, 0}, 0}, {10, 9, 1, {0, 0}, 0}};
    serve_load load;
    serve_result r = run_arrivals(arrivals, 3, SERVE_FCFS, 100, 4, 1000, 1, &load);
    assert_times(&r, 0, 1, 3);
    assert_times(&r, 1, 4, 5);
    assert_times(&r, 2, 11, 11);
    assert_int_equal(r.steps, 6);
    assert_int_equal(r.end_ns, 11000);
    assert_true(r.busy_ns == 6000.0);
    serve_totals t = serve_totals_make(&load, &r);
    assert_near(t.waiting_mean, 2.75 / 11.0);
    assert_near(t.running_mean, 6.0 / 11.0);
    assert_near(t.kv_mean, (3.0 * 3.0 + 3.0 * 2.0 + 3.0) / 11.0 / 250.0);  // pages
    assert_near(t.summaries[SERVE_FIRST][SERVE_CLASS_ALL].p50, 1e-6);
    assert_near(t.summaries[SERVE_FIRST][SERVE_CLASS_ALL].p99, 3.75e-6);
    assert_near(t.summaries[SERVE_TOKEN][SERVE_CLASS_SHORT].p90, 1e-6);
    assert_int_equal(t.summaries[SERVE_TOKEN][SERVE_CLASS_ALL].count, 2);
    assert_near(t.output_per_s, 6.0 / 11e-6);
    run_free(&r, &load);
}

// Prompts of 20 and 12 tokens in steps of 16: 16; 4 and 12; then both decode.
TEST(serve_run__fills_steps_with_chunks_of_prompts) {
    static const arrival arrivals[] = {
        {0, 20, 2, {0, 0}, 0}, {0, 12, 3, {0, 0}, 0}, {0, 30, 1, {0, 0}, 0}};
    serve_load load;
    serve_result r = run_arrivals(arrivals, 2, SERVE_FCFS, 16, 4, 1000, 8, &load);
    assert_times(&r, 0, 2, 3);
    assert_times(&r, 1, 2, 4);
    assert_int_equal(r.computed_tokens, 32);
    assert_int_equal(r.decoded_tokens, 3);
    run_free(&r, &load);
    // Two decode in step 3, which leaves 14 tokens; one in step 4, which leaves 15, then the last.
    r = run_arrivals(arrivals, 3, SERVE_FCFS, 16, 4, 1000, 8, &load);
    assert_times(&r, 0, 2, 3);
    assert_times(&r, 1, 2, 4);
    assert_times(&r, 2, 5, 5);
    assert_int_equal(r.steps, 5);
    run_free(&r, &load);
}

TEST(serve_run__takes_the_shortest_prompt_first) {
    static const arrival arrivals[] = {
        {0, 30, 1, {0, 0}, 0}, {0, 20, 1, {0, 0}, 0}, {0, 10, 1, {0, 0}, 0}, {0, 20, 1, {0, 0}, 0}};
    serve_load load;
    serve_result r = run_arrivals(arrivals, 4, SERVE_SHORTEST, 100, 4, 1000, 1, &load);
    assert_times(&r, 2, 1, 1);
    assert_times(&r, 1, 2, 2);
    assert_times(&r, 3, 3, 3);
    assert_times(&r, 0, 4, 4);
    assert_int_equal(r.waiting_max, 4);
    run_free(&r, &load);
}

// Four pages of 4 tokens; prompts of 7 with 4 tokens of output. In step 3 both need a third page, so
// the second is preempted with 8 tokens stored and 2 generated. It has room for its 9 when the first
// is done, at 4, and then gets its third token.
TEST(serve_run__preempts_the_last_and_computes_it_again) {
    static const arrival arrivals[] = {{0, 7, 4, {0, 0}, 0}, {0, 7, 4, {0, 0}, 0}};
    serve_load load;
    serve_result r = run_arrivals(arrivals, 2, SERVE_FCFS, 100, 4, 16, 8, &load);
    assert_int_equal(r.preemptions, 1);
    assert_int_equal(r.lost_tokens, 8);
    assert_int_equal(r.computed_tokens, 7 + 7 + 9);
    assert_int_equal(r.decoded_tokens, 3 + 2);
    assert_int_equal(r.pages_max, 4);
    assert_times(&r, 0, 1, 4);
    assert_times(&r, 1, 1, 6);
    run_free(&r, &load);
}

// 200 pages of 4 tokens, of which 190 are taken: 9 are too many, as 2 are left over while others run.
TEST(serve_run__leaves_a_page_in_a_hundred) {
    arrival arrivals[] = {{0, 760, 10, {0, 0}, 0}, {0, 36, 1, {0, 0}, 0}};
    serve_load load;
    serve_result r = run_arrivals(arrivals, 2, SERVE_FCFS, 10000, 4, 800, 8, &load);
    assert_times(&r, 0, 1, 10);
    assert_times(&r, 1, 11, 11);
    run_free(&r, &load);
    arrivals[1].input = 32;
    r = run_arrivals(arrivals, 2, SERVE_FCFS, 10000, 4, 800, 8, &load);
    assert_times(&r, 1, 1, 1);
    run_free(&r, &load);
}

// The first runs for 2,500 us, in three intervals of a millisecond, the second after 100 s.
TEST(serve_run__stretches_intervals_and_keeps_their_sums) {
    static const arrival arrivals[] = {{0, 10, 2500, {0, 0}, 0}, {1e8, 10, 7, {0, 0}, 0}};
    serve_load load;
    serve_result r = run_arrivals(arrivals, 2, SERVE_FCFS, 100, 4, 8000, 8, &load);
    assert_int_equal(r.end_ns, UINT64_C(100000007000));
    assert_int_equal(r.interval_ns, 256000000);
    assert_true(r.intervals[0].running_ns == 2500e3);
    assert_true(r.intervals[100000 / 256].running_ns == 7e3);
    run_free(&r, &load);
}

// 16 tokens: 13 + 3 stored is all, 13 + 4 is too much, as is no input. No output is an end without a
// token.
TEST(serve_run__refuses_what_never_fits) {
    static const arrival arrivals[] = {{0, 13, 4, {0, 0}, 0},
                                       {0, 13, 5, {0, 0}, 0},
                                       {0, 0, 4, {0, 0}, 0},
                                       {0, 17, 1, {0, 0}, 0},
                                       {0, 16, 0, {0, 0}, 0}};
    serve_load load;
    serve_result r = run_arrivals(arrivals, 5, SERVE_FCFS, 100, 4, 16, 8, &load);
    assert_int_equal(r.done, 2);
    assert_int_equal(r.refused, 3);
    assert_times(&r, 0, 1, 4);
    assert_times(&r, 4, 5, 5);
    assert_int_equal(r.output_tokens, 4);
    assert_true(r.records[1].is_refused && r.records[2].is_refused && r.records[3].is_refused);
    run_free(&r, &load);
}

// Blocks of 512: the second request has the first block of the first, the third is just two blocks,
// of which one can be taken, as a token must be computed. Ids that differ are not shared.
TEST(serve_run__takes_equal_first_blocks_from_the_cache) {
    static const arrival arrivals[] = {{0, 1100, 1, {5, 6}, 2},
                                       {5, 1100, 1, {5, 7}, 2},
                                       {6, 1024, 1, {5, 6}, 2},
                                       {7, 1100, 1, {8, 6}, 2},
                                       {8, 1100, 2, {5, 6}, 2}};
    serve_load load;
    serve_result r = run_arrivals(arrivals, 5, SERVE_FCFS, 2000, 64, 100000, 8, &load);
    assert_int_equal(r.reused_tokens, 0 + 512 + 512 + 0 + 1024);
    assert_int_equal(r.computed_tokens, 1100 + 588 + 512 + 1100 + 76);
    run_free(&r, &load);
    // A page that is no part of a block: nothing is shared.
    r = run_arrivals(arrivals, 5, SERVE_FCFS, 2000, 100, 100000, 8, &load);
    assert_int_equal(r.reused_tokens, 0);
    run_free(&r, &load);
    // Room for 2,048 tokens: the third request evicts, and the fourth finds nothing of the first.
    static const arrival small[] = {
        {0, 1100, 1, {1, 2}, 2}, {5, 1100, 1, {3, 4}, 2}, {9, 1100, 1, {1, 2}, 2}};
    r = run_arrivals(small, 3, SERVE_FCFS, 2000, 64, 2048, 8, &load);
    assert_int_equal(r.reused_tokens, 512);  // the last block of a prefix goes first
    assert_true(r.evictions > 0);
    run_free(&r, &load);
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
        serve_result r = run_arrivals(
            arrivals, COUNT, test_random_in(&random, 0, 1) ? SERVE_SHORTEST : SERVE_FCFS,
            (uint32_t)test_random_in(&random, 1, 600), pages[test_random_in(&random, 0, 5)],
            (uint64_t)kv_tokens, (uint32_t)test_random_in(&random, 1, 20), &load);
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

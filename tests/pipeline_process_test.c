// Pipelines: what a process is: its replicas, its slots, depths and latencies at the start, control
// inside of it. Notation and kernels are those of pipeline_fixture.h.

#include "pipeline_fixture.h"

// -- replicas -------------------------------------------------------------------------------------

// 12 tokens at 0; w workers of 5 cycles each take 12 / w rounds.
static void pipeline_process__replicas_are_as_many_as_a_bound_axis_says(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    ptowsp_axis workers = ptowsp_axis_dynamic(f.m, "workers");
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 12, 0);
            producer(&f, "load", a, 0, 12, 0);
            PTOWSP_REPLICATE(f.m, w, workers, "use") {
                ptowsp_consumes(f.m, a);
                PTOWSP_CONSUME(f.m, t, a) {
                    work(&f, t, 5);
                }
            }
        }
    }
    compile(&f, NULL);
    static const int64_t counts[] = {3, 1, 12, 4, 5, 1};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        int64_t w = counts[i], rounds = (12 + w - 1) / w;
        assert_int_equal(ptowsp_run_bind_size(f.run, "workers", w), PTOWSP_OK);
        run_compiled(&f);
        assert_int_equal(makespan(&f), 5 * rounds);
        assert_int_equal(pipeline(&f, 0)->process_count, 1 + w);
        for (uint32_t k = 0; k < w; k++) {
            const ptowsp_process_stats *stats = process(&f, "use", k);
            assert_int_equal(stats->task_count, 12 / w + (k < 12 % w));
        }
    }
    fixture_free(&f);
}

// -- slots ----------------------------------------------------------------------------------------

static void pipeline_process__each_replica_has_its_slots(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    ptowsp_expr slot = ptowsp_slot(f.m, 3, PTOWSP_TYPE_I64);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            PTOWSP_REPLICATE(f.m, w, axis(&f, "three", 3), "part") {
                PTOWSP_FOR_EACH(f.m, i, axis(&f, "two", 2)) {
                    ptowsp_slot_set(f.m, 3, ptowsp_add(slot, linear(&f, w, 10, 1)));
                    work(&f, slot, 4);
                }
            }
        }
    }
    compile(&f, NULL);
    assert_int_equal(ptowsp_run_bind_slot(f.run, 3, 7), PTOWSP_OK);
    run_compiled(&f);
    EXPECT_CALLS(&f, 8, 18, 28, 9, 29, 49);
    assert_int_equal(ptowsp_run_slot(f.run, 3), 7);
    fixture_free(&f);
}

// -- depths and latencies at the start ------------------------------------------------------------

// Both depend on symbols, and on a variable around: in round k the depth is depth + k. 3 tokens at
// 0; depth d < 3 holds the sender until token 2 - d is taken; tokens are taken at latency + 10 * i.
static void pipeline_process__depth_and_latency_are_evaluated_where_it_starts(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    ptowsp_expr depth = ptowsp_symbol(f.m, "depth"), latency = ptowsp_symbol(f.m, "latency");
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_FOR_EACH(f.m, k, axis(&f, "rounds", 2)) {
            PTOWSP_PIPELINE(f.m, "p") {
                const ptowsp_channel_desc desc = {
                    "a", 99, 99, ptowsp_add(depth, ptowsp_cast(k, PTOWSP_TYPE_U64)), latency};
                ptowsp_channel a = ptowsp_channel_make(f.m, &desc);
                producer(&f, "load", a, 0, 3, 0);
                consumer(&f, "use", a, 0, 10);
            }
        }
    }
    compile(&f, NULL);
    assert_int_equal(ptowsp_run_bind_symbol(f.run, "depth", 1), PTOWSP_OK);
    assert_int_equal(ptowsp_run_bind_symbol(f.run, "latency", 20), PTOWSP_OK);
    run_compiled(&f);
    // depth 1: taken at 20, 40, 60, sent at 0, 20, 40. Depth 2: taken at 20, 30, 40, sent at 0, 0, 20
    expect_steps(&f, "load", 0,
                 "task 0-0, a!0 0, task 0-0, a!1 0-20, task 20-20, a!2 20-40, end 40, "
                 "task 0-0, a!0 0, task 0-0, a!1 0, task 0-0, a!2 0-20, end 20");
    assert_int_equal(channel_of(&f, "a")->depth, 2);
    assert_int_equal(channel_of(&f, "a")->latency, 20);
    assert_int_equal(channel_of(&f, "a")->pending_max, 2);
    assert_int_equal(makespan(&f), 70 + 50);
    assert_int_equal(ptowsp_run_bind_symbol(f.run, "depth", 2), PTOWSP_OK);
    assert_int_equal(ptowsp_run_bind_symbol(f.run, "latency", 0), PTOWSP_OK);
    run_compiled(&f);  // no latency: the first token is taken at 0, so one slot less is enough
    assert_int_equal(channel_of(&f, "a")->depth, 3);
    assert_int_equal(channel_of(&f, "a")->full_cycles, 0);
    assert_int_equal(makespan(&f), 60);
    fixture_free(&f);
}

// The symbol overrides latencies of descriptions and of expressions, also with 0; unbound, it does
// not.
static void pipeline_process__a_symbol_overrides_all_latencies(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            const ptowsp_channel_desc desc = {"b", 1, 0, {NULL, 0}, ptowsp_u64(f.m, 30)};
            ptowsp_channel a = channel(&f, "a", 1, 50), b = ptowsp_channel_make(f.m, &desc);
            producer(&f, "load", a, 0, 1, 0);
            PTOWSP_PROCESS(f.m, "pass") {
                ptowsp_consumes(f.m, a);
                ptowsp_produces(f.m, b);
                PTOWSP_CONSUME(f.m, t, a) {
                    ptowsp_send(f.m, b, t);
                }
            }
            consumer(&f, "use", b, 0, 0);
        }
    }
    compile(&f, NULL);
    run_compiled(&f);
    expect_steps(&f, "use", 0, "b?0 0-80, task 80-80, b?end 80, end 80");
    static const uint64_t latencies[] = {7, 0, 1000};
    for (int i = 0; i < 3; i++) {
        uint64_t latency = latencies[i];
        assert_int_equal(ptowsp_run_bind_symbol(f.run, PTOWSP_CHANNEL_LATENCY_SYMBOL, latency),
                         PTOWSP_OK);
        run_compiled(&f);
        assert_int_equal(makespan(&f), 2 * latency);
        assert_int_equal(channel_of(&f, "a")->latency, latency);
        assert_int_equal(channel_of(&f, "b")->latency, latency);
    }
    fixture_free(&f);
}

// -- control --------------------------------------------------------------------------------------

// Two processes, of two replicas each, go through one workload with a loop over one row of a ragged
// axis and one over the entries of a sparse axis, step by step in turn.
static void pipeline_process__loops_of_a_called_workload_do_not_mix(void **state) {
    (void)state;
    static const int32_t lengths[] = {1, 1, 3, 0};
    static const int32_t indptr[] = {0, 1, 3, 3, 6}, indices[] = {5, 6, 7, 8, 9, 10};
    static const int64_t gates[] = {10, 20, 30, 40, 50, 60};
    fixture f;
    fixture_make(&f);
    ptowsp_axis kv = ptowsp_axis_ragged(f.m, "kv"), pages = ptowsp_axis_sparse(f.m, "pages");
    PTOWSP_WORKLOAD(f.m, "rows") {
        ptowsp_expr n = ptowsp_workload_param(f.m, "n", PTOWSP_TYPE_I64);
        PTOWSP_FOR_EACH(f.m, j, ptowsp_axis_row(f.m, kv, n)) {
            work(&f, ptowsp_add(linear(&f, n, 100, 0), j), 2);
        }
        PTOWSP_SELECT(f.m, e, ptowsp_axis_row(f.m, pages, n)) {
            ptowsp_expr gate = ptowsp_array_at(f.m, "gates", PTOWSP_I64, ptowsp_loop_entry(e));
            work(&f, number(&f, 9), 1);
            work(&f, ptowsp_add(linear(&f, n, -1000, 0), ptowsp_add(gate, e)), 1);
        }
    }
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            for (int k = 0; k < 2; k++) {
                PTOWSP_REPLICATE(f.m, w, axis(&f, k ? "two" : "pair", 2), k ? "odd" : "even") {
                    const ptowsp_expr row = linear(&f, w, 2, k);
                    ptowsp_call(f.m, "rows", &row, 1);
                    work(&f, row, 1);
                }
            }
        }
    }
    compile(&f, NULL);
    const ptowsp_csr csr = {PTOWSP_I32, indptr, indices, 4, 6};
    assert_int_equal(ptowsp_run_bind_lengths(f.run, "kv", PTOWSP_I32, lengths, 4), PTOWSP_OK);
    assert_int_equal(ptowsp_run_bind_csr(f.run, "pages", &csr), PTOWSP_OK);
    assert_int_equal(ptowsp_run_bind_array(f.run, "gates", PTOWSP_I64, gates, 6), PTOWSP_OK);
    run_compiled(&f);
    //                    at 0     1    2     3    4     5    6
    //      row 0            0          9    15    0
    //      row 2          200        201        202          2
    //      row 1          100          9  -974    9  -963    1
    //      row 3            9 -2952    9 -2941    9 -2930    3
    EXPECT_CALLS(&f, 0, 200, 100, 9, -2952, 9, 201, 9, 9, 15, -974, -2941, 0, 202, 9, 9, -963,
                 -2930, 2, 1, 3);
    fixture_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipeline_process__replicas_are_as_many_as_a_bound_axis_says),
        cmocka_unit_test(pipeline_process__each_replica_has_its_slots),
        cmocka_unit_test(pipeline_process__depth_and_latency_are_evaluated_where_it_starts),
        cmocka_unit_test(pipeline_process__a_symbol_overrides_all_latencies),
        cmocka_unit_test(pipeline_process__loops_of_a_called_workload_do_not_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

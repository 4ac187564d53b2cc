// Pipelines: what a process is: its replicas, its slots, depths and latencies at the start, control
// inside of it. Notation and kernels are those of pipeline_fixture.h.

#include "pipeline_fixture.h"

// -- replicas -------------------------------------------------------------------------------------

// Each replica takes as long as its index says, and writes its own rows.
static void pipeline_process__replicas_know_their_index(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 8, 0);
            PTOWSP_REPLICATE(f.m, w, axis(&f, "three", 3), "part") {
                ptowsp_produces(f.m, a);
                ptowsp_task_desc desc = task_desc(&f, f.put, linear(&f, w, 1, 40), 0);
                desc.axes[1] = linear(&f, w, -10, 30);
                desc.views[0].tensor = f.x;
                desc.views[0].row = w;
                desc.views[0].col = linear(&f, w, 2, 0);
                ptowsp_send_task(f.m, a, &desc);
            }
            consumer(&f, "use", a, 0, 0);
        }
    }
    run(&f);
    expect_steps(&f, "part", 0, "task 0-30, a!40 30, end 30");
    expect_steps(&f, "part", 1, "task 0-20, a!41 20, end 20");
    expect_steps(&f, "part", 2, "task 0-10, a!42 10, end 10");
    EXPECT_CALLS(&f, 40, 41, 42, 42, 41, 40);
    assert_int_equal(f.x_data[0 * SIDE + 0], 40);
    assert_int_equal(f.x_data[1 * SIDE + 2], 41);
    assert_int_equal(f.x_data[2 * SIDE + 4], 42);
    fixture_free(&f);
}

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

// Replicas of one process are producers of one channel: it closes with the last of them.
static void pipeline_process__replicas_close_together(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 8, 0);
            PTOWSP_REPLICATE(f.m, w, axis(&f, "three", 3), "part") {
                ptowsp_produces(f.m, a);
                PTOWSP_WHEN(f.m, ptowsp_eq(w, number(&f, 1))) {
                    busy(&f, 9);
                    ptowsp_close(f.m, a);
                    busy(&f, 50);
                }
                PTOWSP_OTHERWISE(f.m) {
                    busy(&f, 4);
                }
                PTOWSP_WHEN(f.m, ptowsp_slot(f.m, 0, PTOWSP_TYPE_BOOL)) {
                    ptowsp_send(f.m, a, w);
                }
            }
            consumer(&f, "use", a, 0, 1);
        }
    }
    run(&f);
    expect_steps(&f, "use", 0, "a?end 0-9, end 9");
    expect_steps(&f, "part", 1, "task 0-9, a!end 9, task 9-59, end 59");
    expect_steps(&f, "part", 2, "task 0-4, end 4");
    fixture_free(&f);
}

// -- slots ----------------------------------------------------------------------------------------

// Slot 0 is 5 when the pipeline starts; what one sets is not seen by the other, nor afterwards.
static void pipeline_process__slots_are_those_of_the_start_and_private(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    ptowsp_expr slot = ptowsp_slot(f.m, 0, PTOWSP_TYPE_I64);
    PTOWSP_WORKLOAD(f.m, "main") {
        ptowsp_slot_set(f.m, 0, number(&f, 5));
        PTOWSP_PIPELINE(f.m, "p") {
            PTOWSP_PROCESS(f.m, "one") {
                work(&f, slot, 10);
                ptowsp_slot_set(f.m, 0, linear(&f, slot, 1, 100));
                work(&f, slot, 20);
                ptowsp_slot_set(f.m, 0, linear(&f, slot, 1, 100));
                work(&f, slot, 1);
            }
            PTOWSP_PROCESS(f.m, "two") {
                work(&f, slot, 15);
                ptowsp_slot_set(f.m, 0, linear(&f, slot, 1, 1000));
                work(&f, slot, 20);
            }
        }
        work(&f, slot, 1);
    }
    run(&f);
    //   at       0  0   10    15   30 then
    EXPECT_CALLS(&f, 5, 5, 105, 1005, 205, 5);
    assert_int_equal(ptowsp_run_slot(f.run, 0), 5);
    fixture_free(&f);
}

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

// One sets it, one only reads it, one reads it in a workload that it calls, one sets it there.
static void pipeline_process__a_slot_that_one_sets_is_another_one_to_who_reads_it(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    ptowsp_expr slot = ptowsp_slot(f.m, 0, PTOWSP_TYPE_I64);
    PTOWSP_WORKLOAD(f.m, "reader") {
        work(&f, linear(&f, slot, 1, 1000), 2);
    }
    PTOWSP_WORKLOAD(f.m, "setter") {
        ptowsp_slot_set(f.m, 0, linear(&f, slot, 1, 10));
        work(&f, linear(&f, slot, 1, 2000), 2);
    }
    PTOWSP_WORKLOAD(f.m, "main") {
        ptowsp_slot_set(f.m, 0, number(&f, 3));
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_axis three = axis(&f, "three", 3);
            PTOWSP_PROCESS(f.m, "sets") {
                PTOWSP_FOR_EACH(f.m, i, three) {
                    ptowsp_slot_set(f.m, 0, linear(&f, i, 1, 50));
                    busy(&f, 2);
                }
            }
            PTOWSP_PROCESS(f.m, "reads") {
                PTOWSP_FOR_EACH(f.m, i, three) {
                    work(&f, slot, 2);
                }
            }
            PTOWSP_PROCESS(f.m, "calls_reader") {
                PTOWSP_FOR_EACH(f.m, i, three) {
                    ptowsp_call(f.m, "reader", NULL, 0);
                }
            }
            PTOWSP_PROCESS(f.m, "calls_setter") {
                PTOWSP_FOR_EACH(f.m, i, three) {
                    ptowsp_call(f.m, "setter", NULL, 0);
                }
            }
        }
        ptowsp_call(f.m, "reader", NULL, 0);
        ptowsp_call(f.m, "setter", NULL, 0);
    }
    run(&f);
    EXPECT_CALLS(&f, 2, 3, 1003, 2013, 2, 3, 1003, 2023, 2, 3, 1003, 2033, 1003, 2013);
    assert_int_equal(ptowsp_run_slot(f.run, 0), 13);
    fixture_free(&f);
}

// What is checked before kernels are called sees the slots in the same way: 100 is no row of x.
static void pipeline_process__slots_are_private_when_views_are_checked_too(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    ptowsp_expr slot = ptowsp_slot(f.m, 0, PTOWSP_TYPE_I64);
    PTOWSP_WORKLOAD(f.m, "main") {
        ptowsp_slot_set(f.m, 0, number(&f, 2));
        PTOWSP_PIPELINE(f.m, "p") {
            PTOWSP_PROCESS(f.m, "sets") {
                ptowsp_slot_set(f.m, 0, number(&f, 100));
                busy(&f, 1);
            }
            PTOWSP_REPLICATE(f.m, w, axis(&f, "two", 2), "uses") {
                touch(&f, f.put, f.x, slot, 0, ptowsp_add(slot, linear(&f, w, 10, 0)), 1);
                ptowsp_slot_set(f.m, 0, linear(&f, slot, 1, 3));
                touch(&f, f.put, f.x, slot, 1, ptowsp_add(slot, linear(&f, w, 10, 0)), 1);
            }
        }
        touch(&f, f.put, f.x, slot, 2, slot, 1);
    }
    run(&f);
    EXPECT_CALLS(&f, 1, 2, 12, 5, 15, 2);
    assert_int_equal(f.x_data[2 * SIDE + 0], 12);
    assert_int_equal(f.x_data[5 * SIDE + 1], 15);
    assert_int_equal(f.x_data[2 * SIDE + 2], 2);
    fixture_free(&f);
}

// A pipeline that runs several times begins each time with the slots of then.
static void pipeline_process__slots_begin_anew_each_time(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    ptowsp_expr slot = ptowsp_slot(f.m, 0, PTOWSP_TYPE_I64),
                outer = ptowsp_slot(f.m, 1, PTOWSP_TYPE_I64);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_FOR_EACH(f.m, k, axis(&f, "three", 3)) {
            ptowsp_slot_set(f.m, 1, linear(&f, k, 10, 0));
            PTOWSP_PIPELINE(f.m, "p") {
                PTOWSP_PROCESS(f.m, "one") {
                    ptowsp_slot_set(f.m, 0, ptowsp_add(slot, linear(&f, outer, 1, 1)));
                    ptowsp_slot_set(f.m, 1, number(&f, 77));
                    work(&f, ptowsp_add(slot, k), 1);
                }
            }
        }
    }
    run(&f);
    EXPECT_CALLS(&f, 1, 12, 23);
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

static void pipeline_process__a_parameter_of_the_workload_is_a_depth(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "part") {
        ptowsp_expr n = ptowsp_workload_param(f.m, "n", PTOWSP_TYPE_U64);
        PTOWSP_PIPELINE(f.m, "p") {
            const ptowsp_channel_desc desc = {"a", 0, 0, n, {NULL, 0}};
            ptowsp_channel a = ptowsp_channel_make(f.m, &desc);
            producer(&f, "load", a, 0, 4, 1);
            PTOWSP_PROCESS(f.m, "use") {
                ptowsp_consumes(f.m, a);
                busy(&f, 100);
                PTOWSP_CONSUME(f.m, t, a) {
                    work(&f, ptowsp_mul(t, ptowsp_cast(n, PTOWSP_TYPE_I64)), 1);
                }
            }
        }
    }
    PTOWSP_WORKLOAD(f.m, "main") {
        for (uint64_t n = 0; n < 3; n++) {
            const ptowsp_expr arg = ptowsp_u64(f.m, n);
            ptowsp_call(f.m, "part", &arg, 1);
        }
    }
    run(&f);
    // sent: with n = 0 at 100, 101, 102, 103; 1: 1, 100, 101, 102; 2: 1, 2, 100, 101
    assert_int_equal(channel_of(&f, "a")->full_cycles, 99 + 97 + 98);
    assert_int_equal(pipeline(&f, 0)->run_count, 3);
    assert_int_equal(makespan(&f), 3 * 104);
    EXPECT_CALLS(&f, 0, 100, 1, 0, 2, 0, 3, 0, 0,  //
                 0, 100, 1, 2, 0, 3, 1, 2, 3,      //
                 0, 100, 1, 2, 3, 0, 2, 4, 6);
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

// What is parallel elsewhere takes one time after another in a process: 2 * 3 * 5 + 7 + 8 cycles.
static void pipeline_process__parallel_scopes_in_a_process_add_up(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            PTOWSP_PROCESS(f.m, "one") {
                PTOWSP_PARALLEL(f.m, i, axis(&f, "two", 2)) {
                    PTOWSP_PARALLEL(f.m, k, axis(&f, "three", 3)) {
                        work(&f, ptowsp_add(linear(&f, i, 10, 0), k), 5);
                    }
                }
                PTOWSP_COMBINE(f.m) {
                    busy(&f, 7);
                    busy(&f, 8);
                }
            }
        }
    }
    run(&f);
    expect_steps(&f, "one", 0,
                 "task 0-5, task 5-10, task 10-15, task 15-20, task 20-25, task 25-30, task 30-37, "
                 "task 37-45, end 45");
    EXPECT_CALLS(&f, 0, 1, 2, 10, 11, 12, 7, 8);
    fixture_free(&f);
}

// A called workload is part of the process that calls it, with a token as an argument.
static void pipeline_process__calls_belong_to_the_process(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "inner") {
        ptowsp_expr n = ptowsp_workload_param(f.m, "n", PTOWSP_TYPE_I64);
        work(&f, linear(&f, n, 1, 1000), 2);
    }
    PTOWSP_WORKLOAD(f.m, "outer") {
        ptowsp_expr n = ptowsp_workload_param(f.m, "n", PTOWSP_TYPE_I64);
        PTOWSP_PARALLEL(f.m, i, axis(&f, "two", 2)) {
            const ptowsp_expr sum = ptowsp_add(linear(&f, n, 10, 0), i);
            ptowsp_call(f.m, "inner", &sum, 1);
        }
        ptowsp_slot_set(f.m, 0, n);
    }
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 1, 0);
            producer(&f, "load", a, 3, 2, 1);
            PTOWSP_REPLICATE(f.m, w, axis(&f, "pair", 2), "use") {
                ptowsp_consumes(f.m, a);
                PTOWSP_CONSUME(f.m, t, a) {
                    ptowsp_call(f.m, "outer", &t, 1);
                    work(&f, ptowsp_slot(f.m, 0, PTOWSP_TYPE_I64), 1);
                }
            }
        }
    }
    run(&f);
    expect_steps(&f, "use", 0, "a?3 0-1, task 1-3, task 3-5, task 5-6, a?end 6, end 6");
    expect_steps(&f, "use", 1, "a?4 0-2, task 2-4, task 4-6, task 6-7, a?end 7, end 7");
    EXPECT_CALLS(&f, 3, 4, 1030, 1040, 1031, 1041, 3, 4);
    fixture_free(&f);
}

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

static void pipeline_process__conditions_look_at_tokens(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            ptowsp_channel a = channel(&f, "a", 1, 0), even = channel(&f, "even", 8, 0);
            ptowsp_channel odd = channel(&f, "odd", 8, 0);
            producer(&f, "load", a, 0, 5, 1);
            PTOWSP_PROCESS(f.m, "split") {
                ptowsp_consumes(f.m, a);
                ptowsp_produces(f.m, even);
                ptowsp_produces(f.m, odd);
                PTOWSP_CONSUME(f.m, t, a) {
                    PTOWSP_WHEN(f.m, ptowsp_eq(ptowsp_rem(t, number(&f, 2)), number(&f, 0))) {
                        ptowsp_send(f.m, even, t);
                    }
                    PTOWSP_OTHERWISE(f.m) {
                        send_work(&f, odd, linear(&f, t, 10, 0), 4);
                    }
                }
            }
            consumer(&f, "evens", even, 0, 0);
            consumer(&f, "odds", odd, 0, 0);
        }
    }
    run(&f);
    expect_steps(
        &f, "split", 0,
        "a?0 0-1, even!0 1, a?1 1-2, task 2-6, odd!10 6, a?2 6, even!2 6, a?3 6, task 6-10, "
        "odd!30 10, a?4 10, even!4 10, a?end 10, end 10");
    fixture_free(&f);
}

// A process without statements ends at 0, and closes what it was to produce.
static void pipeline_process__a_process_may_do_nothing(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_PIPELINE(f.m, "p") {
            PTOWSP_PROCESS(f.m, "idle") {
            }
            PTOWSP_PROCESS(f.m, "busy") {
                busy(&f, 3);
            }
            PTOWSP_PROCESS(f.m, "loop") {
                PTOWSP_FOR_EACH(f.m, i, axis(&f, "none", 0)) {
                    busy(&f, 9);
                }
            }
        }
    }
    run(&f);
    expect_steps(&f, "idle", 0, "end 0");
    expect_steps(&f, "busy", 0, "task 0-3, end 3");
    expect_steps(&f, "loop", 0, "end 0");
    assert_int_equal(makespan(&f), 3);
    fixture_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipeline_process__replicas_know_their_index),
        cmocka_unit_test(pipeline_process__replicas_are_as_many_as_a_bound_axis_says),
        cmocka_unit_test(pipeline_process__replicas_close_together),
        cmocka_unit_test(pipeline_process__slots_are_those_of_the_start_and_private),
        cmocka_unit_test(pipeline_process__each_replica_has_its_slots),
        cmocka_unit_test(pipeline_process__a_slot_that_one_sets_is_another_one_to_who_reads_it),
        cmocka_unit_test(pipeline_process__slots_are_private_when_views_are_checked_too),
        cmocka_unit_test(pipeline_process__slots_begin_anew_each_time),
        cmocka_unit_test(pipeline_process__depth_and_latency_are_evaluated_where_it_starts),
        cmocka_unit_test(pipeline_process__a_parameter_of_the_workload_is_a_depth),
        cmocka_unit_test(pipeline_process__a_symbol_overrides_all_latencies),
        cmocka_unit_test(pipeline_process__parallel_scopes_in_a_process_add_up),
        cmocka_unit_test(pipeline_process__calls_belong_to_the_process),
        cmocka_unit_test(pipeline_process__loops_of_a_called_workload_do_not_mix),
        cmocka_unit_test(pipeline_process__conditions_look_at_tokens),
        cmocka_unit_test(pipeline_process__a_process_may_do_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Kernels as tasks of graphs: what they see, their cycles, their failures, bad calls.

#include "graph_fixture.h"

static uint64_t add(ptowsp_graph *graph, const ptowsp_graph_call *call, void *user,
                    const char *name) {
    ptowsp_graph_task_desc desc = {.kernel = call, .user = user, .name = name};
    uint64_t task;
    assert_ok(ptowsp_graph_task_make(graph, &desc, &task));
    return task;
}

// -- what a kernel sees ---------------------------------------------------------------------------

typedef struct seen {
    ptowsp_task task;
    uint64_t args[8];
    ptowsp_tile tiles[2];
    char name[PTOWSP_NAME_MAX + 1];
} seen;

static ptowsp_cycles look(const ptowsp_task *task, void *user) {
    seen *s = (seen *)user;
    s->task = *task;
    memcpy(s->args, task->args, task->arg_count * sizeof(uint64_t));
    memcpy(s->tiles, task->tiles, task->tile_count * sizeof(ptowsp_tile));
    snprintf(s->name, sizeof s->name, "%s", task->kernel_name);
    return 77;
}

GRAPH_TEST_ON(0, graph_kernel__sees_copies_of_its_arguments_and_tiles) {
    float data[6];
    uint64_t args[] = {10, (uint64_t)-3, 2, 3, 4, 5, 99};
    ptowsp_tile tiles[] = {{data, 3, 1}, {data + 1, 1, 3}};
    ptowsp_graph_call call = {look, args, 2, tiles, 2, 1};
    seen s[2] = {0};
    add(graph, &call, &s[0], NULL);
    assert_int_equal(add(graph, &call, &s[1], "attend"), 1);
    memset(args, 0, sizeof args);
    memset(tiles, 0, sizeof tiles);
    memset(&call, 0, sizeof call);
    assert_ok(ptowsp_graph_run(graph));
    for (uint32_t i = 0; i < 2; i++) {
        const ptowsp_task *task = &s[i].task;
        assert_int_equal(task->arg_count, 7);
        assert_int_equal(task->axis_arg_count, 6);
        assert_int_equal(task->user_axis_count, 2);
        assert_int_equal(task->tile_count, 2);
        assert_int_equal(task->index, i);
        assert_int_equal(task->lane, 0);
        assert_string_equal(s[i].name, i ? "attend" : "kernel");
        static const uint64_t wanted[] = {10, (uint64_t)-3, 2, 3, 4, 5, 99};
        assert_memory_equal(s[i].args, wanted, sizeof wanted);
        assert_ptr_equal(s[i].tiles[0].data, data);
        assert_ptr_equal(s[i].tiles[1].data, data + 1);
        assert_int_equal(s[i].tiles[1].row_stride, 1);
        assert_int_equal(s[i].tiles[1].col_stride, 3);
        assert_int_equal(ptowsp_graph_task_cycles(graph, i), 77);
    }
}

static ptowsp_cycles count_args(const ptowsp_task *task, void *user) {
    (void)user;
    assert_int_equal(task->axis_arg_count + task->arg_count,
                     2 * PTOWSP_TASK_AXIS_MAX + 4 * PTOWSP_TASK_TILE_MAX + PTOWSP_TASK_SCALAR_MAX);
    for (uint32_t i = 0; i < task->arg_count; i++) {
        assert_int_equal(task->args[i], i);
    }
    return PTOWSP_CYCLES_MAX;
}

GRAPH_TEST_ON(0, graph_kernel__may_have_as_many_arguments_as_tasks_have) {
    enum { ARGS = PTOWSP_TASK_AXIS_MAX + 2 * PTOWSP_TASK_TILE_MAX + PTOWSP_TASK_SCALAR_MAX };
    uint64_t args[ARGS];
    ptowsp_tile tiles[PTOWSP_TASK_TILE_MAX] = {0};
    for (uint32_t i = 0; i < ARGS; i++) {
        args[i] = i;
    }
    ptowsp_graph_call call = {count_args,           args,
                              PTOWSP_TASK_AXIS_MAX, tiles,
                              PTOWSP_TASK_TILE_MAX, PTOWSP_TASK_SCALAR_MAX};
    add(graph, &call, NULL, NULL);
    assert_ok(ptowsp_graph_run(graph));
    assert_true(ptowsp_graph_task_cycles(graph, 0) == PTOWSP_CYCLES_MAX);
}

// -- cycles and failures --------------------------------------------------------------------------

typedef struct sums {
    uint64_t values[2000];
    uint32_t lane_max;  // atomic
} sums;

// values[i] = i + values[i / 2]; takes that many cycles.
static ptowsp_cycles add_half(const ptowsp_task *task, void *user) {
    sums *s = (sums *)user;
    uint64_t i = (uint64_t)ptowsp_task_axis(task, 0);
    uint64_t scale = ptowsp_task_scalar(task, 0);
    s->values[i] = scale * (i + (i ? s->values[i / 2] : 0));
    if (task->lane > __atomic_load_n(&s->lane_max, __ATOMIC_RELAXED)) {
        __atomic_store_n(&s->lane_max, task->lane, __ATOMIC_RELAXED);
    }
    return s->values[i];
}

GRAPH_TEST(graph_kernel__gives_the_same_cycles_on_any_lanes) {
    sums s;
    for (int round = 0; round < 2; round++) {
        memset(&s, 0, sizeof s);
        ptowsp_graph_clear(graph);
        uint64_t wanted[2000];
        for (uint64_t i = 0; i < 2000; i++) {
            uint64_t args[] = {i, 1};
            ptowsp_graph_call call = {add_half, args, 1, NULL, 0, 1};
            add(graph, &call, &s, NULL);
            assert_ok(i ? ptowsp_graph_edge_make(graph, i / 2, i) : 0);
            wanted[i] = i + (i ? wanted[i / 2] : 0);
            assert_int_equal(ptowsp_graph_task_cycles(graph, i), 0);
        }
        for (int run = 0; run < 5; run++) {
            assert_ok(ptowsp_graph_run(graph));
            for (uint64_t i = 0; i < 2000; i++) {
                assert_true(ptowsp_graph_task_cycles(graph, i) == wanted[i]);
            }
            assert_true(s.lane_max < ptowsp_context_lane_count(context));
        }
        uint64_t args[] = {5, 1};
        ptowsp_graph_call call = {add_half, args, 1, NULL, 0, 1};
        assert_int_equal(ptowsp_graph_task_cycles(graph, add(graph, &call, &s, NULL)), 0);
        assert_true(ptowsp_graph_task_cycles(graph, 1999) == wanted[1999]);
    }
}

static ptowsp_cycles return_told(const ptowsp_task *task, void *user) {
    return ((const ptowsp_cycles *)user)[task->index];
}

// 0 -> 1 -> 2, and 3 by itself.
GRAPH_TEST(graph_kernel__fails_with_its_status_and_then_has_no_cycles) {
    static const struct {
        ptowsp_status returned, status;
    } rows[] = {{PTOWSP_UNSUPPORTED, PTOWSP_UNSUPPORTED},
                {PTOWSP_LEAKED, PTOWSP_LEAKED},
                {(ptowsp_status)-100, PTOWSP_KERNEL_FAILED},
                {(ptowsp_status)1, PTOWSP_KERNEL_FAILED},
                {PTOWSP_OK, PTOWSP_KERNEL_FAILED}};  // the last returns PTOWSP_CYCLES_MAX + 1
    ptowsp_cycles told[4] = {10, 20, 30, 40};
    ptowsp_graph_call call = {return_told, NULL, 0, NULL, 0, 0};
    for (int i = 0; i < 4; i++) {
        add(graph, &call, told, NULL);
    }
    graph_chain(graph, 3);
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        static const ptowsp_cycles wanted[] = {10, 0, 0, 40};
        char text[80];
        told[1] = rows[row].returned ? ptowsp_task_fail(rows[row].returned) : PTOWSP_CYCLES_MAX + 1;
        snprintf(text, sizeof text, "graph: task 1 failed: %s",
                 ptowsp_status_name(rows[row].status));
        test_refused(context, ptowsp_graph_run(graph), rows[row].status, 1, text);
        graph_task_is(graph, 2, PTOWSP_SKIPPED, 1);
        for (uint64_t i = 0; i < 4; i++) {
            assert_int_equal(ptowsp_graph_task_cycles(graph, i), wanted[i]);
        }
        told[1] = 20;
        assert_ok(ptowsp_graph_run(graph));
        assert_int_equal(ptowsp_graph_task_cycles(graph, 1), 20);
        assert_int_equal(ptowsp_graph_task_cycles(graph, 2), 30);
    }
}

GRAPH_TEST_ON(0, graph_kernel__other_tasks_have_no_cycles) {
    ptowsp_cycles told[4] = {1, 1, 1, 9};
    ptowsp_graph_task_desc descs[] = {
        {.fn = succeed}, {.range = succeed_range, .item_count = 5}, {.name = "nothing"}};
    graph_tasks(graph, descs, 3);
    ptowsp_graph_call call = {return_told, NULL, 0, NULL, 0, 0};
    add(graph, &call, told, NULL);
    assert_ok(ptowsp_graph_run(graph));
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(ptowsp_graph_task_cycles(graph, i), i == 3 ? 9 : 0);
    }
}

// -- bad calls ------------------------------------------------------------------------------------

GRAPH_TEST_ON(0, graph_kernel__bad_calls) {
    static const uint64_t args[64] = {0};
    static const ptowsp_tile tiles[PTOWSP_TASK_TILE_MAX + 1];
    const struct {
        ptowsp_graph_call call;
        int beside;  // 1: fn; 2: range
        const char *text;
    } rows[] = {
        {{look, NULL, 0, NULL, 0, 0}, 1, " and fn or range"},
        {{look, NULL, 0, NULL, 0, 0}, 2, " and fn or range"},
        {{NULL, NULL, 0, NULL, 0, 0}, 0, " without fn"},
        {{look, args, 9, NULL, 0, 0}, 0, " with more axes than PTOWSP_TASK_AXIS_MAX, 8: 9"},
        {{look, args, 0, tiles, 13, 0}, 0, " with more tiles than PTOWSP_TASK_TILE_MAX, 12: 13"},
        {{look, args, 0, NULL, 0, 9}, 0, " with more scalars than PTOWSP_TASK_SCALAR_MAX, 8: 9"},
        {{look, args, UINT32_MAX, tiles, UINT32_MAX, UINT32_MAX},
         0,
         " with more axes than PTOWSP_TASK_AXIS_MAX, 8: 4294967295"},
        {{look, NULL, 1, NULL, 0, 0}, 0, " without args"},
        {{look, NULL, 0, tiles, 1, 0}, 0, " without args"},
        {{look, NULL, 0, NULL, 0, 1}, 0, " without args"},
        {{look, args, 0, NULL, 1, 0}, 0, " without tiles"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const ptowsp_graph_task_desc bad = {.kernel = &rows[i].call,
                                            .fn = rows[i].beside == 1 ? succeed : NULL,
                                            .range = rows[i].beside == 2 ? succeed_range : NULL};
        char text[120];
        uint64_t task = 5;
        ptowsp_graph_clear(graph);
        graph_alike(graph, (ptowsp_graph_task_desc){.fn = succeed}, 1);
        snprintf(text, sizeof text, "graph: task 1 has a kernel%s", rows[i].text);
        test_refused(context, ptowsp_graph_task_make(graph, &bad, &task), PTOWSP_INVALID_PARAMS, 1,
                     text);
        assert_true(task == PTOWSP_NO_INDEX);
    }
}

TEST(graph_kernel__building_anew_allocates_nothing_and_refusals_are_reported) {
    EACH_REFUSED(n, 10) {
        test_memory memory;
        ptowsp_context *context = test_counted(&memory);
        ptowsp_graph *graph = graph_of(context);
        sums s = {0};
        size_t allocations = 0;
        test_refuse(&memory, n);
        ptowsp_status status = PTOWSP_OK;
        for (uint64_t round = 0; round < 2; round++) {
            allocations = memory.allocations;
            ptowsp_graph_clear(graph);
            for (uint64_t i = 0; i < 500 && status == PTOWSP_OK; i++) {
                uint64_t args[] = {i, 2};
                ptowsp_graph_call call = {add_half, args, 1, NULL, 0, 1};
                ptowsp_graph_task_desc task = {.kernel = &call, .user = &s, .name = "half"};
                status = ptowsp_graph_task_make(graph, &task, NULL);
            }
            if (status == PTOWSP_OK) {
                status = ptowsp_graph_run(graph);
            }
        }
        has_more = test_was_refused(&memory, status);
        assert_true(has_more || memory.allocations == allocations);
        ptowsp_graph_destroy(graph);
        ptowsp_context_destroy(context);
        assert_int_equal(memory.live_bytes, 0);
    }
}

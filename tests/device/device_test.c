// Devices: opening, what runs on which core, launches, and what is refused of them.

#include "device_fixture.h"

// -- opening --------------------------------------------------------------------------------------

CONTEXT_TEST(device__bad_descriptions_are_refused) {
    const struct {
        ptowsp_device_desc desc;
        const char *text;
    } rows[] = {
        {{.scheduler_count = 17}, "device: 17 AICPU threads, more than 16"},
        {{.cube_count = 257}, "device: 257 cores, more than 256"},
        {{.cube_count = 1, .vector_count = 256}, "device: 257 cores, more than 256"},
        {{.cube_count = UINT32_MAX, .vector_count = UINT32_MAX},
         "device: 8589934590 cores, more than 256"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        ptowsp_device *device = (ptowsp_device *)(void *)context;
        test_invalid(context, ptowsp_device_open(context, &rows[i].desc, &device), rows[i].text);
        assert_null(device);
    }
    test_invalid(context, ptowsp_device_open(context, NULL, NULL), "device: out_device is NULL");
    ptowsp_device *device;
#ifdef PTOWSP_NO_THREADS
    test_refused(context, ptowsp_device_open(context, NULL, &device), PTOWSP_UNSUPPORTED,
                 PTOWSP_NO_INDEX, "device: this build has no threads");
    assert_null(device);
#else
    assert_ok(ptowsp_device_open(context, NULL, &device));
    ptowsp_device_stats stats = ptowsp_device_result(device);
    assert_int_equal(stats.scheduler_count, 1);
    assert_int_equal(stats.vector_count, 1);
    assert_int_equal(stats.cube_count, 0);
    assert_int_equal(stats.task_count, 0);
    assert_ok(ptowsp_device_close(device));
#endif
}

DEVICE_CONTEXT_TEST(device__opens_with_any_numbers_of_threads_and_closes_at_once) {
    static const uint32_t sizes[][3] = {{1, 1, 0}, {16, 1, 0},    {3, 0, 2},
                                        {4, 5, 3}, {16, 200, 56}, {1, 256, 0}};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        ptowsp_device *device = device_of(context, sizes[i][0], sizes[i][1], sizes[i][2]);
        ptowsp_device_stats stats = ptowsp_device_result(device);
        assert_int_equal(stats.scheduler_count, sizes[i][0]);
        assert_int_equal(stats.vector_count, sizes[i][1]);
        assert_int_equal(stats.cube_count, sizes[i][2]);
        assert_ok(ptowsp_device_close(device));
    }
}

// -- graphs ---------------------------------------------------------------------------------------

typedef struct noted {
    uint32_t core_of[64];  // task, or item: core + 1
    uint32_t count;        // atomic
} noted;

static ptowsp_status note_core(void *user, uint64_t task, uint32_t lane) {
    noted *n = (noted *)user;
    __atomic_fetch_add(&n->count, 1, __ATOMIC_RELAXED);
    assert_int_equal(n->core_of[task], 0);
    n->core_of[task] = lane + 1;
    return PTOWSP_OK;
}

static ptowsp_status note_range(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    noted *n = (noted *)user;
    __atomic_fetch_add(&n->count, 1, __ATOMIC_RELAXED);
    for (uint64_t i = begin; i < end; i++) {
        assert_int_equal(n->core_of[i], 0);
        n->core_of[i] = lane + 1;
    }
    return PTOWSP_OK;
}

DEVICE_GRAPH_TEST(2, 3, 2, device__tasks_run_on_cores_of_their_unit) {
    noted n = {0};
    for (uint64_t i = 0; i < 64; i++) {
        ptowsp_graph_task_desc desc = {.fn = note_core,
                                       .user = &n,
                                       .unit = i % 3 ? PTOWSP_UNIT_VECTOR : PTOWSP_UNIT_CUBE,
                                       .priority = (uint32_t)i % 4};
        assert_ok(ptowsp_graph_task_make(graph, &desc, NULL));
        assert_ok(i > 5 ? ptowsp_graph_edge_make(graph, i - 6, i) : PTOWSP_OK);
    }
    assert_ok(ptowsp_device_run_graph(device, graph));
    uint64_t by_core[5] = {0};
    for (uint32_t i = 0; i < 64; i++) {
        assert_int_equal(n.core_of[i] > 3, i % 3 == 0);
        by_core[n.core_of[i] - 1]++;
    }
    assert_int_equal(ptowsp_graph_result(graph).lane_count, 5);
    assert_int_equal(ptowsp_graph_result(graph).done_count, 64);
    for (uint32_t core = 0; core < 5; core++) {
        assert_int_equal(ptowsp_graph_lanes(graph)[core].task_count, by_core[core]);
        assert_int_equal(ptowsp_device_core_tasks(device, core), by_core[core]);
    }
    assert_int_equal(ptowsp_device_result(device).task_count, 64);
    // On lanes, it is a graph like any other, with as many lanes as the context has.
    memset(&n, 0, sizeof n);
    assert_ok(ptowsp_graph_run(graph));
    assert_int_equal(ptowsp_graph_result(graph).lane_count, 1);
    assert_int_equal(ptowsp_graph_lanes(graph)[0].task_count, 64);
}

// Who is on which core. Tasks note that they share a core, which no task may.
typedef struct exclusive {
    uint32_t vector_count, on_core[16];
    uint32_t clash_count, mix_count;  // atomic
    const uint8_t *units;             // by task
} exclusive;

static ptowsp_status take_cores(void *user, uint64_t task, uint32_t lane) {
    exclusive *e = (exclusive *)user;
    bool is_mix = e->units[task] == PTOWSP_UNIT_MIX, is_cube = lane >= e->vector_count;
    uint32_t block = is_mix && is_cube ? 2 * (lane - e->vector_count) : 0;
    const uint32_t cores[3] = {lane, block, block + 1};
    uint32_t clash_count = is_cube != (e->units[task] != PTOWSP_UNIT_VECTOR);
    for (uint32_t i = 0; i < (is_mix ? 3 : 1); i++) {
        clash_count += __atomic_exchange_n(&e->on_core[cores[i]], 1, __ATOMIC_ACQ_REL);
    }
    device_spend((uint32_t)(task * 37 % 500 * 40));
    for (uint32_t i = 0; i < (is_mix ? 3 : 1); i++) {
        clash_count += !__atomic_exchange_n(&e->on_core[cores[i]], 0, __ATOMIC_ACQ_REL);
    }
    __atomic_fetch_add(&e->clash_count, clash_count, __ATOMIC_RELAXED);
    __atomic_fetch_add(&e->mix_count, is_mix, __ATOMIC_RELAXED);
    return PTOWSP_OK;
}

DEVICE_CONTEXT_TEST(device__mix_has_a_cube_core_and_its_two_vector_cores_for_itself) {
    static const uint32_t sizes[][3] = {{1, 2, 1}, {2, 4, 2}, {3, 7, 3}, {1, 5, 2}, {3, 2, 1}};
    uint64_t random = test_seed();
    for (size_t row = 0; row < COUNT_OF(sizes); row++) {
        ptowsp_device *device = device_of(context, sizes[row][0], sizes[row][1], sizes[row][2]);
        ptowsp_graph *graph = graph_of(context);
        uint8_t units[300];
        uint32_t mix_count = 0;
        for (uint32_t i = 0; i < 300; i++) {
            units[i] = (uint8_t)test_random_in(&random, 0, 2);
            mix_count += units[i] == PTOWSP_UNIT_MIX;
        }
        exclusive e = {sizes[row][1], {0}, 0, 0, units};
        for (uint64_t i = 0; i < 300; i++) {
            ptowsp_graph_task_desc desc = {.fn = take_cores,
                                           .user = &e,
                                           .unit = (ptowsp_unit)units[i],
                                           .priority = (uint32_t)test_random_in(&random, 0, 3)};
            assert_ok(ptowsp_graph_task_make(graph, &desc, NULL));
            if (i > 0 && test_random_in(&random, 0, 1)) {
                uint64_t from =
                    i - 1 - (uint64_t)test_random_in(&random, 0, i < 20 ? (int64_t)i - 1 : 19);
                assert_ok(ptowsp_graph_edge_make(graph, from, i));
            }
        }
        for (int run = 0; run < 3; run++) {
            e.mix_count = 0;
            assert_ok(ptowsp_device_run_graph(device, graph));
            assert_int_equal(e.clash_count, 0);
            assert_int_equal(e.mix_count, mix_count);
            assert_int_equal(ptowsp_graph_result(graph).done_count, 300);
        }
        assert_int_equal(ptowsp_device_result(device).task_count, 3 * 300);
        ptowsp_graph_destroy(graph);
        assert_ok(ptowsp_device_close(device));
    }
}

DEVICE_GRAPH_TEST(2, 2, 3, device__a_range_task_is_one_range_for_each_core_of_its_unit) {
    static const struct {
        uint64_t items;
        uint32_t ranges;
    } rows[] = {{64, 3}, {3, 3}, {2, 2}, {1, 1}, {0, 0}, {10, 3}};
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        noted n = {0};
        ptowsp_graph_clear(graph);
        const ptowsp_graph_task_desc tasks[] = {{.range = note_range,
                                                 .user = &n,
                                                 .grain = 5,
                                                 .item_count = rows[row].items,
                                                 .unit = PTOWSP_UNIT_CUBE},
                                                {.name = "last"}};
        graph_tasks(graph, tasks, 2);
        graph_chain(graph, 2);
        for (int run = 0; run < 3; run++) {
            memset(&n, 0, sizeof n);
            assert_ok(ptowsp_device_run_graph(device, graph));
            assert_int_equal(n.count, rows[row].ranges);
            uint64_t ranges = 0;
            for (uint32_t core = 0; core < 5; core++) {
                ranges += ptowsp_graph_lanes(graph)[core].range_count;
            }
            assert_int_equal(ranges, rows[row].ranges);
            for (uint64_t i = 0; i < 64; i++) {
                assert_int_equal(n.core_of[i] > 2, i < rows[row].items);
            }
        }
    }
}

DEVICE_GRAPH_TEST(1, 1, 0, device__of_ready_tasks_the_one_with_the_highest_priority_is_next) {
    order o;
    order_begin(&o, 40);
    for (uint32_t i = 0; i < 40; i++) {
        ptowsp_graph_task_desc desc = {.fn = order_note, .user = &o, .priority = i % 4};
        assert_ok(ptowsp_graph_task_make(graph, &desc, NULL));
    }
    assert_ok(ptowsp_device_run_graph(device, graph));
    for (uint32_t i = 0; i < 40; i++) {  // ten of each priority, in order
        assert_int_equal(o.begins[i], 2 * ((3 - i % 4) * 10 + i / 4) + 1);
    }
    order_end(&o);
}

static ptowsp_cycles scaled(const ptowsp_task *task, void *user) {
    const ptowsp_tile *tile = &task->tiles[0];
    (void)user;
    for (int64_t i = 0; i < ptowsp_task_cols(task, 0); i++) {
        ((float *)tile->data)[i] *= 2.0f;
    }
    return 100 + task->index;
}

DEVICE_GRAPH_TEST(1, 2, 0, device__kernels_work_on_its_memory_and_their_cycles_are_kept) {
    float host[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    float *memory = (float *)piece_of(device, "x", sizeof host);
    assert_ok(ptowsp_device_copy_in(device, memory, host, sizeof host));
    for (uint64_t i = 0; i < 4; i++) {
        uint64_t args[] = {1, 4};
        ptowsp_tile tile = {memory + (i % 2) * 4, 4, 1};
        ptowsp_graph_call call = {scaled, args, 0, &tile, 1, 0};
        ptowsp_graph_task_desc desc = {.kernel = &call};
        assert_ok(ptowsp_graph_task_make(graph, &desc, NULL));
        assert_ok(i > 1 ? ptowsp_graph_edge_make(graph, i - 2, i) : PTOWSP_OK);
    }
    assert_ok(ptowsp_device_run_graph(device, graph));
    assert_ok(ptowsp_device_copy_out(device, host, memory, sizeof host));
    for (int i = 0; i < 8; i++) {
        assert_true(host[i] == 4.0f * (float)(i + 1));
    }
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(ptowsp_graph_task_cycles(graph, i), 100 + i);
    }
    assert_ok(ptowsp_device_free(device, memory));
}

DEVICE_TEST(device__graphs_that_it_cannot_run) {
    ptowsp_context *context = plain_context(), *other = plain_context();
    ptowsp_device *vector = device_of(context, 1, 1, 0), *cube = device_of(context, 1, 0, 1);
    ptowsp_graph *graph = graph_of(context), *foreign = graph_of(other);
    noted n = {0};
    ptowsp_graph_task_desc descs[] = {{.name = "empty", .unit = PTOWSP_UNIT_CUBE},
                                      {.fn = note_core, .user = &n},
                                      {.fn = note_core, .user = &n, .unit = PTOWSP_UNIT_CUBE}};
    descs[2].name = "mul";
    graph_tasks(graph, descs, 3);
    test_refused(context, ptowsp_device_run_graph(vector, graph), PTOWSP_INVALID_PARAMS, 2,
                 "device: task 2 'mul' needs a cube core, and there is none");
    test_refused(context, ptowsp_device_run_graph(cube, graph), PTOWSP_INVALID_PARAMS, 1,
                 "device: task 1 needs a vector core, and there is none");
    ptowsp_graph_clear(graph);
    ptowsp_device *few = device_of(context, 1, 3, 2);
    graph_alike(graph,
                (ptowsp_graph_task_desc){.fn = note_core, .user = &n, .unit = PTOWSP_UNIT_MIX}, 1);
    test_refused(context, ptowsp_device_run_graph(few, graph), PTOWSP_INVALID_PARAMS, 0,
                 "device: task 0 needs two vector cores with each cube core, and there are fewer");
    assert_ok(ptowsp_device_close(few));
    assert_int_equal(n.count, 0);
    graph_tasks(graph, descs + 1, 2);
    test_invalid(context, ptowsp_device_run_graph(vector, foreign),
                 "device: the graph is of another context");
    test_invalid(context, ptowsp_device_run_graph(vector, NULL), "device: graph is NULL");
    assert_ok(ptowsp_graph_edge_make(graph, 1, 2));
    assert_ok(ptowsp_graph_edge_make(graph, 2, 1));
    test_refused(context, ptowsp_device_run_graph(vector, graph), PTOWSP_INVALID_PARAMS, 1,
                 "graph: 2 tasks wait for each other in a cycle: 1 -> 2 'mul' -> 1");
    // An empty graph, and one of tasks without anything to do, need no core at all.
    ptowsp_graph_clear(graph);
    assert_ok(ptowsp_device_run_graph(cube, graph));
    for (uint64_t i = 0; i < 10; i++) {
        assert_ok(ptowsp_graph_task_make(graph, &descs[0], NULL));
        assert_ok(i ? ptowsp_graph_edge_make(graph, i / 2, i) : PTOWSP_OK);
    }
    assert_ok(ptowsp_device_run_graph(vector, graph));
    assert_int_equal(ptowsp_graph_result(graph).done_count, 10);
    assert_int_equal(ptowsp_device_result(vector).task_count, 0);
    ptowsp_graph_destroy(graph);
    ptowsp_graph_destroy(foreign);
    assert_ok(ptowsp_device_close(cube));
    assert_ok(ptowsp_device_close(vector));
    ptowsp_context_destroy(other);
    ptowsp_context_destroy(context);
}

static ptowsp_status fail_second(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    (void)user, (void)lane;
    return begin > 0 ? (ptowsp_status) - (int)end : PTOWSP_OK;
}

// 0 -> 1 -> 2, and 3 by itself; 0 is a range whose second and third ranges fail.
DEVICE_GRAPH_TEST(2, 3, 0, device__what_depends_on_a_failed_task_is_skipped) {
    noted n = {0};
    ptowsp_graph_task_desc descs[] = {{.range = fail_second, .item_count = 300, .name = "parts"},
                                      {.name = "empty"},
                                      {.fn = note_core, .user = &n},
                                      {.fn = note_core, .user = &n}};
    graph_tasks(graph, descs, 4);
    graph_chain(graph, 3);
    for (int run = 0; run < 3; run++) {
        memset(&n, 0, sizeof n);
        test_refused(context, ptowsp_device_run_graph(device, graph), -200, 0,
                     "graph: task 0 'parts' failed: UNKNOWN");
        graph_task_is(graph, 0, (ptowsp_status)-200, 0);
        graph_task_is(graph, 1, PTOWSP_SKIPPED, 0);
        graph_task_is(graph, 2, PTOWSP_SKIPPED, 0);
        assert_ok(ptowsp_graph_task_status(graph, 3, NULL));
        assert_int_equal(n.count, 1);
    }
}

static ptowsp_status cancel_at_ten(void *user, uint64_t task, uint32_t lane) {
    (void)lane;
    if (task == 10) {
        ptowsp_graph_cancel((ptowsp_graph *)user);
    }
    return PTOWSP_OK;
}

DEVICE_GRAPH_TEST(2, 2, 0, device__a_cancelled_graph_starts_nothing_more) {
    noted n;
    for (uint64_t i = 0; i < 30; i++) {
        ptowsp_graph_task_desc desc = {.fn = cancel_at_ten, .user = graph};
        ptowsp_graph_task_desc range = {.range = note_range, .item_count = 64, .user = &n};
        ptowsp_graph_task_make(graph, i == 11 ? &range : &desc, NULL);
        assert_ok(i ? ptowsp_graph_edge_make(graph, i - 1, i) : PTOWSP_OK);
    }
    test_refused(context, ptowsp_device_run_graph(device, graph), PTOWSP_CANCELLED, PTOWSP_NO_INDEX,
                 "graph: cancelled; 11 of 30 tasks done");
    assert_int_equal(ptowsp_device_result(device).task_count, 11);
}

// -- launches -------------------------------------------------------------------------------------

typedef struct launched {
    uint32_t core[300], kernel[300];  // + 1
    uint64_t sum;                     // atomic
} launched;

static ptowsp_cycles note_instance(const ptowsp_task *task, launched *l, uint32_t kernel) {
    uint64_t instance = (uint64_t)ptowsp_task_axis(task, 0);
    assert_int_equal(task->user_axis_count, 2);
    assert_int_equal(task->axis_arg_count, 2);
    assert_int_equal(task->tile_count, 0);
    assert_int_equal(task->index, instance);
    assert_string_equal(task->kernel_name, "kernel");
    assert_int_equal(l->core[instance], 0);
    l->core[instance] = task->lane + 1;
    l->kernel[instance] = kernel + 1;
    uint64_t sum = (uint64_t)ptowsp_task_axis(task, 1);
    for (uint32_t i = 0; i + 2 < task->arg_count; i++) {
        sum += ptowsp_task_scalar(task, i);
    }
    __atomic_fetch_add(&l->sum, sum, __ATOMIC_RELAXED);
    return 1000 * (kernel + 1) + instance;
}

static ptowsp_cycles first_kernel(const ptowsp_task *task, void *user) {
    return note_instance(task, (launched *)user, 0);
}

static ptowsp_cycles second_kernel(const ptowsp_task *task, void *user) {
    return note_instance(task, (launched *)user, 1);
}

DEVICE_TEST_ON(2, 5, 2, device__spmd_runs_one_instance_on_each_core_of_the_unit) {
    const ptowsp_kernel_fn kernels[] = {first_kernel};
    uint64_t scalars[] = {100, 10000};
    for (int run = 0; run < 6; run++) {
        ptowsp_unit unit = (ptowsp_unit)(run % 3);
        uint32_t count = run % 3 ? 2 : 5, first = run % 3 ? 5 : 0;
        launched l = {0};
        ptowsp_cycles cycles[5] = {7, 7, 7, 7, 7};
        ptowsp_launch launch = {.kernels = kernels,
                                .kernel_count = 1,
                                .unit = unit,
                                .scalars = scalars,
                                .scalar_count = 2,
                                .user = &l,
                                .out_cycles = cycles,
                                .instance_count = run < 3 ? 0 : count};
        assert_ok(ptowsp_device_launch(device, &launch));
        assert_int_equal(l.sum, count * (count + 10100));
        for (uint32_t i = 0; i < 5; i++) {
            assert_int_equal(l.core[i], i < count ? first + i + 1 : 0);
            assert_int_equal(cycles[i], i < count ? 1000 + i : 7);
        }
    }
    assert_int_equal(ptowsp_device_result(device).task_count, 2 * (5 + 2 + 2));
    assert_int_equal(ptowsp_device_core_tasks(device, 0), 2);
    assert_int_equal(ptowsp_device_core_tasks(device, 5), 4);  // those of MIX too
}

DEVICE_TEST_ON(2, 4, 1, device__mpmd_runs_the_kernel_of_each_id_on_any_core) {
    const ptowsp_kernel_fn kernels[] = {first_kernel, NULL, second_kernel};
    uint32_t ids[300];
    static const uint32_t counts[] = {1, 3, 4, 5, 300};
    for (size_t row = 0; row < 5; row++) {
        launched l = {0};
        for (uint32_t i = 0; i < counts[row]; i++) {
            ids[i] = i % 3 ? 2 : 0;
        }
        ptowsp_cycles cycles[300];
        ptowsp_launch launch = {.kernels = kernels,
                                .kernel_count = 3,
                                .ids = ids,
                                .user = &l,
                                .instance_count = counts[row],
                                .out_cycles = cycles};
        assert_ok(ptowsp_device_launch(device, &launch));
        assert_int_equal(l.sum, counts[row] * counts[row]);
        for (uint32_t i = 0; i < counts[row]; i++) {
            assert_in_range(l.core[i], 1, 4);
            assert_int_equal(l.kernel[i], i % 3 ? 2 : 1);
            assert_int_equal(cycles[i], (i % 3 ? 2000 : 1000) + i);
        }
    }
}

static ptowsp_cycles fail_some(const ptowsp_task *task, void *user) {
    __atomic_fetch_add((uint32_t *)user, 1, __ATOMIC_RELAXED);
    return task->index == 7    ? ptowsp_task_fail(PTOWSP_UNSUPPORTED)
           : task->index == 12 ? ptowsp_task_fail(PTOWSP_BUSY)
                               : 5;
}

DEVICE_CONTEXT_TEST(device__of_failed_instances_the_lowest_is_reported) {
    for (uint32_t cores = 1; cores <= 20; cores += 19) {  // 20: pinned
        ptowsp_device *device = device_of(context, 3, cores, 0);
        const ptowsp_kernel_fn kernels[] = {fail_some};
        uint32_t count = 0;
        ptowsp_cycles cycles[20];
        ptowsp_launch launch = {.kernels = kernels,
                                .kernel_count = 1,
                                .instance_count = 20,
                                .user = &count,
                                .out_cycles = cycles};
        test_refused(context, ptowsp_device_launch(device, &launch), PTOWSP_UNSUPPORTED, 7,
                     "device: instance 7 failed: UNSUPPORTED");
        assert_int_equal(count, 20);
        for (uint32_t i = 0; i < 20; i++) {
            assert_int_equal(cycles[i], i == 7 || i == 12 ? 0 : 5);
        }
        assert_ok(ptowsp_device_close(device));
    }
}

DEVICE_TEST_ON(1, 2, 0, device__bad_launches_are_refused) {
    const ptowsp_kernel_fn kernels[] = {first_kernel, NULL};
    static const uint32_t ids[] = {0, 2}, nulls[] = {0, 1};
    static const uint64_t scalars[9] = {0};
    const uint64_t none = PTOWSP_NO_INDEX;
    ptowsp_launch l;
#define REFUSED(change, index, text)                                                               \
    l = (ptowsp_launch){.kernels = kernels, .kernel_count = 1};                                    \
    change;                                                                                        \
    test_refused(context, ptowsp_device_launch(device, &l), PTOWSP_INVALID_PARAMS, index,          \
                 "device: " text)
    REFUSED(l.kernels = NULL, none, "a launch has no kernels");
    REFUSED(l.kernel_count = 0, none, "a launch has no kernels");
    REFUSED(l.unit = PTOWSP_UNIT_COUNT, none, "a launch has an unknown unit");
    REFUSED((l.scalar_count = 9, l.scalars = scalars), none, "a launch has too many scalars");
    REFUSED(l.scalar_count = 1, none, "a launch has scalars that are NULL");
    REFUSED(l.unit = PTOWSP_UNIT_CUBE, none, "a launch needs a cube core, and there is none");
    REFUSED(l.unit = PTOWSP_UNIT_MIX, none,
            "a launch needs two vector cores with each cube core, and there are fewer");
    REFUSED((l.kernel_count = 2, l.ids = ids), 1,
            "instance 1 is of kernel 2, which is outside of the table");
    REFUSED((l.kernel_count = 2, l.ids = nulls), 1, "instance 1 is of kernel 1, which is NULL");
    REFUSED(l.kernels = kernels + 1, 0, "instance 0 is of kernel 0, which is NULL");
#undef REFUSED
    test_invalid(context, ptowsp_device_launch(device, NULL), "device: launch is NULL");
    assert_int_equal(ptowsp_device_result(device).task_count, 0);
}

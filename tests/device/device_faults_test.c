// Devices: calls at the wrong time, cores that are stuck, and memory of the host that is refused.

#include "device_fixture.h"

// -- calls at the wrong time ----------------------------------------------------------------------

typedef struct meddler {
    ptowsp_context *context;
    ptowsp_device *device;
    ptowsp_graph *graph;
    void *memory;
} meddler;

static ptowsp_status meddle(void *user, uint64_t task, uint32_t lane) {
    meddler *m = (meddler *)user;
    (void)task, (void)lane;
    void *memory = m->memory;
    char host[4];
    const ptowsp_launch launch = {.kernel_count = 0};
    ptowsp_device *device;
    assert_int_equal(ptowsp_device_open(m->context, NULL, &device), PTOWSP_BUSY);
    assert_int_equal(ptowsp_device_close(m->device), PTOWSP_BUSY);
    assert_int_equal(ptowsp_device_alloc(m->device, NULL, 4, &memory), PTOWSP_BUSY);
    assert_int_equal(ptowsp_device_free(m->device, m->memory), PTOWSP_BUSY);
    assert_int_equal(ptowsp_device_copy_in(m->device, m->memory, host, 4), PTOWSP_BUSY);
    assert_int_equal(ptowsp_device_copy_out(m->device, host, m->memory, 4), PTOWSP_BUSY);
    assert_int_equal(ptowsp_device_run_graph(m->device, m->graph), PTOWSP_BUSY);
    assert_int_equal(ptowsp_device_launch(m->device, &launch), PTOWSP_BUSY);
    assert_int_equal(ptowsp_graph_run(m->graph), PTOWSP_BUSY);
    assert_int_equal(ptowsp_graph_task_make(m->graph, NULL, NULL), PTOWSP_BUSY);
    return PTOWSP_OK;
}

DEVICE_CONTEXT_TEST(device_faults__calls_from_inside_a_task_are_busy_and_change_nothing) {
    meddler m = {context, device_of(context, 1, 1, 0), graph_of(context), NULL};
    m.memory = piece_of(m.device, NULL, 4);
    graph_alike(m.graph, (ptowsp_graph_task_desc){.fn = meddle, .user = &m}, 1);
    assert_ok(ptowsp_device_run_graph(m.device, m.graph));
    test_was_busy(context);
    assert_ok(ptowsp_graph_run(m.graph));
    assert_ok(ptowsp_device_free(m.device, m.memory));
    ptowsp_graph_destroy(m.graph);
    assert_ok(ptowsp_device_close(m.device));
}

// -- cores that do not come back ------------------------------------------------------------------

typedef struct stuck {
    uint32_t flag;   // atomic: it may come back
    uint32_t count;  // atomic: tasks that have run
} stuck;

static ptowsp_status wait_for_flag(void *user, uint64_t task, uint32_t lane) {
    stuck *s = (stuck *)user;
    (void)lane;
    while (task == 1 && !__atomic_load_n(&s->flag, __ATOMIC_ACQUIRE)) {
    }
    __atomic_fetch_add(&s->count, 1, __ATOMIC_RELAXED);
    return PTOWSP_OK;
}

static ptowsp_device *impatient_device(ptowsp_context *context, uint32_t schedulers,
                                       uint32_t vectors) {
    return device_with(context, (ptowsp_device_desc){.scheduler_count = schedulers,
                                                     .vector_count = vectors,
                                                     .time_limit_ns = 500000000});
}

// A chain of tasks, of which task 1 does not come back, and some beside it.
DEVICE_TEST(device_faults__a_stuck_core_is_reported_and_the_device_is_lost) {
    for (uint32_t cores = 1; cores <= 3; cores++) {
        ptowsp_context *context = plain_context();
        ptowsp_device *device = impatient_device(context, cores, cores);
        ptowsp_graph *graph = graph_of(context);
        stuck s = {0, 0};
        ptowsp_graph_task_desc desc = {.fn = wait_for_flag, .user = &s};
        for (uint64_t i = 0; i < 20; i++) {
            desc.name = i == 1 ? "spin" : NULL;
            assert_ok(ptowsp_graph_task_make(graph, &desc, NULL));
            assert_ok(i && i < 10 ? ptowsp_graph_edge_make(graph, i - 1, i) : 0);
        }
        void *memory = piece_of(device, "x", 4), *more;
        char host[4] = "abc";
        assert_ok(ptowsp_device_copy_in(device, memory, host, 4));
        assert_int_equal(ptowsp_device_run_graph(device, graph), PTOWSP_STUCK);
        ptowsp_error error = ptowsp_context_error(context);
        assert_int_equal(error.status, PTOWSP_STUCK);
        assert_int_equal(error.index, 1);
        assert_non_null(
            strstr(error.text, " has not come back from task 1 'spin' in 500000000 ns"));
        assert_int_equal(ptowsp_graph_task_status(graph, 1, NULL), PTOWSP_STUCK);
        assert_int_equal(ptowsp_graph_task_status(graph, 2, NULL), PTOWSP_SKIPPED);
        assert_int_equal(ptowsp_graph_result(graph).skipped_count >= 8, 1);
        // Nothing goes any more but copying out and closing; and that not yet.
        const ptowsp_launch launch = {.kernel_count = 0};
        assert_int_equal(ptowsp_device_run_graph(device, graph), PTOWSP_STUCK);
        error = ptowsp_context_error(context);
        assert_memory_equal(error.text, "device: lost, since core ", 25);
        assert_int_equal(ptowsp_device_launch(device, &launch), PTOWSP_STUCK);
        assert_int_equal(ptowsp_device_alloc(device, NULL, 4, &more), PTOWSP_STUCK);
        assert_int_equal(ptowsp_device_free(device, memory), PTOWSP_STUCK);
        assert_int_equal(ptowsp_device_copy_in(device, memory, "no", 3), PTOWSP_STUCK);
        char copy[4];
        assert_ok(ptowsp_device_copy_out(device, copy, memory, 4));
        assert_memory_equal(copy, host, 4);
        assert_int_equal(ptowsp_device_close(device), PTOWSP_STUCK);
        error = ptowsp_context_error(context);
        assert_memory_equal(error.text, "device: not closed, as core ", 28);
        uint32_t count = __atomic_load_n(&s.count, __ATOMIC_ACQUIRE);
        __atomic_store_n(&s.flag, 1, __ATOMIC_RELEASE);
        test_refused(context, device_close_late(device), PTOWSP_LEAKED, 1,
                     "device: closed with 1 pieces of 4 bytes not freed: 'x' (4)");
        assert_int_equal(s.count, count + 1);  // that task has come to its end
        // The graph is as good as new.
        assert_ok(ptowsp_graph_run(graph));
        ptowsp_graph_destroy(graph);
        ptowsp_context_destroy(context);
    }
}

// A task of MIX that waits for a vector core of its block, which never comes back, does not run.
DEVICE_CONTEXT_TEST(device_faults__mix_does_not_wait_for_a_stuck_core) {
    ptowsp_device *device = device_with(
        context,
        (ptowsp_device_desc){.vector_count = 2, .cube_count = 1, .time_limit_ns = 300000000});
    ptowsp_graph *graph = graph_of(context);
    stuck s = {0, 0};
    const ptowsp_graph_task_desc tasks[] = {
        {.name = "first"},
        {.fn = wait_for_flag, .user = &s},  // stuck
        {.fn = wait_for_flag, .user = &s, .unit = PTOWSP_UNIT_MIX}};
    graph_tasks(graph, tasks, 3);
    assert_int_equal(ptowsp_device_run_graph(device, graph), PTOWSP_STUCK);
    assert_int_equal(ptowsp_context_error(context).index, 1);
    assert_int_equal(ptowsp_graph_task_status(graph, 2, NULL), PTOWSP_SKIPPED);
    assert_int_equal(ptowsp_device_close(device), PTOWSP_STUCK);
    __atomic_store_n(&s.flag, 1, __ATOMIC_RELEASE);
    assert_ok(device_close_late(device));
    assert_int_equal(s.count, 1);
    ptowsp_graph_destroy(graph);
}

static ptowsp_cycles launch_waits(const ptowsp_task *task, void *user) {
    wait_for_flag(user, task->index == 3 || task->index == 5 ? 1 : 0, task->lane);
    return 0;
}

DEVICE_TEST(device_faults__stuck_instances_are_reported_the_lowest_first) {
    for (uint32_t cores = 2; cores <= 8; cores += 6) {  // 8: pinned
        ptowsp_context *context = plain_context();
        ptowsp_device *device = impatient_device(context, 2, cores);
        const ptowsp_kernel_fn kernels[] = {launch_waits};
        stuck s = {0, 0};
        ptowsp_launch launch = {
            .kernels = kernels, .kernel_count = 1, .instance_count = 8, .user = &s};
        assert_int_equal(ptowsp_device_launch(device, &launch), PTOWSP_STUCK);
        ptowsp_error error = ptowsp_context_error(context);
        assert_int_equal(error.index, 3);
        assert_non_null(strstr(error.text, " has not come back from instance 3 in 500000000 ns"));
        __atomic_store_n(&s.flag, 1, __ATOMIC_RELEASE);
        assert_ok(device_close_late(device));
        ptowsp_context_destroy(context);
    }
}

DEVICE_CONTEXT_TEST(device_faults__tasks_within_the_time_limit_are_none_of_its_business) {
    ptowsp_device *device =
        device_with(context, (ptowsp_device_desc){.vector_count = 4, .time_limit_ns = 10000000000});
    ptowsp_graph *graph = graph_of(context);
    stuck s = {1, 0};
    graph_alike(graph, (ptowsp_graph_task_desc){.fn = wait_for_flag, .user = &s}, 1000);
    for (int run = 0; run < 10; run++) {
        assert_ok(ptowsp_device_run_graph(device, graph));
    }
    assert_int_equal(s.count, 10000);
    ptowsp_graph_destroy(graph);
    assert_ok(ptowsp_device_close(device));
}

// -- memory of the host ---------------------------------------------------------------------------

static ptowsp_status count_up(void *user, uint64_t task, uint32_t lane) {
    (void)task, (void)lane;
    __atomic_fetch_add((uint32_t *)user, 1, __ATOMIC_RELAXED);
    return PTOWSP_OK;
}

static ptowsp_cycles count_instance(const ptowsp_task *task, void *user) {
    return (ptowsp_cycles)count_up(user, task->index, task->lane);
}

// Opens, allocates, runs, frees, closes; the status of what fails first.
static ptowsp_status use_device(ptowsp_context *context, ptowsp_graph *graph) {
    const ptowsp_device_desc desc = {.scheduler_count = 2, .vector_count = 2};
    ptowsp_device *device;
    ptowsp_status status = ptowsp_device_open(context, &desc, &device);
    if (status != PTOWSP_OK) {
        assert_null(device);
        return status;
    }
    void *pieces[20] = {NULL};
    for (int i = 0; i < 20 && status == PTOWSP_OK; i++) {
        status = ptowsp_device_alloc(device, NULL, 8, &pieces[i]);
    }
    if (status == PTOWSP_OK) {
        status = ptowsp_device_run_graph(device, graph);
    }
    for (int i = 0; i < 20; i++) {
        assert_ok(ptowsp_device_free(device, pieces[i]));
    }
    assert_ok(ptowsp_device_close(device));
    return status;
}

DEVICE_TEST(device_faults__every_allocation_may_be_refused) {
    EACH_REFUSED(n, 25) {
        test_memory memory;
        ptowsp_context *context = test_counted(&memory);
        ptowsp_graph *graph = graph_of(context);
        uint32_t count = 0;
        graph_alike(graph, (ptowsp_graph_task_desc){.fn = count_up, .user = &count}, 1);
        test_refuse(&memory, n);
        has_more = test_was_refused(&memory, use_device(context, graph));
        assert_int_equal(count, !has_more);
        count = 0;
        assert_ok(use_device(context, graph));
        assert_int_equal(count, 1);
        ptowsp_graph_destroy(graph);
        ptowsp_context_destroy(context);
        assert_int_equal(memory.live_bytes, 0);
    }
}

// The second block of a device holds its threads.
DEVICE_TEST(device_faults__refused_threads_are_counted_with_both_units) {
    test_memory memory;
    ptowsp_context *context = test_counted(&memory);
    const ptowsp_device_desc device_desc = {.vector_count = 2, .cube_count = 3};
    ptowsp_device *device;
    memory.refuse_at = memory.allocations + 2;
    test_refused(context, ptowsp_device_open(context, &device_desc, &device), PTOWSP_OUT_OF_MEMORY,
                 PTOWSP_NO_INDEX, "device: no memory for 5 cores");
    ptowsp_context_destroy(context);
    assert_int_equal(memory.live_bytes, 0);
}

// Runs of a graph and launches allocate nothing, once a graph has run on as many cores.
DEVICE_TEST(device_faults__running_again_allocates_nothing) {
    test_memory memory;
    ptowsp_context *context = test_counted(&memory);
    ptowsp_device *device = device_of(context, 1, 3, 0);
    ptowsp_graph *graph = graph_of(context);
    uint32_t count = 0;
    graph_alike(graph, (ptowsp_graph_task_desc){.fn = count_up, .user = &count}, 10);
    size_t allocations = 0;
    for (int run = 0; run < 5; run++) {
        assert_ok(ptowsp_device_run_graph(device, graph));
        const ptowsp_kernel_fn kernels[] = {count_instance};
        ptowsp_launch launch = {.kernels = kernels, .kernel_count = 1, .user = &count};
        assert_ok(ptowsp_device_launch(device, &launch));
        assert_true(run == 0 || memory.allocations == allocations);
        allocations = memory.allocations;
    }
    ptowsp_graph_destroy(graph);
    assert_ok(ptowsp_device_close(device));
    ptowsp_context_destroy(context);
    assert_int_equal(memory.live_bytes, 0);
}

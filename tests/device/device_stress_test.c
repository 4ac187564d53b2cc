// Devices of all sizes under random graphs, which fail and are cancelled, and under launches.

#include "device_fixture.h"
#include "graph_random.h"

// Fewer where each memory access is watched.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROUNDS 150
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define ROUNDS 150
#endif
#endif
#ifndef ROUNDS
#define ROUNDS 1200
#endif

enum { DEVICES = 8 };

// From one AICPU thread and one core to four and eight; all but the first have cores of both units.
static ptowsp_device *device_number(ptowsp_context *context, uint32_t i) {
    static const uint32_t sizes[DEVICES][3] = {{1, 1, 0}, {1, 1, 1}, {1, 3, 2}, {1, 5, 3},
                                               {2, 1, 1}, {2, 4, 4}, {3, 2, 1}, {4, 6, 2}};
    return device_of(context, sizes[i][0], sizes[i][1], sizes[i][2]);
}

// Twice on the device, and once on lanes: they leave nothing behind for each other.
static ptowsp_status run_there(ptowsp_graph *graph, int time, ptowsp_device *device) {
    return time == 1 ? ptowsp_graph_run(graph) : ptowsp_device_run_graph(device, graph);
}

DEVICE_CONTEXT_TEST(device_stress__random_graphs_agree_with_running_in_order) {
    uint64_t random = test_seed();
    static random_graph g;
    static random_task tasks[TASK_MAX];
    ptowsp_graph *graph = graph_of(context);
    ptowsp_device *devices[DEVICES];
    for (uint32_t i = 0; i < DEVICES; i++) {
        devices[i] = device_number(context, i);
    }
    for (uint32_t round = 0; TEST_ROUNDS(round, ROUNDS); round++) {
        const uint32_t i = round % DEVICES;
        random_graph_agrees(context, graph, &g, tasks, i != 0, &random, run_there, devices[i]);
    }
    for (uint32_t i = 0; i < DEVICES; i++) {
        assert_ok(ptowsp_device_close(devices[i]));
    }
    ptowsp_graph_destroy(graph);
}

// -- cancelling -----------------------------------------------------------------------------------

typedef struct cancelled {
    ptowsp_graph *graph;
    uint64_t at;
    uint32_t count;  // atomic: tasks and ranges that have run
    uint8_t runs[1000];
} cancelled;

static ptowsp_status cancel_at(void *user, uint64_t task, uint32_t lane) {
    cancelled *c = (cancelled *)user;
    (void)lane;
    c->runs[task]++;
    __atomic_fetch_add(&c->count, 1, __ATOMIC_RELAXED);
    if (task == c->at) {
        ptowsp_graph_cancel(c->graph);
    }
    return PTOWSP_OK;
}

DEVICE_CONTEXT_TEST(device_stress__cancelled_graphs_have_done_what_they_say) {
    uint64_t random = test_seed();
    for (uint32_t i = 0; i < DEVICES; i++) {
        ptowsp_device *device = device_number(context, i);
        cancelled c = {graph_of(context), 0, 0, {0}};
        graph_alike(c.graph, (ptowsp_graph_task_desc){.fn = cancel_at, .user = &c}, 1000);
        for (uint64_t task = 0; task < 1000; task++) {
            for (int k = 0; k < 2 && task > 0; k++) {
                uint64_t before = (uint64_t)test_random_in(&random, 0, (int64_t)task - 1);
                assert_ok(ptowsp_graph_edge_make(c.graph, before, task));
            }
        }
        for (uint32_t round = 0; round < ROUNDS / 20; round++) {
            memset(c.runs, 0, sizeof c.runs);
            c.count = 0;
            c.at = (uint64_t)test_random_in(&random, 0, 1500);
            ptowsp_status status = ptowsp_device_run_graph(device, c.graph);
            assert_int_equal(status, c.at < 1000 ? PTOWSP_CANCELLED : PTOWSP_OK);
            graph_counts(c.graph, c.count, 0, 1000 - c.count);
            for (uint64_t task = 0; task < 1000; task++) {
                assert_int_equal(ptowsp_graph_task_status(c.graph, task, NULL),
                                 c.runs[task] ? PTOWSP_OK : PTOWSP_SKIPPED);
                assert_true(c.runs[task] <= 1);
            }
        }
        ptowsp_graph_destroy(c.graph);
        assert_ok(ptowsp_device_close(device));
    }
}

// -- launches -------------------------------------------------------------------------------------

typedef struct launched {
    uint8_t runs[200];
    uint32_t delay;
    uint32_t first, count;  // cores of the unit
} launched;

static ptowsp_cycles run_instance(const ptowsp_task *task, void *user) {
    launched *l = (launched *)user;
    uint64_t i = task->index;
    assert_in_range(task->lane, l->first, l->first + l->count - 1);
    device_spend((uint32_t)(mix(i) % (l->delay + 1)));
    l->runs[i]++;
    return i % 50 == 49 ? ptowsp_task_fail(PTOWSP_UNSUPPORTED) : i;
}

DEVICE_CONTEXT_TEST(device_stress__launches_run_every_instance_once) {
    uint64_t random = test_seed();
    const ptowsp_kernel_fn kernels[] = {run_instance};
    for (uint32_t i = 1; i < DEVICES; i++) {
        ptowsp_device *device = device_number(context, i);
        ptowsp_device_stats stats = ptowsp_device_result(device);
        for (uint32_t round = 0; round < ROUNDS / 10; round++) {
            launched l = {0};
            ptowsp_cycles cycles[200];
            ptowsp_launch launch = {.kernels = kernels,
                                    .kernel_count = 1,
                                    .user = &l,
                                    .unit = (ptowsp_unit)test_random_in(&random, 0, 1)};
            l.first = launch.unit == PTOWSP_UNIT_CUBE ? stats.vector_count : 0;
            l.count = launch.unit == PTOWSP_UNIT_CUBE ? stats.cube_count : stats.vector_count;
            l.delay = (uint32_t)test_random_in(&random, 0, 2000);
            launch.instance_count =
                test_random_in(&random, 0, 1) ? 0 : (uint32_t)test_random_in(&random, 1, 200);
            launch.out_cycles = cycles;
            uint32_t count = launch.instance_count ? launch.instance_count : l.count;
            assert_int_equal(ptowsp_device_launch(device, &launch),
                             count >= 50 ? PTOWSP_UNSUPPORTED : PTOWSP_OK);
            assert_true(count < 50 || ptowsp_context_error(context).index == 49);
            for (uint32_t k = 0; k < 200; k++) {
                assert_int_equal(l.runs[k], k < count);
                assert_true(k >= count || cycles[k] == (k % 50 == 49 ? 0 : k));
            }
        }
        assert_ok(ptowsp_device_close(device));
    }
}

// Runs of one task, with pauses in which threads fall asleep: wake-ups that get lost hang here.
DEVICE_CONTEXT_TEST(device_stress__short_runs_and_pauses) {
    uint64_t random = test_seed();
    for (uint32_t i = 0; i < DEVICES; i++) {
        ptowsp_device *device = device_number(context, i);
        ptowsp_graph *graph = graph_of(context);
        uint8_t runs[DEVICES];
        graph_alike(graph, (ptowsp_graph_task_desc){.fn = shape_count, .user = runs}, 1 + i);
        for (uint32_t round = 0; TEST_ROUNDS(round, ROUNDS); round++) {
            memset(runs, 0, sizeof runs);
            assert_ok(ptowsp_device_run_graph(device, graph));
            for (uint32_t task = 0; task < DEVICES; task++) {
                assert_int_equal(runs[task], task <= i);
            }
            device_spend((uint32_t)test_random_in(&random, 0, 20000));
        }
        ptowsp_graph_destroy(graph);
        assert_ok(ptowsp_device_close(device));
    }
}

// What tests of devices share: devices of several sizes, and kernels that wait.

#ifndef DEVICE_FIXTURE_H
#define DEVICE_FIXTURE_H

#include "graph_fixture.h"

static inline ptowsp_device *device_with(ptowsp_context *context, ptowsp_device_desc desc) {
    ptowsp_device *device;
    assert_ok(ptowsp_device_open(context, &desc, &device));
    return device;
}

static inline ptowsp_device *device_of(ptowsp_context *context, uint32_t scheduler_count,
                                       uint32_t vector_count, uint32_t cube_count) {
    return device_with(context, (ptowsp_device_desc){.scheduler_count = scheduler_count,
                                                     .vector_count = vector_count,
                                                     .cube_count = cube_count});
}

static inline ptowsp_context *plain_context(void) {
    return test_context(NULL);
}

static inline void *piece_of(ptowsp_device *device, const char *name, uint64_t size) {
    void *memory;
    assert_ok(ptowsp_device_alloc(device, name, size, &memory));
    return memory;
}

// Without threads there are no devices, and nothing to test but that: see device_test.c.
#ifdef PTOWSP_NO_THREADS
#define DEVICE_TEST(name) __attribute__((unused)) static void name(void **state)
#else
#define DEVICE_TEST(name) TEST(name)
#endif

// With a context; with a device that has so many AICPU threads, vector and cube cores.
#define DEVICE_CONTEXT_TEST(name)                                                                  \
    static void name##_of(ptowsp_context *context);                                                \
    DEVICE_TEST(name) {                                                                            \
        ptowsp_context *context = plain_context();                                                 \
        name##_of(context);                                                                        \
        ptowsp_context_destroy(context);                                                           \
    }                                                                                              \
    static void name##_of(__attribute__((unused)) ptowsp_context *context)

#define DEVICE_TEST_ON(schedulers, vectors, cubes, name)                                           \
    DEVICE_TEST_IN(plain_context(), schedulers, vectors, cubes, name)

#define DEVICE_TEST_IN(made, schedulers, vectors, cubes, name)                                     \
    static void name##_of(ptowsp_context *context, ptowsp_device *device);                         \
    DEVICE_TEST(name) {                                                                            \
        ptowsp_context *context = made;                                                            \
        ptowsp_device *device = device_of(context, schedulers, vectors, cubes);                    \
        name##_of(context, device);                                                                \
        assert_ok(ptowsp_device_close(device));                                                    \
        ptowsp_context_destroy(context);                                                           \
    }                                                                                              \
    static void name##_of(__attribute__((unused)) ptowsp_context *context, ptowsp_device *device)

// The same with a graph.
#define DEVICE_GRAPH_TEST(schedulers, vectors, cubes, name)                                        \
    static void name##_in(ptowsp_context *context, ptowsp_device *device, ptowsp_graph *graph);    \
    DEVICE_TEST_ON(schedulers, vectors, cubes, name) {                                             \
        ptowsp_graph *graph = graph_of(context);                                                   \
        name##_in(context, device, graph);                                                         \
        ptowsp_graph_destroy(graph);                                                               \
    }                                                                                              \
    static void name##_in(__attribute__((unused)) ptowsp_context *context, ptowsp_device *device,  \
                          ptowsp_graph *graph)

static inline void device_spend(uint32_t rounds) {
    for (volatile uint32_t i = 0; i < rounds; i++) {
    }
}

// Closes a device whose cores may come back now. On a busy machine that may take more than its limit.
static inline ptowsp_status device_close_late(ptowsp_device *device) {
    const uint64_t begin = ptowsp_clock_ns();
    ptowsp_status status;
    do {
        status = ptowsp_device_close(device);
    } while (status == PTOWSP_STUCK && ptowsp_clock_ns() - begin < UINT64_C(60000000000));
    return status;
}

#endif

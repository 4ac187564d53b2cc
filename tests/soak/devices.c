// Soak cases of devices: their threads do not start, memory is refused, launches fail and are cancelled,
// and graphs as in graphs.c run on their cores.

#include "soak.h"

enum { LAUNCHES = 6, INSTANCES = 120, PIECES = 16 };

// -- launches -------------------------------------------------------------------------------------

typedef struct launched {
    ptowsp_device *device;
    uint64_t fails, cancels;  // the instances that do so; INSTANCES: none
    uint8_t runs[INSTANCES];
} launched;

static ptowsp_cycles run_instance(const ptowsp_task *task, void *user) {
    launched *l = (launched *)user;
    l->runs[task->index]++;
    if (task->index == l->cancels) {
        ptowsp_device_cancel(l->device);
    }
    return task->index == l->fails ? ptowsp_task_fail(PTOWSP_UNSUPPORTED) : task->index + 1;
}

void soak_device_launches(ptowsp_context *context, ptowsp_device *device, uint64_t *random) {
    const ptowsp_kernel_fn kernels[] = {run_instance};
    for (int i = 0; i < LAUNCHES; i++) {
        launched l = {device, INSTANCES, INSTANCES, {0}};
        ptowsp_cycles cycles[INSTANCES];
        const soak_fault faults[] = {SOAK_BY_none, SOAK_BY_kernel, SOAK_BY_cancel};
        const soak_fault fault = faults[test_random(random) % 3];
        ptowsp_launch launch = {.kernels = kernels,
                                .kernel_count = 1,
                                .instance_count = test_random_u32(random, 1, INSTANCES),
                                .user = &l,
                                .out_cycles = cycles};
        const uint64_t at = test_random(random) % launch.instance_count;
        l.fails = fault == SOAK_BY_kernel ? at : INSTANCES;
        l.cancels = fault == SOAK_BY_cancel ? at : INSTANCES;
        const ptowsp_status status = ptowsp_device_launch(device, &launch);
        if (fault == SOAK_BY_kernel) {
            assert_int_equal(status, PTOWSP_UNSUPPORTED);
            assert_true(ptowsp_context_error(context).index == at);
        } else {
            // Cancelled by its last instance, it may have run all of them.
            assert_true(status == PTOWSP_OK ||
                        (fault == SOAK_BY_cancel && status == PTOWSP_CANCELLED));
        }
        for (uint64_t k = 0; k < launch.instance_count; k++) {
            assert_true(l.runs[k] == 1 || (l.runs[k] == 0 && status == PTOWSP_CANCELLED));
            assert_true(status == PTOWSP_CANCELLED || cycles[k] == (k == l.fails ? 0 : k + 1));
        }
        soak_count(fault, status != PTOWSP_OK);
    }
}

// -- memory ---------------------------------------------------------------------------------------

// Pieces come and go, some refused; what is copied in comes out; what stays is counted when the device
// is closed.
void soak_device_memory(ptowsp_device *device, soak_memory *memory, uint64_t *random,
                        uint64_t *out_left) {
    void *pieces[PIECES] = {0};
    uint64_t sizes[PIECES] = {0};
    uint8_t filled[512], read[512];
    *out_left = 0;
    for (int step = 0; step < 3 * PIECES; step++) {
        const uint64_t i = test_random(random) % PIECES;
        if (pieces[i]) {
            assert_ok(ptowsp_device_copy_out(device, read, pieces[i], sizes[i]));
            memset(filled, (int)i + 1, sizeof filled);
            assert_memory_equal(read, filled, sizes[i]);
            assert_ok(ptowsp_device_free(device, pieces[i]));
            pieces[i] = NULL;
            (*out_left)--;
            continue;
        }
        const bool is_refused = test_random(random) % 3 == 0;
        if (is_refused) {
            soak_refuse_memory(memory, random, 2);
        }
        sizes[i] = (uint64_t)test_random_in(random, 1, sizeof filled);
        const ptowsp_status status = ptowsp_device_alloc(device, "piece", sizes[i], &pieces[i]);
        soak_allow_memory(memory);
        soak_count(is_refused ? SOAK_BY_memory : SOAK_BY_none, status != PTOWSP_OK);
        assert_true(status == PTOWSP_OK || (is_refused && status == PTOWSP_OUT_OF_MEMORY));
        if (status != PTOWSP_OK) {
            pieces[i] = NULL;
            continue;
        }
        (*out_left)++;
        memset(filled, (int)i + 1, sizeof filled);
        assert_ok(ptowsp_device_copy_in(device, pieces[i], filled, sizes[i]));
    }
    // Some stay, which closing has to find.
    for (uint64_t i = 0; i < PIECES && test_random(random) % 8 != 0; i++) {
        *out_left -= pieces[i] != NULL;
        assert_ok(ptowsp_device_free(device, pieces[i]));
    }
}

// -- opening --------------------------------------------------------------------------------------

// A device, after ones that did not open, or did all the same.
ptowsp_device *soak_device(ptowsp_context *context, soak_memory *memory, uint64_t *random) {
    ptowsp_device *device = NULL;
    ptowsp_device_desc desc = {.scheduler_count = test_random_u32(random, 1, 3)};
    desc.vector_count = test_random_u32(random, 1, 5);
    desc.cube_count = test_random_u32(random, 1, 3);
    for (int i = 0; i < 3; i++) {
        const soak_fault faults[] = {SOAK_BY_none, SOAK_BY_memory, SOAK_BY_thread};
        const soak_fault fault = i < 2 ? faults[test_random(random) % 3] : SOAK_BY_none;
        if (fault == SOAK_BY_memory) {
            soak_refuse_memory(memory, random, 6);
        } else if (fault == SOAK_BY_thread) {
            soak_refuse_threads(random);
        }
        const ptowsp_status status = ptowsp_device_open(context, &desc, &device);
        soak_allow_memory(memory);
        soak_allow_all();
        soak_count(fault, status != PTOWSP_OK);
        assert_true(status == PTOWSP_OK ||
                    (fault == SOAK_BY_memory && status == PTOWSP_OUT_OF_MEMORY) ||
                    (fault == SOAK_BY_thread && status == PTOWSP_SYSTEM_FAILED));
        assert_true((status == PTOWSP_OK) == (device != NULL));
        if (i < 2) {
            assert_ok(ptowsp_device_close(device));
            device = NULL;
        }
    }
    return device;
}

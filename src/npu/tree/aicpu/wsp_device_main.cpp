// The entry of a device's AICPU: each of its threads calls wsp_aicpu_main. Thread 0 expands the
// program and schedules; the others schedule. See wsp_run.cpp for the same on threads of a CPU.
//
// THIS HAS NEVER RUN (see host/wsp_ascend.cpp).

#ifdef WSP_ASCEND

#include <stdio.h>

#include <vector>

#include "wsp_device.h"
#include "wsp_expand.h"
#include "wsp_scheduler.h"

namespace wsp {

namespace {

enum Stage : uint32_t { BEFORE = 0, OPEN = 1, REFUSED = 2 };

// Shared by all threads of a run: thread 0 makes it, and destroys it when the others have left.
Scheduler *the_scheduler = nullptr;

template <typename T> T *at(uint64_t address) {
    return reinterpret_cast<T *>(static_cast<uintptr_t>(address));
}

void set_stage(wsp_device_run *run, Stage stage) {
    __atomic_store_n(&run->stage, static_cast<uint32_t>(stage), __ATOMIC_RELEASE);
}

bool begin(Scheduler &scheduler, wsp_device_run *run) {
    std::vector<Core> cores;
    for (uint32_t i = 0; i < run->vector_count + run->cube_count; i++) {
        const uint32_t unit = i < run->vector_count ? PTOWSP_UNIT_VECTOR : PTOWSP_UNIT_CUBE;
        cores.push_back({at<pwsp_line>(run->lines) + i, nullptr, unit});
    }
    const SchedulerOptions options = {run->aicpu_count, run->ring_size};
    return scheduler.begin(wsp_the_program, *at<wsp_bindings>(run->bindings), cores, options);
}

void report(const Scheduler &scheduler, wsp_device_run *run) {
    const Failure &failure = scheduler.failure();
    run->index = failure.index;
    run->task_count = scheduler.task_count();
    run->in_flight_max = scheduler.in_flight_max();
    snprintf(run->text, sizeof run->text, "%s", failure.text);
    run->status = failure.status;
}

void lead(Scheduler &scheduler, wsp_device_run *run) {
    if (!begin(scheduler, run)) {
        report(scheduler, run);
        set_stage(run, REFUSED);
        return;
    }
    the_scheduler = &scheduler;
    set_stage(run, OPEN);
    scheduler.open_lines(0);
    walk(wsp_the_program, *at<wsp_bindings>(run->bindings), &scheduler);
    scheduler.stop();
    scheduler.close_lines(0);
    while (__atomic_load_n(&run->left, __ATOMIC_ACQUIRE) + 1 < run->aicpu_count) {
    }
    report(scheduler, run);
}

void follow(wsp_device_run *run, uint32_t thread) {
    uint32_t stage = BEFORE;
    while (stage == BEFORE) {
        stage = __atomic_load_n(&run->stage, __ATOMIC_ACQUIRE);
    }
    if (stage == OPEN) {
        the_scheduler->serve(thread);
        __atomic_fetch_add(&run->left, 1u, __ATOMIC_RELEASE);
    }
}

}  // namespace

}  // namespace wsp

// The argument is the address of a wsp_device_run, in memory of the device.
extern "C" __attribute__((visibility("default"))) uint32_t wsp_aicpu_main(
    const uint64_t *argument) {
    wsp_device_run *run = wsp::at<wsp_device_run>(*argument);
    const uint32_t thread = __atomic_fetch_add(&run->arrived, 1u, __ATOMIC_ACQ_REL);
    if (run->abi_version != WSP_ABI_VERSION) {
        run->status = PTOWSP_UNSUPPORTED;  // text stays empty: its offset may differ
    } else if (thread == 0) {
        wsp::Scheduler scheduler;  // a new one for each run
        wsp::lead(scheduler, run);
    } else if (thread < run->aicpu_count) {
        wsp::follow(run, thread);
    }
    return 0;
}

#endif

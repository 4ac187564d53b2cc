// The entry of a device's AICPU: each of its threads calls wsp_aicpu_main. Thread 0 expands the
// program and schedules; the others schedule. See wsp_run.cpp for the same on threads of a CPU.
//
// THIS HAS NEVER RUN (see host/wsp_ascend.cpp).

#if defined(WSP_ASCEND) && !defined(WSP_HOST)

#include <stdio.h>

#include <chrono>
#include <new>

#include "wsp_device.h"
#include "wsp_expand.h"
#include "wsp_scheduler.h"
#include "wsp_list.h"

namespace wsp {

namespace {

enum Stage : uint32_t { BEFORE = 0, OPEN = 1, REFUSED = 2 };

// Shared by all threads of a run: thread 0 makes it, and destroys it when the others have left. It
// stays if a core or a thread has not answered in time, which may still use it.
Scheduler *the_scheduler = nullptr;

template <typename T> T *at(uint64_t address) {
    return reinterpret_cast<T *>(static_cast<uintptr_t>(address));
}

void set_stage(wsp_device_run *run, Stage stage) {
    __atomic_store_n(&run->stage, static_cast<uint32_t>(stage), __ATOMIC_RELEASE);
}

// Waits until a condition holds. False: it does not within the run's limit.
template <typename Condition> bool await(const wsp_device_run *run, Condition holds) {
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(run->time_limit_ms);
    while (!holds()) {
        if (std::chrono::steady_clock::now() > end) {
            return holds();
        }
    }
    return true;
}

bool begin(Scheduler &scheduler, wsp_device_run *run) {
    List<Core> cores;
    for (uint32_t i = 0; i < run->vector_count + run->cube_count; i++) {
        const uint32_t unit = i < run->vector_count ? PTOWSP_UNIT_VECTOR : PTOWSP_UNIT_CUBE;
        cores.push_back(
            {at<pwsp_line>(run->lines) + i, unit, at<wsp_task>(run->tasks + i * WSP_TASK_STRIDE)});
    }
    const SchedulerOptions options = {run->aicpu_count, run->ring_size, run->time_limit_ms, true,
                                      nullptr,          nullptr};
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

// Cores wait until they are used or told to quit.
void refuse_cores(wsp_device_run *run) {
    for (uint32_t i = 0; i < run->vector_count + run->cube_count; i++) {
        pwsp_aicpu_quit_line(at<pwsp_line>(run->lines) + i);
    }
    set_stage(run, REFUSED);
}

void lead(wsp_device_run *run) {
    Scheduler *scheduler = new (std::nothrow) Scheduler;  // a new one for each run
    if (!scheduler || !begin(*scheduler, run)) {
        if (scheduler) {
            report(*scheduler, run);
        } else {
            snprintf(run->text, sizeof run->text, "run: out of memory");
            run->status = PTOWSP_OUT_OF_MEMORY;
        }
        refuse_cores(run);
        delete scheduler;
        return;
    }
    the_scheduler = scheduler;
    set_stage(run, OPEN);
    scheduler->open_lines(0);
    walk(wsp_the_program, *at<wsp_bindings>(run->bindings), scheduler);
    scheduler->stop();
    scheduler->close_lines(0);
    const bool have_left = await(
        run, [=] { return __atomic_load_n(&run->left, __ATOMIC_ACQUIRE) + 1 >= run->aicpu_count; });
    report(*scheduler, run);
    if (!have_left && run->status == PTOWSP_OK) {
        snprintf(run->text, sizeof run->text,
                 "device: of %u threads of the AICPU, %u have not ended within %u ms",
                 static_cast<unsigned>(run->aicpu_count),
                 static_cast<unsigned>(run->aicpu_count - 1 - run->left),
                 static_cast<unsigned>(run->time_limit_ms));
        run->status = PTOWSP_SYSTEM_FAILED;
    }
    if (have_left && !scheduler->has_lost()) {
        delete scheduler;
    }
}

void follow(wsp_device_run *run, uint32_t thread) {
    uint32_t stage = BEFORE;
    await(run, [&] {
        stage = __atomic_load_n(&run->stage, __ATOMIC_ACQUIRE);
        return stage != BEFORE;
    });
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
        wsp::lead(run);
    } else if (thread < run->aicpu_count) {
        wsp::follow(run, thread);
    }
    return 0;
}

#endif

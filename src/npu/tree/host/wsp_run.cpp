// Threads stand in for the device: one for each core, and one for each AICPU thread except the
// first, which is the caller's. They live as long as the run.

#ifndef WSP_ASCEND

#include "wsp_run.h"

#include <pthread.h>

#include "wsp_expand.h"
#include "wsp_worker.h"

namespace wsp {

namespace {

struct alignas(64) Line {
    pwsp_line line;
};

// The data of a run's thread.
struct Thread {
    Scheduler *scheduler;
    Core core;
    uint32_t index;  // of the AICPU thread, or of the core
    Spans spans;
    pthread_t id;
};

void *aicpu_main(void *arg) {
    const Thread *thread = static_cast<const Thread *>(arg);
    thread->scheduler->serve(thread->index);
    return nullptr;
}

void *core_main(void *arg) {
    const Thread *thread = static_cast<const Thread *>(arg);
    work(thread->core.line, thread->index, thread->core.bell,
         thread->scheduler->bell_of(thread->index), thread->spans);
    return nullptr;
}

// Starts threads up to the first failure; returns how many.
size_t start(std::vector<Thread> *threads, void *(*thread_main)(void *)) {
    for (size_t i = 0; i < threads->size(); i++) {
        if (pthread_create(&(*threads)[i].id, nullptr, thread_main, &(*threads)[i]) != 0) {
            return i;
        }
    }
    return threads->size();
}

void join(const std::vector<Thread> &threads, size_t count) {
    for (size_t i = 0; i < count; i++) {
        pthread_join(threads[i].id, nullptr);
    }
}

}  // namespace

ptowsp_status run_program(const wsp_program &program, Bindings *bindings,
                          const wsp_runner_options &options, wsp_runner_result *out_result) {
    const SchedulerOptions chosen = {options.aicpu_count ? options.aicpu_count : 1,
                                     options.ring_size ? options.ring_size : 4096,
                                     0,       // a thread cannot be ended
                                     false};  // which is all cores of a block
    const uint32_t vector_count = core_count_of(program, PTOWSP_UNIT_VECTOR, options);
    const uint32_t core_count = vector_count + core_count_of(program, PTOWSP_UNIT_CUBE, options);
    const Spans spans = {options.spans, options.spans ? options.span_capacity : 0};
    std::vector<Line> lines(core_count, Line());
    std::vector<Bell> bells(core_count);
    std::vector<Core> cores;
    std::vector<Thread> core_threads, aicpu_threads;
    Scheduler scheduler;
    for (uint32_t i = 0; i < core_count; i++) {
        const uint32_t unit = i < vector_count ? PTOWSP_UNIT_VECTOR : PTOWSP_UNIT_CUBE;
        cores.push_back({&lines[i].line, &bells[i], unit});
        core_threads.push_back({&scheduler, cores[i], i, spans, pthread_t()});
    }
    for (uint32_t i = 1; i < chosen.aicpu_count; i++) {
        aicpu_threads.push_back({&scheduler, Core(), i, spans, pthread_t()});
    }
    if (scheduler.begin(program, bindings->table(), cores, chosen)) {
        // AICPU threads wait for their cores; cores wait until they are used or told to quit.
        const size_t core_started = start(&core_threads, core_main);
        const size_t aicpu_started =
            core_started == core_count ? start(&aicpu_threads, aicpu_main) : 0;
        if (core_started == core_count && aicpu_started == aicpu_threads.size()) {
            scheduler.open_lines(0);
            walk(program, bindings->table(), &scheduler);
        } else {
            scheduler.fail(PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX, "run: a thread was refused");
            scheduler.finish();
        }
        scheduler.stop();
        join(aicpu_threads, aicpu_started);
        for (uint32_t i = 0; i < chosen.aicpu_count; i++) {
            scheduler.close_lines(i);
        }
        join(core_threads, core_started);
    }
    out_result->task_count = scheduler.task_count();
    out_result->in_flight_max = scheduler.in_flight_max();
#if WSP_HAS_CLOCK
    out_result->makespan_cycles = scheduler.clock().stats().makespan_cycles;
#endif
    if (scheduler.failure().status != PTOWSP_OK) {
        bindings->failure = scheduler.failure();
    }
    return scheduler.failure().status;
}

}  // namespace wsp

#endif

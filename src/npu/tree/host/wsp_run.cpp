// Runs a program with the scheduler in this process, on its lines. The other end of these is a thread
// for each core, which stands in for a device's; or, if the host is the driver, a thread for each
// unit, which launches kernels (wsp_launch.h). Threads live as long as the run. The first of the
// AICPU's is the caller's.

#include "wsp_run.h"

#include <pthread.h>

#include "wsp_expand.h"
#include "wsp_launch.h"
#include "wsp_worker.h"

namespace wsp {

#if !defined(WSP_ASCEND) || defined(WSP_HOST)

namespace {

struct alignas(64) Line {
    pwsp_line line;
};

// The data of a run's thread.
struct Thread {
    Scheduler *scheduler;
    uint32_t index;  // of the AICPU thread, or of the core
    Stream *stream;  // of launches for the core's unit, or null
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
    pwsp_core *core = thread->scheduler->core(thread->index);
    if (thread->stream) {
        play_cores(*thread->scheduler, core->unit, *thread->stream, thread->spans);
        return nullptr;
    }
#ifndef WSP_ASCEND
    work(core, thread->spans);
#endif
    return nullptr;
}

// Starts threads up to the first failure; returns how many.
size_t start(List<Thread> *threads, void *(*thread_main)(void *)) {
    for (size_t i = 0; i < threads->size(); i++) {
        if (pthread_create(&(*threads)[i].id, nullptr, thread_main, &(*threads)[i]) != 0) {
            return i;
        }
    }
    return threads->size();
}

void join(const List<Thread> &threads, size_t count) {
    for (size_t i = 0; i < count; i++) {
        pthread_join(threads[i].id, nullptr);
    }
}

}  // namespace

ptowsp_status run_here(const wsp_program &program, Bindings *bindings,
                       const wsp_runner_options &options, const Launches &launches,
                       wsp_runner_result *out_result) {
    const SchedulerOptions chosen = {options.aicpu_count ? options.aicpu_count : 1,
                                     options.ring_size ? options.ring_size : 4096,
                                     0,      // a thread cannot be ended
                                     false,  // the cube core has all of a task of MIX
                                     launches.fetch,
                                     launches.user};
    const bool is_driven = launches.streams[0] != nullptr;
    const uint32_t vector_count = core_count_of(program, PTOWSP_UNIT_VECTOR, options);
    const uint32_t core_count = vector_count + core_count_of(program, PTOWSP_UNIT_CUBE, options);
    const Spans spans = {options.spans, options.spans ? options.span_capacity : 0};
    List<Line> lines(core_count, Line());
    List<Core> cores;
    List<Thread> core_threads, aicpu_threads;
    Scheduler scheduler;
    for (uint32_t i = 0; i < core_count; i++) {
        const uint32_t unit = i < vector_count ? PTOWSP_UNIT_VECTOR : PTOWSP_UNIT_CUBE;
        const uint32_t first = i < vector_count ? 0 : vector_count;
        cores.push_back({&lines[i].line, unit, nullptr});
        if (!is_driven || i == first) {
            core_threads.push_back({&scheduler, i, launches.streams[unit], spans, pthread_t()});
        }
    }
    for (uint32_t i = 1; i < chosen.aicpu_count; i++) {
        aicpu_threads.push_back({&scheduler, i, nullptr, spans, pthread_t()});
    }
    if (scheduler.begin(program, bindings->table(), cores, chosen)) {
        for (uint32_t i = 0; is_driven && i < core_count; i++) {  // a launcher plays several cores
            scheduler.core(i)->sleeper = &scheduler.core(i < vector_count ? 0 : vector_count)->own;
        }
        // AICPU threads wait for their cores; cores wait until they are used or told to quit.
        const size_t core_started = start(&core_threads, core_main);
        const bool has_cores = core_started == core_threads.size();
        const size_t aicpu_started = has_cores ? start(&aicpu_threads, aicpu_main) : 0;
        if (has_cores && aicpu_started == aicpu_threads.size()) {
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

#endif

#ifndef WSP_ASCEND

ptowsp_status run_program(const wsp_program &program, Bindings *bindings,
                          const wsp_runner_options &options, wsp_runner_result *out_result) {
    ThreadStream streams[2];
    Launches launches = Launches();
    for (uint32_t i = 0; i < 2 && options.driver == PTOWSP_DRIVER_HOST; i++) {
        launches.streams[i] = &streams[i];
    }
    return run_here(program, bindings, options, launches, out_result);
}

#endif

}  // namespace wsp

// Waves of launches: see wsp_launch.h.

#include "wsp_launch.h"

#include <algorithm>
#include <cstring>

namespace wsp {

// -- on this thread -------------------------------------------------------------------------------

#ifndef WSP_ASCEND

// Tasks are copied as for a device, so that a launch sees nothing else.
bool ThreadStream::start(uint32_t kernel, wsp_task *const *tasks, uint32_t count) {
    struct alignas(64) Element {
        unsigned char bytes[WSP_TASK_STRIDE];
    };
    const wsp_launcher launch = wsp_launcher_of(kernel);
    List<Element> elements(count);
    for (uint32_t i = 0; i < count; i++) {
        std::memcpy(elements[i].bytes, tasks[i], sizeof(wsp_task));
    }
    if (!launch ||
        launch(count, nullptr, reinterpret_cast<uintptr_t>(elements.data()), 0, 0) != 0) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        std::memcpy(tasks[i], elements[i].bytes, sizeof(wsp_task));
    }
    return true;
}

#endif

// -- waves ----------------------------------------------------------------------------------------

namespace {

struct Given {
    pwsp_core *core;
    wsp_task *task;
};

class Launcher {
  public:
    Launcher(Scheduler &scheduler, uint32_t unit, Stream &stream, Spans spans);

    // Takes all tasks from the lines. False: all cores have quit.
    bool look(List<Given> *wave);
    // The same, and waits until they have something.
    bool await(List<Given> *wave);
    void run(List<Given> *wave);
    void break_stream() {
        is_broken_ = true;
    }

  private:
    bool launch(const List<Given> &wave);

    List<pwsp_core *> cores_;
    Stream &stream_;
    Spans spans_;
    List<bool> has_begun_;
    bool is_broken_ = false;
};

// All these cores sleep where the first one does.
Launcher::Launcher(Scheduler &scheduler, uint32_t unit, Stream &stream, Spans spans)
    : stream_(stream), spans_(spans) {
    for (uint32_t i = 0; i < scheduler.core_count(); i++) {
        if (scheduler.core(i)->unit == unit) {
            cores_.push_back(scheduler.core(i));
        }
    }
    PTOWSP_ASSERT(!cores_.empty());
    has_begun_.resize(cores_.size());
}

bool Launcher::look(List<Given> *wave) {
    bool is_any = false;
    for (size_t i = 0; i < cores_.size(); i++) {
        pwsp_core *core = cores_[i];
        if (pwsp_core_must_quit(core->line)) {
            continue;
        }
        is_any = true;
        if (!has_begun_[i]) {
            has_begun_[i] = pwsp_core_may_begin(core->line);
            if (has_begun_[i]) {
                pwsp_core_begin(core->line, core->index);
                pwsp_core_wake_aicpu(core);
            }
        } else if (const uint64_t task = pwsp_core_poll(core->line)) {
            wave->push_back({core, reinterpret_cast<wsp_task *>(static_cast<uintptr_t>(task))});
        }
    }
    return is_any;
}

bool Launcher::await(List<Given> *wave) {
    pwsp_core *first = cores_[0];
    bool is_any = look(wave);
    while (is_any && wave->empty()) {
        if (!pwsp_cores_spin(first->aicpu->all, &first->patience)) {
            pwsp_sleeper_begin(first->sleeper, PWSP_AWAIT_ANY);
            is_any = look(wave);
            pwsp_sleeper_end(first->sleeper, !is_any || !wave->empty(), 0);
        } else {
            is_any = look(wave);
        }
    }
    return is_any;
}

// Each kernel once, in the order of kernels.
bool Launcher::launch(const List<Given> &wave) {
    List<wsp_task *> tasks;
    for (const Given &given : wave) {
        tasks.push_back(given.task);
    }
    for (size_t begin = 0, end; begin < tasks.size(); begin = end) {
        const uint32_t kernel = tasks[begin]->kernel;
        for (end = begin; end < tasks.size() && tasks[end]->kernel == kernel; end++) {
        }
        if (!stream_.start(kernel, tasks.data() + begin, static_cast<uint32_t>(end - begin))) {
            return false;
        }
    }
    return stream_.wait();
}

void Launcher::run(List<Given> *wave) {
    std::stable_sort(wave->begin(), wave->end(), [](const Given &a, const Given &b) {
        return a.task->kernel < b.task->kernel;
    });
    const uint64_t begin = ptowsp_clock_ns();
    is_broken_ = is_broken_ || !launch(*wave);
    const uint64_t end = ptowsp_clock_ns();
    for (const Given &given : *wave) {
        wsp_task &task = *given.task;
        if (is_broken_) {
            task.status = PTOWSP_SYSTEM_FAILED;
        }
        if (task.index < spans_.capacity) {
            ptowsp_span &span = spans_.spans[task.index];
            span.lane = given.core->index;
            span.kind = task.kernel;
            span.begin = begin;
            span.end = end;
        }
        pwsp_core_report(given.core);
    }
    wave->clear();
}

}  // namespace

void play_cores(Scheduler &scheduler, uint32_t unit, Stream &stream, Spans spans) {
    Launcher launcher(scheduler, unit, stream, spans);
    List<Given> wave;
    if (!stream.begin()) {
        launcher.break_stream();
    }
    while (launcher.await(&wave)) {
        launcher.run(&wave);
    }
}

}  // namespace wsp

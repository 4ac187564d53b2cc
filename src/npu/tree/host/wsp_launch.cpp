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
    uint32_t core;
    wsp_task *task;
};

class Launcher {
  public:
    Launcher(Scheduler &scheduler, const List<Core> &cores, uint32_t unit, Stream &stream,
             Spans spans)
        : scheduler_(scheduler), cores_(cores), unit_(unit), stream_(stream), spans_(spans),
          has_begun_(cores.size()) {
    }

    // Takes what the lines have. False: all cores have quit.
    bool look(List<Given> *wave);
    void run(List<Given> *wave);
    void break_stream() {
        is_broken_ = true;
    }

  private:
    bool launch(const List<Given> &wave);

    Scheduler &scheduler_;
    const List<Core> &cores_;
    uint32_t unit_;
    Stream &stream_;
    Spans spans_;
    List<bool> has_begun_;
    bool is_broken_ = false;
};

bool Launcher::look(List<Given> *wave) {
    bool is_any = false;
    for (uint32_t i = 0; i < cores_.size(); i++) {
        pwsp_line *line = cores_[i].line;
        if (cores_[i].unit != unit_ || pwsp_core_must_quit(line)) {
            continue;
        }
        is_any = true;
        if (!has_begun_[i]) {
            has_begun_[i] = pwsp_core_may_begin(line);
            if (has_begun_[i]) {
                pwsp_core_begin(line, i);
                scheduler_.bell_of(i)->ring();
            }
        } else if (const uint64_t task = pwsp_core_poll(line)) {
            wave->push_back({i, reinterpret_cast<wsp_task *>(static_cast<uintptr_t>(task))});
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
            span.lane = given.core;
            span.kind = task.kernel;
            span.begin = begin;
            span.end = end;
        }
        pwsp_core_done(cores_[given.core].line);
        scheduler_.bell_of(given.core)->ring();
    }
    wave->clear();
}

}  // namespace

void play_cores(Scheduler &scheduler, const List<Core> &cores, uint32_t unit, Stream &stream,
                Spans spans) {
    Launcher launcher(scheduler, cores, unit, stream, spans);
    List<Given> wave;
    Bell *bell = nullptr;
    for (const Core &core : cores) {
        bell = core.unit == unit ? core.bell : bell;
    }
    PTOWSP_ASSERT(bell);
    if (!stream.begin()) {
        launcher.break_stream();
    }
    for (;;) {
        const uint32_t ticket = bell->ticket();
        if (!launcher.look(&wave)) {
            return;
        }
        if (wave.empty()) {
            bell->wait(ticket);
        } else {
            launcher.run(&wave);
        }
    }
}

}  // namespace wsp

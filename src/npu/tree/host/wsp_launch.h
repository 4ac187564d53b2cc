// The host as the driver of a device: it expands the program and schedules its tasks, and launches
// their kernels itself. No AICPU takes part, and no core runs for longer than a task.
//
//      scheduler (thread 0)    gives ready tasks to the lines of cores, as on an AICPU
//      launchers, one a unit   take all tasks of their unit's lines: a wave. Start each kernel of it
//                              once, for all of its tasks; wait for the stream; report them done
//
// So a wave has all tasks that are ready, but at most as many as the run has cores.

#ifndef WSP_LAUNCH_H
#define WSP_LAUNCH_H

#include "wsp_scheduler.h"
#include "wsp_worker.h"

namespace wsp {

// Where kernels are launched: a stream of a device, or this thread.
class Stream {
  public:
    virtual ~Stream() = default;
    // Called by the launcher's thread before all others.
    virtual bool begin() {
        return true;
    }
    // Starts a kernel for tasks that wait for nothing, and stay where they are until wait returns.
    virtual bool start(uint32_t kernel, wsp_task *const *tasks, uint32_t count) = 0;
    // Waits for the end of all that was started; results are then in the tasks.
    virtual bool wait() = 0;
};

// A stream that executes tasks on the calling thread.
class ThreadStream final : public Stream {
  public:
    bool start(uint32_t kernel, wsp_task *const *tasks, uint32_t count) override;
    bool wait() override {
        return true;
    }
};

// Plays the cores of a unit, on one thread, until all must quit. If the stream fails, its tasks
// do: SYSTEM_FAILED.
void play_cores(Scheduler &scheduler, uint32_t unit, Stream &stream, Spans spans);

}  // namespace wsp

#endif

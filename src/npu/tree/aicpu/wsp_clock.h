// The simulated clock of a tree that runs on a CPU. The device has none.
//
// Threads that stand in for an NPU take any amount of real time. The time of the program on its
// lanes follows from its schedule and from the cycles of its tasks alone. Clock computes it with
// the library's simulated time (pwsp_timeline), so it and ptowsp_run_execute agree to the cycle.
// Its calls follow the program, in the order of the program:
//
//      begin   { task | mark | slot_load | pipeline }   end   stats
//
// whatever the order in which threads have run the tasks: calls are made as tasks retire. Nothing of a
// tree's schedule needs the number of tasks beforehand.
//
// Errors   A call returns false when the schedule cannot proceed, as ptowsp_run_execute would report,
//          or when memory is out. After that all calls do nothing and return false, except end,
//          which completes the statistics of the tasks simulated so far.
// Threads  It has none, and no locks: one call at a time.

#ifndef WSP_CLOCK_H
#define WSP_CLOCK_H

#ifndef WSP_HAS_CLOCK
#ifdef WSP_ASCEND
#define WSP_HAS_CLOCK 0
#else
#define WSP_HAS_CLOCK 1
#endif
#endif

#include "wsp_core.h"
#include "wsp_list.h"

namespace wsp {

#if WSP_HAS_CLOCK

// The statistics of a pipeline's processes, on a time of their own.
struct PipelineSums {
    uint64_t busy_cycles, channel_cycles;  // of tasks, and waited at channels
    uint64_t slot_load_count;
};

class Clock {
  public:
    Clock() = default;
    ~Clock();
    Clock(const Clock &) = delete;
    Clock &operator=(const Clock &) = delete;

    // Begins a run at time 0. The data that `timed` points to, and the tensors, live as long as the run.
    bool begin(const pwsp_timed &timed, const pwsp_bound_tensor *tensors);

    bool mark(const pwsp_mark &mark);
    bool task(const pwsp_arrival &task);
    bool slot_load(const pwsp_tile_at &element);
    // Its first task, end task and run are determined here.
    bool pipeline(const pwsp_pipeline_arrival &pipeline, const PipelineSums &sums);

    // The last call of a run: simulates until all tasks have ended.
    bool end();

    // After end. memory_bytes is the memory of the clock; lanes are in the order of the library.
    ptowsp_run_stats stats() const {
        return time_.sim.stats;
    }
    const ptowsp_lane_stats *lanes() const {  // lives until begin
        return time_.sim.lane_stats;
    }
    uint64_t pipeline_start(uint32_t pipeline) const {  // of its last run
        return time_.sim.starts[pipeline].time;
    }

    ptowsp_status status() const {
        return time_.sim.status;
    }
    const char *error() const {  // "" without an error
        return time_.sim.text;
    }
    uint64_t error_index() const {  // the task that it is about, or PTOWSP_NO_INDEX
        return time_.sim.index;
    }

  private:
    bool good() const {
        return is_begun_ && time_.sim.status == PTOWSP_OK;
    }

    pwsp_timeline time_ = pwsp_timeline();
    pwsp_timed timed_ = pwsp_timed();
    bool is_begun_ = false;
    uint32_t depth_ = 0;  // open scopes
    PipelineSums sums_ = {0, 0, 0};
    List<uint32_t> run_counts_;  // by pipeline
};

#endif

}  // namespace wsp

#endif

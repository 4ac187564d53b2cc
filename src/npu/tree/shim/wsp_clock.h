// The simulated clock of a tree that runs on a CPU.
//
// Threads that stand in for an NPU take whatever time they take. How long the program takes on its
// lanes follows from its schedule and from the cycles of its tasks alone: Clock works it out by the
// rules of simulated time that ptowsp.h tells, with the code that ptowsp_run_execute has for them,
// so both agree to the cycle. It is told what the program does, in the order of the program:
//
//      begin   { task | scope_begin ... scope_end | reset | slot_load | pipeline }   end   stats
//
// whatever the order in which threads have run the tasks: tasks are told when they retire.
//
// Errors   A call returns false when the schedule cannot go on, as ptowsp_run_execute would say,
//          or when memory is out. After that calls do nothing and return false, but for end,
//          which completes the statistics of what has been simulated.
// Threads  It has none, and no locks: one call at a time.

#ifndef WSP_CLOCK_H
#define WSP_CLOCK_H

#include "ptowsp.h"

namespace wsp {

// Where a tensor lies, with the dimensions before rows and columns; those it has not have size 1
// and stride 0. Which tensors share memory is found from that. Strides are in elements.
struct ClockTensor {
    uint64_t base;          // address of the element with indices 0
    uint32_t element_size;  // in bytes; 0: nothing uses the tensor
    int64_t lead_shape[PTOWSP_TENSOR_RANK_MAX - 2];
    int64_t lead_strides[PTOWSP_TENSOR_RANK_MAX - 2];
    int64_t rows, cols, row_stride, col_stride;
    bool is_written;  // by a task
    bool is_loaded;   // from it by a slot
};

// What is the same in all runs of a program.
struct ClockProgram {
    const ptowsp_schedule *schedule;  // with its defaults filled in; keys are not looked at
    uint32_t lane_count;              // of all pools
    bool is_priority_signed;          // the priority key is i64
    bool has_streams;                 // the schedule has a stream key
    uint32_t edge_count;              // explicit edges, from 0
    uint32_t scope_depth;             // scopes in one another at most, with that around all
    uint32_t pipeline_count;
};

// One access of a task. With rows 0 it is the whole of its tensor.
struct ClockTile {
    uint32_t tensor;  // its place among those that begin was given
    uint32_t rows, cols;
    int64_t lead;      // elements from the tensor's base to the matrix of the leading indices
    int64_t row, col;  // of the tile in that matrix
    bool is_read, is_written;
    bool is_loaded;  // of a pipeline: its processes load slots from it
};

// Pointers are followed before the call returns.
struct ClockTask {
    uint64_t cycles;
    uint64_t dispatch_key, priority_key, stream_key;  // 0 where the schedule has none
    ptowsp_unit unit;
    uint32_t node;  // its place in the program, for texts of errors
    const ClockTile *tiles;
    uint32_t tile_count;
    const uint32_t *after;  // explicit edges that end here
    uint32_t after_count;
    const uint32_t *before;  // explicit edges that begin here
    uint32_t before_count;
};

// A run of a pipeline, which has been simulated on a time of its own.
struct ClockPipeline {
    ClockTask whole;    // cycles: its makespan. tiles: each tensor that its processes access, whole
    uint32_t pipeline;  // from 0
    uint64_t task_count;      // of its processes
    uint64_t busy_cycles;     // their cycles, in sum
    uint64_t channel_cycles;  // what processes waited at channels, in sum
    uint64_t slot_load_count;
};

struct ClockState;

class Clock {
  public:
    Clock() = default;
    ~Clock();
    Clock(const Clock &) = delete;
    Clock &operator=(const Clock &) = delete;

    // A new run, from time 0. What program points to has to live as long as the run.
    bool begin(const ClockProgram &program, const ClockTensor *tensors, uint32_t tensor_count);

    bool scope_begin(bool is_parallel);
    bool scope_end();
    bool reset(const uint32_t *edges, uint32_t count);  // an iteration begins: edges are forgotten
    bool task(const ClockTask &task);
    bool slot_load(const ClockTile &element);
    bool pipeline(const ClockPipeline &pipeline);

    // All has been told: goes on until all tasks have ended.
    bool end();

    // After end. memory_bytes is what the clock holds; lanes are in the order of the library.
    ptowsp_run_stats stats() const;
    const ptowsp_lane_stats *lanes() const;            // lives until begin
    uint64_t pipeline_start(uint32_t pipeline) const;  // of its last run

    ptowsp_status status() const;
    const char *error() const;     // "" if there is none
    uint64_t error_index() const;  // the task that it is about, or PTOWSP_NO_INDEX

  private:
    ClockState *state_ = nullptr;
};

}  // namespace wsp

#endif

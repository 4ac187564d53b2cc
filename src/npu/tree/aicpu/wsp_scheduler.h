// Tasks of a program, from their expansion to the cores and back.
//
//      expander --submit--> pwsp_issue --ready--> pwsp_cores --give--> lines of cores
//      (thread 0)              |                                           |
//                              |  in program order                         v
//      clock, errors <--retire-+<------------------------------------- complete
//
// The library provides both halves, as for its own runs, in wsp_core.h: pwsp_issue the dependences, the
// ring of tasks in flight and their retirement; pwsp_cores the queues, AICPU threads, blocks and
// lost cores. This file adds the parts of a tree: tasks as cores read them, the choice of a core,
// failures, and the clock. All memory is taken when a run begins.
//
// The ring holds ring_size tasks, and no more than the schedule's window if that stalls; when it is
// full the expander waits until the oldest has retired.
//
// Errors   The first in program order decides. After a failure later tasks do not begin. Earlier ones
//          do, because they may fail too; running tasks finish.
// Threads  Thread 0 expands, retires and advances the clock. Cores belong to threads 1, 2, ...; without
//          such threads to thread 0, which serves them whenever it submits or waits.

#ifndef WSP_SCHEDULER_H
#define WSP_SCHEDULER_H

#include "wsp_core.h"

#include <deque>
#include <memory>
#include <mutex>

#include "wsp_abi.h"
#include "wsp_clock.h"
#include "wsp_list.h"
#include "wsp_walk.h"

namespace wsp {

constexpr uint32_t AICPU_COUNT_MAX = 16, CORE_COUNT_MAX = 72, RING_SIZE_MAX = 65536;

// A core, as the caller passes it. Vector cores come first.
struct Core {
    pwsp_line *line;
    uint32_t unit;
    // Where the core has a copy of its task, in memory that it can read: on a device the AICPU's own is
    // not. WSP_TASK_STRIDE bytes; null: it has the task itself.
    wsp_task *room;
};

// The lanes of the schedule that tasks of a unit have, at least 1.
inline uint32_t lane_count_of(const ptowsp_schedule &schedule, uint32_t unit) {
    const uint32_t count = schedule.pools != PTOWSP_POOLS_BY_UNIT ? schedule.lane_count
                           : unit == PTOWSP_UNIT_VECTOR           ? schedule.vector_lane_count
                                                                  : schedule.cube_lane_count;
    return count ? count : 1;
}

struct SchedulerOptions {
    uint32_t aicpu_count;  // 1 .. AICPU_COUNT_MAX
    uint32_t ring_size;    // 1 .. RING_SIZE_MAX
    // How long a core may take to poll, and to end a task. A core that takes longer is lost: its task
    // fails with the core's name, later tasks are skipped, and the run ends. 0: no limit.
    uint32_t time_limit_ms;
    // Each core of a block runs a part of a task of MIX, in its room; else the cube core all.
    bool has_parts;
    // Brings the bytes of an element from where cores have written it, before a slot is loaded; null:
    // they are here. False: it cannot.
    bool (*fetch)(void *user, const void *data, size_t size);
    void *user;
};

class Scheduler final : public Target {
  public:
    Scheduler() = default;
    ~Scheduler() override;

    // The bindings have been checked. Nothing runs yet. False with an error.
    bool begin(const wsp_program &program, const wsp_bindings &bindings, const List<Core> &cores,
               const SchedulerOptions &options);

    // Opens the lines of a thread's cores, and waits until they poll; closes them.
    void open_lines(uint32_t thread) {
        pwsp_aicpu_open(&cores_.aicpus[thread], cores_.desc.time_limit_ns);
    }
    void close_lines(uint32_t thread) {
        pwsp_aicpu_close(&cores_.aicpus[thread]);
    }

    // A thread except 0: schedules until stop.
    void serve(uint32_t thread) {
        open_lines(thread);
        pwsp_aicpu_serve(&cores_.aicpus[thread]);
        close_lines(thread);
    }
    void stop() {
        pwsp_cores_finish(&cores_);
    }
    // A lost core may still write to its task: then the scheduler must stay.
    bool has_lost() const {
        return pwsp_load_acquire(&cores_.lost_count) > 0;
    }
    uint32_t core_count() const {
        return cores_.core_count;
    }
    pwsp_core *core(uint32_t i) {
        return &cores_.cores[i];
    }

    // The following are thread 0's. A walk that fails gives the reason; earlier tasks still run.
    bool good() const override;
    void fail(ptowsp_status status, uint64_t index, const char *text) override;
    const Failure &walk_failure() const {
        return walk_failure_;
    }
    Submission *open() override;
    void submit(Submission *submission) override;
    void scope_begin(bool is_parallel) override;
    void scope_end() override;
    void reset(const uint32_t *edges, uint32_t count) override;
    bool await_element(const Region &element) override;
    // For a processor without access to data that cores have written. False after a failure.
    bool fetch(const Region &element);

    // Returns when all submitted tasks have retired. False after a failure.
    bool settle();

    // The end of the program: settles, and ends the clock. failure() has the first failure.
    bool finish();

    const Failure &failure() const {
        return failure_;
    }
    uint64_t task_count() const {
        return next_index_;
    }
    uint32_t in_flight_max() const {
        return issue_.task_count_max;
    }

    // For pipelines, after settle(), from any thread: runs a task of the caller's on a core of its
    // unit, and returns when it is done, with its cycles. It waits for no other task.
    ptowsp_status run_now(Submission *submission, uint64_t *out_cycles);
    const wsp_program &program() const {
        return *program_;
    }
#if WSP_HAS_CLOCK
    // Reports a finished pipeline, after settle(). False, and its status, are a failure of the run.
    Clock &clock() {
        return clock_;
    }
    bool check_clock(bool is_good);
#endif

  private:
    static constexpr uint32_t NONE = PWSP_CORES_NONE;
    static constexpr uint32_t DIRECT_MAX = 4 * CORE_COUNT_MAX;

    // Callbacks of the issue; and of the cores, whose entries are places of its ring, followed by tasks
    // of processes.
    static void ready(void *self, uint32_t by, uint32_t place);
    static void help(void *self, uint32_t ticket);
    static bool retire(void *self, const pwsp_entry *entry);
    static pwsp_need need_of(void *self, uint32_t entry);
    static bool may_begin(void *self, uint32_t entry);
    static bool take(void *self, uint32_t entry, uint32_t *out_part);
    static bool is_wanted(void *self, uint32_t entry);
    static void pass(void *self, const pwsp_turn *turn, uint32_t by, bool is_lost);
    static uint64_t give(void *self, const pwsp_turn *turn, uint32_t core);
    static void lose(void *self, const pwsp_turn *turn, uint32_t core);
    static void done(void *self, const pwsp_turn *turn, uint32_t by, bool is_lost);

    static Submission *submission_of(const pwsp_entry *entry) {
        return reinterpret_cast<Submission *>(static_cast<uintptr_t>(*pwsp_entry_words(entry)));
    }
    uint32_t place_count() const {
        return issue_.reorder.place_mask + 1;
    }
    Submission &at(uint32_t entry) const {
        return entry < place_count() ? *submission_of(pwsp_reorder_at(&issue_.reorder, entry))
                                     : *direct_[entry - place_count()];
    }
    ptowsp_unit unit_of(const Submission &submission) const {
        return static_cast<ptowsp_unit>(program_->kernels[submission.task.kernel].unit);
    }
    bool begin_issue();
    bool begin_cores();

    uint32_t home_of(const Submission &submission);
    void complete(Submission *submission, uint32_t by);
    void mark(pwsp_mark_kind kind);
    bool retire(const pwsp_entry &entry);
    uint32_t enter_direct(Submission *submission);
    void stop_behind(uint64_t number);
    void fail_task(const Submission &submission);
    const char *place_text(uint32_t place) const {
        return place < program_->place_count ? program_->places[place] : "";
    }

    const wsp_program *program_ = nullptr;
    const pwsp_bound_tensor *tensors_ = nullptr;
    pwsp_policy policy_ = pwsp_policy();
    SchedulerOptions options_ = SchedulerOptions();
    List<Core> given_;
    pwsp_cores cores_ = pwsp_cores();
    List<pwsp_ready_link> links_;  // by entry
    uint64_t next_begin_ = 0;      // in order: the task that may begin; under the lock of cores_

    // Protects the fields up to the next empty line.
    std::mutex mutex_;
    uint64_t failed_at_ = UINT64_MAX;  // atomic: the first task known to have failed, by number
    uint32_t has_failed_ = 0;          // atomic
    uint64_t next_index_ = 0;
    Submission *direct_[DIRECT_MAX] = {};
    Failure failure_, walk_failure_;

    // Thread 0's.
    Facts facts_;
    pwsp_issue issue_ = pwsp_issue();
    uint64_t task_number_ = 0;
    std::deque<Submission> slots_;              // by number, made as they are needed
    Submission scratch_;                        // after a failure
    std::deque<List<uint32_t>> resets_;         // of edges, in flight
    std::deque<Region> elements_;               // of slot loads, in flight
    uint64_t pool_counts_[PWSP_POOL_MAX] = {};  // for round robin
#if WSP_HAS_CLOCK
    Clock clock_;
#endif
};

// Walks a program, and returns when all its tasks are done. False with the scheduler's failure. The
// slots of the bindings then have their final values.
bool walk(const wsp_program &program, const wsp_bindings &bindings, Scheduler *scheduler);

}  // namespace wsp

#endif

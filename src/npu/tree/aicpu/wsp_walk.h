// A walk's tasks on their way to a target: the scheduler of this tree, a process of a pipeline, or
// another runtime. Also the facts about a program that order its tasks.

#ifndef WSP_WALK_H
#define WSP_WALK_H

#include "wsp_core.h"

#include <memory>

#include "wsp_abi.h"
#include "wsp_list.h"

namespace wsp {

enum Access { READ = PWSP_TILE_READ, WRITE = PWSP_TILE_WRITTEN, READ_WRITE = READ | WRITE };

// A tile of a tensor: row and col are in the matrix `lead` elements from its start.
typedef pwsp_tile_at Region;

// An error; the first one is kept.
struct Failure : pwsp_error {
    Failure() : pwsp_error() {
        index = PTOWSP_NO_INDEX;
    }
    void set(ptowsp_status error, uint64_t at, const char *format, ...)
        __attribute__((format(printf, 4, 5)));
};

// A task and the scheduler's data about it. While a core has it, only `task` changes: it begins a
// line of the cache, because a core writes whole lines back.
struct alignas(64) Submission {
    void clear();  // to be filled in

    wsp_task task;
    Region tiles[PTOWSP_TASK_TILE_MAX];
    uint32_t place;
    uint64_t dispatch_key, priority_key, stream_key;
    List<uint32_t> after, before;  // explicit edges

    // The scheduler's:

    uint64_t number;   // of the tasks of the ring, since the run began
    uint32_t entry;    // its place there
    bool is_direct;    // of a process: not in the ring
    uint32_t is_done;  // atomic, of a direct one
};

enum Compare { EQ, NE, LT, LE, GT, GE };

// A condition on a slot as an i64: `slot compare value`.
struct Condition {
    bool holds(int64_t x) const {
        const bool all[] = {x == value, x != value, x<value, x <= value, x> value, x >= value};
        return all[compare];
    }
    uint32_t slot;
    Compare compare;
    int64_t value;
};

// The target of a walk's tasks: the scheduler, or a process of a pipeline.
class Target {
  public:
    virtual ~Target() = default;
    virtual bool good() const = 0;
    virtual void fail(ptowsp_status status, uint64_t index, const char *text) = 0;
    // A task to fill in; the same until it is submitted. Never null.
    virtual Submission *open() = 0;
    virtual void submit(Submission *submission) = 0;
    // Marks between tasks; to most targets they make no difference.
    virtual void scope_begin(bool is_parallel) {
        (void)is_parallel;
    }
    virtual void scope_end() {
    }
    virtual void reset(const uint32_t *edges, uint32_t count) {
        (void)edges, (void)count;
    }
    // Returns when the writer of the element is done. False after a failure.
    virtual bool await_element(const Region &element) = 0;

    // A target may defer the load of a slot: true. Then it has the slot's value until the slot is set.
    virtual bool defer(uint32_t, const Region &) {
        return false;
    }
    virtual uint64_t deferred(uint32_t,
                              uint64_t bits) {  // bits: if the slot's load is not deferred
        return bits;
    }
    virtual void forget(uint32_t) {
    }
    // The next tasks are subject to a condition on a deferred slot. False: it has to be evaluated.
    virtual bool condition_begin(const Condition &) {
        return false;
    }
    virtual void condition_end() {
    }
};

// A target that takes no tasks: it keeps the first failure.
class FailureTarget final : public Target {
  public:
    bool good() const override {
        return failure_.status == PTOWSP_OK;
    }
    void fail(ptowsp_status status, uint64_t index, const char *text) override {
        failure_.set(status, index, "%s", text);
    }
    Submission *open() override {
        return &submission_;
    }
    void submit(Submission *) override {
    }
    bool await_element(const Region &) override {
        return false;
    }
    const Failure &failure() const {
        return failure_;
    }

  private:
    Failure failure_;
    Submission submission_;
};

// The facts about a program that precedence and time need.
class Facts {
  public:
    void begin(const wsp_program &program);
    const pwsp_timed &timed() const {
        return timed_;
    }
    uint32_t pool_of(ptowsp_unit unit) const {
        return pwsp_schedule_unit_pool(&timed_.schedule, timed_.pool_count, unit);
    }
    pwsp_arrival arrival_of(const Submission &submission) const;

  private:
    const wsp_program *program_ = nullptr;
    pwsp_pool_info pools_[PWSP_POOL_MAX];
    pwsp_timed timed_ = pwsp_timed();
    std::unique_ptr<bool[]> is_written_, is_loaded_;  // by tensor
};

}  // namespace wsp

#endif

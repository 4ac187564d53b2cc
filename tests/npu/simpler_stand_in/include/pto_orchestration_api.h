// A stand-in for PTO Runtime (simpler): its orchestration interface, by the names of revision 6ebaf77,
// with text of our own. It holds the rules that emitted orchestrations have to live with:
//
//      order     explicit ids alone, in MANUAL scopes: of what else tasks share, nothing makes one wait.
//                Tasks run as late as they can and in an order chosen by a seed, so that a missing id,
//                for a write-after-read as for others, is a wrong result
//      scopes    begin and end in pairs; a ring for each of the depths 0 to 3 and beyond
//      rings     slots, heap and pool entries are taken in order, and given back in order: once the task
//                has ended, those that retain it have ended, and its scope has. What is given back is
//                filled with 0xcd
//      pointers  a submit reads its tensors and ids where they are, when it is made: the stack of functions
//                that have returned is overwritten before that
//      predicate read when the task is ready, and its tensor with the submit's; false: nothing runs
//      limits    32 tensors, then 16 scalars; strides above 0; ids of earlier submits, at most once
//
// A run leaves a trace, which ../python makes the dumps of the runtime of.
// Everything is on one thread; cycles are counted, 100 for each task.

#ifndef STAND_IN_PTO_ORCHESTRATION_API_H
#define STAND_IN_PTO_ORCHESTRATION_API_H

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "tensor.h"

enum class PTO2ScopeMode { AUTO, MANUAL };

struct PTO2OrchestrationConfig {
    int expected_arg_count;
};

struct TensorCreateInfo {
    TensorCreateInfo(const uint32_t shape[], uint32_t count, DataType type)
        : ndims(count), dtype(type) {
        for (uint32_t i = 0; i < count; i++) {
            shapes[i] = shape[i];
        }
    }
    uint32_t shapes[5] = {}, ndims;
    DataType dtype;
};

enum class CoreTaskPredicateOp { EQ, NE, GT, LT, GE, LE };
struct CoreTaskPredicate {
    struct {
        const ChipTensor *tensor;
        uint32_t ndims, indices[5];
    } operand;
    CoreTaskPredicateOp op;
    int64_t target;
};

inline ChipTensor make_tensor_strided(void *data, const uint32_t shape[], const uint32_t strides[],
                                      uint32_t ndims, DataType type) {
    ChipTensor tensor = ChipTensor();
    uint64_t extent = 1;
    tensor.buffer.addr = reinterpret_cast<uintptr_t>(data);
    tensor.ndims = ndims;
    tensor.dtype = type;
    for (uint32_t i = 0; i < ndims; i++) {
        tensor.shapes[i] = shape[i];
        tensor.strides[i] = strides[i];
        extent += shape[i] ? uint64_t(shape[i] - 1) * strides[i] : 0;
    }
    tensor.buffer.size = extent * get_element_size(type);
    return tensor;
}
inline ChipTensor make_tensor_external(void *data, const uint32_t shape[], uint32_t ndims,
                                       DataType type) {
    uint32_t strides[5] = {1, 1, 1, 1, 1};
    for (uint32_t i = ndims; i > 1; i--) {
        strides[i - 2] = strides[i - 1] * shape[i - 1];
    }
    return make_tensor_strided(data, shape, strides, ndims, type);
}

namespace stand_in {

enum Type { INPUT, OUTPUT, INOUT };
enum Error {
    SCOPE_DEADLOCK = 1,
    HEAP_RING_DEADLOCK,
    FLOW_CONTROL_DEADLOCK,
    DEP_POOL_OVERFLOW,
    INVALID_ARGS,
    TENSOR_WAIT_TIMEOUT = 8,
    FATAL
};
constexpr uint32_t RINGS = 4, TENSOR_MAX = 32, SCALAR_MAX = 16;

struct Arg {
    Type type;
    ChipTensor tensor;
};

struct Task {
    uint64_t id = 0;
    int32_t kernels[3] = {-1, -1, -1};
    uint32_t blocks = 1, ring = 0, scope = 0;
    std::deque<Arg> args;
    std::vector<uint64_t> scalars;
    std::vector<size_t> before, after;  // tasks that it waits for, and those that wait for it
    std::vector<size_t> kept;           // that it retains: those that have ended as well
    std::vector<uint64_t> ids;          // as they were given
    size_t waits = 0, retainers = 0;    // that have not ended
    uint64_t heap_end = 0, pool = 0;
    ChipTensor operand = ChipTensor();  // rank 0: no predicate
    CoreTaskPredicate predicate = CoreTaskPredicate();
    bool is_alloc = false, is_done = false, is_retired = false, is_skipped = false;
    uint64_t start = 0;
};

struct Ring {
    std::vector<size_t> tasks;  // by number
    size_t head = 0;
    uint64_t heap_head = 0, heap_tail = 0, pool_head = 0, pool_tail = 0;
    std::vector<char> memory;
    char *start() {
        return memory.data() + (1024 - reinterpret_cast<uintptr_t>(memory.data()) % 1024) % 1024;
    }
    uint32_t window = 0, pool = 0;
    uint64_t heap = 0;
};

struct Scope {
    uint32_t number;
    PTO2ScopeMode mode;
};

typedef void (*Kernel)(int64_t *args);

// What a test passes; the same in stand_in.py.
struct Run {
    uint64_t arg_count;
    const uint64_t *addresses, *sizes;
    uint64_t kernel_count;
    const Kernel *kernels;
    uint64_t seed;
    uint64_t window[RINGS], heap[RINGS], pool[RINGS];
    const char *directory;
};

class Runtime {
  public:
    int error = 0;
    std::string text;
    const Run *run = nullptr;

    void begin(const Run *what) {
        run = what;
        seed_ = what->seed;
        for (uint32_t i = 0; i < RINGS; i++) {
            rings_[i].window = static_cast<uint32_t>(what->window[i]);
            rings_[i].heap = what->heap[i];
            rings_[i].pool = static_cast<uint32_t>(what->pool[i]);
            rings_[i].memory.assign(what->heap[i] + 1024, char(0xcd));
        }
        scope_begin(PTO2ScopeMode::AUTO);
    }

    void finish() {
        scope_end();
        while (!error && step()) {
        }
        for (const Task &task : tasks_) {
            if (!error && !task.is_done) {
                fail(FLOW_CONTROL_DEADLOCK, "a task has never been ready");
            }
        }
        write();
    }

    void fail(int code, const std::string &why) {
        if (!error) {
            error = code;
            text = why;
        }
    }

    // -- scopes --

    void scope_begin(PTO2ScopeMode mode) {
        if (!scopes_.empty() && scopes_.back().mode == PTO2ScopeMode::MANUAL &&
            mode == PTO2ScopeMode::AUTO) {
            fail(INVALID_ARGS, "an AUTO scope in a MANUAL one");
        }
        if (error) {
            return;
        }
        scopes_.push_back({static_cast<uint32_t>(scope_ended_.size()), mode});
        scope_ended_.push_back(false);
        stat("begin");
    }
    void scope_end() {
        if (scopes_.empty()) {
            fail(INVALID_ARGS, "no scope is open");
            return;
        }
        stat("end");
        scope_ended_[scopes_.back().number] = true;
        scopes_.pop_back();
    }

    // -- submits --

    // The index of the task, or SIZE_MAX after an error.
    size_t submit(Task task, const std::vector<const TensorCreateInfo *> &created) {
        const uint32_t depth = static_cast<uint32_t>(scopes_.size()) - 1;
        if (!error && scopes_.back().mode != PTO2ScopeMode::MANUAL) {
            fail(INVALID_ARGS, "here tasks are submitted in MANUAL scopes alone");
        }
        if (error || !check(task)) {
            return SIZE_MAX;
        }
        task.ring = depth < RINGS - 1 ? depth : RINGS - 1;
        task.scope = scopes_.back().number;
        Ring &ring = rings_[task.ring];
        uint64_t bytes = 0;
        for (const TensorCreateInfo *info : created) {
            bytes += (bytes_of(*info) + 1023) / 1024 * 1024;
        }
        if (!take(&task, &ring, bytes)) {
            return SIZE_MAX;
        }
        uint64_t at = task.heap_end - bytes;
        for (const TensorCreateInfo *info : created) {
            ChipTensor tensor = make_tensor_external(ring.start() + at % ring.heap, info->shapes,
                                                     info->ndims, info->dtype);
            tensor.buffer.size = bytes_of(*info);
            tensor.owner_task_id.raw = task.id;
            task.args.push_back({OUTPUT, tensor});
            at += (bytes_of(*info) + 1023) / 1024 * 1024;
        }
        const size_t index = tasks_.size();
        for (size_t before : task.before) {
            tasks_[before].after.push_back(index);
        }
        ring.tasks.push_back(index);
        ids_[task.id] = index;
        if (task.waits == 0 && task.is_alloc) {
            task.is_done = true;
        } else if (task.waits == 0) {
            ready_.push_back(index);
        }
        tasks_.push_back(std::move(task));
        return index;
    }

    const Task &task(size_t index) const {
        return tasks_[index];
    }

    bool await(uint64_t id) {
        const auto at = ids_.find(id);
        if (at == ids_.end()) {
            fail(INVALID_ARGS, "data of a task that does not exist");
        }
        while (!error && !tasks_[at->second].is_done) {
            if (!step()) {
                fail(TENSOR_WAIT_TIMEOUT, "data that no task makes");
            }
        }
        return !error;
    }

  private:
    static uint64_t bytes_of(const TensorCreateInfo &info) {
        uint64_t bytes = get_element_size(info.dtype);
        for (uint32_t i = 0; i < info.ndims; i++) {
            bytes *= info.shapes[i];
        }
        return bytes;
    }

    bool check(const Task &task) {
        if (task.args.size() > TENSOR_MAX || task.scalars.size() > SCALAR_MAX) {
            fail(INVALID_ARGS, "too many arguments");
        }
        for (const Arg &arg : task.args) {
            for (uint32_t i = 0; i < arg.tensor.ndims; i++) {
                if (arg.tensor.strides[i] == 0 || arg.tensor.ndims > 5) {
                    fail(INVALID_ARGS, "a stride of 0, or too many dimensions");
                }
            }
        }
        for (int32_t kernel : task.kernels) {
            if (kernel >= static_cast<int32_t>(run->kernel_count)) {
                fail(INVALID_ARGS, "there is no such kernel");
            }
        }
        return !error;
    }

    bool link(Task *task) {
        for (uint64_t id : task->ids) {
            const auto at = ids_.find(id);
            if (at == ids_.end()) {
                fail(INVALID_ARGS, "an id of no earlier submit");
                return false;
            }
            if (!tasks_[at->second].is_retired) {
                task->kept.push_back(at->second);
            }
            if (!tasks_[at->second].is_done) {
                task->before.push_back(at->second);
                task->waits++;
            }
        }
        return true;
    }

    // -- rings --

    bool retire(Ring *ring) {
        if (ring->head == ring->tasks.size()) {
            return false;
        }
        Task &task = tasks_[ring->tasks[ring->head]];
        if (!task.is_done || task.retainers || !scope_ended_[task.scope]) {
            return false;
        }
        for (const Arg &arg : task.args) {
            if (arg.type == OUTPUT) {
                memset(arg.tensor.data_as<char>(), 0xcd, arg.tensor.buffer.size);
            }
        }
        ring->heap_head = task.heap_end;
        ring->pool_head += task.pool;
        task.is_retired = true;
        ring->head++;
        return true;
    }

    // Runs tasks until there is room.
    template <typename HasRoom> bool make_room(Ring *ring, int code, HasRoom has_room) {
        while (!has_room()) {
            if (retire(ring) || step()) {
                continue;
            }
            const bool is_held = ring->head < ring->tasks.size() &&
                                 !scope_ended_[tasks_[ring->tasks[ring->head]].scope];
            fail(is_held && code == FLOW_CONTROL_DEADLOCK ? SCOPE_DEADLOCK : code,
                 is_held ? "a ring is full, and an open scope holds it" : "a ring is full");
            return false;
        }
        return true;
    }

    // A slot and memory first, then entries for the tasks that have not ended by then.
    bool take(Task *task, Ring *ring, uint64_t bytes) {
        task->id = uint64_t(task->ring) << 32 | ring->tasks.size();
        if (!make_room(ring, FLOW_CONTROL_DEADLOCK,
                       [&] { return ring->tasks.size() - ring->head + 1 < ring->window; }) ||
            !make_room(ring, HEAP_RING_DEADLOCK,
                       [&] { return heap_start(*ring, bytes) != UINT64_MAX; }) ||
            !link(task)) {
            return false;
        }
        task->pool = task->waits;
        if (!make_room(ring, DEP_POOL_OVERFLOW, [&] {
                return ring->pool_tail + task->pool - ring->pool_head <= ring->pool;
            })) {
            return false;
        }
        // Tasks may have run meanwhile, and some may have been given back.
        const auto drop = [this](std::vector<size_t> *tasks, bool Task::*has) {
            tasks->erase(std::remove_if(tasks->begin(), tasks->end(),
                                        [&](size_t i) { return tasks_[i].*has; }),
                         tasks->end());
        };
        drop(&task->before, &Task::is_done);
        drop(&task->kept, &Task::is_retired);
        task->waits = task->before.size();
        for (size_t i : task->kept) {
            tasks_[i].retainers++;
        }
        ring->pool_tail += task->pool;
        task->heap_end = heap_start(*ring, bytes) + bytes;
        ring->heap_tail = task->heap_end;
        return true;
    }

    // Counters that never wrap; memory lies together, never across the end.
    static uint64_t heap_start(const Ring &ring, uint64_t bytes) {
        uint64_t at = ring.heap_tail;
        if (bytes && at % ring.heap + bytes > ring.heap) {
            at += ring.heap - at % ring.heap;
        }
        return at + bytes - ring.heap_head <= ring.heap ? at : UINT64_MAX;
    }

    // -- running --

    // Seed 0: the oldest ready task; 1: the newest; others: by chance. False: none is ready.
    bool step() {
        if (ready_.empty()) {
            return false;
        }
        seed_ = seed_ * 6364136223846793005u + 1442695040888963407u;
        const size_t at = run->seed == 0   ? 0
                          : run->seed == 1 ? ready_.size() - 1
                                           : static_cast<size_t>((seed_ >> 33) % ready_.size());
        const size_t index = ready_[at];
        ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(at));
        execute(tasks_[index]);
        tasks_[index].is_done = true;
        for (size_t kept : tasks_[index].kept) {
            tasks_[kept].retainers--;
        }
        for (size_t after : tasks_[index].after) {
            if (--tasks_[after].waits == 0) {
                ready_.push_back(after);
            }
        }
        for (Ring &ring : rings_) {  // at once, so that nobody uses what nothing keeps
            while (retire(&ring)) {
            }
        }
        return true;
    }

    static bool holds(const Task &task) {
        const ChipTensor &t = task.operand;
        const uint64_t size = get_element_size(t.dtype);
        uint64_t at = t.start_offset, bits = 0;
        for (uint32_t i = 0; i < t.ndims; i++) {
            at += uint64_t(task.predicate.operand.indices[i]) * t.strides[i];
        }
        memcpy(&bits, t.data_as<char>() + at * size, size);
        const int unused = static_cast<int>(64 - 8 * size);
        const int64_t value = static_cast<int64_t>(bits << unused) >> unused,
                      target = task.predicate.target;
        switch (task.predicate.op) {
        case CoreTaskPredicateOp::EQ: return value == target;
        case CoreTaskPredicateOp::NE: return value != target;
        case CoreTaskPredicateOp::GT: return value > target;
        case CoreTaskPredicateOp::LT: return value < target;
        case CoreTaskPredicateOp::GE: return value >= target;
        default: return value <= target;
        }
    }

    void execute(Task &task) {
        int64_t args[50] = {};
        size_t count = 0;
        if (task.operand.ndims && !holds(task)) {
            task.is_skipped = true;
            return;
        }
        task.start = now_;
        now_ += 100;
        for (Arg &arg : task.args) {
            args[count++] = static_cast<int64_t>(reinterpret_cast<uintptr_t>(&arg.tensor));
        }
        for (uint64_t scalar : task.scalars) {
            args[count++] = static_cast<int64_t>(scalar);
        }
        for (uint32_t block = 0; block < task.blocks; block++) {
            for (uint32_t core = 0; core < 3; core++) {
                args[48] = block;
                args[49] = core == 2;
                if (task.kernels[core] >= 0) {
                    run->kernels[task.kernels[core]](args);
                }
            }
        }
    }

    // -- what has happened, a line each, which simpler_setup.py makes dumps of --

    void stat(const char *phase) {
        const uint32_t depth = static_cast<uint32_t>(scopes_.size()) - 1,
                       at = depth < RINGS - 1 ? depth : RINGS - 1;
        const Ring &ring = rings_[at];
        stats_ += std::string("scope ") + phase;
        for (uint64_t number :
             {uint64_t(depth), uint64_t(at), uint64_t(ring.head), uint64_t(ring.tasks.size()),
              ring.heap_head, ring.heap_tail, ring.pool_head, ring.pool_tail}) {
            stats_ += " " + std::to_string(number);
        }
        stats_ += "\n";
    }

    void write() const {
        typedef unsigned long long number;
        FILE *file = fopen((std::string(run->directory) + "/trace").c_str(), "w");
        for (const Task &task : tasks_) {
            fprintf(file, "task %llu %llu %d %d %d %u %d %d %d %d\n", number(task.id),
                    number(task.start), task.kernels[0], task.kernels[1], task.kernels[2],
                    task.blocks, task.is_alloc, task.is_done, task.operand.ndims > 0,
                    task.is_skipped);
            for (const Arg &arg : task.args) {
                const ChipTensor &t = arg.tensor;
                fprintf(file, "arg %d %d %llu %llu %llu", arg.type, static_cast<int>(t.dtype),
                        number(t.buffer.addr), number(t.buffer.size), number(t.start_offset));
                for (uint32_t i = 0; i < t.ndims; i++) {
                    fprintf(file, " %u %u", t.shapes[i], t.strides[i]);
                }
                fputs("\n", file);
            }
            for (uint64_t id : task.ids) {
                fprintf(file, "after %llu\n", number(id));
            }
        }
        fputs(stats_.c_str(), file);
        fclose(file);
    }

    std::deque<Task> tasks_;
    std::map<uint64_t, size_t> ids_;
    std::vector<size_t> ready_;
    Ring rings_[RINGS];
    std::vector<Scope> scopes_;
    std::vector<bool> scope_ended_;
    std::string stats_;
    uint64_t seed_ = 0, now_ = 0;
};

inline Runtime &runtime() {
    static Runtime the_runtime;
    return the_runtime;
}

}  // namespace stand_in

// -- arguments ------------------------------------------------------------------------------------

struct ChipTaskArgs {
    struct Ref {
        const ChipTensor *tensor;
        const ChipTensor &ref() const {
            return *tensor;
        }
    };
    std::vector<ChipTensor> tensors;
    Ref tensor(int i) const {
        return {&tensors[static_cast<size_t>(i)]};
    }
    uint64_t scalar(int) const {
        return 0;
    }
    int tensor_count() const {
        return static_cast<int>(tensors.size());
    }
    int scalar_count() const {
        return 0;
    }
};

// Keeps pointers, as the runtime does: what they point to is read by the submit.
class CoreTaskArgs {
  public:
    CoreTaskArgs() = default;
    CoreTaskArgs(const CoreTaskArgs &) = delete;
    void add_input(const ChipTensor &tensor) {
        add(stand_in::INPUT, tensor);
    }
    void add_inout(const ChipTensor &tensor) {
        add(stand_in::INOUT, tensor);
    }
    void add_output(const TensorCreateInfo &info) {
        created.push_back(&info);
    }
    void add_input(ChipTensor &&) = delete;
    void add_inout(ChipTensor &&) = delete;
    void add_output(TensorCreateInfo &&) = delete;
    template <typename T> void add_scalar(T value) {
        uint64_t bits = 0;
        memcpy(&bits, &value, sizeof value);
        scalars_.push_back(bits);
    }
    void set_dependencies(const PTO2TaskId *ids, uint32_t count) {
        if (is_set_) {
            stand_in::runtime().fail(stand_in::INVALID_ARGS, "dependencies are set once");
        }
        is_set_ = true;
        ids_ = ids;
        id_count_ = count;
    }
    void set_predicate(const CoreTaskPredicate &predicate) {
        predicate_ = predicate;
        has_predicate_ = true;
    }
    struct {
        uint32_t blocks = 1;
        void set_block_num(uint32_t count) {
            blocks = count;
        }
    } launch_spec;

    // For the submit.
    stand_in::Task read() const {
        stand_in::Task task;
        for (const Kept &kept : tensors_) {
            task.args.push_back({kept.type, *kept.tensor});
        }
        for (uint32_t i = 0; i < id_count_; i++) {
            task.ids.push_back(ids_[i].raw);
        }
        task.scalars = scalars_;
        task.blocks = launch_spec.blocks;
        if (has_predicate_) {
            task.predicate = predicate_;
            task.operand = *predicate_.operand.tensor;
        }
        return task;
    }
    std::vector<const TensorCreateInfo *> created;

  private:
    struct Kept {
        stand_in::Type type;
        const ChipTensor *tensor;
    };
    void add(stand_in::Type type, const ChipTensor &tensor) {
        if (!scalars_.empty() || !created.empty()) {
            stand_in::runtime().fail(stand_in::INVALID_ARGS,
                                     "here tensors come before created ones and scalars");
        }
        tensors_.push_back({type, &tensor});
    }
    std::vector<Kept> tensors_;
    std::vector<uint64_t> scalars_;
    const PTO2TaskId *ids_ = nullptr;
    uint32_t id_count_ = 0;
    CoreTaskPredicate predicate_ = CoreTaskPredicate();
    bool is_set_ = false, has_predicate_ = false;
};

struct TaskOutputTensors {
    size_t index = SIZE_MAX;
    PTO2TaskId task_id() const {
        return {index == SIZE_MAX ? 0 : stand_in::runtime().task(index).id};
    }
    uint32_t size() const {
        uint32_t count = 0;
        for (size_t i = 0; index != SIZE_MAX && i < stand_in::runtime().task(index).args.size();
             i++) {
            count += stand_in::runtime().task(index).args[i].type == stand_in::OUTPUT;
        }
        return count;
    }
    const ChipTensor &get_ref(uint32_t i) const {
        const auto &args = stand_in::runtime().task(index).args;
        return args[args.size() - size() + i].tensor;
    }
};

struct MixedKernels {
    int32_t aic_kernel_id, aiv0_kernel_id, aiv1_kernel_id;
};

namespace stand_in {

// Overwrites the stack below its caller, where locals of functions that have returned were.
__attribute__((noinline)) inline void forget_returned() {
    volatile unsigned char stack[4096];
    for (size_t i = 0; i < sizeof stack; i++) {
        stack[i] = 0xcd;
    }
}

__attribute__((noinline)) inline size_t submit(const MixedKernels &kernels,
                                               const CoreTaskArgs &args) {
    Task task = args.read();
    task.kernels[0] = kernels.aic_kernel_id;
    task.kernels[1] = kernels.aiv0_kernel_id;
    task.kernels[2] = kernels.aiv1_kernel_id;
    return runtime().submit(std::move(task), args.created);
}

}  // namespace stand_in

inline TaskOutputTensors rt_submit_task(const MixedKernels &kernels, const CoreTaskArgs &args) {
    stand_in::forget_returned();
    return {stand_in::submit(kernels, args)};
}
inline TaskOutputTensors rt_submit_aic_task(int32_t kernel, const CoreTaskArgs &args) {
    return rt_submit_task({kernel, -1, -1}, args);
}
inline TaskOutputTensors rt_submit_aiv_task(int32_t kernel, const CoreTaskArgs &args) {
    return rt_submit_task({-1, kernel, -1}, args);
}
inline TaskOutputTensors rt_submit_dummy_task(const CoreTaskArgs &args) {
    return rt_submit_task({-1, -1, -1}, args);
}
inline TaskOutputTensors alloc_tensors(const TensorCreateInfo &info) {
    stand_in::Task task;
    task.is_alloc = true;
    return {stand_in::runtime().submit(task, {&info})};
}

inline void rt_scope_begin(PTO2ScopeMode mode) {
    stand_in::runtime().scope_begin(mode);
}
inline void rt_scope_end() {
    stand_in::runtime().scope_end();
}
inline bool rt_is_fatal() {
    return stand_in::runtime().error != 0;
}
inline void rt_report_fatal(int code, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    stand_in::runtime().fail(code, text);
}

template <typename T> T get_tensor_data(const ChipTensor &tensor, uint32_t, const uint32_t at[]) {
    return stand_in::runtime().await(tensor.owner_task_id.raw) ? tensor.data_as<T>()[at[0]] : T();
}

extern "C" {
PTO2OrchestrationConfig aicpu_orchestration_config(const ChipTaskArgs &args);
void aicpu_orchestration_entry(const ChipTaskArgs &args);

// Runs the orchestration that includes this file, once. 0, or the runtime's error.
__attribute__((visibility("default"))) inline int stand_in_run(const stand_in::Run *run);
__attribute__((visibility("default"))) inline const char *stand_in_text();
}

__attribute__((used)) inline int stand_in_run(const stand_in::Run *run) {
    ChipTaskArgs args;
    for (uint64_t i = 0; i < run->arg_count; i++) {
        const uint32_t shape[1] = {static_cast<uint32_t>(run->sizes[i])};
        args.tensors.push_back(make_tensor_external(
            reinterpret_cast<void *>(static_cast<uintptr_t>(run->addresses[i])), shape, 1,
            DataType::UINT8));
    }
    stand_in::Runtime &runtime = stand_in::runtime();
    runtime.begin(run);
    if (aicpu_orchestration_config(args).expected_arg_count != args.tensor_count()) {
        runtime.fail(stand_in::INVALID_ARGS, "a different number of arguments is expected");
    } else {
        aicpu_orchestration_entry(args);
    }
    runtime.finish();
    return runtime.error;
}
__attribute__((used)) inline const char *stand_in_text() {
    return stand_in::runtime().text.c_str();
}

#endif

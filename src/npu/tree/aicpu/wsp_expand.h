// The vocabulary of expand.cpp: it walks a program, and hands its tasks to a target. Numbers have
// the types of the workload's expressions: i64 and u64 of wsp_number.h, whose arithmetic wraps and
// never traps.
//
//      for (i64 v_b = 0; v_b < run.size(AXIS_batch) && run.good(); v_b++) {
//          if (run.array_i64(ARRAY_kv_len, v_b) <= 2048) {
//              Task task(run, KERNEL_attend, 4);
//              task.axis(v_b);
//              task.tile(TENSOR_Q, READ, {v_b}, 0, 0, 0, 0);
//              task.submit();
//          }
//      }
//
// After an error all functions do nothing, reads give 0, and run.good() is false.
//
// Errors report the place of the statement being walked. Functions with a place argument set it;
// run.at(place) sets it where a statement's own expressions may fail:
//
//      run.at(3);  // decode/parallel b/when
//      if (run.array_i64(ARRAY_kv_len, v_b) <= 2048) {

#ifndef WSP_EXPAND_H
#define WSP_EXPAND_H

#include "wsp_core.h"

#include <string.h>

#include <initializer_list>

#include "wsp_number.h"
#include "wsp_list.h"
#include "wsp_walk.h"

namespace wsp {

class Run;

// The iterations of a loop that are looked up as it goes. Ends early after an error.
template <typename Item> class Items {
  public:
    class Iterator {
      public:
        Iterator(const Run &run, uint32_t axis, uint64_t at, uint64_t end)
            : run_(&run), axis_(axis), at_(at), end_(end) {
            find();
        }
        const Item &operator*() const {
            return item_;
        }
        Iterator &operator++() {
            at_++;
            find();
            return *this;
        }
        bool operator!=(const Iterator &end) const;

      private:
        void find();  // the item at at_, or the next one that there is
        const Run *run_;
        uint32_t axis_;
        uint64_t at_, end_;
        Item item_;
    };

    Items(const Run &run, uint32_t axis, uint64_t first, uint64_t end)
        : run_(&run), axis_(axis), first_(first), end_(end) {
    }
    Iterator begin() const {
        return Iterator(*run_, axis_, first_, end_);
    }
    Iterator end() const {
        return Iterator(*run_, axis_, end_, end_);
    }

  private:
    const Run *run_;
    uint32_t axis_;
    uint64_t first_, end_;
};

// The entries of a sparse loop: for (const Entry &v_e : run.entries(AXIS_x, row, place)).
struct Entry {
    i64 index;  // the column
    i64 entry;  // its position in the indices
};
using Entries = Items<Entry>;

// The units or merges of a plan that are valid, by index: for (const i64 &v_u : run.units(AXIS_x)).
using Units = Items<i64>;

// The rows or columns of a tile: a number, or 0 for all up to the tensor's edge; and at most `most`.
struct Extent {
    Extent(int64_t count) : size(count) {
    }
    Extent(int64_t count, i64 limit) : size(count), most(limit) {
    }

    int64_t size;
    i64 most = INT64_MAX;
};

// A walk: of the whole program, or of one process of a pipeline, with its own slots.
class Run {
  public:
    Run(const wsp_program &program, const wsp_bindings &bindings, Target &target);
    // A process: its slots begin as copies of the surrounding run's, and its tasks go to the
    // target.
    Run(const Run &around, Target &target);
    Run(const Run &) = delete;
    Run &operator=(const Run &) = delete;

    bool good() const {
        return target_->good();
    }

    // Bindings.
    i64 size(uint32_t axis) const {  // of a dynamic axis, or one of a plan
        return reinterpret_cast<const int64_t *>(bindings_->sizes)[axis];
    }
    u64 symbol(uint32_t symbol) const {
        return reinterpret_cast<const uint64_t *>(bindings_->symbols)[symbol];
    }
    // An element. Reading outside of the array is an error of the run at its current place, and gives 0.
    u64 array_u64(uint32_t array, i64 index) {
        return read(array, index);
    }
    i64 array_i64(uint32_t array, i64 index) {
        return i64::of_bits(read(array, index));
    }
    bool array_bool(uint32_t array, i64 index) {
        return read(array, index) != 0;
    }
    i64 length(uint32_t array, i64 row, uint32_t place);  // of a ragged axis' row
    i64 length_sum(uint32_t array);                       // of all its rows
    Entries entries(uint32_t axis);                       // of all rows of a sparse axis
    Entries entries(uint32_t axis, i64 row, uint32_t place);
    Units units(uint32_t axis);  // or merges, of all lanes of a plan
    Units units(uint32_t axis, i64 lane, uint32_t place);

    // An axis that replicates a process must have a size; otherwise it is an error.
    void check_replicas(uint32_t axis, uint32_t place);

    // Slots.
    u64 slot_u64(uint32_t slot) const {
        return is_deferring_ ? target_->deferred(slot, slots_[slot]) : slots_[slot];
    }
    i64 slot_i64(uint32_t slot) const {
        return i64::of_bits(slot_u64(slot).value());
    }
    bool slot_bool(uint32_t slot) const {
        return slot_u64(slot).value() != 0;
    }
    template <typename T> void set_slot(uint32_t slot, T value) {
        slots_[slot] = to_u64(value).value();
        if (is_deferring_) {
            target_->forget(slot);
        }
    }
    // Element (r, c) of a view, once its writers are done.
    void load_slot(uint32_t place, uint32_t slot, uint32_t tensor, std::initializer_list<i64> lead,
                   i64 row, Extent rows, i64 col, Extent cols, i64 r, i64 c);

    // Explicit edges restart: an iteration begins.
    void reset(std::initializer_list<uint32_t> edges);

    // The following expressions are evaluated at this place.
    void at(uint32_t place) {
        place_ = place;
    }

    // For layers above it (wsp_pipeline.cpp): an error at the current place; the walk's target.
    void fail(ptowsp_status status, uint64_t index, const char *format, ...)
        __attribute__((format(printf, 4, 5)));
    void fail(const pwsp_error &error) {
        fail(error.status, error.index, "%s", error.text);
    }
    Target &target() const {
        return *target_;
    }
    const wsp_program &program() const {
        return *program_;
    }
    const wsp_bindings &bindings() const {
        return *bindings_;
    }
    const List<uint64_t> &slots() const {
        return slots_;
    }
    const pwsp_bound_tensor &tensor(uint32_t tensor) const {
        return reinterpret_cast<const pwsp_bound_tensor *>(bindings_->tensors)[tensor];
    }

  private:
    template <typename Item> friend class Items;
    friend class Task;
    friend class When;

    const pwsp_array &array(uint32_t array) const {
        return reinterpret_cast<const pwsp_array *>(bindings_->arrays)[array];
    }
    const pwsp_bound_csr &csr(uint32_t axis) const {
        return reinterpret_cast<const pwsp_bound_csr *>(bindings_->csrs)[axis];
    }
    uint64_t read(uint32_t array, i64 index);
    bool find_tile(const char *param, uint32_t tensor, std::initializer_list<i64> lead, i64 row,
                   const Extent &rows, i64 col, const Extent &cols, Region *out);

    const wsp_program *program_;
    const wsp_bindings *bindings_;
    Target *target_;
    uint32_t place_ = 0;
    bool is_deferring_ = false;  // the target has deferred the load of a slot
    List<uint64_t> slots_;
    List<i64> length_sums_;       // by array, at the start of the run
    Submission *task_ = nullptr;  // the task being made
};

// Sizes of the transient tensors, in the order of their table, as expand.cpp evaluates them; up to
// the first that reads outside of an array.
class Sizes {
  public:
    explicit Sizes(const Run &run) : run_(&run) {
    }
    void add(std::initializer_list<i64> sizes);
    const List<List<int64_t>> &all() const {
        return all_;
    }

  private:
    const Run *run_;
    List<List<int64_t>> all_;
};

// A scope of section 17 of ptowsp.h, for as long as it lives.
enum ScopeKind { PARALLEL, SEQUENTIAL };
class Scope {
  public:
    Scope(Run &run, ScopeKind kind);
    ~Scope();
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

  private:
    Run *run_;
};

// A condition on a slot, around tasks. A target that deferred the load of the slot may take them before
// it knows whether the condition holds.
class When {
  public:
    When(Run &run, uint32_t slot, Compare compare, i64 value);
    ~When();
    When(const When &) = delete;
    When &operator=(const When &) = delete;
    explicit operator bool() const {
        return holds_;
    }

  private:
    Run *run_;
    bool is_open_, holds_;
};

// A task being made: axis arguments, tiles, scalars, then keys and edges, then submit. It is small
// (its contents are in the run), because a function may have thousands of them.
class Task {
  public:
    Task(Run &run, uint32_t kernel, uint32_t place);
    void axis(i64 value);
    // A tile of rows x cols from (row, col) of the matrix at the leading indices; 0: to the edge.
    void tile(uint32_t tensor, Access access, std::initializer_list<i64> lead, i64 row, Extent rows,
              i64 col, Extent cols);
    // Values and keys are i64, u64 or bool.
    template <typename T> void scalar(T value) {
        put_scalar(to_u64(value));
    }
    i64 arg(uint32_t i) const;  // args[i], 0 if there are fewer; once all arguments are there
    template <typename T> void dispatch(T key) {
        run_->task_->dispatch_key = to_u64(key).value();
    }
    template <typename T> void priority(T key) {
        run_->task_->priority_key = to_u64(key).value();
    }
    template <typename T> void stream(T key) {
        run_->task_->stream_key = to_u64(key).value();
    }
    void after(std::initializer_list<uint32_t> edges);   // explicit edges that end here
    void before(std::initializer_list<uint32_t> edges);  // explicit edges that begin here
    void submit();

  private:
    void put_scalar(u64 value);

    Run *run_;
};

// Plans the batches that are bound, and enters the plans in sizes and arrays of the bindings, for as
// long as it lives. A batch that cannot be planned is a failure of the target.
class Plans {
  public:
    Plans(const wsp_program &program, const wsp_bindings &bindings, Target &target);
    ~Plans();
    Plans(const Plans &) = delete;
    Plans &operator=(const Plans &) = delete;

  private:
    void enter(uint32_t axis, const ptowsp_attention_plan &plan);
    const pwsp_plan_batch *batch(uint32_t axis) const;

    const wsp_program *program_;
    const wsp_bindings *bindings_;
    List<pwsp_plan_room> rooms_;  // by the first axis of a plan
};

// Enters a plan in the tables of bindings.
inline void enter_plan(const wsp_program &program, const char *name,
                       const ptowsp_attention_plan &plan, int64_t *sizes, pwsp_array *arrays) {
    const auto is_of_plan = [&](const wsp_axis_decl &axis) {
        return axis.name && axis.kind >= PTOWSP_AXIS_PLAN && strcmp(axis.name, name) == 0;
    };
    for (uint32_t i = 1; i < program.axis_count; i++) {
        if (is_of_plan(program.axes[i])) {
            sizes[i] = pwsp_plan_size(&plan, static_cast<ptowsp_axis_kind>(program.axes[i].kind));
        }
    }
    for (uint32_t i = 0; i < program.field_count; i++) {
        const wsp_field_decl &field = program.fields[i];
        if (is_of_plan(program.axes[field.axis])) {
            arrays[field.array] =
                pwsp_plan_array(&plan, static_cast<ptowsp_axis_kind>(program.axes[field.axis].kind),
                                static_cast<ptowsp_plan_field>(field.field));
        }
    }
}

// Offset of a tile's first element, in elements from its tensor's start.
inline int64_t offset_of(const pwsp_bound_tensor &tensor, const Region &region) {
    return region.lead + region.row * tensor.row_stride + region.col * tensor.col_stride;
}

}  // namespace wsp

#endif

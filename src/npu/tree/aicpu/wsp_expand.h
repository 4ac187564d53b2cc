// The words that expand.cpp is written in: what walks a program, and hands its tasks to the
// scheduler. Numbers are those of the workload's expressions: i64 and u64 of wsp_number.h, whose
// arithmetic wraps and never traps.
//
//      for (i64 b = 0; b < batch && run.good(); b++) {
//          if (kv_len[b] <= 2048) {
//              Task task(run, KERNEL_attend, 4);
//              task.axis(b);
//              task.tile(TENSOR_Q, READ, {b}, 0, 0, 0, 0);
//              task.submit();
//          }
//      }
//
// After an error everything does nothing, reads give 0, and run.good() is false.
//
// Errors are told with a place, that of the statement which is being walked: words that have a
// place argument set it, and run.at(place) does where a statement's own expressions may fail:
//
//      run.at(3);  // decode/parallel b/when
//      if (kv_len[b] <= 2048) {

#ifndef WSP_EXPAND_H
#define WSP_EXPAND_H

#include <initializer_list>

#include "wsp_abi.h"
#include "wsp_number.h"

namespace wsp {

class Scheduler;
class Process;

enum Access { READ = 1, WRITE = 2, READ_WRITE = 3 };

// A typed array that is bound. Reading outside of it is an error of the run at its current place,
// and gives 0. T is i64, u64 or bool.
template <typename T> class Array {
  public:
    Array(Run &run, uint32_t array);
    T operator[](i64 index) const;
    ...
};

// The entries of a sparse loop: for (const Entry &e : run.entries(AXIS_x, row, place)). Ends early
// after an error.
struct Entry {
    i64 index;  // the column
    i64 entry;  // its position in the indices
};
class Entries { begin(), end() ... };

// What walks: the whole program, or one process of a pipeline, with its own slots.
class Run {
  public:
    bool good() const;

    // Bindings.
    i64 size(uint32_t axis) const;    // of a dynamic axis
    u64 symbol(uint32_t symbol) const;
    i64 length(uint32_t array, i64 row, uint32_t place);  // of a ragged axis' row
    i64 length_sum(uint32_t array);                       // of all its rows
    Entries entries(uint32_t axis);                       // of all rows of a sparse axis
    Entries entries(uint32_t axis, i64 row, uint32_t place);

    // Slots.
    u64 slot_u64(uint32_t slot) const;
    i64 slot_i64(uint32_t slot) const;
    bool slot_bool(uint32_t slot) const;
    void set_slot(uint32_t slot, i64 value);
    void set_slot(uint32_t slot, u64 value);
    void set_slot(uint32_t slot, bool value);
    // Element (r, c) of a view, once the tasks that write it are done.
    void load_slot(uint32_t place, uint32_t slot, uint32_t tensor, std::initializer_list<i64> lead,
                   i64 row, int64_t rows, i64 col, int64_t cols, i64 r, i64 c);

    // Explicit edges forget: an iteration begins.
    void reset(std::initializer_list<uint32_t> edges);

    // What follows is evaluated at this place.
    void at(uint32_t place);
};

// A scope of section 15 of ptowsp.h, for as long as it lives.
enum ScopeKind { PARALLEL, SEQUENTIAL };
class Scope {
  public:
    Scope(Run &run, ScopeKind kind);
    ~Scope();
};

// A task being made: axis arguments, tiles, scalars, then keys and edges, then submit. It is small
// (what it gathers is in the run), as a function may have thousands of them.
class Task {
  public:
    Task(Run &run, uint32_t kernel, uint32_t place);
    void axis(i64 value);
    // A tile of rows x cols from (row, col) of the matrix at the leading indices; 0: up to the edge.
    void tile(uint32_t tensor, Access access, std::initializer_list<i64> lead, i64 row, int64_t rows,
              i64 col, int64_t cols);
    void scalar(i64 value);
    void scalar(u64 value);
    void scalar(bool value);
    i64 arg(uint32_t i) const;  // args[i], 0 if there are fewer; once all arguments are there
    void dispatch(i64 key);     // each also of u64 and bool
    void priority(i64 key);
    void stream(i64 key);
    void after(std::initializer_list<uint32_t> edges);   // explicit edges that end here
    void before(std::initializer_list<uint32_t> edges);  // those that begin here
    void submit();
};

}  // namespace wsp

#endif

// The words of aicpu/expand.cpp, in a form that asks a test for everything (host.h).

#ifndef WSP_EXPAND_H
#define WSP_EXPAND_H

#include <functional>
#include <initializer_list>

#include "host.h"
#include "wsp_number.h"

namespace wsp {

enum Access { READ = 1, WRITE = 2, READ_WRITE = 3 };
enum Compare { EQ, NE, LT, LE, GT, GE };

class Run {
  public:
    explicit Run(words_host *host) : host_(host) {
        for (uint32_t i = 0; i < WORDS_SLOT_MAX; i++) {
            slots_[i] = host->slots[i];
        }
    }
    Run(Run &outer, const char *name) : Run(outer.host_) {
        walker_ = name;
        for (uint32_t i = 0; i < WORDS_SLOT_MAX; i++) {
            slots_[i] = outer.slots_[i];
        }
    }
    bool good() const {
        return is_good_;
    }
    void at(uint32_t place) {
        place_ = place;
    }
    i64 size(uint32_t axis) const {
        return host_->size(host_->user, axis);
    }
    u64 symbol(uint32_t symbol) const {
        return host_->symbol(host_->user, symbol);
    }
    uint64_t element(uint32_t array, i64 index) {
        uint64_t value = 0;
        if (is_good_ && !host_->element(host_->user, array, index.value(), &value)) {
            fail();
        }
        return value;
    }
    u64 array_u64(uint32_t array, i64 index) {
        return element(array, index);
    }
    i64 array_i64(uint32_t array, i64 index) {
        return i64::of_bits(element(array, index));
    }
    bool array_bool(uint32_t array, i64 index) {
        return element(array, index) != 0;
    }
    i64 length(uint32_t array, i64 row, uint32_t place) {
        at(place);
        return i64::of_bits(element(array, row));
    }
    i64 length_sum(uint32_t array) {
        return host_->length_sum(host_->user, array);
    }
    void check_replicas(uint32_t axis, uint32_t place) {
        at(place);
        if (is_good_ && size(axis) == 0) {
            fail();
        }
    }
    class Entries;
    Entries entries(uint32_t axis);
    Entries entries(uint32_t axis, i64 row, uint32_t place);
    u64 slot_u64(uint32_t slot) const {
        return slots_[slot];
    }
    i64 slot_i64(uint32_t slot) const {
        return i64::of_bits(slots_[slot]);
    }
    bool slot_bool(uint32_t slot) const {
        return slots_[slot] != 0;
    }
    void set_slot(uint32_t slot, i64 value) {
        set_bits(slot, value.bits());
    }
    void set_slot(uint32_t slot, u64 value) {
        set_bits(slot, value.value());
    }
    void set_slot(uint32_t slot, bool value) {
        set_bits(slot, value);
    }
    template <typename T> void set_slot(uint32_t slot, T value) = delete;
    void load_slot(uint32_t place, uint32_t slot, uint32_t tensor, std::initializer_list<i64> lead,
                   i64 row, int64_t rows, i64 col, int64_t cols, i64 r, i64 c) {
        at(place);
        if (is_good_) {
            const words_view view = view_of(tensor, READ, lead, row, rows, col, cols);
            slots_[slot] = host_->load(host_->user, &view, r.value(), c.value());
        }
    }
    void reset(std::initializer_list<uint32_t> edges) {
        host_->reset(host_->user, edges.begin(), static_cast<uint32_t>(edges.size()));
    }
    void fail() {
        if (is_good_) {
            is_good_ = false;
            host_->fail(host_->user, place_);
        }
    }
    static words_view view_of(uint32_t tensor, Access access, std::initializer_list<i64> lead,
                              i64 row, int64_t rows, i64 col, int64_t cols) {
        words_view view = {
            tensor, static_cast<uint32_t>(access), 0, {0}, row.value(), rows, col.value(), cols};
        for (const i64 &index : lead) {
            view.lead[view.lead_count++] = index.value();
        }
        return view;
    }
    void keep_slots() const {
        for (uint32_t i = 0; i < WORDS_SLOT_MAX; i++) {
            host_->slots[i] = slots_[i];
        }
    }
    words_host *host() const {
        return host_;
    }
    const char *walker() const {
        return walker_;
    }

    words_task task;                              // that is being made
    std::function<void(uint32_t channel)> close;  // of a process
    uint32_t depth = 0;                           // of scopes
    uint32_t scopes = 0;                          // so far

  private:
    void set_bits(uint32_t slot, uint64_t bits) {
        if (is_good_) {
            slots_[slot] = bits;
        }
    }
    words_host *host_;
    const char *walker_ = "";
    uint64_t slots_[WORDS_SLOT_MAX];
    uint32_t place_ = 0;
    bool is_good_ = true;
};

class When {
  public:
    When(Run &run, uint32_t slot, Compare compare, i64 value)
        : holds_(holds(compare, run.slot_i64(slot).value(), value.value())) {
    }
    explicit operator bool() const {
        return holds_;
    }

  private:
    static bool holds(Compare compare, int64_t a, int64_t b) {
        const bool all[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};
        return all[compare];
    }
    bool holds_;
};

struct Entry {
    i64 index;
    i64 entry;
};

class Run::Entries {
  public:
    class Iterator {
      public:
        Iterator(Run &run, uint32_t axis, int64_t at) : run_(run), axis_(axis), at_(at) {
        }
        bool operator!=(const Iterator &end) const {
            return at_ < end.at_ && run_.good();
        }
        Iterator &operator++() {
            at_++;
            return *this;
        }
        Entry operator*() const {
            return Entry{run_.host()->index(run_.host()->user, axis_, at_), at_};
        }

      private:
        Run &run_;
        uint32_t axis_;
        int64_t at_;
    };
    Entries(Run &run, uint32_t axis, const int64_t *row) : run_(run), axis_(axis) {
        if (run.good() && !run.host()->range(run.host()->user, axis, row, &first_, &end_)) {
            run.fail();
        }
    }
    Iterator begin() const {
        return Iterator(run_, axis_, first_);
    }
    Iterator end() const {
        return Iterator(run_, axis_, end_);
    }

  private:
    Run &run_;
    uint32_t axis_;
    int64_t first_ = 0, end_ = 0;
};

inline Run::Entries Run::entries(uint32_t axis) {
    return Entries(*this, axis, nullptr);
}
inline Run::Entries Run::entries(uint32_t axis, i64 row, uint32_t place) {
    at(place);
    const int64_t value = row.value();
    return Entries(*this, axis, &value);
}

enum ScopeKind { PARALLEL, SEQUENTIAL };

class Scope {
  public:
    Scope(Run &run, ScopeKind) : run_(run) {
        run.depth++;
        run.scopes++;
    }
    ~Scope() {
        run_.depth--;
    }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

  private:
    Run &run_;
};

class Task {
  public:
    Task(Run &run, uint32_t kernel, uint32_t place) : run_(run) {
        run.at(place);
        run.task = words_task();
        run.task.kernel = kernel;
        run.task.place = place;
        run.task.walker = run.walker();
    }
    void axis(i64 value) {
        add(value.bits());
        run_.task.axis_count++;
    }
    void tile(uint32_t tensor, Access access, std::initializer_list<i64> lead, i64 row,
              int64_t rows, i64 col, int64_t cols) {
        words_view &view = run_.task.tiles[run_.task.tile_count++];
        view = Run::view_of(tensor, access, lead, row, rows, col, cols);
        uint64_t shape[2] = {0, 0};
        if (run_.good()) {
            run_.host()->shape(run_.host()->user, &view, &shape[0], &shape[1]);
        }
        add(shape[0]);
        add(shape[1]);
    }
    void scalar(i64 value) {
        scalar_bits(value.bits());
    }
    void scalar(u64 value) {
        scalar_bits(value.value());
    }
    void scalar(bool value) {
        scalar_bits(value);
    }
    template <typename T> void scalar(T value) = delete;
    i64 arg(uint32_t i) const {
        return i64::of_bits(i < count() ? run_.task.args[i] : 0);
    }
    void dispatch(i64 key) {
        run_.task.dispatch = key.bits();
    }
    void dispatch(u64 key) {
        run_.task.dispatch = key.value();
    }
    void dispatch(bool key) {
        run_.task.dispatch = key;
    }
    template <typename T> void dispatch(T value) = delete;
    void priority(i64 key) {
        run_.task.priority = key.bits();
    }
    void priority(u64 key) {
        run_.task.priority = key.value();
    }
    void priority(bool key) {
        run_.task.priority = key;
    }
    template <typename T> void priority(T value) = delete;
    void stream(i64 key) {
        run_.task.stream = key.bits();
    }
    void stream(u64 key) {
        run_.task.stream = key.value();
    }
    void stream(bool key) {
        run_.task.stream = key;
    }
    template <typename T> void stream(T value) = delete;
    void after(std::initializer_list<uint32_t> edges) {
        run_.task.after_count = static_cast<uint32_t>(edges.size());
    }
    void before(std::initializer_list<uint32_t> edges) {
        run_.task.before_count = static_cast<uint32_t>(edges.size());
    }
    void submit() {
        if (run_.good()) {
            run_.host()->task(run_.host()->user, &run_.task);
        }
    }

  private:
    uint32_t count() const {
        return run_.task.axis_count + 2 * run_.task.tile_count + run_.task.scalar_count;
    }
    void add(uint64_t bits) {
        run_.task.args[next_++] = bits;
    }
    void scalar_bits(uint64_t bits) {
        add(bits);
        run_.task.scalar_count++;
    }
    Run &run_;
    uint32_t next_ = 0;
};

}  // namespace wsp

#endif

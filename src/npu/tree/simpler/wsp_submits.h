// A walk's tasks as submits of a runtime that orders by ids alone: which submit stands for a task, and
// which earlier ones it waits for. How one is made is the runtime's (wsp_simpler_target.h).
//
// The rules are the library's (pwsp_precedence, pwsp_deps); their tokens are sets of submits. Where a submit
// would wait for more than WAIT_MAX others, dummy submits stand for WAIT_MAX each.
//
// Tasks that follow one another, wait for the same and not for each other, and differ by constant steps
// are the blocks of one submit: block_max at most. It is made once a task is not one more of them, or
// something waits for it; until then it has a number. Tasks of MIX have FIFOs, and never become blocks.
//
// Slots are loaded when something needs their value. A condition on a slot that nothing has read goes to
// the runtime with its tasks, which wait for the writers of the element. The slot has the value at its
// load's place in the program, so it is read before a task overwrites the element. An error in a task
// under such a condition counts if the condition holds.

#ifndef WSP_SUBMITS_H
#define WSP_SUBMITS_H

#include <algorithm>
#include <cinttypes>

#include "wsp_ancestors.h"
#include "wsp_expand.h"

namespace wsp {

class Submits : public Target {
  public:
    static constexpr uint32_t WAIT_MAX = 16, TILE_MAX = PTOWSP_TASK_TILE_MAX,
                              SCALAR_MAX = PTOWSP_TASK_AXIS_MAX + PTOWSP_TASK_SCALAR_MAX;
    static constexpr int64_t LENGTH_MAX = UINT32_MAX;  // of strides and tensors, in elements

    Submits(const wsp_program &program, uint32_t block_max)
        : program_(program), block_max_(block_max), memory_(pwsp_blocks_begin(&blocks_, &under_)) {
    }
    ~Submits() override {
        pwsp_blocks_free(&blocks_);
    }

    bool begin(const pwsp_bound_tensor *tensors) {
        facts_.begin(program_);
        tensors_ = tensors;
        submission_.clear();
        if (!pwsp_precedence_init(&order_, &memory_, &facts_.timed()) ||
            !pwsp_deps_init(&deps_, &memory_, facts_.timed().tensor_count) ||
            !pwsp_deps_reserve_tiles(&deps_, TILE_MAX + 1)) {
            return no_memory();
        }
        for (uint32_t i = 1; i < program_.tensor_count && good(); i++) {
            check_tensor(i, tensors[i]);
        }
        const pwsp_token_ops ops = {is_dead, visit, keep, drop, merge, this, true};
        order_.ops = deps_.ops = ops;
        pwsp_precedence_begin(&order_);
        pwsp_deps_begin_data(&deps_, &facts_.timed(), tensors_);
        return good();
    }

    void fail(ptowsp_status status, uint64_t index, const char *text) override {
        if (!is_conditional_ || condition_holds()) {
            failure_.set(status, index, "%s", text);
        }
    }
    const Failure &failure() const {
        return failure_;
    }
    Submission *open() override {
        submission_.clear();
        return &submission_;
    }

    void submit(Submission *submission) override {
        pwsp_arrival arrival = facts_.arrival_of(*submission);
        Region tiles[TILE_MAX + 1];
        read_overwritten(*submission);
        const bool is_pending = is_conditional_ && deferred_[condition_.slot].state == UNREAD;
        if (is_conditional_ && !is_pending && !condition_holds()) {
            return;
        }
        if (is_pending) {  // an operand of the condition is one more tile that is read
            std::copy(arrival.tiles, arrival.tiles + arrival.tile_count, tiles);
            tiles[arrival.tile_count++] = deferred_[condition_.slot].element;
            arrival.tiles = tiles;
        }
        waits_.clear();
        pwsp_precedence_wait(&order_, &arrival, true);
        if (!pwsp_deps_query(&deps_, arrival.tiles, arrival.tile_count)) {
            no_memory();
            return;
        }
        fold(&waits_);
        if (is_pending || !may_join(*submission)) {
            flush();
            open_group(*submission);
            group_.is_conditional = is_pending;
            group_.condition = condition_;
            group_.operand = is_pending ? deferred_[condition_.slot].element : Region();
        }
        group_.count++;
        const pwsp_token token = {0, new_set({group_.number})};
        if (!pwsp_deps_add(&deps_, arrival.tiles, arrival.tile_count, &token)) {
            no_memory();
        }
        pwsp_precedence_tell(&order_, &arrival, true, &token);
        drop(this, &token);
    }

    void scope_begin(bool is_parallel) override {
        mark(is_parallel ? PWSP_MARK_PARALLEL : PWSP_MARK_SEQUENTIAL, nullptr, 0);
    }
    void scope_end() override {
        mark(PWSP_MARK_END, nullptr, 0);
    }
    void reset(const uint32_t *edges, uint32_t count) override {
        mark(PWSP_MARK_RESET, edges, count);
    }

    // A dummy waits for the writers, and reading waits for it.
    bool await_element(const Region &element) override {
        waits_.clear();
        pwsp_deps_query_load(&deps_, &element);
        if (!waits_.empty()) {
            await(submit_dummy(waits_), element);
        }
        return good();
    }

    // -- slots --

    // A slot whose element has no writer is loaded at once.
    bool defer(uint32_t slot, const Region &element) override {
        waits_.clear();
        pwsp_deps_query_load(&deps_, &element);
        forget(slot);
        if (!waits_.empty()) {
            deferred_.resize(std::max(deferred_.size(), slot + size_t(1)));
            deferred_[slot].element = element;
            deferred_[slot].state = UNREAD;
        }
        return !waits_.empty();
    }
    uint64_t deferred(uint32_t slot, uint64_t bits) override {
        return slot < deferred_.size() && deferred_[slot].state != FORGOTTEN ? read(slot) : bits;
    }
    void forget(uint32_t slot) override {
        if (slot < deferred_.size()) {
            deferred_[slot].state = FORGOTTEN;
        }
    }
    // The runtime compares elements as signed integers.
    bool condition_begin(const Condition &condition) override {
        const uint32_t slot = condition.slot;
        if (slot >= deferred_.size() || deferred_[slot].state != UNREAD) {
            return false;
        }
        const ptowsp_dtype dtype = tensors_[deferred_[slot].element.tensor].dtype;
        condition_ = condition;
        is_conditional_ = dtype == PTOWSP_BOOL || (dtype >= PTOWSP_I8 && dtype <= PTOWSP_I64);
        return is_conditional_;
    }
    void condition_end() override {
        is_conditional_ = false;
    }

  protected:
    // Submits have numbers, from 0.
    typedef List<uint32_t> Numbers;

    // Tasks of a kernel: the first one, and how far each is from the one before.
    struct Group {
        uint32_t number = 0, count = 0;  // 0: no group is open
        Submission first;
        uint64_t tile_steps[TILE_MAX];  // in elements
        uint32_t scalar_count;          // axes, then scalars
        uint64_t scalars[SCALAR_MAX], scalar_steps[SCALAR_MAX];
        Numbers waits;
        bool is_conditional;  // on an element that is read when the task is ready
        Condition condition;
        Region operand;  // of it
    };

    // Implemented for the runtime. A submit waits for at most WAIT_MAX earlier ones.
    virtual void launch(const Group &group) = 0;
    virtual void launch_dummy(uint32_t number, const Numbers &waits) = 0;
    virtual void await(uint32_t number, const Region &element) = 0;  // until data can be read

    // Makes the submit that is open.
    void flush() {
        if (group_.count > 0) {
            launch(group_);
            group_.count = 0;
        }
    }

    char *address_of(const Region &at) const {
        const pwsp_bound_tensor &tensor = tensors_[at.tensor];
        return tensor.data + offset_of(tensor, at) * static_cast<int64_t>(tensor.element_size);
    }

    // A stride of a dimension that has no second element is never used, but has to be positive.
    static int64_t stride_of(int64_t count, int64_t stride) {
        return count > 1 ? stride : 1;
    }

    void check_tensor(uint32_t i, const pwsp_bound_tensor &tensor) {
        const int64_t rows = stride_of(tensor.rows, tensor.row_stride),
                      cols = stride_of(tensor.cols, tensor.col_stride);
        const char *name = program_.tensors[i].name;
        if (!tensor.is_bound) {
            return;
        }
        if (rows < 1 || cols < 1 || rows > LENGTH_MAX || cols > LENGTH_MAX) {
            failure_.set(PTOWSP_UNSUPPORTED, i,
                         "tensor %s: strides %" PRId64 " and %" PRId64
                         ": PTO Runtime takes 1 to 4294967295",
                         name, tensor.row_stride, tensor.col_stride);
        } else if (tensor.high - tensor.low >= LENGTH_MAX) {
            failure_.set(PTOWSP_UNSUPPORTED, i,
                         "tensor %s: %" PRId64
                         " elements from its first to its last: PTO Runtime takes up to 4294967295",
                         name, tensor.high - tensor.low + 1);
        }
    }

    // Submits that no other waits for. Once they have ended, all have.
    Numbers last_submits() {
        Numbers last;
        flush();
        for (uint32_t i = 0; i < next_; i++) {
            if (!is_awaited_[i]) {
                last.push_back(i);
            }
        }
        fold(&last);
        return last;
    }

    const wsp_program &program_;
    const pwsp_bound_tensor *tensors_ = nullptr;
    Failure failure_;

  private:
    struct Set {
        Numbers submits;
        uint32_t references = 0;
    };

    bool no_memory() {
        failure_.set(PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "run: out of memory");
        return false;
    }

    void mark(pwsp_mark_kind kind, const uint32_t *edges, uint32_t count) {
        const pwsp_mark mark = {kind, 0, count, edges};
        pwsp_precedence_mark(&order_, &mark);
    }

    // -- tokens --

    static Submits &of(void *user) {
        return *static_cast<Submits *>(user);
    }
    static bool is_dead(void *, const pwsp_token *) {
        return false;  // the runtime knows
    }
    // The folded set is kept, so that later waits reuse its dummies.
    static void visit(void *user, const pwsp_token *token) {
        Submits &me = of(user);
        if (token->task != PTOWSP_NO_INDEX) {
            Numbers &submits = me.sets_[token->task].submits;
            me.fold(&submits);
            me.waits_.append(submits.begin(), submits.end());
        }
    }
    static void keep(void *user, const pwsp_token *token) {
        if (token->task != PTOWSP_NO_INDEX) {
            of(user).sets_[token->task].references++;
        }
    }
    static void drop(void *user, const pwsp_token *token) {
        Submits &me = of(user);
        if (token->task != PTOWSP_NO_INDEX && --me.sets_[token->task].references == 0) {
            me.free_sets_.push_back(static_cast<uint32_t>(token->task));
        }
    }
    // A set that others hold as well stays as it is.
    static void merge(void *user, pwsp_token *into, const pwsp_token *other) {
        Submits &me = of(user);
        if (me.sets_[into->task].references > 1) {
            const pwsp_token made = {0, me.new_set(me.sets_[into->task].submits)};
            drop(user, into);
            *into = made;
        }
        Numbers &all = me.sets_[into->task].submits;
        for (uint32_t submit : me.sets_[other->task].submits) {
            if (all.empty() || all.back() != submit) {
                all.push_back(submit);
            }
        }
    }

    uint32_t new_set(Numbers submits) {
        uint32_t set = static_cast<uint32_t>(sets_.size());
        if (free_sets_.empty()) {
            sets_.emplace_back();
        } else {
            set = free_sets_.back();
            free_sets_.pop_back();
        }
        sets_[set].submits = std::move(submits);
        sets_[set].references = 1;
        return set;
    }

    // At most WAIT_MAX different ones are left, and none that another implies: dummies stand for the others.
    void fold(Numbers *submits) {
        std::sort(submits->begin(), submits->end());
        submits->resize(
            static_cast<size_t>(std::unique(submits->begin(), submits->end()) - submits->begin()));
        ancestors_.prune(next_, submits);
        while (submits->size() > WAIT_MAX) {
            Numbers folded;
            for (size_t i = 0; i < submits->size(); i += WAIT_MAX) {
                const size_t end = std::min(submits->size(), i + WAIT_MAX);
                folded.push_back(submit_dummy(Numbers(submits->data() + i, submits->data() + end)));
            }
            *submits = std::move(folded);
        }
    }

    uint32_t submit_dummy(Numbers waits) {
        fold(&waits);
        flush_if_in(waits);
        launch_dummy(next_, waits);
        return number_of(waits);
    }

    // The number of a new submit.
    uint32_t number_of(const Numbers &waits) {
        ancestors_.add(next_, waits);
        for (uint32_t wait : waits) {
            is_awaited_[wait] = 1;
        }
        is_awaited_.push_back(0);
        return next_++;
    }

    void flush_if_in(const Numbers &waits) {
        if (std::find(waits.begin(), waits.end(), group_.number) != waits.end()) {
            flush();
        }
    }

    // -- blocks --

    static uint64_t scalar_of(const wsp_task &task, uint32_t i) {
        return task.args[i < task.axis_count ? i : i + 2 * task.tile_count];
    }

    void open_group(const Submission &submission) {
        const wsp_task &task = submission.task;
        group_.number = number_of(waits_);
        group_.first = submission;
        group_.waits = waits_;
        group_.scalar_count = task.axis_count + task.scalar_count;
        for (uint32_t i = 0; i < group_.scalar_count; i++) {
            group_.scalars[i] = scalar_of(task, i);
        }
    }

    // Is a task one more block of the open submit? The second one makes the steps.
    bool may_join(const Submission &submission) {
        const wsp_task &task = submission.task;
        if (group_.count == 0 || group_.count >= block_max_ || group_.is_conditional ||
            task.kernel != group_.first.task.kernel ||
            program_.kernels[task.kernel].unit == PTOWSP_UNIT_MIX ||
            2 * group_.scalar_count > SCALAR_MAX || waits_.size() != group_.waits.size() ||
            !std::equal(waits_.begin(), waits_.end(), group_.waits.begin())) {
            return false;
        }
        for (uint32_t i = 0; i < task.tile_count; i++) {
            if (!is_tile_step(submission.tiles[i], group_.first.tiles[i], &group_.tile_steps[i])) {
                return false;
            }
        }
        for (uint32_t i = 0; i < group_.scalar_count; i++) {
            if (!is_step(&group_.scalar_steps[i], scalar_of(task, i) - group_.scalars[i])) {
                return false;
            }
        }
        return true;
    }

    bool is_tile_step(const Region &tile, const Region &first, uint64_t *step) const {
        if (tile.tensor != first.tensor || tile.rows != first.rows || tile.cols != first.cols) {
            return false;
        }
        const pwsp_bound_tensor &tensor = tensors_[tile.tensor];
        const int64_t distance = offset_of(tensor, tile) - offset_of(tensor, first);
        return distance >= 0 && distance <= UINT32_MAX &&
               is_step(step, static_cast<uint64_t>(distance));
    }

    bool is_step(uint64_t *step, uint64_t distance) const {
        *step = group_.count == 1 ? distance : *step;
        return distance == *step * group_.count;
    }

    // -- slots --

    enum State : uint8_t { FORGOTTEN, UNREAD, KNOWN };
    struct Deferred {
        Region element = Region();
        State state = FORGOTTEN;
        uint64_t value = 0;
    };

    uint64_t read(uint32_t slot) {
        Deferred &load = deferred_[slot];
        if (load.state == UNREAD) {
            load.state = KNOWN;
            load.value = await_element(load.element)
                             ? pwsp_view_load(&tensors_[load.element.tensor], &load.element)
                             : 0;
        }
        return load.value;
    }

    bool condition_holds() {
        return condition_.holds(static_cast<int64_t>(read(condition_.slot)));
    }

    // A tile lies within the bytes from its first to its last element, as strides are positive.
    bool is_overwritten(const Region &element, const Region &tile) const {
        const int64_t rows = tile.rows, cols = tile.cols;
        const Region last = {tile.tensor,        1, 1, tile.access, tile.lead, tile.row + rows - 1,
                             tile.col + cols - 1};
        const char *at = address_of(element), *first = address_of(tile), *end = address_of(last);
        return (tile.access & WRITE) && at + tensors_[element.tensor].element_size > first &&
               at < end + tensors_[tile.tensor].element_size;
    }
    void read_overwritten(const Submission &submission) {
        for (uint32_t slot = 0; slot < deferred_.size(); slot++) {
            for (uint32_t i = 0; i < submission.task.tile_count; i++) {
                if (deferred_[slot].state == UNREAD &&
                    is_overwritten(deferred_[slot].element, submission.tiles[i])) {
                    read(slot);
                }
            }
        }
    }

    const uint32_t block_max_;
    pwsp_memory under_ = pwsp_memory_make(nullptr, nullptr);
    pwsp_blocks blocks_ = pwsp_blocks();
    pwsp_memory memory_;
    Facts facts_;
    pwsp_precedence order_ = pwsp_precedence();
    pwsp_deps deps_ = pwsp_deps();
    Submission submission_;
    List<Set> sets_;
    List<uint32_t> free_sets_;
    Numbers waits_;  // of the task being submitted
    Group group_;
    uint32_t next_ = 0;
    Ancestors ancestors_;
    List<uint8_t> is_awaited_;     // by number
    List<Deferred> deferred_;      // by slot
    bool is_conditional_ = false;  // the tasks that come, on a deferred slot
    Condition condition_ = Condition();
};

}  // namespace wsp

#endif

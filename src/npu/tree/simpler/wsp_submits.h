// A walk's tasks as submits of a runtime that orders by ids alone: which submit stands for a task, and
// which earlier ones it waits for. How one is made is the runtime's (wsp_simpler_target.h).
//
// The rules are the library's (pwsp_precedence, pwsp_deps); their tokens are sets of submits. Where a submit
// would wait for more than WAIT_MAX others, dummy submits stand for WAIT_MAX each.
//
// Tasks that follow one another, wait for the same and not for each other, and differ by constant steps
// are the blocks of one submit: block_max at most. It is made once a task is not one more of them, or
// something waits for it; until then it has a number. Tasks of MIX have FIFOs, and never become blocks.

#ifndef WSP_SUBMITS_H
#define WSP_SUBMITS_H

#include <algorithm>

#include "wsp_expand.h"

namespace wsp {

class Submits : public Target {
  public:
    static constexpr uint32_t WAIT_MAX = 16, TILE_MAX = PTOWSP_TASK_TILE_MAX,
                              SCALAR_MAX = PTOWSP_TASK_AXIS_MAX + PTOWSP_TASK_SCALAR_MAX;

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
            !pwsp_deps_init(&deps_, &memory_, facts_.timed().tensor_count)) {
            return no_memory();
        }
        const pwsp_token_ops ops = {is_dead, visit, keep, drop, merge, this, true};
        order_.ops = deps_.ops = ops;
        pwsp_precedence_begin(&order_);
        pwsp_deps_begin_data(&deps_, &facts_.timed(), tensors_);
        return good();
    }

    void fail(ptowsp_status status, uint64_t index, const char *text) override {
        failure_.set(status, index, "%s", text);
    }
    const Failure &failure() const {
        return failure_;
    }
    Submission *open() override {
        submission_.clear();
        return &submission_;
    }

    void submit(Submission *submission) override {
        const pwsp_arrival arrival = facts_.arrival_of(*submission);
        waits_.clear();
        pwsp_precedence_wait(&order_, &arrival, true);
        if (!pwsp_deps_query(&deps_, arrival.tiles, arrival.tile_count)) {
            no_memory();
            return;
        }
        fold(&waits_);
        if (!may_join(*submission)) {
            flush();
            open_group(*submission);
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

    const wsp_program &program_;
    const pwsp_bound_tensor *tensors_ = nullptr;
    Failure failure_;

  private:
    struct Set {
        Numbers submits;
        uint32_t references = 0;
    };

    bool no_memory() {
        fail(PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "run: out of memory");
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

    // At most WAIT_MAX different ones are left: dummies stand for the others.
    void fold(Numbers *submits) {
        std::sort(submits->begin(), submits->end());
        submits->resize(
            static_cast<size_t>(std::unique(submits->begin(), submits->end()) - submits->begin()));
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
        group_.number = next_++;
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
        if (group_.count == 0 || group_.count >= block_max_ ||
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
};

}  // namespace wsp

#endif

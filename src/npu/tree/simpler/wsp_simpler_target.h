// The tasks of a program as submits of PTO Runtime (simpler, revision 6ebaf77 of 2026-08-22): the only
// file of an orchestration that depends on its interface.
//
//      aicpu_orchestration_entry          an AUTO scope of the runtime, depth 0
//        MANUAL                           the block of the transient tensors
//          MANUAL                         scope_tasks submits; then it ends, and the next one begins
//            view of each tile, FIFO, axes, scalars; ids of the tasks to wait for
//
// Dependences are ours, by explicit ids: in a MANUAL scope the runtime adds none. The rules are those of
// the library (pwsp_precedence, pwsp_deps); their tokens are sets of tasks. Where more than WAIT_MAX are
// waited for, dummy tasks stand for WAIT_MAX each. So a submit waits for at most WAIT_MAX tasks (and the
// block), and rings are bounded: see npu/simpler.c.
//
// A scope holds slots and memory of its tasks until it ends: so scopes are short. Nothing keeps the
// block alive but edges: each task that uses it has one.
//
// The orchestration's source includes it behind wsp_walk.cpp.

#ifndef WSP_SIMPLER_TARGET_H
#define WSP_SIMPLER_TARGET_H

#include <algorithm>
#include <cinttypes>

#include "wsp_expand.h"

namespace wsp {

// A kernel's ids; -1: it has none for such cores. One of MIX has all three, and FIFOs for each task.
struct SimplerKernel {
    int32_t cube, vector, second;
    uint32_t fifo_bytes;
};

class SimplerTarget final : public Target {
  public:
    static constexpr uint32_t WAIT_MAX = 16, TILE_MAX = PTOWSP_TASK_TILE_MAX;
    static constexpr int64_t LENGTH_MAX = UINT32_MAX;

    SimplerTarget(const wsp_program &program, const SimplerKernel *kernels, uint32_t scope_tasks)
        : program_(program), kernels_(kernels), scope_tasks_(scope_tasks),
          memory_(pwsp_blocks_begin(&blocks_, &under_)) {
    }
    ~SimplerTarget() override {
        pwsp_blocks_free(&blocks_);
    }

    // In a MANUAL scope. The block: its task, or none.
    bool begin(const pwsp_bound_tensor *tensors, const PTO2TaskId *block) {
        facts_.begin(program_);
        tensors_ = tensors;
        block_ = block;
        submission_.clear();
        for (uint32_t i = 1; i < program_.tensor_count && good(); i++) {
            check_tensor(i);
        }
        if (!pwsp_precedence_init(&order_, &memory_, &facts_.timed()) ||
            !pwsp_deps_init(&deps_, &memory_, facts_.timed().tensor_count)) {
            return no_memory();
        }
        const pwsp_token_ops ops = {is_dead, visit, keep, drop, merge, this, true};
        order_.ops = deps_.ops = ops;
        pwsp_precedence_begin(&order_);
        pwsp_deps_begin_data(&deps_, &facts_.timed(), tensors_);
        left_ = scope_tasks_;
        rt_scope_begin(PTO2ScopeMode::MANUAL);
        return good();
    }
    void end() {
        rt_scope_end();
    }

    bool good() const override {
        return failure_.status == PTOWSP_OK && !rt_is_fatal();
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
        const pwsp_token token = {0, new_set({submit_task(*submission)})};
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

    // A dummy task waits for the writers, and reading what it "made" waits for it.
    bool await_element(const Region &element) override {
        waits_.clear();
        pwsp_deps_query_load(&deps_, &element);
        if (waits_.empty()) {
            return good();
        }
        const uint32_t one[1] = {1}, at[1] = {0};
        ChipTensor byte = make_tensor_external(address_of(element), one, 1, DataType::UINT8);
        byte.owner_task_id = submit_dummy(waits_);
        get_tensor_data<uint8_t>(byte, 1, at);
        return good();
    }

  private:
    // Tasks that are waited for.
    struct Set {
        List<PTO2TaskId> ids;
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

    static SimplerTarget &of(void *user) {
        return *static_cast<SimplerTarget *>(user);
    }
    static bool is_dead(void *, const pwsp_token *) {
        return false;  // the runtime skips ids of tasks that have retired
    }
    // What others wait for later is folded once.
    static void visit(void *user, const pwsp_token *token) {
        SimplerTarget &me = of(user);
        if (token->task != PTOWSP_NO_INDEX) {
            List<PTO2TaskId> &ids = me.sets_[token->task].ids;
            me.fold(&ids);
            me.waits_.append(ids.begin(), ids.end());
        }
    }
    static void keep(void *user, const pwsp_token *token) {
        if (token->task != PTOWSP_NO_INDEX) {
            of(user).sets_[token->task].references++;
        }
    }
    static void drop(void *user, const pwsp_token *token) {
        SimplerTarget &me = of(user);
        if (token->task != PTOWSP_NO_INDEX && --me.sets_[token->task].references == 0) {
            me.free_sets_.push_back(static_cast<uint32_t>(token->task));
        }
    }
    // A set that others hold as well stays as it is.
    static void merge(void *user, pwsp_token *into, const pwsp_token *other) {
        SimplerTarget &me = of(user);
        if (me.sets_[into->task].references > 1) {
            const pwsp_token made = {0, me.new_set(me.sets_[into->task].ids)};
            drop(user, into);
            *into = made;
        }
        const List<PTO2TaskId> &ids = me.sets_[other->task].ids;
        me.sets_[into->task].ids.append(ids.begin(), ids.end());
    }

    uint32_t new_set(List<PTO2TaskId> ids) {
        uint32_t set = static_cast<uint32_t>(sets_.size());
        if (free_sets_.empty()) {
            sets_.emplace_back();
        } else {
            set = free_sets_.back();
            free_sets_.pop_back();
        }
        sets_[set].ids = std::move(ids);
        sets_[set].references = 1;
        return set;
    }

    // At most WAIT_MAX different ids are left: dummy tasks stand for the others.
    void fold(List<PTO2TaskId> *ids) {
        const auto less = [](PTO2TaskId a, PTO2TaskId b) { return a.raw < b.raw; };
        const auto same = [](PTO2TaskId a, PTO2TaskId b) { return a.raw == b.raw; };
        std::sort(ids->begin(), ids->end(), less);
        ids->resize(
            static_cast<size_t>(std::unique(ids->begin(), ids->end(), same) - ids->begin()));
        while (ids->size() > WAIT_MAX) {
            List<PTO2TaskId> folded;
            for (size_t i = 0; i < ids->size(); i += WAIT_MAX) {
                const size_t end = std::min(ids->size(), i + WAIT_MAX);
                folded.push_back(
                    submit_dummy(List<PTO2TaskId>(ids->data() + i, ids->data() + end)));
            }
            *ids = std::move(folded);
        }
    }

    // -- submits --

    // Each takes a slot of the ring until its scope has ended.
    void stream() {
        if (left_ == 0) {
            rt_scope_end();
            rt_scope_begin(PTO2ScopeMode::MANUAL);
            left_ = scope_tasks_;
        }
        left_--;
    }

    PTO2TaskId submit_dummy(List<PTO2TaskId> ids) {
        fold(&ids);
        stream();
        CoreTaskArgs args;
        args.set_dependencies(ids.data(), static_cast<uint32_t>(ids.size()));
        return rt_submit_dummy_task(args).task_id();
    }

    PTO2TaskId submit_task(const Submission &submission) {
        const wsp_task &task = submission.task;
        const SimplerKernel &kernel = kernels_[task.kernel];
        fold(&waits_);
        stream();
        CoreTaskArgs args;
        bool is_in_block = false;
        for (uint32_t i = 0; i < task.tile_count; i++) {
            const Region &tile = submission.tiles[i];
            is_in_block = is_in_block || program_.tensors[tile.tensor].is_transient;
            tiles_[i] = view_of(tile);
            // An existing OUTPUT has never run there; INOUT has.
            tile.access &WRITE ? args.add_inout(tiles_[i]) : args.add_input(tiles_[i]);
        }
        const uint32_t fifo_shape[1] = {kernel.fifo_bytes};
        const TensorCreateInfo fifo(fifo_shape, 1, DataType::UINT8);
        if (kernel.fifo_bytes) {
            args.add_output(fifo);
        }
        for (uint32_t i = 0; i < task.axis_count; i++) {
            args.add_scalar(task.args[i]);
        }
        for (uint32_t i = 0; i < task.scalar_count; i++) {
            args.add_scalar(task.args[task.axis_count + 2 * task.tile_count + i]);
        }
        if (is_in_block && block_) {
            waits_.push_back(*block_);
        }
        args.set_dependencies(waits_.data(), static_cast<uint32_t>(waits_.size()));
        return launch(kernel, args);
    }

    static PTO2TaskId launch(const SimplerKernel &kernel, const CoreTaskArgs &args) {
        if (kernel.second >= 0) {
            const MixedKernels block = {kernel.cube, kernel.vector, kernel.second};
            return rt_submit_task(block, args).task_id();
        }
        return kernel.cube >= 0 ? rt_submit_aic_task(kernel.cube, args).task_id()
                                : rt_submit_aiv_task(kernel.vector, args).task_id();
    }

    // -- tensors --

    static DataType type_of(ptowsp_dtype dtype) {
        switch (dtype) {
        case PTOWSP_F16: return DataType::FLOAT16;
        case PTOWSP_BF16: return DataType::BFLOAT16;
        case PTOWSP_F32: return DataType::FLOAT32;
        case PTOWSP_I8: return DataType::INT8;
        case PTOWSP_I16: return DataType::INT16;
        case PTOWSP_I32: return DataType::INT32;
        case PTOWSP_I64: return DataType::INT64;
        case PTOWSP_U16: return DataType::UINT16;
        case PTOWSP_U32: return DataType::UINT32;
        case PTOWSP_U64: return DataType::UINT64;
        case PTOWSP_BOOL: return DataType::BOOL;
        default: return DataType::UINT8;  // U8; npu/simpler.c refuses F64
        }
    }

    // A stride of a dimension that has no second element is never used, but has to be positive.
    static int64_t stride_of(int64_t count, int64_t stride) {
        return count > 1 ? stride : 1;
    }

    void check_tensor(uint32_t i) {
        const pwsp_bound_tensor &tensor = tensors_[i];
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

    void *address_of(const Region &at) const {
        const pwsp_bound_tensor &tensor = tensors_[at.tensor];
        return tensor.data + offset_of(tensor, at) * static_cast<int64_t>(tensor.element_size);
    }

    // The matrix of the leading indices, and in it the tile.
    ChipTensor view_of(const Region &at) const {
        const pwsp_bound_tensor &tensor = tensors_[at.tensor];
        const uint32_t shape[2] = {static_cast<uint32_t>(tensor.rows),
                                   static_cast<uint32_t>(tensor.cols)};
        const uint32_t strides[2] = {
            static_cast<uint32_t>(stride_of(tensor.rows, tensor.row_stride)),
            static_cast<uint32_t>(stride_of(tensor.cols, tensor.col_stride))};
        const uint32_t part[2] = {at.rows, at.cols};
        const uint32_t first[2] = {static_cast<uint32_t>(at.row), static_cast<uint32_t>(at.col)};
        char *matrix = tensor.data + at.lead * static_cast<int64_t>(tensor.element_size);
        return make_tensor_strided(matrix, shape, strides, 2, type_of(tensor.dtype))
            .view(part, first);
    }

    const wsp_program &program_;
    const SimplerKernel *kernels_;
    uint32_t scope_tasks_, left_ = 0;
    pwsp_memory under_ = pwsp_memory_make(nullptr, nullptr);
    pwsp_blocks blocks_ = pwsp_blocks();
    pwsp_memory memory_;
    Facts facts_;
    pwsp_precedence order_ = pwsp_precedence();
    pwsp_deps deps_ = pwsp_deps();
    const pwsp_bound_tensor *tensors_ = nullptr;
    const PTO2TaskId *block_ = nullptr;
    Failure failure_;
    Submission submission_;
    ChipTensor tiles_[TILE_MAX];
    List<Set> sets_;
    List<uint32_t> free_sets_;
    List<PTO2TaskId> waits_;  // of the task being submitted
};

// -- the entry ------------------------------------------------------------------------------------

// The first argument has the bindings as words (wsp_words.h); the others are memory that these name.
class SimplerArgs final : public WordArgs {
  public:
    explicit SimplerArgs(const ChipTaskArgs &args) : args_(args) {
    }
    uint64_t count() const override {
        return static_cast<uint64_t>(args_.tensor_count());
    }
    char *data(uint64_t i) const override {
        return args_.tensor(static_cast<int>(i)).ref().data_as<char>();
    }
    uint64_t size(uint64_t i) const override {
        return args_.tensor(static_cast<int>(i)).ref().buffer.size;
    }

  private:
    const ChipTaskArgs &args_;
};

inline PTO2OrchestrationConfig simpler_config(const ChipTaskArgs &args) {
    PTO2OrchestrationConfig config = PTO2OrchestrationConfig();
    config.expected_arg_count = args.tensor_count() + args.scalar_count();
    return config;
}

// Walks the program inside of the MANUAL scope. The block is allocated once its size is known.
inline void simpler_walk(const wsp_program &program, Bindings *bindings, SimplerTarget *target) {
    const uint64_t bytes = bindings->transient_bytes();
    PTO2TaskId block = PTO2TaskId();
    if (bytes) {
        const uint32_t shape[1] = {static_cast<uint32_t>(bytes)};
        const TensorCreateInfo info(shape, 1, DataType::UINT8);
        const TaskOutputTensors made = alloc_tensors(info);
        if (made.size() == 0) {
            return;
        }
        block = made.task_id();
        if (bindings->bind_transients(made.get_ref(0).data_as<char>(), bytes) != PTOWSP_OK ||
            bindings->verify(PTOWSP_MODEL_UNIT) != PTOWSP_OK) {
            target->fail(bindings->failure.status, bindings->failure.index, bindings->failure.text);
            return;
        }
    }
    if (target->begin(reinterpret_cast<const pwsp_bound_tensor *>(bindings->table().tensors),
                      bytes ? &block : nullptr)) {
        const Plans plans(program, bindings->table(), *target);
        Run run(program, bindings->table(), *target);
        if (run.good()) {
            program.expand(run);
        }
    }
    target->end();
}

inline void simpler_run(const ChipTaskArgs &args, const SimplerKernel *kernels,
                        uint32_t scope_tasks) {
    const wsp_program &program = wsp_the_program;
    Bindings bindings(program);
    SimplerTarget target(program, kernels, scope_tasks);
    // Placed at no address in particular, which says how long the block is.
    char *nowhere = reinterpret_cast<char *>(static_cast<uintptr_t>(PTOWSP_TRANSIENT_ALIGN));
    const SimplerArgs words(args);
    if (!Words(program, words, &bindings).bind() ||
        bindings.bind_transients(nowhere, UINT64_MAX) != PTOWSP_OK ||
        bindings.verify(PTOWSP_MODEL_UNIT) != PTOWSP_OK) {
        rt_report_fatal(9, "%s", bindings.failure.text);
        return;
    }
    if (bindings.transient_bytes() > UINT32_MAX) {
        rt_report_fatal(
            9, "transient tensors take %" PRIu64 " bytes, more than a tensor of PTO Runtime",
            bindings.transient_bytes());
        return;
    }
    rt_scope_begin(PTO2ScopeMode::MANUAL);
    simpler_walk(program, &bindings, &target);
    rt_scope_end();
    if (target.failure().status != PTOWSP_OK) {
        rt_report_fatal(9, "%s", target.failure().text);
    }
}

}  // namespace wsp

#endif

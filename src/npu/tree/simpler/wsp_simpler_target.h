// The submits of a program to PTO Runtime (simpler, revision 6ebaf77 of 2026-08-22): the only file of an
// orchestration that depends on its interface. The orchestration's source includes it after wsp_walk.cpp.
//
//      aicpu_orchestration_entry          an AUTO scope of the runtime, depth 0
//        MANUAL                           the block of the transient tensors
//          MANUAL                         scope_tasks submits; then it ends, and the next one begins
//            view of each tile, FIFO, axes, scalars; ids of the submits to wait for
//
// Dependences are ours (wsp_submits.h), by explicit ids: in a MANUAL scope the runtime adds none. A scope
// holds slots and memory of its tasks until it ends: so scopes are short. The block's scope ends after the
// last submit, while tasks still run: a dummy that waits for them all keeps it.

#ifndef WSP_SIMPLER_TARGET_H
#define WSP_SIMPLER_TARGET_H

#include "wsp_expand.h"

#ifndef WSP_SIMPLER_SET_BLOCKS  // set_core_num on A5
#define WSP_SIMPLER_SET_BLOCKS set_block_num
#endif

namespace wsp {

// A kernel's ids; -1: it has none for such cores. One of MIX has all three, and FIFOs for each task.
struct SimplerKernel {
    int32_t cube, vector, second;
    uint32_t fifo_bytes;
};

struct SimplerOptions {
    uint32_t scope_tasks;  // submits of a scope
    uint32_t block_max;    // tasks of a submit; 1: each is one
};

class SimplerTarget final : public Submits {
  public:
    static_assert(TILE_MAX < 32 && SCALAR_MAX <= 16, "a submit takes 32 tensors and 16 scalars");

    SimplerTarget(const wsp_program &program, const SimplerKernel *kernels, SimplerOptions options)
        : Submits(program, options.block_max), kernels_(kernels),
          scope_tasks_(options.scope_tasks) {
    }

    // In a MANUAL scope. The block: its task, or none.
    bool begin(const pwsp_bound_tensor *tensors, const PTO2TaskId *block) {
        block_ = block;
        left_ = scope_tasks_;
        rt_scope_begin(PTO2ScopeMode::MANUAL);
        return good() && Submits::begin(tensors);
    }
    // A last dummy keeps the block until all tasks have ended.
    void end() {
        flush();
        if (block_ && good()) {
            const Numbers last = last_submits();
            CoreTaskArgs args;
            stream();
            wait_for(&args, last, block_);
            rt_submit_dummy_task(args);
        }
        rt_scope_end();
    }
    bool good() const override {
        return failure_.status == PTOWSP_OK && !rt_is_fatal();
    }

  protected:
    void launch(const Group &group) override {
        const wsp_task &task = group.first.task;
        const SimplerKernel &kernel = kernels_[task.kernel];
        CoreTaskArgs args;
        stream();
        for (uint32_t i = 0; i < task.tile_count; i++) {
            const Region &tile = group.first.tiles[i];
            tiles_[i] = group.count > 1 && group.tile_steps[i]
                            ? blocks_of(tile, group.count, group.tile_steps[i])
                            : view_of(tile);
            // An existing OUTPUT has never run there; INOUT has.
            tile.access &WRITE ? args.add_inout(tiles_[i]) : args.add_input(tiles_[i]);
        }
        const uint32_t fifo_shape[1] = {kernel.fifo_bytes};
        const TensorCreateInfo fifo(fifo_shape, 1, DataType::UINT8);
        if (kernel.fifo_bytes) {
            args.add_output(fifo);
        }
        for (uint32_t i = 0; i < group.scalar_count; i++) {
            args.add_scalar(group.scalars[i]);
        }
        if (group.count > 1) {
            for (uint32_t i = 0; i < group.scalar_count; i++) {
                args.add_scalar(group.scalar_steps[i]);
            }
            args.launch_spec.WSP_SIMPLER_SET_BLOCKS(group.count);
        }
        CoreTaskPredicate predicate = CoreTaskPredicate();
        if (group.is_conditional) {
            const Region &element = group.operand;
            element_ = scalar_at(element, type_of(tensors_[element.tensor].dtype));
            point_to(predicate.operand.tensor, element_);
            predicate.operand.ndims = 1;
            predicate.operand.indices[0] = 0;
            predicate.op = op_of<decltype(predicate.op)>(group.condition.compare);
            predicate.target = group.condition.value;
            args.set_predicate(predicate);
        }
        wait_for(&args, group.waits);
        ids_of(group.number) = launch(kernel, args);
    }

    void launch_dummy(uint32_t number, const Numbers &waits) override {
        CoreTaskArgs args;
        stream();
        wait_for(&args, waits);
        ids_of(number) = rt_submit_dummy_task(args).task_id();
    }

    // The dummy is the owner of the data.
    void await(uint32_t number, const Region &element) override {
        const uint32_t at[1] = {0};
        ChipTensor byte = scalar_at(element, DataType::UINT8);
        byte.owner_task_id = ids_of(number);
        get_tensor_data<uint8_t>(byte, 1, at);
    }

  private:
    PTO2TaskId &ids_of(uint32_t number) {
        if (number >= ids_.size()) {
            ids_.resize(number + size_t(1));
        }
        return ids_[number];
    }

    // Each submit takes a slot of the ring until its scope has ended.
    void stream() {
        if (left_ == 0) {
            rt_scope_end();
            rt_scope_begin(PTO2ScopeMode::MANUAL);
            left_ = scope_tasks_;
        }
        left_--;
    }

    // The submit reads the ids where they are.
    void wait_for(CoreTaskArgs *args, const Numbers &waits, const PTO2TaskId *block = nullptr) {
        uint32_t count = 0;
        for (uint32_t number : waits) {
            waits_for_[count++] = ids_of(number);
        }
        if (block) {
            waits_for_[count++] = *block;
        }
        args->set_dependencies(waits_for_, count);
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

    ChipTensor scalar_at(const Region &element, DataType type) const {
        const uint32_t one[1] = {1};
        return make_tensor_external(address_of(element), one, 1, type);
    }

    // The operand of a predicate points to its tensor, or has it.
    static void point_to(const ChipTensor *&operand, const ChipTensor &tensor) {
        operand = &tensor;
    }
    static void point_to(ChipTensor &operand, const ChipTensor &tensor) {
        operand = tensor;
    }
    template <typename Op> static Op op_of(Compare compare) {
        const Op ops[] = {Op::EQ, Op::NE, Op::LT, Op::LE, Op::GT, Op::GE};  // as Compare
        return ops[compare];
    }

    // A tile of each block.
    ChipTensor blocks_of(const Region &at, uint32_t count, uint64_t step) const {
        const pwsp_bound_tensor &tensor = tensors_[at.tensor];
        const uint32_t shape[3] = {count, at.rows, at.cols};
        const uint32_t strides[3] = {
            static_cast<uint32_t>(step),
            static_cast<uint32_t>(stride_of(tensor.rows, tensor.row_stride)),
            static_cast<uint32_t>(stride_of(tensor.cols, tensor.col_stride))};
        return make_tensor_strided(address_of(at), shape, strides, 3, type_of(tensor.dtype));
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

    const SimplerKernel *kernels_;
    const uint32_t scope_tasks_;
    uint32_t left_ = 0;  // of the scope's submits
    const PTO2TaskId *block_ = nullptr;
    ChipTensor tiles_[TILE_MAX], element_;  // of the submit that is being made, as are waits_for_
    PTO2TaskId waits_for_[WAIT_MAX + 1];
    List<PTO2TaskId> ids_;  // by number
};

// -- the entry ------------------------------------------------------------------------------------

namespace {

// A recorded run (recording.h): its lines are the first argument, and the files that these name, but for
// the expected ones, are the others, in the order of the lines.
class SimplerRecording final : public BindingText {
  public:
    SimplerRecording(const ChipTaskArgs &args, Bindings *bindings)
        : BindingText(wsp_the_program), args_(args), bindings_(*bindings) {
        if (args.tensor_count() > 0) {
            text_.assign(data_of(0), size_of_arg(0));
        }
    }

    bool bind_all() {
        const std::string head = "ptowsp recording 1\nprogram ", ours = head + program_.hash + "\n";
        if (text_.compare(0, head.size(), head) != 0) {
            return fail("argument 0 has no bindings");
        } else if (text_.compare(0, ours.size(), ours) != 0) {
            return fail("the bindings are those of another program, or version");
        } else if (text_.find("\nend ") == std::string::npos) {
            return fail("the bindings are cut off");
        }
        for (const std::string &line : split(text_, '\n')) {
            std::string option, value, name, rest;
            cut(line, ' ', &option, &value);
            cut(value, '=', &name, &rest);
            const bool is_binding = option.compare(0, 2, "--") == 0 && option != "--model" &&
                                    option.compare(0, 8, "--expect") != 0;
            if (is_binding && !bind(option, name, rest)) {
                return false;
            }
        }
        return true;
    }

  private:
    const char *data_of(uint32_t i) const {
        return args_.tensor(static_cast<int>(i)).ref().data_as<char>();
    }
    uint64_t size_of_arg(uint32_t i) const {
        return args_.tensor(static_cast<int>(i)).ref().buffer.size;
    }

    // An argument may be longer than its file, whose size has a line.
    bool read(const std::string &file, Data *out_data) override {
        const size_t line = text_.find("\nfile " + file + " ");
        std::string size, rest;
        uint64_t count = 0;
        if (line != std::string::npos) {
            cut(text_.substr(line + file.size() + 7, 21), ' ', &size, &rest);
        }
        if (++last_ >= static_cast<uint32_t>(args_.tensor_count()) ||
            !parse_count(size, size_of_arg(last_), &count)) {
            return fail("an argument is not there, or is too short");
        }
        out_data->words = reinterpret_cast<uint64_t *>(const_cast<char *>(data_of(last_)));
        out_data->size = count;
        out_data->is_own = false;
        return true;
    }
    bool put(const std::string &, const ptowsp_binding &binding) override {
        return bindings_.bind(binding) == PTOWSP_OK;
    }
    bool fail(const std::string &what) override {
        bindings_.fail(PTOWSP_INVALID_PARAMS, last_, "bind: %s", what.c_str());
        return false;
    }

    const ChipTaskArgs &args_;
    Bindings &bindings_;
    std::string text_;
    uint32_t last_ = 0;  // of the arguments that are taken
};

}  // namespace

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
                        SimplerOptions options) {
    const wsp_program &program = wsp_the_program;
    Bindings bindings(program);
    SimplerTarget target(program, kernels, options);
    // Placed at an arbitrary address, to find the size of the block.
    char *nowhere = reinterpret_cast<char *>(static_cast<uintptr_t>(PTOWSP_TRANSIENT_ALIGN));
    SimplerRecording recording(args, &bindings);
    if (!recording.bind_all() || bindings.bind_transients(nowhere, UINT64_MAX) != PTOWSP_OK ||
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

// A program for PTO Runtime (simpler): the files of its tree, arranged as a scene test.
//
//      orchestration/NAME.cpp       the runtime's interface, the program, its kernels' ids
//      orchestration/tree/          expand.cpp and program.* unchanged, and the runtime they need
//      kernels/KERNEL.cpp           counts of arguments; its entry; the unchanged kernel
//      kernels/second/KERNEL.cpp    a kernel of MIX: the same for the second vector core
//      test_NAME.py, recording/     simpler_test.c; record.c
//
// The rest is the same in every such tree (tree/simpler). Two files of it know the runtime's interface,
// and name its revision.
//
// Rings. The entry of the runtime is depth 0, the block of transient tensors is at depth 1, tasks are at
// depth 2. A scope ends after W/4 submits, a fourth of the task window. The program proceeds if the
// contents of one scope fit. A submit waits for at most 16 tasks, the last one for the block as well.
// So these sizes suffice for any run. The size of the block may differ between runs:
//
//      task window  4   4                           W                 4
//      heap         -   the block                   W / 4 FIFOs       -      (rounded up to 1024)
//      dep pool     4   4                           17 * W / 4 + 1    4
//
// and with four times as much the next scopes are submitted while the last ones run. `ptowsp_tool
// dump rings` gives the smallest sizes for a run.

#include "kernels.h"

#include <stdio.h>

#define NPU_SIMPLER_WINDOW     1024u
#define NPU_SIMPLER_BLOCK_MAX  24u  // a submit for a third to all of a die's cores
#define NPU_SIMPLER_WINDOW_MIN 16u
#define NPU_SIMPLER_WINDOW_MAX 65536u
#define NPU_SIMPLER_ARG_MAX    255u  // of a run, besides the bindings

// -- unsupported features -------------------------------------------------------------------------

static bool npu_simpler_fail(npu_emitter *emitter, uint64_t index, const char *what,
                             const char *name, const char *why) {
    return npu_fail(emitter, PTOWSP_UNSUPPORTED, index, "%s%s%s for PTO Runtime%s%s", what,
                    *name ? " " : "", name, *why ? ": " : "", why);
}

// Named pools, starts and timing other than the usual ones are refused for every tree.
static bool npu_simpler_check_schedule(npu_emitter *emitter) {
    const ptowsp_schedule *s = &emitter->tables->schedule;
    const uint64_t none = PTOWSP_NO_INDEX;
    if (s->dispatch != PTOWSP_DISPATCH_ROUND_ROBIN &&
        s->dispatch != PTOWSP_DISPATCH_WORK_STEALING) {
        return npu_simpler_fail(emitter, none, "no dispatch by a key or a plan", "",
                                "it gives a ready task to any free core");
    } else if (s->issue != PTOWSP_ISSUE_DATAFLOW) {
        return npu_simpler_fail(emitter, none, "no issue in order", "",
                                "it runs tasks once they are ready");
    } else if (s->ready != PTOWSP_READY_FIFO) {
        return npu_simpler_fail(emitter, none, "no order of ready tasks but fifo", "", "");
    }
    return true;
}

// Collectives are refused for every tree.
static bool npu_simpler_check_kernels(npu_emitter *emitter) {
    for (uint32_t i = 1; i < emitter->tables->kernel_count; i++) {
        const ptowsp_kernel_info *kernel = &emitter->tables->kernels[i];
        if (!kernel->is_used) {
            continue;
        } else if (!kernel->is_tile_kernel) {
            return npu_simpler_fail(emitter, i, "no kernel", kernel->name,
                                    kernel->pto ? "it is a PTO-ISA source, and not a tile kernel"
                                                : "it is a C function, and not a tile kernel");
        } else if (kernel->fifos[0].slot_count > 2) {
            return npu_simpler_fail(emitter, i, "no kernel", kernel->name,
                                    "it preloads, and its FIFOs have more than two slots");
        }
    }
    return true;
}

static bool npu_simpler_check_tensor(npu_emitter *emitter, uint32_t i) {
    const ptowsp_tensor_desc *tensor = &emitter->tables->tensors[i].desc;
    uint64_t count = 1;
    for (uint32_t k = 0; k < tensor->rank; k++) {
        const bool is_known = tensor->shape[k] != PTOWSP_DYNAMIC;
        const uint64_t size = is_known ? (uint64_t)tensor->shape[k] : 1;
        count = size && count > UINT32_MAX / size ? (uint64_t)UINT32_MAX + 1 : count * size;
    }
    if (tensor->dtype == PTOWSP_F64) {
        return npu_simpler_fail(emitter, i, "no tensor", tensor->name, "it has no type for f64");
    }
    return count <= UINT32_MAX
               ? true
               : npu_fail(emitter, PTOWSP_LIMIT_EXCEEDED, i,
                          "tensor %s has 2^32 elements or more, beyond PTO Runtime's tensors",
                          tensor->name);
}

// The first axis of its name: a plan has several.
static bool npu_simpler_is_first_axis(const npu_emitter *emitter, uint32_t i) {
    const ptowsp_axis_info *axes = emitter->tables->axes;
    bool is_first = axes[i].name != NULL;
    for (uint32_t k = 1; is_first && k < i; k++) {
        is_first = !axes[k].name || strcmp(axes[k].name, axes[i].name) != 0;
    }
    return is_first;
}

// Arguments of an axis: indptr and indices; units, merges and where lanes begin in them.
static uint32_t npu_simpler_axis_args(const npu_emitter *emitter, uint32_t i) {
    const ptowsp_axis_kind kind = emitter->tables->axes[i].kind;
    return !npu_simpler_is_first_axis(emitter, i) ? 0u
           : kind == PTOWSP_AXIS_SPARSE           ? 2u
           : kind >= PTOWSP_AXIS_PLAN             ? 4u
                                                  : 0u;
}

// Arguments of any run besides the bindings. Unused bindings are recorded as well, but for tensors.
static uint32_t npu_simpler_arg_count(const npu_emitter *emitter) {
    const ptowsp_program_tables *t = emitter->tables;
    uint32_t count = 0;
    for (uint32_t i = 1; i < t->tensor_count; i++) {
        count += t->tensors[i].is_used && !t->tensors[i].is_transient;
    }
    for (uint32_t i = 1; i < t->array_count; i++) {
        count += !t->arrays[i].plan_axis;
    }
    for (uint32_t i = 1; i < t->axis_count; i++) {
        count += npu_simpler_axis_args(emitter, i);
    }
    return count;
}

static bool npu_simpler_check_bound(npu_emitter *emitter) {
    const uint32_t count = npu_simpler_arg_count(emitter);
    for (uint32_t i = 1; i < emitter->tables->tensor_count; i++) {
        if (emitter->tables->tensors[i].is_used && !npu_simpler_check_tensor(emitter, i)) {
            return false;
        }
    }
    return count <= NPU_SIMPLER_ARG_MAX
               ? true
               : npu_fail(emitter, PTOWSP_LIMIT_EXCEEDED, count,
                          "the program has %u bound tensors and arrays; PTO Runtime takes %u",
                          (unsigned)count, (unsigned)NPU_SIMPLER_ARG_MAX);
}

static bool npu_simpler_check_statements(npu_emitter *emitter) {
    for (uint32_t i = 0; i < emitter->tables->statement_count; i++) {
        const ptowsp_statement *s = &emitter->tables->statements[i];
        if (s->kind == PTOWSP_STATEMENT_PIPELINE) {
            return npu_simpler_fail(emitter, i, "no pipeline", s->name ? s->name : "", "");
        }
    }
    return true;
}

static bool npu_simpler_check_window(npu_emitter *emitter, uint32_t window) {
    const uint32_t wanted = emitter->tables->schedule.window;
    if (window && (window < NPU_SIMPLER_WINDOW_MIN || window > NPU_SIMPLER_WINDOW_MAX ||
                   (window & (window - 1)))) {
        return npu_fail(emitter, PTOWSP_INVALID_PARAMS, window,
                        "a task window is a power of two from %u to %u, and %u is not",
                        (unsigned)NPU_SIMPLER_WINDOW_MIN, (unsigned)NPU_SIMPLER_WINDOW_MAX,
                        (unsigned)window);
    }
    return window || wanted < NPU_SIMPLER_WINDOW_MAX
               ? true
               : npu_fail(emitter, PTOWSP_LIMIT_EXCEEDED, wanted,
                          "the schedule's window of %u tasks for PTO Runtime: a task window of %u "
                          "holds %u (task_window takes its place)",
                          (unsigned)wanted, (unsigned)NPU_SIMPLER_WINDOW_MAX,
                          (unsigned)NPU_SIMPLER_WINDOW_MAX - 1);
}

// The smallest power of two that holds the schedule's window, which counts tasks in flight.
static uint32_t npu_simpler_window(const npu_emitter *emitter, const ptowsp_npu_desc *desc) {
    const uint32_t wanted = emitter->tables->schedule.window;
    uint32_t window = NPU_SIMPLER_WINDOW_MIN;
    if (desc->task_window || !wanted) {
        return desc->task_window ? desc->task_window : NPU_SIMPLER_WINDOW;
    }
    while (window <= wanted) {  // one slot stays free
        window *= 2;
    }
    return window;
}

NPU_INTERNAL bool npu_simpler_check(npu_emitter *emitter, const ptowsp_npu_desc *desc) {
    if (desc->runtime == PTOWSP_NPU_OWN) {
        return true;
    } else if (desc->runtime != PTOWSP_NPU_SIMPLER) {
        return npu_fail(emitter, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "there is no runtime %d",
                        (int)desc->runtime);
    } else if (desc->run && ptowsp_run_program(desc->run) != emitter->program) {
        return npu_fail(emitter, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                        "the run to record is of another program");
    }
    emitter->is_simpler = true;
    return npu_simpler_check_window(emitter, desc->task_window) &&
           npu_simpler_check_statements(emitter) && npu_simpler_check_bound(emitter) &&
           npu_simpler_check_kernels(emitter) && npu_simpler_check_schedule(emitter);
}

// -- kernels --------------------------------------------------------------------------------------

static bool npu_simpler_is_used(const npu_emitter *emitter, uint32_t i) {
    return emitter->tables->kernels[i].is_used && emitter->kernel_files[i];
}

// A slot holds the largest tile that crosses.
static uint32_t npu_simpler_slot_bytes(const ptowsp_kernel_info *kernel) {
    const uint32_t a = kernel->fifos[0].slot_bytes, b = kernel->fifos[1].slot_bytes;
    return kernel->is_mixed ? ((a > b ? a : b) + 511) / 512 * 512 : 0;
}

NPU_INTERNAL npu_simpler_ids npu_simpler_kernel_ids(const npu_emitter *emitter, uint32_t kernel) {
    npu_simpler_ids ids = {-1, -1, -1, 0};
    int32_t next = 0;
    for (uint32_t i = 1; i <= kernel; i++) {
        const ptowsp_kernel_info *info = &emitter->tables->kernels[i];
        const bool is_used = npu_simpler_is_used(emitter, i);
        const bool is_mixed = info->unit == PTOWSP_UNIT_MIX;
        ids.cube = is_used && info->unit != PTOWSP_UNIT_VECTOR ? next++ : -1;
        ids.vector = is_used && info->unit != PTOWSP_UNIT_CUBE ? next++ : -1;
        ids.second = is_used && is_mixed ? next++ : -1;
        ids.slot_bytes = is_used ? npu_simpler_slot_bytes(info) : 0;
    }
    return ids;
}

static void npu_simpler_kernel(npu_emitter *emitter, uint32_t i, const npu_file *text) {
    const ptowsp_kernel_info *info = &emitter->tables->kernels[i];
    const char *name = npu_name(emitter, NPU_KERNEL, i);
    const uint32_t slot_bytes = npu_simpler_slot_bytes(info);
    npu_text out = {NULL, 0, 0, false};
    npu_print(&out,
              "#define WSP_SIMPLER_TILES   %u\n#define WSP_SIMPLER_AXES    %u\n"
              "#define WSP_SIMPLER_SCALARS %u\n",
              info->tile_count, info->axis_count, info->scalar_count);
    if (slot_bytes) {
        npu_print(&out, "#define WSP_SIMPLER_SLOT_BYTES %uu\n", slot_bytes);
    }
    npu_print(&out, "%s#include \"wsp_simpler_kernel.h\"\n\nWSP_SIMPLER_ENTRY(%s)\n\n",
              npu_kernel_is_on_a5(emitter) ? "#define WSP_TARGET_A5\n" : "", name);
    npu_write(&out, text->data, text->size);
    const uint32_t file = npu_add_file(emitter, &out, "kernels/%s.cpp", name);
    emitter->kernel_files[i] = emitter->status == PTOWSP_OK ? 1 + file : 0;
    if (slot_bytes) {
        npu_print(&out,
                  "// Kernel %s on the second vector core of a block. Generated.\n\n"
                  "#define WSP_SUBBLOCK 1\n#include \"../%s.cpp\"\n",
                  name, name);
        npu_add_file(emitter, &out, "kernels/second/%s.cpp", name);
    }
}

// -- the orchestration ----------------------------------------------------------------------------

static void npu_simpler_orchestration(npu_emitter *emitter, uint32_t window, uint32_t block_max,
                                      const char *name) {
    npu_text out = {NULL, 0, 0, false};
    npu_print(&out, "// Program ");
    npu_print_comment(&out, emitter->tables->name);
    npu_print(&out,
              " under PTO Runtime. Generated.\n\n"
              "%s#include \"pto_orchestration_api.h\"  // before all others\n\n"
              "#include \"tree/wsp_core.cpp\"\n"
              "#include \"tree/wsp_walk.cpp\"\n"
              "#include \"tree/wsp_simpler_target.h\"\n"
              "#include \"tree/program.cpp\"\n"
              "#include \"tree/expand.cpp\"\n\n"
              "namespace {\n\n"
              "// Ids in test_%s.py on cube and vector cores, bytes of the FIFOs of a task.\n"
              "const wsp::SimplerKernel simpler_kernels[] = {\n"
              "    {-1, -1, -1, 0},\n",
              npu_kernel_is_on_a5(emitter) ? "#define WSP_SIMPLER_SET_BLOCKS set_core_num\n" : "",
              name);
    for (uint32_t i = 1; i < emitter->names.count[NPU_KERNEL]; i++) {
        const npu_simpler_ids ids = npu_simpler_kernel_ids(emitter, i);
        npu_print(&out, "    {%d, %d, %d, %u},", (int)ids.cube, (int)ids.vector, (int)ids.second,
                  4 * ids.slot_bytes);
        npu_print(&out, "  // %s\n", npu_name(emitter, NPU_KERNEL, i));
    }
    npu_print(&out,
              "};\n\n"
              "// Submits of a scope, of the %u that the ring has; tasks of a submit.\n"
              "const wsp::SimplerOptions simpler_options = {%u, %u};\n\n"
              "}  // namespace\n\n"
              "extern \"C\" __attribute__((visibility(\"default\"))) PTO2OrchestrationConfig\n"
              "aicpu_orchestration_config(const ChipTaskArgs &args) {\n"
              "    return wsp::simpler_config(args);\n"
              "}\n\n"
              "extern \"C\" __attribute__((visibility(\"default\"))) void\n"
              "aicpu_orchestration_entry(const ChipTaskArgs &args) {\n"
              "    wsp::simpler_run(args, simpler_kernels, simpler_options);\n"
              "}\n",
              window, window / 4, block_max);
    npu_add_file(emitter, &out, "orchestration/%s.cpp", name);
}

// -- files ----------------------------------------------------------------------------------------

// Files of a tree, and where they are in a scene test.
static const char npu_simpler_places[][2][48] = {
    {"aicpu/expand.cpp", "orchestration/tree/"},
    {"aicpu/program.cpp", "orchestration/tree/"},
    {"aicpu/program.h", "orchestration/tree/"},
    {"aicpu/wsp_core.cpp", "orchestration/tree/"},
    {"aicpu/wsp_expand.h", "orchestration/tree/"},
    {"include/wsp_core.h", "orchestration/tree/"},
    {"include/wsp_abi.h", "orchestration/tree/"},
    {"include/wsp_list.h", "orchestration/tree/"},
    {"include/ptowsp.h", "orchestration/tree/"},
    {"simpler/wsp_walk.cpp", "orchestration/tree/"},
    {"simpler/wsp_simpler_target.h", "orchestration/tree/"},
    {"aicore/wsp_kernel.h", "kernels/"},
    {"include/wsp_abi.h", "kernels/"},
    {"include/wsp_list.h", "kernels/"},
    {"include/ptowsp.h", "kernels/"},
    {"simpler/wsp_simpler_kernel.h", "kernels/"},
    {"simpler/wsp_recording.py", ""},
    {"LICENSE", ""},
};

// A file of the tree, or a file that is the same in every tree. NULL: not found.
static const char *npu_simpler_find(const npu_file *files, uint32_t count, const char *path,
                                    size_t *out_size) {
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(files[i].path, path) == 0) {
            *out_size = files[i].size;
            return files[i].data;
        }
    }
    for (uint32_t i = 0; npu_fixed_at(i).path; i++) {
        if (strcmp(npu_fixed_at(i).path, path) == 0) {
            *out_size = npu_fixed_at(i).size;
            return npu_fixed_at(i).data;
        }
    }
    return NULL;
}

static void npu_simpler_copy(npu_emitter *emitter, const npu_file *files, uint32_t count) {
    for (size_t i = 0; i < sizeof npu_simpler_places / sizeof npu_simpler_places[0]; i++) {
        const char *from = npu_simpler_places[i][0], *name = strrchr(from, '/');
        npu_text text = {NULL, 0, 0, false};
        size_t size = 0;
        const char *data = npu_simpler_find(files, count, from, &size);
        PTOWSP_ASSERT(data);
        npu_write(&text, data, size);
        npu_add_file(emitter, &text, "%s%s", npu_simpler_places[i][1], name ? name + 1 : from);
    }
}

// The bytes of transient tensors in a run; UINT64_MAX without one.
static uint64_t npu_simpler_transients(npu_emitter *emitter, ptowsp_run *run) {
    ptowsp_transient_sizes sizes;
    memset(&sizes, 0, sizeof sizes);
    if (run && emitter->tables->transient_count && emitter->status == PTOWSP_OK) {
        emitter->status = ptowsp_run_size_transients(run, &sizes);  // reports in the context
    }
    return run ? sizes.peak : emitter->tables->transient_count ? UINT64_MAX : 0;
}

NPU_INTERNAL void npu_simpler_emit(npu_emitter *emitter, const ptowsp_npu_desc *desc) {
    npu_file *files = emitter->files;
    const uint32_t count = emitter->file_count, window = npu_simpler_window(emitter, desc);
    char name[NPU_NAME_MAX + 3];
    npu_mangle(emitter->tables->name, name);
    emitter->files = NULL;
    emitter->file_count = emitter->file_capacity = 0;
    npu_simpler_copy(emitter, files, count);
    for (uint32_t i = 1; i < emitter->tables->kernel_count; i++) {
        if (npu_simpler_is_used(emitter, i)) {
            npu_simpler_kernel(emitter, i, &files[emitter->kernel_files[i] - 1]);
        }
    }
    npu_simpler_orchestration(emitter, window,
                              desc->block_max ? desc->block_max : NPU_SIMPLER_BLOCK_MAX, name + 2);
    const uint64_t transients = npu_simpler_transients(emitter, desc->run);
    npu_text test = {NULL, 0, 0, false};
    npu_simpler_print_test(emitter, window, transients, desc->run != NULL, &test);
    npu_add_file(emitter, &test, "test_%s.py", name + 2);
    npu_manifest_emit(emitter, emitter->hash);
    if (desc->run && emitter->status == PTOWSP_OK) {
        npu_record_run(emitter, desc->run, NULL, "recording/");
    }
    for (uint32_t i = 0; i < count; i++) {
        npu_resize(files[i].own_path, 0);
        npu_resize(files[i].own_data, 0);
    }
    npu_resize(files, 0);
}

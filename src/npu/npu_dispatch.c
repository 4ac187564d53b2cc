// aicore/dispatch.cpp: the function of each kernel, its launch by the host, and the texts of its
// failed checks.

#include "kernels.h"

// Code for the cores of a kernel is between these two texts, which are empty if both kinds run it.
static const char *npu_dispatch_if(const ptowsp_kernel_info *info) {
    return info->unit == PTOWSP_UNIT_MIX    ? ""
           : info->unit == PTOWSP_UNIT_CUBE ? "#if WSP_HAS_CUBE\n"
                                            : "#if WSP_HAS_VECTOR\n";
}

static const char *npu_dispatch_endif(const ptowsp_kernel_info *info) {
    return info->unit == PTOWSP_UNIT_MIX ? "" : "#endif\n";
}

static bool npu_machine_is_same(const ptowsp_machine *a, const ptowsp_machine *b) {
    return strcmp(a->name, b->name) == 0 && a->family == b->family &&
           a->clock_mhz == b->clock_mhz &&
           memcmp(a->memory_bytes, b->memory_bytes, sizeof a->memory_bytes) == 0 &&
           memcmp(a->rates, b->rates, sizeof a->rates) == 0;
}

// The machine of a kernel: built into the shim, or a constant of dispatch.cpp, after the first
// kernel with the same machine. Returns that kernel, or 0 for a built-in one.
static uint32_t npu_machine_of(const npu_emitter *emitter, uint32_t kernel) {
    const ptowsp_kernel_info *info = &emitter->tables->kernels[kernel];
    ptowsp_machine a2a3 = ptowsp_machine_910b(), a5 = ptowsp_machine_950pr();
    if (info->pto || npu_machine_is_same(&info->machine, &a2a3) ||
        npu_machine_is_same(&info->machine, &a5)) {
        return 0;
    }
    for (uint32_t i = 1; i < kernel; i++) {
        const ptowsp_kernel_info *other = &emitter->tables->kernels[i];
        if (other->is_used && other->is_tile_kernel &&
            npu_machine_is_same(&info->machine, &other->machine)) {
            return i;
        }
    }
    return kernel;
}

static void npu_print_numbers(npu_text *out, const uint32_t *numbers, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        npu_print(out, "%s%u", i ? ", " : "{", numbers[i]);
    }
    npu_print(out, "}");
}

static void npu_print_machines(const npu_emitter *emitter, npu_text *out) {
    for (uint32_t i = 1; i < emitter->tables->kernel_count; i++) {
        const ptowsp_kernel_info *info = &emitter->tables->kernels[i];
        if (!info->is_used || !info->is_tile_kernel || npu_machine_of(emitter, i) != i) {
            continue;
        }
        npu_text text = {NULL, 0, 0, false};
        npu_print(out, "// Name, family, clock in MHz, bytes of memories, rates in 1/100 GiB/s.\n");
        npu_print_cpp(&text, "const ptoisa_machine machine_%u = {'%s', PTOISA_%s, %u, ", i,
                      info->machine.name, info->machine.family == PTOWSP_FAMILY_A5 ? "A5" : "A2A3",
                      info->machine.clock_mhz);
        npu_print_numbers(&text, info->machine.memory_bytes, PTOWSP_MEMORY_COUNT);
        npu_print(&text, ", ");
        npu_print_numbers(&text, info->machine.rates, PTOWSP_PATH_COUNT);
        npu_print(&text, "};");
        npu_append_wrapped(out, 0, &text);
        npu_print(out, "\n");
    }
}

// The function that runs a task of a kernel.
static void npu_print_run(npu_emitter *emitter, uint32_t kernel, npu_text *out) {
    const ptowsp_kernel_info *info = &emitter->tables->kernels[kernel];
    const char *name = npu_name(emitter, NPU_KERNEL, kernel);
    const bool is_tiles = info->is_tile_kernel || info->pto;
    npu_print(out, "\n%sAICORE void run_kernel_%s(__gm__ wsp_task *task%s) {\n",
              npu_dispatch_if(info), name, info->is_mixed ? " WSP_BLOCK_PARAM" : "");
    uint32_t machine = is_tiles ? npu_machine_of(emitter, kernel) : 0;
    if (machine) {
        npu_print(out, "    wsp::begin_tiles(task, WSP_MACHINE(&machine_%u));\n", machine);
    } else if (is_tiles) {
        npu_print(out, "    wsp::begin_tiles(task, WSP_MACHINE(ptoisa_machine_%s()));\n",
                  npu_kernel_is_on_a5(emitter) ? "950pr" : "910b");
    }
    if (info->pto) {
        npu_print(out, "    wsp::begin_own(%s);\n", info->pto->is_as_simulator ? "true" : "false");
    }
    npu_print(out, "    wsp_kernel_%s(task%s);\n%s", name, info->is_mixed ? " WSP_BLOCK_ARG" : "",
              is_tiles ? "    wsp::end_tiles(task);\n" : "");
    if (info->pto && info->cycles) {
        npu_print(out, "    wsp::set_cycles(task, UINT64_C(%llu));\n",
                  (unsigned long long)info->cycles);
    }
    npu_print(out, "}\n%s", npu_dispatch_endif(info));
}

static void npu_print_case(npu_emitter *emitter, uint32_t kernel, npu_text *out) {
    const ptowsp_kernel_info *info = &emitter->tables->kernels[kernel];
    const char *name = npu_name(emitter, NPU_KERNEL, kernel);
    npu_print(out, "%s    case KERNEL_%s: run_kernel_%s(task%s); break;\n%s", npu_dispatch_if(info),
              name, name, info->is_mixed ? " WSP_BLOCK_ARG" : "", npu_dispatch_endif(info));
}

// Launches, for a host that drives the device: of each kernel, an entry for the cores, and the
// function of the host that starts it.
static void npu_print_launch(npu_emitter *emitter, uint32_t kernel, npu_text *out) {
    const ptowsp_kernel_info *info = &emitter->tables->kernels[kernel];
    const char *name = npu_name(emitter, NPU_KERNEL, kernel), *unit = ptowsp_unit_name(info->unit);
    npu_print(out,
              "\n#if WSP_LAUNCHES_%s\n"
              "extern \"C\" __global__ AICORE void wsp_tasks_%s(WSP_TASKS) {\n%s%s"
              "    if (__gm__ wsp_task *task = wsp::launched_%s(tasks, task_count)) {\n"
              "        run_kernel_%s(task%s);\n"
              "        wsp::write_results(task);\n"
              "    }\n",
              unit, name, info->is_mixed ? "    WSP_TASKS_BLOCK\n" : "", npu_dispatch_if(info),
              unit, name, info->is_mixed ? " WSP_BLOCK_ARG" : "");
    npu_print(out,
              "%s}\n\n"
              "extern \"C\" int32_t wsp_launch_%s(WSP_LAUNCH) {\n"
              "    WSP_START_%s(wsp_tasks_%s);\n"
              "    return 0;\n"
              "}\n"
              "#endif\n",
              npu_dispatch_endif(info), name, unit, name);
}

static void npu_print_launches(npu_emitter *emitter, npu_text *out) {
    npu_print(out, "\n// For a host that launches tasks itself: see wsp_runner.h.\n");
    for (uint32_t i = 1; i < emitter->tables->kernel_count; i++) {
        if (emitter->kernel_files[i]) {
            npu_print_launch(emitter, i, out);
        }
    }
    npu_print(out, "\nwsp_launcher wsp_launcher_of(uint32_t kernel) {\n"
                   "    switch (kernel) {\n");
    for (uint32_t i = 1; i < emitter->tables->kernel_count; i++) {
        const ptowsp_kernel_info *info = &emitter->tables->kernels[i];
        if (emitter->kernel_files[i]) {
            const char *name = npu_name(emitter, NPU_KERNEL, i);
            npu_print(out,
                      "#if WSP_LAUNCHES_%s\n    case KERNEL_%s: return wsp_launch_%s;\n#endif\n",
                      ptowsp_unit_name(info->unit), name, name);
        }
    }
    npu_print(out, "    default: return nullptr;\n    }\n}\n");
}

static void npu_print_check(const ptowsp_kernel_info *info, const ptowsp_size_check *check,
                            uint32_t number, npu_text *out) {
    const char *axis = check->axis ? "columns" : "rows";
    PTOWSP_ASSERT(check->b.param != PTOWSP_NO_PARAM);  // whole extents are not checked
    const char *of = info->tiles[check->b.param].name;
    if (check->a.param != PTOWSP_NO_PARAM) {
        npu_print_cpp(
            out, "        case %u: return '%s: the valid %s of %s and %s do not go together';\n",
            number, check->operation, axis, info->tiles[check->a.param].name, of);
    } else {
        npu_print_cpp(out, "        case %u: return '%s: too few valid %s of %s';\n", number,
                      check->operation, axis, of);
    }
}

// The text of a failure.
static void npu_print_faults(npu_emitter *emitter, npu_text *out) {
    bool has_own = false;
    for (uint32_t i = 1; i < emitter->tables->kernel_count; i++) {
        const ptowsp_kernel_info *info = &emitter->tables->kernels[i];
        has_own = has_own || (info->is_used && info->pto);
    }
    npu_print(out, "const char *wsp_core_fault_text(uint32_t kernel, uint32_t fault) {\n"
                   "    if (fault == UINT32_MAX) {\n");
    npu_print(out, "%s",
              has_own ? "#if WSP_IS_SHIM\n"
                        "        if (wsp::own_fault()[0]) {\n"
                        "            return wsp::own_fault();\n"
                        "        }\n"
                        "#endif\n"
                      : "");
    npu_print(out, "        return \"the shim found an instruction or a flag wrong\";\n"
                   "    }\n"
                   "    switch (kernel) {\n");
    for (uint32_t i = 1; i < emitter->tables->kernel_count; i++) {
        const ptowsp_kernel_info *info = &emitter->tables->kernels[i];
        if (!info->is_used || info->check_count + info->loop_count == 0) {
            continue;
        }
        npu_print(out, "    case KERNEL_%s:\n        switch (fault) {\n",
                  npu_name(emitter, NPU_KERNEL, i));
        for (uint32_t j = 0; j < info->check_count; j++) {
            const ptowsp_size_check *check = &emitter->tables->kernels[i].checks[j];
            npu_print_check(info, check, j + 1, out);
        }
        for (uint32_t j = 1; j <= info->loop_count; j++) {
            npu_print(out,
                      "        case %u: return \"loop %u: its bounds are out of order, or it runs "
                      "too often\";\n",
                      info->check_count + j, j);
        }
        npu_print(out, "        default: return \"\";\n        }\n");
    }
    npu_print(out, "    default: return \"\";\n    }\n}\n");
}

// The numbers of kernels that it uses. The file does without program.h, so that its object is the
// same for all programs with these kernels.
static void npu_print_numbering(const npu_emitter *emitter, npu_text *out) {
    bool is_any = false;
    for (uint32_t i = 1; i < emitter->tables->kernel_count; i++) {
        if (emitter->kernel_files[i]) {
            npu_print(out, "%s    KERNEL_%s = %u,\n",
                      is_any ? "" : "namespace {\n\n// As in program.h.\nenum : uint32_t {\n",
                      npu_name(emitter, NPU_KERNEL, i), i);
            is_any = true;
        }
    }
    npu_print(out, "%s", is_any ? "};\n\n}  // namespace\n\n" : "");
}

NPU_INTERNAL void npu_dispatch_emit(npu_emitter *emitter) {
    npu_text text = {NULL, 0, 0, false};
    npu_print(&text,
              "// Runs a task by the number of its kernel, and describes faults. Generated.\n"
              "//\n"
              "// For a device this is compiled twice: the first half for AICore, the second for "
              "the AICPU.\n"
              "\n"
              "#if !defined(WSP_ASCEND) || defined(WSP_FOR_CORES)\n");
    npu_print(&text, "%s#include \"wsp_kernel.h\"\n#endif\n\n#include \"wsp_abi.h\"\n\n",
              npu_kernel_is_on_a5(emitter) ? "#define WSP_TARGET_A5\n" : "");
    npu_print_numbering(emitter, &text);
    npu_print(&text, "#if !defined(WSP_ASCEND) || defined(WSP_FOR_CORES)\n\n");
    bool has_mixed = false;
    for (uint32_t i = 1; i < emitter->tables->kernel_count; i++) {
        if (emitter->kernel_files[i]) {
            bool is_mixed = emitter->tables->kernels[i].is_mixed;
            has_mixed = has_mixed || is_mixed;
            npu_print(&text, "extern \"C\" AICORE void wsp_kernel_%s(__gm__ wsp_task *task%s);\n",
                      npu_name(emitter, NPU_KERNEL, i), is_mixed ? " WSP_BLOCK_PARAM" : "");
        }
    }
    npu_text machines = {NULL, 0, 0, false};
    npu_print_machines(emitter, &machines);
    bool has_machines = machines.size > 0;
    npu_print(&text, "%s", has_machines ? "\n#if WSP_IS_SHIM\nnamespace {\n\n" : "");
    npu_append(&text, &machines);
    npu_print(&text, "%s", has_machines ? "}  // namespace\n#endif\n" : "");
    npu_print(&text, "\nnamespace {\n");
    for (uint32_t i = 1; i < emitter->tables->kernel_count; i++) {
        if (emitter->kernel_files[i]) {
            npu_print_run(emitter, i, &text);
        }
    }
    npu_print(&text,
              "\n}  // namespace\n\n"
              "AICORE void wsp_core_run(__gm__ wsp_task *task%s) {\n    switch (task->kernel) {\n",
              has_mixed ? " WSP_BLOCK_PARAM" : "");
    for (uint32_t i = 1; i < emitter->tables->kernel_count; i++) {
        if (emitter->kernel_files[i]) {
            npu_print_case(emitter, i, &text);
        }
    }
    npu_print(&text, "    default: task->status = PTOWSP_INVALID_PARAMS; break;\n    }\n}\n");
    npu_print_launches(emitter, &text);
    npu_print(&text, "\n#endif\n\n#ifndef __CCE_AICORE__\n\n");
    npu_print_faults(emitter, &text);
    npu_print(&text, "\n#endif\n\n#ifndef WSP_ASCEND\n"
                     "WSP_MEASURE  // for ptowsp_npu_measure\n#endif\n");
    npu_add_file(emitter, &text, "aicore/dispatch.cpp");
}

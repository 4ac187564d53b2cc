// README.md of a tree: for a reader who has never heard of this library.

#include "npu.h"

// A name in Markdown: what could be markup is escaped.
static void npu_print_plain(npu_text *text, const char *name) {
    for (; *name; name++) {
        if (strchr("\\`*_{}[]<>()#+-.!|&~", *name)) {
            npu_write(text, "\\", 1);
        }
        npu_write(text, *name >= 0x20 && *name <= 0x7e ? name : "?", 1);
    }
}

static void npu_readme_builds(npu_text *text) {
    npu_print(
        text,
        "## Building and running\n\n"
        "The same sources build in three ways.\n\n"
        "**On this machine**, with a C++17 compiler and nothing else: kernels run on the "
        "CPU through `shim/`, threads take the place of the device's processors, and "
        "time is simulated.\n\n"
        "```\n"
        "make                             # build/run and build/libwsp_tree.so\n"
        "cmake -S . -B build && cmake --build build                     # the same\n"
        "build/run --help\n"
        "build/run --list                 # lists the bindings\n"
        "build/run ... --record DIR       # keeps a run: what is bound, what came of it\n"
        "build/run --check DIR            # compares with a run kept so, or by the library\n"
        "```\n\n"
        "**Against PTO-ISA's CPU simulator**, with a checkout of it and a C++20 "
        "compiler: the same, with the kernels' instructions from there, which take no "
        "simulated time.\n\n"
        "```\n"
        "make PTO_ISA_ROOT=DIR            # build-pto-isa/run\n"
        "cmake -S . -B build-pto-isa -DPTO_ISA_ROOT=DIR\n"
        "cmake --build build-pto-isa\n"
        "```\n\n"
        "**For the device**, with CANN and PTO-ISA's headers:\n\n"
        "```\n"
        "cmake -S . -B build-ascend -DPTOWSP_ASCEND=ON -DPTO_ISA_ROOT=DIR\n"
        "cmake --build build-ascend\n"
        "```\n\n"
        "**Two drivers** launch tasks in all three. With `--driver aicpu`, which is the "
        "default, cores run as long as the run, and take tasks from the AICPU; "
        "`libwsp_aicpu.so` is loaded there by the AICPU's own loader. With `--driver host` no "
        "AICPU takes part: `run` walks the loops and schedules, and launches each kernel for "
        "the tasks of it that are ready, at most one for each core, by "
        "`kernel<<<blocks, nullptr, stream>>>` (`wsp_launch_...` of `aicore/dispatch.cpp`). "
        "It costs a launch and a wait for each such wave. Outputs and simulated cycles are "
        "the same. `-DWSP_AICPU=OFF` builds for the device without the AICPU's compiler.\n\n"
        "`run` is a command line. Programs use the C functions of `host/wsp_runner.h`: "
        "bind sizes, arrays, symbols and tensors, then run. Other sizes, lengths, "
        "symbols or data need no new build.\n\n");
}

static void npu_readme_files(npu_text *text, bool has_pipelines) {
    npu_print(
        text,
        "## Files\n\n"
        "These are this program:\n\n"
        "| file | contents |\n"
        "|---|---|\n"
        "| `aicpu/expand.cpp` | **the workload's loops**, which make its tasks |\n"
        "| `aicore/kernels/` | **one source per kernel** |\n"
        "| `aicpu/program.h`, `program.cpp` | the names and tables of the program, "
        "and the schedule |\n"
        "| `aicore/dispatch.cpp` | kernels by their number, and their launches by the host |\n"
        "| `manifest.json` | the same for programs, and a hash of the sources |\n\n"
        "The others are build files and the runtime, which is generated and the same in "
        "every tree of this version:\n\n"
        "| file | contents |\n"
        "|---|---|\n"
        "| `aicpu/wsp_expand.h` | the vocabulary of `expand.cpp` |\n");
    if (has_pipelines) {
        npu_print(text, "| `aicpu/wsp_pipeline.*` | its vocabulary of pipelines: processes and "
                        "channels |\n");
    }
    npu_print(text,
              "| `aicpu/wsp_aicpu.*` | tasks on their way to cores, the choice of a core for each, "
              "and simulated time; below it are the bounded ring, queues and AICPU threads of "
              "`include/wsp_core.h` |\n"
              "| `aicore/wsp_kernel.h`, `wsp_native.h` | the vocabulary of kernels: tile "
              "operations, C functions |\n"
              "| `aicore/wsp_aicore.cpp` | the loop of a core, on a thread and on the device |\n"
              "| `host/wsp_runner.h` | **C functions** that bind and run |\n"
              "| `host/wsp_host.cpp` | the same in C++: bindings, the stand-in for the device, the "
              "device with CANN, launches by the host |\n"
              "| `host/main.cpp` | the command line |\n"
              "| `include/wsp_abi.h` | the interface of host, AICPU and AICore, with its layout |\n"
              "| `include/wsp_core.h` | the library's own C, which the library runs on, too; "
              "`aicpu/wsp_core.cpp` compiles it |\n"
              "| `include/wsp_list.h` | lists, which compile faster than std::vector |\n"
              "| `include/ptowsp.h` | types of the library that wrote this tree, which is not "
              "needed to build it |\n"
              "| `shim/ptoisa_shim.h` | PTO-ISA's instructions on a CPU |\n\n");
}

static void npu_readme_bindings(const npu_emitter *emitter, npu_text *text) {
    const ptowsp_program *program = emitter->program;
    npu_print(text, "## Bindings of a run\n\n"
                    "| name | kind |\n"
                    "|---|---|\n");
    for (uint32_t i = 1; i < emitter->names.count[NPU_AXIS]; i++) {
        ptowsp_axis_info axis = ptowsp_program_axis_at(program, i);
        bool is_bound = axis.kind == PTOWSP_AXIS_DYNAMIC || axis.kind == PTOWSP_AXIS_SPARSE;
        if (axis.name && axis.is_used && axis.kind >= PTOWSP_AXIS_PLAN) {
            npu_print(text, "| ");
            npu_print_plain(text, axis.name);
            npu_print(text, " | plan, or a batch to plan: its %s |\n",
                      axis.kind == PTOWSP_AXIS_PLAN          ? "units"
                      : axis.kind == PTOWSP_AXIS_PLAN_MERGES ? "merges"
                                                             : "lanes");
        }
        if (axis.name && axis.is_used && is_bound) {
            npu_print(text, "| ");
            npu_print_plain(text, axis.name);
            npu_print(text, " | %s |\n",
                      axis.kind == PTOWSP_AXIS_DYNAMIC ? "size of an axis"
                                                       : "sparse axis: CSR indices");
        }
    }
    for (uint32_t i = 1; i < emitter->names.count[NPU_ARRAY]; i++) {
        ptowsp_array_info array = ptowsp_program_array_at(program, i);
        if (array.is_used && !array.plan_axis) {
            npu_print(text, "| ");
            npu_print_plain(text, array.name);
            npu_print(text, " | %s %s |\n", array.is_lengths ? "lengths:" : "array of",
                      array.dtype ? ptowsp_dtype_name(array.dtype) : "integers");
        }
    }
    for (uint32_t i = 1; i < emitter->names.count[NPU_SYMBOL]; i++) {
        ptowsp_symbol_info symbol = ptowsp_program_symbol_at(program, i);
        if (symbol.is_used) {
            npu_print(text, "| ");
            npu_print_plain(text, symbol.name);
            npu_print(text, " | number |\n");
        }
    }
    for (uint32_t i = 1; i < emitter->names.count[NPU_TENSOR]; i++) {
        ptowsp_tensor_info tensor = ptowsp_program_tensor_at(program, i);
        if (tensor.is_used) {
            npu_print(text, "| ");
            npu_print_plain(text, tensor.desc.name);
            npu_print(text, " | tensor %s [", ptowsp_dtype_name(tensor.desc.dtype));
            for (uint32_t k = 0; k < tensor.desc.rank; k++) {
                npu_print(text, "%s", k ? ", " : "");
                if (tensor.desc.shape[k] == PTOWSP_DYNAMIC) {
                    npu_print(text, "any");
                } else {
                    npu_print(text, "%lld", (long long)tensor.desc.shape[k]);
                }
            }
            npu_print(text, "], %s |\n", tensor.is_written ? "written" : "read");
        }
    }
    npu_print(text, "\n");
}

static void npu_readme_kernels(const npu_emitter *emitter, npu_text *text) {
    npu_print(text, "## Kernels\n\n"
                    "| kernel | unit | source |\n"
                    "|---|---|---|\n");
    bool has_mix = false;
    for (uint32_t i = 1; i < emitter->kernel_count; i++) {
        ptowsp_kernel_info kernel = ptowsp_program_kernel_at(emitter->program, i);
        uint32_t file = emitter->kernel_files[i];
        if (file) {
            npu_print(text, "| ");
            npu_print_plain(text, kernel.name);
            has_mix = has_mix || kernel.unit == PTOWSP_UNIT_MIX;
            npu_print(text, " | %s | `%s`%s |\n", ptowsp_unit_name(kernel.unit),
                      emitter->files[file - 1].path,
                      kernel.is_tile_kernel ? ""
                      : kernel.pto          ? ", which calls the source in `aicore/sources/`"
                                            : ", C++ as it was written");
        }
    }
    npu_print(text, "%s",
              has_mix ? "\nA task of `mix` takes a block: a cube core and its two vector cores. A "
                        "kernel with two halves (`..._cube`, `..._vector`) runs on all three, on "
                        "threads too; others run on the cube core's thread.\n\n"
                      : "\n");
}

static void npu_readme_schedule(const npu_emitter *emitter, npu_text *text) {
    npu_print(text, "## Schedule\n\n```\n");
    ptowsp_program_print_schedule(emitter->program, npu_text_sink(text));
    npu_print(
        text,
        "```\n\n"
        "## Limits\n\n"
        "- A task has at most %d axis arguments, %d tiles and %d scalars; a tensor at most %d "
        "dimensions.\n"
        "- The ring of tasks is bounded: when it is full, the loops wait for the oldest task. "
        "Its size is chosen when running.\n"
        "- All arithmetic on numbers of the workload wraps around; a division by 0 gives 0. "
        "Reading outside an array ends the run with an error.\n"
        "- A device moves a tile by rows or by columns, whose elements must lie side by side. Most "
        "tiles are moved by rows: they need a column stride of 1. Right factors of products are "
        "moved "
        "either way, and columns of elements of 2 and 4 bytes whatever their stride; columns of "
        "bytes are not. Strides are those of bound tensors and so known in a run only: each task "
        "checks its tiles (`WSP_REQUIRE_ROWS`, `_COLUMNS`, `_EITHER` in its kernel), and on a "
        "device "
        "it ends the run with UNSUPPORTED if one cannot be moved. Transient tensors lie by rows in "
        "every run: a kernel that cannot move them is refused when a tree for the device is "
        "written. "
        "The shim and PTO-ISA's simulator move tiles of all strides.\n"
        "- Of the three builds, the first is the one that has run. What the kernels of the second "
        "and all of the third say has been written from public headers and documents of PTO-ISA "
        "and CANN. Loops, scheduler and kernels are the same in all.\n",
        PTOWSP_TASK_AXIS_MAX, PTOWSP_TASK_TILE_MAX, PTOWSP_TASK_SCALAR_MAX, PTOWSP_TENSOR_RANK_MAX);
}

NPU_INTERNAL void npu_readme_emit(npu_emitter *emitter, bool has_pipelines) {
    npu_text text = {NULL, 0, 0, false};
    npu_print(&text, "# ");
    npu_print_plain(&text, ptowsp_program_name(emitter->program));
    npu_print(&text,
              "\n\nA workload for an Ascend NPU, as a source tree: a host program starts it, "
              "loops on the AICPU make its tasks from the sizes and data of the moment, and "
              "AICore units run them. Written by ptowsp %s (`manifest.json` has a hash of "
              "the sources). It needs nothing that is not here.\n\n",
              PTOWSP_VERSION);
    npu_readme_builds(&text);
    npu_readme_files(&text, has_pipelines);
    npu_readme_bindings(emitter, &text);
    npu_readme_kernels(emitter, &text);
    npu_readme_schedule(emitter, &text);
    uint32_t file = npu_add_file(emitter, &text, "README.md");
    if (emitter->status == PTOWSP_OK) {
        emitter->files[file].is_product = true;
    }
}

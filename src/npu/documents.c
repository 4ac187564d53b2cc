// README.md of a tree: for a reader who has never heard of this library. It is tree/README.md, where
// $words stand for the parts that differ from program to program.

#include "npu.h"

// A name in Markdown, with characters of markup escaped.
static void npu_print_plain(npu_text *text, const char *name) {
    for (; *name; name++) {
        if (strchr("\\`*_{}[]<>()#+-.!|&~", *name)) {
            npu_write(text, "\\", 1);
        }
        npu_write(text, *name >= 0x20 && *name <= 0x7e ? name : "?", 1);
    }
}

static void npu_readme_bindings(const npu_emitter *emitter, npu_text *text) {
    const ptowsp_program_tables *t = emitter->tables;
    for (uint32_t i = 1; i < emitter->names.count[NPU_AXIS]; i++) {
        const ptowsp_axis_info *axis = &t->axes[i];
        bool is_bound = axis->kind == PTOWSP_AXIS_DYNAMIC || axis->kind == PTOWSP_AXIS_SPARSE;
        if (axis->name && axis->is_used && axis->kind >= PTOWSP_AXIS_PLAN) {
            npu_print(text, "| ");
            npu_print_plain(text, axis->name);
            npu_print(text, " | plan, or a batch to plan: its %s |\n",
                      axis->kind == PTOWSP_AXIS_PLAN          ? "units"
                      : axis->kind == PTOWSP_AXIS_PLAN_MERGES ? "merges"
                                                              : "lanes");
        }
        if (axis->name && axis->is_used && is_bound) {
            npu_print(text, "| ");
            npu_print_plain(text, axis->name);
            npu_print(text, " | %s |\n",
                      axis->kind == PTOWSP_AXIS_DYNAMIC ? "size of an axis"
                                                        : "sparse axis: CSR indices");
        }
    }
    for (uint32_t i = 1; i < emitter->names.count[NPU_ARRAY]; i++) {
        const ptowsp_array_info *array = &t->arrays[i];
        if (array->is_used && !array->plan_axis) {
            npu_print(text, "| ");
            npu_print_plain(text, array->name);
            npu_print(text, " | %s %s |\n", array->is_lengths ? "lengths:" : "array of",
                      array->dtype ? ptowsp_dtype_name(array->dtype) : "integers");
        }
    }
    for (uint32_t i = 1; i < emitter->names.count[NPU_SYMBOL]; i++) {
        const ptowsp_symbol_info *symbol = &t->symbols[i];
        if (symbol->is_used) {
            npu_print(text, "| ");
            npu_print_plain(text, symbol->name);
            npu_print(text, " | number |\n");
        }
    }
    for (uint32_t i = 1; i < emitter->names.count[NPU_TENSOR]; i++) {
        const ptowsp_tensor_info *tensor = &t->tensors[i];
        if (tensor->is_used) {
            npu_print(text, "| ");
            npu_print_plain(text, tensor->desc.name);
            npu_print(text, " | tensor %s [", ptowsp_dtype_name(tensor->desc.dtype));
            npu_print_shape(text, &tensor->desc, "any");
            npu_print(text, "], %s |\n", tensor->is_written ? "written" : "read");
        }
    }
    npu_print(text, "\n");
}

static void npu_readme_kernels(const npu_emitter *emitter, npu_text *text) {
    bool has_mix = false;
    for (uint32_t i = 1; i < emitter->tables->kernel_count; i++) {
        const ptowsp_kernel_info *kernel = &emitter->tables->kernels[i];
        uint32_t file = emitter->kernel_files[i];
        if (file) {
            npu_print(text, "| ");
            npu_print_plain(text, kernel->name);
            has_mix = has_mix || kernel->unit == PTOWSP_UNIT_MIX;
            npu_print(text, " | %s | `%s`%s |\n", ptowsp_unit_name(kernel->unit),
                      emitter->files[file - 1].path,
                      kernel->is_tile_kernel ? ""
                      : kernel->pto          ? ", which calls the source in `aicore/sources/`"
                                             : ", C++ as it was written");
        }
    }
    npu_print(text, "%s",
              has_mix ? "\nA task of `mix` takes a block: a cube core and its two vector cores. A "
                        "kernel with two halves (`..._cube`, `..._vector`) runs on all three, on "
                        "threads too; others run on the cube core's thread.\n\n"
                      : "\n");
}

// Words of the template that do not stand for text.
static void npu_readme_part(const npu_emitter *emitter, const char *word, npu_text *text) {
    if (strcmp(word, "name") == 0) {
        npu_print_plain(text, emitter->tables->name);
    } else if (strcmp(word, "version") == 0) {
        npu_print(text, "%s", PTOWSP_VERSION);
    } else if (strcmp(word, "pipelines") == 0) {
        npu_print(text, "%s",
                  emitter->tables->pipeline_count
                      ? "| `aicpu/wsp_pipeline.*` | its vocabulary of pipelines: "
                        "processes and channels |\n"
                      : "");
    } else if (strcmp(word, "bindings") == 0) {
        npu_readme_bindings(emitter, text);
    } else if (strcmp(word, "kernels") == 0) {
        npu_readme_kernels(emitter, text);
    } else if (strcmp(word, "schedule") == 0) {
        ptowsp_program_print_schedule(emitter->program, npu_text_sink(text));
    } else {
        const bool is_axes = strcmp(word, "axes") == 0, is_tiles = strcmp(word, "tiles") == 0;
        PTOWSP_ASSERT(is_axes || is_tiles || strcmp(word, "scalars") == 0 ||
                      strcmp(word, "rank") == 0);
        npu_print(text, "%d",
                  is_axes                     ? PTOWSP_TASK_AXIS_MAX
                  : is_tiles                  ? PTOWSP_TASK_TILE_MAX
                  : strcmp(word, "rank") == 0 ? PTOWSP_TENSOR_RANK_MAX
                                              : PTOWSP_TASK_SCALAR_MAX);
    }
}

NPU_INTERNAL void npu_readme_emit(npu_emitter *emitter, const char *from) {
    npu_text text = {NULL, 0, 0, false};
    for (const char *at = from; *at;) {
        size_t size = strcspn(at, "$");
        npu_write(&text, at, size);
        at += size;
        if (*at == '$') {
            bool is_line =
                at == from || at[-1] == '\n';  // of the word alone: its text has line ends
            char word[16] = "";
            size = strspn(++at, "abcdefghijklmnopqrstuvwxyz");
            PTOWSP_ASSERT(size < sizeof word);
            memcpy(word, at, size);
            npu_readme_part(emitter, word, &text);
            at += size;
            at += is_line && *at == '\n';
        }
    }
    uint32_t file = npu_add_file(emitter, &text, "README.md");
    if (emitter->status == PTOWSP_OK) {
        emitter->files[file].is_product = true;
    }
}

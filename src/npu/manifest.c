// manifest.json: the contents of a tree, for programs that manage it. Tables are by index, as in
// aicpu/program.h, without entry 0 (which is none) and without gaps.

#include "npu.h"

static void npu_print_member(npu_text *text, const char *indent, const char *key,
                             const char *value) {
    npu_print(text, "%s\"%s\": ", indent, key);
    npu_print_json(text, value);
}

// Starts a row of a table; called before each.
static void npu_print_row(npu_text *text, bool *is_first) {
    npu_print(text, "%s\n    {", *is_first ? "" : ",");
    *is_first = false;
}

static void npu_manifest_axes(const npu_emitter *emitter, npu_text *text) {
    bool is_first = true;
    npu_print(text, "  \"axes\": [");
    for (uint32_t i = 1; i < emitter->names.count[NPU_AXIS]; i++) {
        ptowsp_axis_info axis = ptowsp_program_axis_at(emitter->program, i);
        if (axis.name) {
            npu_print_row(text, &is_first);
            npu_print(text, "\"id\": %u, ", (unsigned)i);
            npu_print_member(text, "", "name", axis.name);
            npu_print(text, ", \"kind\": \"");
            npu_print_word(text, "dense dynamic ragged sparse plan plan_merges plan_lanes",
                           (uint32_t)axis.kind);
            npu_print(text, "\"");
            if (axis.kind == PTOWSP_AXIS_DENSE) {
                npu_print(text, ", \"size\": %lld", (long long)axis.size);
            }
            npu_print(text, ", \"used\": %s}", axis.is_used ? "true" : "false");
        }
    }
    npu_print(text, "\n  ],\n");
}

static void npu_manifest_bound(const npu_emitter *emitter, npu_text *text) {
    bool is_first = true;
    npu_print(text, "  \"arrays\": [");
    for (uint32_t i = 1; i < emitter->names.count[NPU_ARRAY]; i++) {
        ptowsp_array_info array = ptowsp_program_array_at(emitter->program, i);
        npu_print_row(text, &is_first);
        npu_print(text, "\"id\": %u, ", (unsigned)i);
        npu_print_member(text, "", "name", array.name);
        npu_print_member(text, ", ", "dtype",
                         array.dtype ? ptowsp_dtype_name(array.dtype) : "any integer");
        npu_print(text, ", \"lengths\": %s, \"used\": %s", array.is_lengths ? "true" : "false",
                  array.is_used ? "true" : "false");
        if (array.plan_axis) {
            npu_print(text, ", \"plan_axis\": %u", (unsigned)array.plan_axis);
        }
        npu_print(text, "}");
    }
    is_first = true;
    npu_print(text, "\n  ],\n  \"symbols\": [");
    for (uint32_t i = 1; i < emitter->names.count[NPU_SYMBOL]; i++) {
        ptowsp_symbol_info symbol = ptowsp_program_symbol_at(emitter->program, i);
        npu_print_row(text, &is_first);
        npu_print(text, "\"id\": %u, ", (unsigned)i);
        npu_print_member(text, "", "name", symbol.name);
        npu_print(text, ", \"used\": %s}", symbol.is_used ? "true" : "false");
    }
    npu_print(text, "\n  ],\n");
}

static void npu_manifest_tensors(const npu_emitter *emitter, npu_text *text) {
    bool is_first = true;
    npu_print(text, "  \"tensors\": [");
    for (uint32_t i = 1; i < emitter->names.count[NPU_TENSOR]; i++) {
        ptowsp_tensor_info tensor = ptowsp_program_tensor_at(emitter->program, i);
        npu_print_row(text, &is_first);
        npu_print(text, "\"id\": %u, ", (unsigned)i);
        npu_print_member(text, "", "name", tensor.desc.name);
        npu_print_member(text, ", ", "dtype", ptowsp_dtype_name(tensor.desc.dtype));
        npu_print(text, ", \"shape\": [");
        for (uint32_t k = 0; k < tensor.desc.rank; k++) {
            npu_print(text, "%s", k ? ", " : "");
            if (tensor.desc.shape[k] == PTOWSP_DYNAMIC) {
                npu_print(text, "null");
            } else {
                npu_print(text, "%lld", (long long)tensor.desc.shape[k]);
            }
        }
        npu_print_member(text, "], ", "location", ptowsp_location_name(tensor.desc.location));
        npu_print(text, ", \"used\": %s, \"written\": %s, \"loaded\": %s, \"transient\": %s}",
                  tensor.is_used ? "true" : "false", tensor.is_written ? "true" : "false",
                  tensor.is_loaded ? "true" : "false", tensor.is_transient ? "true" : "false");
    }
    npu_print(text, "\n  ],\n");
}

static void npu_manifest_params(npu_text *text, const ptowsp_kernel_info *kernel) {
    npu_print(text, ", \"axes\": %u, \"tiles\": [", (unsigned)kernel->axis_count);
    for (uint32_t k = 0; k < kernel->tile_count; k++) {
        const ptowsp_tile_param *tile = &kernel->tiles[k];
        npu_print_member(text, k ? ", {" : "{", "name", tile->name);
        npu_print(text, ", \"direction\": \"");
        npu_print_word(text, "none in out inout", (uint32_t)tile->direction);
        npu_print_member(text, "\", ", "dtype", ptowsp_dtype_name(tile->dtype));
        if (tile->rows == PTOWSP_DYNAMIC) {
            npu_print(text, ", \"rows\": null");
        } else {
            npu_print(text, ", \"rows\": %lld", (long long)tile->rows);
        }
        if (tile->cols == PTOWSP_DYNAMIC) {
            npu_print(text, ", \"cols\": null}");
        } else {
            npu_print(text, ", \"cols\": %lld}", (long long)tile->cols);
        }
    }
    npu_print(text, "], \"scalars\": [");
    for (uint32_t k = 0; k < kernel->scalar_count; k++) {
        npu_print_member(text, k ? ", {" : "{", "name", kernel->scalars[k].name);
        npu_print(text, ", \"type\": \"");
        npu_print_word(text, "none bool i64 u64", (uint32_t)kernel->scalars[k].type);
        npu_print(text, "\"}");
    }
    npu_print(text, "]");
}

static void npu_manifest_kernels(const npu_emitter *emitter, npu_text *text) {
    bool is_first = true;
    npu_print(text, "  \"kernels\": [");
    for (uint32_t i = 1; i < emitter->kernel_count; i++) {
        ptowsp_kernel_info kernel = ptowsp_program_kernel_at(emitter->program, i);
        npu_print_row(text, &is_first);
        npu_print(text, "\"id\": %u, ", (unsigned)i);
        npu_print_member(text, "", "name", kernel.name);
        npu_print(text, ", \"kind\": \"%s\", \"unit\": \"%s\", \"used\": %s, \"source\": ",
                  kernel.is_tile_kernel ? "tile"
                  : kernel.pto          ? "pto"
                                        : "native",
                  ptowsp_unit_name(kernel.unit), kernel.is_used ? "true" : "false");
        uint32_t file = emitter->kernel_files[i];
        if (file) {
            npu_print_json(text, emitter->files[file - 1].path);
        } else {
            npu_print(text, "null");
        }
        if (kernel.is_tile_kernel) {
            npu_print(text, ", \"instructions\": %u", (unsigned)kernel.insn_count);
        } else if (kernel.cycles && !kernel.has_cost) {
            npu_print(text, ", \"cycles\": %llu", (unsigned long long)kernel.cycles);
        }
        npu_manifest_params(text, &kernel);
        npu_print(text, "}");
    }
    npu_print(text, "\n  ],\n");
}

static void npu_manifest_channels(const npu_emitter *emitter, npu_text *text) {
    bool is_first = true;
    npu_print(text, "  \"channels\": [");
    for (uint32_t i = 0; i < emitter->names.count[NPU_CHANNEL]; i++) {
        ptowsp_channel_info channel = ptowsp_program_channel_at(emitter->program, i);
        npu_print_row(text, &is_first);
        npu_print(text, "\"id\": %u, ", (unsigned)i);
        npu_print_member(text, "", "name", channel.name);
        npu_print(text, ", \"event\": %s", channel.is_event ? "true" : "false");
        if (channel.depth_at_start) {
            npu_print(text, ", \"depth\": null");
        } else {
            npu_print(text, ", \"depth\": %u", (unsigned)channel.depth);
        }
        if (channel.latency_at_start) {
            npu_print(text, ", \"latency\": null}");
        } else {
            npu_print(text, ", \"latency\": %llu}", (unsigned long long)channel.latency);
        }
    }
    npu_print(text, "\n  ],\n");
}

// -- the schedule ---------------------------------------------------------------------------------

// Value n of a directive: its n-th row in the capability table.
static void npu_manifest_directive(npu_text *text, bool *is_first, const char *directive,
                                   uint32_t n) {
    for (uint32_t i = 0; i < ptowsp_capability_count(); i++) {
        ptowsp_capability row = ptowsp_capability_at(i);
        if (strcmp(row.directive, directive) == 0 && n-- == 0) {
            npu_print(text, "%s\n      {", *is_first ? "" : ",");
            *is_first = false;
            npu_print_member(text, "", "directive", row.directive);
            npu_print_member(text, ", ", "value", row.value);
            npu_print_member(text, ", ", "support",
                             ptowsp_support_name(row.support[PTOWSP_TARGET_ASCEND_NPU]));
            npu_print(text, "}");
            return;
        }
    }
}

static void npu_manifest_set(npu_text *text, bool *is_first, const char *directive, uint32_t set) {
    for (uint32_t bit = 0; bit < 32; bit++) {
        if (set >> bit & 1) {
            npu_manifest_directive(text, is_first, directive, bit);
        }
    }
}

static bool npu_has_stream_keys(const npu_emitter *emitter) {
    for (uint32_t i = 0; i < emitter->statement_count; i++) {
        if (ptowsp_program_statement_at(emitter->program, i).kind == PTOWSP_STATEMENT_TASK &&
            ptowsp_program_task_at(emitter->program, i).stream_key) {
            return true;
        }
    }
    return false;
}

static void npu_manifest_schedule(const npu_emitter *emitter, npu_text *text) {
    const ptowsp_schedule *s = &emitter->schedule;
    npu_text printed = {NULL, 0, 0, false};
    ptowsp_program_print_schedule(emitter->program, npu_text_sink(&printed));
    npu_print(text, "  \"schedule\": {\n");
    npu_print_member(text, "    ", "text", printed.data ? printed.data : "");
    text->is_out_of_memory = text->is_out_of_memory || printed.is_out_of_memory;
    npu_text_free(&printed);
    npu_print(text, ",\n    \"lanes\": %u, \"vector_lanes\": %u, \"cube_lanes\": %u,\n",
              (unsigned)s->lane_count, (unsigned)s->vector_lane_count,
              (unsigned)s->cube_lane_count);
    npu_print(text, "    \"window\": %u, \"start_threshold\": %llu, \"streams\": %u,\n",
              (unsigned)s->window, (unsigned long long)s->start_threshold,
              (unsigned)s->stream_count);
    npu_print(text, "    \"timing_count\": %u, \"timing_cycles\": %llu,\n    \"directives\": [",
              (unsigned)s->timing_count, (unsigned long long)s->timing_cycles);
    bool is_first = true;
    npu_manifest_directive(text, &is_first, "issue", (uint32_t)s->issue);
    npu_manifest_directive(text, &is_first, "dispatch",
                           (uint32_t)s->dispatch - PTOWSP_DISPATCH_ROUND_ROBIN);
    npu_manifest_directive(text, &is_first, "pools", (uint32_t)s->pools);
    npu_manifest_directive(text, &is_first, "window", (uint32_t)s->window_policy);
    npu_manifest_set(text, &is_first, "dependencies", s->dependencies);
    npu_manifest_set(text, &is_first, "hazards", s->hazards);
    npu_manifest_directive(text, &is_first, "ready", (uint32_t)s->ready);
    npu_manifest_directive(text, &is_first, "start", (uint32_t)s->start);
    npu_manifest_directive(text, &is_first, "streams", npu_has_stream_keys(emitter));
    npu_manifest_directive(text, &is_first, "timing", (uint32_t)s->timing);
    npu_print(text, "\n    ]\n  },\n");
}

static void npu_manifest_files(const npu_emitter *emitter, npu_text *text) {
    npu_print(text, "  \"files\": [");
    bool is_first = true;
    for (uint32_t i = 0; i < emitter->file_count; i++) {
        const npu_file *file = &emitter->files[i];
        if (!file->is_product) {
            npu_print_row(text, &is_first);
            npu_print_member(text, "", "path", file->path);
            npu_print(text, ", \"size\": %llu, \"lines\": %llu}", (unsigned long long)file->size,
                      (unsigned long long)npu_line_count(file->data, file->size));
        }
    }
    npu_print(text, "\n  ]\n}\n");
}

NPU_INTERNAL void npu_manifest_emit(npu_emitter *emitter, const char *hash) {
    const ptowsp_program *program = emitter->program;
    npu_text text = {NULL, 0, 0, false};
    npu_print(&text, NPU_MANIFEST_START);
    npu_print(&text, " \"abi\": %u,\n", NPU_ABI_VERSION);
    npu_print_member(&text, "  ", "ptowsp", PTOWSP_VERSION);
    npu_print_member(&text, ",\n  ", "program", ptowsp_program_name(program));
    npu_print_member(&text, ",\n  ", "hash", hash);
    npu_print(&text, ",\n  \"drivers\": [\"aicpu\", \"host\"]");
    npu_print(&text, ",\n  \"slots\": %u,\n", (unsigned)ptowsp_program_slot_count(program));
    npu_manifest_axes(emitter, &text);
    npu_manifest_bound(emitter, &text);
    npu_manifest_tensors(emitter, &text);
    npu_manifest_kernels(emitter, &text);
    npu_manifest_channels(emitter, &text);
    npu_manifest_schedule(emitter, &text);
    npu_manifest_files(emitter, &text);
    uint32_t file = npu_add_file(emitter, &text, "manifest.json");
    if (emitter->status == PTOWSP_OK) {
        emitter->files[file].is_product = true;
    }
}

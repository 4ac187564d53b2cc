// manifest.json: the contents of a tree, for programs that manage it. Tables are by index, as in
// aicpu/program.h, without the unused entry 0 and without gaps.

#include "npu.h"

// Starts a row of a table; called before each.
static void npu_print_row(npu_text *text, bool *is_first) {
    npu_print(text, "%s\n    {", *is_first ? "" : ",");
    *is_first = false;
}

static const char *npu_bool(bool value) {
    return value ? "true" : "false";
}

// A number that may be known only at run time.
static void npu_print_known(npu_text *text, const char *key, bool is_known, long long value) {
    npu_print_json(text, ", '%s': ", key);
    if (is_known) {
        npu_print(text, "%lld", value);
    } else {
        npu_print(text, "null");
    }
}

static void npu_manifest_axes(const npu_emitter *emitter, npu_text *text) {
    bool is_first = true;
    npu_print_json(text, "  'axes': [");
    for (uint32_t i = 1; i < emitter->names.count[NPU_AXIS]; i++) {
        const ptowsp_axis_info *axis = &emitter->tables->axes[i];
        if (axis->name) {
            npu_print_row(text, &is_first);
            npu_print_json(text, "'id': %u, 'name': '%s', 'kind': '%s'", (unsigned)i, axis->name,
                           npu_word_at("dense dynamic ragged sparse plan plan_merges plan_lanes",
                                       (uint32_t)axis->kind)
                               .text);
            if (axis->kind == PTOWSP_AXIS_DENSE) {
                npu_print_json(text, ", 'size': %lld", (long long)axis->size);
            }
            npu_print_json(text, ", 'used': %s}", npu_bool(axis->is_used));
        }
    }
    npu_print(text, "\n  ],\n");
}

static void npu_manifest_bound(const npu_emitter *emitter, npu_text *text) {
    bool is_first = true;
    npu_print_json(text, "  'arrays': [");
    for (uint32_t i = 1; i < emitter->names.count[NPU_ARRAY]; i++) {
        const ptowsp_array_info *array = &emitter->tables->arrays[i];
        npu_print_row(text, &is_first);
        npu_print_json(text, "'id': %u, 'name': '%s', 'dtype': '%s', 'lengths': %s, 'used': %s",
                       (unsigned)i, array->name,
                       array->dtype ? ptowsp_dtype_name(array->dtype) : "any integer",
                       npu_bool(array->is_lengths), npu_bool(array->is_used));
        if (array->plan_axis) {
            npu_print_json(text, ", 'plan_axis': %u", (unsigned)array->plan_axis);
        }
        npu_print(text, "}");
    }
    is_first = true;
    npu_print_json(text, "\n  ],\n  'symbols': [");
    for (uint32_t i = 1; i < emitter->names.count[NPU_SYMBOL]; i++) {
        const ptowsp_symbol_info *symbol = &emitter->tables->symbols[i];
        npu_print_row(text, &is_first);
        npu_print_json(text, "'id': %u, 'name': '%s', 'used': %s}", (unsigned)i, symbol->name,
                       npu_bool(symbol->is_used));
    }
    npu_print(text, "\n  ],\n");
}

static void npu_manifest_tensors(const npu_emitter *emitter, npu_text *text) {
    bool is_first = true;
    npu_print_json(text, "  'tensors': [");
    for (uint32_t i = 1; i < emitter->names.count[NPU_TENSOR]; i++) {
        const ptowsp_tensor_info *tensor = &emitter->tables->tensors[i];
        npu_print_row(text, &is_first);
        npu_print_json(text, "'id': %u, 'name': '%s', 'dtype': '%s', 'shape': [", (unsigned)i,
                       tensor->desc.name, ptowsp_dtype_name(tensor->desc.dtype));
        npu_print_shape(text, &tensor->desc, "null");
        npu_print_json(text,
                       "], 'location': '%s', 'used': %s, 'written': %s, 'loaded': %s, "
                       "'transient': %s}",
                       ptowsp_location_name(tensor->desc.location), npu_bool(tensor->is_used),
                       npu_bool(tensor->is_written), npu_bool(tensor->is_loaded),
                       npu_bool(tensor->is_transient));
    }
    npu_print(text, "\n  ],\n");
}

static void npu_manifest_params(npu_text *text, const ptowsp_kernel_info *kernel) {
    npu_print_json(text, ", 'axes': %u, 'tiles': [", (unsigned)kernel->axis_count);
    for (uint32_t k = 0; k < kernel->tile_count; k++) {
        const ptowsp_tile_param *tile = &kernel->tiles[k];
        npu_print_json(text, "%s{'name': '%s', 'direction': '%s', 'dtype': '%s'", k ? ", " : "",
                       tile->name, npu_word_at("none in out inout", (uint32_t)tile->direction).text,
                       ptowsp_dtype_name(tile->dtype));
        npu_print_known(text, "rows", tile->rows != PTOWSP_DYNAMIC, (long long)tile->rows);
        npu_print_known(text, "cols", tile->cols != PTOWSP_DYNAMIC, (long long)tile->cols);
        npu_print(text, "}");
    }
    npu_print_json(text, "], 'scalars': [");
    for (uint32_t k = 0; k < kernel->scalar_count; k++) {
        npu_print_json(text, "%s{'name': '%s', 'type': '%s'}", k ? ", " : "",
                       kernel->scalars[k].name,
                       npu_word_at("none bool i64 u64", (uint32_t)kernel->scalars[k].type).text);
    }
    npu_print(text, "]");
}

static void npu_manifest_kernels(const npu_emitter *emitter, npu_text *text) {
    bool is_first = true;
    npu_print_json(text, "  'kernels': [");
    for (uint32_t i = 1; i < emitter->tables->kernel_count; i++) {
        const ptowsp_kernel_info *kernel = &emitter->tables->kernels[i];
        const uint32_t file = emitter->kernel_files[i];
        npu_print_row(text, &is_first);
        npu_print_json(text,
                       "'id': %u, 'name': '%s', 'kind': '%s', 'unit': '%s', 'used': %s, "
                       "'source': ",
                       (unsigned)i, kernel->name,
                       kernel->is_tile_kernel ? "tile"
                       : kernel->pto          ? "pto"
                                              : "native",
                       ptowsp_unit_name(kernel->unit), npu_bool(kernel->is_used));
        npu_print_json(text, file ? "'%s'" : "%s", file ? emitter->files[file - 1].path : "null");
        if (kernel->is_tile_kernel) {
            npu_print_json(text, ", 'instructions': %u", (unsigned)kernel->insn_count);
        } else if (kernel->cycles && !kernel->has_cost) {
            npu_print_json(text, ", 'cycles': %llu", (unsigned long long)kernel->cycles);
        }
        npu_manifest_params(text, kernel);
        npu_print(text, "}");
    }
    npu_print(text, "\n  ],\n");
}

static void npu_manifest_channels(const npu_emitter *emitter, npu_text *text) {
    bool is_first = true;
    npu_print_json(text, "  'channels': [");
    for (uint32_t i = 0; i < emitter->names.count[NPU_CHANNEL]; i++) {
        const ptowsp_channel_info *channel = &emitter->tables->channels[i];
        npu_print_row(text, &is_first);
        npu_print_json(text, "'id': %u, 'name': '%s', 'event': %s", (unsigned)i, channel->name,
                       npu_bool(channel->is_event));
        npu_print_known(text, "depth", !channel->depth_at_start, (long long)channel->depth);
        npu_print_known(text, "latency", !channel->latency_at_start, (long long)channel->latency);
        npu_print(text, "}");
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
            npu_print_json(text, "'directive': '%s', 'value': '%s', 'support': '%s'}",
                           row.directive, row.value,
                           ptowsp_support_name(row.support[PTOWSP_TARGET_ASCEND_NPU]));
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

static void npu_manifest_schedule(const npu_emitter *emitter, npu_text *text) {
    const ptowsp_schedule *s = &emitter->tables->schedule;
    npu_text printed = {NULL, 0, 0, false};
    ptowsp_program_print_schedule(emitter->program, npu_text_sink(&printed));
    npu_print_json(text, "  'schedule': {\n    'text': '%s'", printed.data ? printed.data : "");
    npu_text_end(text, &printed);
    npu_print_json(text, ",\n    'lanes': %u, 'vector_lanes': %u, 'cube_lanes': %u,\n",
                   (unsigned)s->lane_count, (unsigned)s->vector_lane_count,
                   (unsigned)s->cube_lane_count);
    npu_print_json(text, "    'window': %u, 'start_threshold': %llu, 'streams': %u,\n",
                   (unsigned)s->window, (unsigned long long)s->start_threshold,
                   (unsigned)s->stream_count);
    npu_print_json(text, "    'timing_count': %u, 'timing_cycles': %llu,\n    'directives': [",
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
    npu_manifest_directive(text, &is_first, "streams", emitter->tables->has_streams);
    npu_manifest_directive(text, &is_first, "timing", (uint32_t)s->timing);
    npu_print(text, "\n    ]\n  },\n");
}

static void npu_manifest_files(const npu_emitter *emitter, npu_text *text) {
    npu_print_json(text, "  'files': [");
    bool is_first = true;
    for (uint32_t i = 0; i < emitter->file_count; i++) {
        const npu_file *file = &emitter->files[i];
        if (!file->is_product) {
            npu_print_row(text, &is_first);
            npu_print_json(text, "'path': '%s', 'size': %llu, 'lines': %llu}", file->path,
                           (unsigned long long)file->size,
                           (unsigned long long)npu_line_count(file->data, file->size));
        }
    }
    npu_print(text, "\n  ]\n}\n");
}

NPU_INTERNAL void npu_manifest_emit(npu_emitter *emitter, const char *hash) {
    const ptowsp_program_tables *t = emitter->tables;
    npu_text text = {NULL, 0, 0, false};
    npu_print(&text, NPU_MANIFEST_START);
    npu_print_json(&text,
                   " 'abi': %u,\n  'ptowsp': '%s',\n  'program': '%s',\n  'hash': '%s',\n"
                   "  'drivers': [",
                   NPU_ABI_VERSION, PTOWSP_VERSION, t->name, hash);
    npu_print_json(&text, emitter->is_simpler ? "'simpler'" : "'aicpu', 'host'");
    npu_print_json(&text, "],\n  'slots': %u,\n", (unsigned)t->slot_count);
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

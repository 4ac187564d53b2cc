// aicpu/program.h and aicpu/program.cpp: the contents of the program, as enums for expand.cpp and
// as tables for the host and the scheduler.

#include "npu.h"

NPU_INTERNAL npu_table_word npu_word_at(const char *words, uint32_t n) {
    npu_table_word word = {"none"};
    for (; n > 0 && *words; n--) {
        words += strcspn(words, " ");
        words += *words == ' ';
    }
    const size_t length = strcspn(words, " ");
    PTOWSP_ASSERT(length < sizeof word.text);
    if (length) {
        memcpy(word.text, words, length);
        word.text[length] = '\0';
    }
    return word;
}

NPU_INTERNAL void npu_print_shape(npu_text *text, const ptowsp_tensor_desc *tensor,
                                  const char *dynamic) {
    for (uint32_t k = 0; k < tensor->rank; k++) {
        const bool is_known = tensor->shape[k] != PTOWSP_DYNAMIC;
        npu_print(text, "%s%s", k ? ", " : "", is_known ? "" : dynamic);
        if (is_known) {
            npu_print(text, "%lld", (long long)tensor->shape[k]);
        }
    }
}

// -- program.h ------------------------------------------------------------------------------------

static void npu_print_enum(const npu_emitter *emitter, npu_text *text, npu_kind kind,
                           const char *title, const char *prefix, uint32_t first) {
    bool is_open = false;
    for (uint32_t i = first; i < emitter->names.count[kind]; i++) {
        if (emitter->names.at[kind][i]) {
            if (!is_open) {
                npu_print(text, "\n// %s\nenum : uint32_t {\n", title);
                is_open = true;
            }
            npu_print(text, "    %s_%s = %u,\n", prefix, npu_name(emitter, kind, i), (unsigned)i);
        }
    }
    if (is_open) {
        npu_print(text, "};\n");
    }
}

static void npu_program_header_emit(npu_emitter *emitter) {
    npu_text text = {NULL, 0, 0, false};
    npu_print(&text, "// What program ");
    npu_print_comment(&text, emitter->tables->name);
    npu_print(&text, " is made of, by index in the tables of program.cpp. Generated.\n\n"
                     "#ifndef WSP_PROGRAM_H\n"
                     "#define WSP_PROGRAM_H\n\n"
                     "#include \"wsp_abi.h\"\n");
    npu_print_enum(emitter, &text, NPU_AXIS, "Axes.", "AXIS", 1);
    npu_print_enum(emitter, &text, NPU_ARRAY, "Arrays of integers, and lengths of ragged axes.",
                   "ARRAY", 1);
    npu_print_enum(emitter, &text, NPU_SYMBOL, "Symbols: numbers that are bound.", "SYMBOL", 1);
    npu_print_enum(emitter, &text, NPU_TENSOR, "Tensors.", "TENSOR", 1);
    npu_print_enum(emitter, &text, NPU_KERNEL, "Kernels.", "KERNEL", 1);
    npu_print_enum(emitter, &text, NPU_CHANNEL, "Channels between processes.", "CHANNEL", 0);
    npu_print(&text, "\n// expand.cpp: makes the program's tasks.\n"
                     "void wsp_expand(wsp::Run &run);\n\n");
    if (emitter->tables->transient_count) {
        npu_print(&text, "// The same: evaluates the sizes of transient tensors.\n"
                         "void wsp_sizes(wsp::Run &run, wsp::Sizes &sizes);\n\n");
    }
    npu_print(&text, "#endif\n");
    npu_add_file(emitter, &text, "aicpu/program.h");
}

// -- program.cpp ----------------------------------------------------------------------------------

static void npu_axes_emit(const npu_emitter *emitter, npu_text *text) {
    npu_print(text, "// name, kind, lengths, size, is_used\n"
                    "const wsp_axis_decl axes[] = {\n    {nullptr, 0, 0, 0, 0},\n");
    for (uint32_t i = 1; i < emitter->names.count[NPU_AXIS]; i++) {
        const ptowsp_axis_info *axis = &emitter->tables->axes[i];
        if (!axis->name) {
            npu_print(text, "    {nullptr, 0, 0, 0, 0},\n");
            continue;
        }
        npu_print_cpp(text, "    {'%s', PTOWSP_AXIS_%s, %s%s, %lld, %d},\n", axis->name,
                      npu_word_at("DENSE DYNAMIC RAGGED SPARSE PLAN PLAN_MERGES PLAN_LANES",
                                  (uint32_t)axis->kind)
                          .text,
                      axis->array ? "ARRAY_" : "0",
                      axis->array ? npu_name(emitter, NPU_ARRAY, axis->array) : "",
                      axis->kind == PTOWSP_AXIS_DENSE ? (long long)axis->size : 0, axis->is_used);
    }
    npu_print(text, "};\n\n");
}

// "PTOWSP_F16", or 0.
static const char *npu_dtype_text(ptowsp_dtype dtype) {
    switch (dtype) {
#define NPU_DTYPE(name, value, bytes, word)                                                        \
    case PTOWSP_##name: return "PTOWSP_" #name;
        PTOWSP_DTYPES(NPU_DTYPE)
#undef NPU_DTYPE
    case PTOWSP_DTYPE_NONE:
    case PTOWSP_DTYPE_FORCE_INT:
    default: return "0";
    }
}

// Arrays that are fields of plans; nothing for a program without plans. Returns their number.
static uint32_t npu_fields_emit(const npu_emitter *emitter, npu_text *text) {
    uint32_t count = 0;
    for (uint32_t i = 1; i < emitter->names.count[NPU_ARRAY]; i++) {
        const ptowsp_array_info *array = &emitter->tables->arrays[i];
        if (!array->plan_axis) {
            continue;
        }
#define NPU_FIELD_WORD(name, text, dtype, byte, flags, units, merges) #name " "
        npu_print(text, "%s    {ARRAY_%s, AXIS_%s, PTOWSP_PLAN_%s},\n",
                  count++ ? "" : "// array, axis, field\nconst wsp_field_decl fields[] = {\n",
                  npu_name(emitter, NPU_ARRAY, i), npu_name(emitter, NPU_AXIS, array->plan_axis),
                  npu_word_at(PTOWSP_PLAN_FIELDS(NPU_FIELD_WORD), (uint32_t)array->field).text);
#undef NPU_FIELD_WORD
    }
    npu_print(text, "%s", count ? "};\n\n" : "");
    return count;
}

static void npu_arrays_emit(const npu_emitter *emitter, npu_text *text) {
    npu_print(text, "// name, dtype, is_lengths, is_used\n"
                    "const wsp_array_decl arrays[] = {\n    {nullptr, 0, 0, 0},\n");
    for (uint32_t i = 1; i < emitter->names.count[NPU_ARRAY]; i++) {
        const ptowsp_array_info *array = &emitter->tables->arrays[i];
        npu_print_cpp(text, "    {'%s', %s, %d, %d},\n", array->name, npu_dtype_text(array->dtype),
                      array->is_lengths, array->is_used);
    }
    npu_print(text, "};\n\n// name, is_used\n"
                    "const wsp_symbol_decl symbols[] = {\n    {nullptr, 0},\n");
    for (uint32_t i = 1; i < emitter->names.count[NPU_SYMBOL]; i++) {
        const ptowsp_symbol_info *symbol = &emitter->tables->symbols[i];
        npu_print_cpp(text, "    {'%s', %d},\n", symbol->name, symbol->is_used);
    }
    npu_print(text, "};\n\n");
}

static void npu_tensors_emit(const npu_emitter *emitter, npu_text *text) {
    npu_print(text, "// name, dtype, rank, shape, is_used, is_written, is_loaded, is_transient\n"
                    "const wsp_tensor_decl tensors[] = {\n    {nullptr, 0, 0, {}, 0, 0, 0, 0},\n");
    for (uint32_t i = 1; i < emitter->names.count[NPU_TENSOR]; i++) {
        const ptowsp_tensor_info *tensor = &emitter->tables->tensors[i];
        npu_print_cpp(text, "    {'%s', %s, %u, {", tensor->desc.name,
                      npu_dtype_text(tensor->desc.dtype), (unsigned)tensor->desc.rank);
        npu_print_shape(text, &tensor->desc, "PTOWSP_DYNAMIC");
        npu_print(text, "}, %d, %d, %d, %d},\n", tensor->is_used, tensor->is_written,
                  tensor->is_loaded, tensor->is_transient);
    }
    npu_print(text, "};\n\n");
}

// A string of a table, a line.
static void npu_print_row_of(npu_text *text, npu_text *row) {
    npu_print_cpp(text, "    '%s',\n", row->data ? row->data : "");
    npu_text_end(text, row);
}

// Transient tensors; nothing for a program without them.
static void npu_transients_emit(const npu_emitter *emitter, npu_text *text) {
    const ptowsp_program_tables *t = emitter->tables;
    uint32_t count = t->transient_count;
    if (count == 0) {
        return;
    }
    npu_print(text, "// tensor, number of lifetimes\n"
                    "const wsp_transient_decl transient_tensors[] = {\n");
    for (uint32_t i = 0; i < count; i++) {
        const ptowsp_transient_info *transient = &t->transients[i];
        npu_print(text, "    {TENSOR_%s, %u},\n", npu_name(emitter, NPU_TENSOR, transient->tensor),
                  (unsigned)transient->lifetime_count);
    }
    npu_print(text, "};\n\n// From one point to another.\nconst uint32_t lifetimes[][2] = {\n");
    for (uint32_t i = 0; i < t->lifetime_count; i++) {
        npu_print(text, "    {%u, %u},\n", t->lifetimes[i].first, t->lifetimes[i].last);
    }
    npu_print(text, "%s};\n\nconst char *const points[] = {\n",
              t->lifetime_count ? "" : "    {0, 0},  // there is none\n");
    for (uint32_t i = 0; i < t->point_count; i++) {
        npu_text row = {NULL, 0, 0, false};
        ptowsp_program_print_point(emitter->program, i, npu_text_sink(&row));
        npu_print_row_of(text, &row);
    }
    npu_print(text,
              "%s};\n\nconst wsp_transients transients = {%u, transient_tensors, lifetimes, %u, "
              "points, wsp_sizes};\n\n",
              t->point_count ? "" : "    nullptr,\n", (unsigned)count, (unsigned)t->point_count);
}

static void npu_kernel_table_emit(const npu_emitter *emitter, npu_text *text) {
    npu_print(text, "// name, unit, axes, tiles, scalars, names of the tiles\n"
                    "const wsp_kernel kernels[] = {\n    {nullptr, 0, 0, 0, 0, {}},\n");
    for (uint32_t i = 1; i < emitter->tables->kernel_count; i++) {
        const ptowsp_kernel_info *kernel = &emitter->tables->kernels[i];
        npu_print_cpp(text, "    {'%s', PTOWSP_UNIT_%s, %u, %u, %u, {", kernel->name,
                      npu_word_at("VECTOR CUBE MIX", (uint32_t)kernel->unit).text,
                      (unsigned)kernel->axis_count, (unsigned)kernel->tile_count,
                      (unsigned)kernel->scalar_count);
        for (uint32_t k = 0; k < kernel->tile_count; k++) {
            npu_print_cpp(text, "%s'%s'", k ? ", " : "", kernel->tiles[k].name);
        }
        npu_print(text, "}},\n");
    }
    npu_print(text, "};\n\n");
}

static void npu_places_emit(const npu_emitter *emitter, npu_text *text) {
    npu_print(text, "// Where in the workload, for errors.\n"
                    "const char *const places[] = {\n    \"\",\n");
    for (uint32_t i = 1; i < emitter->place_count; i++) {
        npu_text place = {NULL, 0, 0, false};
        ptowsp_program_print_place(emitter->program, emitter->place_nodes[i],
                                   npu_text_sink(&place));
        npu_print_row_of(text, &place);
    }
    npu_print(text, "};\n\n");
}

// The fields of a ptowsp_schedule in their order. Keys are in expand.cpp.
static void npu_schedule_emit(const npu_emitter *emitter, npu_text *text) {
    const ptowsp_schedule *s = &emitter->tables->schedule;
    npu_print(text,
              "    {\n        PTOWSP_ISSUE_%s,\n        PTOWSP_DISPATCH_%s,\n"
              "        {nullptr, 0},\n        %u,  // lanes\n        PTOWSP_POOLS_%s,\n"
              "        %u,  // vector lanes\n        %u,  // cube lanes\n"
              "        PTOWSP_WINDOW_%s,\n        %u,  // window\n"
              "        %u,  // dependencies\n        %u,  // hazards\n",
              npu_word_at("DATAFLOW IN_ORDER", (uint32_t)s->issue).text,
              npu_word_at("DEFAULT ROUND_ROBIN AFFINITY HASH CUSTOM WORK_STEALING PLAN",
                          (uint32_t)s->dispatch)
                  .text,
              (unsigned)s->lane_count, npu_word_at("ONE BY_UNIT NAMED", (uint32_t)s->pools).text,
              (unsigned)s->vector_lane_count, (unsigned)s->cube_lane_count,
              npu_word_at("DEFAULT STALL ABORT BENCHMARK", (uint32_t)s->window_policy).text,
              (unsigned)s->window, (unsigned)s->dependencies, (unsigned)s->hazards);
    npu_print(text,
              "        PTOWSP_READY_%s,\n        {nullptr, 0},\n        PTOWSP_START_%s,\n        ",
              npu_word_at("FIFO PRIORITY WORK_STEALING", (uint32_t)s->ready).text,
              npu_word_at("AT_ONCE THRESHOLD ALL_ISSUED", (uint32_t)s->start).text);
    npu_print_u64(text, s->start_threshold);
    npu_print(text,
              ",  // start_threshold\n        %u,  // streams\n        {nullptr, 0},\n"
              "        PTOWSP_TIMING_%s,\n        %u,  // timing_count\n        ",
              (unsigned)s->stream_count,
              npu_word_at("IMMEDIATE BATCHED RATE_LIMITED INTERLEAVED", (uint32_t)s->timing).text,
              (unsigned)s->timing_count);
    npu_print_u64(text, s->timing_cycles);
    npu_print(text, ",  // timing_cycles\n        PTOWSP_RELEASE_COMPLETION,\n"
                    "        {0, 0, 0, 0},  // no rings\n        {0, 0},  // no depths\n"
                    "        nullptr,\n        0,   // no named pools\n"
                    "        {},  // control: the device's own\n"
                    "        {},  // memory that lanes share: the device's own\n    },\n");
}

static const char npu_hash_line[] = "    \"--------------------------------\",  // hash\n";

NPU_INTERNAL void npu_program_emit(npu_emitter *emitter) {
    const ptowsp_program_tables *t = emitter->tables;
    npu_program_header_emit(emitter);
    npu_text text = {NULL, 0, 0, false};
    npu_print(&text, "// The tables of program ");
    npu_print_comment(&text, t->name);
    npu_print(&text,
              ". Generated.\n\n"
              "#include \"program.h\"\n\n"
              "static_assert(WSP_ABI_VERSION == %u, \"wsp_abi.h is of another version\");\n\n"
              "namespace {\n\n",
              NPU_ABI_VERSION);
    npu_axes_emit(emitter, &text);
    npu_arrays_emit(emitter, &text);
    const uint32_t field_count = npu_fields_emit(emitter, &text);
    npu_tensors_emit(emitter, &text);
    npu_transients_emit(emitter, &text);
    npu_kernel_table_emit(emitter, &text);
    npu_places_emit(emitter, &text);
    npu_print(&text, "}  // namespace\n\n"
                     "const wsp_program wsp_the_program = {\n"
                     "    WSP_ABI_VERSION,\n    ");
    npu_print_cpp(&text, "'%s',\n", t->name);
    npu_write(&text, npu_hash_line, sizeof npu_hash_line - 1);
    const npu_names *names = &emitter->names;
    npu_print(&text,
              "    %u,  // axes\n    %u,  // arrays\n    %u,  // symbols\n"
              "    %u,  // tensors\n    %u,  // kernels\n    %u,  // slots\n"
              "    axes,\n    arrays,\n    symbols,\n    tensors,\n    kernels,\n"
              "    %u,  // places\n    places,\n",
              (unsigned)names->count[NPU_AXIS], (unsigned)names->count[NPU_ARRAY],
              (unsigned)names->count[NPU_SYMBOL], (unsigned)names->count[NPU_TENSOR],
              (unsigned)emitter->tables->kernel_count, (unsigned)t->slot_count,
              (unsigned)(emitter->place_count ? emitter->place_count : 1));
    npu_schedule_emit(emitter, &text);
    npu_print(&text,
              "    %u,  // lanes\n    %d,  // is_priority_signed\n    %d,  // has_streams\n"
              "    %u,  // edges\n    %u,  // scope_depth\n    %u,  // pipelines\n    ",
              (unsigned)t->lane_count, t->is_priority_signed, t->has_streams,
              (unsigned)t->edge_count, (unsigned)t->scope_depth, (unsigned)t->pipeline_count);
    uint32_t latency = t->latency_symbol;
    npu_print(
        &text,
        "%s%s,  // latency_symbol\n    wsp_expand,\n    %u,  // fields\n    %s,\n    %s,\n};\n",
        latency ? "SYMBOL_" : "0", latency ? npu_name(emitter, NPU_SYMBOL, latency) : "",
        (unsigned)field_count, field_count ? "fields" : "nullptr",
        t->transient_count ? "&transients" : "nullptr");
    emitter->program_file = npu_add_file(emitter, &text, "aicpu/program.cpp");
}

NPU_INTERNAL void npu_program_set_hash(npu_emitter *emitter, const char *hash) {
    char *text = emitter->files[emitter->program_file].own_data;
    char *line = text ? strstr(text, npu_hash_line) : NULL;
    PTOWSP_ASSERT(line);
    if (line) {
        memcpy(line + 5, hash, NPU_HASH_SIZE - 1);
    }
}

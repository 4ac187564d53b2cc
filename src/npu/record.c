// A recorded run: the bindings of a run and the library's results, as a directory of plain files. A
// tree of the same program checks itself against them wherever it was built: run --check.
//
//      recording       lines of text: the program, options of the tree's command line, expectations
//      m1.bin ...      memory of tensors before the run; tensors that overlap share a file
//      d1.bin ...      arrays, lengths, plans
//      o1.bin ...      elements of tensors that tasks write, after the run
//
//      ptowsp recording 1
//      program 5f0c...                            the hash of the tree's sources
//      --model a2a3
//      --size tiles=4
//      --memory 1=@m1.bin
//      --view k_t=64x80/1x64@1+0                  shape, strides in elements, memory + bytes
//      --expect y=@o1.bin
//      --expect-cycles 9861
//      file m1.bin 20480 8a3c...                  size, FNV-1a-64
//      end 7d1e...                                of all lines before
//
// Trees read it in src/npu/tree/host: files in recording.h, where run --record writes the same, bindings
// in binding_text.h. Files have the bytes of memory, in the byte order of the machine that recorded.

#include "npu.h"

#include <stdlib.h>

// The memory of tensors that overlap: addresses.
typedef struct npu_span {
    uintptr_t begin, end;
} npu_span;

typedef struct npu_recording {
    npu_emitter *emitter;
    const char *directory;  // of its files: "", or with "/" at its end
    uint32_t first_file;
    ptowsp_run *run;
    const ptowsp_program_tables *tables;
    npu_text text;
    npu_span *blocks;
    uint32_t block_count, data_count, output_count;
} npu_recording;

static bool npu_record_fail(npu_recording *r, const char *what, const char *name) {
    return npu_fail(r->emitter, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX, "recording: %s %.200s", what,
                    name);
}

// Names stand in front of "=", in a line.
static bool npu_record_name(npu_recording *r, const char *name) {
    return strpbrk(name, "=\n\r") ? npu_record_fail(r, "a line cannot have the name", name) : true;
}

// -- files ----------------------------------------------------------------------------------------

// Adds a file, and prints "@d1.bin".
static void npu_record_file(npu_recording *r, const char *kind, uint32_t number, npu_text *bytes) {
    npu_print(&r->text, "@%s%u.bin", kind, (unsigned)number);
    npu_add_file(r->emitter, bytes, "%s%s%u.bin", r->directory, kind, (unsigned)number);
}

static void npu_record_data(npu_recording *r, const void *data, uint64_t size) {
    npu_text bytes = {NULL, 0, 0, false};
    if (size) {
        npu_write(&bytes, (const char *)data, (size_t)size);
    }
    npu_record_file(r, "d", ++r->data_count, &bytes);
}

// -- memory of tensors ----------------------------------------------------------------------------

// The bytes from a tensor's first to its last element; false if it has none. The first one of the
// block is aligned as files are when they are read.
static bool npu_record_span(const npu_recording *r, uint32_t tensor, ptowsp_buffer *buffer,
                            npu_span *out_span) {
    int64_t low = 0, high = 0;
    if (!r->tables->tensors[tensor].is_used || !ptowsp_run_bound_tensor(r->run, tensor, buffer)) {
        return false;
    }
    for (uint32_t i = 0; i < buffer->rank; i++) {
        if (buffer->shape[i] == 0) {
            out_span->begin = out_span->end = (uintptr_t)buffer->data;
            return true;
        }
        int64_t last = (buffer->shape[i] - 1) * buffer->strides[i];
        low += last < 0 ? last : 0;
        high += last > 0 ? last : 0;
    }
    if (!buffer->data) {
        return false;  // executing refuses it
    }
    int64_t size = (int64_t)ptowsp_dtype_size(buffer->dtype);
    out_span->begin = (uintptr_t)buffer->data + (uintptr_t)(low * size);
    out_span->end = (uintptr_t)buffer->data + (uintptr_t)((high + 1) * size);
    return true;
}

static int npu_span_compare(const void *a, const void *b) {
    const npu_span *x = (const npu_span *)a, *y = (const npu_span *)b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

// Makes blocks of all tensors' memory, and a file of each.
static bool npu_record_memory(npu_recording *r) {
    uint32_t count = r->tables->tensor_count, merged = 0;
    r->blocks = (npu_span *)npu_resize(NULL, (count + 1) * sizeof *r->blocks);
    if (!r->blocks) {
        return npu_out_of_memory(r->emitter);
    }
    for (uint32_t i = 1; i < count; i++) {
        ptowsp_buffer buffer;
        r->block_count += npu_record_span(r, i, &buffer, &r->blocks[r->block_count]);
    }
    qsort(r->blocks, r->block_count, sizeof *r->blocks, npu_span_compare);
    for (uint32_t i = 1; i < r->block_count; i++) {
        npu_span *last = &r->blocks[merged];
        if (r->blocks[i].begin < last->end) {
            last->end = r->blocks[i].end > last->end ? r->blocks[i].end : last->end;
        } else {
            r->blocks[++merged] = r->blocks[i];
        }
    }
    r->block_count = r->block_count ? merged + 1 : 0;
    for (uint32_t i = 0; i < r->block_count; i++) {
        npu_text bytes = {NULL, 0, 0, false};
        npu_write(&bytes, "\0\0\0\0\0\0\0", r->blocks[i].begin & 7);
        if (r->blocks[i].end > r->blocks[i].begin) {
            npu_write(&bytes, (const char *)r->blocks[i].begin,
                      r->blocks[i].end - r->blocks[i].begin);
        }
        npu_print(&r->text, "--memory %u=", (unsigned)i + 1);
        npu_record_file(r, "m", i + 1, &bytes);
        npu_print(&r->text, "\n");
    }
    return true;
}

static bool npu_record_views(npu_recording *r) {
    for (uint32_t i = 1; i < r->tables->tensor_count; i++) {
        ptowsp_buffer buffer;
        npu_span span;
        uint32_t block = 0;
        const char *name = r->tables->tensors[i].desc.name;
        if (!npu_record_span(r, i, &buffer, &span)) {
            continue;
        }
        while (block + 1 < r->block_count && r->blocks[block + 1].begin <= span.begin) {
            block++;
        }
        if (!npu_record_name(r, name)) {
            return false;
        }
        npu_print(&r->text, "--view %s=", name);
        for (uint32_t k = 0; k < buffer.rank; k++) {
            npu_print(&r->text, "%s%lld", k ? "x" : "", (long long)buffer.shape[k]);
        }
        for (uint32_t k = 0; k < buffer.rank; k++) {
            npu_print(&r->text, "%c%lld", k ? 'x' : '/', (long long)buffer.strides[k]);
        }
        uintptr_t begin = r->blocks[block].begin & ~(uintptr_t)7;
        npu_print(&r->text, "@%u+%llu\n", (unsigned)block + 1,
                  (unsigned long long)((uintptr_t)buffer.data - begin));
    }
    return true;
}

// A tensor's elements, row by row.
static void npu_print_elements(npu_text *bytes, const ptowsp_buffer *buffer) {
    int64_t at[PTOWSP_TENSOR_RANK_MAX] = {0};
    size_t size = ptowsp_dtype_size(buffer->dtype);
    for (uint32_t i = 0; i < buffer->rank; i++) {
        if (buffer->shape[i] == 0) {
            return;
        }
    }
    for (;;) {
        int64_t offset = 0;
        for (uint32_t i = 0; i < buffer->rank; i++) {
            offset += at[i] * buffer->strides[i];
        }
        npu_write(bytes, (const char *)buffer->data + offset * (int64_t)size, size);
        uint32_t i = buffer->rank;
        while (i > 0 && ++at[i - 1] == buffer->shape[i - 1]) {
            at[--i] = 0;
        }
        if (i == 0) {
            return;
        }
    }
}

// -- other bindings -------------------------------------------------------------------------------

static bool npu_record_axis(npu_recording *r, uint32_t i) {
    const ptowsp_axis_info *axis = &r->tables->axes[i];
    int64_t size;
    ptowsp_csr csr;
    if (axis->kind == PTOWSP_AXIS_DYNAMIC && ptowsp_run_bound_size(r->run, i, &size)) {
        npu_print(&r->text, "--size %s=%lld\n", axis->name, (long long)size);
    } else if (axis->kind == PTOWSP_AXIS_SPARSE && ptowsp_run_bound_csr(r->run, i, &csr)) {
        uint64_t bytes = ptowsp_dtype_size(csr.dtype);
        npu_print(&r->text, "--csr %s=%s", axis->name, ptowsp_dtype_name(csr.dtype));
        npu_record_data(r, csr.indptr, (csr.row_count + 1) * bytes);
        npu_print(&r->text, ",");
        npu_record_data(r, csr.indices, csr.entry_count * bytes);
        npu_print(&r->text, "\n");
    } else {
        return true;
    }
    return npu_record_name(r, axis->name);
}

// The plan bound to a plan's first axis; for a batch, the plan that the execution made.
static bool npu_record_plan(npu_recording *r, uint32_t i) {
    const ptowsp_axis_info *axis = &r->tables->axes[i];
    ptowsp_attention_plan plan;
    for (uint32_t k = 1; axis->name && k < i; k++) {
        const ptowsp_axis_info *other = &r->tables->axes[k];
        if (other->name && other->kind >= PTOWSP_AXIS_PLAN &&
            strcmp(other->name, axis->name) == 0) {
            return true;
        }
    }
    if (!axis->name || axis->kind < PTOWSP_AXIS_PLAN || !ptowsp_run_bound_plan(r->run, i, &plan)) {
        return true;
    }
    uint64_t begin_size = (plan.lane_count + (uint64_t)1) * sizeof(uint32_t);
    npu_print(&r->text, "--plan %s=", axis->name);
    npu_record_data(r, plan.units, plan.unit_count * sizeof(ptowsp_work));
    if (plan.lane_count) {
        npu_print(&r->text, ",");
        npu_record_data(r, plan.unit_begin, begin_size);
    }
    if (plan.merge_begin) {
        npu_print(&r->text, ",");
        npu_record_data(r, plan.merges, plan.merge_count * sizeof(ptowsp_work));
        npu_print(&r->text, ",");
        npu_record_data(r, plan.merge_begin, begin_size);
    }
    npu_print(&r->text, "\n");
    return npu_record_name(r, axis->name);
}

static bool npu_record_array(npu_recording *r, uint32_t i) {
    const ptowsp_array_info *array = &r->tables->arrays[i];
    ptowsp_dtype dtype;
    const void *data;
    uint64_t count;
    if (array->plan_axis || !ptowsp_run_bound_array(r->run, i, &dtype, &data, &count)) {
        return true;
    }
    npu_print(&r->text, "--%s %s=%s", array->is_lengths ? "lengths" : "array", array->name,
              array->is_lengths ? ptowsp_dtype_name(dtype) : "");
    npu_record_data(r, data, count * ptowsp_dtype_size(dtype));
    npu_print(&r->text, "\n");
    return npu_record_name(r, array->name);
}

static bool npu_record_bindings(npu_recording *r) {
    bool is_good = true;
    for (uint32_t i = 1; i < r->tables->axis_count && is_good; i++) {
        is_good = npu_record_axis(r, i);
    }
    for (uint32_t i = 1; i < r->tables->array_count && is_good; i++) {
        is_good = npu_record_array(r, i);
    }
    for (uint32_t i = 1; i < r->tables->symbol_count && is_good; i++) {
        uint64_t value;
        const char *name = r->tables->symbols[i].name;
        if (ptowsp_run_bound_symbol(r->run, i, &value)) {
            npu_print(&r->text, "--symbol %s=%llu\n", name, (unsigned long long)value);
            is_good = npu_record_name(r, name);
        }
    }
    for (uint32_t i = 0; i < r->tables->slot_count; i++) {
        uint64_t value = ptowsp_run_bound_slot(r->run, i);
        if (value) {
            npu_print(&r->text, "--slot %u=%llu\n", (unsigned)i, (unsigned long long)value);
        }
    }
    return is_good && npu_record_memory(r) && npu_record_views(r);
}

// -- the results of the run -----------------------------------------------------------------------

static bool npu_record_results(npu_recording *r) {
    bool is_good = true;
    for (uint32_t i = 1; i < r->tables->axis_count && is_good; i++) {
        is_good = npu_record_plan(r, i);
    }
    for (uint32_t i = 1; i < r->tables->tensor_count && is_good; i++) {
        const ptowsp_tensor_info *tensor = &r->tables->tensors[i];
        ptowsp_buffer buffer;
        npu_text bytes = {NULL, 0, 0, false};
        if (tensor->is_used && tensor->is_written && ptowsp_run_bound_tensor(r->run, i, &buffer)) {
            npu_print_elements(&bytes, &buffer);
            npu_print(&r->text, "--expect %s=", tensor->desc.name);
            npu_record_file(r, "o", ++r->output_count, &bytes);
            npu_print(&r->text, "\n");
        }
    }
    for (uint32_t i = 0; i < r->tables->slot_count; i++) {
        npu_print(&r->text, "--expect-slot %u=%llu\n", (unsigned)i,
                  (unsigned long long)ptowsp_run_slot(r->run, i));
    }
    npu_print(&r->text, "--expect-cycles %llu\n",
              (unsigned long long)ptowsp_run_result(r->run)->makespan_cycles);
    return is_good;
}

static void npu_record_end(npu_recording *r) {
    npu_emitter *emitter = r->emitter;
    for (uint32_t i = r->first_file; i < emitter->file_count; i++) {
        const npu_file *file = &emitter->files[i];
        npu_print(&r->text, "file %s %llu %016llx\n", file->path + strlen(r->directory),
                  (unsigned long long)file->size,
                  (unsigned long long)ptowsp_hash(PTOWSP_HASH_START, file->data, file->size));
    }
    npu_print(&r->text, "end %016llx\n",
              (unsigned long long)ptowsp_hash(PTOWSP_HASH_START, r->text.data ? r->text.data : "",
                                              r->text.size));
    npu_add_file(emitter, &r->text, "%srecording", r->directory);
}

NPU_INTERNAL void npu_record_run(npu_emitter *emitter, ptowsp_run *run,
                                 const ptowsp_run_options *options, const char *directory) {
    static const char models[][16] = {
#define NPU_MODEL_TEXT(name, text) text,
        PTOWSP_MODELS(NPU_MODEL_TEXT)
#undef NPU_MODEL_TEXT
    };
    npu_recording r;
    memset(&r, 0, sizeof r);
    r.emitter = emitter;
    r.directory = directory;
    r.first_file = emitter->file_count;
    r.run = run;
    r.tables = emitter->tables;
    npu_print(&r.text, "ptowsp recording 1\nprogram %s\n--model %s\n", emitter->hash,
              models[options ? options->cost.model : PTOWSP_MODEL_UNIT]);
    // Adding files may have failed although the lines are good.
    if (emitter->status == PTOWSP_OK && npu_record_bindings(&r) && emitter->status == PTOWSP_OK) {
        emitter->status = ptowsp_run_execute(run, options);  // reports in the context
        if (emitter->status == PTOWSP_OK && npu_record_results(&r)) {
            npu_record_end(&r);
        }
    }
    npu_text_free(&r.text);
    npu_resize(r.blocks, 0);
}

ptowsp_status ptowsp_npu_record(ptowsp_context *context, ptowsp_run *run,
                                const ptowsp_run_options *options, const char *directory) {
    if (!run || !directory || !*directory) {
        return ptowsp_context_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                                   "emit: there is no run to record, or no directory for it");
    }
    if (options && (options->mode == PTOWSP_RUN_TIME_ONLY || options->cost.fn ||
                    options->cost.timing || options->cost.model == PTOWSP_MODEL_USER ||
                    (uint32_t)options->cost.model > PTOWSP_MODEL_950PR)) {
        return ptowsp_context_fail(
            context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
            "emit: a recording needs data, and a cost model that trees have");
    }
    npu_emitter emitter;
    npu_emitter_open(&emitter, context, ptowsp_run_program(run), false);
    npu_files_free(&emitter);
    emitter.files = NULL;
    emitter.file_count = emitter.file_capacity = 0;
    npu_record_run(&emitter, run, options, "");
    if (emitter.status == PTOWSP_OK) {
        ptowsp_npu_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.directory = directory;
        desc.is_for_host = true;
        npu_tree_write(&emitter, &desc);
    }
    return npu_emitter_close(&emitter);
}

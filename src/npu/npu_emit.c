// The public functions: their checks, and the order in which the files of a tree are made.
//
//      expand.cpp      names its places
//      kernels         may fail by name
//      program.cpp     tables, places
//      fixed files, README.md
//      manifest.json   with the hash of all sources, which goes into program.cpp too

#include "npu.h"

// -- checks ---------------------------------------------------------------------------------------

static bool npu_check_count(npu_emitter *emitter, uint32_t count, uint32_t max, const char *what) {
    return count <= max ? true
                        : npu_fail(emitter, PTOWSP_LIMIT_EXCEEDED, count,
                                   "the program has %u %s; a tree has at most %u", (unsigned)count,
                                   what, (unsigned)max);
}

static bool npu_check_limits(npu_emitter *emitter) {
    const ptowsp_program_tables *t = emitter->tables;
    return npu_check_count(emitter, t->axis_count, NPU_TABLE_MAX, "axes") &&
           npu_check_count(emitter, t->array_count, NPU_TABLE_MAX, "arrays") &&
           npu_check_count(emitter, t->symbol_count, NPU_TABLE_MAX, "symbols") &&
           npu_check_count(emitter, t->tensor_count, NPU_TABLE_MAX, "tensors") &&
           npu_check_count(emitter, t->kernel_count, NPU_TABLE_MAX, "kernels") &&
           npu_check_count(emitter, t->channel_count, NPU_TABLE_MAX, "channels") &&
           npu_check_count(emitter, t->statement_count, NPU_STATEMENT_MAX, "statements");
}

// Kernels that are C functions need their source; with a cost function, its source as well. PTO-ISA
// sources have none of a cost function.
static bool npu_check_kernels(npu_emitter *emitter) {
    for (uint32_t i = 1; i < emitter->tables->kernel_count; i++) {
        const ptowsp_kernel_info *kernel = &emitter->tables->kernels[i];
        const char *wrong = NULL;
        if (!kernel->is_used || kernel->is_tile_kernel) {
            continue;
        }
        if (kernel->pto) {
            wrong = kernel->has_cost
                        ? ": a PTO-ISA source with a cost function cannot be emitted, as "
                          "a tree does not have the function (give cycles, or neither)"
                        : NULL;
        } else if (!kernel->source.text && !kernel->source.file) {
            wrong = " has no source (ptowsp_kernel_source), which a tree needs";
        } else if (!kernel->has_fn) {
            wrong = ": no source, as it has no function";
        } else if (kernel->has_cost && !kernel->source.cost) {
            wrong = " has a cost function, which its source does not name";
        }
        if (wrong) {
            return npu_fail(emitter, PTOWSP_UNSUPPORTED, i, "kernel %s%s", kernel->name, wrong);
        }
    }
    return true;
}

// A kernel of MIX runs on a block's three cores, if it has a half for each kind of core. Others are
// executed where one core is both; PTO Runtime submits to three cores, in its simulators too.
static bool npu_check_mixed(npu_emitter *emitter) {
    for (uint32_t i = 1; i < emitter->tables->kernel_count; i++) {
        const ptowsp_kernel_info *kernel = &emitter->tables->kernels[i];
        if (kernel->is_used && kernel->unit == PTOWSP_UNIT_MIX && !kernel->is_mixed) {
            bool is_tiles = kernel->is_tile_kernel;
            if (emitter->is_simpler) {
                return npu_fail(emitter, PTOWSP_UNSUPPORTED, i,
                                "kernel %s works on cube and vector cores at once: kernels of %s "
                                "are not cut into a half for each (rule: direct FIFOs), which PTO "
                                "Runtime needs",
                                kernel->name, kernel->machine.name);
            }
            return npu_fail(emitter, PTOWSP_UNSUPPORTED, i,
                            "kernel %s works on cube and vector cores at once: %s%s%s "
                            "(%sis_for_host: for threads and simulators)",
                            kernel->name,
                            is_tiles      ? "kernels of "
                            : kernel->pto ? "PTO-ISA sources of this kind have"
                                          : "C functions have",
                            is_tiles ? kernel->machine.name : "",
                            is_tiles ? " are not cut into a half for each"
                                     : " no halves that a tree could start on a device",
                            is_tiles ? "rule: direct FIFOs; " : "");
        }
    }
    return true;
}

static bool npu_check_statements(npu_emitter *emitter) {
    for (uint32_t i = 0; i < emitter->tables->statement_count; i++) {
        if (emitter->tables->statements[i].kind == PTOWSP_STATEMENT_LIST) {
            return npu_fail(emitter, PTOWSP_UNSUPPORTED, i,
                            "a list of tasks, which has no loops to emit");
        }
    }
    return true;
}

// -- a tree in memory -----------------------------------------------------------------------------

NPU_INTERNAL bool npu_read(npu_emitter *emitter, const ptowsp_program *program) {
    const ptowsp_program_tables *t = ptowsp_program_read(program);
    if (!t) {
        return npu_out_of_memory(emitter);
    }
    emitter->program = program;
    emitter->tables = t;
    return true;
}

static void npu_make_files(npu_emitter *emitter) {
    npu_text expand = {NULL, 0, 0, false};
    npu_expand_emit(emitter, &expand);
    npu_program_emit(emitter);
    npu_add_file(emitter, &expand, "aicpu/expand.cpp");
    if (emitter->status == PTOWSP_OK) {
        npu_kernels_emit(emitter);
    }
    if (emitter->status == PTOWSP_OK) {
        npu_fixed_emit(emitter);
        npu_hash_sources(emitter, emitter->hash);
        if (emitter->status == PTOWSP_OK) {
            npu_program_set_hash(emitter, emitter->hash);
            npu_manifest_emit(emitter, emitter->hash);
        }
    }
}

NPU_INTERNAL void npu_emitter_open(npu_emitter *emitter, ptowsp_context *context,
                                   const ptowsp_program *program, bool is_for_device) {
    memset(emitter, 0, sizeof *emitter);
    emitter->is_for_device = is_for_device;
    emitter->context = context;
    emitter->index = PTOWSP_NO_INDEX;
    if (!program) {
        npu_fail(emitter, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "program is NULL");
        return;
    }
    emitter->status = ptowsp_program_check(context, program, PTOWSP_TARGET_ASCEND_NPU);
    if (emitter->status == PTOWSP_OK) {
        emitter->status = ptowsp_program_prove(context, program);
    }
    if (emitter->status != PTOWSP_OK) {
        return;  // reported in the context
    }
    if (!npu_read(emitter, program) || !npu_check_limits(emitter) ||
        !npu_check_statements(emitter) || !npu_check_kernels(emitter)) {
        return;
    }
    uint32_t capacity = 0;
    if (!NPU_ROOM(emitter->kernel_files, capacity, emitter->tables->kernel_count)) {
        npu_out_of_memory(emitter);
        return;
    }
    npu_names_make(emitter);
    if (emitter->status == PTOWSP_OK) {
        npu_make_files(emitter);
    }
}

NPU_INTERNAL ptowsp_status npu_emitter_close(npu_emitter *emitter) {
    npu_files_free(emitter);
    npu_names_free(&emitter->names);
    npu_resize(emitter->kernel_files, 0);
    npu_resize(emitter->place_nodes, 0);
    npu_resize(emitter->node_places, 0);
    if (*emitter->error) {
        ptowsp_context_fail(emitter->context, emitter->status, emitter->index, emitter->error);
    }
    return emitter->status;
}

// -- public ---------------------------------------------------------------------------------------

ptowsp_status ptowsp_npu_emit_files(ptowsp_context *context, const ptowsp_program *program,
                                    ptowsp_npu_file_fn file, void *user) {
    npu_emitter emitter;
    npu_emitter_open(&emitter, context, program, false);
    if (emitter.status == PTOWSP_OK && !file) {
        npu_fail(&emitter, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "file is NULL");
    }
    for (uint32_t i = 0; i < emitter.file_count && emitter.status == PTOWSP_OK; i++) {
        const npu_file *at = &emitter.files[i];
        ptowsp_status status = file(user, at->path, at->data, at->size);
        if (status != PTOWSP_OK) {
            npu_fail(&emitter, status, i, "the callback returned %s for %s",
                     ptowsp_status_name(status), at->path);
        }
    }
    return npu_emitter_close(&emitter);
}

ptowsp_status ptowsp_npu_emit(ptowsp_context *context, const ptowsp_program *program,
                              const ptowsp_npu_desc *desc) {
    if (!desc || !desc->directory || !*desc->directory) {
        return ptowsp_context_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                                   "emit: there is no directory to write to");
    }
    const bool is_simpler = desc->runtime == PTOWSP_NPU_SIMPLER;
    npu_emitter emitter;
    npu_emitter_open(&emitter, context, program, !desc->is_for_host);
    if (emitter.status == PTOWSP_OK && npu_simpler_check(&emitter, desc) &&
        ((desc->is_for_host && !is_simpler) || npu_check_mixed(&emitter))) {
        if (is_simpler) {
            npu_simpler_emit(&emitter, desc);
        }
        if (emitter.status == PTOWSP_OK) {
            npu_tree_write(&emitter, desc);
        }
    }
    return npu_emitter_close(&emitter);
}

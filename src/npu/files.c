// The files of a tree, in memory, and the hash of its sources; also the emitter's error and its
// places, which all files share.

#include "npu.h"

#include <stdio.h>

NPU_INTERNAL bool npu_fail(npu_emitter *emitter, ptowsp_status status, uint64_t index,
                           const char *format, ...) {
    if (emitter->status == PTOWSP_OK) {
        emitter->status = status;
        emitter->index = index;
        int start = snprintf(emitter->error, sizeof emitter->error, "emit: ");
        va_list args;
        va_start(args, format);
        vsnprintf(emitter->error + start, sizeof emitter->error - (size_t)start, format, args);
        va_end(args);
    }
    return false;
}

NPU_INTERNAL bool npu_out_of_memory(npu_emitter *emitter) {
    return npu_fail(emitter, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX, "no memory for the tree");
}

// -- places ---------------------------------------------------------------------------------------

NPU_INTERNAL uint32_t npu_place(npu_emitter *emitter, uint32_t node) {
    uint32_t place = emitter->place_count ? emitter->place_count : 1;  // places count from 1
    if (!NPU_ROOM(emitter->node_places, emitter->node_capacity, (uint64_t)node + 1) ||
        !NPU_ROOM(emitter->place_nodes, emitter->place_capacity, (uint64_t)place + 1)) {
        npu_out_of_memory(emitter);
        return 0;
    }
    if (emitter->node_places[node] == 0) {
        emitter->node_places[node] = place;
        emitter->place_nodes[place] = node;
        emitter->place_count = place + 1;
    }
    return emitter->node_places[node];
}

// -- files ----------------------------------------------------------------------------------------

static npu_file *npu_new_file(npu_emitter *emitter) {
    if (!NPU_ROOM(emitter->files, emitter->file_capacity, (uint64_t)emitter->file_count + 1)) {
        npu_out_of_memory(emitter);
        return NULL;
    }
    return &emitter->files[emitter->file_count++];
}

NPU_INTERNAL uint32_t npu_add_file(npu_emitter *emitter, npu_text *text, const char *path, ...) {
    npu_text name = {NULL, 0, 0, false};
    va_list args;
    va_start(args, path);
    npu_vprint(&name, path, args);
    va_end(args);
    npu_write(text, "", 0);  // a terminator, if it is empty
    npu_file *file = NULL;
    if (text->is_out_of_memory || name.is_out_of_memory) {
        npu_out_of_memory(emitter);
    } else {
        file = npu_new_file(emitter);
    }
    if (!file) {
        npu_text_free(&name);
        npu_text_free(text);
        return 0;
    }
    file->path = file->own_path = name.data;
    file->data = file->own_data = text->data;
    file->size = text->size;
    memset(text, 0, sizeof *text);
    return emitter->file_count - 1;
}

NPU_INTERNAL void npu_add_fixed_file(npu_emitter *emitter, const char *path, const char *data,
                                     size_t size) {
    npu_file *file = npu_new_file(emitter);
    if (file) {
        file->path = path;
        file->data = data;
        file->size = size;
    }
}

// Does the source of a kernel mention a function of section 8?
static bool npu_has_merges(const npu_emitter *emitter) {
    static const char kernels[] = "aicore/kernels/";
    for (uint32_t i = 0; i < emitter->file_count; i++) {
        const npu_file *file = &emitter->files[i];
        if (strncmp(file->path, kernels, sizeof kernels - 1) == 0 &&
            strstr(file->data, "ptowsp_merge_")) {
            return true;
        }
    }
    return false;
}

static bool npu_has_plans(const npu_emitter *emitter) {
    for (uint32_t i = 1; i < emitter->tables->axis_count; i++) {
        ptowsp_axis_kind kind = emitter->tables->axes[i].kind;
        if (kind >= PTOWSP_AXIS_PLAN) {
            return true;
        }
    }
    return false;
}

// A source without one of its lines, or as it is, if the line is NULL or not in it.
static void npu_print_without(npu_text *out, const char *source, const char *line) {
    const char *at = line ? strstr(source, line) : NULL;
    npu_write(out, source, at ? (size_t)(at - source) : strlen(source));
    if (at) {
        npu_print(out, "%s", at + strlen(line));
    }
}

// wsp_core.cpp, with the parts of the runtime that the program needs.
static void npu_core_emit(npu_emitter *emitter, const npu_fixed *fixed) {
    npu_text text = {NULL, 0, 0, false}, all = {NULL, 0, 0, false};
    npu_print_without(&text, fixed->data,
                      emitter->tables->pipeline_count ? NULL : "#define WSP_CORE_PIPELINES\n");
    npu_print_without(&all, text.data ? text.data : "",
                      npu_has_plans(emitter) ? NULL : "#define WSP_CORE_PLANS\n");
    npu_text_end(&all, &text);
    npu_add_file(emitter, &all, "%s", fixed->path);
}

NPU_INTERNAL void npu_fixed_emit(npu_emitter *emitter) {
    static const char pipelines[] = "aicpu/wsp_pipeline", merges[] = "aicore/wsp_merge",
                      simpler[] = "simpler/";
    bool has_merges = npu_has_merges(emitter);
    for (uint32_t i = 0; npu_fixed_at(i).path; i++) {
        npu_fixed fixed = npu_fixed_at(i);
        if (strcmp(fixed.path, "aicpu/wsp_core.cpp") == 0) {
            npu_core_emit(emitter, &fixed);
            continue;
        } else if (strcmp(fixed.path, "README.md") == 0) {
            npu_readme_emit(emitter, fixed.data);
            continue;
        }
        if ((emitter->tables->pipeline_count > 0 ||
             strncmp(fixed.path, pipelines, sizeof pipelines - 1) != 0) &&
            (has_merges || strncmp(fixed.path, merges, sizeof merges - 1) != 0) &&
            strncmp(fixed.path, simpler, sizeof simpler - 1) != 0) {
            npu_add_fixed_file(emitter, fixed.path, fixed.data, fixed.size);
        }
    }
}

NPU_INTERNAL uint64_t npu_line_count(const char *data, size_t size) {
    uint64_t count = 0;
    const char *at = data, *end = data + size;
    while (at < end) {
        const char *newline = (const char *)memchr(at, '\n', (size_t)(end - at));
        at = newline ? newline + 1 : end;
        count++;
    }
    return count;
}

// The hash of a list of the sources, each with its own hash.
NPU_INTERNAL void npu_hash_sources(npu_emitter *emitter, char hash[NPU_HASH_SIZE]) {
    npu_text list = {NULL, 0, 0, false};
    for (uint32_t i = 0; i < emitter->file_count; i++) {
        const npu_file *file = &emitter->files[i];
        if (!file->is_product) {
            char of_file[NPU_HASH_SIZE];
            npu_hash(file->data, file->size, of_file);
            npu_print(&list, "%s  %s\n", of_file, file->path);
        }
    }
    npu_hash(list.data, list.size, hash);
    if (list.is_out_of_memory) {
        npu_out_of_memory(emitter);
    }
    npu_text_free(&list);
}

NPU_INTERNAL void npu_files_free(npu_emitter *emitter) {
    for (uint32_t i = 0; i < emitter->file_count; i++) {
        npu_resize(emitter->files[i].own_path, 0);
        npu_resize(emitter->files[i].own_data, 0);
    }
    npu_resize(emitter->files, 0);
}

// C++ identifiers for all named things of a program.
//
// A name is up to 63 printable characters. Characters that identifiers cannot have become an
// underscore (one for several), long names are cut, and a taken name gets a number. Names are taken
// in the order of the tables, so one program has one set of identifiers.
//
// An identifier that is made of a user's name begins with one of these prefixes. No keyword, and no
// name of the runtime or of a header that trees include does (tests/npu/npu_names_test.c compares), so
// no name is reserved: users may call things task, for or errno.
//
//      v_              variables, channels, tiles, functions of workloads; namespaces of kernels
//      r_, e_          runs of processes, ends of loops
//      wsp_kernel_, wsp_tasks_, wsp_launch_, run_kernel_            functions of kernels
//      AXIS_, ARRAY_, SYMBOL_, TENSOR_, KERNEL_, CHANNEL_           indices

#include "npu.h"

#include <stdio.h>

NPU_INTERNAL void npu_mangle(const char *name, char out[NPU_NAME_MAX + 3]) {
    size_t length = 2;
    bool is_gap = false;
    memcpy(out, "v_", 2);
    for (const char *at = name; *at && length < NPU_NAME_MAX + 2; at++) {
        if ((*at >= 'A' && *at <= 'Z') || (*at >= 'a' && *at <= 'z') ||
            (*at >= '0' && *at <= '9')) {
            if (is_gap && length > 2) {
                out[length++] = '_';
            }
            if (length < NPU_NAME_MAX + 2) {
                out[length++] = *at;
            }
            is_gap = false;
        } else {
            is_gap = true;
        }
    }
    if (length == 2) {
        out[length++] = 'x';
    }
    length -= out[length - 1] == '_';  // cut after a gap
    out[length] = '\0';
}

// -- taken names ----------------------------------------------------------------------------------

// Names that are taken, each in one of several spaces, with scopes: the last ones can be given back.
// Names that collide in 64 bits of hash count as the same: one then gets a number, which does no
// harm.
typedef struct npu_taken {
    uint64_t *names;  // hashes, in the order in which they were taken
    uint32_t *slots;  // by hash: 1 + the place in names, 0: free
    uint32_t count, capacity, slot_count;
} npu_taken;

// The name spaces: the kinds, and one for the names of expand.cpp.
enum { NPU_SPACE_LOCAL = NPU_KIND_COUNT };

static uint64_t npu_taken_hash(uint32_t space, const char *name) {
    uint64_t hash = ptowsp_hash(PTOWSP_HASH_START, &space, sizeof space);
    for (const char *at = name; *at; at++) {
        bool is_lowered = space == NPU_KERNEL && *at >= 'A' && *at <= 'Z';
        char c = (char)(is_lowered ? *at - 'A' + 'a' : *at);
        hash = ptowsp_hash(hash, &c, 1);
    }
    return hash;
}

// The slot that has a name, or the free one where it would be. Names are removed in the reverse order
// of insertion, so the probe of a name that is present never meets a free slot.
static uint32_t *npu_taken_slot(const npu_taken *taken, uint64_t hash) {
    uint32_t i = (uint32_t)hash & (taken->slot_count - 1);
    while (taken->slots[i] && taken->names[taken->slots[i] - 1] != hash) {
        i = (i + 1) & (taken->slot_count - 1);
    }
    return &taken->slots[i];
}

static bool npu_taken_has(const npu_taken *taken, uint32_t space, const char *name) {
    return taken->slot_count && *npu_taken_slot(taken, npu_taken_hash(space, name));
}

// False when memory is out.
static bool npu_taken_add(npu_taken *taken, uint32_t space, const char *name) {
    if (!NPU_ROOM(taken->names, taken->capacity, (uint64_t)taken->count + 1)) {
        return false;
    }
    if (2 * (taken->count + 1) > taken->slot_count) {
        uint32_t wider = taken->slot_count ? 2 * taken->slot_count : 256, none = 0;
        uint32_t *slots = NULL;
        if (!NPU_ROOM(slots, none, wider)) {
            return false;
        }
        npu_resize(taken->slots, 0);
        taken->slots = slots;
        taken->slot_count = wider;
        for (uint32_t i = 0; i < taken->count; i++) {
            *npu_taken_slot(taken, taken->names[i]) = i + 1;
        }
    }
    uint64_t hash = npu_taken_hash(space, name);
    taken->names[taken->count++] = hash;
    *npu_taken_slot(taken, hash) = taken->count;
    return true;
}

// Gives back all but the first `count`.
static void npu_taken_drop(npu_taken *taken, uint32_t count) {
    while (taken->count > count) {
        *npu_taken_slot(taken, taken->names[taken->count - 1]) = 0;
        taken->count--;
    }
}

static void npu_taken_free(npu_taken *taken) {
    npu_resize(taken->names, 0);
    npu_resize(taken->slots, 0);
}

// -- the tables -----------------------------------------------------------------------------------

typedef struct npu_namer {
    npu_emitter *emitter;
    npu_taken taken;
    npu_taken open;  // names of variables that are in use here
} npu_namer;

// Gives a thing its identifier. One of a variable is taken until its statement ends.
static void npu_name_give(npu_namer *namer, npu_kind kind, uint32_t index, const char *original) {
    const bool is_local = kind >= NPU_CHANNEL;
    npu_taken *taken = kind == NPU_VARIABLE ? &namer->open : &namer->taken;
    npu_names *names = &namer->emitter->names;
    char base[NPU_NAME_MAX + 3], name[NPU_NAME_MAX + 16];
    npu_mangle(original ? original : "", base);
    snprintf(name, sizeof name, "%s", base);
    for (uint32_t number = 2; npu_taken_has(taken, kind, name) ||
                              (is_local && npu_taken_has(&namer->taken, NPU_SPACE_LOCAL, name));
         number++) {
        snprintf(name, sizeof name, "%s_%u", base, (unsigned)number);
    }
    bool is_added =
        npu_taken_add(taken, kind, name) &&
        (!is_local || taken == &namer->open || npu_taken_add(taken, NPU_SPACE_LOCAL, name));
    names->at[kind][index] = (uint32_t)names->text.size;
    npu_write(&names->text, name, strlen(name) + 1);
    if (!is_added || names->text.is_out_of_memory) {
        npu_out_of_memory(namer->emitter);
        names->at[kind][index] = 0;
    }
}

static bool npu_names_reserve(npu_emitter *emitter) {
    const ptowsp_program_tables *t = emitter->tables;
    npu_names *names = &emitter->names;
    const uint32_t counts[NPU_KIND_COUNT] = {t->axis_count,      t->array_count,   t->symbol_count,
                                             t->tensor_count,    t->kernel_count,  t->channel_count,
                                             t->statement_count, t->variable_count};
    memcpy(names->count, counts, sizeof counts);
    npu_write(&names->text, "v_", 3);  // at 0: no name
    for (uint32_t kind = 0; kind < NPU_KIND_COUNT; kind++) {
        uint32_t capacity = 0;
        if (!NPU_ROOM(names->at[kind], capacity, (uint64_t)counts[kind] + 1)) {
            return npu_out_of_memory(emitter);
        }
    }
    return true;
}

static void npu_names_declared(npu_namer *namer) {
    const ptowsp_program_tables *t = namer->emitter->tables;
    const npu_names *names = &namer->emitter->names;
    for (uint32_t i = 1; i < names->count[NPU_AXIS]; i++) {
        const ptowsp_axis_info *axis = &t->axes[i];
        if (axis->name) {
            const char *part = axis->kind == PTOWSP_AXIS_PLAN_MERGES  ? " merges"
                               : axis->kind == PTOWSP_AXIS_PLAN_LANES ? " lanes"
                                                                      : "";
            char name[PTOWSP_NAME_MAX + 16];
            snprintf(name, sizeof name, "%s%s", axis->name, part);
            npu_name_give(namer, NPU_AXIS, i, name);
        }
    }
    for (uint32_t i = 1; i < names->count[NPU_ARRAY]; i++) {
        npu_name_give(namer, NPU_ARRAY, i, t->arrays[i].name);
    }
    for (uint32_t i = 1; i < names->count[NPU_SYMBOL]; i++) {
        npu_name_give(namer, NPU_SYMBOL, i, t->symbols[i].name);
    }
    for (uint32_t i = 1; i < names->count[NPU_TENSOR]; i++) {
        npu_name_give(namer, NPU_TENSOR, i, t->tensors[i].desc.name);
    }
    for (uint32_t i = 1; i < names->count[NPU_KERNEL]; i++) {
        npu_name_give(namer, NPU_KERNEL, i, t->kernels[i].name);
    }
    for (uint32_t i = 0; i < names->count[NPU_CHANNEL]; i++) {
        npu_name_give(namer, NPU_CHANNEL, i, t->channels[i].name);
    }
}

// Names a variable in use from here to the end of its statement.
static void npu_variable_open(npu_namer *namer, uint32_t variable) {
    const char *name = namer->emitter->tables->variables[variable].name;
    npu_name_give(namer, NPU_VARIABLE, variable, name);
}

// Workloads come first, as all their functions are declared before the first one is defined. Then
// variables, each with the enclosing variables visible.
static void npu_names_statements(npu_namer *namer) {
    const ptowsp_program_tables *t = namer->emitter->tables;
    uint32_t count = namer->emitter->tables->statement_count;
    for (uint32_t i = 0; i < count; i++) {
        const ptowsp_statement *statement = &t->statements[i];
        if (statement->kind == PTOWSP_STATEMENT_WORKLOAD) {
            npu_name_give(namer, NPU_WORKLOAD, i, statement->name);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        const ptowsp_statement *statement = &t->statements[i];
        const ptowsp_statement *begin = &t->statements[statement->begin];
        if (statement->kind == PTOWSP_STATEMENT_WORKLOAD) {
            for (uint32_t k = 0; k < statement->count; k++) {
                npu_variable_open(namer, t->params[statement->first + k]);
            }
        } else if (statement->kind != PTOWSP_STATEMENT_END && statement->variable) {
            npu_variable_open(namer, statement->variable);
        } else if (statement->kind == PTOWSP_STATEMENT_END) {
            uint32_t open = begin->kind == PTOWSP_STATEMENT_WORKLOAD ? 0
                            : begin->variable && namer->open.count   ? namer->open.count - 1
                                                                     : namer->open.count;
            npu_taken_drop(&namer->open, open);
        }
    }
}

NPU_INTERNAL void npu_names_make(npu_emitter *emitter) {
    npu_namer namer;
    memset(&namer, 0, sizeof namer);
    namer.emitter = emitter;
    if (npu_names_reserve(emitter)) {
        npu_names_declared(&namer);
        npu_names_statements(&namer);
    }
    npu_taken_free(&namer.taken);
    npu_taken_free(&namer.open);
}

NPU_INTERNAL void npu_names_free(npu_names *names) {
    for (uint32_t kind = 0; kind < NPU_KIND_COUNT; kind++) {
        npu_resize(names->at[kind], 0);
    }
    npu_text_free(&names->text);
}

NPU_INTERNAL const char *npu_user_name(const npu_emitter *emitter, npu_kind kind, uint32_t index) {
    const npu_names *names = &emitter->names;
    PTOWSP_ASSERT(index < names->count[kind] && names->at[kind]);
    PTOWSP_ASSERT(names->at[kind][index] != 0 || emitter->status != PTOWSP_OK);
    return names->text.data ? names->text.data + names->at[kind][index] : "v_";
}

NPU_INTERNAL const char *npu_name(const npu_emitter *emitter, npu_kind kind, uint32_t index) {
    return npu_user_name(emitter, kind, index) + 2;
}

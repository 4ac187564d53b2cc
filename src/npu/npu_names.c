// C++ identifiers for all named things of a program.
//
// A name is up to 63 printable characters. Characters that identifiers cannot have become an
// underscore (one for several), long names are cut, and a taken name gets a number. Names are taken
// in the order of the tables, so one program has one set of identifiers.
//
// An identifier that is made of a user's name begins with one of these prefixes. No keyword, and no
// name of the runtime or of a header that trees include does (tests/npu_names_test.sh compares), so
// no name is reserved: users may call things task, for or errno.
//
//      v_              variables, tiles, functions of workloads; namespaces of kernels
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

// A hash set of names, each in one of several spaces: the kinds, and that of local names.
enum { NPU_SPACE_LOCAL = NPU_KIND_COUNT };

typedef struct npu_taken {
    uint64_t *slots;  // hashes, 0: free
    uint64_t slot_count, count;
} npu_taken;

// Names that collide in 64 bits of hash count as the same: one then gets a number, which does no
// harm.
static uint64_t npu_taken_hash(uint32_t space, const char *name) {
    uint64_t hash = ptowsp_hash(PTOWSP_HASH_START, &space, sizeof space);
    for (const char *at = name; *at; at++) {
        bool is_lowered = space == NPU_KERNEL && *at >= 'A' && *at <= 'Z';
        char c = (char)(is_lowered ? *at - 'A' + 'a' : *at);
        hash = ptowsp_hash(hash, &c, 1);
    }
    return hash ? hash : 1;
}

static bool npu_taken_has(const npu_taken *taken, uint32_t space, const char *name) {
    uint64_t hash = npu_taken_hash(space, name);
    for (uint64_t i = hash; taken->slot_count; i++) {
        uint64_t found = taken->slots[i & (taken->slot_count - 1)];
        if (found == 0 || found == hash) {
            return found != 0;
        }
    }
    return false;
}

static void npu_taken_put(npu_taken *taken, uint64_t hash) {
    uint64_t i = hash;
    while (taken->slots[i & (taken->slot_count - 1)]) {
        i++;
    }
    taken->slots[i & (taken->slot_count - 1)] = hash;
    taken->count++;
}

static bool npu_taken_add(npu_taken *taken, uint32_t space, const char *name) {
    if (2 * (taken->count + 1) > taken->slot_count) {
        npu_taken wider = {NULL, taken->slot_count ? 2 * taken->slot_count : 256, 0};
        wider.slots = (uint64_t *)npu_resize(NULL, (size_t)wider.slot_count * sizeof(uint64_t));
        if (!wider.slots) {
            return false;
        }
        memset(wider.slots, 0, (size_t)wider.slot_count * sizeof(uint64_t));
        for (uint64_t i = 0; i < taken->slot_count; i++) {
            if (taken->slots[i]) {
                npu_taken_put(&wider, taken->slots[i]);
            }
        }
        npu_resize(taken->slots, 0);
        *taken = wider;
    }
    npu_taken_put(taken, npu_taken_hash(space, name));
    return true;
}

// -- the tables -----------------------------------------------------------------------------------

typedef struct npu_namer {
    npu_emitter *emitter;
    npu_taken taken;
    uint32_t open[2 * PTOWSP_MODULE_NEST_MAX + 64];  // variables that are in use here
    uint32_t open_count;
} npu_namer;

static bool npu_is_open(const npu_namer *namer, const char *name) {
    for (uint32_t i = 0; i < namer->open_count; i++) {
        if (strcmp(npu_user_name(namer->emitter, NPU_VARIABLE, namer->open[i]), name) == 0) {
            return true;
        }
    }
    return false;
}

// Gives a thing its identifier. A local one is a name of its own in expand.cpp.
static void npu_name_give(npu_namer *namer, npu_kind kind, uint32_t index, const char *original,
                          bool is_local) {
    npu_names *names = &namer->emitter->names;
    char base[NPU_NAME_MAX + 3], name[NPU_NAME_MAX + 16];
    npu_mangle(original ? original : "", base);
    snprintf(name, sizeof name, "%s", base);
    for (uint32_t number = 2;; number++) {
        bool is_taken = kind == NPU_VARIABLE ? npu_is_open(namer, name)
                                             : npu_taken_has(&namer->taken, kind, name);
        if (!is_taken && !(is_local && npu_taken_has(&namer->taken, NPU_SPACE_LOCAL, name))) {
            break;
        }
        snprintf(name, sizeof name, "%s_%u", base, (unsigned)number);
    }
    bool is_added = kind == NPU_VARIABLE ||
                    (npu_taken_add(&namer->taken, kind, name) &&
                     (!is_local || npu_taken_add(&namer->taken, NPU_SPACE_LOCAL, name)));
    names->at[kind][index] = (uint32_t)names->text.size;
    npu_write(&names->text, name, strlen(name) + 1);
    if (!is_added || names->text.is_out_of_memory) {
        npu_out_of_memory(namer->emitter);
        names->at[kind][index] = 0;
    }
}

static bool npu_names_reserve(npu_emitter *emitter) {
    const ptowsp_program *program = emitter->program;
    npu_names *names = &emitter->names;
    names->count[NPU_AXIS] = ptowsp_program_axis_count(program);
    names->count[NPU_ARRAY] = ptowsp_program_array_count(program);
    names->count[NPU_SYMBOL] = ptowsp_program_symbol_count(program);
    names->count[NPU_TENSOR] = ptowsp_program_tensor_count(program);
    names->count[NPU_KERNEL] = ptowsp_program_kernel_count(program);
    names->count[NPU_CHANNEL] = ptowsp_program_channel_count(program);
    names->count[NPU_WORKLOAD] = ptowsp_program_statement_count(program);
    names->count[NPU_VARIABLE] = ptowsp_program_variable_count(program);
    npu_write(&names->text, "v_", 3);  // at 0: no name
    for (uint32_t kind = 0; kind < NPU_KIND_COUNT; kind++) {
        size_t size = (names->count[kind] + 1) * sizeof(uint32_t);
        names->at[kind] = (uint32_t *)npu_resize(NULL, size);
        if (!names->at[kind]) {
            return npu_out_of_memory(emitter);
        }
        memset(names->at[kind], 0, size);
    }
    return true;
}

static void npu_names_declared(npu_namer *namer) {
    const ptowsp_program *program = namer->emitter->program;
    const npu_names *names = &namer->emitter->names;
    for (uint32_t i = 1; i < names->count[NPU_AXIS]; i++) {
        ptowsp_axis_info axis = ptowsp_program_axis_at(program, i);
        if (axis.name) {
            const char *part = axis.kind == PTOWSP_AXIS_PLAN_MERGES  ? " merges"
                               : axis.kind == PTOWSP_AXIS_PLAN_LANES ? " lanes"
                                                                     : "";
            char name[PTOWSP_NAME_MAX + 16];
            snprintf(name, sizeof name, "%s%s", axis.name, part);
            npu_name_give(namer, NPU_AXIS, i, name,
                          axis.kind == PTOWSP_AXIS_DYNAMIC || axis.kind >= PTOWSP_AXIS_PLAN);
        }
    }
    for (uint32_t i = 1; i < names->count[NPU_ARRAY]; i++) {
        ptowsp_array_info array = ptowsp_program_array_at(program, i);
        npu_name_give(namer, NPU_ARRAY, i, array.name,
                      !array.is_lengths || array.dtype != PTOWSP_DTYPE_NONE);
    }
    for (uint32_t i = 1; i < names->count[NPU_SYMBOL]; i++) {
        npu_name_give(namer, NPU_SYMBOL, i, ptowsp_program_symbol_at(program, i).name, true);
    }
    for (uint32_t i = 1; i < names->count[NPU_TENSOR]; i++) {
        npu_name_give(namer, NPU_TENSOR, i, ptowsp_program_tensor_at(program, i).desc.name, false);
    }
    for (uint32_t i = 1; i < names->count[NPU_KERNEL]; i++) {
        npu_name_give(namer, NPU_KERNEL, i, ptowsp_program_kernel_at(program, i).name, false);
    }
    for (uint32_t i = 0; i < names->count[NPU_CHANNEL]; i++) {
        npu_name_give(namer, NPU_CHANNEL, i, ptowsp_program_channel_at(program, i).name, true);
    }
}

// Names a variable in use from here to the end of its statement.
static void npu_variable_open(npu_namer *namer, uint32_t variable) {
    PTOWSP_ASSERT(namer->open_count < sizeof namer->open / sizeof namer->open[0]);
    const char *name = ptowsp_program_variable_at(namer->emitter->program, variable).name;
    npu_name_give(namer, NPU_VARIABLE, variable, name, true);
    namer->open[namer->open_count++] = variable;
}

// Workloads come first, as their functions are all declared before the first of them; then
// variables, with those around them.
static void npu_names_statements(npu_namer *namer) {
    const ptowsp_program *program = namer->emitter->program;
    uint32_t count = namer->emitter->statement_count;
    for (uint32_t i = 0; i < count; i++) {
        ptowsp_statement statement = ptowsp_program_statement_at(program, i);
        if (statement.kind == PTOWSP_STATEMENT_WORKLOAD) {
            npu_name_give(namer, NPU_WORKLOAD, i, statement.name, true);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        ptowsp_statement statement = ptowsp_program_statement_at(program, i);
        switch (statement.kind) {
        case PTOWSP_STATEMENT_WORKLOAD:
            for (uint32_t k = 0; k < statement.count; k++) {
                npu_variable_open(namer, ptowsp_program_param_at(program, statement.first + k));
            }
            break;
        case PTOWSP_STATEMENT_LOOP:
        case PTOWSP_STATEMENT_PROCESS:
        case PTOWSP_STATEMENT_CONSUME:
        case PTOWSP_STATEMENT_RECEIVE:
            if (statement.variable) {
                npu_variable_open(namer, statement.variable);
            }
            break;
        case PTOWSP_STATEMENT_END: {
            ptowsp_statement begin = ptowsp_program_statement_at(program, statement.begin);
            bool has_one =
                begin.kind == PTOWSP_STATEMENT_LOOP || begin.kind == PTOWSP_STATEMENT_PROCESS ||
                begin.kind == PTOWSP_STATEMENT_CONSUME || begin.kind == PTOWSP_STATEMENT_RECEIVE;
            if (begin.kind == PTOWSP_STATEMENT_WORKLOAD) {
                namer->open_count = 0;
            } else if (has_one && begin.variable) {
                namer->open_count--;
            }
            break;
        }
        default: break;
        }
    }
}

NPU_INTERNAL void npu_names_make(npu_emitter *emitter) {
    npu_namer *namer = (npu_namer *)npu_resize(NULL, sizeof(npu_namer));
    if (!namer || !npu_names_reserve(emitter)) {
        npu_out_of_memory(emitter);
        npu_resize(namer, 0);
        return;
    }
    memset(namer, 0, sizeof *namer);
    namer->emitter = emitter;
    npu_names_declared(namer);
    npu_names_statements(namer);
    npu_resize(namer->taken.slots, 0);
    npu_resize(namer, 0);
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

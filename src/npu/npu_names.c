// C++ identifiers for all named things of a program.
//
// A name is up to 63 printable characters. Characters that identifiers cannot have become an
// underscore (one for several), and long names are cut. A reserved word gets an underscore at its
// end; a taken name, a number. Names are taken in the order of the tables, so one program has one
// set of identifiers.

#include "npu.h"

#include <stdio.h>

// Words that we do not use as identifiers: C++ up to 23 with its alternative operators; lower-case
// macros and types of C headers; namespaces; names in fixed files (all that headers of host, AICPU
// and clock have in namespace wsp) and in expand.cpp; and names of namespace pto that kernels use.
static const char npu_reserved_words[] =
    " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t "
    "char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr "
    "constinit continue decltype default delete do double dynamic_cast else enum explicit export "
    "extern false final float for friend goto if import inline int long module mutable namespace "
    "new noexcept not not_eq nullptr operator or or_eq override private protected public reflexpr "
    "register reinterpret_cast requires return restrict short signed sizeof static static_assert "
    "static_cast struct switch synchronized template this thread_local throw transaction_safe true "
    "try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while "
    "xor xor_eq "
    "L_ctermid L_cuserid L_tmpnam P_tmpdir be16toh be32toh be64toh htobe16 htobe32 htobe64 htole16 "
    "htole32 htole64 le16toh le32toh le64toh offsetof pthread_cleanup_pop pthread_cleanup_push "
    "sched_priority strdupa strndupa va_arg va_copy va_end va_start "
    "drand48_data fd_mask fd_set itimerspec lconv obstack random_data sched_param sigevent stat "
    "timespec timeval timex timezone tm u_char u_int u_long u_short uint ulong ushort va_list "
    "alloca assert errno linux unix i386 arm mips sun vax hpux major makedev minor main near far "
    "pascal cdecl small interface signbit stderr stdin stdout environ isinf isnan isfinite "
    "isnormal fpclassify math_errhandling setjmp complex imaginary noreturn half "
    "bfloat16 std wsp pto aicore aicpu gm I "
    "i64 u64 Access Array Channel Clock Entries Entry Extent Items Node Pipeline Plans Port "
    "Process "
    "Run Scheduler Region Scope ScopeKind Task Units consumes element_at max min offset_of "
    "produces enter_plan run to_bool to_i64 "
    "to_u64 walk entry pipeline scope task "
    "Bell Bindings ClockPipeline ClockProgram ClockState ClockTask ClockTensor ClockTile Core "
    "Failure Iterator Network NetworkHost PipelineSums RegionMap SchedulerOptions Submission "
    "Target "
    "AtomicType BLayout CmpMode GlobalTensor MaskPattern MrgSortExecutedNumList PadValue QuantType "
    "ReluPreMode RoundMode SLayout SaturationMode Tile TileAcc TileLeft TileRight TileType "
    "pipe_barrier set_flag wait_flag "
    "begin_polling close_line core_count_of dtype_name dtype_size end_task give_task is_done "
    "is_idle is_open is_polling must_quit open_line poll_task status_name take_back ";

// Is it one of the words, or a numbered name of expand.cpp: scope2?
static bool npu_is_word(const char *name) {
    size_t length = strlen(name), stem = length;
    while (name[stem - 1] <= '9') {
        stem--;
    }
    if ((stem == 5 && strncmp(name, "scope", 5) == 0) ||
        (stem == 5 && strncmp(name, "entry", 5) == 0) ||
        (stem == 4 && strncmp(name, "task", 4) == 0) ||
        (stem == 8 && strncmp(name, "pipeline", 8) == 0)) {
        return true;
    }
    char word[NPU_NAME_MAX + 3];
    if (length > NPU_NAME_MAX) {
        return false;
    }
    snprintf(word, sizeof word, " %s ", name);
    return strstr(npu_reserved_words, word) != NULL;
}

NPU_INTERNAL bool npu_name_is_reserved(const char *name) {
    static const char prefixes[] = "wsp_\0ptowsp_\0pwsp_\0ptoisa_\0pto_\0WSP_\0PTOWSP_\0PWSP_\0"
                                   "PTOISA_\0AXIS_\0ARRAY_\0SYMBOL_\0TENSOR_\0KERNEL_\0CHANNEL_\0"
                                   "INT\0UINT\0PRI\0SCN\0";
    size_t length = strlen(name);
    if (length == 0 || name[0] == '_' || strstr(name, "__")) {
        return true;
    }
    if (name[length - 1] == '_') {
        return false;  // only changed names end so
    }
    for (const char *prefix = prefixes; *prefix; prefix += strlen(prefix) + 1) {
        if (strncmp(name, prefix, strlen(prefix)) == 0) {
            return true;
        }
    }
    // Two capitals without a small letter: perhaps a macro.
    uint32_t capitals = 0, smalls = 0;
    for (size_t i = 0; i < length; i++) {
        capitals += name[i] >= 'A' && name[i] <= 'Z';
        smalls += name[i] >= 'a' && name[i] <= 'z';
    }
    return (capitals > 1 && smalls == 0) || (length > 2 && strcmp(name + length - 2, "_t") == 0) ||
           npu_is_word(name);
}

// The identifier closest to a name, of at most NPU_NAME_MAX characters; it may be reserved.
static void npu_to_identifier(const char *name, char out[NPU_NAME_MAX + 2]) {
    size_t length = 0;
    bool is_gap = false;
    for (const char *at = name; *at && length < NPU_NAME_MAX; at++) {
        bool is_digit = *at >= '0' && *at <= '9';
        if ((*at >= 'A' && *at <= 'Z') || (*at >= 'a' && *at <= 'z') || is_digit) {
            if (length == 0 && is_digit) {
                out[length++] = 'n';
            } else if (is_gap && length > 0) {
                out[length++] = '_';
            }
            if (length < NPU_NAME_MAX) {
                out[length++] = *at;
            }
            is_gap = false;
        } else {
            is_gap = true;
        }
    }
    if (length == 0) {
        out[length++] = 'x';
    }
    length -= out[length - 1] == '_';  // cut after a gap
    out[length] = '\0';
}

NPU_INTERNAL void npu_mangle(const char *name, char out[NPU_NAME_MAX + 2]) {
    npu_to_identifier(name, out);
    if (npu_name_is_reserved(out)) {
        size_t length = strlen(out);
        out[length] = '_';
        out[length + 1] = '\0';
    }
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
        if (strcmp(npu_name(namer->emitter, NPU_VARIABLE, namer->open[i]), name) == 0) {
            return true;
        }
    }
    return false;
}

// Gives a thing its identifier. A local one is a name of its own in expand.cpp.
static void npu_name_give(npu_namer *namer, npu_kind kind, uint32_t index, const char *original,
                          bool is_local) {
    npu_names *names = &namer->emitter->names;
    char base[NPU_NAME_MAX + 2], name[NPU_NAME_MAX + 16];
    original = original ? original : "";
    if (kind == NPU_KERNEL || is_local) {
        npu_mangle(original, base);
    } else {
        npu_to_identifier(original, base);  // TENSOR_, say, stands before it: no word is in its way
    }
    snprintf(name, sizeof name, "%s", base);
    for (uint32_t number = 2;; number++) {
        bool is_taken = kind == NPU_VARIABLE ? npu_is_open(namer, name)
                                             : npu_taken_has(&namer->taken, kind, name);
        if (!is_taken && !(is_local && npu_taken_has(&namer->taken, NPU_SPACE_LOCAL, name))) {
            break;
        }
        bool is_changed = base[strlen(base) - 1] == '_';
        snprintf(name, sizeof name, "%s%s%u%s", base, is_changed ? "" : "_", (unsigned)number,
                 is_changed ? "_" : "");
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
    npu_write(&names->text, "", 1);  // at 0: no name
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

NPU_INTERNAL const char *npu_name(const npu_emitter *emitter, npu_kind kind, uint32_t index) {
    const npu_names *names = &emitter->names;
    PTOWSP_ASSERT(index < names->count[kind] && names->at[kind]);
    const char *name = names->text.data ? names->text.data + names->at[kind][index] : "";
    PTOWSP_ASSERT(names->at[kind][index] != 0 || emitter->status != PTOWSP_OK);
    return name;
}

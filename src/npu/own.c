// aicore/sources/: kernels that are PTO-ISA sources, unchanged, and aicore/kernels/*.cpp that call
// their entries.
//
//      aicore/sources/add/add.hpp    the source as it is; the headers that it includes by "..."
//                                    beside it, at the same paths
//      aicore/kernels/add.cpp        #include lines of all of them, at file scope
//                                    #define add wsp_add_add: entries are unique in a tree
//                                    namespace { #include "sources/add/add.hpp" }
//                                    wsp_kernel_add: the arguments of a task, in the entry's order
//
// So sources of different kernels may use one name for different things: a linker would take
// either of two templates silently. In the namespace the headers of the language are already read,
// and guarded. The wrapper names the hash of each file, as builds are kept by their text.

#include "kernels.h"

#include <stdio.h>

#define NPU_OWN_FILE_MAX 256  // files of one source

typedef struct npu_own {
    npu_emitter *emitter;
    uint32_t kernel;
    const ptowsp_kernel_info *info;
    npu_text includes;  // lines that are read at file scope
    npu_text hashes;    // comments
    uint32_t first_file;
    bool has_entry;
    uint32_t launch_words;  // that the shim needs, so as not to see launches
} npu_own;

// -- where headers are ----------------------------------------------------------------------------

// The length of a path up to and including its last '/'.
static size_t npu_directory_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

static bool npu_is_readable(const char *path) {
    FILE *file = npu_open_source(path);
    const bool is_readable = file && (fgetc(file) != EOF || !ferror(file));  // a directory opens
    if (file) {
        fclose(file);
    }
    return is_readable;
}

// Finds a header: beside the file that includes it (`from`, NULL: a text), or in a directory of the
// source. PTO-ISA's own are never copied: a tree has stand-ins, or is given a checkout.
static bool npu_find_header(const npu_own *own, const char *from, const char *name,
                            char out[NPU_PATH_MAX]) {
    const ptowsp_pto_source *pto = own->info->pto;
    if (strncmp(name, "pto/", 4) == 0) {
        return false;
    }
    if (from) {
        int length =
            snprintf(out, NPU_PATH_MAX, "%.*s%s", (int)npu_directory_length(from), from, name);
        if (length > 0 && length < NPU_PATH_MAX && npu_is_readable(out)) {
            return true;
        }
    }
    for (uint32_t i = 0; i < PTOWSP_PTO_INCLUDE_MAX && pto->include_dirs[i]; i++) {
        int length = snprintf(out, NPU_PATH_MAX, "%s/%s", pto->include_dirs[i], name);
        if (length > 0 && length < NPU_PATH_MAX && npu_is_readable(out)) {
            return true;
        }
    }
    return false;
}

// -- files ----------------------------------------------------------------------------------------

static bool npu_own_add(npu_own *own, npu_text *text, const char *from, const char *to);

// Takes an #include line. A header in quotes that is found becomes a file of the tree, and its own
// #include lines are taken in turn. Any other line is read at file scope.
static bool npu_own_include(npu_own *own, const char *line, size_t length, const char *from,
                            const char *to) {
    char name[NPU_PATH_MAX], path[NPU_PATH_MAX], target[NPU_PATH_MAX];
    const char *quote = (const char *)memchr(line, '"', length);
    size_t size = quote ? strcspn(quote + 1, "\"\n") : 0;
    if (quote && size < sizeof name) {
        memcpy(name, quote + 1, size);
        name[size] = '\0';
    }
    if (!quote || size >= sizeof name || !npu_find_header(own, from, name, path)) {
        npu_write(&own->includes, line, length);
        npu_write(&own->includes, "\n", 1);
        return true;
    }
    const ptowsp_kernel_info *info = own->info;
    if (name[0] == '/' || strstr(name, "..")) {
        return npu_fail(own->emitter, PTOWSP_UNSUPPORTED, own->kernel,
                        "kernel %s: its source includes %s, outside of its directories", info->name,
                        name);
    }
    int written =
        snprintf(target, sizeof target, "%.*s%s", (int)npu_directory_length(to), to, name);
    if (written < 0 || written >= NPU_PATH_MAX) {
        return npu_fail(own->emitter, PTOWSP_LIMIT_EXCEEDED, own->kernel,
                        "kernel %s: the path of %s is too long", info->name, name);
    }
    for (uint32_t i = own->first_file; i < own->emitter->file_count; i++) {
        if (strcmp(own->emitter->files[i].path, target) == 0) {
            return true;
        }
    }
    npu_text text = {NULL, 0, 0, false};
    bool is_good = npu_read_file(own->emitter, own->kernel, path, &text) &&
                   npu_own_add(own, &text, path, target);
    npu_text_free(&text);
    return is_good;
}

static bool npu_is_conditional(const char *word) {
    static const char words[][7] = {"if", "ifdef", "ifndef", "elif", "else", "endif"};
    size_t length = strspn(word, "abcdefghijklmnopqrstuvwxyz");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strlen(words[i]) == length && strncmp(word, words[i], length) == 0) {
            return true;
        }
    }
    return false;
}

// Writes the #include lines of a text, with the conditions around them.
static bool npu_own_directives(npu_own *own, const char *text, const char *from, const char *to) {
    npu_lexer lexer;
    memset(&lexer, 0, sizeof lexer);
    bool is_continued = false;
    while (*text) {
        size_t length = strcspn(text, "\n");
        const char *word = npu_directive(&lexer, text);
        bool is_condition = is_continued || (word && npu_is_conditional(word));
        if (is_condition) {
            npu_write(&own->includes, text, length);
            npu_write(&own->includes, "\n", 1);
        } else if (word && strncmp(word, "include", 7) == 0 &&
                   !npu_own_include(own, text, length, from, to)) {
            return false;
        }
        is_continued = is_condition && length > 0 && text[length - 1] == '\\';
        npu_lex_line(&lexer, text, length);
        text += length + (text[length] == '\n');
    }
    return true;
}

NPU_INTERNAL bool npu_is_word(char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Is a name in a text, outside of comments and strings?
static bool npu_has_name(const char *text, const char *name) {
    npu_lexer lexer;
    memset(&lexer, 0, sizeof lexer);
    size_t length = strlen(name);
    bool was_name = false;
    for (const char *at = text; *at; at++) {
        bool counts = npu_lex(&lexer, *at, at[1]);
        bool is_name = counts && npu_is_word(*at);
        if (is_name && !was_name && strncmp(at, name, length) == 0 && !npu_is_word(at[length])) {
            return true;
        }
        was_name = is_name;
        lexer.last = counts && *at != ' ' ? *at : lexer.last;
    }
    return false;
}

// Adds a file of a source, and the files that it includes. Takes the text.
static bool npu_own_add(npu_own *own, npu_text *text, const char *from, const char *to) {
    char hash[NPU_HASH_SIZE];
    if (own->emitter->file_count - own->first_file >= NPU_OWN_FILE_MAX) {
        return npu_fail(own->emitter, PTOWSP_LIMIT_EXCEEDED, own->kernel,
                        "kernel %s: its source includes more than %d files", own->info->name,
                        NPU_OWN_FILE_MAX);
    }
    npu_write(text, "", 0);
    if (text->is_out_of_memory) {
        return npu_out_of_memory(own->emitter);
    }
    uint32_t launch = npu_find_launch(text->data, &own->launch_words);
    if (launch) {
        return npu_fail(own->emitter, PTOWSP_UNSUPPORTED, own->kernel,
                        "kernel %s: line %u of %s is a launch (<<<>>>): put it under #ifdef "
                        "__CCE_AICORE__ or #ifndef __CPU_SIM",
                        own->info->name, launch, from ? from : "its text");
    }
    own->has_entry = own->has_entry || npu_has_name(text->data, own->info->pto->entry);
    npu_hash(text->data, text->size, hash);
    npu_print(&own->hashes, "//      %s  %s\n", hash, to);
    uint32_t file = npu_add_file(own->emitter, text, "%s", to);
    return own->emitter->status == PTOWSP_OK &&
           npu_own_directives(own, own->emitter->files[file].data, from, to);
}

// -- the call -------------------------------------------------------------------------------------

static void npu_own_arg(const npu_own *own, const ptowsp_pto_arg *arg, npu_text *out) {
    const ptowsp_kernel_info *info = own->info;
    switch (arg->value) {
    case PTOWSP_PTO_DATA: {
        ptowsp_dtype dtype = info->tiles[arg->index].dtype;
        npu_print(out, "wsp::element<%s>(&task->tiles[%u], 0, 0)",
                  dtype == PTOWSP_F64 ? "double" : npu_cpp_type(dtype), arg->index);
    } break;
    case PTOWSP_PTO_ROWS: npu_print(out, "wsp::rows(task, %u)", arg->index); break;
    case PTOWSP_PTO_COLS: npu_print(out, "wsp::cols(task, %u)", arg->index); break;
    case PTOWSP_PTO_ROW_STRIDE: npu_print(out, "task->tiles[%u].row_stride", arg->index); break;
    case PTOWSP_PTO_COL_STRIDE: npu_print(out, "task->tiles[%u].col_stride", arg->index); break;
    case PTOWSP_PTO_AXIS: npu_print(out, "static_cast<int64_t>(task->args[%u])", arg->index); break;
    case PTOWSP_PTO_SCALAR: {
        ptowsp_type type = info->scalars[arg->index].type;
        npu_print(out,
                  type == PTOWSP_TYPE_BOOL  ? "wsp::scalar_bits(task, %u) != 0"
                  : type == PTOWSP_TYPE_I64 ? "static_cast<int64_t>(wsp::scalar_bits(task, %u))"
                                            : "wsp::scalar_bits(task, %u)",
                  arg->index);
    } break;
    default:  // The least number is not written as minus its absolute value, which does not exist.
        npu_print(out, arg->number == INT64_MIN ? "INT64_MIN" : "INT64_C(%lld)",
                  (long long)arg->number);
        break;
    }
}

// Which block it is: for the shim and the simulator as a state, for the device as macros.
static void npu_own_blocks(const npu_own *own, npu_text *out) {
    npu_print(out,
              "#ifndef WSP_ASCEND\n    pto::cpu_sim::set_execution_context(static_cast<uint32_t>(");
    npu_own_arg(own, &own->info->pto->block, out);
    npu_print(out, "), 0, 1\n#if WSP_IS_SHIM\n        , static_cast<uint32_t>(");
    npu_own_arg(own, &own->info->pto->block_count, out);
    npu_print(out, ")\n#endif\n    );\n#endif\n");
}

static void npu_own_device_words(const npu_own *own, npu_text *out) {
    const ptowsp_pto_arg *block = &own->info->pto->block, *count = &own->info->pto->block_count;
    npu_print(out, "// A core calls the entry, and a task is a block [read].\n#ifdef WSP_ASCEND\n");
    if (block->value == PTOWSP_PTO_NUMBER && count->value == PTOWSP_PTO_NUMBER) {
        npu_print(out,
                  "#undef __global__\n#define __global__\n"
                  "#define get_block_idx() (%lld)\n#define get_block_num() (%lld)\n",
                  (long long)block->number, (long long)count->number);
    } else {
        npu_print(out, "#error \"the block of this kernel is an argument of its task: for the shim "
                       "alone\"\n");
    }
    npu_print(out, "#endif\n\n");
}

// Entries of all PTO-ISA sources get names of this kernel: one source may have several. `half` (or
// NULL) is a part of the name; "" takes the names away.
static void npu_own_entries(const npu_own *own, const char *half, npu_text *out) {
    const npu_emitter *emitter = own->emitter;
    for (uint32_t i = 1; i < emitter->tables->kernel_count; i++) {
        const ptowsp_kernel_info *info = &emitter->tables->kernels[i];
        bool is_new = info->is_used && info->pto;
        for (uint32_t j = 1; is_new && j < i; j++) {
            const ptowsp_kernel_info *other = &emitter->tables->kernels[j];
            is_new =
                !other->is_used || !other->pto || strcmp(other->pto->entry, info->pto->entry) != 0;
        }
        if (is_new && half && !*half) {
            npu_print(out, "#undef %s\n", info->pto->entry);
        } else if (is_new) {
            npu_print(out, "#define %s v_%s_%s%s\n", info->pto->entry,
                      npu_name(emitter, NPU_KERNEL, own->kernel), half ? half : "",
                      info->pto->entry);
        }
    }
}

// The source, in a namespace: once, or for each half of a mixed one.
static void npu_own_source(const npu_own *own, const char *source, npu_text *out) {
    const char *path = source + sizeof "aicore/" - 1;
    if (!own->info->pto->is_mixed) {
        npu_own_entries(own, NULL, out);
        npu_print(out,
                  "\n#pragma GCC diagnostic ignored \"-Wunused-function\"\n\n"
                  "namespace {\n#include \"%s\"\n}  // namespace\n\n",
                  path);
        return;
    }
    npu_print(out, "#if !WSP_IS_SHIM\n#error \"a mixed source: for the shim alone\"\n#endif\n\n"
                   "#pragma GCC diagnostic ignored \"-Wunused-function\"\n"
                   "#undef __DAV_CUBE__\n#undef __DAV_VEC__\n\n");
    for (int half = 0; half < 2; half++) {
        const char *word = half == 0 ? "__DAV_CUBE__" : "__DAV_VEC__";
        const char *space = half == 0 ? "cube" : "vector";
        npu_print(out, "#define %s\n", word);
        npu_own_entries(own, half == 0 ? "cube_" : "vector_", out);
        npu_print(out, "namespace {\nnamespace v_%s_%s {\n#include \"%s\"\n}\n}  // namespace\n",
                  npu_name(own->emitter, NPU_KERNEL, own->kernel), space, path);
        npu_own_entries(own, "", out);
        npu_print(out, "#undef %s\n\n", word);
    }
    npu_print(out, "#define __DAV_CUBE__\n#define __DAV_VEC__\n\n");
}

// The call of the entry; `half` NULL: the only one.
static void npu_own_call(const npu_own *own, const char *half, npu_text *out) {
    const char *name = npu_name(own->emitter, NPU_KERNEL, own->kernel);
    npu_text call = {NULL, 0, 0, false};
    if (half) {
        npu_print(&call, "v_%s_%s::v_%s_%s_", name, half, name, half);
    }
    npu_print(&call, "%s(", own->info->pto->entry);
    for (uint32_t i = 0; i < PTOWSP_PTO_ARG_MAX && own->info->pto->args[i].value; i++) {
        npu_print(&call, "%s", i ? ", " : "");
        npu_own_arg(own, &own->info->pto->args[i], &call);
    }
    npu_print(&call, ");");
    npu_append_wrapped(out, half ? 8 : 4, &call);
}

static void npu_own_print(npu_own *own, const char *source, npu_text *out) {
    const char *name = npu_name(own->emitter, NPU_KERNEL, own->kernel);
    bool is_mixed = own->info->pto->is_mixed;
    npu_print(out, "// Kernel ");
    npu_print_comment(out, own->info->name);
    npu_print(out, ": a PTO-ISA source of its own, unchanged, and the call of its entry. Generated."
                   "\n//\n");
    npu_append(out, &own->hashes);
    npu_print(out, "\n%s#include \"wsp_kernel.h\"\n\n#if %s\n\n",
              npu_kernel_is_on_a5(own->emitter) ? "#define WSP_TARGET_A5\n" : "",
              own->info->unit == PTOWSP_UNIT_CUBE ? "WSP_HAS_CUBE" : "WSP_HAS_VECTOR");
    npu_print_launch_words(own->launch_words, false, out);
    npu_append(out, &own->includes);
    npu_print(out, "\n");
    npu_own_device_words(own, out);
    npu_own_source(own, source, out);
    npu_print_launch_words(own->launch_words, true, out);
    npu_print(out, "extern \"C\" AICORE void wsp_kernel_%s(__gm__ wsp_task *task) {\n", name);
    npu_own_blocks(own, out);
    if (is_mixed) {
        npu_print(out, "    const auto cube_half = [&] {\n");
        npu_own_call(own, "cube", out);
        npu_print(out, "    };\n    const auto vector_half = [&] {\n");
        npu_own_call(own, "vector", out);
        npu_print(out, "    };\n    pto::RunBlock(cube_half, vector_half);\n");
    } else {
        npu_own_call(own, NULL, out);
    }
    npu_print(out, "}\n\n#endif\n");
}

// -- a kernel -------------------------------------------------------------------------------------

// Headers that sources of PTO-ISA include: all that they declare is in the shim.
static void npu_own_headers(npu_emitter *emitter) {
    static const char text[] = "// In place of PTO-ISA's header of this name.\n"
                               "#include \"ptoisa_shim.h\"\n";
    static const char paths[][40] = {
        "shim/pto/pto-inst.hpp",        "shim/pto/common/constants.hpp",
        "shim/pto/common/pto_tile.hpp", "shim/pto/common/fifo.hpp",
        "shim/pto/cpu/MXTypes.hpp",     "shim/pto/cpu/tile_offsets.hpp"};
    for (uint32_t i = 0; i < emitter->file_count; i++) {
        if (strcmp(emitter->files[i].path, paths[0]) == 0) {
            return;
        }
    }
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        npu_add_fixed_file(emitter, paths[i], text, sizeof text - 1);
    }
}

NPU_INTERNAL void npu_own_emit(npu_emitter *emitter, uint32_t kernel) {
    npu_own own;
    memset(&own, 0, sizeof own);
    own.emitter = emitter;
    own.kernel = kernel;
    own.info = &emitter->tables->kernels[kernel];
    npu_own_headers(emitter);
    own.first_file = emitter->file_count;
    char source[NPU_PATH_MAX];
    const char *name = npu_name(emitter, NPU_KERNEL, kernel);
    snprintf(source, sizeof source, "aicore/sources/%s/%s.hpp", name, name);
    npu_text text = {NULL, 0, 0, false};
    bool is_good = true;
    if (own.info->pto->text) {
        npu_print(&text, "%s", own.info->pto->text);
    } else {
        is_good = npu_read_file(emitter, kernel, own.info->pto->file, &text);
    }
    is_good = is_good && npu_own_add(&own, &text, own.info->pto->file, source);
    npu_text_free(&text);
    if (is_good && !own.has_entry) {
        is_good = npu_fail(emitter, PTOWSP_UNSUPPORTED, kernel,
                           "kernel %s: its PTO-ISA source has no entry %s", own.info->name,
                           own.info->pto->entry);
    }
    if (is_good) {
        npu_text wrapper = {NULL, 0, 0, false};
        npu_own_print(&own, source, &wrapper);
        emitter->kernel_files[kernel] =
            1 + npu_add_file(emitter, &wrapper, "aicore/kernels/%s.cpp", name);
    }
    npu_text_free(&own.includes);
    npu_text_free(&own.hashes);
}

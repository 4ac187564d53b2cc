// From a program to a loaded tree. The tree is emitted into memory, and written only if it is not
// in the cache.
//
// The inputs of an entry are written down as text, and KEY is its hash: each file with its hash,
// the compiler, its version text, the options. The object of a unit whose files do not include
// program.h is kept for other programs: it depends only on their text and on the headers that they
// include, directly or not.

#include "npu_build.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define NPU_CACHE_VERSION "3"

static const npu_text npu_no_text = {NULL, 0, 0, false};

// -- errors ---------------------------------------------------------------------------------------

NPU_INTERNAL bool npu_build_fail(npu_build *build, ptowsp_status status, const char *format, ...) {
    if (build->status == PTOWSP_OK) {
        build->status = status;
        npu_print(&build->error, "npu: ");
        va_list args;
        va_start(args, format);
        npu_vprint(&build->error, format, args);
        va_end(args);
        for (size_t i = 0; i < build->error.size; i++) {  // one line, whatever a path contains
            char *c = &build->error.data[i];
            *c = (unsigned char)*c < 0x20 ? ' ' : *c;
        }
    }
    return false;
}

NPU_INTERNAL bool npu_build_fail_system(npu_build *build, const char *what, const char *path) {
    int error = errno;
    if (error == ENOMEM) {
        return npu_build_out_of_memory(build);
    }
    return npu_build_fail(build, PTOWSP_SYSTEM_FAILED, "%s %s: %s", what, path, strerror(error));
}

NPU_INTERNAL bool npu_build_out_of_memory(npu_build *build) {
    return npu_build_fail(build, PTOWSP_OUT_OF_MEMORY, "no memory for building");
}

NPU_INTERNAL bool npu_build_check(npu_build *build, const npu_text *text) {
    return text->is_out_of_memory ? npu_build_out_of_memory(build) : true;
}

// -- paths ----------------------------------------------------------------------------------------

// Its text is after it.
struct npu_kept {
    struct npu_kept *next;
};

NPU_INTERNAL const char *npu_path(npu_build *build, const char *format, ...) {
    npu_text text = npu_no_text;
    va_list args;
    va_start(args, format);
    npu_vprint(&text, format, args);
    va_end(args);
    struct npu_kept *kept =
        text.is_out_of_memory
            ? NULL
            : (struct npu_kept *)npu_resize(NULL, sizeof(struct npu_kept) + text.size + 1);
    if (kept) {
        memcpy(kept + 1, text.data, text.size + 1);
        kept->next = build->paths;
        build->paths = kept;
    } else {
        npu_build_out_of_memory(build);
    }
    npu_text_free(&text);
    return kept ? (const char *)(kept + 1) : "";
}

// -- inputs of an entry ---------------------------------------------------------------------------

static bool npu_has_suffix(const char *path, const char *suffix) {
    size_t size = strlen(path), length = strlen(suffix);
    return size >= length && strcmp(path + size - length, suffix) == 0;
}

// As in the tree's own Makefile: everything except the program.
static bool npu_is_unit(const char *path) {
    return npu_has_suffix(path, ".cpp") && strcmp(path, "host/main.cpp") != 0;
}

// The headers of the tree that a text includes directly.
static uint64_t npu_included(const npu_build *build, const char *text) {
    static const char include[] = "#include \"";
    uint64_t found = 0;
    for (const char *at = strstr(text, include); at; at = strstr(at, include)) {
        at += sizeof include - 1;
        size_t length = strcspn(at, "\"\n");
        for (uint32_t i = 0; i < build->header_count; i++) {
            const char *path = build->emitter.files[build->headers[i].file].path;
            size_t size = strlen(path);
            if (size > length && path[size - length - 1] == '/' &&
                memcmp(path + size - length, at, length) == 0) {
                found |= UINT64_C(1) << i;
            }
        }
    }
    return found;
}

// The headers that it includes, directly or not.
static uint64_t npu_included_all(const npu_build *build, const char *text) {
    uint64_t all = npu_included(build, text), before;
    do {
        before = all;
        for (uint32_t i = 0; i < build->header_count; i++) {
            all |= before >> i & 1 ? build->headers[i].headers : 0;
        }
    } while (all != before);
    return all;
}

static bool npu_describe_headers(npu_build *build) {
    const npu_emitter *emitter = &build->emitter;
    for (uint32_t i = 0; i < emitter->file_count; i++) {
        if (npu_has_suffix(emitter->files[i].path, ".h")) {
            if (build->header_count == NPU_HEADER_MAX) {
                return npu_build_fail(build, PTOWSP_LIMIT_EXCEEDED,
                                      "the tree has too many headers");
            }
            build->headers[build->header_count++].file = i;
        }
    }
    for (uint32_t i = 0; i < build->header_count; i++) {
        npu_header *header = &build->headers[i];
        header->headers = npu_included(build, emitter->files[header->file].data);
    }
    return true;
}

static bool npu_begins(const char *path, const char *start) {
    return strncmp(path, start, strlen(start)) == 0;
}

static npu_group npu_group_of(const npu_file *file) {
    return npu_begins(file->path, "aicpu/wsp_") || npu_begins(file->path, "host/")
               ? NPU_GROUP_RUNTIME
           : npu_begins(file->path, "aicpu/")                                   ? NPU_GROUP_PROGRAM
           : file->is_grouped || strcmp(file->path, "aicore/dispatch.cpp") == 0 ? NPU_GROUP_KERNELS
                                                                                : NPU_GROUP_NONE;
}

// The unit that a file goes into: an old one of its group, with room, or a new one. dispatch.cpp
// goes into the first of the kernels.
static npu_unit *npu_unit_for(npu_build *build, const npu_file *file) {
    npu_group group = npu_group_of(file);
    for (uint32_t i = 0; group != NPU_GROUP_NONE && i < build->unit_count; i++) {
        bool is_full = group == NPU_GROUP_KERNELS && file->is_grouped &&
                       build->units[i].file_count >= NPU_GROUP_MAX;
        if (build->units[i].group == group && !is_full) {
            return &build->units[i];
        }
    }
    if (!NPU_ROOM(build->units, build->unit_capacity, (uint64_t)build->unit_count + 1)) {
        return NULL;
    }
    npu_unit *unit = &build->units[build->unit_count++];
    unit->group = group;
    unit->is_shared = true;
    return unit;
}

static bool npu_describe_unit(npu_build *build, uint32_t file) {
    const npu_file *source = &build->emitter.files[file];
    npu_unit *unit = npu_unit_for(build, source);
    if (!unit) {
        return npu_build_out_of_memory(build);
    }
    if (unit->file_count++) {
        npu_argument(&unit->before, "-include");
        npu_argument(&unit->before, "%s", unit->path);
    }
    unit->path = source->path;
    npu_print(&unit->sources, "%s %s\n", build->hashes[file], source->path);
    unit->headers |= npu_included_all(build, source->data);
    for (uint32_t i = 0; i < build->header_count; i++) {
        const char *header = build->emitter.files[build->headers[i].file].path;
        if (unit->headers >> i & 1 && strcmp(header, "aicpu/program.h") == 0) {
            unit->is_shared = false;
        }
    }
    return npu_build_check(build, &unit->before) && npu_build_check(build, &unit->sources);
}

static bool npu_describe_tree(npu_build *build) {
    npu_emitter *emitter = &build->emitter;
    npu_emitter_open(emitter, build->context, build->program, false);
    build->status = emitter->status;  // an error is reported when it is closed
    if (build->status != PTOWSP_OK) {
        return false;
    }
    size_t size = emitter->file_count * sizeof *build->hashes;
    build->hashes = (char(*)[NPU_HASH_SIZE])npu_resize(NULL, size);
    if (!build->hashes) {
        return npu_build_out_of_memory(build);
    }
    bool is_good = npu_describe_headers(build);
    for (uint32_t i = 0; is_good && i < emitter->file_count; i++) {
        const npu_file *file = &emitter->files[i];
        npu_hash(file->data, file->size, build->hashes[i]);
        npu_print(&build->tree, "%s %s\n", build->hashes[i], file->path);
        is_good = !npu_is_unit(file->path) || npu_describe_unit(build, i);
    }
    return is_good && npu_build_check(build, &build->tree);
}

// The compiler as words: one, if the whole text is a file. A path is made absolute, because the
// compiler works in the tree.
static void npu_split_compiler(npu_build *build, const char *compiler) {
    bool is_file = strchr(compiler, '/') && access(compiler, X_OK) == 0;
    size_t length = is_file ? strlen(compiler) : strcspn(compiler, " ");
    const char *first = npu_path(build, "%.*s", (int)length, compiler);
    npu_argument(&build->compiler, "%s", strchr(first, '/') ? npu_absolute(build, first) : first);
    npu_argument_words(&build->compiler, compiler + length);
}

// Arguments for the key, each with its length: "a b" is not "a" and "b".
static void npu_print_key(npu_text *text, const npu_text *arguments) {
    for (size_t i = 0; i < arguments->size; i += strlen(arguments->data + i) + 1) {
        npu_print(text, "%u %s\n", (unsigned)strlen(arguments->data + i), arguments->data + i);
    }
}

// Asks the compiler for its --version, through a file in an empty directory.
static bool npu_describe_compiler(npu_build *build) {
    npu_text arguments = npu_no_text;
    pid_t process;
    const char *name = build->compiler.data, *directory = npu_cache_new(build);
    if (!directory) {
        return false;
    }
    const char *output = npu_path(build, "%s/version", directory);
    npu_write(&arguments, build->compiler.data, build->compiler.size);
    npu_argument(&arguments, "--version");
    int error = npu_process_start(&arguments, directory, output, &process);
    int code = error ? -1 : npu_process_wait(process);
    if (error) {
        errno = error;
        npu_build_fail_system(build, "cannot run the compiler", name);
    } else if (code == NPU_EXIT_NOT_FOUND) {
        npu_build_fail(build, PTOWSP_SYSTEM_FAILED,
                       "there is no compiler %s (it is chosen by the description of the build, or "
                       "CXX)",
                       name);
    } else if (code != 0) {
        npu_build_fail(build, PTOWSP_SYSTEM_FAILED,
                       "the compiler %s does not work: asked for its --version, it exits with %d",
                       name, code);
    } else {
        npu_print_key(&build->tool, &build->compiler);
        if (!npu_file_read(output, &build->tool) && npu_build_check(build, &build->tool)) {
            npu_build_fail_system(build, "cannot read", output);
        }
    }
    npu_text_free(&arguments);
    npu_remove(AT_FDCWD, directory);
    return build->status == PTOWSP_OK;
}

// Lines of /proc/cpuinfo that list a processor's features, on the architectures that Linux has;
// without lines that differ from core to core, or over time.
static bool npu_is_ability(const char *line) {
    static const char names[][17] = {
        "vendor_id",       "cpu family",       "model",       "stepping", "flags", "Features",
        "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "cpu\t", "isa"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strncmp(line, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

NPU_INTERNAL bool npu_print_processors(npu_text *text, const char *path) {
    npu_text all = npu_no_text, kinds[2] = {npu_no_text, npu_no_text};  // the last, and this
    bool is_there = npu_file_read(path, &all);
    for (const char *line = all.data; is_there && line && line[0] != '\0';) {
        size_t length = strcspn(line, "\n");
        bool is_last = line[length] == '\0' || line[length + 1] == '\0' || length == 0;
        if (npu_is_ability(line)) {
            npu_write(&kinds[1], line, length);
            npu_write(&kinds[1], "\n", 1);
        }
        if (is_last && kinds[1].size) {
            bool is_same = kinds[0].size == kinds[1].size &&
                           memcmp(kinds[0].data, kinds[1].data, kinds[0].size) == 0;
            if (!is_same) {
                npu_write(text, kinds[1].data, kinds[1].size);
            }
            text->is_out_of_memory |= kinds[1].is_out_of_memory;
            npu_text_free(&kinds[0]);
            kinds[0] = kinds[1];
            kinds[1] = npu_no_text;
        }
        line += length + (line[length] != '\0');
    }
    text->is_out_of_memory |= all.is_out_of_memory;
    npu_text_free(&all);
    npu_text_free(&kinds[0]);
    npu_text_free(&kinds[1]);
    return is_there;
}

// The environment of compilers that decides where they look for headers, libraries and themselves.
static void npu_print_environment(npu_text *text) {
    static const char names[][26] = {
        "CPATH",           "CPLUS_INCLUDE_PATH", "LIBRARY_PATH",         "COMPILER_PATH",
        "GCC_EXEC_PREFIX", "GCC_COMPARE_DEBUG",  "CCC_OVERRIDE_OPTIONS", "SDKROOT"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value) {
            npu_print(text, "%s %u %s\n", names[i], (unsigned)strlen(value), value);
        }
    }
}

// Does one of these arguments ask for the host processor: -march=native?
static bool npu_has_native(const npu_text *arguments) {
    for (size_t i = 0; i < arguments->size; i += strlen(arguments->data + i) + 1) {
        if (npu_has_suffix(arguments->data + i, "=native")) {
            return true;
        }
    }
    return false;
}

static bool npu_describe_tool(npu_build *build, const ptowsp_npu_build_desc *desc) {
    const char *compiler = desc ? desc->compiler : NULL, *options = desc ? desc->options : NULL;
    if (!compiler || !compiler[0]) {
        compiler = getenv("CXX");
    }
    compiler = compiler ? compiler + strspn(compiler, " ") : "";
    npu_split_compiler(build, compiler[0] ? compiler : "c++");
    build->has_options = options != NULL;
    npu_argument_words(&build->options, options ? options : "-O1");
    if (!npu_build_check(build, &build->compiler) || !npu_build_check(build, &build->options) ||
        !npu_describe_compiler(build)) {
        return false;
    }
    struct utsname machine;
    bool is_known = uname(&machine) >= 0;
    npu_print_key(&build->tool, &build->options);
    npu_print_environment(&build->tool);
    npu_print(&build->tool,
              NPU_FLAGS "\nptowsp " PTOWSP_VERSION ", cache " NPU_CACHE_VERSION ", %s, %s\n",
              is_known ? machine.sysname : "?", is_known ? machine.machine : "?");
    if ((npu_has_native(&build->compiler) || npu_has_native(&build->options)) &&
        !npu_print_processors(&build->tool, "/proc/cpuinfo")) {
        npu_print(&build->tool, "on %s\n", is_known ? machine.nodename : "?");
    }
    return npu_build_check(build, &build->tool);
}

static bool npu_key_make(npu_build *build) {
    char hash[NPU_HASH_SIZE] = "";
    npu_text key = npu_no_text;
    npu_print(&key, "%s%s", build->tool.data, build->tree.data);
    if (npu_build_check(build, &key)) {
        npu_hash(key.data, key.size, hash);
    }
    npu_text_free(&key);
    build->entry = npu_path(build, "%s/%s", build->cache, hash);
    build->log = npu_path(build, "%s/%s.log", build->cache, hash);
    return build->status == PTOWSP_OK;
}

// -- entries --------------------------------------------------------------------------------------

// A file of the entry, of two texts.
static bool npu_write_note(npu_build *build, const char *name, const char *a, const char *b) {
    npu_text text = npu_no_text;
    const char *path = npu_path(build, "%s/%s", build->work, name);
    npu_print(&text, "%s%s", a, b);
    if (npu_build_check(build, &text) && !npu_file_write(path, text.data, text.size)) {
        npu_build_fail_system(build, "cannot write", path);
    }
    npu_text_free(&text);
    return build->status == PTOWSP_OK;
}

static bool npu_write_tree(npu_build *build) {
    ptowsp_npu_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.directory = npu_path(build, "%s/tree", build->work);
    desc.is_for_host = true;
    if (build->status == PTOWSP_OK) {
        npu_tree_write(&build->emitter, &desc);
        build->status = build->emitter.status;
    }
    return build->status == PTOWSP_OK;
}

static bool npu_prepare_work(npu_build *build) {
    npu_cache_sweep(build);
    build->work = npu_cache_new(build);
    if (!build->work) {
        return false;
    }
    const char *objects = npu_path(build, "%s/objects", build->cache);
    if (mkdir(objects, 0700) != 0 && errno != EEXIST) {
        return npu_build_fail_system(build, "cannot make", objects);
    }
    for (uint32_t i = 0; i < build->unit_count; i++) {
        npu_name_object(build, &build->units[i], i);
    }
    return build->status == PTOWSP_OK;
}

// Builds the entry. Its private objects are not kept.
static bool npu_make_entry(npu_build *build) {
    bool is_good = npu_prepare_work(build) && npu_write_tree(build) && npu_make_library(build);
    npu_write(&build->compile_log, "", 0);
    if (build->is_log_wanted && !build->compile_log.is_out_of_memory) {
        npu_file_write(build->log, build->compile_log.data, build->compile_log.size);
    }
    for (uint32_t i = 0; is_good && i < build->unit_count; i++) {
        if (!build->units[i].is_shared) {
            unlink(build->units[i].object);
        }
    }
    is_good = is_good && npu_build_check(build, &build->compile_log) &&
              npu_write_note(build, "compile.log", build->compile_log.data, "") &&
              npu_write_note(build, "key", build->tool.data, build->tree.data) &&
              npu_cache_mark(build) && npu_cache_publish(build);
    if (is_good) {
        unlink(build->log);
    }
    if (build->work) {
        npu_remove(AT_FDCWD, build->work);
    }
    return is_good;
}

// The environment of a program with more rights than its user is not to be trusted: PATH, CXX, HOME
// and others would choose which programs run with these rights.
static bool npu_check_rights(npu_build *build) {
    if (getuid() != geteuid() || getgid() != getegid()) {
        return npu_build_fail(
            build, PTOWSP_UNSUPPORTED,
            "nothing is built with the rights of another user or group (set-user-ID)");
    }
    return true;
}

static bool npu_find_or_make(npu_build *build, const ptowsp_npu_build_desc *desc) {
    npu_text why = npu_no_text;
    if (!npu_check_rights(build) || !npu_describe_tree(build) ||
        !npu_cache_open(build, desc ? desc->cache_directory : NULL) ||
        !npu_describe_tool(build, desc) || !npu_key_make(build)) {
        return false;
    }
    ptowsp_npu *npu = build->npu;
    npu->was_cached = npu_cache_is_whole(build, build->entry) && npu_load(npu, build->entry, &why);
    npu_text_free(&why);
    if (!npu->was_cached && !npu_make_entry(build)) {
        return false;
    }
    npu_print(&npu->directory, "%s", build->entry);
    return npu_build_check(build, &npu->directory);
}

static void npu_build_free(npu_build *build) {
    npu_text *const texts[] = {&build->compiler, &build->options,     &build->tool,
                               &build->tree,     &build->compile_log, &build->error};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        npu_text_free(texts[i]);
    }
    for (uint32_t i = 0; i < build->unit_count; i++) {
        npu_text_free(&build->units[i].before);
        npu_text_free(&build->units[i].sources);
        npu_text_free(&build->units[i].command);
    }
    while (build->paths) {
        struct npu_kept *next = build->paths->next;
        npu_resize(build->paths, 0);
        build->paths = next;
    }
    npu_resize(build->units, 0);
    npu_resize(build->hashes, 0);
    npu_emitter_close(&build->emitter);
}

// -- public ---------------------------------------------------------------------------------------

ptowsp_status ptowsp_npu_build(ptowsp_context *context, const ptowsp_program *program,
                               const ptowsp_npu_build_desc *desc, ptowsp_npu **out_npu) {
    npu_build build;
    memset(&build, 0, sizeof build);
    build.context = context;
    build.program = program;
    if (!program || !out_npu) {
        npu_build_fail(&build, PTOWSP_INVALID_PARAMS, "%s is NULL",
                       out_npu ? "program" : "out_npu");
    } else {
        build.npu = (ptowsp_npu *)npu_resize(NULL, sizeof *build.npu);
        if (build.npu) {
            memset(build.npu, 0, sizeof *build.npu);
            build.npu->context = context;
            build.npu->program = program;
            npu_find_or_make(&build, desc);
        } else {
            npu_build_out_of_memory(&build);
        }
    }
    ptowsp_status status = build.status;
    if (status != PTOWSP_OK) {
        ptowsp_npu_destroy(build.npu);
        build.npu = NULL;
        if (build.error.is_out_of_memory) {
            ptowsp_context_fail(context, status, PTOWSP_NO_INDEX, "npu: no memory for building");
        } else if (build.error.size) {
            ptowsp_context_fail(context, status, PTOWSP_NO_INDEX, build.error.data);
        }
    }
    if (out_npu) {
        *out_npu = build.npu;
    }
    npu_build_free(&build);
    return status;
}

void ptowsp_npu_destroy(ptowsp_npu *npu) {
    if (npu) {
        if (npu->library) {
            dlclose(npu->library);
        }
        npu_text_free(&npu->directory);
        npu_resize(npu, 0);
    }
}

bool ptowsp_npu_was_cached(const ptowsp_npu *npu) {
    PTOWSP_ASSERT(npu);
    return npu->was_cached;
}

const char *ptowsp_npu_directory(const ptowsp_npu *npu) {
    PTOWSP_ASSERT(npu);
    return npu->directory.data;
}

// Runs the compiler on the units of a tree, one for each processor at a time, and links them.
// Commands and output go into compile.log, and the first error into the build's.

#include "npu_build.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const npu_text npu_nothing = {NULL, 0, 0, false};

// Names of shared objects are hashes of the compiler, the sources and their headers.
NPU_INTERNAL void npu_name_object(npu_build *build, npu_unit *unit, uint32_t number) {
    npu_text key = npu_nothing;
    char hash[NPU_HASH_SIZE] = "";
    unit->object = unit->output = npu_path(build, "%s/%u.o", build->work, (unsigned)number);
    if (!unit->is_shared) {
        return;
    }
    npu_print(&key, "%s%s", build->tool.data, unit->sources.data);
    for (uint32_t i = 0; i < build->header_count; i++) {
        uint32_t file = build->headers[i].file;
        if (unit->headers >> i & 1) {
            npu_print(&key, "%s %s\n", build->hashes[file], build->emitter.files[file].path);
        }
    }
    if (npu_build_check(build, &key)) {  // else the build has failed
        npu_hash(key.data, key.size, hash);
    }
    unit->object = npu_path(build, "%s/objects/%s.o", build->cache, hash);
    npu_text_free(&key);
}

static bool npu_is_file(const char *path) {
    struct stat state;
    return stat(path, &state) == 0 && S_ISREG(state.st_mode) && state.st_size > 0;
}

static bool npu_start(npu_build *build, const npu_text *command, const char *directory,
                      const char *log, pid_t *out_process) {
    errno = npu_process_start(command, directory, log, out_process);
    return errno ? npu_build_fail_system(build, "cannot run the compiler", build->compiler.data)
                 : true;
}

static bool npu_compile_start(npu_build *build, npu_unit *unit) {
    const char *directory = npu_path(build, "%s/tree", build->work);
    const char *log = npu_path(build, "%s.log", unit->output);
    unit->command.size = 0;
    npu_write(&unit->command, build->compiler.data, build->compiler.size);
    npu_argument_words(&unit->command, NPU_FLAGS);
    npu_write(&unit->command, build->options.data, build->options.size);
    if (!build->has_options && unit->group == NPU_GROUP_RUNTIME) {
        npu_argument(&unit->command, "-Og");  // as in the tree's Makefile
    }
    npu_argument_words(&unit->command, "-Iinclude -Iaicpu -Iaicore -Ihost -Ishim");
    npu_write(&unit->command, unit->before.data, unit->before.size);
    npu_argument(&unit->command, "-c");
    npu_argument(&unit->command, "%s", unit->path);
    npu_argument(&unit->command, "-o");
    npu_argument(&unit->command, "%s", unit->output);
    return npu_build_check(build, &unit->command) &&
           npu_start(build, &unit->command, directory, log, &unit->process);
}

static bool npu_mentions(const char *text, size_t size, const char *word) {
    size_t length = strlen(word);
    for (const char *at = text, *end = text + size;;) {
        at = (const char *)memchr(at, word[0], (size_t)(end - at));
        if (!at || (size_t)(end - at) < length) {
            return false;
        }
        if (memcmp(at, word, length) == 0) {
            return true;
        }
        at++;
    }
}

// The first line that looks like an error, else the first line.
static void npu_print_first_error(npu_text *text, const char *output) {
    const char *first = NULL;
    size_t first_length = 0;
    for (const char *line = output; *line;) {
        size_t length = strcspn(line, "\n");
        bool is_error = npu_mentions(line, length, "error:") ||
                        npu_mentions(line, length, "undefined reference");
        if (length && (is_error || !first)) {
            first = line;
            first_length = length;
        }
        if (is_error) {
            break;
        }
        line += length + (line[length] != '\0');
    }
    npu_write(text, first ? first : "it says nothing", first ? first_length : 15);
}

// Copies a compiler's output into compile.log, and records its failure, if it has failed.
static bool npu_compiled(npu_build *build, const npu_text *command, const char *log, int code,
                         const char *output) {
    npu_text said = npu_nothing, error = npu_nothing;
    npu_file_read(log, &said);
    npu_write(&said, "", 0);
    npu_print_arguments(&build->compile_log, command);
    npu_write(&build->compile_log, said.data, said.size);
    unlink(log);
    bool is_good = code == 0 && npu_is_file(output);
    if (!is_good && npu_build_check(build, &said)) {
        npu_print_first_error(&error, said.data);
        if (npu_build_check(build, &error)) {
            npu_build_fail(build, PTOWSP_SYSTEM_FAILED,
                           code < 0 ? "the compiler was killed: %s (all of it: %s)"
                                    : "the compiler failed: %s (all of it: %s)",
                           error.data, build->log);
        }
        build->is_log_wanted = true;
    }
    npu_text_free(&said);
    npu_text_free(&error);
    return is_good;
}

static bool npu_compile_end(npu_build *build, npu_unit *unit) {
    const char *log = npu_path(build, "%s.log", unit->output);
    int code = npu_process_wait(unit->process);
    unit->process = 0;
    return npu_compiled(build, &unit->command, log, code, unit->output) &&
           (!unit->is_shared || npu_cache_keep(build, unit->output, unit->object));
}

// Compiles all units without objects, one for each processor at a time. Waits for every process it
// has started, whatever happens.
static bool npu_compile_units(npu_build *build, bool is_reusing) {
    uint32_t running = 0, next = 0, processors = ptowsp_processor_count();
    const uint32_t most = processors > 64 ? 64 : processors;
    bool is_good = true;
    for (uint32_t i = 0; i < build->unit_count; i++) {
        for (; is_good && next < build->unit_count && running < most; next++) {
            npu_unit *unit = &build->units[next];
            if (!is_reusing || !unit->is_shared || !npu_cache_has(build, unit->object)) {
                is_good = npu_compile_start(build, unit);
                running += is_good;
            } else {
                build->is_reused = true;
            }
        }
        if (build->units[i].process) {
            running--;
            is_good &= npu_compile_end(build, &build->units[i]);
        }
    }
    return is_good;
}

static bool npu_link(npu_build *build) {
    npu_text command = npu_nothing;
    pid_t process;
    const char *output = npu_path(build, "%s/" NPU_LIBRARY, build->work);
    const char *log = npu_path(build, "%s/link.log", build->work);
    npu_write(&command, build->compiler.data, build->compiler.size);
    npu_argument_words(&command, "-shared -fPIC -pthread");
#if !defined(__APPLE__)
    npu_argument(&command, "-Wl,-Bsymbolic");  // its own functions, despite equal names
#endif
    npu_argument(&command, "-o");
    npu_argument(&command, "%s", output);
    for (uint32_t i = 0; i < build->unit_count; i++) {
        npu_argument(&command, "%s", build->units[i].object);
    }
    npu_write(&command, build->options.data, build->options.size);
    bool is_good = npu_build_check(build, &command) &&
                   npu_start(build, &command, build->work, log, &process) &&
                   npu_compiled(build, &command, log, npu_process_wait(process), output);
    if (is_good && !npu_file_sync(output)) {
        is_good = npu_build_fail_system(build, "cannot write", output);
    }
    npu_text_free(&command);
    return is_good;
}

static void npu_forget_error(npu_build *build) {
    build->status = PTOWSP_OK;
    build->is_log_wanted = false;
    npu_text_free(&build->error);
}

// Objects of the cache may not fit for an unforeseen reason: if linking or loading fails with them,
// it is tried without them.
NPU_INTERNAL bool npu_make_library(npu_build *build) {
    npu_text why = npu_nothing;
    for (int i = 0; i < 2; i++) {
        build->is_reused = false;
        if (!npu_compile_units(build, i == 0)) {
            return false;
        }
        bool is_good = npu_link(build);
        if (is_good && !npu_load(build->npu, build->work, &why)) {
            is_good =
                npu_build_fail(build, PTOWSP_SYSTEM_FAILED, "what was built cannot be loaded: %s",
                               why.size ? why.data : "no memory");
        }
        npu_text_free(&why);
        if (is_good || !build->is_reused || build->status == PTOWSP_OUT_OF_MEMORY) {
            return is_good;
        }
        npu_forget_error(build);
    }
    return false;
}

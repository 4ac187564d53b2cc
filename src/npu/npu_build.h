// Building a tree in this process, and running it.
//
//      npu_process.c   running a program
//      cache.c         the cache directory: entries, objects, temporaries
//      npu_compile.c   from files to a library
//      npu_build.c     from a program to a loaded tree
//      npu_execute.c   from the bindings of a run to a run of the tree
//      npu_measure.c   one task of a kernel, on the shim's core
//
// The cache:
//
//      KEY/              an entry, for the tree of one program, one compiler and its options
//          tree/             the sources
//          compile.log       the compiler's commands and output
//          libwsp_tree.so    the library to load
//          key               the text whose hash is KEY: tree, compiler and options
//          complete          written last: the hash of libwsp_tree.so
//      KEY.log           the compiler's output when it failed
//      objects/KEY.o     files that are compiled alike for many programs
//      objects/KEY.sum   their hashes
//      tmp.PID.N/        an entry that is being built, or was, when its process died
//          .ptowsp           the mark of a removable directory; entries have it, too
//
// An entry is built as a temporary and gets its name by renaming, which is atomic: every entry
// found is whole. If two processes build the same entry, the second one finds it there when it is
// done, and takes it. Objects get their names in the same way. An entry that is damaged all the
// same (a disk was full, files were deleted) is built again.

#ifndef NPU_BUILD_H
#define NPU_BUILD_H

#include "npu.h"

#include <sys/types.h>

// -- npu_process.c --------------------------------------------------------------------------------

// Arguments of a program: a text in which a zero follows each.
NPU_INTERNAL void npu_argument(npu_text *arguments, const char *format, ...) NPU_PRINTF(2, 3);
NPU_INTERNAL void npu_argument_words(npu_text *arguments, const char *words);  // split at spaces
NPU_INTERNAL void npu_print_arguments(npu_text *text, const npu_text *arguments);  // on a line

enum { NPU_EXIT_NOT_RUN = 126, NPU_EXIT_NOT_FOUND = 127 };

// Starts a program in a directory, with an empty input; its output goes to the file `output`.
// Returns 0, or an errno value.
NPU_INTERNAL int npu_process_start(const npu_text *arguments, const char *directory,
                                   const char *output, pid_t *out_process);
// Waits for its end. Returns its exit code, -1 if a signal ended it, or one of the codes above if
// it could not start.
NPU_INTERNAL int npu_process_wait(pid_t process);

#define NPU_LIBRARY "libwsp_tree.so"

// As in the tree's Makefile, which gives the reasons.
#define NPU_FLAGS                                                                                  \
    "-std=c++17 -fPIC -fvisibility=hidden -fvisibility-inlines-hidden -ffp-contract=off -pthread"

// -- builds ---------------------------------------------------------------------------------------

// A header of the tree, and the headers that it includes directly.
#define NPU_HEADER_MAX 64
typedef struct npu_header {
    uint32_t file;
    uint64_t headers;
} npu_header;

// Files that are compiled as one, because most of the time goes into the headers they share. The
// compiler gets all but the last as options -include, so that they stay files of their own.
typedef enum npu_group {
    NPU_GROUP_NONE = 0,  // a file alone
    NPU_GROUP_RUNTIME,   // the files of aicpu/ and host/ that all trees share
    NPU_GROUP_PROGRAM,   // the files there that are generated for the program
    NPU_GROUP_KERNELS,   // tile kernels and dispatch.cpp
} npu_group;

#define NPU_GROUP_MAX 16  // tile kernels in a unit: as many more take a minute, and a lot of memory

typedef struct npu_unit {
    npu_group group;
    uint32_t file_count;
    const char *path;    // of the last file
    npu_text before;     // options for the files before it, as arguments
    npu_text sources;    // "hash path" of all
    uint64_t headers;    // a bit for each included header
    bool is_shared;      // it is compiled alike for many programs: its object is kept
    const char *object;  // the final place of its object
    const char *output;  // where the compiler puts it; its messages go to the same path with .log
    npu_text command;
    pid_t process;  // of the compiler; 0: the object is there
} npu_unit;

// The functions of a tree's host/wsp_runner.h, called through dlsym.
typedef struct npu_runner_options {
    uint32_t aicpu_count, core_count, ring_size, model, time_limit_ms;
    ptowsp_span *spans;
    uint64_t span_capacity;
    uint32_t driver;
} npu_runner_options;

typedef struct npu_runner_result {
    uint64_t makespan_cycles, task_count, in_flight_max;
} npu_runner_result;

#define NPU_RUNNER_FUNCTIONS(FUNCTION) /* type, name, parameters */                                \
    FUNCTION(ptowsp_status, create, (void **out_runner))                                           \
    FUNCTION(void, destroy, (void *runner))                                                        \
    FUNCTION(ptowsp_status, bind, (void *runner, const ptowsp_binding *bindings, uint64_t count))  \
    FUNCTION(ptowsp_status, run,                                                                   \
             (void *runner, const npu_runner_options *options, npu_runner_result *out_result))     \
    FUNCTION(uint64_t, slot, (const void *runner, uint32_t slot))                                  \
    FUNCTION(ptowsp_status, measure,                                                               \
             (uint32_t kernel, const ptowsp_task *task, const ptowsp_cost *cost,                   \
              uint64_t *out_cycles, uint64_t *out_busy, const char **out_text))                    \
    FUNCTION(ptowsp_error, error, (const void *runner))

typedef struct npu_runner {
#define NPU_RUNNER_FIELD(type, name, parameters) type(*name) parameters;
    NPU_RUNNER_FUNCTIONS(NPU_RUNNER_FIELD)
#undef NPU_RUNNER_FIELD
} npu_runner;

struct ptowsp_npu {
    ptowsp_context *context;
    const ptowsp_program *program;  // the program it was built for: only compared
    npu_text directory;
    bool was_cached;
    void *library;
    npu_runner runner;
};

typedef struct npu_build {
    ptowsp_context *context;
    const ptowsp_program *program;
    ptowsp_npu *npu;
    npu_emitter emitter;         // the tree
    npu_text compiler, options;  // as arguments
    bool has_options;            // they were given
    npu_text tool;               // a description of compiler, options and versions
    npu_text tree;               // "hash path" of all files
    npu_header headers[NPU_HEADER_MAX];
    uint32_t header_count;
    char (*hashes)[NPU_HASH_SIZE];  // of each file
    npu_unit *units;
    uint32_t unit_count, unit_capacity;
    struct npu_kept *paths;           // all that npu_path has made
    const char *cache, *entry, *log;  // paths: the cache, the entry KEY, KEY.log
    const char *work;                 // and its temporary, if there is one
    npu_text compile_log;
    bool is_log_wanted;    // the compiler has failed: it goes to `log`
    bool is_reused;        // objects of the cache were used
    ptowsp_status status;  // the first error
    npu_text error;
} npu_build;

// Keeps the first error: "npu: " and the text. Returns false.
NPU_INTERNAL bool npu_build_fail(npu_build *build, ptowsp_status status, const char *format, ...)
    NPU_PRINTF(3, 4);
// The same about a path, with the text of errno.
NPU_INTERNAL bool npu_build_fail_system(npu_build *build, const char *what, const char *path);
NPU_INTERNAL bool npu_build_out_of_memory(npu_build *build);
NPU_INTERNAL bool npu_build_check(npu_build *build, const npu_text *text);  // is it whole?

// A path that lives as long as the build; when memory is out, "", which no file has.
NPU_INTERNAL const char *npu_path(npu_build *build, const char *format, ...) NPU_PRINTF(2, 3);

// -- cache.c --------------------------------------------------------------------------------------

// Sets build->cache to an absolute path of a directory that exists and only the user can write.
NPU_INTERNAL bool npu_cache_open(npu_build *build, const char *directory);
// Removes temporaries of processes that have died.
NPU_INTERNAL void npu_cache_sweep(npu_build *build);
// Makes an empty temporary directory, which the caller removes. NULL with an error.
NPU_INTERNAL const char *npu_cache_new(npu_build *build);
// Writes the mark of a whole entry into build->work; checks the mark in a directory.
NPU_INTERNAL bool npu_cache_mark(npu_build *build);
NPU_INTERNAL bool npu_cache_is_whole(npu_build *build, const char *directory);
// Makes build->work the entry, and forgets it. If another process has made a whole entry meanwhile,
// that one stays, and so does build->work.
NPU_INTERNAL bool npu_cache_publish(npu_build *build);
// Puts an object with its hash into the cache; checks that one is there and unchanged.
NPU_INTERNAL bool npu_cache_keep(npu_build *build, const char *output, const char *object);
NPU_INTERNAL bool npu_cache_has(npu_build *build, const char *object);
// The absolute path.
NPU_INTERNAL const char *npu_absolute(npu_build *build, const char *path);
NPU_INTERNAL bool npu_file_write(const char *path, const char *data, size_t size);
NPU_INTERNAL bool npu_file_read(const char *path, npu_text *text);  // appends
NPU_INTERNAL bool npu_file_sync(const char *path);                  // to the disk

// -- npu_compile.c --------------------------------------------------------------------------------

// Sets the place of a unit's object: in the cache, or, if it is not shared, in build->work.
NPU_INTERNAL void npu_name_object(npu_build *build, npu_unit *unit, uint32_t number);
// Makes the library of the tree in build->work, and loads it.
NPU_INTERNAL bool npu_make_library(npu_build *build);

// -- npu_build.c, npu_execute.c -------------------------------------------------------------------

// Prints the features of processors, from a file in the form of Linux' /proc/cpuinfo, each kind
// once. False if the file does not exist.
NPU_INTERNAL bool npu_print_processors(npu_text *text, const char *path);
// Loads the library of a directory. False, with the reason, on failure.
NPU_INTERNAL bool npu_load(ptowsp_npu *npu, const char *directory, npu_text *why);

#endif

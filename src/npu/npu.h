// The emitter: turns a compiled program, read through appendix A of ptowsp.h, into the files of a
// source tree. It is a separate library beside ptowsp.c (ptowsp_npu_emit.c): of ptowsp it uses only
// the header, and its private names begin with npu_.
//
//      npu_text.c      growing text, and its escapes
//      npu_names.c     C++ identifiers for all named things
//      hash.c          the hash of sources
//      files.c         the files of a tree, in memory
//      npu_expand*.c   aicpu/expand.cpp: the program's statements as loops
//      kernel*.c       aicore/kernels/*.cpp; npu_dispatch.c: aicore/dispatch.cpp
//      npu_program.c   aicpu/program.h, aicpu/program.cpp: enums and tables
//      manifest.c      manifest.json
//      documents.c     README.md
//      tree.c          a tree on disk, whole or not at all
//      npu_emit.c      the public functions: their checks, and the order in which files are made
//      record.c        a recorded run, for a tree to check itself with
//      simpler*.c      the same program as a scene test of PTO Runtime
//      npu_build.c ... building a tree here, keeping it, and running it
//
// Files that are the same in every tree (src/npu/tree, ptowsp.h, the shim) become strings at the
// end of ptowsp_npu_emit.c: npu_fixed_at.
//
// Memory. All of it comes from npu_resize. After a failed allocation the text or the emitter is marked
// and later calls do no harm; the mark is checked where a file is added.
//
// Errors. The first one is kept in the emitter, and reported to the context at the end.

#ifndef NPU_H
#define NPU_H

// Files and directories of POSIX. ptowsp_npu_emit.c is always compiled alone, and begins with this.
#if !defined(_POSIX_C_SOURCE) && !defined(_GNU_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "../../ptowsp.h"

#include <stdarg.h>
#include <string.h>

#ifndef PTOWSP_ASSERT
#include <assert.h>
#define PTOWSP_ASSERT(condition) assert(condition)
#endif

#if defined(PTOWSP_NPU_EMIT_C)
#define NPU_INTERNAL static PWSP_UNUSED
#else
#define NPU_INTERNAL extern __attribute__((visibility("hidden")))
#endif

#define NPU_PRINTF(at, va) __attribute__((format(printf, at, va)))

// Limits of wsp_abi.h; and of the size of a tree.
#define NPU_ABI_VERSION   6u
#define NPU_TABLE_MAX     65535u  // axes, arrays, symbols, tensors, kernels, channels: of each
#define NPU_STATEMENT_MAX 65535u  // a source file that compilers still take in seconds

// -- memory ---------------------------------------------------------------------------------------

// As realloc, but size 0 frees and returns NULL; the old block stays where NULL is returned
// otherwise. PTOWSP_NPU_RESIZE(ptr, size), where that is defined.
NPU_INTERNAL void *npu_resize(void *ptr, size_t size);

// Makes room for `needed` items in an array, by doubling; new items are zero. False when memory is
// out; the array is then unchanged.
#define NPU_ROOM(array, capacity, needed) npu_room(&(array), &(capacity), needed, sizeof *(array))
NPU_INTERNAL bool npu_room(void *array, uint32_t *capacity, uint64_t needed, size_t item_size);

// -- text -----------------------------------------------------------------------------------------

// Growing text; zero is empty. Terminated, once it has any content.
typedef struct npu_text {
    char *data;
    size_t size;  // without the terminator
    size_t capacity;
    bool is_out_of_memory;
} npu_text;

NPU_INTERNAL void npu_text_free(npu_text *text);
NPU_INTERNAL void npu_write(npu_text *text, const char *data, size_t size);
// Appends a part, which is empty afterwards.
NPU_INTERNAL void npu_append(npu_text *text, npu_text *part);
// Frees a part without appending it; if memory was out for the part, the text is marked, too.
NPU_INTERNAL void npu_text_end(npu_text *text, npu_text *part);
// As printf, of any length; of floating-point numbers base/number.h makes text.
NPU_INTERNAL void npu_print(npu_text *text, const char *format, ...) NPU_PRINTF(2, 3);
NPU_INTERNAL void npu_vprint(npu_text *text, const char *format, va_list args) NPU_PRINTF(2, 0);
// A sink of section 4 that appends.
NPU_INTERNAL ptowsp_output npu_text_sink(npu_text *text);

// For a one-line comment: characters that would end the comment or continue its line, and any that
// are not printable ASCII, become '?'. Works for // and /* */.
NPU_INTERNAL void npu_print_comment(npu_text *text, const char *string);
// JSON by a template: see base/json.h. Texts are ASCII afterwards.
NPU_INTERNAL void npu_print_json(npu_text *text, const char *format, ...) NPU_PRINTF(2, 3);
// C++ by a template of the same form. Texts of any bytes become string literals: '%s'.
NPU_INTERNAL void npu_print_cpp(npu_text *text, const char *format, ...) NPU_PRINTF(2, 3);
// As a C++ literal of a value that int64_t or uint64_t can hold: -5, INT64_MIN,
// 18446744073709551615u.
NPU_INTERNAL void npu_print_i64(npu_text *text, int64_t value);
NPU_INTERNAL void npu_print_u64(npu_text *text, uint64_t value);

// -- the emitter ----------------------------------------------------------------------------------

// Kinds of named things. Identifiers of one kind are unique. Kernels name files, so their identifiers
// differ in more than case.
//
//      AXIS, ARRAY, SYMBOL, TENSOR, KERNEL, CHANNEL   program.h has AXIS_batch and so on
//      WORKLOAD, by its statement                     a function in expand.cpp
//      VARIABLE                                       a variable in expand.cpp
//
// The last three are names of expand.cpp, and differ there from each other: a variable from those
// around it. A name that is taken gets a number, in the order of the tables: b_2.
typedef enum npu_kind {
    NPU_AXIS = 0,
    NPU_ARRAY,
    NPU_SYMBOL,
    NPU_TENSOR,
    NPU_KERNEL,
    NPU_CHANNEL,
    NPU_WORKLOAD,
    NPU_VARIABLE,
    NPU_KIND_COUNT
} npu_kind;

#define NPU_NAME_MAX 40  // characters of a name that identifiers keep

typedef struct npu_names {
    npu_text text;                 // all identifiers, each terminated
    uint32_t *at[NPU_KIND_COUNT];  // by index: position in the text, 0: no name
    uint32_t count[NPU_KIND_COUNT];
} npu_names;

#define NPU_PATH_MAX 1024  // of a file in the tree, or of a source, with its end

typedef struct npu_file {
    const char *path;  // in the tree
    const char *data;
    size_t size;
    char *own_path, *own_data;  // the same, if the emitter frees them
    bool is_product;            // about the sources (README.md, manifest.json), and not one of them
    bool is_grouped;            // a tile kernel, which compiles together with others
} npu_file;

#define NPU_HASH_SIZE 33  // 128 bits in hexadecimal digits, terminated

typedef struct npu_emitter {
    ptowsp_context *context;
    const ptowsp_program *program;
    const ptowsp_program_tables *tables;  // of the program
    bool is_for_device;                   // tasks must be able to run there
    npu_names names;
    uint32_t *place_nodes;  // [place_count]: their nodes; [0] is unused
    uint32_t place_count, place_capacity;
    uint32_t *node_places;  // [node_capacity]: the place of a node, or 0
    uint32_t node_capacity;
    npu_file *files;
    uint32_t file_count, file_capacity;
    uint32_t program_file;   // aicpu/program.cpp
    uint32_t *kernel_files;  // [kernel_count]: 1 + the file with a kernel's code; 0: it is not used
    char hash[NPU_HASH_SIZE];  // of the sources
    bool is_simpler;           // for PTO Runtime
    ptowsp_status status;      // the first error
    uint64_t index;
    char error[512];
} npu_emitter;

// Keeps the first error: "emit: " and the text. Returns false.
NPU_INTERNAL bool npu_fail(npu_emitter *emitter, ptowsp_status status, uint64_t index,
                           const char *format, ...) NPU_PRINTF(4, 5);
NPU_INTERNAL bool npu_out_of_memory(npu_emitter *emitter);  // fails with that; returns false

// The identifier of a thing, v_b; index as in appendix A (WORKLOAD: the statement). npu_name is the
// part after the prefix, for names with other prefixes: AXIS_b. It also names a kernel's files.
NPU_INTERNAL const char *npu_user_name(const npu_emitter *emitter, npu_kind kind, uint32_t index);
NPU_INTERNAL const char *npu_name(const npu_emitter *emitter, npu_kind kind, uint32_t index);

// The identifier closest to a name: v_ and at most NPU_NAME_MAX characters.
NPU_INTERNAL void npu_mangle(const char *name, char out[NPU_NAME_MAX + 3]);

NPU_INTERNAL void npu_names_make(npu_emitter *emitter);
NPU_INTERNAL void npu_names_free(npu_names *names);

// The index of a node's place in the table that program.cpp prints; adds it.
NPU_INTERNAL uint32_t npu_place(npu_emitter *emitter, uint32_t node);

// Adds a file, and takes its text, which is then empty. The path is copied. Returns its index.
NPU_INTERNAL uint32_t npu_add_file(npu_emitter *emitter, npu_text *text, const char *path, ...)
    NPU_PRINTF(3, 4);

// A file whose path and text live as long as the library.
NPU_INTERNAL void npu_add_fixed_file(npu_emitter *emitter, const char *path, const char *data,
                                     size_t size);

// The number of lines of a text; the last one counts without a line end.
NPU_INTERNAL uint64_t npu_line_count(const char *data, size_t size);

NPU_INTERNAL void npu_hash(const void *data, size_t size, char hash[NPU_HASH_SIZE]);
// The hash of all files so far that belong to the sources.
NPU_INTERNAL void npu_hash_sources(npu_emitter *emitter, char hash[NPU_HASH_SIZE]);
NPU_INTERNAL void npu_files_free(npu_emitter *emitter);

// Sets the program and its tables. False with an error.
NPU_INTERNAL bool npu_read(npu_emitter *emitter, const ptowsp_program *program);

// -- parts ----------------------------------------------------------------------------------------

// The beginning of manifest.json, which identifies a tree.
#define NPU_MANIFEST_START "{\n  \"format\": \"ptowsp tree\",\n "

// File i of the files that every tree contains; the path is NULL after the last one. Generated by
// tools/amalgamate.sh.
typedef struct npu_fixed {
    const char *path, *data;
    size_t size;
} npu_fixed;
NPU_INTERNAL npu_fixed npu_fixed_at(uint32_t i);

// Adds all of them after the kernels. Files for pipelines, or for kernels that merge, are left out
// where the program has none.
NPU_INTERNAL void npu_fixed_emit(npu_emitter *emitter);

// aicpu/expand.cpp.
NPU_INTERNAL void npu_expand_emit(npu_emitter *emitter, npu_text *out);

// Adds aicore/kernels/*.cpp and aicore/dispatch.cpp, and sets kernel_files.
NPU_INTERNAL void npu_kernels_emit(npu_emitter *emitter);

// Adds aicpu/program.h and aicpu/program.cpp, after expand.cpp, whose places it prints. The hash in
// it is not known yet: npu_program_set_hash puts it there.
NPU_INTERNAL void npu_program_emit(npu_emitter *emitter);
NPU_INTERNAL void npu_program_set_hash(npu_emitter *emitter, const char *hash);

// PTO Runtime. The first refuses features that it lacks. The second replaces the files of the tree by
// a scene test, with a task window and, if the description has a run, its recording.
NPU_INTERNAL bool npu_simpler_check(npu_emitter *emitter, const ptowsp_npu_desc *desc);
NPU_INTERNAL void npu_simpler_emit(npu_emitter *emitter, const ptowsp_npu_desc *desc);
// The ids of a kernel on the cube core, the first and the second vector core; or -1.
typedef struct npu_simpler_ids {
    int32_t cube, vector, second;
    uint32_t slot_bytes;  // of its FIFOs; 0: it has none
} npu_simpler_ids;
NPU_INTERNAL npu_simpler_ids npu_simpler_kernel_ids(const npu_emitter *emitter, uint32_t kernel);
// test_PROGRAM.py; transient_bytes UINT64_MAX: not known.
NPU_INTERNAL void npu_simpler_print_test(const npu_emitter *emitter, uint32_t task_window,
                                         uint64_t transient_bytes, bool is_recorded, npu_text *out);

// Adds the files of a recorded run, below a directory ("" or "recording/").
NPU_INTERNAL void npu_record_run(npu_emitter *emitter, ptowsp_run *run,
                                 const ptowsp_run_options *options, const char *directory);

// Add README.md, from its template, and manifest.json.
NPU_INTERNAL void npu_readme_emit(npu_emitter *emitter, const char *from);
NPU_INTERNAL void npu_manifest_emit(npu_emitter *emitter, const char *hash);

// Words for values in tables: word n of a list that is separated by blanks; "none" where the list
// is too short.
typedef struct npu_table_word {
    char text[40];
} npu_table_word;
NPU_INTERNAL npu_table_word npu_word_at(const char *words, uint32_t n);

// "2, 64, any": the shape of a tensor, with a word for dimensions that are bound.
NPU_INTERNAL void npu_print_shape(npu_text *text, const ptowsp_tensor_desc *tensor,
                                  const char *dynamic);

// -- trees ----------------------------------------------------------------------------------------

// Makes all files of a program's tree, or fails: for a device also where no task of a kernel could
// run on it. Must be closed in either case.
NPU_INTERNAL void npu_emitter_open(npu_emitter *emitter, ptowsp_context *context,
                                   const ptowsp_program *program, bool is_for_device);
// Frees all, and reports the emitter's error to the context. Returns its status.
NPU_INTERNAL ptowsp_status npu_emitter_close(npu_emitter *emitter);

// Removes a file, or a directory with all that is in it. False with errno.
NPU_INTERNAL bool npu_remove(int parent_fd, const char *name);

// Writes the files to a directory, which is new or is replaced.
NPU_INTERNAL void npu_tree_write(npu_emitter *emitter, const ptowsp_npu_desc *desc);

#endif

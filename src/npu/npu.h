// The emitter: from a compiled program, read through section 22 of ptowsp.h, to the files of a
// source tree. It is a library on its own beside ptowsp.c (ptowsp_npu_emit.c): of ptowsp it knows
// the header alone, and its private names begin with npu_.
//
//      emit.c         the public functions; what is checked, and in which order
//      text.c         growing text, and what must be escaped in it
//      names.c        C++ identifiers for all that has a name
//      files.c        the files of a tree, in memory; their hash
//      fixed.c        files that are the same in every tree: src/npu/tree, ptowsp.h, the shim
//      expand.c ...   aicpu/expand.cpp: the program's statements as loops
//      kernels.c ...  aicore/kernels/*.cpp, aicore/dispatch.cpp
//      program.c      aicpu/program.h, aicpu/program.cpp: enums and tables
//      manifest.c     manifest.json
//      documents.c    README.md
//      tree.c         a tree on disk, whole or not at all
//
// Memory. All of it comes from npu_resize. Where it is out, a text or the emitter remembers that,
// and everything goes on without doing harm: it is looked at where a file is added.
//
// Errors. The first one is kept in the emitter, and reported to the context at the end.

#ifndef NPU_H
#define NPU_H

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

// -- memory ---------------------------------------------------------------------------------------

// As realloc, but size 0 frees and returns NULL; the old block stays where NULL is returned
// otherwise. PTOWSP_NPU_RESIZE(ptr, size), where that is defined.
NPU_INTERNAL void *npu_resize(void *ptr, size_t size);

// -- text -----------------------------------------------------------------------------------------

// Growing text; zero is empty. Terminated, once there is any.
typedef struct npu_text {
    char *data;
    size_t size;  // without the terminator
    size_t capacity;
    bool is_out_of_memory;
} npu_text;

NPU_INTERNAL void npu_text_free(npu_text *text);
NPU_INTERNAL void npu_write(npu_text *text, const char *data, size_t size);
// As printf, of any length. No %f, %g or %a: their decimal point depends on the locale.
NPU_INTERNAL void npu_print(npu_text *text, const char *format, ...) NPU_PRINTF(2, 3);
NPU_INTERNAL void npu_vprint(npu_text *text, const char *format, va_list args) NPU_PRINTF(2, 0);
// A sink of section 4 that appends.
NPU_INTERNAL ptowsp_text npu_text_sink(npu_text *text);

// As a string literal of C and C++, with its quotes: "say \"when\"". Any bytes are allowed.
NPU_INTERNAL void npu_print_string(npu_text *text, const char *string);
// For a comment, on its line: what would end the comment or continue its line, and what is not
// printable ASCII, becomes '?'. Good for // and /* */.
NPU_INTERNAL void npu_print_comment(npu_text *text, const char *string);
// As a string of JSON, with its quotes.
NPU_INTERNAL void npu_print_json(npu_text *text, const char *string);
// As a literal of C++ that has the type int64_t or uint64_t can hold: -5, INT64_MIN,
// 18446744073709551615u.
NPU_INTERNAL void npu_print_i64(npu_text *text, int64_t value);
NPU_INTERNAL void npu_print_u64(npu_text *text, uint64_t value);
// As a hexadecimal double of C++17, exact: 0x1.8p+1. Requires a finite value.
NPU_INTERNAL void npu_print_double(npu_text *text, double value);

// -- the emitter ----------------------------------------------------------------------------------

// What has a name. All names of one kind are different.
//
//      AXIS, ARRAY, SYMBOL, TENSOR, KERNEL, CHANNEL   program.h has AXIS_batch and so on
//      WORKLOAD, by its statement                     a function in expand.cpp
//      VARIABLE                                       a variable in expand.cpp
//
// Names in one function of expand.cpp that are in use at the same time are different as well: no
// variable has the name of another one around it, of a dynamic axis, array, symbol, channel or
// workload. (An array of lengths has the name of its axis.) None is a word of C++, a macro, a word
// of the headers of src/npu/tree, or of those that expand.cpp uses itself: npu_name_is_reserved.
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

#define NPU_NAME_MAX 48  // characters of an identifier

typedef struct npu_names {
    char (*of[NPU_KIND_COUNT])[NPU_NAME_MAX + 1];  // by index
    uint32_t count[NPU_KIND_COUNT];
} npu_names;

typedef struct npu_file {
    const char *path;  // in the tree
    const char *data;
    size_t size;
    bool is_owned;    // path and data are freed with the emitter
    bool is_product;  // about the sources (README.md, manifest.json), and not one of them
} npu_file;

typedef struct npu_emitter {
    ptowsp_context *context;
    const ptowsp_program *program;
    ptowsp_schedule schedule;
    uint32_t kernel_count, statement_count;
    npu_names names;
    uint32_t *place_nodes;  // [place_count]: their nodes; 0 is no place
    uint32_t place_count, place_capacity;
    uint32_t *node_places;  // [node_capacity]: the place of a node, or 0
    uint32_t node_capacity;
    npu_file *files;
    uint32_t file_count, file_capacity;
    uint32_t *kernel_files;  // [kernel_count]: 1 + the file with a kernel's code; 0: it is not used
    ptowsp_status status;    // the first error
    uint64_t index;
    char error[512];
} npu_emitter;

// Keeps the first error: "emit: " and the text. Returns false.
NPU_INTERNAL bool npu_fail(npu_emitter *emitter, ptowsp_status status, uint64_t index,
                           const char *format, ...) NPU_PRINTF(4, 5);
NPU_INTERNAL bool npu_out_of_memory(npu_emitter *emitter);  // fails so; returns false

// The identifier of a thing; index as in section 22 (WORKLOAD: the statement).
NPU_INTERNAL const char *npu_name(const npu_emitter *emitter, npu_kind kind, uint32_t index);
NPU_INTERNAL bool npu_name_is_reserved(const char *name);

// Where a node is, as an index in the table of places that program.cpp prints; adds it.
NPU_INTERNAL uint32_t npu_place(npu_emitter *emitter, uint32_t node);

// Adds a file, and takes its text (which is empty then). The path is copied. Returns its index.
NPU_INTERNAL uint32_t npu_add_file(npu_emitter *emitter, npu_text *text, const char *path, ...)
    NPU_PRINTF(3, 4);

// -- parts ----------------------------------------------------------------------------------------

// aicpu/expand.cpp.
NPU_INTERNAL void npu_expand_emit(npu_emitter *emitter, npu_text *out);

// Adds aicore/kernels/*.cpp and aicore/dispatch.cpp, and sets kernel_files.
NPU_INTERNAL void npu_kernels_emit(npu_emitter *emitter);

#endif

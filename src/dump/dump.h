// Dumps of PTO Runtime: records of a program that ran there, read from its files, checked and explained.
// A separate library beside ptowsp.c (ptowsp_dump.c): of ptowsp it uses only the header, and its
// private names begin with dump_.
//
//      dump_base.c      memory, and text to a sink
//      dump_json.c      a reader of JSON, from memory or a file, piece by piece
//      dump_read.c      the four files, into tables
//      dump_link.c      ids to indices; accesses to regions; edges by task
//      dump_region.c    strided bytes: do two regions share some, or a line of a cache?
//      dump_order.c     does one task come before another, by any chain of edges?
//      dump_check.c     accesses that lack an order, and edges without accesses
//      dump_note.c      edges and tasks that are worth a look
//      dump_rings.c     the rings of the runtime, simulated
//      dump_explain.c   one task: its waits, and the tasks that waited for it
//      dump_print.c     all of it as text, JSON and HTML
//      dump_replay.c    the tasks again, in simulated time
//      dump_show.c      replays as text, JSON, HTML and pictures
//      dump.c           the public functions
//
// Tables. A task is an index, in order of submission; edges lead to higher indices. Tasks that a
// dump leaves out (memory that was allocated has a task of its own) stand before the first task that
// names them.
//
// Errors. The first one is kept in the dump; everything after it does nothing.

#ifndef DUMP_H
#define DUMP_H

#include "../../ptowsp.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#ifndef PTOWSP_ASSERT
#include <assert.h>
#define PTOWSP_ASSERT(condition) assert(condition)
#endif

#if defined(PTOWSP_DUMP_C)
#define DUMP_INTERNAL static PWSP_UNUSED
#else
#define DUMP_INTERNAL extern __attribute__((visibility("hidden")))
#endif

#define DUMP_PRINTF(at, va) __attribute__((format(printf, at, va)))

#define DUMP_NONE     UINT32_MAX
#define DUMP_DIMS     5u         // of a tensor
#define DUMP_RINGS    4u         // of the runtime, by the depth of a scope
#define DUMP_LINE     64u        // bytes that two cores must not write together
#define DUMP_EDGE_MAX 33554432u  // of a dump, as are the next two
#define DUMP_ARG_MAX  16777216u
#define DUMP_ROW_MAX  16777216u  // times of tasks; scopes; tensors
#define DUMP_PAIR_MAX 16777216u  // regions that share bytes or a line, both ways
#define DUMP_WORD_MAX 256u       // texts that this version does not know
#define DUMP_STEP_MAX 1000000u   // of comparing two regions
#define DUMP_WORDS    16u        // of a task in dump.masks; 8 and 32 are as fast, 64 slower

// -- memory and text ------------------------------------------------------------------------------

// As realloc, but size 0 frees and returns NULL. PTOWSP_DUMP_RESIZE(ptr, size), where it is defined.
DUMP_INTERNAL void *dump_resize(void *ptr, size_t size);

// Makes room for another element of an array, whose capacity is doubled; false when memory is out.
DUMP_INTERNAL bool dump_grow(void **array, uint32_t count, uint32_t *capacity, size_t size);
// Zeroed memory for count elements, at least one; NULL when memory is out.
DUMP_INTERNAL void *dump_zeroed(uint64_t count, size_t size);

DUMP_INTERNAL void dump_write(ptowsp_output text, const char *data, size_t size);
DUMP_INTERNAL void dump_print(ptowsp_output text, const char *format, ...) DUMP_PRINTF(2, 3);
// With what JSON or HTML escapes, by the format; without quotes.
DUMP_INTERNAL void dump_escaped(ptowsp_output text, ptowsp_dump_format format, const char *string);

// -- JSON -----------------------------------------------------------------------------------------

// A text in memory, or a file that is read as it is needed; the first fault stays.
typedef struct dump_json {
    const char *begin, *at, *end;
    FILE *file;       // NULL: all of the text is there
    char *window;     // of the file
    uint64_t offset;  // of begin
    uint32_t depth;
    bool is_first;      // of an object or array that has just begun
    const char *wrong;  // NULL: nothing so far
} dump_json;

typedef enum dump_json_kind {
    DUMP_JSON_OTHER,  // true, false, null; the end
    DUMP_JSON_OBJECT,
    DUMP_JSON_ARRAY,
    DUMP_JSON_STRING,
    DUMP_JSON_NUMBER
} dump_json_kind;

#define DUMP_JSON_TEXT 128  // more of a string is passed over, and not kept

DUMP_INTERNAL void dump_json_open(dump_json *json, const char *text, size_t size);
// The file is the reader's from now on.
DUMP_INTERNAL bool dump_json_open_file(dump_json *json, FILE *file);
DUMP_INTERNAL void dump_json_close(dump_json *json);
DUMP_INTERNAL bool dump_json_fail(dump_json *json, const char *wrong);
DUMP_INTERNAL dump_json_kind dump_json_peek(dump_json *json);
// Objects and arrays: begin, and next (with a key: of an object) until it is false, which ends them.
// Each value is read, or skipped.
DUMP_INTERNAL bool dump_json_begin(dump_json *json, dump_json_kind kind);
DUMP_INTERNAL bool dump_json_next(dump_json *json, char *key);
DUMP_INTERNAL void dump_json_skip(dump_json *json);
// Into DUMP_JSON_TEXT bytes. Integers may be in a string.
DUMP_INTERNAL bool dump_json_string(dump_json *json, char *text);
DUMP_INTERNAL uint64_t dump_json_u64(dump_json *json);
// The same of something that need not be there: 0 for any other value, null or a fraction.
DUMP_INTERNAL uint64_t dump_json_u64_if(dump_json *json);
DUMP_INTERNAL int64_t dump_json_i64(dump_json *json);
// Is all read? (Text after the value is an error.)
DUMP_INTERNAL bool dump_json_is_done(dump_json *json);

// -- tables ---------------------------------------------------------------------------------------

// Words of a dump. Unknown words follow the known ones (dump_word).
#define DUMP_TYPES(T) T(INPUT) T(OUTPUT) T(INOUT) T(OUTPUT_EXISTING) T(NO_DEP)

#define DUMP_DTYPES(T) /* with their bytes */                                                      \
    T(FLOAT32, 4)                                                                                  \
    T(FLOAT16, 2)                                                                                  \
    T(INT32, 4)                                                                                    \
    T(INT16, 2)                                                                                    \
    T(INT8, 1)                                                                                     \
    T(UINT8, 1)                                                                                    \
    T(BFLOAT16, 2)                                                                                 \
    T(INT64, 8) T(UINT64, 8) T(UINT16, 2) T(UINT32, 4) T(BOOL, 1) T(FP8E4M3FN, 1) T(FP8E8M0, 1)

typedef enum dump_type {
#define DUMP_TYPE_ENUM(name) DUMP_TYPE_##name,
    DUMP_TYPES(DUMP_TYPE_ENUM)
#undef DUMP_TYPE_ENUM
        DUMP_TYPE_COUNT
} dump_type;

typedef struct dump_word {
    char text[DUMP_JSON_TEXT];
    const char *what;  // a type of an argument, ...
    uint64_t count;
} dump_word;

typedef struct dump_tensor {
    uint64_t id, address, element_count;
    uint8_t element_bytes;  // 0: unknown
} dump_tensor;

// Integers: the first of them, and how many there were.
typedef struct dump_list {
    int64_t values[DUMP_DIMS];
    uint32_t count;
} dump_list;

typedef struct dump_arg {
    uint64_t tensor_id, offset;  // offset in elements
    dump_list shape, strides;
    uint32_t tensor, region;  // DUMP_NONE: absent, or its bytes are not known
    uint16_t type;            // dump_type, or a word
    uint8_t element_bytes;
} dump_arg;

typedef struct dump_task {
    uint64_t id;          // ring << 32 | number
    uint64_t start, end;  // of all its rows; end 0: not in the swimlane
    uint32_t first_arg, arg_count;
    uint32_t first_in, in_count;    // dump.edges
    uint32_t first_out, out_count;  // dump.outs
    uint32_t core;                  // of its first row
    uint32_t kept_count;            // edges to it that keep memory, and order nothing
    dump_list kernels;              // of the cube core and two vector cores; -1: none
    bool is_auto, is_left_out;
} dump_task;

typedef struct dump_edge {
    uint64_t pred_id, succ_id;
    uint32_t pred, succ;
    int32_t arg;
    uint16_t source;  // explicit, creator, tensormap, or a word
    uint8_t note;     // once checked: REDUNDANT, NO_DATA, or 0
    bool is_no_wait;  // its flags lack "wait"; only until ids are linked
} dump_edge;

typedef struct dump_name {
    int64_t id;
    char text[DUMP_JSON_TEXT];
} dump_name;

// One line of scope_stats.jsonl: counters of its ring where the scope begins or ends.
typedef struct dump_scope {
    char site[DUMP_JSON_TEXT];
    uint64_t depth, ring, task_end, heap_end;
    bool is_begin;
} dump_scope;

// One row of aicore_tasks.
typedef struct dump_row {
    uint64_t task_id, start, end;
    uint32_t core;
} dump_row;

// Bytes: `count` times in steps of `stride`, dimension by dimension, a run of bytes. Dimensions have
// two or more steps, the largest stride first.
typedef struct dump_region {
    uint64_t begin, end;  // of all bytes
    uint64_t run;
    uint64_t strides[DUMP_DIMS], counts[DUMP_DIMS];
    uint32_t rank;
    uint32_t first_pair, pair_count;  // dump.pairs
    bool is_written;
} dump_region;

#define DUMP_SHARES 1u  // two regions have a byte in common
#define DUMP_NEAR   2u  // not that, but a line
#define DUMP_COVERS 4u  // the first has all bytes of the other

typedef struct dump_pair {
    uint32_t region, other;
    uint32_t how;  // of these
} dump_pair;

struct ptowsp_dump {
    ptowsp_context *context;
    ptowsp_status status;
    dump_task *tasks;
    dump_arg *args;
    dump_edge *edges;  // by task that waits
    uint32_t *outs;    // edges, by task that is waited for
    dump_tensor *tensors;
    dump_name *names;
    dump_scope *scopes;
    dump_row *rows;
    bool *cores;        // cube cores
    uint64_t clock_hz;  // of the swimlane; 0: it does not say
    dump_word *words;
    dump_region *regions;
    dump_pair *pairs;
    uint32_t *succs;  // by outs: the tasks that wait
    uint64_t *masks;  // rows (dump_order.c); later, masks of edges to add (dump_check.c)
    uint32_t *index;  // of tasks, by the hash of their ids; index_size is a power of 2
    ptowsp_dump_finding *findings;
    uint32_t task_count, arg_count, edge_count, tensor_count, name_count, scope_count, row_count,
        word_count, region_count, pair_count, core_count;
    uint32_t task_capacity, arg_capacity, edge_capacity, tensor_capacity, name_capacity,
        scope_capacity, row_capacity, word_capacity, region_capacity, pair_capacity,
        finding_capacity, core_capacity;
    uint32_t index_size;
    uint32_t block, first_row;  // the first task of the block; the first task with a row
    uint64_t first_start;       // of the swimlane
    bool has_deps, has_swimlane, is_checked;
    ptowsp_dump_report report;
};

// Keeps the first error of a dump, and gives it to the context. False.
DUMP_INTERNAL bool dump_fail(ptowsp_dump *dump, ptowsp_status status, uint64_t index,
                             const char *format, ...) DUMP_PRINTF(4, 5);
DUMP_INTERNAL bool dump_out_of_memory(ptowsp_dump *dump);

DUMP_INTERNAL bool dump_read_all(ptowsp_dump *dump, const ptowsp_dump_desc *desc);
DUMP_INTERNAL bool dump_link(ptowsp_dump *dump);
// The index of a task, or DUMP_NONE.
DUMP_INTERNAL uint32_t dump_find(const ptowsp_dump *dump, uint64_t task_id);

// The first kernel of a task, or -1.
DUMP_INTERNAL int64_t dump_kernel_id(const dump_task *task);
// The name of a task's kernel: "softmax", "kernel 3", "no kernel".
#define DUMP_KERNEL_TEXT (DUMP_JSON_TEXT + 32)
DUMP_INTERNAL const char *dump_kernel(const ptowsp_dump *dump, const dump_task *task, char *text);
DUMP_INTERNAL const char *dump_type_name(const ptowsp_dump *dump, uint16_t type);
DUMP_INTERNAL const char *dump_source_name(const ptowsp_dump *dump, uint16_t source);
DUMP_INTERNAL bool dump_reads(const dump_arg *arg);
DUMP_INTERNAL bool dump_writes(const dump_arg *arg);

// -- regions --------------------------------------------------------------------------------------

// The bytes of an argument. False: its numbers are beyond 64 bits.
DUMP_INTERNAL bool dump_region_make(const dump_arg *arg, uint64_t address, dump_region *out_region);
// Have they a byte in common (grain 1), or a line (DUMP_LINE)? Takes from *steps; at 0 the answer is
// yes.
DUMP_INTERNAL bool dump_region_meets(const dump_region *a, const dump_region *b, uint64_t grain,
                                     uint64_t *steps);
// True only if all bytes of `inner` are in `outer`; false may also mean that it is hard to say.
DUMP_INTERNAL bool dump_region_covers(const dump_region *outer, const dump_region *inner);
// All pairs that share bytes or a line. False: see dump_fail.
DUMP_INTERNAL bool dump_pairs_find(ptowsp_dump *dump);
DUMP_INTERNAL uint32_t dump_pair_how(const ptowsp_dump *dump, uint32_t region, uint32_t other);

// -- order ----------------------------------------------------------------------------------------

// What questions need, until it is freed.
DUMP_INTERNAL bool dump_order_make(ptowsp_dump *dump);
DUMP_INTERNAL void dump_order_free(ptowsp_dump *dump);
// Makes a task the later one of all questions until the next call. Call it for every task, in order:
// this also notes each edge as REDUNDANT or not.
DUMP_INTERNAL void dump_order_reach(ptowsp_dump *dump, uint32_t task);
// Does a chain of edges lead from an earlier task to `other`, the task of the last call?
DUMP_INTERNAL bool dump_is_before(ptowsp_dump *dump, uint32_t task, uint32_t other);

// -- checks ---------------------------------------------------------------------------------------

DUMP_INTERNAL bool dump_check(ptowsp_dump *dump);
// The same, unless it has been done.
DUMP_INTERNAL bool dump_check_once(ptowsp_dump *dump);
DUMP_INTERNAL bool dump_note(ptowsp_dump *dump);
// Adds a finding: counted always, kept up to PTOWSP_DUMP_FINDING_MAX of a kind. NULL: not kept.
DUMP_INTERNAL ptowsp_dump_finding *dump_finding_add(ptowsp_dump *dump, ptowsp_dump_kind kind,
                                                    uint32_t before, uint32_t after);

DUMP_INTERNAL void dump_print_check(const ptowsp_dump *dump, ptowsp_dump_format format,
                                    ptowsp_output text);

// Prints why a task started when it did. False when memory is out.
DUMP_INTERNAL bool dump_print_explain(ptowsp_dump *dump, uint32_t task, ptowsp_output text);

// Prints, and draws, a replay or, with NULL, those that are usually asked for.
DUMP_INTERNAL void dump_show(ptowsp_dump *dump, const ptowsp_dump_replay *how,
                             ptowsp_dump_format format, ptowsp_output text);
DUMP_INTERNAL void dump_show_picture(ptowsp_dump *dump, const ptowsp_dump_replay *how,
                                     ptowsp_export_format format,
                                     const ptowsp_export_options *options, ptowsp_output output);

// The least sizes, and the outcome with given ones.
DUMP_INTERNAL bool dump_rings_find(ptowsp_dump *dump, ptowsp_dump_rings *out_rings);
DUMP_INTERNAL bool dump_rings_run(ptowsp_dump *dump, const ptowsp_dump_rings *rings,
                                  ptowsp_dump_rings_result *out_result);

#endif

// Between a test and an expand.cpp that was compiled with the words of this directory: these do
// nothing but ask the test, which has what is bound, and tell it what is walked.

#ifndef NPU_WORDS_HOST_H
#define NPU_WORDS_HOST_H

#include <stdbool.h>
#include <stdint.h>

#define WORDS_ARG_MAX  64
#define WORDS_LEAD_MAX 8
#define WORDS_SLOT_MAX 1024

typedef struct words_view {
    uint32_t tensor, access, lead_count;
    int64_t lead[WORDS_LEAD_MAX];
    int64_t row, rows, col, cols;
} words_view;

typedef struct words_task {
    uint32_t kernel, place;
    uint32_t axis_count, tile_count, scalar_count;
    uint64_t args[WORDS_ARG_MAX];
    words_view tiles[8];
    uint64_t dispatch, priority, stream;
    uint32_t after_count, before_count;
    const char *walker;  // "", or a process
} words_task;

// Functions are called by several threads where there are pipelines.
typedef struct words_host {
    void *user;
    uint64_t slots[WORDS_SLOT_MAX];
    int64_t (*size)(void *user, uint32_t axis);
    uint64_t (*symbol)(void *user, uint32_t symbol);
    // False: outside. Counts: of an array, SIZE_MAX as index.
    bool (*element)(void *user, uint32_t array, int64_t index, uint64_t *out_value);
    int64_t (*length_sum)(void *user, uint32_t array);
    // Entries of a row, or of all rows (row NULL). False: no such row.
    bool (*range)(void *user, uint32_t axis, const int64_t *row, int64_t *first, int64_t *end);
    int64_t (*index)(void *user, uint32_t axis, int64_t entry);
    uint64_t (*load)(void *user, const words_view *view, int64_t r, int64_t c);
    // Fills in rows and columns of tiles in args.
    void (*shape)(void *user, const words_view *view, uint64_t *out_rows, uint64_t *out_cols);
    void (*task)(void *user, const words_task *task);
    void (*reset)(void *user, const uint32_t *edges, uint32_t count);
    void (*pipeline)(void *user, uint32_t pipeline);
    void (*fail)(void *user, uint32_t place);
} words_host;

// What a compiled file has: its programs, by number.
typedef void (*words_run_fn)(uint32_t number, words_host *host);

#endif

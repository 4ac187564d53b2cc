// Tuning records: loading a file of 100,000 with keys of their own, which is the slowest there is;
// looking keys up in random order, of these and of 10,000 keys with ten records each; and adding.

#define _POSIX_C_SOURCE 200809L

#include "bench.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TUNE_RECORDS 100000
#define TUNE_LOOKUPS 10000

typedef struct tune_bench {
    ptowsp_context *context;
    ptowsp_tuning *tuning, *shared;  // of the file; of few keys
    ptowsp_tuning *searched;         // one of them
    ptowsp_tuning_key *keys;         // of lookups, in random order
    char path[32];
    uint64_t added;
} tune_bench;

static ptowsp_tuning_key tune_key(uint64_t i) {
    ptowsp_tuning_key key;
    memset(&key, 0, sizeof key);
    key.kernel = ptowsp_hash(PTOWSP_HASH_START, &i, sizeof i / 2);
    key.machine = i % 2 ? "ascend_910b3" : "ascend_950pr";
    key.sizes[0] = UINT64_C(1) << i % 12;
    key.sizes[1] = 4096;
    return key;
}

static void tune_load(void *user) {
    tune_bench *b = (tune_bench *)user;
    ptowsp_tuning *tuning;
    require(ptowsp_tuning_create(b->context, b->path, &tuning) == PTOWSP_OK, "loading");
    require(ptowsp_tuning_count(tuning).key_count >= TUNE_RECORDS, "all records");
    ptowsp_tuning_destroy(tuning);
}

// Reads the file and finds its lines.
static void tune_read_lines(void *user) {
    tune_bench *b = (tune_bench *)user;
    static char buffer[65536];
    uint64_t count = 0;
    FILE *file = fopen(b->path, "rb");
    require(file != NULL, "the file");
    for (size_t got; (got = fread(buffer, 1, sizeof buffer, file)) > 0;) {
        for (char *at = buffer; (at = (char *)memchr(at, '\n', (size_t)(buffer + got - at)));) {
            at++;
            count++;
        }
    }
    fclose(file);
    require(count >= TUNE_RECORDS, "all lines");
}

static void tune_find(void *user) {
    tune_bench *b = (tune_bench *)user;
    ptowsp_tuning_value value;
    double sum = 0;
    for (uint32_t i = 0; i < TUNE_LOOKUPS; i++) {
        require(ptowsp_tuning_find(b->searched, &b->keys[i], &value), "a look-up");
        sum += value.median;
    }
    bench_keep(&sum);
}

// Reads the keys alone.
static void tune_read_keys(void *user) {
    tune_bench *b = (tune_bench *)user;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < TUNE_LOOKUPS; i++) {
        sum += ptowsp_hash(b->keys[i].kernel, b->keys[i].machine, strlen(b->keys[i].machine));
    }
    bench_keep(&sum);
}

static void tune_add(void *user) {
    tune_bench *b = (tune_bench *)user;
    ptowsp_tuning_key key = tune_key(b->added);
    require(ptowsp_tuning_add(b->tuning, &key, (double)b->added++ / 8, "a_kernel") == PTOWSP_OK,
            "adding");
}

// Appends as much without a lock.
static void tune_append(void *user) {
    tune_bench *b = (tune_bench *)user;
    static const char line[] = "a line that is no record, and as long as one that is one, or so\n";
    int file = open(b->path, O_WRONLY | O_APPEND);
    require(file >= 0 && write(file, line, sizeof line - 1) == sizeof line - 1, "appending");
    close(file);
}

static void tune_report(const char *name, const char *unit, double own, const char *beside,
                        double other, double ratio, double budget, const char *text) {
    bench_row row = {name, unit, own, beside, other, ratio, text, budget > 0, own <= budget};
    report(row);
}

static void tune_report_find(tune_bench *b, ptowsp_tuning *tuning, uint64_t key_count,
                             const char *name) {
    b->searched = tuning;
    for (uint64_t i = 0; i < TUNE_LOOKUPS; i++) {
        b->keys[i] = tune_key(i * UINT64_C(2654435761) % key_count);
    }
    bench_times t = measure(tune_find, tune_read_keys, b, 1, ROUNDS);
    tune_report(name, "ns", t.own_ns / TUNE_LOOKUPS, "hashing its machine",
                t.other_ns / TUNE_LOOKUPS, t.ratio, 100, "100 ns");
}

void bench_tune(ptowsp_context *context) {
    tune_bench b;
    memset(&b, 0, sizeof b);
    b.context = context;
    strcpy(b.path, "/tmp/ptowsp_bench_XXXXXX");
    int file = mkstemp(b.path);
    require(file >= 0, "a temporary file");
    close(file);
    require(ptowsp_tuning_create(context, b.path, &b.tuning) == PTOWSP_OK, "a table");
    while (b.added < TUNE_RECORDS) {
        tune_add(&b);
    }
    b.keys = (ptowsp_tuning_key *)bench_allocate(TUNE_LOOKUPS * sizeof *b.keys);
    require(ptowsp_tuning_create(context, NULL, &b.shared) == PTOWSP_OK, "a table");
    for (uint64_t i = 0; i < TUNE_RECORDS; i++) {
        ptowsp_tuning_key key = tune_key(i % TUNE_LOOKUPS);
        require(ptowsp_tuning_add(b.shared, &key, (double)i, NULL) == PTOWSP_OK, "adding");
    }
    bench_times t = measure(tune_load, tune_read_lines, &b, 1, 21);
    tune_report("loading 100,000 tuning records", "ms", t.own_ns / 1e6, "reading the file's lines",
                t.other_ns / 1e6, t.ratio, 50, "50 ms");
    tune_report_find(&b, b.tuning, TUNE_RECORDS, "looking up one of 100,000 keys");
    tune_report_find(&b, b.shared, TUNE_LOOKUPS, "looking up one of 10,000 keys");
    t = measure(tune_add, tune_append, &b, 20, ROUNDS);
    tune_report("adding a record to the file", "us", t.own_ns / 1e3, "open, write and close",
                t.other_ns / 1e3, t.ratio, 0, "");
    ptowsp_tuning_destroy(b.shared);
    ptowsp_tuning_destroy(b.tuning);
    unlink(b.path);
    free(b.keys);
}

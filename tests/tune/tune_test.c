// Tuning: lines on paper and damaged ones, tables beside a slow reference, processes that write,
// compact and are killed at the same time, refusals with their texts; statistics of samples; hashes
// of kernels.

#define _GNU_SOURCE  // mkdtemp, mkfifo, symlink, MAP_ANONYMOUS

#include "src/tune/tuning.h"

#include "support/files.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// -- files ----------------------------------------------------------------------------------------

typedef struct tune {
    ptowsp_context *context;
    ptowsp_tuning *tuning;
    test_memory memory;
    char directory[64], path[128];
} tune;

static tune tune_make(void) {
    tune t = {0};
    strcpy(t.directory, "/tmp/ptowsp_tune_XXXXXX");
    assert_non_null(mkdtemp(t.directory));
    snprintf(t.path, sizeof t.path, "%s/records", t.directory);
    return t;
}

// A context of its own for each process and table.
static ptowsp_context *tune_context(test_memory *memory) {
    ptowsp_context *context = NULL;
    ptowsp_context_desc desc = {.resize = memory ? test_resize : NULL, .resize_user = memory};
    return ptowsp_context_create(&desc, &context) == PTOWSP_OK ? context : NULL;
}

static void tune_open(tune *t) {
    t->context = tune_context(&t->memory);
    assert_non_null(t->context);
    assert_ok(ptowsp_tuning_create(t->context, t->path, &t->tuning));
}

static void tune_close(tune *t) {
    ptowsp_tuning_destroy(t->tuning);
    ptowsp_context_destroy(t->context);
    assert_int_equal(t->memory.live_bytes, 0);
    t->tuning = NULL;
}

static void tune_remove(tune *t) {
    char made[160];
    snprintf(made, sizeof made, "%s.compact", t->path);
    assert_int_not_equal(access(made, F_OK), 0);
    unlink(t->path);
    assert_int_equal(rmdir(t->directory), 0);
}

static ptowsp_tuning_key key_of(uint64_t kernel, const char *machine, uint64_t size) {
    ptowsp_tuning_key key = {.kernel = kernel, .machine = machine, .sizes[0] = size};
    return key;
}

// A line with the hash of what is given: FNV-1a as its authors write it.
static size_t seal(char *line, const char *text) {
    uint64_t hash = UINT64_C(14695981039346656037);
    for (const char *at = text; *at; at++) {
        hash ^= (unsigned char)*at;
        hash *= UINT64_C(1099511628211);
    }
    return (size_t)sprintf(line, "%s%016llx\n", text, (unsigned long long)hash);
}

// A call has failed, and this is its error without "tuning: "; `at` stands for the format's %s.
static void refused(const ptowsp_context *context, ptowsp_status returned, ptowsp_status status,
                    const char *format, const char *at) {
    char text[512] = "tuning: ";
    snprintf(text + 8, sizeof text - 8, format, at);
    test_refused(context, returned, status, PTOWSP_NO_INDEX, text);
}

#define TUNE_TEST(name) TEST_MADE(name, tune, t, *t = tune_make(), tune_remove(t))

static void add(tune *t, ptowsp_tuning_key key, double value) {
    assert_ok(ptowsp_tuning_add(t->tuning, &key, value, NULL));
}

TUNE_TEST(tuning__writes_the_lines_that_the_header_describes) {
    char expected[1024];
    size_t size, length = 0;
    tune_open(t);
    ptowsp_tuning_key key = key_of(0x5d1f0e83ac21b94c, "910b3", 64);
    key.sizes[1] = 4096;
    assert_ok(ptowsp_tuning_add(t->tuning, &key, 18250.125, "attend"));
    key.unit = PTOWSP_TUNING_CYCLES, key.kernel = 15;
    assert_ok(ptowsp_tuning_add(t->tuning, &key, 7, NULL));
    memset(key.sizes, 0, sizeof key.sizes);
    assert_ok(ptowsp_tuning_add(t->tuning, &key, 0.0004, "x"));
    key.sizes[5] = UINT64_MAX;
    assert_ok(ptowsp_tuning_add(t->tuning, &key, 1e15, "x"));
    length += seal(expected, "tune1 5d1f0e83ac21b94c 910b3 64x4096 18250.125 ns attend ");
    length += seal(expected + length, "tune1 000000000000000f 910b3 64x4096 7 cycles - ");
    length += seal(expected + length, "tune1 000000000000000f 910b3 - 0 cycles x ");
    length += seal(expected + length, "tune1 000000000000000f 910b3 0x0x0x0x0x18446744073709551615 "
                                      "1000000000000000 cycles x ");
    char *data = file_read(t->path, &size);
    assert_int_equal(size, length);
    assert_string_equal(data, expected);
    free(data);
    tune_close(t);
    tune_open(t);  // and reads them
    ptowsp_tuning_stats stats = ptowsp_tuning_count(t->tuning);
    assert_int_equal(stats.record_count, 4);
    assert_int_equal(stats.key_count, 4);
    assert_int_equal(stats.damaged_count + stats.foreign_count + stats.tail_bytes, 0);
    assert_int_equal(stats.byte_count, length);
    ptowsp_tuning_record record = ptowsp_tuning_record_at(t->tuning, 0);
    assert_true(record.value == 18250.125 && record.key.kernel == 0x5d1f0e83ac21b94c);
    assert_string_equal(record.key.machine, "910b3");
    assert_true(record.key.sizes[1] == 4096 && record.key.unit == PTOWSP_TUNING_NS);
    assert_true(ptowsp_tuning_record_at(t->tuning, 3).value == 1e15);
    tune_close(t);
}

TUNE_TEST(tuning__sums_up_the_measurements_of_a_key) {
    ptowsp_tuning_value value;
    tune_open(t);
    ptowsp_tuning_key key = key_of(1, "m", 8), other = key;
    assert_false(ptowsp_tuning_find(t->tuning, &key, &value));
    assert_true(value.count == 0 && value.median == 0);
    add(t, key, 30), add(t, key, 10), add(t, key, 20.5), add(t, key, 40);
    other.unit = PTOWSP_TUNING_CYCLES, add(t, other, 1);
    other = key, other.machine = "n", add(t, other, 2);
    other = key, other.sizes[5] = 1, add(t, other, 3);
    other = key, other.kernel = 2, add(t, other, 4);
    assert_true(ptowsp_tuning_find(t->tuning, &key, &value));
    assert_int_equal(value.count, 4);  // 10 20.5 30 40: the lower one in the middle
    assert_true(value.median == 20.5 && value.least == 10 && value.most == 40);
    assert_true(value.newest == 40);
    for (int i = 1; i <= 14; i++) {
        add(t, key, 100 + i);  // the newest fifteen: 40, 101 to 114
    }
    assert_true(ptowsp_tuning_find(t->tuning, &key, &value));
    assert_true(value.count == 18 && value.median == 107 && value.least == 10);
    add(t, key, 5);  // 5, 101 to 114
    assert_true(ptowsp_tuning_find(t->tuning, &key, &value) && value.median == 107);
    add(t, key, 5);  // 5, 5, 102 to 114
    assert_true(ptowsp_tuning_find(t->tuning, &key, &value) && value.median == 107);
    add(t, key, 5), add(t, key, 5);
    assert_true(ptowsp_tuning_find(t->tuning, &key, &value) && value.median == 107);
    assert_true(ptowsp_tuning_find(t->tuning, &other, &value) && value.median == 4);
    assert_int_equal(ptowsp_tuning_count(t->tuning).key_count, 5);
    tune_close(t);
}

TEST(tuning__puts_sizes_in_buckets_of_powers_of_two) {
    const uint64_t cases[][2] = {
        {0, 0}, {1, 1}, {2, 2},      {3, 2},       {4, 4},
        {7, 4}, {8, 8}, {1023, 512}, {1024, 1024}, {UINT64_MAX, UINT64_C(1) << 63}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_true(ptowsp_tuning_bucket(cases[i][0]) == cases[i][1]);
    }
}

// -- damage ---------------------------------------------------------------------------------------

// What a file of these bytes has.
static ptowsp_tuning_stats stats_of(tune *t, const void *data, size_t size) {
    file_write(t->path, data, size);
    tune_open(t);
    ptowsp_tuning_stats stats = ptowsp_tuning_count(t->tuning);
    tune_close(t);
    return stats;
}

TUNE_TEST(tuning__skips_and_counts_a_line_with_any_bit_flipped) {
    char lines[512], flipped[512];
    size_t first = seal(lines, "tune1 00000000000000aa m 1 5 ns a ");
    size_t second = first + seal(lines + first, "tune1 00000000000000bb m 2x3 6.25 ns b ");
    size_t size = second + seal(lines + second, "tune1 00000000000000cc m - 7 cycles c ");
    assert_int_equal(stats_of(t, lines, size).record_count, 3);
    for (size_t bit = 8 * first; bit < 8 * (second - 1); bit++) {
        memcpy(flipped, lines, size);
        flipped[bit / 8] = (char)(flipped[bit / 8] ^ 1 << bit % 8);
        ptowsp_tuning_stats stats = stats_of(t, flipped, size);
        assert_int_equal(stats.record_count, 2);
        assert_int_equal(stats.damaged_count, flipped[bit / 8] == '\n' ? 2 : 1);
    }
}

TEST(tuning__takes_no_hostile_line_even_with_its_hash) {
    static const char *const wrong[] = {
        "",
        " ",
        "tune1 ",
        "tune 00000000000000aa m 1 5 ns a ",
        "tone1 00000000000000aa m 1 5 ns a ",
        "tune1  00000000000000aa m 1 5 ns a ",
        "tune1 0000000000000aa m 1 5 ns a ",
        "tune1 000000000000000aa m 1 5 ns a ",
        "tune1 00000000000000AA m 1 5 ns a ",
        "tune1 00000000000000aa  1 5 ns a ",
        "tune1 00000000000000aa m\t1 5 ns a ",
        ("tune1 00000000000000aa "
         "a123456789012345678901234567890123456789012345678901234567890123 1 5 ns a "),
        "tune1 00000000000000aa m 0 5 ns a ",
        "tune1 00000000000000aa m 1x0 5 ns a ",
        "tune1 00000000000000aa m 01 5 ns a ",
        "tune1 00000000000000aa m 1x 5 ns a ",
        "tune1 00000000000000aa m x1 5 ns a ",
        "tune1 00000000000000aa m 1y2 5 ns a ",
        "tune1 00000000000000aa m 1,2 5 ns a ",
        "tune1 00000000000000aa m 1 5.:1 ns a ",
        "tune1 00000000000000aa m -1 5 ns a ",
        "tune1 00000000000000aa m 1x1x1x1x1x1x1 5 ns a ",
        "tune1 00000000000000aa m 18446744073709551616 5 ns a ",
        "tune1 00000000000000aa m 1 -5 ns a ",
        "tune1 00000000000000aa m 1 nan ns a ",
        "tune1 00000000000000aa m 1 inf ns a ",
        "tune1 00000000000000aa m 1 1e3 ns a ",
        "tune1 00000000000000aa m 1 5. ns a ",
        "tune1 00000000000000aa m 1 .5 ns a ",
        "tune1 00000000000000aa m 1 5.1234 ns a ",
        "tune1 00000000000000aa m 1 5.-1 ns a ",
        "tune1 00000000000000aa m 1 1000000000000001 ns a ",
        "tune1 00000000000000aa m 1 1000000000000000.001 ns a ",
        "tune1 00000000000000aa m 1 99999999999999999999999 ns a ",
        "tune1 00000000000000aa m 1 5 us a ",
        "tune1 00000000000000aa m 1 5 ns  ",
        "tune1 00000000000000aa m 1 5 ns ",
        "tune1 00000000000000aa m 1 5 ns a b ",
        "tune1 00000000000000aa m 1 5 ns a",
        "tune1 00000000000000aa m 1 5 ns a\x80 ",
    };
    tune t = tune_make();
    char line[512];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ptowsp_tuning_stats stats = stats_of(&t, line, seal(line, wrong[i]));
        assert_int_equal(stats.record_count, 0);
        assert_int_equal(stats.damaged_count, 1);
    }
    // At the limits.
    assert_int_equal(
        stats_of(&t, line,
                 seal(line,
                      "tune1 00000000000000aa "
                      "a12345678901234567890123456789012345678901234567890123456789012 1x0x0x0x0x1 "
                      "999999999999999.999 ns a "))
            .record_count,
        1);
    // A later version, with fields that nobody knows yet.
    ptowsp_tuning_stats stats = stats_of(&t, line, seal(line, "tune2 whatever it will be "));
    assert_int_equal(stats.foreign_count, 1);
    assert_int_equal(stats.damaged_count + stats.record_count, 0);
    tune_remove(&t);
}

TUNE_TEST(tuning__gets_over_lines_of_any_length_and_bytes_of_any_value) {
    static const size_t lengths[] = {0, 1, 383, 384, 65000, 65535, 65536, 65537, 131071, 200000};
    char *data = (char *)malloc(300000);
    assert_non_null(data);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        size_t size = seal(data, "tune1 00000000000000aa m 1 5 ns a ");
        for (size_t k = 0; k < lengths[i]; k++) {
            data[size + k] = (char)(k % 255 == 10 ? 0 : k % 255);
        }
        size_t cut = size += lengths[i];
        data[size++] = '\n';
        size += seal(data + size, "tune1 00000000000000bb m 1 5 ns a ");
        ptowsp_tuning_stats stats = stats_of(t, data, size);
        assert_int_equal(stats.record_count, 2);
        assert_int_equal(stats.damaged_count, 1);
        assert_int_equal(stats.byte_count, size);
        // The long line is the last one, and unfinished: an addition ends it.
        stats = stats_of(t, data, cut);
        assert_int_equal(stats.record_count, 1);
        assert_int_equal(stats.tail_bytes, lengths[i]);
        tune_open(t);
        add(t, key_of(1, "m", 1), 1);
        stats = ptowsp_tuning_count(t->tuning);
        assert_int_equal(stats.record_count, 2);
        assert_int_equal(stats.damaged_count, lengths[i] != 0);
        assert_int_equal(stats.tail_bytes, 0);
        tune_close(t);
    }
    // The end of a long line looks like a record, and is none.
    memset(data, 'x', 65536);
    size_t size = 65536 + seal(data + 65536, "tune1 00000000000000aa m 1 5 ns a ");
    size += seal(data + size, "tune1 00000000000000bb m 1 5 ns a ");
    ptowsp_tuning_stats stats = stats_of(t, data, size);
    assert_int_equal(stats.record_count, 1);
    assert_int_equal(stats.damaged_count, 1);
    free(data);
}

TUNE_TEST(tuning__ends_what_a_killed_writer_left_at_any_length) {
    char lines[256];
    size_t first = seal(lines, "tune1 00000000000000aa m 1 5 ns a ");
    size_t size = first + seal(lines + first, "tune1 00000000000000bb m 1 5 ns a ");
    for (size_t cut = first; cut <= size; cut++) {
        file_write(t->path, lines, cut);
        tune_open(t);
        assert_int_equal(ptowsp_tuning_count(t->tuning).tail_bytes, cut == size ? 0 : cut - first);
        add(t, key_of(1, "m", 1), 9);
        tune_close(t);
        tune_open(t);
        ptowsp_tuning_stats stats = ptowsp_tuning_count(t->tuning);
        // A line that lacks its end alone is whole.
        bool is_whole = cut >= size - 1;
        assert_int_equal(stats.record_count, is_whole ? 3 : 2);
        assert_int_equal(stats.damaged_count, !is_whole && cut > first);
        assert_int_equal(stats.tail_bytes, 0);
        assert_true(ptowsp_tuning_record_at(t->tuning, stats.record_count - 1).value == 9);
        tune_close(t);
    }
}

// -- several at once ------------------------------------------------------------------------------

TEST(tuning__follows_what_others_do_to_the_file) {
    tune t = tune_make(), u = t;
    tune_open(&t), tune_open(&u);
    add(&t, key_of(1, "m", 1), 1), add(&u, key_of(2, "m", 1), 2), add(&t, key_of(1, "m", 1), 3);
    assert_int_equal(ptowsp_tuning_count(u.tuning).record_count, 2);
    assert_ok(ptowsp_tuning_refresh(u.tuning));
    assert_int_equal(ptowsp_tuning_count(u.tuning).record_count, 3);
    for (uint64_t i = 0; i < 3; i++) {  // in one order
        assert_true(ptowsp_tuning_record_at(t.tuning, i).value == (double)i + 1);
        assert_true(ptowsp_tuning_record_at(u.tuning, i).value == (double)i + 1);
    }
    assert_int_equal(chmod(t.path, 0640), 0);
    assert_ok(ptowsp_tuning_compact(u.tuning, 1));  // without value 1
    add(&t, key_of(3, "m", 1), 4);
    assert_int_equal(ptowsp_tuning_count(t.tuning).record_count, 3);
    assert_true(ptowsp_tuning_record_at(t.tuning, 0).value == 2);
    // Twice, so that the second file may get the number of the first.
    add(&u, key_of(3, "m", 1), 5);
    assert_ok(ptowsp_tuning_compact(u.tuning, 1));
    assert_ok(ptowsp_tuning_compact(u.tuning, 1));
    assert_ok(ptowsp_tuning_refresh(t.tuning));
    assert_int_equal(ptowsp_tuning_count(t.tuning).record_count, 3);
    assert_true(ptowsp_tuning_record_at(t.tuning, 2).value == 5);
    struct stat status;
    assert_int_equal(stat(t.path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);
    assert_int_equal(truncate(t.path, 3), 0);  // shorter
    assert_ok(ptowsp_tuning_refresh(t.tuning));
    assert_int_equal(ptowsp_tuning_count(t.tuning).record_count, 0);
    assert_int_equal(ptowsp_tuning_count(t.tuning).tail_bytes, 3);
    assert_int_equal(unlink(t.path), 0);  // deleted
    assert_ok(ptowsp_tuning_refresh(t.tuning));
    assert_int_equal(ptowsp_tuning_count(t.tuning).tail_bytes, 0);
    add(&t, key_of(3, "m", 1), 6);
    assert_ok(ptowsp_tuning_refresh(u.tuning));
    assert_int_equal(ptowsp_tuning_count(u.tuning).record_count, 1);
    tune_close(&u), tune_close(&t);
    tune_remove(&t);
}

enum { WRITERS = 8, LINES = 250 };

// A process: adds lines with values of its own, and compacts now and then. `done` counts what has
// been added.
static void write_lines(const char *path, uint32_t writer, uint32_t count, bool is_compacting,
                        volatile uint32_t *done) {
    ptowsp_tuning *tuning;
    ptowsp_context *context = tune_context(NULL);
    if (!context || ptowsp_tuning_create(context, path, &tuning) != PTOWSP_OK) {
        test_exit(1);
    }
    for (uint32_t i = 0; i < count; i++) {
        ptowsp_tuning_key key = key_of(writer, "m", i % 7);
        if (ptowsp_tuning_add(tuning, &key, writer * 1000000.0 + i, "label") != PTOWSP_OK ||
            (is_compacting && i % 20 == 19 && ptowsp_tuning_compact(tuning, 0) != PTOWSP_OK)) {
            fprintf(stderr, "%s\n", ptowsp_context_error(context).text);
            test_exit(2);
        }
        *done = i + 1;
    }
    ptowsp_tuning_destroy(tuning);
    ptowsp_context_destroy(context);
    test_exit(0);
}

static volatile uint32_t *shared_counts(void) {
    void *memory = mmap(NULL, WRITERS * sizeof(uint32_t), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    return (volatile uint32_t *)memory;
}

// Every value that a writer said it has added is there, once, in its order.
static void check_lines(tune *t, const volatile uint32_t *done) {
    uint32_t next[WRITERS] = {0};
    ptowsp_tuning_stats stats = ptowsp_tuning_count(t->tuning);
    for (uint64_t i = 0; i < stats.record_count; i++) {
        ptowsp_tuning_record record = ptowsp_tuning_record_at(t->tuning, i);
        uint32_t writer = (uint32_t)record.key.kernel;
        assert_true(writer < WRITERS && record.value == writer * 1000000.0 + next[writer]);
        assert_int_equal(record.key.sizes[0], next[writer] % 7);
        next[writer]++;
    }
    for (uint32_t w = 0; w < WRITERS; w++) {
        assert_true(next[w] == done[w] || next[w] == done[w] + 1);  // killed before it could count
    }
}

TUNE_TEST(tuning__loses_nothing_of_eight_processes) {
    volatile uint32_t *done = shared_counts();
    pid_t children[WRITERS];
    for (uint32_t w = 0; w < WRITERS; w++) {
        children[w] = fork();
        assert_true(children[w] >= 0);
        if (children[w] == 0) {
            write_lines(t->path, w, LINES, w < 3, &done[w]);
        }
    }
    for (uint32_t w = 0; w < WRITERS; w++) {
        int status = -1;
        assert_int_equal(waitpid(children[w], &status, 0), children[w]);
        assert_int_equal(status, 0);
    }
    tune_open(t);
    ptowsp_tuning_stats stats = ptowsp_tuning_count(t->tuning);
    assert_int_equal(stats.record_count, WRITERS * LINES);
    assert_int_equal(stats.damaged_count + stats.tail_bytes, 0);
    check_lines(t, done);
    tune_close(t);
    munmap((void *)(uintptr_t)done, WRITERS * sizeof(uint32_t));
}

TEST(tuning__stays_readable_when_writers_are_killed) {
    uint64_t random = test_seed();
    for (int round = 0; TEST_ROUNDS(round, 4); round++) {
        tune t = tune_make();
        volatile uint32_t *done = shared_counts();
        pid_t children[WRITERS];
        for (uint32_t w = 0; w < WRITERS; w++) {
            children[w] = fork();
            assert_true(children[w] >= 0);
            if (children[w] == 0) {
                write_lines(t.path, w, 1000000, w < 2, &done[w]);
            }
        }
        for (uint32_t w = 0; w < WRITERS; w++) {
            usleep((useconds_t)test_random_in(&random, 0, 20000));
            kill(children[w], SIGKILL);
            int status = -1;
            assert_int_equal(waitpid(children[w], &status, 0), children[w]);
            assert_true(WIFSIGNALED(status));
        }
        tune_open(&t);
        check_lines(&t, done);
        uint64_t count = ptowsp_tuning_count(t.tuning).record_count;
        add(&t, key_of(99, "m", 1), 1);                 // nobody holds the lock
        assert_ok(ptowsp_tuning_compact(t.tuning, 0));  // or left its file
        ptowsp_tuning_stats stats = ptowsp_tuning_count(t.tuning);
        assert_int_equal(stats.record_count, count + 1);
        assert_int_equal(stats.damaged_count + stats.tail_bytes, 0);
        tune_close(&t);
        munmap((void *)(uintptr_t)done, WRITERS * sizeof(uint32_t));
        tune_remove(&t);
    }
}

// -- compacting, and a slow reference -------------------------------------------------------------

typedef struct reference {
    uint32_t count;
    uint32_t key[4096];
    double value[4096];
} reference;

// Leaves the newest keep_max of each key.
static void reference_compact(reference *r, uint32_t keep_max) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        uint32_t later = 0;
        for (uint32_t k = i + 1; k < r->count; k++) {
            later += r->key[k] == r->key[i];
        }
        if (keep_max == 0 || later < keep_max) {
            r->key[count] = r->key[i];
            r->value[count++] = r->value[i];
        }
    }
    r->count = count;
}

static ptowsp_tuning_key reference_key(uint32_t i) {
    static const char *const machines[] = {"910b3", "950pr", "host"};
    ptowsp_tuning_key key = key_of(i / 12, machines[i % 3], i / 6 % 2 ? 64 : 0);
    key.unit = i / 3 % 2 ? PTOWSP_TUNING_CYCLES : PTOWSP_TUNING_NS;
    return key;
}

static void reference_compare(const reference *r, ptowsp_tuning *tuning) {
    assert_int_equal(ptowsp_tuning_count(tuning).record_count, r->count);
    assert_int_equal(ptowsp_tuning_count(tuning).damaged_count, 0);
    for (uint32_t i = 0; i < r->count; i++) {
        ptowsp_tuning_value value;
        uint32_t count = 0, low = 0, high = 0, recent = 0, newest = i;
        double least = r->value[i], most = r->value[i];
        for (uint32_t k = r->count; k-- > 0;) {
            if (r->key[k] == r->key[i]) {
                newest = count++ ? newest : k;
                least = r->value[k] < least ? r->value[k] : least;
                most = r->value[k] > most ? r->value[k] : most;
            }
        }
        ptowsp_tuning_key key = reference_key(r->key[i]);
        assert_true(ptowsp_tuning_find(tuning, &key, &value));
        for (uint32_t k = r->count; k-- > 0 && recent < PTOWSP_TUNING_RECENT_MAX;) {
            recent += r->key[k] == r->key[i];
            low += r->key[k] == r->key[i] && r->value[k] < value.median;
            high += r->key[k] == r->key[i] && r->value[k] > value.median;
        }
        assert_true(value.count == count && value.newest == r->value[newest]);
        assert_true(value.least == least && value.most == most);
        assert_true(low <= (recent - 1) / 2 && high <= recent / 2);
        assert_true(ptowsp_tuning_record_at(tuning, i).value == r->value[i]);
    }
}

TEST(tuning__agrees_with_a_list_whatever_is_done) {
    uint64_t random = test_seed();
    for (int round = 0; TEST_ROUNDS(round, 10); round++) {
        tune t = tune_make(), u = t;
        reference r;
        r.count = 0;
        tune_open(&t), tune_open(&u);
        for (int step = 0; step < 300; step++) {
            tune *who = test_random(&random) % 2 ? &t : &u;
            uint64_t what = test_random(&random) % 100;
            if (what < 90) {
                r.key[r.count] = (uint32_t)(test_random(&random) % (round % 2 ? 300 : 30));
                r.value[r.count] = (double)(test_random(&random) % 100000) / 8;
                add(who, reference_key(r.key[r.count]), r.value[r.count]);
                r.count++;
            } else if (what < 93) {
                uint32_t keep_max = (uint32_t)(test_random(&random) % 4);
                assert_ok(ptowsp_tuning_compact(who->tuning, keep_max));
                reference_compact(&r, keep_max);
            } else if (what < 96) {
                tune_close(who), tune_open(who);
            } else if (what < 98) {
                FILE *file = fopen(t.path, "ab");
                assert_non_null(file);
                fputs("half a li", file);
                fclose(file);
                assert_ok(ptowsp_tuning_compact(who->tuning, 0));
            } else {
                assert_ok(ptowsp_tuning_refresh(who->tuning));
                reference_compare(&r, who->tuning);
            }
        }
        tune_close(&u), tune_close(&t);
        tune_remove(&t);
    }
}

TUNE_TEST(tuning__compacts_to_good_lines_as_they_were) {
    char lines[1024], expected[1024];
    size_t size = 0, length = 0, got;
    static const char *const texts[] = {
        "tune1 00000000000000aa m 1 5 ns old ", "tune2 of a later version ",
        "tune1 00000000000000aa m 1 6 ns label ", "tune1 00000000000000bb m 1 7.50 ns only "};
    for (int i = 0; i < 4; i++) {
        size += seal(lines + size, texts[i]);
        lines[size++] = '#', lines[size++] = '\n';
        length += i > 0 ? seal(expected + length, texts[i]) : 0;
    }
    size += (size_t)sprintf(lines + size, "half");
    file_write(t->path, lines, size);
    tune_open(t);
    assert_int_equal(ptowsp_tuning_count(t->tuning).damaged_count, 4);
    assert_ok(ptowsp_tuning_compact(t->tuning, 1));
    char *data = file_read(t->path, &got);
    assert_int_equal(got, length);
    assert_string_equal(data, expected);
    free(data);
    ptowsp_tuning_stats stats = ptowsp_tuning_count(t->tuning);
    assert_true(stats.record_count == 2 && stats.foreign_count == 1 && stats.damaged_count == 0);
    tune_close(t);
}

// -- errors ---------------------------------------------------------------------------------------

TUNE_TEST(tuning__refuses_files_with_reasons) {
    char other[160], long_path[4002] = "";
    ptowsp_tuning *tuning = NULL;
    const ptowsp_tuning_key key = key_of(1, "m", 1);
    ptowsp_context *context = t->context = tune_context(&t->memory);
    refused(context, ptowsp_tuning_create(context, "x", NULL), PTOWSP_INVALID_PARAMS,
            "out_tuning is NULL", NULL);
    refused(context, ptowsp_tuning_create(context, "", &tuning), PTOWSP_INVALID_PARAMS,
            "a path of 0 bytes; it has 1 to 4000", NULL);
    memset(long_path, 'x', 4001);
    refused(context, ptowsp_tuning_create(context, long_path, &tuning), PTOWSP_INVALID_PARAMS,
            "a path of 4001 bytes; it has 1 to 4000", NULL);
    long_path[4000] = '\0';  // one name of 4,000 bytes: the system refuses it
    assert_int_equal(ptowsp_tuning_create(context, long_path, &tuning), PTOWSP_SYSTEM_FAILED);
    assert_non_null(strstr(ptowsp_context_error(context).text, "File name too long"));
    refused(context, ptowsp_tuning_create(context, t->directory, &tuning), PTOWSP_INVALID_PARAMS,
            "cannot open %s: Is a directory", t->directory);
    assert_null(tuning);
    assert_int_equal(mkfifo(t->path, 0600), 0);
    refused(context, ptowsp_tuning_create(context, t->path, &tuning), PTOWSP_INVALID_PARAMS,
            "cannot open %s: it is no file", t->path);
    unlink(t->path);
    // A folder that is not there: there are no records, and none can be added.
    snprintf(other, sizeof other, "%s/none/records", t->directory);
    assert_ok(ptowsp_tuning_create(context, other, &tuning));
    refused(context, ptowsp_tuning_add(tuning, &key, 1, NULL), PTOWSP_SYSTEM_FAILED,
            "cannot open %s: No such file or directory", other);
    ptowsp_tuning_destroy(tuning);
    // A full disk, and a device that takes all.
    assert_ok(ptowsp_tuning_create(context, "/dev/full", &tuning));
    refused(context, ptowsp_tuning_add(tuning, &key, 1, NULL), PTOWSP_SYSTEM_FAILED,
            "cannot write to /dev/full: No space left on device", NULL);
    ptowsp_tuning_destroy(tuning);
    assert_ok(ptowsp_tuning_create(context, "/dev/null", &tuning));
    assert_ok(ptowsp_tuning_add(tuning, &key, 1, NULL));
    assert_int_equal(ptowsp_tuning_count(tuning).record_count, 0);
    ptowsp_tuning_destroy(tuning);
    ptowsp_context_destroy(context);
}

// In a process without rights: exits with 0 if reading and writing are refused.
static void be_refused(const char *path) {
    ptowsp_tuning *tuning;
    char text[256];
    ptowsp_context *context = tune_context(NULL);
    snprintf(text, sizeof text, "tuning: cannot open %s: Permission denied", path);
    if (geteuid() == 0 && setuid(65534) != 0) {
        _exit(3);
    }
    _exit(ptowsp_tuning_create(context, path, &tuning) == PTOWSP_SYSTEM_FAILED &&
                  strcmp(ptowsp_context_error(context).text, text) == 0
              ? 0
              : 1);
}

// The same where the file can be read alone.
static void be_reader(const char *path) {
    ptowsp_tuning *tuning;
    ptowsp_tuning_key key = key_of(1, "m", 1);
    ptowsp_context *context = tune_context(NULL);
    if (geteuid() == 0 && setuid(65534) != 0) {
        _exit(3);
    }
    if (ptowsp_tuning_create(context, path, &tuning) != PTOWSP_OK ||
        ptowsp_tuning_count(tuning).record_count != 1) {
        _exit(1);
    }
    _exit(ptowsp_tuning_add(tuning, &key, 1, NULL) == PTOWSP_SYSTEM_FAILED &&
                  strstr(ptowsp_context_error(context).text, "Permission denied")
              ? 0
              : 2);
}

TUNE_TEST(tuning__says_that_permission_is_missing) {
    tune_open(t);
    add(t, key_of(1, "m", 1), 1);
    assert_int_equal(chmod(t->directory, 0755), 0);
    for (int i = 0; i < 2; i++) {
        int status = -1;
        assert_int_equal(chmod(t->path, i ? 0444 : 0), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            i ? be_reader(t->path) : be_refused(t->path);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    tune_close(t);
}

TUNE_TEST(tuning__refuses_what_is_no_measurement) {
    tune_open(t);
    ptowsp_tuning_key key = key_of(1, "m", 1);
    static const struct {
        double value;
        const char *text;
    } values[] = {{-1, "-1"},
                  {(double)INFINITY, "inf"},
                  {-(double)INFINITY, "-inf"},
                  {1.5e15, "1.5e+15"},
                  {1.0000000001e15, "1.0000000001e+15"},          // differs from the limit
                  {1000000000000000.125, "1000000000000000.1"}};  // so does the next double
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        refused(t->context, ptowsp_tuning_add(t->tuning, &key, values[i].value, NULL),
                PTOWSP_INVALID_PARAMS, "a value is from 0 to 1e+15, not %s", values[i].text);
    }
    assert_invalid(ptowsp_tuning_add(t->tuning, &key, (double)NAN, NULL));
    assert_non_null(strstr(ptowsp_context_error(t->context).text, "nan"));
    static const char *const words[] = {
        "",      "two words", "line\n",
        "tab\t", "\x80",      "a123456789012345678901234567890123456789012345678901234567890123"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        ptowsp_tuning_key bad = key_of(1, words[i], 1);
        refused(t->context, ptowsp_tuning_add(t->tuning, &bad, 1, NULL), PTOWSP_INVALID_PARAMS,
                "%s is a word of 1 to 63 printable characters", "the machine of a key");
        refused(t->context, ptowsp_tuning_add(t->tuning, &key, 1, words[i]), PTOWSP_INVALID_PARAMS,
                "%s is a word of 1 to 63 printable characters", "a label");
    }
    assert_invalid(ptowsp_tuning_add(t->tuning, NULL, 1, NULL));
    key.machine = NULL;
    assert_invalid(ptowsp_tuning_add(t->tuning, &key, 1, NULL));
    key.machine = "m", key.unit = PTOWSP_TUNING_UNIT_COUNT;
    refused(t->context, ptowsp_tuning_add(t->tuning, &key, 1, NULL), PTOWSP_INVALID_PARAMS,
            "there is no unit 2", NULL);
    assert_int_not_equal(access(t->path, F_OK), 0);  // nothing was made
    tune_close(t);
}

// Two names that FNV-1a gives one hash of 64 bits: one of them has the records.
TEST(tuning__takes_no_machine_with_the_hash_of_another) {
    const ptowsp_tuning_key one = key_of(0xaa, "8yn0iYCKYHlIj4-BwPqk", 1);
    const ptowsp_tuning_key two = key_of(0xaa, "GReLUrM4wMqfg9yzV3KQ", 1);
    ptowsp_tuning_value value;
    assert_true(ptowsp_hash(PTOWSP_HASH_START, one.machine, 20) ==
                ptowsp_hash(PTOWSP_HASH_START, two.machine, 20));
    tune t = tune_make();
    t.context = tune_context(&t.memory);
    assert_ok(ptowsp_tuning_create(t.context, NULL, &t.tuning));
    add(&t, one, 5);
    test_refused(t.context, ptowsp_tuning_add(t.tuning, &two, 7, NULL), PTOWSP_INVALID_PARAMS, 1,
                 "tuning: record 1: two machines' names have one hash");
    assert_false(ptowsp_tuning_find(t.tuning, &two, &value));
    assert_true(ptowsp_tuning_find(t.tuning, &one, &value));
    assert_true(value.count == 1 && value.newest == 5);
    tune_close(&t);
    char lines[512];
    size_t size = seal(lines, "tune1 00000000000000aa 8yn0iYCKYHlIj4-BwPqk 1 5 ns a ");
    size += seal(lines + size, "tune1 00000000000000aa GReLUrM4wMqfg9yzV3KQ 1 7 ns a ");
    const ptowsp_tuning_stats stats = stats_of(&t, lines, size);
    assert_int_equal(stats.record_count, 1);
    assert_int_equal(stats.damaged_count, 1);
    tune_remove(&t);
}

// Records are numbered by 32 bits: as if there were 2^32 - 2 of them.
TEST(tuning__says_that_there_are_too_many_records) {
    tune t = tune_make();
    t.context = tune_context(&t.memory);
    assert_ok(ptowsp_tuning_create(t.context, NULL, &t.tuning));
    const ptowsp_tuning_key key = key_of(1, "m", 1);
    add(&t, key, 5);
    t.tuning->table.record_count = UINT32_MAX - 1;
    test_refused(t.context, ptowsp_tuning_add(t.tuning, &key, 7, NULL), PTOWSP_LIMIT_EXCEEDED,
                 UINT32_MAX - 1, "tuning: record 4294967294: there are too many");
    t.tuning->table.record_count = 1;
    add(&t, key, 7);
    assert_int_equal(ptowsp_tuning_count(t.tuning).record_count, 2);
    tune_close(&t);
    assert_int_equal(rmdir(t.directory), 0);
}

TUNE_TEST(tuning__does_not_compact_what_it_must_not_replace) {
    char link_path[160], *real = t->path;
    snprintf(link_path, sizeof link_path, "%s/link", t->directory);
    tune_open(t);
    ptowsp_tuning *tuning = NULL;
    add(t, key_of(1, "m", 1), 1);
    assert_int_equal(symlink(real, link_path), 0);
    assert_ok(ptowsp_tuning_create(t->context, link_path, &tuning));
    assert_int_equal(ptowsp_tuning_count(tuning).record_count, 1);
    refused(t->context, ptowsp_tuning_compact(tuning, 0), PTOWSP_UNSUPPORTED,
            "%s is a symbolic link, which is not compacted", link_path);
    ptowsp_tuning_destroy(tuning);
    unlink(link_path);
    assert_int_equal(link(real, link_path), 0);
    refused(t->context, ptowsp_tuning_compact(t->tuning, 0), PTOWSP_UNSUPPORTED,
            "%s is a file with other links, which is not compacted", real);
    unlink(link_path);
    assert_ok(ptowsp_tuning_create(t->context, "/dev/null", &tuning));
    refused(t->context, ptowsp_tuning_compact(tuning, 0), PTOWSP_UNSUPPORTED,
            "/dev/null is a device, which is not compacted", NULL);
    ptowsp_tuning_destroy(tuning);
    assert_ok(ptowsp_tuning_create(t->context, NULL, &tuning));
    ptowsp_tuning_key key = key_of(1, "m", 1);
    assert_ok(ptowsp_tuning_add(tuning, &key, 1, NULL));
    assert_ok(ptowsp_tuning_refresh(tuning));
    assert_int_equal(ptowsp_tuning_count(tuning).record_count, 1);
    refused(t->context, ptowsp_tuning_compact(tuning, 0), PTOWSP_INVALID_PARAMS,
            "a table without a file is not compacted", NULL);
    ptowsp_tuning_destroy(tuning);
    file_write(real, "a diary\nof two lines\n", 21);
    refused(t->context, ptowsp_tuning_compact(t->tuning, 0), PTOWSP_INVALID_PARAMS,
            "%s has 2 lines, and none is a record", real);
    // A folder where the new file would be.
    file_write(real, "", 0);
    add(t, key_of(1, "m", 1), 1);
    snprintf(link_path, sizeof link_path, "%s.compact", real);
    assert_int_equal(mkdir(link_path, 0700), 0);
    refused(t->context, ptowsp_tuning_compact(t->tuning, 0), PTOWSP_INVALID_PARAMS,
            "cannot make %s: Is a directory", link_path);
    rmdir(link_path);
    assert_ok(ptowsp_tuning_refresh(t->tuning));
    assert_int_equal(ptowsp_tuning_count(t->tuning).record_count, 1);
    tune_close(t);
}

TUNE_TEST(tuning__survives_every_allocation_that_fails) {
    t->context = tune_context(&t->memory);
    size_t before = t->memory.live_bytes, n = 1;
    for (bool is_done = false; !is_done; n++) {
        unlink(t->path);
        t->memory.allocations = 0;
        t->memory.refuse_at = n;
        uint64_t failures = 0;
        t->tuning = NULL;
        while (ptowsp_tuning_create(t->context, t->path, &t->tuning) != PTOWSP_OK) {
            assert_int_equal(ptowsp_context_error(t->context).status, PTOWSP_OUT_OF_MEMORY);
            assert_null(t->tuning);
            failures++;
        }
        for (uint64_t i = 0; i < 40; i++) {
            char machine[16];
            snprintf(machine, sizeof machine, "machine%d", (int)i % 20);
            ptowsp_tuning_key key = key_of(i, machine, 1);
            if (ptowsp_tuning_add(t->tuning, &key, (double)i, NULL) != PTOWSP_OK) {
                assert_int_equal(ptowsp_context_error(t->context).status, PTOWSP_OUT_OF_MEMORY);
                failures++;
            }
        }
        while (ptowsp_tuning_compact(t->tuning, 1) != PTOWSP_OK) {
            assert_int_equal(ptowsp_context_error(t->context).status, PTOWSP_OUT_OF_MEMORY);
            failures++;
        }
        assert_true(failures <= 1);
        assert_ok(ptowsp_tuning_refresh(t->tuning));
        assert_int_equal(ptowsp_tuning_count(t->tuning).record_count, 40);  // none was lost
        for (uint64_t i = 0; i < 40; i++) {
            assert_true(ptowsp_tuning_record_at(t->tuning, i).value == (double)i);
        }
        ptowsp_tuning_destroy(t->tuning);
        assert_int_equal(t->memory.live_bytes, before);
        is_done = failures == 0;
    }
    assert_true(n > 10);
    ptowsp_context_destroy(t->context);
}

// -- measuring ------------------------------------------------------------------------------------

TEST(measure__rejects_samples_far_from_the_median) {
    ptowsp_measurement m;
    // Median 12.5; distances 0.5 0.5 1.5 1.5 2.5 87.5, so MAD 1.5, limit 3.5 * 1.5 / 0.6745 = 7.78.
    const uint64_t one[] = {100, 10, 13, 11, 14, 12};
    assert_ok(ptowsp_measure_samples(one, 6, 0, &m));
    assert_true(m.median == 12 && m.least == 10 && m.most == 14 && m.deviation == 1.5);
    assert_true(m.sample_count == 5 && m.outlier_count == 1);
    // Median 50, MAD 10, limit 51.89: 101 is inside, 102 is not, and 0 is.
    const uint64_t edge[] = {40, 50, 60, 101, 0, 45, 55};
    assert_ok(ptowsp_measure_samples(edge, 7, 1, &m));
    assert_true(m.deviation == 10 && m.outlier_count == 0 && m.most == 101);
    const uint64_t past[] = {40, 50, 60, 102, 0, 45, 55};
    assert_ok(ptowsp_measure_samples(past, 7, 1, &m));
    assert_true(m.outlier_count == 1 && m.most == 60 && m.least == 0);
    assert_true(m.median == 47.5);  // 0 40 45 50 55 60
    // Median 50.5, distances 0.5 0.5 1.5 1.5 2.5 48.5 49.5, MAD of 7: 1.5; limit 7.78: both ends go.
    const uint64_t both[] = {2, 50, 51, 49, 52, 48, 100, 51};
    assert_ok(ptowsp_measure_samples(both, 8, 1, &m));
    assert_true(m.outlier_count == 2 && m.least == 48 && m.most == 52 && m.median == 50.5);
    const uint64_t low[] = {100, 101, 1, 99, 102, 2};  // MAD 1.5 from 99.5: two low ones
    assert_ok(ptowsp_measure_samples(low, 6, 1, &m));
    assert_true(m.outlier_count == 2 && m.least == 99 && m.most == 102 && m.median == 100.5);
    const uint64_t equal[] = {5, 5, 9, 5};  // MAD 0
    assert_ok(ptowsp_measure_samples(equal, 4, 2, &m));
    assert_true(m.median == 2.5 && m.most == 4.5 && m.deviation == 0 && m.outlier_count == 0);
    const uint64_t alone[] = {UINT64_MAX};
    assert_ok(ptowsp_measure_samples(alone, 1, 1, &m));
    assert_true(m.median == 18446744073709551616.0 && m.sample_count == 1);
    const struct {
        const uint64_t *samples;
        uint32_t count;
    } bad[] = {{NULL, 1}, {one, 0}, {one, 1001}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        memset(&m, 0x5a, sizeof m);
        assert_invalid(ptowsp_measure_samples(bad[i].samples, bad[i].count, 1, &m));
        assert_true(m.median == 0 && m.least == 0 && m.most == 0 && m.deviation == 0);
        assert_true(m.sample_count == 0 && m.outlier_count == 0);
    }
    assert_invalid(ptowsp_measure_samples(one, 6, 1, NULL));
}

TEST(measure__sorts_as_many_samples_as_it_takes) {
    uint64_t samples[PTOWSP_MEASURE_SAMPLE_MAX];
    ptowsp_measurement m;
    for (uint32_t i = 0; i < PTOWSP_MEASURE_SAMPLE_MAX; i++) {
        samples[i] = (i * 7919 + 13) % PTOWSP_MEASURE_SAMPLE_MAX;  // each of 0 to 999 once
    }
    assert_ok(ptowsp_measure_samples(samples, PTOWSP_MEASURE_SAMPLE_MAX, 1, &m));
    assert_true(m.median == 499.5 && m.least == 0 && m.most == 999 && m.deviation == 250);
}

// A function that takes the times it is given, by a clock that it moves.
typedef struct measured {
    const uint64_t *times;
    uint64_t now;
    uint32_t calls, fail_at;
    bool is_backwards;
} measured;

static ptowsp_status measured_fn(void *user) {
    measured *it = (measured *)user;
    it->now += it->times[it->calls++];
    return it->calls == it->fail_at ? PTOWSP_KERNEL_FAILED : PTOWSP_OK;
}

static uint64_t measured_clock(void *user) {
    measured *it = (measured *)user;
    return it->is_backwards ? it->now-- : it->now++;
}

TEST(measure__calls_what_it_is_told_to) {
    ptowsp_context *context = tune_context(NULL);
    const uint64_t times[] = {9000, 9000, 29, 31, 27, 33, 29};  // a look at the clock takes 1
    measured it = {times, 0, 0, 0, false};
    ptowsp_measurement m;
    ptowsp_measure_desc desc = {0};
    desc.fn = measured_fn, desc.user = &it, desc.clock = measured_clock;
    desc.warm_up = 2, desc.repeats = 5, desc.calls = 10;
    assert_ok(ptowsp_measure(context, &desc, &m));
    assert_int_equal(it.calls, 7);
    assert_true(m.median == 3 && m.least == (double)2.8 && m.most == (double)3.4);
    assert_int_equal(m.sample_count, 5);
    it.calls = 0, it.fail_at = 4;
    test_refused(context, ptowsp_measure(context, &desc, &m), PTOWSP_KERNEL_FAILED, 3,
                 "measure: call 3 failed: a kernel failed");
    assert_int_equal(it.calls, 4);
    assert_true(m.median == 0);
    // By the clock of the machine, 21 times: what takes no time takes less than a second.
    const uint64_t many[21] = {0};
    measured real = {many, 0, 0, 0, false};
    memset(&desc, 0, sizeof desc);
    desc.fn = measured_fn, desc.user = &real;
    assert_ok(ptowsp_measure(context, &desc, &m));
    assert_int_equal(real.calls, 21);
    assert_int_equal(m.sample_count + m.outlier_count, 21);
    assert_true(0 <= m.least && m.least <= m.median && m.median <= m.most && m.most < 1e9);
    desc.clock = measured_clock;
    const uint64_t none[] = {0};
    measured back = {none, 9, 0, 0, true};
    desc.user = &back;
    test_refused(context, ptowsp_measure(context, &desc, &m), PTOWSP_INVALID_PARAMS, 0,
                 "measure: the clock went back, from 9 to 8");
    desc.repeats = 1001;
    test_refused(context, ptowsp_measure(context, &desc, &m), PTOWSP_INVALID_PARAMS, 1001,
                 "measure: 1001 repeats; there are at most 1000");
    desc.fn = NULL;
    test_refused(context, ptowsp_measure(context, &desc, &m), PTOWSP_INVALID_PARAMS,
                 PTOWSP_NO_INDEX, "measure: fn is NULL");
    test_refused(context, ptowsp_measure(context, NULL, &m), PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                 "measure: desc is NULL");
    desc.fn = measured_fn;
    test_refused(context, ptowsp_measure(context, &desc, NULL), PTOWSP_INVALID_PARAMS,
                 PTOWSP_NO_INDEX, "measure: out_measurement is NULL");
    ptowsp_context_destroy(context);
}

// -- hashes of kernels ----------------------------------------------------------------------------

#if !defined(PTOWSP_NO_TILES)
// The hash of y = exp(x * factor) or of its root.
static uint64_t tile_hash(const char *name, uint32_t cols, double factor, bool is_root,
                          const ptowsp_machine *machine) {
    ptowsp_context *context = tune_context(NULL);
    ptowsp_module *module = test_module(context, NULL);
    ptowsp_body_desc desc = {0};
    desc.name = name, desc.machine = machine;
    ptowsp_body *body = ptowsp_kernel_begin(module, &desc);
    ptowsp_value x = ptowsp_tile_in(body, "x", PTOWSP_F32, 16, cols);
    ptowsp_value y = ptowsp_tile_out(body, "y", PTOWSP_F32, 16, cols);
    x = ptowsp_tile_mul(x, ptowsp_tile_const(body, factor));
    ptowsp_tile_store(y, is_root ? ptowsp_tile_sqrt(x) : ptowsp_tile_exp(x));
    ptowsp_kernel kernel = ptowsp_kernel_end(body);
    uint64_t hash = ptowsp_kernel_hash(module, kernel);
    assert_true(hash != 0 && ptowsp_context_error(context).status == PTOWSP_OK);
    test_destroy(NULL, NULL, module, context);
    return hash;
}

TEST(kernel_hash__is_that_of_a_tile_kernels_instructions) {
    ptowsp_machine a5 = ptowsp_machine_950pr();
    uint64_t hash = tile_hash("one", 64, 2, false, NULL);
    assert_true(tile_hash("another", 64, 2, false, NULL) == hash);
    assert_true(tile_hash("one", 128, 2, false, NULL) != hash);
    assert_true(tile_hash("one", 64, 2.5, false, NULL) != hash);
    assert_true(tile_hash("one", 64, 2, true, NULL) != hash);
    assert_true(tile_hash("one", 64, 2, false, &a5) != hash);
}
#endif

static ptowsp_cycles nothing(const ptowsp_task *task, void *user) {
    (void)task, (void)user;
    return 1;
}

static uint64_t c_hash(const ptowsp_kernel_desc *desc) {
    ptowsp_context *context = tune_context(NULL);
    ptowsp_module *module = test_module(context, NULL);
    uint64_t hash = ptowsp_kernel_hash(module, ptowsp_kernel_make(module, desc));
    ptowsp_kernel none = {0}, beyond = {77};
    assert_true(ptowsp_kernel_hash(module, none) == 0 && ptowsp_kernel_hash(module, beyond) == 0);
    assert_true(ptowsp_kernel_hash(NULL, none) == 0);
    test_destroy(NULL, NULL, module, context);
    assert_true(hash != 0);
    return hash;
}

TEST(kernel_hash__is_that_of_a_c_kernels_name_and_source) {
    ptowsp_kernel_desc desc = {0};
    desc.name = "scale", desc.fn = nothing;
    uint64_t hashes[9];
    int count = 0;
    hashes[count++] = c_hash(&desc);
    assert_true(c_hash(&desc) == hashes[0]);
    desc.name = "shift", hashes[count++] = c_hash(&desc);
    desc.axis_count = 1, hashes[count++] = c_hash(&desc);
    desc.source.text = "int a;", hashes[count++] = c_hash(&desc);
    desc.source.text = "int b;", hashes[count++] = c_hash(&desc);
    desc.source.text = NULL, desc.source.file = "int b;", hashes[count++] = c_hash(&desc);
    desc.source.fn = "other", hashes[count++] = c_hash(&desc);
    const ptowsp_tile_param tile = {"x", PTOWSP_IN, PTOWSP_F32, 4, 4};
    desc.tiles[0] = tile, hashes[count++] = c_hash(&desc);
    desc.tiles[0].name = "y";
    assert_true(c_hash(&desc) == hashes[count - 1]);
    desc.tiles[0].rows = 8, hashes[count++] = c_hash(&desc);
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < i; k++) {
            assert_true(hashes[i] != hashes[k]);
        }
    }
}

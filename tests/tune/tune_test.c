// Tuning: damaged files, tables beside a slow reference, processes that write, compact and are killed at the
// same time, refusals of files with their texts; measuring; hashes of kernels. Lines, values and statistics on
// paper are in tuning_facts_test.c.

#define _GNU_SOURCE  // mkdtemp, mkfifo, symlink, MAP_ANONYMOUS

#include "src/tune/tuning.h"

#include "tune_fixture.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static ptowsp_tuning_key key_of(uint64_t kernel, const char *machine, uint64_t size) {
    ptowsp_tuning_key key = {.kernel = kernel, .machine = machine, .sizes[0] = size};
    return key;
}

#define TUNE_TEST(name) TEST_MADE(name, tune, t, *t = tune_make(), tune_remove(t))

static void add(tune *t, ptowsp_tuning_key key, double value) {
    assert_ok(ptowsp_tuning_add(t->tuning, &key, value, NULL));
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

// Processes that write so many lines each, and some of which compact.
static void writers_start(const tune *t, uint32_t count, uint32_t compacting, pid_t *children,
                          volatile uint32_t *done) {
    for (uint32_t w = 0; w < WRITERS; w++) {
        children[w] = fork();
        assert_true(children[w] >= 0);
        if (children[w] == 0) {
            write_lines(t->path, w, count, w < compacting, &done[w]);
        }
    }
}

TUNE_TEST(tuning__loses_nothing_of_eight_processes) {
    volatile uint32_t *done = shared_counts();
    pid_t children[WRITERS];
    writers_start(t, LINES, 3, children, done);
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
        writers_start(&t, 1000000, 2, children, done);
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

// -- errors ---------------------------------------------------------------------------------------

TUNE_TEST(tuning__refuses_paths_that_are_long) {
    char path[4002] = "";
    ptowsp_tuning *tuning = NULL;
    ptowsp_context *context = t->context = tune_context(&t->memory);
    test_invalid(context, ptowsp_tuning_create(context, "x", NULL), "tuning: out_tuning is NULL");
    memset(path, 'x', 4001);
    test_invalid(context, ptowsp_tuning_create(context, path, &tuning),
                 "tuning: a path of 4001 bytes; it has 1 to 4000");
    path[4000] = '\0';  // one name of 4,000 bytes: the system refuses it
    assert_int_equal(ptowsp_tuning_create(context, path, &tuning), PTOWSP_SYSTEM_FAILED);
    assert_non_null(strstr(ptowsp_context_error(context).text, "File name too long"));
    assert_null(tuning);
    ptowsp_context_destroy(context);
}

// In a process without rights: exits with 0 if reading and writing are refused, or writing alone.
static void be_refused(const char *path, bool can_read) {
    ptowsp_tuning *tuning;
    char text[256];
    const ptowsp_tuning_key key = key_of(1, "m", 1);
    ptowsp_context *context = tune_context(NULL);
    snprintf(text, sizeof text, "tuning: cannot open %s: Permission denied", path);
    if (geteuid() == 0 && setuid(65534) != 0) {
        _exit(3);
    }
    ptowsp_status status = ptowsp_tuning_create(context, path, &tuning);
    if (can_read) {
        if (status != PTOWSP_OK || ptowsp_tuning_count(tuning).record_count != 1) {
            _exit(1);
        }
        status = ptowsp_tuning_add(tuning, &key, 1, NULL);
    }
    const bool is_told = strcmp(ptowsp_context_error(context).text, text) == 0;
    _exit(status == PTOWSP_SYSTEM_FAILED && is_told ? 0 : 2);
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
            be_refused(t->path, i == 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    tune_close(t);
}

// Records are numbered by 32 bits: as if there were 2^32 - 2 of them.
TEST(tuning__says_that_there_are_too_many_records) {
    tune t = tune_make();
    t.context = tune_context(&t.memory);
    assert_ok(ptowsp_tuning_create(t.context, NULL, &t.tuning));
    const ptowsp_tuning_key key = key_of(1, "m", 1);
    add(&t, key, 5);
    assert_invalid(ptowsp_tuning_add(t.tuning, NULL, 1, NULL));
    t.tuning->table.record_count = UINT32_MAX - 1;
    test_refused(t.context, ptowsp_tuning_add(t.tuning, &key, 7, NULL), PTOWSP_LIMIT_EXCEEDED,
                 UINT32_MAX - 1, "tuning: record 4294967294: there are too many");
    t.tuning->table.record_count = 1;
    add(&t, key, 7);
    assert_int_equal(ptowsp_tuning_count(t.tuning).record_count, 2);
    tune_close(&t);
    assert_int_equal(rmdir(t.directory), 0);
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

TEST(measure__refuses_samples_that_are_missing_or_too_many) {
    ptowsp_measurement m, none = {.median = 0};
    const uint64_t one[] = {100, 10};
    const struct {
        const uint64_t *samples;
        uint32_t count;
    } bad[] = {{NULL, 1}, {one, 0}, {one, 1001}};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        memset(&m, 0x5a, sizeof m);
        assert_invalid(ptowsp_measure_samples(bad[i].samples, bad[i].count, 1, &m));
        assert_memory_equal(&m, &none, sizeof m);
    }
    assert_invalid(ptowsp_measure_samples(one, 2, 1, NULL));
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
    const uint64_t none[] = {0};
    measured back = {none, 9, 0, 0, true};
    const struct {
        ptowsp_measure_desc desc;
        uint64_t index;
        const char *text;
    } bad[] = {{{.fn = measured_fn, .user = &back, .clock = measured_clock},
                0,
                "measure: the clock went back, from 9 to 8"},
               {{.fn = measured_fn, .repeats = 1001},
                1001,
                "measure: 1001 repeats; there are at most 1000"},
               {{.fn = NULL}, PTOWSP_NO_INDEX, "measure: fn is NULL"}};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        test_refused(context, ptowsp_measure(context, &bad[i].desc, &m), PTOWSP_INVALID_PARAMS,
                     bad[i].index, bad[i].text);
    }
    test_invalid(context, ptowsp_measure(context, NULL, &m), "measure: desc is NULL");
    test_invalid(context, ptowsp_measure(context, &desc, NULL), "measure: out_measurement is NULL");
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
#define KERNEL           .fn = nothing, .name
#define TILE(name, rows) .tiles[0] = { name, PTOWSP_IN, PTOWSP_F32, rows, 4 }
    const ptowsp_kernel_desc descs[] = {
        {KERNEL = "scale"},
        {KERNEL = "shift"},
        {KERNEL = "shift", .axis_count = 1},
        {KERNEL = "shift", .axis_count = 1, .source.text = "int a;"},
        {KERNEL = "shift", .axis_count = 1, .source.text = "int b;"},
        {KERNEL = "shift", .axis_count = 1, .source.file = "int b;"},
        {KERNEL = "shift", .axis_count = 1, .source.fn = "other", .source.file = "int b;"},
        {KERNEL = "shift", .axis_count = 1, TILE("x", 4)},
        {KERNEL = "shift", .axis_count = 1, TILE("x", 8)}};
    const ptowsp_kernel_desc renamed = {KERNEL = "shift", .axis_count = 1, TILE("y", 8)};
    for (size_t i = 0; i < COUNT_OF(descs); i++) {
        assert_true(c_hash(&descs[i]) == c_hash(&descs[i]));
        for (size_t k = 0; k < i; k++) {
            assert_true(c_hash(&descs[i]) != c_hash(&descs[k]));
        }
    }
    assert_true(c_hash(&renamed) == c_hash(&descs[COUNT_OF(descs) - 1]));
}

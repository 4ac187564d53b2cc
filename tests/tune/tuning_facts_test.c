// Tuning as facts (support/facts.h): lines of files, values of keys, compacting, what is refused, with its text;
// statistics of samples. Two tables have one file; calls are of the first.

#define _GNU_SOURCE  // mkdtemp, mkfifo, symlink

#include "facts.h"
#include "tune_fixture.h"

static tune tables[2], *t = &tables[0];
static ptowsp_tuning_stats stats;
static ptowsp_tuning_value value;
static ptowsp_tuning_record record;
static ptowsp_measurement measured;
static uint64_t size, bucket, compared;  // compared: bytes of the file
static uint32_t mode;                    // of the file
static bool found;

// "$D" at the beginning of a path: the directory.
static const char *path_of(const char *word) {
    static char path[128];
    snprintf(path, sizeof path, "%s%s", *word == '$' ? tables[0].directory : "",
             *word == '$' ? word + 2 : word);
    return path;
}

static void tables_end(void) {
    static const char *const made[] = {"$D/link", "$D/records", "$D/records.compact"};
    tune_close(&tables[1]), tune_close(&tables[0]);
    for (size_t i = 0; i < COUNT_OF(made); i++) {
        remove(path_of(made[i]));
    }
    assert_int_equal(rmdir(tables[0].directory), 0);
}

static void begin(void) {
    if (tables[0].context) {
        tables_end();
    }
    tables[0] = tables[1] = tune_make();
    t = &tables[0];
    tune_open(&tables[0]), tune_open(&tables[1]);
    compared = 0;
}

// -- words ----------------------------------------------------------------------------------------

// The next word of a call. One in quotes has blanks, and \x with two digits for what texts do not have.
static char *next_word(void) {
    static char words[8][300];
    static int turn;
    char *word = words[turn = (turn + 1) % 8], *to = word;
    const char *at = facts_words + strspn(facts_words, " ");
    const char stop = *at == '"' ? '"' : ' ';
    for (at += stop == '"'; *at && *at != stop; at++) {
        unsigned byte = (unsigned char)*at;
        if (sscanf(at, "\\x%2x", &byte) == 1) {
            at += 3;
        }
        *to++ = (char)byte;
    }
    *to = '\0';
    facts_words = at + (*at == '"');
    return word;
}

static uint64_t next_number(void) {
    char *word = next_word(), *end;
    const uint64_t number = strtoull(word, &end, 10);
    assert_true(end != word && *end == '\0');
    return number;
}

// KERNEL MACHINE SIZES UNIT, as lines of files have them.
static ptowsp_tuning_key next_key(void) {
    ptowsp_tuning_key key = {.kernel = strtoull(next_word(), NULL, 16)};
    key.machine = next_word();
    key.machine = *key.machine == '-' ? NULL : key.machine;
    char *at = next_word();
    for (int i = 0; *at >= '0' && *at <= '9'; i++, at += *at == 'x') {
        key.sizes[i] = strtoull(at, &at, 10);
    }
    assert_true(*at == '\0' || strcmp(at, "-") == 0);
    const char *unit = next_word();
    assert_true(strcmp(unit, "ns") == 0 || strcmp(unit, "cycles") == 0 || atoi(unit) > 1);
    key.unit = (ptowsp_tuning_unit)(strcmp(unit, "ns") == 0       ? PTOWSP_TUNING_NS
                                    : strcmp(unit, "cycles") == 0 ? PTOWSP_TUNING_CYCLES
                                                                  : atoi(unit));
    return key;
}

// -- calls ----------------------------------------------------------------------------------------

// Adds a line with its hash, or bytes, to the file.
static ptowsp_status add_to_file(bool has_hash) {
    char line[512];
    const char *text = next_word();
    const size_t length = has_hash ? seal(line, text) : strlen(text);
    FILE *file = fopen(t->path, "ab");
    assert_non_null(file);
    assert_int_equal(fwrite(has_hash ? line : text, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    return PTOWSP_OK;
}

static ptowsp_status open_again(void) {
    tune_close(&tables[1]), tune_close(&tables[0]);
    tune_open(&tables[0]), tune_open(&tables[1]);
    return PTOWSP_OK;
}

static ptowsp_status call_given(void) {
    return add_to_file(true);
}

static ptowsp_status call_raw(void) {
    return add_to_file(false);
}

// The next line of the file, with its hash.
static ptowsp_status call_line(void) {
    char line[512];
    size_t all;
    char *data = file_read(t->path, &all);
    const size_t length = seal(line, next_word());
    assert_true(compared + length <= all);
    assert_memory_equal(data + compared, line, length);
    compared += length;
    free(data);
    return PTOWSP_OK;
}

// A file of this line alone, with its hash, has no record.
static ptowsp_status call_damaged(void) {
    unlink(t->path);
    add_to_file(true);
    open_again();
    stats = ptowsp_tuning_count(t->tuning);
    assert_true(stats.record_count == 0 && stats.damaged_count == 1);
    return PTOWSP_OK;
}

// KERNEL MACHINE SIZES UNIT VALUE,... LABEL
static ptowsp_status call_add(void) {
    const ptowsp_tuning_key key = next_key();
    const char *values = next_word(), *label = next_word();
    ptowsp_status status = PTOWSP_OK;
    for (char *at; status == PTOWSP_OK && *values; values = at + (*at == ',')) {
        const double number = strtod(values, &at);
        assert_true(at != values && (*at == ',' || *at == '\0'));
        status = ptowsp_tuning_add(t->tuning, &key, number, *label == '-' ? NULL : label);
    }
    return status;
}

static ptowsp_status call_samples(void) {
    uint64_t samples[20];
    const uint32_t call_count = (uint32_t)next_number();
    uint32_t count = 0;
    for (; *facts_words; count++) {
        assert_true(count < COUNT_OF(samples));
        samples[count] = next_number();
    }
    return ptowsp_measure_samples(samples, count, call_count, &measured);
}

// Calls of one line each.
static ptowsp_status call_other(void) {
    const char *name = next_word();
    if (strcmp(name, "open") == 0) {
        return open_again();
    } else if (strcmp(name, "at") == 0) {  // PATH, or without a file
        const char *path = next_word();
        ptowsp_tuning_destroy(t->tuning);
        t->tuning = NULL;
        return ptowsp_tuning_create(t->context, strcmp(path, "memory") ? path_of(path) : NULL,
                                    &t->tuning);
    } else if (strcmp(name, "other") == 0) {
        t = t == &tables[0] ? &tables[1] : &tables[0];
    } else if (strcmp(name, "find") == 0) {
        const ptowsp_tuning_key key = next_key();
        found = ptowsp_tuning_find(t->tuning, &key, &value);
    } else if (strcmp(name, "record") == 0) {
        record = ptowsp_tuning_record_at(t->tuning, next_number());
    } else if (strcmp(name, "refresh") == 0) {
        return ptowsp_tuning_refresh(t->tuning);
    } else if (strcmp(name, "compact") == 0) {
        return ptowsp_tuning_compact(t->tuning, next_number());
    } else if (strcmp(name, "chmod") == 0) {
        assert_int_equal(chmod(t->path, (mode_t)strtoul(next_word(), NULL, 8)), 0);
    } else if (strcmp(name, "truncate") == 0) {
        assert_int_equal(truncate(t->path, (off_t)next_number()), 0);
    } else if (strcmp(name, "unlink") == 0) {
        assert_int_equal(unlink(t->path), 0);
    } else if (strcmp(name, "link") == 0) {
        assert_int_equal(link(t->path, path_of("$D/link")), 0);
    } else if (strcmp(name, "symlink") == 0) {
        assert_int_equal(symlink(t->path, path_of("$D/link")), 0);
    } else if (strcmp(name, "mkdir") == 0) {
        assert_int_equal(mkdir(path_of(next_word()), 0700), 0);
    } else if (strcmp(name, "mkfifo") == 0) {
        assert_int_equal(mkfifo(t->path, 0600), 0);
    } else {
        fail_msg("there is no call %s", name);
    }
    return PTOWSP_OK;
}

static const facts_call calls[] = {{"given ", call_given}, {"raw ", call_raw},
                                   {"line ", call_line},   {"damaged ", call_damaged},
                                   {"add ", call_add},     {"samples ", call_samples},
                                   {"", call_other},       {NULL, NULL}};

// The directory is $D, as in the words of calls.
static const char *error(uint64_t *out_index) {
    static char text[512];
    const ptowsp_error last = ptowsp_context_error(t->context);
    const char *directory = strstr(last.text, tables[0].directory);
    const int before = directory ? (int)(directory - last.text) : (int)strlen(last.text);
    *out_index = last.index;
    snprintf(text, sizeof text, "%.*s%s%s", before, last.text, directory ? "$D" : "",
             directory ? directory + strlen(tables[0].directory) : "");
    assert_memory_equal(text, "tuning: ", 8);
    return text + 8;
}

// Records stay, and where there are none no file was made.
static void records_stay(void) {
    if (t->tuning) {
        const uint64_t count = ptowsp_tuning_count(t->tuning).record_count;
        ptowsp_tuning_refresh(t->tuning);
        assert_int_equal(ptowsp_tuning_count(t->tuning).record_count, count);
        stats = ptowsp_tuning_count(t->tuning);
        assert_true(count > 0 || stats.byte_count > 0 || access(t->path, F_OK) != 0);
    }
}

static const facts_field *fields(void) {
    struct stat status = {.st_mode = 0};
    mode = stat(t->path, &status) == 0 ? status.st_mode & 0777 : 0;
    memset(&stats, 0, sizeof stats);
    stats = t->tuning ? ptowsp_tuning_count(t->tuning) : stats;
    bucket = ptowsp_tuning_bucket(size);
    FACTS_RETURN(FIELD(stats.record_count), FIELD(stats.key_count), FIELD(stats.damaged_count),
                 FIELD(stats.foreign_count), FIELD(stats.byte_count), FIELD(stats.tail_bytes),
                 FIELD(value.count), FIELD(value.median), FIELD(value.least), FIELD(value.most),
                 FIELD(value.newest), FIELD(found), FIELD(record.value), FIELD(measured.median),
                 FIELD(measured.least), FIELD(measured.most), FIELD(measured.deviation),
                 FIELD(measured.sample_count), FIELD(measured.outlier_count), FIELD(mode),
                 FIELD(size), FIELD(bucket), FIELD(compared));
}

TEST(tuning_facts__hold) {
    facts all = {"tests/tune/tuning.facts", begin, fields, calls, error, records_stay, 0};
    facts_run(&all);
    tables_end();
}

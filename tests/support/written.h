// Exports and reports as text: a program that is executed with records, what an output has written of it, and
// what is in that.

#ifndef WRITTEN_H
#define WRITTEN_H

#include "support/fixture.h"

enum { WRITTEN_MAX = 1 << 22 };

// What was written last; the output fails behind `room` bytes.
static struct {
    char text[WRITTEN_MAX + 1];
    size_t length, room;
    uint32_t failed_count;
} written;

static inline bool written_take(void *user, const void *data, size_t size) {
    (void)user;
    if (size > written.room - written.length) {
        written.failed_count++;
        return false;
    }
    memcpy(written.text + written.length, data, size);
    written.length += size;
    written.text[written.length] = '\0';
    return true;
}

// An output that has written nothing yet, with room for so many bytes, or for all.
static inline ptowsp_output written_within(size_t room) {
    written.length = 0;
    written.room = room;
    written.failed_count = 0;
    written.text[0] = '\0';
    return (ptowsp_output){written_take, NULL};
}

static inline ptowsp_output written_output(void) {
    return written_within(WRITTEN_MAX);
}

// How often some bytes are in it.
static inline uint32_t count_of(const void *part, size_t size) {
    uint32_t count = 0;
    for (size_t i = 0; i + size <= written.length; i++) {
        count += memcmp(written.text + i, part, size) == 0;
    }
    return count;
}

static inline void has_times(uint32_t count, const char *part) {
    if (count_of(part, strlen(part)) != count) {
        fail_msg("\"%s\" is not %u times in\n%s", part, (unsigned)count, written.text);
    }
}

static inline void has(const char *part) {
    if (!strstr(written.text, part)) {
        fail_msg("\"%s\" is not in\n%s", part, written.text);
    }
}

static inline void has_not(const char *part) {
    if (strstr(written.text, part)) {
        fail_msg("\"%s\" is in\n%s", part, written.text);
    }
}

static inline void written_good(const fixture *f, ptowsp_status status) {
    if (status != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(f->context).text);
    }
}

// In place of the program at hand, one of a text, which has been executed for time alone with these records.
static inline void execute_text(fixture *f, const char *text, const ptowsp_schedule *schedule,
                                const ptowsp_record_options *record,
                                const ptowsp_run_ranks *ranks) {
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    const ptowsp_program_desc desc = {NULL, schedule};
    fixture_clear(f);
    program_make(f, text, NULL, &desc);
    written_good(f, ptowsp_run_record(f->run, record));
    written_good(f, ranks ? ptowsp_run_bind_ranks(f->run, ranks) : PTOWSP_OK);
    written_good(f, ptowsp_run_execute(f->run, &options));
}

static inline void export_run(const fixture *f, ptowsp_export_format format,
                              const ptowsp_export_options *options) {
    written_good(f, ptowsp_run_export(f->run, format, options, written_output()));
}

static inline void export_spans(const fixture *f, const ptowsp_span_set *set,
                                ptowsp_export_format format, const ptowsp_export_options *options) {
    written_good(f, ptowsp_spans_export(f->context, set, format, options, written_output()));
}

static inline void report_run(const fixture *f, ptowsp_report_format format,
                              const ptowsp_what_if *what_ifs, uint32_t count) {
    written_good(f, ptowsp_run_report(f->run, format, NULL, what_ifs, count, written_output()));
}

#endif

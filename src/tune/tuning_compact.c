// Compacting: good lines are copied, as they are, into a new file that then takes the old one's
// place. All of it happens under the exclusive lock of the old file, so no other process adds to it
// in between. Processes that wait for this lock find another file at the path, and take its lock.
// A process that is killed here leaves the old file, or the new one in its place.

#include "tuning.h"

typedef struct pwsp_tuning_compaction {
    ptowsp_tuning *tuning;
    uint64_t keep_max;
    int file;        // the new one
    uint32_t *seen;  // of each entry: its records so far
    size_t count;    // in the buffer
    char buffer[PWSP_TUNING_BUFFER];
} pwsp_tuning_compaction;

static ptowsp_status pwsp_tuning_flush(pwsp_tuning_compaction *to) {
    int wrong = pwsp_file_append(to->file, to->buffer, to->count);
    to->count = 0;
    return wrong ? pwsp_tuning_refused(to->tuning, "write to", to->tuning->made, wrong) : PTOWSP_OK;
}

// Is it not among the newest of its key?
static bool pwsp_tuning_is_old(pwsp_tuning_compaction *to, const pwsp_tuning_entry *entry) {
    uint32_t before = to->seen[entry - to->tuning->table.entries]++;
    PTOWSP_ASSERT(before < entry->count);
    return to->keep_max && entry->count - before > to->keep_max;
}

static ptowsp_status pwsp_tuning_keep_line(void *user, const char *line, size_t length) {
    pwsp_tuning_compaction *to = (pwsp_tuning_compaction *)user;
    ptowsp_tuning_key key;
    char machine[PTOWSP_NAME_MAX + 1];
    uint64_t value;
    pwsp_tuning_kind kind = pwsp_tuning_line_read(line, length, &key, machine, &value);
    if (kind == PWSP_TUNING_DAMAGED) {
        return PTOWSP_OK;
    }
    if (kind == PWSP_TUNING_RECORD) {
        const pwsp_tuning_entry *entry = pwsp_tuning_table_find(&to->tuning->table, &key);
        if (!entry || pwsp_tuning_is_old(to, entry)) {
            return PTOWSP_OK;
        }
    }
    PTOWSP_ASSERT(length < PWSP_TUNING_LINE_MAX);
    ptowsp_status status = PTOWSP_OK;
    if (length + 1 > sizeof to->buffer - to->count) {
        status = pwsp_tuning_flush(to);
    }
    memcpy(to->buffer + to->count, line, length);
    to->buffer[to->count + length] = '\n';
    to->count += length + 1;
    return status;
}

// Writes the lines that stay into the new file, and puts it in the place of the old one.
static ptowsp_status pwsp_tuning_rewrite(pwsp_tuning_compaction *to, int file) {
    ptowsp_tuning *tuning = to->tuning;
    pwsp_tuning_cursor cursor = {0, 0};
    uint64_t size = tuning->cursor.offset - tuning->cursor.long_bytes;  // without the tail
    int wrong = pwsp_file_make(tuning->made, tuning->id.mode, &to->file);
    if (wrong) {
        return pwsp_tuning_refused(tuning, "make", tuning->made, wrong);
    }
    ptowsp_status status = pwsp_tuning_scan(tuning, file, size, &cursor, pwsp_tuning_keep_line, to);
    status = status == PTOWSP_OK ? pwsp_tuning_flush(to) : status;
    if (status == PTOWSP_OK) {
        wrong = pwsp_file_replace(to->file, tuning->made, tuning->path);
        status = wrong ? pwsp_tuning_refused(tuning, "replace", tuning->path, wrong) : status;
    }
    if (status != PTOWSP_OK) {
        pwsp_file_remove(tuning->made);
    }
    pwsp_file_close(to->file);
    return status;
}

static ptowsp_status pwsp_tuning_run_compaction(ptowsp_tuning *tuning, int file,
                                                uint64_t keep_max) {
    const pwsp_memory *memory = &tuning->context->memory;
    size_t seen_size = (size_t)pwsp_max_u64(tuning->table.entry_count, 1) * sizeof(uint32_t);
    pwsp_tuning_compaction *to = (pwsp_tuning_compaction *)pwsp_memory_alloc(memory, sizeof *to);
    uint32_t *seen = to ? (uint32_t *)pwsp_memory_alloc(memory, seen_size) : NULL;
    ptowsp_status status = PTOWSP_OUT_OF_MEMORY;
    if (seen) {
        to->tuning = tuning;
        to->keep_max = keep_max;
        to->seen = seen;
        status = pwsp_tuning_rewrite(to, file);
    } else {
        pwsp_fail(tuning->context, status, PTOWSP_NO_INDEX, "tuning: no memory to compact %.300s",
                  tuning->path);
    }
    pwsp_memory_free(memory, seen, seen_size);
    PWSP_FREE(memory, to, 1);
    return status;
}

// May a new file take the place of this one?
static ptowsp_status pwsp_tuning_check_file(ptowsp_tuning *tuning, const pwsp_file_id *id) {
    const char *wrong = pwsp_file_is_link(tuning->path) ? "a symbolic link"
                        : id->is_device                 ? "a device"
                        : id->link_count > 1            ? "a file with other links"
                                                        : NULL;
    if (wrong) {
        return pwsp_fail(tuning->context, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                         "tuning: %.300s is %s, which is not compacted", tuning->path, wrong);
    }
    if (tuning->damaged_count && !tuning->table.record_count && !tuning->foreign_count) {
        return PWSP_REFUSE(tuning->context, "tuning: %.300s has %llu lines, and none is a record",
                           tuning->path, (unsigned long long)tuning->damaged_count);
    }
    return PTOWSP_OK;
}

ptowsp_status ptowsp_tuning_compact(ptowsp_tuning *tuning, uint64_t keep_max) {
    PTOWSP_ASSERT(tuning);
    if (!tuning->path) {
        return PWSP_REFUSE(tuning->context, "tuning: a table without a file is not compacted");
    }
    int file;
    ptowsp_status status = pwsp_tuning_begin(tuning, true, &file);
    if (status != PTOWSP_OK) {
        return status;
    }
    status = pwsp_tuning_check_file(tuning, &tuning->id);
    status = status == PTOWSP_OK ? pwsp_tuning_run_compaction(tuning, file, keep_max) : status;
    pwsp_tuning_end(tuning, file);
    return status == PTOWSP_OK ? ptowsp_tuning_refresh(tuning) : status;
}

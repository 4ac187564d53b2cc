// Tables of tuning records that follow a file. A table always equals the file up to a cursor: an
// addition writes its line and then reads it back, with everything that other processes wrote
// before it. So nothing is counted twice, and all processes have the records in the same order.
//
//      begin     open, lock, is it the table's file?  no: clear
//                read from the cursor to the end of the last whole line
//      add       "\n" if the last line is unfinished, the line; read on
//      end       unlock
//
// The table's file stays open (pin). Otherwise its number could be given to a file that replaces
// the one that replaced it, and the cursor would point into other text.

#include "tuning.h"

#include <errno.h>

PWSP_INTERNAL ptowsp_status pwsp_tuning_refused(ptowsp_tuning *tuning, const char *verb,
                                                const char *path, int wrong) {
    bool is_wrong_kind = wrong == EISDIR || wrong == ENOTSUP;
    return pwsp_fail(tuning->context, is_wrong_kind ? PTOWSP_INVALID_PARAMS : PTOWSP_SYSTEM_FAILED,
                     PTOWSP_NO_INDEX, "tuning: cannot %s %.300s: %s", verb, path,
                     wrong == ENOTSUP     ? "it is no file"
                     : wrong == ETIMEDOUT ? "another process has held its lock for 10 s: end that "
                                            "process (fuser names it), or use a copy of the file"
                                          : strerror(wrong));
}

// Fails as pwsp_tuning_table_add did.
static ptowsp_status pwsp_tuning_not_added(ptowsp_tuning *tuning, ptowsp_status status) {
    unsigned long long index = tuning->table.record_count;
    PTOWSP_ASSERT(status != PTOWSP_OK);
    return pwsp_fail(tuning->context, status, index, "tuning: record %llu: %s", index,
                     status == PTOWSP_OUT_OF_MEMORY    ? "no memory"
                     : status == PTOWSP_LIMIT_EXCEEDED ? "there are too many"
                                                       : "two machines' names have one hash");
}

static void pwsp_tuning_reset(ptowsp_tuning *tuning, int file) {
    pwsp_tuning_table_free(&tuning->table);
    if (tuning->pin >= 0) {
        pwsp_file_close(tuning->pin);
    }
    memset(&tuning->cursor, 0, sizeof tuning->cursor);
    tuning->tail_bytes = 0;
    tuning->damaged_count = 0;
    tuning->foreign_count = 0;
    tuning->pin = file;
}

// -- reading --------------------------------------------------------------------------------------

PWSP_INTERNAL ptowsp_status pwsp_tuning_scan(ptowsp_tuning *tuning, int file, uint64_t size,
                                             pwsp_tuning_cursor *cursor,
                                             pwsp_tuning_line_fn on_line, void *user) {
    while (cursor->offset < size) {
        size_t count;
        size_t wanted = (size_t)pwsp_min_u64(size - cursor->offset, PWSP_TUNING_BUFFER);
        int wrong = pwsp_file_read(file, cursor->offset, tuning->buffer, wanted, &count);
        if (wrong) {
            return pwsp_tuning_refused(tuning, "read", tuning->path, wrong);
        }
        const char *begin = tuning->buffer, *stop = tuning->buffer + count;
        for (;;) {
            const char *end = (const char *)memchr(begin, '\n', (size_t)(stop - begin));
            if (!end) {
                break;
            }
            ptowsp_status status =
                on_line(user, cursor->long_bytes ? NULL : begin, (size_t)(end - begin));
            if (status != PTOWSP_OK) {
                return status;
            }
            cursor->offset += (size_t)(end + 1 - begin);
            cursor->long_bytes = 0;
            begin = end + 1;
        }
        size_t left = (size_t)(stop - begin);
        bool is_end = count < wanted || cursor->offset + left == size;
        if (is_end && (left < PWSP_TUNING_BUFFER && !cursor->long_bytes)) {
            break;  // the rest is unfinished
        }
        if (left == count) {  // nor is there an end of a line in all of the buffer
            cursor->long_bytes += left;
            cursor->offset += left;
        }
    }
    return PTOWSP_OK;
}

static ptowsp_status pwsp_tuning_on_line(void *user, const char *line, size_t length) {
    ptowsp_tuning *tuning = (ptowsp_tuning *)user;
    ptowsp_tuning_key key;
    char machine[PTOWSP_NAME_MAX + 1];
    uint64_t value;
    pwsp_tuning_kind kind = pwsp_tuning_line_read(line, length, &key, machine, &value);
    if (kind == PWSP_TUNING_RECORD) {
        ptowsp_status status = pwsp_tuning_table_add(&tuning->table, &key, value);
        if (status == PTOWSP_INVALID_PARAMS) {
            kind = PWSP_TUNING_DAMAGED;  // a machine with another one's hash is not an accident
        } else if (status != PTOWSP_OK) {
            return pwsp_tuning_not_added(tuning, status);
        }
    }
    tuning->damaged_count += kind == PWSP_TUNING_DAMAGED;
    tuning->foreign_count += kind == PWSP_TUNING_FOREIGN;
    return PTOWSP_OK;
}

static ptowsp_status pwsp_tuning_catch_up(ptowsp_tuning *tuning, int file, uint64_t size) {
    PTOWSP_ASSERT(size >= tuning->cursor.offset);
    ptowsp_status status =
        pwsp_tuning_scan(tuning, file, size, &tuning->cursor, pwsp_tuning_on_line, tuning);
    tuning->tail_bytes = tuning->cursor.long_bytes + (size - tuning->cursor.offset);
    return status;
}

PWSP_INTERNAL ptowsp_status pwsp_tuning_begin(ptowsp_tuning *tuning, bool is_to_write,
                                              int *out_file) {
    pwsp_file_id id;
    int file = -1;
    int wrong = pwsp_file_lock(tuning->path, is_to_write, &file, &id);
    *out_file = -1;
    if (wrong == ENOENT && !is_to_write) {
        pwsp_tuning_reset(tuning, -1);
        return PTOWSP_OK;
    }
    if (wrong) {
        return pwsp_tuning_refused(tuning, "open", tuning->path, wrong);
    }
    bool is_same = tuning->pin >= 0 && tuning->id.device == id.device &&
                   tuning->id.number == id.number && id.size >= tuning->cursor.offset;
    if (!is_same) {
        pwsp_tuning_reset(tuning, file);
    }
    tuning->id = id;
    ptowsp_status status = pwsp_tuning_catch_up(tuning, file, id.size);
    if (status != PTOWSP_OK) {
        pwsp_tuning_end(tuning, file);
        return status;
    }
    *out_file = file;
    return PTOWSP_OK;
}

PWSP_INTERNAL void pwsp_tuning_end(ptowsp_tuning *tuning, int file) {
    if (file >= 0) {
        pwsp_file_unlock(file);
        if (file != tuning->pin) {
            pwsp_file_close(file);
        }
    }
}

// -- the interface --------------------------------------------------------------------------------

uint64_t ptowsp_tuning_bucket(uint64_t size) {
    return size ? UINT64_C(1) << (63 - __builtin_clzll(size)) : 0;
}

ptowsp_status ptowsp_tuning_create(ptowsp_context *context, const char *path,
                                   ptowsp_tuning **out_tuning) {
    PTOWSP_ASSERT(context);
    static const char suffix[] = ".compact";
    if (!out_tuning) {
        return PWSP_REFUSE(context, "tuning: out_tuning is NULL");
    }
    *out_tuning = NULL;
    size_t length = path ? strlen(path) : 0;
    if (path && (length == 0 || length > PWSP_TUNING_PATH_MAX)) {
        return PWSP_REFUSE(context, "tuning: a path of %llu bytes; it has 1 to %d",
                           (unsigned long long)length, PWSP_TUNING_PATH_MAX);
    }
    size_t path_size = path ? length + 1 : 0;
    size_t size = sizeof(ptowsp_tuning) + 2 * path_size + (path ? sizeof suffix - 1 : 0);
    ptowsp_tuning *tuning = (ptowsp_tuning *)pwsp_memory_alloc(&context->memory, size);
    if (!tuning) {
        return PWSP_NO_MEMORY(context, "tuning: no memory for a table");
    }
    tuning->context = context;
    tuning->pin = -1;
    tuning->size = size;
    pwsp_tuning_table_init(&tuning->table, &context->memory);
    if (path) {
        tuning->path = (char *)(tuning + 1);
        tuning->made = tuning->path + path_size;
        memcpy(tuning->path, path, path_size);
        memcpy(tuning->made, path, length);
        memcpy(tuning->made + length, suffix, sizeof suffix);
        ptowsp_status status = ptowsp_tuning_refresh(tuning);
        if (status != PTOWSP_OK) {
            ptowsp_tuning_destroy(tuning);
            return status;
        }
    }
    *out_tuning = tuning;
    return PTOWSP_OK;
}

void ptowsp_tuning_destroy(ptowsp_tuning *tuning) {
    if (tuning) {
        pwsp_tuning_reset(tuning, -1);
        pwsp_memory_free(&tuning->context->memory, tuning, tuning->size);
    }
}

ptowsp_status ptowsp_tuning_refresh(ptowsp_tuning *tuning) {
    PTOWSP_ASSERT(tuning);
    int file = -1;
    ptowsp_status status = tuning->path ? pwsp_tuning_begin(tuning, false, &file) : PTOWSP_OK;
    if (status == PTOWSP_OK) {
        pwsp_tuning_end(tuning, file);
    }
    return status;
}

static ptowsp_status pwsp_tuning_check(ptowsp_tuning *tuning, const ptowsp_tuning_key *key,
                                       double value, const char *label) {
    ptowsp_context *context = tuning->context;
    if (!key || !key->machine || !pwsp_tuning_is_word(key->machine)) {
        return PWSP_REFUSE(context,
                           "tuning: the machine of a key is a word of 1 to %d printable characters",
                           PTOWSP_NAME_MAX);
    }
    if ((uint32_t)key->unit >= PTOWSP_TUNING_UNIT_COUNT) {
        return PWSP_REFUSE(context, "tuning: there is no unit %u", (unsigned)key->unit);
    }
    if (label && !pwsp_tuning_is_word(label)) {
        return PWSP_REFUSE(context, "tuning: a label is a word of 1 to %d printable characters",
                           PTOWSP_NAME_MAX);
    }
    if (!(value >= 0 && value <= PTOWSP_TUNING_VALUE_MAX)) {
        return PWSP_REFUSE(context, "tuning: a value is from 0 to %s, not %s",
                           pwsp_general(PTOWSP_TUNING_VALUE_MAX, 6).text,
                           pwsp_shortest(value, false).text);
    }
    return PTOWSP_OK;
}

// Writes a line to the locked file, and reads it back.
static ptowsp_status pwsp_tuning_append(ptowsp_tuning *tuning, int file,
                                        const ptowsp_tuning_key *key, uint64_t value,
                                        const char *label) {
    char line[PWSP_TUNING_LINE_MAX + 1];
    bool is_unfinished = tuning->tail_bytes > 0;
    line[0] = '\n';
    size_t length = pwsp_tuning_line_write(line + 1, key, value, label) + is_unfinished;
    int wrong = pwsp_file_append(file, line + !is_unfinished, length);
    if (wrong) {
        return pwsp_tuning_refused(tuning, "write to", tuning->path, wrong);
    }
    if (tuning->id.is_device) {
        return PTOWSP_OK;
    }
    uint64_t size = tuning->cursor.offset + (tuning->tail_bytes - tuning->cursor.long_bytes);
    return pwsp_tuning_catch_up(tuning, file, size + length);
}

ptowsp_status ptowsp_tuning_add(ptowsp_tuning *tuning, const ptowsp_tuning_key *key, double value,
                                const char *label) {
    PWSP_ROUND_APART
    PTOWSP_ASSERT(tuning);
    ptowsp_status status = pwsp_tuning_check(tuning, key, value, label);
    if (status != PTOWSP_OK) {
        return status;
    }
    uint64_t thousandths = (uint64_t)(value * 1000 + 0.5);
    if (!tuning->path) {
        status = pwsp_tuning_table_add(&tuning->table, key, thousandths);
        return status == PTOWSP_OK ? status : pwsp_tuning_not_added(tuning, status);
    }
    int file;
    status = pwsp_tuning_begin(tuning, true, &file);
    if (status == PTOWSP_OK) {
        status = pwsp_tuning_append(tuning, file, key, thousandths, label);
        pwsp_tuning_end(tuning, file);
    }
    return status;
}

bool ptowsp_tuning_find(ptowsp_tuning *tuning, const ptowsp_tuning_key *key,
                        ptowsp_tuning_value *out_value) {
    PTOWSP_ASSERT(tuning);
    if (!key || !key->machine || !out_value) {
        return false;
    }
    pwsp_tuning_entry *entry = pwsp_tuning_table_find(&tuning->table, key);
    memset(out_value, 0, sizeof *out_value);
    if (entry) {
        *out_value = pwsp_tuning_table_value(&tuning->table, entry);
    }
    return entry != NULL;
}

ptowsp_tuning_stats ptowsp_tuning_count(const ptowsp_tuning *tuning) {
    PTOWSP_ASSERT(tuning);
    ptowsp_tuning_stats stats;
    stats.record_count = tuning->table.record_count;
    stats.key_count = tuning->table.entry_count;
    stats.damaged_count = tuning->damaged_count;
    stats.foreign_count = tuning->foreign_count;
    stats.byte_count = tuning->cursor.offset - tuning->cursor.long_bytes;
    stats.tail_bytes = tuning->tail_bytes;
    return stats;
}

ptowsp_tuning_record ptowsp_tuning_record_at(const ptowsp_tuning *tuning, uint64_t i) {
    PTOWSP_ASSERT(tuning);
    PTOWSP_ASSERT(i < tuning->table.record_count);
    const pwsp_tuning_record *from = &tuning->table.records[i];
    ptowsp_tuning_record record;
    record.key = tuning->table.entries[from->entry].key;
    record.value = (double)from->value / 1000;
    return record;
}

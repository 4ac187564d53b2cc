// Tuning records in memory: records, the keys that they are of, and lines of text.

#ifndef PWSP_TUNING_H
#define PWSP_TUNING_H

#include "../base/arena.h"
#include "../base/context.h"
#include "../base/lookup.h"
#include "../data/names.h"
#include "tuning_file.h"

// The longest line, its end included: version, hash, machine, sizes, value, unit, label, hash.
#define PWSP_TUNING_LINE_MAX   384
#define PWSP_TUNING_BUFFER     65536
#define PWSP_TUNING_PATH_MAX   4000
#define PWSP_TUNING_RECORD_MAX (UINT32_MAX - 1)

typedef struct pwsp_tuning_record {
    uint64_t value;  // thousandths
    uint32_t entry;
    uint32_t before;  // the record before it of the same key, + 1; 0: none
} pwsp_tuning_record;

// A key that there is a record of.
typedef struct pwsp_tuning_entry {
    ptowsp_tuning_key key;  // its machine is one of the table's
    uint64_t least, most;   // thousandths
    uint64_t median;        // of the newest, where is_sorted
    uint64_t newest_value;
    uint32_t newest;  // record
    uint32_t count : 31;
    uint32_t is_sorted : 1;
} pwsp_tuning_entry;

typedef struct pwsp_tuning_table {
    const pwsp_memory *memory;
    pwsp_tuning_record *records;
    pwsp_tuning_entry *entries;
    pwsp_lookup places;  // of entries
    uint64_t record_count, record_capacity, entry_count, entry_capacity;
    pwsp_names machine_names;
    pwsp_arena machines;
    const char *last_machines[8];  // one by each hash, as files have few
} pwsp_tuning_table;

PWSP_INTERNAL void pwsp_tuning_table_init(pwsp_tuning_table *table, const pwsp_memory *memory);
PWSP_INTERNAL void pwsp_tuning_table_free(pwsp_tuning_table *table);

// NULL: none.
PWSP_INTERNAL pwsp_tuning_entry *pwsp_tuning_table_find(const pwsp_tuning_table *table,
                                                        const ptowsp_tuning_key *key);

// Adds a record of a valid key. INVALID_PARAMS: another machine has the hash of this one's name.
PWSP_INTERNAL ptowsp_status pwsp_tuning_table_add(pwsp_tuning_table *table,
                                                  const ptowsp_tuning_key *key, uint64_t value);

// The table's entry of a key.
PWSP_INTERNAL ptowsp_tuning_value pwsp_tuning_table_value(pwsp_tuning_table *table,
                                                          pwsp_tuning_entry *entry);

typedef enum pwsp_tuning_kind {
    PWSP_TUNING_RECORD = 0,
    PWSP_TUNING_FOREIGN,  // of another version, with a good hash
    PWSP_TUNING_DAMAGED
} pwsp_tuning_kind;

// Is it 1 to PTOWSP_NAME_MAX printable ASCII characters without spaces?
PWSP_INTERNAL bool pwsp_tuning_is_word(const char *text);

// The kind of a line, given without its end; NULL is a damaged one. The machine of the key is in
// `machine`.
PWSP_INTERNAL pwsp_tuning_kind pwsp_tuning_line_read(const char *line, size_t length,
                                                     ptowsp_tuning_key *out_key,
                                                     char machine[PTOWSP_NAME_MAX + 1],
                                                     uint64_t *out_value);

// Writes a line with its end; returns its length. label NULL: none.
PWSP_INTERNAL size_t pwsp_tuning_line_write(char line[PWSP_TUNING_LINE_MAX],
                                            const ptowsp_tuning_key *key, uint64_t value,
                                            const char *label);

// How far a file has been read.
typedef struct pwsp_tuning_cursor {
    uint64_t offset;      // of the next read: the begin of a line, unless long_bytes
    uint64_t long_bytes;  // of a line longer than the buffer: its bytes before offset
} pwsp_tuning_cursor;

struct ptowsp_tuning {
    ptowsp_context *context;
    pwsp_tuning_table table;
    uint64_t damaged_count, foreign_count;
    pwsp_tuning_cursor cursor;
    uint64_t tail_bytes;  // after the last line
    int pin;              // the file that the table is of, kept open; -1: none
    pwsp_file_id id;      // the pin's, as it was opened last
    char *path;           // NULL: no file
    char *made;           // where compacting writes
    size_t size;          // of this block
    char buffer[PWSP_TUNING_BUFFER];
};

// Fails with the reason that the system gave.
PWSP_INTERNAL ptowsp_status pwsp_tuning_refused(ptowsp_tuning *tuning, const char *verb,
                                                const char *path, int wrong);

// Opens and locks the file, and brings the table up to date with it. Unless OK, nothing is open. If
// it is only to be read and does not exist, *out_file is -1.
PWSP_INTERNAL ptowsp_status pwsp_tuning_begin(ptowsp_tuning *tuning, bool is_to_write,
                                              int *out_file);
PWSP_INTERNAL void pwsp_tuning_end(ptowsp_tuning *tuning, int file);

// Called for each whole line, without its end; line NULL: it is longer than the buffer. Unless OK,
// reading stops before this line.
typedef ptowsp_status (*pwsp_tuning_line_fn)(void *user, const char *line, size_t length);

// Reads lines from the cursor up to `size`, through the buffer.
PWSP_INTERNAL ptowsp_status pwsp_tuning_scan(ptowsp_tuning *tuning, int file, uint64_t size,
                                             pwsp_tuning_cursor *cursor,
                                             pwsp_tuning_line_fn on_line, void *user);

#endif

// Records by their keys. A key's entry has the summary of its measurements and its newest record;
// each record names the previous one:
//
//      places (by hash) ->  entries (by first record)  ->  records (in the order of the file)
//                           key, count, least, most        value, entry, before
//                           newest  -------------------->  #9 -> #4 -> #1
//
// The median of the newest is computed when it is asked for, and kept until the next record.

#include "tuning.h"

#include "../base/heap.h"

PWSP_INTERNAL void pwsp_tuning_table_init(pwsp_tuning_table *table, const pwsp_memory *memory) {
    memset(table, 0, sizeof *table);
    table->memory = memory;
    pwsp_arena_init(&table->machines, memory);
}

PWSP_INTERNAL void pwsp_tuning_table_free(pwsp_tuning_table *table) {
    const pwsp_memory *memory = table->memory;
    PWSP_FREE(memory, table->records, table->record_capacity);
    PWSP_FREE(memory, table->entries, table->entry_capacity);
    PWSP_FREE(memory, table->places.slots, table->places.count);
    pwsp_names_free(&table->machine_names, memory);
    pwsp_arena_free(&table->machines);
    pwsp_tuning_table_init(table, memory);
}

// Eight bytes at a time: FNV-1a would take half of the time of a look-up.
static uint64_t pwsp_tuning_hash_machine(const char *machine) {
    size_t length = strlen(machine);
    uint64_t hash = length, part;
    for (; length >= sizeof part; machine += sizeof part, length -= sizeof part) {
        memcpy(&part, machine, sizeof part);
        hash = (hash ^ part) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    part = 0;
    memcpy(&part, machine, length);
    return (hash ^ part) * UINT64_C(0x9e3779b97f4a7c15);
}

// A sum of products, which do not wait for each other, mixed once.
static uint32_t pwsp_tuning_hash(const ptowsp_tuning_key *key) {
    static const uint64_t factors[PTOWSP_TUNING_SIZE_MAX] = {
        UINT64_C(0xbf58476d1ce4e5b9), UINT64_C(0x94d049bb133111eb), UINT64_C(0xd6e8feb86659fd93),
        UINT64_C(0xff51afd7ed558ccd), UINT64_C(0xc4ceb9fe1a85ec53), UINT64_C(0x9fb21c651e98df25)};
    uint64_t hash = pwsp_tuning_hash_machine(key->machine) + (uint64_t)key->unit;
    hash += key->kernel * UINT64_C(0x9e3779b97f4a7c15);
    for (int i = 0; i < PTOWSP_TUNING_SIZE_MAX; i++) {
        hash += key->sizes[i] * factors[i];
    }
    return (uint32_t)(pwsp_mix64(hash) >> 32);
}

static bool pwsp_tuning_is_equal(const ptowsp_tuning_key *a, const ptowsp_tuning_key *b) {
    return a->kernel == b->kernel && a->unit == b->unit &&
           memcmp(a->sizes, b->sizes, sizeof a->sizes) == 0 &&
           (a->machine == b->machine || strcmp(a->machine, b->machine) == 0);
}

#define PWSP_TUNING_HASH(of, key)     pwsp_tuning_hash(key)
#define PWSP_TUNING_KEY_AT(of, place) (&(of)->entries[place].key)
#define PWSP_TUNING_IS_SAME(of, a, b) pwsp_tuning_is_equal(a, b)
PWSP_LOOKUP(pwsp_tuning_places, pwsp_tuning_table, const ptowsp_tuning_key *, PWSP_TUNING_HASH,
            PWSP_TUNING_KEY_AT, PWSP_TUNING_IS_SAME)

PWSP_INTERNAL pwsp_tuning_entry *pwsp_tuning_table_find(const pwsp_tuning_table *table,
                                                        const ptowsp_tuning_key *key) {
    const uint32_t place =
        table->places.count ? *pwsp_tuning_places_slot(table, &table->places, key) : 0;
    return place ? &table->entries[place - 1] : NULL;
}

// The table's own copy of a machine's name.
static ptowsp_status pwsp_tuning_machine(pwsp_tuning_table *table, const char *text,
                                         const char **out_machine) {
    const char **last = &table->last_machines[pwsp_tuning_hash_machine(text) >> 61];
    if (!*last || strcmp(*last, text) != 0) {
        const pwsp_name *name = pwsp_names_find(&table->machine_names, text);
        if (name && strcmp(name->text, text) != 0) {
            return PTOWSP_INVALID_PARAMS;
        }
        const char *copy = name ? name->text : pwsp_arena_copy(&table->machines, text);
        if (!copy || (!name && !pwsp_names_add(&table->machine_names, table->memory, copy, 0, 0))) {
            return PTOWSP_OUT_OF_MEMORY;
        }
        *last = copy;
    }
    *out_machine = *last;
    return PTOWSP_OK;
}

// Room for one more of each.
static ptowsp_status pwsp_tuning_reserve(pwsp_tuning_table *table) {
    if (table->record_count >= PWSP_TUNING_RECORD_MAX) {
        return PTOWSP_LIMIT_EXCEEDED;
    }
    const pwsp_memory *memory = table->memory;
    const bool is_there =
        PWSP_GROW(memory, table->records, table->record_capacity, table->record_count + 1) &&
        PWSP_GROW(memory, table->entries, table->entry_capacity, table->entry_count + 1) &&
        pwsp_tuning_places_reserve(table, &table->places, memory, table->entry_count);
    return is_there ? PTOWSP_OK : PTOWSP_OUT_OF_MEMORY;
}

PWSP_INTERNAL ptowsp_status pwsp_tuning_table_add(pwsp_tuning_table *table,
                                                  const ptowsp_tuning_key *key, uint64_t value) {
    ptowsp_tuning_key own = *key;
    ptowsp_status status = pwsp_tuning_reserve(table);
    status = status == PTOWSP_OK ? pwsp_tuning_machine(table, key->machine, &own.machine) : status;
    if (status != PTOWSP_OK) {
        return status;
    }
    uint32_t *place = pwsp_tuning_places_slot(table, &table->places, &own);
    if (*place == 0) {
        pwsp_tuning_entry *made = &table->entries[table->entry_count++];
        memset(made, 0, sizeof *made);
        made->key = own;
        made->least = UINT64_MAX;
        *place = (uint32_t)table->entry_count;
    }
    pwsp_tuning_entry *entry = &table->entries[*place - 1];
    pwsp_tuning_record *record = &table->records[table->record_count];
    record->value = value;
    record->entry = *place - 1;
    record->before = entry->count ? entry->newest + 1 : 0;
    entry->newest = (uint32_t)table->record_count++;
    entry->newest_value = value;
    entry->median = value;  // of one
    entry->is_sorted = entry->count++ == 0;
    entry->least = pwsp_min_u64(entry->least, value);
    entry->most = pwsp_max_u64(entry->most, value);
    return PTOWSP_OK;
}

// The lower median of an entry's newest records.
static uint64_t pwsp_tuning_median(const pwsp_tuning_table *table, const pwsp_tuning_entry *entry) {
    uint64_t sorted[PTOWSP_TUNING_RECENT_MAX];
    uint32_t count = 0;
    for (uint32_t i = entry->newest + 1; i && count < PTOWSP_TUNING_RECENT_MAX;
         i = table->records[i - 1].before) {
        sorted[count++] = table->records[i - 1].value;
    }
    PTOWSP_ASSERT(count > 0);
    pwsp_sort_u64(NULL, sorted, count);
    return sorted[(count - 1) / 2];
}

PWSP_INTERNAL ptowsp_tuning_value pwsp_tuning_table_value(pwsp_tuning_table *table,
                                                          pwsp_tuning_entry *entry) {
    if (!entry->is_sorted) {
        entry->median = pwsp_tuning_median(table, entry);
        entry->is_sorted = true;
    }
    ptowsp_tuning_value value;
    value.count = entry->count;
    value.median = (double)entry->median / 1000;
    value.least = (double)entry->least / 1000;
    value.most = (double)entry->most / 1000;
    value.newest = (double)entry->newest_value / 1000;
    return value;
}

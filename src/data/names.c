// Names are identified by their FNV-1a-64 hash alone, as on a device, so two names with one hash cannot
// both be in the table. Callers look a name up before they add it, and then find the other one.

#include "names.h"

PWSP_INTERNAL bool pwsp_name_is_valid(const char *text) {
    if (!text) {
        return false;
    }
    size_t length = 0;
    for (; text[length] != '\0'; length++) {
        char c = text[length];
        if (length == PTOWSP_NAME_MAX || c < ' ' || c > '~' || c == '"' || c == '\'' || c == '\\') {
            return false;
        }
    }
    return length > 0;
}

PWSP_INTERNAL ptowsp_plan_field pwsp_name_field(const char *text) {
    static const struct {
        char text[16];
        uint32_t flags;
    } fields[] = {
#define PWSP_NAME_FIELD(name, text, dtype, byte, flags, units, merges) {text, flags},
        PTOWSP_PLAN_FIELDS(PWSP_NAME_FIELD)
#undef PWSP_NAME_FIELD
    };
    const char *last = strrchr(text, '.');
    uint32_t i = last ? 0 : PTOWSP_PLAN_FIELD_COUNT;
    while (i < PTOWSP_PLAN_FIELD_COUNT &&
           (fields[i].flags || strcmp(fields[i].text, last + 1) != 0)) {
        i++;
    }
    return (ptowsp_plan_field)i;
}

#define PWSP_NAMES_HASH(of, hash)     (hash)
#define PWSP_NAMES_HASH_AT(of, place) ((of)->items[place].hash)
#define PWSP_NAMES_IS_SAME(of, a, b)  ((a) == (b))
PWSP_LOOKUP(pwsp_names_by_hash, pwsp_names, uint64_t, PWSP_NAMES_HASH, PWSP_NAMES_HASH_AT,
            PWSP_NAMES_IS_SAME)

PWSP_INTERNAL const pwsp_name *pwsp_names_find(const pwsp_names *names, const char *text) {
    if (names->count == 0) {
        return NULL;
    }
    const uint64_t hash = ptowsp_hash(PTOWSP_HASH_START, text, strlen(text));
    const uint32_t place = *pwsp_names_by_hash_slot(names, &names->lookup, hash);
    return place ? &names->items[place - 1] : NULL;
}

PWSP_INTERNAL bool pwsp_names_add(pwsp_names *names, const pwsp_memory *memory, const char *text,
                                  uint32_t kind, uint32_t index) {
    const pwsp_name name = {ptowsp_hash(PTOWSP_HASH_START, text, strlen(text)), text, kind, index};
    if (!pwsp_names_by_hash_reserve(names, &names->lookup, memory, names->count) ||
        !PWSP_GROW(memory, names->items, names->capacity, names->count + 1)) {
        return false;
    }
    uint32_t *slot = pwsp_names_by_hash_slot(names, &names->lookup, name.hash);
    PTOWSP_ASSERT(*slot == 0);
    names->items[names->count++] = name;
    *slot = (uint32_t)names->count;
    return true;
}

PWSP_INTERNAL void pwsp_names_free(pwsp_names *names, const pwsp_memory *memory) {
    PWSP_FREE(memory, names->items, names->capacity);
    PWSP_FREE(memory, names->lookup.slots, names->lookup.count);
    memset(names, 0, sizeof *names);
}

// A hash table of names, open addressing with linear probing, at most half full. Names are
// identified by their FNV-1a-64 hash alone, as on a device, so two names with one hash cannot both
// be in the table. Callers look a name up before they add it, and then find the other one.

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

// The place of a hash: where it is, or the free one where it belongs.
static pwsp_name *pwsp_names_place(const pwsp_names *names, uint64_t hash) {
    uint64_t i = hash & (names->slot_count - 1);
    while (names->slots[i].text && names->slots[i].hash != hash) {
        i = (i + 1) & (names->slot_count - 1);
    }
    return &names->slots[i];
}

PWSP_INTERNAL const pwsp_name *pwsp_names_find(const pwsp_names *names, const char *text) {
    if (names->slot_count == 0) {
        return NULL;
    }
    uint64_t hash = ptowsp_hash(PTOWSP_HASH_START, text, strlen(text));
    const pwsp_name *name = pwsp_names_place(names, hash);
    return name->text ? name : NULL;
}

static bool pwsp_names_rehash(pwsp_names *names, const pwsp_memory *memory) {
    pwsp_names larger = {NULL, names->slot_count ? names->slot_count * 2 : 16, names->count};
    if (!PWSP_ALLOC(memory, larger.slots, larger.slot_count)) {
        return false;
    }
    for (uint64_t i = 0; i < names->slot_count; i++) {
        if (names->slots[i].text) {
            *pwsp_names_place(&larger, names->slots[i].hash) = names->slots[i];
        }
    }
    pwsp_names_free(names, memory);
    *names = larger;
    return true;
}

PWSP_INTERNAL bool pwsp_names_add(pwsp_names *names, const pwsp_memory *memory, const char *text,
                                  uint32_t kind, uint32_t index) {
    if (names->count * 2 >= names->slot_count && !pwsp_names_rehash(names, memory)) {
        return false;
    }
    uint64_t hash = ptowsp_hash(PTOWSP_HASH_START, text, strlen(text));
    pwsp_name *place = pwsp_names_place(names, hash);
    PTOWSP_ASSERT(!place->text);
    pwsp_name name = {hash, text, kind, index};
    *place = name;
    names->count++;
    return true;
}

PWSP_INTERNAL void pwsp_names_free(pwsp_names *names, const pwsp_memory *memory) {
    PWSP_FREE(memory, names->slots, names->slot_count);
    names->slots = NULL;
    names->slot_count = 0;
    names->count = 0;
}

// Names identified by their hash. Sizes, symbols, arrays and tensors are bound by name.

#ifndef PWSP_NAMES_H
#define PWSP_NAMES_H

#include "../base/lookup.h"

typedef struct pwsp_name {
    uint64_t hash;
    const char *text;
    uint32_t kind;   // the owner's
    uint32_t index;  // the owner's
} pwsp_name;

typedef struct pwsp_names {
    pwsp_name *items;  // in the order in which they were added
    uint64_t count, capacity;
    pwsp_lookup lookup;
} pwsp_names;

// The name of a module that was given none.
#define PWSP_MODULE_UNNAMED "module"

// Is it 1 to PTOWSP_NAME_MAX printable ASCII characters, without quotes or backslash?
PWSP_INTERNAL bool pwsp_name_is_valid(const char *text);

// The entry with the hash of text, or NULL. Its text may differ: a collision.
PWSP_INTERNAL const pwsp_name *pwsp_names_find(const pwsp_names *names, const char *text);

// The entry of exactly this text, or NULL.
PWSP_INLINE const pwsp_name *pwsp_names_get(const pwsp_names *names, const char *text) {
    const pwsp_name *found = pwsp_names_find(names, text);
    return found && strcmp(found->text, text) == 0 ? found : NULL;
}

// Adds a name whose hash is not there yet; text must live as long as the table. False when memory
// is out.
PWSP_INTERNAL bool pwsp_names_add(pwsp_names *names, const pwsp_memory *memory, const char *text,
                                  uint32_t kind, uint32_t index);
PWSP_INTERNAL void pwsp_names_free(pwsp_names *names, const pwsp_memory *memory);

// The field of a plan's descriptors that the last part of a name names, as in "kv.merges.slot_count".
// Fields that are bits of another one have no name. PTOWSP_PLAN_FIELD_COUNT: it names none.
PWSP_INTERNAL ptowsp_plan_field pwsp_name_field(const char *text);

// The characters of words in texts: letters, digits, _ and the dot of a plan's fields.
PWSP_INLINE bool pwsp_name_is_word_part(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
}

#endif

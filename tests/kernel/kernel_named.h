// Modules with kernels that tests compile: the sections of kernels.txt.

#ifndef PTOWSP_KERNEL_NAMED_H
#define PTOWSP_KERNEL_NAMED_H

#include "files.h"

enum { KERNEL_NAMED_MAX = 1 << 14 };

// A section, in which each `$` and name of a word is its text.
typedef struct kernel_word {
    const char *name, *text;
} kernel_word;

// Valid up to the next call. The words end with one without a name.
static inline const char *kernel_named(const char *name, const kernel_word *words) {
    static char text[KERNEL_NAMED_MAX], file[4 * KERNEL_NAMED_MAX];
    char heading[64];
    size_t length = 0;
    snprintf(heading, sizeof heading, "\n== %s\n", name);
    const char *at = strstr(file_text("tests/kernel/kernels.txt", file, sizeof file), heading);
    if (!at) {
        fail_msg("there is no kernel %s", name);
    }
    for (at += strlen(heading); *at && strncmp(at, "\n\n", 2) != 0;) {
        const kernel_word *word = words;
        while (*at == '$' && word->name && strncmp(at + 1, word->name, strlen(word->name)) != 0) {
            word++;
        }
        const bool is_word = *at == '$' && word->name;
        assert_true(*at != '$' || is_word);
        length += (size_t)snprintf(text + length, sizeof text - length, "%.*s",
                                   is_word ? INT32_MAX : 1, is_word ? word->text : at);
        assert_true(length < sizeof text);
        at += is_word ? 1 + strlen(word->name) : 1;
    }
    while (text[length - 1] == '\n') {
        length--;
    }
    strcpy(text + length, "\n");
    return text;
}

static const kernel_word kernel_no_words[] = {{NULL, NULL}};

#endif

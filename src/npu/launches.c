// Launches, <<<blocks, l2, stream>>>, in PTO-ISA sources. They are not C++: the shim must not see them.
//
// Demos keep the host's part beside the kernel, in one of three ways:
//
//      #ifdef __CCE_AICORE__     only CANN's compiler sees it
//      #ifndef __CPU_SIM         PTO-ISA's simulator does not see it: for the shim the file that includes
//      #ifndef __COSTMODEL       the source defines the word, in this source alone
//
// A launch without any condition around it is refused, with its line. Under a different condition it is
// the author's responsibility: the compiler decides.

#include "kernels.h"

#include <stdio.h>

#define NPU_CONDITION_MAX 64  // #if inside #if; deeper ones are the author's

typedef enum npu_condition {
    NPU_COND_OTHER = 0,
    NPU_COND_DEVICE,  // false for the shim
    NPU_COND_SIMULATOR,
    NPU_COND_COST_MODEL
} npu_condition;

static const struct {
    char word[16];
    bool is_negated;  // #ifndef
    uint8_t condition;
} npu_guards[] = {{"__CCE_AICORE__", false, NPU_COND_DEVICE},
                  {"__CPU_SIM", true, NPU_COND_SIMULATOR},
                  {"__COSTMODEL", true, NPU_COND_COST_MODEL}};

static const char *npu_skip_blanks(const char *at, const char *end) {
    while (at < end && (*at == ' ' || *at == '\t')) {
        at++;
    }
    return at;
}

// A term, "! defined ( WORD )", "defined WORD", or after #ifdef and #ifndef WORD alone. is_negated:
// the opposite of it holds.
static npu_condition npu_term_of(const char *at, const char *end, bool is_word, bool is_negated) {
    at = npu_skip_blanks(at, end);
    if (!is_word) {
        if (at < end && *at == '!') {
            is_negated = !is_negated;
            at = npu_skip_blanks(at + 1, end);
        }
        if (end - at < 7 || strncmp(at, "defined", 7) != 0) {
            return NPU_COND_OTHER;
        }
        at = npu_skip_blanks(at + 7, end);
        at = npu_skip_blanks(at + (at < end && *at == '('), end);
    }
    size_t length = 0;
    while (at + length < end && npu_is_word(at[length])) {
        length++;
    }
    for (size_t i = 0; i < sizeof npu_guards / sizeof npu_guards[0]; i++) {
        if (npu_guards[i].is_negated == is_negated && strlen(npu_guards[i].word) == length &&
            strncmp(at, npu_guards[i].word, length) == 0) {
            return (npu_condition)npu_guards[i].condition;
        }
    }
    return NPU_COND_OTHER;
}

// The condition of a line that begins one; `word` follows its "#". is_else: of its #else. Of terms
// that all must hold, one is enough.
static npu_condition npu_condition_of(const char *word, const char *end, bool is_else) {
    bool is_ifdef = strncmp(word, "ifdef", 5) == 0, is_ifndef = strncmp(word, "ifndef", 6) == 0;
    if (is_ifdef || is_ifndef) {
        return npu_term_of(word + (is_ifdef ? 5 : 6), end, true, is_ifndef != is_else);
    }
    npu_condition found = NPU_COND_OTHER;
    const char *term = word + 2;
    for (const char *at = term; at + 1 < end; at++) {
        bool is_and = at[0] == '&' && at[1] == '&';
        if ((at[0] == '|' && at[1] == '|') || (is_and && is_else)) {
            return NPU_COND_OTHER;
        }
        if (is_and) {
            found = found ? found : npu_term_of(term, at, false, false);
            term = at + 2;
        }
    }
    return found ? found : npu_term_of(term, end, false, is_else);
}

// The conditions around a line, and of each the condition of its #else.
typedef struct npu_conditions {
    uint8_t kinds[NPU_CONDITION_MAX], others[NPU_CONDITION_MAX];
    uint32_t depth;
} npu_conditions;

static void npu_conditions_take(npu_conditions *all, const char *word, const char *end) {
    uint32_t inner = all->depth - 1;
    if (strncmp(word, "if", 2) == 0) {
        if (all->depth < NPU_CONDITION_MAX) {
            all->kinds[all->depth] = (uint8_t)npu_condition_of(word, end, false);
            all->others[all->depth] = (uint8_t)npu_condition_of(word, end, true);
        }
        all->depth++;
    } else if (strncmp(word, "el", 2) == 0 && all->depth && inner < NPU_CONDITION_MAX) {
        bool is_else = strncmp(word, "else", 4) == 0;
        all->kinds[inner] = is_else ? all->others[inner] : (uint8_t)NPU_COND_OTHER;
        all->others[inner] = NPU_COND_OTHER;
    } else if (strncmp(word, "endif", 5) == 0 && all->depth) {
        all->depth--;
    }
}

// Is a line under a condition? Adds the words that are to be defined for the shim.
static bool npu_conditions_allow(const npu_conditions *all, uint32_t *out_words) {
    uint32_t kinds = 0;
    for (uint32_t i = 0; i < all->depth && i < NPU_CONDITION_MAX; i++) {
        kinds |= 1u << all->kinds[i];
    }
    if (!(kinds >> NPU_COND_DEVICE & 1)) {
        *out_words |= kinds >> NPU_COND_SIMULATOR & 1    ? 1u << NPU_COND_SIMULATOR
                      : kinds >> NPU_COND_COST_MODEL & 1 ? 1u << NPU_COND_COST_MODEL
                                                         : 0;
    }
    return all->depth > 0;
}

// Takes a line, and says whether it has a launch.
static bool npu_lex_launch(npu_lexer *lexer, const char *line, size_t length) {
    bool has = false;
    for (size_t i = 0; i < length; i++) {
        if (npu_lex(lexer, line[i], line[i + 1]) && line[i] != ' ') {
            has = has || strncmp(line + i, "<<<", 3) == 0;
            lexer->last = line[i];
        }
    }
    npu_lex(lexer, '\n', '\0');
    return has;
}

NPU_INTERNAL uint32_t npu_find_launch(const char *text, uint32_t *out_words) {
    npu_lexer lexer;
    npu_conditions conditions;
    memset(&lexer, 0, sizeof lexer);
    memset(&conditions, 0, sizeof conditions);
    for (uint32_t number = 1; *text; number++) {
        size_t length = strcspn(text, "\n");
        const char *word = npu_directive(&lexer, text);
        if (word) {
            npu_conditions_take(&conditions, word, text + length);
        }
        bool has = npu_lex_launch(&lexer, text, length);
        if (has && !word && !npu_conditions_allow(&conditions, out_words)) {
            return number;
        }
        text += length + (text[length] == '\n');
    }
    return 0;
}

NPU_INTERNAL void npu_print_launch_words(uint32_t words, bool is_end, npu_text *out) {
    for (size_t i = 0; i < sizeof npu_guards / sizeof npu_guards[0]; i++) {
        if (words >> npu_guards[i].condition & 1) {
            npu_print(out, "#if WSP_IS_SHIM%s\n#%s %s\n#endif\n",
                      is_end ? "" : "  // a launch stands where the simulator does not see it",
                      is_end ? "undef" : "define", npu_guards[i].word);
        }
    }
}

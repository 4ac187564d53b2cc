// Lines of tuning files. Everything is ASCII and independent of the locale:
//
//      line   = version ' ' kernel ' ' machine ' ' sizes ' ' value ' ' unit ' ' label ' ' hash
//      kernel = hash = 16 * ('0'..'9' | 'a'..'f')
//      sizes  = '-' | number *('x' number)         at most PTOWSP_TUNING_SIZE_MAX; the last is not 0
//      value  = number ['.' 1*3 digit]
//
// The hash covers all bytes before it. A step of FNV-1a is a bijection for each byte, so one
// changed byte always changes it.

#include "tuning.h"

#include <inttypes.h>
#include <stdio.h>

#define PWSP_TUNING_VERSION "tune1"
#define PWSP_TUNING_DIGITS  16  // of a hash

static const char *pwsp_tuning_unit_name(ptowsp_tuning_unit unit) {
    return unit == PTOWSP_TUNING_CYCLES ? "cycles" : "ns";
}

PWSP_INTERNAL bool pwsp_tuning_is_word(const char *text) {
    size_t length = 0;
    while (length <= PTOWSP_NAME_MAX && text[length] > ' ' && text[length] <= '~') {
        length++;
    }
    return length > 0 && length <= PTOWSP_NAME_MAX && text[length] == '\0';
}

// The rest of a line; begin NULL after an error.
typedef struct pwsp_tuning_words {
    const char *begin, *end;
} pwsp_tuning_words;

// Takes the next word and the space after it, if any; its length, or 0 at the end.
static size_t pwsp_tuning_word(pwsp_tuning_words *words, const char **out_word) {
    const char *at = words->begin;
    while (at<words->end && * at> ' ' && *at <= '~') {
        at++;
    }
    size_t length = (size_t)(at - words->begin);
    *out_word = words->begin;
    words->begin = at < words->end && *at == ' ' ? at + 1 : at;
    return length;
}

// Without branches: no processor predicts the digits of hashes, and half of a file is that.
static bool pwsp_tuning_read_hash(const char *text, size_t length, uint64_t *out_hash) {
    uint64_t hash = 0;
    uint32_t wrong = length != PWSP_TUNING_DIGITS;
    for (size_t i = 0; i < length && i < PWSP_TUNING_DIGITS; i++) {
        uint32_t c = (unsigned char)text[i];
        wrong |= (uint32_t)(c - '0' > 9u) & (uint32_t)(c - 'a' > 5u);
        hash = hash << 4 | ((c & 15u) + 9u * (c >> 6));  // 'a' is 0x61
    }
    *out_hash = hash;
    return !wrong;
}

// Takes a number of 64 bits off the begin of a text, without leading zeros.
static bool pwsp_tuning_read_number(const char **text, const char *end, uint64_t *out_number) {
    const char *at = *text;
    uint64_t number = 0;
    for (; at < end && *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (number > (UINT64_MAX - digit) / 10) {
            return false;
        }
        number = number * 10 + digit;
    }
    bool is_good = at > *text && (**text != '0' || at == *text + 1);
    *text = at;
    *out_number = number;
    return is_good;
}

static bool pwsp_tuning_read_sizes(const char *text, size_t length, uint64_t *sizes) {
    const char *end = text + length;
    if (length == 1 && *text == '-') {
        return true;
    }
    for (int i = 0; i < PTOWSP_TUNING_SIZE_MAX; i++) {
        if (!pwsp_tuning_read_number(&text, end, &sizes[i])) {
            return false;
        }
        if (text == end) {
            return sizes[i] != 0;
        }
        if (*text++ != 'x') {
            return false;
        }
    }
    return false;
}

static bool pwsp_tuning_read_value(const char *text, size_t length, uint64_t *out_value) {
    const char *end = text + length;
    uint64_t whole, part = 0;
    if (!pwsp_tuning_read_number(&text, end, &whole) || whole > (uint64_t)PTOWSP_TUNING_VALUE_MAX) {
        return false;
    }
    if (text < end) {
        if (*text++ != '.' || text == end || end - text > 3) {
            return false;
        }
        for (uint64_t unit = 100; text < end; unit /= 10, text++) {
            if (*text < '0' || *text > '9') {
                return false;
            }
            part += unit * (uint64_t)(*text - '0');
        }
    }
    *out_value = whole * 1000 + part;
    return *out_value <= (uint64_t)PTOWSP_TUNING_VALUE_MAX * 1000;
}

static bool pwsp_tuning_is(const char *word, size_t length, const char *text) {
    return length == strlen(text) && memcmp(word, text, length) == 0;
}

PWSP_INTERNAL pwsp_tuning_kind pwsp_tuning_line_read(const char *line, size_t length,
                                                     ptowsp_tuning_key *out_key,
                                                     char machine[PTOWSP_NAME_MAX + 1],
                                                     uint64_t *out_value) {
    uint64_t hash;
    if (!line || length >= PWSP_TUNING_LINE_MAX || length < PWSP_TUNING_DIGITS + 1) {
        return PWSP_TUNING_DAMAGED;
    }
    size_t hashed = length - PWSP_TUNING_DIGITS;
    if (line[hashed - 1] != ' ' ||
        !pwsp_tuning_read_hash(line + hashed, PWSP_TUNING_DIGITS, &hash) ||
        hash != ptowsp_hash(PTOWSP_HASH_START, line, hashed)) {
        return PWSP_TUNING_DAMAGED;
    }
    pwsp_tuning_words words = {line, line + hashed};
    const char *word;
    size_t size = pwsp_tuning_word(&words, &word);
    if (!pwsp_tuning_is(word, size, PWSP_TUNING_VERSION)) {
        return size > 4 && memcmp(word, PWSP_TUNING_VERSION, 4) == 0 ? PWSP_TUNING_FOREIGN
                                                                     : PWSP_TUNING_DAMAGED;
    }
    memset(out_key, 0, sizeof *out_key);
    size = pwsp_tuning_word(&words, &word);
    bool is_good = pwsp_tuning_read_hash(word, size, &out_key->kernel);
    size = pwsp_tuning_word(&words, &word);
    is_good = is_good && size > 0 && size <= PTOWSP_NAME_MAX;
    if (is_good) {
        memcpy(machine, word, size);
        machine[size] = '\0';
        out_key->machine = machine;
    }
    size = pwsp_tuning_word(&words, &word);
    is_good = is_good && pwsp_tuning_read_sizes(word, size, out_key->sizes);
    size = pwsp_tuning_word(&words, &word);
    is_good = is_good && pwsp_tuning_read_value(word, size, out_value);
    size = pwsp_tuning_word(&words, &word);
    bool is_cycles = pwsp_tuning_is(word, size, "cycles");
    out_key->unit = is_cycles ? PTOWSP_TUNING_CYCLES : PTOWSP_TUNING_NS;
    is_good = is_good && (is_cycles || pwsp_tuning_is(word, size, "ns"));
    size = pwsp_tuning_word(&words, &word);
    is_good = is_good && size > 0 && size <= PTOWSP_NAME_MAX && words.begin == words.end;
    return is_good ? PWSP_TUNING_RECORD : PWSP_TUNING_DAMAGED;
}

PWSP_INTERNAL size_t pwsp_tuning_line_write(char line[PWSP_TUNING_LINE_MAX],
                                            const ptowsp_tuning_key *key, uint64_t value,
                                            const char *label) {
    ptowsp_output_buffer buffer = {line, PWSP_TUNING_LINE_MAX, 0};
    ptowsp_output text = ptowsp_output_to_buffer(&buffer);
    pwsp_text_format(text, "%s %016" PRIx64 " %s ", PWSP_TUNING_VERSION, key->kernel, key->machine);
    int size_count = PTOWSP_TUNING_SIZE_MAX;
    while (size_count > 0 && key->sizes[size_count - 1] == 0) {
        size_count--;
    }
    for (int i = 0; i < size_count; i++) {
        pwsp_text_format(text, "%s%" PRIu64, i ? "x" : "", key->sizes[i]);
    }
    pwsp_text_format(text, "%s %" PRIu64, size_count ? "" : "-", value / 1000);
    if (value % 1000) {
        pwsp_text_format(text, ".%03u", (unsigned)(value % 1000));
    }
    pwsp_text_format(text, " %s %s ", pwsp_tuning_unit_name(key->unit), label ? label : "-");
    uint64_t hash = ptowsp_hash(PTOWSP_HASH_START, line, buffer.length);
    pwsp_text_format(text, "%016" PRIx64 "\n", hash);
    PTOWSP_ASSERT(buffer.length < PWSP_TUNING_LINE_MAX);
    return buffer.length;
}

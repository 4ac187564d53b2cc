// Numbers and elements as a command line gives them: text to bits, and bits to elements.

#ifndef WSP_ELEMENTS_H
#define WSP_ELEMENTS_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <string>

#include "wsp_abi.h"
#include "wsp_list.h"

namespace {

// -- text -----------------------------------------------------------------------------------------

// A whole text as a number: decimal, 0x..., with a sign. Bits of i64, or u64 beyond that.
bool parse_number(const std::string &text, uint64_t *out_bits) {
    const char *begin = text.c_str();
    char *end = nullptr;
    if (text.empty() || strchr(" \t\n\v\f\r", text[0])) {
        return false;
    }
    errno = 0;
    if (text[0] == '-') {
        *out_bits = static_cast<uint64_t>(strtoll(begin, &end, 0));
    } else {
        *out_bits = strtoull(begin, &end, 0);
    }
    return errno == 0 && *end == '\0' && end != begin;
}

// A size or a count: not negative, at most `max`.
bool parse_count(const std::string &text, uint64_t max, uint64_t *out_count) {
    return text[0] != '-' && parse_number(text, out_count) && *out_count <= max;
}

wsp::List<std::string> split(const std::string &text, char separator) {
    wsp::List<std::string> parts(1);
    for (char c : text) {
        if (c == separator) {
            parts.emplace_back();
        } else {
            parts.back() += c;
        }
    }
    return parts;
}

// Splits at the first occurrence of a character. False without one; then all is in the first part.
bool cut(const std::string &text, char at, std::string *out_first, std::string *out_rest) {
    const size_t position = text.find(at);
    *out_first = text.substr(0, position);
    *out_rest = position == std::string::npos ? "" : text.substr(position + 1);
    return position != std::string::npos;
}

// -- elements -------------------------------------------------------------------------------------

uint32_t size_of(uint32_t dtype) {
    return ptowsp_dtype_size(static_cast<ptowsp_dtype>(dtype));
}

const char *name_of(uint32_t dtype) {
    return dtype ? ptowsp_dtype_name(static_cast<ptowsp_dtype>(dtype)) : "integers";
}

// The integer type with a name; NONE: the name is unknown.
ptowsp_dtype index_dtype(const std::string &name) {
    for (ptowsp_dtype dtype : {PTOWSP_I32, PTOWSP_I64, PTOWSP_U32, PTOWSP_U64}) {
        if (name == name_of(dtype)) {
            return dtype;
        }
    }
    return PTOWSP_DTYPE_NONE;
}

// Does an integer fit?
bool fits(uint64_t bits, bool is_negative, uint32_t dtype) {
    const bool is_signed =
        dtype == PTOWSP_I8 || dtype == PTOWSP_I16 || dtype == PTOWSP_I32 || dtype == PTOWSP_I64;
    const uint32_t width = 8 * size_of(dtype);
    if (dtype == PTOWSP_BOOL) {
        return bits <= 1;
    } else if (is_signed) {
        const uint64_t magnitude = is_negative ? 0 - bits : bits;
        return magnitude <= (UINT64_C(1) << (width - 1)) - (is_negative ? 0 : 1);
    }
    return !is_negative && (width == 64 || bits >> width == 0);
}

// Bytes that bindings refer to: memory of its own, or of others.
struct Data {
    std::string name;           // of a tensor
    uint64_t *words = nullptr;  // aligned for any element
    size_t size = 0;            // bytes
    bool is_own = true;

    Data() = default;
    ~Data() {
        free(is_own ? words : nullptr);
    }
    Data(const Data &) = delete;
    Data &operator=(const Data &) = delete;

    void *bytes() const {
        return words;
    }
    // Zeros. False when memory is out: a typed size may be anything.
    bool resize(size_t bytes_count) {
        free(words);
        words = static_cast<uint64_t *>(calloc(bytes_count / 8 + 1, 8));
        size = words ? bytes_count : 0;
        return words != nullptr;
    }
};

inline std::string no_memory_for(size_t bytes) {
    return "no memory for " + std::to_string(bytes) + " bytes";
}

// Writes a number to an element, from the low bytes of the bits.
void store(Data *data, size_t i, uint32_t dtype, uint64_t bits) {
    char *at = reinterpret_cast<char *>(data->words) + i * size_of(dtype);
    const uint8_t b8 = static_cast<uint8_t>(bits);
    const uint16_t b16 = static_cast<uint16_t>(bits);
    const uint32_t b32 = static_cast<uint32_t>(bits);
    switch (size_of(dtype)) {
    case 1: memcpy(at, &b8, 1); break;
    case 2: memcpy(at, &b16, 2); break;
    case 4: memcpy(at, &b32, 4); break;
    default: memcpy(at, &bits, 8); break;
    }
}

}  // namespace

#endif  // WSP_ELEMENTS_H

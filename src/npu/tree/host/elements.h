// Numbers, elements and files as a command line gives them: text to bits, and bits to elements.

#ifndef WSP_ELEMENTS_H
#define WSP_ELEMENTS_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <string>

#include "wsp_abi.h"
#include "wsp_list.h"

namespace {

// -- text -----------------------------------------------------------------------------------------

bool fail_usage(const std::string &what) {
    fprintf(stderr, "run: %s\n", what.c_str());
    return false;
}

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

// Bound data: it lives as long as the command.
struct Data {
    std::string name;           // of a tensor
    uint64_t *words = nullptr;  // aligned for any element
    size_t size = 0;            // bytes

    Data() = default;
    ~Data() {
        free(words);
    }
    Data(const Data &) = delete;
    Data &operator=(const Data &) = delete;

    void *bytes() {
        return words;
    }
    // Zeros. False when memory is out: a typed size may be anything.
    bool resize(size_t bytes_count) {
        free(words);
        words = static_cast<uint64_t *>(calloc(bytes_count / 8 + 1, 8));
        size = words ? bytes_count : 0;
        return words ? true : fail_usage("no memory for " + std::to_string(bytes_count) + " bytes");
    }
};

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

// Appends a file's bytes. False with errno.
bool read_text(const std::string &path, std::string *out) {
    FILE *file = fopen(path.c_str(), "rb");
    char buffer[65536];
    for (size_t count; file && (count = fread(buffer, 1, sizeof buffer, file)) > 0;) {
        out->append(buffer, count);
    }
    const bool is_good = file && !ferror(file);
    const int error = errno;
    if (file) {
        fclose(file);
    }
    errno = error;
    return is_good;
}

bool read_file(const std::string &path, Data *out_data) {
    std::string bytes;
    if (!read_text(path, &bytes)) {
        return fail_usage(path + ": " + strerror(errno));
    }
    if (!out_data->resize(bytes.size())) {
        return false;
    }
    memcpy(out_data->words, bytes.data(), bytes.size());
    return true;
}

bool write_file(const std::string &path, const Data &data) {
    FILE *file = fopen(path.c_str(), "wb");
    bool is_good = file && fwrite(data.words, 1, data.size, file) == data.size;
    is_good = file && fclose(file) == 0 && is_good;
    return is_good ? true : fail_usage(path + ": " + strerror(errno));
}

// A list of numbers, or of a file's elements.
bool read_elements(const std::string &what, const std::string &text, uint32_t dtype, Data *data,
                   uint64_t *out_count) {
    if (!text.empty() && text[0] == '@') {
        if (!read_file(text.substr(1), data)) {
            return false;
        }
        *out_count = data->size / size_of(dtype);
        return data->size % size_of(dtype) == 0
                   ? true
                   : fail_usage(what + ": " + text.substr(1) + " has " +
                                std::to_string(data->size) +
                                " bytes, which are no whole elements of " + name_of(dtype));
    }
    const wsp::List<std::string> parts = text.empty() ? wsp::List<std::string>() : split(text, ',');
    if (!data->resize(parts.size() * size_of(dtype))) {
        return false;
    }
    for (size_t i = 0; i < parts.size(); i++) {
        uint64_t bits = 0;
        if (!parse_number(parts[i], &bits) || !fits(bits, parts[i][0] == '-', dtype)) {
            return fail_usage(what + ": \"" + parts[i] + "\" is no " + name_of(dtype));
        }
        store(data, i, dtype, bits);
    }
    *out_count = parts.size();
    return true;
}

}  // namespace

#endif  // WSP_ELEMENTS_H

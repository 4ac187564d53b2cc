// What the tests of the shim's C++ face share: the shim as it ships, cmocka, seeded random numbers,
// buffers with guards around them, and faults that are kept instead of ending the program.

#ifndef ISA_FACE_H
#define ISA_FACE_H

#include "ptoisa_shim.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/support/suite.h"

extern "C" {
#include <cmocka.h>  // last: it defines fail as a macro
}

// SplitMix64 (Steele, Lea and Flood 2014).
static inline uint64_t face_random(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

// Uniform in [-1, 1).
static inline double face_uniform(uint64_t *state) {
    return (double)(int64_t)face_random(state) * 0x1p-63;
}

// A rows x cols matrix inside a larger one that is filled with a pattern: after a kernel,
// everything but the matrix must still be the pattern.
template <typename T> struct face_matrix {
    static constexpr size_t guard = 64;
    size_t rows, cols, pitch;
    std::vector<T> cells;

    face_matrix(size_t rows_, size_t cols_, size_t extra = 3)
        : rows(rows_), cols(cols_), pitch(cols_ + extra), cells(2 * guard + rows_ * pitch) {
        memset(static_cast<void *>(cells.data()), 0xa5, cells.size() * sizeof(T));
    }
    T *data() {
        return cells.data() + guard;
    }
    T &at(size_t r, size_t c) {
        return cells[guard + r * pitch + c];
    }
    double get(size_t r, size_t c) {
        return static_cast<double>(at(r, c));
    }
    void fill(uint64_t *seed, double scale = 1) {
        TEST_GRID(size_t, r, rows, c, cols) {
            at(r, c) = static_cast<T>(scale * face_uniform(seed));
        }
    }
    bool is_guarded() const {
        for (size_t i = 0; i < cells.size(); i++) {
            bool is_inside = i >= guard && i < guard + rows * pitch && (i - guard) % pitch < cols;
            uint8_t bytes[sizeof(T)], pattern[sizeof(T)];
            memcpy(bytes, &cells[i], sizeof(T));
            memset(pattern, 0xa5, sizeof(T));
            if (!is_inside && memcmp(bytes, pattern, sizeof(T)) != 0) {
                return false;
            }
        }
        return true;
    }
};

// The faults of this thread's core, one line each, while an object of this type lives.
struct face_faults {
    std::string text;
    face_faults() {
        ptoisa_this_core().fault_user = this;
        ptoisa_this_core().on_fault = note;
    }
    ~face_faults() {
        ptoisa_this_core().fault_user = NULL;
        ptoisa_this_core().on_fault = NULL;
        ptoisa_core_reset(&ptoisa_this_core());
    }
    static void note(ptoisa_core *core, const char *line) {
        static_cast<face_faults *>(core->fault_user)->text += std::string(line) + "\n";
    }
    bool has(const char *part) const {
        return text.find(part) != std::string::npos;
    }
    // There was one with this part in its text; there was none; the lines of all.
    void refused(const char *part) {
        assert_true(has(part));
        text.clear();
    }
    void none() const {
        assert_string_equal(text.c_str(), "");
    }
    void are(const char *lines) {
        assert_string_equal(text.c_str(), lines);
        text.clear();
    }
};

// Binds tiles to offsets of their memories: an offset, its tile, the next offset, ...
template <typename At, typename T, typename... Rest>
static void bind_all(At at, T &tile, Rest &&...rest) {
    TASSIGN(tile, at);
    if constexpr (sizeof...(rest) > 0) {
        bind_all(std::forward<Rest>(rest)...);
    }
}

#endif

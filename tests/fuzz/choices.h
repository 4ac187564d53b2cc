// Random generators of the tests as fuzz targets: each of their decisions is a byte of the input, as
// long as there are bytes, and a random number from then on. A byte stands for a number of 64 bits,
// so that remainders and shifts of it are spread. Include this before what includes test.h.
//
// An input begins with two bytes that the random numbers are seeded by. So an input of two bytes is a
// case of the random tests, and more bytes change it from its beginning.

#ifndef FUZZ_CHOICES_H
#define FUZZ_CHOICES_H

#include "bytes.h"

static uint64_t choose(uint64_t *state);
#define TEST_RANDOM choose
#include "test.h"

static bytes choices;
static bool choices_are_held;  // what is drawn now is drawn again: by the state alone

static uint64_t choose(uint64_t *state) {
    uint64_t number = test_splitmix(state);
    if (choices.size > 0 && !choices_are_held) {
        uint64_t byte = take(&choices, 1);
        number = test_splitmix(&byte);
    }
    return number;
}

// Begins a case, and returns what to seed its generator with.
static inline uint64_t choices_begin(const uint8_t *data, size_t size) {
    const bytes all = {data, size};
    choices = all;
    choices_are_held = false;
    return take(&choices, 2) * UINT64_C(1000003);
}

#endif

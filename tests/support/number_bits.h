// Floats as their bits, and back.

#ifndef NUMBER_BITS_H
#define NUMBER_BITS_H

#include <stdint.h>
#include <string.h>

#define NUMBER_BITS(name, to, from)                                                                \
    static inline to name(from value) {                                                            \
        to result;                                                                                 \
        memcpy(&result, &value, sizeof result);                                                    \
        return result;                                                                             \
    }
NUMBER_BITS(f32_of, float, uint32_t)
NUMBER_BITS(f64_of, double, uint64_t)
NUMBER_BITS(bits_of_f32, uint32_t, float)
NUMBER_BITS(bits_of_f64, uint64_t, double)

#endif

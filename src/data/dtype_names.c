// Names and sizes of element types, and names of memories.

#include "../base/base.h"

uint32_t ptowsp_dtype_size(ptowsp_dtype dtype) {
    switch (dtype) {
#define PWSP_DTYPE_SIZE(name, value, bytes, text)                                                  \
    case PTOWSP_##name: return bytes;
        PTOWSP_DTYPES(PWSP_DTYPE_SIZE)
#undef PWSP_DTYPE_SIZE
    case PTOWSP_DTYPE_NONE:
    case PTOWSP_DTYPE_FORCE_INT: break;
    }
    return 0;
}

const char *ptowsp_dtype_name(ptowsp_dtype dtype) {
    switch (dtype) {
#define PWSP_DTYPE_NAME(name, value, bytes, text)                                                  \
    case PTOWSP_##name: return text;
        PTOWSP_DTYPES(PWSP_DTYPE_NAME)
#undef PWSP_DTYPE_NAME
    case PTOWSP_DTYPE_NONE:
    case PTOWSP_DTYPE_FORCE_INT: break;
    }
    return "none";
}

PWSP_TEXTS(ptowsp_location_name, ptowsp_location, PTOWSP_LOCATIONS, "none")

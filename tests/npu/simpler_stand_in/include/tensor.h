// A stand-in for PTO Runtime's tensors, as kernels and orchestrations see them: names and layout are
// those of its interface at 6ebaf77, the text is ours. See pto_orchestration_api.h.

#ifndef STAND_IN_TENSOR_H
#define STAND_IN_TENSOR_H

#include <cstdint>

enum class DataType : uint8_t {
    FLOAT32 = 0,
    FLOAT16,
    INT32,
    INT16,
    INT8,
    UINT8,
    BFLOAT16,
    INT64,
    UINT64,
    UINT16,
    UINT32,
    BOOL
};

inline uint64_t get_element_size(DataType type) {
    const uint8_t sizes[] = {4, 2, 4, 2, 1, 1, 2, 8, 8, 2, 4, 1};
    return sizes[static_cast<uint8_t>(type)];
}

struct PTO2TaskId {
    uint64_t raw;
};

struct alignas(64) ChipTensor {
    struct {
        uint64_t addr, size;
    } buffer;
    PTO2TaskId owner_task_id;
    uint64_t start_offset;
    int32_t version;
    uint32_t ndims;
    DataType dtype;
    bool manual_dep, is_contiguous;
    uint8_t address_space;
    uint32_t shapes[5];
    uint64_t extent_elem_cache;
    uint32_t strides[5];

    template <typename T> T *data_as() const {
        return reinterpret_cast<T *>(static_cast<uintptr_t>(buffer.addr));
    }
    ChipTensor view(const uint32_t part[], const uint32_t first[]) const {
        ChipTensor made = *this;
        for (uint32_t i = 0; i < ndims; i++) {
            made.start_offset += uint64_t(first[i]) * strides[i];
            made.shapes[i] = part[i];
        }
        made.is_contiguous = false;
        return made;
    }
};
static_assert(sizeof(ChipTensor) == 128, "ChipTensor");

// The runtime's part of a kernel's arguments.
inline uint32_t get_block_idx(const int64_t *args) {
    return static_cast<uint32_t>(args[48]);
}
inline uint32_t get_sub_block_id(const int64_t *args) {
    return static_cast<uint32_t>(args[49]);
}

#endif

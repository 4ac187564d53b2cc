// A header of the kernel's own: the bytes of a slot in UB.
#pragma once

#include <cstdint>

constexpr uint32_t kSlotBytes = 0x4000;

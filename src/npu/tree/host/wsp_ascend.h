// Running a tree on a device, with CANN. See wsp_ascend.cpp.

#ifndef WSP_ASCEND_H
#define WSP_ASCEND_H

#include "wsp_device.h"

namespace wsp {

struct DeviceOptions {
    int32_t device = 0;
    uint32_t aicpu_count = 1;
    uint32_t core_count = 0;  // of each unit that the program has
    uint32_t ring_size = 4096;
    int32_t timeout_ms = 50000;  // for the run
};

struct DeviceResult {
    ptowsp_status status = PTOWSP_OK;
    uint64_t index = PTOWSP_NO_INDEX;
    uint64_t task_count = 0;
    uint32_t in_flight_max = 0;
    char text[WSP_DEVICE_TEXT_SIZE] = "";
};

// Copies what is bound to the device, runs the program there, and copies back the tensors that it
// writes and the slots. What is bound has been checked. False with an error in the result.
bool run_on_device(const wsp_program &program, const wsp_bindings &bindings,
                   const DeviceOptions &options, DeviceResult *result);

}  // namespace wsp

#endif

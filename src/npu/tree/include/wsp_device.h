// The host's start parameter for the processors of a device: one wsp_device_run in device memory.
// Only in the build with CANN.

#ifndef WSP_DEVICE_H
#define WSP_DEVICE_H

#include "wsp_abi.h"

#define WSP_DEVICE_TEXT_SIZE 512

// Addresses are the device's.
typedef struct wsp_device_run {
    uint32_t abi_version;
    uint32_t aicpu_count, ring_size;
    uint32_t vector_count, cube_count;
    uint32_t arrived;        // atomic: threads of the AICPU take their numbers from it
    uint32_t stage;          // atomic: see wsp_device_main.cpp
    uint32_t left;           // atomic: threads but 0 that are done with the run's scheduler
    uint32_t time_limit_ms;  // of the AICPU's waits for cores and for each other
    uint32_t reserved;
    uint64_t bindings;  // wsp_bindings
    uint64_t lines;     // pwsp_line[vector_count + cube_count], vector cores first
    uint64_t tasks;     // a room for a task of each core, WSP_TASK_STRIDE bytes apart
    uint64_t fifos;     // 2 * WSP_FIFO_BYTES for each cube core; 0: the program has no MIX

    // Written by the AICPU.
    int32_t status;  // a ptowsp_status
    uint32_t in_flight_max;
    uint64_t index;  // of the task that the status is about, or PTOWSP_NO_INDEX
    uint64_t task_count;
    char text[WSP_DEVICE_TEXT_SIZE];
} wsp_device_run;

PTOWSP_STATIC_ASSERT(sizeof(wsp_device_run) == 96 + WSP_DEVICE_TEXT_SIZE, "wsp_device_run");

#endif

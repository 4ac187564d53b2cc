// Runs a program with its bindings: wsp_run.cpp schedules in this process, for threads or launches;
// wsp_ascend.cpp starts the AICPU and cores of a device, or launches there.

#ifndef WSP_RUN_H
#define WSP_RUN_H

#include "wsp_bindings.h"
#include "wsp_runner.h"
#include "wsp_scheduler.h"

namespace wsp {

// Options have been checked, and bindings verified. An error is in the bindings' failure.
ptowsp_status run_program(const wsp_program &program, Bindings *bindings,
                          const wsp_runner_options &options, wsp_runner_result *out_result);

class Stream;

// How the host launches kernels, if it is the driver: a stream for each unit, or null. `fetch` copies an
// element, from which a slot is loaded, from the device; or null.
struct Launches {
    Stream *streams[2];
    bool (*fetch)(void *user, const void *data, size_t size);
    void *user;
};

// With the scheduler in this process.
ptowsp_status run_here(const wsp_program &program, Bindings *bindings,
                       const wsp_runner_options &options, const Launches &launches,
                       wsp_runner_result *out_result);

inline bool has_kernels_of(const wsp_program &program, uint32_t unit) {
    for (uint32_t i = 1; i < program.kernel_count; i++) {
        if (program.kernels[i].unit == unit) {
            return true;
        }
    }
    return false;
}

// The number of cores of a unit in a run; 0 if the program has no kernels for it. With kernels of
// MIX there are two vector cores or more for each cube core.
inline uint32_t core_count_of(const wsp_program &program, uint32_t unit,
                              const wsp_runner_options &options) {
    const bool has_mix = has_kernels_of(program, PTOWSP_UNIT_MIX);
    if (!has_mix && !has_kernels_of(program, unit)) {
        return 0;
    }
    uint32_t count =
        options.core_count ? options.core_count : lane_count_of(program.schedule, unit);
    if (has_mix && unit == PTOWSP_UNIT_CUBE) {
        const uint32_t most = CORE_COUNT_MAX / PWSP_BLOCK_VECTORS;
        return count < most ? count : most;
    }
    if (has_mix) {
        const uint32_t least =
            PWSP_BLOCK_VECTORS * core_count_of(program, PTOWSP_UNIT_CUBE, options);
        count = count > least ? count : least;
    }
    return count < CORE_COUNT_MAX ? count : CORE_COUNT_MAX;
}

}  // namespace wsp

#endif

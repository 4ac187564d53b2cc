// Runs a program with its bindings: wsp_run.cpp does it on threads of this machine, wsp_ascend.cpp
// on the device.

#ifndef WSP_RUN_H
#define WSP_RUN_H

#include "wsp_bindings.h"
#include "wsp_runner.h"

namespace wsp {

// Options have been checked, and bindings verified. An error is in the bindings' failure.
ptowsp_status run_program(const wsp_program &program, Bindings *bindings,
                          const wsp_runner_options &options, wsp_runner_result *out_result);

// The number of cores of a unit in a run; 0 if the program has no kernels for it.
inline uint32_t core_count_of(const wsp_program &program, uint32_t unit,
                              const wsp_runner_options &options) {
    uint32_t count =
        options.core_count ? options.core_count : lane_count_of(program.schedule, unit);
    count = count < CORE_COUNT_MAX ? count : CORE_COUNT_MAX;
    for (uint32_t i = 1; i < program.kernel_count; i++) {
        if (program.kernels[i].unit == unit) {
            return count;
        }
    }
    return 0;
}

}  // namespace wsp

#endif

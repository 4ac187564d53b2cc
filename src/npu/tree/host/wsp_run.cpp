// Threads stand in for the device.

#ifndef WSP_ASCEND

#include "wsp_run.h"

namespace wsp {

ptowsp_status run_program(const wsp_program &program, Bindings *bindings,
                          const wsp_runner_options &options, wsp_runner_result *out_result) {
    const Failure failure = run_on_threads(program, bindings->table(), options, out_result);
    if (failure.status != PTOWSP_OK) {
        bindings->failure = failure;
    }
    return failure.status;
}

}  // namespace wsp

#endif

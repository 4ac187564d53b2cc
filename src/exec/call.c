// What a kernel that returns no cycles means.

#include "call.h"

#include <inttypes.h>

PWSP_INTERNAL bool pwsp_run_fail_kernel(pwsp_expander *x, ptowsp_cycles result) {
    ptowsp_status status = (ptowsp_status)(int64_t)result;
    if ((int64_t)result < PTOWSP_SKIPPED) {  // the last one
        status = PTOWSP_KERNEL_FAILED;
    }
    pwsp_expander_fail(x, status, x->task.index, "task %" PRIu64 " failed: %s", x->task.index,
                       ptowsp_status_name(status));
    return false;
}

// What a kernel that returns no cycles means, and a key that cannot be read.

#include "call.h"

#include <inttypes.h>

PWSP_INTERNAL ptowsp_status pwsp_kernel_status(ptowsp_cycles result) {
    PTOWSP_ASSERT(result > PTOWSP_CYCLES_MAX);
    bool is_status = (int64_t)result >= PTOWSP_LEAKED;  // the last one
    return is_status ? (ptowsp_status)(int64_t)result : PTOWSP_KERNEL_FAILED;
}

PWSP_INTERNAL bool pwsp_run_fail_kernel(pwsp_expander *x, ptowsp_cycles result) {
    ptowsp_status status = pwsp_kernel_status(result);
    pwsp_expander_fail(x, status, x->task.index, "task %" PRIu64 " failed: %s", x->task.index,
                       ptowsp_status_name(status));
    return false;
}

PWSP_INTERNAL bool pwsp_run_fail_keys(pwsp_expander *x) {
    const pwsp_array_info *array =
        PWSP_PROGRAM_AT(x->program, arrays, pwsp_array_info, x->fault.array);
    pwsp_expander_fail(x, PTOWSP_INVALID_PARAMS, pwsp_error_index(x->fault.index),
                       "a key of the schedule reads array %s at %" PRId64 "; it has %" PRIu64
                       " elements",
                       array->name, x->fault.index, x->arrays[x->fault.array].count);
    return false;
}

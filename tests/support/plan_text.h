// Faults of planning as their texts.

#ifndef PLAN_TEXT_H
#define PLAN_TEXT_H

#include "test.h"

static inline void fault_text_is(const ptowsp_plan_info *info, const char *text) {
    char line[160];
    ptowsp_plan_explain(info, TEST_TEXT(line));
    assert_string_equal(line, text);
}

// Asserts that a call that plans, or checks, has this status, and leaves a fault with this text.
#define fault_is(call, status, info, text)                                                         \
    (assert_int_equal(call, status), fault_text_is(info, text))

#endif

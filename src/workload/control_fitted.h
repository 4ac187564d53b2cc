// Published costs of control in nanoseconds, by tools/fit --control: do not edit. Cost, runners, value;
// beside it the row: medians, means, or the middle of two numbers.

#ifndef PWSP_CONTROL_FITTED_H
#define PWSP_CONTROL_FITTED_H

// clang-format off
#define PWSP_FITTED_CONTROL(C)                                                                                                                \
    C(LAUNCH, PWSP_BY_HOST, 43300)                          /* host run() fixed: 43.3 us */                                                   \
    C(LAUNCH, PWSP_BY_AICPU | PWSP_BY_KERNELS, 8080)        /* host run() per task: 8.08 us */                                                \
    C(SUBMIT, PWSP_BY_HOST, 8080)                           /* host run() per task: 8.08 us */                                                \
    C(START_FIRST, PWSP_BY_AICPU | PWSP_BY_KERNELS, 300)    /* AICore first-task tail: 0.3-5.6 us by core (p50 1.77, p75 3.39, max 5.31) */   \
    C(START_QUARTER, PWSP_BY_AICPU | PWSP_BY_KERNELS, 1035) /* AICore first-task tail: 0.3-5.6 us by core (p50 1.77, p75 3.39, max 5.31) */   \
    C(START_HALF, PWSP_BY_AICPU | PWSP_BY_KERNELS, 1770)    /* AICore first-task tail: 0.3-5.6 us by core (p50 1.77, p75 3.39, max 5.31) */   \
    C(START_MOST, PWSP_BY_AICPU | PWSP_BY_KERNELS, 3390)    /* AICore first-task tail: 0.3-5.6 us by core (p50 1.77, p75 3.39, max 5.31) */   \
    C(START_LAST, PWSP_BY_AICPU | PWSP_BY_KERNELS, 5310)    /* AICore first-task tail: 0.3-5.6 us by core (p50 1.77, p75 3.39, max 5.31) */   \
    C(DELIVER, PWSP_BY_HOST, 1770)                          /* AICore first-task tail: 0.3-5.6 us by core (p50 1.77, p75 3.39, max 5.31) */   \
    C(SUBMIT, PWSP_BY_AICPU, 874)                           /* AICPU orchestrator per submitted task: 0.874 us (16704 tasks in 14601.6 us) */ \
    C(DISPATCH, PWSP_BY_AICPU, 4500)                        /* AICPU scheduling per task: 5-10 us (dispatch 3-6, completion 2-4) */           \
    C(COMPLETE, PWSP_BY_AICPU, 3000)                        /* AICPU scheduling per task: 5-10 us (dispatch 3-6, completion 2-4) */           \
    C(DELIVER, PWSP_BY_AICPU, 140)                          /* AICPU to AICore (DMB) end to end: 140 ns */                                    \
    C(SWITCH, PWSP_BY_AICPU, 349)                           /* AICore task setup (payload dcci + ACK): 349 ns mean, 320 p50 */                \
    C(NOTICE, PWSP_BY_AICPU, 600)                           /* AICore to AICPU via COND: 600 ns avg, 180 min, 2020 max */                     \
    C(POLL, PWSP_BY_AICPU, 100)                             /* AICPU LDR of COND: 95-105 ns */

// clang-format on

#endif

// The line through which an AICPU thread and a core talk: 64 bytes of shared memory. No locks, no
// read-modify-write: each field has one writer at a time, so it works between processors that share
// nothing else.
//
//      field        written by   when                                         order
//      aicpu_ready  AICPU        at open: the line may be used                release
//      aicore_done  core         then: its number + 1, it polls               release
//      task         AICPU        a task is given; task_status is IDLE         relaxed
//      task_status  AICPU        then: ASSIGNED                               release
//                   core         the task is done: DONE                       release
//                   AICPU        its result has been read: IDLE               release
//      control      AICPU        at close, task_status is IDLE: QUIT          release
//
// Whoever reads what another one writes reads it with acquire (task after task_status). So
// task_status hands over the task, what it points to, and the line's turn:
//
//            AICPU: ASSIGNED             core: DONE
//      IDLE ----------------> ASSIGNED --------------> DONE
//        ^                                              |
//        +-------------- AICPU: IDLE -------------------+
//
// The AICPU writes what `task` points to while IDLE, the core reads it and writes its result there
// while ASSIGNED, the AICPU reads that while DONE. QUIT is written at IDLE only, so a core that
// sees it has nothing to do.
//
// All but IDLE are sequentially consistent here, which is more than release and acquire, as threads
// sleep: see src/base/sleeper.h. tests/models/handshake.pml is a model of both sides.

#ifndef PWSP_HANDSHAKE_H
#define PWSP_HANDSHAKE_H

#include "../base/atomic.h"
#include "../base/base.h"

enum { PWSP_TASK_IDLE = 0, PWSP_TASK_ASSIGNED, PWSP_TASK_DONE };
enum { PWSP_CONTROL_RUN = 0, PWSP_CONTROL_QUIT };

typedef struct pwsp_handshake {
    uint32_t aicpu_ready;
    uint32_t aicore_done;
    PWSP_ALIGNAS(8) uint64_t task;  // an address
    uint32_t task_status;
    uint32_t control;
    uint8_t reserved[40];
} pwsp_handshake;

PTOWSP_STATIC_ASSERT(sizeof(pwsp_handshake) == 64, "a line has 64 bytes");

// -- AICPU ----------------------------------------------------------------------------------------

PWSP_INLINE void pwsp_aicpu_open_line(pwsp_handshake *line) {
    pwsp_store_seq_cst(&line->aicpu_ready, 1u);
}

PWSP_INLINE bool pwsp_aicpu_sees_core(const pwsp_handshake *line, uint32_t core) {
    return pwsp_load_seq_cst(&line->aicore_done) == core + 1;
}

PWSP_INLINE uint32_t pwsp_aicpu_status(const pwsp_handshake *line) {
    return pwsp_load_acquire(&line->task_status);
}

// Requires IDLE.
PWSP_INLINE void pwsp_aicpu_give(pwsp_handshake *line, const void *task) {
    PTOWSP_ASSERT(pwsp_load_relaxed(&line->task_status) == PWSP_TASK_IDLE);
    pwsp_store_relaxed(&line->task, (uint64_t)(uintptr_t)task);
    pwsp_store_seq_cst(&line->task_status, (uint32_t)PWSP_TASK_ASSIGNED);
}

// The result has been read. Requires DONE.
PWSP_INLINE void pwsp_aicpu_take_back(pwsp_handshake *line) {
    PTOWSP_ASSERT(pwsp_load_relaxed(&line->task_status) == PWSP_TASK_DONE);
    pwsp_store_release(&line->task_status, (uint32_t)PWSP_TASK_IDLE);
}

// Requires IDLE.
PWSP_INLINE void pwsp_aicpu_quit_line(pwsp_handshake *line) {
    PTOWSP_ASSERT(pwsp_load_relaxed(&line->task_status) == PWSP_TASK_IDLE);
    pwsp_store_seq_cst(&line->control, (uint32_t)PWSP_CONTROL_QUIT);
}

// -- core -----------------------------------------------------------------------------------------

PWSP_INLINE bool pwsp_core_may_begin(const pwsp_handshake *line) {
    return pwsp_load_seq_cst(&line->aicpu_ready) != 0;
}

PWSP_INLINE void pwsp_core_begin(pwsp_handshake *line, uint32_t core) {
    pwsp_store_seq_cst(&line->aicore_done, core + 1);
}

// The task that was given, or NULL.
PWSP_INLINE void *pwsp_core_poll(const pwsp_handshake *line) {
    if (pwsp_load_seq_cst(&line->task_status) != PWSP_TASK_ASSIGNED) {
        return NULL;
    }
    return (void *)(uintptr_t)pwsp_load_relaxed(&line->task);
}

// Its result has been written.
PWSP_INLINE void pwsp_core_done(pwsp_handshake *line) {
    pwsp_store_seq_cst(&line->task_status, (uint32_t)PWSP_TASK_DONE);
}

PWSP_INLINE bool pwsp_core_must_quit(const pwsp_handshake *line) {
    return pwsp_load_seq_cst(&line->control) == PWSP_CONTROL_QUIT;
}

#endif

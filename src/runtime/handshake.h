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
// Fields of another processor are read with acquire (task after task_status). So task_status hands
// over the task, the data it points to, and the line's turn:
//
//            AICPU: ASSIGNED             core: DONE
//      IDLE ----------------> ASSIGNED --------------> DONE
//        ^                                              |
//        +-------------- AICPU: IDLE -------------------+
//
// The AICPU writes the data after `task` while IDLE. The core reads it and writes its result there
// while ASSIGNED. The AICPU reads the result while DONE. QUIT is written at IDLE only, so a core
// that sees it has no task.
//
// Here all fields but IDLE are sequentially consistent, which is more than release and acquire,
// because threads sleep: see src/base/sleeper.h. tests/models/handshake.pml is a model of both
// sides.
//
// Devices made of threads and emitted trees use these functions. Processors with incoherent caches
// define the hooks below before they include this file:
//
//      PWSP_LINE_FN            declares a function of a line
//      PWSP_LINE_GM            qualifies data in global memory
//      PWSP_LINE_PULL(line)    drops the cached line, before others' fields are read
//      PWSP_LINE_PUSH(line)    writes a line back, after a field has been written
//      PWSP_LINE_LOAD(field)   reads a field; earlier writes are visible after that
//      PWSP_LINE_STORE(field, value), PWSP_LINE_RELEASE(field, value), PWSP_LINE_SET(field, value)
//                              write a field: seq_cst, release, relaxed

#ifndef PWSP_HANDSHAKE_H
#define PWSP_HANDSHAKE_H

#include "../base/atomic.h"
#include "../base/base.h"

#ifndef PWSP_LINE_FN
#define PWSP_LINE_FN PWSP_INLINE
#endif
#ifndef PWSP_LINE_GM
#define PWSP_LINE_GM
#endif
#ifndef PWSP_LINE_PULL
#define PWSP_LINE_PULL(line) ((void)0)
#define PWSP_LINE_PUSH(line) ((void)0)
#endif
#ifndef PWSP_LINE_LOAD
#define PWSP_LINE_LOAD(field)           pwsp_load_seq_cst(field)
#define PWSP_LINE_STORE(field, value)   pwsp_store_seq_cst(field, value)
#define PWSP_LINE_RELEASE(field, value) pwsp_store_release(field, value)
#define PWSP_LINE_SET(field, value)     pwsp_store_relaxed(field, value)
#endif

enum { PWSP_TASK_IDLE = 0, PWSP_TASK_ASSIGNED, PWSP_TASK_DONE };
enum { PWSP_CONTROL_RUN = 0, PWSP_CONTROL_QUIT };

typedef struct pwsp_line {
    uint32_t aicpu_ready;
    uint32_t aicore_done;
    PWSP_ALIGNAS(8) uint64_t task;  // an address
    uint32_t task_status;
    uint32_t control;
    uint8_t reserved[40];
} pwsp_line;

PTOWSP_STATIC_ASSERT(sizeof(pwsp_line) == 64, "a line has 64 bytes");

// -- AICPU ----------------------------------------------------------------------------------------

PWSP_LINE_FN void pwsp_aicpu_open_line(PWSP_LINE_GM pwsp_line *line) {
    PWSP_LINE_STORE(&line->aicpu_ready, 1u);
    PWSP_LINE_PUSH(line);
}

PWSP_LINE_FN bool pwsp_aicpu_sees_core(const PWSP_LINE_GM pwsp_line *line, uint32_t core) {
    PWSP_LINE_PULL(line);
    return PWSP_LINE_LOAD(&line->aicore_done) == core + 1;
}

PWSP_LINE_FN uint32_t pwsp_aicpu_status(const PWSP_LINE_GM pwsp_line *line) {
    PWSP_LINE_PULL(line);
    return PWSP_LINE_LOAD(&line->task_status);
}

// Requires IDLE.
PWSP_LINE_FN void pwsp_aicpu_give(PWSP_LINE_GM pwsp_line *line, uint64_t task) {
    PTOWSP_ASSERT(PWSP_LINE_LOAD(&line->task_status) == PWSP_TASK_IDLE);
    PWSP_LINE_SET(&line->task, task);
    PWSP_LINE_STORE(&line->task_status, (uint32_t)PWSP_TASK_ASSIGNED);
    PWSP_LINE_PUSH(line);
}

// The result has been read. Requires DONE.
PWSP_LINE_FN void pwsp_aicpu_take_back(PWSP_LINE_GM pwsp_line *line) {
    PTOWSP_ASSERT(PWSP_LINE_LOAD(&line->task_status) == PWSP_TASK_DONE);
    PWSP_LINE_RELEASE(&line->task_status, (uint32_t)PWSP_TASK_IDLE);
    PWSP_LINE_PUSH(line);
}

// Requires IDLE.
PWSP_LINE_FN void pwsp_aicpu_quit_line(PWSP_LINE_GM pwsp_line *line) {
    PTOWSP_ASSERT(PWSP_LINE_LOAD(&line->task_status) == PWSP_TASK_IDLE);
    PWSP_LINE_STORE(&line->control, (uint32_t)PWSP_CONTROL_QUIT);
    PWSP_LINE_PUSH(line);
}

// The core has not answered in time, and will not be used again. If it ends after all, it leaves.
PWSP_LINE_FN void pwsp_aicpu_quit_lost_line(PWSP_LINE_GM pwsp_line *line) {
    PWSP_LINE_STORE(&line->control, (uint32_t)PWSP_CONTROL_QUIT);
    PWSP_LINE_PUSH(line);
}

// -- core -----------------------------------------------------------------------------------------

PWSP_LINE_FN bool pwsp_core_may_begin(const PWSP_LINE_GM pwsp_line *line) {
    PWSP_LINE_PULL(line);
    return PWSP_LINE_LOAD(&line->aicpu_ready) != 0;
}

PWSP_LINE_FN void pwsp_core_begin(PWSP_LINE_GM pwsp_line *line, uint32_t core) {
    PWSP_LINE_STORE(&line->aicore_done, core + 1);
    PWSP_LINE_PUSH(line);
}

// The address of the assigned task, or 0.
PWSP_LINE_FN uint64_t pwsp_core_poll(const PWSP_LINE_GM pwsp_line *line) {
    PWSP_LINE_PULL(line);
    if (PWSP_LINE_LOAD(&line->task_status) != PWSP_TASK_ASSIGNED) {
        return 0;
    }
    return PWSP_LINE_LOAD(&line->task);
}

// The result has been written.
PWSP_LINE_FN void pwsp_core_done(PWSP_LINE_GM pwsp_line *line) {
    PWSP_LINE_STORE(&line->task_status, (uint32_t)PWSP_TASK_DONE);
    PWSP_LINE_PUSH(line);
}

PWSP_LINE_FN bool pwsp_core_must_quit(const PWSP_LINE_GM pwsp_line *line) {
    PWSP_LINE_PULL(line);
    return PWSP_LINE_LOAD(&line->control) == PWSP_CONTROL_QUIT;
}

#endif

// How AICPU threads and cores talk: the line of wsp_abi.h, through the compiler's atomics, and the
// bell that wakes whoever sleeps.
//
// On the device nobody sleeps: processors poll, and bells do nothing. Threads that stand in for
// them share the machine with others, so they spin a little, then let others go first, and then
// sleep until their bell is rung.
//
//      waits                                       rings
//      ticket = bell.ticket()                      writes what the other one looks for
//      looks for work; there is none               bell.ring()
//      bell.wait(ticket)
//
// Ringing counts, and then looks for sleepers; waiting says that it sleeps, and then looks at the
// count. All four are sequentially consistent, so that one of the two sees the other.

#ifndef WSP_LINE_H
#define WSP_LINE_H

#include "wsp_abi.h"

#if !defined(WSP_ASCEND)
#include <condition_variable>
#include <mutex>
#include <sched.h>
#endif

namespace wsp {

// -- the line, as the AICPU uses it ---------------------------------------------------------------

inline void open_line(wsp_line *line) {
    __atomic_store_n(&line->aicpu_ready, 1u, __ATOMIC_RELEASE);
}

inline bool is_polling(const wsp_line *line, uint32_t core) {
    return __atomic_load_n(&line->aicore_done, __ATOMIC_ACQUIRE) == core + 1;
}

inline bool is_done(const wsp_line *line) {
    return __atomic_load_n(&line->task_status, __ATOMIC_ACQUIRE) == WSP_DONE;
}

inline bool is_idle(const wsp_line *line) {
    return __atomic_load_n(&line->task_status, __ATOMIC_ACQUIRE) == WSP_IDLE;
}

// Requires IDLE.
inline void give_task(wsp_line *line, wsp_task *task) {
    __atomic_store_n(&line->task, (uint64_t)(uintptr_t)task, __ATOMIC_RELAXED);
    __atomic_store_n(&line->task_status, (uint32_t)WSP_ASSIGNED, __ATOMIC_RELEASE);
}

// Requires DONE: the result has been read.
inline void take_back(wsp_line *line) {
    __atomic_store_n(&line->task_status, (uint32_t)WSP_IDLE, __ATOMIC_RELEASE);
}

inline void close_line(wsp_line *line) {
    __atomic_store_n(&line->control, (uint32_t)WSP_QUIT, __ATOMIC_RELEASE);
}

// -- the line, as a core uses it ------------------------------------------------------------------

inline bool is_open(const wsp_line *line) {
    return __atomic_load_n(&line->aicpu_ready, __ATOMIC_ACQUIRE) != 0;
}

inline void begin_polling(wsp_line *line, uint32_t core) {
    __atomic_store_n(&line->aicore_done, core + 1, __ATOMIC_RELEASE);
}

// The task that was given, or NULL.
inline wsp_task *poll_task(const wsp_line *line) {
    if (__atomic_load_n(&line->task_status, __ATOMIC_ACQUIRE) != WSP_ASSIGNED) {
        return nullptr;
    }
    return reinterpret_cast<wsp_task *>(
        static_cast<uintptr_t>(__atomic_load_n(&line->task, __ATOMIC_RELAXED)));
}

inline void end_task(wsp_line *line) {
    __atomic_store_n(&line->task_status, (uint32_t)WSP_DONE, __ATOMIC_RELEASE);
}

inline bool must_quit(const wsp_line *line) {
    return __atomic_load_n(&line->control, __ATOMIC_ACQUIRE) == WSP_QUIT;
}

// -- the bell -------------------------------------------------------------------------------------

#if defined(WSP_ASCEND)

class Bell {
  public:
    uint32_t ticket() const {
        return 0;
    }
    void ring() {
    }
    void wait(uint32_t) {
    }
};

#else

class Bell {
  public:
    // To be taken before looking for work.
    uint32_t ticket() const {
        return __atomic_load_n(&count_, __ATOMIC_SEQ_CST);
    }

    void ring() {
        __atomic_fetch_add(&count_, 1u, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&sleeper_count_, __ATOMIC_SEQ_CST) > 0) {
            // Who holds the lock has not gone to sleep yet, and would miss the call.
            { std::lock_guard<std::mutex> guard(mutex_); }
            condition_.notify_all();
        }
    }

    // Returns when the bell has been rung since the ticket was taken.
    void wait(uint32_t ticket_before) {
        for (uint32_t round = 0; round < SPIN_COUNT + YIELD_COUNT; round++) {
            if (ticket() != ticket_before) {
                return;
            }
            if (round >= SPIN_COUNT) {
                sched_yield();
            }
        }
        std::unique_lock<std::mutex> guard(mutex_);
        __atomic_fetch_add(&sleeper_count_, 1u, __ATOMIC_SEQ_CST);
        while (ticket() == ticket_before) {
            condition_.wait(guard);
        }
        __atomic_fetch_sub(&sleeper_count_, 1u, __ATOMIC_SEQ_CST);
    }

  private:
    static constexpr uint32_t SPIN_COUNT = 100, YIELD_COUNT = 10;
    uint32_t count_ = 0, sleeper_count_ = 0;
    std::mutex mutex_;  // protects nothing: makes looking at the count and sleeping one step
    std::condition_variable condition_;
};

#endif

}  // namespace wsp

#endif

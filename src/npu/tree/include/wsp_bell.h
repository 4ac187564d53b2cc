// The bell that wakes an AICPU thread or a core.
//
// On the device no thread sleeps: processors poll, and bells do nothing. Threads that stand in for
// them share the machine with others, so they spin a little, then yield, and then sleep until their
// bell rings.
//
//      waits                                       rings
//      ticket = bell.ticket()                      writes the work that the other one looks for
//      looks for work; there is none               bell.ring()
//      bell.wait(ticket)
//
// Ringing counts, and then looks for sleepers; waiting registers as a sleeper, and then looks at
// the count. All four are sequentially consistent, so one of the two sees the other.

#ifndef WSP_BELL_H
#define WSP_BELL_H

#include "wsp_core.h"

namespace wsp {

#if defined(WSP_ASCEND) && !defined(WSP_HOST)

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
    Bell() {
        pwsp_sleepers_init(&sleepers_);
    }
    ~Bell() {
        pwsp_sleepers_destroy(&sleepers_);
    }
    Bell(const Bell &) = delete;
    Bell &operator=(const Bell &) = delete;

    // Take it before looking for work.
    uint32_t ticket() const {
        return pwsp_load_seq_cst(&count_);
    }

    void ring() {
        pwsp_fetch_add_seq_cst(&count_, 1u);
        pwsp_sleepers_wake(&sleepers_, true);
    }

    // Returns when the bell has been rung since the ticket was taken.
    void wait(uint32_t before) {
        uint32_t round = 0;
        while (ticket() == before && pwsp_spin(&round, SPIN_COUNT, YIELD_COUNT)) {
        }
        while (ticket() == before) {
            pwsp_sleepers_begin(&sleepers_);
            pwsp_sleepers_end(&sleepers_, ticket() != before);
        }
    }

  private:
    static constexpr uint32_t SPIN_COUNT = 100, YIELD_COUNT = 10;
    uint32_t count_ = 0;
    pwsp_sleepers sleepers_;
};

#endif

}  // namespace wsp

#endif

// Edges that others imply: if c waits for b, and b for a, directly or by a chain, c need not wait for a.
// Chains are known as far back as REACH submits, which bounds the cost. Longer edges stay.
//
//      bit i of a submit's row: the submit i + 1 before it comes before it

#ifndef WSP_ANCESTORS_H
#define WSP_ANCESTORS_H

#include "wsp_list.h"

namespace wsp {

class Ancestors {
  public:
    // Removes implied waits of submit `number`. The others stay in order.
    void prune(uint32_t number, List<uint32_t> *waits) const {
        const Row row = row_of(number, *waits);
        size_t kept = 0;
        for (uint32_t wait : *waits) {
            (*waits)[kept] = wait;
            kept += !has(row, number - 1 - wait);
        }
        waits->resize(kept);
    }

    // Submits are added in the order of their numbers.
    void add(uint32_t number, const List<uint32_t> &waits) {
        Row row = row_of(number, waits);
        for (uint32_t wait : waits) {
            const uint32_t distance = number - 1 - wait;
            if (distance < REACH) {
                row.words[distance / 64] |= uint64_t(1) << distance % 64;
            }
        }
        if (number >= rows_.size() && rows_.size() < REACH) {
            rows_.resize(number + size_t(1));
        }
        rows_[number % REACH] = row;
    }

  private:
    static constexpr uint32_t REACH = 512, WORDS = REACH / 64;
    struct Row {
        uint64_t words[WORDS] = {};
    };

    static bool has(const Row &row, uint32_t distance) {
        return distance < REACH && (row.words[distance / 64] >> distance % 64 & 1);
    }

    // Submits before any of the waits: their rows, as seen from `number`.
    Row row_of(uint32_t number, const List<uint32_t> &waits) const {
        Row row;
        for (uint32_t wait : waits) {
            const uint32_t shift = number - wait, skip = shift / 64, bits = shift % 64;
            if (shift >= REACH) {
                continue;
            }
            const uint64_t *from = rows_[wait % REACH].words;
            for (uint32_t i = skip; i < WORDS; i++) {
                row.words[i] |= from[i - skip] << bits;
                if (bits && i > skip) {
                    row.words[i] |= from[i - skip - 1] >> (64 - bits);
                }
            }
        }
        return row;
    }

    List<Row> rows_;  // by number % REACH
};

}  // namespace wsp

#endif

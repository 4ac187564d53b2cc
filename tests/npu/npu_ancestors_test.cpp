// Edges that others imply (wsp_ancestors.h), against the transitive closure of random graphs: within REACH,
// an edge is left out if and only if another one implies it.

#include <algorithm>
#include <bitset>
#include <vector>

#include <stdint.h>

#include "src/npu/tree/include/wsp_list.h"

#include "src/npu/tree/simpler/wsp_ancestors.h"

#include "test.h"

enum { SUBMITS = 1600, REACH = 512 };

using wsp::Ancestors;
using wsp::List;

typedef std::bitset<SUBMITS> Set;

// Ascending and different, mostly of the last few.
static List<uint32_t> random_waits(uint64_t *seed, uint32_t number) {
    List<uint32_t> waits;
    const int64_t count = test_random_in(seed, 0, 12);
    for (int64_t i = 0; i < count && number > 0; i++) {
        const int64_t far = test_random_in(seed, 0, 5) ? 40 : 700;
        const int64_t back = test_random_in(seed, 1, std::min<int64_t>(far, number));
        waits.push_back(number - static_cast<uint32_t>(back));
    }
    std::sort(waits.begin(), waits.end());
    waits.resize(static_cast<size_t>(std::unique(waits.begin(), waits.end()) - waits.begin()));
    return waits;
}

TEST(ancestors__leave_out_what_a_closure_implies) {
    uint64_t seed = test_seed();
    uint32_t implied_count = 0, kept_count = 0;
    for (int round = 0; TEST_ROUNDS(round, 6); round++) {
        Ancestors ancestors;
        std::vector<Set> before(SUBMITS);  // by submit, all that come before it
        for (uint32_t n = 0; n < SUBMITS; n++) {
            const List<uint32_t> waits = random_waits(&seed, n);
            List<uint32_t> pruned = waits;
            Set implied;
            for (uint32_t wait : waits) {
                before[n] |= before[wait];
                before[n].set(wait);
                implied |= n - wait < REACH ? before[wait] : Set();
            }
            ancestors.prune(n, &pruned);
            size_t at = 0;
            for (uint32_t wait : waits) {
                const bool is_left_out = n - wait <= REACH && implied.test(wait);
                implied_count += is_left_out;
                kept_count += !is_left_out;
                if (!is_left_out) {
                    assert_true(at < pruned.size() && pruned[at] == wait);
                    at++;
                }
            }
            assert_int_equal(at, pruned.size());
            ancestors.add(n, pruned);
        }
    }
    assert_true(implied_count > 1000 && kept_count > 1000);
}

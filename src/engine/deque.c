// The deque operations that touch the shared word; see deque.h for the protocol.

#include "deque.h"

PWSP_INTERNAL bool pwsp_deque_has_room(pwsp_deque *deque) {
    uint64_t word = pwsp_load_acquire(&deque->word);  // (4), pairs with (3)
    deque->limit = deque->split - pwsp_deque_offers(word) + PWSP_DEQUE_SIZE;
    return deque->bottom != deque->limit;
}

PWSP_INTERNAL void pwsp_deque_publish(pwsp_deque *deque, uint32_t count) {
    PTOWSP_ASSERT(count <= pwsp_deque_held(deque));
    deque->split += count;
    uint64_t word = pwsp_load_relaxed(&deque->word), wanted;
    do {
        wanted = pwsp_deque_word((word >> 32) + 1, deque->split, (uint32_t)word);
    } while (!pwsp_cas_seq_cst(&deque->word, &word, wanted));  // (1), pairs with (2)
}

PWSP_INTERNAL uint32_t pwsp_deque_reclaim(pwsp_deque *deque, uint32_t count) {
    uint64_t word = pwsp_load_relaxed(&deque->word), wanted;
    uint32_t taken;
    do {
        uint32_t offers = pwsp_deque_offers(word);
        taken = offers < count ? offers : count;
        if (taken == 0) {
            return 0;
        }
        wanted = pwsp_deque_word(word >> 32, deque->split - taken, (uint32_t)word);
    } while (!pwsp_cas_seq_cst(&deque->word, &word, wanted));
    deque->split -= taken;
    return taken;
}

PWSP_INTERNAL uint32_t pwsp_deque_steal(pwsp_deque *victim, uint32_t most, uint32_t *out_tasks) {
    uint64_t word = pwsp_load_acquire(&victim->word), wanted;  // (2), pairs with (1)
    uint32_t taken;
    do {
        uint32_t offers = pwsp_deque_offers(word);
        taken = offers - offers / 2;
        taken = taken < most ? taken : most;
        if (taken == 0) {
            return 0;
        }
        for (uint32_t i = 0; i < taken; i++) {
            uint32_t from = ((uint32_t)word + i) % PWSP_DEQUE_SIZE;
            out_tasks[i] = pwsp_load_relaxed(&victim->slots[from]);
        }
        wanted = pwsp_deque_word(word >> 32, (uint32_t)(word >> 16), (uint32_t)word + taken);
    } while (!pwsp_cas_seq_cst(&victim->word, &word, wanted));  // (3), pairs with (4)
    return taken;
}

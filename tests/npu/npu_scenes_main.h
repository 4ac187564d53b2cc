// The second half of npu_scenes.h.

#ifndef NPU_SCENES_MAIN_H
#define NPU_SCENES_MAIN_H

#include "npu_kernel_compare.h"

static batch scenes_batches[2];  // of A2/A3, of A5

static batch *scenes_batch(const kt *t) {
    return &scenes_batches[t->config.machine && t->config.machine->family == PTOWSP_FAMILY_A5];
}

static bool scenes_want(const kt *t) {
    static uint32_t number;
    const uint32_t share = (uint32_t)test_share(KEEP_MAX);
    return number++ % (KEEP_EVERY * KEEP_MAX / share) == 0 && scenes_batch(t)->count < share;
}

static bool scenes_keep(const kt *t) {
    batch *b = scenes_batch(t);
    b->is_a5 = b == &scenes_batches[1];
    batch_add(b, t);
    return true;
}

static void scenes_play(batch *b) {
    if (b->count) {
        batch_play(b, "");
    }
}

TEST(scenes__are_those_of_the_library_on_a2a3) {
    scenes_play(&scenes_batches[0]);
}

TEST(scenes__are_those_of_the_library_on_a5) {
    scenes_play(&scenes_batches[1]);
}

#endif

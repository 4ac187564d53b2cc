// Work descriptors: memory, printing, tiers.
//
// Descriptors are allocated at 64 bytes, so that a lane's share begins on a cache line and vector
// stores stay inside lines. The block remembers its own size in front of them:
//
//      base ... padding ... [pwsp_work_block] [work 0] [work 1] ...
//                                             ^ multiple of 64, what the caller sees

#include "../base/context.h"
#include "../base/text.h"

#define PWSP_WORK_ALIGN 64

typedef struct pwsp_work_block {
    void *base;
    size_t size;
} pwsp_work_block;

PTOWSP_STATIC_ASSERT(sizeof(pwsp_work_block) <= PWSP_WORK_ALIGN, "the block fits before the work");

ptowsp_status ptowsp_work_create(ptowsp_context *context, uint64_t count, ptowsp_work **out_work) {
    PTOWSP_ASSERT(context);
    if (!out_work) {
        return pwsp_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "work_create: out_work is NULL");
    }
    *out_work = NULL;
    if (count == 0 || count > (SIZE_MAX / 2) / sizeof(ptowsp_work)) {
        return pwsp_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "work_create: count %llu is not in 1 to %llu", (unsigned long long)count,
                         (unsigned long long)((SIZE_MAX / 2) / sizeof(ptowsp_work)));
    }
    size_t size = (size_t)count * sizeof(ptowsp_work) + 2 * PWSP_WORK_ALIGN;
    char *base = (char *)pwsp_memory_alloc(&context->memory, size);
    if (!base) {
        return pwsp_fail(context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX,
                         "work_create: no memory for %llu descriptors", (unsigned long long)count);
    }
    size_t offset = PWSP_WORK_ALIGN + ((size_t)(0 - (uintptr_t)base) & (PWSP_WORK_ALIGN - 1));
    pwsp_work_block block = {base, size};
    memcpy(base + offset - sizeof block, &block, sizeof block);
    pwsp_context_own(context);
    *out_work = (ptowsp_work *)(void *)(base + offset);
    return PTOWSP_OK;
}

void ptowsp_work_destroy(ptowsp_context *context, ptowsp_work *work) {
    PTOWSP_ASSERT(context);
    if (work) {
        pwsp_work_block block;
        memcpy(&block, (char *)work - sizeof block, sizeof block);
        pwsp_context_disown(context);
        pwsp_memory_free(&context->memory, block.base, block.size);
    }
}

void ptowsp_work_print(const PTOWSP_GM ptowsp_work *work, ptowsp_output output) {
    if (!work) {
        return;
    }
    pwsp_text_format(output, "#%u tier %u%s%s%s (%u, %u) [%u, %llu)", (unsigned)work->work_id,
                     (unsigned)work->tier, work->flags & PTOWSP_WORK_FIRST ? " first" : "",
                     work->flags & PTOWSP_WORK_LAST ? " last" : "",
                     work->flags & PTOWSP_WORK_INIT ? " init" : "", (unsigned)work->params[0],
                     (unsigned)work->params[1], (unsigned)work->params[2],
                     (unsigned long long)work->params[2] + work->params[3]);
}

const ptowsp_tier *ptowsp_decode_tiers(void) {
#define PWSP_TIER_ENTRY(id, length_min, length_max) {id, length_min, length_max},
    static const ptowsp_tier tiers[] = {PTOWSP_DECODE_TIERS(PWSP_TIER_ENTRY)};
#undef PWSP_TIER_ENTRY
    PTOWSP_STATIC_ASSERT(sizeof tiers / sizeof tiers[0] == PTOWSP_DECODE_TIER_COUNT,
                         "the count of the standard tiers");
    return tiers;
}

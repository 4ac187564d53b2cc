// Rings: what tasks in flight hold, and give back in the order of issue.
//
// A task takes its share of each ring when it is issued. It retires when it has ended and all
// tasks issued before it have retired; so the tasks in flight are a queue, and their shares lie
// in the rings in the same order:
//
//      tasks     head [ ended | runs | ended | waits ] tail       the first one retires next
//      blocks    head [ 512 of p, open | 256 of q, last used by 7 | ... ] tail
//
// Bytes live longer than the task that writes them. A block is open until the pass through the scope
// of its tensor ends (lifetime.c), as nothing reads the tensor's contents after that. Then it waits
// for the last task that uses the tensor in that pass to retire. Blocks are given back in their order
// too, so one that is open holds all later ones.
//
// All rings are rows of one table, PTOWSP_RINGS; a task's needs differ from ring to ring.
//
// Depths are kept here too, as they need the same queue: how many tasks of a stream or a pool are in
// flight, which they leave in the order of completion.

#include "rings.h"

#define PWSP_RING_FIRST 16

// -- life -----------------------------------------------------------------------------------------

// Streams, or pools.
static uint32_t pwsp_rings_group_count(const pwsp_timed *timed, uint32_t depth) {
    return depth == PTOWSP_DEPTH_STREAM ? timed->schedule.stream_count : timed->pool_count;
}

PWSP_INTERNAL uint32_t pwsp_rings_depth(const pwsp_timed *timed, uint32_t depth, uint32_t group) {
    return depth == PTOWSP_DEPTH_POOL ? timed->pools[group].depth : timed->schedule.depths[depth];
}

// Has any group of a kind a depth?
static bool pwsp_rings_has_depth(const pwsp_timed *timed, uint32_t depth) {
    bool has_depth = timed->schedule.depths[depth] > 0;
    for (uint32_t i = 0; i < timed->pool_count && depth == PTOWSP_DEPTH_POOL; i++) {
        has_depth = has_depth || timed->pools[i].depth;
    }
    return has_depth;
}

PWSP_INTERNAL bool pwsp_rings_init(pwsp_rings *rings, const pwsp_memory *memory,
                                   const pwsp_timed *timed) {
    const ptowsp_schedule *schedule = &timed->schedule;
    memset(rings, 0, sizeof *rings);
    rings->memory = memory;
    rings->timed = timed;
    rings->is_in_order = schedule->release == PTOWSP_RELEASE_IN_ORDER && schedule->window > 0;
    rings->is_used = rings->is_in_order;
    for (uint32_t i = 0; i < PTOWSP_RING_COUNT; i++) {
        rings->is_used = rings->is_used || schedule->ring_sizes[i] > 0;
    }
    bool is_good = true;
    for (uint32_t i = 0; i < PTOWSP_DEPTH_COUNT; i++) {
        if (pwsp_rings_has_depth(timed, i)) {
            rings->is_used = true;
            is_good =
                is_good && PWSP_ALLOC(memory, rings->counts[i], pwsp_rings_group_count(timed, i));
        }
    }
    const bool has_bytes = schedule->ring_sizes[PTOWSP_RING_BYTES] && timed->tensor_scopes;
    return is_good && (!has_bytes || PWSP_ALLOC(memory, rings->tensors, timed->tensor_count));
}

PWSP_INTERNAL void pwsp_rings_begin(pwsp_rings *rings) {
    memset(rings->used, 0, sizeof rings->used);
    memset(rings->used_max, 0, sizeof rings->used_max);
    memset(rings->needed, 0, sizeof rings->needed);
    for (uint32_t i = 0; i < PTOWSP_DEPTH_COUNT; i++) {
        if (rings->counts[i]) {
            memset(rings->counts[i], 0, pwsp_rings_group_count(rings->timed, i) * sizeof(uint32_t));
        }
    }
    rings->head = rings->tail = 0;
    rings->block_head = rings->block_tail = 0;
    rings->retire_time = UINT64_MAX;
    rings->retire_task = PTOWSP_NO_INDEX;
    if (rings->tensors) {
        memset(rings->tensors, 0, rings->timed->tensor_count * sizeof(pwsp_ring_tensor));
    }
}

static pwsp_ring_task *pwsp_rings_task(const pwsp_rings *rings, uint64_t number) {
    PTOWSP_ASSERT(rings->head <= number && number < rings->tail);
    return &rings->tasks[number & (rings->task_capacity - 1)];
}

static pwsp_ring_block *pwsp_rings_block(const pwsp_rings *rings, uint64_t number) {
    PTOWSP_ASSERT(rings->block_head <= number && number < rings->block_tail);
    return &rings->blocks[number & (rings->block_capacity - 1)];
}

// Doubles a full queue. NULL when memory is out.
static void *pwsp_rings_grow(const pwsp_rings *rings, void *items, uint64_t *capacity,
                             uint64_t head, uint64_t tail, size_t size) {
    if (tail - head < *capacity) {
        return items;
    }
    uint64_t larger = *capacity ? 2 * *capacity : PWSP_RING_FIRST;
    char *made = (char *)pwsp_memory_alloc(rings->memory, (size_t)larger * size);
    if (!made) {
        return NULL;
    }
    for (uint64_t i = head; i < tail; i++) {
        memcpy(made + (size_t)(i & (larger - 1)) * size,
               (const char *)items + (size_t)(i & (*capacity - 1)) * size, size);
    }
    pwsp_memory_free(rings->memory, items, (size_t)*capacity * size);
    *capacity = larger;
    return made;
}

// -- giving back ----------------------------------------------------------------------------------

PWSP_INTERNAL uint64_t pwsp_rings_first_end(const pwsp_rings *rings) {
    return rings->head < rings->tail ? pwsp_rings_task(rings, rings->head)->end : UINT64_MAX;
}

// The oldest blocks, as long as their last users have retired.
static void pwsp_rings_free_blocks(pwsp_rings *rings) {
    while (rings->block_head < rings->block_tail) {
        const pwsp_ring_block *block = pwsp_rings_block(rings, rings->block_head);
        if (block->is_open || block->last >= rings->head) {
            break;
        }
        PTOWSP_ASSERT(rings->used[PTOWSP_RING_BYTES] >= block->bytes);
        rings->used[PTOWSP_RING_BYTES] -= block->bytes;
        rings->block_head++;
    }
}

// A task has ended: it does not count in its stream and its pool any more.
static void pwsp_rings_leave_groups(pwsp_rings *rings, pwsp_ring_task *task) {
    for (uint32_t i = 0; i < PTOWSP_DEPTH_COUNT && !task->is_over; i++) {
        if (rings->counts[i]) {
            PTOWSP_ASSERT(rings->counts[i][task->groups[i]] > 0);
            rings->counts[i][task->groups[i]]--;
            rings->left[i] = task->groups[i] == rings->groups[i] ? task->task : rings->left[i];
        }
    }
    task->is_over = true;
}

PWSP_INTERNAL void pwsp_rings_retire(pwsp_rings *rings, uint64_t now) {
    while (pwsp_rings_first_end(rings) <= now) {
        pwsp_ring_task *task = pwsp_rings_task(rings, rings->head);
        pwsp_rings_leave_groups(rings, task);
        if (task->end == now && rings->retire_time != now) {
            rings->retire_time = now;
            rings->retire_task = task->task;
        }
        rings->used[PTOWSP_RING_TASKS]--;
        rings->used[PTOWSP_RING_DEPENDENCIES] -= task->edges;
        rings->used[PTOWSP_RING_MAP] -= task->tiles;
        rings->head++;
    }
    pwsp_rings_free_blocks(rings);
}

PWSP_INTERNAL void pwsp_rings_end(pwsp_rings *rings, uint64_t task, uint64_t end) {
    uint64_t low = rings->head, high = rings->tail;
    while (high - low > 1) {  // indices of tasks grow with their numbers
        uint64_t middle = low + (high - low) / 2;
        bool is_before = task < pwsp_rings_task(rings, middle)->task;
        low = is_before ? low : middle;
        high = is_before ? middle : high;
    }
    PTOWSP_ASSERT(pwsp_rings_task(rings, low)->task == task);
    pwsp_rings_task(rings, low)->end = end;
    pwsp_rings_leave_groups(rings, pwsp_rings_task(rings, low));
}

// -- depths ---------------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_rings_enter(pwsp_rings *rings, uint32_t stream, uint32_t pool) {
    rings->groups[PTOWSP_DEPTH_STREAM] = stream;
    rings->groups[PTOWSP_DEPTH_POOL] = pool;
    rings->left[PTOWSP_DEPTH_STREAM] = rings->left[PTOWSP_DEPTH_POOL] = PTOWSP_NO_INDEX;
}

PWSP_INTERNAL ptowsp_depth pwsp_rings_full(const pwsp_rings *rings) {
    uint32_t i = 0;
    for (; i < PTOWSP_DEPTH_COUNT; i++) {
        uint32_t depth = pwsp_rings_depth(rings->timed, i, rings->groups[i]);
        if (depth && rings->counts[i][rings->groups[i]] >= depth) {
            break;
        }
    }
    return (ptowsp_depth)i;
}

// Of tasks whose ends are known some may have ended meanwhile. They are only looked for here, when
// a group is full; then the result is now.
PWSP_INTERNAL uint64_t pwsp_rings_group_end(pwsp_rings *rings, ptowsp_depth depth, uint64_t now,
                                            uint64_t *out_task) {
    uint64_t least = UINT64_MAX;
    for (uint64_t i = rings->head; i < rings->tail; i++) {
        pwsp_ring_task *task = pwsp_rings_task(rings, i);
        if (task->is_over || task->groups[depth] != rings->groups[depth]) {
            continue;
        }
        if (task->end <= now) {
            pwsp_rings_leave_groups(rings, task);
        }
        if (task->end < least) {
            least = task->end;
            *out_task = task->task;
        }
    }
    return pwsp_max_u64(least, now);
}

// -- bytes ----------------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_rings_release(pwsp_rings *rings, uint32_t tensor) {
    PTOWSP_ASSERT(rings->tensors);  // without a ring of bytes programs release nothing
    pwsp_ring_tensor *state = &rings->tensors[tensor];
    while (state->block) {
        pwsp_ring_block *block = pwsp_rings_block(rings, state->block - 1);
        block->is_open = false;
        block->last = state->user;
        state->block = block->before;
    }
    pwsp_rings_free_blocks(rings);
}

PWSP_INTERNAL uint32_t pwsp_rings_holder(const pwsp_rings *rings) {
    PTOWSP_ASSERT(rings->block_head != rings->block_tail);
    return rings->timed->tensor_scopes[pwsp_rings_block(rings, rings->block_head)->tensor];
}

// -- taking ---------------------------------------------------------------------------------------

// The bytes of a tile that a task writes without reading it, in a transient tensor; else 0.
static uint64_t pwsp_rings_tile_bytes(const pwsp_rings *rings, const pwsp_bound_tensor *bound,
                                      const pwsp_tile_at *tile) {
    if (!rings->tensors || !rings->timed->tensor_scopes[tile->tensor] ||
        tile->access != PWSP_TILE_WRITTEN) {
        return 0;
    }
    uint64_t bytes = (uint64_t)tile->rows * tile->cols * bound[tile->tensor].element_size;
    return pwsp_ceil_div_u64(bytes, PTOWSP_TRANSIENT_ALIGN) * PTOWSP_TRANSIENT_ALIGN;
}

PWSP_INTERNAL void pwsp_rings_ask(pwsp_rings *rings, const pwsp_arrival *arrival,
                                  const pwsp_bound_tensor *bound, uint64_t edges) {
    const uint32_t by_data = PTOWSP_DEPENDENCIES_EXACT | PTOWSP_DEPENDENCIES_OVERLAP;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < arrival->tile_count; i++) {
        bytes = pwsp_sum_u64(bytes, pwsp_rings_tile_bytes(rings, bound, &arrival->tiles[i]));
    }
    rings->needed[PTOWSP_RING_TASKS] = 1;
    rings->needed[PTOWSP_RING_BYTES] = bytes;
    rings->needed[PTOWSP_RING_DEPENDENCIES] = edges;
    rings->needed[PTOWSP_RING_MAP] =
        rings->timed->schedule.dependencies & by_data ? arrival->tile_count : 0;
}

PWSP_INTERNAL ptowsp_ring pwsp_rings_lacking(const pwsp_rings *rings) {
    uint32_t i = 0;
    while (i < PTOWSP_RING_COUNT) {
        uint64_t size = rings->timed->schedule.ring_sizes[i];
        if (size && pwsp_sum_u64(rings->used[i], rings->needed[i]) > size) {
            break;
        }
        i++;
    }
    return (ptowsp_ring)i;
}

// Blocks of the task `number`, and its bytes. False when memory is out.
static bool pwsp_rings_take_bytes(pwsp_rings *rings, const pwsp_arrival *arrival,
                                  const pwsp_bound_tensor *bound, uint64_t number) {
    for (uint32_t i = 0; i < arrival->tile_count; i++) {
        const pwsp_tile_at *tile = &arrival->tiles[i];
        pwsp_ring_tensor *state = &rings->tensors[tile->tensor];
        uint64_t bytes = pwsp_rings_tile_bytes(rings, bound, tile);
        if (bytes) {
            void *blocks =
                pwsp_rings_grow(rings, rings->blocks, &rings->block_capacity, rings->block_head,
                                rings->block_tail, sizeof(pwsp_ring_block));
            if (!blocks) {
                return false;
            }
            rings->blocks = (pwsp_ring_block *)blocks;
            pwsp_ring_block block = {bytes, 0, state->block, tile->tensor, true};
            state->block = ++rings->block_tail;
            *pwsp_rings_block(rings, state->block - 1) = block;
        }
        state->user = number;
    }
    return true;
}

PWSP_INTERNAL bool pwsp_rings_take(pwsp_rings *rings, const pwsp_arrival *arrival,
                                   const pwsp_bound_tensor *bound, uint64_t task, uint64_t end) {
    void *tasks = pwsp_rings_grow(rings, rings->tasks, &rings->task_capacity, rings->head,
                                  rings->tail, sizeof(pwsp_ring_task));
    if (!tasks) {
        return false;
    }
    rings->tasks = (pwsp_ring_task *)tasks;
    pwsp_ring_task made = {end,
                           task,
                           rings->needed[PTOWSP_RING_DEPENDENCIES],
                           rings->needed[PTOWSP_RING_MAP],
                           {rings->groups[0], rings->groups[1]},
                           false};
    *pwsp_rings_task(rings, ++rings->tail - 1) = made;
    for (uint32_t i = 0; i < PTOWSP_DEPTH_COUNT; i++) {
        if (rings->counts[i]) {
            rings->counts[i][rings->groups[i]]++;
        }
    }
    for (uint32_t i = 0; i < PTOWSP_RING_COUNT; i++) {
        rings->used[i] = pwsp_sum_u64(rings->used[i], rings->needed[i]);
        rings->used_max[i] = pwsp_max_u64(rings->used_max[i], rings->used[i]);
    }
    return !rings->tensors || pwsp_rings_take_bytes(rings, arrival, bound, rings->tail - 1);
}

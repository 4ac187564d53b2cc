// Blocks: consecutive iterations of an innermost loop that are issued as one task.
//
//      loop       | task | task task task task | task task task task | ...     one entry, then blocks
//      entry                 count, record ----.
//      records    ... | index, words | index, words | ...                      a ring, as entries are
//      results    ... | result | result | ...                                  the same
//
// Lanes write results and nothing else, so a cache line that comes back from another lane has the results
// of eight tasks, and records stay where the walking lane wrote them.
//
// An entry costs 0.2 to 0.5 us and several lines of the cache that travel between lanes; in a block, tasks
// share it. The block waits for all that its tasks wait for, and what waits for one of them waits for
// the block. That forms no cycle, as blocks are consecutive in program order. Within a block tasks run in
// program order, up to the first that fails. Each is accounted for by itself as the block retires.
//
// How many tasks make a block depends on their pace. Blocks are not formed where tasks of a stretch may differ
// in more than tiles and numbers (streams), nor with a window of the schedule's own.

#include "frontend.h"

#define PWSP_FRONTEND_RECORD_MAX 1024u  // tasks in blocks in flight
#define PWSP_FRONTEND_RECORD_OWN 1u     // words of a record beside those of its task
#define PWSP_FRONTEND_TILE_MAX   64u    // tiles of a block

static uint64_t *pwsp_frontend_record(const pwsp_frontend *front, uint64_t number) {
    return front->records + (number % front->record_count) * front->record_words;
}

// The result of a record, after all records.
static uint64_t *pwsp_frontend_result(const pwsp_frontend *front, uint64_t number) {
    return front->records + (size_t)front->record_count * front->record_words +
           number % front->record_count;
}

// A task before its result.
static pwsp_issued pwsp_frontend_issued_of(const pwsp_frontend *front, uint64_t number) {
    const uint64_t *record = pwsp_frontend_record(front, number);
    const pwsp_issued issued = {record + PWSP_FRONTEND_RECORD_OWN, record[0], 0};
    return issued;
}

// Is there a loop with nothing but a task in it?
static bool pwsp_frontend_has_stretch(const ptowsp_program *program) {
    for (uint32_t i = 0; i + 1 < program->ops.count; i++) {
        if (PWSP_OP_AT(program, i)->kind == PWSP_OP_TASK &&
            PWSP_OP_AT(program, i + 1)->kind == PWSP_OP_LOOP_END) {
            return true;
        }
    }
    return false;
}

PWSP_INTERNAL bool pwsp_frontend_reserve_blocks(pwsp_frontend *front) {
    const ptowsp_program *program = front->walk->program;
    const pwsp_issue *issue = &front->issue;
    if (front->records || issue->timed->has_streams || front->is_homed ||
        issue->desc.place_count < PWSP_FRONTEND_WINDOW_MAX || !pwsp_frontend_has_stretch(program)) {
        return true;
    }
    front->record_words = PWSP_FRONTEND_RECORD_OWN + front->tile_word +
                          issue->desc.tile_max * PWSP_FRONTEND_TILE_WORDS;
    if (!pwsp_deps_reserve_tiles(&front->issue.deps, PWSP_FRONTEND_TILE_MAX)) {
        return false;
    }
    PWSP_ALLOC(&front->memory, front->records,
               (size_t)PWSP_FRONTEND_RECORD_MAX * (front->record_words + 1));
    front->record_count = front->records ? PWSP_FRONTEND_RECORD_MAX : 0;
    return front->records != NULL;
}

PWSP_INTERNAL void pwsp_frontend_begin_blocks(pwsp_frontend *front) {
    front->record_head = front->record_tail = 0;
    front->block_extra = 0;
    // Of all tensors: too long to find out for each block.
    front->is_plain = pwsp_timeline_is_plain(front->time);
    front->has_data = front->is_plain && pwsp_timeline_has_data(front->time);
}

// -- issuing --------------------------------------------------------------------------------------

// Waits for the oldest entry, and retires it. False after a failure.
static bool pwsp_frontend_retire_oldest(pwsp_frontend *front) {
    pwsp_issue *issue = &front->issue;
    return pwsp_issue_await(issue, pwsp_reorder_entry(&issue->reorder, issue->reorder.head)) &&
           pwsp_issue_retire(issue);
}

PWSP_INTERNAL bool pwsp_frontend_has_room(pwsp_frontend *front, uint32_t task_count) {
    const pwsp_issue *issue = &front->issue;
    bool is_good = true;
    while (is_good && front->block_extra > 0 &&
           front->block_extra + issue->task_count + task_count > issue->desc.task_max) {
        is_good = pwsp_frontend_retire_oldest(front);
    }
    return is_good;
}

static bool pwsp_frontend_has_records(pwsp_frontend *front, uint32_t count) {
    bool is_good = true;
    while (is_good && front->record_tail - front->record_head + count > front->record_count) {
        is_good = pwsp_frontend_retire_oldest(front);
    }
    return is_good;
}

// Makes a tile larger by another one, if both together are a tile.
static bool pwsp_frontend_join_tile(pwsp_tile_at *tile, const pwsp_tile_at *other) {
    if (tile->tensor != other->tensor || tile->access != other->access ||
        tile->lead != other->lead) {
        return false;
    }
    const bool is_row = tile->row == other->row && tile->rows == other->rows;
    const bool is_col = tile->col == other->col && tile->cols == other->cols;
    if (is_row && !is_col && other->col == tile->col + tile->cols &&
        other->cols <= UINT32_MAX - tile->cols) {
        tile->cols += other->cols;
        return true;
    }
    if (is_col && !is_row && other->row == tile->row + tile->rows &&
        other->rows <= UINT32_MAX - tile->rows) {
        tile->rows += other->rows;
        return true;
    }
    return is_row && is_col;
}

// The records of iterations [begin, begin + count) of a stretch, and their tiles. The result is the
// number of tiles. Neighbours of a view are one tile, as all that overlaps counts: each costs some 50 ns.
static uint32_t pwsp_frontend_fill_block(pwsp_frontend *front, const pwsp_stretch *stretch,
                                         uint64_t begin, uint32_t count, pwsp_tile_at *tiles) {
    pwsp_expander *x = &front->walk->expander;
    uint32_t last[PTOWSP_TASK_TILE_MAX], tile_count = 0;  // by view: its last tile
    pwsp_arrival arrival;
    PTOWSP_ASSERT(front->issue.deps.is_overlap);  // whatever the schedule says: data are real
    pwsp_walk_arrival(x, &arrival);
    for (uint32_t k = 0; k < count; k++) {
        const uint64_t i = begin + k;
        uint64_t *record = pwsp_frontend_record(front, front->record_tail);
        *pwsp_frontend_result(front, front->record_tail++) =
            ptowsp_task_fail(PTOWSP_SKIPPED);  // unless it runs
        pwsp_stretch_step(x, stretch, i);
        x->task.index = x->task_count + i;
        pwsp_stretch_keys(stretch, i, &arrival);
        record[0] = x->task.index;
        pwsp_frontend_fill(front, record + PWSP_FRONTEND_RECORD_OWN, &arrival);
        for (uint32_t v = 0; v < arrival.tile_count; v++) {
            if (k == 0 || !pwsp_frontend_join_tile(&tiles[last[v]], &x->tiles_at[v])) {
                last[v] = tile_count;
                tiles[tile_count++] = x->tiles_at[v];
            }
        }
    }
    return tile_count;
}

// Issues a block. False after a failure.
static bool pwsp_frontend_block(pwsp_frontend *front, const pwsp_stretch *stretch, uint64_t begin,
                                uint32_t count) {
    const pwsp_expander *x = &front->walk->expander;
    pwsp_tile_at tiles[PWSP_FRONTEND_TILE_MAX];
    pwsp_arrival arrival;
    PTOWSP_ASSERT(count > 1 && count * stretch->view_count <= PWSP_FRONTEND_TILE_MAX);
    if (!pwsp_frontend_has_room(front, count) || !pwsp_frontend_has_records(front, count)) {
        return false;
    }
    pwsp_entry *entry = pwsp_issue_open(&front->issue, PWSP_ENTRY_TASK);
    if (!entry) {
        return false;
    }
    pwsp_entry_words(entry)[0] = count;
    pwsp_entry_words(entry)[1] = front->record_tail;
    const uint32_t tile_count = pwsp_frontend_fill_block(front, stretch, begin, count, tiles);
    memset(&arrival, 0, sizeof arrival);
    pwsp_walk_arrival(x, &arrival);
    arrival.tiles = tiles;
    arrival.tile_count = tile_count;
    entry->unit = arrival.unit;
    entry->kernel = arrival.kernel;
    entry->index = PTOWSP_NO_INDEX;
    front->block_extra += count - 1;
    return pwsp_issue_submit(&front->issue, &arrival);
}

PWSP_INTERNAL bool pwsp_frontend_blocks(pwsp_frontend *front) {
    pwsp_expander *x = &front->walk->expander;
    const uint32_t kernel = x->task_op->kernel, view_count = x->task_op->view_count;
    pwsp_stretch stretch;
    uint64_t i = 0;
    bool is_good = true;
    if (!front->records || x->kernel->unit == PTOWSP_UNIT_LINK ||
        pwsp_pace_block(&front->pace, kernel, UINT64_MAX) < 2 || !pwsp_stretch_begin(x, &stretch)) {
        return true;
    }
    while (is_good && i < stretch.count && !front->wants_to_keep) {
        uint64_t count = pwsp_pace_block(&front->pace, kernel, stretch.count);
        count = pwsp_min_u64(count, stretch.count - i);
        count = view_count ? pwsp_min_u64(count, PWSP_FRONTEND_TILE_MAX / view_count) : count;
        if (count < 2 || pwsp_halt_is(&front->walk->halt)) {
            break;  // the rest one by one, or as the walk ends
        }
        is_good = pwsp_frontend_block(front, &stretch, i, (uint32_t)count);
        i += count;
        pwsp_frontend_see(front, kernel, (uint32_t)count);
    }
    if (is_good) {
        pwsp_stretch_end(x, &stretch, i);
    }
    return is_good;
}

// -- running and retiring -------------------------------------------------------------------------

PWSP_INTERNAL ptowsp_cycles pwsp_frontend_call_block(const pwsp_frontend *front,
                                                     const pwsp_entry *entry, uint32_t lane) {
    const uint64_t first = pwsp_entry_words(entry)[1];
    const uint32_t count = pwsp_frontend_block_count(entry);
    for (uint32_t k = 0; k < count; k++) {
        const pwsp_issued issued = pwsp_frontend_issued_of(front, first + k);
        const ptowsp_cycles result = pwsp_frontend_call_task(front, entry, &issued, lane);
        *pwsp_frontend_result(front, first + k) = result;
        if (result > PTOWSP_CYCLES_MAX) {
            return result;
        }
    }
    return 0;
}

// Accounts for the tasks of a block one by one. False after a failure.
static bool pwsp_frontend_retire_each(pwsp_frontend *front, const pwsp_entry *entry) {
    const uint64_t first = pwsp_entry_words(entry)[1];
    const uint32_t count = pwsp_frontend_block_count(entry);
    for (uint32_t k = 0; k < count; k++) {
        pwsp_issued issued = pwsp_frontend_issued_of(front, first + k);
        issued.cycles = *pwsp_frontend_result(front, first + k);
        if (!pwsp_frontend_retire_task(front, entry, &issued)) {
            return false;
        }
    }
    return true;
}

// The same at once, up to the first that has failed, where a batch has all that time needs.
static bool pwsp_frontend_retire_batch(pwsp_frontend *front, const pwsp_entry *entry) {
    pwsp_batch *batch = front->batch;
    const uint64_t first = pwsp_entry_words(entry)[1];
    const uint32_t count = pwsp_frontend_block_count(entry);
    pwsp_issued issued = pwsp_frontend_issued_of(front, first);
    const pwsp_task_op *op = pwsp_frontend_op(front, issued.words);
    const uint32_t key = 1 + op->axis_count + op->scalar_count;
    uint32_t done = 0;
    batch->pool = front->walk->program->kernels.items[entry->kernel].pool;
    batch->tile_count = front->has_data ? op->view_count : 0;
    PTOWSP_ASSERT(count <= pwsp_batch_room(batch->tile_count));
    for (; done < count; done++) {
        issued = pwsp_frontend_issued_of(front, first + done);
        issued.cycles = *pwsp_frontend_result(front, first + done);
        if (issued.cycles > PTOWSP_CYCLES_MAX) {
            break;
        }
        batch->cycles[done] = issued.cycles;
        batch->keys[done] = front->has_keys ? issued.words[key] : 0;
        if (batch->tile_count) {
            pwsp_frontend_kept_tiles(front, &issued,
                                     &batch->tiles[(size_t)done * batch->tile_count]);
        }
    }
    if (done > 0 && !pwsp_timeline_batch(front->time, batch, done)) {
        return pwsp_frontend_tell(front, false);
    }
    return done == count || pwsp_frontend_retire_task(front, entry, &issued);
}

PWSP_INTERNAL bool pwsp_frontend_retire_block(pwsp_frontend *front, const pwsp_entry *entry) {
    const uint32_t count = pwsp_frontend_block_count(entry);
    PTOWSP_ASSERT(pwsp_entry_words(entry)[1] == front->record_head);
    PTOWSP_ASSERT(front->block_extra >= count - 1);
    const bool is_plain =
        front->is_plain && !pwsp_sim_has_block(&front->time->sim, (ptowsp_unit)entry->unit);
    if (!(is_plain ? pwsp_frontend_retire_batch(front, entry)
                   : pwsp_frontend_retire_each(front, entry))) {
        return false;
    }
    front->record_head += count;
    front->block_extra -= count - 1;
    return true;
}

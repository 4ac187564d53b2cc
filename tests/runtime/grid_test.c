// Grids of the map of regions against its lists, which deps_test.c compares with sets of bytes. Two
// maps get the same tasks; one has no grids. Each query finds the same time and task, and so many
// places are taken and free in both after every step. Tiles are mostly those of a grid: at edges, too,
// several in a task, and the same again, which lists get only once if it is in a grid; now and then, in some of
// the worlds, one that does not fit, a whole tensor, a slot load, or a tensor whose tiles are far apart.

#include "src/base/block_list.h"
#include "src/runtime/grid.h"

#include "test.h"

enum { TENSORS = 6, UNTRACKED = TENSORS, TASKS = 1500, TILES = 4 };

typedef struct grid_world {
    pwsp_timed timed;
    pwsp_blocks blocks;
    pwsp_memory memory;
    pwsp_bound_tensor bound[TENSORS + 1];
    bool written[TENSORS + 1], loaded[TENSORS + 1];
    uint32_t rows[TENSORS], cols[TENSORS];  // of the usual tile
    pwsp_deps grids, lists;
    bool is_even;  // nothing ends a grid or begins a list
    uint32_t odd;  // one of so many tiles does not fit; 0: none
    uint64_t keyed_count,
        ended_count;       // tasks with all tiles in grids, and of these, that ended one
    uint64_t again_count;  // tiles that were in their tasks before
} grid_world;

// A tensor that is apart from all others.
static pwsp_bound_tensor *tensor_make(grid_world *w, uint32_t i, int64_t rows, int64_t cols,
                                      int64_t row_stride) {
    pwsp_bound_tensor *t = &w->bound[i];
    *t = (pwsp_bound_tensor){.is_bound = true,
                             .element_size = 2,
                             .base = (uint64_t)i << 40,
                             .rows = rows,
                             .cols = cols,
                             .col_stride = 1,
                             .row_stride = row_stride};
    for (uint32_t l = 0; l < PWSP_TENSOR_LEAD_MAX; l++) {
        t->lead_shape[l] = 1;
    }
    w->written[i] = true;
    return t;
}

static void tensor_random(grid_world *w, uint32_t i, uint64_t *random) {
    const int64_t parts = w->is_even ? 1 : 5;  // of rows and columns, at most
    const int64_t rows = test_random_in(random, 1, 60), cols = test_random_in(random, 1, 60);
    pwsp_bound_tensor *t = tensor_make(w, i, rows, cols, cols + test_random_in(random, 0, 3));
    t->lead_shape[0] = test_random_in(random, 1, 5);
    t->lead_shape[1] = test_random_in(random, 1, i == TENSORS - 1 && !w->is_even ? 400 : 4);
    t->lead_strides[1] = t->rows * t->row_stride + test_random_in(random, 0, 9);
    t->lead_strides[0] = t->lead_strides[1] * t->lead_shape[1];
    if (test_random(random) % 8 == 0 && !w->is_even) {
        t->lead_strides[0] = -t->lead_strides[0];
    }
    w->rows[i] = (uint32_t)test_random_in(random, (t->rows + parts - 1) / parts, t->rows);
    w->cols[i] = (uint32_t)test_random_in(random, (t->cols + parts - 1) / parts, t->cols);
    w->loaded[i] = test_random(random) % 4 == 0 && !w->is_even;
}

static void world_random(grid_world *w, uint64_t *random, bool is_even) {
    memset(w, 0, sizeof *w);
    w->is_even = is_even;
    ptowsp_schedule *schedule = &w->timed.schedule;
    schedule->issue = PTOWSP_ISSUE_DATAFLOW;
    schedule->dependencies =
        test_random(random) % 4 ? PTOWSP_DEPENDENCIES_OVERLAP : PTOWSP_DEPENDENCIES_EXACT;
    schedule->hazards = PWSP_DEPS_HAZARDS;
    w->timed.tensor_is_written = w->written;
    w->timed.tensor_is_loaded = w->loaded;
    w->odd = test_random(random) % 2 || is_even ? 0 : (uint32_t)test_random_in(random, 2, 4000);
    for (uint32_t i = 1; i < TENSORS; i++) {
        tensor_random(w, i, random);
    }
    const pwsp_memory heap = pwsp_memory_make(NULL, NULL);
    w->memory = pwsp_blocks_begin(&w->blocks, &heap);
    assert_true(pwsp_deps_init(&w->grids, &w->memory, TENSORS + 1));
    assert_true(pwsp_deps_init(&w->lists, &w->memory, TENSORS + 1));
}

static void world_begin(grid_world *w, bool has_tasks) {
    w->bound[UNTRACKED] = w->bound[1];
    w->bound[UNTRACKED].base = (uint64_t)UNTRACKED << 40;
    pwsp_deps_begin(&w->grids, &w->timed, w->bound);
    pwsp_deps_begin(&w->lists, &w->timed, w->bound);
    w->grids.has_tasks = w->lists.has_tasks = has_tasks;
    for (uint32_t i = 1; i <= TENSORS; i++) {
        w->lists.tensors[i].form = PWSP_DEPS_LISTS;
    }
    w->lists.tensors[UNTRACKED].is_tracked = false;
}

static void tile_random(const grid_world *w, uint64_t *random, pwsp_tile_at *at) {
    at->tensor = (uint32_t)test_random_in(random, 1, TENSORS - 1);
    const pwsp_bound_tensor *t = &w->bound[at->tensor];
    const uint32_t rows = w->rows[at->tensor], cols = w->cols[at->tensor];
    const int64_t across = test_random_in(random, 0, t->lead_shape[1] - 1);
    at->lead = test_random_in(random, 0, t->lead_shape[0] - 1) * t->lead_strides[0] +
               across * t->lead_strides[1];
    at->row = test_random_in(random, 0, (t->rows - 1) / rows) * rows;
    at->col = test_random_in(random, 0, (t->cols - 1) / cols) * cols;
    at->rows = rows;
    at->cols = cols;
    if (w->odd && test_random(random) % w->odd == 0) {
        switch (test_random(random) % 4) {
        case 0: at->row = test_random_in(random, 0, t->rows - 1); break;
        case 1: at->col = test_random_in(random, 0, t->cols - 1); break;
        case 2: at->rows = (uint32_t)test_random_in(random, 1, t->rows); break;
        default: at->lead = at->row = at->col = at->rows = at->cols = 0; return;
        }
    }
    at->rows = (uint32_t)pwsp_min_u64(at->rows, (uint64_t)(t->rows - at->row));
    at->cols = (uint32_t)pwsp_min_u64(at->cols, (uint64_t)(t->cols - at->col));
}

static void check_same(const grid_world *w) {
    const pwsp_deps *a = &w->grids, *b = &w->lists;
    assert_int_equal(a->latest.time, b->latest.time);
    assert_int_equal(a->latest.task, b->latest.task);
    assert_int_equal(a->access_count, b->access_count);
    assert_int_equal(a->access_max, b->access_max);
    assert_int_equal(a->free_count, b->free_count);
}

static void load_random(grid_world *w, uint64_t *random) {
    pwsp_tile_at at;
    tile_random(w, random, &at);
    if (at.rows) {
        at.row += test_random_in(random, 0, at.rows - 1);
        at.col += test_random_in(random, 0, at.cols - 1);
        at.rows = at.cols = 1;
    }
    pwsp_deps_query_load(&w->grids, &at);
    pwsp_deps_query_load(&w->lists, &at);
    check_same(w);
}

// Are all tiles of a task in grids? Then each is that of its key.
static bool are_in_grids(const pwsp_deps *deps, const pwsp_tile_at *tiles, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t tensor = tiles[i].tensor;
        uint64_t number;
        if (deps->tensors[tensor].form != PWSP_DEPS_GRID ||
            !pwsp_deps_grid_number(&deps->grids[tensor], &tiles[i], &number)) {
            return false;
        }
        pwsp_tile_at back = tiles[i];
        pwsp_deps_grid_tile(deps, pwsp_deps_grid_key(tensor, number), &back);
        assert_memory_equal(&back, &tiles[i], sizeof back);
    }
    return true;
}

// Do tiles before one have the same of a plain tensor, and if it is written, too?
static bool is_again(const pwsp_tile_at *tiles, uint32_t i) {
    for (uint32_t k = 0; k < i; k++) {
        const pwsp_tile_at *a = &tiles[k], *b = &tiles[i];
        if (a->tensor == b->tensor && a->lead == b->lead && a->row == b->row && a->col == b->col &&
            a->rows == b->rows && a->cols == b->cols &&
            !((a->access ^ b->access) & PWSP_TILE_WRITTEN)) {
            return true;
        }
    }
    return false;
}

// The tiles of a task, without those that come again where that may end a grid for the room of its pages.
static uint32_t tiles_random(const grid_world *w, pwsp_tile_at *tiles, uint64_t *random) {
    const pwsp_deps *deps = &w->grids;
    const bool has_room = !deps->wants_sweep &&
                          4 * (deps->pages_used + TILES) <= deps->access_count + 4 * PWSP_DEPS_PAGE;
    const uint32_t most = (uint32_t)test_random_in(random, 1, TILES);
    uint32_t count = 0;
    for (uint32_t i = 0; i < most; i++) {
        tile_random(w, random, &tiles[count]);
        if (count && test_random(random) % 8 == 0) {
            tiles[count] = tiles[test_random(random) % count];
        }
        tiles[count].access = (uint32_t)test_random_in(random, 1, 3);
        count += has_room || !is_again(tiles, count);
    }
    return count;
}

// What lists get: they have an access for each tile that comes again, so of a grid one that is not tracked
// stands for it.
static void tiles_once(grid_world *w, const pwsp_tile_at *tiles, uint32_t count,
                       pwsp_tile_at *out_tiles) {
    for (uint32_t i = 0; i < count; i++) {
        out_tiles[i] = tiles[i];
        if (w->grids.tensors[tiles[i].tensor].form == PWSP_DEPS_GRID && is_again(tiles, i)) {
            out_tiles[i].tensor = UNTRACKED;
            w->again_count++;
        }
    }
}

static void task_random(grid_world *w, uint64_t number, uint64_t *random) {
    pwsp_tile_at tiles[TILES], listed[TILES];
    const uint32_t count = tiles_random(w, tiles, random);
    const pwsp_token none = {0, PTOWSP_NO_INDEX};
    w->grids.latest = w->lists.latest = none;
    const bool is_keyed = are_in_grids(&w->grids, tiles, count);
    assert_true(pwsp_deps_query(&w->grids, tiles, count));
    tiles_once(w, tiles, count, listed);
    assert_true(pwsp_deps_query(&w->lists, listed, count));
    check_same(w);
    const uint64_t start = pwsp_max_u64(w->grids.latest.time, w->grids.clock);
    const pwsp_token token = {start + (uint64_t)test_random_in(random, 0, 400), number};
    assert_true(pwsp_deps_add(&w->grids, tiles, count, &token));
    w->keyed_count += is_keyed;
    w->ended_count += is_keyed && !are_in_grids(&w->grids, tiles, count);
    assert_true(pwsp_deps_add(&w->lists, listed, count, &token));
    check_same(w);
    if (test_random(random) % 16 == 0) {
        load_random(w, random);
    }
    w->grids.clock = w->lists.clock += (uint64_t)test_random_in(random, 0, 6);
}

TEST(grid__finds_what_lists_find_and_takes_the_same_places) {
    const uint64_t seed = test_seed();
    static grid_world made, *const w = &made;
    uint32_t forms[4] = {0};
    uint64_t pages = 0, keyed_count = 0, ended_count = 0, again_count = 0, even_count = 0;
    for (uint32_t sample = 0; TEST_ROUNDS(sample, 50); sample++) {
        uint64_t random = seed + sample;
        world_random(w, &random, sample % 5 == 4);
        for (uint32_t run = 0; run < 2; run++) {
            world_begin(w, test_random(&random) % 2);
            for (uint32_t i = 0; i < TASKS; i++) {
                task_random(w, i, &random);
            }
            for (uint32_t i = 1; i < TENSORS; i++) {
                forms[w->grids.tensors[i].form]++;
                assert_true(w->lists.tensors[i].form == PWSP_DEPS_LISTS);
            }
            pages = pwsp_max_u64(pages, w->grids.pages_used);
            assert_int_equal(w->lists.pages_used, 0);
        }
        keyed_count += w->keyed_count;
        ended_count += w->ended_count;
        again_count += w->again_count;
        even_count += w->keyed_count > 0 && !w->grids.buckets;
        pwsp_blocks_free(&w->blocks);
    }
    print_message(
        "grids %u, ended %u, none %u, pages %u; all of %u tasks, of which %u end one; %u again\n",
        (unsigned)forms[PWSP_DEPS_GRID], (unsigned)forms[PWSP_DEPS_LISTS_SINCE],
        (unsigned)forms[PWSP_DEPS_LISTS], (unsigned)pages, (unsigned)keyed_count,
        (unsigned)ended_count, (unsigned)again_count);
    assert_met(keyed_count > 0 && ended_count > 0 && again_count > 0);
    assert_met(even_count > 0);  // no lists at all
    assert_met(forms[PWSP_DEPS_GRID] && forms[PWSP_DEPS_LISTS_SINCE] && forms[PWSP_DEPS_LISTS]);
}

// A task that reads one of 2^30 tiles far apart, again and again: a page for each would take 144
// bytes, so the grid ends when pages have less than four accesses.
TEST(grid__tiles_far_apart_go_to_lists) {
    static grid_world made, *const w = &made;
    uint64_t random = 1;
    world_random(w, &random, false);
    pwsp_bound_tensor *t = &w->bound[1];
    t->rows = t->cols = t->row_stride = 1;
    t->lead_shape[0] = 1;
    t->lead_shape[1] = 1 << 30;
    t->lead_strides[1] = 1;
    w->loaded[1] = false;
    world_begin(w, false);
    for (uint64_t i = 0; i < 1000; i++) {
        const pwsp_tile_at at = {1, 1, 1, PWSP_TILE_READ, (int64_t)(i << 20), 0, 0};
        const pwsp_token end = {1 << 20, i};
        assert_true(pwsp_deps_query(&w->grids, &at, 1) && pwsp_deps_add(&w->grids, &at, 1, &end));
        assert_true(4 * w->grids.pages_used <= w->grids.access_count + 4 * PWSP_DEPS_PAGE + 4);
    }
    assert_int_equal(w->grids.tensors[1].form, PWSP_DEPS_LISTS_SINCE);
    assert_int_equal(w->grids.access_count, 1000);
    pwsp_blocks_free(&w->blocks);
}

// -- sweeps and memory ----------------------------------------------------------------------------

enum { ROWS = 8192 };

// Tensors of one column, apart. Where memory is not NULL it is that of `grids`.
static grid_world *plain_make(test_memory *memory, uint32_t dependencies) {
    grid_world *w = (grid_world *)calloc(1, sizeof *w);
    assert_non_null(w);
    w->timed.schedule.issue = PTOWSP_ISSUE_DATAFLOW;
    w->timed.schedule.dependencies = dependencies;
    w->timed.schedule.hazards = PWSP_DEPS_HAZARDS;
    w->timed.tensor_is_written = w->written;
    w->timed.tensor_is_loaded = w->loaded;
    for (uint32_t i = 1; i < TENSORS; i++) {
        tensor_make(w, i, ROWS, 1, 1);
        w->loaded[i] = (dependencies & PTOWSP_DEPENDENCIES_OVERLAP) == 0;
    }
    const pwsp_memory heap = pwsp_memory_make(memory ? test_resize : NULL, memory);
    w->memory = pwsp_blocks_begin(&w->blocks, &heap);
    assert_true(pwsp_deps_init(&w->grids, &w->memory, TENSORS + 1));
    assert_true(pwsp_deps_init(&w->lists, &w->memory, TENSORS + 1));
    world_begin(w, false);
    return w;
}

static void plain_free(grid_world *w) {
    pwsp_blocks_free(&w->blocks);
    free(w);
}

// Rows of a tensor; none: all of it.
static pwsp_tile_at rows_of(uint32_t tensor, int64_t row, uint32_t rows, uint32_t access) {
    const pwsp_tile_at at = {tensor, rows, rows ? 1 : 0, access, 0, row, 0};
    return at;
}

// A task with one tile is ordered, and known to later ones. False without memory.
static bool order(pwsp_deps *deps, pwsp_tile_at at, const pwsp_token *token) {
    return pwsp_deps_query(deps, &at, 1) && pwsp_deps_add(deps, &at, 1, token);
}

// A task with one tile, in both maps.
static void both(grid_world *w, pwsp_tile_at at, uint64_t end) {
    const pwsp_token none = {0, PTOWSP_NO_INDEX}, token = {end, 1};
    w->grids.latest = w->lists.latest = none;
    assert_true(pwsp_deps_query(&w->grids, &at, 1) && pwsp_deps_query(&w->lists, &at, 1));
    check_same(w);
    assert_true(pwsp_deps_add(&w->grids, &at, 1, &token) &&
                pwsp_deps_add(&w->lists, &at, 1, &token));
}

// More than half of the accesses of a grid are over when one of all of another tensor looks at everything,
// and so the next task, which comes by its key, sweeps them out. What is not over is found as before.
TEST(grid__a_sweep_keeps_what_is_not_over) {
    enum { COUNT = 1600 };
    grid_world *w = plain_make(NULL, PTOWSP_DEPENDENCIES_OVERLAP);
    both(w, rows_of(2, 0, 0, PWSP_TILE_READ), 10);
    both(w, rows_of(2, 7, 1, PWSP_TILE_WRITTEN), 1000);
    for (int64_t i = 0; i < COUNT; i++) {
        both(w, rows_of(1, i, 1, PWSP_TILE_WRITTEN), i % 8 ? 1000 : 5000);
    }
    assert_int_equal(w->grids.tensors[1].form, PWSP_DEPS_GRID);
    w->grids.clock = w->lists.clock = 2000;
    both(w, rows_of(2, 0, 0, PWSP_TILE_READ), 2000);
    assert_true(w->grids.wants_sweep && w->lists.wants_sweep);
    for (int64_t n = 0; n < 3 * COUNT; n++) {  // of others in between, which take the places
        const pwsp_token none = {0, PTOWSP_NO_INDEX};
        const int64_t i = n % COUNT;
        if (n >= COUNT && n < 2 * COUNT) {
            both(w, rows_of(3, i, 1, PWSP_TILE_WRITTEN), 7000);
            continue;
        }
        pwsp_tile_at at = rows_of(1, i, 1, PWSP_TILE_READ);
        w->grids.latest = w->lists.latest = none;
        assert_true(pwsp_deps_query(&w->grids, &at, 1));
        assert_true(pwsp_deps_query(&w->lists, &at, 1));
        check_same(w);
        assert_int_equal(w->grids.latest.time, i % 8 ? 0 : 5000);
        assert_true(n >= COUNT || w->grids.access_count <= COUNT / 8 + 2);
    }
    plain_free(w);
}

// A sweep enters small tiles before large ones, for which it needs another level than before.
TEST(grid__a_sweep_may_lack_memory) {
    for (int way = 0; way < 3;
         way++) {  // at a query, at one of a grid, when adding what is only loaded
        test_memory memory = {0};
        grid_world *w = plain_make(&memory, way == 2 ? PTOWSP_DEPENDENCIES_STRUCTURE
                                                     : PTOWSP_DEPENDENCIES_OVERLAP);
        pwsp_deps *deps = &w->grids;
        const pwsp_token early = {1000, 1}, late = {9000, 2};
        pwsp_tile_at at = rows_of(1, 0, 1, PWSP_TILE_WRITTEN),
                     all = rows_of(2, 0, 0, PWSP_TILE_READ);
        const pwsp_tile_at in_grid = at;
        assert_true(order(deps, at, &late));
        assert_true(order(deps, all, &early));
        for (int64_t i = 0; i < 1900; i++) {
            at = rows_of(2, 4 * i, 4, PWSP_TILE_WRITTEN);
            assert_true(pwsp_deps_query(deps, &at, 1) &&
                        pwsp_deps_add(deps, &at, 1, i < 1600 ? &early : &late));
        }
        deps->clock = 2000;
        for (int64_t i = 0; i < 8; i++) {
            at = rows_of(2, i, 1, PWSP_TILE_WRITTEN);
            assert_true(order(deps, at, &late));
        }
        pwsp_deps_query_load(deps, &all);
        assert_true(deps->wants_sweep);
        memory.refuse_at = memory.allocations + 1;
        at = rows_of(2, 0, 4, PWSP_TILE_WRITTEN);
        const bool is_good = way == 1   ? pwsp_deps_query(deps, &in_grid, 1)
                             : way == 0 ? pwsp_deps_query(deps, &at, 1)
                                        : pwsp_deps_add(deps, &at, 1, &late);
        assert_int_equal(is_good, memory.allocations < memory.refuse_at);
        assert_false(test_is_tight() && is_good);
        assert_false(deps->wants_sweep);
        plain_free(w);
        assert_int_equal(memory.live_blocks, 0);
    }
}

// The task at the corner of a wavefront, which has no tiles before it, writes its tile and reads it twice. It
// has two accesses, the tensor stays in its grid, and later tasks wait for it as the time says.
TEST(grid__a_tile_twice_in_a_task_is_one_access) {
    grid_world *w = plain_make(NULL, PTOWSP_DEPENDENCIES_OVERLAP);
    pwsp_deps *deps = &w->grids;
    const pwsp_tile_at corner[] = {rows_of(1, 0, 1, PWSP_TILE_READ | PWSP_TILE_WRITTEN),
                                   rows_of(1, 0, 1, PWSP_TILE_READ),
                                   rows_of(1, 0, 1, PWSP_TILE_READ)};
    const pwsp_tile_at next[] = {rows_of(1, 1, 1, PWSP_TILE_READ | PWSP_TILE_WRITTEN),
                                 rows_of(1, 0, 1, PWSP_TILE_READ)};
    const pwsp_token none = {0, PTOWSP_NO_INDEX}, first = {100, 1}, second = {250, 2};
    assert_true(pwsp_deps_query(deps, next, 1) && pwsp_deps_add(deps, next, 1, &none));
    deps->latest = none;
    assert_true(pwsp_deps_query(deps, corner, 3) && pwsp_deps_add(deps, corner, 3, &first));
    assert_int_equal(deps->latest.time, 0);
    assert_int_equal(deps->access_count, 3);
    assert_true(pwsp_deps_query(deps, next, 2));
    assert_int_equal(deps->latest.time, 100);
    assert_true(pwsp_deps_add(deps, next, 2, &second));
    deps->latest = none;
    assert_true(pwsp_deps_query(deps, corner, 1));  // the tile's readers, too
    assert_int_equal(deps->latest.time, 250);
    assert_int_equal(deps->tensors[1].form, PWSP_DEPS_GRID);
    plain_free(w);
}

// A grid ends when its pages are mostly empty, or at a load of all of its tensor: then lists need memory.
TEST(grid__its_end_may_lack_memory) {
    for (int way = 0; way < 2; way++) {
        uint32_t refused = 0;
        for (size_t n = 1;; n++) {
            test_memory memory = {0};
            grid_world *w = plain_make(&memory, PTOWSP_DEPENDENCIES_OVERLAP);
            pwsp_deps *deps = &w->grids;
            const pwsp_token token = {1000, 1};
            const pwsp_token none = {0, PTOWSP_NO_INDEX};
            // 42 accesses in 27 pages: 4 * 27 > 42 + 4 * 16.
            for (int64_t i = 0; i < 16 + 26; i++) {
                const int64_t row = i < 16 ? i : (i - 15) * PWSP_DEPS_PAGE;
                const pwsp_tile_at at = rows_of(1, row, 1, PWSP_TILE_WRITTEN);
                assert_true(order(deps, at, &token));
            }
            assert_int_equal(deps->tensors[1].form, PWSP_DEPS_GRID);
            const pwsp_tile_at far = rows_of(1, ROWS - 1, 1, PWSP_TILE_WRITTEN);
            const pwsp_tile_at all = rows_of(1, 0, 0, PWSP_TILE_READ);
            memory.refuse_at = memory.allocations + n;
            bool is_good;
            if (way) {
                deps->latest = none;
                pwsp_deps_query_load(deps, &all);
                is_good = !deps->is_list_lost;
                assert_true(!is_good || deps->latest.time == 1000);
                assert_int_equal(pwsp_deps_query(deps, &all, 1), is_good);  // it is told then
            } else {
                is_good = order(deps, far, &token);
                assert_true(!is_good || deps->tensors[1].form == PWSP_DEPS_LISTS_SINCE);
            }
            const bool was_refused = memory.allocations >= memory.refuse_at;
            assert_int_equal(is_good, !was_refused);
            plain_free(w);
            assert_int_equal(memory.live_blocks, 0);
            refused += was_refused;
            if (!was_refused) {
                break;
            }
        }
        assert_true(refused > 0);
    }
}

// With fixed memory there are levels for 64 sizes and some. What has another size is looked at always, and
// found all the same.
TEST(grid__sizes_beyond_the_levels_are_found) {
    enum { SIDE = 10 };
    grid_world *w = plain_make(NULL, PTOWSP_DEPENDENCIES_OVERLAP);
    pwsp_bound_tensor *t = &w->bound[1];
    uint64_t random = test_seed();
    t->rows = t->cols = t->row_stride = 1 << SIDE;
    world_begin(w, true);
    w->grids.tensors[1].form = PWSP_DEPS_LISTS;
    assert_true(pwsp_deps_fix(&w->lists, 1000));
    for (uint32_t sum = 0; sum < 2 * SIDE;
         sum++) {  // small ones first: none has the level of another
        for (uint32_t r = 0; r <= sum; r++) {
            const uint32_t c = sum - r;
            if (r < SIDE && c < SIDE) {
                const pwsp_tile_at at = {1, 1u << r, 1u << c, PWSP_TILE_READ, 0, r, c};
                both(w, at, 1000 + 100 * r + c);
            }
        }
    }
    assert_int_equal(w->lists.level_count, w->lists.level_capacity);
    assert_true(w->grids.level_count > w->lists.level_count);
    assert_int_not_equal(w->lists.tensors[1].wides, 0);
    for (int i = 0; i < 2000; i++) {
        const pwsp_token none = {0, PTOWSP_NO_INDEX};
        const int64_t row = test_random_in(&random, 0, (1 << SIDE) - 1);
        const int64_t col = test_random_in(&random, 0, (1 << SIDE) - 1);
        const pwsp_tile_at at = {1, 1, 1, PWSP_TILE_WRITTEN, 0, row, col};
        uint64_t latest = 0;
        for (int64_t r = 0; r < SIDE; r++) {
            for (int64_t c = 0; c < SIDE; c++) {
                const bool meets = r <= row && row < r + (1 << r) && c <= col && col < c + (1 << c);
                latest = meets ? pwsp_max_u64(latest, (uint64_t)(1000 + 100 * r + c)) : latest;
            }
        }
        w->grids.latest = w->lists.latest = none;
        assert_true(pwsp_deps_query(&w->grids, &at, 1) && pwsp_deps_query(&w->lists, &at, 1));
        assert_int_equal(w->grids.latest.time, latest);
        assert_int_equal(w->lists.latest.time, latest);
    }
    plain_free(w);
}

// The map of regions against an obvious one: a list of all accesses, each with the set of its
// bytes, compared one by one. Tensors are separate, interleaved, overlapping, with gaps, reversed
// or with memory that elements share; tiles are usual, shifted, single elements, panels and whole
// tensors; dependencies exact, by overlap, or only those of slot loads. And tasks without tiles,
// which have nothing to look up.

#include "src/exec/run.h"

#include "support/fixture.h"

enum { TENSORS = 5, BYTES = 4096, WORDS = BYTES / 64, TASKS = 400, TILES = 3 };

typedef struct old_access {
    uint64_t bytes[WORDS];
    int64_t low, high;  // of these, first and last
    pwsp_tile_at at;
    uint64_t end;
    uint32_t task;
    bool is_read, is_written;
    bool is_covered;  // by the tile of a later write, so that it is not the last writer any more
} old_access;

typedef struct world {
    pwsp_timed timed;
    pwsp_blocks blocks;
    pwsp_memory memory;
    pwsp_bound_tensor bound[TENSORS];
    bool flags[TENSORS], loaded[TENSORS];
    pwsp_deps deps;
    old_access old[TASKS * TILES];
    uint32_t old_count;
    bool has_pipelines;
    uint64_t lists_compared;  // of several tasks
} world;

static void set_byte(uint64_t *bytes, int64_t at) {
    assert_true(at >= 0 && at < BYTES);
    bytes[at / 64] |= UINT64_C(1) << at % 64;
}

static void add_element(const pwsp_bound_tensor *t, int64_t offset, uint64_t *bytes) {
    for (uint32_t b = 0; b < t->element_size; b++) {
        set_byte(bytes, (int64_t)t->base + offset * t->element_size + b);
    }
}

// A whole tensor is all bytes from its first to its last element.
static void bytes_of(const pwsp_bound_tensor *t, const pwsp_tile_at *at, uint64_t *bytes) {
    memset(bytes, 0, WORDS * sizeof(uint64_t));
    if (at->rows) {
        for (int64_t r = 0; r < at->rows; r++) {
            for (int64_t c = 0; c < at->cols; c++) {
                add_element(
                    t, at->lead + (at->row + r) * t->row_stride + (at->col + c) * t->col_stride,
                    bytes);
            }
        }
        return;
    }
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (int64_t l = 0; l < t->lead_shape[0]; l++) {
        for (int64_t r = 0; r < t->rows; r++) {
            for (int64_t c = 0; c < t->cols; c++) {
                int64_t o = l * t->lead_strides[0] + r * t->row_stride + c * t->col_stride;
                first = o < first ? o : first;
                last = o > last ? o : last;
            }
        }
    }
    for (int64_t o = first; o <= last; o++) {
        add_element(t, o, bytes);
    }
}

static bool meets(const uint64_t *a, const uint64_t *b) {
    uint64_t both = 0;
    for (uint32_t i = 0; i < WORDS; i++) {
        both |= a[i] & b[i];
    }
    return both != 0;
}

// The first and the last byte of a set.
static void span_of(const uint64_t *bytes, int64_t *low, int64_t *high) {
    *low = BYTES;
    *high = -1;
    for (int64_t i = 0; i < BYTES; i++) {
        if (bytes[i / 64] >> i % 64 & 1) {
            *low = i < *low ? i : *low;
            *high = i;
        }
    }
}

static bool is_inside(const uint64_t *outer, const uint64_t *inner) {
    uint64_t beside = 0;
    for (uint32_t i = 0; i < WORDS; i++) {
        beside |= inner[i] & ~outer[i];
    }
    return beside == 0;
}

static bool is_same(const world *w, const pwsp_tile_at *a, const pwsp_tile_at *b) {
    const pwsp_bound_tensor *x = &w->bound[a->tensor], *y = &w->bound[b->tensor];
    if (a->rows == 0 || b->rows == 0) {
        return a->rows == b->rows && a->tensor == b->tensor;
    }
    int64_t from = (int64_t)x->base +
                   (a->lead + a->row * x->row_stride + a->col * x->col_stride) * x->element_size;
    int64_t to = (int64_t)y->base +
                 (b->lead + b->row * y->row_stride + b->col * y->col_stride) * y->element_size;
    return from == to && a->rows == b->rows && a->cols == b->cols &&
           x->element_size == y->element_size && (a->rows == 1 || x->row_stride == y->row_stride) &&
           (a->cols == 1 || x->col_stride == y->col_stride);
}

// -- samples --------------------------------------------------------------------------------------

// All leading dimensions are 1.
static void tensor_begin(pwsp_bound_tensor *t) {
    memset(t, 0, sizeof *t);
    for (uint32_t l = 0; l < PWSP_TENSOR_LEAD_MAX; l++) {
        t->lead_shape[l] = 1;
    }
    t->is_bound = true;
}

static void tensor_random(world *w, uint32_t i, uint32_t kind, uint64_t *random) {
    pwsp_bound_tensor *t = &w->bound[i];
    tensor_begin(t);
    t->element_size = kind == 2 ? 1u << test_random_in(random, 0, 2) : 2;
    t->rows = test_random_in(random, 1, 12);
    t->cols = test_random_in(random, 1, 6);
    t->lead_shape[0] = test_random_in(random, 1, 2);
    t->col_stride = kind == 2 ? test_random_in(random, 0, 3) : 1;
    t->row_stride = t->cols;
    if (kind == 0) {  // apart
        t->base = (uint64_t)(i - 1) * 400;
    } else if (kind == 1) {  // packed: rows of the one behind those of the other, in 4 columns each
        t->cols = test_random_in(random, 1, 4);
        t->row_stride = 16;
        t->base = (uint64_t)(i - 1) * 8;
    } else {  // any
        t->row_stride = test_random_in(random, -20, 20);
        t->base = (uint64_t)test_random_in(random, 2000, 2100);
    }
    t->lead_strides[0] = 12 * (t->row_stride < 0 ? -t->row_stride : t->row_stride);
    t->lead_strides[0] += kind == 2 ? test_random_in(random, -6, 6) : 0;
    if (test_random(random) % 16 == 0) {
        t->rows = 0;  // empty
    }
}

static void world_random(world *w, uint64_t *random) {
    static const uint32_t dependencies[] = {PTOWSP_DEPENDENCIES_OVERLAP, PTOWSP_DEPENDENCIES_EXACT,
                                            PTOWSP_DEPENDENCIES_OVERLAP | PTOWSP_DEPENDENCIES_EXACT,
                                            PTOWSP_DEPENDENCIES_STRUCTURE};
    memset(w, 0, sizeof *w);
    uint32_t kind = (uint32_t)(test_random(random) % 3);
    ptowsp_schedule *schedule = &w->timed.schedule;
    schedule->issue = PTOWSP_ISSUE_DATAFLOW;
    schedule->dependencies = dependencies[test_random(random) % 4];
    schedule->hazards = 7;
    if (test_random(random) % 2) {
        schedule->hazards = (uint32_t)(test_random(random) % 8);
    }
    if (kind == 2 && !(schedule->hazards & PTOWSP_HAZARD_WAW)) {
        schedule->hazards &= ~(uint32_t)PTOWSP_HAZARD_RAW;  // it is not sure what covers what
    }
    w->timed.tensor_is_written = w->flags;
    w->timed.tensor_is_loaded = w->loaded;
    w->has_pipelines = test_random(random) % 4 == 0;
    w->timed.pipeline_count = w->has_pipelines;
    for (uint32_t i = 1; i < TENSORS; i++) {
        tensor_random(w, i, kind, random);
        w->loaded[i] = test_random(random) % 2;
    }
    const pwsp_memory heap = pwsp_memory_make(NULL, NULL);
    w->memory = pwsp_blocks_begin(&w->blocks, &heap);
    assert_true(pwsp_deps_init(&w->deps, &w->memory, TENSORS));
    pwsp_deps_begin(&w->deps, &w->timed, w->bound);
}

static bool tile_random(const world *w, int64_t size, uint64_t *random, pwsp_tile_at *at) {
    at->tensor = (uint32_t)test_random_in(random, 1, TENSORS - 1);
    const pwsp_bound_tensor *t = &w->bound[at->tensor];
    if (t->rows == 0) {
        return false;
    }
    at->lead = test_random_in(random, 0, t->lead_shape[0] - 1) * t->lead_strides[0];
    at->row = test_random_in(random, 0, t->rows - 1);
    at->col = test_random_in(random, 0, t->cols - 1);
    int64_t rows = test_random_in(random, 1, size), cols = test_random_in(random, 1, size);
    switch (test_random(random) % 4) {
    case 0: rows = t->rows; break;
    case 1:
        rows = cols = 2;
        at->row -= at->row % 2;
        at->col -= at->col % 2;
        break;
    default: break;
    }
    at->rows = (uint32_t)(rows < t->rows - at->row ? rows : t->rows - at->row);
    at->cols = (uint32_t)(cols < t->cols - at->col ? cols : t->cols - at->col);
    if (w->has_pipelines && test_random(random) % 8 == 0) {
        at->rows = at->cols = 0;
        at->lead = at->row = at->col = 0;
    }
    return true;
}

// -- what must hold -------------------------------------------------------------------------------

// The latest end of what a tile waits for: of tasks before that read or write, and of writers that
// may not have been the last.
static uint64_t slow_query(const world *w, const pwsp_tile_at *at, bool is_read, bool is_written,
                           bool is_load) {
    uint32_t dependencies = w->timed.schedule.dependencies;
    uint32_t hazards = is_load ? PTOWSP_HAZARD_RAW : w->timed.schedule.hazards;
    bool is_overlap = is_load || (dependencies & PTOWSP_DEPENDENCIES_OVERLAP);
    uint64_t bytes[WORDS], latest = 0;
    if (!is_load && !(dependencies & (PTOWSP_DEPENDENCIES_OVERLAP | PTOWSP_DEPENDENCIES_EXACT))) {
        return 0;
    }
    int64_t low, high;
    bytes_of(&w->bound[at->tensor], at, bytes);
    span_of(bytes, &low, &high);
    for (uint32_t i = 0; i < w->old_count; i++) {
        const old_access *old = &w->old[i];
        bool is_last = is_load || !old->is_covered || (hazards & PTOWSP_HAZARD_WAW);
        bool is_hazard = (old->is_written && is_last && is_read && (hazards & PTOWSP_HAZARD_RAW)) ||
                         (old->is_read && is_written && (hazards & PTOWSP_HAZARD_WAR)) ||
                         (old->is_written && is_written && (hazards & PTOWSP_HAZARD_WAW));
        bool is_whole = at->rows == 0 || old->at.rows == 0;
        bool is_met = is_whole
                          ? at->tensor == old->at.tensor || (low <= old->high && old->low <= high)
                      : is_overlap ? meets(bytes, old->bytes)
                                   : is_same(w, at, &old->at);
        if (is_hazard && is_met && old->end >= w->deps.clock) {
            latest = old->end > latest ? old->end : latest;
        }
    }
    return latest;
}

// A map that counts lists what it has met. Of plain tensors that is exactly what overlaps and was not
// hidden by a write; elsewhere it may be more.
static void check_visited(world *w, const pwsp_tile_at *tiles, uint32_t count) {
    bool is_met[TASKS] = {false};
    uint64_t met = 0, bytes[WORDS];
    for (uint32_t i = 0; i < count; i++) {
        if (!w->deps.tensors[tiles[i].tensor].is_plain) {
            return;
        }
        bytes_of(&w->bound[tiles[i].tensor], &tiles[i], bytes);
        for (uint32_t k = 0; k < w->old_count; k++) {
            const old_access *old = &w->old[k];
            const bool is_hazard = old->is_written || (tiles[i].access & PWSP_TILE_WRITTEN);
            if (is_hazard && !old->is_covered && old->end >= w->deps.clock &&
                meets(bytes, old->bytes)) {
                met += !is_met[old->task];
                is_met[old->task] = true;
            }
        }
    }
    assert_int_equal(w->deps.visited_count, met);
    for (uint64_t i = 0; i < met; i++) {
        assert_true(is_met[w->deps.visited[i].task]);
        assert_true(i == 0 || w->deps.visited[i - 1].task < w->deps.visited[i].task);
    }
    w->lists_compared += met > 1;
}

static void slow_add(world *w, const pwsp_tile_at *at, bool is_read, bool is_written,
                     const pwsp_token *token, uint32_t first_own) {
    bool is_overlap = (w->timed.schedule.dependencies & PTOWSP_DEPENDENCIES_OVERLAP) != 0;
    old_access *own = &w->old[w->old_count];
    own->at = *at;
    own->end = token->time;
    own->task = (uint32_t)token->task;
    own->is_read = is_read;
    own->is_written = is_written;
    own->is_covered = false;
    bytes_of(&w->bound[at->tensor], at, own->bytes);
    span_of(own->bytes, &own->low, &own->high);
    for (uint32_t i = 0; is_written && i < first_own; i++) {
        bool is_within = is_overlap ? is_inside(own->bytes, w->old[i].bytes) &&
                                          (at->rows == 0 ? w->old[i].at.tensor == at->tensor
                                                         : w->old[i].at.rows != 0)
                                    : is_same(w, at, &w->old[i].at);
        w->old[i].is_covered = w->old[i].is_covered || is_within;
    }
    w->old_count++;
}

static void check_load(world *w, const pwsp_tile_at *at) {
    const pwsp_token none = {0, PTOWSP_NO_INDEX};
    w->deps.latest = none;
    pwsp_deps_query_load(&w->deps, at);
    assert_true(w->deps.latest.time == slow_query(w, at, true, false, true));
}

static void task_random(world *w, uint32_t number, uint64_t *random) {
    pwsp_tile_at tiles[TILES];
    bool is_read[TILES], is_written[TILES];
    uint32_t count = (uint32_t)test_random_in(random, 1, TILES);
    int64_t size = number < 5 ? 1 : test_random_in(random, 1, 8);
    for (uint32_t i = 0; i < count; i++) {
        if (!tile_random(w, size, random, &tiles[i])) {
            return;
        }
        uint64_t access = test_random(random) % 3;
        is_read[i] = access != 1;
        is_written[i] = access != 0;
        tiles[i].access =
            (is_read[i] ? PWSP_TILE_READ : 0) | (is_written[i] ? PWSP_TILE_WRITTEN : 0);
    }
    uint64_t expected = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t end = slow_query(w, &tiles[i], is_read[i], is_written[i], false);
        expected = end > expected ? end : expected;
    }
    const pwsp_token none = {0, PTOWSP_NO_INDEX};
    w->deps.latest = none;
    w->deps.visited_count = 0;
    assert_true(pwsp_deps_query(&w->deps, tiles, count));
    assert_true(w->deps.latest.time == expected);
    const ptowsp_schedule *schedule = &w->timed.schedule;
    if (w->deps.is_counted && !w->has_pipelines && schedule->hazards == 7 &&
        (schedule->dependencies & PTOWSP_DEPENDENCIES_OVERLAP)) {
        check_visited(w, tiles, count);
    }
    uint64_t start = expected > w->deps.clock ? expected : w->deps.clock;
    const pwsp_token token = {start + (uint64_t)test_random_in(random, 1, 60), number};
    assert_true(pwsp_deps_add(&w->deps, tiles, count, &token));
    uint32_t first_own = w->old_count;
    for (uint32_t i = 0; i < count; i++) {
        slow_add(w, &tiles[i], is_read[i], is_written[i], &token, first_own);
    }
    const pwsp_deps_tensor *tensor = &w->deps.tensors[tiles[0].tensor];
    bool is_kept = tensor->is_loaded ||
                   (tensor->is_tracked && (w->timed.schedule.hazards & PTOWSP_HAZARD_WAW));
    if (is_kept && tiles[0].rows && test_random(random) % 4 == 0) {
        check_load(w, &tiles[0]);
    }
    w->deps.clock += (uint64_t)test_random_in(random, 0, 12);
}

TEST(deps__a_task_waits_for_what_comparing_all_bytes_finds) {
    uint64_t seed = test_seed(), lists_compared = 0;
    static world made, *const w = &made;
    for (uint32_t sample = 0; TEST_ROUNDS(sample, 130); sample++) {
        uint64_t random = seed + sample;
        if (sample % 100 == 0) {
            print_message("sample %u\n", (unsigned)sample);
        }
        world_random(w, &random);
        w->deps.is_counted = sample % 2 != 0;
        for (uint32_t i = 0; i < TASKS; i++) {
            task_random(w, i, &random);
        }
        lists_compared += w->lists_compared;
        pwsp_blocks_free(&w->blocks);
    }
    assert_met(lists_compared > 0);
}

// Tensors in different groups share no byte, however they are packed.
TEST(deps__groups_that_are_apart_share_no_bytes) {
    uint64_t random = test_seed();
    static world made, *const w = &made;
    uint32_t split = 0;
    for (uint32_t sample = 0; TEST_ROUNDS(sample, 4000); sample++) {
        uint64_t bytes[TENSORS][WORDS];
        world_random(w, &random);
        w->timed.pipeline_count = 0;
        int64_t stride = test_random_in(&random, 4, 20);
        for (uint32_t i = 1; i < TENSORS; i++) {
            pwsp_bound_tensor *t = &w->bound[i];
            t->element_size = 2;
            t->rows = test_random_in(&random, 1, 6);
            t->cols = test_random_in(&random, 1, 5);
            t->col_stride = test_random_in(&random, -2, 2);
            t->row_stride = stride * test_random_in(&random, -1, 2);
            t->lead_shape[0] = test_random_in(&random, 1, 2);
            t->lead_strides[0] = stride * 6;
            t->base = (uint64_t)test_random_in(&random, 700, 760);
            memset(bytes[i], 0, sizeof bytes[i]);
            for (int64_t l = 0; l < t->lead_shape[0]; l++) {
                const pwsp_tile_at all = {
                    i, (uint32_t)t->rows, (uint32_t)t->cols, 0, l * t->lead_strides[0], 0, 0};
                uint64_t some[WORDS];
                bytes_of(t, &all, some);
                for (uint32_t k = 0; k < WORDS; k++) {
                    bytes[i][k] |= some[k];
                }
            }
        }
        pwsp_deps_begin(&w->deps, &w->timed, w->bound);
        for (uint32_t i = 1; i < TENSORS; i++) {
            const pwsp_deps_tensor *a = &w->deps.tensors[i];
            for (uint32_t j = 1; j < i; j++) {
                const pwsp_deps_tensor *b = &w->deps.tensors[j];
                if (a->group != b->group) {
                    assert_false(meets(bytes[i], bytes[j]));
                    split += a->low < b->high && b->low < a->high;
                } else {
                    assert_false(a->is_plain || b->is_plain);
                }
            }
        }
        pwsp_blocks_free(&w->blocks);
    }
    assert_met(split > 100);
}

// A map of so many tensors, in memory that goes with `blocks`.
static pwsp_deps map_make(pwsp_blocks *blocks, uint32_t tensor_count) {
    const pwsp_memory heap = pwsp_memory_make(NULL, NULL);
    static pwsp_memory memory;
    pwsp_deps deps;
    memory = pwsp_blocks_begin(blocks, &heap);
    assert_true(pwsp_deps_init(&deps, &memory, tensor_count));
    return deps;
}

// Q, K and V of all layers, in rows of one buffer: all of them are plain.
TEST(deps__the_usual_packings_are_as_good_as_apart) {
    enum { COUNT = 24, HEADS = 4, DIM = 8, TOKENS = 64 };
    for (uint32_t by_head = 0; by_head < 2; by_head++) {
        bool flags[COUNT + 1] = {false};
        pwsp_timed timed = {0};
        pwsp_bound_tensor bound[COUNT + 1] = {0};
        timed.tensor_is_written = timed.tensor_is_loaded = flags;
        timed.schedule.dependencies = PTOWSP_DEPENDENCIES_OVERLAP;
        for (uint32_t i = 1; i <= COUNT; i++) {
            pwsp_bound_tensor *t = &bound[i];
            tensor_begin(t);
            t->element_size = 2;
            t->lead_shape[0] = TOKENS;
            t->lead_strides[0] = COUNT * HEADS * DIM;
            t->rows = HEADS;
            t->cols = DIM;
            t->row_stride = by_head ? COUNT * DIM : DIM;
            t->col_stride = 1;
            t->base = 4096 + (i * 7 % COUNT) * (by_head ? DIM : HEADS * DIM) * 2;
        }
        pwsp_blocks blocks;
        pwsp_deps deps = map_make(&blocks, COUNT + 1);
        pwsp_deps_begin(&deps, &timed, bound);
        for (uint32_t i = 1; i <= COUNT; i++) {
            assert_int_equal(deps.tensors[i].group, i);
            assert_true(deps.tensors[i].is_plain);
        }
        bound[3].rows++;  // one row more, which is another one's
        pwsp_deps_begin(&deps, &timed, bound);
        assert_false(deps.tensors[3].is_plain);
        timed.pipeline_count = 1;
        pwsp_deps_begin(&deps, &timed, bound);
        assert_int_equal(deps.tensors[COUNT].group, 1);
        pwsp_blocks_free(&blocks);
    }
}

// The longest list of a map.
static uint32_t longest_list(const pwsp_deps *deps) {
    uint32_t longest = 0;
    for (uint64_t i = 0; i < deps->bucket_count; i++) {
        uint32_t length = 0;
        for (uint32_t link = deps->buckets[i]; link;
             link = deps->nexts[(link & deps->index_mask) - 1]) {
            length++;
        }
        longest = length > longest ? length : longest;
    }
    return longest;
}

// Many tiles in flight after single elements, among panels of rows, and with rests at the edges:
// lists stay short.
TEST(deps__lists_are_short_whatever_comes_first) {
    enum { SIDE = 64 };
    bool flags[2] = {false, false};
    pwsp_timed timed = {0};
    pwsp_bound_tensor bound[2] = {0};
    timed.tensor_is_written = timed.tensor_is_loaded = flags;
    timed.schedule.dependencies = PTOWSP_DEPENDENCIES_OVERLAP;
    timed.schedule.hazards = 7;
    tensor_begin(&bound[1]);
    bound[1].element_size = 4;
    bound[1].rows = bound[1].cols = bound[1].row_stride = SIDE * 32 - 21;
    bound[1].col_stride = 1;
    pwsp_blocks blocks;
    pwsp_deps deps = map_make(&blocks, 2);
    for (uint32_t first = 0; first < 3; first++) {
        pwsp_token token = {10, 0};
        pwsp_deps_begin(&deps, &timed, bound);
        for (uint32_t i = 0; i < 100 && first > 0; i++) {  // elements, or panels of rows
            pwsp_tile_at at = {1, 1, 1, PWSP_TILE_READ, 0, i * 32 % bound[1].rows, i};
            if (first == 2) {
                at.rows = bound[1].rows - at.row < 32 ? (uint32_t)(bound[1].rows - at.row) : 32;
                at.cols = (uint32_t)bound[1].cols;
                at.col = 0;
            }
            assert_true(pwsp_deps_query(&deps, &at, 1));
            assert_true(pwsp_deps_add(&deps, &at, 1, &token));
        }
        for (uint32_t i = 0; i < SIDE * SIDE; i++) {
            pwsp_tile_at at = {1, 32, 32, PWSP_TILE_READ, 0, i / SIDE * 32, i % SIDE * 32};
            at.rows = i / SIDE == SIDE - 1 ? 11 : 32;
            at.cols = i % SIDE == SIDE - 1 ? 11 : 32;
            assert_true(pwsp_deps_query(&deps, &at, 1));
            assert_true(pwsp_deps_add(&deps, &at, 1, &token));
        }
        assert_true(deps.access_count >= SIDE * SIDE);
        assert_int_equal(deps.tensors[1].wides, 0);
        assert_true(longest_list(&deps) < 12);
        assert_true(deps.level_count <= 1 + 3);
        // As many readers of one tile as are in flight are one access, and who writes it waits for all
        // of them.
        const uint64_t count = deps.access_count;
        pwsp_tile_at one = {1, 32, 32, PWSP_TILE_READ, 0, 0, 0};
        for (token.time = 10; token.time < 65536; token.time++) {
            assert_true(pwsp_deps_query(&deps, &one, 1));
            assert_true(pwsp_deps_add(&deps, &one, 1, &token));
        }
        assert_int_equal(deps.access_count, count);
        one.access = PWSP_TILE_WRITTEN;
        deps.latest.time = 0;
        assert_true(pwsp_deps_query(&deps, &one, 1));
        assert_int_equal(deps.latest.time, 65535);
    }
    pwsp_blocks_free(&blocks);
}

// -- memory ---------------------------------------------------------------------------------------

static ptowsp_cycles some_cycles(const ptowsp_task *task, void *user) {
    (void)user;
    return 100 + (task->index * 2654435761u >> 7) % 4096;
}

// Bytes that a run takes for each task in flight, of three tiles of 16 x 16 each; the first is
// what a task 1,000 before has written, or nobody's.
static double bytes_for_each(fixture *f, ptowsp_schedule schedule, bool is_chained) {
    char text[1024];
    const ptowsp_parse_kernel kernel = {.name = "work", .cost = some_cycles};
    const ptowsp_parse_desc attached = {.kernels = &kernel, .kernel_count = 1};
    snprintf(text, sizeof text,
             "module m\naxis n 65536\ntensor a f32 [1048576, 16] global\n"
             "tensor b f32 [1048576, 16] global\ntensor c f32 [1048576, 16] global\n"
             "kernel work(axes 1, in a f32 16 x 16, in b f32 16 x 16, out c f32 16 x 16) vector, "
             "cycles by a cost function, time only\nworkload main\n  parallel i in n\n"
             "    task work(i) a = %s b = b at (i * 16, 0) c = c at (i * 16, 0)\n",
             is_chained ? "c at (max(i - 1000, 0) * 16, 0)" : "a at (i * 16, 0)");
    fixture_clear(f);
    module_make(f, text, &attached);
    schedule.dependencies = PTOWSP_DEPENDENCIES_HYBRID;
    schedule.lane_count = 24;
    if (schedule.ready == PTOWSP_READY_PRIORITY) {
        schedule.priority_key = ptowsp_task_arg(f->module, 0);
    }
    const ptowsp_program_desc desc = {NULL, &schedule};
    program_make(f, NULL, NULL, &desc);
    assert_ok(test_time(f->run));
    const ptowsp_run_stats *stats = ptowsp_run_result(f->run);
    return (double)stats->memory_bytes / (double)stats->in_flight_max;
}

TEST_F(memory__a_task_of_three_tiles_in_flight_takes_264_bytes) {
    static const uint32_t windows[] = {8192, 12000, 20000};
    for (uint32_t i = 0; i < 12; i++) {
        ptowsp_schedule schedule = {.issue = PTOWSP_ISSUE_DATAFLOW,
                                    .window = windows[i / 4],
                                    .dispatch = PTOWSP_DISPATCH_ROUND_ROBIN};
        schedule.issue = i % 4 == 0 ? PTOWSP_ISSUE_IN_ORDER : PTOWSP_ISSUE_DATAFLOW;
        schedule.dispatch = i % 4 == 2 ? PTOWSP_DISPATCH_WORK_STEALING : schedule.dispatch;
        schedule.ready = i % 4 == 3 ? PTOWSP_READY_PRIORITY : PTOWSP_READY_FIFO;
        for (int is_chained = 0; is_chained < (i % 4 == 0 ? 1 : 2); is_chained++) {
            // (chained in order, no more than 1,000 would be in flight)
            double bytes = bytes_for_each(f, schedule, is_chained);
            print_message("window %u, family %u: %.1f bytes\n", (unsigned)windows[i / 4],
                          (unsigned)(i % 4), bytes);
            // 8 KiB are the run's own, however many tasks there are.
            assert_true(bytes <= 264 + 8192.0 / windows[i / 4]);
        }
    }
}

// -- batches --------------------------------------------------------------------------------------

static ptowsp_cycles seven_cycles(const ptowsp_task *task, void *user) {
    (void)task;
    (void)user;
    return 7;
}

// Tasks are collected with as many tiles as they have: ten of 7 cycles without any in one batch, then a
// task that writes x for 100 in the next. Two lanes take turns:
//
//      lane 0   ten's half to 35, x to 135, half to 170, half to 205, x from 235, when the one
//               before has written it, to 335
//      lane 1   half to 35, half to 70, x from 135 to 235, half to 270
TEST_F(batches__tasks_are_collected_by_the_number_of_their_tiles) {
    const ptowsp_parse_kernel kernel = {.name = "plain", .cost = seven_cycles};
    const ptowsp_parse_desc attached = {.kernels = &kernel, .kernel_count = 1};
    const ptowsp_schedule schedule = {.lane_count = 2};
    const ptowsp_program_desc desc = {NULL, &schedule};
    program_make(f,
                 "module m\naxis n 3\naxis ten 10\ntensor x f32 [4, 4] global\n"
                 "kernel plain(axes 0) vector, cycles by a cost function, time only\n"
                 "kernel writes(axes 0, out x f32 4 x 4) vector, 100 cycles, time only\n"
                 "workload main\n  parallel i in n\n    parallel k in ten\n      task plain()\n"
                 "    task writes() x = x\n",
                 &attached, &desc);
    ptowsp_run *run = f->run;
    for (int has_records = 0; has_records < 2; has_records++) {
        const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY,
                                            .record_tasks = has_records == 1};
        memset(&run->batch, 0, sizeof run->batch);
        assert_ok(ptowsp_run_execute(run, &options));
        const ptowsp_run_stats *stats = ptowsp_run_result(run);
        assert_int_equal(stats->task_count, 33);
        assert_int_equal(stats->makespan_cycles, 335);
        for (uint32_t i = 0; i < 10; i++) {
            assert_int_equal(run->batch.cycles[i], has_records ? 0 : i ? 7 : 100);
        }
        assert_int_equal(run->batch.tile_count, has_records ? 0 : 1);
    }
}

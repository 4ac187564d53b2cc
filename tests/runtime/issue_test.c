// The scheduler by itself, as an emitted tree uses it: tasks arrive with tiles, keys, edges and
// scopes, and no program is there. What each task must wait for is known from an obvious rule for
// each kind of order, over all pairs of tasks. So a task must be ready exactly when all of these have
// run; where memory is given once it may come later, but must come, and nothing is allocated.

#include "src/base/os.h"
#include "src/runtime/issue.h"

#include "test.h"

#include <sched.h>

enum { TASKS = 320, DEPTH = 5, EDGES = 4, STREAMS = 3, TILES = 3, SIDE = 8, WORKERS = 3 };

typedef struct sample_task {
    uint32_t path[DEPTH];  // the child of each scope that it is in, from the outermost
    bool is_parallel[DEPTH];
    uint32_t depth;
    uint32_t stream;
    uint32_t tile_count;
    pwsp_tile_at tiles[TILES];
    bool waits[TASKS];  // by the rules
    uint32_t pending;   // of these, what has not run
    bool is_ready, has_run;
} sample_task;

typedef struct scene {
    pwsp_memory memory;
    uint64_t alloc_count, alloc_limit;
    pwsp_timed timed;
    bool flags[2], loaded[2];
    pwsp_bound_tensor bound[2];
    pwsp_issue issue;
    uint64_t random;
    sample_task tasks[TASKS];
    uint32_t task_count, retired_count, mark_count, run_count;
    uint32_t ends[EDGES][TASKS], end_count[EDGES];  // tasks that an edge leads from
    // The walk's scopes, as the rule sees them.
    uint32_t path[DEPTH], depth;
    bool is_parallel[DEPTH];
    // The executor.
    pwsp_mutex mutex;
    uint32_t ready[TASKS], ready_count;  // places
    uint32_t is_over;                    // atomic
    uint32_t failing;                    // the task that fails, or TASKS
    bool is_exact, has_threads;
    bool may_lack;        // memory
    uint32_t lack_count;  // how often it did
    uint32_t in_flight_max, wrong_count;
} scene;

static scene *the;

static uint64_t chance(uint64_t n) {
    return test_random(&the->random) % n;
}

// -- memory ---------------------------------------------------------------------------------------

static void *counted_resize(void *user, void *ptr, size_t old_size, size_t new_size) {
    scene *s = (scene *)user;
    (void)old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    s->alloc_count++;
    return s->alloc_count > s->alloc_limit ? NULL : realloc(ptr, new_size);
}

// -- the rules ------------------------------------------------------------------------------------

// Ordered by structure if the innermost scope around both is sequential; the outermost is.
static bool is_before_by_structure(const sample_task *a, const sample_task *b) {
    for (uint32_t i = 0;; i++) {
        if (i == a->depth || i == b->depth || a->path[i] != b->path[i]) {
            return !a->is_parallel[i];
        }
    }
}

static bool meets(const pwsp_tile_at *a, const pwsp_tile_at *b) {
    return ((a->access | b->access) & PWSP_TILE_WRITTEN) && a->row < b->row + b->rows &&
           b->row < a->row + a->rows && a->col < b->col + b->cols && b->col < a->col + a->cols;
}

static bool is_before_by_data(const sample_task *a, const sample_task *b) {
    for (uint32_t i = 0; i < a->tile_count; i++) {
        for (uint32_t j = 0; j < b->tile_count; j++) {
            if (meets(&a->tiles[i], &b->tiles[j])) {
                return true;
            }
        }
    }
    return false;
}

// -- the executor ---------------------------------------------------------------------------------

static uint64_t number_of(uint32_t place) {
    return pwsp_entry_words(pwsp_reorder_at(&the->issue.reorder, place))[0];
}

static void make_ready(void *user, uint32_t by, uint32_t place) {
    (void)user, (void)by;
    pwsp_mutex_lock(&the->mutex);
    the->tasks[number_of(place)].is_ready = true;
    the->ready[the->ready_count++] = place;
    pwsp_mutex_unlock(&the->mutex);
}

// What a task waits for has run, and it runs now.
static void run(uint32_t number) {
    sample_task *task = &the->tasks[number];
    the->wrong_count += task->pending > 0 || task->has_run;
    task->has_run = true;
    the->run_count++;
    for (uint32_t i = number + 1; i < the->task_count; i++) {
        the->tasks[i].pending -= the->tasks[i].waits[number];
    }
}

// Runs one of those that are ready; false if there is none.
static bool run_one(uint32_t by, uint64_t pick) {
    pwsp_reorder *reorder = &the->issue.reorder;
    pwsp_mutex_lock(&the->mutex);
    if (the->ready_count == 0) {
        pwsp_mutex_unlock(&the->mutex);
        return false;
    }
    const uint32_t at = (uint32_t)(pick % the->ready_count), place = the->ready[at];
    the->ready[at] = the->ready[--the->ready_count];
    const uint32_t number = (uint32_t)number_of(place);
    const pwsp_entry *entry = pwsp_reorder_at(reorder, place);
    const bool is_skipped = pwsp_load_relaxed(&entry->fan.is_poisoned) != 0;
    if (!is_skipped) {
        run(number);
    }
    pwsp_mutex_unlock(&the->mutex);
    pwsp_reorder_set_result(reorder, place,
                            is_skipped               ? ptowsp_task_fail(PTOWSP_SKIPPED)
                            : number == the->failing ? ptowsp_task_fail(PTOWSP_KERNEL_FAILED)
                                                     : 1);
    pwsp_reorder_done(reorder, place, by);
    return true;
}

static void help(void *user, uint32_t ticket) {
    (void)user;
    while (pwsp_reorder_ticket(&the->issue.reorder) == ticket) {
        if (!run_one(PWSP_BY_WALK, chance(1000)) && the->has_threads) {
            sched_yield();
        }
    }
}

static void *work(void *arg) {
    uint64_t pick = (uint64_t)(uintptr_t)arg;
    while (!pwsp_load_seq_cst(&the->is_over)) {
        if (!run_one((uint32_t)(uintptr_t)arg, test_random(&pick))) {
            sched_yield();
        }
    }
    return NULL;
}

static void no_memory(void *user) {
    (void)user;
    assert_true(the->may_lack);
    the->lack_count++;
}

static bool retire(void *user, const pwsp_entry *entry) {
    (void)user;
    if (entry->kind > PWSP_ENTRY_PROCESS_TASK) {
        the->mark_count++;
        return true;
    }
    assert_int_equal(pwsp_entry_words(entry)[0], the->retired_count);  // in program order
    the->retired_count++;
    if ((int64_t)entry->cycles == PTOWSP_SKIPPED && the->issue.reorder.is_out_of_memory) {
        no_memory(NULL);  // it was not known what it has to wait for
        return false;
    }
    return entry->cycles <= PTOWSP_CYCLES_MAX;
}

// -- scenes ---------------------------------------------------------------------------------------

// False if it needs more than so many allocations.
static bool scene_try(uint64_t seed, uint32_t dependencies, const pwsp_issue_desc *desc,
                      uint64_t alloc_limit) {
    the = (scene *)calloc(1, sizeof *the);
    assert_non_null(the);
    the->random = seed;
    the->failing = TASKS;
    the->alloc_limit = alloc_limit;
    the->memory = pwsp_memory_make(counted_resize, the);
    pwsp_mutex_init(&the->mutex);
    the->flags[1] = true;
    pwsp_timed *timed = &the->timed;
    timed->schedule.dependencies = dependencies;
    timed->schedule.stream_count = STREAMS + TASKS;
    timed->has_streams = true;
    timed->scope_depth = DEPTH + 1;
    timed->tensor_count = 2;
    timed->edge_count = EDGES;
    timed->tensor_is_written = the->flags;
    timed->tensor_is_loaded = the->loaded;
    pwsp_bound_tensor *bound = &the->bound[1];
    bound->is_bound = true;
    bound->base = 4096;
    bound->element_size = 4;
    for (uint32_t i = 0; i < PWSP_TENSOR_LEAD_MAX; i++) {
        bound->lead_shape[i] = 1;
    }
    bound->rows = bound->cols = bound->row_stride = SIDE;
    bound->col_stride = 1;
    const pwsp_executor executor = {make_ready, help, NULL};
    const pwsp_issue_host host = {retire, no_memory, NULL};
    if (!pwsp_issue_init(&the->issue, &the->memory, timed, desc)) {
        return false;
    }
    pwsp_issue_begin(&the->issue, the->bound, &executor, &host);
    if (desc->is_fixed) {
        the->alloc_limit = the->alloc_count;
    }
    return true;
}

static void scene_make(uint64_t seed, uint32_t dependencies, const pwsp_issue_desc *desc) {
    assert_true(scene_try(seed, dependencies, desc, UINT64_MAX));
}

static void scene_free(void) {
    assert_true(the->may_lack || the->alloc_count <= the->alloc_limit);
    pwsp_issue_free(&the->issue);
    pwsp_mutex_destroy(&the->mutex);
    free(the);
}

static void random_tile(pwsp_tile_at *at) {
    memset(at, 0, sizeof *at);
    at->tensor = 1;
    at->access = chance(3) ? PWSP_TILE_READ : chance(2) ? PWSP_TILE_WRITTEN : 3;
    at->row = (int64_t)chance(SIDE);
    at->col = (int64_t)chance(SIDE);
    at->rows = (uint32_t)(1 + chance((uint64_t)(SIDE - at->row)));
    at->cols = (uint32_t)(1 + chance((uint64_t)(SIDE - at->col)));
    if (chance(2)) {  // small ones, so that much runs at once
        at->rows = at->cols = 1;
    }
}

// A scope begins or ends, or an edge begins anew. False after a failure.
static bool random_mark(void) {
    pwsp_mark mark = {PWSP_MARK_END, 0, 0, NULL};
    uint64_t kind = chance(5);
    if (kind < 2 && the->depth < DEPTH - 1) {
        bool is_parallel = chance(2) != 0;
        the->is_parallel[the->depth + 1] = is_parallel;
        the->path[++the->depth] = 0;
        mark.kind = is_parallel ? PWSP_MARK_PARALLEL : PWSP_MARK_SEQUENTIAL;
        return pwsp_issue_mark(&the->issue, &mark);
    }
    if (kind < 4 && the->depth > 0) {
        the->path[--the->depth]++;
        return pwsp_issue_mark(&the->issue, &mark);
    }
    uint32_t edge = (uint32_t)chance(EDGES);
    mark.kind = PWSP_MARK_RESET;
    mark.edges = &edge;
    mark.edge_count = 1;
    the->end_count[edge] = 0;
    return pwsp_issue_mark(&the->issue, &mark);
}

// What a task waits for by the rules; the lock is held, as others run meanwhile.
static void find_waits(sample_task *task, uint32_t number, const uint32_t *after,
                       uint32_t after_count) {
    uint32_t dependencies = the->timed.schedule.dependencies;
    for (uint32_t i = 0; i < number; i++) {
        const sample_task *other = &the->tasks[i];
        task->waits[i] =
            is_before_by_data(other, task) || other->stream == task->stream ||
            ((dependencies & PTOWSP_DEPENDENCIES_STRUCTURE) && is_before_by_structure(other, task));
    }
    for (uint32_t i = 0; i < after_count; i++) {
        for (uint32_t j = 0; j < the->end_count[after[i]]; j++) {
            task->waits[the->ends[after[i]][j]] = true;
        }
    }
    for (uint32_t i = 0; i < number; i++) {
        task->pending += task->waits[i] && !the->tasks[i].has_run;
    }
}

// Exactly those are ready that have nothing to wait for.
static void check_ready(void) {
    for (uint32_t i = 0; the->is_exact && i < the->task_count; i++) {
        const sample_task *task = &the->tasks[i];
        assert_int_equal(task->is_ready, task->pending == 0);
    }
}

static bool random_task(void) {
    const uint32_t number = the->task_count;
    sample_task *task = &the->tasks[number];
    uint32_t after[2], before[2];
    pwsp_arrival arrival = {0};
    pwsp_entry *entry = pwsp_issue_open(&the->issue, PWSP_ENTRY_TASK);
    if (!entry) {
        return false;
    }
    pwsp_entry_words(entry)[0] = number;
    entry->index = number;
    memcpy(task->path, the->path, sizeof task->path);
    memcpy(task->is_parallel, the->is_parallel, sizeof task->is_parallel);
    task->depth = the->depth + 1;
    the->path[the->depth]++;
    // Mostly a stream of its own, so that not all is in a row.
    task->stream = chance(8) ? STREAMS + number : (uint32_t)chance(STREAMS);
    task->tile_count = (uint32_t)chance(TILES + 1);
    for (uint32_t i = 0; i < task->tile_count; i++) {
        random_tile(&task->tiles[i]);
    }
    arrival.stream_key = task->stream;
    arrival.tiles = task->tiles;
    arrival.tile_count = task->tile_count;
    arrival.after = after;
    arrival.before = before;
    while (arrival.after_count < 2 && chance(8) == 0) {
        after[arrival.after_count++] = (uint32_t)chance(EDGES);
    }
    while (arrival.before_count < 2 && chance(4) == 0) {
        before[arrival.before_count++] = (uint32_t)chance(EDGES);
    }
    pwsp_mutex_lock(&the->mutex);
    find_waits(task, number, after, arrival.after_count);
    the->task_count++;
    pwsp_mutex_unlock(&the->mutex);
    for (uint32_t i = 0; i < arrival.before_count; i++) {
        the->ends[before[i]][the->end_count[before[i]]++] = number;
    }
    const bool is_good = pwsp_issue_submit(&the->issue, &arrival);
    const uint32_t in_flight = the->issue.task_count;
    the->in_flight_max = in_flight > the->in_flight_max ? in_flight : the->in_flight_max;
    return is_good;
}

// Tasks and marks, and at the end all has retired.
static void play(uint32_t count) {
    pthread_t threads[WORKERS];
    for (uintptr_t i = 0; the->has_threads && i < WORKERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(i + 1)), 0);
    }
    bool is_good = true;
    while (is_good && the->task_count < count) {
        is_good = chance(3) ? random_task() : random_mark();
        check_ready();
    }
    while (the->is_exact && run_one(PWSP_BY_WALK, chance(1000))) {
        check_ready();
    }
    is_good = is_good && pwsp_issue_settle(&the->issue);
    pwsp_issue_drain(&the->issue);
    pwsp_store_seq_cst(&the->is_over, 1u);
    for (uint32_t i = 0; the->has_threads && i < WORKERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(the->wrong_count, 0);
    assert_int_equal(is_good, the->failing == TASKS);
    assert_int_equal(the->retired_count, is_good ? count : the->failing + 1);
    if (is_good) {
        assert_int_equal(the->run_count, count);
    }
    assert_true(the->issue.task_count_max == the->in_flight_max);
}

// -- tests ----------------------------------------------------------------------------------------

TEST(issue__a_task_is_ready_exactly_when_what_the_rules_say_has_run) {
    const uint64_t seed = test_seed();
    const pwsp_issue_desc desc = {4 * TASKS, 0, 1, TILES, false, 0, 0};
    for (uint32_t sample = 0; sample < 60; sample++) {
        scene_make(seed + sample, sample % 4 ? PTOWSP_DEPENDENCIES_STRUCTURE : 0, &desc);
        the->is_exact = true;
        play(TASKS / 4);
        scene_free();
    }
}

// A ring of few places, fewer tasks, and so few regions and links that they run out all the time.
static const pwsp_issue_desc narrow[] = {{12, 9, 1, TILES, true, 0, 0},
                                         {12, 9, 1, TILES, true, TILES, 0},
                                         {40, 0, 1, TILES, true, 0, 8},
                                         {40, 30, 1, TILES, true, 11, 8},
                                         {1, 0, 1, TILES, true, 0, 8}};
enum { NARROW = COUNT_OF(narrow) };

TEST(issue__memory_that_is_given_once_is_enough_for_any_program_and_threads) {
    const uint64_t seed = test_seed();
    for (uint32_t sample = 0; sample < 16 * NARROW; sample++) {
        const pwsp_issue_desc *desc = &narrow[sample % NARROW];
        scene_make(seed + sample, sample % 7 ? PTOWSP_DEPENDENCIES_STRUCTURE : 0, desc);
        the->has_threads = sample / NARROW % 4 == 3;
        play(TASKS);
        assert_true(the->issue.task_count_max <=
                    (desc->task_max ? desc->task_max : desc->place_count));
        scene_free();
    }
}

// What is before the failure retires, and nothing that waits for it runs.
TEST(issue__nothing_is_issued_after_a_failure_and_all_before_it_retires) {
    const uint64_t seed = test_seed();
    for (uint32_t sample = 0; sample < 8 * NARROW; sample++) {
        scene_make(seed + sample, PTOWSP_DEPENDENCIES_STRUCTURE, &narrow[sample % NARROW]);
        the->has_threads = sample % 2 != 0;
        the->failing = (uint32_t)chance(TASKS);
        play(TASKS);
        assert_true(the->task_count < the->failing + 41);
        for (uint32_t i = the->failing + 1; i < the->task_count; i++) {
            assert_false(the->tasks[i].has_run && the->tasks[i].waits[the->failing]);
        }
        assert_null(pwsp_issue_open(&the->issue, PWSP_ENTRY_TASK));
        scene_free();
    }
}

// The next task writes a tile, on a stream of its own.
static pwsp_arrival arrival_of(const pwsp_tile_at *tile, pwsp_entry_kind kind) {
    const uint32_t number = the->task_count++;
    pwsp_entry *entry = pwsp_issue_open(&the->issue, kind);
    assert_non_null(entry);
    pwsp_entry_words(entry)[0] = number;
    return (pwsp_arrival){.tiles = tile, .tile_count = 1, .stream_key = number};
}

// An element that a task in flight writes is there when a load of it has been submitted.
TEST(issue__a_load_returns_when_its_element_is_written) {
    const pwsp_issue_desc desc = {8, 0, 1, TILES, true, 0, 0};
    scene_make(test_seed(), 0, &desc);
    for (uint32_t i = 0; i < 3; i++) {
        const pwsp_tile_at tile = {1, 1, SIDE, PWSP_TILE_WRITTEN, 0, i, 0};
        const pwsp_arrival arrival = arrival_of(&tile, PWSP_ENTRY_TASK);
        assert_true(pwsp_issue_submit(&the->issue, &arrival));
    }
    pwsp_tile_at element = {1, 1, 1, PWSP_TILE_READ, 0, 1, 4};
    pwsp_arrival load = {.tiles = &element, .tile_count = 1};
    assert_non_null(pwsp_issue_open(&the->issue, PWSP_ENTRY_LOAD));
    assert_true(pwsp_issue_submit(&the->issue, &load));
    assert_true(the->tasks[1].has_run);
    element.row = SIDE - 1;  // that nobody writes
    const uint32_t run_before = the->run_count;
    assert_non_null(pwsp_issue_open(&the->issue, PWSP_ENTRY_LOAD));
    assert_true(pwsp_issue_submit(&the->issue, &load));
    assert_int_equal(the->run_count, run_before);
    assert_true(pwsp_issue_settle(&the->issue));
    assert_int_equal(the->retired_count, 3);
    assert_int_equal(the->mark_count, 2);
    scene_free();
}

// The map has room for a few regions. A task of a process that needs one more has to wait for those before,
// and when one of them fails it is not issued.
TEST(issue__a_process_ends_where_a_task_before_has_failed) {
    const pwsp_issue_desc desc = {SIDE * SIDE, 0, 1, 1, true, 1, 0};
    for (uint32_t fails = 0; fails < 2; fails++) {
        scene_make(test_seed(), 0, &desc);
        the->failing = fails ? 0 : TASKS;
        the->alloc_limit = UINT64_MAX;  // processes are counted when they come
        assert_true(pwsp_issue_pipeline_begin(&the->issue));
        assert_true(pwsp_issue_has_process(&the->issue, 0));
        bool is_good = true;
        uint32_t count = 0;
        for (; is_good && count < SIDE * SIDE; count++) {
            const pwsp_tile_at tile = {1, 1, 1, PWSP_TILE_WRITTEN, 0, count / SIDE, count % SIDE};
            const pwsp_arrival arrival = arrival_of(&tile, PWSP_ENTRY_PROCESS_TASK);
            is_good = pwsp_issue_submit_process(&the->issue, 0, &arrival);
            assert_true(is_good || the->tasks[0].has_run);  // by the thread that issues
        }
        assert_int_equal(is_good, !fails);
        assert_int_equal(count < SIDE * SIDE, fails);
        assert_int_equal(pwsp_issue_settle(&the->issue), !fails);
        pwsp_issue_drain(&the->issue);
        assert_false(fails && the->tasks[count - 1].has_run);
        assert_int_equal(the->retired_count, fails ? 1 : SIDE * SIDE);
        scene_free();
    }
}

// Memory is out at the n-th allocation, of a beginning or later. What came before is retired, and a failure
// among it is told instead.
TEST(issue__memory_may_be_out) {
    const uint64_t seed = test_seed();
    uint32_t lacks[2] = {0, 0}, failures = 0;
    for (uint32_t kind = 0; kind < 4; kind++) {
        const bool is_fixed = kind & 1, has_failure = kind & 2;
        const pwsp_issue_desc desc = {TASKS, 0, 1, TILES, is_fixed, 0, 0};
        uint64_t begun = 0;
        for (uint64_t n = 0; begun == 0 || (!is_fixed && n < begun + 12); n++) {
            const bool is_begun =
                scene_try(seed + n, n % 2 ? PTOWSP_DEPENDENCIES_STRUCTURE : 0, &desc, n);
            the->may_lack = true;
            if (!is_begun) {
                lacks[0]++;
                scene_free();
                continue;
            }
            begun = begun ? begun : n + 1;
            the->failing = has_failure ? (uint32_t)chance(TASKS) : TASKS;
            bool is_good = !is_fixed;
            while (is_good && the->task_count < TASKS) {
                is_good = chance(3) ? random_task() : random_mark();
            }
            if (is_good) {
                is_good = pwsp_issue_settle(&the->issue);
            } else if (!is_fixed) {
                assert_null(pwsp_issue_open(&the->issue, PWSP_ENTRY_TASK));
            }
            pwsp_issue_drain(&the->issue);
            const bool has_failed = the->retired_count > the->failing && !the->lack_count;
            assert_int_equal(the->wrong_count, 0);
            assert_int_equal(the->lack_count, !is_fixed && !is_good && !has_failed);
            assert_true(!has_failed || the->retired_count == the->failing + 1);
            assert_true(!is_good || the->run_count == TASKS);
            lacks[1] += the->lack_count;
            failures += has_failed && the->alloc_count > the->alloc_limit;
            scene_free();
        }
    }
    print_message("out of memory at the beginning %u, later %u, beside a failure %u\n", lacks[0],
                  lacks[1], failures);
    assert_true(lacks[0] > 10);
    assert_met(lacks[1] > 0);
}

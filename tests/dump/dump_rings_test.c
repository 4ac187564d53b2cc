// Sizes of rings, against a slow model of the runtime's rules: tasks that end one by one in any order,
// slots that are given back, memory as a map of its units. Allocations end at once and are not in
// deps.json; each is before a task of its scope.

#include "dump_write.h"

enum { STEPS = 80, DEPTH = 6, UNITS = 400, PREDS = 6 };

typedef enum kind { BEGIN, END, TASK } kind;

typedef struct step {
    kind kind;
    int scope;  // the innermost one: of a task, and that which begins or ends
    int depth, ring;
    int number;  // of a task in its ring
    int preds[PREDS], pred_count;
    int units[2];  // of its outputs
    bool is_alloc;
} step;

typedef struct program {
    step steps[STEPS + 2 * DEPTH + 2];
    int count, counts[4];
} program;

static int ring_of(int depth) {
    return depth < 3 ? depth : 3;
}

static void random_program(uint64_t *seed, program *p) {
    int open[DEPTH], depth = 0, scopes = 0;
    memset(p, 0, sizeof *p);
    const int64_t deep = test_random_in(seed, 1, DEPTH), tasks = test_random_in(seed, 3, 12);
    for (int i = 0; i < STEPS || depth > 0; i++) {
        step *s = &p->steps[p->count];
        const bool is_after_alloc = p->count > 0 && p->steps[p->count - 1].is_alloc;
        const int64_t what = is_after_alloc ? tasks : test_random_in(seed, 0, tasks);
        s->kind = TASK;
        if (depth == 0 || (what == 0 && depth < deep && i < STEPS)) {
            if (depth == 0 && i >= STEPS) {
                break;
            }
            s->kind = BEGIN;
            s->scope = open[depth++] = scopes++;
        } else if ((i >= STEPS && !is_after_alloc) || (what == 1 && depth > 1)) {
            s->kind = END;
            s->scope = open[depth - 1];
        }
        s->depth = depth - 1;
        s->ring = ring_of(s->depth);
        depth -= s->kind == END;
        if (s->kind == TASK) {
            s->scope = open[depth - 1];
            s->number = p->counts[s->ring]++;
            s->is_alloc = !is_after_alloc && test_random_in(seed, 0, 5) == 0;
            for (int k = 0; k < PREDS && !s->is_alloc; k++) {
                const int at = (int)test_random_in(seed, 0, p->count);
                if (at < p->count && p->steps[at].kind == TASK) {
                    s->preds[s->pred_count++] = at;
                }
            }
            for (int k = 0; k < 2 && !s->is_alloc; k++) {
                s->units[k] = test_random_in(seed, 0, 2) ? 0 : (int)test_random_in(seed, 1, 6);
            }
        }
        p->count++;
    }
}

static unsigned long long id_of(const step *s) {
    return (unsigned long long)s->ring << 32 | (unsigned)s->number;
}

static void write_deps(const program *p, dw_text *t) {
    const char *comma = "";
    dw_print(
        t,
        "{\"tensors\":[{\"tensor_id\":1,\"buffer_addr\":0,\"dtype\":\"INT8\",\"buffer_numel\":1}],"
        "\"tasks\":[");
    for (int i = 0; i < p->count; i++) {
        const step *s = &p->steps[i];
        const char *between = "";
        if (s->kind != TASK || s->is_alloc) {
            continue;
        }
        dw_print(t, "%s{\"task_id\":%llu,\"args\":[", comma, id_of(s));
        for (int k = 0; k < 2; k++) {
            if (s->units[k]) {  // somewhere in its last unit
                dw_print(t,
                         "%s{\"type\":\"OUTPUT\",\"tensor_id\":1,\"shape\":[%d],\"strides\":[1]}",
                         between, 1024 * s->units[k] - i % 1024);
                between = ",";
            }
        }
        dw_print(t, "]}");
        comma = ",\n";
    }
    dw_print(t, "],\"edges\":[");
    comma = "";
    for (int i = 0; i < p->count; i++) {
        for (int k = 0; k < p->steps[i].pred_count; k++) {
            dw_print(t, "%s{\"pred\":%llu,\"succ\":%llu%s}", comma,
                     id_of(&p->steps[p->steps[i].preds[k]]), id_of(&p->steps[i]),
                     k % 2 ? ",\"flags\":[\"retain\"]" : "");
            comma = ",\n";
        }
    }
    dw_print(t, "]}");
}

static void write_scopes(const program *p, dw_text *t) {
    int counts[4] = {0};
    dw_print(t, "{\"version\":6}\n");
    for (int i = 0; i < p->count; i++) {
        const step *s = &p->steps[i];
        if (s->kind == TASK) {
            counts[s->ring]++;
        } else {
            dw_print(t,
                     "{\"site\":\"s%d\",\"phase\":\"%s\",\"depth\":%d,\"ring\":%d,\"task_window_"
                     "end\":%d}\n",
                     s->scope, s->kind == BEGIN ? "begin" : "end", s->depth, s->ring,
                     counts[s->ring]);
        }
    }
}

// -- the slow model -------------------------------------------------------------------------------

typedef struct model {
    const program *p;
    const ptowsp_dump_rings *sizes;
    bool is_submitted[STEPS + 2 * DEPTH + 2], is_ended[STEPS + 2 * DEPTH + 2];
    bool is_given[STEPS + 2 * DEPTH + 2], is_closed[STEPS + 2 * DEPTH + 2];
    int retained[STEPS + 2 * DEPTH + 2];  // so many in flight need its outputs
    int owner[4][UNITS];                  // of units of memory: the step, plus 1
    int place[4], first[4];               // first: no task before it is left to be given back
} model;

static bool may_end(const model *m, int i) {
    bool may = m->is_submitted[i] && !m->is_ended[i];
    for (int k = 0; may && k < m->p->steps[i].pred_count; k++) {
        may = m->is_ended[m->p->steps[i].preds[k]];
    }
    return may;
}

// A task is in flight, or no longer, and with it needs the outputs of others.
static void retain(model *m, int task, int count) {
    for (int k = 0; k < m->p->steps[task].pred_count; k++) {
        m->retained[m->p->steps[task].preds[k]] += count;
    }
}

static void give_back(model *m) {
    for (int r = 0; r < 4; r++) {
        for (int i = m->first[r]; i < m->p->count; i++) {
            const step *s = &m->p->steps[i];
            if (s->kind != TASK || s->ring != r) {
                continue;
            }
            if (!m->is_submitted[i] || !m->is_ended[i] || m->retained[i] ||
                !m->is_closed[s->scope]) {
                break;  // in order
            }
            m->is_given[i] = true;
            m->first[r] = i + 1;
            for (int k = 0; k < UNITS; k++) {
                m->owner[r][k] = m->owner[r][k] == i + 1 ? 0 : m->owner[r][k];
            }
        }
    }
}

// Takes memory, or says that there is none. What stays empty at the end belongs to the task as well.
static bool take_memory(model *m, int i, bool is_taking) {
    const step *s = &m->p->steps[i];
    const int need = s->units[0] + s->units[1], size = (int)(m->sizes->heap[s->ring] / 1024);
    int *owner = m->owner[s->ring], place = m->place[s->ring], taken[UNITS], count = 0;
    if (need == 0) {
        return true;
    }
    assert_true(size <= UNITS);
    if (place + need > size) {
        for (; place < size; place++) {
            taken[count++] = place;
        }
        place = 0;
    }
    for (int k = 0; k < need; k++) {
        if (place + k >= size) {
            return false;
        }
        for (int j = 0; j < count; j++) {
            if (taken[j] == place + k) {
                return false;
            }
        }
        taken[count++] = place + k;
    }
    for (int k = 0; k < count; k++) {
        if (owner[taken[k]]) {
            return false;
        }
    }
    for (int k = 0; k < count && is_taking; k++) {
        owner[taken[k]] = i + 1;
    }
    m->place[s->ring] = is_taking ? (place + need) % size : m->place[s->ring];
    return true;
}

// Entries of its edges. Allocations have ended and need none.
static uint64_t entries_of(const model *m, const step *s) {
    uint64_t count = 0;
    for (int k = 0; k < s->pred_count; k++) {
        count += !m->p->steps[s->preds[k]].is_alloc;
    }
    return count;
}

// What stands in the way of a submission.
static ptowsp_dump_ring_error obstacle(model *m, int i) {
    const step *s = &m->p->steps[i];
    uint64_t slots = 0, own = 0, entries = 0;
    for (int k = 0; k < i; k++) {
        const step *other = &m->p->steps[k];
        const bool is_held = other->kind == TASK && other->ring == s->ring && !m->is_given[k];
        slots += is_held;
        own += is_held && other->scope == s->scope;
        entries += is_held ? entries_of(m, other) : 0;
    }
    if (slots + 1 >= m->sizes->task_window[s->ring]) {
        return own == slots ? PTOWSP_DUMP_SCOPE_DEADLOCK : PTOWSP_DUMP_FLOW_CONTROL_DEADLOCK;
    }
    if (!take_memory(m, i, false)) {
        return PTOWSP_DUMP_HEAP_DEADLOCK;
    }
    return entries + entries_of(m, s) + 1 > m->sizes->dep_pool[s->ring]
               ? PTOWSP_DUMP_DEP_POOL_OVERFLOW
               : PTOWSP_DUMP_RINGS_PASS;
}

// Lets one task end, chosen at random. False: there is none.
static bool end_one(model *m, uint64_t *seed) {
    int ready[STEPS + 2 * DEPTH + 2], count = 0;
    for (int i = 0; i < m->p->count; i++) {
        if (m->p->steps[i].kind == TASK && may_end(m, i)) {
            ready[count++] = i;
        }
    }
    if (count) {
        const int ended = ready[test_random_in(seed, 0, count - 1)];
        m->is_ended[ended] = true;
        retain(m, ended, -1);
    }
    return count > 0;
}

static ptowsp_dump_ring_error run_model(const program *p, const ptowsp_dump_rings *sizes,
                                        uint64_t *seed, unsigned long long *out_task) {
    static model m;
    memset(&m, 0, sizeof m);
    m.p = p;
    m.sizes = sizes;
    const int64_t haste = test_random_in(seed, 0, 3);
    for (int i = 0; i < p->count; i++) {
        m.is_closed[p->steps[i].scope] |= p->steps[i].kind == END;
        if (p->steps[i].kind != TASK) {
            continue;
        }
        for (int k = 0; k < haste; k++) {
            end_one(&m, seed);
        }
        for (;;) {
            give_back(&m);
            const ptowsp_dump_ring_error error = obstacle(&m, i);
            if (error == PTOWSP_DUMP_RINGS_PASS) {
                break;
            }
            if (!end_one(&m, seed)) {
                *out_task = id_of(&p->steps[i]);
                return error;
            }
        }
        take_memory(&m, i, true);
        m.is_submitted[i] = true;
        m.is_ended[i] = p->steps[i].is_alloc;  // these need nothing
        retain(&m, i, 1);
    }
    return PTOWSP_DUMP_RINGS_PASS;
}

// -- tests ----------------------------------------------------------------------------------------

static int errors[12];

static ptowsp_dump_ring_error compare(ptowsp_dump *dump, const program *p,
                                      const ptowsp_dump_rings *sizes, uint64_t *seed) {
    ptowsp_dump_rings_result result;
    unsigned long long task = 0;
    const ptowsp_dump_ring_error error = run_model(p, sizes, seed, &task);
    assert_ok(ptowsp_dump_rings_try(dump, sizes, &result));
    assert_int_equal(result.error, error);
    if (error) {
        assert_true(result.task == task);
        assert_int_equal(result.ring, task >> 32);
        errors[error]++;
    }
    return error;
}

static void one_less(ptowsp_dump *dump, const program *p, const ptowsp_dump_rings *least,
                     uint64_t *seed) {
    for (int r = 0; r < 4; r++) {
        ptowsp_dump_rings less = *least;
        if (less.task_window[r] > 4) {
            less.task_window[r] /= 2;
            assert_int_not_equal(compare(dump, p, &less, seed), 0);
        }
        less = *least;
        while (less.heap[r] > 1024) {
            less.heap[r] -= 1024;
            assert_int_equal(compare(dump, p, &less, seed), PTOWSP_DUMP_HEAP_DEADLOCK);
        }
        less = *least;
        if (less.dep_pool[r] > 4) {
            less.dep_pool[r]--;
            assert_int_equal(compare(dump, p, &less, seed), PTOWSP_DUMP_DEP_POOL_OVERFLOW);
        }
    }
}

static ptowsp_dump *open_program(ptowsp_context *context, const program *p, const program *scoped) {
    dw_text deps = {NULL, 0, 0}, scopes = {NULL, 0, 0};
    ptowsp_dump *dump = NULL;
    write_deps(p, &deps);
    write_scopes(scoped, &scopes);
    ptowsp_dump_desc desc = {.deps.text = deps.data,
                             .deps.size = deps.size,
                             .scopes.text = scopes.data,
                             .scopes.size = scopes.size};
    assert_ok(ptowsp_dump_open(context, &desc, &dump));
    free(deps.data);
    free(scopes.data);
    return dump;
}

CONTEXT_TEST(dump_rings__are_those_of_a_slow_model_and_one_less_fails) {
    static program p;
    uint64_t seed = test_seed();
    for (int round = 0; TEST_ROUNDS(round, 1000); round++) {
        ptowsp_dump_rings least, sizes;
        random_program(&seed, &p);
        ptowsp_dump *dump = open_program(context, &p, &p);
        assert_ok(ptowsp_dump_rings_least(dump, &least));
        assert_int_equal(compare(dump, &p, &least, &seed), 0);
        one_less(dump, &p, &least, &seed);
        for (int r = 0; r < 4; r++) {
            sizes.task_window[r] = UINT64_C(4) << test_random_in(&seed, 0, 4);
            sizes.heap[r] = 1024 * (uint64_t)test_random_in(&seed, 1, 60);
            sizes.dep_pool[r] = (uint64_t)test_random_in(&seed, 4, 200);
        }
        compare(dump, &p, &sizes, &seed);
        ptowsp_dump_close(dump);
    }
    for (int i = 1; i <= 4; i++) {
        assert_met(errors[i] > 10);
    }
}

CONTEXT_TEST(dump_rings__refuse_scopes_of_a_run_with_fewer_tasks) {
    static program p, fewer;
    uint64_t seed = 1;
    ptowsp_dump_rings least;
    random_program(&seed, &p);
    fewer = p;
    for (int i = 0; i < p.count; i++) {
        if (p.steps[i].kind == TASK) {  // its last one
            fewer = p;
            fewer.count--;
            memmove(&fewer.steps[i], &fewer.steps[i + 1],
                    (size_t)(fewer.count - i) * sizeof fewer.steps[0]);
        }
    }
    ptowsp_dump *dump = open_program(context, &p, &fewer);
    assert_int_equal(ptowsp_dump_rings_least(dump, &least), PTOWSP_DIFFERENT);
    assert_non_null(strstr(ptowsp_context_error(context).text,
                           "dump: scope_stats.jsonl is of another run, or cut off: ring "));
    ptowsp_dump_close(dump);
    dump = open_program(context, &fewer, &p);  // a task that deps.json leaves out
    assert_ok(ptowsp_dump_rings_least(dump, &least));
    ptowsp_dump_close(dump);
}

// Findings in dumps, against lists over all bytes and all pairs of tasks.

#include "dump_write.h"

enum {
    TASKS = 24,
    ARGS = 3,
    BYTES = 4096,
    LINE = 64,
    EDGES = TASKS * TASKS,
    LIVES = 8,
    SLOT = 256
};

typedef struct arg {
    int type;  // of type_names
    int tensor;
    uint64_t offset;
    int rank;
    int64_t shape[5], strides[5];
    int life;  // of created outputs; -1: of a buffer
    uint8_t bytes[BYTES];
} arg;

// Tensors 0 to 2 are in one buffer of BYTES, at bytes 0, 0 and 512, with elements of 4, 1 and 2 bytes;
// tensors 3 and later are created, in slots of a heap.
static const char *const type_names[] = {"INPUT", "INOUT", "OUTPUT_EXISTING", "OUTPUT", "NO_DEP"};
static const char *const dtype_names[] = {"FLOAT32", "INT8", "BFLOAT16"};
static const int dtype_bytes[] = {4, 1, 2};
static const int tensor_begin[] = {0, 0, 512};
static const uint64_t base = 1 << 20, heap = 1 << 21;

typedef struct program {
    arg args[TASKS][ARGS];
    int arg_count[TASKS];
    bool edges[TASKS][TASKS], before[TASKS][TASKS];
    int task_count;
} program;

static bool reads(const arg *a) {
    return a->type == 0 || a->type == 1;
}
static bool writes(const arg *a) {
    return a->type == 1 || a->type == 2 || a->type == 3;
}

// Marks the bytes of a view. False: some are outside of the buffer.
static bool mark(arg *a, int begin, int element, int size) {
    memset(a->bytes, 0, sizeof a->bytes);
    int64_t index[5] = {0};
    for (;;) {
        int64_t at = (int64_t)a->offset;
        for (int i = 0; i < a->rank; i++) {
            at += index[i] * a->strides[i];
        }
        at = begin + at * element;
        if (at < begin || at + element > begin + size) {
            return false;
        }
        for (int i = 0; i < element; i++) {
            a->bytes[at + i] = 1;
        }
        int dim = a->rank - 1;
        while (dim >= 0 && ++index[dim] == a->shape[dim]) {
            index[dim--] = 0;
        }
        if (dim < 0) {
            return true;
        }
    }
}

// A view of any form: tiles of a matrix more often than anything else.
static void random_view(uint64_t *seed, arg *a, int size) {
    const bool is_tile = test_random_in(seed, 0, 2) > 0;
    a->rank = (int)test_random_in(seed, is_tile, 5);
    int64_t stride = test_random_in(seed, 0, 1) ? 1 : test_random_in(seed, 1, 3);
    for (int i = a->rank - 1; i >= 0; i--) {
        a->shape[i] = test_random_in(seed, 1, 4);
        a->strides[i] = is_tile ? stride : test_random_in(seed, -2, 40);
        stride = is_tile ? stride * a->shape[i] * test_random_in(seed, 1, 3) : stride;
    }
    a->offset = (uint64_t)test_random_in(seed, 0, size - 1);
}

static void random_arg(uint64_t *seed, program *p, int task, arg *a, int *lives) {
    memset(a, 0, sizeof *a);
    a->life = -1;
    a->tensor = (int)test_random_in(seed, 0, 2);
    a->type = (int)test_random_in(seed, 0, 2);
    a->type = test_random_in(seed, 0, 40) == 0 ? 4 : a->type;
    const int slot = (int)test_random_in(seed, 0, LIVES - 1);
    (void)p;
    if (test_random_in(seed, 0, 3) == 0 && (lives[slot] || test_random_in(seed, 0, 1))) {
        a->tensor = 3 + slot;
        a->rank = 1;
        a->strides[0] = 1;
        a->shape[0] = SLOT;
        if (!lives[slot] || test_random_in(seed, 0, 5) == 0) {
            a->type = 3;
            lives[slot] = 100 * (task + 1) + slot;
        }
        if (a->type != 3) {
            a->offset = (uint64_t)test_random_in(seed, 0, 3) * SLOT / 4;
            a->shape[0] = SLOT / 4;
        }
        a->life = lives[slot];
        assert_true(mark(a, slot * SLOT, 1, SLOT));
        return;
    }
    const int size = BYTES - tensor_begin[a->tensor], element = dtype_bytes[a->tensor];
    do {
        random_view(seed, a, size / element / 4);
    } while (!mark(a, tensor_begin[a->tensor], element, size));
}

static void close_order(program *p) {
    memcpy(p->before, p->edges, sizeof p->before);
    TEST_GRID(int, k, TASKS, i, TASKS) {
        for (int j = 0; j < TASKS; j++) {
            p->before[i][j] |= p->before[i][k] && p->before[k][j];
        }
    }
}

static bool same_memory(const arg *a, const arg *b) {
    return a->life == b->life && (a->life >= 0) == (b->life >= 0);
}

// All hazards of two tasks, and whether they write into one line without sharing bytes.
static unsigned hazards(const program *p, int a, int b, bool *out_near) {
    unsigned found = 0;
    *out_near = false;
    TEST_GRID(int, i, p->arg_count[a], k, p->arg_count[b]) {
        const arg *x = &p->args[a][i], *y = &p->args[b][k];
        bool shares = false, is_near = false;
        for (int at = 0; at < BYTES && same_memory(x, y); at++) {
            shares |= x->bytes[at] && y->bytes[at];
            for (int other = at / LINE * LINE; x->bytes[at] && other < at / LINE * LINE + LINE;
                 other++) {
                is_near |= y->bytes[other];
            }
        }
        *out_near |= is_near && !shares && writes(x) && writes(y);
        found |= shares && writes(x) && reads(y) ? PTOWSP_DUMP_RAW : 0;
        found |= shares && writes(x) && writes(y) ? PTOWSP_DUMP_WAW : 0;
        found |= shares && reads(x) && writes(y) ? PTOWSP_DUMP_WAR : 0;
    }
    return found;
}

static void random_program(uint64_t *seed, program *p) {
    int lives[LIVES] = {0};
    memset(p, 0, sizeof *p);
    p->task_count = (int)test_random_in(seed, 1, TASKS);
    for (int t = 0; t < p->task_count; t++) {
        p->arg_count[t] = (int)test_random_in(seed, 0, ARGS);
        for (int i = 0; i < p->arg_count[t]; i++) {
            random_arg(seed, p, t, &p->args[t][i], lives);
        }
    }
    // All edges that the data need, some of them removed, and some more.
    const int64_t kept = test_random_in(seed, 0, 10);
    for (int i = 0; i < p->task_count; i++) {
        for (int j = i + 1; j < p->task_count; j++) {
            bool is_near;
            const bool is_needed = hazards(p, i, j, &is_near) != 0;
            p->edges[i][j] =
                is_needed ? test_random_in(seed, 0, 9) < kept : test_random_in(seed, 0, 30) == 0;
        }
    }
    close_order(p);
}

static uint64_t id_of(int task) {
    return task < 3 ? (uint64_t)task : (UINT64_C(2) << 32) + (uint64_t)task;
}

static void write_program(const program *p, dw_text *t) {
    dw_print(t, "{\"tensors\":[");
    for (int i = 0; i < 3 + LIVES; i++) {
        const int element = i < 3 ? dtype_bytes[i] : 1;
        const uint64_t at =
            i < 3 ? base + (uint64_t)tensor_begin[i] : heap + (uint64_t)(i - 3) * SLOT;
        dw_print(t,
                 "%s{\"tensor_id\":\"%d\",\"buffer_addr\":\"%llu\",\"dtype\":\"%s\",\"buffer_"
                 "numel\":%d}",
                 i ? "," : "", 900 - i, (unsigned long long)at, i < 3 ? dtype_names[i] : "UINT8",
                 i < 3 ? (BYTES - tensor_begin[i]) / element : SLOT);
    }
    dw_print(t, "],\n\"tasks\" : [");
    for (int k = 0; k < p->task_count; k++) {
        dw_print(t, "%s\n{\"task_id\":\"%llu\",\"kernel_ids\":[-1,%d,-1],\"args\":[", k ? "," : "",
                 (unsigned long long)id_of(k), k % 5 ? 0 : -1);
        for (int i = 0; i < p->arg_count[k]; i++) {
            const arg *a = &p->args[k][i];
            dw_print(
                t, "%s{\"type\":\"%s\",\"tensor_id\":\"%d\",\"start_offset\":\"%llu\",\"shape\":[",
                i ? "," : "", type_names[a->type], 900 - a->tensor, (unsigned long long)a->offset);
            for (int d = 0; d < a->rank; d++) {
                dw_print(t, "%s%lld", d ? "," : "", (long long)a->shape[d]);
            }
            dw_print(t, "],\"strides\":[");
            for (int d = 0; d < a->rank; d++) {
                dw_print(t, "%s%lld", d ? "," : "", (long long)a->strides[d]);
            }
            dw_print(t, "]}");
        }
        dw_print(t, "]}");
    }
    dw_print(t, "],\"edges\":[");
    // Edges that only keep memory are no order.
    static const char *const flags[] = {",\"flags\":null", ",\"flags\":[\"wait\"]",
                                        ",\"flags\":[\"wait\",\"retain\"]",
                                        ",\"flags\":[\"retain\"]", ",\"flags\":[]"};
    const char *comma = "";
    for (int i = 0; i < p->task_count; i++) {
        for (int j = i + 1; j < p->task_count; j++) {
            if (p->edges[i][j] || (7 * i + j) % 16 == 0) {
                dw_print(
                    t,
                    "%s{\"pred\":\"%llu\",\"succ\":\"%llu\",\"arg\":-1,\"source\":\"explicit\"%s}",
                    comma, (unsigned long long)id_of(i), (unsigned long long)id_of(j),
                    flags[p->edges[i][j] ? (i + j) % 3 : 3 + i % 2]);
                comma = ",";
            }
        }
    }
    dw_print(t, "]}");
}

// -- what is expected -----------------------------------------------------------------------------

static bool has_no_dep(const program *p, int task) {
    bool has = p->arg_count[task] == 0;
    for (int i = 0; i < p->arg_count[task]; i++) {
        has |= p->args[task][i].type == 4;
    }
    return has;
}

// Whether two tasks share bytes that one of them writes, of the same life or of two.
static bool shares_written(const program *p, int a, int b) {
    TEST_GRID(int, i, p->arg_count[a], k, p->arg_count[b]) {
        const arg *x = &p->args[a][i], *y = &p->args[b][k];
        const bool counts = (writes(x) || writes(y)) && (x->life >= 0) == (y->life >= 0);
        for (int at = 0; at < BYTES && counts; at++) {
            if (x->bytes[at] && y->bytes[at]) {
                return true;
            }
        }
    }
    return false;
}

static bool is_redundant(const program *p, int a, int b) {
    for (int k = a + 1; k < b; k++) {
        if (p->before[a][k] && p->before[k][b]) {
            return true;
        }
    }
    return false;
}

// The hazards of the finding of a kind for two tasks; UINT32_MAX: there is none.
static uint32_t found(const ptowsp_dump_report *report, ptowsp_dump_kind kind, int a, int b) {
    uint32_t hazards_found = UINT32_MAX;
    for (uint64_t i = 0; i < report->finding_count; i++) {
        const ptowsp_dump_finding *f = &report->findings[i];
        if (f->kind == kind && f->before == id_of(a) && f->after == id_of(b)) {
            assert_true(hazards_found == UINT32_MAX);  // once
            hazards_found = f->hazards;
        }
    }
    return hazards_found;
}

static uint64_t judge(const program *p, const ptowsp_dump_report *report) {
    uint64_t counts[PTOWSP_DUMP_KIND_COUNT] = {0};
    for (int a = 0; a < p->task_count; a++) {
        for (int b = a + 1; b < p->task_count; b++) {
            bool is_near;
            const unsigned all = hazards(p, a, b, &is_near);
            const bool is_race = all && !p->before[a][b], is_shared = is_near && !p->before[a][b];
            const bool is_extra = p->edges[a][b] && is_redundant(p, a, b);
            // Bytes that two lives of memory have in turn count as data.
            const bool is_empty = p->edges[a][b] && !is_extra && !shares_written(p, a, b) &&
                                  a % 5 && b % 5 && !has_no_dep(p, a) && !has_no_dep(p, b);
            assert_int_equal(found(report, PTOWSP_DUMP_RACE, a, b), is_race ? all : UINT32_MAX);
            assert_int_equal(found(report, PTOWSP_DUMP_FALSE_SHARING, a, b),
                             is_shared ? 0 : UINT32_MAX);
            assert_int_equal(found(report, PTOWSP_DUMP_REDUNDANT, a, b), is_extra ? 0 : UINT32_MAX);
            assert_int_equal(found(report, PTOWSP_DUMP_NO_DATA, a, b), is_empty ? 0 : UINT32_MAX);
            counts[PTOWSP_DUMP_RACE] += is_race;
            counts[PTOWSP_DUMP_FALSE_SHARING] += is_shared;
            counts[PTOWSP_DUMP_REDUNDANT] += is_extra;
            counts[PTOWSP_DUMP_NO_DATA] += is_empty;
        }
    }
    assert_memory_equal(counts, report->counts, sizeof counts);
    assert_int_equal(report->is_clean, counts[PTOWSP_DUMP_RACE] == 0);
    return counts[PTOWSP_DUMP_RACE];
}

// With the edges that are to be added there are no races, and each of them is needed.
static void judge_advice(const program *p, const ptowsp_dump_report *report) {
    static program fixed, less;
    uint32_t added[EDGES][2], count = 0;
    fixed = *p;
    for (uint64_t i = 0; i < report->finding_count; i++) {
        for (int a = 0; a < p->task_count; a++) {
            for (int b = a + 1; b < p->task_count; b++) {
                const ptowsp_dump_finding *f = &report->findings[i];
                if (f->kind == PTOWSP_DUMP_RACE && f->before == id_of(a) && f->after == id_of(b) &&
                    !f->is_implied) {
                    fixed.edges[a][b] = true;
                    added[count][0] = (uint32_t)a;
                    added[count++][1] = (uint32_t)b;
                }
            }
        }
    }
    close_order(&fixed);
    bool is_near;
    for (int a = 0; a < p->task_count; a++) {
        for (int b = a + 1; b < p->task_count; b++) {
            assert_true(fixed.before[a][b] || !hazards(p, a, b, &is_near));
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        less = fixed;
        less.edges[added[i][0]][added[i][1]] = false;
        close_order(&less);
        assert_false(less.before[added[i][0]][added[i][1]]);
    }
}

CONTEXT_TEST(dump_check__finds_what_a_list_over_all_bytes_has) {
    static program p;
    uint64_t seed = test_seed(), races = 0, clean = 0;
    for (int round = 0; TEST_ROUNDS(round, 400); round++) {
        dw_text t = {NULL, 0, 0};
        random_program(&seed, &p);
        write_program(&p, &t);
        ptowsp_dump *dump = NULL;
        ptowsp_dump_report report;
        assert_ok(dw_open(context, t.data, t.size, &dump));
        assert_ok(ptowsp_dump_check(dump, &report));
        const uint64_t count = judge(&p, &report);
        judge_advice(&p, &report);
        races += count;
        clean += count == 0;
        ptowsp_dump_close(dump);
        free(t.data);
    }
    assert_met(races > 1000 && clean > 20);
}

// -- large programs -------------------------------------------------------------------------------
//
// Thousands of tasks, of which every fourth or so accesses one of some tiles. The order is by
// searches from each task.

enum { LARGE = 2500, DEGREE = 3, TILES = 40, FOLLOWED = 128 };

typedef struct large {
    int task_count, tile[LARGE];  // -1: none
    bool writes[LARGE];
    int preds[LARGE][DEGREE];
    bool edge[LARGE][LARGE];  // by the later task
    bool before[LARGE][LARGE];
} large;

// Marks all tasks that come before one, itself as well.
static void mark_before(const large *p, int task, bool *marks) {
    memset(marks, 0, LARGE);
    marks[task] = true;
    for (int t = task; t > 0; t--) {
        for (int i = 0; i < DEGREE && marks[t]; i++) {
            marks[p->preds[t][i] < 0 ? t : p->preds[t][i]] = true;
        }
    }
}

// Edges reach back by `reach` tasks at most.
static void large_random(uint64_t *seed, large *p, int task_count, int reach) {
    static bool marks[LARGE];
    memset(p, 0, sizeof *p);
    p->task_count = task_count;
    for (int t = 0; t < task_count; t++) {
        p->tile[t] = test_random_in(seed, 0, 3) ? -1 : (int)test_random_in(seed, 0, TILES - 1);
        p->writes[t] = test_random_in(seed, 0, 3) == 0;
        for (int i = 0; i < DEGREE; i++) {
            const int pred = t - (int)test_random_in(seed, 1, reach);
            p->preds[t][i] = pred < 0 ? -1 : pred;
            if (pred >= 0) {
                p->edge[t][pred] = true;
            }
        }
    }
    for (int t = 0; t < task_count; t++) {
        mark_before(p, t, marks);
        for (int i = 0; i < t; i++) {
            p->before[i][t] = marks[i];
        }
    }
}

static ptowsp_dump *large_open(ptowsp_context *context, const large *p) {
    dw_text t = {NULL, 0, 0};
    dw_print(&t,
             "{\"tensors\":[{\"tensor_id\":\"1\",\"buffer_addr\":\"4096\",\"dtype\":\"UINT8\","
             "\"buffer_numel\":%d}],\"tasks\":[",
             TILES * LINE);
    for (int k = 0; k < p->task_count; k++) {
        dw_print(&t, "%s{\"task_id\":\"%d\",\"args\":[", k ? "," : "", k);
        if (p->tile[k] >= 0) {
            dw_print(&t,
                     "{\"type\":\"%s\",\"tensor_id\":\"1\",\"start_offset\":\"%d\",\"shape\":[%d],"
                     "\"strides\":[1]}",
                     p->writes[k] ? "INOUT" : "INPUT", p->tile[k] * LINE, LINE);
        }
        dw_print(&t, "]}");
    }
    dw_print(&t, "],\"edges\":[");
    const char *comma = "";
    for (int k = 0; k < p->task_count; k++) {
        for (int i = 0; i < DEGREE; i++) {  // some of them twice
            if (p->preds[k][i] >= 0) {
                dw_print(&t, "%s{\"pred\":\"%d\",\"succ\":\"%d\",\"source\":\"explicit\"}", comma,
                         p->preds[k][i], k);
                comma = ",";
            }
        }
    }
    dw_print(&t, "]}");
    ptowsp_dump *dump = NULL;
    assert_ok(dw_open(context, t.data, t.size, &dump));
    free(t.data);
    return dump;
}

static bool large_races(const large *p, int a, int b) {
    return p->tile[a] >= 0 && p->tile[a] == p->tile[b] && (p->writes[a] || p->writes[b]) &&
           !p->before[a][b];
}

static bool large_redundant(const large *p, int a, int b) {
    bool is_redundant = false;
    for (int k = a + 1; k < b && p->edge[b][a]; k++) {
        is_redundant |= p->before[a][k] && p->before[k][b];
    }
    return is_redundant;
}

// Are edges that are to be added, and only these, not implied by the dump's and earlier ones?
static void large_judge_advice(const large *p, const ptowsp_dump_report *report) {
    static bool reached[FOLLOWED];
    int added[FOLLOWED][2], count = 0;
    for (uint64_t i = 0; i < report->finding_count; i++) {
        const ptowsp_dump_finding *f = &report->findings[i];
        if (f->kind != PTOWSP_DUMP_RACE) {
            continue;
        }
        const int before = (int)f->before, after = (int)f->after;
        bool is_implied = false, is_changed = true;
        memset(reached, 0, sizeof reached);
        while (is_changed) {
            is_changed = false;
            for (int k = 0; k < count; k++) {
                bool is_led = before == added[k][0] || p->before[before][added[k][0]];
                for (int j = 0; j < count; j++) {
                    is_led |= reached[j] &&
                              (added[j][1] == added[k][0] || p->before[added[j][1]][added[k][0]]);
                }
                is_changed |= is_led && !reached[k];
                reached[k] |= is_led;
                is_implied |= reached[k] && (added[k][1] == after || p->before[added[k][1]][after]);
            }
        }
        assert_int_equal(f->is_implied, is_implied);
        if (!is_implied && count < FOLLOWED) {
            added[count][0] = before;
            added[count++][1] = after;
        }
    }
}

CONTEXT_TEST(dump_check__finds_the_same_in_programs_of_many_blocks) {
    static large p;
    static const int counts[] = {LARGE, 2049, 1025, 1024, 2048, 1023};
    uint64_t seed = test_seed(), races = 0, redundant = 0;
    for (int round = 0; TEST_ROUNDS(round, 12); round++) {
        large_random(&seed, &p, counts[round / 2 % 6], round % 2 ? 40 : LARGE);
        ptowsp_dump *dump = large_open(context, &p);
        ptowsp_dump_report report;
        assert_ok(ptowsp_dump_check(dump, &report));
        uint64_t expected[2] = {0, 0};
        TEST_GRID(int, b, p.task_count, a, b) {
            expected[0] += large_races(&p, a, b);
            expected[1] += large_redundant(&p, a, b);
        }
        assert_int_equal(report.counts[PTOWSP_DUMP_RACE], expected[0]);
        assert_int_equal(report.counts[PTOWSP_DUMP_REDUNDANT], expected[1]);
        assert_true(expected[0] < PTOWSP_DUMP_FINDING_MAX && expected[1] < PTOWSP_DUMP_FINDING_MAX);
        for (uint64_t i = 0; i < report.finding_count;
             i++) {  // in order, so that none is there twice
            const ptowsp_dump_finding *f = &report.findings[i];
            const int a = (int)f->before, b = (int)f->after;
            assert_true(f->kind == PTOWSP_DUMP_RACE ? large_races(&p, a, b)
                                                    : large_redundant(&p, a, b));
            assert_true(i == 0 || f[-1].kind != f->kind || f[-1].after < f->after ||
                        (f[-1].after == f->after && f[-1].before > f->before));
        }
        large_judge_advice(&p, &report);
        races += expected[0];
        redundant += expected[1];
        ptowsp_dump_close(dump);
    }
    assert_met(races > 1000 && redundant > 1000);
}

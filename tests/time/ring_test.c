// Rings of bytes in random programs, against the rule; names, and memory that is refused. tests/cases/rings.case has
// rings on paper. A task of kernel `work` takes as many cycles as its argument says; `make` writes a tile, `use` reads
// one, `pass` reads one and writes another.

#include "schedule_fixture.h"

// Transient tensors have 4 rows of 64 bytes.
#define HEAD                                                                                       \
    "module m\naxis rows 4\naxis two 2\naxis three 3\ntensor p f32 "                               \
    "[4, 16] global transient\n"                                                                   \
    "tensor q f32 [4, 16] global transient\ntensor t0 f32 [4, 16] global transient\n"              \
    "tensor t1 f32 [4, 16] global transient\ntensor t2 f32 [4, 16] global transient\n"             \
    "kernel work(axes 1) vector\nkernel mul(axes 1) cube\n"                                        \
    "kernel make(axes 1, out a f32 1 x 16) vector\nkernel use(axes 1, in a f32 1 x 16) vector\n"   \
    "kernel pass(axes 1, in a f32 1 x 16, out b f32 1 x 16) vector\n"                              \
    "kernel join(axes 1, in a f32 4 x 16) vector\nworkload w\n"

static const char *const names[] = {"work", "make", "use", "pass", "join", "mul", NULL};

static ptowsp_schedule on_lanes(uint32_t lanes, bool by_events) {
    ptowsp_schedule s = {.dispatch = by_events ? PTOWSP_DISPATCH_WORK_STEALING
                                               : PTOWSP_DISPATCH_ROUND_ROBIN,
                         .lane_count = lanes};
    return s;
}

#define THREE "  combine\n    task work(9)\n    task work(2)\n    task work(3)\n"

// A pass through the loop takes 64 bytes, from `make` until `use` has retired.
#define EACH "  parallel i in rows\n    task make(5) a=p at (i, 0)\n    task use(7) a=p at (i, 0)\n"

// -- bytes, against the rule ------------------------------------------------------------------------

enum { NODES = 40, TASKS = 200, TENSORS = 3 };

typedef enum kind { WORKLOAD, PARALLEL, FOR_EACH, COMBINE, SEQUENCE, TASK } kind;

typedef struct node {
    kind kind;
    int parent, axis;
    int in, out;  // of a task: tensors, or -1
    int row, cycles;
} node;

// A task of the expansion: the blocks that it writes count from `first`.
typedef struct step {
    int in, out;
} step;

typedef struct block {
    int closed_at;  // how many tasks were there when its pass ended, or INT32_MAX
    int last;       // its tensor's last user in this pass
    int tensor, task;
} block;

typedef struct tree {
    node nodes[NODES];
    int node_count;
    int scopes[TENSORS];
    bool is_written[TENSORS];
    step steps[TASKS];
    int step_count;
    block blocks[TASKS];
    int block_count;
    bool is_too_long;
    size_t length;
    char text[6000];
} tree;

static void tree_print(tree *t, int depth, const char *format, ...) {
    va_list args;
    t->length +=
        (size_t)snprintf(t->text + t->length, sizeof t->text - t->length, "%*s", depth, "");
    va_start(args, format);
    t->length += (size_t)vsnprintf(t->text + t->length, sizeof t->text - t->length, format, args);
    va_end(args);
    assert_true(t->length < sizeof t->text);
}

// The innermost block around all uses; another one is in the block `around`.
static void tree_use(tree *t, int tensor, int around) {
    bool is_around = false;
    while (t->scopes[tensor] >= 0 && !is_around) {
        for (int i = around; i >= 0; i = t->nodes[i].parent) {
            is_around = is_around || i == t->scopes[tensor];
        }
        t->scopes[tensor] = is_around ? t->scopes[tensor] : t->nodes[t->scopes[tensor]].parent;
    }
    t->scopes[tensor] = is_around ? t->scopes[tensor] : around;
}

static void tree_grow(tree *t, uint64_t *random, int parent, int depth) {
    static const char *const words[] = {"", "parallel v%d in two\n", "for_each v%d in three\n",
                                        "combine\n", "sequence\n"};
    int count = (int)test_random_in(random, 1, 4);
    for (int i = 0; i < count && t->node_count < NODES; i++) {
        int id = t->node_count++;
        node *n = &t->nodes[id];
        memset(n, 0, sizeof *n);
        n->parent = parent;
        n->kind = depth < 4 && test_random(random) % 2
                      ? (kind)test_random_in(random, PARALLEL, SEQUENCE)
                      : TASK;
        if (n->kind != TASK) {
            tree_print(t, 2 * depth, words[n->kind], id);
            tree_grow(t, random, id, depth + 1);
            continue;
        }
        int in = (int)test_random_in(random, 0, TENSORS - 1);
        int out = (int)test_random_in(random, 0, TENSORS - 1);
        n->in = t->is_written[in] && test_random(random) % 3 ? in : -1;
        n->out = n->in < 0 || (out != in && test_random(random) % 2) ? out : -1;
        n->cycles = (int)test_random_in(random, 1, 20);
        int row = (int)test_random_in(random, 0, 3), from = (int)test_random_in(random, 0, 3);
        const char *name = n->in < 0 ? "make" : n->out < 0 ? "use" : "pass";
        tree_print(t, 2 * depth, "task %s(%d)", name, n->cycles);
        if (n->in >= 0) {
            tree_use(t, n->in, parent);
            tree_print(t, 0, " a=t%d at (%d, 0)", n->in, from);
        }
        if (n->out >= 0) {
            tree_use(t, n->out, parent);
            t->is_written[n->out] = true;
            tree_print(t, 0, " %s=t%d at (%d, 0)", n->in >= 0 ? "b" : "a", n->out, row);
        }
        tree_print(t, 0, "\n");
    }
}

static void tree_touch(tree *t, int tensor) {
    for (int i = 0; i < t->block_count; i++) {
        if (t->blocks[i].tensor == tensor && t->blocks[i].closed_at == INT32_MAX) {
            t->blocks[i].last = t->step_count;
        }
    }
}

static void tree_expand(tree *t, int id) {
    int passes = t->nodes[id].kind == PARALLEL ? 2 : t->nodes[id].kind == FOR_EACH ? 3 : 1;
    for (int pass = 0; pass < passes; pass++) {
        for (int i = id + 1; i < t->node_count && !t->is_too_long; i++) {
            const node *n = &t->nodes[i];
            if (n->parent != id) {
                continue;
            }
            if (n->kind != TASK) {
                tree_expand(t, i);
            } else if (t->step_count == TASKS) {
                t->is_too_long = true;
            } else {
                if (n->out >= 0) {
                    block b = {INT32_MAX, 0, n->out, t->step_count};
                    t->blocks[t->block_count++] = b;
                    tree_touch(t, n->out);
                }
                if (n->in >= 0) {
                    tree_touch(t, n->in);
                }
                step s = {n->in, n->out};
                t->steps[t->step_count++] = s;
            }
        }
        for (int i = 0; i < t->block_count; i++) {
            block *b = &t->blocks[i];
            if (t->scopes[b->tensor] == id && b->closed_at == INT32_MAX) {
                b->closed_at = t->step_count;
            }
        }
    }
}

// How much is held at a time, as a task sees it that comes next; UINT64_MAX until it has an end.
static uint64_t held_at(const tree *t, const ptowsp_task_record *records, int task, uint64_t time,
                        uint64_t *out_next) {
    uint64_t held = 0, free_at = 0;
    *out_next = UINT64_MAX;
    for (int i = 0; i < t->block_count && t->blocks[i].task < task; i++) {
        uint64_t retires = 0;
        for (int k = 0; k <= t->blocks[i].last && k < task; k++) {
            retires = records[k].end > retires ? records[k].end : retires;
        }
        retires = t->blocks[i].closed_at <= task ? retires : UINT64_MAX;
        free_at = retires > free_at ? retires : free_at;
        if (free_at > time) {
            held += 64;
            *out_next = free_at < *out_next ? free_at : *out_next;
        }
    }
    return held;
}

static void check_bytes(const tree *t, const fixture *f, ptowsp_status status, uint64_t size) {
    const ptowsp_task_record *records = ptowsp_run_records(f->run);
    const ptowsp_run_stats *stats = ptowsp_run_result(f->run);
    uint64_t clock = 0, mark = 0;
    for (int i = 0; i < t->step_count; i++) {
        uint64_t needed = t->steps[i].out >= 0 ? 64 : 0, next;
        uint64_t held = held_at(t, records, i, clock, &next);
        while (held + needed > size && next != UINT64_MAX) {
            clock = next;
            held = held_at(t, records, i, clock, &next);
        }
        if (held + needed > size) {
            assert_int_equal(status, PTOWSP_STUCK);
            assert_int_equal(ptowsp_context_error(f->context).index, i);
            return;
        }
        if (status == PTOWSP_STUCK && ptowsp_context_error(f->context).index == (uint64_t)i) {
            fail_msg("task %d is not stuck, but %s", i, ptowsp_context_error(f->context).text);
        }
        mark = held + needed > mark ? held + needed : mark;
        assert_int_equal(records[i].issue, clock);
    }
    assert_ok(status);
    assert_int_equal(stats->ring_max[PTOWSP_RING_BYTES], mark);
    assert_int_equal(stats->stall_cycles[PTOWSP_STALL_BYTE_RING], clock);
}

TEST(ring__of_bytes_follows_the_rule_in_random_programs) {
    uint64_t seed = test_seed(), stuck = 0, fine = 0;
    for (uint64_t number = 0; TEST_ROUNDS(number, 400); number++) {
        static tree t;
        uint64_t random = seed + number;
        memset(&t, 0, sizeof t);
        t.node_count = 1;
        t.nodes[0].parent = -1;
        for (int i = 0; i < TENSORS; i++) {
            t.scopes[i] = -1;
        }
        tree_grow(&t, &random, 0, 1);
        tree_expand(&t, 0);
        if (t.is_too_long) {
            continue;
        }
        fixture f;
        fixture_begin(&f, HEAD, t.text, names, 1);
        for (int k = 0; k < 6; k++) {
            ptowsp_schedule s = on_lanes((uint32_t)test_random_in(&random, 1, 4), k % 2);
            s.issue = k == 4 ? PTOWSP_ISSUE_IN_ORDER : PTOWSP_ISSUE_DATAFLOW;
            s.dependencies = k == 4 ? PTOWSP_DEPENDENCIES_EXPLICIT : 0;  // nothing moves the clock
            uint64_t size = s.ring_sizes[PTOWSP_RING_BYTES] =
                64 * (uint64_t)test_random_in(&random, 1, 12);
            ptowsp_status status = run_on(&f, &s, 0);
            check_bytes(&t, &f, status, size);
            stuck += status != PTOWSP_OK;
            fine += status == PTOWSP_OK;
        }
        fixture_end(&f);
    }
    print_message("%llu fine, %llu stuck\n", (unsigned long long)fine, (unsigned long long)stuck);
    assert_met(stuck > 50 && fine > 50);
}

// -- depths ---------------------------------------------------------------------------------------

TEST(depths__that_there_are_not_have_no_name) {
    assert_string_equal(ptowsp_depth_name(PTOWSP_DEPTH_COUNT), "unknown");
    assert_string_equal(ptowsp_ring_name(PTOWSP_RING_COUNT), "unknown");
}

// -- everywhere -----------------------------------------------------------------------------------

static ptowsp_schedule with_rings(uint32_t lanes, bool by_events) {
    ptowsp_schedule s = on_lanes(lanes, by_events);
    s.window = 5;
    s.release = PTOWSP_RELEASE_IN_ORDER;
    s.ring_sizes[PTOWSP_RING_TASKS] = 4;
    s.ring_sizes[PTOWSP_RING_BYTES] = 128;
    s.ring_sizes[PTOWSP_RING_DEPENDENCIES] = 3;
    s.ring_sizes[PTOWSP_RING_MAP] = PTOWSP_RING_UNBOUNDED;
    s.depths[PTOWSP_DEPTH_POOL] = 3;
    return s;
}

TEST(rings__survive_refused_allocations) {
    for (int by_events = 0; by_events < 2; by_events++) {
        ptowsp_schedule s = with_rings(2, by_events);
        EACH_ALLOCATION_REFUSED(&s, fixture_begin(&f, HEAD, EACH THREE, names, 1));
    }
}

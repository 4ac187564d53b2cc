// Ranks that are simulated together in one process: random groups against a slow simulator, ranks in
// thousands, pictures, functions that end it all. tests/cases/collectives.case has times that
// are worked out on paper, and ranks that disagree.

#include "support/written.h"

#include "src/exec/run.h"
#include "src/ranks/traffic.h"

#include <inttypes.h>

enum { RANK_MAX = 24, STEP_MAX = 6 };

// 1 us and 1000 bytes each us, for all that are zero; a cycle is a nanosecond.
static ptowsp_link link_of(ptowsp_link_sharing sharing) {
    const ptowsp_link link = {1000000, 1000, sharing};
    return link;
}

static const ptowsp_links ports = {.inside = {1000000, 1000, PTOWSP_LINK_PORT},
                                   .between = {1000000, 1000, PTOWSP_LINK_PORT}};

// -- programs -------------------------------------------------------------------------------------

// What a rank does: a task of some cycles, then a collective of its group, step by step.
typedef struct step {
    ptowsp_collective_kind kind;
    ptowsp_algorithm algorithm;
    uint32_t members, stride, root, target;
    uint32_t count;            // elements of 8 bytes
    uint64_t delay[RANK_MAX];  // cycles before, by rank
} step;

// Has a collective of this kind a tile for each side?
static bool has_sides(ptowsp_collective_kind kind) {
    return kind == PTOWSP_REDUCE_SCATTER || kind == PTOWSP_ALL_GATHER || kind == PTOWSP_ALL_TO_ALL;
}

#define ADD(text, ...) snprintf(text + strlen(text), sizeof text - strlen(text), __VA_ARGS__)

// The steps of a rank, as ranks_parse takes them.
static const char *steps_text(uint32_t rank, const step *steps, uint32_t step_count) {
    static char text[4000];
    char tasks[2000] = "workload steps\n";
    text[0] = '\0';
    for (uint32_t i = 0; i < step_count; i++) {
        const step *s = &steps[i];
        const bool is_send = s->kind == PTOWSP_SEND,
                   has_root = is_send || s->kind == PTOWSP_BROADCAST;
        const uint32_t part = s->members ? s->count / s->members : 0;
        if (s->delay[rank]) {
            ADD(text, "kernel mix%u(axes 0, inout x i64 ? x ?) vector, %u cycles, time only\n", i,
                (unsigned)s->delay[rank]);
            ADD(tasks, "  task mix%u() x = a\n", i);
        }
        ADD(text, "kernel step%u(axes 0, %s%s%s) link, %s", i,
            has_sides(s->kind) ? "in in i64 ? x ?, out out i64 ? x ?" : "inout data i64 ? x ?",
            has_root ? ", root i64" : "", is_send ? ", target i64" : "",
            ptowsp_collective_name(s->kind));
        if (s->algorithm) {
            ADD(text, ", by %s", ptowsp_algorithm_name(s->algorithm));
        }
        if (s->members) {
            ADD(text, ", members %u, stride %u", s->members, s->stride);
        }
        ADD(text, "\n");
        ADD(tasks, "  task step%u() ", i);
        if (has_sides(s->kind)) {
            ADD(tasks, "in = a of %u x 1 out = b of %u x 1",
                s->kind == PTOWSP_ALL_GATHER ? part : s->count,
                s->kind == PTOWSP_REDUCE_SCATTER ? part : s->count);
        } else {
            ADD(tasks, "data = a of %u x 1", s->count);
        }
        if (has_root) {
            ADD(tasks, " root = %u", s->root);
        }
        if (is_send) {
            ADD(tasks, " target = %u", s->target);
        }
        ADD(tasks, "\n");
    }
    return strcat(text, tasks);
}

// -- ranks ----------------------------------------------------------------------------------------

typedef struct ranks {
    ptowsp_context *context;
    uint32_t count, program_count;
    ptowsp_module **modules;
    ptowsp_program **programs;
    ptowsp_run **runs;
    ptowsp_run_group group;
    ptowsp_run_group_result result;
} ranks;

static void ranks_begin(ranks *r, uint32_t count, const ptowsp_links *links) {
    memset(r, 0, sizeof *r);
    assert_ok(ptowsp_context_create(NULL, &r->context));
    r->count = count;
    r->modules = (ptowsp_module **)calloc(count, sizeof *r->modules);
    r->programs = (ptowsp_program **)calloc(count, sizeof *r->programs);
    r->runs = (ptowsp_run **)calloc(count, sizeof *r->runs);
    r->group.runs = r->runs;
    r->group.rank_count = count;
    r->group.links = *links;
    r->group.cycles_per_us = 1000;
}

// The next rank: its module has been built.
static void ranks_add(ranks *r, ptowsp_module *m, const ptowsp_schedule *schedule) {
    const uint32_t i = r->program_count++;
    const ptowsp_program_desc desc = {NULL, schedule};
    assert_string_equal(ptowsp_module_error(m).text, "");
    r->modules[i] = m;
    assert_ok(ptowsp_program_create(r->context, m, &desc, &r->programs[i]));
    assert_ok(ptowsp_run_create(r->context, r->programs[i], &r->runs[i]));
}

// The module of a text, after the tensors a and b and a ring named sum.
static ptowsp_module *ranks_parse(const ranks *r, const char *text,
                                  const ptowsp_parse_kernel *kernel) {
    char all[5000];
    const ptowsp_parse_desc attached = {.kernels = kernel, .kernel_count = kernel != NULL};
    ptowsp_module *m = NULL;
    snprintf(all, sizeof all,
             "module m\ntensor a i64 [4096, 1] global\ntensor b i64 [4096, 1] global\n"
             "kernel sum(axes 0, inout data i64 ? x ?) link, all_reduce, by ring\n%s",
             text);
    test_ok(r->context, ptowsp_module_parse(r->context, all, strlen(all), &attached, &m, NULL));
    return m;
}

static void ranks_add_text(ranks *r, const char *text, const ptowsp_parse_kernel *kernel,
                           const ptowsp_schedule *schedule) {
    ranks_add(r, ranks_parse(r, text, kernel), schedule);
}

static void ranks_add_steps(ranks *r, const step *steps, uint32_t step_count) {
    ranks_add_text(r, steps_text(r->program_count, steps, step_count), NULL, NULL);
}

static ptowsp_status ranks_simulate(ranks *r, bool has_records) {
    ptowsp_run_options options = {.record_tasks = has_records};
    return ptowsp_run_group_simulate(r->context, &r->group, &options, &r->result);
}

static ptowsp_cycles end_of(const ranks *r, uint32_t rank) {
    return ptowsp_run_result(r->runs[rank])->makespan_cycles;
}

static void ranks_end(ranks *r) {
    for (uint32_t i = 0; i < r->count; i++) {
        ptowsp_run_destroy(r->runs[i]);
    }
    for (uint32_t i = 0; i < r->count; i++) {
        ptowsp_program_destroy(r->programs[i]);
        ptowsp_module_destroy(r->modules[i]);
    }
    ptowsp_context_destroy(r->context);
    free(r->modules);
    free(r->programs);
    free(r->runs);
}

// -- the slow simulator ---------------------------------------------------------------------------

// Plain lists and scans of all ranks. Times are in parts of a picosecond, as many as there are cycles
// in a microsecond, so that a cycle is 1000000.
typedef struct message {
    uint32_t step, round, from, to;
    uint64_t arrival;
} message;

typedef struct slow_rank {
    uint64_t clock, end;  // cycles: now; of its last collective
    uint32_t step;        // that it is in, or ended; STEP_MAX: all
    ptowsp_collective_step moves[4096];
    uint64_t move_count, sent;  // moves up to `sent` have been looked at for sending
    uint32_t round;
    uint64_t now, key;  // units: of its sends; of its next one
} slow_rank;

typedef struct slow {
    uint32_t count;
    const ptowsp_links *links;
    uint64_t unit;
    const step *steps;
    uint32_t step_count;
    slow_rank ranks[RANK_MAX];
    message messages[65536];
    uint32_t message_count;
    uint64_t out[4][RANK_MAX], in[4][RANK_MAX], pair[4][RANK_MAX][RANK_MAX];
    uint64_t sent[RANK_MAX], received[RANK_MAX];  // when a rank's cap has passed all its bytes
} slow;

static ptowsp_collective slow_collective(const slow *s, uint32_t rank, const step *t) {
    const uint32_t me = rank / t->stride % t->members;
    ptowsp_collective c = {.kind = t->kind,
                           .algorithm = t->algorithm,
                           .dtype = PTOWSP_I64,
                           .count = t->count,
                           .members = t->members,
                           .stride = t->stride,
                           .first = rank - me * t->stride,
                           .root = t->root,
                           .target = t->target};
    c.node_size =
        t->algorithm == PTOWSP_ALGORITHM_HIERARCHICAL ? pwsp_links_inner(&c, s->links) : 0;
    return c;
}

// The rank begins its next step, or has done all.
static void slow_begin(slow *s, uint32_t rank) {
    slow_rank *r = &s->ranks[rank];
    for (; r->step < s->step_count; r->step++) {
        const step *t = &s->steps[r->step];
        r->clock += t->delay[rank];
        const uint32_t me = rank / t->stride % t->members;
        if (t->kind == PTOWSP_SEND &&
            (t->root == t->target || (me != t->root && me != t->target))) {
            continue;
        }
        const ptowsp_collective c = slow_collective(s, rank, t);
        ptowsp_collective_size size;
        assert_ok(ptowsp_collective_plan(NULL, &c, me, r->moves, 4096, &size));
        r->move_count = size.step_count;
        r->sent = 0;
        r->round = 0;
        r->now = r->key = r->clock * 1000000;
        return;
    }
    r->step = STEP_MAX;
}

static uint64_t ceil_div(uint64_t a, uint64_t b) {
    return a / b + (a % b != 0);
}

static uint32_t slow_rounds(const slow *s, uint32_t rank) {
    const slow_rank *r = &s->ranks[rank];
    const step *t = &s->steps[r->step];
    const ptowsp_collective c = slow_collective(s, rank, t);
    ptowsp_collective_size size;
    ptowsp_collective_plan(NULL, &c, rank / t->stride % t->members, NULL, 0, &size);
    return size.round_count;
}

// The next send of the round, or -1.
static int64_t slow_send(const slow_rank *r) {
    for (uint64_t i = r->sent; i < r->move_count; i++) {
        if (r->moves[i].round == r->round && r->moves[i].kind == PTOWSP_MOVE_SEND) {
            return (int64_t)i;
        }
    }
    return -1;
}

// Ends the round of a rank if all its messages are on their way.
static bool slow_end_round(slow *s, uint32_t rank) {
    slow_rank *r = &s->ranks[rank];
    if (r->step == STEP_MAX || slow_send(r) >= 0) {
        return false;
    }
    uint64_t latest = r->now, added = 0;
    for (uint64_t i = 0; i < r->move_count; i++) {
        const ptowsp_collective_step *move = &r->moves[i];
        if (move->round != r->round) {
            continue;
        }
        if (move->kind == PTOWSP_MOVE_ADD || move->kind == PTOWSP_MOVE_REDUCE) {
            added += move->count * 8;
        }
    }
    uint32_t expected = 0, got = 0;
    for (uint64_t i = 0; i < r->move_count; i++) {
        expected += r->moves[i].round == r->round && r->moves[i].kind == PTOWSP_MOVE_RECEIVE;
    }
    for (uint32_t k = 0; k < s->message_count; k++) {
        const message *m = &s->messages[k];
        if (m->step == r->step && m->round == r->round && m->to == rank) {
            latest = m->arrival > latest ? m->arrival : latest;
            got++;
        }
    }
    if (got < expected) {
        return false;
    }
    const uint64_t rate = s->links->reduce_bytes_per_us;
    r->now = latest + (rate ? ceil_div(added * 1000000, rate) * s->unit : 0);
    r->key = r->now;
    r->sent = 0;
    if (++r->round == slow_rounds(s, rank)) {
        const uint64_t end = ceil_div(r->now, 1000000);
        r->clock = end > r->clock ? end : r->clock;
        r->end = r->clock;
        r->step++;
        slow_begin(s, rank);
    }
    return true;
}

// The level of the link between two ranks, and its two ends.
static const ptowsp_link *slow_link(slow *s, uint32_t from, uint32_t to, uint64_t **out,
                                    uint64_t **in) {
    const ptowsp_links *l = s->links;
    uint32_t level = 0, node_out = 0, node_in = 0;
    const ptowsp_link *link;
    if (l->axis_count) {
        uint32_t below[4];
        below[l->axis_count - 1] = 1;
        for (uint32_t i = l->axis_count - 1; i > 0; i--) {
            below[i - 1] = below[i] * l->axis_sizes[i];
        }
        while (from / below[level] == to / below[level]) {
            level++;
        }
        const uint32_t last = l->axis_count - 1;
        const uint32_t node = level == last ? l->axis_sizes[last] : below[level];
        node_out = from / node;
        node_in = to / node;
        link = &l->axes[level];
    } else {
        const uint32_t size = l->node_size ? l->node_size : s->count;
        node_out = from / size;
        node_in = to / size;
        level = node_out != node_in;
        link = level ? &l->between : &l->inside;
    }
    *out = &s->out[level][link->sharing == PTOWSP_LINK_NODE ? node_out : from];
    *in = &s->in[level][link->sharing == PTOWSP_LINK_NODE ? node_in : to];
    if (link->sharing == PTOWSP_LINK_PAIR) {
        *out = *in = &s->pair[level][from][to];
    }
    return link;
}

// The end of a message on a link, as late as the caps of both ranks make it.
static uint64_t slow_end(slow *s, const ptowsp_link *link, uint32_t from, uint32_t to,
                         uint64_t bytes, uint64_t start) {
    const ptowsp_links *l = s->links;
    const uint64_t takes = link->bytes_per_us ? ceil_div(bytes * 1000000, link->bytes_per_us) : 0;
    uint64_t end = start + takes * s->unit;
    if (l->rank_bytes_per_us &&
        link == (l->axis_count ? &l->axes[l->axis_count - 1] : &l->inside)) {
        const uint64_t capped = ceil_div(bytes * 1000000, l->rank_bytes_per_us) * s->unit;
        s->sent[from] = (s->sent[from] > start ? s->sent[from] : start) + capped;
        s->received[to] = (s->received[to] > start ? s->received[to] : start) + capped;
        end = s->sent[from] > end ? s->sent[from] : end;
        end = s->received[to] > end ? s->received[to] : end;
    }
    return end;
}

static void slow_simulate(slow *s) {
    for (uint32_t i = 0; i < s->count; i++) {
        slow_begin(s, i);
    }
    for (;;) {
        bool has_moved = true;
        while (has_moved) {
            has_moved = false;
            for (uint32_t i = 0; i < s->count; i++) {
                has_moved = slow_end_round(s, i) || has_moved;
            }
        }
        uint32_t first = s->count;
        for (uint32_t i = 0; i < s->count; i++) {
            if (s->ranks[i].step < STEP_MAX && slow_send(&s->ranks[i]) >= 0 &&
                (first == s->count || s->ranks[i].key < s->ranks[first].key)) {
                first = i;
            }
        }
        if (first == s->count) {
            break;
        }
        slow_rank *r = &s->ranks[first];
        const uint64_t at = (uint64_t)slow_send(r);
        const ptowsp_collective_step *move = &r->moves[at];
        uint64_t *out, *in, start = r->key;
        const ptowsp_link *link = slow_link(s, first, move->peer, &out, &in);
        start = *out > start ? *out : start;
        start = *in > start ? *in : start;
        const uint64_t end = slow_end(s, link, first, move->peer, move->count * 8, start);
        *out = *in = end;
        assert_true(s->message_count < 65536);
        const message sent = {r->step, r->round, first, move->peer,
                              end + link->latency_ps * s->unit};
        s->messages[s->message_count++] = sent;
        r->now = end > r->now ? end : r->now;
        r->sent = at + 1;
        const int64_t next = slow_send(r);
        if (next >= 0) {
            slow_link(s, first, r->moves[next].peer, &out, &in);
            r->key = *out > r->key ? *out : r->key;
        }
    }
    for (uint32_t i = 0; i < s->count; i++) {
        assert_int_equal(s->ranks[i].step, STEP_MAX);
    }
}

static uint32_t below(uint64_t *seed, uint32_t limit) {
    return (uint32_t)(test_random(seed) % limit);
}

static ptowsp_link random_link(uint64_t *seed) {
    const uint64_t rates[] = {0, 333, 1000, 7919};
    const ptowsp_link link = {below(seed, 3) * UINT64_C(777777), rates[below(seed, 4)],
                              (ptowsp_link_sharing)below(seed, 3)};
    return link;
}

static ptowsp_links random_links(uint64_t *seed, uint32_t count) {
    ptowsp_links links = {.inside = random_link(seed)};
    links.between = random_link(seed);
    const uint32_t sizes[] = {0, 1, 2, 3, 4, 6};
    links.node_size = sizes[below(seed, 6)];
    links.reduce_bytes_per_us = below(seed, 2) ? 1234 : 0;
    links.rank_bytes_per_us = below(seed, 2) ? 777 + 1000 * below(seed, 3) : 0;
    if (below(seed, 2)) {
        links.axis_count = 1 + below(seed, 3);
        uint32_t left = count;
        for (uint32_t i = links.axis_count; i-- > 0;) {
            links.axis_sizes[i] = i ? 1 + below(seed, 4) : left;
            links.axes[i] = random_link(seed);
        }
    }
    return links;
}

static step random_step(uint64_t *seed, uint32_t count) {
    static const ptowsp_collective_kind kinds[] = {PTOWSP_ALL_REDUCE, PTOWSP_REDUCE_SCATTER,
                                                   PTOWSP_ALL_GATHER, PTOWSP_ALL_TO_ALL,
                                                   PTOWSP_BROADCAST,  PTOWSP_SEND};
    step s = {0};
    do {  // lines of a mesh
        s.members = 1 + below(seed, count);
        s.stride = 1 + below(seed, count);
    } while (count % (s.members * s.stride));
    s.kind = kinds[below(seed, 6)];
    do {
        s.algorithm = (ptowsp_algorithm)(1 + below(seed, PTOWSP_ALGORITHM_RING));
    } while (!pwsp_collective_has(s.kind, s.algorithm));
    s.root = below(seed, s.members);
    s.target = below(seed, s.members);
    s.count = s.members * below(seed, 1 + 96 / s.members);
    s.count = s.count ? s.count : s.members;
    for (uint32_t i = 0; i < count; i++) {
        s.delay[i] = below(seed, 3) ? below(seed, 4000) : 0;
    }
    return s;
}

// All that the time of a chain of tasks does not depend on.
static ptowsp_schedule random_schedule(uint64_t *seed, ptowsp_module *m) {
    ptowsp_schedule schedule = {.ready = (ptowsp_ready)below(seed, 3)};
    schedule.priority_key =
        schedule.ready == PTOWSP_READY_PRIORITY ? ptowsp_u64(m, 0) : schedule.priority_key;
    schedule.lane_count = 1 + below(seed, 3);
    schedule.window = below(seed, 4);
    if (schedule.window) {
        schedule.window_policy = PTOWSP_WINDOW_STALL;
    } else if (below(seed, 2)) {
        schedule.ring_sizes[PTOWSP_RING_TASKS] = 1 + below(seed, 3);
        schedule.ring_sizes[PTOWSP_RING_DEPENDENCIES] = below(seed, 2) * (4 + below(seed, 3));
    }
    if (schedule.ready == PTOWSP_READY_FIFO && below(seed, 2)) {
        schedule.issue = PTOWSP_ISSUE_IN_ORDER;
    }
    if (below(seed, 3) == 0) {  // costs that round to 0 cycles: threads that are always idle
        schedule.control.by = PTOWSP_CONTROL_AICPU;
        schedule.control.threads = 1 + below(seed, 3);
        schedule.control.clock_mhz = 1;
        for (int i = 0; i < PTOWSP_CONTROL_COST_COUNT; i++) {
            schedule.control.cost_ns[i] = 499;
        }
    }
    return schedule;
}

TEST(together__random_groups_end_as_in_a_slow_simulator) {
    uint64_t seed = test_seed(), waits = 0;
    slow *s = (slow *)malloc(sizeof *s);
    for (int round = 0; TEST_ROUNDS(round, 300); round++) {
        static const uint32_t counts[] = {1, 2, 3, 4, 6, 8, 12, 16, 24};
        const uint32_t count = counts[below(&seed, 9)];
        const ptowsp_links links = random_links(&seed, count);
        step steps[STEP_MAX];
        memset(s, 0, sizeof *s);
        s->count = count;
        s->links = &links;
        s->steps = steps;
        s->step_count = 1 + below(&seed, STEP_MAX - 1);
        for (uint32_t i = 0; i < s->step_count; i++) {
            steps[i] = random_step(&seed, count);
        }
        ranks r;
        ranks_begin(&r, count, &links);
        r.group.cycles_per_us = s->unit = 1 + below(&seed, 3000);
        for (uint32_t i = 0; i < count; i++) {
            ptowsp_module *m = ranks_parse(&r, steps_text(i, steps, s->step_count), NULL);
            const ptowsp_schedule schedule = random_schedule(&seed, m);
            ranks_add(&r, m, &schedule);
        }
        slow_simulate(s);
        const ptowsp_status status = ranks_simulate(&r, below(&seed, 2) == 0);
        assert_string_equal(ptowsp_context_error(r.context).text, "");
        assert_ok(status);
        for (uint32_t i = 0; i < count; i++) {
            if (end_of(&r, i) != s->ranks[i].clock) {
                fail_msg("round %d, rank %u of %u ends at %" PRIu64 ", not at %" PRIu64, round, i,
                         count, end_of(&r, i), s->ranks[i].clock);
            }
        }
        waits += r.result.wait_cycles;
        const ptowsp_run_group_result first = r.result;
        assert_ok(ranks_simulate(&r, false));  // once more
        assert_int_equal(first.makespan_cycles, r.result.makespan_cycles);
        assert_int_equal(first.wait_cycles, r.result.wait_cycles);
        ranks_end(&r);
    }
    assert_met(waits > 0);
    free(s);
}

// -- against one rank alone -----------------------------------------------------------------------

static ptowsp_schedule any_schedule(uint64_t *seed, ptowsp_module *m, ptowsp_expr key) {
    ptowsp_schedule schedule = random_schedule(seed, m);
    schedule.dispatch =
        below(seed, 3) ? PTOWSP_DISPATCH_ROUND_ROBIN : PTOWSP_DISPATCH_WORK_STEALING;
    schedule.timing = (ptowsp_timing)below(seed, 4);
    schedule.timing_cycles = schedule.timing ? 1 + below(seed, 700) : 0;
    schedule.timing_count = schedule.timing == PTOWSP_TIMING_BATCHED ? 1 + below(seed, 3) : 0;
    if (schedule.timing == PTOWSP_TIMING_INTERLEAVED) {
        schedule.stream_count = 1 + below(seed, 3);
        schedule.stream_key = key;
    }
    if (schedule.window && below(seed, 2)) {
        schedule.window = 3 + below(seed, 4);
        schedule.window_policy = PTOWSP_WINDOW_BENCHMARK;
    }
    if (below(seed, 3) == 0) {
        schedule.start = PTOWSP_START_THRESHOLD;
        schedule.start_threshold = 1 + below(seed, 14);
        schedule.window = 0;  // which would not have room for as many
        schedule.window_policy = PTOWSP_WINDOW_DEFAULT;
        schedule.ring_sizes[PTOWSP_RING_TASKS] = schedule.ring_sizes[PTOWSP_RING_DEPENDENCIES] = 0;
    }
    return schedule;
}

// Rings of all ranks over links that nobody shares, beside other tasks.
static ptowsp_module *alike_module(const ranks *r, uint64_t *seed) {
    char text[2000] = "";
    const uint32_t rows = 24 * (1 + below(seed, 20)), cycles = 1 + below(seed, 200);
    ADD(text,
        "kernel short(axes 0, inout x i64 ? x ?) vector, %u cycles, time only\n"
        "kernel long(axes 0, inout x i64 ? x ?) vector, %u cycles, time only\nworkload steps\n",
        cycles, 1 + below(seed, 9000));
    const bool is_parallel = below(seed, 2);
    ADD(text, "%s", is_parallel ? "  combine\n" : "");
    for (uint32_t i = 2 + below(seed, 10); i > 0; i--) {
        const char tensor = "ab"[below(seed, 2)];
        const uint32_t what = below(seed, 4);
        ADD(text, "%s  task %s = %c", is_parallel ? "  " : "",
            what < 2    ? "sum() data"
            : what == 2 ? "short() x"
                        : "long() x",
            tensor);
        if (what < 2) {
            ADD(text, " of %u x 1", rows);
        }
        ADD(text, "\n");
    }
    return ranks_parse(r, text, NULL);
}

// Ranks that do the same are each as one alone: in all results and records, whatever the schedule.
TEST(together__ranks_that_do_the_same_are_as_one_alone) {
    uint64_t seed = test_seed();
    uint32_t good = 0, held = 0;
    for (int round = 0; TEST_ROUNDS(round, 600); round++) {
        const uint32_t count = 2 + below(&seed, 3);
        ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY, .record_tasks = true};
        ranks r;
        ranks_begin(&r, count + 1, &ports);  // the last one is alone
        r.group.rank_count = count;
        ptowsp_module *m = alike_module(&r, &seed);
        const ptowsp_schedule schedule = any_schedule(&seed, m, ptowsp_u64(m, 0));
        r.modules[0] = m;
        const ptowsp_program_desc desc = {NULL, &schedule};
        ptowsp_status status = ptowsp_program_create(r.context, m, &desc, &r.programs[0]);
        for (uint32_t i = 0; i <= count && status == PTOWSP_OK; i++) {
            assert_ok(ptowsp_run_create(r.context, r.programs[0], &r.runs[i]));
        }
        if (status == PTOWSP_OK) {
            ptowsp_run_ranks bound = {.rank_count = count, .links = ports, .cycles_per_us = 1000};
            assert_ok(ptowsp_run_bind_ranks(r.runs[count], &bound));
            status = ptowsp_run_execute(r.runs[count], &options);
            assert_int_equal(ranks_simulate(&r, true), status);
        }
        for (uint32_t i = 0; i < count && status == PTOWSP_OK; i++) {
            ptowsp_run_stats one = *ptowsp_run_result(r.runs[count]);
            ptowsp_run_stats each = *ptowsp_run_result(r.runs[i]);
            one.memory_bytes = each.memory_bytes = 0;
            assert_memory_equal(&one, &each, sizeof one);
            if (one.task_count) {
                assert_memory_equal(ptowsp_run_records(r.runs[count]),
                                    ptowsp_run_records(r.runs[i]),
                                    (size_t)one.task_count * sizeof(ptowsp_task_record));
            }
            good++;
            held += r.result.collective_count > 1;
        }
        ranks_end(&r);
    }
    assert_met(good > 600 && held > 300);
}

// 8 ranks along one axis, or along 4 times 2.
CONTEXT_TEST(together__the_first_size_of_a_mesh_changes_no_time) {
    for (uint32_t i = 0; i < 3 * 2 * 4; i++) {
        const uint32_t axis_count = 1 + i / 3 % 2;
        const ptowsp_collective gather = {.kind = PTOWSP_ALL_GATHER,
                                          .algorithm =
                                              (ptowsp_algorithm)(PTOWSP_ALGORITHM_DIRECT + i / 6),
                                          .dtype = PTOWSP_U8,
                                          .members = 8,
                                          .count = 8000};
        ptowsp_links links = {.axis_count = axis_count, .axis_sizes[1] = 2};
        links.axes[0] = links.axes[1] = link_of((ptowsp_link_sharing)(i % 3));
        ptowsp_collective_cost costs[2];
        for (uint32_t size = 1; size <= 16; size *= 2) {
            links.axis_sizes[0] = size;
            assert_ok(ptowsp_collective_time(context, &gather, &links, &costs[size > 1]));
            assert_memory_equal(&costs[0], &costs[size > 1], sizeof costs[0]);
        }
    }
}

// -- thousands ------------------------------------------------------------------------------------

// Members that stand for all end as all of them do, one by one.
TEST(together__symmetry_changes_no_time) {
    uint64_t seed = test_seed(), fewer = 0;
    ptowsp_context *context = test_context(NULL);
    for (int round = 0; TEST_ROUNDS(round, 9000); round++) {
        static uint64_t starts[96], one[96], all[96];
        ptowsp_links links = random_links(&seed, 96);
        ptowsp_collective c = {.kind = (ptowsp_collective_kind)below(&seed, 3)};
        c.algorithm = below(&seed, 2) ? PTOWSP_ALGORITHM_RING : PTOWSP_ALGORITHM_HIERARCHICAL;
        c.dtype = PTOWSP_F32;
        c.members = 1 + below(&seed, 24);
        c.first = below(&seed, 4);
        c.stride = 1 + below(&seed, 3);
        c.count = c.members * below(&seed, 40);
        c.node_size = pwsp_links_inner(&c, &links);
        assert_ok(pwsp_collective_time_from(context, &c, &links, 7, NULL, one));
        assert_ok(pwsp_collective_time_from(context, &c, &links, 7, starts, all));
        assert_memory_equal(one, all, c.members * sizeof one[0]);
        ptowsp_collective_cost cost;
        assert_ok(ptowsp_collective_time(context, &c, &links, &cost));
        ptowsp_collective_size size;
        uint64_t sent = 0;
        for (uint32_t i = 0; i < c.members; i++) {
            assert_ok(ptowsp_collective_plan(context, &c, i, NULL, 0, &size));
            sent += size.send_count * 4;
        }
        assert_int_equal(cost.sent_bytes, sent);
        fewer += pwsp_traffic_symmetry(&links, &c) < c.members;
    }
    assert_met(fewer > 900);
    ptowsp_context_destroy(context);
}

// 2048 stages of a pipeline, one program for all: each receives 1000 bytes, works for 300 cycles, and
// sends them on: 2 us from stage to stage.
TEST(together__two_thousand_stages_are_simulated_one_by_one) {
    enum { STAGES = 2048 };
    ranks r;
    ranks_begin(&r, STAGES, &ports);
    ranks_add_text(&r,
                   "symbol rank\n"
                   "kernel send(axes 0, inout data i64 ? x ?, root i64, target i64) link, send\n"
                   "kernel mix(axes 0, inout x i64 ? x ?) vector, 300 cycles, time only\n"
                   "workload stage\n"
                   "  when i64(rank) > 0\n"
                   "    task send() data = a of 125 x 1 root = i64(rank) - 1 target = i64(rank)\n"
                   "  task mix() x = a\n"
                   "  when i64(rank) < 2047\n"
                   "    task send() data = a of 125 x 1 root = i64(rank) target = i64(rank) + 1\n",
                   NULL, NULL);
    for (uint32_t i = 0; i < STAGES; i++) {
        if (i > 0) {
            assert_ok(ptowsp_run_create(r.context, r.programs[0], &r.runs[i]));
        }
        assert_ok(ptowsp_run_bind_symbol(r.runs[i], "rank", i));
    }
    const uint64_t begin = ptowsp_clock_ns();
    const ptowsp_status status = ranks_simulate(&r, false);
    assert_string_equal(ptowsp_context_error(r.context).text, "");
    assert_ok(status);
    print_message("%d ranks: %.1f ms, %.1f KB each\n", STAGES,
                  (double)(ptowsp_clock_ns() - begin) / 1e6,
                  (double)r.result.memory_bytes / STAGES / 1000);
    for (uint32_t i = 0; i < STAGES; i++) {
        const uint64_t sent = i + 1 < STAGES ? 1000 : 0;
        assert_int_equal(end_of(&r, i), i * 2000 + (i + 1) * 300 + sent);
        assert_int_equal(ptowsp_run_result(r.runs[i])->stall_cycles[PTOWSP_STALL_RANK],
                         i ? (i - 1) * 2000 + i * 300 : 0);
    }
    assert_int_equal(r.result.collective_count, STAGES - 1);
    assert_int_equal(r.result.last_rank, STAGES - 1);
    ranks_end(&r);
}

// -- traces ---------------------------------------------------------------------------------------

// Rank 0 works for 1000, then sends 1000 bytes to 1, which come at 3000; 2 has a program without
// collectives.
static void ranks_begin_three(ranks *r) {
    step s = {.kind = PTOWSP_SEND, .target = 1, .count = 125, .delay[0] = 1000, .delay[2] = 2500};
    ranks_begin(r, 3, &ports);
    ranks_add_steps(r, &s, 1);
    ranks_add_steps(r, &s, 1);
    ranks_add_text(r,
                   "kernel alone(axes 0, inout x i64 ? x ?) vector, 2500 cycles, time only\n"
                   "workload alone\n  task alone() x = a\n",
                   NULL, NULL);
}

TEST(together__traces_have_all_ranks) {
    ranks r;
    ranks_begin_three(&r);
    assert_ok(ranks_simulate(&r, true));
    assert_ok(ptowsp_run_group_export(r.context, &r.group, PTOWSP_EXPORT_PERFETTO, NULL,
                                      written_output()));
    for (char rank = '0'; rank < '3'; rank++) {
        const char name[] = {'r', 'a', 'n', 'k', ' ', rank, '\0'};
        assert_true(count_of(name, 6) > 0);
    }
    has_times(3, "links");
    has_times(1, "waits for rank 0");
    // flow_ids and terminating_flow_ids: 47 and 48, of 64 bits
    has_times(1, "\xf9\x02\x01");
    has_times(1, "\x81\x03\x01");
    ranks_end(&r);
}

TEST(together__every_allocation_may_be_refused) {
    ranks r;
    ranks_begin_three(&r);
    const ptowsp_export_format formats[] = {PTOWSP_EXPORT_CHROME, PTOWSP_EXPORT_PERFETTO,
                                            PTOWSP_EXPORT_SVG};
    bool is_done = false;
    for (uint64_t n = 1; !is_done; n++) {
        test_memory memory = {.refuse_at = n};
        const ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &memory};
        ptowsp_context *context = NULL;
        ptowsp_run *runs[3] = {NULL, NULL, NULL};
        ptowsp_status status = ptowsp_context_create(&desc, &context);
        for (int i = 0; i < 3 && status == PTOWSP_OK; i++) {
            status = ptowsp_run_create(context, r.programs[i], &runs[i]);
        }
        ptowsp_run_group group = r.group;
        group.runs = runs;
        ptowsp_run_options options = {.record_tasks = true};
        if (status == PTOWSP_OK) {
            status = ptowsp_run_group_simulate(context, &group, &options, NULL);
            for (int i = 0; i < 3; i++) {
                assert_int_equal(runs[i]->result.is_done, status == PTOWSP_OK);
            }
        }
        for (int i = 0; i < 3 && status == PTOWSP_OK; i++) {
            status = ptowsp_run_group_export(context, &group, formats[i], NULL, written_output());
        }
        is_done = status == PTOWSP_OK;
        assert_true(is_done || status == PTOWSP_OUT_OF_MEMORY);
        for (int i = 0; i < 3; i++) {
            ptowsp_run_destroy(runs[i]);
        }
        ptowsp_context_destroy(context);
        assert_int_equal(memory.live_bytes, 0);
    }
    ranks_end(&r);
}

// -- a function ends it -----------------------------------------------------------------------------

// The cost of a task: 100 cycles so many times, then it cancels a run or fails.
typedef struct ender {
    uint32_t last, call_count;
    ptowsp_run *cancelled;
} ender;

static ptowsp_cycles end_it(const ptowsp_task *task, void *user) {
    ender *e = (ender *)user;
    (void)task;
    if (e->call_count++ < e->last) {
        return 100;
    } else if (e->cancelled) {
        ptowsp_run_cancel(e->cancelled);
        return 5;
    }
    return ptowsp_task_fail(PTOWSP_KERNEL_FAILED);
}

// Two ranks of a text, whose kernel costs what each ender says.
static void ranks_begin_two(ranks *r, const char *text, const char *kernel, ender enders[2],
                            const ptowsp_schedule *schedule) {
    ranks_begin(r, 2, &ports);
    for (uint32_t k = 0; k < 2; k++) {
        const ptowsp_parse_kernel costs = {
            .name = kernel, .fn = end_it, .cost = end_it, .user = &enders[k]};
        ranks_add_text(r, text, &costs, schedule);
    }
}

#define END_OF_ALL                                                                                 \
    "kernel end(axes 0) vector, cycles by a cost function\nworkload steps\n"                       \
    "  task sum() data = a of 100 x 1\n"

// A sum, and beside it a task whose cost ends all, alone or in a pipeline. Where lanes choose, the sum
// has not ended by then: the task is called once all the same, and its rank is named.
TEST(together__a_task_beside_a_collective_ends_its_rank) {
    for (uint32_t way = 0; way < 8; way++) {
        const bool is_in_pipeline = way & 1, is_cancelled = way & 2, chooses = way & 4;
        const ptowsp_schedule schedule = {.ready = chooses ? PTOWSP_READY_WORK_STEALING
                                                           : PTOWSP_READY_FIFO};
        ender enders[2] = {{0}, {0}};
        ranks r;
        ranks_begin_two(&r,
                        is_in_pipeline ? END_OF_ALL "  pipeline pipeline\n    process process\n"
                                                    "      task end()\n"
                                       : END_OF_ALL "  task end()\n",
                        "end", enders, &schedule);
        enders[0].cancelled = enders[1].cancelled = is_cancelled ? r.runs[1] : NULL;
        assert_int_equal(ranks_simulate(&r, false),
                         is_cancelled ? PTOWSP_CANCELLED : PTOWSP_KERNEL_FAILED);
        const ptowsp_error error = ptowsp_context_error(r.context);
        char text[128];
        if (is_cancelled) {
            snprintf(text, sizeof text, "rank 1: run: cancelled; %d tasks accounted for", !chooses);
        } else {
            snprintf(text, sizeof text,
                     "rank 0: steps/%stask end: task 1: the cost of end returned KERNEL_FAILED",
                     is_in_pipeline ? "pipeline pipeline/process process/" : "");
        }
        assert_string_equal(error.text, text);
        assert_int_equal(error.index, is_cancelled);
        assert_int_equal(enders[0].call_count + enders[1].call_count, 1);
        ranks_end(&r);
    }
}

// Hosts launch a sum at 1000: 2 rounds of 1 us and 960 bytes, until 4920. In order, a pipeline of two
// tasks follows when both ranks have joined the sum, but it has run by then: once. A task of rank 0
// that fails in it ends all.
TEST(together__a_pipeline_that_is_held_runs_once) {
    ptowsp_schedule schedule = {.issue = PTOWSP_ISSUE_IN_ORDER,
                                .lane_count = 2,
                                .control.by = PTOWSP_CONTROL_HOST,
                                .control.clock_mhz = 1000,
                                .control.cost_ns[PTOWSP_CONTROL_SUBMIT] = 1000};
    for (int fails = 0; fails < 2; fails++) {
        ender enders[2] = {{.last = fails ? 1 : 2}, {.last = 2}};
        ranks r;
        ranks_begin_two(&r,
                        "kernel k(axes 0) vector, cycles by a cost function\nworkload steps\n"
                        "  task sum() data = a of 240 x 1\n"
                        "  pipeline pipeline\n    process process\n"
                        "      task k()\n      task k()\n",
                        "k", enders, &schedule);
        assert_int_equal(ranks_simulate(&r, true), fails ? PTOWSP_KERNEL_FAILED : PTOWSP_OK);
        assert_int_equal(enders[0].call_count, 2);
        for (uint32_t k = 0; k < 2 && !fails; k++) {
            assert_int_equal(enders[k].call_count, 2);
            assert_int_equal(ptowsp_run_result(r.runs[k])->task_count, 3);
            assert_int_equal(ptowsp_run_records(r.runs[k])[0].end, 4920);
            assert_int_equal(ptowsp_run_records(r.runs[k])[1].start, 4920);
            assert_int_equal(ptowsp_run_records(r.runs[k])[2].start, 5020);
            assert_int_equal(end_of(&r, k), 5120);
        }
        if (fails) {
            assert_string_equal(ptowsp_context_error(r.context).text,
                                "rank 0: steps/pipeline pipeline/process process/task k: task 2: "
                                "the cost of k returned KERNEL_FAILED");
        }
        ranks_end(&r);
    }
}

static ptowsp_cycles more_rows(const ptowsp_task *task, void *user) {
    (void)task;
    *(int64_t *)user = 5000;
    return 1;
}

// Counts are read once more when the task begins, and a cost function has changed those of rank 0 by then.
TEST(together__counts_that_change_until_a_task_begins_are_found) {
    const ptowsp_schedule schedule = {.ready = PTOWSP_READY_WORK_STEALING};
    int64_t counts[2][4] = {{5, 250, 125, 7}, {5, 250, 125, 7}};
    ranks r;
    ranks_begin(&r, 2, &ports);
    for (uint32_t k = 0; k < 2; k++) {
        const ptowsp_parse_kernel change = {
            .name = "change", .fn = more_rows, .cost = more_rows, .user = &counts[0][1]};
        ranks_add_text(&r,
                       "kernel slow(axes 0, inout x i64 ? x ?) vector, 1000 cycles, time only\n"
                       "kernel exchange(axes 0, in in i64 ? x ?, out out i64 ? x ?) link, "
                       "all_to_all, by ring, counts counts\n"
                       "kernel change(axes 0) vector, cycles by a cost function\n"
                       "workload steps\n  task slow() x = a\n"
                       "  task exchange() in = a of 1000 x 1 out = b of 1000 x 1\n"
                       "  task change()\n",
                       &change, &schedule);
        assert_ok(ptowsp_run_bind_array(r.runs[k], "counts", PTOWSP_I64, counts[k], 4));
    }
    assert_int_equal(ranks_simulate(&r, false), PTOWSP_UNSUPPORTED_SIZE);
    assert_string_equal(ptowsp_context_error(r.context).text,
                        "rank 0: all_to_all: in has 1000 rows, and the collective takes 5005");
    ranks_end(&r);
}

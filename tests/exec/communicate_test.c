// Workloads that communicate: random programs on ranks that are threads, on one lane and on several,
// against a loop over plain arrays; time of ranks that are late; what is refused, and ranks that fail.
// tests/cases/collectives.case has times that are worked out on paper, and sizes that are refused.

#include "src/ranks/ranks.h"

#include "support/fixture.h"

#include <inttypes.h>
#include <sched.h>

enum { RANK_MAX = 4, TENSOR_COUNT = 4, ROWS = 8, COLS = 12, STEP_MAX = 14, TEXT_MAX = 8192 };

typedef int64_t matrix[ROWS][COLS];

#define ALL   "(axes 0, inout data i64 ? x ?) link, "
#define PARTS "(axes 0, in in i64 ? x ?, out out i64 ? x ?) link, "

static const struct {
    const char *name, *text;
    ptowsp_collective_kind kind;
    ptowsp_reduction reduction;
    bool is_ragged;
} collectives[] = {
    {"sum", ALL "all_reduce", PTOWSP_ALL_REDUCE, PTOWSP_REDUCTION_SUM, false},
    {"\"ring max\"", ALL "all_reduce, max, by ring", PTOWSP_ALL_REDUCE, PTOWSP_REDUCTION_MAX,
     false},
    {"nodes", ALL "all_reduce, min, by hierarchical", PTOWSP_ALL_REDUCE, PTOWSP_REDUCTION_MIN,
     false},
    {"scatter", PARTS "reduce_scatter, min", PTOWSP_REDUCE_SCATTER, PTOWSP_REDUCTION_MIN, false},
    {"gather", PARTS "all_gather, by doubling", PTOWSP_ALL_GATHER, PTOWSP_REDUCTION_SUM, false},
    {"swap", PARTS "all_to_all", PTOWSP_ALL_TO_ALL, PTOWSP_REDUCTION_SUM, false},
    {"ragged", PARTS "all_to_all, by ring, counts counts", PTOWSP_ALL_TO_ALL, PTOWSP_REDUCTION_SUM,
     true},
    {"spread", "(axes 0, inout data i64 ? x ?, root i64) link, broadcast", PTOWSP_BROADCAST,
     PTOWSP_REDUCTION_SUM, false},
    {"post", "(axes 0, inout data i64 ? x ?, root i64, target i64) link, send", PTOWSP_SEND,
     PTOWSP_REDUCTION_SUM, false},
};
enum { COLLECTIVE_COUNT = COUNT_OF(collectives), MIX = COLLECTIVE_COUNT };

// A step: a collective, or MIX, on windows of one or two tensors.
typedef struct step {
    uint32_t kind, tensors[2], row[2], rows[2], col, cols, root, target;
} step;

typedef struct plan {
    uint32_t rank_count, group, stride;  // members of the groups, and how far they are apart
    uint32_t step_count;
    step steps[STEP_MAX];
    bool is_parallel;
    int64_t counts[RANK_MAX * RANK_MAX];
} plan;

// -- plans ----------------------------------------------------------------------------------------

static uint32_t below(uint64_t *seed, uint32_t limit) {
    return (uint32_t)(test_random(seed) % limit);
}

static plan plan_random(uint64_t *seed) {
    static const uint32_t groups[][3] = {{1, 1, 1}, {2, 2, 1}, {3, 3, 1},
                                         {4, 4, 1}, {4, 2, 1}, {4, 2, 2}};
    plan p = {0};
    const uint32_t *group = groups[below(seed, 6)];
    p.rank_count = group[0];
    p.group = group[1];
    p.stride = group[2];
    p.is_parallel = below(seed, 2) == 0;
    p.step_count = 1 + below(seed, STEP_MAX);
    for (uint32_t s = 0; s < p.group; s++) {
        for (uint32_t d = 0; d < p.group; d++) {
            p.counts[s * p.group + d] = below(seed, ROWS / p.group + 1);
        }
    }
    for (uint32_t i = 0; i < p.step_count; i++) {
        step *s = &p.steps[i];
        s->kind = below(seed, COLLECTIVE_COUNT + 4);
        s->kind = s->kind > MIX ? MIX : s->kind;
        s->tensors[0] = below(seed, TENSOR_COUNT);
        s->tensors[1] = (s->tensors[0] + 1 + below(seed, TENSOR_COUNT - 1)) % TENSOR_COUNT;
        s->col = below(seed, 3) ? below(seed, COLS) : 0;
        s->cols = below(seed, 3) ? 1 + below(seed, COLS - s->col) : COLS - s->col;
        s->root = below(seed, p.group);
        s->target = below(seed, p.group);
        const uint32_t most = ROWS / p.group, k = 1 + below(seed, most);
        const ptowsp_collective_kind kind =
            s->kind < MIX ? collectives[s->kind].kind : PTOWSP_ALL_REDUCE;
        const bool is_ragged = s->kind < MIX && collectives[s->kind].is_ragged;
        s->rows[0] = is_ragged ? ROWS : kind == PTOWSP_ALL_GATHER ? k : k * p.group;
        s->rows[1] = is_ragged ? ROWS : kind == PTOWSP_REDUCE_SCATTER ? k : k * p.group;
        for (uint32_t t = 0; t < 2; t++) {
            s->row[t] = below(seed, ROWS - s->rows[t] + 1);
        }
    }
    return p;
}

// -- the slow reference ---------------------------------------------------------------------------

static int64_t initial(uint32_t rank, uint32_t tensor, uint32_t row, uint32_t col) {
    uint64_t seed = rank * 1000 + tensor * 100 + row * 12 + col;
    return (int64_t)(test_random(&seed) % 1000) - 500;
}

static int64_t mixed(int64_t x, int64_t y) {
    return (int64_t)((uint64_t)x * 3 + (uint64_t)y + 1);
}

// Elements of the windows of a step, in order, by member of a group.
static int64_t *at(matrix *data, const step *s, uint32_t t, uint64_t e) {
    return &data[s->tensors[t]][s->row[t] + e / s->cols][s->col + e % s->cols];
}

static void refer_group(const plan *p, const step *s, matrix *of[RANK_MAX]) {
    static int64_t in[RANK_MAX][ROWS * COLS];
    const uint64_t count = (uint64_t)s->rows[0] * s->cols, part = count / p->group;
    for (uint32_t m = 0; m < p->group; m++) {
        for (uint64_t e = 0; e < count; e++) {
            in[m][e] = *at(of[m], s, 0, e);
        }
    }
    uint64_t sent[RANK_MAX] = {0};
    for (uint32_t m = 0; m < p->group; m++) {
        int64_t reduced[ROWS * COLS];
        for (uint64_t e = 0; e < count; e++) {
            reduced[e] = in[0][e];
            for (uint32_t k = 1; k < p->group; k++) {
                const int64_t x = in[k][e];
                const ptowsp_reduction r = collectives[s->kind].reduction;
                reduced[e] = r == PTOWSP_REDUCTION_SUM
                                 ? (int64_t)((uint64_t)reduced[e] + (uint64_t)x)
                             : (r == PTOWSP_REDUCTION_MAX) == (x > reduced[e]) ? x
                                                                               : reduced[e];
            }
        }
        uint64_t got = 0;
        switch (collectives[s->kind].kind) {
        case PTOWSP_ALL_REDUCE:
            for (uint64_t e = 0; e < count; e++) {
                *at(of[m], s, 0, e) = reduced[e];
            }
            break;
        case PTOWSP_REDUCE_SCATTER:
            for (uint64_t e = 0; e < part; e++) {
                *at(of[m], s, 1, e) = reduced[m * part + e];
            }
            break;
        case PTOWSP_ALL_GATHER:
            for (uint64_t e = 0; e < count * p->group; e++) {
                *at(of[m], s, 1, e) = in[e / count][e % count];
            }
            break;
        case PTOWSP_ALL_TO_ALL:
            for (uint32_t k = 0; k < p->group; k++) {
                const bool is_ragged = collectives[s->kind].is_ragged;
                const uint64_t n =
                    is_ragged ? (uint64_t)p->counts[k * p->group + m] * s->cols : part;
                for (uint64_t e = 0; e < n; e++) {
                    *at(of[m], s, 1, got++) = in[k][is_ragged ? sent[k] + e : m * part + e];
                }
                sent[k] += n;
            }
            break;
        default:
            for (uint64_t e = 0; e < count; e++) {
                const bool gets = collectives[s->kind].kind == PTOWSP_BROADCAST || m == s->target;
                *at(of[m], s, 0, e) = gets ? in[s->root][e] : in[m][e];
            }
        }
    }
}

static void refer(const plan *p, matrix data[RANK_MAX][TENSOR_COUNT]) {
    for (uint32_t i = 0; i < p->step_count; i++) {
        const step *s = &p->steps[i];
        for (uint32_t r = 0; r < p->rank_count; r++) {
            if (s->kind == MIX) {
                for (uint64_t e = 0; e < (uint64_t)s->rows[0] * s->cols; e++) {
                    *at(data[r], s, 0, e) = mixed(*at(data[r], s, 0, e), *at(data[r], s, 1, e));
                }
            } else if (r / p->stride % p->group == 0) {
                matrix *of[RANK_MAX];
                for (uint32_t m = 0; m < p->group; m++) {
                    of[m] = data[r + m * p->stride];
                }
                refer_group(p, s, of);
            }
        }
    }
}

// -- programs -------------------------------------------------------------------------------------

static ptowsp_cycles mix_fn(const ptowsp_task *task, void *user) {
    (void)user;
    for (int64_t i = 0; i < ptowsp_task_rows(task, 0); i++) {
        for (int64_t j = 0; j < ptowsp_task_cols(task, 0); j++) {
            int64_t *x = (int64_t *)task->tiles[0].data + i * task->tiles[0].row_stride +
                         j * task->tiles[0].col_stride;
            const int64_t *y = (const int64_t *)task->tiles[1].data +
                               i * task->tiles[1].row_stride + j * task->tiles[1].col_stride;
            *x = mixed(*x, *y);
        }
    }
    return 0;
}

// The program of a plan as text.
static const char *text_of(const plan *p, char text[TEXT_MAX]) {
    static const char *const one[] = {"data", NULL}, *const two[] = {"in", "out"},
                             *const mix[] = {"x", "y"};
    size_t n = 0;
#define ADD(...) (n += (size_t)snprintf(text + n, TEXT_MAX - n, __VA_ARGS__))
    ADD("module m\n");
    for (uint32_t i = 0; i < TENSOR_COUNT; i++) {
        ADD("tensor %c i64 [%d, %d] global\n", 'a' + (int)i, ROWS, COLS);
    }
    ADD("kernel mix(axes 0, inout x i64 ? x ?, in y i64 ? x ?) vector, 1000 cycles\n");
    for (uint32_t i = 0; i < COLLECTIVE_COUNT; i++) {
        ADD("kernel %s%s", collectives[i].name, collectives[i].text);
        if (p->group != p->rank_count) {
            ADD(", members %u, stride %u", p->group, p->stride);
        }
        ADD("\n");
    }
    ADD("workload steps\n%s", p->is_parallel ? "  combine\n" : "");
    for (uint32_t i = 0; i < p->step_count; i++) {
        const step *s = &p->steps[i];
        const ptowsp_collective_kind kind = s->kind < MIX ? collectives[s->kind].kind : 0;
        const bool has_root = kind == PTOWSP_BROADCAST || kind == PTOWSP_SEND;
        const bool is_one = s->kind < MIX && (has_root || kind == PTOWSP_ALL_REDUCE);
        const char *const *names = s->kind == MIX ? mix : is_one ? one : two;
        ADD("%s  task %s()", p->is_parallel ? "  " : "",
            s->kind == MIX ? "mix" : collectives[s->kind].name);
        for (uint32_t t = 0; t < 2 && names[t]; t++) {
            ADD(" %s = %c at (%u, %u) of %u x %u", names[t], 'a' + (int)s->tensors[t], s->row[t],
                s->col, s->rows[s->kind == MIX ? 0 : t], s->cols);
        }
        if (has_root) {
            ADD(" root = %u", s->root);
        }
        if (kind == PTOWSP_SEND) {
            ADD(" target = %u", s->target);
        }
        ADD("\n");
    }
#undef ADD
    assert_true(n < TEXT_MAX);
    return text;
}

// -- ranks ----------------------------------------------------------------------------------------

typedef struct rank_job {
    const plan *p;
    ptowsp_hub *hub;
    uint32_t rank, lane_count;
    matrix *data;
    ptowsp_status status;
    char text[256];
    ptowsp_cycles alone, together, again;
    bool is_started;  // by ptowsp_run_start
    bool is_clocked;
} rank_job;

static void bind_all(ptowsp_run *run, const rank_job *job) {
    for (uint32_t i = 0; i < TENSOR_COUNT; i++) {
        const char name[2] = {(char)('a' + i), '\0'};
        test_bind(run, name, job->data[i]);
    }
    assert_ok(ptowsp_run_bind_array(run, "counts", PTOWSP_I64, job->p->counts,
                                    (uint64_t)job->p->group * job->p->group));
}

static ptowsp_cycles time_of(ptowsp_run *run, ptowsp_status *status) {
    if (*status == PTOWSP_OK) {
        *status = test_time(run);
    }
    return ptowsp_run_result(run)->makespan_cycles;
}

static void *rank_main(void *user) {
    rank_job *job = (rank_job *)user;
    ptowsp_context_desc context_desc = {.threads = PTOWSP_THREADS_OWN,
                                        .lane_count = job->lane_count};
    ptowsp_context *context = test_context(&context_desc);
    ptowsp_ranks_desc desc = {.rank = job->rank,
                              .rank_count = job->p->rank_count,
                              .transport = ptowsp_hub_transport(job->hub, job->rank)};
    ptowsp_ranks *ranks = NULL;
    job->status = ptowsp_ranks_create(context, &desc, &ranks);
    fixture f = {.context = context};
    char text[TEXT_MAX];
    const ptowsp_parse_kernel mix = {.name = "mix", .fn = mix_fn};
    const ptowsp_parse_desc attached = {.kernels = &mix, .kernel_count = 1};
    program_make(&f, text_of(job->p, text), &attached, NULL);
    ptowsp_run *run = f.run;
    bind_all(run, job);
    ptowsp_run_ranks bound = {.rank = job->rank, .rank_count = job->p->rank_count};
    assert_ok(ptowsp_run_bind_ranks(run, &bound));
    job->alone = time_of(run, &job->status);
    bound.ranks = ranks;
    assert_ok(ptowsp_run_bind_ranks(run, &bound));
    job->together = time_of(run, &job->status);
    ptowsp_run_options options = {.lane_count = job->lane_count};
    const ptowsp_record_options clocked = {PTOWSP_RECORD_TASKS, 0, 0, 0, true};
    if (job->is_clocked) {
        assert_ok(ptowsp_run_record(run, &clocked));
    }
    if (job->status == PTOWSP_OK && job->is_started) {
        job->status = ptowsp_run_start(run, &options);
        job->status = job->status == PTOWSP_OK ? ptowsp_run_wait(run) : job->status;
    } else if (job->status == PTOWSP_OK) {
        job->status = ptowsp_run_execute(run, &options);
    }
    if (job->status == PTOWSP_OK) {
        assert_int_equal(ptowsp_run_result(run)->makespan_cycles, job->alone);
    }
    for (uint64_t i = 0; job->is_clocked && job->status == PTOWSP_OK && i < job->p->step_count;
         i++) {  // links are a lane behind the others
        const ptowsp_task_record *clock = ptowsp_run_clock_at(run, i);
        const bool is_link = job->p->steps[i].kind < MIX;
        assert_non_null(clock);
        assert_true(clock->start <= clock->end);
        assert_true(job->lane_count == 1 || clock->lane == PTOWSP_NO_LANE ||
                    is_link == (clock->lane == job->lane_count));
    }
    assert_ok(ptowsp_run_record(run, NULL));
    job->again = time_of(run, &job->status);
    snprintf(job->text, sizeof job->text, "%s", ptowsp_context_error(context).text);
    fixture_clear(&f);
    ptowsp_ranks_destroy(ranks);
    ptowsp_context_destroy(context);
    return NULL;
}

static void fill(const plan *p, matrix data[RANK_MAX][TENSOR_COUNT]) {
    for (uint32_t r = 0; r < p->rank_count; r++) {
        for (uint32_t t = 0; t < TENSOR_COUNT; t++) {
            for (uint32_t e = 0; e < ROWS * COLS; e++) {
                data[r][t][e / COLS][e % COLS] = initial(r, t, e / COLS, e % COLS);
            }
        }
    }
}

TEST(communicate__random_programs_do_what_a_plain_loop_does) {
    static matrix wanted[RANK_MAX][TENSOR_COUNT], found[RANK_MAX][TENSOR_COUNT];
    uint64_t seed = test_seed();
    uint32_t met = 0;
    for (int round = 0; TEST_ROUNDS(round, 500); round++) {
        const plan p = plan_random(&seed);
        for (uint32_t i = 0; i < p.step_count; i++) {
            met |= 1u << p.steps[i].kind;
        }
        fill(&p, wanted);
        fill(&p, found);
        refer(&p, wanted);
        ptowsp_context *context = test_context(NULL);
        ptowsp_hub *hub = test_hub(context, p.rank_count, 64u << below(&seed, 8));
        rank_job jobs[RANK_MAX] = {0};
        for (uint32_t r = 0; r < p.rank_count; r++) {
            jobs[r].p = &p;
            jobs[r].hub = hub;
            jobs[r].rank = r;
            jobs[r].lane_count = 1 + below(&seed, 3);
            jobs[r].data = found[r];
            jobs[r].is_started = below(&seed, 3) == 0;
            jobs[r].is_clocked = below(&seed, 3) == 0;
        }
        test_threads(rank_main, jobs, sizeof jobs[0], p.rank_count);
        for (uint32_t r = 0; r < p.rank_count; r++) {
            assert_string_equal(jobs[r].text, "");
            assert_ok(jobs[r].status);
            assert_int_equal(jobs[r].together, jobs[r].again);
        }
        if (memcmp(wanted, found, sizeof(matrix) * TENSOR_COUNT * p.rank_count) != 0) {
            for (uint32_t i = 0; i < p.step_count; i++) {
                const step *t = &p.steps[i];
                print_message("step %u: %s, %c[%u +%u], %c[%u +%u] cols %u +%u root %u target %u\n",
                              i, t->kind < MIX ? collectives[t->kind].name : "mix",
                              'a' + (int)t->tensors[0], t->row[0], t->rows[0],
                              'a' + (int)t->tensors[1], t->row[1], t->rows[1], t->col, t->cols,
                              t->root, t->target);
            }
            fail_msg("round %d, %u ranks in groups of %u, %u apart: other data", round,
                     p.rank_count, p.group, p.stride);
        }
        ptowsp_hub_destroy(hub);
        ptowsp_context_destroy(context);
    }
    assert_met(met == (1u << (COLLECTIVE_COUNT + 1)) - 1);
}

// -- time -----------------------------------------------------------------------------------------

#define TENSORS                                                                                    \
    "module m\ntensor a i64 [8, 12] global\ntensor b i64 [8, 12] global\n"                         \
    "tensor c i64 [8, 12] global\n"
#define SUM(options) "kernel sum(axes 0, inout data i64 ? x ?) link, all_reduce" options "\n"
#define SEND         "kernel send(axes 0, inout data i64 ? x ?, root i64, target i64) link, send\n"
#define MIX_OF(cycles)                                                                             \
    "kernel mix(axes 0, inout x i64 ? x ?) vector, " cycles " cycles, time only\n"

// 1 us and 1000 bytes each us; a cycle is a nanosecond.
static ptowsp_links links_on_paper(void) {
    ptowsp_links links = {.inside.latency_ps = 1000000, .inside.bytes_per_us = 1000};
    return links;
}

// Two ranks, of which the second is busy for 5000 cycles before it communicates.
typedef struct late_job {
    ptowsp_hub *hub;
    uint32_t rank;
    bool is_send, is_events;
    const char *slow;  // rank 1 begins so late
    ptowsp_status status;
    ptowsp_cycles end, alone;
    char text[256];
} late_job;

static void *late_main(void *user) {
    late_job *job = (late_job *)user;
    fixture f = {0};
    ptowsp_context_create(NULL, &f.context);
    ptowsp_ranks_desc desc = {.rank = job->rank,
                              .rank_count = 2,
                              .transport = ptowsp_hub_transport(job->hub, job->rank),
                              .links = links_on_paper()};
    ptowsp_run_ranks bound = {.cycles_per_us = 1000};
    ptowsp_ranks_create(f.context, &desc, &bound.ranks);
    char text[512];
    snprintf(text, sizeof text,
             TENSORS MIX_OF("%s") SUM(", by ring") SEND
             "symbol rank\nworkload steps\n  when rank == 1u\n    task mix() x = a\n  task %s\n",
             job->slow, job->is_send ? "send() data = a root = 0 target = 1" : "sum() data = a");
    ptowsp_schedule schedule = {.ready = job->is_events ? PTOWSP_READY_WORK_STEALING
                                                        : PTOWSP_READY_FIFO};
    const ptowsp_program_desc program_desc = {NULL, &schedule};
    program_make(&f, text, NULL, &program_desc);
    ptowsp_run_bind_symbol(f.run, "rank", job->rank);
    ptowsp_run_bind_ranks(f.run, &bound);
    job->status = PTOWSP_OK;
    job->end = time_of(f.run, &job->status);
    ptowsp_what_if what_if = {1, 50, 0, 0};  // does not wait for the other rank
    if (job->status == PTOWSP_OK && job->rank == 0) {
        job->status = ptowsp_run_what_if(f.run, NULL, &what_if);
        job->alone = what_if.makespan_cycles;
    }
    snprintf(job->text, sizeof job->text, "%s", ptowsp_context_error(f.context).text);
    fixture_clear(&f);
    ptowsp_ranks_destroy(bound.ranks);
    fixture_free(&f);
    return NULL;
}

static void late_run(const fixture *f, late_job jobs[2], bool is_send, bool is_events,
                     const char *slow) {
    ptowsp_hub *hub = test_hub(f->context, 2, 0);
    for (uint32_t i = 0; i < 2; i++) {
        jobs[i] = (late_job){
            .hub = hub, .rank = i, .is_send = is_send, .is_events = is_events, .slow = slow};
    }
    test_threads(late_main, jobs, sizeof jobs[0], 2);
    ptowsp_hub_destroy(hub);
}

TEST_F(communicate__ranks_find_the_time_of_all_of_them_together) {
    late_job jobs[2];
    for (int is_events = 0; is_events < 2; is_events++) {  // or where lanes choose among tasks
        // Halves of 384 bytes. Rank 0 sends at 0, rank 1 at 5000, which comes at 5000 + 384 + 1000; then
        // rank 0 sends its sum, which comes at 6384 + 1384. Rank 1 has sent its own at 5384.
        late_run(f, jobs, false, is_events, "5000");
        assert_ok(jobs[0].status);
        assert_int_equal(jobs[0].end, 6768);
        assert_int_equal(jobs[0].alone, 2768);
        assert_int_equal(jobs[1].end, 7768);
        // A message of 768 bytes waits for its receiver, and its sender for nobody.
        late_run(f, jobs, true, is_events, "5000");
        assert_int_equal(jobs[0].end, 768);
        assert_int_equal(jobs[1].end, 5000);
        // 2^50 cycles of 10^6 units each are no time of 64 bits.
        late_run(f, jobs, false, is_events, "1125899906842624");
        for (int i = 0; i < 2; i++) {
            assert_int_equal(jobs[i].status, PTOWSP_LIMIT_EXCEEDED);
            assert_string_equal(jobs[i].text, "ranks: all_reduce: its time does not fit 64 bits");
        }
    }
}

typedef struct changer {
    int64_t counts[1];
    ptowsp_ranks *closed;  // or the count becomes 100
} changer;

static ptowsp_cycles change(const ptowsp_task *task, void *user) {
    changer *c = (changer *)user;
    (void)task;
    if (c->closed) {
        pwsp_ranks_give_up(c->closed);
    } else {
        c->counts[0] = 100;
    }
    return 1;
}

#define EXCHANGE                                                                                   \
    "kernel exchange(axes 0, in in i64 ? x ?, out out i64 ? x ?) link, all_to_all, by ring, "      \
    "counts counts\n"

typedef struct changed_case {
    bool is_time_only, is_before, closes, is_on_lanes;
    ptowsp_status status;
    const char *text;
} changed_case;

static void changed_run(const changed_case *c) {
    fixture made = {0}, *f = &made;
    changer changes = {{ROWS}, NULL};
    static matrix data[2];
    f->context = test_lanes(2);
    ptowsp_hub *hub = test_hub(f->context, 1, 0);
    ptowsp_ranks_desc ranks_desc = {.rank_count = 1, .transport = ptowsp_hub_transport(hub, 0)};
    ptowsp_run_ranks bound = {0};
    assert_ok(ptowsp_ranks_create(f->context, &ranks_desc, &bound.ranks));
    char text[1024];
    snprintf(text, sizeof text,
             TENSORS MIX_OF("1000") EXCHANGE
             "kernel change(axes 0) vector, cycles by a cost function\n"
             "workload steps\n  task %s\n  task exchange() in = a out = b\n%s",
             c->is_before ? "change()" : "mix() x = a", c->is_before ? "" : "  task change()\n");
    const ptowsp_parse_kernel own = {
        .name = "change", .fn = change, .cost = change, .user = &changes};
    const ptowsp_parse_desc attached = {.kernels = &own, .kernel_count = 1};
    ptowsp_schedule schedule = {.ready = PTOWSP_READY_WORK_STEALING};
    const ptowsp_program_desc program_desc = {NULL, &schedule};
    program_make(f, text, &attached, &program_desc);
    assert_ok(ptowsp_run_bind_array(f->run, "counts", PTOWSP_I64, changes.counts, 1));
    for (int i = 0; i < 2; i++) {
        test_bind(f->run, i ? "b" : "a", data[i]);
    }
    assert_ok(ptowsp_run_bind_ranks(f->run, &bound));
    changes.closed = c->closes ? bound.ranks : NULL;
    ptowsp_run_options options = {.mode =
                                      c->is_time_only ? PTOWSP_RUN_TIME_ONLY : PTOWSP_RUN_EXECUTE,
                                  .lane_count = c->is_on_lanes ? 2 : 1};
    assert_int_equal(ptowsp_run_execute(f->run, &options), c->status);
    assert_string_equal(ptowsp_context_error(f->context).text, c->text);
    fixture_clear(f);
    ptowsp_ranks_destroy(bound.ranks);
    ptowsp_hub_destroy(hub);
    fixture_free(f);
}

// Counts are bound memory, which is checked before any task, and read again when the task begins: here a
// kernel or a cost function has changed them meanwhile, or the communicator has failed.
TEST(communicate__what_changes_until_a_task_begins_is_found) {
    static const changed_case cases[] = {
        {false, true, false, false, PTOWSP_UNSUPPORTED_SIZE,
         "steps/task exchange: task 1: all_to_all: in has 8 rows, and the collective takes 100"},
        {true, false, false, false, PTOWSP_UNSUPPORTED_SIZE,
         "all_to_all: in has 8 rows, and the collective takes 100"},
        {false, true, true, false, PTOWSP_RANK_FAILED,
         "steps/task exchange: task 1: ranks: this communicator has failed before"},
        {true, false, true, false, PTOWSP_RANK_FAILED,
         "run: task 1: ranks: this communicator has failed before"},
        {false, true, false, true, PTOWSP_UNSUPPORTED_SIZE,
         "steps/task exchange: task 1: all_to_all: in has 8 rows, and the collective takes 100"},
        {false, true, true, true, PTOWSP_RANK_FAILED,
         "steps/task exchange: task 1: ranks: this communicator has failed before"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        changed_run(&cases[i]);
    }
}

// -- what is refused ------------------------------------------------------------------------------

TEST_F(communicate__executing_takes_a_communicator_and_no_device) {
    program_make(f, TENSORS SUM("") "workload steps\n  task sum() data = a\n", NULL, NULL);
    assert_int_equal(ptowsp_program_lane_count(f->program), 1);  // without that of the links
    assert_ok(ptowsp_program_check(f->context, f->program, PTOWSP_TARGET_THREADS));
    fixture_refused(f, ptowsp_program_check(f->context, f->program, PTOWSP_TARGET_ASCEND_NPU),
                    PTOWSP_UNSUPPORTED,
                    "kernel sum: target ascend_npu does not do tasks of a collective");
    static matrix data;
    test_bind(f->run, "a", data);
    const ptowsp_run_options time_only = {.mode = PTOWSP_RUN_TIME_ONLY};
    const ptowsp_run_options *const options[] = {&time_only, NULL};
    ptowsp_run_ranks ranks = {.rank_count = 2};
    for (int i = 0; i < 4; i++) {  // before any are bound, and when they are not any more
        test_invalid(
            f->context, ptowsp_run_execute(f->run, options[i % 2]),
            "run: kernel sum communicates, and no ranks are bound (ptowsp_run_bind_ranks)");
        if (i == 1) {
            assert_ok(ptowsp_run_bind_ranks(f->run, &ranks));
            assert_ok(test_time(f->run));
            assert_ok(ptowsp_run_bind_ranks(f->run, NULL));
        }
    }
    ranks.rank_count = 0;
    fixture_refused(
        f, ptowsp_run_bind_ranks(f->run, &ranks), PTOWSP_INVALID_PARAMS,
        "run: rank 0 of 0, 1850 cycles each us: there are 1 to 16384 ranks, and at most "
        "10^6 cycles");
    ranks.rank_count = 2;
    assert_ok(ptowsp_run_bind_ranks(f->run, &ranks));
    fixture_refused(f, ptowsp_run_execute(f->run, NULL), PTOWSP_INVALID_PARAMS,
                    "run: kernel sum communicates, and no communicator is bound "
                    "(ptowsp_run_bind_ranks)");
    ptowsp_device_desc device_desc = {.vector_count = 1};
    ptowsp_device *device = NULL;
    assert_ok(ptowsp_device_open(f->context, &device_desc, &device));
    fixture_refused(f, ptowsp_device_run(device, f->run, NULL), PTOWSP_UNSUPPORTED,
                    "device: kernel sum communicates with other ranks, which cores do not");
    assert_ok(ptowsp_device_close(device));
}

// -- ranks that fail ------------------------------------------------------------------------------

typedef struct fail_job {
    ptowsp_hub *hub;
    uint32_t rank, lane_count;
    uint64_t limit_ns;
    test_memory memory;
    bool fails;                    // its kernel does
    bool is_late;                  // it never executes, and stays until the others have
    bool is_cut;                   // it is cancelled
    bool is_timed;                 // in time alone
    uint32_t *executed;            // atomic: those that have come back
    ptowsp_status status, second;  // once more after a failure
    char text[256];
} fail_job;

// Lanes that communicate may need memory while the calling thread does.
static void *locked_resize(void *user, void *ptr, size_t old_size, size_t new_size) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    void *moved = test_resize(user, ptr, old_size, new_size);
    pthread_mutex_unlock(&mutex);
    return moved;
}

static ptowsp_cycles failing(const ptowsp_task *task, void *user) {
    (void)task;
    const fail_job *job = (const fail_job *)user;
    return job->fails ? ptowsp_task_fail(PTOWSP_KERNEL_FAILED) : 1;
}

static void *fail_main(void *user) {
    fail_job *job = (fail_job *)user;
    ptowsp_context_desc context_desc = {.resize = locked_resize,
                                        .resize_user = &job->memory,
                                        .threads = PTOWSP_THREADS_OWN,
                                        .lane_count = job->lane_count};
    ptowsp_context *context = NULL;
    ptowsp_module *m = NULL;
    ptowsp_program *program = NULL;
    ptowsp_run *run = NULL;
    ptowsp_ranks_desc desc = {.rank = job->rank,
                              .rank_count = 3,
                              .transport = ptowsp_hub_transport(job->hub, job->rank),
                              .time_limit_ns = job->limit_ns};
    ptowsp_run_ranks bound = {0};
    static matrix data[3][2];
    job->status = ptowsp_context_create(&context_desc, &context);
    if (job->status != PTOWSP_OK) {
        desc.transport.close(desc.transport.user, true);
        return NULL;
    }
    job->status = ptowsp_ranks_create(context, &desc, &bound.ranks);
    const char text[] =
        TENSORS SUM("") "kernel failing(axes 0, inout x i64 ? x ?) vector, 1 cycles\n"
                        "workload steps\n  task sum() data = a\n"
                        "  task failing() x = a\n"
                        "  task sum() data = a of edge x 5\n"  // strided, so packed
                        "  task sum() data = b\n";
    const ptowsp_parse_kernel own = {.name = "failing", .fn = failing, .user = job};
    const ptowsp_parse_desc attached = {.kernels = &own, .kernel_count = 1};
    if (job->status == PTOWSP_OK) {
        job->status = ptowsp_module_parse(context, text, strlen(text), &attached, &m, NULL);
    }
    if (job->status == PTOWSP_OK) {
        job->status = ptowsp_program_create(context, m, NULL, &program);
    }
    if (job->status == PTOWSP_OK) {
        job->status = ptowsp_run_create(context, program, &run);
    }
    for (int i = 0; job->status == PTOWSP_OK && i < 2; i++) {
        ptowsp_buffer buffer = {.data = data[job->rank][i]};
        job->status = ptowsp_run_bind_tensor(run, i ? "b" : "a", &buffer);
    }
    if (job->status == PTOWSP_OK && !job->is_late) {
        ptowsp_run_bind_ranks(run, &bound);
        ptowsp_run_options options = {.lane_count = job->lane_count,
                                      .mode =
                                          job->is_timed ? PTOWSP_RUN_TIME_ONLY : PTOWSP_RUN_EXECUTE,
                                      .time_limit_ns = job->is_cut ? UINT64_C(20000000) : 0};
        job->status = ptowsp_run_execute(run, &options);
        if (job->status != PTOWSP_OK) {
            snprintf(job->text, sizeof job->text, "%s", ptowsp_context_error(context).text);
            options.time_limit_ns = 0;  // a rank's failure is found, however late
            job->second = ptowsp_run_execute(run, &options);
        }
    }
    if (!job->is_late) {
        __atomic_fetch_add(job->executed, 1u, __ATOMIC_RELEASE);
    }
    while (job->is_late && __atomic_load_n(job->executed, __ATOMIC_ACQUIRE) < 2) {
        sched_yield();
    }
    test_destroy(run, program, m, NULL);
    ptowsp_ranks_destroy(bound.ranks);
    ptowsp_context_destroy(context);
    return NULL;
}

static void fail_run(fail_job jobs[3], uint64_t limit_ms) {
    ptowsp_context *context = test_context(NULL);
    ptowsp_hub *hub = test_hub(context, 3, 64);
    uint32_t executed = 0;
    for (uint32_t i = 0; i < 3; i++) {
        jobs[i].hub = hub;
        jobs[i].rank = i;
        jobs[i].limit_ns = limit_ms * 1000000;
        jobs[i].executed = &executed;
    }
    test_threads(fail_main, jobs, sizeof jobs[0], 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(jobs[i].memory.live_bytes, 0);
        assert_true(jobs[i].second == PTOWSP_OK || jobs[i].second == PTOWSP_RANK_FAILED);
    }
    ptowsp_hub_destroy(hub);
    ptowsp_context_destroy(context);
}

TEST(communicate__a_rank_that_fails_ends_the_runs_of_all) {
    for (uint32_t lanes = 1; lanes <= 3; lanes++) {
        const fail_job good = {.lane_count = lanes};
        fail_job jobs[3] = {good, good, good};
        jobs[1].fails = true;
        const uint64_t begin = ptowsp_clock_ns();
        fail_run(jobs, 20000);
        assert_true(ptowsp_clock_ns() - begin < UINT64_C(19000000000));  // not by the time limit
        assert_int_equal(jobs[1].status, PTOWSP_KERNEL_FAILED);
        assert_int_equal(jobs[0].status, PTOWSP_RANK_FAILED);
        assert_int_equal(jobs[2].status, PTOWSP_RANK_FAILED);
        // In the first collective, if rank 1 has failed before all of its messages were read.
        assert_non_null(strstr(jobs[0].text, "steps/task sum: task "));
        assert_non_null(strstr(jobs[0].text, ": ranks: all_reduce: "));
        assert_non_null(strstr(jobs[0].text, ", a rank failed or has ended"));
    }
}

// Rank 2 never comes, whom the others wait for until their limit, or until rank 0 is cut short; also where
// they ask for time alone.
TEST(communicate__a_rank_that_does_not_come_is_waited_for_until_a_limit) {
    for (uint32_t lanes = 1; lanes <= 3; lanes++) {
        const fail_job good = {.lane_count = lanes}, late = {.lane_count = lanes, .is_late = true};
        fail_job jobs[3] = {good, good, late};
        fail_run(jobs, 200);
        for (int i = 0; i < 2; i++) {
            assert_true(jobs[i].status == PTOWSP_TIMED_OUT || jobs[i].status == PTOWSP_RANK_FAILED);
        }
        for (int is_timed = 0; is_timed < 2; is_timed++) {
            fail_job cut[3] = {good, good, late};
            cut[0].is_cut = true;
            cut[0].is_timed = cut[1].is_timed = is_timed;
            fail_run(cut, 20000);
            assert_int_equal(cut[0].status, PTOWSP_TIMED_OUT);
            assert_string_equal(cut[0].text, "run: its time limit is over; 0 tasks accounted for");
            assert_true(cut[1].status == PTOWSP_TIMED_OUT || cut[1].status == PTOWSP_RANK_FAILED);
        }
    }
}

TEST(communicate__every_allocation_may_be_refused) {
    for (uint32_t lanes = 1; lanes <= 2; lanes++) {
        bool is_done = false;
        for (uint64_t n = 0; !is_done; n++) {
            fail_job jobs[3] = {0};
            jobs[0].lane_count = jobs[2].lane_count = 1;
            jobs[1].lane_count = lanes;
            jobs[1].memory.refuse_at = n + 1;
            fail_run(jobs, 20000);
            is_done = jobs[1].status == PTOWSP_OK;
            for (int i = 0; i < 3; i++) {
                // Others end with an error, or had all that they needed of it.
                assert_true(jobs[i].status == PTOWSP_OK ||
                            (!is_done && jobs[i].status ==
                                             (i == 1 ? PTOWSP_OUT_OF_MEMORY : PTOWSP_RANK_FAILED)));
            }
        }
    }
}

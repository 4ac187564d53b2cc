// Worker i of n: contexts whose lanes are threads of an engine, each inside an operator already. The
// engine of this test has threads of its own and a barrier between operators. Results are those of the
// same work on one lane; who comes twice, too early or with other numbers is refused.

#define _GNU_SOURCE  // usleep, barriers

#include "fork.h"
#include "lane_program.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#if !defined(PTOWSP_NO_THREADS)

enum { WORKERS = 4, ITEMS = 1000 };

static ptowsp_context *context_make(uint32_t lane_count) {
    ptowsp_context_desc desc = {.threads = PTOWSP_THREADS_WORKERS, .lane_count = lane_count};
    return test_context(&desc);
}

// -- an engine ------------------------------------------------------------------------------------

// Calls op on threads 0 to count - 1 at once, so many times, with a barrier after each.
typedef struct engine {
    uint32_t rounds;
    void (*op)(void *user, uint32_t worker, uint32_t round);
    void *user;
    pthread_barrier_t barrier;
} engine;

static void engine_main(void *job, uint32_t worker) {
    engine *e = (engine *)job;
    for (uint32_t round = 0; round < e->rounds; round++) {
        e->op(e->user, worker, round);
        pthread_barrier_wait(&e->barrier);
    }
}

static void engine_run(uint32_t count, uint32_t rounds, void (*op)(void *, uint32_t, uint32_t),
                       void *user) {
    engine e = {.rounds = rounds, .op = op, .user = user};
    assert_int_equal(pthread_barrier_init(&e.barrier, NULL, count), 0);
    test_run_lanes_on_threads(NULL, count, engine_main, &e);
    pthread_barrier_destroy(&e.barrier);
}

// -- sessions -------------------------------------------------------------------------------------

typedef struct session {
    ptowsp_context *context;
    uint32_t worker_count;
    uint32_t marks[ITEMS];     // by plain writes: a range given twice is a race, and a wrong count
    pthread_t lanes[WORKERS];  // that ran a lane
    bool was_lane[WORKERS];
    uint32_t late;  // the worker that comes late, or WORKERS
    ptowsp_status status;
    ptowsp_graph *graph;
    ptowsp_work work[ITEMS];
    atomic_uint calls;
} session;

static void mark(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    session *s = (session *)user;
    if (lane >= s->worker_count || (s->was_lane[lane] && s->lanes[lane] != pthread_self())) {
        abort();
    }
    s->was_lane[lane] = true;
    s->lanes[lane] = pthread_self();
    for (uint64_t i = begin; i < end; i++) {
        s->marks[i]++;
    }
}

static void mark_work(const ptowsp_work *work, uint32_t lane, void *user) {
    mark(user, work->params[0], work->params[0] + 1u, lane);
}

// Everything that a context runs, one after another.
static ptowsp_status lead(void *user) {
    session *s = (session *)user;
    const ptowsp_work_fn table[1] = {mark_work};
    atomic_fetch_add(&s->calls, 1);
    ptowsp_status status = ptowsp_parallel_for(s->context, ITEMS, 3, mark, s);
    if (status == PTOWSP_OK) {
        status = ptowsp_dispatch_spmd(s->context, s->work, ITEMS, table, 1, s);
    }
    return status == PTOWSP_OK ? s->status : status;
}

static void op_session(void *user, uint32_t worker, uint32_t round) {
    session *s = (session *)user;
    if (worker == s->late) {
        usleep(round % 4 == 0 ? 300 : 0);
    }
    if (worker < s->worker_count &&
        ptowsp_context_run_worker(s->context, worker, s->worker_count, lead, s) != s->status) {
        abort();
    }
}

static void session_make(session *s, uint32_t lanes, uint32_t workers) {
    memset(s, 0, sizeof *s);
    s->context = context_make(lanes);
    s->worker_count = workers, s->late = WORKERS;
    for (uint32_t i = 0; i < ITEMS; i++) {
        s->work[i] = ptowsp_work_of(i, 0, 0, i, 0, 0, 0);
    }
}

TEST(worker__runs_everything_of_a_session_once) {
    for (uint32_t workers = 1; workers <= WORKERS; workers++) {
        for (uint32_t late = 0; late <= WORKERS; late++) {
            static session s;
            const uint32_t rounds = 20;
            session_make(&s, WORKERS, workers);
            s.late = late;
            s.status = late % 2 ? (ptowsp_status)7 : PTOWSP_OK;  // all get what lead returns
            engine_run(workers, rounds, op_session, &s);
            for (uint32_t i = 0; i < ITEMS; i++) {
                assert_int_equal(s.marks[i], 2 * rounds);
            }
            assert_int_equal(atomic_load(&s.calls), rounds);
            // Without workers the calling thread is lane 0.
            memset(s.was_lane, 0, sizeof s.was_lane);
            assert_int_equal(lead(&s), s.status);
            assert_false(s.was_lane[1]);
            ptowsp_context_destroy(s.context);
        }
    }
}

// Workers that are awake get a share: those of a long job all come.
static void long_item(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    atomic_uint *lanes = (atomic_uint *)user;
    (void)begin, (void)end;
    atomic_fetch_or(lanes, 1u << lane);
    for (int i = 0; i < 2000 && atomic_load(lanes) != 15; i++) {
        usleep(1000);  // all four items are under way at once, or some worker never comes
    }
}

typedef struct long_job {
    ptowsp_context *context;
    atomic_uint lanes;
} long_job;

static ptowsp_status lead_long(void *user) {
    long_job *job = (long_job *)user;
    return ptowsp_parallel_for(job->context, WORKERS, 1, long_item, &job->lanes);
}

static void op_long(void *user, uint32_t worker, uint32_t round) {
    long_job *job = (long_job *)user;
    (void)round;
    (void)ptowsp_context_run_worker(job->context, worker, WORKERS, lead_long, job);
}

TEST(worker__all_of_them_work) {
    long_job job = {context_make(WORKERS), 0};
    engine_run(WORKERS, 1, op_long, &job);
    assert_int_equal(atomic_load(&job.lanes), 15);
    ptowsp_context_destroy(job.context);
}

// Worker 0 runs jobs alone right after its call, while worker 1 still leaves the session: the next one
// does not end before lead has returned.
enum { SHORT_SESSIONS = 2000, SHORT_JOBS = 50 };

typedef struct short_sessions {
    ptowsp_context *context;
    uint32_t led_count;
    atomic_uint came_count, left_count;  // calls of worker 1
    atomic_uint wrong_count;             // that did not return what lead of the session returned
} short_sessions;

static void do_nothing(void *user, uint64_t begin, uint64_t end, uint32_t lane) {
    (void)user, (void)begin, (void)end, (void)lane;
}

static void run_jobs(const short_sessions *s, int count) {
    for (int i = 0; i < count; i++) {
        if (ptowsp_parallel_for(s->context, 1, 1, do_nothing, NULL) != PTOWSP_OK) {
            abort();
        }
    }
}

static ptowsp_status lead_short(void *user) {
    short_sessions *s = (short_sessions *)user;
    s->led_count++;
    while (atomic_load(&s->came_count) < s->led_count) {
        sched_yield();
    }
    run_jobs(s, SHORT_JOBS);
    return (ptowsp_status)s->led_count;
}

static void op_short(void *user, uint32_t worker, uint32_t round) {
    short_sessions *s = (short_sessions *)user;
    atomic_fetch_add(&s->came_count, worker);
    const ptowsp_status status = ptowsp_context_run_worker(s->context, worker, 2, lead_short, s);
    atomic_fetch_add(&s->left_count, worker);
    if (status != (ptowsp_status)(round + 1)) {
        atomic_fetch_add(&s->wrong_count, 1);
    }
    while (worker == 0 && atomic_load(&s->left_count) <= round) {
        run_jobs(s, 1);
    }
}

TEST(worker__0_runs_jobs_while_others_leave) {
    short_sessions s = {.context = context_make(2)};
    engine_run(2, SHORT_SESSIONS, op_short, &s);
    assert_int_equal(atomic_load(&s.wrong_count), 0);
    ptowsp_context_destroy(s.context);
}

// A child of fork() lends threads of its own. Those sleep when worker 0 comes late, and are woken.
static void session_in_child(void *user) {
    session *s = (session *)user;
    const uint32_t rounds = 20;
    memset(s->marks, 0, sizeof s->marks);
    memset(s->was_lane, 0, sizeof s->was_lane);
    engine_run(WORKERS, rounds, op_session, s);
    for (uint32_t i = 0; i < ITEMS; i++) {
        CHILD_CHECK(s->marks[i] == 2 * rounds);
    }
    ptowsp_context_destroy(s->context);
}

TEST(worker__of_a_child_of_fork_is_a_thread_of_the_child) {
    for (uint32_t sessions = 0; sessions < 2; sessions++) {  // before the fork
        static session s;
        session_make(&s, WORKERS, WORKERS);
        s.late = 0;
        engine_run(WORKERS, sessions, op_session, &s);
        test_in_child(session_in_child, &s, 0);
        ptowsp_context_destroy(s.context);
    }
}

// -- graphs ---------------------------------------------------------------------------------------

enum { TASKS = 400 };

typedef struct sums {
    ptowsp_graph *graph;
    uint64_t values[TASKS];
    uint32_t worker_count;
    uint32_t fails;  // the task that fails, or TASKS
} sums;

// value = 1 + the values of the two tasks before: wrong if an edge is not kept.
static ptowsp_status sum_task(void *user, uint64_t task, uint32_t lane) {
    sums *s = (sums *)user;
    if (lane >= s->worker_count) {
        abort();
    }
    if (task == s->fails) {
        return PTOWSP_UNSUPPORTED;
    }
    s->values[task] =
        1 + (task >= 3 ? s->values[task - 3] : 0) + (task >= 7 ? s->values[task / 2] : 0);
    s->values[task] %= 1000003;
    return PTOWSP_OK;
}

static void op_graph(void *user, uint32_t worker, uint32_t round) {
    sums *s = (sums *)user;
    (void)round;
    const ptowsp_status status = ptowsp_graph_run_worker(s->graph, worker, s->worker_count);
    if (status != (s->fails < TASKS ? PTOWSP_UNSUPPORTED : PTOWSP_OK)) {
        abort();
    }
}

TEST(worker__graphs_keep_their_edges) {
    for (uint32_t workers = 1; workers <= WORKERS; workers++) {
        static sums s;
        memset(&s, 0, sizeof s);
        ptowsp_context *context = context_make(WORKERS);
        s.worker_count = workers, s.fails = TASKS;
        assert_ok(ptowsp_graph_create(context, NULL, &s.graph));
        for (uint32_t i = 0; i < TASKS; i++) {
            const ptowsp_graph_task_desc desc = {.fn = sum_task, .user = &s};
            assert_ok(ptowsp_graph_task_make(s.graph, &desc, NULL));
        }
        for (uint32_t i = 0; i < TASKS; i++) {
            if (i >= 3) {
                ptowsp_graph_edge_make(s.graph, i - 3, i);
            }
            if (i >= 7) {
                ptowsp_graph_edge_make(s.graph, i / 2, i);
            }
        }
        engine_run(workers, 70, op_graph, &s);  // of 64 runs one calls all lanes in any case
        uint64_t expected[TASKS];
        for (uint32_t i = 0; i < TASKS; i++) {
            expected[i] =
                (1 + (i >= 3 ? expected[i - 3] : 0) + (i >= 7 ? expected[i / 2] : 0)) % 1000003;
            assert_int_equal(s.values[i], expected[i]);
        }
        s.fails = 100;
        engine_run(workers, 3, op_graph, &s);
        assert_int_equal(ptowsp_context_error(context).index, 100);
        ptowsp_graph_destroy(s.graph);
        ptowsp_context_destroy(context);
    }
}

// -- programs -------------------------------------------------------------------------------------

static void op_program(void *user, uint32_t worker, uint32_t round) {
    lp *p = (lp *)user;
    (void)round;
    ptowsp_run_options options = {.lane_count = p->lane_count};
    if (ptowsp_run_execute_worker(p->run, worker == 0 ? &options : NULL, worker, p->lane_count) !=
        PTOWSP_OK) {
        abort();
    }
}

// Task i adds 1 to 4 elements of the rows i % 5 and i % 5 + 1: 60 tasks make 12 24 24 24 24 12.
TEST(worker__programs_keep_the_order_of_data) {
    for (uint32_t workers = 1; workers <= WORKERS; workers++) {
        static lp p;
        const uint32_t rounds = 10;
        const ptowsp_schedule schedule = lp_schedule(PTOWSP_DEPENDENCIES_EXPLICIT);
        lp_begin(&p, LANE_WORKERS, workers);
        lp_parse(&p, "axis tasks 60\nworkload main\n  combine\n    parallel i in tasks\n"
                     "      task touch(1) tile = x at (i % 5, 0) of 2 x 4\n");
        lp_compile(&p, &schedule);
        for (uint32_t round = 0; round < rounds; round++) {
            lane_watch_restart(&p.watch, workers, round);
            engine_run(workers, 1, op_program, &p);
            assert_int_equal(p.watch.wrong_count, 0);
        }
        const int32_t paper[6] = {12, 24, 24, 24, 24, 12};
        for (uint32_t row = 0; row < 6; row++) {
            for (uint32_t col = 0; col < 5; col++) {
                assert_int_equal(p.data[row * LP_SIDE + col],
                                 col < 4 ? paper[row] * (int32_t)rounds : 0);
            }
        }
        lp_end(&p);
    }
}

// -- MoE plans ------------------------------------------------------------------------------------

// A MoE plan runs as a job without merges, on workers without a context.
typedef struct moe_job {
    ptowsp_attention_job job;
    uint32_t counts[3][8];  // [expert][token]: written by the unit that has it
} moe_job;

static void moe_kernel(const ptowsp_work *work, uint32_t lane, void *user) {
    moe_job *m = (moe_job *)user;
    (void)lane;
    for (uint32_t t = ptowsp_work_token_start(work); t < ptowsp_work_token_end(work); t++) {
        m->counts[ptowsp_work_expert(work)][t] += 1;
    }
}

static void op_moe(void *user, uint32_t worker, uint32_t round) {
    (void)round;
    ptowsp_attention_run_worker(&((moe_job *)user)->job, worker, WORKERS);
}

TEST(worker__moe_plans_run_as_jobs) {
    static moe_job m;
    const uint32_t counts[3] = {5, 0, 8};
    const ptowsp_moe_config config = {.expert_count = 3, .lane_count = 7, .cost = {.per_token = 1}};
    ptowsp_work units[16];
    uint32_t begin[8], progress[512] = {0};
    ptowsp_moe_plan plan = {.units = units, .unit_begin = begin, .unit_capacity = 16};
    assert_ok(ptowsp_moe_generate(&(ptowsp_moe_batch){.counts = counts}, &config, &plan, NULL));
    const ptowsp_attention_plan as_units = ptowsp_moe_plan_units(&plan);
    const ptowsp_work_fn table[1] = {moe_kernel};
    assert_true(ptowsp_attention_progress_size(&as_units) <= 512);
    for (int stealing = 0; stealing < 2; stealing++) {
        memset(&m, 0, sizeof m);
        m.job = (ptowsp_attention_job){.plan = &as_units,
                                       .table = table,
                                       .table_count = 1,
                                       .user = &m,
                                       .progress = progress,
                                       .is_stealing = stealing};
        assert_ok(ptowsp_attention_job_check(&m.job, NULL));
        engine_run(WORKERS, 5, op_moe, &m);
        for (uint32_t e = 0; e < 3; e++) {
            for (uint32_t t = 0; t < 8; t++) {
                assert_int_equal(m.counts[e][t], t < counts[e] ? 5 : 0);
            }
        }
    }
}

// -- misuse ---------------------------------------------------------------------------------------

typedef struct misuse {
    ptowsp_context *context;
    atomic_uint gate;
} misuse;

// Calls of worker 0 and of others, while worker 0 leads a session of two.
static ptowsp_status lead_misuse(void *user) {
    misuse *m = (misuse *)user;
    if (ptowsp_context_run_worker(m->context, 0, 2, lead_misuse, m) != PTOWSP_BUSY ||
        ptowsp_context_run_worker(m->context, 0, 3, lead_misuse, m) != PTOWSP_BUSY ||
        ptowsp_context_run_worker(m->context, 2, 3, lead_misuse, m) != PTOWSP_BUSY) {
        abort();
    }
    return PTOWSP_OK;
}

static void *second_main(void *arg) {
    misuse *m = (misuse *)arg;
    if (ptowsp_context_run_worker(m->context, 1, 2, lead_misuse, m) != PTOWSP_OK) {
        abort();
    }
    return NULL;
}

static ptowsp_status lead_nothing(void *user) {
    (void)user;
    return PTOWSP_OK;
}

#define WRONG(worker, worker_count, lead, text)                                                    \
    test_refused(m.context, ptowsp_context_run_worker(m.context, worker, worker_count, lead, &m),  \
                 invalid, PTOWSP_NO_INDEX, "workers: " text)

TEST(worker__that_is_wrong_is_refused) {
    misuse m = {context_make(3), 0};
    const ptowsp_status invalid = PTOWSP_INVALID_PARAMS;
    for (int round = 0; round < 3; round++) {  // a new one begins when all have returned
        pthread_t second;
        assert_ok(ptowsp_context_run_worker(m.context, 0, 1, lead_nothing, &m));
        assert_int_equal(pthread_create(&second, NULL, second_main, &m), 0);
        ptowsp_status status;
        do {  // worker 1 of 2 has begun the session, or comes to it
            status = ptowsp_context_run_worker(m.context, 0, 2, lead_misuse, &m);
        } while (status == PTOWSP_BUSY);
        assert_ok(status);
        pthread_join(second, NULL);
    }
    WRONG(0, 0, lead_nothing, "worker_count 0 is not in 1 to 3, the context's lanes");
    assert_int_equal(ptowsp_context_run_worker(m.context, 0, 4, lead_nothing, &m), invalid);
    WRONG(2, 2, lead_nothing, "worker 2 is not below worker_count 2");
    WRONG(0, 1, NULL, "lead is NULL");
    ptowsp_context_destroy(m.context);
    assert_ok(ptowsp_context_create(NULL, &m.context));
    assert_ok(ptowsp_context_run_worker(m.context, 0, 1, lead_nothing, &m));
    WRONG(0, 2, lead_nothing, "the context's threads are not PTOWSP_THREADS_WORKERS");
    ptowsp_context_destroy(m.context);
    ptowsp_context_desc desc = {.threads = PTOWSP_THREADS_WORKERS};
    assert_int_equal(ptowsp_context_create(&desc, &m.context), invalid);
}

// Calls with a bad worker, between lead's jobs and beside them: these run, and the text stays.
enum { STRANGE_CALLS = 2000 };

typedef struct strange {
    ptowsp_context *context;
    uint32_t refused_count, failed_jobs;
    atomic_bool is_over;
} strange;

static void *stranger_main(void *arg) {
    strange *s = (strange *)arg;
    for (int i = 0; i < STRANGE_CALLS; i++) {
        s->refused_count +=
            ptowsp_context_run_worker(s->context, 2, 2, lead_nothing, s) == PTOWSP_INVALID_PARAMS;
    }
    atomic_store(&s->is_over, true);
    return NULL;
}

static ptowsp_status lead_beside_stranger(void *user) {
    strange *s = (strange *)user;
    pthread_t stranger;
    if (ptowsp_context_run_worker(s->context, 2, 2, lead_nothing, s) != PTOWSP_INVALID_PARAMS ||
        pthread_create(&stranger, NULL, stranger_main, s) != 0) {
        abort();
    }
    do {
        s->failed_jobs += ptowsp_parallel_for(s->context, 1, 1, do_nothing, NULL) != PTOWSP_OK;
    } while (!atomic_load(&s->is_over));
    pthread_join(stranger, NULL);
    return PTOWSP_OK;
}

TEST(worker__that_is_refused_does_not_disturb_a_session) {
    strange s = {.context = context_make(2)};
    assert_invalid(ptowsp_context_run_worker(s.context, 0, 1, NULL, &s));
    assert_ok(ptowsp_context_run_worker(s.context, 0, 1, lead_beside_stranger, &s));
    assert_int_equal(s.refused_count, STRANGE_CALLS);
    assert_int_equal(s.failed_jobs, 0);
    test_error_is(s.context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "workers: lead is NULL");
    ptowsp_context_destroy(s.context);
}

#endif

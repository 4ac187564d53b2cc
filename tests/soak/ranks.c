// Soak cases of communicators: random collectives between ranks that are threads or processes, of which
// one runs out of memory, leaves in the middle, or is killed.
//
// Without a fault all results are right. With one, each other rank has right results for a while, and
// then the failed rank's end as its status: nobody waits for ever, and nobody gets wrong bits.

#define _GNU_SOURCE  // kill

#include "soak.h"

#include "collective_reference.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

enum { CALL_MAX = 12, RIGHT = 0, ENDED = 1, WRONG = 2 };

typedef struct ranks_case {
    uint32_t count, call_count;
    uint64_t seed;  // of the collectives, the same on all ranks
    soak_fault fault;
    uint32_t victim;
    uint32_t call;  // of the victim, in which it leaves
    uint64_t time_limit_ns;
} ranks_case;

typedef struct rank_thread {
    const ranks_case *c;
    ptowsp_transport transport;
    uint32_t rank;
    int result;
    ptowsp_status status;
    bool is_leaking;
} rank_thread;

static ptowsp_collective any_collective(const ranks_case *c, uint64_t *random) {
    static const ptowsp_dtype types[] = {PTOWSP_F32,  PTOWSP_F16, PTOWSP_I32, PTOWSP_F64,
                                         PTOWSP_BF16, PTOWSP_I8,  PTOWSP_U32, PTOWSP_U64};
    ptowsp_collective made = {.kind = collective_kinds[test_random(random) % 6]};
    do {
        made.algorithm = (ptowsp_algorithm)test_random_in(random, PTOWSP_ALGORITHM_DIRECT,
                                                          PTOWSP_ALGORITHM_RING);
    } while (!collective_has(made.kind, made.algorithm));
    if (made.algorithm == PTOWSP_ALGORITHM_HIERARCHICAL) {
        do {
            made.node_size = test_random_u32(random, 1, c->count);
        } while (c->count % made.node_size != 0);
    }
    made.members = c->count;
    made.count = test_random(random) % COUNT_MAX;
    made.dtype = types[test_random(random) % 8];
    made.reduction = (ptowsp_reduction)test_random_in(random, 0, 2);
    made.root = (uint32_t)(test_random(random) % c->count);
    made.target = (uint32_t)(test_random(random) % c->count);
    return made;
}

// A rank's life. RIGHT: all calls gave what is due. ENDED: one had a status, and all after it as well.
static int rank_run(const ranks_case *c, ptowsp_context *context, ptowsp_transport transport,
                    uint32_t rank, ptowsp_status *out_status) {
    uint64_t random = c->seed;
    ptowsp_ranks *ranks = NULL;
    ptowsp_ranks_desc desc = {.rank = rank,
                              .rank_count = c->count,
                              .transport = transport,
                              .fingerprint = c->seed,
                              .time_limit_ns = c->time_limit_ns};
    int result = RIGHT;
    *out_status = ptowsp_ranks_create(context, &desc, &ranks);
    for (uint32_t i = 0; i < c->call_count && *out_status == PTOWSP_OK; i++) {
        const ptowsp_collective collective = any_collective(c, &random);
        const bool is_polled = test_random(&random) % 2;
        bool is_right = false;
        if (c->fault == SOAK_BY_cancel && rank == c->victim && i == c->call) {
            ptowsp_ranks_destroy(ranks);
            return ENDED;
        }
        *out_status = collective_run(ranks, &collective, is_polled, &is_right);
        if (*out_status == PTOWSP_OK && !is_right) {
            result = WRONG;
        }
    }
    if (*out_status != PTOWSP_OK) {
        // It has a text, and the communicator is closed for good.
        const char *text = ptowsp_context_error(context).text;
        ptowsp_collective again = {.members = c->count, .dtype = PTOWSP_F32};
        const bool is_closed =
            !ranks || ptowsp_ranks_run(ranks, &again, NULL, NULL) == PTOWSP_RANK_FAILED;
        result = result == WRONG || text[0] == '\0' || !is_closed ? WRONG : ENDED;
    }
    ptowsp_ranks_destroy(ranks);
    return result;
}

// -- threads --------------------------------------------------------------------------------------

static void *rank_main(void *user) {
    rank_thread *r = (rank_thread *)user;
    const ranks_case *c = r->c;
    uint64_t random = c->seed + r->rank;
    ptowsp_context *context = NULL;
    soak_memory memory = {0};
    ptowsp_context_desc desc = {.resize = soak_resize, .resize_user = &memory};
    r->result = WRONG;
    if (ptowsp_context_create(&desc, &context) != PTOWSP_OK) {
        return NULL;
    }
    if (c->fault == SOAK_BY_memory && r->rank == c->victim) {
        soak_refuse_memory(&memory, &random, 24);
    }
    r->result = rank_run(c, context, r->transport, r->rank, &r->status);
    soak_allow_memory(&memory);
    ptowsp_context_destroy(context);
    r->is_leaking = memory.live_blocks != 0;
    return NULL;
}

// Of a rank that is not the victim: none but these ends it.
static bool is_of_others(ptowsp_status status) {
    return status == PTOWSP_RANK_FAILED || status == PTOWSP_TIMED_OUT;
}

static void run_threads(const ranks_case *c, ptowsp_hub *hub) {
    pthread_t threads[P_MAX];
    bool has_ended = false;
    rank_thread ranks[P_MAX] = {0};
    for (uint32_t i = 0; i < c->count; i++) {
        ranks[i].c = c;
        ranks[i].rank = i;
        ranks[i].transport = ptowsp_hub_transport(hub, i);
        assert_int_equal(pthread_create(&threads[i], NULL, rank_main, &ranks[i]), 0);
    }
    for (uint32_t i = 0; i < c->count; i++) {
        pthread_join(threads[i], NULL);
    }
    for (uint32_t i = 0; i < c->count; i++) {
        const bool is_victim = c->fault != SOAK_BY_none && i == c->victim;
        assert_false(ranks[i].is_leaking);
        assert_int_not_equal(ranks[i].result, WRONG);
        has_ended = has_ended || ranks[i].result == ENDED;
        if (ranks[i].result == ENDED && !is_victim) {
            assert_true(is_of_others(ranks[i].status));
        } else if (ranks[i].status != PTOWSP_OK) {
            assert_true(c->fault == SOAK_BY_memory && ranks[i].status == PTOWSP_OUT_OF_MEMORY);
        }
    }
    assert_true(!has_ended || c->fault != SOAK_BY_none);
    assert_true(!has_ended || ranks[c->victim].result == ENDED);
    soak_count(c->fault, has_ended);
}

// -- processes ------------------------------------------------------------------------------------

static int child_main(const ranks_case *c, ptowsp_hub *hub, uint32_t rank) {
    ptowsp_context *context = NULL;
    ptowsp_status status = ptowsp_context_create(NULL, &context);
    if (status != PTOWSP_OK) {
        return WRONG;
    }
    const int result = rank_run(c, context, ptowsp_hub_transport(hub, rank), rank, &status);
    ptowsp_context_destroy(context);
    return result == ENDED && rank != c->victim && !is_of_others(status) ? WRONG : result;
}

static void run_processes(const ranks_case *c, ptowsp_hub *hub, uint64_t *random) {
    pid_t children[P_MAX];
    bool has_ended = false;
    fflush(NULL);
    for (uint32_t i = 0; i < c->count; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            test_exit(child_main(c, hub, i));
        }
    }
    if (c->fault == SOAK_BY_death) {
        for (uint64_t turns = test_random(random) % 2000; turns > 0; turns--) {
            sched_yield();
        }
        kill(children[c->victim], SIGKILL);
    }
    for (uint32_t i = 0; i < c->count; i++) {
        int code = -1;
        assert_int_equal(waitpid(children[i], &code, 0), children[i]);
        const bool is_killed = WIFSIGNALED(code) && WTERMSIG(code) == SIGKILL &&
                               c->fault == SOAK_BY_death && i == c->victim;
        const int result = WIFEXITED(code) ? WEXITSTATUS(code) : WRONG;
        assert_true(is_killed || result == RIGHT || (result == ENDED && c->fault != SOAK_BY_none));
        has_ended = has_ended || is_killed || result == ENDED;
    }
    soak_count(c->fault, has_ended);
}

void soak_run_ranks(uint64_t seed) {
    uint64_t random = seed;
    soak_memory memory;
    ptowsp_hub *hub = NULL;
    static const soak_fault of_threads[] = {SOAK_BY_none, SOAK_BY_memory, SOAK_BY_cancel};
    static const soak_fault of_processes[] = {SOAK_BY_none, SOAK_BY_death, SOAK_BY_cancel};
    ranks_case c = {.count = test_random_u32(&random, 1, P_MAX)};
    c.call_count = test_random_u32(&random, 1, CALL_MAX);
    c.seed = test_random(&random);
    c.victim = (uint32_t)(test_random(&random) % c.count);
    c.call = (uint32_t)(test_random(&random) % c.call_count);
    const bool is_shared = test_random(&random) % 4 == 0;
    c.fault = (is_shared ? of_processes : of_threads)[test_random(&random) % 3];
    // A process that is killed before it says who it is is found by this time alone.
    c.time_limit_ns = c.fault == SOAK_BY_death ? UINT64_C(5000000000) : 0;
    ptowsp_context *context = soak_context(&memory, 1, &random);
    const ptowsp_hub_desc desc = {c.count, UINT32_C(64) << test_random(&random) % 7, is_shared};
    assert_ok(ptowsp_hub_create(context, &desc, &hub));
    if (is_shared) {
        run_processes(&c, hub, &random);
    } else {
        run_threads(&c, hub);
    }
    ptowsp_hub_destroy(hub);
    soak_context_end(context, &memory);
}

// Collectives: every kind by every algorithm on threads, bit for bit as a reference that sums in the
// documented order; ranks that die, lie, or run out of memory. Times and plans are in collectives.facts.

#define _GNU_SOURCE  // kill

#include "collective_reference.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static ptowsp_context *context_of(test_memory *memory) {
    ptowsp_context_desc desc = {.resize = memory ? test_resize : NULL, .resize_user = memory};
    return test_context(&desc);
}

// -- ranks as threads -----------------------------------------------------------------------------

typedef struct rank_job rank_job;

struct rank_job {
    ptowsp_transport transport;
    uint32_t rank, count;
    uint64_t fingerprint, time_limit_ns;
    ptowsp_links links;
    void (*fn)(rank_job *job, ptowsp_context *context, ptowsp_ranks *ranks);
    void *user;
    test_memory memory;
    bool has_context;      // of that memory
    atomic_uint *arrived;  // those that have been created, or not: each waits for all; or NULL
    ptowsp_status created, status;
    uint64_t index;
    char text[256], first_text[256];  // the last error's, and an earlier one's
};

static void *rank_main(void *arg) {
    rank_job *job = (rank_job *)arg;
    ptowsp_context *context = context_of(job->has_context ? &job->memory : NULL);
    ptowsp_ranks_desc desc = {.rank = job->rank,
                              .rank_count = job->count,
                              .transport = job->transport,
                              .fingerprint = job->fingerprint,
                              .time_limit_ns = job->time_limit_ns,
                              .links = job->links};
    ptowsp_ranks *ranks = NULL;
    job->created = ptowsp_ranks_create(context, &desc, &ranks);
    if (job->arrived) {
        for (atomic_fetch_add(job->arrived, 1); atomic_load(job->arrived) < job->count;) {
            sched_yield();
        }
    }
    if (job->created == PTOWSP_OK) {
        job->fn(job, context, ranks);
    }
    const ptowsp_error error = ptowsp_context_error(context);
    job->index = error.index;
    snprintf(job->text, sizeof job->text, "%s", error.text);
    ptowsp_ranks_destroy(ranks);
    ptowsp_context_destroy(context);
    return NULL;
}

static ptowsp_hub *hub_of(ptowsp_context *context, uint32_t count, uint32_t ring, bool is_shared) {
    const ptowsp_hub_desc desc = {count, ring, is_shared};
    ptowsp_hub *hub = NULL;
    assert_ok(ptowsp_hub_create(context, &desc, &hub));
    return hub;
}

// Runs fn on ranks, each a thread, once all are created: a rank that fails earlier would end others'
// creation.
static void run_ranks(rank_job *jobs, uint32_t count, uint32_t ring,
                      void (*fn)(rank_job *, ptowsp_context *, ptowsp_ranks *), void *user) {
    ptowsp_context *context = context_of(NULL);
    ptowsp_hub *hub = hub_of(context, count, ring, false);
    atomic_uint arrived = 0;
    for (uint32_t i = 0; i < count; i++) {
        jobs[i].rank = i;
        jobs[i].count = count;
        jobs[i].arrived = &arrived;
        jobs[i].fn = fn;
        jobs[i].user = user;
        if (!jobs[i].transport.send) {
            jobs[i].transport = ptowsp_hub_transport(hub, i);
        }
    }
    test_threads(rank_main, jobs, sizeof jobs[0], count);
    ptowsp_hub_destroy(hub);
    ptowsp_context_destroy(context);
}

// cmocka's assertions belong to the main thread: others count what is wrong.
static bool run_one(rank_job *job, ptowsp_context *context, ptowsp_ranks *ranks,
                    const ptowsp_collective *c, bool is_polled) {
    bool is_right = false;
    const ptowsp_status status = collective_run(ranks, c, is_polled, &is_right);
    if (!is_right) {
        fprintf(stderr, "rank %u: %s %s, %u members, node %u, count %u, %s: %s %s\n", job->rank,
                ptowsp_collective_name(c->kind), ptowsp_algorithm_name(c->algorithm), c->members,
                c->node_size, (unsigned)c->count, ptowsp_dtype_name(c->dtype),
                ptowsp_status_name(status), ptowsp_context_error(context).text);
    }
    return is_right;
}

static void run_all(rank_job *job, ptowsp_context *context, ptowsp_ranks *ranks) {
    static const ptowsp_dtype types[] = {PTOWSP_F32, PTOWSP_F16, PTOWSP_I32,
                                         PTOWSP_F32, PTOWSP_F64, PTOWSP_BF16,
                                         PTOWSP_I8,  PTOWSP_U32, PTOWSP_U64};
    const uint32_t p = job->count;
    uint32_t runs = 0;
    for (size_t k = 0; k < COUNT_OF(collective_kinds); k++) {
        for (uint32_t a = PTOWSP_ALGORITHM_DIRECT; a <= PTOWSP_ALGORITHM_RING; a++) {
            const uint64_t counts[] = {0, 1, p - 1, p, p + 1, 3 * p - 1, 3 * p, 3 * p + 1, 171};
            const bool is_hierarchical = a == PTOWSP_ALGORITHM_HIERARCHICAL;
            for (uint32_t node = 1; node <= (is_hierarchical ? p : 1); node++) {
                for (size_t n = p > 4 ? 4 : 0;
                     n < 9 && p % node == 0 &&
                     collective_has(collective_kinds[k], (ptowsp_algorithm)a);
                     n++) {
                    ptowsp_collective c = {.kind = collective_kinds[k],
                                           .algorithm = (ptowsp_algorithm)a,
                                           .count = counts[n],
                                           .members = p,
                                           .node_size = is_hierarchical ? node : 0,
                                           .dtype = types[runs % 9],
                                           .reduction = runs % 5 == 3   ? PTOWSP_REDUCTION_MAX
                                                        : runs % 5 == 4 ? PTOWSP_REDUCTION_MIN
                                                                        : PTOWSP_REDUCTION_SUM,
                                           .root = runs % p,
                                           .target = runs / 2 % p};
                    if (!run_one(job, context, ranks, &c, runs++ % 2)) {
                        job->status = PTOWSP_KERNEL_FAILED;
                        return;
                    }
                }
            }
        }
    }
}

static void all_are_good(const rank_job *jobs, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        assert_ok(jobs[i].created);
        assert_ok(jobs[i].status);
    }
}

// Creating them fails on all: rank 3 differs.
static void all_see_rank_3(const rank_job *jobs) {
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(jobs[i].created, PTOWSP_RANK_FAILED);
        assert_int_equal(jobs[i].index, 3);
        assert_string_equal(jobs[i].text, "ranks: rank 3 has another fingerprint than rank 0: "
                                          "0000000000000bad, not 000000000000c0de");
    }
}

TEST(ranks__every_collective_is_as_documented_bit_for_bit) {
    for (uint32_t p = 1; p <= P_MAX; p++) {
        rank_job jobs[P_MAX] = {0};
        for (uint32_t i = 0; i < p; i++) {
            jobs[i].time_limit_ns = UINT64_C(1000000000000);  // all may have one busy processor
        }
        // Rings may be shorter than messages.
        run_ranks(jobs, p, p < 4 ? 64 : 2048, run_all, NULL);
        all_are_good(jobs, p);
    }
}

// Rows of a mesh of 2 by 3 and columns, ragged exchanges, and AUTO.
static void run_groups(rank_job *job, ptowsp_context *context, ptowsp_ranks *ranks) {
    ptowsp_collective c;
    uint64_t seed = 5;
    for (int round = 0; round < 40; round++) {
        memset(&c, 0, sizeof c);
        c.dtype = PTOWSP_F32;
        const bool is_row = round % 2 == 0;
        c.members = is_row ? 3 : 2;
        c.first = is_row ? job->rank / 3 * 3 : job->rank % 3;
        c.stride = is_row ? 1 : 3;
        uint64_t counts[9];
        if (round % 4 < 2) {
            c.kind = PTOWSP_ALL_TO_ALL;
            c.counts = counts;
            for (uint32_t i = 0; i < 9; i++) {
                counts[i] = test_random(&seed) % 4 == 0 ? 0 : test_random(&seed) % 30;
            }
            c.algorithm = round % 8 < 4 ? PTOWSP_ALGORITHM_DIRECT : PTOWSP_ALGORITHM_RING;
        } else {
            c.kind = PTOWSP_ALL_GATHER;
            c.count = test_random(&seed) % COUNT_MAX;
        }
        if (!run_one(job, context, ranks, &c, round % 3 == 0)) {
            job->status = PTOWSP_KERNEL_FAILED;
            return;
        }
    }
}

TEST(ranks__lines_of_a_mesh_exchange_ragged_counts) {
    rank_job jobs[P_MAX] = {0};
    run_ranks(jobs, 6, 0, run_groups, NULL);
    all_are_good(jobs, 6);
}

TEST(ranks__sums_are_near_those_in_double) {
    ptowsp_collective c = {.dtype = PTOWSP_F32, .count = COUNT_MAX};
    for (c.members = 2; c.members <= P_MAX; c.members++) {
        for (uint32_t a = PTOWSP_ALGORITHM_DIRECT; a <= PTOWSP_ALGORITHM_RING; a++) {
            c.algorithm = (ptowsp_algorithm)a;
            for (uint64_t e = 0; e < c.count; e++) {
                double sum = 0, size = 0;
                for (uint32_t r = 0; r < c.members; r++) {
                    sum += collective_value_of(&c, r, e);
                    size += fabs(collective_value_of(&c, r, e));
                }
                assert_true(fabs(sum - collective_reduced(&c, e)) <= c.members * 6e-8 * size);
            }
        }
    }
}

// -- what goes wrong ------------------------------------------------------------------------------

static void run_nothing(rank_job *job, ptowsp_context *context, ptowsp_ranks *ranks) {
    (void)job, (void)context, (void)ranks;
}

TEST(ranks__other_fingerprints_are_an_error_on_all) {
    rank_job jobs[P_MAX] = {0};
    for (uint32_t i = 0; i < 5; i++) {
        jobs[i].fingerprint = i == 3 ? 0xbad : 0xc0de;
    }
    run_ranks(jobs, 5, 0, run_nothing, NULL);
    all_see_rank_3(jobs);
}

// A transport of a hub that may be late, what it sends to rank 4 going out only some time after three others have
// ended, or do something to its third message.
typedef struct wrapped {
    ptowsp_transport hub;
    atomic_uint *ended;
    bool is_late;
    int fault;  // 1: cut short, 2: twice, 3: the next one first, 4: another tag, 5: longer, 6: it
                // cannot be sent, 7: nor can it be found out
    int sent;
    bool is_again;
    uint64_t tag, size;
    char data[64];
} wrapped;

static ptowsp_status wrapped_send(void *user, uint32_t peer, uint64_t tag, const void *data,
                                  uint64_t size) {
    wrapped *t = (wrapped *)user;
    const int fault = ++t->sent == 3 ? t->fault : 0;
    if (!t->fault) {
        return t->hub.send(t->hub.user, peer, tag, data, size);
    }
    if (fault == 6) {
        return PTOWSP_SYSTEM_FAILED;
    }
    t->is_again = fault == 2;
    t->tag = tag;
    t->size = size;
    memcpy(t->data, data, size);
    return t->hub.send(t->hub.user, peer,
                       fault == 3   ? tag + 1
                       : fault == 4 ? tag ^ UINT64_C(1) << 40
                                    : tag,
                       t->data, size - (fault == 1) + (fault == 5));
}

static ptowsp_status wrapped_receive(void *user, uint32_t peer, void *data, uint64_t capacity) {
    const ptowsp_transport *hub = &((wrapped *)user)->hub;
    return hub->receive(hub->user, peer, data, capacity);
}

static ptowsp_status wrapped_test(void *user, uint32_t peer, bool is_send, bool *out_is_done,
                                  uint64_t *out_tag, uint64_t *out_size) {
    wrapped *t = (wrapped *)user;
    *out_is_done = false;
    if (is_send && t->is_late && peer == 4) {
        if (atomic_load(t->ended) < 3) {
            return PTOWSP_OK;
        }
        usleep(20000);
    }
    if (is_send && t->sent == 3 && t->fault == 7) {
        return PTOWSP_SYSTEM_FAILED;
    }
    const ptowsp_status status =
        t->hub.test(t->hub.user, peer, is_send, out_is_done, out_tag, out_size);
    if (is_send && *out_is_done && t->is_again) {
        t->is_again = *out_is_done = false;
        t->hub.send(t->hub.user, peer, t->tag, t->data, t->size);
    }
    return status;
}

static void wrapped_cancel(void *user, uint32_t peer, bool is_send) {
    const ptowsp_transport *hub = &((wrapped *)user)->hub;
    hub->cancel(hub->user, peer, is_send);
}

static void wrapped_close(void *user, bool has_failed) {
    wrapped *t = (wrapped *)user;
    t->hub.close(t->hub.user, has_failed);
    if (t->ended) {
        atomic_fetch_add(t->ended, 1);
    }
}

static ptowsp_transport wrapped_transport(wrapped *t) {
    const ptowsp_transport transport = {
        t, wrapped_send, wrapped_receive, wrapped_test, wrapped_cancel, wrapped_close};
    return transport;
}

// Rank 4 hears from rank 2 when the others have found the difference and ended.
TEST(ranks__a_rank_that_is_late_finds_the_same_difference) {
    atomic_uint ended;
    ptowsp_context *context = context_of(NULL);
    ptowsp_hub *hub = hub_of(context, 5, 0, false);
    rank_job jobs[P_MAX] = {0};
    wrapped ends[5] = {0};
    atomic_init(&ended, 0);
    for (uint32_t i = 0; i < 5; i++) {
        ends[i].hub = ptowsp_hub_transport(hub, i);
        ends[i].ended = &ended;
        ends[i].is_late = i == 2;
        jobs[i].transport = wrapped_transport(&ends[i]);
        jobs[i].fingerprint = i == 3 ? 0xbad : 0xc0de;
    }
    run_ranks(jobs, 5, 0, run_nothing, NULL);
    all_see_rank_3(jobs);
    ptowsp_hub_destroy(hub);
    ptowsp_context_destroy(context);
}

// The other rank of two: answers what rank 0 says of itself with the same, but for one word.
typedef struct forger {
    ptowsp_transport transport;
    uint32_t word;
} forger;

static void *forge(void *user) {
    const forger *f = (const forger *)user;
    const ptowsp_transport *t = &f->transport;
    uint64_t record[4], tag = 0, size = 0;
    bool is_done = false;
    t->receive(t->user, 0, record, sizeof record);
    while (!is_done && t->test(t->user, 0, false, &is_done, &tag, &size) == PTOWSP_OK) {
        sched_yield();
    }
    record[3] = 1;  // its rank
    record[f->word] ^= 1;
    is_done = false;
    t->send(t->user, 0, tag, record, sizeof record);
    while (!is_done && t->test(t->user, 0, true, &is_done, &tag, &size) == PTOWSP_OK) {
        sched_yield();
    }
    t->close(t->user, false);
    return NULL;
}

// The cap of rank 1 is another one than that of rank 0, or is all that its links say: then they are
// still none of the library's.
TEST(ranks__another_cap_of_ranks_is_an_error) {
    for (int is_alone = 0; is_alone < 2; is_alone++) {
        rank_job jobs[P_MAX] = {[0].links = ptowsp_links_make(PTOWSP_LINKS_ASCEND_910B)};
        if (!is_alone) {
            jobs[1].links = jobs[0].links;
        }
        jobs[1].links.rank_bytes_per_us = 67700;
        run_ranks(jobs, 2, 0, run_nothing, NULL);
        static const char text[] = "ranks: rank 1 has another links than rank 0: ";
        for (uint32_t i = 0; i < 2; i++) {
            assert_int_equal(jobs[i].created, PTOWSP_RANK_FAILED);
            assert_int_equal(jobs[i].index, 1);
            assert_memory_equal(jobs[i].text, text, sizeof text - 1);
        }
    }
}

TEST(ranks__another_version_or_other_links_are_an_error) {
    static const char *const differences[] = {"version of the library", "fingerprint", "links",
                                              "rank"};
    for (uint32_t word = 0; word < 4; word++) {
        ptowsp_context *context = context_of(NULL);
        ptowsp_hub *hub = hub_of(context, 2, 4096, false);
        forger f = {ptowsp_hub_transport(hub, 1), word};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, forge, &f), 0);
        ptowsp_ranks_desc desc = {.rank_count = 2, .transport = ptowsp_hub_transport(hub, 0)};
        ptowsp_ranks *ranks = NULL;
        assert_int_equal(ptowsp_ranks_create(context, &desc, &ranks), PTOWSP_RANK_FAILED);
        pthread_join(thread, NULL);
        char text[80];
        snprintf(text, sizeof text,
                 "ranks: rank 1 has another %s than rank 0: ", differences[word]);
        assert_memory_equal(ptowsp_context_error(context).text, text, strlen(text));
        ptowsp_hub_destroy(hub);
        ptowsp_context_destroy(context);
    }
}

static void run_other_counts(rank_job *job, ptowsp_context *context, ptowsp_ranks *ranks) {
    uint64_t counts[9] = {1, 2, 3, 4, 0, 6, 7, 8, 9};
    counts[4] = job->rank == 2;
    uint32_t in[64] = {0}, out[64];
    ptowsp_collective c = {.kind = PTOWSP_ALL_TO_ALL,
                           .algorithm = PTOWSP_ALGORITHM_DIRECT,
                           .dtype = PTOWSP_U32,
                           .members = 3,
                           .counts = counts};
    job->status = ptowsp_ranks_run(ranks, &c, in, out);
    snprintf(job->first_text, sizeof job->first_text, "%s", ptowsp_context_error(context).text);
    if (job->status == PTOWSP_RANK_FAILED) {  // and so is all after it
        job->status = ptowsp_ranks_run(ranks, &c, in, out);
    }
}

TEST(ranks__ragged_counts_that_disagree_are_an_error_on_all) {
    rank_job jobs[P_MAX] = {0};
    run_ranks(jobs, 3, 0, run_other_counts, NULL);
    bool is_told = false;  // by those that look at a message before they hear of a failure
    for (uint32_t i = 0; i < 3; i++) {
        assert_ok(jobs[i].created);
        assert_int_equal(jobs[i].status, PTOWSP_RANK_FAILED);
        assert_memory_equal(jobs[i].first_text, "ranks: all_to_all: ", 19);
        const char *differs =
            strstr(jobs[i].first_text, " runs another collective, or of other sizes");
        is_told = is_told || differs;
        assert_true(differs || strstr(jobs[i].first_text, ", a rank failed or has ended"));
        assert_string_equal(jobs[i].text, "ranks: this communicator has failed before");
    }
    assert_true(is_told);
}

// A rank that sends a message and fails.
static void *send_and_fail(void *arg) {
    const ptowsp_transport *t = (const ptowsp_transport *)arg;
    bool is_done = false;
    uint64_t tag, size;
    if (t->send(t->user, 1, 7, "message", 8) != PTOWSP_OK ||
        t->test(t->user, 1, true, &is_done, &tag, &size) != PTOWSP_OK || !is_done) {
        return arg;
    }
    t->close(t->user, true);
    return NULL;
}

TEST(ranks__what_a_rank_sent_before_it_failed_arrives) {
    ptowsp_context *context = context_of(NULL);
    for (uint32_t round = 0; TEST_ROUNDS(round, 2000); round++) {
        ptowsp_hub *hub = hub_of(context, 2, 64, false);
        ptowsp_transport transports[2] = {ptowsp_hub_transport(hub, 0),
                                          ptowsp_hub_transport(hub, 1)};
        const ptowsp_transport *t = &transports[1];
        pthread_t thread;
        void *wrong = NULL;
        char text[8] = "";
        bool is_done = false;
        uint64_t tag = 0, size = 0;
        assert_int_equal(pthread_create(&thread, NULL, send_and_fail, &transports[0]), 0);
        assert_ok(t->receive(t->user, 0, text, sizeof text));
        for (uint32_t tries = 1; !is_done; tries++) {
            assert_ok(t->test(t->user, 0, false, &is_done, &tag, &size));
            if (tries % 1000 == 0) {  // the sender may have no other processor
                sched_yield();
            }
        }
        pthread_join(thread, &wrong);
        assert_null(wrong);
        assert_string_equal(text, "message");
        ptowsp_hub_destroy(hub);
    }
    ptowsp_context_destroy(context);
}

static void run_sends(rank_job *job, ptowsp_context *context, ptowsp_ranks *ranks) {
    (void)context;
    uint32_t in[4] = {1, 2, 3, 4}, out[4];
    ptowsp_collective c = {.kind = PTOWSP_SEND,
                           .algorithm = PTOWSP_ALGORITHM_DIRECT,
                           .dtype = PTOWSP_U32,
                           .members = 2,
                           .count = 4,
                           .target = 1};
    for (int i = 0; i < 5 && job->status == PTOWSP_OK; i++) {
        job->status = ptowsp_ranks_run(ranks, &c, in, out);
    }
}

TEST(ranks__messages_that_are_wrong_are_found) {
    static const char *const texts[] = {
        "ranks: send: message 2 of rank 0 has 15 bytes, not 16",
        "ranks: send: message 2 of rank 0 came twice or late, due is 3",
        "ranks: send: message 3 of rank 0 came too early, due is 2",
        "ranks: send: rank 0 runs another collective, or of other sizes",
        "ranks: send: a message of rank 0 is longer than 16 bytes",
        "ranks: send: receiving from rank 0, a rank failed or has ended",
        "ranks: send: receiving from rank 0, a rank failed or has ended"};
    for (int fault = 1; fault <= 7; fault++) {
        ptowsp_context *context = context_of(NULL);
        ptowsp_hub *hub = hub_of(context, 2, 0, false);
        wrapped bad = {.hub = ptowsp_hub_transport(hub, 0), .fault = fault};
        rank_job jobs[P_MAX] = {0};
        jobs[0].transport = wrapped_transport(&bad);
        jobs[1].transport = ptowsp_hub_transport(hub, 1);
        run_ranks(jobs, 2, 0, run_sends, NULL);
        assert_int_equal(jobs[1].status, PTOWSP_RANK_FAILED);
        assert_string_equal(jobs[1].text, texts[fault - 1]);
        if (fault >= 6) {
            assert_int_equal(jobs[0].status, PTOWSP_SYSTEM_FAILED);
            assert_string_equal(
                jobs[0].text, "ranks: send: the transport to rank 1: the operating system refused");
        }
        ptowsp_hub_destroy(hub);
        ptowsp_context_destroy(context);
    }
}

// Rank 1 computes until the others have come back, or has ended well: it is missed, too.
typedef struct late {
    atomic_uint come_back;
    bool ends;
    const rank_job *jobs;
} late;

static void run_late(rank_job *job, ptowsp_context *context, ptowsp_ranks *ranks) {
    (void)context;
    late *l = (late *)job->user;
    float x = 1, y = 0;
    ptowsp_collective c = {
        .algorithm = PTOWSP_ALGORITHM_RING, .dtype = PTOWSP_F32, .members = 3, .count = 1};
    if (job->rank == 1) {
        if (l->ends) {
            return;
        }
        const unsigned others = 0u + !l->jobs[0].created + !l->jobs[2].created;
        while (atomic_load(&l->come_back) < others) {
            sched_yield();
        }
    }
    job->status = ptowsp_ranks_run(ranks, &c, &x, &y);
    atomic_fetch_add(&l->come_back, 1);
}

// With a limit within which they are created: on a busy machine, where they are not, a longer one.
static uint64_t run_with_limit(rank_job *jobs, late *l) {
    const bool ends = l->ends;
    for (uint64_t limit_ms = 250;; limit_ms *= 2) {
        memset(jobs, 0, 3 * sizeof *jobs);
        memset(l, 0, sizeof *l);
        l->ends = ends;
        l->jobs = jobs;
        for (uint32_t i = 0; i < 3; i++) {
            jobs[i].time_limit_ns = ends ? 0 : limit_ms * 1000000;
        }
        run_ranks(jobs, 3, 0, run_late, l);
        const bool is_late = jobs[0].created || jobs[1].created || jobs[2].created;
        if (!is_late || ends || limit_ms > 60000) {
            return limit_ms;
        }
    }
}

TEST(ranks__a_rank_that_does_not_answer_is_an_error) {
    for (int ends = 0; ends < 2; ends++) {
        rank_job jobs[P_MAX];
        late l = {0, ends != 0, jobs};
        char answer[64], message[64];
        const unsigned limit_ms = (unsigned)run_with_limit(jobs, &l);
        snprintf(answer, sizeof answer, " did not answer in %u ms, round ", limit_ms);
        snprintf(message, sizeof message, " did not take a message in %u ms, round ", limit_ms);
        bool has_timed_out = false;
        for (uint32_t i = 0; i < 3; i++) {
            assert_ok(jobs[i].created);
            if (jobs[i].status == PTOWSP_TIMED_OUT) {
                has_timed_out = true;
                assert_memory_equal(jobs[i].text, "ranks: all_reduce: rank ", 24);
                assert_true(strstr(jobs[i].text, answer) || strstr(jobs[i].text, message));
            }
            assert_true(jobs[i].status == PTOWSP_TIMED_OUT ||
                        jobs[i].status == PTOWSP_RANK_FAILED || (ends && i == 1));
        }
        assert_int_equal(has_timed_out, !ends);
    }
}

// -- processes ------------------------------------------------------------------------------------

// A child: exits with 0 when all went well, 1 after an error of another rank, 2 for wrong results.
static int child_main(ptowsp_hub *hub, uint32_t rank, uint32_t count, uint32_t rounds,
                      uint64_t time_limit_ns) {
    ptowsp_context *context = NULL;
    if (ptowsp_context_create(NULL, &context) != PTOWSP_OK) {
        return 3;
    }
    ptowsp_ranks_desc desc = {.rank = rank,
                              .rank_count = count,
                              .transport = ptowsp_hub_transport(hub, rank),
                              .time_limit_ns = time_limit_ns};
    ptowsp_ranks *ranks = NULL;
    ptowsp_status status = ptowsp_ranks_create(context, &desc, &ranks);
    ptowsp_collective c = {.dtype = PTOWSP_I32, .members = count, .count = 37};
    int32_t x[37], y[37];
    for (uint32_t i = 0; status == PTOWSP_OK && i < rounds; i++) {
        c.algorithm = (ptowsp_algorithm)(i % 5);
        for (int32_t k = 0; k < 37; k++) {
            x[k] = (int32_t)(rank * i) + k;
        }
        status = ptowsp_ranks_run(ranks, &c, x, y);
        const int32_t due = (int32_t)(count * (count - 1) / 2 * i);
        for (int32_t k = 0; status == PTOWSP_OK && k < 37; k++) {
            if (y[k] != due + (int32_t)count * k) {
                return 2;
            }
        }
    }
    ptowsp_ranks_destroy(ranks);
    ptowsp_context_destroy(context);
    return status == PTOWSP_OK                                          ? 0
           : status == PTOWSP_RANK_FAILED || status == PTOWSP_TIMED_OUT ? 1
                                                                        : 3;
}

static void start_children(ptowsp_hub *hub, pid_t *pids, uint32_t count, uint32_t rounds,
                           uint64_t time_limit_ns) {
    fflush(NULL);
    for (uint32_t i = 0; i < count; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            test_exit(child_main(hub, i, count, rounds, time_limit_ns));
        }
    }
}

TEST(ranks__processes_share_a_hub) {
    ptowsp_context *context = context_of(NULL);
    ptowsp_hub *hub = hub_of(context, 4, 64, true);
    pid_t pids[4];
    start_children(hub, pids, 4, 50, UINT64_C(60000000000));
    for (uint32_t i = 0; i < 4; i++) {
        int code = -1;
        assert_int_equal(waitpid(pids[i], &code, 0), pids[i]);
        assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
    }
    ptowsp_hub_destroy(hub);
    ptowsp_context_destroy(context);
}

// The entries of a directory; 0 where there is none.
static uint32_t entries_of(const char *path) {
    DIR *directory = opendir(path);
    uint32_t count = 0;
    while (directory && readdir(directory)) {
        count++;
    }
    if (directory) {
        closedir(directory);
    }
    return count;
}

// Does this process have a file of a folder in its memory? Others may have theirs there.
static bool maps_a_file_of(const char *folder) {
    char line[512];
    bool is_found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        is_found = is_found || strstr(line, folder);
    }
    if (maps) {
        fclose(maps);
    }
    return is_found;
}

TEST(ranks__when_a_process_is_killed_all_others_end) {
    uint64_t seed = test_seed();
    const uint32_t open_files = entries_of("/proc/self/fd");
    int sooner = 0, rounds = 0;
    for (int round = 0; TEST_ROUNDS(round, 100); round++) {
        ptowsp_context *context = context_of(NULL);
        ptowsp_hub *hub = hub_of(context, 4, 64, true);
        pid_t pids[4];
        const uint32_t victim = (uint32_t)(test_random(&seed) % 4);
        assert_false(maps_a_file_of("/dev/shm/"));
        start_children(hub, pids, 4, UINT32_MAX, UINT64_C(2000000000));
        usleep((useconds_t)(test_random(&seed) % 30000));
        kill(pids[victim], SIGKILL);
        const uint64_t killed = ptowsp_clock_ns();
        for (uint32_t i = 0; i < 4; i++) {
            int code = -1;
            assert_int_equal(waitpid(pids[i], &code, 0), pids[i]);
            assert_true(i == victim ? WIFSIGNALED(code)
                                    : WIFEXITED(code) && WEXITSTATUS(code) == 1);
        }
        const uint64_t took = ptowsp_clock_ns() - killed;
        assert_true(took < UINT64_C(100000000000));  // at once or by their limit, if they are let
        rounds++;
        sooner += took < UINT64_C(1900000000);
        ptowsp_hub_destroy(hub);
        ptowsp_context_destroy(context);
    }
    // By the time limit only those that never said who they are.
    print_message("%d of %d ended before their time limit\n", sooner, rounds);
    assert_met(access("/proc/self/stat", R_OK) != 0 || 2 * sooner > rounds);
    assert_int_equal(entries_of("/proc/self/fd"), open_files);
}

// -- memory ---------------------------------------------------------------------------------------

static void run_twice(rank_job *job, ptowsp_context *context, ptowsp_ranks *ranks) {
    (void)context;
    float x[40] = {1}, y[40];
    ptowsp_collective c = {.dtype = PTOWSP_F32, .members = job->count, .count = 40};
    job->status = ptowsp_ranks_run(ranks, &c, x, y);
    const size_t allocations = job->memory.allocations;
    if (job->status == PTOWSP_OK) {
        job->status = ptowsp_ranks_run(ranks, &c, x, y);
        if (job->status == PTOWSP_OK && job->memory.allocations != allocations) {
            job->status = PTOWSP_LEAKED;
        }
    }
}

TEST(ranks__every_allocation_may_be_refused) {
    bool is_done = false;
    for (size_t n = 2; !is_done; n++) {  // the first is the test's context and its pool
        rank_job jobs[P_MAX] = {[1].has_context = true, [1].memory.refuse_at = n < 3 ? 3 : n};
        run_ranks(jobs, 3, 0, run_twice, NULL);
        is_done = jobs[1].memory.allocations < jobs[1].memory.refuse_at;
        const ptowsp_status due = is_done ? PTOWSP_OK : PTOWSP_OUT_OF_MEMORY;
        assert_int_equal(jobs[1].created == PTOWSP_OK ? jobs[1].status : jobs[1].created, due);
        for (uint32_t i = 0; i < 3; i += 2) {
            const ptowsp_status status =
                jobs[i].created == PTOWSP_OK ? jobs[i].status : jobs[i].created;
            assert_int_equal(status, is_done ? PTOWSP_OK : PTOWSP_RANK_FAILED);
        }
        assert_int_equal(jobs[1].memory.live_blocks, 0);
    }
    test_memory memory = {0};
    ptowsp_context *context = context_of(&memory);
    const ptowsp_hub_desc desc = {3, 0, false};
    for (size_t n = 1; n <= 3; n++) {
        ptowsp_hub *hub = NULL;
        memory.refuse_at = memory.allocations + n;
        assert_int_equal(ptowsp_hub_create(context, &desc, &hub),
                         n < 3 ? PTOWSP_OUT_OF_MEMORY : PTOWSP_OK);
        ptowsp_hub_destroy(hub);
    }
    ptowsp_context_destroy(context);
    assert_int_equal(memory.live_blocks, 0);
}

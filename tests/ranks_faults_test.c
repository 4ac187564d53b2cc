// What communicators, times of collectives and plans refuse, and the texts: each with one rank, or
// none at all, since nothing is sent.

#include "../src/ranks/ranks.h"

#include "test.h"

static ptowsp_context *context_make(void) {
    ptowsp_context *context = NULL;
    assert_int_equal(ptowsp_context_create(NULL, &context), PTOWSP_OK);
    return context;
}

static ptowsp_collective sum_of(uint64_t count) {
    ptowsp_collective c;
    memset(&c, 0, sizeof c);
    c.kind = PTOWSP_ALL_REDUCE;
    c.algorithm = PTOWSP_ALGORITHM_RING;
    c.dtype = PTOWSP_F32;
    c.count = count;
    c.members = 4;
    return c;
}

static ptowsp_links links_of(uint64_t latency_ps, uint64_t bytes_per_us) {
    const ptowsp_link link = {latency_ps, bytes_per_us, PTOWSP_LINK_PORT};
    ptowsp_links links;
    memset(&links, 0, sizeof links);
    links.inside = links.between = link;
    return links;
}

// -- times ----------------------------------------------------------------------------------------

static void ranks_faults__times_need_links_an_algorithm_and_room(void **state) {
    (void)state;
    ptowsp_context *context = context_make();
    ptowsp_collective c = sum_of(8);
    ptowsp_links links = links_of(1000, 1000);
    ptowsp_collective_cost cost;
    assert_int_equal(ptowsp_collective_time(context, NULL, &links, &cost), PTOWSP_INVALID_PARAMS);
    test_error_is(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "ranks: no collective");
    assert_int_equal(ptowsp_collective_time(context, &c, NULL, &cost), PTOWSP_INVALID_PARAMS);
    test_error_is(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "ranks: no links");
    for (int i = 0; i < 2; i++) {
        ptowsp_links other = links;
        ptowsp_link *link = i ? &other.between : &other.inside;
        link->sharing = (ptowsp_link_sharing)(PTOWSP_LINK_NODE + 1);
        assert_int_equal(ptowsp_collective_time(context, &c, &other, &cost), PTOWSP_INVALID_PARAMS);
        test_error_is(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                      "ranks: links are shared in an unknown way");
    }
    assert_int_equal(ptowsp_collective_time(context, &c, &links, NULL), PTOWSP_INVALID_PARAMS);
    test_error_is(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                  "ranks: all_reduce: its time needs room to write");
    c.algorithm = PTOWSP_ALGORITHM_AUTO;
    assert_int_equal(ptowsp_collective_time(context, &c, &links, &cost), PTOWSP_INVALID_PARAMS);
    test_error_is(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                  "ranks: all_reduce: its time needs an algorithm");
    ptowsp_context_destroy(context);
}

// A part of 2^56 floats takes 2^58 us over a byte a microsecond, 2^78 ps; and six latencies of 2^63 ps.
static void ranks_faults__times_beyond_64_bits_are_refused(void **state) {
    (void)state;
    ptowsp_context *context = context_make();
    ptowsp_collective c = sum_of(UINT64_C(1) << 58);
    ptowsp_links links = links_of(0, 1);
    ptowsp_collective_cost cost;
    assert_int_equal(ptowsp_collective_time(context, &c, &links, &cost), PTOWSP_LIMIT_EXCEEDED);
    test_error_is(context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                  "ranks: all_reduce: its time does not fit 64 bits");
    c = sum_of(8);
    links = links_of(UINT64_C(1) << 63, 0);
    assert_int_equal(ptowsp_collective_time(context, &c, &links, &cost), PTOWSP_LIMIT_EXCEEDED);
    test_error_is(context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                  "ranks: all_reduce: its time does not fit 64 bits");
    ptowsp_context_destroy(context);
}

// -- communicators --------------------------------------------------------------------------------

static void ranks_faults__communicators_need_a_transport_and_a_rank(void **state) {
    (void)state;
    static const char incomplete[] =
        "ranks: a communicator needs a description, all of a transport, and a place to go";
    ptowsp_context *context = context_make();
    const ptowsp_hub_desc hub_desc = {1, 0, false};
    ptowsp_hub *hub = NULL;
    ptowsp_ranks *ranks = (ptowsp_ranks *)context;  // anything: it is cleared
    assert_int_equal(ptowsp_hub_create(context, &hub_desc, &hub), PTOWSP_OK);
    ptowsp_ranks_desc good, desc;
    memset(&good, 0, sizeof good);
    good.rank_count = 1;
    good.transport = ptowsp_hub_transport(hub, 0);
#define REFUSED(change, index, text)                                                               \
    desc = good;                                                                                   \
    change;                                                                                        \
    assert_int_equal(ptowsp_ranks_create(context, &desc, &ranks), PTOWSP_INVALID_PARAMS);          \
    test_error_is(context, PTOWSP_INVALID_PARAMS, index, text);                                    \
    assert_null(ranks)
    REFUSED(desc.transport.send = NULL, PTOWSP_NO_INDEX, incomplete);
    REFUSED(desc.transport.receive = NULL, PTOWSP_NO_INDEX, incomplete);
    REFUSED(desc.transport.test = NULL, PTOWSP_NO_INDEX, incomplete);
    REFUSED(desc.transport.cancel = NULL, PTOWSP_NO_INDEX, incomplete);
    REFUSED(desc.transport.close = NULL, PTOWSP_NO_INDEX, incomplete);
    REFUSED(desc.rank_count = 0, 0, "ranks: no rank 0 of 0; there are 1 to 16384");
    REFUSED(desc.rank = 1, 1, "ranks: no rank 1 of 1; there are 1 to 16384");
    REFUSED((desc.rank = 7, desc.rank_count = 16385), 7,
            "ranks: no rank 7 of 16385; there are 1 to 16384");
    REFUSED(desc.links.inside.sharing = (ptowsp_link_sharing)99, PTOWSP_NO_INDEX,
            "ranks: links are shared in an unknown way");
#undef REFUSED
    assert_int_equal(ptowsp_ranks_create(context, NULL, &ranks), PTOWSP_INVALID_PARAMS);
    test_error_is(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, incomplete);
    assert_int_equal(ptowsp_ranks_create(context, &good, NULL), PTOWSP_INVALID_PARAMS);
    test_error_is(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, incomplete);
    ptowsp_hub_destroy(hub);
    ptowsp_context_destroy(context);
}

static void ranks_faults__collectives_need_members_and_apart_memory(void **state) {
    (void)state;
    ptowsp_context *context = context_make();
    const ptowsp_hub_desc hub_desc = {1, 0, false};
    ptowsp_hub *hub = NULL;
    ptowsp_ranks *ranks = NULL;
    float in[16] = {0}, out[8];
    bool is_done = false;
    assert_int_equal(ptowsp_hub_create(context, &hub_desc, &hub), PTOWSP_OK);
    ptowsp_ranks_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.rank_count = 1;
    desc.transport = ptowsp_hub_transport(hub, 0);
    assert_int_equal(ptowsp_ranks_create(context, &desc, &ranks), PTOWSP_OK);
    ptowsp_collective good = sum_of(8), c;
    good.members = 1;
#define REFUSED(change, from, to, index, text)                                                     \
    c = good;                                                                                      \
    change;                                                                                        \
    assert_int_equal(ptowsp_ranks_run(ranks, &c, from, to), PTOWSP_INVALID_PARAMS);                \
    test_error_is(context, PTOWSP_INVALID_PARAMS, index, text)
    const char *const no_member =
        "ranks: all_reduce: rank 0 of 1 is not a member, or members are not ranks";
    REFUSED(c.first = 1, in, out, 0, no_member);
    REFUSED(c.members = 2, in, out, 0, no_member);
    REFUSED(c.members = 0, in, out, PTOWSP_NO_INDEX, "ranks: all_reduce: no members");
    REFUSED(c.reduction = (ptowsp_reduction)9, in, out, PTOWSP_NO_INDEX,
            "ranks: kind 0, algorithm 4, reduction 9: there is no such value");
    REFUSED(c.algorithm = (ptowsp_algorithm)9, in, out, PTOWSP_NO_INDEX,
            "ranks: kind 0, algorithm 9, reduction 0: there is no such value");
    REFUSED(c.members = 1, NULL, out, PTOWSP_NO_INDEX, "ranks: all_reduce: in is NULL");
    REFUSED(c.members = 1, in, NULL, PTOWSP_NO_INDEX, "ranks: all_reduce: out is NULL");
    REFUSED(c.members = 1, in, in + 7, PTOWSP_NO_INDEX, "ranks: all_reduce: in and out overlap");
    REFUSED(c.members = 1, in + 7, in, PTOWSP_NO_INDEX, "ranks: all_reduce: in and out overlap");
    REFUSED(c.kind = PTOWSP_ALL_GATHER, in, in, PTOWSP_NO_INDEX,
            "ranks: all_gather: in and out overlap");
#undef REFUSED
    assert_int_equal(ptowsp_ranks_run(ranks, &good, in, in + 8), PTOWSP_OK);  // side by side
    assert_int_equal(ptowsp_ranks_run(ranks, &good, in, in), PTOWSP_OK);
    assert_int_equal(ptowsp_ranks_poll(ranks, NULL), PTOWSP_INVALID_PARAMS);
    test_error_is(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                  "ranks: poll: no place for the answer");
    assert_int_equal(ptowsp_ranks_poll(ranks, &is_done), PTOWSP_OK);  // nothing was started
    assert_true(is_done);
    // One at a time; and none behind a failure.
    assert_int_equal(ptowsp_ranks_start(ranks, &good, in, out), PTOWSP_OK);
    assert_int_equal(ptowsp_ranks_start(ranks, &good, in, out), PTOWSP_BUSY);
    assert_int_equal(ptowsp_ranks_wait(ranks), PTOWSP_OK);
    pwsp_ranks_give_up(ranks);
    for (int i = 0; i < 2; i++) {
        is_done = false;
        assert_int_equal(i ? ptowsp_ranks_start(ranks, &good, in, out)
                           : ptowsp_ranks_poll(ranks, &is_done),
                         PTOWSP_RANK_FAILED);
        test_error_is(context, PTOWSP_RANK_FAILED, PTOWSP_NO_INDEX,
                      "ranks: this communicator has failed before");
        assert_true(i || is_done);
    }
    ptowsp_ranks_destroy(ranks);
    ptowsp_hub_destroy(hub);
    ptowsp_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_faults__times_need_links_an_algorithm_and_room),
        cmocka_unit_test(ranks_faults__times_beyond_64_bits_are_refused),
        cmocka_unit_test(ranks_faults__communicators_need_a_transport_and_a_rank),
        cmocka_unit_test(ranks_faults__collectives_need_members_and_apart_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

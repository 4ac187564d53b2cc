// Planning on several lanes: ptowsp_plan_generate_parallel writes what the slow reference of
// plan_reference.h writes, on threads of its own, on none and on the user's, whatever the batch
// looks like; when it asks for lanes at all; and that it fails as a whole. What it refuses besides
// is in plan_faults_test.c.

#include "lane_modes.h"
#include "plan_reference.h"

// An executor that counts how often it is asked.
static void run_and_count(void *user, uint32_t lane_count, ptowsp_lane_fn lane, void *job) {
    ++*(uint32_t *)user;
    test_run_lanes_backwards(NULL, lane_count, lane, job);
}

static ptowsp_context *counting_context(uint32_t lane_count, uint32_t *run_count) {
    return test_context(&(ptowsp_context_desc){.threads = PTOWSP_THREADS_USER,
                                               .lane_count = lane_count,
                                               .run_lanes = run_and_count,
                                               .run_lanes_user = run_count});
}

// Plans that are long in different ways; all but the first have more than 50,000 descriptors.
static uint32_t parallel_batch(int shape, int32_t *lengths, uint32_t *heads, uint64_t *random) {
    static const struct {
        uint32_t count, heads;
        int32_t least, most;
    } shapes[] = {{100, 1, 0, 4000},
                  {5000, 3, -1, 0},      // of all sizes
                  {3001, 7, 0, 0},       // one sequence has it all, in the middle of nothing
                  {1, 40000, 200, 200},  // one head after another of one sequence
                  {5000, 16, 0, 3}};     // one unit each
    *heads = shapes[shape].heads;
    for (uint32_t i = 0; i < shapes[shape].count; i++) {
        const int32_t least = shapes[shape].least;
        lengths[i] = (int32_t)(least < 0 ? random_scaled(random, 12) - 1
                                         : test_random_in(random, least, shapes[shape].most));
    }
    lengths[1500] = shape == 2 ? 1310720 : lengths[1500];
    return shapes[shape].count;
}

// Compares with the reference, on this context, over all shapes and ways to cut.
static void check_parallel(ptowsp_context *context, size_t mode) {
    static int32_t lengths[5000];
    uint64_t random = 1;
    for (int shape = 0; shape < 5; shape++) {
        ptowsp_batch batch = {lengths, 0, 0};
        batch.sequence_count = parallel_batch(shape, lengths, &batch.kv_head_count, &random);
        for (int fixed = 0; fixed < 2; fixed++) {
            const ptowsp_plan_config config = {.align = 4,
                                               .chunks = fixed ? PTOWSP_CHUNKS_FIXED
                                                               : PTOWSP_CHUNKS_BALANCED,
                                               .tiers = any_length,
                                               .tier_count = 1};
            const uint32_t chunk = 100;
            uint64_t total = reference_total(&batch, chunk);
            assert_int_equal(total > 50000, shape > 0);
            ptowsp_work *expected = (ptowsp_work *)test_alloc(total, sizeof *expected);
            assert_true(reference_generate(&batch, &config, chunk, expected) == total);
            guarded buffer = guarded_make(total, test_random(&random));
            ptowsp_plan_info info = info_with_rubbish();
            lanes_have_run(context, shape > 0 ? mode : 0,
                           ptowsp_plan_generate_parallel(context, &batch, &config, chunk,
                                                         buffer.work, total, &info));
            assert_true(info.work_count == total && info.fault == PTOWSP_FAULT_NONE);
            assert_same_work(buffer.work, expected, total);
            guarded_free(&buffer);
        }
    }
    no_error(context, mode);
}

MODES_TEST(plan__parallel_generation_equals_the_reference) {
    for (int round = 0; round < 3; round++) {
        check_parallel(context, mode);
    }
}

TEST(plan__the_lanes_are_asked_from_50000_descriptors_on) {
    static int32_t lengths[50000];
    guarded buffer = guarded_make(50000, 0);
    uint32_t run_count = 0;
    ptowsp_context *context = counting_context(64, &run_count);
    for (int i = 0; i < 50000; i++) {
        lengths[i] = 1;
    }
    for (uint32_t count = 49999; count <= 50000; count++) {
        const ptowsp_batch batch = {lengths, count, 1};
        ptowsp_plan_info info = info_with_rubbish();
        assert_ok(
            ptowsp_plan_generate_parallel(context, &batch, NULL, 1, buffer.work, 50000, &info));
        assert_true(info.work_count == count && info.fault == PTOWSP_FAULT_NONE);
        assert_int_equal(run_count, count == 50000);
    }
    check_parallel(context, 0);
    assert_true(run_count >= 9);  // four long plans, two ways
    test_release();
    guarded_free(&buffer);
    ptowsp_context_destroy(context);
}

TEST(plan__long_parallel_plans_are_refused_untouched) {
    static int32_t lengths[5000];
    for (int i = 0; i < 5000; i++) {
        lengths[i] = 1300;
    }
    uint32_t run_count = 0;
    ptowsp_context *context = counting_context(4, &run_count);
    const ptowsp_batch batch = {lengths, 5000, 2};
    const uint64_t total = 5000 * 2 * 13;
    guarded buffer = guarded_make(total, 0);
    ptowsp_plan_info info = info_with_rubbish();
    assert_int_equal(
        ptowsp_plan_generate_parallel(context, &batch, NULL, 100, buffer.work, total - 1, &info),
        PTOWSP_BUFFER_OVERFLOW);
    assert_true(info.work_count == total);
    lengths[4999] = 200000;
    lengths[4000] = -1;
    test_refused(
        context,
        ptowsp_plan_generate_parallel(context, &batch, NULL, 100, buffer.work, total, &info),
        PTOWSP_INVALID_PARAMS, 4000, "plan: sequence 4000 has the negative length -1");
    lengths[4000] = 1;
    test_refused(
        context,
        ptowsp_plan_generate_parallel(context, &batch, NULL, 100, buffer.work, total, NULL),
        PTOWSP_UNSUPPORTED_SIZE, 4999,
        "plan: sequence 4999 has length 200000, which no tier covers");
    guarded_assert_untouched(&buffer);
    lengths[4999] = 1300;
    assert_ok(ptowsp_plan_generate_parallel(context, &batch, NULL, 100, buffer.work, total, NULL));
    test_error_is(context, PTOWSP_UNSUPPORTED_SIZE, 4999,  // success does not clear it
                  "plan: sequence 4999 has length 200000, which no tier covers");
    guarded_free(&buffer);
    ptowsp_context_destroy(context);
}

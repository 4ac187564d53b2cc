// Spaces: static ones from list macros and run-time ones.
//
// Expected values: indices worked out by hand in comments; nested loops that count points in the
// documented order (dimension 0 fastest) for round trips; 128-bit products for totals. What must
// not compile is in compile_fail.sh.

#include "test.h"
#include "wide.h"

#define HEADS        8
#define GROUPS       (HEADS / 2)
#define ALSO_DYNAMIC PTOWSP_DYNAMIC
enum { TILES = 5 };

// The header's example.
#define DECODE_DIMS(DIM) DIM(batch, PTOWSP_DYNAMIC) DIM(head, 8) DIM(chunk, PTOWSP_DYNAMIC)
PTOWSP_DEFINE_SPACE(decode_space, DECODE_DIMS)

// Sizes in every spelling: literal, macro, macro that expands to parentheses, parenthesised
// expression, enumerator, other number formats; and a macro that expands to PTOWSP_DYNAMIC.
#define SPELLED_DIMS(DIM)                                                                          \
    DIM(literal, 3)                                                                                \
    DIM(macro, HEADS)                                                                              \
    DIM(parentheses, GROUPS)                                                                       \
    DIM(expression, (2 * HEADS + 1))                                                               \
    DIM(enumerator, TILES)                                                                         \
    DIM(hexadecimal, 0x10)                                                                         \
    DIM(dynamic, PTOWSP_DYNAMIC)                                                                   \
    DIM(also_dynamic, ALSO_DYNAMIC)
PTOWSP_DEFINE_SPACE(spelled_space, SPELLED_DIMS)

// Ranks 1 to 8, static and dynamic in turn.
#define RANK_1_DIMS(DIM) DIM(a, PTOWSP_DYNAMIC)
#define RANK_2_DIMS(DIM) RANK_1_DIMS(DIM) DIM(b, 2)
#define RANK_3_DIMS(DIM) RANK_2_DIMS(DIM) DIM(c, PTOWSP_DYNAMIC)
#define RANK_4_DIMS(DIM) RANK_3_DIMS(DIM) DIM(d, 3)
#define RANK_5_DIMS(DIM) RANK_4_DIMS(DIM) DIM(e, PTOWSP_DYNAMIC)
#define RANK_6_DIMS(DIM) RANK_5_DIMS(DIM) DIM(f, 2)
#define RANK_7_DIMS(DIM) RANK_6_DIMS(DIM) DIM(g, PTOWSP_DYNAMIC)
#define RANK_8_DIMS(DIM) RANK_7_DIMS(DIM) DIM(h, 2)
PTOWSP_DEFINE_SPACE(rank_1, RANK_1_DIMS)
PTOWSP_DEFINE_SPACE(rank_2, RANK_2_DIMS)
PTOWSP_DEFINE_SPACE(rank_3, RANK_3_DIMS)
PTOWSP_DEFINE_SPACE(rank_4, RANK_4_DIMS)
PTOWSP_DEFINE_SPACE(rank_5, RANK_5_DIMS)
PTOWSP_DEFINE_SPACE(rank_6, RANK_6_DIMS)
PTOWSP_DEFINE_SPACE(rank_7, RANK_7_DIMS)
PTOWSP_DEFINE_SPACE(rank_8, RANK_8_DIMS)

#define STATIC_1_DIMS(DIM) DIM(only, 7)
#define STATIC_3_DIMS(DIM) DIM(x, 4) DIM(y, 3) DIM(z, 2)
#define STATIC_8_DIMS(DIM)                                                                         \
    DIM(a, 1) DIM(b, 2) DIM(c, 3) DIM(d, 1) DIM(e, 2) DIM(f, 2) DIM(g, 3) DIM(h, 2)
#define EMPTY_DIMS(DIM)      DIM(x, 4) DIM(none, 0)
#define DYNAMIC_2(DIM, a, b) DIM(a, PTOWSP_DYNAMIC) DIM(b, PTOWSP_DYNAMIC)
#define DYNAMIC_8_DIMS(DIM)                                                                        \
    DYNAMIC_2(DIM, a, b) DYNAMIC_2(DIM, c, d) DYNAMIC_2(DIM, e, f) DYNAMIC_2(DIM, g, h)
PTOWSP_DEFINE_SPACE(static_1, STATIC_1_DIMS)
PTOWSP_DEFINE_SPACE(static_3, STATIC_3_DIMS)
PTOWSP_DEFINE_SPACE(static_8, STATIC_8_DIMS)
PTOWSP_DEFINE_SPACE(empty_space, EMPTY_DIMS)
PTOWSP_DEFINE_SPACE(dynamic_8, DYNAMIC_8_DIMS)

// Dimensions may be called what the generated code calls its own things.
#define NAMES_DIMS(DIM)                                                                            \
    DIM(size, PTOWSP_DYNAMIC)                                                                      \
    DIM(index, 2)                                                                                  \
    DIM(coord, 3)                                                                                  \
    DIM(space, PTOWSP_DYNAMIC) DIM(stride, 2) DIM(total, PTOWSP_DYNAMIC) DIM(s, 2) DIM(name, 2)
PTOWSP_DEFINE_SPACE(names_space, NAMES_DIMS)

// -- constants, storage ---------------------------------------------------------------------------

PTOWSP_STATIC_ASSERT(decode_space_rank == 3, "the rank is a constant");
PTOWSP_STATIC_ASSERT(decode_space_head_size == 8, "a static size is a constant");
PTOWSP_STATIC_ASSERT(decode_space_batch_size == -1,
                     "a dynamic size is PTOWSP_DYNAMIC, that is, -1");
PTOWSP_STATIC_ASSERT(decode_space_chunk_size == -1,
                     "a dynamic size is PTOWSP_DYNAMIC, that is, -1");
PTOWSP_STATIC_ASSERT(decode_space_head_dynamic == 0, "head is static");
PTOWSP_STATIC_ASSERT(decode_space_batch_dynamic == 1, "batch is dynamic");
PTOWSP_STATIC_ASSERT(decode_space_chunk_dynamic == 1, "chunk is dynamic");
PTOWSP_STATIC_ASSERT(PTOWSP_DYNAMIC == -1, "as documented");
PTOWSP_STATIC_ASSERT(PTOWSP_SPACE_RANK_MAX == 8, "as documented");

PTOWSP_STATIC_ASSERT(sizeof(decode_space) == 2 * sizeof(int64_t), "statics take no storage");
PTOWSP_STATIC_ASSERT(sizeof(decode_space_coord) == 3 * sizeof(int64_t), "a member per dimension");
PTOWSP_STATIC_ASSERT(sizeof(spelled_space) == 2 * sizeof(int64_t), "statics take no storage");
PTOWSP_STATIC_ASSERT(sizeof(rank_1) == 8 && sizeof(rank_2) == 8, "statics take no storage");
PTOWSP_STATIC_ASSERT(sizeof(rank_7) == 32 && sizeof(rank_8) == 32, "statics take no storage");
PTOWSP_STATIC_ASSERT(sizeof(rank_8_coord) == 64, "a member per dimension");
PTOWSP_STATIC_ASSERT(sizeof(dynamic_8) == 64, "a member per dynamic dimension");
PTOWSP_STATIC_ASSERT(sizeof(static_1) == 1 && sizeof(static_3) == 1 && sizeof(static_8) == 1,
                     "one byte, as C demands");
PTOWSP_STATIC_ASSERT(sizeof(ptowsp_attention_space) == 24 && sizeof(ptowsp_moe_space) == 16,
                     "all dynamic");

// Usable as an array bound: a member's has to be a constant.
struct folded {
    int values[decode_space_head_size * decode_space_rank];
};

TEST(space__constants_are_usable_where_c_wants_constants) {
    assert_int_equal(sizeof(struct folded), 24 * sizeof(int));
    switch (8) {
    case decode_space_head_size: break;
    default: fail();
    }
    assert_int_equal(spelled_space_rank, 8);
    assert_int_equal(spelled_space_literal_size, 3);
    assert_int_equal(spelled_space_macro_size, 8);
    assert_int_equal(spelled_space_parentheses_size, 4);
    assert_int_equal(spelled_space_expression_size, 17);
    assert_int_equal(spelled_space_enumerator_size, 5);
    assert_int_equal(spelled_space_hexadecimal_size, 16);
    assert_int_equal(spelled_space_dynamic_size, -1);
    assert_int_equal(spelled_space_also_dynamic_size, -1);
    assert_int_equal(spelled_space_expression_dynamic, 0);
    assert_int_equal(spelled_space_enumerator_dynamic, 0);
    assert_int_equal(spelled_space_also_dynamic_dynamic, 1);
}

TEST(space__ranks_are_counted_from_1_to_8) {
    const int ranks[] = {rank_1_rank, rank_2_rank, rank_3_rank, rank_4_rank,
                         rank_5_rank, rank_6_rank, rank_7_rank, rank_8_rank};
    for (int i = 0; i < 8; i++) {
        assert_int_equal(ranks[i], i + 1);
    }
    assert_int_equal(static_8_rank, 8);
    assert_int_equal(dynamic_8_rank, 8);
}

// -- getting and setting --------------------------------------------------------------------------

TEST(space__zeroed_struct_has_dynamic_sizes_of_zero) {
    decode_space space = {0};
    assert_true(decode_space_get_batch(&space) == 0);
    assert_true(decode_space_get_head(&space) == 8);
    assert_true(decode_space_get_chunk(&space) == 0);
    assert_true(decode_space_total(&space) == 0);
    decode_space initialised = {0, 0};
    assert_true(decode_space_total(&initialised) == 0);
}

TEST(space__set_and_get_every_dynamic_dimension) {
    decode_space space = {0, 0};
    assert_ok(decode_space_set_batch(&space, 5));
    assert_ok(decode_space_set_chunk(&space, INT64_C(1) << 40));
    assert_true(decode_space_get_batch(&space) == 5);
    assert_true(decode_space_get_chunk(&space) == INT64_C(1) << 40);
    assert_true(space.batch == 5 && space.chunk == INT64_C(1) << 40);
    assert_true(decode_space_get_head(&space) == 8);
    assert_ok(decode_space_set_batch(&space, INT64_MAX));
    assert_true(decode_space_get_batch(&space) == INT64_MAX);
    assert_ok(decode_space_set_batch(&space, 0));
    assert_true(decode_space_get_batch(&space) == 0);

    spelled_space spelled = {0, 0};
    assert_ok(spelled_space_set_dynamic(&spelled, 11));
    assert_ok(spelled_space_set_also_dynamic(&spelled, 12));
    assert_true(spelled.dynamic == 11 && spelled.also_dynamic == 12);
    assert_true(spelled_space_get_literal(&spelled) == 3);
    assert_true(spelled_space_get_macro(&spelled) == 8);
    assert_true(spelled_space_get_parentheses(&spelled) == 4);
    assert_true(spelled_space_get_expression(&spelled) == 17);
    assert_true(spelled_space_get_enumerator(&spelled) == 5);
    assert_true(spelled_space_get_hexadecimal(&spelled) == 16);
    assert_true(spelled_space_get_dynamic(&spelled) == 11);
    assert_true(spelled_space_get_also_dynamic(&spelled) == 12);
    // 3 * 8 * 4 * 17 * 5 * 16 * 11 * 12 = 17,233,920
    assert_true(spelled_space_total(&spelled) == 17233920);
}

TEST(space__negative_sizes_are_refused_and_change_nothing) {
    const int64_t negative[] = {-1, PTOWSP_DYNAMIC, -2, INT32_MIN, INT64_MIN};
    decode_space space = {3, 4};
    for (size_t i = 0; i < COUNT_OF(negative); i++) {
        assert_invalid(decode_space_set_batch(&space, negative[i]));
        assert_invalid(decode_space_set_chunk(&space, negative[i]));
        assert_true(space.batch == 3 && space.chunk == 4);
        for (uint32_t at = 0; at < 3; at++) {
            int64_t sizes[3] = {1, 2, 3};
            sizes[at] = negative[i];
            ptowsp_space made = {77, {1, 2, 3, 4, 5, 6, 7, 8}}, before = made;
            assert_invalid(ptowsp_space_make(sizes, 3, &made));
            assert_memory_equal(&made, &before, sizeof made);
        }
    }
}

// -- order and round trips ------------------------------------------------------------------------

// Steps a coordinate to the next point, dimension 0 first, as an odometer does.
static void coord_step(int64_t *coord, const int64_t *sizes, uint32_t rank) {
    for (uint32_t i = 0; i < rank; i++) {
        if (++coord[i] < sizes[i]) {
            return;
        }
        coord[i] = 0;
    }
}

TEST(space__static_space_of_rank_8_round_trips) {
    static_8 space = {0};
    const int64_t sizes[8] = {1, 2, 3, 1, 2, 2, 3, 2};
    int64_t members[8] = {0};
    uint64_t expected = 0;
    for (; expected < 144; expected++) {
        static_8_coord c, at = static_8_at(&space, expected);
        memcpy(&c, members, sizeof c);
        assert_true(static_8_index(&space, c) == expected);
        assert_memory_equal(&at, &c, sizeof c);
        coord_step(members, sizes, 8);
    }
    assert_true(static_8_total(&space) == expected);  // 1 * 2 * 3 * 1 * 2 * 2 * 3 * 2
}

TEST(space__mixed_space_round_trips_for_all_small_sizes) {
    for (int64_t batch = 0; batch <= 6; batch++) {
        for (int64_t chunk = 0; chunk <= 6; chunk++) {
            decode_space space = {0, 0};
            decode_space_set_batch(&space, batch);
            decode_space_set_chunk(&space, chunk);
            ptowsp_space runtime = decode_space_runtime(&space);
            uint64_t expected = 0;
            for (int64_t k = 0; k < chunk; k++) {
                for (int64_t h = 0; h < 8; h++) {
                    for (int64_t b = 0; b < batch; b++) {
                        decode_space_coord coord = {b, h, k};
                        assert_true(decode_space_index(&space, coord) == expected);
                        decode_space_coord at = decode_space_at(&space, expected);
                        assert_true(at.batch == b && at.head == h && at.chunk == k);
                        int64_t array[3] = {b, h, k}, array_at[3];
                        assert_true(ptowsp_space_index(&runtime, array) == expected);
                        ptowsp_space_at(&runtime, expected, array_at);
                        assert_memory_equal(array, array_at, sizeof array);
                        expected++;
                    }
                }
            }
            assert_true(decode_space_total(&space) == expected);
            assert_true(ptowsp_space_total(&runtime) == expected);
        }
    }
}

TEST(space__run_time_spaces_of_every_rank_round_trip) {
    uint64_t random = test_seed();
    for (uint32_t rank = 0; rank <= PTOWSP_SPACE_RANK_MAX; rank++) {
        for (int round = 0; TEST_ROUNDS(round, 40); round++) {
            int64_t sizes[PTOWSP_SPACE_RANK_MAX] = {0};
            uint64_t points = 1;
            for (uint32_t i = 0; i < rank; i++) {
                sizes[i] = test_random_in(&random, round % 10 == 0 ? 0 : 1, rank > 5 ? 3 : 6);
                points *= (uint64_t)sizes[i];
            }
            // Those from rank on are not looked at: arrays have just as many.
            int64_t *exact = (int64_t *)test_alloc(rank, sizeof *exact);
            int64_t *coord = (int64_t *)test_alloc(rank, sizeof *coord);
            int64_t *at = (int64_t *)test_alloc(rank, sizeof *at);
            ptowsp_space space;
            memset(&space, 0xa5, sizeof space);
            memcpy(exact, sizes, rank * sizeof sizes[0]);
            assert_ok(ptowsp_space_make(exact, rank, &space));
            assert_int_equal(space.rank, rank);
            assert_memory_equal(space.sizes, sizes, rank * sizeof sizes[0]);
            for (uint32_t i = rank; i < PTOWSP_SPACE_RANK_MAX; i++) {
                space.sizes[i] = -7;
            }
            assert_true(ptowsp_space_total(&space) == points);
            for (uint64_t index = 0; index < points; index++) {
                assert_true(ptowsp_space_index(&space, coord) == index);
                ptowsp_space_at(&space, index, at);
                assert_memory_equal(at, coord, rank * sizeof *coord);
                coord_step(coord, sizes, rank);
            }
            test_release();
        }
    }
}

TEST(space__large_indices_round_trip) {
    // 3 * 8 * 2^55 is 3 * 2^58, near the end of 64 bits.
    decode_space space = {0, 0};
    decode_space_set_batch(&space, 3);
    decode_space_set_chunk(&space, INT64_C(1) << 55);
    assert_true(decode_space_total(&space) == UINT64_C(3) << 58);
    decode_space_coord coord = {2, 7, (INT64_C(1) << 55) - 1};
    assert_true(decode_space_index(&space, coord) == (UINT64_C(3) << 58) - 1);
    decode_space_coord at = decode_space_at(&space, (UINT64_C(3) << 58) - 1);
    assert_memory_equal(&at, &coord, sizeof at);
    // The largest space of one dimension.
    rank_1 line = {INT64_MAX};
    rank_1_coord last = {INT64_MAX - 1};
    assert_true(rank_1_total(&line) == (uint64_t)INT64_MAX);
    assert_true(rank_1_index(&line, last) == (uint64_t)INT64_MAX - 1);
    assert_true(rank_1_at(&line, (uint64_t)INT64_MAX - 1).a == INT64_MAX - 1);
}

// -- totals and limits ----------------------------------------------------------------------------

TEST(space__totals_saturate_beyond_64_bits) {
    decode_space space = {0, 0};
    decode_space_set_batch(&space, INT64_C(1) << 31);
    decode_space_set_chunk(&space, INT64_C(1) << 29);  // 2^31 * 8 * 2^29 = 2^63
    assert_true(decode_space_total(&space) == UINT64_C(1) << 63);
    decode_space_set_chunk(&space, (INT64_C(1) << 30) - 1);  // 2^34 * (2^30 - 1) = 2^64 - 2^34
    assert_true(decode_space_total(&space) == UINT64_MAX - (UINT64_C(1) << 34) + 1);
    decode_space_set_chunk(&space, INT64_C(1) << 30);  // 2^64
    assert_true(decode_space_total(&space) == UINT64_MAX);
    decode_space_set_chunk(&space, INT64_MAX);
    decode_space_set_batch(&space, INT64_MAX);
    assert_true(decode_space_total(&space) == UINT64_MAX);
    decode_space_set_chunk(&space, 0);  // nothing is nothing, however large the rest
    assert_true(decode_space_total(&space) == 0);
}

TEST(space__saturated_totals_stay_so_and_zero_wins_at_any_place) {
    dynamic_8 space = {INT64_MAX, INT64_MAX, INT64_MAX, 1, 2, 1, INT64_MAX, 3};
    assert_true(dynamic_8_total(&space) == UINT64_MAX);
    ptowsp_space runtime = dynamic_8_runtime(&space);
    assert_true(ptowsp_space_total(&runtime) == UINT64_MAX);
    for (uint32_t zero = 0; zero < 8; zero++) {
        ptowsp_space with_zero = runtime;
        with_zero.sizes[zero] = 0;
        assert_true(ptowsp_space_total(&with_zero) == 0);
    }
}

TEST(space__totals_are_exact_products_or_saturated) {
    uint64_t random = test_seed();
    for (int round = 0; TEST_ROUNDS(round, 20000); round++) {
        int64_t sizes[8];
        uint32_t rank = test_random_u32(&random, 1, 8);
        wide exact = wide_of_u64(1);
        for (uint32_t i = 0; i < rank; i++) {
            sizes[i] = (int64_t)(test_random(&random) >> test_random_in(&random, 1, 63));
            if (test_random_in(&random, 0, 19) > 0 && sizes[i] == 0) {
                sizes[i] = 1;
            }
        }
        bool has_zero = false;
        for (uint32_t i = 0; i < rank; i++) {
            has_zero = has_zero || sizes[i] == 0;
            // Once beyond 64 bits it stays there, unless a size is 0.
            exact = exact.high ? exact : wide_mul(exact, wide_of_i64(sizes[i]));
        }
        uint64_t expected = has_zero ? 0 : exact.high ? UINT64_MAX : exact.low;
        ptowsp_space space = {0, {0}};
        assert_ok(ptowsp_space_make(sizes, rank, &space));
        assert_true(ptowsp_space_total(&space) == expected);
        if (rank == 8) {
            dynamic_8 same = {sizes[0], sizes[1], sizes[2], sizes[3],
                              sizes[4], sizes[5], sizes[6], sizes[7]};
            assert_true(dynamic_8_total(&same) == expected);
        }
    }
}

TEST(space__multiply_saturates) {
    assert_true(ptowsp_space_multiply(0, 0) == 0);
    assert_true(ptowsp_space_multiply(UINT64_MAX, 0) == 0);
    assert_true(ptowsp_space_multiply(0, UINT64_MAX) == 0);
    assert_true(ptowsp_space_multiply(UINT64_MAX, 1) == UINT64_MAX);
    assert_true(ptowsp_space_multiply(1, UINT64_MAX) == UINT64_MAX);
    assert_true(ptowsp_space_multiply(UINT64_MAX, 2) == UINT64_MAX);
    assert_true(ptowsp_space_multiply(UINT64_C(1) << 32, UINT64_C(1) << 32) == UINT64_MAX);
    assert_true(ptowsp_space_multiply(UINT64_C(1) << 32, UINT32_MAX) ==
                UINT64_C(0xffffffff00000000));
    // 3 * 5 * 17 * 257 * 641 * 65537 * 6700417 = 2^64 - 1
    assert_true(ptowsp_space_multiply(UINT64_C(4294967297), UINT32_MAX) == UINT64_MAX);
}

TEST(space__static_size_of_zero_makes_an_empty_space) {
    empty_space space = {0};
    assert_int_equal(empty_space_none_size, 0);
    assert_int_equal(empty_space_none_dynamic, 0);
    assert_true(empty_space_get_none(&space) == 0);
    assert_true(empty_space_total(&space) == 0);
}

TEST(space__rank_0_has_one_point) {
    ptowsp_space space;
    memset(&space, 0xa5, sizeof space);
    assert_ok(ptowsp_space_make(NULL, 0, &space));
    assert_int_equal(space.rank, 0);
    assert_true(ptowsp_space_total(&space) == 1);
    int64_t nothing = 99;
    assert_true(ptowsp_space_index(&space, &nothing) == 0);
    ptowsp_space_at(&space, 0, &nothing);
    assert_true(nothing == 99);
}

TEST(space__make_refuses_what_it_cannot_hold_and_changes_nothing) {
    const int64_t sizes[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    ptowsp_space space = {77, {1, 2, 3, 4, 5, 6, 7, 8}}, before = space;
    assert_invalid(ptowsp_space_make(sizes, 9, &space));
    assert_invalid(ptowsp_space_make(sizes, UINT32_MAX, &space));
    assert_invalid(ptowsp_space_make(NULL, 1, &space));
    assert_invalid(ptowsp_space_make(NULL, 8, &space));
    assert_invalid(ptowsp_space_make(NULL, 9, &space));
    assert_memory_equal(&space, &before, sizeof space);
    assert_invalid(ptowsp_space_make(sizes, 1, NULL));
    assert_ok(ptowsp_space_make(sizes, 8, &space));
    assert_int_equal(space.rank, 8);
    const int64_t extremes[2] = {0, INT64_MAX};
    assert_ok(ptowsp_space_make(extremes, 2, &space));
    assert_true(space.sizes[0] == 0 && space.sizes[1] == INT64_MAX);
}

// -- the rest of what a static space gives --------------------------------------------------------

TEST(space__runtime_conversion_has_all_sizes) {
    rank_8 space = {11, 12, 13, 14};  // a, c, e, g
    ptowsp_space runtime = rank_8_runtime(&space);
    const int64_t sizes[8] = {11, 2, 12, 3, 13, 2, 14, 2};
    assert_int_equal(runtime.rank, 8);
    assert_memory_equal(runtime.sizes, sizes, sizeof sizes);
    static_1 small = {0};
    runtime = static_1_runtime(&small);
    assert_int_equal(runtime.rank, 1);
    assert_true(runtime.sizes[0] == 7);
}

TEST(space__static_and_run_time_spaces_agree) {
    uint64_t random = test_seed();
    for (int round = 0; TEST_ROUNDS(round, 200); round++) {
        rank_8 space = {test_random_in(&random, 1, 9), test_random_in(&random, 1, 9),
                        test_random_in(&random, 1, 9), test_random_in(&random, 1, 9)};
        ptowsp_space runtime = rank_8_runtime(&space);
        uint64_t total = rank_8_total(&space);
        assert_true(total == 24 * (uint64_t)(space.a * space.c * space.e * space.g));
        assert_true(ptowsp_space_total(&runtime) == total);
        for (int k = 0; k < 50; k++) {
            uint64_t index = test_random(&random) % total;
            rank_8_coord at = rank_8_at(&space, index);
            assert_true(rank_8_index(&space, at) == index);
            int64_t coord[8];
            ptowsp_space_at(&runtime, index, coord);
            const int64_t members[8] = {at.a, at.b, at.c, at.d, at.e, at.f, at.g, at.h};
            assert_memory_equal(coord, members, sizeof coord);
            assert_true(ptowsp_space_index(&runtime, coord) == index);
        }
    }
}

TEST(space__predeclared_spaces_are_all_dynamic) {
    assert_int_equal(ptowsp_attention_space_rank, 3);
    assert_int_equal(ptowsp_moe_space_rank, 2);
    assert_int_equal(ptowsp_attention_space_batch_dynamic, 1);
    assert_int_equal(ptowsp_attention_space_head_dynamic, 1);
    assert_int_equal(ptowsp_attention_space_chunk_dynamic, 1);
    assert_int_equal(ptowsp_moe_space_batch_dynamic, 1);
    assert_int_equal(ptowsp_moe_space_expert_dynamic, 1);
    ptowsp_attention_space attention = {0, 0, 0};
    assert_ok(ptowsp_attention_space_set_batch(&attention, 2));
    assert_ok(ptowsp_attention_space_set_head(&attention, 3));
    assert_ok(ptowsp_attention_space_set_chunk(&attention, 5));
    assert_true(ptowsp_attention_space_total(&attention) == 30);
    ptowsp_attention_space_coord coord = {1, 2, 4};  // 1 + 2 * (2 + 3 * 4) = 29
    assert_true(ptowsp_attention_space_index(&attention, coord) == 29);
    ptowsp_moe_space moe = {0, 0};
    assert_ok(ptowsp_moe_space_set_batch(&moe, 4));
    assert_ok(ptowsp_moe_space_set_expert(&moe, 64));
    assert_true(ptowsp_moe_space_total(&moe) == 256);
    ptowsp_moe_space_coord at = ptowsp_moe_space_at(&moe, 7);  // 7 = 3 + 4 * 1
    assert_true(at.batch == 3 && at.expert == 1);
    ptowsp_space runtime = ptowsp_moe_space_runtime(&moe);
    assert_true(runtime.rank == 2 && runtime.sizes[0] == 4 && runtime.sizes[1] == 64);
}

TEST(space__dimensions_may_have_the_names_of_the_code_around_them) {
    names_space space = {0, 0, 0};
    assert_ok(names_space_set_size(&space, 2));
    assert_ok(names_space_set_space(&space, 3));
    assert_ok(names_space_set_total(&space, 2));
    assert_true(names_space_total(&space) == 2 * 2 * 3 * 3 * 2 * 2 * 2 * 2);
    for (uint64_t index = 0; index < names_space_total(&space); index++) {
        assert_true(names_space_index(&space, names_space_at(&space, index)) == index);
    }
}

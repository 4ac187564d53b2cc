// Linear layouts (section 27 of ptowsp.h): matrices over F2, by enumeration of all indices.

#include "test.h"

static ptowsp_linear random_linear(uint64_t *random, uint32_t in_bits, uint32_t out_bits) {
    ptowsp_linear linear;
    assert_ok(ptowsp_linear_identity(0, &linear));
    linear.in_bits = in_bits;
    linear.out_bits = out_bits;
    for (uint32_t i = 0; i < in_bits; i++) {
        linear.columns[i] =
            test_random(random) & (out_bits == 64 ? UINT64_MAX : (UINT64_C(1) << out_bits) - 1);
    }
    return linear;
}

TEST(linear__makers_are_right_on_every_index) {
    ptowsp_linear l;
    for (uint32_t x = 0; x < 256; x++) {
        assert_ok(ptowsp_linear_identity(8, &l));
        assert_int_equal(ptowsp_linear_apply(&l, x), x);
        assert_ok(ptowsp_linear_strided(8, 3, &l));
        assert_int_equal(ptowsp_linear_apply(&l, x), x * 8);
        for (uint32_t owners = 0; owners <= 8; owners++) {
            for (uint32_t block = 0; block + owners <= 8; block++) {
                assert_ok(ptowsp_linear_blocked(8, owners, block, &l));
                const uint32_t each = 256u >> owners, position = x % each, owner = x / each;
                const uint32_t size = 1u << block, turn = position / size;
                assert_int_equal(ptowsp_linear_apply(&l, x),
                                 (turn * (1u << owners) + owner) * size + position % size);
            }
        }
        assert_ok(ptowsp_linear_swizzle(4, 4, 1, 3, &l));
        assert_int_equal(ptowsp_linear_apply(&l, x), x / 16 * 16 + ((x % 16) ^ (x / 32 % 8)));
    }
}

TEST(linear__algebra_is_right_on_every_index) {
    uint64_t random = test_seed();
    uint32_t inverses = 0;
    for (uint32_t round = 0; TEST_ROUNDS(round, 2000); round++) {
        const uint32_t in = test_random_u32(&random, 0, 7);
        const uint32_t middle = test_random_u32(&random, 0, 7);
        ptowsp_linear a = random_linear(&random, in, middle), both, turned, inverse;
        ptowsp_linear b = random_linear(&random, middle, test_random_u32(&random, 0, 7));
        assert_ok(ptowsp_linear_compose(&b, &a, &both));
        assert_ok(ptowsp_linear_transpose(&a, &turned));
        bool seen[128] = {false};
        uint32_t images = 0;
        for (uint32_t x = 0; x < 1u << in; x++) {
            const uint64_t y = ptowsp_linear_apply(&a, x);
            assert_int_equal(ptowsp_linear_apply(&both, x), ptowsp_linear_apply(&b, y));
            images += !seen[y];
            seen[y] = true;
            for (uint32_t z = 0; z < 1u << middle; z++) {  // <Ax, z> = <x, Az>
                assert_int_equal(__builtin_parityll(y & z),
                                 __builtin_parityll(x & ptowsp_linear_apply(&turned, z)));
            }
        }
        assert_int_equal(images, 1u << ptowsp_linear_rank(&a));
        if (in == middle) {
            const ptowsp_status status = ptowsp_linear_inverse(&a, &inverse);
            assert_int_equal(status, images == 1u << in ? PTOWSP_OK : PTOWSP_STUCK);
            for (uint32_t x = 0; status == PTOWSP_OK && x < 1u << in; x++) {
                assert_int_equal(ptowsp_linear_apply(&inverse, ptowsp_linear_apply(&a, x)), x);
            }
            inverses += status == PTOWSP_OK;
        }
        uint32_t first = test_random_u32(&random, 0, 4), banks = 2, words[128] = {0};
        uint64_t most = 0, fullest = 0;
        for (uint32_t y = 0; y < 128; y++) {
            const uint32_t bank = y >> first & ((1u << banks) - 1);
            words[bank] += seen[y];
            fullest = words[bank] > fullest ? words[bank] : fullest;
        }
        assert_ok(ptowsp_linear_conflicts(&a, first, banks, &most));
        assert_int_equal(most, fullest);
    }
    assert_met(inverses > 20);
}

// Columns of a 32 x 32 matrix over 32 banks: 32 accesses to one bank; swizzled, each its own.
TEST(linear__swizzle_frees_columns_of_conflicts) {
    ptowsp_linear column, swizzle, both;
    uint64_t accesses = 0;
    assert_ok(ptowsp_linear_strided(5, 5, &column));
    assert_ok(ptowsp_linear_conflicts(&column, 0, 5, &accesses));
    assert_int_equal(accesses, 32);
    for (uint32_t count = 0; count <= 5; count++) {
        assert_ok(ptowsp_linear_swizzle(5, 5, 0, count, &swizzle));
        assert_ok(ptowsp_linear_compose(&swizzle, &column, &both));
        assert_ok(ptowsp_linear_conflicts(&both, 0, 5, &accesses));
        assert_int_equal(accesses, 32 >> count);
    }
}

TEST(linear__64_bits_work_and_more_are_refused) {
    uint64_t random = test_seed(), accesses = 0;
    ptowsp_linear l, inverse, both, identity;
    assert_ok(ptowsp_linear_identity(64, &identity));
    for (uint32_t found = 0; found < 20;) {
        l = random_linear(&random, 64, 64);
        assert_int_equal(ptowsp_linear_inverse(&l, &inverse) == PTOWSP_OK,
                         ptowsp_linear_rank(&l) == 64);
        if (ptowsp_linear_rank(&l) == 64) {
            assert_ok(ptowsp_linear_compose(&l, &inverse, &both));
            assert_memory_equal(&both, &identity, sizeof both);
            found++;
        }
    }
    assert_ok(ptowsp_linear_conflicts(&identity, 0, 64, &accesses));
    assert_int_equal(accesses, 1);
    assert_int_equal(ptowsp_linear_conflicts(&identity, 64, 0, &accesses), PTOWSP_LIMIT_EXCEEDED);
    assert_invalid(ptowsp_linear_conflicts(&identity, 60, 5, &accesses));
    assert_int_equal(ptowsp_linear_identity(65, &l), PTOWSP_UNSUPPORTED_SIZE);
    assert_int_equal(ptowsp_linear_strided(64, 1, &l), PTOWSP_UNSUPPORTED_SIZE);
    assert_int_equal(ptowsp_linear_strided(2, UINT32_MAX, &l), PTOWSP_UNSUPPORTED_SIZE);
    assert_invalid(ptowsp_linear_blocked(8, 5, 4, &l));
    assert_invalid(ptowsp_linear_blocked(8, UINT32_MAX, 0, &l));
    assert_invalid(ptowsp_linear_swizzle(3, 4, 2, 3, &l));
    assert_int_equal(ptowsp_linear_swizzle(60, 5, 0, 1, &l), PTOWSP_UNSUPPORTED_SIZE);
    l = identity;
    l.out_bits = 63;  // column 63 has a bit beyond
    assert_invalid(ptowsp_linear_transpose(&l, &both));
    assert_invalid(ptowsp_linear_inverse(NULL, &both));
}

// The ground floor: statuses, hash, clock, text sinks, and the private checked products.
//
// Expected values: statuses and their names are written out again from the specification. FNV-1a-64
// vectors are those published with the algorithm (draft-eastlake-fnv, appendix C, and the authors'
// test suite). Products and quotients are compared with 128-bit integers, cut-off text with what
// snprintf is documented to keep.

#include "src/base/base.h"
#include "src/base/text.h"

#include "test.h"
#include "wide.h"

// -- statuses -------------------------------------------------------------------------------------

static const struct {
    ptowsp_status status;
    int value;
    const char *name;
} statuses[] = {
    {PTOWSP_OK, 0, "OK"},
    {PTOWSP_BUFFER_OVERFLOW, -1, "BUFFER_OVERFLOW"},
    {PTOWSP_UNSUPPORTED_SIZE, -2, "UNSUPPORTED_SIZE"},
    {PTOWSP_INVALID_PARAMS, -3, "INVALID_PARAMS"},
    {PTOWSP_OUT_OF_MEMORY, -4, "OUT_OF_MEMORY"},
    {PTOWSP_LIMIT_EXCEEDED, -5, "LIMIT_EXCEEDED"},
    {PTOWSP_UNSUPPORTED, -6, "UNSUPPORTED"},
    {PTOWSP_SYSTEM_FAILED, -7, "SYSTEM_FAILED"},
    {PTOWSP_BUSY, -8, "BUSY"},
    {PTOWSP_UNBOUND, -9, "UNBOUND"},
    {PTOWSP_STUCK, -10, "STUCK"},
    {PTOWSP_KERNEL_FAILED, -11, "KERNEL_FAILED"},
    {PTOWSP_CANCELLED, -12, "CANCELLED"},
    {PTOWSP_SKIPPED, -13, "SKIPPED"},
    {PTOWSP_LEAKED, -14, "LEAKED"},
    {PTOWSP_TIMED_OUT, -15, "TIMED_OUT"},
    {PTOWSP_DIFFERENT, -16, "DIFFERENT"},
    {PTOWSP_RANK_FAILED, -17, "RANK_FAILED"},
};

#define STATUS_COUNT (COUNT_OF(statuses))

TEST(base__status_values_and_names_never_change) {
    for (size_t i = 0; i < STATUS_COUNT; i++) {
        assert_true((int)statuses[i].status == statuses[i].value);
        assert_string_equal(ptowsp_status_name(statuses[i].status), statuses[i].name);
    }
    assert_true(sizeof(ptowsp_status) == sizeof(int));
}

TEST(base__the_list_of_statuses_has_no_other_entries) {
#define COUNT_STATUS(name, value, text) +1
    assert_int_equal(0 PTOWSP_STATUSES(COUNT_STATUS), STATUS_COUNT);
#undef COUNT_STATUS
}

// That they are distinct, and what other values have, is in enums_test.c.
TEST(base__status_texts_are_lines) {
    for (size_t i = 0; i < STATUS_COUNT; i++) {
        assert_null(strchr(ptowsp_status_text(statuses[i].status), '\n'));
    }
    assert_string_equal(ptowsp_status_text(PTOWSP_BUFFER_OVERFLOW), "the buffer is too small");
    assert_string_equal(ptowsp_status_text(PTOWSP_OUT_OF_MEMORY),
                        "the allocator returned no memory");
}

TEST(base__version_text_is_made_of_the_version_numbers) {
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", PTOWSP_VERSION_MAJOR, PTOWSP_VERSION_MINOR,
             PTOWSP_VERSION_PATCH);
    assert_string_equal(PTOWSP_VERSION, text);
    assert_string_equal(ptowsp_version(), text);
}

// -- hash and clock -------------------------------------------------------------------------------

TEST(base__hash_gives_the_published_fnv1a_vectors) {
    static const struct {
        const char *text;
        size_t size;
        uint64_t hash;
    } vectors[] = {
        {"", 0, UINT64_C(0xcbf29ce484222325)},
        {"a", 1, UINT64_C(0xaf63dc4c8601ec8c)},
        {"b", 1, UINT64_C(0xaf63df4c8601f1a5)},
        {"c", 1, UINT64_C(0xaf63de4c8601eff2)},
        {"d", 1, UINT64_C(0xaf63d94c8601e773)},
        {"e", 1, UINT64_C(0xaf63d84c8601e5c0)},
        {"f", 1, UINT64_C(0xaf63db4c8601ead9)},
        {"fo", 2, UINT64_C(0x08985907b541d342)},
        {"foo", 3, UINT64_C(0xdcb27518fed9d577)},
        {"foob", 4, UINT64_C(0xdd120e790c2512af)},
        {"fooba", 5, UINT64_C(0xcac165afa2fef40a)},
        {"foobar", 6, UINT64_C(0x85944171f73967e8)},
        {"", 1, UINT64_C(0xaf63bd4c8601b7df)},        // the terminator is hashed
        {"foobar", 7, UINT64_C(0x34531ca7168b8f38)},  // here, too
        {"chongo was here!\n", 17, UINT64_C(0x46810940eff5f915)},
        {"\xd5\x6b\xb9\x53\x42\x87\x08\x36", 8, 0},  // the shortest text that hashes to zero
        {"\xff\x00\x00\x01", 4, UINT64_C(0x6961196491cc682d)},  // bytes are not signed
    };
    for (size_t i = 0; i < COUNT_OF(vectors); i++) {
        assert_true(ptowsp_hash(PTOWSP_HASH_START, vectors[i].text, vectors[i].size) ==
                    vectors[i].hash);
    }
    assert_true(PTOWSP_HASH_START == UINT64_C(0xcbf29ce484222325));
    assert_true(ptowsp_hash(42, NULL, 0) == 42);
}

TEST(base__hash_of_a_concatenation_goes_on_from_the_first_part) {
    uint64_t random = test_seed();
    unsigned char bytes[200];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)test_random(&random);
    }
    uint64_t whole = ptowsp_hash(PTOWSP_HASH_START, bytes, sizeof bytes);
    for (size_t cut = 0; cut <= sizeof bytes; cut++) {
        uint64_t hash = ptowsp_hash(PTOWSP_HASH_START, bytes, cut);
        assert_true(ptowsp_hash(hash, bytes + cut, sizeof bytes - cut) == whole);
    }
}

TEST(base__clock_never_goes_back_and_counts_nanoseconds) {
    uint64_t first = ptowsp_clock_ns(), last = first;
    for (int i = 0; i < 200000; i++) {
        uint64_t now = ptowsp_clock_ns();
        assert_true(now >= last);
        last = now;
    }
    assert_true(last > first);
    // 200,000 readings take longer than 20 us and, on whatever machine, less than 10 minutes.
    assert_true(last - first > 20000 && last - first < UINT64_C(600000000000));
}

// -- text sinks -----------------------------------------------------------------------------------

// The buffer has what fits of what has been written, and a terminator if it has a byte; also anew, and
// with no data at all where its size is 0. Pieces have no terminator.
TEST(text__buffer_keeps_what_fits_and_counts_everything) {
    static const size_t splits[][10] = {{10},      {1, 9},  {5, 5},
                                        {3, 3, 4}, {0, 10}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}};
    const char *letters = (const char *)memcpy(test_alloc(10, 1), "abcdefghij", 10);
    for (size_t split = 0; split < COUNT_OF(splits); split++) {
        for (size_t size = 0; size <= 13; size++) {
            char *data = (char *)test_alloc(size, 1), expected[16] = "";  // of exactly its size
            ptowsp_output_buffer buffer = {split % 2 || size > 0 ? data : NULL, size, 999};
            for (int again = 0; again < 2; again++) {
                memset(data, '#', size ? size : 1);
                ptowsp_output text = ptowsp_output_to_buffer(&buffer);
                for (size_t piece = 0, done = 0; piece <= 10; piece++) {
                    assert_int_equal(buffer.length, done);
                    if (size > 0) {
                        snprintf(expected, size, "%.*s", (int)done, "abcdefghij");
                        assert_string_equal(data, expected);
                    } else {
                        assert_int_equal(data[0], '#');
                    }
                    if (piece < 10) {
                        text.write(text.user, letters + done, splits[split][piece]);
                        done += splits[split][piece];
                    }
                }
                assert_int_equal(buffer.length, 10);
            }
        }
    }
    test_release();
}

// A file takes all bytes; one that is open for reading takes none.
TEST(text__a_file_is_a_sink) {
    char read[8] = "";
    FILE *file = tmpfile();
    assert_non_null(file);
    const ptowsp_output output = ptowsp_output_to_file(file);
    assert_true(output.write(output.user, "ab", 2));
    assert_true(output.write(output.user, "\0c", 2));
    rewind(file);
    assert_int_equal(fread(read, 1, sizeof read, file), 4);
    assert_memory_equal(read, "ab\0c", 4);
    assert_int_equal(fclose(file), 0);
    FILE *closed = fopen("/dev/null", "r");
    assert_non_null(closed);
    const ptowsp_output refuses = ptowsp_output_to_file(closed);
    assert_false(refuses.write(refuses.user, "ab", 2));
    assert_int_equal(fclose(closed), 0);
    assert_null(ptowsp_output_to_file(NULL).write);
}

typedef struct collected {
    char data[4096];
    size_t length;
    size_t calls;
} collected;

static bool collect(void *user, const void *text, size_t length) {
    collected *all = (collected *)user;
    assert_true(all->length + length < sizeof all->data);
    memcpy(all->data + all->length, text, length);
    all->length += length;
    all->data[all->length] = '\0';
    all->calls++;
    return true;
}

TEST(text__what_prints_gives_a_callback_and_a_buffer_the_same) {
    const char *expected = "#7 tier 1 first (3, 0) [0, 1024)";  // the header's example
    ptowsp_work work = ptowsp_work_of(7, 1, PTOWSP_WORK_FIRST, 3, 0, 0, 1024);
    collected all = {0};
    ptowsp_output sink = {collect, &all};
    ptowsp_work_print(&work, sink);
    assert_string_equal(all.data, expected);
    assert_true(all.calls > 0);
    char data[60];
    ptowsp_work_print(&work, TEST_TEXT(data));
    assert_string_equal(data, expected);
}

// What is formatted goes through a piece of fixed size, and ends where that does.
TEST(text__formats_are_cut_and_no_more_than_that) {
    static char endless[3000];
    memset(endless, 'x', sizeof endless - 1);
    collected w = {0};
    const ptowsp_output text = {collect, &w};
    pwsp_text_format(text, "%s", "");
    assert_int_equal(w.length, 0);
    for (size_t length = PWSP_TEXT_PIECE_MAX - 2; length <= PWSP_TEXT_PIECE_MAX + 1; length++) {
        w.length = 0;
        pwsp_text_format(text, "%.*s", (int)length, endless);
        assert_int_equal(w.length, length < PWSP_TEXT_PIECE_MAX ? length : PWSP_TEXT_PIECE_MAX - 1);
        assert_int_equal(strspn(w.data, "x"), w.length);
    }
}

// -- products, quotients, minimum and maximum -----------------------------------------------------

// Numbers of all magnitudes, and those around powers of two.
static uint64_t number_of_any_size(uint64_t *random) {
    uint64_t number = test_random(random) >> test_random_in(random, 0, 63);
    if (test_random_in(random, 0, 3) == 0) {
        number = (UINT64_C(1) << test_random_in(random, 0, 63)) +
                 (uint64_t)test_random_in(random, -1, 1);
    }
    return number;
}

static void check_product(uint64_t a, uint64_t b) {
    uint64_t product = 0;
    const wide exact = wide_mul(wide_of_u64(a), wide_of_u64(b));
    bool fits = pwsp_mul_fits(a, b, &product);
    assert_true(fits == (exact.high == 0));
    assert_true(!fits || product == exact.low);
}

TEST(base__mul_fits_says_whether_64_bits_hold_the_product) {
    uint64_t random = test_seed();
    const uint64_t ends[] = {0,
                             1,
                             2,
                             3,
                             UINT32_MAX,
                             UINT64_C(1) << 32,
                             (UINT64_C(1) << 32) + 1,
                             UINT64_C(1) << 63,
                             UINT64_MAX / 3,
                             UINT64_MAX - 1,
                             UINT64_MAX};
    const size_t end_count = COUNT_OF(ends);
    for (size_t i = 0; i < end_count; i++) {
        for (size_t j = 0; j < end_count; j++) {
            check_product(ends[i], ends[j]);
        }
    }
    for (int i = 0; TEST_ROUNDS(i, 200000); i++) {
        uint64_t a = number_of_any_size(&random), b = number_of_any_size(&random);
        check_product(a, b);
        if (a > 1) {
            check_product(a, UINT64_MAX / a);  // the last that fits
            check_product(a, UINT64_MAX / a + 1);
        }
    }
}

TEST(base__ceil_div_rounds_up_without_overflow) {
    uint64_t random = test_seed();
    assert_true(pwsp_ceil_div_u64(0, 1) == 0);
    assert_true(pwsp_ceil_div_u64(1, UINT64_MAX) == 1);
    assert_true(pwsp_ceil_div_u64(UINT64_MAX, 1) == UINT64_MAX);
    assert_true(pwsp_ceil_div_u64(UINT64_MAX, UINT64_MAX) == 1);
    assert_true(pwsp_ceil_div_u64(UINT64_MAX, 2) == UINT64_C(1) << 63);
    assert_true(pwsp_ceil_div_u64(UINT64_MAX - 1, UINT64_MAX) == 1);
    for (int i = 0; TEST_ROUNDS(i, 200000); i++) {
        uint64_t a = number_of_any_size(&random), b = number_of_any_size(&random);
        b = b ? b : 1;
        uint64_t quotient = pwsp_ceil_div_u64(a, b);
        // The smallest q with q * b >= a.
        const wide divisor = wide_of_u64(b), reached = wide_mul(wide_of_u64(quotient), divisor);
        assert_true(wide_compare(reached, wide_of_u64(a)) >= 0);
        assert_true(quotient == 0 || wide_compare(wide_sub(reached, divisor), wide_of_u64(a)) < 0);
    }
}

// The references' own numbers, which are the same on machines that have no such type.
TEST(base__wide_numbers_are_those_of_the_compiler) {
#ifdef __SIZEOF_INT128__
    __extension__ typedef __int128 exact;
    __extension__ typedef unsigned __int128 bits;
    const uint64_t lowest = UINT64_C(1) << 63;  // the magnitude may be 2^127
    uint64_t random = test_seed();
    for (int i = 0; TEST_ROUNDS(i, 20000); i++) {
        uint64_t words[4];
        for (int k = 0; k < 4; k++) {
            words[k] = number_of_any_size(&random);
        }
        // Numbers of one word, their negatives, and of two.
        const wide a = i % 3 == 0   ? wide_of_u64(words[0])
                       : i % 3 == 1 ? wide_neg(wide_of_u64(words[0]))
                                    : wide_of_bits(words[0], words[1]);
        const wide b = i % 2 ? wide_of_i64((int64_t)words[2]) : wide_of_bits(words[2], words[3]);
        const exact x = (exact)((bits)a.high << 64 | a.low),
                    y = (exact)((bits)b.high << 64 | b.low);
        const unsigned count = (unsigned)(words[3] % 64);
        const bool can_divide = y != 0 && a.high != lowest && b.high != lowest;
#define SAME(got, expected)                                                                        \
    assert_true((got).low == (uint64_t)(bits)(expected) &&                                         \
                (got).high == (uint64_t)((bits)(expected) >> 64))
        SAME(wide_add(a, b), (bits)x + (bits)y);
        SAME(wide_sub(a, b), (bits)x - (bits)y);
        SAME(wide_mul(a, b), (bits)x * (bits)y);
        SAME(wide_shift_right(a, count), x >> count);
        assert_int_equal(wide_compare(a, b), (x > y) - (x < y));
        if (can_divide) {
            SAME(wide_div(a, b), x / y);
            SAME(wide_rem(a, b), x % y);
        }
#undef SAME
    }
#else
    skip();
#endif
}

TEST(base__min_and_max_take_64_bits) {
    assert_true(pwsp_min_u64(0, UINT64_MAX) == 0 && pwsp_min_u64(UINT64_MAX, 0) == 0);
    assert_true(pwsp_max_u64(0, UINT64_MAX) == UINT64_MAX &&
                pwsp_max_u64(UINT64_MAX, 0) == UINT64_MAX);
    assert_true(pwsp_min_u64(5, 5) == 5 && pwsp_max_u64(5, 5) == 5);
}

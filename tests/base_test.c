// The ground floor: statuses, hash, clock, text sinks, and the private arena and checked products.
//
// Expected values: statuses and their names are written out again from the specification. FNV-1a-64
// vectors are those published with the algorithm (draft-eastlake-fnv, appendix C, and the authors'
// test suite). Products and quotients are compared with 128-bit integers, cut-off text with what
// snprintf is documented to keep.

#include "../src/base/arena.h"
#include "../src/base/text.h"

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

#define STATUS_COUNT (sizeof statuses / sizeof statuses[0])

static void base__status_values_and_names_never_change(void **state) {
    (void)state;
    for (size_t i = 0; i < STATUS_COUNT; i++) {
        assert_true((int)statuses[i].status == statuses[i].value);
        assert_string_equal(ptowsp_status_name(statuses[i].status), statuses[i].name);
    }
    assert_true(sizeof(ptowsp_status) == sizeof(int));
}

static void base__the_list_of_statuses_has_no_other_entries(void **state) {
    (void)state;
#define COUNT_STATUS(name, value, text) +1
    assert_int_equal(0 PTOWSP_STATUSES(COUNT_STATUS), STATUS_COUNT);
#undef COUNT_STATUS
}

static void base__status_texts_are_distinct_lines(void **state) {
    (void)state;
    for (size_t i = 0; i < STATUS_COUNT; i++) {
        const char *text = ptowsp_status_text(statuses[i].status);
        assert_true(strlen(text) > 0);
        assert_null(strchr(text, '\n'));
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(text, ptowsp_status_text(statuses[j].status));
        }
    }
    assert_string_equal(ptowsp_status_text(PTOWSP_OK), "ok");
    assert_string_equal(ptowsp_status_text(PTOWSP_BUFFER_OVERFLOW), "the buffer is too small");
    assert_string_equal(ptowsp_status_text(PTOWSP_OUT_OF_MEMORY),
                        "the allocator returned no memory");
}

static void base__other_values_have_the_name_unknown_and_some_text(void **state) {
    (void)state;
    const int others[] = {1, 2, -99, -100, 1000, 0x7fffffff, INT32_MIN};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_string_equal(ptowsp_status_name((ptowsp_status)others[i]), "UNKNOWN");
        const char *text = ptowsp_status_text((ptowsp_status)others[i]);
        assert_true(strlen(text) > 0);
        for (size_t j = 0; j < STATUS_COUNT; j++) {
            assert_string_not_equal(text, ptowsp_status_text(statuses[j].status));
        }
    }
}

static void base__version_text_is_made_of_the_version_numbers(void **state) {
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", PTOWSP_VERSION_MAJOR, PTOWSP_VERSION_MINOR,
             PTOWSP_VERSION_PATCH);
    assert_string_equal(PTOWSP_VERSION, text);
    assert_string_equal(ptowsp_version(), text);
}

// -- hash and clock -------------------------------------------------------------------------------

static void base__hash_gives_the_published_fnv1a_vectors(void **state) {
    (void)state;
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
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        assert_true(ptowsp_hash(PTOWSP_HASH_START, vectors[i].text, vectors[i].size) ==
                    vectors[i].hash);
    }
    assert_true(PTOWSP_HASH_START == UINT64_C(0xcbf29ce484222325));
    assert_true(ptowsp_hash(42, NULL, 0) == 42);
}

static void base__hash_of_a_concatenation_goes_on_from_the_first_part(void **state) {
    (void)state;
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

static void base__clock_never_goes_back_and_counts_nanoseconds(void **state) {
    (void)state;
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

// Writes "abcdefghij" in pieces given by their lengths.
static void write_letters(ptowsp_text text, const size_t *pieces, size_t piece_count) {
    const char *letters = "abcdefghij";
    for (size_t i = 0; i < piece_count; i++) {
        text.write(text.user, letters, pieces[i]);
        letters += pieces[i];
    }
}

static void text__buffer_keeps_what_fits_and_counts_everything(void **state) {
    (void)state;
    static const size_t splits[][10] = {{10},      {1, 9},  {5, 5},
                                        {3, 3, 4}, {0, 10}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}};
    for (size_t split = 0; split < sizeof splits / sizeof splits[0]; split++) {
        for (size_t size = 0; size <= 13; size++) {
            char *data = (char *)malloc(size ? size : 1);  // exactly, for the address sanitizer
            assert_non_null(data);
            memset(data, '#', size ? size : 1);
            ptowsp_text_buffer buffer = {data, size, 999};
            ptowsp_text text = ptowsp_text_to_buffer(&buffer);
            assert_int_equal(buffer.length, 0);
            if (size > 0) {
                assert_int_equal(data[0], '\0');
            }
            write_letters(text, splits[split], 10);
            assert_int_equal(buffer.length, 10);
            char expected[16];
            if (size > 0) {
                snprintf(expected, size, "%s", "abcdefghij");
                assert_string_equal(data, expected);
            } else {
                assert_int_equal(data[0], '#');
            }
            free(data);
        }
    }
}

static void text__buffer_is_terminated_after_every_piece(void **state) {
    (void)state;
    char data[6];
    memset(data, '#', sizeof data);
    ptowsp_text_buffer buffer = {data, sizeof data, 0};
    ptowsp_text text = ptowsp_text_to_buffer(&buffer);
    text.write(text.user, "ab", 2);
    assert_string_equal(data, "ab");
    text.write(text.user, "", 0);
    assert_string_equal(data, "ab");
    text.write(text.user, "cde", 3);  // fits exactly: five letters and the terminator
    assert_string_equal(data, "abcde");
    assert_int_equal(buffer.length, 5);
    text.write(text.user, "fghijklm", 8);
    assert_string_equal(data, "abcde");
    assert_int_equal(buffer.length, 13);
    text.write(text.user, "n", 1);
    assert_int_equal(buffer.length, 14);
    assert_string_equal(data, "abcde");
}

static void text__buffer_of_size_zero_may_have_no_data(void **state) {
    (void)state;
    ptowsp_text_buffer buffer = {NULL, 0, 7};
    ptowsp_text text = ptowsp_text_to_buffer(&buffer);
    assert_int_equal(buffer.length, 0);
    text.write(text.user, "hello", 5);
    assert_int_equal(buffer.length, 5);
}

static void text__a_new_sink_empties_the_buffer(void **state) {
    (void)state;
    char data[16];
    ptowsp_text_buffer buffer = {data, sizeof data, 0};
    ptowsp_text text = ptowsp_text_to_buffer(&buffer);
    text.write(text.user, "first", 5);
    text = ptowsp_text_to_buffer(&buffer);
    assert_string_equal(data, "");
    text.write(text.user, "2nd", 3);
    assert_string_equal(data, "2nd");
    assert_int_equal(buffer.length, 3);
}

static void text__pieces_need_no_terminator(void **state) {
    (void)state;
    char *piece = (char *)malloc(3);
    assert_non_null(piece);
    memcpy(piece, "xyz", 3);
    char data[8];
    ptowsp_text_buffer buffer = {data, sizeof data, 0};
    ptowsp_text text = ptowsp_text_to_buffer(&buffer);
    text.write(text.user, piece, 3);
    assert_string_equal(data, "xyz");
    free(piece);
}

typedef struct collected {
    char data[256];
    size_t length;
    size_t calls;
} collected;

static void collect(void *user, const char *text, size_t length) {
    collected *all = (collected *)user;
    assert_true(all->length + length < sizeof all->data);
    memcpy(all->data + all->length, text, length);
    all->length += length;
    all->data[all->length] = '\0';
    all->calls++;
}

static void text__what_prints_gives_a_callback_and_a_buffer_the_same(void **state) {
    (void)state;
    const char *expected = "#7 tier 1 first (3, 0) [0, 1024)";  // the header's example
    ptowsp_work work = ptowsp_work_of(7, 1, PTOWSP_WORK_FIRST, 3, 0, 0, 1024);
    collected all;
    memset(&all, 0, sizeof all);
    ptowsp_text sink = {collect, &all};
    ptowsp_work_print(&work, sink);
    assert_string_equal(all.data, expected);
    assert_true(all.calls > 0);
    for (size_t size = 0; size < 60; size++) {
        char *data = (char *)malloc(size ? size : 1), cut[64];
        assert_non_null(data);
        ptowsp_text_buffer buffer = {data, size, 0};
        ptowsp_work_print(&work, ptowsp_text_to_buffer(&buffer));
        assert_int_equal(buffer.length, strlen(expected));
        if (size > 0) {
            snprintf(cut, size, "%s", expected);
            assert_string_equal(data, cut);
        }
        free(data);
    }
}

// -- memory and arenas ----------------------------------------------------------------------------

// test_resize, but refuses requests beyond a limit: malloc under a sanitizer aborts on them.
typedef struct limited_memory {
    test_memory memory;
    size_t limit;
    size_t largest;
} limited_memory;

static void *limited_resize(void *user, void *ptr, size_t old_size, size_t new_size) {
    limited_memory *limited = (limited_memory *)user;
    limited->largest = new_size > limited->largest ? new_size : limited->largest;
    return new_size > limited->limit ? NULL
                                     : test_resize(&limited->memory, ptr, old_size, new_size);
}

static bool all_bytes_are(const void *data, size_t size, unsigned char value) {
    const unsigned char *bytes = (const unsigned char *)data;
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != value) {
            return false;
        }
    }
    return true;
}

static void memory__default_allocates_zeroed_blocks(void **state) {
    (void)state;
    pwsp_memory memory = pwsp_memory_make(NULL, NULL);
    for (size_t size = 1; size < 5000; size = size * 3 + 1) {
        unsigned char *data = (unsigned char *)pwsp_memory_alloc(&memory, size);
        assert_non_null(data);
        assert_true(all_bytes_are(data, size, 0));
        memset(data, 1, size);
        pwsp_memory_free(&memory, data, size);
    }
    pwsp_memory_free(&memory, NULL, 0);
    pwsp_memory_free(&memory, NULL, 17);
}

typedef struct arena_piece {
    unsigned char *data;
    size_t size;
} arena_piece;

static void arena__pieces_are_zeroed_aligned_and_apart(void **state) {
    (void)state;
    uint64_t random = test_seed();
    test_memory memory = {0, 0, 0, 0};
    pwsp_memory hook = pwsp_memory_make(test_resize, &memory);
    pwsp_arena arena;
    pwsp_arena_init(&arena, &hook);
    assert_int_equal(memory.allocations, 0);
    static arena_piece pieces[600];
    for (int round = 0; round < 4; round++) {
        size_t count = sizeof pieces / sizeof pieces[0];
        for (size_t i = 0; i < count; i++) {
            size_t align = (size_t)1 << test_random_in(&random, 0, i % 50 == 0 ? 13 : 6);
            size_t size = (size_t)test_random_in(&random, 0, i % 100 == 0 ? 20000 : 300);
            unsigned char *data = (unsigned char *)pwsp_arena_alloc(&arena, size, align);
            assert_non_null(data);
            assert_int_equal((uintptr_t)data & (align - 1), 0);
            assert_true(all_bytes_are(data, size, 0));
            memset(data, (int)(i % 251 + 1), size);
            pieces[i].data = data;
            pieces[i].size = size;
            assert_int_equal(arena.allocated, memory.live_bytes);
        }
        for (size_t i = 0; i < count; i++) {  // nobody wrote over anybody, and nothing moved
            assert_true(
                all_bytes_are(pieces[i].data, pieces[i].size, (unsigned char)(i % 251 + 1)));
        }
        pwsp_arena_reset(&arena);  // what comes next is zeroed again
    }
    pwsp_arena_free(&arena);
    assert_int_equal(memory.live_blocks, 0);
    assert_int_equal(memory.live_bytes, 0);
    assert_int_equal(arena.allocated, 0);
}

static void arena__blocks_double_so_there_are_few(void **state) {
    (void)state;
    if (test_is_tight()) {
        skip();
    }
    test_memory memory = {0, 0, 0, 0};
    pwsp_memory hook = pwsp_memory_make(test_resize, &memory);
    pwsp_arena arena;
    pwsp_arena_init(&arena, &hook);
    for (int i = 0; i < 100000; i++) {
        assert_non_null(pwsp_arena_alloc(&arena, 40, 8));
    }
    // 4 MB in blocks of 4 KiB, 8 KiB, ...: 4 KiB * (2^10 - 1) is just above 4,000,000 bytes.
    assert_in_range(memory.allocations, 9, 11);
    assert_true(memory.live_bytes < 2 * 4000000 + 8192);
    pwsp_arena_free(&arena);
    assert_int_equal(memory.live_blocks, 0);
}

static void arena__a_request_larger_than_a_block_gets_its_own(void **state) {
    (void)state;
    test_memory memory = {0, 0, 0, 0};
    pwsp_memory hook = pwsp_memory_make(test_resize, &memory);
    pwsp_arena arena;
    pwsp_arena_init(&arena, &hook);
    for (size_t align = 1; align <= 4096; align *= 2) {
        unsigned char *data = (unsigned char *)pwsp_arena_alloc(&arena, 1000003, align);
        assert_non_null(data);
        assert_int_equal((uintptr_t)data & (align - 1), 0);
        memset(data, 0xff, 1000003);
    }
    pwsp_arena_free(&arena);
    assert_int_equal(memory.live_blocks, 0);
}

static void arena__size_zero_is_valid_at_any_time(void **state) {
    (void)state;
    test_memory memory = {0, 0, 0, 0};
    pwsp_memory hook = pwsp_memory_make(test_resize, &memory);
    pwsp_arena arena;
    pwsp_arena_init(&arena, &hook);
    for (size_t align = 1; align <= 64; align *= 2) {
        void *data = pwsp_arena_alloc(&arena, 0, align);
        assert_non_null(data);
        assert_int_equal((uintptr_t)data & (align - 1), 0);
    }
    for (int i = 0; i < 5000; i++) {  // also at the very end of a block
        assert_non_null(pwsp_arena_alloc(&arena, 1, 1));
        assert_non_null(pwsp_arena_alloc(&arena, 0, 1));
    }
    pwsp_arena_free(&arena);
    assert_int_equal(memory.live_blocks, 0);
}

static void arena__huge_sizes_are_refused_and_change_nothing(void **state) {
    (void)state;
    if (test_is_tight()) {
        skip();
    }
    limited_memory limited = {{0, 0, 0, 0}, (size_t)1 << 20, 0};
    pwsp_memory hook = pwsp_memory_make(limited_resize, &limited);
    const size_t sizes[] = {SIZE_MAX,         SIZE_MAX - 1,   SIZE_MAX - 24,      SIZE_MAX - 4096,
                            SIZE_MAX / 2 + 1, SIZE_MAX / 2,   SIZE_MAX / 2 - 100, SIZE_MAX / 4,
                            SIZE_MAX >> 7,    (size_t)1 << 20};
    for (int used = 0; used < 2; used++) {
        pwsp_arena arena;
        pwsp_arena_init(&arena, &hook);
        unsigned char *data = used ? (unsigned char *)pwsp_arena_alloc(&arena, 100, 4) : NULL;
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            for (size_t align = 1; align <= 4096; align *= 64) {
                limited.largest = 0;
                size_t allocated = arena.allocated;
                assert_null(pwsp_arena_alloc(&arena, sizes[i], align));
                assert_true(limited.largest == 0 || limited.largest >= sizes[i]);
                assert_int_equal(arena.allocated, allocated);
                assert_int_equal(limited.memory.live_blocks, used);
            }
        }
        unsigned char *next = (unsigned char *)pwsp_arena_alloc(&arena, 50, 1);
        assert_non_null(next);
        assert_true(!used || next == data + 100);  // the block is as it was
        pwsp_arena_free(&arena);
        assert_int_equal(limited.memory.live_blocks, 0);
    }
}

static void arena__reset_keeps_every_block(void **state) {
    (void)state;
    test_memory memory = {0, 0, 0, 0};
    pwsp_memory hook = pwsp_memory_make(test_resize, &memory);
    pwsp_arena arena;
    pwsp_arena_init(&arena, &hook);
    pwsp_arena_reset(&arena);  // of an unused arena
    assert_int_equal(memory.allocations, 0);
    for (int i = 0; i < 300; i++) {
        assert_non_null(pwsp_arena_alloc(&arena, 100, 8));
    }
    size_t bytes = memory.live_bytes, blocks = memory.live_blocks;
    assert_true(blocks > 1);
    assert_int_equal(arena.allocated, bytes);
    pwsp_arena_reset(&arena);
    assert_int_equal(memory.live_blocks, blocks);
    assert_int_equal(arena.allocated, bytes);
    pwsp_arena_free(&arena);
    assert_int_equal(memory.live_blocks, 0);
    pwsp_arena_free(&arena);                           // twice does no harm
    assert_non_null(pwsp_arena_alloc(&arena, 10, 1));  // and it can be used again
    pwsp_arena_free(&arena);
    assert_int_equal(memory.live_blocks, 0);
}

// base.h: "Reset keeps the blocks, so asking for the same again allocates nothing."
static void arena_use_twice(size_t piece_count, size_t piece_size) {
    test_memory memory = {0, 0, 0, 0};
    pwsp_memory hook = pwsp_memory_make(test_resize, &memory);
    pwsp_arena arena;
    pwsp_arena_init(&arena, &hook);
    for (int use = 0; use < 3; use++) {
        size_t allocations = memory.allocations;
        for (size_t i = 0; i < piece_count; i++) {
            assert_non_null(pwsp_arena_alloc(&arena, piece_size, 8));
        }
        assert_true(use == 0 || memory.allocations == allocations);
        pwsp_arena_reset(&arena);
    }
    pwsp_arena_free(&arena);
    assert_int_equal(memory.live_blocks, 0);
}

static void arena__a_second_use_of_one_block_allocates_nothing(void **state) {
    (void)state;
    arena_use_twice(30, 100);
    arena_use_twice(1, 4000);
    arena_use_twice(1, 100000);
}

static void arena__a_second_use_of_several_blocks_allocates_nothing(void **state) {
    (void)state;
    arena_use_twice(25, 1024);    // 3 + 7 + 15 pieces in blocks of 4, 8 and 16 KiB
    arena_use_twice(1000, 1000);  // 1 MB
}

static void arena__begin_makes_one_block_for_all_that_is_known(void **state) {
    (void)state;
    limited_memory limited = {{0, 0, 0, 0}, (size_t)1 << 20, 0};
    pwsp_memory hook = pwsp_memory_make(limited_resize, &limited);
    pwsp_arena arena;
    pwsp_arena_init(&arena, &hook);
    assert_false(pwsp_arena_begin(&arena, (size_t)1 << 20));
    assert_false(pwsp_arena_begin(&arena, SIZE_MAX));
    assert_int_equal(limited.memory.live_blocks, 0);
    assert_true(pwsp_arena_begin(&arena, 100000));
    unsigned char *first = (unsigned char *)pwsp_arena_take(&arena, 60000, 8);
    unsigned char *second = (unsigned char *)pwsp_arena_alloc(&arena, 40000, 1);
    assert_true(first && second == first + 60000);
    assert_int_equal(limited.memory.live_blocks, 1);
    pwsp_arena_free(&arena);
    assert_int_equal(limited.memory.live_blocks, 0);
}

// Blocks behind the first are a quarter of it. Begun again, it has one block that is large enough.
static void arena__begun_again_gives_back_what_is_too_small(void **state) {
    (void)state;
    if (test_is_tight()) {
        skip();
    }
    test_memory memory = {0, 0, 0, 0};
    pwsp_memory hook = pwsp_memory_make(test_resize, &memory);
    pwsp_arena arena;
    pwsp_arena_init(&arena, &hook);
    assert_true(pwsp_arena_begin(&arena, 400000));
    assert_true(arena.allocated >= 400000 && arena.allocated < 401000);
    assert_non_null(pwsp_arena_take(&arena, 400000, 1));
    for (int i = 0; i < 5; i++) {
        assert_non_null(pwsp_arena_take(&arena, 90000, 1));
    }
    assert_int_equal(memory.live_blocks, 6);
    assert_true(arena.allocated >= 900000 && arena.allocated < 901000);
    assert_true(pwsp_arena_begin(&arena, 300000));  // empty, as it is
    assert_int_equal(memory.live_blocks, 6);
    assert_non_null(pwsp_arena_take(&arena, 400000, 1));
    assert_int_equal(memory.live_blocks, 6);
    assert_true(pwsp_arena_begin(&arena, 500000));
    assert_int_equal(memory.live_blocks, 1);
    assert_true(arena.allocated >= 500000 && arena.allocated < 501000);
    memory.refuse_at = memory.allocations + 1;
    assert_false(pwsp_arena_begin(&arena, 600000));
    assert_int_equal(memory.live_blocks, 0);
    pwsp_arena_free(&arena);
}

static void arena__goes_back_to_a_mark(void **state) {
    (void)state;
    test_memory memory = {0, 0, 0, 0};
    pwsp_memory hook = pwsp_memory_make(test_resize, &memory);
    pwsp_arena arena;
    pwsp_arena_init(&arena, &hook);
    const pwsp_arena_mark none = pwsp_arena_here(&arena);
    char *kept = (char *)pwsp_arena_take(&arena, 100, 1);
    assert_non_null(kept);
    memset(kept, 7, 100);
    const pwsp_arena_mark mark = pwsp_arena_here(&arena);
    char *small = NULL, *large = NULL;
    size_t blocks = 0;
    for (int round = 0; round < 3; round++) {
        char *a = (char *)pwsp_arena_alloc(&arena, 50, 1), *b = NULL;
        for (int i = 0; i < 10; i++) {
            b = (char *)pwsp_arena_alloc(&arena, 10000, 1);
            assert_non_null(b);
            memset(b, 1, 10000);
        }
        assert_true(round == 0 || (a == small && b == large && memory.live_blocks == blocks));
        small = a, large = b, blocks = memory.live_blocks;
        pwsp_arena_back(&arena, mark);
    }
    assert_true(kept[0] == 7 && kept[99] == 7);
    pwsp_arena_back(&arena, none);
    assert_true(pwsp_arena_take(&arena, 100, 1) == kept);
    assert_int_equal(memory.live_blocks, blocks);
    pwsp_arena_free(&arena);
    assert_int_equal(memory.live_blocks, 0);
}

static void arena__arrays_keep_their_items_as_they_grow(void **state) {
    (void)state;
    if (test_is_tight()) {
        skip();
    }
    test_memory memory = {0, 0, 0, 0};
    pwsp_memory hook = pwsp_memory_make(test_resize, &memory);
    pwsp_arena arena;
    pwsp_arena_init(&arena, &hook);
    void *items = NULL;
    uint64_t capacity = 0, lengths[] = {16, 32, 64, 128, 256, 512, 1024};
    uint32_t grown = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        void *before = items;
        assert_true(pwsp_arena_extend(&arena, &items, &capacity, i + 1, sizeof(uint32_t)));
        grown += items != before;
        assert_int_equal(capacity, lengths[grown - 1]);
        assert_int_equal((uintptr_t)items % 8, 0);
        ((uint32_t *)items)[i] = i;
    }
    assert_int_equal(grown, 7);
    void *before = items;
    const uint64_t huge[] = {UINT64_MAX, UINT64_MAX / 4, SIZE_MAX / 4};
    for (int i = 0; i < 3; i++) {
        assert_false(pwsp_arena_extend(&arena, &items, &capacity, huge[i], sizeof(uint32_t)));
        assert_true(items == before && capacity == 1024);
    }
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(((uint32_t *)items)[i], i);
    }
    pwsp_arena_free(&arena);
    assert_int_equal(memory.live_blocks, 0);
}

static void arena__memory_of_it_dies_with_it(void **state) {
    (void)state;
    test_memory memory = {0, 0, 0, 0};
    pwsp_memory hook = pwsp_memory_make(test_resize, &memory);
    pwsp_arena arena;
    pwsp_arena_init(&arena, &hook);
    pwsp_memory of = pwsp_arena_memory(&arena);
    void *items = NULL;
    uint64_t capacity = 0;
    for (uint32_t i = 0; i < 100; i++) {
        assert_true(pwsp_memory_grow(&of, &items, &capacity, i + 1, sizeof(uint64_t)));
        ((uint64_t *)items)[i] = i;
    }
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(((uint64_t *)items)[i], i);
    }
    size_t bytes = memory.live_bytes;
    pwsp_memory_free(&of, items, (size_t)capacity * sizeof(uint64_t));
    assert_int_equal(((uint64_t *)items)[99], 99);  // it stays where it is
    assert_int_equal(memory.live_bytes, bytes);
    pwsp_arena_free(&arena);
    assert_int_equal(memory.live_blocks, 0);
}

// An array of more bytes than there are addresses is refused before memory is asked for.
static void memory__has_no_arrays_beyond_all_addresses(void **state) {
    (void)state;
    static const uint64_t counts[] = {SIZE_MAX / 8, SIZE_MAX / 16 + 1, UINT64_MAX};
    test_memory memory = {0, 0, 0, 0};
    pwsp_memory hook = pwsp_memory_make(test_resize, &memory);
    pwsp_arena arena;
    pwsp_arena_init(&arena, &hook);
    for (uint32_t i = 0; i < 3; i++) {
        void *items = NULL;
        uint64_t capacity = 0;
        assert_false(pwsp_memory_grow(&hook, &items, &capacity, counts[i], 8));
        assert_false(pwsp_memory_grow_little(&hook, &items, &capacity, counts[i], 8));
        assert_false(pwsp_memory_room(&hook, &items, &capacity, counts[i], 8));
        assert_false(pwsp_arena_extend(&arena, &items, &capacity, counts[i], 8));
        assert_null(items);
        assert_int_equal(capacity, 0);
    }
    assert_int_equal(memory.allocations, 0);
    pwsp_arena_free(&arena);
}

typedef struct written {
    char text[4096];
    size_t length;
} written;

static void write_text(void *user, const char *text, size_t length) {
    written *w = (written *)user;
    assert_true(length < sizeof w->text - w->length);
    memcpy(w->text + w->length, text, length);
    w->length += length;
    w->text[w->length] = '\0';
}

// What is formatted goes through a piece of fixed size, and ends where that does.
static void text__formats_are_cut_and_no_more_than_that(void **state) {
    (void)state;
    static char endless[3000];
    memset(endless, 'x', sizeof endless - 1);
    written w = {"", 0};
    const ptowsp_text text = {write_text, &w};
    pwsp_text_format(text, "%s", "");
    assert_int_equal(w.length, 0);
    for (size_t length = PWSP_TEXT_PIECE_MAX - 2; length <= PWSP_TEXT_PIECE_MAX + 1; length++) {
        w.length = 0;
        pwsp_text_format(text, "%.*s", (int)length, endless);
        assert_int_equal(w.length, length < PWSP_TEXT_PIECE_MAX ? length : PWSP_TEXT_PIECE_MAX - 1);
        assert_int_equal(strspn(w.text, "x"), w.length);
    }
}

static void arena__every_allocation_may_be_refused(void **state) {
    (void)state;
    size_t refused = 0;
    for (size_t refuse_at = 1; refused + 1 == refuse_at || refuse_at == 1; refuse_at++) {
        test_memory memory = {0, 0, 0, refuse_at};
        pwsp_memory hook = pwsp_memory_make(test_resize, &memory);
        pwsp_arena arena;
        pwsp_arena_init(&arena, &hook);
        size_t nulls = 0;
        for (int i = 0; i < 2000; i++) {
            size_t allocated = arena.allocated;
            unsigned char *data = (unsigned char *)pwsp_arena_alloc(&arena, 64, 16);
            if (!data) {
                nulls++;
                assert_int_equal(arena.allocated, allocated);
                data = (unsigned char *)pwsp_arena_alloc(&arena, 64, 16);  // the next is granted
            }
            assert_non_null(data);
            assert_true(all_bytes_are(data, 64, 0));
            memset(data, 0xff, 64);
        }
        assert_true(nulls <= 1);
        refused += nulls;
        pwsp_arena_free(&arena);
        assert_int_equal(memory.live_blocks, 0);
        assert_int_equal(memory.live_bytes, 0);
    }
    assert_true(refused >= 5);  // 128 KB: blocks of 4, 8, 16, 32, 64 and 128 KiB
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

static void base__mul_fits_says_whether_64_bits_hold_the_product(void **state) {
    (void)state;
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
    const size_t end_count = sizeof ends / sizeof ends[0];
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

static void base__ceil_div_rounds_up_without_overflow(void **state) {
    (void)state;
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
static void base__wide_numbers_are_those_of_the_compiler(void **state) {
    (void)state;
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

static void base__min_and_max_of_64_bits(void **state) {
    (void)state;
    assert_true(pwsp_min_u64(0, UINT64_MAX) == 0 && pwsp_min_u64(UINT64_MAX, 0) == 0);
    assert_true(pwsp_max_u64(0, UINT64_MAX) == UINT64_MAX &&
                pwsp_max_u64(UINT64_MAX, 0) == UINT64_MAX);
    assert_true(pwsp_min_u64(5, 5) == 5 && pwsp_max_u64(5, 5) == 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base__status_values_and_names_never_change),
        cmocka_unit_test(base__the_list_of_statuses_has_no_other_entries),
        cmocka_unit_test(base__status_texts_are_distinct_lines),
        cmocka_unit_test(base__other_values_have_the_name_unknown_and_some_text),
        cmocka_unit_test(base__version_text_is_made_of_the_version_numbers),
        cmocka_unit_test(base__hash_gives_the_published_fnv1a_vectors),
        cmocka_unit_test(base__hash_of_a_concatenation_goes_on_from_the_first_part),
        cmocka_unit_test(base__clock_never_goes_back_and_counts_nanoseconds),
        cmocka_unit_test(text__buffer_keeps_what_fits_and_counts_everything),
        cmocka_unit_test(text__buffer_is_terminated_after_every_piece),
        cmocka_unit_test(text__buffer_of_size_zero_may_have_no_data),
        cmocka_unit_test(text__a_new_sink_empties_the_buffer),
        cmocka_unit_test(text__pieces_need_no_terminator),
        cmocka_unit_test(text__what_prints_gives_a_callback_and_a_buffer_the_same),
        cmocka_unit_test(memory__default_allocates_zeroed_blocks),
        cmocka_unit_test(arena__pieces_are_zeroed_aligned_and_apart),
        cmocka_unit_test(arena__blocks_double_so_there_are_few),
        cmocka_unit_test(arena__a_request_larger_than_a_block_gets_its_own),
        cmocka_unit_test(arena__size_zero_is_valid_at_any_time),
        cmocka_unit_test(arena__huge_sizes_are_refused_and_change_nothing),
        cmocka_unit_test(arena__reset_keeps_every_block),
        cmocka_unit_test(arena__a_second_use_of_one_block_allocates_nothing),
        cmocka_unit_test(arena__a_second_use_of_several_blocks_allocates_nothing),
        cmocka_unit_test(arena__begin_makes_one_block_for_all_that_is_known),
        cmocka_unit_test(arena__begun_again_gives_back_what_is_too_small),
        cmocka_unit_test(arena__goes_back_to_a_mark),
        cmocka_unit_test(arena__arrays_keep_their_items_as_they_grow),
        cmocka_unit_test(arena__memory_of_it_dies_with_it),
        cmocka_unit_test(arena__every_allocation_may_be_refused),
        cmocka_unit_test(memory__has_no_arrays_beyond_all_addresses),
        cmocka_unit_test(text__formats_are_cut_and_no_more_than_that),
        cmocka_unit_test(base__mul_fits_says_whether_64_bits_hold_the_product),
        cmocka_unit_test(base__ceil_div_rounds_up_without_overflow),
        cmocka_unit_test(base__wide_numbers_are_those_of_the_compiler),
        cmocka_unit_test(base__min_and_max_of_64_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

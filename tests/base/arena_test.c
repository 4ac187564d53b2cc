// Memory through the hook, and arenas: pieces, blocks, marks, arrays, and what is refused.

#include "src/base/arena.h"

#include "test.h"

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

TEST(memory__default_allocates_zeroed_blocks) {
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

static pwsp_arena arena_of(test_memory *memory) {
    const pwsp_memory hook = pwsp_memory_make(test_resize, memory);
    pwsp_arena arena;
    pwsp_arena_init(&arena, &hook);
    return arena;
}

// A test with an arena, which gives back all its memory.
#define ARENA_TEST(name)                                                                           \
    static void name##_of(pwsp_arena *arena, test_memory *memory);                                 \
    TEST(name) {                                                                                   \
        test_memory memory = {0, 0, 0, 0};                                                         \
        pwsp_arena arena = arena_of(&memory);                                                      \
        name##_of(&arena, &memory);                                                                \
        pwsp_arena_free(&arena);                                                                   \
        assert_int_equal(memory.live_blocks, 0);                                                   \
    }                                                                                              \
    static void name##_of(pwsp_arena *arena, __attribute__((unused)) test_memory *memory)

typedef struct arena_piece {
    unsigned char *data;
    size_t size;
} arena_piece;

TEST(arena__pieces_are_zeroed_aligned_and_apart) {
    uint64_t random = test_seed();
    test_memory memory = {0, 0, 0, 0};
    pwsp_arena arena = arena_of(&memory);
    assert_int_equal(memory.allocations, 0);
    static arena_piece pieces[600];
    for (int round = 0; round < 4; round++) {
        size_t count = COUNT_OF(pieces);
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

ARENA_TEST(arena__blocks_double_so_there_are_few) {
    if (test_is_tight()) {
        skip();
    }
    for (int i = 0; i < 100000; i++) {
        assert_non_null(pwsp_arena_alloc(arena, 40, 8));
    }
    // 4 MB in blocks of 4 KiB, 8 KiB, ...: 4 KiB * (2^10 - 1) is just above 4,000,000 bytes.
    assert_in_range(memory->allocations, 9, 11);
    assert_true(memory->live_bytes < 2 * 4000000 + 8192);
}

ARENA_TEST(arena__a_request_larger_than_a_block_gets_its_own) {
    for (size_t align = 1; align <= 4096; align *= 2) {
        unsigned char *data = (unsigned char *)pwsp_arena_alloc(arena, 1000003, align);
        assert_non_null(data);
        assert_int_equal((uintptr_t)data & (align - 1), 0);
        memset(data, 0xff, 1000003);
    }
}

ARENA_TEST(arena__size_zero_is_valid_at_any_time) {
    for (size_t align = 1; align <= 64; align *= 2) {
        void *data = pwsp_arena_alloc(arena, 0, align);
        assert_non_null(data);
        assert_int_equal((uintptr_t)data & (align - 1), 0);
    }
    for (int i = 0; i < 5000; i++) {  // also at the very end of a block
        assert_non_null(pwsp_arena_alloc(arena, 1, 1));
        assert_non_null(pwsp_arena_alloc(arena, 0, 1));
    }
}

TEST(arena__huge_sizes_are_refused_and_change_nothing) {
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
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
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

ARENA_TEST(arena__reset_keeps_every_block) {
    pwsp_arena_reset(arena);  // of an unused arena
    assert_int_equal(memory->allocations, 0);
    for (int i = 0; i < 300; i++) {
        assert_non_null(pwsp_arena_alloc(arena, 100, 8));
    }
    size_t bytes = memory->live_bytes, blocks = memory->live_blocks;
    assert_true(blocks > 1);
    assert_int_equal(arena->allocated, bytes);
    pwsp_arena_reset(arena);
    assert_int_equal(memory->live_blocks, blocks);
    assert_int_equal(arena->allocated, bytes);
    pwsp_arena_free(arena);
    assert_int_equal(memory->live_blocks, 0);
    pwsp_arena_free(arena);                           // twice does no harm
    assert_non_null(pwsp_arena_alloc(arena, 10, 1));  // and it can be used again
}

// base.h: "Reset keeps the blocks, so asking for the same again allocates nothing."
static void arena_use_twice(size_t piece_count, size_t piece_size) {
    test_memory memory = {0, 0, 0, 0};
    pwsp_arena arena = arena_of(&memory);
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

TEST(arena__a_second_use_allocates_nothing) {
    arena_use_twice(30, 100);  // of one block
    arena_use_twice(1, 4000);
    arena_use_twice(1, 100000);
    arena_use_twice(25, 1024);    // 3 + 7 + 15 pieces in blocks of 4, 8 and 16 KiB
    arena_use_twice(1000, 1000);  // 1 MB
}

TEST(arena__begin_makes_one_block_for_all_that_is_known) {
    if (test_is_tight()) {
        skip();
    }
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
ARENA_TEST(arena__begun_again_gives_back_what_is_too_small) {
    if (test_is_tight()) {
        skip();
    }
    assert_true(pwsp_arena_begin(arena, 400000));
    assert_true(arena->allocated >= 400000 && arena->allocated < 401000);
    assert_non_null(pwsp_arena_take(arena, 400000, 1));
    for (int i = 0; i < 5; i++) {
        assert_non_null(pwsp_arena_take(arena, 90000, 1));
    }
    assert_int_equal(memory->live_blocks, 6);
    assert_true(arena->allocated >= 900000 && arena->allocated < 901000);
    assert_true(pwsp_arena_begin(arena, 300000));  // empty, as it is
    assert_int_equal(memory->live_blocks, 6);
    assert_non_null(pwsp_arena_take(arena, 400000, 1));
    assert_int_equal(memory->live_blocks, 6);
    assert_true(pwsp_arena_begin(arena, 500000));
    assert_int_equal(memory->live_blocks, 1);
    assert_true(arena->allocated >= 500000 && arena->allocated < 501000);
    memory->refuse_at = memory->allocations + 1;
    assert_false(pwsp_arena_begin(arena, 600000));
    assert_int_equal(memory->live_blocks, 0);
}

ARENA_TEST(arena__goes_back_to_a_mark) {
    const pwsp_arena_mark none = pwsp_arena_here(arena);
    char *kept = (char *)pwsp_arena_take(arena, 100, 1);
    assert_non_null(kept);
    memset(kept, 7, 100);
    const pwsp_arena_mark mark = pwsp_arena_here(arena);
    char *small = NULL, *large = NULL;
    size_t blocks = 0;
    for (int round = 0; round < 3; round++) {
        char *a = (char *)pwsp_arena_alloc(arena, 50, 1), *b = NULL;
        for (int i = 0; i < 10; i++) {
            b = (char *)pwsp_arena_alloc(arena, 10000, 1);
            assert_non_null(b);
            memset(b, 1, 10000);
        }
        assert_true(round == 0 || (a == small && b == large && memory->live_blocks == blocks));
        small = a, large = b, blocks = memory->live_blocks;
        pwsp_arena_back(arena, mark);
    }
    assert_true(kept[0] == 7 && kept[99] == 7);
    pwsp_arena_back(arena, none);
    assert_true(pwsp_arena_take(arena, 100, 1) == kept);
    assert_int_equal(memory->live_blocks, blocks);
}

ARENA_TEST(arena__arrays_keep_their_items_as_they_grow) {
    if (test_is_tight()) {
        skip();
    }
    void *items = NULL;
    uint64_t capacity = 0, lengths[] = {16, 32, 64, 128, 256, 512, 1024};
    uint32_t grown = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        void *before = items;
        assert_true(pwsp_arena_extend(arena, &items, &capacity, i + 1, sizeof(uint32_t)));
        grown += items != before;
        assert_int_equal(capacity, lengths[grown - 1]);
        assert_int_equal((uintptr_t)items % 8, 0);
        ((uint32_t *)items)[i] = i;
    }
    assert_int_equal(grown, 7);
    void *before = items;
    const uint64_t huge[] = {UINT64_MAX, UINT64_MAX / 4, SIZE_MAX / 4};
    for (int i = 0; i < 3; i++) {
        assert_false(pwsp_arena_extend(arena, &items, &capacity, huge[i], sizeof(uint32_t)));
        assert_true(items == before && capacity == 1024);
    }
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(((uint32_t *)items)[i], i);
    }
}

ARENA_TEST(arena__memory_of_it_dies_with_it) {
    pwsp_memory of = pwsp_arena_memory(arena);
    void *items = NULL;
    uint64_t capacity = 0;
    for (uint32_t i = 0; i < 100; i++) {
        assert_true(pwsp_memory_grow(&of, &items, &capacity, i + 1, sizeof(uint64_t)));
        ((uint64_t *)items)[i] = i;
    }
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(((uint64_t *)items)[i], i);
    }
    size_t bytes = memory->live_bytes;
    pwsp_memory_free(&of, items, (size_t)capacity * sizeof(uint64_t));
    assert_int_equal(((uint64_t *)items)[99], 99);  // it stays where it is
    assert_int_equal(memory->live_bytes, bytes);
}

// An array of more bytes than there are addresses is refused before memory is asked for.
ARENA_TEST(memory__has_no_arrays_beyond_all_addresses) {
    static const uint64_t counts[] = {SIZE_MAX / 8, SIZE_MAX / 16 + 1, UINT64_MAX};
    for (uint32_t i = 0; i < 3; i++) {
        void *items = NULL;
        uint64_t capacity = 0;
        assert_false(pwsp_memory_grow(&arena->memory, &items, &capacity, counts[i], 8));
        assert_false(pwsp_memory_grow_little(&arena->memory, &items, &capacity, counts[i], 8));
        assert_false(pwsp_memory_room(&arena->memory, &items, &capacity, counts[i], 8));
        assert_false(pwsp_arena_extend(arena, &items, &capacity, counts[i], 8));
        assert_null(items);
        assert_int_equal(capacity, 0);
    }
    assert_int_equal(memory->allocations, 0);
}

TEST(arena__every_allocation_may_be_refused) {
    size_t refused = 0;
    for (size_t refuse_at = 1; refused + 1 == refuse_at || refuse_at == 1; refuse_at++) {
        test_memory memory = {0, 0, 0, refuse_at};
        pwsp_arena arena = arena_of(&memory);
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

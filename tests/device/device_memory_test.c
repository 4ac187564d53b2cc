// Memory of devices: pieces, limits, copies, and everything that is refused.

#include "device_fixture.h"

DEVICE_TEST_ON(1, 1, 0, device_memory__pieces_are_aligned_apart_and_counted) {
    uint8_t *pieces[40], copy[40];
    uint64_t used = 0;
    for (uint64_t i = 0; i < 40; i++) {
        pieces[i] = (uint8_t *)piece_of(device, NULL, i + 1);
        assert_int_equal((uintptr_t)pieces[i] % PTOWSP_DEVICE_ALIGNMENT, 0);
        memset(copy, (int)i, sizeof copy);
        assert_ok(ptowsp_device_copy_in(device, pieces[i], copy, i + 1));
        used += i + 1;
    }
    ptowsp_device_stats stats = ptowsp_device_result(device);
    assert_int_equal(stats.used_bytes, used);
    assert_int_equal(stats.piece_count, 40);
    assert_int_equal(stats.memory_bytes, 1 << 30);
    for (uint64_t i = 0; i < 40; i++) {
        uint8_t *from = pieces[i] + i / 2;
        assert_ok(ptowsp_device_copy_out(device, copy, from, i + 1 - i / 2));
        for (uint64_t k = 0; k < i + 1 - i / 2; k++) {
            assert_int_equal(copy[k], i);
        }
    }
    for (uint64_t i = 0; i < 40; i++) {
        assert_ok(ptowsp_device_free(device, pieces[i * 7 % 40]));
    }
    assert_ok(ptowsp_device_free(device, NULL));
    stats = ptowsp_device_result(device);
    assert_int_equal(stats.used_bytes, 0);
    assert_int_equal(stats.used_bytes_max, used);
    assert_int_equal(stats.piece_count, 0);
}

DEVICE_CONTEXT_TEST(device_memory__beyond_the_limit_is_refused_with_all_numbers) {
    ptowsp_device *device = device_with(context, (ptowsp_device_desc){.memory_bytes = 1000});
    void *all = piece_of(device, "kv", 1000), *memory = all;
#define NO_ROOM(name, size, text)                                                                  \
    test_refused(context, ptowsp_device_alloc(device, name, size, &memory), PTOWSP_OUT_OF_MEMORY,  \
                 PTOWSP_NO_INDEX, "device: " text)
    NO_ROOM("out", 1, "'out' asks for 1 bytes, but 1000 of 1000 are used");
    assert_null(memory);
    assert_ok(ptowsp_device_free(device, all));
    all = piece_of(device, NULL, 600);
    NO_ROOM(NULL, 401, "'memory' asks for 401 bytes, but 600 of 1000 are used");
    NO_ROOM(NULL, UINT64_MAX,
            "'memory' asks for 18446744073709551615 bytes, but 600 of 1000 are used");
    memory = piece_of(device, NULL, 400);
    assert_ok(ptowsp_device_free(device, all));
    assert_ok(ptowsp_device_free(device, memory));
    assert_ok(ptowsp_device_close(device));
    device = device_with(context, (ptowsp_device_desc){.memory_bytes = UINT64_MAX});
    NO_ROOM(NULL, UINT64_MAX, "the host has no memory for 'memory' of 18446744073709551615 bytes");
#undef NO_ROOM
    assert_ok(ptowsp_device_close(device));
}

DEVICE_TEST_ON(1, 1, 0, device_memory__bad_pieces_and_bad_frees) {
    void *memory = NULL;
    test_invalid(context, ptowsp_device_alloc(device, NULL, 0, &memory),
                 "device: a piece of 0 bytes");
    test_invalid(context, ptowsp_device_alloc(device, "", 4, &memory),
                 "device: a piece has a bad name");
    test_invalid(context, ptowsp_device_alloc(device, NULL, 4, NULL), "device: out_memory is NULL");
    char *kv = (char *)piece_of(device, "kv", 100);
    test_invalid(context, ptowsp_device_free(device, kv + 64),
                 "device: free of an address 64 bytes into 'kv'");
    test_invalid(context, ptowsp_device_free(device, &kv),
                 "device: free of what is not memory of the device");
    assert_ok(ptowsp_device_free(device, kv));
    test_invalid(context, ptowsp_device_free(device, kv),
                 "device: free of 'kv' (100 bytes), which has been freed");
}

DEVICE_TEST_ON(1, 1, 0, device_memory__bad_copies_name_the_piece) {
    char *kv = (char *)piece_of(device, "kv", 100), host[300] = {0}, filled[100];
    memset(filled, 7, sizeof filled);
    assert_ok(ptowsp_device_copy_in(device, kv, filled, 100));
    test_invalid(context, ptowsp_device_copy_in(device, kv, host, 101),
                 "device: copy in of 101 bytes at 0 of 'kv' (100 bytes) goes 1 beyond its end");
    test_invalid(context, ptowsp_device_copy_out(device, host, kv + 99, UINT64_MAX),
                 "device: copy out of 18446744073709551615 bytes at 99 of 'kv' (100 bytes) goes "
                 "18446744073709551614 beyond its end");
    test_invalid(context, ptowsp_device_copy_out(device, host, kv + 100, 1),
                 "device: copy out of 1 bytes is at no memory of the device");
    test_invalid(context, ptowsp_device_copy_in(device, host, kv, 4),
                 "device: copy in of 4 bytes is at no memory of the device");
    test_invalid(context, ptowsp_device_copy_in(device, kv, NULL, 4),
                 "device: copy in of 4 bytes from NULL");
    test_invalid(context, ptowsp_device_copy_out(device, NULL, kv, 4),
                 "device: copy out of 4 bytes to NULL");
    assert_ok(ptowsp_device_copy_in(device, NULL, NULL, 0));
    assert_ok(ptowsp_device_copy_out(device, host, kv, 100));
    assert_memory_equal(host, filled, 100);  // what was refused has changed nothing
    assert_ok(ptowsp_device_free(device, kv));
    test_invalid(context, ptowsp_device_copy_out(device, host, kv + 4, 1),
                 "device: copy out of 1 bytes is at no memory of the device: 'kv' has been freed");
}

DEVICE_TEST(device_memory__closing_reports_what_was_not_freed) {
    test_memory memory;
    ptowsp_context *context = test_counted(&memory);
    size_t before = memory.live_bytes;
    ptowsp_device *device = device_of(context, 1, 2, 0);
    void *gone = piece_of(device, "gone", 4);
    piece_of(device, "weights", 1000);
    piece_of(device, NULL, 20);
    assert_ok(ptowsp_device_free(device, gone));
    test_refused(context, ptowsp_device_close(device), PTOWSP_LEAKED, 2,
                 "device: closed with 2 pieces of 1020 bytes not freed: 'weights' (1000), "
                 "'memory' (20)");
    assert_int_equal(memory.live_bytes, before);
    device = device_of(context, 1, 2, 0);
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    void *first = piece_of(device, "gone", 4);
    for (uint64_t i = 0; i < 5; i++) {
        if (i == 3) {  // its slot is used again, and is no older for that
            assert_ok(ptowsp_device_free(device, first));
        }
        piece_of(device, names[i], i + 1);
    }
    test_refused(context, ptowsp_device_close(device), PTOWSP_LEAKED, 5,
                 "device: closed with 5 pieces of 15 bytes not freed: 'a' (1), 'b' (2), "
                 "'c' (3), ...");
    assert_int_equal(memory.live_bytes, before);
    assert_ok(ptowsp_device_close(NULL));
    ptowsp_context_destroy(context);
}

// Pieces of random sizes come and go; each has its own bytes, and every address is found in the
// piece that it is in, as a slow search says.
DEVICE_TEST(device_memory__random_pieces_are_found_by_any_address_in_them) {
    enum { COUNT = 500 };
    uint64_t random = test_seed();
    test_memory memory;
    ptowsp_context *context = test_counted(&memory);
    ptowsp_device *device = device_of(context, 1, 1, 0);
    struct {
        uint8_t *begin;
        uint64_t size;
    } pieces[COUNT];
    memset(pieces, 0, sizeof pieces);
    uint64_t used = 0, count = 0;
    for (int round = 0; TEST_ROUNDS(round, 20000); round++) {
        size_t i = (size_t)test_random_in(&random, 0, COUNT - 1);
        if (!pieces[i].begin) {
            pieces[i].size = (uint64_t)test_random_in(&random, 1, 300);
            pieces[i].begin = (uint8_t *)piece_of(device, NULL, pieces[i].size);
            memset(pieces[i].begin, (int)(i % 251), (size_t)pieces[i].size);
            used += pieces[i].size;
            count++;
        } else if (test_random_in(&random, 0, 1)) {
            assert_ok(ptowsp_device_free(device, pieces[i].begin));
            used -= pieces[i].size;
            count--;
            pieces[i].begin = NULL;
        } else {
            uint8_t host[400];
            uint64_t at = (uint64_t)test_random_in(&random, 0, (int64_t)pieces[i].size - 1);
            uint64_t size = (uint64_t)test_random_in(&random, 1, 300);
            ptowsp_status status = ptowsp_device_copy_out(device, host, pieces[i].begin + at, size);
            bool fits = size <= pieces[i].size - at;
            assert_int_equal(status, fits ? PTOWSP_OK : PTOWSP_INVALID_PARAMS);
            for (uint64_t k = 0; fits && k < size; k++) {
                assert_int_equal(host[k], i % 251);
            }
        }
        ptowsp_device_stats stats = ptowsp_device_result(device);
        assert_int_equal(stats.used_bytes, used);
        assert_int_equal(stats.piece_count, count);
    }
    for (size_t i = 0; i < COUNT; i++) {
        assert_ok(ptowsp_device_free(device, pieces[i].begin));
        pieces[i].begin = NULL;
    }
    assert_ok(ptowsp_device_close(device));
    ptowsp_context_destroy(context);
    assert_int_equal(memory.live_bytes, 0);
}

// Words of kernels (wsp_kernel.h) by themselves: arguments of a task, sizes, loops, and which tensors a
// device could move. Expected values are worked out on paper.

#define WSP_HAS_STRIDES 0  // as a device moves data

#include "wsp_kernel.h"

#include "test.h"

namespace {

// Two tiles of 3 x 5 and 7 x 1, an axis, and scalars.
wsp_task make_task() {
    wsp_task task = wsp_task();
    const uint64_t args[] = {9, 3, 5, 7, 1, 0xffffffffffffffff, 0x40490fdb, 0x400921fb54442d18};
    task.axis_count = 1;
    task.tile_count = 2;
    task.scalar_count = 3;
    memcpy(task.args, args, sizeof args);
    return task;
}

TEST(word__arguments_are_where_the_task_has_them) {
    const wsp_task task = make_task();
    assert_int_equal(wsp::rows(&task, 0), 3);
    assert_int_equal(wsp::cols(&task, 0), 5);
    assert_int_equal(wsp::rows(&task, 1), 7);
    assert_int_equal(wsp::cols(&task, 1), 1);
    assert_int_equal(wsp::scalar_i64(&task, 0), -1);
    assert_true(wsp::scalar_u64(&task, 0) == UINT64_MAX);
    assert_true(wsp::scalar_f32(&task, 1) == 0x1.921fb6p+1f);        // pi
    assert_true(wsp::scalar_f64(&task, 2) == 0x1.921fb54442d18p+1);  // and closer
}

TEST(word__sizes_stay_in_their_range) {
    // What is left from a place on, at most so much.
    assert_int_equal(wsp::part(10, 4, 8), 6);
    assert_int_equal(wsp::part(10, 0, 8), 8);
    assert_int_equal(wsp::part(10, 10, 8), 0);
    assert_int_equal(wsp::part(10, 12, 8), 0);
    assert_int_equal(wsp::least(3, 5), 3);
    assert_int_equal(wsp::least(5, 3), 3);
    // (mul * whole + add) >> shift: (2 * 10 + 3) / 4 is 5.
    assert_int_equal(wsp::extent(10, 2, 3, 2, 100), 5);
    assert_int_equal(wsp::extent(10, 2, 3, 2, 4), 4);
    assert_int_equal(wsp::extent(10, -2, 3, 0, 100), 0);
    assert_int_equal(wsp::extent(INT32_MAX, INT32_MAX, 0, 0, 7), 7);  // more than 32 bits
}

TEST(word__loops_are_bounded) {
    const struct {
        int64_t begin, end, step;
        int count;
        bool is_good;
    } cases[] = {{0, 10, 4, 3, true},
                 {0, 0, 4, 0, true},
                 {3, 10, 7, 1, true},
                 {-1, 10, 4, 0, false},
                 {5, 4, 1, 0, false},
                 {0, INT64_C(1) << 30, 1 << 29, 2, true},
                 {0, (INT64_C(1) << 30) + 1, 1, 0, false}};
    for (const auto &it : cases) {
        const wsp::Loop loop = wsp::loop(it.begin, it.end, it.step);
        assert_int_equal(loop.count, it.count);
        assert_int_equal(loop.is_good, it.is_good);
        assert_int_equal(loop.end, it.is_good ? it.end : 0);
        assert_int_equal(loop.at(2), it.begin + 2 * it.step);
    }
    // A scalar that is no bound is one that no loop has.
    assert_int_equal(wsp::bound(12), 12);
    assert_int_equal(wsp::bound(UINT64_C(1) << 30), INT64_C(1) << 30);
    assert_false(wsp::loop(0, wsp::bound(UINT64_MAX), 1).is_good);
    assert_int_equal(wsp::event(2, 0), 2);
    assert_int_equal(wsp::event(2, 3), 3);
    assert_int_equal(wsp::place(64, 128, 2), 64);
    assert_int_equal(wsp::place(64, 128, 1), 192);
}

// Rows, columns, and right factors, which may be either.
TEST(word__tensors_that_a_device_can_move) {
    wsp_task task = make_task();
    const struct {
        int64_t row_stride, col_stride;
        bool by_rows, by_columns;
    } cases[] = {
        {5, 1, true, false}, {1, 3, false, true}, {10, 2, false, false}, {1, 1, true, true}};
    task.tiles[1].row_stride = task.tiles[1].col_stride = 1;
    for (const auto &it : cases) {
        task.tiles[0].row_stride = it.row_stride;
        task.tiles[0].col_stride = it.col_stride;
        assert_int_equal(wsp::are_dense(&task, false, 0, 1), it.by_rows);
        assert_int_equal(wsp::are_dense(&task, true, 1, 0), it.by_columns);
        assert_int_equal(wsp::are_either(&task, 0, 1), it.by_rows || it.by_columns);
    }
    // With one column there is nothing to be apart.
    task.tiles[1].row_stride = 9;
    task.tiles[1].col_stride = 9;
    assert_true(wsp::are_dense(&task, false, 1));
    assert_false(wsp::are_dense(&task, true, 1));
    // Nor with one row.
    task.args[3] = 1;
    assert_true(wsp::are_dense(&task, true, 1));
}

}  // namespace

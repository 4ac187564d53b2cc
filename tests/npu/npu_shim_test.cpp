// What a tree's kernels stand on (src/npu/tree/aicore/), on the shim: halves that meet in FIFOs, rows that
// vector cores share, products without elements, launches; and faults, which end a task.

#include "wsp_kernel.h"

#include "wsp_dispatch.h"
#include "wsp_native.h"

#include "test.h"

#include <cstring>
#include <vector>

using wsp::Pipes;

namespace {

// -- tasks ----------------------------------------------------------------------------------------

// A task with a column of so many rows, and where the cube core leaves what it gets.
struct Case {
    explicit Case(uint64_t rows) : in(rows, 0), out(rows, -1), task() {
        for (size_t i = 0; i < rows; i++) {
            in[i] = static_cast<float>(10 * i + 1);
        }
        task.tile_count = 2;
        for (uint32_t i = 0; i < 2; i++) {
            task.args[2 * i] = rows;
            task.args[2 * i + 1] = 1;
            task.tiles[i] = {reinterpret_cast<uintptr_t>(i ? out.data() : in.data()), 1, 1};
        }
    }
    std::vector<float> in, out;
    wsp_task task;
};

void begin(wsp_task *task) {
    wsp::begin_tiles(task, ptoisa_machine_910b());
}

// -- halves ---------------------------------------------------------------------------------------

constexpr int ROWS = 16;
using ToCube = wsp::Fifo<2, false, ROWS * 4, 2, pto::TileSplitAxis::TILE_UP_DOWN>;
using ToVector = wsp::Fifo<0, true, ROWS * 4, 2, pto::TileSplitAxis::TILE_UP_DOWN>;
using Column = pto::Tile<pto::TileType::Vec, float, ROWS, 1, pto::BLayout::ColMajor, -1, 1>;
using Square = pto::Tile<pto::TileType::Mat, float, ROWS, 16, pto::BLayout::ColMajor, -1, -1,
                         pto::SLayout::RowMajor, 512>;

// Each vector core loads its rows of the column, and pushes them.
void push_column(wsp_task *task, Pipes &pipes) {
    const int rows = wsp::rows(task, 0);
    const wsp::Share mine = wsp::share(rows);
    ToCube to_cube(pipes, mine);
    auto gm = wsp::columns<float>(task, 0, mine.first(), 0, mine.of(rows), 1);
    Column column(mine.of(rows));
    TASSIGN(column, 0);
    TLOAD(column, gm);
    to_cube.push<1>(column);
    pipe_barrier(PIPE_ALL);
}

// The cube core gets all of them, as rows of one element.
void pop_column(wsp_task *task, Pipes &pipes) {
    ToCube to_cube(pipes);
    Square all(wsp::rows(task, 0), 1);
    TASSIGN(all, 0);
    WSP_UNCOUNTED(to_cube.pop<1>(all));
    for (int i = 0; i < wsp::rows(task, 0); i++) {
        reinterpret_cast<float *>(task->tiles[1].data)[i] = all.GetElement(i, 0);
    }
    pipe_barrier(PIPE_ALL);
}

TEST(shim__columns_go_from_vector_cores_to_the_cube_core) {
    for (uint64_t rows : {16u, 15u, 2u, 1u, 0u}) {  // of one row the second core has none
        Case now(rows);
        begin(&now.task);
        wsp::run_halves(&now.task, pop_column, push_column);
        wsp::end_tiles(&now.task);
        assert_int_equal(now.task.status, PTOWSP_OK);
        assert_int_equal(now.task.fault, 0);
        assert_true((now.task.cycles > 0) == (rows > 0));
        for (size_t i = 0; i < rows; i++) {
            assert_true(now.out[i] == now.in[i]);
        }
    }
}

void pop_nothing(wsp_task *, Pipes &pipes) {
    ToVector to_vector(pipes, wsp::share(2));
    Column column(1);
    TASSIGN(column, 0);
    to_vector.pop<1>(column);
    ToCube to_cube(pipes, wsp::share(2));
    to_cube.push<1>(column);
}

void push_nothing(wsp_task *, Pipes &) {
}

// The vector half waits for a tile that the cube half does not push: that ends the task, and the next
// one is good.
TEST(shim__halves_that_wait_for_ever_are_a_fault) {
    Case now(4);
    begin(&now.task);
    wsp::run_halves(&now.task, push_nothing, pop_nothing);
    assert_int_equal(now.task.fault, wsp::FAULT_OF_SHIM);
    assert_int_equal(now.task.status, PTOWSP_OK);  // until it ends
    wsp::end_tiles(&now.task);
    assert_int_equal(now.task.status, PTOWSP_KERNEL_FAILED);
    assert_int_equal(now.task.cycles, 0);
    begin(&now.task);
    assert_int_equal(now.task.fault, 0);
    wsp::run_halves(&now.task, pop_column, push_column);
    wsp::end_tiles(&now.task);
    assert_int_equal(now.task.status, PTOWSP_OK);
    assert_true(now.out[3] == now.in[3]);
}

// The first core has half of the rows, of an odd number one more; the second has the rest of what a
// tile has, which may be none.
TEST(shim__vector_cores_share_rows) {
    const struct {
        int rows, cut, of, first, second;
    } cases[] = {{8, 4, 8, 4, 4}, {5, 3, 5, 3, 2}, {1, 1, 1, 1, 0},
                 {0, 0, 0, 0, 0}, {5, 3, 2, 2, 0}, {5, 3, 3, 3, 0}};
    uint32_t &core = pto::shim::thread().subblock_id;
    for (const auto &it : cases) {
        for (core = 0; core < 2; core++) {
            const wsp::Share share = wsp::share(it.rows);
            assert_int_equal(share.first(), core ? it.cut : 0);
            assert_int_equal(share.of(it.of), core ? it.second : it.first);
        }
    }
    core = 0;
}

// -- products without elements --------------------------------------------------------------------

using Sum = pto::TileAcc<float, 16, 16, -1, -1>;
using Left = pto::TileLeft<float, 16, 16, -1, -1>;
using Right = pto::TileRight<float, 16, 16, -1, -1>;

TEST(shim__sums_of_no_products_are_zeros_or_the_bias) {
    Case now(1);
    begin(&now.task);
    const struct {
        int rows, cols, inner;
        bool is_any;
    } cases[] = {{3, 4, 5, true}, {0, 4, 5, false}, {3, 0, 5, false}, {3, 4, 0, false}};
    for (const auto &it : cases) {
        Sum c(it.rows, it.cols);
        Left a(it.rows, it.inner);
        assert_int_equal(wsp::any_product(c, a), it.is_any);
    }
    Sum c(3, 4);
    pto::Tile<pto::TileType::Bias, float, 1, 16, pto::BLayout::RowMajor, 1, -1> bias(4);
    TASSIGN(c, 0);
    TASSIGN(bias, 0);
    for (int i = 0; i < 12; i++) {
        c.SetElement(i / 4, i % 4, 7);
    }
    wsp::no_product<Left, Right>(c, 0, 0, 0);
    for (int i = 0; i < 12; i++) {
        assert_true(c.GetElement(i / 4, i % 4) == 0);
    }
    for (int i = 0; i < 4; i++) {
        bias.SetElement(0, i, static_cast<float>(i + 1));
    }
    wsp::no_product<Left, Right>(c, 0, 0, 0, bias);
    for (int i = 0; i < 12; i++) {
        assert_true(c.GetElement(i / 4, i % 4) == static_cast<float>(i % 4 + 1));
    }
    wsp::end_tiles(&now.task);
    assert_int_equal(now.task.status, PTOWSP_OK);
    assert_int_equal(now.task.cycles, 0);  // the shim fills for nothing
}

// -- dispatch -------------------------------------------------------------------------------------

TEST(shim__cycles_may_be_given) {
    wsp_task task = wsp_task();
    wsp::set_cycles(&task, 12);
    assert_int_equal(task.cycles, 12);
    task.status = PTOWSP_KERNEL_FAILED;
    wsp::set_cycles(&task, 12);
    assert_int_equal(task.cycles, 0);
}

// A flag that nobody waits for: of a generated kernel its number alone is told, of a source the text of
// the first fault of all.
TEST(shim__faults_end_a_task) {
    wsp_task task = wsp_task();
    TEST_GRID(int, is_own, 2, time, 2) {
        assert_string_equal(wsp::own_fault(),
                            is_own && time ? "SET_FLAG: MTE2 to V: a flag was never waited for"
                                           : "");
        begin(&task);
        if (is_own) {
            wsp::begin_own(false);
        }
        if (time) {
            set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
        } else {
            set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        }
        wsp::end_tiles(&task);
        assert_int_equal(task.status, PTOWSP_KERNEL_FAILED);
        assert_int_equal(task.fault, wsp::FAULT_OF_SHIM);
        assert_int_equal(task.cycles, 0);
    }
}

// -- kernels that are C functions -----------------------------------------------------------------

uint32_t call_count;

// The scalar of the task, without its data and with it.
ptowsp_cycles cost_of(const ptowsp_task *task, void *) {
    return task->tiles[0].data ? 0 : ptowsp_task_scalar(task, 0);
}

ptowsp_cycles run_function(const ptowsp_task *task, void *) {
    call_count++;
    *static_cast<float *>(task->tiles[0].data) += 1;
    return ptowsp_task_scalar(task, 1);
}

TEST(shim__functions_are_given_cycles_or_cost_them) {
    const uint64_t failed = ptowsp_task_fail(PTOWSP_LIMIT_EXCEEDED), wrong = PTOWSP_CYCLES_MAX + 1;
    const struct {
        bool has_cost;
        uint64_t given, cost, result;
        int32_t status;
        uint64_t cycles;
        bool is_called;
    } cases[] = {{false, 0, 0, 9, PTOWSP_OK, 9, true},
                 {false, 5, 0, 9, PTOWSP_OK, 5, true},
                 {true, 0, 7, 9, PTOWSP_OK, 7, true},
                 {true, 5, 0, 9, PTOWSP_OK, 0, true},
                 {true, 5, 7, failed, PTOWSP_LIMIT_EXCEEDED, 0, true},
                 {false, 5, 0, wrong, PTOWSP_KERNEL_FAILED, 0, true},
                 {true, 5, failed, 9, PTOWSP_LIMIT_EXCEEDED, 0, false},
                 {true, 0, wrong, 9, PTOWSP_KERNEL_FAILED, 0, false}};
    for (const auto &it : cases) {
        Case now(1);
        call_count = 0;
        now.task.scalar_count = 2;
        now.task.args[4] = it.cost;
        now.task.args[5] = it.result;
        now.task.fault = 3;
        wsp::run_native(&now.task, "f", run_function, it.has_cost ? cost_of : nullptr, it.given);
        assert_int_equal(now.task.status, it.status);
        assert_int_equal(now.task.cycles, it.cycles);
        assert_int_equal(now.task.fault, 0);
        assert_int_equal(call_count, it.is_called);
        assert_true(now.in[0] == (it.is_called ? 2 : 1));
    }
}

// -- launches -------------------------------------------------------------------------------------

uint32_t launched[3];  // by unit

template <int Unit> void entry(uint8_t *element, uint32_t count, void *, uint64_t) {
    wsp_task *task = Unit == 0   ? wsp::launched_vector(element, count)
                     : Unit == 1 ? wsp::launched_cube(element, count)
                                 : wsp::launched_mix(element, count);
    assert_int_equal(count, 1);
    assert_int_equal(task->index, launched[Unit]++);
    wsp::write_results(task);
}

// As generated launches do: each element of an array once, in its order.
TEST(shim__launches_run_each_task) {
    constexpr uint32_t task_count = 3;
    std::vector<uint8_t> elements(task_count * WSP_TASK_STRIDE);
    for (uint32_t i = 0; i < task_count; i++) {
        wsp_task task = wsp_task();
        task.index = i;
        std::memcpy(&elements[i * WSP_TASK_STRIDE], &task, sizeof task);
    }
    const uint64_t tasks = reinterpret_cast<uintptr_t>(elements.data());
    WSP_START_vector(entry<0>);
    WSP_START_cube(entry<1>);
    WSP_START_mix(entry<2>);
    for (uint32_t count : launched) {
        assert_int_equal(count, task_count);
    }
}

}  // namespace

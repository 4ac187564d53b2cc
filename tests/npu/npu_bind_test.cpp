// Bindings of emitted trees by their C API: of each kind, several in one call, what is refused; and that
// a runner which runs is busy. The program is written by hand: it reads all that is bound.

#include "test.h"

#include <string>
#undef fail  // a name of trees

#include "wsp_expand.h"
#include "wsp_runner.h"

using namespace wsp;

namespace {

enum { ROWS = 1, ROUTES, PAGES, KV, LANES, NAMELESS, CUT, MERGES };                   // axes
enum { LENGTHS = 1, WIDE, FLAGS, KV_FLAGS, KV_LANE, CUT_FLAGS, CUT_LANE, CUT_SLOT };  // arrays

const wsp_axis_decl axes[] = {{nullptr, 0, 0, 0, 0},
                              {"rows", PTOWSP_AXIS_DYNAMIC, 0, 0, 1},
                              {"routes", PTOWSP_AXIS_SPARSE, 0, 0, 1},
                              {"pages", PTOWSP_AXIS_RAGGED, LENGTHS, 0, 1},
                              {"kv", PTOWSP_AXIS_PLAN, KV_FLAGS, 0, 1},
                              {"kv", PTOWSP_AXIS_PLAN_LANES, 0, 0, 1},
                              {nullptr, PTOWSP_AXIS_DENSE, 0, 4, 1},
                              {"cut", PTOWSP_AXIS_PLAN, CUT_FLAGS, 0, 1},
                              {"cut", PTOWSP_AXIS_PLAN_MERGES, 0, 0, 1}};
const wsp_array_decl arrays[] = {{nullptr, 0, 0, 0},
                                 {"pages", 0, 1, 1},
                                 {"wide", PTOWSP_U64, 0, 1},
                                 {"flags", PTOWSP_BOOL, 0, 1},
                                 {"kv.flags", PTOWSP_U8, 0, 1},
                                 {"kv.lane", PTOWSP_U32, 0, 1},
                                 {"cut.flags", PTOWSP_U8, 0, 0},
                                 {"cut.lane", PTOWSP_U32, 0, 0},
                                 {"cut.slot", PTOWSP_U32, 0, 1}};
const wsp_field_decl fields[] = {{KV_FLAGS, KV, PTOWSP_PLAN_FLAGS},
                                 {KV_LANE, KV, PTOWSP_PLAN_LANE},
                                 {CUT_FLAGS, CUT, PTOWSP_PLAN_FLAGS},
                                 {CUT_LANE, CUT, PTOWSP_PLAN_LANE},
                                 {CUT_SLOT, CUT, PTOWSP_PLAN_SLOT}};
const wsp_symbol_decl symbols[] = {{nullptr, 0}, {"seed", 1}};
const wsp_tensor_decl tensors[] = {{nullptr, 0, 0, {0}, 0, 0, 0, 0},
                                   {"x", PTOWSP_F32, 2, {4, 4}, 1, 1, 0, 0},
                                   {"between", PTOWSP_F32, 2, {4, 4}, 0, 0, 0, 1},
                                   {"y", PTOWSP_F64, 3, {PTOWSP_DYNAMIC, 8, 6}, 0, 0, 0, 0}};
const wsp_kernel kernels[] = {{nullptr, 0, 0, 0, 0, {nullptr}},
                              {"step", PTOWSP_UNIT_VECTOR, 1, 0, 1, {nullptr}}};
const char *const places[] = {"", "main/task step", "main/for_each lane"};

int64_t lane_count;  // that the walk goes to

void expand(Run &run) {
    i64 indices = 0, units = 0;
    for (const Entry &e : run.entries(ROUTES)) {
        indices = indices + e.index;
    }
    for (i64 lane = 0; lane < lane_count && run.good(); lane++) {
        for (const i64 &u : run.units(KV, lane, 2)) {
            units = units + u + 1;
        }
    }
    run.set_slot(0, run.length_sum(LENGTHS));
    run.set_slot(1, indices);
    run.set_slot(2, units);
    run.at(1);
    run.set_slot(3, run.array_u64(WIDE, 1));
    run.set_slot(4, run.array_bool(FLAGS, 0));
    run.set_slot(5, run.slot_bool(4));
    Task task(run, 1, 1);
    task.axis(run.size(ROWS));
    task.scalar(run.symbol(1));
    run.set_slot(6, task.arg(0));
    run.set_slot(7, task.arg(1) + task.arg(99));
    task.submit();
}

ptowsp_schedule make_schedule() {
    ptowsp_schedule schedule = ptowsp_schedule();
    schedule.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN;
    schedule.lane_count = 1;
    schedule.dependencies = PTOWSP_DEPENDENCIES_STRUCTURE;
    schedule.hazards = 7;
    return schedule;
}

wsp_runner *running;  // what the kernel asks
ptowsp_status asked[2];

struct Bound {
    Bound() {
        assert_ok(wsp_runner_create(&runner));
        plan.units = units;
        plan.unit_begin = begin;
        plan.merge_begin = merge_begin;
        plan.unit_capacity = plan.unit_count = 3;
        plan.lane_count = 2;
        lane_count = 2;
        running = nullptr;
    }
    ~Bound() {
        wsp_runner_destroy(runner);
    }
    void bind() {
        for (const ptowsp_status status :
             {wsp_runner_bind_size(runner, "rows", 7), wsp_runner_bind_symbol(runner, "seed", 9),
              wsp_runner_bind_lengths(runner, "pages", PTOWSP_I32, lengths, 3),
              wsp_runner_bind_array(runner, "wide", PTOWSP_U64, wide, 2),
              wsp_runner_bind_array(runner, "flags", PTOWSP_BOOL, &flag, 1),
              wsp_runner_bind_csr(runner, "routes", &csr),
              wsp_runner_bind_plan(runner, "kv", &plan), wsp_runner_bind_plan(runner, "cut", &plan),
              wsp_runner_bind_tensor(runner, "x", &buffer)}) {
            assert_ok(status);
        }
    }
    void refuses(ptowsp_status status, const std::string &text) {
        const ptowsp_error error = wsp_runner_error(runner);
        assert_invalid(status);
        assert_string_equal(error.text, text.c_str());
        assert_true(error.index == PTOWSP_NO_INDEX);
    }

    wsp_runner *runner = nullptr;
    float x[16] = {0};
    double y[3 * 48] = {0};
    ptowsp_buffer buffer = {x, 0, PTOWSP_DTYPE_NONE, 0, {}, {}};
    ptowsp_buffer of_y = {y, sizeof y, PTOWSP_DTYPE_NONE, 3, {3, 8, 6}, {}};
    int32_t lengths[3] = {4, 0, 5};
    uint64_t wide[2] = {1, UINT64_MAX};
    bool flag = true;
    uint32_t indptr[3] = {0, 1, 3}, indices[3] = {2, 0, 3};
    ptowsp_csr csr = {PTOWSP_U32, indptr, indices, 2, 3};
    ptowsp_work units[3] = {};
    uint32_t begin[3] = {0, 1, 3}, merge_begin[3] = {0, 0, 0};
    ptowsp_attention_plan plan = ptowsp_attention_plan();
};

// Lengths 4 + 0 + 5, columns 2 + 0 + 3, units 0, 1, 2 counted from 1.
TEST(bind__all_that_is_bound_is_read) {
    Bound b;
    b.bind();
    wsp_runner_result result;
    running = b.runner;
    const ptowsp_status status = wsp_runner_run(b.runner, nullptr, &result);
    assert_string_equal(wsp_runner_error(b.runner).text, "");
    assert_int_equal(status, PTOWSP_OK);
    const uint64_t wanted[] = {9, 5, 6, UINT64_MAX, 1, 1, 7, 9};
    for (uint32_t i = 0; i < 8; i++) {
        assert_true(wsp_runner_slot(b.runner, i) == wanted[i]);
    }
    assert_int_equal(wsp_runner_slot(b.runner, 9), 0);  // there is none
    assert_int_equal(result.task_count, 1);
    // The kernel has asked while it ran.
    assert_int_equal(asked[0], PTOWSP_BUSY);
    assert_int_equal(asked[1], PTOWSP_BUSY);
}

TEST(bind__names_are_of_their_kind) {
    Bound b;
    const ptowsp_attention_config config = ptowsp_attention_config();
    // A field of a plan is bound with it.
    struct {
        ptowsp_bind_kind kind;
        const char *name, *text;
    } const wrong[] = {{PTOWSP_BIND_SIZE, "routes", "has no dynamic axis routes"},
                       {PTOWSP_BIND_SIZE, "pages", "has no dynamic axis pages"},
                       {PTOWSP_BIND_SIZE, "bach", "has no dynamic axis bach"},
                       {PTOWSP_BIND_SYMBOL, "a\nb", "has no symbol of such a name"},
                       {PTOWSP_BIND_SIZE, nullptr, "has no dynamic axis NULL"},
                       {PTOWSP_BIND_SYMBOL, "rows", "has no symbol rows"},
                       {PTOWSP_BIND_ARRAY, "seed", "has no array seed"},
                       {PTOWSP_BIND_ARRAY, "kv.flags", "has no array kv.flags"},
                       {PTOWSP_BIND_LENGTHS, "kv.flags", "has no ragged axis kv.flags"},
                       {PTOWSP_BIND_CSR, "rows", "has no sparse axis rows"},
                       {PTOWSP_BIND_TENSOR, "wide", "has no tensor wide"},
                       {PTOWSP_BIND_PLAN, "rows", "has no plan rows"},
                       {PTOWSP_BIND_WORK, "pages", "has no plan pages"},
                       {PTOWSP_BIND_BATCH, nullptr, "has no plan NULL"}};
    for (const auto &w : wrong) {
        const ptowsp_binding bound = pwsp_binding_of(w.kind, w.name);
        b.refuses(wsp_runner_bind(b.runner, &bound, 1), std::string("bind: module p ") + w.text);
    }
    for (int kind : {int(PTOWSP_BIND_RANKS), int(PTOWSP_BIND_KIND_COUNT), 99}) {
        const ptowsp_binding bound = pwsp_binding_of(static_cast<ptowsp_bind_kind>(kind), "x");
        b.refuses(wsp_runner_bind(b.runner, &bound, 1),
                  "bind: a tree has no kind of binding " + std::to_string(kind));
    }
    assert_invalid(wsp_runner_create(nullptr));
    assert_ok(wsp_runner_bind_plan(b.runner, "kv", &b.plan));
    // A plan without lanes has none for the axis of lanes.
    const ptowsp_status status = wsp_runner_bind_work(b.runner, "kv", b.units, 3);
    assert_int_equal(status, PTOWSP_INVALID_PARAMS);
    assert_non_null(strstr(wsp_runner_error(b.runner).text, "kv"));
    assert_non_null(strstr(wsp_runner_error(b.runner).text, "lanes"));
    // Of several things that it lacks, the first is told axis by axis, as the library does: the slots of
    // its units before its merges.
    b.refuses(wsp_runner_bind_work(b.runner, "cut", b.units, 3),
              "bind: plan cut is bound as work, which has no slots; the program uses them");
    // What is wrong with a plan and a batch is told as the library does.
    b.plan.units = nullptr;
    assert_invalid(wsp_runner_bind_plan(b.runner, "kv", &b.plan));
    assert_invalid(wsp_runner_bind_plan(b.runner, "kv", nullptr));
    assert_invalid(wsp_runner_bind_batch(b.runner, "kv", nullptr, &config, nullptr));
}

// One of each kind, as tests/exec/runs.facts has all that the same checks refuse. What was bound before stays.
TEST(bind__refuses_what_cannot_be) {
    Bound b;
    b.bind();
    const auto refuses = [&b](ptowsp_status status, const char *text) {
        b.refuses(status, std::string("bind: ") + text);
        assert_ok(wsp_runner_run(b.runner, nullptr, nullptr));
    };
    refuses(wsp_runner_bind_size(b.runner, "rows", -1), "size -1 of axis rows is negative");
    refuses(wsp_runner_bind_array(b.runner, "wide", PTOWSP_I32, b.lengths, 3),
            "wide is i32; it is declared u64");
    refuses(wsp_runner_bind_lengths(b.runner, "wide", PTOWSP_U64, b.wide, 1),
            "wide is an array, not a ragged axis");
    refuses(wsp_runner_bind_lengths(b.runner, "pages", PTOWSP_I16, b.lengths, 1),
            "lengths of pages are i16; they are i32, i64, u32 or u64");
    refuses(wsp_runner_bind_csr(b.runner, "routes", nullptr), "the csr of axis routes is NULL");
    refuses(wsp_runner_bind_tensor(b.runner, "y", nullptr), "the buffer of tensor y is NULL");
    b.of_y.size -= 8;
    refuses(wsp_runner_bind_tensor(b.runner, "y", &b.of_y),
            "tensor y spans elements 0 to 143, which are not all in its 1144 bytes");
    b.of_y.dtype = PTOWSP_F32;
    refuses(wsp_runner_bind_tensor(b.runner, "y", &b.of_y), "tensor y is f32; it is declared f64");
    b.of_y = {b.y, 0, PTOWSP_DTYPE_NONE, 2, {8, 6}, {}};
    refuses(wsp_runner_bind_tensor(b.runner, "y", &b.of_y),
            "tensor y has rank 2; it is declared with 3");
    // Of an element, a dimension and a slot the error has the index.
    const auto refuses_at = [&](ptowsp_status status, uint64_t index, const char *text) {
        assert_invalid(status);
        assert_string_equal(wsp_runner_error(b.runner).text, text);
        assert_true(wsp_runner_error(b.runner).index == index);
        assert_ok(wsp_runner_run(b.runner, nullptr, nullptr));
    };
    b.of_y = {b.y, 0, PTOWSP_DTYPE_NONE, 3, {3, 9, 6}, {}};
    refuses_at(wsp_runner_bind_tensor(b.runner, "y", &b.of_y), 1,
               "bind: dimension 1 of tensor y is 9; it is declared 8");
    refuses_at(wsp_runner_bind_slot(b.runner, 9, 1), 9, "bind: slot 9, but there are 9");
    wsp_runner_destroy(nullptr);
}

TEST(run__refuses_options_that_cannot_be) {
    const struct {
        wsp_runner_options options;
        const char *text;
    } wrong[] = {{{17, 0, 0, 0, 0, nullptr, 0, 0}, "aicpu_count is 17; it is at most 16"},
                 {{0, 73, 0, 0, 0, nullptr, 0, 0}, "core_count is 73; it is at most 72"},
                 {{0, 0, 0, 3, 0, nullptr, 0, 0}, "there is no cost model 3 in a tree"},
                 {{0, 0, 0, 0, 2147483648u, nullptr, 0, 0},
                  "time_limit_ms is 2147483648; it is at most 2147483647"},
                 {{0, 0, 0, 0, 0, nullptr, 0, 2}, "there is no driver 2"},
                 {{2, 0, 0, 0, 0, nullptr, 0, PTOWSP_DRIVER_HOST},
                  "aicpu_count is 2, and the host is the driver, which schedules on one thread"}};
    Bound b;
    b.bind();
    for (const auto &w : wrong) {
        b.refuses(wsp_runner_run(b.runner, &w.options, nullptr), std::string("run: ") + w.text);
    }
    b.buffer.data = nullptr;
    assert_ok(wsp_runner_bind_tensor(b.runner, "x", &b.buffer));
    assert_int_equal(wsp_runner_run(b.runner, nullptr, nullptr), PTOWSP_UNBOUND);
    assert_string_equal(wsp_runner_error(b.runner).text, "run: tensor x is bound without data");
}

// In order, up to the first error.
TEST(bind__takes_several_at_once) {
    Bound b;
    ptowsp_binding step[3] = {pwsp_binding_of(PTOWSP_BIND_SIZE, "rows"),
                              pwsp_binding_of(PTOWSP_BIND_SYMBOL, "none"),
                              pwsp_binding_of(PTOWSP_BIND_SIZE, "rows")};
    b.bind();
    step[0].value = 3;
    step[2].value = 4;
    b.refuses(wsp_runner_bind(b.runner, step, 3), "bind: module p has no symbol none");
    step[1].name = "seed";
    step[1].value = 8;
    assert_ok(wsp_runner_run(b.runner, nullptr, nullptr));
    assert_true(wsp_runner_slot(b.runner, 6) == 3 && wsp_runner_slot(b.runner, 7) == 9);
    assert_ok(wsp_runner_bind(b.runner, step, 3));
    assert_ok(wsp_runner_bind(b.runner, nullptr, 0));
    assert_ok(wsp_runner_run(b.runner, nullptr, nullptr));
    assert_true(wsp_runner_slot(b.runner, 6) == 4 && wsp_runner_slot(b.runner, 7) == 8);
}

// A lane that the plan has not.
TEST(bind__walks_stop_where_they_read_outside) {
    Bound b;
    b.bind();
    lane_count = 3;
    assert_ok(wsp_runner_bind_slot(b.runner, 8, 5));
    assert_invalid(wsp_runner_run(b.runner, nullptr, nullptr));
    assert_int_equal(wsp_runner_slot(b.runner, 8), 5);
    const char *text = wsp_runner_error(b.runner).text;
    assert_memory_equal(text, "main/for_each lane: ", 20);
    assert_non_null(strstr(text, "kv"));
    lane_count = 2;
    assert_ok(wsp_runner_bind_array(b.runner, "wide", PTOWSP_U64, b.wide, 1));
    assert_invalid(wsp_runner_run(b.runner, nullptr, nullptr));
    assert_memory_equal(wsp_runner_error(b.runner).text, "main/task step: ", 16);
}

}  // namespace

extern "C" {

// clang-format off
extern const wsp_program wsp_the_program;
const wsp_program wsp_the_program = {
    WSP_ABI_VERSION, "p", "0", 9, 9, 2, 4, 2, 9, axes, arrays, symbols, tensors, kernels, 3, places,
    make_schedule(), 1, 0, 0, 0, 4, 0, 0, expand, 5, fields, nullptr};
// clang-format on

void wsp_core_run(wsp_task *task) {
    if (running) {
        asked[0] = wsp_runner_bind_size(running, "rows", 3);
        asked[1] = wsp_runner_run(running, nullptr, nullptr);
    }
    task->status = PTOWSP_OK;
    task->cycles = 1;
}

wsp_launcher wsp_launcher_of(uint32_t) {
    return nullptr;
}

const char *wsp_core_fault_text(uint32_t, uint32_t) {
    return "";
}

}  // extern "C"

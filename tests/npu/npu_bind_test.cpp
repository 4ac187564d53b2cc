// Bindings of emitted trees by their C API: by index and by name, of each kind, what is refused; and that
// a runner which runs is busy. The program is written by hand: it reads all that is bound.

#include "test.h"
#undef fail  // a name of trees

#include "wsp_expand.h"
#include "wsp_runner.h"

using namespace wsp;

namespace {

enum { ROWS = 1, ROUTES, PAGES, KV, LANES, NAMELESS };  // axes
enum { LENGTHS = 1, WIDE, FLAGS, KV_FLAGS, KV_LANE };   // arrays

const wsp_axis_decl axes[] = {{nullptr, 0, 0, 0, 0},
                              {"rows", PTOWSP_AXIS_DYNAMIC, 0, 0, 1},
                              {"routes", PTOWSP_AXIS_SPARSE, 0, 0, 1},
                              {"pages", PTOWSP_AXIS_RAGGED, LENGTHS, 0, 1},
                              {"kv", PTOWSP_AXIS_PLAN, KV_FLAGS, 0, 1},
                              {"kv", PTOWSP_AXIS_PLAN_LANES, 0, 0, 1},
                              {nullptr, PTOWSP_AXIS_DENSE, 0, 4, 1}};
const wsp_array_decl arrays[] = {{nullptr, 0, 0, 0},
                                 {"pages", 0, 1, 1},
                                 {"wide", PTOWSP_U64, 0, 1},
                                 {"flags", PTOWSP_BOOL, 0, 1},
                                 {"kv.flags", PTOWSP_U8, 0, 1},
                                 {"kv.lane", PTOWSP_U32, 0, 1}};
const wsp_field_decl fields[] = {{KV_FLAGS, KV, PTOWSP_PLAN_FLAGS},
                                 {KV_LANE, KV, PTOWSP_PLAN_LANE}};
const wsp_symbol_decl symbols[] = {{nullptr, 0}, {"seed", 1}};
const wsp_tensor_decl tensors[] = {{nullptr, 0, 0, {0}, 0, 0, 0, 0},
                                   {"x", PTOWSP_F32, 2, {4, 4}, 1, 1, 0, 0},
                                   {"between", PTOWSP_F32, 2, {4, 4}, 0, 0, 0, 1}};
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
        for (const i64 u : run.units(KV, lane, 2)) {
            units = units + u + 1;
        }
    }
    const Array<u64> wide(run, WIDE);
    const Array<bool> flags(run, FLAGS);
    run.set_slot(0, run.length_sum(LENGTHS));
    run.set_slot(1, indices);
    run.set_slot(2, units);
    run.at(1);
    run.set_slot(3, wide[1]);
    run.set_slot(4, flags[0]);
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
        assert_int_equal(wsp_runner_create(&runner), PTOWSP_OK);
        buffer.data = x;
        csr.dtype = PTOWSP_U32;
        csr.indptr = indptr;
        csr.indices = indices;
        csr.row_count = 2;
        csr.entry_count = 3;
        plan.units = units;
        plan.unit_begin = begin;
        plan.merge_begin = merge_begin;
        plan.unit_capacity = plan.unit_count = 3;
        plan.lane_count = 2;
        lane_count = 2;
    }
    ~Bound() {
        wsp_runner_destroy(runner);
    }
    void bind() {
        assert_int_equal(wsp_runner_bind_size_at(runner, ROWS, 7), PTOWSP_OK);
        assert_int_equal(wsp_runner_bind_symbol_at(runner, 1, 9), PTOWSP_OK);
        assert_int_equal(wsp_runner_bind_lengths(runner, "pages", PTOWSP_I32, lengths, 3),
                         PTOWSP_OK);
        assert_int_equal(wsp_runner_bind_array_at(runner, WIDE, PTOWSP_U64, wide, 2), PTOWSP_OK);
        assert_int_equal(wsp_runner_bind_array_at(runner, FLAGS, PTOWSP_BOOL, &flag, 1), PTOWSP_OK);
        assert_int_equal(wsp_runner_bind_csr_at(runner, ROUTES, &csr), PTOWSP_OK);
        assert_int_equal(wsp_runner_bind_plan_at(runner, KV, &plan), PTOWSP_OK);
        assert_int_equal(wsp_runner_bind_tensor_at(runner, 1, &buffer), PTOWSP_OK);
    }
    void refuses(ptowsp_status status, uint64_t index, const char *text) {
        const ptowsp_error error = wsp_runner_error(runner);
        assert_int_equal(status, PTOWSP_INVALID_PARAMS);
        assert_string_equal(error.text, text);
        assert_true(error.index == index);
    }

    wsp_runner *runner = nullptr;
    float x[16] = {0};
    ptowsp_buffer buffer = ptowsp_buffer();
    int32_t lengths[3] = {4, 0, 5};
    uint64_t wide[2] = {1, UINT64_MAX};
    bool flag = true;
    uint32_t indptr[3] = {0, 1, 3}, indices[3] = {2, 0, 3};
    ptowsp_csr csr = ptowsp_csr();
    ptowsp_work units[3] = {};
    uint32_t begin[3] = {0, 1, 3}, merge_begin[3] = {0, 0, 0};
    ptowsp_attention_plan plan = ptowsp_attention_plan();
};

// Lengths 4 + 0 + 5, columns 2 + 0 + 3, units 0, 1, 2 counted from 1.
void bind__all_that_is_bound_is_read(void **) {
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
    assert_int_equal(result.task_count, 1);
    // The kernel has asked while it ran.
    assert_int_equal(asked[0], PTOWSP_BUSY);
    assert_int_equal(asked[1], PTOWSP_BUSY);
}

void bind__indices_are_of_their_kind(void **) {
    Bound b;
    for (uint32_t axis : {0u, uint32_t(ROUTES), 99u}) {
        char text[100];
        snprintf(text, sizeof text, "bind: module p has no dynamic axis %u", axis);
        b.refuses(wsp_runner_bind_size_at(b.runner, axis, 1), axis, text);
    }
    for (uint32_t axis : {0u, uint32_t(ROWS), uint32_t(NAMELESS), 99u}) {
        char text[100];
        snprintf(text, sizeof text, "bind: module p has no sparse axis %u", axis);
        b.refuses(wsp_runner_bind_csr_at(b.runner, axis, &b.csr), axis, text);
        snprintf(text, sizeof text, "bind: module p has no plan %u", axis);
        const ptowsp_attention_batch batch = ptowsp_attention_batch();
        const ptowsp_attention_config config = ptowsp_attention_config();
        ptowsp_attention_plan work = b.plan;
        work.lane_count = 0;
        b.refuses(wsp_runner_bind_plan_at(b.runner, axis, &b.plan), axis, text);
        b.refuses(wsp_runner_bind_plan_at(b.runner, axis, &work), axis, text);
        b.refuses(wsp_runner_bind_batch_at(b.runner, axis, &batch, &config, nullptr), axis, text);
    }
    for (uint32_t i : {0u, 99u}) {
        char text[100];
        snprintf(text, sizeof text, "bind: module p has no symbol %u", i);
        b.refuses(wsp_runner_bind_symbol_at(b.runner, i, 1), i, text);
        snprintf(text, sizeof text, "bind: module p has no tensor %u", i);
        b.refuses(wsp_runner_bind_tensor_at(b.runner, i, &b.buffer), i, text);
        snprintf(text, sizeof text, "bind: module p has no array %u", i);
        b.refuses(wsp_runner_bind_array_at(b.runner, i, PTOWSP_U64, b.wide, 2), i, text);
    }
    // A field of a plan is bound with it.
    b.refuses(wsp_runner_bind_array_at(b.runner, KV_FLAGS, PTOWSP_U8, b.wide, 2), KV_FLAGS,
              "bind: module p has no array 4");
    assert_int_equal(wsp_runner_create(nullptr), PTOWSP_INVALID_PARAMS);
}

void bind__names_are_of_their_kind(void **) {
    Bound b;
    const ptowsp_attention_batch batch = ptowsp_attention_batch();
    const ptowsp_attention_config config = ptowsp_attention_config();
    const char *const text = "bind: module p has no plan rows";
    b.refuses(wsp_runner_bind_plan(b.runner, "rows", &b.plan), PTOWSP_NO_INDEX, text);
    b.refuses(wsp_runner_bind_work(b.runner, "rows", b.units, 3), PTOWSP_NO_INDEX, text);
    b.refuses(wsp_runner_bind_batch(b.runner, "rows", &batch, &config, nullptr), PTOWSP_NO_INDEX,
              text);
    b.refuses(wsp_runner_bind_plan(b.runner, nullptr, &b.plan), PTOWSP_NO_INDEX,
              "bind: module p has no plan NULL");
    b.refuses(wsp_runner_bind_size(b.runner, "none", 1), PTOWSP_NO_INDEX,
              "bind: module p has no dynamic axis none");
    assert_int_equal(wsp_runner_bind_plan(b.runner, "kv", &b.plan), PTOWSP_OK);
    // A plan without lanes has none for the axis of lanes.
    const ptowsp_status status = wsp_runner_bind_work(b.runner, "kv", b.units, 3);
    assert_int_equal(status, PTOWSP_INVALID_PARAMS);
    assert_non_null(strstr(wsp_runner_error(b.runner).text, "kv"));
    assert_non_null(strstr(wsp_runner_error(b.runner).text, "lanes"));
    // What is wrong with a plan and a batch is told as the library does.
    b.plan.units = nullptr;
    assert_int_equal(wsp_runner_bind_plan(b.runner, "kv", &b.plan), PTOWSP_INVALID_PARAMS);
    assert_int_equal(wsp_runner_bind_plan_at(b.runner, KV, nullptr), PTOWSP_INVALID_PARAMS);
    assert_int_equal(wsp_runner_bind_batch(b.runner, "kv", nullptr, &config, nullptr),
                     PTOWSP_INVALID_PARAMS);
}

// A lane that the plan has not.
void bind__walks_stop_where_they_read_outside(void **) {
    Bound b;
    b.bind();
    running = nullptr;
    lane_count = 3;
    assert_int_equal(wsp_runner_run(b.runner, nullptr, nullptr), PTOWSP_INVALID_PARAMS);
    const char *text = wsp_runner_error(b.runner).text;
    assert_memory_equal(text, "main/for_each lane: ", 20);
    assert_non_null(strstr(text, "kv"));
    lane_count = 2;
    assert_int_equal(wsp_runner_bind_array(b.runner, "wide", PTOWSP_U64, b.wide, 1), PTOWSP_OK);
    assert_int_equal(wsp_runner_run(b.runner, nullptr, nullptr), PTOWSP_INVALID_PARAMS);
    assert_memory_equal(wsp_runner_error(b.runner).text, "main/task step: ", 16);
}

}  // namespace

extern "C" {

extern const wsp_program wsp_the_program;
const wsp_program wsp_the_program = {WSP_ABI_VERSION,
                                     "p",
                                     "0",
                                     7,
                                     6,
                                     2,
                                     3,
                                     2,
                                     8,
                                     axes,
                                     arrays,
                                     symbols,
                                     tensors,
                                     kernels,
                                     3,
                                     places,
                                     make_schedule(),
                                     1,
                                     0,
                                     0,
                                     0,
                                     4,
                                     0,
                                     0,
                                     expand,
                                     2,
                                     fields,
                                     nullptr};

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bind__all_that_is_bound_is_read),
        cmocka_unit_test(bind__indices_are_of_their_kind),
        cmocka_unit_test(bind__names_are_of_their_kind),
        cmocka_unit_test(bind__walks_stop_where_they_read_outside),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}

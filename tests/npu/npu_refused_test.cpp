// Runs of emitted trees where the system refuses memory or threads, or a kernel its task or launch. Files
// of the runtime are compiled in with hooks: each allocation is refused in turn, then each thread. A
// refusal is a status with its text; the run ends all the same, leaves no memory behind, and the next one
// is good.

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <set>

#include "wsp_core.h"

// -- hooks ----------------------------------------------------------------------------------------

static struct {
    uint64_t allocations, refuse_at, live;  // from 1; 0: none is refused
    uint64_t threads, refuse_thread;
    bool refuses_block, refuses_channel;
} hooks;

static void *hook_resize(void *, void *ptr, size_t, size_t size) {
    if (size == 0) {
        __atomic_fetch_sub(&hooks.live, ptr ? 1u : 0u, __ATOMIC_RELAXED);
        free(ptr);
        return nullptr;
    }
    if (__atomic_add_fetch(&hooks.allocations, 1u, __ATOMIC_RELAXED) == hooks.refuse_at) {
        return nullptr;
    }
    __atomic_fetch_add(&hooks.live, ptr ? 0u : 1u, __ATOMIC_RELAXED);
    return realloc(ptr, size);
}

static pwsp_memory hook_memory_make(ptowsp_resize_fn, void *) {
    return {hook_resize, nullptr};
}

static int hook_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*main)(void *),
                       void *argument) {
    return __atomic_add_fetch(&hooks.threads, 1u, __ATOMIC_RELAXED) == hooks.refuse_thread
               ? EAGAIN
               : pthread_create(thread, attributes, main, argument);
}

static void *hook_aligned_alloc(size_t alignment, size_t size) {
    return hooks.refuses_block ? nullptr : aligned_alloc(alignment, size);
}

static void *hook_refuse(void *, void *, size_t, size_t) {
    return nullptr;
}

static ptowsp_status hook_channel_open(pwsp_channel *channel, const pwsp_memory *memory,
                                       const char *name, uint64_t depth, uint64_t latency,
                                       bool by_symbol, bool has_marks, pwsp_error *error) {
    const pwsp_memory none = {hook_refuse, nullptr};
    return pwsp_channel_open(channel, hooks.refuses_channel ? &none : memory, name, depth, latency,
                             by_symbol, has_marks, error);
}

#define pwsp_channel_open hook_channel_open
#define pwsp_memory_make  hook_memory_make
#define pthread_create    hook_create
#define aligned_alloc     hook_aligned_alloc
#include "src/npu/tree/aicpu/wsp_clock.cpp"
#include "src/npu/tree/aicpu/wsp_expand.cpp"
#include "src/npu/tree/aicpu/wsp_pipeline_network.cpp"
#include "src/npu/tree/aicpu/wsp_pipeline_turns.cpp"
#include "src/npu/tree/aicpu/wsp_scheduler.cpp"
#include "src/npu/tree/host/wsp_run.cpp"
#include "src/npu/tree/host/wsp_transients.cpp"
#undef pwsp_channel_open
#undef pwsp_memory_make
#undef pthread_create
#undef aligned_alloc

#include "wsp_pipeline.h"

#include "test.h"

using namespace wsp;

// The kernel: adds its scalar to a number, if that is not below 0.
extern "C" void wsp_core_run(wsp_task *task) {
    const int32_t value = static_cast<int32_t>(task->args[2]);
    *reinterpret_cast<int32_t *>(task->tiles[0].data) += value;
    task->cycles = 10;
    task->status = value < 0 ? PTOWSP_KERNEL_FAILED : PTOWSP_OK;
}

static int32_t launch(uint32_t count, void *, uint64_t tasks, uint64_t, uint64_t) {
    for (uint32_t i = 0; i < count; i++) {
        wsp_core_run(
            reinterpret_cast<wsp_task *>(static_cast<uintptr_t>(tasks + i * WSP_TASK_STRIDE)));
    }
    return 0;
}

static int32_t launch_refused(uint32_t, void *, uint64_t, uint64_t, uint64_t) {
    return 507;
}

static wsp_launcher the_launch;

extern "C" wsp_launcher wsp_launcher_of(uint32_t) {
    return the_launch;
}

extern "C" const char *wsp_core_fault_text(uint32_t, uint32_t) {
    return "";
}

namespace {

// -- the program ----------------------------------------------------------------------------------

// Eight tasks side by side; a slot from what one wrote; a pipeline of two processes, whose tasks add as
// many tokens as there are units in the plan of a batch. Tensor t is transient.
constexpr uint32_t TENSOR_x = 1, TENSOR_t = 2, KERNEL_add = 1, AXIS_kv = 1;

void add(Run &run, int64_t col, i64 value) {
    Task task(run, KERNEL_add, 1);
    task.tile(TENSOR_x, READ_WRITE, {}, 0, 1, col, 1);
    task.scalar(value);
    task.submit();
}

void expand(Run &run) {
    {
        Scope scope(run, PARALLEL);
        for (int64_t i = 0; i < 8; i++) {
            add(run, i, i);
        }
    }
    run.load_slot(1, 0, TENSOR_x, {}, 0, 1, 7, 1, 0, 0);
    Pipeline pipeline(run, 0, 2);
    pipeline.tile(TENSOR_x, READ_WRITE);
    Channel tokens = pipeline.channel("tokens", 0, 3, 0, false);
    pipeline.process("send", 2, {produces(tokens)}, [&](Run &send) {
        for (const i64 u : send.units(AXIS_kv)) {
            tokens.send(send, u * 0 + 1, 2);
        }
    });
    pipeline.process("take", 3, {consumes(tokens)}, [&](Run &take) {
        for (i64 t; tokens.receive(take, t, 3);) {
            add(take, 0, t);
        }
    });
    pipeline.run();
}

const wsp_tensor_decl TENSORS[] = {{"", 0, 0, {}, 0, 0, 0, 0},
                                   {"x", PTOWSP_I32, 1, {8}, 1, 1, 1, 0},
                                   {"t", PTOWSP_I32, 1, {1000}, 1, 1, 0, 1}};
const wsp_transient_decl TRANSIENTS[] = {{TENSOR_t, 1}};
const uint32_t LIFETIMES[][2] = {{0, 0}};
const char *const POINTS[] = {"p/task"};
void size_transients(Run &, Sizes &sizes) {
    sizes.add({1000});
}
const wsp_transients TRANSIENT = {1, TRANSIENTS, LIFETIMES, 1, POINTS, size_transients};
const wsp_axis_decl AXES[] = {{nullptr, 0, 0, 0, 0}, {"kv", PTOWSP_AXIS_PLAN, 1, 0, 1}};
const wsp_array_decl ARRAYS[] = {{"", 0, 0, 0}, {"kv.flags", PTOWSP_U8, 0, 1}};
const wsp_field_decl FIELDS[] = {{1, AXIS_kv, PTOWSP_PLAN_FLAGS}};
const wsp_kernel KERNELS[] = {{nullptr, 0, 0, 0, 0, {}},
                              {"add", PTOWSP_UNIT_VECTOR, 0, 1, 1, {"x"}}};
const char *const PLACES[] = {"", "p/add", "p/pipe", "p/take"};

wsp_program make_program() {
    wsp_program program = wsp_program();
    program.name = "p";
    program.axis_count = program.array_count = program.kernel_count = 2;
    program.symbol_count = program.slot_count = 1;
    program.tensor_count = 3;
    program.axes = AXES;
    program.arrays = ARRAYS;
    program.tensors = TENSORS;
    program.kernels = KERNELS;
    program.field_count = 1;
    program.fields = FIELDS;
    program.transients = &TRANSIENT;
    program.place_count = 4;
    program.places = PLACES;
    program.scope_depth = 2;
    program.pipeline_count = 1;
    program.expand = expand;
    program.schedule.issue = PTOWSP_ISSUE_DATAFLOW;
    program.schedule.dispatch = PTOWSP_DISPATCH_ROUND_ROBIN;
    program.schedule.pools = PTOWSP_POOLS_ONE;
    program.schedule.ready = PTOWSP_READY_FIFO;
    program.schedule.dependencies = PTOWSP_DEPENDENCIES_HYBRID;
    program.schedule.hazards = 7;
    program.schedule.lane_count = program.lane_count = 2;
    return program;
}

// -- runs -----------------------------------------------------------------------------------------

constexpr uint32_t AICPU_COUNT = 3, CORE_COUNT = 2;
const wsp_runner_options OPTIONS = {AICPU_COUNT, CORE_COUNT, 16, 0, 0, nullptr, 0, 0};

// A run, bound anew: its status; the text of its error is in `text`.
char text[512];
int32_t x[8];
wsp_runner_result result;

ptowsp_status run_once(const wsp_runner_options &options = OPTIONS, wsp_expand_fn walks = expand) {
    wsp_program program = make_program();
    program.expand = walks;
    memset(x, 0, sizeof x);
    const int32_t lengths[] = {300, 7};
    Bindings bindings(program);
    const ptowsp_buffer buffer = {x, 0, PTOWSP_DTYPE_NONE, 0, {}, {}};
    ptowsp_binding tensor = pwsp_binding_of(PTOWSP_BIND_TENSOR, "x");
    tensor.data = &buffer;
    assert_int_equal(bindings.bind(tensor), PTOWSP_OK);
    const ptowsp_attention_batch batch = {lengths, nullptr, 2};
    ptowsp_attention_config config = ptowsp_attention_config();
    config.kv_head_count = 1;
    config.lane_count = 2;
    config.mode = PTOWSP_ATTENTION_INVARIANT;
    config.chunk = 100;  // 3 units, and 1
    ptowsp_binding planned = pwsp_binding_of(PTOWSP_BIND_BATCH, "kv");
    planned.data = &batch;
    planned.config = &config;
    assert_int_equal(bindings.bind(planned), PTOWSP_OK);
    result = wsp_runner_result();
    ptowsp_status status = bindings.verify(PTOWSP_MODEL_UNIT);
    status = status == PTOWSP_OK ? run_program(program, &bindings, options, &result) : status;
    snprintf(text, sizeof text, "%s", bindings.failure.text);
    if (status == PTOWSP_OK && walks == expand) {
        for (int32_t i = 0; i < 8; i++) {
            assert_int_equal(x[i], i ? i : 4);
        }
        assert_int_equal(bindings.slot(0), 7);
        assert_int_equal(result.task_count, 12);
    }
    return status;
}

// With hooks as they are: the text of the error is this, and no memory stays.
void expect(ptowsp_status wanted, const std::string &said,
            const wsp_runner_options &options = OPTIONS, wsp_expand_fn walks = expand) {
    const ptowsp_status status = run_once(options, walks);
    assert_string_equal(text, said.c_str());
    assert_int_equal(status, wanted);
    assert_int_equal(hooks.live, 0);
}

void expect_good() {
    hooks = {};
    expect(PTOWSP_OK, "");
}

// How many allocations there are, and which is the n-th, depends on how far the threads are: so the last
// run is one that does not come to n, and the channel is refused by itself.
TEST(refused__memory_is_missed_wherever_it_is) {
    std::set<std::string> texts;
    bool was_refused = true;
    for (uint64_t n = 1; was_refused; n++) {
        hooks = {};
        hooks.refuse_at = n;
        const ptowsp_status status = run_once();
        was_refused = hooks.allocations >= n;
        assert_int_equal(hooks.live, 0);
        if (!was_refused) {
            assert_int_equal(status, PTOWSP_OK);
            assert_true(n > 10);
        } else if (status != PTOWSP_OUT_OF_MEMORY || !strstr(text, "memory")) {
            fail_msg("allocation %u: %s: %s", static_cast<unsigned>(n), ptowsp_status_name(status),
                     text);
        } else {
            texts.insert(text);
        }
    }
    const std::string channel = "p/pipe: channel tokens: out of memory";
    texts.erase(channel);
    texts.erase("p/pipe: out of memory");  // the ready ones of its processes
    assert_true(
        (texts == std::set<std::string>{"run: out of memory", "plan kv: no memory for its units"}));
    hooks = {};
    hooks.refuses_channel = true;
    expect(PTOWSP_OUT_OF_MEMORY, channel);
    expect_good();
}

// The cores' threads first, then those of the AICPU but for the caller's, then those of processes.
TEST(refused__threads_are_told) {
    expect_good();
    const uint64_t count = hooks.threads;
    assert_int_equal(count, CORE_COUNT + AICPU_COUNT - 1 + 2);
    for (uint64_t n = 1; n <= count; n++) {
        hooks = {};
        hooks.refuse_thread = n;
        if (n <= count - 2) {
            expect(PTOWSP_SYSTEM_FAILED, "run: a thread was refused");
        } else {
            expect(PTOWSP_LIMIT_EXCEEDED,
                   std::string("p/") + (n == count ? "take: process take" : "pipe: process send") +
                       ": there is no thread for it beside those of " + (n == count ? "1" : "0") +
                       " processes that are under way");
        }
    }
    expect_good();
}

// 1000 numbers of 4 bytes, in whole lines of 64.
TEST(refused__the_block_of_transient_tensors_is_told) {
    hooks = {};
    hooks.refuses_block = true;
    expect(PTOWSP_OUT_OF_MEMORY, "run: out of memory: transient tensors take 4032 bytes");
    expect_good();
}

// -- kernels --------------------------------------------------------------------------------------

// The first of eight launches or more: no kernel has it, or it fails. Its tasks are not done.
TEST(refused__launches_end_the_run) {
    const ptowsp_span none = ptowsp_span();
    for (uint64_t capacity : {uint64_t(0), uint64_t(5), uint64_t(20)}) {
        ptowsp_span spans[20];
        std::fill(spans, spans + 20, none);
        const wsp_runner_options options = {1, CORE_COUNT, 16,       0,
                                            0, spans,      capacity, PTOWSP_DRIVER_HOST};
        the_launch = launch;
        hooks = {};
        expect(PTOWSP_OK, "", options);
        for (uint64_t i = 0; i < 20; i++) {  // of 12 tasks; those of a wave have its span
            const bool is_there = i < capacity && i < 12;
            assert_int_equal(spans[i].kind, is_there ? KERNEL_add : 0);
            assert_true((spans[i].end > 0) == is_there && spans[i].begin <= spans[i].end);
            assert_true(spans[i].lane < CORE_COUNT);
        }
        for (wsp_launcher refused : {launch_refused, static_cast<wsp_launcher>(nullptr)}) {
            the_launch = refused;
            expect(PTOWSP_SYSTEM_FAILED, "p/add: task 0 failed: SYSTEM_FAILED", options);
            assert_true(std::all_of(x, x + 8, [](int32_t value) { return value == 0; }));
        }
    }
}

// More scopes than there are places behind the task that fails: they wait for it. No task follows.
void expand_failure(Run &run) {
    add(run, 1, -1);
    for (int i = 0; i < 100; i++) {
        Scope scope(run, i % 2 ? PARALLEL : SEQUENTIAL);
    }
    add(run, 2, 5);
}

// So do loads, of other elements too.
void expand_failure_before_load(Run &run) {
    add(run, 1, -1);
    for (int i = 0; i < 100; i++) {
        run.load_slot(1, 0, TENSOR_x, {}, 0, 1, i % 8, 1, 0, 0);
    }
    add(run, 2, 5);
}

// And pipelines, whose processes do not begin.
void expand_failure_before_pipeline(Run &run) {
    add(run, 1, -1);
    Pipeline pipeline(run, 0, 2);
    pipeline.process("late", 3, {}, [](Run &late) { add(late, 2, 5); });
    pipeline.run();
}

TEST(refused__what_follows_a_failure_does_not_begin) {
    for (wsp_expand_fn walks :
         {expand_failure, expand_failure_before_load, expand_failure_before_pipeline}) {
        for (uint32_t aicpu_count = 1; aicpu_count <= AICPU_COUNT; aicpu_count++) {
            const wsp_runner_options options = {aicpu_count, CORE_COUNT, 1, 0, 0, nullptr, 0, 0};
            hooks = {};
            expect(PTOWSP_KERNEL_FAILED, "p/add: task 0 failed: KERNEL_FAILED", options, walks);
            assert_int_equal(x[1], -1);
            assert_int_equal(x[2], 0);
        }
    }
}

}  // namespace

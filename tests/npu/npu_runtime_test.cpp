// The fixed runtime of emitted trees: random tasks over overlapping tiles must leave the memory as if one
// had run after another; cores that are late or lost, blocks, and the order of ready tasks.

#include <algorithm>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "test.h"
#undef fail  // a name of ours

#include "wsp_expand.h"
#include "wsp_scheduler.h"
#include "wsp_run.h"

using namespace wsp;

namespace {

// -- random numbers -------------------------------------------------------------------------------

struct Random {
    uint64_t state;
    uint64_t next() {
        return test_random(&state);
    }
    uint32_t below(uint32_t count) {
        return static_cast<uint32_t>(next() % count);
    }
    bool one_in(uint32_t count) {
        return below(count) == 0;
    }
};

// -- random programs: memory ----------------------------------------------------------------------

constexpr uint32_t TENSOR_COUNT = 9, WORD_COUNT = 800, EDGE_COUNT = 3, SLOT_COUNT = 2;
constexpr uint32_t TASK_MAX = 80;

struct Shape {
    int64_t first;  // in words
    uint32_t rank;
    int64_t shape[3], strides[3];
};

// Packed rows, matrices, transposed, backwards, overlapping with themselves and with each other.
const Shape shapes[TENSOR_COUNT] = {
    {0, 0, {0}, {0}},
    {0, 2, {12, 10}, {10, 1}},         // row-major
    {200, 3, {3, 8, 6}, {48, 6, 1}},   // matrices
    {24, 2, {8, 8}, {10, 1}},          // in the first one's memory
    {350, 2, {6, 5}, {1, 7}},          // transposed
    {400, 2, {6, 4}, {2, 1}},          // rows overlap
    {450, 2, {6, 4}, {8, 1}},          // packed, with the next one
    {454, 2, {6, 4}, {8, 1}},          //
    {530, 3, {2, 6, 5}, {30, -5, 1}},  // backwards
};

const char *const tensor_names[TENSOR_COUNT] = {"", "A", "B", "S", "C", "N", "P", "Q", "R"};

// Kernel 1 + 4 * unit + tiles. The last tile is written; scalars: a value, what to do.
enum { OVERWRITE = 0, UPDATE = 1, FAIL = 2 };

struct Stamps {
    uint32_t begin, end;  // 0: never
    uint32_t core;
};

struct Record {
    std::vector<std::pair<uint32_t, uint32_t>> path;  // of scopes: which, and which child of it
    std::vector<bool> is_sequential;                  // of each of them
    std::vector<uint64_t> waits_for;                  // by edges and streams
    uint32_t unit;
    uint64_t key;  // of dispatch
};

// A random program and what is noted as it runs.
struct Case {
    uint64_t seed;
    bool has_failures, has_spins;
    uint32_t stream_count, unit_count;
    std::vector<Record> records;
    Stamps stamps[TASK_MAX];
    uint32_t parts[TASK_MAX];  // vector cores that have run a part of it, a bit each; atomic
    std::vector<uint64_t *> touched[TASK_MAX], written[TASK_MAX];  // by those that have run
    uint32_t clock;
};

Case *the_case;  // what expanders and kernels are about, as they are called without it

// Rows and columns of a tile, and a scalar.
int64_t rows(const wsp_task &task, uint32_t tile) {
    return static_cast<int64_t>(task.args[task.axis_count + 2 * tile]);
}

int64_t cols(const wsp_task &task, uint32_t tile) {
    return static_cast<int64_t>(task.args[task.axis_count + 2 * tile + 1]);
}

uint64_t scalar(const wsp_task &task, uint32_t i) {
    return task.args[task.axis_count + 2 * task.tile_count + i];
}

uint64_t hash(uint64_t a, uint64_t b) {
    Random random = {a * 31 + b};
    return random.next();
}

uint64_t *word_at(const wsp_tile &tile, int64_t row, int64_t col) {
    return reinterpret_cast<uint64_t *>(tile.data) + row * tile.row_stride + col * tile.col_stride;
}

void run_random(wsp_task *task) {
    Stamps &stamps = the_case->stamps[task->index];
    stamps.begin = __atomic_add_fetch(&the_case->clock, 1u, __ATOMIC_SEQ_CST);
    const uint64_t value = scalar(*task, 0), what = scalar(*task, 1);
    uint64_t sum = value;
    for (uint32_t i = 0; i + 1 < task->tile_count; i++) {
        TEST_GRID(int64_t, r, rows(*task, i), c, cols(*task, i)) {
            sum = hash(sum, *word_at(task->tiles[i], r, c));
            the_case->touched[task->index].push_back(word_at(task->tiles[i], r, c));
        }
    }
    for (uint64_t i = 0; the_case->has_spins && i < value % 4000; i++) {
        __atomic_load_n(&the_case->clock, __ATOMIC_RELAXED);
    }
    if (task->tile_count > 0) {
        const uint32_t i = task->tile_count - 1;
        TEST_GRID(int64_t, r, rows(*task, i), c, cols(*task, i)) {
            uint64_t *at = word_at(task->tiles[i], r, c);
            the_case->touched[task->index].push_back(at);
            the_case->written[task->index].push_back(at);
            *at = hash(sum, what == OVERWRITE ? static_cast<uint64_t>(r * 100 + c) : *at);
        }
    }
    stamps.core = task->core;
    task->cycles = 1 + value % 50;
    task->status = what == FAIL ? PTOWSP_KERNEL_FAILED : PTOWSP_OK;
    stamps.end = __atomic_add_fetch(&the_case->clock, 1u, __ATOMIC_SEQ_CST);
}

// -- random programs: walking ---------------------------------------------------------------------

// What a task must come after, kept as the walk goes on.
struct Walk {
    Random random;
    std::vector<std::pair<uint32_t, uint32_t>> path;
    std::vector<bool> is_sequential;
    uint32_t scope_count = 1;
    std::vector<uint64_t> edges[EDGE_COUNT];
    std::vector<uint64_t> streams;  // the last task of each, + 1
};

void walk_task(Run &run, Walk &walk) {
    Random &random = walk.random;
    if (the_case->records.size() == TASK_MAX) {
        return;
    }
    Record record;
    const uint32_t tiles = random.below(4), unit = random.below(the_case->unit_count);
    Task task(run, 1 + 4 * unit + tiles, 1);
    task.axis(i64(static_cast<int64_t>(the_case->records.size())));
    const bool is_update = random.one_in(2);
    for (uint32_t i = 0; i < tiles; i++) {
        const uint32_t tensor = 1 + random.below(TENSOR_COUNT - 1);
        const Shape &shape = shapes[tensor];
        const uint32_t has_lead = shape.rank - 2;
        const int64_t lead = random.below(static_cast<uint32_t>(shape.shape[0]));
        const int64_t row = random.below(static_cast<uint32_t>(shape.shape[has_lead]));
        const int64_t col = random.below(static_cast<uint32_t>(shape.shape[has_lead + 1]));
        const int64_t row_count = random.below(5), col_count = random.below(5);
        const Access access = i + 1 < tiles ? READ : is_update ? READ_WRITE : WRITE;
        if (has_lead) {
            task.tile(tensor, access, {i64(lead)}, row, row_count, col, col_count);
        } else {
            task.tile(tensor, access, {}, row, row_count, col, col_count);
        }
    }
    uint64_t value = random.next();
    value = random.one_in(2) ? run.slot_u64(random.below(SLOT_COUNT)).value() : value;
    const bool fails = random.one_in(12) && the_case->has_failures;
    task.scalar(u64(value));
    task.scalar(u64(fails ? FAIL : is_update ? UPDATE : OVERWRITE));
    const uint64_t index = the_case->records.size(), key = random.next();
    task.dispatch(u64(key));
    task.priority(i64::of_bits(key >> 60));
    task.stream(u64(key >> 7));
    if (the_case->stream_count > 0) {
        walk.streams.resize(the_case->stream_count);
        uint64_t &last = walk.streams[(key >> 7) % the_case->stream_count];
        if (last) {
            record.waits_for.push_back(last - 1);
        }
        last = index + 1;
    }
    if (random.one_in(3)) {
        const uint32_t edge = random.below(EDGE_COUNT);
        task.after({edge});
        record.waits_for.insert(record.waits_for.end(), walk.edges[edge].begin(),
                                walk.edges[edge].end());
    }
    if (random.one_in(2)) {
        const uint32_t edge = random.below(EDGE_COUNT);
        task.before({edge});
        walk.edges[edge].push_back(index);
    }
    record.unit = unit;
    record.key = key;
    record.path = walk.path;
    record.is_sequential = walk.is_sequential;
    if (run.good()) {
        the_case->records.push_back(record);
    }
    task.submit();
    walk.path.back().second++;
}

void walk_statements(Run &run, Walk &walk, uint32_t depth);

void walk_scope(Run &run, Walk &walk, uint32_t depth) {
    const bool is_sequential = walk.random.one_in(2);
    {
        Scope scope(run, is_sequential ? SEQUENTIAL : PARALLEL);
        walk.path.push_back({walk.scope_count++, 0});
        walk.is_sequential.push_back(is_sequential);
        walk_statements(run, walk, depth + 1);
        walk.path.pop_back();
        walk.is_sequential.pop_back();
    }
    walk.path.back().second++;
}

void walk_statements(Run &run, Walk &walk, uint32_t depth) {
    const uint32_t count = walk.random.below(7);
    for (uint32_t i = 0; i < count && run.good(); i++) {
        const uint32_t what = walk.random.below(10), slot = walk.random.below(SLOT_COUNT);
        const uint32_t edge = walk.random.below(EDGE_COUNT), row = walk.random.below(12);
        if (what < 2 && depth < 4) {
            walk_scope(run, walk, depth);
        } else if (what == 2) {
            run.load_slot(2, slot, 1, {}, row, 0, 0, 0, 0, edge);
        } else if (what == 3) {
            run.reset({edge});
            walk.edges[edge].clear();
        } else if (what > 4 || run.slot_u64(slot) % 2 == 0) {
            walk_task(run, walk);
        }
    }
}

void expand_random(Run &run) {
    Walk walk;
    walk.random.state = the_case->seed;
    walk.path.push_back({0, 0});
    walk.is_sequential.push_back(true);
    for (uint32_t i = 0; i < 6; i++) {
        walk_statements(run, walk, 0);
    }
}

// -- random programs: one after another -----------------------------------------------------------

// Runs each task where it is submitted.
class Serial final : public Target {
  public:
    bool good() const override {
        return failure.status == PTOWSP_OK;
    }
    void fail(ptowsp_status status, uint64_t index, const char *text) override {
        failure.set(status, index, "%s", text);
    }
    Submission *open() override {
        submission_.clear();
        return &submission_;
    }
    void submit(Submission *submission) override {
        wsp_task &task = submission->task;
        task.index = count++;
        wsp_core_run(&task);
        if (task.status != PTOWSP_OK) {
            failure.set(static_cast<ptowsp_status>(task.status), task.index, "failed");
        }
    }
    void scope_begin(bool) override {
    }
    void scope_end() override {
    }
    void reset(const uint32_t *, uint32_t) override {
    }
    bool await_element(const Region &) override {
        return true;
    }

    Failure failure;
    uint64_t count = 0;

  private:
    Submission submission_;
};

// The declarations and the schedule of a random program.
struct Tables {
    wsp_tensor_decl tensors[TENSOR_COUNT];
    wsp_kernel kernels[13];
    const char *places[3] = {"", "random/task", "random/slot_load"};
    wsp_program program;

    explicit Tables(Random &random) : program() {
        for (uint32_t i = 0; i < TENSOR_COUNT; i++) {
            tensors[i] = wsp_tensor_decl();
            tensors[i].name = tensor_names[i];
            tensors[i].dtype = PTOWSP_U64;
            tensors[i].rank = shapes[i].rank;
            memcpy(tensors[i].shape, shapes[i].shape, sizeof shapes[i].shape);
            tensors[i].is_used = tensors[i].is_written = tensors[i].is_loaded = 1;
        }
        for (uint32_t i = 1; i < 13; i++) {
            kernels[i] = {"mix", (i - 1) / 4, 1, (i - 1) % 4, 2, {"x", "y", "z"}};
        }
        program.name = "random";
        program.tensor_count = TENSOR_COUNT;
        program.tensors = tensors;
        program.kernel_count = random.one_in(2) ? 13 : 9;  // with MIX, and without
        program.kernels = kernels;
        program.slot_count = SLOT_COUNT;
        program.place_count = 3;
        program.places = places;
        program.edge_count = EDGE_COUNT;
        program.scope_depth = 8;
        program.expand = expand_random;
        choose_schedule(random);
    }

    void choose_schedule(Random &random) {
        ptowsp_schedule &schedule = program.schedule;
        schedule.issue = random.one_in(3) ? PTOWSP_ISSUE_IN_ORDER : PTOWSP_ISSUE_DATAFLOW;
        schedule.dispatch = static_cast<ptowsp_dispatch>(1 + random.below(5));
        schedule.pools = random.one_in(2) ? PTOWSP_POOLS_ONE : PTOWSP_POOLS_BY_UNIT;
        schedule.lane_count = 1 + random.below(4);
        schedule.vector_lane_count = 1 + random.below(3);
        schedule.cube_lane_count = 1 + random.below(3);
        if (program.kernel_count == 13) {
            schedule.vector_lane_count += 2 * schedule.cube_lane_count;
        }
        program.lane_count = schedule.lane_count;
        if (schedule.pools == PTOWSP_POOLS_BY_UNIT) {
            program.lane_count = schedule.vector_lane_count + schedule.cube_lane_count;
        }
        schedule.window = random.one_in(2) ? 1 + random.below(6) : 0;
        schedule.window_policy = schedule.window ? PTOWSP_WINDOW_STALL : PTOWSP_WINDOW_DEFAULT;
        schedule.dependencies = random.one_in(2) ? PTOWSP_DEPENDENCIES_HYBRID : 4;
        schedule.dependencies |= PTOWSP_DEPENDENCIES_EXPLICIT;
        schedule.hazards = 7;
        const bool has_choice = schedule.issue == PTOWSP_ISSUE_DATAFLOW &&
                                schedule.dispatch != PTOWSP_DISPATCH_WORK_STEALING;
        const uint32_t ready = random.below(3);
        schedule.ready = has_choice ? static_cast<ptowsp_ready>(ready) : PTOWSP_READY_FIFO;
        program.is_priority_signed = schedule.ready == PTOWSP_READY_PRIORITY;
        program.has_streams = random.one_in(3);
        schedule.stream_count = program.has_streams ? 1 + random.below(4) : 0;
    }
};

void bind_random(Bindings &bindings, uint64_t *words) {
    for (uint32_t i = 1; i < TENSOR_COUNT; i++) {
        ptowsp_buffer buffer = ptowsp_buffer();
        buffer.data = words + shapes[i].first + (i == 8 ? 25 : 0);  // which begins at its end
        memcpy(buffer.strides, shapes[i].strides, sizeof shapes[i].strides);
        ptowsp_binding tensor = pwsp_binding_of(PTOWSP_BIND_TENSOR, tensor_names[i]);
        tensor.data = &buffer;
        assert_int_equal(bindings.bind(tensor), PTOWSP_OK);
    }
}

// -- random programs: what must hold --------------------------------------------------------------

// Task a comes before task b, if the innermost scope around both is sequential.
bool is_ordered(const Record &a, const Record &b) {
    size_t i = 0;
    while (a.path[i] == b.path[i] && i + 1 < a.path.size() && i + 1 < b.path.size()) {
        i++;
    }
    // Of one scope, another child; or other scopes, which are children of the one before.
    const bool is_same_scope = a.path[i].first == b.path[i].first;
    return is_same_scope ? a.is_sequential[i] : a.is_sequential[i - 1];
}

void check_order(const Case &made, const wsp_program &program, uint32_t core_count) {
    const bool is_in_order = program.schedule.issue == PTOWSP_ISSUE_IN_ORDER;
    for (uint64_t b = 0; b < made.records.size(); b++) {
        for (uint64_t a = 0; a < b; a++) {
            const bool by_issue =
                is_in_order && core_count == 1 && made.records[a].unit == made.records[b].unit &&
                (made.unit_count == 2 || made.records[a].unit != PTOWSP_UNIT_VECTOR);
            const bool by_structure =
                (program.schedule.dependencies & PTOWSP_DEPENDENCIES_STRUCTURE) &&
                is_ordered(made.records[a], made.records[b]);
            assert_true(!(by_issue || by_structure) || made.stamps[a].end < made.stamps[b].begin);
        }
        for (uint64_t a : made.records[b].waits_for) {
            assert_true(made.stamps[a].end < made.stamps[b].begin);
        }
    }
}

// Where no core steals, a task runs on the one that its lane stands for: the n-th lane of its pool on
// core n % cores of its unit. Vector cores come first.
void check_cores(const Case &made, const wsp_program &program, uint32_t core_count) {
    const ptowsp_schedule &schedule = program.schedule;
    const bool is_by_unit = schedule.pools == PTOWSP_POOLS_BY_UNIT;
    const uint32_t vector_count = made.unit_count == 3 ? 2 * core_count : core_count;
    uint64_t turns[2] = {0, 0};
    if (schedule.dispatch == PTOWSP_DISPATCH_WORK_STEALING ||
        schedule.ready == PTOWSP_READY_WORK_STEALING) {
        return;
    }
    for (uint64_t i = 0; i < made.records.size(); i++) {
        const bool is_cube = made.records[i].unit != PTOWSP_UNIT_VECTOR;
        const uint64_t turn = turns[is_by_unit && is_cube]++, key = made.records[i].key;
        const uint64_t lanes = !is_by_unit ? schedule.lane_count
                               : is_cube   ? schedule.cube_lane_count
                                           : schedule.vector_lane_count;
        const uint64_t number = schedule.dispatch == PTOWSP_DISPATCH_ROUND_ROBIN ? turn
                                : schedule.dispatch == PTOWSP_DISPATCH_HASH      ? pwsp_mix64(key)
                                                                                 : key;
        const uint64_t cores = is_cube ? core_count : vector_count;
        assert_int_equal(made.stamps[i].core,
                         (is_cube ? vector_count : 0) + number % lanes % cores);
    }
}

// While a task of MIX runs on cube core i, none runs on vector cores 2 i and 2 i + 1.
void check_blocks(const Case &made, uint32_t core_count) {
    for (uint64_t a = 0; a < made.records.size(); a++) {
        const Stamps &mix = made.stamps[a];
        for (uint64_t b = 0; made.records[a].unit == PTOWSP_UNIT_MIX && b < made.records.size();
             b++) {
            const Stamps &other = made.stamps[b];
            if (other.core < 2 * core_count && other.core / 2 == mix.core - 2 * core_count) {
                assert_true(other.end < mix.begin || mix.end < other.begin);
            }
        }
    }
}

// Tasks before the failure have run; those that touch what it writes have not.
void check_failure(const Case &made, uint64_t failed) {
    const std::set<uint64_t *> written(made.written[failed].begin(), made.written[failed].end());
    for (uint64_t i = 0; i < made.records.size(); i++) {
        assert_true(i > failed || made.stamps[i].end > 0);
        for (uint64_t *word : made.touched[i]) {
            assert_true(i <= failed || written.count(word) == 0);
        }
    }
}

void begin_case(Case &made) {
    made.records.clear();
    for (uint32_t i = 0; i < TASK_MAX; i++) {
        made.stamps[i] = Stamps();
        made.parts[i] = 0;
        made.touched[i].clear();
        made.written[i].clear();
    }
    made.clock = 0;
    the_case = &made;
}

uint64_t run_once(uint64_t seed, uint64_t how, bool has_failures) {
    Random random = {seed}, random_how = {how};
    Tables tables(random);
    wsp_program &program = tables.program;
    Case serial = Case(), made;
    serial.seed = random.next();
    serial.has_failures = has_failures;
    serial.unit_count = program.kernel_count == 13 ? 3 : 2;
    serial.stream_count = program.has_streams ? program.schedule.stream_count : 0;
    made = serial;
    made.has_spins = random_how.one_in(2);
    std::vector<uint64_t> expected(WORD_COUNT), words;
    for (uint64_t &word : expected) {
        word = random.next();
    }
    words = expected;

    Bindings bindings(program);
    bind_random(bindings, expected.data());
    assert_int_equal(bindings.verify(0), PTOWSP_OK);
    begin_case(serial);
    Serial target;
    Run run(program, bindings.table(), target);
    program.expand(run);

    bind_random(bindings, words.data());
    assert_int_equal(bindings.verify(0), PTOWSP_OK);
    begin_case(made);
    const bool is_driven = random_how.one_in(4);  // by the host: wave by wave
    const wsp_runner_options options = {is_driven ? 1 : 1 + random_how.below(4),
                                        1 + random_how.below(3),
                                        1 + random_how.below(random_how.one_in(2) ? 4 : 40),
                                        0,
                                        0,
                                        nullptr,
                                        0,
                                        is_driven};
    wsp_runner_result result = wsp_runner_result();
    const ptowsp_status status = run_program(program, &bindings, options, &result);
    assert_int_equal(status, target.failure.status);
    assert_true(result.in_flight_max <= options.ring_size);
    assert_true(!program.schedule.window || result.in_flight_max <= program.schedule.window);
    if (status != PTOWSP_OK) {
        assert_int_equal(bindings.failure.index, target.failure.index);
        char text[100];
        snprintf(text, sizeof text, "random/task: task %u failed: KERNEL_FAILED",
                 static_cast<unsigned>(target.failure.index));
        assert_string_equal(bindings.failure.text, text);
        check_failure(made, target.failure.index);
        return 0;
    }
    assert_int_equal(result.task_count, target.count);
    assert_memory_equal(words.data(), expected.data(), WORD_COUNT * sizeof(uint64_t));
    for (uint32_t i = 0; i < SLOT_COUNT; i++) {
        assert_int_equal(bindings.slot(i), run.slot_u64(i).value());
    }
    check_order(made, program, options.core_count);
    check_cores(made, program, options.core_count);
    check_blocks(made, options.core_count);
    return result.makespan_cycles;
}

TEST(random__tasks_leave_memory_as_if_one_had_run_after_another) {
    Random random = {test_seed()};
    for (uint32_t i = 0; TEST_ROUNDS(i, 600); i++) {
        alarm(60);  // nothing hangs
        const uint64_t seed = random.next(), how = random.next(), other = random.next();
        // Whatever the threads and rings, the makespan is one.
        assert_int_equal(run_once(seed, how, false), run_once(seed, other, false));
    }
    alarm(0);
}

// A core that ends no task after the first `task_count`, until it is let go; or does not even begin.
struct SlowCore {
    pwsp_line line = pwsp_line();
    alignas(64) wsp_task room = wsp_task();  // all that it sees of tasks
    uint32_t index = 0;
    int32_t task_count = INT32_MAX;
    uint32_t is_let_go = 0;  // atomic
    uint64_t late = 0;       // the task that it has not ended
    bool is_vector = false;

    // A vector core has its part of a task of MIX, which the cube core executes.
    void run(wsp_task *task) const {
        if (is_vector && task->kernel > 8) {
            assert_int_equal(task->core, index);
            __atomic_fetch_or(&the_case->parts[task->index], 1u << index, __ATOMIC_RELAXED);
            task->status = PTOWSP_OK;
        } else {
            wsp_core_run(task);
        }
    }

    void run() {
        while (!pwsp_core_must_quit(&line) && !pwsp_core_may_begin(&line)) {
            std::this_thread::yield();
        }
        pwsp_core_begin(&line, index);
        while (!pwsp_core_must_quit(&line)) {
            wsp_task *task = reinterpret_cast<wsp_task *>(pwsp_core_poll(&line));
            if (!task) {
                std::this_thread::yield();
                continue;
            }
            assert_ptr_equal(task, &room);
            if (task_count-- == 0) {
                late = task->index;
                while (!__atomic_load_n(&is_let_go, __ATOMIC_ACQUIRE)) {
                    std::this_thread::yield();
                }
            } else {
                run(task);
            }
            pwsp_core_done(&line);
        }
    }
};

// Runs a random program on threads of its own, with parts of tasks as on a device; core 0 is slow.
// Returns the scheduler's failure.
Failure run_late(Random &random, uint32_t thread_count, int32_t task_count, SlowCore *cores,
                 uint32_t core_count) {
    Tables tables(random);
    const wsp_program &program = tables.program;
    std::vector<uint64_t> words(WORD_COUNT);
    Case made = Case();
    made.seed = random.next();
    made.unit_count = program.kernel_count == 13 ? 3 : 2;
    made.stream_count = program.has_streams ? program.schedule.stream_count : 0;
    Bindings bindings(program);
    bind_random(bindings, words.data());
    assert_int_equal(bindings.verify(0), PTOWSP_OK);
    begin_case(made);
    Scheduler scheduler;
    const uint32_t vector_count = core_count - core_count / 3;
    List<Core> given;
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < core_count; i++) {
        cores[i].index = i;
        cores[i].is_vector = i < vector_count;
        given.push_back({&cores[i].line, i < vector_count ? PTOWSP_UNIT_VECTOR : PTOWSP_UNIT_CUBE,
                         &cores[i].room});
    }
    cores[0].task_count = task_count;
    assert_true(scheduler.begin(program, bindings.table(), given,
                                {thread_count, 40, 400, true, nullptr, nullptr}));
    for (uint32_t i = task_count < 0; i < core_count; i++) {
        threads.emplace_back([&cores, i] { cores[i].run(); });
    }
    for (uint32_t i = 1; i < thread_count; i++) {
        threads.emplace_back([&scheduler, i] { scheduler.serve(i); });
    }
    scheduler.open_lines(0);
    walk(program, bindings.table(), &scheduler);
    scheduler.stop();
    scheduler.close_lines(0);
    __atomic_store_n(&cores[0].is_let_go, 1u, __ATOMIC_RELEASE);
    for (std::thread &thread : threads) {
        thread.join();
    }
    // Not before: other AICPU threads may lose a core as they begin.
    assert_int_equal(scheduler.has_lost(), scheduler.failure().status != PTOWSP_OK);
    for (uint64_t i = 0; scheduler.failure().status == PTOWSP_OK && i < made.records.size(); i++) {
        const bool is_mix = made.records[i].unit == PTOWSP_UNIT_MIX;
        const uint32_t block = is_mix ? made.stamps[i].core - vector_count : 0;
        assert_int_equal(made.parts[i], is_mix ? 3u << 2 * block : 0);
    }
    // Cycles come from the rooms of cores.
    const bool has_cycles = scheduler.clock().stats().makespan_cycles > 0;
    assert_true(scheduler.failure().status != PTOWSP_OK || has_cycles == !made.records.empty());
    return scheduler.failure();
}

TEST(blocks__each_core_has_a_part_of_a_task_of_mix) {
    Random random = {test_seed()};
    for (uint32_t i = 0; TEST_ROUNDS(i, 100); i++) {
        alarm(60);
        SlowCore cores[8];
        const uint32_t core_count = 3 + random.below(6);  // 1 or 2 blocks, and vector cores behind
        const Failure failure = run_late(random, 1 + random.below(3), INT32_MAX, cores, core_count);
        assert_int_equal(failure.status, PTOWSP_OK);
    }
    alarm(0);
}

TEST(time_limit__names_the_core_and_what_it_has_not_ended) {
    Random random = {test_seed()};
    uint32_t late_count = 0;
    for (uint32_t i = 0; i < 40 && late_count < 4; i++) {
        alarm(60);
        SlowCore cores[4];
        const int32_t task_count = static_cast<int32_t>(i % 3) - 1;
        const Failure failure = run_late(random, 1 + i / 3 % 3, task_count, cores, 4);
        char text[120] = "run: core 0 (vector) has not begun to poll within 400 ms";
        if (task_count >= 0 && cores[0].task_count >= 0) {
            assert_int_equal(failure.status, PTOWSP_OK);  // it has had no task that it could keep
            continue;
        } else if (task_count >= 0) {
            snprintf(text, sizeof text,
                     "random/task: task %u: core 0 (vector) has not ended it within 400 ms",
                     static_cast<unsigned>(cores[0].late));
            assert_int_equal(failure.index, cores[0].late);
            late_count++;
        }
        assert_string_equal(failure.text, text);
        assert_int_equal(failure.status, PTOWSP_SYSTEM_FAILED);
    }
    assert_int_equal(late_count, 4);
    alarm(0);
}

wsp_program plain_program(uint32_t kernel_count, const wsp_kernel *kernels,
                          ptowsp_dispatch dispatch) {
    wsp_program program = wsp_program();
    program.kernel_count = kernel_count;
    program.kernels = kernels;
    program.schedule.issue = PTOWSP_ISSUE_DATAFLOW;
    program.schedule.dispatch = dispatch;
    program.schedule.dependencies = PTOWSP_DEPENDENCIES_EXPLICIT;
    return program;
}

// Core 0 never ends task 3. When it is lost core 1 ends task 1, which it has begun half of the limit
// later. Then task 2 waits for nothing but core 0, or the block that it belongs to. False: core 1 was
// late itself.
bool run_after_loss(uint32_t unit) {
    constexpr uint32_t LIMIT_MS = 200;
    const wsp_kernel kernels[] = {
        {"", 0, 0, 0, 0, {}}, {"k", PTOWSP_UNIT_VECTOR, 0, 0, 0, {}}, {"k", unit, 0, 0, 0, {}}};
    wsp_program program = plain_program(3, kernels, PTOWSP_DISPATCH_AFFINITY);
    program.edge_count = 2;
    program.lane_count = 3;
    program.schedule.pools = PTOWSP_POOLS_BY_UNIT;
    program.schedule.vector_lane_count = 2;
    program.schedule.cube_lane_count = 1;
    Scheduler scheduler;
    pwsp_line lines[3] = {pwsp_line(), pwsp_line(), pwsp_line()};
    const List<Core> cores = {{&lines[0], PTOWSP_UNIT_VECTOR, nullptr},
                              {&lines[1], PTOWSP_UNIT_VECTOR, nullptr},
                              {&lines[2], PTOWSP_UNIT_CUBE, nullptr}};
    assert_true(scheduler.begin(program, wsp_bindings(), cores,
                                {1, 16, LIMIT_MS, false, nullptr, nullptr}));
    std::vector<std::thread> threads;
    std::vector<uint64_t> taken[3];
    for (uint32_t i = 0; i < 3; i++) {
        threads.emplace_back([&scheduler, &taken, i] {
            assert_true(pwsp_core_open(scheduler.core(i)));
            while (const uint64_t task = pwsp_core_next(scheduler.core(i))) {
                taken[i].push_back(reinterpret_cast<const wsp_task *>(task)->index);
                usleep(LIMIT_MS * 500);
                while (taken[i].back() > 0 && !scheduler.has_lost()) {
                    std::this_thread::yield();
                }
                if (i == 0) {
                    return;
                }
                pwsp_core_report(scheduler.core(i));
            }
        });
    }
    scheduler.open_lines(0);
    for (uint32_t i = 0; i < 4 && scheduler.good(); i++) {
        Submission *submission = scheduler.open();
        submission->task.kernel = 1 + (i == 2);
        submission->dispatch_key = i < 2;
        if (i > 0 && i < 3) {
            submission->after.push_back(i - 1);
        }
        if (i < 2) {
            submission->before.push_back(i);
        }
        scheduler.submit(submission);
    }
    assert_false(scheduler.finish());
    scheduler.stop();
    scheduler.close_lines(0);
    for (std::thread &thread : threads) {
        thread.join();
    }
    assert_true(taken[0].empty() || taken[0] == std::vector<uint64_t>{3});
    assert_true(taken[2].empty());
    return strcmp(scheduler.failure().text,
                  ": task 3: core 0 (vector) has not ended it within 200 ms") == 0 &&
           taken[1] == std::vector<uint64_t>{0, 1};
}

TEST(time_limit__a_lost_core_has_no_other_task) {
    for (const uint32_t unit : {PTOWSP_UNIT_VECTOR, PTOWSP_UNIT_MIX}) {
        alarm(60);
        while (!run_after_loss(unit)) {
        }
    }
    alarm(0);
}

// Which of the tasks that wait for a core has it next: task 0 has it until all are there.
TEST(order__ready_tasks_go_by_priority_and_then_as_they_came) {
    static const int64_t priorities[] = {0, 1, 7, -2, 7, 3};
    static const uint64_t wanted[][6] = {{0, 1, 2, 3, 4, 5}, {0, 2, 4, 5, 1, 3}};
    const wsp_kernel kernels[] = {{"", 0, 0, 0, 0, {}}, {"k", PTOWSP_UNIT_VECTOR, 0, 0, 0, {}}};
    wsp_program program = plain_program(2, kernels, PTOWSP_DISPATCH_WORK_STEALING);
    program.is_priority_signed = program.lane_count = program.schedule.lane_count = 1;
    program.schedule.pools = PTOWSP_POOLS_ONE;
    for (const bool has_priority : {false, true}) {
        program.schedule.ready = has_priority ? PTOWSP_READY_PRIORITY : PTOWSP_READY_FIFO;
        Scheduler scheduler;
        pwsp_line line = pwsp_line();
        std::vector<uint64_t> order;
        uint32_t are_there = 0;
        assert_true(scheduler.begin(program, wsp_bindings(), {{&line, PTOWSP_UNIT_VECTOR, nullptr}},
                                    {1, 16, 0, false, nullptr, nullptr}));
        std::thread core([&] {
            assert_true(pwsp_core_open(scheduler.core(0)));
            while (const uint64_t task = pwsp_core_next(scheduler.core(0))) {
                while (!__atomic_load_n(&are_there, __ATOMIC_ACQUIRE)) {
                    std::this_thread::yield();
                }
                order.push_back(reinterpret_cast<const wsp_task *>(task)->index);
                pwsp_core_report(scheduler.core(0));
            }
        });
        scheduler.open_lines(0);
        for (const int64_t priority : priorities) {
            Submission *submission = scheduler.open();
            submission->task.kernel = 1;
            submission->priority_key = static_cast<uint64_t>(priority);
            scheduler.submit(submission);
        }
        __atomic_store_n(&are_there, 1u, __ATOMIC_RELEASE);
        assert_true(scheduler.finish());
        scheduler.stop();
        scheduler.close_lines(0);
        core.join();
        assert_true(order == std::vector<uint64_t>(wanted[has_priority], wanted[has_priority] + 6));
    }
}

TEST(random__the_first_failure_in_program_order_decides) {
    Random random = {test_seed() + 1};
    for (uint32_t i = 0; TEST_ROUNDS(i, 600); i++) {
        alarm(60);
        const uint64_t seed = random.next(), how = random.next();
        run_once(seed, how, true);
    }
    alarm(0);
}

}  // namespace

void wsp_core_run(wsp_task *task) {
    run_random(task);
}

// Launches of all kernels: one after another, last ones first, as their order is free.
wsp_launcher wsp_launcher_of(uint32_t) {
    return [](uint32_t task_count, void *, uint64_t tasks, uint64_t, uint64_t) -> int32_t {
        for (uint32_t i = task_count; i-- > 0;) {
            wsp_core_run(reinterpret_cast<wsp_task *>(tasks + i * WSP_TASK_STRIDE));
        }
        return 0;
    };
}

const char *wsp_core_fault_text(uint32_t, uint32_t) {
    return "";
}

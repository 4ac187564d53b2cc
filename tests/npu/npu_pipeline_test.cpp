// Pipelines as emitted trees run them: random ones, written with the words of expand.cpp, on the
// scheduler of the tree with cores that are threads. Each is built with the public API as well, and
// executed; both must agree in status, makespan, calls of kernels by task, what slots load, data.

#include "wsp_bindings.h"
#include "wsp_pipeline.h"
#include "wsp_scheduler.h"
#include "wsp_worker.h"

#include "pipeline_random.h"

#include <string>
#include <thread>
#include <vector>

using namespace wsp;

enum { PIPELINES = LANE_IS_CHECKED ? 300 : 1000 };

namespace {

enum { TENSOR_CELLS = 1, KERNEL_WORK = 1, SYMBOL_LATENCY = 1, PLACE = 1 };

// What kernels do, and a run of the tree. There is one at a time.
struct Tree {
    const sim_sample *sample = nullptr;
    int64_t calls[SIM_CALL_MAX][2];
    uint64_t loaded[SIM_CALL_MAX];
    int32_t cells[SIM_CELL_COUNT];
    std::string error;
    uint64_t task_count = 0, makespan = 0, busy = 0, channel_stall = 0, slot_loads = 0;
    ptowsp_status status = PTOWSP_OK;
};

Tree tree;

}  // namespace

extern "C" void wsp_core_run(wsp_task *task) {
    const int64_t value = static_cast<int64_t>(task->args[0]);
    const int64_t site = static_cast<int64_t>(task->args[1]);
    tree.calls[task->index][0] = value;
    tree.calls[task->index][1] = site;
    if (task->tile_count > 0) {
        int32_t *cell = reinterpret_cast<int32_t *>(task->tiles[0].data);
        tree.loaded[task->index] = task->args[4 + 2];
        *cell = sim_update(*cell, value, site);
    }
    task->cycles = sim_cycles(value, site, static_cast<int64_t>(task->args[2]),
                              static_cast<int64_t>(task->args[3]));
}

extern "C" wsp_launcher wsp_launcher_of(uint32_t) {
    return nullptr;
}

extern "C" const char *wsp_core_fault_text(uint32_t, uint32_t) {
    return "";
}

namespace {

// -- the words ------------------------------------------------------------------------------------

void make_task(Run &run, int64_t value, int64_t site, int64_t base, int64_t spread) {
    const bool has_data = tree.sample->around.has_data;
    if (has_data) {
        const int64_t other =
            static_cast<int64_t>(static_cast<uint64_t>(value) + static_cast<uint64_t>(site % 3));
        run.load_slot(PLACE, SIM_SLOT_COUNT, TENSOR_CELLS, {}, 0, 1, other & (SIM_CELL_COUNT - 1),
                      1, 0, 0);
    }
    Task task(run, KERNEL_WORK, PLACE);
    task.axis(value);
    task.axis(site);
    task.axis(base);
    task.axis(spread);
    if (has_data) {
        task.tile(TENSOR_CELLS, READ_WRITE, {}, 0, 1, value & (SIM_CELL_COUNT - 1), 1);
        task.scalar(run.slot_u64(SIM_SLOT_COUNT));
    }
    task.submit();
}

// Walks a process of a description (pipeline_reference.h) as an emitted body would: ordinary loops that
// block in the words of a process.
class Body {
  public:
    Body(Run &run, const std::vector<Channel> &channels, int64_t round, int process,
         int64_t replica)
        : run_(run), channels_(channels), round_(round), replica_(replica),
          variables_(SIM_STMT_MAX) {
        walk(p_.processes[process].body);
    }

  private:
    static uint64_t bits(int64_t value) {
        return static_cast<uint64_t>(value);
    }

    int64_t eval(int number) const {
        const sim_expr &e = p_.exprs[number];
        int64_t a = e.a ? eval(e.a) : 0, b = e.b ? eval(e.b) : 0;
        switch (e.op) {
        case SIM_NONE: break;
        case SIM_LITERAL: return e.value;
        case SIM_VARIABLE: return variables_[static_cast<size_t>(e.value)];
        case SIM_REPLICA: return replica_;
        case SIM_ROUND: return round_;
        case SIM_SYMBOL: return static_cast<int64_t>(b_.symbols[e.value]);
        case SIM_SLOT: return run_.slot_i64(static_cast<uint32_t>(e.value)).value();
        case SIM_ADD: return static_cast<int64_t>(bits(a) + bits(b));
        case SIM_SUB: return static_cast<int64_t>(bits(a) - bits(b));
        case SIM_MUL: return static_cast<int64_t>(bits(a) * bits(b));
        case SIM_REM: return b == 0 || b == -1 ? 0 : a % b;
        case SIM_EQUAL: return a == b;
        case SIM_LESS: return a < b;
        }
        return 0;
    }

    int64_t loop_count(const sim_stmt &stmt, int number) const {
        return stmt.loop == SIM_DENSE     ? stmt.count
               : stmt.loop == SIM_DYNAMIC ? b_.counts[number]
                                          : b_.lengths[eval(stmt.expr) & 3];
    }

    const Channel &channel(const sim_stmt &stmt) const {
        return channels_[static_cast<size_t>(stmt.channel)];
    }

    void walk(int first) {
        for (int i = first; i >= 0 && run_.good(); i = p_.stmts[i].next) {
            walk_stmt(p_.stmts[i], i);
        }
    }

    void walk_stmt(const sim_stmt &stmt, int number) {
        int64_t value = stmt.expr && stmt.kind != SIM_FOR ? eval(stmt.expr) : 0;
        int64_t &variable = variables_[static_cast<size_t>(number)];
        i64 token;
        switch (stmt.kind) {
        case SIM_FOR: {
            int64_t count = loop_count(stmt, number);
            for (int64_t i = 0; i < count && run_.good(); i++) {
                variable = i;
                walk(stmt.body);
            }
            break;
        }
        case SIM_TASK: make_task(run_, value, number, stmt.base, stmt.spread); break;
        case SIM_SEND_TASK:
            make_task(run_, value, number, stmt.base, stmt.spread);
            channel(stmt).send(run_, i64(value), PLACE);
            break;
        case SIM_SEND: channel(stmt).send(run_, i64(value), PLACE); break;
        case SIM_CONSUME:
            while (channel(stmt).receive(run_, token, PLACE)) {
                variable = token.value();
                walk(stmt.body);
            }
            break;
        case SIM_RECEIVE:
            if (channel(stmt).receive_one(run_, token, PLACE)) {
                variable = token.value();
                walk(stmt.body);
            }
            break;
        case SIM_CLOSE: channel(stmt).close(run_, PLACE); break;
        case SIM_WHEN: walk(value ? stmt.body : stmt.otherwise); break;
        case SIM_SCOPE: walk(stmt.body); break;
        case SIM_RECORD: channel(stmt).record(run_, PLACE); break;
        case SIM_WAIT: channel(stmt).wait(run_, PLACE); break;
        case SIM_SLOT_SET: run_.set_slot(static_cast<uint32_t>(stmt.slot), i64(value)); break;
        }
    }

    Run &run_;
    const std::vector<Channel> &channels_;
    const sim_pipeline &p_ = tree.sample->p;
    const sim_bindings &b_ = tree.sample->b;
    int64_t round_, replica_;
    std::vector<int64_t> variables_;
};

void run_pipeline(Run &run, int64_t round) {
    static char channel_names[16][8], process_names[12][8];
    const sim_pipeline &p = tree.sample->p;
    const sim_bindings &b = tree.sample->b;
    Pipeline pipeline(run, 0, PLACE);
    if (tree.sample->around.has_data) {
        pipeline.tile(TENSOR_CELLS, READ_WRITE);
        pipeline.loads(TENSOR_CELLS);
    }
    std::vector<Channel> channels;
    for (int c = 0; c < p.channel_count; c++) {
        const sim_channel &channel = p.channels[c];
        snprintf(channel_names[c], sizeof channel_names[c], "chan_%c", 'a' + c);
        channels.push_back(pipeline.channel(channel_names[c], static_cast<uint32_t>(c),
                                            channel.is_event         ? u64(0)
                                            : channel.depth_is_bound ? u64(b.depths[c])
                                                                     : u64(channel.depth),
                                            channel.is_event           ? u64(0)
                                            : channel.latency_is_bound ? u64(b.latencies[c])
                                                                       : u64(channel.latency),
                                            channel.is_event));
    }
    for (int i = 0; i < p.process_count; i++) {
        const sim_process &process = p.processes[i];
        snprintf(process_names[i], sizeof process_names[i], "proc_%c", 'a' + i);
        const int64_t count = sim_replica_count(&p, &b, i);
        for (int64_t replica = 0; replica < count; replica++) {
            List<Port> ports;
            for (int k = 0; k < process.consume_count; k++) {
                ports.push_back(consumes(channels[static_cast<size_t>(process.consumes[k])]));
            }
            for (int k = 0; k < process.produce_count; k++) {
                ports.push_back(produces(channels[static_cast<size_t>(process.produces[k])]));
            }
            pipeline.process(process_names[i], PLACE + static_cast<uint32_t>(i), ports,
                             [&channels, i, replica, round](Run &own) {
                                 Body(own, channels, round, i, replica);
                             });
        }
    }
    pipeline.run();
}

void expand(Run &run) {
    const sim_around &around = tree.sample->around;
    const sim_bindings &b = tree.sample->b;
    if (around.before) {
        make_task(run, 0, SIM_SITE_BEFORE, around.before, 0);
    }
    {
        Scope scope(run, SEQUENTIAL);
        for (int64_t round = 0; round < b.rounds && run.good(); round++) {
            for (uint32_t slot = 0; slot < SIM_SLOT_COUNT; slot++) {
                run.set_slot(slot, i64(b.slots[slot] + (slot == 0 ? round : 0)));
            }
            run_pipeline(run, round);
            for (uint32_t slot = 0; run.good() && slot < SIM_SLOT_COUNT; slot++) {
                assert_int_equal(run.slot_i64(slot).value(),
                                 b.slots[slot] + (slot == 0 ? round : 0));
            }
        }
    }
    if (around.after) {
        make_task(run, 0, SIM_SITE_AFTER, around.after, 0);
    }
}

// -- a run of the tree ----------------------------------------------------------------------------

// The program of a sample's tree, until the next one.
wsp_program program_of(const sim_sample &s) {
    static const char *const places[] = {"",   "p1", "p2", "p3",  "p4",  "p5",  "p6",
                                         "p7", "p8", "p9", "p10", "p11", "p12", "p13"};
    static const wsp_symbol_decl symbols[] = {{nullptr, 0}, {"latency", 0}};
    static wsp_kernel kernels[2];
    static wsp_tensor_decl tensors[2];
    const uint32_t has_data = s.around.has_data;
    kernels[1] = {"work", PTOWSP_UNIT_VECTOR, 4, has_data, has_data, {}};
    tensors[1] = {"cells", PTOWSP_I32, 2, {1, SIM_CELL_COUNT}, has_data, has_data, has_data, 0};
    wsp_program program = wsp_program();
    program.array_count = program.axis_count = 1;
    program.symbol_count = program.tensor_count = program.kernel_count = 2;
    program.slot_count = SIM_SLOT_COUNT + 1;
    program.symbols = symbols;
    program.tensors = tensors;
    program.kernels = kernels;
    program.place_count = COUNT_OF(places);
    program.places = places;
    program.schedule = ptowsp_program_read(s.built.program)->schedule;
    program.lane_count = ptowsp_program_lane_count(s.built.program);
    program.scope_depth = 4;
    program.pipeline_count = 1;
    program.latency_symbol = SYMBOL_LATENCY;
    return program;
}

void run_tree(const sim_sample &s, uint32_t aicpu_count, uint32_t core_count,
              void (*walk)(Run &run) = expand) {
    tree.sample = &s;
    memset(tree.cells, 0, sizeof tree.cells);
    const wsp_program program = program_of(s);
    Bindings bindings(program);
    const ptowsp_buffer buffer = {tree.cells, 0, PTOWSP_DTYPE_NONE, 0, {}, {}};
    ptowsp_binding cells = pwsp_binding_of(PTOWSP_BIND_TENSOR, "cells"),
                   latency = pwsp_binding_of(PTOWSP_BIND_SYMBOL, "latency");
    cells.data = &buffer;
    latency.value = s.b.latency;
    assert_ok(bindings.bind(cells));
    assert_ok(s.b.has_latency ? bindings.bind(latency) : PTOWSP_OK);
    assert_ok(bindings.verify(PTOWSP_MODEL_UNIT));
    Scheduler scheduler;
    std::vector<pwsp_line> lines(core_count, pwsp_line());
    List<Core> cores;
    for (uint32_t i = 0; i < core_count; i++) {
        cores.push_back({&lines[i], PTOWSP_UNIT_VECTOR, nullptr});
    }
    assert_true(scheduler.begin(program, bindings.table(), cores,
                                {aicpu_count, 4, 0, false, nullptr, nullptr}));
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < core_count; i++) {
        threads.emplace_back([&, i] { work(scheduler.core(i)); });
    }
    for (uint32_t i = 1; i < aicpu_count; i++) {
        threads.emplace_back([&, i] {
            scheduler.open_lines(i);
            scheduler.serve(i);
            scheduler.close_lines(i);
        });
    }
    scheduler.open_lines(0);
    Run run(program, bindings.table(), scheduler);
    walk(run);
    scheduler.finish();
    scheduler.stop();
    scheduler.close_lines(0);
    for (std::thread &thread : threads) {
        thread.join();
    }
    const ptowsp_run_stats stats = scheduler.clock().stats();
    tree.status = scheduler.failure().status;
    tree.error = scheduler.failure().text;
    tree.task_count = scheduler.task_count();
    tree.makespan = stats.makespan_cycles;
    tree.busy = stats.busy_cycles;
    tree.channel_stall = stats.stall_cycles[PTOWSP_STALL_CHANNEL];
    tree.slot_loads = stats.slot_load_count;
}

// -- both -----------------------------------------------------------------------------------------

// Where a longer text may have been cut off, behind a longer place.
constexpr size_t TEXT_MAX = 400;

void compare(const sim_sample &s, const ptowsp_run *run, ptowsp_status status) {
    const ptowsp_run_stats *stats = ptowsp_run_result(run);
    const bool is_good = status == PTOWSP_OK;
    if (tree.status != status) {
        print_error("tree: %d %s\n", tree.status, tree.error.c_str());
        sim_complain(&s, run, "the status is another one");
    }
    sim_check(&s, run, stats->task_count, tree.task_count, "tasks", 0);
    if (is_good) {
        sim_check(&s, run, stats->makespan_cycles, tree.makespan, "makespan", 0);
        sim_check(&s, run, stats->busy_cycles, tree.busy, "busy", 0);
        sim_check(&s, run, stats->stall_cycles[PTOWSP_STALL_CHANNEL], tree.channel_stall, "stall",
                  0);
        sim_check(&s, run, stats->slot_load_count, tree.slot_loads, "loads", 0);
    } else {
        // "place: stuck at cycle 8: a finds x full, ...; a depth of more than 2 for x would help"
        const char *all = strstr(ptowsp_context_error(s.context).text, "stuck at cycle ");
        assert_non_null(all);
        const std::string expected = std::string("p1: ") + all;
        const size_t size = expected.size() < TEXT_MAX ? expected.size() + 1 : TEXT_MAX;
        if (tree.error.compare(0, size, expected, 0, size) != 0) {
            print_error("tree: %s\nlibrary: %s\n", tree.error.c_str(), all);
            sim_complain(&s, run, "the error is another one");
        }
    }
    for (uint64_t i = 0; i < tree.task_count; i++) {
        sim_check(&s, run, static_cast<uint64_t>(s.built.calls[i][0]),
                  static_cast<uint64_t>(tree.calls[i][0]), "value of task", static_cast<int>(i));
        sim_check(&s, run, static_cast<uint64_t>(s.built.calls[i][1]),
                  static_cast<uint64_t>(tree.calls[i][1]), "site of task", static_cast<int>(i));
        if (s.around.has_data) {
            sim_check(&s, run, s.built.loaded[i], tree.loaded[i], "slot of task",
                      static_cast<int>(i));
        }
    }
    assert_memory_equal(s.built.data, tree.cells, sizeof tree.cells);
}

TEST(npu_pipeline__does_as_the_library_does) {
    uint64_t seed = test_seed(), good = 0, stuck = 0;
    for (unsigned number = 0; TEST_ROUNDS(number, PIPELINES); number++) {
        sim_sample *s = sim_sample_random(seed, number);
        s->around.has_data = number % 3 == 0;
        s->around.has_no_cost = s->around.has_no_cost || s->around.has_data;
        sim_sample_build(s);
        if (s->built.status != PTOWSP_OK) {
            sim_sample_free(s);
            continue;
        }
        ptowsp_run *run = NULL;
        assert_int_equal(ptowsp_run_create(s->context, s->built.program, &run), PTOWSP_OK);
        sim_bind(&s->built, &s->b, run);
        ptowsp_status status = sim_sample_execute(s, run, PTOWSP_RUN_EXECUTE, false);
        for (uint32_t aicpu_count = 1; aicpu_count < 4; aicpu_count += 2) {
            run_tree(*s, aicpu_count, 1 + number % 3);
            compare(*s, run, status);
        }
        good += status == PTOWSP_OK;
        stuck += status == PTOWSP_STUCK;
        ptowsp_run_destroy(run);
        sim_sample_free(s);
    }
    print_message("%llu good, %llu stuck\n", static_cast<unsigned long long>(good),
                  static_cast<unsigned long long>(stuck));
    assert_met(good > PIPELINES / 3 && stuck > 0);
}

// A task takes all the time that there is; the pipeline behind it takes one cycle more.
void walk_late(Run &run) {
    Scope scope(run, SEQUENTIAL);
    make_task(run, 0, SIM_SITE_BEFORE, PTOWSP_CYCLES_MAX, 0);
    Pipeline pipeline(run, 0, PLACE);
    pipeline.process("late", PLACE + 1, {}, [](Run &late) { make_task(late, 0, 0, 1, 0); });
    pipeline.run();
}

TEST(npu_pipeline__that_ends_too_late_is_named_by_its_place) {
    sim_sample *s = sim_sample_random(1, 0);
    s->around.has_data = false;
    sim_sample_build(s);
    assert_int_equal(s->built.status, PTOWSP_OK);
    run_tree(*s, 1, 1, walk_late);
    assert_int_equal(tree.status, PTOWSP_LIMIT_EXCEEDED);
    assert_string_equal(tree.error.c_str(), "p1: the pipeline ends after 2^63 - 1 cycles");
    sim_sample_free(s);
}

}  // namespace

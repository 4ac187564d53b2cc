// What pipelines become: what is in a program's tables that text does not show (tests/cases/printed.case has the
// text); which of its operations are known before kernels run; and the walk of its processes. All is
// worked out on paper from the header and the comments of program.h.

#include "src/workload/expand.h"

#include "test.h"

typedef struct fixture {
    test_memory memory;
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
} fixture;

// Declarations of every module, by number.
enum { TILES = 1, WORKERS };  // axes
enum { X = 1, Y, Z };         // tensors

#define HEAD                                                                                       \
    "module decode slots 4\n"                                                                      \
    "axis tiles dynamic\n"                                                                         \
    "axis workers 2\n"                                                                             \
    "symbol depth\n"                                                                               \
    "array list i32\n"                                                                             \
    "tensor x i32 [?, 8] global\n"                                                                 \
    "tensor y i32 [?, 8] global\n"                                                                 \
    "tensor z i32 [?, 8] global\n"                                                                 \
    "kernel step(axes 1) vector, 10 cycles, time only\n"                                           \
    "kernel mul(axes 1) cube, 10 cycles, time only\n"                                              \
    "kernel load(axes 1, in from i32 1 x 8, out to i32 1 x 8) vector, 10 cycles, time only\n"      \
    "kernel add(axes 0, inout from i32 1 x 8) vector, 10 cycles, time only\n"

// One of each.
static const char one_of_each[] = HEAD "workload finish(a i64)\n"
                                       "  parallel q in workers\n"
                                       "    task step(a + q)\n"
                                       "workload main\n"
                                       "  task step(0) as node 5\n"
                                       "  pipeline double_buffer after node 5 as node 6\n"
                                       "    channel loaded depth depth latency 50\n"
                                       "    event go\n"
                                       "    process load consumes go produces loaded\n"
                                       "      wait go\n"
                                       "      parallel i in tiles\n"
                                       "        task load(i) from = x at (i, 0) to = y at (i, 0)\n"
                                       "        send loaded(i)\n"
                                       "      close loaded\n"
                                       "    process compute replicas w in workers consumes loaded "
                                       "produces go\n"
                                       "      record go\n"
                                       "      consume t from loaded\n"
                                       "        call finish(t)\n"
                                       "      receive u from loaded\n"
                                       "        slot_set 0 = u + w\n"
                                       "  task step(1) after node 6\n";

static void fixture_make(fixture *f) {
    memset(f, 0, sizeof *f);
    const ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &f->memory};
    (void)ptowsp_context_create(&desc, &f->context);
}

static void fixture_free(fixture *f) {
    test_destroy(NULL, f->program, f->m, f->context);
    assert_int_equal(f->memory.live_blocks, 0);
    assert_int_equal(f->memory.live_bytes, 0);
}

// A new module, in place of the one at hand.
static void parse(fixture *f, const char *text) {
    test_destroy(NULL, f->program, f->m, NULL);
    f->program = NULL;
    f->m = NULL;
    test_ok(f->context, ptowsp_module_parse(f->context, text, strlen(text), NULL, &f->m, NULL));
}

static void compile(fixture *f, const ptowsp_schedule *schedule) {
    const ptowsp_program_desc desc = {NULL, schedule};
    test_ok(f->context, ptowsp_program_create(f->context, f->m, &desc, &f->program));
}

#define FIXTURE_TEST(name) TEST_MADE(name, fixture, f, fixture_make(f), fixture_free(f))

FIXTURE_TEST(pipeline_compile__tables_are_those_of_paper) {
    parse(f, one_of_each);
    compile(f, NULL);
    // Places of nodes: main is 4, double_buffer 6, load 7, the loop 9, its send 11.
    char place[100];
    ptowsp_output_buffer buffer = {place, sizeof place, 0};
    ptowsp_program_print_place(f->program, 11, ptowsp_output_to_buffer(&buffer));
    assert_string_equal(place, "main/pipeline double_buffer/process load/parallel i/send loaded");
    size_t size = ptowsp_program_size(f->program);
    assert_true(size <= f->memory.live_bytes && size > 1000);
    ptowsp_module_destroy(f->m);  // the program has copied all
    f->m = NULL;
    const ptowsp_program *p = f->program;
    assert_int_equal(p->latency_symbol, 2);
    assert_false(p->symbol_is_used[2]);
    assert_true(p->symbol_is_used[1]);  // depth
    assert_int_equal(p->pipelines.count, 1);
    assert_int_equal(p->channels.count, 2);
    assert_int_equal(p->processes.count, 2);
    assert_int_equal(p->ports.count, 4);
    const pwsp_pipeline_op *pipeline = &p->pipelines.items[0];
    assert_string_equal(pipeline->name, "double_buffer");
    assert_int_equal(pipeline->task.kernel, 0);
    assert_int_equal(pipeline->task.in_count + pipeline->task.out_count, 0);
    const pwsp_channel_op *loaded = &p->channels.items[0], *go = loaded;
    go++;
    assert_true(loaded->has_depth && !loaded->has_latency && !loaded->is_event);
    assert_int_equal(loaded->depth_code.cell, p->first_symbol + 1);
    assert_int_equal(loaded->latency, 50);
    assert_true(go->is_event && !go->has_depth && go->depth == 0 && go->latency == 0);
    const pwsp_process_op *load = &p->processes.items[0];
    const pwsp_process_op *compute = &p->processes.items[1];
    assert_int_equal(load->index, 0);
    assert_int_equal(load->axis, 0);
    assert_int_equal(p->consts.items[load->size - p->first_const], 1);
    assert_int_equal(compute->index, p->first_variable + 4);
    assert_int_equal(compute->axis, WORKERS);
    assert_int_equal(p->consts.items[compute->size - p->first_const], 2);
    assert_int_equal(load->first_port + load->port_count, compute->first_port);
    const pwsp_send_op *sends = &p->sends.items[0];
    assert_int_equal(p->sends.count, 2);
    assert_int_equal(sends[0].port, 1);  // load produces loaded
    assert_int_equal(sends[1].channel, 1);
    assert_int_equal(sends[1].port, 3);  // compute produces go
    assert_int_equal(sends[1].token.cell, 0);
    const pwsp_receive_op *receives = &p->receives.items[0];
    assert_int_equal(p->receives.count, 3);
    assert_true(receives[0].is_wait && !receives[0].is_loop);
    assert_int_equal(receives[0].cell, p->first_temp);
    assert_true(receives[1].is_loop && !receives[1].is_wait);
    assert_true(!receives[2].is_loop && !receives[2].is_wait);
    assert_int_equal(p->frame_depth, 3);  // the call and its loop, and one more
}

// -- around a pipeline ----------------------------------------------------------------------------

FIXTURE_TEST(pipeline_compile__explicit_edges_end_at_the_pipeline) {
    ptowsp_schedule schedule = {.dependencies = PTOWSP_DEPENDENCIES_EXPLICIT};
    char text[2000];
    snprintf(text, sizeof text,
             "%sworkload more\n  call main()\n  pipeline p\n    process run\n"
             "      task step(2) as node 30\n      task step(3) after node 30\n",
             one_of_each);
    parse(f, text);
    compile(f, &schedule);
    const ptowsp_program *p = f->program;
    const pwsp_pipeline_op *pipelines = &p->pipelines.items[0];
    const pwsp_task_op *tasks = &p->tasks.items[0];
    assert_int_equal(p->edge_count, 2);  // to and from double_buffer
    // more comes first: p, with its two tasks; then main: step, load, step; then finish.
    assert_int_equal(p->tasks.count, 6);
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(tasks[i].in_count, i == 4);
        assert_int_equal(tasks[i].out_count, i == 2);
    }
    assert_int_equal(pipelines[0].task.in_count + pipelines[0].task.out_count, 0);
    assert_int_equal(pipelines[1].task.in_count, 1);
    assert_int_equal(pipelines[1].task.out_count, 1);
    const uint32_t *edges = &p->edges.items[0];
    assert_int_equal(edges[pipelines[1].task.first_in], edges[tasks[2].first_out]);
    assert_int_equal(edges[pipelines[1].task.first_out], edges[tasks[4].first_in]);
    uint32_t resets = 0;
    for (uint32_t i = 0; i < p->ops.count; i++) {
        resets += PWSP_OP_AT(p, i)->kind == PWSP_OP_RESET;
    }
    assert_int_equal(resets, 1);  // where main begins
}

FIXTURE_TEST(pipeline_compile__what_it_does_to_tensors) {
    parse(f, HEAD "workload leaf\n"
                  "  slot_load 1 = z\n"
                  "workload middle\n"
                  "  call leaf()\n"
                  "  call leaf()\n"
                  "  task add() from = x\n"
                  "workload main\n"
                  "  task add() from = z\n"
                  "  pipeline p\n"
                  "    process a\n"
                  "      task load(0) from = x to = y\n"
                  "    process b\n"
                  "      when true\n"
                  "        call middle()\n"
                  "  pipeline q\n"
                  "    process a\n"
                  "      task add() from = z\n"
                  "  pipeline r\n"
                  "    process a\n");
    compile(f, NULL);
    const ptowsp_program *p = f->program;
    // p: x is read by load, read and written by middle; y written; z loaded. q: z. r: nothing.
    static const struct {
        uint32_t tensor;
        bool is_read, is_written;
    } expected[3][3] = {{{1, true, true}, {2, false, true}, {3, true, false}},
                        {{3, true, true}, {0, false, false}, {0, false, false}},
                        {{0, false, false}, {0, false, false}, {0, false, false}}};
    static const uint32_t counts[3] = {3, 1, 0};
    for (uint32_t i = 0; i < 3; i++) {
        const pwsp_task_op *task = &p->pipelines.items[i].task;
        assert_int_equal(task->view_count, counts[i]);
        for (uint32_t j = 0; j < counts[i]; j++) {
            const pwsp_tile_view *at = &p->views.items[task->first_view + j];
            assert_int_equal(at->tensor, expected[i][j].tensor);
            assert_int_equal((at->access & PWSP_TILE_READ) != 0, expected[i][j].is_read);
            assert_int_equal((at->access & PWSP_TILE_WRITTEN) != 0, expected[i][j].is_written);
        }
    }
}

// -- processes need no lanes ----------------------------------------------------------------------

// A cube task that no loop b is around: in a process, and called from one; and from outside.
static void parse_cube(fixture *f, bool is_inside, bool is_called_outside) {
    char text[2000];
    snprintf(text, sizeof text,
             HEAD "workload leaf\n  parallel i in tiles\n    task mul(i)\n"
                  "workload main\n%s%s  pipeline p\n    process run\n      call leaf()\n"
                  "      parallel i in tiles\n        combine\n          task mul(i)\n",
             is_called_outside ? "  call leaf()\n" : "", is_inside ? "" : "  task mul(1)\n");
    parse(f, text);
}

FIXTURE_TEST(pipeline_compile__tasks_of_processes_need_no_lane_and_no_key) {
    for (int by_key = 0; by_key < 2; by_key++) {
        ptowsp_schedule schedule;
        for (int which = 0; which < 3; which++) {
            memset(&schedule, 0, sizeof schedule);
            parse_cube(f, which != 1, which == 2);
            if (by_key) {
                schedule.lane_count = 2;
                schedule.dispatch = PTOWSP_DISPATCH_AFFINITY;
                schedule.dispatch_key = ptowsp_task_variable(f->m, "b");
            } else {
                schedule.pools = PTOWSP_POOLS_BY_UNIT;
                schedule.vector_lane_count = 2;
            }
            if (which == 0) {
                compile(f, &schedule);
                const pwsp_task_op *tasks = &f->program->tasks.items[0];
                assert_int_equal(f->program->tasks.count, 2);
                assert_int_equal(tasks[0].dispatch.cell + tasks[1].dispatch.cell, 0);
                for (uint32_t i = 0; i < f->program->ops.count; i++) {
                    const pwsp_op *op = PWSP_OP_AT(f->program, i);
                    assert_true(op->kind != PWSP_OP_SCOPE && op->kind != PWSP_OP_SCOPE_END);
                }
                for (uint32_t i = 0; i < f->program->loops.count; i++) {
                    assert_int_equal(f->program->loops.items[i].scope, PWSP_SCOPE_SAME);
                }
            } else {
                const ptowsp_program_desc desc = {NULL, &schedule};
                char text[200];
                snprintf(text, sizeof text, "%s: %s",
                         which == 1 ? "main/task mul" : "leaf/parallel i/task mul",
                         by_key ? "a key of the schedule reads variable b, which no loop around it "
                                  "has"
                                : "its kernel needs a cube lane, and the schedule has none");
                test_refused(f->context,
                             ptowsp_program_create(f->context, f->m, &desc, &f->program),
                             PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, text);
            }
        }
    }
}

// A workload that is called from both has the scopes that lanes need.
FIXTURE_TEST(pipeline_compile__workloads_called_from_both_sides_keep_their_scopes) {
    parse_cube(f, true, true);
    compile(f, NULL);
    const ptowsp_program *p = f->program;
    assert_int_equal(p->loops.count, 2);  // of the process in main, then of leaf
    assert_int_equal(p->loops.items[0].scope, PWSP_SCOPE_SAME);
    assert_int_equal(p->loops.items[1].scope, PWSP_SCOPE_PARALLEL);
}

// -- what is known --------------------------------------------------------------------------------

// Asserts that exactly these ops are unknown when tasks write these tensors (bits by id).
static void unknown_are(const fixture *f, uint32_t written, const char *expected) {
    const ptowsp_program *p = f->program;
    const pwsp_memory *memory = &p->memory;
    uint8_t unknown[64];
    bool is_written[8];
    char text[300] = "";
    for (uint32_t i = 0; i < 8; i++) {
        is_written[i] = (written >> i & 1) != 0;
    }
    assert_true(p->ops.count <= 64);
    assert_true(pwsp_program_find_tainted(p, memory, is_written, unknown));
    for (uint32_t i = 0; i < p->ops.count; i++) {
        if (unknown[i]) {
            size_t length = strlen(text);
            snprintf(text + length, sizeof text - length, "%s%u", length ? " " : "", i);
        }
    }
    assert_string_equal(text, expected);
}

// Of the program above: the wait, both receives with what follows them up to their ends, and what
// finish does with the token.
FIXTURE_TEST(pipeline_compile__what_is_received_is_unknown) {
    parse(f, one_of_each);
    compile(f, NULL);
    unknown_are(f, 0, "2 10 11 12 13 14 19");
}

// Two slots are loaded from z. One decides whether p runs, the other how deep the channel of q is,
// and what is sent there: its token alone is unknown when only that is. Operations are numbered:
//
//      0 slot_load   1 when   2 p   3 its task   4 its end   5 q   6, 7 sends   8 end   9 receive   10 end
FIXTURE_TEST(pipeline_compile__what_depends_on_slots_is_unknown) {
    static const struct {
        uint32_t of_when, of_depth, of_token;
        const char *unknown;
    } cases[] = {
        {2, 2, 2, "0 9"},
        {2, 2, 1, "0 6 9"},
        {1, 2, 2, "0 1 2 3 4 9"},
        {2, 1, 2, "0 5 6 7 8 9 10"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[2000];
        snprintf(text, sizeof text,
                 HEAD "workload main\n"
                      "  slot_load 1 = z\n"
                      "  when slot_bool[%u]\n"
                      "    pipeline p\n"
                      "      process a\n"
                      "        task step(1)\n"
                      "  pipeline q\n"
                      "    channel c depth slot_u64[%u] latency 0\n"
                      "    process a produces c\n"
                      "      send c(slot_u64[%u])\n"
                      "      send c(1u)\n"
                      "    process b consumes c\n"
                      "      receive t from c\n"
                      "  task step(2)\n",
                 cases[i].of_when, cases[i].of_depth, cases[i].of_token);
        parse(f, text);
        compile(f, NULL);
        unknown_are(f, 0, "9");  // nobody writes z
        unknown_are(f, 1u << Z, cases[i].unknown);
    }
}

// -- walking --------------------------------------------------------------------------------------

typedef struct walk {
    pwsp_expander x;
    uint64_t cells[2000];
    pwsp_frame frames[8];
    pwsp_bound_tensor tensors[4];
} walk;

static void walk_begin(walk *w, const ptowsp_program *p) {
    memset(w, 0, sizeof *w);
    assert_true(p->cell_count <= 2000 && p->frame_depth <= 8);
    for (uint32_t i = 0; i < p->consts.count; i++) {
        w->cells[p->first_const + i] = p->consts.items[i];
    }
    for (uint32_t i = 1; i < 4; i++) {
        w->tensors[i].rows = 4;
        w->tensors[i].cols = 8;
    }
    w->x.program = p;
    w->x.cells = w->cells;
    w->x.frames = w->frames;
    w->x.tensors = w->tensors;
    pwsp_expander_begin(&w->x);
}

static void task_is(walk *w, uint64_t axis) {
    assert_int_equal(pwsp_expander_next(&w->x), PWSP_EVENT_TASK);
    assert_int_equal(w->x.task.args[0], axis);
}

static void send_is(walk *w, uint32_t channel, uint32_t port, uint64_t token) {
    assert_int_equal(pwsp_expander_next(&w->x), PWSP_EVENT_SEND);
    assert_int_equal(w->x.send->channel, channel);
    assert_int_equal(w->x.send->port, port);
    assert_int_equal(w->x.token, token);
}

// Returns the receive; the walk is at its body.
static const pwsp_receive_op *receive_is(walk *w, uint32_t channel, uint32_t end) {
    assert_int_equal(pwsp_expander_next(&w->x), PWSP_EVENT_RECEIVE);
    assert_int_equal(w->x.receive->channel, channel);
    assert_int_equal(w->x.receive_end, end);
    return w->x.receive;
}

FIXTURE_TEST(pipeline_compile__processes_are_walked) {
    parse(f, one_of_each);
    compile(f, NULL);
    const ptowsp_program *p = f->program;
    static walk w;
    walk_begin(&w, p);
    task_is(&w, 0);
    assert_int_equal(pwsp_expander_next(&w.x), PWSP_EVENT_PIPELINE);
    assert_ptr_equal(w.x.pipeline, &p->pipelines.items[0]);
    assert_int_equal(w.x.node, 6);
    task_is(&w, 1);
    assert_int_equal(pwsp_expander_next(&w.x), PWSP_EVENT_END);
    walk_begin(&w, p);  // load, on 2 tiles
    w.x.next_op = p->processes.items[0].first_op;
    w.cells[p->first_size + TILES] = 2;
    assert_true(receive_is(&w, 1, 3)->is_wait);
    for (uint64_t i = 0; i < 2; i++) {
        task_is(&w, i);
        assert_int_equal(w.x.tiles_at[1].row, i);
        send_is(&w, 0, 1, i);
        assert_int_equal(w.x.node, 11);
    }
    assert_int_equal(pwsp_expander_next(&w.x), PWSP_EVENT_CLOSE);
    assert_int_equal(w.x.port, 1);
    assert_int_equal(pwsp_expander_next(&w.x), PWSP_EVENT_PROCESS_END);
    assert_int_equal(w.x.frame_count, 0);
    walk_begin(&w, p);  // compute, replica 1: one token for the consume, one for the receive
    w.x.next_op = p->processes.items[1].first_op;
    w.cells[p->processes.items[1].index] = 1;
    send_is(&w, 1, 3, 0);
    w.cells[receive_is(&w, 0, 13)->cell] = 7;
    task_is(&w, 7);
    task_is(&w, 8);
    receive_is(&w, 0, 13);
    w.x.next_op = w.x.receive_end;
    w.cells[receive_is(&w, 0, 15)->cell] = 5;
    assert_int_equal(pwsp_expander_next(&w.x), PWSP_EVENT_PROCESS_END);
    assert_int_equal(w.cells[p->first_slot], 6);
}

// Unknown receives are passed over, with their bodies.
FIXTURE_TEST(pipeline_compile__the_unknown_is_passed_over) {
    parse(f, one_of_each);
    compile(f, NULL);
    const ptowsp_program *p = f->program;
    static walk w;
    uint8_t unknown[64];
    const bool is_written[4] = {false, false, false, false};
    assert_true(pwsp_program_find_tainted(p, &p->memory, is_written, unknown));
    walk_begin(&w, p);
    w.x.unknown = unknown;
    w.x.next_op = p->processes.items[0].first_op;
    w.cells[p->first_size + TILES] = 1;
    task_is(&w, 0);
    send_is(&w, 0, 1, 0);
    assert_int_equal(pwsp_expander_next(&w.x), PWSP_EVENT_CLOSE);
    assert_int_equal(pwsp_expander_next(&w.x), PWSP_EVENT_PROCESS_END);
    w.x.next_op = p->processes.items[1].first_op;
    send_is(&w, 1, 3, 0);
    assert_int_equal(pwsp_expander_next(&w.x), PWSP_EVENT_PROCESS_END);
    assert_false(w.x.has_skipped);
    unknown[1] = 1;  // the pipeline
    walk_begin(&w, p);
    w.x.unknown = unknown;
    task_is(&w, 0);
    task_is(&w, 1);
    assert_false(w.x.has_skipped);  // its tasks are not issued
}

FIXTURE_TEST(pipeline_compile__a_token_that_reads_outside_an_array_is_an_error) {
    parse(f, HEAD "workload main\n"
                  "  pipeline p\n"
                  "    channel c depth 0 latency 0\n"
                  "    process put replicas w in workers produces c\n"
                  "      send c(list[w])\n"
                  "    process get consumes c\n"
                  "      consume t from c\n");
    compile(f, NULL);
    static walk w;
    const int32_t list[1] = {40};
    const pwsp_array arrays[2] = {{NULL, 0, PTOWSP_DTYPE_NONE, false, 0, 0},
                                  {list, 1, PTOWSP_I32, true, 0, 0}};
    const pwsp_process_op *put = &f->program->processes.items[0];
    walk_begin(&w, f->program);
    w.x.arrays = arrays;
    w.x.next_op = put->first_op;
    send_is(&w, 0, 0, 40);
    w.x.next_op = put->first_op;
    w.cells[put->index] = 1;
    assert_int_equal(pwsp_expander_next(&w.x), PWSP_EVENT_ERROR);
    assert_invalid(w.x.status);
    assert_string_equal(w.x.text, "main/pipeline p/process put/send c (w = 1): array list is read "
                                  "at 1; it has 1 elements");
}

// -- memory ---------------------------------------------------------------------------------------

TEST(pipeline_compile__any_allocation_may_fail) {
    size_t failed = 0;
    for (bool is_done = false; !is_done; failed += !is_done) {
        fixture f = {.memory.refuse_at = failed + 1};
        const ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &f.memory};
        const ptowsp_schedule schedule = {.dependencies = PTOWSP_DEPENDENCIES_EXPLICIT};
        const ptowsp_program_desc program = {NULL, &schedule};
        if (ptowsp_context_create(&desc, &f.context) == PTOWSP_OK) {
            ptowsp_status status = ptowsp_module_parse(f.context, one_of_each,
                                                       sizeof one_of_each - 1, NULL, &f.m, NULL);
            status = status ? status : ptowsp_program_create(f.context, f.m, &program, &f.program);
            is_done = status == PTOWSP_OK;
            if (!is_done) {
                assert_int_equal(status, PTOWSP_OUT_OF_MEMORY);
                assert_non_null(strstr(ptowsp_context_error(f.context).text, "out of memory"));
                assert_null(f.program);
            }
        }
        fixture_free(&f);
    }
    assert_true(failed > 30);
}

// What pipelines become: the module and the program as text, word by word; what is in a program's
// tables that text does not show; which of its operations are known before kernels run; and the
// walk of its processes. All is worked out on paper from the header and the comments of program.h.

#include "src/workload/expand.h"

#include "test.h"

typedef struct fixture {
    test_memory memory;
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_axis tiles, workers;          // dynamic, dense 2
    ptowsp_tensor x, y, z;               // i32 [?, 8]
    ptowsp_kernel load, step, add, mul;  // (axis, in, out), (axis), (inout), cube (axis)
    char text[8000];
    ptowsp_output_buffer buffer;
} fixture;

static ptowsp_tensor tensor_make(const fixture *f, const char *name) {
    const ptowsp_tensor_desc desc = {
        name, PTOWSP_I32, 2, {PTOWSP_DYNAMIC, 8, 0, 0, 0, 0, 0, 0}, PTOWSP_LOCATION_GLOBAL};
    return ptowsp_tensor_make(f->m, &desc);
}

static void fixture_make_module(fixture *f) {
    const ptowsp_module_desc desc = {"decode", 4};
    if (ptowsp_module_create(f->context, &desc, &f->m) != PTOWSP_OK) {
        return;
    }
    f->tiles = ptowsp_axis_dynamic(f->m, "tiles");
    f->workers = ptowsp_axis_dense(f->m, "workers", 2);
    f->x = tensor_make(f, "x");
    f->y = tensor_make(f, "y");
    f->z = tensor_make(f, "z");
    ptowsp_kernel_desc kernel = {0};
    const ptowsp_tile_param from = {"from", PTOWSP_IN, PTOWSP_I32, 1, 8};
    const ptowsp_tile_param to = {"to", PTOWSP_OUT, PTOWSP_I32, 1, 8};
    kernel.axis_count = 1;
    kernel.cycles = 10;
    kernel.name = "step";
    f->step = ptowsp_kernel_make(f->m, &kernel);
    kernel.name = "mul";
    kernel.unit = PTOWSP_UNIT_CUBE;
    f->mul = ptowsp_kernel_make(f->m, &kernel);
    kernel.unit = PTOWSP_UNIT_VECTOR;
    kernel.name = "load";
    kernel.tiles[0] = from;
    kernel.tiles[1] = to;
    f->load = ptowsp_kernel_make(f->m, &kernel);
    kernel.name = "add";
    kernel.axis_count = 0;
    kernel.tiles[0].direction = PTOWSP_INOUT;
    memset(&kernel.tiles[1], 0, sizeof kernel.tiles[1]);
    f->add = ptowsp_kernel_make(f->m, &kernel);
}

static void fixture_make(fixture *f) {
    memset(f, 0, sizeof *f);
    ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &f->memory};
    if (ptowsp_context_create(&desc, &f->context) == PTOWSP_OK) {
        fixture_make_module(f);
    }
}

static void fixture_free(fixture *f) {
    ptowsp_program_destroy(f->program);
    ptowsp_module_destroy(f->m);
    ptowsp_context_destroy(f->context);
    assert_int_equal(f->memory.live_blocks, 0);
    assert_int_equal(f->memory.live_bytes, 0);
}

static void compile(fixture *f, const ptowsp_schedule *schedule) {
    const ptowsp_program_desc desc = {NULL, schedule};
    if (ptowsp_program_create(f->context, f->m, &desc, &f->program) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(f->context).text);
    }
}

// Begins a new module.
static void again(fixture *f) {
    ptowsp_program_destroy(f->program);
    f->program = NULL;
    ptowsp_module_destroy(f->m);
    fixture_make_module(f);
}

static ptowsp_output sink(fixture *f) {
    f->buffer.data = f->text;
    f->buffer.size = sizeof f->text;
    return ptowsp_output_to_buffer(&f->buffer);
}

static ptowsp_node task_after(const fixture *f, ptowsp_kernel kernel, ptowsp_expr axis,
                              ptowsp_node after) {
    ptowsp_task_desc desc = {.kernel = kernel, .axes[0] = axis, .after[0] = after};
    return ptowsp_task_make(f->m, &desc);
}

static ptowsp_node task(const fixture *f, ptowsp_kernel kernel, ptowsp_expr axis) {
    const ptowsp_node none = {0};
    return task_after(f, kernel, axis, none);
}

static ptowsp_task_desc load_desc(const fixture *f, ptowsp_expr i) {
    ptowsp_task_desc desc = {.kernel = f->load,
                             .axes[0] = i,
                             .views[0].tensor = f->x,
                             .views[0].row = i,
                             .views[1].tensor = f->y,
                             .views[1].row = i};
    return desc;
}

static void add_to(const fixture *f, ptowsp_tensor tensor) {
    ptowsp_task_desc desc = {.kernel = f->add, .views[0].tensor = tensor};
    ptowsp_task_make(f->m, &desc);
}

// -- one of each ----------------------------------------------------------------------------------

static void build_processes(const fixture *f, ptowsp_channel loaded, ptowsp_channel go) {
    ptowsp_module *m = f->m;
    PTOWSP_PROCESS(m, "load") {
        ptowsp_produces(m, loaded);
        ptowsp_consumes(m, go);
        ptowsp_wait_make(m, go);
        PTOWSP_PARALLEL(m, i, f->tiles) {
            const ptowsp_task_desc desc = load_desc(f, i);
            ptowsp_send_task_make(m, loaded, &desc);
        }
        ptowsp_close_make(m, loaded);
    }
    PTOWSP_REPLICATE(m, w, f->workers, "compute") {
        ptowsp_consumes(m, loaded);
        ptowsp_produces(m, go);
        ptowsp_record_make(m, go);
        PTOWSP_CONSUME(m, t, loaded) {
            ptowsp_call_make(m, "finish", &t, 1);
        }
        PTOWSP_RECEIVE(m, u, loaded) {
            ptowsp_slot_set_make(m, 0, ptowsp_add(u, w));
        }
    }
}

static void build(const fixture *f) {
    ptowsp_module *m = f->m;
    ptowsp_channel_desc desc = {0};
    PTOWSP_WORKLOAD(m, "finish") {
        ptowsp_expr a = ptowsp_workload_param(m, "a", PTOWSP_TYPE_I64);
        PTOWSP_PARALLEL(m, q, f->workers) {
            task(f, f->step, ptowsp_add(a, q));
        }
    }
    PTOWSP_WORKLOAD(m, "main") {
        ptowsp_node first = task(f, f->step, ptowsp_i64(m, 0));
        desc.name = "loaded";
        desc.latency = 50;
        desc.depth_at_start = ptowsp_symbol(m, "depth");
        ptowsp_node pipeline = ptowsp_pipeline_begin(m, "double_buffer", &first, 1);
        ptowsp_channel loaded = ptowsp_channel_make(m, &desc);
        memset(&desc, 0, sizeof desc);
        ptowsp_channel go = ptowsp_event_make(m, "go");
        build_processes(f, loaded, go);
        ptowsp_scope_end(m);
        task_after(f, f->step, ptowsp_i64(m, 1), pipeline);
    }
}

#define FIXTURE_TEST(name) TEST_MADE(name, fixture, f, fixture_make(f), fixture_free(f))

FIXTURE_TEST(pipeline_compile__tables_are_those_of_paper) {
    build(f);
    compile(f, NULL);
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
    assert_int_equal(compute->axis, f->workers.id);
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
    build(f);
    ptowsp_node first = {0};
    PTOWSP_WORKLOAD(f->m, "more") {
        ptowsp_call_make(f->m, "main", NULL, 0);
        PTOWSP_PIPELINE(f->m, "p") {
            PTOWSP_PROCESS(f->m, "run") {
                first = task(f, f->step, ptowsp_i64(f->m, 2));
                task_after(f, f->step, ptowsp_i64(f->m, 3), first);
            }
        }
    }
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
    ptowsp_module *m = f->m;
    const ptowsp_expr none = {NULL, 0};
    ptowsp_view view = {.tensor = f->z};
    PTOWSP_WORKLOAD(m, "leaf") {
        ptowsp_slot_load_make(m, 1, &view, none, none);
    }
    PTOWSP_WORKLOAD(m, "middle") {
        ptowsp_call_make(m, "leaf", NULL, 0);
        ptowsp_call_make(m, "leaf", NULL, 0);
        add_to(f, f->x);
    }
    PTOWSP_WORKLOAD(m, "main") {
        add_to(f, f->z);  // outside
        PTOWSP_PIPELINE(m, "p") {
            PTOWSP_PROCESS(m, "a") {
                const ptowsp_task_desc desc = load_desc(f, ptowsp_i64(m, 0));
                ptowsp_task_make(m, &desc);
            }
            PTOWSP_PROCESS(m, "b") {
                PTOWSP_WHEN(m, ptowsp_bool(m, true)) {
                    ptowsp_call_make(m, "middle", NULL, 0);
                }
            }
        }
        PTOWSP_PIPELINE(m, "q") {
            PTOWSP_PROCESS(m, "a") {
                add_to(f, f->z);
            }
        }
        PTOWSP_PIPELINE(m, "r") {
            PTOWSP_PROCESS(m, "a") {
            }
        }
    }
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
static void build_cube(const fixture *f, bool is_inside, bool is_called_outside) {
    PTOWSP_WORKLOAD(f->m, "leaf") {
        PTOWSP_PARALLEL(f->m, i, f->tiles) {
            task(f, f->mul, i);
        }
    }
    PTOWSP_WORKLOAD(f->m, "main") {
        if (is_called_outside) {
            ptowsp_call_make(f->m, "leaf", NULL, 0);
        }
        if (!is_inside) {
            task(f, f->mul, ptowsp_i64(f->m, 1));
        }
        PTOWSP_PIPELINE(f->m, "p") {
            PTOWSP_PROCESS(f->m, "run") {
                ptowsp_call_make(f->m, "leaf", NULL, 0);
                PTOWSP_PARALLEL(f->m, i, f->tiles) {
                    PTOWSP_COMBINE(f->m) {
                        task(f, f->mul, i);
                    }
                }
            }
        }
    }
}

FIXTURE_TEST(pipeline_compile__tasks_of_processes_need_no_lane_and_no_key) {
    for (int by_key = 0; by_key < 2; by_key++) {
        ptowsp_schedule schedule;
        for (int which = 0; which < 3; which++) {
            memset(&schedule, 0, sizeof schedule);
            if (by_key) {
                schedule.lane_count = 2;
                schedule.dispatch = PTOWSP_DISPATCH_AFFINITY;
                schedule.dispatch_key = ptowsp_task_variable(f->m, "b");
            } else {
                schedule.pools = PTOWSP_POOLS_BY_UNIT;
                schedule.vector_lane_count = 2;
            }
            build_cube(f, which != 1, which == 2);
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
                assert_int_equal(ptowsp_program_create(f->context, f->m, &desc, &f->program),
                                 PTOWSP_INVALID_PARAMS);
                test_error_is(f->context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, text);
            }
            again(f);
        }
    }
}

// A workload that is called from both has the scopes that lanes need.
FIXTURE_TEST(pipeline_compile__workloads_called_from_both_sides_keep_their_scopes) {
    build_cube(f, true, true);
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
    build(f);
    compile(f, NULL);
    unknown_are(f, 0, "2 10 11 12 13 14 19");
}

// Two slots are loaded from z. One decides whether p runs, the other how deep the channel of q is,
// and what is sent there: its token alone is unknown when only that is.
static void build_loaded(const fixture *f, uint32_t of_when, uint32_t of_depth, uint32_t of_token) {
    ptowsp_module *m = f->m;
    const ptowsp_expr none = {NULL, 0};
    ptowsp_channel_desc desc = {0};
    ptowsp_view view = {.tensor = f->z};
    desc.name = "c";
    PTOWSP_WORKLOAD(m, "main") {
        ptowsp_slot_load_make(m, 1, &view, none, none);              // 0
        PTOWSP_WHEN(m, ptowsp_slot(m, of_when, PTOWSP_TYPE_BOOL)) {  // 1
            PTOWSP_PIPELINE(m, "p") {                                // 2
                PTOWSP_PROCESS(m, "a") {                             // its end: 4
                    task(f, f->step, ptowsp_i64(m, 1));              // 3
                }
            }
        }
        desc.depth_at_start = ptowsp_slot(m, of_depth, PTOWSP_TYPE_U64);
        PTOWSP_PIPELINE(m, "q") {  // 5
            ptowsp_channel c = ptowsp_channel_make(m, &desc);
            PTOWSP_PROCESS(m, "a") {  // its end: 8
                ptowsp_produces(m, c);
                ptowsp_send_make(m, c, ptowsp_slot(m, of_token, PTOWSP_TYPE_U64));  // 6
                ptowsp_send_make(m, c, ptowsp_u64(m, 1));                           // 7
            }
            PTOWSP_PROCESS(m, "b") {  // its end: 10
                ptowsp_consumes(m, c);
                PTOWSP_RECEIVE(m, t, c) {  // 9
                    (void)t;
                }
            }
        }
        task(f, f->step, ptowsp_i64(m, 2));  // 11
    }
}

TEST(pipeline_compile__what_depends_on_slots_is_unknown) {
    static const struct {
        uint32_t of_when, of_depth, of_token;
        const char *unknown;
    } cases[] = {
        {2, 2, 2, "0 9"},
        {2, 2, 1, "0 6 9"},
        {1, 2, 2, "0 1 2 3 4 9"},
        {2, 1, 2, "0 5 6 7 8 9 10"},
    };
    fixture f;
    fixture_make(&f);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        build_loaded(&f, cases[i].of_when, cases[i].of_depth, cases[i].of_token);
        compile(&f, NULL);
        unknown_are(&f, 0, "9");  // nobody writes z
        unknown_are(&f, 1u << f.z.id, cases[i].unknown);
        again(&f);
    }
    fixture_free(&f);
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
    build(f);
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
    w.cells[p->first_size + f->tiles.id] = 2;
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
    build(f);
    compile(f, NULL);
    const ptowsp_program *p = f->program;
    static walk w;
    uint8_t unknown[64];
    const bool is_written[4] = {false, false, false, false};
    assert_true(pwsp_program_find_tainted(p, &p->memory, is_written, unknown));
    walk_begin(&w, p);
    w.x.unknown = unknown;
    w.x.next_op = p->processes.items[0].first_op;
    w.cells[p->first_size + f->tiles.id] = 1;
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
    ptowsp_module *m = f->m;
    PTOWSP_WORKLOAD(m, "main") {
        PTOWSP_PIPELINE(m, "p") {
            ptowsp_channel_desc desc = {.name = "c"};
            ptowsp_channel c = ptowsp_channel_make(m, &desc);
            PTOWSP_REPLICATE(m, w, f->workers, "put") {
                ptowsp_produces(m, c);
                ptowsp_send_make(m, c, ptowsp_array_at(m, "list", PTOWSP_I32, w));
            }
            PTOWSP_PROCESS(m, "get") {
                ptowsp_consumes(m, c);
                PTOWSP_CONSUME(m, t, c) {
                    (void)t;
                }
            }
        }
    }
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
    assert_int_equal(w.x.status, PTOWSP_INVALID_PARAMS);
    assert_string_equal(w.x.text, "main/pipeline p/process put/send c (w = 1): array list is read "
                                  "at 1; it has 1 elements");
}

// -- memory ---------------------------------------------------------------------------------------

TEST(pipeline_compile__any_allocation_may_fail) {
    fixture f;
    size_t failed = 0;
    for (bool is_done = false; !is_done; failed += !is_done) {
        memset(&f, 0, sizeof f);
        ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &f.memory};
        f.memory.refuse_at = failed + 1;
        if (ptowsp_context_create(&desc, &f.context) != PTOWSP_OK) {
            continue;
        }
        fixture_make_module(&f);
        if (f.m) {
            build(&f);
            ptowsp_module_print(f.m, sink(&f));
            assert_null(strstr(f.text, "(null)"));
            ptowsp_schedule schedule = {.dependencies = PTOWSP_DEPENDENCIES_EXPLICIT};
            const ptowsp_program_desc program = {NULL, &schedule};
            ptowsp_status status = ptowsp_program_create(f.context, f.m, &program, &f.program);
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

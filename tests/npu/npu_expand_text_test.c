// aicpu/expand.cpp as text, which people read: three programs, as files in tests/golden that were
// read before they were kept (PTOWSP_GOLDEN=write writes them anew). Then programs that are as deep
// and as wide as they come; and where errors of expressions are told.

#define _GNU_SOURCE  // mkdtemp

#include "npu_expand_run.h"

typedef struct fixture {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_run *run;
} fixture;

static void fixture_make(fixture *f, const char *name) {
    const ptowsp_module_desc desc = {name, 8};
    memset(f, 0, sizeof *f);
    assert_int_equal(ptowsp_context_create(NULL, &f->context), PTOWSP_OK);
    assert_int_equal(ptowsp_module_create(f->context, &desc, &f->m), PTOWSP_OK);
}

static void fixture_free(fixture *f) {
    test_destroy(f->run, f->program, f->m, f->context);
}

static void compile(fixture *f, const char *workload, const ptowsp_schedule *schedule) {
    const ptowsp_program_desc desc = {workload, schedule};
    if (ptowsp_program_create(f->context, f->m, &desc, &f->program) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(f->context).text);
    }
    assert_int_equal(ptowsp_run_create(f->context, f->program, &f->run), PTOWSP_OK);
}

static ptowsp_expr number(const fixture *f, int64_t value) {
    return ptowsp_i64(f->m, value);
}

static ptowsp_expr no_expr(void) {
    const ptowsp_expr none = {NULL, 0};
    return none;
}

static ptowsp_tensor tensor(const fixture *f, const char *name, ptowsp_dtype dtype, uint32_t rank,
                            int64_t a, int64_t b, int64_t c) {
    const ptowsp_tensor_desc desc = {
        name, dtype, rank, {a, b, c, 0, 0, 0, 0, 0}, PTOWSP_LOCATION_GLOBAL};
    return ptowsp_tensor_make(f->m, &desc);
}

static ptowsp_cycles kernel_fn(const ptowsp_task *task, void *user) {
    (void)task;
    (void)user;
    return 1;
}

static ptowsp_kernel kernel(const fixture *f, ptowsp_kernel_desc desc) {
    desc.fn = kernel_fn;
    return ptowsp_kernel_make(f->m, &desc);
}

// -- golden texts ---------------------------------------------------------------------------------

static char *file_read(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file) {
        return NULL;
    }
    char *text = (char *)calloc(1, 1 << 20);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

static void text_is_golden(const fixture *f, const char *name) {
    char path[512], root[400];
    snprintf(root, sizeof root, "%s", __FILE__);
    *strstr(root, "npu/npu_expand_text_test.c") = '\0';
    snprintf(path, sizeof path, "%sgolden/expand_%s.cpp", root, name);
    npu_text text = words_emit(f->context, f->program, false);
    npu_text again = words_emit(f->context, f->program, false);
    assert_string_equal(text.data, again.data);
    const char *mode = getenv("PTOWSP_GOLDEN");
    if (mode && strcmp(mode, "write") == 0) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        assert_true(fwrite(text.data, 1, text.size, file) == text.size);
        assert_int_equal(fclose(file), 0);
    }
    char *golden = file_read(path);
    assert_non_null(golden);
    assert_string_equal(text.data, golden);
    free(golden);
    npu_text_free(&text);
    npu_text_free(&again);
}

// Compiles the text; it is not walked.
static void text_compiles(const fixture *f) {
    words_unit unit;
    if (words_compiler()) {
        memset(&unit, 0, sizeof unit);
        words_unit_add(&unit, f->context, f->program);
        words_unit_build(&unit);
        words_unit_free(&unit);
    }
}

enum { DIM = 32, GROUP = 4, CHUNK = 1024 };

// The decode step of examples/tiered_decode.c, with a lane for each request and long tasks first.
static void tiered_decode_make(fixture *f) {
    ptowsp_module *m = f->m;
    ptowsp_tensor kv = tensor(f, "kv", PTOWSP_F32, 2, PTOWSP_DYNAMIC, 2 * DIM, 0);
    ptowsp_tensor fresh = tensor(f, "fresh", PTOWSP_F32, 2, PTOWSP_DYNAMIC, 2 * DIM, 0);
    ptowsp_tensor queries = tensor(f, "queries", PTOWSP_F32, 3, PTOWSP_DYNAMIC, GROUP, DIM);
    ptowsp_tensor states = tensor(f, "states", PTOWSP_F32, 3, PTOWSP_DYNAMIC, PTOWSP_DYNAMIC, 2);
    ptowsp_tensor accs = tensor(f, "accs", PTOWSP_F32, 3, PTOWSP_DYNAMIC, PTOWSP_DYNAMIC, DIM);
    ptowsp_tensor outputs = tensor(f, "outputs", PTOWSP_F32, 3, PTOWSP_DYNAMIC, GROUP, DIM);
    const ptowsp_tile_param query = {"query", PTOWSP_IN, PTOWSP_F32, GROUP, DIM};
    const ptowsp_tile_param out = {"out", PTOWSP_OUT, PTOWSP_F32, GROUP, DIM};
    const ptowsp_tile_param chunk_tile = {"kv", PTOWSP_IN, PTOWSP_F32, CHUNK, 2 * DIM};
    const ptowsp_scalar_param tokens = {"tokens", PTOWSP_TYPE_I64};
    ptowsp_kernel append =
        kernel(f, (ptowsp_kernel_desc){.name = "append",
                                       .axis_count = 1,
                                       .tiles = {{"fresh", PTOWSP_IN, PTOWSP_F32, 1, 2 * DIM},
                                                 {"kv", PTOWSP_OUT, PTOWSP_F32, 1, 2 * DIM}}});
    ptowsp_kernel attend_short = kernel(f, (ptowsp_kernel_desc){.name = "attend_short",
                                                                .axis_count = 1,
                                                                .tiles = {query, chunk_tile, out},
                                                                .scalars = {tokens}});
    ptowsp_kernel attend_chunk =
        kernel(f, (ptowsp_kernel_desc){.name = "attend_chunk",
                                       .axis_count = 1,
                                       .tiles = {query,
                                                 chunk_tile,
                                                 {"state", PTOWSP_OUT, PTOWSP_F32, GROUP, 2},
                                                 {"acc", PTOWSP_OUT, PTOWSP_F32, GROUP, DIM}},
                                       .scalars = {tokens}});
    ptowsp_kernel merge = kernel(
        f, (ptowsp_kernel_desc){.name = "merge",
                                .axis_count = 1,
                                .tiles = {{"states", PTOWSP_IN, PTOWSP_F32, PTOWSP_DYNAMIC, 2},
                                          {"accs", PTOWSP_IN, PTOWSP_F32, PTOWSP_DYNAMIC, DIM},
                                          out},
                                .scalars = {{"parts", PTOWSP_TYPE_I64}}});
    ptowsp_axis requests = ptowsp_axis_dynamic(m, "requests");
    ptowsp_axis chunks = ptowsp_axis_ragged(m, "chunks");
    ptowsp_expr one = number(f, 1), whole = number(f, CHUNK);
    PTOWSP_WORKLOAD(m, "decode") {
        PTOWSP_PARALLEL(m, request, requests) {
            ptowsp_expr length = ptowsp_array_at(m, "kv_length", PTOWSP_I32, request);
            ptowsp_expr start = ptowsp_array_at(m, "kv_start", PTOWSP_I64, request);
            ptowsp_view query_view = {queries, .index = {request}};
            ptowsp_view out_view = {outputs, .index = {request}};
            ptowsp_expr last = ptowsp_add(start, ptowsp_sub(length, one));
            ptowsp_task_make(
                m, &(ptowsp_task_desc){.kernel = append,
                                       .axes = {request},
                                       .views = {{fresh, .row = request}, {kv, .row = last}}});
            PTOWSP_WHEN(m, ptowsp_le(length, whole)) {
                ptowsp_task_make(
                    m, &(ptowsp_task_desc){.kernel = attend_short,
                                           .axes = {request},
                                           .views = {query_view, {kv, .row = start}, out_view},
                                           .scalars = {length}});
            }
            PTOWSP_OTHERWISE(m) {
                PTOWSP_PARALLEL(m, chunk, ptowsp_axis_row(m, chunks, request)) {
                    ptowsp_expr first = ptowsp_mul(chunk, whole);
                    ptowsp_expr part = ptowsp_mul(chunk, number(f, GROUP));
                    ptowsp_task_make(
                        m, &(ptowsp_task_desc){
                               .kernel = attend_chunk,
                               .axes = {request},
                               .views = {query_view,
                                         {kv, .row = ptowsp_add(start, first)},
                                         {states, .index = {request}, .row = part},
                                         {accs, .index = {request}, .row = part}},
                               .scalars = {ptowsp_min(whole, ptowsp_sub(length, first))}});
                }
                ptowsp_task_make(m, &(ptowsp_task_desc){.kernel = merge,
                                                        .axes = {request},
                                                        .views = {{states, .index = {request}},
                                                                  {accs, .index = {request}},
                                                                  out_view},
                                                        .scalars = {ptowsp_array_at(
                                                            m, "chunks", PTOWSP_I32, request)}});
            }
        }
    }
    const ptowsp_schedule schedule = {.dispatch = PTOWSP_DISPATCH_AFFINITY,
                                      .lane_count = 4,
                                      .dispatch_key = ptowsp_task_arg(m, 0),
                                      .ready = PTOWSP_READY_PRIORITY,
                                      .priority_key = ptowsp_task_arg(m, 1)};
    compile(f, NULL, &schedule);
}

#define FIXTURE_TEST(name, a) TEST_MADE(name, fixture, f, fixture_make(f, a), fixture_free(f))

FIXTURE_TEST(text__of_a_tiered_decode_is_golden, "tiered_decode") {
    tiered_decode_make(f);
    text_is_golden(f, "tiered_decode");
    text_compiles(f);
}

// Experts of each token from a sparse axis, capacity from a slot that a kernel's result is loaded
// into, and a workload that is called; explicit dependencies.
static void routing_make(fixture *f) {
    ptowsp_module *m = f->m;
    const ptowsp_scalar_param gate_param = {"gate", PTOWSP_TYPE_U64};
    const ptowsp_scalar_param last_param = {"is last", PTOWSP_TYPE_BOOL};
    const ptowsp_tile_param in = {"in", PTOWSP_IN, PTOWSP_F16, 1, 64};
    const ptowsp_tile_param out = {"out", PTOWSP_INOUT, PTOWSP_F16, 1, 64};
    const ptowsp_tile_param counts_out = {"counts", PTOWSP_OUT, PTOWSP_U32, 1, 8};
    ptowsp_tensor x = tensor(f, "x", PTOWSP_F16, 2, PTOWSP_DYNAMIC, 64, 0);
    ptowsp_tensor y = tensor(f, "y", PTOWSP_F16, 3, PTOWSP_DYNAMIC, 8, 64);
    ptowsp_tensor counts = tensor(f, "counts", PTOWSP_U32, 2, 1, 8, 0);
    ptowsp_kernel count =
        kernel(f, (ptowsp_kernel_desc){.name = "count", .axis_count = 1, .tiles = {counts_out}});
    ptowsp_kernel expert = kernel(f, (ptowsp_kernel_desc){.name = "expert ffn",
                                                          .axis_count = 2,
                                                          .tiles = {in, out},
                                                          .scalars = {gate_param, last_param}});
    ptowsp_kernel sum =
        kernel(f, (ptowsp_kernel_desc){.name = "sum", .axis_count = 1, .tiles = {out}});
    ptowsp_axis layers = ptowsp_axis_dense(m, "layers", 2);
    ptowsp_axis tokens = ptowsp_axis_dynamic(m, "tokens");
    ptowsp_axis routes = ptowsp_axis_sparse(m, "routes");
    ptowsp_axis lengths = ptowsp_axis_ragged(m, "lengths");
    PTOWSP_WORKLOAD(m, "moe") {
        ptowsp_view all = {.tensor = counts};
        ptowsp_task_make(
            m, &(ptowsp_task_desc){.kernel = count, .axes = {number(f, 0)}, .views = {all}});
        PTOWSP_FOR_EACH(m, layer, layers) {
            ptowsp_slot_load_make(m, 3, &all, no_expr(), layer);
            ptowsp_slot_set_make(m, 4, ptowsp_u64(m, 7));
            ptowsp_expr args[] = {layer, ptowsp_slot(m, 3, PTOWSP_TYPE_U64),
                                  ptowsp_eq(layer, ptowsp_sub(ptowsp_i64(m, 2), number(f, 1)))};
            ptowsp_call_make(m, "layer", args, 3);
        }
        PTOWSP_PARALLEL(m, i, lengths) {
            ptowsp_task_make(m, &(ptowsp_task_desc){.kernel = sum,
                                                    .axes = {i},
                                                    .views = {{y, .index = {number(f, 0)}}}});
        }
    }
    PTOWSP_WORKLOAD(m, "layer") {
        ptowsp_expr layer = ptowsp_workload_param(m, "layer", PTOWSP_TYPE_I64);
        ptowsp_expr capacity = ptowsp_workload_param(m, "capacity", PTOWSP_TYPE_U64);
        ptowsp_expr is_last = ptowsp_workload_param(m, "is last", PTOWSP_TYPE_BOOL);
        PTOWSP_PARALLEL(m, token, tokens) {
            ptowsp_node ffn = {0};
            PTOWSP_SELECT(m, chosen, ptowsp_axis_row(m, routes, token)) {
                ptowsp_expr gate =
                    ptowsp_array_at(m, "gates", PTOWSP_U16, ptowsp_loop_entry(chosen));
                ptowsp_expr seed = ptowsp_symbol(m, "seed");
                ptowsp_expr is_kept =
                    ptowsp_or(ptowsp_and(ptowsp_lt(gate, capacity), ptowsp_not(is_last)),
                              ptowsp_eq(ptowsp_bitand(seed, ptowsp_u64(m, 3)), ptowsp_u64(m, 0)));
                PTOWSP_WHEN(m, is_kept) {
                    ffn = ptowsp_task_make(
                        m, &(ptowsp_task_desc){
                               .kernel = expert,
                               .axes = {token, chosen},
                               .views = {{x, .row = token}, {y, .index = {token}, .row = chosen}},
                               .scalars = {ptowsp_add(gate, ptowsp_slot(m, 4, PTOWSP_TYPE_U64)),
                                           is_last}});
                }
            }
            ptowsp_task_make(
                m, &(ptowsp_task_desc){.kernel = sum,
                                       .axes = {ptowsp_add(token, layer)},
                                       .views = {{y, .index = {token}, .row = number(f, 7)}},
                                       .after = {ffn}});
        }
    }
    const ptowsp_schedule schedule = {.dependencies = PTOWSP_DEPENDENCIES_EXPLICIT,
                                      .stream_count = 2,
                                      .stream_key = ptowsp_task_arg(m, 0)};
    compile(f, "moe", &schedule);
}

FIXTURE_TEST(text__of_sparse_loops_slots_and_calls_is_golden, "moe") {
    routing_make(f);
    text_is_golden(f, "routing");
    text_compiles(f);
}

// Three processes, one of them replicated, with a channel of tokens, one of free places, an event.
static void pipeline_make(fixture *f) {
    ptowsp_module *m = f->m;
    const ptowsp_tile_param in = {"in", PTOWSP_IN, PTOWSP_F32, 8, 32};
    const ptowsp_tile_param out = {"out", PTOWSP_OUT, PTOWSP_F32, 8, 32};
    ptowsp_tensor x = tensor(f, "x", PTOWSP_F32, 2, PTOWSP_DYNAMIC, 32, 0);
    ptowsp_tensor ring = tensor(f, "ring", PTOWSP_F32, 3, PTOWSP_DYNAMIC, 8, 32);
    ptowsp_tensor limits = tensor(f, "limits", PTOWSP_I32, 1, 4, 0, 0);
    ptowsp_kernel load =
        kernel(f, (ptowsp_kernel_desc){.name = "load", .axis_count = 1, .tiles = {in, out}});
    ptowsp_kernel compute =
        kernel(f, (ptowsp_kernel_desc){.name = "compute", .axis_count = 2, .tiles = {in}});
    ptowsp_axis tiles = ptowsp_axis_dynamic(m, "tiles");
    ptowsp_axis workers = ptowsp_axis_dynamic(m, "workers");
    PTOWSP_WORKLOAD(m, "main") {
        PTOWSP_PIPELINE(m, "double buffer") {
            ptowsp_channel_desc desc = {.name = "loaded", .depth = 2, .latency = 50};
            ptowsp_channel loaded = ptowsp_channel_make(m, &desc);
            desc = (ptowsp_channel_desc){
                .name = "free", .depth_at_start = ptowsp_symbol(m, "depth"), .latency = 5000000000};
            ptowsp_channel free = ptowsp_channel_make(m, &desc);
            ptowsp_channel started = ptowsp_event_make(m, "started");
            PTOWSP_PROCESS(m, "load") {
                ptowsp_produces(m, loaded);
                ptowsp_produces(m, started);
                ptowsp_consumes(m, free);
                ptowsp_record_make(m, started);
                PTOWSP_FOR_EACH(m, i, tiles) {
                    PTOWSP_RECEIVE(m, place, free) {
                        ptowsp_expr row =
                            ptowsp_mul(ptowsp_array_at(m, "order", PTOWSP_I32, i), number(f, 8));
                        ptowsp_send_task_make(
                            m, loaded,
                            &(ptowsp_task_desc){
                                .kernel = load,
                                .axes = {place},
                                .views = {{x, .row = row}, {ring, .index = {place}}}});
                    }
                }
                ptowsp_close_make(m, loaded);
            }
            PTOWSP_PROCESS(m, "watch") {
                ptowsp_consumes(m, started);
                ptowsp_view limit = {.tensor = limits};
                ptowsp_wait_make(m, started);
                ptowsp_slot_load_make(m, 1, &limit, no_expr(), number(f, 2));
            }
            PTOWSP_REPLICATE(m, worker, workers, "compute") {
                ptowsp_consumes(m, loaded);
                ptowsp_produces(m, free);
                PTOWSP_CONSUME(m, place, loaded) {
                    ptowsp_task_make(m, &(ptowsp_task_desc){.kernel = compute,
                                                            .axes = {place, worker},
                                                            .views = {{ring, .index = {place}}}});
                    ptowsp_send_make(m, free, ptowsp_array_at(m, "order", PTOWSP_I32, place));
                }
            }
        }
    }
    compile(f, NULL, NULL);
}

FIXTURE_TEST(text__of_a_pipeline_is_golden, "pipeline") {
    pipeline_make(f);
    text_is_golden(f, "pipeline");
    text_compiles(f);
}

// -- names ----------------------------------------------------------------------------------------

// Nested loops, called as C++ calls something, over axes that are called so, too; then a process.
TEST(text__compiles_whatever_things_are_called) {
    static const char *const names[] = {"run",
                                        "task",
                                        "scope",
                                        "pipeline",
                                        "i64",
                                        "min",
                                        "to_u64",
                                        "class",
                                        "and",
                                        "part",
                                        "Scope",
                                        "Task",
                                        "x_end",
                                        "x_entry",
                                        "x",
                                        "wsp",
                                        "std",
                                        "0 ?"
                                        "?/",
                                        "a b",
                                        "a_b",
                                        "scope_2",
                                        "NULL",
                                        "INT64_MAX",
                                        "assert",
                                        "good",
                                        "READ",
                                        "e",
                                        "PARALLEL",
                                        "produces",
                                        "loaded",
                                        "int",
                                        "__x__"};
    enum { NAME_COUNT = sizeof names / sizeof names[0] };
    fixture f;
    fixture_make(&f, "names */ ?"
                     "?/");
    ptowsp_module *m = f.m;
    ptowsp_kernel step = kernel(&f, (ptowsp_kernel_desc){.name = "Task", .axis_count = 1});
    ptowsp_axis axes[NAME_COUNT];
    for (int i = 0; i < NAME_COUNT; i++) {
        axes[i] = i % 3 == 0   ? ptowsp_axis_dynamic(m, names[i])
                  : i % 3 == 1 ? ptowsp_axis_ragged(m, names[i])
                               : ptowsp_axis_sparse(m, names[i]);
    }
    for (int i = 0; i < NAME_COUNT; i++) {
        const char *next = i + 1 < NAME_COUNT ? names[i + 1] : NULL;
        PTOWSP_WORKLOAD(m, names[i]) {
            ptowsp_expr p = ptowsp_workload_param(m, names[(i + 3) % NAME_COUNT], PTOWSP_TYPE_I64);
            ptowsp_expr q = ptowsp_workload_param(m, "q", PTOWSP_TYPE_BOOL);
            ptowsp_expr v = ptowsp_parallel_begin(m, names[(i + 7) % NAME_COUNT], axes[i]);
            ptowsp_expr w = ptowsp_for_each_begin(m, "x!", axes[(i + 5) % NAME_COUNT]);
            char symbol[32];
            snprintf(symbol, sizeof symbol, "%s!", names[(i + 9) % NAME_COUNT]);
            ptowsp_expr u = ptowsp_cast(ptowsp_symbol(m, symbol), PTOWSP_TYPE_I64);
            ptowsp_expr a =
                ptowsp_array_at(m, "values", PTOWSP_I32, ptowsp_add(v, ptowsp_add(w, u)));
            ptowsp_task_make(m, &(ptowsp_task_desc){.kernel = step, .axes = {ptowsp_add(p, a)}});
            ptowsp_expr args[2] = {v, ptowsp_eq(q, q)};
            if (next) {
                ptowsp_call_make(m, next, args, 2);
            }
            ptowsp_scope_end(m);
            ptowsp_scope_end(m);
        }
    }
    PTOWSP_WORKLOAD(m, "main") {
        ptowsp_expr args[2] = {number(&f, 0), ptowsp_bool(m, true)};
        ptowsp_call_make(m, names[0], args, 2);
        PTOWSP_PIPELINE(m, "run") {
            ptowsp_channel_desc desc = {.name = "x", .depth = 2};
            ptowsp_channel channel = ptowsp_channel_make(m, &desc);
            PTOWSP_PROCESS(m, "x") {
                ptowsp_produces(m, channel);
                ptowsp_expr value = ptowsp_array_at(m, "values", PTOWSP_I32, number(&f, 1));
                ptowsp_send_make(m, channel, value);
            }
            PTOWSP_PROCESS(m, "task") {
                ptowsp_consumes(m, channel);
                PTOWSP_CONSUME(m, x, channel) {
                    ptowsp_task_make(m, &(ptowsp_task_desc){.kernel = step, .axes = {x}});
                }
            }
        }
        ptowsp_slot_set_make(m, 0, ptowsp_array_at(m, "values", PTOWSP_I32, number(&f, 2)));
    }
    compile(&f, "main", NULL);
    text_compiles(&f);
    fixture_free(&f);
}

// The entry of a sparse loop has a name that nobody gave: what is called so inside gets a number.
FIXTURE_TEST(text__names_that_are_taken_inside_get_a_number, "numbers") {
    ptowsp_module *m = f->m;
    ptowsp_kernel step = kernel(f, (ptowsp_kernel_desc){.name = "step", .axis_count = 2});
    ptowsp_axis rows = ptowsp_axis_dynamic(m, "rows"), adj = ptowsp_axis_sparse(m, "adj");
    PTOWSP_WORKLOAD(m, "main") {
        PTOWSP_FOR_EACH(m, r, rows) {
            ptowsp_expr x = ptowsp_select_begin(m, "x", ptowsp_axis_row(m, adj, r));
            PTOWSP_FOR_EACH(m, x_entry, rows) {
                ptowsp_task_make(m, &(ptowsp_task_desc){.kernel = step,
                                                        .axes = {ptowsp_loop_entry(x), x_entry}});
            }
            ptowsp_scope_end(m);
            ptowsp_expr y = ptowsp_select_begin(m, "y", ptowsp_axis_row(m, adj, r));
            ptowsp_task_make(
                m, &(ptowsp_task_desc){.kernel = step, .axes = {ptowsp_loop_entry(y), y}});
            PTOWSP_PIPELINE(m, "p") {
                ptowsp_channel channel =
                    ptowsp_channel_make(m, &(ptowsp_channel_desc){.name = "y_entry", .depth = 2});
                PTOWSP_PROCESS(m, "send") {
                    ptowsp_produces(m, channel);
                    ptowsp_send_make(m, channel, y);
                }
                PTOWSP_PROCESS(m, "take") {
                    ptowsp_consumes(m, channel);
                    PTOWSP_CONSUME(m, t, channel) {
                        ptowsp_task_make(m, &(ptowsp_task_desc){.kernel = step, .axes = {t, t}});
                    }
                }
            }
            ptowsp_scope_end(m);
        }
    }
    compile(f, "main", NULL);
    npu_text text = words_emit(f->context, f->program, false);
    static const char *const parts[] = {
        "for (const Entry &v_x_entry : run.entries(AXIS_adj, v_r, ",
        "for (i64 v_x_entry_2 = 0; v_x_entry_2 < v_rows && run.good(); v_x_entry_2++)",
        "task.axis(v_x_entry_2);",
        "for (const Entry &v_y_entry : run.entries(AXIS_adj, v_r, ",
        "Channel v_y_entry_2 = pipeline.channel(\"y_entry\", CHANNEL_y_entry, ",
        "v_y_entry_2.send(v_send, v_y, "};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (!strstr(text.data, parts[i])) {
            fail_msg("there is no %s in\n%s", parts[i], text.data);
        }
    }
    npu_text_free(&text);
    text_compiles(f);
}

// -- sizes ----------------------------------------------------------------------------------------

static void begin_scopes(const fixture *f, ptowsp_axis axis, int depth, ptowsp_kernel step) {
    char name[16];
    snprintf(name, sizeof name, "v%d", depth);
    if (depth == 0) {
        ptowsp_task_make(f->m, &(ptowsp_task_desc){.kernel = step, .axes = {number(f, depth)}});
        return;
    }
    ptowsp_expr v = depth % 2 ? ptowsp_parallel_begin(f->m, name, axis)
                              : ptowsp_for_each_begin(f->m, name, axis);
    ptowsp_task_make(f->m, &(ptowsp_task_desc){.kernel = step, .axes = {v}});
    begin_scopes(f, axis, depth - 1, step);
    ptowsp_scope_end(f->m);
}

FIXTURE_TEST(text__as_deep_as_can_be_compiles, "deep") {
    ptowsp_kernel step = kernel(f, (ptowsp_kernel_desc){.name = "step", .axis_count = 1});
    ptowsp_axis one = ptowsp_axis_dynamic(f->m, "one");
    PTOWSP_WORKLOAD(f->m, "main") {
        begin_scopes(f, one, PTOWSP_MODULE_NEST_MAX - 2, step);
    }
    compile(f, NULL, NULL);
    text_compiles(f);
}

// A deep expression has parts of a statement each; one that is used twice has its parts once.
FIXTURE_TEST(text__deep_expressions_that_are_used_twice_have_parts_once, "twice") {
    ptowsp_kernel step = kernel(f, (ptowsp_kernel_desc){.name = "step", .axis_count = 1});
    PTOWSP_WORKLOAD(f->m, "main") {
        ptowsp_expr deep = ptowsp_cast(ptowsp_symbol(f->m, "s"), PTOWSP_TYPE_I64);
        for (int i = 0; i < 120; i++) {
            deep = ptowsp_sub(number(f, 3), deep);
        }
        ptowsp_task_make(f->m,
                         &(ptowsp_task_desc){.kernel = step, .axes = {ptowsp_add(deep, deep)}});
    }
    compile(f, NULL, NULL);
    npu_text text = words_emit(f->context, f->program, false);
    const char *first = strstr(text.data, "const auto part = [&] { return ");
    assert_non_null(first);
    assert_null(strstr(first + 1, "const auto part"));
    const char *use = strstr(first, "part()");
    assert_non_null(use);
    assert_non_null(strstr(use + 1, "part()"));
    npu_text_free(&text);
    text_compiles(f);
}

static void count_task(void *user, const words_task *task, const ptowsp_task *as_task) {
    (void)task;
    *(uint64_t *)user = *(uint64_t *)user * 31 + (uint64_t)ptowsp_task_axis(as_task, 0);
}

static ptowsp_cycles hash_fn(const ptowsp_task *task, void *user) {
    count_task(user, NULL, task);
    return 1;
}

static void many_tasks(const fixture *f, ptowsp_kernel step, ptowsp_expr v, int count) {
    for (int i = 0; i < count; i++) {
        const ptowsp_expr axis = ptowsp_add(v, number(f, i * 7));
        ptowsp_task_make(f->m, &(ptowsp_task_desc){.kernel = step, .axes = {axis}});
    }
}

// What is too much for one function goes into several.
TEST(text__of_thousands_of_statements_compiles_and_does_the_same) {
    if (!words_compiler()) {
        print_message("no C++ compiler\n");
        skip();
    }
    fixture f;
    words_unit unit;
    words_host host;
    uint64_t hash = 0, walked = 0;
    fixture_make(&f, "wide");
    const ptowsp_kernel_desc desc = {.name = "step", .axis_count = 1, .fn = hash_fn, .user = &hash};
    ptowsp_kernel step = ptowsp_kernel_make(f.m, &desc);
    ptowsp_axis two = ptowsp_axis_dynamic(f.m, "two");
    PTOWSP_WORKLOAD(f.m, "main") {
        for (int i = 0; i < 500; i++) {
            PTOWSP_PARALLEL(f.m, v, two) {
                ptowsp_expr axis = ptowsp_add(v, number(&f, i));
                ptowsp_task_make(f.m, &(ptowsp_task_desc){.kernel = step, .axes = {axis}});
            }
        }
        PTOWSP_FOR_EACH(f.m, v, two) {
            many_tasks(&f, step, v, 250);
            PTOWSP_WHEN(f.m, ptowsp_eq(v, number(&f, 1))) {
                many_tasks(&f, step, v, 500);
            }
            PTOWSP_OTHERWISE(f.m) {
                many_tasks(&f, step, v, 300);
            }
        }
    }
    compile(&f, NULL, NULL);
    memset(&unit, 0, sizeof unit);
    words_unit_add(&unit, f.context, f.program);
    assert_non_null(strstr(unit.text.data, "noinline"));
    words_unit_build(&unit);
    assert_int_equal(ptowsp_run_bind_size(f.run, "two", 2), PTOWSP_OK);
    words_over over = {f.run, count_task, &walked, 0, 0, 0};
    words_walk(&unit, 0, &over, &host);
    assert_int_equal(ptowsp_run_execute(f.run, NULL), PTOWSP_OK);
    assert_int_equal(over.task_count, 2 * 500 + 2 * 250 + 500 + 300);
    assert_true(walked == hash);
    words_unit_free(&unit);
    fixture_free(&f);
}

// -- memory ---------------------------------------------------------------------------------------

static void refuse_each_allocation(const fixture *f) {
    words_allocations = 0;
    npu_text text = words_emit(f->context, f->program, false);
    npu_text_free(&text);
    uint64_t count = words_allocations;
    assert_true(count > 5);
    for (words_refused = 0; words_refused < count; words_refused++) {
        words_allocations = 0;
        text = words_emit(f->context, f->program, false);  // which looks whether it is told
        npu_text_free(&text);
    }
    words_refused = UINT64_MAX;
}

TEST(text__tells_when_memory_is_out) {
    void (*const makers[])(fixture *) = {tiered_decode_make, routing_make, pipeline_make};
    for (int i = 0; i < 3; i++) {
        fixture f;
        fixture_make(&f, "refused");
        makers[i](&f);
        refuse_each_allocation(&f);
        fixture_free(&f);
    }
}

// -- errors ---------------------------------------------------------------------------------------

enum { FAULT_COUNT = 9 };

// A program in which statement `which` reads outside of an array of 4 elements.
static void faulty_make(fixture *f, int which) {
    ptowsp_module *m = f->m;
    ptowsp_tensor x = tensor(f, "x", PTOWSP_I32, 2, 8, 8, 0);
    ptowsp_kernel step =
        kernel(f, (ptowsp_kernel_desc){.name = "step",
                                       .axis_count = 1,
                                       .tiles = {{"t", PTOWSP_INOUT, PTOWSP_I32, 1, 1}},
                                       .scalars = {{"s", PTOWSP_TYPE_I64}}});
    ptowsp_axis rows = ptowsp_axis_ragged(m, "rows");
    ptowsp_expr values[FAULT_COUNT];
    for (int i = 0; i < FAULT_COUNT; i++) {
        values[i] = ptowsp_array_at(
            m, "y", PTOWSP_I64,
            ptowsp_add(ptowsp_slot(m, 0, PTOWSP_TYPE_I64), number(f, i == which ? 4 : 1)));
    }
    PTOWSP_WORKLOAD(m, "main") {
        ptowsp_slot_set_make(m, 0, number(f, 0));
        ptowsp_slot_set_make(m, 1, values[0]);
        PTOWSP_WHEN(m, ptowsp_le(values[1], number(f, 100))) {
            ptowsp_slot_set_make(m, 1, number(f, 2));
        }
        PTOWSP_PARALLEL(m, v, ptowsp_axis_row(m, rows, values[2])) {
            ptowsp_slot_set_make(m, 2, v);
        }
        ptowsp_call_make(m, "other", &values[3], 1);
        ptowsp_view view = {x, .row = values[4]};
        ptowsp_slot_load_make(m, 3, &view, no_expr(), no_expr());
        ptowsp_task_make(m,
                         &(ptowsp_task_desc){.kernel = step,
                                             .axes = {values[5]},
                                             .views = {{x, .row = values[6], .col = number(f, 1)}},
                                             .scalars = {values[7]}});
        ptowsp_slot_set_make(m, 5, number(f, 5));
    }
    PTOWSP_WORKLOAD(m, "other") {
        ptowsp_expr p = ptowsp_workload_param(m, "p", PTOWSP_TYPE_I64);
        ptowsp_slot_set_make(m, 4, p);
    }
    const ptowsp_schedule schedule = {
        .dispatch = PTOWSP_DISPATCH_AFFINITY, .lane_count = 2, .dispatch_key = values[8]};
    compile(f, "main", &schedule);
}

static void one_task(void *user, const words_task *task, const ptowsp_task *as_task) {
    (void)task;
    (void)as_task;
    ++*(int *)user;
}

TEST(text__errors_of_expressions_are_told_where_a_run_tells_them) {
    if (!words_compiler()) {
        print_message("no C++ compiler\n");
        skip();
    }
    static fixture fixtures[FAULT_COUNT + 1];
    static const int64_t y[4] = {1, 1, 1, 1};
    static const int32_t lengths[2] = {2, 2};
    static int32_t data[64];
    uint32_t nodes[FAULT_COUNT + 1][WORDS_PLACE_MAX];
    words_unit unit = {0};
    for (int which = 0; which <= FAULT_COUNT; which++) {
        fixture_make(&fixtures[which], "faulty");
        faulty_make(&fixtures[which], which);
        words_unit_add(&unit, fixtures[which].context, fixtures[which].program);
        memcpy(nodes[which], words_nodes, sizeof words_nodes);
    }
    words_unit_build(&unit);
    for (int which = 0; which <= FAULT_COUNT; which++) {
        fixture *f = &fixtures[which];
        int tasks = 0;
        words_host host;
        words_over over = {f->run, one_task, &tasks, 0, 0, 0};
        const ptowsp_buffer buffer = {.data = data, .size = sizeof data};
        assert_int_equal(ptowsp_run_bind_array(f->run, "y", PTOWSP_I64, y, 4), PTOWSP_OK);
        assert_int_equal(ptowsp_run_bind_lengths(f->run, "rows", PTOWSP_I32, lengths, 2),
                         PTOWSP_OK);
        assert_int_equal(ptowsp_run_bind_tensor(f->run, "x", &buffer), PTOWSP_OK);
        words_walk(&unit, (uint32_t)which, &over, &host);
        ptowsp_status status = ptowsp_run_execute(f->run, NULL);
        if (which == FAULT_COUNT) {
            assert_int_equal(status, PTOWSP_OK);
            assert_int_equal(over.failed_place, 0);
            assert_int_equal(tasks, 1);
            assert_int_equal(host.slots[5], 5);
            continue;
        }
        assert_int_equal(status, PTOWSP_INVALID_PARAMS);
        assert_true(over.failed_place > 0);
        char place[128];
        ptowsp_output_buffer text = {place, sizeof place, 0};
        ptowsp_program_print_place(f->program, nodes[which][over.failed_place - 1],
                                   ptowsp_output_to_buffer(&text));
        const char *error = ptowsp_context_error(f->context).text;
        if (strncmp(error, place, strlen(place)) != 0 || !strpbrk(error + strlen(place), " :")) {
            fail_msg("%d: told at %s, by a run as %s", which, place, error);
        }
        assert_int_equal(tasks, 0);
        assert_int_equal(host.slots[5], 0);
    }
    words_unit_free(&unit);
    for (int which = 0; which <= FAULT_COUNT; which++) {
        fixture_free(&fixtures[which]);
    }
}

// Clauses of what is emitted for a program: a small one for each, and the lines that it is, in
// aicpu/expand.cpp and in its tables. What these do is tested where they run (npu_expand_test.c and
// others).

#include "npu_fixture.h"

typedef struct clause {
    npu_fixture f;
    char *text, *tables, *manifest, *dispatch;
} clause;

static char *copy_of(const char *text, size_t size) {
    char *copy = (char *)malloc(size + 1);
    assert_non_null(copy);
    memcpy(copy, text, size + 1);
    return copy;
}

static ptowsp_status take(void *user, const char *path, const char *text, size_t size) {
    clause *c = (clause *)user;
    if (strcmp(path, "aicpu/expand.cpp") == 0) {
        c->text = copy_of(text, size);
    } else if (strcmp(path, "aicpu/program.cpp") == 0) {
        c->tables = copy_of(text, size);
    } else if (strcmp(path, "manifest.json") == 0) {
        c->manifest = copy_of(text, size);
    } else if (strcmp(path, "aicore/dispatch.cpp") == 0) {
        c->dispatch = copy_of(text, size);
    }
    return PTOWSP_OK;
}

static ptowsp_module *clause_begin(clause *c) {
    memset(c, 0, sizeof *c);
    npu_fixture_begin(&c->f);
    npu_module_make(&c->f, "clauses");
    return c->f.m;
}

static void clause_emit(clause *c, const ptowsp_schedule *schedule) {
    const ptowsp_program_desc desc = {"main", schedule};
    if (ptowsp_program_create(c->f.context, c->f.m, &desc, &c->f.program) != PTOWSP_OK ||
        ptowsp_npu_emit_files(c->f.context, c->f.program, take, c) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(c->f.context).text);
    }
}

static void clause_end(clause *c) {
    free(c->text);
    free(c->tables);
    free(c->manifest);
    free(c->dispatch);
    npu_fixture_free(&c->f);
}

static void has(const char *text, const char *wanted) {
    if (!strstr(text, wanted)) {
        fputs(text, stderr);
        fail_msg("there is no %s", wanted);
    }
}

static ptowsp_kernel scale_of(const clause *c, const char *name) {
    ptowsp_kernel_desc desc = {.name = name};
    const ptowsp_tile_param tile = {"data", PTOWSP_INOUT, PTOWSP_F32, 8, 8};
    desc.tiles[0] = tile;
    desc.fn = npu_scale;
    desc.source.text = NPU_SCALE_TEXT;
    desc.source.fn = "scale";
    return ptowsp_kernel_make(c->f.m, &desc);
}

static ptowsp_tensor tensor_of(const clause *c, const char *name, ptowsp_dtype dtype,
                               uint32_t rank) {
    const ptowsp_tensor_desc desc = {
        name, dtype, rank, {8, 8, 8, 0, 0, 0, 0, 0}, PTOWSP_LOCATION_GLOBAL};
    return ptowsp_tensor_make(c->f.m, &desc);
}

static void task_of(const clause *c, ptowsp_kernel kernel, ptowsp_tensor tensor) {
    ptowsp_task_desc task = {.kernel = kernel, .views[0].tensor = tensor};
    ptowsp_task_make(c->f.m, &task);
}

// -- expressions ----------------------------------------------------------------------------------

// Parentheses stand where C++ needs them: an operator of one rank on the right, a minus before another.
TEST(clause__expressions_have_the_parentheses_of_cpp) {
    clause c;
    ptowsp_module *m = clause_begin(&c);
    ptowsp_expr a = ptowsp_slot(m, 1, PTOWSP_TYPE_I64), b = ptowsp_slot(m, 2, PTOWSP_TYPE_I64);
    ptowsp_expr p = ptowsp_slot(m, 3, PTOWSP_TYPE_BOOL), q = ptowsp_slot(m, 4, PTOWSP_TYPE_BOOL);
    ptowsp_expr r = ptowsp_slot(m, 5, PTOWSP_TYPE_BOOL);
    ptowsp_expr bits = ptowsp_array_at(m, "flags", PTOWSP_BOOL, a);
    PTOWSP_WORKLOAD(m, "main") {
        ptowsp_slot_set_make(m, 0, ptowsp_neg(ptowsp_bitnot(a)));
        ptowsp_slot_set_make(m, 0, ptowsp_bitnot(ptowsp_neg(a)));
        ptowsp_slot_set_make(m, 0, ptowsp_sub(a, ptowsp_sub(b, a)));
        ptowsp_slot_set_make(m, 0, ptowsp_and(p, ptowsp_and(q, r)));
        ptowsp_slot_set_make(m, 0, ptowsp_and(ptowsp_and(p, q), r));
        ptowsp_slot_set_make(m, 0, ptowsp_or(p, ptowsp_or(q, r)));
        ptowsp_slot_set_make(m, 0, ptowsp_select(p, b, ptowsp_select(q, a, b)));
        ptowsp_slot_set_make(m, 0, ptowsp_select(p, a, ptowsp_array_at(m, "sizes", PTOWSP_I32, b)));
        ptowsp_slot_set_make(m, 0, bits);
    }
    clause_emit(&c, NULL);
    static const char *const lines[] = {
        "run.set_slot(0, -~run.slot_i64(1));",
        "run.set_slot(0, ~(-run.slot_i64(1)));",
        "run.set_slot(0, run.slot_i64(1) - (run.slot_i64(2) - run.slot_i64(1)));",
        "run.set_slot(0, run.slot_bool(3) && (run.slot_bool(4) && run.slot_bool(5)));",
        "run.set_slot(0, run.slot_bool(3) && run.slot_bool(4) && run.slot_bool(5));",
        "run.set_slot(0, run.slot_bool(3) || (run.slot_bool(4) || run.slot_bool(5)));",
        "run.slot_bool(3) ? run.slot_i64(2) : run.slot_bool(4) ? run.slot_i64(1) :\n",
        "run.set_slot(0, run.slot_bool(3) ? run.slot_i64(1) : v_sizes[run.slot_i64(2)]);",
        "const Array<bool> v_flags(run, ARRAY_flags);",
        "run.set_slot(0, v_flags[run.slot_i64(1)]);"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        has(c.text, lines[i]);
    }
    clause_end(&c);
}

// Compilers warn of p == p.
TEST(clause__what_is_always_true_is_said_so) {
    clause c;
    ptowsp_module *m = clause_begin(&c);
    ptowsp_expr args[2] = {ptowsp_slot(m, 1, PTOWSP_TYPE_BOOL),
                           ptowsp_slot(m, 2, PTOWSP_TYPE_BOOL)};
    PTOWSP_WORKLOAD(m, "main") {
        ptowsp_call_make(m, "other", args, 2);
    }
    PTOWSP_WORKLOAD(m, "other") {
        ptowsp_expr p = ptowsp_workload_param(m, "p", PTOWSP_TYPE_BOOL);
        ptowsp_expr q = ptowsp_workload_param(m, "q", PTOWSP_TYPE_BOOL);
        ptowsp_slot_set_make(m, 0, ptowsp_eq(p, p));
        ptowsp_slot_set_make(m, 3, ptowsp_ne(p, p));
        ptowsp_slot_set_make(m, 4, ptowsp_ne(p, q));
    }
    clause_emit(&c, NULL);
    has(c.text, "run.set_slot(0, true);");
    has(c.text, "run.set_slot(3, false);");
    has(c.text, "run.set_slot(4, v_p != v_q);");
    clause_end(&c);
}

// -- statements -----------------------------------------------------------------------------------

// A workload without walked statements has no name for its run, nor for what it does not use.
TEST(clause__empty_workloads_have_no_names) {
    clause c;
    ptowsp_module *m = clause_begin(&c);
    ptowsp_expr p[1] = {ptowsp_slot(m, 1, PTOWSP_TYPE_BOOL)};
    PTOWSP_WORKLOAD(m, "main") {
        ptowsp_call_make(m, "idle", p, 1);
        ptowsp_call_make(m, "conditions", p, 1);
        ptowsp_call_make(m, "reading", p, 1);
    }
    PTOWSP_WORKLOAD(m, "idle") {
        ptowsp_workload_param(m, "p", PTOWSP_TYPE_BOOL);
    }
    PTOWSP_WORKLOAD(m, "conditions") {
        ptowsp_expr q = ptowsp_workload_param(m, "q", PTOWSP_TYPE_BOOL);
        PTOWSP_WHEN(m, q) {
        }
        PTOWSP_OTHERWISE(m) {
        }
    }
    PTOWSP_WORKLOAD(m, "reading") {
        ptowsp_expr q = ptowsp_workload_param(m, "q", PTOWSP_TYPE_BOOL);
        PTOWSP_WHEN(m, ptowsp_and(q, ptowsp_slot(m, 2, PTOWSP_TYPE_BOOL))) {
        }
    }
    clause_emit(&c, NULL);
    has(c.text, "void v_idle(Run &/* run */, bool /* v_p */) {\n}\n");
    has(c.text, "void v_conditions(Run &/* run */, bool v_q) {\n");
    has(c.text, "void v_reading(Run &run, bool v_q) {\n");
    // In front of all, each has them.
    has(c.text, "void v_idle(Run &run, bool v_p);\n");
    clause_end(&c);
}

TEST(clause__loads_have_the_indices_of_their_matrix) {
    clause c;
    ptowsp_module *m = clause_begin(&c);
    const ptowsp_tensor x = tensor_of(&c, "x", PTOWSP_I32, 3);
    PTOWSP_WORKLOAD(m, "main") {
        PTOWSP_FOR_EACH(m, i, ptowsp_axis_dense(m, "rows", 8)) {
            ptowsp_view view = {.tensor = x, .index[0] = i, .row = ptowsp_i64(m, 3)};
            ptowsp_slot_load_make(m, 0, &view, ptowsp_i64(m, 1), i);
        }
    }
    clause_emit(&c, NULL);
    has(c.text, ", 0, TENSOR_x, {v_i}, 3, 1, 0, 1, 1, v_i);");
    clause_end(&c);
}

// Loops in loops over one axis.
TEST(clause__entries_have_the_names_of_their_loops) {
    clause c;
    ptowsp_module *m = clause_begin(&c);
    const ptowsp_axis routes = ptowsp_axis_sparse(m, "routes");
    PTOWSP_WORKLOAD(m, "main") {
        PTOWSP_FOR_EACH(m, i, routes) {
            PTOWSP_FOR_EACH(m, j, routes) {
                ptowsp_slot_set_make(m, 0, ptowsp_add(ptowsp_loop_entry(i), ptowsp_loop_entry(j)));
            }
        }
    }
    clause_emit(&c, NULL);
    has(c.text, "for (const Entry &v_i_entry : run.entries(AXIS_routes)) {");
    has(c.text, "for (const Entry &v_j_entry : run.entries(AXIS_routes)) {");
    has(c.text, "run.set_slot(0, v_i_entry.entry + v_j_entry.entry);");
    clause_end(&c);
}

// -- pipelines ------------------------------------------------------------------------------------

// A process that does nothing; loads of workloads that processes call; a pipeline of many processes, which
// is not split; events, and depths that the start of a pipeline decides.
TEST(clause__pipelines_name_what_their_processes_load) {
    clause c;
    ptowsp_module *m = clause_begin(&c);
    const ptowsp_tensor x = tensor_of(&c, "x", PTOWSP_I32, 2),
                        y = tensor_of(&c, "y", PTOWSP_I32, 2);
    ptowsp_view of_y;
    ptowsp_view of_x = {0};
    of_y = of_x;
    of_x.tensor = x;
    of_y.tensor = y;
    PTOWSP_WORKLOAD(m, "main") {
        PTOWSP_PIPELINE(m, "first") {
            ptowsp_channel_desc desc = {.name = "tokens",
                                        .depth_at_start = ptowsp_symbol(m, "depth")};
            const ptowsp_channel tokens = ptowsp_channel_make(m, &desc);
            const ptowsp_channel done = ptowsp_event_make(m, "done");
            PTOWSP_PROCESS(m, "idle") {
            }
            PTOWSP_PROCESS(m, "send") {
                ptowsp_produces(m, tokens);
                ptowsp_produces(m, done);
                ptowsp_record_make(m, done);
                ptowsp_call_make(m, "reading", NULL, 0);
                ptowsp_call_make(m, "reading", NULL, 0);
                ptowsp_send_make(m, tokens, ptowsp_i64(m, 1));
            }
            PTOWSP_PROCESS(m, "take") {
                ptowsp_consumes(m, tokens);
                ptowsp_consumes(m, done);
                ptowsp_wait_make(m, done);
                PTOWSP_CONSUME(m, t, tokens) {
                    ptowsp_slot_load_make(m, 1, &of_y, ptowsp_i64(m, 0), ptowsp_i64(m, 0));
                }
            }
            for (int i = 0; i < 120; i++) {
                char name[16];
                snprintf(name, sizeof name, "more%d", i);
                PTOWSP_PROCESS(m, name) {
                    ptowsp_slot_set_make(m, 2, ptowsp_i64(m, i));
                }
            }
        }
    }
    PTOWSP_WORKLOAD(m, "reading") {
        ptowsp_slot_load_make(m, 0, &of_x, ptowsp_i64(m, 0), ptowsp_i64(m, 0));
    }
    clause_emit(&c, NULL);
    has(c.text, "pipeline.loads(TENSOR_x);\n");
    has(c.text, "pipeline.loads(TENSOR_y);\n");
    has(c.text, "[&](Run &/* v_idle */) {\n");
    has(c.text, "pipeline.process(\"more119\"");
    has(c.text, "v_done.wait(v_take, ");
    const char *part = strstr(c.text, "const auto part");  // of the workload, whose block is large
    assert_non_null(part);
    assert_null(strstr(part + 1, "const auto part"));
    has(c.manifest, "\"event\": true");
    has(c.manifest, "\"depth\": null");
    has(c.manifest, "\"event\": false");
    clause_end(&c);
}

// -- tables ---------------------------------------------------------------------------------------

TEST(clause__streams_are_in_the_tables) {
    clause c;
    ptowsp_module *m = clause_begin(&c);
    const ptowsp_kernel kernel = scale_of(&c, "scale");
    const ptowsp_tensor x = tensor_of(&c, "x", PTOWSP_F32, 2);
    PTOWSP_WORKLOAD(m, "main") {
        ptowsp_call_make(m, "other", NULL, 0);
    }
    PTOWSP_WORKLOAD(m, "other") {
        PTOWSP_SEQUENCE(m) {
            task_of(&c, kernel, x);
        }
    }
    ptowsp_schedule schedule = {.stream_count = 2, .stream_key = ptowsp_u64(m, 1)};
    clause_emit(&c, &schedule);
    has(c.text, "task.stream(");
    has(c.manifest, "{\"directive\": \"streams\", \"value\": \"by key\", ");
    clause_end(&c);
}

// A constant number of cycles, and a cost function, which is in its place.
TEST(clause__costs_are_functions_or_numbers) {
    for (int i = 0; i < 3; i++) {
        clause c;
        ptowsp_module *m = clause_begin(&c);
        ptowsp_kernel_desc desc = {.name = "scale"};
        const ptowsp_tile_param tile = {"data", PTOWSP_INOUT, PTOWSP_F32, 8, 8};
        desc.tiles[0] = tile;
        desc.fn = npu_scale;
        desc.cycles = i > 0 ? 5 : 0;
        desc.cost = i > 1 ? npu_scale : NULL;
        desc.source.text = NPU_SCALE_TEXT;
        desc.source.fn = "scale";
        desc.source.cost = i > 1 ? "scale" : NULL;
        const ptowsp_kernel kernel = ptowsp_kernel_make(m, &desc);
        const ptowsp_tensor x = tensor_of(&c, "x", PTOWSP_F32, 2);
        PTOWSP_WORKLOAD(m, "main") {
            task_of(&c, kernel, x);
        }
        clause_emit(&c, NULL);
        assert_int_equal(strstr(c.manifest, "\"cycles\": 5") != NULL, i == 1);
        clause_end(&c);
    }
}

// Machines of one name that differ in anything are two.
TEST(clause__machines_are_equal_if_all_of_them_is) {
    for (int which = 0; which < 6; which++) {
        clause c;
        ptowsp_module *m = clause_begin(&c);
        ptowsp_machine machines[2] = {ptowsp_machine_910b(), ptowsp_machine_910b()};
        machines[0].clock_mhz = machines[1].clock_mhz = 1234;  // none that the shim has
        machines[1].clock_mhz += which == 1;
        machines[1].memory_bytes[PTOWSP_MEMORY_UB] += which == 2 ? 1024 : 0;
        machines[1].rates[0] += which == 3;
        if (which >= 4) {
            machines[1].name[0] = 'X';
        }
        ptowsp_kernel kernels[2];
        for (int i = 0; i < 2; i++) {
            ptowsp_body_desc desc = {.name = i ? "second" : "first", .machine = &machines[i]};
            ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
            const ptowsp_value y = ptowsp_tile_inout(k, "y", PTOWSP_F32, 8, 8);
            ptowsp_tile_store(y, ptowsp_tile_mul(y, ptowsp_tile_const(k, 2)));
            kernels[i] = ptowsp_kernel_end(k);
        }
        const ptowsp_tensor x = tensor_of(&c, "x", PTOWSP_F32, 2);
        PTOWSP_WORKLOAD(m, "main") {
            task_of(&c, kernels[0], x);
            if (which < 5) {  // the second one is not used
                task_of(&c, kernels[1], x);
            }
        }
        clause_emit(&c, NULL);
        uint32_t count = 0;
        for (const char *at = c.dispatch; (at = strstr(at, "const ptoisa_machine machine_"));
             at++) {
            count++;
        }
        assert_int_equal(count, which == 0 || which == 5 ? 1 : 2);
        clause_end(&c);
    }
}

// -- limits ---------------------------------------------------------------------------------------

// Of each table, one entry more than a tree can have; entry 0 is none.
TEST(clause__tables_have_a_limit) {
    static const char whats[][8] = {"axes", "arrays", "symbols"};
    for (int which = 0; which < 3; which++) {
        clause c;
        char name[16], text[100];
        ptowsp_module *m = clause_begin(&c);
        for (uint32_t i = 0; i < 65535; i++) {
            snprintf(name, sizeof name, "n%u", (unsigned)i);
            if (which == 0) {
                ptowsp_axis_dynamic(m, name);
            } else if (which == 1) {
                ptowsp_array_at(m, name, PTOWSP_I32, ptowsp_i64(m, 0));
            } else {
                ptowsp_symbol(m, name);
            }
        }
        PTOWSP_WORKLOAD(m, "main") {
            ptowsp_slot_set_make(m, 0, ptowsp_i64(m, 1));
        }
        npu_fixture_compile(&c.f, NULL);
        assert_int_equal(ptowsp_npu_emit_files(c.f.context, c.f.program, take, &c),
                         PTOWSP_LIMIT_EXCEEDED);
        snprintf(text, sizeof text, "emit: the program has 65536 %s; a tree has at most 65535",
                 whats[which]);
        test_error_is(c.f.context, PTOWSP_LIMIT_EXCEEDED, 65536, text);
        clause_end(&c);
    }
}

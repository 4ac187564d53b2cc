// Reading programs: what their tables have, a walk of statements beside an execution, and memory. Lists of
// statements are cases (tests/cases/statements.case).

#include "read_say.h"
#include "support/fixture.h"

static const ptowsp_program_tables *tables_of(fixture *f, const char *text,
                                              const ptowsp_schedule *schedule) {
    const ptowsp_program_desc desc = {NULL, schedule};
    program_make(f, text, NULL, &desc);
    read_check_form(f->program);
    return ptowsp_program_read(f->program);
}

TEST_F(read__tables_have_names_slots_and_places) {
    char place[100];
    const ptowsp_program_tables *t =
        tables_of(f,
                  "module m slots 4\naxis batch dynamic\narray kv_len i32\n"
                  "kernel attend(axes 1) vector, 1 cycles, time only\n"
                  "workload attention\n  parallel b in batch\n    when kv_len[b] <= 2048\n"
                  "      task attend(b)\n",
                  NULL);
    assert_string_equal(t->name, "m");
    assert_int_equal(t->slot_count, 4);
    assert_int_equal(t->statements[4].node, t->statements[2].node);
    ptowsp_program_print_place(f->program, t->statements[3].node, TEST_TEXT(place));
    assert_string_equal(place, "attention/parallel b/when/task attend");
    ptowsp_program_print_place(f->program, 1000, TEST_TEXT(place));
    assert_string_equal(place, "");
    assert_string_equal(ptowsp_program_kernel_name(f->program, 1), "attend");
    assert_null(ptowsp_program_kernel_name(f->program, 0));
    assert_null(ptowsp_program_kernel_name(f->program, 2));
}

// Rows of axes are no axes of their own.
TEST_F(read__rows_of_axes_have_no_names) {
    const ptowsp_program_tables *t =
        tables_of(f,
                  "module m\naxis batch dynamic\naxis kv ragged\naxis pages sparse\naxis heads 2\n"
                  "kernel k(axes 1) vector, 1 cycles, time only\n"
                  "workload rows\n  for_each b in batch\n    parallel t in kv[b]\n"
                  "      task k(t)\n    select e in pages[b]\n      task k(e + entry(e))\n"
                  "  parallel h in heads\n    task k(h)\n",
                  NULL);
    const ptowsp_axis_info kv = t->axes[2];
    assert_int_equal(t->axis_count, 7);  // with two rows
    assert_string_equal(kv.name, "kv");
    assert_int_equal(kv.kind, PTOWSP_AXIS_RAGGED);
    assert_string_equal(t->arrays[kv.array].name, "kv");
    assert_true(t->arrays[kv.array].is_lengths);
    assert_int_equal(t->arrays[kv.array].dtype, PTOWSP_DTYPE_NONE);
    assert_int_equal(t->axes[3].kind, PTOWSP_AXIS_SPARSE);
    assert_int_equal(t->axes[4].kind, PTOWSP_AXIS_DENSE);
    assert_int_equal(t->axes[4].size, 2);
    assert_null(t->axes[5].name);
    assert_null(t->axes[6].name);
}

TEST_F(read__tensors_and_symbols_say_how_they_are_used) {
    const ptowsp_program_tables *t =
        tables_of(f,
                  "module m slots 4\nsymbol s\nsymbol unused\ntensor x i32 [2, 4, 8] global\n"
                  "tensor y i32 [4, 8] global\n"
                  "kernel k(axes 0, in a i32 2 x ?, inout b i32 4 x 4, s u64) vector, 1 cycles, "
                  "time only\n"
                  "workload w\n  slot_load 1 = x[1] at (slot_i64[0], 0) of 2 x edge element "
                  "(1, 0)\n  task k() a = x[1] at (0, 1) of 2 x edge b = y s = s\n",
                  NULL);
    ptowsp_tensor_info info = t->tensors[1];
    assert_int_equal(t->tensor_count, 3);
    assert_true(info.is_used && info.is_loaded && !info.is_written);
    assert_int_equal(info.desc.shape[2], 8);
    info = t->tensors[2];
    assert_true(info.is_used && !info.is_loaded && info.is_written);
    assert_int_equal(t->symbol_count, 3);
    assert_true(t->symbols[1].is_used);
    assert_false(t->symbols[2].is_used);
}

// Each task of a list has its own tiles: tables have none for its kernels. Those of a statement between
// two lists are its own.
TEST_F(read__lists_have_no_tiles) {
    static const char text[] = "module m\ntensor x f32 [8, 8] global\ntensor y f32 [8, 8] global\n"
                               "kernel k(axes 0, in t f32 4 x 4) vector, 1 cycles, time only\n";
    const ptowsp_kernel k = {1};
    const ptowsp_list_view view = {.tensor = {1}};
    const ptowsp_task_list list = {.task_count = 1, .kernels = &k, .views = &view, .view_count = 1};
    const ptowsp_task_desc task = {.kernel = k, .views = {{.tensor = {2}}}};
    assert_ok(ptowsp_module_parse(f->context, text, sizeof text - 1, NULL, &f->module, NULL));
    PTOWSP_WORKLOAD(f->module, "w") {
        ptowsp_task_list_make(f->module, &list);
        ptowsp_task_make(f->module, &task);
        ptowsp_task_list_make(f->module, &list);
    }
    program_make(f, NULL, NULL, NULL);
    const ptowsp_program_tables *tables = ptowsp_program_read(f->program);
    assert_int_equal(tables->task_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(tables->tasks[i].tile_count, i == 1);
        assert_int_equal(tables->tasks[i].kernel, k.id);
    }
    assert_null(tables->tasks[0].tiles);
    assert_int_equal(tables->tasks[1].tiles[0].tensor, 2);
    assert_null(tables->tasks[2].tiles);
}

// -- a walk ---------------------------------------------------------------------------------------

// What kernels were called with, in any order.
typedef struct calls {
    uint64_t seen[64];
    uint32_t count;
} calls;

static void note(calls *list, const ptowsp_task *task) {
    assert_true(list->count < 64);
    list->seen[list->count++] = (uint64_t)task->kernel_name[0] << 32 | task->args[0];
}

static ptowsp_cycles note_call(const ptowsp_task *task, void *user) {
    note((calls *)user, task);
    return 10;
}

static void note_walk(read_walker *w, uint32_t statement, const ptowsp_task *task, void *user) {
    (void)w;
    (void)statement;
    note((calls *)user, task);
}

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

// Executes a program and walks its statements: both make the same calls, in some order.
TEST_F(read__pipelines_are_walked_like_they_run) {
    static const char text[] = "module m slots 4\nsymbol d\naxis tiles 3\naxis workers 2\n"
                               "tensor x i32 [3, 8] global\n"
                               "kernel k(axes 1) vector\n"
                               "kernel write(axes 1, out x i32 1 x 8) vector\n"
                               "workload leaf\n"
                               "  parallel j in tiles\n"
                               "    task k(j)\n"
                               "workload w\n"
                               "  task k(0)\n"
                               "  pipeline p\n"
                               "    channel loaded depth 2 latency 50\n"
                               "    channel back depth d latency 3u\n"
                               "    event go\n"
                               "    process load consumes back produces loaded, go\n"
                               "      for_each i in tiles\n"
                               "        task write(i) x = x at (i, 0)\n"
                               "        send loaded(i)\n"
                               "      record go\n"
                               "      close loaded\n"
                               "      receive t from back\n"
                               "    process compute replicas r in workers consumes loaded produces "
                               "back\n"
                               "      consume t from loaded\n"
                               "        send back(t)\n"
                               "        when t < 1\n"
                               "          task k(t + r * 0)\n"
                               "    process last consumes go\n"
                               "      wait go\n"
                               "      call leaf()\n";
    static read_walker w;
    calls executed = {{0}, 0}, walked = {{0}, 0};
    int32_t data[24];
    const ptowsp_parse_kernel kernels[] = {{.name = "k", .fn = note_call, .user = &executed},
                                           {.name = "write", .fn = note_call, .user = &executed}};
    const ptowsp_parse_desc attached = {kernels, 2, 0};
    program_make(f, text, &attached, NULL);
    const ptowsp_program_tables *t = ptowsp_program_read(f->program);
    assert_string_equal(t->symbols[t->latency_symbol].name, PTOWSP_CHANNEL_LATENCY_SYMBOL);
    assert_int_equal(t->channel_count, 3);
    assert_ok(ptowsp_run_bind_symbol(f->run, "d", 3));
    test_bind(f->run, "x", data);
    assert_ok(ptowsp_run_execute(f->run, NULL));
    memset(&w, 0, sizeof w);
    w.program = f->program;
    w.run = f->run;
    w.task = note_walk;
    w.user = &walked;
    read_walk_program(&w);
    assert_int_equal(executed.count, 1 + 3 + 1 + 3);
    assert_int_equal(walked.count, executed.count);
    qsort(walked.seen, walked.count, sizeof walked.seen[0], compare);
    qsort(executed.seen, executed.count, sizeof executed.seen[0], compare);
    assert_memory_equal(walked.seen, executed.seen, walked.count * sizeof walked.seen[0]);
}

// -- schedules ------------------------------------------------------------------------------------

TEST_F(read__keys_are_there_once) {
    static const char module[] = "module m\naxis batch dynamic\naxis heads 2\nsymbol s\n"
                                 "kernel k(axes 1) vector, 1 cycles, time only\n"
                                 "workload w\n  parallel b in batch\n"
                                 "    task k(b) tag level = u64(b + 1)\n"
                                 "  parallel b in heads\n    task k(b)\n";
    assert_ok(ptowsp_module_parse(f->context, module, sizeof module - 1, NULL, &f->module, NULL));
    ptowsp_module *m = f->module;
    const ptowsp_schedule schedule = {
        .lane_count = 3,
        .dispatch = PTOWSP_DISPATCH_AFFINITY,
        .dispatch_key = ptowsp_add(ptowsp_cast(ptowsp_task_variable(m, "b"), PTOWSP_TYPE_U64),
                                   ptowsp_task_tag(m, "level")),
        .ready = PTOWSP_READY_PRIORITY,
        .priority_key = ptowsp_sub(ptowsp_task_arg(m, 0), ptowsp_i64(m, 3)),
        .stream_count = 2,
        .stream_key = ptowsp_symbol(m, "s")};
    const ptowsp_program_tables *t = tables_of(f, NULL, &schedule);
    const ptowsp_task_info first = t->tasks[t->statements[2].task];
    const ptowsp_task_info last = t->tasks[t->statements[5].task];
    assert_int_equal(first.priority_key, last.priority_key);  // the same for all
    const ptowsp_expr_info sum = t->exprs[last.dispatch_key];
    assert_int_equal(t->exprs[t->exprs[sum.a].a].id, t->statements[4].variable);
    assert_null(t->schedule.dispatch_key.module);
    assert_int_equal(t->schedule.dependencies, PTOWSP_DEPENDENCIES_HYBRID);
    assert_int_equal(ptowsp_program_lane_count(f->program), 3);
    assert_true(t->is_priority_signed);
    char text[1000];
    ptowsp_program_print_schedule(f->program, TEST_TEXT(text));
    assert_non_null(
        strstr(text, "dispatch affinity of u64(task.b) + task.tag(level) over 3 lanes"));
}

// The program does not need its module, and says the same without it, also of what its run records.
TEST_F(read__a_program_outlives_its_module) {
    static read_said before, after;
    char place[100];
    tables_of(f,
              "module m\naxis batch dynamic\narray order i32\n"
              "kernel k(axes 1) vector, 1 cycles, time only\n"
              "workload w\n  parallel b in batch\n    task k(order[b])\n",
              NULL);
    assert_string_equal(read_say(&before, f->program), "0 WORKLOAD w end 4\n"
                                                       "1 LOOP b in batch parallel end 3\n"
                                                       "2 TASK k order[b]\n"
                                                       "3 END of 1\n"
                                                       "4 END of 0\n");
    ptowsp_module_destroy(f->module);
    f->module = NULL;
    assert_string_equal(read_say(&after, f->program), before.text);
    const int32_t order[] = {5, 6};
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY, .record_tasks = true};
    assert_ok(ptowsp_run_bind_array(f->run, "order", PTOWSP_I32, order, 2));
    assert_ok(ptowsp_run_bind_size(f->run, "batch", 2));
    assert_ok(ptowsp_run_execute(f->run, &options));
    const ptowsp_task_record *record = &ptowsp_run_records(f->run)[1];
    assert_string_equal(ptowsp_program_kernel_name(f->program, record->kernel), "k");
    ptowsp_program_print_place(f->program, record->node, TEST_TEXT(place));
    assert_string_equal(place, "w/parallel b/task k");
}

// Each allocation that reading makes is refused once: there are no tables then, and all of them the
// next time, made once.
TEST(read__there_are_all_tables_or_none) {
    uint32_t refused = 0;
    for (bool is_over = false; !is_over;) {
        test_memory memory = {0, 0, 0, 0};
        fixture f = {0};
        char text[4000], *at = text;
        const ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &memory};
        at += sprintf(at, "module m\naxis batch dynamic\nkernel k(axes 1) vector, 1 cycles, time "
                          "only\nworkload w\n  parallel b in batch\n");
        for (int i = 0; i < 200; i++) {
            at += sprintf(at, "    task k(b)\n");
        }
        f.context = test_context(&desc);
        program_make(&f, text, NULL, NULL);
        memory.refuse_at = memory.allocations + refused + 1;
        const ptowsp_program_tables *tables = ptowsp_program_read(f.program);
        is_over = memory.allocations < memory.refuse_at;
        assert_int_equal(tables != NULL, is_over);
        refused += !is_over;
        memory.refuse_at = 0;
        tables = ptowsp_program_read(f.program);
        assert_non_null(tables);
        assert_int_equal(tables->task_count, 200);
        assert_string_equal(tables->kernels[tables->tasks[199].kernel].name, "k");
        const size_t allocations = memory.allocations;
        assert_ptr_equal(ptowsp_program_read(f.program), tables);
        assert_int_equal(memory.allocations, allocations);
        fixture_free(&f);
        assert_int_equal(memory.live_blocks, 0);
    }
    assert_true(refused > 0);
}

// Fingerprints: each thing that a run depends on changes its part and no other; nothing else changes
// any; strict runs.

#include "support/build_script.h"

// -- runs -----------------------------------------------------------------------------------------

static const char text[] =
    "module m slots 2\n"
    "axis n dynamic\n"
    "axis kv ragged i32\n"
    "axis pages sparse\n"
    "symbol bias\n"
    "array order i32\n"
    "tensor x i32 [2, 2, 3, 5] global\n"
    "tensor t i32 [3, 5] global transient\n"
    "tensor y i32 [2, 3, 5] global\n"
    "tensor spare i32 [4] global\n"
    "kernel add(axes 1, in a i32 3 x 5, out b i32 3 x 5, s i64) vector, cycles by a cost "
    "function\n"
    "workload w\n"
    "  for_each i in n\n"
    "    task add(order[i]) a=x[order[i], 0] b=t s=i64(bias)\n"
    "    task add(size(n)) a=t b=y[i] s=slot_i64[0]\n"
    "    for_each k in kv[i]\n"
    "      for_each p in pages[i]\n"
    "        slot_set 1 = k * 10 + p\n";

typedef struct fixture {
    test_memory memory;
    ptowsp_context *context;
    ptowsp_module *module;
    ptowsp_program *program;
    ptowsp_run *run;
    int32_t x[60 * 3], y[30], order[2], lengths[2];
    int64_t indptr[3], indices[3];
    ptowsp_csr csr;
    uint64_t calls;     // of the kernel
    int32_t drift;      // that it adds
    uint64_t slowness;  // cycles more than 10
} fixture;

static ptowsp_cycles add(const ptowsp_task *task, void *user) {
    fixture *f = (fixture *)user;
    const ptowsp_tile *a = &task->tiles[0], *b = &task->tiles[1];
    f->calls++;
    for (int64_t r = 0; r < 3; r++) {
        for (int64_t c = 0; c < 5; c++) {
            ((int32_t *)b->data)[r * b->row_stride + c * b->col_stride] =
                ((const int32_t *)a->data)[r * a->row_stride + c * a->col_stride] +
                (int32_t)ptowsp_task_axis(task, 0) + (int32_t)(int64_t)ptowsp_task_scalar(task, 0) +
                f->drift;
        }
    }
    return 10;
}

static ptowsp_cycles cycles_of(const ptowsp_task *task, void *user) {
    (void)task;
    return 10 + ((const fixture *)user)->slowness;
}

static ptowsp_buffer buffer_of(int32_t *data) {
    ptowsp_buffer buffer = {.data = data, .dtype = PTOWSP_I32};
    return buffer;
}

static void bind(fixture *f) {
    const ptowsp_buffer x = buffer_of(f->x), y = buffer_of(f->y);
    const ptowsp_csr csr = {PTOWSP_I64, f->indptr, f->indices, 2, 3};
    f->csr = csr;
    for (int i = 0; i < 60; i++) {
        f->x[i] = i * i;
    }
    f->order[0] = 1, f->order[1] = 0;
    f->lengths[0] = 2, f->lengths[1] = 1;
    f->indptr[0] = 0, f->indptr[1] = 1, f->indptr[2] = 3;
    f->indices[0] = 4, f->indices[1] = 5, f->indices[2] = 6;
    assert_ok(ptowsp_run_bind_size(f->run, "n", 2));
    assert_ok(ptowsp_run_bind_symbol(f->run, "bias", 7));
    assert_ok(ptowsp_run_bind_slot(f->run, 0, 3));
    assert_ok(ptowsp_run_bind_slot(f->run, 1, 0));
    assert_ok(ptowsp_run_bind_array(f->run, "order", PTOWSP_I32, f->order, 2));
    assert_ok(ptowsp_run_bind_lengths(f->run, "kv", PTOWSP_I32, f->lengths, 2));
    assert_ok(ptowsp_run_bind_csr(f->run, "pages", &f->csr));
    assert_ok(ptowsp_run_bind_tensor(f->run, "x", &x));
    assert_ok(ptowsp_run_bind_tensor(f->run, "y", &y));
}

// The program of a text, with a schedule and a kernel of this source.
static ptowsp_kernel_source source;

static void make(fixture *f, const char *from, const ptowsp_schedule *schedule) {
    memset(f, 0, sizeof *f);
    ptowsp_parse_kernel kernel = {
        .name = "add", .fn = add, .cost = cycles_of, .source = source, .user = f};
    const ptowsp_parse_desc desc = {&kernel, 1, 0};
    const ptowsp_program_desc program = {NULL, schedule};
    ptowsp_context_desc context = {.resize = test_resize,
                                   .resize_user = &f->memory,
                                   .threads = PTOWSP_THREADS_OWN,
                                   .lane_count = 2};
    f->context = test_context(&context);
    f->run = test_run_text(f->context, from, &desc, &program, &f->module, &f->program);
    bind(f);
}

static void release(fixture *f) {
    test_destroy(f->run, f->program, f->module, f->context);
    assert_int_equal(f->memory.live_bytes, 0);
}

static ptowsp_fingerprint found(fixture *f) {
    ptowsp_fingerprint fingerprint;
    assert_ok(ptowsp_run_fingerprint(f->run, &fingerprint));
    return fingerprint;
}

static ptowsp_fingerprint executed(fixture *f) {
    assert_ok(ptowsp_run_execute(f->run, NULL));
    return found(f);
}

// The parts that differ, by their first letters; results are "R".
static void differ(ptowsp_fingerprint a, ptowsp_fingerprint b, const char *wanted) {
    char parts[8];
    snprintf(parts, sizeof parts, "%s%s%s%s%s", a.program != b.program ? "p" : "",
             a.bindings != b.bindings ? "b" : "", a.inputs != b.inputs ? "i" : "",
             a.results != b.results ? "R" : "", a.time != b.time ? "t" : "");
    assert_string_equal(parts, wanted);
}

TEST(each_thing_changes_its_part) {
    fixture f, g;
    make(&f, text, NULL);
    const ptowsp_fingerprint before = found(&f), first = executed(&f);
    assert_true(before.program && before.bindings && before.inputs);
    assert_true(before.results == 0 && before.time == 0);
    differ(before, first, "Rt");
    assert_true(first.results && first.time);

#define CHANGED(change, parts)                                                                     \
    change;                                                                                        \
    differ(first, executed(&f), parts);                                                            \
    bind(&f)
    CHANGED((void)0, "");
    CHANGED(ptowsp_run_bind_size(f.run, "n", 1), "bRt");
    CHANGED(ptowsp_run_bind_symbol(f.run, "bias", 8), "bR");
    CHANGED(ptowsp_run_bind_slot(f.run, 0, 4), "bR");
    CHANGED(ptowsp_run_bind_slot(f.run, 1, 4), "b");
    CHANGED((f.order[0] = 0, f.order[1] = 1), "bR");
    CHANGED((f.lengths[0] = 1, f.lengths[1] = 2), "bR");
    CHANGED(f.indices[2] = 7, "bR");
    CHANGED(f.indices[1] = 7, "b");
    CHANGED(f.x[59]++, "i");
    CHANGED(f.x[44]++, "iR");
    CHANGED(f.x[0]++, "iR");
    CHANGED(f.drift = 1, "R");
    f.drift = 0;
    CHANGED(f.slowness = 1, "t");
    f.slowness = 0;
    executed(&f);
    f.y[29] ^= INT32_MIN;  // after the execution
    differ(first, found(&f), "R");
#undef CHANGED

    ptowsp_schedule schedule = {.issue = PTOWSP_ISSUE_IN_ORDER};
    make(&g, text, &schedule);
    differ(first, executed(&g), "p");
    release(&g);
    source.text = "// another kernel";
    make(&g, text, NULL);
    source.text = NULL;
    differ(first, executed(&g), "p");
    release(&g);
    char other[sizeof text];
    memcpy(other, text, sizeof text);
    *strstr(other, "k * 10") = 'p';  // the program, and what comes of it
    make(&g, other, NULL);
    differ(first, executed(&g), "pR");
    release(&g);
    release(&f);
}

TEST(nothing_else_changes_any) {
    fixture f;
    make(&f, text, NULL);
    const ptowsp_fingerprint first = executed(&f);
    // Memory elsewhere, with gaps and backwards.
    int32_t *apart = f.x + 60;
    ptowsp_buffer x = buffer_of(apart + 59 * 2);
    const int64_t shape[] = {2, 2, 3, 5}, strides[] = {-60, -30, -10, -2};
    x.rank = 4;
    memcpy(x.shape, shape, sizeof shape);
    memcpy(x.strides, strides, sizeof strides);
    for (int i = 0; i < 60; i++) {
        apart[(59 - i) * 2] = f.x[i];
    }
    assert_ok(ptowsp_run_bind_tensor(f.run, "x", &x));
    differ(first, executed(&f), "");
    // Two lanes, wider integers, what no statement uses, and a binding that is not used any more.
    ptowsp_run_options options = {.lane_count = 2};
    int64_t lengths[] = {2, 1};
    const ptowsp_buffer spare = buffer_of(f.x);
    assert_invalid(ptowsp_run_bind_lengths(f.run, "kv", PTOWSP_I64, lengths, 2));
    assert_ok(ptowsp_run_bind_tensor(f.run, "spare", &spare));
    assert_ok(ptowsp_run_execute(f.run, &options));
    differ(first, found(&f), "");
    // What lies in the memory of transient tensors.
    union {
        char bytes[256];
        PWSP_ALIGNAS(PTOWSP_TRANSIENT_ALIGN) char aligned[1];
    } block;
    ptowsp_fingerprint none[2];
    assert_ok(ptowsp_run_bind_transients(f.run, &block, sizeof block));
    assert_ok(ptowsp_run_bind_size(f.run, "n", 0));
    for (int i = 0; i < 2; i++) {
        memset(&block, i, sizeof block);
        none[i] = executed(&f);
    }
    differ(none[0], none[1], "");
    assert_ok(ptowsp_run_bind_size(f.run, "n", 2));
    // Time alone has no contents.
    memset(&options, 0, sizeof options);
    options.mode = PTOWSP_RUN_TIME_ONLY;
    assert_ok(ptowsp_run_execute(f.run, &options));
    differ(first, found(&f), "iR");
    assert_true(found(&f).inputs == 0 && found(&f).results == 0);
    release(&f);
    // Another context, program and run.
    make(&f, text, NULL);
    differ(first, executed(&f), "");
    release(&f);
}

TEST(strict_runs_are_refused) {
    fixture f;
    make(&f, text, NULL);
    ptowsp_fingerprint expected = executed(&f), wrong;
    assert_ok(ptowsp_run_expect(f.run, &expected));
    assert_ok(ptowsp_run_execute(f.run, NULL));
    uint64_t calls = f.calls;

    static const char *const names[] = {"program", "bindings", "inputs", "results", "time"};
    for (int i = 0; i < 5; i++) {
        wrong = expected;
        uint64_t *const parts[] = {&wrong.program, &wrong.bindings, &wrong.inputs, &wrong.results,
                                   &wrong.time};
        uint64_t *part = parts[i];
        uint64_t right = *part;
        char line[200];
        *part = 0x123;
        snprintf(line, sizeof line,
                 "run: the fingerprint of its %s is %016llx, 0000000000000123 is expected",
                 names[i], (unsigned long long)right);
        assert_ok(ptowsp_run_expect(f.run, &wrong));
        test_fails(f.context, ptowsp_run_execute(f.run, NULL), PTOWSP_DIFFERENT, line);
        calls += i < 3 ? 0 : 4;
        assert_int_equal(f.calls, calls);
        *part = 0;  // is not compared
        assert_ok(ptowsp_run_expect(f.run, &wrong));
        assert_ok(ptowsp_run_execute(f.run, NULL));
        calls += 4;
    }
    // Another binding than the one that is expected: refused before a kernel is called, and good again.
    assert_ok(ptowsp_run_expect(f.run, &expected));
    assert_ok(ptowsp_run_bind_symbol(f.run, "bias", 8));
    assert_int_equal(ptowsp_run_execute(f.run, NULL), PTOWSP_DIFFERENT);
    assert_non_null(
        strstr(ptowsp_context_error(f.context).text, "run: the fingerprint of its bindings is "));
    assert_int_equal(f.calls, calls);
    bind(&f);
    assert_ok(ptowsp_run_execute(f.run, NULL));
    // What a kernel does otherwise than before is seen; the results are there.
    assert_ok(ptowsp_run_expect(f.run, &expected));
    f.drift = 1;
    assert_int_equal(ptowsp_run_execute(f.run, NULL), PTOWSP_DIFFERENT);
    assert_non_null(strstr(ptowsp_context_error(f.context).text, "results"));
    differ(expected, found(&f), "R");
    // Started, and on lanes.
    ptowsp_run_options options = {.lane_count = 2};
    assert_int_equal(ptowsp_run_execute(f.run, &options), PTOWSP_DIFFERENT);
    assert_ok(ptowsp_run_start(f.run, &options));
    assert_int_equal(ptowsp_run_wait(f.run), PTOWSP_DIFFERENT);
    assert_non_null(strstr(ptowsp_context_error(f.context).text, "results"));
    // An execution that measures time compares no contents.
    memset(&options, 0, sizeof options);
    options.mode = PTOWSP_RUN_TIME_ONLY;
    assert_ok(ptowsp_run_execute(f.run, &options));
    assert_ok(ptowsp_run_expect(f.run, NULL));
    assert_ok(ptowsp_run_execute(f.run, NULL));
    release(&f);
}

static fixture *inside;

static ptowsp_cycles calls_back(const ptowsp_task *task, void *user) {
    ptowsp_fingerprint fingerprint;
    (void)task, (void)user;
    assert_int_equal(ptowsp_run_fingerprint(inside->run, &fingerprint), PTOWSP_BUSY);
    assert_int_equal(ptowsp_run_expect(inside->run, NULL), PTOWSP_BUSY);
    return 1;
}

TEST(wrong_calls_have_a_status) {
    fixture f;
    ptowsp_fingerprint fingerprint;
    make(&f, text, NULL);
    test_fails(f.context, ptowsp_run_fingerprint(f.run, NULL), PTOWSP_INVALID_PARAMS,
               "run: out_fingerprint is NULL");
    f.order[0] = 1;
    ptowsp_run *other = test_run_of(f.context, f.program);
    memset(&fingerprint, 0xff, sizeof fingerprint);
    assert_int_equal(ptowsp_run_fingerprint(other, &fingerprint), PTOWSP_UNBOUND);
    assert_int_equal(fingerprint.program, 0);
    ptowsp_run_destroy(other);
    // An execution that fails leaves no results.
    executed(&f);
    f.order[1] = 2;
    assert_invalid(ptowsp_run_execute(f.run, NULL));
    f.order[1] = 0;
    fingerprint = found(&f);
    assert_true(fingerprint.inputs && !fingerprint.results && !fingerprint.time);
    release(&f);

    static const char small[] = "module m\nkernel k(axes 0) vector\nworkload w\n  task k()\n";
    ptowsp_parse_kernel kernel = {.name = "k", .fn = calls_back};
    const ptowsp_parse_desc desc = {&kernel, 1, 0};
    memset(&f, 0, sizeof f);
    inside = &f;
    f.context = test_context(NULL);
    f.run = test_run_text(f.context, small, &desc, NULL, &f.module, &f.program);
    assert_ok(ptowsp_run_execute(f.run, NULL));
    // Without tensors there is a fingerprint as well.
    fingerprint = found(&f);
    assert_true(fingerprint.inputs && fingerprint.results && fingerprint.bindings);
    release(&f);
}

TEST(fingerprints_are_printed) {
    const ptowsp_fingerprint fingerprint = {1, UINT64_C(0xfedcba9876543210), 3, 0, UINT64_MAX};
    char line[200];
    ptowsp_fingerprint_print(&fingerprint, TEST_TEXT(line));
    assert_string_equal(line, "program 0000000000000001 bindings fedcba9876543210 "
                              "inputs 0000000000000003 results 0000000000000000 "
                              "time ffffffffffffffff\n");
}

static ptowsp_cycles one_cycle(const ptowsp_task *task, void *user) {
    (void)task, (void)user;
    return 1;
}

// Tensors of no matrix have no contents, whatever is where they are bound.
TEST(tensors_of_nothing_have_no_contents) {
    int32_t data[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
    ptowsp_fingerprint prints[4];
    static const char from[] =
        "module m\naxis n dynamic\ntensor x i32 [?, 2, 2] global\ntensor y i32 [?, 2, 2] global\n"
        "kernel take(axes 0, in from i32 2 x 2, inout to i32 2 x 2) vector\nworkload main\n"
        "  parallel i in n\n    task take() from = x[i] to = y[i]\n";
    const ptowsp_parse_kernel kernel = {.name = "take", .fn = one_cycle};
    const ptowsp_parse_desc attached = {&kernel, 1, 0};
    ptowsp_context *context = test_context(NULL);
    ptowsp_module *m = NULL;
    ptowsp_program *program = NULL;
    ptowsp_run *run = test_run_text(context, from, &attached, NULL, &m, &program);
    for (int i = 0; i < 4; i++) {  // of none, of one matrix; with other contents
        for (int t = 0; t < 2; t++) {
            const ptowsp_buffer buffer = {.data = i ? data[t] : NULL,  // not even memory
                                          .dtype = PTOWSP_I32,
                                          .rank = 3,
                                          .shape = {i / 2, 2, 2}};
            assert_ok(ptowsp_run_bind_tensor(run, t ? "y" : "x", &buffer));
        }
        assert_ok(ptowsp_run_bind_size(run, "n", i / 2));
        data[0][0] = data[1][3] = i;
        assert_ok(ptowsp_run_execute(run, NULL));
        assert_ok(ptowsp_run_fingerprint(run, &prints[i]));
    }
    assert_memory_equal(&prints[0], &prints[1], sizeof prints[0]);
    assert_true(prints[2].inputs != prints[3].inputs && prints[2].results != prints[3].results);
    assert_true(prints[0].inputs != prints[2].inputs);
    test_destroy(run, program, m, context);
}

// -- saved programs -------------------------------------------------------------------------------

// The fingerprint of a program of the module, with what these programs read bound; the same once the
// program has been saved and loaded.
static ptowsp_fingerprint fingerprint_kept(ptowsp_context *context, ptowsp_module *module) {
    static char saved[1 << 14];
    const ptowsp_parse_kernel kernel = {.name = "k", .fn = one_cycle};
    const ptowsp_parse_desc attached = {&kernel, 1, 0};
    ptowsp_output_buffer buffer = {saved, sizeof saved, 0};
    ptowsp_program *programs[2];
    ptowsp_fingerprint found[2];
    const int32_t order[3] = {2, 0, 1};
    ptowsp_work work[2] = {0};
    for (uint32_t i = 0; i < 2; i++) {
        work[i].work_id = i;
        work[i].params[0] = i + 1, work[i].params[1] = 5;
        work[i].params[2] = 100 * i, work[i].params[3] = 70 + i;
    }
    if (ptowsp_module_error(module).status != PTOWSP_OK) {
        fail_msg("%s", ptowsp_module_error(module).text);
    }
    assert_ok(ptowsp_program_create(context, module, NULL, &programs[0]));
    assert_ok(ptowsp_program_save(context, module, NULL, ptowsp_output_to_buffer(&buffer)));
    assert_ok(ptowsp_program_load(context, saved, buffer.length, &attached, &programs[1], NULL));
    for (int i = 0; i < 2; i++) {
        ptowsp_run *run = test_run_of(context, programs[i]);
        (void)ptowsp_run_bind_work(run, "kv", work, 2);
        (void)ptowsp_run_bind_array(run, "order", PTOWSP_I32, order, 3);
        assert_ok(ptowsp_run_execute(run, NULL));
        assert_ok(ptowsp_run_fingerprint(run, &found[i]));
        ptowsp_run_destroy(run);
        ptowsp_program_destroy(programs[i]);
    }
    assert_memory_equal(&found[0], &found[1], sizeof found[0]);
    return found[0];
}

// Permutation n of the numbers below `count`.
static void permute(uint32_t n, uint32_t count, uint32_t *out) {
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = n % (i + 1);
        n /= i + 1;
        out[i] = out[at];
        out[at] = i;
    }
}

TEST(saved_programs_keep_theirs_in_any_order_of_ports) {
    script s;
    script_make(&s, "module m slots 1\n");
    for (uint32_t n = 0; n < 24; n++) {
        uint32_t order[4];
        permute(n, 4, order);
        script_run(&s, "workload w; pipeline p; channel a; channel b; channel c; channel d; "
                       "process first; produces a; produces b; send a 1; send b 2; end; "
                       "process middle");
        for (uint32_t i = 0; i < 4; i++) {
            static const char *const ports[] = {"consumes a", "consumes b", "produces c",
                                                "produces d"};
            script_run(&s, ports[order[i]]);
        }
        script_run(&s, "consume t a; send c t; end; consume t b; send d t; end 2; "
                       "process last; consumes c; consumes d; consume t c; slot_set 0 t; end; "
                       "consume t d; slot_set 0 t; end 4");
        (void)fingerprint_kept(s.context, s.m);
        script_begin(&s);
    }
    script_free(&s);
}

// Fields of plans are arrays that the first use of each declares: between other arrays, and in any
// order. The programs print the same, as the task uses all of them.
TEST(saved_programs_keep_theirs_in_any_order_of_plan_fields) {
    static const ptowsp_plan_field fields[3] = {PTOWSP_PLAN_KV_LEN, PTOWSP_PLAN_REQUEST,
                                                PTOWSP_PLAN_KV_START};
    ptowsp_fingerprint first;
    ptowsp_context *context = test_context(NULL);
    for (uint32_t n = 0; n < 24; n++) {
        uint32_t order[4];
        permute(n, 4, order);
        ptowsp_module *m = test_module(context, NULL);
        const ptowsp_kernel_desc k = {.name = "k", .axis_count = 4, .fn = one_cycle};
        ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(m, &k)};
        const ptowsp_axis units = ptowsp_axis_plan(m, "kv");
        PTOWSP_WORKLOAD(m, "w") {
            PTOWSP_PARALLEL(m, u, units) {
                for (uint32_t i = 0; i < 4; i++) {
                    task.axes[order[i]] = order[i] < 3 ? ptowsp_loop_field(u, fields[order[i]])
                                                       : ptowsp_array_at(m, "order", PTOWSP_I32, u);
                }
                ptowsp_task_make(m, &task);
            }
        }
        const ptowsp_fingerprint found = fingerprint_kept(context, m);
        first = n == 0 ? found : first;
        assert_memory_equal(&found, &first, sizeof found);
        ptowsp_module_destroy(m);
    }
    ptowsp_context_destroy(context);
}

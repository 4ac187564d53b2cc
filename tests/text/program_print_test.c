// Places and decisions as text: what a reader of errors and of reports sees of the kinds that
// are rare. Expected texts are worked out on paper.

#include "support/fixture.h"

enum { TEXT_MAX = 1 << 18 };

static char text[TEXT_MAX], printed[TEXT_MAX];

// Compiles `text`; its first workload is the last one.
static void compile(fixture *f, const ptowsp_parse_desc *attached) {
    ptowsp_schedule schedule;  // with a ring of bytes, so that memory is given back
    memset(&schedule, 0, sizeof schedule);
    schedule.ring_sizes[PTOWSP_RING_BYTES] = 1 << 20;
    const ptowsp_program_desc desc = {"main", &schedule};
    program_make(f, text, attached, &desc);
}

static void has(const char *part) {
    if (!strstr(printed, part)) {
        fail_msg("\"%s\" is not in\n%s", part, printed);
    }
}

static ptowsp_status execute(fixture *f) {
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    ptowsp_status status = ptowsp_run_execute(f->run, &options);
    snprintf(printed, sizeof printed, "%s", ptowsp_context_error(f->context).text);
    return status;
}

static void begin_again(fixture *f) {
    void *state = f;
    teardown(&state);
    assert_int_equal(setup(&state), 0);
}

// An array that is read behind its end, in a workload with a parameter that is a bool.
TEST_F(place__has_the_values_around_it) {
    const int32_t a[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text,
                 "module m\narray a i32\nkernel w(axes 1) vector, 1 cycles, time only\n"
                 "workload part(n i64, f bool, u u64)\n  task w(i64(a[n]))\n"
                 "workload main\n  call part(5, %s, 7u)\n",
                 i ? "true" : "false");
        compile(f, NULL);
        assert_int_equal(ptowsp_run_bind_array(f->run, "a", PTOWSP_I32, a, 2), PTOWSP_OK);
        assert_int_equal(execute(f), PTOWSP_INVALID_PARAMS);
        has(i ? "(n = 5, f = true, u = 7)" : "(n = 5, f = false, u = 7)");
        has("array a is read at 5; it has 2 elements");
        begin_again(f);
    }
}

// 160 bytes of a place are enough, and 120 of variables: the outermost and the innermost stay.
TEST_F(place__is_cut_where_it_is_long) {
    const int32_t a[2] = {0, 0};
    char *at = text, name[5][64];
    at += sprintf(at, "module m\narray a i32\naxis n 1\n"
                      "kernel w(axes 1) vector, 1 cycles, time only\nworkload main\n");
    for (int i = 0; i < 5; i++) {
        memset(name[i], 'a' + i, 50);
        name[i][50] = 0;
        at += sprintf(at, "%*sfor_each %s in n\n", 2 + 2 * i, "", name[i]);
    }
    sprintf(at, "%*stask w(i64(a[%s + 9]))\n", 12, "", name[4]);
    compile(f, NULL);
    assert_int_equal(ptowsp_run_bind_array(f->run, "a", PTOWSP_I32, a, 2), PTOWSP_OK);
    assert_int_equal(execute(f), PTOWSP_INVALID_PARAMS);
    // "main", something left out, and the two loops that fit with the task.
    char part[256];
    snprintf(part, sizeof part, "main/.../for_each %s/for_each %s/task w", name[3], name[4]);
    has(part);
    has("...)");
    assert_null(strstr(printed, "for_each c"));
}

TEST_F(channel__reads_its_depth_inside_the_array) {
    const uint64_t a[2] = {1, 1};
    static const char *const channels[2] = {"depth a[3] latency 0", "depth 1 latency a[4]"};
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text,
                 "module m\narray a u64\nworkload main\n  pipeline p\n    channel c %s\n"
                 "    process s produces c\n      send c(1)\n"
                 "    process r consumes c\n      consume x from c\n        sequence\n",
                 channels[i]);
        compile(f, NULL);
        assert_int_equal(ptowsp_run_bind_array(f->run, "a", PTOWSP_U64, a, 2), PTOWSP_OK);
        assert_int_equal(execute(f), PTOWSP_INVALID_PARAMS);
        has(i ? "channel c: array a is read at 4; it has 2 elements"
              : "channel c: array a is read at 3; it has 2 elements");
        begin_again(f);
    }
}

// -- long lists of what is stuck ------------------------------------------------------------------

static void print_stuck(const fixture *f) {
    ptowsp_output_buffer buffer = {printed, TEXT_MAX, 0};
    ptowsp_run_print_stuck(f->run, ptowsp_output_to_buffer(&buffer));
    assert_true(buffer.length < TEXT_MAX);
}

// One token more than are received, after 150 of them: 300 steps, of which 200 are listed.
TEST_F(stuck__lists_the_last_steps) {
    snprintf(text, sizeof text, "%s",
             "module m\naxis more 151\naxis n 150\n"
             "kernel w(axes 1) vector, 1 cycles, time only\n"
             "workload main\n  pipeline p\n    channel c depth 0 latency 0\n"
             "    process s produces c\n      for_each i in more\n        send c(i)\n"
             "    process r consumes c\n      for_each k in n\n        receive x from c\n"
             "          task w(x)\n");
    compile(f, NULL);
    assert_int_equal(ptowsp_run_explore(f->run, NULL, NULL), PTOWSP_STUCK);
    print_stuck(f);
    has(" steps before\n");
    const char *before = strstr(printed, "    ... ");
    const unsigned long long left = strtoull(before + 8, NULL, 10);
    char first[32];
    snprintf(first, sizeof first, "\n    %llu  ", left + 1);
    has(first);
    snprintf(first, sizeof first, "\n    %llu  ", left + 200);
    has(first);
    snprintf(first, sizeof first, "\n    %llu  ", left + 201);
    assert_null(strstr(printed, first));
}

// 250 processes that each wait for a token that none sends: 200 are listed.
TEST_F(stuck__lists_200_processes) {
    char *at = text;
    at += sprintf(at, "module m\naxis n 249\nkernel w(axes 1) vector, 1 cycles, time only\n"
                      "workload main\n  pipeline p\n"
                      "    channel c depth 1 latency 0\n    channel d depth 1 latency 0\n"
                      "    process s consumes d produces c\n      receive y from d\n"
                      "        send c(y)\n"
                      "    process r replicas i in n consumes c produces d\n"
                      "      receive x from c\n        send d(x)\n");
    compile(f, NULL);
    assert_int_equal(execute(f), PTOWSP_STUCK);
    print_stuck(f);
    has(": 250 of 250 processes wait\n");
    has("  ... 50 more\n");
}

// -- decisions ------------------------------------------------------------------------------------

static ptowsp_cycles nothing(const ptowsp_task *task, void *user) {
    (void)task;
    (void)user;
    return 3;
}

static bool append(void *user, const void *data, size_t size) {
    size_t *length = (size_t *)user;
    assert_true(*length + size < TEXT_MAX);
    memcpy(printed + *length, data, size);
    *length += size;
    printed[*length] = 0;
    return true;
}

static void decide(const fixture *f, ptowsp_report_format format) {
    size_t length = 0;
    const ptowsp_output output = {append, &length};
    assert_int_equal(ptowsp_run_export_decisions(f->run, format, output), PTOWSP_OK);
}

TEST_F(decisions__tell_kernels_apart) {
    const ptowsp_parse_kernel kernels[2] = {{.name = "fn", .fn = nothing},
                                            {.name = "costed", .fn = nothing, .cost = nothing}};
    const ptowsp_parse_desc attached = {kernels, 2, 0};
    snprintf(text, sizeof text, "%s",
             "module m\n"
             "tensor x f32 [8, 8] global\n"
             "kernel fn(axes 0) vector\n"
             "kernel costed(axes 0) vector, cycles by a cost function\n"
             "kernel fixed(axes 0) cube, 9 cycles, time only\n"
             "kernel unused(axes 0) vector, 2 cycles, time only\n"
             "kernel tile(axes 0, inout t f32 8 x 8) vector, 5 instructions\n"
             "  machine \"910B\"\n"
             "  %1 = parameter t\n"
             "  %2 = load %1 : f32 8 x 8\n"
             "  %3 = add %2, %2 : f32 8 x 8\n"
             "  store %1, %3\n"
             "workload main\n  task fn()\n  task costed()\n  task tile() t = x\n");
    compile(f, &attached);
    float data[64] = {0};
    ptowsp_buffer buffer = {.data = data};
    const ptowsp_record_options record = {.level = PTOWSP_RECORD_TOTALS};
    assert_int_equal(ptowsp_run_bind_tensor(f->run, "x", &buffer), PTOWSP_OK);
    assert_int_equal(ptowsp_run_record(f->run, &record), PTOWSP_OK);
    assert_int_equal(ptowsp_run_execute(f->run, NULL), PTOWSP_OK);
    decide(f, PTOWSP_REPORT_TEXT);
    has("its function says how long it took");
    has("its cost function says how long it takes");
    has("instructions for 910B, on a core of vector");
    has("its instructions say how long it takes");
    assert_null(strstr(printed, "unused"));
    decide(f, PTOWSP_REPORT_JSON);
    has(", \"permille\": ");
}

// Reading dumps: what is not one is refused with a text, whatever it is; nothing that is cut, changed or
// out of memory does any harm.

#define _POSIX_C_SOURCE 200809L

#include "dump_write.h"
#include "support/files.h"

// Every allocation of the reader, counted; one may be refused.
static size_t hook_live, hook_count, hook_refuse;

static void *hook_resize(void *ptr, size_t size) {
    if (size == 0) {
        hook_live -= ptr != NULL;
        free(ptr);
        return NULL;
    }
    if (++hook_count == hook_refuse) {
        return NULL;
    }
    hook_live += ptr == NULL;
    return realloc(ptr, size);
}

#define PTOWSP_DUMP_RESIZE(ptr, size) hook_resize(ptr, size)
#include "src/dump/dump_base.c"

static const char deps_text[] =
    "{\"tasks\":[{\"task_id\":\"4294967296\",\"scope\":\"auto\",\"early_dispatch\":false,"
    "\"kernel_ids\":[-1,0,-1],\"block_num\":1,\"args\":[{\"idx\":0,\"type\":\"INPUT\","
    "\"tensor_id\":\"18248792935067639278\",\"dtype\":\"FLOAT32\",\"shape\":[32,450],"
    "\"start_offset\":\"0\",\"strides\":[450,1]},{\"idx\":1,\"type\":\"INOUT\",\"tensor_id\":\"2\","
    "\"dtype\":\"FLOAT99\",\"shape\":[],\"start_offset\":\"0\",\"strides\":[]}]},\n"
    "{\"task_id\":\"4294967297\",\"scope\":\"manual\",\"kernel_ids\":[2,3,3],\"args\":[{\"type\":"
    "\"OUTPUT_OF_TOMORROW\",\"tensor_id\":\"2\",\"dtype\":\"INT8\",\"shape\":[2,3],\"start_"
    "offset\":"
    "\"1\",\"strides\":[0,-1]}]}],\"tensors\":[{\"tensor_id\":\"18248792935067639278\",\"buffer_"
    "addr\":"
    "\"949690496\",\"version\":0,\"dtype\":\"FLOAT32\",\"buffer_numel\":\"14400\"},{\"tensor_id\":"
    "\"2\","
    "\"buffer_addr\":\"7\",\"dtype\":\"INT8\",\"buffer_numel\":\"99\"}],\"more\":[null,true,1.5e3,"
    "{\"a\\u0041\\n\":\"b\"}],\"edges\":[{\"pred\":\"4294967296\",\"succ\":\"4294967297\",\"arg\":-"
    "1,"
    "\"source\":\"explicit\",\"flags\":[\"wait\",\"later\"]},{\"pred\":\"7\",\"succ\":"
    "\"4294967297\",\"arg\":"
    "0,"
    "\"source\":\"oracle\"}]}";
static const char swimlane_text[] =
    "{\"chip_swimlane_level\":4,\"metadata\":{\"clock_freq_hz\":50000000,\"core_types\":[\"aic\"]},"
    "\n"
    "\"aicore_tasks\":[[8,4294967296,1,100,200,81],[9,4294967297,2,9223372036854775808,"
    "9223372036854775809]]}";
static const char scopes_text[] =
    "{\"version\":6,\"fatal\":false}\n"
    "{\"site\":\"m:1\",\"phase\":\"begin\",\"depth\":0,\"ring\":0,\"task_window_end\":0}\n"
    "{\"site\":\"a:1\",\"phase\":\"begin\",\"depth\":1,\"ring\":1,\"task_window_start\":0,"
    "\"task_window_end\":0,\"heap_start\":0,\"heap_end\":0,\"dep_pool_start\":1,\"dep_pool_end\":1}"
    "\n"
    "{\"site\":\"a:1\",\"phase\":\"end\",\"depth\":1,\"ring\":1,\"task_window_start\":0,"
    "\"task_window_end\":2,\"heap_start\":0,\"heap_end\":0,\"dep_pool_start\":1,\"dep_pool_end\":2}"
    "\n{\"site\":\"m:1\",\"phase\":\"end\",\"depth\":0,\"ring\":0,\"task_window_end\":8}\n";
static const char names_text[] = "{\"level\":2,\"orchestrator_name\":null,\"callable_id_to_name\":{"
                                 "\"0\":\"soft<max>\",\"2\":\"mm\"}}";

static const ptowsp_dump_file whole[4] = {{deps_text, sizeof deps_text - 1},
                                          {swimlane_text, sizeof swimlane_text - 1},
                                          {scopes_text, sizeof scopes_text - 1},
                                          {names_text, sizeof names_text - 1}};

static bool drop_text(void *user, const void *text, size_t length) {
    (void)text;
    *(size_t *)user += length;
    return true;
}

// Opens files, and does all that can be done with them.
static ptowsp_status use(ptowsp_context *context, const ptowsp_dump_file *files) {
    const ptowsp_dump_desc desc = {NULL, files[0], files[1], files[2], files[3]};
    ptowsp_dump *dump = NULL;
    ptowsp_dump_report report;
    size_t length = 0;
    const ptowsp_output text = {drop_text, &length};
    ptowsp_status status = ptowsp_dump_open(context, &desc, &dump);
    assert_true(status == PTOWSP_OK || dump == NULL);
    if (status == PTOWSP_OK && files[0].text) {
        status = ptowsp_dump_check(dump, &report);
        for (int i = 0; i < 3 && status == PTOWSP_OK; i++) {
            status = ptowsp_dump_print(dump, (ptowsp_dump_format)i, text);
        }
        ptowsp_dump_rings rings;
        status = status == PTOWSP_OK ? ptowsp_dump_rings_least(dump, &rings) : status;
        if (status == PTOWSP_OK) {
            const ptowsp_status explained = ptowsp_dump_explain(dump, UINT64_C(1) << 32, text);
            status = explained == PTOWSP_OUT_OF_MEMORY ? explained : status;
        }
    }
    ptowsp_dump_close(dump);
    assert_int_equal(hook_live, 0);
    return status;
}

CONTEXT_TEST(dump_read__takes_each_file_alone_and_together) {
    for (int set = 0; set < 16; set++) {
        ptowsp_dump_file files[4];
        for (int i = 0; i < 4; i++) {
            const ptowsp_dump_file none = {NULL, 0};
            files[i] = set >> i & 1 ? whole[i] : none;
        }
        assert_int_equal(use(context, files), set & 7 ? PTOWSP_OK : PTOWSP_INVALID_PARAMS);
    }
}

CONTEXT_TEST(dump_read__survives_a_cut_at_every_byte) {
    for (int i = 0; i < 4; i++) {
        for (size_t size = 0; size < whole[i].size; size++) {
            ptowsp_dump_file files[4];
            memcpy(files, whole, sizeof files);
            files[i] = dw_exact(whole[i].text, size);
            // Lines may be missing at the end. Rings then miss tasks, unless there is no scope at all.
            const bool is_good = i == 2 && size > 0 &&
                                 (whole[i].text[size - 1] == '\n' || whole[i].text[size] == '\n');
            const bool is_short = is_good && size > strcspn(scopes_text, "\n") + 1;
            const ptowsp_status status = use(context, files);
            assert_true(is_short && size < whole[i].size - 1 ? status == PTOWSP_DIFFERENT
                        : is_good                            ? status == PTOWSP_OK
                                                             : status == PTOWSP_INVALID_PARAMS);
            free((void *)(uintptr_t)files[i].text);
        }
    }
}

CONTEXT_TEST(dump_read__survives_every_byte_changed) {
    static const char others[] = "\0 \"\\[]{},:-9ax\x1f\xff";
    for (int i = 0; i < 4; i++) {
        TEST_GRID(size_t, at, whole[i].size, k, sizeof others - 1) {
            ptowsp_dump_file files[4];
            memcpy(files, whole, sizeof files);
            files[i] = dw_exact(whole[i].text, whole[i].size);
            ((char *)(uintptr_t)files[i].text)[at] = others[k];
            const ptowsp_status status = use(context, files);
            assert_true(status == PTOWSP_OK || status == PTOWSP_INVALID_PARAMS ||
                        status == PTOWSP_DIFFERENT || status == PTOWSP_LIMIT_EXCEEDED);
            free((void *)(uintptr_t)files[i].text);
        }
    }
}

CONTEXT_TEST(dump_read__refuses_every_allocation) {
    hook_count = hook_refuse = 0;
    assert_ok(use(context, whole));
    const size_t count = hook_count;
    for (hook_refuse = 1; hook_refuse <= count; hook_refuse++) {
        hook_count = 0;
        assert_int_equal(use(context, whole), PTOWSP_OUT_OF_MEMORY);
    }
    hook_refuse = 0;
}

// -- what is not a dump ---------------------------------------------------------------------------

#define TASK(id, args) "{\"task_id\":" id ",\"args\":[" args "]}"
#define DEPS(tasks, edges)                                                                         \
    "{\"tasks\":[" tasks "],\"edges\":[" edges                                                     \
    "],\"tensors\":[{\"tensor_id\":1,\"buffer_addr\":64,"                                          \
    "\"buffer_numel\":100,\"dtype\":\"INT8\"}]}"
#define ARG(shape, strides, offset)                                                                \
    "{\"type\":\"INOUT\",\"tensor_id\":1,\"shape\":" shape ",\"strides\":" strides                 \
    ",\"start_offset\":" offset "}"

CONTEXT_TEST(dump_read__says_what_is_wrong) {
    static const struct {
        const char *text, *wrong;
    } cases[] = {
        {"", "an object is expected"},
        {"[]", "an object is expected"},
        {"\x1f\x8b\x08", "is compressed (gzip): unpack it first"},
        {"{}", "there are no tasks: this is no dump of PTO Runtime"},
        {"{\"name\":\"left-pad\",\"version\":\"1.0\"}", "this is no dump of PTO Runtime"},
        {"{\"tasks\":{}}", "an array is expected"},
        {"{\"tasks\":[]}}", "the text goes on after its end"},
        {"{\"tasks\":[],}", "a string is expected"},
        {"{\"tasks\":[] \"edges\":[]}", "a comma or the end of a list is expected"},
        {"{\"tasks\":[{}]}", "a task has no task_id"},
        {"{\"tasks\":[{\"task_id\":-1}]}", "a number is negative that cannot be"},
        {"{\"tasks\":[{\"task_id\":1.5}]}", "a whole number is expected"},
        {"{\"tasks\":[{\"task_id\":\"18446744073709551616\"}]}", "a number is beyond 64 bits"},
        {"{\"tasks\":[{\"task_id\":\"1x\"}]}", "a whole number is expected"},
        {"{\"tasks\":[{\"task_id\":\"\"}]}", "a whole number is expected"},
        {"{\"tasks\":[],\"x\":\"\\q\"}", "an escape is wrong"},
        {"{\"tasks\":[],\"x\":nul}", "a value is expected"},
        {DEPS(TASK("1", "") "," TASK("1", ""), ""), "task 1 is there twice"},
        {DEPS(TASK("1", ""), "{\"pred\":1}"), "an edge lacks pred or succ"},
        {DEPS(TASK("1", ""), "{\"pred\":1,\"succ\":2}"),
         "edge 0 leads to task 2, which is not there"},
        {DEPS(TASK("1", ""), "{\"pred\":2,\"succ\":2}"),
         "edge 0 leads to task 2, which is not there"},
        {DEPS(TASK("1", ""), "{\"pred\":1,\"succ\":1}"),
         "edge 0: task 1 waits for 1, which is not submitted before it"},
        {DEPS(TASK("1", "") "," TASK("2", ""),
              "{\"pred\":1,\"succ\":2},{\"pred\":2,\"succ\":1}"),  // a cycle
         "edge 1: task 1 waits for 2, which is not submitted before it"},
        {DEPS(TASK("1", "{\"type\":\"INPUT\",\"tensor_id\":5}"), ""),
         "task 1, argument 0: tensor 5 is not there"},
        {DEPS(TASK("1", ARG("[1,1,1,1,1,1]", "[1,1,1,1,1,1]", "0")), ""),
         "a tensor has more than 5 dimensions"},
        {DEPS(TASK("1", ARG("[1,1]", "[1]", "0")), ""), "shape and strides differ in length"},
        {DEPS(TASK("1", ARG("[-1]", "[1]", "0")), ""), "a shape is negative"},
        {DEPS(TASK("1", ARG("[9223372036854775808]", "[1]", "0")), ""), "beyond 63 bits"},
        {DEPS(TASK("1", ARG("[9223372036854775807]", "[1]", "0")), ""),
         "its bytes are beyond 64 bits"},
        {DEPS(TASK("1", ARG("[2]", "[9223372036854775807]", "0")), ""),
         "its bytes are beyond 64 bits"},
        {DEPS(TASK("1", ARG("[2]", "[-100]", "0")), ""), "its bytes are beyond 64 bits"},
        {DEPS(TASK("1", ARG("[2]", "[1]", "18446744073709551615")), ""),
         "its bytes are beyond 64 bits"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ptowsp_dump *dump = NULL;
        assert_invalid(dw_open(context, cases[i].text, strlen(cases[i].text), &dump));
        if (!strstr(ptowsp_context_error(context).text, cases[i].wrong)) {
            fail_msg("%s: %s", cases[i].text, ptowsp_context_error(context).text);
        }
    }
    char deep[300];
    memset(deep, '[', sizeof deep);
    memcpy(deep, "{\"x\":", 5);
    ptowsp_dump *dump = NULL;
    test_refused(context, dw_open(context, deep, sizeof deep, &dump), PTOWSP_INVALID_PARAMS, 69,
                 "dump: deps.json: byte 69: values nest too deeply");
}

// Scalars, steps of 0 and below 0, and unknown words: read, and what cannot be checked is counted.
CONTEXT_TEST(dump_read__takes_what_is_unusual) {
    static const char unusual[] =
        DEPS(TASK("1", ARG("[]", "[]", "7")) "," TASK("2", ARG("[5]", "[0]", "7")) "," TASK(
                 "3", ARG("[3]", "[-2]",
                          "11")) "," TASK("4", ARG("[0,9]", "[1,1]",
                                                   "7")) "," TASK("5", ARG("[101]", "[1]", "0")),
             "");
    ptowsp_dump *dump = NULL;
    ptowsp_dump_report report;
    assert_ok(dw_open(context, unusual, sizeof unusual - 1, &dump));
    assert_ok(ptowsp_dump_check(dump, &report));
    // Bytes 7; 7; 11, 9, 7; none; 0 to 100, of which there are 100.
    assert_int_equal(report.counts[PTOWSP_DUMP_RACE], 3 + 3);
    assert_int_equal(report.counts[PTOWSP_DUMP_OUTSIDE], 1);
    ptowsp_dump_close(dump);

    const ptowsp_dump_desc desc = {NULL, whole[0], whole[1], whole[2], whole[3]};
    static char text[4096];
    ptowsp_output_buffer buffer = {text, sizeof text, 0};
    assert_ok(ptowsp_dump_open(context, &desc, &dump));
    assert_ok(ptowsp_dump_print(dump, PTOWSP_DUMP_TEXT, ptowsp_output_to_buffer(&buffer)));
    assert_non_null(strstr(text, "unknown element type: FLOAT99, 1 times\n"));
    assert_non_null(strstr(text, "unknown argument type: OUTPUT_OF_TOMORROW, 1 times\n"));
    assert_non_null(strstr(text, "unknown source of an edge: oracle, 1 times\n"));
    assert_non_null(strstr(text, "unknown flag of an edge: later, 1 times\n"));
    assert_non_null(strstr(text, "  not checked          1\n"));
    ptowsp_dump_close(dump);
}

// Times are read without a clock, too: any value but a whole number is none, and no control can be
// replayed by it.
CONTEXT_TEST(dump_read__takes_any_clock) {
    static const struct {
        const char *text;
        uint64_t hertz;
    } clocks[] = {
        {"50000000", 50000000},      {"\"50000000\"", 50000000}, {"null", 0},     {"5e7", 0},
        {"50000000.0", 0},           {"-50000000", 0},           {"\"fast\"", 0}, {"true", 0},
        {"{\"aic\":[50000000]}", 0}, {"18446744073709551616", 0}};
    for (size_t i = 0; i < sizeof clocks / sizeof clocks[0]; i++) {
        char swimlane[300];
        snprintf(swimlane, sizeof swimlane,
                 "{\"metadata\":{\"clock_freq_hz\":%s,\"core_types\":[\"aic\"]},\"aicore_tasks\":"
                 "[[0,4294967296,1,100,200]]}",
                 clocks[i].text);
        const ptowsp_dump_desc desc = {
            NULL, whole[0], {swimlane, strlen(swimlane)}, {NULL, 0}, {NULL, 0}};
        ptowsp_dump *dump = NULL;
        assert_ok(ptowsp_dump_open(context, &desc, &dump));
        assert_int_equal(dump->clock_hz, clocks[i].hertz);
        ptowsp_dump_close(dump);
    }
}

CONTEXT_TEST(dump_read__refuses_times_that_are_none) {
    static const struct {
        const char *rows;
        ptowsp_status status;
        const char *wrong;
    } cases[] = {
        {"[0,4294967296,1,200,100,1]", PTOWSP_INVALID_PARAMS, "a task ends before it starts"},
        {"[0,4294967296,1,200]", PTOWSP_INVALID_PARAMS, "less than 5 numbers"},
        {"[0,77,1,100,200,1]", PTOWSP_DIFFERENT, "is of another run: task 77 is not in deps.json"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char swimlane[200];
        ptowsp_dump_file files[4];
        memcpy(files, whole, sizeof files);
        snprintf(swimlane, sizeof swimlane, "{\"aicore_tasks\":[%s]}", cases[i].rows);
        files[1].text = swimlane;
        files[1].size = strlen(swimlane);
        assert_int_equal(use(context, files), cases[i].status);
        assert_non_null(strstr(ptowsp_context_error(context).text, cases[i].wrong));
    }
}

CONTEXT_TEST(dump_read__has_a_limit_of_tasks) {
    dw_text t = {NULL, 0, 0};
    dw_print(&t, "{\"tasks\":[{\"task_id\":0}");
    for (uint32_t i = 1; i <= PTOWSP_DUMP_TASK_MAX; i++) {
        dw_print(&t, ",{\"task_id\":%u}", i);
    }
    dw_print(&t, "]}");
    ptowsp_dump *dump = NULL;
    test_refused(context, dw_open(context, t.data, t.size, &dump), PTOWSP_LIMIT_EXCEEDED,
                 PTOWSP_DUMP_TASK_MAX, "dump: more than 2000000 tasks");
    free(t.data);
}

static void write_file(const char *directory, const char *name, ptowsp_dump_file file) {
    char path[200];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    file_write(path, file.text, file.size);
}

CONTEXT_TEST(dump_read__reads_a_directory_as_texts) {
    char directory[] = "/tmp/ptowsp_dump_XXXXXX", command[100];
    ptowsp_dump *dump = NULL;
    ptowsp_dump_desc desc = {.directory = "/nonexistent/dump"};
    assert_int_equal(ptowsp_dump_open(context, &desc, &dump), PTOWSP_SYSTEM_FAILED);
    desc.directory = mkdtemp(directory);
    assert_non_null(desc.directory);
    assert_invalid(ptowsp_dump_open(context, &desc, &dump));
    write_file(directory, "deps.json", whole[0]);
    write_file(directory, "chip_swimlane_records.json", whole[1]);
    write_file(directory, "name_map_case.json", whole[3]);
    static char text[2][8192];
    for (int i = 0; i < 2; i++) {
        ptowsp_output_buffer buffer = {text[i], sizeof text[i], 0};
        const ptowsp_dump_desc texts = {NULL, whole[0], whole[1], {NULL, 0}, whole[3]};
        assert_ok(ptowsp_dump_open(context, i ? &texts : &desc, &dump));
        assert_ok(ptowsp_dump_print(dump, PTOWSP_DUMP_HTML, ptowsp_output_to_buffer(&buffer)));
        ptowsp_dump_close(dump);
    }
    assert_string_equal(text[0], text[1]);
    snprintf(command, sizeof command, "rm -r %s", directory);
    assert_int_equal(system(command), 0);
}

// Recorded runs: the files of one whose numbers are worked out on paper, read byte by byte; and what
// is refused, memory at every point as well. That trees read them is tested where trees are built
// (npu_tree_test.sh). The emitter's memory is compiled in, with a hook.

#define _POSIX_C_SOURCE 200809L

#include "npu_refuse.h"

#include "npu_fixture.h"
#include "npu_texts.h"

enum { ROWS = 3, COLS = 8, TEXT_MAX = 4096 };

// A run of two loops: rows of x whose length is at most 5 are multiplied by a symbol, and a kernel
// without tiles is called for each entry of a sparse axis.
typedef struct record {
    npu_fixture f;
    ptowsp_run *run;
    _Alignas(8) float x[ROWS * COLS];
    int32_t lengths[ROWS];
    uint32_t indptr[3], indices[3];
    char path[160];  // of the recording
} record;

static ptowsp_cycles multiply(const ptowsp_task *task, void *user) {
    (void)user;
    float *data = (float *)task->tiles[0].data;
    for (int64_t c = 0; c < ptowsp_task_cols(task, 0); c++) {
        data[c * task->tiles[0].col_stride] *= (float)task->args[task->axis_arg_count];
    }
    return 7;
}

static ptowsp_cycles note(const ptowsp_task *task, void *user) {
    (void)task;
    (void)user;
    return 2;
}

static const ptowsp_parse_kernel kernels[] = {
    {.name = "multiply", .fn = multiply, .source = {.text = "// elsewhere\n", .fn = "multiply"}},
    {.name = "note", .fn = note, .source = {.text = "// elsewhere\n", .fn = "note"}}};

// Kernel note is in some programs.
static void record_make(record *r, uint32_t kernel_count, const char *text) {
    memset(r, 0, sizeof *r);
    npu_fixture_begin(&r->f);
    snprintf(r->path, sizeof r->path, "%s/recording", r->f.directory);
    npu_parse(&r->f, text, kernels, kernel_count);
    npu_fixture_compile(&r->f, NULL);
    r->run = test_run_of(r->f.context, r->f.program);
}

static void bind_rows(const record *r, const char *name, float *data, int64_t row_count) {
    const ptowsp_buffer buffer = {.data = data, .rank = 2, .shape = {row_count, COLS}};
    assert_ok(ptowsp_run_bind_tensor(r->run, name, &buffer));
}

static void record_begin(record *r, const char *symbol) {
    record_make(r, 2, textf(npu_module("recorded"), symbol));
    const int32_t lengths[ROWS] = {4, 9, 5};
    const uint32_t indptr[3] = {0, 2, 3}, indices[3] = {1, 4, 0};
    for (int i = 0; i < ROWS * COLS; i++) {
        r->x[i] = (float)i;
    }
    memcpy(r->lengths, lengths, sizeof lengths);
    memcpy(r->indptr, indptr, sizeof indptr);
    memcpy(r->indices, indices, sizeof indices);
    const ptowsp_csr csr = {PTOWSP_U32, r->indptr, r->indices, 2, 3};
    bind_rows(r, "x", r->x, ROWS);
    assert_ok(ptowsp_run_bind_size(r->run, "rows", ROWS));
    assert_ok(ptowsp_run_bind_csr(r->run, "entries", &csr));
    assert_ok(ptowsp_run_bind_array(r->run, "lengths", PTOWSP_I32, r->lengths, ROWS));
    assert_ok(ptowsp_run_bind_symbol(r->run, *symbol == '"' ? "a=b" : symbol, 3));
    assert_ok(ptowsp_run_bind_slot(r->run, 2, 99));
}

static void record_end(record *r) {
    ptowsp_run_destroy(r->run);
    npu_fixture_free(&r->f);
}

static const char *read_file(const record *r, const char *name) {
    return text_of(textf("%s/%s", r->path, name));
}

static void holds(const record *r, const char *name, const void *wanted, size_t wanted_size) {
    size_t size;
    char *data = file_read(textf("%s/%s", r->path, name), &size);
    assert_int_equal(size, wanted_size);
    assert_memory_equal(data, wanted, size);
    free(data);
}

static uint64_t fnv(const void *data, size_t size) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

// The file has these bytes, and its line.
static size_t file_is(const record *r, const char *name, const void *data, size_t size,
                      char *line) {
    holds(r, name, data, size);
    return (size_t)sprintf(line, "file %s %zu %016llx\n", name, size,
                           (unsigned long long)fnv(data, size));
}

#define RECORD_TEST(name) TEST_MADE(name, record, r, record_begin(r, "factor"), record_end(r))

RECORD_TEST(record__has_what_was_bound_and_what_came_of_it) {
    float before[ROWS * COLS], after[ROWS * COLS];
    char wanted[TEXT_MAX];
    memcpy(before, r->x, sizeof before);
    for (int i = 0; i < ROWS * COLS; i++) {
        after[i] = i / COLS == 1 ? (float)i : (float)(3 * i);  // row 1 has length 9
    }
    const ptowsp_run_options options = {.cost = {.model = PTOWSP_MODEL_A2A3}};
    assert_ok(ptowsp_npu_record(r->f.context, r->run, &options, r->path));
    assert_memory_equal(r->x, after, sizeof after);
    assert_int_equal(npu_entries(r->path), 6);
    char program[40];
    assert_int_equal(
        sscanf(read_file(r, "recording"), "ptowsp recording 1\nprogram %32[0-9a-f]\n", program), 1);
    // Two tasks of 7 cycles and three of 2, one after another on the one lane: 20.
    size_t at = (size_t)snprintf(
        wanted, sizeof wanted,
        "ptowsp recording 1\nprogram %s\n--model a2a3\n--size rows=3\n"
        "--csr entries=u32@d1.bin,@d2.bin\n--array lengths=@d3.bin\n--symbol factor=3\n"
        "--slot 2=99\n--memory 1=@m1.bin\n--view x=3x8/8x1@1+0\n--expect x=@o1.bin\n"
        "--expect-slot 0=0\n--expect-slot 1=0\n--expect-slot 2=99\n--expect-slot 3=0\n"
        "--expect-slot 4=0\n--expect-slot 5=0\n--expect-slot 6=0\n--expect-slot 7=0\n"
        "--expect-cycles 20\n",
        program);
    at += file_is(r, "d1.bin", r->indptr, sizeof r->indptr, wanted + at);
    at += file_is(r, "d2.bin", r->indices, sizeof r->indices, wanted + at);
    at += file_is(r, "d3.bin", r->lengths, sizeof r->lengths, wanted + at);
    at += file_is(r, "m1.bin", before, sizeof before, wanted + at);
    at += file_is(r, "o1.bin", after, sizeof after, wanted + at);
    at += (size_t)sprintf(wanted + at, "end %016llx\n", (unsigned long long)fnv(wanted, at));
    holds(r, "recording", wanted, at);
}

// Two rows of eight columns, every element twice as far, the second one first: elements in order, memory as
// it is. The block begins with wide[0], or with wide[1], which is behind 4 bytes, so that elements are aligned
// in its file, too; the first element of the view is 16 elements further, and the last one 14 behind that.
RECORD_TEST(record__views_have_strides) {
    for (int begin = 0; begin < 2; begin++) {
        _Alignas(8) float wide[2 * 2 * COLS];
        float before[2 * 2 * COLS], after[2 * COLS];
        for (int i = 0; i < 2 * 2 * COLS; i++) {
            before[i] = wide[i] = (float)i;
        }
        const ptowsp_buffer buffer = {.data = wide + begin + 2 * COLS,
                                      .rank = 2,
                                      .shape = {2, COLS},
                                      .strides = {-2 * COLS, 2}};
        snprintf(r->path, sizeof r->path, "%s/recording%d", r->f.directory, begin);
        assert_ok(ptowsp_run_bind_tensor(r->run, "x", &buffer));
        assert_ok(ptowsp_run_bind_size(r->run, "rows", 1));
        assert_ok(ptowsp_npu_record(r->f.context, r->run, NULL, r->path));
        const char *got = read_file(r, "recording");
        assert_non_null(strstr(got, textf("--view x=2x8/-16x2@1+%d\n", 64 + 4 * begin)));
        assert_non_null(strstr(got, "--model unit\n"));
        for (int c = 0; c < COLS; c++) {  // one row is multiplied
            after[c] = (float)(3 * (begin + 2 * COLS + 2 * c));
            after[COLS + c] = (float)(begin + 2 * c);
        }
        holds(r, "m1.bin", before, (31 + (size_t)begin) * sizeof before[0]);
        holds(r, "o1.bin", after, sizeof after);
    }
}

static void refused(record *r, ptowsp_run *run, const ptowsp_run_options *options, const char *path,
                    ptowsp_status status, const char *text) {
    assert_int_equal(ptowsp_npu_record(r->f.context, run, options, path), status);
    assert_string_equal(ptowsp_context_error(r->f.context).text, text);
    assert_int_equal(npu_entries(r->f.directory), 0);
}

static ptowsp_cycles one_cycle(const ptowsp_insn *insn, void *user) {
    (void)insn;
    (void)user;
    return 1;
}

RECORD_TEST(record__refuses_what_trees_cannot_check) {
    const char *const nothing = "emit: there is no run to record, or no directory for it";
    const char *const no_data = "emit: a recording needs data, and a cost model that trees have";
    const ptowsp_run_options timed = {.mode = PTOWSP_RUN_TIME_ONLY};
    const ptowsp_run_options users = {.cost = {.model = PTOWSP_MODEL_USER, .fn = one_cycle}};
    refused(r, NULL, NULL, r->path, PTOWSP_INVALID_PARAMS, nothing);
    refused(r, r->run, NULL, NULL, PTOWSP_INVALID_PARAMS, nothing);
    refused(r, r->run, NULL, "", PTOWSP_INVALID_PARAMS, nothing);
    refused(r, r->run, &timed, r->path, PTOWSP_INVALID_PARAMS, no_data);
    refused(r, r->run, &users, r->path, PTOWSP_INVALID_PARAMS, no_data);
    const ptowsp_run_options without = {.cost = {.model = PTOWSP_MODEL_USER}};
    const ptowsp_run_options unknown = {.cost = {.model = (ptowsp_model)99}};
    refused(r, r->run, &without, r->path, PTOWSP_INVALID_PARAMS, no_data);
    refused(r, r->run, &unknown, r->path, PTOWSP_INVALID_PARAMS, no_data);
    const ptowsp_core_timing timing = ptowsp_core_timing_of(PTOWSP_MODEL_910B);
    const ptowsp_run_options own = {.cost = {.model = PTOWSP_MODEL_910B, .timing = &timing}};
    refused(r, r->run, &own, r->path, PTOWSP_INVALID_PARAMS, no_data);
    // What the run itself refuses.
    r->lengths[0] = 5;
    assert_ok(ptowsp_run_bind_size(r->run, "rows", ROWS + 1));
    assert_int_not_equal(ptowsp_npu_record(r->f.context, r->run, NULL, r->path), PTOWSP_OK);
    assert_int_equal(npu_entries(r->f.directory), 0);
    record_end(r);
    record_begin(r, "\"a=b\"");
    refused(r, r->run, NULL, r->path, PTOWSP_UNSUPPORTED,
            "emit: recording: a line cannot have the name a=b");
}

RECORD_TEST(record__does_not_replace_a_directory) {
    assert_ok(ptowsp_npu_record(r->f.context, r->run, NULL, r->path));
    const char *got = read_file(r, "recording");
    test_invalid(r->f.context, ptowsp_npu_record(r->f.context, r->run, NULL, r->path),
                 textf("emit: %s exists, and is not to be replaced", r->path));
    assert_string_equal(read_file(r, "recording"), got);
}

// -- several tensors ------------------------------------------------------------------------------

// Tasks over two tensors and a plan; others over a tensor without elements; one that nobody uses.
typedef struct many {
    record r;
    _Alignas(8) float both[5 * COLS];  // x is rows 0 to 2, y 2 to 4
    ptowsp_work units[2];
    uint32_t begin[3], merge_begin[3];
} many;

static void many_begin(many *m) {
    memset(m, 0, sizeof *m);
    record_make(&m->r, 1, npu_module("many"));
    for (int i = 0; i < 5 * COLS; i++) {
        m->both[i] = (float)i;
    }
    // Two lanes, a unit each, and no merges.
    for (uint32_t i = 0; i < 2; i++) {
        m->units[i].work_id = i;
        m->units[i].params[1] = 4 + i;
        m->begin[i + 1] = i + 1;
    }
    const ptowsp_attention_plan plan = {.units = m->units,
                                        .unit_capacity = 2,
                                        .unit_count = 2,
                                        .unit_begin = m->begin,
                                        .lane_count = 2,
                                        .merge_begin = m->merge_begin};
    bind_rows(&m->r, "x", m->both, 3);
    bind_rows(&m->r, "y", m->both + 2 * COLS, 3);
    bind_rows(&m->r, "z", m->both, 0);
    assert_ok(ptowsp_run_bind_size(m->r.run, "rows", 3));
    assert_ok(ptowsp_run_bind_size(m->r.run, "none", 0));
    assert_ok(ptowsp_run_bind_plan(m->r.run, "kv", &plan));
}

// Tensors that share memory are views of one block; a plan is the arrays that it has.
TEST(record__tensors_that_overlap_are_one_block) {
    many m;
    float before[5 * COLS], after[3 * COLS];
    many_begin(&m);
    memcpy(before, m.both, sizeof before);
    test_ok(m.r.f.context, ptowsp_npu_record(m.r.f.context, m.r.run, NULL, m.r.path));
    const char *got = read_file(&m.r, "recording");
    assert_non_null(strstr(got, "--memory 1=@m1.bin\n--view x=3x8/8x1@1+0\n"
                                "--view y=3x8/8x1@1+64\n--view z=0x8/8x1@1+0\n"));
    assert_non_null(strstr(got, "--plan kv=@d1.bin,@d2.bin,@d3.bin,@d4.bin\n"));
    assert_null(strstr(got, "unused"));
    for (int i = 0; i < 3 * COLS; i++) {
        after[i] = 2 * before[i];
    }
    holds(&m.r, "m1.bin", before, sizeof before);
    holds(&m.r, "d1.bin", m.units, sizeof m.units);
    holds(&m.r, "d2.bin", m.begin, sizeof m.begin);
    holds(&m.r, "d3.bin", "", 0);
    holds(&m.r, "d4.bin", m.merge_begin, sizeof m.merge_begin);
    holds(&m.r, "o1.bin", after, sizeof after);  // x
    holds(&m.r, "o3.bin", "", 0);                // z
    record_end(&m.r);
}

// -- names ----------------------------------------------------------------------------------------

enum { NAMED_SIZE, NAMED_CSR, NAMED_LENGTHS, NAMED_ARRAY, NAMED_PLAN, NAMED_TENSOR, NAMED_COUNT };

// A program with one thing of each kind, some more that nothing uses, and rows of axes, which have no
// names; thing `named` has one with "=".
static void named_begin(record *r, int named) {
    static const uint32_t indptr[] = {0, 1}, indices[] = {0};
    static const int32_t lengths[ROWS] = {1, 0, 2}, sizes[ROWS] = {4, 5, 6};
    static ptowsp_work units[2];
    static _Alignas(8) float blocks[3 * ROWS * COLS];
    const char *names[NAMED_COUNT] = {"rows", "routes", "pages", "sizes", "work", "x"};
    const char *quoted[NAMED_COUNT];
    for (int i = 0; i < NAMED_COUNT; i++) {
        names[i] = i == named ? "a=b" : names[i];
        quoted[i] = i == named ? "\"a=b\"" : names[i];
    }
    record_make(r, 1,
                textf(npu_module("named"), quoted[0], quoted[1], quoted[2], quoted[3], quoted[4],
                      quoted[5]));
    for (int i = 0; i < 3 * ROWS * COLS; i++) {
        blocks[i] = 1;
    }
    const ptowsp_csr csr = {PTOWSP_U32, indptr, indices, 1, 1};
    // Two blocks of memory, the second of which is declared first.
    bind_rows(r, "far", blocks + 2 * ROWS * COLS, ROWS);
    bind_rows(r, names[NAMED_TENSOR], blocks, ROWS);
    assert_ok(ptowsp_run_bind_size(r->run, names[NAMED_SIZE], ROWS));
    assert_ok(ptowsp_run_bind_csr(r->run, names[NAMED_CSR], &csr));
    assert_ok(ptowsp_run_bind_lengths(r->run, names[NAMED_LENGTHS], PTOWSP_I32, lengths, ROWS));
    assert_ok(ptowsp_run_bind_array(r->run, names[NAMED_ARRAY], PTOWSP_I32, sizes, ROWS));
    assert_ok(ptowsp_run_bind_work(r->run, names[NAMED_PLAN], units, 2));
}

TEST(record__names_are_parts_of_lines) {
    for (int named = 0; named < NAMED_COUNT; named++) {
        record r;
        named_begin(&r, named);
        refused(&r, r.run, NULL, r.path, PTOWSP_UNSUPPORTED,
                "emit: recording: a line cannot have the name a=b");
        record_end(&r);
    }
}

// Work without lanes is one array; what nothing uses, and is not bound, is no line.
TEST(record__has_no_line_of_what_is_not_bound) {
    record r;
    named_begin(&r, -1);
    test_ok(r.f.context, ptowsp_npu_record(r.f.context, r.run, NULL, r.path));
    const char *got = read_file(&r, "recording");
    assert_null(strstr(got, "idle"));
    // The memory of x lies before that of far: 3 rows of 32 bytes each.
    assert_non_null(strstr(got, "--memory 1=@m1.bin\n--memory 2=@m2.bin\n"
                                "--view far=3x8/8x1@2+0\n--view x=3x8/8x1@1+0\n"));
    assert_non_null(strstr(got, "--lengths pages=i32@d"));
    assert_non_null(strstr(got, "--array sizes=@d"));
    const char *plan = strstr(got, "--plan work=@d");
    assert_non_null(plan);
    assert_true(strcspn(plan, ",") > strcspn(plan, "\n"));
    record_end(&r);
}

TEST(record__memory_that_is_refused_leaves_nothing) {
    many m;
    many_begin(&m);
    bool is_done = false;
    size_t refused_count = 0;
    for (size_t n = 1; !is_done; n++) {
        hooks.allocations = 0;
        hooks.refuse_at = n;
        const ptowsp_status status = ptowsp_npu_record(m.r.f.context, m.r.run, NULL, m.r.path);
        hooks.refuse_at = 0;
        is_done = hooks.allocations < n;
        assert_int_equal(hooks.live, 0);
        if (is_done) {
            assert_int_equal(status, PTOWSP_OK);
        } else {
            assert_int_equal(status, PTOWSP_OUT_OF_MEMORY);
            assert_int_equal(npu_entries(m.r.f.directory), 0);
            refused_count++;
        }
    }
    assert_true(refused_count > 20);
    record_end(&m.r);
}

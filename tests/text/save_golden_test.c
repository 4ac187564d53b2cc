// A saved program that is kept in the repository, tests/golden/sums.saved: it loads, runs, and is saved again
// to the same bytes, on every machine; tests/machines.sh runs this where bytes have the other order. It has
// what depends on it: arrays of i16, f16, f32 and i32, transient memory, tile kernels, a checksum.
//
// Expected values are those of tests/golden/sums.py, which knows nothing of the library. Only the hash of
// the program, whose kernels count by what they lower to, was taken from a run on a little-endian machine:
// it must be the same elsewhere.

#include "test.h"

enum { ROWS = 10, COLS = 8, BYTES_MAX = 4096 };

static const ptowsp_fingerprint expected = {
    UINT64_C(0x243cd0e1002ce9b1), UINT64_C(0xab8675a64a38696c), UINT64_C(0x1f11af7dbe89428d),
    UINT64_C(0xeb3ec4eb4f8e1abf), UINT64_C(0x2e836a44c3e21686)};

static const int32_t wanted[ROWS] = {-336, -228, -192, -84, -48, 60, 96, 204, 240, 348};

static char file_bytes[BYTES_MAX];
static size_t file_size;

static int load_file(void **state) {
    char path[512];
    (void)state;
    snprintf(path, sizeof path, "%s", __FILE__);
    snprintf(strstr(path, "text/save_golden_test.c"), 32, "golden/sums.saved");
    FILE *file = fopen(path, "rb");
    if (!file) {
        return 1;
    }
    file_size = fread(file_bytes, 1, sizeof file_bytes - 1, file);
    fclose(file);
    return 0;
}

// What the program is run with.
typedef struct data {
    uint16_t x[ROWS][COLS];  // f16
    float gain[COLS];
    int32_t y[ROWS];
} data;

static data data_make(void) {
    data d;
    memset(&d, 0xff, sizeof d);
    for (int r = 0; r < ROWS; r++) {
        for (int c = 0; c < COLS; c++) {
            d.x[r][c] = ptowsp_f16_from_f32((float)(r - c) + 0.5f * (float)(r % 2));
        }
    }
    for (int c = 0; c < COLS; c++) {
        d.gain[c] = (float)(2 * (c + 1));
    }
    return d;
}

static void bind(ptowsp_run *run, data *d) {
    static const int32_t tiles[] = {2, 1};
    static const int16_t first[] = {0, 8};
    const ptowsp_buffer x = {.data = d->x, .rank = 2, .shape = {ROWS, COLS}};
    const ptowsp_buffer gain = {.data = d->gain};
    const ptowsp_buffer y = {.data = d->y, .rank = 2, .shape = {ROWS, 1}};
    assert_ok(ptowsp_run_bind_tensor(run, "x", &x));
    assert_ok(ptowsp_run_bind_tensor(run, "gain", &gain));
    assert_ok(ptowsp_run_bind_tensor(run, "y", &y));
    assert_ok(ptowsp_run_bind_size(run, "requests", 2));
    assert_ok(ptowsp_run_bind_symbol(run, "rows", ROWS));
    assert_ok(ptowsp_run_bind_array(run, "tiles", PTOWSP_I32, tiles, 2));
    assert_ok(ptowsp_run_bind_array(run, "first", PTOWSP_I16, first, 2));
}

SUITE_AROUND(load_file, NULL)

TEST(save_golden__loads_and_runs_with_the_fingerprint_of_every_machine) {
    test_memory memory = {0};
    const ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &memory};
    ptowsp_program *program;
    ptowsp_fingerprint found;
    data d = data_make();
    ptowsp_context *context = test_context(&desc);
    ptowsp_status status =
        ptowsp_program_load(context, file_bytes, file_size, NULL, &program, NULL);
    if (status != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(context).text);
    }
    ptowsp_run *run = test_run_of(context, program);
    bind(run, &d);
    assert_ok(ptowsp_run_expect(run, &expected));
    status = ptowsp_run_execute(run, NULL);
    assert_memory_equal(d.y, wanted, sizeof wanted);
    assert_int_equal(ptowsp_run_result(run)->makespan_cycles, 454);
    assert_int_equal(ptowsp_run_result(run)->task_count, 6);
    assert_ok(ptowsp_run_fingerprint(run, &found));
    if (status != PTOWSP_OK) {
        fail_msg("%s; found %016llx %016llx %016llx %016llx %016llx",
                 ptowsp_context_error(context).text, (unsigned long long)found.program,
                 (unsigned long long)found.bindings, (unsigned long long)found.inputs,
                 (unsigned long long)found.results, (unsigned long long)found.time);
    }
    // A strict run of other data is refused before it begins.
    d.gain[7] = 17.0f;
    assert_int_equal(ptowsp_run_execute(run, NULL), PTOWSP_DIFFERENT);
    test_destroy(run, program, NULL, context);
    assert_int_equal(memory.live_bytes, 0);
}

// The text behind the first line is a module's, with its schedule: parsed and saved again.
CONTEXT_TEST(save_golden__is_saved_again_to_the_same_bytes) {
    static char again[BYTES_MAX];
    ptowsp_output_buffer buffer = {again, sizeof again, 0};
    const ptowsp_schedule schedule = {.lane_count = 1};
    const ptowsp_program_desc desc = {NULL, &schedule};
    ptowsp_module *module;
    const char *text = strchr(file_bytes, '\n') + 1;
    const char *end = strstr(text, "program sums\n");
    assert_non_null(end);
    test_ok(context, ptowsp_module_parse(context, text, (size_t)(end - text), NULL, &module, NULL));
    assert_ok(ptowsp_program_save(context, module, &desc, ptowsp_output_to_buffer(&buffer)));
    assert_string_equal(again, file_bytes);
    ptowsp_module_destroy(module);
}

// Kernels that are PTO-ISA sources: four in the style of PTO-ISA's demos, one of them for cube and
// vector cores, go through unchanged, and give in a built tree what they give in double precision.

#include "npu_cache.h"
#include "npu_files.h"
#include "npu_fixture.h"
#include "npu_texts.h"

#include <math.h>

enum { BLOCKS = 3, TOTAL = 4000, ROWS = 37, COLS = 64, PITCH = 80, M = 32, K = 64, N = 48 };
enum { QUERIES = 21, KEYS = 192, HEAD = 64, FIFOS = 5 * 32 * 64 };  // of attention

typedef struct memory {
    float a[TOTAL], b[TOTAL], sum[TOTAL];
    float x[ROWS * PITCH], gamma[COLS], y[ROWS * PITCH];
    float left[M * K], right[K * N], product[M * N];
    uint16_t q[QUERIES * HEAD], k[KEYS * HEAD], v[KEYS * HEAD];
    float heads[QUERIES * HEAD], fifos[FIFOS];
} memory;

static const ptowsp_pto_source no_source,
    add_source = {.file = "tests/npu/own/add.cpp",
                  .entry = "kernel_entry",
                  .args = {{PTOWSP_PTO_DATA, 0, 0},
                           {PTOWSP_PTO_DATA, 1, 0},
                           {PTOWSP_PTO_DATA, 2, 0},
                           {PTOWSP_PTO_COLS, 0, 0}},
                  .block = {.value = PTOWSP_PTO_AXIS},
                  .block_count = {.value = PTOWSP_PTO_NUMBER, .number = BLOCKS}},
    norm_source = {.file = "tests/npu/own/rmsnorm.cpp",
                   .entry = "kernel_entry",
                   .args = {{PTOWSP_PTO_DATA, 0, 0},
                            {PTOWSP_PTO_DATA, 1, 0},
                            {PTOWSP_PTO_DATA, 2, 0},
                            {PTOWSP_PTO_ROWS, 1, 0},
                            {PTOWSP_PTO_ROW_STRIDE, 1, 0}}},
    product_source = {.file = "tests/npu/own/matmul.cpp"},
    attend_source = {.file = "tests/npu/own/attend.hpp",  // on the cube core and both vector cores
                     .is_mixed = true,
                     .args = {{PTOWSP_PTO_NUMBER, 0, 0},
                              {PTOWSP_PTO_DATA, 4, 0},
                              {PTOWSP_PTO_DATA, 1, 0},
                              {PTOWSP_PTO_DATA, 2, 0},
                              {PTOWSP_PTO_DATA, 3, 0},
                              {PTOWSP_PTO_DATA, 0, 0},
                              {PTOWSP_PTO_ROWS, 1, 0},
                              {PTOWSP_PTO_ROWS, 2, 0}}};

// Three blocks of add, then rmsnorm, matmul and attention, each unchanged. add and rmsnorm have the same
// entry, extern "C", and templates of one name and signature.
static void program_make(npu_fixture *f, const char *cycles) {
    static const ptowsp_parse_kernel kernels[] = {{.name = "add", .pto = &add_source},
                                                  {.name = "rmsnorm", .pto = &norm_source},
                                                  {.name = "matmul", .pto = &product_source},
                                                  {.name = "attend", .pto = &attend_source}};
    npu_parse(f, textf(npu_module("own"), cycles, cycles, cycles, cycles), kernels, 4);
    npu_fixture_compile(f, NULL);
}

static void tensor_bind(ptowsp_run *run, const char *name, void *data, int64_t rows, int64_t cols,
                        int64_t pitch) {
    ptowsp_buffer buffer = {.data = data,
                            .rank = 2,
                            .shape[0] = rows,
                            .shape[1] = cols,
                            .strides[0] = pitch,
                            .strides[1] = 1};
    assert_ok(ptowsp_run_bind_tensor(run, name, &buffer));
}

// n / 16 as f16, for |n| of 16 at most; and back.
static uint16_t half_of(int n) {
    unsigned size = (unsigned)(n < 0 ? -n : n), exponent = 11;
    if (size == 0) {
        return 0;
    }
    for (; size < 16; exponent--) {
        size *= 2;
    }
    return (uint16_t)((n < 0 ? 0x8000u : 0) | (exponent + 4) << 10 | (size - 16) << 6);
}

static double half_value(uint16_t half) {
    double size = (double)(16 + (half >> 6 & 15)) / 16;
    for (int e = half >> 10 & 31; e < 15; e++) {
        size /= 2;
    }
    return (half & 0x7fff) == 0 ? 0 : half & 0x8000 ? -size : size;
}

static void memory_bind(ptowsp_run *run, memory *data) {
    memset(data, 0, sizeof *data);
    uint32_t state = 7;
    float *const inputs[] = {data->a, data->b, data->x, data->gamma, data->left, data->right};
    const int counts[] = {TOTAL, TOTAL, ROWS * PITCH, COLS, M * K, K * N};
    TEST_GRID(int, i, 6, j, counts[i]) {
        state = state * 1664525u + 1013904223u;
        inputs[i][j] = (float)(int32_t)(state >> 8) / (1 << 23) - 1.0f;
    }
    uint16_t *const halves[] = {data->q, data->k, data->v};
    const int half_counts[] = {QUERIES * HEAD, KEYS * HEAD, KEYS * HEAD};
    for (int i = 0; i < 3; i++) {  // sixteenths of -1 to 1, exactly
        for (int j = 0; j < half_counts[i]; j++) {
            state = state * 1664525u + 1013904223u;
            halves[i][j] = half_of((int)(state >> 27) - 16);
        }
    }
    tensor_bind(run, "q", data->q, QUERIES, HEAD, HEAD);
    tensor_bind(run, "k", data->k, KEYS, HEAD, HEAD);
    tensor_bind(run, "v", data->v, KEYS, HEAD, HEAD);
    tensor_bind(run, "heads", data->heads, QUERIES, HEAD, HEAD);
    tensor_bind(run, "fifos", data->fifos, 1, FIFOS, FIFOS);
    tensor_bind(run, "a", data->a, 1, TOTAL, TOTAL);
    tensor_bind(run, "b", data->b, 1, TOTAL, TOTAL);
    tensor_bind(run, "sum", data->sum, 1, TOTAL, TOTAL);
    tensor_bind(run, "x", data->x, ROWS, COLS, PITCH);
    tensor_bind(run, "gamma", data->gamma, 1, COLS, COLS);
    tensor_bind(run, "y", data->y, ROWS, COLS, PITCH);
    tensor_bind(run, "left", data->left, M, K, K);
    tensor_bind(run, "right", data->right, K, N, N);
    tensor_bind(run, "product", data->product, M, N, N);
}

static void near(double is, double wanted, double scale) {
    double error = is > wanted ? is - wanted : wanted - is;
    assert_true(error <= 1e-6 * scale);
}

static double root(double number) {
    double value = number > 1 ? number : 1;
    for (int i = 0; i < 100; i++) {
        value = (value + number / value) / 2;
    }
    return value;
}

static void memory_check(const memory *data) {
    for (int i = 0; i < TOTAL; i++) {
        assert_true(data->sum[i] == data->a[i] + data->b[i]);
    }
    for (int r = 0; r < ROWS; r++) {
        double sum = 0;
        for (int c = 0; c < COLS; c++) {
            sum += (double)data->x[r * PITCH + c] * data->x[r * PITCH + c];
        }
        for (int c = 0; c < PITCH; c++) {
            double wanted =
                c < COLS ? data->x[r * PITCH + c] / root(sum / COLS + 1.0 / 65536) * data->gamma[c]
                         : 0;
            near(data->y[r * PITCH + c], wanted, 4);
        }
    }
    TEST_GRID(int, r, M, c, N) {
        double sum = 0;
        for (int k = 0; k < K; k++) {
            sum += (double)data->left[r * K + k] * data->right[k * N + c];
        }
        near(data->product[r * N + c], sum, K);
    }
}

// Attention in double. Weights are f16 on their way to the cube core: 2^-11 of |v| <= 1.
static void heads_check(const memory *data) {
    for (int r = 0; r < QUERIES; r++) {
        double weights[KEYS], sum = 0;
        for (int n = 0; n < KEYS; n++) {
            double score = 0;
            for (int d = 0; d < HEAD; d++) {
                score += half_value(data->q[r * HEAD + d]) * half_value(data->k[n * HEAD + d]) / 8;
            }
            weights[n] = exp(score);
            sum += weights[n];
        }
        for (int d = 0; d < HEAD; d++) {
            double wanted = 0;
            for (int n = 0; n < KEYS; n++) {
                wanted += weights[n] / sum * half_value(data->v[n * HEAD + d]);
            }
            near(data->heads[r * HEAD + d] / 500, wanted / 500, 1);
        }
    }
}

// Runs the tree with 1 to 4 threads: the makespan is one number, which it returns.
static uint64_t execute(npu_fixture *f, ptowsp_npu *npu, ptowsp_run *run, memory *data,
                        ptowsp_model model) {
    uint64_t makespan = 0;
    for (uint32_t threads = 1; threads <= 4; threads++) {
        ptowsp_npu_result result;
        ptowsp_npu_options options = {.aicpu_count = threads, .cost.model = model};
        memory_bind(run, data);
        test_ok(f->context, ptowsp_npu_execute(npu, run, &options, NULL, 0, &result));
        memory_check(data);
        heads_check(data);
        assert_true(threads == 1 || result.makespan_cycles == makespan);
        assert_int_equal(result.task_count, BLOCKS + 3);
        makespan = result.makespan_cycles;
    }
    return makespan;
}

// -- what runs ------------------------------------------------------------------------------------

SUITE_AROUND(npu_cache_begin, npu_cache_end)

#define BEGUN_TEST(name) TEST_MADE(name, npu_fixture, f, npu_fixture_begin(f), npu_fixture_free(f))

BEGUN_TEST(own__demo_kernels_run_unchanged_and_are_counted) {
    static memory data;
    program_make(f, "");
    ptowsp_npu *npu = npu_cache_build(f->context, f->program);
    ptowsp_run *run = test_run_of(f->context, f->program);
    uint64_t unit = execute(f, npu, run, &data, PTOWSP_MODEL_UNIT);
    uint64_t a2a3 = execute(f, npu, run, &data, PTOWSP_MODEL_A2A3);
    // By the bandwidth of 100.9 GiB/s at 1.85 GHz, loading a and b alone takes 546 cycles.
    assert_true(unit > 0 && a2a3 != unit && a2a3 > 546);
    // Without fn the library itself does not run it, and does not know its time.
    memory_bind(run, &data);
    test_refused(f->context, ptowsp_run_execute(run, NULL), PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                 "run: kernel add is a PTO-ISA source without fn: it runs in a tree "
                 "(ptowsp_npu_emit), or give it an fn that is built with ptoisa_shim.h");
    ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    assert_int_equal(ptowsp_run_execute(run, &options), PTOWSP_UNSUPPORTED);
    ptowsp_npu_destroy(npu);
    ptowsp_run_destroy(run);
}

BEGUN_TEST(own__sources_and_their_headers_are_in_the_tree_byte_for_byte) {
    const char *const paths[][2] = {
        {"tests/npu/own/add.cpp", "aicore/sources/add/add.hpp"},
        {"tests/npu/own/slots.hpp", "aicore/sources/add/slots.hpp"},
        {"tests/npu/own/rmsnorm.cpp", "aicore/sources/rmsnorm/rmsnorm.hpp"},
        {"tests/npu/own/matmul.cpp", "aicore/sources/matmul/matmul.hpp"},
        {"tests/npu/own/attend.hpp", "aicore/sources/attend/attend.hpp"},
    };
    program_make(f, ", 5 cycles");
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        assert_string_equal(npu_files_of(f->context, f->program, paths[i][1]),
                            text_of(paths[i][0]));
    }
    // Time is known where cycles are given: the blocks of add are one after the other.
    static memory data;
    ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    ptowsp_run *run = test_run_of(f->context, f->program);
    memory_bind(run, &data);
    assert_ok(ptowsp_run_execute(run, &options));
    assert_true(ptowsp_run_result(run)->busy_cycles == 5 * (BLOCKS + 3));
    ptowsp_run_destroy(run);
}

// -- what is refused ------------------------------------------------------------------------------

// Builds a program of one task of a kernel, and may run it; returns the error.
static ptowsp_error error_of(const ptowsp_pto_source *pto, bool is_run) {
    const ptowsp_parse_kernel kernel = {.name = "add", .pto = pto};
    npu_fixture f;
    npu_fixture_begin(&f);
    npu_parse(&f, npu_module("one"), &kernel, 1);
    npu_fixture_compile(&f, NULL);
    ptowsp_npu *npu = NULL;
    const ptowsp_npu_build_desc build = {npu_cache, NULL, npu_cache_options()};
    ptowsp_status status = ptowsp_npu_build(f.context, f.program, &build, &npu);
    if (is_run && status == PTOWSP_OK) {
        float data[3][64] = {{0}};
        ptowsp_run *run = test_run_of(f.context, f.program);
        tensor_bind(run, "a", data[0], 1, 64, 64);
        tensor_bind(run, "b", data[1], 1, 64, 64);
        tensor_bind(run, "c", data[2], 1, 64, 64);
        status = ptowsp_npu_execute(npu, run, NULL, NULL, 0, NULL);
        ptowsp_run_destroy(run);
    }
    ptowsp_npu_destroy(npu);
    ptowsp_error error = ptowsp_context_error(f.context);
    assert_int_equal(error.status, status);
    npu_fixture_free(&f);
    return error;
}

static void is_error(const ptowsp_error *error, ptowsp_status status, const char *part) {
    if (error->status != status || !strstr(error->text, part)) {
        fail_msg("%d, without \"%s\": %s", error->status, part, error->text);
    }
}

#define LAUNCH "void start(void *s) { add<<<1, nullptr, s>>>(nullptr, nullptr, nullptr); }\n"
#define ENTRY  "void add(float *, float *, float *) {}\n"

// Hosts' parts as demos have them go through the compiler, which has no acl/acl.h: each of four sources has
// them under conditions that one word makes false.
TEST(own__launches_that_the_simulator_does_not_see_are_not_seen_here) {
    static const char *const conditions[4][4][2] = {
        {{"#ifndef __CPU_SIM\n", "#endif\n"},
         {"#  if !defined ( __CPU_SIM ) && !defined(__COSTMODEL)\n", "#endif\n"},
         {"#ifndef __CPU_SIM\n#ifdef OWN\n", "#endif\n#endif\n"}},
        {{"#ifndef __COSTMODEL\n", "#endif\n"}},
        {{"#ifdef __CPU_SIM\n#else\n", "#endif\n"},
         {"#ifndef __CCE_AICORE__\n#else\n", "#endif\n"}},
        {{"#if defined(OWN) && ! defined __COSTMODEL\n", "#endif\n"}}};
    for (int word = 0; word < 4; word++) {
        char text[4096] =
            "#define OWN\n#include <pto/pto-inst.hpp>\n#include <pto/common/fifo.hpp>\n"
            "#include <pto/cpu/MXTypes.hpp>\n#include <pto/cpu/tile_offsets.hpp>\n"
            "PTO_INTERNAL " ENTRY;
        size_t length = strlen(text);
        for (int i = 0; i < 4 && conditions[word][i][0]; i++) {
            length += (size_t)snprintf(text + length, sizeof text - length,
                                       "%s#include \"acl/acl.h\"\nnamespace host%d {\n" LAUNCH
                                       "int main() { start(nullptr); aclFinalize(); }\n}\n%s",
                                       conditions[word][i][0], i, conditions[word][i][1]);
        }
        assert_true(length < sizeof text);
        ptowsp_pto_source pto = no_source;
        pto.text = text;
        ptowsp_error error = error_of(&pto, true);
        assert_string_equal(error.text, "");
        assert_int_equal(error.status, PTOWSP_OK);
    }
    // Under a condition of the author's own the compiler has the last word.
    ptowsp_pto_source pto = no_source;
    pto.text = ENTRY "#if defined(__CPU_SIM) || !defined(OWN)\n" LAUNCH "#endif\n";
    ptowsp_error error = error_of(&pto, false);
    is_error(&error, PTOWSP_SYSTEM_FAILED, "aicore/sources/add/add.hpp:3:");
}

TEST(own__mistakes_in_sources_are_told_by_the_compiler) {
    ptowsp_pto_source pto = no_source;
    pto.text = "void add(float *, float *, float *)\n{\n    int x = ;\n}\n";
    ptowsp_error error = error_of(&pto, false);
    is_error(&error, PTOWSP_SYSTEM_FAILED, "aicore/sources/add/add.hpp:3:");
    is_error(&error, PTOWSP_SYSTEM_FAILED, "error: expected");
    pto.text = "void add(float *, float *)\n{\n}\n";
    error = error_of(&pto, false);
    is_error(&error, PTOWSP_SYSTEM_FAILED, "aicore/kernels/add.cpp:");
    pto.text = "void add(float *, float *, int *)\n{\n}\n";
    error = error_of(&pto, false);
    is_error(&error, PTOWSP_SYSTEM_FAILED, "aicore/kernels/add.cpp:");
    // What a device refuses is found when it runs; in the mode as the simulator that is permitted,
    // and the flag that nobody takes is found.
    pto.text = "#include <pto/pto-inst.hpp>\nvoid add(float *, float *, float *)\n{\n"
               "    pto::Tile<pto::TileType::Vec, float, 1, 8> x;\n"
               "    TASSIGN(x, 0);\n    TRSQRT(x, x);\n"
               "    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID3);\n}\n";
    error = error_of(&pto, true);
    is_error(&error, PTOWSP_KERNEL_FAILED, "TRSQRT: dst must not be src on A2/A3");
    pto.is_as_simulator = true;
    error = error_of(&pto, true);
    is_error(&error, PTOWSP_KERNEL_FAILED, "V to MTE3");
}

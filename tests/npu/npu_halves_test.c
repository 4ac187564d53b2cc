// Kernels for cube and vector cores as emitted C++: two halves whose vector cores share rows, or not,
// against the library (npu_kernel_compare.h), for each number of rows; and emitted halves that are
// damaged by one line, which must be seen.

#define _POSIX_C_SOURCE 200809L

#include "kernel_random.h"
#include "npu_files.h"
#include "npu_kernel_compare.h"
#include "npu_texts.h"

enum { ROWS = 9 };  // of tasks: 1 to 9

typedef void (*half_scene)(kt *t);

static kt_value narrow(kt *t, kt_value x) {
    return kt_cvt(t, x, PTOWSP_F16, PTOWSP_ROUND_NEAREST);
}

static kt_value exp_of_difference(kt *t, kt_value x) {
    return kt_unary(t, KT_UNARY_exp, kt_sub(t, x, kt_rowmax(t, x)));
}

// softmax(q k) v: rows by themselves.
static void scene_attention(kt *t) {
    kt_value q = kt_in(t, PTOWSP_F16, ROWS, 24), k = kt_in(t, PTOWSP_F16, 24, 40);
    kt_value v = kt_in(t, PTOWSP_F16, 40, 32);
    kt_value e = exp_of_difference(t, kt_matmul(t, q, k));
    kt_value sum = kt_rowsum(t, e);
    kt_keep(t, kt_div(t, kt_matmul(t, narrow(t, e), v), sum));
}

// Gate, up and down of a Llama block: (silu(x g) * (x u)) d.
static void scene_block(kt *t) {
    kt_value x = kt_in(t, PTOWSP_F16, ROWS, 32);
    kt_value g = kt_matmul(t, x, kt_in(t, PTOWSP_F16, 32, 48));
    kt_value u = kt_matmul(t, x, kt_in(t, PTOWSP_F16, 32, 48));
    kt_value minus = kt_unary(t, KT_UNARY_exp, kt_mul(t, g, kt_const(t, -1)));
    kt_value h = kt_mul(t, kt_div(t, g, kt_add(t, minus, kt_const(t, 1))), u);
    kt_keep_as(t, kt_matmul(t, narrow(t, h), kt_in(t, PTOWSP_F16, 48, 32)), PTOWSP_F16);
}

// The residual of a Llama block is added to a product, and its rows are normed.
static void scene_output(kt *t) {
    kt_value a = kt_in(t, PTOWSP_F16, ROWS, 32), w = kt_in(t, PTOWSP_F16, 32, 40);
    kt_value y = kt_add(t, kt_matmul(t, a, w), kt_in(t, PTOWSP_F32, ROWS, 40));
    kt_value mean = kt_rowmean(t, kt_mul(t, y, y));
    kt_keep(t, y);
    kt_keep(t, kt_mul(t, y, kt_rsqrt(t, kt_add(t, mean, kt_const(t, 1e-5)))));
}

// Behind row 6 there are no rows for most tasks, and then none for either vector core.
static void scene_slice(kt *t) {
    kt_value a = kt_in(t, PTOWSP_F16, ROWS, 16), b = kt_in(t, PTOWSP_F16, 16, 24);
    kt_value x = kt_matmul(t, kt_slice(t, a, 6, 0, 3, 16), b);
    kt_keep(t, kt_mul(t, x, x));
}

// The same, and a tile whose rows are all valid, whatever the task has.
static void scene_fixed(kt *t) {
    kt_value a = kt_in(t, PTOWSP_F16, ROWS, 16), b = kt_in(t, PTOWSP_F16, 16, 24);
    kt_value x = kt_matmul(t, kt_slice(t, a, 6, 0, 3, 16), b);
    kt_value ones = kt_full(t, PTOWSP_F32, 3, 24, 1);
    kt_keep(t, kt_add(t, x, kt_unary(t, KT_UNARY_exp, ones)));
}

// A column goes to the cube core, where it is a factor.
static void scene_column(kt *t) {
    kt_value a = kt_in(t, PTOWSP_F32, ROWS, 16), b = kt_in(t, PTOWSP_F32, 16, 24);
    kt_value m = kt_rowmax(t, kt_matmul(t, a, b));
    kt_keep(t, kt_matmul(t, m, kt_in(t, PTOWSP_F32, 1, 16)));
    kt_keep(t, m);
}

// Sums of columns need all rows: the first vector core has them.
static void scene_whole(kt *t) {
    kt_value a = kt_in(t, PTOWSP_F16, ROWS, 16), b = kt_in(t, PTOWSP_F16, 16, 40);
    kt_value x = kt_matmul(t, a, b);
    kt_value y = kt_sub(t, x, kt_colmax(t, x));
    kt_keep(t, kt_matmul(t, narrow(t, y), kt_in(t, PTOWSP_F16, 40, 24)));
}

static const struct {
    half_scene scene;
    bool is_split;
} scenes[] = {
    {scene_attention, true}, {scene_block, true},  {scene_output, true}, {scene_slice, true},
    {scene_fixed, true},     {scene_column, true}, {scene_whole, false},
};
enum { SCENE_COUNT = COUNT_OF(scenes) };

static kt make(half_scene scene, uint64_t seed) {
    kt_config config = kt_any(seed);
    config.is_partial = false;
    config.strides = KT_PITCH;
    config.low = -1;
    config.high = 1;
    kt t = kt_begin(config);
    scene(&t);
    kt_lower(&t);
    return t;
}

// The sizes of a task of so many rows.
static sizes sizes_of(const kt *t, int64_t rows) {
    sizes at;
    for (uint32_t i = 0; i < t->param_count; i++) {
        const kt_param *p = &t->params[i];
        bool is_cut = p->rows == ROWS, is_slice = p->rows == 3;
        int64_t behind = rows > 6 ? rows - 6 : 1;  // a task has a row of every parameter
        at.rows[i] = is_cut ? rows : is_slice ? behind : p->rows;
        at.cols[i] = p->cols;
    }
    return at;
}

TEST(halves__are_those_of_the_library_for_all_rows) {
    static kt kernels[SCENE_COUNT];
    ptowsp_program *programs[SCENE_COUNT];
    npu_object o = npu_object_begin();
    for (int i = 0; i < SCENE_COUNT; i++) {
        kernels[i] = make(scenes[i].scene, test_seed() + (uint64_t)i);
        programs[i] = kt_compile(&kernels[i]);
        ptowsp_kernel_info info = ptowsp_program_read(programs[i])->kernels[1];
        assert_true(info.is_mixed);
        assert_int_equal(info.is_split, scenes[i].is_split);
        npu_object_add(&o, kernels[i].context, programs[i], false);
    }
    npu_object_build(&o, "");
    uint32_t refused = 0;
    for (int i = 0; i < SCENE_COUNT; i++) {
        for (int64_t rows = 1; rows <= ROWS; rows++) {
            sizes at = sizes_of(&kernels[i], rows);
            for (int model = PTOWSP_MODEL_UNIT; model <= PTOWSP_MODEL_A2A3; model++) {
                refused += compare(&kernels[i], programs[i], npu_object_run(&o, (uint32_t)i),
                                   npu_object_text(&o, (uint32_t)i), &at, (ptowsp_model)model);
            }
        }
        kt_free(&kernels[i]);
    }
    assert_int_equal(refused, 2 * 2 * 6);  // slices without rows are not as many as are stored
    npu_object_end(&o);
}

// Random kernels (kernel_random.h): those that are cut, most of them with shared rows.
TEST(halves__of_random_kernels_are_those_of_the_library) {
    static batch b;
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    uint64_t seed = test_seed() + 77;
    uint32_t split_count = 0;
    for (uint32_t tries = 0; b.count < 14; tries++) {
        assert_true(tries < 2000);
        kt_config config = random_config(test_random(&seed), tries % 2, &a5);
        config.machine = NULL;
        kt t = random_kernel_begin(config, tries % 2);
        kt_lower(&t);
        ptowsp_kernel_info info = ptowsp_program_read(kt_compile(&t))->kernels[1];
        bool is_wanted = info.is_split ? split_count < 10 : info.is_mixed;
        is_wanted = is_wanted && b.count - split_count < (info.is_split ? 14u : 4u);
        if (is_wanted) {
            split_count += info.is_split;
            batch_add(&b, &t);
        } else {
            kt_free(&t);
        }
    }
    assert_int_equal(split_count, 10);
    batch_play(&b, "");
}

// A vector core has no rows of a tile that has all of them, if the task has none of those that are shared:
// on a device its instructions are left out.
TEST(halves__of_no_rows_do_nothing_to_tiles_that_have_all) {
    kt t = make(scene_fixed, test_seed());
    static const char *const guarded[] = {"    if (wsp::any(t1)) {\n        TEXPANDS(t1, 1.0f);\n",
                                          NULL};
    npu_has_all(npu_files_of(t.context, kt_compile(&t), "aicore/kernels/k.cpp"), guarded);
    kt_free(&t);
}

// -- damage ---------------------------------------------------------------------------------------

// A line of an emitted half: the first with `in` behind `behind`, whose `from` becomes `to`.
static const struct {
    const char *behind, *in, *from, *to;
} damages[] = {
    {"void cube(", "TLOAD", "TLOAD", "TLOAD"},  // none
    {"void cube(", "set_flag(PIPE_M, PIPE_FIX", "set_flag", "if (0) set_flag"},
    {"void cube(", "wait_flag(PIPE_M, PIPE_FIX", "wait_flag", "if (0) wait_flag"},
    {"void vector(", "set_flag(PIPE_MTE2, PIPE_V", "set_flag", "if (0) set_flag"},
    {"void vector(", "wait_flag(PIPE_MTE2, PIPE_V", "wait_flag", "if (0) wait_flag"},
    {"void vector(", "wait_flag(PIPE_MTE2, PIPE_V", "wait_flag", "if (mine.is_second) wait_flag"},
    {"void cube(", "to_vector.push<48>(acc_1)", "acc_1", "acc_3"},
    {"void vector(", "to_vector.pop<48>(t1)", "t1", "t2"},
    {"void cube(", "to_vector.push<48>", "to_vector", "if (0) to_vector"},
    {"void vector(", "to_vector.pop<48>", "to_vector", "if (mine.is_second) to_vector"},
    {"void vector(", "to_cube.push<48>", "to_cube", "if (!mine.is_second) to_cube"},
    {"void vector(", "wsp::share(", "_rows)", "_rows + 2)"},
    {"void vector(", "ToVector to_vector", ", mine)", ")"},
    {"void vector(", "ToCube to_cube", ", mine)", ", wsp::Share{mine.cut + 1, mine.is_second})"},
    {"void vector(", "wsp::share(", "wsp::share(", "wsp::Share{8, false}; (void)("},
};
enum { DAMAGE_COUNT = COUNT_OF(damages) };

// Replaces the text in a file.
static void damage_file(const char *path, int which) {
    const char *text = text_of(path), *at = strstr(text, damages[which].behind);
    at = at ? strstr(at, damages[which].in) : NULL;
    at = at ? strstr(at, damages[which].from) : NULL;
    if (!at) {
        fail_msg("%s: there is no %s", path, damages[which].in);
        return;
    }
    const char *made = textf("%.*s%s%s", (int)(at - text), text, damages[which].to,
                             at + strlen(damages[which].from));
    file_write(path, made, strlen(made));
}

// Does a task of the emitted kernel do and take what it does in the library?
static bool is_same(kt *t, const ptowsp_program *program, npu_run_fn run, int64_t rows) {
    sizes at = sizes_of(t, rows);
    const size_t held = test_held.count;
    const outcome want = run_library(t, program, &at, PTOWSP_MODEL_A2A3);
    const outcome got = run_emitted(t, run, &at, PTOWSP_MODEL_A2A3);
    bool is_good = want.status == got.status && want.cycles == got.cycles;
    for (uint32_t i = 0; i < t->param_count; i++) {
        is_good = is_good && memcmp(want.bytes[i], got.bytes[i], param_bytes(&t->params[i])) == 0;
    }
    test_release_to(held);
    return is_good;
}

TEST(halves__damage_of_a_line_is_seen) {
    kt t = make(scene_block, test_seed());
    const ptowsp_program *program = kt_compile(&t);
    npu_object o = npu_object_begin();
    for (int which = 0; which < DAMAGE_COUNT; which++) {
        npu_object_add(&o, t.context, program, false);
        damage_file(textf("%s/%d/aicore/kernels/k.cpp", o.directory, which), which);
    }
    npu_object_build(&o, "");
    for (int which = 0; which < DAMAGE_COUNT; which++) {
        bool is_seen = !is_same(&t, program, npu_object_run(&o, (uint32_t)which), ROWS);
        if (is_seen == (which == 0)) {
            fail_msg("%s for %s of %s is %sseen", damages[which].to, damages[which].from,
                     damages[which].in, is_seen ? "" : "not ");
        }
    }
    kt_free(&t);
    npu_object_end(&o);
}

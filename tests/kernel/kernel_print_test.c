// Tile kernels as text: what an engineer wants to see of one, written by hand.

#include "test.h"

typedef struct sink {
    char text[8192];
    size_t length;
} sink;

static bool write_text(void *user, const void *text, size_t length) {
    sink *s = (sink *)user;
    assert_true(s->length + length < sizeof s->text);
    memcpy(s->text + s->length, text, length);
    s->length += length;
    s->text[s->length] = 0;
    return true;
}

// Rows of x divided by their largest element and scaled, what is below a half 0, as f16. A tile of
// 8 x 24 f32 has 768 bytes; as f16 it has 8 rows of 64, and a mask of it 8 rows of 32, as rows are
// whole blocks. 8 instructions of 192 elements and the 8 rows of TROWMAX are 1544 cycles.
static const char golden[] =
    "tile kernel clip(in x f32 8 x 24, out y f16 8 x 24, scalar s f32) on 910B\n"
    "  %4 = rowmax x: f32 8 x 1\n"
    "  %5 = div x %4: f32 8 x 24\n"
    "  %6 = mul %5 s: f32 8 x 24\n"
    "  %8 = compare %6 < 0.5: mask 8 x 24\n"
    "  %10 = full 0: f32 8 x 24\n"
    "  %11 = select %8 %10 %6: f32 8 x 24\n"
    "  store y %11\n"
    "instructions, with pipe and cycles of the unit model: 1544\n"
    "    0  TLOAD            MTE2      192  t1 <- x\n"
    "    1  SET_FLAG         MTE2        0  MTE2 -> V event 0\n"
    "    2  WAIT_FLAG        V           0  MTE2 -> V event 0\n"
    "    3  TROWMAX          V           8  t2 <- t1, scratch t3\n"
    "    4  PIPE_BARRIER     V           0  V\n"
    "    5  TROWEXPANDDIV    V         192  t1 <- t1 t2\n"
    "    6  PIPE_BARRIER     V           0  V\n"
    "    7  TMULS            V         192  t1 <- t1 s\n"
    "    8  PIPE_BARRIER     V           0  V\n"
    "    9  TCMPS            V         192  t10 <- t9 < 0.5\n"
    "   10  TEXPANDS         V         192  t5 <- 0\n"
    "   11  PIPE_BARRIER     V           0  V\n"
    "   12  TSEL             V         192  t13 <- t12 t5 t11, scratch t6\n"
    "   13  PIPE_BARRIER     V           0  V\n"
    "   14  TCVT             V         192  t8 <- t7\n"
    "   15  SET_FLAG         V           0  V -> MTE3 event 0\n"
    "   16  WAIT_FLAG        MTE3        0  V -> MTE3 event 0\n"
    "   17  TSTORE           MTE3      192  y <- t8\n"
    "   18  SET_FLAG         MTE3        0  MTE3 -> S event 7\n"
    "   19  WAIT_FLAG        S           0  MTE3 -> S event 7\n"
    "tiles, with memory and bytes\n"
    "  t1   UB 0..768  f32 8 x 24, for x\n"
    "  t2   UB 1536..1568  f32 8 x 1 column-major, for %4\n"
    "  t3   UB 768..1536  f32 8 x 24\n"
    "  t4   UB 2304..2560  u8 8 x 32, for %8\n"
    "  t5   UB 768..1536  f32 8 x 24, for %10\n"
    "  t6   UB 2560..2592  u8 1 x 32\n"
    "  t7   UB 1536..2304  f32 8 x 24, for %11\n"
    "  t8   UB 0..512  f16 8 x 32, for the store to y\n"
    "  t9   UB 0..768  f32 8 x 24, for x, view of t1\n"
    "  t10  UB 2304..2560  u8 8 x 32, for %8, view of t4\n"
    "  t11  UB 0..768  f32 8 x 24, for x, view of t1\n"
    "  t12  UB 2304..2560  u8 8 x 32, for %8, view of t4\n"
    "  t13  UB 1536..2304  f32 8 x 24, for %11, view of t7\n"
    "UB: 2592 of 188416 bytes\n";

static ptowsp_module *module_make(ptowsp_context **out_context) {
    assert_ok(ptowsp_context_create(NULL, out_context));
    ptowsp_module *m = test_module(*out_context, NULL);
    return m;
}

TEST(print__a_kernel_is_the_text_of_paper) {
    ptowsp_context *context;
    ptowsp_module *m = module_make(&context);
    ptowsp_body_desc desc = {.name = "clip"};
    ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
    ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, 8, 24);
    ptowsp_value y = ptowsp_tile_out(k, "y", PTOWSP_F16, 8, 24);
    ptowsp_value s = ptowsp_tile_scalar(k, "s", PTOWSP_F32);
    ptowsp_value scaled = ptowsp_tile_mul(ptowsp_tile_div(x, ptowsp_tile_rowmax(x)), s);
    ptowsp_value half = ptowsp_tile_const(k, 0.5);
    ptowsp_value mask = ptowsp_tile_compare(scaled, PTOWSP_LT, half);
    ptowsp_tile_const(k, 7);  // nobody's
    ptowsp_value zero = ptowsp_tile_full(k, PTOWSP_F32, 8, 24, 0);
    ptowsp_tile_store(y, ptowsp_tile_select(mask, zero, scaled));
    ptowsp_kernel kernel = ptowsp_kernel_end(k);
    assert_string_equal(ptowsp_module_error(m).text, "");
    sink *out = (sink *)calloc(1, sizeof(sink));
    assert_non_null(out);
    ptowsp_output text = {write_text, out};
    ptowsp_kernel_print(m, kernel, NULL, text);
    assert_string_equal(out->text, golden);
    free(out);
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
}

// y = 2 x by chunks of 8 rows. Of a chunk's tile there are two, 8 x 8 f32 of 256 bytes each. By hand:
// MTE2 may load to one of them when V and MTE3 have done with it, two iterations before, and V may
// multiply in it when MTE3 has: three tokens of two events. V's own flag to MTE3 has one event, which
// MTE3 has to have waited for: a token of one event, back to V. All are set before the loop, waited
// for before what they protect, set behind that, and waited for behind the loop.
static const char golden_loop[] =
    "tile kernel twice(in x f32 32 x 8, out y f32 32 x 8, scalar n i64) on 950PR\n"
    "  loop 1: i1 from 8 to n in steps of 8\n"
    "  %6 = slice x from (i1, 0): f32 8 x 8\n"
    "  %8 = mul %6 2: f32 8 x 8\n"
    "  store y %8 at (i1, 0)\n"
    "  end of loop 1\n"
    "instructions, with pipe and cycles of the unit model: 192, each once\n"
    "    0  SET_FLAG         MTE3        0  MTE3 -> V event 5\n"
    "    1  SET_FLAG         V           0  V -> MTE2 event 6\n"
    "    2  SET_FLAG         V           0  V -> MTE2 event 7\n"
    "    3  SET_FLAG         MTE3        0  MTE3 -> V event 6\n"
    "    4  SET_FLAG         MTE3        0  MTE3 -> V event 7\n"
    "    5  SET_FLAG         MTE3        0  MTE3 -> MTE2 event 6\n"
    "    6  SET_FLAG         MTE3        0  MTE3 -> MTE2 event 7\n"
    "    7  LOOP                            loop 1\n"
    "    8  WAIT_FLAG        MTE2        0  V -> MTE2 event 6 or 7\n"
    "    9  WAIT_FLAG        MTE2        0  MTE3 -> MTE2 event 6 or 7\n"
    "   10  TLOAD            MTE2       64  t1 <- x from (i1, 0)\n"
    "   11  SET_FLAG         MTE2        0  MTE2 -> V event 0 or 1\n"
    "   12  WAIT_FLAG        V           0  MTE2 -> V event 0 or 1\n"
    "   13  WAIT_FLAG        V           0  MTE3 -> V event 5\n"
    "   14  WAIT_FLAG        V           0  MTE3 -> V event 6 or 7\n"
    "   15  TMULS            V          64  t1 <- t1 2\n"
    "   16  SET_FLAG         V           0  V -> MTE3 event 0\n"
    "   17  SET_FLAG         V           0  V -> MTE2 event 6 or 7\n"
    "   18  WAIT_FLAG        MTE3        0  V -> MTE3 event 0\n"
    "   19  SET_FLAG         MTE3        0  MTE3 -> V event 5\n"
    "   20  TSTORE           MTE3       64  y <- t1 at (i1, 0)\n"
    "   21  SET_FLAG         MTE3        0  MTE3 -> V event 6 or 7\n"
    "   22  SET_FLAG         MTE3        0  MTE3 -> MTE2 event 6 or 7\n"
    "   23  END                             loop 1\n"
    "   24  WAIT_FLAG        V           0  MTE3 -> V event 5\n"
    "   25  WAIT_FLAG        MTE2        0  V -> MTE2 event 6\n"
    "   26  WAIT_FLAG        MTE2        0  V -> MTE2 event 7\n"
    "   27  WAIT_FLAG        V           0  MTE3 -> V event 6\n"
    "   28  WAIT_FLAG        V           0  MTE3 -> V event 7\n"
    "   29  WAIT_FLAG        MTE2        0  MTE3 -> MTE2 event 6\n"
    "   30  WAIT_FLAG        MTE2        0  MTE3 -> MTE2 event 7\n"
    "   31  PIPE_BARRIER     none        0  ALL\n"
    "tiles, with memory and bytes\n"
    "  t1   UB 0..256  f32 8 x 8, for %6, and from 256 on in loop 1\n"
    "UB: 512 of 262144 bytes\n";

// Chunks 8, 16 and 24 of 32 rows: a load of 7 cycles takes 21 in all, a product of 10 takes 30, a store
// of 5 takes 15. Flags take nothing.
static ptowsp_cycles user_cycles(const ptowsp_insn *insn, void *user) {
    (void)user;
    return strcmp(insn->name, "TLOAD") == 0    ? 7
           : strcmp(insn->name, "TMULS") == 0  ? 10
           : strcmp(insn->name, "TSTORE") == 0 ? 5
                                               : 0;
}

// The cycles of a pipe's instructions add up to all that it is busy. A barrier of all pipes, whose pipe
// is none, counts on the scalar pipe.
static void require_busy(ptowsp_module *m, ptowsp_kernel kernel, const ptowsp_cost *cost) {
    sink *out = (sink *)calloc(1, sizeof(sink));
    assert_non_null(out);
    ptowsp_kernel_print(m, kernel, cost, (ptowsp_output){write_text, out});
    ptowsp_kernel_stats stats;
    assert_ok(ptowsp_kernel_measure(m, kernel, cost, &stats));
    char total[64];
    snprintf(total, sizeof total, ": %llu until the last has ended\n",
             (unsigned long long)stats.cycles);
    assert_non_null(strstr(out->text, total));
    ptowsp_cycles busy[PTOWSP_PIPE_COUNT] = {0};
    for (const char *line = out->text; (line = strchr(line, '\n')); line++) {
        unsigned i;
        char name[32], pipe[8];
        unsigned long long cycles;
        if (sscanf(line + 1, " %u %31s %7s %llu ", &i, name, pipe, &cycles) == 4) {
            for (int p = 0; p < PTOWSP_PIPE_COUNT; p++) {
                const char *of = strcmp(pipe, "none") == 0 ? "S" : pipe;
                busy[p] += strcmp(of, ptowsp_pipe_name((ptowsp_pipe)p)) == 0 ? cycles : 0;
            }
        }
    }
    assert_memory_equal(busy, stats.busy_cycles, sizeof busy);
    free(out);
}

TEST(print__cycles_of_a_model) {
    ptowsp_context *context;
    ptowsp_module *m = module_make(&context);
    const ptowsp_body_desc desc = {.name = "chunks"};
    ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
    ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, 32, 8);
    ptowsp_value y = ptowsp_tile_out(k, "y", PTOWSP_F32, 32, 8);
    ptowsp_value first = ptowsp_tile_const(k, 8), end = ptowsp_tile_const(k, 32), none = {0};
    PTOWSP_TILE_LOOP(k, i, first, end, 8) {
        ptowsp_value part = ptowsp_tile_slice_at(x, i, none, 8, 8);
        ptowsp_tile_store_at(y, i, none, ptowsp_tile_mul(part, ptowsp_tile_const(k, 2)));
    }
    ptowsp_kernel kernel = ptowsp_kernel_end(k);
    assert_string_equal(ptowsp_module_error(m).text, "");
    static const ptowsp_model models[] = {PTOWSP_MODEL_UNIT, PTOWSP_MODEL_A2A3, PTOWSP_MODEL_A5,
                                          PTOWSP_MODEL_910B, PTOWSP_MODEL_950PR};
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        require_busy(m, kernel, &(ptowsp_cost){.model = models[i]});
    }
    const ptowsp_cost user = {.model = PTOWSP_MODEL_USER, .fn = user_cycles};
    require_busy(m, kernel, &user);
    sink *out = (sink *)calloc(1, sizeof(sink));
    assert_non_null(out);
    ptowsp_kernel_print(m, kernel, &user, (ptowsp_output){write_text, out});
    static const char *const lines[] = {
        "cycles of model USER in all iterations: ", "  TLOAD            MTE2       21  ",
        "  TMULS            V          30  ", "  TSTORE           MTE3       15  "};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_non_null(strstr(out->text, lines[i]));
    }
    memset(out, 0, sizeof *out);
    const ptowsp_cost empty = {.model = PTOWSP_MODEL_USER};  // a model without its function
    ptowsp_kernel_print(m, kernel, &empty, (ptowsp_output){write_text, out});
    assert_int_equal(out->length, 0);
    free(out);
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
}

TEST(print__a_loop_is_the_text_of_paper) {
    ptowsp_context *context;
    ptowsp_module *m = module_make(&context);
    ptowsp_machine machine = ptowsp_machine_950pr();
    ptowsp_body_desc desc = {.name = "twice", .machine = &machine};
    ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
    ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, 32, 8), none = {NULL, 0};
    ptowsp_value y = ptowsp_tile_out(k, "y", PTOWSP_F32, 32, 8);
    ptowsp_value n = ptowsp_tile_scalar(k, "n", PTOWSP_I64);
    PTOWSP_TILE_LOOP(k, i, ptowsp_tile_const(k, 8), n, 8) {
        ptowsp_value part = ptowsp_tile_slice_at(x, i, none, 8, 8);
        ptowsp_tile_store_at(y, i, none, ptowsp_tile_mul(part, ptowsp_tile_const(k, 2)));
    }
    ptowsp_kernel kernel = ptowsp_kernel_end(k);
    assert_string_equal(ptowsp_module_error(m).text, "");
    sink *out = (sink *)calloc(1, sizeof(sink));
    assert_non_null(out);
    ptowsp_output text = {write_text, out};
    ptowsp_kernel_print(m, kernel, NULL, text);
    assert_string_equal(out->text, golden_loop);
    free(out);
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
}

// A constant is printed with as few digits as read back: 1e-6 is no 9.9999999999999995e-07.
TEST(print__constants_have_the_fewest_digits_that_read_back) {
    ptowsp_context *context;
    ptowsp_module *m = module_make(&context);
    ptowsp_body_desc desc = {.name = "eps"};
    ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
    ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, 8, 8);
    ptowsp_value y = ptowsp_tile_out(k, "y", PTOWSP_F32, 8, 8);
    ptowsp_tile_store(y, ptowsp_tile_add(x, ptowsp_tile_const(k, 1e-6)));
    ptowsp_kernel kernel = ptowsp_kernel_end(k);
    assert_string_equal(ptowsp_module_error(m).text, "");
    sink *out = (sink *)calloc(1, sizeof(sink));
    assert_non_null(out);
    ptowsp_kernel_print(m, kernel, NULL, (ptowsp_output){write_text, out});
    assert_non_null(strstr(out->text, "1e-06"));
    assert_null(strstr(out->text, "9.99999"));
    free(out);
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
}

// A kernel on a 910B has such lines.
static void has_lines(ptowsp_module *m, ptowsp_kernel kernel, const char *const *lines) {
    assert_string_equal(ptowsp_module_error(m).text, "");
    sink *out = (sink *)calloc(1, sizeof(sink));
    assert_non_null(out);
    ptowsp_output text = {write_text, out};
    ptowsp_kernel_print(m, kernel, NULL, text);
    for (; *lines; lines++) {
        if (!strstr(out->text, *lines)) {
            fail_msg("no \"%s\" in\n%s", *lines, out->text);
        }
    }
    free(out);
}

// Four sorted runs of 32 pairs become one: a pair is two elements of f32, so runs of 64, or four of f16,
// so runs of 128, of which pattern 2 picks the first of four. What is stored
// as f16 to row 8 and column 16 is rounded first.
TEST(print__runs_and_windows) {
    ptowsp_context *context;
    ptowsp_module *m = module_make(&context);
    ptowsp_body_desc desc = {.name = "runs"};
    ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
    ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, 1, 128);
    ptowsp_value y = ptowsp_tile_out(k, "y", PTOWSP_F32, 1, 16);
    ptowsp_value pairs = ptowsp_tile_sort32(x, ptowsp_tile_iota(k, PTOWSP_U32, 128, 0));
    ptowsp_tile_store(y, ptowsp_tile_topk_values(ptowsp_tile_merge_sort(pairs, 32), 16));
    const char *const runs[] = {"  %5 = merge_sort %4 runs of 32: f32 1 x 256\n",
                                "  TMRGSORT         V         256  ", " runs of 64\n", NULL};
    has_lines(m, ptowsp_kernel_end(k), runs);
    desc.name = "half runs";
    k = ptowsp_kernel_begin(m, &desc);
    x = ptowsp_tile_in(k, "x", PTOWSP_F16, 1, 128);
    y = ptowsp_tile_out(k, "y", PTOWSP_F16, 1, 16);
    pairs = ptowsp_tile_sort32(x, ptowsp_tile_iota(k, PTOWSP_U32, 128, 0));
    ptowsp_tile_store(y, ptowsp_tile_topk_values(ptowsp_tile_merge_sort(pairs, 32), 16));
    const char *const halves[] = {"  %5 = merge_sort %4 runs of 32: f16 1 x 512\n",
                                  "  %6 = topk_values %5: f16 1 x 16\n", " runs of 128\n",
                                  " pattern 2\n", NULL};
    has_lines(m, ptowsp_kernel_end(k), halves);
    desc.name = "windows";
    k = ptowsp_kernel_begin(m, &desc);
    x = ptowsp_tile_in(k, "x", PTOWSP_F32, 8, 16);
    y = ptowsp_tile_inout(k, "y", PTOWSP_F16, 16, 32);
    ptowsp_value eight = ptowsp_tile_const(k, 8), sixteen = ptowsp_tile_const(k, 16);
    ptowsp_tile_store_at(y, eight, sixteen, ptowsp_tile_exp(x));
    const char *const windows[] = {"  store y %5 at (8, 16)\n", "y <- t2 at (8, 16)\n",
                                   "f16 8 x 16, for the store to y\n", NULL};
    has_lines(m, ptowsp_kernel_end(k), windows);
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
}

// The library's compiler must not show: views of one instruction are numbered from its last operand to
// its first, whichever argument of a call is computed first. A tile of 8 x 24, one value, and two columns
// with their scratch are 6 tiles. The result takes the place of its left operand, as nothing else reads that.
TEST(print__views_are_numbered_alike_by_all_compilers) {
    ptowsp_context *context;
    ptowsp_module *m = module_make(&context);
    ptowsp_body_desc desc = {.name = "spread"};
    ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
    ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, 8, 24);
    ptowsp_value one = ptowsp_tile_in(k, "one", PTOWSP_F32, 1, 1);
    ptowsp_value y = ptowsp_tile_out(k, "y", PTOWSP_F32, 8, 1);
    ptowsp_value z = ptowsp_tile_out(k, "z", PTOWSP_F32, 8, 1);
    ptowsp_value spread = ptowsp_tile_rowmax(x);
    spread = ptowsp_tile_sub(spread, ptowsp_tile_rowmin(x));
    ptowsp_tile_store(y, spread);
    ptowsp_tile_store(z, ptowsp_tile_mul(ptowsp_tile_add(spread, one), ptowsp_tile_const(k, 2)));
    const char *const lines[] = {
        "  TSUB             V           8  t9 <- t8 t7\n",   // two columns
        "  TROWEXPANDADD    V           8  t11 <- t10 t",    // a column and one value, which is one
        "  TMULS            V           8  t13 <- t12 2\n",  // a column and a number
        "  t7   UB 1600..1632  f32 1 x 8, for %6, view of t",  // the least of each row
        "  t8   UB 1568..1600  f32 1 x 8, for %5, view of t", NULL};
    has_lines(m, ptowsp_kernel_end(k), lines);
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
}

// Tile kernels in texts of modules: every operation, random kernels and loops, numbers of all kinds,
// written and read as the same kernel that gives the same results; limits; any byte and any refused memory.
// Texts that are wrong are in cases/kernel_faults.case.

#include "kernel_named.h"
#include "kernel_text.h"

#define KT_LOWERED kt_through_text

#include "kernel_loop.h"
#include "kernel_random.h"

#include "src/kernel/body.h"
#include "src/kernel/body_text.h"

// -- every operation ------------------------------------------------------------------------------

static char printed[KERNEL_TEXT_MAX];

static ptowsp_module *parse(ptowsp_context *context, const char *text,
                            const ptowsp_parse_desc *desc) {
    ptowsp_module *m;
    if (ptowsp_module_parse(context, text, strlen(text), desc, &m, NULL) != PTOWSP_OK) {
        fail_msg("%s\n%s", ptowsp_context_error(context).text, text);
    }
    return m;
}

// The kernel of a line of kernel_operations.txt, in text.
static void operation_text(const char *line, char *text) {
    const int place = (int)strcspn(line, ";");
    text +=
        sprintf(text,
                "module m\nkernel k(axes 0, in x f32 64 x 64, in half f16 64 x 64, in ints i8 64 "
                "x 64, in row f32 1 x 64, in \"col 1\" f32 64 x 1, inout y f32 64 x 64%s) %.*s, "
                "0 instructions\n  machine \"%s\"\n  %%1 = parameter x\n  %%2 = parameter half\n"
                "  %%3 = parameter ints\n  %%4 = parameter row\n  %%5 = parameter \"col 1\"\n"
                "  %%6 = parameter y",
                strstr(line, "scalar out") ? ", \"out\" u64" : "", place, line,
                strstr(line, " interleave ") ? "950PR" : "910B");
    for (line += place; *line; line++) {
        text += sprintf(text, *line == ';' ? "\n " : "%c", *line);
    }
}

CONTEXT_TEST(text__has_every_operation_of_the_table) {
    bool is_seen[PWSP_KOP_COUNT] = {false};
    char line[512], text[2048], word[64];
    FILE *file = fopen("tests/kernel/kernel_operations.txt", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#' || line[0] == '\n') {
            continue;
        }
        operation_text(line, text);
        ptowsp_module *m = parse(context, text, NULL), *read = kernel_text_read(context, m);
        for (int kind = 1; kind < PWSP_KOP_COUNT; kind++) {
            snprintf(word, sizeof word, " %s ", pwsp_kop_name((pwsp_kop_kind)kind));
            is_seen[kind] = is_seen[kind] || kind == PWSP_KOP_END || strstr(kernel_text, word);
        }
        kernel_text_compare(m, read, (ptowsp_kernel){1});
        ptowsp_module_destroy(read);
        ptowsp_module_destroy(m);
    }
    fclose(file);
    for (int kind = 1; kind < PWSP_KOP_COUNT; kind++) {
        if (!is_seen[kind]) {
            fail_msg("no kernel for %s", pwsp_kop_name((pwsp_kop_kind)kind));
        }
    }
}

// -- random kernels -------------------------------------------------------------------------------

TEST(text__of_random_kernels_gives_kernels_with_their_results) {
    uint64_t seed = test_seed();
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    for (unsigned i = 0; i < test_rounds(600); i++) {
        kt t = random_kernel_begin(random_config(test_random(&seed), i % 2, &a5), i % 2);
        kt_end(&t);
    }
}

TEST(text__of_loops_gives_kernels_with_their_results) {
    uint64_t seed = test_seed();
    const ptowsp_machine a5 = ptowsp_machine_950pr();
    static const lp_scene scenes[] = {lp_matmul, lp_rows, lp_attention, lp_nested, lp_cache};
    for (unsigned i = 0; i < test_rounds(180); i++) {
        kt_config config = kt_any(test_random(&seed));
        config.strides = (kt_strides)(i % 4);
        config.machine = i % 5 == 0 ? &a5 : NULL;
        config.is_fused = i % 3 == 0;
        lp_play(scenes[i % COUNT_OF(scenes)], 0, config);
    }
}

// -- by hand --------------------------------------------------------------------------------------

#define HEAD "module m\nkernel k(axes 0, in x f32 8 x 8, inout y f32 8 x 8, s i64) vector, "

static void print(const ptowsp_module *m) {
    ptowsp_output_buffer buffer = {printed, KERNEL_TEXT_MAX, 0};
    ptowsp_module_print(m, ptowsp_output_to_buffer(&buffer));
    assert_true(buffer.length < KERNEL_TEXT_MAX);
}

TEST(text__is_what_was_read) {
    const ptowsp_kernel kernel = {1};
    const char *sample = kernel_named("sample", kernel_no_words);
    ptowsp_context *context = test_context(NULL);
    ptowsp_module *m = parse(context, sample, NULL), *again = kernel_text_read(context, m);
    assert_string_equal(kernel_text, sample);
    kernel_text_compare(m, again, kernel);
    ptowsp_module_destroy(again);
    ptowsp_module_destroy(m);

    // A machine of one's own, whose numbers differ: so do cycles.
    ptowsp_machine own = ptowsp_machine_950pr();
    strcpy(own.name, "my own 1");
    own.clock_mhz = 7;
    own.rates[PTOWSP_PATH_GM_TO_UB]++;
    ptowsp_body_desc desc = {.name = "k", .machine = &own};
    m = test_module(context, NULL);
    ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
    ptowsp_value x = ptowsp_tile_inout(k, "x", PTOWSP_F32, 8, 8);
    ptowsp_tile_store(x, ptowsp_tile_exp(x));
    assert_int_equal(ptowsp_kernel_end(k).id, 1);
    again = kernel_text_read(context, m);
    assert_non_null(strstr(kernel_text, "machine \"my own 1\" of a5, 7 MHz, memories 262144"));
    kernel_text_compare(m, again, kernel);
    ptowsp_module_destroy(again);
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
}

CONTEXT_TEST(text__may_leave_out_what_can_be_seen) {
    // No machine, numbers with gaps, types where nothing else says them; comments and empty lines.
    ptowsp_module *m = parse(context,
                             HEAD "0 instructions\n\n# a comment\n"
                                  "  %10 = parameter x  # another\n"
                                  "\n"
                                  "  %20 = parameter y\r\n"
                                  "# further left\n"
                                  "  %21 = scalar s : i64\n"
                                  "  %400 = exp %10\n"
                                  "      # further right\n"
                                  "  %18446744073709551615 = rowsum %400\n"
                                  "  store %20, %400\n",
                             NULL);
    print(m);
    assert_non_null(strstr(printed, "  %5 = rowsum %4 : f32 8 x 1\n  store %2, %4\n"));
    assert_non_null(strstr(printed, "  machine \"910B\"\n  %1 = parameter x\n"));
    ptowsp_module_destroy(m);
}

// -- limits ---------------------------------------------------------------------------------------

TEST(text__of_too_much_is_refused) {
    ptowsp_module *m;
    ptowsp_context *context = test_context(NULL);
    // One operation more than a body has.
    static char text[KERNEL_TEXT_MAX];
    size_t at = (size_t)sprintf(text, HEAD "9 instructions\n  %%1 = parameter x\n");
    for (int i = 2; i <= PTOWSP_BODY_OP_MAX + 1; i++) {
        at += (size_t)sprintf(text + at, "  %%%d = exp %%1\n", i);
    }
    assert_int_equal(ptowsp_module_parse(context, text, at, NULL, &m, NULL), PTOWSP_LIMIT_EXCEEDED);
    test_error_is(context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_BODY_OP_MAX + 3,
                  "10003:3: kernel k: exp: more than 10000 operations");
    // A line as long as you like is read to its first error.
    at = (size_t)sprintf(text, HEAD "9 instructions\n  instruction");
    for (int i = 0; i < 100; i++) {
        at += (size_t)sprintf(text + at, " (");
    }
    assert_invalid(ptowsp_module_parse(context, text, at, NULL, &m, NULL));
    assert_non_null(
        strstr(ptowsp_context_error(context).text, "the name of an instruction is missing"));
    ptowsp_context_destroy(context);
}

// -- what callers attach --------------------------------------------------------------------------

// The kernel of HEAD, which adds `user` operations.
static ptowsp_kernel make(ptowsp_module *m, void *user) {
    ptowsp_body_desc desc = {.name = "k"};
    ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
    ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, 8, 8);
    ptowsp_value y = ptowsp_tile_inout(k, "y", PTOWSP_F32, 8, 8);
    ptowsp_tile_scalar(k, "s", PTOWSP_I64);
    for (int i = 0; i < *(int *)user; i++) {
        x = ptowsp_tile_exp(x);
    }
    ptowsp_tile_store(y, x);
    return ptowsp_kernel_end(k);
}

static ptowsp_cycles never(const ptowsp_task *task, void *user) {
    (void)task;
    (void)user;
    fail();
    return 0;
}

CONTEXT_TEST(text__is_passed_over_where_a_function_makes_the_kernel) {
    static const char body[] =
        HEAD "9 instructions\n"
             "  %1 = parameter x\n  %2 = parameter y\n  %3 = scalar s : i64\n"
             "  %4 = exp %1\n  store %2, %4\naxis n 3\n"
             "workload w\n  for_each i in n\n";
    static const char bodiless[] = HEAD "9 instructions\naxis n 3\nworkload w\n  for_each i in n\n";
    int count = 5;
    ptowsp_parse_kernel given = {.name = "k", .user = &count};
    const ptowsp_parse_desc desc = {&given, 1, 0}, timed = {NULL, 0, 7};
    for (int i = 0; i < 4; i++) {
        given.make = i < 2 ? make : NULL;
        given.fn = i == 2 ? never : NULL;  // which tile kernels do not take
        ptowsp_module *m = parse(context, i == 1 ? bodiless : body, i == 3 ? &timed : &desc);
        ptowsp_kernel_stats stats;
        const ptowsp_kernel kernel = {1};
        print(m);
        assert_ok(ptowsp_kernel_measure(m, kernel, NULL, &stats));
        assert_true((strstr(printed, "  %8 = exp %7 : f32 8 x 8\n") != NULL) == (i < 2));
        assert_non_null(strstr(printed, "axis n 3\n"));
        assert_non_null(strstr(printed, "workload w\n  for_each i in n\n"));
        ptowsp_module_destroy(m);
    }
    // Without either, the kernel is for time alone, as it was.
    ptowsp_module *m = parse(context, bodiless, &timed);
    print(m);
    assert_non_null(strstr(printed, "vector, 7 cycles, time only\n"));
    ptowsp_module_destroy(m);
}

// -- any bytes ------------------------------------------------------------------------------------

// What is read of any bytes is printed and read again as the same.
static bool read_any(ptowsp_context *context, const char *text, size_t length) {
    ptowsp_module *m;
    ptowsp_text_place place;
    if (ptowsp_module_parse(context, text, length, NULL, &m, &place) != PTOWSP_OK) {
        assert_true(!m && place.line > 0 && place.column > 0);
        return false;
    }
    print(m);
    ptowsp_module *again = parse(context, printed, NULL);
    const ptowsp_kernel kernel = {1};
    assert_true(ptowsp_kernel_hash(m, kernel) == ptowsp_kernel_hash(again, kernel));
    ptowsp_module_destroy(again);
    ptowsp_module_destroy(m);
    return true;
}

TEST(text__is_refused_or_good_with_any_byte_changed) {
    uint64_t random = test_seed(), good = 0;
    ptowsp_context *context = test_context(NULL);
    const char *sample = kernel_named("sample", kernel_no_words);
    const size_t length = strlen(sample);
    static char text[KERNEL_NAMED_MAX];
    for (size_t i = 0; i < length; i++) {
        for (int bit = 0; bit < 8; bit++) {
            memcpy(text, sample, length);
            text[i] = (char)(text[i] ^ 1 << bit);
            good += read_any(context, text, length);
        }
        read_any(context, sample, i);
    }
    assert_true(good > 100);
    for (uint64_t i = 0; i < test_rounds(20000); i++) {
        memcpy(text, sample, length);
        for (int64_t j = test_random_in(&random, 1, 4); j > 0; j--) {
            size_t at = (size_t)test_random_in(&random, 0, (int64_t)length - 1);
            text[at] = sample[test_random_in(&random, 0, (int64_t)length - 1)];
        }
        read_any(context, text, length);
    }
    ptowsp_context_destroy(context);
}

TEST(text__survives_any_refused_allocation) {
    const char *sample = kernel_named("sample", kernel_no_words);
    ptowsp_module *m;
    test_memory memory = {0};
    ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &memory};
    ptowsp_context *context = test_context(&desc);
    for (uint64_t n = 1;; n++) {
        ptowsp_text_place place;
        memory.refuse_at = memory.allocations + n;
        ptowsp_status status =
            ptowsp_module_parse(context, sample, strlen(sample), NULL, &m, &place);
        if (status == PTOWSP_OK) {
            assert_true(n > 20);
            break;
        }
        assert_int_equal(status, PTOWSP_OUT_OF_MEMORY);
        assert_true(!m && (place.column > 0) == (place.line > 0));
        assert_non_null(strstr(ptowsp_context_error(context).text, "out of memory"));
    }
    memory.refuse_at = 0;
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
    assert_int_equal(memory.live_blocks, 0);
}

TEST(text__names_of_what_is_none) {
    assert_string_equal(pwsp_kop_name(PWSP_KOP_NONE), "none");
    assert_string_equal(pwsp_kop_form(PWSP_KOP_NONE), "");
    assert_null(pwsp_memory_word(PTOWSP_MEMORY_COUNT));
    assert_null(pwsp_layout_word(PTOWSP_LAYOUT_COUNT));
}

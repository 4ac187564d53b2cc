// Saved programs: a file that a person has read; damage of every bit and at every length, also with
// a good checksum; refused memory. Random programs are in workload_random_test.c, what is said of
// damage, and where, in texts.facts, and how keys are written in cases/printed.case.

#include "files.h"

enum { SAVED_MAX = 1 << 20 };

static char saved[SAVED_MAX], printed[SAVED_MAX], again[SAVED_MAX];

static size_t save(ptowsp_context *context, ptowsp_module *module, const ptowsp_program_desc *desc,
                   char *text) {
    ptowsp_output_buffer buffer = {text, SAVED_MAX, 0};
    test_ok(context, ptowsp_program_save(context, module, desc, ptowsp_output_to_buffer(&buffer)));
    assert_true(buffer.length < SAVED_MAX);
    return buffer.length;
}

static void print_program(const ptowsp_program *program, char *text) {
    ptowsp_output_buffer buffer = {text, SAVED_MAX, 0};
    ptowsp_program_print(program, ptowsp_output_to_buffer(&buffer));
    assert_true(buffer.length < SAVED_MAX);
}

// -- by hand --------------------------------------------------------------------------------------

// Read by a person: every directive, keys with everything they can read.
static char body[2048];

static int read_body(void **state) {
    (void)state;
    file_text("tests/text/saved.txt", body, sizeof body);
    return 0;
}

SUITE_AROUND(read_body, NULL)

// With its first line.
static size_t sealed(const char *text, size_t length, char *out) {
    int head = sprintf(out, "ptowsp program 1, %zu bytes, %016llx\n", length,
                       (unsigned long long)ptowsp_hash(PTOWSP_HASH_START, text, length));
    memcpy(out + head, text, length + 1);
    return (size_t)head + length;
}

// A test with a context of which nothing is left.
#define MEMORY_TEST(name)                                                                          \
    static void name##_of(ptowsp_context *context, test_memory *memory);                           \
    TEST(name) {                                                                                   \
        test_memory memory = {0};                                                                  \
        const ptowsp_context_desc desc = {.resize = test_resize, .resize_user = &memory};          \
        ptowsp_context *context = test_context(&desc);                                             \
        name##_of(context, &memory);                                                               \
        ptowsp_context_destroy(context);                                                           \
        assert_int_equal(memory.live_bytes, 0);                                                    \
    }                                                                                              \
    static void name##_of(ptowsp_context *context, __attribute__((unused)) test_memory *memory)

MEMORY_TEST(save__writes_what_it_reads) {
    ptowsp_program *program;
    ptowsp_text_place place = {7, 7};
    size_t length = sealed(body, strlen(body), saved);
    test_ok(context, ptowsp_program_load(context, saved, length, NULL, &program, &place));
    assert_true(place.line == 0 && place.column == 0);
    print_program(program, printed);
    const char *schedule = strstr(body, "schedule\n");
    assert_string_equal(strstr(printed, "schedule\n"), schedule);

    // The same module with the same schedule, built from both, is saved as the same bytes.
    ptowsp_module *module;
    size_t module_length = (size_t)(strstr(body, "program part") - body);
    assert_ok(ptowsp_module_parse(context, body, module_length, NULL, &module, NULL));
    ptowsp_schedule s = {.dispatch = PTOWSP_DISPATCH_AFFINITY};
    s.dispatch_key = ptowsp_add(
        ptowsp_cast(ptowsp_array_at(module, "home", PTOWSP_I32, ptowsp_task_variable(module, "i")),
                    PTOWSP_TYPE_U64),
        ptowsp_symbol(module, "cut"));
    s.pools = PTOWSP_POOLS_BY_UNIT;
    s.vector_lane_count = 4;
    s.cube_lane_count = 2;
    s.window = 9;
    s.dependencies =
        PTOWSP_DEPENDENCIES_STRUCTURE | PTOWSP_DEPENDENCIES_EXACT | PTOWSP_DEPENDENCIES_EXPLICIT;
    s.hazards = PTOWSP_HAZARD_RAW | PTOWSP_HAZARD_WAW;
    s.ready = PTOWSP_READY_PRIORITY;
    s.priority_key = ptowsp_mul(ptowsp_task_arg(module, 0), ptowsp_i64(module, -2));
    s.start = PTOWSP_START_THRESHOLD;
    s.start_threshold = 3;
    s.stream_count = 3;
    s.stream_key = ptowsp_task_tag(module, "t");
    s.timing = PTOWSP_TIMING_BATCHED;
    s.timing_count = 2;
    s.timing_cycles = 5;
    const ptowsp_program_desc desc = {"part", &s};
    assert_int_equal(save(context, module, &desc, again), length);
    assert_string_equal(again, saved);
    // Without a schedule and a name: the last workload.
    length = save(context, module, NULL, again);
    assert_non_null(strstr(again, "\nprogram \"the rest\"\nschedule\n  issue dataflow\n"
                                  "  dispatch round robin over 1 lanes\n"
                                  "  dependencies structure overlap\n"));
    ptowsp_program_destroy(program);
    assert_ok(ptowsp_program_load(context, again, length, NULL, &program, NULL));
    ptowsp_program_destroy(program);
    // The parts may come in any order.
    static const char turned[] = "module m\n"
                                 "kernel k(axes 0) vector, 3 cycles, time only\n"
                                 "program w\n"
                                 "schedule\n"
                                 "  issue in order\n"
                                 "workload w\n"
                                 "  task k()\n"
                                 "workload v\n";
    length = sealed(turned, sizeof turned - 1, again);
    assert_ok(ptowsp_program_load(context, again, length, NULL, &program, NULL));
    print_program(program, printed);
    assert_non_null(strstr(printed, "issue in order"));
    assert_non_null(strstr(printed, "task k"));
    test_destroy(NULL, program, module, NULL);
}

MEMORY_TEST(save__refuses_what_text_cannot_say) {
    ptowsp_module *module = test_module(context, NULL);
    ptowsp_task_desc task = {0};
    ptowsp_kernel_desc kernel = {.name = "k", .axis_count = 1, .cycles = 1};
    task.kernel = ptowsp_kernel_make(module, &kernel);
    ptowsp_workload_begin(module, "w");
    ptowsp_for_each_begin(module, "i", ptowsp_axis_dense(module, "n", 2));
    task.axes[0] = ptowsp_cast(ptowsp_symbol(module, "i"), PTOWSP_TYPE_I64);
    ptowsp_task_make(module, &task);
    ptowsp_scope_end(module);
    ptowsp_scope_end(module);
    ptowsp_program *program = test_program(context, module, NULL);
    ptowsp_program_destroy(program);
    ptowsp_output_buffer buffer = {saved, sizeof saved, 0};
    ptowsp_output sink = ptowsp_output_to_buffer(&buffer);
    assert_invalid(ptowsp_program_save(context, module, NULL, sink));
    assert_non_null(strstr(ptowsp_context_error(context).text,
                           "i is both a symbol and a variable here; rename one"));
    assert_int_equal(buffer.length, 0);
    ptowsp_module_destroy(module);
}

// -- refusals -------------------------------------------------------------------------------------

MEMORY_TEST(load__refuses_every_damage) {
    const size_t length = sealed(body, strlen(body), saved);
    for (size_t cut = 0; cut < length; cut++) {
        ptowsp_program *program;
        char *copy = (char *)malloc(cut + !cut);  // so that a read behind it is seen
        assert_non_null(copy);
        memcpy(copy, saved, cut);
        assert_int_not_equal(ptowsp_program_load(context, copy, cut, NULL, &program, NULL),
                             PTOWSP_OK);
        assert_null(program);
        free(copy);
    }
    for (size_t bit = 0; bit < length * 8; bit++) {
        ptowsp_program *program;
        saved[bit / 8] ^= (char)(1 << bit % 8);
        ptowsp_status status = ptowsp_program_load(context, saved, length, NULL, &program, NULL);
        if (status == PTOWSP_OK) {
            fail_msg("bit %zu", bit);
        }
        saved[bit / 8] ^= (char)(1 << bit % 8);
    }
    assert_invalid(ptowsp_program_load(context, saved, length, NULL, NULL, NULL));
    assert_string_equal(ptowsp_context_error(context).text, "load: data or out_program is NULL");
}

MEMORY_TEST(load__survives_any_change_with_a_good_checksum) {
    const uint64_t seed = test_seed();
    uint64_t loaded = 0, rounds = test_rounds(20000);
    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t random = seed + i;
        size_t length = strlen(body);
        ptowsp_program *program;
        strcpy(printed, body);
        for (int64_t k = test_random_in(&random, 1, 4); k > 0; k--) {
            size_t at = (size_t)test_random_in(&random, 0, (int64_t)length - 1);
            size_t from = (size_t)test_random_in(&random, 0, (int64_t)length - 1);
            size_t count = (size_t)test_random_in(&random, 1, 12);
            count = count < length - at ? count : length - at;
            count = count < length - from ? count : length - from;
            switch (test_random_in(&random, 0, 2)) {
            case 0: printed[at] = (char)test_random(&random); break;
            case 1: memmove(printed + at, printed + from, count); break;
            default:
                memmove(printed + at, printed + at + count, length - at - count);
                length -= count;
            }
        }
        printed[length] = '\0';
        size_t size = sealed(printed, length, saved);
        if (ptowsp_program_load(context, saved, size, NULL, &program, NULL) == PTOWSP_OK) {
            loaded++;
            ptowsp_program_destroy(program);
        }
    }
    assert_met(loaded > 0 && loaded < rounds);
}

MEMORY_TEST(save_and_load__survive_every_allocation_that_fails) {
    const size_t length = sealed(body, strlen(body), saved);
    size_t module_length = (size_t)(strstr(body, "program part") - body);
    ptowsp_module *module;
    assert_ok(ptowsp_module_parse(context, body, module_length, NULL, &module, NULL));
    const size_t before = memory->live_bytes;
    for (int is_saved = 0; is_saved < 2; is_saved++) {
        EACH_REFUSED(n, 10) {
            ptowsp_program *program = NULL;
            ptowsp_output_buffer buffer = {again, SAVED_MAX, 0};
            ptowsp_output sink = ptowsp_output_to_buffer(&buffer);
            test_refuse(memory, n);
            has_more =
                test_was_refused(memory, is_saved ? ptowsp_program_save(context, module, NULL, sink)
                                                  : ptowsp_program_load(context, saved, length,
                                                                        NULL, &program, NULL));
            assert_true(!has_more || buffer.length == 0);
            ptowsp_program_destroy(program);
            assert_int_equal(memory->live_bytes, before);
        }
    }
    ptowsp_module_destroy(module);
}

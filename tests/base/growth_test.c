// Where tables grow: they double at 16, 32, .. items, so an allocation that fails meets a statement
// only if just that one makes a table grow. A module with every kind of declaration and statement is
// preceded by 0 to 15 others, which moves the places, and every allocation is refused: of reading it,
// compiling it, printing and saving the program.
//
// And how time grows: four times as many declarations take at most eight times as long, in everything that
// is done with a program. Where one of the steps walks over all of them it takes 12 to 16 times as long. This
// is processor time, and the least of many tries, so that other processes do not matter.

#include "test.h"

#include <stdarg.h>
#include <time.h>

enum { TEXT_MAX = 1 << 15, PAD_MAX = 16 };

// tests/base/growth.txt with so many declarations of each kind and statements in the places that it
// names.
static size_t text_of(char *text, uint32_t pads) {
    char line[200], *at = text;
    FILE *file = fopen("tests/base/growth.txt", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        const bool is_statements = strcmp(line, "@statements\n") == 0;
        const bool is_place = is_statements || strcmp(line, "@declarations\n") == 0;
        at += is_place ? 0 : sprintf(at, "%s", line);
        for (uint32_t i = 0; i < pads && is_place; i++) {
            at += sprintf(at,
                          is_statements
                              ? "  parallel v%u in pad_axis_%u\n    task w(v%u + pad_array_%u[0])\n"
                              : "axis pad_axis_%u 3\nsymbol pad_symbol_%u\narray pad_array_%u i64\n"
                                "tensor pad_tensor_%u i32 [1, 8] global\n"
                                "kernel pad_kernel_%u(axes 1) vector, 1 cycles, time only\n",
                          i, i, i, i, i);
        }
    }
    fclose(file);
    assert_true(at - text < TEXT_MAX);
    return (size_t)(at - text);
}

// Everything that can be done without data; the first status that is not OK.
static ptowsp_status do_everything(test_memory *memory, const char *text, size_t length,
                                   char *printed) {
    const ptowsp_context_desc desc = {test_resize, memory, PTOWSP_THREADS_SERIAL, 1, NULL, NULL};
    ptowsp_context *context;
    ptowsp_module *module = NULL;
    ptowsp_program *program = NULL;
    ptowsp_run *run = NULL;
    ptowsp_output_buffer buffer = {printed, 2 * TEXT_MAX, 0};
    ptowsp_status status = ptowsp_context_create(&desc, &context);
    if (status != PTOWSP_OK) {
        return status;
    }
    status = ptowsp_module_parse(context, text, length, NULL, &module, NULL);
    if (status == PTOWSP_OK) {
        status = ptowsp_program_create(context, module, NULL, &program);
    }
    if (status == PTOWSP_OK) {
        ptowsp_program_print(program, ptowsp_output_to_buffer(&buffer));
        assert_true(buffer.length < buffer.size);
        status = ptowsp_run_create(context, program, &run);
    }
    if (status == PTOWSP_OK) {
        status = ptowsp_program_save(context, module, NULL, ptowsp_output_to_buffer(&buffer));
        assert_true(buffer.length < buffer.size);
    }
    if (status != PTOWSP_OK && memory->refuse_at == 0) {
        fail_msg("%s", ptowsp_context_error(context).text);
    }
    if (status != PTOWSP_OK) {
        assert_int_equal(ptowsp_context_error(context).status, status);
        assert_non_null(strstr(ptowsp_context_error(context).text, "out of memory"));
    }
    test_destroy(run, program, module, context);
    return status;
}

TEST(growth__may_fail_at_every_statement) {
    static char text[TEXT_MAX], printed[2 * TEXT_MAX];
    uint64_t refused = 0;
    for (uint32_t pads = 0; pads < (test_is_tight() ? 1 : PAD_MAX); pads++) {
        const size_t length = text_of(text, pads);
        test_memory memory = {0};
        assert_ok(do_everything(&memory, text, length, printed));
        const size_t count = memory.allocations;
        for (size_t n = 1; n <= count; n++) {
            memset(&memory, 0, sizeof memory);
            memory.refuse_at = n;
            assert_int_equal(do_everything(&memory, text, length, printed), PTOWSP_OUT_OF_MEMORY);
            assert_int_equal(memory.live_bytes, 0);
            assert_int_equal(memory.live_blocks, 0);
            refused++;
        }
    }
    assert_true(test_is_tight() || refused > 1000);
}

// -- time -----------------------------------------------------------------------------------------

enum { MANY = 1500, MANY_MAX = 4 * MANY, TIME_ROUNDS = 100 };

typedef struct growing_text {
    char *data;
    size_t length, size;
} growing_text;

static void say(growing_text *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    text->length +=
        (size_t)vsnprintf(text->data + text->length, text->size - text->length, format, args);
    va_end(args);
    assert_true(text->length < text->size);
}

// A line, with the number in place of # and how many there are in place of @.
static void say_line(growing_text *text, const char *line, uint32_t number, uint32_t n) {
    for (; *line; line++) {
        if (*line == '#' || *line == '@') {
            say(text, "%u", *line == '#' ? number : n);
        } else {
            say(text, "%c", *line);
        }
    }
}

// A kind of tests/base/growing.txt. Lines that begin with * one after another are there for each
// number, with *0 to *3 for numbers that have this remainder by 4; + goes on with the line before
// for each number but 0. Channels of replicas have room for all, as each change of a process costs
// as much as a replica has variables.
static void declare(growing_text *text, const char *kind, uint32_t n) {
    enum { BLOCK_MAX = 8 };
    char lines[BLOCK_MAX][100];
    uint32_t count = 0;
    bool is_here = false;
    FILE *file = fopen("tests/base/growing.txt", "r");
    assert_non_null(file);
    for (bool is_read = true; is_read;) {
        char *line = lines[count];
        is_read = fgets(line, sizeof lines[0], file) != NULL;
        if (is_read && line[0] == '*' && is_here) {
            count++;
            assert_true(count < BLOCK_MAX);
            continue;
        }
        for (uint32_t i = 0; i < n * (count > 0); i++) {
            for (uint32_t k = 0; k < count; k++) {
                const bool is_some = lines[k][1] >= '0' && lines[k][1] <= '3';
                if (!is_some || i % 4 == (uint32_t)(lines[k][1] - '0')) {
                    say_line(text, lines[k] + (is_some ? 3 : 1), i, n);
                }
            }
        }
        if (is_read && strncmp(line, "kind ", 5) == 0) {
            is_here = strncmp(line + 5, kind, strlen(kind)) == 0;
        } else if (is_read && is_here && line[0] == '+') {
            text->length--;  // without the end of the line
            line[strcspn(line, "\n")] = '\0';
            for (uint32_t i = 1; i < n; i++) {
                say_line(text, line + 1, i, n);
            }
            say(text, "\n");
        } else if (is_read && is_here) {
            say_line(text, line, 0, n);
        }
        count = 0;
    }
    fclose(file);
}

static ptowsp_cycles seven(const ptowsp_task *task, void *user) {
    (void)task, (void)user;
    return 7;
}

static bool see_decision(void *user, const ptowsp_decision *decision) {
    *(uint64_t *)user += decision->stage[0] == 'c';
    return true;
}

static ptowsp_status see_file(void *user, const char *path, const char *text, size_t size) {
    (void)path, (void)text;
    *(uint64_t *)user += size;
    return PTOWSP_OK;
}

// Binds each name as whatever it is.
static void bind_many(ptowsp_run *run, uint32_t n) {
    static const int32_t integers[2] = {0, 1};
    static const int64_t wide[2] = {0, 0};
    const ptowsp_csr csr = {PTOWSP_I32, integers, integers, 1, 1};
    const ptowsp_work work = {0};
    for (uint32_t i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "a%u", i);
        ptowsp_run_bind_work(run, name, &work, 0);
        ptowsp_run_bind_size(run, name, 1);
        ptowsp_run_bind_lengths(run, name, PTOWSP_I32, integers + 1, 1);
        ptowsp_run_bind_csr(run, name, &csr);
        name[0] = 's';
        ptowsp_run_bind_symbol(run, name, 1);
        ptowsp_run_bind_array(run, name, PTOWSP_I64, wide, 2);
    }
}

// Reads, compiles, binds, runs, explains and emits; returns processor time in seconds.
static double time_of(const char *kind, uint32_t n) {
    static ptowsp_parse_kernel attached[MANY_MAX];
    static char names[MANY_MAX][8];
    growing_text text = {malloc(1 << 21), 0, 1 << 21};
    ptowsp_module *module = NULL;
    ptowsp_program *program = NULL;
    ptowsp_run *run = NULL;
    uint64_t seen = 0;
    ptowsp_context *context = test_context(NULL);
    say(&text, "module many\n");
    declare(&text, kind, n);
    for (uint32_t i = 0; i < n; i++) {  // the last one first, with two sources in all
        const uint32_t number = n - 1 - i;
        snprintf(names[i], sizeof names[i], "k%u", number);
        attached[i] = (ptowsp_parse_kernel){
            .name = names[i],
            .fn = seven,
            .source = {.text = number % 2 ? "static int odd;" : "static int even;", .fn = "f"}};
    }
    const ptowsp_parse_desc desc = {attached, n, 0};
    const ptowsp_record_options record = {.level = PTOWSP_RECORD_TASKS};
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    const clock_t begin = clock();
    if (ptowsp_module_parse(context, text.data, text.length, &desc, &module, NULL) != PTOWSP_OK ||
        ptowsp_program_create(context, module, NULL, &program) != PTOWSP_OK ||
        ptowsp_run_create(context, program, &run) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(context).text);
    }
    bind_many(run, n);
    if (ptowsp_run_record(run, &record) != PTOWSP_OK ||
        ptowsp_run_execute(run, &options) != PTOWSP_OK ||
        ptowsp_npu_emit_files(context, program, see_file, &seen) != PTOWSP_OK) {
        fail_msg("%s", ptowsp_context_error(context).text);
    }
    assert_true(ptowsp_run_decisions(run, see_decision, &seen));
    const double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    test_destroy(run, program, module, context);
    free(text.data);
    return seconds;
}

// Sixteen times would be quadratic; the bins of records of 6,000 kernels (24 MB) are in no cache.
TEST(growth__four_times_as_many_declarations_take_at_most_twelve_times_as_long) {
    static const char *const kinds[] = {"axes", "plans", "kernels", "ports", "receives", "symbols"};
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        double few = 1e9, many = 1e9;
        for (uint32_t i = 0; i < TIME_ROUNDS && (i == 0 || many > 12 * few); i++) {
            const double a = time_of(kinds[k], MANY);
            const double b = time_of(kinds[k], MANY_MAX);
            few = a < few ? a : few;
            many = b < many ? b : many;
        }
        if (many > 12 * few) {
            fail_msg("%u %s take %.1f ms, %u take %.1f ms", MANY, kinds[k], 1e3 * few, MANY_MAX,
                     1e3 * many);
        }
    }
}

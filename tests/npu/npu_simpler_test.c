// Trees for PTO Runtime: what they share with other trees, byte for byte; an orchestration as people read
// it, in tests/golden. What is refused is in tests/npu/emitted/simpler.emit. What they do is in
// simpler_test.sh, which runs those of examples, and random ones: PTOWSP_SIMPLER_TREES names a directory
// that these are left in, and PTOWSP_SIMPLER_COUNT says how many there are.

#include "npu_fixture.h"
#include "npu_texts.h"

#include <stdarg.h>
#include <stdlib.h>

enum { SIZE = 16, TILES = 5 };

// -- programs -------------------------------------------------------------------------------------

// y = x + x, by TILES tasks of one kernel.
static void doubles_make(npu_fixture *f) {
    npu_fixture_begin(f);
    npu_parse(f, npu_module("doubles"), NULL, 0);
    npu_fixture_compile(f, NULL);
}

static ptowsp_npu_desc simpler_desc(const npu_fixture *f) {
    return (ptowsp_npu_desc){.directory = textf("%s/tree", f->directory),
                             .runtime = PTOWSP_NPU_SIMPLER};
}

static const char *tree_file(const npu_fixture *f, const char *path) {
    return text_of(textf("%s/tree/%s", f->directory, path));
}

// -- files ----------------------------------------------------------------------------------------

typedef struct compared {
    const npu_fixture *f;
    int count;
} compared;

// Sources of the program are those of the other tree.
static ptowsp_status compare(void *user, const char *path, const char *text, size_t size) {
    compared *c = (compared *)user;
    const bool is_expand = strcmp(path, "aicpu/expand.cpp") == 0,
               is_program = strcmp(path, "aicpu/program.cpp") == 0,
               is_kernel = strcmp(path, "aicore/kernels/twice.cpp") == 0;
    if (is_expand || is_program || is_kernel) {
        const char *mine = tree_file(c->f, is_expand    ? "orchestration/tree/expand.cpp"
                                           : is_program ? "orchestration/tree/program.cpp"
                                                        : "kernels/twice.cpp");
        const char *at = strstr(mine, text);
        assert_non_null(at);
        const char *end = at + size;
        assert_true(is_kernel || (at == mine && !*end));
        if (is_kernel) {
            const char *entry = strstr(mine, "\nWSP_SIMPLER_ENTRY(twice)\n");
            assert_memory_equal(mine, "#define WSP_SIMPLER_TILES   2\n", 30);
            assert_true(entry && entry < at);  // a device enters the code at its start
            assert_string_equal(end, "");
        }
        c->count++;
    }
    return PTOWSP_OK;
}

#define DOUBLES_TEST(name) TEST_MADE(name, npu_fixture, f, doubles_make(f), npu_fixture_free(f))

DOUBLES_TEST(simpler__sources_of_a_program_are_those_of_its_other_tree) {
    const ptowsp_npu_desc desc = simpler_desc(f);
    assert_ok(ptowsp_npu_emit(f->context, f->program, &desc));
    compared c = {f, 0};
    assert_ok(ptowsp_npu_emit_files(f->context, f->program, compare, &c));
    assert_int_equal(c.count, 3);
}

// As a person has read it.
DOUBLES_TEST(simpler__orchestration_is_golden) {
    ptowsp_npu_desc desc = simpler_desc(f);
    desc.task_window = 64;
    desc.block_max = 3;
    assert_ok(ptowsp_npu_emit(f->context, f->program, &desc));
    assert_string_equal(tree_file(f, "orchestration/doubles.cpp"),
                        text_of("tests/golden/simpler_doubles.cpp"));
}

// A run is in the tree, which is written whole or not at all.
DOUBLES_TEST(simpler__run_is_recorded_beside_the_test) {
    float x[TILES * SIZE * SIZE] = {0}, y[TILES * SIZE * SIZE] = {0};
    ptowsp_run *run = test_run_of(f->context, f->program);
    ptowsp_npu_desc desc = simpler_desc(f);
    desc.run = run;
    assert_int_equal(ptowsp_npu_emit(f->context, f->program, &desc), PTOWSP_UNBOUND);
    assert_int_equal(npu_entries(f->directory), 0);
    test_bind(run, "x", x);
    test_bind(run, "y", y);
    x[3] = 2.5f;
    assert_ok(ptowsp_npu_emit(f->context, f->program, &desc));
    assert_true(y[3] == 5.0f);
    const char *recording = tree_file(f, "recording/recording");
    assert_non_null(strstr(recording, "\n--expect y=@o1.bin\n"));
    assert_non_null(strstr(recording, "\nfile m1.bin 5120 "));
    ptowsp_run_destroy(run);
}

// -- random programs ------------------------------------------------------------------------------

// Tiles of a few tensors, read and written in place or elsewhere, by tasks in scopes of both kinds: with
// all hazards, tiles that overlap in part, conditions, and steps that make blocks. Some have slots, loaded
// from integers that tasks count up, in conditions and in arguments.
enum { RANDOM_ROWS = 64, RANDOM_TENSORS = 3, RANDOM_STATEMENTS = 24, RANDOM_SLOTS = 3 };

typedef struct random_program {
    npu_fixture f;
    uint64_t state;
    char text[1 << 16];
    size_t length;
    int indent;
} random_program;

static uint32_t below(random_program *r, uint32_t count) {
    r->state = r->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(r->state >> 33) % count;
}

// Adds a line.
static void say(random_program *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    r->length += (size_t)sprintf(r->text + r->length, "%*s", 2 * r->indent, "");
    r->length += (size_t)vsnprintf(r->text + r->length, sizeof r->text - r->length, format, args);
    va_end(args);
    assert_true(r->length + 2 < sizeof r->text);
    strcpy(r->text + r->length++, "\n");
}

// Of the loops' variables, which are at most 2.
static void random_task(random_program *r, const char *i, const char *k) {
    static const char tiles[] = "xyz";
    char views[3][80];
    for (int v = 0; v < 3; v++) {
        const uint32_t of_k = below(r, 2), of_i = below(r, 3);
        const char tensor = (char)('a' + below(r, RANDOM_TENSORS));
        snprintf(views[v], sizeof views[v], "%c = %c at ((%s * %u + %s * %u) * 8, %u)", tiles[v],
                 tensor, i, (unsigned)of_i, k, (unsigned)of_k, (unsigned)below(r, 2) * 8);
    }
    say(r, "task mean() %s %s %s by = %s * %u + %s", views[0], views[1], views[2], i,
        (unsigned)below(r, 3), k);
}

static void random_scope(random_program *r, const char *i, int depth) {
    const char *k = depth ? "k" : "i";
    say(r, "%s %s in three", below(r, 2) == 0 ? "parallel" : "for_each", k);
    r->indent++;
    const uint32_t kind = below(r, 4);
    if (kind == 0) {
        say(r, "when %s <= %s", k, i);
        r->indent++;
        random_task(r, i, k);
        r->indent--;
    }
    for (uint32_t n = below(r, 2); n < 2; n++) {
        random_task(r, i, k);
    }
    if (depth < 1 && kind < 2) {
        random_scope(r, k, depth + 1);
    }
    r->indent--;
}

// Counts are of a tensor of 16 x 16; the tile is one of 9 that overlap, from row and column 0, 4 or 8.
static void random_count(random_program *r, const char *by) {
    const uint32_t row = below(r, 3) * 4;
    say(r, "task count() x = counts at (%u, %u) by = %s", (unsigned)row, (unsigned)below(r, 3) * 4,
        by);
}

static void random_load(random_program *r, uint32_t slot) {
    const uint32_t row = 6 + below(r, 4);
    say(r, "slot_load %u = counts at (%u, %u) element (0, 0)", (unsigned)slot, (unsigned)row,
        (unsigned)(6 + below(r, 4)));
}

static const char *random_condition(random_program *r, uint32_t slot, char text[64]) {
    static const char *const compares[] = {"==", "!=", "<", "<=", ">", ">="};
    const char *compare = compares[below(r, 6)];
    const int value = (int)below(r, 5) - 2;
    if (below(r, 2)) {
        snprintf(text, 64, "slot_i64[%u] %s %d", (unsigned)slot, compare, value);
    } else {
        snprintf(text, 64, "%d %s slot_i64[%u]", value, compare, (unsigned)slot);
    }
    return text;
}

// A condition around tasks: some overwrite what slots are loaded from, some read slots, and the view of
// one is outside of its tensor, under a condition that never holds.
static void random_slots(random_program *r) {
    static const char flipped[] = "task count() x = counts at (4, 4) by = %d";
    const uint32_t slot = below(r, RANDOM_SLOTS), kind = below(r, 8);
    char holds[64], next[64];
    const char *by;
    // The element is another number for a while: from before its load, or from after it.
    const uint32_t flip = below(r, 3);
    if (flip == 1) {
        say(r, flipped, 1000);
    } else if (below(r, 2)) {
        by = textf("%d", (int)below(r, 5) - 2);
        random_count(r, by);
    }
    if (kind == 0) {
        say(r, "slot_set %u = %u", (unsigned)slot, (unsigned)below(r, 3));
    } else if (kind != 6) {
        random_load(r, slot);
    }
    if (flip == 2) {
        say(r, flipped, 1000);
    }
    if (flip == 1 && kind < 6) {
        snprintf(holds, sizeof holds, "slot_i64[%u] > 500", (unsigned)slot);
    } else if (kind == 7) {
        snprintf(holds, sizeof holds, "slot_i64[%u] > 100000", (unsigned)slot);
    } else if (kind == 6) {
        snprintf(holds, sizeof holds, "slot_bool[%u]", (unsigned)slot);
    } else {
        random_condition(r, slot, holds);
    }
    if (kind == 7) {
        say(r, "parallel i in three");
        r->indent++;
        say(r, "when %s", holds);
        r->indent++;
        random_task(r, "i * 1000", "1");
        r->indent -= 2;
    }
    say(r, "when %s", holds);
    r->indent++;
    if (below(r, 3) == 0) {
        by = textf(kind == 5 ? "min(slot_i64[%u], 1)" : "1", (unsigned)slot);
        random_count(r, by);
    }
    random_task(r, "1", "1");
    r->indent--;
    if (below(r, 3) == 0) {
        say(r, "otherwise");
        r->indent++;
        random_count(r, "1");
        r->indent--;
    } else if (below(r, 2)) {  // the slot's next value, while a task under this one is open
        random_load(r, slot);
        say(r, "when %s", random_condition(r, slot, next));
        r->indent++;
        random_task(r, "1", "1");
        r->indent--;
    }
    if (flip > 0) {
        say(r, flipped, -1000);
    }
}

// mean: z = (x + y) / 2 + by. count: x += by, of integers. Tasks with slots are ordered by data alone.
static void random_begin(random_program *r, uint64_t seed, bool has_slots) {
    memset(r, 0, sizeof *r);
    r->state = seed;
    say(r,
        "module random slots 8\naxis three 3\ntensor a f32 [64, 32] global\n"
        "tensor b f32 [64, 32] global\ntensor c f32 [64, 32] global\n%s"
        "kernel mean(axes 0, in x f32 16 x 16, in y f32 16 x 16, out z f32 16 x 16, by i64) "
        "vector, 14 instructions\n"
        "  machine \"910B\"\n"
        "  %%1 = parameter x\n"
        "  %%2 = parameter y\n"
        "  %%3 = parameter z\n"
        "  %%4 = scalar by : i64\n"
        "  %%5 = const 0.5\n"
        "  %%6 = add %%1, %%2 : f32 16 x 16\n"
        "  %%7 = mul %%6, %%5 : f32 16 x 16\n"
        "  %%8 = add %%7, %%4 : f32 16 x 16\n"
        "  store %%3, %%8\n%sworkload random%s",
        has_slots ? "tensor counts i32 [16, 16] global\n" : "",
        has_slots ? "kernel count(axes 0, inout x i32 8 x 8, by i64) vector, 9 instructions\n"
                    "  machine \"910B\"\n"
                    "  %1 = parameter x\n"
                    "  %2 = scalar by : i64\n"
                    "  %3 = add %1, %2 : i32 8 x 8\n"
                    "  store %1, %3\n"
                  : "",
        has_slots ? "\n  combine" : "");
    r->indent = has_slots ? 2 : 1;
}

static void random_compile(random_program *r) {
    npu_fixture_begin(&r->f);
    npu_parse(&r->f, r->text, NULL, 0);
    npu_fixture_compile(&r->f, NULL);
}

static void random_make(random_program *r, uint64_t seed) {
    const bool has_slots = seed > 2;
    random_begin(r, seed, has_slots);
    for (int n = 0; n < RANDOM_STATEMENTS; n++) {
        if (has_slots) {
            random_slots(r);
        }
        if (!has_slots || below(r, 2)) {
            const char i[2] = {(char)('0' + below(r, 3)), '\0'};
            random_scope(r, i, 0);
        }
    }
    random_compile(r);
}

// A description for a tree in the directory that is kept, if there is one.
static ptowsp_npu_desc kept_desc(const npu_fixture *f, const char *name) {
    const char *kept = getenv("PTOWSP_SIMPLER_TREES");
    ptowsp_npu_desc desc = simpler_desc(f);
    desc.directory = kept ? textf("%s/%s", kept, name) : desc.directory;
    return desc;
}

// Writes the tree with a run.
static void random_write(random_program *r, ptowsp_npu_desc *desc, bool has_slots) {
    static float data[RANDOM_TENSORS][RANDOM_ROWS * 2 * SIZE];
    static int32_t counts[16 * 16];
    assert_ok(ptowsp_run_create(r->f.context, r->f.program, &desc->run));
    if (has_slots) {
        memset(counts, 0, sizeof counts);
        ptowsp_buffer buffer = {.dtype = PTOWSP_I32, .data = counts};
        assert_ok(ptowsp_run_bind_tensor(desc->run, "counts", &buffer));
    }
    for (int i = 0; i < RANDOM_TENSORS; i++) {
        ptowsp_buffer buffer = {.dtype = PTOWSP_F32, .data = data[i]};
        for (int k = 0; k < RANDOM_ROWS * 2 * SIZE; k++) {
            data[i][k] = (float)below(r, 1000);
        }
        const char name[2] = {(char)('a' + i), '\0'};
        assert_ok(ptowsp_run_bind_tensor(desc->run, name, &buffer));
    }
    test_ok(r->f.context, ptowsp_npu_emit(r->f.context, r->f.program, desc));
    ptowsp_run_destroy(desc->run);
    npu_fixture_free(&r->f);
}

TEST(simpler__random_programs_are_written_with_their_runs) {
    const char *count = getenv("PTOWSP_SIMPLER_COUNT");
    const uint64_t seeds = count ? (uint64_t)atoi(count) : 4;
    static random_program r;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        random_make(&r, seed);
        ptowsp_npu_desc desc = kept_desc(&r.f, textf("random%d", (int)seed));
        desc.task_window = seed % 2 ? 64 : 0;
        desc.block_max = seed % 2 ? 1 : 0;
        random_write(&r, &desc, seed > 2);
    }
}

// One task under each of two loads of a slot, with nothing between them: the first element is 1, the second
// one 0. The last 24 tasks wait for no other of them: more than a submit waits for, and without a block
// nothing does (simpler_test.sh finds no dummy).
TEST(simpler__predicates_keep_their_elements) {
    static random_program r;
    random_begin(&r, 1, true);
    for (int i = 0; i < 2; i++) {
        say(&r, "task count() x = counts at (%d, %d) by = %d", 8 * i, 8 * i, 1 - i);
    }
    for (int i = 0; i < 2; i++) {
        say(&r, "slot_load 0 = counts at (%d, %d) element (0, 0)", 8 * i, 8 * i);
        say(&r, "when slot_i64[0] > 0");
        say(&r, "  task mean() x = a at (%d, 0) y = b at (%d, 0) z = c at (%d, 0) by = 1", SIZE * i,
            SIZE * i, SIZE * i);
    }
    for (int i = 0; i < 8 * RANDOM_TENSORS; i++) {
        const int tensor = 'a' + i / 8, row = i % 4 * SIZE, col = i / 4 % 2 * SIZE;
        say(&r, "task mean() x = %c at (%d, %d) y = %c at (%d, %d) z = %c at (%d, %d) by = 0",
            tensor, row, col, tensor, row, col, tensor, row, col);
    }
    random_compile(&r);
    ptowsp_npu_desc desc = kept_desc(&r.f, "reload");
    desc.block_max = 1;
    random_write(&r, &desc, true);
}

// Strides are known as a run begins: this one goes backwards.
DOUBLES_TEST(simpler__strides_below_1_are_written_for_the_orchestration_to_refuse) {
    float data[2][TILES * SIZE * SIZE] = {{0}};
    ptowsp_npu_desc desc = kept_desc(f, "refused");
    assert_ok(ptowsp_run_create(f->context, f->program, &desc.run));
    for (int i = 0; i < 2; i++) {
        ptowsp_buffer buffer = {.dtype = PTOWSP_F32,
                                .rank = 2,
                                .shape[0] = TILES * SIZE,
                                .shape[1] = SIZE,
                                .strides[0] = i == 0 ? -SIZE : SIZE,
                                .strides[1] = 1,
                                .data = data[i] + (i == 0 ? (TILES * SIZE - 1) * SIZE : 0)};
        assert_ok(ptowsp_run_bind_tensor(desc.run, i ? "y" : "x", &buffer));
    }
    assert_ok(ptowsp_npu_emit(f->context, f->program, &desc));
    ptowsp_run_destroy(desc.run);
}

// -- what is refused ------------------------------------------------------------------------------

static void refuses(npu_fixture *f, const ptowsp_npu_desc *desc, ptowsp_status status,
                    const char *text) {
    assert_int_equal(ptowsp_npu_emit(f->context, f->program, desc), status);
    assert_string_equal(ptowsp_context_error(f->context).text, text);
    assert_int_equal(npu_entries(f->directory), 0);
}

TEST(simpler__descriptions_that_are_wrong_are_refused) {
    npu_fixture f, other;
    doubles_make(&f);
    ptowsp_npu_desc desc = simpler_desc(&f);
    desc.runtime = (ptowsp_npu_runtime)7;
    refuses(&f, &desc, PTOWSP_INVALID_PARAMS, "emit: there is no runtime 7");
    doubles_make(&other);
    desc = simpler_desc(&f);
    assert_ok(ptowsp_run_create(other.context, other.program, &desc.run));
    refuses(&f, &desc, PTOWSP_INVALID_PARAMS, "emit: the run to record is of another program");
    ptowsp_run_destroy(desc.run);
    npu_fixture_free(&other);
    npu_fixture_free(&f);
}

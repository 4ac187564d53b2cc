// Names of users and names of the runtime cannot meet: no identifier of a tree's fixed files, of the
// headers that they include, or of C++ begins with a prefix that users' names get. Then trees of
// modules whose things are all called as something of the runtime is; they compile.
//
// The names are taken from the files themselves, and from the compiler's macros.

#include "npu_fixture.h"
#include "npu_kernel_fixture.h"
#include "npu_texts.h"

#include "src/npu/npu.h"

#include <ctype.h>

enum { WORD_MAX = 40000, SLOTS = 131072, TILE_KERNEL_MAX = 60, LOCAL_MAX = 1500, CHANNELS = 200 };

// -- words ----------------------------------------------------------------------------------------

static struct {
    char *at[WORD_MAX];
    uint32_t slots[SLOTS];  // 1 + word, by hash
    uint32_t count;
} words;

// The library's own symbol is the one name with a meaning: an axis cannot have it.
static bool word_add(const char *text, size_t length) {
    if (length == strlen(PTOWSP_CHANNEL_LATENCY_SYMBOL) &&
        memcmp(text, PTOWSP_CHANNEL_LATENCY_SYMBOL, length) == 0) {
        return false;
    }
    uint64_t i = ptowsp_hash(PTOWSP_HASH_START, text, length);
    for (;; i++) {
        const uint32_t slot = words.slots[i % SLOTS];
        if (slot == 0) {
            break;
        }
        if (strlen(words.at[slot - 1]) == length && memcmp(words.at[slot - 1], text, length) == 0) {
            return false;
        }
    }
    assert_true(words.count < WORD_MAX);
    char *word = (char *)calloc(1, length + 1);
    assert_non_null(word);
    memcpy(word, text, length);
    words.at[words.count++] = word;
    words.slots[i % SLOTS] = words.count;
    return true;
}

// Without comments, which have examples of emitted names.
static void words_of(const char *text, size_t size) {
    for (size_t i = 0; i < size;) {
        size_t end = i;
        if (text[i] == '/' && i + 1 < size && text[i + 1] == '/') {
            while (i < size && text[i] != '\n') {
                i++;
            }
            continue;
        }
        while (end < size && (isalnum((unsigned char)text[end]) || text[end] == '_')) {
            end++;
        }
        if (end > i && !isdigit((unsigned char)text[i])) {
            word_add(text + i, end - i);
        }
        i = end > i ? end : i + 1;
    }
}

// All that the preprocessor leaves of headers, and the names of macros.
static void words_of_headers(const char *directory) {
    static const char *const modes[] = {"-E", "-E -dM"};
    static char block[65536];
    for (int i = 0; i < 2; i++) {
        FILE *pipe = popen(
            textf(
                "cd %s && cat aicpu/*.cpp host/*.cpp aicore/*.cpp | %s -std=c++17 %s -P -Iinclude "
                "-Iaicpu -Ihost -Iaicore -Ishim -x c++ -",
                directory, npu_compiler(), modes[i]),
            "r");
        assert_non_null(pipe);
        size_t kept = 0, count;
        while ((count = fread(block + kept, 1, sizeof block - kept, pipe)) > 0) {
            size_t size = kept + count, end = size;
            while (end > 0 && (isalnum((unsigned char)block[end - 1]) || block[end - 1] == '_')) {
                end--;  // may go on in the next block
            }
            words_of(block, end);
            kept = size - end;
            memmove(block, block + end, kept);
        }
        assert_int_equal(pclose(pipe), 0);
    }
}

// Keywords and alternative operators of C++20; they are in no header as names.
static const char keywords[] =
    "alignas alignof asm auto bool break case catch char char8_t char16_t char32_t class concept "
    "const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype "
    "default delete do double dynamic_cast else enum explicit export extern false float for friend "
    "goto if inline int long mutable namespace new noexcept nullptr operator private protected "
    "public register reinterpret_cast requires return short signed sizeof static static_assert "
    "static_cast struct switch template this thread_local throw true try typedef typeid typename "
    "union unsigned using virtual void volatile wchar_t while and and_eq bitand bitor compl not "
    "not_eq or or_eq xor xor_eq import module final override unix linux errno stdin stdout stderr "
    "assert major minor makedev signbit isnan i386 near far small";

static void words_collect(void) {
    if (words.count == 0) {
        words_of(keywords, sizeof keywords - 1);
        for (uint32_t i = 0; npu_fixed_at(i).path; i++) {
            words_of(npu_fixed_at(i).data, npu_fixed_at(i).size);
        }
    }
}

// -- prefixes -------------------------------------------------------------------------------------

static const char *const prefixes[] = {
    "v_",     "r_",      "e_",      "wsp_kernel_", "wsp_tasks_", "wsp_launch_", "AXIS_",
    "ARRAY_", "SYMBOL_", "TENSOR_", "KERNEL_",     "CHANNEL_",   "run_kernel_"};

static void is_emitted(npu_fixture *f, const char *path) {
    const ptowsp_npu_desc desc = {path, true, true, PTOWSP_NPU_OWN, 0, 0, NULL};
    test_ok(f->context, ptowsp_npu_emit(f->context, f->program, &desc));
}

// CANN's word, in a file of the host that does not include program.h; and an argument of a macro,
// which is only a part of names.
static bool is_apart(const char *word) {
    return strcmp(word, "KERNEL_TYPE_AICPU_KFC") == 0 || strcmp(word, "KERNEL_FAILED") == 0;
}

TEST(names__no_name_of_the_runtime_begins_as_those_of_users_do) {
    npu_fixture f;
    npu_fixture_make(&f);
    const char *path = textf("%s/tree", f.directory);
    is_emitted(&f, path);
    words_collect();
    const uint32_t own = words.count;
    uint32_t count = 0;
    // Without what is made of this program's names.
    npu_shell("cd %s && : > aicpu/program.h && rm aicpu/program.cpp aicpu/expand.cpp "
              "aicore/dispatch.cpp",
              path);
    words_of_headers(path);
    print_message("%u names of the runtime, %u of headers and macros\n", own, words.count - own);
    assert_true(own > 2000 && words.count > own + 1000);
    for (uint32_t i = 0; i < words.count; i++) {
        for (size_t k = 0; k < COUNT_OF(prefixes); k++) {
            const size_t length = strlen(prefixes[k]);
            if (strncmp(words.at[i], prefixes[k], length) == 0 && words.at[i][length] &&
                !is_apart(words.at[i])) {
                print_error("%s\n", words.at[i]);
                count++;
            }
        }
    }
    assert_int_equal(count, 0);
    npu_fixture_free(&f);
}

// -- trees ----------------------------------------------------------------------------------------

// Words as names of a module, each once, but those that are too long; those of kernels also when
// letters' case is ignored.
static struct {
    const char *at[WORD_MAX];
    uint32_t count;
} names;

static void names_collect(void) {
    words_collect();
    names.count = 0;
    for (uint32_t i = 0; i < words.count; i++) {
        if (strlen(words.at[i]) <= PTOWSP_PLAN_NAME_MAX) {
            names.at[names.count++] = words.at[i];
        }
    }
}

static const char *name_at(uint32_t i) {
    return names.at[i % names.count];
}

static void compiles(const char *tree, const char *files) {
    npu_shell("cd %s && for f in %s; do printf '#include \"%%s\"\n' \"$PWD/$f\"; done | %s "
              "-std=c++17 -fsyntax-only -Wall -Wextra -Werror -Iinclude -Iaicpu -Iaicore -Ihost "
              "-Ishim -x c++ - > errors 2>&1 || { head -n 30 errors; exit 1; }",
              tree, files, npu_compiler());
}

static void names_begin(npu_fixture *f, char path[128]) {
    names_collect();
    npu_fixture_begin(f);
    npu_module_make(f, "tile */ names ?"
                       "?/");
    snprintf(path, 128, "%s/tree", f->directory);
}

// Names that are no words: blanks, digits, a trigraph, what the emitter makes of others; then every n-th
// word, so that all files have their share, and all of the first ones, which are keywords.
static const char *thing_at(uint32_t i) {
    static const char *const odd[] = {"0 ?\?/", "a b",     "a_b", "scope_2",
                                      "x_end",  "x_entry", "x",   "__x__"};
    const uint32_t every = names.count > LOCAL_MAX ? names.count / LOCAL_MAX : 1;
    return i < COUNT_OF(odd) ? odd[i] : name_at(i < 140 ? i - (uint32_t)COUNT_OF(odd) : i * every);
}

// Axes, arrays, symbols, tensors, workloads with parameters, loops, channels, processes.
TEST(names__of_all_things_in_programs_may_be_any) {
    npu_fixture f;
    char path[128];
    names_begin(&f, path);
    ptowsp_module *m = f.m;
    ptowsp_kernel_desc desc = {.name = "task", .axis_count = 1, .fn = npu_scale};
    desc.source.text = "static ptowsp_cycles task(const ptowsp_task *task, void *user) "
                       "{ (void)task; (void)user; return 1; }";
    desc.tiles[0] = (ptowsp_tile_param){"tile", PTOWSP_INOUT, PTOWSP_F32, 1, 8};
    const ptowsp_kernel step = ptowsp_kernel_make(m, &desc);
    const uint32_t count = names.count < LOCAL_MAX ? names.count : LOCAL_MAX;
    const ptowsp_axis inner = ptowsp_axis_dynamic(m, "x+");
    PTOWSP_WORKLOAD(m, "all of them") {
        for (uint32_t i = 0; i < count; i++) {
            const char *word = thing_at(i);
            const char *name = textf("%s!", word);
            ptowsp_tensor_desc tensor = {
                name, PTOWSP_F32, 2, {PTOWSP_DYNAMIC, 8}, PTOWSP_LOCATION_GLOBAL};
            ptowsp_task_desc task = {.kernel = step,
                                     .views[0].tensor = ptowsp_tensor_make(m, &tensor)};
            ptowsp_expr v = ptowsp_for_each_begin(m, word,
                                                  i % 3 == 0   ? ptowsp_axis_dynamic(m, word)
                                                  : i % 3 == 1 ? ptowsp_axis_ragged(m, word)
                                                               : ptowsp_axis_sparse(m, word));
            ptowsp_expr w = ptowsp_parallel_begin(m, "x!", inner);
            name = textf("%s.", word);
            ptowsp_expr at = ptowsp_array_at(m, name, PTOWSP_I32, ptowsp_add(v, w));
            name = textf("%s/", word);
            task.axes[0] = ptowsp_add(at, ptowsp_cast(ptowsp_symbol(m, name), PTOWSP_TYPE_I64));
            task.views[0].row = v;
            ptowsp_task_make(m, &task);
            ptowsp_call_make(m, thing_at(i), (ptowsp_expr[]){v, ptowsp_eq(v, w)}, 2);
            ptowsp_scope_end(m);
            ptowsp_scope_end(m);
        }
        for (uint32_t i = 0; i < CHANNELS; i++) {
            const char *word = thing_at(i);
            PTOWSP_PIPELINE(m, word) {
                ptowsp_channel channel =
                    ptowsp_channel_make(m, &(ptowsp_channel_desc){.name = word, .depth = 2});
                PTOWSP_PROCESS(m, word) {
                    ptowsp_produces(m, channel);
                    ptowsp_send_make(m, channel, ptowsp_i64(m, 1));
                }
                PTOWSP_PROCESS(m, "run.") {
                    ptowsp_consumes(m, channel);
                    ptowsp_consume_begin(m, word, channel);
                    ptowsp_scope_end(m);
                }
            }
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        PTOWSP_WORKLOAD(m, thing_at(i)) {
            ptowsp_expr p = ptowsp_workload_param(m, thing_at((i + 3) % count), PTOWSP_TYPE_I64);
            ptowsp_workload_param(m, "q", PTOWSP_TYPE_BOOL);
            ptowsp_slot_set_make(m, 0, p);
        }
    }
    const ptowsp_program_desc program = {.workload = "all of them"};
    test_ok(f.context, ptowsp_program_create(f.context, m, &program, &f.program));
    is_emitted(&f, path);
    compiles(path, "aicpu/expand.cpp");
    compiles(path, "aicpu/program.cpp");
    compiles(path, "aicore/kernels/*.cpp");
    npu_fixture_free(&f);
}

// Kernels of C functions; their functions are called as they are, where C has such names.
TEST(names__of_kernels_may_be_any) {
    static const char *const functions[] = {"task", "tile",  "gamma", "index",   "signgam", "y0",
                                            "time", "clock", "run",   "program", "element", "rows"};
    enum { FUNCTIONS = COUNT_OF(functions) };
    static char sources[FUNCTIONS][256];
    npu_fixture f;
    char path[128];
    names_begin(&f, path);
    ptowsp_module *m = f.m;
    ptowsp_task_desc task = {.axes[0] = ptowsp_i64(m, 0)};
    PTOWSP_WORKLOAD(m, "main") {
        for (uint32_t i = 0; i < names.count; i++) {
            const int which = (int)(i % FUNCTIONS);
            snprintf(sources[which], sizeof sources[which],
                     "static ptowsp_cycles %s(const ptowsp_task *task, void *user) "
                     "{ (void)task; (void)user; return 1; }",
                     functions[which]);
            ptowsp_kernel_desc desc = {.name = name_at(i),
                                       .axis_count = 1,
                                       .fn = npu_scale,
                                       .source.text = sources[which],
                                       .source.fn = functions[which]};
            task.kernel = ptowsp_kernel_make(m, &desc);
            ptowsp_task_make(m, &task);
        }
    }
    npu_fixture_compile(&f, NULL);
    is_emitted(&f, path);
    compiles(path, "aicore/dispatch.cpp");
    npu_shell("cd %s/aicore/kernels && [ \"$(ls | tr A-Z a-z | sort -u | wc -l)\" = %d ]", path,
              FUNCTIONS);
    compiles(path, "aicore/kernels/*.cpp");
    npu_fixture_free(&f);
}

// Tile kernels, tiles and scalars: kernels are called as types and functions of the runtime are
// behind wsp_, which their namespaces had before their names, too.
TEST(names__of_tile_kernels_and_operands_may_be_any) {
    npu_fixture f;
    char path[128];
    names_begin(&f, path);
    ptowsp_module *m = f.m;
    uint32_t made = 0, at = 0;
    PTOWSP_WORKLOAD(m, "main") {
        for (uint32_t i = 0; i < names.count && made < TILE_KERNEL_MAX; i++) {
            if (strncmp(names.at[i], "wsp_", 4) != 0 || !names.at[i][4]) {
                continue;
            }
            ptowsp_task_desc task = {0};
            ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = names.at[i] + 4});
            ptowsp_value sum = {NULL, 0};
            for (uint32_t n = 0; n < 5; n++) {
                const char *word = name_at(at++);
                ptowsp_tensor_desc tensor = {NULL, PTOWSP_F32, 2, {8, 8}, PTOWSP_LOCATION_GLOBAL};
                tensor.name = textf("%u.%u", made, n);
                task.views[n].tensor = ptowsp_tensor_make(m, &tensor);
                ptowsp_value tile = n < 4 ? ptowsp_tile_in(k, word, PTOWSP_F32, 8, 8)
                                          : ptowsp_tile_out(k, word, PTOWSP_F32, 8, 8);
                if (n == 4) {
                    ptowsp_tile_store(tile, sum);
                } else {
                    sum = n ? ptowsp_tile_add(sum, tile) : tile;
                }
            }
            task.kernel = ptowsp_kernel_end(k);
            ptowsp_task_make(m, &task);
            made++;
        }
    }
    npu_fixture_compile(&f, NULL);
    is_emitted(&f, path);
    compiles(path, "aicore/dispatch.cpp");
    compiles(path, "aicore/kernels/*.cpp");
    npu_fixture_free(&f);
}

// Kernels as emitted C++, compiled and loaded beside the library: what they compute and how long
// they take has to be the same.
//
// Emitted files of many programs go into one directory and one shared object, each program's in a
// namespace of its own: compiling the shim's templates once for all of them is most of the saving.
//
//      npu_object o = npu_object_begin();
//      npu_object_add(&o, context, program);        // any number of them
//      npu_object_build(&o, "");                    // run_0, run_1, ... are wsp_core_run of each
//      npu_object_end(&o);
//
// With `has_trees`, set before the first is added, programs are there as a whole: npu_object_tree gives a
// tree to ptowsp_npu_execute. Their runtime is of src/npu/tree, compiled once by make (libwsp_fixed.a).
//
// Files are compiled without optimisation, with the precompiled headers and the functions of the shim that
// make has put into the directory PTOWSP_TEST_HEADERS; without that, or with options that have a level, as
// a user compiles them.

#ifndef NPU_KERNEL_FIXTURE_H
#define NPU_KERNEL_FIXTURE_H

#include "test.h"

#include "scratch.h"

#include "src/npu/npu_build.h"
#include "src/npu/tree/include/wsp_abi.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

typedef void (*npu_run_fn)(wsp_task *task);
typedef const char *(*npu_text_fn)(uint32_t kernel, uint32_t fault);

typedef struct npu_object {
    char directory[64];
    char prefix[16];  // where the files of the program that is added go: "3/"
    FILE *unit;       // of all programs
    uint32_t count;
    bool is_a5;  // all programs are
    bool has_trees;
    void *library;
} npu_object;

// The C++ compiler to test with; NULL: there is none.
static inline const char *npu_compiler(void) {
    const char *named = getenv("CXX");
    const char *name = named && *named ? named : "g++";
    char command[256];
    snprintf(command, sizeof command, "%s --version > /dev/null 2>&1", name);
    return system(command) == 0 ? name : NULL;
}

static inline void npu_shell(const char *format, ...) {
    char command[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    if (system(command) != 0) {
        fail_msg("%s", command);
    }
}

// Skips the test if there is no compiler.
static inline npu_object npu_object_begin(void) {
    npu_object o = {0};
    char path[128];
    if (!npu_compiler()) {
        skip();
    }
    snprintf(o.directory, sizeof o.directory, "%s/ptowsp_npu_XXXXXX", scratch_root());
    assert_non_null(mkdtemp(o.directory));
    snprintf(path, sizeof path, "%s/all.cpp", o.directory);
    o.unit = fopen(path, "w");
    assert_non_null(o.unit);
    return o;
}

static inline ptowsp_status npu_object_file(void *user, const char *path, const char *text,
                                            size_t size) {
    npu_object *o = (npu_object *)user;
    char name[512];
    if (o->has_trees && strncmp(path, "aicpu/wsp_", 10) == 0) {
        return PTOWSP_OK;
    }
    snprintf(name, sizeof name, "%s/%s%s", o->directory, o->prefix, path);
    for (char *at = name + strlen(o->directory) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(name, 0700);
        *at = '/';
    }
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    const char *kernels = "aicore/kernels/";
    if (strncmp(path, kernels, strlen(kernels)) == 0) {
        fprintf(o->unit, "#include \"%s%s\"\n", o->prefix, path);
    }
    return PTOWSP_OK;
}

// Lines for what is extern "C" of each kernel, of its kind, its name up to a blank, these again, and the
// program's number.
static inline void npu_object_names(const npu_object *o, const ptowsp_program *program,
                                    const char *format) {
    static const char *const kinds[] = {"kernel", "tasks", "launch"};
    TEST_GRID(uint32_t, i, ptowsp_program_read(program)->kernel_count, kind, 3) {
        const char *name = ptowsp_program_read(program)->kernels[i].name;
        const int length = i ? (int)strcspn(name, " ") : 0;
        if (length) {
            fprintf(o->unit, format, kinds[kind], length, name, kinds[kind], length, name,
                    o->count - 1);
        }
    }
}

// Adds a program, whose kernels have the names of all others here: in a namespace, and with other
// names for what is extern "C". Kernels of one object are for one machine.
static inline void npu_object_add(npu_object *o, ptowsp_context *context,
                                  const ptowsp_program *program, bool is_a5) {
    if (o->count == 0) {
        o->is_a5 = is_a5;
        fprintf(o->unit,
                "%s#include \"wsp_kernel.h\"\n#include \"wsp_native.h\"\n"
                "#include <math.h>\n#include <string.h>\n",
                is_a5 ? "#define WSP_TARGET_A5\n" : "");
        // Clang takes names of a program's two files, which are one here, for shadowed ones.
        static const char *const warnings[] = {"pedantic", "conversion", "sign-conversion",
                                               "undef",    "cast-qual",  "shadow"};
        for (int i = 0; i < 6 && o->has_trees; i++) {
            fprintf(o->unit, "%s#pragma GCC diagnostic %s \"-W%s\"\n",
                    i ? "" : "#include \"wsp_expand.h\"\n#include \"wsp_pipeline.h\"\n",
                    i == 5 && strstr(npu_compiler(), "clang") ? "ignored" : "error", warnings[i]);
        }
    }
    uint32_t number = o->count++;
    snprintf(o->prefix, sizeof o->prefix, "%u/", number);
    fprintf(o->unit, "namespace n%u {\n", number);
    npu_object_names(o, program, "#define wsp_%s_%.*s wsp_%s_%.*s_%u\n");
    fprintf(o->unit, "#define wsp_runner_measure wsp_runner_measure_%u\n", number);
    test_ok(context, ptowsp_npu_emit_files(context, program, npu_object_file, o));
    fprintf(o->unit, "#include \"%uu.h\"\n", number);
    char text[512];
    snprintf(text, sizeof text, "%s/%uu.h", o->directory, number);
    FILE *file = fopen(text, "w");
    assert_non_null(file);
    fprintf(file, "#include \"%saicore/dispatch.cpp\"\n", o->prefix);
    if (o->has_trees) {
        fprintf(file, "#undef WSP_PROGRAM_H\n#include \"%saicpu/program.cpp\"\n", o->prefix);
        fprintf(file, "#include \"%saicpu/expand.cpp\"\n", o->prefix);
    }
    fclose(file);
    npu_object_names(o, program, "#undef wsp_%s_%.*s\n");
    fprintf(o->unit, "#undef wsp_runner_measure\n");
    fprintf(o->unit,
            "}\n#define EXPORT extern \"C\" __attribute__((visibility(\"default\")))\n"
            "EXPORT void run_%u(wsp_task *task) { n%u::wsp_core_run(task); }\n"
            "EXPORT const char *text_%u(uint32_t k, uint32_t f)"
            " { return n%u::wsp_core_fault_text(k, f); }\n#undef EXPORT\n",
            number, number, number, number);
}

// Where make has left what is compiled once: as it says, or beside the program.
static inline const char *npu_made(void) {
    static char path[1024];
    const char *headers = getenv("PTOWSP_TEST_HEADERS");
    if (!headers || !*headers) {
        const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 8);
        assert_true(length > 0);
        path[length] = '\0';
        strcpy(strrchr(path, '/'), "/npu");
        headers = path;
    }
    return headers;
}

// The program of the runtime is the one that was chosen last. `asm`, as the runtime has it const.
static inline void npu_object_choices(npu_object *o) {
    static const struct {
        const char *head, *of;
    } switches[] = {
        {"static uint32_t now;\nwsp_program the_program asm(\"wsp_the_program\");\n"
         "extern \"C\" __attribute__((visibility(\"default\"))) void choose_0(uint32_t number) {\n"
         "    now = number;",
         "memcpy(&the_program, &n%u::wsp_the_program, sizeof the_program); return;"},
        {"void wsp_core_run(wsp_task *task) {", "n%u::wsp_core_run(task); return;"},
        {"wsp_launcher wsp_launcher_of(uint32_t k) {", "return n%u::wsp_launcher_of(k);"},
        {"const char *wsp_core_fault_text(uint32_t k, uint32_t f) {",
         "return n%u::wsp_core_fault_text(k, f);"}};
    for (uint32_t i = 0; i < 4; i++) {
        fprintf(o->unit, "%s\n    switch (now) {\n", switches[i].head);
        for (uint32_t number = 0; number < o->count; number++) {
            fprintf(o->unit, "    case %u: ", number);
            fprintf(o->unit, switches[i].of, number);
            fputs("\n", o->unit);
        }
        fprintf(o->unit, "    default: %s;\n    }\n}\n", i < 2 ? "return" : "return nullptr");
    }
}

// Compiles what was added, and loads it. A5 needs C++20 for PTO-ISA's own headers, and may have it here.
static inline void npu_object_build(npu_object *o, const char *options) {
    char root[512], trees[4096] = "";
    const char *more = getenv("PTOWSP_NPU_OPTIONS");  // sanitizers, for instance
    const char *made = getenv("PTOWSP_TEST_HEADERS");
    char headers[1024] = "";
    if (!more && !strstr(options, "-O") && made && *made) {
        // Compiled, or, besides other options, as text; and the shim's functions.
        snprintf(headers, sizeof headers, "-include %s/%sheaders%s.h -Wl,%s/libshim.a", made,
                 *options ? "plain/" : "", o->is_a5 ? "_a5" : "", made);
    }
    if (o->has_trees) {
        npu_object_choices(o);
        snprintf(root, sizeof root, "%s", __FILE__);
        *strstr(root, "tests/npu/") = '\0';
        made = npu_made();
        snprintf(trees, sizeof trees,
                 "-I%s/../include -I%ssrc/npu/tree/include -I%ssrc/npu/tree/aicpu "
                 "-Wl,-u,wsp_runner_create -Wl,%s/../libwsp_fixed.a",
                 made, root, root, made);
    }
    assert_int_equal(fclose(o->unit), 0);
    o->unit = NULL;
    npu_shell(
        "%s -std=c++%d -O0 -DPTOISA_SIMULATOR_TYPES -Wall -Wextra -Werror -fPIC -shared -pthread "
        "-ffp-contract=off -fvisibility=hidden -fvisibility-inlines-hidden %s %s "
        "-I%s -I%s/0/aicore -I%s/0/include -I%s/0/shim -I%s/0/aicpu -I%s/0/host %s/all.cpp "
        "$(ls %s/*/aicore/wsp_merge.cpp 2> /dev/null | head -n 1) -o %s/all.so %s %s",
        npu_compiler(), o->is_a5 ? 20 : 17, options, more ? more : "", o->directory, o->directory,
        o->directory, o->directory, o->directory, o->directory, o->directory, o->directory,
        o->directory, headers, trees);
    char path[128];
    snprintf(path, sizeof path, "%s/all.so", o->directory);
    o->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!o->library) {
        fail_msg("%s", dlerror());
    }
}

static inline void npu_object_symbol(npu_object *o, const char *kind, uint32_t number,
                                     void *out_function) {
    char name[32];
    snprintf(name, sizeof name, "%s_%u", kind, number);
    void *symbol = dlsym(o->library, name);
    assert_non_null(symbol);
    memcpy(out_function, &symbol, sizeof symbol);
}

static inline npu_run_fn npu_object_run(npu_object *o, uint32_t number) {
    npu_run_fn run;
    npu_object_symbol(o, "run", number, &run);
    return run;
}

static inline npu_text_fn npu_object_text(npu_object *o, uint32_t number) {
    npu_text_fn text;
    npu_object_symbol(o, "text", number, &text);
    return text;
}

// The tree of a program, until the next one is asked for. It is not destroyed.
static inline ptowsp_npu *npu_object_tree(npu_object *o, uint32_t number, ptowsp_context *context,
                                          const ptowsp_program *program) {
    static ptowsp_npu npu;
    void (*choose)(uint32_t);
    void *symbol;
    npu_object_symbol(o, "choose", 0, &choose);
    choose(number);
    memset(&npu, 0, sizeof npu);
    npu.context = context;
    npu.program = program;
    npu.directory.data = o->directory;
#define NPU_OBJECT_FUNCTION(type, name, parameters)                                                \
    symbol = dlsym(o->library, "wsp_runner_" #name);                                               \
    memcpy(&npu.runner.name, &symbol, sizeof symbol);
    NPU_RUNNER_FUNCTIONS(NPU_OBJECT_FUNCTION)
#undef NPU_OBJECT_FUNCTION
    return &npu;
}

static inline void npu_object_end(npu_object *o) {
    if (o->library) {
        dlclose(o->library);
    }
    if (!getenv("PTOWSP_KEEP")) {
        npu_shell("rm -rf %s", o->directory);
    } else {
        print_message("%s\n", o->directory);
    }
}

#endif

// Emitted expand.cpp files, compiled with the words of tests/npu/words and loaded into the test:
// many of them in one shared object, each in a namespace of its own.

#ifndef NPU_EXPAND_RUN_H
#define NPU_EXPAND_RUN_H

#include "test.h"

#include "scratch.h"

#include "words/host.h"

#include "read_walk.h"

// Counts allocations of the emitter, and refuses one.
static uint64_t words_allocations, words_refused = UINT64_MAX;

static inline void *words_resize(void *ptr, size_t size) {
    if (size == 0) {
        free(ptr);
        return NULL;
    }
    return words_allocations++ == words_refused ? NULL : realloc(ptr, size);
}

#define PTOWSP_NPU_RESIZE(ptr, size) words_resize(ptr, size)

// The emitter, for the part of it that writes expand.cpp: random programs have kernels without
// source, which ptowsp_npu_emit refuses.
#include "src/npu/npu_expand.h"
#include "src/npu/npu_text.c"

#include <dlfcn.h>
#include <unistd.h>

// -- emitting -------------------------------------------------------------------------------------

enum { WORDS_PLACE_MAX = 64 };
static uint32_t words_nodes[WORDS_PLACE_MAX];  // of the places of what was emitted last

// expand.cpp of a program; the caller frees it. With enums, what program.h has before it.
static inline npu_text words_emit(ptowsp_context *context, const ptowsp_program *program,
                                  bool with_enums) {
    static const char *const prefixes[] = {"AXIS",   "ARRAY",  "SYMBOL",
                                           "TENSOR", "KERNEL", "CHANNEL"};
    npu_text text = {NULL, 0, 0, false};
    npu_emitter emitter = {.context = context};
    assert_true(npu_read(&emitter, program));
    npu_names_make(&emitter);
    for (int kind = 0; with_enums && kind <= NPU_CHANNEL; kind++) {
        for (uint32_t i = kind != NPU_CHANNEL; i < emitter.names.count[kind]; i++) {
            if (emitter.names.at[kind][i]) {
                npu_print(&text, "enum : uint32_t { %s_%s = %u };\n", prefixes[kind],
                          npu_name(&emitter, (npu_kind)kind, i), i);
            }
        }
    }
    if (emitter.status == PTOWSP_OK) {
        npu_expand_emit(&emitter, &text);
    }
    bool is_refused = words_refused < words_allocations;
    assert_true(is_refused == (text.is_out_of_memory || emitter.status != PTOWSP_OK));
    for (uint32_t i = 0; i < emitter.place_count && i < WORDS_PLACE_MAX; i++) {
        words_nodes[i] = emitter.place_nodes[i];
    }
    npu_names_free(&emitter.names);
    npu_resize(emitter.place_nodes, 0);
    npu_resize(emitter.node_places, 0);
    return text;
}

// -- compiling ------------------------------------------------------------------------------------

#define WORDS_FLAGS                                                                                \
    "-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wcast-qual -Werror"

#define WORDS_OPTIONS "-std=c++17 -O0 -pthread -fPIC"  // as in tests.mk

// Several programs in one file.
typedef struct words_unit {
    npu_text text;
    uint32_t count;
    void *object;
    words_run_fn run;
} words_unit;

static inline void words_unit_add(words_unit *unit, ptowsp_context *context,
                                  const ptowsp_program *program) {
    npu_text text = words_emit(context, program, true);
    if (unit->count == 0) {
        npu_print(&unit->text, "#include \"program.h\"\n#include \"wsp_expand.h\"\n"
                               "#include \"wsp_pipeline.h\"\n");
    }
    npu_print(&unit->text, "\nnamespace p%u {\n", unit->count++);
    npu_write(&unit->text, text.data, text.size);
    npu_print(&unit->text, "\n}\n");
    npu_text_free(&text);
}

static inline bool words_has_compiler(const char *compiler) {
    char command[512];
    snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", compiler);
    return system(command) == 0;
}

// $CXX, or g++; NULL if there is none.
static inline const char *words_compiler(void) {
    const char *compiler = getenv("CXX");
    compiler = compiler && *compiler ? compiler : "g++";
    return words_has_compiler(compiler) ? compiler : NULL;
}

static inline void words_command(const char *directory, const char *compiler, const char *options) {
    char command[2048];
    char root[512];
    snprintf(root, sizeof root, "%s", __FILE__);
    char *end = strstr(root, "tests/npu/npu_expand_run.h");
    assert_non_null(end);
    *end = '\0';
    snprintf(command, sizeof command,
             "%s " WORDS_FLAGS " %s -I%stests/npu/words -I%ssrc/npu/tree/include %s/expand.cpp",
             compiler, options, root, root, directory);
    if (system(command) != 0) {
        fail_msg("%s\nsays no", command);
    }
}

// Compiles what has been added, without a warning, and loads it.
static inline void words_unit_build(words_unit *unit) {
    char directory[64], path[96], options[1024];
    const char *compiler = words_compiler();
    snprintf(directory, sizeof directory, "%s/ptowsp_words_XXXXXX", scratch_root());
    assert_non_null(mkdtemp(directory));
    npu_print(&unit->text, "\nextern \"C\" void words_run(uint32_t number, words_host *host);\n"
                           "void words_run(uint32_t number, words_host *host) {\n"
                           "    wsp::Run run(host);\n    switch (number) {\n");
    for (uint32_t i = 0; i < unit->count; i++) {
        npu_print(&unit->text, "    case %u: p%u::wsp_expand(run); break;\n", i, i);
    }
    npu_print(&unit->text, "    default: break;\n    }\n    run.keep_slots();\n}\n");
    snprintf(path, sizeof path, "%s/expand.cpp", directory);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fwrite(unit->text.data, 1, unit->text.size, file) == unit->text.size);
    assert_int_equal(fclose(file), 0);
    const char *headers = getenv("PTOWSP_TEST_HEADERS");  // precompiled by make
    const bool has_headers = headers && *headers;
    snprintf(options, sizeof options, WORDS_OPTIONS " -shared -o %s/expand.so %s%s%s", directory,
             has_headers ? "-include " : "", has_headers ? headers : "",
             has_headers ? "/words.h" : "");
    words_command(directory, compiler, options);
    snprintf(path, sizeof path, "%s/expand.so", directory);
    unit->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!unit->object) {
        fail_msg("%s", dlerror());
    }
    void *symbol = dlsym(unit->object, "words_run");
    assert_non_null(symbol);
    memcpy(&unit->run, &symbol, sizeof unit->run);
    if (!getenv("PTOWSP_KEEP")) {
        unlink(path);
        snprintf(path, sizeof path, "%s/expand.cpp", directory);
        unlink(path);
        rmdir(directory);
    } else {
        print_message("kept %s\n", directory);
    }
}

static inline void words_unit_free(words_unit *unit) {
    npu_text_free(&unit->text);
    if (unit->object) {
        dlclose(unit->object);
    }
    memset(unit, 0, sizeof *unit);
}

// -- a host over a run ----------------------------------------------------------------------------

typedef struct words_over {
    const ptowsp_run *run;
    void (*task)(void *user, const words_task *task, const ptowsp_task *as_task);
    void *user;
    uint64_t task_count;
    uint32_t failed_place;  // + 1
    uint32_t pipelines;     // a bit for each that has begun
} words_over;

static pthread_mutex_t words_lock = PTHREAD_MUTEX_INITIALIZER;  // tasks come one by one

static int64_t words_size(void *user, uint32_t axis) {
    int64_t size = 0;
    assert_true(ptowsp_run_bound_size(((words_over *)user)->run, axis, &size));
    return size;
}

static uint64_t words_symbol(void *user, uint32_t symbol) {
    uint64_t value = 0;
    assert_true(ptowsp_run_bound_symbol(((words_over *)user)->run, symbol, &value));
    return value;
}

static bool words_element(void *user, uint32_t array, int64_t index, uint64_t *out_value) {
    ptowsp_dtype dtype;
    const void *data;
    uint64_t count;
    assert_true(ptowsp_run_bound_array(((words_over *)user)->run, array, &dtype, &data, &count));
    if ((uint64_t)index >= count) {
        return false;
    }
    *out_value = read_element(dtype, data, (uint64_t)index);
    return true;
}

static int64_t words_length_sum(void *user, uint32_t array) {
    int64_t sum = 0;
    uint64_t value;
    for (int64_t i = 0; words_element(user, array, i, &value); i++) {
        sum += (int64_t)value;
    }
    return sum;
}

static bool words_range(void *user, uint32_t axis, const int64_t *row, int64_t *first,
                        int64_t *end) {
    ptowsp_csr csr;
    assert_true(ptowsp_run_bound_csr(((words_over *)user)->run, axis, &csr));
    uint64_t at = row ? (uint64_t)*row : 0;
    if (row && at >= csr.row_count) {
        return false;
    }
    *first = (int64_t)read_element(csr.dtype, csr.indptr, at);
    *end = (int64_t)read_element(csr.dtype, csr.indptr, row ? at + 1 : csr.row_count);
    return true;
}

static int64_t words_index(void *user, uint32_t axis, int64_t entry) {
    ptowsp_csr csr;
    assert_true(ptowsp_run_bound_csr(((words_over *)user)->run, axis, &csr));
    return (int64_t)read_element(csr.dtype, csr.indices, (uint64_t)entry);
}

static ptowsp_tile words_tile(const words_over *over, const words_view *view, int64_t *rows,
                              int64_t *cols) {
    ptowsp_buffer buffer;
    assert_true(ptowsp_run_bound_tensor(over->run, view->tensor, &buffer));
    uint32_t rank = buffer.rank;
    assert_int_equal(view->lead_count, rank > 2 ? rank - 2 : 0);
    int64_t row_stride = rank >= 2 ? buffer.strides[rank - 2] : 0;
    int64_t col_stride = rank >= 1 ? buffer.strides[rank - 1] : 1;
    int64_t offset = view->row * row_stride + view->col * col_stride;
    for (uint32_t i = 0; i < view->lead_count; i++) {
        offset += view->lead[i] * buffer.strides[i];
    }
    *rows = (rank >= 2 ? buffer.shape[rank - 2] : 1) - view->row;
    *cols = (rank >= 1 ? buffer.shape[rank - 1] : 1) - view->col;
    *rows = view->rows && view->rows < *rows ? view->rows : *rows;
    *cols = view->cols && view->cols < *cols ? view->cols : *cols;
    ptowsp_tile tile = {NULL, row_stride, col_stride};
    if (buffer.data) {
        tile.data = (char *)buffer.data + offset * (int64_t)ptowsp_dtype_size(buffer.dtype);
    }
    return tile;
}

static void words_shape(void *user, const words_view *view, uint64_t *out_rows,
                        uint64_t *out_cols) {
    int64_t rows, cols;
    words_tile((const words_over *)user, view, &rows, &cols);
    *out_rows = (uint64_t)rows;
    *out_cols = (uint64_t)cols;
}

static uint64_t words_load(void *user, const words_view *view, int64_t r, int64_t c) {
    const words_over *over = (const words_over *)user;
    ptowsp_buffer buffer;
    int64_t rows, cols;
    ptowsp_tile tile = words_tile(over, view, &rows, &cols);
    assert_true(ptowsp_run_bound_tensor(over->run, view->tensor, &buffer));
    assert_true(0 <= r && r < rows && 0 <= c && c < cols);
    const char *at = (const char *)tile.data + (r * tile.row_stride + c * tile.col_stride) *
                                                   (int64_t)ptowsp_dtype_size(buffer.dtype);
    return read_element(buffer.dtype, at, 0);
}

static void words_submit(void *user, const words_task *task) {
    words_over *over = (words_over *)user;
    ptowsp_tile tiles[PTOWSP_TASK_TILE_MAX];
    ptowsp_task as_task = {0};
    for (uint32_t i = 0; i < task->tile_count; i++) {
        int64_t rows, cols;
        tiles[i] = words_tile(over, &task->tiles[i], &rows, &cols);
    }
    as_task.args = task->args;
    as_task.axis_arg_count = task->axis_count + 2 * task->tile_count;
    as_task.arg_count = as_task.axis_arg_count + task->scalar_count;
    as_task.user_axis_count = task->axis_count;
    as_task.tile_count = task->tile_count;
    as_task.tiles = tiles;
    pthread_mutex_lock(&words_lock);
    as_task.index = over->task_count++;
    as_task.kernel_name = ptowsp_program_kernel_name(ptowsp_run_program(over->run), task->kernel);
    over->task(over->user, task, &as_task);
    pthread_mutex_unlock(&words_lock);
}

static void words_pipeline(void *user, uint32_t pipeline) {
    ((words_over *)user)->pipelines |= 1u << pipeline;
}

static void words_reset(void *user, const uint32_t *edges, uint32_t count) {
    const ptowsp_program *program = ptowsp_run_program(((words_over *)user)->run);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(edges[i] < ptowsp_program_read(program)->edge_count);
    }
}

static void words_fail(void *user, uint32_t place) {
    ((words_over *)user)->failed_place = place + 1;
}

// Walks program `number` of a unit with what is bound to a run; slots at the end are in the host.
static inline void words_walk(const words_unit *unit, uint32_t number, words_over *over,
                              words_host *host) {
    memset(host, 0, sizeof *host);
    host->user = over;
    host->size = words_size;
    host->symbol = words_symbol;
    host->element = words_element;
    host->length_sum = words_length_sum;
    host->range = words_range;
    host->index = words_index;
    host->load = words_load;
    host->shape = words_shape;
    host->task = words_submit;
    host->reset = words_reset;
    host->pipeline = words_pipeline;
    host->fail = words_fail;
    for (uint32_t i = 0; i < ptowsp_program_read(ptowsp_run_program(over->run))->slot_count; i++) {
        assert_true(i < WORDS_SLOT_MAX);
        host->slots[i] = ptowsp_run_bound_slot(over->run, i);
    }
    unit->run(number, host);
}

#endif

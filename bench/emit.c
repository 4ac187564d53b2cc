// Emitting a decode program, its tree written to $TMPDIR or /tmp. Beside it the system's share of
// that: the same files written, from bytes that are there already.

#define _POSIX_C_SOURCE 200809L

#include "bench.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 100 };

typedef struct emit_bench {
    ptowsp_context *context;
    ptowsp_program *program;
    char directory[64];               // new trees are written to it, as removing takes time too
    uint32_t own_count, other_count;  // how many there are
    struct {
        char path[128];
        char *data;
        size_t size;
    } files[FILE_MAX];
    uint32_t file_count;
    uint64_t line_count;  // of files that were made for this program
} emit_bench;

static ptowsp_cycles nothing(const ptowsp_task *task, void *user) {
    (void)task;
    (void)user;
    return 1;
}

static const char append_source[] =
    "#include \"ptowsp.h\"\n"
    "static ptowsp_cycles append(const ptowsp_task *task, void *user) {\n"
    "    (void)user;\n"
    "    const float *in = (const float *)task->tiles[0].data;\n"
    "    float *out = (float *)task->tiles[1].data;\n"
    "    for (int64_t c = 0; c < ptowsp_task_cols(task, 0); c++) {\n"
    "        out[c * task->tiles[1].col_stride] = in[c * task->tiles[0].col_stride];\n"
    "    }\n"
    "    return 50;\n"
    "}\n";

static ptowsp_kernel make_append(ptowsp_module *m) {
    ptowsp_kernel_desc desc;
    memset(&desc, 0, sizeof desc);
    const ptowsp_tile_param in = {"fresh", PTOWSP_IN, PTOWSP_F32, 1, 64};
    const ptowsp_tile_param out = {"kv", PTOWSP_OUT, PTOWSP_F32, 1, 64};
    desc.name = "append";
    desc.axis_count = 1;
    desc.tiles[0] = in;
    desc.tiles[1] = out;
    desc.fn = nothing;
    desc.source.text = append_source;
    return ptowsp_kernel_make(m, &desc);
}

static ptowsp_kernel make_attend(ptowsp_module *m, const char *name, uint32_t tokens) {
    ptowsp_body_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = name;
    desc.axis_count = 1;
    ptowsp_body *k = ptowsp_kernel_begin(m, &desc);
    ptowsp_value x = ptowsp_tile_in(k, "kv", PTOWSP_F32, tokens, 64);
    ptowsp_value y = ptowsp_tile_out(k, "out", PTOWSP_F32, tokens, 64);
    ptowsp_value e = ptowsp_tile_exp(ptowsp_tile_sub(x, ptowsp_tile_rowmax(x)));
    ptowsp_tile_store(y, ptowsp_tile_div(e, ptowsp_tile_rowsum(e)));
    return ptowsp_kernel_end(k);
}

static ptowsp_tensor make_tensor(ptowsp_module *m, const char *name) {
    ptowsp_tensor_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = name;
    desc.dtype = PTOWSP_F32;
    desc.rank = 2;
    desc.shape[0] = PTOWSP_DYNAMIC;
    desc.shape[1] = 64;
    return ptowsp_tensor_make(m, &desc);
}

static void task_make(ptowsp_module *m, ptowsp_kernel kernel, ptowsp_expr axis, ptowsp_tensor from,
                      ptowsp_expr from_row, ptowsp_tensor to, ptowsp_expr to_row) {
    ptowsp_task_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.kernel = kernel;
    desc.axes[0] = axis;
    desc.views[0].tensor = from;
    desc.views[0].row = from_row;
    desc.views[1].tensor = to;
    desc.views[1].row = to_row;
    ptowsp_task_make(m, &desc);
}

static void build(emit_bench *b) {
    ptowsp_module *m = NULL;
    const ptowsp_module_desc desc = {"decode", 0};
    require(ptowsp_context_create(NULL, &b->context) == PTOWSP_OK &&
                ptowsp_module_create(b->context, &desc, &m) == PTOWSP_OK,
            "cannot build the program to emit");
    ptowsp_axis requests = ptowsp_axis_dynamic(m, "requests");
    ptowsp_axis chunks = ptowsp_axis_ragged(m, "chunks");
    ptowsp_tensor kv = make_tensor(m, "kv"), fresh = make_tensor(m, "fresh");
    ptowsp_tensor partial = make_tensor(m, "partial"), out = make_tensor(m, "out");
    ptowsp_kernel append = make_append(m);
    ptowsp_kernel attend_short = make_attend(m, "attend_short", 32);
    ptowsp_kernel attend_chunk = make_attend(m, "attend_chunk", 64);
    ptowsp_kernel merge = make_attend(m, "merge", 16);
    PTOWSP_WORKLOAD(m, "decode") {
        PTOWSP_PARALLEL(m, request, requests) {
            ptowsp_expr length = ptowsp_array_at(m, "kv_length", PTOWSP_I32, request);
            ptowsp_expr start = ptowsp_array_at(m, "kv_start", PTOWSP_I64, request);
            ptowsp_expr row = ptowsp_mul(request, ptowsp_i64(m, 64));
            task_make(m, append, request, fresh, request, kv, ptowsp_add(start, length));
            PTOWSP_WHEN(m, ptowsp_le(length, ptowsp_i64(m, 32))) {
                task_make(m, attend_short, request, kv, start, out, row);
            }
            PTOWSP_OTHERWISE(m) {
                PTOWSP_PARALLEL(m, chunk, ptowsp_axis_row(m, chunks, request)) {
                    ptowsp_expr at = ptowsp_mul(chunk, ptowsp_i64(m, 64));
                    task_make(m, attend_chunk, request, kv, ptowsp_add(start, at), partial,
                              ptowsp_add(start, at));
                }
                task_make(m, merge, request, partial, start, out, row);
            }
        }
    }
    if (ptowsp_program_create(b->context, m, NULL, &b->program) != PTOWSP_OK) {
        require(false, ptowsp_context_error(b->context).text);
    }
    ptowsp_module_destroy(m);
}

static ptowsp_status keep_file(void *user, const char *path, const char *text, size_t size) {
    emit_bench *b = (emit_bench *)user;
    require(b->file_count < FILE_MAX && strlen(path) < sizeof b->files[0].path, "too many files");
    char *data = (char *)malloc(size + 1);
    require(data != NULL, "no memory");
    memcpy(data, text, size + 1);
    snprintf(b->files[b->file_count].path, sizeof b->files[0].path, "%s", path);
    b->files[b->file_count].data = data;
    b->files[b->file_count++].size = size;
    bool is_own = strncmp(path, "aic", 3) == 0 && !strstr(path, "wsp_");
    for (size_t i = 0; is_own && i < size; i++) {
        b->line_count += text[i] == '\n';
    }
    return PTOWSP_OK;
}

static ptowsp_status drop_file(void *user, const char *path, const char *text, size_t size) {
    (void)user;
    (void)path;
    (void)text;
    (void)size;
    return PTOWSP_OK;
}

// What a tree consists of, away again.
static void remove_tree(const emit_bench *b, const char *directory) {
    char path[256];
    for (uint32_t i = 0; i < b->file_count; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, b->files[i].path);
        unlink(path);
    }
    const char *const inside[] = {"/aicore/kernels", "/aicore",  "/aicpu", "/host",
                                  "/shim",           "/include", ""};
    for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++) {
        snprintf(path, sizeof path, "%s%s", directory, inside[i]);
        rmdir(path);
    }
}

static void run_emit(void *user) {
    emit_bench *b = (emit_bench *)user;
    char path[128];
    snprintf(path, sizeof path, "%s/own-%u", b->directory, (unsigned)b->own_count++);
    const ptowsp_npu_desc desc = {.directory = path, .is_for_host = true};
    require(ptowsp_npu_emit(b->context, b->program, &desc) == PTOWSP_OK,
            ptowsp_context_error(b->context).text);
}

static void run_write(void *user) {
    emit_bench *b = (emit_bench *)user;
    char tree[128];
    snprintf(tree, sizeof tree, "%s/other-%u", b->directory, (unsigned)b->other_count++);
    mkdir(tree, 0755);
    for (uint32_t i = 0; i < b->file_count; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", tree, b->files[i].path);
        for (char *slash = strchr(path + strlen(tree) + 1, '/'); slash;
             slash = strchr(slash + 1, '/')) {
            *slash = '\0';
            mkdir(path, 0755);
            *slash = '/';
        }
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        require(fd >= 0 &&
                    write(fd, b->files[i].data, b->files[i].size) == (ssize_t)b->files[i].size,
                "cannot write a file");
        close(fd);
    }
}

static void run_memory(void *user) {
    emit_bench *b = (emit_bench *)user;
    require(ptowsp_npu_emit_files(b->context, b->program, drop_file, NULL) == PTOWSP_OK,
            ptowsp_context_error(b->context).text);
}

void bench_emit(void) {
    static emit_bench b;
    memset(&b, 0, sizeof b);
    build(&b);
    const char *temporary = getenv("TMPDIR");
    snprintf(b.directory, sizeof b.directory, "%.32s/ptowsp-bench-%ld",
             temporary ? temporary : "/tmp", (long)getpid());
    require(mkdir(b.directory, 0755) == 0, "cannot make a directory for trees");
    require(ptowsp_npu_emit_files(b.context, b.program, keep_file, &b) == PTOWSP_OK,
            ptowsp_context_error(b.context).text);
    bench_times t = measure(run_emit, run_write, &b, 1, 11);
    char name[64];
    snprintf(name, sizeof name, "emit decode, %u files, %u lines of its own",
             (unsigned)b.file_count, (unsigned)b.line_count);
    bench_row row = {
        name,   "ms", t.own_ns * 1e-6, "writing its files alone", t.other_ns * 1e-6, t.ratio,
        "5 ms", true, t.own_ns <= 5e6};
    const bench_limit writing = {row.other, row.other_value, 1.0 / t.ratio};
    report_beside_limit(row, writing);
    bench_times memory = measure(run_memory, run_memory, &b, 1, ROUNDS);
    bench_row in_memory = {"emit decode, to a callback",
                           "ms",
                           memory.own_ns * 1e-6,
                           "writing its files alone",
                           t.other_ns * 1e-6,
                           memory.own_ns / t.other_ns,
                           "",
                           false,
                           false};
    report(in_memory);
    char path[128];
    for (uint32_t i = 0; i < b.own_count || i < b.other_count; i++) {
        snprintf(path, sizeof path, "%s/own-%u", b.directory, (unsigned)i);
        remove_tree(&b, path);
        snprintf(path, sizeof path, "%s/other-%u", b.directory, (unsigned)i);
        remove_tree(&b, path);
    }
    rmdir(b.directory);
    for (uint32_t i = 0; i < b.file_count; i++) {
        free(b.files[i].data);
    }
    ptowsp_program_destroy(b.program);
    ptowsp_context_destroy(b.context);
}

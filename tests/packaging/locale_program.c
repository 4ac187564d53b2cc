// Prints every kind of text that has numbers with a point, in the locale that is named, and emits a
// tree: locale_test.sh compares them with those of the C locale.
//
//      locale_program LOCALE DIRECTORY

#include "ptoisa_shim.h"
#include "ptowsp.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char saved[1 << 16];

static bool write_out(void *user, const void *text, size_t length) {
    (void)user;
    fwrite(text, 1, length, stdout);
    return true;
}
static const ptowsp_output out = {write_out, NULL};

static bool write_bytes(void *user, const void *data, size_t size) {
    (void)user;
    return fwrite(data, 1, size, stdout) == size;
}
static const ptowsp_output bytes = {write_bytes, NULL};

static void need(const ptowsp_context *context, ptowsp_status status, const char *what) {
    if (status != PTOWSP_OK) {
        fprintf(stderr, "locale_program: %s: %s\n", what, ptowsp_context_error(context).text);
        exit(1);
    }
}

// y = 0.1 x + 1.5e30 + 0.3, with constants of one digit and of 17, and once more.
static const char module_text[] =
    "module module\naxis rows 8\ntensor x f32 [64, 64] global\ntensor y f32 [64, 64] global\n"
    "tensor h f32 [64, 64] global transient\n"
    "kernel scale(axes 0, in x f32 8 x 64, out y f32 8 x 64) vector, 14 instructions\n"
    "  machine \"910B\"\n  %1 = parameter x\n  %2 = parameter y\n  %3 = const 0.1\n"
    "  %4 = mul %1, %3 : f32 8 x 64\n  %5 = const 1.5e+30\n  %6 = add %4, %5 : f32 8 x 64\n"
    "  %7 = full 0.30000000000000004 : f32 8 x 64\n  %8 = add %6, %7 : f32 8 x 64\n"
    "  store %2, %8\nworkload w\n"
    "  for_each i in rows\n    task scale() x = x at (i * 8, 0) y = h at (i * 8, 0)\n"
    "  for_each j in rows\n    task scale() x = h at (j * 8, 0) y = y at (j * 8, 0)\n";

static void print_run(ptowsp_context *context, ptowsp_program *program) {
    static float x[64 * 64], y[64 * 64];
    ptowsp_run *run;
    const ptowsp_buffer bx = {x, sizeof x, PTOWSP_F32, 2, {64, 64}, {0, 0}};
    const ptowsp_buffer by = {y, sizeof y, PTOWSP_F32, 2, {64, 64}, {0, 0}};
    ptowsp_what_if what = {.kernel = 1, .percent = 50};
    need(context, ptowsp_run_create(context, program, &run), "run");
    need(context, ptowsp_run_bind_tensor(run, "x", &bx), "x");
    need(context, ptowsp_run_bind_tensor(run, "y", &by), "y");
    need(context, ptowsp_run_what_if(run, NULL, &what), "what if");
    const ptowsp_run_options options = {.record_tasks = true};
    need(context, ptowsp_run_execute(run, &options), "execute");
    ptowsp_run_print(run, out);
    for (int format = PTOWSP_REPORT_TEXT; format <= PTOWSP_REPORT_HTML; format++) {
        need(context, ptowsp_run_report(run, (ptowsp_report_format)format, NULL, &what, 1, bytes),
             "report");
    }
    need(context, ptowsp_run_export(run, PTOWSP_EXPORT_CHROME, NULL, bytes), "Chrome");
    need(context, ptowsp_run_export(run, PTOWSP_EXPORT_SVG, NULL, bytes), "picture");
    need(context, ptowsp_run_export_transients(run, PTOWSP_EXPORT_SVG, NULL, bytes), "transients");
    ptowsp_run_destroy(run);
}

static ptowsp_status bind_nothing(void *user, ptowsp_run *run) {
    (void)user, (void)run;
    return PTOWSP_OK;
}

static void print_module(ptowsp_context *context, const char *directory) {
    ptowsp_module *m;
    need(context, ptowsp_module_parse(context, module_text, strlen(module_text), NULL, &m, NULL),
         "module");
    ptowsp_kernel_print(m, (ptowsp_kernel){1}, NULL, out);
    ptowsp_module_print(m, out);
    ptowsp_output_buffer buffer = {saved, sizeof saved, 0};
    const uint32_t lanes[] = {1, 3};
    ptowsp_schedule schedule = {.lane_count = 3};
    const ptowsp_program_desc desc = {.schedule = &schedule};
    ptowsp_program *program;
    need(context, ptowsp_program_save(context, m, &desc, ptowsp_output_to_buffer(&buffer)), "save");
    need(context, ptowsp_program_load(context, saved, buffer.length, NULL, &program, NULL), "load");
    ptowsp_program_print(program, out);
    print_run(context, program);
    const ptowsp_npu_desc tree = {.directory = directory, .is_replacing = true};
    need(context, ptowsp_npu_emit(context, program, &tree), "emit");
    ptowsp_program_destroy(program);
    ptowsp_search_result results[4];
    ptowsp_search_summary summary;
    ptowsp_search_desc search = {.lane_counts = lanes, .lane_count_count = 2, .bind = bind_nothing};
    (void)ptowsp_schedule_search(context, m, &search, results, 4, &summary);
    ptowsp_search_print(results, &summary, out);
    ptowsp_module_destroy(m);
}

static void print_plans(void) {
    const int32_t kv[] = {2500, 1000, 517};
    ptowsp_attention_batch batch = {kv, NULL, 3};
    ptowsp_attention_config config = {.kv_head_count = 1, .lane_count = 4};
    ptowsp_attention_sizes sizes;
    ptowsp_attention_plan plan;
    static uint64_t block[256];
    if (ptowsp_attention_size(&batch, &config, &sizes, NULL) ||
        ptowsp_attention_place(&sizes, block, sizeof block, &plan) ||
        ptowsp_attention_generate(&batch, &config, &plan, NULL)) {
        exit(1);
    }
    ptowsp_attention_print(&plan, out);
    ptowsp_prefix_plan prefix;
    memset(&prefix, 0, sizeof prefix);
    prefix.attention = plan;
    prefix.cost = 1.5, prefix.time = 2.25, prefix.kv_token_reads = 3;
    prefix.flat_kv_token_reads = 7;
    ptowsp_prefix_print(&prefix, out);
}

// Errors that name numbers.
static void print_errors(ptowsp_context *context, const char *directory) {
    char path[1000];
    ptowsp_module *m;
    need(context, ptowsp_module_create(context, NULL, &m), "module");
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "loop"});
    ptowsp_tile_loop_begin(k, ptowsp_tile_const(k, 0.5), ptowsp_tile_const(k, 4), 1);
    ptowsp_kernel_end(k);
    printf("%s\n", ptowsp_module_error(m).text);
    ptowsp_module_destroy(m);
    ptowsp_tuning *tuning;
    snprintf(path, sizeof path, "%s.tuning", directory);
    need(context, ptowsp_tuning_create(context, path, &tuning), "tuning");
    const ptowsp_tuning_key key = {.kernel = 1, .machine = "910b3"};
    (void)ptowsp_tuning_add(tuning, &key, -0.5, "x");
    printf("%s\n", ptowsp_context_error(context).text);
    need(context, ptowsp_tuning_add(tuning, &key, 1.5, "x"), "add");
    ptowsp_tuning_destroy(tuning);
    ptoisa_core core;
    memset(&core, 0, sizeof core);
    float elements[8] = {0.5f, -1e-7f, 3e30f, 1, 0, 0, 0, 0};
    ptoisa_tile tile;
    memset(&tile, 0, sizeof tile);
    tile.data = (uint8_t *)elements;
    tile.dtype = PTOISA_F32;
    tile.rows = tile.valid_rows = 1;
    tile.cols = tile.valid_cols = 8;
    ptoisa_tprint(&core, stdout, &tile);
}

int main(int argc, char **argv) {
    ptowsp_context *context;
    if (argc != 3 || !setlocale(LC_ALL, argv[1]) || ptowsp_context_create(NULL, &context)) {
        fprintf(stderr, "locale_program: no locale %s\n", argc > 1 ? argv[1] : "");
        return 1;
    }
    print_module(context, argv[2]);
    print_plans();
    print_errors(context, argv[2]);
    ptowsp_context_destroy(context);
    return 0;
}

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

// y = 0.1 x + 1e30, with constants of one digit and of 17.
static ptowsp_kernel make_kernel(ptowsp_module *m) {
    ptowsp_body *k = ptowsp_kernel_begin(m, &(ptowsp_body_desc){.name = "scale"});
    ptowsp_value x = ptowsp_tile_in(k, "x", PTOWSP_F32, 8, 64);
    ptowsp_value y = ptowsp_tile_out(k, "y", PTOWSP_F32, 8, 64);
    ptowsp_value z = ptowsp_tile_mul(x, ptowsp_tile_const(k, 0.1));
    z = ptowsp_tile_add(z, ptowsp_tile_const(k, 1.5e30));
    z = ptowsp_tile_add(z, ptowsp_tile_full(k, PTOWSP_F32, 8, 64, 0.30000000000000004));
    ptowsp_tile_store(y, z);
    return ptowsp_kernel_end(k);
}

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
    need(context, ptowsp_module_create(context, NULL, &m), "module");
    ptowsp_task_desc task = {.kernel = make_kernel(m)};
    const ptowsp_tensor_desc x = {"x", PTOWSP_F32, 2, {64, 64}, PTOWSP_LOCATION_GLOBAL};
    const ptowsp_tensor_desc y = {"y", PTOWSP_F32, 2, {64, 64}, PTOWSP_LOCATION_GLOBAL};
    const ptowsp_tensor_desc h = {"h", PTOWSP_F32, 2, {64, 64}, PTOWSP_LOCATION_GLOBAL};
    const ptowsp_tensor in = ptowsp_tensor_make(m, &x), done = ptowsp_tensor_make(m, &y);
    const ptowsp_tensor hidden = ptowsp_tensor_transient(m, &h, NULL);
    PTOWSP_WORKLOAD(m, "w") {
        PTOWSP_FOR_EACH(m, i, ptowsp_axis_dense(m, "rows", 8)) {
            task.views[0].tensor = in, task.views[1].tensor = hidden;
            task.views[0].row = task.views[1].row = ptowsp_mul(i, ptowsp_i64(m, 8));
            ptowsp_task_make(m, &task);
        }
        PTOWSP_FOR_EACH(m, i, ptowsp_axis_dense(m, "rows_2", 8)) {
            task.views[0].tensor = hidden, task.views[1].tensor = done;
            task.views[0].row = task.views[1].row = ptowsp_mul(i, ptowsp_i64(m, 8));
            ptowsp_task_make(m, &task);
        }
    }
    ptowsp_kernel_print(m, task.kernel, NULL, out);
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

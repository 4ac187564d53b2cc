// Programs live for one run only: they are compiled where they are needed, from a module that
// stays.

#include "setup.h"

#include "command.h"
#include "lengths.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help_text[] =
    "Prints what it computes, and how far it is off.\n"
    "  --threads N   lanes that run kernels, 1 to 64 (1); what is printed is the same for all\n";

void setup_create_threads(setup *s, uint64_t thread_count) {
    memset(s, 0, sizeof *s);
    s->thread_count = thread_count;
    s->random = 1;
    ptowsp_context_desc desc = {.lane_count = (uint32_t)s->thread_count};
    desc.threads = s->thread_count > 1 ? PTOWSP_THREADS_OWN : PTOWSP_THREADS_SERIAL;
    command_check(NULL, ptowsp_context_create(&desc, &s->context));
    command_check(s->context, ptowsp_module_create(s->context, NULL, &s->module));
}

void setup_create(setup *s, int argc, char **argv) {
    uint64_t thread_count = 1;
    const command_option options[] = {{"--threads", &thread_count, NULL, 1, 64}};
    command_parse(argc, argv, help_text, options, sizeof options / sizeof *options);
    setup_create_threads(s, thread_count);
}

void setup_create_serial(setup *s) {
    setup_create_threads(s, 1);
}

void setup_destroy(setup *s) {
    for (uint32_t i = 0; i < s->matrix_count; i++) {
        if (s->matrices[i].owns_data) {
            free(s->matrices[i].data);
        }
    }
    ptowsp_module_destroy(s->module);
    ptowsp_context_destroy(s->context);
    command_flush();
}

static setup_matrix *declare(setup *s, const char *name, ptowsp_dtype dtype, int64_t count,
                             int64_t rows, int64_t cols, bool has_dynamic_rows,
                             bool has_dynamic_cols) {
    if (s->matrix_count == SETUP_MATRIX_MAX) {
        command_fail("too many matrices");
    }
    setup_matrix *x = &s->matrices[s->matrix_count++];
    ptowsp_tensor_desc desc = {.name = name, .dtype = dtype};
    if (count) {
        desc.shape[desc.rank++] = count;
    }
    desc.shape[desc.rank++] = has_dynamic_rows ? PTOWSP_DYNAMIC : rows;
    desc.shape[desc.rank++] = has_dynamic_cols ? PTOWSP_DYNAMIC : cols;
    x->id = ptowsp_tensor_make(s->module, &desc);
    x->name = name;
    x->dtype = dtype;
    x->count = count;
    x->rows = rows;
    x->cols = cols;
    x->has_dynamic_rows = has_dynamic_rows;
    x->has_dynamic_cols = has_dynamic_cols;
    return x;
}

static void allocate(setup_matrix *x) {
    x->stride = x->rows * x->cols;
    x->row_stride = x->cols;
    x->col_stride = 1;
    x->data =
        command_allocate((uint64_t)(setup_row_count(x) * x->cols), ptowsp_dtype_size(x->dtype));
    x->owns_data = true;
}

setup_matrix *setup_stack_make(setup *s, const char *name, ptowsp_dtype dtype, int64_t count,
                               int64_t rows, int64_t cols) {
    setup_matrix *x = declare(s, name, dtype, count, rows, cols, false, false);
    allocate(x);
    return x;
}

setup_matrix *setup_dynamic_make(setup *s, const char *name, ptowsp_dtype dtype, int64_t rows,
                                 int64_t cols, bool has_dynamic_rows, bool has_dynamic_cols) {
    setup_matrix *x = declare(s, name, dtype, 0, rows, cols, has_dynamic_rows, has_dynamic_cols);
    allocate(x);
    return x;
}

void setup_resize(setup_matrix *x, int64_t rows, int64_t cols) {
    x->rows = rows;
    x->cols = cols;
}

setup_matrix *setup_matrix_make(setup *s, const char *name, ptowsp_dtype dtype, int64_t rows,
                                int64_t cols) {
    return setup_stack_make(s, name, dtype, 0, rows, cols);
}

setup_matrix *setup_transpose_make(setup *s, const char *name, const setup_matrix *of) {
    setup_matrix *x = declare(s, name, of->dtype, of->count, of->cols, of->rows,
                              of->has_dynamic_cols, of->has_dynamic_rows);
    x->stride = of->stride;
    x->row_stride = of->col_stride;
    x->col_stride = of->row_stride;
    x->data = of->data;
    return x;
}

setup_matrix *setup_flat_make(setup *s, const char *name, const setup_matrix *of) {
    setup_matrix *x = declare(s, name, of->dtype, 0, of->count, of->rows * of->cols, false, false);
    x->stride = of->count * of->stride;
    x->row_stride = of->stride;
    x->col_stride = 1;
    x->data = of->data;
    return x;
}

int64_t setup_row_count(const setup_matrix *x) {
    return x->count ? x->count * x->rows : x->rows;
}

static void *element(const setup_matrix *x, int64_t row, int64_t col) {
    int64_t i = row / x->rows * x->stride + row % x->rows * x->row_stride + col * x->col_stride;
    return (char *)x->data + i * (int64_t)ptowsp_dtype_size(x->dtype);
}

double setup_get(const setup_matrix *x, int64_t row, int64_t col) {
    const void *at = element(x, row, col);
    switch (x->dtype) {
    case PTOWSP_F16: return (double)ptowsp_f32_from_f16(*(const uint16_t *)at);
    case PTOWSP_F32: return (double)*(const float *)at;
    case PTOWSP_I8: return (double)*(const int8_t *)at;
    case PTOWSP_I32: return (double)*(const int32_t *)at;
    case PTOWSP_U32: return (double)*(const uint32_t *)at;
    default: command_fail("matrix %s has a type that examples do not use", x->name);
    }
}

void setup_set(const setup_matrix *x, int64_t row, int64_t col, double value) {
    ptowsp_convert(element(x, row, col), x->dtype, &value, PTOWSP_F64, 1);
}

void setup_fill(const setup_matrix *x, double value) {
    for (int64_t i = 0; i < setup_row_count(x) * x->cols; i++) {
        setup_set(x, i / x->cols, i % x->cols, value);
    }
}

void setup_fill_random(setup *s, const setup_matrix *x, double low, double high) {
    for (int64_t i = 0; i < setup_row_count(x) * x->cols; i++) {
        double value = low + (high - low) * lengths_random_unit(&s->random);
        setup_set(x, i / x->cols, i % x->cols, value);
    }
}

ptowsp_view setup_view(const setup_matrix *x, ptowsp_expr row, ptowsp_expr col) {
    ptowsp_view view = {.tensor = x->id, .row = row, .col = col};
    return view;
}

ptowsp_view setup_stack_view(const setup_matrix *x, ptowsp_expr index, ptowsp_expr row,
                             ptowsp_expr col) {
    ptowsp_view view = {.tensor = x->id, .index = {index}, .row = row, .col = col};
    return view;
}

void setup_bind(const setup *s, ptowsp_run *run) {
    for (uint32_t i = 0; i < s->matrix_count; i++) {
        const setup_matrix *x = &s->matrices[i];
        ptowsp_buffer buffer = {.data = x->data};
        if (!x->owns_data || x->has_dynamic_rows || x->has_dynamic_cols) {  // not as declared
            int64_t shape[] = {x->count, x->rows, x->cols};
            int64_t strides[] = {x->stride, x->row_stride, x->col_stride};
            buffer.rank = x->count ? 3 : 2;
            memcpy(buffer.shape, shape + (3 - buffer.rank), buffer.rank * sizeof *shape);
            memcpy(buffer.strides, strides + (3 - buffer.rank), buffer.rank * sizeof *strides);
        }
        command_check(s->context, ptowsp_run_bind_tensor(run, x->name, &buffer));
    }
    if (s->bind) {
        s->bind(s->user, run);
    }
}

static ptowsp_run *create_run(const setup *s, const ptowsp_schedule *schedule,
                              ptowsp_program **out_program) {
    ptowsp_program_desc desc = {.schedule = schedule};
    ptowsp_run *run;
    command_check(s->context, ptowsp_program_create(s->context, s->module, &desc, out_program));
    command_check(s->context, ptowsp_run_create(s->context, *out_program, &run));
    setup_bind(s, run);
    return run;
}

static bool execute(setup *s, ptowsp_run *run, ptowsp_model model) {
    ptowsp_run_options options = {.cost = {.model = model},
                                  .lane_count = (uint32_t)s->thread_count};
    if (s->prepare) {
        s->prepare(s->user);
    }
    command_check(s->context, ptowsp_run_execute(run, &options));
    return !s->check || s->check(s->user);
}

// A line about the memory of transient tensors, if there are any.
static void print_transients(const setup *s, ptowsp_run *run) {
    ptowsp_transient_sizes sizes;
    command_check(s->context, ptowsp_run_size_transients(run, &sizes));
    if (sizes.sum > 0) {
        printf("  memory    %llu bytes in one block (at least %llu), %llu each alone\n",
               (unsigned long long)sizes.peak, (unsigned long long)sizes.low,
               (unsigned long long)sizes.sum);
    }
}

bool setup_run(setup *s, const char *title, const ptowsp_schedule *schedule) {
    static const char *const names[] = {"unit", "a2a3"};
    static const ptowsp_model models[] = {PTOWSP_MODEL_UNIT, PTOWSP_MODEL_A2A3};
    ptowsp_program *program;
    ptowsp_run *run = create_run(s, schedule, &program);
    bool is_good = true;
    for (int i = 0; i < 2; i++) {
        is_good &= execute(s, run, models[i]);
        const ptowsp_run_stats *stats = ptowsp_run_result(run);
        printf("  %-18s %s %5llu tasks %10llu cycles, makespan %9llu on %u lanes\n", i ? "" : title,
               names[i], (unsigned long long)stats->task_count,
               (unsigned long long)stats->busy_cycles, (unsigned long long)stats->makespan_cycles,
               (unsigned)stats->lane_count);
    }
    print_transients(s, run);
    is_good &= !s->emit || s->emit(s, title, program, run);
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    return is_good;
}

ptowsp_cycles setup_makespan(setup *s, const ptowsp_schedule *schedule, ptowsp_model model) {
    ptowsp_program *program;
    ptowsp_run *run = create_run(s, schedule, &program);
    execute(s, run, model);
    ptowsp_cycles makespan = ptowsp_run_result(run)->makespan_cycles;
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    return makespan;
}

double setup_error(const setup_matrix *got, const double *wanted) {
    double most = 0.0;
    for (int64_t row = 0; row < setup_row_count(got); row++) {
        double largest = 0.0, error = 0.0;
        for (int64_t col = 0; col < got->cols; col++) {
            double want = wanted[row * got->cols + col];
            double off = fabs(setup_get(got, row, col) - want);
            largest = fabs(want) > largest ? fabs(want) : largest;
            error = off <= error ? error : off;  // keeps a NaN
        }
        error = error > 0.0 ? error / largest : error;
        most = error <= most ? most : error;
    }
    return most;
}

bool setup_report(const setup_matrix *got, double error, double allowed) {
    bool is_good = error <= allowed;
    printf("  check     %s: %lld values, largest error %.1e of the row, %.0e allowed: %s\n",
           got->name, (long long)(setup_row_count(got) * got->cols), error, allowed,
           is_good ? "good" : "WRONG");
    return is_good;
}

void setup_print_kernel(const setup *s, const char *name, ptowsp_kernel kernel) {
    ptowsp_cost a2a3 = {.model = PTOWSP_MODEL_A2A3};
    ptowsp_kernel_stats unit, device;
    ptowsp_error error = ptowsp_module_error(s->module);
    if (error.status != PTOWSP_OK) {
        command_fail("%s", error.text);
    }
    command_check(s->context, ptowsp_kernel_measure(s->module, kernel, NULL, &unit));
    command_check(s->context, ptowsp_kernel_measure(s->module, kernel, &a2a3, &device));
    printf("  kernel    %-10s a full task: %llu cycles in the unit model, %llu on a2a3\n", name,
           (unsigned long long)unit.cycles, (unsigned long long)device.cycles);
}

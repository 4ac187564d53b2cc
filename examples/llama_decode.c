// A decode step of a Llama-like model: layers one after another, a token for each of a batch of
// sequences whose KV caches have their own lengths. In a layer, on tiles of 32 sequences:
//
//      n = rmsnorm(x)     q, k, v = n wq, n wk, n wv                       for each tile
//      cache[length] = k, v     a = softmax(q cache_k' / 4) cache_v        for each sequence and head
//      h = x + a wo       x = h + (silu(n2 wg) * (n2 wu)) wd               for each tile
//
// Three things come together here:
//
//      transient tensors    n, q, ..., g are handed from task to task, and bound by nobody: the run
//                           places them in one block, where they share memory by lifetime
//      choices              the projections have a kernel for up to 16 rows and one for 32, and each
//                           task takes the one that fits the batch
//      the plan of memory   its peak is known before the step runs; compared with memory for each
//                           tensor, allocated and freed around each step
//
// Results are compared with double precision, and must be the same to the bit either way. A saved
// program that is loaded has the same fingerprints.

#include "ptowsp.h"

#include "common/command.h"
#include "common/llama_step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 200 };  // that are timed

// A step with its program.
typedef struct model {
    setup s;
    llama_step step;
    ptowsp_program *program;
    ptowsp_run *run;
} model;

// -- saved programs ---------------------------------------------------------------------------------

static void save(const model *d, const char *path) {
    FILE *file = fopen(path, "wb");
    if (!file) {
        command_fail("%s cannot be written", path);
    }
    const ptowsp_output text = ptowsp_output_to_file(file);
    command_check(d->s.context, ptowsp_program_save(d->s.context, d->s.module, NULL, text));
    bool is_written = !ferror(file);
    if (fclose(file) != 0 || !is_written) {
        command_fail("%s cannot be written", path);
    }
}

// The kernels are in it.
static ptowsp_program *load(const model *d, const char *path) {
    enum { BYTES_MAX = 1 << 20 };
    char *data = (char *)command_allocate(BYTES_MAX, 1);
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(data, 1, BYTES_MAX, file) : 0;
    if (!file || ferror(file)) {
        command_fail("%s cannot be read", path);
    }
    fclose(file);
    ptowsp_program *program;
    ptowsp_status status = ptowsp_program_load(d->s.context, data, size, NULL, &program, NULL);
    if (status != PTOWSP_OK) {
        command_fail("%s: %s", path, ptowsp_context_error(d->s.context).text);
    }
    free(data);
    return program;
}

// -- steps ------------------------------------------------------------------------------------------

// With a path, the program is the one that was saved there.
static void model_make(model *d, bool is_transient, const char *path, uint64_t thread_count) {
    setup_create_threads(&d->s, thread_count);
    llama_step_make(&d->step, &d->s, is_transient);
    const ptowsp_context *context = d->s.context;
    if (path) {
        d->program = load(d, path);
    } else {
        command_check(context, ptowsp_program_create(d->s.context, d->s.module, NULL, &d->program));
    }
    command_check(context, ptowsp_run_create(d->s.context, d->program, &d->run));
}

static void model_destroy(model *d) {
    ptowsp_run_destroy(d->run);
    ptowsp_program_destroy(d->program);
    setup_destroy(&d->s);
}

// A step from fresh tokens. With memory for each tensor, that is allocated and freed here. Returns
// nanoseconds.
static uint64_t step(model *d) {
    static const char *const names[] = {
#define TENSOR_NAME(name, cols) #name,
        LLAMA_STEP_TENSORS(TENSOR_NAME)
#undef TENSOR_NAME
    };
    static const int64_t cols[] = {
#define TENSOR_COLS(name, cols) cols,
        LLAMA_STEP_TENSORS(TENSOR_COLS)
#undef TENSOR_COLS
    };
    enum { COUNT = sizeof cols / sizeof cols[0] };
    void *data[COUNT] = {NULL};
    const ptowsp_run_options options = {
        .lane_count = d->s.thread_count > 1 ? (uint32_t)d->s.thread_count : 0};
    const int64_t batch = d->step.batch;
    d->s.prepare(d->s.user);
    const uint64_t begin = ptowsp_clock_ns();
    for (int i = 0; i < COUNT && !d->step.is_transient; i++) {
        data[i] = malloc((size_t)(batch * cols[i]) * sizeof(float));
        ptowsp_buffer buffer = {.data = data[i], .rank = 2, .shape = {batch, cols[i]}};
        command_check(d->s.context, ptowsp_run_bind_tensor(d->run, names[i], &buffer));
    }
    command_check(d->s.context, ptowsp_run_execute(d->run, &options));
    for (int i = 0; i < COUNT; i++) {
        free(data[i]);
    }
    return ptowsp_clock_ns() - begin;
}

static int compare_u64(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

// -- the comparison ---------------------------------------------------------------------------------

static bool write_file(void *user, const void *data, size_t size) {
    return fwrite(data, 1, size, (FILE *)user) == size;
}

static void draw(const model *d, const char *path) {
    FILE *file = fopen(path, "wb");
    ptowsp_output output = {.write = write_file, .user = file};
    if (!file) {
        command_fail("%s cannot be written", path);
    }
    command_check(d->s.context,
                  ptowsp_run_export_transients(d->run, PTOWSP_EXPORT_SVG, NULL, output));
    fclose(file);
}

// A batch with both ways of memory; returns whether results are right, and the same.
static bool compare(model *planned, model *alone, int64_t batch, bool is_timed) {
    static uint64_t times[2][STEPS];
    llama_step_fill(&planned->step, batch);
    llama_step_fill(&alone->step, batch);
    setup_bind(&planned->s, planned->run);
    setup_bind(&alone->s, alone->run);
    ptowsp_transient_sizes sizes;
    command_check(planned->s.context, ptowsp_run_size_transients(planned->run, &sizes));
    step(planned);
    ptowsp_fingerprint found;
    command_check(planned->s.context, ptowsp_run_fingerprint(planned->run, &found));
    double error = setup_error(planned->step.x, planned->step.wanted);
    step(alone);
    bool is_same = memcmp(planned->step.x->data, alone->step.x->data,
                          (size_t)(batch * LLAMA_DIM) * sizeof(float)) == 0;
    printf("  batch %2d  %6d bytes in one block (at least %6d), %6d each alone; error %.1e: %s\n",
           (int)batch, (int)sizes.peak, (int)sizes.low, (int)sizes.sum, error,
           is_same && error < LLAMA_STEP_ALLOWED ? "good" : "WRONG");
    printf("            program %016llx, results %016llx\n", (unsigned long long)found.program,
           (unsigned long long)found.results);
    for (int i = 0; i < STEPS && is_timed; i++) {
        times[0][i] = step(planned);
        times[1][i] = step(alone);
    }
    if (is_timed) {
        qsort(times[0], STEPS, sizeof times[0][0], compare_u64);
        qsort(times[1], STEPS, sizeof times[1][0], compare_u64);
        printf("  a step takes %.1f us, and %.1f us with memory for each tensor (medians of %d)\n",
               (double)times[0][STEPS / 2] / 1000.0, (double)times[1][STEPS / 2] / 1000.0, STEPS);
    }
    return is_same && error < LLAMA_STEP_ALLOWED;
}

static const char help_text[] =
    "Decodes a token for each of 24, 16 and 1 requests, with the memory of transients shared and "
    "not.\n"
    "  --threads N    lanes that run kernels, 1 to 64 (1); what is printed is the same for all\n"
    "  --time         measure steps\n"
    "  --memory FILE  draw the block of memory of the largest batch as SVG\n"
    "  --save FILE    save the program\n"
    "  --load FILE    run a saved program\n";

int main(int argc, char **argv) {
    uint64_t thread_count = 1;
    const char *memory_path = NULL, *save_path = NULL, *load_path = NULL;
    bool is_timed = false;
    const command_option numbers[] = {{"--threads", &thread_count, NULL, 1, 64}};
    const command_text texts[] = {
        {"--memory", &memory_path}, {"--save", &save_path}, {"--load", &load_path}};
    const command_flag flags[] = {{"--time", &is_timed}};
    const command_options options = {numbers, 1, texts, sizeof texts / sizeof *texts, flags, 1};
    command_parse_all(argc, argv, help_text, &options);
    model planned, alone;
    model_make(&planned, true, load_path, thread_count);
    model_make(&alone, false, NULL, thread_count);
    if (save_path) {
        save(&planned, save_path);
    }
    printf("a decode step of %d layers, %d wide, %d heads, %d hidden\n", LLAMA_STEP_LAYERS,
           LLAMA_DIM, LLAMA_HEADS, LLAMA_HIDDEN);
    const ptowsp_output out = ptowsp_output_to_file(stdout);
    ptowsp_kernel_explain(planned.s.module, planned.step.project, NULL, out);
    bool is_good = compare(&planned, &alone, LLAMA_STEP_BATCH_MAX, is_timed);
    if (memory_path) {
        draw(&planned, memory_path);
    }
    is_good = compare(&planned, &alone, LLAMA_STEP_SMALL, is_timed) && is_good;
    is_good = compare(&planned, &alone, 1, is_timed) && is_good;
    model_destroy(&planned);
    model_destroy(&alone);
    return is_good ? 0 : 1;
}

// The dispatcher: whether a chain is one that a device takes, memory and graphs by signature, and why not.

#include "chain_device.h"

#include <stdlib.h>
#include <string.h>

const char *const chain_reason_texts[CHAIN_REASON_COUNT] = {
#define CHAIN_REASON_TEXT(name, text) text,
    CHAIN_REASONS(CHAIN_REASON_TEXT)
#undef CHAIN_REASON_TEXT
};

enum { ENTRY_MAX = 256 };  // signatures that are kept

// A right operand that stays on the device.
typedef struct static_right {
    const float *data;
    uint32_t rows, cols;
    void *memory;
} static_right;

// Memory of a signature, and its graph. `staging` is host memory that the device reads and writes.
typedef struct entry {
    chain_op ops[CHAIN_OP_MAX];
    uint32_t op_count;
    void *left, *right, *row, *out, *graph;
    float *staging;
    bool owns_right;
} entry;

struct chain_dispatcher {
    chain_settings settings;
    chain_device *device;
    chain_reason unavailable;
    chain_cpu *cpu;
    chain_counters counters;
    entry *entries;
    static_right *rights;
    uint32_t entry_count, right_count;
};

// A chain, taken apart. Absent parts are NULL.
typedef struct parts {
    const chain_op *input, *matmul, *add, *relu, *output;
} parts;

static bool is_set(const char *name) {
    const char *value = getenv(name);
    return value && *value && strcmp(value, "0") != 0;
}

chain_settings chain_settings_read(void) {
    const char *replay = getenv("PTOWSP_CUDA_REPLAY");
    return (chain_settings){
        .is_disabled = is_set("PTOWSP_CUDA_DISABLE"),
        .forces_fallback = is_set("PTOWSP_CUDA_FORCE_FALLBACK"),
        .error_at = is_set("PTOWSP_CUDA_FORCE_ERROR") ? getenv("PTOWSP_CUDA_FORCE_ERROR") : NULL,
        .is_simulated = is_set("PTOWSP_CUDA_SIMULATE"),
        .has_no_replay = replay && !strcmp(replay, "0"),
        .has_static_right = is_set("PTOWSP_CUDA_STATIC_RIGHT"),
    };
}

chain_dispatcher *chain_create(const chain_settings *settings) {
    chain_dispatcher *d = (chain_dispatcher *)calloc(1, sizeof *d);
    if (!d) {
        return NULL;
    }
    d->settings = *settings;
    d->cpu = chain_cpu_create();
    if (settings->is_disabled) {
        d->unavailable = CHAIN_DISABLED;
    } else if (settings->is_simulated) {
        d->device = chain_simulated_open(settings->memory_bytes);
    } else {
        d->device = chain_cuda_open(&d->unavailable);
    }
    if (!d->cpu || (settings->is_simulated && !settings->is_disabled && !d->device)) {
        chain_destroy(d);
        return NULL;
    }
    return d;
}

static void entry_release(chain_dispatcher *d, entry *e) {
    const chain_device_calls *calls = d->device->calls;
    if (e->graph) {
        calls->release_graph(d->device, e->graph);
    }
    void *const owned[] = {e->left, e->owns_right ? e->right : NULL, e->row, e->out};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) {
        if (owned[i]) {
            calls->release(d->device, owned[i]);
        }
    }
    if (e->staging) {
        calls->release_host(d->device, e->staging);
    }
}

static void entries_release(chain_dispatcher *d) {
    for (uint32_t i = 0; i < d->entry_count; i++) {
        entry_release(d, &d->entries[i]);
    }
    d->entry_count = 0;
}

void chain_destroy(chain_dispatcher *d) {
    if (!d) {
        return;
    }
    entries_release(d);
    for (uint32_t i = 0; i < d->right_count; i++) {
        d->device->calls->release(d->device, d->rights[i].memory);
    }
    if (d->device) {
        d->device->calls->close(d->device);
    }
    free(d->entries);
    free(d->rights);
    chain_cpu_destroy(d->cpu);
    free(d);
}

const chain_counters *chain_count(const chain_dispatcher *d) {
    return &d->counters;
}

const char *chain_device_name(const chain_dispatcher *d) {
    return d->device ? d->device->name : "none";
}

// -- chains ---------------------------------------------------------------------------------------

// Checks a chain: NULL, or the text of its error.
static const char *chain_check(const chain_op *ops, uint32_t op_count) {
    if (!ops || op_count < 2 || op_count > CHAIN_OP_MAX) {
        return "a chain has 2 to 16 operations";
    }
    if (ops[0].kind != CHAIN_INPUT || ops[op_count - 1].kind != CHAIN_OUTPUT) {
        return "a chain begins with its input and ends with its output";
    }
    const uint32_t rows = ops[0].rows;
    uint32_t cols = ops[0].cols;
    for (uint32_t i = 0; i < op_count; i++) {
        const chain_op *op = &ops[i];
        if (op->kind == CHAIN_RELU) {
            continue;
        }
        if (!op->data || op->rows == 0 || op->cols == 0) {
            return "a matrix is NULL, or has no rows or columns";
        }
        const bool is_end = i == 0 || i == op_count - 1;
        if ((op->kind == CHAIN_INPUT || op->kind == CHAIN_OUTPUT) != is_end) {
            return "an input or an output is inside the chain";
        }
        switch (op->kind) {
        case CHAIN_MATMUL:
            if (op->rows != cols) {
                return "a right operand has other rows than its left operand has columns";
            }
            cols = op->cols;
            break;
        case CHAIN_ADD:
            if ((op->rows != rows && op->rows != 1) ||
                (op->cols != cols && (op->cols != 1 || op->rows != 1))) {
                return "an added operand is not a matrix of the same shape, a row or a number";
            }
            break;
        case CHAIN_OUTPUT:
            if (op->rows != rows || op->cols != cols) {
                return "the output has another shape than the result";
            }
            break;
        default: break;
        }
    }
    return NULL;
}

// Whether a device takes it.
static bool chain_take(const chain_op *ops, uint32_t op_count, parts *out) {
    *out = (parts){.input = &ops[0], .output = &ops[op_count - 1]};
    uint32_t at = 1;
    if (ops[at].kind != CHAIN_MATMUL) {
        return false;
    }
    out->matmul = &ops[at++];
    out->add = ops[at].kind == CHAIN_ADD ? &ops[at++] : NULL;
    out->relu = ops[at].kind == CHAIN_RELU ? &ops[at++] : NULL;
    return at == op_count - 1;
}

static size_t bytes_of(const chain_op *op) {
    return (size_t)op->rows * op->cols * sizeof(float);
}

// Whether a whole matrix is added; otherwise a row is.
static bool adds_matrix(const parts *p) {
    return p->add && p->add->rows == p->output->rows && p->add->cols == p->output->cols;
}

// -- on a device ----------------------------------------------------------------------------------

static bool signature_equals(const entry *e, const chain_op *ops, uint32_t op_count) {
    if (e->op_count != op_count) {
        return false;
    }
    for (uint32_t i = 0; i < op_count; i++) {
        const chain_op *a = &e->ops[i], *b = &ops[i];
        if (a->kind != b->kind ||
            (a->kind != CHAIN_RELU &&
             (a->data != b->data || a->rows != b->rows || a->cols != b->cols))) {
            return false;
        }
    }
    return true;
}

// The staging memory: left, right, row, and the output, which may begin as the added matrix.
static float *staging_of(const entry *e, const parts *p, const void *which) {
    const size_t left = (size_t)p->input->rows * p->input->cols;
    const size_t right = (size_t)p->matmul->rows * p->matmul->cols;
    return which == e->left    ? e->staging
           : which == e->right ? e->staging + left
           : which == e->row   ? e->staging + left + right
                               : e->staging + left + right + p->output->cols;
}

// The right operand of a pointer and shape, uploaded once.
static bool static_right_find(chain_dispatcher *d, const parts *p, const entry *e, void **out) {
    const chain_device_calls *calls = d->device->calls;
    for (uint32_t i = 0; i < d->right_count; i++) {
        const static_right *r = &d->rights[i];
        if (r->data == p->matmul->data && r->rows == p->matmul->rows &&
            r->cols == p->matmul->cols) {
            *out = r->memory;
            return true;
        }
    }
    static_right *more = (static_right *)realloc(d->rights, (d->right_count + 1) * sizeof *more);
    if (!more) {
        return false;
    }
    d->rights = more;
    const size_t bytes = bytes_of(p->matmul);
    if (!calls->allocate(d->device, bytes, out)) {
        return false;
    }
    memcpy(e->staging, p->matmul->data, bytes);
    if (!calls->upload(d->device, *out, e->staging, bytes) || !calls->wait(d->device)) {
        calls->release(d->device, *out);
        return false;
    }
    more[d->right_count++] =
        (static_right){p->matmul->data, p->matmul->rows, p->matmul->cols, *out};
    d->counters.uploads++;
    return true;
}

static uint64_t memory_needed(const parts *p) {
    return bytes_of(p->input) + bytes_of(p->matmul) + bytes_of(p->output) +
           (uint64_t)p->output->cols * sizeof(float);
}

static bool entry_allocate(chain_dispatcher *d, entry *e, const parts *p) {
    const chain_device_calls *calls = d->device->calls;
    void *staging;
    if (!calls->allocate_host(d->device, memory_needed(p), &staging)) {
        return false;
    }
    e->staging = (float *)staging;
    e->owns_right = !d->settings.has_static_right;
    return calls->allocate(d->device, bytes_of(p->input), &e->left) &&
           calls->allocate(d->device, bytes_of(p->output), &e->out) &&
           calls->allocate(d->device, (size_t)p->output->cols * sizeof(float), &e->row) &&
           (e->owns_right ? calls->allocate(d->device, bytes_of(p->matmul), &e->right)
                          : static_right_find(d, p, e, &e->right));
}

// All that a run does on the device, in order.
static bool enqueue(chain_dispatcher *d, const entry *e, const parts *p) {
    const chain_device_calls *calls = d->device->calls;
    chain_device *device = d->device;
    const chain_product product = {.left = e->left,
                                   .right = e->right,
                                   .out = e->out,
                                   .row = p->add && !adds_matrix(p) ? e->row : NULL,
                                   .rows = p->input->rows,
                                   .depth = p->input->cols,
                                   .cols = p->output->cols,
                                   .adds_to_out = adds_matrix(p),
                                   .has_relu = p->relu != NULL};
    float *out = staging_of(e, p, e->out);
    const size_t row_bytes = (size_t)p->output->cols * sizeof(float);
    return calls->upload(device, e->left, staging_of(e, p, e->left), bytes_of(p->input)) &&
           (!e->owns_right ||
            calls->upload(device, e->right, staging_of(e, p, e->right), bytes_of(p->matmul))) &&
           (!product.row || calls->upload(device, e->row, staging_of(e, p, e->row), row_bytes)) &&
           (!product.adds_to_out || calls->upload(device, e->out, out, bytes_of(p->output))) &&
           calls->multiply(device, &product) &&
           calls->download(device, out, e->out, bytes_of(p->output));
}

// Host data to where the device reads it.
static void stage(const entry *e, const parts *p) {
    memcpy(staging_of(e, p, e->left), p->input->data, bytes_of(p->input));
    if (e->owns_right) {
        memcpy(staging_of(e, p, e->right), p->matmul->data, bytes_of(p->matmul));
    }
    if (adds_matrix(p)) {
        memcpy(staging_of(e, p, e->out), p->add->data, bytes_of(p->output));
    } else if (p->add) {
        float *row = staging_of(e, p, e->row);
        for (uint32_t i = 0; i < p->output->cols; i++) {
            row[i] = p->add->data[p->add->cols == 1 ? 0 : i];
        }
    }
}

static bool is_forced(const chain_dispatcher *d, const char *place) {
    return d->settings.error_at && !strcmp(d->settings.error_at, place);
}

// Records the calls of a run as a graph that later runs replay.
static bool capture(chain_dispatcher *d, entry *e, const parts *p) {
    const chain_device_calls *calls = d->device->calls;
    if (is_forced(d, "capture") || !calls->capture_begin(d->device)) {
        return false;
    }
    const bool is_enqueued = enqueue(d, e, p);
    if (!calls->capture_end(d->device, &e->graph) || !is_enqueued) {
        return false;
    }
    d->counters.captures++;
    return true;
}

// The entry of a signature, or a new one. NULL if the device has no memory for it.
static entry *entry_find(chain_dispatcher *d, const chain_op *ops, uint32_t op_count,
                         const parts *p) {
    const chain_device_calls *calls = d->device->calls;
    for (uint32_t i = 0; i < d->entry_count; i++) {
        if (signature_equals(&d->entries[i], ops, op_count)) {
            return &d->entries[i];
        }
    }
    if (d->entry_count == ENTRY_MAX || memory_needed(p) > calls->memory_free(d->device)) {
        entries_release(d);  // all are captured again when they come again
    }
    if (memory_needed(p) > calls->memory_free(d->device)) {
        return NULL;
    }
    entry *more = (entry *)realloc(d->entries, (d->entry_count + 1) * sizeof *more);
    if (!more) {
        return NULL;
    }
    d->entries = more;
    entry *e = &more[d->entry_count];
    memset(e, 0, sizeof *e);
    memcpy(e->ops, ops, op_count * sizeof *ops);
    e->op_count = op_count;
    if (!entry_allocate(d, e, p)) {
        entry_release(d, e);
        return NULL;
    }
    d->entry_count++;
    return e;
}

static chain_reason device_run(chain_dispatcher *d, const chain_op *ops, uint32_t op_count) {
    parts p;
    chain_reason reason = CHAIN_NONE;
    if (!d->device) {
        return d->unavailable;
    }
    if (d->settings.forces_fallback) {
        return CHAIN_FORCED_FALLBACK;
    }
    if (d->settings.error_at && !is_forced(d, "capture") && !is_forced(d, "launch")) {
        return CHAIN_FORCED_ERROR;
    }
    if (!chain_take(ops, op_count, &p)) {
        return CHAIN_UNSUPPORTED_CHAIN;
    }
    entry *e = entry_find(d, ops, op_count, &p);
    if (!e) {
        return CHAIN_SHAPE;
    }
    stage(e, &p);
    const bool is_launched =
        !is_forced(d, "launch") &&
        (e->graph ? d->device->calls->replay(d->device, e->graph) : enqueue(d, e, &p));
    if (!d->device->calls->wait(d->device) || !is_launched) {
        reason = CHAIN_LAUNCH_FAILED;
    } else if (e->graph) {
        d->counters.replays++;
    } else if (!d->settings.has_no_replay && !capture(d, e, &p)) {
        reason = CHAIN_CAPTURE_FAILED;
    }
    if (reason) {
        entry_release(d, e);
        *e = d->entries[--d->entry_count];
    } else {
        d->counters.uploads += e->owns_right;
        memcpy(p.output->data, staging_of(e, &p, e->out), bytes_of(p.output));
    }
    return reason;
}

bool chain_run(chain_dispatcher *d, const chain_op *ops, uint32_t op_count,
               chain_reason *out_reason, const char **out_error) {
    *out_reason = CHAIN_NONE;
    *out_error = chain_check(ops, op_count);
    if (*out_error) {
        return false;
    }
    d->counters.runs++;
    *out_reason = device_run(d, ops, op_count);
    d->counters.reasons[*out_reason]++;
    if (*out_reason == CHAIN_NONE) {
        d->counters.on_device++;
        return true;
    }
    *out_error = chain_cpu_run(d->cpu, ops, op_count);
    return !*out_error;
}

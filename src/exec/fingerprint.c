// Fingerprints: hashes of a run's program, bindings, inputs, results and time.
//
// Tensors count by their elements in the order of their indices, row by row. Things without content
// are counted by number and kind, so that what moves from one to another is seen.

#include "fingerprint.h"

#include "../base/text.h"
#include "../data/digest.h"

#include <inttypes.h>

// -- parts ----------------------------------------------------------------------------------------

static uint64_t pwsp_fingerprint_program(const ptowsp_run *run) {
    const ptowsp_program *p = run->program;
    uint64_t hash = PTOWSP_HASH_START;
    ptowsp_program_print(p, pwsp_text_to_hash(&hash));
    for (uint32_t i = 1; i < p->kernels.count; i++) {
        const pwsp_kernel_info *kernel = &p->kernels.items[i];
        hash = p->kernel_is_used[i] ? pwsp_hash_number(hash, pwsp_kernel_info_hash(kernel)) : hash;
    }
    return hash;
}

static uint64_t pwsp_fingerprint_array(uint64_t hash, const pwsp_array *array) {
    hash = pwsp_hash_number(hash, array->count);
    for (uint64_t i = 0; i < array->count; i++) {
        hash = pwsp_hash_number(hash, pwsp_array_at(array, i));
    }
    return hash;
}

static uint64_t pwsp_fingerprint_shape(uint64_t hash, const pwsp_bound_tensor *tensor,
                                       uint32_t rank) {
    hash = pwsp_hash_number(hash, (uint64_t)tensor->dtype);
    for (uint32_t i = 0; i + 2 < rank; i++) {
        hash = pwsp_hash_number(hash, (uint64_t)tensor->lead_shape[i]);
    }
    hash = pwsp_hash_number(hash, (uint64_t)tensor->rows);
    return pwsp_hash_number(hash, (uint64_t)tensor->cols);
}

static uint64_t pwsp_fingerprint_bindings(const ptowsp_run *run) {
    const ptowsp_program *p = run->program;
    const pwsp_bindings *bound = &run->bindings;
    uint64_t hash = PTOWSP_HASH_START;
    for (uint32_t i = 1; i < p->axes.count; i++) {
        const pwsp_bound_csr *csr = &bound->csrs[i];
        if (p->axis_is_used[i] && bound->is_bound[p->first_size + i]) {
            hash = pwsp_hash_number(pwsp_hash_number(hash, i), bound->initial[p->first_size + i]);
        }
        if (p->axis_is_used[i] && csr->is_bound) {
            hash = pwsp_fingerprint_array(hash, &csr->indptr);
            hash = pwsp_fingerprint_array(hash, &csr->indices);
        }
    }
    for (uint32_t i = 1; i < p->symbols.count; i++) {
        if (p->symbol_is_used[i]) {
            hash = pwsp_hash_number(hash, bound->initial[p->first_symbol + i]);
        }
    }
    for (uint32_t i = 0; i < p->slot_count; i++) {
        hash = pwsp_hash_number(hash, bound->initial[p->first_slot + i]);
    }
    // Fields of plans are arrays in the order of their first use, which a saved program need not
    // have: they count by axis and field, as a sum.
    uint64_t fields = 0;
    for (uint32_t i = 1; i < p->arrays.count; i++) {
        const pwsp_array_info *info = &p->arrays.items[i];
        const uint64_t field = pwsp_hash_number(info->plan_axis, (uint64_t)info->field);
        if (p->array_is_used[i] && info->plan_axis) {
            fields += pwsp_fingerprint_array(field, &bound->arrays[i]);
        } else if (p->array_is_used[i]) {
            hash = pwsp_fingerprint_array(hash, &bound->arrays[i]);
        }
    }
    hash = fields ? pwsp_hash_number(hash, fields) : hash;
    for (uint32_t i = 1; i < p->tensors.count; i++) {
        if (p->tensor_is_used[i]) {
            uint32_t rank = p->tensors.items[i].rank;
            hash = pwsp_fingerprint_shape(hash, &bound->effective[i], rank);
        }
    }
    return hash;
}

// The contents of a tensor, row by row, the last of the leading indices fastest.
static uint64_t pwsp_fingerprint_tensor(uint64_t hash, const pwsp_bound_tensor *tensor,
                                        uint32_t rank) {
    const uint32_t lead = rank > 2 ? rank - 2 : 0;
    const int64_t size = tensor->element_size;
    int64_t index[PWSP_TENSOR_LEAD_MAX] = {0};
    int64_t offset = 0;
    for (uint32_t i = 0; i < lead; i++) {
        if (tensor->lead_shape[i] == 0) {
            return hash;
        }
    }
    for (;;) {
        for (int64_t row = 0; row < tensor->rows; row++) {
            hash = pwsp_digest(hash, tensor->data + (offset + row * tensor->row_stride) * size,
                               (uint64_t)tensor->cols, tensor->element_size,
                               tensor->col_stride * size);
        }
        uint32_t i = lead;
        while (i > 0 && ++index[i - 1] == tensor->lead_shape[i - 1]) {
            offset -= (tensor->lead_shape[i - 1] - 1) * tensor->lead_strides[i - 1];
            index[--i] = 0;
        }
        if (i == 0) {
            return hash;
        }
        offset += tensor->lead_strides[i - 1];
    }
}

// The contents of the tensors in use that tasks write, or of those that they do not. Transient
// tensors have none that last.
static uint64_t pwsp_fingerprint_tensors(const ptowsp_run *run, bool is_written) {
    const ptowsp_program *p = run->program;
    uint64_t hash = PTOWSP_HASH_START;
    for (uint32_t i = 1; i < p->tensors.count; i++) {
        if (p->tensor_is_used[i] && !p->tensor_is_transient[i] &&
            p->tensor_is_written[i] == is_written) {
            uint32_t rank = p->tensors.items[i].rank;
            hash = pwsp_hash_number(hash, i);
            hash = pwsp_fingerprint_tensor(hash, &run->bindings.effective[i], rank);
        }
    }
    return hash;
}

static uint64_t pwsp_fingerprint_inputs(const ptowsp_run *run) {
    return pwsp_fingerprint_tensors(run, false);
}

static uint64_t pwsp_fingerprint_results(const ptowsp_run *run) {
    uint64_t hash = pwsp_fingerprint_tensors(run, true);
    for (uint32_t i = 0; i < run->program->slot_count; i++) {
        hash = pwsp_hash_number(hash, ptowsp_run_slot(run, i));
    }
    return hash;
}

static uint64_t pwsp_fingerprint_time(const ptowsp_run *run) {
    const ptowsp_run_stats *stats = &run->time.sim.stats;
    uint64_t hash = pwsp_hash_number(PTOWSP_HASH_START, stats->makespan_cycles);
    hash = pwsp_hash_number(hash, stats->busy_cycles);
    return pwsp_hash_number(hash, stats->task_count);
}

// -- runs -----------------------------------------------------------------------------------------

// A hash that is not 0, since 0 means that no hash was taken.
static uint64_t pwsp_fingerprint_some(uint64_t hash) {
    return hash ? hash : 1;
}

// The parts in their order: field, name, whether it is known before the execution, and
// whether it is of contents of tensors, which do not count when only time is measured.
#define PWSP_FINGERPRINT_PARTS(PART)                                                               \
    PART(program, "program", true, false)                                                          \
    PART(bindings, "bindings", true, false)                                                        \
    PART(inputs, "inputs", true, true)                                                             \
    PART(results, "results", false, true)                                                          \
    PART(time, "time", false, false)

PWSP_INTERNAL ptowsp_status pwsp_run_compare(ptowsp_run *run, bool is_before) {
    uint64_t found = 0, expected = 0;
    const char *what = NULL;
#define PWSP_COMPARE_PART(part, name, is_known_before, has_content)                                \
    if (!what && run->expected.part && is_known_before == is_before &&                             \
        !(has_content && run->walk.is_time_only)) {                                                \
        found = pwsp_fingerprint_some(pwsp_fingerprint_##part(run));                               \
        expected = run->expected.part;                                                             \
        what = found == expected ? NULL : name;                                                    \
    }
    PWSP_FINGERPRINT_PARTS(PWSP_COMPARE_PART)
#undef PWSP_COMPARE_PART
    return what ? pwsp_fail(run->context, PTOWSP_DIFFERENT, PTOWSP_NO_INDEX,
                            "run: the fingerprint of its %s is %016" PRIx64 ", %016" PRIx64
                            " is expected",
                            what, found, expected)
                : PTOWSP_OK;
}

ptowsp_status ptowsp_run_expect(ptowsp_run *run, const ptowsp_fingerprint *expected) {
    PTOWSP_ASSERT(run);
    if (pwsp_run_is_running(run)) {
        return pwsp_fail_busy(run->owner);
    }
    memset(&run->expected, 0, sizeof run->expected);
    run->is_strict = expected != NULL;
    if (expected) {
        run->expected = *expected;
    }
    return PTOWSP_OK;
}

ptowsp_status ptowsp_run_fingerprint(ptowsp_run *run, ptowsp_fingerprint *out_fingerprint) {
    PTOWSP_ASSERT(run);
    if (!out_fingerprint) {
        return PWSP_REFUSE(run->context, "run: out_fingerprint is NULL");
    }
    memset(out_fingerprint, 0, sizeof *out_fingerprint);
    if (pwsp_exchange_acquire(&run->is_running, 1u)) {
        return pwsp_fail_busy(run->owner);
    }
    ptowsp_status status = pwsp_bindings_verify(&run->bindings, run->walk.is_time_only);
#define PWSP_FIND_PART(part, name, is_before, has_content)                                         \
    if (status == PTOWSP_OK && (is_before || run->result.is_done) &&                               \
        !(has_content && run->walk.is_time_only)) {                                                \
        out_fingerprint->part = pwsp_fingerprint_some(pwsp_fingerprint_##part(run));               \
    }
    PWSP_FINGERPRINT_PARTS(PWSP_FIND_PART)
#undef PWSP_FIND_PART
    pwsp_store_release(&run->is_running, 0u);
    return status;
}

void ptowsp_fingerprint_print(const ptowsp_fingerprint *fingerprint, ptowsp_output output) {
    if (!fingerprint) {
        return;
    }
#define PWSP_PRINT_PART(part, name, is_before, has_content)                                        \
    pwsp_text_format(output, is_first ? "%s %016" PRIx64 : " %s %016" PRIx64, name,                \
                     fingerprint->part);                                                           \
    is_first = false;
    bool is_first = true;
    PWSP_FINGERPRINT_PARTS(PWSP_PRINT_PART)
#undef PWSP_PRINT_PART
    pwsp_text_format(output, "\n");
}

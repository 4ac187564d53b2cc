// Transient tensors: an execution gives them memory. Which may share it is known since the program
// was compiled (workload/lifetime.c); how large they are, since everything is bound.
//
// On lanes, tasks that use the same bytes run in program order, whatever tensors these bytes belong
// to (runtime/groups.c), so the lifetimes of the program's order hold there, too.

#include "transient.h"

#include "../base/text.h"
#include "../runtime/binding_check.h"
#include "../runtime/walk_check.h"

#include <inttypes.h>

// Where tensors are that have no data.
#define PWSP_TRANSIENT_BASE (UINT64_C(1) << 63)

static const ptowsp_tensor_desc *pwsp_transient_desc(const ptowsp_program *p, uint32_t i) {
    return PWSP_PROGRAM_AT(p, tensors, ptowsp_tensor_desc,
                           PWSP_PROGRAM_AT(p, transients, pwsp_transient, i)->tensor);
}

// -- sizes ----------------------------------------------------------------------------------------

static ptowsp_status pwsp_transient_fail(const pwsp_bindings *bindings, const pwsp_error *error,
                                         ptowsp_status status) {
    return pwsp_fail(bindings->context, status, error->index, "%s", error->text);
}

// Binds a tensor of the present sizes, without memory; stores the bytes it takes in a block.
static ptowsp_status pwsp_transient_size(pwsp_bindings *bindings, uint32_t i, uint64_t *out_bytes) {
    const ptowsp_program *p = bindings->program;
    const pwsp_transient *transient = PWSP_PROGRAM_AT(p, transients, pwsp_transient, i);
    const ptowsp_tensor_desc *desc = pwsp_transient_desc(p, i);
    const pwsp_code *codes = PWSP_PROGRAM_AT(p, codes, pwsp_code, transient->first_code);
    ptowsp_buffer buffer;
    pwsp_error error;
    pwsp_fault fault = {false, 0, 0};
    memset(&buffer, 0, sizeof buffer);
    buffer.rank = desc->rank;
    for (uint32_t j = 0; j < desc->rank; j++) {
        buffer.shape[j] = desc->shape[j];
        if (codes[j].expr) {
            buffer.shape[j] =
                (int64_t)pwsp_code_value((const pwsp_instruction *)p->instructions.items, codes[j],
                                         bindings->initial, bindings->arrays, &fault);
        }
    }
    if (fault.is_set) {
        const pwsp_array_info *array = PWSP_PROGRAM_AT(p, arrays, pwsp_array_info, fault.array);
        ptowsp_status status =
            pwsp_read_fail(&error, false, array->name, &bindings->arrays[fault.array], fault.index);
        return pwsp_fail(bindings->context, status, error.index,
                         "run: the size of transient tensor %s: %s", desc->name, error.text);
    }
    pwsp_bound_tensor *tensor = &bindings->tensors[transient->tensor];
    ptowsp_status status = pwsp_bind_check_tensor(&error, desc, &buffer, tensor);
    *out_bytes = 0;
    if (status == PTOWSP_OK && tensor->high >= 0) {
        uint64_t bytes = (uint64_t)(tensor->high + 1) * tensor->element_size;
        *out_bytes = (bytes + PTOWSP_TRANSIENT_ALIGN - 1) & ~(uint64_t)(PTOWSP_TRANSIENT_ALIGN - 1);
    }
    return status == PTOWSP_OK ? status : pwsp_transient_fail(bindings, &error, status);
}

PWSP_INTERNAL ptowsp_status pwsp_transients_find(pwsp_bindings *bindings) {
    const ptowsp_program *p = bindings->program;
    pwsp_transients *t = &bindings->transients;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->transients.count; i++) {
        const pwsp_transient *transient = PWSP_PROGRAM_AT(p, transients, pwsp_transient, i);
        uint64_t bytes;
        ptowsp_status status = pwsp_transient_size(bindings, i, &bytes);
        if (status != PTOWSP_OK) {
            t->is_found = false;
            return status;
        }
        bytes = transient->lifetime_count ? bytes : 0;
        t->is_found = t->is_found && t->placed[i].bytes == bytes;
        t->placed[i].bytes = bytes;
        t->placed[i].first_lifetime = transient->first_lifetime;
        t->placed[i].lifetime_count = transient->lifetime_count;
        sum += bytes;  // each at most 2^61
        if (sum > UINT64_C(1) << 61) {
            t->is_found = false;
            return pwsp_fail(bindings->context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                             "run: transient tensors, up to %s, take more than 2^61 bytes",
                             pwsp_transient_desc(p, i)->name);
        }
    }
    if (!t->is_found) {
        t->placement = pwsp_placement_find(
            t->placed, (uint32_t)p->transients.count, (const pwsp_lifetime *)p->lifetimes.items,
            (uint32_t)p->points.count, t->order, t->offsets, t->alive);
        t->is_found = true;
    }
    return PTOWSP_OK;
}

// -- memory ---------------------------------------------------------------------------------------

static bool pwsp_transient_is_alive(const ptowsp_program *p, const pwsp_placed *placed,
                                    uint32_t point) {
    bool is_alive = false;
    for (uint32_t j = 0; j < placed->lifetime_count; j++) {
        const pwsp_lifetime *lifetime =
            PWSP_PROGRAM_AT(p, lifetimes, pwsp_lifetime, placed->first_lifetime + j);
        is_alive = is_alive || (lifetime->first <= point && point <= lifetime->last);
    }
    return is_alive;
}

// The block is too small: names the place that needs most, and the largest tensors that live there.
static ptowsp_status pwsp_transients_fail_size(const pwsp_bindings *bindings) {
    const uint32_t named_max = 4;
    const ptowsp_program *p = bindings->program;
    const pwsp_transients *t = &bindings->transients;
    uint32_t named[4], count = 0;
    for (uint32_t i = 0; i < p->transients.count; i++) {
        if (!pwsp_transient_is_alive(p, &t->placed[i], t->placement.point) || !t->placed[i].bytes) {
            continue;
        }
        uint32_t at = count < named_max ? count++ : named_max;
        while (at > 0 && t->placed[named[at - 1]].bytes < t->placed[i].bytes) {
            if (at < named_max) {
                named[at] = named[at - 1];
            }
            at--;
        }
        if (at < named_max) {
            named[at] = i;
        }
    }
    char list[PWSP_ERROR_TEXT_MAX / 2], place[PWSP_ERROR_TEXT_MAX / 4];
    ptowsp_text_buffer buffer = {list, sizeof list, 0}, where = {place, sizeof place, 0};
    ptowsp_text text = ptowsp_text_to_buffer(&buffer);
    for (uint32_t i = 0; i < count; i++) {
        pwsp_text_format(text, "%s%s %" PRIu64, i ? ", " : "",
                         pwsp_transient_desc(p, named[i])->name, t->placed[named[i]].bytes);
    }
    ptowsp_program_print_point(p, t->placement.point, ptowsp_text_to_buffer(&where));
    return pwsp_fail(bindings->context, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                     "run: transient tensors take %" PRIu64 " bytes, and there are %" PRIu64
                     "; most at %s: %s. Smaller tiles there, or computing again what lives long, "
                     "takes less",
                     t->placement.peak, t->size, place, list);
}

// The block of the caller, or of the context, with room for the peak. NULL with an error.
static char *pwsp_transients_block(pwsp_bindings *bindings) {
    pwsp_transients *t = &bindings->transients;
    const pwsp_memory *memory = &bindings->context->memory;
    uint64_t peak = t->placement.peak, bytes = peak + PTOWSP_TRANSIENT_ALIGN;
    if ((t->block || t->size) && t->size < peak) {
        pwsp_transients_fail_size(bindings);
        return NULL;
    }
    if (t->block) {
        return t->block;
    }
    if (t->own_bytes < bytes) {
        pwsp_memory_free(memory, t->own, (size_t)t->own_bytes);
        t->own = bytes <= SIZE_MAX ? (char *)pwsp_memory_alloc(memory, (size_t)bytes) : NULL;
        t->own_bytes = t->own ? bytes : 0;
    }
    if (!t->own) {
        pwsp_fail(bindings->context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX,
                  "run: out of memory: transient tensors take %" PRIu64 " bytes", peak);
        return NULL;
    }
    uintptr_t past = (uintptr_t)t->own % PTOWSP_TRANSIENT_ALIGN;
    return t->own + (past ? PTOWSP_TRANSIENT_ALIGN - past : 0);
}

PWSP_INTERNAL ptowsp_status pwsp_transients_bind(pwsp_bindings *bindings, bool is_time_only) {
    const ptowsp_program *p = bindings->program;
    const pwsp_transients *t = &bindings->transients;
    char *block = NULL;
    PTOWSP_ASSERT(t->is_found);
    if (!is_time_only && p->transients.count) {
        block = pwsp_transients_block(bindings);
        if (!block) {
            return ptowsp_context_error(bindings->context).status;
        }
    }
    for (uint32_t i = 0; i < p->transients.count; i++) {
        uint32_t id = PWSP_PROGRAM_AT(p, transients, pwsp_transient, i)->tensor;
        pwsp_bound_tensor *tensor = &bindings->tensors[id];
        tensor->data = block ? block + t->placed[i].offset : NULL;
        tensor->base =
            block ? (uint64_t)(uintptr_t)tensor->data : PWSP_TRANSIENT_BASE + t->placed[i].offset;
        if (is_time_only && p->tensor_is_loaded[id]) {
            return pwsp_fail(bindings->context, PTOWSP_UNSUPPORTED, PTOWSP_NO_INDEX,
                             "run: a slot is loaded from transient tensor %s, which only kernels "
                             "write, so that its time is known only by executing",
                             pwsp_transient_desc(p, i)->name);
        }
    }
    return PTOWSP_OK;
}

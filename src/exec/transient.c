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
    return &p->tensors.items[p->transients.items[i].tensor];
}

// -- sizes ----------------------------------------------------------------------------------------

// The shape of a tensor under the bindings. False with an error of an array that is read outside.
static bool pwsp_transient_shape(const pwsp_bindings *bindings, uint32_t i, int64_t *out_shape,
                                 pwsp_error *error) {
    const ptowsp_program *p = bindings->program;
    const pwsp_transient *transient = &p->transients.items[i];
    const ptowsp_tensor_desc *desc = pwsp_transient_desc(p, i);
    const pwsp_code *codes = &p->codes.items[transient->first_code];
    pwsp_fault fault = {false, 0, 0};
    for (uint32_t j = 0; j < desc->rank; j++) {
        out_shape[j] =
            codes[j].expr
                ? (int64_t)pwsp_code_value((const pwsp_instruction *)p->instructions.items,
                                           codes[j], bindings->initial, bindings->arrays, &fault)
                : desc->shape[j];
    }
    if (fault.is_set) {
        const pwsp_array_info *array = &p->arrays.items[fault.array];
        pwsp_error read;
        pwsp_read_fail(&read, false, array->name, &bindings->arrays[fault.array], fault.index);
        pwsp_transient_fail_size(error, desc->name, read.status, read.index, read.text);
    }
    return !fault.is_set;
}

PWSP_INTERNAL ptowsp_status pwsp_transients_find(pwsp_bindings *bindings) {
    const ptowsp_program *p = bindings->program;
    pwsp_transients *t = &bindings->transients;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->transients.count; i++) {
        const pwsp_transient *transient = &p->transients.items[i];
        pwsp_placed *item = &t->placed[i];
        uint64_t bytes = item->bytes;
        int64_t shape[PTOWSP_TENSOR_RANK_MAX];
        pwsp_error error;
        item->first_lifetime = transient->first_lifetime;
        item->lifetime_count = transient->lifetime_count;
        if (!pwsp_transient_shape(bindings, i, shape, &error) ||
            pwsp_transient_size(&error, pwsp_transient_desc(p, i), shape,
                                &bindings->tensors[transient->tensor], item, &sum) != PTOWSP_OK) {
            t->is_found = false;
            return pwsp_bindings_status(bindings, &error, error.status);
        }
        t->is_found = t->is_found && item->bytes == bytes;
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

static void pwsp_transients_fail_room(const pwsp_bindings *bindings) {
    const ptowsp_program *p = bindings->program;
    const pwsp_transients *t = &bindings->transients;
    char place[PWSP_ERROR_TEXT_MAX / 4];
    ptowsp_output_buffer where = {place, sizeof place, 0};
    pwsp_error error;
    ptowsp_program_print_point(p, t->placement.point, ptowsp_output_to_buffer(&where));
    pwsp_transient_fail_room(&error, t->placed, (uint32_t)p->transients.count,
                             (const pwsp_lifetime *)p->lifetimes.items, &t->placement, place,
                             t->size);
    pwsp_bindings_status(bindings, &error, error.status);
}

// The block of the caller, or of the context, with room for the peak. NULL with an error.
static char *pwsp_transients_block(pwsp_bindings *bindings) {
    pwsp_transients *t = &bindings->transients;
    const pwsp_memory *memory = bindings->memory;
    uint64_t peak = t->placement.peak, bytes = peak + PTOWSP_TRANSIENT_ALIGN;
    if ((t->block || t->size) && t->size < peak) {
        pwsp_transients_fail_room(bindings);
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
        PWSP_NO_MEMORY(bindings->context,
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
    if (!is_time_only) {
        block = pwsp_transients_block(bindings);
        if (!block) {
            return ptowsp_context_error(bindings->context).status;
        }
    }
    for (uint32_t i = 0; i < p->transients.count; i++) {
        uint32_t id = p->transients.items[i].tensor;
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

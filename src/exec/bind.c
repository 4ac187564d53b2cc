// Binds names of a program to sizes, symbols, arrays and memory.
//
// The binding itself (type, shape, layout, pointers) is checked here, once, by the rules of
// runtime/binding_check.h. The contents of arrays are checked when a run executes, because they may
// change in between.

#include "bindings.h"

#include "../runtime/binding_check.h"

// -- life -----------------------------------------------------------------------------------------

// Every array: field, item type, count.
#define PWSP_BINDINGS_ARRAYS(ARRAY)                                                                \
    ARRAY(initial, uint64_t, program->cell_count)                                                  \
    ARRAY(is_bound, bool, program->cell_count)                                                     \
    ARRAY(arrays, pwsp_array, program->arrays.count + 1)                                           \
    ARRAY(csrs, pwsp_bound_csr, program->axes.count + 1)                                           \
    ARRAY(tensors, pwsp_bound_tensor, program->tensors.count + 1)                                  \
    ARRAY(length_sums, int64_t, program->arrays.count + 1)                                         \
    ARRAY(effective, pwsp_bound_tensor, program->tensors.count + 1)

PWSP_INTERNAL bool pwsp_bindings_init(pwsp_bindings *bindings, ptowsp_context *context,
                                      const ptowsp_program *program) {
    memset(bindings, 0, sizeof *bindings);
    bindings->context = context;
    bindings->program = program;
#define PWSP_BINDINGS_ALLOC(field, type, count)                                                    \
    bindings->field = (type *)pwsp_memory_alloc(&context->memory, (size_t)(count) * sizeof(type)); \
    if (!bindings->field) {                                                                        \
        return false;                                                                              \
    }
    PWSP_BINDINGS_ARRAYS(PWSP_BINDINGS_ALLOC)
#undef PWSP_BINDINGS_ALLOC
    if (program->consts.count) {
        memcpy(bindings->initial + program->first_const, program->consts.items,
               (size_t)program->consts.count * sizeof(uint64_t));
    }
    return true;
}

PWSP_INTERNAL void pwsp_bindings_free(pwsp_bindings *bindings) {
    const ptowsp_program *program = bindings->program;
    if (!program) {
        return;
    }
#define PWSP_BINDINGS_FREE(field, type, count)                                                     \
    pwsp_memory_free(&bindings->context->memory, bindings->field, (size_t)(count) * sizeof(type));
    PWSP_BINDINGS_ARRAYS(PWSP_BINDINGS_FREE)
#undef PWSP_BINDINGS_FREE
    memset(bindings, 0, sizeof *bindings);
}

PWSP_INTERNAL size_t pwsp_bindings_bytes(const pwsp_bindings *bindings) {
    const ptowsp_program *program = bindings->program;
    size_t bytes = 0;
#define PWSP_BINDINGS_SIZE(field, type, count) bytes += (size_t)(count) * sizeof(type);
    PWSP_BINDINGS_ARRAYS(PWSP_BINDINGS_SIZE)
#undef PWSP_BINDINGS_SIZE
    return bytes;
}

// -- names ----------------------------------------------------------------------------------------

// Returns the status of a check, with its error in the context.
static ptowsp_status pwsp_bind_result(const pwsp_bindings *bindings, const pwsp_error *error,
                                      ptowsp_status status) {
    return status == PTOWSP_OK
               ? status
               : pwsp_fail(bindings->context, status, error->index, "%s", error->text);
}

// The index of a name among things of one kind; 0 with an error.
static uint32_t pwsp_bind_find(const pwsp_bindings *bindings, const char *what, const char *name,
                               uint32_t kind, ptowsp_status *out_status) {
    const pwsp_name *found = name ? pwsp_names_find(&bindings->program->names, name) : NULL;
    *out_status = PTOWSP_OK;
    if (!found || strcmp(found->text, name) != 0 || found->kind != kind) {
        pwsp_error error;
        *out_status = pwsp_bind_result(
            bindings, &error, pwsp_bind_fail_name(&error, bindings->program->name, what, name));
        return 0;
    }
    return found->index;
}

PWSP_INTERNAL ptowsp_status pwsp_bind_size(pwsp_bindings *bindings, const char *axis,
                                           int64_t size) {
    ptowsp_status status;
    uint32_t id = pwsp_bind_find(bindings, "dynamic axis", axis, PWSP_BIND_SIZE, &status);
    if (id == 0) {
        return status;
    }
    pwsp_error error;
    status = pwsp_bind_check_size(&error, axis, size);
    if (status == PTOWSP_OK) {
        bindings->initial[bindings->program->first_size + id] = (uint64_t)size;
        bindings->is_bound[bindings->program->first_size + id] = true;
    }
    return pwsp_bind_result(bindings, &error, status);
}

PWSP_INTERNAL ptowsp_status pwsp_bind_symbol(pwsp_bindings *bindings, const char *symbol,
                                             uint64_t value) {
    ptowsp_status status;
    uint32_t id = pwsp_bind_find(bindings, "symbol", symbol, PWSP_BIND_SYMBOL, &status);
    if (id == 0) {
        return status;
    }
    bindings->initial[bindings->program->first_symbol + id] = value;
    bindings->is_bound[bindings->program->first_symbol + id] = true;
    return PTOWSP_OK;
}

PWSP_INTERNAL ptowsp_status pwsp_bind_slot(pwsp_bindings *bindings, uint32_t slot, uint64_t value) {
    pwsp_error error;
    ptowsp_status status = pwsp_bind_check_slot(&error, slot, bindings->program->slot_count);
    if (status == PTOWSP_OK) {
        bindings->initial[bindings->program->first_slot + slot] = value;
    }
    return pwsp_bind_result(bindings, &error, status);
}

PWSP_INTERNAL ptowsp_status pwsp_bind_array(pwsp_bindings *bindings, const char *name,
                                            bool is_lengths, ptowsp_dtype dtype, const void *data,
                                            uint64_t count) {
    ptowsp_status status;
    uint32_t id = pwsp_bind_find(bindings, is_lengths ? "ragged axis" : "array", name,
                                 PWSP_BIND_ARRAY, &status);
    if (id == 0) {
        return status;
    }
    const pwsp_array_info *info = PWSP_PROGRAM_AT(bindings->program, arrays, pwsp_array_info, id);
    pwsp_error error;
    status =
        pwsp_bind_check_array(&error, info, is_lengths, dtype, data, count, &bindings->arrays[id]);
    return pwsp_bind_result(bindings, &error, status);
}

PWSP_INTERNAL ptowsp_status pwsp_bind_csr(pwsp_bindings *bindings, const char *axis,
                                          const ptowsp_csr *csr) {
    ptowsp_status status;
    uint32_t id = pwsp_bind_find(bindings, "sparse axis", axis, PWSP_BIND_CSR, &status);
    if (id == 0) {
        return status;
    }
    pwsp_error error;
    status = pwsp_bind_check_csr(&error, axis, csr, &bindings->csrs[id]);
    return pwsp_bind_result(bindings, &error, status);
}

PWSP_INTERNAL ptowsp_status pwsp_bind_tensor(pwsp_bindings *bindings, const char *tensor,
                                             const ptowsp_buffer *buffer) {
    ptowsp_status status;
    uint32_t id = pwsp_bind_find(bindings, "tensor", tensor, PWSP_BIND_TENSOR, &status);
    if (id == 0) {
        return status;
    }
    pwsp_error error;
    status = pwsp_bind_check_tensor(
        &error, PWSP_PROGRAM_AT(bindings->program, tensors, ptowsp_tensor_desc, id), buffer,
        &bindings->tensors[id]);
    return pwsp_bind_result(bindings, &error, status);
}

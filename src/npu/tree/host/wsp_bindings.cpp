// Binding by name, by the library's rules and with its errors.

#include "wsp_bindings.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "wsp_expand.h"

namespace wsp {

Bindings::Bindings(const wsp_program &program) : program_(program), transients_(program), table_() {
    const auto room = [](uint32_t count) { return static_cast<size_t>(count) + 1; };
    sizes_.resize(room(program.axis_count));
    is_size_bound_.resize(room(program.axis_count));
    csrs_.resize(room(program.axis_count));
    batches_.resize(room(program.axis_count));
    symbols_.resize(room(program.symbol_count));
    is_symbol_bound_.resize(room(program.symbol_count));
    arrays_.resize(room(program.array_count));
    tensors_.resize(room(program.tensor_count));
    used_tensors_ = tensors_;
    initial_slots_.resize(program.slot_count);
    slots_.resize(program.slot_count);
}

ptowsp_status Bindings::fail(ptowsp_status status, uint64_t index, const char *format, ...) {
    char text[sizeof failure.text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return pwsp_error_set(&failure, status, index, "%s", text);
}

// -- names ----------------------------------------------------------------------------------------

bool Bindings::is_axis(uint32_t axis, ptowsp_axis_kind kind) const {
    return program_.axes[axis].name && program_.axes[axis].kind == static_cast<uint32_t>(kind);
}

// The index of the thing that a binding names: for a plan the index of its first axis. 0: not found.
uint32_t Bindings::find(const ptowsp_binding &b) const {
    const auto among = [&b](const auto *decls, uint32_t count, const auto &is_it) -> uint32_t {
        for (uint32_t i = 1; i < count && b.name; i++) {
            if (decls[i].name && strcmp(decls[i].name, b.name) == 0 && is_it(i)) {
                return i;
            }
        }
        return 0;
    };
    const auto any = [](uint32_t) { return true; };
    switch (b.kind) {
    case PTOWSP_BIND_SYMBOL: return among(program_.symbols, program_.symbol_count, any);
    case PTOWSP_BIND_TENSOR: return among(program_.tensors, program_.tensor_count, any);
    case PTOWSP_BIND_ARRAY:
    case PTOWSP_BIND_LENGTHS:
        return among(program_.arrays, program_.array_count,
                     [this](uint32_t i) { return !is_field(program_, i); });
    default:
        return among(program_.axes, program_.axis_count, [&](uint32_t i) {
            return b.kind == PTOWSP_BIND_SIZE  ? is_axis(i, PTOWSP_AXIS_DYNAMIC)
                   : b.kind == PTOWSP_BIND_CSR ? is_axis(i, PTOWSP_AXIS_SPARSE)
                                               : is_plan(i);
        });
    }
}

pwsp_array_info Bindings::array_info(uint32_t array) const {
    const wsp_array_decl &decl = program_.arrays[array];
    return {decl.name,
            static_cast<ptowsp_dtype>(decl.dtype),
            decl.is_lengths != 0,
            0,
            PTOWSP_PLAN_FLAGS,
            0,
            0};
}

// -- plans ----------------------------------------------------------------------------------------

// Axes of one plan have its name. A field belongs to an axis.
bool Bindings::is_of_plan(uint32_t axis, const char *plan) const {
    const wsp_axis_decl &decl = program_.axes[axis];
    return decl.name && decl.kind >= PTOWSP_AXIS_PLAN && strcmp(decl.name, plan) == 0;
}

ptowsp_status Bindings::bind_plan(const ptowsp_binding &b) {
    ptowsp_attention_plan plan = ptowsp_attention_plan();
    ptowsp_status status =
        b.kind == PTOWSP_BIND_PLAN
            ? pwsp_bind_check_plan(&failure, b.name,
                                   static_cast<const ptowsp_attention_plan *>(b.data), &plan)
            : pwsp_bind_check_work(&failure, b.name, static_cast<const ptowsp_work *>(b.data),
                                   b.count, &plan);
    for (uint32_t i = 1; i < program_.axis_count && status == PTOWSP_OK; i++) {
        if (program_.axes[i].is_used && is_of_plan(i, b.name)) {
            status = pwsp_plan_has_axis(&failure, b.name, &plan,
                                        static_cast<ptowsp_axis_kind>(program_.axes[i].kind));
        }
        for (uint32_t j = 0; j < program_.field_count && status == PTOWSP_OK; j++) {
            const wsp_field_decl &field = program_.fields[j];
            if (field.axis == i && program_.arrays[field.array].is_used && is_of_plan(i, b.name)) {
                status = pwsp_plan_has_field(&failure, b.name, &plan,
                                             static_cast<ptowsp_plan_field>(field.field));
            }
        }
    }
    if (status == PTOWSP_OK) {
        batches_[find(b)] = pwsp_plan_batch();
        enter(b.name, plan);
    }
    return status;
}

void Bindings::enter(const char *name, const ptowsp_attention_plan &plan) {
    enter_plan(program_, name, plan, sizes_.data(), arrays_.data());
    for (uint32_t i = 1; i < program_.axis_count; i++) {
        is_size_bound_[i] = is_size_bound_[i] || is_of_plan(i, name);
    }
}

// The AICPU makes the plan; until then it has 0 units.
ptowsp_status Bindings::bind_batch(const ptowsp_binding &b) {
    pwsp_plan_batch checked = pwsp_plan_batch();
    const ptowsp_status status =
        pwsp_bind_check_batch(&failure, b.name, static_cast<const ptowsp_attention_batch *>(b.data),
                              b.config, b.capacity, &checked);
    if (status == PTOWSP_OK) {
        enter(b.name, ptowsp_attention_plan());
        batches_[find(b)] = checked;
    }
    return status;
}

// -- all ------------------------------------------------------------------------------------------

ptowsp_status Bindings::bind_found(const ptowsp_binding &b, uint32_t i) {
    ptowsp_status status = PTOWSP_OK;
    switch (b.kind) {
    case PTOWSP_BIND_SIZE:
        status = pwsp_bind_check_size(&failure, b.name, static_cast<int64_t>(b.value));
        if (status == PTOWSP_OK) {
            sizes_[i] = static_cast<int64_t>(b.value);
            is_size_bound_[i] = 1;
        }
        return status;
    case PTOWSP_BIND_SYMBOL:
        symbols_[i] = b.value;
        is_symbol_bound_[i] = 1;
        return status;
    case PTOWSP_BIND_ARRAY:
    case PTOWSP_BIND_LENGTHS: {
        const pwsp_array_info info = array_info(i);
        return pwsp_bind_check_array(&failure, &info, b.kind == PTOWSP_BIND_LENGTHS, b.dtype,
                                     b.data, b.count, &arrays_[i]);
    }
    case PTOWSP_BIND_CSR:
        return pwsp_bind_check_csr(&failure, b.name, static_cast<const ptowsp_csr *>(b.data),
                                   &csrs_[i]);
    case PTOWSP_BIND_TENSOR: {
        const ptowsp_tensor_desc desc = desc_of(program_.tensors[i]);
        return program_.tensors[i].is_transient
                   ? pwsp_bind_fail_transient(&failure, b.name)
                   : pwsp_bind_check_tensor(
                         &failure, &desc, static_cast<const ptowsp_buffer *>(b.data), &tensors_[i]);
    }
    case PTOWSP_BIND_PLAN:
    case PTOWSP_BIND_WORK: return bind_plan(b);
    default: return bind_batch(b);
    }
}

ptowsp_status Bindings::bind(const ptowsp_binding &b) {
    static const char *const what[] = {
#define WSP_WHAT(kind, name_of) name_of,
        PTOWSP_BIND_KINDS(WSP_WHAT)
#undef WSP_WHAT
    };
    if (b.kind == PTOWSP_BIND_SLOT) {
        const ptowsp_status status = pwsp_bind_check_slot(&failure, b.slot, program_.slot_count);
        if (status == PTOWSP_OK) {
            initial_slots_[b.slot] = b.value;
        }
        return status;
    } else if (b.kind == PTOWSP_BIND_TRANSIENTS) {
        return bind_transients(b.block, b.count);
    } else if (static_cast<uint32_t>(b.kind) >= PTOWSP_BIND_KIND_COUNT || !*what[b.kind]) {
        return fail(PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                    "bind: a tree has no kind of binding %d", static_cast<int>(b.kind));
    }
    const uint32_t i = find(b);
    return i ? bind_found(b, i)
             : pwsp_bind_fail_name(&failure, program_.name, what[b.kind], b.name, "");
}

// -- before a run ---------------------------------------------------------------------------------

ptowsp_status Bindings::verify_sizes() {
    ptowsp_status status = PTOWSP_OK;
    for (uint32_t i = 1; i < program_.axis_count && status == PTOWSP_OK; i++) {
        const wsp_axis_decl &axis = program_.axes[i];
        if (axis.is_used) {
            status = pwsp_verify_axis(&failure, axis.name, static_cast<ptowsp_axis_kind>(axis.kind),
                                      is_size_bound_[i], &csrs_[i]);
        }
    }
    for (uint32_t i = 1; i < program_.symbol_count && status == PTOWSP_OK; i++) {
        if (program_.symbols[i].is_used) {
            status = pwsp_verify_symbol(&failure, program_.symbols[i].name, is_symbol_bound_[i]);
        }
    }
    return status;
}

ptowsp_status Bindings::verify_arrays() {
    ptowsp_status status = PTOWSP_OK;
    for (uint32_t i = 1; i < program_.array_count && status == PTOWSP_OK; i++) {
        if (program_.arrays[i].is_used) {
            const pwsp_array_info info = array_info(i);
            status = pwsp_verify_array(&failure, &info, &arrays_[i], nullptr);
        }
    }
    for (uint32_t i = 0; i < program_.field_count && status == PTOWSP_OK; i++) {
        const wsp_field_decl &field = program_.fields[i];
        const wsp_axis_decl &axis = program_.axes[field.axis];
        if (field.field == PTOWSP_PLAN_LANE && program_.arrays[field.array].is_used) {
            status = pwsp_verify_plan_lanes(&failure, axis.name,
                                            static_cast<ptowsp_axis_kind>(axis.kind),
                                            &arrays_[field.array]);
        }
    }
    return status;
}

// Things that the program does not use count as not bound.
ptowsp_status Bindings::verify_tensors() {
    ptowsp_status status = PTOWSP_OK;
    std::copy(tensors_.begin(), tensors_.end(), used_tensors_.begin());
    for (uint32_t i = 1; i < program_.tensor_count && status == PTOWSP_OK; i++) {
        if (program_.tensors[i].is_used) {
            status = pwsp_verify_tensor(&failure, program_.tensors[i].name, &used_tensors_[i]);
        } else {
            used_tensors_[i].is_bound = false;
        }
    }
    return status;
}

ptowsp_status Bindings::verify(uint32_t model) {
    slots_ = initial_slots_;
    table_.abi_version = WSP_ABI_VERSION;
    table_.model = model;
    table_.sizes = reinterpret_cast<uintptr_t>(sizes_.data());
    table_.symbols = reinterpret_cast<uintptr_t>(symbols_.data());
    table_.is_symbol_bound = reinterpret_cast<uintptr_t>(is_symbol_bound_.data());
    table_.arrays = reinterpret_cast<uintptr_t>(arrays_.data());
    table_.csrs = reinterpret_cast<uintptr_t>(csrs_.data());
    table_.tensors = reinterpret_cast<uintptr_t>(used_tensors_.data());
    table_.slots = reinterpret_cast<uintptr_t>(slots_.data());
    table_.batches = reinterpret_cast<uintptr_t>(batches_.data());
    ptowsp_status status = verify_sizes();
    status = status != PTOWSP_OK ? status : verify_arrays();
    status = status != PTOWSP_OK ? status : transients_.place(&failure, table_, tensors_.data());
    return status != PTOWSP_OK ? status : verify_tensors();
}

}  // namespace wsp

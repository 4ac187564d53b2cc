// Transient tensors of a run, placed by the rules of the library and with its errors.
//
// Sizes are expressions of the program, which expand.cpp evaluates; a plan that they read is made
// here, too, and again where the program is walked. The block is the host's. For a device it only
// gives addresses, which are translated like the addresses of other tensors, and is never touched.

#include "wsp_transients.h"

#include <stdlib.h>

#include <cinttypes>
#include <cstring>

namespace wsp {

ptowsp_tensor_desc desc_of(const wsp_tensor_decl &decl) {
    ptowsp_tensor_desc desc = ptowsp_tensor_desc();
    desc.name = decl.name;
    desc.dtype = static_cast<ptowsp_dtype>(decl.dtype);
    desc.rank = decl.rank;
    memcpy(desc.shape, decl.shape, sizeof desc.shape);
    return desc;
}

Transients::Transients(const wsp_program &program)
    : program_(program), placement_(), own_(nullptr, free) {
    const wsp_transients *declared = program.transients;
    for (uint32_t i = 0; declared && i < declared->count; i++) {
        pwsp_placed item = pwsp_placed();
        item.first_lifetime = static_cast<uint32_t>(lifetimes_.size());
        item.lifetime_count = declared->tensors[i].lifetime_count;
        items_.push_back(item);
        for (uint32_t k = 0; k < item.lifetime_count; k++) {
            const uint32_t *points = declared->lifetimes[item.first_lifetime + k];
            lifetimes_.push_back({points[0], points[1]});
        }
    }
}

ptowsp_status Transients::bind(Failure *failure, void *block, uint64_t size) {
    if (reinterpret_cast<uintptr_t>(block) % PTOWSP_TRANSIENT_ALIGN != 0) {
        return pwsp_transient_fail_align(failure);
    }
    block_ = static_cast<char *>(block);
    size_ = size;
    return PTOWSP_OK;
}

ptowsp_status Transients::find(Failure *failure, const wsp_bindings &bindings,
                               pwsp_bound_tensor *tensors) {
    FailureTarget none;
    const Plans plans(program_, bindings, none);
    if (!none.good()) {
        *failure = none.failure();
        return failure->status;
    }
    Run run(program_, bindings, none);
    Sizes sizes(run);
    program_.transients->sizes(run, sizes);
    uint64_t sum = 0;
    for (size_t i = 0; i < items_.size(); i++) {
        const uint32_t tensor = program_.transients->tensors[i].tensor;
        const ptowsp_tensor_desc desc = desc_of(program_.tensors[tensor]);
        if (i == sizes.all().size()) {
            const Failure &why = none.failure();
            return pwsp_transient_fail_size(failure, desc.name, why.status, why.index, why.text);
        }
        const ptowsp_status status = pwsp_transient_size(failure, &desc, sizes.all()[i].data(),
                                                         &tensors[tensor], &items_[i], &sum);
        if (status != PTOWSP_OK) {
            return status;
        }
    }
    const uint32_t count = static_cast<uint32_t>(items_.size());
    List<uint32_t> order(2 * items_.size());
    List<uint64_t> offsets(items_.size()), alive(program_.transients->point_count + size_t(1));
    placement_ = pwsp_placement_find(items_.data(), count, lifetimes_.data(),
                                     program_.transients->point_count, order.data(), offsets.data(),
                                     alive.data());
    return PTOWSP_OK;
}

// The block, with room for the peak; null with an error.
char *Transients::room(Failure *failure) {
    const uint64_t peak = placement_.peak;
    if ((block_ || size_) && size_ < peak) {
        pwsp_transient_fail_room(failure, items_.data(), static_cast<uint32_t>(items_.size()),
                                 lifetimes_.data(), &placement_,
                                 program_.transients->points[placement_.point], size_);
        return nullptr;
    }
    if (block_) {
        return block_;
    }
    if (!own_ || own_size_ < peak) {
        own_size_ = peak + PTOWSP_TRANSIENT_ALIGN;
        own_.reset(own_size_ <= SIZE_MAX ? static_cast<char *>(aligned_alloc(PTOWSP_TRANSIENT_ALIGN,
                                                                             size_t(own_size_)))
                                         : nullptr);
    }
    if (!own_) {
        pwsp_error_set(failure, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX,
                       "run: out of memory: transient tensors take %" PRIu64 " bytes", peak);
    }
    return own_.get();
}

ptowsp_status Transients::place(Failure *failure, const wsp_bindings &bindings,
                                pwsp_bound_tensor *tensors) {
    if (items_.empty()) {
        return PTOWSP_OK;
    }
    const ptowsp_status status = find(failure, bindings, tensors);
    char *block = status == PTOWSP_OK ? room(failure) : nullptr;
    if (!block) {
        return failure->status;
    }
    for (size_t i = 0; i < items_.size(); i++) {
        pwsp_bound_tensor &tensor = tensors[program_.transients->tensors[i].tensor];
        tensor.data = block + items_[i].offset;
        tensor.base = reinterpret_cast<uintptr_t>(tensor.data);
    }
    return PTOWSP_OK;
}

}  // namespace wsp

// The bindings of a program: each is checked as it is bound, and all of them before a run.

#ifndef WSP_BINDINGS_H
#define WSP_BINDINGS_H

#include "wsp_transients.h"
#include "wsp_list.h"

namespace wsp {

class Bindings {
  public:
    explicit Bindings(const wsp_program &program);

    // Binds the thing that a binding names, as ptowsp_run_bind does.
    ptowsp_status bind(const ptowsp_binding &binding);

    ptowsp_status bind_transients(void *block, uint64_t size) {
        return transients_.bind(&failure, block, size);
    }
    // Of the block, once verified.
    uint64_t transient_bytes() const {
        return transients_.peak();
    }
    // Are all needed things bound, and arrays well-formed? Then table() is for a run.
    ptowsp_status verify(uint32_t model);
    const wsp_bindings &table() const {
        return table_;
    }

    // The values at the end of the last run.
    uint64_t slot(uint32_t slot) const {
        return slot < slots_.size() ? slots_[slot] : 0;
    }

    // Keeps an error, and returns its status.
    ptowsp_status fail(ptowsp_status status, uint64_t index, const char *format, ...)
        __attribute__((format(printf, 4, 5)));
    Failure failure;  // the last

  private:
    uint32_t find(const ptowsp_binding &binding) const;
    bool is_plan(uint32_t axis) const {
        return program_.axes[axis].kind >= PTOWSP_AXIS_PLAN;
    }
    bool is_axis(uint32_t axis, ptowsp_axis_kind kind) const;
    pwsp_array_info array_info(uint32_t array) const;
    bool is_of_plan(uint32_t axis, const char *plan) const;
    ptowsp_status bind_plan(const ptowsp_binding &binding);
    ptowsp_status bind_batch(const ptowsp_binding &binding);
    ptowsp_status bind_found(const ptowsp_binding &binding, uint32_t index);
    void enter(const char *name, const ptowsp_attention_plan &plan);
    ptowsp_status verify_sizes();
    ptowsp_status verify_arrays();
    ptowsp_status verify_tensors();

    const wsp_program &program_;
    List<int64_t> sizes_;
    List<uint8_t> is_size_bound_, is_symbol_bound_;
    List<uint64_t> symbols_, initial_slots_, slots_;
    List<pwsp_array> arrays_;
    List<pwsp_bound_csr> csrs_;
    List<pwsp_plan_batch> batches_;  // by the first axis of a plan
    List<pwsp_bound_tensor> tensors_, used_tensors_;
    Transients transients_;
    wsp_bindings table_;
};

}  // namespace wsp

#endif

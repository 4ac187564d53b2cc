// The memory of transient tensors: sizes by the program's expressions, places by their lifetimes, and
// the block.

#ifndef WSP_TRANSIENTS_H
#define WSP_TRANSIENTS_H

#include <memory>

#include "wsp_expand.h"
#include "wsp_list.h"

namespace wsp {

class Transients {
  public:
    explicit Transients(const wsp_program &program);

    // The caller's block, or with NULL a limit: see wsp_runner_bind_transients.
    ptowsp_status bind(Failure *failure, void *block, uint64_t size);

    // The bytes of the block, once placed.
    uint64_t peak() const {
        return items_.empty() ? 0 : placement_.peak;
    }

    // Binds the program's transient tensors. All other bindings have been verified.
    ptowsp_status place(Failure *failure, const wsp_bindings &bindings, pwsp_bound_tensor *tensors);

  private:
    ptowsp_status find(Failure *failure, const wsp_bindings &bindings, pwsp_bound_tensor *tensors);
    char *room(Failure *failure);

    const wsp_program &program_;
    List<pwsp_lifetime> lifetimes_;
    List<pwsp_placed> items_;  // in the order of the program's table
    pwsp_placement placement_;
    char *block_ = nullptr;
    uint64_t size_ = 0;  // of the block, or a limit; 0: neither
    std::unique_ptr<char, void (*)(void *)> own_;
    uint64_t own_size_ = 0;
};

// A tensor as the checks of bindings see it.
ptowsp_tensor_desc desc_of(const wsp_tensor_decl &decl);

}  // namespace wsp

#endif

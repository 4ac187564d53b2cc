// Checks of a program's bindings: of each binding by itself when it is bound; of the contents of
// arrays before a run, because they belong to the caller and may change in between.
//
// Errors are as for ptowsp_run_bind_... and ptowsp_run_execute. After an error, the outputs of a
// function are untouched.

#ifndef PWSP_BINDING_CHECK_H
#define PWSP_BINDING_CHECK_H

#include "../base/error.h"
#include "../data/array.h"
#include "../data/placement.h"
#include "arrival.h"

// The error for a binding that does not exist: `what` is a kind, "tensor". name may be NULL, or any
// text. hint: "; it has x, y", or "".
PWSP_INTERNAL ptowsp_status pwsp_bind_fail_name(pwsp_error *error, const char *module,
                                                const char *what, const char *name,
                                                const char *hint);

PWSP_INTERNAL ptowsp_status pwsp_bind_check_size(pwsp_error *error, const char *axis, int64_t size);
PWSP_INTERNAL ptowsp_status pwsp_bind_check_slot(pwsp_error *error, uint32_t slot, uint32_t count);

// as_lengths: it is bound as the lengths of a ragged axis.
PWSP_INTERNAL ptowsp_status pwsp_bind_check_array(pwsp_error *error, const pwsp_array_info *info,
                                                  bool as_lengths, ptowsp_dtype dtype,
                                                  const void *data, uint64_t count,
                                                  pwsp_array *out_array);
PWSP_INTERNAL ptowsp_status pwsp_bind_check_csr(pwsp_error *error, const char *axis,
                                                const ptowsp_csr *csr, pwsp_bound_csr *out_csr);
PWSP_INTERNAL ptowsp_status pwsp_bind_check_tensor(pwsp_error *error,
                                                   const ptowsp_tensor_desc *tensor,
                                                   const ptowsp_buffer *buffer,
                                                   pwsp_bound_tensor *out_tensor);

// -- before a run ---------------------------------------------------------------------------------
//
// Everything that the program uses is bound and well-formed.

// An axis of any kind: is_bound is about its size or its plan, the csr about the rows of a sparse axis, whose
// entry_count is filled in.
PWSP_INTERNAL ptowsp_status pwsp_verify_axis(pwsp_error *error, const char *axis,
                                             ptowsp_axis_kind kind, bool is_bound,
                                             pwsp_bound_csr *csr);
PWSP_INTERNAL ptowsp_status pwsp_verify_symbol(pwsp_error *error, const char *symbol,
                                               bool is_bound);

// Stores the sum of lengths, of any other array nothing. out_sum may be NULL.
PWSP_INTERNAL ptowsp_status pwsp_verify_array(pwsp_error *error, const pwsp_array_info *info,
                                              const pwsp_array *array, int64_t *out_sum);

// It has data, or no elements.
PWSP_INTERNAL ptowsp_status pwsp_verify_tensor(pwsp_error *error, const char *name,
                                               const pwsp_bound_tensor *tensor);

// -- transient tensors ----------------------------------------------------------------------------

PWSP_INTERNAL ptowsp_status pwsp_bind_fail_transient(pwsp_error *error, const char *tensor);

// Binds a transient tensor of a shape without memory, stores its size in the block in its item,
// and adds that to *sum.
PWSP_INTERNAL ptowsp_status pwsp_transient_size(pwsp_error *error, const ptowsp_tensor_desc *desc,
                                                const int64_t shape[PTOWSP_TENSOR_RANK_MAX],
                                                pwsp_bound_tensor *out_tensor, pwsp_placed *item,
                                                uint64_t *sum);

// The error for a size that reads outside of an array, as `text` says.
PWSP_INTERNAL ptowsp_status pwsp_transient_fail_size(pwsp_error *error, const char *tensor,
                                                     ptowsp_status status, uint64_t index,
                                                     const char *text);

// The errors for a block that is not aligned, and for one that is too small: that names the place that needs
// most, and the largest items that live there.
PWSP_INTERNAL ptowsp_status pwsp_transient_fail_align(pwsp_error *error);
PWSP_INTERNAL ptowsp_status pwsp_transient_fail_room(pwsp_error *error, const pwsp_placed *items,
                                                     uint32_t count, const pwsp_lifetime *lifetimes,
                                                     const pwsp_placement *placement,
                                                     const char *place, uint64_t size);

#endif

// Layouts of tensors over ranks: shared by the rooms of layouts.

#ifndef PWSP_LAYOUT_H
#define PWSP_LAYOUT_H

#include "../base/context.h"

#define PWSP_LAYOUT_TEXT_MAX 240  // of a layout within an error; longer ones are cut off

// The same spread: kind, dimension, and pieces of the same sizes. `parts` is the size of the axis.
PWSP_INTERNAL bool pwsp_spread_is_same(const ptowsp_spread *a, const ptowsp_spread *b,
                                       int64_t dim_size, uint32_t parts);

// The piece of a rank, of a valid layout.
PWSP_INTERNAL ptowsp_mesh_layout_part pwsp_layout_part(const ptowsp_mesh *mesh,
                                                       const ptowsp_mesh_layout *layout,
                                                       uint32_t rank);

// A layout as text, of PWSP_LAYOUT_TEXT_MAX bytes, for errors.
PWSP_INTERNAL const char *pwsp_layout_text(const ptowsp_mesh *mesh,
                                           const ptowsp_mesh_layout *layout, char *out);

// Fails with "layouts: axis 'tp': <why>: <both layouts>".
PWSP_INTERNAL ptowsp_status pwsp_layout_fail_pair(ptowsp_context *context, const ptowsp_mesh *mesh,
                                                  const ptowsp_mesh_layout *a,
                                                  const ptowsp_mesh_layout *b, uint64_t axis,
                                                  const char *why);

#endif

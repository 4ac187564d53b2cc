// Finds stretches. Everything that a walk checks task by task is checked here over whole columns;
// on an error no stretch is formed, and walking task by task finds the culprit.

#include "stretch.h"

// False if the value has to be evaluated.
static bool pwsp_stretch_source(const pwsp_expander *x, const pwsp_loop *loop,
                                const pwsp_code *code, pwsp_source *out) {
    const bool is_variable = code->cell == loop->cell;
    const bool is_entry = loop->axis_kind == PWSP_AXIS_SPARSE && code->cell == loop->entry;
    out->step = 0;
    out->at = &x->cells[code->cell];
    if (code->begin != code->end && !(code->column && x->columns)) {
        return false;
    }
    if (x->columns && (code->begin != code->end || is_variable || is_entry)) {
        const uint32_t column = code->begin != code->end ? code->column : is_entry;
        out->at = pwsp_column_at(x->columns, column) + x->block_at + 1;
        out->step = 1;
    }
    return true;
}

// The largest distance of values from low. Those before it are large, too: sizes are below 2^63. Two at a
// time, as each maximum waits for the one before.
PWSP_FORCE_INLINE uint64_t pwsp_stretch_largest(const uint64_t *values, uint64_t count,
                                                uint64_t low) {
    uint64_t even = 0, odd = 0;
    if (count % 2) {
        even = *values++ - low;
    }
#pragma GCC unroll 4
    for (const uint64_t *end = values + count / 2 * 2; values != end; values += 2) {
        even = pwsp_max_u64(even, values[0] - low);
        odd = pwsp_max_u64(odd, values[1] - low);
    }
    return pwsp_max_u64(even, odd);
}

// The variable of a loop, and the entry of a sparse one, may be in its cell alone, which has the value of
// the present iteration: one of the two counts up.
static bool pwsp_stretch_counts_up(const pwsp_stretch *stretch, pwsp_source source) {
    return source.at == (stretch->indices ? stretch->entry : stretch->variable);
}

// Is every value in [low, low + size)?
static bool pwsp_stretch_is_within(const pwsp_stretch *stretch, pwsp_source source, uint64_t low,
                                   uint64_t size) {
    if (pwsp_stretch_counts_up(stretch, source)) {
        return stretch->first - low < size && stretch->first + stretch->count - 1 - low < size;
    }
    if (source.at == stretch->variable) {
        return false;
    }
    const uint64_t count = source.step ? stretch->count : 1;
    return (low ? pwsp_stretch_largest(source.at, count, low)
                : pwsp_stretch_largest(source.at, count, 0)) < size;
}

// A view whose tiles all lie within its tensor; false if that is not known.
static bool pwsp_stretch_begin_view(const pwsp_expander *x, const pwsp_stretch *stretch,
                                    pwsp_stretch_view *at) {
    const pwsp_tile_view *view = at->view;
    const pwsp_bound_tensor *tensor = at->tensor;
    const pwsp_code *codes[4] = {&view->row, &view->col, &view->row_count, &view->col_count};
    pwsp_source *const sources[4] = {&at->row, &at->col, &at->row_count, &at->col_count};
    const uint64_t lows[4] = {0, 0, 1, 1};
    const uint64_t sizes[4] = {(uint64_t)tensor->rows, (uint64_t)tensor->cols, INT64_MAX,
                               INT64_MAX};
    bool is_good = ((sizes[0] | sizes[1]) >> 32) == 0;
    for (uint32_t i = 0; is_good && i < view->lead; i++) {
        is_good = pwsp_stretch_source(x, stretch->loop, &view->index[i], &at->index[i]) &&
                  pwsp_stretch_is_within(stretch, at->index[i], 0, (uint64_t)tensor->lead_shape[i]);
    }
    for (uint32_t i = 0; is_good && i < 4; i++) {
        sources[i]->at = NULL;
        sources[i]->step = 0;
        is_good = codes[i]->expr
                      ? pwsp_stretch_source(x, stretch->loop, codes[i], sources[i]) &&
                            pwsp_stretch_is_within(stretch, *sources[i], lows[i], sizes[i])
                      : i >= 2 || sizes[i] > 0;
    }
    at->is_fixed = !view->row.expr && !view->col.expr && !view->has_limit;
    return is_good;
}

// Finds the arguments that change: axes, and scalars that limit valid sizes. False if one is not
// known.
static bool pwsp_stretch_begin_args(const pwsp_expander *x, pwsp_stretch *stretch) {
    const pwsp_task_op *task = x->task_op;
    const pwsp_code *codes = &x->program->codes.items[task->first_code];
    uint64_t *args = x->cells + x->program->first_arg;
    stretch->arg_count = 0;
    for (uint32_t i = 0; i < task->axis_count + task->scalar_count; i++) {
        pwsp_stretch_arg *arg = &stretch->args[stretch->arg_count];
        if (!pwsp_stretch_source(x, stretch->loop, &codes[i], &arg->from)) {
            return false;
        }
        arg->to = args + (i < task->axis_count ? i : i + 2 * task->view_count);
        stretch->arg_count +=
            arg->from.step || arg->from.at == stretch->variable || arg->from.at == stretch->entry;
    }
    return true;
}

PWSP_INTERNAL bool pwsp_stretch_begin(pwsp_expander *x, pwsp_stretch *stretch) {
    const pwsp_op *end = &x->ops[x->next_op];
    const pwsp_task_op *task = x->task_op;
    if (end->kind != PWSP_OP_LOOP_END || end->target + 1 != x->next_op) {
        return false;
    }
    const pwsp_frame *frame = &x->frames[x->frame_count - 1];
    const pwsp_loop *loop = &x->program->loops.items[end->at];
    const int64_t last = x->block ? x->block_end : frame->count;
    const bool has_columns = !loop->block || x->columns;  // without, something has to be evaluated
    if (pwsp_axis_is_work(loop->axis_kind) || last - 1 <= frame->i || !has_columns) {
        return false;
    }
    stretch->count = (uint64_t)(last - 1 - frame->i);
    stretch->first = frame->first + (uint64_t)frame->i + 1;
    stretch->loop = loop;
    stretch->indices = loop->axis_kind == PWSP_AXIS_SPARSE ? &x->csrs[loop->csr].indices : NULL;
    stretch->variable = &x->cells[loop->cell];
    stretch->entry = &x->cells[loop->entry];
    stretch->sizes = x->cells + x->program->first_arg + task->axis_count;
    stretch->view_count = task->view_count;
    stretch->is_fixed = true;
    bool is_good = pwsp_stretch_source(x, loop, &task->dispatch, &stretch->dispatch) &&
                   pwsp_stretch_source(x, loop, &task->priority, &stretch->priority) &&
                   pwsp_stretch_source(x, loop, &task->stream, &stretch->stream);
    is_good = is_good && pwsp_stretch_begin_args(x, stretch);
    const pwsp_tile_view *views = &x->program->views.items[task->first_view];
    for (uint32_t i = 0; is_good && i < task->view_count; i++) {
        stretch->views[i].view = &views[i];
        stretch->views[i].tensor = &x->tensors[views[i].tensor];
        is_good = pwsp_stretch_begin_view(x, stretch, &stretch->views[i]);
        stretch->is_fixed = stretch->is_fixed && stretch->views[i].is_fixed;
    }
    return is_good;
}

// The place and size of a view's tile. The variable is set.
static void pwsp_stretch_place(const pwsp_stretch_view *at, uint64_t i, pwsp_tile_at *tile) {
    int64_t values[4] = {0, 0, INT64_MAX, INT64_MAX};  // row, col, and at most so many of each
    const pwsp_source *const sources[4] = {&at->row, &at->col, &at->row_count, &at->col_count};
    for (uint32_t j = 0; j < 4; j++) {
        values[j] = sources[j]->at ? (int64_t)pwsp_source_value(*sources[j], i) : values[j];
    }
    const pwsp_view_size size = {at->view->rows, at->view->cols, values[2], values[3]};
    const bool is_inside = pwsp_view_tile(at->tensor, values[0], values[1], &size, tile);
    PTOWSP_ASSERT(is_inside);
    (void)is_inside;
}

// View by view, index by index: what stays or counts up first, then columns.
PWSP_INTERNAL void pwsp_stretch_tiles(const pwsp_expander *x, const pwsp_stretch *stretch,
                                      uint64_t begin, uint64_t count, pwsp_tile_at *out) {
    const uint32_t step = stretch->view_count;
    for (uint32_t v = 0; v < step; v++) {
        const pwsp_stretch_view *at = &stretch->views[v];
        pwsp_tile_at tile = x->tiles_at[v], *to, *const end = out + v + count * step;
        uint64_t up = 0, i = begin;
        tile.lead = 0;
        for (uint32_t j = 0; j < at->view->lead; j++) {
            const bool is_up = pwsp_stretch_counts_up(stretch, at->index[j]);
            const uint64_t value = is_up ? stretch->first + begin : *at->index[j].at;
            if (at->index[j].step == 0) {
                pwsp_view_lead(at->tensor, j, (int64_t)value, &tile.lead);
                up += is_up ? (uint64_t)at->tensor->lead_strides[j] : 0;
            }
        }
        for (to = out + v; to != end; to += step) {
            *to = tile;
            tile.lead = (int64_t)((uint64_t)tile.lead + up);
        }
        for (uint32_t j = 0; j < at->view->lead; j++) {
            const uint64_t *from = at->index[j].at + begin;
            for (to = out + v; at->index[j].step && to != end; to += step) {
                pwsp_view_lead(at->tensor, j, (int64_t)*from++, &to->lead);
            }
        }
        for (to = out + v; !at->is_fixed && to != end; to += step, i++) {
            pwsp_stretch_set(stretch, stretch->first + i);
            pwsp_stretch_place(at, i, to);
        }
    }
}

PWSP_INTERNAL void pwsp_stretch_end(pwsp_expander *x, const pwsp_stretch *stretch, uint64_t count) {
    PTOWSP_ASSERT(count <= stretch->count);
    (void)stretch;  // is asserted only
    x->frames[x->frame_count - 1].i += (int64_t)count;
    x->task_count += count;
}

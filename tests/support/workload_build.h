// Random programs as modules: the tree of workload_program.h, built through the public functions,
// and its bindings, bound to a run.

#ifndef PTOWSP_WORKLOAD_BUILD_H
#define PTOWSP_WORKLOAD_BUILD_H

#include "workload_program.h"

typedef struct ref_module {
    const ref_program *program;
    ptowsp_module *module;
    ptowsp_axis axes[REF_AXIS_MAX];
    ptowsp_tensor tensors[REF_TENSOR_MAX];
    ptowsp_kernel kernels[REF_KERNEL_MAX];
    ptowsp_expr variables[REF_STMT_MAX];  // of loops
    ptowsp_expr params[REF_WORKLOAD_MAX * REF_PARAM_MAX];
    ptowsp_node nodes[REF_STMT_MAX];  // of tasks
    ref_kernel_user users[REF_KERNEL_MAX];
    ref_watch watch;
} ref_module;

// Memory that is bound to runs: each tensor's, and arrays in their types.
typedef struct ref_memory {
    void *tensors[REF_TENSOR_MAX];
    uint64_t lengths[REF_AXIS_MAX][REF_ROW_MAX];
    uint64_t indptr[REF_AXIS_MAX][REF_ROW_MAX + 1];
    uint64_t indices[REF_AXIS_MAX][REF_ROW_MAX * REF_LENGTH_MAX];
    uint64_t arrays[REF_ARRAY_COUNT][REF_ARRAY_LENGTH];
} ref_memory;

// "t3"; the text stays.
static inline const char *ref_name(char letter, int number) {
    static char names[26][REF_STMT_MAX][6];
    char *name = names[letter - 'a'][number];
    snprintf(name, sizeof names[0][0], "%c%d", letter, number % 1000);
    return name;
}

static inline ptowsp_expr ref_no_expr(void) {
    ptowsp_expr none = {NULL, 0};
    return none;
}

// -- expressions ----------------------------------------------------------------------------------

static inline ptowsp_expr ref_build_expr(const ref_module *b, int number);

static inline ptowsp_expr ref_build_leaf(const ref_module *b, const ref_expr *e) {
    ptowsp_module *m = b->module;
    int n = (int)e->value;
    switch ((int)e->op) {
    case REF_LITERAL: return ptowsp_i64(m, (int64_t)e->value);
    case REF_VARIABLE: return b->variables[n];
    case REF_PARAM: return b->params[n];
    case REF_SYMBOL: return ptowsp_symbol(m, ref_name('s', n));
    case REF_ARRAY:
        return ptowsp_array_at(m, ref_name('y', n), b->program->array_dtypes[n],
                               ref_build_expr(b, e->a));
    case REF_LENGTHS:
        return ptowsp_array_at(m, ref_name('x', n), b->program->axes[n].dtype,
                               ref_build_expr(b, e->a));
    case REF_AXIS_SIZE: return ptowsp_axis_size(m, b->axes[n]);
    case REF_SLOT: return ptowsp_slot(m, (uint32_t)n, e->type);
    case REF_TASK_VARIABLE: return ptowsp_task_variable(m, "v0");
    case REF_TASK_ARG: return ptowsp_task_arg(m, (uint32_t)n);
    default: assert_int_equal(e->op, REF_TASK_TAG); return ptowsp_task_tag(m, ref_name('g', n));
    }
}

// The expression as one of the module; number 0 is none.
static inline ptowsp_expr ref_build_expr(const ref_module *b, int number) {
    const ref_expr *e = &b->program->exprs[number];
    switch ((int)e->op) {
    case REF_NONE: return ref_no_expr();
#define REF_BUILD_BINARY(name, function)                                                           \
    case REF_##name: return ptowsp_##function(ref_build_expr(b, e->a), ref_build_expr(b, e->b));
        REF_BINARY_OPS(REF_BUILD_BINARY)
#undef REF_BUILD_BINARY
#define REF_BUILD_UNARY(name, function)                                                            \
    case REF_##name: return ptowsp_##function(ref_build_expr(b, e->a));
        REF_UNARY_OPS(REF_BUILD_UNARY)
#undef REF_BUILD_UNARY
#define REF_BUILD_CAST(name, type)                                                                 \
    case REF_##name: return ptowsp_cast(ref_build_expr(b, e->a), PTOWSP_TYPE_##type);
        REF_CASTS(REF_BUILD_CAST)
#undef REF_BUILD_CAST
    case REF_SELECT:
        return ptowsp_select(ref_build_expr(b, e->a), ref_build_expr(b, e->b),
                             ref_build_expr(b, e->c));
    default: return ref_build_leaf(b, e);
    }
}

// -- declarations ---------------------------------------------------------------------------------

static inline void ref_build_axes(ref_module *b) {
    for (int i = 0; i < b->program->axis_count; i++) {
        const ref_axis *axis = &b->program->axes[i];
        const char *name = ref_name('x', i);
        switch (axis->kind) {
        case REF_DENSE: b->axes[i] = ptowsp_axis_dense(b->module, name, axis->size); break;
        case REF_DYNAMIC: b->axes[i] = ptowsp_axis_dynamic(b->module, name); break;
        case REF_RAGGED: b->axes[i] = ptowsp_axis_ragged(b->module, name); break;
        case REF_SPARSE: b->axes[i] = ptowsp_axis_sparse(b->module, name); break;
        }
    }
}

static inline void ref_build_tensors(ref_module *b) {
    for (int i = 0; i < b->program->tensor_count; i++) {
        const ref_tensor *tensor = &b->program->tensors[i];
        ptowsp_tensor_desc desc = {
            .name = ref_name('t', i), .dtype = tensor->dtype, .rank = tensor->rank};
        memcpy(desc.shape, tensor->shape, sizeof tensor->shape);
        b->tensors[i] = ptowsp_tensor_make(b->module, &desc);
    }
}

static inline void ref_build_kernels(ref_module *b) {
    static const char *const tile_names[] = {"a", "b", "c"};
    static const char *const scalar_names[] = {"first", "second"};
    for (int i = 0; i < b->program->kernel_count; i++) {
        const ref_kernel *kernel = &b->program->kernels[i];
        ptowsp_kernel_desc desc = {.name = ref_name('k', i), .axis_count = kernel->axis_count};
        for (uint32_t t = 0; t < kernel->tile_count; t++) {
            ptowsp_tile_param param = {tile_names[t], kernel->directions[t], PTOWSP_I32,
                                       kernel->rows[t], kernel->cols[t]};
            desc.tiles[t] = param;
        }
        for (uint32_t s = 0; s < kernel->scalar_count; s++) {
            ptowsp_scalar_param param = {scalar_names[s], kernel->scalar_types[s]};
            desc.scalars[s] = param;
        }
        desc.unit = kernel->unit;
        desc.fn = ref_kernel_run;
        desc.cost = kernel->cost == REF_COST_FUNCTION ? ref_kernel_cost : NULL;
        desc.cycles = kernel->cost == REF_COST_CONSTANT ? ref_cycles(kernel, NULL, 0) : 0;
        b->users[i].kernel = kernel;
        b->users[i].watch = &b->watch;
        desc.user = &b->users[i];
#ifdef REF_KERNEL_SOURCE  // for emitting, of tests that do
        REF_KERNEL_SOURCE(b->program, i, &desc);
#endif
        b->kernels[i] = ptowsp_kernel_make(b->module, &desc);
    }
}

// -- statements -----------------------------------------------------------------------------------

static inline ptowsp_view ref_build_view(const ref_module *b, const ref_view *view) {
    ptowsp_view built = {.tensor = b->tensors[view->tensor]};
    for (uint32_t d = 0; d + 2 < b->program->tensors[view->tensor].rank; d++) {
        built.index[d] = ref_build_expr(b, view->index[d]);
    }
    built.row = ref_build_expr(b, view->row);
    built.col = ref_build_expr(b, view->col);
    built.rows = view->rows;
    built.cols = view->cols;
    return built;
}

static inline ptowsp_node ref_build_task(const ref_module *b, const ref_stmt *stmt) {
    const ref_kernel *kernel = &b->program->kernels[stmt->kernel];
    ptowsp_task_desc desc = {.kernel = b->kernels[stmt->kernel]};
    for (uint32_t i = 0; i < kernel->axis_count; i++) {
        desc.axes[i] = ref_build_expr(b, stmt->axes[i]);
    }
    for (uint32_t i = 0; i < kernel->tile_count; i++) {
        desc.views[i] = ref_build_view(b, &stmt->views[i]);
    }
    for (uint32_t i = 0; i < kernel->scalar_count; i++) {
        desc.scalars[i] = ref_build_expr(b, stmt->scalars[i]);
    }
    int tag_count = 0;
    for (int i = 0; i < REF_TAG_COUNT; i++) {
        if (stmt->tags[i]) {
            ptowsp_tag tag = {ref_name('g', i), ref_build_expr(b, stmt->tags[i])};
            desc.tags[tag_count++] = tag;
        }
    }
    for (int i = 0; i < stmt->after_count; i++) {
        desc.after[i] = b->nodes[stmt->after[i]];
    }
    return ptowsp_task_make(b->module, &desc);
}

static inline void ref_build_body(ref_module *b, int scope);

static inline void ref_build_call(const ref_module *b, const ref_stmt *stmt) {
    ptowsp_expr args[REF_PARAM_MAX];
    int count = b->program->param_counts[stmt->callee];
    for (int i = 0; i < count; i++) {
        args[i] = ref_build_expr(b, stmt->args[i]);
    }
    ptowsp_call_make(b->module, ref_name('w', stmt->callee), args, (uint32_t)count);
}

static inline void ref_build_stmt(ref_module *b, int s) {
    const ref_stmt *stmt = &b->program->stmts[s];
    ptowsp_module *m = b->module;
    ptowsp_axis axis = b->axes[stmt->axis];
    const char *variable = ref_name('v', stmt->loop_depth);
    if (stmt->row) {
        axis = ptowsp_axis_row(m, axis, ref_build_expr(b, stmt->row));
    }
    switch (stmt->kind) {
    case REF_TASK: b->nodes[s] = ref_build_task(b, stmt); return;
    case REF_CALL: ref_build_call(b, stmt); return;
    case REF_SLOT_SET:
        ptowsp_slot_set_make(m, (uint32_t)stmt->slot, ref_build_expr(b, stmt->value));
        return;
    case REF_SLOT_LOAD: {
        ptowsp_view view = ref_build_view(b, &stmt->view);
        ptowsp_slot_load_make(m, (uint32_t)stmt->slot, &view, ref_build_expr(b, stmt->load_row),
                              ref_build_expr(b, stmt->load_col));
        return;
    }
    case REF_PARALLEL: b->variables[s] = ptowsp_parallel_begin(m, variable, axis); break;
    case REF_FOR_EACH: b->variables[s] = ptowsp_for_each_begin(m, variable, axis); break;
    case REF_SELECT_LOOP: b->variables[s] = ptowsp_select_begin(m, variable, axis); break;
    case REF_WHEN: ptowsp_when_begin(m, ref_build_expr(b, stmt->value)); break;
    case REF_OTHERWISE: ptowsp_otherwise_begin(m); break;
    case REF_COMBINE: ptowsp_combine_begin(m); break;
    default:
        assert_int_equal(stmt->kind, REF_SEQUENCE);
        ptowsp_sequence_begin(m);
        break;
    }
    ref_build_body(b, s);
    ptowsp_scope_end(m);
}

static inline void ref_build_body(ref_module *b, int scope) {
    for (int s = b->program->stmts[scope].first; s >= 0; s = b->program->stmts[s].next) {
        ref_build_stmt(b, s);
    }
}

static inline void ref_build_workload(ref_module *b, int w) {
    PTOWSP_WORKLOAD(b->module, ref_name('w', w)) {
        for (int i = 0; i < b->program->param_counts[w]; i++) {
            b->params[w * REF_PARAM_MAX + i] =
                ptowsp_workload_param(b->module, ref_name('p', i), b->program->param_types[w][i]);
        }
        ref_build_body(b, b->program->roots[w]);
    }
}

// Builds the module. The kernels keep pointers into *b: it must not move.
static inline void ref_module_build(ref_module *b, ptowsp_context *context,
                                    const ref_program *program) {
    memset(b, 0, sizeof *b);
    b->program = program;
    const ptowsp_module_desc desc = {"random", REF_SLOT_COUNT};
    assert_ok(ptowsp_module_create(context, &desc, &b->module));
    ref_build_axes(b);
    ref_build_tensors(b);
    ref_build_kernels(b);
    for (int i = 0; i < program->workload_count; i++) {
        ref_build_workload(b, program->main_is_last ? program->workload_count - 1 - i : i);
    }
    ptowsp_error error = ptowsp_module_error(b->module);
    if (error.status != PTOWSP_OK) {
        fail_msg("the module is refused: %s", error.text);
    }
}

static inline void ref_module_free(ref_module *b) {
    ptowsp_module_destroy(b->module);
    b->module = NULL;
}

// -- bindings -------------------------------------------------------------------------------------

// The low bytes of a value, in the order of the machine.
static inline const unsigned char *ref_low_bytes(const int64_t *value, size_t size) {
    const uint16_t one = 1;
    const bool is_little = *(const unsigned char *)&one == 1;
    return (const unsigned char *)value + (is_little ? 0 : sizeof *value - size);
}

// Values as an array of the type.
static inline void ref_pack(void *out, ptowsp_dtype dtype, const int64_t *values, int count) {
    size_t size = ref_dtype_size(dtype);
    for (int i = 0; i < count; i++) {
        memcpy((unsigned char *)out + (size_t)i * size, ref_low_bytes(&values[i], size), size);
    }
}

static inline void ref_memory_free(ref_memory *memory) {
    for (int t = 0; t < REF_TENSOR_MAX; t++) {
        free(memory->tensors[t]);
    }
    memset(memory, 0, sizeof *memory);
}

// Copies the bindings into typed memory of exactly the size that is needed.
static inline void ref_memory_make(ref_memory *memory, const ref_program *p,
                                   const ref_bindings *b) {
    memset(memory, 0, sizeof *memory);
    for (int t = 0; t < p->tensor_count; t++) {
        if (p->tensors[t].memory_of == t) {
            size_t size = (size_t)b->block_size[t] * ref_dtype_size(p->tensors[t].dtype);
            memory->tensors[t] = malloc(size);
            assert_non_null(memory->tensors[t]);
            ref_pack(memory->tensors[t], p->tensors[t].dtype, &b->cells[b->block[t]],
                     b->block_size[t]);
        }
    }
    for (int i = 0; i < p->axis_count; i++) {
        ptowsp_dtype dtype = p->axes[i].dtype;
        ref_pack(memory->lengths[i], dtype, b->lengths[i], p->axes[i].rows);
        ref_pack(memory->indptr[i], dtype, b->indptr[i], p->axes[i].rows + 1);
        ref_pack(memory->indices[i], dtype, b->indices[i], REF_ROW_MAX * REF_LENGTH_MAX);
    }
    for (int i = 0; i < REF_ARRAY_COUNT; i++) {
        ref_pack(memory->arrays[i], p->array_dtypes[i], b->arrays[i], REF_ARRAY_LENGTH);
    }
}

// What a program does not use is refused, and that is all right here: what is missing shows later.
static inline void ref_assert_bound(ptowsp_status status) {
    assert_true(status == PTOWSP_OK || status == PTOWSP_INVALID_PARAMS);
}

static inline void ref_bind_axis(ptowsp_run *run, const ref_program *p, const ref_bindings *b,
                                 const ref_memory *memory, int i) {
    const ref_axis *axis = &p->axes[i];
    const char *name = ref_name('x', i);
    uint64_t rows = (uint64_t)axis->rows;
    switch (axis->kind) {
    case REF_DENSE: break;
    case REF_DYNAMIC: ref_assert_bound(ptowsp_run_bind_size(run, name, b->sizes[i])); break;
    case REF_RAGGED:
        ref_assert_bound(ptowsp_run_bind_lengths(run, name, axis->dtype, memory->lengths[i], rows));
        break;
    case REF_SPARSE: {
        const ptowsp_csr csr = {axis->dtype, memory->indptr[i], memory->indices[i], rows,
                                (uint64_t)b->indptr[i][rows]};
        ref_assert_bound(ptowsp_run_bind_csr(run, name, &csr));
        break;
    }
    }
}

// Binds everything. Without data, tensors from which no slot is loaded have no memory.
static inline void ref_bind(ptowsp_run *run, const ref_program *p, const ref_bindings *b,
                            const ref_memory *memory, bool with_data) {
    for (int i = 0; i < p->axis_count; i++) {
        ref_bind_axis(run, p, b, memory, i);
    }
    for (int i = 0; i < REF_SYMBOL_COUNT; i++) {
        ref_assert_bound(ptowsp_run_bind_symbol(run, ref_name('s', i), b->symbols[i]));
    }
    for (int i = 0; i < REF_ARRAY_COUNT; i++) {
        ref_assert_bound(ptowsp_run_bind_array(run, ref_name('y', i), p->array_dtypes[i],
                                               memory->arrays[i], REF_ARRAY_LENGTH));
    }
    for (int i = 0; i < REF_SLOT_COUNT; i++) {
        assert_ok(ptowsp_run_bind_slot(run, (uint32_t)i, b->slots[i]));
    }
    for (int t = 0; t < p->tensor_count; t++) {
        const ref_tensor *tensor = &p->tensors[t];
        size_t size = ref_dtype_size(tensor->dtype);
        ptowsp_buffer buffer = {0};
        if (with_data || p->is_loaded[t]) {
            buffer.data = (unsigned char *)memory->tensors[tensor->memory_of] +
                          (size_t)(b->origin[t] - b->block[t]) * size;
        }
        if (tensor->layout != REF_REVERSED) {
            buffer.size = (uint64_t)b->block_size[t] * size;
        }
        buffer.rank = tensor->rank;
        memcpy(buffer.shape, b->shape[t], sizeof b->shape[t]);
        if (tensor->layout != REF_ROW_MAJOR) {
            memcpy(buffer.strides, b->strides[t], sizeof b->strides[t]);
        }
        ref_assert_bound(ptowsp_run_bind_tensor(run, ref_name('t', t), &buffer));
    }
}

#endif

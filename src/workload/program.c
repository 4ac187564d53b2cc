// Programs: checking and compiling a module, and the tables that a program owns.
//
// A program is a set of tables of its own: it copies the module's declarations (names, kernels,
// tensors, places in the tree), so that the module may be destroyed. Cells are laid out here,
// before anything is compiled: the place of a cell does not depend on the code.

#include "program.h"

#include "../base/atomic.h"
#include "../base/text.h"
#include "compile.h"
#include "read.h"
#include "../engine/policy.h"
#include "schedule.h"

#include <inttypes.h>

#define PWSP_ARG_MAX (PTOWSP_TASK_AXIS_MAX + 2 * PTOWSP_TASK_TILE_MAX + PTOWSP_TASK_SCALAR_MAX)

// -- tables of the program ------------------------------------------------------------------------

PWSP_INTERNAL const char *pwsp_compiler_text(pwsp_compiler *c, const char *text) {
    const char *copy = pwsp_arena_copy(&c->program->arena, text);
    if (!copy) {
        pwsp_module_no_memory(c->module);
    }
    return copy;
}

// Copies a table of the module as it is; its names are the program's own afterwards.
static bool pwsp_compiler_table(pwsp_compiler *c, void *items, uint64_t *count, uint64_t *capacity,
                                size_t item_size, const void *from, uint64_t from_count,
                                size_t name_offset) {
    if (!pwsp_memory_grow(&c->program->memory, items, capacity, from_count, item_size)) {
        return pwsp_module_no_memory(c->module);
    }
    *count = from_count;
    for (uint64_t i = 1; i < from_count; i++) {
        char *item = (char *)pwsp_array_items(items) + (size_t)i * item_size;
        memcpy(item, (const char *)from + (size_t)i * item_size, item_size);
        const char *name;
        memcpy(&name, item + name_offset, sizeof name);
        name = pwsp_compiler_text(c, name);
        if (!name) {
            return false;
        }
        memcpy(item + name_offset, &name, sizeof name);
    }
    return true;
}

#define PWSP_COMPILER_TABLE(c, table, type)                                                        \
    pwsp_compiler_table(c, PWSP_TABLE_PARTS((c)->program->table), (c)->module->table.items,        \
                        (c)->module->table.count, offsetof(type, name))

// The parameters of a kernel, which have names.
static bool pwsp_compiler_kernel_params(pwsp_compiler *c, pwsp_kernel_info *kernel) {
    pwsp_arena *arena = &c->program->arena;
    ptowsp_tile_param *tiles = PWSP_ARENA_ARRAY(arena, ptowsp_tile_param, kernel->tile_count);
    ptowsp_scalar_param *scalars =
        PWSP_ARENA_ARRAY(arena, ptowsp_scalar_param, kernel->scalar_count);
    if (!tiles || !scalars) {
        return pwsp_module_no_memory(c->module);
    }
    bool is_good = true;
    for (uint32_t i = 0; is_good && i < kernel->tile_count; i++) {
        tiles[i] = kernel->tiles[i];
        tiles[i].name = pwsp_compiler_text(c, kernel->tiles[i].name);
        is_good = tiles[i].name != NULL;
    }
    for (uint32_t i = 0; is_good && i < kernel->scalar_count; i++) {
        scalars[i] = kernel->scalars[i];
        scalars[i].name = pwsp_compiler_text(c, kernel->scalars[i].name);
        is_good = scalars[i].name != NULL;
    }
    kernel->tiles = tiles;
    kernel->scalars = scalars;
    return is_good;
}

// The source of a kernel; texts shared in the module are shared in the program.
static bool pwsp_compiler_kernel_source(pwsp_compiler *c, uint32_t id) {
    ptowsp_kernel_source *source = &c->program->kernels.items[id].source;
    const char *name = c->program->kernels.items[id].name;
    ptowsp_kernel_source from = *source;
    memset(source, 0, sizeof *source);
    const char *any = from.text ? from.text : from.file;
    const uint32_t first = c->program->kernels.items[id].sourced;
    if (any && first < id) {
        const ptowsp_kernel_source *copied = &c->program->kernels.items[first].source;
        any = copied->text ? copied->text : copied->file;
    } else if (any) {
        any = pwsp_compiler_text(c, any);
    }
    *(from.text ? &source->text : &source->file) = any;
    if (from.fn) {
        source->fn = strcmp(from.fn, name) == 0 ? name : pwsp_compiler_text(c, from.fn);
    }
    if (from.cost) {
        source->cost = pwsp_compiler_text(c, from.cost);
    }
    pwsp_kernel_info *kernel = &c->program->kernels.items[id];
    if (kernel->pto && !pwsp_pto_copy(&c->program->arena, kernel->pto, &kernel->pto)) {
        pwsp_module_no_memory(c->module);
    }
    return pwsp_module_is_good(c->module);
}

// Kernels point to their parameters and sources: those are copied, too.
static bool pwsp_compiler_kernels(pwsp_compiler *c) {
    ptowsp_program *p = c->program;
    for (uint32_t i = 1; i < p->kernels.count; i++) {
        pwsp_kernel_info *kernel = &p->kernels.items[i];
        kernel->body = NULL;
        kernel->rule = NULL;
        kernel->variants = NULL;  // its tasks have kernels of their own
        pwsp_tile_code_retain(kernel->code);
    }
    p->has_codes = true;
    for (uint32_t i = 1; i < p->kernels.count; i++) {
        pwsp_kernel_info *kernel = &p->kernels.items[i];
        if (!pwsp_compiler_kernel_params(c, kernel) || !pwsp_compiler_kernel_source(c, i)) {
            return false;
        }
    }
    return true;
}

static bool *pwsp_compiler_flags(pwsp_compiler *c, uint64_t count) {
    bool *flags = (bool *)pwsp_arena_alloc(&c->program->arena, (size_t)count + 1, 1);
    if (!flags) {
        pwsp_module_no_memory(c->module);
    }
    return flags;
}

static bool pwsp_compiler_names(pwsp_compiler *c) {
    const ptowsp_module *m = c->module;
    for (uint64_t i = 0; i < m->bindables.count; i++) {
        const pwsp_name *name = &m->bindables.items[i];
        const char *text = pwsp_compiler_text(c, name->text);
        if (!text) {
            return false;
        }
        if (!pwsp_names_add(&c->program->names, &c->program->memory, text, name->kind,
                            name->index)) {
            return pwsp_module_no_memory(c->module);
        }
    }
    return true;
}

// One place for each node of the module.
static bool pwsp_compiler_places(pwsp_compiler *c) {
    const ptowsp_module *m = c->module;
    ptowsp_program *p = c->program;
    for (uint32_t id = 0; id < (m->nodes.count ? m->nodes.count : 1); id++) {
        uint32_t index;
        pwsp_place *place = PWSP_ADD(c, places, &index);
        if (!place) {
            return false;
        }
        if (id == 0) {
            continue;
        }
        char step[PTOWSP_NAME_MAX + 32];
        ptowsp_output_buffer buffer = {step, sizeof step, 0};
        pwsp_module_print_step(m, id, ptowsp_output_to_buffer(&buffer));
        const pwsp_node *node = PWSP_NODE(m, id);
        place->parent = node->parent;
        place->step = pwsp_compiler_text(c, step);
        place->first_param = (uint32_t)p->params.count;
        place->param_count = node->param_count;
        if (node->variable) {
            place->variable = p->first_variable + node->variable;
            place->name = pwsp_compiler_text(c, PWSP_VARIABLE(m, node->variable)->name);
        }
        for (uint32_t i = 0; i < node->param_count; i++) {
            const pwsp_variable_info *variable = PWSP_VARIABLE(m, node->first_param + i);
            pwsp_param *param = PWSP_ADD(c, params, &index);
            if (!param) {
                return false;
            }
            param->name = pwsp_compiler_text(c, variable->name);
            param->type = variable->type;
            param->cell = p->first_variable + node->first_param + i;
        }
    }
    return pwsp_module_is_good(c->module);
}

// Room for one item, so that the table has an address even if it stays empty: a task without views
// points to where its first one would be.
#define PWSP_COMPILER_RESERVE(c, table)                                                            \
    PWSP_ROOM(&(c)->program->memory, (c)->program->table.items, (c)->program->table.capacity, 1)

static bool pwsp_compiler_tables(pwsp_compiler *c) {
    const ptowsp_module *m = c->module;
    ptowsp_program *p = c->program;
    if (!PWSP_COMPILER_RESERVE(c, codes) || !PWSP_COMPILER_RESERVE(c, views)) {
        return pwsp_module_no_memory(c->module);
    }
    if (!PWSP_COMPILER_TABLE(c, tensors, ptowsp_tensor_desc) ||
        !PWSP_COMPILER_TABLE(c, kernels, pwsp_kernel_info) ||
        !PWSP_COMPILER_TABLE(c, arrays, pwsp_array_info) ||
        !PWSP_COMPILER_TABLE(c, symbols, pwsp_symbol_info) ||
        !PWSP_COMPILER_TABLE(c, axes, pwsp_axis_info) ||
        !PWSP_COMPILER_TABLE(c, variables, pwsp_variable_info) || !pwsp_read_begin(c) ||
        !pwsp_compiler_kernels(c) || !pwsp_compiler_names(c)) {
        return false;
    }
    p->name = pwsp_compiler_text(c, m->name);
    p->tensor_is_loaded = pwsp_compiler_flags(c, m->tensors.count);
    p->tensor_is_written = pwsp_compiler_flags(c, m->tensors.count);
    p->tensor_is_used = pwsp_compiler_flags(c, m->tensors.count);
    p->tensor_is_transient = pwsp_compiler_flags(c, m->tensors.count);
    p->array_is_used = pwsp_compiler_flags(c, m->arrays.count);
    p->axis_is_used = pwsp_compiler_flags(c, m->axes.count);
    p->symbol_is_used = pwsp_compiler_flags(c, m->symbols.count);
    p->kernel_is_used = pwsp_compiler_flags(c, m->kernels.count);
    if (!pwsp_module_is_good(m)) {
        return false;
    }
    p->latency_symbol = m->latency_symbol;
    p->mesh_ranks = m->mesh ? m->mesh->rank_count : 0;
    p->slot_count = m->slot_count;
    p->first_slot = 1;
    p->first_arg = p->first_slot + p->slot_count;
    p->arg_count = PWSP_ARG_MAX;
    p->first_variable = p->first_arg + p->arg_count;
    p->first_entry = p->first_variable + (uint32_t)m->variables.count;
    p->first_symbol = p->first_entry + (uint32_t)m->variables.count;
    p->first_size = p->first_symbol + (uint32_t)m->symbols.count;
    p->first_temp = p->first_size + (uint32_t)m->axes.count;
    p->first_const = p->first_temp + PWSP_CODE_TEMP_MAX;
    return pwsp_compiler_places(c);
}

// -- programs -------------------------------------------------------------------------------------

// The workload to begin with; 0 with an error.
static uint32_t pwsp_compiler_entry(ptowsp_module *module, const char *name) {
    const pwsp_name *found = name ? pwsp_names_get(&module->workload_names, name) : NULL;
    uint32_t entry = !name ? module->workload : found ? found->index : 0;
    for (const ptowsp_body *body = module->bodies; body; body = body->next) {
        if (body->is_open) {
            return PWSP_MODULE_REFUSE(module, "kernel %s has not been ended", body->name);
        }
    }
    if (module->open) {
        return PWSP_MODULE_REFUSE(module,
                                  "this scope is still open; was it left by break or return?");
    }
    if (entry == 0) {
        return PWSP_MODULE_REFUSE(module, "there is no workload%s%s to begin with",
                                  pwsp_name_is_valid(name) ? " " : "",
                                  pwsp_name_is_valid(name) ? name : "");
    }
    if (PWSP_NODE(module, entry)->param_count) {
        return pwsp_module_fail_at(module, entry, PTOWSP_INVALID_PARAMS,
                                   "a program cannot begin with a workload that has parameters");
    }
    return entry;
}

// The pools of lanes, and each kernel's. False when memory is out.
static bool pwsp_compiler_pools(pwsp_compiler *c) {
    ptowsp_program *p = c->program;
    p->pool_count = pwsp_schedule_pools(&p->schedule, p->pools);
    p->lane_count = p->pools[p->pool_count].first;
    for (uint32_t i = 0; i <= p->pool_count; i++) {
        p->pools[i].name = pwsp_compiler_text(c, p->pools[i].name);
        if (!p->pools[i].name) {
            return false;
        }
    }
    for (uint32_t i = 1; i < p->kernels.count; i++) {
        pwsp_kernel_info *kernel = &p->kernels.items[i];
        kernel->pool = pwsp_schedule_pool(&p->schedule, p->pool_count, kernel);
    }
    return true;
}

// Keeps the schedule as text, with its keys as the user named things; then forgets the keys, as the
// module may be gone when the program is used.
static bool pwsp_compiler_schedule_text(pwsp_compiler *c) {
    ptowsp_schedule *schedule = &c->program->schedule;
    ptowsp_output_buffer length = {NULL, 0, 0};
    ptowsp_schedule_print(schedule, ptowsp_output_to_buffer(&length));
    char *copy = (char *)pwsp_arena_alloc(&c->program->arena, length.length + 1, 1);
    if (!copy) {
        return pwsp_module_no_memory(c->module);
    }
    ptowsp_output_buffer buffer = {copy, length.length + 1, 0};
    ptowsp_schedule_print(schedule, ptowsp_output_to_buffer(&buffer));
    c->program->schedule_text = copy;
    ptowsp_expr none = {NULL, 0};
    schedule->named_pools = NULL;
    schedule->pool_count = 0;
    schedule->dispatch_key = none;
    schedule->priority_key = none;
    c->program->has_streams = schedule->stream_key.id != 0;
    schedule->stream_key = none;
    return true;
}

static bool pwsp_compiler_run(pwsp_compiler *c, uint32_t entry) {
    ptowsp_program *p = c->program;
    if (!pwsp_check_workload(&c->checker, entry) || !pwsp_check_pipelines(&c->checker, entry) ||
        !pwsp_compiler_tables(c)) {
        return false;
    }
    p->schedule = pwsp_schedule_resolve(c->schedule);
    if (!pwsp_compiler_pools(c)) {
        return false;
    }
    p->is_priority_signed = ptowsp_expr_type(p->schedule.priority_key) == PTOWSP_TYPE_I64;
    const pwsp_reached *reached = &c->checker.reached.items[1];
    p->frame_depth = reached->frame_depth + 1;
    p->scope_depth = reached->scope_depth + 1;
    c->coder.exprs = &c->module->exprs;
    c->coder.leaf = pwsp_compiler_leaf;
    c->coder.user = c;
    c->coder.first_temp = p->first_temp;
    c->coder.first_const = p->first_const;
    if (!pwsp_compiler_scopes(c) || !pwsp_compiler_workloads(c)) {
        return false;
    }
    if (p->lane_count + p->has_link > PTOWSP_SCHEDULE_LANE_MAX) {
        pwsp_module_fail(c->module, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                         "schedule: %u lanes, and that of collectives; at most %d", p->lane_count,
                         PTOWSP_SCHEDULE_LANE_MAX);
        return false;
    }
    p->lane_count += p->has_link;
    p->pool_count += p->has_link;
    if (!pwsp_compiler_lifetimes(c) || !pwsp_compiler_schedule_text(c)) {
        return false;
    }
    p->cell_count = p->first_const + (uint32_t)c->coder.const_count;
    p->instructions.items = c->coder.code;  // moves to the program
    p->instructions.count = c->coder.code_count;
    p->instructions.capacity = c->coder.code_capacity;
    p->consts.items = c->coder.consts;
    p->consts.count = c->coder.const_count;
    p->consts.capacity = c->coder.const_capacity;
    c->coder.code = NULL;
    c->coder.code_capacity = 0;
    c->coder.consts = NULL;
    c->coder.const_capacity = 0;
    return pwsp_compiler_blocks(c);
}

ptowsp_status ptowsp_program_create(ptowsp_context *context, ptowsp_module *module,
                                    const ptowsp_program_desc *desc, ptowsp_program **out_program) {
    PTOWSP_ASSERT(context);
    if (!module || !out_program) {
        return PWSP_REFUSE(context, "program: module or out_program is NULL");
    }
    *out_program = NULL;
    uint32_t entry = 0;
    bool was_good = module->status == PTOWSP_OK;
    if (was_good) {
        ptowsp_status status =
            ptowsp_schedule_check(module, desc ? desc->schedule : NULL, PTOWSP_TARGET_CPU_SIM);
        if (status != PTOWSP_OK) {
            ptowsp_error error = ptowsp_context_error(module->context);
            return module->context == context
                       ? status
                       : pwsp_fail(context, error.status, error.index, "%s", error.text);
        }
        entry = pwsp_compiler_entry(module, desc ? desc->workload : NULL);
    }
    PWSP_ZERO(ptowsp_schedule, schedule);
    if (desc && desc->schedule) {
        schedule = *desc->schedule;
    }
    PWSP_ZERO(pwsp_compiler, compiler);
    ptowsp_program *program = NULL;
    if (entry) {
        PWSP_ALLOC(&context->memory, program, 1);
        if (!program) {
            return PWSP_NO_MEMORY(context, "program: out of memory");
        }
        program->context = context;
        pwsp_context_own(context);
        program->memory = pwsp_blocks_begin(&program->owned, &context->memory);
        program->self = program;
        pwsp_arena_init(&program->arena, &program->memory);
        compiler.module = module;
        compiler.program = program;
        compiler.schedule = &schedule;
        compiler.checker.module = module;
        compiler.coder.memory = &program->memory;
        bool is_good = pwsp_compiler_run(&compiler, entry);
        pwsp_coder_free(&compiler.coder);
        pwsp_checker_free(&compiler.checker);
        PWSP_TABLE_FREE(&program->memory, compiler.edges);
        PWSP_TABLE_FREE(&program->memory, compiler.edge_lists);
        PWSP_TABLE_FREE(&program->memory, compiler.firsts);
        PWSP_TABLE_FREE(&program->memory, compiler.expr_ids);
        if (is_good) {
            *out_program = program;
            return PTOWSP_OK;
        }
        ptowsp_program_destroy(program);
    }
    PTOWSP_ASSERT(module->status != PTOWSP_OK);
    ptowsp_status status = pwsp_fail(context, module->status, module->index, "%s", module->text);
    if (was_good) {
        module->status = PTOWSP_OK;  // the module is as it was, and may be compiled differently
        module->index = PTOWSP_NO_INDEX;
        module->text[0] = '\0';
    }
    return status;
}

void ptowsp_program_destroy(ptowsp_program *program) {
    if (!program) {
        return;
    }
    PTOWSP_ASSERT(pwsp_load_relaxed(&program->runs) == 0 && "a program destroyed before its runs");
    pwsp_context_disown(program->context);
    for (uint32_t i = 1; program->has_codes && i < program->kernels.count; i++) {
        pwsp_tile_code_release(program->kernels.items[i].code);
    }
    const pwsp_memory memory = program->owned.under;
    pwsp_blocks_free(&program->owned);
    PWSP_FREE(&memory, program, 1);
}

size_t ptowsp_program_size(const ptowsp_program *program) {
    PTOWSP_ASSERT(program);
    size_t size = sizeof(ptowsp_program) + program->owned.bytes;
    for (uint32_t i = 1; i < program->kernels.count; i++) {
        // Shared with the module, while it lives.
        size += pwsp_tile_code_size(program->kernels.items[i].code);
    }
    return size;
}

// -- places ---------------------------------------------------------------------------------------

// The variables around a place, outermost first: "b = 3, h = 1".
static void pwsp_print_variables(const ptowsp_program *program, const uint32_t *path,
                                 uint32_t count, const uint64_t *cells, ptowsp_output text) {
    uint32_t shown = 0;
    for (uint32_t i = count; i > 0; i--) {
        const pwsp_place *place = PWSP_PLACE_AT(program, path[i - 1]);
        for (uint32_t j = 0; j < place->param_count; j++) {
            const pwsp_param *param = &program->params.items[place->first_param + j];
            const uint64_t value = cells[param->cell];
            pwsp_text_format(text, "%s%s = ", shown++ ? ", " : "", param->name);
            if (param->type == PTOWSP_TYPE_BOOL) {
                pwsp_text_format(text, "%s", value ? "true" : "false");
            } else if (param->type == PTOWSP_TYPE_U64) {
                pwsp_text_format(text, "%" PRIu64, value);
            } else {
                pwsp_text_format(text, "%" PRId64, (int64_t)value);
            }
        }
        if (place->variable && i > 1) {  // the loop is around, not the place itself
            pwsp_text_format(text, "%s%s = %" PRId64, shown++ ? ", " : "", place->name,
                             (int64_t)cells[place->variable]);
        }
    }
}

static void pwsp_program_print_step_of(const void *program, uint32_t place, ptowsp_output text) {
    pwsp_text_put(text, PWSP_PLACE_AT((const ptowsp_program *)program, place)->step);
}

PWSP_INTERNAL void pwsp_program_print_place(const ptowsp_program *program, uint32_t node,
                                            const uint64_t *cells, ptowsp_output text) {
    uint32_t path[PTOWSP_MODULE_NEST_MAX + 2] = {0};
    uint32_t count = 0;
    for (uint32_t at = node; at; at = PWSP_PLACE_AT(program, at)->parent) {
        path[count++] = at;
    }
    pwsp_print_path(program, pwsp_program_print_step_of, path, count, text);
    if (cells) {
        char variables[PWSP_VARIABLES_TEXT_MAX + 1];
        ptowsp_output_buffer buffer = {variables, sizeof variables, 0};
        pwsp_print_variables(program, path, count, cells, ptowsp_output_to_buffer(&buffer));
        pwsp_text_format(text, "%s%s%s%s", buffer.length ? " (" : "", variables,
                         buffer.length < sizeof variables ? "" : "...", buffer.length ? ")" : "");
    }
}

void ptowsp_program_print_place(const ptowsp_program *program, uint32_t node,
                                ptowsp_output output) {
    PTOWSP_ASSERT(program);
    if (node < program->places.count) {
        pwsp_program_print_place(program, node, NULL, output);
    }
}

void ptowsp_program_print_point(const ptowsp_program *program, uint32_t point,
                                ptowsp_output output) {
    PTOWSP_ASSERT(program);
    PTOWSP_ASSERT(point < program->points.count);
    pwsp_program_print_place(program, program->points.items[point], NULL, output);
}

PWSP_INTERNAL const char *pwsp_program_title(const ptowsp_program *program) {
    uint32_t root = 0;
    if (strcmp(program->name, PWSP_MODULE_UNNAMED) != 0 || program->ops.count == 0) {
        return program->name;
    }
    for (uint32_t at = PWSP_OP_AT(program, 0)->node; at; at = PWSP_PLACE_AT(program, at)->parent) {
        root = at;
    }
    return root ? PWSP_PLACE_AT(program, root)->step : program->name;
}

// -- what time sees -------------------------------------------------------------------------------

static void pwsp_program_print_node(const void *user, uint32_t node, ptowsp_output text) {
    pwsp_program_print_place((const ptowsp_program *)user, node, NULL, text);
}

PWSP_INTERNAL pwsp_timed pwsp_program_timed(const ptowsp_program *program) {
    PWSP_ZERO(pwsp_timed, timed);
    timed.schedule = program->schedule;
    timed.is_priority_signed = program->is_priority_signed;
    timed.has_streams = program->has_streams;
    timed.pools = program->pools;
    timed.pool_count = program->pool_count;
    timed.lane_count = program->lane_count;
    timed.has_link = program->has_link;
    timed.scope_depth = program->scope_depth;
    timed.pipeline_count = (uint32_t)program->pipelines.count;
    timed.tensor_count = (uint32_t)program->tensors.count;
    timed.edge_count = program->edge_count;
    timed.tensor_is_loaded = program->tensor_is_loaded;
    timed.tensor_is_written = program->tensor_is_written;
    timed.tensor_scopes = program->tensor_scopes;
    timed.print_place = pwsp_program_print_node;
    timed.user = program;
    return timed;
}

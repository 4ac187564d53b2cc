// Compiling pipelines: the ops of the processes follow the pipeline's op, one process after
// another. The target of the pipeline's op follows them all, so the walk of the program skips them;
// each process walks its own.
//
//      pipeline double_buffer             0  pipeline -> 9
//        process load                     1    loop i in tiles -> 4
//          for_each i in tiles            2      send loaded
//            send loaded                  3    loop end -> 2
//                                         4    end of process load
//        process compute                  5    consume t -> 8
//          consume t                      6      task compute
//            task compute                 7      jump -> 5
//                                         8    end of process compute
//
// In time a process is sequential whatever it contains, so its ops begin and end no scopes. Nor do
// they have edges: the order of the ops implies them.

#include "build.h"
#include "compile.h"

// -- as a task among its surroundings ------------------------------------------------------------

// The tensor accesses of a pipeline's tasks and slot loads, and the slots that it sets; `seen` is
// by reached workload.
typedef struct pwsp_footprint {
    uint8_t *tensors;  // by tensor: 1 read, 2 written, 4 a slot is loaded
    uint8_t *seen;
    uint8_t *slots;
    size_t size;
} pwsp_footprint;

// Of all nodes in one, and in the workloads that they call (without cycles, 64 deep at most).
static void pwsp_footprint_add(const pwsp_compiler *c, pwsp_footprint *footprint, uint32_t top) {
    const ptowsp_module *m = c->module;
    for (uint32_t i = top + 1; i < m->nodes.count && PWSP_NODE(m, i)->parent >= top; i++) {
        const pwsp_node *node = PWSP_NODE(m, i);
        if (node->kind == PWSP_NODE_SLOT_SET || node->kind == PWSP_NODE_SLOT_LOAD) {
            footprint->slots[node->slot] = 1;
        }
        if (node->kind == PWSP_NODE_TASK) {
            const pwsp_kernel_info *kernel = PWSP_KERNEL(m, node->task->kernel);
            for (uint32_t j = 0; j < kernel->tile_count; j++) {
                ptowsp_direction direction = kernel->tiles[j].direction;
                footprint->tensors[node->task->views[j].tensor] |=
                    (uint8_t)((direction != PTOWSP_OUT ? 1 : 0) | (direction != PTOWSP_IN ? 2 : 0));
            }
        } else if (node->kind == PWSP_NODE_SLOT_LOAD) {
            footprint->tensors[node->view->tensor] |= 1 | 4;
        } else if (node->kind == PWSP_NODE_CALL) {
            uint32_t callee = pwsp_names_find(&m->workload_names, node->call->name)->index;
            uint8_t *seen = &footprint->seen[pwsp_checker_find(&c->checker, callee)];
            if (!*seen) {
                *seen = 1;
                pwsp_footprint_add(c, footprint, callee);
            }
        }
    }
}

// Adds a cell to the program's list of private ones; false with an error.
static bool pwsp_compiler_private(pwsp_compiler *c, uint32_t cell) {
    uint32_t index;
    return PWSP_ADD_ITEM(c, privates, &index, cell);
}

// The views of a pipeline, one of each tensor, and its slots; false with an error.
static bool pwsp_compiler_footprint(pwsp_compiler *c, uint32_t id, pwsp_pipeline_op *pipeline) {
    pwsp_task_op *task = &pipeline->task;
    const pwsp_memory *memory = &c->program->memory;
    pwsp_footprint footprint;
    footprint.size = (size_t)c->module->tensors.count + (size_t)c->checker.reached.count + 1 +
                     c->module->slot_count;
    if (!PWSP_ALLOC(memory, footprint.tensors, footprint.size)) {
        return pwsp_module_no_memory(c->module);
    }
    footprint.seen = footprint.tensors + c->module->tensors.count;
    footprint.slots = footprint.seen + c->checker.reached.count + 1;
    pwsp_footprint_add(c, &footprint, id);
    task->first_view = (uint32_t)c->program->views.count;
    for (uint32_t i = 1; pwsp_module_is_good(c->module) && i < c->module->tensors.count; i++) {
        uint32_t index;
        pwsp_tile_view *view = footprint.tensors[i] ? PWSP_ADD(c, views, &index) : NULL;
        if (view) {
            view->tensor = i;
            view->access = footprint.tensors[i];
            task->view_count++;
        }
    }
    pipeline->first_slot = (uint32_t)c->program->privates.count;
    for (uint32_t i = 0; pwsp_module_is_good(c->module) && i < c->module->slot_count; i++) {
        if (footprint.slots[i] && pwsp_compiler_private(c, c->program->first_slot + i)) {
            pipeline->slot_count++;
        }
    }
    PWSP_FREE(memory, footprint.tensors, footprint.size);
    return pwsp_module_is_good(c->module);
}

// -- private cells --------------------------------------------------------------------------------

// The variables of a node; false with an error.
static bool pwsp_compiler_private_node(pwsp_compiler *c, uint32_t id) {
    const pwsp_node *node = PWSP_NODE(c->module, id);
    bool is_good = true;
    for (uint32_t i = 0; is_good && i < node->param_count; i++) {
        is_good = pwsp_compiler_private(c, c->program->first_variable + node->first_param + i);
    }
    if (node->variable) {
        is_good = is_good && pwsp_compiler_private(c, c->program->first_variable + node->variable);
    }
    if (node->variable && node->axis &&
        PWSP_AXIS(c->module, node->axis)->kind == PWSP_AXIS_SPARSE) {
        is_good = is_good && pwsp_compiler_private(c, c->program->first_entry + node->variable);
    }
    return is_good;
}

// The variables in a node, or only in the workloads that it calls; `seen` is by reached workload.
// False with an error.
static bool pwsp_compiler_private_nodes(pwsp_compiler *c, uint32_t top, bool has_own,
                                        uint8_t *seen) {
    const ptowsp_module *m = c->module;
    bool is_good = !has_own || pwsp_compiler_private_node(c, top);
    for (uint32_t i = top + 1; is_good && i < m->nodes.count && PWSP_NODE(m, i)->parent >= top;
         i++) {
        const pwsp_node *node = PWSP_NODE(m, i);
        is_good = !has_own || pwsp_compiler_private_node(c, i);
        if (is_good && node->kind == PWSP_NODE_CALL) {
            uint32_t callee = pwsp_names_find(&m->workload_names, node->call->name)->index;
            uint8_t *is_seen = &seen[pwsp_checker_find(&c->checker, callee)];
            is_good =
                *is_seen || (*is_seen = 1, pwsp_compiler_private_nodes(c, callee, true, seen));
        }
    }
    return is_good;
}

// Lists the private cells of a process: those that each replica needs for itself, or that the
// process would share with others. The receives from `first_receive` on are its own. Returns false
// with an error.
static bool pwsp_compiler_privates(pwsp_compiler *c, uint32_t id, const pwsp_pipeline_op *pipeline,
                                   uint32_t first_receive, pwsp_process_op *process) {
    ptowsp_program *p = c->program;
    size_t size = (size_t)c->checker.reached.count + 1;
    uint8_t *seen = (uint8_t *)pwsp_memory_alloc(&p->memory, size);
    if (!seen) {
        return pwsp_module_no_memory(c->module);
    }
    process->first_private = (uint32_t)p->privates.count;
    bool is_good = pwsp_compiler_private_nodes(c, id, process->index != 0, seen);
    pwsp_memory_free(&p->memory, seen, size);
    for (uint32_t i = 0; is_good && i < pipeline->slot_count; i++) {
        is_good = pwsp_compiler_private(c, p->privates.items[pipeline->first_slot + i]);
    }
    process->private_count = (uint32_t)p->privates.count - process->first_private;
    // Receives of replicas alone are private, in the order of their nodes.
    const size_t last_receive = is_good && process->index != 0 ? p->receives.count : 0;
    for (uint32_t i = first_receive, j = 0; i < last_receive; i++) {
        pwsp_receive_op *receive = &p->receives.items[i];
        const uint32_t *cells = &p->privates.items[process->first_private];
        while (!receive->is_wait && cells[j] != receive->cell) {
            j++;
            PTOWSP_ASSERT(j < process->private_count);
        }
        receive->place = receive->is_wait ? 0 : j + 1;
    }
    return is_good;
}

// -- pipelines and processes ----------------------------------------------------------------------

static bool pwsp_compiler_channels(pwsp_compiler *c, uint32_t id, pwsp_pipeline_op *pipeline) {
    const ptowsp_module *m = c->module;
    pipeline->first_channel = (uint32_t)c->program->channels.count;
    uint32_t first = PWSP_NODE(m, id)->channel;
    for (uint32_t i = first; i && i < m->channels.count && PWSP_CHANNEL(m, i)->pipeline == id;
         i++) {
        const pwsp_channel_info *info = PWSP_CHANNEL(m, i);
        PWSP_ZERO(pwsp_channel_op, made);
        made.name = pwsp_compiler_text(c, info->name);
        made.depth = info->depth;
        made.latency = info->latency;
        made.is_event = info->is_event;
        made.has_depth = info->depth_expr != 0;
        made.has_latency = info->latency_expr != 0;
        uint32_t index;
        if (!made.name || !pwsp_compiler_code(c, info->depth_expr, &made.depth_code) ||
            !pwsp_compiler_code(c, info->latency_expr, &made.latency_code) ||
            !PWSP_ADD_ITEM(c, channels, &index, made)) {
            return false;
        }
        pipeline->channel_count++;
    }
    c->module_first_channel = first;
    c->first_channel = pipeline->first_channel;
    return true;
}

static uint32_t pwsp_compiler_channel(const pwsp_compiler *c, uint32_t channel) {
    return c->first_channel + (channel - c->module_first_channel);
}

static bool pwsp_compiler_ports(pwsp_compiler *c, uint32_t id, pwsp_process_op *process) {
    process->first_port = (uint32_t)c->program->ports.count;
    for (uint32_t at = PWSP_NODE(c->module, id)->first_port; at;
         at = PWSP_PORT(c->module, at)->next) {
        const pwsp_port_info *info = PWSP_PORT(c->module, at);
        uint32_t index;
        pwsp_port *port = PWSP_ADD(c, ports, &index);
        if (!port) {
            return false;
        }
        port->channel = pwsp_compiler_channel(c, info->channel);
        port->is_produced = info->is_produced;
        PWSP_PORT(c->module, at)->place = index;
        process->port_count++;
    }
    return true;
}

// How many replicas a process has; false with an error.
static bool pwsp_compiler_replicas(pwsp_compiler *c, uint32_t id, pwsp_process_op *process) {
    const pwsp_node *node = PWSP_NODE(c->module, id);
    uint64_t count = 1;  // of a dynamic axis at least
    if (node->axis) {
        const pwsp_axis_info *axis = PWSP_AXIS(c->module, node->axis);
        process->axis = axis->declared;
        process->size = c->program->first_size + axis->declared;
        process->index = c->program->first_variable + node->variable;
        c->program->axis_is_used[axis->declared] = true;
        count = axis->kind == PWSP_AXIS_DENSE ? (uint64_t)axis->size : 1;
    }
    bool is_known = !node->axis || PWSP_AXIS(c->module, node->axis)->kind == PWSP_AXIS_DENSE;
    if (is_known && !pwsp_coder_const(&c->coder, count, &process->size)) {
        return pwsp_module_no_memory(c->module);
    }
    if (count > PTOWSP_PROCESS_MAX - c->replica_count) {
        return pwsp_module_fail_at(c->module, id, PTOWSP_LIMIT_EXCEEDED,
                                   "more than %d processes in the program, each replica counted",
                                   PTOWSP_PROCESS_MAX);
    }
    c->replica_count += count;
    return true;
}

static bool pwsp_compiler_process(pwsp_compiler *c, uint32_t id, const pwsp_pipeline_op *pipeline) {
    PWSP_ZERO(pwsp_process_op, made);
    made.name = pwsp_compiler_text(c, PWSP_NODE(c->module, id)->name);
    made.node = id;
    made.first_op = pwsp_compiler_here(c);
    uint32_t index;
    if (!made.name || !pwsp_compiler_replicas(c, id, &made) || !pwsp_compiler_ports(c, id, &made)) {
        return false;
    }
    pwsp_process_op *process = PWSP_ADD(c, processes, &index);
    if (!process) {
        return false;
    }
    ptowsp_statement statement = pwsp_statement(PTOWSP_STATEMENT_PROCESS, id);
    statement.name = made.name;
    statement.variable = PWSP_NODE(c->module, id)->variable;
    statement.axis = made.axis;
    statement.first = made.first_port;
    statement.count = made.port_count;
    uint32_t begin, first_receive = (uint32_t)c->program->receives.count;
    if (!PWSP_ADD_ITEM(c, statements, &begin, statement) || !pwsp_compiler_children(c, id, false) ||
        !pwsp_compiler_op(c, PWSP_OP_PROCESS_END, index, 0, id) || !pwsp_compiler_end(c, begin) ||
        !pwsp_compiler_privates(c, id, pipeline, first_receive, &made)) {
        return false;
    }
    c->program->processes.items[index] = made;
    return true;
}

// Room for one item, so that the tables have an address even if they stay empty.
static bool pwsp_compiler_pipeline_reserve(pwsp_compiler *c) {
    ptowsp_program *p = c->program;
    if (!PWSP_GROW(&p->memory, p->channels.items, p->channels.capacity, 1) ||
        !PWSP_GROW(&p->memory, p->ports.items, p->ports.capacity, 1) ||
        !PWSP_GROW(&p->memory, p->privates.items, p->privates.capacity, 1)) {
        return pwsp_module_no_memory(c->module);
    }
    return true;
}

PWSP_INTERNAL bool pwsp_compiler_pipeline(pwsp_compiler *c, uint32_t id) {
    PWSP_ZERO(pwsp_pipeline_op, made);
    made.name = pwsp_compiler_text(c, PWSP_NODE(c->module, id)->name);
    made.first_process = (uint32_t)c->program->processes.count;
    uint32_t index, begin, op = pwsp_compiler_here(c);
    if (!made.name || !pwsp_compiler_pipeline_reserve(c) || !pwsp_compiler_channels(c, id, &made) ||
        !pwsp_compiler_footprint(c, id, &made)) {
        return false;
    }
    if (c->edges.count &&
        (!pwsp_compiler_edges(c, id, PWSP_EDGE_TARGET, &made.task.first_in, &made.task.in_count) ||
         !pwsp_compiler_edges(c, id, PWSP_EDGE_SOURCE, &made.task.first_out,
                              &made.task.out_count))) {
        return false;
    }
    ptowsp_statement statement = pwsp_statement(PTOWSP_STATEMENT_PIPELINE, id);
    statement.name = made.name;
    statement.task = (uint32_t)c->program->pipelines.count;  // after all tasks
    statement.first = made.first_channel;
    statement.count = made.channel_count;
    if (!PWSP_ADD_OP(c, pipelines, &index, made, PWSP_OP_PIPELINE, 0, id) ||
        !PWSP_ADD_ITEM(c, statements, &begin, statement)) {
        return false;
    }
    c->is_in_process = true;
    for (uint32_t at = PWSP_NODE(c->module, id)->first; at; at = PWSP_NODE(c->module, at)->next) {
        if (!pwsp_compiler_process(c, at, &made)) {
            return false;
        }
    }
    c->is_in_process = false;  // processes contain no pipelines
    c->program->pipelines.items[index].process_count =
        (uint32_t)c->program->processes.count - made.first_process;
    pwsp_compiler_land(c, op);
    return pwsp_compiler_end(c, begin);
}

// -- statements of processes ----------------------------------------------------------------------

// The port, in the program's list, of a send, close or record.
static uint32_t pwsp_compiler_port(const pwsp_compiler *c, uint32_t id) {
    return PWSP_PORT(c->module, PWSP_NODE(c->module, id)->first_port)->place;
}

PWSP_INTERNAL bool pwsp_compiler_receive(pwsp_compiler *c, uint32_t id) {
    const pwsp_node *node = PWSP_NODE(c->module, id);
    bool is_wait = node->kind == PWSP_NODE_WAIT, is_loop = node->kind == PWSP_NODE_CONSUME;
    PWSP_ZERO(pwsp_receive_op, made);
    made.channel = pwsp_compiler_channel(c, node->channel);
    made.cell = is_wait ? c->program->first_temp : c->program->first_variable + node->variable;
    made.is_loop = is_loop;
    made.is_wait = is_wait;
    ptowsp_statement statement = pwsp_statement(is_wait   ? PTOWSP_STATEMENT_WAIT
                                                : is_loop ? PTOWSP_STATEMENT_CONSUME
                                                          : PTOWSP_STATEMENT_RECEIVE,
                                                id);
    statement.channel = made.channel;
    statement.variable = node->variable;
    uint32_t index, begin, op = pwsp_compiler_here(c);
    if (!PWSP_ADD_OP(c, receives, &index, made, PWSP_OP_RECEIVE, 0, id) ||
        !PWSP_ADD_ITEM(c, statements, &begin, statement) || !pwsp_compiler_children(c, id, false) ||
        (is_loop && !pwsp_compiler_op(c, PWSP_OP_JUMP, 0, op, id))) {
        return false;
    }
    pwsp_compiler_land(c, op);
    return is_wait || pwsp_compiler_end(c, begin);
}

PWSP_INTERNAL bool pwsp_compiler_send(pwsp_compiler *c, uint32_t id) {
    const pwsp_node *node = PWSP_NODE(c->module, id);
    PWSP_ZERO(pwsp_send_op, made);
    made.channel = pwsp_compiler_channel(c, node->channel);
    made.port = pwsp_compiler_port(c, id);
    if (!pwsp_compiler_code(c, node->expr, &made.token)) {
        return false;
    }
    ptowsp_statement statement = pwsp_statement(
        node->kind == PWSP_NODE_RECORD ? PTOWSP_STATEMENT_RECORD : PTOWSP_STATEMENT_SEND, id);
    statement.channel = made.channel;
    statement.value = made.token.expr;
    uint32_t index;
    return PWSP_ADD_OP(c, sends, &index, made, PWSP_OP_SEND, 0, id) &&
           PWSP_ADD_ITEM(c, statements, &index, statement);
}

PWSP_INTERNAL bool pwsp_compiler_close(pwsp_compiler *c, uint32_t id) {
    const uint32_t port = pwsp_compiler_port(c, id);
    ptowsp_statement statement = pwsp_statement(PTOWSP_STATEMENT_CLOSE, id);
    statement.channel = c->program->ports.items[port].channel;
    c->program->ports.items[port].is_closed_early = true;
    uint32_t index;
    return pwsp_compiler_op(c, PWSP_OP_CLOSE, port, 0, id) &&
           PWSP_ADD_ITEM(c, statements, &index, statement);
}

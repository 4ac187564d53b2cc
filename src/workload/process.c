// Building pipelines: channels, the processes that declare their use of them, and their statements.
//
//      pipeline double_buffer        channels stand in a table of the module, one pipeline's
//        channel loaded              one after another; the uses of a process are a list
//        process load                of ports that hangs on its node.
//          produces loaded
//          send loaded

#include "build.h"

#include "../base/text.h"

#include <inttypes.h>

// -- pipelines and processes ----------------------------------------------------------------------

// Every module with a pipeline has the symbol that overrides latencies.
static bool pwsp_pipeline_symbol(ptowsp_module *module) {
    if (module->latency_symbol == 0) {
        ptowsp_symbol(module, PTOWSP_CHANNEL_LATENCY_SYMBOL);
        const pwsp_name *found = pwsp_module_is_good(module)
                                     ? pwsp_module_find(module, PTOWSP_CHANNEL_LATENCY_SYMBOL)
                                     : NULL;
        module->latency_symbol = found ? found->index : 0;
    }
    return pwsp_module_is_good(module);
}

ptowsp_node ptowsp_pipeline_begin(ptowsp_module *module, const char *name, const ptowsp_node *after,
                                  uint32_t after_count) {
    ptowsp_node node = {0};
    const char *copy = pwsp_module_name(module, "pipeline", name);
    if (!copy) {
        return node;
    }
    uint32_t process = pwsp_node_process(module, module->open);
    if (module->open == 0) {
        PWSP_MODULE_REFUSE(module, "pipeline %s: a statement outside any workload", copy);
    } else if (process) {
        PWSP_MODULE_REFUSE(module, "pipeline %s: it cannot stand in process %s", copy,
                           PWSP_NODE(module, process)->name);
    } else if (after_count > PTOWSP_TASK_AFTER_MAX || (after_count > 0 && !after)) {
        PWSP_MODULE_REFUSE(module, "pipeline %s: after %u nodes%s", copy, after_count,
                           after ? ", which are too many" : ", which are NULL");
    }
    PWSP_ZERO(pwsp_task_info, info);
    info.after_count = after_count;
    if (pwsp_module_is_good(module)) {
        info.after = pwsp_nodes_after(module, after, &info.after_count);
    }
    const pwsp_task_info *task = PWSP_MODULE_COPY(module, pwsp_task_info, &info, 1);
    uint32_t id = pwsp_pipeline_symbol(module) ? pwsp_node_add(module, PWSP_NODE_PIPELINE) : 0;
    if (id == 0) {
        return node;
    }
    pwsp_names_free(&module->channel_names, &module->memory);
    pwsp_names_free(&module->process_names, &module->memory);
    PWSP_NODE(module, id)->name = copy;
    PWSP_NODE(module, id)->task = task;
    for (uint32_t i = 0; i < info.after_count; i++) {
        PWSP_NODE(module, info.after[i])->is_waited_for = true;
    }
    pwsp_scope_open(module, id);
    node.id = pwsp_module_is_good(module) ? id : 0;
    return node;
}

// Takes a name that must be new in the open pipeline; false with an error. `what` is the kind of
// this name, such as "process"; `other` a kind that may share it.
static bool pwsp_pipeline_name(ptowsp_module *module, pwsp_names *names, const char *what,
                               const char *name, const char *other) {
    const pwsp_name *found = pwsp_names_find(names, name);
    if (found) {
        return PWSP_MODULE_REFUSE(module, "%s %s: the pipeline has %s %s", what, name, other,
                                  strcmp(found->text, name) == 0 ? "of this name already"
                                                                 : "whose name has the same hash");
    }
    // the index of the next addition
    uint32_t index = (uint32_t)module->channels.count;
    if (!pwsp_names_add(names, &module->memory, name, 0, index ? index : 1)) {
        return pwsp_module_no_memory(module);
    }
    return true;
}

// Adds a process whose name must be new in the open pipeline; 0 with an error.
static uint32_t pwsp_process_add(ptowsp_module *module, const char *name) {
    if (module->open == 0 || PWSP_NODE(module, module->open)->kind != PWSP_NODE_PIPELINE) {
        return PWSP_MODULE_REFUSE(module, "process %s: processes stand directly in a pipeline",
                                  name);
    }
    if (!pwsp_pipeline_name(module, &module->process_names, "process", name, "a process")) {
        return 0;
    }
    uint32_t id = pwsp_node_add(module, PWSP_NODE_PROCESS);
    if (id) {
        PWSP_NODE(module, id)->name = name;
        module->last_ports[0] = module->last_ports[1] = 0;
    }
    return id;
}

void ptowsp_process_begin(ptowsp_module *module, const char *name) {
    const char *copy = pwsp_module_name(module, "process", name);
    if (copy) {
        pwsp_scope_open(module, pwsp_process_add(module, copy));
    }
}

ptowsp_expr ptowsp_replicate_begin(ptowsp_module *module, const char *variable, ptowsp_axis axis,
                                   const char *name) {
    ptowsp_expr none = {module, 0};
    const char *process = pwsp_module_name(module, "process", name);
    const char *copy = pwsp_module_name(module, "variable", variable);
    if (!copy) {
        return none;
    }
    if (axis.id == 0 || axis.id >= module->axes.count) {
        PWSP_MODULE_REFUSE(module, "process %s: there is no axis %u", process, axis.id);
        return none;
    }
    const pwsp_axis_info *info = PWSP_AXIS(module, axis.id);
    if (info->kind != PWSP_AXIS_DENSE && info->kind != PWSP_AXIS_DYNAMIC &&
        info->kind != PWSP_AXIS_PLAN_LANES) {
        PWSP_MODULE_REFUSE(module,
                           "process %s: axis %s is %s; replicas are of a dense or dynamic one, or "
                           "of the lanes of a plan",
                           process, info->name,
                           info->kind == PWSP_AXIS_RAGGED   ? "ragged"
                           : info->kind == PWSP_AXIS_SPARSE ? "sparse"
                                                            : "of a plan");
    } else if (info->kind == PWSP_AXIS_DENSE && info->size == 0) {
        PWSP_MODULE_REFUSE(module,
                           "process %s: the size of axis %s is 0; there is at least one replica",
                           process, info->name);
    } else if (pwsp_variable_is_taken(module, copy)) {
        PWSP_MODULE_REFUSE(module, "process %s: a scope around has a variable %s already", process,
                           copy);
    }
    uint32_t id = pwsp_module_is_good(module) ? pwsp_process_add(module, process) : 0;
    if (id) {
        PWSP_NODE(module, id)->axis = axis.id;
    }
    return pwsp_scope_open_variable(module, id, copy);
}

// -- channels -------------------------------------------------------------------------------------

// The pipeline that a channel may be added to; 0 with an error.
static uint32_t pwsp_channel_pipeline(ptowsp_module *module, const char *what, const char *name) {
    const pwsp_node *pipeline = module->open ? PWSP_NODE(module, module->open) : NULL;
    if (!pipeline || pipeline->kind != PWSP_NODE_PIPELINE) {
        return PWSP_MODULE_REFUSE(module, "%s %s: channels and events stand directly in a pipeline",
                                  what, name);
    }
    if (pipeline->first) {
        return PWSP_MODULE_REFUSE(
            module,
            "%s %s: it comes after process %s; channels and events come first in a pipeline", what,
            name, PWSP_NODE(module, pipeline->first)->name);
    }
    const pwsp_name *found = pwsp_names_find(&module->channel_names, name);
    bool is_event = found && PWSP_CHANNEL(module, found->index)->is_event;
    if (!pwsp_pipeline_name(module, &module->channel_names, what, name,
                            is_event ? "an event" : "a channel")) {
        return 0;
    }
    return module->open;
}

// The depth or latency of a channel at its start: an expression, or 0 if none is given. Returns
// false with an error.
static bool pwsp_channel_expr(ptowsp_module *module, const char *name, const char *what,
                              ptowsp_expr expr, uint32_t *out_id) {
    char text[PTOWSP_NAME_MAX + 48];
    pwsp_text_into(text, sizeof text, "channel %s: its %s at start", name, what);
    return pwsp_module_use_given(module, expr, PTOWSP_TYPE_U64, text, out_id);
}

static ptowsp_channel pwsp_channel_add(ptowsp_module *module, const pwsp_channel_info *info) {
    ptowsp_channel channel = {0};
    channel.id = PWSP_MODULE_ADD(module, module->channels);
    if (channel.id) {
        pwsp_node *pipeline = PWSP_NODE(module, info->pipeline);
        pipeline->channel = pipeline->channel ? pipeline->channel : channel.id;
        *PWSP_CHANNEL(module, channel.id) = *info;
    }
    return channel;
}

ptowsp_channel ptowsp_channel_make(ptowsp_module *module, const ptowsp_channel_desc *desc) {
    ptowsp_channel none = {0};
    if (!pwsp_module_takes(module, desc, "channel")) {
        return none;
    }
    PWSP_ZERO(pwsp_channel_info, info);
    info.name = pwsp_module_name(module, "channel", desc->name);
    info.pipeline = info.name ? pwsp_channel_pipeline(module, "channel", info.name) : 0;
    if (info.pipeline == 0) {
        return none;
    }
    info.depth = desc->depth;
    info.latency = desc->latency;
    if (desc->depth > PTOWSP_CHANNEL_DEPTH_MAX) {
        pwsp_module_fail(module, PTOWSP_LIMIT_EXCEEDED, desc->depth,
                         "channel %s: depth %u is more than %d", info.name, desc->depth,
                         PTOWSP_CHANNEL_DEPTH_MAX);
    } else if (desc->latency > PTOWSP_CYCLES_MAX) {
        pwsp_module_fail(module, PTOWSP_INVALID_PARAMS, pwsp_error_index((int64_t)desc->latency),
                         "channel %s: latency %" PRId64, info.name, (int64_t)desc->latency);
    } else if (pwsp_channel_expr(module, info.name, "depth", desc->depth_at_start,
                                 &info.depth_expr) &&
               pwsp_channel_expr(module, info.name, "latency", desc->latency_at_start,
                                 &info.latency_expr)) {
        return pwsp_channel_add(module, &info);
    }
    return none;
}

ptowsp_channel ptowsp_event_make(ptowsp_module *module, const char *name) {
    ptowsp_channel none = {0};
    PWSP_ZERO(pwsp_channel_info, info);
    info.name = pwsp_module_name(module, "event", name);
    info.pipeline = info.name ? pwsp_channel_pipeline(module, "event", info.name) : 0;
    info.is_event = true;
    return info.pipeline ? pwsp_channel_add(module, &info) : none;
}

// The channel of an id, which must be of the process' pipeline; NULL with an error.
static const pwsp_channel_info *pwsp_channel_find(ptowsp_module *module, const char *what,
                                                  ptowsp_channel channel, uint32_t process) {
    if (channel.id == 0 || channel.id >= module->channels.count) {
        PWSP_MODULE_REFUSE(module, "%s: there is no channel %u", what, channel.id);
        return NULL;
    }
    const pwsp_channel_info *info = PWSP_CHANNEL(module, channel.id);
    if (info->pipeline != PWSP_NODE(module, process)->parent) {
        PWSP_MODULE_REFUSE(module, "%s: %s %s is of another pipeline, %s", what,
                           info->is_event ? "event" : "channel", info->name,
                           PWSP_NODE(module, info->pipeline)->name);
        return NULL;
    }
    return info;
}

// -- ports ----------------------------------------------------------------------------------------

static bool pwsp_port_is_of(const ptowsp_module *module, uint32_t port, uint32_t process) {
    return port && PWSP_PORT(module, port)->process == process;
}

static void pwsp_port_declare(ptowsp_module *module, const char *what, ptowsp_channel channel,
                              bool is_produced) {
    if (!pwsp_module_is_good(module)) {
        return;
    }
    uint32_t process = module->open;
    if (process == 0 || PWSP_NODE(module, process)->kind != PWSP_NODE_PROCESS) {
        PWSP_MODULE_REFUSE(module, "%s: not directly in a process", what);
        return;
    }
    const pwsp_channel_info *info = pwsp_channel_find(module, what, channel, process);
    if (!info) {
        return;
    }
    const char *kind = info->is_event ? "event" : "channel";
    if (PWSP_NODE(module, process)->first) {
        PWSP_MODULE_REFUSE(module,
                           "%s: %s %s is declared after a statement; what a process consumes and "
                           "produces comes first",
                           what, kind, info->name);
        return;
    }
    if (pwsp_port_is_of(module, info->ports[is_produced], process)) {
        PWSP_MODULE_REFUSE(module, "%s: %s %s is declared twice", what, kind, info->name);
        return;
    }
    uint32_t id = PWSP_MODULE_ADD(module, module->ports);
    if (id) {
        // Consumed channels come first, in the order of the calls: texts rely on it, and channels
        // of a program are numbered in this order.
        const uint32_t last = module->last_ports[is_produced] ? module->last_ports[is_produced]
                              : is_produced                   ? module->last_ports[0]
                                                              : 0;
        uint32_t *link =
            last ? &PWSP_PORT(module, last)->next : &PWSP_NODE(module, process)->first_port;
        pwsp_port_info port = {process, channel.id, is_produced, *link, 0};
        *PWSP_PORT(module, id) = port;
        *link = id;
        module->last_ports[is_produced] = id;
        PWSP_CHANNEL(module, channel.id)->ports[is_produced] = id;
    }
}

void ptowsp_consumes(ptowsp_module *module, ptowsp_channel channel) {
    pwsp_port_declare(module, "consumes", channel, false);
}

void ptowsp_produces(ptowsp_module *module, ptowsp_channel channel) {
    pwsp_port_declare(module, "produces", channel, true);
}

// The kind of channel that an operation of a process works on.
typedef enum pwsp_port_use { PWSP_USE_ANY, PWSP_USE_CHANNEL, PWSP_USE_EVENT } pwsp_port_use;

// Has the process of the open scope a channel to produce (consume), of this kind? Else fails.
static bool pwsp_port_check(ptowsp_module *module, const char *what, ptowsp_channel channel,
                            bool is_produced, pwsp_port_use use) {
    if (!pwsp_module_is_good(module)) {
        return false;
    }
    uint32_t process = pwsp_node_process(module, module->open);
    if (process == 0) {
        return PWSP_MODULE_REFUSE(module, "%s: not in a process", what);
    }
    const pwsp_channel_info *info = pwsp_channel_find(module, what, channel, process);
    if (!info) {
        return false;
    }
    if (use != PWSP_USE_ANY && info->is_event != (use == PWSP_USE_EVENT)) {
        PWSP_MODULE_REFUSE(module,
                           info->is_event ? "%s: %s is an event; record it, or wait for it"
                                          : "%s: %s is no event; send to it, or receive from it",
                           what, info->name);
        return false;
    }
    bool is_declared = pwsp_port_is_of(module, info->ports[is_produced], process);
    if (!is_declared) {
        PWSP_MODULE_REFUSE(module, "%s: %s %s is not one that process %s %s; call %s first", what,
                           info->is_event ? "event" : "channel", info->name,
                           PWSP_NODE(module, process)->name, is_produced ? "produces" : "consumes",
                           is_produced ? "ptowsp_produces" : "ptowsp_consumes");
    }
    return is_declared;
}

// -- statements of processes ----------------------------------------------------------------------

static ptowsp_expr pwsp_receive_begin(ptowsp_module *module, pwsp_node_kind kind,
                                      const char *variable, ptowsp_channel channel) {
    ptowsp_expr none = {module, 0};
    const char *name = pwsp_module_name(module, "variable", variable);
    if (!name) {
        return none;
    }
    char what[PTOWSP_NAME_MAX + 16];
    pwsp_text_into(what, sizeof what, "%s %s", kind == PWSP_NODE_CONSUME ? "consume" : "receive",
                   name);
    if (!pwsp_port_check(module, what, channel, false, PWSP_USE_CHANNEL)) {
        return none;
    }
    if (pwsp_variable_is_taken(module, name)) {
        PWSP_MODULE_REFUSE(module, "%s: a scope around has a variable of this name", what);
        return none;
    }
    uint32_t id = pwsp_node_add(module, kind);
    if (id) {
        PWSP_NODE(module, id)->channel = channel.id;
    }
    return pwsp_scope_open_variable(module, id, name);
}

ptowsp_expr ptowsp_consume_begin(ptowsp_module *module, const char *variable,
                                 ptowsp_channel channel) {
    return pwsp_receive_begin(module, PWSP_NODE_CONSUME, variable, channel);
}

ptowsp_expr ptowsp_receive_begin(ptowsp_module *module, const char *variable,
                                 ptowsp_channel channel) {
    return pwsp_receive_begin(module, PWSP_NODE_RECEIVE, variable, channel);
}

static void pwsp_channel_node(ptowsp_module *module, pwsp_node_kind kind, ptowsp_channel channel,
                              uint32_t expr) {
    uint32_t id = pwsp_node_add(module, kind);
    if (id) {
        PWSP_NODE(module, id)->channel = channel.id;
        PWSP_NODE(module, id)->first_port =
            PWSP_CHANNEL(module, channel.id)->ports[kind != PWSP_NODE_WAIT];
        PWSP_NODE(module, id)->expr = expr;
    }
}

void ptowsp_send_make(ptowsp_module *module, ptowsp_channel channel, ptowsp_expr token) {
    if (!pwsp_port_check(module, "send", channel, true, PWSP_USE_CHANNEL)) {
        return;
    }
    uint32_t expr = pwsp_module_use(module, token, PTOWSP_TYPE_NONE, "the token of a send");
    if (expr) {
        pwsp_channel_node(module, PWSP_NODE_SEND, channel, expr);
    }
}

ptowsp_node ptowsp_send_task_make(ptowsp_module *module, ptowsp_channel channel,
                                  const ptowsp_task_desc *desc) {
    ptowsp_node none = {0};
    if (!pwsp_port_check(module, "send_task", channel, true, PWSP_USE_CHANNEL)) {
        return none;
    }
    ptowsp_node node = ptowsp_task_make(module, desc);
    if (node.id == 0) {
        return none;
    }
    const pwsp_task_info *task = PWSP_NODE(module, node.id)->task;
    const pwsp_kernel_info *kernel = PWSP_KERNEL(module, task->kernel);
    if (kernel->axis_count == 0) {
        PWSP_MODULE_REFUSE(module,
                           "send_task: kernel %s has no axis argument that would be the token; "
                           "make the task, then send another",
                           kernel->name);
        return none;
    }
    pwsp_channel_node(module, PWSP_NODE_SEND, channel, task->axes[0]);
    return pwsp_module_is_good(module) ? node : none;
}

void ptowsp_close_make(ptowsp_module *module, ptowsp_channel channel) {
    if (pwsp_port_check(module, "close", channel, true, PWSP_USE_ANY)) {
        pwsp_channel_node(module, PWSP_NODE_CLOSE, channel, 0);
    }
}

void ptowsp_record_make(ptowsp_module *module, ptowsp_channel event) {
    if (pwsp_port_check(module, "record", event, true, PWSP_USE_EVENT)) {
        pwsp_channel_node(module, PWSP_NODE_RECORD, event, 0);
    }
}

void ptowsp_wait_make(ptowsp_module *module, ptowsp_channel event) {
    if (pwsp_port_check(module, "wait", event, false, PWSP_USE_EVENT)) {
        pwsp_channel_node(module, PWSP_NODE_WAIT, event, 0);
    }
}

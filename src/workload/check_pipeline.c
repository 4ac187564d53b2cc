// Checks of the structure of pipelines: a channel without a sender, or without a receiver, makes a
// process wait for ever. It also finds the workloads that run outside processes, because only those
// need scopes, edges and keys.

#include "build.h"
#include "check.h"

// What some process does with a channel.
typedef enum pwsp_channel_use {
    PWSP_CHANNEL_PRODUCED = 1,
    PWSP_CHANNEL_CONSUMED = 2,
    PWSP_CHANNEL_SENT = 4,
    PWSP_CHANNEL_RECEIVED = 8
} pwsp_channel_use;

// Of all channels of the module.
static void pwsp_check_uses(const ptowsp_module *module, uint8_t *uses) {
    for (uint32_t i = 1; i < module->ports.count; i++) {
        const pwsp_port_info *port = PWSP_PORT(module, i);
        uses[port->channel] |=
            (uint8_t)(port->is_produced ? PWSP_CHANNEL_PRODUCED : PWSP_CHANNEL_CONSUMED);
    }
    for (uint32_t i = 1; i < module->nodes.count; i++) {
        const pwsp_node *node = PWSP_NODE(module, i);
        switch (node->kind) {
        case PWSP_NODE_SEND:
        case PWSP_NODE_RECORD: uses[node->channel] |= PWSP_CHANNEL_SENT; break;
        case PWSP_NODE_CONSUME:
        case PWSP_NODE_RECEIVE:
        case PWSP_NODE_WAIT: uses[node->channel] |= PWSP_CHANNEL_RECEIVED; break;
        default: break;
        }
    }
}

static bool pwsp_check_channel(ptowsp_module *module, const pwsp_channel_info *channel,
                               uint8_t use) {
    bool is_event = channel->is_event;
    const char *what;
    if (!(use & PWSP_CHANNEL_CONSUMED)) {
        what = is_event
                   ? "no process consumes it, so that processes that record it would wait for ever"
                   : "no process consumes it, so that senders would wait for ever";
    } else if (!(use & PWSP_CHANNEL_PRODUCED)) {
        what =
            is_event
                ? "no process produces it, so that processes that wait for it would wait for ever"
                : "no process produces it, so that receivers would wait for ever";
    } else if (!(use & PWSP_CHANNEL_RECEIVED)) {
        what = is_event
                   ? "no process waits for it, so that processes that record it would wait for ever"
                   : "no process receives from it, so that senders would wait for ever";
    } else if (!(use & PWSP_CHANNEL_SENT)) {
        what = is_event
                   ? "no process records it, so that processes that wait for it would wait for ever"
                   : "no process sends to it, so that receivers would wait in vain";
    } else {
        return true;
    }
    return pwsp_module_fail_at(module, channel->pipeline, PTOWSP_STUCK, "%s %s: %s",
                               is_event ? "event" : "channel", channel->name, what);
}

// Marks a workload and the workloads that it calls outside of processes. Calls are acyclic and at
// most 64 deep.
static void pwsp_check_outside(pwsp_checker *checker, uint32_t workload) {
    const ptowsp_module *module = checker->module;
    pwsp_reached *reached = &checker->reached.items[pwsp_checker_find(checker, workload)];
    if (reached->is_outside) {
        return;
    }
    reached->is_outside = true;
    for (uint32_t i = workload + 1; i < module->nodes.count && PWSP_NODE(module, i)->parent; i++) {
        const pwsp_node *node = PWSP_NODE(module, i);
        if (node->kind == PWSP_NODE_CALL && !pwsp_node_process(module, i)) {
            pwsp_check_outside(checker,
                               pwsp_names_find(&module->workload_names, node->call->name)->index);
        }
    }
}

PWSP_INTERNAL bool pwsp_check_pipelines(pwsp_checker *checker, uint32_t entry) {
    ptowsp_module *module = checker->module;
    pwsp_check_outside(checker, entry);
    if (module->channels.count == 0) {
        return true;
    }
    const pwsp_memory *memory = &module->context->memory;
    uint8_t *uses;
    if (!PWSP_ALLOC(memory, uses, module->channels.count)) {
        return pwsp_module_no_memory(module);
    }
    pwsp_check_uses(module, uses);
    bool is_good = true;
    for (uint32_t i = 1; is_good && i < module->channels.count; i++) {
        const pwsp_channel_info *channel = PWSP_CHANNEL(module, i);
        is_good = !pwsp_checker_find(checker, pwsp_node_workload(module, channel->pipeline)) ||
                  pwsp_check_channel(module, channel, uses[i]);
    }
    PWSP_FREE(memory, uses, module->channels.count);
    return is_good;
}

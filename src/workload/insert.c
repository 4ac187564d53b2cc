// Putting tasks into a workload that is complete. Nodes are in the order of the tree, which texts,
// edges and loops over subtrees rely on, so nodes after a new one move, and all references to nodes
// follow: links, `after`, variables, channels, ports. Nothing follows the workload yet.

#include "build.h"

// By node of the workload, from its first: where it goes, and where the next new one before it does.
typedef struct pwsp_renumber {
    ptowsp_module *module;
    uint32_t first, count;
    uint32_t *to, *at;
} pwsp_renumber;

static uint32_t pwsp_renumber_of(const pwsp_renumber *r, uint32_t node) {
    return node < r->first ? node : r->to[node - r->first];
}

// Tasks whose edges come from nodes that move have a list of their own.
static bool pwsp_renumber_after(const pwsp_renumber *r, pwsp_node *node) {
    const pwsp_task_info *task = node->task;
    uint32_t ids[PTOWSP_TASK_AFTER_MAX * PTOWSP_VARIANT_MAX];
    if (!task || task->after_count == 0) {
        return true;
    }
    for (uint32_t i = 0; i < task->after_count; i++) {
        ids[i] = pwsp_renumber_of(r, task->after[i]);
    }
    pwsp_task_info made = *task;
    made.after = PWSP_MODULE_COPY(r->module, uint32_t, ids, made.after_count);
    node->task = PWSP_MODULE_COPY(r->module, pwsp_task_info, &made, 1);
    return node->task != NULL;
}

// Moves the nodes, from the last, and puts the new ones between.
static bool pwsp_renumber_move(const pwsp_renumber *r, const pwsp_insert *inserts,
                               uint32_t insert_count) {
    ptowsp_module *m = r->module;
    for (uint32_t i = r->count; i-- > 0;) {
        pwsp_node node = *PWSP_NODE(m, r->first + i);
        if (!pwsp_renumber_after(r, &node)) {
            return false;
        }
        node.parent = pwsp_renumber_of(r, node.parent);
        node.variant = pwsp_renumber_of(r, node.variant);
        node.first = node.last = node.next = 0;
        *PWSP_NODE(m, r->to[i]) = node;
    }
    for (uint32_t i = 0; i < insert_count; i++) {
        PWSP_ZERO(pwsp_node, node);
        node.kind = PWSP_NODE_TASK;
        node.parent = PWSP_NODE(m, pwsp_renumber_of(r, inserts[i].before))->parent;
        node.task = inserts[i].task;
        *PWSP_NODE(m, r->at[inserts[i].before - r->first]++) = node;
    }
    return true;
}

// Lists of children, from the order of nodes.
static void pwsp_renumber_link(const pwsp_renumber *r) {
    ptowsp_module *m = r->module;
    for (uint32_t id = r->first + 1; id < m->nodes.count; id++) {
        pwsp_node *parent = PWSP_NODE(m, PWSP_NODE(m, id)->parent);
        *(parent->last ? &PWSP_NODE(m, parent->last)->next : &parent->first) = id;
        parent->last = id;
    }
    for (uint32_t i = 1; i < m->variables.count; i++) {
        PWSP_VARIABLE(m, i)->node = pwsp_renumber_of(r, PWSP_VARIABLE(m, i)->node);
    }
    for (uint32_t i = 1; i < m->channels.count; i++) {
        PWSP_CHANNEL(m, i)->pipeline = pwsp_renumber_of(r, PWSP_CHANNEL(m, i)->pipeline);
    }
    for (uint32_t i = 1; i < m->ports.count; i++) {
        PWSP_PORT(m, i)->process = pwsp_renumber_of(r, PWSP_PORT(m, i)->process);
    }
}

PWSP_INTERNAL void pwsp_nodes_insert(ptowsp_module *module, uint32_t workload,
                                     const pwsp_insert *inserts, uint32_t count) {
    const pwsp_memory *memory = &module->context->memory;
    pwsp_renumber r = {module, workload, (uint32_t)module->nodes.count - workload, NULL, NULL};
    if (module->nodes.count + count > (uint64_t)PTOWSP_MODULE_NODE_MAX + 1) {
        pwsp_module_fail(module, PTOWSP_LIMIT_EXCEEDED, PTOWSP_NO_INDEX,
                         "more than %d nodes, with %u relayouts", PTOWSP_MODULE_NODE_MAX, count);
        return;
    }
    PWSP_ALLOC(memory, r.to, 2 * (size_t)r.count);
    r.at = r.to ? r.to + r.count : NULL;
    for (uint32_t i = 0; r.to && i < count; i++) {
        r.to[inserts[i].before - workload]++;
    }
    for (uint32_t i = 0, shift = 0; r.to && i < r.count; i++) {
        r.at[i] = workload + i + shift;
        shift += r.to[i];
        r.to[i] = workload + i + shift;
    }
    for (uint32_t i = 0; r.to && i < count; i++) {
        if (!PWSP_MODULE_ADD(module, module->nodes)) {
            break;
        }
    }
    if (!r.to) {
        pwsp_module_no_memory(module);
    } else if (pwsp_module_is_good(module) && pwsp_renumber_move(&r, inserts, count)) {
        pwsp_renumber_link(&r);
    }
    PWSP_FREE(memory, r.to, 2 * (size_t)r.count);
}

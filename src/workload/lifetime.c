// The lifetimes of transient tensors: which of them may share memory.
//
// Time is the program in its order, cut into points. A statement of a sequential scope is a point;
// so is a whole parallel loop, combine or pipeline, whose parts may run at the same time:
//
//      for_each layer                 point      q      p      h
//        task project  (out q)          0        |
//        parallel head                  1        |      |
//          task scores  (in q, out p)
//          task attend  (in p, out h)                   |      |
//        task mlp      (in h)           2                      |
//
// The scope of a transient tensor is the innermost block (the body of a loop, a when, a workload)
// around all its uses; for uses in several workloads, the entry. Its contents do not outlive a pass
// through that block, like a local variable in C. In a pass it lives from its first use to its
// last. It lives throughout a for_each loop inside its scope that uses it, as an iteration may read
// the writes of an earlier one. Workloads are followed where they are called, so a tensor has a
// lifetime for each pass through its scope that the tree shows.

#include "build.h"
#include "compile.h"

#define PWSP_LIVE_NEVER UINT32_MAX

// A walk over more statements than this, with calls followed, is given up: then no tensor shares.
#define PWSP_LIFETIME_VISIT_MAX PTOWSP_MODULE_NODE_MAX

// A transient tensor during the walk.
typedef struct pwsp_live {
    uint32_t tensor;
    uint32_t scope;        // a node
    uint32_t next;         // of the same scope, + 1, or 0
    uint32_t first, last;  // points of this pass, or PWSP_LIVE_NEVER
    uint32_t latest;       // its latest lifetime, + 1, or 0
    bool is_written;       // in this pass
} pwsp_live;

// A lifetime of a tensor, in the order in which passes end.
typedef struct pwsp_span {
    uint32_t live;
    pwsp_lifetime lifetime;
} pwsp_span;

typedef struct pwsp_liver {
    pwsp_compiler *c;
    uint32_t *live_of;  // by tensor: + 1, or 0
    uint32_t *scopes;   // by node: the first of the tensors with this scope, + 1, or 0
    pwsp_live *lives;
    uint32_t live_count;
    PWSP_TABLE(uint32_t) touched;  // each use so far in the for_each loops around
    PWSP_TABLE(pwsp_span) spans;
    uint64_t visit_count;
    bool is_flat;         // inside something that is one point
    bool is_in_pipeline;  // where the order of statements says little
    bool is_coarse;       // given up
} pwsp_liver;

static bool pwsp_liver_visit(pwsp_liver *l, uint32_t id);

// -- scopes ---------------------------------------------------------------------------------------

// Widens the scope of a tensor to the block around a statement.
static void pwsp_liver_widen(pwsp_liver *l, uint32_t tensor, uint32_t block) {
    const ptowsp_module *m = l->c->module;
    pwsp_live *live = l->live_of[tensor] ? &l->lives[l->live_of[tensor] - 1] : NULL;
    if (!live) {
        return;
    }
    uint32_t scope = live->scope ? live->scope : block;
    while (scope && !pwsp_node_is_inside(m, block, scope)) {
        scope = PWSP_NODE(m, scope)->parent;
    }
    live->scope = scope ? scope : l->c->checker.reached.items[1].node;
}

// The scopes of all transient tensors, and for each scope the list of its tensors.
static void pwsp_liver_find_scopes(pwsp_liver *l) {
    const ptowsp_module *m = l->c->module;
    for (uint32_t id = 1; id < m->nodes.count; id++) {
        const pwsp_node *node = PWSP_NODE(m, id);
        if (!pwsp_checker_find(&l->c->checker, pwsp_node_workload(m, id))) {
            continue;
        }
        if (node->kind == PWSP_NODE_TASK) {
            uint32_t count = PWSP_KERNEL(m, node->task->kernel)->tile_count;
            for (uint32_t i = 0; i < count; i++) {
                pwsp_liver_widen(l, node->task->views[i].tensor, node->parent);
            }
        } else if (node->kind == PWSP_NODE_SLOT_LOAD) {
            pwsp_liver_widen(l, node->view->tensor, node->parent);
        }
    }
    for (uint32_t i = l->live_count; i > 0; i--) {
        pwsp_live *live = &l->lives[i - 1];
        if (live->scope) {
            live->next = l->scopes[live->scope];
            l->scopes[live->scope] = i;
        }
    }
}

// -- the walk -------------------------------------------------------------------------------------

// The point of the statement that is being visited.
static uint32_t pwsp_liver_point(const pwsp_liver *l) {
    PTOWSP_ASSERT(l->c->program->points.count > 0);
    return (uint32_t)l->c->program->points.count - 1;
}

static bool pwsp_liver_begin_point(pwsp_liver *l, uint32_t node) {
    uint32_t index;
    if (l->is_flat) {
        return true;
    }
    return PWSP_ADD_ITEM(l->c, points, &index, node);
}

static bool pwsp_liver_use(pwsp_liver *l, uint32_t node, uint32_t tensor, bool is_read) {
    ptowsp_module *m = l->c->module;
    if (!l->live_of[tensor]) {
        return true;
    }
    pwsp_live *live = &l->lives[l->live_of[tensor] - 1];
    uint32_t point = pwsp_liver_point(l);
    if (is_read && !live->is_written && !l->is_in_pipeline) {
        return pwsp_module_fail_at(
            m, node, PTOWSP_INVALID_PARAMS,
            "it reads transient tensor %s, which nothing has written before it in "
            "the block around all its uses",
            PWSP_TENSOR(m, tensor)->name);
    }
    live->is_written = live->is_written || !is_read;
    live->first = live->first == PWSP_LIVE_NEVER ? point : live->first;
    live->last = point;
    uint32_t *touched = PWSP_TABLE_ADD(l->c, l->touched);
    if (touched) {
        *touched = l->live_of[tensor] - 1;
    }
    return touched != NULL;
}

static bool pwsp_liver_task(pwsp_liver *l, uint32_t id) {
    const ptowsp_module *m = l->c->module;
    const pwsp_task_info *task = PWSP_NODE(m, id)->task;
    const pwsp_kernel_info *kernel = PWSP_KERNEL(m, task->kernel);
    bool is_good = true;
    for (uint32_t i = 0; is_good && i < kernel->tile_count; i++) {
        is_good = kernel->tiles[i].direction == PTOWSP_OUT ||
                  pwsp_liver_use(l, id, task->views[i].tensor, true);
    }
    for (uint32_t i = 0; is_good && i < kernel->tile_count; i++) {
        is_good = kernel->tiles[i].direction == PTOWSP_IN ||
                  pwsp_liver_use(l, id, task->views[i].tensor, false);
    }
    return is_good;
}

// A pass through a block, which may be the scope of tensors.
static bool pwsp_liver_pass(pwsp_liver *l, uint32_t block) {
    const ptowsp_module *m = l->c->module;
    for (uint32_t at = l->scopes[block]; at; at = l->lives[at - 1].next) {
        l->lives[at - 1].first = l->lives[at - 1].last = PWSP_LIVE_NEVER;
        l->lives[at - 1].is_written = false;
    }
    for (uint32_t id = PWSP_NODE(m, block)->first; id; id = PWSP_NODE(m, id)->next) {
        if (!pwsp_liver_visit(l, id)) {
            return false;
        }
    }
    for (uint32_t at = l->scopes[block]; at; at = l->lives[at - 1].next) {
        pwsp_live *live = &l->lives[at - 1];
        pwsp_lifetime lifetime = {live->first, live->last};
        PTOWSP_ASSERT(lifetime.first != PWSP_LIVE_NEVER);  // its uses are in the block
        live->first = PWSP_LIVE_NEVER;
        const pwsp_span *before = live->latest ? &l->spans.items[live->latest - 1] : NULL;
        if (before && before->lifetime.last == lifetime.first) {
            PTOWSP_ASSERT(lifetime.first == lifetime.last);
            continue;  // another pass inside the same point
        }
        pwsp_span *span = PWSP_TABLE_ADD(l->c, l->spans);
        if (!span) {
            return false;
        }
        span->live = at - 1;
        span->lifetime = lifetime;
        live->latest = (uint32_t)l->spans.count;
    }
    return true;
}

// A for_each loop: tensors used in it that also live around it live for all of it.
static bool pwsp_liver_for_each(pwsp_liver *l, uint32_t id) {
    uint64_t touched = l->touched.count;
    uint64_t first = l->c->program->points.count;
    if (!pwsp_liver_pass(l, id)) {
        return false;
    }
    for (uint64_t i = touched; i < l->touched.count && !l->is_flat; i++) {
        pwsp_live *live = &l->lives[l->touched.items[i]];
        if (live->first != PWSP_LIVE_NEVER) {
            live->first = live->first < first ? live->first : (uint32_t)first;
            live->last = pwsp_liver_point(l);
        }
    }
    return true;
}

// Constructs that are one point: their parts may run at the same time.
static bool pwsp_liver_flat(pwsp_liver *l, uint32_t id) {
    bool was_flat = l->is_flat, was_in_pipeline = l->is_in_pipeline;
    bool is_good = pwsp_liver_begin_point(l, id);
    l->is_flat = true;
    l->is_in_pipeline = was_in_pipeline || PWSP_NODE(l->c->module, id)->kind == PWSP_NODE_PIPELINE;
    is_good = is_good && pwsp_liver_pass(l, id);
    l->is_flat = was_flat;
    l->is_in_pipeline = was_in_pipeline;
    return is_good;
}

static bool pwsp_liver_visit(pwsp_liver *l, uint32_t id) {
    const ptowsp_module *m = l->c->module;
    const pwsp_node *node = PWSP_NODE(m, id);
    if (++l->visit_count > PWSP_LIFETIME_VISIT_MAX) {
        l->is_coarse = true;
        return false;
    }
    switch (node->kind) {
    case PWSP_NODE_PARALLEL:
    case PWSP_NODE_SELECT:
    case PWSP_NODE_COMBINE:
    case PWSP_NODE_PIPELINE: return pwsp_liver_flat(l, id);
    case PWSP_NODE_FOR_EACH: return pwsp_liver_for_each(l, id);
    case PWSP_NODE_WHEN:
    case PWSP_NODE_OTHERWISE:
    case PWSP_NODE_SEQUENCE:
    case PWSP_NODE_PROCESS:
    case PWSP_NODE_CONSUME:
    case PWSP_NODE_RECEIVE:
    case PWSP_NODE_WAIT: return pwsp_liver_pass(l, id);
    case PWSP_NODE_CALL:
        return pwsp_liver_pass(l, pwsp_names_find(&m->workload_names, node->call->name)->index);
    case PWSP_NODE_TASK: return pwsp_liver_begin_point(l, id) && pwsp_liver_task(l, id);
    case PWSP_NODE_SLOT_LOAD:
        return pwsp_liver_begin_point(l, id) && pwsp_liver_use(l, id, node->view->tensor, true);
    default: return true;  // it touches no tensor
    }
}

// -- in the program -------------------------------------------------------------------------------

// All tensors live at one point: for programs that are too large to be followed.
static bool pwsp_liver_coarsen(pwsp_liver *l, uint32_t entry) {
    uint32_t index;
    l->spans.count = l->c->program->points.count = 0;
    bool is_good = PWSP_ADD_ITEM(l->c, points, &index, entry);
    for (uint32_t i = 0; is_good && i < l->live_count; i++) {
        pwsp_span *span = PWSP_TABLE_ADD(l->c, l->spans);
        is_good = span != NULL;
        if (is_good) {
            memset(span, 0, sizeof *span);
            span->live = i;
        }
    }
    return is_good;
}

// Lists the lifetimes of each tensor, in order.
static bool pwsp_liver_keep(pwsp_liver *l) {
    ptowsp_program *p = l->c->program;
    for (uint64_t i = 0; i < l->spans.count; i++) {
        const pwsp_span *span = &l->spans.items[i];
        p->transients.items[span->live].lifetime_count++;
        uint32_t index;
        if (!PWSP_ADD(l->c, lifetimes, &index)) {
            return false;
        }
    }
    uint32_t first = 0;
    for (uint32_t i = 0; i < p->transients.count; i++) {
        pwsp_transient *transient = &p->transients.items[i];
        transient->first_lifetime = first;
        first += transient->lifetime_count;
        transient->lifetime_count = 0;
    }
    for (uint64_t i = 0; i < l->spans.count; i++) {
        const pwsp_span *span = &l->spans.items[i];
        pwsp_transient *transient = &p->transients.items[span->live];
        uint32_t at = transient->first_lifetime + transient->lifetime_count++;
        p->lifetimes.items[at] = span->lifetime;
    }
    return true;
}

// The sizes of a transient tensor that expressions say.
static bool pwsp_liver_sizes(pwsp_compiler *c, const pwsp_transient_info *info) {
    uint32_t index;
    uint32_t rank = PWSP_TENSOR(c->module, info->tensor)->rank;
    pwsp_transient made = {info->tensor, (uint32_t)c->program->codes.count, 0, 0};
    c->sized_tensor = info->tensor;
    bool is_good = pwsp_compiler_codes(c, info->sizes, rank, &made.first_code);
    c->sized_tensor = 0;
    if (!is_good || !PWSP_ADD_ITEM(c, transients, &index, made)) {
        return false;
    }
    c->program->tensor_is_transient[info->tensor] = true;
    return true;
}

static bool pwsp_liver_alloc(pwsp_liver *l, const pwsp_memory *memory) {
    const ptowsp_module *m = l->c->module;
    l->live_count = (uint32_t)m->transients.count - 1;
    if (!PWSP_ALLOC(memory, l->live_of, m->tensors.count) ||
        !PWSP_ALLOC(memory, l->scopes, m->nodes.count) ||
        !PWSP_ALLOC(memory, l->lives, l->live_count)) {
        return pwsp_module_no_memory(l->c->module);
    }
    for (uint32_t i = 0; i < l->live_count; i++) {
        l->lives[i].tensor = m->transients.items[i + 1].tensor;
        l->lives[i].first = l->lives[i].last = PWSP_LIVE_NEVER;
        l->live_of[l->lives[i].tensor] = i + 1;
    }
    return true;
}

static void pwsp_liver_free(pwsp_liver *l, const pwsp_memory *memory) {
    const ptowsp_module *m = l->c->module;
    PWSP_FREE(memory, l->live_of, m->tensors.count);
    PWSP_FREE(memory, l->scopes, m->nodes.count);
    PWSP_FREE(memory, l->lives, l->live_count);
    PWSP_TABLE_FREE(memory, l->touched);
    PWSP_TABLE_FREE(memory, l->spans);
}

PWSP_INTERNAL bool pwsp_compiler_scopes(pwsp_compiler *c) {
    ptowsp_program *p = c->program;
    if (c->module->transients.count <= 1 || p->schedule.ring_sizes[PTOWSP_RING_BYTES] == 0) {
        return true;
    }
    PWSP_ZERO(pwsp_liver, liver);
    liver.c = c;
    p->tensor_scopes = PWSP_ARENA_ARRAY(&p->arena, uint32_t, c->module->tensors.count);
    bool is_good = pwsp_liver_alloc(&liver, &p->memory) && p->tensor_scopes;
    if (is_good) {
        pwsp_liver_find_scopes(&liver);
        for (uint32_t i = 0; i < liver.live_count; i++) {
            p->tensor_scopes[liver.lives[i].tensor] = liver.lives[i].scope;
        }
    } else {
        pwsp_module_no_memory(c->module);
    }
    pwsp_liver_free(&liver, &p->memory);
    return is_good;
}

PWSP_INTERNAL bool pwsp_compiler_lifetimes(pwsp_compiler *c) {
    if (c->module->transients.count <= 1) {
        return true;
    }
    PWSP_ZERO(pwsp_liver, liver);
    liver.c = c;
    uint32_t entry = c->checker.reached.items[1].node;
    bool is_good = pwsp_liver_alloc(&liver, &c->program->memory);
    for (uint32_t i = 1; is_good && i < c->module->transients.count; i++) {
        is_good = pwsp_liver_sizes(c, &c->module->transients.items[i]);
    }
    if (is_good) {
        pwsp_liver_find_scopes(&liver);
        is_good = pwsp_liver_pass(&liver, entry) ||
                  (liver.is_coarse && pwsp_liver_coarsen(&liver, entry));
        is_good = is_good && pwsp_liver_keep(&liver);
    }
    pwsp_liver_free(&liver, &c->program->memory);
    return is_good;
}

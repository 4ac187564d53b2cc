// Checks the calls of a module from its entry: every called workload exists and gets the arguments
// that it declares, and no workload calls itself through any path. On the way it records which
// workloads are reached and how deep they nest. A run needs this depth so that it never allocates.

#include "check.h"

#include "../base/text.h"
#include "build.h"

static bool pwsp_check_children(pwsp_checker *checker, uint32_t node, bool is_parallel,
                                uint32_t *out_frames, uint32_t *out_scopes);

PWSP_INTERNAL void pwsp_checker_free(pwsp_checker *checker) {
    const pwsp_memory *memory = &checker->module->memory;
    PWSP_TABLE_FREE(memory, checker->reached);
    PWSP_TABLE_FREE(memory, checker->by_node);
}

PWSP_INTERNAL uint32_t pwsp_checker_find(const pwsp_checker *checker, uint32_t workload) {
    return workload < checker->by_node.count ? checker->by_node.items[workload] : 0;
}

// A call in a cycle of calls: names them.
static bool pwsp_check_cycle(pwsp_checker *checker, uint32_t call, uint32_t from) {
    char way[PWSP_ERROR_TEXT_MAX / 2];
    ptowsp_output_buffer buffer = {way, sizeof way, 0};
    ptowsp_output text = ptowsp_output_to_buffer(&buffer);
    for (uint32_t i = from; i < checker->path_count; i++) {
        pwsp_text_format(text, "%s -> ", PWSP_NODE(checker->module, checker->path[i])->name);
    }
    pwsp_text_format(text, "%s", PWSP_NODE(checker->module, checker->path[from])->name);
    return pwsp_module_fail_at(checker->module, call, PTOWSP_INVALID_PARAMS,
                               "workloads may not call themselves: %s", way);
}

static bool pwsp_check_call(pwsp_checker *checker, uint32_t id, uint32_t *out_callee) {
    ptowsp_module *module = checker->module;
    const pwsp_call_info *call = PWSP_NODE(module, id)->call;
    const pwsp_name *found = pwsp_names_get(&module->workload_names, call->name);
    if (!found) {
        return pwsp_module_fail_at(module, id, PTOWSP_INVALID_PARAMS, "there is no such workload");
    }
    *out_callee = found->index;
    const pwsp_node *callee = PWSP_NODE(module, found->index);
    if (call->arg_count != callee->param_count) {
        pwsp_module_fail_at(module, id, PTOWSP_INVALID_PARAMS,
                            "%u arguments; the workload takes %u", call->arg_count,
                            callee->param_count);
        return false;
    }
    for (uint32_t i = 0; i < call->arg_count; i++) {
        const pwsp_variable_info *param = PWSP_VARIABLE(module, callee->first_param + i);
        ptowsp_type given = (ptowsp_type)module->exprs.nodes[call->args[i]].type;
        if (given != param->type) {
            pwsp_module_fail_at(module, id, PTOWSP_INVALID_PARAMS,
                                "argument %u is %s; parameter %s is %s", i, pwsp_type_name(given),
                                param->name, pwsp_type_name(param->type));
            return false;
        }
    }
    for (uint32_t i = 0; i < checker->path_count; i++) {
        if (checker->path[i] == found->index) {
            return pwsp_check_cycle(checker, id, i);
        }
    }
    if (checker->path_count > PWSP_CALL_DEPTH_MAX) {
        return pwsp_module_fail_at(module, id, PTOWSP_LIMIT_EXCEEDED,
                                   "more than %d calls in one another", PWSP_CALL_DEPTH_MAX);
    }
    return true;
}

// The depths that a call adds; false with an error if a process calls a workload with a pipeline, or
// with a task that communicates.
static bool pwsp_check_called(pwsp_checker *checker, uint32_t id, uint32_t callee,
                              uint32_t *out_frames, uint32_t *out_scopes) {
    ptowsp_module *module = checker->module;
    const pwsp_reached *reached = &checker->reached.items[pwsp_checker_find(checker, callee)];
    uint32_t process = pwsp_node_process(module, id);
    if (process && reached->pipeline) {
        pwsp_module_fail_at(module, id, PTOWSP_INVALID_PARAMS,
                            "process %s calls a workload with pipeline %s in it, or in what it "
                            "calls; there are none inside processes",
                            PWSP_NODE(module, process)->name,
                            PWSP_NODE(module, reached->pipeline)->name);
        return false;
    }
    if (process && reached->link) {
        const bool is_list = PWSP_NODE(module, reached->link)->kind == PWSP_NODE_LIST;
        pwsp_module_fail_at(module, id, PTOWSP_UNSUPPORTED,
                            "process %s calls a workload with a %s in it, or in what it calls; "
                            "there are none inside processes",
                            PWSP_NODE(module, process)->name,
                            is_list ? "list of tasks" : "collective");
        return false;
    }
    checker->pipeline = checker->pipeline ? checker->pipeline : reached->pipeline;
    checker->link = checker->link ? checker->link : reached->link;
    *out_frames = reached->frame_depth + 1;
    *out_scopes = reached->scope_depth + 1;
    return true;
}

// The depths that one child adds.
static bool pwsp_check_child(pwsp_checker *checker, uint32_t id, bool is_parallel,
                             uint32_t *out_frames, uint32_t *out_scopes) {
    const pwsp_node *node = PWSP_NODE(checker->module, id);
    bool opens_parallel = is_parallel;
    bool is_loop = false;
    uint32_t callee = 0;
    *out_frames = 0;
    *out_scopes = 0;
    switch (node->kind) {
    case PWSP_NODE_TASK:
        if (PWSP_KERNEL(checker->module, node->task->kernel)->unit == PTOWSP_UNIT_LINK) {
            checker->link = checker->link ? checker->link : id;
        }
        return true;
    case PWSP_NODE_LIST:
        checker->link = checker->link ? checker->link : id;
        *out_scopes = node->list->scope_depth;
        return true;
    case PWSP_NODE_CALL:
        return pwsp_check_call(checker, id, &callee) && pwsp_check_workload(checker, callee) &&
               pwsp_check_called(checker, id, callee, out_frames, out_scopes);
    case PWSP_NODE_PIPELINE:
        if (node->first == 0) {
            return pwsp_module_fail_at(checker->module, id, PTOWSP_INVALID_PARAMS,
                                       "it has no processes");
        }
        checker->pipeline = checker->pipeline ? checker->pipeline : id;
        break;
    case PWSP_NODE_PROCESS: opens_parallel = false; break;
    case PWSP_NODE_PARALLEL:
    case PWSP_NODE_SELECT:
        opens_parallel = true;
        is_loop = true;
        break;
    case PWSP_NODE_FOR_EACH:
        opens_parallel = false;
        is_loop = true;
        break;
    case PWSP_NODE_COMBINE: opens_parallel = true; break;
    case PWSP_NODE_SEQUENCE: opens_parallel = false; break;
    case PWSP_NODE_WHEN:
    case PWSP_NODE_OTHERWISE:
    case PWSP_NODE_CONSUME:
    case PWSP_NODE_RECEIVE: break;
    default: return true;  // nothing is in it
    }
    if (!pwsp_check_children(checker, id, opens_parallel, out_frames, out_scopes)) {
        return false;
    }
    *out_frames += is_loop;
    *out_scopes += opens_parallel != is_parallel;
    return true;
}

static bool pwsp_check_children(pwsp_checker *checker, uint32_t node, bool is_parallel,
                                uint32_t *out_frames, uint32_t *out_scopes) {
    uint32_t frames = 0, scopes = 0;
    for (uint32_t id = PWSP_NODE(checker->module, node)->first; id;
         id = PWSP_NODE(checker->module, id)->next) {
        uint32_t child_frames, child_scopes;
        if (!pwsp_check_child(checker, id, is_parallel, &child_frames, &child_scopes)) {
            return false;
        }
        frames = child_frames > frames ? child_frames : frames;
        scopes = child_scopes > scopes ? child_scopes : scopes;
    }
    *out_frames = frames;
    *out_scopes = scopes;
    return true;
}

PWSP_INTERNAL bool pwsp_check_workload(pwsp_checker *checker, uint32_t workload) {
    ptowsp_module *module = checker->module;
    if (pwsp_checker_find(checker, workload)) {
        return true;
    }
    if (checker->by_node.count == 0) {
        if (!PWSP_GROW(&module->memory, checker->by_node.items, checker->by_node.capacity,
                       module->nodes.count)) {
            return pwsp_module_no_memory(module);
        }
        checker->by_node.count = module->nodes.count;
    }
    uint32_t index = PWSP_MODULE_ADD(module, checker->reached);
    if (index == 0) {
        return false;
    }
    checker->by_node.items[workload] = index;
    checker->path[checker->path_count++] = workload;
    uint32_t frames, scopes, pipeline_of_caller = checker->pipeline, link_of_caller = checker->link;
    checker->pipeline = checker->link = 0;
    bool is_good = pwsp_check_children(checker, workload, false, &frames, &scopes);
    checker->path_count--;
    if (is_good) {
        pwsp_reached reached = {workload, frames, scopes, checker->pipeline, checker->link, false};
        checker->reached.items[index] = reached;
    }
    checker->pipeline = pipeline_of_caller;
    checker->link = link_of_caller;
    return is_good;
}

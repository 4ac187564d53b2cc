// Pipelines in aicpu/expand.cpp: processes are functions that capture their surroundings, and walk
// with a Run of their own, which has their name.

#include "npu_expand.h"

#include <stdio.h>

// -- loads of processes ---------------------------------------------------------------------------

// Marks the tensors that slots are loaded from, in statements [begin, end) and their callees.
static void npu_find_loads(npu_expand *x, uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; i++) {
        const ptowsp_statement *s = &x->tables->statements[i];
        if (s->kind == PTOWSP_STATEMENT_SLOT_LOAD) {
            x->tensors[x->tables->loads[x->tables->statements[i].load].view.tensor] = 1;
        } else if (s->kind == PTOWSP_STATEMENT_CALL && !x->seen[s->target]) {
            x->seen[s->target] = 1;
            npu_find_loads(x, s->target, x->tables->statements[s->target].end);
        }
    }
}

static void npu_add_loads(npu_expand *x, uint32_t begin, uint32_t end) {
    uint32_t count = x->tables->tensor_count;
    memset(x->tensors, 0, count);
    memset(x->seen, 0, x->emitter->tables->statement_count);
    npu_find_loads(x, begin, end);
    for (uint32_t i = 1; i < count; i++) {
        if (x->tensors[i]) {
            npu_line(x, "pipeline.loads(TENSOR_%s);", npu_name(x->emitter, NPU_TENSOR, i));
        }
    }
}

// -- pipelines ------------------------------------------------------------------------------------

static void npu_channel(npu_expand *x, uint32_t channel) {
    const ptowsp_channel_info *info = &x->tables->channels[channel];
    const char *name = npu_name(x->emitter, NPU_CHANNEL, channel);
    x->part_count = 0;
    npu_prepare_expr(x, info->depth_at_start);
    npu_prepare_expr(x, info->latency_at_start);
    npu_print_cpp(&x->line, "Channel v_%s = pipeline.channel('%s', CHANNEL_%s, ", name, info->name,
                  name);
    if (info->depth_at_start) {
        npu_add_expr(x, info->depth_at_start, NPU_LITERAL_PLAIN);
    } else {
        npu_add_u64(x, info->depth);
    }
    npu_add(x, ", ");
    if (info->latency_at_start) {
        npu_add_expr(x, info->latency_at_start, NPU_LITERAL_PLAIN);
    } else {
        npu_add_u64(x, info->latency);
    }
    npu_line(x, ", %s);", info->is_event ? "true" : "false");
}

static void npu_pipeline_begin(npu_expand *x, uint32_t i, const ptowsp_statement *s) {
    const ptowsp_task_info *task = &x->tables->tasks[s->task];
    npu_place_comment(x, s->node);
    npu_open(x);
    npu_line(x, "Pipeline pipeline(%s, %u, %u);", x->walker, x->pipeline_count++,
             npu_place(x->emitter, s->node));
    for (uint32_t j = 0; j < task->tile_count; j++) {
        const ptowsp_view_info *view = &task->tiles[j];
        if (view->is_read || view->is_written) {
            npu_line(x, "pipeline.tile(TENSOR_%s, %s);",
                     npu_name(x->emitter, NPU_TENSOR, view->tensor), npu_access(view));
        }
    }
    npu_add_loads(x, i, s->end);
    npu_edges(x, "pipeline.after", task->in, task->in_count);
    npu_edges(x, "pipeline.before", task->out, task->out_count);
    for (uint32_t j = 0; j < s->count; j++) {
        npu_channel(x, s->first + j);
    }
}

// -- processes ------------------------------------------------------------------------------------

static void npu_process_begin(npu_expand *x, const ptowsp_statement *s) {
    char name[NPU_NAME_MAX + 3];
    if (s->axis) {
        npu_add_counted_for(x, s->variable, s->axis);
        npu_open(x);
    }
    npu_print_cpp(&x->line, "pipeline.process('%s', %u, {", s->name,
                  npu_place(x->emitter, s->node));
    for (uint32_t j = 0; j < s->count; j++) {
        const ptowsp_port_info *port = &x->tables->ports[s->first + j];
        npu_add(x, "%s%s(%s)", j ? ", " : "", port->is_produced ? "produces" : "consumes",
                npu_user_name(x->emitter, NPU_CHANNEL, port->channel));
    }
    npu_mangle(s->name, name);
    snprintf(x->walker, sizeof x->walker, "r_%s", name + 2);
    npu_add(x, "}, [=](Run &%s) ", x->walker);
    npu_open(x);
}

static void npu_process_end(npu_expand *x, const ptowsp_statement *s) {
    npu_close(x, ");");
    if (s->axis) {
        npu_close(x, "");
    }
    snprintf(x->walker, sizeof x->walker, NPU_WALKER);
}

// -- statements of processes ----------------------------------------------------------------------

static void npu_receive(npu_expand *x, const ptowsp_statement *s) {
    bool is_loop = s->kind == PTOWSP_STATEMENT_CONSUME;
    const char *name = npu_user_name(x->emitter, NPU_VARIABLE, s->variable);
    npu_add(x, is_loop ? "for (i64 %s; " : "if (i64 %s; ", name);
    npu_add(x, "%s.receive%s(%s, %s, %u)%s) ", npu_user_name(x->emitter, NPU_CHANNEL, s->channel),
            is_loop ? "" : "_one", x->walker, name, npu_place(x->emitter, s->node),
            is_loop ? ";" : "");
    npu_open(x);
}

static void npu_send(npu_expand *x, const ptowsp_statement *s) {
    npu_before_exprs(x, s->node, &s->value, 1);
    npu_add(x, "%s.send(%s, ", npu_user_name(x->emitter, NPU_CHANNEL, s->channel), x->walker);
    npu_add_expr(x, s->value, NPU_LITERAL_TYPED);
    npu_line(x, ", %u);", npu_place(x->emitter, s->node));
}

static void npu_channel_word(npu_expand *x, const ptowsp_statement *s, const char *word) {
    npu_line(x, "%s.%s(%s, %u);", npu_user_name(x->emitter, NPU_CHANNEL, s->channel), word,
             x->walker, npu_place(x->emitter, s->node));
}

NPU_INTERNAL void npu_pipeline_statement(npu_expand *x, uint32_t i, const ptowsp_statement *s) {
    switch (s->kind) {
    case PTOWSP_STATEMENT_PIPELINE: npu_pipeline_begin(x, i, s); break;
    case PTOWSP_STATEMENT_PROCESS: npu_process_begin(x, s); break;
    case PTOWSP_STATEMENT_CONSUME:
    case PTOWSP_STATEMENT_RECEIVE: npu_receive(x, s); break;
    case PTOWSP_STATEMENT_SEND: npu_send(x, s); break;
    case PTOWSP_STATEMENT_CLOSE: npu_channel_word(x, s, "close"); break;
    case PTOWSP_STATEMENT_RECORD: npu_channel_word(x, s, "record"); break;
    default: npu_channel_word(x, s, "wait"); break;
    }
}

NPU_INTERNAL void npu_pipeline_end(npu_expand *x, const ptowsp_statement *begin) {
    if (begin->kind == PTOWSP_STATEMENT_PROCESS) {
        npu_process_end(x, begin);
        return;
    }
    npu_line(x, "pipeline.run();");
    npu_close(x, "");
}

// Why a task started when it did: its waits and the tasks that waited for it, each with the time between
// the two, and the chain that leads from it to the end.
//
// The task that another one waited for last is its cause. Causes make a tree; the chain follows the
// branch that ends last. Without times, a task ends one step after all that it waits for.

#include "dump.h"

typedef struct dump_cause {
    uint64_t end;    // when it ends, or the end of its waits, if it has no time
    uint64_t last;   // the end of the branch
    uint32_t cause;  // DUMP_NONE: it waits for nothing
    uint32_t next;   // in the branch; DUMP_NONE: it is the last
} dump_cause;

static void dump_causes_find(const ptowsp_dump *dump, dump_cause *causes) {
    for (uint32_t t = 0; t < dump->task_count; t++) {
        const dump_task *task = &dump->tasks[t];
        dump_cause *c = &causes[t];
        c->cause = c->next = DUMP_NONE;
        for (uint32_t i = 0; i < task->in_count; i++) {
            const uint32_t pred = dump->edges[task->first_in + i].pred;
            if (c->cause == DUMP_NONE || causes[pred].end > causes[c->cause].end) {
                c->cause = pred;
            }
        }
        const uint64_t ready = c->cause == DUMP_NONE ? 0 : causes[c->cause].end;
        c->end = task->end ? task->end : ready + !dump->has_swimlane;
        c->last = c->end;
    }
    for (uint32_t t = dump->task_count; t-- > 0;) {
        const uint32_t cause = causes[t].cause;
        if (cause != DUMP_NONE &&
            (causes[cause].next == DUMP_NONE || causes[t].last >= causes[cause].last)) {
            causes[cause].next = t;
            causes[cause].last =
                causes[t].last > causes[cause].last ? causes[t].last : causes[cause].last;
        }
    }
}

// Times count from the first start of the swimlane.
static void dump_explain_task(const ptowsp_dump *dump, uint32_t t, ptowsp_output text) {
    const dump_task *task = &dump->tasks[t];
    char room[DUMP_KERNEL_TEXT];
    dump_print(text, "task %llu (", (unsigned long long)task->id);
    dump_escaped(text, PTOWSP_DUMP_TEXT, dump_kernel(dump, task, room));
    dump_print(text, ")");
    if (task->end) {
        dump_print(text, ", core %u, cycles %llu to %llu", (unsigned)task->core,
                   (unsigned long long)(task->start - dump->first_start),
                   (unsigned long long)(task->end - dump->first_start));
    }
}

// Who made an edge, by which argument and tensor of the task that waits.
static void dump_explain_edge(const ptowsp_dump *dump, const dump_edge *edge, ptowsp_output text) {
    const dump_task *succ = &dump->tasks[edge->succ];
    dump_print(text, " by ");
    dump_escaped(text, PTOWSP_DUMP_TEXT, dump_source_name(dump, edge->source));
    if (edge->arg >= 0 && (uint32_t)edge->arg < succ->arg_count) {
        const dump_arg *arg = &dump->args[succ->first_arg + (uint32_t)edge->arg];
        dump_print(text, ", argument %d, tensor %llu", (int)edge->arg,
                   (unsigned long long)arg->tensor_id);
    }
}

// The time between both ends of an edge. `other` is the end that is not explained.
static void dump_explain_line(const ptowsp_dump *dump, const dump_edge *edge, uint32_t other,
                              bool is_cause, ptowsp_output text) {
    const dump_task *before = &dump->tasks[edge->pred], *after = &dump->tasks[edge->succ];
    dump_print(text, is_cause ? "  * " : "    ");
    dump_explain_task(dump, other, text);
    dump_explain_edge(dump, edge, text);
    if (before->end && after->end && after->start >= before->end) {
        dump_print(text, ": %llu cycles before", (unsigned long long)(after->start - before->end));
    } else if (before->end && after->end) {
        dump_print(text, ": ended %llu cycles AFTER the start",
                   (unsigned long long)(before->end - after->start));
    }
    dump_print(text, "\n");
}

DUMP_INTERNAL bool dump_print_explain(ptowsp_dump *dump, uint32_t t, ptowsp_output text) {
    const dump_task *task = &dump->tasks[t];
    dump_cause *causes = (dump_cause *)dump_zeroed(dump->task_count, sizeof *causes);
    if (!causes) {
        return dump_out_of_memory(dump);
    }
    dump_causes_find(dump, causes);
    dump_explain_task(dump, t, text);
    dump_print(text, "\n  waited for %u edges\n", (unsigned)task->in_count);
    for (uint32_t i = 0; i < task->in_count; i++) {
        const dump_edge *edge = &dump->edges[task->first_in + i];
        dump_explain_line(dump, edge, edge->pred, edge->pred == causes[t].cause, text);
    }
    dump_print(text, "  held up %u edges (*: these waited for it last)\n",
               (unsigned)task->out_count);
    for (uint32_t i = 0; i < task->out_count; i++) {
        const dump_edge *edge = &dump->edges[dump->outs[task->first_out + i]];
        dump_explain_line(dump, edge, edge->succ, causes[edge->succ].cause == t, text);
    }
    dump_print(text, "  chain to the end\n");
    for (uint32_t at = t; at != DUMP_NONE; at = causes[at].next) {
        dump_print(text, "    ");
        dump_explain_task(dump, at, text);
        dump_print(text, "\n");
    }
    dump_resize(causes, 0);
    return true;
}

// Edges and tasks that are worth a look: edges that others imply, edges without data, and
// tasks with more edges than a descriptor holds.

#include "dump.h"

#include <stdlib.h>

#define DUMP_FAN_MAX 64u  // inline in a descriptor of the runtime

// Do two tasks share bytes that one of them writes? Yes as well where that cannot be known.
static bool dump_shares_data(const ptowsp_dump *dump, const dump_task *a, const dump_task *b) {
    for (uint32_t i = 0; i < a->arg_count; i++) {
        const dump_arg *x = &dump->args[a->first_arg + i];
        for (uint32_t k = 0; k < b->arg_count; k++) {
            const dump_arg *y = &dump->args[b->first_arg + k];
            if (x->region == DUMP_NONE || y->region == DUMP_NONE || x->type == DUMP_TYPE_NO_DEP ||
                y->type == DUMP_TYPE_NO_DEP ||
                ((dump_writes(x) || dump_writes(y)) &&
                 (dump_pair_how(dump, x->region, y->region) & DUMP_SHARES))) {
                return true;
            }
        }
    }
    return a->arg_count == 0 || b->arg_count == 0;
}

static int dump_compare_down(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x > y ? -1 : x < y;
}

// Edges of one task, from the latest of those that it waits for. Several edges between two tasks count
// as one. notes: by task, of the edges from it.
static void dump_note_edges(ptowsp_dump *dump, uint32_t t, uint32_t *preds, uint8_t *notes) {
    const dump_task *task = &dump->tasks[t];
    for (uint32_t i = 0; i < task->in_count; i++) {
        const dump_edge *edge = &dump->edges[task->first_in + i];
        preds[i] = edge->pred;
        notes[edge->pred] = edge->note;
    }
    qsort(preds, task->in_count, sizeof *preds, dump_compare_down);
    for (uint32_t i = 0; i < task->in_count; i++) {
        const uint32_t pred = preds[i];
        if (i > 0 && preds[i - 1] == pred) {
            continue;
        }
        const dump_task *before = &dump->tasks[pred];
        if (!notes[pred] && dump_kernel_id(before) >= 0 && dump_kernel_id(task) >= 0 &&
            !dump_shares_data(dump, before, task)) {
            notes[pred] = PTOWSP_DUMP_NO_DATA;
        }
        if (notes[pred]) {
            dump_finding_add(dump, (ptowsp_dump_kind)notes[pred], pred, t);
        }
    }
    for (uint32_t i = 0; i < task->in_count; i++) {
        dump_edge *edge = &dump->edges[task->first_in + i];
        edge->note = notes[edge->pred];
    }
}

static void dump_note_fan(ptowsp_dump *dump, ptowsp_dump_kind kind, uint32_t task, uint32_t count) {
    ptowsp_dump_finding *finding =
        count > DUMP_FAN_MAX ? dump_finding_add(dump, kind, task, task) : NULL;
    if (finding) {
        finding->count = count;
    }
}

DUMP_INTERNAL bool dump_note(ptowsp_dump *dump) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < dump->task_count; i++) {
        const uint32_t count = dump->tasks[i].in_count;
        most = most > count ? most : count;
    }
    uint32_t *preds = (uint32_t *)dump_zeroed(most, sizeof *preds);
    uint8_t *notes = (uint8_t *)dump_zeroed(dump->task_count, sizeof *notes);
    if (!preds || !notes) {
        dump_resize(preds, 0);
        dump_resize(notes, 0);
        return dump_out_of_memory(dump);
    }
    for (uint32_t i = 0; i < dump->task_count; i++) {
        dump_note_edges(dump, i, preds, notes);
        dump_note_fan(dump, PTOWSP_DUMP_FAN_IN, i, dump->tasks[i].in_count);
        dump_note_fan(dump, PTOWSP_DUMP_FAN_OUT, i, dump->tasks[i].out_count);
    }
    dump_resize(preds, 0);
    dump_resize(notes, 0);
    return dump->status == PTOWSP_OK;
}

// Does one task come before another, by any chain of edges? Asked some million times, of graphs with
// as many edges, so neither a matrix of bits nor a search each time will do. In this order:
//
//      labels   how many edges are above a task and below it at most; the first task that it comes
//               after, and the last one that comes after it: no, if these say so; yes, if both are on one
//               of the chains that the tasks are cut into
//      memo     earlier answers, in a table where later ones replace them
//      search   backwards from the later task, where neither decides, and not beyond the earlier one
//
// All tasks of a search go into the memo: a region that all read then costs each of them a step.

#include "dump.h"

#define DUMP_MEMO (1u << 20)

DUMP_INTERNAL void dump_order_free(ptowsp_dump *dump) {
    dump_resize(dump->labels, 0);
    dump_resize(dump->stack, 0);
    dump_resize(dump->memo, 0);
    dump->labels = NULL;
    dump->stack = NULL;
    dump->memo = NULL;
}

DUMP_INTERNAL bool dump_order_make(ptowsp_dump *dump) {
    dump->labels = (dump_label *)dump_zeroed(dump->task_count, sizeof *dump->labels);
    dump->stack = (uint32_t *)dump_zeroed(2 * (uint64_t)dump->task_count, sizeof *dump->stack);
    dump->memo = (uint64_t *)dump_zeroed(DUMP_MEMO, sizeof *dump->memo);
    if (!dump->labels || !dump->stack || !dump->memo) {
        return dump_out_of_memory(dump);
    }
    for (uint32_t i = 0; i < dump->task_count; i++) {
        dump->labels[i].first = dump->labels[i].last = dump->labels[i].chain = i;
        dump->labels[i].is_end = true;
    }
    for (uint32_t i = 0; i < dump->edge_count; i++) {  // by the task that waits
        dump_label *pred = &dump->labels[dump->edges[i].pred];
        dump_label *succ = &dump->labels[dump->edges[i].succ];
        succ->level = succ->level > pred->level ? succ->level : pred->level + 1;
        succ->first = succ->first < pred->first ? succ->first : pred->first;
        if (pred->is_end && succ->chain == dump->edges[i].succ) {  // which begins no chain then
            pred->is_end = false;
            succ->chain = pred->chain;
        }
    }
    for (uint32_t i = dump->edge_count; i-- > 0;) {
        dump_label *pred = &dump->labels[dump->edges[i].pred];
        const dump_label *succ = &dump->labels[dump->edges[i].succ];
        pred->height = pred->height > succ->height ? pred->height : succ->height + 1;
        pred->last = pred->last > succ->last ? pred->last : succ->last;
    }
    return true;
}

// -- questions ------------------------------------------------------------------------------------

// An entry of the memo: both tasks and the answer, never 0 (tasks are below 2^31, the later is not 0).
static uint64_t *dump_memo_at(ptowsp_dump *dump, uint32_t task, uint32_t other) {
    const uint64_t key = ((uint64_t)task << 32 | other) * UINT64_C(0x9e3779b97f4a7c15);
    return &dump->memo[key >> 44];
}

static uint64_t dump_memo_key(uint32_t task, uint32_t other, bool is_before) {
    return (uint64_t)is_before << 63 | (uint64_t)task << 32 | other;
}

// 1: before, 0: not, -1: not decided.
static int dump_decide(ptowsp_dump *dump, uint32_t task, uint32_t other) {
    const dump_label *a = &dump->labels[task], *b = &dump->labels[other];
    if (a->chain == b->chain) {
        return task <= other;
    }
    if (a->level >= b->level || a->height <= b->height || b->first > task || a->last < other) {
        return 0;
    }
    const uint64_t memo = *dump_memo_at(dump, task, other);
    return memo == dump_memo_key(task, other, true)    ? 1
           : memo == dump_memo_key(task, other, false) ? 0
                                                       : -1;
}

// The stack holds a chain of tasks, and for each which of its edges is next. Edges are sorted as the
// dump has them; the last ones lead to the latest tasks as a rule, and so come last here.
static bool dump_search(ptowsp_dump *dump, uint32_t task, uint32_t other) {
    uint32_t depth = 1;
    dump->stamp++;
    dump->stack[0] = other;
    dump->stack[1] = 0;
    while (depth > 0) {
        uint32_t *top = &dump->stack[2 * (depth - 1)];
        const dump_task *at = &dump->tasks[top[0]];
        if (top[1] == at->in_count) {
            *dump_memo_at(dump, task, top[0]) = dump_memo_key(task, top[0], false);
            depth--;
            continue;
        }
        const uint32_t pred = dump->edges[at->first_in + top[1]++].pred;
        if (pred < task || dump->labels[pred].seen == dump->stamp) {
            continue;
        }
        dump->labels[pred].seen = dump->stamp;
        const int decided = dump_decide(dump, task, pred);
        if (decided > 0) {
            for (; depth > 0; depth--) {
                const uint32_t on = dump->stack[2 * (depth - 1)];
                *dump_memo_at(dump, task, on) = dump_memo_key(task, on, true);
            }
            return true;
        }
        if (decided < 0) {
            dump->stack[2 * depth] = pred;
            dump->stack[2 * depth + 1] = 0;
            depth++;
        }
    }
    return false;
}

DUMP_INTERNAL bool dump_is_before(ptowsp_dump *dump, uint32_t task, uint32_t other) {
    const int decided = dump_decide(dump, task, other);
    return decided < 0 ? dump_search(dump, task, other) : decided > 0;
}

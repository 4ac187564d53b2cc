// Does one task come before another, by any chain of edges? Asked some million times, of graphs with
// as many edges, so neither a matrix of bits nor a search each time will do. In this order:
//
//      level    a task is above all that it waits for: no, if levels say so
//      labels   two orders of a search, where all that follows a task has lower numbers, in an
//               interval: no, if one does not hold the other (Yildirim, Chaoji and Zaki, GRAIL, 2010)
//      memo     what has been found before, in a table where later answers replace earlier ones
//      search   backwards from the later task, where none of these decides
//
// A chain that is found is put into the memo for all its tasks: what is written once and read by all
// then costs each reader a step.

#include "dump.h"

#define DUMP_MEMO (1u << 20)

// Numbers of a search that goes down from all tasks, edges forwards or backwards in each list. All
// edges lead to higher indices, so a task's interval is known when those above it are.
typedef struct dump_walk {
    uint32_t task, next;
} dump_walk;

static bool dump_label_walk(ptowsp_dump *dump, int which) {
    dump_walk *walk = (dump_walk *)dump_zeroed(dump->task_count, sizeof *walk);
    if (!walk) {
        return dump_out_of_memory(dump);
    }
    uint32_t number = 0;
    for (uint32_t i = 0; i < dump->task_count; i++) {
        const uint32_t root = which ? dump->task_count - 1 - i : i;
        uint32_t depth = 0;
        if (dump->labels[root].high[which] || dump->tasks[root].in_count) {
            continue;
        }
        walk[depth].task = root;
        walk[depth++].next = 0;
        dump->labels[root].low[which] = UINT32_MAX;
        dump->labels[root].high[which] = UINT32_MAX;  // begun
        while (depth > 0) {
            dump_walk *top = &walk[depth - 1];
            const dump_task *task = &dump->tasks[top->task];
            dump_label *label = &dump->labels[top->task];
            if (top->next == task->out_count) {
                label->high[which] = ++number;
                label->low[which] = label->low[which] < number ? label->low[which] : number;
                const uint32_t low = label->low[which];
                if (--depth > 0) {
                    dump_label *above = &dump->labels[walk[depth - 1].task];
                    above->low[which] = low < above->low[which] ? low : above->low[which];
                }
                continue;
            }
            const uint32_t ordinal = which ? task->out_count - 1 - top->next : top->next;
            const uint32_t to = dump->edges[dump->outs[task->first_out + ordinal]].succ;
            top->next++;
            dump_label *below = &dump->labels[to];
            if (below->high[which]) {
                label->low[which] =
                    below->low[which] < label->low[which] ? below->low[which] : label->low[which];
            } else {
                below->low[which] = below->high[which] = UINT32_MAX;
                walk[depth].task = to;
                walk[depth++].next = 0;
            }
        }
    }
    dump_resize(walk, 0);
    return true;
}

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
    for (uint32_t i = 0; i < dump->edge_count; i++) {  // by the task that waits
        const uint32_t above = dump->labels[dump->edges[i].pred].level + 1;
        dump_label *label = &dump->labels[dump->edges[i].succ];
        label->level = label->level > above ? label->level : above;
    }
    return dump_label_walk(dump, 0) && dump_label_walk(dump, 1);
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
    if (task == other) {
        return 1;
    }
    if (a->level >= b->level || b->high[0] > a->high[0] || b->low[0] < a->low[0] ||
        b->high[1] > a->high[1] || b->low[1] < a->low[1]) {
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

// Does one task come before another, by any chain of edges? Asked some million times, of graphs with
// as many edges, so neither a matrix of bits nor a search each time will do. In this order:
//
//      level    a task is above all that it waits for: no, if levels say so
//      tree     each task under the last one that it waits for; an interval of numbers holds all that
//               is below a task: yes, if it holds the other
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

// Levels, and the tree of each task's last predecessor: sizes from the end, intervals from the start.
static bool dump_label_tree(ptowsp_dump *dump) {
    const uint32_t count = dump->task_count;
    uint32_t *sizes = (uint32_t *)dump_zeroed(2 * (uint64_t)count, sizeof *sizes), *used;
    if (!sizes) {
        return dump_out_of_memory(dump);
    }
    used = sizes + count;
    for (uint32_t i = 0; i < count; i++) {
        const dump_task *task = &dump->tasks[i];
        uint32_t parent = DUMP_NONE, level = 0;
        for (uint32_t k = 0; k < task->in_count; k++) {
            const uint32_t pred = dump->edges[task->first_in + k].pred;
            level = level > dump->labels[pred].level ? level : dump->labels[pred].level + 1;
            parent = parent == DUMP_NONE || pred > parent ? pred : parent;
        }
        dump->labels[i].level = level;
        dump->labels[i].tree_low = parent;
        sizes[i] = 1;
    }
    for (uint32_t i = count; i-- > 0;) {
        if (dump->labels[i].tree_low != DUMP_NONE) {
            sizes[dump->labels[i].tree_low] += sizes[i];
        }
    }
    uint32_t next = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t parent = dump->labels[i].tree_low;
        uint32_t low = next;
        if (parent == DUMP_NONE) {
            next += sizes[i];
        } else {
            low = dump->labels[parent].tree_low + 1 + used[parent];
            used[parent] += sizes[i];
        }
        dump->labels[i].tree_low = low;
        dump->labels[i].tree_high = low + sizes[i];
    }
    dump_resize(sizes, 0);
    return true;
}

DUMP_INTERNAL bool dump_order_make(ptowsp_dump *dump) {
    dump->labels = (dump_label *)dump_zeroed(dump->task_count, sizeof *dump->labels);
    dump->stack = (uint32_t *)dump_zeroed(2 * (uint64_t)dump->task_count, sizeof *dump->stack);
    dump->memo = (uint64_t *)dump_zeroed(DUMP_MEMO, sizeof *dump->memo);
    if (!dump->labels || !dump->stack || !dump->memo) {
        return dump_out_of_memory(dump);
    }
    return dump_label_tree(dump) && dump_label_walk(dump, 0) && dump_label_walk(dump, 1);
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
    if (a->tree_low <= b->tree_low && b->tree_low < a->tree_high) {
        return 1;
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

// Ids to indices: edges by task, arguments by tensor and region, times by task.
//
// Edges name tasks by their ids. A task that waits is in the dump; one that is waited for need not
// be, as tasks that only allocate memory are left out. Those get an index before all others: their
// waits are unknown.

#include "dump.h"

#include <stdlib.h>

// -- tasks ----------------------------------------------------------------------------------------

// Where a task's index is in the table, or the free place for it.
static uint32_t dump_index_at(const ptowsp_dump *dump, uint64_t id) {
    uint32_t at = (uint32_t)(id * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (dump->index_size - 1);
    while (dump->index[at] != DUMP_NONE && dump->tasks[dump->index[at]].id != id) {
        at = (at + 1) & (dump->index_size - 1);
    }
    return at;
}

DUMP_INTERNAL uint32_t dump_find(const ptowsp_dump *dump, uint64_t task_id) {
    return dump->index[dump_index_at(dump, task_id)];
}

static bool dump_index_make(ptowsp_dump *dump) {
    uint32_t size = 64;
    while (size < 2 * dump->task_count) {
        size *= 2;
    }
    dump_resize(dump->index, 0);
    dump->index = (uint32_t *)dump_resize(NULL, size * sizeof(uint32_t));
    if (!dump->index) {
        return dump_out_of_memory(dump);
    }
    dump->index_size = size;
    memset(dump->index, 0xff, size * sizeof(uint32_t));
    for (uint32_t i = 0; i < dump->task_count; i++) {
        const uint32_t at = dump_index_at(dump, dump->tasks[i].id);
        if (dump->index[at] != DUMP_NONE) {
            return dump_fail(dump, PTOWSP_INVALID_PARAMS, i,
                             "dump: deps.json: task %llu is there twice",
                             (unsigned long long)dump->tasks[i].id);
        }
        dump->index[at] = i;
    }
    return true;
}

static int dump_compare_ids(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

// Ids that are not in the table: of tasks that edges wait for and, without deps.json, that have times.
static uint32_t dump_ids_missing(const ptowsp_dump *dump, uint64_t *ids) {
    const uint32_t from_rows = dump->has_deps ? 0 : dump->row_count;
    uint32_t count = 0, kept = 0;
    for (uint32_t i = 0; i < dump->edge_count + from_rows; i++) {
        const uint64_t id = i < dump->edge_count ? dump->edges[i].pred_id
                                                 : dump->rows[i - dump->edge_count].task_id;
        if (dump_find(dump, id) == DUMP_NONE) {
            ids[count++] = id;
        }
    }
    qsort(ids, count, sizeof *ids, dump_compare_ids);
    for (uint32_t i = 0; i < count; i++) {
        if (kept == 0 || ids[kept - 1] != ids[i]) {
            ids[kept++] = ids[i];
        }
    }
    return kept;
}

// Puts tasks that are left out in front of all others.
static bool dump_tasks_add(ptowsp_dump *dump) {
    uint64_t *ids =
        (uint64_t *)dump_zeroed((uint64_t)dump->edge_count + dump->row_count, sizeof *ids);
    const uint32_t added = ids ? dump_ids_missing(dump, ids) : 0, count = dump->task_count + added;
    dump_task *tasks = ids ? (dump_task *)dump_zeroed(count, sizeof *tasks) : NULL;
    bool is_good = tasks != NULL || dump_out_of_memory(dump);
    if (count > PTOWSP_DUMP_TASK_MAX) {
        is_good = dump_fail(dump, PTOWSP_LIMIT_EXCEEDED, PTOWSP_DUMP_TASK_MAX,
                            "dump: more than %u tasks", (unsigned)PTOWSP_DUMP_TASK_MAX);
    }
    for (uint32_t i = 0; i < added && is_good; i++) {
        tasks[i].id = ids[i];
        tasks[i].is_left_out = true;
    }
    dump_resize(ids, 0);
    if (!is_good || added == 0) {
        dump_resize(tasks, 0);
        return is_good;
    }
    if (dump->task_count) {
        memcpy(tasks + added, dump->tasks, dump->task_count * sizeof *tasks);
    }
    dump_resize(dump->tasks, 0);
    dump->tasks = tasks;
    dump->task_capacity = dump->task_count = count;
    return dump_index_make(dump);
}

// -- edges ----------------------------------------------------------------------------------------

static bool dump_edge_ends(ptowsp_dump *dump, uint32_t i) {
    dump_edge *edge = &dump->edges[i];
    edge->pred = dump_find(dump, edge->pred_id);
    edge->succ = dump_find(dump, edge->succ_id);
    if (edge->succ == DUMP_NONE || dump->tasks[edge->succ].is_left_out) {
        return dump_fail(dump, PTOWSP_INVALID_PARAMS, i,
                         "dump: deps.json: edge %u leads to task %llu, which is not there",
                         (unsigned)i, (unsigned long long)edge->succ_id);
    }
    if (edge->pred >= edge->succ) {
        return dump_fail(dump, PTOWSP_INVALID_PARAMS, i,
                         "dump: deps.json: edge %u: task %llu waits for %llu, which is not "
                         "submitted before it",
                         (unsigned)i, (unsigned long long)edge->succ_id,
                         (unsigned long long)edge->pred_id);
    }
    dump->tasks[edge->succ].kept_count += edge->is_no_wait && !dump->tasks[edge->pred].is_left_out;
    dump->tasks[edge->succ].in_count += !edge->is_no_wait;
    dump->tasks[edge->pred].out_count += !edge->is_no_wait;
    return true;
}

// Sorted by the task that waits, and lists by the one that is waited for: both by counting.
static bool dump_edges_sort(ptowsp_dump *dump) {
    dump_edge *sorted = (dump_edge *)dump_zeroed(dump->edge_count, sizeof *sorted);
    dump->outs = (uint32_t *)dump_zeroed(dump->edge_count, sizeof(uint32_t));
    if (!sorted || !dump->outs) {
        dump_resize(sorted, 0);
        return dump_out_of_memory(dump);
    }
    uint32_t in = 0, out = 0;
    for (uint32_t i = 0; i < dump->task_count; i++) {
        dump_task *task = &dump->tasks[i];
        task->first_in = in;
        task->first_out = out;
        in += task->in_count;
        out += task->out_count;
        task->in_count = task->out_count = 0;
    }
    for (uint32_t i = 0; i < dump->edge_count; i++) {
        dump_task *task = &dump->tasks[dump->edges[i].succ];
        sorted[task->first_in + task->in_count++] = dump->edges[i];
    }
    for (uint32_t i = 0; i < dump->edge_count; i++) {
        dump_task *task = &dump->tasks[sorted[i].pred];
        dump->outs[task->first_out + task->out_count++] = i;
    }
    dump_resize(dump->edges, 0);
    dump->edges = sorted;
    dump->edge_capacity = dump->edge_count;
    return true;
}

// -- arguments ------------------------------------------------------------------------------------

static int dump_compare_tensors(const void *a, const void *b) {
    return dump_compare_ids(&((const dump_tensor *)a)->id, &((const dump_tensor *)b)->id);
}

static uint32_t dump_tensor_find(const ptowsp_dump *dump, uint64_t id) {
    dump_tensor key;
    memset(&key, 0, sizeof key);
    key.id = id;
    const dump_tensor *at =
        dump->tensor_count ? (const dump_tensor *)bsearch(&key, dump->tensors, dump->tensor_count,
                                                          sizeof key, dump_compare_tensors)
                           : NULL;
    return at ? (uint32_t)(at - dump->tensors) : DUMP_NONE;
}

#define DUMP_REGION_BYTES offsetof(dump_region, first_pair)  // that tell one from another

// Equal regions are one: most tasks touch regions that others touch as well.
static bool dump_region_add(ptowsp_dump *dump, const dump_region *region, uint32_t *table,
                            uint32_t size, uint32_t *out_region) {
    uint32_t at = (uint32_t)ptowsp_hash(PTOWSP_HASH_START, region, DUMP_REGION_BYTES) & (size - 1);
    while (table[at] != DUMP_NONE &&
           memcmp(&dump->regions[table[at]], region, DUMP_REGION_BYTES) != 0) {
        at = (at + 1) & (size - 1);
    }
    if (table[at] == DUMP_NONE) {
        if (!dump_grow((void **)&dump->regions, dump->region_count, &dump->region_capacity,
                       sizeof *region)) {
            return dump_out_of_memory(dump);
        }
        table[at] = dump->region_count;
        dump->regions[dump->region_count++] = *region;
    }
    *out_region = table[at];
    return true;
}

static bool dump_arg_link(ptowsp_dump *dump, uint32_t task, uint32_t i, uint32_t *table,
                          uint32_t size) {
    dump_arg *arg = &dump->args[i];
    const unsigned ordinal = i - dump->tasks[task].first_arg;
    const unsigned long long id = dump->tasks[task].id;
    arg->tensor = dump_tensor_find(dump, arg->tensor_id);
    if (arg->tensor == DUMP_NONE) {
        return dump_fail(dump, PTOWSP_INVALID_PARAMS, task,
                         "dump: deps.json: task %llu, argument %u: tensor %llu is not there", id,
                         ordinal, (unsigned long long)arg->tensor_id);
    }
    const dump_tensor *tensor = &dump->tensors[arg->tensor];
    arg->element_bytes = arg->element_bytes ? arg->element_bytes : tensor->element_bytes;
    if (arg->type >= DUMP_TYPE_COUNT || !arg->element_bytes) {
        dump->report.unchecked_count++;
        return true;
    }
    dump_region region;
    if (!dump_region_make(arg, tensor->address, &region)) {
        return dump_fail(dump, PTOWSP_INVALID_PARAMS, task,
                         "dump: deps.json: task %llu, argument %u: its bytes are beyond 64 bits",
                         id, ordinal);
    }
    return region.run == 0 || dump_region_add(dump, &region, table, size, &arg->region);
}

static bool dump_args_link(ptowsp_dump *dump) {
    uint32_t size = 64;
    while (size < 2 * dump->arg_count) {
        size *= 2;
    }
    uint32_t *table = (uint32_t *)dump_resize(NULL, size * sizeof *table);
    if (!table) {
        return dump_out_of_memory(dump);
    }
    memset(table, 0xff, size * sizeof *table);
    if (dump->tensor_count) {
        qsort(dump->tensors, dump->tensor_count, sizeof *dump->tensors, dump_compare_tensors);
    }
    for (uint32_t t = 0; t < dump->task_count && dump->status == PTOWSP_OK; t++) {
        const dump_task *task = &dump->tasks[t];
        for (uint32_t i = 0; i < task->arg_count; i++) {
            if (!dump_arg_link(dump, t, task->first_arg + i, table, size)) {
                break;
            }
        }
    }
    dump_resize(table, 0);
    return dump->status == PTOWSP_OK;
}

DUMP_INTERNAL bool dump_reads(const dump_arg *arg) {
    return arg->type == DUMP_TYPE_INPUT || arg->type == DUMP_TYPE_INOUT;
}

DUMP_INTERNAL bool dump_writes(const dump_arg *arg) {
    return arg->type == DUMP_TYPE_OUTPUT || arg->type == DUMP_TYPE_INOUT ||
           arg->type == DUMP_TYPE_OUTPUT_EXISTING;
}

// -- times ----------------------------------------------------------------------------------------

static bool dump_rows_link(ptowsp_dump *dump) {
    for (uint32_t i = 0; i < dump->row_count; i++) {
        const dump_row *row = &dump->rows[i];
        const uint32_t at = dump_find(dump, row->task_id);
        if (at == DUMP_NONE) {
            return dump_fail(dump, PTOWSP_DIFFERENT, i,
                             "dump: chip_swimlane_records.json is of another run: task %llu is "
                             "not in deps.json",
                             (unsigned long long)row->task_id);
        }
        dump_task *task = &dump->tasks[at];
        if (!task->end || row->start < task->start) {
            task->start = row->start;
            task->core = row->core;
        }
        task->end = row->end > task->end ? row->end : task->end;
        dump->first_start =
            i == 0 || row->start < dump->first_start ? row->start : dump->first_start;
    }
    return true;
}

DUMP_INTERNAL bool dump_link(ptowsp_dump *dump) {
    if (!dump_index_make(dump) || !dump_tasks_add(dump)) {
        return false;
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < dump->edge_count; i++) {
        if (!dump_edge_ends(dump, i)) {
            return false;
        }
        dump->edges[count] = dump->edges[i];
        count += !dump->edges[i].is_no_wait;
    }
    dump->edge_count = count;
    dump->report.task_count = dump->task_count;
    dump->report.edge_count = dump->edge_count;
    return dump_edges_sort(dump) && dump_args_link(dump) && dump_rows_link(dump);
}

DUMP_INTERNAL int64_t dump_kernel_id(const dump_task *task) {
    for (uint32_t i = 0; i < task->kernels.count && i < 3; i++) {
        if (task->kernels.values[i] >= 0) {
            return task->kernels.values[i];
        }
    }
    return -1;
}

DUMP_INTERNAL const char *dump_kernel(const ptowsp_dump *dump, const dump_task *task, char *text) {
    const int64_t id = dump_kernel_id(task);
    if (id < 0) {
        return task->is_left_out ? "an allocation" : "no kernel";
    }
    for (uint32_t i = 0; i < dump->name_count; i++) {
        if (dump->names[i].id == id) {
            return dump->names[i].text;
        }
    }
    snprintf(text, DUMP_KERNEL_TEXT, "kernel %lld", (long long)id);
    return text;
}

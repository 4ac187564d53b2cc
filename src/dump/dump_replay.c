// Replay: from a dump to a list of tasks, and its run.
//
//      row of the swimlane        an entry with its cycles, on a core of its kind
//      rows on both kinds         an entry of MIX for each row of a cube core
//      several entries, or none   a join after them, which later tasks wait for
//
// In the order of OBSERVED entries are sorted by the time at which they started, so that each core has
// them as it ran them, and the lane of each is its core. Where clocks say that a task started before
// one that it waits for, it counts as starting with that one: edges always lead forward.

#include "dump_replay.h"

#include <stdlib.h>

static uint64_t dump_later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static bool dump_replay_fails(dump_replay *r, ptowsp_status status) {
    if (status != PTOWSP_OK && r->dump->status == PTOWSP_OK) {
        r->dump->status = status;  // the context has its text
    }
    return status != PTOWSP_OK;
}

// -- cores and rows -------------------------------------------------------------------------------

// The clock of control, if it is left to the dump: in MHz, to the nearest one.
static bool dump_replay_set_clock(dump_replay *r) {
    ptowsp_control *control = &r->how.control;
    if (control->by == PTOWSP_CONTROL_NONE || control->clock_mhz) {
        return true;
    }
    const uint64_t mhz = r->dump->clock_hz / 1000000 + (r->dump->clock_hz % 1000000 >= 500000);
    if (mhz == 0 || mhz > PTOWSP_CONTROL_CLOCK_MAX) {
        return dump_fail(r->dump, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "dump: replay: control needs clock_mhz: clock_freq_hz is %llu",
                         (unsigned long long)r->dump->clock_hz);
    }
    control->clock_mhz = (uint32_t)mhz;
    return true;
}

// Are the questions good ones?
static bool dump_replay_check(dump_replay *r) {
    ptowsp_dump *dump = r->dump;
    const ptowsp_dump_replay *how = &r->how;
    if (!dump->has_deps || !dump->has_swimlane) {
        return dump_fail(dump, PTOWSP_UNBOUND, PTOWSP_NO_INDEX, "dump: there is no %s",
                         dump->has_deps ? "chip_swimlane_records.json" : "deps.json");
    }
    const bool is_other = how->cube_cores || how->vector_cores || how->task_window || how->dep_pool;
    const char *wrong = (uint32_t)how->order >= PTOWSP_DUMP_ORDER_COUNT ? "there is no such order"
                        : how->percent > 1000                           ? "over 1000 percent"
                        : how->order == PTOWSP_DUMP_ORDER_OBSERVED && is_other
                            ? "other cores, windows and pools are for other orders than OBSERVED"
                            : NULL;
    return wrong
               ? dump_fail(dump, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "dump: replay: %s", wrong)
               : dump_replay_set_clock(r);
}

static bool dump_replay_cores(dump_replay *r) {
    const ptowsp_dump *dump = r->dump;
    r->lanes = (uint32_t *)dump_zeroed(dump->core_count, sizeof *r->lanes);
    for (uint32_t i = 0; r->lanes && i < dump->core_count; i++) {
        r->lanes[i] = dump->cores[i] ? r->cube_count++ : r->vector_count++;
    }
    return r->lanes ? true : dump_out_of_memory(r->dump);
}

// Rows by task: by counting.
static bool dump_replay_rows(dump_replay *r) {
    ptowsp_dump *dump = r->dump;
    r->row_firsts = (uint32_t *)dump_zeroed(dump->task_count + UINT64_C(2), sizeof *r->row_firsts);
    r->rows = (uint32_t *)dump_zeroed(dump->row_count, sizeof *r->rows);
    if (!r->row_firsts || !r->rows) {
        return dump_out_of_memory(dump);
    }
    for (uint32_t i = 0; i < dump->row_count; i++) {
        const dump_row *row = &dump->rows[i];
        if (row->core >= dump->core_count) {
            return dump_fail(dump, PTOWSP_INVALID_PARAMS, i,
                             "dump: task %llu ran on core %u, and core_types has %u cores",
                             (unsigned long long)row->task_id, (unsigned)row->core,
                             (unsigned)dump->core_count);
        }
        r->row_firsts[dump_find(dump, row->task_id) + 2]++;
    }
    for (uint32_t i = 2; i < dump->task_count + 2; i++) {
        r->row_firsts[i] += r->row_firsts[i - 1];
    }
    for (uint32_t i = 0; i < dump->row_count; i++) {
        r->rows[r->row_firsts[dump_find(dump, dump->rows[i].task_id) + 1]++] = i;
    }
    return true;
}

// -- entries --------------------------------------------------------------------------------------

// The kernel of tasks with an id on cores of a kind.
static bool dump_replay_kernel_of(dump_replay *r, const dump_task *task, ptowsp_unit unit,
                                  uint32_t *out_kernel) {
    ptowsp_dump *dump = r->dump;
    const int64_t id = dump_kernel_id(task);
    for (uint32_t i = r->kernel_count; i-- > 0;) {
        if (r->kernels[i].id == id && r->kernels[i].unit == unit) {
            *out_kernel = i;
            return true;
        }
    }
    if (r->kernel_count == DUMP_KERNEL_MAX) {
        return dump_fail(dump, PTOWSP_LIMIT_EXCEEDED, DUMP_KERNEL_MAX,
                         "dump: replay: more than %u kernels", DUMP_KERNEL_MAX);
    }
    if (!dump_grow((void **)&r->kernels, r->kernel_count, &r->kernel_capacity,
                   sizeof *r->kernels)) {
        return dump_out_of_memory(dump);
    }
    dump_replay_kernel *kernel = &r->kernels[r->kernel_count];
    char room[DUMP_KERNEL_TEXT], name[40];
    snprintf(name, sizeof name, "%.39s", dump_kernel(dump, task, room));
    for (char *at = name; *at; at++) {  // what names of a module may have
        *at = *at < ' ' || *at > '~' || strchr("\"'\\", *at) ? '?' : *at;
    }
    bool is_taken = false;
    for (uint32_t i = 0; i < r->kernel_count; i++) {
        is_taken = is_taken || strcmp(r->kernels[i].name, name) == 0;
    }
    snprintf(kernel->name, sizeof kernel->name, is_taken || !*name ? "%s.%u" : "%s", name,
             (unsigned)r->kernel_count);
    kernel->id = id;
    kernel->unit = unit;
    *out_kernel = r->kernel_count++;
    return true;
}

// The cycles of a row: of a task of MIX with one block, from its first start to its last end.
static uint64_t dump_replay_cycles(const dump_replay *r, const dump_task *task,
                                   const dump_entry *entry, uint32_t cube_rows) {
    const bool is_whole = r->kernels[entry->kernel].unit == PTOWSP_UNIT_MIX && cube_rows == 1;
    const uint64_t cycles = is_whole ? task->end - task->start : entry->end - entry->start;
    const uint64_t percent =
        r->how.percent && dump_kernel_id(task) == r->how.kernel ? r->how.percent : 100;
    return cycles / 100 < UINT64_MAX / percent
               ? cycles / 100 * percent + cycles % 100 * percent / 100
               : UINT64_MAX;  // refused by the list
}

static dump_entry *dump_entry_add(dump_replay *r) {
    if (!dump_grow((void **)&r->entries, r->entry_count, &r->entry_capacity, sizeof *r->entries)) {
        dump_out_of_memory(r->dump);
        return NULL;
    }
    dump_entry *entry = &r->entries[r->entry_count];
    memset(entry, 0, sizeof *entry);
    entry->index = r->entry_count++;
    entry->row = DUMP_NONE;
    entry->first_edge = r->edge_count;
    return entry;
}

// An entry waits for another one. Neither may it start before, in the order of OBSERVED.
static bool dump_entry_wait(dump_replay *r, dump_entry *entry, uint32_t before) {
    const dump_entry *other = &r->entries[before];
    if (r->edge_count == INT32_MAX) {
        return dump_fail(r->dump, PTOWSP_LIMIT_EXCEEDED, INT32_MAX,
                         "dump: replay: more than 2^31 edges");
    }
    if (!dump_grow((void **)&r->edges, r->edge_count, &r->edge_capacity, sizeof *r->edges)) {
        return dump_out_of_memory(r->dump);
    }
    r->edges[r->edge_count++] = before;
    entry->edge_count++;
    if (entry->row == DUMP_NONE) {
        entry->start = entry->end = dump_later(entry->end, other->end);
    } else if (other->start > entry->start ||
               (other->start == entry->start && other->end > entry->end)) {
        entry->start = other->start;
        entry->end = other->end;
    }
    return true;
}

// The edges of a task, to its entry i.
static bool dump_replay_edges(dump_replay *r, const dump_task *task, uint32_t i) {
    bool is_good = true;
    for (uint32_t k = 0; k < task->in_count && is_good; k++) {
        const dump_edge *edge = &r->dump->edges[task->first_in + k];
        if ((edge->note == PTOWSP_DUMP_REDUNDANT && r->how.drops_redundant) ||
            (edge->note == PTOWSP_DUMP_NO_DATA && r->how.drops_no_data)) {
            r->result.dropped_count++;
        } else {
            is_good = dump_entry_wait(r, &r->entries[i], r->lasts[edge->pred]);
        }
    }
    return is_good;
}

// An instance of a task, by its row. False: see dump_fail.
static bool dump_replay_instance(dump_replay *r, const dump_task *task, uint32_t row_index,
                                 ptowsp_unit unit, uint32_t cube_rows) {
    const dump_row *row = &r->dump->rows[row_index];
    dump_entry *entry = dump_entry_add(r);
    if (!entry || !dump_replay_kernel_of(r, task, unit, &entry->kernel)) {
        return false;
    }
    entry->row = row_index;
    entry->start = row->start;
    entry->end = row->end;
    entry->lane = r->lanes[row->core];
    entry->cycles = dump_replay_cycles(r, task, entry, cube_rows);
    r->result.instance_count++;
    return true;
}

// The entries of a task. A single instance has its edges. Otherwise a join has them, the
// instances wait for that join, and a second join waits for the instances.
static bool dump_replay_task(dump_replay *r, uint32_t t) {
    ptowsp_dump *dump = r->dump;
    const dump_task *task = &dump->tasks[t];
    const uint32_t first = r->row_firsts[t], end = r->row_firsts[t + 1];
    uint32_t cube_rows = 0;
    for (uint32_t i = first; i < end; i++) {
        cube_rows += dump->cores[dump->rows[r->rows[i]].core];
    }
    const bool is_mix = cube_rows > 0 && cube_rows < end - first;
    const uint32_t count = is_mix ? cube_rows : end - first;
    const uint32_t gate = r->entry_count;
    r->result.untimed_count += count == 0 && dump_kernel_id(task) >= 0;
    if (count != 1 && (!dump_entry_add(r) || !dump_replay_edges(r, task, gate))) {
        return false;
    }
    for (uint32_t i = first; i < end; i++) {
        const bool is_cube = dump->cores[dump->rows[r->rows[i]].core];
        const ptowsp_unit unit = is_mix    ? PTOWSP_UNIT_MIX
                                 : is_cube ? PTOWSP_UNIT_CUBE
                                           : PTOWSP_UNIT_VECTOR;
        if (is_mix && !is_cube) {
            continue;
        }
        if (!dump_replay_instance(r, task, r->rows[i], unit, cube_rows) ||
            !(count == 1 ? dump_replay_edges(r, task, gate)
                         : dump_entry_wait(r, &r->entries[r->entry_count - 1], gate))) {
            return false;
        }
    }
    r->lasts[t] = count > 1 ? r->entry_count : gate;
    bool is_good = count < 2 || dump_entry_add(r) != NULL;
    for (uint32_t i = 1; i <= count && count > 1 && is_good; i++) {
        is_good = dump_entry_wait(r, &r->entries[r->lasts[t]], gate + i);
    }
    return is_good;
}

// Finds the longest chains, from the last entry on.
static void dump_replay_tails(dump_replay *r) {
    for (uint32_t i = r->entry_count; i-- > 0;) {
        dump_entry *entry = &r->entries[i];
        entry->tail += entry->cycles;  // may wrap where the list is refused anyway
        r->result.path_cycles = dump_later(r->result.path_cycles, entry->tail);
        for (uint32_t k = 0; k < entry->edge_count; k++) {
            dump_entry *before = &r->entries[r->edges[entry->first_edge + k]];
            before->tail = dump_later(before->tail, entry->tail);
        }
    }
}

static int dump_compare_entries(const void *a, const void *b) {
    const dump_entry *x = (const dump_entry *)a, *y = (const dump_entry *)b;
    return x->start != y->start ? (x->start < y->start ? -1 : 1)
           : x->end != y->end   ? (x->end < y->end ? -1 : 1)
                                : (x->index > y->index) - (x->index < y->index);
}

static bool dump_replay_entries(dump_replay *r) {
    r->lasts = (uint32_t *)dump_zeroed(r->dump->task_count, sizeof *r->lasts);
    if (!r->lasts) {
        return dump_out_of_memory(r->dump);
    }
    for (uint32_t t = 0; t < r->dump->task_count; t++) {
        if (!dump_replay_task(r, t)) {
            return false;
        }
    }
    bool is_there = r->how.percent == 0;
    for (uint32_t i = 0; i < r->kernel_count; i++) {
        is_there = is_there || r->kernels[i].id == r->how.kernel;
    }
    if (!is_there) {
        return dump_fail(r->dump, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                         "dump: replay: no task with times is of kernel %lld",
                         (long long)r->how.kernel);
    }
    dump_replay_tails(r);
    if (r->how.order == PTOWSP_DUMP_ORDER_OBSERVED && r->entry_count) {
        qsort(r->entries, r->entry_count, sizeof *r->entries, dump_compare_entries);
    }
    r->places = (uint32_t *)dump_zeroed(r->entry_count, sizeof *r->places);
    for (uint32_t i = 0; r->places && i < r->entry_count; i++) {
        r->places[r->entries[i].index] = i;
    }
    return r->places ? true : dump_out_of_memory(r->dump);
}

// -- the list -------------------------------------------------------------------------------------

static bool dump_replay_module(dump_replay *r) {
    if (dump_replay_fails(r, ptowsp_module_create(r->dump->context, NULL, &r->module))) {
        return false;
    }
    for (uint32_t i = 0; i < r->kernel_count; i++) {
        ptowsp_kernel_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.name = r->kernels[i].name;
        desc.axis_count = 2;  // its core, and its tail
        desc.unit = r->kernels[i].unit;
        desc.cycles = 1;
        r->kernels[i].kernel = ptowsp_kernel_make(r->module, &desc);
    }
    return true;
}

static bool dump_replay_list(dump_replay *r) {
    const uint32_t count = r->entry_count;
    ptowsp_task_list list;
    memset(&list, 0, sizeof list);
    r->list_kernels = (ptowsp_kernel *)dump_zeroed(count, sizeof *r->list_kernels);
    r->list_cycles = (ptowsp_cycles *)dump_zeroed(count, sizeof *r->list_cycles);
    r->list_axes = (int64_t *)dump_zeroed(2 * (uint64_t)count, sizeof *r->list_axes);
    r->list_begins = (uint64_t *)dump_zeroed(count + UINT64_C(1), sizeof *r->list_begins);
    r->list_edges = (uint32_t *)dump_zeroed(r->edge_count, sizeof *r->list_edges);
    if (!r->list_kernels || !r->list_cycles || !r->list_axes || !r->list_begins || !r->list_edges) {
        return dump_out_of_memory(r->dump);
    }
    for (uint32_t i = 0; i < count; i++) {
        const dump_entry *entry = &r->entries[i];
        if (entry->row != DUMP_NONE) {
            r->list_kernels[i] = r->kernels[entry->kernel].kernel;
            r->list_cycles[i] = entry->cycles;
            r->list_axes[list.axis_count++] = entry->lane;
            r->list_axes[list.axis_count++] = (int64_t)entry->tail;
        }
        for (uint32_t k = 0; k < entry->edge_count; k++) {
            r->list_edges[list.edge_count++] = r->places[r->edges[entry->first_edge + k]];
        }
        r->list_begins[i + 1] = list.edge_count;
    }
    list.task_count = count;
    list.kernels = r->list_kernels;
    list.cycles = r->list_cycles;
    list.axes = r->list_axes;
    list.edge_begins = r->list_begins;
    list.edges = r->list_edges;
    ptowsp_workload_begin(r->module, "replay");
    ptowsp_task_list_make(r->module, &list);
    ptowsp_scope_end(r->module);
    return true;
}

// -- its run --------------------------------------------------------------------------------------

static void dump_replay_schedule(const dump_replay *r, ptowsp_schedule *schedule) {
    static const ptowsp_dispatch dispatches[] = {
        PTOWSP_DISPATCH_CUSTOM, PTOWSP_DISPATCH_WORK_STEALING, PTOWSP_DISPATCH_WORK_STEALING};
    memset(schedule, 0, sizeof *schedule);
    schedule->dispatch = dispatches[r->how.order];
    if (r->how.order == PTOWSP_DUMP_ORDER_OBSERVED) {
        schedule->dispatch_key = ptowsp_task_arg(r->module, 0);
    } else if (r->how.order == PTOWSP_DUMP_ORDER_CRITICAL) {
        schedule->ready = PTOWSP_READY_PRIORITY;
        schedule->priority_key = ptowsp_task_arg(r->module, 1);
    }
    schedule->dependencies = PTOWSP_DEPENDENCIES_STRUCTURE;
    schedule->pools = PTOWSP_POOLS_BY_UNIT;
    schedule->cube_lane_count = r->result.cube_cores;
    schedule->vector_lane_count = r->result.vector_cores;
    schedule->ring_sizes[PTOWSP_RING_TASKS] = r->how.task_window;
    schedule->ring_sizes[PTOWSP_RING_DEPENDENCIES] = r->how.dep_pool;
    schedule->control = r->how.control;
}

static bool dump_replay_execute(dump_replay *r) {
    ptowsp_context *context = r->dump->context;
    ptowsp_schedule schedule;
    ptowsp_program_desc desc;
    ptowsp_run_options options;
    ptowsp_record_options record;
    memset(&desc, 0, sizeof desc);
    memset(&options, 0, sizeof options);
    memset(&record, 0, sizeof record);
    dump_replay_schedule(r, &schedule);
    desc.schedule = &schedule;
    options.mode = PTOWSP_RUN_TIME_ONLY;
    record.level = PTOWSP_RECORD_TASKS;
    return !dump_replay_fails(r, ptowsp_program_create(context, r->module, &desc, &r->program)) &&
           !dump_replay_fails(r, ptowsp_run_create(context, r->program, &r->run)) &&
           !dump_replay_fails(r, ptowsp_run_record(r->run, &record)) &&
           !dump_replay_fails(r, ptowsp_run_execute(r->run, &options));
}

// Cores that are observed, or asked for. Each kind that is used has one.
static void dump_replay_count_cores(dump_replay *r) {
    ptowsp_dump_replayed *result = &r->result;
    result->cube_cores = r->how.cube_cores ? r->how.cube_cores : r->cube_count;
    result->vector_cores = r->how.vector_cores ? r->how.vector_cores : r->vector_count;
    result->edge_count = r->dump->edge_count;
    for (uint32_t i = 0; i < r->dump->row_count; i++) {
        result->observed_cycles =
            dump_later(result->observed_cycles, r->dump->rows[i].end - r->dump->first_start);
    }
}

DUMP_INTERNAL bool dump_replay_make(dump_replay *replay, ptowsp_dump *dump,
                                    const ptowsp_dump_replay *how) {
    memset(replay, 0, sizeof *replay);
    replay->dump = dump;
    if (how) {
        replay->how = *how;
    }
    const bool has_drops = replay->how.drops_redundant || replay->how.drops_no_data;
    if (!dump_replay_check(replay) || (has_drops && !dump_check_once(dump)) ||
        !dump_replay_cores(replay) || !dump_replay_rows(replay) || !dump_replay_entries(replay)) {
        return false;
    }
    dump_replay_count_cores(replay);
    if (replay->result.instance_count == 0) {
        return true;
    }
    if (!dump_replay_module(replay) || !dump_replay_list(replay) || !dump_replay_execute(replay)) {
        return false;
    }
    replay->result.makespan_cycles = ptowsp_run_result(replay->run)->makespan_cycles;
    replay->result.busy_cycles = ptowsp_run_result(replay->run)->busy_cycles;
    replay->result.control_cycles = ptowsp_run_result(replay->run)->control_cycles;
    replay->result.threads = replay->how.control.threads;
    memcpy(replay->result.idle_cycles, ptowsp_run_idle(replay->run),
           sizeof replay->result.idle_cycles);
    return true;
}

DUMP_INTERNAL void dump_replay_free(dump_replay *replay) {
    ptowsp_run_destroy(replay->run);
    ptowsp_program_destroy(replay->program);
    ptowsp_module_destroy(replay->module);
    void *const all[] = {replay->row_firsts,  replay->rows,      replay->lanes,
                         replay->kernels,     replay->entries,   replay->places,
                         replay->lasts,       replay->edges,     replay->list_kernels,
                         replay->list_cycles, replay->list_axes, replay->list_begins,
                         replay->list_edges};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        dump_resize(all[i], 0);
    }
}

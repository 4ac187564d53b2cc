// Tasks that no edges order and that share bytes, one of them writing: races.
//
// Tasks are taken in order of submission. Each region has lists of the accesses that a later one must
// be compared with. An access leaves its list when a later one stands for it, its shadow:
//
//      same or more bytes, ordered after it, and writing (or both only read)
//
// A task after the shadow then comes after both. Where a task races with a shadow, it is
// compared with the accesses that it stands for as well: the findings are all pairs, and programs without races
// cost a few comparisons for each access.
//
// A created output begins a new life of its bytes: the runtime gives memory only when all that used it
// before has ended.

#include "dump.h"

#include <stdlib.h>

typedef struct dump_access {
    uint32_t task, arg;
    uint32_t next;    // of its list
    uint32_t shadow;  // those that it stands for
    bool reads, writes;
} dump_access;

typedef struct dump_checker {
    ptowsp_dump *dump;
    dump_access *accesses;
    uint32_t *lists[2];  // by region: that only read, that write
    uint32_t *races;  // by earlier task: the later one with which a race has been found, plus 1 ...
    uint32_t *findings;  // ... and the finding, or DUMP_NONE
    uint32_t *near;      // the same of false sharing
    uint32_t *stack;     // shadows to be looked at
    uint32_t access_count, access_capacity, stack_capacity;
} dump_checker;

DUMP_INTERNAL ptowsp_dump_finding *dump_finding_add(ptowsp_dump *dump, ptowsp_dump_kind kind,
                                                    uint32_t before, uint32_t after) {
    if (dump->report.counts[kind]++ >= PTOWSP_DUMP_FINDING_MAX) {
        return NULL;
    }
    const uint32_t count = (uint32_t)dump->report.finding_count;
    if (!dump_grow((void **)&dump->findings, count, &dump->finding_capacity,
                   sizeof *dump->findings)) {
        dump_out_of_memory(dump);
        return NULL;
    }
    ptowsp_dump_finding *finding = &dump->findings[count];
    memset(finding, 0, sizeof *finding);
    finding->kind = kind;
    finding->before = before;  // indices, until all are found
    finding->after = after;
    finding->before_arg = finding->after_arg = UINT32_MAX;
    dump->report.finding_count++;
    return finding;
}

// -- pairs of accesses ----------------------------------------------------------------------------

static void dump_args_set(const ptowsp_dump *dump, ptowsp_dump_finding *finding,
                          const dump_access *x, const dump_access *y) {
    if (finding) {
        finding->before_arg = x->arg - dump->tasks[x->task].first_arg;
        finding->after_arg = y->arg - dump->tasks[y->task].first_arg;
    }
}

static void dump_race_add(dump_checker *c, const dump_access *x, const dump_access *y) {
    ptowsp_dump *dump = c->dump;
    if (c->races[x->task] != y->task + 1) {
        ptowsp_dump_finding *finding = dump_finding_add(dump, PTOWSP_DUMP_RACE, x->task, y->task);
        dump_args_set(dump, finding, x, y);
        c->races[x->task] = y->task + 1;
        c->findings[x->task] = finding ? (uint32_t)dump->report.finding_count - 1 : DUMP_NONE;
    }
    if (c->findings[x->task] != DUMP_NONE) {
        dump->findings[c->findings[x->task]].hazards |=
            (x->writes && y->reads ? PTOWSP_DUMP_RAW : 0) |
            (x->writes && y->writes ? PTOWSP_DUMP_WAW : 0) |
            (x->reads && y->writes ? PTOWSP_DUMP_WAR : 0);
    }
}

// Two accesses that nothing orders, and how their regions meet.
static void dump_unordered_add(dump_checker *c, const dump_access *x, const dump_access *y,
                               uint32_t how) {
    ptowsp_dump *dump = c->dump;
    if ((how & DUMP_SHARES) && (x->writes || y->writes)) {
        dump_race_add(c, x, y);
    } else if ((how & DUMP_NEAR) && x->writes && y->writes && c->near[x->task] != y->task + 1) {
        c->near[x->task] = y->task + 1;
        dump_args_set(dump, dump_finding_add(dump, PTOWSP_DUMP_FALSE_SHARING, x->task, y->task), x,
                      y);
    }
}

// Compares all that an access stands for with a later one, which is not ordered after it.
static bool dump_shadow_check(dump_checker *c, uint32_t of, const dump_access *y) {
    ptowsp_dump *dump = c->dump;
    const uint32_t region = dump->args[y->arg].region;
    uint32_t depth = 0;
    if (dump->report.counts[PTOWSP_DUMP_RACE] > PTOWSP_DUMP_FINDING_MAX ||
        dump->report.counts[PTOWSP_DUMP_FALSE_SHARING] > PTOWSP_DUMP_FINDING_MAX) {
        return true;
    }
    for (uint32_t at = c->accesses[of].shadow;;) {
        while (at == DUMP_NONE && depth > 0) {
            at = c->stack[--depth];
        }
        if (at == DUMP_NONE) {
            return true;
        }
        const dump_access *x = &c->accesses[at];
        at = x->next;
        if (dump_is_before(dump, x->task, y->task)) {
            continue;
        }
        dump_unordered_add(c, x, y, dump_pair_how(dump, dump->args[x->arg].region, region));
        if (x->shadow != DUMP_NONE) {
            if (!dump_grow((void **)&c->stack, depth, &c->stack_capacity, sizeof *c->stack)) {
                return dump_out_of_memory(dump);
            }
            c->stack[depth++] = at;
            at = x->shadow;
        }
    }
}

// Compares an access with a list of a region that shares bytes or a line with its own; those that it
// stands for move to it.
static bool dump_list_check(dump_checker *c, uint32_t *list, uint32_t how, dump_access *y) {
    ptowsp_dump *dump = c->dump;
    for (uint32_t *link = list; *link != DUMP_NONE;) {
        const uint32_t at = *link;
        dump_access *x = &c->accesses[at];
        const bool is_other = x->task != y->task;
        const bool is_ordered = !is_other || dump_is_before(dump, x->task, y->task);
        if (!is_ordered) {
            dump_unordered_add(c, x, y, how);
            if (x->shadow != DUMP_NONE && !dump_shadow_check(c, at, y)) {
                return false;
            }
        }
        if (is_ordered && is_other && y->writes && (how & DUMP_COVERS)) {
            *link = x->next;
            x->next = y->shadow;
            y->shadow = at;
        } else {
            link = &x->next;
        }
    }
    return true;
}

// The last read, by a task that reads the same later. The others of the list are as likely in no
// order with it.
static void dump_readers_shadow(dump_checker *c, uint32_t *list, dump_access *y) {
    for (uint32_t at = *list; at != DUMP_NONE && c->accesses[at].task != y->task &&
                              dump_is_before(c->dump, c->accesses[at].task, y->task);
         at = *list) {
        *list = c->accesses[at].next;
        c->accesses[at].next = y->shadow;
        y->shadow = at;
    }
}

static bool dump_access_check(dump_checker *c, uint32_t task, uint32_t i) {
    ptowsp_dump *dump = c->dump;
    const dump_arg *arg = &dump->args[i];
    const dump_region *region = &dump->regions[arg->region];
    const bool is_new = arg->type == DUMP_TYPE_OUTPUT;
    dump_access y = {task, i, DUMP_NONE, DUMP_NONE, dump_reads(arg), dump_writes(arg)};
    for (uint32_t k = 0; k < region->pair_count; k++) {
        const dump_pair *pair = &dump->pairs[region->first_pair + k];
        const bool is_shared = pair->how & DUMP_SHARES;
        uint32_t *readers = &c->lists[0][pair->other], *writers = &c->lists[1][pair->other];
        if (is_new && is_shared) {
            *readers = *writers = DUMP_NONE;
        } else if (!y.writes) {
            if (is_shared && !dump_list_check(c, writers, pair->how, &y)) {
                return false;
            }
            if (pair->how & DUMP_COVERS) {
                dump_readers_shadow(c, readers, &y);
            }
        } else if (!dump_list_check(c, writers, pair->how, &y) ||
                   (is_shared && !dump_list_check(c, readers, pair->how, &y))) {
            return false;
        }
    }
    uint32_t *list = &c->lists[y.writes][arg->region];
    y.next = *list;
    *list = c->access_count;
    if (!dump_grow((void **)&c->accesses, c->access_count, &c->access_capacity,
                   sizeof *c->accesses)) {
        return dump_out_of_memory(dump);
    }
    c->accesses[c->access_count++] = y;
    return true;
}

static void dump_outside_check(ptowsp_dump *dump, uint32_t task, uint32_t i) {
    const dump_arg *arg = &dump->args[i];
    const dump_tensor *tensor = &dump->tensors[arg->tensor];
    const dump_region *region = &dump->regions[arg->region];
    const uint64_t bytes = tensor->element_bytes ? tensor->element_bytes : arg->element_bytes;
    if (region->begin < tensor->address ||
        (region->end - tensor->address + bytes - 1) / bytes > tensor->element_count) {
        ptowsp_dump_finding *finding = dump_finding_add(dump, PTOWSP_DUMP_OUTSIDE, task, task);
        if (finding) {
            finding->before_arg = finding->after_arg = i - dump->tasks[task].first_arg;
        }
    }
}

static bool dump_races_find(dump_checker *c) {
    ptowsp_dump *dump = c->dump;
    for (uint32_t t = 0; t < dump->task_count; t++) {
        const dump_task *task = &dump->tasks[t];
        dump_order_reach(dump, t);
        for (uint32_t i = task->first_arg; i < task->first_arg + task->arg_count; i++) {
            const dump_arg *arg = &dump->args[i];
            if (arg->region == DUMP_NONE) {
                continue;
            }
            dump_outside_check(dump, t, i);
            if ((dump_reads(arg) || dump_writes(arg)) && !dump_access_check(c, t, i)) {
                return false;
            }
        }
    }
    return dump->status == PTOWSP_OK;
}

// -- findings -------------------------------------------------------------------------------------

static int dump_compare_findings(const void *a, const void *b) {
    const ptowsp_dump_finding *x = (const ptowsp_dump_finding *)a,
                              *y = (const ptowsp_dump_finding *)b;
    return x->kind != y->kind     ? (x->kind < y->kind ? -1 : 1)
           : x->after != y->after ? (x->after < y->after ? -1 : 1)
           : x->before != y->before
               ? (x->before > y->before ? -1 : 1)
               : (x->before_arg > y->before_arg) - (x->before_arg < y->before_arg);
}

#define DUMP_ADDED_MAX   128u  // edges that are to be added and are followed
#define DUMP_ADDED_WORDS (DUMP_ADDED_MAX / 64)

// Masks of a task, in place of its row: the added edges that it leads to, and those that lead to it.
static uint64_t *dump_leads(const ptowsp_dump *dump, uint32_t task) {
    return &dump->masks[2 * DUMP_ADDED_WORDS * (uint64_t)task];
}

static uint64_t *dump_follows(const ptowsp_dump *dump, uint32_t task) {
    return dump_leads(dump, task) + DUMP_ADDED_WORDS;
}

// Edges are sorted by the later task, so that one pass each way is enough.
static void dump_added_mark(const ptowsp_dump *dump, uint32_t at, uint32_t before, uint32_t after) {
    const uint32_t word = at / 64;
    const uint64_t bit = UINT64_C(1) << at % 64;
    dump_leads(dump, before)[word] |= bit;
    dump_follows(dump, after)[word] |= bit;
    for (uint32_t i = dump->tasks[before + 1].first_in; i-- > 0;) {
        const dump_edge *edge = &dump->edges[i];
        dump_leads(dump, edge->pred)[word] |= dump_leads(dump, edge->succ)[word] & bit;
    }
    for (uint32_t i = dump->tasks[after].first_in; i < dump->edge_count; i++) {
        const dump_edge *edge = &dump->edges[i];
        dump_follows(dump, edge->succ)[word] |= dump_follows(dump, edge->pred)[word] & bit;
    }
}

// Is one task before another by edges of the dump and those added? These lead to ever later tasks.
static bool dump_is_implied(const ptowsp_dump *dump, const uint32_t *added, uint32_t count,
                            uint32_t before, uint32_t after) {
    uint64_t reached[DUMP_ADDED_WORDS], is_met = 0;
    memcpy(reached, dump_leads(dump, before), sizeof reached);
    for (uint32_t i = 0; i <= count; i++) {
        const uint64_t *follows = dump_follows(dump, i < count ? added[i] : after);
        is_met = 0;
        for (uint32_t k = 0; k < DUMP_ADDED_WORDS; k++) {
            is_met |= reached[k] & follows[k];
        }
        if (i < count && is_met) {
            reached[i / 64] |= UINT64_C(1) << i % 64;
        }
    }
    return is_met != 0;
}

// The fewest edges, near enough: for each task the latest one first that it must wait for.
static void dump_edges_to_add(ptowsp_dump *dump) {
    uint32_t added[DUMP_ADDED_MAX];  // the tasks from which they lead
    uint32_t count = 0;
    memset(dump->masks, 0, 2 * DUMP_ADDED_WORDS * sizeof(uint64_t) * (size_t)dump->task_count);
    for (uint64_t i = 0; i < dump->report.finding_count; i++) {
        ptowsp_dump_finding *finding = &dump->findings[i];
        if (finding->kind != PTOWSP_DUMP_RACE) {
            break;
        }
        const uint32_t before = (uint32_t)finding->before, after = (uint32_t)finding->after;
        finding->is_implied = dump_is_implied(dump, added, count, before, after);
        if (!finding->is_implied && count < DUMP_ADDED_MAX) {
            added[count] = before;
            dump_added_mark(dump, count++, before, after);
        }
    }
}

static bool dump_checker_open(dump_checker *c, ptowsp_dump *dump) {
    const uint64_t tasks = dump->task_count, lists = 2 * (uint64_t)dump->region_count;
    memset(c, 0, sizeof *c);
    c->dump = dump;
    c->races = (uint32_t *)dump_zeroed(3 * tasks + lists, sizeof(uint32_t));  // and the others
    if (!c->races) {
        return dump_out_of_memory(dump);
    }
    c->findings = c->races + tasks;
    c->near = c->findings + tasks;
    c->lists[0] = c->near + tasks;
    c->lists[1] = c->lists[0] + dump->region_count;
    memset(c->lists[0], 0xff, lists * sizeof(uint32_t));
    return true;
}

static void dump_checker_close(dump_checker *c) {
    dump_resize(c->accesses, 0);
    dump_resize(c->races, 0);
    dump_resize(c->stack, 0);
    dump_order_free(c->dump);
}

DUMP_INTERNAL bool dump_check(ptowsp_dump *dump) {
    dump_checker c;
    memset(dump->report.counts, 0, sizeof dump->report.counts);
    dump->report.finding_count = dump->report.assumed_count = 0;
    const bool is_good = dump_checker_open(&c, dump) && dump_order_make(dump) &&
                         dump_pairs_find(dump) && dump_races_find(&c) && dump_note(dump);
    if (is_good && dump->report.finding_count) {
        qsort(dump->findings, (size_t)dump->report.finding_count, sizeof *dump->findings,
              dump_compare_findings);
    }
    if (is_good && dump->report.counts[PTOWSP_DUMP_RACE]) {
        dump_edges_to_add(dump);
    }
    dump_checker_close(&c);
    for (uint64_t i = 0; i < dump->report.finding_count; i++) {
        dump->findings[i].before = dump->tasks[dump->findings[i].before].id;
        dump->findings[i].after = dump->tasks[dump->findings[i].after].id;
    }
    dump->report.findings = dump->findings;
    dump->report.is_clean =
        !dump->report.counts[PTOWSP_DUMP_RACE] && !dump->report.counts[PTOWSP_DUMP_OUTSIDE];
    return dump->is_checked = is_good;
}

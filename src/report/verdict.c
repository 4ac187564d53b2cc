// The verdict of a report: the limit of a run, which changes cannot help, which would, and what looks like a
// mistake. Each sentence has the numbers that it rests on, and appears only where they were recorded.
//
//      limit    the largest lower bound, if it is at least LIMIT_PERCENT of the makespan; otherwise
//               the reason for which lanes were idle longest
//      cannot   other schedules under the same control: the gap to the largest bound of the tasks
//               themselves. More lanes: the gap to the chain
//      would    the best what-if that was asked; otherwise the kernel with most of the critical path
//      mistake  tasks that dispatch by plan puts on lane 0 for want of a key; lanes without a task, a long
//               tail; barriers on the critical path where no data flows

#include "facts.h"
#include "report.h"

#include "../base/text.h"

#include <inttypes.h>

#define PWSP_LIMIT_PERCENT 90  // a bound from here on is the limit
#define PWSP_TAIL_PERCENT  10  // idle lanes without anything left, of all time of lanes

// Adds a sentence.
static void pwsp_verdict_add(pwsp_conclusion *verdict, const char *format, ...) PWSP_PRINTF(2, 3);
static void pwsp_verdict_add(pwsp_conclusion *verdict, const char *format, ...) {
    PTOWSP_ASSERT(verdict->count < PWSP_VERDICT_MAX);
    char *line = verdict->lines[verdict->count++];
    ptowsp_output_buffer buffer = {line, PWSP_VERDICT_LINE_MAX, 0};
    va_list args;
    va_start(args, format);
    pwsp_text_vformat(ptowsp_output_to_buffer(&buffer), format, args);
    va_end(args);
}

static pwsp_number_text pwsp_percent_of(uint64_t part, uint64_t whole) {
    return pwsp_fixed(pwsp_report_percent(part, whole), 1);
}

static bool pwsp_bound_is_limit(const pwsp_facts *facts, const pwsp_bound_row *row) {
    return (double)row->cycles >=
           PWSP_LIMIT_PERCENT / 100.0 * (double)facts->bounds.makespan_cycles;
}

// Is it a bound of control, which another schedule may change, and not of the tasks themselves?
static bool pwsp_bound_is_control(const pwsp_bound_row *row) {
    return row->kind == PWSP_LIMIT_THREADS || row->kind == PWSP_LIMIT_LAUNCHES ||
           row->kind == PWSP_LIMIT_SUBMIT;
}

// The largest bound, NULL without any. But memory that is a limit is the reason why a chain is long.
static const pwsp_bound_row *pwsp_largest_bound(const pwsp_facts *facts, bool has_control) {
    const pwsp_bound_row *largest = NULL, *memory = NULL;
    for (uint32_t i = 0; i < facts->row_count; i++) {
        const pwsp_bound_row *row = &facts->rows[i];
        if (!has_control && pwsp_bound_is_control(row)) {
            continue;
        }
        largest = !largest || row->cycles > largest->cycles ? row : largest;
        if (row->kind == PWSP_LIMIT_MEMORY && (!memory || row->cycles > memory->cycles)) {
            memory = row;
        }
    }
    return memory && pwsp_bound_is_limit(facts, memory) ? memory : largest;
}

// -- the limit ------------------------------------------------------------------------------------

// By kind of bound: one word; the subject, with the name of its pool, process or channel between
// `what` and `after`; what helps.
static const struct {
    char word[8], what[40], joint[12], after[24], help[64];
} pwsp_limit_texts[] = {
    {"chain", "The longest chain of dependencies", "", "", "More lanes cannot help."},
    {"lanes", "The work of the lanes", " of pool ", "", "More lanes or faster kernels help."},
    {"links", "Moving data between ranks", "", "", "Faster links or fewer bytes help."},
    {"process", "Process", " ", ", one task at a time,", "More replicas or shorter tasks help."},
    {"channel", "The latency of channel", " ", "", "A deeper channel helps."},
    {"control", "The work of AICPU threads", "", "", "More threads help."},
    {"control", "Launching from the host", "", "", "Fewer launches help."},
    {"control", "Submitting tasks", "", "", "Fewer, longer tasks help."},
    {"memory", "The bandwidth of", " ", ", shared by all lanes,",
     "Fewer bytes or more hits in L2 help."}};

static const char *pwsp_bound_name(const pwsp_facts *facts, const pwsp_bound_row *row) {
    const pwsp_pipelines *pipelines = facts->picture->result->pipelines;
    switch (row->kind) {
    case PWSP_LIMIT_WORK: return facts->bounds.pool_names[row->pool];
    case PWSP_LIMIT_PROCESS: return pipelines->process_stats[facts->bounds.process].name;
    case PWSP_LIMIT_CHANNEL: return pipelines->channel_stats[facts->bounds.channel].name;
    case PWSP_LIMIT_MEMORY: return row->pool ? "L2" : "HBM";
    case PWSP_LIMIT_PATH:
    case PWSP_LIMIT_LINKS:
    case PWSP_LIMIT_THREADS:
    case PWSP_LIMIT_LAUNCHES:
    case PWSP_LIMIT_SUBMIT: break;
    }
    return "";
}

// Threads that do their work within the largest of the other bounds; 0 without one. Nothing begins
// before the launch, which only bounds of control contain: it is left out of all.
static uint64_t pwsp_verdict_threads(const pwsp_facts *facts) {
    const ptowsp_run_stats *stats = facts->picture->result->stats;
    const pwsp_bound_row *largest = pwsp_largest_bound(facts, false);
    const uint64_t other = pwsp_max_u64(stats->submit_cycles, largest ? largest->cycles : 0);
    return other ? pwsp_ceil_div_u64(stats->control_cycles, other) : 0;
}

static void pwsp_verdict_control(const pwsp_facts *facts, pwsp_conclusion *verdict) {
    const uint64_t makespan = facts->bounds.makespan_cycles;
    const uint64_t work = facts->picture->result->stats->control_cycles;
    const uint32_t threads = facts->picture->program->schedule.control.threads;
    const uint64_t enough = pwsp_verdict_threads(facts);
    char advice[48] = "";
    ptowsp_output_buffer buffer = {advice, sizeof advice, 0};
    if (enough > threads) {
        pwsp_text_format(ptowsp_output_to_buffer(&buffer), "; %" PRIu64 " would do", enough);
    }
    verdict->limit = pwsp_limit_texts[PWSP_LIMIT_THREADS].word;
    pwsp_verdict_add(verdict, "The AICPU threads are the limit: %s of %u busy%s.",
                     pwsp_fixed((double)work / (double)makespan, 1).text, threads, advice);
}

static void pwsp_verdict_bound(const pwsp_facts *facts, const pwsp_bound_row *row,
                               pwsp_conclusion *verdict) {
    const uint64_t makespan = facts->bounds.makespan_cycles;
    const char *name = pwsp_bound_name(facts, row);
    verdict->limit = pwsp_limit_texts[row->kind].word;
    pwsp_verdict_add(verdict, "%s%s%s%s takes %s of %s cycles (%s %%) and limits this run. %s",
                     pwsp_limit_texts[row->kind].what,
                     *name ? pwsp_limit_texts[row->kind].joint : "", name,
                     pwsp_limit_texts[row->kind].after, pwsp_grouped(row->cycles).text,
                     pwsp_grouped(makespan).text, pwsp_percent_of(row->cycles, makespan).text,
                     pwsp_limit_texts[row->kind].help);
}

// By reason: how idle lanes spend the time, and what helps.
static const struct {
    char what[48], help[64];
} pwsp_idle_texts[PTOWSP_STALL_COUNT] = {
    {"with no task left", "Split the last tasks, or start the longest first."},
    {"waiting for dependencies", "Look at the critical path."},
    {"waiting for a task bound to another lane", "Let lanes steal tasks."},
    {"waiting for room in the window", "A larger window helps."},
    {"waiting for in-order issue", "Dataflow issue helps."},
    {"waiting for slot loads", "Load the slots earlier."},
    {"waiting for paced issue", "A faster timing of the schedule helps."},
    {"waiting for the start", "An earlier start of the schedule helps."},
    {"waiting for channels", "Deeper channels help."},
    {"waiting for room in the task ring", "A larger ring of tasks helps."},
    {"waiting for room in the byte ring", "A larger ring of bytes helps."},
    {"waiting for room in the dependency ring", "A larger ring of dependencies helps."},
    {"waiting for room in the map ring", "A larger map ring helps."},
    {"waiting for the depth of a stream or pool", "A greater depth helps."},
    {"waiting for other ranks", "Balance the ranks."},
    {"waiting for control", ""}};

// The reason for which lanes are idle longest, and all of their idle time.
static uint32_t pwsp_idle_most(const pwsp_facts *facts, uint64_t *out_all) {
    const uint64_t *idle = facts->picture->result->recorder.idle;
    uint32_t most = 0;
    *out_all = 0;
    for (uint32_t i = 0; i < PTOWSP_STALL_COUNT; i++) {
        *out_all = pwsp_sum_u64(*out_all, idle[i]);
        most = idle[i] > idle[most] ? i : most;
    }
    return most;
}

// The costs of control that the AICPU's threads share.
#define PWSP_VERDICT_THREADS                                                                       \
    (1u << PTOWSP_CONTROL_DISPATCH | 1u << PTOWSP_CONTROL_POLL | 1u << PTOWSP_CONTROL_COMPLETE)

// The help against waiting for control: a host launches each task, kernels are one launch. Lanes of an
// AICPU wait for the launch once, and the one in the middle for START_HALF; if that is most of what
// they wait for control, threads and tasks matter little. Threads help where their part of a task is
// larger than the rest: one thread submits, and no thread shortens the way to a core or back.
static const char *pwsp_verdict_control_help(const pwsp_facts *facts) {
    static const char in_launch[] = "More work in one launch helps.";
    const pwsp_result *result = facts->picture->result;
    const ptowsp_control *control = &facts->picture->program->schedule.control;
    const uint64_t idle = result->recorder.idle[PTOWSP_STALL_CONTROL];
    const uint64_t *ns = control->cost_ns;
    if (control->by != PTOWSP_CONTROL_AICPU) {
        return control->by == PTOWSP_CONTROL_HOST ? "Fewer launches help." : in_launch;
    }
    const double once = (double)ns[PTOWSP_CONTROL_LAUNCH] + (double)ns[PTOWSP_CONTROL_START_HALF];
    double threads = 0, rest = 0;  // of each task
    for (uint32_t i = PTOWSP_CONTROL_SUBMIT; i < PTOWSP_CONTROL_COST_COUNT; i++) {
        *(PWSP_VERDICT_THREADS >> i & 1 ? &threads : &rest) += (double)ns[i];
    }
    return once * control->clock_mhz / 1000 > (double)(idle / 2 / result->stats->lane_count)
               ? in_launch
           : threads > rest ? "Fewer, longer tasks or more AICPU threads help."
                            : "Fewer, longer tasks help.";
}

// No bound is near: lanes wait. Where none is idle, tasks take longer than alone: the memory that lanes
// share slows them, or the rate of a single lane, which the bounds leave out.
static void pwsp_verdict_waiting(const pwsp_facts *facts, const pwsp_bound_row *row, bool lacks_key,
                                 pwsp_conclusion *verdict) {
    const uint64_t *idle = facts->picture->result->recorder.idle;
    const uint64_t makespan = facts->bounds.makespan_cycles;
    uint64_t all;
    const uint32_t most = pwsp_idle_most(facts, &all);
    const char *help = most == PTOWSP_STALL_CONTROL ? pwsp_verdict_control_help(facts)
                       : most == PTOWSP_STALL_NONE && lacks_key
                           ? "Give tasks outside the plan a dispatch_key."
                           : pwsp_idle_texts[most].help;
    verdict->limit = all > 0 ? "waiting" : "memory";
    if (all > 0) {
        const pwsp_number_text part = pwsp_percent_of(idle[most], facts->lane_time);
        const bool is_all = idle[most] == all;
        pwsp_verdict_add(verdict,
                         "Waiting limits this run: lanes are idle for %s %% of their time, %s%s"
                         "%s. %s",
                         pwsp_percent_of(all, facts->lane_time).text, is_all ? "" : part.text,
                         is_all ? "" : " % ", pwsp_idle_texts[most].what, help);
    } else {
        pwsp_verdict_add(verdict,
                         "Memory limits this run: no lane is idle, and the largest lower bound, "
                         "%s, is %s of %s cycles. Fewer bytes help.",
                         row->name, pwsp_grouped(row->cycles).text, pwsp_grouped(makespan).text);
    }
}

// -- changes that help ----------------------------------------------------------------------------

static void pwsp_verdict_cannot(const pwsp_facts *facts, pwsp_conclusion *verdict) {
    const uint64_t makespan = facts->bounds.makespan_cycles;
    const pwsp_bound_row *largest = pwsp_largest_bound(facts, false);
    if (largest) {
        pwsp_verdict_add(verdict,
                         "A better schedule of the same tasks gains %s %% at most (%s cycles).",
                         pwsp_percent_of(makespan - largest->cycles, makespan).text,
                         pwsp_grouped(makespan - largest->cycles).text);
    }
    if (facts->bounds.has_path && (!largest || largest->kind != PWSP_LIMIT_PATH)) {
        pwsp_verdict_add(verdict,
                         "More lanes gain %s %% at most: the longest chain of dependencies "
                         "takes %s cycles.",
                         pwsp_percent_of(makespan - facts->bounds.path_cycles, makespan).text,
                         pwsp_grouped(facts->bounds.path_cycles).text);
    }
}

// Where lanes share memory: how much of it they used, and how much longer tasks took.
static void pwsp_verdict_memory(const pwsp_facts *facts, pwsp_conclusion *verdict) {
    const ptowsp_run_stats *stats = facts->picture->result->stats;
    const uint64_t makespan = facts->bounds.makespan_cycles;
    if (stats->slowed_cycles > 0) {
        pwsp_verdict_add(
            verdict,
            "Lanes share memory: %s %% of what HBM and %s %% of what L2 can move is "
            "used, and tasks take %s %% longer than alone.",
            pwsp_percent_of(facts->bounds.hbm_cycles, makespan).text,
            pwsp_percent_of(facts->bounds.l2_cycles, makespan).text,
            pwsp_percent_of(stats->slowed_cycles, stats->busy_cycles - stats->slowed_cycles).text);
    }
}

static void pwsp_verdict_would(const pwsp_facts *facts, pwsp_conclusion *verdict) {
    const pwsp_picture *picture = facts->picture;
    const uint64_t makespan = facts->bounds.makespan_cycles;
    const ptowsp_what_if *best = NULL;
    uint32_t most = 0;
    for (uint32_t i = 0; i < facts->what_if_count; i++) {
        const ptowsp_what_if *what = &facts->what_ifs[i];
        best = what->makespan_cycles < (best ? best->makespan_cycles : makespan) ? what : best;
    }
    for (uint32_t k = 1; k < picture->program->kernels.count; k++) {
        most = facts->critical[k].busy_cycles > (most ? facts->critical[most].busy_cycles : 0)
                   ? k
                   : most;
    }
    if (best && best->memory_percent) {
        pwsp_verdict_add(verdict,
                         "With %u %% of the bandwidth of memory%s%s the run takes %s cycles, %s %% "
                         "less.",
                         best->memory_percent, best->kernel ? ", and another kernel " : "",
                         best->kernel ? pwsp_picture_kernel(picture, best->kernel) : "",
                         pwsp_grouped(best->makespan_cycles).text,
                         pwsp_percent_of(makespan - best->makespan_cycles, makespan).text);
    } else if (best) {
        pwsp_verdict_add(verdict,
                         "With kernel %s at %u %% of its cycles the run takes %s cycles, %s %% "
                         "less.",
                         pwsp_picture_kernel(picture, best->kernel), best->percent,
                         pwsp_grouped(best->makespan_cycles).text,
                         pwsp_percent_of(makespan - best->makespan_cycles, makespan).text);
    } else if (most) {
        const uint64_t part = facts->critical[most].busy_cycles;
        pwsp_verdict_add(
            verdict,
            "Kernel %s has %s %% of the critical path: 10 %% fewer cycles shorten it by "
            "%s cycles.",
            pwsp_picture_kernel(picture, most), pwsp_percent_of(part, makespan).text,
            pwsp_grouped(part / 10).text);
    }
}

// -- mistakes -------------------------------------------------------------------------------------

// Does a task have neither a lane of the plan nor a key, and its pool more than one lane?
static bool pwsp_verdict_is_keyless(const ptowsp_program *p, const pwsp_task_op *task) {
    const pwsp_kernel_info *kernel = &p->kernels.items[task->kernel];
    return task->dispatch.expr == 0 && kernel->unit != PTOWSP_UNIT_LINK &&
           p->pools[kernel->pool].count > 1;
}

// The tasks on lane 0 for want of a key, if there are several while lanes are idle. 0 where not all tasks
// were recorded: tasks of processes have no lane, and only records tell them apart.
static uint64_t pwsp_verdict_keyless(const pwsp_facts *facts) {
    const pwsp_picture *picture = facts->picture;
    const pwsp_recorder *recorder = &picture->result->recorder;
    const ptowsp_program *p = picture->program;
    uint64_t idle, count = 0;
    pwsp_idle_most(facts, &idle);
    if (p->schedule.dispatch != PTOWSP_DISPATCH_PLAN || !picture->result->has_records ||
        !recorder->is_dense ||
        100.0 * (double)idle < PWSP_TAIL_PERCENT * (double)facts->lane_time) {
        return 0;
    }
    for (uint64_t i = 0; i < recorder->count; i++) {
        const ptowsp_task_record *record = &recorder->records[i];
        count += record->lane != PTOWSP_NO_LANE &&
                 pwsp_verdict_is_keyless(p, picture->ops[record->node]);
    }
    return count > 1 ? count : 0;
}

static void pwsp_verdict_key(const pwsp_facts *facts, uint64_t count, pwsp_conclusion *verdict) {
    const pwsp_picture *picture = facts->picture;
    pwsp_verdict_add(
        verdict,
        "%s of %s tasks run on lane 0%s: dispatch by plan has no dispatch_key for tasks outside "
        "the plan.",
        pwsp_grouped(count).text, pwsp_grouped(picture->result->stats->task_count).text,
        picture->program->schedule.pools == PTOWSP_POOLS_ONE ? "" : " of their pool");
}

// How often the critical path waits for structure alone.
typedef struct pwsp_barriers {
    uint64_t from;
    bool is_structure, has_other;
    uint64_t count;
} pwsp_barriers;

static bool pwsp_barriers_look(void *user, const ptowsp_edge *edge) {
    pwsp_barriers *barriers = (pwsp_barriers *)user;
    if (edge->from == barriers->from) {
        barriers->is_structure |= edge->reason == PTOWSP_EDGE_STRUCTURE;
        barriers->has_other |= edge->reason != PTOWSP_EDGE_STRUCTURE;
    }
    return true;
}

static void pwsp_verdict_barriers(const pwsp_facts *facts, pwsp_conclusion *verdict) {
    const pwsp_result *result = facts->picture->result;
    pwsp_barriers barriers = {0, false, false, 0};
    bool has_tiles = false;
    for (uint32_t k = 1; k < result->program->kernels.count; k++) {
        has_tiles = has_tiles || result->program->kernels.items[k].tile_count > 0;
    }
    for (uint64_t i = 1; has_tiles && i < result->critical_count; i++) {
        barriers.from = result->critical[i - 1];
        barriers.is_structure = barriers.has_other = false;
        pwsp_result_edges(result, result->critical[i], pwsp_barriers_look, &barriers);
        barriers.count += barriers.is_structure && !barriers.has_other;
    }
    if (barriers.count > 0) {
        pwsp_verdict_add(
            verdict,
            "%s of %s steps of the critical path wait for structure alone, and "
            "read nothing of what they wait for: a FOR_EACH or SEQUENCE that no data needs.",
            pwsp_grouped(barriers.count).text, pwsp_grouped(result->critical_count - 1).text);
    }
}

static void pwsp_verdict_lanes(const pwsp_facts *facts, bool is_tail_limit,
                               pwsp_conclusion *verdict) {
    const pwsp_result *result = facts->picture->result;
    const ptowsp_run_stats *stats = result->stats;
    const uint64_t tail = result->recorder.idle[PTOWSP_STALL_NONE];
    const ptowsp_run_bounds *bounds = &facts->bounds;
    uint32_t unused = 0, lane_count = 0;
    for (uint32_t pool = 0, lane = 0; pool < bounds->pool_count;
         lane += bounds->pool_lanes[pool++]) {
        if (bounds->work_cycles[pool] == 0) {
            continue;  // none of its kernels ran
        }
        lane_count += bounds->pool_lanes[pool];
        for (uint32_t i = 0; i < bounds->pool_lanes[pool]; i++) {
            // Vector lanes of a block are busy, and have no task of their own.
            const ptowsp_lane_stats *stat = &result->lanes[lane + i];
            unused += stat->task_count == 0 && stat->busy_cycles == 0;
        }
    }
    if (unused > 0 && stats->task_count >= lane_count && unused < lane_count) {
        pwsp_verdict_add(verdict,
                         "%u of %u lanes ran no task, although there are %s: look at the "
                         "dispatch of the schedule.",
                         unused, lane_count, pwsp_grouped(stats->task_count).text);
    } else if (!is_tail_limit &&
               100.0 * (double)tail >= PWSP_TAIL_PERCENT * (double)facts->lane_time) {
        pwsp_verdict_add(verdict,
                         "Lanes have nothing left for %s %% of their time: the last tasks are "
                         "too few or too long.",
                         pwsp_percent_of(tail, facts->lane_time).text);
    }
}

PWSP_INTERNAL void pwsp_verdict_find(const pwsp_facts *facts, pwsp_conclusion *verdict) {
    const uint64_t makespan = facts->bounds.makespan_cycles;
    const pwsp_bound_row *largest = pwsp_largest_bound(facts, true);
    verdict->limit = "";
    verdict->count = 0;
    if (makespan == 0 || !largest) {
        return;
    }
    const uint64_t keyless_count = pwsp_verdict_keyless(facts);
    const bool is_near = pwsp_bound_is_limit(facts, largest);
    if (is_near && largest->kind == PWSP_LIMIT_THREADS) {
        pwsp_verdict_control(facts, verdict);
    } else if (is_near) {
        pwsp_verdict_bound(facts, largest, verdict);
    } else {
        pwsp_verdict_waiting(facts, largest, keyless_count > 0, verdict);
    }
    pwsp_verdict_memory(facts, verdict);
    pwsp_verdict_cannot(facts, verdict);
    pwsp_verdict_would(facts, verdict);
    if (keyless_count > 0) {
        pwsp_verdict_key(facts, keyless_count, verdict);
    } else {
        uint64_t idle;
        // If the tail is the limit, the first sentence has it.
        pwsp_verdict_lanes(facts, !is_near && pwsp_idle_most(facts, &idle) == PTOWSP_STALL_NONE,
                           verdict);
    }
    if (pwsp_result_has_edges(facts->picture->result)) {
        pwsp_verdict_barriers(facts, verdict);
    }
}

// A random program with its bindings and schedule, what the slow reference expects of it, and what
// a run of it left behind compared with that, or with another run.

#ifndef PTOWSP_WORKLOAD_SAMPLE_H
#define PTOWSP_WORKLOAD_SAMPLE_H

#include "workload_build.h"
#include "workload_reference.h"

// -- samples --------------------------------------------------------------------------------------

typedef struct sample {
    ref_program program;
    ref_bindings bindings;
    ref_memory memory;
    ref_module module;
    ref_schedule schedule;
    ref_expansion x;      // with the schedule's keys
    ref_result expected;  // of it
    ptowsp_context *context;
    ptowsp_context *run_context;  // of the run, whose errors are told
    uint32_t lane_count;          // of its executions
    unsigned number, schedule_number;
} sample;

// A program that makes a fair number of tasks with its bindings.
static inline sample *sample_make(uint64_t seed, unsigned number) {
    sample *s = (sample *)calloc(1, sizeof *s);
    assert_non_null(s);
    s->number = number;
    assert_ok(ptowsp_context_create(NULL, &s->context));
    s->run_context = s->context;
    uint64_t random = seed + number * UINT64_C(1000003);
    int task_count_max = test_random(&random) % 16 == 0 ? REF_TASK_MAX : 90;
    bool is_good = false;
    while (!is_good) {
        ref_program_random(&s->program, test_random(&random));
        if (!s->program.is_full) {
            ref_bindings_random(&s->program, &random, &s->bindings);
            ref_expand(&s->program, &s->bindings, NULL, &s->x);
            int count = s->x.task_count, least = (int)test_random_in(&random, 0, 9);
            is_good = !s->x.is_too_long && least <= count && count <= task_count_max;
        }
    }
    ref_memory_make(&s->memory, &s->program, &s->bindings);
    ref_module_build(&s->module, s->context, &s->program);
    return s;
}

static inline void sample_free(sample *s) {
    ref_memory_free(&s->memory);
    ref_module_free(&s->module);
    ptowsp_context_destroy(s->context);
    free(s);
}

// Lanes of every second schedule share memory, of which kernels of samples move no bytes: all must be
// as without it. Exceptions are rings, which tasks of 0 cycles leave later, and lanes by the first that
// is free in order, as that is not known before it is.
static inline void sample_share(ptowsp_schedule *schedule, unsigned number) {
    bool is_shared = number % 2 == 1 && !(schedule->issue == PTOWSP_ISSUE_IN_ORDER &&
                                          schedule->dispatch == PTOWSP_DISPATCH_WORK_STEALING);
    for (int i = 0; i < PTOWSP_RING_COUNT; i++) {
        is_shared = is_shared && schedule->ring_sizes[i] == 0;
    }
    schedule->shared.hbm_rate = schedule->shared.l2_rate = is_shared ? 100 : 0;
}

static inline void sample_schedule(sample *s, unsigned number) {
    s->schedule_number = number;
    ref_schedule_random(&s->program, s->x.task_count, &s->schedule);
    sample_share(&s->schedule.schedule, number);
}

// Other bindings, unless they make too many tasks.
static inline void sample_rebind(sample *s) {
    ref_bindings *other = (ref_bindings *)malloc(sizeof *other);
    assert_non_null(other);
    ref_bindings_random(&s->program, &s->program.random, other);
    ref_expand(&s->program, other, NULL, &s->x);
    if (!s->x.is_too_long) {
        s->bindings = *other;
    }
    free(other);
}

// Memory as bound, before an execution.
static inline void sample_refresh(sample *s) {
    ref_memory_free(&s->memory);
    ref_memory_make(&s->memory, &s->program, &s->bindings);
}

// What the reference says of the program with its present bindings and schedule. Memory is fresh.
static inline void sample_expect(sample *s) {
    sample_refresh(s);
    ref_expand(&s->program, &s->bindings, &s->schedule, &s->x);
    assert_false(s->x.is_too_long);
    ref_run(&s->program, &s->x, &s->schedule, &s->expected);
    s->module.watch.args = s->x.args;
    s->module.watch.task_count = (uint64_t)s->x.task_count;
    s->module.watch.calls = 0;
}

// What to compile; the schedule, with its keys in the module, is kept at *schedule.
static inline ptowsp_program_desc sample_desc(const sample *s, ref_module *module,
                                              ptowsp_schedule *schedule) {
    *schedule = s->schedule.schedule;
    schedule->dispatch_key = ref_build_expr(module, s->schedule.dispatch_key);
    schedule->priority_key = ref_build_expr(module, s->schedule.priority_key);
    schedule->stream_key = ref_build_expr(module, s->schedule.stream_key);
    bool is_default = s->program.workload_count == 1 || s->program.main_is_last;
    const ptowsp_program_desc desc = {is_default ? NULL : "w0", schedule};
    return desc;
}

// Kernels of the program by their names, for what is parsed or loaded.
typedef struct sample_kernels {
    ptowsp_parse_kernel kernels[REF_KERNEL_MAX];
    char names[REF_KERNEL_MAX][16];
} sample_kernels;

static inline ptowsp_parse_desc sample_attach(sample *s, sample_kernels *out) {
    memset(out, 0, sizeof *out);
    for (int k = 0; k < s->program.kernel_count; k++) {
        snprintf(out->names[k], sizeof out->names[k], "k%d", k);
        out->kernels[k].name = out->names[k];
        out->kernels[k].fn = ref_kernel_run;
        out->kernels[k].cost = ref_kernel_cost;
        out->kernels[k].user = &s->module.users[k];
    }
    const ptowsp_parse_desc desc = {out->kernels, (uint32_t)s->program.kernel_count, 0};
    return desc;
}

static inline ptowsp_status sample_compile(sample *s, ref_module *module,
                                           ptowsp_program **out_program) {
    ptowsp_schedule schedule;
    const ptowsp_program_desc desc = sample_desc(s, module, &schedule);
    return ptowsp_program_create(s->context, module->module, &desc, out_program);
}

// The program of the sample as it is after it has been saved and loaded; it is printed as it was.
// What does not compile (NULL) cannot be saved either.
static inline ptowsp_program *sample_reload(sample *s, const ptowsp_program *program) {
    static char saved[1 << 20], texts[2][1 << 20];
    ptowsp_schedule schedule;
    ptowsp_program *loaded = NULL;
    sample_kernels kernels;
    const ptowsp_parse_desc attached = sample_attach(s, &kernels);
    const ptowsp_program_desc desc = sample_desc(s, &s->module, &schedule);
    ptowsp_output_buffer buffer = {saved, sizeof saved, 0};
    const ptowsp_status status =
        ptowsp_program_save(s->context, s->module.module, &desc, ptowsp_output_to_buffer(&buffer));
    if (!program) {
        assert_true(status != PTOWSP_OK && buffer.length == 0);
        return NULL;
    }
    assert_ok(status);
    assert_true(buffer.length < sizeof saved);
    if (ptowsp_program_load(s->context, saved, buffer.length, &attached, &loaded, NULL) !=
        PTOWSP_OK) {
        fail_msg("%s\n%s", ptowsp_context_error(s->context).text, saved);
    }
    ptowsp_program_print(program, TEST_TEXT(texts[0]));
    ptowsp_program_print(loaded, TEST_TEXT(texts[1]));
    assert_string_equal(texts[0], texts[1]);
    return loaded;
}

static inline ptowsp_status sample_execute(sample *s, ptowsp_run *run, ptowsp_run_mode mode,
                                           bool record_tasks) {
    ptowsp_run_options options = {
        .mode = mode, .record_tasks = record_tasks, .lane_count = s->lane_count};
    s->module.watch.calls = 0;
    return ptowsp_run_execute(run, &options);
}

// -- saying what is wrong -------------------------------------------------------------------------

static inline bool write_message(void *user, const void *text, size_t length) {
    (void)user;
    print_message("%.*s", (int)length, (const char *)text);
    return true;
}

// Prints the sample and the task in question (or -1), and fails.
static inline void complain(sample *s, const ptowsp_run *run, int task, const char *what) {
    const ptowsp_output text = {write_message, NULL};
    const ptowsp_task_record *records = run ? ptowsp_run_records(run) : NULL;
    ptowsp_schedule schedule;
    (void)sample_desc(s, &s->module, &schedule);
    ptowsp_module_print(s->module.module, text);
    ptowsp_schedule_print(&schedule, text);
    print_message("\nerror: %s\n", ptowsp_context_error(s->run_context).text);
    for (int i = 0; i <= task; i++) {
        const ref_time *time = &s->expected.times[i];
        print_message("%4d: %llu cycles, lane %u, ready %llu, issue %llu, start %llu, end %llu\n",
                      i, (unsigned long long)s->x.tasks[i].cycles, time->lane,
                      (unsigned long long)time->ready, (unsigned long long)time->issue,
                      (unsigned long long)time->start, (unsigned long long)time->end);
        if (records) {
            const ptowsp_task_record *record = &records[i];
            print_message(" got: lane %u, ready %llu, issue %llu, start %llu, end %llu, %s\n",
                          record->lane, (unsigned long long)record->ready,
                          (unsigned long long)record->issue, (unsigned long long)record->start,
                          (unsigned long long)record->end, ptowsp_stall_name(record->stall));
        }
    }
    fail_msg("program %u, schedule %u, task %d of %d: %s", s->number, s->schedule_number, task,
             s->x.task_count, what);
}

// -- against the reference ------------------------------------------------------------------------

static inline const char *check_record(const sample *s, const ptowsp_task_record *record, int i) {
    const ref_time *time = &s->expected.times[i];
    int stmt = s->x.tasks[i].stmt;
    if (record->lane != time->lane) {
        return "lane";
    } else if (record->issue != time->issue) {
        return "issue";
    } else if (record->ready != time->ready &&
               (record->ready > time->ready || time->ready > time->issue)) {
        return "ready";  // what was done by the issue may not be counted
    } else if (record->start != time->start || record->end != time->end) {
        return "start or end";
    } else if (record->node != s->module.nodes[stmt].id ||
               record->kernel != s->module.kernels[s->program.stmts[stmt].kernel].id) {
        return "node or kernel";
    }
    bool is_one_of_three = record->stall == PTOWSP_STALL_NONE ||
                           record->stall == PTOWSP_STALL_DEPENDENCY ||
                           record->stall == PTOWSP_STALL_LANE;
    bool is_right =
        time->stall == PTOWSP_STALL_COUNT ? !is_one_of_three : record->stall == time->stall;
    return is_right ? NULL : "stall";
}

// Does a task take a lane, or one of the lanes of another task?
static inline bool takes_lane(const sample *s, int task, uint32_t lane) {
    uint32_t lanes[3];
    int count = ref_lanes_of(&s->program, &s->x, &s->schedule.schedule, task,
                             s->expected.times[task].lane, lanes);
    while (count > 0 && lanes[count - 1] != lane) {
        count--;
    }
    return count > 0;
}

static inline bool share_lane(const sample *s, int a, int b) {
    uint32_t lanes[3];
    int count = ref_lanes_of(&s->program, &s->x, &s->schedule.schedule, a,
                             s->expected.times[a].lane, lanes);
    while (count > 0 && !takes_lane(s, b, lanes[count - 1])) {
        count--;
    }
    return count > 0;
}

// The cause of a task is one that makes its stall true.
static inline const char *check_cause(const sample *s, const ptowsp_task_record *records, int i) {
    const ptowsp_task_record *record = &records[i];
    uint64_t cause = record->cause;
    if (cause == PTOWSP_NO_INDEX) {
        bool needs_one = record->stall == PTOWSP_STALL_DEPENDENCY ||
                         record->stall == PTOWSP_STALL_LANE || record->stall == PTOWSP_STALL_WINDOW;
        return needs_one ? "no cause" : NULL;
    } else if (cause >= (uint64_t)s->x.task_count || cause == (uint64_t)i) {
        return "a cause that is no other task";
    } else if (records[cause].end > record->start) {
        return "a cause that ends later";
    } else if (record->stall == PTOWSP_STALL_DEPENDENCY) {
        bool is_good = records[cause].end == record->start && s->expected.waits[i][cause];
        return is_good ? NULL : "a cause that it does not wait for";
    } else if (record->stall == PTOWSP_STALL_LANE) {
        bool is_good = records[cause].end == record->start && share_lane(s, i, (int)cause);
        return is_good ? NULL : "a cause that was not before it on its lane";
    }
    return NULL;
}

// Back from the first task that ends at the makespan, along the causes, to one without.
static inline void check_critical_path(sample *s, const ptowsp_run *run) {
    const ptowsp_task_record *records = ptowsp_run_records(run);
    uint64_t count = 77;
    const uint64_t *path = ptowsp_run_critical_path(run, &count);
    if (s->x.task_count == 0) {
        assert_int_equal(count, 0);
        return;
    }
    int last = 0;
    while (records[last].end != s->expected.makespan) {
        last++;
    }
    if (!path || count == 0 || count > (uint64_t)s->x.task_count ||
        path[count - 1] != (uint64_t)last || records[path[0]].cause != PTOWSP_NO_INDEX) {
        complain(s, run, last, "the critical path has the wrong ends");
        return;
    }
    for (uint64_t i = 1; i < count; i++) {
        if (records[path[i]].cause != path[i - 1]) {
            complain(s, run, last, "the critical path does not follow the causes");
        }
    }
}

static inline void check_lanes(sample *s, const ptowsp_run *run) {
    const ptowsp_lane_stats *lanes = ptowsp_run_lanes(run);
    for (uint32_t lane = 0; lane < s->expected.lane_count; lane++) {
        uint64_t busy = 0, count = 0, end = 0;
        for (int i = 0; i < s->x.task_count; i++) {
            if (takes_lane(s, i, lane)) {
                busy += s->x.tasks[i].cycles;
                count += s->expected.times[i].lane == lane;
                end = ref_max(end, s->expected.times[i].end);
            }
        }
        if (lanes[lane].busy_cycles != busy || lanes[lane].task_count != count ||
            lanes[lane].end_cycles != end ||
            lanes[lane].idle_cycles != s->expected.makespan - busy) {
            complain(s, run, s->x.task_count - 1, "the numbers of a lane");
        }
    }
}

// The sums over all tasks that the header defines to the last cycle.
static inline void check_stall_cycles(sample *s, const ptowsp_run *run) {
    const uint64_t *got = ptowsp_run_result(run)->stall_cycles;
    const uint64_t *expected = s->expected.stall_cycles;
    const ptowsp_schedule *schedule = &s->schedule.schedule;
    bool is_simple =
        schedule->start == PTOWSP_START_AT_ONCE && schedule->timing != PTOWSP_TIMING_INTERLEAVED;
    bool is_good = got[PTOWSP_STALL_NONE] == 0 && got[PTOWSP_STALL_ORDER] == 0;
    if (!s->expected.by_events) {
        for (int i = PTOWSP_STALL_TASK_RING; i < PTOWSP_STALL_COUNT; i++) {
            is_good = is_good && got[i] == expected[i];
        }
        is_good = is_good && got[PTOWSP_STALL_WINDOW] == expected[PTOWSP_STALL_WINDOW] &&
                  got[PTOWSP_STALL_SLOT] == expected[PTOWSP_STALL_SLOT] &&
                  got[PTOWSP_STALL_DEPENDENCY] == expected[PTOWSP_STALL_DEPENDENCY];
        if (is_simple) {
            is_good = is_good && got[PTOWSP_STALL_TIMING] == expected[PTOWSP_STALL_TIMING] &&
                      got[PTOWSP_STALL_LANE] == expected[PTOWSP_STALL_LANE] &&
                      got[PTOWSP_STALL_START] == 0;
        }
    }
    if (!is_good) {
        for (int i = 0; i < PTOWSP_STALL_COUNT; i++) {
            print_message("stall %d: %llu, got %llu\n", i, (unsigned long long)expected[i],
                          (unsigned long long)got[i]);
        }
        complain(s, run, s->x.task_count - 1, "the sums of stalls");
    }
}

static inline void check_stats(sample *s, const ptowsp_run *run) {
    const ptowsp_run_stats *stats = ptowsp_run_result(run);
    bool has_zeros = false;
    const bool is_shared = s->schedule.schedule.shared.hbm_rate > 0;
    for (int i = 0; i < s->x.task_count; i++) {
        has_zeros = has_zeros || s->x.tasks[i].cycles == 0;
    }
    if (stats->makespan_cycles != s->expected.makespan) {
        complain(s, run, s->x.task_count - 1, "makespan");
    } else if (stats->task_count != (uint64_t)s->x.task_count ||
               stats->lane_count != s->expected.lane_count ||
               stats->busy_cycles != s->expected.busy) {
        complain(s, run, -1, "task count, lane count or busy cycles");
    } else if (!(has_zeros && is_shared) &&
               stats->window_overflow_count != s->expected.overflow_count) {
        complain(s, run, s->x.task_count - 1, "how many tasks found the window full");
    } else if (stats->slot_load_count != (uint64_t)s->x.load_count) {
        complain(s, run, -1, "how many slots were loaded");
    } else if (!has_zeros && stats->in_flight_max != s->expected.in_flight_max) {
        complain(s, run, s->x.task_count - 1, "the most tasks in flight");
    } else if (memcmp(stats->ring_max, s->expected.ring_max, sizeof stats->ring_max) != 0) {
        for (int i = 0; i < PTOWSP_RING_COUNT; i++) {
            print_message("ring %d: %llu, got %llu\n", i,
                          (unsigned long long)s->expected.ring_max[i],
                          (unsigned long long)stats->ring_max[i]);
        }
        complain(s, run, s->x.task_count - 1, "the most in a ring");
    }
}

static inline void check_data(sample *s, const ptowsp_run *run) {
    for (int t = 0; t < s->program.tensor_count; t++) {
        const ref_tensor *tensor = &s->program.tensors[t];
        size_t size = ref_dtype_size(tensor->dtype);
        for (int i = 0; i < s->bindings.block_size[t] && tensor->memory_of == t; i++) {
            const int64_t value = s->x.cells[s->bindings.block[t] + i];
            const unsigned char *got = (const unsigned char *)s->memory.tensors[t];
            if (memcmp(got + (size_t)i * size, ref_low_bytes(&value, size), size) != 0) {
                print_message("tensor %d, cell %d: not %lld\n", t, i, (long long)value);
                complain(s, run, -1, "the data afterwards");
            }
        }
    }
}

static inline void check_slots(sample *s, const ptowsp_run *run) {
    for (uint32_t i = 0; i < REF_SLOT_COUNT; i++) {
        if (ptowsp_run_slot(run, i) != s->x.slots[i]) {
            print_message("slot %u: not %llu\n", i, (unsigned long long)s->x.slots[i]);
            complain(s, run, -1, "the slots afterwards");
        }
    }
}

// A start condition with timed issue needs the number of tasks beforehand, which may depend on
// data: refusing that is right, and only that.
static inline bool is_refused(const sample *s, ptowsp_status status) {
    return status == PTOWSP_UNSUPPORTED && s->schedule.schedule.start != PTOWSP_START_AT_ONCE &&
           (s->schedule.schedule.timing == PTOWSP_TIMING_BATCHED ||
            s->schedule.schedule.timing == PTOWSP_TIMING_RATE_LIMITED);
}

// What a run left behind, compared with what is expected.
static inline void check_run(sample *s, const ptowsp_run *run, ptowsp_status status) {
    const ptowsp_task_record *records = ptowsp_run_records(run);
    if (is_refused(s, status)) {
        return;
    }
    if (status != s->expected.status) {
        print_message("status %s, not %s\n", ptowsp_status_name(status),
                      ptowsp_status_name(s->expected.status));
        complain(s, run, -1, "status");
    }
    if (status != PTOWSP_OK) {
        return;
    }
    assert_true(records || s->x.task_count == 0);
    for (int i = 0; i < s->x.task_count; i++) {
        const char *what = check_record(s, &records[i], i);
        if (what) {
            complain(s, run, i, what);
        }
    }
    for (int i = 0; i < s->x.task_count; i++) {
        const char *what = check_cause(s, records, i);
        if (what) {
            complain(s, run, i, what);
        }
    }
    check_stats(s, run);
    check_lanes(s, run);
    check_stall_cycles(s, run);
    check_critical_path(s, run);
    check_slots(s, run);
}

// Executes the sample, which says what is expected, with memory as it is now bound.
static inline ptowsp_status check_as_expected(sample *s, ptowsp_run *run, bool record_tasks) {
    ref_bind(run, &s->program, &s->bindings, &s->memory, true);
    ptowsp_status status = sample_execute(s, run, PTOWSP_RUN_EXECUTE, record_tasks);
    if (record_tasks) {
        check_run(s, run, status);
    }
    if (status == PTOWSP_OK) {
        assert_true(s->module.watch.calls == (uint64_t)s->x.task_count);
        check_data(s, run);
        check_slots(s, run);
    }
    return status;
}

// Executes the sample on a run that may have been used before, and checks everything.
static inline ptowsp_status check_execution(sample *s, ptowsp_run *run) {
    sample_expect(s);
    return check_as_expected(s, run, true);
}

// -- against another run --------------------------------------------------------------------------

// A copy of what a run recorded, to be compared with that of another run.
typedef struct outcome {
    ptowsp_status status;
    ptowsp_run_stats stats;
    ptowsp_fingerprint fingerprint;
    ptowsp_task_record records[REF_TASK_MAX];
} outcome;

// Of the program and its bindings; nothing where they are wrong.
static inline ptowsp_fingerprint sample_fingerprint(const ptowsp_run *run) {
    ptowsp_fingerprint found = {0}, kept = {0};
    if (ptowsp_run_fingerprint((ptowsp_run *)(uintptr_t)run, &found) == PTOWSP_OK) {
        kept.program = found.program;
        kept.bindings = found.bindings;
    }
    return kept;
}

static inline outcome *outcome_of(const ptowsp_run *run, ptowsp_status status) {
    outcome *copy = (outcome *)calloc(1, sizeof *copy);
    assert_non_null(copy);
    copy->status = status;
    copy->stats = *ptowsp_run_result(run);
    copy->fingerprint = sample_fingerprint(run);
    const ptowsp_task_record *records = ptowsp_run_records(run);
    if (status == PTOWSP_OK && records) {
        memcpy(copy->records, records, copy->stats.task_count * sizeof *records);
    }
    return copy;
}

static inline bool is_same_stats(const ptowsp_run_stats *a, const ptowsp_run_stats *b) {
    return a->makespan_cycles == b->makespan_cycles && a->task_count == b->task_count &&
           a->lane_count == b->lane_count && a->busy_cycles == b->busy_cycles &&
           memcmp(a->stall_cycles, b->stall_cycles, sizeof a->stall_cycles) == 0 &&
           a->in_flight_max == b->in_flight_max &&
           a->window_overflow_count == b->window_overflow_count &&
           a->slot_load_count == b->slot_load_count && a->region_max == b->region_max;
}

static inline bool is_same_records(const ptowsp_task_record *a, const ptowsp_task_record *b,
                                   uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        if (a[i].ready != b[i].ready || a[i].issue != b[i].issue || a[i].start != b[i].start ||
            a[i].end != b[i].end || a[i].cause != b[i].cause || a[i].stall != b[i].stall ||
            a[i].lane != b[i].lane || a[i].kernel != b[i].kernel || a[i].node != b[i].node) {
            return false;
        }
    }
    return true;
}

// The run has the same outcome; records are compared if it has some.
static inline void check_same(sample *s, const outcome *first, const ptowsp_run *run,
                              ptowsp_status status, const char *what) {
    const ptowsp_task_record *records = ptowsp_run_records(run);
    bool is_same = status == first->status;
    if (is_same && status == PTOWSP_OK) {
        const ptowsp_fingerprint fingerprint = sample_fingerprint(run);
        is_same = is_same_stats(&first->stats, ptowsp_run_result(run)) &&
                  memcmp(&first->fingerprint, &fingerprint, sizeof fingerprint) == 0 &&
                  (!records || is_same_records(first->records, records, first->stats.task_count));
    }
    if (!is_same) {
        complain(s, run, s->x.task_count - 1, what);
    }
}

#endif

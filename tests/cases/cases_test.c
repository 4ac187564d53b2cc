// All cases of tests/cases, through every engine: in order and by events, as their schedules say, on
// one thread, twice; without kernels, where time does not depend on data; on two and three threads;
// on a device; and all of that for the program that was built, and for the same one saved and loaded.
//
// The second execution of a run must allocate nothing, and all executions with the same bindings have
// the same fingerprint. Arguments are files of cases; default: all in tests/cases.

#include "test.h"

#include "support/case_form.h"
#include "support/case_ranks.h"
#include "support/case_scripts.h"
#include "support/case_texts.h"

enum { LANE_MAX = 3 };

// -- engines --------------------------------------------------------------------------------------

// How often each has executed a program, or has read a module of a case of texts, and how often at least,
// so that none is left out unnoticed: a few less than all cases had when this was written.
typedef struct engine_tally {
    const char *name;
    uint64_t least, count;
} engine_tally;

enum { LEAST_TEXTS = 680, LEAST_SCRIPTS = 280 };  // modules
#if defined(NPU_CLOCK_MIRROR_H)
enum { LEAST_RECORDED = 0, LEAST_CLOCK = 7500, LEAST_DEVICE = 0, LEAST_TOGETHER = 0 };
#elif defined(PTOWSP_NO_THREADS)
enum { LEAST_RECORDED = 2500, LEAST_CLOCK = 0, LEAST_DEVICE = 0, LEAST_TOGETHER = 40 };
#else
enum { LEAST_RECORDED = 2500, LEAST_CLOCK = 0, LEAST_DEVICE = 1300, LEAST_TOGETHER = 40 };
#endif

static engine_tally engines[] = {
    {"built", 1300, 0},
    {"loaded", 1300, 0},
    {"once more", 2600, 0},
    {"without records", LEAST_RECORDED, 0},
    {"time only", 1800, 0},
    {"time only, without memory", 1750, 0},
    {"time only, refused", 800, 0},
    {"on 2 threads", 2600, 0},
    {"on 3 threads", 2600, 0},
    {"on a device", LEAST_DEVICE, 0},
    {"beside the clock", LEAST_CLOCK, 0},
    {"not for NPUs, so without the clock", 0, 0},
    {"refused programs", 2, 0},
    {"together", LEAST_TOGETHER, 0},
    {"alone", LEAST_TOGETHER, 0},
    {"texts", LEAST_TEXTS, 0},
    {"scripts", LEAST_SCRIPTS, 0},
};

enum { ENGINE_COUNT = sizeof engines / sizeof engines[0] };

static void engine_add(const char *name, uint64_t count) {
    size_t i = 0;
    while (i < ENGINE_COUNT && strcmp(engines[i].name, name) != 0) {
        i++;
    }
    assert_true(i < ENGINE_COUNT);
    engines[i].count += count;
}

static void engine_count(const char *name) {
    engine_add(name, 1);
}

// Prints the counts; how many are too few, if all cases were run.
static int engines_report(bool is_all) {
    int missing = 0;
    for (size_t i = 0; i < ENGINE_COUNT; i++) {
        const engine_tally *e = &engines[i];
        bool is_missing = is_all && e->count < e->least;
        print_message("%s: %llu executions%s\n", e->name, (unsigned long long)e->count,
                      is_missing ? ", TOO FEW" : "");
        missing += is_missing;
    }
    return missing;
}

static void refresh(case_subject *s, uint32_t core_count) {
    s->call_count = s->wrong_call_count = s->next_task = 0;
    s->core_count = core_count;
    for (uint64_t i = 0; i < CASE_TASK_MAX; i++) {
        s->called[i][0] = CASE_NOT_CALLED;
    }
    case_fill(s);
}

#ifdef NPU_CLOCK_MIRROR_H
// Once more, with the clock of emitted trees beside it.
static void execute_with_clock(case_subject *s, const ptowsp_run_options *options,
                               const ptowsp_run_stats *stats) {
    engine_count("beside the clock");
    refresh(s, 1);
    const char *what = mirror_check(s->run, options, PTOWSP_OK, stats);
    if (what) {
        CASE_FAIL(s, "the clock has another %s", what);
    }
}
#endif

// An execution has ended, as the case says.
static void expect_ended(case_subject *s, ptowsp_status status, bool has_data) {
    const case_item *fails = case_said(s, "fails");
    if (fails) {
        case_check_error(s, fails, status);
        if (status != PTOWSP_STUCK) {
            case_check_text(s, "what is stuck", case_stuck_text(s), "");
        } else if (*case_stuck_text(s)) {
            s->word = "says";
            case_expect_said(s, "pipeline ");
            assert_null(strchr(ptowsp_context_error(s->context).text, '\n'));
        }
    } else {
        case_ok(s, "execute", status);
        case_check_text(s, "what is stuck", case_stuck_text(s), "");
    }
    case_expect(s, has_data, status == PTOWSP_OK);
}

static void execute(case_subject *s, const char *engine, ptowsp_run_mode mode, uint32_t lanes) {
    ptowsp_run_options options = {
        .mode = mode, .record_tasks = true, .lane_count = lanes, .token_limit = s->token_limit};
    s->engine = engine;
    refresh(s, lanes);
    size_t allocations = s->memory.allocations;
    ptowsp_status status = ptowsp_run_execute(s->run, &options);
    engine_count(engine);
    s->allocated = s->memory.allocations - allocations;
#ifdef NPU_CLOCK_MIRROR_H
    const ptowsp_run_stats stats = *ptowsp_run_result(s->run);  // exploring leaves others
#endif
    expect_ended(s, status, mode == PTOWSP_RUN_EXECUTE);
#ifdef NPU_CLOCK_MIRROR_H
    if (lanes != 1 || case_said(s, "fails")) {
        return;
    }
    if (ptowsp_program_check(s->context, s->program, PTOWSP_TARGET_ASCEND_NPU) == PTOWSP_OK) {
        execute_with_clock(s, &options, &stats);
    } else {
        engine_count("not for NPUs, so without the clock");
    }
#endif
}

// Whether time depends on what kernels compute or return.
static bool is_timed_by_data(const case_subject *s) {
    const ptowsp_program_tables *t = ptowsp_program_read(s->program);
    bool is_timed = false;
    for (uint32_t i = 1; i < t->tensor_count; i++) {
        is_timed = is_timed || (t->tensors[i].is_loaded && t->tensors[i].is_written);
    }
    for (uint32_t k = 1; k < t->kernel_count; k++) {
        const ptowsp_kernel_info *kernel = &t->kernels[k];
        is_timed = is_timed || (kernel->is_used && !kernel->is_tile_kernel && !kernel->has_cost &&
                                kernel->cycles == 0);
    }
    return is_timed;
}

static void refuse_time_only(case_subject *s) {
    const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
    s->engine = "time only, refused";
    engine_count(s->engine);
    refresh(s, 1);
    case_check(s, "status", 0, (uint64_t)ptowsp_run_execute(s->run, &options),
               (uint64_t)PTOWSP_UNSUPPORTED);
    case_check(s, "calls of kernels", 0, s->call_count, 0);
}

// The same times, and all data as it was; also where there is none.
static void execute_time_only(case_subject *s) {
    const void *before[CASE_TENSOR_MAX];
    case_fill(s);
    for (uint32_t t = 0; t < s->tensor_count; t++) {
        before[t] = case_copy((const char *)s->tensors[t].data, s->tensors[t].size);
    }
    execute(s, "time only", PTOWSP_RUN_TIME_ONLY, 1);
    for (uint32_t t = 0; t < s->tensor_count; t++) {
        assert_memory_equal(before[t], s->tensors[t].data, s->tensors[t].size);
    }
    bool is_alone = ptowsp_program_read(s->program)->load_count == 0;
    for (uint32_t t = 0; t < s->tensor_count; t++) {
        is_alone = is_alone && s->tensors[t].home == t;
    }
    if (!is_alone) {
        return;  // time depends on what memory has, or on where it is
    }
    case_bind(s, false);
    execute(s, "time only, without memory", PTOWSP_RUN_TIME_ONLY, 1);
    case_bind(s, true);
}

#if !defined(PTOWSP_NO_THREADS) && !defined(NPU_CLOCK_MIRROR_H)
static void execute_on_device(case_subject *s) {
    const ptowsp_device_desc desc = {.scheduler_count = 1, .vector_count = 2, .cube_count = 1};
    const ptowsp_run_options options = {.record_tasks = true, .token_limit = s->token_limit};
    ptowsp_device *device;
    void *memory[CASE_TENSOR_MAX];
    s->engine = "on a device";
    engine_count(s->engine);
    refresh(s, desc.vector_count + desc.cube_count);
    case_ok(s, "open", ptowsp_device_open(s->context, &desc, &device));
    for (uint32_t t = 0; t < s->tensor_count; t++) {
        const case_tensor *tensor = &s->tensors[t];
        case_ok(s, "alloc", ptowsp_device_alloc(device, NULL, tensor->size, &memory[t]));
        case_ok(s, "copy", ptowsp_device_copy_in(device, memory[t], tensor->data, tensor->size));
        const ptowsp_buffer buffer = case_buffer(tensor, memory[tensor->home]);
        case_ok(s, "bind", ptowsp_run_bind_tensor(s->run, tensor->desc.name, &buffer));
    }
    ptowsp_status status = ptowsp_device_run(device, s->run, &options);
    for (uint32_t t = 0; t < s->tensor_count && status == PTOWSP_OK; t++) {
        case_tensor *tensor = &s->tensors[t];
        case_ok(s, "copy", ptowsp_device_copy_out(device, tensor->data, memory[t], tensor->size));
    }
    expect_ended(s, status, true);
    for (uint32_t t = 0; t < s->tensor_count; t++) {
        case_ok(s, "free", ptowsp_device_free(device, memory[t]));
    }
    case_ok(s, "close", ptowsp_device_close(device));
}
#else
static void execute_on_device(case_subject *s) {
    (void)s;
}
#endif

// -- a program ------------------------------------------------------------------------------------

// Results follow from steps and records, and are the same without these. (What the clock has left are
// not results.)
static void check_without_records(case_subject *s) {
#ifndef NPU_CLOCK_MIRROR_H
    static results recorded, plain;
    s->engine = "without records";
    engine_count(s->engine);
    if (ptowsp_run_pipelines(s->run, NULL)) {
        check_results(s->run);
    }
    results_of(s->run, &recorded);
    refresh(s, 1);
    case_ok(s, "execute", ptowsp_run_execute(s->run, NULL));
    case_check(s, "records", 0, ptowsp_run_records(s->run) != NULL, 0);
    case_check(s, "steps", 0, ptowsp_run_steps(s->run, NULL) != NULL, 0);
    results_of(s->run, &plain);
    assert_memory_equal(&recorded, &plain, sizeof plain);
#else
    (void)s;
#endif
}

// *kept is the fingerprint, or with is_loaded the one that there has to be.
static void run_round(case_subject *s, bool is_loaded, ptowsp_fingerprint *kept) {
    ptowsp_fingerprint fingerprint;
    case_bind(s, true);
    const case_item *level = case_said(s, "records");
    if (level) {
        const ptowsp_record_options records = {PTOWSP_RECORD_EDGES, 0, 0, 0, false};
        assert_string_equal(level->rest, "edges");
        case_ok(s, "records", ptowsp_run_record(s->run, &records));
    }
    execute(s, is_loaded ? "loaded" : "built", PTOWSP_RUN_EXECUTE, 1);
    if (!case_said(s, "fails")) {
        case_ok(s, "fingerprint", ptowsp_run_fingerprint(s->run, &fingerprint));
        *kept = is_loaded ? *kept : fingerprint;
        assert_memory_equal(&fingerprint, kept, sizeof fingerprint);
    }
    if (!case_said(s, "fails") && !level && !case_said(s, "explored")) {
        check_without_records(s);
    }
    execute(s, "once more", PTOWSP_RUN_EXECUTE, 1);
    case_check(s, "allocations", 0, s->allocated, 0);
    if (is_timed_by_data(s)) {
        refuse_time_only(s);
    } else {
        execute_time_only(s);
    }
    for (uint32_t lanes = 2; lanes <= LANE_MAX; lanes++) {
        execute(s, lanes == 2 ? "on 2 threads" : "on 3 threads", PTOWSP_RUN_EXECUTE, lanes);
    }
    // The transient tensors of a program on a device need a block of its memory (transient_test.c).
    if (!is_loaded && ptowsp_program_read(s->program)->transient_count == 0) {
        execute_on_device(s);
    }
}

// The program is that of several ranks, in each round.
static void run_ranks(case_subject *s) {
#ifndef NPU_CLOCK_MIRROR_H
    case_group g;
    s->round = s->round_end = 0;
    case_group_begin(s, &g);
    while (s->round < s->items.count) {
        case_find_round_end(s);
        case_group_bind(s, &g);
        if (g.is_together) {
            s->engine = "together";
            engine_count(s->engine);
            case_group_simulate(s, &g);
        }
        if (g.is_alone) {
            s->engine = "alone";
            engine_count(s->engine);
            case_group_alone(s, &g);
        }
        s->round = s->round_end + 1;
    }
    case_group_end(s, &g);
#endif
    ptowsp_program_destroy(s->program);
}

static void run_program(case_subject *s, bool is_loaded) {
    static ptowsp_fingerprint kept[8];
    if (case_find(&s->items, "ranks")) {
        run_ranks(s);
        return;
    }
    s->engine = "create";
    s->round = s->round_end = 0;
    case_know_kernels(s);
    case_ok(s, "run", ptowsp_run_create(s->context, s->program, &s->run));
    s->round = 0;
    for (int round = 0; s->round < s->items.count; round++) {
        assert_true(round < 8);
        case_find_round_end(s);
        run_round(s, is_loaded, &kept[round]);
        s->round = s->round_end + 1;
    }
    ptowsp_run_destroy(s->run);
    ptowsp_program_destroy(s->program);
}

// The instructions of a kernel, in order and with their cycles, without those of 0 cycles.
static void check_lowers(case_subject *s, const case_item *item) {
    const ptowsp_program_tables *t = ptowsp_program_read(s->program);
    const char *at = item->rest;
    ptowsp_kernel kernel = {0};
    ptowsp_kernel_stats stats;
    char name[64];
    case_word(&at, name);
    for (uint32_t k = 1; k < t->kernel_count; k++) {
        kernel.id = strcmp(t->kernels[k].name, name) == 0 ? k : kernel.id;
    }
    if (kernel.id == 0) {
        return;  // the module does not use it
    }
    s->line = item->line;
    uint64_t cycles = (uint64_t)case_number(s, &at);
    case_ok(s, "measure", ptowsp_kernel_measure(s->module, kernel, NULL, &stats));
    case_check(s, "cycles of the kernel", 0, stats.cycles, cycles);
    for (uint32_t i = 0; i < ptowsp_kernel_insn_count(s->module, kernel); i++) {
        ptowsp_insn insn = ptowsp_kernel_insn_at(s->module, kernel, i, &cycles);
        if (cycles > 0) {
            at += strspn(at, " ,:");
            case_word(&at, name);
            // Between the cores v9 counts one move, and on 910B that is a push and a pop.
            case_check_text(s, "an instruction",
                            strcmp(insn.name, "TPUSH") == 0 ? "TMOV" : insn.name, name);
            case_check(s, "cycles of instruction", i, cycles, (uint64_t)case_number(s, &at));
        }
    }
    case_check_text(s, "the other instructions", "", at);
    s->line = 0;
}

static void check_kernels(case_subject *s) {
    s->engine = "lowered";
    for (size_t i = 0; i < s->c->file->lowers.count; i++) {
        check_lowers(s, &s->c->file->lowers.items[i]);
    }
    for (size_t i = 0; i < s->c->given.count; i++) {
        if (!strcmp(s->c->given.items[i].word, "lowers")) {
            check_lowers(s, &s->c->given.items[i]);
        }
    }
}

static bool take(void *user, const void *text, size_t length) {
    char **saved = (char **)user;
    *saved = case_join(*saved, text, length);
    return true;
}

// Programs that were built and loaded, of the case in one way, one mode and one schedule.
static void test_schedule(case_subject *s) {
    const case_item *refused = case_said(s, "refused");
    case_check_form(s);
    case_write_text(s);
    s->engine = "parse";
    ptowsp_status status = case_parse(s);
    const ptowsp_program_desc desc = case_desc(s);
    if (refused) {
        engine_count("refused programs");
        status = status ? status : ptowsp_program_create(s->context, s->module, &desc, &s->program);
        case_check_error(s, refused, status);
        ptowsp_module_destroy(s->module);
        s->module = NULL;
        return;
    }
    case_ok(s, "module", status);
    const ptowsp_parse_desc kernels = {s->attached, s->attached_count, 0};
    char *saved = case_copy("", 0);
    const ptowsp_output text = {take, &saved};
    case_ok(s, "program", ptowsp_program_create(s->context, s->module, &desc, &s->program));
    case_ok(s, "save", ptowsp_program_save(s->context, s->module, &desc, text));
    check_kernels(s);
    if (s->tensor_count == 0) {
        case_make_tensors(s);
    }
    ptowsp_module_destroy(s->module);
    run_program(s, false);
    s->engine = "load";
    case_ok(s, "load",
            ptowsp_program_load(s->context, saved, strlen(saved), &kernels, &s->program, NULL));
    run_program(s, true);
}

static void test_way(const case_text *c, const case_item *way, uint32_t choice) {
    static case_subject s;
    const case_items *modes = &c->file->modes;
    memset(&s, 0, sizeof s);
    s.c = c;
    s.way = way;
    s.choice = choice;
    s.engine = "begin";
    ptowsp_context_desc desc = test_lanes_desc(LANE_MAX);
    desc.resize = test_resize;
    desc.resize_user = &s.memory;
    assert_ok(ptowsp_context_create(&desc, &s.context));
    case_gather(&s);
    case_attach(&s);
    const bool is_run = !c->file->has_texts && !c->file->has_scripts;
    if (c->file->has_texts) {
        engine_add("texts", case_run_texts(&s));
    } else if (c->file->has_scripts) {
        engine_add("scripts", case_run_scripts(&s));
    }
    for (size_t m = 0; is_run && (m < modes->count || m == 0); m++) {
        s.mode = modes->count ? &modes->items[m] : NULL;
        for (size_t which = 0; case_choose(&s, which); which++) {
            for (s.alternative = 0; s.alternative < case_part_count(s.schedule); s.alternative++) {
                test_schedule(&s);
            }
        }
    }
    ptowsp_context_destroy(s.context);
    assert_int_equal(s.memory.live_blocks, 0);
}

static void cases__every_engine_gives_what_the_case_says(void **state) {
    const case_text *c = (const case_text *)*state;
    const case_items *ways = &c->file->ways;
    size_t blocks = case_all.count;
    uint32_t choices = 1;
    for (size_t i = 0; i < c->items.count; i++) {
        uint32_t count =
            strcmp(c->items.items[i].word, "let") ? 1 : case_part_count(c->items.items[i].rest);
        choices = count > choices ? count : choices;
    }
    for (size_t w = 0; w < ways->count || w == 0; w++) {
        for (uint32_t choice = 0; choice < choices; choice++) {
            test_way(c, ways->count ? &ways->items[w] : NULL, choice);
            case_release(blocks);
        }
    }
}

int main(int count, char **paths) {
    const case_list list = case_read_all(count, paths);
    struct CMUnitTest *tests =
        (struct CMUnitTest *)case_alloc((list.count + 1) * sizeof(struct CMUnitTest));
    for (size_t i = 0; i < list.count; i++) {
        tests[i].name = list.cases[i].name;
        tests[i].test_func = cases__every_engine_gives_what_the_case_says;
        tests[i].initial_state = &list.cases[i];
    }
    int failed = _cmocka_run_group_tests("cases", tests, list.count, NULL, NULL);
    print_message("%zu cases, %llu checks\n", list.count, (unsigned long long)case_check_count);
    int missing = engines_report(count == 1);
    case_release(0);
    free(case_all.blocks);
    return failed || missing || list.count == 0;
}

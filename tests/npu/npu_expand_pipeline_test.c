// aicpu/expand.cpp of random pipelines: all of them compile without warnings; and where each channel
// has one sender and one receiver, and data is not shared, so that order does not matter, their
// processes run the tasks that the slow reference of pipeline_reference.h has, as threads.

#define _GNU_SOURCE  // mkdtemp

#include "pipeline_random.h"

#include "npu_expand_run.h"

enum { PIPELINES = 40 };

typedef struct calls {
    int64_t of[SIM_CALL_MAX][2];
    uint64_t count;
} calls;

static void run_task(void *user, const words_task *task, const ptowsp_task *as_task) {
    calls *called = (calls *)user;
    (void)task;
    assert_true(called->count < SIM_CALL_MAX);
    called->of[called->count][0] = ptowsp_task_axis(as_task, 0);
    called->of[called->count++][1] = ptowsp_task_axis(as_task, 1);
}

static int compare(const void *a, const void *b) {
    return memcmp(a, b, 2 * sizeof(int64_t));
}

static bool has_one_order(const sim_sample *s) {
    int senders[SIM_CHANNEL_MAX] = {0}, receivers[SIM_CHANNEL_MAX] = {0};
    for (int i = 0; i < s->p.process_count; i++) {
        const sim_process *process = &s->p.processes[i];
        for (int c = 0; c < process->produce_count; c++) {
            senders[process->produces[c]] += process->replicas == 0 ? 1 : 2;
        }
        for (int c = 0; c < process->consume_count; c++) {
            receivers[process->consumes[c]] += process->replicas == 0 ? 1 : 2;
        }
    }
    for (int c = 0; c < s->p.channel_count; c++) {
        if (senders[c] > 1 || receivers[c] > 1) {
            return false;
        }
    }
    return s->status == PTOWSP_OK && !s->around.has_data;
}

static void check(const words_unit *unit, uint32_t number, sim_sample *s) {
    static calls expected, called;
    words_host host;
    ptowsp_run *run = test_run_of(s->context, s->built.program);
    sim_bind(&s->built, &s->b, run);
    called.count = 0;
    words_over over = {run, run_task, &called, 0, 0, 0};
    words_walk(unit, number, &over, &host);
    assert_int_equal(over.pipelines, 1);
    assert_int_equal(sim_sample_execute(s, run, PTOWSP_RUN_EXECUTE, false), PTOWSP_OK);
    expected.count = s->built.call_count;
    memcpy(expected.of, s->built.calls, sizeof s->built.calls);
    if (expected.count != called.count) {
        sim_complain(s, run, "another number of tasks");
    }
    qsort(expected.of, expected.count, sizeof expected.of[0], compare);
    qsort(called.of, called.count, sizeof called.of[0], compare);
    assert_memory_equal(expected.of, called.of, called.count * sizeof called.of[0]);
    ptowsp_run_destroy(run);
}

TEST(expand__writes_pipelines_as_the_reference_has_them) {
    if (!words_compiler()) {
        print_message("no C++ compiler\n");
        skip();
    }
    static sim_sample *samples[PIPELINES];
    uint64_t seed = test_seed() + 44, tasks = 0, runs = 0;
    words_unit unit = {0};
    for (unsigned number = 0, made = 0; made < PIPELINES; number++) {
        sim_sample *s = sim_sample_random(seed, number);
        bool is_simple = made % 2 == 0;
        if (sim_has_loose_channel(&s->p) || (is_simple && !has_one_order(s))) {
            sim_sample_free(s);
            continue;
        }
        sim_sample_build(s);
        assert_int_equal(s->built.status, PTOWSP_OK);
        words_unit_add(&unit, s->context, s->built.program);
        samples[made++] = s;
    }
    words_unit_build(&unit);
    for (uint32_t i = 0; i < PIPELINES; i++) {
        if (has_one_order(samples[i])) {
            check(&unit, i, samples[i]);
            tasks += samples[i]->built.call_count;
            runs++;
        }
        sim_sample_free(samples[i]);
    }
    words_unit_free(&unit);
    print_message("%llu runs, %llu tasks\n", (unsigned long long)runs, (unsigned long long)tasks);
    assert_true(runs >= PIPELINES / 2 && tasks > 300);
}

// Emitted trees of the cases of the tables included before: each case is built for one of the
// schedules of oracle_run.h, in turn, or with NPU_EQUAL_COUNT set, for so many of them. A tree must
// do what the library does, to the byte and the cycle; what tensors hold and how long it took is
// also what v9 gave. Cases with kernels that are C functions without source are refused by name.

#ifndef PTOWSP_NPU_ORACLE_H
#define PTOWSP_NPU_ORACLE_H

#include "npu_equal.h"

#include "oracle_run.h"

static bool all_have_source(const oracle *o) {
    for (uint32_t k = 0; k < KERNEL_COUNT; k++) {
        if (o->kernels[k].id && oracle_kernels[k].fn && !o->is_declared &&
            !oracle_function_name(oracle_kernels[k].fn)) {
            return false;
        }
    }
    return !o->is_declared || o->has_tile_kernels;
}

// The tree has just run: sums over what it left, and its makespan was the library's.
static void check_v9(const oracle *o, int mode, ptowsp_cycles makespan, ptowsp_model model) {
    check_outputs(o);
    if (o->c->workload->process_count) {
        mode = IN_ORDER;  // all are alike
    }
    if (mode != HYBRID && model == PTOWSP_MODEL_UNIT) {
        check(o, "makespan", 0, makespan, o->variant->times[mode].makespan);
    }
}

static void compare_variant(oracle *o, ptowsp_run *run, ptowsp_npu *npu, int mode,
                            ptowsp_model model) {
    npu_subject subject;
    memset(&subject, 0, sizeof subject);
    o->called_axes = (int64_t(*)[ARG_MAX])malloc(o->variant->task_count * sizeof(*o->called_axes));
    assert_non_null(o->called_axes);
    o->call_count = o->wrong_call_count = o->next_task = 0;
    fill_tensors(o);
    bind_variant(o, run, true);
    subject.context = o->context;
    subject.run = run;
    subject.npu = npu;
    subject.model = model;
    subject.slot_count = NPU_SLOT_MAX;
    subject.random = (uint64_t)mode;
    for (uint32_t t = 0; t < tensor_count(o->c->workload); t++) {
        npu_block_add(&subject, o->data[t], (size_t)byte_count(&o->c->workload->tensors[t]));
    }
    npu_subject_check(&subject);
    assert_int_equal(subject.status, PTOWSP_OK);
    check_v9(o, mode, subject.makespan, model);
    free(o->called_axes);
}

static void compare_mode(oracle *o, int mode) {
    ptowsp_schedule schedule = build_schedule(o, mode);
    ptowsp_program_desc desc = {o->c->name, &schedule};
    ptowsp_program *program = NULL;
    ptowsp_run *run = NULL;
    o->variant = NULL;
    o->mode = mode_names[mode];
    snprintf(npu_now.doing, sizeof npu_now.doing, "%s, %s", o->c->name, o->mode);
    check_ok(o, "program", ptowsp_program_create(o->context, o->module, &desc, &program));
    if (!all_have_source(o)) {
        size_t size = 0;
        ptowsp_status status = ptowsp_npu_emit_files(o->context, program, npu_take_nothing, &size);
        assert_int_equal(status, PTOWSP_UNSUPPORTED);
        npu_now.tally.skipped++;
        ptowsp_program_destroy(program);
        return;
    }
    ptowsp_npu *npu = npu_build(o->context, program);
    check_ok(o, "run", ptowsp_run_create(o->context, program, &run));
    for (uint32_t i = 0; i < o->c->variant_count && npu; i++) {
        o->variant = &o->c->variants[i];
        compare_variant(o, run, npu, mode, PTOWSP_MODEL_UNIT);
        if (o->has_tile_kernels && i == 0) {
            compare_variant(o, run, npu, mode, PTOWSP_MODEL_A2A3);
            compare_variant(o, run, npu, mode, PTOWSP_MODEL_A5);
        }
    }
    ptowsp_run_destroy(run);
    ptowsp_npu_destroy(npu);
    ptowsp_program_destroy(program);
}

static void npu__the_tree_of_an_oracle_case_gives_what_v9_gave(void **state) {
    static oracle o;
    size_t index = *(const size_t *)*state;
    int mode_count = (int)npu_number_of("NPU_EQUAL_COUNT", 1);
    memset(&o, 0, sizeof(o));
    o.c = &oracle_cases[index];
    o.mode = o.step = "build";
    o.time_only = true;
    o.lane_count = 1;
    assert_int_equal(ptowsp_context_create(NULL, &o.context), PTOWSP_OK);
    check_ok(&o, "module", ptowsp_module_create(o.context, NULL, &o.module));
    build_module(&o);
    for (uint32_t t = 0; t < tensor_count(o.c->workload); t++) {
        o.data[t] = malloc((size_t)byte_count(&o.c->workload->tensors[t]));
        assert_non_null(o.data[t]);
    }
    for (int i = 0; i < mode_count && i < MODE_COUNT; i++) {
        compare_mode(&o, ((int)index + i) % MODE_COUNT);
    }
    for (uint32_t t = 0; t < tensor_count(o.c->workload); t++) {
        free(o.data[t]);
    }
    ptowsp_module_destroy(o.module);
    ptowsp_context_destroy(o.context);
}

static int compare_cases(const char *name) {
    static size_t indices[CASE_COUNT];
    static struct CMUnitTest tests[CASE_COUNT];
    size_t first = (size_t)npu_number_of("NPU_EQUAL_FIRST", 0), count = 0;
    uint64_t share = test_share(CASE_COUNT);
    for (uint64_t number = 0; number < share; number++) {
        size_t i = (size_t)(number * CASE_COUNT / share);
        if (i < first) {
            continue;
        }
        indices[i] = i;
        tests[count].name = oracle_cases[i].name;
        tests[count].test_func = npu__the_tree_of_an_oracle_case_gives_what_v9_gave;
        tests[count++].initial_state = &indices[i];
    }
    return npu_run_tests(name, tests, count);
}

#endif

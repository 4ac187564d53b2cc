// Emitted trees of the cases of files that say `trees`: each case is built for one of its modes and
// schedules, in turn, or with NPU_EQUAL_COUNT set, for so many of them. A tree must do what the library
// does, to the byte and the cycle; what tensors hold and how long it took is also what the case says.
// Cases with kernels that are C functions without a source are refused.

#define _POSIX_C_SOURCE 200809L

#include "npu_equal.h"

#include "support/case_expect.h"

static bool all_have_source(const case_subject *s) {
    const ptowsp_program_tables *t = ptowsp_program_read(s->program);
    for (uint32_t k = 1; k < t->kernel_count; k++) {
        if (t->kernels[k].is_used && !t->kernels[k].is_tile_kernel && !t->kernels[k].source.text) {
            return false;
        }
    }
    return true;
}

static bool has_tile_kernels(const case_subject *s) {
    const ptowsp_program_tables *t = ptowsp_program_read(s->program);
    for (uint32_t k = 1; k < t->kernel_count; k++) {
        if (t->kernels[k].is_used && t->kernels[k].is_tile_kernel) {
            return true;
        }
    }
    return false;
}

// What a tree leaves behind: data, and the makespan, which was the library's.
static void expect_of_tree(case_subject *s, ptowsp_cycles makespan, ptowsp_model model) {
    for (size_t i = s->round; i < s->round_end; i++) {
        const case_item *item = &s->items.items[i];
        const char *at = item->rest;
        s->line = item->line;
        if (case_applies(s, item) && !strcmp(item->word, "sums")) {
            case_expect_sums(s, at);
        } else if (case_applies(s, item) && !strcmp(item->word, "makespan") &&
                   model == PTOWSP_MODEL_UNIT) {
            case_check(s, "makespan", 0, makespan, (uint64_t)case_number(s, &at));
        }
    }
}

static void compare_round(case_subject *s, ptowsp_npu *npu, uint64_t random, ptowsp_model model) {
    npu_subject subject = {0};
    case_bind(s, true);
    case_fill(s);
    s->core_count = 1;
    s->next_task = 0;
    subject.context = s->context;
    subject.run = s->run;
    subject.npu = npu;
    subject.model = model;
    subject.slot_count = NPU_SLOT_MAX;
    subject.random = random;
    for (uint32_t t = 0; t < s->tensor_count; t++) {
        npu_block_add(&subject, s->tensors[t].data, s->tensors[t].size);
    }
    npu_subject_check(&subject);
    assert_int_equal(subject.status, PTOWSP_OK);
    expect_of_tree(s, subject.makespan, model);
}

static void compare_program(case_subject *s, uint64_t random) {
    snprintf(npu_now.doing, sizeof npu_now.doing, "%s%s%s", s->c->name, s->mode ? ", " : "",
             s->mode ? s->mode->word : "");
    if (!all_have_source(s)) {
        size_t size = 0;
        ptowsp_status status =
            ptowsp_npu_emit_files(s->context, s->program, npu_take_nothing, &size);
        assert_int_equal(status, PTOWSP_UNSUPPORTED);
        npu_now.tally.skipped++;
        return;
    }
    ptowsp_npu *npu = npu_tree_build(s->context, s->program);
    case_ok(s, "run", ptowsp_run_create(s->context, s->program, &s->run));
    case_know_kernels(s);
    for (s->round = 0; npu && s->round < s->items.count; s->round = s->round_end + 1) {
        case_find_round_end(s);
        compare_round(s, npu, random, PTOWSP_MODEL_UNIT);
        if (has_tile_kernels(s) && s->round == 0) {
            compare_round(s, npu, random, PTOWSP_MODEL_A2A3);
            compare_round(s, npu, random, PTOWSP_MODEL_A5);
        }
    }
    ptowsp_run_destroy(s->run);
    ptowsp_npu_destroy(npu);
}

// Goes to one of a case's schedules, in turn.
static void choose_schedule(case_subject *s, size_t turn) {
    size_t count = 1;
    while (case_choose(s, count)) {
        count++;
    }
    assert_true(case_choose(s, turn % count));
}

static void compare_turn(const case_text *c, size_t turn) {
    const case_items *modes = &c->file->modes,
                     *ways = &c->file->ways;  // later ways have cost functions
    static case_subject s;
    memset(&s, 0, sizeof s);
    s.c = c;
    s.way = ways->count ? &ways->items[0] : NULL;
    s.mode = modes->count ? &modes->items[turn % modes->count] : NULL;
    s.engine = "as a tree";
    assert_ok(ptowsp_context_create(NULL, &s.context));
    case_gather(&s);
    case_attach(&s);
    choose_schedule(&s, turn);
    case_write_text(&s);
    case_ok(&s, "module", case_parse(&s));
    const ptowsp_program_desc desc = case_desc(&s);
    case_ok(&s, "program", ptowsp_program_create(s.context, s.module, &desc, &s.program));
    case_make_tensors(&s);
    compare_program(&s, turn);
    ptowsp_program_destroy(s.program);
    ptowsp_module_destroy(s.module);
    ptowsp_context_destroy(s.context);
}

typedef struct tree_case {
    const case_text *c;
    size_t index;  // among those of its file
} tree_case;

static void npu__the_tree_of_a_case_gives_what_the_case_says(void **state) {
    const tree_case *t = (const tree_case *)*state;
    size_t count = (size_t)npu_number_of("NPU_EQUAL_COUNT", 1), blocks = case_all.count;
    for (size_t i = 0; i < count; i++) {
        compare_turn(t->c, t->index + i);
    }
    case_release(blocks);
}

// Each case has a tree that ran with each of its bindings, or is one of those that are refused.
static bool all_are_compared(size_t case_count) {
    const npu_tally *tally = &npu_now.tally;
    uint64_t trees = tally->builds + tally->reused;
    bool are_all = case_count > 0 && trees + tally->skipped >= case_count &&
                   tally->bindings >= trees && tally->runs >= tally->bindings;
    print_message("%zu cases: %llu trees, %llu refused%s\n", case_count, (unsigned long long)trees,
                  (unsigned long long)tally->skipped, are_all ? "" : ", TOO FEW");
    return are_all;
}

int main(int count, char **paths) {
    const case_list list = case_read_all(count, paths);
    struct CMUnitTest *tests =
        (struct CMUnitTest *)case_alloc((list.count + 1) * sizeof(struct CMUnitTest));
    tree_case *states = (tree_case *)case_alloc((list.count + 1) * sizeof *states);
    size_t first = (size_t)npu_number_of("NPU_EQUAL_FIRST", 0), all = 0, taken = 0;
    for (size_t i = 0; i < list.count; i++) {
        const tree_case state = {&list.cases[i], all};
        states[all] = state;
        all += list.cases[i].file->has_trees;
    }
    uint64_t share = test_share(all);
    for (uint64_t number = 0; number < share; number++) {
        size_t i = (size_t)(number * all / share);
        if (i >= first) {
            tests[taken].name = states[i].c->name;
            tests[taken].test_func = npu__the_tree_of_a_case_gives_what_the_case_says;
            tests[taken++].initial_state = &states[i];
        }
    }
    int failed = npu_run_tests("npu_cases", tests, taken);
    failed += !getenv("NPU_EQUAL_TREES") && !all_are_compared(taken);
    case_release(0);
    free(case_all.blocks);
    return failed;
}

// A program as text, with its run and its tree, which must do what the library does (npu_equal.h).

#ifndef NPU_TREES_H
#define NPU_TREES_H

#include "npu_equal.h"
#include "npu_texts.h"

#include "src/text/parse.h"

typedef struct npu_tree {
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_run *run;
    ptowsp_npu *npu;  // NULL: it was written for others to compile
} npu_tree;

// Directives are lines of a schedule, indented, or "".
static inline void npu_tree_make(npu_tree *t, const char *module, const char *directives,
                                 const ptowsp_parse_kernel *kernels, uint32_t count) {
    const ptowsp_parse_desc attached = {kernels, count, 0};
    const char *text = textf("%s%s%s", module, *directives ? "schedule\n" : "", directives);
    pwsp_parse_saved saved;
    memset(t, 0, sizeof *t);
    memset(&saved, 0, sizeof saved);
    t->context = test_context(NULL);
    test_ok(t->context,
            pwsp_parse_text(t->context, text, strlen(text), 1, &attached, &saved, &t->m, NULL));
    const ptowsp_program_desc desc = {NULL, &saved.schedule};
    t->program = test_program(t->context, t->m, &desc);
    t->run = test_run_of(t->context, t->program);
    t->npu = npu_tree_build(t->context, t->program);
}

// All errors were told in the library's words.
static inline void npu_tree_free(npu_tree *t) {
    assert_true(npu_now.tally.other_texts == 0);
    ptowsp_npu_destroy(t->npu);
    test_destroy(t->run, t->program, t->m, t->context);
}

// Runs what is bound in both, with these blocks of memory: the library's status has this name.
static inline void npu_tree_run(const npu_tree *t, uint64_t random, const npu_block *blocks,
                                uint32_t count, const char *status) {
    const uint32_t slots = ptowsp_program_read(t->program)->slot_count;
    npu_subject both = {.context = t->context,
                        .run = t->run,
                        .npu = t->npu,
                        .model = PTOWSP_MODEL_UNIT,
                        .slot_count = slots < NPU_SLOT_MAX ? slots : NPU_SLOT_MAX,
                        .random = random};
    for (uint32_t i = 0; i < count; i++) {
        npu_block_add(&both, blocks[i].data, blocks[i].size);
    }
    npu_subject_check(&both);
    if (strcmp(ptowsp_status_name(both.status), status) != 0) {
        NPU_FAIL("the library says %s: %s", ptowsp_status_name(both.status), both.error_text);
    }
}

#endif

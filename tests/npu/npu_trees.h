// A program as text, with its run and its tree, which must do what the library does (npu_equal.h).

#ifndef NPU_TREES_H
#define NPU_TREES_H

#include "npu_equal.h"
#include "npu_texts.h"

typedef struct npu_tree {
    ptowsp_context *context;
    ptowsp_program *program;
    ptowsp_run *run;
    ptowsp_npu *npu;  // NULL: it was written for others to compile
} npu_tree;

// Loaded as a program that was saved. Directives are lines of its schedule, indented, or "".
static inline void npu_tree_make(npu_tree *t, const char *module, const char *directives,
                                 const ptowsp_parse_kernel *kernels, uint32_t count) {
    const ptowsp_parse_desc attached = {kernels, count, 0};
    const char *body = textf("%s%s%s", module, *directives ? "schedule\n" : "", directives);
    const char *text =
        textf("ptowsp program 1, %zu bytes, %016llx\n%s", strlen(body),
              (unsigned long long)ptowsp_hash(PTOWSP_HASH_START, body, strlen(body)), body);
    memset(t, 0, sizeof *t);
    t->context = test_context(NULL);
    test_ok(t->context,
            ptowsp_program_load(t->context, text, strlen(text), &attached, &t->program, NULL));
    t->run = test_run_of(t->context, t->program);
    t->npu = npu_tree_build(t->context, t->program);
}

// All errors were told in the library's words.
static inline void npu_tree_free(npu_tree *t) {
    assert_true(npu_now.tally.other_texts == 0);
    ptowsp_npu_destroy(t->npu);
    test_destroy(t->run, t->program, NULL, t->context);
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

// Building a tree where memory is out: every allocation is refused once, when the tree is in the
// cache and when it is not. The emitter is compiled in, with a hook.

#define _POSIX_C_SOURCE 200809L

#include "npu_refuse.h"

#include "npu_build_fixture.h"

// Builds with the n-th allocation refused; returns whether that was one too many to refuse.
static bool survives(build *b, size_t n) {
    ptowsp_npu *npu = b->npu;
    hooks.allocations = 0;
    hooks.refuse_at = n;
    ptowsp_status status = ptowsp_npu_build(b->f.context, b->f.program, &b->desc, &npu);
    hooks.refuse_at = 0;
    if (status == PTOWSP_OK) {
        ptowsp_npu_destroy(npu);
    } else {
        assert_int_equal(status, PTOWSP_OUT_OF_MEMORY);
        assert_null(npu);
        assert_int_equal(ptowsp_context_error(b->f.context).status, PTOWSP_OUT_OF_MEMORY);
    }
    assert_int_equal(hooks.live, 0);
    return hooks.allocations < n;
}

BUILD_TEST(memory__that_is_refused_is_an_error_and_leaves_nothing) {
    assert_true(survives(b, SIZE_MAX));
    const size_t whole = hooks.allocations;
    size_t found = 1;
    for (; !survives(b, found); found++) {
        assert_true(found <= whole);
    }
    // Not in the cache, but its objects are. Until it is looked for there, all is as before.
    const ptowsp_npu_build_desc desc = {b->cache, b->compiler, "-O6"};
    b->desc = desc;
    bool is_done = false;
    for (size_t n = found - 20; !is_done; n++) {
        is_done = survives(b, n);
        assert_int_equal(entries_like(b->cache, "tmp."), 0);
    }
    assert_int_equal(npu_entries(b->cache), 3);
    // Where an entry stands that is broken, it is moved away first.
    is_done = false;
    assert_ok(ptowsp_npu_build(b->f.context, b->f.program, &b->desc, &b->npu));
    const char *entry = textf("%s", ptowsp_npu_directory(b->npu));
    ptowsp_npu_destroy(b->npu);
    b->npu = NULL;
    for (size_t n = found - 20; !is_done; n++) {
        write_file(entry, "complete", "it is not");
        is_done = survives(b, n);
        assert_int_equal(entries_like(b->cache, "tmp."), 0);
    }
}

// Of a build that fails, the error is its own, or that there is no memory: also for its text alone.
BUILD_TEST(memory__for_the_error_of_a_build_may_be_refused) {
    b->desc.compiler = "/nowhere/c++";
    uint32_t own = 0, others = 0;
    for (size_t n = 1; own < 2; n++) {  // the second time, nothing was refused
        ptowsp_npu *npu = b->npu;
        hooks.allocations = 0;
        hooks.refuse_at = n;
        const ptowsp_status status = ptowsp_npu_build(b->f.context, b->f.program, &b->desc, &npu);
        hooks.refuse_at = 0;
        const ptowsp_error error = ptowsp_context_error(b->f.context);
        assert_null(npu);
        assert_int_equal(error.status, status);
        assert_int_equal(hooks.live, 0);
        if (status == PTOWSP_SYSTEM_FAILED && strstr(error.text, "/nowhere/c++")) {
            own += hooks.allocations < n ? 2 : 0;
        } else {
            others += status != PTOWSP_OUT_OF_MEMORY;
            assert_true(status == PTOWSP_OUT_OF_MEMORY ||
                        strstr(error.text, "no memory for building"));
        }
    }
    assert_true(others > 0);
}

// Iterations of a parallel loop that write the same tile are decisions; what is said of them is in
// tests/cases/written.case.

#include "written.h"

static bool stop(void *user, const ptowsp_decision *decision) {
    (*(uint32_t *)user)++;
    return strstr(decision->chosen, "conflict") == NULL;
}

TEST_F(conflict__is_the_last_decision_of_a_visitor_that_stops_there) {
    static const char text[] = "module m\naxis n 8\ntensor x f32 [16, 8] global\n"
                               "kernel k(axes 1, out o f32 2 x 8) vector, 10 cycles, time only\n"
                               "workload w\n  parallel i in n\n    task k(i) o = x\n"
                               "    task k(i) o = x\n";
    const ptowsp_record_options record = {PTOWSP_RECORD_TASKS, 0, 0, 0, false};
    uint32_t count = 0;
    execute_text(f, text, NULL, &record, NULL);
    assert_false(ptowsp_run_decisions(f->run, stop, &count));
    assert_int_equal(count, 2);  // the kernel, and the first of two conflicts
}

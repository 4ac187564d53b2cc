// Pipelines as statements of larger workloads, on paper: what they wait for and what waits for them,
// in order and in dataflow issue, where lanes choose, under windows and limits of rate; what the
// results of a run say of them.

#include "pipeline_fixture.h"

enum { IN_ORDER, FIFO, STEALING, THIEVES, PRIORITY, SCHEDULE_COUNT };

static void expect(const fixture *f, uint64_t task, uint64_t start, uint64_t end) {
    const ptowsp_task_record *record = &ptowsp_run_records(f->run)[task];
    assert_true(task < ptowsp_run_result(f->run)->task_count);
    if (record->start != start || record->end != end) {
        fail_msg("task %llu runs from %llu to %llu, not from %llu to %llu",
                 (unsigned long long)task, (unsigned long long)record->start,
                 (unsigned long long)record->end, (unsigned long long)start,
                 (unsigned long long)end);
    }
}

// One process with one task on the tile of a tensor at (row, col).
static void touch_pipeline(const fixture *f, const char *name, ptowsp_kernel kernel,
                           ptowsp_tensor tensor, int64_t row, int64_t col, int64_t cycles) {
    PTOWSP_PIPELINE(f->m, name) {
        PTOWSP_PROCESS(f->m, "only") {
            touch(f, kernel, tensor, number(f, row), col, number(f, cycles), cycles);
        }
    }
}

// -- data and edges -------------------------------------------------------------------------------

// Two tensors in one piece of memory are the same data, whatever their names.
static void pipeline_program__tensors_that_share_memory_are_the_same(void **state) {
    (void)state;
    fixture f;
    fixture_make(&f);
    ptowsp_buffer buffer;
    PTOWSP_WORKLOAD(f.m, "main") {
        PTOWSP_COMBINE(f.m) {
            touch_pipeline(&f, "p", f.writes, f.x, 0, 0, 5);
            touch(&f, f.reads, f.y, number(&f, 6), 6, number(&f, 0), 7);
        }
    }
    compile(&f, NULL);
    run_compiled(&f);
    expect(&f, 1, 0, 7);
    memset(&buffer, 0, sizeof buffer);
    buffer.data = f.x_data;
    assert_int_equal(ptowsp_run_bind_tensor(f.run, "y", &buffer), PTOWSP_OK);
    run_compiled(&f);
    expect(&f, 1, 5, 12);
    fixture_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipeline_program__tensors_that_share_memory_are_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

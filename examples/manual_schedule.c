// Sections 13 to 15, 18, 20, 22 and 32 of the manual: which schedules a target supports, a search that
// is given up, memory that lanes share, and spaces of any rank.

#include "common/manual.h"

#include <string.h>

enum { TASKS = 6 };

static void capabilities_show(void) {
    uint32_t refused = 0;
    for (uint32_t i = 0; i < ptowsp_capability_count(); i++) {
        const ptowsp_capability row = ptowsp_capability_at(i);
        if (row.support[PTOWSP_TARGET_ASCEND_NPU] == PTOWSP_SUPPORT_REFUSED) {
            if (refused++ == 0) {
                printf("%s is %s by %s: %s", row.directive,
                       ptowsp_support_name(row.support[PTOWSP_TARGET_ASCEND_NPU]),
                       ptowsp_target_name(PTOWSP_TARGET_ASCEND_NPU), row.value);
            } else {
                printf(", %s %s", row.directive, row.value);
            }
        }
    }
    puts("");
    char text[8192];
    ptowsp_output_buffer table = {.data = text, .size = sizeof text};
    ptowsp_capability_print(ptowsp_output_to_buffer(&table));
    manual_check(table.length > 0 && table.length < sizeof text && strstr(text, "window"),
                 "the table of all directives");
    manual_check(strcmp(ptowsp_ring_name(PTOWSP_RING_TASKS), ptowsp_ring_name(PTOWSP_RING_MAP)) !=
                         0 &&
                     strcmp(ptowsp_depth_name((ptowsp_depth)0), "unknown") != 0 &&
                     strcmp(ptowsp_location_name(PTOWSP_LOCATION_GLOBAL), "global") == 0 &&
                     strcmp(ptowsp_unit_name(PTOWSP_UNIT_CUBE), "cube") == 0,
                 "names in texts");
}

static ptowsp_status give_up(void *user, ptowsp_run *run) {  // as when the user closes a window
    (void)run;
    ptowsp_schedule_search_cancel((ptowsp_context *)user);
    return PTOWSP_OK;
}

// Six tasks, each of which reads 8,000 bytes in 100 cycles, on two lanes: alone, and where both lanes
// share a memory of 40 bytes a cycle.
static void shared_show(ptowsp_context *context) {
    ptowsp_module *m;
    if (ptowsp_module_create(context, NULL, &m)) {
        return;
    }
    const ptowsp_kernel_desc kernel = {.name = "read", .cycles = 100, .bytes = 8000};
    const ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(m, &kernel)};
    PTOWSP_WORKLOAD(m, "reads") {
        PTOWSP_PARALLEL(m, i, ptowsp_axis_dense(m, "n", TASKS)) ptowsp_task_make(m, &task);
    }
    const ptowsp_shared_memory of_910b = ptowsp_shared_memory_of(PTOWSP_MODEL_910B);
    manual_check(of_910b.hbm_rate > 0 && of_910b.l2_rate >= of_910b.hbm_rate,
                 "the rates of a 910B");
    for (uint32_t is_shared = 0; is_shared < 2; is_shared++) {
        ptowsp_schedule schedule = {.lane_count = 2};
        if (is_shared) {
            schedule.shared =
                (ptowsp_shared_memory){.hbm_rate = 4000, .l2_rate = 4000, .lane_rate = 8000};
        }
        const ptowsp_program_desc desc = {.schedule = &schedule};
        const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
        ptowsp_program *program;
        ptowsp_run *run;
        if (ptowsp_program_create(context, m, &desc, &program) ||
            ptowsp_run_create(context, program, &run) || ptowsp_run_execute(run, &options)) {
            manual_check(false, ptowsp_context_error(context).text);
            break;
        }
        const ptowsp_cycles cycles = ptowsp_run_result(run)->makespan_cycles;
        printf("%s memory: %u cycles\n", is_shared ? "shared" : "own", (unsigned)cycles);
        manual_check(cycles == (is_shared ? 6 * 8000 / 40 : 300), "time by memory");
        ptowsp_run_destroy(run);
        ptowsp_program_destroy(program);
    }
    const uint32_t lanes[] = {1, 2, 4};
    const ptowsp_search_desc search = {
        .lane_counts = lanes, .lane_count_count = 3, .bind = give_up, .user = context};
    ptowsp_search_result results[3];
    ptowsp_search_summary summary;
    manual_check(ptowsp_schedule_search(context, m, &search, results, 3, &summary) ==
                     PTOWSP_CANCELLED,
                 "a search that is given up");
    ptowsp_module_destroy(m);
}

// The points of a space whose rank is known at run time only, in row-major order.
static void spaces_show(void) {
    const int64_t sizes[3] = {2, 3, 4}, point[3] = {1, 2, 3};
    ptowsp_space space;
    int64_t back[3];
    manual_check(!ptowsp_space_make(sizes, 3, &space) && ptowsp_space_total(&space) == 24 &&
                     ptowsp_space_index(&space, point) == 23,
                 "the last of 24 points");
    ptowsp_space_at(&space, 23, back);
    manual_check(memcmp(back, point, sizeof point) == 0, "and back");
}

int main(void) {
    ptowsp_context *context;
    if (ptowsp_context_create(NULL, &context)) {
        return 1;
    }
    capabilities_show();
    shared_show(context);
    spaces_show();
    ptowsp_context_destroy(context);
    return manual_end();
}

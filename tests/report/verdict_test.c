// The verdict of a report that no case says (tests/cases/verdicts.case has the others): that of models.

#include "written.h"

// The cycles of a tile kernel follow from the model of the run's options, which the first line names.
TEST_F(verdict__the_first_line_names_the_model_of_tile_kernels) {
    static const struct {
        ptowsp_model model;
        const char *name;
    } models[] = {{PTOWSP_MODEL_UNIT, "unit"},
                  {PTOWSP_MODEL_A2A3, "a2a3"},
                  {PTOWSP_MODEL_910B, "910b"},
                  {PTOWSP_MODEL_950PR, "950pr"}};
    const ptowsp_kernel twice = {1};
    const ptowsp_record_options record = {.level = PTOWSP_RECORD_TASKS};
    const ptowsp_schedule schedule = {.lane_count = 2};
    execute_text(f,
                 "module step\ntensor t f32 [8, 8] global\ntensor u f32 [8, 8] global\n"
                 "kernel twice(axes 0, in x f32 8 x 8, out y f32 8 x 8) vector, 0 instructions\n"
                 "  %1 = parameter x\n  %2 = parameter y\n  %3 = add %1, %1 : f32 8 x 8\n"
                 "  store %2, %3\nworkload w\n  task twice() x = t y = u\n",
                 &schedule, &record, NULL);
    for (size_t i = 0; i < COUNT_OF(models); i++) {
        ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY,
                                      .cost = {.model = models[i].model}};
        ptowsp_kernel_stats stats;
        char line[128];
        assert_ok(ptowsp_kernel_measure(f->module, twice, &options.cost, &stats));
        assert_ok(ptowsp_run_execute(f->run, &options));
        assert_in_range(stats.cycles, 1, 999999);
        const int cycles = (int)stats.cycles;
        const int length =
            cycles < 1000 ? snprintf(line, sizeof line, "%d", cycles)
                          : snprintf(line, sizeof line, "%d,%03d", cycles / 1000, cycles % 1000);
        snprintf(line + length, sizeof line - (size_t)length,
                 " cycles (model %s), 1 tasks, 2 lanes", models[i].name);
        report_run(f, PTOWSP_REPORT_HTML, NULL, 0);
        has(line);
        report_run(f, PTOWSP_REPORT_TEXT, NULL, 0);
        assert_memory_equal(written.text, "step: ", 6);
        assert_memory_equal(written.text + 6, line, strlen(line));
        snprintf(line, sizeof line, "\"model\":\"%s\",\n", models[i].name);
        report_run(f, PTOWSP_REPORT_JSON, NULL, 0);
        has(line);
    }
}

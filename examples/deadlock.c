// Four pipelines that cannot work, or not always, and what is said about them:
//
//   1. Two processes that wait for each other, which only running them shows:
//
//          left:  receive from answers; send to questions
//          right: receive from questions; send to answers
//
//      The mended right one sends before it receives.
//
//   2. A fork that is joined with too little depth. Numbers are divided by the largest of them,
//      which is known when all have been looked at:
//
//                     +--[ all ]---> largest --[ found ]--+
//          numbers ---+                                   +--> divide
//                     +--[ kept ]-------------------------+
//
//      Meanwhile they are kept in a channel. If that has no room for all, numbers waits for
//      divide, divide for largest, and largest for numbers. It is mended by depth alone, which is
//      a symbol: no rebuild.
//
//   3. A channel that no process receives from, which is found when compiling.
//
//   4. Two processes that take pages of a pool as they need them. It ends well with the times that
//      tasks have here, and would get stuck with others: exploring all orders finds one.
//
//          pages: 3 tokens     3 workers: take one, work, take one, work, put both back
//
//      It is mended by a token that a process holds while it takes pages.

#include "ptowsp.h"

#include "common/command.h"

#include <stdio.h>
#include <string.h>

enum { COUNT = 16, TOO_FEW = 4 };

static ptowsp_context *context;

// -- 1: each waits for the other ------------------------------------------------------------------

static void cycle_make(ptowsp_module *m, bool is_mended) {
    const ptowsp_kernel_desc kernel = {.name = "work", .axis_count = 1, .cycles = 100};
    ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(m, &kernel)};
    task.axes[0] = ptowsp_i64(m, 0);
    PTOWSP_WORKLOAD(m, "cycle") {
        PTOWSP_PIPELINE(m, "talk") {
            ptowsp_channel questions =
                ptowsp_channel_make(m, &(ptowsp_channel_desc){.name = "questions", .depth = 1});
            ptowsp_channel answers =
                ptowsp_channel_make(m, &(ptowsp_channel_desc){.name = "answers", .depth = 1});
            PTOWSP_PROCESS(m, "left") {
                ptowsp_consumes(m, answers);
                ptowsp_produces(m, questions);
                PTOWSP_RECEIVE(m, answer, answers) {
                    ptowsp_send_task_make(m, questions, &task);
                }
            }
            PTOWSP_PROCESS(m, "right") {
                ptowsp_consumes(m, questions);
                ptowsp_produces(m, answers);
                if (is_mended) {
                    ptowsp_send_task_make(m, answers, &task);
                }
                PTOWSP_RECEIVE(m, question, questions) {
                    if (!is_mended) {
                        ptowsp_send_task_make(m, answers, &task);
                    }
                }
            }
        }
    }
}

// -- 2: too little depth --------------------------------------------------------------------------

static float numbers[COUNT], quotients[COUNT], largest;

// clang-format off
PTOWSP_SOURCE(kernels_source,
static ptowsp_cycles look(const ptowsp_task *task, void *user) {
    const float *number = (const float *)task->tiles[0].data;
    float *most = (float *)task->tiles[1].data;
    (void)user;
    *most = *number > *most ? *number : *most;
    return 10;
}

static ptowsp_cycles divide(const ptowsp_task *task, void *user) {
    const float *number = (const float *)task->tiles[0].data;
    const float *most = (const float *)task->tiles[1].data;
    (void)user;
    *(float *)task->tiles[2].data = *number / *most;
    return 20;
}
)
// clang-format on

static void fork_make(ptowsp_module *m) {
    const ptowsp_tensor_desc tensors[] = {
        {.name = "numbers", .dtype = PTOWSP_F32, .rank = 1, .shape = {COUNT}},
        {.name = "largest", .dtype = PTOWSP_F32, .rank = 1, .shape = {1}},
        {.name = "quotients", .dtype = PTOWSP_F32, .rank = 1, .shape = {COUNT}}};
    const ptowsp_tile_param number = {
        .name = "number", .direction = PTOWSP_IN, .dtype = PTOWSP_F32, .rows = 1, .cols = 1};
    const ptowsp_kernel_desc kernels[] = {{.name = "look",
                                           .tiles = {number,
                                                     {.name = "largest",
                                                      .direction = PTOWSP_INOUT,
                                                      .dtype = PTOWSP_F32,
                                                      .rows = 1,
                                                      .cols = 1}},
                                           .fn = look,
                                           .source = {.text = kernels_source}},
                                          {.name = "divide",
                                           .tiles = {number,
                                                     {.name = "largest",
                                                      .direction = PTOWSP_IN,
                                                      .dtype = PTOWSP_F32,
                                                      .rows = 1,
                                                      .cols = 1},
                                                     {.name = "quotient",
                                                      .direction = PTOWSP_OUT,
                                                      .dtype = PTOWSP_F32,
                                                      .rows = 1,
                                                      .cols = 1}},
                                           .fn = divide,
                                           .source = {.text = kernels_source}}};
    ptowsp_task_desc look_at = {.kernel = ptowsp_kernel_make(m, &kernels[0])};
    ptowsp_task_desc divide_one = {.kernel = ptowsp_kernel_make(m, &kernels[1])};
    look_at.views[0].tensor = divide_one.views[0].tensor = ptowsp_tensor_make(m, &tensors[0]);
    look_at.views[1].tensor = divide_one.views[1].tensor = ptowsp_tensor_make(m, &tensors[1]);
    divide_one.views[2].tensor = ptowsp_tensor_make(m, &tensors[2]);
    ptowsp_channel_desc few = {.name = "all", .depth = 1};
    ptowsp_channel_desc room = {.name = "kept", .depth_at_start = ptowsp_symbol(m, "room")};

    PTOWSP_WORKLOAD(m, "fork") {
        PTOWSP_PIPELINE(m, "divide by the largest") {
            ptowsp_channel all = ptowsp_channel_make(m, &few);
            few.name = "found";
            ptowsp_channel found = ptowsp_channel_make(m, &few);
            ptowsp_channel kept = ptowsp_channel_make(m, &room);
            PTOWSP_PROCESS(m, "numbers") {
                ptowsp_produces(m, all);
                ptowsp_produces(m, kept);
                PTOWSP_FOR_EACH(m, i, ptowsp_axis_dense(m, "count", COUNT)) {
                    ptowsp_send_make(m, all, i);
                    ptowsp_send_make(m, kept, i);
                }
            }
            PTOWSP_PROCESS(m, "largest") {
                ptowsp_consumes(m, all);
                ptowsp_produces(m, found);
                PTOWSP_CONSUME(m, i, all) {
                    look_at.views[0].col = i;
                    ptowsp_task_make(m, &look_at);
                }
                ptowsp_send_make(m, found, ptowsp_i64(m, 0));
            }
            PTOWSP_PROCESS(m, "divide") {
                ptowsp_consumes(m, found);
                ptowsp_consumes(m, kept);
                PTOWSP_RECEIVE(m, token, found) {
                }
                PTOWSP_CONSUME(m, i, kept) {
                    divide_one.views[0].col = divide_one.views[2].col = i;
                    ptowsp_task_make(m, &divide_one);
                }
            }
        }
    }
}

static void fork_bind(ptowsp_run *run, uint64_t room) {
    const ptowsp_buffer all = {.data = numbers}, one = {.data = &largest};
    const ptowsp_buffer out = {.data = quotients};
    largest = 0.0f;
    memset(quotients, 0, sizeof quotients);
    command_check(context, ptowsp_run_bind_symbol(run, "room", room));
    command_check(context, ptowsp_run_bind_tensor(run, "numbers", &all));
    command_check(context, ptowsp_run_bind_tensor(run, "largest", &one));
    command_check(context, ptowsp_run_bind_tensor(run, "quotients", &out));
}

// -- 3: nobody listens ----------------------------------------------------------------------------

static void deaf_make(ptowsp_module *m) {
    PTOWSP_WORKLOAD(m, "deaf") {
        PTOWSP_PIPELINE(m, "speech") {
            ptowsp_channel words =
                ptowsp_channel_make(m, &(ptowsp_channel_desc){.name = "words", .depth = 1});
            PTOWSP_PROCESS(m, "speaker") {
                ptowsp_produces(m, words);
                ptowsp_send_make(m, words, ptowsp_i64(m, 1));
            }
        }
    }
}

// -- 4: only sometimes ----------------------------------------------------------------------------

enum { PAGES = 3, PAGES_EACH = 2, WORKERS = 3 };

static void take(ptowsp_module *m, ptowsp_channel from) {
    PTOWSP_RECEIVE(m, token, from) {
    }
}

static void pages_make(ptowsp_module *m, bool is_mended) {
    const ptowsp_kernel_desc kernel = {.name = "work", .axis_count = 1, .cycles = 100};
    ptowsp_task_desc task = {.kernel = ptowsp_kernel_make(m, &kernel)};
    PTOWSP_WORKLOAD(m, "serve") {
        PTOWSP_PIPELINE(m, "requests") {
            ptowsp_channel pages =
                ptowsp_channel_make(m, &(ptowsp_channel_desc){.name = "pages", .depth = PAGES});
            ptowsp_channel turn = {0};
            if (is_mended) {
                turn = ptowsp_channel_make(m, &(ptowsp_channel_desc){.name = "turn", .depth = 1});
            }
            PTOWSP_PROCESS(m, "start") {
                ptowsp_produces(m, pages);
                if (is_mended) {
                    ptowsp_produces(m, turn);
                }
                PTOWSP_FOR_EACH(m, page, ptowsp_axis_dense(m, "pages", PAGES)) {
                    ptowsp_send_make(m, pages, page);
                }
                if (is_mended) {
                    ptowsp_send_make(m, turn, ptowsp_i64(m, 0));
                }
            }
            PTOWSP_REPLICATE(m, w, ptowsp_axis_dense(m, "workers", WORKERS), "worker") {
                ptowsp_consumes(m, pages);
                ptowsp_produces(m, pages);
                if (is_mended) {
                    ptowsp_consumes(m, turn);
                    ptowsp_produces(m, turn);
                }
                task.axes[0] = w;
                // Worker w comes after 8 w tasks, when those before it are done.
                PTOWSP_FOR_EACH(m, late, ptowsp_axis_dense(m, "tasks", 8 * WORKERS)) {
                    PTOWSP_WHEN(m, ptowsp_lt(late, ptowsp_mul(w, ptowsp_i64(m, 8)))) {
                        ptowsp_task_make(m, &task);
                    }
                }
                if (is_mended) {
                    take(m, turn);
                }
                for (int i = 0; i < PAGES_EACH; i++) {
                    take(m, pages);
                    ptowsp_task_make(m, &task);
                }
                if (is_mended) {
                    ptowsp_send_make(m, turn, ptowsp_i64(m, 0));
                }
                for (int i = 0; i < PAGES_EACH; i++) {
                    ptowsp_send_make(m, pages, ptowsp_i64(m, i));
                }
            }
        }
    }
}

// -- what is said about them ----------------------------------------------------------------------

static ptowsp_run *compile(ptowsp_module *m, ptowsp_program **out_program) {
    ptowsp_run *run;
    command_check(context, ptowsp_program_create(context, m, NULL, out_program));
    command_check(context, ptowsp_run_create(context, *out_program, &run));
    return run;
}

// Executes what must get stuck, with `stuck_count` processes that wait, and prints the report.
static bool is_stuck(ptowsp_run *run, uint32_t stuck_count, ptowsp_run_mode mode) {
    ptowsp_run_options options = {.mode = mode};
    ptowsp_status status = ptowsp_run_execute(run, &options);
    uint32_t count, waiting = 0;
    const ptowsp_process_stats *processes = ptowsp_run_processes(run, &count);
    for (uint32_t i = 0; i < count; i++) {
        waiting +=
            processes[i].state == PTOWSP_PROCESS_FULL || processes[i].state == PTOWSP_PROCESS_EMPTY;
    }
    printf("  %s: %s\n", ptowsp_status_name(status), ptowsp_context_error(context).text);
    ptowsp_run_print_stuck(run, ptowsp_output_to_file(stdout));
    return status == PTOWSP_STUCK && waiting == stuck_count;
}

// Executes the mended one.
static bool is_mended(ptowsp_run *run, const char *how, ptowsp_run_mode mode) {
    ptowsp_run_options options = {.mode = mode};
    ptowsp_status status = ptowsp_run_execute(run, &options);
    const ptowsp_run_stats *stats = ptowsp_run_result(run);
    printf("  mended, %s: %s, %llu tasks, %llu cycles\n\n", how, ptowsp_status_name(status),
           (unsigned long long)stats->task_count, (unsigned long long)stats->makespan_cycles);
    return status == PTOWSP_OK;
}

static bool show_cycle(void) {
    bool is_good = true;
    printf("1. two processes that wait for each other\n");
    for (int i = 0; i < 2; i++) {
        ptowsp_module *m;
        ptowsp_program *program;
        command_check(context, ptowsp_module_create(context, NULL, &m));
        cycle_make(m, i == 1);
        ptowsp_run *run = compile(m, &program);
        is_good &= i == 0 ? is_stuck(run, 2, PTOWSP_RUN_TIME_ONLY)
                          : is_mended(run, "right sends first", PTOWSP_RUN_TIME_ONLY);
        ptowsp_run_destroy(run);
        ptowsp_program_destroy(program);
        ptowsp_module_destroy(m);
    }
    return is_good;
}

static bool show_fork(void) {
    ptowsp_module *m;
    ptowsp_program *program;
    printf("2. a fork that is joined with too little depth\n");
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = (float)(1 + i * 7 % COUNT);
    }
    command_check(context, ptowsp_module_create(context, NULL, &m));
    fork_make(m);
    ptowsp_run *run = compile(m, &program);
    fork_bind(run, TOO_FEW);
    bool is_good = is_stuck(run, 3, PTOWSP_RUN_EXECUTE);
    fork_bind(run, COUNT);
    is_good &= is_mended(run, "with room for all", PTOWSP_RUN_EXECUTE);
    for (int i = 0; i < COUNT; i++) {
        is_good &= quotients[i] == numbers[i] / COUNT;
    }
    ptowsp_run_destroy(run);
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(m);
    return is_good;
}

static bool show_deaf(void) {
    ptowsp_module *m;
    ptowsp_program *program;
    printf("3. a channel that no process receives from\n");
    command_check(context, ptowsp_module_create(context, NULL, &m));
    deaf_make(m);
    ptowsp_status status = ptowsp_program_create(context, m, NULL, &program);
    printf("  %s: %s\n\n", ptowsp_status_name(status), ptowsp_context_error(context).text);
    bool is_good = status != PTOWSP_OK;
    if (status == PTOWSP_OK) {
        ptowsp_program_destroy(program);
    }
    ptowsp_module_destroy(m);
    return is_good;
}

// Both end well; exploring tells them apart.
static bool show_pages(void) {
    bool is_good = true;
    printf("4. processes that take pages of a pool as they need them\n");
    for (int i = 0; i < 2; i++) {
        ptowsp_module *m;
        ptowsp_program *program;
        ptowsp_explore_stats stats;
        const ptowsp_run_options options = {.mode = PTOWSP_RUN_TIME_ONLY};
        command_check(context, ptowsp_module_create(context, NULL, &m));
        pages_make(m, i == 1);
        ptowsp_run *run = compile(m, &program);
        ptowsp_status executed = ptowsp_run_execute(run, &options);
        ptowsp_status explored = ptowsp_run_explore(run, NULL, &stats);
        is_good &= executed == PTOWSP_OK && explored == (i == 0 ? PTOWSP_STUCK : PTOWSP_OK);
        printf("  %sexecuted: %s; explored: %s, %llu states, %llu steps\n",
               i == 0 ? "" : "mended, one takes pages at a time, ", ptowsp_status_name(executed),
               ptowsp_status_name(explored), (unsigned long long)stats.state_count,
               (unsigned long long)stats.step_count);
        ptowsp_run_print_stuck(run, ptowsp_output_to_file(stdout));
        ptowsp_run_destroy(run);
        ptowsp_program_destroy(program);
        ptowsp_module_destroy(m);
    }
    printf("\n");
    return is_good;
}

int main(int argc, char **argv) {
    command_parse(argc, argv, "takes no options; prints reports about pipelines that get stuck\n",
                  NULL, 0);
    command_check(NULL, ptowsp_context_create(NULL, &context));
    bool is_good = show_cycle();
    is_good &= show_fork();
    is_good &= show_deaf();
    is_good &= show_pages();
    printf("check     all were found, and the mended ones are right: %s\n",
           is_good ? "good" : "WRONG");
    ptowsp_context_destroy(context);
    command_flush();
    return is_good ? 0 : 1;
}

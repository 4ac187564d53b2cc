// Tokens that would arrive after the last cycle that time has. Whoever comes first, sender or
// receiver, and in whichever mode processes walk: the run says that time ends, and not that it is
// stuck.

#include "test.h"

typedef struct late_case {
    uint32_t depth;
    ptowsp_cycles latency;
    bool receiver_first;  // in the tree
    ptowsp_run_options options;
} late_case;

static ptowsp_cycles do_nothing(const ptowsp_task *task, void *user) {
    (void)task, (void)user;
    return 0;  // not taken: the kernel has constant cycles
}

// Sends after 10 and after 20 cycles.
static void build_sender(ptowsp_module *m, ptowsp_channel channel, ptowsp_kernel kernel) {
    ptowsp_task_desc task = {.kernel = kernel};
    PTOWSP_PROCESS(m, "sender") {
        ptowsp_produces(m, channel);
        PTOWSP_FOR_EACH(m, i, ptowsp_axis_dense(m, "n", 2)) {
            task.axes[0] = i;
            ptowsp_send_task_make(m, channel, &task);
        }
    }
}

static void build_receiver(ptowsp_module *m, ptowsp_channel channel) {
    PTOWSP_PROCESS(m, "receiver") {
        ptowsp_consumes(m, channel);
        PTOWSP_CONSUME(m, t, channel) {
            (void)t;
        }
    }
}

static void build(ptowsp_module *m, const late_case *c) {
    ptowsp_channel_desc channel_desc = {0};
    ptowsp_kernel_desc desc = {.name = "work", .axis_count = 1, .fn = do_nothing, .cycles = 10};
    channel_desc.name = "tokens";
    channel_desc.depth = c->depth;
    channel_desc.latency = c->latency;
    ptowsp_kernel kernel = ptowsp_kernel_make(m, &desc);
    PTOWSP_WORKLOAD(m, "late") {
        PTOWSP_PIPELINE(m, "pipeline") {
            ptowsp_channel channel = ptowsp_channel_make(m, &channel_desc);
            if (c->receiver_first) {
                build_receiver(m, channel);
                build_sender(m, channel, kernel);
            } else {
                build_sender(m, channel, kernel);
                build_receiver(m, channel);
            }
        }
    }
}

// Its makespan is checked if the run succeeds.
static ptowsp_status run_case(const late_case *c, ptowsp_cycles makespan) {
    ptowsp_context *context = test_context(NULL);
    ptowsp_module *m = test_module(context, NULL);
    build(m, c);
    ptowsp_program *program = test_program(context, m, NULL);
    ptowsp_run *run = test_run_of(context, program);
    ptowsp_status status = ptowsp_run_execute(run, &c->options);
    if (status == PTOWSP_OK) {
        assert_int_equal(ptowsp_run_result(run)->makespan_cycles, makespan);
    } else {
        assert_non_null(strstr(ptowsp_context_error(context).text, "channel tokens arrives after"));
    }
    test_destroy(run, program, m, context);
    return status;
}

// The first token arrives at latency + 10, the second one at latency + 20; at depth 0 its sender
// goes on when the first has arrived, so the second does at 2 * (latency + 10).
TEST(late__a_token_that_arrives_after_the_end_of_time_is_an_error) {
    for (uint32_t i = 0; i < 18; i++) {
        late_case c = {.depth = i / 6,
                       .receiver_first = i % 2,
                       .options.mode = i / 2 % 3 == 0 ? PTOWSP_RUN_EXECUTE : PTOWSP_RUN_TIME_ONLY,
                       .options.record_tasks = i / 2 % 3 == 2};
        // Depth 1: the first token leaves its place at latency + 10, when the second one is sent
        // that has been ready since 20; so it arrives as at depth 0, less the task in between.
        uint64_t fits = c.depth == 0   ? PTOWSP_CYCLES_MAX / 2 - 10
                        : c.depth == 1 ? (PTOWSP_CYCLES_MAX - 10) / 2
                                       : PTOWSP_CYCLES_MAX - 20;
        uint64_t arrival = c.depth == 0   ? 2 * (fits + 10)
                           : c.depth == 1 ? 2 * fits + 10
                                          : PTOWSP_CYCLES_MAX;
        c.latency = fits;
        assert_int_equal(run_case(&c, arrival), PTOWSP_OK);
        c.latency = fits + 1;
        assert_int_equal(run_case(&c, 0), PTOWSP_LIMIT_EXCEEDED);
        c.latency = PTOWSP_CYCLES_MAX;
        assert_int_equal(run_case(&c, 0), PTOWSP_LIMIT_EXCEEDED);
    }
}

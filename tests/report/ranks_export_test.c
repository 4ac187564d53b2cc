// Pictures of ranks that were simulated together: which lanes they have, what of a recording is in them,
// and which arrows.

#include "written.h"

enum { RANK_MAX = 3 };

typedef struct ranks {
    ptowsp_context *context;
    ptowsp_module *modules[RANK_MAX];
    ptowsp_program *programs[RANK_MAX];
    ptowsp_run *runs[RANK_MAX];
    ptowsp_run_group group;
} ranks;

// A program for each text, and a run for each rank of the program `of` it. A link takes 1000 cycles for
// 1000 bytes, and as long to begin.
static void ranks_begin(ranks *r, const char *const *texts, uint32_t text_count, const uint32_t *of,
                        uint32_t rank_count) {
    memset(r, 0, sizeof *r);
    assert_ok(ptowsp_context_create(NULL, &r->context));
    for (uint32_t i = 0; i < text_count; i++) {
        test_ok(r->context, ptowsp_module_parse(r->context, texts[i], strlen(texts[i]), NULL,
                                                &r->modules[i], NULL));
        test_ok(r->context,
                ptowsp_program_create(r->context, r->modules[i], NULL, &r->programs[i]));
    }
    for (uint32_t i = 0; i < rank_count; i++) {
        assert_ok(ptowsp_run_create(r->context, r->programs[of[i]], &r->runs[i]));
    }
    r->group.runs = r->runs;
    r->group.rank_count = rank_count;
    r->group.links.inside.latency_ps = 1000000;
    r->group.links.inside.bytes_per_us = 1000;
    r->group.cycles_per_us = 1000;
}

static void ranks_end(ranks *r) {
    for (uint32_t i = 0; i < RANK_MAX; i++) {
        ptowsp_run_destroy(r->runs[i]);
    }
    for (uint32_t i = 0; i < RANK_MAX; i++) {
        test_destroy(NULL, r->programs[i], r->modules[i], NULL);
    }
    ptowsp_context_destroy(r->context);
}

static void simulate(ranks *r, bool records_tasks) {
    const ptowsp_run_options options = {.record_tasks = records_tasks};
    test_ok(r->context, ptowsp_run_group_simulate(r->context, &r->group, &options, NULL));
}

static void draw(ranks *r, const ptowsp_run_group *group, ptowsp_export_format format) {
    test_ok(r->context, ptowsp_run_group_export(r->context, group, format, NULL, written_output()));
}

static const char alone[] = "module alone\n"
                            "kernel \"a long name\"(axes 0) vector, 5 cycles, time only\n"
                            "kernel inner(axes 1) vector, 3 cycles, time only\n"
                            "workload main\n"
                            "  task \"a long name\"()\n"
                            "  pipeline p\n"
                            "    channel c depth 1 latency 0\n"
                            "    process a produces c\n"
                            "      send c(1)\n"
                            "    process b consumes c\n"
                            "      consume y from c\n"
                            "        task inner(y)\n";

// Where nothing communicates there are no links. Tasks of pipelines are on no lane, but have their names.
TEST(ranks__without_collectives_have_no_links) {
    static const char *const texts[] = {alone};
    static const uint32_t of[] = {0, 0};
    static ranks r;
    ranks_begin(&r, texts, 1, of, 2);
    simulate(&r, true);
    draw(&r, &r.group, PTOWSP_EXPORT_CHROME);
    has_times(2, "\"args\":{\"name\":\"lane 0\"}");
    has_times(0, "links");
    has_times(2, "{\"ph\":\"X\"");
    has_times(0, "\"s\"");
    draw(&r, &r.group, PTOWSP_EXPORT_CSV);
    has_times(1, "\r\n0,\"a long name\",\"\",\"\",\"rank 0 lane 0\",0,0,0,5,");
    has_times(1, "\r\n2,\"a long name\",\"\",\"\",\"rank 1 lane 0\",0,0,0,5,");
    has_times(1, "\r\n1,\"inner\",\"y=1\",\"\",\"-\",0,");
    has_times(1, "\r\n3,\"inner\",\"y=1\",\"\",\"-\",0,");
    ranks_end(&r);
}

// Rank 1 works for 1000, then sends 1000 bytes to rank 0, where they are at 3000. 1 is of the same
// program as 2, which is a stranger to it.
static const char receives[] =
    "module receives\n"
    "tensor a i64 [512, 1] global\n"
    "kernel w(axes 0, inout x i64 ? x ?) vector, 1000 cycles, time only\n"
    "kernel to(axes 0, inout data i64 ? x ?, root i64, target i64) link, "
    "send, members 2\n"
    "workload main\n"
    "  task to() data = a of 125 x 1 root = 1 target = 0\n";
static const char sends[] = "module sends\n"
                            "tensor a i64 [512, 1] global\n"
                            "kernel w(axes 0, inout x i64 ? x ?) vector, 1000 cycles, time only\n"
                            "kernel to(axes 0, inout data i64 ? x ?, root i64, target i64) link, "
                            "send, members 2\n"
                            "workload main\n"
                            "  task w() x = a of 512 x 1\n"
                            "  task to() data = a of 125 x 1 root = 1 target = 0\n";

TEST(ranks__have_arrows_between_those_that_are_drawn) {
    static const char *const texts[] = {receives, sends};
    static const uint32_t of[] = {0, 1};
    static ranks r;
    ranks_begin(&r, texts, 2, of, 2);
    simulate(&r, true);
    draw(&r, &r.group, PTOWSP_EXPORT_CHROME);
    has_times(1,
              "{\"ph\":\"s\",\"cat\":\"message\",\"name\":\"message\",\"id\":1,\"pid\":2,\"tid\":2,"
              "\"ts\":1.000}");
    has_times(1, "{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"message\",\"name\":\"message\",\"id\":1,"
                 "\"pid\":1,\"tid\":2,\"ts\":2.999}");
    has_times(1, "waits for rank 1");
    // 836 pixels for 3000 cycles, from 108 on. The wait ends where the sender begins, two rows below.
    draw(&r, &r.group, PTOWSP_EXPORT_SVG);
    has_times(1, "<line x1=\"386.66\" x2=\"386.66\" y1=\"154\" y2=\"126\"");
    has_times(1, "<title>send to ");
    has_times(1, "<title>receive to ");
    has_times(1, ">rank 0 links</text>");
    // Rank 0 alone: what it waits for is not there.
    ptowsp_run_group first = r.group;
    first.rank_count = 1;
    draw(&r, &first, PTOWSP_EXPORT_CHROME);
    has_times(1, "{\"ph\":\"X\"");
    has_times(0, "message");
    has_times(0, "waits for");
    has_times(1, "\"name\":\"receive to root=1 target=0\"");
    ranks_end(&r);
}

// What begins at 2000 or later is recorded: neither end of the arrow.
TEST(ranks__have_no_arrows_to_what_was_not_recorded) {
    static const char *const texts[] = {receives, sends};
    static const uint32_t of[] = {0, 1};
    // Rank 0 has one task, from 0 to 3000; of rank 1, tasks end at 1000 and 2000.
    static const struct {
        uint64_t begins[2], counts[2];
    } cases[] = {{{0, 2500}, {1, 0}}, {{3500, 0}, {0, 2}}, {{0, 1500}, {1, 1}}};
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static ranks r;
        ranks_begin(&r, texts, 2, of, 2);
        for (uint32_t k = 0; k < 2; k++) {
            const ptowsp_record_options record = {.level = PTOWSP_RECORD_TASKS,
                                                  .begin = cases[i].begins[k]};
            assert_ok(ptowsp_run_record(r.runs[k], &record));
        }
        simulate(&r, false);
        for (uint32_t k = 0; k < 2; k++) {
            assert_int_equal(ptowsp_run_trace_count(r.runs[k]), cases[i].counts[k]);
        }
        draw(&r, &r.group, PTOWSP_EXPORT_CHROME);
        // With an arrow, the wait is a bar too.
        has_times((uint32_t)(cases[i].counts[0] + cases[i].counts[1]) + (i == 2), "{\"ph\":\"X\"");
        has_times(i == 2, "\"ph\":\"s\"");
        ranks_end(&r);
    }
}

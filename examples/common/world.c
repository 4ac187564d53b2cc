// The ranks of an example as forked processes over shared hubs.

#define _DEFAULT_SOURCE  // fork

#include "world.h"

#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// -- communicators --------------------------------------------------------------------------------

// Opens the next communicator, with links.
static void world_open(world *w, const ptowsp_links *links) {
    ptowsp_ranks_desc desc = {.rank = w->rank,
                              .rank_count = w->rank_count,
                              .transport = w->transport_of(w),
                              .links = *links,
                              .time_limit_ns = UINT64_C(30000000000)};
    command_check(w->context, ptowsp_ranks_create(w->context, &desc, &w->ranks));
}

static void world_collect(world *w, const ptowsp_collective *c, const void *in, void *out) {
    command_check(w->context, ptowsp_ranks_run(w->ranks, c, in, out));
}

void world_gather(world *w, const void *own, void *all, uint64_t bytes) {
    const ptowsp_collective c = {.kind = PTOWSP_ALL_GATHER,
                                 .algorithm = PTOWSP_ALGORITHM_DIRECT,
                                 .dtype = PTOWSP_U8,
                                 .count = bytes * w->rank_count,
                                 .members = w->rank_count};
    world_collect(w, &c, own, all);
}

uint64_t world_largest(world *w, uint64_t own) {
    const ptowsp_collective c = {.kind = PTOWSP_ALL_REDUCE,
                                 .algorithm = PTOWSP_ALGORITHM_DIRECT,
                                 .reduction = PTOWSP_REDUCTION_MAX,
                                 .dtype = PTOWSP_U64,
                                 .count = 1,
                                 .members = w->rank_count};
    uint64_t all = own;
    world_collect(w, &c, &own, &all);
    return all;
}

uint64_t world_lasted(world *w, uint64_t begin, uint64_t end) {
    const uint64_t first = ~world_largest(w, ~begin);
    return world_largest(w, end) - first;
}

void world_meet(world *w) {
    world_largest(w, 0);
}

// -- links ----------------------------------------------------------------------------------------

// Nanoseconds of a message from rank 0 to rank 1 and back, the shortest of some.
static uint64_t world_ping(world *w, void *data, uint64_t bytes) {
    ptowsp_collective c = {
        .kind = PTOWSP_SEND, .algorithm = PTOWSP_ALGORITHM_DIRECT, .dtype = PTOWSP_U8};
    uint64_t best = UINT64_MAX;
    c.count = bytes;
    c.members = 2;
    for (int i = 0; w->rank < 2 && i < 20; i++) {
        const uint64_t begin = ptowsp_clock_ns();
        for (uint32_t k = 0; k < 2; k++) {
            c.root = k;
            c.target = 1 - k;
            world_collect(w, &c, data, data);
        }
        const uint64_t took = ptowsp_clock_ns() - begin;
        best = took < best ? took : best;
    }
    return best;
}

static void world_measure(world *w) {
    enum { LARGE = 1 << 18 };
    if (w->rank_count > 1) {
        void *data = command_allocate(LARGE, 1);
        const uint64_t small = world_ping(w, data, 1) / 2, large = world_ping(w, data, LARGE) / 2;
        w->links.name = "this machine";
        w->links.inside.latency_ps = small * 1000;
        w->links.inside.bytes_per_us = large > small ? LARGE * UINT64_C(1000) / (large - small) : 0;
        free(data);
    }
    ptowsp_links *all = command_allocate(w->rank_count, sizeof *all);
    world_gather(w, &w->links, all, sizeof w->links);
    w->links = all[0];
    free(all);
}

int world_enter(world *w, uint32_t lane_count, world_fn fn, void *user) {
    const ptowsp_context_desc desc = {.threads = PTOWSP_THREADS_OWN, .lane_count = lane_count};
    if (ptowsp_context_create(&desc, &w->context) != PTOWSP_OK) {
        command_fail("rank %u has no context", w->rank);
    }
    const ptowsp_links none = {0};
    world_open(w, &none);
    world_measure(w);
    ptowsp_ranks_destroy(w->ranks);
    world_open(w, &w->links);
    const int code = fn(w, user);
    ptowsp_ranks_destroy(w->ranks);
    ptowsp_context_destroy(w->context);
    return code;
}

// -- processes ------------------------------------------------------------------------------------

static ptowsp_transport world_hub_transport(world *w) {
    return ptowsp_hub_transport((ptowsp_hub *)w->hubs[w->opened++], w->rank);
}

uint32_t world_size(void) {
    return 0;
}

int world_run(uint32_t rank_count, uint32_t lane_count, world_fn fn, void *user) {
    world *w = command_allocate(1, sizeof *w);
    pid_t *pids = command_allocate(rank_count, sizeof *pids);
    ptowsp_context *context = NULL;
    if (ptowsp_context_create(NULL, &context) != PTOWSP_OK) {
        command_fail("no context");
    }
    const ptowsp_hub_desc desc = {.rank_count = rank_count, .is_shared = true};
    for (uint32_t i = 0; i < WORLD_TRANSPORTS; i++) {
        ptowsp_hub *hub = NULL;
        command_check(context, ptowsp_hub_create(context, &desc, &hub));
        w->hubs[i] = hub;
    }
    w->rank_count = rank_count;
    w->transport_of = world_hub_transport;
    fflush(NULL);
    for (uint32_t i = 0; i < rank_count; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            w->rank = i;
            const int code = world_enter(w, lane_count, fn, user);
            command_flush();
            _exit(code);
        }
        if (pids[i] < 0) {
            command_fail("no process for rank %u", i);
        }
    }
    int failed = 0;
    for (uint32_t i = 0; i < rank_count; i++) {
        int code = 0;
        const bool is_over = waitpid(pids[i], &code, 0) == pids[i] && WIFEXITED(code);
        code = is_over ? WEXITSTATUS(code) : 1;
        if (code != 0) {
            fprintf(stderr, "rank %u failed\n", i);
            failed = code > failed ? code : failed;
        }
    }
    for (uint32_t i = 0; i < WORLD_TRANSPORTS; i++) {
        ptowsp_hub_destroy((ptowsp_hub *)w->hubs[i]);
    }
    ptowsp_context_destroy(context);
    free(pids);
    free(w);
    return failed;
}

// -- pictures -------------------------------------------------------------------------------------

// What a task that communicates takes part in: the k-th SEND from a rank to another one, or the k-th
// collective of all.
static void tag_span(world *w, world_span *span, const ptowsp_task_trace *task,
                     uint64_t *ordinals) {
    const uint64_t *scalars = task->args + task->axis_count;
    const bool is_send = task->scalar_count == 2;
    const uint64_t root = is_send ? scalars[0] : 0, target = is_send ? scalars[1] : 0;
    if (is_send && (root == target || (root != w->rank && target != w->rank))) {
        return;
    }
    const uint64_t group = is_send ? 1 + root * w->rank_count + target : 0;
    span->message = group << 32 | ++ordinals[group];
    span->is_sender = is_send && root == w->rank;
}

// Takes the tasks that a run recorded: by the wall clock, which began at begin_ns, or simulated.
static void take_spans(world *w, const ptowsp_run *run, bool is_wall, uint64_t begin_ns) {
    const uint64_t groups = 1 + (uint64_t)w->rank_count * w->rank_count;
    // The links are the last lane, behind those of the schedule; there are none without collectives.
    const uint32_t link = ptowsp_program_lane_count(ptowsp_run_program(run));
    uint64_t *ordinals = command_allocate(groups, sizeof *ordinals);
    memset(w->spans, 0, sizeof w->spans);
    w->span_count = 0;
    for (uint64_t i = 0; i < ptowsp_run_trace_count(run) && w->span_count < WORLD_SPANS; i++) {
        const ptowsp_task_trace task = ptowsp_run_trace_at(run, i);
        const ptowsp_task_record *record = is_wall ? ptowsp_run_clock_at(run, i) : task.record;
        if (!record || record->lane == PTOWSP_NO_LANE) {
            continue;
        }
        const bool is_link = task.record->lane == link;
        world_span *span = &w->spans[w->span_count++];
        span->span.begin = begin_ns + record->start;
        span->span.end = begin_ns + record->end;
        span->span.lane = w->rank * w->lane_count + (is_link ? w->lane_count - 1 : record->lane);
        span->span.kind = record->kernel - 1;
        if (is_link) {
            tag_span(w, span, &task, ordinals);
        }
    }
    free(ordinals);
}

static bool world_write(void *user, const void *data, size_t size) {
    return fwrite(data, 1, size, (FILE *)user) == size;
}

typedef struct tagged {
    uint64_t message, is_sender, begin, span;
} tagged;

// By message; first the sender, or the last to begin.
static int compare_tagged(const void *left, const void *right) {
    const tagged *a = (const tagged *)left, *b = (const tagged *)right;
    if (a->message != b->message) {
        return a->message < b->message ? -1 : 1;
    }
    if (a->is_sender != b->is_sender) {
        return a->is_sender ? -1 : 1;
    }
    return a->begin != b->begin ? (a->begin > b->begin ? -1 : 1)
                                : (a->span > b->span) - (a->span < b->span);
}

// Arrows from what the others of a message have waited for. Returns their number.
static uint64_t find_arrows(const world_span *all, uint64_t count, ptowsp_span_arrow *arrows) {
    tagged *tags = command_allocate(count, sizeof *tags);
    uint64_t tag_count = 0, arrow_count = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (all[i].message && all[i].span.end) {
            tags[tag_count++] = (tagged){all[i].message, all[i].is_sender, all[i].span.begin, i};
        }
    }
    qsort(tags, tag_count, sizeof *tags, compare_tagged);
    for (uint64_t i = 1, first = 0; i < tag_count; i++) {
        if (tags[i].message != tags[first].message) {
            first = i;
        } else {
            arrows[arrow_count++] =
                (ptowsp_span_arrow){.from = tags[first].span, .to = tags[i].span};
        }
    }
    free(tags);
    return arrow_count;
}

static ptowsp_export_format format_of(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && strcmp(dot, ".json") == 0      ? PTOWSP_EXPORT_CHROME
           : dot && strcmp(dot, ".pftrace") == 0 ? PTOWSP_EXPORT_PERFETTO
                                                 : PTOWSP_EXPORT_SVG;
}

static void export_spans(world *w, const world_picture *picture, const char *path,
                         ptowsp_span_set *set) {
    FILE *file = fopen(path, "wb");
    if (!file) {
        command_fail("%s cannot be written", path);
    }
    const char **lanes = command_allocate(w->lane_count, sizeof *lanes);
    for (uint32_t i = 0; i < w->lane_count; i++) {
        lanes[i] = i + 1 == w->lane_count ? "links" : "cores";
    }
    set->title = picture->title;
    set->names = picture->names;
    set->name_count = picture->name_count;
    set->rank_lanes = w->lane_count;
    set->lane_names = lanes;
    const ptowsp_export_options options = {.title = picture->title};
    const ptowsp_output output = {.write = world_write, .user = file};
    command_check(w->context,
                  ptowsp_spans_export(w->context, set, format_of(path), &options, output));
    if (fclose(file) != 0) {
        command_fail("%s cannot be written", path);
    }
    free(lanes);
}

// Rank 0 writes the spans of all ranks.
static void draw(world *w, const world_picture *picture, const char *path, bool is_wall) {
    const uint64_t most = world_largest(w, w->span_count), count = most * w->rank_count;
    world_span *all = command_allocate(count, sizeof *all);
    world_gather(w, w->spans, all, most * sizeof *all);  // those behind span_count are zero
    if (w->rank == 0) {
        ptowsp_span *spans = command_allocate(count, sizeof *spans);
        ptowsp_span_arrow *arrows = command_allocate(count, sizeof *arrows);
        for (uint64_t i = 0; i < count; i++) {
            spans[i] = all[i].span;
        }
        ptowsp_span_set set = {.spans = spans,
                               .count = count,
                               .arrows = arrows,
                               .arrow_count = find_arrows(all, count, arrows),
                               .has_cycles = !is_wall};
        export_spans(w, picture, path, &set);
        free(arrows);
        free(spans);
    }
    free(all);
}

// -- running --------------------------------------------------------------------------------------

world_times world_execute(world *w, ptowsp_run *run, uint32_t lane_count,
                          const world_picture *picture) {
    const ptowsp_run_ranks ranks = {.ranks = w->ranks, .cycles_per_us = 1000};
    const ptowsp_run_options timed = {.mode = PTOWSP_RUN_TIME_ONLY};
    const ptowsp_run_options options = {.lane_count = lane_count};
    const ptowsp_record_options tasks = {.level = PTOWSP_RECORD_TASKS}, none = {0};
    command_check(w->context, ptowsp_run_bind_ranks(run, &ranks));
    command_check(w->context, ptowsp_run_record(run, picture->simulated_path ? &tasks : &none));
    command_check(w->context, ptowsp_run_execute(run, &timed));
    if (picture->simulated_path) {
        w->lane_count = ptowsp_program_lane_count(ptowsp_run_program(run)) + 1;
        take_spans(w, run, false, 0);
        draw(w, picture, picture->simulated_path, false);
        command_check(w->context, ptowsp_run_record(run, &none));
    }
    world_times times = {world_largest(w, ptowsp_run_result(run)->makespan_cycles), UINT64_MAX};
    for (int i = 0; i < 10; i++) {
        world_meet(w);
        const uint64_t begin = ptowsp_clock_ns();
        command_check(w->context, ptowsp_run_execute(run, &options));
        const uint64_t took = world_lasted(w, begin, ptowsp_clock_ns());
        times.measured_ns = took < times.measured_ns ? took : times.measured_ns;
    }
    if (picture->path) {
        const ptowsp_record_options record = {.level = PTOWSP_RECORD_TASKS, .has_clock = true};
        command_check(w->context, ptowsp_run_record(run, &record));
        world_meet(w);
        const uint64_t begin = ptowsp_clock_ns();
        command_check(w->context, ptowsp_run_execute(run, &options));
        w->lane_count = (lane_count ? lane_count : 1) + 1;
        take_spans(w, run, true, begin);
        draw(w, picture, picture->path, true);
    }
    return times;
}

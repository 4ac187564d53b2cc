// The public functions: their checks, and the tables that are made once and kept.

#include "dump_replay.h"

void ptowsp_dump_close(ptowsp_dump *dump) {
    if (!dump) {
        return;
    }
    void *const all[] = {dump->tasks, dump->args,    dump->edges,    dump->outs,  dump->tensors,
                         dump->names, dump->scopes,  dump->rows,     dump->words, dump->index,
                         dump->pairs, dump->regions, dump->findings, dump->cores};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        dump_resize(all[i], 0);
    }
    dump_resize(dump, 0);
}

ptowsp_status ptowsp_dump_open(ptowsp_context *context, const ptowsp_dump_desc *desc,
                               ptowsp_dump **out_dump) {
    PTOWSP_ASSERT(context);
    if (!desc || !out_dump) {
        return ptowsp_context_fail(context, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                                   desc ? "dump: out_dump is NULL" : "dump: desc is NULL");
    }
    *out_dump = NULL;
    ptowsp_dump *dump = (ptowsp_dump *)dump_zeroed(1, sizeof *dump);
    if (!dump) {
        return ptowsp_context_fail(context, PTOWSP_OUT_OF_MEMORY, PTOWSP_NO_INDEX,
                                   "dump: out of memory");
    }
    dump->context = context;
    if (!dump_read_all(dump, desc) || !dump_link(dump)) {
        const ptowsp_status status = dump->status;
        ptowsp_dump_close(dump);
        return status;
    }
    *out_dump = dump;
    return PTOWSP_OK;
}

// A call on a dump that may be asked again after it has failed.
static ptowsp_status dump_done(ptowsp_dump *dump) {
    const ptowsp_status status = dump->status;
    dump->status = PTOWSP_OK;
    return status;
}

// Checks once. After a failure all of it is made again.
DUMP_INTERNAL bool dump_check_once(ptowsp_dump *dump) {
    if (!dump->has_deps) {
        return dump_fail(dump, PTOWSP_UNBOUND, PTOWSP_NO_INDEX, "dump: there is no deps.json");
    }
    return dump->is_checked || dump_check(dump);
}

ptowsp_status ptowsp_dump_check(ptowsp_dump *dump, ptowsp_dump_report *out_report) {
    PTOWSP_ASSERT(dump);
    if (!out_report) {
        dump_fail(dump, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "dump: out_report is NULL");
    } else if (dump_check_once(dump)) {
        *out_report = dump->report;
    }
    return dump_done(dump);
}

static bool dump_format_check(ptowsp_dump *dump, ptowsp_dump_format format) {
    return (uint32_t)format <= PTOWSP_DUMP_HTML
               ? true
               : dump_fail(dump, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX,
                           "dump: there is no format %u", (unsigned)format);
}

ptowsp_status ptowsp_dump_print(ptowsp_dump *dump, ptowsp_dump_format format,
                                ptowsp_output output) {
    PTOWSP_ASSERT(dump);
    if (dump_format_check(dump, format) && dump_check_once(dump)) {
        dump_print_check(dump, format, output);
    }
    return dump_done(dump);
}

ptowsp_status ptowsp_dump_explain(ptowsp_dump *dump, uint64_t task, ptowsp_output output) {
    PTOWSP_ASSERT(dump);
    const uint32_t index = dump_find(dump, task);
    if (index == DUMP_NONE) {
        dump_fail(dump, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "dump: there is no task %llu",
                  (unsigned long long)task);
    } else {
        dump_print_explain(dump, index, output);
    }
    return dump_done(dump);
}

ptowsp_status ptowsp_dump_replay_run(ptowsp_dump *dump, const ptowsp_dump_replay *how,
                                     ptowsp_dump_replayed *out_replayed) {
    PTOWSP_ASSERT(dump);
    dump_replay replay;
    if (!out_replayed) {
        dump_fail(dump, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "dump: out_replayed is NULL");
        return dump_done(dump);
    }
    if (dump_replay_make(&replay, dump, how)) {
        *out_replayed = replay.result;
    }
    dump_replay_free(&replay);
    return dump_done(dump);
}

ptowsp_status ptowsp_dump_replay_print(ptowsp_dump *dump, const ptowsp_dump_replay *how,
                                       ptowsp_dump_format format, ptowsp_output output) {
    PTOWSP_ASSERT(dump);
    if (dump_format_check(dump, format)) {
        dump_show(dump, how, format, output);
    }
    return dump_done(dump);
}

ptowsp_status ptowsp_dump_replay_export(ptowsp_dump *dump, const ptowsp_dump_replay *how,
                                        ptowsp_export_format format,
                                        const ptowsp_export_options *options,
                                        ptowsp_output output) {
    PTOWSP_ASSERT(dump);
    dump_show_picture(dump, how, format, options, output);
    return dump_done(dump);
}

static bool dump_rings_check(ptowsp_dump *dump, const void *out, const char *name) {
    if (!out) {
        return dump_fail(dump, PTOWSP_INVALID_PARAMS, PTOWSP_NO_INDEX, "dump: %s is NULL", name);
    }
    return dump->has_deps
               ? true
               : dump_fail(dump, PTOWSP_UNBOUND, PTOWSP_NO_INDEX, "dump: there is no deps.json");
}

ptowsp_status ptowsp_dump_rings_least(ptowsp_dump *dump, ptowsp_dump_rings *out_rings) {
    PTOWSP_ASSERT(dump);
    if (dump_rings_check(dump, out_rings, "out_rings")) {
        dump_rings_find(dump, out_rings);
    }
    return dump_done(dump);
}

ptowsp_status ptowsp_dump_rings_try(ptowsp_dump *dump, const ptowsp_dump_rings *rings,
                                    ptowsp_dump_rings_result *out_result) {
    PTOWSP_ASSERT(dump);
    bool is_good =
        dump_rings_check(dump, rings, "rings") && dump_rings_check(dump, out_result, "out_result");
    for (uint32_t r = 0; r < DUMP_RINGS && is_good; r++) {
        const uint64_t window = rings->task_window[r];
        if (window < 4 || (window & (window - 1)) || rings->heap[r] < 1024 ||
            rings->dep_pool[r] < 4) {
            is_good = dump_fail(dump, PTOWSP_INVALID_PARAMS, r,
                                "dump: ring %u: task windows are powers of 2 from 4 on, heaps from "
                                "1024 bytes on, pools from 4 entries on",
                                (unsigned)r);
        }
    }
    if (is_good) {
        dump_rings_run(dump, rings, out_result);
    }
    return dump_done(dump);
}

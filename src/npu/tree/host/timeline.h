// A timeline of a run, as JSON for ui.perfetto.dev and chrome://tracing: a bar for each task, on the
// core that ran it, by the wall clock.

#ifndef WSP_TIMELINE_H
#define WSP_TIMELINE_H

#include <inttypes.h>
#include <stdio.h>

#include <string>

#include "wsp_abi.h"
#include "wsp_core.h"
#include "wsp_list.h"

namespace {

// Names of kernels are identifiers. Times are microseconds from the first task on.
bool write_timeline(const std::string &path, const wsp_program &program,
                    const wsp::List<ptowsp_span> &spans) {
    FILE *file = fopen(path.c_str(), "wb");
    if (!file) {
        return false;
    }
    uint64_t first = UINT64_MAX;
    for (const ptowsp_span &span : spans) {
        first = span.end && span.begin < first ? span.begin : first;
    }
    fprintf(file,
            "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
            "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"cores\"}}");
    for (size_t i = 0; i < spans.size(); i++) {
        const ptowsp_span &span = spans[i];
        if (span.end) {
            fprintf(file,
                    ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"ts\":%s,\"dur\":%s,\"name\":\"%s\","
                    "\"args\":{\"task\":%zu}}",
                    span.lane + 1,
                    pwsp_fixed(static_cast<double>(span.begin - first) / 1000, 3).text,
                    pwsp_fixed(static_cast<double>(span.end - span.begin) / 1000, 3).text,
                    program.kernels[span.kind].name, i);
        }
    }
    fprintf(file, "\n]}\n");
    const bool is_bad = ferror(file) != 0;
    return fclose(file) == 0 && !is_bad;
}

}  // namespace

#endif

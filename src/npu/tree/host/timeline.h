// A timeline of a run, as JSON for ui.perfetto.dev and chrome://tracing: a bar for each task, on the
// core that ran it, by the wall clock.

#ifndef WSP_TIMELINE_H
#define WSP_TIMELINE_H

#include <stdio.h>

#include <string>

#include "wsp_abi.h"
#include "wsp_core.h"
#include "wsp_list.h"

namespace {

// Writes a time and a duration in microseconds. Viewers add them as doubles: where the sum would be
// later than the end, and so than the next bar of the core, the duration is a little shorter.
inline void write_bar(FILE *file, uint64_t begin, uint64_t end) {
    const double from = static_cast<double>(begin) / 1000, to = static_cast<double>(end) / 1000;
    double duration = static_cast<double>(end - begin) / 1000;
    const double excess = from + duration - to;
    duration -= excess > 0 ? 2 * excess + 1e-9 : 0;
    fprintf(file, "\"ts\":%s,\"dur\":%s", pwsp_fixed(from, 3).text,
            pwsp_fixed(duration > 0 ? duration : 0, excess > 0 ? 9 : 3).text);
}

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
            fprintf(file, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%u,", span.lane + 1);
            write_bar(file, span.begin - first, span.end - first);
            fprintf(file, ",\"name\":\"%s\",\"args\":{\"task\":%zu}}",
                    program.kernels[span.kind].name, i);
        }
    }
    fprintf(file, "\n]}\n");
    const bool is_bad = ferror(file) != 0;
    return fclose(file) == 0 && !is_bad;
}

}  // namespace

#endif

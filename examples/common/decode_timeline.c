// The last step of the attention plan as a timeline: when each unit and merge ran, and on which
// lane, by the wall clock. A file that ends in .svg is a picture, any other is for Perfetto's viewer
// (ui.perfetto.dev).

#include "command.h"
#include "decode.h"

#include <stdio.h>
#include <string.h>

static void timeline_label(void *user, uint64_t i, ptowsp_output text) {
    const ptowsp_attention_plan *plan = (const ptowsp_attention_plan *)user;
    bool is_unit = i < plan->unit_count;
    const ptowsp_work *work = is_unit ? &plan->units[i] : &plan->merges[i - plan->unit_count];
    char room[96];
    int length = snprintf(room, sizeof room, "request=%u head=%u", ptowsp_work_request(work),
                          ptowsp_work_head(work));
    if (is_unit) {
        length += snprintf(room + length, sizeof room - (size_t)length, " kv=%u+%u",
                           ptowsp_work_kv_start(work), ptowsp_work_kv_len(work));
    }
    text.write(text.user, room, (size_t)length);
}

static bool timeline_write(void *user, const void *data, size_t size) {
    return fwrite(data, 1, size, (FILE *)user) == size;
}

void decode_timeline_write(const decode_step *s, const ptowsp_span *spans) {
    static const char *const names[] = {"attend", "merge"};
    const char *path = s->o.timeline_path, *end = strrchr(path, '.');
    const bool is_picture = end && strcmp(end, ".svg") == 0;
    ptowsp_attention_plan plan = s->plan;
    const ptowsp_span_set set = {.title = "A decode step on this computer",
                                 .spans = spans,
                                 .count = plan.unit_count + plan.merge_count,
                                 .names = names,
                                 .name_count = 2,
                                 .label = timeline_label,
                                 .user = &plan};
    FILE *to = fopen(path, "wb");
    if (!to) {
        command_fail("%s: cannot be written", path);
    }
    const ptowsp_output output = {.write = timeline_write, .user = to};
    ptowsp_status status = ptowsp_spans_export(
        s->context, &set, is_picture ? PTOWSP_EXPORT_SVG : PTOWSP_EXPORT_PERFETTO, NULL, output);
    if (fclose(to) != 0 || status == PTOWSP_SYSTEM_FAILED) {
        command_fail("%s: cannot be written", path);
    }
    command_check(s->context, status);
}

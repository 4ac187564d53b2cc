// The findings of a check, as text, JSON and HTML. All three have the same content; a format is a row
// of words around it.

#include "dump.h"

#define DUMP_SHOWN 10  // of each kind of note, in text and HTML; JSON has all that are kept

static const char dump_kind_texts[][24] = {
#define DUMP_KIND_TEXT(name, text) text,
    PTOWSP_DUMP_KINDS(DUMP_KIND_TEXT)
#undef DUMP_KIND_TEXT
};

static const char *dump_hazard_text(uint32_t hazards) {
    static const char texts[][64] = {"",
                                     "read-after-write",
                                     "write-after-write",
                                     "read-after-write, write-after-write",
                                     "write-after-read",
                                     "read-after-write, write-after-read",
                                     "write-after-write, write-after-read",
                                     "read-after-write, write-after-write, write-after-read"};
    return texts[hazards & 7];
}

// Task 3 (softmax), argument 1: INOUT of tensor 77 [32, 450] + 14400
static void dump_print_task(const ptowsp_dump *dump, ptowsp_dump_format format, uint64_t id,
                            uint32_t ordinal, ptowsp_output text) {
    const dump_task *task = &dump->tasks[dump_find(dump, id)];
    const bool is_json = format == PTOWSP_DUMP_JSON;
    char room[DUMP_KERNEL_TEXT];
    dump_print(text, is_json ? "{\"task\":\"%llu\",\"kernel\":\"" : "task %llu (",
               (unsigned long long)id);
    dump_escaped(text, format, dump_kernel(dump, task, room));
    dump_print(text, is_json ? "\"" : ")");
    if (ordinal != UINT32_MAX) {
        const dump_arg *arg = &dump->args[task->first_arg + ordinal];
        dump_print(text,
                   is_json ? ",\"arg\":%u,\"type\":\"%s\",\"tensor\":\"%llu\",\"start_offset\":"
                             "\"%llu\",\"shape\":["
                           : ", argument %u: %s of tensor %llu from element %llu, shape [",
                   (unsigned)ordinal, dump_type_name(dump, arg->type),
                   (unsigned long long)arg->tensor_id, (unsigned long long)arg->offset);
        for (uint32_t i = 0; i < arg->shape.count; i++) {
            dump_print(text, "%s%llu", i ? "," : "", (unsigned long long)arg->shape.values[i]);
        }
        dump_print(text, is_json ? "],\"strides\":[" : "], strides [");
        for (uint32_t i = 0; i < arg->shape.count; i++) {
            dump_print(text, "%s%lld", i ? "," : "", (long long)arg->strides.values[i]);
        }
        dump_print(text, "]");
    }
    dump_print(text, is_json ? "}" : "");
}

static void dump_print_advice(const ptowsp_dump_finding *finding, ptowsp_output text) {
    static const char advices[][64] = {"edges added above order these, too",
                                       "the view is larger than the buffer",
                                       "they write into one line of 64 bytes, and may run together",
                                       "other edges imply it",
                                       "they share no bytes that one of them writes",
                                       "it waits for %llu tasks",
                                       "%llu tasks wait for it"};
    if (finding->kind == PTOWSP_DUMP_RACE && !finding->is_implied) {
        dump_print(text, "add an edge from %llu to %llu", (unsigned long long)finding->before,
                   (unsigned long long)finding->after);
    } else {
        dump_print(text, advices[finding->kind], (unsigned long long)finding->count);
    }
}

static void dump_print_finding(const ptowsp_dump *dump, ptowsp_dump_format format,
                               const ptowsp_dump_finding *finding, ptowsp_output text) {
    static const char begins[][32] = {"  ", "{\"kind\":\"", "<tr><td>"};
    static const char tasks[][32] = {"\n    ", "\",\"tasks\":[", "</td><td>"};
    static const char betweens[][32] = {"\n    ", ",", "<br>"};
    static const char advices[][32] = {"\n    ", "],\"advice\":\"", "</td><td>"};
    static const char ends[][32] = {"\n", "\"}", "</td></tr>\n"};
    dump_print(text, "%s%s%s%s", begins[format], dump_kind_texts[finding->kind],
               finding->hazards ? ": " : "", dump_hazard_text(finding->hazards));
    dump_print(text, "%s", tasks[format]);
    dump_print_task(dump, format, finding->before, finding->before_arg, text);
    if (finding->before != finding->after) {
        dump_print(text, "%s", betweens[format]);
        dump_print_task(dump, format, finding->after, finding->after_arg, text);
    }
    dump_print(text, "%s", advices[format]);
    dump_print_advice(finding, text);
    dump_print(text, "%s", ends[format]);
}

// Words that this version does not know: their kind, and how often they occur.
static void dump_print_words(const ptowsp_dump *dump, ptowsp_dump_format format,
                             ptowsp_output text) {
    static const char begins[][32] = {"unknown ", "{\"what\":\"", "<p>unknown "};
    static const char texts[][32] = {": ", "\",\"text\":\"", ": "};
    static const char counts[][32] = {", %llu times\n", "\",\"count\":%llu}", ", %llu times</p>\n"};
    for (uint32_t i = 0; i < dump->word_count; i++) {
        const dump_word *word = &dump->words[i];
        dump_print(text, "%s%s%s%s", format == PTOWSP_DUMP_JSON && i ? "," : "", begins[format],
                   word->what, texts[format]);
        dump_escaped(text, format, word->text);
        dump_print(text, counts[format], (unsigned long long)word->count);
    }
}

static void dump_print_counts(const ptowsp_dump *dump, ptowsp_dump_format format,
                              ptowsp_output text) {
    const ptowsp_dump_report *report = &dump->report;
    static const char heads[][512] = {
        "%llu tasks, %llu edges: %s\n",
        "{\"tasks\":%llu,\"edges\":%llu,\"result\":\"%s\",\"counts\":{",
        "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>Dump</title>\n<style>\n"
        "body { font: 14px sans-serif; margin: 2em; }\n"
        "td { border-top: 1px solid #ccc; padding: .4em .8em .4em 0; vertical-align: top; }\n"
        "</style>\n<h1>%llu tasks, %llu edges: %s</h1>\n<table>\n"};
    static const char rows[][64] = {"  %-20s %llu\n", "%s\"%s\":%llu",
                                    "<tr><td>%s</td><td>%llu</td></tr>\n"};
    dump_print(text, heads[format], (unsigned long long)report->task_count,
               (unsigned long long)report->edge_count, report->is_clean ? "clean" : "not clean");
    for (uint32_t i = 0; i < PTOWSP_DUMP_KIND_COUNT; i++) {
        const unsigned long long count = report->counts[i];
        if (format == PTOWSP_DUMP_JSON) {
            dump_print(text, rows[format], i ? "," : "", dump_kind_texts[i], count);
        } else {
            dump_print(text, rows[format], dump_kind_texts[i], count);
        }
    }
    static const char tails[][128] = {
        "  %-20s %llu\n  %-20s %llu\n", "},\"%s\":%llu,\"%s\":%llu,\"unknown\":[",
        "<tr><td>%s</td><td>%llu</td></tr>\n<tr><td>%s</td><td>%llu</td></tr>\n</table>\n"};
    dump_print(text, tails[format], "not checked", (unsigned long long)report->unchecked_count,
               "assumed to share", (unsigned long long)report->assumed_count);
}

DUMP_INTERNAL void dump_print_check(const ptowsp_dump *dump, ptowsp_dump_format format,
                                    ptowsp_output text) {
    static const char heads[][32] = {"", "],\"findings\":[\n", "<table>\n"};
    static const char ends[][32] = {"", "]}\n", "</table>\n"};
    dump_print_counts(dump, format, text);
    dump_print_words(dump, format, text);
    dump_print(text, "%s", heads[format]);
    uint64_t shown = 0;
    for (uint64_t i = 0; i < dump->report.finding_count; i++) {
        const ptowsp_dump_finding *finding = &dump->findings[i];
        const bool is_note = finding->kind > PTOWSP_DUMP_OUTSIDE && format != PTOWSP_DUMP_JSON;
        shown = i && finding->kind == finding[-1].kind ? shown + 1 : 0;
        if (!is_note || shown < DUMP_SHOWN) {
            dump_print(text, "%s", format == PTOWSP_DUMP_JSON && i ? ",\n" : "");
            dump_print_finding(dump, format, finding, text);
        }
    }
    dump_print(text, "%s", ends[format]);
}

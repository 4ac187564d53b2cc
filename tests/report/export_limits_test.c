// Limits of exports: labels and titles that are cut off, slices that have so many arrows, outputs that fail. What is
// written in general is in export.facts.

#include "written.h"

enum { MANY = 200, ENDLESS = 8192 };

static const char *const names[] = {"k"};

static void execute(fixture *f, const char *text) {
    const ptowsp_record_options record = {.level = PTOWSP_RECORD_EDGES};
    execute_text(f, text, NULL, &record, NULL);
}

// A label has 1024 bytes, of which 32 are kept for a value. Names of 63 bytes: each value takes 66, so
// that 14 of 16 follow the kernel's name: 63 + 13 * 66 + 63 + 32 is 1016.
TEST_F(limits__end_labels_that_are_too_long) {
    static char text[8192], name[PTOWSP_NAME_MAX];
    memset(name, 'x', sizeof name - 1);
    char *at = text + sprintf(text, "module m\naxis n 1\nkernel k%s(axes 8", name);
    for (int i = 0; i < 8; i++) {
        at += sprintf(at, ", %s%d i64", name, i);
    }
    at += sprintf(at, ") vector, 3 cycles, time only\nworkload main\n");
    for (int i = 0; i < 8; i++) {
        at += sprintf(at, "%*sparallel %s%d in n\n", 2 * i + 2, "", name, i);
    }
    at += sprintf(at, "%*stask k%s(", 18, "", name);
    for (int i = 0; i < 8; i++) {
        at += sprintf(at, "%s%s%d", i ? ", " : "", name, i);
    }
    at += sprintf(at, ")");
    for (int i = 0; i < 8; i++) {
        at += sprintf(at, " %s%d = %d", name, i, 1 + i);
    }
    sprintf(at, "\n");
    execute(f, text);
    export_run(f, PTOWSP_EXPORT_SVG, NULL);
    has("x7=0 ");
    has("x5=6\ntask 0: ");
    has_not("x6=7");
}

// A title is cut off between characters, whatever stands before them; of what is no character, nothing is left.
TEST_F(limits__cut_titles_between_characters) {
    static const ptowsp_span span = {5, 10, 0, 0};
    const ptowsp_span_set set = {.spans = &span, .count = 1, .names = names, .name_count = 1};
    static char endless[ENDLESS + 2];
    const ptowsp_export_options options = {.title = endless};
    for (uint32_t before = 0; before < 2; before++) {
        memset(endless, 'x', before);
        for (uint32_t i = before; i + 2 < sizeof endless; i += 2) {
            memcpy(endless + i, "\xc3\xa9", 2);
        }
        export_spans(f, &set, PTOWSP_EXPORT_PERFETTO, &options);
        size_t longest = 0, length = 0;
        for (size_t i = 0; i < written.length; i++) {
            const unsigned char c = (unsigned char)written.text[i];
            length = c == 0xc3 || c == 0xa9 ? length + 1 : 0;
            longest = length > longest ? length : longest;
        }
        assert_true(longest > 100);
        assert_int_equal(longest % 2, 0);
    }
    memset(endless, '\x80', sizeof endless - 1);
    export_spans(f, &set, PTOWSP_EXPORT_PERFETTO, &options);
    has_times(0, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80");
    has_times(1, ", measured");
}

// In a trace of Perfetto, flows are fields 47 and 48 of 64 bits: a slice has at most 128 of each.
static void make_arrows(ptowsp_span_set *set, bool is_to) {
    static ptowsp_span spans[MANY + 1];
    static ptowsp_span_arrow arrows[MANY];
    spans[0].end = 1;
    for (uint32_t i = 0; i < MANY; i++) {
        spans[i + 1] = (ptowsp_span){10 + i, 11 + i, 1, 0};
        arrows[i].from = is_to ? i + 1 : 0;
        arrows[i].to = is_to ? 0 : i + 1;
    }
    *set = (ptowsp_span_set){.spans = spans,
                             .count = MANY + 1,
                             .names = names,
                             .name_count = 1,
                             .arrows = arrows,
                             .arrow_count = MANY};
}

TEST_F(limits__let_a_slice_have_so_many_arrows) {
    for (uint32_t is_to = 0; is_to < 2; is_to++) {
        ptowsp_span_set set;
        make_arrows(&set, is_to);
        export_spans(f, &set, PTOWSP_EXPORT_PERFETTO, NULL);
        uint32_t from_count = 0, to_count = 0;
        for (int id = 1; id <= MANY; id++) {
            const char from[] = {'\xf9', '\x02', (char)id, 0, 0, 0, 0, 0, 0, 0};
            const char to[] = {'\x81', '\x03', (char)id, 0, 0, 0, 0, 0, 0, 0};
            from_count += count_of(from, sizeof from);
            to_count += count_of(to, sizeof to);
        }
        assert_int_equal(from_count, is_to ? MANY : 128);
        assert_int_equal(to_count, is_to ? 128 : MANY);
    }
}

// -- outputs that fail ----------------------------------------------------------------------------

static ptowsp_status export_in_a_way(fixture *f, int way, ptowsp_output output) {
    static const ptowsp_what_if what_ifs[1] = {{1, 50, 0, 0}};
    ptowsp_span_set set;
    switch (way - PTOWSP_EXPORT_DOT) {
    case 1: return ptowsp_run_export_transients(f->run, PTOWSP_EXPORT_SVG, NULL, output);
    case 2: return ptowsp_run_export_transients(f->run, PTOWSP_EXPORT_TABLE, NULL, output);
    case 3: return ptowsp_run_report(f->run, PTOWSP_REPORT_HTML, NULL, what_ifs, 1, output);
    case 4: return ptowsp_run_export_decisions(f->run, PTOWSP_REPORT_TEXT, output);
    default:
        if (way <= PTOWSP_EXPORT_DOT) {
            return ptowsp_run_export(f->run, (ptowsp_export_format)way, NULL, output);
        }
        make_arrows(&set, false);
        return ptowsp_spans_export(
            f->context, &set, (ptowsp_export_format)(way - PTOWSP_EXPORT_DOT - 5), NULL, output);
    }
}

// After any number of bytes; what has been written is the beginning of it all, and nothing comes after it.
TEST_F(limits__outputs_that_fail_are_told_and_not_called_again) {
    ptowsp_transient_sizes sizes;
    execute(f, "module m slots 2\naxis n 100\n"
               "tensor x i32 [100, 8] global\ntensor mid i32 [100, 8] global transient\n"
               "kernel w(axes 1, inout t i32 1 x 8) vector, 3 cycles, time only\n"
               "kernel put(axes 1, out t i32 1 x 8) vector, 2 cycles, time only\n"
               "workload main\n"
               "  parallel i in n\n"
               "    task w(i) t = x at (i, 0)\n"
               "    task put(i) t = mid at (i, 0)\n"
               "    task w(i) t = mid at (i, 0)\n"
               "  pipeline p\n"
               "    channel c depth 1 latency 1\n"
               "    process a produces c\n"
               "      send c(1)\n"
               "    process b consumes c\n"
               "      consume y from c\n"
               "        task w(y) t = x at (0, 0)\n");
    assert_ok(ptowsp_run_size_transients(f->run, &sizes));
    for (int way = 0; way < PTOWSP_EXPORT_DOT + 6 + PTOWSP_EXPORT_TABLE; way++) {
        test_ok(f->context, export_in_a_way(f, way, written_output()));
        const size_t size = written.length;
        char *all = (char *)malloc(size);
        assert_true(all && size > 0);
        memcpy(all, written.text, size);
        for (size_t room = 0; room < size; room += 1 + size / 50) {
            char text[96];
            assert_int_equal(export_in_a_way(f, way, written_within(room)), PTOWSP_SYSTEM_FAILED);
            snprintf(text, sizeof text, "%s: the output failed after %zu bytes",
                     way == PTOWSP_EXPORT_DOT + 4 ? "decisions" : "export", written.length);
            test_error_is(f->context, PTOWSP_SYSTEM_FAILED, PTOWSP_NO_INDEX, text);
            assert_int_equal(written.failed_count, 1);
            assert_memory_equal(written.text, all, written.length);
        }
        free(all);
    }
}

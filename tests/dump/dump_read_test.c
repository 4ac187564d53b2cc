// Reading dumps: nothing that is cut, changed or out of memory does any harm. What is refused, with
// its text, is in dumps.facts.

#define _POSIX_C_SOURCE 200809L

#include "dump_write.h"
#include "scratch.h"
#include "support/files.h"

// Every allocation of the reader, counted; one may be refused.
static size_t hook_live, hook_count, hook_refuse;

static void *hook_resize(void *ptr, size_t size) {
    if (size == 0) {
        hook_live -= ptr != NULL;
        free(ptr);
        return NULL;
    }
    if (++hook_count == hook_refuse) {
        return NULL;
    }
    hook_live += ptr == NULL;
    return realloc(ptr, size);
}

#define PTOWSP_DUMP_RESIZE(ptr, size) hook_resize(ptr, size)
#include "src/dump/dump_base.c"

// tests/dump/whole has a dump with everything that is read.
static ptowsp_dump_file whole[4];

static int read_whole(void **state) {
    static const char *const names[] = {"deps.json", "chip_swimlane_records.json",
                                        "scope_stats.jsonl", "name_map_case.json"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        char path[100];
        snprintf(path, sizeof path, "tests/dump/whole/%s", names[i]);
        whole[i].text = file_read(path, &whole[i].size);
    }
    return 0;
}

static int free_whole(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        free((void *)(uintptr_t)whole[i].text);
    }
    return 0;
}

SUITE_AROUND(read_whole, free_whole)

static bool drop_text(void *user, const void *text, size_t length) {
    (void)text;
    *(size_t *)user += length;
    return true;
}

static const char *directory;  // NULL: of texts

// Opens files, or those of the directory, and does all that can be done with them.
static ptowsp_status use(ptowsp_context *context, const ptowsp_dump_file *files) {
    const ptowsp_dump_desc desc = {directory, files[0], files[1], files[2], files[3]};
    const ptowsp_dump_replay how = {.drops_no_data = true};
    ptowsp_dump *dump = NULL;
    ptowsp_dump_report report;
    size_t length = 0;
    const ptowsp_output text = {drop_text, &length};
    ptowsp_status status = ptowsp_dump_open(context, &desc, &dump);
    assert_true(status == PTOWSP_OK || dump == NULL);
    if (status == PTOWSP_OK && files[0].text) {
        const ptowsp_status drawn =
            ptowsp_dump_replay_export(dump, &how, PTOWSP_EXPORT_SVG, NULL, text);
        status = drawn == PTOWSP_OUT_OF_MEMORY ? drawn : ptowsp_dump_check(dump, &report);
        for (int i = 0; i < 3 && status == PTOWSP_OK; i++) {
            status = ptowsp_dump_print(dump, (ptowsp_dump_format)i, text);
        }
        ptowsp_dump_rings rings;
        status = status == PTOWSP_OK ? ptowsp_dump_rings_least(dump, &rings) : status;
        if (status == PTOWSP_OK) {
            const ptowsp_status explained = ptowsp_dump_explain(dump, UINT64_C(1) << 32, text);
            status = explained == PTOWSP_OUT_OF_MEMORY ? explained : status;
        }
    }
    ptowsp_dump_close(dump);
    assert_int_equal(hook_live, 0);
    return status;
}

CONTEXT_TEST(dump_read__takes_each_file_alone_and_together) {
    for (int set = 0; set < 16; set++) {
        ptowsp_dump_file files[4];
        for (int i = 0; i < 4; i++) {
            const ptowsp_dump_file none = {NULL, 0};
            files[i] = set >> i & 1 ? whole[i] : none;
        }
        assert_int_equal(use(context, files), set & 7 ? PTOWSP_OK : PTOWSP_INVALID_PARAMS);
    }
}

CONTEXT_TEST(dump_read__survives_a_cut_at_every_byte) {
    for (int i = 0; i < 4; i++) {
        for (size_t size = 0; size < whole[i].size; size++) {
            ptowsp_dump_file files[4];
            memcpy(files, whole, sizeof files);
            files[i] = dw_exact(whole[i].text, size);
            // Lines may be missing at the end. Rings then miss tasks, unless there is no scope at all.
            const bool is_good = i == 2 && size > 0 &&
                                 (whole[i].text[size - 1] == '\n' || whole[i].text[size] == '\n');
            const bool is_short = is_good && size > strcspn(whole[2].text, "\n") + 1;
            const ptowsp_status status = use(context, files);
            assert_true(is_short && size < whole[i].size - 1 ? status == PTOWSP_DIFFERENT
                        : is_good                            ? status == PTOWSP_OK
                                                             : status == PTOWSP_INVALID_PARAMS);
            free((void *)(uintptr_t)files[i].text);
        }
    }
}

CONTEXT_TEST(dump_read__survives_every_byte_changed) {
    static const char others[] = "\0 \"\\[]{},:-9ax\x1f\xff";
    for (int i = 0; i < 4; i++) {
        TEST_GRID(size_t, at, whole[i].size, k, sizeof others - 1) {
            ptowsp_dump_file files[4];
            memcpy(files, whole, sizeof files);
            files[i] = dw_exact(whole[i].text, whole[i].size);
            ((char *)(uintptr_t)files[i].text)[at] = others[k];
            const ptowsp_status status = use(context, files);
            assert_true(status == PTOWSP_OK || status == PTOWSP_INVALID_PARAMS ||
                        status == PTOWSP_DIFFERENT || status == PTOWSP_LIMIT_EXCEEDED);
            free((void *)(uintptr_t)files[i].text);
        }
    }
}

CONTEXT_TEST(dump_read__refuses_every_allocation) {
    static const char *const directories[] = {NULL, "tests/dump/whole", "tests/dump/part"};
    for (int i = 2; i >= 0; i--) {
        directory = directories[i];
        hook_count = hook_refuse = 0;
        assert_ok(use(context, whole));
        const size_t count = hook_count;
        for (hook_refuse = 1; hook_refuse <= count; hook_refuse++) {
            hook_count = 0;
            assert_int_equal(use(context, whole), PTOWSP_OUT_OF_MEMORY);
        }
        hook_refuse = 0;
    }
}

// -- sizes and files ------------------------------------------------------------------------------

// One task more, or one that only an edge names.
CONTEXT_TEST(dump_read__has_a_limit_of_tasks) {
    for (uint32_t named = 0; named < 2; named++) {
        dw_text t = {NULL, 0, 0};
        dw_print(&t, "{\"tasks\":[{\"task_id\":0}");
        for (uint32_t i = 1; i <= PTOWSP_DUMP_TASK_MAX - named; i++) {
            dw_print(&t, ",{\"task_id\":%u}", i);
        }
        dw_print(&t, named ? "],\"edges\":[{\"pred\":4000000,\"succ\":0}]}" : "]}");
        ptowsp_dump *dump = NULL;
        test_refused(context, dw_open(context, t.data, t.size, &dump), PTOWSP_LIMIT_EXCEEDED,
                     PTOWSP_DUMP_TASK_MAX, "dump: more than 2000000 tasks");
        free(t.data);
    }
}

CONTEXT_TEST(dump_read__reads_a_directory_as_texts) {
    static char text[2][8192];
    const ptowsp_dump_desc descs[] = {{.directory = "tests/dump/whole"},
                                      {NULL, whole[0], whole[1], whole[2], whole[3]}};
    ptowsp_dump *dump = NULL;
    ptowsp_dump_desc desc = {.directory = "/nonexistent/dump"};
    assert_int_equal(ptowsp_dump_open(context, &desc, &dump), PTOWSP_SYSTEM_FAILED);
    char own[100], path[120];  // with a file that leads to itself
    snprintf(own, sizeof own, "%s/ptowsp-dump-XXXXXX", scratch_root());
    assert_non_null(desc.directory = mkdtemp(own));
    snprintf(path, sizeof path, "%s/deps.json", own);
    assert_int_equal(symlink("deps.json", path), 0);
    assert_int_equal(ptowsp_dump_open(context, &desc, &dump), PTOWSP_SYSTEM_FAILED);
    assert_int_equal(unlink(path) | rmdir(own), 0);
    desc.directory = "tests/dump";  // without a dump
    assert_invalid(ptowsp_dump_open(context, &desc, &dump));
    desc.directory = "tests/dump/part";  // deps.json alone
    assert_ok(ptowsp_dump_open(context, &desc, &dump));
    ptowsp_dump_close(dump);
    for (int i = 0; i < 2; i++) {
        ptowsp_output_buffer buffer = {text[i], sizeof text[i], 0};
        assert_ok(ptowsp_dump_open(context, &descs[i], &dump));
        assert_ok(ptowsp_dump_print(dump, PTOWSP_DUMP_HTML, ptowsp_output_to_buffer(&buffer)));
        assert_true(buffer.length < sizeof text[i]);
        ptowsp_dump_close(dump);
    }
    assert_string_equal(text[0], text[1]);
}

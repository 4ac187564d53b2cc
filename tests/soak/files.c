// Soak cases of files: emitted trees and tuning records, on a disk that is full at some point.

#include "soak.h"

#include "npu_fixture.h"

// -- trees ----------------------------------------------------------------------------------------

static ptowsp_status stop_after(void *user, const char *path, const char *text, size_t size) {
    uint64_t *left = (uint64_t *)user;
    (void)path;
    assert_true(strlen(text) == size);
    return (*left)-- == 0 ? PTOWSP_CANCELLED : PTOWSP_OK;
}

void soak_run_emission(uint64_t seed) {
    uint64_t random = seed, left;
    npu_fixture f;
    char path[160];
    npu_fixture_make(&f);
    snprintf(path, sizeof path, "%s/tree", f.directory);
    for (int i = 0; i < 4; i++) {
        const ptowsp_npu_desc desc = {path, true, true, PTOWSP_NPU_OWN, 0, 0, NULL};
        const uint32_t before = npu_entries(path);
        soak_refuse_writes(&random, 80);
        ptowsp_status status = ptowsp_npu_emit(f.context, f.program, &desc);
        soak_allow_all();
        soak_count(SOAK_BY_disk, status != PTOWSP_OK);
        // The whole tree, or what was there before; and nothing beside it.
        assert_true(status == PTOWSP_OK || status == PTOWSP_SYSTEM_FAILED);
        assert_true(status == PTOWSP_OK ? npu_entries(path) > 0 : npu_entries(path) == before);
        assert_int_equal(npu_entries(f.directory), npu_entries(path) > 0 ? 1 : 0);
        if (status != PTOWSP_OK) {
            assert_non_null(strstr(ptowsp_context_error(f.context).text, "No space left"));
        }
        left = test_random(&random) % 60;
        status = ptowsp_npu_emit_files(f.context, f.program, stop_after, &left);
        assert_true(status == PTOWSP_OK || status == PTOWSP_CANCELLED);
        soak_count(SOAK_BY_cancel, status == PTOWSP_CANCELLED);
    }
    npu_fixture_free(&f);
}

// -- records --------------------------------------------------------------------------------------

enum { KEYS = 8, STEPS = 24 };

// A table that keeps what was added, through a full disk: each value is there once, or was refused
// with a status; what a reader finds afterwards is what was accepted.
void soak_run_records(uint64_t seed) {
    uint64_t random = seed, counts[KEYS] = {0};
    soak_memory memory;
    char path[80];
    ptowsp_tuning *tuning = NULL;
    ptowsp_context *context = soak_context(&memory, 1, &random);
    snprintf(path, sizeof path, "/tmp/ptowsp_soak_%ld", (long)getpid());
    assert_ok(ptowsp_tuning_create(context, path, &tuning));
    for (int i = 0; i < STEPS; i++) {
        const uint64_t k = test_random(&random) % KEYS;
        ptowsp_tuning_key key = {.kernel = k + 1, .machine = "910b3"};
        const bool is_full = test_random(&random) % 3 == 0;
        if (is_full) {
            soak_refuse_writes(&random, 2);
        }
        const bool is_compacted = test_random(&random) % 8 == 0;
        const ptowsp_status status = is_compacted
                                         ? ptowsp_tuning_compact(tuning, 0)
                                         : ptowsp_tuning_add(tuning, &key, (double)i, NULL);
        soak_allow_all();
        soak_count(is_full ? SOAK_BY_disk : SOAK_BY_none, status == PTOWSP_SYSTEM_FAILED);
        assert_true(status == PTOWSP_OK || (is_full && status == PTOWSP_SYSTEM_FAILED) ||
                    (is_compacted && status == PTOWSP_INVALID_PARAMS));
        counts[k] += !is_compacted && status == PTOWSP_OK;
    }
    ptowsp_tuning_destroy(tuning);
    assert_ok(ptowsp_tuning_create(context, path, &tuning));
    for (uint64_t k = 0; k < KEYS; k++) {
        ptowsp_tuning_value value;
        ptowsp_tuning_key key = {.kernel = k + 1, .machine = "910b3"};
        ptowsp_tuning_find(tuning, &key, &value);
        assert_int_equal(value.count, counts[k]);
    }
    ptowsp_tuning_destroy(tuning);
    unlink(path);
    soak_context_end(context, &memory);
}

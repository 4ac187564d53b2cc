// A libFuzzer target: any bytes as a file of tuning records. Each line is counted once, what is read
// is what the next reader finds, and compacting keeps it.

#include "ptowsp.h"

#include "bytes.h"

#include <string.h>
#include <unistd.h>

static const char *path(void) {
    static char name[64];
    snprintf(name, sizeof name, "/tmp/ptowsp_fuzz_%ld", (long)getpid());
    return name;
}

static void write_file(const uint8_t *data, size_t size) {
    FILE *file = fopen(path(), "wb");
    REQUIRE(file && (size == 0 || fwrite(data, 1, size, file) == size));
    REQUIRE(fclose(file) == 0);
}

static ptowsp_tuning_stats read_file(ptowsp_context *context) {
    ptowsp_tuning *tuning;
    REQUIRE(ptowsp_tuning_create(context, path(), &tuning) == PTOWSP_OK);
    ptowsp_tuning_stats stats = ptowsp_tuning_count(tuning);
    ptowsp_tuning_destroy(tuning);
    return stats;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ptowsp_context *context;
    ptowsp_tuning *tuning;
    uint64_t lines = 0;
    write_file(data, size);
    for (size_t i = 0; i < size; i++) {
        lines += data[i] == '\n';
    }
    REQUIRE(ptowsp_context_create(NULL, &context) == PTOWSP_OK);
    const ptowsp_tuning_stats read = read_file(context);
    REQUIRE(read.record_count + read.damaged_count + read.foreign_count <= lines);
    REQUIRE(read.byte_count <= size);
    REQUIRE(ptowsp_tuning_create(context, path(), &tuning) == PTOWSP_OK);
    const ptowsp_status status = ptowsp_tuning_compact(tuning, 0);
    ptowsp_tuning_destroy(tuning);
    const ptowsp_tuning_stats kept = read_file(context);
    REQUIRE(status == PTOWSP_OK || (status == PTOWSP_INVALID_PARAMS && read.record_count == 0));
    REQUIRE(kept.record_count == read.record_count && kept.foreign_count == read.foreign_count);
    REQUIRE(status != PTOWSP_OK || (kept.damaged_count == 0 && kept.tail_bytes == 0));
    unlink(path());
    ptowsp_context_destroy(context);
    return 0;
}

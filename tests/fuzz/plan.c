// A libFuzzer target: any bytes are a batch and a configuration of a chunk plan. What is planned is
// that of the slow reference, in a buffer of exactly its size; what is refused is untouched.

#include "plan_reference.h"
#include "bytes.h"

enum { SEQUENCE_MAX = 48, LANE_COUNT = 3, UNIT_MAX = 20000 };

static ptowsp_plan_config take_config(bytes *in, ptowsp_tier *tiers) {
    uint32_t flags = (uint32_t)take(in, 1);
    ptowsp_plan_config config = {.chunk_min = take_number(in)};
    config.chunk_max = flags & 1 ? take_number(in) : config.chunk_min + take_number(in) % 5000;
    config.max_work_units = take_number(in);
    config.align = flags & 2 ? take_number(in) : 1u << flags / 4 % 8;
    config.chunks = flags & 32 ? PTOWSP_CHUNKS_FIXED : (ptowsp_chunks)0;
    if (flags & 64) {
        config.tiers = tiers;
        config.tier_count = 1 + take_below(in, 3);
        int32_t low = 1;
        for (uint32_t i = 0; i < config.tier_count; i++) {
            tiers[i].id = (uint8_t)take(in, 1);
            tiers[i].length_min = flags & 128 ? (int32_t)take_number(in) : low;
            tiers[i].length_max = low + (int32_t)take(in, 2);
            low = tiers[i].length_max + 1;
        }
    }
    return config;
}

// A plan of the batch, by itself and in two ranges, against the reference.
static void require_plan(const ptowsp_batch *batch, const ptowsp_plan_config *config,
                         uint32_t chunk, uint32_t middle) {
    const ptowsp_plan_config full = reference_config(config);
    ptowsp_plan_info info;
    const uint64_t total = reference_total(batch, chunk);
    REQUIRE(ptowsp_plan_total_work(batch, config, chunk, &info) == PTOWSP_OK);
    REQUIRE(info.work_count == total);
    if (total > UNIT_MAX) {
        return;
    }
    const size_t bytes_needed = (size_t)total * sizeof(ptowsp_work);
    ptowsp_work *got = (ptowsp_work *)test_alloc(bytes_needed, 1);
    ptowsp_work *wanted = (ptowsp_work *)test_alloc(bytes_needed, 1);
    REQUIRE(reference_generate(batch, &full, chunk, wanted) == total);
    memset(got, 0x5a, bytes_needed);
    if (total > 0) {
        REQUIRE(ptowsp_plan_generate(batch, config, chunk, got, total - 1, &info) ==
                PTOWSP_BUFFER_OVERFLOW);
        REQUIRE(info.work_count == total && got[0].work_id == 0x5a5a5a5a);
    }
    REQUIRE(ptowsp_plan_generate(batch, config, chunk, got, total, &info) == PTOWSP_OK);
    REQUIRE(info.work_count == total && memcmp(got, wanted, bytes_needed) == 0);
    memset(got, 0x5a, bytes_needed);
    REQUIRE(ptowsp_plan_generate_range(batch, config, chunk, 0, middle, 0, got, total, &info) ==
            PTOWSP_OK);
    const uint64_t before = info.work_count;
    REQUIRE(before <= total);
    REQUIRE(ptowsp_plan_generate_range(batch, config, chunk, middle, batch->sequence_count - middle,
                                       before, got + before, total - before, &info) == PTOWSP_OK);
    REQUIRE(memcmp(got, wanted, bytes_needed) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bytes in = {data, size};
    ptowsp_tier tiers[3];
    const ptowsp_plan_config config = take_config(&in, tiers);
    ptowsp_batch batch = {.kv_head_count = take_number(&in) % 9};
    batch.sequence_count = take_below(&in, SEQUENCE_MAX);
    const uint32_t middle = take_below(&in, batch.sequence_count + 1);
    int32_t *lengths = (int32_t *)test_alloc(batch.sequence_count, sizeof *lengths);
    for (uint32_t i = 0; i < batch.sequence_count; i++) {
        lengths[i] = (int32_t)take_number(&in);
    }
    batch.lengths = lengths;
    const ptowsp_plan_config full = reference_config(&config);
    uint32_t chunk = 77;
    ptowsp_plan_info info;
    ptowsp_status status = ptowsp_plan_chunk_size(&batch, &config, &chunk, &info);
    char text[200] = "";
    ptowsp_plan_explain(&info, TEST_TEXT(text));
    REQUIRE(status == status_of_fault(info.fault));
    if (status == PTOWSP_OK) {
        REQUIRE(reference_bad_sequence(&batch, &full) == batch.sequence_count);
        REQUIRE(reference_chunk_is(&batch, &full, chunk));
        require_plan(&batch, &config, chunk, middle);
    } else {
        REQUIRE(chunk == 0 && strncmp(text, "plan: ", 6) == 0);
        bool is_of_length = info.fault == PTOWSP_FAULT_LENGTH_NEGATIVE ||
                            info.fault == PTOWSP_FAULT_LENGTH_UNCOVERED;
        REQUIRE(!is_of_length || info.index == reference_bad_sequence(&batch, &full));
    }
    test_release();
    return 0;
}

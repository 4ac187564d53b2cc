// A libFuzzer target: any bytes are either a trace that makes sense, or refused with a text.

#include "common/lengths.h"

#include "bytes.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char error[200] = "";
    trace parsed;
    if (!trace_parse("fuzz", (const char *)data, size, &parsed, error, sizeof error)) {
        if (strncmp(error, "fuzz:", 5) != 0 || strlen(error) < 8) {
            abort();
        }
        return 0;
    }
    int32_t lengths[16];
    if (parsed.count == 0 || trace_first(&parsed, 16, lengths) == 0 || lengths[0] < 0) {
        abort();
    }
    uint32_t live = trace_live(&parsed, 10.0, 0.03, 16, lengths);
    for (uint32_t i = 0; i < live; i++) {
        if (lengths[i] < 0) {
            abort();
        }
    }
    trace_free(&parsed);
    return 0;
}

// Reductions of more elements than a block of halves has (src/ranks/reduce.c): each element is that of its own
// place. Small integers, so sums are exact in every type.

#include "test.h"

#include "src/ranks/ranks.h"

enum { COUNT = 700 };  // blocks have 256

TEST(reduce__goes_on_from_block_to_block_in_every_type) {
    static const ptowsp_dtype dtypes[] = {PTOWSP_F16, PTOWSP_BF16, PTOWSP_F32, PTOWSP_I8};
    for (uint32_t t = 0; t < COUNT_OF(dtypes); t++) {
        double x[COUNT], y[COUNT], got[COUNT];
        uint64_t a[COUNT], b[COUNT], to[COUNT + 1];
        for (int i = 0; i < COUNT; i++) {
            x[i] = i % 100, y[i] = 1 + i / 256;
        }
        memset(to, 0x5a, sizeof to);
        assert_ok(ptowsp_convert(a, dtypes[t], x, PTOWSP_F64, COUNT));
        assert_ok(ptowsp_convert(b, dtypes[t], y, PTOWSP_F64, COUNT));
        pwsp_reduce_elements(PTOWSP_REDUCTION_SUM, dtypes[t], to, a, b, COUNT);
        assert_ok(ptowsp_convert(got, PTOWSP_F64, to, dtypes[t], COUNT));
        for (int i = 0; i < COUNT; i++) {
            if ((int)got[i] != i % 100 + 1 + i / 256) {
                fail_msg("%s, element %d: %g", ptowsp_dtype_name(dtypes[t]), i, got[i]);
            }
        }
        const size_t end = COUNT * ptowsp_dtype_size(dtypes[t]);
        assert_int_equal(((const uint8_t *)to)[end], 0x5a);  // nothing past the last
    }
}

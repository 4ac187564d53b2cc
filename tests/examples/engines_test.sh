#!/bin/sh
# examples/engines against a stub of ggml, with parts/attention as an engine copies it: compiled without
# warnings, run on threads, compared with double precision, and what it refuses. GGML=DIR, with the
# headers and libraries of a real ggml in include/ and lib/, measures beside that, too.
set -eu
cd "$(dirname "$0")/../.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
: "${CC:=gcc}" "${CXX:=g++}"
W="-std=c++17 -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wcast-qual -Werror"

fail() {
    echo "engines: $1" >&2
    exit 1
}

mkdir "$tmp/part"
tools/amalgamate.sh --part plan "$tmp/part"
"$CC" -std=c11 -O1 -I"$tmp/part" -c "$tmp/part/ptowsp.c" -o "$tmp/part.o"

cat > "$tmp/refused.cpp" <<'PROGRAM'
#include "ggml-cpu.h"
#include "ggml_attention.h"
#include <cstdio>
#include <cstring>
#define REQUIRE(condition) do { if (!(condition)) { std::printf("line %d\n", __LINE__); return 1; } } while (0)

static bool plan(ggml_attention_step *step, ggml_attention_shape shape, const char *text) {
    std::string error;
    return !ggml_attention_plan(step, &shape, &error) && std::strstr(error.c_str(), text) != nullptr;
}

int main() {
    ggml_context *ctx = ggml_init({1 << 20, nullptr, false});
    ggml_attention_step step;
    step.kv_lengths = {5, 20};  // 1 and 2 pages of 16; 2 and 3 query tokens
    step.query_lengths = {2, 3};
    step.pages = {2, 0, 1};
    step.page_starts = {0, 1};
    REQUIRE(plan(&step, {5, 2, 32, 16, 2}, "heads are no multiple"));
    REQUIRE(plan(&step, {4, 0, 32, 16, 2}, "heads are no multiple"));
    REQUIRE(plan(&step, {4, 2, 32, 0, 2}, "page_size is 0"));
    REQUIRE(plan(&step, {4, 2, 32, 8, 2}, "sequence 1 has too few pages"));
    REQUIRE(plan(&step, {4, 2, 32, 16, 0}, "lane"));
    step.query_lengths = {6, 3};
    REQUIRE(plan(&step, {4, 2, 32, 16, 2}, "6"));  // more queries than KV
    step.query_lengths = {2};
    REQUIRE(plan(&step, {4, 2, 32, 16, 2}, "differ in length"));
    step.query_lengths = {2, 3};
    std::string error;
    ggml_attention_shape shape = {4, 2, 32, 16, 2};
    REQUIRE(ggml_attention_plan(&step, &shape, &error));
    ggml_tensor *q = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 32, 4, 5);
    ggml_tensor *k = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 32, 2, 48);
    ggml_tensor *few = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 32, 2, 47);
    ggml_tensor *half = ggml_new_tensor_3d(ctx, GGML_TYPE_F16, 32, 2, 48);
    ggml_tensor *whole = ggml_new_tensor_3d(ctx, GGML_TYPE_I32, 32, 2, 48);
    ggml_tensor *four = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 32, 4, 4);
    REQUIRE(!ggml_attention(ctx, q, few, few, &step));      // page 2 ends at slot 48
    REQUIRE(!ggml_attention(ctx, q, k, half, &step));       // two types
    REQUIRE(!ggml_attention(ctx, q, whole, whole, &step));  // no type of a cache
    REQUIRE(!ggml_attention(ctx, four, k, k, &step));       // 4 query tokens, not 5
    ggml_tensor *v = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 32, 2, 48);
    for (int slot = 0; slot < 48; slot++) {  // keys are 0: rows are means of the values that they see
        for (int i = 0; i < 64; i++) {
            static_cast<float *>(v->data)[slot * 64 + i] = static_cast<float>(slot);
        }
    }
    ggml_tensor *out = ggml_attention(ctx, q, k, v, &step);
    REQUIRE(out && out->ne[0] == 32 && out->ne[1] == 4 && out->ne[2] == 5);
    ggml_cgraph *graph = ggml_new_graph(ctx);
    for (int layer = 0; layer < 3; layer++) {  // which share the memory
        ggml_build_forward_expand(graph, out);
    }
    // Sequence 0 has slots 32 to 36; its queries see 4 and 5 of them. Sequence 1 has slots 0 to 19.
    const float means[] = {33.5f, 34.0f, 8.5f, 9.0f, 9.5f};
    for (int threads = 1; threads <= 2; threads++) {
        REQUIRE(ggml_graph_compute_with_ctx(ctx, graph, threads) == GGML_STATUS_SUCCESS);
        REQUIRE(step.status == PTOWSP_OK);
        for (int i = 0; i < 5 * 4 * 32; i++) {
            const float off = static_cast<float *>(out->data)[i] - means[i / 128];
            REQUIRE(off < 1e-5f && off > -1e-5f);
        }
    }
    ggml_graph_compute_with_ctx(ctx, graph, 3);  // more threads than the step has room for
    REQUIRE(step.status == PTOWSP_INVALID_PARAMS);
    ggml_free(ctx);
    std::printf("good\n");
    return 0;
}
PROGRAM

build() {  # OUTPUT SOURCE...
    output=$1
    shift
    # shellcheck disable=SC2086
    "$CXX" $W -O1 -I"$tmp/part" -Itests/examples/ggml_stub -Iexamples/engines "$@" examples/engines/ggml_attention.cpp \
        tests/examples/ggml_stub/ggml.cpp "$tmp/part.o" -o "$tmp/$output" -pthread
}
build measure examples/engines/ggml_measure.cpp
build refused "$tmp/refused.cpp"
"$tmp/refused" > "$tmp/log" || fail "$(cat "$tmp/log")"
for type in f32 f16 q8_0; do
    for threads in 1 3; do
        "$tmp/measure" --sequences 5 --length 200 --heads 8 --kv-heads 2 --dim 64 --type $type --rounds 1 \
            --threads $threads > "$tmp/log" 2>&1 || fail "$type, $threads threads: $(cat "$tmp/log")"
    done
done
! "$tmp/measure" --heads 6 --kv-heads 4 > "$tmp/log" 2>&1 || fail "6 heads of 4: $(cat "$tmp/log")"
! "$tmp/measure" --wrong 1 > /dev/null 2>&1 || fail "an unknown option"

if [ -n "${GGML-}" ]; then
    # shellcheck disable=SC2086
    "$CXX" -std=c++17 -O2 -I"$tmp/part" -I"$GGML/include" -Iexamples/engines examples/engines/*.cpp "$tmp/part.o" \
        -L"$GGML/lib" -lggml -lggml-base -lggml-cpu -o "$tmp/beside" -pthread
    LD_LIBRARY_PATH=$GGML/lib "$tmp/beside" || fail "beside ggml"
fi
echo "engines: ok"

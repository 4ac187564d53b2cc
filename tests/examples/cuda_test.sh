#!/bin/sh
# examples/cuda without a GPU: the kernel on emulated blocks against double precision, the dispatcher on a
# simulated device, without one, and over a driver and a cuBLAS that are fakes and fail where they are told
# to. With nvcc, decode.cu is compiled, and numbers are compared with CUDA's headers.
set -eu
cd "$(dirname "$0")/../.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
: "${CC:=gcc}" "${CXX:=g++}" "${NVCC:=nvcc}"
W="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"
C="-std=gnu11 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined"

fail() {
    echo "cuda: $1" >&2
    exit 1
}

# The planner alone, for the kernel; all of the library, for the dispatcher.
tools/amalgamate.sh --part plan "$tmp"
"$CC" -std=c11 -O1 -c "$tmp/ptowsp.c" -o "$tmp/plan.o"
if [ -f "${BUILD-}/ptowsp.o" ]; then
    cp "$BUILD/ptowsp.o" "$tmp/ptowsp.o"
else
    "$CC" -std=c11 -O1 -I. -c ptowsp.c -o "$tmp/ptowsp.o"
fi

"$CC" -std=c11 $W -O1 -I. -c examples/cuda/decode_rules.c -o "$tmp/rules.o"
"$CXX" -std=c++17 -Wall -Wextra -Werror -Wno-unknown-pragmas -O1 -I. tests/examples/cuda/decode_test.cpp "$tmp/rules.o" "$tmp/plan.o" \
    -pthread -lm -o "$tmp/decode_test"
"$tmp/decode_test"

$CC $C $W -I. examples/cuda/chain*.c tests/examples/cuda/dispatch_test.c "$tmp/ptowsp.o" -lcmocka -pthread -lm -ldl \
    -o "$tmp/dispatch_test"
$CC $C $W -I. examples/cuda/chain*.c examples/cuda/dispatch.c "$tmp/ptowsp.o" -pthread -lm -ldl -o "$tmp/dispatch"
"$tmp/dispatch_test" > "$tmp/out" 2>&1 || { cat "$tmp/out"; fail "dispatch_test"; }

# One object under both names, as a capture by one sees the calls of the other.
mkdir "$tmp/fake"
"$CC" -std=gnu11 -Wall -Wextra -Werror -O1 -shared -fPIC tests/examples/cuda/fake_cuda.c -o "$tmp/fake/libcuda.so.1"
ln -s libcuda.so.1 "$tmp/fake/libcublasLt.so.13"
export LD_LIBRARY_PATH="$tmp/fake"
"$tmp/dispatch" > "$tmp/out" || { cat "$tmp/out"; fail "dispatch on a fake device"; }
grep -q '^15 runs, 12 on the device: 4 captures, 8 replays' "$tmp/out" || { cat "$tmp/out"; fail "counters"; }
expect() { # a function that fails, and the reason that is given
    FAKE_CUDA_FAIL=$1 "$tmp/dispatch" > "$tmp/out" || { cat "$tmp/out"; fail "$1 fails: a wrong result"; }
    grep -q "$2" "$tmp/out" || { cat "$tmp/out"; fail "$1 fails: not '$2'"; }
    ! grep -q 'are left' "$tmp/out" || { cat "$tmp/out"; fail "$1 fails: a leak"; }
}
for name in cuInit cuDeviceGetCount cuDeviceGet cuDevicePrimaryCtxRetain cuCtxSetCurrent cuStreamCreate cuMemAlloc_v2; do
    expect "$name" 'the driver has no device'
done
for name in cublasLtCreate cublasLtMatmulPreferenceCreate cublasLtMatmulPreferenceSetAttribute; do
    expect "$name" 'there is no cuBLAS'
done
for name in cuMemGetInfo_v2 cuMemHostAlloc; do
    expect "$name" "exceed the device's memory"
done
for name in cuStreamBeginCapture_v2 cuStreamEndCapture cuGraphInstantiateWithFlags; do
    expect "$name" 'did not capture'
done
for name in cuGraphLaunch cuStreamSynchronize cuMemcpyHtoDAsync_v2 cuMemcpyDtoHAsync_v2 cublasLtMatmul \
    cublasLtMatmulDescCreate cublasLtMatmulDescSetAttribute cublasLtMatrixLayoutCreate cublasLtMatmulAlgoGetHeuristic; do
    expect "$name" 'did not run'
done
unset LD_LIBRARY_PATH

if ! command -v "$NVCC" > /dev/null; then
    echo "cuda: ok, but decode.cu was not compiled, as there is no $NVCC"
    exit 0
fi
include=$(dirname "$(dirname "$(readlink -f "$(command -v "$NVCC")")")")/include
if [ -f "$include/cublasLt.h" ]; then
    "$CC" -std=c11 -I"$include" -fsyntax-only tests/examples/cuda/interface_check.c
fi
"$NVCC" -std=c++17 -O1 -Werror all-warnings -I. -c examples/cuda/decode.cu -o "$tmp/decode.o"
echo "cuda: ok"

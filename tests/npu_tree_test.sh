#!/bin/sh
# Emitted trees as people build them: with make and with cmake, with gcc and with clang, with a file
# for each kernel and many of them. Says how many seconds of a processor the first build takes.
#
# BUILD has ptowsp.o and ptowsp_npu_emit.o; CXX, OUT come from outside.
set -eu
BUILD=${BUILD:-build} CXX=${CXX:-g++} OUT=${OUT:-build/npu_tree}
ROOT=$(cd "$(dirname "$0")/.." && pwd)
case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD ;; esac
rm -rf "$OUT"
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)

fail() {
    echo "npu_tree: $*" >&2
    exit 1
}

# says TEXT COMMAND...: it succeeds, and its output has the text.
says() {
    wanted=$1
    shift
    "$@" > "$OUT/said" 2>&1 || { cat "$OUT/said"; fail "$* fails"; }
    grep -qF -- "$wanted" "$OUT/said" || { cat "$OUT/said"; fail "$* does not say: $wanted"; }
}

# refuses TEXT COMMAND...: it fails, with the text.
refuses() {
    wanted=$1
    shift
    ! "$@" > "$OUT/said" 2>&1 || { cat "$OUT/said"; fail "$* does not fail"; }
    grep -qF -- "$wanted" "$OUT/said" || { cat "$OUT/said"; fail "$* does not say: $wanted"; }
}

cc -std=c11 -I"$ROOT" "$ROOT/tests/npu_tree.c" "$BUILD/ptowsp.o" "$BUILD/ptowsp_npu_emit.o" \
    -o "$OUT/emit" -pthread -lm -ldl
cd "$OUT"
./emit one 1 recorded
./emit many 41

# Floats 1, 2, 3, ... as the tensor, and twice as much.
printf '\000\000\200\077\000\000\000\100\000\000\100\100\000\000\200\100' > x.bin
printf '\000\000\000\100\000\000\200\100\000\000\300\100\000\000\000\101' > y.bin
twice() {
    says "tasks " "$1" --size rows=1 --tensor x=1x4@x.bin --write x@out.bin
    cmp out.bin y.bin || fail "$1 computes something else"
}

says " " make -C one CXX="$CXX" CXXFLAGS="-O1 -Werror"
twice one/build/run
times > before
says " " make -C one CXX="$CXX" clean
says " " make -C one CXX="$CXX"
times > after
twice one/build/run
says " " make -C one CXX="$CXX"
! grep -q "$CXX" said || fail "make builds what is there"
touch one/aicore/kernels/k0.cpp
says "-o build/kernels.o" make -C one CXX="$CXX"
! grep -q -- "-o build/runtime.o" said || fail "make builds all of it for a kernel"

# A recorded run: as it is; in a new place, seen from elsewhere; of another program, damaged, cut off,
# with a file too few; and with a tree that computes something else.
says "check: good" one/build/run --check recorded --aicpu 2
says "x            4 elements, 0 wrong" one/build/run --check recorded
mv recorded moved
(cd one && says "check: good" build/run --check ../moved)
refuses "there is no nowhere/recording" one/build/run --check nowhere
refuses "exists, and is_replacing is not set" ./emit other 1 moved
spoil() { # WHAT-IT-SAYS COMMAND, in a copy
    rm -rf spoiled
    cp -r moved spoiled
    (cd spoiled && eval "$2")
    refuses "$1" one/build/run --check spoiled
}
spoil "spoiled/recording is no recorded run" ": > recording"
spoil "spoiled/recording is cut off or damaged" "head -c 200 ../moved/recording > recording"
spoil "spoiled/recording is cut off or damaged" "sed -i '\$d' recording"
spoil "spoiled/recording is cut off or damaged" "sed -i 's/--size rows=1/--size rows=2/' recording"
spoil "spoiled lacks its file m1.bin" "rm m1.bin"
spoil "spoiled/m1.bin is not as it was recorded" "printf x >> m1.bin"
spoil "spoiled/o1.bin is not as it was recorded" "printf x | dd of=o1.bin conv=notrunc 2> /dev/null"
sed -i 's/, 2.0f/, 3.0f/' one/aicore/kernels/k0.cpp
says " " make -C one CXX="$CXX"
refuses "x            4 elements, 4 wrong, the first is 0" one/build/run --check moved
refuses "check: WRONG" one/build/run --check moved
refuses "is no number from 0 to 1" one/build/run --check moved --tolerance x
says "check: good" one/build/run --check moved --tolerance 0.6
sed -i 's/, 3.0f/, 2.0f/' one/aicore/kernels/k0.cpp

# 41 kernels: three objects.
says " " make -C many CXX="$CXX"
[ "$(ls many/build/kernels*.o | wc -l)" -eq 3 ] || fail "41 kernels are not three objects"
twice many/build/run
refuses "moved is of another program, or version" many/build/run --check moved

if command -v cmake > cmake.path; then
    says "Configuring done" env CXX="$CXX" cmake -S many -B many/cmake
    says "Built target run" cmake --build many/cmake
    twice many/cmake/run
fi

tail -n 1 before | tr 'ms' '  ' > cpu
tail -n 1 after | tr 'ms' '  ' >> cpu
awk '{ seconds = $1 * 60 + $2 + $3 * 60 + $4; if (NR == 1) first = seconds }
    END { printf "a tree of one kernel is built in %.1f s\n", seconds - first }' cpu
echo "npu_tree ($CXX): good"

#!/bin/sh
# Emitted trees as people build them: with make and with cmake, with gcc and with clang, with a file
# for each kernel and many of them. Says how many seconds of a processor the first build takes.
#
# BUILD has ptowsp.o and ptowsp_npu_emit.o; CXX, OUT come from outside.
set -eu
BUILD=${BUILD:-build} CXX=${CXX:-g++} OUT=${OUT:-build/npu_tree}
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
case $BUILD in /*) LIBRARY=$BUILD ;; *) LIBRARY=$PWD/$BUILD ;; esac
unset BUILD  # the Makefile of a tree takes it from the environment
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

cc -std=c11 -I"$ROOT" "$ROOT/tests/npu/npu_tree.c" "$LIBRARY/ptowsp.o" "$LIBRARY/ptowsp_npu_emit.o" \
    -o "$OUT/emit" -pthread -lm -ldl
cd "$OUT"
./emit one 1 recorded
./emit many 41
./emit mixed 0 blocks

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
says "check: good" one/build/run --check recorded --driver host
refuses "the host is the driver, which schedules on one thread" one/build/run --check recorded --driver host --aicpu 2
refuses '--driver: "x" is neither aicpu nor host' one/build/run --driver x
says "x            4 elements, 0 wrong" one/build/run --check recorded
mv recorded moved
(cd one && says "check: good" build/run --check ../moved)
refuses "there is no nowhere/recording" one/build/run --check nowhere
refuses "exists, and is not to be replaced" ./emit other 1 moved
# The tree records the same run as the library does, but for the place of its tensor in memory.
says "tasks 1" one/build/run --size rows=1 --tensor x=1x4@x.bin --model a2a3 --record again
says "tasks 1" one/build/run --size rows=1 --tensor x=1x4@x.bin --timeline one.json
grep -q '"ph":"X","pid":1,"tid":[1-9].*"args":{"task":0}}' one.json || fail "no timeline"
refuses "/nowhere/t.json cannot be written" one/build/run --size rows=1 --tensor x=1x4@x.bin --timeline /nowhere/t.json
says "check: good" one/build/run --check again
for recording in again moved; do
    sed 's/^\(file m1.bin\|end\|--view\) .*/\1/' $recording/recording > $recording.text
done
cmp again.text moved.text || fail "run --record and the library's recording differ"
cmp again/o1.bin moved/o1.bin || fail "run --record has other outputs than the library"
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

# A kernel for both kinds of cores: a block of three threads for each task.
says " " make -C mixed CXX="$CXX"
says "check: good" mixed/build/run --check blocks --aicpu 2
says "check: good" mixed/build/run --check blocks --driver host

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

# Against PTO-ISA's CPU simulator. Its headers are not here: the shim stands in for them, so that what
# is not for the shim compiles and runs. Compilers that are too old are named before they start.
mkdir -p simulator/include/pto
echo '#include "ptoisa_shim.h"' > simulator/include/pto/pto-inst.hpp
for version in "__clang_major__ 12" "14 4"; do
    printf '#!/bin/sh\ncase "$*" in *"-E -P"*) echo "%s" ;; *) exec %s "$@" ;; esac\n' "$version" "$CXX" > old
    chmod +x old
    refuses "needs g++ 13 or clang++ 15, or newer; $OUT/old is " \
        make -C one CXX="$OUT/old" PTO_ISA_ROOT="$OUT/simulator"
done
refuses "$OUT/nothing is not there" make -C one CXX="$OUT/nothing" PTO_ISA_ROOT="$OUT/simulator"
refuses "no include/pto" make -C one CXX="$OUT/old" PTO_ISA_ROOT="$OUT/nowhere"
sed 's/"14 4"/"15 4"/' old > new
chmod +x new
says " " make -C one CXX="$OUT/new" PTO_ISA_ROOT="$OUT/simulator"
says "check: good" one/build-pto-isa/run --check moved
says "check: good" one/build-pto-isa/run --check moved --tolerance 0
says "tasks 1" one/build-pto-isa/run --size rows=1 --tensor x=1x4@x.bin --record simulated
says "check: good" one/build-pto-isa/run --check simulated
refuses "x            4 elements, 4 wrong, the first is 0, the largest error is 5.0e-01 of the largest: see --tolerance" one/build/run --check simulated  # it has the factor 3
says "--tolerance 5e-6" cat simulated/recording
! grep -q expect-cycles simulated/recording || fail "the simulator's cycles are recorded"
# The halves of a mixed kernel are two threads there.
says " " make -C mixed CXX="$OUT/new" PTO_ISA_ROOT="$OUT/simulator"
says "check: good" mixed/build-pto-isa/run --check blocks
# Its bfloat16_t is a float, or nothing, without C++23's: kernels of that type do not compile then.
printf '#include "wsp_kernel.h"\nWSP_NEEDS_BF16();\n' > bf16.cpp
refuses "this kernel needs bfloat16_t: g++ 13 or newer with STD=c++23" "$CXX" -std=c++17 -fsyntax-only \
    -DWSP_PTO_ISA -D__CPU_SIM -Isimulator/include -Ione/include -Ione/aicore -Ione/shim bf16.cpp
"$CXX" -std=c++17 -fsyntax-only -Ione/include -Ione/aicore -Ione/shim bf16.cpp || fail "the shim has no bfloat16_t"
if [ -s cmake.path ] && [ "$(echo '__clang_major__ __GNUC__' | "$CXX" -E -P -x c++ - |
    awk '{ print ($1 ~ /^[0-9]/ ? $1 < 15 : $2 < 13) }')" -eq 1 ]; then
    refuses "needs g++ 13 or clang++ 15, or newer" env CXX="$CXX" cmake -S one -B one/cmake-pto-isa \
        -DPTO_ISA_ROOT="$OUT/simulator"
fi

# And a device's cores: all of it compiles, with what CANN's compiler has beside; C functions do not.
# Where another processor reads, a barrier stands on both sides of the cache.
mkdir -p device/pto
printf '#include "ptoisa_shim.h"\nenum dsb_t { DSB_DDR };\ninline void dsb(dsb_t) {}\n' > device/pto/pto-inst.hpp
mkdir -p device/one
for file in wsp_aicore.cpp wsp_kernel.h dispatch.cpp; do
    sed 's/<<<.*>>>//' one/aicore/$file > device/one/$file
done
for unit in cube vector; do
    for file in device/one/wsp_aicore.cpp one/aicore/kernels/k0.cpp device/one/dispatch.cpp; do
        "$CXX" -std=c++17 -Wall -Wextra -Wno-unused-parameter -Werror -fsyntax-only \
            -DWSP_ASCEND -DWSP_FOR_CORES -DWSP_UNIT_$unit -D__CCE_AICORE__ \
            -Idevice -Idevice/one -Ione/include -Ione/aicpu -Ione/aicore -Ione/shim "$file" || fail "$file is not for a device"
    done
done
awk '/dcci\(/ { if (before !~ /dsb\(DSB_DDR\);/) exit 1; getline; getline; if ($0 !~ /dsb\(DSB_DDR\);/) exit 1; n++ }
    { before = $0 } END { exit n != 1 }' one/aicore/wsp_kernel.h || fail "a cache line without barriers"
# Blocks of three cores: each half of a mixed kernel for its cores; and what they compute together.
mkdir -p device/mixed
for file in wsp_aicore.cpp wsp_kernel.h dispatch.cpp; do
    sed 's/<<<.*>>>//' mixed/aicore/$file > device/mixed/$file
done
mv device/mixed/wsp_aicore.cpp device/mixed/block.cpp
for half in cube:CUBE vector:VEC; do
    name=${half%:*}
    for file in device/mixed/block.cpp mixed/aicore/kernels/attend.cpp device/mixed/dispatch.cpp "$ROOT/tests/npu/npu_block.cpp"; do
        "$CXX" -std=c++17 -Wall -Wextra -Wno-unused-parameter -Wno-unused-but-set-variable -Werror \
            -DWSP_ASCEND -DWSP_FOR_CORES -DWSP_UNIT_block -D__DAV_${half#*:}__ -D__CCE_AICORE__ -DHALF=${name}_half \
            -Dwsp=wsp_$name -Dwsp_core_run=${name}_run -Dwsp_kernel_attend=${name}_attend \
            -Dwsp_tasks_attend=${name}_tasks -Dwsp_launch_attend=${name}_launch -Dwsp_launcher_of=${name}_launches \
            -Idevice -Idevice/mixed -Imixed/include -Imixed/aicpu -Imixed/aicore -Imixed/shim \
            -c "$file" -o "$name-$(basename "$file").o" || fail "$file is not for a block"
    done
done
rm ./*-block.cpp.o  # a device starts it
"$CXX" -std=c++17 -Wall -Wextra -Imixed/include -Imixed/shim "$ROOT/tests/npu/npu_block.cpp" ./*-*.cpp.o -o block -pthread
says "block: good" ./block
echo '#include "wsp_native.h"' > native.cpp
refuses "a kernel that is a C function is not for AICore" \
    "$CXX" -std=c++17 -fsyntax-only -DWSP_ASCEND -Ione/include -Ione/aicore native.cpp

tail -n 1 before | tr 'ms' '  ' > cpu
tail -n 1 after | tr 'ms' '  ' >> cpu
awk '{ seconds = $1 * 60 + $2 + $3 * 60 + $4; if (NR == 1) first = seconds }
    END { printf "a tree of one kernel is built in %.1f s\n", seconds - first }' cpu
echo "npu_tree ($CXX): good"

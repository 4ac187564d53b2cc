#!/bin/sh
# The ways to use the two files, each compiled, linked and run. CC, CXX and OUT come from outside, and
# BUILT: the directory where make builds the library with CC, or has built it.
#
# Compiling the library is what costs. Warnings are asked for by syntax; code is generated once for
# each mode that has code of its own, and private copies at -O1, where gcc drops unused functions.
set -eu
CC=${CC:-cc} CXX=${CXX:-c++} OUT=${OUT:-build/packaging}
W="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Werror"
rm -rf "$OUT"
mkdir -p "$OUT"
ROOT=$(pwd)
BUILT=${BUILT:-$OUT/built}
make -s BUILD="$BUILT" CC="$CC"
BUILT=$(cd "$BUILT" && pwd)
cp ptowsp.h ptowsp.c ptoisa_shim.h ptowsp_npu_emit.c ptowsp_dump.c "$OUT/"
cd "$OUT"

fail() {
    echo "packaging ($CC): $*" >&2
    exit 1
}

cat > use.h << 'END'
// Plans two sequences, in C or C++; returns the number of units, 3.
static inline uint64_t use(void) {
    const int32_t lengths[] = {300, 5000};
    ptowsp_batch batch = {lengths, 2, 1};
    ptowsp_work work[3];
    ptowsp_plan_info info;
    return ptowsp_plan_generate(&batch, NULL, 4096, work, 3, &info) == PTOWSP_OK ? info.work_count : 0;
}
END
cat > main.c << 'END'
#include "ptowsp.h"
#include "ptowsp.h"
#include "use.h"
extern uint64_t other(void);
int main(void) {
    return use() == 3 && other() == 3 ? 0 : 1;
}
END
cat > other.c << 'END'
#include "ptowsp.h"
#include "use.h"
#ifdef __cplusplus
extern "C" uint64_t other(void);
#else
extern uint64_t other(void);
#endif
uint64_t other(void) {
    return use();
}
END
cat > implementation.c << 'END'
#include "ptowsp.h"  // once without, once with, and again
#define PTOWSP_IMPLEMENTATION
#include "ptowsp.h"
#include "ptowsp.h"
END
sed 's/extern uint64_t/extern "C" uint64_t/' main.c > main.cpp
cp other.c other.cpp
cp implementation.c implementation.cpp

# Two files: ptowsp.c compiled like any other.
$CC -std=c11 $W -fsyntax-only ptowsp.c
$CC -std=c11 $W main.c other.c "$BUILT/ptowsp.o" -o two_files -pthread
./two_files || fail "two-file use"
# Header mode: the implementation in one C file, used from C and C++.
$CC -std=c11 $W -c implementation.c main.c other.c
$CC implementation.o main.o other.o -o header_c -pthread
./header_c || fail "header mode in C"
# Header mode in one C++ file, used from C++ and C.
$CXX -std=c++17 $W -c implementation.cpp -o implementation_cpp.o
$CXX -std=c++17 $W -c main.cpp -o main_cpp.o
$CXX implementation_cpp.o main_cpp.o other.o -o header_cpp -pthread
./header_cpp || fail "header mode in C++"
# Static mode: a private copy in each of two files, in C and C++, and nothing exported.
$CC -std=c11 $W -DPTOWSP_STATIC -O1 -c main.c -o main_static.o
$CC -std=c11 $W -DPTOWSP_STATIC -O1 -c other.c -o other_static.o
$CXX -std=c++17 $W -DPTOWSP_STATIC -O1 -c other.cpp -o other_static_cpp.o
for object in other_static.o other_static_cpp.o; do
    $CC main_static.o $object -o static_c -pthread
    ./static_c || fail "static mode"
    nm -g --defined-only $object | grep ptowsp_ && fail "static mode exports"
done
# The shim: in C, and in two C++ files that share their thread's core, with the library in one.
cat > shim.h << 'END'
// Adds two 8 x 8 tiles that were put where pto tiles lie; returns element (7, 7).
static inline float add(ptoisa_core *core, float *memory) {
    ptoisa_tile a = ptoisa_tile_vec(memory, PTOISA_F32, 8, 8);
    ptoisa_tile b = ptoisa_tile_vec(memory + 64, PTOISA_F32, 8, 8);
    ptoisa_tadd(core, &a, &a, &b);
    return memory[63];
}
END
cat > shim.c << 'END'
#include "ptoisa_shim.h"
#include "ptoisa_shim.h"
#include "shim.h"
int main(void) {
    ptoisa_core core;
    _Alignas(32) float memory[128];
    for (int i = 0; i < 128; i++) {
        memory[i] = (float)i;
    }
    ptoisa_core_init(&core, PTOISA_MODEL_UNIT, NULL);
    return add(&core, memory) == 190 && ptoisa_cycles(&core) == 64 ? 0 : 1;
}
END
cat > shim_kernel.cpp << 'END'
#include "ptoisa_shim.h"
using namespace pto;
AICORE void kernel(float *out);
AICORE void kernel(float *out) {
    Tile<TileType::Vec, float, 8, 8> a, b;
    TASSIGN(a, 0x0);
    TASSIGN(b, 0x100);
    TADD(a, a, b);
    *out = a.GetValue(63);
}
END
cat > shim_main.cpp << 'END'
#define PTOWSP_STATIC
#include "ptowsp.h"
#include "ptoisa_shim.h"
#include "use.h"
#include "shim.h"
void kernel(float *out);
int main() {
    pto::Tile<pto::TileType::Vec, float, 16, 8> tiles;
    pto::TASSIGN(tiles, 0);
    for (uint32_t i = 0; i < 128; i++) {
        tiles.SetValue(i, (float)i);
    }
    float out = 0;
    kernel(&out);
    return use() == 3 && out == 190 && ptoisa_cycles(&ptoisa_this_core()) == 64 ? 0 : 1;
}
END
$CC -std=c11 $W -O1 shim.c -o shim_c
./shim_c || fail "the shim in C"
$CXX -std=c++17 $W -O1 shim_main.cpp shim_kernel.cpp -o shim_cpp -pthread
./shim_cpp || fail "the shim in C++"
# Without threads, no pthread symbol is wanted: the text of ptowsp.c, with macros expanded, has none.
$CC -std=c11 $W -DPTOWSP_NO_THREADS -fsyntax-only ptowsp.c
for option in "" -DPTOWSP_NO_THREADS; do
    $CC -std=c11 -E $option ptowsp.c | awk '
        /^# [0-9]+ "/ { is_ours = $3 ~ /ptowsp\.[ch]"$/; next }
        is_ours && /pthread/ { count++ }
        END { print count + 0 }' > "pthreads$option"
done
[ "$(cat pthreads)" -gt 0 ] || fail "the use of pthreads is not found"
[ "$(cat pthreads-DPTOWSP_NO_THREADS)" = 0 ] || fail "PTOWSP_NO_THREADS uses pthreads"
# An assertion of the user's, qualifiers, and linkage: functions that nobody calls then cost nothing.
cat > custom.c << 'END'
#include <stdio.h>
#include <stdlib.h>
#define PTOWSP_ASSERT(x) ((x) ? (void)0 : (puts("my assertion"), exit(7)))
#define PTOWSP_AICPU __attribute__((cold))
#define PTOWSP_GM
#define PTOWSP_API static __attribute__((unused))
#define PTOWSP_IMPLEMENTATION
#include "ptowsp.h"
int main(void) {
    const int64_t sizes[] = {2};
    ptowsp_space space;
    ptowsp_space_make(sizes, 1, &space);
    int64_t coord[1] = {5};
    return (int)ptowsp_space_index(&space, coord);  // out of its size: exits with 7
}
END
$CC -std=c11 -O1 custom.c -o custom -pthread
nm -g --defined-only custom | grep ptowsp_ && fail "PTOWSP_API is not used"
set +e
./custom > custom.txt
[ $? = 7 ] || fail "PTOWSP_ASSERT is not used"
set -e
grep -q "my assertion" custom.txt || fail "PTOWSP_ASSERT is not used"

# The emitter: a third file, in C and C++, beside the library in two files or in header mode.
cat > emit.h << 'END'
// Emits a program of one slot to a callback; returns the number of files.
static ptowsp_status count(void *user, const char *path, const char *text, size_t size) {
    uint32_t *number = (uint32_t *)user;
    *number += path[0] && text[size] == 0;
    return PTOWSP_OK;
}
static inline uint32_t emit(void) {
    uint32_t number = 0;
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    ptowsp_context_create(NULL, &context);
    ptowsp_module_create(context, NULL, &m);
    PTOWSP_WORKLOAD(m, "w") {
        ptowsp_slot_set_make(m, 0, ptowsp_i64(m, 1));
    }
    if (ptowsp_program_create(context, m, NULL, &program) == PTOWSP_OK) {
        ptowsp_npu_emit_files(context, program, count, &number);
        ptowsp_program_destroy(program);
    }
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
    return number;
}
END
cat > emit_main.c << 'END'
#include "ptowsp.h"
#include "emit.h"
int main(void) {
    return emit() > 20 ? 0 : 1;
}
END
cp emit_main.c emit_main.cpp
$CC -std=c11 $W -fsyntax-only ptowsp_npu_emit.c
$CC -std=c11 $W emit_main.c "$BUILT/ptowsp.o" "$BUILT/ptowsp_npu_emit.o" -o emit_c -pthread -ldl
./emit_c || fail "the emitter in C"
$CXX -std=c++17 $W -x c++ -c ptowsp_npu_emit.c -o emit_cpp.o
$CXX -std=c++17 $W emit_main.cpp implementation_cpp.o emit_cpp.o -o emit_cpp -pthread -ldl
./emit_cpp || fail "the emitter in C++, and header mode"

# What the library exports, and that it has no writable globals.
for object in "$BUILT/ptowsp.o" "$BUILT/ptowsp_npu_emit.o" "$BUILT/ptowsp_dump.o"; do
    nm -g --defined-only "$object" | awk '$3 !~ /^ptowsp_/ { print; bad = 1 } END { exit bad }' ||
        fail "a symbol without ptowsp_ is exported"
    nm "$object" | awk '$2 ~ /^[bBdDcCgGsS]$/ { print; bad = 1 } END { exit bad }' ||
        fail "writable globals"
done
# Private copies: the emitter has one of its own.
$CC -std=c11 $W -DPTOWSP_STATIC -O1 -c emit_main.c -o emit_main_static.o
$CC -std=c11 $W -DPTOWSP_STATIC -O1 -c ptowsp_npu_emit.c -o emit_static.o
$CC emit_main_static.o emit_static.o -o emit_static -pthread -ldl
./emit_static || fail "the emitter and private copies"
nm -u "$BUILT/ptowsp.o" | grep -E "ptowsp_(npu|dump)" && fail "the library needs the emitter or the reader of dumps"
$CC -std=c11 $W -fsyntax-only ptowsp_dump.c
$CXX -std=c++17 $W -x c++ -fsyntax-only ptowsp_dump.c
# Every function the header declares exists.
$CC -E -P ptowsp.h | tr '\n' ' ' | tr ';' '\n' | awk '
    sub(/.*visibility\("default"\)/, "") && match($0, /ptowsp_[a-z0-9_]+ *\(/) {
        name = substr($0, RSTART, RLENGTH)
        sub(/ *\(/, "", name)
        print name
    }' | sort -u > declared.txt
nm -g --defined-only "$BUILT/ptowsp.o" "$BUILT/ptowsp_npu_emit.o" "$BUILT/ptowsp_dump.o" | awk 'NF == 3 { print $3 }' | sort > defined.txt
[ "$(wc -l < declared.txt)" -gt 20 ] || fail "the header's functions are not found"
comm -23 declared.txt defined.txt | grep . && fail "declared but not defined"
comm -13 declared.txt defined.txt | grep . && fail "defined but not declared"

# Installation: the library that make has built, and nothing compiled again.
version=$(sed -n 's/^#define PTOWSP_VERSION  *"\(.*\)"$/\1/p' ptowsp.h)
installs() {  # WHAT VARIABLE=VALUE...
    make -s -C "$ROOT" BUILD="$BUILT" CC="$CC" "$@" > install.log 2>&1 || { cat install.log; fail "make $*"; }
}
installs install PREFIX="$(pwd)/prefix"
for file in include/ptowsp.h include/ptoisa_shim.h share/ptowsp/ptowsp.c share/ptowsp/ptowsp_npu_emit.c share/ptowsp/ptowsp_dump.c \
    lib/libptowsp.a lib/libptowsp.so "lib/libptowsp.so.$version" lib/pkgconfig/ptowsp.pc; do
    [ -e "prefix/$file" ] || fail "$file is not installed"
done
# Before version 1 the shared library's name has the minor version; nothing has debug information.
case $version in
0.*) abi=${version%.*} ;;
*) abi=${version%%.*} ;;
esac
if command -v readelf > /dev/null; then
    readelf -d prefix/lib/libptowsp.so | grep -qF "[libptowsp.so.$abi]" || fail "the soname is not libptowsp.so.$abi"
    for file in libptowsp.a libptowsp.so; do
        ! readelf -S "prefix/lib/$file" 2> /dev/null | grep -q '\.debug_info' || fail "$file has debug information"
    done
fi
[ "$(readlink prefix/lib/libptowsp.so)" = "libptowsp.so.$abi" ] || fail "libptowsp.so does not lead to its soname"
mkdir installed
cp main.c other.c use.h emit_main.c emit.h installed/
(cd installed && $CC -std=c11 main.c other.c -I../prefix/include ../prefix/lib/libptowsp.a -o fixed -pthread &&
    ./fixed && $CC -std=c11 main.c other.c -I../prefix/include -L../prefix/lib -lptowsp -o shared &&
    LD_LIBRARY_PATH=../prefix/lib ./shared) || fail "use of the installed library"
(cd installed && nm fixed | grep ptowsp_npu && fail "who does not emit has the emitter") || true

# Its pkg-config file, for the shared library and, with --static, for the archive alone.
if command -v pkg-config > /dev/null; then
    export PKG_CONFIG_PATH="$(pwd)/prefix/lib/pkgconfig"
    flags=$(pkg-config --cflags --libs ptowsp)
    case "$flags" in
    *-ldl* | *-pthread*) fail "ptowsp.pc asks users of the shared library for '$flags'" ;;
    *-lptowsp*) ;;
    *) fail "ptowsp.pc says '$flags'" ;;
    esac
    [ "$(pkg-config --modversion ptowsp)" = "$version" ] || fail "ptowsp.pc is of another version"
    mkdir archive
    cp prefix/lib/libptowsp.a archive/
    static=$(pkg-config --define-variable=libdir="$(pwd)/archive" --static --cflags --libs ptowsp)
    case "$static" in
    *-lptowsp*-pthread*-ldl*) ;;
    *) fail "ptowsp.pc says '$static' for static linking" ;;
    esac
    # The flags are words, on purpose.
    # shellcheck disable=SC2086
    (cd installed && $CC -std=c11 emit_main.c $flags -o shared && LD_LIBRARY_PATH=../prefix/lib ./shared &&
        $CC -std=c11 emit_main.c $static -o fixed && ./fixed) || fail "what ptowsp.pc says"
    unset PKG_CONFIG_PATH
fi
installs uninstall PREFIX="$(pwd)/prefix"
[ -z "$(find prefix -type f -o -type l)" ] || fail "uninstall leaves files behind"

# Packagers stage into DESTDIR, which no file mentions, and choose where libraries are.
installs install DESTDIR="$(pwd)/stage" PREFIX=/usr LIBDIR=/usr/lib/some-machine
for file in include/ptowsp.h lib/some-machine/libptowsp.so lib/some-machine/libptowsp.a; do
    [ -e "stage/usr/$file" ] || fail "$file is not staged"
done
pc=stage/usr/lib/some-machine/pkgconfig/ptowsp.pc
grep -qx 'libdir=${prefix}/lib/some-machine' $pc || fail "ptowsp.pc has not LIBDIR: $(cat $pc)"
grep -q "$(pwd)" $pc && fail "ptowsp.pc mentions DESTDIR"
[ -z "$(find stage -path stage/usr/lib/some-machine -prune -o -type f -name 'lib*' -print)" ] ||
    fail "LIBDIR is not honoured"
installs uninstall DESTDIR="$(pwd)/stage" PREFIX=/usr LIBDIR=/usr/lib/some-machine
[ -z "$(find stage -type f -o -type l)" ] || fail "uninstall leaves files behind in DESTDIR"
installs install DESTDIR="$(pwd)/stage" PREFIX=/usr LIBDIR=/lib64
grep -qx 'libdir=/lib64' stage/lib64/pkgconfig/ptowsp.pc || fail "ptowsp.pc has not a LIBDIR outside of PREFIX"

echo "packaging ($CC, $CXX): good"

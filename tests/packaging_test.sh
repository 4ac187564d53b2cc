#!/bin/sh
# The ways to use the two files, each compiled, linked and run: CC, CXX and OUT come from outside.
set -eu
CC=${CC:-cc} CXX=${CXX:-c++} OUT=${OUT:-build/packaging}
W="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Werror"
rm -rf "$OUT"
mkdir -p "$OUT"
ROOT=$(pwd)
cp ptowsp.h ptowsp.c ptoisa_shim.h ptowsp_npu_emit.c "$OUT/"
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
$CC -std=c11 $W main.c other.c ptowsp.c -o two_files -pthread
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
# Static mode: a private copy in each of two files, and nothing exported.
$CC -std=c11 $W -DPTOWSP_STATIC -c main.c -o main_static.o
$CC -std=c11 $W -DPTOWSP_STATIC -c other.c -o other_static.o
$CC main_static.o other_static.o -o static_c -pthread
./static_c || fail "static mode"
nm -g --defined-only other_static.o | grep ptowsp_ && fail "static mode exports"
$CXX -std=c++17 $W -DPTOWSP_STATIC -c other.cpp -o other_static_cpp.o
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
#define PTOWSP_IMPLEMENTATION
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
$CC -std=c11 $W shim.c -o shim_c
./shim_c || fail "the shim in C"
$CXX -std=c++17 $W shim_main.cpp shim_kernel.cpp -o shim_cpp -pthread
./shim_cpp || fail "the shim in C++"
# Without threads, no pthread symbol is wanted.
$CC -std=c11 $W -DPTOWSP_NO_THREADS -c ptowsp.c -o no_threads.o
nm -u no_threads.o | grep pthread && fail "PTOWSP_NO_THREADS uses pthreads"
# An assertion of the user's, and qualifiers.
cat > custom.c << 'END'
#include <stdio.h>
#include <stdlib.h>
#define PTOWSP_ASSERT(x) ((x) ? (void)0 : (puts("my assertion"), exit(7)))
#define PTOWSP_AICPU __attribute__((cold))
#define PTOWSP_GM
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
$CC -std=c11 custom.c -o custom -pthread
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
        ptowsp_slot_set(m, 0, ptowsp_i64(m, 1));
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
$CC -std=c11 $W emit_main.c ptowsp.c ptowsp_npu_emit.c -o emit_c -pthread
./emit_c || fail "the emitter in C"
$CXX -std=c++17 $W -x c++ -c ptowsp_npu_emit.c -o emit_cpp.o
$CXX -std=c++17 $W emit_main.cpp implementation_cpp.o emit_cpp.o -o emit_cpp -pthread
./emit_cpp || fail "the emitter in C++, and header mode"

# What the library exports, and that it has no writable globals.
$CC -std=c11 -O2 -fPIC -c ptowsp.c -o ptowsp.o
$CC -std=c11 -O2 -fPIC -c ptowsp_npu_emit.c -o ptowsp_npu_emit.o
for object in ptowsp.o ptowsp_npu_emit.o; do
    nm -g --defined-only $object | awk '$3 !~ /^ptowsp_/ { print; bad = 1 } END { exit bad }' ||
        fail "a symbol without ptowsp_ is exported"
    nm $object | awk '$2 ~ /^[bBdDcCgGsS]$/ { print; bad = 1 } END { exit bad }' ||
        fail "writable globals"
done
# Private copies: the emitter has one of its own.
$CC -std=c11 $W -DPTOWSP_STATIC -c emit_main.c -o emit_main_static.o
$CC -std=c11 $W -DPTOWSP_STATIC -c ptowsp_npu_emit.c -o emit_static.o
$CC emit_main_static.o emit_static.o -o emit_static -pthread
./emit_static || fail "the emitter and private copies"
nm -u ptowsp.o | grep ptowsp_npu && fail "the library needs the emitter"
# Every function the header declares exists.
$CC -E -P ptowsp.h | tr '\n' ' ' | tr ';' '\n' | awk '
    sub(/.*visibility\("default"\)/, "") && match($0, /ptowsp_[a-z0-9_]+ *\(/) {
        name = substr($0, RSTART, RLENGTH)
        sub(/ *\(/, "", name)
        print name
    }' | sort -u > declared.txt
nm -g --defined-only ptowsp.o ptowsp_npu_emit.o | awk 'NF == 3 { print $3 }' | sort > defined.txt
[ "$(wc -l < declared.txt)" -gt 20 ] || fail "the header's functions are not found"
comm -23 declared.txt defined.txt | grep . && fail "declared but not defined"
comm -13 declared.txt defined.txt | grep . && fail "defined but not declared"

# Installation, and its pkg-config file.
make -s -C "$ROOT" install PREFIX="$(pwd)/prefix" BUILD="$(pwd)/install-build" CC="$CC" > /dev/null
for file in include/ptowsp.h share/ptowsp/ptowsp_npu_emit.c lib/libptowsp.a lib/libptowsp.so lib/pkgconfig/ptowsp.pc; do
    [ -e "prefix/$file" ] || fail "$file is not installed"
done
mkdir installed
cp main.c other.c use.h installed/
(cd installed && $CC -std=c11 main.c other.c -I../prefix/include ../prefix/lib/libptowsp.a -o fixed -pthread &&
    ./fixed && $CC -std=c11 main.c other.c -I../prefix/include -L../prefix/lib -lptowsp -o shared &&
    LD_LIBRARY_PATH=../prefix/lib ./shared) || fail "use of the installed library"
(cd installed && nm fixed | grep ptowsp_npu && fail "who does not emit has the emitter") || true
if command -v pkg-config > /dev/null; then
    flags=$(PKG_CONFIG_PATH=prefix/lib/pkgconfig pkg-config --cflags --libs ptowsp)
    case "$flags" in
    *-lptowsp*) ;;
    *) fail "ptowsp.pc says '$flags'" ;;
    esac
fi
make -s -C "$ROOT" uninstall PREFIX="$(pwd)/prefix" > /dev/null
[ -z "$(find prefix -type f)" ] || fail "uninstall leaves files behind"
echo "packaging ($CC, $CXX): good"

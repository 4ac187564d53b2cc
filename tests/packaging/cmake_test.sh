#!/bin/sh
# Projects that take ptowsp with CMake, configured, built and run: by add_subdirectory, in C and C++,
# with and without the emitter; by FetchContent, as a shared library, in a project without C; and
# installed, as an archive and as a shared library, by find_package and by pkg-config.
# CC, CXX and OUT come from outside. Without cmake it says so and ends well.
set -eu
CC=${CC:-cc} CXX=${CXX:-c++} OUT=${OUT:-build/cmake}
if ! command -v cmake > /dev/null; then
    echo "cmake: skipped, as there is no cmake"
    exit 0
fi
JOBS=$(nproc 2> /dev/null || echo 2)
rm -rf "$OUT"
mkdir -p "$OUT"
ROOT=$(pwd)
cd "$OUT"

fail() {
    echo "cmake ($CC): $*" >&2
    exit 1
}

# build NAME OPTIONS: configures the project NAME and builds it. Only behaviour counts.
build() {
    name=$1
    shift
    CC=$CC CXX=$CXX cmake -S "$name" -B "$name/build" -DPTOWSP="$ROOT" \
        -DCMAKE_C_FLAGS=-O0 -DCMAKE_CXX_FLAGS=-O0 "$@" > "$name.log" 2>&1 &&
        cmake --build "$name/build" --parallel "$JOBS" >> "$name.log" 2>&1 || { cat "$name.log"; fail "$name does not build"; }
    ! grep -q "[Ww]arning" "$name.log" || { cat "$name.log"; fail "$name builds with warnings"; }
}

mkdir subdirectory fetched found
cat > plan.c << 'END'
#include "ptowsp.h"
int main(void) {
    const int32_t lengths[] = {300, 5000};
    ptowsp_batch batch = {lengths, 2, 1};
    ptowsp_work work[3];
    ptowsp_plan_info info;
    return ptowsp_plan_generate(&batch, NULL, 4096, work, 3, &info) == PTOWSP_OK && info.work_count == 3 ? 0 : 1;
}
END
cp plan.c subdirectory/plan.c
cp plan.c subdirectory/plan.cpp
cp plan.c fetched/plan.cpp
cat > subdirectory/emit.c << 'END'
#include "ptowsp.h"
static ptowsp_status take(void *user, const char *path, const char *text, size_t size) {
    *(int *)user += path[0] && text[size] == 0;
    return PTOWSP_OK;
}
int main(void) {
    int count = 0;
    ptowsp_context *context;
    ptowsp_module *m;
    ptowsp_program *program;
    if (ptowsp_context_create(NULL, &context) || ptowsp_module_create(context, NULL, &m)) {
        return 1;
    }
    PTOWSP_WORKLOAD(m, "w") {
        ptowsp_slot_set_make(m, 0, ptowsp_i64(m, 1));
    }
    if (ptowsp_program_create(context, m, NULL, &program) || ptowsp_npu_emit_files(context, program, take, &count)) {
        return 1;
    }
    ptowsp_program_destroy(program);
    ptowsp_module_destroy(m);
    ptowsp_context_destroy(context);
    return count > 20 ? 0 : 1;
}
END
cat > subdirectory/CMakeLists.txt << 'END'
cmake_minimum_required(VERSION 3.14)
project(consumer LANGUAGES C CXX)
add_subdirectory(${PTOWSP} ptowsp)
add_executable(plan_c plan.c)
add_executable(plan_cpp plan.cpp)
add_executable(emit emit.c)
target_link_libraries(plan_c PRIVATE ptowsp::ptowsp)
target_link_libraries(plan_cpp PRIVATE ptowsp::ptowsp)
target_link_libraries(emit PRIVATE ptowsp::ptowsp_emit)
END
cat > fetched/CMakeLists.txt << 'END'
cmake_minimum_required(VERSION 3.14)
project(consumer LANGUAGES CXX)
include(FetchContent)
FetchContent_Declare(ptowsp SOURCE_DIR ${PTOWSP})
FetchContent_MakeAvailable(ptowsp)
add_executable(plan_cpp plan.cpp)
target_link_libraries(plan_cpp PRIVATE ptowsp::ptowsp)
END

cp plan.c subdirectory/emit.c found/
cat > found/CMakeLists.txt << 'END'
cmake_minimum_required(VERSION 3.14)
project(consumer LANGUAGES C CXX)
set(NOT_USED "${PTOWSP}")
find_package(ptowsp 0.2 REQUIRED)
add_executable(plan_c plan.c)
add_executable(emit emit.c)
target_link_libraries(plan_c PRIVATE ptowsp::ptowsp)
target_link_libraries(emit PRIVATE ptowsp::ptowsp_emit)
END

build subdirectory
for program in plan_c plan_cpp emit; do
    "subdirectory/build/$program" || fail "$program of subdirectory"
done

build fetched -DBUILD_SHARED_LIBS=ON
fetched/build/plan_cpp || fail "plan_cpp of fetched"
[ -z "$(find fetched/build -name '*npu_emit*.o')" ] || fail "the emitter is compiled, though nothing emits"
version=$(sed -n 's/^#define PTOWSP_VERSION  *"\(.*\)"$/\1/p' "$ROOT/ptowsp.h")
library=$(find fetched/build -name "libptowsp.so.$version")
[ -n "$library" ] || fail "the shared library has not the version of ptowsp.h, $version"
nm -D --defined-only "$library" | awk '$3 !~ /^ptowsp_/ { print; bad = 1 } END { exit bad }' ||
    fail "a symbol without ptowsp_ is exported"
cmake --install fetched/build --prefix "$(pwd)/nothing" > nothing.log 2>&1 || { cat nothing.log; fail "installing nothing"; }
[ -z "$(find nothing -type f 2> /dev/null)" ] || fail "a project that fetches it installs it"

# Installed where nobody looks by himself. The prefix is moved, as a package's is; ptowsp.pc names one.
abi=${version%.*}
for kind in static shared; do
    [ $kind = shared ] && is_shared=ON || is_shared=OFF
    prefix=$(pwd)/$kind
    CC=$CC cmake -S "$ROOT" -B "built-$kind" -DBUILD_SHARED_LIBS=$is_shared -DCMAKE_INSTALL_LIBDIR=lib \
        -DCMAKE_C_FLAGS_RELEASE=-O0 -DCMAKE_INSTALL_PREFIX="$prefix" > "$kind.log" 2>&1 &&
        cmake --build "built-$kind" --parallel "$JOBS" >> "$kind.log" 2>&1 &&
        cmake --install "built-$kind" >> "$kind.log" 2>&1 || { cat "$kind.log"; fail "$kind is not installed"; }
    for file in include/ptowsp.h include/ptoisa_shim.h share/ptowsp/ptowsp.c share/ptowsp/ptowsp_npu_emit.c share/ptowsp/ptowsp_dump.c \
        lib/cmake/ptowsp/ptowsp-config.cmake lib/cmake/ptowsp/ptowsp-config-version.cmake lib/pkgconfig/ptowsp.pc; do
        [ -e "$prefix/$file" ] || fail "$kind: $file is not installed"
    done
    [ $kind = static ] || [ "$(readlink "$prefix/lib/libptowsp.so")" = "libptowsp.so.$abi" ] ||
        fail "the soname has not major and minor version"
    # The flags are words, on purpose.
    # shellcheck disable=SC2086,SC2046
    if command -v pkg-config > /dev/null; then
        [ $kind = shared ] && option= || option=--static
        flags=$(PKG_CONFIG_PATH="$prefix/lib/pkgconfig" pkg-config $option --cflags --libs ptowsp)
        $CC -std=c11 found/emit.c $flags -o "emit-$kind" && LD_LIBRARY_PATH="$prefix/lib" "./emit-$kind" ||
            fail "ptowsp.pc of the $kind library says '$flags'"
    fi
    mv "$kind" "moved-$kind"
    rm -rf found/build
    build found -DCMAKE_PREFIX_PATH="$(pwd)/moved-$kind"
    for program in plan_c emit; do
        "found/build/$program" || fail "$program with the $kind library"
    done
done
sed 's/find_package(ptowsp 0.2/find_package(ptowsp 0.9/' found/CMakeLists.txt > wrong.txt
mkdir other_version
cp found/*.c other_version/
mv wrong.txt other_version/CMakeLists.txt
! CC=$CC cmake -S other_version -B other_version/build -DCMAKE_PREFIX_PATH="$(pwd)/moved-static" > other.log 2>&1 ||
    fail "version 0.9 is found"
grep -q 'requested version "0.9"' other.log || { cat other.log; fail "version 0.9 is not refused"; }
echo "cmake ($CC, $CXX): good"

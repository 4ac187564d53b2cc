#!/bin/sh
# The parts of the library (section 1 of ptowsp.h), by macro and as pairs of files of their own: each
# compiles without warnings as C and as C++, runs the header's own programs, exports and needs what it
# should, and declares nothing that it does not have. Prints what compiling at -O2 takes.
#
#   sh tests/packaging/parts_test.sh          every compiler that is there
#   COMPILERS=gcc sh tests/packaging/parts_test.sh
set -eu
cd "$(dirname "$0")/../.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
root=$PWD

WARNINGS="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wcast-qual -Werror"
: "${COMPILERS:=gcc clang}"

fail() {
    echo "parts: $1" >&2
    exit 1
}

# The n-th program of the header and what it prints.
program() {
    awk -v n="$1" '
    /^\/\/ [0-9]\. [A-Z ]+: / { at = $2 + 0; printed = 0 }
    /^\/\/ It prints:/ { if (at == n) printed = 1; next }
    /^\/\/ CONTENTS/ { at = 0 }
    at == n && /^\/\/    / && !printed { print substr($0, 7) }
    ' ptowsp.h
}
printed() {
    awk -v n="$1" '
    /^\/\/ [0-9]\. [A-Z ]+: / { at = $2 + 0; printed = 0 }
    /^\/\/ It prints:/ { if (at == n) printed = 1; next }
    /^\/\/ CONTENTS/ { at = 0 }
    at == n && printed && /^\/\/    / { print substr($0, 7) }
    ' ptowsp.h
}

# A program that merges two halves of a softmax, dispatches on the calling thread, and runs a plan.
cat > "$tmp/merge.c" <<'PROGRAM'
#include "ptowsp.h"
#include <stdio.h>
static void count(const ptowsp_work *work, uint32_t lane, void *user) {
    int *units = (int *)user;
    *units += lane == 0 && ptowsp_work_kv_len(work) > 0;
}
int main(void) {
    ptowsp_context *context;
    ptowsp_partial halves[2] = {{1, 2}, {1, 2}};
    float acc[2] = {2, 6}, out = 0;
    if (ptowsp_context_create(NULL, &context)) return 1;
    ptowsp_merge_partials(halves, acc, 2, 1, 1, &out);
    const ptowsp_work_fn table[] = {count};
    ptowsp_work work[3];
    int units = 0;
    for (uint32_t i = 0; i < 3; i++) {
        work[i] = ptowsp_work_of(i, 0, 0, i, 0, 0, 8);
    }
    if (ptowsp_dispatch_spmd(context, work, 3, table, 1, &units)) return 1;
    ptowsp_work merge = ptowsp_work_of(0, 0, 0, 0, 0, 0, 2);
    uint32_t unit_begin[] = {0, 2, 3}, progress[256] = {0};
    ptowsp_attention_plan plan = {0};
    ptowsp_attention_job job = {&plan, table, 1, count, &units, progress, true};
    work[2].work_id = PTOWSP_NO_SLOT;
    plan.units = work;
    plan.merges = &merge;
    plan.unit_begin = unit_begin;
    plan.unit_count = plan.unit_capacity = 3;
    plan.merge_count = plan.merge_capacity = 1;
    plan.lane_count = 2;
    if (ptowsp_attention_progress_size(&plan) > 256) return 1;
    if (ptowsp_attention_run(context, &job) || ptowsp_attention_run_serial(&job, NULL)) return 1;
    ptowsp_attention_run_worker(&job, 0, 2);  // steals all
    ptowsp_attention_run_worker(&job, 1, 2);
    ptowsp_context_destroy(context);
    printf("%g of %d\n", out, units);
    return 0;
}
PROGRAM
echo "2 of 15" > "$tmp/merge.out"  # 3 dispatched; 3 units and a merge, three times

# Threads that a context would own are refused where there are none.
cat > "$tmp/threads.c" <<'PROGRAM'
#include "ptowsp.h"
#include <stdio.h>
int main(void) {
    static ptowsp_context_desc desc;
    ptowsp_context *context;
    desc.threads = PTOWSP_THREADS_OWN;
    printf("%s\n", ptowsp_status_name(ptowsp_context_create(&desc, &context)));
    return 0;
}
PROGRAM
echo "UNSUPPORTED" > "$tmp/threads.out"

for n in 1 2 4 5; do
    program $n > "$tmp/path$n.c"
    printed $n > "$tmp/path$n.out"
    [ -s "$tmp/path$n.c" ] && [ -s "$tmp/path$n.out" ] || fail "program $n of ptowsp.h is not found"
done

# Compiles and runs a program: compiler, standard, options, directory, program, libraries.
run() {
    cat "$tmp/$5.c" > "$tmp/$5.run.$6"
    # shellcheck disable=SC2086
    $1 $2 $3 -O0 -I"$4" "$tmp/$5.run.$6" "$tmp/part.o" -o "$tmp/run" $7
    "$tmp/run" > "$tmp/got" || fail "$5 fails ($1 $3)"
    cmp -s "$tmp/got" "$tmp/$5.out" || fail "$5 prints $(cat "$tmp/got") ($1 $3)"
}

# Checks one way to have a part: its name, macro, directory, programs, libraries.
check() {
    part=$1 macro=$2 dir=$3 programs=$4 libraries=$5
    for compiler in $COMPILERS; do
        command -v "$compiler" > /dev/null || continue
        plus=$(echo "$compiler" | sed 's/gcc/g++/; s/clang/clang++/')
        for language in c cpp; do
            case $language in
            c) with=$compiler std="-std=c11" as="-x c" ;;
            *) with=$plus std="-std=c++17" as="-x c++" ;;
            esac
            # shellcheck disable=SC2086
            $with $std $WARNINGS $macro -O0 -I"$dir" -c $as "$dir/ptowsp.c" -o "$tmp/part.o" ||
                fail "$part: ptowsp.c does not compile ($with)"
            for name in $programs; do
                run "$with" "$std" "$macro" "$dir" "$name" $language "$libraries"
            done
            # In header mode: in C by the macro, in C++ as a pair of files.
            case $language$macro in c-D* | cpp) ;; *) continue ;; esac
            { echo "#define PTOWSP_IMPLEMENTATION" && cat "$tmp/${programs%% *}.c"; } > "$tmp/in.$language"
            # shellcheck disable=SC2086
            $with $std $WARNINGS $macro -O0 -I"$dir" "$tmp/in.$language" -o "$tmp/run" $libraries ||
                fail "$part: header mode does not compile ($with)"
            "$tmp/run" | cmp -s - "$tmp/${programs%% *}.out" || fail "$part: header mode prints otherwise"
        done
    done
}

# What an object exports, and what it needs.
symbols() {
    part=$1 object=$2 forbidden=$3
    foreign=$(nm -g --defined-only "$object" | awk '$3 !~ /^ptowsp_/ { print $3 }')
    [ -z "$foreign" ] || fail "$part exports $foreign"
    writable=$(nm "$object" | awk '$2 ~ /^[BbCDdGgSs]$/ { print $3 }')
    [ -z "$writable" ] || fail "$part has writable globals: $writable"
    needed=$(nm -u "$object" | awk '{ print $NF }' | grep -E "^($forbidden)" || true)
    [ -z "$needed" ] || fail "$part needs $needed"
}

# A function that the part has not is not declared: part, macro, directory, call.
absent() {
    printf '#include "ptowsp.h"\nint main(void) { return %s != 0; }\n' "$4" > "$tmp/absent.c"
    # shellcheck disable=SC2086
    if gcc -std=c11 $2 -I"$3" -Werror=implicit-function-declaration -fsyntax-only "$tmp/absent.c" \
        2> /dev/null; then
        fail "$1 declares $4"
    fi
    # shellcheck disable=SC2086
    gcc -std=c11 -I"$root" -Werror=implicit-function-declaration -fsyntax-only "$tmp/absent.c" ||
        fail "$4 is not declared by the whole library either"
}

seconds() {
    # shellcheck disable=SC2086
    LC_ALL=C bash -c "TIMEFORMAT=%U; time gcc -std=c11 -O2 $1 -I$2 -c $2/ptowsp.c -o $3" 2>&1
}

for part in attention plan no-tiles; do
    tools/amalgamate.sh --part $part "$tmp/$part"
done
LIBM='(exp|log|pow|sqrt|sin|cos|tan|tanh|fma|floor|ceil|round|rint|trunc|fmod|ldexp|frexp)[fl]?$'

# measured PART LIBRARIES-IT-MUST-NOT-NEED: the pair of files, as users compile it.
measured() {
    took=$(seconds "" "$tmp/$1" "$tmp/$1.o")
    symbols "$1" "$tmp/$1.o" "$2"
    echo "$1: $took s at -O2, $(wc -c < "$tmp/$1.o") bytes of object, $(wc -c < "$tmp/$1/ptowsp.c") of" \
        "ptowsp.c, $(wc -c < "$tmp/$1/ptowsp.h") of ptowsp.h"
}

for way in "attention -DPTOWSP_ONLY_ATTENTION $root" "attention  $tmp/attention" \
    "plan -DPTOWSP_ONLY_PLAN $root" "plan  $tmp/plan"; do
    dir=${way##* } part=${way%% *} macro=${way#* } && macro=${macro% *}
    check "$part" "$macro" "$dir" "path1 merge threads" ""
    absent "$part" "$macro" "$dir" "ptowsp_module_create(0, 0, 0)"
    absent "$part" "$macro" "$dir" "ptowsp_graph_create(0, 0, 0)"
    absent "$part" "$macro" "$dir" "ptowsp_moe_routes_generate(0, 0, 0, 0)"
    absent "$part" "$macro" "$dir" "ptowsp_dtype_size(PTOWSP_F32)"
    if [ "$part" = attention ]; then
        absent "$part" "$macro" "$dir" "ptowsp_moe_scratch_bytes(0)"
        absent "$part" "$macro" "$dir" "ptowsp_prefix_tree_bytes(0)"
    fi
done
for way in "-DPTOWSP_NO_TILES $root" " $tmp/no-tiles"; do
    macro=${way% *} dir=${way##* }
    check no-tiles "$macro" "$dir" "path2 path1 path4 path5 merge" "-pthread"
    absent no-tiles "$macro" "$dir" "ptowsp_kernel_begin(0, 0)"
    absent no-tiles "$macro" "$dir" "ptowsp_npu_emit(0, 0, 0)"
done

measured attention "pthread_|sem_|dl|$LIBM"
measured plan "pthread_|sem_|dl|$LIBM"
measured no-tiles "$LIBM"
for limit in "attention 614400" "plan 839680"; do  # attention kernels are 238 KiB of each
    part=${limit% *} bytes=$(wc -c < "$tmp/${limit% *}/ptowsp.c")
    [ "$bytes" -le "${limit#* }" ] || fail "$part: ptowsp.c has $bytes bytes, more than ${limit#* }"
done
lines=$(cat "$tmp/plan/ptowsp.h" "$tmp/plan/ptowsp.c" | wc -l)
[ "$lines" -le 20000 ] || fail "plan has $lines lines, more than 20,000"
! grep -o 'ptoisa_[a-z0-9_]*' "$tmp/no-tiles/ptowsp.c" | grep -qv '^ptoisa_shim$' || fail "no-tiles has instructions"  # texts name the file
echo "parts: ok"

#!/bin/sh
# The programs in the comments of ptowsp.h, at its beginning and in sections: each has at most 25 lines, compiles as C11 and as
# C++17 with gcc and clang without warnings, and prints what the comment states.
#
#   tests/header_programs_test.sh LIBRARY [OUT]      a static library with the emitter; a directory
set -eu
[ $# -ge 1 ] || { echo "usage: tests/header_programs_test.sh LIBRARY [OUT]" >&2; exit 2; }
ROOT=$(cd "$(dirname "$0")/.." && pwd)
LIBRARY=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
OUT=${2:-$(dirname "$1")/header_programs}
PROGRAMS=7
rm -rf "$OUT"
mkdir -p "$OUT"
cd "$OUT"

fail() {
    echo "header programs: $*" >&2
    exit 1
}

# A program goes from its first #include to "It prints:", its output from there to the next text; both
# are indented by four columns.
awk '
    /^\/\/    #include "ptowsp.h"$/ { number++; mode = "program"; lines = 0 }
    /^\/\/ It prints:$/ { mode = "output"; next }
    (/^\/\/ [^ ]/ || !/^\/\//) && mode == "output" { mode = "" }
    mode == "program" && /^\/\/($|    )/ { sub(/^\/\/(    )?/, ""); print > ("program" number ".c") }
    mode == "output" && /^\/\/    / { sub(/^\/\/    /, ""); print > ("program" number ".expected") }
' "$ROOT/ptowsp.h"

number=0
for program in program*.c; do
    number=$((number + 1))
    lines=$(sed '${/^$/d}' "$program" | wc -l)
    [ "$lines" -le 25 ] || fail "$program has $lines lines"
    [ -s "program$number.expected" ] || fail "program$number states no output"
    cp "$program" "${program}pp"
    for compiler in gcc clang g++ clang++; do
        case $compiler in
        *++) source=${program}pp standard=c++17 ;;
        *) source=$program standard=c11 ;;
        esac
        $compiler -std=$standard -Wall -Wextra -Wpedantic -Werror -I"$ROOT" "$source" "$LIBRARY" -o program -pthread -lm -ldl ||
            fail "$source does not compile with $compiler"
        rm -f printed
        ./program > printed || fail "$source fails with $compiler"
        cmp printed "program$number.expected" || fail "$source prints $(cat printed)"
    done
done
[ $number -eq $PROGRAMS ] || fail "$number programs are found, not $PROGRAMS"
[ -s scale_npu/aicpu/expand.cpp ] || fail "no tree was emitted"
echo "header programs: good"

#!/bin/sh
# The programs in the comments of ptowsp.h, at its beginning and in sections: each has at most 25 lines, compiles as C11 and as
# C++17 with gcc and clang without warnings, and prints what the comment states. The other pieces of code in comments compile as
# C11 without warnings and run, each in its place in header_snippets.c. The code has no names that C or C++ reserves.
#
#   tests/packaging/header_programs_test.sh LIBRARY [OUT]      a static library with the emitter; a directory
set -eu
[ $# -ge 1 ] || { echo "usage: tests/packaging/header_programs_test.sh LIBRARY [OUT]" >&2; exit 2; }
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
LIBRARY=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
OUT=${2:-$(dirname "$1")/header_programs}
PROGRAMS=8
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

# Piece n of section s goes to s_n.inc: paragraphs indented by six columns that call the library, other than tables of macros.
awk '
    function finish(   i) {
        if (has_statement && has_call && !is_table) {
            name = section "_" ++pieces[section] ".inc"
            for (i = 1; i <= count; i++) print line[i] > name
            close(name)
            print name > "pieces"
        }
        count = has_statement = has_call = is_table = 0
    }
    /^\/\/ [1-9][0-9]*\. [A-Z]/ { section = $2; sub(/\..*/, "", section) }
    /^\/\/      / && (count || (is_after_blank && /^\/\/      [^ ]/)) {
        line[++count] = substr($0, 9)
        if (/;( *\/\/.*)?$/) has_statement = 1
        if (/ptowsp_|PTOWSP_/) has_call = 1
        if (/\{\}   /) is_table = 1
        next
    }
    { finish(); is_after_blank = /^\/\/$/ }
    END { finish() }
' "$ROOT/ptowsp.h"
sed -n 's/^#include "\(.*\.inc\)"$/\1/p' "$ROOT/tests/packaging/header_snippets.c" | sort > included
sort -o pieces pieces
cmp pieces included || fail "the pieces of code are $(tr '\n' ' ' < pieces), and header_snippets.c has others"
for compiler in gcc clang; do
    $compiler -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$ROOT" -I. "$ROOT/tests/packaging/header_snippets.c" "$LIBRARY" -o snippets \
        -pthread -lm -ldl || fail "a piece of code does not compile with $compiler"
    ./snippets || fail "a piece of code fails with $compiler"
done

# Names are reserved that begin with an underscore and a capital, or have two underscores: only the compiler's are used.
sed 's:"[^"]*"::g; s://.*::; s:/\*.*\*/::; s:##::g' "$ROOT/ptowsp.h" | grep -oE '[A-Za-z_0-9]+' | sort -u | grep -E '^_[A-Z]|__' |
    grep -vE '^__(cplusplus|clang__|attribute__|VA_ARGS__|LINE__|GNUC__|STDC_VERSION__)$' |
    grep -vE '^_(Static_assert|Alignas|Pragma)$' > reserved || true
[ ! -s reserved ] || fail "reserved names: $(tr '\n' ' ' < reserved)"
echo "header programs: good"

#!/bin/sh
# README's programs, with each compiler, as C and as C++: they compile and print what README says.
# BUILD has libptowsp.a; OUT is for what is made.
set -eu
OUT=${OUT:-build/readme}
mkdir -p "$OUT"
XDG_CACHE_HOME=$(cd "$OUT" && pwd)/cache
export XDG_CACHE_HOME

# Each program is followed by what it prints.
[ "$(grep -c '^```c$' README.md)" = 6 ] || { echo "README has another number of programs than 6" >&2; exit 1; }
for number in 1 2 3 4 5 6; do
    awk -v want=$number -v program="$OUT/readme.c" -v text="$OUT/readme.expected" '
        /^```c$/ { block++; mode = block == want ? "program" : ""; next }
        /^```/ { if (mode == "text") exit; mode = mode == "program" ? "between" : mode == "between" ? "text" : ""; next }
        mode == "program" { print > program }
        mode == "text" { print > text }' README.md
    # PTOWSP_IMPLEMENTATION would compile the library for each of them.
    sed '/#define PTOWSP_IMPLEMENTATION/d' "$OUT/readme.c" > "$OUT/readme_linked.c"
    for compiler in "gcc -std=c11" "clang -std=c11" "g++ -x c++ -std=c++17" "clang++ -x c++ -std=c++17"; do
        $compiler -Wall -Wextra -Werror -I. "$OUT/readme_linked.c" -x none "$BUILD/libptowsp.a" \
            -o "$OUT/readme" -pthread -ldl -lm
        "$OUT/readme" > "$OUT/readme.txt"
        cmp "$OUT/readme.txt" "$OUT/readme.expected" || {
            echo "README's program $number, by $compiler, prints $(cat "$OUT/readme.txt")" >&2
            exit 1
        }
    done
done

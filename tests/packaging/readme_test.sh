#!/bin/sh
# README's snippets, with each C compiler: they compile inside a main and print the lines that follow
# them. The second one has what its sentence says: a module, a context and two kernels.
# BUILD has libptowsp.a; OUT is for what is made.
set -eu
OUT=${OUT:-build/readme}
mkdir -p "$OUT"

[ "$(wc -l < README.md)" -le 120 ] || { echo "README has more than 120 lines" >&2; exit 1; }
[ "$(grep -c '^```c$' README.md)" = 2 ] || { echo "README has another number of snippets than 2" >&2; exit 1; }

before() {
    echo '#include "ptowsp.h"'
    echo '#include <stdio.h>'
    echo '#include <stdlib.h>'
    [ "$1" = 2 ] && cat << 'END'
static bool print(void *user, const void *data, size_t size) {
    return fwrite(data, 1, size, (FILE *)user) == size;
}
END
    echo 'int main(void) {'
    [ "$1" = 2 ] && cat << 'END'
ptowsp_context *context;
ptowsp_module *m;
ptowsp_program *program;
ptowsp_run *run;
ptowsp_output output = {print, stdout};
ptowsp_context_create(NULL, &context);
ptowsp_module_create(context, NULL, &m);
ptowsp_kernel attend = ptowsp_kernel_make(m, &(ptowsp_kernel_desc){.name = "attend", .axis_count = 2, .cycles = 2000});
ptowsp_kernel merge = ptowsp_kernel_make(m, &(ptowsp_kernel_desc){.name = "merge", .axis_count = 1, .cycles = 150});
END
    true
}

for number in 1 2; do
    before $number > "$OUT/readme.c"
    awk -v want=$number -v program="$OUT/readme.c" -v text="$OUT/readme.expected" '
        /^```c$/ { block++; mode = block == want ? "program" : ""; next }
        /^```/ { if (mode == "text") exit; mode = mode == "program" ? "between" : mode == "between" ? "text" : ""; next }
        mode == "program" { print >> program }
        mode == "text" { print > text }' README.md
    echo '}' >> "$OUT/readme.c"
    for compiler in gcc clang; do
        $compiler -std=c11 -Wall -Wextra -Werror -I. "$OUT/readme.c" "$BUILD/libptowsp.a" -o "$OUT/readme" -pthread -ldl -lm
        "$OUT/readme" > "$OUT/readme.txt"
        # Of a report README has the first lines.
        head -n "$(wc -l < "$OUT/readme.expected")" "$OUT/readme.txt" | cmp - "$OUT/readme.expected" || {
            echo "README's snippet $number, by $compiler, prints $(cat "$OUT/readme.txt")" >&2
            exit 1
        }
    done
done

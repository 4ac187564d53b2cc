#!/bin/sh
# Every function of ptowsp.h with NULL for its pointers, and with zeroed descriptions: an assertion or
# a status, never a crash.
#
#      tests/null_test.sh ARCHIVE [DIRECTORY]      ARCHIVE: with the library and the emitter
#
# A program is made from the declarations: a call of each function with NULL and zeros, one with a
# context, module, program and run where it takes them, and one where all other pointers lead to zeros;
# each in a process of its own.
set -eu
cd "$(dirname "$0")/.."
archive=$1
out=${2:-$(mktemp -d)}
CC=${CC:-cc}
mkdir -p "$out"

# Declarations, one on a line, without comments; macros and functions with "..." are not called.
sed 's|//.*||; s/PTOWSP_NPU_API/PTOWSP_API/' ptowsp.h | tr '\n' ' ' | sed 's/PTOWSP_API/\n&/g' |
    sed -n 's/^PTOWSP_API *\([^;{}]*)\) *;.*/\1/p' |
    sed 's/PTOWSP_AICORE//; s/PTOWSP_GM//g; s/PWSP_PRINTF([^)]*)//; s/  */ /g; s/ \*/*/g; s/\* */*/g' |
    grep -v '\.\.\.' | grep '(' > "$out/declarations"

awk '
function trim(s) { sub(/^ +/, "", s); sub(/ +$/, "", s); return s }
BEGIN {
    good["ptowsp_context*"] = good["const ptowsp_context*"] = "context"
    good["ptowsp_module*"] = good["const ptowsp_module*"] = "module"
    good["const ptowsp_program*"] = "program"
    good["ptowsp_run*"] = good["const ptowsp_run*"] = "run"
}
{
    match($0, /ptowsp_[a-z0-9_]+\(/)
    # A type may be named like that, but is not followed by a parenthesis.
    type = trim(substr($0, 1, RSTART - 1)); name = substr($0, RSTART, RLENGTH - 1)
    list = substr($0, RSTART + RLENGTH); sub(/\)[^)]*$/, "", list)
    for (is_good = 0; is_good < 3; is_good++) {
        count = split(list, params, ","); vars = ""; args = ""; has = 0
        for (i = 1; i <= count; i++) {
            p = trim(params[i])
            if (p == "" || p == "void") continue
            is_pointer = p ~ /[*\[]/
            base = p; sub(/[a-z_0-9]+(\[[^]]*\])?$/, "", base); base = trim(base)
            if (is_pointer || base ~ /_fn$/) {
                arg = is_good && base in good ? good[base] : "NULL"
                opaque = base ~ /ptowsp_(program|graph|device|hub|ranks|tuning|npu|body)\*$/
                if (is_good == 2 && arg == "NULL" && !opaque && base !~ /_fn$/ && p !~ /\(/)
                    arg = "(void *)zeros"
                has += arg != "NULL"
            } else {
                vars = vars "static " base " v" i "; "; arg = "v" i
            }
            args = args (args == "" ? "" : ", ") arg
        }
        if (is_good && !has) continue
        printf "static void call%d(void) { %s(void)%s(%s); }\n", n, vars, name, args
        rows = rows "    {\"" name "\", " is_good ", call" n++ "},\n"
    }
}
END { print "static const struct { const char *name; int is_good; void (*call)(void); } calls[] = {"
      printf "%s};\n", rows }' "$out/declarations" > "$out/calls.h"

cat > "$out/null.c" << 'END'
#define _POSIX_C_SOURCE 200809L
#include "ptowsp.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
static ptowsp_context *context;
static ptowsp_module *module;
static ptowsp_program *program;
static ptowsp_run *run;
static _Alignas(64) char zeros[1 << 20];
#include "calls.h"
int main(void) {
    int crashes = 0, asserted = 0, count = (int)(sizeof calls / sizeof calls[0]);
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    if (ptowsp_context_create(NULL, &context) || ptowsp_module_create(context, NULL, &module)) return 2;
    PTOWSP_WORKLOAD(module, "empty") {}
    if (ptowsp_program_create(context, module, NULL, &program) ||
        ptowsp_run_create(context, program, &run)) return 2;
    for (int i = 0; i < count; i++) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            close(2);
            calls[i].call();
            _exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        int signalled = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        asserted += signalled == SIGABRT;
        if (signalled && signalled != SIGABRT) {
            printf("null_test: %s, %s: signal %d\n", calls[i].name,
                   calls[i].is_good == 0   ? "all NULL"
                   : calls[i].is_good == 1 ? "other pointers NULL"
                                           : "zeros",
                   signalled);
            crashes++;
        }
    }
    printf("null: %d calls, %d asserted, %d crashed\n", count, asserted, crashes);
    return crashes || count < 950;
}
END
$CC -std=c11 -w -O0 -I. -I"$out" "$out/null.c" "$archive" -o "$out/null" -pthread -lm -ldl
XDG_CACHE_HOME="$(cd "$out" && pwd)/cache" CXX=false "$out/null"  # builds nothing

#!/bin/sh
# All sources are as clang-format has them, and the library's files are ASCII.
set -eu
clang-format --dry-run -Werror ptowsp.h \
    $(find src tests examples bench \( -name '*.[ch]' -o -name '*.cpp' \) ! -path 'tests/golden/*')
! grep -nP '[^\x00-\x7f]' ptowsp.h ptowsp.c ptowsp_npu_emit.c ptowsp_dump.c $(find src -type f) || {
    echo "formatting: the library's files are ASCII" >&2
    exit 1
}
echo "formatting: good"

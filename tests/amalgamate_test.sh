#!/bin/sh
# tools/amalgamate.sh refuses what it must: each case is tried in a copy of the tree.
set -eu
COPY=$(mktemp -d)
trap 'rm -rf "$COPY"' EXIT

fresh() {
    rm -rf "$COPY/tree"
    mkdir "$COPY/tree"
    cp -r src tools LICENSE ptowsp.h ptowsp.c ptoisa_shim.h ptowsp_npu_emit.c "$COPY/tree/"
}

# refuses WHAT PATTERN [ARGUMENT]: the script fails, with this text.
refuses() {
    if (cd "$COPY/tree" && tools/amalgamate.sh ${3-} > out.txt 2>&1); then
        echo "amalgamate_test: accepts $1" >&2
        exit 1
    fi
    grep -q "$2" "$COPY/tree/out.txt" || {
        echo "amalgamate_test: $1: said $(cat "$COPY/tree/out.txt")" >&2
        exit 1
    }
}

fresh
(cd "$COPY/tree" && tools/amalgamate.sh --check && tools/amalgamate.sh && cmp ptowsp.c "$OLDPWD/ptowsp.c")
echo '// more' >> "$COPY/tree/src/plan/plan.c"
refuses "a stale ptowsp.c" "does not match" --check
fresh
echo '// a' > "$COPY/tree/src/plan/extra.c"
refuses "an unlisted file" "src/plan/extra.c is not in the list"
fresh
rm "$COPY/tree/src/plan/merge.c"
refuses "a missing file" "src/plan/merge.c is listed but missing"
fresh
printf '// windows\r\n' >> "$COPY/tree/src/plan/plan.c"
refuses "carriage returns" "carriage returns"
fresh
printf 'static int pwsp_queue_take(int a) {\n    return a;\n}\n' >> "$COPY/tree/src/plan/plan.c"
refuses "a function defined twice" "pwsp_queue_take in src/base/context.c and src/plan/plan.c"
fresh
printf 'typedef struct pwsp_queue {\n    int a;\n} pwsp_queue;\n' >> "$COPY/tree/src/plan/plan.c"
refuses "a type defined twice" "pwsp_queue in src/base/context.h and src/plan/plan.c"
fresh
printf '#define PWSP_CUTS 1\n' >> "$COPY/tree/src/plan/plan.c"
refuses "a macro defined twice" "PWSP_CUTS in src/plan/emit.c and src/plan/plan.c"
fresh
sed -i '1i #include "../plan/emit.h"' "$COPY/tree/src/base/pool.c"
refuses "an include of a higher room" "includes ../plan/emit.h, which is not below it"
fresh
cp "$COPY/tree/src/plan/emit.h" "$COPY/tree/src/kernel/emit.h"
sed -i 's#^src/kernel/list.h#src/kernel/emit.h src/kernel/list.h#' "$COPY/tree/tools/amalgamate.sh"
refuses "two headers of one name" "two headers are called emit.h"
fresh
echo '// more' >> "$COPY/tree/ptoisa_shim.h"
refuses "a stale ptoisa_shim.h" "ptoisa_shim.h does not match" --check
fresh
echo '// more' >> "$COPY/tree/src/npu/tree/shim/wsp_clock_core.h"
refuses "a stale clock" "wsp_clock_core.h does not match" --check
fresh
sed -i 's#^src/data/code_range.h$##' "$COPY/tree/tools/amalgamate.sh"
refuses "a clock that lacks a file" "timed.h includes ../data/code_range.h, which is not below it"
fresh
echo '// more' >> "$COPY/tree/src/npu/emit.c"
refuses "a stale ptowsp_npu_emit.c" "ptowsp_npu_emit.c does not match" --check
fresh
echo '// more' >> "$COPY/tree/src/npu/tree/include/wsp_abi.h"
refuses "a stale file of trees" "ptowsp_npu_emit.c does not match" --check
fresh
echo '// a' > "$COPY/tree/src/npu/extra.c"
refuses "an unlisted file of the emitter" "src/npu/extra.c is not in the list"
fresh
printf 'no end' >> "$COPY/tree/src/npu/tree/Makefile"
refuses "a file of trees without an end" "src/npu/tree/Makefile does not end with a newline"
fresh
printf 'static int npu_hash(int a) {\n    return a;\n}\n' >> "$COPY/tree/src/npu/names.c"
refuses "a function of the emitter defined twice" "npu_hash in src/npu/hash.c and src/npu/names.c"
fresh
sed -i '1i #include "../base/base.h"' "$COPY/tree/src/npu/text.c"
refuses "an emitter that knows more than the header" "includes ../base/base.h, which is not below it"
fresh
refuses "an unknown option" "usage" --wrong
echo "amalgamate_test: good"

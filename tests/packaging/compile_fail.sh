#!/bin/sh
# Shows that what the header says does not compile does not, and that its neighbour does.
#
#   tests/packaging/compile_fail.sh CC...       for example: tests/packaging/compile_fail.sh gcc clang
#
# Each argument is a compiler command, options included ("gcc -m32"); it is tried as C11 and as C++17
# and must know both. Prints a line per check and exits with 1 if one failed.
set -u
LC_ALL=C
export LC_ALL

[ $# -gt 0 ] || {
    echo "usage: tests/packaging/compile_fail.sh CC..." >&2
    exit 2
}
cd "$(dirname "$0")/../.." || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
failures=0
header=ptowsp.h

ok() {  # text
    printf 'ok      %s: %s\n' "$label" "$1"
}

failed() {  # text, before the compiler's messages
    printf 'FAILED  %s: %s\n' "$label" "$1"
    sed -n 's/^/        /; 1,6p' "$work/log"
    failures=$((failures + 1))
}

# Compiles the program on stdin behind the header; the messages are in $work/log.
compile() {
    {
        printf '#include "%s/%s"\n' "$PWD" "$header"
        cat
    } > "$work/program.c"
    # The command and its options are words, on purpose.
    # shellcheck disable=SC2086
    $compiler $language -Wall -Wextra -fsyntax-only "$work/program.c" > "$work/log" 2>&1
}

works() {  # what; the program on stdin
    if ! compile; then
        failed "$1 does not compile"
    elif [ -s "$work/log" ]; then
        failed "$1 compiles with warnings"
    else
        ok "$1 compiles"
    fi
}

fails() {  # what, and words that the compiler's message must have, if any; the program on stdin
    if compile; then
        failed "$1 compiles"
    elif [ $# -lt 2 ]; then
        ok "$1 does not compile"
    elif grep -q -e "$2" "$work/log"; then
        ok "$1 does not compile, and the message says $2"
    else
        failed "$1 does not compile, but no message says $2"
    fi
}

# -- spaces ---------------------------------------------------------------------------------------

check_setters() {
    space='
#define DECODE_DIMS(DIM) DIM(batch, PTOWSP_DYNAMIC) DIM(head, 8) DIM(chunk, (4 * 2))
PTOWSP_DEFINE_SPACE(decode_space, DECODE_DIMS);
ptowsp_status set(decode_space *space);'
    works "setting a dynamic dimension" << EOF
$space
ptowsp_status set(decode_space *space) { return decode_space_set_batch(space, 3); }
EOF
    fails "setting a static dimension" static << EOF
$space
ptowsp_status set(decode_space *space) { return decode_space_set_head(space, 3); }
EOF
    fails "setting a static dimension of parenthesised size" static << EOF
$space
ptowsp_status set(decode_space *space) { return decode_space_set_chunk(space, 3); }
EOF
    works "getting a static dimension" << EOF
$space
int64_t get(const decode_space *space);
int64_t get(const decode_space *space) { return decode_space_get_head(space); }
EOF
    fails "naming the member of a static dimension" head << EOF
$space
int64_t get(const decode_space *space);
int64_t get(const decode_space *space) { return space->head; }
EOF
}

check_ranks() {
    seven='DIM(a, 1) DIM(b, 2) DIM(c, PTOWSP_DYNAMIC) DIM(d, 3) DIM(e, 1) DIM(f, PTOWSP_DYNAMIC) DIM(g, 2)'
    works "a space of 8 dimensions" << EOF
#define DIMS(DIM) $seven DIM(h, 2)
PTOWSP_DEFINE_SPACE(wide, DIMS);
EOF
    fails "a space of 9 dimensions" "too many dimensions" << EOF
#define DIMS(DIM) $seven DIM(h, 2) DIM(i, 2)
PTOWSP_DEFINE_SPACE(wide, DIMS);
EOF
    fails "a space of 17 dimensions" << EOF
#define DIMS(DIM) $seven DIM(h, 2) DIM(i, 2) DIM(j, 2) DIM(k, 2) DIM(l, 2) DIM(m, 2) DIM(n, 2) \
    DIM(o, 2) DIM(p, 2) DIM(q, 2)
PTOWSP_DEFINE_SPACE(wide, DIMS);
EOF
    fails "a space without dimensions" << EOF
#define DIMS(DIM)
PTOWSP_DEFINE_SPACE(narrow, DIMS);
EOF
}

# A literal may not begin with an operator, so -5 is some error; the others are found to be negative.
check_sizes() {
    for size in 8 0 '(3 + 4)' '(0)' SIX '(SIX)' FIVE PTOWSP_DYNAMIC ANY; do
        works "size $size" << EOF
enum { SIX = 6 };
#define FIVE 5
#define ANY PTOWSP_DYNAMIC
#define DIMS(DIM) DIM(batch, PTOWSP_DYNAMIC) DIM(head, $size)
PTOWSP_DEFINE_SPACE(tested, DIMS);
EOF
    done
    fails "static size -5" << EOF
#define DIMS(DIM) DIM(batch, PTOWSP_DYNAMIC) DIM(head, -5)
PTOWSP_DEFINE_SPACE(tested, DIMS);
EOF
    for size in '(-5)' '(-2)' '(2 - 3)' MINUS_TWO '(-1)' MINUS_ONE; do
        fails "static size $size" negative << EOF
enum { MINUS_TWO = -2, MINUS_ONE = -1 };
#define DIMS(DIM) DIM(batch, PTOWSP_DYNAMIC) DIM(head, $size)
PTOWSP_DEFINE_SPACE(tested, DIMS);
EOF
    done
    fails "PTOWSP_DYNAMIC in parentheses, which would be neither dynamic nor a size" << EOF
#define DIMS(DIM) DIM(batch, PTOWSP_DYNAMIC) DIM(head, (PTOWSP_DYNAMIC))
PTOWSP_DEFINE_SPACE(tested, DIMS);
EOF
    fails "a size that is not a constant" << EOF
extern int run_time_size;
#define DIMS(DIM) DIM(batch, PTOWSP_DYNAMIC) DIM(head, run_time_size)
PTOWSP_DEFINE_SPACE(tested, DIMS);
EOF
    works "a size taken from another space" << EOF
#define DIMS(DIM) DIM(batch, PTOWSP_DYNAMIC) DIM(head, 8)
PTOWSP_DEFINE_SPACE(tested, DIMS);
#define MORE_DIMS(DIM) DIM(head, tested_head_size) DIM(token, PTOWSP_DYNAMIC)
PTOWSP_DEFINE_SPACE(more, MORE_DIMS);
EOF
}

# -- tiers ----------------------------------------------------------------------------------------

tiers() {  # writes a program that defines tiers from the list $1
    cat > "$work/tiers.c" << EOF
PTOWSP_INLINE void body(const ptowsp_work *work, uint32_t lane, void *user, int tier) {
    (void)work, (void)lane, (void)user, (void)tier;
}
#define TIERS(TIER) $1
PTOWSP_DEFINE_TIERS(attend, TIERS, body);
EOF
}

check_tiers() {
    sixteen=
    i=0
    while [ $i -lt 16 ]; do
        sixteen="$sixteen TIER($i, $((i + 1)), $((i + 1)))"
        i=$((i + 1))
    done
    tiers 'TIER(0, 1, 10)'
    works "one tier" < "$work/tiers.c"
    tiers 'TIER(0, 1, 10) TIER(1, 11, 20)'
    works "two tiers in order" < "$work/tiers.c"
    tiers "$sixteen"
    works "16 tiers" < "$work/tiers.c"
    tiers "$sixteen TIER(16, 17, 17)"
    fails "17 tiers" < "$work/tiers.c"
    tiers 'TIER(1, 1, 10) TIER(0, 11, 20)'
    fails "two tiers out of order" "tier ids count from 0" < "$work/tiers.c"
    tiers 'TIER(1, 1, 10)'
    fails "a tier list that begins with 1" "tier ids count from 0" < "$work/tiers.c"
    tiers 'TIER(0, 1, 10) TIER(2, 11, 20)'
    fails "a tier list with a hole" "tier ids count from 0" < "$work/tiers.c"
    tiers 'TIER(0, 1, 10) TIER(0, 11, 20)'
    fails "two tiers with one id" < "$work/tiers.c"
    tiers ''
    fails "an empty tier list" < "$work/tiers.c"
}

# -- tiles of the shim's C++ face -----------------------------------------------------------------

declares() {  # writes a program that makes a variable of type $1 and then does $2
    cat > "$work/tile.cpp" << EOF
using namespace pto;
void run(float *data);
void run(float *data) {
    (void)data;
    $1 a;
    ${2-};
    (void)a;
}
EOF
}

check_tiles() {
    vec='Tile<TileType::Vec, float, 16, 32, BLayout::RowMajor, -1, -1>'
    declares "$vec" 'a.SetValidRow(3)'
    works "setting a dynamic valid size" < "$work/tile.cpp"
    declares 'Tile<TileType::Vec, float, 16, 32>' 'a.SetValidRow(3)'
    fails "setting a static valid size" "only a DYNAMIC size" < "$work/tile.cpp"
    declares 'Tile<TileType::Vec, float, 16, 31>'
    fails "rows of 124 bytes" "rows are not a multiple of 32 bytes" < "$work/tile.cpp"
    declares 'Tile<TileType::Vec, float, 12, 1, BLayout::ColMajor>'
    fails "columns of 48 bytes" "columns are not a multiple of 32 bytes" < "$work/tile.cpp"
    declares 'Tile<TileType::Vec, float, 16, 32, BLayout::RowMajor, 17, 32>'
    fails "17 valid rows of 16" "more is valid than allocated" < "$work/tile.cpp"
    declares 'TileLeft<float, 8, 32>'
    fails "half a box of rows" "rows are not whole boxes" < "$work/tile.cpp"
    declares 'TileRight<half, 32, 24>'
    fails "half a box of columns" "columns are not whole boxes" < "$work/tile.cpp"
    declares 'Tile<TileType::Vec, float, 184, 256>' 'TASSIGN<0>(a)'
    works "a tile that fills UB" < "$work/tile.cpp"
    declares 'Tile<TileType::Vec, float, 184, 256>' 'TASSIGN<32>(a)'
    fails "a tile beyond UB" "a tile ends beyond its memory" < "$work/tile.cpp"
    declares 'Tile<TileType::Vec, float, 16, 32>' 'TASSIGN<16>(a)'
    fails "a tile at 16 bytes" "begins at a multiple of 32" < "$work/tile.cpp"
    declares 'Shape<1, 1, 1, 4, 8>' 'Shape<1, 1, 1, -1, -1> b(2, 3); (void)b'
    works "as many sizes as are dynamic" < "$work/tile.cpp"
    declares 'Shape<1, 1, 1, 4, 8>' 'Shape<1, 1, 1, -1, -1> b(2); (void)b'
    fails "fewer sizes than are dynamic" "as many as there are DYNAMIC" < "$work/tile.cpp"
    declares "Shape<1, 1, 1, -1, -1>"
    fails "no sizes where some are dynamic" "DYNAMIC dimension" < "$work/tile.cpp"
    check_types
}

# What PTO-ISA's simulator declares for tiles of one type: with a static valid size and a dynamic one.
check_types() {
    all=$language
    mixed='Tile<TileType::Vec, int32_t, 16, 32> b; Tile<TileType::Vec, int32_t, 16, 32, BLayout::RowMajor, -1, 32> c(16)'
    declares 'Tile<TileType::Vec, int32_t, 16, 32>' "$mixed; TADD(a, b, c); TABS(b, c); TADDC(b, b, b, c)"
    works "a static valid size beside a dynamic one" < "$work/tile.cpp"
    language="$all -DPTOISA_SIMULATOR_TYPES"
    for call in 'TADD(a, b, c)' 'TABS(b, c)' 'TADDC(b, b, b, c)' 'TADDSC(b, b, 2, c)' 'TPOW(b, c, b)' 'TXORS(b, b, 2, c)'; do
        declares 'Tile<TileType::Vec, int32_t, 16, 32>' "$mixed; $call"
        fails "$call of other valid sizes for the simulator" "takes tiles of one type" < "$work/tile.cpp"
    done
    declares 'Tile<TileType::Vec, int32_t, 16, 32>' "$mixed; TADD(a, b, b); TSUB(a, b, c); TXORS(b, a, 2, b)"
    works "tiles of one type for the simulator" < "$work/tile.cpp"
    language=$all
}

# -- exact floats ---------------------------------------------------------------------------------

# Each option that a compiler tells its files of, with what it defines.
check_floats() {
    exact=$language
    echo 'int unused;' > "$work/exact.c"
    for option in "-ffast-math -D" "-ffinite-math-only -D" "-ffast-math -fno-finite-math-only __ASSOCIATIVE_MATH__" \
        "-freciprocal-math __RECIPROCAL_MATH__" "-fno-signed-zeros __NO_SIGNED_ZEROS__"; do
        # shellcheck disable=SC2086
        case $option in
        *' -D') ;;
        *) $compiler ${option% *} -dM -E "$work/exact.c" | grep -q "${option##* }" || continue ;;
        esac
        language="$exact ${option% *} -DPTOWSP_IMPLEMENTATION -Wfatal-errors"
        fails "the implementation with ${option% *}" "needs exact floats" << EOF
EOF
        language="$exact ${option% *}"
        works "the header with ${option% *}" << EOF
EOF
        header=ptoisa_shim.h language="$exact ${option% *} -Wfatal-errors"
        fails "the shim with ${option% *}" "instructions are exact" << EOF
EOF
        header=ptowsp.h
    done
    language=$exact
}

# -- names of version 0.1 -------------------------------------------------------------------------

check_names() {
    for pair in wait:wait_make record:record_make send:send_make send_task:send_task_make close:close_make call:call_make \
        slot_set:slot_set_make slot_load:slot_load_make moe_unit_bound:moe_bound text_to_buffer:output_to_buffer; do
        fails "ptowsp_${pair%:*}" "IS_NOW_ptowsp_${pair#*:}" << EOF
void *old(void);
void *old(void) { return (void *)ptowsp_${pair%:*}; }
EOF
    done
    fails "ptowsp_text" "IS_NOW_ptowsp_output" << 'EOF'
ptowsp_text old;
EOF
}

for compiler in "$@"; do
    for language in "-std=c11 -x c" "-std=c++17 -x c++"; do
        label="$compiler ${language%% *}"
        works "the header alone" << EOF
EOF
        check_setters
        check_ranks
        check_sizes
        check_tiers
        check_floats
        check_names
    done
    header=ptoisa_shim.h
    check_tiles  # as C++17, the last language
    header=ptowsp.h
done

if [ "$failures" -gt 0 ]; then
    echo "compile_fail: $failures failed" >&2
    exit 1
fi

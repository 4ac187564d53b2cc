#!/bin/sh
# The examples of workloads as programs: what they say when all is well, with a few options, and to
# bad options. EXAMPLES is the directory with the programs; AGAIN another one, whose programs
# are saved and loaded first, and then have the trees that are built already.
set -eu
EXAMPLES=${EXAMPLES:-build}
DIR=$(mktemp -d)
trap 'rm -rf "$DIR"' EXIT
CACHE=${CACHE:-$DIR/cache}

fail() {
    echo "examples_test: $*" >&2
    exit 1
}

# says TEXT...: the last output has a line with each.
says() {
    for text in "$@"; do
        grep -qF -- "$text" "$DIR/out" || fail "$last: no '$text' in $(cat "$DIR/out")"
    done
}

# good PROGRAM ARGUMENTS: exits with 0 and says nothing of WRONG.
good() {
    last="$*"
    program=$1
    shift
    "$EXAMPLES/$program" "$@" > "$DIR/out" 2>&1 || fail "$last: $(cat "$DIR/out")"
    ! grep -q WRONG "$DIR/out" || fail "$last: $(cat "$DIR/out")"
}

# bad TEXT PROGRAM ARGUMENTS: exits with 2 and says TEXT.
bad() {
    text=$1
    shift
    last="$*"
    program=$1
    shift
    set +e
    "$EXAMPLES/$program" "$@" > "$DIR/out" 2>&1
    code=$?
    set -e
    [ $code = 2 ] || fail "$last: exit $code, $(cat "$DIR/out")"
    says "$program: $text"
}

# rows COUNT PATTERN: the last output has so many lines that match.
rows() {
    [ "$(grep -c -- "$2" "$DIR/out")" = "$1" ] || fail "$last: not $1 times '$2': $(cat "$DIR/out")"
}

# tight COUNT: so many lines say how much transient tensors take, within 5 % of the lower bound, and less than
# apart.
tight() {
    sed -n 's/.* \([0-9]*\) bytes in one block (at least *\([0-9]*\)), *\([0-9]*\) each alone.*/\1 \2 \3/p' "$DIR/out" |
        awk -v want="$1" '$1 <= 1.05 * $2 && $1 < $3 { good++ } END { exit good != want }' ||
        fail "$last: transient tensors take more: $(cat "$DIR/out")"
}

# Only those that emit have the emitter in them.
last="nm"
for program in hello_workload decode_batch graph_threads llama_block; do
    ! nm "$EXAMPLES/$program" | grep -q ptowsp_npu || fail "$program has the emitter"
done
nm "$EXAMPLES/emit_decode" | grep -q ptowsp_npu || fail "emit_decode has no emitter"

# The pictures of README.md and examples/README.md. On paper, at depth 0: a load of 300 and a latency of 500 for each of 10
# tiles, and the last one's 900; at depth 2 the first worker starts at 300 + 500 and computes 4 tiles.
good timelines --directory "$DIR"
says "10 tiles: 8900 cycles at depth 0, 4400 at depth 2: good"
# Ranks 0 and 1 send at 900, 1800 and 2700, 600 each. With one link the last of 1 begins at 3900, is
# there at 4700, and is worked on until 5600; 2 has been done since 5000. The ring that sums 800 bytes
# takes two messages of 400 + 100 from then on. With two links all is there at 3500, done at 4400.
says "two stages on two ranks each: 6600 cycles on a shared link, 5400 on two: good"
for picture in plans pipeline ranks; do
    cmp "$DIR/$picture.svg" "examples/pictures/$picture.svg" ||
        fail "another picture: build/timelines --directory examples/pictures writes it again"
    grep -qF "pictures/$picture.svg)" README.md examples/README.md || fail "no README has $picture.svg"
done
# Titles of plans.svg: in both plans units cover each request once, a whole one or at least two parts; equal ones in
# the first plan, to a page of 16 tokens.
awk '
    BEGIN { n = split("9600 700 2500 310 4200 1100 180 6300 900 2100 450", lengths) }
    function check(is_equal,    i, bad) {
        for (i = 1; i <= n; i++) {
            bad = sum[i] != lengths[i] || whole[i] + (parts[i] > 1) != 1 || (is_equal && high[i] - low[i] > 16)
            if (bad) { print "request " i - 1 " is planned wrongly"; exit 1 }
        }
        split("", sum); split("", whole); split("", parts); split("", high); split("", low)
    }
    /<title>Equal chunks/ { seen++ }
    /<title>Balanced plan/ { seen++; check(1) }
    /<title>(whole|split) request=/ {
        match($0, /(whole|split) request=[0-9]+ kv=[0-9]+/)
        split(substr($0, RSTART, RLENGTH), field, /[ =]/)
        i = field[3] + 1; kv = field[5]; sum[i] += kv
        if (field[1] == "whole") { whole[i]++ } else {
            low[i] = parts[i] && low[i] < kv ? low[i] : kv; high[i] = high[i] > kv ? high[i] : kv; parts[i]++
        }
    }
    END { check(0); if (seen != 2) exit 1 }' "$DIR/plans.svg" || fail "timelines: plans.svg does not show what its titles say"
bad "$DIR/none/plans.svg: cannot be written" timelines --directory "$DIR/none"

# Requests that share prefixes; both plans are right, and the tree reads less.
good prefix_decode --batch 16 --kv-mib 32 --steps 1
says "16 requests," "(generated, seed 1), blocks of 64" "flat " "tree " "tree / flat: KV 0."
good prefix_decode --batch 16 --kv-mib 32 --steps 1 --tile 1 --group 1 --threads 3
says "0 shared segments, 0 joins" "tree / flat: KV 1.000, predicted time 1.000"
good prefix_decode --batch 40 --kv-mib 32 --steps 1 --seed 9 --invariant
says "the bits of both are the same"
cat > "$DIR/live.jsonl" << 'END'
{"timestamp": 0, "input_length": 1030, "output_length": 100, "hash_ids": [0, 1, 2]}
{"timestamp": 0, "input_length": 1100, "output_length": 100, "hash_ids": [0, 1, 3]}
{"timestamp": 0, "input_length": 600, "output_length": 1, "hash_ids": [0, 4]}
{"timestamp": 9000, "input_length": 600, "output_length": 9, "hash_ids": [0, 4]}
END
good prefix_decode --trace "$DIR/live.jsonl" --at 1 --token-ms 50 --steps 1
says "2 requests, 2172 KV tokens (Mooncake JSONL at 1 s), blocks of 512, 1 nodes" "KV 0.5"
bad "no request is live at 500 s" prefix_decode --trace "$DIR/live.jsonl" --at 500
bad "$DIR/none: cannot be opened" prefix_decode --trace "$DIR/none"
printf '{"timestamp": 0, "input_length": 6, "output_length": 5, "hash_ids": []}\n' > "$DIR/no_ids"
bad "$DIR/no_ids: no request has hash_ids" prefix_decode --trace "$DIR/no_ids"

# Two tiles of 132 cycles on each of 4 lanes, but the last, which has two rows; 63 and 62 of them.
good hello_workload
says "30 rows:   8 tasks on 4 lanes took  264 cycles" \
    "1000 rows: 250 tasks on 4 lanes took 8316 cycles" "all squares are right"

# The programs of the manual's sections check themselves. What 910B and what schedules take is worked out elsewhere.
for section in plans moe prefix run schedule graph tiles ranks; do
    good "manual_$section"
    says "all results are right"
done
good manual_tuning "$DIR/records"
says "all results are right"

# 31 diagonals of 10 cycles; the binomial coefficient in the last corner.
good lattice
rows 2 "32 over 16 is 601080390, after 310 cycles on 16 simulated lanes: good"

good tiered_decode
says "one program, compiled once" "the same cycles: good"
rows 3 "^  step [123] .*good$"
rows 6 "^  \(in order\|dataflow\), .*%$"
rows 2 "^critical path, dataflow"
# 5 dispatches without two by keys that units have not; 3 windows, 2 lanes; 2 orders, in order 1
says "54 of 120 schedules executed, 66 refused"
rows 4 " 55101  .*  dataflow, plan, .* 24 lanes; idle: nothing left 0.3 %, dependency 0.0 %$"
# On paper: 58 cycles to append (50 + 256 / 32), 2248 to attend 256 tokens (200 + 256 * 256 / 32),
# 2556 to attend 257 (500 + 257 * 256 / 32), which is what the plan says.
good tiered_decode --batch 1 --lanes 1 --window 1
says "step 1      256 tokens    1 units   0 merges     2 tasks       2548 cycles planned       2306 simulated" \
    "step 2      257 tokens    1 units   0 merges     2 tasks       2556 cycles planned       2614 simulated"
good tiered_decode --batch 5 --lanes 2 --window 3 --seed 12345678901234567890
good tiered_decode --batch 17 --lanes 100 --window 1000000 --seed 0

good moe_routing
says "256 tokens, top 4 of 64 experts" "1e-04 allowed: good"
rows 2 "^  round robin  *[0-9]"
rows 2 "^  work stealing  *[0-9]"
rows 2 "^  affinity by expert  *[0-9]"
rows 2 "^  hash of expert  *[0-9]"
rows 2 "^  placed by load  *[0-9]"
rows 1 "^  MoE plan  *0 .* 99 %"
# On paper: measure takes 50 + 1024 / 16, 1024 experts' tasks 114 each, 256 combines 28 each; the
# last two kinds fill 16 lanes.
rows 2 "^  .*  0 *7858  *99 %"
good moe_routing --tokens 1 --experts 1 --top-k 1 --lanes 1 --factor 1000
good moe_routing --tokens 100 --experts 8 --top-k 8 --lanes 3
rows 2 "^  round robin  *0 .* 100 100 100$"  # no expert is above twice the mean
good moe_routing --tokens 77 --experts 20 --top-k 2 --skew 3.5 --factor 1 --lanes 40 --seed 7
good moe_routing --skew 0 --lanes 4

# Kernels as operations on tiles. What full tiles take in the unit model is worked out on paper:
# softmax 5 r c + 2 r, rmsnorm 5 r c + c + 4 r.
good softmax
says "a full task: 81984 cycles in the unit model" "450000 values" "1e-06 allowed: good"
rows 1 "unit *32 tasks"
rows 1 "a2a3 *32 tasks"
good rmsnorm
says "a full task: 41536 cycles in the unit model" "350000 values" "1e-06 allowed: good"
rows 1 "unit *44 tasks"
# split: loads of a, b and c, 64^3, TMOV, TADD, TSTORE; loop: 0 as a product of 64 x 16 and 16 x 64, 5
# times a, b and 64^3, and TSTORE.
good matmul
says "a full task: 286720 cycles in the unit model" "a full task: 1423360 cycles in the unit model" \
    "30000 values" "1e-06 allowed: good"
rows 2 "^  split  *unit *60 tasks\|^  loop  *unit *12 tasks"
good matmul --size 300
says "300 x 300 by 300 x 300" "c: 90000 values" "1e-05 allowed: good" "910B "
# Published: 206.7 us.
good matmul --size 3072
says "published 206.7 us, ratio 1.0"
bad "--size" matmul --size 0
bad "--size" matmul --size 16385
# Tiles of 64 x 64: 13 of rows in 3 columns; 1 + 1 + 0 + 3 x 2 + 4 + 2 x 2 + 4 x 3 + 0. A kernel with
# full tiles takes as long as loop above.
good batched_gemm
says "a full task: 1423360 cycles in the unit model"
rows 2 "^  rows differ  *unit *39 tasks\|^  all differ  *unit *28 tasks"
rows 2 "c: 100000 values, .* 1e-06 allowed: good$"
# 2 layers x 3 heads x 4 requests x 4 tiles of 16 for 50 pairs; x 3 requests x 1 tile.
good tensor_data
rows 1 "^  4 x 50 pairs *unit *96 tasks"
rows 1 "^  3 x 16 pairs *unit *18 tasks"
says "38400 values, largest" "9216 values, largest"
rows 2 "1e-07 allowed: good$"
# Three tasks and one for each request, and one for each chosen token: 8 x 4 + 8 x 16; 4 x 4 + 5 + 16 + 16 + 1.
good lightning_indexer
rows 1 "^  8 requests *unit *160 tasks"
rows 1 "^  4 requests *unit *54 tasks"
says "128 of 1105 tokens chosen, wrong are 0" "38 of 278 tokens chosen, wrong are 0"
rows 2 "2e-06 allowed: good$"
# Scores of 8 x 256 are done with before rows of 8 x 16 x 32 are fetched.
says " 16384 bytes in one block (at least 16384), 24576 each alone"
tight 2
# 2 heads: 1 + 2 + 3 + 4 chunks and 4 ends each; a task for each of 3 requests.
good attention
rows 1 "^  prefill  *unit *28 tasks"
rows 1 "^  decode  *unit *3 tasks"
rows 2 "2e-06 allowed: good$"
# Two blocks of 128 queries; two chunks of 256 keys, the last one with 44.
good attention --queries 256 --keys 300
rows 1 "^  whole  *unit *2 tasks"
rows 1 "2e-03 allowed: good$"
rows 1 "^  910B .* us$"
good attention --queries 1024 --keys 2048
says "by hand" "published 26.2 us, ratio 0.9"
bad "--queries and --keys go together" attention --keys 300
bad "--queries 100: not whole blocks of 128" attention --queries 100 --keys 300
# For each of 3 tiles: norm, 3 projections, 4 heads, output, norm, gate, down.
good deepseek_block
rows 2 "units, busiest lane .* of the mean; chosen as in double$"
rows 2 "^  check     y: 2048 values, .*: good$"
cp "$DIR/out" "$DIR/serial"
good deepseek_block --threads 3
cmp -s "$DIR/serial" "$DIR/out" || fail "$last: another output than without threads"
good llama_block
rows 3 "unit *36 tasks"
says "as structure alone says: good" "5120 values" "2e-06 allowed: good"
good llama_decode
rows 3 "in one block .*: good$"
tight 3
says " 30720 bytes in one block (at least  30720),  55296 each alone"
good llama_decode --memory "$DIR/memory.svg" --time
says "a step takes"
grep -q "<title>g: 12288 bytes at" "$DIR/memory.svg" || fail "llama_decode: no picture of memory"
bad "/nowhere/memory.svg cannot be written" llama_decode --memory /nowhere/memory.svg
bad "--memory takes a text" llama_decode --memory
# A saved program does the same, by its fingerprints.
good llama_decode --save "$DIR/llama.saved"
rows 3 "program [0-9a-f]*, results [0-9a-f]*$"
cp "$DIR/out" "$DIR/before"
good llama_decode --load "$DIR/llama.saved"
cmp -s "$DIR/before" "$DIR/out" || fail "$last: not as before it was saved: $(cat "$DIR/out")"
sed 's/heads/heeds/' "$DIR/llama.saved" > "$DIR/llama.wrong"
bad "$DIR/llama.wrong: load: damaged: the checksum is " llama_decode --load "$DIR/llama.wrong"
bad "/nowhere/saved cannot be written" llama_decode --save /nowhere/saved
bad "/nowhere/saved cannot be read" llama_decode --load /nowhere/saved
bad "--load takes a text" llama_decode --load
# Published measurements: the bounds are those of tests/isa/isa_timed_test.c.
good predict --svg "$DIR/predict.svg"
says "A2/A3 element by element" "27 rows" "kernels"
cmp "$DIR/predict.svg" examples/pictures/predict.svg ||
    fail "another picture: build/predict --svg examples/pictures/predict.svg writes it again"
# The title again, from the rows that are printed; and a legend entry for each family of kernels.
title=$(awk '/^kernels/ { on = 1; next } on && /^  [0-9]+ rows/ { exit } on { print 100 * ($(NF - 1) / $(NF - 2) - 1) }' "$DIR/out" |
    tr -d - | sort -g | awk '{ e[NR] = $1 } END { printf "%d published kernels: median error %.1f %%, largest %.1f %%",
        NR, e[int(NR / 2) + 1], e[NR] }')
grep -qF ">$title<" "$DIR/predict.svg" || fail "predict: the picture has not the title $title"
[ "$(grep -c '>[1-9][0-9]* points, largest error ' "$DIR/predict.svg")" = 9 ] || fail "predict: legend of 3 kinds and 6 families"
cat > "$DIR/instructions.csv" << 'END'
machine,instruction,dtype,rows,cols,valid_rows,valid_cols,params,variant,measured_cycles
A2A3,TMOV,f32,64,128,63,125,Vec.RowMajor.NoneBox>Vec.RowMajor.NoneBox,UB->UB,1323
A5,TCVT,f32>float8e4m3,1,64,1,64,,,67
END
good predict --instructions "$DIR/instructions.csv"
says "measured_cycles,predicted_cycles" "UB->UB,1323,1323" \
    '67,"not predicted: element types f32>float8e4m3 are not supported"'
cat > "$DIR/kernels.csv" << 'END'
kernel,machine,shape,tiling
gemm,A3,m=3072 k=3072 n=3072 f16->f32,"base 128x256x64, stepK 4"
gemm,A3,m=3000 k=3072 n=3072 f16->f32,"base 128x256x64, stepK 4"
tget,A3,16384 bytes,
END
good predict --rows "$DIR/kernels.csv"
says "predicted_us,predicted_cube_pct" "its sizes are not whole tiles and panels" "host times of remote gets"
rows 1 '^gemm,A3,m=3072.*,2[0-9][0-9]\.[0-9],'
bad "/nowhere/rows cannot be read" predict --rows /nowhere/rows
bad "$DIR/kernels.csv: there is no column instruction" predict --instructions "$DIR/kernels.csv"
printf 'machine,"a\n' > "$DIR/wrong.csv"
bad "$DIR/wrong.csv: there is no line with names of columns" predict --rows "$DIR/wrong.csv"
bad "/nowhere/picture cannot be written" predict --svg /nowhere/picture
cat > "$DIR/control.csv" << 'END'
what,value
host run() 1/4/256 tasks,51.4/80.2/2113.0 us
AICPU orchestrator per submitted task,0.874 us (16704 tasks in 14601.6 us)
AICPU scheduling per task,example 352 tasks in 3477 us a thread
AICore to AICPU via COND,600 ns avg
qwen3 decode_layer wall,902.9 us median
unknown,1 us
END
good predict --control "$DIR/control.csv"
# 43.3 + 8.08 for each task; 7.6 us for each, of dispatch, poll and completion.
says "what,value,predicted" "2113.0 us,51.4/75.6/2111.8 us" "0.874 us a task" "7.602 us a task" \
    "600 ns (notice)" '"not predicted: its tasks were not published"' '"not predicted: there is no model of it"'
bad "$DIR/kernels.csv: there is no column what" predict --control "$DIR/kernels.csv"
bad "--instructions, --rows, --control and --svg go one at a time" predict --svg "$DIR/x" --rows "$DIR/kernels.csv"
good topk
says "the best 8 of up to 256 candidates, 40 requests" "wrong are 0, 0 allowed: good"
rows 1 "unit *40 tasks"
good topk --rows 100
says "in 100 rows, 3 of a core" "200000 scores and indices, wrong are 0, 0 allowed: good"
good topk --rows 4800
says "published 324.1 us, ratio 1."
# 128 scores are loaded, 5 x 128 cycles sort them, 128 pairs of four elements are merged, 2 x 8 are stored.
good topk --bits 16
says "a full task: 1296 cycles in the unit model" "wrong are 0, 0 allowed: good"
good topk --bits 16 --rows 100
says "200000 scores and indices, wrong are 0, 0 allowed: good"
bad "--rows" topk --rows 0
bad "--bits 24: scores have 16 or 32" topk --bits 24
# Tiles of 32 rows: 3 of the weights, 4 of x; 4 x 2 of the product.
good quantized_matmul
says "wrongly rounded: 0" "8000 values" "5e-07 allowed: good"
rows 1 "unit *15 tasks"
# Pipelines. What they take follows from the rules of channels alone; the makespans here were worked
# out by another program, which knows nothing but these. A softmax of 8 x 32 takes 5 * 256 + 2 * 8
# cycles, 64 of them 82944.
good csp_pipeline
says "a full task: 1296 cycles in the unit model" "one after another: 146432 cycles" \
    "the same cycles: good" "16384 values" "1e-06 allowed: good" \
    "latency     0     105856      95488      85120      83456" \
    "latency    50     109106      95988      85620      83556" \
    "latency   500     138356     100488      90120      84456" \
    "latency  5000     430856     326808     173648     114384" \
    "bottleneck: compute" "bottleneck: no process, but latency and depth"
good work_queue
says "188139 tokens: 200939 cycles, 27114 of the longest" "within them: good" "1e-05 allowed: good"
rows 1 "^ *1 *200939  | *200959 .*| *200959 .*| *200959 "
rows 1 "^ *4 *50235  | *83978 *2.39 *60 %  | *51062 *3.94 *98 %  | *50292 *4.00 *100 %$"
rows 1 "^ *8 *27114  | *53425 *3.76 *47 %  | *35548 *5.65 *71 %  | *27134 *7.41 *93 %$"
good deadlock
rows 3 "^  STUCK: "
rows 1 "^  STUCK: .* channel words: no process consumes it"
says "right sends first: OK, 2 tasks, 200 cycles" "with room for all: OK, 32 tasks, 480 cycles" \
    "the mended ones are right: good"
for name in left right questions answers numbers largest divide kept found; do
    says "$name"
done

# What they print is the same on any number of threads.
for program in softmax rmsnorm matmul batched_gemm tensor_data lightning_indexer attention llama_block llama_decode topk quantized_matmul \
    csp_pipeline; do
    good $program --help
    says "  --threads N"
    good $program
    cp "$DIR/out" "$DIR/serial"
    for threads in 2 3 8; do
        good $program --threads $threads
        cmp -s "$DIR/serial" "$DIR/out" || fail "$last: another output than without threads"
    done
    bad "--threads takes a whole number from 1 to 64, not '0'" $program --threads 0
done
for program in work_queue deadlock; do
    good $program --help
    says "takes no options"
done

for program in softmax rmsnorm matmul batched_gemm tensor_data lightning_indexer attention llama_block llama_decode deepseek_block topk quantized_matmul \
    csp_pipeline work_queue deadlock; do
    bad "unknown option '--wrong'" $program --wrong
    bad "unknown option '64'" $program 64
    set +e
    "$EXAMPLES/$program" > /dev/full 2> "$DIR/out"
    code=$?
    set -e
    last="$program > /dev/full"
    [ $code = 2 ] || fail "$last: exit $code"
    says "cannot write the output"
done

for program in tiered_decode moe_routing; do
    good $program --help
    says "usage: $program"
    bad "unknown option '--wrong'" $program --wrong
    bad "--lanes takes a whole number from 1 to 4096, not '0'" $program --lanes 0
    bad "--lanes takes a whole number from 1 to 4096, not '-1'" $program --lanes -1
    bad "--lanes takes a whole number from 1 to 4096, not '3x'" $program --lanes 3x
    bad "--lanes takes a whole number from 1 to 4096, not ''" $program --lanes
    bad "--seed takes a whole number" $program --seed 99999999999999999999999
    set +e
    "$EXAMPLES/$program" > /dev/full 2> "$DIR/out"
    code=$?
    set -e
    [ $code = 2 ] || fail "$program > /dev/full: exit $code"
    says "cannot write the output"
done
bad "--batch takes a whole number from 1 to 1024, not '1025'" tiered_decode --batch 1025
bad "--skew takes a number from 0 to 4, not 'nan'" moe_routing --skew nan
bad "--skew takes a number from 0 to 4, not '4.5'" moe_routing --skew 4.5
bad "--top-k 5 is more than --experts 4" moe_routing --top-k 5 --experts 4

# Tasks on threads. On paper: n (n + 1) (n + 2) / 6 tasks for n blocks in a row.
good graph_threads
says "blocks of 48: 680 tasks" "as on one thread: yes: good"
good graph_threads --size 60 --block 5 --threads 3 --runs 50
says "blocks of 5: 364 tasks"
good graph_threads --size 3 --block 3 --threads 8
says "blocks of 3: 1 tasks"
bad "--size is 7, not a multiple of --block, 3" graph_threads --size 7 --block 3
bad "--threads takes a whole number from 1 to 64, not '0'" graph_threads --threads 0

# Kernels on a device. On paper: 4 kernels for each block, of 128 * 128 / 32 cycles altogether each.
good graph_formula
says "32 kernels, 2048 cycles" "all are 42: good"
rows 4 "^  core"
good graph_formula --schedulers 3 --cores 9 --blocks 128
says "512 kernels, 2048 cycles" "all are 42: good"
rows 9 "^  core"
good graph_formula --blocks 3 --cores 1
says "12 kernels" "all are 42: good"
bad "--cores takes a whole number from 1 to 256, not '257'" graph_formula --cores 257

# Modules as files. On paper: the longest request has 4 tasks of 500 cycles, one after another.
MODULE=$(dirname "$0")/../../examples/modules/decode.module
BINDINGS="--bind requests=3 --bind kv=4,1,2 --bind bias=2 --bind first=0,7,9 --bind out=3,64"
good ptowsp_tool --help
good ptowsp_tool check "$MODULE"
says "module decode: 1 kernels, 2 tensors"
good ptowsp_tool time "$MODULE" --lanes 4 $BINDINGS
says "2000 cycles, 7 tasks, 4 lanes" "after dependency" "inputs 0000000000000000"
sum=$(grep "^program" "$DIR/out")
good ptowsp_tool save "$MODULE" --lanes 4 --out "$DIR/saved"
good ptowsp_tool time "$DIR/saved" $BINDINGS
says "$sum"
good ptowsp_tool time "$MODULE" --cycles 9 $BINDINGS
says "3500 cycles, 7 tasks, 1 lanes"  # as the text says 500
good ptowsp_tool explain "$MODULE" $BINDINGS
says "kernel attend: time only; 500 cycles (100.0 % of the tasks' cycles)" "it has no source"
for kind in svg csv json perfetto dot; do
    good ptowsp_tool draw "$MODULE" $BINDINGS --out "$DIR/drawn.$kind"
    [ -s "$DIR/drawn.$kind" ] || fail "$last: nothing is drawn"
done
good ptowsp_tool draw "$MODULE" $BINDINGS
says "<svg "
good ptowsp_tool draw "$MODULE" --lanes 4 $BINDINGS --out "$DIR/drawn.dump"
if [ -z "${IS_SAVING-}" ]; then  # a replay is a list of tasks, which has no text
    good ptowsp_tool dump replay "$DIR/drawn.dump"
    says "7 instances of tasks" "the longest chain takes 2000 cycles"
fi
bad "$DIR/none/drawn.dump cannot be made" ptowsp_tool draw "$MODULE" $BINDINGS --out "$DIR/none/drawn.dump"
good ptowsp_tool print "$MODULE"
cp "$DIR/out" "$DIR/printed"
good ptowsp_tool print "$DIR/printed"
cmp -s "$DIR/out" "$DIR/printed" || fail "$last: another text"
echo 'static ptowsp_cycles attend(const ptowsp_task *task, void *user) {
    (void)user;
    ((float *)task->tiles[1].data)[0] += 1;
    return 500;
}' > "$DIR/attend.c"
good ptowsp_tool emit "$MODULE" --out "$DIR/tool" --source "attend=$DIR/attend.c:attend"
grep -q "+= 1" "$DIR"/tool/aicore/kernels/*.cpp || fail "$last: no source"
bad "emit: kernel attend has no source" ptowsp_tool emit "$MODULE" --out "$DIR/none"
bad "there is no command 'draws'; --help shows them" ptowsp_tool draws "$MODULE"
bad "a command and a file are needed" ptowsp_tool check
bad "$DIR/nothing cannot be read" ptowsp_tool check "$DIR/nothing"
bad "$DIR cannot be read" ptowsp_tool check "$DIR"
bad "--lanes takes a number, not 'many'" ptowsp_tool check "$MODULE" --lanes many
bad "--cycles must be 1 or more" ptowsp_tool check "$MODULE" --cycles 0
bad "run: the size of axis requests is not bound" ptowsp_tool time "$MODULE"

# Dumps of PTO Runtime. Task 0 reads what task 1 writes, and nothing orders them.
mkdir "$DIR/dump"
ARG='"tensor_id":"1","dtype":"FLOAT32","shape":[8],"start_offset":"0","strides":[1]'
dump_with() {  # EDGES
    cat > "$DIR/dump/deps.json" << END
{"tasks":[{"task_id":"0","kernel_ids":[-1,0,-1],"args":[{"type":"INPUT",$ARG}]},
{"task_id":"1","kernel_ids":[-1,0,-1],"args":[{"type":"INOUT",$ARG}]}],
"tensors":[{"tensor_id":"1","buffer_addr":"4096","dtype":"FLOAT32","buffer_numel":"8"}],"edges":[$1]}
END
}
dump_with ""
"$EXAMPLES/ptowsp_tool" dump check "$DIR/dump" > "$DIR/out" && fail "dump check: a race is clean"
says "2 tasks, 0 edges: not clean" "race: write-after-read" "add an edge from 0 to 1"
"$EXAMPLES/ptowsp_tool" dump check "$(dirname "$0")/../../examples/simpler/lost_write" > "$DIR/out" && fail "dump check: a lost write is clean"
says "race                 1" "add an edge from 1 to 2"
dump_with '{"pred":"0","succ":"1"}'
for form in text json html; do
    good ptowsp_tool dump check "$DIR/dump" $form
    says "clean"
done
good ptowsp_tool dump explain "$DIR/dump" 1
says "waited for 1 edges" "task 0 (kernel 0) by explicit"
good ptowsp_tool dump rings "$DIR/dump"
says '"ring_task_window": [4, 4, 4, 4],' '"ring_dep_pool": [4, 4, 4, 4]'
good ptowsp_tool dump rings "$DIR/dump" 4,8,4,4 1024 4
says "passes"
bad "'4,4': one number, or four with commas" ptowsp_tool dump rings "$DIR/dump" 4,4 1024 4
bad "dump: ring 0: task windows are powers of 2 from 4 on" ptowsp_tool dump rings "$DIR/dump" 3 1024 4
bad "dump: there is no task 7" ptowsp_tool dump explain "$DIR/dump" 7
bad "there is no command 'dump draw'" ptowsp_tool dump draw "$DIR/dump"
bad "there is no form 'pdf': text, json or html" ptowsp_tool dump check "$DIR/dump" pdf
bad "dump takes a command and a directory" ptowsp_tool dump check
bad "dump: $DIR/nothing" ptowsp_tool dump check "$DIR/nothing"
bad "--bind requests=x: 'x' is no number" ptowsp_tool time "$MODULE" --bind requests=x
bad "--bind nobody=1: nothing that can be bound has this name" ptowsp_tool time "$MODULE" \
    --bind nobody=1
bad "--bind takes NAME=VALUES, not '=1'" ptowsp_tool time "$MODULE" --bind =1
bad "--out $DIR/a.png: the name ends in none" ptowsp_tool draw "$MODULE" --out "$DIR/a.png"
bad "$DIR/saved is saved already" ptowsp_tool save "$DIR/saved"
sed 's/attend(r, c)/attend(r)/' "$MODULE" > "$DIR/wrong"
! "$EXAMPLES/ptowsp_tool" check "$DIR/wrong" > "$DIR/out" 2>&1 || fail "one argument is enough"
says "$DIR/wrong:16:7: step/parallel r/for_each c/task attend: 1 axis arguments; the kernel takes 2"
sed 's/500 cycles/600 cycles/' "$DIR/saved" > "$DIR/wrong"
! "$EXAMPLES/ptowsp_tool" check "$DIR/wrong" > "$DIR/out" 2>&1 || fail "damage is not seen"
says "$DIR/wrong: load: damaged: the checksum is "

# Tile kernels in the text: 16 blocks, with two tasks each.
MODULE=$(dirname "$0")/../../examples/modules/softmax.module
BINDINGS="--bind q=1024,256 --bind p=1024,128"
good ptowsp_tool check "$MODULE"
says "module softmax: 2 kernels, 4 tensors"
good ptowsp_tool time "$MODULE" --lanes 4 $BINDINGS
says "32 tasks, 4 lanes" "task softmax, after dependency"
sum=$(grep "^program" "$DIR/out")
good ptowsp_tool save "$MODULE" --lanes 4 --out "$DIR/saved"
good ptowsp_tool time "$DIR/saved" $BINDINGS
says "$sum"
good ptowsp_tool print "$MODULE"
grep -v "^#\|^$" "$MODULE" > "$DIR/printed"
cmp -s "$DIR/out" "$DIR/printed" || fail "$last: another text"
good ptowsp_tool emit "$MODULE" --out "$DIR/tool"
grep -q TMATMUL_ACC "$DIR"/tool/aicore/kernels/*.cpp || fail "$last: no instructions"
sed 's/exp %6/exp %66/' "$MODULE" > "$DIR/wrong"
! "$EXAMPLES/ptowsp_tool" check "$DIR/wrong" > "$DIR/out" 2>&1 || fail "there is no value %66"
says "$DIR/wrong:35:12: there is no value %66 yet"

# Source trees, compiled without optimisation, as what they do is the same. A second run finds all
# of it in the cache.
for program in emit_decode emit_llama emit_gemm emit_tensor_data emit_indexer emit_llama_decode emit_pipeline; do
    good $program --help
    says "  --directory DIR" "  --cache DIR"
    bad "unknown option '--wrong'" $program --wrong
    bad "--cache takes a text" $program --cache
    for i in 1 2; do
        good $program --directory "$DIR/trees/$program" --cache "$CACHE" --options -O0
        says "  tree      $DIR/trees/$program" "without a rebuild, all as in the library: good"
        [ -f "$DIR/trees/$program/aicpu/expand.cpp" ] || fail "$last: no tree"
    done
    says ", which was there"
done
good emit_decode --directory "$DIR/trees/decode" --cache "$CACHE" --options -O0
rows 8 "same outputs, same cycles$"
rows 4 "requests, step [12] "
good emit_llama --directory "$DIR/trees/llama" --cache "$CACHE" --options -O0
rows 8 "same outputs, same cycles$"
rows 2 "^80 tokens, .* 36 "  # 3 tiles of 12 tasks
rows 2 "^50 tokens, .* 24 "
good emit_gemm --directory "$DIR/trees/gemm" --cache "$CACHE" --options -O0
rows 8 "same outputs, same cycles$"
rows 2 "^rows differ, .* 39 "
rows 2 "^all differ, .* 28 "
good emit_tensor_data --directory "$DIR/trees/tensor_data" --cache "$CACHE" --options -O0
rows 8 "same outputs, same cycles$"
rows 2 "^4 x 50, .* 96 "
rows 2 "^3 x 16, .* 18 "
good emit_indexer --directory "$DIR/trees/indexer" --cache "$CACHE" --options -O0
rows 8 "same outputs, same cycles$"
rows 2 "^8 requests, .* 160 "
rows 2 "^4 requests, .* 54 "
# In each of 4 layers, for b sequences in one tile: 8 tasks of the tile, 2 + 4 of each sequence.
good emit_llama_decode --directory "$DIR/trees/llama_decode" --cache "$CACHE" --options -O0
rows 12 "same outputs, same cycles$"
rows 2 "^batch of 24, .* 608 "
rows 2 "^batch of 16, .* 416 "
rows 2 "^batch of 1, .* 56 "
# Both phases in both cost models. No kernel of it crosses from the cube to the vector cores.
good emit_deepseek --directory "$DIR/trees/deepseek" --cache "$CACHE" --options -O0
rows 8 "same outputs, same cycles$"
! grep -q WSP_CROSS "$DIR"/trees/deepseek/aicore/kernels/*.cpp || fail "$last: a mixed kernel"
says "without a rebuild, all as in the library: good"
good emit_pipeline --directory "$DIR/trees/pipeline" --cache "$CACHE" --options -O0
rows 6 "same outputs, same cycles$"
rows 1 "^64 tiles, depth 0  *192  *105856 "  # the makespan of csp_pipeline

# Examples that can emit what they run: in each run two models, each with a large and a small ring.
for runs in 1:softmax 1:rmsnorm 2:matmul 2:attention 1:topk 1:quantized_matmul; do
    program=${runs#*:}
    good $program --emit "$DIR/trees/$program" --cache "$CACHE" --options -O0
    rows $((4 * ${runs%:*})) "same outputs, same cycles$"
done
# Cube cores that are two chunks ahead.
good attention --queries 128 --keys 600 --emit "$DIR/trees/ahead" --cache "$CACHE" --options -O0
rows 4 "same outputs, same cycles$"
bad "--emit takes a text" softmax --emit
bad "cannot make /dev/null/trees: " softmax --emit /dev/null/trees
TREE=$DIR/trees/softmax/round_robin
last="make -C $TREE"
make -C "$TREE" CXXFLAGS=-O0 > "$DIR/out" 2>&1 || fail "$last: $(cat "$DIR/out")"
last="run --check $TREE.run"
"$TREE/build/run" --check "$TREE.run" > "$DIR/out" 2>&1 || fail "$last: $(cat "$DIR/out")"
says "0 wrong" "check: good"

# A PTO-ISA source: results, the same cycles in the tree and in the library, and two wrong sources.
good own_kernel --directory "$DIR/trees/own" --cache "$CACHE" --options -O0
rows 2 "same cycles, error [0-9.]*e-0[789]$"
says "by the library alone: the same" "its PTO-ISA source has no entry swiglu_f16" \
    "aicore/sources/swiglu/swiglu.hpp:48:" "cycles and refusals: good"
bad "emit: kernel swiglu: its source nothing.cpp: " own_kernel --source nothing.cpp
good demo_kernels --directory "$DIR/trees/demos" --cache "$CACHE" --options -O0
says " cycles predicted, " "results and cycles: good"
rows 2 "1e-06 allowed: good$"
rows 2 "^910b .* %$"
block=$(sed -n 's/^910b  *\([0-9]*\) .*%$/\1/p' "$DIR/out" | head -1)

# A source alone: a block of the demo, which takes what it takes in the workload; one for A5; a mixed one.
measured() {
    good ptowsp_tool measure "$@" --cache "$CACHE" --options -O0
}
measured examples/own/gemm.cpp gemm f32:512x512 f16:512x1024 f16:1024x512 1024 512 --cube --block 3/16
says "gemm of examples/own/gemm.cpp, one core, block 3 of 16"
rows 1 "^model .* M .* MTE1 .* MTE2 .* FIX$"
rows 1 "^910b  *$block  *[0-9.]* .*% .*%$"
measured examples/own/add.cpp add f32:64x128 f32:64x128 f32:64x128 64 --a5
rows 2 "^a5 \|^950pr "
measured tests/npu/own/attend.hpp attend 0 f32:5x4096 f16:21x64 f16:192x64 f16:192x64 f32:21x64 21 192 --mixed
says "a cube core and two vector cores"
rows 3 "^unit \|^a2a3 \|^910b "
# refused TEXT ARGUMENTS
refused() {
    text=$1
    shift
    bad "$text" ptowsp_tool measure examples/own/add.cpp add "$@"
}
argument="an argument is TYPE:ROWSxCOLS, of at most 2^30 elements, or a number, not"
refused "$argument 'f33:1x1'" f33:1x1
refused "$argument 'f32:4'" f32:4
refused "$argument 'f32:0x4'" f32:0x4
refused "$argument 'f32:4x4x4'" f32:4x4x4
refused "$argument 'f32:1048576x1025'" f32:1048576x1025
refused "$argument '12x'" 12x
refused "more than 12 matrices" $(yes f32:1x1 | head -13)
refused "more than 32 arguments" $(yes 1 | head -33)
refused "there is no option --lanes, it lacks its value, or there are too many" --lanes 2
refused "there is no option --block, it lacks its value, or there are too many" --block
refused "--block takes N/COUNT with N below COUNT, not '4/4'" --block 4/4
bad "measure takes a file, its entry and arguments" ptowsp_tool measure examples/own/add.cpp
bad "emit: kernel add: its source nothing.cpp: " ptowsp_tool measure nothing.cpp add 1 --cache "$CACHE"
bad "emit: kernel sub: its PTO-ISA source has no entry sub" ptowsp_tool measure examples/own/add.cpp sub 1
bad "npu: there is no compiler no-such-compiler" emit_decode --compiler no-such-compiler \
    --directory "$DIR/trees/decode" --cache "$CACHE"


# Ranks as processes: the bits do not depend on how many there are.
for program in tensor_parallel expert_parallel pipeline_parallel; do
    good $program --help
    good $program --draw "$DIR/ranks.svg" --simulated "$DIR/simulated.svg"
    rows 3 '^[124] [a-z]* *simulated .* measured .* bits .*: good$'
    [ "$(sed 's/.* bits \([0-9a-f]*\) .*/\1/' "$DIR/out" | sort -u | wc -l)" = 1 ] ||
        fail "$last: other bits: $(cat "$DIR/out")"
    for picture in ranks simulated; do
        grep -q '</svg>' "$DIR/$picture.svg" || fail "$last: no picture $picture"
        grep -q ' lanes of 4 ranks' "$DIR/$picture.svg" || fail "$last: $picture has not all ranks"
        grep -q '<line x1=' "$DIR/$picture.svg" || fail "$last: $picture has no messages"
    done
    good $program --ranks 2 --draw "$DIR/ranks.json" --simulated "$DIR/ranks.pftrace"
    grep -q '"name":"rank 1"' "$DIR/ranks.json" || fail "$last: no process for rank 1"
    grep -q '"ph":"s","cat":"message"' "$DIR/ranks.json" || fail "$last: no flows"
    grep -q 'rank 1' "$DIR/ranks.pftrace" || fail "$last: no trace"
    bad "$DIR/none/ranks.svg cannot be written" $program --ranks 1 --simulated "$DIR/none/ranks.svg"
    bad "unknown option '--wrong'" $program --wrong
    bad "3 ranks" $program --ranks 3
done
good tensor_parallel --ranks 2 --lanes 2 --blocks 3
good expert_parallel --ranks 4 --tokens 4
good pipeline_parallel --ranks 8 --batches 1
bad "4 ranks, 6 tokens" expert_parallel --ranks 4 --tokens 6

# Over MPI, where there is one. A rank that differs is noticed by all, and none is left behind.
if [ -x "$EXAMPLES/mpi/collectives_mpi" ] && command -v mpirun > /dev/null; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    for count in 0 1 10 100003; do
        last="collectives_mpi --count $count"
        mpirun -n 3 --oversubscribe "$EXAMPLES/mpi/collectives_mpi" --count $count --runs 2 > "$DIR/out" 2>&1 ||
            fail "$last: $(cat "$DIR/out")"
        rows 19 ' good$'
    done
    last="collectives_mpi --differ 1"
    ! mpirun -n 3 --oversubscribe "$EXAMPLES/mpi/collectives_mpi" --differ 1 > "$DIR/out" 2>&1 || fail "$last: it is good"
    rows 3 '^rank [0-2]: '
    for program in tensor_parallel expert_parallel pipeline_parallel; do
        last="${program}_mpi"
        mpirun -n 4 --oversubscribe "$EXAMPLES/mpi/${program}_mpi" > "$DIR/out" 2>&1 || fail "$last: $(cat "$DIR/out")"
        rows 1 '^4 .*: good$'
    done
else
    echo "examples_test: MPI is skipped, as there is no mpirun or no mpicc"
fi

# The trees of programs that were saved and loaded are the same, and so are their fingerprints.
if [ -n "${AGAIN:-}" ]; then
    for program in attention batched_gemm csp_pipeline deadlock deepseek_block hello_workload lattice lightning_indexer llama_block \
        llama_decode matmul moe_routing quantized_matmul rmsnorm softmax tensor_data tiered_decode topk work_queue; do
        for saved in no yes; do
            last="$program, SAVED_PROGRAMS=$saved"
            SAVED_PROGRAMS=$saved FINGERPRINTS=$DIR/$program.$saved "$AGAIN/$program" > "$DIR/out" 2>&1 || fail "$last: $(cat "$DIR/out")"
            [ -s "$DIR/$program.$saved" ] || fail "$last: no fingerprints"
        done
        cmp "$DIR/$program.no" "$DIR/$program.yes" || fail "$program has other fingerprints once it has been saved and loaded"
    done
    IS_SAVING=1 EXAMPLES=$AGAIN AGAIN='' CACHE=$CACHE sh "$0"
fi
echo "examples_test: good"

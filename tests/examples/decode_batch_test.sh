#!/bin/sh
# The example as a program: its result, its bits for 1, 2 and 4 threads, its answers to bad input.
# DECODE_BATCH is the program.
set -eu
P=${DECODE_BATCH:-build/decode_batch}
DIR=$(mktemp -d)
trap 'rm -rf "$DIR"' EXIT
SMALL="--batch 12 --heads 8 --kv-heads 2 --dim 64 --kv-mib 4 --steps 1"

fail() {
    echo "decode_batch_test: $*" >&2
    exit 1
}

# good ARGUMENTS: exits with 0 and says so, in the table and as JSON.
good() {
    "$P" "$@" > "$DIR/out" 2>&1 || fail "$*: $(cat "$DIR/out")"
    grep -q 'allowed: good' "$DIR/out" || fail "$*: no 'good'"
    "$P" "$@" --json > "$DIR/out" || fail "$* --json"
    grep -q '"good": true}' "$DIR/out" || fail "$* --json: $(cat "$DIR/out")"
}

# bad TEXT ARGUMENTS: exits with 2 and says TEXT.
bad() {
    text=$1
    shift
    set +e
    "$P" "$@" > "$DIR/out" 2>&1
    code=$?
    set -e
    [ $code = 2 ] || fail "$*: exit $code, $(cat "$DIR/out")"
    grep -qF -- "$text" "$DIR/out" || fail "$*: said $(cat "$DIR/out")"
}

# The bits of the attention plan's outputs, of the chunk plan's, and of the first requests.
hash_of() {
    "$P" "$@" --json | sed 's/.*"attention_plan": {[^}]*"hash": "\([0-9a-f]*\)".*/\1/'
}
chunk_hash_of() {
    "$P" "$@" --json | sed 's/.*"chunk_plan": {[^}]*"hash": "\([0-9a-f]*\)".*/\1/'
}
requests_of() {
    "$P" "$@" --json | sed 's/.*"request_hashes": \[\([^]]*\)\].*/\1/'
}

# says TEXT ARGUMENTS: the table has it.
says() {
    text=$1
    shift
    "$P" "$@" > "$DIR/out" 2> /dev/null || fail "$*: exit $?"
    grep -q -- "$text" "$DIR/out" || fail "$*: no '$text' in $(cat "$DIR/out")"
}

# Bits depend on the lanes of the plan and not on threads.
for kv in f32 f16 bf16 i8; do
    one=$(hash_of $SMALL --kv $kv --threads 1 --lanes 5)
    chunks=$(chunk_hash_of $SMALL --kv $kv --threads 1)
    [ ${#one} = 16 ] && [ ${#chunks} = 16 ] || fail "no hash"
    for threads in 2 4; do
        [ "$one" = "$(hash_of $SMALL --kv $kv --threads $threads --lanes 5)" ] ||
            fail "$kv: other bits with $threads threads"
        [ "$chunks" = "$(chunk_hash_of $SMALL --kv $kv --threads $threads --lanes 5)" ] ||
            fail "$kv, chunk plan: other bits with $threads threads"
    done
    [ "$one" != "$(hash_of $SMALL --kv $kv --threads 1 --lanes 5 --seed 2)" ] ||
        fail "the seed changes nothing"
done
[ "$one" = "$(hash_of $SMALL --kv i8 --threads 4 --lanes 5 --stealing)" ] || fail "other bits by stealing"
[ "$one" != "$(hash_of $SMALL --kv i8 --lanes 9)" ] || fail "lanes change nothing: the test is blind"

# Invariant: nor on lanes, nor on neighbours.
for mode in "" "--prefill"; do
    one=$(hash_of $SMALL $mode --invariant --threads 1)
    requests=$(requests_of $SMALL $mode --invariant --threads 1)
    [ ${#requests} -gt 140 ] || fail "no request hashes: $requests"
    for how in "--threads 2" "--threads 4 --stealing" "--lanes 1" "--lanes 3" "--lanes 264 --threads 2"; do
        [ "$one" = "$(hash_of $SMALL $mode --invariant $how)" ] || fail "$mode --invariant: other bits with $how"
    done
    for batch in 9 13 40; do
        [ "$requests" = "$(requests_of $SMALL $mode --invariant --batch $batch --threads 2)" ] ||
            fail "$mode --invariant: other bits in a batch of $batch"
    done
done
[ "$(requests_of $SMALL --lanes 7)" != "$(requests_of $SMALL --batch 40 --lanes 7)" ] ||
    fail "balanced plans are invariant: the test is blind"

# Timelines: a span for each unit and merge.
OUT=$(mktemp -d)
good $SMALL --timeline "$OUT/step.svg"
grep -q ' ns, measured: [0-9,]* tasks' "$OUT/step.svg" || fail "no timeline"
good $SMALL --timeline "$OUT/step.pftrace"
grep -aq 'attend request=0 head=0 kv=0+' "$OUT/step.pftrace" || fail "no bars"
rm -rf "$OUT"
bad "/nowhere/step.svg: cannot be written" $SMALL --timeline /nowhere/step.svg

good $SMALL
good $SMALL --fixed --page 1 --heads 6 --kv-heads 6 --dim 16
good $SMALL --page 100 --heads 10 --dim 80 --kv f32 --units 1
good $SMALL --kv bf16 --dim 576 --page 7
good $SMALL --kv i8 --heads 14
good $SMALL --page 5000 --heads 2 --kv-heads 1 --kv-mib 64
good $SMALL --prefill --kv i8 --lanes 3
good $SMALL --prefill --invariant --heads 6 --kv-heads 6 --page 33 --dim 16
good $SMALL --prefill --stealing --threads 4 --lanes 64
good --mla --batch 6 --heads 4 --kv-mib 4 --steps 1
good --mla --batch 3 --heads 128 --kv-mib 4 --steps 1 --kv bf16 --lanes 4
good --mla --batch 3 --heads 16 --kv-mib 4 --steps 2 --kv i8 --prefill --invariant
for lanes in 1 2 31 264 65536; do
    good $SMALL --lanes $lanes
done
says "attention plan  *chunk plan" $SMALL
says "^  units  *12 " $SMALL --lanes 1 --kv-heads 1 --units 300
says "^  chunks   have no query tiles" $SMALL --prefill
says "^  chunks   are as long as they may be, and their units still more than 1$" $SMALL --units 1
printf 'TIMESTAMP,ContextTokens,GeneratedTokens\n' > "$DIR/empty.csv"
for length in 0 700 0 0 3000 1 0; do
    echo "2023-11-16 18:15:46,$length,1" >> "$DIR/empty.csv"
done
for mode in "" "--prefill" "--invariant" "--prefill --invariant" "--lanes 9" "--lanes 1 --fixed"; do
    good $SMALL --trace "$DIR/empty.csv" $mode
done
printf 'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,0,1\n' > "$DIR/zero.csv"
good $SMALL --trace "$DIR/zero.csv"
good $SMALL --trace "$DIR/zero.csv" --prefill --invariant
# Mooncake's synthetic trace reaches 191,386 tokens, which no standard tier covers.
printf '{"timestamp": 0, "input_length": 191386, "output_length": 1}\n' > "$DIR/long.jsonl"
good $SMALL --trace "$DIR/long.jsonl"
says "the longest 191,386" $SMALL --trace "$DIR/long.jsonl" --prefill --invariant
good --trace tests/examples/traces/azure.csv $SMALL
good --trace tests/examples/traces/azure.csv $SMALL --at 4.5
good --trace tests/examples/traces/azure.csv $SMALL --at 1000000
"$P" --trace tests/examples/traces/azure.csv $SMALL --at 1000000 --token-ms 20 2> /dev/null |
    grep -q 'No request is live then; the last one ends at 6.495 s$' || fail "no live request"
good --trace tests/examples/traces/azure_2024.csv $SMALL
good --trace tests/examples/traces/numbers.jsonl $SMALL
good --trace tests/examples/traces/mooncake.jsonl $SMALL
"$P" --help | grep -q 'usage: decode_batch' || fail "--help"

bad "unknown option '--wrong'" --wrong
bad "--batch takes a whole number from 1 to 65536, not '0'" --batch 0
bad "--batch takes a whole number from 1 to 65536, not '-1'" --batch -1
bad "--batch takes a whole number from 1 to 65536, not '3x'" --batch 3x
bad "--batch takes a whole number from 1 to 65536, not ''" --batch
bad "--batch takes a whole number" --batch 99999999999999999999999
bad "--kv takes f32, f16, bf16 or i8, not 'f8'" --kv f8
bad "--heads 8 is not a multiple of --kv-heads 3" --heads 8 --kv-heads 3
bad "--dim 20 is not a multiple of 8" --dim 20
bad "--at needs --trace" --at 5
bad "--lanes takes a whole number from 1 to 65536, not '0'" --lanes 0
bad "--lanes takes a whole number from 1 to 65536, not '65537'" --lanes 65537
bad "--lanes takes a whole number from 1 to 65536, not '--json'" --lanes --json
bad "unknown option '1'; see --help" --invariant 1
bad "--mla has one KV head of 576: no --dim" --mla --dim 64
bad "--mla has one KV head of 576: no --kv-heads" --kv-heads 1 --mla
bad "--token-ms takes a number" --token-ms 0
bad "--trace takes a text" --trace
bad "--kv takes a text" --kv
bad "--at takes a number" --trace tests/examples/traces/azure.csv --at nan
bad "--kv-mib 1 has no room for one page" --kv-mib 1 --page 65536

H='TIMESTAMP,ContextTokens,GeneratedTokens'
# trace TEXT CONTENT: a trace file with this content is refused with TEXT.
trace() {
    printf "$2" > "$DIR/trace"
    bad "$1" $SMALL --trace "$DIR/trace"
}
bad "missing.csv: cannot be opened" --trace missing.csv
bad "cannot be" --trace tests
trace ":1: the file is empty" ""
trace ":1: the first line is neither" "A,B\n1,2\n"
trace ":2: there is no request" "$H\n\n"
trace ":2: GeneratedTokens is missing" "$H\n2023-11-16 18:15:46.68,374"
trace ":2: ContextTokens is missing" "$H\n2023-11-16 18:15:46"
trace ":2: there is more than the 3 columns" "$H\n2023-11-16 18:15:46,1,2,3\n"
trace ":3: ContextTokens is negative" "$H\n2023-11-16 18:15:46,1,2\n2023-11-16 18:15:46,-1,2\n"
trace ":2: ContextTokens is greater than 2147483647" "$H\n2023-11-16 18:15:46,99999999999,2\n"
trace ":2: ContextTokens is greater than 2147483647" "$H\n2023-11-16 18:15:46,99999999999999999999999999,2\n"
trace ":2: GeneratedTokens is not a number" "$H\n2023-11-16 18:15:46,1,\n"
trace ":2: TIMESTAMP is not like" "$H\n2023-11-00 00:00:00,1,2\n"
trace ":2: TIMESTAMP is not like" "$H\n2023-1-1 1:1:1,1,2\n"
trace ":2: TIMESTAMP has a day that its month has not" "$H\n2023-02-29 00:00:00,1,2\n"
trace ":1: input_length stands there twice" '{"timestamp": 0, "input_length": 1, "input_length": 2}\n'
trace ":2: TIMESTAMP is not like" "$H\n2023/11/16,1,2\n"
trace ":1: the line is cut off" '{"timestamp": 0, "input_length": 10, "output_length": 5'
trace ":1: the list hash_ids is cut off" '{"timestamp": 0, "hash_ids": [0, 1'
trace ":1: output_length is missing" '{"timestamp": 0, "input_length": 10}\n'
trace ":2: input_length is negative" '{"timestamp": 0, "input_length": 1, "output_length": 1}\n{"timestamp": 0, "input_length": -1, "output_length": 1}\n'
trace ":1: input_length is greater than 2147483647" '{"timestamp": 0, "input_length": 3000000000, "output_length": 1}\n'
trace ":1: input_length is not a whole number" '{"timestamp": 0, "input_length": 1.5, "output_length": 1}\n'
trace ":2: TIMESTAMP has a zone that is not like +00:00" "$H\n2024-05-10 00:00:00+1,1,2\n"
trace ":1: input_length is not a number" '{"timestamp": 0, "input_length": "ten", "output_length": 1}\n'
trace ":1: a member's name is missing" '{}\n'
trace ":1: there is text behind the }" '{"timestamp": 0, "input_length": 1, "output_length": 1} x\n'
for arguments in "$SMALL" "$SMALL --json" "--help"; do
    set +e
    "$P" $arguments > /dev/full 2> "$DIR/err"
    code=$?
    set -e
    [ $code = 2 ] && grep -q "cannot write the output" "$DIR/err" || fail "$arguments > /dev/full: exit $code"
done
echo "decode_batch_test: good"

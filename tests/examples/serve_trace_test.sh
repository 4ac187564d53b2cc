#!/bin/sh
# The serving simulation as a program: the same output for any number of threads, sums, known numbers,
# pictures and JSON read by other parsers, bad input. SERVE_TRACE is the program.
set -eu
P=${SERVE_TRACE:-build/serve_trace}
DIR=$(mktemp -d)
trap 'rm -rf "$DIR"' EXIT
SMALL="--requests 120"

fail() {
    echo "serve_trace_test: $*" >&2
    exit 1
}

# good ARGUMENTS: exits with 0 and finds its sums right.
good() {
    "$P" "$@" > "$DIR/out" 2> "$DIR/err" || fail "$*: exit $?, $(cat "$DIR/err")"
    grep -q "the cache: good$\|^\"good\": true}$" "$DIR/out" || fail "$*: $(cat "$DIR/out")"
    [ ! -s "$DIR/err" ] || fail "$*: said $(cat "$DIR/err")"
}

# says TEXT: the last output has it.
says() {
    grep -q -- "$1" "$DIR/out" || fail "no '$1' in $(cat "$DIR/out")"
}

# bad TEXT ARGUMENTS: exits with 2, says TEXT, and prints nothing.
bad() {
    text=$1
    shift
    set +e
    "$P" "$@" > "$DIR/out" 2> "$DIR/err"
    code=$?
    set -e
    [ $code = 2 ] || fail "$*: exit $code, $(cat "$DIR/err")"
    grep -qF -- "$text" "$DIR/err" || fail "$*: said $(cat "$DIR/err")"
    [ ! -s "$DIR/out" ] || fail "$*: printed $(cat "$DIR/out")"
}

# Threads run policies at a time; nothing else may depend on them.
for mode in "" "--trace tests/examples/traces/mooncake.jsonl" "--kv-tokens 9000 --batch 16 --page 64" \
    "--model deepseek --machine 950pr --hours 0.02 --rate 2"; do
    for threads in 1 2 4 7; do
        good $SMALL $mode --json --threads $threads --svg "$DIR/$threads.svg" --html "$DIR/$threads.html" \
            --perfetto "$DIR/$threads.pftrace"
        mv "$DIR/out" "$DIR/$threads.json"
        for file in json svg html pftrace; do
            cmp -s "$DIR/1.$file" "$DIR/$threads.$file" || fail "$mode: another $file with $threads threads"
        done
    done
done
good $SMALL --json --svg "$DIR/first.svg" --perfetto "$DIR/first.pftrace"
mv "$DIR/out" "$DIR/first.json"
# More requests at once than rows: the rest is counted.
good --requests 2000 --rate 500 --json --perfetto "$DIR/crowd.pftrace"
mv "$DIR/out" "$DIR/crowd.json"
good $SMALL --json --seed 2
! cmp -s "$DIR/out" "$DIR/first.json" || fail "the seed has no effect"

# Numbers on paper. One request of 374 tokens and 44 of output; a device without limits but 1 ms for
# each of 32 layers, so steps of at least 32 ms: the first token after one, the rest after 43.
printf 'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n' > "$DIR/one.csv"
good --trace "$DIR/one.csv" --layer-us 1000000 --policies fcfs:512:balanced,fcfs:100:chunks
says "^  steps  *44  *47$"
says "^  output tokens/s  *0.0  *0.0$"
says "1 requests in 0 s, 374 tokens in, 44 out"
says "p50  *32.[0-9]*[*]  *128.[0-9]*$"
# 128.04 / 32.02 is 3.999.
says "^99 % of first tokens come within 32.02 s with first come first served, 512 tokens a step, balanced plan; the other takes 299.9 % more.$"
says "8.0 G parameters of 2 bytes, 128.0 KiB of KV for a token"
says "1 x Ascend 910B: 363.7 TFLOP/s, 1421 GB/s, 24 lanes; a cache of 349,328 tokens in pages of 16"

# Requests that can never run are counted, also if there are no others.
printf 'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n2023-11-16 18:15:47,0,5\n' > "$DIR/none.csv"
good --trace "$DIR/none.csv" --kv-tokens 416 --svg "$DIR/none.svg" --html "$DIR/none.html"
says "^  requests done  *0  *0  *0  *0$"
says "^  refused: empty, or too large  *2  *2  *2  *2$"
good --trace "$DIR/none.csv" --kv-tokens 417 --page 1 --json
good --trace "$DIR/none.csv" --kv-tokens 417 --page 1
says "^  requests done  *1  *1  *1  *1$"

# Prefixes are found, and a cache that is too small preempts; the sums hold in all of these.
printf '{"timestamp": 0, "input_length": 1100, "output_length": 5, "hash_ids": [1, 2, 3]}\n{"timestamp": 9000, "input_length": 1100, "output_length": 5, "hash_ids": [1, 2, 4]}\n' > "$DIR/two.jsonl"
good --trace "$DIR/two.jsonl"
says "^  prefix reuse, %  *46.5  *46.5  *46.5  *46.5$"
good --trace "$DIR/two.jsonl" --page 100
says "^  prefix reuse, %  *0.0  *0.0  *0.0  *0.0$"
good $SMALL --rate 100 --kv-tokens 12000 --requests 300
! grep -q "^  preemptions  *0  *0  *0  *0$" "$DIR/out" || fail "no preemption: the test is blind"
good $SMALL --page 7 --batch 1
good $SMALL --page 512 --policies shortest:1:chunks,fcfs:1048576:balanced
good $SMALL --every-head --plan-every 1 --tile-rows 7 --units 1
good $SMALL --devices 8 --layers 3 --hidden 512 --heads 16 --kv-heads 2 --dim 64 --ffn 100 --vocab 1000
good $SMALL --experts 8 --top-k 2 --weight-bits 4 --layer-us 20.5 --efficiency 0.5
good $SMALL --trace tests/examples/traces/burstgpt.csv
says "3 requests in 113 s, 1,976 tokens in, 524 out"
good $SMALL --trace tests/examples/traces/azure_2024.csv --hours 0.01 --speed 0.1
good $SMALL --trace tests/examples/traces/azure.csv --svg "$DIR/a&b<c>\".svg" --machine 950pr
good $SMALL --trace tests/examples/traces/numbers.jsonl --speed 1000000
good $SMALL --model deepseek --requests 20 --memory-share 1 --memory-gib 200
good --calibrate --requests 3 --threads 2 --rate 0.001 --layers 1 --policies fcfs:512:balanced
says "this CPU ("

# The picture in the README of the examples is that of the program.
good --svg "$DIR/picture.svg"
cmp "$DIR/picture.svg" examples/pictures/serve_trace.svg ||
    fail "another picture: build/serve_trace --svg examples/pictures/serve_trace.svg makes it anew"

# Other parsers read JSON, SVG and HTML.
cp "$DIR/one.csv" "$DIR/<&\"'>.csv"
odd=$(printf 'caf\303\251 \342\202\254 \360\237\230\200 \351 \300\257 \355\240\200 \001\t.csv')
cp "$DIR/one.csv" "$DIR/$odd"
good --trace "$DIR/$odd" --svg "$DIR/odd.svg" --html "$DIR/odd.html" --json
mv "$DIR/out" "$DIR/odd.json"
good $SMALL --json --every-head --plan-every 1
mv "$DIR/out" "$DIR/exact.json"
good --trace "$DIR/<&\"'>.csv" --svg "$DIR/quotes.svg" --html "$DIR/quotes.html" --json
mv "$DIR/out" "$DIR/quotes.json"
if command -v python3 > /dev/null 2>&1; then
    python3 - "$DIR" << 'EOF' || fail "python3 does not read it"
import json, re, struct, sys, xml.etree.ElementTree as tree
at = sys.argv[1] + "/"
name = "<&\"'>.csv"
assert json.load(open(at + "quotes.json"))["source"] == name + " (Azure CSV)"
odd = "caf\u00e9 \u20ac \U0001f600 ? ?? ??? "
assert json.load(open(at + "odd.json", encoding="utf-8"))["source"] == odd + "\1\t.csv (Azure CSV)"
assert odd + "??.csv (Azure CSV)" in "".join(tree.parse(at + "odd.svg").getroot().itertext())
for stem in ("quotes", "odd", "1", "none"):
    svg = tree.parse(at + stem + ".svg").getroot()
    page = tree.fromstring(open(at + stem + ".html", encoding="utf-8").read().split("\n", 1)[1])
    space = "{http://www.w3.org/2000/svg}"
    assert svg.tag == space + "svg" and page.find(".//" + space + "svg") is not None
    text = "".join(svg.itertext())
    assert "nan" not in text and "inf" not in text
    assert stem != "quotes" or name in text
    for path in svg.iter(space + "path"):
        assert "nan" not in path.get("d") and "inf" not in path.get("d")
r = json.load(open(at + "first.json"))
assert r["good"] and r["requests"] == 120 and len(r["policies"]) == 4
# Each bar of the picture says its latency and the difference to the first policy; the lowest is marked.
bars = tree.parse(at + "first.svg").getroot()
texts = ["".join(t.itertext()) for t in bars.iter(space + "text")]
marks = [b for b in bars.iter(space + "rect") if b.get("class").startswith("bar")]
assert len(marks) == 16
column = 0
for metric, scale, unit in (("first_token_s", 1, "s"), ("per_token_s", 1e3, "ms")):
    for quantile in ("p50", "p99"):
        values = [p[metric]["all"][quantile] for p in r["policies"]]
        for i, value in enumerate(values):
            bar, shown = marks[4 * column + i], value * scale
            said = f"{shown:.{3 if shown < 1 else 2}f} {unit}"
            change = (value / values[0] - 1) * 100
            said += f", {abs(change):.1f} % {'less' if change < 0 else 'more'}" if i else ""
            assert said in texts, (said, texts)
            assert abs(float(bar.get("width")) - 146 * value / max(values)) < 0.06
            assert (bar.get("class") == "bar lowest") == (i == values.index(min(values)))
        column += 1
assert texts.count("first come first served") == 6 and texts.count("shortest prompt first") == 2
assert texts.count("512 tokens a step, equal chunks") == texts.count("2,048 tokens a step, balanced plan") == 2
assert len([t for t in texts if "log scale" in t]) == 2
# Plans of one group of heads, and not in each step, come to the same within half a percent.
for p, exact in zip(r["policies"], json.load(open(at + "exact.json"))["policies"]):
    assert exact["plans"] == exact["steps"] > p["plans"]
    assert abs(p["step_ms"] / exact["step_ms"] - 1) < 0.005, (p["step_ms"], exact["step_ms"])
for p in r["policies"]:
    assert p["done"] + p["refused"] == r["requests"]
    assert p["input_tokens"] == r["input_tokens"] and p["output_tokens"] == r["output_tokens"]
    # KV is stored for all tokens but the last of each request.
    stored = p["computed_tokens"] + p["reused_tokens"] + p["decoded_tokens"] - p["lost_tokens"]
    assert stored == r["input_tokens"] + r["output_tokens"] - r["requests"]
    assert p["pages_max"] <= p["pages"] and p["kv_max"] <= 1
    assert all(0 <= t["kv"] <= p["kv_max"] * 1.00001 for t in p["over_time"])
    assert all(t["waiting"] <= p["waiting_max"] * 1.00001 for t in p["over_time"])
    waiting = sum(t["waiting"] for t in p["over_time"]) * p["interval_s"] / p["seconds"]
    assert abs(waiting - p["waiting_mean"]) <= 1e-3 * max(waiting, 1e-3)
    # All that requests were there is their waiting and running: Little's law.
    spent = p["total_s"]["all"]["mean"] * p["done"]
    assert abs(spent - (p["waiting_mean"] + p["running_mean"]) * p["seconds"]) <= 1e-6 * spent
    for metric in ("first_token_s", "per_token_s", "total_s"):
        assert sum(p[metric][c]["count"] for c in ("short", "medium", "long")) == p[metric]["all"]["count"]
        for c in p[metric].values():
            assert c["p50"] <= c["p90"] <= c["p99"] <= c["max"]

# The trace, read by field numbers of Perfetto's schema: slices nest, and are the requests of the JSON.
def fields(data):
    at, result = 0, []
    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value
    while at < len(data):
        key = varint()
        if key & 7 == 0:
            result.append((key >> 3, varint()))
        else:
            size = {1: 8, 2: None}[key & 7]
            size = varint() if size is None else size
            assert at + size <= len(data)
            result.append((key >> 3, data[at:at + size]))
            at += size
    return result

def read_trace(path, report):
    names, parents, stacks, slices, counts, first = {}, {}, {}, {}, {}, True
    for number, packet in fields(open(path, "rb").read()):
        assert number == 1
        p = dict(fields(packet))
        assert p[10] == 1 and (p.get(13) == 1) == (p.get(87) == 1) == first
        first = False
        if 60 in p:
            d = dict(fields(p[60]))
            assert d[1] and d[1] not in names
            inner = dict(fields(d.get(3, d.get(4, b""))))
            names[d[1]] = inner.get(6, inner.get(5, d.get(2))).decode()
            parents[d[1]] = ("track", d[5]) if 5 in d else inner[1]  # or a process by its pid
            continue
        e = dict(fields(p[11]))
        track = e[11]
        if e[9] == 4:
            counts.setdefault(track, []).append((p[8], struct.unpack("<d", e[44])[0]))
        elif e[9] == 1:
            stack = stacks.setdefault(track, [])
            assert stack or p[8] >= slices.get(track, [(0, 0)])[-1][1]
            assert not stack or p[8] >= stack[-1][0]
            stack.append((p[8], e[23].decode()))
        else:
            begin, name = stacks[track].pop()
            assert e[9] == 2 and p[8] >= begin
            slices.setdefault(track, []).append((begin, p[8], name))
    assert not any(stacks.values())
    for i, policy in enumerate(report["policies"]):
        process = [t for t in names if parents[t] == i + 1 and not names[t].startswith("row ")]
        assert len(process) == 1
        mine = [s for t in slices if parents[t] == i + 1 for s in slices[t]]
        asked = [s for s in mine if s[2].startswith("request ")]
        left_out = names[process[0]].partition(" (")[2]
        left_out = int(left_out.split()[0]) if left_out.endswith("are left out)") else 0
        assert len(asked) + left_out == policy["done"], (len(asked), left_out)
        yield left_out
        if left_out:
            continue
        total = sum(s[1] - s[0] for s in asked) / 1e9
        waited = sum(s[1] - s[0] for s in mine if s[2] == "waiting and prompt") / 1e9
        assert abs(total - policy["total_s"]["all"]["mean"] * policy["done"]) <= 1e-6 * total
        assert abs(waited - policy["first_token_s"]["all"]["mean"] * policy["done"]) <= 1e-6 * total
        assert total >= waited + sum(s[1] - s[0] for s in mine if s[2] == "decoding") / 1e9 - 1e-6
        tokens = [re.match(r"request \d+: (\d+) in, (\d+) out$", s[2]).groups() for s in asked]
        assert sum(int(a) for a, b in tokens) == policy["input_tokens"]
        assert sum(int(b) for a, b in tokens) == policy["output_tokens"]
        for name, mean in (("waiting", "waiting_mean"), ("running", "running_mean")):
            (track,) = [t for t in names if names[t] == name and parents[t] == ("track", process[0])]
            area = sum(value for when, value in counts[track]) * policy["interval_s"]
            assert abs(area / policy["seconds"] - policy[mean]) <= 1e-6 * max(policy[mean], 1e-3)

assert sum(read_trace(at + "first.pftrace", r)) == 0
assert sum(read_trace(at + "crowd.pftrace", json.load(open(at + "crowd.json")))) > 0
EOF
fi
"$P" --help | grep -q 'usage: serve_trace' || fail "--help"

# Bad options.
bad "unknown option '--wrong'" --wrong
bad "--requests takes a whole number from 1 to 100000000, not '0'" --requests 0
bad "--rate takes a number from 0.000001 on" --rate 0
bad "--speed takes a number from 0.000001 on" --speed 0
bad "--efficiency takes a number from 0 to 1, not '2'" --efficiency 2
bad "--memory-share takes a number from 0 to 1, not '-1'" --memory-share -1
bad "--hours takes a number" --hours nan
bad "--batch takes a whole number from 1 to 65536, not ''" --batch
bad "--machine takes 910b or 950pr, not '910c'" --machine 910c
bad "--machine and --calibrate do not go together" --machine 910b --calibrate
bad "--model takes llama or deepseek, not 'gpt'" --model gpt
bad "--model deepseek has one KV head of 576: no --dim" --model deepseek --dim 64
bad "--expert-ffn needs --experts" --expert-ffn 64
bad "--top-k 9 is more than --experts 8" --experts 8 --top-k 9
bad "--heads 32 is not a multiple of --kv-heads 5" --kv-heads 5
bad "--heads 32 is not a multiple of --devices 3" --devices 3
bad "--kv-heads 6 and --devices 4: neither is a multiple of the other" --heads 36 --kv-heads 6 --devices 4
bad "no room for KV: 15.0 GiB of weights on each of 1 device with 16.0 GiB" --memory-gib 16
bad "no room for KV" --kv-tokens 15
bad "--calibrate needs a --dim that is a multiple of 8 up to 576" --calibrate --dim 20
bad "--hours 1000 at --rate 1000 are more than 10^8 requests" --hours 1000 --rate 1000
for policies in "" fcfs fcfs:512 fcfs:512: fcfs::balanced :512:balanced fcfs:0:balanced fcfs:5x:balanced \
    fcfs:-5:balanced lifo:512:balanced fcfs:512:even fcfs:512:balanced, ,fcfs:512:balanced \
    fcfs:512:balanced,,fcfs:512:balanced fcfs:512:balanced:x fcfs:1048577:balanced \
    fcfs:99999999999999999999:balanced; do
    bad "--policies takes" --policies "$policies"
done
eight=fcfs:1:chunks,fcfs:2:chunks,fcfs:3:chunks,fcfs:4:chunks,fcfs:5:chunks,fcfs:6:chunks,fcfs:7:chunks,fcfs:8:chunks
good --requests 5 --policies $eight
bad "--policies takes up to 8" --policies $eight,fcfs:9:chunks

# Bad files.
bad "missing.csv: cannot be opened" --trace missing.csv
bad "cannot be written" $SMALL --svg "$DIR/no/such.svg"
bad "cannot be written" $SMALL --html "$DIR"
bad "cannot be written" $SMALL --perfetto "$DIR"
H='TIMESTAMP,ContextTokens,GeneratedTokens'
trace() {
    printf "$2" > "$DIR/trace"
    bad "$1" --trace "$DIR/trace"
}
trace ":1: the file is empty" ""
trace ":2: there is no request" "$H\n\n"
trace ":2: GeneratedTokens is missing" "$H\n2023-11-16 18:15:46.68,374"
trace ":1: the list hash_ids is cut off" '{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [0, 1'
trace ":1: the line is cut off" '{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [0, 1]'
trace ":1: hash_ids is not a number" '{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [0, "a"]}'
trace "the requests come over more than 285 years" \
    '{"timestamp": 0, "input_length": 1, "output_length": 1}\n{"timestamp": 92233720368547758, "input_length": 1, "output_length": 1}\n'
trace ":2: GeneratedTokens is greater than 2147483647" "$H\n2023-11-16 18:15:46,1,99999999999\n"
if [ -w /dev/full ]; then
    for arguments in "$SMALL" "$SMALL --json" "--help"; do
        set +e
        "$P" $arguments > /dev/full 2> "$DIR/err"
        code=$?
        set -e
        [ $code = 2 ] && grep -q "cannot write the output" "$DIR/err" || fail "$arguments > /dev/full: exit $code"
    done
    bad "/dev/full: cannot be written" $SMALL --svg /dev/full
    bad "/dev/full: cannot be written" $SMALL --perfetto /dev/full
fi
echo "serve_trace_test: good"

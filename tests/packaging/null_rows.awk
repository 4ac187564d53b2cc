# Makes null_calls.h from null_values, structures and declarations, in this order (null_test.sh).
#
# A line of null_values gives a valid value: of a parameter "function.name", of every parameter
# "type name", or of a type. "optional" before "function.name", "type name" or a type: it may be NULL,
# "structure.field": with any count.

function trim(s) { sub(/^ +/, "", s); sub(/ +$/, "", s); return s }

BEGIN { n = 0 }
FNR == 1 { file++ }

file == 1 {
    if ($0 ~ /^#/ || NF == 0) next
    line = $0
    if (sub(/^(fails|skipped) /, "", line)) { valid[trim(line)] = $1 == "fails" ? "FAILS" : "SKIPPED"; next }
    if (sub(/^required /, "", line)) { required[trim(line)] = 1; next }
    if (sub(/^optional /, "", line)) { optional[trim(line)] = 1; next }
    at = index(line, " = ")
    values[trim(substr(line, 1, at - 1))] = trim(substr(line, at + 3))
    next
}

# Structures, one on a line: their pointers, and the count that follows one.
file == 2 {
    match($0, /^typedef struct [a-z_0-9]+/)
    name = substr($0, 16, RLENGTH - 15)
    body = $0; sub(/^[^{]*[{]/, "", body); sub(/[}][^}]*$/, "", body)
    field_count = split(body, parts, ";")
    pointer = 0
    for (i = 1; i <= field_count; i++) {
        part = trim(parts[i])
        gsub(/ *= *[^,]*/, "", part)
        if (part ~ /\(\*[a-z_]+\)/) {
            match(part, /\(\*[a-z_]+\)/); field = substr(part, RSTART + 2, RLENGTH - 3)
        } else if ((part ~ /\*/ || part ~ /_fn [a-z_]+$/) && part !~ /,/) {
            field = part; sub(/^.*[ *]/, "", field)
            if (field ~ /\[/ || part ~ /\[/) { pointer = 0; continue }
        } else {
            if (pointer && part ~ /^uint(32|64)_t [a-z_]*(count|capacity)$/) {
                field = part; sub(/^.* /, "", field)
                count_of[name, pointer] = field
            }
            pointer = 0
            continue
        }
        pointer = ++pointers[name]
        pointer_names[name, pointer] = field
    }
    next
}

function value_of(fn, type, name,    v) {
    if ((fn "." name) in values) return values[fn "." name]
    if ((type " " name) in values) return values[type " " name]
    if (type in values) return values[type]
    if (("* " name) in values) return values["* " name]
    if (name ~ /^out_/ && type ~ /\*/) return "(void *)written"
    printf "null: no value for %s(%s %s): add one to tests/packaging/null_values\n", fn, type, name > "/dev/stderr"
    failed = 1
    return "0"
}

function is_optional(fn, type, name) {
    if ((fn "." name) in required) return 0
    return (fn "." name) in optional || (type " " name) in optional || type in optional || \
        ("* " name) in optional
}

{
    match($0, /ptowsp_[a-z0-9_]+\(/)
    returns = trim(substr($0, 1, RSTART - 1)); fn = substr($0, RSTART, RLENGTH - 1)
    list = substr($0, RSTART + RLENGTH); sub(/\)[^)]*$/, "", list)
    count = split(list, texts, ",")
    has = 0
    for (i = 1; i <= count; i++) {
        p = trim(texts[i])
        types[i] = p; sub(/[a-z_0-9]+$/, "", types[i]); types[i] = trim(types[i])
        params[i] = substr(p, match(p, /[a-z_0-9]+$/))
        is_pointer[i] = types[i] ~ /\*/ || types[i] ~ /_fn$/ || types[i] ~ /^ptowsp_(text|output)$/
        has += is_pointer[i]
    }
    functions++
    if (!has) next
    handle = types[1]; sub(/^const /, "", handle)
    is_const = types[1] ~ /^const/
    if (handle !~ /^ptowsp_(context|module|body|program|run|graph|device|hub|ranks|tuning|npu|dump)\*$/) handle = ""
    vars = sets = args = ""
    for (i = 1; i <= count; i++) {
        v = "v" n "_" i
        vars = vars "static " types[i] " " v "; "
        sets = sets v " = " value_of(fn, types[i], params[i]) "; "
        args = args (i > 1 ? ", " : "") v
    }
    print vars
    if (returns == "ptowsp_status") kind = "STATUS"
    else if (returns == "void") kind = "VOID"
    else kind = "VALUE"
    gsub(/self\./, "v" n "_", sets)
    printf "static void prepare%d(void) { %s}\n", n, sets
    if (kind == "STATUS") printf "static int64_t call%d(void) { return %s(%s); }\n", n, fn, args
    else if (kind == "VOID") printf "static int64_t call%d(void) { %s(%s); return 0; }\n", n, fn, args
    else printf "static int64_t call%d(void) { %s r = %s(%s); return is_set(&r, sizeof r); }\n", n, returns, fn, args
    call_rows = call_rows "    {\"" fn "\", " kind ", prepare" n ", call" n ", \"" (is_const && handle != "" ? "const " : "") handle "\", " (fn in valid ? valid[fn] : "GOOD") "},\n"
    for (i = 1; i <= count; i++) {
        if (!is_pointer[i]) continue
        v = "v" n "_" i; counted = "NULL, 0"
        if (types[i] ~ /\*/ && types[i + 1] ~ /^(uint32_t|uint64_t|size_t)$/ && i < count &&
            params[i + 1] ~ /(count|capacity|size|length|bytes|rank|_max)$/)
            counted = "&v" n "_" (i + 1) ", sizeof v" n "_" (i + 1)
        param_rows = param_rows "    {" n ", " i - 1 ", \"" params[i] "\", &" v ", " \
            (is_optional(fn, types[i], params[i]) ? "true" : "false") ", " counted "},\n"
        if (types[i] !~ /\*/) continue
        base = types[i]; sub(/^const /, "", base); sub(/\*$/, "", base)
        for (k = 1; k <= pointers[base]; k++) {
            field = pointer_names[base, k]
            c = (base, k) in count_of ? "offsetof(" base ", " count_of[base, k] "), sizeof(((" base " *)0)->" count_of[base, k] ")" : "0, 0"
            field_rows = field_rows "    {" n ", \"" params[i] "\", \"" field "\", &" v ", sizeof(" base "), offsetof(" base ", " field "), " c ", " \
                ((base "." field) in optional ? "true" : "false") "},\n"
        }
    }
    n++
}

END {
    printf "static const call_row calls[] = {\n%s};\n", call_rows
    printf "static const param_row params[] = {\n%s};\n", param_rows
    printf "static const field_row fields[] = {\n%s};\n", field_rows
    printf "enum { FUNCTION_COUNT = %d };\n", functions
    exit failed
}

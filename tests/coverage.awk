# Coverage of src/ as a table: a row for each floor, or for each file.
#
#      awk -f coverage.awk -v by=floor|file|place SOURCES... coverage.lcov coverage.regions
#
# With by=place, it is a list of lines and sides of branches that are not reached, with their text.
#
# SOURCES are the files of src/, ptoisa_shim.h, which is made of src/isa/, and files of emitted trees,
# which are made of src/npu/tree/ (NAME.made): their lines count as those of the file that they come
# from, since the tests of instructions include the shim, and others compile trees.
# coverage.lcov has the counts of lines, as llvm-cov exports them; coverage.regions branches and
# decisions, from its JSON (coverage.sh); counts of other machines follow. A place that several programs
# were compiled with counts as reached if one of them reaches it.
#
# What is not counted:
#      }                          a line with a closing brace alone
#      is_good || NAME_fail(...)  the side of a call of NAME_fail, NAME_refuse_WHAT or ptoisa_fault that
#                                 would be true: they report an error, and are false
#      lines of the preprocessor  macros count where they are used; their branches where they are defined
#      PTOWSP_ASSERT(...)         its failing side is not to be reached, also behind "default:" and in
#                                 PWSP_PTHREAD(...), which asserts that a call works
#      PTOWSP_ASSERT(0 && "...")  cannot be reached, and says why; counted as the next. The return, or
#                                 the break, behind it, and the cases before it
#      if (PWSP_NEVER(...)) {}    cannot be reached, and says why; these are counted by themselves
#                                 (WSP_NEVER in trees)
#      PWSP_ALWAYS(...)           is a constant in builds for coverage: what it says on further lines
#      sizeof(T) == 1             a condition that is a constant here: llvm-cov lists no branch of it

function relative(path) {
    # Of an emitted tree, where no two files have one name; build/npu/text/ has the one that tests take
    # precompiled headers from.
    if (path ~ /\.made$/ || (path ~ /\/(tree|text\/[^\/]+)\/[a-z]+\/[^\/]+$/ && path !~ /src\/npu\/tree\//)) {
        sub(/^.*\//, "tree/", path)
        sub(/\.made$/, "", path)
    }
    sub(/^.*\/src\//, "src/", path)
    sub(/^.*\/ptoisa_shim\.h$/, "ptoisa_shim.h", path)
    return path
}

# Is a file made of others?
function is_made(file) {
    return file == "ptoisa_shim.h" || file ~ /^tree\//
}

# The file and line that a line of such a file comes from. Of other files than SOURCES nothing is counted.
function origin(file, line) {
    if (is_made(file)) {
        return from[file, line]
    } else if (file in length_of) {
        return file SUBSEP line
    }
    others[file]
    return ""
}

function text_of(place,    part) {
    split(place, part, SUBSEP)
    return text[part[1], part[2]]
}

# Does an if with a condition that never holds depend on it alone, or on others with it?
function is_never_met(text,    at, depth, rest) {
    at = index(text, "NEVER(") + 6
    for (depth = 1; depth > 0 && at <= length(text); at++) {
        depth += substr(text, at, 1) == "("
        depth -= substr(text, at, 1) == ")"
    }
    rest = substr(text, at)
    sub(/NEVER\(.*/, "", text)
    return text !~ /\|\|/ && rest !~ /\|\|/
}

function group(file,    parts) {
    if (by == "file") {
        return file
    }
    split(file, parts, "/")
    return parts[2] == "npu" && parts[3] == "tree" ? "npu/tree" : parts[2]
}

function add_group(name) {
    if (!(name in is_group)) {
        is_group[name] = 1
        groups[++group_count] = name
    }
}

# -- sources: what is excluded, and where the shim's lines come from ------------------------------

FNR == 1 {
    input++
    kind = FILENAME ~ /\.lcov$/ ? "lines" : FILENAME ~ /\.regions$/ ? "regions" : "source"
    source = relative(FILENAME)
    in_assert = in_directive = in_condition = in_always = 0
    never_indent = -1
    at = 0
    section = ""
}

kind == "source" && !is_made(source) {
    add_group(group(source))
    text[source, FNR] = $0
    length_of[source] = FNR
    if ($0 ~ /^ *\}$/) {
        is_never[source, FNR] = 1
    }
    if (is_behind_never && $0 ~ /^ *(return|break|\})/) {
        is_never[source, FNR] = 1
    }
    is_behind_never = $0 ~ /PTOWSP_ASSERT\((0 &&|false)/ || (is_behind_never && $0 ~ /^ *(return|break)/)
    if ($0 ~ /^ *(default: )?(PTOWSP_ASSERT|PTOISA_ASSERT|NPU_ASSERT|PWSP_PTHREAD|assert)\(/ || $0 ~ /_Static_assert/) {
        in_assert = 1
    }
    if (in_assert) {
        is_assert[source, FNR] = 1
        in_assert = $0 !~ /;/
    }
    if (never_indent >= 0) {
        is_never[source, FNR] = is_assert[source, FNR] = 1
        match($0, /^ */)
        if ($0 ~ /^ *\}/ && RLENGTH == never_indent) {
            never_indent = -1
        }
    }
    in_directive = in_directive || $0 ~ /^ *#/
    if (in_directive) {
        is_never[source, FNR] = is_macro[source, FNR] = 1
        in_directive = $0 ~ /\\$/
    }
    if ($0 ~ /PTOWSP_ASSERT\((0 &&|false)/) {
        marks[group(source)]++
        is_never[source, FNR] = is_assert[source, FNR] = 1
        for (i = FNR - 1; text[source, i] ~ /^ *(case [A-Za-z0-9_]+|default):( *\/\/.*)?$/; i--) {
            is_never[source, i] = is_assert[source, i] = 1
        }
    }
    if (source != "src/base/base.h" && $0 ~ /(PWSP|NPU|WSP)_(NEVER|ALWAYS)\(/ && $0 !~ /# *define/) {
        marks[group(source)]++
        is_assert[source, FNR] = 1
        match($0, /^ */)
        condition_indent = RLENGTH
        condition = ""
        in_condition = $0 ~ /if \(.*NEVER\(/
        in_always = $0 ~ /ALWAYS\([^;]*$/
    } else if (in_always) {
        is_never[source, FNR] = is_assert[source, FNR] = 1
        in_always = $0 !~ /;$/
    }
    if (in_condition) {
        is_assert[source, FNR] = 1
        condition = condition $0
        in_condition = $0 !~ /\{ *(\/\/.*)?$/
        if (!in_condition && is_never_met(condition)) {
            never_indent = condition_indent
        }
    }
}

# Such a file has the lines of its parts in their order, less some.
kind == "source" && is_made(source) {
    if ($0 ~ /^\/\/ == src\/.*\.(c|h|cpp) =*$/) {
        section = $3
        at = 0
    } else if (section != "" && $0 != "") {
        for (i = at + 1; i <= length_of[section] && text[section, i] != $0; i++) {
        }
        if (i <= length_of[section]) {
            at = i
            from[source, FNR] = section SUBSEP i
        }
    }
}

# -- lines ----------------------------------------------------------------------------------------

kind == "lines" && /^SF:/ {
    file = relative(substr($0, 4))
    function_at = ""
    split("", line_of)
    split("", is_start)
    split("", runs_here)
}

# A function begins at such a line; so often it ran.
kind == "lines" && /^FN:/ {
    split(substr($0, 4), part, ",")
    line_of[part[2]] = part[1]
    is_start[part[1]]
}

kind == "lines" && /^FNDA:/ {
    split(substr($0, 6), part, ",")
    if (part[1] > 0) {
        has_run[file, line_of[part[2]]]
        runs_here[file, line_of[part[2]]]
    }
}

# A program that does not call a function may lack its code. It then lists all lines of it, also comments
# and what the preprocessor left out: they count if no program runs the function.
kind == "lines" && /^DA:/ {
    split(substr($0, 4), part, ",")
    function_at = part[1] in is_start ? file SUBSEP part[1] : function_at
    place = origin(file, part[1])
    if (place == "" || place in is_never) {
        next
    }
    if (function_at in runs_here) {
        hit[place] = (place in hit && hit[place]) || part[2] > 0
    } else if (text_of(place) !~ /^ *\/\//) {
        unrun[place] = function_at
    }
}

# Which lines have branches that are no constants; those of macros are listed where they are used.
kind == "lines" && /^BRDA:/ {
    split(substr($0, 6), part, ",")
    place = origin(file, part[1])
    if (place != "") {
        has_branch[place] = 1
    }
}

# -- branches, decisions --------------------------------------------------------------------------
#
#      F path
#      B line col line col true-count false-count
#      M line col line col 0|1...                  conditions that were shown to decide on their own

kind == "regions" && $1 == "F" {
    file = relative($2)
}

kind == "regions" && ($1 == "B" || $1 == "M") {
    place = origin(file, $2)
    if (place == "" || place in is_assert) {
        next
    }
    if ($1 == "B" && $6 == 0 && $7 == 0 && !(place in has_branch) && !(place in is_macro)) {
        next
    }
    split(place, part, SUBSEP)
    condition = substr(text[part[1], part[2]], $3)
    is_refusal = $1 == "B" && condition ~ /^([a-z]+_[a-z_]*_(fail|refuse)(_[a-z]+)?|ptoisa_fault)\(/ && \
        condition !~ /^pwsp_(expander_fail_halt|view_fail_lead)\(/  # an event, and a question
    place = place SUBSEP $3 SUBSEP $4 - $2 SUBSEP $5
    for (i = is_refusal ? 7 : 6; i <= NF; i++) {
        key = place SUBSEP i
        if ($1 == "B") {
            branch[key] = (key in branch && branch[key]) || $i > 0
        } else {
            decides[key] = (key in decides && decides[key]) || $i > 0
        }
    }
}

# Lines of functions that no program runs.
function add_unrun(    place) {
    for (place in unrun) {
        if (!(place in hit) && !(unrun[place] in has_run)) {
            hit[place] = 0
        }
    }
}

# -- the table ------------------------------------------------------------------------------------

function tally(array, what,    key, piece, name) {
    for (key in array) {
        split(key, piece, SUBSEP)
        name = group(piece[1])
        all[what, name]++
        all[what, "all"]++
        good[what, name] += array[key]
        good[what, "all"] += array[key]
    }
}

function cell(what, name) {
    return all[what, name] ? sprintf("%6d %6.1f %%", all[what, name], \
        int(1000 * good[what, name] / all[what, name]) / 10) : sprintf("%6s %8s", "-", "")
}

function row(name) {
    printf "%-34s %s  %s  %s  %5d\n", name, cell("lines", name), cell("branches", name), \
        cell("decisions", name), name == "all" ? mark_count : marks[name]
}

# A row for each place that was not reached, sorted by file and line.
function places(    key, piece, sort) {
    sort = "LC_ALL=C sort -t: -k1,1 -k2,2n"
    for (key in hit) {
        if (!hit[key]) {
            split(key, piece, SUBSEP)
            printf "%s:%d: line: %s\n", piece[1], piece[2], text[key] | sort
        }
    }
    for (key in branch) {
        if (!branch[key]) {
            split(key, piece, SUBSEP)
            printf "%s:%d: never %s: %s\n", piece[1], piece[2], piece[6] == 6 ? "true" : "false", \
                substr(text[piece[1], piece[2]], piece[3], piece[4] == 0 ? piece[5] - piece[3] : 100) | sort
        }
    }
    close(sort)
}

END {
    add_unrun()
    if (by == "place") {
        places()
        exit
    }
    tally(hit, "lines")
    tally(branch, "branches")
    tally(decides, "decisions")
    for (name in marks) {
        mark_count += marks[name]
    }
    for (file in others) {
        print "coverage: " file " is none of the sources" > "/dev/stderr"
    }
    printf "%-34s %15s  %15s  %15s  %5s\n", by == "file" ? "file" : "floor", "lines", "branches", "MC/DC", "NEVER"
    # In the order of the sources, which is that of the floors; files by the branches that are missing.
    if (by == "file") {
        for (i = 2; i <= group_count; i++) {
            name = groups[i]
            missing = all["branches", name] - good["branches", name]
            for (k = i - 1; k >= 1 && all["branches", groups[k]] - good["branches", groups[k]] < missing; k--) {
                groups[k + 1] = groups[k]
            }
            groups[k + 1] = name
        }
    }
    for (i = 1; i <= group_count; i++) {
        if (all["lines", groups[i]]) {
            row(groups[i])
        }
    }
    row("all")
}

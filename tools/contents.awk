# Keeps the contents and the index of a header true: the sections by their lines, and the functions by the lines where they are
# declared. Reads the file twice:
#
#   awk -f tools/contents.awk ptowsp.h ptowsp.h
#
# The contents stand between "// CONTENTS" and the next heading in capitals, the index below the title of its appendix.

function number_of(line) { return line + (line > contents_end ? shift : 0) }

# A column of the contents, and its line in the file.
function entry(i) {
    if (i > section_count) return ""
    return sprintf("%s%2d. %-34s%5d", "", number[i], title[i], number_of(section_line[i]))
}

function print_contents(   i, half) {
    half = int((section_count + 1) / 2)
    print "//"
    for (i = 1; i <= half; i++) print trim("//   " entry(i) "    " entry(i + half))
    print "//"
    for (i = 1; i <= appendix_count; i++) {
        printf "//   Appendix %-37s%5d\n", appendix[i], number_of(appendix_line[i])
    }
    print "//"
}
function trim(text) { sub(/ +$/, "", text); return text }

function contents_length() { return int((section_count + 1) / 2) + appendix_count + 3 }

# Functions are grouped by the word after ptowsp_, a group on lines of its own; those that are alone stand together.
function print_index(   i, word, text, piece, single) {
    print "//"
    for (i = 1; i <= function_count; i++) {
        word = word_of[name[i]]
        piece = (members[word] > 1 ? substr(name[i], length("ptowsp_" word) + 2) : substr(name[i], 8))
        if (piece == "") piece = "(itself)"
        piece = piece " " number_of(line_of[name[i]])
        if (members[word] > 1) lines[word] = lines[word] (lines[word] == "" ? "" : ", ") piece
        else single = single (single == "" ? "" : ", ") piece
        if (members[word] > 1 && !seen[word]++) words[++word_count] = word
    }
    print_group("ptowsp_", single)
    for (i = 1; i <= word_count; i++) print_group("ptowsp_" words[i] "_", lines[words[i]])
}
function print_group(head, text,   count, piece, i, line) {
    count = split(text, piece, ", ")
    line = sprintf("//      %-20s", head)
    if (length(head) > 19) line = "//      " head " "
    for (i = 1; i <= count; i++) {
        if (length(line) + length(piece[i]) + 2 > 100) {
            print trim(line)
            line = sprintf("//      %-20s", "")
        }
        line = line " " piece[i] (i < count ? "," : "")
    }
    print trim(line)
}

# By insertion: no awk has a sort of its own that others have.
function sort_names(   i, j, t) {
    for (i = 2; i <= function_count; i++) {
        t = name[i]
        for (j = i - 1; j > 0 && name[j] > t; j--) name[j + 1] = name[j]
        name[j + 1] = t
    }
}

FNR == 1 { pass++ }

pass == 1 && /^\/\/ CONTENTS$/ { contents_begin = FNR }
pass == 1 && contents_begin && !contents_end && FNR > contents_begin && /^\/\/ [A-Z][A-Z ]+$/ { contents_end = FNR }
pass == 1 && is_bar && /^\/\/ [1-9][0-9]*\. / {
    section_count++
    number[section_count] = $2 + 0
    title[section_count] = substr($0, index($0, ". ") + 2)
    section_line[section_count] = FNR
}
pass == 1 && is_bar && /^\/\/ Appendix [A-Z]\. / {
    appendix[++appendix_count] = substr($0, 13)
    appendix_line[appendix_count] = FNR
    if (/Index/) index_title = FNR
}
pass == 1 {
    is_bar = /^\/\/ ----------/
    if (/^PTOWSP_(API|INLINE|NPU_API)[ \n]/) is_declaration = 1
    if (is_declaration && match($0, /ptowsp_[a-z0-9_]+\(/)) {
        found = substr($0, RSTART, RLENGTH - 1)
        if (!(found in line_of)) name[++function_count] = found
        line_of[found] = FNR
        word = substr(found, 8)
        sub(/_.*/, "", word)
        word_of[found] = word
        members[word]++
        is_declaration = 0
    }
    if (/^$/ || /;$/) is_declaration = 0
    next
}

pass == 2 && FNR == 1 {
    sort_names()
    shift = contents_end ? contents_length() - (contents_end - contents_begin - 1) : 0
}
pass == 2 && FNR > contents_begin && FNR < contents_end { next }
pass == 2 && index_title && FNR > index_title + 1 && !index_done {
    if (/^\/\//) next
    index_done = 1
    print_index()
}
{ print }
pass == 2 && FNR == contents_begin { print_contents() }

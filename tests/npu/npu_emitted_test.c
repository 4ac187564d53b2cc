// What is emitted for a program, as texts: cases of the files in tests/npu/emitted. Nothing is compiled here; what
// trees do is tested where they are built. A file has modules, each followed by its cases:
//
//      module m slots 8                             as programs are saved: with a schedule, and `program NAME`
//      tiles vector 910B: in x f32 8 x 16, ...      or one tile kernel k, whose parameters are %1 and so on, with its
//                                                   operations; a task of it has tensors as large as its tiles
//        repeat N LINE                              N times, with $i from 0
//
//      case what_it_claims
//        let NAME ; NAME, row VALUE ; VALUE         once for each row, with $NAME (letters) in module and case
//        native KERNEL [FUNCTION]                   a C function, whose source follows, or NPU_SCALE_TEXT
//        cost [FUNCTION], timed                     it has a cost function; it has no function
//        read PATH, sourceless                      its source is a file; there is none
//        pto KERNEL                                 a PTO-ISA source
//        entry NAME, args VALUE INDEX, ...          VALUE as ptowsp.h has it, behind PTOWSP_PTO_; of NUMBER: the number
//        block, block_count VALUE INDEX; include DIRECTORY; mixed
//        disk NAME [LINE], directory NAME, fifo NAME
//                                                   in $dir, the directory of the case
//        size BYTES NAME                            such a file is cut, or has zeros at its end
//        | TEXT, |. TEXT                            a line of the source or file before; one that does not end
//        host; callback                             the tree is for simulators; it goes to a callback
//        simpler; window N; blocks N                it is for PTO Runtime
//        repeat N LINE                              N times, with $i from 0
//        emits PATH                                 the next claims are about this file
//        has, lacks, is TEXT                        a part, or all of it: \n, \t and \\ as in C
//        then TEXT                                  behind the last part
//        calls TEXT                                 blanks and line ends are alike
//        times N TEXT; narrow N                     how often; how wide lines are at most
//        files N DIRECTORY; absent PATH             how many files are below; there is no such file
//        refused STATUS [at INDEX] TEXT
//                                                   it cannot be compiled or emitted, and nothing is left; texts of
//                                                   errors have 511 characters at most

#include "npu_files.h"
#include "npu_fixture.h"

#include "npu_texts.h"

#include "src/text/parse.h"

#include <glob.h>

enum { KERNEL_MAX = 8, TEXT_MAX = 1 << 20 };

typedef struct subject {
    npu_fixture f;
    const char *path, *name, *columns, *row;
    int line;
    const char *module;  // lines, up to the one with the first case
    ptowsp_parse_kernel kernels[KERNEL_MAX];
    ptowsp_pto_source ptos[KERNEL_MAX];
    uint32_t kernel_count;
    const char **text, *disk, *disk_text;  // where lines go, and a file that is not yet written
    ptowsp_npu_desc desc;
    char tree[128];
    bool is_emitted, is_called;
    ptowsp_status status;
    const char *file, *found;
    uint32_t claims;
} subject;

#define FAIL(s, ...) fail_at(s, textf(__VA_ARGS__))

static void fail_at(const subject *s, const char *what) {
    fail_msg("%s:%d: %s%s%s: %s", s->path, s->line, s->name, s->row ? ", row " : "",
             s->row ? s->row : "", what);
}

// -- texts ----------------------------------------------------------------------------------------

// Cell number `index` of a row, without blanks around it.
static const char *cell_at(const char *row, uint32_t index) {
    for (; row && index > 0; index--) {
        row = strstr(row, " ; ");
        row = row ? row + 3 : NULL;
    }
    if (!row) {
        return NULL;
    }
    row += strspn(row, " ");
    const char *end = strstr(row, " ; ");
    size_t length = end ? (size_t)(end - row) : strlen(row);
    while (length > 0 && row[length - 1] == ' ') {
        length--;
    }
    return textf("%.*s", (int)length, row);
}

static const char *unescaped(const char *text) {
    char *copy = (char *)test_alloc(strlen(text) + 1, 1), *to = copy;
    for (; *text; text++) {
        const bool is_escape = *text == '\\' && text[1] && strchr("nt\\", text[1]);
        text += is_escape;
        *to++ = !is_escape ? *text : *text == 'n' ? '\n' : *text == 't' ? '\t' : '\\';
    }
    return copy;
}

static uint32_t columns_used;  // of the row, a bit each

// The value of a name behind $.
static const char *value_of(const subject *s, const char *name, size_t length) {
    if (length == 3 && strncmp(name, "dir", 3) == 0) {
        return s->f.directory;
    } else if (length == 1 && *name == 'i') {
        return "$i";  // of repeated lines
    }
    for (uint32_t i = 0; s->row; i++) {
        const char *column = cell_at(s->columns, i);
        if (!column) {
            break;
        } else if (strlen(column) == length && strncmp(column, name, length) == 0) {
            columns_used |= 1u << i;
            return unescaped(cell_at(s->row, i));
        }
    }
    FAIL(s, "there is no $%.*s", (int)length, name);
    return "";
}

static const char *replaced(const subject *s, const char *line) {
    const char *text = "";
    for (const char *at = line; *at;) {
        const size_t plain = strcspn(at, "$"),
                     name = strspn(at + plain + (at[plain] == '$'), "abcdefghijklmnopqrstuvwxyz");
        if (at[plain] && name > 0) {
            text = textf("%s%.*s%s", text, (int)plain, at, value_of(s, at + plain + 1, name));
            at += plain + 1 + name;
        } else {
            text = textf("%s%.*s", text, (int)(plain + (at[plain] != '\0')), at);
            at += plain + (at[plain] != '\0');
        }
    }
    return text;
}

// Where a text has a part; blanks and line ends are alike.
static bool has_words(const char *text, const char *part) {
    for (; *text; text++) {
        const char *a = text, *b = part;
        while (*b && (*a == *b || (*b == ' ' && *a == '\n'))) {
            a += *b++ == ' ' ? strspn(a, " \n") : 1;
        }
        if (!*b) {
            return true;
        }
    }
    return false;
}

// Writes a line of `repeat`, number i: of 65536 lines each would be a block of memory.
static size_t repeat(char *out, const char *line, int i) {
    size_t size = 0;
    for (const char *name; (name = strstr(line, "$i")) != NULL; line = name + 2) {
        size += (size_t)sprintf(out + size, "%.*s%d", (int)(name - line), line, i);
    }
    return size + (size_t)sprintf(out + size, "%s", line);
}

// -- modules --------------------------------------------------------------------------------------

// `tiles UNIT MACHINE: PARAMETERS` and operations, as a module.
static const char *tiles_module(const subject *s, const char *line, const char *operations) {
    char unit[16], machine[16], params[500];
    const char *tensors = "", *values = "", *views = "";
    int count = 0;
    if (sscanf(line, "tiles %15s %15[^:]: %499[^\n]", unit, machine, params) != 3) {
        FAIL(s, "no tile kernel: %s", line);
    }
    const char *all = textf("%s", params);
    for (char *at = strtok(params, ","); at; at = strtok(NULL, ",")) {
        char name[24], type[8];
        int rows, cols;
        if (sscanf(at, " %*s \"%20[^\"]\" %7s %d x %d", name, type, &rows, &cols) != 4 &&
            sscanf(at, " %*s %20s %7s %d x %d", name, type, &rows, &cols) != 4) {
            FAIL(s, "no parameter: %s", at);
        }
        tensors = textf("%stensor \"%s\" %s [%d, %d] global\n", tensors, name, type, rows, cols);
        values = textf("%s  %%%d = parameter \"%s\"\n", values, ++count, name);
        views = textf("%s \"%s\" = \"%s\"", views, name, name);
    }
    return textf("module tiles\n%skernel k(axes 0, %s) %s, 9 instructions\n  machine \"%s\"%s\n"
                 "%s%sworkload w\n  task k()%s\n",
                 tensors, all, unit, machine, strcmp(unit, "cube") ? "" : ", fused", values,
                 operations, views);
}

static const char *module_text(const subject *s) {
    size_t size = 0, length;
    char *text = (char *)test_alloc(TEXT_MAX * 4, 1);
    for (const char *at = s->module; *at; at += length + (at[length] == '\n')) {
        length = strcspn(at, "\n");
        const char *given = textf("%.*s", (int)length, at);
        if (strncmp(given, "case ", 5) == 0) {
            break;
        }
        const char *line = replaced(s, given);
        const size_t indent = strspn(line, " ");
        int count = 0, used = 0;
        if (line[indent] == '#' || !line[indent]) {
            continue;
        } else if (sscanf(line + indent, "repeat %d %n", &count, &used) != 1) {
            size += (size_t)sprintf(text + size, "%s\n", line);
        }
        const char *again = count ? unescaped(line + indent + used) : "";
        for (int i = 0; i < count; i++) {
            size += (size_t)sprintf(text + size, "%.*s", (int)indent, line);
            size += repeat(text + size, again, i);
            text[size++] = '\n';
        }
        assert_true(size < TEXT_MAX * 4 - 1000);
    }
    const char *rest = text + strcspn(text, "\n") + 1;
    return strncmp(text, "tiles ", 6) == 0 ? tiles_module(s, text, rest) : text;
}

static ptowsp_status compile(subject *s) {
    const ptowsp_parse_desc attached = {s->kernels, s->kernel_count, 0};
    const char *text = module_text(s);
    pwsp_parse_saved saved;
    memset(&saved, 0, sizeof saved);
    const ptowsp_status status =
        pwsp_parse_text(s->f.context, text, strlen(text), 1, &attached, &saved, &s->f.m, NULL);
    const ptowsp_program_desc desc = {saved.workload[0] ? saved.workload : NULL,
                                      strstr(text, "\nschedule\n") ? &saved.schedule : NULL};
    return status ? status : ptowsp_program_create(s->f.context, s->f.m, &desc, &s->f.program);
}

// What programs say of the instructions of kernels: each is of a half if its kernel has halves, and of none
// otherwise. FIFO 0 goes from the cube half to the vector half, FIFO 1 back, and nothing is taken from them
// that has not been put in. Kernels without halves have no FIFOs.
static void check_halves(const subject *s) {
    const ptowsp_program_tables *info = ptowsp_program_read(s->f.program);
    for (uint32_t k = 1; k < info->kernel_count; k++) {
        const ptowsp_kernel_info *kernel = &info->kernels[k];
        uint32_t waiting[2] = {0, 0};
        for (uint32_t i = 0; i < kernel->insn_count; i++) {
            const ptowsp_insn_info *insn = &kernel->insns[i];
            const bool is_push = insn->op == PTOWSP_OP_TPUSH;
            const bool is_mark = insn->op == PTOWSP_OP_LOOP || insn->op == PTOWSP_OP_END;
            assert_int_equal(insn->side != PTOWSP_SIDE_ANY, kernel->is_mixed && !is_mark);
            if (is_push || insn->op == PTOWSP_OP_TPOP) {
                assert_in_range(insn->fifo, 0, 1);
                assert_int_equal(insn->side == PTOWSP_SIDE_CUBE, is_push == (insn->fifo == 0));
                assert_true(is_push || waiting[insn->fifo] > 0);
                waiting[insn->fifo] += is_push ? 1 : UINT32_MAX;
            }
        }
        for (uint32_t f = 0; f < 2 && !kernel->is_mixed; f++) {
            const ptowsp_fifo *fifo = &kernel->fifos[f];
            assert_true(fifo->slot_bytes == 0 && fifo->slot_count == 0 && fifo->flag == 0);
        }
    }
}

static void emit(subject *s) {
    if (!s->is_emitted) {
        const uint32_t before = npu_entries(s->f.directory);
        s->status = s->f.program ? PTOWSP_OK : compile(s);
        s->status = s->status      ? s->status
                    : s->is_called ? npu_files_try(s->f.context, s->f.program)
                                   : ptowsp_npu_emit(s->f.context, s->f.program, &s->desc);
        s->is_emitted = true;
        assert_true(s->status == PTOWSP_OK || (npu_entries(s->f.directory) == before &&
                                               (!s->is_called || npu_file_count == 0)));
        if (s->f.program) {
            check_halves(s);
        }
    }
}

// -- words ----------------------------------------------------------------------------------------

static ptowsp_pto_arg arg_of(const subject *s, const char *text) {
    static const char *const values[] = {"NONE",       "DATA", "ROWS",   "COLS",  "ROW_STRIDE",
                                         "COL_STRIDE", "AXIS", "SCALAR", "NUMBER"};
    char word[16], more = ',';  // what may follow
    long long number;
    if (sscanf(text, " %15s %lld %c", word, &number, &more) < 2 || more != ',') {
        FAIL(s, "no argument: %s", text);
    }
    size_t value = (size_t)atoi(word);  // or a number that is none of them
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        value = strcmp(values[i], word) == 0 ? i : value;
    }
    if (value == 0) {
        FAIL(s, "there is no value %s", word);
    }
    const bool is_number = value == PTOWSP_PTO_NUMBER;
    return (ptowsp_pto_arg){(ptowsp_pto_value)value, is_number ? 0 : (uint32_t)number,
                            is_number ? number : 0};
}

// A kernel or a file of the disk begins.
static bool begins(subject *s, const char *word, const char *rest) {
    const char *path = textf("%s/%s", s->f.directory, rest);
    const bool is_pto = strcmp(word, "pto") == 0;
    if (is_pto || strcmp(word, "native") == 0) {
        const char *function = strchr(rest, ' ');
        const char *name = function ? textf("%.*s", (int)(function - rest), rest) : rest;
        if (s->kernel_count == 0 || strcmp(s->kernels[s->kernel_count - 1].name, name) != 0) {
            assert_true(s->kernel_count < KERNEL_MAX);
            s->kernels[s->kernel_count++].name = name;
        }
        ptowsp_pto_source *pto = &s->ptos[s->kernel_count - 1];
        ptowsp_parse_kernel *kernel = &s->kernels[s->kernel_count - 1];
        if (is_pto) {
            kernel->pto = pto;
        } else {
            kernel->fn = npu_scale;
            kernel->source.text = NPU_SCALE_TEXT;
            kernel->source.fn = function ? function + 1 : "scale";
        }
        s->text = is_pto ? &pto->text : &kernel->source.text;
    } else if (strcmp(word, "disk") == 0) {
        const size_t name = strcspn(rest, " ");
        s->disk = textf("%s/%.*s", s->f.directory, (int)name, rest);
        s->disk_text = rest[name] ? textf("%s\n", rest + name + 1) : "";
        s->text = &s->disk_text;
    } else if (strcmp(word, "directory") == 0) {
        assert_int_equal(mkdir(path, 0755), 0);
    } else if (strcmp(word, "size") == 0) {
        long long size;
        int used;
        assert_int_equal(sscanf(rest, "%lld %n", &size, &used), 1);
        assert_int_equal(truncate(textf("%s/%s", s->f.directory, rest + used), size), 0);
    } else if (strcmp(word, "fifo") == 0) {
        assert_int_equal(mkfifo(path, 0600), 0);
    } else {
        return false;
    }
    return true;
}

// What there is more to say of a kernel.
static bool describes(subject *s, const char *word, const char *rest) {
    const uint32_t last = s->kernel_count ? s->kernel_count - 1 : 0;
    ptowsp_parse_kernel *kernel = &s->kernels[last];
    ptowsp_pto_source *pto = &s->ptos[last];
    uint32_t i = 0;
    if (strcmp(word, "cost") == 0) {
        kernel->cost = npu_scale;
        kernel->source.cost = *rest ? rest : NULL;
    } else if (strcmp(word, "sourceless") == 0) {
        kernel->source.text = kernel->source.fn = NULL;
    } else if (strcmp(word, "timed") == 0) {
        kernel->fn = NULL;
    } else if (strcmp(word, "read") == 0) {
        *(kernel->pto ? &pto->file : &kernel->source.file) = rest;
        kernel->source.text = NULL;
    } else if (strcmp(word, "entry") == 0) {
        pto->entry = rest;
    } else if (strcmp(word, "mixed") == 0) {
        pto->is_mixed = true;
    } else if (strcmp(word, "block") == 0) {
        pto->block = arg_of(s, rest);
    } else if (strcmp(word, "block_count") == 0) {
        pto->block_count = arg_of(s, rest);
    } else if (strcmp(word, "include") == 0) {
        for (; pto->include_dirs[i]; i++) {
        }
        assert_true(i < PTOWSP_PTO_INCLUDE_MAX);
        pto->include_dirs[i] = rest;
    } else if (strcmp(word, "args") == 0) {
        for (; pto->args[i].value; i++) {
        }
        for (; *rest; i++, rest += strcspn(rest, ","), rest += *rest == ',') {
            assert_true(i < PTOWSP_PTO_ARG_MAX);
            pto->args[i] = arg_of(s, rest);
        }
    } else {
        return false;
    }
    return true;
}

static bool is_for(subject *s, const char *word, const char *rest) {
    char *end;
    const uint32_t number = (uint32_t)strtoul(rest, &end, 10);
    if (strcmp(word, "host") == 0) {
        s->desc.is_for_host = true;
    } else if (strcmp(word, "callback") == 0) {
        s->is_called = true;
    } else if (strcmp(word, "simpler") == 0) {
        s->desc.runtime = PTOWSP_NPU_SIMPLER;
    } else if (strcmp(word, "window") == 0) {
        s->desc.task_window = number;
    } else if (strcmp(word, "blocks") == 0) {
        s->desc.block_max = number;
    } else {
        return false;
    }
    if (*end || (end == rest) != !strstr("window blocks", word)) {
        FAIL(s, "%s: there is no number, or more than is read: %s", word, rest);
    }
    s->is_emitted = false;
    return true;
}

static void refused(subject *s, const char *rest) {
    char status[32];
    unsigned long long index = PTOWSP_NO_INDEX;
    int used = 0, more = 0;
    assert_int_equal(sscanf(rest, "%31s %n", status, &used), 1);
    sscanf(rest + used, "at %llu %n", &index, &more);
    emit(s);
    if (strcmp(status, "OK") == 0) {
        FAIL(s, "nothing is refused with OK");
    }
    const ptowsp_error error = ptowsp_context_error(s->f.context);
    if (strcmp(ptowsp_status_name(s->status), status) != 0 || error.index != index ||
        strcmp(error.text, textf("%.511s", unescaped(rest + used + more))) != 0) {
        FAIL(s, "%s at %lld: %s", ptowsp_status_name(s->status), (long long)error.index,
             s->status ? error.text : "");
    }
    s->is_emitted = false;
}

static void opens(subject *s, const char *path) {
    const char *whole = textf("%s/%s", s->tree, path);
    emit(s);
    if (s->status != PTOWSP_OK) {
        FAIL(s, "%s", ptowsp_context_error(s->f.context).text);
    } else if (s->is_called ? !npu_files_at(path) : access(whole, R_OK) != 0) {
        FAIL(s, "there is no %s", path);
    }
    s->file = s->found = s->is_called ? textf("%s", npu_files_text(path)) : text_of(whole);
}

static bool claims(subject *s, const char *word, const char *rest) {
    const char *part = unescaped(rest);
    char *end = NULL;
    const unsigned long wanted = strtoul(part, &end, 10);
    uint32_t count = 0;
    bool holds = true;
    const bool has_count = strstr(" files times narrow ", textf(" %s ", word)) != NULL;
    if (has_count && (end == part || (strcmp(word, "narrow") == 0 ? *end : *end != ' '))) {
        FAIL(s, "%s: there is no number, or something else: %s", word, rest);
    }
    if (strcmp(word, "refused") == 0) {
        refused(s, rest);
    } else if (strcmp(word, "files") == 0) {
        emit(s);
        count = s->is_called ? npu_files_below(textf("%s/", end + 1))
                             : files_below(textf("%s/%s", s->tree, end + 1));
        holds = count == wanted;
    } else if (strcmp(word, "absent") == 0) {
        emit(s);
        holds = s->status == PTOWSP_OK && access(textf("%s/%s", s->tree, rest), F_OK) != 0;
    } else if (!strstr(" has lacks is then calls times narrow ", textf(" %s ", word))) {
        return false;
    } else if (!s->file || !*rest) {
        FAIL(s, "%s: of no file, or nothing", word);
    } else if (strcmp(word, "has") == 0) {
        s->found = strstr(s->file, part);
        holds = s->found != NULL;
    } else if (strcmp(word, "then") == 0) {
        s->found = strstr(s->found, part);
        holds = s->found != NULL;
        s->found = holds ? s->found + strlen(part) : s->file;
    } else if (strcmp(word, "lacks") == 0) {
        holds = !strstr(s->file, part);
    } else if (strcmp(word, "is") == 0) {
        holds = strcmp(s->file, part) == 0;
    } else if (strcmp(word, "calls") == 0) {
        holds = has_words(s->file, part);
    } else if (strcmp(word, "narrow") == 0) {
        for (const char *at = s->file; holds && *at; at += strcspn(at, "\n") + 1) {
            count = (uint32_t)strcspn(at, "\n");
            holds = count <= wanted;
        }
    } else {
        for (const char *at = s->file; (at = strstr(at, end + 1)) != NULL; at++) {
            count++;
        }
        holds = count == wanted;
    }
    if (!holds) {
        FAIL(s, "%s %s (%u) of:\n%s", word, rest, (unsigned)count, s->file ? s->file : "");
    }
    s->claims++;
    return true;
}

// -- cases ----------------------------------------------------------------------------------------

static void line_run(subject *s, const char *line) {
    int repeats, used;
    const size_t indent = strspn(line, " ");
    line += indent;
    if (sscanf(line, "repeat %d %n", &repeats, &used) == 1) {
        char one[1000];
        assert_true(strlen(line) < sizeof one / 2);
        for (int i = 0; i < repeats; i++) {
            repeat(one, line + used, i);
            line_run(s, one);
        }
        return;
    }
    line = replaced(s, line);
    if (line[0] == '|') {
        if (!s->text) {
            FAIL(s, "a line of nothing: %s", line);
        }
        const bool is_last = line[1] == '.';
        const char *rest = line + 1 + is_last, *old = *s->text;
        const bool is_first = !old || strcmp(old, NPU_SCALE_TEXT) == 0;
        *s->text = textf("%s%s%s", is_first ? "" : old, rest + (*rest == ' '), is_last ? "" : "\n");
        return;
    }
    if (s->disk) {
        file_write(s->disk, s->disk_text, strlen(s->disk_text));
    }
    s->disk = NULL;
    const size_t length = strcspn(line, " ");
    const char *word = textf("%.*s", (int)length, line);
    if (strcmp(word, "let") == 0 || strcmp(word, "row") == 0) {
        if (indent != 2 || !s->row) {
            FAIL(s, "%s is indented by two, in a case with rows", word);
        }
    } else if (line[0] && line[0] != '#') {
        const char *rest = line + length + (line[length] == ' ');
        if (strcmp(word, "emits") == 0) {
            opens(s, rest);
        } else if (!begins(s, word, rest) && !describes(s, word, rest) && !is_for(s, word, rest) &&
                   !claims(s, word, rest)) {
            FAIL(s, "there is no word %s", word);
        }
    }
}

// A case with one of its rows, or without.
static void case_run(subject *s, const char *lines) {
    const size_t held = test_held.count;
    const int first = s->line;
    npu_fixture_begin(&s->f);
    s->kernel_count = s->claims = 0;
    memset(s->kernels, 0, sizeof s->kernels);
    memset(s->ptos, 0, sizeof s->ptos);
    s->text = NULL;
    s->file = NULL;
    s->is_emitted = s->is_called = false;
    columns_used = 0;
    snprintf(s->tree, sizeof s->tree, "%s/tree", s->f.directory);
    s->desc = (ptowsp_npu_desc){.directory = s->tree, .is_replacing = true};
    for (size_t length; *lines == ' ' || *lines == '\n' || *lines == '#'; lines += length + 1) {
        length = strcspn(lines, "\n");
        s->line++;
        line_run(s, textf("%.*s", (int)length, lines));
    }
    if (s->claims == 0) {
        FAIL(s, "it claims nothing");
    }
    for (uint32_t i = 0; s->row && cell_at(s->columns, i); i++) {
        if (!(columns_used >> i & 1)) {
            FAIL(s, "nothing has $%s", cell_at(s->columns, i));
        }
    }
    s->line = first;
    npu_fixture_free(&s->f);
    test_release_to(held);
}

static void rows_run(subject *s, const char *lines) {
    const char *end = lines + strcspn(lines, "\n");
    uint32_t rows = 0;
    s->columns = s->row = NULL;
    for (const char *at = lines; *at == ' ' || *at == '\n' || *at == '#'; at = end + 1) {
        end = at + strcspn(at, "\n");
        if (strncmp(at, "  let ", 6) == 0) {
            s->columns = textf("%.*s", (int)(end - at) - 6, at + 6);
        } else if (strncmp(at, "  row ", 6) == 0) {
            uint32_t cells = 0;
            for (; s->columns && cell_at(s->columns, cells); cells++) {
            }
            s->row = textf("%.*s", (int)(end - at) - 6, at + 6);
            if (cells == 0 || !cell_at(s->row, cells - 1) || cell_at(s->row, cells)) {
                FAIL(s, "there are %u columns", (unsigned)cells);
            }
            rows++;
            case_run(s, lines);
        }
    }
    if (rows == 0) {
        case_run(s, lines);
    }
}

static void file_run(const char *path) {
    static subject s;
    size_t size;
    char *text = file_read(path, &size);
    uint32_t cases = 0;
    bool is_module = false, has_case = true;  // a module, and a case of the last one
    s.path = path;
    s.line = 0;
    s.name = s.module = "";
    assert_true(size > 0 && text[size - 1] == '\n');
    for (char *at = text; *at; at += strcspn(at, "\n") + 1) {
        const size_t length = strcspn(at, "\n");
        s.line++;
        if (strncmp(at, "module ", 7) == 0 || strncmp(at, "tiles ", 6) == 0) {
            s.module = at;
            s.name = has_case ? "" : (FAIL(&s, "the module before has no case"), "");
            is_module = true;
            has_case = false;
        } else if (strncmp(at, "case ", 5) == 0) {
            s.name = textf("%.*s", (int)length - 5, at + 5);
            rows_run(&s, at + length + 1);
            is_module = false;
            has_case = true;
            cases++;
        } else if (!is_module && !strchr("# \n", *at)) {
            FAIL(&s, "neither a module nor a case");
        }
    }
    assert_true(cases > 0 && has_case);
    print_message("%s: %u cases\n", path, (unsigned)cases);
    free(text);
    test_release();
}

TEST(emitted__texts_are_those_of_the_cases) {
    glob_t files;
    assert_int_equal(glob("tests/npu/emitted/*.emit", 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        file_run(files.gl_pathv[i]);
    }
    globfree(&files);
}

// Lists of instructions and what the passes make of them: places, flags, the proof. They are in lists.txt, which
// begins with the words that it is written in.

#include "list_judge.h"

#include "lines.h"

#include "src/kernel/rotate.h"

#include <stddef.h>

enum { BECOMES_MAX = 8192 };

typedef struct scene {
    built b;
    built_saved saved;
    bool has_claim, is_changed;  // since the last claim
    char becomes[BECOMES_MAX];
    int line;
} scene;

#define SCENE_FAIL(s, format, ...) fail_msg("lists.txt:%d: " format, (s)->line, __VA_ARGS__)

// -- what a list may be changed in ----------------------------------------------------------------

typedef struct list_field {
    char of;  // a tile, an instruction, a FIFO, a loop, the list
    const char *name;
    size_t offset, size;
} list_field;

#define LIST_FIELD(of, type, name, member)                                                         \
    { of, name, offsetof(type, member), sizeof((type *)NULL)->member }
#define TILE(member) LIST_FIELD('t', pwsp_list_tile, #member, member)
#define INSN(member) LIST_FIELD('i', pwsp_insn, #member, member)

static const list_field list_fields[] = {
    TILE(dtype),
    TILE(memory),
    TILE(layout),
    TILE(rows),
    TILE(cols),
    TILE(root),
    TILE(offset),
    TILE(address),
    TILE(loop),
    LIST_FIELD('t', pwsp_list_tile, "valid_rows", valid_rows.max),
    LIST_FIELD('t', pwsp_list_tile, "valid_cols", valid_cols.max),
    LIST_FIELD('t', pwsp_list_tile, "rows_param", valid_rows.param),
    LIST_FIELD('t', pwsp_list_tile, "rows_mul", valid_rows.mul),
    LIST_FIELD('t', pwsp_list_tile, "rows_loop", valid_rows.loop),
    INSN(op),
    INSN(mode),
    INSN(loop),
    INSN(begins),
    INSN(row),
    INSN(param),
    INSN(src_pipe),
    LIST_FIELD('i', pwsp_insn, "dst", dst[0]),
    LIST_FIELD('i', pwsp_insn, "src", src[0]),
    LIST_FIELD('i', pwsp_insn, "cols_of", scalar.cols_of),
    LIST_FIELD('f', pwsp_list_fifo, "slot_bytes", slot_bytes),
    LIST_FIELD('l', pwsp_list_loop, "parent", parent),
    LIST_FIELD('a', pwsp_list, "split_tile", split_tile),
    LIST_FIELD('a', pwsp_list, "insn_count", insn_count),
    LIST_FIELD('a', pwsp_list, "loop_count", loop_count),
};

// "7", or "TPUSH cube 1": the second one of that half.
static uint64_t insn_of(const scene *s, const char *what) {
    char name[16], side[8] = "";
    unsigned n = 0;
    if (strspn(what, "0123456789") == strlen(what)) {
        return built_number(what);
    }
    assert_int_equal(sscanf(what, "%15s %7s %u", name, side, &n), 3);
    const pwsp_side half = strcmp(side, "cube") == 0 ? PWSP_SIDE_CUBE : PWSP_SIDE_VECTOR;
    assert_true(half == PWSP_SIDE_CUBE || strcmp(side, "vector") == 0);
    for (uint64_t i = 0; i < s->b.list.insn_count; i++) {
        const pwsp_insn *insn = &s->b.list.insns[i];
        if (insn->op == built_find_op(name) && insn->side == half && n-- == 0) {
            return i;
        }
    }
    SCENE_FAIL(s, "there is no instruction %s", what);
    return 0;
}

static uint32_t tile_of(const scene *s, const char *name) {
    return strcmp(name, "split") == 0 ? s->b.list.split_tile : built_id(&s->b, name);
}

static char *object_of(scene *s, const char *what, char *out_of) {
    pwsp_list *list = &s->b.list;
    unsigned n;
    *out_of = 'a';
    if (strcmp(what, "list") == 0) {
        return (char *)list;
    } else if (sscanf(what, "FIFO %u", &n) == 1 && n < PWSP_FIFO_COUNT) {
        *out_of = 'f';
        return (char *)&list->fifos[n];
    } else if (sscanf(what, "loop %u", &n) == 1 && n <= PTOWSP_LOOP_MAX) {
        *out_of = 'l';
        return (char *)&list->loops[n];
    } else if (strchr("0123456789", what[0]) || strchr(what, ' ')) {
        const uint64_t i = insn_of(s, what);
        assert_true(i < list->insn_count);
        *out_of = 'i';
        return (char *)&list->insns[i];
    }
    *out_of = 't';
    return (char *)&list->tiles[tile_of(s, what)];
}

// "x.rows = 2"; a value is a number, an instruction or a tile.
static void set_field(scene *s, const char *text) {
    char what[24], name[16], value[16], of;
    int length = 0;
    if (sscanf(text, " %23[^.].%15s = %15s%n", what, name, value, &length) != 3 || text[length]) {
        SCENE_FAIL(s, "this sets nothing: %s", text);
    }
    char *object = object_of(s, what, &of);
    const list_field *f = list_fields;
    while (f->of != of || strcmp(f->name, name) != 0) {
        if (++f == list_fields + COUNT_OF(list_fields)) {
            SCENE_FAIL(s, "there is no field %s of %s", name, what);
        }
    }
    const uint64_t number = strchr("0123456789", value[0])               ? built_number(value)
                            : built_find_op(value) != PWSP_INSN_OP_COUNT ? built_find_op(value)
                                                                         : tile_of(s, value);
    const uint8_t u8 = (uint8_t)number;
    const uint16_t u16 = (uint16_t)number;
    const uint32_t u32 = (uint32_t)number;
    memcpy(object + f->offset,
           f->size == 1   ? (const void *)&u8
           : f->size == 2 ? (const void *)&u16
           : f->size == 4 ? (const void *)&u32
                          : &number,
           f->size);
}

// -- words ----------------------------------------------------------------------------------------

// Memories are used up to the ends of tiles.
static void say_list(scene *s, const char *text) {
    pwsp_list *list = &s->b.list;
    built_text(&s->b, text);
    for (uint32_t i = 1; i < list->tile_count; i++) {
        const pwsp_list_tile *tile = &list->tiles[i];
        const uint64_t end = tile->address + pwsp_list_tile_bytes(tile);
        uint32_t *used = &list->used[tile->memory];
        *used = *used > end ? *used : (uint32_t)end;
    }
}

static void say_again(scene *s, const char *text) {
    const ptoisa_family family = s->b.machine.family;
    assert_string_equal(text, "");
    built_free(&s->b);
    built_init(&s->b, family);
}

static void say_halves(scene *s, const char *text) {
    const uint32_t slots = built_number(text);
    s->b.list.is_mixed = true;
    for (uint8_t f = 0; f < PWSP_FIFO_COUNT; f++) {
        s->b.list.fifos[f] = (pwsp_list_fifo){1024, (uint8_t)slots, (uint8_t)(2 * f)};
    }
}

static void say_used(scene *s, const char *text) {
    unsigned memory = 0;
    int length;
    char name[8];
    assert_int_equal(sscanf(text, "%7s %n", name, &length), 1);
    while (strcmp(ptoisa_memory_name((ptoisa_memory)memory), name) != 0) {
        assert_true(++memory < PTOISA_MEMORY_COUNT);
    }
    s->b.list.used[memory] = built_number(text + length);
}

static void say_set(scene *s, const char *text) {
    char one[80];
    for (int length; sscanf(text, " %79[^;]%n", one, &length) == 1; text += text[0] == ';') {
        text += length;
        set_field(s, one);
    }
}

static void say_remove(scene *s, const char *text) {
    char one[80];
    for (int length; sscanf(text, " %79[^;]%n", one, &length) == 1; text += text[0] == ';') {
        text += length;
        built_remove(&s->b, insn_of(s, one));
    }
}

static void say_place(scene *s, const char *text) {
    assert_string_equal(text, "");
    built_must(&s->b, pwsp_list_place_loops(&s->b.list, &s->b.machine, &s->b.fault));
}

static void say_waits(scene *s, const char *text) {
    assert_string_equal(text, "");
    built_must(&s->b, pwsp_list_add_waits(&s->b.list, &s->b.machine, &s->b.fault));
}

static void say_cut(scene *s, const char *text) {
    built_must(&s->b, pwsp_list_cut(&s->b.list, &s->b.machine, NULL, &s->b.fault));
    assert_int_equal(s->b.list.split_tile, *text ? built_id(&s->b, text) : 0);
}

static void say_proved(scene *s, const char *text) {
    assert_string_equal(text, "");
    built_must(&s->b, pwsp_list_verify(&s->b.list, &s->b.machine, &s->b.fault));
}

// What the judge says of a list without loops, too.
static void say_good(scene *s, const char *text) {
    uint64_t random = 1;
    const char *what = "";
    say_proved(s, text);
    if (!judge_list(&s->b, &random, 100, &what)) {
        SCENE_FAIL(s, "%s", what);
    }
}

static void say_places(scene *s, const char *text) {
    built_places(&s->b, strcmp(text, "nothing") == 0 ? "" : text);
}

static void say_becomes(scene *s, const char *text) {
    assert_true(*text && strlen(s->becomes) + strlen(text) + 3 < BECOMES_MAX);
    strcat(s->becomes, *s->becomes && *text ? "; " : "");
    strcat(s->becomes, text);
}

static void check_becomes(scene *s) {
    char lines[BECOMES_MAX], text[BECOMES_MAX] = "";
    built_print(&s->b, lines, sizeof lines);
    for (const char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n")) {
        strcat(strcat(text, *text ? "; " : ""), line);
    }
    if (strcmp(text, strcmp(s->becomes, "nothing") == 0 ? "" : s->becomes) != 0) {
        SCENE_FAIL(s, "it becomes\n%s, not\n%s", text, s->becomes);
    }
    s->becomes[0] = 0;
}

// "[STATUS] [at INSTRUCTION] TEXT".
static void check_fault(const scene *s, bool is_good, const char *text) {
    static const struct {
        const char *name;
        ptowsp_status status;
    } statuses[] = {{"UNSUPPORTED ", PTOWSP_UNSUPPORTED},
                    {"LIMIT_EXCEEDED ", PTOWSP_LIMIT_EXCEEDED}};
    ptowsp_status status = PTOWSP_INVALID_PARAMS;
    unsigned insn;
    int length;
    for (size_t i = 0; i < COUNT_OF(statuses); i++) {
        if (strncmp(text, statuses[i].name, strlen(statuses[i].name)) == 0) {
            text += strlen(statuses[i].name);
            status = statuses[i].status;
        }
    }
    assert_int_equal(sscanf(text, "at %u %n", &insn, &length), 1);
    if (is_good || s->b.fault.status != status || s->b.fault.insn != insn ||
        strcmp(s->b.fault.text, text + length) != 0) {
        SCENE_FAIL(s, "%s at %u: %s", is_good ? "it is good" : "refused", s->b.fault.insn,
                   s->b.fault.text);
    }
}

static void say_refused(scene *s, const char *text) {
    check_fault(s, pwsp_list_verify(&s->b.list, &s->b.machine, &s->b.fault), text);
}

// Nothing has a place then, and what was used is as it was.
static void say_unplaced(scene *s, const char *text) {
    s->b.list.used[PTOISA_VEC] = 77;
    check_fault(s, pwsp_list_place(&s->b.list, &s->b.machine, &s->b.fault), text);
    assert_int_equal(s->b.list.used[PTOISA_VEC], 77);
    for (uint64_t tile = 1; tile < s->b.list.tile_count; tile++) {
        assert_int_equal(s->b.list.tiles[tile].address, 0);
        assert_int_equal(s->b.list.tiles[tile].last, 0);
    }
}

static const struct {
    const char *name;
    void (*say)(scene *s, const char *text);
    enum { BUILDS, CHANGES, CLAIMS } kind;
} words[] = {
    {"list", say_list, BUILDS},         {"halves", say_halves, BUILDS},
    {"used", say_used, BUILDS},         {"place", say_place, BUILDS},
    {"waits", say_waits, BUILDS},       {"cut", say_cut, BUILDS},
    {"again", say_again, BUILDS},       {"set", say_set, CHANGES},
    {"remove", say_remove, CHANGES},    {"places", say_places, CLAIMS},
    {"becomes", say_becomes, CLAIMS},   {"good", say_good, CLAIMS},
    {"proved", say_proved, CLAIMS},     {"refused", say_refused, CLAIMS},
    {"unplaced", say_unplaced, CLAIMS},
};

static void say(scene *s, const char *line) {
    char name[16] = "";
    int length = 0;
    size_t w = 0;
    sscanf(line, "%15s %n", name, &length);
    while (strcmp(words[w].name, name) != 0) {
        if (++w == COUNT_OF(words)) {
            SCENE_FAIL(s, "there is no word %s", name);
        }
    }
    if (*s->becomes && words[w].say != say_becomes) {
        check_becomes(s);
    }
    if (words[w].say == say_again && s->is_changed) {
        SCENE_FAIL(s, "%s", "nothing is said of what has been changed");
    }
    words[w].say(s, line + length);
    s->has_claim = s->has_claim || words[w].kind == CLAIMS || words[w].say == say_cut;
    s->is_changed = words[w].kind == CHANGES;
    if (words[w].kind == BUILDS) {
        built_saved_free(&s->saved);
        built_save(&s->saved, &s->b);
    } else if (words[w].kind == CLAIMS) {
        built_restore(&s->saved, &s->b);
    }
}

// "8 times list x% = TLOAD 0": the word eight times, with 0 to 7 for each %.
static void say_times(scene *s, const char *line) {
    char name[16], text[LINES_MAX];
    unsigned times = 1;
    int length = 0;
    sscanf(line, "%u times %n", &times, &length);
    assert_int_equal(sscanf(line + length, "%15s", name), 1);
    for (unsigned n = 0; n < times; n++) {
        size_t at = 0;
        for (const char *c = line + length; *c; c++) {
            at += (size_t)(*c == '%' ? snprintf(text + at, sizeof text - at, "%u", n)
                                     : snprintf(text + at, sizeof text - at, "%c", *c));
            assert_true(at < sizeof text);
        }
        say(s, text);
    }
}

static void end_scene(scene *s) {
    if (*s->becomes) {
        check_becomes(s);
    }
    if (!s->has_claim || s->is_changed) {
        SCENE_FAIL(s, "%s", "the case before says nothing");
    }
    built_saved_free(&s->saved);
    built_free(&s->b);
}

// The cases of a machine.
typedef struct play {
    const char *family;
    scene s;
    uint32_t count;
    bool has_case, is_on;
} play;

static void play_line(char *line, int number, void *user) {
    play *p = (play *)user;
    const size_t length = strlen(p->family);
    if (strncmp(line, "case on ", 8) != 0) {
        p->s.line = number;
        assert_true(p->has_case);
        if (p->is_on) {
            say_times(&p->s, line);
        }
        return;
    }
    if (p->is_on) {
        end_scene(&p->s);
    }
    line += 8;
    p->has_case = strncmp(line, "both: ", 6) == 0 || strncmp(line, "A5: ", 4) == 0 ||
                  strncmp(line, "A2A3: ", 6) == 0;
    assert_true(p->has_case);
    p->is_on = strncmp(line, "both: ", 6) == 0 ||
               (strncmp(line, p->family, length) == 0 && line[length] == ':');
    if (p->is_on) {
        print_message("%s\n", line);
        memset(&p->s, 0, sizeof p->s);
        built_init(&p->s.b, strcmp(p->family, "A5") == 0 ? PTOISA_A5 : PTOISA_A2A3);
        built_save(&p->s.saved, &p->s.b);
        p->count++;
    }
}

TEST(lists__are_those_of_paper) {
    static play plays[2] = {{.family = "A2A3"}, {.family = "A5"}};
    for (int i = 0; i < 2; i++) {
        lines_each("tests/kernel/lists.txt", play_line, &plays[i]);
        if (plays[i].is_on) {
            end_scene(&plays[i].s);
        }
    }
    assert_in_range(plays[0].count + plays[1].count, 60, UINT32_MAX);
}

// Calls of instructions as lines of text: a machine, the call as isa_calls.h names it, its operands as isa_operand.h
// has them, with their elements row by row if they are not 0, numbers that it takes beside them, and its result.
//
//      A2A3 TADD i16 1x3, i16 1x3: 32767 2*1, i16 1x3: 3*1 => -32768 2 2
//      A5   f16|f32 TMAX $ 1x2, $ 1x2: nan 1, $ 1x2: 1 inf => nan inf       $: each of these types
//      A2A3 TCMP u8 4x32, i32 4x64, i32 4x64 with LT => TCMP: i32 has no comparison but EQ on A2/A3
//
// Elements: N*V is V N times, ~V has either sign, and after `near` they are within 3 units in the last place. `nothing`
// is written, and it takes no time, or it takes `cycles N` on a dry core. Behind `gm` they are those of the window. A text is what is said where a call is refused; without either it is taken. After the
// machine: `unchecked`, `simulator` (a core as the simulator).

#ifndef ISA_TEXT_H
#define ISA_TEXT_H

#include "isa_calls.h"

// Tiles with memory of their own, but for the sizes that none has: those are of a dry core.
enum { ROOM = 1 << 16, ROOMS = 8, ELEMENTS_MAX = 4096 };

typedef struct rule_bench {
    test_bench bench;
    ptoisa_core *core;
    uint32_t used;
} rule_bench;

static rule_bench rules_here;

static _Alignas(64) uint8_t rooms[ROOMS][ROOM];

#define RULE_TEST(name) TEST_OF(name, rule_bench *b, &rules_here)

static inline void begin(rule_bench *b, ptoisa_family family) {
    test_begin(&b->bench, family, "rules");
    b->core = &b->bench.core;
    b->used = 0;
}

// The last call was refused in these words, and took no time.
static inline void refused(rule_bench *b, const char *text) {
    if (b->bench.fault_count != 1 || strcmp(b->bench.fault, text) != 0) {
        fail_msg("%u faults, \"%s\", expected \"%s\"", b->bench.fault_count, b->bench.fault, text);
    }
    assert_true(b->core->sum == 0);
    b->bench.fault_count = 0;
}

static inline void taken(rule_bench *b) {
    if (b->bench.fault_count != 0) {
        fail_msg("refused: \"%s\"", b->bench.fault);
    }
    b->core->sum = 0;
}

// -- elements -------------------------------------------------------------------------------------

typedef struct text_element {
    double value;
    bool has_any_sign;
} text_element;

// The elements of a text, all that there are.
static inline uint32_t text_elements(const char *text, text_element out[ELEMENTS_MAX]) {
    uint32_t count = 0;
    char word[40];
    for (int length; sscanf(text, " %39s%n", word, &length) == 1; text += length) {
        unsigned times = 1;
        int from = 0;
        char *end;
        from = sscanf(word, "%u*%n", &times, &from) == 1 && from ? from : 0;
        times = from ? times : 1;
        const bool has_any_sign = word[from] == '~';
        const double value = strtod(word + from + has_any_sign, &end);
        if (*end || end == word + from + has_any_sign) {
            fail_msg("%s is no element", word);
        }
        for (; times > 0; times--) {
            assert_true(count < ELEMENTS_MAX);
            out[count++] = (text_element){value, has_any_sign};
        }
    }
    return count;
}

static inline void text_fill(test_tile *t, const char *text) {
    static text_element elements[ELEMENTS_MAX];
    const uint32_t count = text_elements(text, elements);
    const uint32_t cols = t->tile.valid_cols, all = t->tile.valid_rows * cols;
    if (count != all && count != 1) {
        fail_msg("%u elements of %u: %s", count, all, text);
    }
    for (uint32_t i = 0; i < all; i++) {
        test_put(t, i / cols, i % cols, elements[count == 1 ? 0 : i].value);
    }
}

// Compares the elements of a tile, and takes them over into `before`.
static inline void text_expect(rule_bench *b, const test_tile *t, const char *text,
                               uint8_t before[ROOMS][ROOM]) {
    static text_element elements[ELEMENTS_MAX];
    const bool is_near = strncmp(text, "near ", 5) == 0;
    const uint32_t count = text_elements(text + (is_near ? 5 : 0), elements);
    const uint32_t cols = t->tile.valid_cols;
    const size_t start = (size_t)((uint8_t *)t->tile.data - rooms[0]);
    if (count != t->tile.valid_rows * cols && count != 1) {
        fail_msg("%u elements: %s", count, text);
    }
    for (uint32_t i = 0; i < t->tile.valid_rows * cols; i++) {
        const text_element *e = &elements[count == 1 ? 0 : i];
        const uint32_t r = i / cols, c = i % cols;
        const double want = e->has_any_sign ? copysign(e->value, ref_now(t, r, c)) : e->value;
        test_expect(&b->bench, t, r, c, want, is_near && want != 0 ? 3 : 0);
        ref_put_bits(before[0] + start, (ptoisa_dtype)t->tile.dtype, ref_offset(&t->tile, r, c),
                     ref_now_bits(t, r, c));
    }
}

// -- calls ----------------------------------------------------------------------------------------

// Numbers, or words for them.
static inline void text_numbers(test_call *call, const char *text) {
    static const char *const rounds[] = {"NONE", "RINT",  "ROUND", "FLOOR",
                                         "CEIL", "TRUNC", "ODD",   NULL};
    static const char *const compares[] = {"EQ", "NE", "LT", "LE", "GT", "GE", NULL};
    char word[32];
    for (int length; sscanf(text, " %31s%n", word, &length) == 1; text += length) {
        char *end;
        double number = strtod(word, &end);
        const int round = operand_find(rounds, word), compare = operand_find(compares, word);
        assert_true(call->number_count < COUNT_OF(call->numbers));
        number = compare >= 0 ? compare : round >= 0 ? round : number;
        if (compare < 0 && round < 0 && (*end || end == word)) {
            fail_msg("%s is no number", word);
        }
        call->numbers[call->number_count++] = number;
    }
    assert_true(call->number_count > 0);
}

static inline void text_operand(rule_bench *b, test_call *call, char *text) {
    static test_tile tiles[CALL_TILES_MAX];
    char *elements = strchr(text, ':');
    if (elements) {
        *elements++ = 0;
    }
    const operand_of o = operand_read(text, (ptoisa_family)b->core->machine->family);
    test_tile *t = &tiles[call->tile_count];
    if (o.is_window) {
        const int64_t rows = o.tile.valid_rows, cols = o.tile.valid_cols;
        call->window.global =
            ptoisa_global_make(rooms[ROOMS - 1], (ptoisa_dtype)o.tile.dtype, rows, cols, cols, 1);
        call->window.global.shape[2] = o.times;
        if (elements) {
            test_tile table = {.tile = ptoisa_tile_vec(rooms[ROOMS - 1], (ptoisa_dtype)o.tile.dtype,
                                                       (uint32_t)rows, (uint32_t)cols)};
            text_fill(&table, elements);
        }
        return;
    }
    b->core->is_dry = b->core->is_dry || (size_t)o.tile.rows * o.tile.cols * 8 > ROOM;
    t->tile = o.tile;
    t->tile.data = o.at < 0 ? rooms[b->used++ % ROOMS] : tiles[o.at].tile.data;
    t->role = elements ? TEST_READ : TEST_SCRATCH;
    if (elements) {
        text_fill(t, elements);
    }
    call->tiles[call->tile_count++] = o.is_none ? NULL : t;
}

// One call: its name, operands and numbers.
static inline void text_run(rule_bench *b, const char *text, const char *result) {
    static uint8_t before[ROOMS][ROOM];
    char name[32], operand[512];
    int length;
    uint32_t count = 0;
    assert_int_equal(sscanf(text, "%31s%n", name, &length), 1);
    test_call call = {.id = call_named(name)};
    const char *at = text + length, *numbers = strstr(text, " with ");
    memset(rooms, 0, sizeof rooms);
    for (; at < text + strlen(text) && at != numbers; count++) {
        const size_t left = numbers ? (size_t)(numbers - at) : strlen(at);
        const size_t size = strcspn(at, ",") < left ? strcspn(at, ",") : left;
        assert_true(size < sizeof operand && call.tile_count < CALL_TILES_MAX);
        snprintf(operand, sizeof operand, "%.*s", (int)size, at);
        at += size + (at[size] == ',');
        text_operand(b, &call, operand);
    }
    assert_int_equal(count, call_operand_count(call.id));
    if (numbers) {
        text_numbers(&call, numbers + strlen(" with "));
    }
    memcpy(before, rooms, sizeof rooms);
    call_numbers_taken = 0;
    call_run(&b->bench, &call);
    if (call.number_count > call_numbers_taken) {
        fail_msg("%s takes %u numbers", name, call_numbers_taken);
    }
    if (!result) {
        taken(b);
        return;
    } else if (result[0] >= 'A' && result[0] <= 'Z') {
        refused(b, result);
    } else if (strcmp(result, "nothing") == 0) {
        assert_true(b->core->sum == 0);
        taken(b);
    } else if (strncmp(result, "cycles ", 7) == 0) {
        assert_int_equal(b->core->sum, call_cycles(result + 7));
        taken(b);
    } else if (strncmp(result, "gm ", 3) == 0) {
        taken(b);
        const ptoisa_global *g = &call.window.global;
        const test_tile table = {.tile =
                                     ptoisa_tile_vec(rooms[ROOMS - 1], (ptoisa_dtype)g->dtype,
                                                     (uint32_t)g->shape[3], (uint32_t)g->shape[4])};
        text_expect(b, &table, result + 3, before);
    } else {
        taken(b);
        text_expect(b, call.tiles[0], result, before);
        for (uint32_t i = 1; i < call.tile_count; i++) {  // scratch may have changed
            const uint8_t *room = call.tiles[i] ? (uint8_t *)call.tiles[i]->tile.data : NULL;
            if (room && call.tiles[i]->role == TEST_SCRATCH && room != call.tiles[0]->tile.data) {
                memcpy(before[(room - rooms[0]) / ROOM], room, ROOM);
            }
        }
    }
    assert_memory_equal(rooms, before, sizeof rooms);
}

static inline void text_line(char *line, const char *result, void *user) {
    rule_bench *b = (rule_bench *)user;
    char machine[8], types[80], text[1024];
    int length, word;
    assert_int_equal(sscanf(line, "%7s %n", machine, &length), 1);
    assert_true(strcmp(machine, "A5") == 0 || strcmp(machine, "A2A3") == 0);
    const bool is_unchecked = strncmp(line + length, "unchecked ", 10) == 0;
    const bool is_as_simulator = strncmp(line + length, "simulator ", 10) == 0;
    length += is_unchecked || is_as_simulator ? 10 : 0;
    assert_int_equal(sscanf(line + length, "%79s %n", types, &word), 1);
    const bool has_types = types[0] >= 'a' && types[0] <= 'z';
    length += has_types ? word : 0;
    if (has_types && !strchr(line + length, '$')) {
        fail_msg("%s: there is no $ for it", types);
    }
    for (char *type = strtok(types, "|"); type; type = strtok(NULL, "|")) {
        size_t at = 0;
        for (const char *c = line + length; *c; c++) {
            at += (size_t)(*c == '$' ? snprintf(text + at, sizeof text - at, "%s", type)
                                     : snprintf(text + at, sizeof text - at, "%c", *c));
            assert_true(at < sizeof text);
        }
        begin(b, strcmp(machine, "A5") == 0 ? PTOISA_A5 : PTOISA_A2A3);
        b->core->is_checked = b->core->is_checked && !is_unchecked;
        b->core->is_as_simulator = is_as_simulator;
        b->bench.what = text;
        text_run(b, text, result);
    }
}

#endif

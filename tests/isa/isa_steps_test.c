// Cycles of instructions alone: isa_costs.txt. Clocks of cores, and FIFOs between them, step by step:
// isa_steps.txt, which begins with the words that it is written in.

#include "isa_operand.h"

#include "tests/support/suite.h"

#include <stdlib.h>

enum { CORES = 3, NAMES = 8, WORD = 160 };

typedef struct scene {
    ptoisa_core cores[CORES], *core;  // the one that does this step
    ptoisa_timing timing;
    ptoisa_fifo fifo;
    char names[NAMES][2][80];                 // of instructions
    uint32_t name_count, fault_count, count;  // of cases
    char fault[PTOISA_FAULT_TEXT_MAX];
    bool has_claim;
    int line;
} scene;

#define SCENE_FAIL(s, format, ...) fail_msg("isa_steps.txt:%d: " format, (s)->line, __VA_ARGS__)

static void keep_fault(ptoisa_core *core, const char *text) {
    scene *s = (scene *)core->fault_user;
    s->fault_count++;
    snprintf(s->fault, sizeof s->fault, "%s", text);
}

// -- beginning ------------------------------------------------------------------------------------

static ptoisa_model model_of(const char *name) {
    static const char *const names[] = {"UNIT", "A2A3", "A5", "USER", "910B", "950PR", NULL};
    static const ptoisa_model models[] = {PTOISA_MODEL_UNIT, PTOISA_MODEL_A2A3, PTOISA_MODEL_A5,
                                          PTOISA_MODEL_USER, PTOISA_MODEL_910B, PTOISA_MODEL_950PR};
    const int found = operand_find(names, name);
    if (found < 0) {
        fail_msg("there is no model %s", name);
    }
    return models[found];
}

// "MODEL[, easy][, FIELD N ...]". easy: times that are easy to count, of a 910B: 1,000 cycles late, 10 to begin,
// 3 a row, 64 bytes a cycle.
static void begin(scene *s, const char *text) {
    char model[16], word[24];
    int length;
    unsigned number;
    const int line = s->line;
    assert_int_equal(sscanf(text, "%15[^,:]%n", model, &length), 1);
    memset(s, 0, sizeof *s);
    s->line = line;
    s->timing = *ptoisa_timing_910b();
    for (text += length; sscanf(text, ", %23[^ ,:]%n", word, &length) == 1; text += length) {
        if (strcmp(word, "easy") == 0) {
            for (int i = 0; i < PTOISA_PATH_COUNT; i++) {
                s->timing.path[i] = (ptoisa_path_timing){1000, 10, 3, 6400};
            }
            continue;
        } else if (strcmp(word, "simulator") == 0) {
            s->cores[0].is_as_simulator = true;
            continue;
        }
        int behind = 0;
        assert_int_equal(sscanf(text + length, " %u%n", &number, &behind), 1);
        length += behind;
        if (strcmp(word, "clock") == 0) {
            s->timing.clock_mhz = number;
        } else if (strcmp(word, "transposed") == 0) {
            s->timing.transposed_rate = number;
        } else if (strcmp(word, "L0C") == 0) {
            s->timing.path[PTOISA_L0C_TO_GM].rate = number;
        } else if (strcmp(word, "without") == 0) {
            s->timing.without |= 1u << number;
        } else {
            SCENE_FAIL(s, "a core has no %s", word);
        }
    }
    const bool is_as_simulator = s->cores[0].is_as_simulator;
    const bool has_timing = strcmp(model, "910B") == 0;
    assert_int_equal(*text, ':');
    for (int i = 0; i < CORES; i++) {
        ptoisa_core *core = &s->cores[i];
        ptoisa_core_init(core, model_of(model), NULL);
        core->is_dry = true;
        core->is_checked = true;
        core->is_as_simulator = is_as_simulator;
        core->on_fault = keep_fault;
        core->fault_user = s;
        core->timing = has_timing ? &s->timing : NULL;
    }
    s->core = &s->cores[0];
}

static uint32_t sub_of(const scene *s) {
    return s->core == &s->cores[2];
}

static const ptoisa_core *const *cores_of(const scene *s) {
    static const ptoisa_core *cores[CORES];
    for (int i = 0; i < CORES; i++) {
        cores[i] = &s->cores[i];
    }
    return cores;
}

// -- steps ----------------------------------------------------------------------------------------

// The pipe of this name; one more than PTOISA_PIPE_ALL: there is none.
static ptoisa_pipe pipe_named(const char *name) {
    uint32_t pipe = 0;
    while (pipe <= PTOISA_PIPE_ALL && strcmp(ptoisa_pipe_name((ptoisa_pipe)pipe), name) != 0) {
        pipe++;
    }
    return (ptoisa_pipe)pipe;
}

// A number that is all of a text.
static uint64_t number_of(const char *text) {
    char *end;
    const uint64_t number = strtoull(text, &end, 10);
    if (end == text || *end) {
        fail_msg("%s is no number", text);
    }
    return number;
}

// A pipe, or the number of one, which may be none.
static ptoisa_pipe pipe_of(const char *name) {
    const ptoisa_pipe pipe = pipe_named(name);
    return pipe <= PTOISA_PIPE_ALL ? pipe : (ptoisa_pipe)number_of(name);
}

static ptoisa_split split_of(const char *name) {
    uint32_t split = 0;
    while (split < PTOISA_SPLIT_COUNT &&
           strcmp(ptoisa_split_name((ptoisa_split)split), name) != 0) {
        split++;
    }
    assert_true(split < PTOISA_SPLIT_COUNT || strcmp(name, "NONE") == 0);
    return (ptoisa_split)split;
}

// "TADD f32 64x64", whose operands are all this tile; or a result and two sources.
static void issue(scene *s, const char *text) {
    ptoisa_tile tiles[3];
    const ptoisa_tile *used[3] = {&tiles[0], &tiles[0], &tiles[0]};
    char name[32], operand[64];
    int length, op = 0, count = 0;
    const char *end = strstr(text, " detail "), *at;
    const uint32_t detail = end ? (uint32_t)number_of(end + strlen(" detail ")) : 0;
    char operands[WORD];
    assert_int_equal(sscanf(text, "%31s%n", name, &length), 1);
    while (strcmp(ptoisa_op_name((ptoisa_op)op), name) != 0) {
        if (++op == PTOISA_OP_COUNT) {
            SCENE_FAIL(s, "there is no step %s", name);
        }
    }
    snprintf(operands, sizeof operands, "%.*s", end ? (int)(end - text) - length : WORD - 1,
             text + length);
    for (at = operands; operand_next(&at, operand); count++) {
        assert_true(count < 3);
        const operand_of o = operand_read(operand, (ptoisa_family)s->core->machine->family);
        tiles[count] = o.tile;
        used[count] = o.is_none ? NULL : &tiles[count];
    }
    assert_true(count == 1 || count == 3);
    ptoisa_issue_as(s->core, (ptoisa_op)op, used[0], used[1], used[2], detail);
}

static void step_flag(scene *s, const char *text, bool is_set) {
    char src[8], dst[8];
    unsigned event;
    int length;
    assert_int_equal(sscanf(text, "%7s %7s %u%n", src, dst, &event, &length), 3);
    assert_string_equal(text + length, "");
    (is_set ? ptoisa_set_flag : ptoisa_wait_flag)(s->core, pipe_of(src), pipe_of(dst), event);
}

static void step_set(scene *s, const char *text) {
    step_flag(s, text, true);
}

static void step_wait(scene *s, const char *text) {
    step_flag(s, text, false);
}

static void step_barrier(scene *s, const char *text) {
    ptoisa_pipe_barrier(s->core, pipe_of(text));
}

static void step_until(scene *s, const char *text) {
    char pipe[8];
    int length;
    assert_int_equal(sscanf(text, "%7s %n", pipe, &length), 1);
    ptoisa_wait_until(s->core, pipe_of(pipe), number_of(text + length));
}

static void step_reset(scene *s, const char *text) {
    assert_string_equal(text, "");
    ptoisa_core_reset(s->core);
}

static void step_finished(scene *s, const char *text) {
    assert_true(!*text || strcmp(text, "not") == 0);
    assert_int_equal(ptoisa_core_finish(s->core), strcmp(text, "not") != 0);
}

// "C2V FLAG BYTES SLOTS[ gm BYTES]".
static void step_fifo(scene *s, const char *text) {
    char direction[8];
    unsigned flag, bytes, slots;
    int length;
    assert_int_equal(sscanf(text, "%7s %u %u %u%n", direction, &flag, &bytes, &slots, &length), 4);
    text += length;
    assert_true(!*text || strncmp(text, " gm ", 4) == 0);
    const uint32_t gm = *text ? (uint32_t)number_of(text + 4) : 0;
    assert_true(strcmp(direction + 1, "2C") == 0 || strcmp(direction + 1, "2V") == 0 ||
                strcmp(direction, "both") == 0);
    const uint32_t was = s->fault_count;
    const bool is_made = ptoisa_fifo_init(s->core, &s->fifo,
                                          strcmp(direction, "C2V") == 0   ? PTOISA_C2V
                                          : strcmp(direction, "V2C") == 0 ? PTOISA_V2C
                                                                          : (ptoisa_direction)3,
                                          flag, bytes, slots, NULL, gm);
    assert_int_equal(is_made, s->fault_count == was);
}

// "OPERAND, SPLIT[ as TYPE][ relu][ by N][ sub N][ anyway]", or "scales OPERAND".
static void step_push(scene *s, const char *text) {
    static ptoisa_tile tile, scales;
    ptoisa_fifo_fixpipe how = {PTOISA_DTYPE_NONE, false, false, 0, NULL};
    char operand[64], split[24], word[8], type[8];
    int length;
    uint32_t sub = sub_of(s);
    bool is_pushed = false;
    const ptoisa_family family = (ptoisa_family)s->core->machine->family;
    assert_true(operand_next(&text, operand));
    tile = operand_read(operand, family).tile;
    how.dtype = (ptoisa_dtype)tile.dtype;
    assert_int_equal(sscanf(text, " %23s%n", split, &length), 1);
    for (text += length; sscanf(text, " %7s%n", word, &length) == 1; text += length) {
        int behind = 0;
        if (strcmp(word, "relu") == 0) {
            how.is_relu = true;
        } else if (strcmp(word, "anyway") == 0) {  // though it is refused
            is_pushed = true;
        } else if (strcmp(word, "as") == 0 && sscanf(text + length, " %7s%n", type, &behind) == 1) {
            for (how.dtype = (ptoisa_dtype)1; strcmp(ptoisa_dtype_name(how.dtype), type) != 0;) {
                how.dtype = (ptoisa_dtype)(how.dtype + 1);
                assert_true(how.dtype < PTOISA_DTYPE_COUNT);
            }
        } else if (strcmp(word, "by") == 0 && sscanf(text + length, " %f%n", &how.scale, &behind)) {
            how.is_scaled = true;
        } else if (strcmp(word, "sub") == 0 && sscanf(text + length, " %u%n", &sub, &behind)) {
            assert_true(sub < CORES);
        } else if (strcmp(word, "scales") == 0) {
            scales = operand_read(text + length, family).tile;
            how.is_scaled = true;
            how.fp = &scales;
            behind = (int)strlen(text + length);
        } else {
            SCENE_FAIL(s, "a push has no %s", word);
        }
        length += behind;
    }
    const uint64_t pushed = s->fifo.pushed[sub % 2];
    const uint32_t was = s->fault_count;
    ptoisa_fifo_push_fixpipe(s->core, &s->fifo, sub, &tile, split_of(split), &how);
    assert_int_equal(s->fifo.pushed[sub % 2], pushed + (is_pushed || s->fault_count == was));
}

static void step_pop(scene *s, const char *text) {
    static ptoisa_tile tile;
    char operand[64], split[24];
    int length;
    uint32_t sub = sub_of(s);
    assert_true(operand_next(&text, operand));
    tile = operand_read(operand, (ptoisa_family)s->core->machine->family).tile;
    assert_int_equal(sscanf(text, " %23s%n", split, &length), 1);
    text += length;
    assert_true(!*text || strncmp(text, " sub ", 5) == 0);
    sub = *text ? (uint32_t)number_of(text + 5) : sub;
    ptoisa_fifo_pop(s->core, &s->fifo, sub, &tile, split_of(split));
}

// The address of a slot: "ROWS COLS SPLIT".
static void step_address(scene *s, const char *text, bool is_push) {
    char split[24];
    unsigned rows, cols;
    int length;
    assert_int_equal(sscanf(text, "%u %u %23s%n", &rows, &cols, split, &length), 3);
    assert_string_equal(text + length, "");
    ptoisa_global g = ptoisa_global_make(NULL, PTOISA_F32, rows, cols, cols, 1);
    const uint32_t was = s->fault_count;
    const bool is_good = (is_push ? ptoisa_fifo_alloc : ptoisa_fifo_acquire)(
        s->core, &s->fifo, sub_of(s), split_of(split), &g);
    assert_int_equal(is_good, s->fault_count == was);
}

static void step_alloc(scene *s, const char *text) {
    step_address(s, text, true);
}

static void step_acquire(scene *s, const char *text) {
    step_address(s, text, false);
}

static void step_commit(scene *s, const char *text) {
    ptoisa_fifo_commit(s->core, &s->fifo, *text ? (uint32_t)number_of(text) : sub_of(s));
}

static void step_free(scene *s, const char *text) {
    ptoisa_fifo_release(s->core, &s->fifo, *text ? (uint32_t)number_of(text) : sub_of(s));
}

static void step_empty(scene *s, const char *text) {
    assert_string_equal(text, "");
    const uint32_t was = s->fault_count;
    const bool is_empty = ptoisa_fifo_finish(s->core, &s->fifo);
    assert_int_equal(is_empty, s->fault_count == was);
}

// -- claims ---------------------------------------------------------------------------------------

static void is_number(scene *s, const char *what, uint64_t got, const char *text) {
    const uint64_t want = number_of(text);
    if (got != want) {
        SCENE_FAIL(s, "%s is %llu, not %llu", what, (unsigned long long)got,
                   (unsigned long long)want);
    }
}

// Or "above N".
static void claim_cycles(scene *s, const char *text) {
    if (strncmp(text, "above ", 6) == 0) {
        assert_true(ptoisa_cycles(s->core) > number_of(text + 6));
        return;
    }
    is_number(s, "cycles", ptoisa_cycles(s->core), text);
}

static void claim_block(scene *s, const char *text) {
    is_number(s, "block", ptoisa_block_cycles(cores_of(s), CORES), text);
}

static void claim_sum(scene *s, const char *text) {
    is_number(s, "sum", s->core->sum, text);
}

static void claim_busy(scene *s, const char *text) {
    char pipe[8];
    int length;
    assert_int_equal(sscanf(text, "%7s %n", pipe, &length), 1);
    is_number(s, "busy", s->core->busy[pipe_of(pipe)], text + length);
}

// "push yes".
static void claim_can(scene *s, const char *text) {
    const bool is_push = strncmp(text, "push ", 5) == 0;
    assert_true(is_push || strncmp(text, "pop ", 4) == 0);
    const bool can = (is_push ? ptoisa_fifo_can_push : ptoisa_fifo_can_pop)(&s->fifo, sub_of(s));
    assert_string_equal(strchr(text, ' ') + 1, can ? "yes" : "no");
}

static const struct {
    const char *name;
    void (*run)(scene *s, const char *text);
    bool is_claim;
} words[] = {
    {"set", step_set, false},         {"wait", step_wait, false},
    {"barrier", step_barrier, false}, {"until", step_until, false},
    {"reset", step_reset, false},     {"finished", step_finished, true},
    {"fifo", step_fifo, false},       {"push", step_push, true},
    {"pop", step_pop, false},         {"alloc", step_alloc, false},
    {"acquire", step_acquire, false}, {"commit", step_commit, false},
    {"free", step_free, false},       {"empty", step_empty, false},
    {"cycles", claim_cycles, true},   {"block", claim_block, true},
    {"sum", claim_sum, true},         {"busy", claim_busy, true},
    {"can", claim_can, true},
};

static void no_fault(const scene *s) {
    if (s->fault_count > 0) {
        SCENE_FAIL(s, "a fault: %s", s->fault);
    }
}

// A step: of the first core, or of `v0` or `v1`. A pipe and a number are its clock.
static void step(scene *s, const char *text) {
    char word[24];
    int length = 0;
    no_fault(s);
    s->core = &s->cores[0];
    if (text[0] == 'v' && (text[1] == '0' || text[1] == '1') && text[2] == ' ') {
        s->core = &s->cores[1 + (text[1] - '0')];
        text += 3;
    }
    assert_int_equal(sscanf(text, "%23s %n", word, &length), 1);
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (strcmp(words[i].name, word) == 0) {
            words[i].run(s, text + length);
            s->has_claim = s->has_claim || words[i].is_claim;
            return;
        }
    }
    for (uint32_t i = 0; i < s->name_count; i++) {
        if (strcmp(s->names[i][0], text) == 0) {
            issue(s, s->names[i][1]);
            return;
        }
    }
    const ptoisa_pipe pipe = pipe_named(word);
    if (pipe < PTOISA_PIPE_COUNT) {
        is_number(s, word, s->core->clock[pipe], text + length);
        s->has_claim = true;
        return;
    }
    issue(s, text);
}

static void line_of(scene *s, char *text) {
    char *equals = strstr(text, " = ");
    if (strncmp(text, "refused ", 8) == 0) {
        if (s->fault_count != 1 || strcmp(s->fault, text + 8) != 0) {
            SCENE_FAIL(s, "%u faults, \"%s\"", s->fault_count, s->fault);
        }
        s->fault_count = 0;
        s->has_claim = true;
    } else if (equals) {
        *equals = 0;
        assert_true(s->name_count < NAMES && strlen(equals + 3) < 80 && strlen(text) < 80);
        strcpy(s->names[s->name_count][0], text);
        strcpy(s->names[s->name_count++][1], equals + 3);
    } else {
        for (char *at = text; at;) {
            char *next = strstr(at, "; ");
            if (next) {
                *next = 0;
            }
            step(s, at);
            at = next ? next + 2 : NULL;
        }
    }
}

static void steps_line(char *line, int number, void *user) {
    scene *s = (scene *)user;
    s->line = number;
    if (strncmp(line, "case on ", 8) != 0) {
        line_of(s, line);
        return;
    }
    no_fault(s);
    assert_true(s->count == 0 || s->has_claim);
    const uint32_t count = s->count + 1;
    begin(s, line + 8);
    s->count = count;
    print_message("%s\n", line);
}

TEST(steps__are_those_of_paper) {
    static scene s;
    lines_each("tests/isa/isa_steps.txt", steps_line, &s);
    no_fault(&s);
    assert_true(s.has_claim && s.count > 25);
}

// -- costs ----------------------------------------------------------------------------------------

// Compares a core's cycles: N; `about N`, within a tenth; or not so.
static void check_cost(const scene *s, const char *op, const char *want) {
    const bool is_not = strncmp(want, "not about ", 10) == 0;
    const bool is_near = is_not || strncmp(want, "about ", 6) == 0;
    const double got = (double)ptoisa_cycles(s->core);
    char *end;
    want += is_not ? 10 : is_near ? 6 : 0;
    const double cycles = strtod(want, &end);
    const bool is_good =
        is_near ? (got > 0.9 * cycles && got < 1.1 * cycles) != is_not : got == cycles;
    assert_true(end > want && end[strspn(end, " ")] == 0);
    assert_true(s->core->sum == ptoisa_cycles(s->core));
    if (!is_good) {
        fail_msg("%s: %g cycles, not %s", op, got, want);
    }
}

// Words of a text, the k-th of those that have a `|` between them. False: there is none.
static bool alternative(const char *text, uint32_t k, char to[WORD]) {
    bool is_other = k == 0;
    size_t size = 0;
    for (const char *at = text; *at;) {
        const char *end = at + strcspn(at, " ");
        for (uint32_t i = 0; i < k && at + strcspn(at, "|") < end; i++) {
            at += strcspn(at, "|") + 1;
            is_other = i + 1 == k;
        }
        const size_t length = strcspn(at, " |"), space = strspn(end, " ");
        size +=
            (size_t)snprintf(to + size, WORD - size, "%.*s%.*s", (int)length, at, (int)space, end);
        assert_true(size < WORD);
        at = end + space;
    }
    return is_other;
}

// A model or `both`, an instruction or several, operands, and the cycles on a new core.
static void cost_line(char *line, const char *result, void *user) {
    static scene s;
    char models[16], model[24], ops[128], operands[WORD], text[WORD];
    int length, behind;
    (void)user;
    assert_non_null(result);
    assert_int_equal(sscanf(line, "%15s %127s%n", models, ops, &length), 2);
    const bool is_both = strcmp(models, "both") == 0;
    for (uint32_t i = 0; alternative(line + length, i / (1u + is_both), operands); i++) {
        for (const char *at = ops; sscanf(at, "%31[^|]%n", text, &behind) == 1; at += *at == '|') {
            at += behind;
            assert_true(strlen(text) + strlen(operands) < sizeof text);
            strcat(text, operands);
            snprintf(model, sizeof model, "%s:", !is_both ? models : i % 2 ? "A5" : "A2A3");
            begin(&s, model);
            issue(&s, text);
            check_cost(&s, text, result);
            no_fault(&s);
        }
    }
}

TEST(costs__are_those_of_paper) {
    operand_lines("tests/isa/isa_costs.txt", 200, cost_line, NULL);
}

// From a body to finished code: every pass, in order, and the proof at the end where it is wanted.

#include "compiled.h"

#include "../base/atomic.h"
#include "cut.h"
#include "legal.h"
#include "lower.h"
#include "passes.h"
#include "preload.h"
#include "proof.h"
#include "rotate.h"
#include "split.h"
#include "waits.h"

#include <stdio.h>

// -- checks of a task -----------------------------------------------------------------------------

typedef struct pwsp_checks {
    pwsp_memory memory;
    pwsp_tile_check *items;
    uint64_t count, capacity;
    bool is_out;
} pwsp_checks;

// b is read where a says how much; nothing to check if they are the same, or b is always full.
static void pwsp_checks_add(pwsp_checks *checks, const pwsp_kop *op, const pwsp_valid *a,
                            const pwsp_valid *b, uint8_t axis) {
    if (pwsp_valid_is_equal(a, b) || b->param == 0 || checks->is_out) {
        return;
    }
    if (!PWSP_GROW(&checks->memory, checks->items, checks->capacity, checks->count + 1)) {
        checks->is_out = true;
        return;
    }
    pwsp_tile_check *check = &checks->items[checks->count++];
    check->a = *a;
    check->b = *b;
    check->kind = op->kind;
    check->axis = axis;
}

// y as an operand of a result shaped like x: the same shape, or a vector along rows or columns.
static void pwsp_checks_operand(pwsp_checks *checks, const pwsp_kop *op, const pwsp_kop *y) {
    if (y->rows == 0 || op->rows == 0) {
        return;
    }
    if (y->rows == op->rows && y->cols == op->cols) {
        pwsp_checks_add(checks, op, &op->valid_rows, &y->valid_rows, 0);
        pwsp_checks_add(checks, op, &op->valid_cols, &y->valid_cols, 1);
    } else if (y->cols == 1 && y->rows == op->rows) {
        pwsp_checks_add(checks, op, &op->valid_rows, &y->valid_rows, 0);
    } else if (y->rows == 1 && y->cols == op->rows) {
        pwsp_checks_add(checks, op, &op->valid_rows, &y->valid_cols, 0);
    } else if (y->rows == 1 && y->cols == op->cols) {
        pwsp_checks_add(checks, op, &op->valid_cols, &y->valid_cols, 1);
    } else if (y->cols == 1 && y->rows == op->cols) {
        pwsp_checks_add(checks, op, &op->valid_cols, &y->valid_rows, 1);
    }
}

// A vector with a value for each column, also where a square tile would take it by rows.
static void pwsp_checks_by_col(pwsp_checks *checks, const pwsp_kop *op, const pwsp_kop *y) {
    pwsp_checks_add(checks, op, &op->valid_cols, y->cols == 1 ? &y->valid_rows : &y->valid_cols, 1);
}

static void pwsp_checks_op(pwsp_checks *checks, const ptowsp_body *body, const pwsp_kop *op) {
    const pwsp_kop *s[PWSP_KOP_SRC_MAX];
    for (int i = 0; i < PWSP_KOP_SRC_MAX; i++) {
        s[i] = &body->ops[op->src[i]];
    }
    switch ((pwsp_kop_kind)op->kind) {
    case PWSP_KOP_STORE:
    case PWSP_KOP_STORE_ADD: {
        const pwsp_kop *to = &body->ops[body->tiles[op->param - 1].value];
        pwsp_valid rows = pwsp_valid_window(to->valid_rows, op->row, s[0]->rows, op->row_loop);
        pwsp_valid cols = pwsp_valid_window(to->valid_cols, op->col, s[0]->cols, op->col_loop);
        uint32_t product = pwsp_lower_beginning(body, op->src[0]);
        if (product) {  // which has all that is stored
            pwsp_checks_add(checks, op, &rows, &body->ops[product].valid_rows, 0);
            pwsp_checks_add(checks, op, &cols, &body->ops[product].valid_cols, 1);
        }
        if (s[0]->valid_rows.param) {
            pwsp_checks_add(checks, op, &rows, &s[0]->valid_rows, 0);
        }
        if (s[0]->valid_cols.param) {
            pwsp_checks_add(checks, op, &cols, &s[0]->valid_cols, 1);
        }
        break;
    }
    case PWSP_KOP_MATMUL:
    case PWSP_KOP_MATMUL_ACC:
        pwsp_checks_add(checks, op, &s[0]->valid_cols, &s[1]->valid_rows, 0);
        pwsp_checks_operand(checks, op, s[2]);
        break;
    case PWSP_KOP_MATMUL_BIAS:
        pwsp_checks_add(checks, op, &s[0]->valid_cols, &s[1]->valid_rows, 0);
        pwsp_checks_by_col(checks, op, s[2]);
        break;
    case PWSP_KOP_COL_BROADCAST: pwsp_checks_by_col(checks, op, s[1]); break;
    case PWSP_KOP_ADD:
    case PWSP_KOP_SUB:
    case PWSP_KOP_MUL:
    case PWSP_KOP_DIV:
    case PWSP_KOP_MAX:
    case PWSP_KOP_MIN:
    case PWSP_KOP_SELECT:
    case PWSP_KOP_COMPARE:
    case PWSP_KOP_QUANTIZE:
    case PWSP_KOP_DEQUANTIZE:
    case PWSP_KOP_ROW_BROADCAST:
        for (int i = 0; i < PWSP_KOP_SRC_MAX; i++) {
            pwsp_checks_operand(checks, op, s[i]);
        }
        break;
    case PWSP_KOP_INTERLEAVE:
        pwsp_checks_add(checks, op, &s[0]->valid_rows, &s[1]->valid_rows, 0);
        pwsp_checks_add(checks, op, &s[0]->valid_cols, &s[1]->valid_cols, 1);
        break;
    case PWSP_KOP_SORT32:
        pwsp_checks_add(checks, op, &s[0]->valid_cols, &s[1]->valid_cols, 1);
        if (s[1]->rows == s[0]->rows) {
            pwsp_checks_add(checks, op, &s[0]->valid_rows, &s[1]->valid_rows, 0);
        }
        break;
    default: break;
    }
}

// -- code -----------------------------------------------------------------------------------------

// Does a tile change with the index of a loop?
static bool pwsp_tile_code_depends(const pwsp_list *list, const pwsp_list_tile *tile,
                                   uint32_t loop) {
    return tile->valid_rows.loop == loop || tile->valid_cols.loop == loop ||
           list->tiles[tile->root].loop == loop;
}

// Fills in the tables of iterations; returns the number of entries of loop_tiles (NULL only counts
// them).
static uint32_t pwsp_tile_code_loops(const pwsp_list *list, pwsp_code_loop *loops,
                                     uint32_t *loop_tiles) {
    uint32_t count = 0, loop = 0;
    for (uint32_t i = 0; i < list->insn_count && loop_tiles; i++) {
        const pwsp_insn *insn = &list->insns[i];
        if (insn->op == PWSP_INSN_LOOP) {
            loop = insn->loop;
            loops[loop].first = i;
        }
        loops[loop].insn_count++;
        if (insn->op == PWSP_INSN_END) {
            loops[loop].last = i;
            loop = list->loops[loop].parent;
        }
    }
    for (loop = 1; loop <= list->loop_count; loop++) {
        uint32_t first = count;
        if (loop_tiles) {
            loops[loop].of = list->loops[loop];
        }
        for (uint32_t i = 1; i < list->tile_count; i++) {
            if (!pwsp_tile_code_depends(list, &list->tiles[i], loop)) {
                continue;
            }
            if (loop_tiles) {
                loop_tiles[count] = i;
            }
            count++;
        }
        if (loop_tiles) {
            loops[loop].tiles = first;
            loops[loop].tile_count = count - first;
        }
    }
    return count;
}

// One block: the code, its instructions, tiles, checks and loops.
static pwsp_tile_code *pwsp_tile_code_make(const ptowsp_body *body, const pwsp_list *list,
                                           const pwsp_checks *checks) {
    size_t insns = (size_t)list->insn_count * sizeof(pwsp_insn);
    size_t tiles = (size_t)list->tile_count * sizeof(pwsp_list_tile);
    size_t conditions = (size_t)checks->count * sizeof(pwsp_tile_check);
    size_t head = (sizeof(pwsp_tile_code) + 15) / 16 * 16;
    size_t tiles_at = head + (insns + 15) / 16 * 16, checks_at = tiles_at + (tiles + 15) / 16 * 16;
    size_t loops_at = checks_at + (conditions + 15) / 16 * 16;
    size_t loops = list->loop_count ? (list->loop_count + 1) * sizeof(pwsp_code_loop) : 0;
    size_t numbers_at = loops_at + (loops + 15) / 16 * 16;
    size_t size = numbers_at + sizeof(uint32_t) * pwsp_tile_code_loops(list, NULL, NULL);
    char *block = (char *)pwsp_memory_take(&body->memory, size);
    if (!block) {
        return NULL;
    }
    pwsp_tile_code *code = (pwsp_tile_code *)(void *)block;
    memset(code, 0, sizeof *code);
    code->reference_count = 1;
    code->memory = body->memory;
    code->size = size;
    if (insns) {
        memcpy(block + head, list->insns, insns);
    }
    if (tiles) {
        memcpy(block + tiles_at, list->tiles, tiles);
    }
    if (conditions) {
        memcpy(block + checks_at, checks->items, conditions);
    }
    code->insns = (const pwsp_insn *)(void *)(block + head);
    code->tiles = (const pwsp_list_tile *)(void *)(block + tiles_at);
    code->checks = (const pwsp_tile_check *)(void *)(block + checks_at);
    code->loops = (const pwsp_code_loop *)(void *)(block + loops_at);
    code->loop_tiles = (const uint32_t *)(void *)(block + numbers_at);
    if (loops) {
        memset(block + loops_at, 0, loops);
        pwsp_tile_code_loops(list, (pwsp_code_loop *)(void *)(block + loops_at),
                             (uint32_t *)(void *)(block + numbers_at));
    }
    memcpy(code->name, body->name, sizeof code->name);
    code->loop_count = list->loop_count;
    code->insn_count = (uint32_t)list->insn_count;
    code->tile_count = (uint32_t)list->tile_count;
    code->check_count = (uint32_t)checks->count;
    code->param_count = body->tile_count;
    code->scalar_count = body->scalar_count;
    for (uint32_t i = 0; i < body->tile_count; i++) {
        code->param_dtypes[i] = (uint8_t)body->tiles[i].dtype;
        code->param_rows[i] = body->tiles[i].rows;
        code->param_cols[i] = body->tiles[i].cols;
    }
    for (uint32_t i = 0; i < body->scalar_count; i++) {
        code->scalar_dtypes[i] = (uint8_t)body->scalars[i].dtype;
    }
    memcpy(code->used, list->used, sizeof code->used);
    memcpy(code->fifos, list->fifos, sizeof code->fifos);
    code->is_mixed = list->is_mixed;
    code->split_tile = list->split_tile;
    code->machine = body->machine;
    for (uint32_t i = 0; i < code->insn_count && !code->is_cube; i++) {
        uint8_t op = code->insns[i].op;
        code->is_cube = op >= PTOISA_TMATMUL && op <= PTOISA_TGEMV_BIAS;
    }
    return code;
}

// Checks the operands of each instruction on a dry core, as the device would.
typedef struct pwsp_tile_code_checks {
    pwsp_list_fault *fault;
    uint32_t insn;
} pwsp_tile_code_checks;

static void pwsp_tile_code_on_fault(ptoisa_core *core, const char *text) {
    const pwsp_tile_code_checks *checks = (const pwsp_tile_code_checks *)core->fault_user;
    if (checks->fault->status == PTOWSP_OK) {
        pwsp_list_fail(checks->fault, PTOWSP_UNSUPPORTED, checks->insn, "%s", text);
    }
}

// Completes the text of a fault: before it the operation or parameter that the instruction comes
// from, after it the element type, the machine and, unless the text has it, the rule of the
// capability table.
static void pwsp_tile_code_blame(const ptowsp_body *body, const pwsp_list *list,
                                 pwsp_list_fault *fault) {
    if (fault->status == PTOWSP_OUT_OF_MEMORY || fault->insn >= list->insn_count) {
        return;
    }
    const pwsp_insn *insn = &list->insns[fault->insn];
    const pwsp_kop *op = &body->ops[insn->value];
    const char *name = insn->value == 0             ? NULL
                       : op->kind == PWSP_KOP_PARAM ? body->tiles[op->param - 1].name
                                                    : pwsp_kop_name((pwsp_kop_kind)op->kind);
    uint32_t tile = insn->src[0] ? insn->src[0] : insn->dst[0];
    const char *rule = strncmp(fault->text, "memory: ", 8) == 0   ? "memories"
                       : strncmp(fault->text, "verify: ", 8) == 0 ? "tiles"
                                                                  : "operands";
    char text[sizeof fault->text], more[PTOWSP_NAME_MAX + 64] = "";
    memcpy(text, fault->text, sizeof text);
    if (!strstr(text, "(rule: ")) {
        snprintf(more, sizeof more, " (%s on %s; rule: %s)",
                 ptoisa_dtype_name((ptoisa_dtype)list->tiles[tile].dtype), body->machine.name,
                 rule);
    }
    snprintf(fault->text, sizeof fault->text, "%s%s%.*s%s", name ? name : "", name ? ": " : "",
             (int)(sizeof fault->text - strlen(more) - (name ? strlen(name) + 2 : 0) - 1), text,
             more);
}

static bool pwsp_tile_code_check(const pwsp_tile_code *code, pwsp_arena *arena,
                                 pwsp_list_fault *fault) {
    pwsp_tile_core core;
    const size_t after = offsetof(pwsp_tile_core, block);  // the check sets up everything before it
    memset((char *)&core + after, 0, sizeof core - after);
    core.tiles =
        (ptoisa_tile *)pwsp_arena_alloc(arena, (code->tile_count + 1) * sizeof *core.tiles, 8);
    if (core.tiles) {
        pwsp_tile_code_checks checks = {fault, 0};
        pwsp_tile_core_check_all(&core, code, pwsp_tile_code_on_fault, &checks, &checks.insn);
    } else {
        pwsp_list_fail(fault, PTOWSP_OUT_OF_MEMORY, 0, "out of memory");
    }
    return fault->status == PTOWSP_OK;
}

// Does an assertion look at its condition?
static bool pwsp_has_assertions(void) {
    bool has = false;
    PTOWSP_ASSERT((has = true));
    return has;
}

// Places tiles. In a split list, UB is planned for the rows of one vector core if whole tiles do not fit
// or a loop preloads.
static bool pwsp_tile_code_place(pwsp_list *list, const ptoisa_machine *machine,
                                 pwsp_list_fault *fault) {
    bool is_preloading = false;
    for (uint32_t loop = 1; loop <= list->loop_count; loop++) {
        is_preloading = is_preloading || list->loops[loop].preload;
    }
    if (!is_preloading || !list->split_tile) {
        bool is_placed = pwsp_list_place_loops(list, machine, fault);
        if (is_placed || !list->split_tile || fault->status != PTOWSP_LIMIT_EXCEEDED) {
            return is_placed;
        }
        memset(fault, 0, sizeof *fault);
    }
    return pwsp_list_split_memory(list)
               ? pwsp_list_place_loops(list, machine, fault)
               : pwsp_list_fail(fault, PTOWSP_OUT_OF_MEMORY, 0, "out of memory");
}

static bool pwsp_tile_code_try(ptowsp_body *body, pwsp_list *list, const uint8_t *rerouted,
                               pwsp_list_fault *fault) {
    return pwsp_lower(body, list, fault) && pwsp_legalise(body, list, fault) &&
           pwsp_list_cut(list, &body->machine, rerouted, fault) && pwsp_list_preload(list, fault) &&
           pwsp_tile_code_place(list, &body->machine, fault) &&
           pwsp_list_add_waits(list, &body->machine, fault) &&
           (!(list->is_mixed || pwsp_has_assertions()) ||
            pwsp_list_verify(list, &body->machine, fault));
}

static bool pwsp_tile_code_lower(ptowsp_body *body, pwsp_list *list, pwsp_list_fault *fault) {
    if (!pwsp_pass_all(body, &list->arena)) {
        return pwsp_list_fail(fault, PTOWSP_OUT_OF_MEMORY, 0, "out of memory");
    }
    if (pwsp_tile_code_try(body, list, NULL, fault)) {
        return true;
    }
    if (!list->is_mixed || fault->status != PTOWSP_UNSUPPORTED) {
        return false;
    }
    // Both cores use a parameter, and nothing orders them: see cut.h.
    uint8_t dtypes[PTOWSP_TASK_TILE_MAX] = {0};
    for (uint32_t i = 0; i < body->tile_count; i++) {
        dtypes[i] = (uint8_t)body->tiles[i].dtype;
    }
    pwsp_list_free(list);
    pwsp_list_init(list, body->memory);
    memset(fault, 0, sizeof *fault);
    return pwsp_tile_code_try(body, list, dtypes, fault);
}

// Bytes that passes need for each operation, as a rule; and more, which keeps small kernels in one block.
#define PWSP_CODE_ROOM      768
#define PWSP_CODE_ROOM_MORE 16384

pwsp_tile_code *pwsp_tile_code_create(ptowsp_body *body, pwsp_list_fault *fault) {
    pwsp_list list;
    pwsp_list_init(&list, body->memory);
    pwsp_checks checks;
    memset(&checks, 0, sizeof checks);
    checks.memory = pwsp_arena_memory(&list.arena);
    memset(fault, 0, sizeof *fault);
    pwsp_tile_code *code = NULL;
    if (!pwsp_arena_begin(&list.arena,
                          (size_t)body->op_count * PWSP_CODE_ROOM + PWSP_CODE_ROOM_MORE)) {
        pwsp_list_fail(fault, PTOWSP_OUT_OF_MEMORY, 0, "out of memory");
    } else if (pwsp_tile_code_lower(body, &list, fault)) {
        for (uint64_t i = 1; i < body->op_count; i++) {
            if (!body->ops[i].is_dead) {
                pwsp_checks_op(&checks, body, &body->ops[i]);
            }
        }
        code = checks.is_out ? NULL : pwsp_tile_code_make(body, &list, &checks);
        if (!code) {
            pwsp_list_fail(fault, PTOWSP_OUT_OF_MEMORY, 0, "out of memory");
        } else if (!pwsp_legal_check_forms(body, &list, fault) ||
                   !pwsp_tile_code_check(code, &list.arena, fault)) {
            pwsp_tile_code_release(code);
            code = NULL;
        }
    }
    if (!code) {
        pwsp_tile_code_blame(body, &list, fault);
    }
    pwsp_list_free(&list);
    return code;
}

bool pwsp_tile_code_prove(const pwsp_tile_code *code, pwsp_list_fault *fault) {
    pwsp_list list;  // the same arrays; what its arena would free is not its own
    memset(&list, 0, sizeof list);
    list.arena.memory = code->memory;
    list.insns = (pwsp_insn *)(uintptr_t)code->insns;
    list.insn_count = code->insn_count;
    list.tiles = (pwsp_list_tile *)(uintptr_t)code->tiles;
    list.tile_count = code->tile_count;
    list.loop_count = code->loop_count;
    for (uint32_t i = 1; i <= code->loop_count; i++) {
        list.loops[i] = code->loops[i].of;
    }
    memcpy(list.fifos, code->fifos, sizeof list.fifos);
    memcpy(list.used, code->used, sizeof list.used);
    list.is_mixed = code->is_mixed;
    list.split_tile = code->split_tile;
    memset(fault, 0, sizeof *fault);
    return pwsp_list_verify(&list, &code->machine, fault);
}

const pwsp_tile_code *pwsp_tile_code_retain(const pwsp_tile_code *code) {
    if (code) {
        pwsp_fetch_add_seq_cst(&((pwsp_tile_code *)(uintptr_t)code)->reference_count, 1u);
    }
    return code;
}

void pwsp_tile_code_release(const pwsp_tile_code *code) {
    if (code) {
        pwsp_tile_code *block = (pwsp_tile_code *)(uintptr_t)code;
        pwsp_memory memory = block->memory;
        if (pwsp_fetch_sub_seq_cst(&block->reference_count, 1u) == 1) {
            pwsp_memory_free(&memory, block, block->size);
        }
    }
}

size_t pwsp_tile_code_size(const pwsp_tile_code *code) {
    return code ? code->size : 0;
}

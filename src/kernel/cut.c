// Cutting a list into a cube and a vector half.

#include "cut.h"

#include "split.h"

static uint32_t pwsp_cut_side(const pwsp_list *list, uint32_t tile) {
    return tile ? 1u << (list->tiles[tile].memory == PTOISA_VEC ? PWSP_SIDE_VECTOR : PWSP_SIDE_CUBE)
                : 0;
}

// Which cores' memories an instruction's tiles are in, as bits 1 << pwsp_side.
static uint32_t pwsp_cut_sides(const pwsp_list *list, const pwsp_insn *insn) {
    uint32_t sides = pwsp_cut_side(list, insn->tmp);
    for (uint32_t k = 0; k < PWSP_INSN_SRC_MAX; k++) {
        sides |= pwsp_cut_side(list, insn->src[k]);
    }
    for (uint32_t k = 0; k < PWSP_INSN_DST_MAX; k++) {
        sides |= pwsp_cut_side(list, insn->dst[k]);
    }
    return sides;
}

#define PWSP_CUT_BOTH (1u << PWSP_SIDE_CUBE | 1u << PWSP_SIDE_VECTOR)

typedef struct pwsp_cut {
    pwsp_list *list;
    const pwsp_insn *from;  // the TMOV in hand
    bool is_out;            // memory is out
    const uint8_t *param_dtypes;
    bool is_rerouted[PTOWSP_TASK_TILE_MAX + 1];  // [parameter + 1]
} pwsp_cut;

static pwsp_insn *pwsp_cut_add(pwsp_cut *cut, uint32_t op, pwsp_side side, uint32_t fifo) {
    pwsp_insn *insn = pwsp_list_add(cut->list, (ptoisa_op)op);
    if (!insn) {
        cut->is_out = true;
        return NULL;
    }
    insn->side = (uint8_t)side;
    insn->mode = (uint8_t)fifo;
    insn->value = cut->from->value;
    return insn;
}

// The tile with the valid sizes of another one: itself, or a view.
static uint32_t pwsp_cut_view(pwsp_cut *cut, uint32_t tile, uint32_t as) {
    pwsp_list_tile like = cut->list->tiles[as], of = cut->list->tiles[tile];
    if (pwsp_valid_is_equal(&of.valid_rows, &like.valid_rows) &&
        pwsp_valid_is_equal(&of.valid_cols, &like.valid_cols)) {
        return tile;
    }
    uint32_t view = pwsp_list_add_tile(cut->list);
    if (!view) {
        cut->is_out = true;
        return 0;
    }
    of.valid_rows = like.valid_rows;
    of.valid_cols = like.valid_cols;
    cut->list->tiles[view] = of;
    return view;
}

// Lets tile s reach tile d, on the other core.
static void pwsp_cut_cross(pwsp_cut *cut, uint32_t d, uint32_t s, bool is_implied) {
    pwsp_list *list = cut->list;
    bool is_to_vector = list->tiles[d].memory == PTOISA_VEC;
    uint32_t fifo = is_to_vector ? PWSP_FIFO_TO_VECTOR : PWSP_FIFO_TO_CUBE;
    s = pwsp_cut_view(cut, s, d);
    pwsp_insn *push =
        pwsp_cut_add(cut, PWSP_INSN_TPUSH, is_to_vector ? PWSP_SIDE_CUBE : PWSP_SIDE_VECTOR, fifo);
    if (!push || cut->is_out) {
        cut->is_out = true;
        return;
    }
    push->src[0] = s;
    push->is_implied = is_implied;
    pwsp_insn *pop =
        pwsp_cut_add(cut, PWSP_INSN_TPOP, is_to_vector ? PWSP_SIDE_VECTOR : PWSP_SIDE_CUBE, fifo);
    if (pop) {
        pop->dst[0] = d;
        pop->is_implied = true;
    }
}

// A tile in UB of the shape of one of the cube core.
static uint32_t pwsp_cut_relay(pwsp_cut *cut, uint32_t tile_of) {
    pwsp_list_tile of = cut->list->tiles[tile_of];
    uint32_t tile = pwsp_list_add_tile(cut->list);
    if (!tile) {
        cut->is_out = true;
        return 0;
    }
    pwsp_list_tile *made = &cut->list->tiles[tile];
    made->dtype = of.dtype;
    made->pad = of.pad;
    made->memory = PTOISA_VEC;
    made->layout = PTOISA_ROW_MAJOR;
    made->rows = of.rows;
    made->cols = of.cols;
    made->valid_rows = of.valid_rows;
    made->valid_cols = of.valid_cols;
    made->value = of.value;
    return tile;
}

// -- loads and stores of the vector core in place of the cube's -----------------------------------

// Finds the parameters that both cores use and one stores to.
static void pwsp_cut_find_shared(pwsp_cut *cut, const pwsp_insn *insns, uint64_t count) {
    for (uint32_t param = 1; param <= PTOWSP_TASK_TILE_MAX && cut->param_dtypes; param++) {
        uint32_t sides = 0;
        bool is_stored = false;
        for (uint64_t i = 0; i < count; i++) {
            if (insns[i].param == param) {
                sides |= pwsp_cut_sides(cut->list, &insns[i]);
                is_stored =
                    is_stored || insns[i].op == PTOISA_TSTORE || insns[i].op == PTOISA_MSCATTER;
            }
        }
        cut->is_rerouted[param] = is_stored && sides == PWSP_CUT_BOTH;
    }
}

static void pwsp_cut_vector(pwsp_cut *cut, ptoisa_op op, uint32_t dst, uint32_t src, uint8_t mode) {
    pwsp_insn *insn = pwsp_cut_add(cut, op, PWSP_SIDE_VECTOR, mode);
    if (insn) {
        insn->dst[0] = dst;
        insn->src[0] = src;
        insn->is_implied = true;
    }
}

// Stores a product that has come to UB: ReLU and narrowing, which leaving L0C does on the way, are
// instructions there.
static void pwsp_cut_store(pwsp_cut *cut, const pwsp_insn *insn) {
    uint32_t tile = pwsp_cut_relay(cut, insn->src[0]);
    if (!tile) {
        return;
    }
    pwsp_cut_cross(cut, tile, insn->src[0], true);
    if (insn->variant == PWSP_VARIANT_RELU) {
        pwsp_cut_vector(cut, PTOISA_TRELU, tile, tile, 0);
    }
    uint8_t dtype = cut->param_dtypes[insn->param - 1];
    if (dtype != cut->list->tiles[tile].dtype) {
        uint32_t narrow = pwsp_cut_relay(cut, insn->src[0]);
        if (!narrow) {
            return;
        }
        cut->list->tiles[narrow].dtype = dtype;
        pwsp_cut_vector(cut, PTOISA_TCVT, narrow, tile, PTOISA_CAST_RINT);
        tile = narrow;
    }
    pwsp_insn *store = pwsp_list_append(cut->list, insn);
    if (store) {
        store->src[0] = tile;
        store->side = PWSP_SIDE_VECTOR;
        store->variant =
            insn->variant == PWSP_VARIANT_RELU ? (uint8_t)PWSP_VARIANT_PLAIN : insn->variant;
    }
    cut->is_out = cut->is_out || !store;
}

// Lets the vector core do a load or a store of the cube core; false if it is not one to be done so.
static bool pwsp_cut_reroute(pwsp_cut *cut, const pwsp_insn *insn) {
    if (!insn->param || !cut->is_rerouted[insn->param]) {
        return false;
    }
    const pwsp_list_tile *d = &cut->list->tiles[insn->dst[0]];
    const pwsp_list_tile *s = &cut->list->tiles[insn->src[0]];
    cut->from = insn;
    if (insn->op == PTOISA_TSTORE && s->memory == PTOISA_ACC &&
        (insn->variant == PWSP_VARIANT_PLAIN || insn->variant == PWSP_VARIANT_RELU ||
         insn->variant == PWSP_VARIANT_ADD)) {
        pwsp_cut_store(cut, insn);
        return true;
    }
    if (insn->op != PTOISA_TLOAD || d->memory != PTOISA_MAT || d->layout == PTOISA_ZN) {
        return false;
    }
    uint32_t tile = pwsp_cut_relay(cut, insn->dst[0]);
    pwsp_insn *load = tile ? pwsp_list_append(cut->list, insn) : NULL;
    if (!load) {
        cut->is_out = true;
        return true;
    }
    load->dst[0] = tile;
    load->side = PWSP_SIDE_VECTOR;
    pwsp_cut_cross(cut, insn->dst[0], tile, true);
    return true;
}

// -- the list -------------------------------------------------------------------------------------

// Is the list one for both cores? One with instructions that have tiles of both is not cut: their
// operands are refused when they are checked. out_sides gets each instruction's sides.
static bool pwsp_cut_is_needed(const pwsp_list *list, uint8_t *out_sides) {
    uint32_t sides = 0;
    for (uint32_t i = 0; i < list->insn_count; i++) {
        const pwsp_insn *insn = &list->insns[i];
        uint32_t of = pwsp_cut_sides(list, insn);
        out_sides[i] = (uint8_t)of;
        sides |= of;
        if (of == PWSP_CUT_BOTH && insn->op != PTOISA_TMOV) {
            return false;
        }
    }
    return sides == PWSP_CUT_BOTH;
}

// Does an instruction use bytes of a root?
static bool pwsp_cut_uses(const pwsp_list *list, const pwsp_insn *insn, uint32_t root) {
    pwsp_insn_tiles tiles;
    pwsp_insn_find_tiles(insn, &tiles);
    bool uses = false;
    for (uint32_t k = 0; k < tiles.count; k++) {
        uses = uses || list->tiles[tiles.at[k]].root == root;
    }
    return uses;
}

// Moves each TPOP after instructions of its core that do not need it: a pipe that waits for a tile
// holds up all later loads. No TPOP passes another instruction of its FIFO.
static void pwsp_cut_sink(pwsp_list *list) {
    for (uint64_t i = list->insn_count; i-- > 0;) {
        pwsp_insn pop = list->insns[i];
        if (pop.op != PWSP_INSN_TPOP) {
            continue;
        }
        uint32_t root = list->tiles[pop.dst[0]].root;
        uint64_t at = i;
        for (; at + 1 < list->insn_count; at++) {
            const pwsp_insn *next = &list->insns[at + 1];
            if (pwsp_insn_is_mark(next) || pwsp_cut_uses(list, next, root) ||
                (pwsp_insn_is_fifo(next) && next->mode == pop.mode)) {
                break;
            }
            list->insns[at] = *next;
        }
        list->insns[at] = pop;
    }
}

// Makes the FIFOs: a slot has room for the largest tile. False: it is too large for a device.
static bool pwsp_cut_size(pwsp_list *list) {
    uint32_t split_rows = pwsp_list_split_rows(list);
    memset(list->fifos, 0, sizeof list->fifos);
    for (uint64_t i = 0; i < list->insn_count; i++) {
        const pwsp_insn *insn = &list->insns[i];
        if (insn->op == PWSP_INSN_TPOP) {
            pwsp_list_fifo *of = &list->fifos[insn->mode];
            uint64_t bytes = pwsp_list_slot_bytes(&list->tiles[insn->dst[0]], split_rows);
            bytes = (bytes + 511) / 512 * 512;
            of->slot_bytes = bytes > of->slot_bytes ? (uint32_t)bytes : of->slot_bytes;
            of->slots = PWSP_FIFO_SLOTS;
            of->flag = (uint8_t)(2 * insn->mode);
        }
    }
    return list->fifos[PWSP_FIFO_TO_VECTOR].slot_bytes <= PWSP_FIFO_SLOT_MAX &&
           list->fifos[PWSP_FIFO_TO_CUBE].slot_bytes <= PWSP_FIFO_SLOT_MAX;
}

PWSP_INTERNAL bool pwsp_list_cut(pwsp_list *list, const ptoisa_machine *machine,
                                 const uint8_t *param_dtypes, pwsp_list_fault *fault) {
    if (machine->family != PTOISA_A2A3) {
        return true;
    }
    uint8_t *sides_of = (uint8_t *)pwsp_arena_take(&list->arena, (size_t)list->insn_count, 1);
    if (!sides_of) {
        return pwsp_list_fail(fault, PTOWSP_OUT_OF_MEMORY, 0, "out of memory");
    }
    if (!pwsp_cut_is_needed(list, sides_of)) {
        return true;
    }
    pwsp_insn *insns = list->insns;
    uint64_t count = list->insn_count;
    list->is_mixed = true;
    pwsp_cut cut;
    memset(&cut, 0, sizeof cut);
    cut.list = list;
    cut.param_dtypes = param_dtypes;
    pwsp_cut_find_shared(&cut, insns, count);
    cut.is_out = !pwsp_list_renew(list, count);
    for (uint64_t i = 0; i < count && !cut.is_out; i++) {
        uint32_t sides = sides_of[i];
        if (sides == PWSP_CUT_BOTH) {
            cut.from = &insns[i];
            pwsp_cut_cross(&cut, insns[i].dst[0], insns[i].src[0], insns[i].is_implied);
            continue;
        }
        if (sides == 1u << PWSP_SIDE_CUBE && pwsp_cut_reroute(&cut, &insns[i])) {
            continue;
        }
        pwsp_insn *insn = pwsp_list_append(list, &insns[i]);
        if (!insn) {
            cut.is_out = true;
            break;
        }
        insn->side = (uint8_t)(pwsp_insn_is_mark(insn)         ? PWSP_SIDE_ANY
                               : sides >> PWSP_SIDE_VECTOR & 1 ? PWSP_SIDE_VECTOR
                                                               : PWSP_SIDE_CUBE);
    }
    if (!cut.is_out) {
        pwsp_cut_sink(list);
        list->split_tile = pwsp_list_split(list);
        if (!pwsp_cut_size(list) && list->split_tile) {
            list->split_tile = 0;
            pwsp_cut_size(list);
        }
    }
    return !cut.is_out || pwsp_list_fail(fault, PTOWSP_OUT_OF_MEMORY, 0, "out of memory");
}

// Rules of kernels (section 15 of the header), axis by axis of the mesh. The first tile that is
// written says how the work is spread along an axis, and all other tiles follow:
//
//      result          work        operands
//      replicated      WHOLE       replicated
//      by letter x     LETTER x    by x where they have x, else replicated
//      partial sum     SUMMED k    by k, which no result has, where they have k, else replicated
//                      FACTOR      one factor '*' partial sum, the others replicated
//                      TERMS       tiles with '+' partial sum, the others replicated
//      partial max     LARGEST     those with '^' that are partial stay so, the others replicated
//
// With SUMMED and FACTOR, tiles with '+' are partial sums too: they are other terms of the sum.
// Which of the three a partial sum is, follows from the operands as they are: the first that is
// spread so. A dimension in front of rows and columns has a letter of its own, by its place.

#include "layout_rule.h"

typedef enum pwsp_work_kind {
    PWSP_WORK_WHOLE,
    PWSP_WORK_LETTER,
    PWSP_WORK_SUMMED,
    PWSP_WORK_FACTOR,
    PWSP_WORK_TERMS,
    PWSP_WORK_LARGEST
} pwsp_work_kind;

typedef struct pwsp_ruler {
    const pwsp_rule *rule;
    pwsp_rule_tile *tiles;
    uint32_t count, axis;
    pwsp_rule_fault *fault;
    pwsp_work_kind kind;
    char letter;      // of LETTER and SUMMED
    uint32_t factor;  // the tile of FACTOR
} pwsp_ruler;

// -- text -----------------------------------------------------------------------------------------

static bool pwsp_rule_is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

PWSP_INTERNAL const char *pwsp_rule_read(const char *text, pwsp_rule *out_rule) {
    memset(out_rule, 0, sizeof *out_rule);
    for (const char *at = text; *at != '\0';) {
        if (out_rule->count == PTOWSP_TASK_TILE_MAX) {
            return "it has more words than a task has tiles";
        }
        pwsp_rule_word *word = &out_rule->words[out_rule->count++];
        if (strchr("+*^", *at)) {
            word->mark = *at++;
        }
        for (uint32_t i = 0; i < 2; i++, at++) {
            if (!pwsp_rule_is_letter(*at) && *at != '.') {
                return "a word is a mark +, * or ^, if it has one, and two letters or dots";
            }
            word->dims[i] = *at;
        }
        if (word->dims[0] == word->dims[1] && word->dims[0] != '.') {
            return "a word has two different letters";
        }
        if (*at == ' ' && at[1] != '\0') {
            at++;
        } else if (*at != '\0') {
            return "words have one space between them";
        }
    }
    return out_rule->count ? NULL : "it has no words";
}

// -- letters --------------------------------------------------------------------------------------

static char pwsp_ruler_letter(const pwsp_ruler *r, uint32_t tile, uint32_t dim) {
    const uint32_t rank = r->tiles[tile].have.rank;
    if (r->rule->count == 0) {
        return '.';
    }
    return dim + 2 < rank ? (char)('0' + dim) : r->rule->words[tile].dims[dim + 2 - rank];
}

// The dimension of a letter, or PWSP_RULE_NO_DIM.
static uint32_t pwsp_ruler_dim(const pwsp_ruler *r, uint32_t tile, char letter) {
    for (uint32_t d = 0; d < r->tiles[tile].have.rank; d++) {
        if (pwsp_ruler_letter(r, tile, d) == letter) {
            return d;
        }
    }
    return PWSP_RULE_NO_DIM;
}

static char pwsp_ruler_mark(const pwsp_ruler *r, uint32_t tile) {
    return r->rule->count ? r->rule->words[tile].mark : '\0';
}

// Is a letter that an operand has one of no result?
static bool pwsp_ruler_is_summed(const pwsp_ruler *r, char letter) {
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->tiles[i].is_written && pwsp_ruler_dim(r, i, letter) != PWSP_RULE_NO_DIM) {
            return false;
        }
    }
    return letter != '.';
}

static ptowsp_spread *pwsp_ruler_need(const pwsp_ruler *r, uint32_t tile) {
    return &r->tiles[tile].need.spreads[r->axis];
}

static const ptowsp_spread *pwsp_ruler_have(const pwsp_ruler *r, uint32_t tile) {
    return &r->tiles[tile].have.spreads[r->axis];
}

static bool pwsp_ruler_fail(const pwsp_ruler *r, uint32_t tile, uint32_t dim, const char *why) {
    r->fault->tile = tile;
    r->fault->axis = r->axis;
    r->fault->dim = dim;
    r->fault->why = why;
    return false;
}

// -- how the work is spread -----------------------------------------------------------------------

// A partial result that nothing makes partial.
static bool pwsp_ruler_fail_partial(const pwsp_ruler *r, uint32_t result, const char *why) {
    return pwsp_ruler_fail(r, result, PWSP_RULE_NO_DIM,
                           r->tiles[result].is_read ? "a partial tensor is read" : why);
}

// Which of the three ways makes the result a partial sum.
static bool pwsp_ruler_sum(pwsp_ruler *r, uint32_t result) {
    bool is_product = false, has_terms = false;
    for (uint32_t i = 0; i < r->count; i++) {
        const ptowsp_spread *have = pwsp_ruler_have(r, i);
        const char mark = pwsp_ruler_mark(r, i);
        is_product = is_product || mark == '*';
        has_terms = has_terms || mark == '+';
        if (r->tiles[i].is_written) {
            continue;
        }
        for (uint32_t d = 0; d < r->tiles[i].have.rank && mark != '+'; d++) {
            const char letter = pwsp_ruler_letter(r, i, d);
            is_product =
                is_product || (pwsp_rule_is_letter(letter) && pwsp_ruler_is_summed(r, letter));
        }
        if (have->kind == PTOWSP_PARTIAL_SUM && mark == '*') {
            r->kind = PWSP_WORK_FACTOR;
            r->factor = i;
            return true;
        }
        const char letter = have->kind == PTOWSP_SHARDED ? pwsp_ruler_letter(r, i, have->dim) : '.';
        if (pwsp_ruler_is_summed(r, letter)) {
            r->kind = PWSP_WORK_SUMMED;
            r->letter = letter;
            return true;
        }
    }
    r->kind = PWSP_WORK_TERMS;
    return (has_terms && !is_product) ||
           pwsp_ruler_fail_partial(r, result,
                                   "no operand is spread so that the result is a partial sum");
}

static bool pwsp_ruler_work(pwsp_ruler *r) {
    uint32_t result = 0;
    while (result < r->count && !r->tiles[result].is_written) {
        result++;
    }
    r->kind = PWSP_WORK_WHOLE;
    const ptowsp_spread *have = result < r->count ? pwsp_ruler_have(r, result) : NULL;
    if (!have || have->kind == PTOWSP_REPLICATED) {
        return true;
    }
    if (have->kind == PTOWSP_PARTIAL_SUM) {
        return pwsp_ruler_sum(r, result);
    }
    if (have->kind == PTOWSP_PARTIAL_MAX) {
        bool is_partial = false;
        for (uint32_t i = 0; i < r->count; i++) {
            is_partial = is_partial || (r->tiles[i].is_read && pwsp_ruler_mark(r, i) == '^' &&
                                        pwsp_ruler_have(r, i)->kind == PTOWSP_PARTIAL_MAX);
        }
        r->kind = PWSP_WORK_LARGEST;
        return is_partial ||
               pwsp_ruler_fail_partial(
                   r, result, "no operand is spread so that the result is a partial maximum");
    }
    r->kind = PWSP_WORK_LETTER;
    r->letter = pwsp_ruler_letter(r, result, have->dim);
    return r->letter != '.' ||
           pwsp_ruler_fail(r, result, have->dim, "the kernel makes all of this dimension at once");
}

// -- what tiles need ------------------------------------------------------------------------------

static void pwsp_ruler_operand(const pwsp_ruler *r, uint32_t tile) {
    ptowsp_spread *need = pwsp_ruler_need(r, tile);
    const char mark = pwsp_ruler_mark(r, tile);
    const bool is_sharded = r->kind == PWSP_WORK_LETTER || r->kind == PWSP_WORK_SUMMED;
    const uint32_t dim = is_sharded ? pwsp_ruler_dim(r, tile, r->letter) : PWSP_RULE_NO_DIM;
    const bool is_sum =
        r->kind == PWSP_WORK_SUMMED || r->kind == PWSP_WORK_FACTOR || r->kind == PWSP_WORK_TERMS;
    if (dim != PWSP_RULE_NO_DIM) {
        need->kind = PTOWSP_SHARDED;
        need->dim = dim;
    } else if ((is_sum && mark == '+') || (r->kind == PWSP_WORK_FACTOR && r->factor == tile)) {
        need->kind = PTOWSP_PARTIAL_SUM;
    } else if (r->kind == PWSP_WORK_LARGEST && mark == '^') {
        const bool is_partial = pwsp_ruler_have(r, tile)->kind == PTOWSP_PARTIAL_MAX;
        need->kind = is_partial ? PTOWSP_PARTIAL_MAX : PTOWSP_REPLICATED;
    }
}

// A result is as the work is spread, or it cannot be.
static bool pwsp_ruler_result(const pwsp_ruler *r, uint32_t tile) {
    ptowsp_spread *need = pwsp_ruler_need(r, tile);
    const ptowsp_spread *have = pwsp_ruler_have(r, tile);
    if (r->kind == PWSP_WORK_LETTER) {
        need->kind = PTOWSP_SHARDED;
        need->dim = pwsp_ruler_dim(r, tile, r->letter);
        if (need->dim == PWSP_RULE_NO_DIM) {
            need->kind = PTOWSP_REPLICATED;
            return pwsp_ruler_fail(r, tile, PWSP_RULE_NO_DIM,
                                   "it has no dimension by which the other result is sharded");
        }
    } else if (r->kind != PWSP_WORK_WHOLE) {
        need->kind = r->kind == PWSP_WORK_LARGEST ? PTOWSP_PARTIAL_MAX : PTOWSP_PARTIAL_SUM;
    }
    if (need->kind != have->kind || (need->kind == PTOWSP_SHARDED && need->dim != have->dim)) {
        return pwsp_ruler_fail(r, tile, have->kind == PTOWSP_SHARDED ? have->dim : PWSP_RULE_NO_DIM,
                               "the results of the task are spread differently");
    }
    const char mark = pwsp_ruler_mark(r, tile);
    const bool is_bad =
        r->tiles[tile].is_read && ((need->kind == PTOWSP_PARTIAL_SUM && mark != '+') ||
                                   (need->kind == PTOWSP_PARTIAL_MAX && mark != '^'));
    need->kind = is_bad ? PTOWSP_REPLICATED : need->kind;
    return !is_bad || pwsp_ruler_fail_partial(r, tile, NULL);
}

// Dimensions of one letter that are cut are cut alike: of one size, if that is known.
static bool pwsp_ruler_sizes(const pwsp_ruler *r) {
    int64_t size = -1;
    for (uint32_t i = 0; i < r->count; i++) {
        const ptowsp_spread *need = pwsp_ruler_need(r, i);
        const int64_t own = need->kind == PTOWSP_SHARDED ? r->tiles[i].have.shape[need->dim] : -1;
        if (own >= 0 && size >= 0 && own != size) {
            return pwsp_ruler_fail(r, i, need->dim,
                                   "another tile has another size of this dimension");
        }
        size = own >= 0 ? own : size;
    }
    return true;
}

PWSP_INTERNAL bool pwsp_rule_needs(const pwsp_rule *rule, const ptowsp_mesh *mesh,
                                   pwsp_rule_tile *tiles, uint32_t count, pwsp_rule_fault *fault) {
    PWSP_ZERO(pwsp_ruler, r);
    r.rule = rule;
    r.tiles = tiles;
    r.count = count;
    r.fault = fault;
    for (uint32_t i = 0; i < count; i++) {
        tiles[i].need = tiles[i].have;
        memset(tiles[i].need.spreads, 0, sizeof tiles[i].need.spreads);
    }
    for (r.axis = 0; r.axis < mesh->axis_count; r.axis++) {
        if (!pwsp_ruler_work(&r)) {
            return false;
        }
        for (uint32_t i = 0; i < count; i++) {
            if (!tiles[i].is_written) {
                pwsp_ruler_operand(&r, i);
            } else if (!pwsp_ruler_result(&r, i)) {
                return false;
            }
        }
        if (!pwsp_ruler_sizes(&r)) {
            return false;
        }
    }
    return true;
}

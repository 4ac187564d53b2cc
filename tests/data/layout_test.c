// Layouts: what ranks hold, joins and relayouts, each against data that is really spread; and by
// facts, with what is refused.

#include "facts.h"

enum { RANKS = 64, CELLS = 640 };

typedef struct spread_data {
    int64_t value[RANKS][CELLS];
    bool has[RANKS][CELLS];
} spread_data;

static spread_data one, two, three;

static uint32_t rank_count_of(const ptowsp_mesh *mesh) {
    uint32_t count = 0;
    assert_ok(ptowsp_mesh_check(NULL, mesh, &count));
    assert_in_range(count, 1, RANKS);
    return count;
}

static uint32_t cell_count_of(const ptowsp_mesh_layout *layout) {
    int64_t count = 1;
    for (uint32_t d = 0; d < layout->rank; d++) {
        count *= layout->shape[d];
    }
    assert_in_range(count, 0, CELLS);
    return (uint32_t)count;
}

// The coordinates of a rank, by division from the last axis on.
static void coordinates(const ptowsp_mesh *mesh, uint32_t rank, uint32_t *out) {
    for (uint32_t a = mesh->axis_count; a-- > 0;) {
        out[a] = rank % mesh->sizes[a];
        rank /= mesh->sizes[a];
    }
}

static bool owns(const ptowsp_mesh *mesh, const ptowsp_mesh_layout *layout, uint32_t rank,
                 uint32_t cell) {
    uint32_t at[PTOWSP_MESH_AXIS_MAX];
    coordinates(mesh, rank, at);
    for (uint32_t d = layout->rank; d-- > 0;) {
        int64_t x = cell % (uint32_t)layout->shape[d], size = layout->shape[d];
        cell /= (uint32_t)layout->shape[d];
        for (uint32_t a = 0; a < mesh->axis_count; a++) {
            const ptowsp_spread *s = &layout->spreads[a];
            if (s->kind != PTOWSP_SHARDED || s->dim != d) {
                continue;
            }
            if (s->cuts) {
                if (x < s->cuts[at[a]] || x >= s->cuts[at[a] + 1]) {
                    return false;
                }
                continue;
            }
            size /= mesh->sizes[a];
            if (x / size != at[a]) {
                return false;
            }
            x %= size;
        }
    }
    return true;
}

static bool is_partial(const ptowsp_spread *s) {
    return s->kind == PTOWSP_PARTIAL_SUM || s->kind == PTOWSP_PARTIAL_MAX;
}

// Spreads values, so that summands and candidates of maxima differ from rank to rank.
static void spread_out(const ptowsp_mesh *mesh, const ptowsp_mesh_layout *layout,
                       const int64_t *values, spread_data *out) {
    for (uint32_t r = 0; r < rank_count_of(mesh); r++) {
        uint32_t at[PTOWSP_MESH_AXIS_MAX], share = 0, shares = 1;
        bool is_max = false;
        coordinates(mesh, r, at);
        for (uint32_t a = 0; a < mesh->axis_count; a++) {
            if (is_partial(&layout->spreads[a])) {
                share = share * mesh->sizes[a] + at[a];
                shares *= mesh->sizes[a];
                is_max = layout->spreads[a].kind == PTOWSP_PARTIAL_MAX;
            }
        }
        for (uint32_t c = 0; c < cell_count_of(layout); c++) {
            out->has[r][c] = owns(mesh, layout, r, c);
            int64_t value = values[c];
            if (is_max) {
                value -= share == c % shares ? 0 : 1 + share;
            } else if (shares > 1) {  // 1, 2, .. beside what is left
                value = share > 0 ? share : value - (int64_t)shares * (shares - 1) / 2;
            }
            out->value[r][c] = value;
        }
    }
}

// Ranks have what the layout says, and its partial values make the values.
static void assert_spread(const ptowsp_mesh *mesh, const ptowsp_mesh_layout *layout,
                          const int64_t *values, const spread_data *data) {
    const uint32_t ranks = rank_count_of(mesh);
    for (uint32_t r = 0; r < ranks; r++) {
        for (uint32_t c = 0; c < cell_count_of(layout); c++) {
            assert_int_equal(data->has[r][c], owns(mesh, layout, r, c));
            int64_t sum = 0, max = INT64_MIN;
            bool is_max = false;
            for (uint32_t q = 0; data->has[r][c] && q < ranks; q++) {
                uint32_t x[PTOWSP_MESH_AXIS_MAX], y[PTOWSP_MESH_AXIS_MAX];
                coordinates(mesh, r, x);
                coordinates(mesh, q, y);
                bool is_mine = true;
                for (uint32_t a = 0; a < mesh->axis_count; a++) {
                    is_mine = is_mine && (x[a] == y[a] || is_partial(&layout->spreads[a]));
                    is_max = is_max || layout->spreads[a].kind == PTOWSP_PARTIAL_MAX;
                }
                if (is_mine) {
                    sum += data->value[q][c];
                    max = data->value[q][c] > max ? data->value[q][c] : max;
                }
            }
            assert_true(!data->has[r][c] || (is_max ? max : sum) == values[c]);
        }
    }
}

// -- what ranks hold ------------------------------------------------------------------------------

static const ptowsp_mesh grid = {2, {"dp", "tp"}, {2, 4}};

static ptowsp_mesh_layout matrix_of(int64_t rows, int64_t cols, ptowsp_spread dp,
                                    ptowsp_spread tp) {
    ptowsp_mesh_layout layout = {"w", 4, 2, {rows, cols}, {dp, tp}};
    return layout;
}

// -- joins ----------------------------------------------------------------------------------------

static const ptowsp_spread choices[5] = {{PTOWSP_REPLICATED, 0, NULL},
                                         {PTOWSP_SHARDED, 0, NULL},
                                         {PTOWSP_SHARDED, 1, NULL},
                                         {PTOWSP_PARTIAL_SUM, 0, NULL},
                                         {PTOWSP_PARTIAL_MAX, 0, NULL}};

static int64_t combine(ptowsp_join join, int64_t a, int64_t b) {
    return join == PTOWSP_JOIN_ADD ? a + b : join == PTOWSP_JOIN_MAX ? (a > b ? a : b) : a * b;
}

// The operation on whole tensors, with ranks NULL, or on what a rank has of them.
static int64_t joined(ptowsp_join join, const int64_t *a, const int64_t *b, const bool *has_a,
                      const bool *has_b, uint32_t cell) {
    if (join != PTOWSP_JOIN_MATMUL) {
        assert_true(!has_a || (has_a[cell] && has_b[cell]));
        return combine(join, a[cell], b[cell]);
    }
    int64_t sum = 0;
    for (uint32_t k = 0; k < 4; k++) {
        const uint32_t x = cell / 4 * 4 + k, y = k * 4 + cell % 4;
        assert_true(!has_a || has_a[x] == has_b[y]);
        sum += !has_a || has_a[x] ? a[x] * b[y] : 0;
    }
    return sum;
}

// All pairs of layouts of 4 x 4 matrices on a mesh of 2 x 2: 10,000 pairs of operation and layouts.
TEST(layout__joins_are_right_on_every_pair_of_layouts) {
    const ptowsp_mesh mesh = {2, {"x", "y"}, {2, 2}};
    int64_t a_values[16], b_values[16], c_values[16];
    for (uint32_t c = 0; c < 16; c++) {
        a_values[c] = 3 + c * 7 % 11;
        b_values[c] = c * 5 % 13 - 4;
    }
    uint32_t counts[4] = {0, 0, 0, 0};
    for (uint32_t code = 0; code < 4 * 625; code++) {
        const ptowsp_join join = (ptowsp_join)(code / 625);
        ptowsp_mesh_layout a = matrix_of(4, 4, choices[code % 5], choices[code / 5 % 5]);
        ptowsp_mesh_layout b = matrix_of(4, 4, choices[code / 25 % 5], choices[code / 125 % 5]);
        ptowsp_mesh_layout c;
        if (ptowsp_mesh_layout_join(NULL, &mesh, join, &a, &b, "c", &c) != PTOWSP_OK) {
            continue;
        }
        counts[join]++;
        spread_out(&mesh, &a, a_values, &one);
        spread_out(&mesh, &b, b_values, &two);
        for (uint32_t cell = 0; cell < 16; cell++) {
            c_values[cell] = joined(join, a_values, b_values, NULL, NULL, cell);
            for (uint32_t r = 0; r < 4; r++) {
                three.has[r][cell] = owns(&mesh, &c, r, cell);
                three.value[r][cell] = three.has[r][cell] ? joined(join, one.value[r], two.value[r],
                                                                   one.has[r], two.has[r], cell)
                                                          : 0;
            }
        }
        assert_spread(&mesh, &c, c_values, &three);
    }
    // Rules along one axis are 4, 5, 6 and 6 (of matrices, a product has no outer dimension), and
    // axes are independent; sums and maxima never meet in a row of the table.
    assert_int_equal(counts[PTOWSP_JOIN_ADD], 16);
    assert_int_equal(counts[PTOWSP_JOIN_MULTIPLY], 25);
    assert_int_equal(counts[PTOWSP_JOIN_MAX], 36);
    assert_int_equal(counts[PTOWSP_JOIN_MATMUL], 36);
}

// -- relayouts ------------------------------------------------------------------------------------

// A step by its definition, over what ranks have. Returns the most cells that a rank moves.
static uint64_t take_step(const ptowsp_mesh *mesh, const ptowsp_mesh_layout *next,
                          const ptowsp_relayout_step *step, spread_data *data) {
    static spread_data old;
    old = *data;
    const uint32_t ranks = rank_count_of(mesh), cells = cell_count_of(next);
    uint32_t stride = 1;
    for (uint32_t a = step->axis + 1; a < mesh->axis_count; a++) {
        stride *= mesh->sizes[a];
    }
    uint64_t most = 0;
    for (uint32_t r = 0; r < ranks; r++) {
        const uint32_t first = r - r / stride % mesh->sizes[step->axis] * stride;
        uint64_t had = 0, has = 0, received = 0;
        for (uint32_t c = 0; c < cells; c++) {
            data->has[r][c] = owns(mesh, next, r, c);
            had += old.has[r][c];
            has += data->has[r][c];
            received += data->has[r][c] && !old.has[r][c];
            int64_t sum = 0, max = INT64_MIN;
            uint32_t holders = 0;
            for (uint32_t i = 0; i < mesh->sizes[step->axis]; i++) {
                const uint32_t q = first + i * stride;
                holders += old.has[q][c];
                sum += old.has[q][c] ? old.value[q][c] : 0;
                max = old.has[q][c] && old.value[q][c] > max ? old.value[q][c] : max;
            }
            if (!data->has[r][c]) {
                continue;
            }
            if (is_partial(&step->before)) {
                assert_int_equal(holders, mesh->sizes[step->axis]);
                data->value[r][c] = step->before.kind == PTOWSP_PARTIAL_SUM ? sum : max;
            } else if (step->kind == PTOWSP_RELAYOUT_SLICE) {
                assert_true(old.has[r][c]);
            } else {
                assert_int_equal(holders, 1);
                data->value[r][c] = sum;
            }
        }
        const uint64_t moved = step->kind == PTOWSP_RELAYOUT_SLICE            ? 0
                               : step->kind == PTOWSP_RELAYOUT_REDUCE_SCATTER ? had - has
                               : step->kind == PTOWSP_RELAYOUT_ALL_REDUCE
                                   ? 2 * (had - had / mesh->sizes[step->axis])
                                   : received;
        most = moved > most ? moved : most;
    }
    return most;
}

static ptowsp_spread random_spread(uint64_t *random, const ptowsp_mesh_layout *layout,
                                   uint32_t parts, int64_t *cuts) {
    ptowsp_spread spread = {(ptowsp_spread_kind)(test_random(random) % 4), 0, NULL};
    if (test_random(random) % 2) {
        spread.kind = PTOWSP_SHARDED;
    }
    if (spread.kind == PTOWSP_SHARDED) {
        spread.dim = (uint32_t)(test_random(random) % layout->rank);
        if (test_random(random) % 5 == 0) {
            cuts[0] = 0;
            for (uint32_t i = 1; i < parts; i++) {
                cuts[i] = test_random_in(random, cuts[i - 1], layout->shape[spread.dim]);
            }
            cuts[parts] = layout->shape[spread.dim];
            spread.cuts = cuts;
            for (uint32_t i = 0; i < parts && test_random(random) % 2; i++) {
                cuts[i] = layout->shape[spread.dim] / parts * i;  // perhaps equal pieces, as cuts
            }
        }
    }
    return spread;
}

TEST(layout__relayouts_of_random_layouts_move_the_data_there) {
    uint64_t random = test_seed();
    static const int64_t sizes[] = {0, 1, 4, 6, 8, 12};
    int64_t cuts[2][PTOWSP_MESH_AXIS_MAX][8], values[CELLS];
    uint32_t done = 0, kinds[5] = {0, 0, 0, 0, 0}, twice = 0;
    for (uint32_t c = 0; c < CELLS; c++) {
        values[c] = (int64_t)(test_random(&random) % 1000);
    }
    for (uint32_t round = 0; TEST_ROUNDS(round, 6000); round++) {
        ptowsp_mesh mesh = {test_random_u32(&random, 1, 4), {"a", "b", "c", "d"}, {0}};
        for (uint32_t a = 0; a < mesh.axis_count; a++) {
            mesh.sizes[a] = test_random_u32(&random, 1, mesh.axis_count > 2 ? 2 : 4);
        }
        ptowsp_mesh_layout layouts[2] = {{"t", 2, 0, {0}, {{PTOWSP_REPLICATED, 0, NULL}}},
                                         {"t", 2, 0, {0}, {{PTOWSP_REPLICATED, 0, NULL}}}};
        layouts[0].rank = layouts[1].rank = test_random_u32(&random, 1, 2);
        for (uint32_t d = 0; d < layouts[0].rank; d++) {
            layouts[0].shape[d] = layouts[1].shape[d] = sizes[test_random(&random) % 6];
        }
        for (uint32_t i = 0; i < 2; i++) {
            for (uint32_t a = 0; a < mesh.axis_count; a++) {
                layouts[i].spreads[a] =
                    random_spread(&random, &layouts[i], mesh.sizes[a], cuts[i][a]);
                if (i == 1 && is_partial(&layouts[1].spreads[a])) {
                    layouts[1].spreads[a] = layouts[0].spreads[a];
                }
            }
        }
        ptowsp_relayout plan;
        if (ptowsp_mesh_layout_relayout(NULL, &mesh, &layouts[0], &layouts[1], &plan) !=
            PTOWSP_OK) {
            continue;
        }
        done++;
        spread_out(&mesh, &layouts[0], values, &one);
        ptowsp_mesh_layout now = layouts[0];
        for (uint32_t a = 0; a < mesh.axis_count; a++) {
            ptowsp_spread *s = &now.spreads[a];
            const ptowsp_spread *to = &layouts[1].spreads[a];
            bool is_even = s->cuts && to->kind == s->kind && to->dim == s->dim && !to->cuts;
            for (uint32_t i = 0; is_even && i <= mesh.sizes[a]; i++) {
                is_even = s->cuts[i] * mesh.sizes[a] == now.shape[s->dim] * i;
            }
            s->cuts = is_even ? NULL : s->cuts;
        }
        uint64_t bytes = 0;
        uint32_t seen = 0;
        for (uint32_t i = 0; i < plan.step_count; i++) {
            const ptowsp_relayout_step *step = &plan.steps[i];
            assert_int_equal(step->before.kind, now.spreads[step->axis].kind);
            assert_ptr_equal(step->before.cuts, now.spreads[step->axis].cuts);
            now.spreads[step->axis] = step->after;
            assert_ok(ptowsp_mesh_layout_check(NULL, &mesh, &now));
            assert_int_equal(take_step(&mesh, &now, step, &one) * 2, step->bytes);
            bytes += step->bytes;
            kinds[step->kind]++;
            twice += seen >> step->axis & 1;
            seen |= 1u << step->axis;
        }
        assert_int_equal(bytes, plan.bytes);
        assert_spread(&mesh, &layouts[1], values, &one);
    }
    assert_met(done > 1000 && twice > 20);
    for (uint32_t i = 0; i < 5; i++) {
        assert_met(kinds[i] > 50);
    }
}

// -- facts ----------------------------------------------------------------------------------------

static ptowsp_context *context;
static ptowsp_mesh mesh;
static facts_text axis_1, said;
static int64_t cuts[5], other_cuts[5];
static uint32_t rank, rank_count, position[2];
static ptowsp_mesh_layout a, b, c;
static bool a_is_cut, b_is_cut, b_has_other_cuts;
static ptowsp_join operation;
static ptowsp_mesh_layout_part part;
static ptowsp_relayout plan;

static void begin(void) {
    const ptowsp_mesh_layout w = {"w", 4, 2, {8, 8}, {{PTOWSP_REPLICATED, 0, NULL}}};
    mesh = grid;
    a = b = w;
    b.name = "v";
    operation = PTOWSP_JOIN_ADD;
    a_is_cut = b_is_cut = b_has_other_cuts = false;
    axis_1 = facts_text_of("tp", 2);
}

static void cut(void) {
    a.spreads[1].cuts = a_is_cut ? cuts : NULL;
    b.spreads[1].cuts = b_has_other_cuts ? other_cuts : b_is_cut ? cuts : NULL;
    mesh.names[1] = axis_1.data;
}

static ptowsp_status check_mesh(void) {
    cut();
    return ptowsp_mesh_check(context, &mesh, &rank_count);
}

static ptowsp_status check(void) {
    cut();
    return ptowsp_mesh_layout_check(context, &mesh, &a);
}

static ptowsp_status find_part(void) {
    cut();
    const ptowsp_status status = ptowsp_mesh_layout_part_of(context, &mesh, &a, rank, &part);
    for (uint32_t axis = 0; axis < 2 && status == PTOWSP_OK; axis++) {
        position[axis] = ptowsp_mesh_coordinate(&mesh, rank, axis);
    }
    return status;
}

static ptowsp_status join(void) {
    cut();
    return ptowsp_mesh_layout_join(context, &mesh, operation, &a, &b, "c", &c);
}

static ptowsp_status print(void) {
    char text[80];
    ptowsp_mesh_layout_print(&mesh, &c, TEST_TEXT(text));
    said = facts_text_of(text, strlen(text));
    return PTOWSP_OK;
}

static ptowsp_status relayout(void) {
    cut();
    return ptowsp_mesh_layout_relayout(context, &mesh, &a, &b, &plan);
}

static const char *error(uint64_t *out_index) {
    return facts_error(ptowsp_context_error(context), out_index);
}

#define SPREADS(text, layout, member)                                                              \
    FACTS_OF(text, layout.spreads->member, sizeof *layout.spreads, 2)
static const facts_field *fields(void) {
    FACTS_RETURN(FIELD(axis_1), FIELD(said), FIELD(mesh.axis_count), FIELDS(mesh.sizes, 2),
                 FIELDS(cuts, 5), FIELDS(other_cuts, 5), FIELD(rank), FIELD(rank_count),
                 FIELDS(position, 2), FIELD(operation), FIELD(a.rank), FIELD(a.element_bytes),
                 FIELDS(a.shape, a.rank), SPREADS("a.kind", a, kind), SPREADS("a.dim", a, dim),
                 NAMED("a.is_cut", a_is_cut), FIELD(b.rank), FIELDS(b.shape, b.rank),
                 SPREADS("b.kind", b, kind), SPREADS("b.dim", b, dim), NAMED("b.is_cut", b_is_cut),
                 NAMED("b.has_other_cuts", b_has_other_cuts), FIELDS(part.offsets, 2),
                 FIELDS(part.sizes, 2), FIELD(part.bytes), FIELD(plan.step_count),
                 FIELD(plan.bytes), NAMED("step.axis", plan.steps[0].axis),
                 NAMED("step.kind", plan.steps[0].kind));
}

TEST(layout__facts_hold) {
    static const facts_call calls[] = {{"check_mesh", check_mesh},
                                       {"check", check},
                                       {"find_part", find_part},
                                       {"join", join},
                                       {"print", print},
                                       {"relayout", relayout},
                                       {NULL, NULL}};
    facts all = {"tests/data/layouts.facts", begin, fields, calls, error, NULL, 0};
    context = test_context(NULL);
    facts_run(&all);
    ptowsp_context_destroy(context);
}

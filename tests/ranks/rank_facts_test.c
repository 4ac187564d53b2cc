// Collectives, links, hubs, communicators, layouts and reductions as facts (support/facts.h): times, plans and sizes
// worked out on paper, and what is refused, in its words.

#include "src/ranks/ranks.h"

#include "facts.h"

#define TEXT_OF(name, text)               text,
#define DTYPE_OF(name, value, size, text) [value] = text,

static const char *const kinds[] = {PTOWSP_COLLECTIVES(TEXT_OF) NULL};
static const char *const algorithms[] = {PTOWSP_ALGORITHMS(TEXT_OF) NULL};
static const char *const reductions[] = {PTOWSP_REDUCTIONS(TEXT_OF) NULL};
static const char *const dtypes[] = {"none", PTOWSP_DTYPES(DTYPE_OF) NULL};
static const char *const sharings[] = {"port", "pair", "node", NULL};
static const char *const joins[] = {"add", "multiply", "max", "matmul", NULL};
static const char *const spread_kinds[] = {"replicated", "sharded", "sum", "max", NULL};

#define FIELD_AS(name, x)        FACTS_OF(name, x, sizeof(x), 1)
#define NAMED_AS(name, x, names) FACTS_AS(name, x, sizeof(x), 1, names)
#define CALL(name, result)                                                                         \
    static ptowsp_status name(void) {                                                              \
        return result;                                                                             \
    }

static ptowsp_context *here;
static char written[1000];
static const char *text = written;

static ptowsp_error of_module;  // of one that has failed

static const char *error(uint64_t *out_index) {
    const ptowsp_error found = of_module.status ? of_module : ptowsp_context_error(here);
    *out_index = found.index;
    return of_module.status ? written : ptowsp_context_error(here).text;
}

// -- collectives ----------------------------------------------------------------------------------

enum { COUNTS = 16, STEPS = 8, MEMORY = 16 };

static ptowsp_collective c;
static ptowsp_links links;
static ptowsp_collective_cost cost;
static ptowsp_collective_size size;
static ptowsp_collective_step steps[STEPS];
static uint64_t counts[COUNTS], capacity;
static uint32_t member, machine;
static ptowsp_hub_desc hub;
static ptowsp_ranks_desc ranks;
static ptowsp_run_ranks bound;
static ptowsp_run_group group;
static ptowsp_run *runs[2];
static ptowsp_hub *one_rank;
static float memory[MEMORY];
static int64_t in_at, out_at;  // in `memory`; NULL below 0
static bool has_it, has_counts, has_links, has_result, has_steps, is_twice, in_columns, out_columns,
    is_apart;

static void begin(void) {
    c = (ptowsp_collective){.kind = PTOWSP_ALL_REDUCE,
                            .algorithm = PTOWSP_ALGORITHM_RING,
                            .dtype = PTOWSP_F32,
                            .count = 8,
                            .members = 4};
    memset(&links, 0, sizeof links);
    memset(counts, 0, sizeof counts);
    has_it = has_links = has_result = true;
    has_counts = has_steps = is_twice = in_columns = out_columns = is_apart = false;
    of_module.status = PTOWSP_OK;
    capacity = member = machine = 0;
    hub = (ptowsp_hub_desc){2, 64, false};
    ranks = (ptowsp_ranks_desc){.rank_count = 1, .transport = ptowsp_hub_transport(one_rank, 0)};
    bound = (ptowsp_run_ranks){.rank_count = 2};
    group = (ptowsp_run_group){.rank_count = 2};
    in_at = 0, out_at = 8;
}

static const ptowsp_collective *given(void) {
    c.counts = has_counts ? counts : NULL;
    return has_it ? &c : NULL;
}

static const ptowsp_links *given_links(void) {
    return has_links ? &links : NULL;
}

CALL(plan, ptowsp_collective_plan(here, given(), member, has_steps ? steps : NULL, capacity,
                                  has_result ? &size : NULL))
CALL(time_of, ptowsp_collective_time(here, given(), given_links(), has_result ? &cost : NULL))
CALL(choose, (given(), ptowsp_collective_choose(here, &c, given_links(), TEST_TEXT(written))))
CALL(print, (ptowsp_collective_print(given(), member, TEST_TEXT(written)), PTOWSP_OK))
CALL(get, (links = ptowsp_links_make((ptowsp_links_of)machine), PTOWSP_OK))
CALL(bind, (bound.links = links, ptowsp_run_bind_ranks(runs[0], &bound)))

// 1 us, and 1 byte a nanosecond.
static ptowsp_status ports(void) {
    const ptowsp_link link = {1000000, 1000, PTOWSP_LINK_PORT};
    links = (ptowsp_links){.name = "paper", .inside = link, .between = link};
    return PTOWSP_OK;
}

static ptowsp_status make_hub(void) {
    ptowsp_hub *made = NULL;
    const ptowsp_status status =
        ptowsp_hub_create(here, has_it ? &hub : NULL, has_result ? &made : NULL);
    assert_true(status == PTOWSP_OK || !made);
    ptowsp_hub_destroy(made);
    return status;
}

static ptowsp_status communicate(ptowsp_ranks **out_ranks) {
    ranks.links = links;
    return ptowsp_ranks_create(here, has_it ? &ranks : NULL, has_result ? out_ranks : NULL);
}

static ptowsp_status create(void) {
    ptowsp_ranks *made = (ptowsp_ranks *)here;  // anything: it is cleared
    const ptowsp_status status = communicate(&made);
    assert_true(!has_result || !made);
    return status;
}

static ptowsp_status run(void) {
    ptowsp_ranks *made = NULL;
    ptowsp_hub *own = test_hub(here, 1, 0);
    ranks.transport = ptowsp_hub_transport(own, 0);
    assert_ok(communicate(&made));
    const ptowsp_status status = ptowsp_ranks_run(made, given(), in_at < 0 ? NULL : memory + in_at,
                                                  out_at < 0 ? NULL : memory + out_at);
    ptowsp_ranks_destroy(made);
    ptowsp_hub_destroy(own);
    return status;
}

static ptowsp_status simulate(void) {
    ptowsp_run *const both[2] = {runs[0], is_twice ? runs[0] : has_it ? runs[1] : NULL};
    group.links = links;
    group.runs = has_result ? both : NULL;
    return ptowsp_run_group_simulate(here, &group, NULL, NULL);
}

// A kernel of a module, which is the only variant of a choice.
static ptowsp_status describe(void) {
    const ptowsp_collective_desc desc = {.name = "k",
                                         .kind = c.kind,
                                         .algorithm = c.algorithm,
                                         .dtype = c.dtype,
                                         .members = c.members,
                                         .counts = has_counts ? "counts" : NULL,
                                         .in_columns = in_columns,
                                         .out_columns = out_columns,
                                         .is_apart = is_apart};
    ptowsp_module *m = test_module(here, NULL);
    const ptowsp_kernel kernel = ptowsp_kernel_collective(m, has_it ? &desc : NULL);
    const ptowsp_choice_desc choice = {.name = "choice", .variants[0].kernel = kernel};
    assert_int_equal(kernel.id != 0, ptowsp_module_error(m).status == PTOWSP_OK);
    ptowsp_kernel_choice(m, &choice);
    of_module = ptowsp_module_error(m);
    snprintf(written, sizeof written, "%s", of_module.text);
    ptowsp_module_destroy(m);
    return of_module.status;
}

#define LINK(at)                                                                                   \
    FIELD_AS(#at ".latency_ps", links.at.latency_ps),                                              \
        FIELD_AS(#at ".bytes_per_us", links.at.bytes_per_us),                                      \
        NAMED_AS(#at ".sharing", links.at.sharing, sharings)
#define AXES(member) FACTS_OF("axes." #member, links.axes[0].member, sizeof links.axes[0], 4)

static const facts_field *fields(void) {
    FACTS_RETURN(
        NAMED_AS("kind", c.kind, kinds), NAMED_AS("algorithm", c.algorithm, algorithms),
        NAMED_AS("reduction", c.reduction, reductions), NAMED_AS("dtype", c.dtype, dtypes),
        FIELD_AS("count", c.count), FIELD_AS("members", c.members), FIELD_AS("first", c.first),
        FIELD_AS("stride", c.stride), FIELD_AS("node_size", c.node_size), FIELD_AS("root", c.root),
        FIELD_AS("target", c.target), FIELDS(counts, COUNTS), FIELD(has_counts), FIELD(has_it),
        FIELD(has_links), FIELD(has_result), FIELD(has_steps), FIELD(is_twice), FIELD(in_columns),
        FIELD(out_columns), FIELD(is_apart), FIELD(capacity), FIELD(member), FIELD(machine),
        FIELD_AS("name", links.name), FIELD_AS("nodes_of", links.node_size), LINK(inside),
        LINK(between), FIELD_AS("reduce_bytes_per_us", links.reduce_bytes_per_us),
        FIELD_AS("cap", links.rank_bytes_per_us), FIELD_AS("axis_count", links.axis_count),
        FACTS_OF("axis_sizes", links.axis_sizes[0], sizeof(uint32_t), 4), AXES(latency_ps),
        AXES(bytes_per_us), AXES(sharing), FIELD_AS("time_ps", cost.time_ps),
        FIELD(size.step_count), FIELD(size.scratch_count), FIELD(size.send_count),
        FIELD(size.round_count), MEMBER(steps, count, STEPS), FIELD(hub.rank_count),
        FIELD(hub.ring_bytes), FIELD(ranks.rank), FIELD(ranks.rank_count),
        FIELD_AS("send", ranks.transport.send), FIELD_AS("receive", ranks.transport.receive),
        FIELD_AS("test", ranks.transport.test), FIELD_AS("cancel", ranks.transport.cancel),
        FIELD_AS("close", ranks.transport.close), FIELD(in_at), FIELD(out_at), FIELD(bound.rank),
        FIELD(bound.rank_count), FIELD(bound.cycles_per_us), FIELD(group.rank_count),
        FIELD(group.cycles_per_us), FIELD(text));
}

CONTEXT_TEST(rank_facts__of_collectives_hold) {
    static const char module[] =
        "module m\ntensor a i64 [2, 1] global\n"
        "kernel sum(axes 0, inout data i64 ? x ?) link, all_reduce, by ring\n"
        "workload w\n  task sum() data = a\n";
    static const facts_call calls[] = {{"plan", plan},    {"time", time_of},   {"choose", choose},
                                       {"print", print},  {"get", get},        {"ports", ports},
                                       {"hub", make_hub}, {"create", create},  {"run", run},
                                       {"bind", bind},    {"group", simulate}, {"kernel", describe},
                                       {NULL, NULL}};
    facts all = {.path = "tests/ranks/collectives.facts",
                 .begin = begin,
                 .fields = fields,
                 .calls = calls,
                 .error = error};
    ptowsp_module *m;
    ptowsp_program *program;
    here = context;
    one_rank = test_hub(context, 1, 0);
    runs[0] = test_run_text(context, module, NULL, NULL, &m, &program);
    runs[1] = test_run_of(context, program);
    facts_run(&all);
    ptowsp_run_destroy(runs[0]);
    test_destroy(runs[1], program, m, NULL);
    ptowsp_hub_destroy(one_rank);
}

// -- linear layouts and reductions ----------------------------------------------------------------

static ptowsp_linear one, two, made;
static uint32_t n[4];
static uint64_t accesses, from, place;
static bool has_one, has_two, has_made;
static ptowsp_dtype dtype;
static double a[2], b[2], result[2];

static void linear_begin(void) {
    assert_ok(ptowsp_linear_identity(3, &one));
    two = made = one;
    memset(n, 0, sizeof n);
    has_one = has_two = has_made = true;
}

#define ONE  (has_one ? &one : NULL)
#define TWO  (has_two ? &two : NULL)
#define MADE (has_made ? &made : NULL)

CALL(identity, ptowsp_linear_identity(n[0], MADE))
CALL(strided, ptowsp_linear_strided(n[0], n[1], MADE))
CALL(blocked, ptowsp_linear_blocked(n[0], n[1], n[2], MADE))
CALL(swizzle, ptowsp_linear_swizzle(n[0], n[1], n[2], n[3], MADE))
CALL(compose, ptowsp_linear_compose(ONE, TWO, MADE))
CALL(transpose, ptowsp_linear_transpose(ONE, MADE))
CALL(inverse, ptowsp_linear_inverse(ONE, MADE))
CALL(conflicts, ptowsp_linear_conflicts(ONE, n[0], n[1], has_made ? &accesses : NULL))
CALL(apply, (place = ptowsp_linear_apply(&made, from), PTOWSP_OK))

static ptowsp_status reduce(ptowsp_reduction reduction) {
    uint64_t x[2], y[2], to[2];
    assert_ok(ptowsp_convert(x, dtype, a, PTOWSP_F64, 2));
    assert_ok(ptowsp_convert(y, dtype, b, PTOWSP_F64, 2));
    pwsp_reduce_elements(reduction, dtype, to, x, y, 2);
    return ptowsp_convert(result, PTOWSP_F64, to, dtype, 2);
}

CALL(sum, reduce(PTOWSP_REDUCTION_SUM))
CALL(max, reduce(PTOWSP_REDUCTION_MAX))
CALL(min, reduce(PTOWSP_REDUCTION_MIN))

// Linear layouts and reductions have no context, and no texts.
static const char *no_text(uint64_t *out_index) {
    *out_index = PTOWSP_NO_INDEX;
    return "without a text";
}

static const facts_field *linear_fields(void) {
    FACTS_RETURN(FIELDS(n, 4), FIELD(has_one), FIELD(has_two), FIELD(has_made), FIELD(accesses),
                 FIELD(from), FIELD(place), FIELD(one.in_bits), FIELD(one.out_bits),
                 FIELDS(one.columns, 64), FIELD(two.in_bits), FIELD(two.out_bits),
                 FIELDS(two.columns, 64), FIELD_NAMED(dtype, dtypes), FIELDS(a, 2), FIELDS(b, 2),
                 FIELDS(result, 2));
}

TEST(rank_facts__of_linear_layouts_and_reductions_hold) {
    static const facts_call calls[] = {{"identity", identity},
                                       {"strided", strided},
                                       {"blocked", blocked},
                                       {"swizzle", swizzle},
                                       {"compose", compose},
                                       {"transpose", transpose},
                                       {"inverse", inverse},
                                       {"conflicts", conflicts},
                                       {"apply", apply},
                                       {"sum", sum},
                                       {"max", max},
                                       {"min", min},
                                       {NULL, NULL}};
    facts all = {.path = "tests/ranks/linear.facts",
                 .begin = linear_begin,
                 .fields = linear_fields,
                 .calls = calls,
                 .error = no_text};
    facts_run(&all);
}

// -- layouts over meshes --------------------------------------------------------------------------

static ptowsp_mesh mesh;
static ptowsp_mesh_layout left, right, joined;
static ptowsp_mesh_layout_part part;
static ptowsp_relayout relayout;
static ptowsp_join join;
static uint32_t rank;
static const char *name;
static int64_t cuts[3];
static bool has_mesh, has_left, has_cuts;

static void layout_begin(void) {
    const ptowsp_mesh_layout good = {.name = "t", .element_bytes = 4, .rank = 2, .shape = {4, 4}};
    mesh = (ptowsp_mesh){.axis_count = 1, .names = {"tp"}, .sizes = {2}};
    left = right = good;
    join = PTOWSP_JOIN_ADD;
    rank = 0;
    name = "c";
    has_mesh = has_left = has_result = true;
    has_cuts = false;
}

static const ptowsp_mesh_layout *layout(void) {
    left.spreads[0].cuts = has_cuts ? cuts : NULL;
    return has_left ? &left : NULL;
}

#define MESH (has_mesh ? &mesh : NULL)

CALL(check, ptowsp_mesh_layout_check(here, MESH, layout()))
CALL(part_of, ptowsp_mesh_layout_part_of(here, MESH, layout(), rank, has_result ? &part : NULL))
CALL(join_them,
     ptowsp_mesh_layout_join(here, MESH, join, layout(), &right, name, has_result ? &joined : NULL))
CALL(relayout_to,
     ptowsp_mesh_layout_relayout(here, MESH, layout(), &right, has_result ? &relayout : NULL))

static const facts_field *layout_fields(void) {
    FACTS_RETURN(FIELD(left.name), FIELD(left.element_bytes), FIELD(left.rank),
                 FIELDS(left.shape, 8), NAMED_AS("left.spread", left.spreads[0].kind, spread_kinds),
                 FIELD(right.element_bytes), FIELD(right.rank), FIELDS(right.shape, 8),
                 FIELD_NAMED(join, joins), FIELD(rank), FIELD(name), FIELDS(cuts, 3),
                 FIELD(has_mesh), FIELD(has_left), FIELD(has_result), FIELD(has_cuts),
                 FIELDS(joined.shape, 2));
}

CONTEXT_TEST(rank_facts__of_layouts_hold) {
    static const facts_call calls[] = {{"check", check},
                                       {"part", part_of},
                                       {"join", join_them},
                                       {"relayout", relayout_to},
                                       {NULL, NULL}};
    facts all = {.path = "tests/ranks/layouts.facts",
                 .begin = layout_begin,
                 .fields = layout_fields,
                 .calls = calls,
                 .error = error};
    here = context;
    facts_run(&all);
}

// Bindings and executions as facts (support/facts.h): what can be bound, what is refused, of plans and transient
// tensors too, and what comes of it. A kernel writes 100 and its first argument to the first element of its first
// tile, and takes a cycle; its calls are counted.

#include "facts.h"

enum {
    VALUES = 16,
    SHAPE = 4,
    MEMORY = 32,
    UNITS = 6,
    MERGES = 2,
    LANES = 4,
    SLOTS = 5,
    NOTES = 8,
    LARGE = 8000
};

#define DTYPE_OF(name, value, size, text) [value] = text,

static const char *const dtypes[] = {"none", PTOWSP_DTYPES(DTYPE_OF) NULL};
static const char *const modes[] = {"execute", "time", NULL};
static const char *const formats[] = {"perfetto", "chrome", "svg", "csv", "table", NULL};

// -- the program, and what is called -----------------------------------------------------------------

static const char *module = "";
static ptowsp_context *context;
static ptowsp_module *m;
static ptowsp_program *program;
static ptowsp_run *run;
static uint32_t calls, lanes, window;
static uint32_t calls_then;                // when the last refusal came
static int64_t noted[NOTES];               // first arguments
static uint64_t rows[NOTES], cols[NOTES];  // of first tiles
static ptowsp_shared_memory shared;
static bool in_order, has_records;
static uint64_t failing;  // the task that returns `failure`, or whose cost does
static int64_t failure;

static ptowsp_cycles note(const ptowsp_task *task, void *user) {
    (void)user;
    const int64_t value = task->user_axis_count ? ptowsp_task_axis(task, 0) : 0;
    noted[calls % NOTES] = value;
    if (task->tile_count > 0) {
        rows[calls % NOTES] = (uint64_t)ptowsp_task_rows(task, 0);
        cols[calls % NOTES] = (uint64_t)ptowsp_task_cols(task, 0);
        *(int32_t *)task->tiles[0].data = (int32_t)value + 100;
    }
    calls++;
    return task->index == failing ? (ptowsp_cycles)failure : 1;
}

static ptowsp_cycles cost(const ptowsp_task *task, void *user) {
    (void)user;
    assert_null(task->tiles[0].data);
    return task->index == failing ? (ptowsp_cycles)failure : 2;
}

static ptowsp_status make(void) {
    static const ptowsp_parse_kernel kernels[] = {{.name = "step", .fn = note},
                                                  {.name = "fill", .fn = note},
                                                  {.name = "read", .fn = note},
                                                  {.name = "costly", .fn = note, .cost = cost}};
    const ptowsp_parse_desc attached = {kernels, COUNT_OF(kernels), 0};
    const ptowsp_schedule schedule = {.lane_count = lanes,
                                      .shared = shared,
                                      .window = window,
                                      .issue =
                                          in_order ? PTOWSP_ISSUE_IN_ORDER : PTOWSP_ISSUE_DATAFLOW};
    const ptowsp_program_desc desc = {NULL, &schedule};
    test_destroy(run, program, m, NULL);
    run = test_run_text(context, module, &attached, &desc, &m, &program);
    assert_ptr_equal(ptowsp_run_program(run), program);
    return PTOWSP_OK;
}

// -- what is bound -----------------------------------------------------------------------------------

static const char *name;
static int64_t value;
static uint64_t count, slot;
static ptowsp_dtype dtype;
static int64_t values[VALUES], indices[VALUES];
static uint32_t at;  // bytes from where it is aligned
static bool is_null, has_indptr, has_indices, has_csr, has_buffer, has_plan;
static ptowsp_buffer buffer;
static int32_t x[MEMORY], y[MEMORY], large[LARGE];
static uint32_t memory;  // x, y or large
static ptowsp_attention_plan plan;
static ptowsp_work units[UNITS], merges[MERGES];
static uint32_t unit_begin[LANES + 1], merge_begin[LANES + 1];
static bool has_units, has_merges, has_unit_begin, has_merge_begin;
static ptowsp_what_if what_if;
static ptowsp_run_mode mode;
static ptowsp_transient_sizes sizes;
static ptowsp_export_format format;
static char written[8000];
static const char *text = written;

// The plan that section 9 of the header draws: lengths 250, 100, 50 on 4 lanes; tiles 3, 0, 0.
static void draw_plan(void) {
    static const ptowsp_work drawn_units[UNITS] = {
        {0, 2, 1, 3, {0, 1, 0, 100}},  {1, 2, 0, 3, {0, 1, 100, 100}},
        {2, 2, 2, 3, {0, 1, 200, 50}}, {3, 1, 1, 0, {1, 0, 0, 50}},
        {4, 1, 2, 0, {1, 0, 50, 50}},  {PTOWSP_NO_SLOT, 0, 3, 0, {2, 0, 0, 50}}};
    static const ptowsp_work drawn_merges[MERGES] = {{0, 0, 0, 3, {0, 1, 0, 3}},
                                                     {1, 0, 0, 0, {1, 0, 3, 2}}};
    static const uint32_t begins[2][LANES + 1] = {{0, 1, 2, 4, 6}, {0, 1, 1, 2, 2}};
    memcpy(units, drawn_units, sizeof units);
    memcpy(merges, drawn_merges, sizeof merges);
    memcpy(unit_begin, begins[0], sizeof unit_begin);
    memcpy(merge_begin, begins[1], sizeof merge_begin);
    plan = (ptowsp_attention_plan){.unit_capacity = UNITS,
                                   .merge_capacity = MERGES,
                                   .slot_capacity = SLOTS,
                                   .unit_count = UNITS,
                                   .merge_count = MERGES,
                                   .slot_count = SLOTS,
                                   .lane_count = LANES};
}

static void begin(void) {
    lanes = window = memory = at = 0;
    memset(&shared, 0, sizeof shared);
    in_order = is_null = false;
    name = NULL;
    value = 0;
    count = slot = 0;
    dtype = PTOWSP_I32;
    memset(values, 0, sizeof values);
    memset(indices, 0, sizeof indices);
    memset(&buffer, 0, sizeof buffer);
    has_indptr = has_indices = has_csr = has_buffer = has_plan = true;
    has_units = has_merges = has_unit_begin = has_merge_begin = true;
    what_if = (ptowsp_what_if){.kernel = 1};
    mode = PTOWSP_RUN_EXECUTE;
    format = PTOWSP_EXPORT_CSV;
    calls_then = calls;
    calls = 0;
    failing = UINT64_MAX;
    failure = 0;
    has_records = false;
    memset(noted, 0, sizeof noted);
    draw_plan();
}

// Numbers in memory of their own, `at` bytes further than they should be.
static const void *array_of(const int64_t *from) {
    const size_t size = ptowsp_dtype_size(dtype);
    char *elements = (char *)test_alloc(VALUES + 1, 8) + at;
    for (size_t i = 0; i < VALUES; i++) {
        memcpy(elements + i * size, &from[i], size);
    }
    return elements;
}

static const void *given[2];  // the last numbers, and indices

static const void *array(void) {
    return given[0] = is_null ? NULL : array_of(values);
}

static ptowsp_status bind_csr(void) {
    given[0] = has_indptr ? array_of(values) : NULL;
    given[1] = has_indices ? array_of(indices) : NULL;
    const ptowsp_csr csr = {dtype, given[0], given[1], slot, count};
    ptowsp_csr *kept = (ptowsp_csr *)test_alloc(1, sizeof csr);
    *kept = csr;
    return ptowsp_run_bind_csr(run, name, has_csr ? kept : NULL);
}

static int32_t *const places[] = {x, y, large};

static ptowsp_status bind_tensor(void) {
    buffer.data = is_null ? NULL : (char *)places[memory] + at;
    return ptowsp_run_bind_tensor(run, name, has_buffer ? &buffer : NULL);
}

static ptowsp_status bind_plan(void) {
    char *shifted = (char *)units + at;
    memcpy(&plan.units, &shifted, sizeof shifted);
    plan.units = has_units ? plan.units : NULL;
    plan.merges = has_merges ? merges : NULL;
    plan.unit_begin = has_unit_begin ? unit_begin : NULL;
    plan.merge_begin = has_merge_begin ? merge_begin : NULL;
    return ptowsp_run_bind_plan(run, name, has_plan ? &plan : NULL);
}

static ptowsp_status bind_work(void) {
    const char *shifted = (const char *)units + at;
    const ptowsp_work *work = NULL;
    memcpy(&work, &shifted, sizeof shifted);
    return ptowsp_run_bind_work(run, name, has_units ? work : NULL, count);
}

static ptowsp_status bind_transients(void) {
    static _Alignas(64) char block[4096];
    return ptowsp_run_bind_transients(run, is_null ? NULL : block + at, count);
}

static ptowsp_status execute(void) {
    const ptowsp_run_options options = {.mode = mode, .record_tasks = has_records};
    return ptowsp_run_execute(run, &options);
}

static ptowsp_status export_transients(void) {
    return ptowsp_run_export_transients(run, format, NULL, TEST_TEXT(written));
}

// -- what is read back -------------------------------------------------------------------------------

static uint32_t id;     // of an axis, a symbol, an array or a tensor
static bool are_given;  // numbers, and indices, are where those bound last are
static struct {
    bool is_there;
    int64_t size, at;  // at: bytes from where the memory begins
    uint64_t symbol;
    ptowsp_csr csr;  // of an array: its numbers are where those of rows would be
    ptowsp_buffer buffer;
    int64_t values[VALUES], indices[VALUES];
} bound;

static void read_numbers(const void *from, uint64_t number_count, int64_t *out) {
    const size_t size = ptowsp_dtype_size(bound.csr.dtype);
    for (uint64_t i = 0; i < number_count; i++) {
        memcpy(&out[i], (const char *)from + i * size, size);
    }
}

// bound size, symbol, array, csr or tensor
static ptowsp_status read_back(void) {
    const char *kind = facts_words;
    ptowsp_csr *csr = &bound.csr;
    memset(&bound, 0, sizeof bound);
    if (strcmp(kind, "size") == 0) {
        bound.is_there = ptowsp_run_bound_size(run, id, &bound.size);
    } else if (strcmp(kind, "symbol") == 0) {
        bound.is_there = ptowsp_run_bound_symbol(run, id, &bound.symbol);
    } else if (strcmp(kind, "array") == 0) {
        bound.is_there =
            ptowsp_run_bound_array(run, id, &csr->dtype, &csr->indptr, &csr->entry_count);
        read_numbers(csr->indptr, csr->entry_count, bound.values);
    } else if (strcmp(kind, "csr") == 0) {
        bound.is_there = ptowsp_run_bound_csr(run, id, csr);
        read_numbers(csr->indptr, bound.is_there ? csr->row_count + 1 : 0, bound.values);
        read_numbers(csr->indices, csr->entry_count, bound.indices);
    } else {
        assert_string_equal(kind, "tensor");
        bound.is_there = ptowsp_run_bound_tensor(run, id, &bound.buffer);
        bound.at = bound.is_there ? (char *)bound.buffer.data - (char *)places[memory] : 0;
    }
    are_given = csr->indptr == given[0] && (!csr->indices || csr->indices == given[1]);
    return PTOWSP_OK;
}

#define CALL(name, result)                                                                         \
    static ptowsp_status name(void) {                                                              \
        return result;                                                                             \
    }
CALL(bind_size, ptowsp_run_bind_size(run, name, value))
CALL(bind_symbol, ptowsp_run_bind_symbol(run, name, (uint64_t)value))
CALL(bind_slot, ptowsp_run_bind_slot(run, (uint32_t)slot, (uint64_t)value))
CALL(bind_array, ptowsp_run_bind_array(run, name, dtype, array(), count))
CALL(bind_lengths, ptowsp_run_bind_lengths(run, name, dtype, array(), count))
CALL(ask, ptowsp_run_what_if(run, NULL, &what_if))
CALL(place, ptowsp_run_size_transients(run, &sizes))

static const char *error(uint64_t *out_index) {
    *out_index = ptowsp_context_error(context).index;
    return ptowsp_context_error(context).text;
}

static const facts_field *fields(void) {
    static uint64_t task_count, region_max, makespan, last_end, hbm_bytes, slots[NOTES],
        bound_slots[NOTES];
    const uint32_t slot_count = run ? ptowsp_program_read(program)->slot_count : 0;
    for (uint32_t i = 0; i < slot_count && i < NOTES; i++) {
        slots[i] = ptowsp_run_slot(run, i);
        bound_slots[i] = ptowsp_run_bound_slot(run, i);
    }
    if (run) {
        task_count = ptowsp_run_result(run)->task_count;
        region_max = ptowsp_run_result(run)->region_max;
        makespan = ptowsp_run_result(run)->makespan_cycles;
        hbm_bytes = ptowsp_run_result(run)->hbm_bytes;
        const ptowsp_task_record *records = ptowsp_run_records(run);
        last_end = records && task_count ? records[task_count - 1].end : 0;
    }
    FACTS_RETURN(
        FIELD(module), FIELD(lanes), FIELD(window), FIELD(in_order), FIELD(failing), FIELD(failure),
        FIELD(has_records), FIELD(last_end), FIELD(calls), FIELD(calls_then), FIELDS(noted, NOTES),
        FIELDS(rows, NOTES), FIELDS(cols, NOTES), FIELD(shared.hbm_rate), FIELD(shared.l2_rate),
        FIELD(shared.l2_bytes), FIELD(hbm_bytes), FIELD(name), FIELD(value), FIELD(count),
        FIELD(slot), FIELD_NAMED(dtype, dtypes), FIELDS(values, VALUES), FIELDS(indices, VALUES),
        FIELD(at), FIELD(is_null), FIELD(has_indptr), FIELD(has_indices), FIELD(has_csr),
        FIELD(has_buffer), FIELD(buffer.rank), FIELDS(buffer.shape, SHAPE),
        FIELDS(buffer.strides, SHAPE), FIELD(buffer.size), FIELD_NAMED(buffer.dtype, dtypes),
        FIELD(memory), FIELDS(x, MEMORY), FIELDS(y, MEMORY), FIELD(has_plan),
        FIELD(plan.unit_capacity), FIELD(plan.merge_capacity), FIELD(plan.unit_count),
        FIELD(plan.lane_count), FIELD(has_units), FIELD(has_merges), FIELD(has_unit_begin),
        FIELD(has_merge_begin), MEMBER(units, flags, UNITS), FIELD(units[4].params[3]),
        MEMBER(merges, flags, MERGES), FIELDS(unit_begin, LANES + 1),
        FIELDS(merge_begin, LANES + 1), FIELD(what_if.kernel), FIELD(what_if.percent),
        FIELD(what_if.makespan_cycles), FIELD_NAMED(mode, modes), FIELD(sizes.sum),
        FIELD(sizes.low), FIELD(sizes.peak), FIELD_NAMED(format, formats), FIELD(text),
        FIELD(task_count), FIELD(region_max), FIELD(makespan), FIELDS(slots, slot_count),
        FIELDS(bound_slots, slot_count), FIELD(id), FIELD(are_given), FIELD(bound.is_there),
        FIELD(bound.size), FIELD(bound.at), FIELD(bound.symbol),
        FIELD_NAMED(bound.csr.dtype, dtypes), FIELD(bound.csr.row_count),
        FIELD(bound.csr.entry_count), FIELD(bound.buffer.size),
        FIELD_NAMED(bound.buffer.dtype, dtypes), FIELD(bound.buffer.rank),
        FIELDS(bound.buffer.shape, SHAPE), FIELDS(bound.buffer.strides, SHAPE),
        FIELDS(bound.values, VALUES), FIELDS(bound.indices, VALUES));
}

TEST(run_facts__hold) {
    static const facts_call all_calls[] = {{"make", make},
                                           {"size", bind_size},
                                           {"symbol", bind_symbol},
                                           {"bind_slot", bind_slot},
                                           {"array", bind_array},
                                           {"lengths", bind_lengths},
                                           {"csr", bind_csr},
                                           {"tensor", bind_tensor},
                                           {"plan", bind_plan},
                                           {"work", bind_work},
                                           {"transients", bind_transients},
                                           {"execute", execute},
                                           {"what_if", ask},
                                           {"place", place},
                                           {"export", export_transients},
                                           {"bound ", read_back},
                                           {NULL, NULL}};
    facts all = {.path = "tests/exec/runs.facts",
                 .begin = begin,
                 .fields = fields,
                 .calls = all_calls,
                 .error = error};
    context = test_context(NULL);
    facts_run(&all);
    test_destroy(run, program, m, context);
}

// Makes what a case says: its program, what is bound to a run, and data before it; and what its
// kernels note. A subject is a case while it is tested, in one of its ways and modes.

#ifndef CASE_RUN_H
#define CASE_RUN_H

#include "case_file.h"
#include "case_functions.h"

#include "../../src/text/parse.h"

enum {
    CASE_TENSOR_MAX = 12,
    CASE_KERNEL_MAX = 32,
    CASE_AXIS_MAX = PTOWSP_TASK_AXIS_MAX,
    CASE_TASK_MAX = 16384,
    CASE_NOTE_MAX = 1024
};

#define CASE_NOT_CALLED INT64_C(-0x5eed)

typedef struct case_subject case_subject;

typedef struct case_callee {
    case_subject *s;
    const char *kernel;
    const case_function *function;
    const ptowsp_kernel_info *info;
} case_callee;

typedef struct case_tensor {
    ptowsp_tensor_desc desc;
    bool is_transposed;  // in memory the last two dimensions are swapped
    uint32_t home;       // whose memory it has: its own number, or that of another tensor
    uint64_t count;
    size_t size;
    double *before;
    void *own, *data;
} case_tensor;

struct case_subject {
    const case_text *c;
    const case_item *way, *mode;   // NULL: there are none
    const char *engine;            // for messages
    int line;                      // of the item at hand
    const char *word;              // of the result that is compared
    case_items all, lets;          // of the way, the module and the case, with names replaced
    case_items items;              // of all, those that hold under the schedule at hand
    const char *schedule;          // its directives; several with "or" between them
    uint32_t choice, alternative;  // the ones at hand, of lets and of schedules
    uint64_t token_limit;          // of executions
    bool has_edges;                // tiles may end at the edges of tensors
    size_t round, round_end;       // items of this round: to `then`, or the end
    test_memory memory;
    size_t allocated;  // by the execution that ended last
    ptowsp_context *context;
    ptowsp_module *module;
    pwsp_parse_saved saved;
    char *text;
    ptowsp_program *program;
    ptowsp_run *run;
    uint32_t rank, rank_count;                // of `run`; rank_count 0: it is not one of several
    const ptowsp_run_group_result *together;  // NULL: not simulated together
    case_tensor tensors[CASE_TENSOR_MAX];
    uint32_t tensor_count;
    case_callee callees[CASE_KERNEL_MAX];
    ptowsp_parse_kernel attached[CASE_KERNEL_MAX];
    uint32_t attached_count;
    // What kernels note: atomic, as they may be called by several threads.
    uint32_t core_count;  // the lanes or cores of this execution
    uint64_t call_count, wrong_call_count, next_task;
    int64_t noted[CASE_NOTE_MAX];  // in the order of calls: axis argument 0, or what was seen
    int64_t called[CASE_TASK_MAX][CASE_AXIS_MAX];  // by task; CASE_NOT_CALLED
};

// How many comparisons have been made, over all cases.
static uint64_t case_check_count;

#define CASE_FAIL(s, ...)                                                                          \
    do {                                                                                           \
        print_error("%s:%d: %s%s%s%s%s, %s: ", (s)->c->file->path,                                 \
                    (s)->line ? (s)->line : (s)->c->line, (s)->c->name, (s)->way ? ", " : "",      \
                    (s)->way ? (s)->way->word : "", (s)->mode ? ", " : "",                         \
                    (s)->mode ? (s)->mode->word : "", (s)->engine);                                \
        print_error(__VA_ARGS__);                                                                  \
        print_error("\n");                                                                         \
        fail();                                                                                    \
    } while (0)

static inline void case_check(const case_subject *s, const char *what, uint64_t i, uint64_t got,
                              uint64_t expected) {
    case_check_count++;
    if (got != expected) {
        CASE_FAIL(s, "%s (%llu) is %llu, not %llu", what, (unsigned long long)i,
                  (unsigned long long)got, (unsigned long long)expected);
    }
}

static inline void case_check_text(const case_subject *s, const char *what, const char *got,
                                   const char *expected) {
    case_check_count++;
    if (strcmp(got, expected) != 0) {
        CASE_FAIL(s, "%s\n    is  %s\n    not %s", what, got, expected);
    }
}

static inline void case_ok(const case_subject *s, const char *what, ptowsp_status status) {
    case_check_count++;
    if (status != PTOWSP_OK) {
        CASE_FAIL(s, "%s: %s: %s", what, ptowsp_status_name(status),
                  ptowsp_context_error(s->context).text);
    }
}

// -- reading --------------------------------------------------------------------------------------

static inline int64_t case_number(const case_subject *s, const char **at) {
    char *end;
    *at += strspn(*at, " ,:()");
    int64_t value = **at == '-' ? strtoll(*at, &end, 10) : (int64_t)strtoull(*at, &end, 10);
    if (end == *at) {
        CASE_FAIL(s, "a number is missing at \"%s\"", *at);
    }
    *at = end;
    return value;
}

static inline double case_real(const case_subject *s, const char **at) {
    char *end;
    double value = strtod(*at, &end);
    if (end == *at) {
        CASE_FAIL(s, "a number is missing at \"%s\"", *at);
    }
    *at = end;
    return value;
}

// The text of an item ends here.
static inline void case_end(const case_subject *s, const char *at) {
    if (*case_skip(at)) {
        CASE_FAIL(s, "this is not read: \"%s\"", case_skip(at));
    }
}

// A text that has to stand here.
static inline void case_literal(const case_subject *s, const char **at, const char *text) {
    *at = case_skip(*at);
    if (!case_begins(*at, text)) {
        CASE_FAIL(s, "\"%s\" is missing at \"%s\"", text, *at);
    }
    *at += strlen(text);
}

static inline bool case_is_number(const char *at) {
    at += strspn(at, " ,:()");
    return isdigit((unsigned char)*at) || *at == '-';
}

// The word at a place, at most 63 characters of letters, digits, "_" and "."
static inline void case_word(const char **at, char *word) {
    size_t length = 0;
    *at = case_skip(*at);
    while (isalnum((unsigned char)(*at)[length]) ||
           ((*at)[length] && strchr("_.", (*at)[length]))) {
        length++;
    }
    snprintf(word, 64, "%.*s", (int)length, *at);
    *at += length;
}

// One of several that give the same: A or B or C. The last one stands for all after it.
static inline char *case_part(const char *text, uint32_t number) {
    const char *at = text, *end = strstr(text, " or ");
    while (end && number-- > 0) {
        at = end + 4;
        end = strstr(at, " or ");
    }
    return case_copy(at, end ? (size_t)(end - at) : strlen(at));
}

static inline uint32_t case_part_count(const char *text) {
    uint32_t count = 1;
    for (const char *at = text; (at = strstr(at, " or ")); at += 4) {
        count++;
    }
    return count;
}

// A text in which $name is what the last `let` says.
static inline char *case_replaced(const case_subject *s, const char *text) {
    char *out = case_copy("", 0);
    for (const char *at = text; *at;) {
        size_t plain = strcspn(at, "$");
        out = case_join(out, at, plain);
        at += plain;
        if (*at == '$') {
            char name[64];
            const case_item *let;
            at++;
            case_word(&at, name);
            if (!(let = case_find(&s->lets, name))) {
                CASE_FAIL(s, "nothing is let for $%s", name);
            }
            const char *inner = case_replaced(s, let->rest);
            out = case_join(out, inner, strlen(inner));
        }
    }
    return out;
}

// All items in order: those of the way, of the module and of the case.
static inline void case_gather(case_subject *s) {
    const case_items *lists[] = {&s->c->given, &s->c->items};
    if (s->way) {
        case_split(s->c->file, &s->all, s->way->rest, s->way->line);
    }
    for (int l = 0; l < 2; l++) {
        for (size_t i = 0; i < lists[l]->count; i++) {
            *case_add(&s->all, "", "", 0) = lists[l]->items[i];
        }
    }
    for (size_t i = 0; i < s->c->file->defines.count; i++) {
        *case_add(&s->lets, "", "", 0) = s->c->file->defines.items[i];
    }
    for (size_t i = 0; i < s->all.count; i++) {
        if (!strcmp(s->all.items[i].word, "let")) {
            const char *at = s->all.items[i].rest;
            char name[64];
            case_word(&at, name);
            const char *value = case_part(case_skip(at), s->choice);
            case_add(&s->lets, case_copy(name, strlen(name)), value, 0);
        }
    }
    for (size_t i = 0; i < s->all.count; i++) {
        s->all.items[i].rest = case_replaced(s, s->all.items[i].rest);
    }
}

// Is an item one of the mode at hand?
static inline bool case_applies(const case_subject *s, const case_item *item) {
    return !item->modes || (s->mode && case_lists(item->modes, s->mode->word));
}

// The item, or what `rank I: ITEM` has in it; false if that is of another rank than the one at hand.
static inline bool case_own(const case_subject *s, const case_item *item, case_item *out) {
    *out = *item;
    if (strcmp(item->word, "rank") != 0) {
        return true;
    }
    const char *at = item->rest;
    bool is_own = (uint64_t)case_number(s, &at) == s->rank;
    case_literal(s, &at, ":");
    at = case_skip(at);
    size_t length = strcspn(at, " ");
    out->word = case_copy(at, length);
    out->rest = case_skip(at + length);
    return is_own;
}

// The item of this round with a word that applies, or NULL; before the first round, of all.
static inline const case_item *case_said(const case_subject *s, const char *word) {
    size_t end = s->round_end ? s->round_end : s->items.count;
    for (size_t i = s->round; i < end; i++) {
        if (!strcmp(s->items.items[i].word, word) && case_applies(s, &s->items.items[i])) {
            return &s->items.items[i];
        }
    }
    return NULL;
}

// Goes to the schedule number `which` of a case: what is said before the first one holds under all,
// and the rest up to the next one under this. A case that has none has one, which is empty. False if
// there are no more.
static inline bool case_choose(case_subject *s, size_t which) {
    size_t count = 0;
    memset(&s->items, 0, sizeof s->items);
    s->round = s->round_end = 0;
    s->schedule = which == 0 ? "" : NULL;
    for (size_t i = 0; i < s->all.count; i++) {
        bool is_schedule = !strcmp(s->all.items[i].word, "schedule");
        count += is_schedule;
        if (is_schedule && count == which + 1) {
            s->schedule = s->all.items[i].rest;
        } else if (!is_schedule && (count == 0 || count == which + 1)) {
            *case_add(&s->items, "", "", 0) = s->all.items[i];
        }
    }
    s->has_edges = case_said(s, "edges") != NULL;
    return s->schedule != NULL;
}

// The last error is the one that an item has: STATUS [at INDEX] [TEXT];
// an index "-" is none. Errors of texts have a place
// before, which the case may leave out, as their index, the line.
static inline void case_check_error(case_subject *s, const case_item *item, ptowsp_status status) {
    char word[64];
    const char *at = item->rest, *text = ptowsp_context_error(s->context).text;
    uint64_t index = PTOWSP_NO_INDEX;
    s->line = item->line;
    case_word(&at, word);
    case_check_text(s, "status", ptowsp_status_name(status), word);
    at = case_skip(at);
    bool has_index = case_begins(at, "at ");
    if (has_index && strchr(" ", at[4]) && at[3] == '-') {
        at += 4;
    } else if (has_index) {
        at += 3;
        index = (uint64_t)case_number(s, &at);
    }
    at = case_skip(at);
    if (has_index || (*at && status != PTOWSP_OK && !isdigit((unsigned char)text[0]))) {
        case_check(s, "index of the error", 0, ptowsp_context_error(s->context).index, index);
    }
    if (isdigit((unsigned char)text[0]) && !isdigit((unsigned char)*at) && strchr(text, ' ')) {
        text = strchr(text, ' ') + 1;
    }
    if (*at) {
        case_check_text(s, "error", status == PTOWSP_OK ? "" : text, at);
    }
    s->line = 0;
}

// -- kernels --------------------------------------------------------------------------------------

// A size of a tile, of those that a declaration says; less where tiles may end at an edge.
static inline bool case_is_size(const case_subject *s, int64_t size, int64_t declared) {
    return declared == PTOWSP_DYNAMIC || size == declared || (s->has_edges && size < declared);
}

static inline bool case_is_good_call(const case_callee *callee, const ptowsp_task *task) {
    const ptowsp_kernel_info *k = callee->info;
    case_subject *s = callee->s;
    uint64_t next = __atomic_exchange_n(&s->next_task, task->index + 1, __ATOMIC_RELAXED);
    bool good = k && (s->core_count > 1 || task->index >= next) && task->index < CASE_TASK_MAX &&
                task->lane < s->core_count && task->user_axis_count == k->axis_count &&
                task->tile_count == k->tile_count && !strcmp(task->kernel_name, k->name) &&
                task->axis_arg_count == k->axis_count + 2 * k->tile_count &&
                task->arg_count == task->axis_arg_count + k->scalar_count;
    for (uint32_t i = 0; good && i < task->tile_count; i++) {
        good = case_is_size(s, ptowsp_task_rows(task, i), k->tiles[i].rows) &&
               case_is_size(s, ptowsp_task_cols(task, i), k->tiles[i].cols);
    }
    return good;
}

// What kernels are that are functions: each call is noted before it does its work.
static inline ptowsp_cycles case_call(const ptowsp_task *task, void *user) {
    const case_callee *callee = (const case_callee *)user;
    case_subject *s = callee->s;
    uint64_t number = __atomic_fetch_add(&s->call_count, 1u, __ATOMIC_RELAXED);
    if (!case_is_good_call(callee, task)) {
        __atomic_fetch_add(&s->wrong_call_count, 1u, __ATOMIC_RELAXED);
        return ptowsp_task_fail(PTOWSP_KERNEL_FAILED);
    }
    for (uint32_t i = 0; i < task->user_axis_count && i < CASE_AXIS_MAX; i++) {
        s->called[task->index][i] = ptowsp_task_axis(task, i);
    }
    if (number < CASE_NOTE_MAX && task->user_axis_count > 0) {
        s->noted[number] =
            callee->function->fn == case_see ? *i32_of(task, 0) : ptowsp_task_axis(task, 0);
    }
    return callee->function->fn(task, NULL);
}

// What `burn` finds in the data, from the task's arguments alone. Kernels are called st0, st1, ...
// or ka, kb, ...: the kernel n reads row n of the first tensor.
static inline ptowsp_cycles case_cost(const ptowsp_task *task, void *user) {
    const case_callee *callee = (const case_callee *)user;
    const case_tensor *tensor = &callee->s->tensors[0];
    char last = callee->kernel[strlen(callee->kernel) - 1];
    int64_t row = last < 'a' ? last - '0' : last - 'a';
    return (ptowsp_cycles)tensor->before[row * tensor->desc.shape[1] + ptowsp_task_axis(task, 0)];
}

static inline void case_attach(case_subject *s) {
    const case_items *functions = &s->c->file->functions;
    for (size_t i = 0; i < functions->count && s->attached_count < CASE_KERNEL_MAX; i++) {
        case_callee *callee = &s->callees[s->attached_count];
        ptowsp_parse_kernel *kernel = &s->attached[s->attached_count++];
        callee->s = s;
        callee->kernel = functions->items[i].word;
        for (size_t f = 0; f < sizeof case_functions / sizeof case_functions[0]; f++) {
            if (!strcmp(case_functions[f].name, functions->items[i].rest)) {
                callee->function = &case_functions[f];
            }
        }
        if (!callee->function) {
            CASE_FAIL(s, "there is no function %s", functions->items[i].rest);
        }
        kernel->name = callee->kernel;
        kernel->fn = case_call;
        kernel->cost = callee->function->cost ? callee->function->cost : case_cost;
        kernel->user = callee;
        kernel->source.fn = callee->function->source;
        kernel->source.text = callee->function->source ? case_source : NULL;
    }
}

// -- programs -------------------------------------------------------------------------------------

// The module with the file's kernels that it uses, after its first line.
static inline char *case_module_text(const case_subject *s) {
    const char *module = case_replaced(s, s->c->module);
    size_t head = strcspn(module, "\n") + 1;
    char *text = case_copy(module, head);
    for (size_t i = 0; i < s->c->file->kernels.count; i++) {
        const case_item *kernel = &s->c->file->kernels.items[i];
        char use[80], own[80];
        snprintf(use, sizeof use, " %s(", kernel->word);
        snprintf(own, sizeof own, "\nkernel %s(", kernel->word);
        if (strstr(module, use) && !strstr(module, own)) {
            const char *declared = case_replaced(s, kernel->rest);
            text = case_join(text, declared, strlen(declared));
        }
    }
    return case_join(text, module + head, strlen(module + head));
}

static inline char *case_add_directives(char *text, const char *directives) {
    for (const char *at = directives; *at; at += strcspn(at, ";"), at += *at == ';') {
        const char *one = case_trimmed(at, strcspn(at, ";"));
        text = *one ? case_line(case_join(text, "  ", 2), one, strlen(one)) : text;
    }
    return text;
}

// The module and the schedule, as saved programs have them after their first line.
static inline void case_write_text(case_subject *s) {
    s->text = case_line(case_module_text(s), "schedule", 8);
    if (s->mode) {
        s->text = case_add_directives(s->text, s->mode->rest);
    }
    s->text = case_add_directives(s->text, case_part(s->schedule, s->alternative));
}

static inline ptowsp_status case_parse(case_subject *s) {
    const ptowsp_parse_desc kernels = {s->attached, s->attached_count, 0};
    memset(&s->saved, 0, sizeof s->saved);
    return pwsp_parse_text(s->context, s->text, strlen(s->text), 1, &kernels, &s->saved, &s->module,
                           NULL);
}

// The schedule of the case in the mode at hand; `text` is the module's with it.
static inline ptowsp_program_desc case_desc(const case_subject *s) {
    const ptowsp_program_desc desc = {s->saved.workload[0] ? s->saved.workload : NULL,
                                      s->schedule ? &s->saved.schedule : NULL};
    return desc;
}

// Finds out what the program at hand has made of the kernels that are functions.
static inline void case_know_kernels(case_subject *s) {
    const ptowsp_program_tables *t = ptowsp_program_read(s->program);
    for (uint32_t i = 0; i < s->attached_count; i++) {
        s->callees[i].info = NULL;
        for (uint32_t k = 1; k < t->kernel_count; k++) {
            if (!strcmp(t->kernels[k].name, s->callees[i].kernel)) {
                s->callees[i].info = &t->kernels[k];
            }
        }
    }
}

// -- data -----------------------------------------------------------------------------------------

static inline case_tensor *case_tensor_of(case_subject *s, const char *name) {
    for (uint32_t t = 0; t < s->tensor_count; t++) {
        if (!strcmp(s->tensors[t].desc.name, name)) {
            return &s->tensors[t];
        }
    }
    CASE_FAIL(s, "there is no tensor %s", name);
    return NULL;
}

// rule MUL ADD MOD SUB SCALE [transposed]: element i of memory is (((i * mul + add) % mod) - sub) * scale.
static inline void case_tensor_rule(const case_subject *s, case_tensor *tensor, const char *at) {
    double numbers[5];
    for (int i = 0; i < 5; i++) {
        numbers[i] = case_real(s, &at);
    }
    at = case_skip(at);
    tensor->is_transposed = case_begins(at, "transposed");
    case_end(s, at + (tensor->is_transposed ? strlen("transposed") : 0));
    for (uint64_t i = 0; i < tensor->count; i++) {
        int64_t step =
            ((int64_t)i * (int64_t)numbers[0] + (int64_t)numbers[1]) % (int64_t)numbers[2];
        tensor->before[i] = (double)(step - (int64_t)numbers[3]) * numbers[4];
    }
}

// VALUE[*COUNT] ...: the others are 0.
static inline void case_values(const case_subject *s, const case_tensor *tensor, const char *at,
                               double *values) {
    for (uint64_t i = 0; *(at = case_skip(at));) {
        char *end;
        double value = strtod(at, &end);
        bool has_count = *end == '*' && isdigit((unsigned char)end[1]);
        uint64_t count = has_count ? strtoull(end + 1, &end, 10) : 1;
        if (end == at || (*end && *end != ' ') || count > tensor->count - i) {
            CASE_FAIL(s, "tensor %s does not have \"%s\"", tensor->desc.name, at);
        }
        while (count-- > 0) {
            values[i++] = value;
        }
        at = end;
    }
}

static inline void case_make_tensors(case_subject *s) {
    const ptowsp_program_tables *t = ptowsp_program_read(s->program);
    for (uint32_t i = 1; i < t->tensor_count; i++) {
        if (!t->tensors[i].is_transient && t->tensors[i].desc.name) {
            assert_true(s->tensor_count < CASE_TENSOR_MAX);
            case_tensor *tensor = &s->tensors[s->tensor_count];
            tensor->home = s->tensor_count++;
            tensor->desc = t->tensors[i].desc;
            tensor->desc.name = case_copy(tensor->desc.name, strlen(tensor->desc.name));
            tensor->count = case_find(&s->items, "ranks") ? 0 : 1;  // which have no data
            for (uint32_t d = 0; d < tensor->desc.rank; d++) {
                tensor->count *= (uint64_t)tensor->desc.shape[d];
            }
            tensor->size = (size_t)tensor->count * ptowsp_dtype_size(tensor->desc.dtype);
            tensor->before = (double *)case_alloc((size_t)tensor->count * sizeof(double));
            tensor->own = tensor->data = case_alloc(tensor->size);
        }
    }
}

static inline void case_fill(case_subject *s) {
    for (uint32_t t = 0; t < s->tensor_count; t++) {
        case_ok(s, "data",
                ptowsp_convert(s->tensors[t].data, s->tensors[t].desc.dtype, s->tensors[t].before,
                               PTOWSP_F64, s->tensors[t].count));
    }
}

static inline ptowsp_buffer case_buffer(const case_tensor *tensor, void *data) {
    ptowsp_buffer buffer = {.data = data, .size = data ? tensor->size : 0};
    if (tensor->is_transposed) {
        const int64_t *shape = tensor->desc.shape;
        uint32_t rank = buffer.rank = tensor->desc.rank;
        memcpy(buffer.shape, shape, sizeof buffer.shape);
        buffer.strides[rank - 1] = shape[rank - 2];
        buffer.strides[rank - 2] = 1;
        int64_t stride = shape[rank - 1] * shape[rank - 2];
        for (uint32_t i = rank - 2; i-- > 0; stride *= shape[i]) {
            buffer.strides[i] = stride;
        }
    }
    return buffer;
}

static inline void case_bind_data(case_subject *s, bool with_data) {
    for (uint32_t t = 0; t < s->tensor_count; t++) {
        case_tensor *tensor = &s->tensors[t];
        void *data = with_data ? s->tensors[tensor->home].own : NULL;
        const ptowsp_buffer buffer = case_buffer(tensor, data);
        case_ok(s, tensor->desc.name, ptowsp_run_bind_tensor(s->run, tensor->desc.name, &buffer));
    }
}

// -- bindings -------------------------------------------------------------------------------------

// The numbers up to the end or a colon.
static inline int64_t *case_numbers(const case_subject *s, const char **at, uint64_t *out_count) {
    int64_t *numbers = (int64_t *)case_alloc(strlen(*at) * sizeof *numbers);
    *at = case_skip(*at);
    for (*out_count = 0; **at && **at != ':'; *at = case_skip(*at)) {
        numbers[(*out_count)++] = case_number(s, at);
    }
    *at += **at == ':';
    return numbers;
}

static inline int32_t *case_narrow(const int64_t *numbers, uint64_t count) {
    int32_t *narrow = (int32_t *)case_alloc((size_t)(count + 1) * sizeof *narrow);
    for (uint64_t i = 0; i < count; i++) {
        narrow[i] = (int32_t)numbers[i];
    }
    return narrow;
}

static inline void case_bind_tensor(case_subject *s, const char *name, const char *at) {
    case_tensor *tensor = case_tensor_of(s, name);
    memset(tensor->before, 0, (size_t)tensor->count * sizeof(double));
    tensor->is_transposed = false;
    at = case_skip(at);
    if (case_begins(at, "in ")) {
        tensor->home = case_tensor_of(s, at + 3)->home;
    } else if (case_begins(at, "rule ")) {
        case_tensor_rule(s, tensor, at + 5);
    } else {
        case_literal(s, &at, "=");
        case_values(s, tensor, at, tensor->before);
    }
}

// with plan NAME LANES lanes: UNIT, UNIT, ...: MERGE, MERGE, ...
//
// A unit is its lane, request, head, tile, KV start, KV length, tier, flags and slot (-1: none), a merge its
// lane, request, head, tile, first slot and slot count; both in the order of lanes.
static inline uint32_t *case_plan_part(const case_subject *s, const char **at, uint32_t lane_count,
                                       uint32_t fields, ptowsp_work **out_work,
                                       uint32_t *out_count) {
    uint64_t number_count;
    const int64_t *numbers = case_numbers(s, at, &number_count);
    uint32_t count = (uint32_t)number_count / fields;
    uint32_t *begin = (uint32_t *)case_alloc((lane_count + 1) * sizeof *begin);
    ptowsp_work *work = (ptowsp_work *)case_alloc((count + 1) * sizeof *work);
    case_check(s, "numbers of a plan", 0, number_count % fields, 0);
    for (uint32_t i = 0; i < count; i++, numbers += fields) {
        bool is_merge = fields == 6;
        work[i] =
            ptowsp_work_of(is_merge ? i : (uint32_t)numbers[8], is_merge ? 0 : (uint8_t)numbers[6],
                           is_merge ? 0 : (uint8_t)numbers[7], (uint32_t)numbers[1],
                           (uint32_t)numbers[2], (uint32_t)numbers[4], (uint32_t)numbers[5]);
        work[i].reserved = (uint16_t)numbers[3];
        for (int64_t lane = numbers[0]; lane < lane_count; lane++) {
            begin[lane + 1] = i + 1;
        }
    }
    *out_work = work;
    *out_count = count;
    return begin;
}

static inline void case_bind_plan(const case_subject *s, const char *name, const char **at) {
    ptowsp_attention_plan plan = {.lane_count = (uint32_t)case_number(s, at)};
    case_literal(s, at, "lanes:");
    plan.unit_begin = case_plan_part(s, at, plan.lane_count, 9, &plan.units, &plan.unit_count);
    plan.merge_begin = case_plan_part(s, at, plan.lane_count, 6, &plan.merges, &plan.merge_count);
    plan.unit_capacity = plan.unit_count;
    plan.merge_capacity = plan.merge_count;
    plan.slot_capacity = plan.slot_count = plan.unit_count;
    case_ok(s, name, ptowsp_run_bind_plan(s->run, name, &plan));
}

// with array NAME [TYPE] N ...: of i64, if no type is given. Any byte is a bool.
static inline void case_bind_array(const case_subject *s, const char *name, const char **at) {
    char word[64] = "i64";
    int dtype = PTOWSP_F16;
    uint64_t count;
    *at = case_skip(*at);
    if (isalpha((unsigned char)**at)) {
        case_word(at, word);
    }
    while (dtype < PTOWSP_BOOL && strcmp(ptowsp_dtype_name((ptowsp_dtype)dtype), word) != 0) {
        dtype++;
    }
    if (strcmp(ptowsp_dtype_name((ptowsp_dtype)dtype), word) != 0) {
        CASE_FAIL(s, "%s is no type of elements", word);
    }
    const int64_t *numbers = case_numbers(s, at, &count);
    void *elements = case_alloc((size_t)count * sizeof *numbers);
    const int stored = dtype == PTOWSP_BOOL ? PTOWSP_U8 : dtype;
    case_ok(s, name, ptowsp_convert(elements, (ptowsp_dtype)stored, numbers, PTOWSP_I64, count));
    case_ok(s, name, ptowsp_run_bind_array(s->run, name, (ptowsp_dtype)dtype, elements, count));
}

// The number of a name that is one.
static inline uint64_t case_named_number(const case_subject *s, const char *name) {
    const char *at = name;
    uint64_t number = (uint64_t)case_number(s, &at);
    case_end(s, at);
    return number;
}

// with KIND NAME ...
static inline void case_bind_item(case_subject *s, const char *at) {
    char kind[64], name[64];
    uint64_t count, entries;
    case_word(&at, kind);
    case_word(&at, name);
    if (!strcmp(kind, "tensor")) {
        case_bind_tensor(s, name, at);
        return;
    } else if (!strcmp(kind, "size")) {
        case_ok(s, name, ptowsp_run_bind_size(s->run, name, case_number(s, &at)));
    } else if (!strcmp(kind, "symbol")) {
        uint64_t value = (uint64_t)case_number(s, &at);
        case_ok(s, name, ptowsp_run_bind_symbol(s->run, name, value));
    } else if (!strcmp(kind, "plan")) {
        case_bind_plan(s, name, &at);
    } else if (!strcmp(kind, "tokens")) {
        s->token_limit = case_named_number(s, name);
    } else if (!strcmp(kind, "slot")) {
        uint32_t slot = (uint32_t)case_named_number(s, name);
        case_ok(s, name, ptowsp_run_bind_slot(s->run, slot, (uint64_t)case_number(s, &at)));
    } else if (!strcmp(kind, "array")) {
        case_bind_array(s, name, &at);
    } else if (!strcmp(kind, "lengths")) {
        const int64_t *numbers = case_numbers(s, &at, &count);
        case_ok(s, name, ptowsp_run_bind_lengths(s->run, name, PTOWSP_I64, numbers, count));
    } else if (!strcmp(kind, "csr")) {
        const int64_t *indptr = case_numbers(s, &at, &count);
        const int64_t *indices = case_numbers(s, &at, &entries);
        const ptowsp_csr csr = {PTOWSP_I32, case_narrow(indptr, count),
                                case_narrow(indices, entries), count - 1, entries};
        case_ok(s, name, ptowsp_run_bind_csr(s->run, name, &csr));
    } else {
        CASE_FAIL(s, "nothing is bound with %s", kind);
    }
    case_end(s, at);
}

static inline void case_find_round_end(case_subject *s) {
    s->round_end = s->round;
    while (s->round_end < s->items.count &&
           strcmp(s->items.items[s->round_end].word, "then") != 0) {
        s->round_end++;
    }
}

// All that this round binds, and all that rounds before have bound.
static inline void case_bind(case_subject *s, bool with_data) {
    s->token_limit = 0;
    for (uint32_t t = 0; t < s->tensor_count; t++) {
        case_tensor *tensor = &s->tensors[t];
        tensor->home = t;
        tensor->is_transposed = false;
        memset(tensor->before, 0, (size_t)tensor->count * sizeof(double));
    }
    for (size_t i = 0; i < s->round_end; i++) {
        case_item item;
        if (case_applies(s, &s->items.items[i]) && case_own(s, &s->items.items[i], &item) &&
            !strcmp(item.word, "with")) {
            s->line = item.line;
            case_bind_item(s, item.rest);
        }
    }
    s->line = 0;
    case_bind_data(s, with_data);
}

#endif

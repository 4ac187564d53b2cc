// Reading a module's text: tokens, the words of the grammar, and declarations shared by the rooms
// of the parser.
//
//      module      = "module" name [ "slots" int ] { declaration } { workload }
//      declaration = "mesh" name int { "," name int } [ "by" algorithm ]
//                  | "axis" name ( int | "dynamic" | "ragged" [ dtype ] | "sparse"
//                                | "plan" [ "," "its" ( "merges" | "lanes" ) ] )
//                  | "symbol" name
//                  | "array" name dtype
//                  | "tensor" name dtype "[" [ size { "," size } ] "]" location [ "transient" ]
//                    [ "spread" spread { "," spread } ]
//                  | "kernel" name "(" "axes" int { "," parameter } ")" unit [ time ] [ source ]
//                    with the body of a tile kernel below (kernel/body_text.h)
//                  | "kernel" name "(" "axes" int { "," parameter } ")" "link" "," collective
//                  | "rule" name name
//      spread      = name ( "dim" int | "sum" | "max" )
//      size        = int | "?" | expr, of a transient tensor
//      parameter   = ( "in" | "out" | "inout" ) name dtype size "x" size
//                  | name type
//      time        = "," ( int ( "cycles" | "instructions" )
//                        | "cycles" "by" "a" "cost" "function" )
//      source      = "," ( "time" "only" | "a" "PTO" "-" "ISA" "source" )
//      workload    = "workload" name [ "(" name type { "," name type } ")" ]
//                    with its statements below, each level two spaces further right
//      statement   = word parts, by the table of statements (PWSP_STATEMENTS, workload/module.h)
//                  | "channel" name "depth" ( int | expr ) "latency" ( int | expr )
//                  | "event" name
//      task        = name exprs { name "=" view } { name "=" expr } { "tag" name "=" expr }
//      process     = name [ "replicas" name "in" axis ] [ "consumes" names ] [ "produces" names ]
//      axis        = [ ( "merges" | "lanes" ) "of" ] name [ "[" expr "]" ]
//      exprs       = "(" [ expr { "," expr } ] ")"
//      pair        = "(" expr "," expr ")"
//      view        = name [ "[" expr { "," expr } "]" ] [ "at" pair ] [ "up" "to" expr "rows" ]
//                    [ "up" "to" expr "columns" ] [ "of" extent "x" extent ]
//      extent      = int | "edge"
//      after       = [ "after" node { "," node } ] [ "as" node ]
//      node        = "node" int
//      expr        = operators, casts, min, max and ?: as in C, over
//                    int | int "u" | "true" | "false" | name | name "[" expr "]" | "entry" "(" name ")"
//                  | "size" "(" axis ")" | ( "slot_u64" | "slot_i64" | "slot_bool" ) "[" int "]"
//      name        = word | quote { printable ASCII } quote; of a field of a plan that is in quotes, the
//                    last part is a word after it: "my plan".slot
//
// A saved program continues with "program" name, its first workload, and "schedule", with
// directives below (parse_schedule.c), indented by two spaces. Their keys may also read
//
//      "task." name | "task.args" "[" int "]" | "task.tag" "(" name ")"
//
// One declaration or statement stands on each line. "#" begins a comment. The parser goes from left
// to right once, builds by the public functions alone, and stops at the first error, which is the
// text's or the builder's, with the line and the column that it was at. Scopes are a stack of fixed
// size; only expressions recurse, and how deep is counted.

#ifndef PWSP_PARSE_H
#define PWSP_PARSE_H

#define PWSP_BYTE_ORDER_MARK "\xef\xbb\xbf"  // of UTF-8

#include "../workload/module.h"

// The nesting limit of expressions, counting each parenthesis and prefix operator: the builder's
// deepest expression prints with two per level.
#define PWSP_PARSE_DEPTH_MAX (2 * PTOWSP_EXPR_DEPTH_MAX + 8)

typedef enum pwsp_parse_token {
    PWSP_TOKEN_LINE_END,  // also the end of the text
    PWSP_TOKEN_WORD,
    PWSP_TOKEN_NAME,    // in quotes
    PWSP_TOKEN_NUMBER,  // without a suffix
    PWSP_TOKEN_UNSIGNED,
    PWSP_TOKEN_REAL,  // in bodies alone
    PWSP_TOKEN_SIGN
} pwsp_parse_token;

// A variable that is open, innermost first.
typedef struct pwsp_parse_variable {
    struct pwsp_parse_variable *next;
    const char *name;
    ptowsp_expr expr;
} pwsp_parse_variable;

// Nodes of a module, or values of a body, by the numbers that the text has for them, which ascend.
typedef struct pwsp_parse_labels {
    struct pwsp_parse_label {
        uint64_t label;
        uint32_t id;
    } * items;
    uint64_t count, capacity;
} pwsp_parse_labels;

// The parts of a saved program beside its module.
typedef struct pwsp_parse_saved {
    char workload[PTOWSP_NAME_MAX + 1];
    ptowsp_schedule schedule;
    ptowsp_pool pools[PTOWSP_SCHEDULE_POOL_MAX];  // of the schedule
} pwsp_parse_saved;

typedef struct pwsp_parser {
    ptowsp_module *module;
    const ptowsp_parse_desc *desc;
    pwsp_names attached;      // the first of desc's kernels with each name
    pwsp_parse_saved *saved;  // NULL: the text is a module's
    bool is_in_schedule;
    bool is_in_body;               // of the tile kernel of the line above
    bool is_body_passed;           // there is one, but the kernel is made otherwise
    bool has_reals;                // 0.5 is a token
    struct pwsp_parse_body *body;  // parse_body.c
    pwsp_arena arena;
    const char *text;
    size_t length, at;  // at: the first byte after the token
    size_t line_start;  // of the token's line
    uint64_t line;      // of the token
    uint64_t column;    // of the token
    uint64_t start;     // column of the statement
    pwsp_parse_token token;
    char word[PTOWSP_NAME_MAX + 1];  // of the token: WORD, NAME or SIGN
    uint64_t number;
    uint32_t depth;  // of expressions
    uint32_t scope_count;
    pwsp_parse_variable *scopes[PTOWSP_MODULE_NEST_MAX + 2];  // the variables outside of each
    pwsp_parse_variable *variables;
    pwsp_parse_labels nodes, values;  // values: of the body
    bool is_failed;
    ptowsp_status status;
    char error[PWSP_ERROR_TEXT_MAX];
} pwsp_parser;

// -- tokens ---------------------------------------------------------------------------------------

PWSP_INTERNAL void pwsp_parse_next(pwsp_parser *p);

// Keeps the first error, at a column or at the token; returns false.
PWSP_INTERNAL bool pwsp_parse_fail_at(pwsp_parser *p, uint64_t column, const char *format, ...)
    PWSP_PRINTF(3, 4);
#define pwsp_parse_fail(p, ...) pwsp_parse_fail_at(p, (p)->column, __VA_ARGS__)
PWSP_INTERNAL bool pwsp_parse_no_memory(pwsp_parser *p);

// Is the token this word or sign?
PWSP_INTERNAL bool pwsp_parse_is(const pwsp_parser *p, const char *word);

// Skips this word or sign, if it is there.
PWSP_INTERNAL bool pwsp_parse_try(pwsp_parser *p, const char *word);

// The same, or an error.
PWSP_INTERNAL bool pwsp_parse_expect(pwsp_parser *p, const char *word);

// Makes a function that skips the name of one of the enumerators first to last, and sets *out to it. At
// another word it returns `otherwise`.
#define PWSP_PARSE_ONE_OF(linkage, function, type, name_of, first, last, otherwise)                \
    linkage bool function(pwsp_parser *p, type *out) {                                             \
        for (int i = (int)(first); i <= (int)(last); i++) {                                        \
            if (pwsp_parse_try(p, name_of((type)i))) {                                             \
                *out = (type)i;                                                                    \
                return true;                                                                       \
            }                                                                                      \
        }                                                                                          \
        return otherwise;                                                                          \
    }

// Copies a name of at most PTOWSP_NAME_MAX characters; `what` for the error.
PWSP_INTERNAL bool pwsp_parse_name(pwsp_parser *p, const char *what, char *out_name);

// The same for a name that lives as long as an arena.
PWSP_INTERNAL bool pwsp_parse_kept_name(pwsp_parser *p, pwsp_arena *arena, const char *what,
                                        const char **out_name);

// A number without suffix, at most `max`.
PWSP_INTERNAL bool pwsp_parse_number(pwsp_parser *p, uint64_t max, uint64_t *out_number);

// Is the module still good? Else its error becomes the parser's, at this place.
PWSP_INTERNAL bool pwsp_parse_built(pwsp_parser *p, uint64_t line, uint64_t column);

// The id of a label, or 0. The last label, or 0. Another label.
PWSP_INTERNAL uint32_t pwsp_parse_label_find(const pwsp_parse_labels *labels, uint64_t label);
PWSP_INTERNAL uint64_t pwsp_parse_label_last(const pwsp_parse_labels *labels);
PWSP_INTERNAL bool pwsp_parse_label_add(pwsp_parser *p, pwsp_parse_labels *labels, uint64_t label,
                                        uint32_t id);

// -- parts ----------------------------------------------------------------------------------------

PWSP_INTERNAL bool pwsp_parse_expr(pwsp_parser *p, ptowsp_expr *out_expr);
PWSP_INTERNAL bool pwsp_parse_axis(pwsp_parser *p, ptowsp_axis *out_axis);
PWSP_INTERNAL bool pwsp_parse_type(pwsp_parser *p, ptowsp_type *out_type);
PWSP_INTERNAL bool pwsp_parse_dtype(pwsp_parser *p, ptowsp_dtype *out_dtype);

// The line of a mesh; the spreads of a tensor that was just made; the line of a rule.
PWSP_INTERNAL bool pwsp_parse_mesh(pwsp_parser *p);
PWSP_INTERNAL bool pwsp_parse_spreads(pwsp_parser *p, ptowsp_tensor tensor);
PWSP_INTERNAL bool pwsp_parse_rule(pwsp_parser *p);

// A number of 32 bits.
PWSP_INTERNAL bool pwsp_parse_count(pwsp_parser *p, uint32_t *out_count);

// The rest of the line of a kernel that communicates, after its unit; params come from the text.
PWSP_INTERNAL bool pwsp_parse_algorithm(pwsp_parser *p, ptowsp_algorithm *out_algorithm);
PWSP_INTERNAL bool pwsp_parse_collective(pwsp_parser *p, const ptowsp_kernel_desc *params);

// Does the kernel that was made match its line?
PWSP_INTERNAL bool pwsp_kernel_is_like(const pwsp_kernel_info *kernel,
                                       const ptowsp_kernel_desc *desc);

// The body below a tile kernel's line, which is at the token: its first line, each other line, and
// its end, also after an error.
PWSP_INTERNAL bool pwsp_parse_body_begin(pwsp_parser *p, const ptowsp_kernel_desc *desc);
PWSP_INTERNAL bool pwsp_parse_body_line(pwsp_parser *p);
PWSP_INTERNAL bool pwsp_parse_body_end(pwsp_parser *p);
PWSP_INTERNAL bool pwsp_parse_workload(pwsp_parser *p);
PWSP_INTERNAL bool pwsp_parse_statement(pwsp_parser *p);
PWSP_INTERNAL bool pwsp_parse_directive(pwsp_parser *p, ptowsp_schedule *schedule);

// Makes the module of a text whose first line has this number; with `saved`, a program's.
PWSP_INTERNAL ptowsp_status pwsp_parse_text(ptowsp_context *context, const char *text,
                                            size_t length, uint64_t first_line,
                                            const ptowsp_parse_desc *desc, pwsp_parse_saved *saved,
                                            ptowsp_module **out_module,
                                            ptowsp_text_place *out_place);

#endif

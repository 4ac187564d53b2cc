// The body of a tile kernel in the text of a module, below the kernel's line: the operations as
// built, before passes, so that reading repeats the builder's calls.
//
//      machine "910B"
//      %1 = parameter x
//      %2 = parameter y
//      %3 = const 0
//      %4 = size %1, cols
//      %5 = loop %3, %4, 128
//        %6 = slice %1 at (0, %5) : f32 64 x 128
//        %7 = exp %6 : f32 64 x 128
//        store %2, %7 at (0, %5)
//
//      body      = [ "machine" name [ machine ] [ "," "fused" ] ] { operation }
//      machine   = "of" ( "a2a3" | "a5" ) "," int "MHz" "," "memories" 7 ints "," "rates" 12 ints
//      operation = [ value "=" ] word parts          by the table of operations, PWSP_KOPS
//      value     = "%" int                           ascending
//      number    = [ "-" ] ( decimal | "inf" | "nan" [ "(" its bits as int ")" ] )
//      type      = ( dtype | "mask" ) [ ( int | "?" ) "x" ( int | "?" ) ]
//      at        = "at" "(" ( int | value ) "," ( int | value ) ")"
//      alloc     = memory layout [ "like" value ]    "?" in its type: as many as fit
//      instruction = name "(" values ")" "(" values ")" [ "tmp" value ] [ "scalar" value ]
//                    [ "at" "(" int "," int ")" ] [ "mode" int ]
//
// Values are numbered by operation index when written, and are labels when read. A loop ends where
// the indentation ends. A type carries what the operation needs (cvt, full, slice, ...) and is
// compared with the result's; elsewhere it may be omitted.
//
// Texts of modules are cut into words above (text/lexer.c): a line comes as an array of these.

#ifndef PWSP_BODY_TEXT_H
#define PWSP_BODY_TEXT_H

#include "../base/text.h"
#include "body.h"

#define PWSP_BODY_IS_READ 1  // in absent.h it is 0

typedef enum pwsp_word_kind {
    PWSP_WORD_END = 0,  // after the last one
    PWSP_WORD_NAME,     // also in quotes
    PWSP_WORD_QUOTED,   // a name that is not a word of the grammar
    PWSP_WORD_INT,
    PWSP_WORD_REAL,
    PWSP_WORD_SIGN
} pwsp_word_kind;

// A piece of the text, not terminated.
typedef struct pwsp_word {
    pwsp_word_kind kind;
    uint32_t length;
    const char *text;
    uint64_t number;  // INT
    uint64_t column;  // from 1
} pwsp_word;

#define PWSP_LINE_WORD_MAX 64

// Writes the body of a finished kernel, with two spaces before each line.
PWSP_INTERNAL void pwsp_body_write(const ptowsp_body *body, ptowsp_text text);

// -- reading --------------------------------------------------------------------------------------

typedef struct pwsp_body_label {
    uint64_t label;
    uint32_t value;
} pwsp_body_label;

// All zero except body and head; head has the parameters of the kernel's line.
typedef struct pwsp_body_reader {
    ptowsp_body *body;
    ptowsp_kernel_desc head;
    uint32_t depth;           // of the loops that are open
    pwsp_body_label *labels;  // ascending
    uint64_t label_count, label_capacity;
    const pwsp_word *at;  // the next word
    uint64_t column;      // of the error
    ptowsp_status status;
    char error[PWSP_ERROR_TEXT_MAX];
} pwsp_body_reader;

// Reads a line that is `depth` loops further right than the first. `words` end with one of END.
// False with an error.
PWSP_INTERNAL bool pwsp_body_read(pwsp_body_reader *r, uint32_t depth, const pwsp_word *words);

// Ends the loops that are open.
PWSP_INTERNAL void pwsp_body_read_end(pwsp_body_reader *r);

PWSP_INTERNAL void pwsp_body_reader_free(pwsp_body_reader *r);

// The words of memories and layouts; NULL after the last.
PWSP_INTERNAL const char *pwsp_memory_word(uint32_t memory);
PWSP_INTERNAL const char *pwsp_layout_word(uint32_t layout);

#endif

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
// the indentation ends. A type carries the operation's parameters (cvt, full, slice, ...) and is
// compared with the result's; elsewhere it may be omitted.

#ifndef PWSP_BODY_TEXT_H
#define PWSP_BODY_TEXT_H

#include "../base/text.h"
#include "body.h"

#define PWSP_BODY_IS_READ 1  // in absent.h it is 0

// Writes the body of a finished kernel, with two spaces before each line.
PWSP_INTERNAL void pwsp_body_write(const ptowsp_body *body, ptowsp_output text);

// The words of memories and layouts; NULL after the last.
PWSP_INTERNAL const char *pwsp_memory_word(uint32_t memory);
PWSP_INTERNAL const char *pwsp_layout_word(uint32_t layout);

#endif

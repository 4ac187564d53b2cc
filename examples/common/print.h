// Numbers and texts as the examples print them.

#ifndef PRINT_H
#define PRINT_H

#include <stdint.h>
#include <stdio.h>

// 1234567 as "1,234,567", and a number with so many digits after the point. Both are in one of a few
// buffers that take turns: valid until the eighth call after this one.
const char *print_grouped(uint64_t value);
const char *print_fixed(double value, int digits);

// A text as a JSON string, with its quotes; and as the text of XML or HTML, also in an attribute.
// Bytes that are no UTF-8 are question marks, in XML also control characters, which it has not.
void print_json(FILE *to, const char *text);
void print_xml(FILE *to, const char *text);

#endif

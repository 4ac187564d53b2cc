// Results of instructions that are worked out on paper: see isa_values.txt.

#include "isa_text.h"

RULE_TEST(values__are_those_of_paper) {
    operand_lines("tests/isa/isa_values.txt", 100, text_line, b);
}

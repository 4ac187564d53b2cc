// Results of instructions that are worked out on paper: see isa_values.txt.

#include "isa_text.h"

static void value_line(char *line, const char *result, void *user) {
    assert_non_null(result);
    text_line(line, result, user);
}

RULE_TEST(values__are_those_of_paper) {
    operand_lines("tests/isa/isa_values.txt", 100, value_line, b);
}

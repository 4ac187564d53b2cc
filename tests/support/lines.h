// Text files of lines. cmocka is included before this.

#ifndef LINES_H
#define LINES_H

#include <stdio.h>
#include <string.h>

enum { LINES_MAX = 2000 };

// Calls fn with each line that is not empty, without the blanks before it and a comment: `# ...`, behind two blanks
// or alone. `number` is the line's.
static inline void lines_each(const char *path, void (*fn)(char *line, int number, void *user),
                              void *user) {
    char text[LINES_MAX];
    FILE *file = fopen(path, "r");
    if (!file) {
        fail_msg("cannot open %s", path);
    }
    for (int number = 1; fgets(text, sizeof text, file); number++) {
        char *at = text + strspn(text, " "), *comment = *at == '#' ? at : strstr(text, "  # ");
        assert_non_null(strchr(text, '\n'));  // it has been read to its end
        *(comment ? comment : text + strcspn(text, "\n")) = 0;
        if (*at) {
            fn(at, number, user);
        }
    }
    fclose(file);
}

#endif

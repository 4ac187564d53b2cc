// Runs a fuzz target on files, for compilers without a fuzzer, and a fault as any test's. Each file is
// run whole, and once more without its second half; arguments are files.

#include "bytes.h"

static uint8_t data[1 << 16];

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (!file) {
            perror(argv[i]);
            return 1;
        }
        size_t size = fread(data, 1, sizeof data, file);
        fclose(file);
        fprintf(stderr, "%s\n", argv[i]);
        LLVMFuzzerTestOneInput(data, size);
        LLVMFuzzerTestOneInput(data, size / 2);
    }
    printf("%d inputs\n", argc - 1);
    return 0;
}

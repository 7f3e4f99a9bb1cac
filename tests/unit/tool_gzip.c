/* tool_gzip OUT RAW: gzip members of many sizes and kinds in OUT, the same bytes as they are in
 * RAW. Ends with 3 where zlib is missing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/base/realdl.h"
#include "shim/out/gzip.h"

enum { MOST = 2 << 20 };

int main(int argc, char **argv)
{
    static const size_t sizes[] = {0, 1, 17, 1000, 65535, 65536, 1000000, MOST};
    if (argc != 3 || !cs_realdl_init()) return 2;
    if (!cs_gzip_init()) return 3;
    FILE *out = fopen(argv[1], "wb"), *raw = fopen(argv[2], "wb");
    unsigned char *data = malloc(MOST);
    unsigned seed = 1;
    for (int kind = 0; kind < 3; kind++) {
        for (size_t i = 0; i < MOST; i++) {
            seed = seed * 1664525 + 1013904223;
            data[i] = (unsigned char)(kind == 0   ? 0x61u
                                      : kind == 1 ? (seed >> 28) + 0x61u
                                                  : seed >> 24); /* one byte, text, noise */
        }
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            size_t bound = cs_gzip_bound(sizes[i]) + i % 2 * 500;
            unsigned char *packed = malloc(bound); /* the address sanitizer watches its end */
            size_t n = cs_gzip_member(packed, bound, data, sizes[i], i % 2 * 500,
                i % 3 ? NULL : "a comment of thirty-two letters.");
            if (!n || n > bound)
                return fprintf(stderr, "%zu bytes of kind %d became %zu, bound %zu\n", sizes[i],
                           kind, n, bound),
                       1;
            fwrite(packed, 1, n, out);
            fwrite(data, 1, sizes[i], raw);
            free(packed);
        }
    }
    unsigned char small[8];
    if (cs_gzip_member(small, sizeof small, data, 1000, 0, NULL))
        return fprintf(stderr, "1000 bytes of noise went into 8\n"), 1;
    free(data);
    return fclose(out) || fclose(raw);
}

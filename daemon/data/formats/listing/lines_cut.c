#include "daemon/data/formats/listing/lines_cut.h"

#include <string.h>

#include "daemon/data/index/indexing.h"

#define WINDOW_BYTES 65536u

uint64_t lines_cut(int fd, uint64_t n_bytes, uint64_t whole) {
        uint8_t window[WINDOW_BYTES];

        while (n_bytes > whole) {
                size_t n = n_bytes - whole < WINDOW_BYTES ? (size_t)(n_bytes - whole) : WINDOW_BYTES;
                const uint8_t *end;

                if (indexing_read_at(fd, window, n, n_bytes - n) < 0)
                        return whole;
                end = memrchr(window, '\n', n);
                if (end)
                        return n_bytes - n + (uint64_t)(end - window) + 1;
                n_bytes -= n;
        }
        return whole;
}

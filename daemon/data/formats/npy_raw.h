/* data/formats/npy_raw.h: raw memory maps, as numpy.memmap() and tofile() write them: rows without a header, which the
 * configuration describes. */
#pragma once

#include "daemon/data/formats/npy_header.h"

struct npy_raw {
        const char *dtype; /* "uint16", or numpy's ">u2" */
        const char
                *shape;  /* "1000,2049", as numpy.memmap() takes it; -1 first: as many rows as there are. NULL: "-1" */
        uint64_t offset; /* of the first row, in bytes */
};

/* The header that a file of n_bytes would have. Returns 0; -EINVAL, -ENOTSUP or -EBADMSG with `why`. */
int npy_raw_header(const struct npy_raw *raw, uint64_t n_bytes, struct npy_header *ret_header, struct why *why);

#include "daemon/data/formats/npy_raw.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_BYTES 10u
#define TEXT_MAX   256u

/* "uint16" -> "<u2"; numpy's own words stay as they are. */
static void describe_type(const char *dtype, char ret_descr[16]) {
        snprintf(ret_descr, 16, "%s", dtype);
        for (uint32_t i = 0; i < DLP_N_DTYPES; i++) {
                const char *name = dlp_dtype_name(i);

                if (name && strcmp(name, dtype) == 0 && i != DLP_DTYPE_BFLOAT16)
                        snprintf(ret_descr, 16, "<%c%zu", name[0], (size_t)dlp_dtype_bytes(i));
        }
}

/* Only what cannot end the quotes that it is put into. */
static bool is_word(const char *text, const char *allowed) {
        return text[0] && strlen(text) < 100 && text[strspn(text, allowed)] == '\0';
}

/* The header's own reader checks type and shape, and computes the rest. `rows`: the shape without the first number,
 * with a comma before each number. */
static int read_as_header(const char *descr, uint64_t n_rows, const char *rows, struct npy_header *ret_header,
                          struct why *why) {
        uint8_t bytes[HEAD_BYTES + TEXT_MAX] = "\x93NUMPY\x01";
        int n = snprintf((char *)bytes + HEAD_BYTES, TEXT_MAX,
                         "{'descr': '%s', 'fortran_order': False, 'shape': (%" PRIu64 "%s,)}", descr, n_rows, rows);

        bytes[8] = (uint8_t)n;
        bytes[9] = (uint8_t)(n >> 8);
        return npy_header_read(bytes, HEAD_BYTES + (size_t)n, false, ret_header, why);
}

static int refuse_rest(uint64_t n_bytes, uint64_t n_rows, uint64_t row_bytes, const char *rows, struct why *why) {
        return why_set(why, -EINVAL,
                       "has %" PRIu64 " bytes after the offset, which are %" PRIu64 " rows of %" PRIu64
                       " bytes and %" PRIu64
                       " bytes more: if the rest is to be left out, say so with shape = \"%" PRIu64 "%s\"",
                       n_bytes, n_rows, row_bytes, n_bytes % row_bytes, n_rows, rows);
}

int npy_raw_header(const struct npy_raw *raw, uint64_t n_bytes, struct npy_header *ret_header, struct why *why) {
        const char *shape = raw->shape ? raw->shape : "-1", *rows = strchr(shape, ',');
        bool is_all = strncmp(shape, "-1", 2) == 0 && (shape[2] == ',' || shape[2] == '\0');
        uint64_t n_rows = is_all ? 1 : strtoull(shape, NULL, 10), n_left;
        struct npy_header header;
        char descr[16];
        int r;

        rows = rows ? rows : "";
        describe_type(raw->dtype, descr);
        if (!is_word(raw->dtype, "<>|=ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") ||
            strlen(raw->dtype) >= sizeof(descr))
                return why_set(why, -EINVAL, "dtype = \"%s\" is not a type, such as \"uint16\" or \">f4\"", raw->dtype);
        if (!is_word(is_all ? shape + 1 : shape, "0123456789, ") || shape[0] == ',')
                return why_set(why, -EINVAL,
                               "shape = \"%s\" is not the number of rows (-1: all that there are) and the shape of a "
                               "row, such as \"-1,2049\"",
                               shape);
        if (raw->offset > n_bytes)
                return why_set(why, -EINVAL, "offset is %" PRIu64 ", the file has %" PRIu64 " bytes", raw->offset,
                               n_bytes);
        n_left = n_bytes - raw->offset;
        r = read_as_header(descr, n_rows, rows, &header, why);
        if (r == 0 && is_all) {
                n_rows = n_left / header.row_bytes;
                if (n_left % header.row_bytes != 0)
                        return refuse_rest(n_left, n_rows, header.row_bytes, rows, why);
                r = read_as_header(descr, n_rows, rows, &header, why);
        }
        if (r < 0)
                return r;
        if (n_rows > n_left / header.row_bytes)
                return why_set(why, -EBADMSG,
                               "has %" PRIu64 " bytes after the offset; %" PRIu64 " rows of %" PRIu64
                               " bytes are more: it was cut, or the shape is another one",
                               n_left, n_rows, header.row_bytes);
        if (n_rows == 0)
                return why_set(why, -EINVAL, "has no row");
        header.data = raw->offset;
        header.end = raw->offset + n_rows * header.row_bytes;
        *ret_header = header;
        return 0;
}

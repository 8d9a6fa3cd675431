/* data/formats/parquet/pages/encoded.h: the values of a page that are neither plain nor indices: as differences, with what they
 * share with the value before them, or with their bytes dealt out to streams. */
#pragma once

#include "daemon/data/formats/parquet/pages/delta.h"
#include "daemon/data/formats/parquet/pages/parquet_page.h"
#include "daemon/data/growing.h"

struct parquet_encoded {
        int64_t encoding;
        uint32_t width;                /* bytes of a value; 0: it varies */
        struct parquet_delta numbers;  /* the values, or their lengths */
        struct parquet_delta prefixes; /* bytes that a value shares with the one before */
        const uint8_t *at, *end;       /* bytes that are left of texts, or all streams */
        uint64_t idx, n;               /* of streams: the next value, and how many there are */
        struct growing value;          /* the one that was read last */
};

/* Can values of this type have this encoding? */
bool parquet_encoded_is_known(int64_t encoding, const struct parquet_element *element);

/* Begins with the values of a page of n_values, which have to stay in memory. Returns 0; -EBADMSG if they are damaged;
 * or -ECANCELED once the index is not wanted any more: to find where the lengths end, it goes through all of them. */
int parquet_encoded_begin(struct parquet_encoded *encoded, int64_t encoding, const struct parquet_element *element,
                          uint64_t n_values, const uint8_t *bytes, uint64_t n_bytes);

/* The next value, which is valid until the next call. Returns 0; -EBADMSG if there is none, or it is damaged; -EFBIG or
 * -ENOMEM. */
int parquet_encoded_next(struct parquet_encoded *encoded, const uint8_t **ret_bytes, uint64_t *ret_n);

/* Takes a struct of zeroes. */
void parquet_encoded_fini(struct parquet_encoded *encoded);

/* data/formats/parquet/pages/values.h: the values of a page, one after the other, in any encoding. Private to parquet_reader.c. */
#pragma once

#include "daemon/data/formats/parquet/pages/parquet_reader.h"

/* -EBADMSG with `why`, which says what is wrong with a page. */
int parquet_page_damaged(const char *what, struct why *why);

/* Takes n bytes of a page. Returns false if it has fewer. */
bool parquet_take(struct parquet_page_bytes *from, uint64_t n, struct columnar_value *ret_value);

/* Reads the page at reader->at, which is the dictionary of the chunk. Errors as of parquet_reader_next(). */
int parquet_values_dictionary(struct parquet_reader *reader, const struct parquet_page_header *header, struct why *why);

/* Begins with the bytes that follow the levels of a page with the encoding reader->encoding. */
int parquet_values_begin(struct parquet_reader *reader, uint64_t n_values, const struct parquet_page_bytes *bytes,
                         struct why *why);

/* The next value. */
int parquet_values_next(struct parquet_reader *reader, struct columnar_value *ret_value, struct why *why);

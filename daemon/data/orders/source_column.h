/* data/orders/source_column.h: a field of a dataset as a column: a number for each sample, or a list of them.
 *
 * What is known without reading a sample: values (labels, numbers of a table), and lengths of fields that vary:
 * elements of an array, bytes of anything else. */
#pragma once

#include "daemon/data/source.h"
#include "proto/order/making/order_text.h"

/* The field that gives this column. -EINVAL with the fields that could. */
int source_column_find(const struct source *source, const struct dlp_column_wish *wish, uint32_t *ret_field,
                       struct why *why);

/* Does the field give lengths, and not numbers? */
bool source_column_counts(const struct source *source, uint32_t field, bool is_lengths);

/* The length of one sample, at most UINT32_MAX. */
uint32_t source_column_length(const struct source *source, uint32_t field, uint64_t sample);

/* Bytes of memory that the column takes. Looks at each sample if a sample has a list. -ECANCELED: nobody wants it any
 * more (base/work/errand.h). */
int source_column_bytes(const struct source *source, uint32_t field, bool is_lengths, uint64_t *ret_bytes);

/* Reads it. What `ret_column` refers to is the caller's (free()); its name is not set. -ENOMEM, -ECANCELED. */
int source_column_read(const struct source *source, uint32_t field, bool is_lengths, struct dlp_column *ret_column);

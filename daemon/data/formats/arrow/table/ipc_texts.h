/* data/formats/arrow/table/ipc_texts.h: lists of texts. The texts of a row lie in two places of the file, where they end and what
 * they are, so they are copied into the index. */
#pragma once

#include "daemon/data/formats/arrow/table/cells.h"
#include "daemon/data/formats/text_list.h"

/* Is the field a list of text, of any kind of list and of text? */
bool arrow_has_texts(const struct arrow_schema *schema, uint32_t idx_field);

/* Adds the texts of row `row` of the batch to `list`. `elements` is the row's cell of arrow_lists(). Returns 0;
 * -EBADMSG; -ENOTSUP if one of the texts is null; -EFBIG if it is too long; -ENOMEM; or an errno of reading; with
 * `why`, which names the row, but not the column. Blocks for reading. */
int arrow_texts(const struct arrow_rows *rows, uint32_t idx_field, uint64_t row, const struct arrow_cell *elements,
                struct text_list *list, struct why *why);

/* data/formats/text_list.h: puts a list of texts together, as the value of a column (FIELD_TEXTS). */
#pragma once

#include "daemon/data/growing.h"
#include "daemon/data/index/index_builder.h"

#define TEXT_LIST_MAX (256ull << 20) /* bytes of one list: a few bytes of a file may stand for any number of texts */

/* Zeroes: an empty list. */
struct text_list {
        struct growing ends, bytes, value;
        uint64_t max_bytes; /* 0, or the most that it may have: TEXT_LIST_MAX at most */
};

/* Takes all texts out; keeps the memory. */
void text_list_clear(struct text_list *list);

/* Adds a text. Returns 0; -EFBIG above max_bytes; -ENOMEM; with `why`, which does not name the column. */
int text_list_add(struct text_list *list, const void *text, uint64_t n_bytes, struct why *why);

/* The bytes that the list takes in an index. */
uint64_t text_list_bytes(const struct text_list *list);

/* Sets it as the value of a column for the sample that is added next. Returns 0; -EBADMSG if a text is not UTF-8;
 * -E2BIG; -ENOMEM; with `why`, which does not name the column. */
int text_list_set(struct text_list *list, struct index_builder *builder, uint32_t idx_column, struct why *why);

/* Takes zeroes. */
void text_list_fini(struct text_list *list);

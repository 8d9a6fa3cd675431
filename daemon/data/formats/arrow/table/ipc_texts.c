#include "daemon/data/formats/arrow/table/ipc_texts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "proto/base/cleanup.h"

#define TEXTS_AT_ONCE 512u

bool arrow_has_texts(const struct arrow_schema *schema, uint32_t idx_field) {
        const struct arrow_field *list = arrow_schema_field(schema, idx_field), *text = list + 1;

        return (list->kind == ARROW_LIST || list->kind == ARROW_LIST_VIEW || list->kind == ARROW_FIXED_LIST) &&
               !list->has_dictionary && (text->kind == ARROW_BYTES || text->kind == ARROW_BYTES_VIEW) && text->is_text;
}

/* Texts that lie one after the other, as most do, are read together. Returns how many. */
static uint32_t find_run(const struct arrow_cell *texts, uint32_t n, uint64_t *ret_n_bytes) {
        uint32_t n_run = 1;

        *ret_n_bytes = texts[0].n_bytes;
        for (; n_run < n && texts[n_run].n_bytes <= TEXT_LIST_MAX; n_run++) {
                const struct arrow_cell *next = &texts[n_run];

                if (texts[0].plain ? next->plain != texts[0].plain + *ret_n_bytes
                                   : next->plain || next->offset != texts[0].offset + *ret_n_bytes)
                        break;
                *ret_n_bytes += next->n_bytes;
        }
        return n_run;
}

static int add_run(const struct arrow_rows *rows, const struct arrow_cell *texts, uint32_t n, uint64_t n_bytes,
                   struct text_list *list, struct why *why) {
        const struct arrow_cell run = { .offset = texts[0].offset, .n_bytes = n_bytes };
        _cleanup_(growing_fini) struct growing read = { 0 };
        const uint8_t *at = texts[0].plain;
        int r = 0;

        if (n_bytes > TEXT_LIST_MAX)
                return why_set(why, -EFBIG, "a text has more than %llu MiB", TEXT_LIST_MAX >> 20);
        if (!at) {
                if (growing_reserve(&read, n_bytes + 1) < 0)
                        return why_set(why, -ENOMEM, "no memory for its texts");
                r = arrow_cell_read(&run, rows->fd, read.bytes);
                if (r < 0)
                        return why_errno(why, r, "its texts cannot be read");
                at = read.bytes;
        }
        for (uint32_t i = 0; i < n && r == 0; i++) {
                r = text_list_add(list, at, texts[i].n_bytes, why);
                at += texts[i].n_bytes;
        }
        return r;
}

static int add_texts(const struct arrow_rows *rows, const struct arrow_cell *texts, uint32_t n, struct text_list *list,
                     struct why *why) {
        uint64_t n_bytes;
        uint32_t n_run;
        int r = 0;

        for (uint32_t i = 0; i < n; i++)
                if (texts[i].offset == ARROW_CELL_NULL)
                        return why_set(why, -ENOTSUP,
                                       "its list has a text without a value (null); replace it by an empty text");
        for (uint32_t i = 0; i < n && r == 0; i += n_run) {
                n_run = find_run(texts + i, n - i, &n_bytes);
                r = add_run(rows, texts + i, n_run, n_bytes, list, why);
        }
        return r;
}

int arrow_texts(const struct arrow_rows *rows, uint32_t idx_field, uint64_t row, const struct arrow_cell *elements,
                struct text_list *list, struct why *why) {
        struct arrow_rows inner = *rows;
        struct arrow_cell texts[TEXTS_AT_ONCE];
        struct columnar_widths unused;
        struct why detail;
        int r = 0;

        for (uint64_t at = 0; at < elements->n_bytes && r == 0; at += inner.n) {
                uint64_t n = elements->n_bytes - at;

                inner.first = elements->offset + at;
                inner.n = n < TEXTS_AT_ONCE ? (uint32_t)n : TEXTS_AT_ONCE;
                r = arrow_cells(&inner, idx_field + 1, &unused, texts, &detail);
                if (r == -EBADMSG) /* it counts the texts of the whole batch as rows */
                        why_set(&detail, r, "its texts lie outside their buffer; write the file again");
                if (r == 0)
                        r = add_texts(&inner, texts, inner.n, list, &detail);
        }
        return r < 0 ? why_set(why, r, "row %" PRIu64 " of the batch: %s", row, detail.text) : 0;
}

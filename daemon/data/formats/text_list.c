#include "daemon/data/formats/text_list.h"

#include <errno.h>
#include <inttypes.h>

#include "daemon/data/formats/table_columns.h"
#include "proto/base/utf8.h"

void text_list_clear(struct text_list *list) {
        growing_clear(&list->ends);
        growing_clear(&list->bytes);
}

void text_list_fini(struct text_list *list) {
        growing_fini(&list->ends);
        growing_fini(&list->bytes);
        growing_fini(&list->value);
}

uint64_t text_list_bytes(const struct text_list *list) {
        return sizeof(uint64_t) + list->ends.n_bytes + list->bytes.n_bytes;
}

int text_list_add(struct text_list *list, const void *text, uint64_t n_bytes, struct why *why) {
        uint64_t max = list->max_bytes > 0 && list->max_bytes < TEXT_LIST_MAX ? list->max_bytes : TEXT_LIST_MAX, end;
        int r;

        if (n_bytes > max || text_list_bytes(list) + n_bytes > max)
                return why_set(why, -EFBIG, "its list of texts has more than %" PRIu64 " MiB; split it", max >> 20);
        r = n_bytes > 0 ? growing_append(&list->bytes, text, n_bytes) : 0;
        end = list->bytes.n_bytes;
        if (r == 0)
                r = growing_append(&list->ends, &end, sizeof(end));
        return r < 0 ? why_set(why, r, "no memory for a list of texts") : 0;
}

static int text_list_check(const struct text_list *list, struct why *why) {
        const uint64_t *ends = (const void *)list->ends.bytes;
        uint64_t begin = 0;

        for (uint64_t i = 0; i < list->ends.n_bytes / sizeof(*ends); i++) {
                uint64_t n_bytes = ends[i] - begin;

                if (n_bytes > 0 && utf8_valid(list->bytes.bytes + begin, n_bytes) < n_bytes)
                        return why_set(why, -EBADMSG, "text %" PRIu64 " of its list is not UTF-8: \"%.*s\"", i,
                                       n_bytes < 100 ? (int)n_bytes : 100, (const char *)list->bytes.bytes + begin);
                begin = ends[i];
        }
        return 0;
}

int text_list_set(struct text_list *list, struct index_builder *builder, uint32_t idx_column, struct why *why) {
        uint64_t n = list->ends.n_bytes / sizeof(uint64_t);
        int r = text_list_check(list, why);

        if (r < 0)
                return r;
        growing_clear(&list->value);
        r = growing_append(&list->value, &n, sizeof(n));
        if (r == 0 && n > 0)
                r = growing_append(&list->value, list->ends.bytes, list->ends.n_bytes);
        if (r == 0 && list->bytes.n_bytes > 0)
                r = growing_append(&list->value, list->bytes.bytes, list->bytes.n_bytes);
        if (r == 0)
                r = index_builder_set_value(builder, idx_column, list->value.bytes, list->value.n_bytes);
        return r < 0 ? why_set(why, r, "no memory for a list of texts") : 0;
}

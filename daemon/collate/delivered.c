#include "daemon/collate/delivered.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/collate/padding.h"

uint32_t delivered_n_sizes(const struct field_form *form) {
        uint32_t n = 0;

        for (uint32_t k = 0; form->result.n_bytes > 0 && k < form->result.n_dims; k++)
                n += form->result.shape[k] < 0;
        return n;
}

bool delivered_varies(const struct field_form *form) {
        return delivered_n_sizes(form) > 0;
}

void delivered_shape(const struct field_form *form, const uint64_t *sizes, int64_t *ret_shape) {
        for (uint32_t k = 0; k < form->result.n_dims; k++) {
                ret_shape[k] = form->result.shape[k];
                if (ret_shape[k] >= 0)
                        continue;
                ret_shape[k] = *sizes > INT64_MAX ? -1 : (int64_t)*sizes;
                sizes++;
        }
}

#define SHAPE_TEXT_MAX (FIELD_DIMS_MAX * 24u)

/* "..100:4" */
static void print_declared(const struct field_input *result, char text[SHAPE_TEXT_MAX]) {
        size_t n = 0;

        text[0] = '\0';
        for (uint32_t k = 0; k < result->n_dims; k++)
                n += (size_t)snprintf(text + n, SHAPE_TEXT_MAX - n, "%s%s%lld", k > 0 ? ":" : "",
                                      result->shape[k] < 0 ? ".." : "", (long long)result->most[k]);
}

int delivered_check(const struct field_form *form, const int64_t *shape, struct why *why) {
        const struct field_input *result = &form->result;
        int64_t least = delivered_n_sizes(form) == 1 && form->how != COLLATE_STACK ? 0 : 1;
        char declared[SHAPE_TEXT_MAX];

        for (uint32_t k = 0; k < result->n_dims; k++) {
                if (result->shape[k] >= 0 || (shape[k] >= least && shape[k] <= result->most[k]))
                        continue;
                print_declared(result, declared);
                return why_set(why, -EBADMSG, "dimension %u has %lld elements, and %s[%s] is declared%s", k,
                               (long long)shape[k], dlp_dtype_name(result->dtype), declared,
                               shape[k] == 0 ? ", of which none may be empty here" : "");
        }
        return 0;
}

/* Where only a part of a row's room is real, rows are copied one by one. */
static void delivered_copy_rows(const struct padded_layout *padded, const struct dlp_extent *extent,
                                uint64_t row_stride, uint64_t plane_stride, const uint8_t *from, uint8_t *to) {
        uint64_t n_bytes = extent->n[1] * padded->element_bytes;

        for (uint64_t plane = 0; plane < padded->n_planes; plane++)
                for (uint64_t row = 0; row < extent->n[0]; row++, from += n_bytes)
                        memcpy(to + plane * plane_stride + row * row_stride, from, n_bytes);
}

/* Features, whose last dimensions are padded: a plane of them is `extent` elements. */
static void copy_planes(const struct padded_layout *padded, uint64_t n_elements, uint64_t plane_stride,
                        const uint8_t *from, uint8_t *to) {
        uint64_t n_bytes = n_elements * padded->element_bytes;

        for (uint64_t plane = 0; plane < padded->n_planes && n_bytes > 0; plane++, from += n_bytes)
                memcpy(to + plane * plane_stride, from, n_bytes);
}

void delivered_copy(const struct field_layout *field, const int64_t *shape, const uint8_t *from, uint8_t *to) {
        uint64_t row_stride = padding_row_stride(field), plane_stride = padding_plane_stride(field), n_bytes;
        uint32_t padded_dim = field->form.padded_dim;

        if (row_stride > 0) {
                struct dlp_extent extent = { { (uint64_t)shape[padded_dim], (uint64_t)shape[padded_dim + 1] } };

                delivered_copy_rows(&field->padded, &extent, row_stride, plane_stride, from, to);
                return;
        }
        if (plane_stride > 0) {
                copy_planes(&field->padded, (uint64_t)shape[padded_dim], plane_stride, from, to);
                return;
        }
        n_bytes = field_form_bytes(&field->form, shape);
        if (n_bytes > 0)
                memcpy(to, from, n_bytes);
}

#include "proto/order/grouping/lengths.h"

#include <errno.h>
#include <string.h>

int dlp_lengths_open(struct dlp_making *making, const char *step, const char *name, struct dlp_lengths *ret_lengths) {
        const struct dlp_column *column;
        int r = dlp_making_column(making, step, name, &column);

        if (r == 0)
                *ret_lengths = (struct dlp_lengths){ .column = column, .step = step };
        return r;
}

/* One loop for each type: these passes go over all samples of an epoch, in no sequence that memory likes. A negative
 * number becomes a very large one. */
#define EACH_WHOLE(type)                                                                                               \
        do {                                                                                                           \
                const type *values = column->values;                                                                   \
                for (uint64_t i = 0; i < n; i++) {                                                                     \
                        uint64_t value = (uint64_t)(int64_t)values[dlp_order_sample(order, first + i)];                \
                                                                                                                       \
                        is_bad |= value > UINT32_MAX;                                                                  \
                        ret_lengths[i] = (uint32_t)value;                                                              \
                }                                                                                                      \
        } while (0)

static bool real_length(double value, uint32_t *ret_length) {
        if (!(value >= 0 && value <= UINT32_MAX) || (double)(uint32_t)value != value)
                return false;
        *ret_length = (uint32_t)value;
        return true;
}

/* False: one of them cannot be a length. */
static bool lengths_take(const struct dlp_column *column, const struct dlp_order *order, uint64_t first, uint64_t n,
                         uint32_t *ret_lengths) {
        bool is_bad = false;

        switch (column->dtype) {
        case DLP_DTYPE_BOOL:
        case DLP_DTYPE_UINT8:
                EACH_WHOLE(uint8_t);
                break;
        case DLP_DTYPE_INT8:
                EACH_WHOLE(int8_t);
                break;
        case DLP_DTYPE_UINT16:
                EACH_WHOLE(uint16_t);
                break;
        case DLP_DTYPE_INT16:
                EACH_WHOLE(int16_t);
                break;
        case DLP_DTYPE_UINT32:
                EACH_WHOLE(uint32_t);
                break;
        case DLP_DTYPE_INT32:
                EACH_WHOLE(int32_t);
                break;
        case DLP_DTYPE_UINT64:
                EACH_WHOLE(uint64_t);
                break;
        case DLP_DTYPE_INT64:
                EACH_WHOLE(int64_t);
                break;
        default:
                for (uint64_t i = 0; i < n; i++)
                        is_bad |= !real_length(dlp_column_real(column, dlp_order_sample(order, first + i)),
                                               &ret_lengths[i]);
                break;
        }
        return !is_bad;
}

static int lengths_refuse(const struct dlp_making *making, const struct dlp_lengths *lengths,
                          const struct dlp_order *order, uint64_t first) {
        const struct dlp_column *column = lengths->column;
        uint32_t length;

        while (lengths_take(column, order, first, 1, &length)) /* ends: one of them is bad */
                first++;
        first = dlp_order_sample(order, first);
        if (dlp_column_is_whole(column))
                return why_set(making->why, -EINVAL,
                               "%s: sample %llu has the length %lld in \"%s\"; allowed are 0 to %u", lengths->step,
                               (unsigned long long)first, (long long)dlp_column_whole(column, first), column->name,
                               UINT32_MAX);
        return why_set(making->why, -EINVAL,
                       "%s: sample %llu has the length %.17g in \"%s\"; allowed are whole numbers from 0 to %u",
                       lengths->step, (unsigned long long)first, dlp_column_real(column, first), column->name,
                       UINT32_MAX);
}

int dlp_lengths_take(const struct dlp_making *making, const struct dlp_lengths *lengths, const struct dlp_order *order,
                     uint64_t first, uint64_t n, uint32_t *ret_lengths) {
        return lengths_take(lengths->column, order, first, n, ret_lengths)
                       ? 0
                       : lengths_refuse(making, lengths, order, first);
}

/* ---- before there is an order ---------------------------------------------------------------------------------- */

const struct dlp_column *dlp_lengths_of_terms(const struct dlp_making_terms *terms, const char *name) {
        for (uint32_t i = 0; i < terms->n_columns; i++)
                if (strcmp(terms->columns[i].name, name) == 0)
                        return terms->columns[i].ends ? NULL : &terms->columns[i];
        return NULL;
}

void dlp_lengths_visit(const struct dlp_column *column,
                       void (*each)(void *userdata, const uint32_t *lengths, uint64_t n), void *userdata) {
        uint32_t lengths[DLP_LENGTHS_CHUNK];
        int64_t wholes[DLP_LENGTHS_CHUNK];
        double reals[DLP_LENGTHS_CHUNK];

        for (uint64_t i = 0; i < column->n_values; i += DLP_LENGTHS_CHUNK) {
                uint64_t n_left = column->n_values - i, n = n_left < DLP_LENGTHS_CHUNK ? n_left : DLP_LENGTHS_CHUNK;

                if (dlp_column_is_whole(column)) {
                        dlp_column_wholes(column, i, n, wholes);
                        for (uint64_t k = 0; k < n; k++)
                                lengths[k] = (uint64_t)wholes[k] <= UINT32_MAX ? (uint32_t)wholes[k] : 0;
                } else {
                        dlp_column_reals(column, i, n, reals);
                        for (uint64_t k = 0; k < n; k++) {
                                lengths[k] = 0;
                                real_length(reals[k], &lengths[k]);
                        }
                }
                each(userdata, lengths, n);
        }
}

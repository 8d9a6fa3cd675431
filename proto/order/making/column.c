#include "proto/order/making/column.h"

#include <assert.h>

bool dlp_column_takes(uint32_t dtype) {
        switch (dtype) {
        case DLP_DTYPE_BOOL:
        case DLP_DTYPE_UINT8:
        case DLP_DTYPE_INT8:
        case DLP_DTYPE_UINT16:
        case DLP_DTYPE_INT16:
        case DLP_DTYPE_UINT32:
        case DLP_DTYPE_INT32:
        case DLP_DTYPE_UINT64:
        case DLP_DTYPE_INT64:
        case DLP_DTYPE_FLOAT32:
        case DLP_DTYPE_FLOAT64:
                return true;
        default:
                return false;
        }
}

bool dlp_column_is_whole(const struct dlp_column *column) {
        return column->dtype != DLP_DTYPE_FLOAT32 && column->dtype != DLP_DTYPE_FLOAT64;
}

/* One loop for each type, so that compilers make it fast. */
#define EACH(type)                                                                                                     \
        do {                                                                                                           \
                const type *values = (const type *)column->values + i;                                                 \
                for (uint64_t k = 0; k < n; k++)                                                                       \
                        ret_values[k] = (__typeof__(*ret_values))values[k];                                            \
        } while (0)

void dlp_column_reals(const struct dlp_column *column, uint64_t i, uint64_t n, double *ret_values) {
        switch (column->dtype) {
        case DLP_DTYPE_BOOL:
        case DLP_DTYPE_UINT8:
                EACH(uint8_t);
                break;
        case DLP_DTYPE_INT8:
                EACH(int8_t);
                break;
        case DLP_DTYPE_UINT16:
                EACH(uint16_t);
                break;
        case DLP_DTYPE_INT16:
                EACH(int16_t);
                break;
        case DLP_DTYPE_UINT32:
                EACH(uint32_t);
                break;
        case DLP_DTYPE_INT32:
                EACH(int32_t);
                break;
        case DLP_DTYPE_UINT64:
                EACH(uint64_t);
                break;
        case DLP_DTYPE_INT64:
                EACH(int64_t);
                break;
        case DLP_DTYPE_FLOAT32:
                EACH(float);
                break;
        case DLP_DTYPE_FLOAT64:
                EACH(double);
                break;
        default:
                assert(!"a column of this dtype");
        }
}

static void unsigned_wholes(const struct dlp_column *column, uint64_t i, uint64_t n, int64_t *ret_values) {
        const uint64_t *values = (const uint64_t *)column->values + i;

        for (uint64_t k = 0; k < n; k++)
                ret_values[k] = values[k] > INT64_MAX ? INT64_MAX : (int64_t)values[k];
}

void dlp_column_wholes(const struct dlp_column *column, uint64_t i, uint64_t n, int64_t *ret_values) {
        switch (column->dtype) {
        case DLP_DTYPE_BOOL:
        case DLP_DTYPE_UINT8:
                EACH(uint8_t);
                break;
        case DLP_DTYPE_INT8:
                EACH(int8_t);
                break;
        case DLP_DTYPE_UINT16:
                EACH(uint16_t);
                break;
        case DLP_DTYPE_INT16:
                EACH(int16_t);
                break;
        case DLP_DTYPE_UINT32:
                EACH(uint32_t);
                break;
        case DLP_DTYPE_INT32:
                EACH(int32_t);
                break;
        case DLP_DTYPE_UINT64:
                unsigned_wholes(column, i, n, ret_values);
                break;
        case DLP_DTYPE_INT64:
                EACH(int64_t);
                break;
        default:
                assert(!"a column of whole numbers");
        }
}

double dlp_column_real(const struct dlp_column *column, uint64_t i) {
        double value;

        dlp_column_reals(column, i, 1, &value);
        return value;
}

int64_t dlp_column_whole(const struct dlp_column *column, uint64_t i) {
        int64_t value;

        dlp_column_wholes(column, i, 1, &value);
        return value;
}

#include "daemon/data/formats/items/item_array.h"

#include "proto/base/cleanup.h"

#define NO_DTYPE UINT8_MAX

bool item_dtype(enum item_prefix prefix, uint32_t number, uint32_t *ret_dtype) {
        static const uint8_t NUMPY[] = {
                DLP_DTYPE_INT8,    DLP_DTYPE_INT16,  DLP_DTYPE_INT32,  DLP_DTYPE_INT64,   DLP_DTYPE_UINT8,
                DLP_DTYPE_UINT16,  DLP_DTYPE_UINT32, DLP_DTYPE_UINT64, DLP_DTYPE_FLOAT16, DLP_DTYPE_FLOAT32,
                DLP_DTYPE_FLOAT64, NO_DTYPE,         NO_DTYPE,         DLP_DTYPE_BOOL,
        };
        /* Most types of torch have two names, and LitData's list has both. */
        static const uint8_t TENSOR[] = {
                DLP_DTYPE_FLOAT32,  DLP_DTYPE_FLOAT32, DLP_DTYPE_FLOAT64, DLP_DTYPE_FLOAT64, NO_DTYPE,
                NO_DTYPE,           NO_DTYPE,          NO_DTYPE,          DLP_DTYPE_FLOAT16, DLP_DTYPE_FLOAT16,
                DLP_DTYPE_BFLOAT16, DLP_DTYPE_UINT8,   DLP_DTYPE_INT8,    DLP_DTYPE_INT16,   DLP_DTYPE_INT16,
                DLP_DTYPE_INT32,    DLP_DTYPE_INT32,   DLP_DTYPE_INT64,   DLP_DTYPE_INT64,   DLP_DTYPE_BOOL,
                DLP_DTYPE_UINT16,
        };
        static const struct {
                uint8_t number, dtype;
        } MDS[] = {
                { 8, DLP_DTYPE_UINT8 },  { 9, DLP_DTYPE_INT8 },     { 16, DLP_DTYPE_UINT16 },
                { 17, DLP_DTYPE_INT16 }, { 18, DLP_DTYPE_FLOAT16 }, { 32, DLP_DTYPE_UINT32 },
                { 33, DLP_DTYPE_INT32 }, { 34, DLP_DTYPE_FLOAT32 }, { 64, DLP_DTYPE_UINT64 },
                { 65, DLP_DTYPE_INT64 }, { 66, DLP_DTYPE_FLOAT64 },
        };
        uint8_t dtype = NO_DTYPE;

        if (prefix == PREFIX_NUMPY && number < ARRAY_SIZE(NUMPY))
                dtype = NUMPY[number];
        else if (prefix == PREFIX_TENSOR && number < ARRAY_SIZE(TENSOR))
                dtype = TENSOR[number];
        for (size_t i = 0; i < ARRAY_SIZE(MDS) && prefix == PREFIX_MDS_ARRAY; i++)
                if (MDS[i].number == number)
                        dtype = MDS[i].dtype;
        if (dtype == NO_DTYPE)
                return false;
        *ret_dtype = dtype;
        return true;
}

static uint64_t item_array_read_dimension(const uint8_t *at, uint32_t size, bool is_big_endian) {
        uint64_t value = 0;

        for (uint32_t i = 0; i < size; i++)
                value |= (uint64_t)at[is_big_endian ? size - 1 - i : i] << 8 * i;
        return value;
}

static bool read_prefix_in_order(const struct item_column *column, const uint8_t *bytes, size_t n, bool is_big_endian,
                                 struct item_array *array) {
        bool is_lit = column->prefix == PREFIX_NUMPY || column->prefix == PREFIX_TENSOR;
        uint32_t n_type = is_lit ? 4 : column->prefix == PREFIX_MDS_ARRAY ? 1 : 0, size = 4;
        uint64_t at = n_type + (is_lit ? 4 : 1);

        array->dtype = column->field.dtype;
        if (at > n || (n_type > 0 &&
                       !item_dtype(column->prefix, (uint32_t)item_array_read_dimension(bytes, n_type, is_big_endian),
                                   &array->dtype)))
                return false;
        array->n_dims = is_lit ? (uint32_t)item_array_read_dimension(bytes + 4, 4, is_big_endian) : bytes[n_type] >> 2;
        if (!is_lit)
                size = 1u << (bytes[n_type] & 3);
        if (array->n_dims > SCHEMA_DIMS_MAX || at + (uint64_t)array->n_dims * size > n)
                return false;
        for (uint32_t i = 0; i < array->n_dims; i++, at += size)
                array->shape[i] = item_array_read_dimension(bytes + at, size, is_big_endian);
        array->n_prefix = at;
        return true;
}

/* A type and a number of dimensions that are small in one order of bytes are not in the other one. */
bool item_array_read(const struct item_column *column, const uint8_t *bytes, size_t n, struct item_array *array) {
        return (column->prefix == PREFIX_TENSOR && read_prefix_in_order(column, bytes, n, true, array)) ||
               read_prefix_in_order(column, bytes, n, false, array);
}

bool item_array_has_elements(const struct item_array *array, uint64_t n_bytes) {
        uint64_t n = dlp_dtype_bytes(array->dtype);

        for (uint32_t i = 0; i < array->n_dims; i++)
                if (array->shape[i] > INT64_MAX || (array->shape[i] == 0 && i > 0) ||
                    __builtin_mul_overflow(n, array->shape[i], &n))
                        return false;
        return n == n_bytes - array->n_prefix;
}

bool item_array_fits(const struct schema_field *field, const struct item_array *array) {
        if (array->dtype != field->dtype || array->n_dims != field->n_dims)
                return false;
        for (uint32_t i = 0; i < array->n_dims; i++)
                if ((uint64_t)field->shape[i] != array->shape[i] && (i > 0 || field->shape[0] != -1))
                        return false;
        return true;
}

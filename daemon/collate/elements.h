/* collate/elements.h: single elements of whole numbers, as they lie in a tensor. */
#pragma once

#include <stdint.h>

#include "proto/layout.h"

static inline int64_t element_whole(enum dlp_dtype dtype, const uint8_t *bytes) {
        switch (dtype) {
        case DLP_DTYPE_INT8:
                return *(const int8_t *)(const void *)bytes;
        case DLP_DTYPE_INT16:
                return *(const int16_t *)(const void *)bytes;
        case DLP_DTYPE_UINT16:
                return *(const uint16_t *)(const void *)bytes;
        case DLP_DTYPE_INT32:
                return *(const int32_t *)(const void *)bytes;
        case DLP_DTYPE_UINT32:
                return *(const uint32_t *)(const void *)bytes;
        case DLP_DTYPE_INT64:
        case DLP_DTYPE_UINT64:
                return *(const int64_t *)(const void *)bytes;
        default:
                return *bytes;
        }
}

/* The dtype can hold it. */
static inline void element_set_whole(enum dlp_dtype dtype, uint8_t *bytes, uint32_t value) {
        switch (dlp_dtype_bytes(dtype)) {
        case 1:
                *bytes = (uint8_t)value;
                break;
        case 2:
                *(uint16_t *)(void *)bytes = (uint16_t)value;
                break;
        case 4:
                *(uint32_t *)(void *)bytes = value;
                break;
        default:
                *(uint64_t *)(void *)bytes = value;
        }
}

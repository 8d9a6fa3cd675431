#include "proto/layout.h"

#include <errno.h>
#include <stddef.h>

static const struct {
        const char *name;
        uint64_t bytes;
} DTYPES[DLP_N_DTYPES] = {
        [DLP_DTYPE_BYTES] = { "bytes", 1 },     [DLP_DTYPE_UINT8] = { "uint8", 1 },
        [DLP_DTYPE_INT32] = { "int32", 4 },     [DLP_DTYPE_INT64] = { "int64", 8 },
        [DLP_DTYPE_FLOAT16] = { "float16", 2 }, [DLP_DTYPE_BFLOAT16] = { "bfloat16", 2 },
        [DLP_DTYPE_FLOAT32] = { "float32", 4 }, [DLP_DTYPE_FLOAT64] = { "float64", 8 },
        [DLP_DTYPE_BOOL] = { "bool", 1 },       [DLP_DTYPE_INT8] = { "int8", 1 },
        [DLP_DTYPE_INT16] = { "int16", 2 },     [DLP_DTYPE_UINT16] = { "uint16", 2 },
        [DLP_DTYPE_UINT32] = { "uint32", 4 },   [DLP_DTYPE_UINT64] = { "uint64", 8 },
        [DLP_DTYPE_TEXT] = { "text", 1 },       [DLP_DTYPE_TEXTS] = { "texts", 1 },
};

uint64_t dlp_dtype_bytes(uint32_t dtype) {
        return dtype < DLP_N_DTYPES ? DTYPES[dtype].bytes : 0;
}

const char *dlp_dtype_name(uint32_t dtype) {
        return dtype < DLP_N_DTYPES ? DTYPES[dtype].name : NULL;
}

static uint64_t layout_align_up(uint64_t value, uint64_t alignment) {
        return (value + alignment - 1) / alignment * alignment;
}

/* Bytes of one slot's columns: whole cache lines, so that two workers that fill two slots never write to the same
 * line. */
static uint64_t layout_columns_bytes(uint32_t batch_size) {
        return layout_align_up((uint64_t)batch_size * (2 * sizeof(int64_t) + sizeof(int32_t)), DLP_CACHE_LINE);
}

int dlp_layout_make(const struct dlp_geometry *geometry, struct dlp_control *control, uint64_t *ret_control_bytes,
                    uint64_t *ret_payload_bytes) {
        uint64_t n_places = (uint64_t)geometry->n_slots * geometry->batch_size * geometry->n_ragged; /* < 2^6+17+3 */
        uint64_t slot_bytes, payload_bytes, records, columns, places, errors, end;

        if (geometry->slot_bytes > DLP_PAYLOAD_MAX || geometry->n_ragged > DLP_TENSORS_MAX)
                return -EOVERFLOW;
        slot_bytes = layout_align_up(geometry->slot_bytes, DLP_SLOT_ALIGN);
        payload_bytes = DLP_CLIENT_PAGE_BYTES + slot_bytes * geometry->n_slots; /* < 2^42 * 2^6 + ... */
        if (payload_bytes > DLP_PAYLOAD_MAX)
                return -EOVERFLOW;

        records = layout_align_up(sizeof(struct dlp_control), DLP_CACHE_LINE);
        columns = layout_align_up(records + geometry->n_slots * sizeof(struct dlp_slot_record), DLP_CACHE_LINE);
        places = layout_align_up(columns + geometry->n_slots * layout_columns_bytes(geometry->batch_size),
                                 DLP_CACHE_LINE);
        errors = layout_align_up(places + n_places * sizeof(struct dlp_place), DLP_CACHE_LINE);
        end = errors + (uint64_t)geometry->n_slots * DLP_SLOT_ERRORS_MAX * DLP_SLOT_ERROR_BYTES;

        if (control) {
                control->magic = DLP_MAGIC;
                control->layout_version = DLP_LAYOUT_VERSION;
                control->header_bytes = sizeof(struct dlp_control);
                control->control_bytes = layout_align_up(end, 4096);
                control->payload_bytes = payload_bytes;
                control->n_slots = geometry->n_slots;
                control->batch_size = geometry->batch_size;
                control->n_ragged = geometry->n_ragged;
                control->slots_offset = DLP_CLIENT_PAGE_BYTES;
                control->slot_bytes = slot_bytes;
                control->records_offset = records;
                control->columns_offset = columns;
                control->places_offset = n_places ? places : 0;
                control->errors_offset = errors;
        }
        *ret_control_bytes = layout_align_up(end, 4096);
        *ret_payload_bytes = payload_bytes;
        return 0;
}

int dlp_layout_check(const struct dlp_control *control, uint64_t control_bytes, uint64_t payload_bytes) {
        struct dlp_geometry geometry;
        struct dlp_control expected;
        uint64_t expected_control_bytes, expected_payload_bytes;
        int r;

        if (control_bytes < sizeof(*control) || control->magic != DLP_MAGIC)
                return -EPROTO;
        if (control->layout_version != DLP_LAYOUT_VERSION || control->header_bytes != sizeof(*control))
                return -EPROTONOSUPPORT;
        if (control->n_slots < 1 || control->n_slots > DLP_SLOTS_MAX || control->batch_size < 1 ||
            control->batch_size > DLP_BATCH_MAX || control->n_ragged > DLP_TENSORS_MAX || control->reserved != 0)
                return -EPROTO;

        /* A layout version fixes the rest of the layout, so it follows from the geometry: compute it and compare. */
        geometry = (struct dlp_geometry){
                .n_slots = control->n_slots,
                .batch_size = control->batch_size,
                .slot_bytes = control->slot_bytes,
                .n_ragged = control->n_ragged,
        };
        r = dlp_layout_make(&geometry, &expected, &expected_control_bytes, &expected_payload_bytes);
        if (r < 0)
                return -EPROTO;
        if (control->slot_bytes != expected.slot_bytes || control->slots_offset != expected.slots_offset ||
            control->records_offset != expected.records_offset || control->columns_offset != expected.columns_offset ||
            control->places_offset != expected.places_offset || control->errors_offset != expected.errors_offset ||
            control->control_bytes != expected_control_bytes || control->payload_bytes != expected_payload_bytes ||
            control_bytes < expected_control_bytes || payload_bytes < expected_payload_bytes)
                return -EPROTO;
        return 0;
}

/* Both sides read through these functions; the client's mapping is read-only, whatever the type says. */
static void *layout_at(const struct dlp_control *control, uint64_t offset) {
        return (uint8_t *)(uintptr_t)control + offset;
}

struct dlp_slot_record *dlp_slot_record(const struct dlp_control *control, uint32_t idx_slot) {
        return layout_at(control, control->records_offset + idx_slot * sizeof(struct dlp_slot_record));
}

struct dlp_columns dlp_columns(const struct dlp_control *control, uint32_t idx_slot) {
        uint64_t n = control->batch_size;
        uint8_t *begin = layout_at(control,
                                   control->columns_offset + idx_slot * layout_columns_bytes(control->batch_size));

        return (struct dlp_columns){
                .indices = (int64_t *)begin,
                .substitutes = (int64_t *)(begin + n * sizeof(int64_t)),
                .idx_errors = (int32_t *)(begin + 2 * n * sizeof(int64_t)),
        };
}

struct dlp_place *dlp_places(const struct dlp_control *control, uint32_t idx_slot, uint32_t idx_places) {
        uint64_t idx = (uint64_t)idx_slot * control->n_ragged + idx_places;

        if (idx_places >= control->n_ragged)
                return NULL;
        return layout_at(control, control->places_offset + idx * control->batch_size * sizeof(struct dlp_place));
}

char *dlp_error_text(const struct dlp_control *control, uint32_t idx_slot, uint32_t idx_error) {
        return layout_at(control, control->errors_offset + ((uint64_t)idx_slot * DLP_SLOT_ERRORS_MAX + idx_error) *
                                                                   DLP_SLOT_ERROR_BYTES);
}

uint64_t dlp_slot_offset(const struct dlp_control *control, uint32_t idx_slot) {
        return control->slots_offset + idx_slot * control->slot_bytes;
}

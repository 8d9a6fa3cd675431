#include "daemon/codec/cell/described_source.h"

#include <string.h>

#include "daemon/data/source_type.h"

#define NO_FIELD UINT32_MAX

static bool value_bytes(const struct source *source, uint64_t sample, uint32_t field, uint64_t *ret_n_bytes) {
        const struct described_source *described = (const struct described_source *)source;
        bool is_boxes = field == described->idx_boxes;

        (void)sample;
        *ret_n_bytes = is_boxes ? described->n_boxes_bytes : described->n_bytes;
        return (is_boxes ? described->boxes : described->value) != NULL;
}

static void value(const struct source *source, uint64_t sample, uint32_t field, void *ret_value) {
        const struct described_source *described = (const struct described_source *)source;
        uint64_t n_bytes = 0;

        if (value_bytes(source, sample, field, &n_bytes) && n_bytes > 0)
                memcpy(ret_value, field == described->idx_boxes ? described->boxes : described->value, n_bytes);
}

static const struct source_type DESCRIBED = {
        .value_bytes = value_bytes,
        .value = value,
};

void described_source_init(struct described_source *described, const struct schema *schema, uint32_t n_classes) {
        *described = (struct described_source){ .source = { .type = &DESCRIBED,
                                                            .schema = *schema,
                                                            .format = "",
                                                            .digest = "",
                                                            .n_samples = UINT64_MAX,
                                                            .n_classes = n_classes },
                                                .idx_boxes = NO_FIELD };
}

void described_source_set(struct described_source *described, const uint8_t *value, uint64_t n_bytes) {
        described->value = value;
        described->n_bytes = n_bytes;
        described->idx_boxes = NO_FIELD;
}

void described_source_set_boxes(struct described_source *described, uint32_t idx_boxes, const uint8_t *value,
                                uint64_t n_bytes) {
        described->idx_boxes = idx_boxes;
        described->boxes = value;
        described->n_boxes_bytes = n_bytes;
}

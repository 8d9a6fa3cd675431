#include "daemon/data/formats/npy_survey.h"

#include <errno.h>
#include <string.h>

#include "daemon/data/formats/npy_header.h"
#include "daemon/data/index/indexing.h"

/* An array without rows stands for any number of them. */
static int64_t dimension(const struct npy_header *header, uint32_t idx) {
        return idx == 0 && header->shape[0] == 0 ? -1 : (int64_t)header->shape[idx];
}

static void npy_survey_take_first(struct npy_survey *survey, const struct npy_header *header) {
        survey->dtype = header->dtype;
        survey->n_dims = header->n_dims;
        for (uint32_t i = 0; i < header->n_dims; i++)
                survey->shape[i] = dimension(header, i);
}

static void take_other(struct npy_survey *survey, const struct npy_header *header) {
        if (header->dtype != survey->dtype || header->n_dims != survey->n_dims) {
                survey->is_mixed = true;
                return;
        }
        for (uint32_t i = 1; i < header->n_dims; i++)
                survey->is_mixed |= survey->shape[i] != (int64_t)header->shape[i];
        if (header->n_dims > 0 && dimension(header, 0) != survey->shape[0])
                survey->shape[0] = -1;
}

int npy_survey_take(struct npy_survey *survey, int fd, uint64_t offset, uint64_t n_bytes, struct why *why) {
        size_t n = n_bytes < NPY_HEADER_MAX ? (size_t)n_bytes : NPY_HEADER_MAX;
        struct npy_header header;
        uint8_t bytes[NPY_HEADER_MAX];
        struct why detail;
        int r;

        if (survey->is_mixed)
                return 0;
        r = indexing_read_at(fd, bytes, n, offset);
        if (r < 0)
                return why_errno(why, r, "cannot be read");
        r = npy_header_read_value(bytes, n, &header, &detail);
        if (r == -ENOTSUP || (r == 0 && header.n_dims > SCHEMA_DIMS_MAX)) {
                survey->is_mixed = true;
                return 0;
        }
        if (r < 0 || header.end != n_bytes)
                return 0;
        if (survey->n_arrays++ == 0)
                npy_survey_take_first(survey, &header);
        else
                take_other(survey, &header);
        return 0;
}

void npy_survey_add(struct npy_survey *survey, const struct npy_survey *other) {
        survey->is_mixed |= other->is_mixed;
        if (survey->is_mixed || other->n_arrays == 0)
                return;
        if (survey->n_arrays == 0) {
                *survey = *other;
                return;
        }
        survey->n_arrays += other->n_arrays;
        survey->is_mixed = survey->dtype != other->dtype || survey->n_dims != other->n_dims;
        for (uint32_t i = 1; i < survey->n_dims && !survey->is_mixed; i++)
                survey->is_mixed = survey->shape[i] != other->shape[i];
        if (survey->n_dims > 0 && survey->shape[0] != other->shape[0])
                survey->shape[0] = -1;
}

bool npy_survey_describe(const struct npy_survey *survey, struct schema_field *field) {
        if (survey->is_mixed || survey->n_arrays == 0)
                return false;
        field->kind = FIELD_VALUE;
        field->coding = CODING_NPY;
        field->dtype = survey->dtype;
        field->n_dims = survey->n_dims;
        memcpy(field->shape, survey->shape, sizeof(field->shape));
        return true;
}

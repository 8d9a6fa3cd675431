/* codec/program/program_collations.c: which fields of a part are collated as it says, and what comes with them. */
#include "daemon/codec/program/program_body.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* After a function it is for what varies: the others have one shape. */
static bool is_collated(const struct program *program, uint32_t idx, const struct collation *collation,
                        bool has_pictures) {
        if (collation_mixes(collation))
                return true;
        if (program_python(program, idx))
                return python_step_varies(&program->pythons[idx]) || collation_is_stack(collation);
        return !has_pictures || codec_is_picture(program->codecs[idx]) || codec_is_mask(program->codecs[idx]);
}

void collate_part(struct program *program, uint32_t begin, const struct collation *collation) {
        bool has_pictures = false, is_first = true;

        for (uint32_t i = begin; i < program->n_fields; i++)
                has_pictures |= codec_is_picture(program->codecs[i]);
        for (uint32_t i = begin; i < program->n_fields; i++)
                if (is_collated(program, i, collation, has_pictures)) {
                        program->collations[i] = *collation;
                        if (!is_first) /* mask=NAME is that of the first one: a batch has one attention_mask */
                                program->collations[i].pad.mask[0] = '\0';
                        is_first = false;
                }
}

int settle_packing(struct program *program, struct why *why) {
        struct collation *first = NULL;
        uint32_t idx_whole = 0;

        while (idx_whole < program->n_fields && !program->pythons[idx_whole].is_whole)
                idx_whole++;
        for (uint32_t i = 0; i < program->n_fields; i++) {
                struct collation *collation = &program->collations[i];

                if (!collation_is_pack(collation))
                        continue;
                if (idx_whole < program->n_fields)
                        return why_set(why, -EINVAL,
                                       "pipeline, column %zu: the samples of a packed batch lie in rows, several in "
                                       "each, and python(%s, batch=true) gets one row for each sample: let it get "
                                       "single samples, without batch=true",
                                       collation->column, program->pythons[idx_whole].function);
                for (uint32_t k = 0; k < program->n_fields; k++)
                        if (program->plugged[k])
                                return why_set(why, -EINVAL,
                                               "pipeline, column %zu: the samples of a packed batch lie in rows, "
                                               "several in each, and the collation of a plug-in for field %s makes "
                                               "one row of each sample: leave one of them out",
                                               collation->column, codec_name(program->codecs[k]));
                if (!first) {
                        first = collation;
                        first->pack.has_seqlens = true;
                } else if (!collation_packs_alike(first, collation)) {
                        return why_set(why, -EINVAL,
                                       "pipeline, column %zu: pack: all packed fields share their rows; give each the "
                                       "arguments of the first one, except value and labels",
                                       collation->column);
                }
        }
        return 0;
}

static void collations_name_added(const char *field, const char *added, char name[2 * DLP_TENSOR_NAME_MAX]) {
        bool is_whole = added[0] == COLLATION_WHOLE_NAME[0];

        snprintf(name, 2 * DLP_TENSOR_NAME_MAX, "%s%s%s", is_whole ? "" : field, is_whole ? "" : "_", added + is_whole);
}

/* Only a mask can be called as the text wants. */
static int check_masks(const struct program *program, struct why *why) {
        for (uint32_t i = 0; i < program->n_fields; i++)
                for (uint32_t k = 0; k < i; k++)
                        for (unsigned n = 0; n < collation_n_added(&program->collations[k]); n++) {
                                const char *mask = program->collations[i].pad.mask;
                                char name[2 * DLP_TENSOR_NAME_MAX];

                                collations_name_added(codec_name(program->codecs[k]),
                                                      collation_added(&program->collations[k], n), name);
                                if (mask[0] && strcmp(mask + 1, name) == 0)
                                        return why_set(why, -EINVAL,
                                                       "pipeline, column %zu: mask=%s: so is called what comes with "
                                                       "field %s: choose another name",
                                                       program->collations[i].column, name,
                                                       codec_name(program->codecs[k]));
                        }
        return 0;
}

int check_added(const struct program *program, struct why *why) {
        uint32_t n_tensors = program->n_fields;
        char name[2 * DLP_TENSOR_NAME_MAX];

        for (uint32_t i = 0; i < program->n_fields; i++) {
                const char *field = codec_name(program->codecs[i]);

                for (unsigned k = 0; k < collation_n_added(&program->collations[i]); k++) {
                        collations_name_added(field, collation_added(&program->collations[i], k), name);
                        if (strlen(name) >= DLP_TENSOR_NAME_MAX)
                                return refuse_long_name(name, program->collations[i].column, field, why);
                        for (uint32_t other = 0; other < program->n_fields; other++)
                                if (strcmp(codec_name(program->codecs[other]), name) == 0)
                                        return why_set(why, -EINVAL,
                                                       "pipeline, column %zu: %s would come with field %s, and field "
                                                       "%s of the dataset is named as well: rename one of them with "
                                                       "fields= of the dataset",
                                                       program->collations[i].column, name, field, name);
                        n_tensors++;
                }
        }
        if (n_tensors > DLP_TENSORS_MAX)
                return why_set(why, -EINVAL,
                               "pipeline: with masks and labels there are %u fields; a batch has %u at "
                               "most",
                               n_tensors, DLP_TENSORS_MAX);
        return check_masks(program, why);
}

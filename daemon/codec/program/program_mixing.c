/* codec/program/program_mixing.c: the fields of a part whose samples are mixed: pictures, and labels, which become rows of probabilities. */
#include "daemon/codec/program/program_body.h"

#include <errno.h>
#include <string.h>

#include "daemon/augment/recipe.h"
#include "daemon/codec/codec_choose.h"
#include "daemon/codec/labels/one_hot.h"

int new_mixed(struct program *program, const struct source *source, uint32_t idx_field, const struct adding *adding,
              struct codec **codec, struct why *why) {
        const struct schema_field *field = &source->schema.fields[idx_field];
        const struct mix_terms *mix = &adding->collation->mix;
        bool is_label = one_hot_may_be(field);
        int r = codec_read(source, idx_field, adding->group,
                           is_label || is_beside_picture(field, adding->steps) ? NULL : adding->steps, program->named,
                           codec, why);

        if (r < 0 || !is_label)
                return r;
        if (mix->n_classes > 0) {
                one_hot_set(*codec, mix->n_classes, mix->smoothing);
                return 0;
        }
        codec_free(*codec);
        *codec = NULL;
        return why_set(why, -EINVAL,
                       "pipeline, column %zu: the labels in field %s are numbers, and to mix them it has to be known "
                       "how many classes there are: write num_classes=N",
                       adding->collation->column, field->name);
}

static int refuse_cut(const struct collation *collation, uint32_t n_pictures, struct why *why) {
        return why_set(why, -EINVAL,
                       "pipeline, column %zu: a box is cut out of one picture of each sample, and the part names %s: "
                       "name one picture and its label, as in \"image, label: ...\"",
                       collation->column, n_pictures == 0 ? "none" : "several");
}

int check_mixed(struct program *program, uint32_t begin, uint32_t view, const struct collation *collation,
                struct why *why) {
        uint32_t n_pictures = 0, idx_picture = FIELD_NONE, n_labels = 0;
        const struct mix_terms *mix = &collation->mix;

        for (uint32_t i = begin; i < program->n_fields; i++) {
                const struct codec *codec = program->codecs[i];

                if (codec_view(codec) != view)
                        continue;
                if (moves_along(codec))
                        return why_set(why, -EINVAL,
                                       "pipeline, column %zu: field %s moves with its picture, and cannot be mixed as "
                                       "pictures and labels are: name it and the picture without %s",
                                       collation->column, codec_name(codec), collation_name(collation));
                n_labels += one_hot_is(codec);
                n_pictures += codec_is_picture(codec);
                if (codec_is_picture(codec))
                        idx_picture = i;
        }
        if (mix_cuts(mix) > 0 && n_pictures != 1)
                return refuse_cut(collation, n_pictures, why);
        if (mix->n_classes > 0 && n_labels == 0)
                return why_set(why, -EINVAL,
                               "pipeline, column %zu: num_classes=%u is for labels, which are mixed as the pictures "
                               "are, and the part names none: name the label with the picture, as in \"image, label: "
                               "...\"",
                               collation->column, mix->n_classes);
        for (uint32_t i = begin; i < program->n_fields; i++)
                if (codec_view(program->codecs[i]) == view)
                        program->mix_pictures[i] = idx_picture;
        return 0;
}

int find_label(const struct source *source, const struct collation *collation, uint32_t *ret_idx, struct why *why) {
        uint32_t n = 0;

        *ret_idx = source->schema.n_fields;
        if (!collation_mixes(collation))
                return 0;
        for (uint32_t i = 0; i < source->schema.n_fields; i++)
                if (is_value(&source->schema.fields[i]) && one_hot_may_be(&source->schema.fields[i])) {
                        n++;
                        *ret_idx = i;
                }
        return n < 2 ? 0
                     : why_set(why, -EINVAL,
                               "pipeline, column %zu: %s mixes labels as well, and several fields could be the label: "
                               "name the one that is, with the picture, as in \"image, %s: ...\"",
                               collation->column, collation_name(collation), source->schema.fields[*ret_idx].name);
}

int add_label(struct program *program, const struct source *source, uint32_t idx_label, struct adding *adding,
              struct why *why) {
        uint32_t n_views = adding->views.n > 0 ? adding->views.n : 1;
        int r = 0;

        for (adding->view = 0; adding->view < n_views && r == 0; adding->view++) {
                r = add_field(program, source, idx_label, adding, why);
                if (r == 0)
                        program->collations[program->n_fields - 1] = *adding->collation;
        }
        return r;
}

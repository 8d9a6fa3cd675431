/* codec/program/program_views.c: several views of a part's fields, and that no two fields of a batch have one name. */
#include "daemon/codec/program/program_body.h"

#include <errno.h>
#include <string.h>

int check_views(const struct program *program, uint32_t begin, const struct views *views, struct why *why) {
        bool has_pictures = false;

        if (views->n == 0)
                return 0;
        for (uint32_t i = begin; i < program->n_fields; i++)
                has_pictures |= codec_is_picture(program->codecs[i]);
        if (!has_pictures)
                return why_set(why, -EINVAL,
                               "pipeline, column %zu: views are of pictures, and the part of field %s decodes none: "
                               "write views after the steps of a picture, as in \"random_resized_crop(224) hflip(0.5) "
                               "views(%u)\"",
                               views->column, codec_name(program->codecs[begin]), views->n);
        if (codec_drops_boxes(program->codecs[begin]))
                return why_set(
                        why, -EINVAL,
                        "pipeline, column %zu: each view would keep other boxes with sanitize, and which rows "
                        "stay is known for one of them only: leave sanitize out, or open a loader for each view, "
                        "with draws=0, draws=1 and so on",
                        views->column);
        return 0;
}

/* Is there another field with the name that the text gives this one? */
static int check_renamed(const struct program *program, uint32_t idx, const struct source *source, struct why *why) {
        const char *name = codec_name(program->codecs[idx]);

        for (uint32_t other = 0; other < program->n_fields && program->renamed[idx] > 0; other++)
                if (other != idx && strcmp(name, codec_name(program->codecs[other])) == 0)
                        return why_set(why, -EINVAL,
                                       "pipeline, column %zu: field %s would be called %s, and another field is "
                                       "delivered by that name: choose another one",
                                       program->renamed[idx],
                                       source->schema.fields[codec_field(program->codecs[idx])].name, name);
        return 0;
}

int check_view_names(const struct program *program, const struct source *source, struct why *why) {
        for (uint32_t i = 0; i < program->n_fields; i++) {
                const struct codec *codec = program->codecs[i];
                int r = check_renamed(program, i, source, why);

                if (r < 0)
                        return r;
                for (uint32_t other = 0; other < program->n_fields && codec_view(codec) > 0; other++)
                        if (other != i && strcmp(codec_name(codec), codec_name(program->codecs[other])) == 0)
                                return why_set(why, -EINVAL,
                                               "pipeline, column %zu: view %u of field %s would be called %s, and a "
                                               "field %s of the dataset is delivered as well: rename one of them with "
                                               "fields= of the dataset",
                                               program->views[i].column, codec_view(codec) + 1,
                                               source->schema.fields[codec_field(codec)].name, codec_name(codec),
                                               codec_name(codec));
        }
        return 0;
}

/* codec/codec_type.h: what a codec is made of. Private to this floor. */
#pragma once

#include "daemon/augment/recipe.h"
#include "daemon/codec/codec.h"

struct codec_tools {
        struct decoder *decoder;
        struct workspace *workspace;
        struct geometry geometry; /* of the picture that is open */
        struct image_info info;   /* of the same */
        struct codec_counts counts;
};

/* Functions as in codec.h; those that may be NULL say so. */
struct codec_type {
        const char *name;
        int (*form)(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                    struct why *why);
        int (*open)(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                    struct codec_opened *ret_opened, struct why *why);
        int (*render)(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                      uint8_t *out, struct why *why);
        void (*close)(struct codec_tools *tools); /* NULL: nothing is kept open */
        int (*refuse_room)(const struct codec *codec, const struct codec_opened *opened,
                           const struct field_layout *field, struct why *why);
        int (*refuse_memory)(const struct codec_tools *tools, const struct codec_opened *opened, uint64_t allowed_bytes,
                             struct why *why); /* NULL: it needs none */
        int (*refuse_shape)(const struct codec_opened *opened, const int64_t *other, struct why *why); /* NULL: never */
};

struct codec {
        const struct codec_type *type;
        struct schema_field field;
        uint32_t idx_field;    /* of the source */
        uint32_t group;        /* of fields that draw alike */
        struct recipe *recipe; /* pictures; for others NULL */
        char *text;
};

extern const struct codec_type CODEC_PICTURE;
extern const struct codec_type CODEC_BYTES;
extern const struct codec_type CODEC_VALUE;
extern const struct codec_type CODEC_NUMBER;
extern const struct codec_type CODEC_NAME;

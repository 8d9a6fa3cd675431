/* codec/codec_type.h: what a codec is made of. Private to this floor. */
#pragma once

#include "daemon/augment/recipe.h"
#include "daemon/codec/codec.h"
#include "daemon/codec/plugged/plugin_step.h"
#include "daemon/codec/steps/sound_steps.h"
#include "daemon/codec/steps/token_steps.h"
#include "daemon/codec/steps/value_steps.h"
#include "daemon/codec/texts/token_tools.h"

struct sound;
struct sound_recipe;

/* What is taken of an open sound. */
struct sound_part {
        uint64_t first, n_frames; /* of the file */
        double ratio;             /* of the rates: delivered to stored */
        uint64_t n_resampled;     /* frames that the part becomes */
        uint64_t n_out;           /* frames that are delivered; zeroes follow */
};

/* Kept from sample to sample. */
struct codec_memory {
        uint8_t *bytes;
        size_t n_bytes;
};

/* A picture that several codecs show parts of (codec/pictures/shared.h). */
struct shared {
        enum {
                SHARED_NONE,     /* it is not known yet whether there is one */
                SHARED_PLANNED,  /* to be decoded when the first part is rendered */
                SHARED_READY,    /* in memory */
                SHARED_GIVEN_UP, /* each part is decoded alone */
        } state;
        struct box box;             /* of the stored picture */
        struct codec_memory pixels; /* of the box, row after row */
        struct geometry geometry;   /* of a part that is served later */
        uint32_t n_after;           /* parts that are served after the one that is open */
};

struct codec_tools {
        void (*close)(struct codec_tools *tools); /* of what is open; NULL: nothing is, or it needs none */
        struct decoder *decoder;
        struct workspace *workspace;
        struct geometry geometry; /* of the picture that is open */
        struct image_info info;   /* of the same, as it is stored */
        struct band_info bands;   /* of a picture whose numbers are read as they are stored */
        uint32_t orientation;     /* of the same: EXIF's, 1 if it is not turned */
        bool is_opaque;           /* of the same: it has no alpha, or all of it is 255 */
        bool is_wide;             /* of a mask: its numbers have 16 bits */
        struct shared shared;
        struct recipe_boxes plan_boxes; /* on which a plan depends, and where they are: */
        struct codec_memory plan_memory;
        struct motions motions; /* of the boxes that are open */
        size_t n_boxes;
        struct sound *sound; /* that is open; else NULL */
        struct sound_part sound_part;
        uint64_t n_time; /* columns of its features */
        /* Of the array that is open: before rows leave, of one row, of what is delivered. */
        uint64_t n_rows_bytes, n_row_bytes, n_out_bytes;
        uint64_t n_planes; /* of the masks that are open, before some leave */
        struct codec_counts counts;
        struct stage_clock clock;
        struct codec_memory elements; /* of a field that is being converted */
        struct codec_memory rows;     /* of a field some of whose rows leave */
        struct codec_memory planes;   /* of masks of instances, before and after they are moved */
        struct codec_memory whole;    /* of a sample that is cut */
        struct codec_memory wave;     /* of a sound of which features are made */
        struct token_tools tokens;
        struct plugin_seats *seats;    /* NULL until it is needed */
        struct dlplugin_form unpacked; /* of the array or picture that is open */
        uint64_t max_pixels;           /* of a picture */
        uint64_t max_step_pixels;      /* of its steps; 0: any number */
        struct wanting wanting;        /* of the sample: asked by what makes tokens or sounds */
};

/* Makes it at least this long; what it held is lost. -ENOMEM. */
int codec_memory_reserve(struct codec_memory *memory, size_t n_bytes, struct why *why);

/* Functions as in codec.h; those that may be NULL say so. */
struct codec_type {
        const char *name;
        enum {
                INTERPRETS_NOTHING, /* copies what is stored or known, or must not run in a cell */
                INTERPRETS_STORED,  /* only where the field is stored */
                INTERPRETS_ALL,
        } interprets;                      /* codec_interprets() */
        enum stage_id opening, rendering;  /* whose time these take; STAGE_OTHER: too little to be marked */
        void (*fini)(struct codec *codec); /* frees what it has of its own in the codec, which may be half made; NULL:
                                              nothing */
        int (*form)(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
                    struct why *why);
        int (*open)(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                    struct codec_opened *ret_opened, struct why *why);
        int (*render)(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                      uint8_t *out, struct why *why);
        void (*close)(struct codec_tools *tools); /* NULL: nothing is kept open */
        int (*refuse_room)(const struct codec *codec, const struct codec_opened *opened, uint64_t room_bytes,
                           struct why *why);
        int (*refuse_memory)(const struct codec_tools *tools, const struct codec_opened *opened, uint64_t allowed_bytes,
                             struct why *why); /* NULL: it needs none */
        int (*refuse_shape)(const struct codec_opened *opened, const int64_t *other, struct why *why); /* NULL: never */
};

/* CODEC_TOKENS */
struct codec_tokens {
        struct token_steps steps;
        struct codec *text; /* what makes text of the field */
        struct tokenizer *tokenizer;
        uint64_t serial; /* no other codec has it while the process lives */
};

/* CODEC_PLUGGED, CODEC_UNPACKED */
struct codec_plugged {
        struct codec *before; /* what makes that which the first plug-in gets; NULL: CODEC_UNPACKED */
        struct dlplugin_form before_form;
        uint32_t n_uses;
        struct plugin_use *uses[PLUGIN_STEPS_A_FIELD_MAX];
        bool keeps_form; /* the last one delivers what the first one gets */
};

/* A number of a class as a row (codec/labels/one_hot.h). */
struct codec_one_hot {
        const struct codec_type *number; /* what reads the number */
        uint32_t n_classes;
        float on, off;
};

struct codec {
        const struct codec_type *type;
        struct schema_field field;
        char name[DLP_TENSOR_NAME_MAX]; /* of its tensor */
        bool is_again;                  /* codec_is_again() */
        uint32_t view;                  /* codec_view() */
        bool is_crop;                   /* codec_draws() */
        uint32_t idx_field;             /* of the source */
        uint32_t group;                 /* of fields that draw alike */
        uint32_t idx_lead;              /* codec_lead() */
        uint32_t idx_boxes;             /* codec_boxes() */
        uint32_t idx_plan_boxes;        /* codec_plan_boxes() */
        bool is_points, is_of_boxes;    /* CODEC_ROWS */
        struct recipe *recipe;          /* pictures, boxes, and arrays in a part with them; for others NULL */
        struct value_steps steps;       /* CODEC_TEXT, CODEC_ELEMENTS, CODEC_NPY */
        bool is_for_tokens;             /* CODEC_TEXT: a member must be text */
        uint32_t dtype, n_dims;         /* of what is delivered: CODEC_ELEMENTS, CODEC_NPY */
        struct sound_steps sound;       /* CODEC_SOUND, and the steps after it; NULL for others */
        struct sound_recipe *sound_recipe;
        uint32_t idx_start, idx_duration; /* of the source: the columns that audio(...) names; CODEC_NONE */
        struct codec_tokens tokens;
        struct codec_plugged plugged;
        struct codec_one_hot one_hot;
        int64_t shape[SCHEMA_DIMS_MAX];
        char *text;
};

/* Before a plan: gives `geometry` the boxes on which it depends, if it does. Not while the value of another field is
 * open. -EBADMSG, -ENOTSUP, -E2BIG, -ENOMEM. */
int codec_load_plan_boxes(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                          struct geometry *geometry, struct why *why);

/* The plan of a picture whose width and height are in `opened`: its geometry, and there its shape and bytes. As
 * codec_load_plan_boxes(), and what recipe_plan() says. */
int picture_plan(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                 struct codec_opened *opened, struct why *why);

/* What serves a value without steps for pictures: boxes and rows stand on it. */
const struct codec_type *codec_value_type(const struct codec *codec);

/* Copies the rows that stay, n_row_bytes each, one after the other. */
void codec_copy_kept(const struct codec_kept *kept, const uint8_t *rows, uint64_t n_row_bytes, uint8_t *out);

/* The room of a ragged field, of which each stored byte becomes at most `factor` bytes. -ENOMEM. */
int codec_form_ragged(const struct codec *codec, const struct codec_terms *terms, uint64_t factor,
                      struct field_form *form, struct why *why);

/* refuse_room() of ragged fields. */
int codec_refuse_ragged(const struct codec *codec, const struct codec_opened *opened, uint64_t room_bytes,
                        struct why *why);

/* refuse_memory() of elements that are converted. */
int codec_refuse_elements(const struct codec_tools *tools, const struct codec_opened *opened, uint64_t allowed_bytes,
                          struct why *why);

/* Reverses the bytes of each element. */
void codec_swap_elements(uint8_t *bytes, uint64_t n_bytes, uint64_t n_element);

extern const struct codec_type CODEC_PICTURE;
extern const struct codec_type CODEC_BANDS;
extern const struct codec_type CODEC_MASK;
extern const struct codec_type CODEC_PLANES;
extern const struct codec_type CODEC_BOXES;
extern const struct codec_type CODEC_SOUND;
extern const struct codec_type CODEC_ROWS;
extern const struct codec_type CODEC_BYTES;
extern const struct codec_type CODEC_VALUE;
extern const struct codec_type CODEC_GATHERED;
extern const struct codec_type CODEC_NUMBER;
extern const struct codec_type CODEC_NAME;
extern const struct codec_type CODEC_TEXT;
extern const struct codec_type CODEC_TEXTS;
extern const struct codec_type CODEC_ELEMENTS;
extern const struct codec_type CODEC_NPY;
extern const struct codec_type CODEC_TOKENS;
extern const struct codec_type CODEC_PLUGGED;
extern const struct codec_type CODEC_UNPACKED;

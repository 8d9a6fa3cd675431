/* codec/codec.h: from the stored bytes of a field to the elements of its tensor.
 *
 * A codec serves one field in a pipeline: it knows what the field's bytes are, and which steps are applied to them.
 * There is a struct codec_type (codec/codec_type.h) for each kind: pictures, which are decoded and augmented; bytes,
 * which are delivered unchanged; values, which the dataset knows without reading anything. A worker does the same for
 * each field of a sample:
 *
 *      codec_open()        reads the header of the bytes and makes the random draws: now shape and memory are known
 *      (the caller reserves the memory, and asks collation for the place)
 *      codec_render()      writes the elements there
 *      codec_close()
 *
 * A codec does not change once it is made: any number of threads may use it, each with tools of its own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/augment/recipe.h"
#include "daemon/base/stage_clock.h"
#include "daemon/collate/collate_layout.h"
#include "daemon/data/source.h"
#include "daemon/decode/decode.h"
#include "proto/base/why.h"
#include "proto/text/grammar.h"

struct codec;
struct codec_tools;
struct plugins;
struct tokenizers;

#define BOXES_MAX 8192u /* of a sample whose pipeline drops some; COCO has at most 93 */

/* Which boxes of a sample stay: `sanitize` drops the others, and the rows of other fields leave with them. */
struct codec_kept {
        bool is_known; /* false: no boxes of this sample were served, so all rows stay */
        uint32_t n_boxes, n_kept;
        uint8_t bits[BOXES_MAX / 8]; /* box i: bit i % 8 of byte i / 8 */
};

/* A field that is served after another one, and shows the same stored picture. */
struct codec_sharer {
        const struct codec *codec;
        uint64_t seed;
};

/* The boxes on which the plan of a picture depends, as they are stored. */
struct codec_plan_boxes {
        const struct codec *codec; /* NULL: there are none */
        const uint8_t *bytes;
        size_t n_bytes;
        bool is_elsewhere; /* another read brings them */
};

/* Which part of its file a sample is, as columns of the dataset say. */
struct codec_part {
        double start_s, duration_s;
        bool has_duration; /* else it goes to the end */
};

/* Reads it from the source, whose columns are in memory. Of other fields than sound: all of the file. */
struct codec_part codec_part(const struct codec *codec, const struct source *source, uint64_t sample);

/* A part as a file of its own: a head, and then bytes that are in the file. */
#define CODEC_EXCERPT_LOOK 4096u /* first bytes of the file that say where */
#define CODEC_EXCERPT_HEAD 80u
struct codec_excerpt {
        uint64_t offset, n_bytes; /* in the file */
        uint32_t n_head_bytes;    /* 0: there is none */
        uint8_t head[CODEC_EXCERPT_HEAD];
};

/* Where a part of a sound lies, of a file that begins with `bytes`. Returns false if all of the file has to be read,
 * for whatever reason: then all that may be wrong is found as it is of a whole file. */
bool codec_excerpt(const struct codec *codec, const struct codec_part *part, const uint8_t *bytes, size_t n_bytes,
                   uint64_t n_file_bytes, struct codec_excerpt *ret_excerpt);

/* One field of one sample. */
struct codec_input {
        const uint8_t *bytes; /* of the field, as they are stored; NULL if it is not stored */
        size_t n_bytes;
        const struct source *source;
        uint64_t sample;                  /* in the source */
        uint32_t lead_width, lead_height; /* of the picture that it moves with, as it is stored: codec_lead() */
        struct codec_kept *kept;          /* boxes that are opened write it, fields with codec_boxes() read it */

        uint64_t seed; /* of what is drawn; epoch, sample and the step say the rest */
        uint32_t epoch;

        /* Of a picture that is padded: bytes from row to row and, with channels first, from plane to plane. 0: rows and
         * planes follow one another without gaps. */
        uint64_t row_stride, plane_stride;

        /* Of tokens, which are made when they are opened: the memory that the tools may have then, and the most that
         * can be had by CODEC_NEEDS_MORE. 0: any. */
        uint64_t allowed_bytes, most_bytes;

        /* Of a picture: the fields that are served next and show parts of it, too. It may be decoded for all of them at
         * once; they have the same bytes, epoch and sample. */
        const struct codec_sharer *sharers;
        uint32_t n_sharers;

        struct codec_plan_boxes plan_boxes; /* of codec_plan_boxes() */
        struct codec_part part;
};

/* Adds what this field's steps cost each sample, as far as that is known. -EINVAL: more than work->most, unless that is
 * 0. */
struct recipe_work;
int codec_add_work(const struct codec *codec, struct recipe_work *work, struct why *why);

/* What codec_open() found out about a sample's field. */
struct codec_opened {
        int64_t shape[FIELD_DIMS_MAX]; /* as many as the form has dimensions */
        uint64_t n_bytes;              /* of its elements */
        uint64_t need_bytes;           /* the most memory that rendering may take beside them */
        uint64_t made_bytes;           /* that the tools have for it; rendering takes it again if they are trimmed */
        uint64_t alone_bytes;          /* the same if codec_decode_alone() is called; 0: that changes nothing */
        uint32_t width, height;        /* of a picture as it is stored */
        bool is_absent;                /* only now it is known that the sample does not have it; nothing to render */
};

/* The terms for codec_form(). */
struct codec_terms {
        const struct source *source;
        uint32_t batch_size;
        bool may_repeat;     /* a sample may be in a batch several times, as a substitute or because it is padded */
        uint64_t max_pixels; /* of a picture */
};

/* What steps of a pipeline name that is not in the daemon itself. Either may be NULL: there are none. */
struct codec_named {
        struct at_hand *tokenizers; /* tokens(NAME) */
        struct plugins *plugins;    /* plugin(NAME.STEP) */
};

/* Steps of a text. */
struct codec_steps {
        struct grammar *grammar;
        struct grammar_steps list;
};

/* Takes NULL. */
void codec_free(struct codec *codec);

/* Boxes and points move with a picture of their part of the pipeline, and need its size; where the part drops boxes,
 * its other arrays need to know which. Both must be served before. Which fields of the program these are; CODEC_NONE:
 * the field needs none. codec_set_lead() and codec_set_boxes() are for who makes the program. */
#define CODEC_NONE UINT32_MAX
uint32_t codec_lead(const struct codec *codec);
uint32_t codec_boxes(const struct codec *codec);
void codec_set_lead(struct codec *codec, uint32_t idx_lead);
void codec_set_boxes(struct codec *codec, uint32_t idx_boxes);

/* Which field of the program has the boxes on which its plan depends; CODEC_NONE: it depends on none.
 * codec_set_plan_boxes() is for who makes the program. Does its recipe need some? */
uint32_t codec_plan_boxes(const struct codec *codec);
void codec_set_plan_boxes(struct codec *codec, uint32_t idx_boxes);
bool codec_needs_boxes(const struct codec *codec);

/* Is it a picture; boxes or points that move with one; an array that has a row for each box? Does its part drop boxes?
 */
bool codec_is_picture(const struct codec *codec);
bool codec_is_boxes(const struct codec *codec);
bool codec_is_points(const struct codec *codec);
bool codec_is_of_boxes(const struct codec *codec);
bool codec_drops_boxes(const struct codec *codec);

/* Does it go through steps of plug-ins, or is it decoded by one? */
bool codec_is_plugged(const struct codec *codec);

/* The steps and codecs of plug-ins that it uses, in the sequence in which they were settled; `ret_uses` has room for
 * CODEC_USES_MAX. */
#define CODEC_USES_MAX 16u
struct plugin_use;
uint32_t codec_uses(const struct codec *codec, const struct plugin_use **ret_uses);

/* Of a picture: the channels that it has if they are levels one after the other, height x width x channels; else 0. */
uint32_t codec_channels(const struct codec *codec);

/* Is its tensor tokens of text: made by the step tokens, or called input_ids or tokens by the dataset? */
bool codec_is_tokens(const struct codec *codec);

/* Does it decode a picture or a sound? Else it does not matter whether one can be decoded. */
bool codec_decodes(const struct codec *codec);

/* Does it make something of stored bytes or of a picture's fields, more than copying what is stored or known? Where
 * decoders are isolated, such codecs are opened in cells (codec/cell/render_messages.h); tokens are not. */
bool codec_interprets(const struct codec *codec);

/* What is done before steps of plug-ins, which run elsewhere: of a field that has none, all of it; NULL: nothing, a
 * plug-in decodes it. */
const struct codec *codec_before_plugins(const struct codec *codec);

/* Is it a picture that is turned as EXIF says? */
bool codec_is_upright(const struct codec *codec);

/* Makes a picture a mask, which moves with another picture. Is it one? */
void codec_set_mask(struct codec *codec);
bool codec_is_mask(const struct codec *codec);

/* Can what a picture's last steps ask for (to, normalize, layout) be left to the client, as by recipe_leave_form()?
 * codec_leave_form() does so, and is for who makes the program. codec_left_form() says what was left. */
bool codec_can_leave_form(const struct codec *codec);
void codec_leave_form(struct codec *codec);
bool codec_left_form(const struct codec *codec, struct picture_form *ret_form);

/* The same for flips and changes of colours before them, as by recipe_leave_operations(). */
bool codec_can_leave_operations(const struct codec *codec);
void codec_leave_operations(struct codec *codec);

/* The dtype that its part asks for masks: "uint16"; NULL: none is given. */
const char *codec_mask_dtype(const struct codec *codec);

/* Is it an array of masks, one for each box, which move with a picture? */
bool codec_is_planes(const struct codec *codec);

/* Which of the source's fields it is, and how its tensor is called: like the field, unless it is a later view. */
uint32_t codec_field(const struct codec *codec);
const char *codec_name(const struct codec *codec);

/* Which view of its field it is (codec/steps/views_step.h), from 0. codec_set_view() is for who makes the program;
 * -ENAMETOOLONG: the view's name would be too long. */
uint32_t codec_view(const struct codec *codec);
int codec_set_view(struct codec *codec, uint32_t view);

/* Number of the draws that it has (task_seed()): that of its view, unless the views are crops of one step, which share
 * the draws of the first one. codec_set_crop() is for who makes the program, after codec_set_view(). */
uint32_t codec_draws(const struct codec *codec);
void codec_set_crop(struct codec *codec);

/* Gives its tensor a name of n characters, before codec_set_view(); the part says NAME=FIELD. -ENAMETOOLONG. */
int codec_set_name(struct codec *codec, const char *name, size_t n);

/* Does an earlier field of the program read the same field of the source, so that one read brings it for both?
 * codec_set_again() is for who makes the program. */
bool codec_is_again(const struct codec *codec);
void codec_set_again(struct codec *codec);

/* Are its bytes read? Else the source knows the value. */
bool codec_is_stored(const struct codec *codec);

/* Are its elements delivered as they are stored or known, row by row, all of one size? Then they may also be copied to
 * their place by somebody else, who calls codec_settle_row() there if they are stored. */
bool codec_is_row(const struct codec *codec);

/* Copies a piece of a row out of a mapping to its place in `row`; elements that are stored in another type are
 * converted. Returns 0; -EIO as mapped_copy(); or -EBADMSG as codec_put_piece(). Any thread. */
int codec_copy_piece(const struct codec *codec, const struct source_piece *piece, uint8_t *row);

/* The same for a piece of a gathered field that was read. Returns 0, or -EBADMSG with `why`: a number that the dtype of
 * the tensor cannot hold. */
int codec_put_piece(const struct codec *codec, const struct source_piece *piece, const uint8_t *bytes, uint8_t *row,
                    struct why *why);

/* Does its field lie in several pieces, which codec_put_piece() takes one by one? Then it is never opened. */
bool codec_is_gathered(const struct codec *codec);

/* Brings the elements that were copied to `row` into the order of bytes that a client gets. `row` may be in a slot: a
 * client that writes there meanwhile changes its own elements and nothing else. Quick; any thread. */
void codec_settle_row(const struct codec *codec, uint8_t *row);

/* What its part of the pipeline draws from. Each part draws its own random numbers, even if its steps are the same. */
uint64_t codec_seed(const struct codec *codec, const struct codec_input *input);

/* Its steps in their one normal spelling; "" for none. Owned by the codec. */
const char *codec_text(const struct codec *codec);

/* The form of a sample's field, for collation. May look at each sample of the source. -ENOMEM. */
int codec_form(const struct codec *codec, const struct codec_terms *terms, struct field_form *ret_form,
               struct why *why);

/* Pictures by who decoded them. */
struct codec_counts {
        uint64_t n_decoded[N_DECODED_BY];
        uint64_t n_shared;      /* cut from a picture that was decoded for another one as well */
        uint64_t n_handed_over; /* of those of libjpeg-turbo, begun by our own decoder */
        uint64_t n_texts_cut;   /* by max_length of tokens(), */
        uint64_t n_tokens_cut;  /* and what was left out of them; from the 17th text of a thread on an estimate */
};

/* ---- a sample -------------------------------------------------------------------------------------------------- */

/* Errors are what is wrong with the sample: -EBADMSG, -ENOTSUP, -EFBIG, ...; and -ENOMEM. CODEC_NEEDS_MORE: it is not
 * open, and is to be opened again with at least ret_opened->need_bytes allowed, which is at most what can be had. */
#define CODEC_NEEDS_MORE 3
int codec_open(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
               struct codec_opened *ret_opened, struct why *why);

/* The open picture is not decoded for its sharers as well: there is no memory for that. The results are the same. */
void codec_decode_alone(struct codec_tools *tools);

/* Could one decoding serve both, if they are served one after the other? */
bool codec_can_share(const struct codec *codec, const struct codec *other);

/* Writes opened->n_bytes to `out`. Errors as above. Once after each codec_open(). */
int codec_render(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input, uint8_t *out,
                 struct why *why);

/* The same for a sample of n_bytes of which only n_kept_bytes after the first n_skipped_bytes are wanted. Takes n_bytes
 * of memory, beside what the sample needs. */
int codec_render_piece(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                       uint64_t n_bytes, uint64_t n_skipped_bytes, uint64_t n_kept_bytes, uint8_t *out,
                       struct why *why);

/* Of a field with steps of plug-ins, where another process does what comes before them: the form of that, what it was
 * opened as in terms of the whole field, and the steps themselves, which make `out` of `before` as codec_render() and
 * codec_render_piece() would; n_kept_bytes 0: all. */
void codec_form_before_plugins(const struct codec *codec, struct field_form *ret_form);
void codec_open_plugins(const struct codec *codec, struct codec_opened *opened);
int codec_render_plugins(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                         const uint8_t *before, uint64_t n_skipped_bytes, uint64_t n_kept_bytes, uint8_t *out,
                         struct why *why);

/* After every codec_open(), whatever it returned. The codec need not be there any more. */
void codec_close(struct codec_tools *tools);

/* An open field cannot be served, for one of these reasons: write the reason in terms of the field. Return the error.
 * `room_bytes`: that a sample has in its slot; where a function is applied to it, before the function. */
int codec_refuse_room(const struct codec *codec, const struct codec_opened *opened, uint64_t room_bytes,
                      struct why *why); /* -EFBIG: beyond its slot */
int codec_refuse_memory(const struct codec *codec, const struct codec_tools *tools, const struct codec_opened *opened,
                        uint64_t allowed_bytes, struct why *why); /* -EFBIG: beyond the scratch */
int codec_refuse_shape(const struct codec *codec, const struct codec_opened *opened, const int64_t *other,
                       struct why *why); /* -EMEDIUMTYPE */

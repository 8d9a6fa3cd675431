/* codec/cell/render_messages.h: orders to cells that decode: fields of one sample, from their bytes to their place.
 *
 * A memory has a program: a struct render_program, with which the cell makes the codecs of a pipeline once more, by the
 * same code. An order names the program and some of its fields, in the sequence in which they are served
 * (program_serving()). Fields are opened, and rendered where the daemon knows their place. The answer says what was
 * found out; after the first error nothing more is done for the sample. A packet has the orders of several samples, so
 * that two processes need not take turns for each. */
#pragma once

#include "daemon/base/cell/cell_messages.h"
#include "daemon/codec/codec.h"
#include "daemon/data/schema.h"

#define RENDER_KIND "decode" /* of cell */

/* The setup of the cell. */
struct render_setup {
        struct decode_limits limits;
        enum decode_jpeg jpeg;
        uint64_t own_bytes;  /* of scratch that it may keep from sample to sample */
        uint64_t most_bytes; /* of scratch that an order may ever allow */
};

/* A pipeline, bound to the fields of a dataset. What its plug-ins' steps are and deliver is said, so that its text can
 * be read; they run elsewhere, after what the cell does. */
struct render_program {
        struct schema schema;
        uint32_t n_classes;
        uint32_t n_plugins, n_outputs;
        uint64_t plugins_offset; /* from the beginning of this: the struct plugin_tables, and after them the outputs, */
                                 /* each a struct dlplugin_form, in the sequence of program_uses() */
        uint32_t left_forms, left_operations; /* bit i: those of field i are left to the client */
        char text[];                          /* with NUL */
};

/* What is to be done with a field beside opening it. */
enum render_what {
        RENDER_OPEN,
        RENDER_WHOLE,  /* write it to `out`, if it is not larger, and there is memory for it */
        RENDER_PIECE,  /* the same with n_kept_bytes of it after the first n_skipped_bytes */
        RENDER_REFUSE, /* it needs more memory than there is: say so in terms of the field; `result` is -EFBIG */
};

struct render_field {
        uint32_t idx; /* in the program */
        enum render_what what;
        struct cell_place in;  /* its bytes, or its value; no memory: it has none */
        struct cell_place out; /* its place, with all its room */
        uint64_t n_skipped_bytes, n_kept_bytes;
        uint64_t seed; /* these six as in struct codec_input */
        struct codec_part part;
        uint64_t row_stride, plane_stride;
        uint32_t lead_width, lead_height; /* if the leading picture is not in the same order */

        /* Of a field whose plan depends on boxes (codec_plan_boxes()): their bytes, or their value. */
        bool has_plan_boxes, plan_boxes_are_elsewhere;
        struct cell_place plan_boxes;
};

#define RENDER_SAMPLES_MAX 4u /* of a packet */

/* n_orders follow, each as long as its fields. */
struct render_orders {
        struct cell_head head;
        uint64_t n_orders;
};

struct render_order {
        uint64_t program; /* memory */
        uint64_t sample;
        uint32_t epoch;
        uint32_t n_fields;
        uint64_t allowed_bytes; /* of scratch; with RENDER_REFUSE: that could be allowed */
        struct cell_place kept; /* a struct codec_kept, read and written; no memory: no field of the order needs it */
        struct render_field fields[DLP_TENSORS_MAX];
};

/* Bytes of an order with its fields. */
#define RENDER_ORDER_BYTES(n) (offsetof(struct render_order, fields) + (n) * sizeof(struct render_field))

struct render_opened {
        struct codec_opened opened;
        bool is_rendered;
};

struct render_stage {
        uint32_t id; /* enum stage_id */
        uint32_t n;
        uint64_t ns;
};

/* An answer for each order follows, or fewer if the packet makes no sense. */
struct render_answers {
        struct cell_head head;
        uint64_t n_answers;
};

struct render_answer {
        int32_t result; /* 0, or what is wrong with the field after the last one that is opened */
        uint32_t n_opened, n_stages;
        struct codec_counts counts;
        struct why why;
        struct render_stage stages[N_STAGES];
        struct render_opened opened[DLP_TENSORS_MAX];
};

#define RENDER_ANSWER_BYTES(n) (offsetof(struct render_answer, opened) + (n) * sizeof(struct render_opened))

_Static_assert(sizeof(struct render_answers) + RENDER_SAMPLES_MAX * RENDER_ANSWER_BYTES(0) +
                                       2 * sizeof(((struct render_answer *)0)->opened) <=
                               CELL_MESSAGE_MAX &&
                       sizeof(struct render_orders) + sizeof(struct render_order) <= CELL_MESSAGE_MAX,
               "a packet has room for the largest order, and for the answers to several");

/* codec/program/program_body.h: what a program consists of, and the pieces in which its text is read. Private to this floor.
 *
 * A text is read part by part (program_named.c), or as the only part if it names no field (program_unnamed.c). What
 * follows the steps of a part is taken off first (program_ending.c); then the fields are added one by one
 * (program_fields.c), and what is said of several of them together is checked (program_moving.c, program_mixing.c,
 * program_collations.c, program_views.c). All functions that return int return -EINVAL with the column and what was
 * expected, or -ENOMEM. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/codec/codec_program.h"
#include "daemon/codec/plugged/plugin_collation.h"
#include "daemon/codec/steps/python_step.h"
#include "daemon/codec/steps/steps_after.h"
#include "daemon/codec/steps/views_step.h"
#include "daemon/collate/collation.h"

struct program {
        uint32_t n_fields;
        struct codec *codecs[DLP_TENSORS_MAX];
        struct collation collations[DLP_TENSORS_MAX];      /* of each field */
        struct python_step pythons[DLP_TENSORS_MAX];       /* likewise, if a function gets it */
        struct steps_after *afters[DLP_TENSORS_MAX];       /* steps after the function; NULL: none */
        struct views views[DLP_TENSORS_MAX];               /* of each field's part */
        struct plugin_collation *plugged[DLP_TENSORS_MAX]; /* a plug-in makes its batch; NULL: none does */
        uint32_t mix_pictures[DLP_TENSORS_MAX];            /* the one with which each field is mixed, or FIELD_NONE */
        size_t renamed[DLP_TENSORS_MAX];   /* the column of its name, if the part gives it one; 0: none */
        uint32_t serving[DLP_TENSORS_MAX]; /* program_serving() */
        uint32_t sharers[DLP_TENSORS_MAX]; /* program_sharer() */
        const struct codec_named *named;   /* while it is parsed */
        struct grammar *grammar;           /* of its text; likewise */
        char *text;
};

/* A part: its fields, its steps, and what follows them. */
struct part {
        const struct grammar_part *written; /* NULL: the text names no field */
        struct codec_steps steps;           /* those before the function, the collation and the views */
        struct python_call python;
        struct collation collation;
        struct plugin_step_text plugged; /* a collation of a plug-in; without a plug-in: none */
        struct views views;
};

/* What the fields of a part have in common while they are added. */
struct adding {
        const struct codec_steps *steps; /* NULL: none */
        struct grammar_word name;        /* that the field gets; n = 0: its own */
        uint32_t group;
        struct views views;
        bool has_function_on_picture;      /* a function gets the fields of the part, of which one is a picture */
        uint32_t view;                     /* the one that is added */
        const struct collation *collation; /* NULL: none */
};

/* ---- program_named.c, program_unnamed.c: the whole text */

int parse_named(struct program *program, const struct source *source, struct why *why);
int parse_unnamed(struct program *program, const struct source *source, struct why *why);

/* ---- program_ending.c */

/* Takes views, a collation and a function off the end of the steps. */
int read_ending(const struct program *program, struct grammar_steps steps, struct part *ret_part, struct why *why);

/* Is anything said of the part beside steps of the daemon and of plug-ins? */
bool has_ending(const struct part *part);

/* The last field of the program is the only one of its part, or of a view of it, that begins at `begin`: a plug-in
 * makes its batch. */
int bind_plugged(struct program *program, const struct source *source, uint32_t begin,
                 const struct plugin_step_text *plugged, struct why *why);

/* The function of the part, if it has one, gets the fields from `begin` on: a view of the part, whose first one begins
 * at `first`. */
int bind_python(struct program *program, uint32_t first, uint32_t begin, const struct python_call *python,
                struct why *why);

/* Does the collation fit what the function of the part from `begin` on delivers, if it has one? */
int check_collated(const struct program *program, uint32_t begin, const struct collation *collation, struct why *why);

/* The same for steps of plug-ins; `begin` is the first field of the part. Labels that are mixed have no such steps. */
int check_plugged(const struct program *program, uint32_t begin, struct why *why);

/* The pictures among them get the steps after it. */
int bind_after(struct program *program, uint32_t begin, const struct python_call *python, struct why *why);

/* A picture is cut only if it is known where its rows are. */
int check_cut(const struct program *program, uint32_t idx, const struct field_form *form, struct why *why);

/* ---- program_fields.c */

/* For messages: "image, caption, label". */
void list_fields(const struct schema *schema, bool only_stored, char *text, size_t size);

bool is_field(const struct schema *schema, struct grammar_word word);

/* A field of fixed size that every sample has, whether it is stored or known. */
bool is_value(const struct schema_field *field);

int refuse_long_name(const char *name, size_t column, const char *field, struct why *why);

int add_field(struct program *program, const struct source *source, uint32_t idx_field, const struct adding *adding,
              struct why *why);

/* ---- program_moving.c; `begin` is the first field of the part */

/* Masks and boxes would no longer fit pictures that are mixed. */
bool moves_along(const struct codec *codec);

/* Is it something else beside a picture, whose steps are not for it? */
bool is_beside_picture(const struct schema_field *field, const struct codec_steps *steps);

/* A picture with such a name is a mask if another picture is named with it. */
void find_masks(struct program *program, const struct source *source, uint32_t begin);

/* Masks, boxes and points move with the only picture of their part; if the part drops boxes, rows of its other arrays
 * leave with them. */
int lead_fields(struct program *program, const struct source *source, uint32_t begin, struct why *why);

int refuse_dropping(uint32_t n_boxes, struct why *why);
int refuse_needing(uint32_t n_boxes, struct why *why); /* the same of a part that needs them */

/* A dtype for masks is a mistake where there are none, and those of instances have only one. */
int check_mask_dtype(const struct program *program, const struct source *source, uint32_t begin, struct why *why);

/* ---- program_mixing.c */

/* The codec of a field of a part whose samples are mixed: a label becomes a row of probabilities. */
int new_mixed(struct program *program, const struct source *source, uint32_t idx_field, const struct adding *adding,
              struct codec **codec, struct why *why);

/* The fields from `begin` on are mixed; those of one view with one another. Is it clear with which picture, and are
 * their labels among them? */
int check_mixed(struct program *program, uint32_t begin, uint32_t view, const struct collation *collation,
                struct why *why);

/* Without names the label is the only whole number that is delivered. */
int find_label(const struct source *source, const struct collation *collation, uint32_t *ret_idx, struct why *why);

/* The label that is mixed with the main field, in all its views. */
int add_label(struct program *program, const struct source *source, uint32_t idx_label, struct adding *adding,
              struct why *why);

/* ---- program_collations.c */

/* The fields from `begin` on are a part with this collation. */
void collate_part(struct program *program, uint32_t begin, const struct collation *collation);

/* cu_seqlens comes with the first packed field. All of them lie in the same rows. */
int settle_packing(struct program *program, struct why *why);

/* A tensor that comes with a field has a name and a place among the others. */
int check_added(const struct program *program, struct why *why);

/* ---- program_views.c */

/* The fields from `begin` on are the first view of a part: may it have more? */
int check_views(const struct program *program, uint32_t begin, const struct views *views, struct why *why);

/* Views have names of their own, which no other tensor may have. */
int check_view_names(const struct program *program, const struct source *source, struct why *why);

/* ---- program_print.c: program->text */

/* `no_main`: all fields are delivered as they are. */
int print_unnamed(struct program *program, const struct source *source, bool no_main, struct why *why);

/* `parts` has for each field the number of its part. */
int print_named(struct program *program, const struct source *source, const uint32_t *parts, struct why *why);

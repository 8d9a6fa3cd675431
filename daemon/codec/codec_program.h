/* codec/codec_program.h: the text of a pipeline, bound to the fields of a dataset: a codec for each field of a batch. The code
 * is in program/.
 *
 *      random_resized_crop(224) hflip(0.5)                       no field is named: the steps are for the only picture
 *                                                                (else the only stored field), and all values of fixed
 *                                                                size are delivered with it
 *      image: resize(256) center_crop(224); caption: raw; label  only the named fields are read and delivered
 *      left, right: hflip(0.5); label                            fields that are named together use the same draws
 *
 *      image: random_resized_crop(224) views(2); label           several pictures of each sample, with draws of their
 *                                                                own: image, image_2, label (codec/steps/views_step.h)
 *      image: random_resized_crop(224); small=image: resize(64)  a field that is delivered twice, with other steps:
 *                                                                the second time by another name
 *
 * Parts are separated by ";", each `[[NAME=]FIELD[, ...]:] STEP...`; a part without steps delivers the field as it is
 * stored. The last step may say how samples become a batch (collate/collation.h): for the pictures of the part and
 * their masks, if it names some, else for all of its fields. A single word that is both a step and a field of the
 * dataset is refused. A program does not change once it is parsed: any number of threads may use it. */
#pragma once

#include "daemon/codec/codec.h"

struct program;

/* -EINVAL with the column (from 1), the word that is wrong and what was expected; a field that the dataset does not
 * have with those that it has; -ENOMEM. The source must outlive the program; of what is `named` (codec_new()) it keeps
 * what it uses. */
int program_parse(const char *text, const struct source *source, const struct codec_named *named,
                  struct program **ret_program, struct why *why);

/* Takes NULL. */
void program_free(struct program *program);

/* The text in its one normal spelling, with all defaults written out. Equal texts do equal things. Owned by the
 * program. */
const char *program_text(const struct program *program);

/* The function of the trainer's that is applied to the field after all steps (codec/steps/python_step.h); NULL: none.
 * Belongs to the program. */
struct python_step;
const struct python_step *program_python(const struct program *program, uint32_t idx);

/* The steps that make the field of what the function delivers (codec/steps/steps_after.h); NULL: none. Belong to the
 * program.
 */
struct steps_after;
const struct steps_after *program_after(const struct program *program, uint32_t idx);

/* The collation of a plug-in that makes the field's tensor (codec/plugged/plugin_collation.h); NULL: none does. Belongs
 * to the program. */
struct plugin_collation;
const struct plugin_collation *program_plugged(const struct program *program, uint32_t idx);

/* Whatever of plug-ins the field uses, in the sequence in which it was settled. */
#define PROGRAM_USES_MAX (CODEC_USES_MAX + 1u)
uint32_t program_uses(const struct program *program, uint32_t idx, const struct plugin_use *ret_uses[PROGRAM_USES_MAX]);

/* The same as codec_can_leave_form(), codec_leave_form() and so on for a field of the program. Only pictures that are
 * stacked can be left: padding has its value after these steps. Before anybody asks for a form. */
bool program_can_leave_form(const struct program *program, uint32_t idx);
void program_leave_form(struct program *program, uint32_t idx);
bool program_can_leave_operations(const struct program *program, uint32_t idx);
void program_leave_operations(struct program *program, uint32_t idx);

/* Fields of a batch, 1 to DLP_TENSORS_MAX, in the sequence in which they are delivered. */
uint32_t program_n_fields(const struct program *program);
const struct codec *program_codec(const struct program *program, uint32_t idx);

/* The field that is packed into rows, and how; NULL: none is. If there are several, they are packed alike, by the
 * lengths of the first. Belongs to the program. */
const struct packing_terms *program_packing(const struct program *program, uint32_t *ret_idx);

/* The form of a field, as its codec and the collation of its part say. May look at each sample of the source. -EINVAL:
 * the field cannot be collated so; -ENOMEM. */
int program_form(const struct program *program, uint32_t idx, const struct codec_terms *terms,
                 struct field_form *ret_form, struct why *why);

/* The next field that shows the same stored picture, and could be decoded with it; CODEC_NONE: there is none. It is
 * served right after it. */
uint32_t program_sharer(const struct program *program, uint32_t idx);

/* Field number k in the sequence in which a sample's fields are served: pictures before boxes that move with them, and
 * boxes before what leaves with them. */
uint32_t program_serving(const struct program *program, uint32_t k);

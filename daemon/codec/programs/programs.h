/* codec/programs/programs.h: a pipeline's text, bound to a dataset that may be made of several.
 *
 * Each part has a program of its own, because a field may be stored otherwise there. All have the same fields in the
 * same sequence, and each field has one form, which is also decided here: what the parts deliver must fit into one
 * batch. A dataset that is not joined is one part. Does not change once it is made: any number of threads may use it.
 */
#pragma once

#include "daemon/codec/codec_program.h"

struct programs;

/* Errors as program_parse(), of the first part that has one; it is named. -EINVAL as well if the text delivers other
 * fields in one part than in another, or class numbers of parts whose classes differ. The source must outlive the
 * programs; `named` as for program_parse(). */
int programs_parse(const char *text, const struct source *source, const struct codec_named *named,
                   struct programs **ret_programs, struct why *why);

/* Takes NULL. */
void programs_free(struct programs *programs);

/* Leaves the form of pictures to the client (codec_leave_form()), where all parts can, of the first DLP_LEFT_FORMS_MAX;
 * and their operations, too, if the client can do them. Before anybody asks for a form. */
void programs_leave_forms(struct programs *programs, bool with_operations);

/* That of the first part, for what is the same in all: how many fields, their names, the text. */
const struct program *programs_first(const struct programs *programs);

/* That of the sample's part. */
const struct program *programs_with(const struct programs *programs, uint64_t sample);

/* One part, with its program and its source. */
uint32_t programs_n_parts(const struct programs *programs);
const struct program *programs_part(const struct programs *programs, uint32_t idx);
const struct source *programs_source(const struct programs *programs, uint32_t idx);

/* The form of field `idx` in a batch of samples of all parts. `terms->source` is not looked at. -EINVAL if the parts
 * differ in dtype or shape, with both; else as codec_form(). */
int programs_form(const struct programs *programs, uint32_t idx, const struct codec_terms *terms,
                  struct field_form *ret_form, struct why *why);

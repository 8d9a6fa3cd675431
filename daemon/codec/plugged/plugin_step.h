/* codec/plugged/plugin_step.h: steps of plug-ins in the text of a pipeline.
 *
 *      center_crop(224) plugin(blocks.mosaic, size=8) plugin(other.step)
 *
 * They stand after all other steps of their field, several of them one after the other. A plug-in's own table says
 * which arguments a step has; they are read, checked and printed here as those of our steps are. Private to this floor.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "daemon/plugin/plugins.h"
#include "proto/base/why.h"
#include "proto/text/grammar.h"

#define PLUGIN_STEPS_A_FIELD_MAX 8u

struct plugin_step_text {
        struct plugin *plugin;
        uint32_t idx_step;
        struct plugin_values values;
        size_t column; /* of its name, for messages */
};

/* Is it one? */
bool plugin_steps_are(const struct grammar_step *step);

/* Does the text name a step of a plug-in as if it were one of ours, "blocks.mosaic(8)"? -EINVAL: it does, and `why`
 * says what to write. */
int plugin_steps_check_bare(const struct grammar *grammar, struct grammar_steps steps, const struct plugins *plugins,
                            struct why *why);

/* Reads one; it may be a codec, or a collation. Errors as below. */
int plugin_step_read(struct grammar *grammar, const struct grammar_step *written, struct plugins *plugins,
                     struct plugin_step_text *ret_step, struct why *why);

/* Reads all of them. -EINVAL: the column and what was expected, or the plug-in's own reason. `plugins` NULL: there are
 * none. */
int plugin_steps_read(struct grammar *grammar, struct grammar_steps steps, struct plugins *plugins,
                      struct plugin_step_text ret_steps[PLUGIN_STEPS_A_FIELD_MAX], uint32_t *ret_n, struct why *why);

/* Reads the one that is a dataset's format, "plugin(blocks.album)". Errors as above. */
int plugin_format_parse(const char *text, struct plugins *plugins, struct plugin_step_text *ret_format,
                        struct why *why);

/* Is a collation of a plug-in the last of the steps? What is wrong with one that cannot be read is said by who reads
 * the steps. */
bool plugin_collation_read(struct grammar *grammar, struct grammar_steps steps, struct plugins *plugins,
                           struct plugin_step_text *ret_collation);

/* In its one normal spelling. */
void plugin_step_print(const struct plugin_step_text *step, FILE *stream);

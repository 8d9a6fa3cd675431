/* collate/collation.h: how samples become a batch, as the last step of a part of a pipeline says it.
 *
 *      tokens: to(int32) pad(value=0, max=512, truncate=true)
 *      image, boxes, labels: resize(short=800, max=1333) pad
 *      tokens: mlm(mask=103, vocab=30522) pad
 *      tokens: ragged(joined=true)
 *      tokens: pack(4096)
 *      image, label: random_resized_crop(224) to(float32) mixup(alpha=0.2, num_classes=1000)
 *
 * Without such a step the codec decides (struct field_form). */
#pragma once

#include <stddef.h>

#include "daemon/collate/collate_layout.h"
#include "proto/base/why.h"
#include "proto/text/grammar.h"

#define COLLATION_TEXT_MAX 640u /* all arguments of the longest ones, mlm and pad */

struct collation_type;

struct collation {
        const struct collation_type *type; /* NULL: the text does not say it */
        size_t column;                     /* of its name in the text, for messages */
        uint32_t is_joined;                /* ragged: 0 or 1 */
        struct padding_terms pad;          /* pad */
        struct packing_terms pack;         /* pack */
        struct mix_terms mix;              /* mixup, cutmix, mix */
        bool has_mlm;                      /* the step before pad hides tokens */
        struct mlm_terms mlm;
        char text[COLLATION_TEXT_MAX]; /* in its one normal spelling, with all defaults */
};

/* Looks for a collation, and mlm before it, at the end of some steps. Returns 0 with the number of steps before it (all
 * of them if there is none, and it then has no type); -EINVAL with the column: its arguments are wrong, or steps follow
 * it. */
int collation_read(struct grammar *grammar, struct grammar_steps steps, struct collation *ret_collation,
                   uint32_t *ret_n_before, struct why *why);

/* In its one normal spelling, with all defaults written out; the caller frees it. NULL: no memory. */
char *collation_text(const struct collation *collation);

/* How many tensors it adds to that of the field, and how the idx-th is called after the field: "mask". With
 * COLLATION_WHOLE_NAME before it, it is the whole name. */
unsigned collation_n_added(const struct collation *collation);
const char *collation_added(const struct collation *collation, unsigned idx);

/* Does every sample have the shape of the others, as without a word in the text? */
bool collation_is_stack(const struct collation *collation);

/* Is it pack? Do two of them need the same rows? */
bool collation_is_pack(const struct collation *collation);
bool collation_packs_alike(const struct collation *one, const struct collation *other);

/* How the text calls it; only if it has a type. */
const char *collation_name(const struct collation *collation);

/* Does it mix samples with one another (collate/mix/mix.h)? It is then for all fields of its part: pictures and labels.
 */
bool collation_mixes(const struct collation *collation);

/* Changes the form of a field accordingly. -EINVAL: the field cannot be collated so. */
int collation_apply(const struct collation *collation, struct field_form *form, struct why *why);

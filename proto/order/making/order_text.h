/* order/making/order_text.h: the text of a sampler, read.
 *
 *      weighted(column=w, n=1000000)
 *      mix(photos=0.7, sketches=0.3) buckets(column=length, edges=64:128, tokens=8192)
 *
 * Steps with blanks between them; order/steps/sampler_step.h says which sequences are allowed. The empty text has no
 * steps: the order is then one of order/sampler.h. Nothing is allocated: a struct dlp_order_text holds all that its
 * steps refer to, so it must not be moved. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"
#include "proto/order/steps/sampler_step.h"

#define DLP_ORDER_STEPS_MAX 8u

struct dlp_order_text {
        uint32_t n_steps;
        struct dlp_step steps[DLP_ORDER_STEPS_MAX];

        /* What the values of its steps point to. */
        _Alignas(8) uint8_t store[VALUE_STORE_BYTES(DLP_SAMPLER_MAX, DLP_ORDER_STEPS_MAX)];
};

/* Reads a text. -EINVAL with the column (from 1), what was found there and what was expected; -ENOMEM. */
int dlp_order_text_parse(const char *text, struct dlp_order_text *ret_text, struct why *why);

/* Writes the text in its one normal spelling, with defaults, into DLP_SAMPLER_MAX bytes. Equal texts give equal orders.
 * -EINVAL if it does not fit. */
int dlp_order_text_print(const struct dlp_order_text *text, char *ret_text, struct why *why);

/* The step that makes units, which is the last one; NULL: there is none. */
const struct dlp_step *dlp_order_text_grouper(const struct dlp_order_text *text);

/* May the order depend on the batch size? What only chooses samples does not. */
bool dlp_order_text_uses_batch_size(const struct dlp_order_text *text);

/* May the steps follow an order of these terms? What chooses samples from the whole dataset may not follow one that
 * goes by blocks. -EINVAL. */
int dlp_order_text_may_follow(const struct dlp_order_text *text, const struct dlp_sampler_terms *base, struct why *why);

/* A column that a step asks for. */
struct dlp_column_wish {
        const char *name; /* belongs to the text */
        bool is_lengths;  /* a field whose samples differ in length stands for its lengths */
};

/* Which columns its steps ask for, at most n of them. Returns how many there are, some perhaps twice. */
uint32_t dlp_order_text_columns(const struct dlp_order_text *text, struct dlp_column_wish *ret_wishes, uint32_t n);

/* The same of one of its steps. */
uint32_t dlp_step_columns(const struct dlp_step *step, struct dlp_column_wish *ret_wishes, uint32_t n);

/* ---- making the order ------------------------------------------------------------------------------------------ */

/* Bytes that the order itself takes at most, once it is made; and beside that, while it is being made. */
uint64_t dlp_order_bytes_max(const struct dlp_order_text *text, const struct dlp_making_terms *terms);
uint64_t dlp_order_scratch_max(const struct dlp_order_text *text, const struct dlp_making_terms *terms);

/* Positions of the terms' epoch at most. */
uint64_t dlp_order_n_positions_max(const struct dlp_order_text *text, const struct dlp_making_terms *terms);

/* Makes the order of an epoch. Blocks until it is done. On success the caller owns what `ret_order` refers to
 * (dlp_making_free()). -EINVAL with making->why: a column that is missing or has values that cannot be used, an order
 * without positions; -ENOMEM; -ECANCELED. */
int dlp_order_make(const struct dlp_order_text *text, struct dlp_making *making, struct dlp_order *ret_order);

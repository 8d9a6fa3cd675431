/* collate/collate_layout.h: where each field of a batch is in its slot, and how much room it has there.
 *
 * A codec describes one sample of its field (struct field_form). From the forms of all fields follows the layout of a
 * slot: a part of the slot for each field, known when a rank attaches and the same for all of its batches. A slot has
 * room for the largest batch that its job can ever be served, so that no batch needs memory after the rank was
 * admitted.
 *
 *      stack    sample i of the batch is at offset + i * the bytes of one sample. If the shape varies, the first
 *               sample of a batch decides for all of them (collate/collating.h)
 *      ragged   samples of any length, placed one after the other as they come; a table of places says where. If the
 *               fields of a sample come with several reads (is_spread), sample i is at offset + i * the longest one.
 *               The first dimension is each sample's own; if a later one varies, the first sample of a batch decides
 *               it. Joined: spread, and moved together when the batch is complete
 *      padded   sample i at offset + i * the room of one sample; when the batch is complete it is known how long its
 *               longest sample is, and what the others lack is filled (collate/padding.h)
 *      packed   samples one after the other in rows of one length (collate/packing.h)
 *
 * A further layout is a value of enum collate_how: each knows its room when it is planned. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/collate/mix/mix.h"
#include "daemon/collate/mlm.h"
#include "proto/base/why.h"
#include "proto/layout.h"

#define FIELD_DIMS_MAX (DLP_DIMS_MAX - 1u) /* dimensions of one sample: the batch is one more */

enum collate_how {
        COLLATE_STACK,
        COLLATE_RAGGED,
        COLLATE_PADDED,
        COLLATE_PACKED,
};

#define PADDED_DIMS_MAX 2u /* height and width */

enum padding_labels {
        PADDING_LABELS_NONE,
        PADDING_LABELS_SAME,    /* the elements */
        PADDING_LABELS_SHIFTED, /* each element's successor */
        PADDING_LABELS_WRITTEN, /* written with the sample: those of `mlm` */
};

#define LABEL_IGNORED (-100) /* where there is nothing to predict: what losses of torch leave out */

#define COLLATION_WHOLE_NAME "=" /* begins what is the whole name of a tensor, not what is added to its field's */

/* What the text says about padding. */
struct padding_terms {
        double value;                       /* not a number: not said (collation_fill()) */
        uint32_t multiple;                  /* lengths are multiples of it */
        uint32_t to[PADDED_DIMS_MAX];       /* 0: as long as the longest sample of a batch */
        uint32_t most[PADDED_DIMS_MAX];     /* to 0: elements that a sample may have; 0: not said */
        uint32_t is_left;                   /* 1: padding comes before the elements */
        uint32_t truncates;                 /* 1: longer samples lose their end; 0: they are damaged */
        uint32_t labels;                    /* enum padding_labels */
        char mask[1 + DLP_TENSOR_NAME_MAX]; /* COLLATION_WHOLE_NAME and its name; "": FIELD_mask */
};

/* What the text says about packing. The order's step pack fills rows by it (proto/order/steps/pack.c). */
struct packing_terms {
        double value;         /* where nothing is; as for padding */
        uint32_t size;        /* elements of a row */
        uint32_t strategy;    /* of PACKING_STRATEGIES */
        uint32_t on_long;     /* of PACKING_LONG; 0: as the strategy has it */
        uint32_t rows, bins;  /* 0: as the strategy has them */
        uint32_t max_samples; /* 0: any number */
        uint32_t shuffle;     /* of PACKING_SHUFFLE; 0: as the strategy has it */
        uint32_t labels;      /* enum padding_labels */
        bool has_seqlens;     /* it is the first packed field of its pipeline: cu_seqlens comes with it */
};

extern const char *const PACKING_STRATEGIES[3], *const PACKING_LONG[5], *const PACKING_SHUFFLE[3];

/* What a function of the trainer's is given or delivers, if that is not the field itself: it lies in a part of the slot
 * of its own.
 */
struct field_input {
        uint64_t n_bytes; /* of one sample, at most; 0: there is none */
        enum dlp_dtype dtype;
        uint32_t n_dims;
        int64_t shape[FIELD_DIMS_MAX]; /* -1: varies from sample to sample */
        int64_t most[FIELD_DIMS_MAX];  /* of what is delivered: the elements that a dimension has at most */
};

#define FIELD_NONE UINT32_MAX

/* One sample of a field, as known before any sample has been read. */
struct field_form {
        char name[DLP_TENSOR_NAME_MAX];
        enum dlp_dtype dtype;
        enum collate_how how;
        uint32_t n_dims;               /* of one sample; 0: a scalar */
        int64_t shape[FIELD_DIMS_MAX]; /* elements; -1: varies from sample to sample */
        uint64_t tail_bytes;           /* stack, none of whose samples varies: of each one after its elements */

        /* Where the shape varies. */
        uint64_t unit_bytes;     /* the smallest size of a sample, of which every size is a multiple: a pixel */
        uint64_t max_bytes;      /* the most that a sample can take; UINT64_MAX: unknown */
        uint64_t asked_bytes;    /* stack: the most that the user wants room for; 0: a share of memory_limit */
        bool fails_late;         /* ragged: a sample may turn out to be damaged after the field was placed */
        bool takes_share;        /* ragged: the longest sample is unknown, or so long that no sample is expected to be:
                                  * its room is a share of memory_limit, as for a stack that varies */
        uint64_t together_bytes; /* ragged: of all samples of a batch, each aligned to DLP_TENSOR_ALIGN; 0: the longest
                                  * one times the batch size */
        uint64_t more_bytes; /* ragged: that each sample takes beside together_bytes; a multiple of DLP_TENSOR_ALIGN */
        bool is_gathered;    /* pieces of a sample are put to its place one by one: only stacked */
        bool is_joined;      /* ragged: without gaps, in the sequence of the batch */

        /* Padded: which dimensions, from padded_dim on. 0 of them: the first one, if it has any. */
        uint32_t padded_dim, n_padded_dims;
        uint64_t bounds[PADDED_DIMS_MAX]; /* elements that no sample exceeds; 0: unknown */
        struct padding_terms pad;
        struct mlm_terms mlm; /* with PADDING_LABELS_WRITTEN */

        struct packing_terms pack; /* packed */

        struct field_input input;
        struct field_input result; /* what a function delivers, if steps make the field of it (then none of its samples
                                    * varies), or if it varies (collate/delivered.h): then the field is a copy of it */
        bool is_whole; /* a function or a plug-in gets it of all samples of a batch at once: they and its input lie */
                       /* without gaps */

        struct mix_terms mix; /* stack: its samples are mixed with one another, by the size of the pictures of that */
        uint32_t mix_picture; /* field; FIELD_NONE: there are none */
};

/* Where a padded field and the tensors that come with it have their room. */
struct padded_layout {
        uint64_t pattern;                    /* the value, as bits of an element */
        uint64_t element_bytes;              /* along the last padded dimension: all that follows it */
        uint64_t n_planes;                   /* of a sample, before the padded dimensions: channels first */
        uint64_t limits[PADDED_DIMS_MAX];    /* elements that a sample may have; 1 where only one is padded */
        uint64_t room[PADDED_DIMS_MAX];      /* elements that its place has */
        uint64_t mask_offset, labels_offset; /* from the slot's beginning */
};

/* Where what comes with a packed field has its room, from the slot's beginning. */
struct packed_layout {
        uint64_t pattern; /* the value, as bits of an element */
        uint64_t positions_offset, segments_offset, labels_offset, seqlens_offset;
};

/* The same for all batches of a feed. */
struct field_layout {
        struct field_form form;
        bool varies;           /* each batch decides the shape: of a stack, or the later dimensions of a ragged field */
        bool is_spread;        /* ragged: each sample has a place of its own, which it may be given again */
        uint32_t idx_tensor;   /* in the record; those that come with it follow */
        uint32_t idx_places;   /* ragged, padded: which array of places is its own */
        uint64_t offset;       /* from the slot's beginning; multiple of DLP_TENSOR_ALIGN */
        uint64_t sample_bytes; /* of one sample; if it varies or is ragged: the most */
        uint64_t room_bytes;   /* of the slot, for all samples */
        struct padded_layout padded;
        struct packed_layout packed;
        uint64_t input_offset, input_bytes;   /* of form.input: sample i at offset + i * bytes */
        uint64_t input_shape_at;              /* from there: int64_t [n_dims], the sample's shape; 0: it is fixed, or */
                                              /* a function gets the sample alone and is told */
        uint64_t result_offset, result_bytes; /* likewise of form.result */
};

struct layout {
        uint32_t n_fields;
        uint32_t n_tensors;      /* those of the fields, and those that are added to them */
        uint32_t n_ragged;       /* arrays of places */
        bool has_whole;          /* functions or plug-ins get whole batches: */
        uint64_t numbers_offset; /* where the numbers of its samples are in the slot, int64_t [batch_size] */
        bool is_sparse;          /* room is more than most batches use: pages are to come as they are written */
        uint32_t batch_size;
        uint32_t n_rows; /* of a packed field */
        uint64_t slot_bytes;
        struct field_layout fields[DLP_TENSORS_MAX];
};

struct layout_limits {
        uint32_t batch_size; /* samples, at most */
        uint32_t n_rows;     /* that a batch has if it is packed */
        uint32_t n_slots;
        uint64_t memory_limit; /* bytes; what fields of varying size get a share of */
        bool is_spread;        /* a sample may fail after a ragged field of it has been placed */
};

/* Plans a slot for these fields; No more tensors than DLP_TENSORS_MAX (asserted). Allocates nothing. -EOVERFLOW if a
 * ring of such slots would be too large to address, or if a field of varying size gets no room; `why` says what to
 * change. */
int layout_plan(const struct field_form *forms, uint32_t n_fields, const struct layout_limits *limits,
                struct layout *ret_layout, struct why *why);

/* Bytes of one sample of this shape, without its tail: n_dims elements of `shape`, none of them negative. UINT64_MAX if
 * that overflows.
 */
uint64_t field_form_bytes(const struct field_form *form, const int64_t *shape);

/* `offset` rounded up to where a tensor may begin. */
uint64_t layout_align(uint64_t offset);

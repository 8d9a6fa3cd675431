/* proto/layout.h: the layout of the two shared memories of a rank.
 *
 *      control   written only by the daemon; the client maps it read-only and the memfd is sealed against its writes
 *                (F_SEAL_FUTURE_WRITE): header, then per slot a slot record, the columns of its samples, the places of
 *                ragged samples and the error texts
 *      payload   belongs to one rank; both sides map it read-write, since CUDA registers only writable pages. Page 0
 *                is the client's page, then come the slots. No decision of the daemon depends on a slot; it reads the
 *                client's page, and checks every value in it
 *
 * Only offsets, never pointers. All integers are little-endian and naturally aligned; sizes in bytes. What is atomic
 * and with which memory order is written in proto/ring.h, which alone touches those fields. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "proto/limits.h"
#include "proto/wait_reason.h"

#define DLP_MAGIC             0x31474e4952504c44ull /* "DLPRING1" */
#define DLP_CACHE_LINE        64
#define DLP_CLIENT_PAGE_BYTES 4096u
#define DLP_TENSOR_NAME_MAX   32u
#define DLP_SLOT_ERRORS_MAX   16u /* error texts kept for one batch; further ones are only counted */
#define DLP_SLOT_ERROR_BYTES  256u
#define DLP_SLOT_WAIT_BITS    40u
#define DLP_WAIT_BUCKETS      28u /* powers of two of a microsecond: the last one begins at 67 s */

enum dlp_dtype {
        DLP_DTYPE_BYTES, /* encoded bytes of any length: only ragged */
        DLP_DTYPE_UINT8,
        DLP_DTYPE_INT32,
        DLP_DTYPE_INT64,
        DLP_DTYPE_FLOAT16,
        DLP_DTYPE_BFLOAT16,
        DLP_DTYPE_FLOAT32,
        DLP_DTYPE_FLOAT64,
        DLP_DTYPE_BOOL, /* one byte: 0 or 1 */
        DLP_DTYPE_INT8,
        DLP_DTYPE_INT16,
        DLP_DTYPE_UINT16,
        DLP_DTYPE_UINT32,
        DLP_DTYPE_UINT64,
        DLP_DTYPE_TEXT,  /* UTF-8 text of any length: only ragged */
        DLP_DTYPE_TEXTS, /* a list of texts in one piece of bytes (proto/base/texts.h): only ragged */
        DLP_N_DTYPES,
};

enum dlp_tensor_layout {
        DLP_DENSE,  /* shape and strides are enough */
        DLP_RAGGED, /* samples of different lengths, or of which some are absent: sample i is at places[i]
                     * of this tensor. shape[1] is -1 if the first dimension of a sample varies */
        DLP_PADDED, /* as DLP_DENSE; how much of sample i is real is in extents[i] of this tensor */
        DLP_WHOLE,  /* as DLP_DENSE, but of the batch as a whole: shape[0] is not the number of samples */
        DLP_PACKED, /* as DLP_WHOLE; sample i is at places[i] of this tensor, from its first element */
};

enum dlp_batch_status {
        DLP_BATCH_OK,
        DLP_BATCH_FAILED, /* no data: the job has ended, `text` says why */
        DLP_BATCH_REPLAY, /* an earlier batch once more (daemon/pipeline/replay/replay.h), at the place of the one that
                           * comes next: `epoch` and `step` are the place's, and the client stays there */
};

/* Where a ragged sample is, from the start of its slot; DLP_PLACE_ABSENT and no bytes: the sample lacks the field. */
#define DLP_PLACE_ABSENT UINT64_MAX

struct dlp_place {
        uint64_t offset;
        uint64_t n_bytes;
};

/* How many elements of a padded sample are real, in each of the dimensions that are padded (1 where only one is);
 * DLP_PLACE_ABSENT in the first: the sample lacks the field. Lies where a ragged tensor has its places. */
#define DLP_PADDED_DIMS_MAX 2u

struct dlp_extent {
        uint64_t n[DLP_PADDED_DIMS_MAX];
};

struct dlp_tensor_record {
        char name[DLP_TENSOR_NAME_MAX];
        uint32_t dtype;
        uint8_t layout;                /* enum dlp_tensor_layout */
        uint8_t padded_dim;            /* DLP_PADDED: the first dimension that is padded, */
        uint8_t n_padded_dims;         /* and how many are, one after the other */
        uint8_t pads_left;             /* 1: padding comes before the elements */
        uint32_t n_dims;               /* the first is the batch */
        uint32_t idx_places;           /* DLP_RAGGED, DLP_PADDED: which of the slot's arrays of places is its own */
        int64_t shape[DLP_DIMS_MAX];   /* elements; the batch dimension counts the real samples; ragged: [n, -1] */
        int64_t strides[DLP_DIMS_MAX]; /* bytes */
        uint64_t offset;               /* from the start of the slot; multiple of DLP_TENSOR_ALIGN */
};

/* One batch, as the client sees it once it is published. */
struct dlp_slot_record {
        _Alignas(DLP_CACHE_LINE) uint64_t sequence; /* of this rank since attach: 0, 1, 2, ... */
        uint64_t stream;                            /* how many seeks came before it */
        uint64_t epoch;
        uint64_t step;       /* batch of this rank within the epoch */
        uint64_t planned_ns; /* CLOCK_MONOTONIC of the daemon's node: taken for filling */
        uint64_t ready_ns;   /* published */
        uint64_t read_ns;    /* from requesting a sample's bytes to having them, summed over the samples */
        uint64_t queued_ns;  /* from then until a worker took it, summed likewise */
        uint64_t decode_ns;  /* from then until it was in the slot, summed likewise */
        uint32_t status;     /* enum dlp_batch_status */
        uint32_t n_samples;  /* in the slot; fewer than the batch size in a last batch, or if some were skipped */
        uint32_t n_tensors;
        uint32_t n_errors;    /* samples that were substituted */
        uint32_t n_skipped;   /* damaged samples that were left out: n_samples is without them, and may be 0 */
        uint32_t n_planned;   /* n_samples + n_skipped */
        uint32_t code;        /* DLP_BATCH_FAILED: EBADMSG, a sample; ENOTRECOVERABLE, more damaged ones than max_errors
                                 allows; EINVAL, what was asked for cannot be made */
        uint64_t epoch_units; /* that this epoch has, for the epoch plan; DLP_UNKNOWN of a stream */
        struct dlp_tensor_record tensors[DLP_TENSORS_MAX];
        char text[DLP_TEXT_MAX]; /* DLP_BATCH_FAILED: why */
};

/* About each sample of a batch: columns of batch_size, so that a client hands them out as they are and touches no more
 * cache lines than it needs. The columns of one slot follow each other, and those of the next slot follow
 * them. */
struct dlp_columns {
        int64_t *indices;     /* in the dataset, as the order asks for */
        int64_t *substitutes; /* the sample that is served in its place, or -1 */
        int32_t *idx_errors;  /* into the slot's error texts, or -1 */
};

struct dlp_control {
        uint64_t magic;
        uint32_t layout_version;
        uint32_t header_bytes; /* sizeof(struct dlp_control) of the writer */
        uint64_t generation;   /* random, new for each attach */
        uint64_t control_bytes;
        uint64_t payload_bytes;
        uint32_t n_slots;
        uint32_t batch_size;
        uint32_t n_ragged; /* tensors of a batch that are ragged or padded: each has its places or extents */
        uint32_t reserved;
        uint64_t slots_offset;   /* in payload: slot i at slots_offset + i * slot_bytes */
        uint64_t slot_bytes;     /* multiple of DLP_SLOT_ALIGN */
        uint64_t records_offset; /* in control: n_slots of struct dlp_slot_record */
        uint64_t columns_offset; /* in control: n_slots of struct dlp_columns' columns */
        uint64_t places_offset;  /* in control: n_slots * n_ragged * batch_size of struct dlp_place; 0 if nothing is
                                    ragged */
        uint64_t errors_offset;  /* in control: n_slots * DLP_SLOT_ERRORS_MAX texts of DLP_SLOT_ERROR_BYTES */

        /* Which slot holds sequence q: queue[q % n_slots]. Written before q is published, and not again before q has
         * been taken: at most n_slots batches are unreleased. */
        _Alignas(DLP_CACHE_LINE) uint32_t queue[DLP_SLOTS_MAX]; /* on lines of its own: those above never change */

        _Alignas(DLP_CACHE_LINE) _Atomic uint64_t n_published; /* sequences below it may be taken */
        _Atomic uint32_t is_traced; /* 1: the client writes `times`. In what was padding: the layout is the same */
        _Alignas(DLP_CACHE_LINE) _Atomic uint32_t
                want_release; /* 1: the daemon waits for a slot; write to the eventfd */

        /* Of a stream: 1 + the samples that it had when it ended; 0 before that, and for all other datasets. Read and
         * written with dlp_ring_length() and dlp_ring_set_length() only. In what was padding: the layout is the same.
         */
        _Atomic uint64_t n_samples_told;

        /* Why no batch comes although the rank has free slots: a struct dlp_wait. Read and written with
         * dlp_ring_waits() and dlp_ring_tell_wait() only. */
        _Alignas(DLP_CACHE_LINE) _Atomic uint32_t wait_version; /* odd while it is being written */
        _Atomic uint64_t wait_words[sizeof(struct dlp_wait) / sizeof(uint64_t)];
};

struct dlp_slot_times {
        _Atomic uint64_t asked_ns;        /* when it was asked for in vain; 0: it was ready */
        _Atomic uint64_t waited_until_ns; /* when that wait ended */
        _Atomic uint64_t taken_ns;
        _Atomic uint64_t released_ns;
};

/* Page 0 of the payload: what a client reports without a system call. Everything beside `waiting` and `released` is for
 * people only, written and read with the functions of proto/meter.h and dlp_ring_take(); times are CLOCK_MONOTONIC. */
struct dlp_client_page {
        _Alignas(DLP_CACHE_LINE) _Atomic uint32_t waiting; /* enum dlp_wake: how to wake the client */

        _Alignas(DLP_CACHE_LINE) _Atomic uint64_t n_taken; /* sequences below it have been leased */
        _Atomic uint64_t n_batches;                        /* handed out to the trainer */
        _Atomic uint64_t n_waits;                          /* of these, asked for before they were there; without the */
        _Atomic uint64_t wait_ns;          /* first one, as this: how long the trainer waited for them */
        _Atomic uint64_t waiting_since_ns; /* when it asked for the batch that it waits for; 0: it does not wait */
        _Atomic uint64_t empty_ns;       /* in which no batch was there to be taken, whether it was asked for or not */
        _Atomic uint64_t empty_since_ns; /* when the last batch that was there was taken; 0: there is another one */
        _Atomic uint64_t first_ns;       /* when the first batch was handed out */

        _Alignas(DLP_CACHE_LINE) _Atomic uint64_t released[DLP_SLOTS_MAX]; /* slot i: 1 + the sequence released last */

        /* Written when a wait ends. */
        _Alignas(DLP_CACHE_LINE) _Atomic uint64_t waits[DLP_WAIT_BUCKETS]; /* as dlp_wait_bucket() sorts them */
        _Atomic uint64_t first_wait_ns;                                    /* for the first batch */

        /* Of the batch that was in slot i last, while the rank is traced (proto/meter.h). A daemon or a client that
         * does not know them leaves zeroes: the layout is the same. */
        _Alignas(DLP_CACHE_LINE) struct dlp_slot_times times[DLP_SLOTS_MAX];

        /* How long the trainer waited for the batch in slot i (proto/meter.h): microseconds below DLP_SLOT_WAIT_BITS,
         * above them the low bits of 1 + its sequence. One that was there leaves the word as it is. Later than `times`,
         * and left out by older clients in the same way. */
        _Alignas(DLP_CACHE_LINE) _Atomic uint64_t slot_waits[DLP_SLOTS_MAX];
};

_Static_assert(sizeof(struct dlp_client_page) <= DLP_CLIENT_PAGE_BYTES, "the client's page is one page");
_Static_assert(sizeof(struct dlp_place) == 16, "packed without holes");
_Static_assert(sizeof(struct dlp_extent) == sizeof(struct dlp_place), "extents lie where places would");
_Static_assert(sizeof(struct dlp_tensor_record) == 184, "packed without holes");
_Static_assert(sizeof(struct dlp_slot_record) % 8 == 0, "records follow each other");
_Static_assert(sizeof(struct dlp_wait) == 40 + DLP_TEXT_MAX, "packed without holes");

/* Bytes of one element; 0 if it is not an enum dlp_dtype. "bytes" counts as 1. */
uint64_t dlp_dtype_bytes(uint32_t dtype);

/* "uint8", ...; NULL if it is not an enum dlp_dtype. */
const char *dlp_dtype_name(uint32_t dtype);

/* The sizes that the daemon chooses for a ring; the rest of the header follows from them. */
struct dlp_geometry {
        uint32_t n_slots;
        uint32_t batch_size; /* samples */
        uint64_t slot_bytes; /* capacity; rounded up to DLP_SLOT_ALIGN */
        uint32_t n_ragged;   /* tensors of a batch that need places */
};

/* Fills in the constant part of a zeroed control header. Returns 0, or -EOVERFLOW if a size exceeds DLP_PAYLOAD_MAX.
 * Both sides use this function, so that they compute the same layout. `control` may be NULL to learn the sizes. */
int dlp_layout_make(const struct dlp_geometry *geometry, struct dlp_control *control, uint64_t *ret_control_bytes,
                    uint64_t *ret_payload_bytes);

/* Is the header of this mapping consistent? For the client, after attach: magic, versions, every offset and size
 * against the sizes of the two memfds. Returns 0, -EPROTO (damaged) or -EPROTONOSUPPORT (other layout version). */
int dlp_layout_check(const struct dlp_control *control, uint64_t control_bytes, uint64_t payload_bytes);

/* Accessors; `control` must have passed dlp_layout_check() (or come from dlp_layout_make()), idx_slot < n_slots. */
struct dlp_slot_record *dlp_slot_record(const struct dlp_control *control, uint32_t idx_slot);
struct dlp_columns dlp_columns(const struct dlp_control *control, uint32_t idx_slot);
/* The places of one ragged tensor of a slot, batch_size of them; NULL if the ring has no such array. */
struct dlp_place *dlp_places(const struct dlp_control *control, uint32_t idx_slot, uint32_t idx_places);
char *dlp_error_text(const struct dlp_control *control, uint32_t idx_slot, uint32_t idx_error);
uint64_t dlp_slot_offset(const struct dlp_control *control, uint32_t idx_slot); /* in the payload */

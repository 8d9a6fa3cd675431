/* proto/limits.h: every limit of the contract, with its unit and its reason.
 *
 * A refusal because of a limit has its number in the message, so the numbers are defined here and nowhere else. */
#pragma once

#define DLP_PROTOCOL_VERSION 3u /* raised when an old peer would misread a message */
#define DLP_LAYOUT_VERSION   9u /* raised when an old peer would misread the shared memory */

/* Bytes, one control message: below the default socket buffer (212,992); protobuf-c amplifies packed integers
 * eightfold, so a hostile packet costs half a megabyte at most. */
#define DLP_PACKET_MAX      65536u
#define DLP_LEFT_FORMS_MAX  16u  /* pictures whose last steps a client does: their tables fit into a packet */
#define DLP_FDS_MAX         4u   /* descriptors in one packet: attach hands over three */
#define DLP_SOCKET_PATH_MAX 107u /* bytes without the NUL: sun_path of Linux */

#define DLP_NAME_MAX     128u  /* bytes with NUL: names of datasets and jobs */
#define DLP_PARTS_MAX    64u   /* datasets of one job: what is looked up for each sample stays in a cache */
#define DLP_DATASET_MAX  8192u /* bytes with NUL: one dataset, or several with " + " between them; paths may be long */
#define DLP_PATH_MAX     4096u /* bytes with NUL: the path of a dataset that is named by it; Linux has no longer ones */
#define DLP_TEXT_MAX     512u  /* bytes with NUL: one error text; in longer ones names lose their middles */
#define DLP_PIPELINE_MAX 4096u /* bytes with NUL: pipeline text; far above any written by hand */
#define DLP_FUNCTION_MAX 64u   /* bytes with NUL: the name of a function of a trainer */
#define DLP_ORDERS_MAX   64u   /* that one worker process has at a time */
#define DLP_RUN_MAX      64u   /* samples of one order */
#define DLP_STEPS_MAX    32u   /* steps in a pipeline: the draw counter has 16 bits for it, people write three */
#define DLP_SAMPLER_MAX  2048u /* bytes with NUL: text of a sampler */

#define DLP_WORLD_MAX 1048576u /* ranks in a job: a hundred times the largest known; keeps step * world in 64 bits */
/* Ranks of one job on one node: eight times the GPUs of the largest; a job's reply fits a packet. */
#define DLP_LOCAL_RANKS_MAX 128u

/* Samples in one question for names or numbers: both packets hold as many numbers of eight bytes. */
#define DLP_SAMPLES_ASKED_MAX 4096u

#define DLP_BATCH_MAX     65536u /* samples a batch: a slot's records stay under 2 MiB */
#define DLP_SLOTS_MIN     2u     /* one leased, one being filled */
#define DLP_SLOTS_MAX     64u    /* slots a ring: their release words fill half of the client's page */
#define DLP_SLOTS_DEFAULT 4u
#define DLP_TENSORS_MAX   32u          /* tensors a batch */
#define DLP_DIMS_MAX      8u           /* dimensions a tensor, as NumPy users write them */
#define DLP_TENSOR_ALIGN  256u         /* bytes: best for GPU copies and AVX-512 */
#define DLP_SLOT_ALIGN    4096u        /* bytes: a page, so that each slot can be registered alone */
#define DLP_PAYLOAD_MAX   (1ull << 42) /* bytes, one ring: 4 TiB, so that no offset sum overflows */
#define DLP_SAMPLES_MAX   (1ull << 40) /* samples in a dataset: (sample * DLP_WORLD_MAX) stays below 2^63 */
#define DLP_STREAM_MAX    (1ull << 28) /* samples of a stream, whose rows are in memory: 10 GiB if each has two fields */
#define DLP_NUMBERS_MAX                                                                                                \
        (1ull << 35)                /* numbers of a stream in blocks: a bitmap takes 4 GiB of addresses, few of pages */
#define DLP_EPOCH_MAX 0xffffffffull /* the draw counter has 32 bits for the epoch */

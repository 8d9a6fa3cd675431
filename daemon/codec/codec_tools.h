/* codec/codec_tools.h: what a thread has to work with codecs, kept from sample to sample: a decoder, a workspace, and the memory
 * of each kind of codec. */
#pragma once

#include "daemon/codec/codec.h"

/* -ENOMEM. */
int codec_tools_new(const struct decode_limits *limits, enum decode_jpeg jpeg, struct codec_tools **ret_tools,
                    struct why *why);

/* Takes NULL. */
void codec_tools_free(struct codec_tools *tools);

/* The memory that the tools keep, without a shared picture, which is in what its fields need; frees it. An open field
 * may still be rendered afterwards. */
size_t codec_tools_bytes(const struct codec_tools *tools);
void codec_tools_trim(struct codec_tools *tools);

/* CPU time that processes of plug-ins have taken for these tools since this was asked; a system call for each process.
 */
uint64_t codec_tools_beside_ns(struct codec_tools *tools);

/* Pictures that are shared are those of one sample: the next field is one of another sample, or of another read. */
void codec_tools_begin_sample(struct codec_tools *tools);

/* What was decoded since the last call. */
struct codec_counts codec_tools_take_counts(struct codec_tools *tools);

/* Makes opening and rendering end with -ECANCELED soon after `is_wanted` says no: as workspace_set_wanted(). */
void codec_tools_set_wanted(struct codec_tools *tools, bool (*is_wanted)(const void *userdata), const void *userdata);

/* On which the thread's work is marked. Codecs mark the stages that they begin; who has the tools starts and stops it.
 */
struct stage_clock *codec_tools_clock(struct codec_tools *tools);

/* codec/pictures/shared.h: one decoding for several pictures of a sample. Private to this floor.
 *
 * Views, and fields by several names, show parts of one stored picture. The first of them that is served plans all of
 * them, and decodes the smallest box that holds what they need into memory, out of which each is then cut. A box of a
 * larger box has the pixels that it has alone, so nobody sees whether pictures are decoded together:
 *
 *      - If that is more work than decoding each alone (small crops in opposite corners), it is not done.
 *      - If there is no memory for it, its caller says so: codec_decode_alone().
 *      - If the larger box has damage, each picture is decoded alone, and the damage counts that lies in its own box.
 *
 * A shared picture is of one sample and one thread, and is forgotten when the worker goes on with another sample, or
 * when the last picture was cut from it. */
#pragma once

#include "daemon/codec/codec_type.h"

/* Is the picture of these bytes in memory? Then it need not be opened. */
bool shared_is_ready(const struct codec_tools *tools);

/* The codec's picture is open or shared, and planned; `source` is the part of the stored picture that it needs. Says in
 * `opened` how much memory it may take: alone, and with those that are served after it, if they shall share. */
void shared_plan(const struct codec *codec, struct codec_tools *tools, const struct codec_input *input,
                 const struct box *source, struct codec_opened *opened);

/* Decodes the shared picture if that was planned and not given up. 0; SHARED_ALONE: the codec's picture shall be
 * decoded alone, `ret_is_closed` says whether it has to be opened for that. */
#define SHARED_ALONE 1
int shared_decode(struct codec_tools *tools, bool *ret_is_closed);

/* Executes the plan of the codec's picture, which needs this box of the shared one. -ENOMEM. */
int shared_cut(struct codec_tools *tools, const struct box *source, uint8_t *out, size_t stride, struct why *why);

/* The picture of the open codec is done. If no other one is to be cut, the shared one is forgotten. */
void shared_close(struct codec_tools *tools);

/* Another sample comes. */
void shared_forget(struct codec_tools *tools);

/* data/looks_like.h: what files seem to be, by their names, and what bytes without a name seem to be. A format that finds
 * no kind in its files asks here, for every value of a field, so that the answer does not depend on which samples were
 * looked at. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/data/schema.h"

/* What a file of this name holds, by what follows after the last dot, in any case: FIELD_PICTURE, FIELD_SOUND, or
 * FIELD_BYTES for everything else. "jpg" alone is a name as well. */
enum field_kind kind_of_file(const char *name);

/* How a file of this name holds it: CODING_NPY for "x.npy" and "npy" alone, else CODING_PLAIN. */
enum field_coding coding_of_file(const char *name);

/* Do these bytes begin like a picture that the daemon can decode? Looks at the first bytes only. */
bool looks_like_picture(const uint8_t *bytes, size_t n_bytes);

/* How many bits the channel of a picture has that begins like this, if it has one channel of more than 8 bits; 0: it
 * has several channels, or 8 bits, or it is not known. Knows PNG, PGM, TIFF, and Pillow's pixels as MDS and LitData
 * keep them. */
unsigned deep_bits(const uint8_t *bytes, size_t n_bytes);

/* Of a TIFF, where its tags begin; 0: it is none. What is read from there on tells its bits, if they are not among the
 * first bytes. */
uint32_t tiff_tags_at(const uint8_t *bytes, size_t n_bytes);
unsigned tiff_deep_bits(const uint8_t *first_bytes, const uint8_t *tags, size_t n_bytes);

/* The same for a sound: WAV, FLAC, Ogg, MP3. */
bool looks_like_sound(const uint8_t *bytes, size_t n_bytes);

/* Are they valid UTF-8 without a NUL? Nothing at all is text. */
bool looks_like_text(const uint8_t *bytes, size_t n_bytes);

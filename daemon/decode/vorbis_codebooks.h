/* decode/vorbis_codebooks.h: how much memory the codebooks of an Ogg Vorbis file ask for.
 *
 * A book of a few bytes may say that it has four million entries, and a file may have 256 books: libvorbis would take
 * gigabytes for them. So they are counted first. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In numbers of four bytes: of each entry its vector, and about eight that libvorbis keeps beside it. Encoders stay
 * below a quarter of this. */
#define VORBIS_CODEBOOKS_MAX (1u << 20)

/* Is this the third header of a Vorbis stream, with codebooks that are whole and ask for no more than
 * VORBIS_CODEBOOKS_MAX? */
bool vorbis_codebooks_fit(const uint8_t *packet, size_t n_bytes);

/* client/cuda/kernels/images.h: the kernels as a driver loads them. `make kernels` makes them; generated/ holds them.
 *
 * Try the fatbin first. A driver refuses it if no machine code in it is for the GPU, or if the driver is older than the
 * toolkit that wrote it: then the text, which takes a moment to compile. */
#pragma once

#include <stddef.h>

/* Machine code for sm_80, sm_90, sm_100 and sm_120. */
extern const unsigned char dlk_fatbin[];
extern const size_t dlk_fatbin_bytes;

/* PTX, which ends with a zero: for sm_80 and all that came after. */
extern const char dlk_ptx[];

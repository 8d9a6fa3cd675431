/* With what every CPU has. */
#define TARGET
#define PRODUCTS(wides, factor) (((wides)&UINT32_MAX) * (factor))
#include "daemon/sound/vector_code.h"

const struct sound_code SOUND_CODE_PLAIN = VECTOR_CODE;

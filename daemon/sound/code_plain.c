/* With what every CPU has. */
#define TARGET
#include "daemon/sound/vector_code.h"

const struct sound_code SOUND_CODE_PLAIN = VECTOR_CODE;

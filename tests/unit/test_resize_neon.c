/* unit/test_resize_neon.c: test_resize.c for the NEON form, on a CPU that need not be an ARM: its source is compiled
 * once more, with the instructions as plain C (SIMDe). That shows its bits; `make check-neon` runs the real ones. */
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/arm/neon.h>

/* These take the place of the library's. */
#define RESIZE_EMULATED
#include "daemon/augment/resize/neon.c"

#define FORMS_FROM RESIZE_CODE_NEON
#define FORMS_TO   (RESIZE_CODE_NEON + 1)
#include "tests/unit/test_resize.c"

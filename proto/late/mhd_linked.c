#include "proto/late/mhd_functions.h"

int mhd_load(struct why *why) {
        return 0;
}

const struct mhd_late *mhd_late(void) {
        static const struct mhd_late LINKED = { MHD_FUNCTIONS(LATE_ADDRESS) };

        return &LINKED;
}

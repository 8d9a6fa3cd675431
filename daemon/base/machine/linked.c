#include "daemon/base/machine/linked.h"

const char *linked_libraries(void) {
        return "system";
}

const char *linked_text(void) {
        return "the machine's shared libraries";
}

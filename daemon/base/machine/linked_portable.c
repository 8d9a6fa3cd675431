/* The programs of the wheel (packaging/wheel). */
#include "daemon/base/machine/linked.h"

const char *linked_libraries(void) {
        return "portable";
}

const char *linked_text(void) {
        return "of its own; absent: staging over several nodes (MPI), Kerberos for proxies, host names that are not ASCII";
}

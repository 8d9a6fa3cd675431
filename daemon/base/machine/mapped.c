#include "daemon/base/machine/mapped.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGES_LOOKED_AT 64u /* pages in one call of mincore() */

/* Where this thread continues after a SIGBUS; NULL: it was not copying. */
static _Thread_local sigjmp_buf *volatile way_out;
static struct sigaction before;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void on_bus_error(int number, siginfo_t *info, void *context) {
        sigset_t mask;

        (void)info;
        (void)context;
        if (way_out) {
                /* Unblock the signal, which is blocked during its handler. The jump does not restore the mask: saving
                 * it would be a system call for each copy. */
                sigemptyset(&mask);
                sigaddset(&mask, SIGBUS);
                pthread_sigmask(SIG_UNBLOCK, &mask, NULL);
                siglongjmp(*way_out, 1);
        }
        sigaction(number, &before, NULL); /* the access raises it again, and then the former handler gets it */
}

static void mapped_take_signal(void) {
        struct sigaction action = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };

        sigemptyset(&action.sa_mask);
        sigaction(SIGBUS, &action, &before);
}

int mapped_copy(void *into, const void *from, size_t n_bytes) {
        sigjmp_buf here;

        pthread_once(&once, mapped_take_signal);
        if (sigsetjmp(here, 0) != 0) {
                way_out = NULL;
                return -EIO;
        }
        way_out = &here;
        memcpy(into, from, n_bytes);
        way_out = NULL;
        return 0;
}

bool mapped_is_there(const void *byte) {
        char copy;

        return mapped_copy(&copy, byte, sizeof(copy)) == 0;
}

bool mapped_is_resident(const void *bytes, size_t n_bytes) {
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)bytes / page * page;
        uintptr_t end = (uintptr_t)bytes + n_bytes;
        unsigned char pages[PAGES_LOOKED_AT];

        while (at < end) {
                uintptr_t n = (end - at + page - 1) / page;

                if (n > PAGES_LOOKED_AT)
                        n = PAGES_LOOKED_AT;
                if (mincore((void *)at, n * page, pages) < 0)
                        return false;
                for (uintptr_t i = 0; i < n; i++)
                        if (!(pages[i] & 1))
                                return false;
                at += n * page;
        }
        return true;
}

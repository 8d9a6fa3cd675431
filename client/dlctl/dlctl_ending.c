#include "client/dlctl/dlctl_ending.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/dlctl/command.h"

static int first_error; /* of writing to standard output; 0: none is known */

void output_failed(int error) {
        if (first_error == 0)
                first_error = error;
}

int output_flush(void) {
        if (fflush(stdout) != 0)
                output_failed(errno);
        if (first_error != 0)
                return -first_error;
        return ferror(stdout) ? -EIO : 0;
}

/* Has the other end of the pipe, socket or terminal been closed? */
static bool reader_has_gone(void) {
        struct pollfd item = { .fd = STDOUT_FILENO, .events = POLLOUT };

        return poll(&item, 1, 0) == 1 && (item.revents & (POLLERR | POLLHUP)) != 0;
}

/* The errno with which output was lost; 0: none was. */
static int lost_by(void) {
        int r = output_flush();

        /* stdio wrote while a command was still printing, and nobody saw the errno. */
        return r < 0 && first_error == 0 && reader_has_gone() ? EPIPE : -r;
}

int output_end(int code) {
        int error = lost_by();

        if (error == 0)
                return code;
        if (error != EPIPE)
                fail(EXIT_REFUSED, "cannot write to standard output: %s", strerror(error));
        else if (code == EXIT_DONE || code == EXIT_REFUSED) {
                signal(SIGPIPE, SIG_DFL);
                raise(SIGPIPE);
                return 128 + SIGPIPE; /* somebody has blocked it */
        }
        return code == EXIT_DONE ? EXIT_REFUSED : code;
}

#include "client/lib/daemon/silent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "proto/base/cleanup.h"

#define NAME "dataloaderd" /* what the kernel calls the process */

/* The process that listens on the other end; 0: it cannot be known, as from within a container. */
static int peer_of(int socket) {
        struct ucred peer;
        socklen_t n = sizeof(peer);

        return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && peer.pid > 0 ? (int)peer.pid : 0;
}

/* The state of a daemon's process, as in proc(5): 'T' is stopped. '\0': it is not a daemon's, or unknown. */
static char silent_state_of(int pid) {
        _cleanup_(closep) int fd = -1;
        char path[32], text[128], name[32], state = '\0';
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
        if (n <= 0)
                return '\0';
        text[n] = '\0';
        if (sscanf(text, "%*d (%31[^)]) %c", name, &state) != 2 || strcmp(name, NAME) != 0)
                return '\0';
        return state;
}

bool dli_daemon_is_stopped(int socket) {
        int pid = peer_of(socket);
        char state = pid > 0 ? silent_state_of(pid) : '\0';

        return state == 'T' || state == 't';
}

int dli_daemon_silent(int socket, const char *path, struct why *reason) {
        int pid = peer_of(socket);

        switch (pid > 0 ? silent_state_of(pid) : '\0') {
        case '\0':
                return why_set(reason, -ETIMEDOUT, "the daemon at %s does not answer: it is stopped or overloaded",
                               path);
        case 'T':
                return why_set(reason, -ETIMEDOUT,
                               "the daemon at %s does not answer: its process %d is stopped. Let it go on: kill -CONT "
                               "%d",
                               path, pid, pid);
        case 't':
                return why_set(reason, -ETIMEDOUT,
                               "the daemon at %s does not answer: its process %d is held by a debugger", path, pid);
        default:
                return why_set(reason, -ETIMEDOUT,
                               "the daemon at %s does not answer: its process %d is overloaded, or hangs", path, pid);
        }
}

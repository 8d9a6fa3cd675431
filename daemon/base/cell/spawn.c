#include "daemon/base/cell/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/cell/cell_messages.h"
#include "proto/base/cleanup.h"

/* What a process needs to find its libraries, and what sanitizers are told. The rest may hold secrets. */
static const char *const KEPT[] = { "LD_LIBRARY_PATH=", "ASAN_OPTIONS=", "UBSAN_OPTIONS=", "TSAN_OPTIONS=",
                                    "GLIBC_TUNABLES=" };

static void keep_environment(char *variables[ARRAY_SIZE(KEPT) + 1]) {
        size_t n = 0;

        for (char **variable = environ; *variable; variable++)
                for (size_t i = 0; i < ARRAY_SIZE(KEPT) && n < ARRAY_SIZE(KEPT); i++)
                        if (strncmp(*variable, KEPT[i], strlen(KEPT[i])) == 0)
                                variables[n++] = *variable;
        variables[n] = NULL;
}

/* Standard output and error: of installed code as dlplugin.h says. */
static int set_up_writing(posix_spawn_file_actions_t *actions, int writes) {
        int error;

        if (writes < 0)
                return posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        error = posix_spawn_file_actions_adddup2(actions, writes, STDOUT_FILENO);
        return error == 0 ? posix_spawn_file_actions_adddup2(actions, writes, STDERR_FILENO) : error;
}

static int spawn_set_up(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes, int channel, int writes) {
        sigset_t none, all;
        int error;

        sigemptyset(&none);
        sigfillset(&all);
        error = posix_spawnattr_setflags(attributes,
                                         POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
        if (error == 0)
                error = posix_spawnattr_setpgroup(attributes, 0);
        if (error == 0)
                error = posix_spawnattr_setsigdefault(attributes, &all);
        if (error == 0)
                error = posix_spawnattr_setsigmask(attributes, &none);
        if (error == 0)
                error = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        if (error == 0)
                error = set_up_writing(actions, writes);
        if (error == 0)
                error = posix_spawn_file_actions_adddup2(actions, channel, CELL_CHANNEL);
        return -error;
}

/* `writes`: where its output goes; -1: it is installed code. */
static int spawn_spawn(const char *program, const char *kind, int channel, int writes, pid_t *ret_pid) {
        const char *words[] = { "dataloaderd", CELL_ARGUMENT, kind, NULL };
        char *variables[ARRAY_SIZE(KEPT) + 1];
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        int r;

        keep_environment(variables);
        if (posix_spawn_file_actions_init(&actions) != 0)
                return -ENOMEM;
        if (posix_spawnattr_init(&attributes) != 0) {
                posix_spawn_file_actions_destroy(&actions);
                return -ENOMEM;
        }
        r = spawn_set_up(&actions, &attributes, channel, writes);
        if (r == 0)
                r = -posix_spawn(ret_pid, program, &actions, &attributes, (char *const *)(uintptr_t)words,
                                 writes < 0 ? environ : variables);
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&actions);
        return r;
}

/* A descriptor that is dup2()ed onto itself would keep its mark to be closed, and none may lie where another one is put
 * first. */
static int above_all(int *fd) {
        int higher;

        if (*fd < 0 || *fd > CELL_CHANNEL)
                return 0;
        higher = fcntl(*fd, F_DUPFD_CLOEXEC, CELL_CHANNEL + 1);
        if (higher < 0)
                return -errno;
        close(*fd);
        *fd = higher;
        return 0;
}

int spawn_cell(const char *program, const char *kind, enum cell_trust trust, struct spawned *ret_spawned) {
        _cleanup_(closep) int channel = -1, theirs = -1, written = -1, writes = -1;
        int pair[2], pipes[2], r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        channel = pair[0];
        theirs = pair[1];
        if (trust == CELL_STRANGE) {
                if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK) < 0)
                        return -errno;
                written = pipes[0];
                writes = pipes[1];
        }
        r = above_all(&theirs);
        if (r == 0)
                r = above_all(&writes);
        if (r == 0)
                r = spawn_spawn(program, kind, theirs, writes, &ret_spawned->pid);
        if (r < 0)
                return r;
        ret_spawned->channel = take_fd(&channel);
        ret_spawned->written = take_fd(&written);
        return 0;
}

void spawned_hang_up(struct spawned *spawned) {
        closep(&spawned->channel);
        spawned->channel = -1;
}

void spawned_close(struct spawned *spawned) {
        spawned_hang_up(spawned);
        if (spawned->written >= 0)
                close(spawned->written);
}

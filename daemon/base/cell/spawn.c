#include "daemon/base/cell/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/cell/words.h"
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

static int set_up(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes, int channel, int writes) {
        sigset_t none, all;
        int error;

        sigemptyset(&none);
        sigfillset(&all);
        error = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
        if (error == 0)
                error = posix_spawnattr_setsigdefault(attributes, &all);
        if (error == 0)
                error = posix_spawnattr_setsigmask(attributes, &none);
        if (error == 0)
                error = posix_spawn_file_actions_adddup2(actions, channel, CELL_CHANNEL);
        if (error == 0)
                error = posix_spawn_file_actions_adddup2(actions, writes, STDOUT_FILENO);
        if (error == 0)
                error = posix_spawn_file_actions_adddup2(actions, writes, STDERR_FILENO);
        return -error;
}

static int spawn(const char *program, const char *kind, int channel, int writes, pid_t *ret_pid) {
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
        r = set_up(&actions, &attributes, channel, writes);
        if (r == 0)
                r = -posix_spawn(ret_pid, program, &actions, &attributes, (char *const *)(uintptr_t)words, variables);
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&actions);
        return r;
}

/* A descriptor that is dup2()ed onto itself would keep its mark to be closed. */
static int above_standard(int *fd) {
        int higher;

        if (*fd > STDERR_FILENO)
                return 0;
        higher = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (higher < 0)
                return -errno;
        close(*fd);
        *fd = higher;
        return 0;
}

int spawn_cell(const char *program, const char *kind, struct spawned *ret_spawned) {
        int pair[2], pipes[2], r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK) < 0) {
                r = -errno;
                close(pair[0]);
                close(pair[1]);
                return r;
        }
        r = above_standard(&pair[1]);
        if (r == 0)
                r = above_standard(&pipes[1]);
        if (r == 0)
                r = spawn(program, kind, pair[1], pipes[1], &ret_spawned->pid);
        close(pair[1]);
        close(pipes[1]);
        if (r < 0) {
                close(pair[0]);
                close(pipes[0]);
                return r;
        }
        ret_spawned->channel = pair[0];
        ret_spawned->written = pipes[0];
        return 0;
}

void spawned_close(struct spawned *spawned) {
        close(spawned->channel);
        close(spawned->written);
}

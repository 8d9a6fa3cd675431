#include "daemon/staging/nodes/launcher_openmpi_late.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

#define ORTED "orted"

static void launcher_openmpi_late_closedirp(DIR **folder) {
        if (*folder)
                closedir(*folder);
}

/* Reads a file of /proc. Returns its bytes, NUL behind them; 0 if there is none. */
static size_t read_proc(const char *path, char *into, size_t size) {
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
        size_t n_bytes = 0;
        ssize_t n;

        while (fd >= 0 && n_bytes < size - 1 && (n = read(fd, into + n_bytes, size - 1 - n_bytes)) > 0)
                n_bytes += (size_t)n;
        into[n_bytes] = '\0';
        return n_bytes;
}

static const char *find_host(const char *word, const char *hosts, size_t *ret_length) {
        for (const char *host = hosts; *host;) {
                size_t length = strcspn(host, ",");

                if (length > 0 && strlen(word) == length && memcmp(word, host, length) == 0) {
                        *ret_length = length;
                        return host;
                }
                host += length + (host[length] == ',');
        }
        return NULL;
}

const char *late_host_of(const char *arguments, size_t n_bytes, const char *hosts, size_t *ret_length) {
        const char *host = NULL, *word = arguments;
        bool is_agent = false;

        while (word < arguments + n_bytes) {
                if (!host)
                        host = find_host(word, hosts, ret_length);
                else if (strstr(word, ORTED)) /* the command line comes behind the host */
                        is_agent = true;
                word += strlen(word) + 1;
        }
        return is_agent ? host : NULL;
}

static uint32_t launcher_openmpi_late_look_at(const char *children, const char *hosts, char *names, size_t size) {
        uint32_t n_late = 0;

        for (const char *place = children; *place;) {
                char path[64], arguments[4096], *end;
                long pid = strtol(place, &end, 10);
                const char *host;
                size_t length;

                if (end == place)
                        break;
                place = end + strspn(end, " ");
                snprintf(path, sizeof(path), "/proc/%ld/cmdline", pid);
                host = late_host_of(arguments, read_proc(path, arguments, sizeof(arguments)), hosts, &length);
                if (host) {
                        size_t n = strlen(names);

                        snprintf(names + n, size - n, "%s%.*s", n > 0 ? ", " : "", (int)length, host);
                        n_late++;
                }
        }
        return n_late;
}

/* Any of its threads may have started them. */
uint32_t late_hosts(pid_t mpirun, const char *hosts, char *names, size_t size) {
        _cleanup_(launcher_openmpi_late_closedirp) DIR *tasks = NULL;
        struct dirent *task;
        uint32_t n_late = 0;
        char path[320];

        names[0] = '\0';
        snprintf(path, sizeof(path), "/proc/%d/task", (int)mpirun);
        tasks = opendir(path);
        while (tasks && (task = readdir(tasks)) != NULL) {
                char children[16384];

                if (task->d_name[0] == '.')
                        continue;
                snprintf(path, sizeof(path), "/proc/%d/task/%s/children", (int)mpirun, task->d_name);
                if (read_proc(path, children, sizeof(children)) > 0)
                        n_late += launcher_openmpi_late_look_at(children, hosts, names, size);
        }
        return n_late;
}

#include "tests/faults/scene_origin.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Answers "GET /path" after "GET /path" with whole files. */
static void serve(int connection, const char *folder) {
        char head[8192], path[9000], answer[100];
        size_t n = 0;

        for (;;) {
                ssize_t got = recv(connection, head + n, sizeof(head) - 1 - n, 0);
                struct stat status;
                off_t at = 0;
                int fd;

                if (got <= 0)
                        return;
                n += (size_t)got;
                head[n] = '\0';
                if (!strstr(head, "\r\n\r\n"))
                        continue;
                head[strcspn(head + 5, " ") + 5] = '\0';
                snprintf(path, sizeof(path), "%s/%s", folder, head + 5);
                fd = open(path, O_RDONLY | O_CLOEXEC);
                if (fd < 0 || fstat(fd, &status) < 0)
                        return;
                snprintf(answer, sizeof(answer), "HTTP/1.1 200 OK\r\nContent-Length: %lld\r\n\r\n",
                         (long long)status.st_size);
                if (send(connection, answer, strlen(answer), MSG_NOSIGNAL) < 0)
                        return;
                while (at < status.st_size && sendfile(connection, fd, &at, (size_t)(status.st_size - at)) > 0)
                        ;
                close(fd);
                n = 0;
        }
}

static void serve_all(int listener, const char *folder) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGCHLD, SIG_IGN);
        for (;;) {
                int connection = accept(listener, NULL, NULL);

                if (connection >= 0 && fork() == 0) {
                        prctl(PR_SET_PDEATHSIG, SIGKILL);
                        serve(connection, folder);
                        _exit(0);
                }
                close(connection);
        }
}

static FILE *listing;
static size_t n_folder;
static unsigned listed_port;

static int list(const char *path, const struct stat *status, int kind, struct FTW *ftw) {
        if (kind == FTW_F)
                fprintf(listing, "{\"path\": \"%s\", \"size\": %lld, \"urls\": [\"http://127.0.0.1:%u%s\"]}\n",
                        path + n_folder + 1, (long long)status->st_size, listed_port, path + n_folder);
        return 0;
}

pid_t scene_origin_start(struct scene *scene, const char *folder, const char *manifest) {
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        socklen_t size = sizeof(address);
        pid_t server = -1;

        listing = fopen(manifest, "we");
        if (listener < 0 || !listing || bind(listener, (struct sockaddr *)&address, size) < 0 ||
            listen(listener, 64) < 0 || getsockname(listener, (struct sockaddr *)&address, &size) < 0) {
                scene_problem(scene, "no origin over http: %m");
        } else {
                n_folder = strlen(folder);
                listed_port = ntohs(address.sin_port);
                nftw(folder, list, 16, FTW_PHYS);
                server = fork();
                if (server == 0)
                        serve_all(listener, folder);
        }
        if (listing)
                fclose(listing);
        if (listener >= 0)
                close(listener);
        return server;
}

void scene_origin_stop(pid_t server) {
        if (server <= 0)
                return;
        kill(server, SIGKILL);
        waitpid(server, NULL, 0);
}

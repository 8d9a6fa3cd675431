#include "proto/job_group.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

#define TEXT_MAX (16u << 10)

/* A part of the text. */
struct span {
        const char *at;
        size_t n;
};

static bool job_group_begins(struct span span, const char *text) {
        return span.n >= strlen(text) && memcmp(span.at, text, strlen(text)) == 0;
}

static bool ends(struct span span, const char *text) {
        size_t n = strlen(text);

        return span.n >= n && memcmp(span.at + span.n - n, text, n) == 0;
}

static const char *job_group_find(struct span span, const char *text) {
        return memmem(span.at, span.n, text, strlen(text));
}

/* The next name of a path after `name`, which begins empty at the path's first byte. */
static bool next_name(struct span path, struct span *name) {
        const char *end = path.at + path.n, *at = name->at + name->n, *slash;

        while (at < end && *at == '/')
                at++;
        slash = memchr(at, '/', (size_t)(end - at));
        *name = (struct span){ at, (size_t)((slash ? slash : end) - at) };
        return name->n > 0;
}

static bool is_job(struct span name) {
        return job_group_begins(name, "job_") && name.n > 4 && isdigit((unsigned char)name.at[4]);
}

/* "pod1234", or "kubepods-burstable-pod1234.slice" if systemd keeps the groups. */
static bool is_pod(struct span name) {
        return job_group_begins(name, "pod") || (job_group_begins(name, "kubepods") && job_group_find(name, "-pod"));
}

/* "0123...ef", or "libpod-0123...ef": the number of a container. */
static bool is_container(struct span name) {
        size_t n = 0;

        while (n < name.n && isxdigit((unsigned char)name.at[name.n - 1 - n]))
                n++;
        return n == 64;
}

/* A unit of the system's, or a container, is one whatever its processes make of it: they may be allowed to make groups
 * below their own, with names of their choice. Users' units are all in one slice, and Slurm's jobs in one scope. */
static struct span job_group_unit_of(struct span path) {
        struct span name = { path.at, 0 };

        while (next_name(path, &name) && !job_group_begins(name, "user.slice")) {
                bool is_unit = (ends(name, ".service") || ends(name, ".scope")) && !job_group_find(name, "slurm");

                if (is_unit || is_container(name))
                        return (struct span){ path.at, (size_t)(name.at + name.n - path.at) };
        }
        return path;
}

/* The path up to the job or pod; empty if there is none in it. */
static struct span job_group_job_of(struct span path) {
        struct span name = { path.at, 0 };
        bool has_pods = false;

        while (next_name(path, &name)) {
                has_pods = has_pods || job_group_begins(name, "kubepods");
                if (is_job(name) || (has_pods && is_pod(name)))
                        return (struct span){ path.at, (size_t)(name.at + name.n - path.at) };
        }
        return (struct span){ path.at, 0 };
}

/* The path up to the last service that ends with all that is in it. */
static struct span service_of(struct span path) {
        const char *user = job_group_find(path, "/user.slice/");
        struct span name = { user, 0 };
        size_t n;

        if (!user)
                return path.n == 1 ? (struct span){ path.at, 0 } : path;
        n = (size_t)(user - path.at);
        while (next_name(path, &name))
                if (ends(name, ".service") && !job_group_begins(name, "user@"))
                        n = (size_t)(name.at + name.n - path.at);
        return (struct span){ path.at, n };
}

static uint64_t job_group_number_of(struct span span) {
        uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a */

        if (span.n == 0)
                return 0;
        for (size_t i = 0; i < span.n; i++)
                hash = (hash ^ (uint8_t)span.at[i]) * 0x100000001b3ull;
        return hash ? hash : 1;
}

/* "4:memory:/slurm/uid_1000/job_7/step_0": the number of the hierarchy, its controllers, the path. */
static bool job_group_split(struct span line, struct span *ret_hierarchy, struct span *ret_path) {
        const char *colon = memchr(line.at, ':', line.n), *slash;

        colon = colon ? memchr(colon + 1, ':', line.n - (size_t)(colon + 1 - line.at)) : NULL;
        if (!colon)
                return false;
        slash = colon + 1;
        *ret_hierarchy = (struct span){ line.at, (size_t)(slash - line.at) };
        *ret_path = (struct span){ slash, line.n - ret_hierarchy->n };
        return job_group_begins(*ret_path, "/");
}

uint64_t dlp_job_group_parse(const char *text) {
        uint64_t service = 0;

        for (const char *end = strchr(text, '\n'); end; text = end + 1, end = strchr(text, '\n')) {
                struct span hierarchy, path, job;

                if (!job_group_split((struct span){ text, (size_t)(end - text) }, &hierarchy, &path))
                        continue;
                path = job_group_unit_of(path);
                job = job_group_job_of(path);
                if (job.n > 0)
                        return job_group_number_of(job);
                if (service == 0 && (job_group_begins(hierarchy, "0::") || ends(hierarchy, ":name=systemd:")))
                        service = job_group_number_of(service_of(path));
        }
        return service;
}

uint64_t dlp_job_group(const char *path) {
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
        char text[TEXT_MAX + 1];
        size_t n_read = 0;
        ssize_t n = 1;

        while (fd >= 0 && n > 0 && n_read < TEXT_MAX) {
                n = read(fd, text + n_read, TEXT_MAX - n_read);
                n_read += n > 0 ? (size_t)n : 0;
        }
        text[n_read] = '\0';
        return dlp_job_group_parse(text);
}

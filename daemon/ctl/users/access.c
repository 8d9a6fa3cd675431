#include "daemon/ctl/users/access.h"
#include "proto/base/nearest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59 /* Linux 4.13 */
#endif

#define GROUPS_MAX 65536u /* the kernel's limit */

void access_read_groups(struct session *session) {
        socklen_t length = 64 * sizeof(gid_t);

        for (int i = 0; i < 2; i++) { /* a second time if there are more groups than expected */
                gid_t *groups = calloc(1, length);

                if (!groups)
                        return;
                if (getsockopt(session->fd, SOL_SOCKET, SO_PEERGROUPS, groups, &length) == 0) {
                        session->groups = groups;
                        session->n_groups = length / sizeof(gid_t);
                        return;
                }
                free(groups);
                if (errno != ERANGE || length > GROUPS_MAX * sizeof(gid_t))
                        return;
        }
}

bool access_is_admin(const struct session *session) {
        return session->peer.uid == 0 || session->peer.uid == geteuid();
}

static bool is_in_group(const struct session *session, gid_t group) {
        if (session->peer.gid == group)
                return true;
        for (size_t i = 0; i < session->n_groups; i++)
                if (session->groups[i] == group)
                        return true;
        return false;
}

static bool is_named(const struct session *session, const struct catalog_entry *entry) {
        for (size_t i = 0; i < entry->allow.n_groups; i++)
                if (is_in_group(session, entry->allow.groups[i]))
                        return true;
        return false;
}

bool access_paths(const struct session *session) {
        return session->server->options.serves_paths && access_is_admin(session);
}

bool access_dataset(const struct session *session, const struct catalog_entry *entry) {
        if (entry->is_path)
                return access_is_admin(session);
        return entry->allow.n_groups == 0 || access_is_admin(session) || is_named(session, entry);
}

static struct catalog_entry *find_entry(const struct session *session, const char *name) {
        struct catalog_entry *entry;

        TAILQ_FOREACH(entry, &session->server->options.catalog->entries, entry)
                if (strcmp(entry->name, name) == 0)
                        return entry;
        return NULL;
}

/* Who joins a job sees all of its datasets, so each of them must name the user. */
bool access_job(const struct session *session, const struct job *job) {
        struct catalog *catalog = session->server->options.catalog;
        char name[DLP_DATASET_MAX];
        const char *at = NULL;

        if (job->uid == session->peer.uid || access_is_admin(session))
                return true;
        while (catalog_next_name(catalog, job->terms.dataset, &at, name)) {
                const struct catalog_entry *entry = find_entry(session, name);

                if (!entry || !is_named(session, entry))
                        return false;
        }
        return true;
}

static int unknown_dataset(const struct session *session, const char *name, struct why *why) {
        const struct catalog_entry *entry;
        struct nearest nearest;
        char known[256] = "";
        size_t n = 0;

        nearest_begin(&nearest, name, strlen(name));
        TAILQ_FOREACH(entry, &session->server->options.catalog->entries, entry) {
                if (entry->is_path || !access_dataset(session, entry))
                        continue;
                nearest_offer(&nearest, entry->name);
                if (n < sizeof(known))
                        n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s", n ? ", " : "", entry->name);
        }
        if (session->server->options.is_private)
                return why_set(why, -ENOENT,
                               "dataset: \"%s\" is a name, and a private daemon has no names; write a path, as in ./%s",
                               name, name);
        return why_set(why, -ENOENT, "dataset: there is no \"%s\"%s; %s%s", name, nearest_hint(&nearest),
                       known[0] ? "the configuration has: " : "the configuration names no dataset", known);
}

int access_find_dataset(const struct session *session, const char *name, struct catalog_entry **ret_entry,
                        struct why *why) {
        struct catalog_entry *entry = find_entry(session, name);

        if (!entry)
                return unknown_dataset(session, name, why);
        if (!access_dataset(session, entry))
                return why_set(why, -EACCES,
                               "dataset: \"%s\" is for members of these groups: %s; ask for membership and log "
                               "in again",
                               name, entry->allow.text);
        *ret_entry = entry;
        return 0;
}

int access_find_datasets(const struct session *session, const char *text, struct why *why) {
        struct catalog_entry *entry;
        char name[DLP_DATASET_MAX];
        const char *at = NULL;
        int r = 0;

        while (r == 0 && catalog_next_name(session->server->options.catalog, text, &at, name))
                r = access_find_dataset(session, name, &entry, why);
        return r;
}

/* "1002/train": an admin names the user of the job. A name alone means the admin's own job: otherwise any user could
 * take the name first. */
static struct job *find_named_users_job(const struct session *session, const char *name) {
        unsigned uid;
        int n = 0;

        if (!access_is_admin(session) || sscanf(name, "%u/%n", &uid, &n) != 1 || n == 0)
                return NULL;
        return job_find(&session->server->jobs, uid, name + n);
}

struct job *access_find_job(const struct session *session, const char *name, const char *dataset) {
        struct jobs *jobs = &session->server->jobs;
        struct job *job = job_find(jobs, session->peer.uid, name);

        if (!job)
                job = find_named_users_job(session, name);
        if (job || access_is_admin(session))
                return job;
        LIST_FOREACH(job, jobs, entry)
                if (strcmp(job->name, name) == 0 && strcmp(job->terms.dataset, dataset) == 0 &&
                    access_job(session, job))
                        return job;
        return NULL;
}

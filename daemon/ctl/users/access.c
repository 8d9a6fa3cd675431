#include "daemon/ctl/users/access.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/machine/admins.h"
#include "proto/base/nearest.h"

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59 /* Linux 4.13 */
#endif

#define GROUPS_MAX 65536u /* the kernel's limit */

static void access_read_groups(struct session *session) {
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

void access_identify(struct session *session) {
        socklen_t length = sizeof(session->peer);

        getsockopt(session->fd, SOL_SOCKET, SO_PEERCRED, &session->peer, &length);
        access_read_groups(session);
        session->process = process_of_peer(session->fd, session->peer.pid);
        session->authority = authority_of(&session->process);
}

static bool has_authority(const struct session *session) {
        return session->peer.uid == 0 ? session->authority.is_root : session->authority.is_ours;
}

static bool is_named_admin(const struct session *session) {
        const struct admins *admins = &session->server->options.settings->admin_list;

        if (admins_has_user(admins, session->peer.uid) || admins_has_group(admins, session->peer.gid))
                return true;
        for (size_t i = 0; i < session->n_groups; i++)
                if (admins_has_group(admins, session->groups[i]))
                        return true;
        return false;
}

/* A private daemon is its user's in each of his containers. */
bool access_is_admin(const struct session *session) {
        bool is_own_user = session->peer.uid == geteuid();

        if (is_own_user && session->server->options.is_private)
                return true;
        return has_authority(session) && (is_own_user || is_named_admin(session));
}

int access_refuse(struct session *session, const char *what, const char *to_do, struct why *why) {
        const char *more = has_authority(session)
                                   ? ""
                                   : "; who is in a container, or lacks CAP_SYS_ADMIN or CAP_DAC_OVERRIDE, is none";

        return why_set(why, -EPERM,
                       "%s: only admins may %s, not %s; they are the daemon's own user and whom `admins` of its "
                       "configuration names (root, unless it is set)%s",
                       what, to_do, session_user(session), more);
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

/* Root reads them by itself, and so does the daemon's own user. */
static bool may_read_paths(const struct session *session) {
        return access_is_admin(session) && (session->peer.uid == 0 || session->peer.uid == geteuid());
}

bool access_paths(const struct session *session) {
        return session->server->options.settings->paths && may_read_paths(session);
}

bool access_dataset(const struct session *session, const struct catalog_entry *entry) {
        if (entry->is_path)
                return may_read_paths(session);
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

static int access_unknown_dataset(const struct session *session, const char *name, struct why *why) {
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

        if (!entry || (entry->is_path && !access_dataset(session, entry))) /* that root uses it is nobody's business */
                return access_unknown_dataset(session, name, why);
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

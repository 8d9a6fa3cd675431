/* ctl/users/access.h: who may see and do what. Users are separated: a stranger does not see another user's jobs, ranks and
 * processes. docs/tenants.md says the same in prose.
 *
 * The kernel says who a client is, at the moment when it connected: uid, gid, and the supplementary groups. */
#pragma once

#include <stdbool.h>

#include "daemon/ctl/session.h"

/* Reads who the peer of `session->fd` is: user, groups, process, and what that may do on this machine. Without memory
 * there are no groups. */
void access_identify(struct session *session);

/* The daemon's own user, and whom the setting `admins` names, root if it names nobody: they see everything and have no
 * limits. A process that a container keeps from what its user may do here is a plain user (authority.h). */
bool access_is_admin(const struct session *session);

/* Refuses what only an admin may do: "WHAT: only admins may DO, ...", with who they are. -EPERM. */
int access_refuse(struct session *session, const char *what, const char *to_do, struct why *why);

/* May it name datasets by their paths? Of the admins root and the daemon's own user, if the daemon serves paths: such a
 * client could read whatever the daemon reads by itself, so it gets nothing that it may not have. Nobody else: the
 * daemon opens files with its own rights. */
bool access_paths(const struct session *session);

/* May it use the dataset and see its state? Those of paths are for admins. */
bool access_dataset(const struct session *session, const struct catalog_entry *entry);

/* May it see the job, and join it? The job's own user, an admin, and members of a group that the dataset's `allow`
 * names. */
bool access_job(const struct session *session, const struct job *job);

/* Finds a dataset by its name. -ENOENT: the text lists the datasets that the session may use; -EACCES: the text lists
 * the groups that may use it. */
int access_find_dataset(const struct session *session, const char *name, struct catalog_entry **ret_entry,
                        struct why *why);

/* May it use all datasets of the text (catalog_next_name())? Errors as above, of the first that it may not use. */
int access_find_datasets(const struct session *session, const char *text, struct why *why);

/* The job that a rank with this name and dataset belongs to: a job of its own user, otherwise one that it may join;
 * NULL: none. An admin joins another user's job with the uid before the name, "1002/train". */
struct job *access_find_job(const struct session *session, const char *name, const char *dataset);

/* base/machine/beneath.h: files within a folder, wherever links in it lead.
 *
 * Who may write into a dataset's folder may put links there. The daemon reads more than he may, so it must not follow
 * them out of the folder, else he reads other users' files through it. Whether it does is a property of the folder's
 * descriptor, so it holds for whoever has the descriptor, and for its copies: in a folder that was opened to be stayed
 * in, a link (or "..") that leads out of it, an absolute link, and a link of /proc are refused with EXDEV, and nothing
 * beyond the folder is looked at. In any other folder these functions are openat() and fstatat().
 *
 * All may block for the file system. Any thread. */
#pragma once

#include <linux/openat2.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "proto/base/why.h"

#define BENEATH_RESOLVE (RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS) /* for openat2() by other means */

/* Opens a folder (O_PATH), which may be reached through links itself. `follows`: links in it may lead out of it.
 * Returns the descriptor, which is the caller's, or an errno with `why`, which names the path. */
int beneath_root(const char *path, bool follows, struct why *why);

/* As openat(): -1 and errno. Links are followed as the folder says. An absolute path is one that the configuration
 * names (formats take none from data): links to such a file may not lead out of the file's own folder. */
int beneath_open(int root_fd, const char *path, int flags);

/* As fstatat() that follows links: -1 and errno. */
int beneath_stat(int root_fd, const char *path, struct stat *ret_status);

/* The same for an entry of a folder that was opened beneath the root: `path` is its path from the root, of which `name`
 * is the last part. Costs no more than an fstatat() unless the entry is a link. */
int beneath_stat_entry(int root_fd, const char *path, int dir_fd, const char *name, struct stat *ret_status);

/* The same for any path that the configuration names, also one with "../" at its beginning. An absolute path of a file
 * in the root, whose path is `root`, is that file's. */
int beneath_open_named(int root_fd, const char *root, const char *path, int flags);
int beneath_stat_named(int root_fd, const char *root, const char *path, struct stat *ret_status);

/* staging/run/owner.h: root stages as the user whose folder the dataset lies in.
 *
 * What a staging leaves is changed and removed by the next one, which the unit runs as the daemon's user: files of
 * root's would be in its way. */
#pragma once

#include "proto/base/why.h"

/* Becomes the owner of the folder in which `path` lies, if root runs the program and it is another user's. Before there
 * is any thread. 0, also where nothing is to be done; else an errno, and the program must end. */
int owner_become(const char *path, struct why *why);

/* base/work/closer.h: closes what strangers have sent.
 *
 * The last close() of a descriptor takes as long as its object wants: a TCP socket with SO_LINGER waits until its peer
 * has read, a file of a FUSE server waits for the server, memory of some GiB takes seconds. A client can send such a
 * descriptor, and may do so in a packet that nobody reads, so that it is closed with the connection's socket. Therefore
 * the main thread closes only what cannot wait; a few threads do the rest. What can be interrupted (lingering) is
 * interrupted after CLOSER_PATIENCE_NS. What cannot holds one thread, and one user at most two of them; further ones
 * stay open until it goes on, or until the daemon ends: an ending process does not linger. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "proto/base/why.h"

#define CLOSER_THREADS      8u
#define CLOSER_USER_THREADS 2u
#define CLOSER_MAX          4096u     /* descriptors that wait: above what all connections together can leave at once */
#define CLOSER_ROOM         64u       /* from this number on no connection is accepted for a moment */
#define CLOSER_USER_MAX     16u       /* of one user: from this number on none is received of him */
#define CLOSER_PATIENCE_NS  10000000u /* for one close() */
#define CLOSER_END_NS       500000000u

/* Before that and after the end, everything is closed by its caller. */
int closer_start(struct why *why);

/* Waits a moment for what is being closed. What hangs is left behind. */
void closer_stop(void);

/* Closes a descriptor that this user sent. */
void closer_close(int fd, uid_t user);

/* Ends a connection of this user: shuts it down, reads away what is left in its queue, and closes it. With unread bytes
 * in the queue the kernel would send the client a reset in place of our last message. After that anybody may close a
 * duplicate of `fd`. */
void closer_end_connection(int fd, uid_t user);

/* May a connection be accepted, may a descriptor of this user be received? */
bool closer_has_room(void);
bool closer_has_room_for(uid_t user);

/* From now on the kernel refuses descriptors that are sent to this socket, or to connections of this listening one.
 * Does nothing before Linux 6.16. */
void closer_refuse_descriptors(int fd);

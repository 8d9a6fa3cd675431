/* tests/fuzz/outside.h: the clients of the daemon inside, good and bad: connections that a fuzzer opens, uses as it
 * likes and drops.
 *
 * Client and daemon are one thread: whoever waits for an answer steps the daemon. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/dataloader.pb-c.h"
#include "proto/ring.h"
#include "tests/fuzz/inside.h"

#define CONNECTIONS 6u

struct connection {
        int fd;        /* -1: not connected */
        int copy;      /* another descriptor of the same socket, as a forked child would hold; -1 */
        pid_t process; /* that connected it, if not this one; 0 */
        bool is_deaf;  /* it reads no replies: none may be waited for */
        uint64_t id;   /* of the last request */

        /* Of the ring, once it attached. */
        int control_fd, payload_fd, release_fd; /* -1 */
        const struct dlp_control *control;      /* NULL: not attached */
        uint8_t *payload;
        uint64_t control_bytes, payload_bytes;
        uint64_t sequence; /* taken next */
};

/* Forks the process that connects for others. Before any thread is started. */
void outside_prepare(void);

/* Of unconnected ones. */
void connection_init(struct connection *connection);

/* Connects; drops what it was before. `by_other`: a child process does, whose end can be caused. */
void connection_open(struct connection *connection, const struct inside *inside, bool by_other);

/* The child process that connected it is killed and gone. */
void connection_end_process(struct connection *connection);

/* Sends a packet without waiting, with `n_fds` copies of `fd`, up to 8. What does not go out is lost. */
void connection_send(struct connection *connection, const void *bytes, size_t n_bytes, int fd, uint32_t n_fds);

/* Takes the next reply, if there is one: what it attaches is mapped. Returns false if there was none, or the connection
 * has ended. A reply that makes no sense is a find: aborts. */
bool connection_read(struct connection *connection);

/* Steps the daemon until a reply is there or the connection has ended. Neither within 20 s is a find: aborts. */
void connection_await(struct connection *connection, struct inside *inside);

/* The page that it shares with the daemon; NULL: not attached. */
struct dlp_client_page *connection_page(const struct connection *connection);

/* Gives up its memory, but not the socket. */
void connection_unmap(struct connection *connection);

/* Hangs up and gives up everything, the child process too. Takes unconnected ones. */
void connection_drop(struct connection *connection);

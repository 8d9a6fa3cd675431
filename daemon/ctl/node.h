/* ctl/node.h: the numbers of the node, for people. */
#pragma once

#include "daemon/ctl/ctl_server.h"
#include "proto/frame.h"

/* Fills an initialised message. Main thread. */
void node_fill(struct server *server, Dlp__Node *node);

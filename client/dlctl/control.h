/* dlctl/control.h: a question to the daemon and its answer. */
#pragma once

#include "client/dlctl/command.h"
#include "client/lib/connection.h"
#include "proto/frame.h"

struct control;

/* Connects. On success *ret_control is to be closed; else the error has been printed. Returns an exit code. */
int control_open(const struct context *context, struct control **ret_control);

/* The same for a question about a dataset: if the operand is a path, connects to the daemon that serves it, which is
 * started if there is none, and waits until the dataset is open. *ret_name is what the daemon calls it; it belongs to
 * the control. `operand` NULL: all datasets, and the name is "". */
int control_open_dataset(const struct context *context, const char *operand, struct control **ret_control,
                         const char **ret_name);

/* For a command that opens a loader and asks other questions, too: makes the socket of the daemon that serves the
 * dataset the one to use. A private daemon is started if the operand is a path. Returns an exit code. */
int control_choose(struct context *context, const char *operand);

/* Waits until the daemon has closed the connection, as it does when it ends; timeout_ms at most. Returns whether it
 * has. */
bool control_wait_end(struct control *control, int timeout_ms);

/* For questions that are more than one packet long. */
struct dli_connection *control_connection(struct control *control);

/* The path of the daemon's socket. */
const char *control_socket(const struct control *control);
void control_close(struct control *control);

/* Asks, and waits 5 seconds at most. `body` is what the reply must hold. On success *ret_reply is to be freed with
 * dlp__reply__free_unpacked(); else the error has been printed. Returns an exit code. */
int control_ask(struct control *control, Dlp__Request *request, Dlp__Reply__BodyCase body, Dlp__Reply **ret_reply);

/* The same for a question whose answer has descriptors, n_fds of them, which are then the caller's. */
int control_ask_for(struct control *control, Dlp__Request *request, Dlp__Reply__BodyCase body, Dlp__Reply **ret_reply,
                    int *ret_fds, size_t n_fds);

/* A command that is one question and prints one record: connects, asks, prints what `describe` makes of the reply (a
 * new record). Returns an exit code. */
int control_print(const struct context *context, Dlp__Request *request, Dlp__Reply__BodyCase body,
                  cJSON *(*describe)(const Dlp__Reply *reply));

/* The exit code that goes with an error of the client library. */
int exit_code_of(int error);

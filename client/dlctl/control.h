/* dlctl/control.h: a question to the daemon and its answer. */
#pragma once

#include "client/dlctl/command.h"
#include "proto/frame.h"

struct control;

/* Connects. On success *ret_control is to be closed; else the error has been printed. Returns an exit code. */
int control_open(const struct context *context, struct control **ret_control);
void control_close(struct control *control);

/* Asks, and waits 5 seconds at most. `body` is what the reply must hold. On success *ret_reply is to be freed with
 * dlp__reply__free_unpacked(); else the error has been printed. Returns an exit code. */
int control_ask(struct control *control, Dlp__Request *request, Dlp__Reply__BodyCase body, Dlp__Reply **ret_reply);

/* A command that is one question and prints one record: connects, asks, prints what `describe` makes of the reply (a
 * new record). Returns an exit code. */
int control_print(const struct context *context, Dlp__Request *request, Dlp__Reply__BodyCase body,
                  cJSON *(*describe)(const Dlp__Reply *reply));

/* The exit code that goes with an error of the client library. */
int exit_code_of(int error);

/* dlctl/dlctl_ending.h: how every command ends: lost output is never a success.
 *
 * A command prints with stdio, or with write() on its own; whether all of it has been written is checked in one place,
 * after the command. So a command need not say that it could not print: it stops, and cleans up. */
#pragma once

/* Notes that something could not be written to standard output, with its (positive) errno. The first one counts. stdio
 * forgets the errno, so whoever sees it says so. */
void output_failed(int error);

/* Writes what stdio still has. Returns 0, or the negative errno that something was lost with, now or earlier (-EIO:
 * unknown); output_end() will say so. */
int output_flush(void);

/* The end of a command; `code` is its exit code. Returns the one to exit with: not 0 if output was lost, which it has
 * then said. If that is because the reader has gone (dlctl ... | head), ends the process as SIGPIPE does, without a
 * word. */
int output_end(int code);

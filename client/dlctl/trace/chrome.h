/* dlctl/trace/chrome.h: a trace as JSON in the Trace Event Format, which Perfetto and chrome://tracing open.
 *
 * Times are microseconds of the day's clock since a moment that torch's profiler counts from as well, so that the
 * events of both files can be drawn together. */
#pragma once

#include "client/dlctl/trace/recorded.h"
#include "client/dlctl/trace/trace_file.h"

/* Writes all of it. Returns 0 or -ENOMEM; errors of the file are kept by it. */
int chrome_write(struct traced_file *file, const struct recorded *recorded, struct why *why);

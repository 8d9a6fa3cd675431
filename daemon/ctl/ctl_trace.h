/* ctl/ctl_trace.h: the trace that is under way, if there is one. Main thread. */
#pragma once

struct session;

/* A session ends; if it is the one that traces, the trace ends with it. */
void tracing_session_ends(struct session *session);

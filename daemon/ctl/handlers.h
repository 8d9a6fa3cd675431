/* ctl/handlers.h: the requests, one file each. A handler answers its request, now or later, exactly once; those of a
 * worker process after its first are not answered (work/ctl_work.h). */
#pragma once

#include "daemon/ctl/session.h"

void handle_attach(struct session *session, const Dlp__Request *request);
void handle_seek(struct session *session, const Dlp__Request *request);
void handle_status(struct session *session, const Dlp__Request *request);
void handle_datasets(struct session *session, const Dlp__Request *request);
void handle_jobs(struct session *session, const Dlp__Request *request);
void handle_errors(struct session *session, const Dlp__Request *request);
void handle_classes(struct session *session, const Dlp__Request *request);
void handle_ranks(struct session *session, const Dlp__Request *request);
void handle_samples(struct session *session, const Dlp__Request *request);
void handle_places(struct session *session, const Dlp__Request *request);
void handle_index(struct session *session, const Dlp__Request *request);
void handle_fill(struct session *session, const Dlp__Request *request);
void handle_trace(struct session *session, const Dlp__Request *request);
void handle_replay(struct session *session, const Dlp__Request *request);
void handle_work(struct session *session, const Dlp__Request *request);
void handle_wait(struct session *session, const Dlp__Request *request);
void handle_metrics(struct session *session, const Dlp__Request *request);
void handle_workers(struct session *session, const Dlp__Request *request);
void handle_who(struct session *session, const Dlp__Request *request);
void handle_stop(struct session *session, const Dlp__Request *request);
void handle_worked(struct session *session, const Dlp__Request *request);
void handle_work_ended(struct session *session, const Dlp__Request *request);

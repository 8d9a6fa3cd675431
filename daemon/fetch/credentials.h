/* fetch/credentials.h: who we are to an origin, from a file that nobody else may read.
 *
 * The file is AWS' own, and may say besides who to be to web servers. A section begins with its name in brackets; a
 * value goes to the end of its line; a line that begins with '#' or ';' is a comment:
 *
 *   [default]                            or another profile, if AWS_PROFILE names it
 *   aws_access_key_id     = AKIA...
 *   aws_secret_access_key = ...
 *   aws_session_token     = ...          of temporary credentials
 *
 *   [https://data.example.org]           sent to this server, scheme and port included, and to no other
 *   user     = ...
 *   password = ...
 *
 *   [https://hub.example.org:8443]
 *   token    = ...                       "Authorization: Bearer ..."
 *
 * It must be a regular file of this user or of root; others may not read it (chmod 600), but a group may read one of
 * root's. Read once. No message ever quotes a value. */
#pragma once

#include "proto/base/why.h"

struct credentials_s3 {
        const char *access_key, *secret_key;
        const char *session_token; /* NULL: none */
};

struct credentials_web {
        const char *server;          /* the section's name, a URL */
        const char *user, *password; /* NULL: there is a token */
        const char *token;
};

struct credentials;

/* Returns 0; -EACCES if others may read it, -EINVAL if it is not such a file, -ENOENT, ... with `why`; -ENOMEM. */
int credentials_read(const char *path, struct credentials **ret_credentials, struct why *why);

/* AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, which must not change meanwhile; nothing if they are not
 * set. 0 or -ENOMEM. */
int credentials_of_environment(struct credentials **ret_credentials);

/* Overwrites what was read. NULL is fine. */
void credentials_free(struct credentials *credentials);
void credentials_freep(struct credentials **credentials);

/* For the object store. NULL: there are none, requests go unsigned. */
const struct credentials_s3 *credentials_s3(const struct credentials *credentials);

/* For the server of this http or https URL. NULL: none. */
const struct credentials_web *credentials_web(const struct credentials *credentials, const char *url);

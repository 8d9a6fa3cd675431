#include "daemon/fetch/of_user.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/store/record/url.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

static const char *of_user_environment(const char *name) {
        const char *value = getenv(name);

        return value && *value ? value : NULL;
}

/* The path that the variable names, else one below the home folder. False: there is neither. "~/" is the home folder.
 */
static bool of_user_path(const char *variable, const char *below_home, char path[PATH_MAX]) {
        const char *named = variable ? of_user_environment(variable) : NULL, *home = of_user_environment("HOME");

        if (named && strncmp(named, "~/", 2) == 0) {
                below_home = named + 2;
                named = NULL;
        }
        if (!named && !home)
                return false;
        return snprintf(path, PATH_MAX, "%s%s%s", named ? named : home, named ? "" : "/", named ? "" : below_home) <
               PATH_MAX;
}

/* ---- AWS ------------------------------------------------------------------------------------------------------ */

/* What one file says of the profile. */
struct profile {
        const char *file, *name;
        bool is_there;
        const char *access_key, *secret_key, *session_token, *region, *endpoint, *role, *services;
        const char *elsewhere; /* the name of a key by which its keys come from elsewhere */
};

/* In AWS' configuration, but not in its credentials, profiles but the default one have "profile" before their names. */
static bool is_section(const char *section, const char *name, bool is_config) {
        if (is_config && strncmp(section, "profile", 7) == 0 && (section[7] == ' ' || section[7] == '\t'))
                section += 7 + strspn(section + 7, " \t");
        else if (is_config && strcmp(name, "default") != 0)
                return false;
        return strcmp(section, name) == 0;
}

static void take_profile_value(struct profile *profile, const char *key, const char *value) {
        const struct {
                const char *key;
                const char **place;
        } PLACES[] = {
                { "aws_access_key_id", &profile->access_key },
                { "aws_secret_access_key", &profile->secret_key },
                { "aws_session_token", &profile->session_token },
                { "region", &profile->region },
                { "endpoint_url", &profile->endpoint },
                { "role_arn", &profile->role },
                { "services", &profile->services },
        };
        static const char *const ELSEWHERE[] = {
                "credential_process",      "sso_session",   "sso_start_url", "credential_source",
                "web_identity_token_file", "login_session",
        };

        if (!*value)
                return;
        for (size_t i = 0; i < ARRAY_SIZE(PLACES); i++)
                if (strcasecmp(key, PLACES[i].key) == 0)
                        *PLACES[i].place = value;
        for (size_t i = 0; i < ARRAY_SIZE(ELSEWHERE); i++)
                if (strcasecmp(key, ELSEWHERE[i]) == 0)
                        profile->elsewhere = ELSEWHERE[i];
}

static int read_profile(const char *path, bool is_needed, bool is_config, struct secret_file *file,
                        struct profile *profile, struct why *why) {
        struct secret_lines lines = { 0 };
        enum secret_line kind;
        bool is_in = false;
        int r = secret_file_read(path, file, why);

        if (r < 0)
                return r == -ENOENT && !is_needed ? 0 : r;
        lines.rest = file->text;
        while ((kind = secret_lines_next(&lines)) != SECRET_END) {
                if (kind == SECRET_SECTION) {
                        is_in = is_section(lines.key, profile->name, is_config);
                        profile->is_there |= is_in;
                } else if (kind == SECRET_VALUE && is_in &&
                           !lines.is_indented) { /* indented: of a key's own settings */
                        take_profile_value(profile, lines.key, lines.value);
                }
        }
        return 0;
}

static int refuse_profile(const struct profile *profile, const char *how, struct why *why) {
        return why_set(why, -ENOTSUP,
                       "profile \"%s\" in %s gets its keys by %s, which is not supported: run eval \"$(aws configure "
                       "export-credentials --profile %s --format env)\" before this is started, or write "
                       "aws_access_key_id and aws_secret_access_key there",
                       profile->name, profile->file, how, profile->name);
}

/* Keys come from one place, all of them. */
static int take_profile_keys(struct of_user *user, const struct profile *profile, struct why *why) {
        if (profile->role)
                return refuse_profile(profile, "role_arn", why);
        if (!profile->access_key != !profile->secret_key)
                return why_set(why, -EINVAL,
                               "credentials %s: [%s] needs both aws_access_key_id and aws_secret_access_key",
                               profile->file, profile->name);
        if (!user->s3.access_key && profile->access_key)
                user->s3 = (struct credentials_s3){ profile->access_key, profile->secret_key, profile->session_token };
        return 0;
}

static int take_profiles(struct of_user *user, const struct profile *credentials, const struct profile *config,
                         struct why *why) {
        bool has_keys = user->s3.access_key;
        int r = 0;

        if (!has_keys)
                r = take_profile_keys(user, credentials, why);
        if (r == 0 && !has_keys)
                r = take_profile_keys(user, config, why);
        if (r < 0)
                return r;
        if (!user->s3.access_key && credentials->elsewhere)
                return refuse_profile(credentials, credentials->elsewhere, why);
        if (!user->s3.access_key && config->elsewhere)
                return refuse_profile(config, config->elsewhere, why);
        if (!has_keys && !credentials->is_there && !config->is_there && of_user_environment("AWS_PROFILE"))
                return why_set(why, -EINVAL, "AWS_PROFILE is \"%s\", which is neither in %s nor in %s", config->name,
                               credentials->file, config->file);
        if (!user->s3_region)
                user->s3_region = config->region ? config->region : credentials->region;
        if (!user->s3_endpoint)
                user->s3_endpoint = config->endpoint ? config->endpoint : credentials->endpoint;
        if (!user->s3_endpoint && config->services)
                return why_set(why, -ENOTSUP,
                               "profile \"%s\" in %s has its endpoint in [services %s], which is not read: write "
                               "endpoint_url into the profile, or set AWS_ENDPOINT_URL_S3",
                               config->name, config->file, config->services);
        return 0;
}

static int read_aws_files(struct of_user *user, struct why *why) {
        char credentials_path[PATH_MAX] = "", config_path[PATH_MAX] = "";
        const char *named = of_user_environment("AWS_PROFILE"), *name = named ? named : "default";
        struct profile credentials = { .file = credentials_path, .name = name };
        struct profile config = { .file = config_path, .name = name };
        int r = 0;

        if (of_user_path("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials", credentials_path))
                r = read_profile(credentials_path, of_user_environment("AWS_SHARED_CREDENTIALS_FILE"), false,
                                 &user->credentials, &credentials, why);
        if (r == 0 && of_user_path("AWS_CONFIG_FILE", ".aws/config", config_path))
                r = read_profile(config_path, of_user_environment("AWS_CONFIG_FILE"), true, &user->config, &config,
                                 why);
        return r < 0 ? r : take_profiles(user, &credentials, &config, why);
}

/* Where AWS' own machines and clusters say where keys are to be had. */
static int check_other_places(struct why *why) {
        static const char *const NAMES[] = { "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                                             "AWS_CONTAINER_CREDENTIALS_FULL_URI" };

        for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++)
                if (of_user_environment(NAMES[i]))
                        return why_set(why, -ENOTSUP,
                                       "%s is set, but keys that come that way are not supported: run eval \"$(aws "
                                       "configure export-credentials --format env)\" before this is started",
                                       NAMES[i]);
        return 0;
}

static int read_aws(struct of_user *user, struct why *why) {
        const char *id = of_user_environment("AWS_ACCESS_KEY_ID");
        const char *secret = of_user_environment("AWS_SECRET_ACCESS_KEY");
        int r;

        if (!id != !secret)
                return why_set(why, -EINVAL,
                               "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: %s is not set; set both, or none",
                               id ? "the second" : "the first");
        if (id)
                user->s3 = (struct credentials_s3){ id, secret, of_user_environment("AWS_SESSION_TOKEN") };
        user->s3_region = of_user_environment("AWS_REGION");
        if (!user->s3_region)
                user->s3_region = of_user_environment("AWS_DEFAULT_REGION");
        user->s3_endpoint = of_user_environment("AWS_ENDPOINT_URL_S3");
        if (!user->s3_endpoint)
                user->s3_endpoint = of_user_environment("AWS_ENDPOINT_URL");
        r = read_aws_files(user, why);
        if (r == 0 && !user->s3.access_key)
                r = check_other_places(why);
        if (r == 0 && user->s3_endpoint && !url_is_endpoint(user->s3_endpoint))
                r = why_set(
                        why, -EINVAL,
                        "the endpoint of your AWS settings (AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, endpoint_url) is "
                        "not an address: write http://host:port or https://host");
        return r;
}

/* ---- the hub -------------------------------------------------------------------------------------------------- */

/* The hub's own tools take blanks and ends of lines off as well. */
static const char *clean_token(char *text) {
        char *end;

        text += strspn(text, " \t\r\n");
        end = text + strlen(text);
        while (end > text && strchr(" \t\r\n", end[-1]))
                *--end = '\0';
        return *text ? text : NULL;
}

static bool find_token_file(char path[PATH_MAX]) {
        char folder[PATH_MAX];

        if (of_user_environment("HF_TOKEN_PATH"))
                return of_user_path("HF_TOKEN_PATH", "", path);
        if (of_user_environment("HF_HOME")) {
                return of_user_path("HF_HOME", "", folder) && snprintf(path, PATH_MAX, "%s/token", folder) < PATH_MAX;
        }
        if (of_user_environment("XDG_CACHE_HOME"))
                return of_user_path("XDG_CACHE_HOME", "", folder) &&
                       snprintf(path, PATH_MAX, "%s/huggingface/token", folder) < PATH_MAX;
        return of_user_path(NULL, ".cache/huggingface/token", path);
}

static int read_hub(struct of_user *user, struct why *why) {
        const char *token = of_user_environment("HF_TOKEN"), *endpoint = of_user_environment("HF_ENDPOINT");
        char path[PATH_MAX];
        int r = 0;

        if (endpoint) {
                if (!url_is_endpoint(endpoint))
                        return why_set(why, -EINVAL, "HF_ENDPOINT is not an address: write https://host");
                user->hub_address = strdup(endpoint);
                if (!user->hub_address)
                        return -ENOMEM;
                while (*user->hub_address && user->hub_address[strlen(user->hub_address) - 1] == '/')
                        user->hub_address[strlen(user->hub_address) - 1] = '\0';
                user->hub_endpoint = user->hub_address;
        }
        if (!token)
                token = of_user_environment("HUGGING_FACE_HUB_TOKEN");
        if (token) {
                user->token.text = strdup(token);
                user->token.n_bytes = strlen(token);
                if (!user->token.text)
                        return -ENOMEM;
        } else if (find_token_file(path)) {
                r = secret_file_read(path, &user->token, why);
                if (r == -ENOENT || r == -ENOTDIR)
                        return 0;
        }
        if (r == 0 && user->token.text)
                user->hub_token = clean_token(user->token.text);
        if (user->hub_token && (!text_is_printable(user->hub_token) || strchr(user->hub_token, ' ')))
                r = why_set(why, -EINVAL,
                            "the hub's token (HF_TOKEN, or its file) is not a token: log in again (hf auth login)");
        return r;
}

/* ---- all of it ------------------------------------------------------------------------------------------------ */

int of_user_read(struct of_user **ret_user) {
        struct of_user *user = calloc(1, sizeof(*user));

        if (!user)
                return -ENOMEM;
        user->s3_error = read_aws(user, &user->s3_why);
        user->hub_error = read_hub(user, &user->hub_why);
        if (user->s3_error == -ENOMEM || user->hub_error == -ENOMEM) {
                of_user_free(user);
                return -ENOMEM;
        }
        *ret_user = user;
        return 0;
}

void of_user_free(struct of_user *user) {
        if (!user)
                return;
        secret_file_fini(&user->credentials);
        secret_file_fini(&user->config);
        secret_file_fini(&user->token);
        free(user->hub_address);
        free(user);
}

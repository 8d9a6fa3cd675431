#include "daemon/fetch/origin/s3_listing.h"

#include <errno.h>
#include <expat.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/record/url.h"
#include "proto/base/cleanup.h"

#define TEXT_MAX  4096u /* bytes of an element: a key of S3_KEY_MAX with each byte encoded, a token */
#define DEPTH_MAX 16u   /* listings have five */

_Static_assert(TEXT_MAX > 3 * S3_KEY_MAX && TEXT_MAX >= S3_TOKEN_MAX, "keys and tokens fit");

/* The elements whose text is needed, by their name and their parent's. */
enum field {
        KEY,
        SIZE,
        ETAG,
        TRUNCATED,
        TOKEN,
        ENCODING,
        CODE,
        MESSAGE,
        N_FIELDS
};

static const struct {
        const char *parent, *name;
} FIELDS[N_FIELDS] = {
        [KEY] = { "Contents", "Key" },
        [SIZE] = { "Contents", "Size" },
        [ETAG] = { "Contents", "ETag" },
        [TRUNCATED] = { "ListBucketResult", "IsTruncated" },
        [TOKEN] = { "ListBucketResult", "NextContinuationToken" },
        [ENCODING] = { "ListBucketResult", "EncodingType" },
        [CODE] = { "Error", "Code" },
        [MESSAGE] = { "Error", "Message" },
};

static const struct {
        const char *code;
        int error;
        const char *advice;
} CODES[] = {
        { "NoSuchBucket", -ENOENT, "; is the bucket's name right, and the endpoint?" },
        { "AccessDenied", -EACCES, "; may these credentials list the bucket?" },
        { "InvalidAccessKeyId", -EACCES, "; see the credentials file" },
        { "SignatureDoesNotMatch", -EACCES, "; see the secret key in the credentials file, and the region" },
        { "ExpiredToken", -EACCES, "; get new credentials" },
};

struct parser {
        XML_Parser expat;
        int (*object)(void *userdata, const struct s3_object *object);
        void *userdata;
        char names[DEPTH_MAX][32]; /* of the elements around; cut, which makes none equal to one that counts */
        uint32_t depth;
        int field; /* of the element that is read, or -1 */
        char texts[N_FIELDS][TEXT_MAX];
        size_t n_text;
        uint64_t n_objects;
        bool only_looks; /* for the encoding: some stores say it after the keys */
        bool is_encoded;
        int result; /* the first that went wrong */
        struct why *why;
};

static void s3_listing_stop(struct parser *parser, int result) {
        if (parser->result == 0)
                parser->result = result;
        XML_StopParser(parser->expat, XML_FALSE);
}

/* ---- values -------------------------------------------------------------------------------------------------- */

/* With encoding-type=url; some stores write a blank as '+', as in forms, and none a plus. */
static int decode_key(char *key) {
        for (char *at = key; *at; at++)
                if (*at == '+')
                        *at = ' ';
        return url_decode(key, strlen(key), key);
}

static int s3_listing_take_object(struct parser *parser) {
        struct s3_object object = { .key = parser->texts[KEY], .etag = parser->texts[ETAG], .n_bytes = UINT64_MAX };
        const char *size = parser->texts[SIZE];
        char *end;

        if (parser->only_looks)
                return 0;
        if (parser->is_encoded && decode_key(parser->texts[KEY]) < 0)
                return why_set(parser->why, -EINVAL,
                               "a key that is not encoded as it says, or has a NUL in it: \"%s\"; rename the object",
                               parser->texts[KEY]);
        if (!object.key[0] || strlen(object.key) > S3_KEY_MAX)
                return why_set(parser->why, -EINVAL, "an empty or too long key: \"%s\"", object.key);
        if (size[0]) {
                errno = 0;
                object.n_bytes = strtoull(size, &end, 10);
                if (size[0] < '0' || size[0] > '9' || *end || errno != 0)
                        return why_set(parser->why, -EINVAL, "\"%s\" as the size of \"%s\"", size, object.key);
        }
        parser->n_objects++;
        return parser->object(parser->userdata, &object);
}

static int s3_listing_take_error(struct parser *parser) {
        const char *code = parser->texts[CODE], *advice = "";
        int error = -EPROTO;

        for (size_t i = 0; i < ARRAY_SIZE(CODES); i++)
                if (strcmp(code, CODES[i].code) == 0) {
                        error = CODES[i].error;
                        advice = CODES[i].advice;
                }
        return why_set(parser->why, error, "the store says %s: %s%s", code[0] ? code : "an error without code",
                       parser->texts[MESSAGE], advice);
}

/* ---- expat's callbacks --------------------------------------------------------------------------------------- */

static int s3_listing_field_of(const struct parser *parser) {
        const char *name = parser->names[parser->depth - 1];
        const char *parent = parser->depth > 1 ? parser->names[parser->depth - 2] : "";

        for (int field = 0; field < N_FIELDS; field++)
                if (strcmp(name, FIELDS[field].name) == 0 && strcmp(parent, FIELDS[field].parent) == 0)
                        return field;
        return -1;
}

static void XMLCALL s3_listing_on_begin(void *userdata, const XML_Char *name, const XML_Char **attributes) {
        struct parser *parser = userdata;

        if (parser->result < 0)
                return;
        if (parser->depth == DEPTH_MAX) {
                s3_listing_stop(parser,
                                why_set(parser->why, -EINVAL, "XML that is nested more than %u deep", DEPTH_MAX));
                return;
        }
        if (parser->depth == 0 && strcmp(name, "ListBucketResult") != 0 && strcmp(name, "Error") != 0) {
                s3_listing_stop(parser,
                                why_set(parser->why, -EINVAL, "<%s> instead of an object store's listing", name));
                return;
        }
        snprintf(parser->names[parser->depth++], sizeof(parser->names[0]), "%s", name);
        parser->field = s3_listing_field_of(parser);
        parser->n_text = 0;
        if (parser->field >= 0)
                parser->texts[parser->field][0] = '\0';
        if (strcmp(name, "Contents") == 0)
                parser->texts[KEY][0] = parser->texts[SIZE][0] = parser->texts[ETAG][0] = '\0';
}

static void XMLCALL on_text(void *userdata, const XML_Char *text, int n_bytes) {
        struct parser *parser = userdata;

        if (parser->result < 0 || parser->field < 0)
                return;
        if ((size_t)n_bytes >= TEXT_MAX - parser->n_text) {
                s3_listing_stop(parser, why_set(parser->why, -EINVAL, "a <%s> of more than %u bytes",
                                                FIELDS[parser->field].name, TEXT_MAX));
                return;
        }
        memcpy(parser->texts[parser->field] + parser->n_text, text, (size_t)n_bytes);
        parser->n_text += (size_t)n_bytes;
        parser->texts[parser->field][parser->n_text] = '\0';
}

static void XMLCALL s3_listing_on_end(void *userdata, const XML_Char *name) {
        struct parser *parser = userdata;
        int r = 0;

        if (parser->result < 0)
                return;
        parser->field = -1;
        parser->depth--;
        if (parser->depth == 1 && strcmp(name, "Contents") == 0)
                r = s3_listing_take_object(parser);
        else if (parser->depth == 0 && strcmp(name, "Error") == 0)
                r = s3_listing_take_error(parser);
        if (r < 0)
                s3_listing_stop(parser, r);
}

static void XMLCALL on_doctype(void *userdata, const XML_Char *name, const XML_Char *system_id,
                               const XML_Char *public_id, int has_subset) {
        struct parser *parser = userdata;

        s3_listing_stop(parser, why_set(parser->why, -EINVAL,
                                        "a document type \"%s\" instead of an object store's listing", name));
}

/* ---- the page ------------------------------------------------------------------------------------------------ */

static int s3_listing_run(struct parser *parser, const char *xml, size_t n_bytes) {
        if (n_bytes > INT_MAX)
                return why_set(parser->why, -EINVAL, "a listing of %zu bytes", n_bytes);
        parser->field = -1;
        parser->depth = 0;
        parser->expat = XML_ParserCreate(NULL);
        if (!parser->expat)
                return -ENOMEM;
        XML_SetUserData(parser->expat, parser);
        XML_SetElementHandler(parser->expat, s3_listing_on_begin, s3_listing_on_end);
        XML_SetCharacterDataHandler(parser->expat, on_text);
        XML_SetStartDoctypeDeclHandler(parser->expat, on_doctype);
        if (XML_Parse(parser->expat, xml, (int)n_bytes, 1) != XML_STATUS_OK && parser->result == 0)
                parser->result = why_set(parser->why, -EINVAL, "not valid XML in line %lu: %s",
                                         XML_GetCurrentLineNumber(parser->expat),
                                         XML_ErrorString(XML_GetErrorCode(parser->expat)));
        XML_ParserFree(parser->expat);
        return parser->result;
}

int s3_listing_parse(const char *xml, size_t n_bytes, int (*object)(void *userdata, const struct s3_object *object),
                     void *userdata, struct s3_page *ret_page, struct why *why) {
        _cleanup_(freep) struct parser *parser = calloc(1, sizeof(*parser));
        int r;

        if (!parser)
                return -ENOMEM;
        parser->object = object;
        parser->userdata = userdata;
        parser->why = why;
        parser->only_looks = true;
        r = s3_listing_run(parser, xml, n_bytes);
        if (r < 0)
                return r;
        parser->is_encoded = strcmp(parser->texts[ENCODING], "url") == 0;
        parser->only_looks = false;
        r = s3_listing_run(parser, xml, n_bytes);
        if (r < 0)
                return r;
        ret_page->n_objects = parser->n_objects;
        ret_page->is_truncated = strcmp(parser->texts[TRUNCATED], "true") == 0;
        memcpy(ret_page->token, parser->texts[TOKEN], S3_TOKEN_MAX);
        ret_page->token[S3_TOKEN_MAX - 1] = '\0';
        return 0;
}

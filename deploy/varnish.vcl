# Varnish in front of Verbatim servers with cdn.max_age. Settings of the servers that belong to it:
#
#   server.trusted_proxies = ["127.0.0.1"]
#   cdn.max_age = "1h"
#   cdn.stale_while_revalidate = "60s"   # as req.grace below
#   cdn.purge_url = "http://127.0.0.1:6081/purge"
#   cdn.purge_secret = "the secret below"
#
# varnishd -a 127.0.0.1:6081 -f /etc/varnish/varnish.vcl -s malloc,1g

vcl 4.1;

import std;

backend verbatim {
    .host = "127.0.0.1";
    .port = "8080";
    # Longer than limits.wait and chat.timeout.
    .first_byte_timeout = 180s;
    .between_bytes_timeout = 180s;
    # While the server does not answer, stale responses are sent for cdn.stale_if_error.
    .probe = {
        .url = "/readyz";
        .interval = 1s;
        .timeout = 2s;
        .window = 2;
        .threshold = 1;
        .initial = 1;
    }
}

acl purgers {
    "127.0.0.1";
}

sub vcl_recv {
    if (req.url == "/purge") {
        if (req.method != "POST" || client.ip !~ purgers || req.http.Authorization != "Bearer CHANGE-ME") {
            return (synth(403));
        }
        # Keys are letters, digits, - and _, so a list of them is also a pattern.
        if (req.http.Surrogate-Key !~ "^[A-Za-z0-9_-]+( [A-Za-z0-9_-]+)*$") {
            return (synth(400));
        }
        ban("obj.http.Surrogate-Key ~ ^(" + regsuball(req.http.Surrogate-Key, " ", "|") + ")$");
        return (synth(200));
    }
    # Varnish adds the client to X-Forwarded-For. Another header would contradict it.
    unset req.http.Forwarded;
    # The response to a key is for its owner only.
    if (req.http.Authorization || (req.method != "GET" && req.method != "HEAD")) {
        return (pass);
    }
    # Cookies are passed on: they count a visitor's transcripts, and are the session of an account. No response that is
    # stored depends on them, so they are not hashed.
    # While the server answers, a stale response is sent for 60 s: set cdn.stale_while_revalidate to the same. Varnish
    # cannot read it here for each request.
    if (std.healthy(req.backend_hint)) {
        set req.grace = 60s;
    }
    return (hash);
}

sub vcl_backend_response {
    # Varnish does not know stale-if-error.
    if (beresp.http.Cache-Control ~ "stale-if-error=[0-9]+") {
        set beresp.grace = std.duration(
            regsub(beresp.http.Cache-Control, "^.*stale-if-error=([0-9]+).*$", "\1s"), 0s);
    }
    # An error does not replace a stale response.
    if (beresp.status >= 500 && bereq.is_bgfetch) {
        return (abandon);
    }
    # Only what names its lifetime is stored. For two minutes after another response, requests for its address do not
    # wait for each other; a response that names its lifetime is then stored nevertheless.
    if (beresp.http.Cache-Control !~ "(s-maxage|max-age)=[1-9]") {
        set beresp.uncacheable = true;
        set beresp.ttl = 0s;
        # An error hides no stale response.
        if (beresp.status < 500) {
            set beresp.ttl = 120s;
        }
    }
}

sub vcl_deliver {
    unset resp.http.Surrogate-Key;
    unset resp.http.Cache-Tag;
    unset resp.http.Via;
    unset resp.http.X-Varnish;
}

//! Settings of the server, its storage and the suppliers.

use transcript_core::video::Platform;

use super::{DAY, HOUR, MINUTE, NOTHING, SECOND, Setting, VIDEOS, bounded, setting, unset};
use crate::config::{BaseUrl, ProxyUrl, Secret, suppliers};

pub(super) const SERVER: &[Setting] = &[
    setting(
        "server.listen",
        |reader, all| reader.value(&mut all.server.listen),
        "IP address and port, or `unix:` and an absolute path",
        "Address and port the server listens on. Port 0 selects a free port, which is printed. `unix:/PATH` is a \
         socket for a proxy on the same machine, which counts as `127.0.0.1` in `server.trusted_proxies`. Flag: \
         `--listen`.",
    ),
    setting(
        "server.socket_mode",
        |reader, all| reader.value(&mut all.server.socket_mode),
        "octal number",
        "Permissions of the unix socket. The user of the proxy needs the right to write.",
    ),
    setting(
        "server.base_url",
        |reader, all| all.server.base_url = reader.optional_or(all.server.own_address()),
        "http or https address, without a query",
        "Public address of the server: prefix of the links in responses, mails and checkout sessions. The \
         default is `http://` and `server.listen`.",
    ),
    setting(
        "server.trusted_proxies",
        |reader, all| reader.value(&mut all.server.trusted_proxies),
        "list of networks or addresses",
        "Proxies whose `X-Forwarded-For` and `Forwarded` headers are trusted. Set it behind a reverse proxy; \
         otherwise all callers count as one network and share its limits.",
    ),
    setting(
        "server.allowed_hosts",
        |reader, all| reader.value(&mut all.server.allowed_hosts),
        "list of host names or addresses, `*.example.org` for all names below one",
        "Further hosts that requests may name in `Host`. A server on a loopback address always answers for \
         loopback names, for the host of `server.base_url` and for these, so that no web page reads it through \
         DNS rebinding. A server on another address answers for every host, unless this \
         list is set: then for these and for addresses.",
    )
    .reloadable(),
    setting(
        "server.cors_origins",
        |reader, all| reader.value(&mut all.server.cors_origins),
        "list of origins, without a path",
        "Origins of web pages that may call `/api/keys`, `/api/v1/register`, `/api/search` and `/mcp`. Every origin \
         may call `/api/transcript`.",
    )
    .reloadable(),
    bounded(
        "server.stop_delay",
        |reader, all| reader.duration(&mut all.server.stop_delay, NOTHING..=5 * MINUTE),
        "How long the server keeps serving after the stop signal while `/readyz` returns 503, so that load \
         balancers stop sending requests first.",
    ),
    bounded(
        "server.connections",
        |reader, all| reader.small(&mut all.server.connections, 1..=1_000_000),
        "Open connections. Further ones wait until one ends. A limit of open files that is too low for it \
         reduces it, with a warning.",
    ),
    bounded(
        "server.connections_per_network",
        |reader, all| reader.small(&mut all.server.connections_per_network, 1..=1_000_000),
        "Open connections of one network: an IPv4 address, or an IPv6 /64, whose /48 has four times the \
         limit. Further ones are closed. Connections of `server.trusted_proxies` are not counted.",
    ),
    bounded(
        "server.min_read_rate",
        |reader, all| reader.size(&mut all.server.min_read_rate, 1..=1 << 30),
        "Slowest rate, per second, at which a client may read a response. A connection that is 30 seconds \
         behind it is closed.",
    ),
    bounded(
        "server.body_memory",
        |reader, all| reader.size(&mut all.server.body_memory, 1 << 20..=1 << 40),
        "Memory of all large bodies of requests and responses that the response cache does not hold. A \
         quarter is kept for requests of the v1 API. A request that needs more waits for up to a second, \
         then gets 503.",
    ),
];

pub(super) const SHARED_CACHES: &[Setting] = &[
    bounded(
        "cdn.max_age",
        |reader, all| reader.duration(&mut all.cdn.max_age, NOTHING..=30 * DAY),
        "How long a shared cache in front of the server may send an archived transcript without a request to the \
         server: `s-maxage`, in whole seconds. `0` turns this off.",
    ),
    bounded(
        "cdn.stale_while_revalidate",
        |reader, all| reader.duration(&mut all.cdn.stale_while_revalidate, NOTHING..=30 * DAY),
        "How long after `cdn.max_age` it may still send it while it requests the current one.",
    ),
    bounded(
        "cdn.stale_if_error",
        |reader, all| reader.duration(&mut all.cdn.stale_if_error, NOTHING..=30 * DAY),
        "How long after `cdn.max_age` it may still send it while the server does not answer.",
    ),
    unset(
        "cdn.purge_url",
        |reader, all| all.cdn.purge_url = reader.optional::<BaseUrl>(),
        "http or https address, without a query",
        "Address that is called with the surrogate keys of videos that were withdrawn, restored, deleted or \
         replaced.",
        "\"https://cache.example.org/purge\"",
    ),
    unset(
        "cdn.purge_secret",
        |reader, all| all.cdn.purge_secret = reader.optional::<Secret>(),
        "text without white space",
        "Sent to `cdn.purge_url` as `Authorization: Bearer`. A secret.",
        "\"purge-example\"",
    ),
];

pub(super) const STORAGE: &[Setting] = &[
    setting(
        "storage.url",
        |reader, all| reader.value(&mut all.storage.url),
        "`sqlite://PATH`, `postgres://USER:PASSWORD@HOST/DATABASE`",
        "Keys, accounts, orders, queued mails and the ledger. Back it up.",
    ),
    setting(
        "storage.archive_url",
        |reader, all| {
            all.storage.set_default_archive();
            reader.value(&mut all.storage.archive_url);
        },
        "`sqlite://PATH`, `postgres://USER:PASSWORD@HOST/DATABASE`",
        "Transcripts, absences and short links. `get`, `import` and `archive` open this database only, except that \
         `archive withdraw` and `archive delete` also write the audit log.",
    ),
    bounded(
        "storage.connections",
        |reader, all| reader.small(&mut all.storage.database.connections, 1..=256),
        "Maximum number of open connections to a PostgreSQL server. If the two databases differ, for each of them.",
    ),
    bounded(
        "storage.connect_timeout",
        |reader, all| reader.duration(&mut all.storage.database.connect_timeout, SECOND / 10..=MINUTE),
        "Timeout of opening a connection.",
    ),
    bounded(
        "storage.timeout",
        |reader, all| reader.duration(&mut all.storage.database.timeout, SECOND / 10..=10 * MINUTE),
        "Timeout of a database call, retries included.",
    ),
    setting(
        "storage.pooler",
        |reader, all| reader.value(&mut all.storage.database.pooler),
        "`true` or `false`",
        "Whether connections go through a pooler that assigns one for each transaction.",
    ),
    bounded(
        "storage.start_timeout",
        |reader, all| reader.duration(&mut all.storage.start_timeout, NOTHING..=10 * MINUTE),
        "How long a starting server waits for a PostgreSQL server that cannot be reached yet.",
    ),
    bounded(
        "archive.serve_stale",
        |reader, all| reader.duration(&mut all.storage.serve_stale, NOTHING..=HOUR),
        "How long cached responses are sent while the archive cannot be read. A withdrawal by another server in \
         this time is not seen.",
    ),
    setting(
        "archive.compact_after",
        |reader, all| reader.optional_duration(&mut all.storage.compact_after, HOUR..=3_650 * DAY),
        "`off`, or `1h` to `3650d`",
        "Age from which stored transcripts are moved to cold storage in the background: less disk, slightly \
         slower reads, the same bytes. `off` leaves that to `verbatim archive compact`.",
    ),
];

pub(super) const REQUESTS_TO_PLATFORMS: &[Setting] = &[
    setting(
        "upstream.proxy",
        |reader, all| reader.texts::<ProxyUrl>(&mut all.options.upstream.proxies),
        "list of `http`, `https`, `socks5` or `socks5h` addresses, at most 256",
        "Proxies, used in rotation. A proxy that a platform refuses is cooled down. A secret if it contains \
         a password.",
    ),
    unset(
        "upstream.ca_file",
        |reader, all| all.options.upstream.ca_file = reader.optional(),
        "path of a PEM file",
        "Root certificates trusted in addition to those of the system, also for your own services.",
        "\"/etc/verbatim/roots.pem\"",
    ),
    bounded(
        "upstream.timeout",
        |reader, all| reader.duration(&mut all.options.upstream.timeout, SECOND / 10..=10 * MINUTE),
        "Timeout of one request, up to the last byte. Connecting times out after 10 s.",
    ),
    bounded(
        "upstream.retries",
        |reader, all| reader.small(&mut all.options.upstream.retries, 0..=10),
        "Number of retries after a transient failure.",
    ),
    bounded(
        "upstream.concurrency",
        |reader, all| reader.small(&mut all.options.upstream.concurrency, 1..=1_024),
        "Maximum number of concurrent requests, for all videos together.",
    ),
    unset(
        "youtube.clients",
        |reader, all| all.options.youtube.clients = reader.optional().unwrap_or_default(),
        "list of `visionos`, `android`, `ios`, each also with a version: `android@21.26.364`",
        "Client identities sent to YouTube, in order. Not set: all three, in the built-in versions.",
        "[\"visionos\", \"android\", \"ios\"]",
    ),
    unset(
        "youtube.web_version",
        |reader, all| all.options.youtube.web_version = reader.optional(),
        "digits and dots",
        "Version of YouTube's website that requests for playlists, channels and searches name. Not set: the built-in version.",
        "\"2.20260708.00.00\"",
    ),
    unset(
        "x.query_id",
        |reader, all| all.options.x.query_id = reader.optional(),
        "letters, digits, `-`, `_`",
        "Id of the query that returns one post of X. X changes it every few months. Not set: the built-in \
         id.",
        "\"AbC-123_x\"",
    ),
    unset(
        "x.features",
        |reader, all| all.options.x.features = reader.optional(),
        "list of at most 200 names, each also with `=true` or `=false`",
        "Feature switches that X requires with that query. Not set: the built-in switches.",
        "[\"vibe_api_enabled=false\"]",
    ),
    unset(
        "ytdlp.program",
        |reader, all| all.options.ytdlp.program = reader.optional(),
        "path, or a name in the `PATH`",
        "The yt-dlp program. If set, it is a supplier of all four platforms, after their own captions. Each \
         call creates a folder in `TMPDIR`.",
        "\"/usr/bin/yt-dlp\"",
    ),
];

pub(super) const ANOTHER_VERBATIM_SERVER: &[Setting] = &[
    unset(
        "service.base_url",
        |reader, all| all.service.base_url = reader.text::<BaseUrl>(),
        "http or https address",
        "Another Verbatim server, used as a supplier through its lookup API.",
        "\"https://verbatim.example\"",
    ),
    unset(
        "service.api_key",
        |reader, all| all.service.api_key = reader.optional::<Secret>().map(String::from),
        "text without white space",
        "API key of that server, `vbk_…`. A secret; it is sent to that server only.",
        "\"vbk_…\"",
    ),
    bounded(
        "service.timeout",
        |reader, all| reader.duration(&mut all.service.timeout, SECOND..=10 * MINUTE),
        "Timeout of one response.",
    ),
];

/// Speech-to-text, which this build lacks.
#[cfg(not(feature = "speech"))]
pub(super) const SPEECH_TO_TEXT: &[Setting] = &[];

#[cfg(feature = "speech")]
pub(super) const SPEECH_TO_TEXT: &[Setting] = &[
    unset(
        "speech.base_url",
        |reader, all| all.speech.base_url = reader.text::<BaseUrl>(),
        "http or https address, `/v1` included",
        "A service with OpenAI's `/audio/transcriptions` endpoint.",
        "\"http://127.0.0.1:9000/v1\"",
    ),
    unset(
        "speech.model",
        |reader, all| all.speech.model = reader.text::<String>(),
        "text",
        "Model name. Required if `speech.base_url` is set.",
        "\"whisper-1\"",
    ),
    unset(
        "speech.api_key",
        |reader, all| all.speech.api_key = reader.optional::<Secret>().map(String::from),
        "text without white space",
        "API key, if the service requires one. A secret; it is sent to that host only.",
        "\"sk-example\"",
    ),
    bounded(
        "speech.max_duration",
        |reader, all| reader.duration(&mut all.speech.max_duration, SECOND..=2 * DAY),
        "Longer videos are not transcribed.",
    ),
    bounded(
        "speech.max_bytes",
        |reader, all| reader.size(&mut all.speech.max_bytes, 100_000..=2_000_000_000),
        "Largest upload the service accepts. Chunks are shortened to fit.",
    ),
    bounded(
        "speech.max_download",
        |reader, all| reader.size(&mut all.speech.max_download, 100_000..=100_000_000_000),
        "Largest media file downloaded from a platform.",
    ),
    bounded(
        "speech.chunk_duration",
        |reader, all| reader.duration(&mut all.speech.part, 2 * SECOND..=HOUR),
        "Longest audio chunk sent in one request.",
    ),
    setting(
        "speech.format",
        |reader, all| reader.value(&mut all.speech.format),
        "`ogg`, `flac` or `wav`",
        "Audio format of the chunks: Opus (11 MB an hour), FLAC (about 60) or WAV (115; the format of \
         whisper.cpp's server).",
    ),
    bounded(
        "speech.timeout",
        |reader, all| reader.duration(&mut all.speech.timeout, SECOND..=HOUR),
        "Timeout of one chunk.",
    ),
    bounded(
        "speech.retries",
        |reader, all| reader.small(&mut all.speech.retries, 0..=10),
        "Number of retries of a chunk after a transient failure.",
    ),
    bounded(
        "speech.concurrency",
        |reader, all| reader.small(&mut all.speech.concurrency, 1..=64),
        "Maximum number of chunks sent concurrently, for all videos together.",
    ),
    setting(
        "speech.ffmpeg",
        |reader, all| reader.value(&mut all.speech.ffmpeg),
        "path, or a name in the `PATH`",
        "The ffmpeg program.",
    ),
];

pub(super) const SUPPLIERS: &[Setting] = &[
    setting(
        "suppliers.video_site",
        |reader, all| suppliers::read(reader, &mut all.options, Platform::YouTube),
        "list of suppliers",
        "Suppliers of YouTube videos, in order. Empty: only archived transcripts are served.",
    ),
    setting(
        "suppliers.short_video",
        |reader, all| suppliers::read(reader, &mut all.options, Platform::TikTok),
        "list of suppliers",
        "Suppliers of TikTok videos.",
    ),
    setting(
        "suppliers.reels",
        |reader, all| suppliers::read(reader, &mut all.options, Platform::Instagram),
        "list of suppliers",
        "Suppliers of Instagram videos, which have no captions.",
    ),
    setting(
        "suppliers.microblog",
        |reader, all| suppliers::read(reader, &mut all.options, Platform::X),
        "list of suppliers",
        "Suppliers of X videos.",
    ),
    bounded(
        "youtube.max_concurrent_videos",
        |reader, all| reader.small(&mut all.options.concurrency.youtube_captions, VIDEOS),
        "Maximum number of videos `youtube-captions` works on concurrently. Further videos are queued in \
         order.",
    ),
    bounded(
        "tiktok.max_concurrent_videos",
        |reader, all| reader.small(&mut all.options.concurrency.tiktok_captions, VIDEOS),
        "The same limit for `tiktok-captions`.",
    ),
    bounded(
        "x.max_concurrent_videos",
        |reader, all| reader.small(&mut all.options.concurrency.x_captions, VIDEOS),
        "The same limit for `x-captions`.",
    ),
    bounded(
        "ytdlp.max_concurrent_videos",
        |reader, all| reader.small(&mut all.options.concurrency.ytdlp, VIDEOS),
        "The same limit for `yt-dlp`. Each video takes one Python interpreter.",
    ),
    bounded(
        "service.max_concurrent_videos",
        |reader, all| reader.small(&mut all.options.concurrency.verbatim_service, VIDEOS),
        "The same limit for `verbatim-service`.",
    ),
    #[cfg(feature = "speech")]
    bounded(
        "speech.max_concurrent_videos",
        |reader, all| reader.small(&mut all.options.concurrency.speech_to_text, VIDEOS),
        "The same limit for `speech-to-text`. Each video takes disk space and runs ffmpeg.",
    ),
    bounded(
        "suppliers.breaker_threshold",
        |reader, all| reader.small(&mut all.options.breaker.failures, 0..=1_000),
        "Number of consecutive failing videos of a platform that opens a supplier's circuit breaker. 0: \
         never.",
    ),
    bounded(
        "suppliers.breaker_cooldown",
        |reader, all| reader.duration(&mut all.options.breaker.cooldown, SECOND..=HOUR),
        "First cooldown. Each consecutive cooldown is twice as long. At most \
         `suppliers.breaker_cooldown_max`.",
    ),
    bounded(
        "suppliers.breaker_cooldown_max",
        |reader, all| reader.duration(&mut all.options.breaker.cooldown_max, SECOND..=DAY),
        "Longest cooldown.",
    ),
];

//! The session of a browser: its cookie, and which requests may use it.

use axum::{extract::FromRequestParts, response::Response};
use http::{
    HeaderMap, HeaderName, Method, Uri,
    header::{HOST, ORIGIN, USER_AGENT},
    request::Parts,
};
use transcript_core::accounts::{OpenedSession, SessionPrincipal, V1Error};
use url::Url;

use super::{failure, forbidden, own_referrer};
use crate::{
    api::{add_cookie, cookie},
    page::{PageContext, account as page},
    routes::html,
    state::AppState,
};

/// Name of the cookie over HTTPS. The prefix binds it to this host and to encrypted connections.
const SECURE_COOKIE: &str = "__Host-verbatim_session";
/// Name of the cookie without HTTPS.
const PLAIN_COOKIE: &str = "verbatim_session";
/// Name of the cookie with the page that a visitor wanted to see before signing in; the same rules.
const SECURE_NEXT: &str = "__Host-verbatim_next";
const PLAIN_NEXT: &str = "verbatim_next";
/// How long that cookie is kept: as long as a sign-in link is valid.
const NEXT_LIFETIME_S: u64 = 30 * 60;
/// Header with which a browser names the origin of a request.
pub(in crate::routes) const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// A form of this service's own pages sent the request.
///
/// Otherwise a page of another site could act for a visitor who is signed in here.
#[derive(Debug)]
pub(in crate::routes) struct OwnForm;

impl FromRequestParts<AppState> for OwnForm {
    type Rejection = Response;

    async fn from_request_parts(head: &mut Parts, app: &AppState) -> Result<Self, Response> {
        match is_own_form(head, &app.lookup.options().base_url) {
            true => Ok(Self),
            false => Err(forbidden(&PageContext::from_head(head, &app.site))),
        }
    }
}

/// The signed-in holder of an account.
#[derive(Debug)]
pub(in crate::routes) struct SignedIn(pub(super) SessionPrincipal);

impl FromRequestParts<AppState> for SignedIn {
    type Rejection = Response;

    async fn from_request_parts(head: &mut Parts, app: &AppState) -> Result<Self, Response> {
        let context = PageContext::from_head(head, &app.site);
        match principal(app, &head.headers).await {
            Ok(Some(principal)) => Ok(Self(principal)),
            Ok(None) => Err(to_sign_in(&context, &head.method, &head.uri)),
            Err(error) => Err(failure(&context, &error)),
        }
    }
}

/// The holder of the request's session.
pub(in crate::routes) async fn principal(
    app: &AppState,
    headers: &HeaderMap,
) -> Result<Option<SessionPrincipal>, V1Error> {
    match token(headers, &app.lookup.options().base_url) {
        Some(token) => app.accounts.sessions.authenticate(&token).await,
        None => Ok(None),
    }
}

/// Redirect to the sign-in page, from which a page of the account is reached again.
///
/// A form comes from a page that needed a session, so that session has ended.
fn to_sign_in(context: &PageContext, method: &Method, uri: &Uri) -> Response {
    let path = uri.path().trim_start_matches('/');
    if !matches!(*method, Method::GET | Method::HEAD) {
        return match form_page(path) {
            Some(next) => see_other(context, &format!("sign-in?next={next}&ended=1")),
            None => see_other(context, "sign-in"),
        };
    }
    // A redirect to a download would leave the used button of the confirmation page on the screen.
    let path = match path {
        "account/export" => "account",
        "account/statement.csv" => "account/statement",
        path => path,
    };
    match page::own_path(path).filter(|next| *next != "account") {
        Some(next) => see_other(context, &format!("sign-in?next={next}")),
        None => see_other(context, "sign-in"),
    }
}

/// The page of the account that has this form; `None` for the forms that end the session: the first one sent may have
/// ended it.
fn form_page(path: &str) -> Option<&'static str> {
    const PAGES: [(&str, &str); 6] = [
        ("account/keys/", "account/keys"),
        ("account/jobs/", "account/jobs"),
        ("account/sessions/", "account/sessions"),
        ("account/buy", "account/orders"),
        ("account/subscribe", "account/orders"),
        ("account/subscription", "account"),
    ];
    PAGES.iter().find(|(form, _)| path.starts_with(*form)).map(|(_, page)| *page)
}

/// Redirect after a form, to a page that can be reloaded. `path` is relative to the root.
pub(super) fn see_other(context: &PageContext, path: &str) -> Response {
    redirect(context, &context.href(path))
}

pub(super) fn redirect(context: &PageContext, address: &str) -> Response {
    own_referrer(html::redirect(context, address))
}

/// Whether the request comes from a page of this service.
///
/// Browsers name the site of a request to a trustworthy address, and the origin of every POST. A request with neither
/// is not from a browser's form.
pub(in crate::routes) fn is_own_form(head: &Parts, base_url: &str) -> bool {
    let text = |name: &HeaderName| head.headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let (site, origin) = (text(&SEC_FETCH_SITE), text(&ORIGIN));
    if site.is_some_and(|site| site != "same-origin") {
        return false;
    }
    match origin {
        // A browser hides the origin from pages with a strict referrer policy, but still names the site.
        None | Some("null") => site.is_some(),
        Some(origin) => {
            let Ok(origin) = Url::parse(origin) else { return false };
            let base = Url::parse(base_url).ok();
            let is_public = base.as_ref().is_some_and(|base| base.origin() == origin.origin());
            // Others on the network can answer for the public host without encryption.
            let is_unencrypted = origin.scheme() == "http"
                && base.is_some_and(|base| base.scheme() == "https" && base.host() == origin.host());
            let host = head.uri.authority().map(|authority| authority.as_str()).or_else(|| text(&HOST));
            let sent_to = host.and_then(|host| Url::parse(&format!("{}://{host}", origin.scheme())).ok());
            let is_here = sent_to.is_some_and(|sent_to| sent_to.origin() == origin.origin());
            is_public || (is_here && !is_unencrypted)
        }
    }
}

fn is_secure(base_url: &str) -> bool {
    base_url.starts_with("https://")
}

fn cookie_name(base_url: &str) -> &'static str {
    if is_secure(base_url) { SECURE_COOKIE } else { PLAIN_COOKIE }
}

fn next_name(base_url: &str) -> &'static str {
    if is_secure(base_url) { SECURE_NEXT } else { PLAIN_NEXT }
}

/// The token of the session cookie.
fn token(headers: &HeaderMap, base_url: &str) -> Option<String> {
    cookie(headers, cookie_name(base_url))
}

/// The page of this service that the visitor wanted to see before signing in.
pub(in crate::routes) fn next(headers: &HeaderMap, base_url: &str) -> Option<String> {
    cookie(headers, next_name(base_url)).filter(|path| page::own_path(path).is_some())
}

/// Sets the cookie of a new session.
///
/// `Lax`, so that links in mails and the way back from a payment page find the buyer signed in.
pub(in crate::routes) fn set_cookie(response: &mut Response, opened: &OpenedSession, base_url: &str) {
    append_cookie(response, base_url, cookie_name(base_url), &opened.token, opened.lifetime.as_secs());
}

/// Deletes the cookie.
pub(super) fn clear_cookie(response: &mut Response, base_url: &str) {
    append_cookie(response, base_url, cookie_name(base_url), "", 0);
}

/// Remembers a page until the mailed link is opened. The path is one of [`page::own_path`].
pub(super) fn set_next(response: &mut Response, path: &str, base_url: &str) {
    append_cookie(response, base_url, next_name(base_url), path, NEXT_LIFETIME_S);
}

/// Deletes the cookie of that page, if the browser has one.
pub(in crate::routes) fn clear_next(response: &mut Response, headers: &HeaderMap, base_url: &str) {
    let name = next_name(base_url);
    if cookie(headers, name).is_some() {
        append_cookie(response, base_url, name, "", 0);
    }
}

fn append_cookie(response: &mut Response, base_url: &str, name: &str, value: &str, max_age_s: u64) {
    add_cookie(response, base_url, (name, value), "/", max_age_s, "Lax");
}

/// The browser and system of a request, as the list of sessions shows them.
pub(in crate::routes) fn device(headers: &HeaderMap) -> String {
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    // The order matters: most browsers also name those that they descend from.
    const BROWSERS: [(&str, &str); 7] = [
        ("Edg", "Edge"),
        ("OPR/", "Opera"),
        ("SamsungBrowser", "Samsung Internet"),
        ("Firefox/", "Firefox"),
        ("FxiOS", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ];
    const SYSTEMS: [(&str, &str); 7] = [
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Android", "Android"),
        ("Windows", "Windows"),
        ("CrOS", "ChromeOS"),
        ("Mac OS X", "macOS"),
        ("Linux", "Linux"),
    ];
    let find = |known: &[(&str, &'static str)]| {
        known.iter().find(|(part, _)| agent.contains(part)).map(|(_, name)| *name)
    };
    match (find(&BROWSERS), find(&SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser}, {system}"),
        (Some(name), None) | (None, Some(name)) => name.to_owned(),
        (None, None) => agent.split(['/', ' ']).next().unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;
    use http::{
        StatusCode,
        header::{COOKIE, SET_COOKIE},
    };

    use super::*;

    fn is_own(headers: &[(&str, &str)]) -> bool {
        is_own_at("v.internal:8080", headers)
    }

    fn is_own_at(host: &str, headers: &[(&str, &str)]) -> bool {
        let mut request = http::Request::post("/account/buy").header(HOST, host);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        is_own_form(&request.body(()).unwrap().into_parts().0, "https://v.example/base")
    }

    #[test]
    fn form_of_another_site_is_rejected() {
        for headers in [
            &[("sec-fetch-site", "same-origin")][..],
            &[("origin", "https://v.example")],
            &[("origin", "http://v.internal:8080")],
            &[("origin", "https://v.example"), ("sec-fetch-site", "same-origin")],
            &[("origin", "null"), ("sec-fetch-site", "same-origin")],
        ] {
            assert!(is_own(headers), "{headers:?}");
        }
        for headers in [
            &[][..],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "none")],
            &[("origin", "https://evil.example")],
            &[("origin", "null")],
            &[("origin", "https://v.example:444")],
            &[("origin", "https://v.example.evil.example")],
            &[("origin", "http://v.example")],
            &[("origin", "https://evil.example"), ("sec-fetch-site", "same-origin")],
            &[("origin", "https://v.example"), ("sec-fetch-site", "cross-site")],
        ] {
            assert!(!is_own(headers), "{headers:?}");
        }
        // The public host is encrypted, on whatever port another server answers for it.
        for host in ["v.example", "v.example:8080"] {
            let origin = |scheme: &str| is_own_at(host, &[("origin", &format!("{scheme}://{host}"))]);
            assert_eq!((origin("https"), origin("http")), (true, false), "{host}");
        }
    }

    #[test]
    fn session_cookie_is_bound_to_host_over_https() {
        for (base_url, expect) in [
            (
                "https://v.example/base",
                "__Host-verbatim_session=t; Path=/; Max-Age=9; HttpOnly; SameSite=Lax; Secure",
            ),
            ("http://127.0.0.1:8080", "verbatim_session=t; Path=/; Max-Age=9; HttpOnly; SameSite=Lax"),
        ] {
            let mut response = StatusCode::OK.into_response();
            append_cookie(&mut response, base_url, cookie_name(base_url), "t", 9);
            assert_eq!(response.headers()[SET_COOKIE], expect);
        }
        let cookies = |line: &str| HeaderMap::from_iter([(COOKIE, line.parse().unwrap())]);
        let found = |line: &str, base_url| token(&cookies(line), base_url);
        assert_eq!(found("a=1; verbatim_session=t", "http://x"), Some("t".to_owned()));
        assert_eq!(found("verbatim_session=t", "https://x"), None, "a cookie that another host could set");
    }

    #[test]
    fn device_names_browser_and_system() {
        for (agent, expect) in [
            ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox, Linux"),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 \
                 Safari/537.36 Edg/140.0",
                "Edge, Windows",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) Version/19.0 Safari/604.1",
                "Safari, iPhone",
            ),
            ("curl/8.5.0", "curl"),
            ("", ""),
        ] {
            assert_eq!(device(&HeaderMap::from_iter([(USER_AGENT, agent.parse().unwrap())])), expect);
        }
    }
}

//! Registration and sign-in.

use maud::{Markup, html};

use super::{post_form, too_many_text};
use crate::page::{Frame, PageContext, Section, query_parameter};

/// Form that sends a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MailForm {
    /// For a new account.
    Register,
    /// For an account that exists.
    SignIn,
}

/// What the page with the mail field says about the form before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MailFormMessage {
    /// It was sent after the session had ended.
    SessionEnded,
    /// Its address is none.
    BadAddress,
    /// It was beyond the rate limit.
    TooMany {
        /// The wait in seconds.
        retry_after_s: u64,
    },
}

/// Page with the mail field.
///
/// `next` is the path that the visitor wanted to see.
pub(crate) fn mail_form(
    context: &PageContext,
    form: MailForm,
    email: &str,
    next: Option<&str>,
    message: Option<MailFormMessage>,
) -> Markup {
    let text = |key| context.text(key);
    let error = match message {
        Some(MailFormMessage::BadAddress) => Some(text("sign_in.bad_address").to_owned()),
        Some(MailFormMessage::TooMany { retry_after_s }) => Some(too_many_text(context, retry_after_s)),
        Some(MailFormMessage::SessionEnded) | None => None,
    };
    let (path, title, lead, submit) = match form {
        MailForm::Register => {
            ("register", "sign_in.register", "sign_in.register_lead", "sign_in.register_submit")
        }
        MailForm::SignIn => ("sign-in", "sign_in.title", "sign_in.lead", "sign_in.submit"),
    };
    let (other_path, other_question, other) = match form {
        MailForm::Register => ("sign-in", "sign_in.has_account", "sign_in.title"),
        MailForm::SignIn => ("register", "sign_in.no_account", "sign_in.register"),
    };
    let is_wrong = message == Some(MailFormMessage::BadAddress);
    let query = next.map(|next| query_parameter("next", next)).unwrap_or_default();
    frame(context, title).query(&query).render(html! {
        h1 { (text(title)) }
        @if message == Some(MailFormMessage::SessionEnded) { p.note role="status" { (text("sign_in.ended")) } }
        p { (text(lead)) }
        (post_form(context, path, html! {
            @if let Some(next) = next { input type="hidden" name="next" value=(next); }
            label for="email" { (text("sign_in.email")) }
            @if let Some(error) = &error { p.error #email-error { (error) } }
            div.row {
                input id="email" name="email" type="email" required maxlength="254" autocomplete="email"
                    value=(email) aria-invalid=[is_wrong.then_some("true")] autofocus[is_wrong]
                    aria-describedby=[error.as_ref().map(|_| "email-error")];
                button type="submit" { (text(submit)) }
            }
        }))
        p.hint { (text("sign_in.privacy")) }
        p { (text(other_question)) " " a href=(context.href(&with_next(other_path, next))) { (text(other)) } }
    })
}

/// A form's path that leads to `next` afterwards.
pub(in crate::page) fn with_next(path: &str, next: Option<&str>) -> String {
    next.map_or_else(|| path.to_owned(), |next| format!("{path}?next={next}"))
}

/// "Check your inbox", the same for every address. `next` is the path that the visitor wanted to see.
pub(crate) fn mail_sent(context: &PageContext, next: Option<&str>) -> Markup {
    let text = |key| context.text(key);
    frame(context, "sign_in.sent_title").render(html! {
        h1 { (text("sign_in.sent_title")) }
        p { (text("sign_in.sent")) }
        p.hint { (text("sign_in.sent_hint")) }
        p { a href=(context.href(&with_next("sign-in", next))) { (text("sign_in.again")) } }
    })
}

/// Page of the mailed link. The button signs in. `form` is random text: sent twice, it opens one session.
pub(crate) fn confirm_sign_in(context: &PageContext, token: &str, form: &str) -> Markup {
    let (text, query) = (|key| context.text(key), query_parameter("token", token));
    frame(context, "sign_in.title").query(&query).render(html! {
        h1 { (text("sign_in.title")) }
        p { (text("sign_in.confirm")) }
        (post_form(context, "sign-in/confirm", html! {
            input type="hidden" name="token" value=(token);
            input type="hidden" name="form" value=(form);
            button type="submit" { (text("sign_in.title")) }
        }))
    })
}

/// The link does not work any more; the form sends a new one, which leads to `next`.
pub(crate) fn link_invalid(context: &PageContext, next: Option<&str>) -> Markup {
    let text = |key| context.text(key);
    frame(context, "sign_in.invalid_title").render(html! {
        h1 { (text("sign_in.invalid_title")) }
        p { (text("sign_in.invalid")) }
        p { a href=(context.href(&with_next("sign-in", next))) { (text("sign_in.again")) } }
        p { a href=(context.href("account")) { (text("account.to_account")) } }
    })
}

fn frame<'a>(context: &'a PageContext, title: &'a str) -> Frame<'a> {
    Frame::new(context, context.text(title)).section(Section::Account)
}

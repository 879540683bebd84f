//! Rewrites the comments of generated code with the names of its language: they come from Rust, and name Rust items.

use anyhow::{Result, ensure};

/// Language of generated code.
#[derive(Clone, Copy)]
pub(crate) enum CommentLanguage {
    /// Kotlin, where a name in brackets is a link.
    Kotlin,
    /// Swift.
    Swift,
}

/// Functions, parameters and fields in comments. Other names with underscores are values on the wire.
const MEMBERS: &[&str] = &[
    "from_cache",
    "idempotency_key",
    "max_wait",
    "other_languages",
    "tokens_max",
    "video_list_page",
    "watch_url",
];

/// Cases of enums in comments.
const CASES: &[&str] = &[
    "Cancelled",
    "Closed",
    "Conflict",
    "FetchFailed",
    "InvalidInput",
    "Misconfigured",
    "NoCaptions",
    "NotConfigured",
    "NotFound",
    "PaymentRequired",
    "RateLimited",
    "Refused",
    "ServiceNotFound",
    "Stale",
    "Throttled",
    "TimedOut",
    "TooManyRequests",
    "Unauthorized",
    "Unexpected",
    "Unreadable",
    "Unsupported",
    "Upcoming",
];

/// Rewrites all comments of a generated file.
///
/// # Errors
/// If a comment still has a path of Rust.
pub(crate) fn rewrite(generated: &str, language: CommentLanguage) -> Result<String> {
    let mut rewritten = String::with_capacity(generated.len());
    for line in generated.split_inclusive('\n') {
        if !line.trim_start().starts_with("* ") {
            rewritten.push_str(line);
            continue;
        }
        let comment = language.rewrite_line(line);
        ensure!(
            !comment.contains("::") && !comment.contains("[`"),
            "a comment has a path of Rust: {comment}"
        );
        rewritten.push_str(&comment);
    }
    Ok(rewritten)
}

impl CommentLanguage {
    fn rewrite_line(self, line: &str) -> String {
        let mut text = line.replace("`None`", if matches!(self, Self::Kotlin) { "`null`" } else { "`nil`" });
        while let Some((before, rest)) = text.split_once("[`") {
            let Some((path, after)) = rest.split_once("`]") else { break };
            text = format!("{before}{}{after}", self.link(path));
        }
        for name in MEMBERS {
            text = text.replace(&format!("`{name}`"), &format!("`{}`", to_camel_case(name)));
        }
        for name in CASES {
            text = text.replace(&format!("`{name}`"), &format!("`{}`", self.case(name)));
        }
        text
    }

    /// The link to an item of Rust.
    fn link(self, path: &str) -> String {
        let parts = path.split("::").filter(|part| *part != "crate");
        let name = parts.map(to_camel_case).collect::<Vec<_>>().join(".");
        match self {
            Self::Kotlin => format!("[{name}]"),
            Self::Swift => format!("`{name}`"),
        }
    }

    /// The name of a case of an enum.
    fn case(self, name: &str) -> String {
        let mut case = String::new();
        for (index, letter) in name.char_indices() {
            match self {
                Self::Kotlin => {
                    if index > 0 && letter.is_uppercase() {
                        case.push('_');
                    }
                    case.push(letter.to_ascii_uppercase());
                }
                Self::Swift if index == 0 => case.push(letter.to_ascii_lowercase()),
                Self::Swift => case.push(letter),
            }
        }
        case
    }
}

/// A name with underscores in camel case; the case of its first letter stays.
fn to_camel_case(name: &str) -> String {
    let mut camel_case = String::new();
    let mut is_initial = false;
    for letter in name.chars() {
        match letter {
            '_' => is_initial = true,
            letter if is_initial => {
                camel_case.push(letter.to_ascii_uppercase());
                is_initial = false;
            }
            letter => camel_case.push(letter),
        }
    }
    camel_case
}

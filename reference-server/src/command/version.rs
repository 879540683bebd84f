//! What `verbatim --version` prints.

use std::sync::LazyLock;

/// The commit that the program was built from: `VERBATIM_COMMIT` of a packager, or else that of the clone,
/// without its changes since (`build.rs`).
const COMMIT: Option<&str> = option_env!("VERBATIM_COMMIT");

/// Version, commit and optional features, one line each.
pub(super) fn long_version() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| text(COMMIT, &features()));
    &TEXT
}

/// The optional features that the program was built with.
fn features() -> Vec<&'static str> {
    [
        (cfg!(feature = "chat-model"), "chat-model"),
        (cfg!(feature = "documents"), "documents"),
        (cfg!(feature = "mcp"), "mcp"),
        (cfg!(feature = "otel"), "otel"),
        (cfg!(feature = "postgres"), "postgres"),
        (cfg!(feature = "speech"), "speech"),
        (cfg!(feature = "static-embeddings"), "static-embeddings"),
    ]
    .into_iter()
    .filter_map(|(is_built, name)| is_built.then_some(name))
    .collect()
}

fn text(commit: Option<&str>, features: &[&str]) -> String {
    let commit = commit.filter(|commit| !commit.is_empty()).unwrap_or("unknown");
    let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
    format!("{}\ncommit: {commit}\nfeatures: {features}", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_commit_is_unknown() {
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(text(None, &[]), format!("{version}\ncommit: unknown\nfeatures: none"));
        assert_eq!(text(Some(""), &["otel"]), format!("{version}\ncommit: unknown\nfeatures: otel"));
        assert_eq!(
            text(Some("1a2b"), &["otel", "postgres"]),
            format!("{version}\ncommit: 1a2b\nfeatures: otel, postgres")
        );
    }
}

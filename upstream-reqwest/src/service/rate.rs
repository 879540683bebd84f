//! The fields `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers).

use std::time::Duration;

use transcript_core::service::RateLimit;

/// Maximum length of a limit's name in bytes.
const NAME_MAX: usize = 100;

/// Parses the two fields; `None` if the first one is incomplete. Of several limits it reads the first.
pub(super) fn parse_rate_limit(state: Option<&str>, policy: Option<&str>) -> Option<RateLimit> {
    let (name, state) = item(state?)?;
    let policy = policy.and_then(item).filter(|(of, _)| *of == name).map(|(_, rest)| rest);
    let of_policy = |key| policy.and_then(|policy| parameter(policy, key));
    Some(RateLimit {
        name: name.to_owned(),
        remaining: parameter(state, "r")?,
        reset: Duration::from_secs(parameter(state, "t").unwrap_or(0)),
        limit: of_policy("q"),
        window: of_policy("w").map(Duration::from_secs),
    })
}

/// The name of a field's first item, and its parameters.
fn item(field: &str) -> Option<(&str, &str)> {
    let (name, rest) = field.trim().strip_prefix('"')?.split_once('"')?;
    let parameters = rest.split(',').next().unwrap_or_default();
    (!name.is_empty() && name.len() <= NAME_MAX).then_some((name, parameters))
}

fn parameter(parameters: &str, key: &str) -> Option<u64> {
    let pairs = parameters.split(';').filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, _)| *name == key).find_map(|(_, value)| value.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_limit_parses_state_and_policy() {
        let read = parse_rate_limit(Some("\"account\";r=3;t=41"), Some("\"account\";q=10;w=60")).unwrap();
        let secs = Duration::from_secs;
        assert_eq!((read.name.as_str(), read.remaining, read.reset), ("account", 3, secs(41)));
        assert_eq!((read.limit, read.window), (Some(10), Some(secs(60))));
        let alone = parse_rate_limit(Some(" \"a\"; r=0"), Some("\"b\";q=1;w=2")).unwrap();
        assert_eq!((alone.remaining, alone.reset, alone.limit), (0, Duration::ZERO, None));
        let first = parse_rate_limit(Some("\"a\";r=1;t=2, \"b\";r=7;t=9"), None).unwrap();
        assert_eq!((first.remaining, first.reset), (1, secs(2)));
        for bad in [None, Some(""), Some("account;r=1"), Some("\"a\""), Some("\"\";r=1"), Some("\"a\";r=-1")]
        {
            assert_eq!(parse_rate_limit(bad, None), None, "{bad:?}");
        }
    }
}

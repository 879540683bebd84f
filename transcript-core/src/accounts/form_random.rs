//! Secrets that derive from a form, so that a form that is sent twice has one result.
//!
//! A browser sends a form twice on a double click, and shows the second response only. The secret of a session or key
//! is stored as a digest, so only who can derive the secret again can return it again.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use super::call_context::CallContext;
use crate::{
    hex,
    keyed_digest::KeyedDigest,
    time::{Random, Timestamp},
};

/// A repeat has the same result for this time at least, and for twice as long at most: a reload of the page later must
/// not show a key again.
const WINDOW_MS: i64 = 10_000;
/// Bytes of a digest.
const BLOCK_LENGTH: u32 = 32;

/// Random bytes that derive from the server's secret, a mailed link or key id, and the form of the page.
struct FormRandom {
    digest: KeyedDigest,
    purpose: &'static str,
    seed: String,
    blocks: AtomicU32,
}

crate::display::debug_as!(FormRandom, |_this| "FormRandom");

impl Random for FormRandom {
    fn bytes(&self, count: u32) -> Vec<u8> {
        let block = |_: u32| {
            let number = self.blocks.fetch_add(1, Ordering::Relaxed);
            let digest = self.digest.digest(self.purpose, &format!("{}\0{number}", self.seed));
            hex::decode(&digest).unwrap_or_default()
        };
        let mut bytes: Vec<u8> = (0..count.div_ceil(BLOCK_LENGTH)).flat_map(block).collect();
        bytes.truncate(count as usize);
        bytes
    }
}

/// The sources of the secret that a form makes, in the order in which they are tried.
///
/// `link` is the mailed link, or the id of the key that the form creates or replaces. `form` is the random text of the
/// page with the button. Empty, as in requests of programs: the only source is that of the context. Otherwise the first
/// source is that of the present window, and the others find what the same form created in the window before, or on a
/// server whose clock is in the next one.
pub(super) fn link_randoms(
    context: &CallContext,
    digest: &KeyedDigest,
    purpose: &'static str,
    link: &str,
    form: &str,
) -> Vec<Arc<dyn Random>> {
    if form.is_empty() {
        return vec![Arc::clone(&context.random)];
    }
    let sources = seeds(link, form, context.now()).map(|seed| {
        let source = FormRandom { digest: digest.clone(), purpose, seed, blocks: AtomicU32::new(0) };
        Arc::new(source) as Arc<dyn Random>
    });
    sources.into()
}

/// The seeds of the present window and of those beside it. The link contains no separator.
fn seeds(link: &str, form: &str, now: Timestamp) -> [String; 3] {
    let window = now.as_millis().div_euclid(WINDOW_MS);
    [window, window - 1, window + 1].map(|window| format!("{link}\0{window}\0{form}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(key: u8, purpose: &'static str, seed: &str) -> Vec<u8> {
        let digest = KeyedDigest::new(vec![key; 32]);
        FormRandom { digest, purpose, seed: seed.to_owned(), blocks: AtomicU32::new(0) }.bytes(40)
    }

    #[test]
    fn form_secret_is_bound_to_server_purpose_and_seed() {
        let derived = secret(7, "sign-in", "a");
        assert_eq!((derived.len(), &derived), (40, &secret(7, "sign-in", "a")));
        assert_ne!(&derived[..8], &derived[32..]);
        for other in [secret(8, "sign-in", "a"), secret(7, "verify", "a"), secret(7, "sign-in", "b")] {
            assert_ne!(derived, other);
        }
    }

    #[test]
    fn form_repeat_is_recognised_for_ten_to_twenty_seconds() {
        let at = |seconds: i64| seeds("link", "form", Timestamp::from_millis(seconds * 1_000));
        let first = |seconds| at(seconds)[0].clone();
        assert!(at(49).contains(&first(40)) && at(59).contains(&first(40)) && at(51).contains(&first(49)));
        assert!(at(39).contains(&first(40)), "the clock of another server");
        assert!(!at(60).contains(&first(40)) && !at(29).contains(&first(40)));
        assert_ne!(first(0), seeds("link", "other", Timestamp::from_millis(0))[0]);
    }
}

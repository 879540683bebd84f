//! Idempotency keys of requests.

use transcript_core::hex;

use super::call_error::CallError;

/// Maximum length of a key in bytes.
const LENGTH_MAX: usize = 255;

/// An `Idempotency-Key` of a request.
///
/// For 24 hours, a request repeated with the same key and body returns the first response and is not charged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Creates a new key of 128 random bits.
    pub(super) fn random() -> Self {
        Self(hex::encode(&rand::random::<[u8; 16]>()))
    }

    /// Creates a key from a text, such as an order's id, for a request that may have been sent before.
    ///
    /// # Errors
    /// [`CallError::Invalid`] unless it has 1 to 255 visible ASCII characters.
    pub(super) fn new(text: impl Into<String>) -> Result<Self, CallError> {
        let text = text.into();
        let is_plain =
            (1..=LENGTH_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        match is_plain {
            true => Ok(Self(text)),
            false => {
                Err(CallError::Invalid("an Idempotency-Key must have 1 to 255 visible ASCII characters"))
            }
        }
    }

    /// The key as text.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idempotency_key_rejects_invisible_text_and_is_random() {
        assert_ne!(IdempotencyKey::random(), IdempotencyKey::random());
        assert!(IdempotencyKey::new(IdempotencyKey::random().as_str()).is_ok());
        let long = "x".repeat(LENGTH_MAX + 1);
        for bad in ["", "a b", "a\n", "é", &long] {
            assert!(IdempotencyKey::new(bad).is_err(), "{bad:?}");
        }
        assert!(IdempotencyKey::new(&long[1..]).is_ok());
    }
}

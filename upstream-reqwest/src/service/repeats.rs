//! The name of a request, under which it can be repeated.

use std::fmt::{self, Write as _};

use super::ServiceError;

/// The longest name, in bytes.
const LENGTH_MAX: usize = 255;

/// An `Idempotency-Key`: a request that is repeated under the same one, with the same body, gets the first answer
/// again for a day, and costs nothing more.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// A fresh name: 128 random bits.
    pub fn random() -> Self {
        let mut text = String::with_capacity(32);
        for byte in rand::random::<[u8; 16]>() {
            // Writing to a string never fails.
            let _ = write!(text, "{byte:02x}");
        }
        Self(text)
    }

    /// The name of a request that may have been sent before, such as an order's id.
    ///
    /// # Errors
    /// [`ServiceError::Invalid`] unless it has from 1 to 255 visible ASCII characters.
    pub fn new(text: impl Into<String>) -> Result<Self, ServiceError> {
        let text = text.into();
        let is_plain =
            (1..=LENGTH_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        match is_plain {
            true => Ok(Self(text)),
            false => {
                Err(ServiceError::Invalid("an Idempotency-Key has from 1 to 255 visible ASCII characters"))
            }
        }
    }

    /// The name itself: whoever may crash in the middle writes it down before the request.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdempotencyKey({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_visible_and_fresh_ones_differ() {
        assert_ne!(IdempotencyKey::random(), IdempotencyKey::random());
        assert!(IdempotencyKey::new(IdempotencyKey::random().as_str()).is_ok());
        let long = "x".repeat(LENGTH_MAX + 1);
        for bad in ["", "a b", "a\n", "é", &long] {
            assert!(IdempotencyKey::new(bad).is_err(), "{bad:?}");
        }
        assert!(IdempotencyKey::new(&long[1..]).is_ok());
    }
}

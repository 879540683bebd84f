//! The memory of large response bodies.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::HttpError;

/// Bytes of each body that are not counted: player data, and captions of two hours, are shorter.
pub(super) const UNCOUNTED_BYTES: usize = 2 << 20;
/// Bytes of one unit.
const UNIT_BYTES: usize = 1 << 20;
/// Units of a transport. The longest captions, of 24 hours, take 25; the largest response that is read takes 31.
const UNITS: usize = 112;
/// How often content above [`UNCOUNTED_BYTES`] may exceed what was received. Captions reach 20, and a bomb 1,000.
const EXPANSION_MAX: usize = 200;

/// The memory that the large bodies of a transport share, from their first bytes until they are parsed.
///
/// A body that finds none fails at once. One that waits is not read, so that it meets its own timeout.
#[derive(Debug)]
pub(super) struct BodyBudget(Arc<Semaphore>);

impl Default for BodyBudget {
    fn default() -> Self {
        Self::new(UNITS)
    }
}

impl BodyBudget {
    /// A budget of this many MiB.
    pub(super) fn new(units: usize) -> Self {
        Self(Arc::new(Semaphore::new(units)))
    }
}

/// The part of a budget that one body takes. Drop returns it.
#[derive(Debug)]
pub(super) struct BodyShare {
    budget: Option<Arc<Semaphore>>,
    permit: Option<OwnedSemaphorePermit>,
    /// Length of the content for which the part suffices.
    covered: usize,
}

impl BodyShare {
    /// The part of a new body. Without a budget it has no limit.
    pub(super) fn new(budget: Option<&BodyBudget>) -> Self {
        let budget = budget.map(|budget| Arc::clone(&budget.0));
        Self { budget, permit: None, covered: UNCOUNTED_BYTES }
    }

    /// Extends the part to content of this length, from this many received bytes.
    ///
    /// Returns the new length for which it suffices, if it was extended: by a unit, or by a quarter, so that content is
    /// moved a few times only.
    ///
    /// # Errors
    /// [`HttpError::Busy`] if other bodies take the rest of the budget; [`HttpError::TooLarge`] for data that expands
    /// as no response of a platform does.
    pub(super) fn cover(&mut self, length: usize, received: usize) -> Result<Option<usize>, HttpError> {
        let Some(budget) = self.budget.as_ref().filter(|_| length > self.covered) else { return Ok(None) };
        if length / EXPANSION_MAX > received {
            return Err(HttpError::TooLarge);
        }
        let units = (length - self.covered).div_ceil(UNIT_BYTES).max(self.covered / 4 / UNIT_BYTES);
        let count = u32::try_from(units).map_err(|_| HttpError::TooLarge)?;
        let more = Arc::clone(budget).try_acquire_many_owned(count).map_err(|_| HttpError::Busy)?;
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            none => *none = Some(more),
        }
        self.covered += units * UNIT_BYTES;
        Ok(Some(self.covered))
    }

    /// The content as bytes that hold the part until the last of them is dropped.
    pub(super) fn attach(self, content: Vec<u8>) -> Bytes {
        match self.permit {
            Some(permit) => Bytes::from_owner(CountedContent { content, _permit: permit }),
            None => content.into(),
        }
    }
}

/// Content that is counted.
struct CountedContent {
    content: Vec<u8>,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for CountedContent {
    fn as_ref(&self) -> &[u8] {
        &self.content
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Extends a share to content that did not expand.
    fn cover(share: &mut BodyShare, length: usize) -> Result<(), HttpError> {
        share.cover(length, length).map(|covered| {
            assert!(covered.is_none_or(|covered| covered >= length));
        })
    }

    #[test]
    fn share_takes_units_until_content_is_dropped() {
        let budget = BodyBudget::default();
        let mut share = BodyShare::new(Some(&budget));
        for (beyond, units) in [
            (0, 0),
            (1, 1),
            (UNIT_BYTES, 1),
            (UNIT_BYTES + 1, 2),
            (4 * UNIT_BYTES, 4),
            (1, 4),
            (6 * UNIT_BYTES, 6),
        ] {
            assert_eq!(cover(&mut share, UNCOUNTED_BYTES + beyond), Ok(()));
            assert_eq!(budget.0.available_permits(), UNITS - units, "{beyond} bytes");
        }
        let content = share.attach(b"content".to_vec());
        let part = content.slice(3..);
        drop(content);
        assert_eq!((&part[..], budget.0.available_permits()), (&b"tent"[..], UNITS - 6));
        drop(part);
        assert_eq!(budget.0.available_permits(), UNITS);
    }

    #[test]
    fn share_without_free_memory_is_busy() {
        let budget = BodyBudget::new(4);
        let (mut large, mut other) = (BodyShare::new(Some(&budget)), BodyShare::new(Some(&budget)));
        assert_eq!(cover(&mut large, UNCOUNTED_BYTES + 3 * UNIT_BYTES), Ok(()));
        assert_eq!(cover(&mut other, UNCOUNTED_BYTES + 2 * UNIT_BYTES), Err(HttpError::Busy));
        assert_eq!(cover(&mut other, UNCOUNTED_BYTES), Ok(()), "small bodies need none");
        drop(large);
        assert_eq!(cover(&mut other, UNCOUNTED_BYTES + 2 * UNIT_BYTES), Ok(()));
        assert_eq!(cover(&mut BodyShare::new(None), usize::MAX), Ok(()));
    }

    #[test]
    fn share_of_expanding_data_is_too_large() {
        let budget = BodyBudget::default();
        let length = UNCOUNTED_BYTES + UNIT_BYTES;
        for (received, expect) in [
            (length / EXPANSION_MAX, Ok(Some(length))),
            (length / EXPANSION_MAX - 1, Err(HttpError::TooLarge)),
        ] {
            assert_eq!(BodyShare::new(Some(&budget)).cover(length, received), expect, "{received}");
        }
        assert_eq!(BodyShare::new(Some(&budget)).cover(UNCOUNTED_BYTES, 1), Ok(None));
        assert_eq!(BodyShare::new(None).cover(length, 1), Ok(None));
    }
}

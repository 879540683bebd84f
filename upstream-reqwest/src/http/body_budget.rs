//! The memory of large response bodies.

use std::sync::Arc;

use bytes::Bytes;
use memmap2::MmapMut;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::HttpError;

/// Bytes of each body that are not counted: player data, and captions of two hours, are shorter.
pub(super) const UNCOUNTED_BYTES: usize = 2 << 20;
const UNIT_BYTES: usize = 1 << 20;
/// Units of a transport. The longest captions, of 24 hours, take 25; the largest response that is read takes 31.
const UNITS: usize = 128;
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
    /// Returns whether it was extended.
    ///
    /// # Errors
    /// [`HttpError::Busy`] if other bodies take the rest of the budget; [`HttpError::TooLarge`] for data that expands
    /// as no response of a platform does.
    pub(super) fn cover(&mut self, length: usize, received: usize) -> Result<bool, HttpError> {
        let Some(budget) = self.budget.as_ref().filter(|_| length > self.covered) else { return Ok(false) };
        if length / EXPANSION_MAX > received {
            return Err(HttpError::TooLarge);
        }
        let units = (length - self.covered).div_ceil(UNIT_BYTES);
        let count = u32::try_from(units).map_err(|_| HttpError::TooLarge)?;
        let more = Arc::clone(budget).try_acquire_many_owned(count).map_err(|_| HttpError::Busy)?;
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            none => *none = Some(more),
        }
        self.covered += units * UNIT_BYTES;
        Ok(true)
    }

    /// The content as bytes that hold the part until the last of them is dropped.
    pub(super) fn attach(self, content: CountedContent) -> Bytes {
        Bytes::from_owner(HeldContent { content, _share: self })
    }
}

/// Content that is counted, in separate memory.
///
/// The allocator would move it while it grows, and keep its memory for a while after its end: three times as much as
/// is counted.
pub(super) struct CountedContent {
    /// Addresses of the maximum length. The system gives memory to what is written.
    map: MmapMut,
    length: usize,
}

impl CountedContent {
    /// No content yet, at most `max` bytes later.
    ///
    /// # Errors
    /// [`HttpError::Busy`] without memory.
    pub(super) fn new(max: usize) -> Result<Self, HttpError> {
        let map = MmapMut::map_anon(max).map_err(|_| HttpError::Busy)?;
        Ok(Self { map, length: 0 })
    }

    /// Adds bytes; [`HttpError::TooLarge`] if they do not fit.
    pub(super) fn add(&mut self, more: &[u8]) -> Result<(), HttpError> {
        let end = self.length + more.len();
        self.map.get_mut(self.length..end).ok_or(HttpError::TooLarge)?.copy_from_slice(more);
        self.length = end;
        Ok(())
    }
}

impl AsRef<[u8]> for CountedContent {
    fn as_ref(&self) -> &[u8] {
        self.map.get(..self.length).unwrap_or_default()
    }
}

/// Content and its part of the budget.
struct HeldContent {
    content: CountedContent,
    _share: BodyShare,
}

impl AsRef<[u8]> for HeldContent {
    fn as_ref(&self) -> &[u8] {
        self.content.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Extends a share to content that did not expand.
    fn cover(share: &mut BodyShare, length: usize) -> Result<bool, HttpError> {
        let is_extended = share.cover(length, length)?;
        assert_eq!(share.cover(length, length), Ok(false), "covered");
        Ok(is_extended)
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
            cover(&mut share, UNCOUNTED_BYTES + beyond).unwrap();
            assert_eq!(budget.0.available_permits(), UNITS - units, "{beyond} bytes");
        }
        let mut content = CountedContent::new(9).unwrap();
        for part in [&b"con"[..], b"tent"] {
            content.add(part).unwrap();
        }
        assert_eq!(content.add(b"abc"), Err(HttpError::TooLarge));
        let content = share.attach(content);
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
        assert_eq!(cover(&mut large, UNCOUNTED_BYTES + 3 * UNIT_BYTES), Ok(true));
        assert_eq!(cover(&mut other, UNCOUNTED_BYTES + 2 * UNIT_BYTES), Err(HttpError::Busy));
        assert_eq!(cover(&mut other, UNCOUNTED_BYTES), Ok(false), "small bodies need none");
        drop(large);
        assert_eq!(cover(&mut other, UNCOUNTED_BYTES + 2 * UNIT_BYTES), Ok(true));
        assert_eq!(cover(&mut BodyShare::new(None), usize::MAX), Ok(false));
    }

    #[test]
    fn share_of_expanding_data_is_too_large() {
        let budget = BodyBudget::default();
        let length = UNCOUNTED_BYTES + UNIT_BYTES;
        for (received, expect) in
            [(length / EXPANSION_MAX, Ok(true)), (length / EXPANSION_MAX - 1, Err(HttpError::TooLarge))]
        {
            assert_eq!(BodyShare::new(Some(&budget)).cover(length, received), expect, "{received}");
        }
        assert_eq!(BodyShare::new(Some(&budget)).cover(UNCOUNTED_BYTES, 1), Ok(false));
        assert_eq!(BodyShare::new(None).cover(length, 1), Ok(false));
    }
}

//! Entry points of the fuzz targets.

use transcript_core::video::Platform;

use super::{page, post};

/// Reads the page of the post with this code.
pub fn page(body: &[u8], code: &str) {
    match page::post(body, code).and_then(|node| post::read(&node, code)) {
        Ok(post) => {
            assert!(!post.addresses.is_empty());
            assert!(post.details.metadata.cleaned(post.details.duration_ms).check().is_ok());
        }
        Err(failure) => drop(failure.error(Platform::Instagram)),
    }
}

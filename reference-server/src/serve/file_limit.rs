//! Limit of the process for open files.

/// Files that are kept for stores, requests to upstreams and programs that the server runs.
const RESERVED_FILES: u64 = 256;

/// Raises the soft limit of open files to the hard limit, and returns it; `None` if there is no limit.
#[cfg(unix)]
pub(crate) fn raise_file_limit() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return limit.current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }) {
        Ok(()) => limit.maximum,
        Err(error) => {
            tracing::warn!(%error, "file limit not raised");
            limit.current
        }
    }
}

#[cfg(not(unix))]
pub(crate) fn raise_file_limit() -> Option<u64> {
    None
}

/// Returns how many connections leave enough of the files of the process.
pub(crate) fn connections_within(files: Option<u64>, connections: u32) -> u32 {
    let Some(files) = files else { return connections };
    let reserved = RESERVED_FILES.min(files / 2);
    u32::try_from(files - reserved).unwrap_or(u32::MAX).min(connections).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_stores_and_upstreams() {
        for (files, expect) in [
            (None, 10_000),
            (Some(1 << 20), 10_000),
            (Some(10_256), 10_000),
            (Some(1_024), 768),
            (Some(100), 50),
            (Some(0), 1),
        ] {
            assert_eq!(connections_within(files, 10_000), expect, "{files:?}");
        }
    }
}

//! What the system says of this process. Where it does not say, nothing is shown.

use std::{
    sync::OnceLock,
    time::{SystemTime, UNIX_EPOCH},
};

/// What the system says of this process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    /// Memory that is in use, in bytes.
    pub(super) resident_bytes: Option<u64>,
    /// Seconds of all processors together.
    pub(super) cpu_seconds: Option<f64>,
    /// Open files and connections.
    pub(super) open_fds: Option<u64>,
    /// How many of them there may be.
    pub(super) max_fds: Option<u64>,
    /// When it began, in seconds since 1970.
    pub(super) began: f64,
}

/// Notes when the process began; the first call counts.
pub(crate) fn began() -> f64 {
    static BEGAN: OnceLock<f64> = OnceLock::new();
    *BEGAN.get_or_init(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64())
}

impl Process {
    /// As it is now.
    pub(super) fn now() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
        Self {
            resident_bytes: field(&status, "VmRSS:").map(|kib| kib * 1024),
            cpu_seconds: scheduled(),
            open_fds: std::fs::read_dir("/proc/self/fd").ok().map(|files| files.count() as u64),
            max_fds: field(&limits, "Max open files"),
            began: began(),
        }
    }
}

/// The first number behind a name at a line's start.
fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The time on processors, in seconds.
fn scheduled() -> Option<f64> {
    // User and system time in clock ticks, which are a hundredth of a second on every Linux. The name before them may
    // have spaces in it, and ends with a parenthesis.
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |place: usize| fields.get(place)?.parse::<u64>().ok();
    Some((ticks(11)? + ticks(12)?) as f64 / 100.0)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_system_tells() {
        let now = Process::now();
        assert!(now.resident_bytes.unwrap() > 1 << 20, "{now:?}");
        assert!(now.open_fds.unwrap() >= 3 && now.max_fds.unwrap() >= now.open_fds.unwrap(), "{now:?}");
        assert!(now.cpu_seconds.is_some() && now.began > 1.7e9, "{now:?}");
        assert_eq!(Process::now().began.to_bits(), now.began.to_bits());
    }

    #[test]
    fn lines_are_read_by_their_names() {
        let text = "VmSize:\t 9 kB\nVmRSS:\t  1234 kB\nMax open files            1024     4096  files\n";
        assert_eq!(field(text, "VmRSS:"), Some(1234));
        assert_eq!(field(text, "Max open files"), Some(1024));
        assert_eq!(field(text, "VmSwap:"), None);
    }
}

//! Process metrics from the operating system. Unavailable values are not exported.

use std::{
    sync::OnceLock,
    time::{SystemTime, UNIX_EPOCH},
};

/// Process metrics; `None` if unavailable.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessFigures {
    /// Resident memory, in bytes.
    pub(super) resident_bytes: Option<u64>,
    /// CPU time over all cores, in seconds.
    pub(super) cpu_seconds: Option<f64>,
    /// Open file descriptors.
    pub(super) open_fds: Option<u64>,
    /// Limit of open file descriptors.
    pub(super) max_fds: Option<u64>,
    /// Start time, in seconds since 1970.
    pub(super) start_time: f64,
}

/// Start time of the process: the time of the first call.
pub(crate) fn start_time() -> f64 {
    static BEGAN: OnceLock<f64> = OnceLock::new();
    *BEGAN.get_or_init(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64())
}

impl ProcessFigures {
    /// Reads the current values.
    pub(super) fn now() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
        Self {
            resident_bytes: field(&status, "VmRSS:").map(|kib| kib * 1024),
            cpu_seconds: cpu_seconds(),
            open_fds: std::fs::read_dir("/proc/self/fd").ok().map(|files| files.count() as u64),
            max_fds: field(&limits, "Max open files"),
            start_time: start_time(),
        }
    }
}

/// First number after a name at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// CPU time in seconds, user and system.
fn cpu_seconds() -> Option<f64> {
    // User and system time are in clock ticks of 1/100 s on Linux. The name before them may contain spaces and ends
    // with a parenthesis.
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some((ticks(11)? + ticks(12)?) as f64 / 100.0)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn process_figures_are_read_from_procfs() {
        let now = ProcessFigures::now();
        assert!(now.resident_bytes.unwrap() > 1 << 20, "{now:?}");
        assert!(now.open_fds.unwrap() >= 3 && now.max_fds.unwrap() >= now.open_fds.unwrap(), "{now:?}");
        assert!(now.cpu_seconds.is_some() && now.start_time > 1.7e9, "{now:?}");
        assert_eq!(ProcessFigures::now().start_time.to_bits(), now.start_time.to_bits());
    }

    #[test]
    fn field_is_found_by_name() {
        let text = "VmSize:\t 9 kB\nVmRSS:\t  1234 kB\nMax open files            1024     4096  files\n";
        assert_eq!(field(text, "VmRSS:"), Some(1234));
        assert_eq!(field(text, "Max open files"), Some(1024));
        assert_eq!(field(text, "VmSwap:"), None);
    }
}

//! Process groups: a program and its child processes, stopped together.

use std::io;

use tokio::process::{Child, Command};

/// Resource limits of a program and of its child processes; enforced on Linux only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResourceLimits {
    /// Writable memory of each process in bytes.
    pub(crate) memory: u64,
    /// Maximum size of a written file in bytes.
    pub(crate) file: u64,
}

/// A program and its child processes, which are stopped on drop.
///
/// They share a process group with the id of the first one. A process that leaves the group on purpose is not stopped;
/// none of the supported programs does that.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

impl ProcessGroup {
    /// Starts a program as the leader of a new process group, within its limits.
    #[cfg(unix)]
    pub(crate) fn spawn(command: &mut Command, room: ResourceLimits) -> io::Result<(Child, Self)> {
        use rustix::process::Pid;

        let child = command.process_group(0).spawn()?;
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let group = Self { leader };
        group.limit(room);
        Ok((child, group))
    }

    /// Starts a program. On systems other than Unix only the program itself is stopped.
    #[cfg(not(unix))]
    pub(crate) fn spawn(command: &mut Command, _: ResourceLimits) -> io::Result<(Child, Self)> {
        Ok((command.spawn()?, Self {}))
    }

    /// Sets the limits, which child processes inherit.
    ///
    /// They are set from outside right after the start, since no safe code can run between fork and exec.
    #[cfg(target_os = "linux")]
    fn limit(&self, room: ResourceLimits) {
        use rustix::process::{Resource, Rlimit, prlimit};

        for (resource, most) in
            [(Resource::Data, room.memory), (Resource::Fsize, room.file), (Resource::Core, 0)]
        {
            let limit = Rlimit { current: Some(most), maximum: Some(most) };
            if let Err(error) = prlimit(self.leader, resource, limit) {
                tracing::debug!(?resource, %error, "setting a resource limit failed");
            }
        }
    }

    #[cfg(all(unix, not(target_os = "linux")))]
    fn limit(&self, _: ResourceLimits) {}
}

#[cfg(unix)]
impl Drop for ProcessGroup {
    fn drop(&mut self) {
        use rustix::process::{Signal, kill_process_group};

        // The id stays reserved while the group has members; without members the signal has no effect.
        if let Some(leader) = self.leader.take() {
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

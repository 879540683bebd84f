//! A program and all that it starts, to be ended together.

use std::io;

use tokio::process::{Child, Command};

/// What a program and those that it starts may take; on Linux only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// The memory that each may write to, in bytes.
    pub(crate) memory: u64,
    /// The largest file that each may write, in bytes.
    pub(crate) file: u64,
}

/// Ends a program and those that it started when it is dropped.
///
/// They share a group of their own, named by the first one's number. Whoever leaves that group on purpose is not
/// reached; none of the programs that we run does.
#[derive(Debug)]
pub(crate) struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

impl Group {
    /// Starts a program at the head of a group of its own, within its room.
    #[cfg(unix)]
    pub(crate) fn spawn(command: &mut Command, room: Room) -> io::Result<(Child, Self)> {
        use rustix::process::Pid;

        let child = command.process_group(0).spawn()?;
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let group = Self { leader };
        group.limit(room);
        Ok((child, group))
    }

    /// Starts a program. Elsewhere than on Unix it is ended alone.
    #[cfg(not(unix))]
    pub(crate) fn spawn(command: &mut Command, _: Room) -> io::Result<(Child, Self)> {
        Ok((command.spawn()?, Self {}))
    }

    /// Limits what the program may take; what it starts inherits that. It is set from outside right after
    /// the start, since between fork and exec nothing safe can run.
    #[cfg(target_os = "linux")]
    fn limit(&self, room: Room) {
        use rustix::process::{Resource, Rlimit, prlimit};

        for (resource, most) in
            [(Resource::Data, room.memory), (Resource::Fsize, room.file), (Resource::Core, 0)]
        {
            let limit = Rlimit { current: Some(most), maximum: Some(most) };
            if let Err(error) = prlimit(self.leader, resource, limit) {
                tracing::debug!(?resource, %error, "a program's limit is not set");
            }
        }
    }

    #[cfg(all(unix, not(target_os = "linux")))]
    fn limit(&self, _: Room) {}
}

#[cfg(unix)]
impl Drop for Group {
    fn drop(&mut self) {
        use rustix::process::{Signal, kill_process_group};

        // The group's number stays taken while anybody is in it; where nobody is left there is nothing to end.
        if let Some(leader) = self.leader.take() {
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

//! The user of the system who runs the command.

/// Name of the user; `uid-1000` if the system's file of users does not list the id.
#[cfg(unix)]
pub(crate) fn system_user() -> String {
    let id = rustix::process::getuid().as_raw();
    let users = std::fs::read("/etc/passwd").unwrap_or_default();
    let name = user_name(&String::from_utf8_lossy(&users), id);
    name.unwrap_or_else(|| format!("uid-{id}"))
}

/// Name of the user.
#[cfg(not(unix))]
pub(crate) fn system_user() -> String {
    std::env::var("USERNAME").unwrap_or_else(|_| "unknown".to_owned())
}

/// Name of the user with this id: `NAME:PASSWORD:ID:…`.
#[cfg(unix)]
fn user_name(users: &str, id: u32) -> Option<String> {
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, user_id) = (fields.next()?, fields.nth(1)?);
        (user_id.parse() == Ok(id)).then_some(name)
    });
    name.filter(|name| !name.is_empty()).map(ToOwned::to_owned)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn user_name_is_found_by_id() {
        let users = "root:x:0:0:root:/root:/bin/sh\n\nbroken\nann:x:1000:1000::/:/bin/sh\n:x:7:7::/:/\n";
        for (id, name) in [(0, Some("root")), (1000, Some("ann")), (7, None), (100, None)] {
            assert_eq!(user_name(users, id).as_deref(), name);
        }
    }
}

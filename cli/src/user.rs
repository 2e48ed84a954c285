//! Another user of this system, for `--user`: looked up in `/etc/passwd` and `/etc/group`, and become for good.

use std::io;
use std::path::Path;

use crate::error::{CommandError, Kind};
use crate::files;

/// A user as `/etc/passwd` has them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct User {
    name: String,
    home: String,
    uid: u32,
    gid: u32,
    /// All groups, the own one included.
    groups: Vec<u32>,
}

impl User {
    /// The user called `name`.
    pub(crate) fn find(name: &str) -> Result<Self, CommandError> {
        let read = |path: &str| {
            std::fs::read_to_string(Path::new(path)).map_err(|error| {
                CommandError::on(Kind::General, path, files::plain_words(&error)).hint("do without `--user`")
            })
        };
        Self::parse(name, &read("/etc/passwd")?, &read("/etc/group")?).ok_or_else(|| {
            CommandError::general(format!("there is no user `{name}` in /etc/passwd"))
                .hint("name a user that `getent passwd` shows from that file")
        })
    }

    fn parse(name: &str, passwd: &str, group: &str) -> Option<Self> {
        let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
        let user = passwd.lines().map(fields).find(|fields| fields.len() >= 6 && fields[0] == name)?;
        let (uid, gid) = (user[2].parse().ok()?, user[3].parse().ok()?);
        let member = |fields: &Vec<String>| {
            fields.get(3).is_some_and(|members| members.split(',').any(|member| member.trim() == name))
        };
        let others = group.lines().map(fields).filter(member).filter_map(|fields| fields[2].parse().ok());
        let groups = [gid].into_iter().chain(others.filter(|other| *other != gid)).collect();
        Some(Self { name: name.to_owned(), home: user[5].clone(), uid, gid, groups })
    }

    /// What programs look at to know who they run as.
    pub(crate) fn variables(&self) -> [(&'static str, &str); 3] {
        [("HOME", &self.home), ("USER", &self.name), ("LOGNAME", &self.name)]
    }

    /// Makes this process that user's, and all that it starts. Called before any thread is started, since on Linux
    /// each thread has a user of its own.
    pub(crate) fn assume(&self) -> Result<(), CommandError> {
        let failed = |error: io::Error| {
            CommandError::general(format!("cannot become {}: {}", self.name, files::plain_words(&error)))
                .hint("only root can run a command as another user")
        };
        self.switch().map_err(failed)
    }

    #[cfg(target_os = "linux")]
    fn switch(&self) -> io::Result<()> {
        use rustix::process::{Gid, Uid};
        use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
        let groups: Vec<Gid> = self.groups.iter().map(|group| Gid::from_raw(*group)).collect();
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        // The user last: after that there is no right left to change the groups.
        set_thread_groups(&groups)?;
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn switch(&self) -> io::Result<()> {
        let _ = (self.uid, self.gid, &self.groups);
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_their_groups_are_found() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\n# c\nci:x:1001:1002:CI:/srv/ci:/bin/false\n";
        let group = "root:x:0:\nci:x:1002:\nkeys:x:70:ops,ci\nother:x:71:cix\n";
        let user = User::parse("ci", passwd, group).unwrap();
        assert_eq!((user.uid, user.gid, user.groups.as_slice()), (1001, 1002, [1002, 70].as_slice()));
        assert_eq!(user.variables()[0], ("HOME", "/srv/ci"));
        assert_eq!(User::parse("cix", passwd, group), None);
    }
}

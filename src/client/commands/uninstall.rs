//! `agentctl uninstall`: names what agentd keeps on this machine for the user; `--purge` deletes it. The programs and
//! units belong to whatever installed them.

use std::fs;
use std::path::{Path, PathBuf};

use api::endpoint;

use crate::commands::daemon::{service, stop};
use crate::connection::connector::Connector;
use crate::failure::Failure;
use crate::terminal::confirm::confirm;
use crate::terminal::escape;
use crate::terminal::out::OutputStreams;
use api::params::ShutdownMode;

/// A folder of agentd that exists.
struct Place {
    what: &'static str,
    folder: PathBuf,
    bytes: u64,
}

pub(crate) async fn uninstall(
    reach: &Connector,
    (is_purge, is_confirmed): (bool, bool),
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let data = &reach.places.data_dir;
    let home = endpoint::home(&base::proc::variable).map_err(|error| Failure::usage(error.to_string()))?;
    let places = places(reach);
    for place in &places {
        let (what, bytes) = (place.what, place.bytes as f64 / 1e6);
        out.say(&format!("{what:<58} {bytes:>9.1} MB  {}", shown(&place.folder)))?;
    }
    let worktrees = entries(&data.join("worktrees"));
    if worktrees > 0 {
        out.note(&format!(
            "{worktrees} folders with worktrees of sessions are in the data; `agentctl worktrees` lists them"
        ))?;
    }
    if places.is_empty() {
        out.note("there are no data and no settings of agentd for this user")?;
    }
    if !is_purge {
        out.note("nothing is deleted without --purge")?;
        return Ok(out.note(PROGRAMS)?);
    }
    // Each folder is deleted whole, so it must hold nothing but files of agentd.
    if let Some(place) = places.iter().find(|place| !is_own(&place.folder, data, &home)) {
        return Err(Failure::usage(format!(
            "{} may hold other files than those of agentd, so nothing is deleted; delete what is yours by hand",
            shown(&place.folder)
        )));
    }
    if service(reach).is_some() {
        return Err(Failure::usage(
            "the daemon is a service of systemd; first: systemctl --user disable --now agentd.socket agentd.service",
        ));
    }
    if places.is_empty() {
        return Ok(out.note(PROGRAMS)?);
    }
    if !is_confirmed {
        confirm("Stop the daemon and delete these folders, with all sessions and keys?", "--yes")?;
    }
    stop(reach, ShutdownMode::Now, &mut OutputStreams::silent()).await?;
    for place in &places {
        fs::remove_dir_all(&place.folder).map_err(|error| {
            Failure::internal(format!("could not delete {}: {error}", shown(&place.folder)))
        })?;
        out.say(&format!("deleted {}", shown(&place.folder)))?;
    }
    Ok(out.note(PROGRAMS)?)
}

/// How the programs go. Nothing of them is looked up: several ways may have been used.
const PROGRAMS: &str = "the programs stay: apt remove agentd, pip uninstall agentd, npm uninstall -g agentd or cargo \
                        uninstall agentd, as they were installed; /etc/agentd belongs to the system";

fn places(reach: &Connector) -> Vec<Place> {
    let mut folders = vec![("sessions, rules, backups, indexes, worktrees", reach.places.data_dir.clone())];
    if let Ok(folder) = endpoint::config_dir(&base::proc::variable) {
        folders.push(("settings and keys", folder));
    }
    folders.push(("sockets", reach.places.runtime_dir()));
    folders.retain(|(_, folder)| fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir()));
    let data = reach.places.data_dir.clone();
    // The sockets may be in the data folder.
    folders.retain(|(_, folder)| *folder == data || !folder.starts_with(&data));
    let place = |(what, folder): (&'static str, PathBuf)| Place { what, bytes: size(&folder), folder };
    folders.into_iter().map(place).collect()
}

/// Whether a folder belongs to agentd alone: the data folder by its lock file, the others by their name.
fn is_own(folder: &Path, data: &Path, home: &Path) -> bool {
    let is_named = match folder == data {
        true => fs::symlink_metadata(folder.join("agentd.lock")).is_ok_and(|meta| meta.is_file()),
        false => folder.ends_with("agentd"),
    };
    is_named && !home.starts_with(folder)
}

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, |entries| entries.flatten().count())
}

/// The bytes of all files in a folder. Links are not followed; what cannot be read counts as nothing.
fn size(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let bytes = |entry: fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => size(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    entries.flatten().map(bytes).sum()
}

fn shown(folder: &Path) -> String {
    escape::line(&folder.display().to_string()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_agentd_alone_are_deleted() {
        let dir = tempfile::tempdir().expect("a folder");
        let home = dir.path().join("home");
        let (data, config) = (home.join("data"), home.join(".config/agentd"));
        fs::create_dir_all(&data).expect("made");
        fs::create_dir_all(&config).expect("made");
        assert!(!is_own(&data, &data, &home), "nothing shows that it is a data folder");
        fs::write(data.join("agentd.lock"), "").expect("written");
        assert!(is_own(&data, &data, &home) && is_own(&config, &data, &home));
        assert!(!is_own(&home.join(".config"), &data, &home));
        fs::write(home.join("agentd.lock"), "").expect("written");
        assert!(!is_own(&home, &home, &home), "the home folder as data folder");
    }

    #[test]
    fn size_counts_files_and_not_what_links_name() {
        let dir = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(dir.path().join("a/b")).expect("made");
        fs::write(dir.path().join("a/b/c"), [0; 1000]).expect("written");
        let linked = tempfile::tempdir().expect("a folder");
        fs::write(linked.path().join("d"), [0; 5000]).expect("written");
        std::os::unix::fs::symlink(linked.path(), dir.path().join("a/link")).expect("linked");
        assert!((1000..2000).contains(&size(dir.path())), "{}", size(dir.path()));
    }
}

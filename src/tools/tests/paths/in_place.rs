//! Files that are written in place, because a new file could not replace them or would change their other names.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::{Command, Output};

use super::{PathFixture, call};
use crate::file_identity::FileStamp;

/// Replaces the content of `ws/a` and returns whether it was written in place.
fn is_written_in_place(fixture: &PathFixture) -> bool {
    let path = fixture.ws().join("a");
    let inode = fs::metadata(&path).unwrap().ino();
    let held = fixture.edit("a");
    let before = held.load().unwrap().unwrap();
    let stamp = held.replace(call(), Some(&before), b"new").unwrap();
    let meta = fs::metadata(&path).unwrap();
    assert_eq!((fs::read(&path).unwrap().as_slice(), FileStamp::from_metadata(&meta)), (&b"new"[..], stamp));
    meta.ino() == inode
}

#[test]
fn file_with_several_names_is_written_in_place_only_if_workspace_has_all() {
    let cases: [(&str, &[&str], bool); 6] = [
        ("one name", &[], false),
        ("two names in the workspace", &["ws/b"], true),
        ("three names", &["ws/b", "ws/deep/er/c"], true),
        ("a name outside", &["out/d/f2"], false),
        ("a name in a folder of packages", &["ws/node_modules/p/index.js"], false),
        ("both", &["ws/b", "ws/.venv/lib/x.py"], false),
    ];
    for (case, others, expected) in cases {
        let fixture = PathFixture::new();
        fixture.write_file("out/d/f", "");
        let path = fixture.write_file("ws/a", "old");
        for other in others {
            let other = fixture.root.join(other);
            fs::create_dir_all(other.parent().unwrap()).unwrap();
            fs::hard_link(&path, &other).unwrap();
        }
        assert_eq!(is_written_in_place(&fixture), expected, "{case}");
        for other in others {
            assert_eq!(fixture.read(other), if expected { "new" } else { "old" }, "{case}: {other}");
        }
    }
}

#[test]
fn attributes_of_replaced_file_are_kept() {
    let fixture = PathFixture::new();
    let path = fixture.write_file("ws/a", "old");
    let flags = rustix::fs::XattrFlags::empty();
    if rustix::fs::setxattr(&path, "user.note", b"kept", flags).is_err() {
        base::skip_test!("this file system has no attributes");
        return;
    }
    // An access list as of `setfacl -m u:1:rw`: version, then entries of tag, permissions and id.
    let entries: [(u16, u16, u32); 5] =
        [(1, 6, u32::MAX), (2, 6, 1), (4, 4, u32::MAX), (16, 6, u32::MAX), (32, 4, u32::MAX)];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(permissions.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    let name = "system.posix_acl_access";
    let has_list = rustix::fs::setxattr(&path, name, &list, flags).is_ok();
    // The default list of a folder is not that of the file in it.
    let has_default = rustix::fs::setxattr(fixture.ws(), "system.posix_acl_default", &list, flags).is_ok();
    let mode = fs::metadata(&path).unwrap().mode();
    is_written_in_place(&fixture);
    let mut value = [0; 1024];
    let count = rustix::fs::getxattr(&path, "user.note", value.as_mut_slice()).unwrap();
    assert_eq!(&value[..count], b"kept");
    if has_list {
        let count = rustix::fs::getxattr(&path, name, value.as_mut_slice()).unwrap();
        assert_eq!(&value[..count], list);
        assert_eq!(fs::metadata(&path).unwrap().mode(), mode);
    }
    if has_default {
        let plain = fixture.write_file("ws/b", "old");
        rustix::fs::removexattr(&plain, name).unwrap();
        let held = fixture.edit("b");
        let before = held.load().unwrap().unwrap();
        held.replace(call(), Some(&before), b"new").unwrap();
        assert!(rustix::fs::getxattr(&plain, name, value.as_mut_slice()).is_err(), "no list appears");
    }
}

#[test]
fn writable_file_in_read_only_folder_is_written_in_place() {
    if nix::unistd::geteuid().is_root() {
        base::skip_test!("root may write every folder");
        return;
    }
    let fixture = PathFixture::new();
    fixture.write_file("ws/a", "old");
    fs::set_permissions(fixture.ws(), fs::Permissions::from_mode(0o555)).unwrap();
    let is_in_place = is_written_in_place(&fixture);
    fs::set_permissions(fixture.ws(), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(is_in_place);
}

/// Runs a program as root of a user namespace, where it may mount.
fn run_with_mounts<S: AsRef<OsStr>>(args: &[S]) -> std::io::Result<Output> {
    Command::new("unshare").arg("-rm").args(args).env(MAY_MOUNT, "1").output()
}

/// Set in the process that may mount.
const MAY_MOUNT: &str = "AGENTD_TEST_MAY_MOUNT";

#[test]
fn file_with_mount_over_it_is_written_in_place() {
    let fixture = PathFixture::new();
    if std::env::var_os(MAY_MOUNT).is_none() {
        let (root, program) = (fixture.root.as_os_str(), std::env::current_exe().unwrap());
        let tried = run_with_mounts(&["mount".as_ref(), "--bind".as_ref(), root, root]);
        if !tried.is_ok_and(|output| output.status.success()) {
            base::skip_test!("a user may not mount here");
            return;
        }
        let (_, module) = module_path!().split_once("::").unwrap();
        let name = format!("{module}::file_with_mount_over_it_is_written_in_place");
        let output = run_with_mounts(&[program.as_os_str(), "--exact".as_ref(), name.as_ref()]).unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{output:?}");
        return;
    }
    let (source, path) = (fixture.write_file("out/b", "old"), fixture.write_file("ws/a", "old"));
    assert!(Command::new("mount").arg("--bind").args([&source, &path]).status().unwrap().success());
    let is_in_place = is_written_in_place(&fixture);
    assert!(Command::new("umount").arg(&path).status().unwrap().success());
    assert!(is_in_place);
    assert_eq!((fixture.read("out/b").as_str(), fixture.read("ws/a").as_str()), ("new", "old"));
}

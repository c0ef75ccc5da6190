//! Folders that are left out although no ignore file names them: installed dependencies and results of builds. They
//! hold many times the code of the workspace, and others wrote it.

/// Maximum number of left-out folders that are named.
pub const MAX_LEFT_OUT_FOLDERS: usize = 100;

/// When a folder with a name is left out.
enum Evidence {
    /// The name says enough.
    Name,
    /// One of these files is in the folder.
    Inside(&'static [&'static str]),
    /// The folder is at the top of the workspace, or one of these files is next to it.
    TopOrNextTo(&'static [&'static str]),
    /// One of these files is next to the folder.
    NextTo(&'static [&'static str]),
}

use Evidence::{Inside, Name, NextTo, TopOrNextTo};

/// Manifests of projects whose builds write to `build`, `dist` or `out`.
const MANIFESTS: &[&str] = &[
    "package.json",
    "pyproject.toml",
    "setup.py",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "CMakeLists.txt",
    "meson.build",
    "pubspec.yaml",
    "build.xml",
    "build.sbt",
    "Package.swift",
];

const VIRTUAL_ENVIRONMENT: &[&str] = &["pyvenv.cfg", "bin/activate", "Scripts/activate"];

/// Names of folders. The same word is a folder of sources elsewhere, such as `src/build`, so most need evidence.
const FOLDERS: &[(&str, Evidence)] = &[
    ("node_modules", Name),
    ("bower_components", Name),
    ("jspm_packages", Name),
    ("__pycache__", Name),
    ("site-packages", Name),
    ("__pypackages__", Name),
    ("elm-stuff", Name),
    ("DerivedData", Name),
    ("Pods", Name),
    ("Carthage", NextTo(&["Cartfile"])),
    ("target", TopOrNextTo(&["Cargo.toml", "pom.xml", "build.sbt", "project.clj"])),
    ("build", TopOrNextTo(MANIFESTS)),
    ("dist", TopOrNextTo(MANIFESTS)),
    ("out", NextTo(MANIFESTS)),
    ("vendor", TopOrNextTo(&["go.mod", "composer.json", "Gemfile", "Cargo.toml", "package.json"])),
    ("venv", TopOrNextTo(&["pyproject.toml", "requirements.txt", "setup.py"])),
    ("env", Inside(VIRTUAL_ENVIRONMENT)),
    ("_build", NextTo(&["mix.exs", "rebar.config", "dune-project", "conf.py"])),
    ("deps", NextTo(&["mix.exs"])),
    ("obj", NextTo(&["project.assets.json", "packages.config"])),
    ("coverage", NextTo(&["package.json", "Gemfile"])),
    ("bazel-bin", Name),
    ("bazel-out", Name),
];

/// A file that marks a folder as a cache (bford.info/cachedir), and the one of a virtual environment of Python.
const CACHE_MARKS: &[&str] = &["CACHEDIR.TAG", "pyvenv.cfg"];

/// Whether a folder is left out by default. `path` is relative to the workspace; `exists` says whether a file at such
/// a path exists.
#[must_use]
pub fn is_left_out_folder(path: &str, exists: &dyn Fn(&str) -> bool) -> bool {
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_inside = |file: &&str| exists(&format!("{path}/{file}"));
    let is_next_to = |file: &&str| {
        if parent.is_empty() { exists(file) } else { exists(&format!("{parent}/{file}")) }
    };
    let named =
        FOLDERS.iter().find(|(known, _)| *known == name).is_some_and(|(_, evidence)| match evidence {
            Name => true,
            Inside(files) => files.iter().any(is_inside),
            TopOrNextTo(files) => parent.is_empty() || files.iter().any(is_next_to),
            NextTo(files) => files.iter().any(is_next_to),
        });
    named || CACHE_MARKS.iter().any(is_inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependency_and_build_folders_are_left_out_by_name_and_evidence() {
        let files =
            ["web/package.json", "core/Cargo.toml", "py/env/pyvenv.cfg", "cache/CACHEDIR.TAG", "app/mix.exs"];
        let is_left_out = |path: &str| is_left_out_folder(path, &|file| files.contains(&file));
        for path in [
            "node_modules",
            "web/node_modules",
            "a/b/__pycache__",
            "target",
            "build",
            "dist",
            "vendor",
            "venv",
            "web/dist",
            "web/build",
            "core/target",
            "py/env",
            "cache",
            "app/deps",
            "app/_build",
            "ios/Pods",
        ] {
            assert!(is_left_out(path), "{path}");
        }
        for path in [
            "src",
            "src/build",
            "src/target",
            "core/dist",
            "core/deps",
            "env",
            "lib/vendor",
            "out",
            "docs/obj",
        ] {
            assert!(!is_left_out(path), "{path}");
        }
    }
}

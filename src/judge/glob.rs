//! Path patterns of rules: gitignore-style globs, relative to the workspace unless they begin with `/`
//! or `~/`.
//!
//! As in a `.gitignore`: a pattern without an inner `/` matches at any depth, `*` stops at `/`, `**`
//! does not, and a pattern that matches a folder covers its content. `dir/**` covers `dir` itself as
//! well, so that the same rule applies to listing it. Brackets match by either reading, as a class or choice and
//! literally, because names such as `app/[slug]` are common.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use types::{glob_brackets, names};

/// One pattern, ready to match resolved paths.
#[derive(Clone)]
pub(super) struct PathPattern {
    base: Base,
    matcher: PartMatcher,
    /// The same pattern for case-folded names.
    folded: PartMatcher,
    /// The only path that it names, relative to the base, if it has no wildcard and is anchored.
    exact: Option<String>,
    /// It names a file or folder at any depth: each component of a path is matched separately.
    floats: bool,
    /// The components after the base.
    parts: Vec<String>,
}

#[derive(Clone, Copy)]
enum Base {
    Root,
    Home,
    Workspace,
}

/// Compares names, or paths without a base. Most patterns have no wildcard, and comparing bytes is
/// faster than a glob.
#[derive(Clone)]
enum PartMatcher {
    Literal(String),
    Glob(GlobMatcher),
}

impl PartMatcher {
    fn parse(pattern: &str) -> Result<Self, String> {
        let glob = GlobBuilder::new(&glob_brackets::either_reading(pattern))
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|e| format!("not a valid glob ({})", e.kind()))?;
        // `Path` drops `.` components, but a glob compares them. So such a pattern is not a literal.
        let is_plain = |text: &String| text.split('/').all(|part| !matches!(part, "" | "." | ".."));
        Ok(match literal(pattern).filter(is_plain) {
            Some(text) => Self::Literal(text),
            None => Self::Glob(glob.compile_matcher()),
        })
    }

    /// Whether one component of `relative` matches.
    fn matches_component(&self, relative: &Path) -> bool {
        match self {
            Self::Literal(text) => relative.iter().any(|part| part == text.as_str()),
            Self::Glob(glob) => relative.iter().any(|part| glob.is_match(part)),
        }
    }

    /// Whether `relative` or a folder above it matches.
    fn matches_path(&self, relative: &Path) -> bool {
        match self {
            Self::Literal(text) => relative.starts_with(text),
            Self::Glob(glob) => relative.ancestors().any(|part| glob.is_match(part)),
        }
    }
}

/// The folders that patterns are relative to, as given and case-folded.
pub(super) struct PatternBases<'p> {
    workspace: &'p Path,
    home: &'p Path,
    folded_workspace: Cow<'p, Path>,
    folded_home: Cow<'p, Path>,
}

impl<'p> PatternBases<'p> {
    /// Both paths must be absolute and resolved.
    pub(super) fn new(workspace: &'p Path, home: &'p Path) -> Self {
        Self { workspace, home, folded_workspace: fold_path(workspace), folded_home: fold_path(home) }
    }
}

/// An absolute, resolved path that is compared with several patterns. It is folded once.
pub(super) struct ComparedPath<'p> {
    bases: &'p PatternBases<'p>,
    path: &'p Path,
    folded: Cow<'p, Path>,
}

impl<'p> ComparedPath<'p> {
    pub(super) fn new(path: &'p Path, bases: &'p PatternBases<'p>) -> Self {
        Self { bases, path, folded: fold_path(path) }
    }
}

fn fold_path(path: &Path) -> Cow<'_, Path> {
    let is_plain = |text: &str| !text.contains("//") && text.split('/').all(names::is_folded);
    if path.to_str().is_some_and(is_plain) {
        return Cow::Borrowed(path);
    }
    let fold_part = |part: &OsStr| names::fold_case(&part.to_string_lossy());
    let parts = path.iter().map(|part| if part == "/" { "/".into() } else { fold_part(part) });
    Cow::Owned(parts.collect())
}

impl PathPattern {
    /// The error is a sentence fragment.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with('!') {
            return Err("a pattern cannot be negated; write a deny rule".into());
        }
        let (base, rest) = if text == "~" {
            (Base::Home, "")
        } else if let Some(rest) = text.strip_prefix("~/") {
            (Base::Home, rest)
        } else if let Some(rest) = text.strip_prefix('/') {
            (Base::Root, rest)
        } else {
            (Base::Workspace, text)
        };
        let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        if parts.contains(&"..") {
            return Err("a pattern cannot hold `..`; write the path it means".into());
        }
        let anchored = !matches!(base, Base::Workspace) || parts.len() > 1 || text.starts_with("./");
        let mut body = parts.join("/");
        let exact = if anchored { literal(&body) } else { None };
        while let Some(shorter) = body.strip_suffix("/**") {
            body.truncate(shorter.len());
        }
        if body == "**" {
            body.clear();
        }
        let floats = !body.is_empty() && !anchored;
        let pattern = if body.is_empty() { "**".to_owned() } else { body };
        let parts = parts.into_iter().map(str::to_owned).collect();
        let matcher = PartMatcher::parse(&pattern)?;
        // Case folding keeps the text a valid glob: the removed characters are not part of the syntax.
        let folded: Vec<String> = pattern.split('/').map(names::fold_case).collect();
        let folded = PartMatcher::parse(&folded.join("/")).unwrap_or_else(|_| matcher.clone());
        Ok(Self { base, matcher, folded, exact, floats, parts })
    }

    /// The same pattern with its relative paths starting at `folder` instead of the workspace. `None` if the folder's
    /// path is not UTF-8.
    pub(super) fn with_base(&self, folder: &Path) -> Option<Self> {
        if !matches!(self.base, Base::Workspace) {
            return Some(self.clone());
        }
        let any_depth = if self.floats { "**/" } else { "" };
        Self::parse(&format!("{}/{any_depth}{}", escape(folder.to_str()?), self.parts.join("/"))).ok()
    }

    /// Whether the pattern starts at the workspace.
    pub(super) fn is_relative(&self) -> bool {
        matches!(self.base, Base::Workspace)
    }

    fn relative_path<'p>(&self, path: &'p Path, workspace: &Path, home: &Path) -> Option<&'p Path> {
        match self.base {
            Base::Root => path.strip_prefix("/").ok(),
            Base::Home => path.strip_prefix(home).ok(),
            Base::Workspace => path.strip_prefix(workspace).ok(),
        }
    }

    /// Whether `path` (absolute, resolved) or a folder above it matches.
    pub(super) fn matches(&self, path: &Path, workspace: &Path, home: &Path) -> bool {
        let relative = self.relative_path(path, workspace, home);
        relative.is_some_and(|relative| self.is_within(&self.matcher, relative))
    }

    /// Whether a path relative to the base, or a folder above it, matches.
    fn is_within(&self, matcher: &PartMatcher, relative: &Path) -> bool {
        match self.floats {
            true => matcher.matches_component(relative),
            false => matcher.matches_path(relative),
        }
    }

    /// The same pattern for the targets of its literal beginning, by either reading of its brackets;
    /// `real` returns the target of a path that is a link. A rule that denies a path by the name of a
    /// link also denies the target.
    pub(super) fn with_resolved_links(
        &self,
        workspace: &Path,
        home: &Path,
        real: &dyn Fn(&Path) -> Option<PathBuf>,
    ) -> Vec<Self> {
        let base = match self.base {
            Base::Root => Path::new("/"),
            Base::Home => home,
            Base::Workspace => workspace,
        };
        let resolve = |literal_parts: &[String]| {
            let mut path = base.to_owned();
            path.extend(literal_parts);
            let target = real(&path).filter(|target| !literal_parts.is_empty() && *target != path)?;
            let rest = self.parts[literal_parts.len()..].join("/");
            let pattern = format!("{}/{rest}", escape(target.to_str()?));
            Self::parse(pattern.trim_end_matches('/')).ok()
        };
        let without_brackets: Vec<String> = self.parts.iter().map_while(|part| literal(part)).collect();
        let with_brackets: Vec<String> =
            self.parts.iter().map_while(|part| literal(&glob_brackets::literal_brackets(part))).collect();
        let is_longer = with_brackets.len() > without_brackets.len();
        let longer = is_longer.then(|| resolve(&with_brackets)).flatten();
        resolve(&without_brackets).into_iter().chain(longer).collect()
    }

    /// As [`Self::matches`], but also matches if some file system would treat the path as a matching one.
    /// For rules that deny or ask, which another spelling must not bypass.
    pub(super) fn matches_any_spelling(&self, compared: &ComparedPath<'_>) -> bool {
        let bases = compared.bases;
        let folded = self.relative_path(&compared.folded, &bases.folded_workspace, &bases.folded_home);
        self.matches(compared.path, bases.workspace, bases.home)
            || folded.is_some_and(|relative| self.is_within(&self.folded, relative))
    }

    /// Whether the pattern is exactly the name of this file, without a wildcard or a folder above it.
    pub(super) fn names_exactly(&self, path: &Path, workspace: &Path, home: &Path) -> bool {
        let Some(exact) = &self.exact else { return false };
        self.relative_path(path, workspace, home).is_some_and(|relative| relative == Path::new(exact))
    }
}

/// The text without its escapes, if it contains no wildcard.
fn literal(pattern: &str) -> Option<String> {
    let mut out = String::with_capacity(pattern.len());
    let mut letters = pattern.chars();
    while let Some(c) = letters.next() {
        match c {
            '*' | '?' | '[' | ']' | '{' | '}' => return None,
            '\\' => out.push(letters.next()?),
            c => out.push(c),
        }
    }
    (!out.is_empty()).then_some(out)
}

/// `path` as a pattern that matches only itself and, for a folder, its content.
pub(super) fn escape(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for (at, c) in path.char_indices() {
        let special = matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\');
        let is_end = at == 0 || at + c.len_utf8() == path.len();
        if special || (at == 0 && matches!(c, '!' | '~')) || (is_end && c.is_whitespace()) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, path: &str, expected: bool) {
        let pattern_parsed = PathPattern::parse(pattern).unwrap();
        let got = pattern_parsed.matches(Path::new(path), Path::new("/w/proj"), Path::new("/home/u"));
        assert_eq!(got, expected, "{pattern} on {path}");
    }

    #[test]
    fn path_patterns_match_like_gitignore() {
        for (pattern, path, expected) in [
            ("src/**", "/w/proj/src/a/b.rs", true),
            ("src/**", "/w/proj/src", true),
            ("src/**", "/w/proj/src2/a.rs", false),
            ("src/**", "/w/proj/x/src/a.rs", false),
            ("src/*.rs", "/w/proj/src/a.rs", true),
            ("src/*.rs", "/w/proj/src/a/b.rs", false),
            ("./src/*.rs", "/w/proj/src/a.rs", true),
            ("*.md", "/w/proj/docs/a.md", true),
            ("*.md", "/w/other/a.md", false),
            (".env", "/w/proj/.env", true),
            (".env", "/w/proj/a/.env", true),
            (".env", "/w/proj/a/.envrc", false),
            ("node_modules", "/w/proj/a/node_modules/x.js", true),
            ("build/", "/w/proj/build/x", true),
            ("/abs/**", "/abs/x/y", true),
            ("/abs/**", "/absolute", false),
            ("/abs/lib/**", "/abs/lib2/a", false),
            ("~/notes/*.md", "/home/u/notes/a.md", true),
            ("~/notes/*.md", "/home/u/notes/b/a.md", false),
            ("~/**", "/home/u/x", true),
            ("~/**", "/home/u2/x", false),
            ("**", "/w/proj/a", true),
            ("**", "/etc/passwd", false),
            ("**/x/**/y", "/w/proj/a/x/b/c/y", true),
            ("*.{ts,tsx}", "/w/proj/a.tsx", true),
            ("src/\\[id\\].ts", "/w/proj/src/[id].ts", true),
            ("src/\\[id\\].ts", "/w/proj/src/i.ts", false),
            ("\\~/x", "/w/proj/~/x", true),
            ("a/\\.", "/w/proj/a/b", false),
            ("..config/x", "/w/proj/..config/x", true),
        ] {
            check(pattern, path, expected);
        }
    }

    #[test]
    fn relative_pattern_starts_at_given_folder() {
        for (pattern, path, expected) in [
            ("src/**", "/w/src/a.rs", true),
            ("src/**", "/w/proj/src/a.rs", false),
            ("./a.txt", "/w/a.txt", true),
            ("./a.txt", "/w/proj/a.txt", false),
            (".env", "/w/.env", true),
            (".env", "/w/proj/deep/.env", true),
            (".env", "/v/.env", false),
            ("*.pem", "/w/proj/a.pem", true),
            ("*.pem", "/w/proj/keys.pem/x", true),
            ("**", "/w/x", true),
            ("**", "/x", false),
            ("proj/*.rs", "/w/proj/a.rs", true),
            ("/abs/**", "/abs/a", true),
            ("/abs/**", "/w/abs/a", false),
            ("~/notes", "/home/u/notes/a", true),
            ("app/\\[x\\]", "/w/app/[x]/a", true),
        ] {
            let pattern_parsed = PathPattern::parse(pattern).unwrap().with_base(Path::new("/w")).unwrap();
            let (workspace, home) = (Path::new("/w/proj"), Path::new("/home/u"));
            assert_eq!(
                pattern_parsed.matches(Path::new(path), workspace, home),
                expected,
                "{pattern} on {path}"
            );
        }
        let strange = Path::new("/w/[a]*{b}!~");
        let pattern = PathPattern::parse("x").unwrap().with_base(strange).unwrap();
        assert!(pattern.matches(&strange.join("d/x"), Path::new("/v"), Path::new("/home/u")));
        assert!(!pattern.matches(Path::new("/w/az{b}!~/x"), Path::new("/v"), Path::new("/home/u")));
        // Another spelling of a denied name.
        let bases = PatternBases::new(Path::new("/w/proj"), Path::new("/home/u"));
        let pattern = PathPattern::parse("Secret.txt").unwrap().with_base(Path::new("/w")).unwrap();
        assert!(pattern.matches_any_spelling(&ComparedPath::new(Path::new("/w/a/SECRET.TXT"), &bases)));
    }

    #[test]
    fn brackets_match_by_either_reading() {
        for (pattern, path, expected) in [
            ("app/[slug]/**", "/w/proj/app/[slug]/page.tsx", true),
            ("app/[slug]/**", "/w/proj/app/s/page.tsx", true),
            ("app/[slug]/**", "/w/proj/app/slug/page.tsx", false),
            ("app/[slug]/**", "/w/proj/app/[slugs]/page.tsx", false),
            ("app/[...all]/page.tsx", "/w/proj/app/[...all]/page.tsx", true),
            ("app/[[...slug]]/**", "/w/proj/app/[[...slug]]/page.tsx", true),
            ("[id].ts", "/w/proj/src/[id].ts", true),
            ("[id].ts", "/w/proj/src/i.ts", true),
            ("app/[foo-bar]/**", "/w/proj/app/[foo-bar]/page.tsx", true),
            ("app/(group)/**", "/w/proj/app/(group)/page.tsx", true),
            ("app/@modal/**", "/w/proj/app/@modal/page.tsx", true),
            ("t/{a}", "/w/proj/t/{a}", true),
            ("t/{a}", "/w/proj/t/a", true),
            ("t/{a,b}", "/w/proj/t/{a,b}", true),
            ("t/{a,b}", "/w/proj/t/b", true),
            ("app/[slug]/*.{ts,tsx}", "/w/proj/app/[slug]/a.tsx", true),
            ("app/[slug]/x[0-9].ts", "/w/proj/app/[slug]/x7.ts", true),
            ("{{cookiecutter.name}}/**", "/w/proj/{{cookiecutter.name}}/setup.py", true),
            ("**/[a]/{b}/c", "/w/proj/x/[a]/{b}/c", true),
            ("[!x]", "/w/proj/[!x]", true),
            ("[!x]", "/w/proj/x", false),
            ("/abs/[id]", "/abs/[id]/deep", true),
            ("~/[id]/*", "/home/u/[id]/x", true),
        ] {
            check(pattern, path, expected);
            // A rule that restricts also holds for other spellings of the name.
            if expected {
                let parsed = PathPattern::parse(&pattern.to_uppercase().replace("/ABS/", "/abs/")).unwrap();
                let bases = PatternBases::new(Path::new("/w/proj"), Path::new("/home/u"));
                assert!(
                    parsed.matches_any_spelling(&ComparedPath::new(Path::new(path), &bases)),
                    "{pattern}"
                );
            }
        }
        let parsed = PathPattern::parse("/w/proj/[id].env").unwrap();
        let path = Path::new("/w/proj/[id].env");
        assert!(!parsed.names_exactly(path, Path::new("/w/proj"), Path::new("/home/u")), "two readings");
    }

    #[test]
    fn pattern_prefix_is_resolved_through_symlinks() {
        let (workspace, home) = (Path::new("/w/proj"), Path::new("/home/u"));
        let links = [
            ("/w/proj/l", "/w/proj/src"),
            ("/home/u/.config/x", "/home/u/[dot]/x"),
            ("/a", "/"),
            ("/w/proj/app/[slug]", "/w/proj/target"),
        ];
        let real = |path: &Path| {
            let under = |(link, to): &(&str, &str)| Some(Path::new(to).join(path.strip_prefix(link).ok()?));
            Some(links.iter().find_map(under).unwrap_or_else(|| path.to_owned()))
        };
        let target =
            |pattern: &str| PathPattern::parse(pattern).unwrap().with_resolved_links(workspace, home, &real);
        for (pattern, path, expected) in [
            ("l/**", "/w/proj/src/a", true),
            ("l", "/w/proj/src/a", true),
            ("l/a/*.rs", "/w/proj/src/a/b.rs", true),
            ("l/a/*.rs", "/w/proj/src/b.rs", false),
            ("~/.config/x/**", "/home/u/[dot]/x/k", true),
            ("~/.config/x/k", "/home/u/d/x/k", false),
            ("/a/etc/**", "/etc/passwd", true),
            ("[l]/**", "/w/proj/src/a", false),
            ("l/[id]/*.rs", "/w/proj/src/[id]/b.rs", true),
            ("l/[id]/*.rs", "/w/proj/src/i/b.rs", true),
            ("app/[slug]/**", "/w/proj/target/x", true),
            ("app/[slug]/*.{ts,rs}", "/w/proj/target/x.rs", true),
        ] {
            assert_eq!(
                target(pattern).iter().any(|target| target.matches(Path::new(path), workspace, home)),
                expected,
                "{pattern}"
            );
        }
        for pattern in ["src/**", "**", "*.rs", "*/l", "~/.config", "~"] {
            assert!(target(pattern).is_empty(), "{pattern}");
        }
    }

    #[test]
    fn deny_rule_matches_other_spellings_of_name() {
        for (pattern, path, expected) in [
            ("secrets/**", "/w/proj/secrets/key", true),
            ("secrets/**", "/w/proj/SECRETS/key", true),
            ("secrets/**", "/W/Proj/secrets/key", true),
            ("Secrets/*.Key", "/w/proj/secrets/a.key", true),
            ("secrets/**", "/w/proj/SECRETS/\u{ff0f}x", true),
            ("/*/proj/secrets", "/w//proj/secrets/key", true),
            ("secrets/**", "/w/proj/secrets2/key", false),
            ("~/.SSH/**", "/home/u/.ssh/id", true),
            (".env", "/w/proj/a/.ENV", true),
            ("/abs/[A-C]*", "/abs/a1", true),
            ("/abs/\\[x\\]", "/abs/[X]", true),
        ] {
            let parsed = PathPattern::parse(pattern).unwrap();
            let bases = PatternBases::new(Path::new("/w/proj"), Path::new("/home/u"));
            let got = parsed.matches_any_spelling(&ComparedPath::new(Path::new(path), &bases));
            assert_eq!(got, expected, "{pattern} on {path}");
        }
    }

    #[test]
    fn pattern_without_wildcards_names_file_exactly() {
        let named = |pattern: &str, path: &str| {
            PathPattern::parse(pattern).unwrap().names_exactly(
                Path::new(path),
                Path::new("/w/proj"),
                Path::new("/home/u"),
            )
        };
        assert!(named("/w/proj/.envrc", "/w/proj/.envrc"));
        assert!(named("./.envrc", "/w/proj/.envrc"));
        assert!(named("~/.bashrc", "/home/u/.bashrc"));
        assert!(!named("/w/proj/**", "/w/proj/.envrc"));
        assert!(!named("/w/proj", "/w/proj/.envrc"));
        assert!(!named(".envrc", "/w/proj/.envrc"));
        assert!(!named("/w/proj/.env*", "/w/proj/.envrc"));
    }

    #[test]
    fn escaped_path_pattern_matches_itself_only() {
        for name in ["a*b", "a?b", "[a]", "{a,b}", "a\\b", "!x", "~", "#x", "a b", "(a)"] {
            let pattern = PathPattern::parse(&escape(&format!("/d/{name}"))).unwrap();
            let at = |path: &str| pattern.matches(Path::new(path), Path::new("/w"), Path::new("/h"));
            assert!(at(&format!("/d/{name}")), "{name}");
            assert!(!at("/d/axb") && !at("/d/a") && !at("/d/b"), "{name}");
        }
        assert!(PathPattern::parse(&escape("~/x")).unwrap().matches(
            Path::new("/w/~/x"),
            Path::new("/w"),
            Path::new("/h")
        ));
    }
}

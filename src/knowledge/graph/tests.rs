//! Outlines and records of small files in every language.

use tokio_util::sync::CancellationToken;

use super::*;
use crate::store::ReferenceKind;

fn outline(language: &str, text: &str) -> Option<Outline> {
    super::outline(language, text, &WorkLimit::start(&CancellationToken::new()))
}

/// `type path: description` of each symbol.
fn symbols(language: &str, text: &str) -> Vec<String> {
    let outline = outline(language, text).expect("a grammar");
    outline
        .symbols
        .iter()
        .map(|symbol| format!("{} {}: {}", symbol.entity_type, symbol.path(), symbol.description))
        .collect()
}

/// `kind source qualifier/name` of each mention.
fn mentions(language: &str, text: &str) -> Vec<String> {
    let outline = outline(language, text).expect("a grammar");
    outline
        .mentions
        .iter()
        .map(|mention| {
            let source = mention.symbol.map_or("-".into(), |symbol| outline.symbols[symbol].path());
            format!("{:?} {source} {}/{}", mention.kind, mention.qualifier, mention.name)
        })
        .collect()
}

#[test]
fn rust_outline_has_types_methods_calls_and_imports() {
    let text = "//! The store.\n\nuse types::{Event, ids::SessionId};\n\n/// Holds rows.\n#[derive(Debug)]\n\
                pub struct Store<T> {\n    rows: Vec<T>,\n}\n\nimpl<T> Store<T> {\n    /// Opens it.\n    ///\n    /// More.\n    \
                pub fn open(path: &Path) -> Self {\n        let s = Self::check(path);\n        reader::load(s.all()).collect::<Vec<_>>();\n    \
                }\n\n    fn check(path: &Path) {}\n}\n\nmod inner {\n    fn help() { super::run() }\n}\n\nfn run() {}\n";
    assert_eq!(
        symbols("rust", text),
        [
            "type Store: Holds rows.",
            "function Store::open: Opens it.",
            "function Store::check: fn check(path: &Path)",
            "module inner: mod inner",
            "function inner::help: fn help()",
            "function run: fn run()",
        ]
    );
    assert_eq!(
        mentions("rust", text),
        [
            "Import - types/Event",
            "Import - ids/SessionId",
            "Call Store::open Store/check",
            "MethodCall Store::open /collect",
            "Call Store::open reader/load",
            "MethodCall Store::open s/all",
            "Call inner::help /run",
        ]
    );
    assert_eq!(outline("rust", text).unwrap().description, "The store.");
}

#[test]
fn python_outline_has_docstrings_classes_and_imports() {
    let text = "\"\"\"Module.\"\"\"\nfrom .models import User\n\nclass Repo(Base):\n    '''Keeps users.'''\n\n    @cached\n    \
                def find(self, name):\n        \"\"\"Finds one.\n\n        More.\n        \"\"\"\n        return self.load(User(name))\n\n\
                # Runs all.\ndef main():\n    Repo().find('x')\n";
    assert_eq!(
        symbols("python", text),
        ["type Repo: Keeps users.", "function Repo::find: Finds one.", "function main: Runs all."]
    );
    let found = mentions("python", text);
    assert!(found.contains(&"Import - models/User".into()), "{found:?}");
    assert!(found.contains(&"Call Repo::find Repo/load".into()), "{found:?}");
    assert!(found.contains(&"MethodCall main /find".into()), "{found:?}");
}

#[test]
fn typescript_outline_has_arrow_functions_interfaces_and_methods() {
    let text = "import { Api } from './net/api';\n\n/** Shape. */\nexport interface Shape { area(): number }\n\n\
                // Adds.\nexport const add = (a: number) => helper(a);\n\nexport class Circle implements Shape {\n  \
                /** Its area. */\n  area(): number { return this.scale(new Api()); }\n}\n";
    assert_eq!(
        symbols("typescript", text),
        [
            "type Shape: Shape.",
            "function Shape::area: area(): number",
            "function add: Adds.",
            "type Circle: export class Circle implements Shape".replace("export ", "").as_str(),
            "function Circle::area: Its area.",
        ]
    );
    let found = mentions("typescript", text);
    for expected in
        ["Import - net/api", "Import - api/Api", "Call add /helper", "Call Circle::area Circle/scale"]
    {
        assert!(found.contains(&expected.to_owned()), "{expected} in {found:?}");
    }
}

#[test]
fn other_languages_yield_types_functions_and_calls() {
    assert_eq!(
        symbols("javascript", "// Does it.\nfunction run() { x.y() }\nclass A { m() {} }\n"),
        ["function run: Does it.", "type A: class A", "function A::m: m()"]
    );
    assert_eq!(
        symbols(
            "go",
            "package p\n\n// Repo keeps.\ntype Repo struct{ n int }\n\n// Find finds.\nfunc (r *Repo) Find() { load(r) }\n"
        ),
        ["type Repo: Repo keeps.", "function Repo::Find: Find finds."]
    );
    assert_eq!(
        symbols(
            "java",
            "package a;\n/** Keeps. */\npublic class Repo {\n  /** Finds. */\n  User find(String n) { return load(n); }\n}\n"
        ),
        ["type Repo: Keeps.", "function Repo::find: Finds."]
    );
    assert_eq!(
        symbols(
            "c",
            "#include \"list.h\"\n/* A list. */\nstruct list { int n; };\n/* Adds. */\nstatic int *list_add(struct list *l) { return grow(l); }\n"
        ),
        ["type list: A list.", "function list_add: Adds."]
    );
    assert_eq!(
        symbols(
            "cpp",
            "namespace a {\n// Keeps.\nclass Repo {\n public:\n  int find();\n};\n// Finds.\nint Repo::find() { return b->load(); }\n}\n"
        ),
        ["module a: namespace a", "type a::Repo: Keeps.", "function a::Repo::find: Finds."]
    );
    assert_eq!(mentions("cpp", "int f() { return b->load(); }"), ["MethodCall f b/load"]);
    assert!(outline("brainfuck", "+").is_none());
}

#[test]
fn hostile_code_yields_an_outline_without_panic() {
    for language in ["rust", "python", "typescript", "tsx", "javascript", "go", "java", "c", "cpp"] {
        for text in [
            "",
            "\u{feff}",
            "}}}}",
            &"(".repeat(2000),
            &"a.".repeat(1000),
            &"{\"[".repeat(300),
            "fn (((\n\u{0}",
        ] {
            drop(outline(language, text));
        }
    }
}

#[test]
fn records_relate_folders_files_types_and_functions() {
    let text = "//! Keeps.\nstruct A;\nimpl A {\n    fn f(&self) { g() }\n}\nfn g() {}\n";
    let outline = outline("rust", text).unwrap();
    let records = records("src/store/mod.rs", "rust", &outline, &[ChunkSpan { start: 0, end: text.len() }]);
    let relations: Vec<String> = records
        .relations
        .iter()
        .map(|relation| format!("{} {} {}", relation.source, relation.keywords, relation.target))
        .collect();
    assert_eq!(
        relations,
        [
            "src contains src/store",
            "src/store contains src/store/mod.rs",
            "src/store/mod.rs defines A (src/store/mod.rs)",
            "A (src/store/mod.rs) contains A::f (src/store/mod.rs)",
            "src/store/mod.rs defines g (src/store/mod.rs)",
        ]
    );
    let folder = records.entities.iter().find(|entity| entity.name == "src/store").unwrap();
    assert_eq!((folder.entity_type.as_str(), folder.description.as_str()), ("module", "Keeps."));
    assert_eq!((records.symbols[0].name.as_str(), records.symbols[0].parent.as_str()), ("store", "src"));
    assert_eq!(records.references[0].kind, ReferenceKind::Call);
    assert_eq!(records.references[0].source, "A::f (src/store/mod.rs)");
}

#[test]
fn overlong_paths_and_names_stay_within_limits() {
    let path = format!("{}/{}.rs", "ö".repeat(300), "f".repeat(300));
    let outline = outline("rust", &format!("mod {} {{ fn x() {{}} }}", "m".repeat(120))).unwrap();
    let records = records(&path, "rust", &outline, &[ChunkSpan { start: 0, end: 1 }]);
    for entity in &records.entities {
        assert!(entity.name.chars().count() <= 256 && entity.name.len() <= 512, "{}", entity.name);
    }
}

//! The languages whose symbols are known: one table of node kinds each. A new language is a new row.

use std::sync::OnceLock;

use super::imports::ImportStyle;

/// The location of a definition's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameLocation {
    Field(&'static str),
    /// In the innermost `declarator` field (C and C++).
    Declarator,
}

/// Meaning of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeRole {
    /// Defines a type, which encloses its members.
    Type(NameLocation),
    /// Defines a module inside a file, which encloses its members.
    Module(NameLocation),
    /// Defines a function. The field, if any, names the type that it belongs to.
    Function(NameLocation, Option<&'static str>),
    /// Defines a function if the field `value` holds a node of a function.
    FunctionValue,
    /// Encloses members of the type in this field without defining it.
    Members(&'static str),
    /// Calls the name in this field.
    Call(&'static str),
    /// Calls the name in the second field on the value in the first one.
    MethodCall(&'static str, &'static str),
    /// Imports names.
    Import,
    Comment,
    /// Belongs to the next definition, such as an attribute.
    Prefix,
}

/// One row: a node kind and its meaning. `needs` is a field without which the node defines nothing, such as the body
/// of a struct that C only mentions.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeRule {
    pub kind: &'static str,
    pub role: NodeRole,
    pub needs: Option<&'static str>,
}

const fn rule(kind: &'static str, role: NodeRole) -> NodeRule {
    NodeRule { kind, role, needs: None }
}

const fn with_body(kind: &'static str, role: NodeRole) -> NodeRule {
    NodeRule { kind, role, needs: Some("body") }
}

pub(super) struct Language {
    /// Its name in chunks and documents.
    pub name: &'static str,
    pub extensions: &'static [&'static str],
    grammar: fn() -> tree_sitter::Language,
    pub rules: &'static [NodeRule],
    pub imports: ImportStyle,
    /// Names of files that represent their folder, without extension.
    pub folder_files: &'static [&'static str],
    /// Whether the first string of a body describes the definition (Python).
    pub has_docstrings: bool,
    /// Names for the enclosing type in a method.
    pub own_type: &'static [&'static str],
}

use NameLocation::{Declarator, Field};
use NodeRole::{Call, Comment, Function, FunctionValue, Import, Members, MethodCall, Module, Prefix, Type};

const NAME: NameLocation = Field("name");

const RUST: &[NodeRule] = &[
    rule("function_item", Function(NAME, None)),
    rule("function_signature_item", Function(NAME, None)),
    rule("struct_item", Type(NAME)),
    rule("enum_item", Type(NAME)),
    rule("union_item", Type(NAME)),
    rule("trait_item", Type(NAME)),
    rule("type_item", Type(NAME)),
    rule("macro_definition", Function(NAME, None)),
    with_body("mod_item", Module(NAME)),
    rule("impl_item", Members("type")),
    rule("call_expression", Call("function")),
    rule("macro_invocation", Call("macro")),
    rule("use_declaration", Import),
    rule("line_comment", Comment),
    rule("block_comment", Comment),
    rule("attribute_item", Prefix),
];

const PYTHON: &[NodeRule] = &[
    rule("function_definition", Function(NAME, None)),
    rule("class_definition", Type(NAME)),
    rule("call", Call("function")),
    rule("import_statement", Import),
    rule("import_from_statement", Import),
    rule("comment", Comment),
    rule("decorator", Prefix),
];

const JAVASCRIPT: &[NodeRule] = &[
    rule("function_declaration", Function(NAME, None)),
    rule("generator_function_declaration", Function(NAME, None)),
    rule("method_definition", Function(NAME, None)),
    rule("variable_declarator", FunctionValue),
    rule("class_declaration", Type(NAME)),
    rule("call_expression", Call("function")),
    rule("new_expression", Call("constructor")),
    rule("import_statement", Import),
    rule("comment", Comment),
    rule("decorator", Prefix),
];

const TYPESCRIPT: &[NodeRule] = &[
    rule("function_declaration", Function(NAME, None)),
    rule("generator_function_declaration", Function(NAME, None)),
    rule("function_signature", Function(NAME, None)),
    rule("method_definition", Function(NAME, None)),
    rule("method_signature", Function(NAME, None)),
    rule("abstract_method_signature", Function(NAME, None)),
    rule("variable_declarator", FunctionValue),
    rule("class_declaration", Type(NAME)),
    rule("abstract_class_declaration", Type(NAME)),
    rule("interface_declaration", Type(NAME)),
    rule("type_alias_declaration", Type(NAME)),
    rule("enum_declaration", Type(NAME)),
    rule("internal_module", Module(NAME)),
    rule("module", Module(NAME)),
    rule("call_expression", Call("function")),
    rule("new_expression", Call("constructor")),
    rule("import_statement", Import),
    rule("comment", Comment),
    rule("decorator", Prefix),
];

const GO: &[NodeRule] = &[
    rule("function_declaration", Function(NAME, None)),
    rule("method_declaration", Function(NAME, Some("receiver"))),
    rule("type_spec", Type(NAME)),
    rule("type_alias", Type(NAME)),
    rule("call_expression", Call("function")),
    rule("import_spec", Import),
    rule("comment", Comment),
];

const JAVA: &[NodeRule] = &[
    rule("method_declaration", Function(NAME, None)),
    rule("constructor_declaration", Function(NAME, None)),
    rule("class_declaration", Type(NAME)),
    rule("interface_declaration", Type(NAME)),
    rule("enum_declaration", Type(NAME)),
    rule("record_declaration", Type(NAME)),
    rule("annotation_type_declaration", Type(NAME)),
    rule("method_invocation", MethodCall("object", "name")),
    rule("object_creation_expression", Call("type")),
    rule("import_declaration", Import),
    rule("line_comment", Comment),
    rule("block_comment", Comment),
];

const C: &[NodeRule] = &[
    rule("function_definition", Function(Declarator, None)),
    with_body("struct_specifier", Type(NAME)),
    with_body("union_specifier", Type(NAME)),
    with_body("enum_specifier", Type(NAME)),
    rule("type_definition", Type(Declarator)),
    rule("preproc_function_def", Function(NAME, None)),
    rule("call_expression", Call("function")),
    rule("preproc_include", Import),
    rule("comment", Comment),
];

const CPP: &[NodeRule] = &[
    rule("function_definition", Function(Declarator, None)),
    with_body("struct_specifier", Type(NAME)),
    with_body("class_specifier", Type(NAME)),
    with_body("union_specifier", Type(NAME)),
    with_body("enum_specifier", Type(NAME)),
    rule("type_definition", Type(Declarator)),
    rule("alias_declaration", Type(NAME)),
    with_body("namespace_definition", Module(NAME)),
    rule("preproc_function_def", Function(NAME, None)),
    rule("call_expression", Call("function")),
    rule("preproc_include", Import),
    rule("comment", Comment),
];

/// Number of languages.
const LANGUAGE_COUNT: usize = 9;

static LANGUAGES: [Language; LANGUAGE_COUNT] = [
    Language {
        name: "rust",
        extensions: &["rs"],
        grammar: || tree_sitter_rust::LANGUAGE.into(),
        rules: RUST,
        imports: ImportStyle::RustUse,
        folder_files: &["mod", "lib", "main"],
        has_docstrings: false,
        own_type: &["self", "Self"],
    },
    Language {
        name: "python",
        extensions: &["py", "pyi"],
        grammar: || tree_sitter_python::LANGUAGE.into(),
        rules: PYTHON,
        imports: ImportStyle::Python,
        folder_files: &["__init__", "__main__"],
        has_docstrings: true,
        own_type: &["self", "cls"],
    },
    Language {
        name: "typescript",
        extensions: &["ts", "mts", "cts"],
        grammar: || tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        rules: TYPESCRIPT,
        imports: ImportStyle::Quoted,
        folder_files: &["index"],
        has_docstrings: false,
        own_type: &["this"],
    },
    Language {
        name: "tsx",
        extensions: &["tsx"],
        grammar: || tree_sitter_typescript::LANGUAGE_TSX.into(),
        rules: TYPESCRIPT,
        imports: ImportStyle::Quoted,
        folder_files: &["index"],
        has_docstrings: false,
        own_type: &["this"],
    },
    Language {
        name: "javascript",
        extensions: &["js", "mjs", "cjs", "jsx"],
        // The grammar of TypeScript contains JavaScript.
        grammar: || tree_sitter_typescript::LANGUAGE_TSX.into(),
        rules: JAVASCRIPT,
        imports: ImportStyle::Quoted,
        folder_files: &["index"],
        has_docstrings: false,
        own_type: &["this"],
    },
    Language {
        name: "go",
        extensions: &["go"],
        grammar: || tree_sitter_go::LANGUAGE.into(),
        rules: GO,
        imports: ImportStyle::Quoted,
        folder_files: &["doc"],
        has_docstrings: false,
        own_type: &[],
    },
    Language {
        name: "java",
        extensions: &["java"],
        grammar: || tree_sitter_java::LANGUAGE.into(),
        rules: JAVA,
        imports: ImportStyle::Dotted,
        folder_files: &["package-info"],
        has_docstrings: false,
        own_type: &["this"],
    },
    Language {
        name: "c",
        extensions: &["c", "h"],
        grammar: || tree_sitter_c::LANGUAGE.into(),
        rules: C,
        imports: ImportStyle::Quoted,
        folder_files: &[],
        has_docstrings: false,
        own_type: &[],
    },
    Language {
        name: "cpp",
        extensions: &["cc", "cpp", "cxx", "hpp", "hh", "hxx", "ipp"],
        grammar: || tree_sitter_cpp::LANGUAGE.into(),
        rules: CPP,
        imports: ImportStyle::Quoted,
        folder_files: &[],
        has_docstrings: false,
        own_type: &["this"],
    },
];

/// Languages without a grammar here, by extension. Their chunks carry the name of the language, so that a
/// query can show it.
const OTHER_LANGUAGES: &[(&str, &[&str])] = &[
    ("markdown", &["md", "markdown", "mdx"]),
    ("shell", &["sh", "bash", "zsh"]),
    ("toml", &["toml"]),
    ("yaml", &["yaml", "yml"]),
    ("json", &["json", "jsonl"]),
    ("html", &["html", "htm"]),
    ("css", &["css", "scss"]),
    ("sql", &["sql"]),
    ("ruby", &["rb"]),
    ("php", &["php"]),
    ("csharp", &["cs"]),
    ("kotlin", &["kt", "kts"]),
    ("swift", &["swift"]),
    ("lua", &["lua"]),
    ("xml", &["xml"]),
    ("text", &["txt", "rst", "adoc"]),
];

/// The name of a file's language by its extension.
#[must_use]
pub fn language_of_path(path: &str) -> Option<&'static str> {
    let extension = extension(path)?.to_lowercase();
    let known = LANGUAGES.iter().find(|language| language.extensions.contains(&extension.as_str()));
    known.map(|language| language.name).or_else(|| {
        let other = OTHER_LANGUAGES.iter().find(|(_, extensions)| extensions.contains(&extension.as_str()));
        other.map(|(name, _)| *name)
    })
}

fn extension(path: &str) -> Option<&str> {
    let (stem, extension) = path.rsplit('/').next()?.rsplit_once('.')?;
    (!stem.is_empty()).then_some(extension)
}

/// Names of files that represent their folder in this language, without extension.
pub(super) fn folder_files(language: &str) -> &'static [&'static str] {
    if language == "markdown" {
        return &["README", "readme", "index"];
    }
    LANGUAGES.iter().find(|known| known.name == language).map_or(&[], |known| known.folder_files)
}

/// A grammar with its rules by node kind.
pub(super) struct Grammar {
    pub language: &'static Language,
    pub parser: tree_sitter::Language,
    /// Index into the rules plus 1, by the number of the node kind; 0 means none.
    by_kind: Vec<u8>,
}

impl Grammar {
    fn new(language: &'static Language) -> Self {
        let parser = (language.grammar)();
        let mut by_kind = vec![0; parser.node_kind_count()];
        for (at, rule) in language.rules.iter().enumerate() {
            // Some names have several numbers, for example under aliases.
            for id in 0..parser.node_kind_count() {
                let id = u16::try_from(id).unwrap_or(u16::MAX);
                if parser.node_kind_is_named(id) && parser.node_kind_for_id(id) == Some(rule.kind) {
                    by_kind[usize::from(id)] = u8::try_from(at + 1).unwrap_or(0);
                }
            }
        }
        Self { language, parser, by_kind }
    }

    pub fn rule(&self, node: &tree_sitter::Node<'_>) -> Option<&'static NodeRule> {
        let at = usize::from(*self.by_kind.get(usize::from(node.kind_id()))?);
        self.language.rules.get(at.checked_sub(1)?)
    }
}

/// Whether the symbols of a language are known.
#[must_use]
pub fn has_grammar(language: &str) -> bool {
    LANGUAGES.iter().any(|known| known.name == language)
}

/// The grammar of a language, made at its first use: about a hundred kilobytes for all.
pub(super) fn grammar(language: &str) -> Option<&'static Grammar> {
    static GRAMMARS: [OnceLock<Grammar>; LANGUAGE_COUNT] = [const { OnceLock::new() }; LANGUAGE_COUNT];
    let at = LANGUAGES.iter().position(|known| known.name == language)?;
    Some(GRAMMARS.get(at)?.get_or_init(|| Grammar::new(&LANGUAGES[at])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_names_a_node_kind_of_its_grammar() {
        for language in &LANGUAGES {
            let grammar = grammar(language.name).unwrap();
            for rule in language.rules {
                let id = grammar.parser.id_for_node_kind(rule.kind, true);
                assert_ne!(id, 0, "{} has no node kind {}", language.name, rule.kind);
                for field in fields(rule) {
                    assert!(
                        grammar.parser.field_id_for_name(field).is_some(),
                        "{} has no field {field}",
                        language.name
                    );
                }
            }
        }
    }

    fn fields(rule: &NodeRule) -> Vec<&'static str> {
        let name = |name: NameLocation| match name {
            Field(field) => field,
            Declarator => "declarator",
        };
        let mut fields: Vec<_> = rule.needs.into_iter().collect();
        match rule.role {
            Type(of) | Module(of) => fields.push(name(of)),
            Function(of, parent) => {
                fields.push(name(of));
                fields.extend(parent);
            }
            FunctionValue => fields.extend(["name", "value"]),
            Members(field) | Call(field) => fields.push(field),
            MethodCall(object, method) => fields.extend([object, method]),
            Import | Comment | Prefix => {}
        }
        fields
    }

    #[test]
    fn language_is_found_by_extension_only() {
        assert_eq!(language_of_path("src/store/mod.rs"), Some("rust"));
        assert_eq!(language_of_path("a/b.TSX"), Some("tsx"));
        assert_eq!(language_of_path("README.md"), Some("markdown"));
        assert_eq!(language_of_path("a.dir/Makefile"), None);
        assert_eq!(language_of_path(".rs"), None);
    }
}

//! A graph as text for other programs. Every name and description is escaped for its form.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::subgraph::SubGraph;

/// Characters of a label in a diagram.
const MAX_LABEL_CHARS: usize = 60;

/// A Mermaid flow chart.
#[must_use]
pub fn mermaid(graph: &SubGraph) -> String {
    let numbers = numbers(graph);
    let mut text = String::from("graph LR\n");
    for (number, node) in graph.nodes.iter().enumerate() {
        let _ = writeln!(text, "  n{number}[\"{}\"]", mermaid_label(&node.name));
    }
    for edge in &graph.edges {
        let (Some(source), Some(target)) =
            (numbers.get(edge.source.as_str()), numbers.get(edge.target.as_str()))
        else {
            continue;
        };
        let label = mermaid_label(&edge.keywords);
        let _ = match label.is_empty() {
            true => writeln!(text, "  n{source} --- n{target}"),
            false => writeln!(text, "  n{source} ---|\"{label}\"| n{target}"),
        };
    }
    text
}

/// Letters, digits and spaces stay; everything else becomes an entity code, so that no text ends its label.
fn mermaid_label(text: &str) -> String {
    let mut label = String::new();
    for c in shortened(text).chars() {
        match c {
            ' ' | '_' | '.' | '-' | ':' | '/' => label.push(c),
            c if c.is_alphanumeric() => label.push(c),
            c => {
                let _ = write!(label, "#{};", u32::from(c));
            }
        }
    }
    label
}

/// An undirected graph in the language of Graphviz.
#[must_use]
pub fn dot(graph: &SubGraph) -> String {
    let mut text = String::from("graph knowledge {\n  node [shape=box];\n");
    for node in &graph.nodes {
        let _ = writeln!(
            text,
            "  {} [label={}, tooltip={}];",
            quoted(&node.name),
            quoted(&shortened(&node.name)),
            quoted(&shortened(&node.description))
        );
    }
    for edge in &graph.edges {
        let (source, target) = (quoted(&edge.source), quoted(&edge.target));
        let _ = writeln!(text, "  {source} -- {target} [label={}];", quoted(&shortened(&edge.keywords)));
    }
    text.push_str("}\n");
    text
}

/// A quoted string of DOT. A backslash would begin an escape of a label.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// GraphML with all attributes.
#[must_use]
pub fn graphml(graph: &SubGraph) -> String {
    let numbers = numbers(graph);
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n",
    );
    for (id, domain, kind) in [
        ("name", "node", "string"),
        ("type", "node", "string"),
        ("description", "node", "string"),
        ("degree", "node", "int"),
        ("keywords", "edge", "string"),
        ("relation", "edge", "string"),
        ("weight", "edge", "double"),
    ] {
        let _ =
            writeln!(text, "  <key id=\"{id}\" for=\"{domain}\" attr.name=\"{id}\" attr.type=\"{kind}\"/>");
    }
    text.push_str("  <graph edgedefault=\"undirected\">\n");
    for (number, node) in graph.nodes.iter().enumerate() {
        let _ = write!(text, "    <node id=\"n{number}\">");
        let degree = node.degree.to_string();
        for (key, value) in [
            ("name", node.name.as_str()),
            ("type", &node.entity_type),
            ("description", &node.description),
            ("degree", &degree),
        ] {
            let _ = write!(text, "<data key=\"{key}\">{}</data>", xml(value));
        }
        text.push_str("</node>\n");
    }
    for edge in &graph.edges {
        let (Some(source), Some(target)) =
            (numbers.get(edge.source.as_str()), numbers.get(edge.target.as_str()))
        else {
            continue;
        };
        let _ = writeln!(
            text,
            "    <edge source=\"n{source}\" target=\"n{target}\"><data key=\"keywords\">{}</data><data \
             key=\"relation\">{}</data><data key=\"weight\">{}</data></edge>",
            xml(&edge.keywords),
            xml(&edge.description),
            edge.weight
        );
    }
    text.push_str("  </graph>\n</graphml>\n");
    text
}

/// Text of XML. Characters that XML cannot hold become spaces.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

fn numbers(graph: &SubGraph) -> HashMap<&str, usize> {
    graph.nodes.iter().enumerate().map(|(number, node)| (node.name.as_str(), number)).collect()
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_LABEL_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::types::Entity;
    use types::knowledge::Relation;

    pub(crate) fn hostile() -> SubGraph {
        let entity = |name: &str| Entity {
            name: name.into(),
            entity_type: "t<&\"".into(),
            description: "line\nbreak </script><script>alert(1)</script> \u{1} \\N".into(),
            degree: 1,
            stub: false,
        };
        let (a, b) = ("a\"];evil[\"", "</data>--> & \\");
        let edge = Relation {
            source: a.into(),
            target: b.into(),
            keywords: "k|\"| <".into(),
            description: "d".into(),
            weight: 1.5,
        };
        SubGraph { nodes: vec![entity(a), entity(b)], edges: vec![edge], truncated: false }
    }

    #[test]
    fn hostile_names_cannot_leave_their_labels() {
        let graph = hostile();
        let text = mermaid(&graph);
        assert!(text.contains("n0[\"a#34;#93;#59;evil#91;#34;\"]"), "{text}");
        assert_eq!(text.lines().count(), 4, "{text}");
        let text = dot(&graph);
        assert!(text.contains("\"a\\\"];evil[\\\"\" [label="), "{text}");
        assert!(text.contains("-- \"</data>--> & \\\\\" [label=\"k|\\\"| <\"]"), "{text}");
        assert_eq!(text.lines().count(), 6, "{text}");
        let text = graphml(&graph);
        assert!(text.contains("<data key=\"name\">&lt;/data&gt;--&gt; &amp; \\</data>"), "{text}");
        assert!(!text.contains("<script>") && !text.contains('\u{1}'), "{text}");
        assert!(
            text.contains("<edge source=\"n0\" target=\"n1\">") && text.contains(">1.5</data>"),
            "{text}"
        );
    }
}

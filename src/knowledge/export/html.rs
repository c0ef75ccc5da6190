//! One HTML page with the graph: a list to search and a drawing, without another file and without network access.

use serde_json::json;

use super::subgraph::SubGraph;

const PAGE: &str = include_str!("page.html");
/// The place of the data in the page.
const DATA: &str = "/*DATA*/";

/// The page. Its policy forbids every connection; names and descriptions are data of a script, never markup.
#[must_use]
pub fn html_page(graph: &SubGraph) -> String {
    let nodes: Vec<_> = graph
        .nodes
        .iter()
        .map(|node| json!({"name": node.name, "type": node.entity_type, "text": node.description, "degree": node.degree}))
        .collect();
    let edges: Vec<_> = graph
        .edges
        .iter()
        .map(|edge| {
            json!({"a": edge.source, "b": edge.target, "keys": edge.keywords, "text": edge.description})
        })
        .collect();
    let data = json!({"nodes": nodes, "edges": edges, "truncated": graph.truncated}).to_string();
    // Inside a script element, `<` could begin its end tag; two separators end lines in old scripts.
    let data = data.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    PAGE.replacen(DATA, &data, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::formats::tests::hostile;

    #[test]
    fn page_holds_data_as_script_value_and_loads_nothing() {
        let page = html_page(&hostile());
        assert!(!page.contains("<script>alert") && !page.contains(DATA), "markup in data is escaped");
        assert_eq!(page.matches("</script>").count(), 1);
        assert!(page.contains("default-src 'none'"));
        for outside in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("\\u003c/script>\\u003cscript>alert(1)"), "the text is there");
    }
}

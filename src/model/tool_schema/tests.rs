use super::clean::{DATA_KEYS, LIST_KEYS, MAP_KEYS, SCHEMA_KEYS, changed_name};
use super::*;

fn tool(schema: Value) -> ToolDefinition {
    ToolDefinition {
        name: "mcp__s__t".into(),
        description: "d".into(),
        input_schema: schema,
        read_only: false,
    }
}

/// Whether the providers of all APIs accept a schema.
fn assert_accepted(schema: &Value, is_top: bool) {
    let Value::Object(fields) = schema else {
        assert!(schema.is_boolean(), "{schema}");
        return;
    };
    for (key, value) in fields {
        assert!(!value.is_null() || DATA_KEYS.contains(&key.as_str()), "{key} in {schema}");
        assert!(!is_top || !TOP_KEYS.contains(&key.as_str()), "{key} in {schema}");
    }
    if is_top {
        assert_eq!((&schema["type"], schema["properties"].is_object()), (&json!("object"), true));
    }
    assert!(schema["type"] != "array" || schema["items"].is_object() || schema["items"] == false, "{schema}");
    for name in schema["required"].as_array().into_iter().flatten() {
        assert!(name.is_string(), "{schema}");
    }
    for key in MAP_KEYS {
        for (name, inner) in fields.get(key).and_then(Value::as_object).into_iter().flatten() {
            assert!(key != "properties" || changed_name(name).is_none(), "{name}");
            assert_accepted(inner, false);
        }
    }
    for key in LIST_KEYS {
        fields
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .for_each(|it| assert_accepted(it, false));
    }
    SCHEMA_KEYS.iter().filter_map(|key| fields.get(*key)).for_each(|inner| assert_accepted(inner, false));
}

fn fitted(schema: Value) -> Value {
    let (fitted, _) = fit(&tool(schema.clone())).unwrap_or_else(|why| panic!("{schema}: {why}"));
    assert_accepted(&fitted, true);
    let (again, changed) = fit(&tool(fitted.clone())).expect("a fitted schema");
    assert_eq!((&again, changed.len()), (&fitted, 0), "a fitted schema stays as it is");
    fitted
}

#[test]
fn usual_schema_stays_as_it_is() {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "d", "default": null},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["a", null]}},
            "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["path"],
        "additionalProperties": false,
    });
    assert_eq!(fitted(schema.clone()), schema);
}

#[test]
fn alternatives_at_top_become_properties_of_one_object() {
    let a = json!({"type": "object", "properties": {"a": {"type": "string"}, "x": {"type": "string"}}, "required": ["a", "x"]});
    let b = json!({"type": "object", "properties": {"b": {"type": "string"}, "x": {"type": "integer"}}, "required": ["b", "x"]});
    let merged = json!({"a": {"type": "string"}, "b": {"type": "string"}, "x": {"anyOf": [{"type": "string"}, {"type": "integer"}]}});
    for key in ["anyOf", "oneOf"] {
        let found = fitted(json!({ key: [a, b, {"type": "null"}] }));
        assert_eq!((&found["properties"], &found["required"]), (&merged, &json!(["x"])));
        let hint = found["description"].as_str().expect("a hint");
        assert!(hint.contains("a, x; b, x"), "{hint}");
    }
    let found = fitted(json!({ "allOf": [a, b] }));
    assert_eq!(found["required"], json!(["a", "x", "b"]));
    assert_eq!(found["properties"]["x"], json!({"allOf": [{"type": "string"}, {"type": "integer"}]}));
    let found = fitted(json!({
        "type": "object", "properties": {"a": {}, "b": {}}, "additionalProperties": false,
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    }));
    assert_eq!((&found["properties"], found.get("required")), (&json!({"a": {}, "b": {}}), None));
    let found = fitted(json!({
        "$ref": "#/definitions/Input", "definitions": {"Input": {"oneOf": [{"$ref": "#/definitions/A"}]}, "A": a},
    }));
    assert_eq!(found["properties"]["a"], json!({"type": "string"}));
    for (schema, part) in [
        (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), "no alternative"),
        (json!({"$ref": "https://example.org/schema"}), "refers"),
        (json!({"$ref": "#"}), "more than"),
        (json!({"type": "array"}), "\"array\""),
        (json!({"allOf": [{"type": "string"}]}), "something else"),
        (json!([]), "not an object"),
    ] {
        let why = fit(&tool(schema.clone())).expect_err("left out");
        assert!(why.contains(part), "{schema}: {why}");
    }
}

#[test]
fn odd_names_have_a_way_back_at_every_depth() {
    let long = "x".repeat(65);
    let schema = json!({
        "type": "object",
        "properties": {
            "uids[]": {"type": "array", "items": {"type": "object", "properties": {"$filter": {"type": "string"}}}},
            "天气": {"anyOf": [{"type": "object", "properties": {"a b": {}}, "required": ["a b"]}]},
            "城市": {"$ref": "#/$defs/n"},
            long.as_str(): {"type": "object", "additionalProperties": {"properties": {"": {}}}},
            "plain": {"$ref": "#/properties/uids[]"},
        },
        "$defs": {"n": {"properties": {"@id": {}, "next": {"$ref": "#/$defs/n"}}}},
        "required": ["uids[]", "plain", "天气", "uids[]"],
    });
    let new = |name: &str| changed_name(name).expect(name);
    let found = fitted(schema.clone());
    assert_eq!(found["required"], json!([new("uids[]"), "plain", new("天气")]));
    assert_eq!(found["properties"]["plain"]["$ref"], format!("#/properties/{}", new("uids[]")));
    assert_ne!(new("天气"), new("城市"), "names of the same form stay apart");
    let tools = [tool(schema)];
    let (names, problems) = ChangedNames::from_tools(&tools);
    assert!(problems.is_empty());
    let mut input = json!({
        new("uids[]"): [{new("$filter"): "x"}],
        new("天气"): {new("a b"): 1},
        new("城市"): {"next": {"next": {new("@id"): 2}}},
        new(&long): {"any": {new(""): 3}},
        "plain": [],
    });
    names.restore("mcp__s__other", &mut input);
    assert!(input.get("uids[]").is_none(), "another tool");
    names.restore("mcp__s__t", &mut input);
    assert_eq!(
        input,
        json!({
            "uids[]": [{"$filter": "x"}], "天气": {"a b": 1}, "城市": {"next": {"next": {"@id": 2}}},
            long.as_str(): {"any": {"": 3}}, "plain": [],
        })
    );
    names.restore("mcp__s__t", &mut input);
    assert_eq!(input["uids[]"], json!([{"$filter": "x"}]), "a model may also write the tool's own names");
}

#[test]
fn parts_that_no_draft_has_are_removed_or_rewritten() {
    for (odd, expected) in [
        (json!({"properties": null, "required": null}), json!({})),
        (json!({"properties": {"a": {"type": "array"}}}), json!({"a": {"type": "array", "items": {}}})),
        (
            json!({"properties": {"a": {"type": ["array", "null"]}}}),
            json!({"a": {"type": ["array", "null"], "items": {}}}),
        ),
        (
            json!({"properties": {"a": {"type": "array", "items": [{"type": "str"}]}}}),
            json!({"a": {"type": "array", "prefixItems": [{"type": "string"}], "items": {}}}),
        ),
        (json!({"properties": {"a": {"type": "any"}}}), json!({"a": {}})),
        (json!({"properties": {"a": {"type": "int", "required": true}}}), json!({"a": {"type": "integer"}})),
        (json!({"properties": {"a": null, "b": true, "c": "string"}}), json!({"a": {}, "b": {}, "c": {}})),
        (json!({"properties": {"a": {"anyOf": [], "enum": []}}}), json!({"a": {}})),
        (
            json!({"properties": {"a": {"enum": [null, 1], "default": null}}}),
            json!({"a": {"enum": [null, 1], "default": null}}),
        ),
        (
            json!({"properties": {"a": {"minimum": 0, "exclusiveMinimum": true, "exclusiveMaximum": false}}}),
            json!({"a": {"exclusiveMinimum": 0}}),
        ),
        (
            json!({"properties": {"a": {"minimum": "1", "maxLength": "many", "multipleOf": [], "maxItems": true,
                "uniqueItems": "yes"}}}),
            json!({"a": {"minimum": 1}}),
        ),
        (json!({"properties": {"a": {"description": 5, "title": "t"}}}), json!({"a": {"title": "t"}})),
        (
            json!({"properties": {"a": {"properties": {"b": {}}}}}),
            json!({"a": {"type": "object", "properties": {"b": {}}}}),
        ),
        (
            json!({"properties": {"a": {"items": true, "type": "array"}}}),
            json!({"a": {"type": "array", "items": {}}}),
        ),
        (json!({"properties": [], "not": {}, "enum": [{}]}), json!({})),
    ] {
        assert_eq!(fitted(odd.clone())["properties"], expected, "{odd}");
    }
}

#[test]
fn tool_that_cannot_be_fitted_is_left_out_and_named() {
    let tools = [
        tool(json!({"type": "object"})),
        ToolDefinition { name: "mcp__s__bad".into(), ..tool(json!({"anyOf": [{"type": "string"}]})) },
    ];
    let sent = wire_tools(&tools);
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].definition.name, "mcp__s__t");
    let (_, problems) = ChangedNames::from_tools(&tools);
    assert!(problems.len() == 1 && problems[0].contains("mcp__s__bad"), "{problems:?}");
    let many: Vec<Value> = (0..40).map(|_| json!({"$ref": "#/$defs/a"})).collect();
    let wide = json!({"anyOf": many, "$defs": {"a": {"allOf": many, "anyOf": [{"$ref": "#/$defs/a"}]}}});
    assert!(fit(&tool(wide)).expect_err("bounded").contains("more than"));
}

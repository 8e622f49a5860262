//! JSON Schema and the part of it that Gemini's `parameters` take.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json, json};

use super::loss::{LossKind, Losses, plain_name};

/// Deepest nesting that is followed, references included.
const MAX_DEPTH: usize = 32;

/// Most schemas that are written: references can make a small schema a huge one.
const MAX_SCHEMAS: usize = 10_000;

/// Keywords with a plain value that Gemini takes as they are.
///
/// # Source
/// Gemini API reference, `Schema`.
const PLAIN: [&str; 14] = [
    "title",
    "description",
    "nullable",
    "default",
    "example",
    "pattern",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
];

/// A schema in Gemini's words; `None` for one without properties, which means no parameters.
pub(super) fn to_gemini(schema: &Json, losses: &mut Losses) -> Option<Json> {
    let mut writer = Writer {
        dropped: BTreeSet::new(),
        expanding: Vec::new(),
        left: MAX_SCHEMAS,
    };
    let mut found = writer.schema(schema, schema, 0);
    for keyword in writer.dropped {
        losses.add(None, LossKind::Schema, keyword);
    }
    let object = found.as_object_mut()?;
    object.entry("type").or_insert_with(|| json!("object"));
    let has_properties = object
        .get("properties")
        .and_then(Json::as_object)
        .is_some_and(|properties| !properties.is_empty());
    has_properties.then_some(found)
}

struct Writer {
    dropped: BTreeSet<String>,
    /// The references that lead to this place: one that comes again would never end.
    expanding: Vec<String>,
    left: usize,
}

impl Writer {
    fn drop(&mut self, keyword: &str) {
        self.dropped.insert(plain_name(keyword).to_owned());
    }

    fn schema(&mut self, schema: &Json, root: &Json, depth: usize) -> Json {
        if depth >= MAX_DEPTH || self.left == 0 {
            self.drop("$ref");
            return json!({"type": "object"});
        }
        self.left -= 1;
        let Some(object) = schema.as_object() else {
            // `true` and `false` are schemas too.
            return json!({"type": "object"});
        };
        if let Some(path) = object.get("$ref").and_then(Json::as_str) {
            return self.referred(path, object, root, depth);
        }
        let mut found = Map::new();
        for (key, value) in object {
            self.keyword(key, value, &mut found, root, depth);
        }
        // An enumeration is of strings.
        if found.contains_key("enum") {
            found.entry("type").or_insert_with(|| json!("string"));
        }
        let names: Option<Vec<String>> = found
            .get("properties")
            .and_then(Json::as_object)
            .map(|properties| properties.keys().cloned().collect());
        if let Some(Json::Array(required)) = found.get_mut("required") {
            let names = names.unwrap_or_default();
            required.retain(|name| {
                name.as_str()
                    .is_some_and(|name| names.iter().any(|known| known == name))
            });
            if required.is_empty() {
                found.remove("required");
            }
        }
        Json::Object(found)
    }

    /// The schema behind a local reference, with what stands beside the reference on top.
    fn referred(
        &mut self,
        path: &str,
        object: &Map<String, Json>,
        root: &Json,
        depth: usize,
    ) -> Json {
        let target = path.strip_prefix('#').and_then(|path| root.pointer(path));
        let is_cyclic = self.expanding.iter().any(|open| open == path);
        let Some(target) = target.filter(|_| !is_cyclic) else {
            self.drop("$ref");
            return json!({"type": "object"});
        };
        self.expanding.push(path.to_owned());
        let mut found = self.schema(target, root, depth + 1);
        self.expanding.pop();
        if let Some(found) = found.as_object_mut() {
            for (key, value) in object.iter().filter(|(key, _)| *key != "$ref") {
                self.keyword(key, value, found, root, depth);
            }
        }
        found
    }

    fn keyword(
        &mut self,
        key: &str,
        value: &Json,
        found: &mut Map<String, Json>,
        root: &Json,
        depth: usize,
    ) {
        let mut put = |key: &str, value: Json| {
            found.insert(key.to_owned(), value);
        };
        match key {
            "type" => match value {
                Json::String(_) => put("type", value.clone()),
                Json::Array(types) => {
                    let is_null = |kind: &&Json| kind.as_str() == Some("null");
                    let mut others = types.iter().filter(|kind| !is_null(kind));
                    if let Some(first) = others.next() {
                        put("type", first.clone());
                    }
                    if others.next().is_some() {
                        self.drop("type");
                    }
                    if types.iter().any(|kind| is_null(&kind)) {
                        put("nullable", json!(true));
                    }
                }
                _ => self.drop("type"),
            },
            "properties" => {
                let properties = value.as_object().into_iter().flatten();
                let properties: Map<String, Json> = properties
                    .map(|(name, schema)| (name.clone(), self.schema(schema, root, depth + 1)))
                    .collect();
                if !properties.is_empty() {
                    found.insert("properties".to_owned(), Json::Object(properties));
                }
            }
            "items" if value.is_object() => {
                let items = self.schema(value, root, depth + 1);
                found.insert("items".to_owned(), items);
            }
            "required" | "propertyOrdering" if value.is_array() => put(key, value.clone()),
            "enum" => match value.as_array() {
                Some(items) if items.iter().all(Json::is_string) => put("enum", value.clone()),
                _ => self.drop("enum"),
            },
            "const" if value.is_string() => put("enum", json!([value])),
            "format" => {
                let takes = ["enum", "date-time", "int32", "int64", "float", "double"];
                match value.as_str() {
                    Some(format) if takes.contains(&format) => put("format", value.clone()),
                    _ => self.drop("format"),
                }
            }
            "anyOf" | "oneOf" => self.any_of(key, value, found, root, depth),
            // Every part holds, so each adds its keywords.
            "allOf" => {
                for part in value.as_array().into_iter().flatten() {
                    if let Json::Object(part) = self.schema(part, root, depth + 1) {
                        for (key, value) in part {
                            merge(&key, value, found);
                        }
                    }
                }
            }
            // Definitions are put where they are referred to.
            "$defs" | "definitions" => {}
            key if PLAIN.contains(&key) => put(key, value.clone()),
            _ => self.drop(key),
        }
    }

    /// Alternatives; one of null makes the others nullable.
    fn any_of(
        &mut self,
        key: &str,
        value: &Json,
        found: &mut Map<String, Json>,
        root: &Json,
        depth: usize,
    ) {
        if key == "oneOf" {
            self.drop("oneOf");
        }
        let is_null = |schema: &&Json| schema.get("type").and_then(Json::as_str) == Some("null");
        let all = value.as_array().map_or(&[][..], Vec::as_slice);
        let mut others: Vec<Json> = all
            .iter()
            .filter(|schema| !is_null(schema))
            .map(|schema| self.schema(schema, root, depth + 1))
            .collect();
        if others.len() < all.len() {
            found.insert("nullable".to_owned(), json!(true));
        }
        if others.len() == 1
            && let Some(Json::Object(only)) = others.pop()
        {
            for (key, value) in only {
                merge(&key, value, found);
            }
        } else if !others.is_empty() {
            found.insert("anyOf".to_owned(), Json::Array(others));
        }
    }
}

/// Adds a keyword; maps and lists of names grow, anything that is there stays.
fn merge(key: &str, value: Json, found: &mut Map<String, Json>) {
    match (key, found.get_mut(key), value) {
        ("properties", Some(Json::Object(there)), Json::Object(more)) => {
            for (name, schema) in more {
                there.entry(name).or_insert(schema);
            }
        }
        ("required", Some(Json::Array(there)), Json::Array(more)) => {
            for name in more {
                if !there.contains(&name) {
                    there.push(name);
                }
            }
        }
        (_, None, value) => {
            found.insert(key.to_owned(), value);
        }
        _ => {}
    }
}

/// A schema in Gemini's words as JSON Schema.
pub(super) fn from_gemini(schema: Json) -> Json {
    let Json::Object(object) = schema else {
        return schema;
    };
    let mut found = Map::new();
    let is_nullable = object.get("nullable") == Some(&Json::Bool(true));
    for (key, value) in object {
        let value = match (key.as_str(), value) {
            ("nullable" | "propertyOrdering" | "property_ordering", _) => continue,
            ("type", Json::String(kind)) if is_nullable => {
                json!([kind.to_lowercase(), "null"])
            }
            ("type", Json::String(kind)) => Json::String(kind.to_lowercase()),
            ("properties", Json::Object(properties)) => properties
                .into_iter()
                .map(|(name, schema)| (name, from_gemini(schema)))
                .collect::<Map<_, _>>()
                .into(),
            ("items", schema) => from_gemini(schema),
            ("anyOf" | "any_of", Json::Array(items)) => {
                let items = items.into_iter().map(from_gemini).collect();
                found.insert("anyOf".to_owned(), Json::Array(items));
                continue;
            }
            // 64-bit numbers travel as strings.
            (
                "minItems" | "maxItems" | "minLength" | "maxLength" | "minProperties"
                | "maxProperties",
                Json::String(number),
            ) => number
                .parse::<u64>()
                .map_or(Json::String(number), Json::from),
            (_, value) => value,
        };
        found.insert(key, value);
    }
    Json::Object(found)
}

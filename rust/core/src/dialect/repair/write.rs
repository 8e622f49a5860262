//! Drafts as edits: how each dialect spells a message of these pieces.

use serde_json::{Value as Json, json};

use super::draft::{Draft, Piece, Source};
use super::edit::{Base, Block, Edit, Entry, Path};
use super::items;
use crate::dialect::Dialect;
use crate::dialect::form::PLACEHOLDER;
use crate::message::{Message, PartKind, PathStep, Role};
use crate::node::Text;

const CONTENT: PathStep = PathStep::Key("content");

/// The way from a call to its id.
pub(super) fn call_id(dialect: Dialect) -> Path {
    match dialect {
        Dialect::Responses => vec![PathStep::Key("call_id")],
        Dialect::Bedrock => vec![PathStep::Key("toolUse"), PathStep::Key("toolUseId")],
        _ => vec![PathStep::Key("id")],
    }
}

/// The way from a result to the id of its call.
pub(super) fn result_id(dialect: Dialect) -> Path {
    match dialect {
        Dialect::Responses => vec![PathStep::Key("call_id")],
        Dialect::Bedrock => vec![PathStep::Key("toolResult"), PathStep::Key("toolUseId")],
        Dialect::Anthropic => vec![PathStep::Key("tool_use_id")],
        _ => vec![PathStep::Key("tool_call_id")],
    }
}

/// The list that the blocks of a message are in.
fn list(dialect: Dialect) -> PathStep {
    match dialect {
        Dialect::Gemini => PathStep::Key("parts"),
        _ => CONTENT,
    }
}

/// The name of a role.
fn role_name(dialect: Dialect, role: Role) -> &'static str {
    match (dialect, role) {
        (Dialect::Gemini, Role::Assistant) => "model",
        _ => role.name(),
    }
}

/// The message that a draft becomes.
pub(super) fn entry<T: Text>(
    draft: &Draft<'_, T>,
    messages: &[Message<T>],
    dialect: Dialect,
) -> Entry {
    // An item that became text is a message.
    let is_new = draft.item.is_some()
        && draft
            .pieces
            .iter()
            .all(|piece| matches!(piece.source, Source::Text(_)));
    let Some(base) = draft.base.filter(|_| !is_new) else {
        return made(draft, dialect);
    };
    let mut edits = draft.edits.clone();
    if draft.is_whole() {
        for piece in &draft.pieces {
            edits.extend(anchored(piece));
        }
    } else if dialect == Dialect::OpenAi {
        rebuild_chat(draft, base, messages, &mut edits);
    } else {
        let blocks = draft.pieces.iter().map(|piece| block(piece, dialect));
        edits.push(Edit::Blocks(vec![list(dialect)], blocks.collect()));
    }
    Entry {
        base: Base::Own(base),
        edits,
    }
}

/// The edits of a piece, from the message on.
fn anchored<'a, T>(piece: &'a Piece<'a, T>) -> impl Iterator<Item = Edit> + use<'a, T> {
    piece.edits.iter().map(|edit| {
        let from = |path: &Path| piece.block.iter().chain(path).copied().collect::<Path>();
        match edit {
            Edit::Set(path, value) => Edit::Set(from(path), value.clone()),
            Edit::Remove(path) => Edit::Remove(from(path)),
            Edit::Blocks(path, blocks) => Edit::Blocks(from(path), blocks.clone()),
        }
    })
}

/// A piece as a block of a content list.
fn block<T>(piece: &Piece<'_, T>, dialect: Dialect) -> Block {
    match &piece.source {
        // A string that becomes a block; what was trimmed of it is trimmed here.
        Source::Part(message, _) if piece.block.is_empty() => match piece.edits.last() {
            Some(Edit::Set(_, Json::String(text))) => Block::New(text_block(text, dialect)),
            _ => Block::Text(*message, vec![CONTENT], "text"),
        },
        Source::Part(message, _) => Block::Own(*message, piece.block.clone(), piece.edits.clone()),
        Source::Inside(message, path) => Block::Own(*message, path.clone(), Vec::new()),
        Source::Text(text) => Block::New(text_block(text, dialect)),
        Source::Result(id, name) => Block::New(match dialect {
            Dialect::Gemini => {
                let mut response = json!({"response": {"error": PLACEHOLDER}});
                for (key, value) in [("name", name), ("id", id)] {
                    if let Some(value) = value {
                        response[key] = Json::String(value.clone());
                    }
                }
                json!({"functionResponse": response})
            }
            Dialect::Bedrock => json!({"toolResult": {
                "toolUseId": id, "content": [{"text": PLACEHOLDER}], "status": "error",
            }}),
            _ => json!({
                "type": "tool_result", "tool_use_id": id, "content": PLACEHOLDER, "is_error": true,
            }),
        }),
    }
}

fn text_block(text: &str, dialect: Dialect) -> Json {
    match dialect {
        Dialect::Gemini | Dialect::Bedrock => json!({"text": text}),
        _ => json!({"type": "text", "text": text}),
    }
}

fn made<T: Text>(draft: &Draft<'_, T>, dialect: Dialect) -> Entry {
    let only_text: Option<Vec<&str>> = draft
        .pieces
        .iter()
        .map(|piece| match &piece.source {
            Source::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let role = role_name(dialect, draft.role);
    let has_strings = !matches!(dialect, Dialect::Gemini | Dialect::Bedrock);
    let (message, edits) = match (
        only_text.filter(|_| has_strings),
        draft.pieces.first().map(|piece| &piece.source),
    ) {
        (Some(texts), _) => {
            let text = texts.join("\n\n");
            (json!({"role": role, "content": text}), Vec::new())
        }
        (None, Some(Source::Result(id, name))) if dialect == Dialect::OpenAi => (
            match id {
                Some(id) => json!({"role": "tool", "tool_call_id": id, "content": PLACEHOLDER}),
                None => json!({"role": "function", "name": name, "content": PLACEHOLDER}),
            },
            Vec::new(),
        ),
        (None, Some(Source::Result(id, _))) if dialect == Dialect::Responses => {
            let id = id.as_deref();
            (items::placeholder(draft.item, id), Vec::new())
        }
        _ => {
            let blocks = draft
                .pieces
                .iter()
                .map(|piece| block(piece, dialect))
                .collect();
            (
                json!({"role": role}),
                vec![Edit::Blocks(vec![list(dialect)], blocks)],
            )
        }
    };
    Entry {
        base: Base::New(message),
        edits,
    }
}

/// A chat message some of whose parts went or became text.
fn rebuild_chat<T: Text>(
    draft: &Draft<'_, T>,
    base: u32,
    messages: &[Message<T>],
    edits: &mut Vec<Edit>,
) {
    let own =
        |piece: &&Piece<'_, T>| matches!(piece.source, Source::Part(message, _) if message == base);
    let is_at = |piece: &&Piece<'_, T>, key: &'static str| {
        let first = piece.block.first().copied();
        first.unwrap_or(CONTENT) == PathStep::Key(key)
    };
    let whole = messages
        .get(base as usize)
        .map_or(&[][..], |message| &message.parts);
    let had = |key: &'static str| {
        whole
            .iter()
            .filter(|part| part.place.path().first() == Some(&PathStep::Key(key)))
            .count()
    };
    let kept = |key: &'static str| {
        draft
            .pieces
            .iter()
            .filter(own)
            .filter(|piece| is_at(piece, key))
            .collect::<Vec<_>>()
    };
    let texts = draft
        .pieces
        .iter()
        .filter(|piece| !own(piece))
        .collect::<Vec<_>>();

    let content = kept("content");
    if texts.is_empty() && content.len() == had("content") {
        edits.extend(content.iter().flat_map(|piece| anchored(piece)));
    } else if content.is_empty() && texts.is_empty() {
        edits.push(Edit::Set(vec![CONTENT], Json::Null));
    } else if let (
        [],
        [
            Piece {
                source: Source::Text(text),
                ..
            },
        ],
    ) = (&content[..], &texts[..])
    {
        edits.push(Edit::Set(vec![CONTENT], Json::String(text.clone())));
    } else {
        let blocks = content
            .iter()
            .chain(&texts)
            .map(|piece| block(piece, Dialect::OpenAi));
        edits.push(Edit::Blocks(vec![CONTENT], blocks.collect()));
    }
    for key in ["tool_calls", "function_call"] {
        let calls = kept(key);
        if calls.len() == had(key) {
            edits.extend(calls.iter().flat_map(|piece| anchored(piece)));
        } else if calls.is_empty() {
            edits.push(Edit::Remove(vec![PathStep::Key(key)]));
        } else {
            let blocks = calls.iter().map(|piece| block(piece, Dialect::OpenAi));
            edits.push(Edit::Blocks(vec![PathStep::Key(key)], blocks.collect()));
        }
    }
    for part in whole.iter().filter(|part| part.kind == PartKind::Reasoning) {
        if let [PathStep::Key(key)] = part.place.path()[..]
            && kept(key).is_empty()
        {
            edits.push(Edit::Remove(vec![PathStep::Key(key)]));
        }
    }
    debug_assert!(draft.role != Role::Tool, "a result is a message of its own");
}

//! What left the windows of a conversation, so that their pointers lead somewhere.

use std::collections::BTreeSet;

use crate::readers::json::{Json, JsonText};
use crate::working_set::WorkingSet;

/// Content that a window points to.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The pointer, as the window shows it.
    pub pointer: String,
    /// Index of its message in the history that was packed; `None` for an index of what is gone.
    pub message: Option<usize>,
    /// Index of its part in the message.
    pub part: usize,
    /// Number of messages before the window whose index it is; `None` for content, which is the
    /// same for every window.
    pub at: Option<usize>,
    /// Tokens of the content; 0 for an index.
    pub tokens: u32,
    /// The content: a text as it was, anything else as its canonical JSON.
    pub text: Json,
}

/// The pages of several windows over one history.
#[derive(Debug, Default)]
pub(super) struct Pages {
    parts: BTreeSet<usize>,
    indices: Vec<(usize, String)>,
}

impl Pages {
    /// Notes what the newest window points to.
    pub(super) fn note(&mut self, set: &WorkingSet<JsonText>) {
        let (transcript, plan) = (set.transcript(), set.window_plan());
        let edits = plan.shown().iter().flat_map(|shown| shown.edits.iter());
        self.parts.extend(edits.map(|edit| edit.part as usize));
        let gone = plan.gone().filter_map(|step| transcript.steps().get(step));
        for step in gone {
            for message in step.first as usize..step.end as usize {
                self.parts.extend(transcript.part_range(message));
            }
        }
        if plan.root().is_some() {
            let text = set.index_page();
            // It only changes at compactions.
            if self.indices.last().is_none_or(|(_, last)| *last != text) {
                self.indices.push((transcript.len(), text));
            }
        }
    }

    /// All of them: indices first, then content in the order of the history.
    pub(super) fn finish(self, set: &WorkingSet<JsonText>) -> Vec<Page> {
        let transcript = set.transcript();
        let index_pointer = set.settings().key.index_pointer().to_string();
        let indices = self.indices.into_iter().map(|(at, text)| Page {
            pointer: index_pointer.clone(),
            message: None,
            part: 0,
            at: Some(at),
            tokens: 0,
            text: text.into(),
        });
        let parts = self.parts.into_iter().filter_map(|part| {
            let content = transcript.all_parts().get(part)?;
            let message = transcript.message_of_part(part);
            Some(Page {
                pointer: set.pointer_of(part).to_string(),
                message: Some(message),
                part: part - transcript.part_range(message).start,
                at: None,
                tokens: content.tokens,
                text: text_of(&content.body),
            })
        });
        indices.chain(parts).collect()
    }
}

fn text_of(body: &crate::message::Body<JsonText>) -> Json {
    use crate::message::Body;
    match body {
        Body::Text(text) => Json::Text(text.clone()),
        Body::Value(value) => value.to_json().into(),
        Body::Empty => "".into(),
    }
}

impl Page {
    /// The page as fields of a JSON object.
    pub(super) fn fields(&self) -> [(&'static str, Json); 6] {
        let number = |number: Option<usize>| number.map_or(Json::Null, Json::from);
        [
            ("pointer", self.pointer.as_str().into()),
            ("message", number(self.message)),
            ("part", self.part.into()),
            ("at", number(self.at)),
            ("tokens", Json::Int(self.tokens.into())),
            ("text", self.text.clone()),
        ]
    }
}

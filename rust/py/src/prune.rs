//! Pruning of tool outputs in the caller's own messages.
//!
//! Works on the Python strings themselves: their length in characters is known to the
//! interpreter, and a slice keeps every character, lone surrogates included. Too little work per
//! message to detach for.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PySequence, PyString, PyTuple};
use satchel_core::prune::outputs::{Cut, MAX_NOTE_CHARS, Note, cut, is_old, strip_keys};

use crate::page_results::PageCalls;

/// Returns the messages with old, long tool outputs cut to `max_chars` characters and a note.
#[pyfunction]
#[pyo3(signature = (messages, /, *, max_chars, keep_last, strip))]
pub(crate) fn prune_tool_outputs<'py>(
    messages: &Bound<'py, PyList>,
    max_chars: usize,
    keep_last: usize,
    strip: Vec<String>,
) -> PyResult<Bound<'py, PyList>> {
    let mut rules = Rules {
        max_chars,
        strip,
        pages: PageCalls::default(),
    };
    let length = messages.len();
    let pruned = PyList::empty(messages.py());
    for (index, message) in messages.iter().enumerate() {
        let edited = if is_old(index, length, keep_last) {
            rules.pages.read(&message);
            rules.message(&message)?
        } else {
            None
        };
        match edited {
            Some(edited) => pruned.append(edited)?,
            None => pruned.append(message)?,
        }
    }
    Ok(pruned)
}

struct Rules {
    max_chars: usize,
    strip: Vec<String>,
    pages: PageCalls,
}

impl Rules {
    /// A shallow copy of the message with its outputs cut; `None` if nothing changes.
    fn message<'py>(&self, message: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let py = message.py();
        let Ok(message) = message.cast::<PyDict>() else {
            return Ok(None);
        };
        let Some(content) = message.get_item(intern!(py, "content"))? else {
            return self.without_content(message);
        };
        let content = match field(message, intern!(py, "role"))?.as_deref() {
            Some("tool" | "function")
                if !self.pages.answered_by(message, intern!(py, "tool_call_id")) =>
            {
                self.content(&content)?
            }
            Some("user") => self.result_blocks(&content)?,
            _ => None,
        };
        with_field(message, intern!(py, "content"), content)
    }

    /// A content of Gemini's, or an output item.
    fn without_content<'py>(
        &self,
        message: &Bound<'py, PyDict>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let py = message.py();
        if let Some(parts) = message.get_item(intern!(py, "parts"))? {
            let parts = Self::each(&parts, |part| {
                Self::inside(part, &["functionResponse", "function_response"], |result| {
                    if self.pages.answered_by(result, intern!(py, "id")) {
                        return Ok(None);
                    }
                    Self::inside(result, &["response"], |response| {
                        self.strings(response, None)
                    })
                })
            })?;
            return with_field(message, intern!(py, "parts"), parts);
        }
        let kind = field(message, intern!(py, "type"))?;
        if !kind.is_some_and(|kind| kind.ends_with("_output"))
            || self.pages.answered_by(message, intern!(py, "call_id"))
        {
            return Ok(None);
        }
        for key in [intern!(py, "output"), intern!(py, "result")] {
            let Some(output) = message.get_item(key)? else {
                continue;
            };
            let streams = ["stdout", "stderr"];
            let edited = match self.content(&output)? {
                Some(edited) => Some(edited),
                // The streams of a shell are cut one by one.
                None => Self::each(&output, |entry| self.strings(entry, Some(&streams)))?,
            };
            return with_field(message, key, edited);
        }
        Ok(None)
    }

    /// The items of a list, each as `edit` makes it; `None` if nothing changes.
    fn each<'py>(
        list: &Bound<'py, PyAny>,
        edit: impl Fn(&Bound<'py, PyDict>) -> PyResult<Option<Bound<'py, PyDict>>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(items) = blocks(list)? else {
            return Ok(None);
        };
        let edited = PyList::empty(list.py());
        let mut is_edited = false;
        for item in items {
            let copy = match item.cast::<PyDict>() {
                Ok(fields) => edit(fields)?,
                Err(_) => None,
            };
            is_edited |= copy.is_some();
            edited.append(copy.map_or(item, Bound::into_any))?;
        }
        Ok(is_edited.then(|| edited.into_any()))
    }

    /// A copy with the dict under the first of `keys` that is there as `edit` makes it.
    fn inside<'py>(
        fields: &Bound<'py, PyDict>,
        keys: &[&'static str],
        edit: impl Fn(&Bound<'py, PyDict>) -> PyResult<Option<Bound<'py, PyDict>>>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        for key in keys {
            let Some(inner) = fields.get_item(key)? else {
                continue;
            };
            let edited = match inner.cast::<PyDict>() {
                Ok(inner) => edit(inner)?,
                Err(_) => None,
            };
            let key = PyString::intern(fields.py(), key);
            return with_field(fields, &key, edited.map(Bound::into_any));
        }
        Ok(None)
    }

    /// A copy with its strings cut, all of them or those under `keys`.
    fn strings<'py>(
        &self,
        fields: &Bound<'py, PyDict>,
        keys: Option<&[&str]>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let mut copy = None;
        for (key, value) in fields.iter() {
            let Ok(key) = key.cast_into::<PyString>() else {
                continue;
            };
            let is_wanted = match keys {
                Some(keys) => keys.contains(&&*key.to_string_lossy()),
                None => true,
            };
            if !is_wanted || !value.is_instance_of::<PyString>() {
                continue;
            }
            if let Some(edited) = self.content(&value)? {
                let copy = match &copy {
                    Some(copy) => copy,
                    None => copy.insert(fields.copy()?),
                };
                copy.set_item(key, edited)?;
            }
        }
        Ok(copy)
    }

    /// The blocks of a user message with the content of its result blocks cut.
    fn result_blocks<'py>(
        &self,
        content: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = content.py();
        let Some(blocks) = blocks(content)? else {
            return Ok(None);
        };
        let edited = PyList::empty(py);
        let mut is_edited = false;
        for block in blocks {
            if let Ok(fields) = block.cast::<PyDict>()
                && field(fields, intern!(py, "type"))?.as_deref() == Some("tool_result")
                && !self.pages.answered_by(fields, intern!(py, "tool_use_id"))
                && let Some(content) = fields.get_item(intern!(py, "content"))?
                && let Some(copy) =
                    with_field(fields, intern!(py, "content"), self.content(&content)?)?
            {
                edited.append(copy)?;
                is_edited = true;
            } else if let Ok(fields) = block.cast::<PyDict>()
                && let Some(copy) = Self::inside(fields, &["toolResult"], |result| {
                    if self.pages.answered_by(result, intern!(py, "toolUseId")) {
                        return Ok(None);
                    }
                    match result.get_item(intern!(py, "content"))? {
                        Some(content) => {
                            with_field(result, intern!(py, "content"), self.content(&content)?)
                        }
                        None => Ok(None),
                    }
                })?
            {
                edited.append(copy)?;
                is_edited = true;
            } else {
                edited.append(block)?;
            }
        }
        Ok(is_edited.then(|| edited.into_any()))
    }

    /// The content of one result, cut: a string, or a list whose text blocks are taken as one.
    fn content<'py>(&self, content: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if let Ok(text) = content.cast::<PyString>() {
            let stripped = self.stripped(text);
            let text = stripped.as_ref().unwrap_or(text);
            let length = text.code_point_len()?;
            let shorter = match cut(
                &[length],
                find_note(text, length, self.max_chars)?,
                self.max_chars,
            ) {
                Some((cuts, note)) => match cuts.first() {
                    Some(Cut::Shorten(chars)) => Some(shorten(text, *chars, note)?),
                    _ => None,
                },
                None => None,
            };
            return Ok(shorter.or_else(|| stripped.map(Bound::into_any)));
        }
        match blocks(content)? {
            Some(blocks) => self.text_blocks(&blocks),
            None => Ok(None),
        }
    }

    fn text_blocks<'py>(
        &self,
        blocks: &[Bound<'py, PyAny>],
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(first) = blocks.first() else {
            return Ok(None);
        };
        let py = first.py();
        let mut texts = Vec::new();
        let mut lengths = Vec::new();
        let mut is_edited = false;
        for (at, block) in blocks.iter().enumerate() {
            let Some(text) = block_text(block)? else {
                continue;
            };
            let stripped = self.stripped(&text);
            let is_stripped = stripped.is_some();
            is_edited |= is_stripped;
            let text = stripped.unwrap_or(text);
            lengths.push(text.code_point_len()?);
            texts.push((at, text, is_stripped));
        }
        let note = match (texts.last(), lengths.last()) {
            (Some((_, text, _)), Some(length)) => find_note(text, *length, 0)?,
            _ => None,
        };
        let (cuts, note) = match cut(&lengths, note, self.max_chars) {
            Some((cuts, note)) => (cuts, Some(note)),
            None if is_edited => (vec![Cut::Keep; lengths.len()], None),
            None => return Ok(None),
        };
        let edited = PyList::empty(py);
        let mut edits = texts.into_iter().zip(cuts).peekable();
        for (at, block) in blocks.iter().enumerate() {
            let Some(((_, text, is_stripped), cut)) =
                edits.next_if(|((text_at, _, _), _)| *text_at == at)
            else {
                edited.append(block)?;
                continue;
            };
            let text = match (cut, note) {
                (Cut::Drop, _) => continue,
                (Cut::Shorten(chars), Some(note)) => shorten(&text, chars, note)?,
                (Cut::Keep, _) if !is_stripped => {
                    edited.append(block)?;
                    continue;
                }
                _ => text.into_any(),
            };
            match block.cast::<PyDict>() {
                Ok(block) => edited.append(with_field(block, intern!(py, "text"), Some(text))?)?,
                // A bare string among the blocks.
                Err(_) => edited.append(text)?,
            }
        }
        Ok(Some(edited.into_any()))
    }

    /// The text without the keys to strip, if it is JSON and holds one. A text with lone
    /// surrogates is no JSON text.
    fn stripped<'py>(&self, text: &Bound<'py, PyString>) -> Option<Bound<'py, PyString>> {
        if self.strip.is_empty() {
            return None;
        }
        let bytes = text.encode_utf8().ok()?;
        let json = std::str::from_utf8(bytes.as_bytes()).ok()?;
        strip_keys(json, &self.strip).map(|json| PyString::new(text.py(), &json))
    }
}

/// The string field `key`, if it is one.
fn field(fields: &Bound<'_, PyDict>, key: &Bound<'_, PyString>) -> PyResult<Option<String>> {
    Ok(match fields.get_item(key)? {
        Some(value) => value.extract().ok(),
        None => None,
    })
}

/// A shallow copy with one field replaced.
fn with_field<'py>(
    fields: &Bound<'py, PyDict>,
    key: &Bound<'py, PyString>,
    value: Option<Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(value) = value else {
        return Ok(None);
    };
    let copy = fields.copy()?;
    copy.set_item(key, value)?;
    Ok(Some(copy))
}

/// The items of a list or tuple.
fn blocks<'py>(content: &Bound<'py, PyAny>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    if content.is_instance_of::<PyList>() || content.is_instance_of::<PyTuple>() {
        return Ok(Some(content.try_iter()?.collect::<PyResult<_>>()?));
    }
    Ok(None)
}

/// The text of a text block, or a bare string among the blocks.
fn block_text<'py>(block: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyString>>> {
    let py = block.py();
    if let Ok(text) = block.cast::<PyString>() {
        return Ok(Some(text.clone()));
    }
    let Ok(fields) = block.cast::<PyDict>() else {
        return Ok(None);
    };
    // Bedrock's blocks have no type: their one key tells what they are.
    match field(fields, intern!(py, "type"))?.as_deref() {
        Some("text" | "input_text" | "output_text") => {}
        None if !fields.contains(intern!(py, "type"))? => {}
        _ => return Ok(None),
    }
    let text = fields.get_item(intern!(py, "text"))?;
    Ok(text.and_then(|text| text.cast_into::<PyString>().ok()))
}

/// The note at the end of a text of `length` characters; not looked for in a short one.
fn find_note(
    text: &Bound<'_, PyString>,
    length: usize,
    max_chars: usize,
) -> PyResult<Option<Note>> {
    if length <= max_chars {
        return Ok(None);
    }
    let tail = slice(text, length.saturating_sub(MAX_NOTE_CHARS), length)?;
    // Lone surrogates are in no note; what stands behind them may be one.
    Ok(Note::find(&tail.to_string_lossy()))
}

fn shorten<'py>(
    text: &Bound<'py, PyString>,
    chars: usize,
    note: Note,
) -> PyResult<Bound<'py, PyAny>> {
    let note = PyString::new(text.py(), &note.text());
    let head = slice(text, 0, chars)?;
    Ok(head
        .cast::<PySequence>()?
        .concat(note.cast::<PySequence>()?)?
        .into_any())
}

fn slice<'py>(
    text: &Bound<'py, PyString>,
    from: usize,
    to: usize,
) -> PyResult<Bound<'py, PyString>> {
    let slice = text.cast::<PySequence>()?.get_slice(from, to)?;
    Ok(slice.into_any().cast_into()?)
}

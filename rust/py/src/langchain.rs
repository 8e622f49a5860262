//! `approximate_fit`: `LangChain`'s estimate of characters over a list of its message objects.
//!
//! Reads the objects' own fields without running Python code, except `repr` of what in tool calls and
//! blocks only Python can write out. Whatever is not of the expected kind makes the answer
//! `None`; the Python half then counts, and raises what there is to raise. One pass, no copies.
//!
//! What is counted is read anew at every call, since any message may have changed. Of messages that
//! no longer fit only the content's kind is looked at, through the fields that the call before found
//! there: an agent asks about the same history again and again.

use std::cell::RefCell;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyType};

use crate::repr::repr_length;

/// The address of each message of a list, and its fields.
type Remembered = Vec<Option<(usize, Py<PyDict>)>>;

thread_local! {
    /// Fields of the messages at each index of the newest list, by the message's address. Whoever
    /// holds the only reference left holds fields that are no message's any more.
    static FIELDS: RefCell<Remembered> = const { RefCell::new(Vec::new()) };
}

/// Messages whose fields are remembered: they stay alive until the next call.
const MOST_FIELDS: usize = 4096;

/// How a class of messages counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Human,
    Ai,
    Tool,
    System,
    Function,
    Chat,
}

impl Kind {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "human" => Self::Human,
            "ai" => Self::Ai,
            "tool" => Self::Tool,
            "system" => Self::System,
            "function" => Self::Function,
            "chat" => Self::Chat,
            _ => return None,
        })
    }
}

/// The figures of the estimate.
#[derive(Clone, Copy, Debug)]
struct Rates {
    chars_per_token: f64,
    extra: f64,
    image: f64,
    with_name: bool,
}

/// How many messages fit, and the running count over them.
///
/// The count is kept in the order in which `LangChain` adds it up, so that it is the same float. It
/// never falls, because the rates are not negative: the messages that fit are a prefix.
///
/// The running count stops at the first message that does not fit; the rest is only looked at.
/// Returns `None` if a message or a field is of a kind that only Python can count.
#[pyfunction]
#[pyo3(signature = (
    messages, kinds, /, *, chars_per_token, extra, image, with_name, start, limit, backward
))]
#[allow(
    clippy::too_many_arguments,
    reason = "each is a figure of LangChain's own signature"
)]
pub(crate) fn approximate_fit(
    messages: &Bound<'_, PyList>,
    kinds: &Bound<'_, PyDict>,
    chars_per_token: f64,
    extra: f64,
    image: f64,
    with_name: bool,
    start: f64,
    limit: f64,
    backward: bool,
) -> Option<(usize, f64)> {
    let rates = Rates {
        chars_per_token,
        extra,
        image,
        with_name,
    };
    let usable =
        chars_per_token > 0.0 && chars_per_token.is_finite() && extra >= 0.0 && image >= 0.0;
    if !usable {
        return None;
    }
    let classes = classes(kinds)?;
    let mut running = start;
    let mut fitting = 0;
    let mut fits = true;
    // A list may shrink while `repr` runs somebody's code, so each index is asked for.
    let length = messages.len();
    // Somebody's `repr` may call this function again, which then remembers nothing.
    let mut remembered = FIELDS.take();
    for step in 0..length {
        let index = if backward { length - 1 - step } else { step };
        let message = messages.get_item(index).ok()?;
        let class = message.get_type();
        let (_, kind) = classes.iter().find(|(known, _)| known.is(&class))?;
        if !fits {
            // What no longer fits must only be something that can be counted.
            check(&fields_again(&message, index, &mut remembered)?, *kind)?;
            continue;
        }
        add(&message, *kind, rates, &mut running)?;
        fits = running.ceil() <= limit;
        fitting += usize::from(fits);
    }
    remembered.truncate(length);
    FIELDS.set(remembered);
    running.is_finite().then_some((fitting, running))
}

/// The fields of a message.
fn fields_of<'py>(message: &Bound<'py, PyAny>) -> Option<Bound<'py, PyDict>> {
    let fields = message.getattr(intern!(message.py(), "__dict__")).ok()?;
    fields.cast_into().ok()
}

/// [`fields_of`], as the call before found them, if they are still the message's.
#[allow(deprecated, reason = "what replaces `get_refcnt` is unsafe code")]
fn fields_again<'py>(
    message: &Bound<'py, PyAny>,
    index: usize,
    remembered: &mut Remembered,
) -> Option<Bound<'py, PyDict>> {
    let py = message.py();
    let address = message.as_ptr() as usize;
    if let Some(Some((known, fields))) = remembered.get(index)
        && *known == address
        && fields.get_refcnt(py) > 1
    {
        return Some(fields.bind(py).clone());
    }
    let fields = fields_of(message)?;
    if index < MOST_FIELDS {
        if remembered.len() <= index {
            remembered.resize_with(index + 1, || None);
        }
        if let Some(slot) = remembered.get_mut(index) {
            *slot = Some((address, fields.clone().unbind()));
        }
    }
    Some(fields)
}

/// The classes by identity, a dozen at most: comparing pointers is quicker than hashing.
fn classes<'py>(kinds: &Bound<'py, PyDict>) -> Option<Vec<(Bound<'py, PyType>, Kind)>> {
    kinds
        .iter()
        .map(|(class, name)| {
            let name = name.cast_into::<PyString>().ok()?;
            let kind = Kind::of(name.to_str().ok()?)?;
            Some((class.cast_into().ok()?, kind))
        })
        .collect()
}

fn add(message: &Bound<'_, PyAny>, kind: Kind, rates: Rates, running: &mut f64) -> Option<()> {
    let py = message.py();
    let fields = fields_of(message)?;
    let field = |name| fields.get_item(name).ok().flatten();
    let content = field(intern!(py, "content"))?;
    let mut chars = 0;
    let is_text = if let Ok(text) = content.cast::<PyString>() {
        chars += text.len().ok()?;
        true
    } else {
        for block in content.cast::<PyList>().ok()? {
            chars += block_chars(&block, rates, running)?;
        }
        false
    };
    chars += match kind {
        Kind::Human => 4,
        Kind::Function => 8,
        Kind::Ai => {
            let calls = field(intern!(py, "tool_calls"))?;
            let calls = calls.cast::<PyList>().ok()?;
            if is_text && !calls.is_empty() {
                chars += repr_length(calls)?;
            }
            9
        }
        Kind::Tool => text_length(&field(intern!(py, "tool_call_id"))?)? + 4,
        Kind::Chat => text_length(&field(intern!(py, "role"))?)?,
        Kind::System => {
            let extras = field(intern!(py, "additional_kwargs"))?;
            let extras = extras.cast::<PyDict>().ok()?;
            match extras.get_item(intern!(py, "__openai_role__")).ok()? {
                Some(role) => text_length(&role)?,
                None => 6,
            }
        }
    };
    if rates.with_name {
        let name = field(intern!(py, "name"))?;
        if !name.is_none() {
            chars += text_length(&name)?;
        }
    }
    #[allow(
        clippy::cast_precision_loss,
        reason = "texts are shorter than 2^53 characters"
    )]
    let tokens = (chars as f64 / rates.chars_per_token).ceil();
    *running += tokens;
    *running += rates.extra;
    Some(())
}

/// Whether counting a message with these fields could fail, without counting it.
fn check(fields: &Bound<'_, PyDict>, kind: Kind) -> Option<()> {
    let py = fields.py();
    let content = fields.get_item(intern!(py, "content")).ok()??;
    if !content.is_instance_of::<PyString>() {
        for block in content.cast::<PyList>().ok()? {
            check_block(&block)?;
        }
    }
    if kind == Kind::System {
        let extras = fields.get_item(intern!(py, "additional_kwargs")).ok()??;
        let extras = extras.cast::<PyDict>().ok()?;
        if let Some(role) = extras.get_item(intern!(py, "__openai_role__")).ok()? {
            role.cast::<PyString>().ok()?;
        }
    }
    Some(())
}

fn check_block(block: &Bound<'_, PyAny>) -> Option<()> {
    let py = block.py();
    if block.is_instance_of::<PyString>() {
        return Some(());
    }
    let entries = block.cast_exact::<PyDict>().ok()?;
    if let Some(kind) = entries.get_item(intern!(py, "type")).ok()? {
        let kind = kind.cast_exact::<PyString>().ok()?;
        if kind.as_any().eq(intern!(py, "text")).ok()?
            && let Some(text) = entries.get_item(intern!(py, "text")).ok()?
        {
            text.cast::<PyString>().ok()?;
        }
    }
    Some(())
}

/// Characters of one block of a content list; an image goes to the running count at once.
fn block_chars(block: &Bound<'_, PyAny>, rates: Rates, running: &mut f64) -> Option<usize> {
    let py = block.py();
    if let Ok(text) = block.cast::<PyString>() {
        return text.len().ok();
    }
    let Ok(entries) = block.cast_exact::<PyDict>() else {
        return None;
    };
    let Some(kind) = entries.get_item(intern!(py, "type")).ok()? else {
        return repr_length(block);
    };
    let kind = kind.cast_exact::<PyString>().ok()?;
    // A lone surrogate has no UTF-8; no kind of block is called so.
    match kind.to_cow().as_deref() {
        Ok("image" | "image_url") => {
            *running += rates.image;
            Some(0)
        }
        Ok("text") => match entries.get_item(intern!(py, "text")).ok()? {
            Some(text) => text_length(&text),
            None => Some(0),
        },
        _ => repr_length(block),
    }
}

fn text_length(text: &Bound<'_, PyAny>) -> Option<usize> {
    text.cast::<PyString>().ok()?.len().ok()
}

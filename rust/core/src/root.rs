//! The root note: where a model finds what is gone, and the summary that stands for it.

use std::fmt::Write as _;

use crate::error::Result;
use crate::event::Summary;
use crate::node::Text;
use crate::plan::{Plan, Root, Settings};
use crate::transcript::Transcript;
use crate::working_set::fence;

/// The note that a plan needs: none while nothing is gone and nothing summarised.
///
/// # Errors
/// `counter_failed`, only from a foreign counter.
pub(crate) fn root_of<T: Text>(
    plan: &Plan,
    transcript: &Transcript<T>,
    settings: &Settings,
) -> Result<Option<Root>> {
    if plan.gone_steps == 0 && plan.summary.is_none() {
        return Ok(None);
    }
    root_note(plan.summary.as_deref(), transcript, settings).map(Some)
}

/// The note that leads to what is gone. It says the same as long as anything is and no summary
/// changes it, so that the window before the first step that changed stays in the provider's cache.
///
/// # Errors
/// `counter_failed`, only from a foreign counter.
pub(crate) fn root_note<T: Text>(
    summary: Option<&Summary>,
    transcript: &Transcript<T>,
    settings: &Settings,
) -> Result<Root> {
    let pointer = settings.key.index_pointer();
    let mut text = index_text(&format!(
        "Steps paged out: page_in(\"{pointer}\"). Not the user's words."
    ));
    if let Some(summary) = summary {
        text.push('\n');
        text.push_str(&summary_text(summary));
    }
    counted(text, transcript, settings)
}

/// The shortest note that still leads to what is gone.
///
/// # Errors
/// `counter_failed`, only from a foreign counter.
pub(crate) fn short_root<T: Text>(transcript: &Transcript<T>, settings: &Settings) -> Result<Root> {
    let pointer = settings.key.index_pointer();
    counted(
        index_text(&format!("page_in(\"{pointer}\")")),
        transcript,
        settings,
    )
}

fn index_text(words: &str) -> String {
    format!("<satchel-index>\n{words}\n</satchel-index>")
}

fn counted<T: Text>(text: String, transcript: &Transcript<T>, settings: &Settings) -> Result<Root> {
    let count = settings.counter.count(&text)?;
    let tokens = count.saturating_add(root_overhead(settings, transcript));
    Ok(Root {
        text: text.into(),
        tokens,
    })
}

/// The summary as the window shows it: fenced, labelled with what it stands for, and what is exact
/// told from what is not.
fn summary_text(summary: &Summary) -> String {
    let mut content = summary.text.clone();
    if !summary.receipts.is_empty() {
        content.push_str("\n\nWord for word:\n");
        for receipt in &summary.receipts {
            let _ = writeln!(content, "[{}] {}", receipt.source, receipt.text);
        }
    }
    let (first, end) = summary.covers;
    let source = match end.saturating_sub(first) {
        0 => "summary of earlier messages".to_owned(),
        1 => format!("summary of message {first}"),
        _ => format!("summary of messages {first} to {}", end - 1),
    };
    fence("summary", &source, &content)
}

/// Whether the note that leads to what is gone is a message of its own.
pub(crate) fn is_root_message<T: Text>(settings: &Settings, transcript: &Transcript<T>) -> bool {
    !settings.dialect.notes_inside() || transcript.goal().is_none()
}

/// Tokens around the root note: none where it is a further block of the goal.
pub fn root_overhead<T: Text>(settings: &Settings, transcript: &Transcript<T>) -> u32 {
    if is_root_message(settings, transcript) {
        settings.message_tokens
    } else {
        0
    }
}

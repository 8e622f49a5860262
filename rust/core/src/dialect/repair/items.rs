//! Items of the Responses API: their kinds, and the ids that the server gave them.

use std::collections::BTreeMap;

use super::draft::Draft;
use super::edit::Edit;
use crate::message::{PartKind, PathStep, Role};
use crate::node::{Node, Text};

/// What kind of item a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Item {
    /// A message.
    Message,
    /// Reasoning.
    Reasoning,
    /// A call of a function.
    Function,
    /// A call of a custom tool.
    Custom,
    /// A call of a shell.
    Shell,
    /// A call of the old local shell.
    LocalShell,
    /// A patch.
    Patch,
    /// Another call.
    OtherCall,
    /// A question to a person, or a call that the server answers.
    Question,
    /// The output of a call.
    Output,
    /// What the server found, without the id of its search.
    Found,
    /// A reference to what the server has stored.
    Stored,
    /// Anything else.
    Opaque,
}

impl Item {
    /// The kind of an item.
    pub(crate) fn of<N: Node>(node: &N) -> Self {
        let kind = node.get("type").filter(|kind| !kind.is_null());
        let Some(kind) = kind else {
            return if node.get("role").is_some() {
                Self::Message
            } else {
                Self::Stored
            };
        };
        let has_call_id = || {
            let id = node.get("call_id");
            id.is_some_and(|id| id.with_str(|id| !id.is_empty()) == Some(true))
        };
        kind.with_str(|kind| match kind {
            "message" => Self::Message,
            "reasoning" => Self::Reasoning,
            "function_call" => Self::Function,
            "custom_tool_call" => Self::Custom,
            "shell_call" => Self::Shell,
            "local_shell_call" => Self::LocalShell,
            "apply_patch_call" => Self::Patch,
            "mcp_approval_request" => Self::Question,
            "tool_search_call" if !has_call_id() => Self::Question,
            "item_reference" | "compaction" => Self::Stored,
            "computer_call" | "tool_search_call" | "program" => Self::OtherCall,
            "tool_search_output" if !has_call_id() => Self::Found,
            _ if kind.ends_with("_output") || kind == "mcp_approval_response" => Self::Output,
            _ if kind.ends_with("_call") && has_call_id() => Self::OtherCall,
            _ => Self::Opaque,
        })
        .unwrap_or(Self::Opaque)
    }

    /// The id that the item itself has; the output of the old local shell has the one of its call.
    pub(crate) fn own_id<N: Node>(self, node: &N) -> Option<String> {
        let is_calls = node
            .get("type")
            .is_some_and(|kind| kind.is_str("local_shell_call_output"));
        if self == Self::Stored || is_calls {
            return None;
        }
        node.get("id").and_then(|id| id.with_str(str::to_owned))
    }

    /// Whether it may stay without a result.
    pub(crate) fn needs_no_result(self) -> bool {
        self == Self::Question
    }

    /// Whether it stays valid without its id.
    pub(crate) fn may_lose_id(self) -> bool {
        matches!(
            self,
            Self::Message | Self::Function | Self::Custom | Self::Reasoning
        )
    }

    /// What its id starts with, where that is known.
    fn prefix(self) -> Option<&'static str> {
        match self {
            Self::Message => Some("msg_"),
            Self::Reasoning => Some("rs_"),
            Self::Function => Some("fc_"),
            Self::Custom => Some("ctc_"),
            _ => None,
        }
    }

    /// Whether the id is one that the server may have given to such an item.
    pub(crate) fn takes_id(self, id: &str) -> bool {
        const MOST: usize = 64;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        id.len() <= MOST
            && id.bytes().all(is_plain)
            && self.prefix().is_none_or(|prefix| id.starts_with(prefix))
    }
}

impl<T: Text> Draft<'_, T> {
    /// Takes off the id that the server gave, which makes the item inline.
    pub(super) fn lose_id(&mut self) {
        let edit = Edit::Remove(vec![PathStep::Key("id")]);
        if self.has_id && !self.edits.contains(&edit) {
            self.edits.push(edit);
        }
    }
}

/// Finds the kind of every item, takes out items that are there twice and ids that cannot be.
pub(super) fn settle<N: Node>(drafts: &mut Vec<Draft<'_, N::Text>>, nodes: &[N]) {
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    drafts.retain_mut(|draft| {
        let at = draft.base.unwrap_or(0) as usize;
        let Some(node) = nodes.get(at) else {
            return true;
        };
        let item = Item::of(node);
        draft.item = Some(item);
        draft.has_id = node.get("id").is_some();
        let Some(id) = item.own_id(node) else {
            return true;
        };
        if !item.takes_id(&id) && item.may_lose_id() {
            draft.lose_id();
            return true;
        }
        let Some(&first) = taken.get(&id) else {
            taken.insert(id, at);
            return true;
        };
        let json = |at: usize| nodes.get(at).and_then(|node| node.capture().ok());
        let is_same = match (json(first), json(at)) {
            (Some(first), Some(second)) => first.to_json() == second.to_json(),
            _ => false,
        };
        if is_same {
            return false;
        }
        draft.lose_id();
        true
    });
}

/// Takes out reasoning that nothing of its turn follows.
pub(super) fn drop_lone_reasoning<T: Text>(drafts: &mut Vec<Draft<'_, T>>) {
    let mut is_followed = false;
    let mut is_kept: Vec<bool> = drafts
        .iter()
        .rev()
        .map(|draft| {
            let mut pieces = draft.pieces.iter();
            let is_reasoning = draft.item == Some(Item::Reasoning)
                && pieces.all(|piece| piece.kind == PartKind::Reasoning);
            if !is_reasoning {
                is_followed = draft.role == Role::Assistant;
                return true;
            }
            is_followed
        })
        .collect();
    is_kept.reverse();
    let mut kept = is_kept.into_iter();
    drafts.retain(|_| kept.next().unwrap_or(true));
}

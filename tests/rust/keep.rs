//! What is kept of lowered steps: whole lines, the newest copy, instructions, and what is needed.

use std::collections::BTreeMap;

use proptest::prelude::*;
use satchel_core::dialect::Dialect;
use satchel_core::message::PartKind;
use satchel_core::policy::{Policy, Strategy};
use satchel_core::shrink::{Span, with_text};
use satchel_core::working_set::WorkingSet;
use serde_json::{Value as Json, json};

use crate::histories::acts;
use crate::working_set::{dialects, json_of, read, read_one, render, settings};

fn set_of(dialect: Dialect, budget: u64) -> WorkingSet<Box<str>> {
    WorkingSet::new(settings(dialect, budget, Policy::default())).unwrap()
}

/// What each part of the window keeps of its text; parts that are whole are not listed.
fn kept(set: &WorkingSet<Box<str>>) -> BTreeMap<u32, Vec<Span>> {
    let shown = set.plan().shown().iter();
    shown
        .flat_map(|shown| shown.edits.iter())
        .map(|edit| (edit.part, edit.kept.to_vec()))
        .collect()
}

proptest! {
    #[test]
    fn kept_lines_are_whole_and_only_fall(
        acts in acts(24), dialect in dialects(), budget in 150u64..1500,
    ) {
        let messages = json_of(dialect, &acts);
        let mut set = set_of(dialect, budget);
        let mut before = BTreeMap::new();
        for (index, message) in messages.iter().enumerate() {
            set.append(read_one(dialect, message, index)).unwrap();
            let now = kept(&set);
            for (part, spans) in &now {
                let content = &set.transcript().all_parts()[*part as usize];
                with_text(&content.body, |text| {
                    for span in spans {
                        let words = &text[span.start as usize..span.end as usize];
                        let begins = span.start == 0 || text[..span.start as usize].ends_with('\n');
                        let rest = &text[span.end as usize..];
                        let ends = rest.is_empty() || rest.starts_with('\n');
                        let line_start = text[..span.start as usize].rfind('\n').map_or(0, |at| at + 1);
                        let line_end = rest.find('\n').map_or(text.len(), |at| span.end as usize + at);
                        // Only a long line is taken apart.
                        assert!((begins && ends) || line_end - line_start > 100, "{words:?}");
                    }
                });
                if let Some(old) = before.get(part) {
                    let old: &Vec<Span> = old;
                    for span in spans {
                        prop_assert!(old.iter().any(|old| old.start <= span.start && span.end <= old.end));
                    }
                }
            }
            before = now;
        }
    }

    #[test]
    fn edits_show_what_they_keep(
        acts in acts(24), dialect in dialects(), budget in 150u64..1500,
    ) {
        let messages = json_of(dialect, &acts);
        let mut set = set_of(dialect, budget);
        set.append(read(dialect, &messages)).unwrap();
        for edit in set.plan().shown().iter().flat_map(|shown| shown.edits.iter()) {
            let content = &set.transcript().all_parts()[edit.part as usize];
            prop_assert!(edit.tokens < content.tokens);
            prop_assert!(content.kind != PartKind::Reasoning);
            if content.kind == PartKind::Call {
                let object: Json = serde_json::from_str(&edit.text).unwrap();
                prop_assert!(object["paged_out"].is_string() && edit.kept.is_empty());
                continue;
            }
            with_text(&content.body, |text| {
                for span in &edit.kept {
                    assert!(edit.text.contains(&text[span.start as usize..span.end as usize]));
                }
            });
            prop_assert_eq!(edit.text.matches(&edit.pointer.to_string()).count(), 1);
        }
    }
}

/// A call and its result.
fn look(number: usize, path: &str, result: &str) -> [Json; 2] {
    let id = format!("call_{number}");
    let arguments = json!({ "path": path }).to_string();
    [
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function",
            "function": {"name": "look", "arguments": arguments}}]}),
        json!({"role": "tool", "tool_call_id": id, "content": result}),
    ]
}

/// Lines of a log that nobody needs.
fn noise(from: usize, lines: usize) -> String {
    let line = |line| {
        format!(
            "{} ticks passed, all well and nothing to report\n",
            100_000 + line
        )
    };
    (from..from + lines).map(line).collect()
}

fn text_of(window: &[Json]) -> String {
    let texts = window.iter().map(|message| match &message["content"] {
        Json::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        content => content.as_str().unwrap_or_default().to_owned(),
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn only_the_newest_copy_is_kept() {
    let listing = |word: &str| {
        let mut text = format!("src/shop/order_store.rs holds orders, {word} look\n");
        text.push_str(&noise(0, 60));
        text
    };
    let mut messages = vec![json!({"role": "user", "content": "Mend the shop."})];
    messages.extend(look(1, "src/shop", &listing("first")));
    messages.extend(look(2, "src/shop", &listing("second")));
    for number in 3..9 {
        messages.extend(look(number, "log", &noise(number * 100, 20)));
    }
    let mut set = set_of(Dialect::OpenAi, 900);
    set.append(read(Dialect::OpenAi, &messages)).unwrap();
    assert!(set.window(false).unwrap().compactions > 0);
    let text = text_of(&render(&set, &messages));
    assert!(text.contains("src/shop/order_store.rs holds orders, second look\n"));
    assert!(!text.contains("first look"));
}

#[test]
fn standing_instructions_outlive_what_is_around_them() {
    let rule = "Never touch the billing table without asking me.";
    let mut messages = vec![
        json!({"role": "user", "content": "Mend the shop."}),
        json!({"role": "assistant", "content": "Where do I begin?"}),
        json!({"role": "user", "content": format!("Here is my log.\n{}{rule}\n{}", noise(0, 40), noise(50, 40))}),
    ];
    for number in 0..40 {
        messages.extend(look(number, "src/shop.rs", &noise(number * 100, 20)));
        if number % 10 == 9 {
            messages.push(json!({"role": "user", "content": "go on"}));
        }
    }
    let mut set = set_of(Dialect::OpenAi, 1500);
    set.append(read(Dialect::OpenAi, &messages)).unwrap();
    assert!(set.window(false).unwrap().compactions > 3);
    let window = render(&set, &messages);
    assert!(text_of(&window).lines().any(|line| line == rule));
    // A tool cannot pin what it says.
    let mut set = set_of(Dialect::OpenAi, 1500);
    messages[2]["content"] = json!("Here you are.");
    let told = look(
        99,
        "notes",
        &format!("{}{rule}\n{}", noise(0, 40), noise(50, 40)),
    );
    messages.splice(3..3, told);
    set.append(read(Dialect::OpenAi, &messages)).unwrap();
    set.window(false).unwrap();
    assert!(!text_of(&render(&set, &messages)).contains(rule));
}

#[test]
fn what_reads_like_a_rule_has_the_form_of_one() {
    use satchel_core::salience::line::{Standing, standing};
    for rule in [
        "Never touch deploy/keep.yaml without asking me.",
        "By the way: do not use the account ops_36 unless I say so.",
        "From now on write the tag QX-2291.",
        "And please always answer in French.",
        "절대 지우지 마세요",
    ] {
        assert_eq!(standing(rule), Standing::Rule, "{rule}");
    }
    for told in [
        "I don't have the number.",
        "I only fly on Mondays, they never answer.",
    ] {
        assert_eq!(standing(told), Standing::No, "{told}");
    }
    assert_eq!(standing("The file must be there by noon"), Standing::Hint);
    assert_eq!(standing("adonly nevertheless"), Standing::No);
}

#[test]
fn a_rule_too_short_for_a_marker_stays() {
    let rule = "Never touch prod.";
    let mut messages = vec![
        json!({"role": "user", "content": "Mend the shop."}),
        json!({"role": "assistant", "content": "Yes."}),
        json!({"role": "user", "content": rule}),
    ];
    for number in 0..40 {
        messages.extend(look(number, "src/shop.rs", &noise(number * 100, 20)));
    }
    messages.push(json!({"role": "user", "content": "go on"}));
    let mut set = set_of(Dialect::OpenAi, 1500);
    set.append(read(Dialect::OpenAi, &messages)).unwrap();
    assert!(set.window(false).unwrap().compactions > 0);
    assert!(text_of(&render(&set, &messages)).contains(rule));
}

/// A run without calls: the assistant acts in fenced text, the user's role answers.
fn acting(answers: &[String]) -> Vec<Json> {
    let mut messages = vec![json!({"role": "user", "content": "Mend the shop."})];
    for answer in answers {
        messages
            .push(json!({"role": "assistant", "content": "I look.\n```\ncat src/shop.rs\n```"}));
        messages.push(json!({"role": "user", "content": answer}));
    }
    messages
}

#[test]
fn an_answer_to_an_action_in_text_is_no_words_of_the_user() {
    let log = format!("it begins here\n{}it ends here", noise(0, 400));
    let messages = acting(&[noise(0, 3), log]);
    let mut set = set_of(Dialect::OpenAi, 900);
    set.append(read(Dialect::OpenAi, &messages)).unwrap();
    assert!(set.window(false).unwrap().tokens <= 900);
    assert_eq!(set.transcript().newest_user(), Some(0));
    let text = text_of(&render(&set, &messages));
    assert!(text.contains("it begins here\n") && text.contains("it ends here\n"));
    // What the user says besides is hard: behind an answer, or to words.
    let mut set = set_of(Dialect::OpenAi, 9000);
    let mut messages = acting(&[noise(0, 3)]);
    messages.push(json!({"role": "user", "content": "Hold on."}));
    messages.push(json!({"role": "assistant", "content": "As you like. What then?"}));
    set.append(read(Dialect::OpenAi, &messages)).unwrap();
    assert_eq!(set.transcript().newest_user(), Some(3));
    set.append(read_one(
        Dialect::OpenAi,
        &json!({"role": "user", "content": "Begin."}),
        5,
    ))
    .unwrap();
    assert_eq!(set.transcript().newest_user(), Some(5));
}

#[test]
fn the_note_says_less_where_the_largest_message_takes_nearly_all_there_is() {
    let mut messages = vec![json!({"role": "user", "content": "Read."})];
    messages.extend(look(1, "log", &noise(0, 30)));
    messages.push(json!({"role": "assistant", "content": "Done."}));
    messages.push(json!({"role": "user", "content": noise(100, 40)}));
    let hard = {
        let mut set = set_of(Dialect::OpenAi, 100_000);
        set.append(read(Dialect::OpenAi, &messages)).unwrap();
        let rows = set.transcript().rows();
        let message = |at: usize| u64::from(rows[at].tokens);
        set.settings().base_tokens() + message(0) + message(4)
    };
    let note = |spare: u64| {
        let mut set = set_of(Dialect::OpenAi, hard + spare);
        set.append(read(Dialect::OpenAi, &messages)).unwrap();
        let tokens = set.window(false).ok()?.tokens;
        assert!(tokens <= hard + spare);
        let text = text_of(&render(&set, &messages));
        assert!(text.contains(&set.settings().key.index_pointer().to_string()));
        Some(text.contains("Steps paged out"))
    };
    assert_eq!(note(100), Some(true));
    assert!((10..100).any(|spare| note(spare) == Some(false)));
    // The pointer is never left out: nothing else leads to what is gone.
    assert_eq!(note(0), None);
}

#[test]
fn the_gap_to_the_bound_is_told() {
    let mut messages = vec![json!({"role": "user", "content": "Mend the shop."})];
    for number in 0..40 {
        messages.extend(look(number, "src/shop.rs", &noise(number * 100, 20)));
    }
    let mut set = set_of(Dialect::OpenAi, 1500);
    set.append(read(Dialect::OpenAi, &messages)).unwrap();
    let (worth, bound) = set.window(false).unwrap().worth;
    assert!(0.0 < worth && worth <= bound);
}

#[test]
fn a_newest_result_without_room_shows_head_and_tail() {
    let mut messages = vec![json!({"role": "user", "content": "Read the log."})];
    let log = format!("it begins here\n{}it ends here", noise(0, 400));
    messages.extend(look(1, "log", &log));
    let mut set = set_of(Dialect::OpenAi, 900);
    set.append(read(Dialect::OpenAi, &messages)).unwrap();
    assert!(set.window(false).unwrap().tokens <= 900);
    let text = text_of(&render(&set, &messages));
    assert!(text.contains("it begins here\n") && text.contains("it ends here\n"));
    assert!(text.contains(" lines left out; page_in("));
}

/// A step of the `anthropic` dialect that thinks, calls and gets a result.
fn thinking_step(number: usize, thought: &str, path: &str, result: &str) -> [Json; 2] {
    let id = format!("call_{number}");
    [
        json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": thought, "signature": "c2ln"},
            {"type": "tool_use", "id": id, "name": "look", "input": {"path": path}}]}),
        json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": result}]}),
    ]
}

#[test]
fn lines_that_the_newest_messages_need_come_back() {
    let line = "alphaLedger lives in vault/alpha_ledger.rs";
    let mut messages =
        vec![json!({"role": "user", "content": [{"type": "text", "text": "Mend the shop."}]})];
    // Its step is dear, since its thought would have to stay with it.
    let thought = "I wonder what this is about. ".repeat(100);
    messages.extend(thinking_step(
        1,
        &thought,
        "vault/alpha_ledger.rs",
        &format!("{line}\n{}", noise(0, 5)),
    ));
    let mut set = set_of(Dialect::Anthropic, 1600);
    set.append(read(Dialect::Anthropic, &messages)).unwrap();
    // Up to a compaction after which it is not visible: then there is room again.
    let mut compactions = 0;
    for number in 2..60 {
        let figures = set.window(false).unwrap();
        let window = Json::from(render(&set, &messages)).to_string();
        if figures.compactions > compactions && !window.contains(line) {
            compactions = figures.compactions;
            break;
        }
        compactions = figures.compactions;
        let path = format!("src/part_{number}.rs");
        let result = format!("{path} is fine\n{}", noise(number * 100, 12));
        let step = thinking_step(number, "Go on.", &path, &result);
        set.append(read(Dialect::Anthropic, &step)).unwrap();
        messages.extend(step);
    }
    let window = Json::from(render(&set, &messages)).to_string();
    assert!(!window.contains(line));
    let id = "call_60";
    messages.push(json!({"role": "assistant", "content": [
        {"type": "text", "text": "Now the alpha ledger."},
        {"type": "tool_use", "id": id, "name": "look", "input": {"path": "."}}]}));
    messages.push(json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": id, "content": "no ledger of alpha here"}]}));
    set.append(read(Dialect::Anthropic, &messages[messages.len() - 2..]))
        .unwrap();
    let figures = set.window(false).unwrap();
    assert_eq!(
        figures.compactions, compactions,
        "the block must come without a compaction"
    );
    let window = render(&set, &messages);
    let result = window.last().unwrap().to_string();
    assert!(
        result.contains(line) && result.contains("<recalled"),
        "{result}"
    );
    assert!(set.window_plan().recalls()[0].is_automatic());
    // Asking again, folding on and a rebuild find the same.
    assert_eq!(set.window(false).unwrap(), figures);
    messages
        .push(json!({"role": "assistant", "content": [{"type": "text", "text": "There it is."}]}));
    set.append(read(Dialect::Anthropic, &messages[messages.len() - 1..]))
        .unwrap();
    let mut rebuilt = set_of(Dialect::Anthropic, 1600);
    rebuilt.append(read(Dialect::Anthropic, &messages)).unwrap();
    set.window(false).unwrap();
    rebuilt.window(false).unwrap();
    let window = render(&set, &messages);
    assert_eq!(window, render(&rebuilt, &messages));
    assert!(Json::from(window).to_string().contains(line));
}

/// A window in which most of `result` is left out, and what is left of it.
fn left_of(result: &str, needed: &str) -> String {
    let mut messages = vec![json!({"role": "user", "content": "Mend the shop."})];
    messages.extend(look(1, "src/shop", result));
    // What was used in an action stays likely.
    messages.extend(look(2, needed, "done"));
    messages.extend(look(3, "src/shop", result));
    for number in 4..12 {
        messages.extend(look(number, "log", &noise(number * 100, 20)));
    }
    let mut set = set_of(Dialect::OpenAi, 1200);
    let mut messages = messages.iter().enumerate();
    while set.plan().compactions() == 0 {
        let (index, message) = messages.next().unwrap();
        set.append(read_one(Dialect::OpenAi, message, index))
            .unwrap();
    }
    let edits = set.plan().shown().iter();
    let edits = edits.flat_map(|shown| shown.edits.iter());
    let mut texts = edits.filter(|edit| !edit.kept.is_empty() && edit.text.contains(needed));
    texts.next().expect("nothing is left").text.to_string()
}

#[test]
fn a_kept_line_brings_what_explains_it() {
    let hunk = |file: &str, line: &str| {
        let body = (0..40)
            .map(|at| format!(" some words, part {at} of them\n"))
            .collect::<Vec<_>>()
            .concat();
        format!(
            "diff --git a/{file} b/{file}\n--- a/{file}\n+++ b/{file}\n@@ -1,40 +1,41 @@ fn start\n{body}{line}\n"
        )
    };
    let diff = hunk("src/other.rs", "+plain words") + &hunk("src/pay.rs", "+use_ledger_44(now);");
    let text = left_of(&diff, "use_ledger_44");
    assert!(text.contains("+++ b/src/pay.rs\n") && text.contains("@@ -1,40 +1,41 @@ fn start\n"));

    let body = (0..60)
        .map(|at| format!("        step({at})\n"))
        .collect::<Vec<_>>()
        .concat();
    let code = format!(
        "import os\n\n\nclass Till:\n    def close(self):\n{body}        find_ledger_45(self)\n        return 1\n"
    );
    let text = left_of(&code, "find_ledger_45");
    assert!(
        text.contains("class Till:\n") && text.contains("    def close(self):\n"),
        "{text}"
    );

    let rows = (0..60)
        .map(|at| format!("| row {at} | all well |\n"))
        .collect::<Vec<_>>()
        .concat();
    let table = format!("| name | state |\n|---|---|\n{rows}| row 60 | held_ledger_46 |\n");
    let text = left_of(&table, "held_ledger_46");
    assert!(text.contains("| name | state |\n"), "{text}");

    let hits = (0..60)
        .map(|at| format!("{at}: nothing of note\n"))
        .collect::<Vec<_>>()
        .concat();
    let search = format!("src/a.rs\n{hits}\nsrc/till.rs\n{hits}812: call_ledger_47()\n");
    let text = left_of(&search, "call_ledger_47");
    assert!(text.contains("src/till.rs\n"), "{text}");

    let items: Vec<Json> = (0..60)
        .map(|at| json!({"state": "all well", "row": at}))
        .collect();
    let mut object = json!({"first": {"rows": items}, "second": {"owner": "cost_ledger_48"}});
    object["second"]["words"] = json!("all well ".repeat(40));
    let text = left_of(
        &serde_json::to_string_pretty(&object).unwrap(),
        "cost_ledger_48",
    );
    assert!(text.contains("  \"second\": {\n"), "{text}");
}

#[test]
fn what_is_left_of_a_line_of_json_is_json() {
    let items: Vec<Json> = (0..60)
        .map(|at| json!({"state": "all well and nothing to report, as on the day before", "row": at}))
        .collect();
    let object = json!({"rows": items, "owner": "pay_ledger_49", "words": "all well ".repeat(99)});
    let text = left_of(&object.to_string(), "pay_ledger_49");
    let left: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(left["owner"], json!("pay_ledger_49"));
    assert!(
        text.contains("left out") && text.contains("page p_"),
        "{text}"
    );
}

#[test]
fn every_gap_says_how_much() {
    let lines = |from| (from..from + 30).map(|at| format!("all well in part {at} of it\n"));
    let mut result: String = lines(0).collect();
    result.push_str("see use_ledger_50 there\n");
    result.extend(lines(30));
    let text = left_of(&result, "use_ledger_50");
    let markers: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("[… "))
        .collect();
    assert!(
        markers[0].contains(" lines left out; page_in(\"p_"),
        "{text}"
    );
    assert!(
        markers[1..]
            .iter()
            .all(|marker| marker.ends_with(" lines]")),
        "{text}"
    );
    let amount = |marker: &str| {
        marker[4..]
            .trim_start()
            .split(' ')
            .next()
            .unwrap()
            .parse::<usize>()
    };
    let all = amount(markers[0]).unwrap();
    let shown = text.lines().filter(|line| !line.starts_with("[… ")).count();
    assert_eq!(all + shown, 61);
}

/// The policy with rules for one tool.
fn with_rule(tool: &str, rule: &Json) -> Policy {
    serde_json::from_value(json!({"tools": {tool: rule}})).unwrap()
}

/// The window of a run that looks at a till again and again, with a rule for what it looks with.
fn ruled(rule: &Json, looks: usize) -> String {
    let line = |at: usize| format!("till_{at} lives in shop/till_{at}.rs\n");
    let result = format!("{}{}", (10..14).map(line).collect::<String>(), noise(0, 40));
    let mut messages = vec![json!({"role": "user", "content": "Mend the shop."})];
    for number in 0..looks {
        messages.extend(look(number, "shop", &result));
    }
    // Used in an action, they are likely needed.
    messages.extend(look(50, "shop/till_10.rs", "fine"));
    messages.extend(look(51, "shop/till_11.rs", "fine"));
    messages.extend(look(52, "shop", &result));
    for number in 60..66 {
        messages.push(json!({"role": "assistant", "content": noise(number * 100, 20)}));
        messages.push(json!({"role": "user", "content": "go on"}));
    }
    let policy = with_rule("look", rule);
    let mut set = WorkingSet::new(settings(Dialect::OpenAi, 1600, policy)).unwrap();
    set.append(read(Dialect::OpenAi, &messages)).unwrap();
    let figures = set.window(false).unwrap();
    assert!(figures.compactions > 0 && figures.tokens <= 1600);
    text_of(&render(&set, &messages))
}

#[test]
fn rules_for_tools_hold() {
    assert!(ruled(&json!({}), 1).contains("till_10 lives in shop/till_10.rs\n"));
    let kept = ruled(&json!({"protect": true}), 0);
    assert!(kept.contains(&noise(0, 40)), "{kept}");
    let kept = ruled(&json!({"exclude": true}), 1);
    assert!(!kept.contains("till_10 lives in"), "{kept}");
    let kept = ruled(&json!({"max_tokens": 10}), 1);
    let lines = kept
        .lines()
        .filter(|line| line.contains(" lives in "))
        .count();
    assert!(lines <= 1, "{kept}");
    // Of calls with an equal argument the newest counts.
    let kept = ruled(&json!({"supersede_key": "path", "protect": true}), 3);
    assert_eq!(kept.matches(&noise(0, 40)).count(), 1, "{kept}");
}

#[test]
fn a_stub_says_what_it_was() {
    let clearing = json!({"trigger": {"type": "tool_uses", "value": 1}, "keep": 1});
    let policy = json!({"strategy": "clear-tool-uses", "clearing": clearing});
    let policy = serde_json::from_value(policy).unwrap();
    let mut messages = vec![json!({"role": "user", "content": "Mend the shop."})];
    messages.extend(look(1, "src/till.rs", &noise(0, 60)));
    messages.extend(look(2, "log", &noise(100, 60)));
    let mut set = WorkingSet::new(settings(Dialect::OpenAi, 9000, policy)).unwrap();
    set.append(read(Dialect::OpenAi, &messages)).unwrap();
    set.window(false).unwrap();
    let window = render(&set, &messages);
    let stub = window[2]["content"].as_str().unwrap();
    assert!(
        stub.starts_with("[… look src/till.rs: 100000 ticks passed"),
        "{stub}"
    );
    assert!(stub.contains("; 60 lines left out; page_in(\"p_"), "{stub}");
    assert_eq!(stub.lines().count(), 1);
    assert_eq!(window[4], messages[4]);
}

#[test]
fn a_page_that_is_read_again_and_again_stays_readable_and_once() {
    let page = format!("vault_ledger_7 is in vault/ledger_7.rs\n{}", noise(0, 12));
    let mut messages = vec![json!({"role": "user", "content": "Mend the shop."})];
    for number in 0..20 {
        messages.extend(look(number, "log", &noise(number * 100, 12)));
    }
    let mut set = set_of(Dialect::OpenAi, 1500);
    set.append(read(Dialect::OpenAi, &messages)).unwrap();
    for round in 0..30usize {
        let id = format!("page_{round}");
        let arguments = json!({"pointer": "p_123456789012345678"}).to_string();
        let call = json!({"role": "assistant", "content": null, "tool_calls": [{"id": id,
            "type": "function", "function": {"name": "page_in", "arguments": arguments}}]});
        let result = json!({"role": "tool", "tool_call_id": id, "content": page});
        for message in [call, result] {
            set.append(read_one(Dialect::OpenAi, &message, messages.len()))
                .unwrap();
            messages.push(message);
        }
        let figures = set.window(false).unwrap();
        assert!(figures.tokens <= 1500);
        let text = text_of(&render(&set, &messages));
        // The newest reading is whole: nobody has to ask for it again.
        assert!(text.contains(&page), "round {round}: {text}");
    }
    assert!(set.plan().compactions() > 2);
    // Between compactions windows only grow; each compaction keeps nothing of what was read before.
    let edits = set
        .plan()
        .shown()
        .iter()
        .flat_map(|shown| shown.edits.iter());
    let old = edits.filter(|edit| edit.text.contains("vault_ledger_7 is in"));
    assert_eq!(old.count(), 0);
}

/// A call and its long result as the newest step, under a policy that drops whole steps.
fn plain_window(
    strategy: Strategy,
    result: &str,
    budget: u64,
) -> (WorkingSet<Box<str>>, Vec<Json>) {
    let policy = Policy {
        strategy,
        max_messages: (strategy == Strategy::SlidingWindow).then_some(100),
        ..Policy::default()
    };
    let call = json!({"id": "c", "type": "function",
        "function": {"name": "read_file", "arguments": "{\"path\": \"src/main.rs\"}"}});
    let messages = vec![
        json!({"role": "user", "content": "Fix it."}),
        json!({"role": "assistant", "content": "An older reply."}),
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "c", "content": result}),
    ];
    let mut set = WorkingSet::new(settings(Dialect::OpenAi, budget, policy)).unwrap();
    set.append(read(Dialect::OpenAi, &messages)).unwrap();
    let figures = set.window(false).unwrap();
    assert!(figures.tokens <= budget);
    let window = render(&set, &messages);
    (set, window)
}

#[test]
fn what_policies_without_ranks_cannot_drop_keeps_its_head_and_tail() {
    let lines: Vec<String> = (0..400)
        .map(|line| format!("line_{line} of value_{line}"))
        .collect();
    for strategy in [Strategy::TokenWindow, Strategy::SlidingWindow] {
        let (_, window) = plain_window(strategy, &lines.join("\n"), 600);
        let result = window.last().unwrap()["content"].as_str().unwrap();
        let kept: Vec<&str> = result
            .lines()
            .filter(|line| line.starts_with("line_"))
            .collect();
        assert!(kept.len() > 8, "{result}");
        assert_eq!(
            (kept.first(), kept.last()),
            (Some(&&*lines[0]), Some(&&*lines[399]))
        );
        let calls = &window[window.len() - 2]["tool_calls"][0]["function"]["arguments"];
        assert_eq!(calls, "{\"path\": \"src/main.rs\"}");
    }
}

#[test]
fn one_json_line_stays_json_without_ranks() {
    let rows: Vec<Json> = (0..200)
        .map(|row| json!({"id": row, "state": "open"}))
        .collect();
    let (_, window) = plain_window(
        Strategy::TokenWindow,
        &json!({ "rows": rows }).to_string(),
        500,
    );
    let result = window.last().unwrap()["content"].as_str().unwrap();
    let shown: Json = serde_json::from_str(result).unwrap();
    assert!(shown["rows"].as_array().unwrap().len() > 2);
}

#[test]
fn even_a_tiny_budget_is_kept_without_ranks() {
    let long = "words without end ".repeat(2_000);
    for budget in [150, 300, 1_000] {
        plain_window(Strategy::TokenWindow, &long, budget);
    }
}

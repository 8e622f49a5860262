//! Counters of models: factors, calls, reasoning, and the caller's own ranks.

use indexmap::IndexMap;
use proptest::prelude::*;
use satchel_core::dialect::{Dialect, read_message};
use satchel_core::tokens::chat::{ChatRules, count_message_parts};
use satchel_core::tokens::tools::ToolRules;
use satchel_core::tokens::{Counter, Factors, Keep, ModelRules};
use satchel_core::{ErrorKind, shrink};
use serde_json::{Value, json};

pub fn claude() -> Value {
    json!({
        "name": "claude-test",
        "chat": {"per_message": 3, "per_role": 1, "per_name": 1, "per_request": 7, "exact": false},
        "calls": {"per_call": 45, "per_argument": 18, "names": 1, "raw": true},
        "tools": {"style": "json", "per_function": 0, "per_properties": 0, "per_property": 0,
                  "per_enum": 0, "per_enum_item": 0, "per_request": 290},
        "images": {"kind": "grid", "side": 28, "max_side": 1568, "max_tokens": 1568},
        "media": {"audio_second": 32, "document": 3000},
        "reasoning": {"signature_fixed": 230, "signature_chars": 5},
        "factors": {"prose": 1.18, "code": 1.30, "json": 1.25, "cjk": 1.6},
    })
}

fn counter(rules: &Value) -> Counter {
    let rules = ModelRules::from_json(&rules.to_string()).unwrap();
    Counter::named("o200k_base").unwrap().with_rules(rules)
}

fn o200k(text: &str) -> u32 {
    Counter::named("o200k_base").unwrap().count(text).unwrap()
}

fn part_tokens(counter: &Counter, dialect: Dialect, json: &Value) -> u32 {
    let mut messages = [read_message(dialect, &json, 0).unwrap()];
    count_message_parts(&mut messages, counter).unwrap();
    messages[0].parts.iter().map(|part| part.tokens).sum()
}

#[test]
fn rules_are_read_and_written_alike() {
    let read = ModelRules::from_json(&claude().to_string()).unwrap();
    let again = ModelRules::from_json(&read.to_json()).unwrap();
    assert_eq!(read, again);
    let mut patches = claude();
    patches["images"] = json!({"kind": "patches", "budget": 2500, "max_side": 2048,
        "original": [10000, 6000], "auto_original": true, "multiplier": 1.62});
    let read = ModelRules::from_json(&patches.to_string()).unwrap();
    assert_eq!(read, ModelRules::from_json(&read.to_json()).unwrap());
}

#[test]
fn wrong_rules_are_refused() {
    for (path, value) in [
        ("/factors/prose", json!(0)),
        ("/factors/cjk", json!(-1.0)),
        ("/images/side", json!(0)),
        ("/images/kind", json!("dots")),
        ("/chat", json!({})),
        ("/tools/style", json!("poem")),
        ("/calls/per_call", json!("5")),
    ] {
        let mut rules = claude();
        *rules.pointer_mut(path).unwrap() = value;
        let error = ModelRules::from_json(&rules.to_string()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidValue, "{path}");
    }
    assert!(ModelRules::from_json("no json").is_err());
}

#[test]
fn a_model_s_counter_goes_by_its_name_and_rules() {
    let counter = counter(&claude());
    assert_eq!(
        (counter.name(), counter.encoding()),
        ("claude-test", "o200k_base")
    );
    assert!(!counter.exact());
    assert_eq!(
        ChatRules::for_counter(Dialect::Anthropic, &counter).per_request,
        7
    );
    assert_eq!(
        ToolRules::for_counter(Dialect::OpenAi, &counter).per_request,
        290
    );
    let plain = Counter::named("o200k_base").unwrap();
    assert_eq!(
        ChatRules::for_counter(Dialect::OpenAi, &plain),
        ChatRules::of(Dialect::OpenAi)
    );
}

#[test]
fn factors_by_what_a_text_consists_of() {
    let factors = Factors {
        prose: 1.0,
        code: 2.0,
        json: 3.0,
        cjk: 4.0,
    };
    let prose = "The committee met twice in the spring, and both times it put off the decision";
    let code = "fn main() { let x = a[0] + b[1]; if x > 3 { println(x); } else { f(&x, y); } }";
    let text = json!({"id": "a1", "name": "Ada", "tags": ["x", "y"], "city": "Bonn"}).to_string();
    let korean = "위원회는 봄에 두 번 모였지만 두 번 다 결정을 미루었다";
    let near = |text: &str, expected: f64, slack: f64| {
        let found = factors.of(text);
        assert!((found - expected).abs() <= slack, "{found} for {text}");
    };
    near(prose, 1.0, 0.01);
    near(code, 2.0, 0.05);
    near(&text, 3.0, 0.05);
    near(korean, 4.0, 0.5);
    near("", 1.0, 0.0);
    // A little more text of another kind moves the factor a little.
    let mixed = format!("{prose} {prose} {code}");
    assert!((1.0..2.0).contains(&factors.of(&mixed)));
}

#[test]
fn counts_are_scaled_the_same_everywhere() {
    let counter = counter(&claude());
    let texts = ["plain words here", "{\"a\": [1, 2]}", "안녕하세요", "", "x"];
    let many = counter.count_many(&texts).unwrap();
    assert_eq!(many, counter.count_many_parallel(&texts).unwrap());
    for (text, tokens) in texts.iter().zip(many) {
        assert_eq!(counter.count(text).unwrap(), tokens);
        let factors = counter.rules().unwrap().factors.unwrap();
        let expected = (f64::from(o200k(text)) * factors.of(text)).round() as u32;
        assert_eq!(tokens, expected);
    }
}

#[test]
fn arguments_are_plain_text_one_by_one() {
    let counter = counter(&claude());
    let source = "fn main() {\n\tprintln!(\"hi\");\n}\n".repeat(20);
    let input = json!({"path": "src/main.rs", "content": source, "lines": [1, 2]});
    let block = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "c", "name": "write", "input": input}]});
    let count = |text: &str| counter.count(text).unwrap();
    let texts = [
        "write",
        "path",
        "src/main.rs",
        "content",
        &source,
        "lines",
        "[1,2]",
    ];
    let expected = 45 + 3 * 18 + texts.iter().map(|text| count(text)).sum::<u32>();
    assert_eq!(part_tokens(&counter, Dialect::Anthropic, &block), expected);
    // The same call in the other dialect, where the arguments are JSON in a string.
    let call = json!({"role": "assistant", "tool_calls": [{"id": "c", "type": "function",
        "function": {"name": "write", "arguments": input.to_string()}}]});
    assert_eq!(part_tokens(&counter, Dialect::OpenAi, &call), expected);
    let cut_off = json!({"role": "assistant", "tool_calls": [{"id": "c", "type": "function",
        "function": {"name": "write", "arguments": "{\"path\": \"sr"}}]});
    let expected = 45 + count("write") + count("{\"path\": \"sr");
    assert_eq!(part_tokens(&counter, Dialect::OpenAi, &cut_off), expected);
}

#[test]
fn replaced_arguments_cost_what_the_rendered_call_costs() {
    let counter = counter(&claude());
    let call = |input: &Value| {
        json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": "c", "name": "write", "input": input}]})
    };
    let before = call(&json!({"path": "a", "content": "words ".repeat(200)}));
    let mut messages = [read_message(Dialect::Anthropic, &&before, 0).unwrap()];
    count_message_parts(&mut messages, &counter).unwrap();
    let text = json!({"paged_out": "p-1", "tokens": 5});
    let edited = shrink::edited_tokens(&messages[0].parts[0], &text.to_string(), &counter).unwrap();
    assert_eq!(
        edited,
        part_tokens(&counter, Dialect::Anthropic, &call(&text))
    );
}

#[test]
fn signed_reasoning_costs_what_its_signature_carries() {
    let counter = counter(&claude());
    let block = |thinking: &str, signature: usize| {
        json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": thinking, "signature": "A".repeat(signature)}]})
    };
    let tokens = |thinking: &str, signature| {
        part_tokens(&counter, Dialect::Anthropic, &block(thinking, signature))
    };
    assert_eq!(tokens("", 2_230), 400);
    assert_eq!(tokens("a summary", 2_230), 400);
    // A signature that is too short to carry the text: the text counts.
    let long = "many words were thought ".repeat(40);
    assert_eq!(tokens(&long, 300), counter.count(&long).unwrap());
}

#[test]
fn a_factor_changes_no_promise_of_truncation() {
    let counter = counter(&claude());
    let text = "one two three 안녕 { \"k\": 1 }\n".repeat(50);
    for max in [0, 1, 7, 50, 400] {
        for keep in [Keep::Head, Keep::Tail, Keep::Both] {
            let cut = counter.truncate(&text, max, keep).unwrap();
            assert!(counter.count(&cut).unwrap() <= max, "{max} {keep:?}");
        }
    }
    let tokens = counter.count(&text).unwrap();
    assert!(counter.fits(&text, tokens).unwrap());
    assert!(!counter.fits(&text, tokens - 1).unwrap());
}

const CL100K: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s";

/// Every byte, and the merges given.
fn ranks(merges: &[&str]) -> IndexMap<Box<[u8]>, u32> {
    let bytes = (0..=u8::MAX).map(|byte| Box::from([byte]));
    let merges = merges.iter().map(|merge| Box::from(merge.as_bytes()));
    bytes.chain(merges).zip(0..).collect()
}

#[test]
fn own_ranks_merge_the_lowest_first() {
    let merges = ["ab", "bc", "abc", "cd", "abcd", " a"];
    let counter = Counter::of_ranks("tiny", CL100K, ranks(&merges))
        .unwrap()
        .unwrap();
    assert!(counter.exact());
    let mut ids = Vec::new();
    let encoder = counter.encoder().unwrap();
    encoder.encode("abcd abcab", &mut ids);
    let tokens: Vec<&[u8]> = ids.iter().map(|&id| encoder.token(id).unwrap()).collect();
    assert_eq!(tokens, [b"abcd".as_slice(), b" ", b"abc", b"ab"]);
    assert_eq!(counter.count("abcd abcab").unwrap(), 4);
    assert_eq!(encoder.count_up_to("abcd abcab", 3), None);
    assert_eq!(
        counter.truncate("abcd abcab", 2, Keep::Head).unwrap(),
        "abcd "
    );
}

#[test]
fn ranks_that_cannot_encode_everything_are_refused() {
    let mut holes = ranks(&[]);
    holes.shift_remove([7].as_slice());
    let mut twice = ranks(&["ab"]);
    twice.insert(Box::from(b"cd".as_slice()), 256);
    for ranks in [holes, twice] {
        let error = Counter::of_ranks("bad", CL100K, ranks).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidValue);
    }
    assert!(
        Counter::of_ranks("other", r"\w+", ranks(&[]))
            .unwrap()
            .is_none()
    );
}

proptest! {
    #[test]
    fn merging_own_ranks_equals_the_obvious_way(
        text in "[abc]{0,30}",
        merges in prop::collection::btree_set("[abc]{2,4}", 0..12),
    ) {
        let mut merges: Vec<&str> = merges.iter().map(String::as_str).collect();
        merges.sort_by_key(|merge| (merge.len(), merge.chars().rev().collect::<String>()));
        let table = ranks(&merges);
        let counter = Counter::of_ranks("tiny", CL100K, table.clone()).unwrap().unwrap();
        let mut found = Vec::new();
        counter.encoder().unwrap().encode(&text, &mut found);
        let mut parts: Vec<Vec<u8>> = text.bytes().map(|byte| vec![byte]).collect();
        if let Some(&id) = table.get(text.as_bytes()) {
            prop_assert_eq!(found, vec![id]);
            return Ok(());
        }
        while let Some((_, at)) = (0..parts.len().saturating_sub(1))
            .filter_map(|at| Some((*table.get([&parts[at][..], &parts[at + 1]].concat().as_slice())?, at)))
            .min()
        {
            let right = parts.remove(at + 1);
            parts[at].extend(right);
        }
        let expected: Vec<u32> = parts.iter().map(|part| table[part.as_slice()]).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn any_text_has_a_factor_between_the_least_and_the_most(text in ".{0,80}") {
        let factors = Factors { prose: 1.1, code: 1.5, json: 1.3, cjk: 0.9 };
        prop_assert!((0.9 - 1e-9..=1.5 + 1e-9).contains(&factors.of(&text)));
        prop_assert!((Factors::flat(1.25).of(&text) - 1.25).abs() < 1e-9);
    }
}

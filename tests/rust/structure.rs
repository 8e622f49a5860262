//! Units and renderings of any text, against a slow reading of what a rendering says.

use proptest::prelude::*;
use proptest::sample::select;
use satchel_core::prune::structure::{
    Structure, Stub, Unit, boost_matching, detect, outline, render, trim, units,
};
use serde_json::Value;

use crate::structure_samples::SAMPLES;

/// Lines of every kind, so that structures meet in one text.
const LINES: [&str; 34] = [
    "",
    "",
    "  ",
    "\r",
    "}",
    "plain words that say nothing much",
    "ERROR 디스크가 가득 찼습니다",
    "GET /api/items/17 200 12ms",
    "GET /api/items/18 200 9ms",
    "3 failed, 4 passed",
    "diff --git a/x.py b/x.py",
    "--- a/x.py",
    "+++ b/x.py",
    "@@ -1,2 +1,3 @@",
    "+added 줄",
    "-removed",
    " same",
    "Traceback (most recent call last):",
    "  File \"/srv/app.py\", line 3, in main",
    "    main()",
    "ValueError: 값이 없다",
    "\tat shop.Cart.close(Cart.java:77)",
    "src/cart.py:12:def total(cart):",
    "src/cart.py-13-  x",
    "/srv/shop/src/cart.py",
    "| a | b |",
    "|---|---|",
    "| 1 | 2 |",
    "def total(cart):",
    "    return 합계",
    "class Cart {",
    "{\"type\":\"tick\",\"at\":1}",
    "# 제목",
    "x,1,2",
];

fn texts() -> impl Strategy<Value = String> {
    let lines = prop::collection::vec(select(LINES.to_vec()), 0..60);
    let joined = (lines, any::<bool>()).prop_map(|(lines, ends)| {
        let mut text = lines.join("\n");
        if ends {
            text.push('\n');
        }
        text
    });
    let samples = select(SAMPLES.map(|(_, text)| text.to_owned()).to_vec());
    prop_oneof![4 => joined, 2 => samples, 1 => any::<String>(), 2 => json().prop_map(|value| value.to_string())]
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z 가-힣\"\\\\\n…]{0,40}".prop_map(Value::from),
        "([a-z]{0,30}\n){5,30}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 120, 12, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..12).prop_map(Value::from),
            prop::collection::vec(("[a-z…]{0,6}", inner), 0..12)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn picks(units: &[Unit], seed: u64, share: u64) -> Vec<u32> {
    let mut state = seed | 1;
    (0..units.len() as u32)
        .filter(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % 100 < share
        })
        .collect()
}

/// The kept ones and all that they need, found the slow way.
fn closed(units: &[Unit], kept: &[u32]) -> Vec<bool> {
    (0..units.len())
        .map(|index| {
            kept.iter().any(|kept| {
                let mut at = Some(*kept);
                while let Some(here) = at {
                    if here as usize == index {
                        return true;
                    }
                    at = units[here as usize].parent;
                }
                false
            })
        })
        .collect()
}

/// Reads a rendering of lines back: each kept line as it was, each gap as it was or as one marker
/// with its true number. Returns whether anything was left out.
fn read_lines(
    text: &str,
    structure: Structure,
    units: &[Unit],
    keep: &[bool],
    short: &str,
) -> bool {
    let mut rest = short;
    let mut at = 0;
    let mut markers = 0;
    while at < units.len() {
        let first = at;
        while at < units.len() && keep[at] == keep[first] {
            at += 1;
        }
        let span = &text[units[first].start as usize..units[at - 1].end as usize];
        if let Some(after) = rest.strip_prefix(span) {
            rest = after;
            continue;
        }
        assert!(
            !keep[first],
            "kept lines are not there: {span:?} in {rest:?}"
        );
        let marker = rest.split_inclusive('\n').next().unwrap();
        let count = at - first;
        let noun = match (structure, count) {
            (Structure::Listing, 1) => "entry",
            (Structure::Listing, _) => "entries",
            (Structure::Table, 1) => "row",
            (Structure::Table, _) => "rows",
            (_, 1) => "line",
            _ => "lines",
        };
        // Only the first marker says what it is.
        let said = if markers == 0 { " left out" } else { "" };
        let range = if count == 1 {
            format!("({at})")
        } else {
            format!("({}-{at})", first + 1)
        };
        assert!(
            marker.contains(&format!("… {count} {noun}{said} {range}"))
                || marker.contains(&format!("\"…\":\"{count} {noun}{said} {range}")),
            "{marker:?} stands for {count} {noun} {range}"
        );
        assert!(marker.len() < span.len());
        assert_eq!(marker.ends_with('\n'), span.ends_with('\n'));
        assert_eq!(marker.contains("p_42"), markers == 0);
        markers += 1;
        rest = &rest[marker.len()..];
    }
    assert_eq!(rest, "");
    markers > 0
}

/// Compares JSON with its rendering: what is there is equal, what is not is told with its number.
fn read_json(whole: &Value, short: &Value) {
    match (whole, short) {
        (Value::Array(whole), Value::Array(short)) => {
            let mut at = 0;
            for item in short {
                let marker = item.as_str().and_then(|text| text.strip_prefix("… "));
                let told = marker.and_then(|text| {
                    let (count, rest) = text.split_once(" of ")?;
                    let all = rest.split(' ').next()?;
                    (all.parse() == Ok(whole.len())).then(|| count.parse::<usize>().ok())?
                });
                if let Some(count) = told.filter(|_| whole.get(at) != Some(item)) {
                    at += count;
                } else {
                    read_json(&whole[at], item);
                    at += 1;
                }
            }
            assert_eq!(at, whole.len());
        }
        (Value::Object(whole), Value::Object(short)) => {
            let mut missing = whole.len();
            let mut is_told = false;
            for (key, value) in short {
                if let Some(original) = whole.get(key) {
                    read_json(original, value);
                    missing -= 1;
                } else {
                    assert!(key.starts_with('…'));
                    assert!(value.as_str().unwrap().starts_with("left out: "));
                    is_told = true;
                }
            }
            assert_eq!(is_told, missing > 0);
        }
        (Value::String(whole), Value::String(short)) if whole != short => {
            let mut lines = whole.split_inclusive('\n');
            for line in short.split_inclusive('\n') {
                if line.starts_with("[… ") && line.contains(" left out") {
                    let count: usize = line[5..].split(' ').next().unwrap().parse().unwrap();
                    for _ in 0..count {
                        lines.next().unwrap();
                    }
                } else {
                    assert_eq!(lines.next(), Some(line));
                }
            }
            assert_eq!(lines.next(), None);
        }
        (whole, short) => assert_eq!(whole, short),
    }
}

fn check_units(text: &str, structure: Structure, units: &[Unit]) {
    let mut end = 0;
    let is_json = structure == Structure::Json && serde_json::from_str::<Value>(text).is_ok();
    for (index, unit) in units.iter().enumerate() {
        assert!(unit.start < unit.end);
        let between = &text[end..unit.start as usize];
        assert!(is_json || between.is_empty());
        assert!(
            between.chars().all(|c| " \n\r\t,:]}\"".contains(c)),
            "{between:?}"
        );
        end = unit.end as usize;
        assert!((0.0..=1.0).contains(&unit.weight));
        assert!((unit.group as usize) < units.len());
        assert!(unit.parent.is_none_or(|parent| (parent as usize) < index));
    }
    assert!(is_json || end == text.len());
}

fn check(text: &str, structure: Structure, seed: u64, share: u64) {
    let units = units(text, structure);
    check_units(text, structure, &units);
    assert_eq!(
        units,
        satchel_core::prune::structure::units(text, structure)
    );
    let all: Vec<u32> = (0..units.len() as u32).collect();
    assert_eq!(render(text, structure, &units, &all, "p_42"), text);
    let budget = text.len() * share as usize / 100;
    for kept in [
        picks(&units, seed, share),
        outline(text, structure, &units, budget),
    ] {
        let keep = closed(&units, &kept);
        let short = render(text, structure, &units, &kept, "p_42");
        assert_eq!(short, render(text, structure, &units, &kept, "p_42"));
        assert!(short.len() <= text.len());
        let mut rest = short.as_str();
        for unit in units.iter().zip(&keep).filter(|(_, keep)| **keep) {
            let piece = unit.0.text(text);
            let at = rest.find(piece);
            assert!(at.is_some(), "{piece:?} is not in {rest:?}");
            rest = &rest[at.unwrap_or(0) + piece.len()..];
        }
        match serde_json::from_str::<Value>(text) {
            Ok(whole) if structure == Structure::Json && units.len() > 1 => {
                read_json(&whole, &serde_json::from_str(&short).unwrap());
                assert_eq!(short.contains("p_42"), short.len() < text.len());
            }
            _ => {
                let is_cut = read_lines(text, structure, &units, &keep, &short);
                assert_eq!(is_cut, short != text);
            }
        }
    }
    let stub = Stub {
        what: "tool",
        names: None,
        amount: "all of it left out",
        pointer: "p_42",
        max_chars: 200,
    };
    let line = stub.line(text);
    assert_eq!(line.lines().count(), 1);
    assert!(
        line.ends_with("; page_in(\"p_42\")]") && line.chars().count() <= 210,
        "{line}"
    );
}

proptest! {
    #[test]
    fn a_rendering_says_what_it_is(text in texts(), seed: u64, share in 0u64..100) {
        check(&text, detect(&text), seed, share);
    }

    #[test]
    fn any_text_can_be_read_as_anything(
        text in texts(), structure in select(Structure::ALL.to_vec()), seed: u64, share in 0u64..100
    ) {
        check(&text, structure, seed, share);
    }

    #[test]
    fn laid_out_json_is_json_too(value in json(), seed: u64, share in 0u64..100) {
        let text = serde_json::to_string_pretty(&value).unwrap();
        let is_container = value.is_object() || value.is_array();
        prop_assert!(!is_container || detect(&text) == Structure::Json);
        check(&text, Structure::Json, seed, share);
    }

    #[test]
    fn only_json_is_json(text in "[\\[\\]{},:\"0-9.eE+\\- tn\\\\u]{0,14}|(true|null|[\\[\\]{},:\"1 ]){0,12}") {
        let is_container = text.trim_start().starts_with(['{', '[']);
        let read = serde_json::from_str::<Value>(&text);
        if is_container {
            prop_assert_eq!(detect(&text) == Structure::Json, read.is_ok(), "{}", text);
        }
    }

    #[test]
    fn a_trimmed_text_fits(text in texts(), limit in 0usize..300, literal in "[a-z ]{0,4}") {
        let fits = |text: &str| Ok(text.chars().count() <= limit);
        let trimmed = trim(&text, limit * 4, &[&literal], "p_42", &fits).unwrap();
        prop_assert!(trimmed.text.chars().count() <= limit);
        prop_assert_eq!(trimmed.left_out_lines == 0 && text.chars().count() <= limit, trimmed.text == text);
        if text.chars().count() <= limit {
            prop_assert_eq!(trimmed.left_out_lines, 0);
        }
    }

    #[test]
    fn foreign_units_do_no_harm(
        text in texts(),
        structure in select(Structure::ALL.to_vec()),
        foreign in prop::collection::vec((0u32..200, 0u32..200, prop::option::of(0u32..40), 0u32..200), 0..40),
        kept in prop::collection::vec(0u32..60, 0..20),
    ) {
        let mut units: Vec<Unit> = foreign
            .into_iter()
            .map(|(start, end, parent, group)| Unit { start, end, weight: f32::NAN, parent, group })
            .collect();
        boost_matching(&text, structure, &mut units, &["a"]);
        render(&text, structure, &units, &kept, "p");
        outline(&text, structure, &units, 100);
    }
}

#[test]
fn hostile_texts_cost_no_more_than_others() {
    let mega = 1 << 20;
    let deep = format!("{}1{}", "{\"a\":[".repeat(60), "]}".repeat(60));
    let mut steps = String::new();
    for at in 0..1400 {
        steps.push_str(&" ".repeat(at));
        steps.push_str("def f():\n");
    }
    let rows = vec!["[[[[]]]]"; 50_000].join(",");
    for (text, most_units) in [
        ("[".repeat(mega), 1),
        ("{".repeat(mega), 1),
        ("{\"a\":".repeat(mega / 5), 1),
        ("\"".repeat(mega), 1),
        ("'".repeat(mega), 1),
        ("x".repeat(900 * 1024), 1),
        ("\n".repeat(500_000), 500_000),
        (format!("[{}1]", "1,".repeat(mega / 2)), mega / 2 + 2),
        (format!("[\"{}\"]", "\\n".repeat(mega / 2)), mega / 2 + 2),
        (format!("[{rows}]"), 50_001),
        (deep, 40),
        (" at x(\n".repeat(150_000), 150_000),
        ("  File \"x\", line 1\n".repeat(50_000), 50_000),
        ("@@ -1 +1 @@\n+a\n".repeat(70_000), 140_000),
        ("error ".repeat(170_000), 1),
        (steps, 1400),
    ] {
        let structure = detect(&text);
        let units = units(&text, structure);
        assert!(units.len() <= most_units, "{}", units.len());
        let every_other: Vec<u32> = (0..units.len() as u32).step_by(2).collect();
        let outlined = outline(&text, structure, &units, text.len() / 4);
        for kept in [every_other, outlined] {
            let short = render(&text, structure, &units, &kept, "p_42");
            assert!(short.len() <= text.len());
            if structure == Structure::Json && units.len() > 1 {
                serde_json::from_str::<Value>(&short).unwrap();
            }
        }
    }
}

#[test]
fn a_single_long_line_keeps_both_ends() {
    let text = format!("start {} end", "가나다 ".repeat(9000));
    let fits = |text: &str| Ok(text.chars().count() <= 200);
    let trimmed = trim(&text, 800, &[], "p_42", &fits).unwrap();
    assert!(trimmed.text.starts_with("start "));
    assert!(trimmed.text.ends_with(" end"));
    assert!(
        trimmed
            .text
            .contains("characters left out; page_in(\"p_42\")")
    );
    let fits = |text: &str| Ok(text.chars().count() <= 7);
    assert_eq!(
        trim(&text, 28, &[], "p_42", &fits).unwrap().text,
        "start 가"
    );
}

#[test]
fn a_lone_json_value_stays_json() {
    let structure = Structure::Json;
    for text in [
        format!("\"{}E\"", "\u{fffd}".repeat(43)),
        format!("\"{}\"", "x y ".repeat(900)),
        "24".repeat(48) + "\n",
        format!(" -0.{}", "7".repeat(300)),
    ] {
        let units = units(&text, structure);
        let all = 0..units.len() as u32;
        for kept in [
            vec![],
            all.clone().filter(|at| at % 2 == 0).collect(),
            all.clone().collect(),
        ] {
            let short = render(&text, structure, &units, &kept, "p_1");
            assert!(
                serde_json::from_str::<serde_json::Value>(&short).is_ok(),
                "{short}"
            );
        }
        for share in 0..=255 {
            let kept = outline(&text, structure, &units, text.len() * share / 255);
            let short = render(&text, structure, &units, &kept, "p_1");
            assert!(
                serde_json::from_str::<serde_json::Value>(&short).is_ok(),
                "{share} {short}"
            );
        }
    }
}

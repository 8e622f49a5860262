//! `Counter`: limits, cuts, many texts, and counters of the caller's own.

use std::sync::Arc;

use proptest::prelude::*;
use satchel_core::error::{Error, ErrorKind, Result};
use satchel_core::tokens::{CountTexts, Counter, Keep};

/// Counts bytes; fails on an exclamation mark.
#[derive(Debug)]
struct Bytes;

impl CountTexts for Bytes {
    fn count_texts(&self, texts: &[&str]) -> Result<Vec<u32>> {
        let count = |text: &&str| {
            if text.contains('!') {
                Err(Error::new(ErrorKind::CounterFailed, "no shouting"))
            } else {
                Ok(text.len() as u32)
            }
        };
        texts.iter().map(count).collect()
    }
}

/// Forgets the last text.
#[derive(Debug)]
struct Short;

impl CountTexts for Short {
    fn count_texts(&self, texts: &[&str]) -> Result<Vec<u32>> {
        Ok(vec![1; texts.len() - 1])
    }
}

const NAMES: [&str; 6] = [
    "o200k_base",
    "o200k_harmony",
    "cl100k_base",
    "scripts",
    "chars3",
    "chars4",
];

fn counters() -> Vec<Counter> {
    let mut counters: Vec<Counter> = NAMES.map(|name| Counter::named(name).unwrap()).to_vec();
    counters.push(Counter::foreign("bytes", true, Arc::new(Bytes)));
    counters
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z' ,.\n0-9]{0,200}",
        "[가-힣 ]{0,80}",
        "[\u{1F300}-\u{1F6FF}\u{200D}e\u{301}]{0,40}",
        "[^!]{0,120}",
        "a{0,300} {0,200}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn fits_is_a_comparison(text in text(), max in 0_u32..120) {
        for counter in counters() {
            let fits = counter.count(&text).unwrap() <= max;
            prop_assert_eq!(counter.fits(&text, max).unwrap(), fits, "{}", counter.name());
        }
    }

    #[test]
    fn truncate_stays_within_the_limit(text in text(), max in 0_u32..120) {
        for counter in counters() {
            for keep in [Keep::Head, Keep::Tail, Keep::Both] {
                let cut = counter.truncate(&text, max, keep).unwrap();
                prop_assert!(counter.count(&cut).unwrap() <= max, "{} {keep:?}", counter.name());
                if counter.fits(&text, max).unwrap() {
                    prop_assert_eq!(&cut, &text);
                }
                let kept = match keep {
                    Keep::Head => text.starts_with(&cut),
                    Keep::Tail => text.ends_with(&cut),
                    Keep::Both => (0..=cut.len())
                        .filter(|&at| cut.is_char_boundary(at))
                        .any(|at| text.starts_with(&cut[..at]) && text.ends_with(&cut[at..])),
                };
                prop_assert!(kept, "{} {keep:?}", counter.name());
            }
        }
    }

    #[test]
    fn many_are_each(texts in prop::collection::vec(text(), 0..20)) {
        let views: Vec<&str> = texts.iter().map(String::as_str).collect();
        for counter in counters() {
            let each: Vec<u32> = views.iter().map(|text| counter.count(text).unwrap()).collect();
            prop_assert_eq!(&counter.count_many(&views).unwrap(), &each);
            prop_assert_eq!(&counter.count_many_parallel(&views).unwrap(), &each);
        }
    }
}

#[test]
fn threads_change_nothing() {
    let paragraph =
        "One more paragraph, with some numbers 12345 and 한국어 문장.\n\n  indented line\n";
    let long = paragraph.repeat(4000);
    let solid = "x1y2".repeat(30_000);
    let mut texts = vec![long.as_str(), "", solid.as_str()];
    texts.extend(std::iter::repeat_n(paragraph, 3000));
    for counter in counters() {
        let parallel = counter.count_many_parallel(&texts).unwrap();
        assert_eq!(
            parallel,
            counter.count_many(&texts).unwrap(),
            "{}",
            counter.name()
        );
    }
}

#[test]
fn truncate_uses_the_limit() {
    let text = "Order 48213 was shipped late; the warehouse hadn't printed its label. 주문을 확인했습니다. ";
    let text = text.repeat(20);
    for counter in counters() {
        for max in 1..120 {
            for keep in [Keep::Head, Keep::Tail, Keep::Both] {
                let cut = counter.truncate(&text, max, keep).unwrap();
                // A cut word may encode otherwise than it did in place.
                let spare = max - counter.count(&cut).unwrap();
                assert!(
                    spare <= 3,
                    "{} {keep:?} leaves {spare} of {max}",
                    counter.name()
                );
            }
        }
    }
}

#[test]
fn truncate_of_a_long_text_is_its_beginning_or_end() {
    let text = "The quick brown fox jumps over the lazy dog. ".repeat(5000);
    let counter = Counter::named("o200k_base").unwrap();
    assert_eq!(counter.truncate(&text, 10, Keep::Head).unwrap(), text[..44]);
    let tail = counter.truncate(&text, 10, Keep::Tail).unwrap();
    assert_eq!(counter.count(&tail).unwrap(), 10);
    let both = counter.truncate(&text, 1000, Keep::Both).unwrap();
    assert_eq!(counter.count(&both).unwrap(), 1000);
    assert!(counter.truncate(&text, 0, Keep::Both).unwrap().is_empty());
}

#[test]
fn a_character_of_several_tokens_is_not_split() {
    let counter = Counter::named("o200k_base").unwrap();
    let rare = "\u{10A7D}";
    assert!(counter.count(rare).unwrap() > 2);
    for keep in [Keep::Head, Keep::Tail, Keep::Both] {
        assert_eq!(counter.truncate(rare, 2, keep).unwrap(), "");
    }
}

#[test]
fn chars_are_divided() {
    let chars3 = Counter::named("chars3").unwrap();
    let chars4 = Counter::named("chars4").unwrap();
    for (text, three, four) in [
        ("", 0, 0),
        ("a", 1, 1),
        ("한국어 문장", 2, 1),
        ("abcdefgh", 2, 2),
        ("😀😀😀", 1, 1),
    ] {
        assert_eq!(chars3.count(text).unwrap(), three, "{text}");
        assert_eq!(chars4.count(text).unwrap(), four, "{text}");
    }
    assert!(!chars3.exact() && chars3.margin() > 0.0 && chars4.margin() > chars3.margin());
}

/// The estimate of each script is near the exact count, as its documentation says.
#[test]
fn scripts_are_weighed() {
    let exact = Counter::named("o200k_base").unwrap();
    let scripts = Counter::named("scripts").unwrap();
    for text in [
        "The estimator adds up what the words of a text cost on average, whatever they say.",
        "fn main() {\n    let counts: Vec<u32> = texts.iter().map(|text| count(text)).collect();\n}\n",
        "{\"id\": 48213, \"name\": \"order\", \"tags\": [\"new\", \"sale\"], \"price\": 12.75}",
        "사용자가 어제 보낸 파일을 다시 확인하고 결과를 정리해서 알려 드렸습니다.",
        "ファイルを確認して、結果をまとめてください。よろしくお願いします。",
        "请检查这个文件并总结结果，然后把报告发送给我们的客户。",
        "我們檢查這個檔案並總結結果，然後把報告寄給客戶。",
        "🎈🎲🧩🐛🔧📝💡🎯🚀😀",
        "Пожалуйста, проверьте этот файл и пришлите нам краткий отчёт.",
    ] {
        let (exact, estimate) = (exact.count(text).unwrap(), scripts.count(text).unwrap());
        let upper = f64::from(estimate) * (1.0 + scripts.margin());
        assert!(f64::from(exact) <= upper, "{text}: {exact} > {upper}");
        assert!(estimate <= exact * 2, "{text}: {estimate} for {exact}");
    }
    assert_eq!(scripts.count("").unwrap(), 0);
    assert_eq!(scripts.count(" ").unwrap(), 1);
}

#[test]
fn names_and_margins() {
    for name in NAMES {
        let counter = Counter::named(name).unwrap();
        assert_eq!(counter.name(), name);
        assert_eq!(counter.exact(), counter.margin() == 0.0);
        assert_eq!(counter.exact(), counter.encoder().is_some());
    }
    let unknown = Counter::named("o300k").unwrap_err();
    assert_eq!(unknown.code(), "unknown_encoding");
    let counter = Counter::named("o200k_base").unwrap();
    let guess = counter.clone().with_margin(false, 0.25).unwrap();
    assert!(!guess.exact());
    assert_eq!(guess.count("two words").unwrap(), 2);
    for wrong in [-0.1, f64::NAN, f64::INFINITY] {
        let error = counter.clone().with_margin(false, wrong).unwrap_err();
        assert_eq!(error.code(), "invalid_value");
    }
}

#[test]
fn foreign_counters_are_checked() {
    let short = Counter::foreign("short", false, Arc::new(Short));
    assert_eq!(short.count("a").unwrap_err().code(), "counter_failed");
    assert_eq!(
        short.count_many(&["a", "b"]).unwrap_err().code(),
        "counter_failed"
    );
    let bytes = Counter::foreign("bytes", true, Arc::new(Bytes));
    assert!(bytes.exact() && bytes.foreign_source().is_some());
    let error = bytes.truncate("stop here!", 3, Keep::Head).unwrap_err();
    assert_eq!(error.to_string(), "no shouting");
    assert_eq!(bytes.truncate("한국어", 4, Keep::Tail).unwrap(), "어");
}

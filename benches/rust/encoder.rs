//! Counting one core's worth of text: short messages, prose, code, Korean, and one hostile run.
//!
//! Texts are generated from a fixed seed; each iteration counts other words than the one before.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use satchel_core::tokens::{Counter, Keep};

/// A generator of texts that are the same in every run.
struct Source(u64);

impl Source {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.next(from.len())]
    }

    fn text(&mut self, words: &[&str], ends: &[&str], gap: &str, bytes: usize) -> String {
        let mut text = String::new();
        while text.len() < bytes {
            text.push_str(self.pick(words));
            text.push_str(self.pick(ends));
            text.push_str(gap);
        }
        text
    }
}

const ENGLISH: &[&str] = &[
    "the",
    "order",
    "was",
    "shipped",
    "late",
    "because",
    "customs",
    "asked",
    "for",
    "another",
    "paper",
    "please",
    "check",
    "again",
    "with",
    "warehouse",
    "before",
    "answering",
    "unreasonable",
    "requests",
];
const ENGLISH_ENDS: &[&str] = &[
    "", "", "", ",", ".", "s", "ing", "ly", "ness", "'s", "?", " 2026",
];
const CODE: &[&str] = &[
    "self.",
    "return ",
    "if ",
    "value_",
    "parseTokens(",
    "index",
    "None",
    "import ",
    "async def ",
    "[i",
    "    ",
    "raise ValueError(",
    "== ",
    "max_",
    "lambda ",
    "{key}",
];
const CODE_ENDS: &[&str] = &[
    "",
    ")",
    "):\n        ",
    "]",
    ": int",
    " = 17\n",
    "_count",
    "Handler",
    ", ",
];
const KOREAN: &[&str] = &[
    "사용자",
    "요청",
    "결과",
    "파일",
    "서버",
    "주문",
    "배송",
    "환불",
    "계약",
    "회의",
    "일정",
    "보고서",
    "민서",
    "우현",
];
const KOREAN_ENDS: &[&str] = &[
    "가",
    "를",
    "에서",
    "으로",
    "했습니다.",
    "하고",
    "까지",
    "이라도",
    "되었습니다.",
];

fn count(c: &mut Criterion) {
    let mut group = c.benchmark_group("count");
    let mut source = Source(1);
    for name in ["o200k_base", "cl100k_base"] {
        let counter = Counter::named(name).unwrap_or_else(|error| panic!("{error}"));
        for (kind, words, ends, gap, bytes) in [
            ("messages", ENGLISH, ENGLISH_ENDS, " ", 200),
            ("prose", ENGLISH, ENGLISH_ENDS, " ", 20_000),
            ("code", CODE, CODE_ENDS, "", 20_000),
            ("korean", KOREAN, KOREAN_ENDS, " ", 20_000),
        ] {
            group.throughput(Throughput::Bytes(bytes));
            group.bench_function(format!("{kind}/{name}"), |b| {
                b.iter_batched(
                    || source.text(words, ends, gap, bytes as usize),
                    |text| counter.count(black_box(&text)),
                    BatchSize::SmallInput,
                );
            });
        }
        let run = "a".repeat(100_000);
        group.throughput(Throughput::Bytes(100_000));
        group.bench_function(format!("run/{name}"), |b| {
            b.iter(|| counter.count(black_box(&run)));
        });
    }
    group.finish();
}

fn truncate(c: &mut Criterion) {
    let counter = Counter::named("o200k_base").unwrap_or_else(|error| panic!("{error}"));
    let text = Source(2).text(ENGLISH, ENGLISH_ENDS, " ", 100_000);
    let mut group = c.benchmark_group("truncate");
    for (name, keep) in [
        ("head", Keep::Head),
        ("tail", Keep::Tail),
        ("both", Keep::Both),
    ] {
        group.bench_function(format!("100KB_to_1000/{name}"), |b| {
            b.iter(|| counter.truncate(black_box(&text), 1000, keep));
        });
    }
    group.finish();
}

criterion_group!(benches, count, truncate);
criterion_main!(benches);
